"""Functions inside kernels: typed and lowered, but not optimised, wrapped or made machine code of on their own.

Numba optimises a function, emits its machine code and a wrapper for Python, and then does all of it again for every
function that calls it, level by level. Only the outermost one is ever called from Python. So what kernels call is handed
over as plain LLVM code, and the outermost kernel is optimised once with all of it.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

from numba import _dynfunc  # type: ignore[attr-defined]
from numba.core.compiler import Compiler
from numba.core.registry import CPUDispatcher

__all__ = ["Part"]


class Part(CPUDispatcher):
    """A function as other kernels call it; called from Python, it is the kernel that `entry` makes.

    Parameters
    ----------
    function : callable
    entry : callable
        Makes the kernel for Python, at the first call.
    flags
        Options of Numba.
    """

    def __init__(self, function: Callable[..., Any], entry: Callable[[], Callable[..., Any]], **flags: Any):
        options = {"nopython": True, "nogil": True, "boundscheck": None, **flags}
        super().__init__(
            py_func=function,
            targetoptions=options | {"no_cpython_wrapper": True, "no_cfunc_wrapper": True},
            pipeline_class=_PartCompiler,
        )
        self._make_entry = entry
        self._entry: Callable[..., Any] | None = None

    def __call__(self, *args: Any) -> Any:
        return self.entry(*args)

    @property
    def entry(self) -> Any:
        """The kernel for Python."""
        if self._entry is None:
            self._entry = self._make_entry()
        return self._entry


class _PartCompiler(Compiler):
    """The usual compiler up to LLVM code."""

    def define_pipelines(self) -> Any:
        state = self.state
        state.targetctx = copy.copy(state.targetctx)
        state.targetctx.get_executable = _nothing_to_execute
        state.library = state.targetctx.codegen().create_library(state.func_id.func_qualname)
        state.library.finalize = lambda: _link(state.library)
        return super().define_pipelines()  # type: ignore[no-untyped-call]


def _nothing_to_execute(library: Any, fndesc: Any, env: Any) -> Any:
    """What Numba knows the function by, without code: it is never called from Python."""
    return _dynfunc.make_function(fndesc.lookup_module(), fndesc.qualname, "", 0, env, (library,))


def _link(library: Any) -> None:
    """Add what the function calls to its code, and leave the rest to the kernel that calls it."""
    for used in dict.fromkeys(library._linking_libraries):
        library._reload_init.update(used._reload_init)
        library._final_module.link_in(used._get_module_for_linking(), preserve=True)
    library._finalized = True
