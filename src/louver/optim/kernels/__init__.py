"""Compiled kernels: contiguous arrays and scalars in, arrays and an integer status out.

`kernel` is the only way a function here is compiled. Machine code is cached beside the source or in the
user's cache directory; where neither can be written (a read-only install without a home) it is compiled
anew in each process. Set NUMBA_CACHE_DIR to choose another place.

Numba takes a cached kernel for fresh as long as its own file has not changed, though it holds the code of every
kernel that it calls. Here a change in any file of this package makes all of them stale.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

import numba

__all__ = ["kernel"]

Function = TypeVar("Function", bound=Callable[..., Any])

SOURCE_STAMP = tuple(
    (file.name, file.stat().st_mtime_ns, file.stat().st_size)
    for file in sorted(Path(__file__).parent.glob("*.py"))
)


def kernel(function: Function) -> Function:
    """Compile `function` on first use, without the interpreter lock and without fast-math."""
    try:
        compiled = numba.njit(cache=True, nogil=True)(function)
    except RuntimeError:  # numba finds no directory it may write to
        compiled = numba.njit(cache=False, nogil=True)(function)
    index: Any = getattr(getattr(compiled, "_cache", None), "_cache_file", None)
    if hasattr(index, "_source_stamp"):
        index._source_stamp = SOURCE_STAMP
    return cast(Function, compiled)
