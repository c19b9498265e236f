"""Kernels that are typed and lowered once, and optimised once, where they are called from Python.

Numba optimises a function, emits its machine code and wrappers, and then does all of it again for every function that
calls it, level by level. Only the outermost one is ever called from Python. So a function, and whatever of Numba's own
it calls, is left as plain LLVM code. The kernel for Python gathers that code, adds a wrapper, and is optimised.
"""

from __future__ import annotations

import copy
import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from numba import types
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler, Flags
from numba.core.environment import Environment
from numba.core.registry import CPUDispatcher
from numba.core.targetconfig import ConfigStack
from numba.core.types.functions import BaseFunction

__all__ = ["EntryPoint", "Part"]


class Part(CPUDispatcher):
    """A function in the form in which other kernels call it; a call from Python uses the kernel that `make_entry` makes of it.

    Parameters
    ----------
    function : callable
    make_entry : callable
        Makes the kernel for Python, at the first call.
    flags
        Options of Numba.
    """

    def __init__(self, function: Callable[..., Any], make_entry: Callable[[Part], EntryPoint], **flags: Any):
        options = {"nopython": True, "nogil": True, "boundscheck": None, **flags}
        super().__init__(
            py_func=function,
            targetoptions=options | {"no_cpython_wrapper": True, "no_cfunc_wrapper": True},
            pipeline_class=_PartCompiler,
        )
        self._make_entry = make_entry
        self._entry: EntryPoint | None = None

    def __call__(self, *args: Any) -> Any:
        return self.entry(*args)

    def get_call_template(self, args: Any, kws: Any) -> Any:
        """As in Numba, but a constant argument is typed like any other number: one specialisation for all constants."""
        plain = tuple(types.unliteral(kind) for kind in args)  # type: ignore[no-untyped-call]
        named = {name: types.unliteral(kind) for name, kind in kws.items()}  # type: ignore[no-untyped-call]
        return super().get_call_template(plain, named)

    @property
    def entry(self) -> EntryPoint:
        """The kernel for Python."""
        if self._entry is None:
            self._entry = self._make_entry(self)
        return self._entry


class EntryPoint(CPUDispatcher):
    """The kernel for Python that a part is compiled to."""

    def __init__(self, part: Part):
        super().__init__(
            py_func=part.py_func,
            targetoptions=part.targetoptions,
            pipeline_class=partial(_EntryCompiler, part),  # type: ignore[arg-type]
        )


class _PlainLibrary(JITCodeLibrary):
    """LLVM code whose functions are simplified one by one, without the code it calls, unless Numba itself links that."""

    _complete: Any = None

    def finalize(self) -> None:
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:
        """Return no address: it is never called from Python."""
        return 0

    def own_module(self) -> Any:
        """The code of this library alone."""
        return super()._get_module_for_linking()  # type: ignore[no-untyped-call]

    def _get_module_for_linking(self) -> Any:
        if self._complete is None:
            self._complete = self.own_module().clone()
            _link_inplace(self._complete, self)
        return self._complete


def _link_inplace(module: Any, library: Any) -> None:
    """Add to a library's module every function that the library calls."""
    seen, waiting = {library}, [library]
    while waiting:
        for used in waiting.pop()._linking_libraries:
            if used not in seen:
                seen.add(used)
                is_plain = isinstance(used, _PlainLibrary)
                module.link_in(
                    used.own_module() if is_plain else used._get_module_for_linking(), preserve=True
                )
                if is_plain:
                    waiting.append(used)


class _PartCompiler(Compiler):
    """The usual compiler up to LLVM code."""

    def _compile_core(self) -> Any:
        with _plain_libraries(self.state.targetctx.codegen()):
            return super()._compile_core()  # type: ignore[no-untyped-call]


