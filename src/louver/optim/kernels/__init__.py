"""Compiled kernels: contiguous arrays and scalars in, arrays and an integer status out. Each family has its own folder.

`kernel` is the only way to compile a function here. Machine code is cached next to the source or, where that cannot
be written, in the user's cache directory; where neither can be written (a read-only install without a
home) it is compiled again in each process. NUMBA_CACHE_DIR sets another location.

The cache of a family lies in a folder named after the content of all its kernels: Numba itself notices a change only in
the file that holds a function, not in the files of the functions it calls. No family calls another one.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, cast

import numba
from numba.core.compiler_lock import global_compiler_lock

from louver.optim.kernels.part import EntryPoint, Part
from louver.optim.notice import compiling

__all__ = ["inner", "is_kept", "kernel"]

Function = TypeVar("Function", bound=Callable[..., Any])

PREFIX = "louver-"

_announced: set[str] = set()


def kernel(function: Function) -> Function:
    """Compile `function` on first use, without the interpreter lock and without fast-math."""
    return _compiled(function, _nrt=True)


def inner(function: Function) -> Function:
    """Compile a helper for kernels that is called often and allocates nothing.

    Without reference counts: passing a tuple of many arrays, which would cost more than the helper itself, is free.
    """
    return _compiled(function, _nrt=False)


def _compiled(function: Function, **flags: Any) -> Function:
    if numba.config.DISABLE_JIT:  # type: ignore[attr-defined]
        return function
    return cast(Function, Part(function, _entry, **flags))


def _entry(part: Part) -> EntryPoint:
    """The kernel for calls from Python, whose machine code is cached."""
    family = Path(part.py_func.__code__.co_filename).parent
    _announce(part, family)
    with global_compiler_lock:  # compiling resets the cache location
        entry = EntryPoint(part)
        if _choose_cache(family):
            with suppress(RuntimeError):  # numba finds no writable directory
                entry.enable_caching()
    return entry


def is_kept(kernel: Any) -> bool:
    """Whether a kernel's machine code is cached; also true if there is nothing to compile or nowhere to cache it."""
    if numba.config.DISABLE_JIT:  # type: ignore[attr-defined]
        return True
    code = kernel.py_func.__code__
    folder = _cache_of(Path(code.co_filename).parent)
    return folder is None or any(Path(folder).rglob(f"*.{code.co_name}-*.nbi"))


def _announce(part: Part, family: Path) -> None:
    """Announce, once per family, that kernels are being compiled if the machine code of one is not cached yet."""
    if family.name in _announced or (_cache_of(family) and is_kept(part)):
        return
    _announced.add(family.name)
    compiling(family.name)


@cache
def _cache_of(family: Path) -> str | None:
    """A cache folder for this exact source of a family; None if there is no writable one."""
    hasher = hashlib.sha256()
    for path in [*sorted(Path(__file__).parent.glob("*.py")), *sorted(family.rglob("*.py"))]:
        hasher.update(path.read_bytes())
    prefix = f"{PREFIX}{family.name}-"
    name = prefix + hasher.hexdigest()[:16]
    home = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    chosen = os.environ.get("NUMBA_CACHE_DIR")
    for parent in [Path(chosen)] if chosen else [family / "__pycache__", Path(home) / "louver"]:
        try:
            (parent / name).mkdir(parents=True, exist_ok=True)
        except OSError:
            continue
        if os.access(parent / name, os.W_OK):
            for old in parent.glob(prefix + "*"):
                if old.name != name:
                    shutil.rmtree(old, ignore_errors=True)
            return str(parent / name)
    return None


def _choose_cache(family: Path) -> bool:
    """Point Numba to the cache of a family, for the function that is compiled next."""
    folder = _cache_of(family)
    numba.config.CACHE_DIR = folder or ""  # type: ignore[attr-defined]
    return folder is not None
