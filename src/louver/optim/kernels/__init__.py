"""Compiled kernels: contiguous arrays and scalars in, arrays and an integer status out.

`kernel` is the only way a function here is compiled. Machine code is cached beside the source or in the
user's cache directory; where neither can be written (a read-only install without a home) it is compiled
anew in each process. Set NUMBA_CACHE_DIR to choose another place.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba

__all__ = ["kernel"]

Function = TypeVar("Function", bound=Callable[..., Any])


def kernel(function: Function) -> Function:
    """Compile `function` on first use, without the interpreter lock and without fast-math."""
    try:
        compiled = numba.njit(cache=True, nogil=True)(function)
    except RuntimeError:  # numba finds no directory it may write to
        compiled = numba.njit(cache=False, nogil=True)(function)
    return cast(Function, compiled)