@contextmanager
def _plain_libraries(codegen: Any) -> Iterator[None]:
    """Everything compiled in this block, under Numba's lock, remains LLVM code."""
    if codegen._library_class is _PlainLibrary:
        yield
        return
    codegen._library_class, codegen.set_env = _PlainLibrary, _unset
    try:
        yield
    finally:
        del codegen._library_class, codegen.set_env


def _unset(env_name: str, env: Any) -> None:
    """Do nothing: a function that is never called from Python needs no environment."""


class _EntryCompiler(Compiler):
    """Takes a part as it is, adds the wrapper for Python, and optimises and emits all of it."""

    def __init__(self, part: Part, *args: Any):
        super().__init__(*args)  # type: ignore[no-untyped-call]
        self.part = part

    def compile_extra(self, func: Any) -> Any:
        with _quick_flags(), _remembered_calls(), _without_collection():
            return self._entry_of(func)

    def _entry_of(self, func: Any) -> Any:
        context, signature = self.state.targetctx, self.state.args
        self.part.compile(signature)
        result: Any = self.part.overloads[signature]
        # An environment of its own: that of the part, which other kernels also refer to, lacks what the wrapper adds.
        desc = copy.copy(result.fndesc)
        desc.env_name += "_entry"
        env = Environment.from_fndesc(desc)  # type: ignore[no-untyped-call]
        library = context.codegen().create_library(desc.qualname)
        library.enable_object_caching()
        library.add_linking_library(result.library)
        with context.push_code_library(library):
            context.create_cpython_wrapper(library, desc, env, result.call_helper, release_gil=True)
        entry = context.get_executable(library, desc, env)
        return result._replace(
            target_context=context,
            fndesc=desc,
            environment=env,
            library=library,
            entry_point=entry,
            metadata=None,
        )


DEFAULTS = {name: option.default for name, option in Flags.options.items()}
HASH = hash(tuple(sorted(DEFAULTS)))


def _values(flags: Flags) -> dict[str, Any]:
    return {**DEFAULTS, **flags._values}


def _is_equal(flags: Flags, other: object) -> bool:
    return flags is other or (isinstance(other, Flags) and _values(flags) == _values(other))


@contextmanager
def _quick_flags() -> Iterator[None]:
    """Speed up Numba's options, which are part of the key of every function that it looks up, without changing their answers.

    Numba asks its 30 properties one by one for each hash and comparison, which takes a quarter of the time of compiling.
    """
    names = {"values": _values, "__eq__": _is_equal, "__hash__": lambda flags: HASH}
    before = {name: Flags.__dict__.get(name) for name in names}
    for name, quick in names.items():
        setattr(Flags, name, quick)
    try:
        yield
    finally:
        for name, own in before.items():
            if own is None:
                delattr(Flags, name)
            else:
                setattr(Flags, name, own)


@contextmanager
def _remembered_calls() -> Iterator[None]:
    """What Numba's own functions make of types is found once for each list of types, not at each call and at each round of inference.

    Numba tries all overloads of a function for every call, up to twice; that takes a sixth of the time of compiling. Types are told
    apart by the numbers that Numba gives them, and never gives again.
    """
    find, known = BaseFunction.get_call_type, _known_calls

    def get_call_type(function: Any, context: Any, args: Any, kws: Any) -> Any:
        flags = ConfigStack.top_or_none()  # type: ignore[no-untyped-call]
        key = (
            context,
            function._code,
            tuple(kind._code for kind in args),
            tuple((name, kind._code) for name, kind in kws.items()),
            "" if flags is None else str(flags._values),
        )
        if key not in known:
            known[key] = find(function, context, args, kws)
        return known[key]

    setattr(BaseFunction, "get_call_type", get_call_type)  # noqa: B010 - mypy refuses to assign a method
    try:
        yield
    finally:
        setattr(BaseFunction, "get_call_type", find)  # noqa: B010


_known_calls: dict[Any, Any] = {}


@contextmanager
def _without_collection() -> Iterator[None]:
    """Switch off garbage collection: nearly all that compiling allocates is used to its end, so collecting frees nothing."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
