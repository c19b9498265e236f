"""Kernels are built on Numba's internals: what they promise, so that a Numba that breaks it is noticed here."""

from __future__ import annotations

import gc

import numba
import numpy as np
import pytest
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Flags
from numba.core.types.functions import BaseFunction

from louver.optim.kernels import inner, part
from louver.optim.kernels.part import EntryPoint, Part, _quick_flags, _without_collection

pytestmark = pytest.mark.skipif(numba.config.DISABLE_JIT, reason="kernels are not compiled")


@inner
def scaled(values, i):
    return 2.0 * values[i]


def total(values):
    kept = np.zeros(values.shape[0])
    for i in range(values.shape[0]):
        kept[i] = scaled(values, i)
    return kept.sum()


def raising(n):
    if n < 0:
        raise ValueError("negative")
    return n


def made(function):
    return Part(function, EntryPoint, _nrt=True)


def test_a_part_is_compiled_once_and_called_from_python_and_from_kernels():
    part = made(total)
    assert part(np.arange(4.0)) == 12.0
    assert part(np.arange(3, dtype=np.int64)) == 6.0
    assert len(part.overloads) == len(part.entry.overloads) == 2


def test_only_what_python_calls_is_machine_code():
    part = made(total)
    part(np.arange(2.0))
    (whole,), (plain,) = part.entry.overloads.values(), part.overloads.values()
    assert type(whole.library) is JITCodeLibrary
    assert plain.library.get_pointer_to_function(plain.fndesc.llvm_cpython_wrapper_name) == 0
    assert "scaled" in str(whole.library.get_llvm_str()) or "fmul" in str(whole.library.get_llvm_str())


def test_numba_compiles_as_ever_for_everybody_else():
    made(total)(np.arange(2.0))
    other = numba.njit(lambda values: values.sum() + scaled(values, 0))
    assert other(np.arange(1.0, 3.0)) == 5.0
    assert type(numba.core.registry.cpu_target.target_context.codegen().create_library("x")) is JITCodeLibrary


def test_a_part_that_is_linked_by_numba_brings_what_it_calls():
    part = made(total)
    assert numba.njit(lambda values: part(values) + 1)(np.arange(4.0)) == 13.0


def test_an_error_in_a_kernel_is_raised():
    with pytest.raises(ValueError, match="negative"):
        made(raising)(-1)
    assert made(raising)(3) == 3


def test_a_kernel_that_cannot_be_typed_says_so():
    with pytest.raises(numba.core.errors.TypingError):
        made(lambda n: n + "a")(1)
    assert made(raising)(1) == 1


def test_quick_flags_answer_as_numbas_own():
    flags = [Flags() for _ in range(4)]
    flags[1].nrt = flags[2].nrt = True
    flags[3].boundscheck = True

    def answers():
        return [
            (
                [*one.values().items()],
                hash(one),
                [one == other for other in flags],
                one == "other",
                one.copy() == one,
            )
            for one in flags
        ]

    own, before = answers(), dict(Flags.__dict__)
    with _quick_flags():
        assert dict(Flags.__dict__) != before
        assert answers() == own
        with _quick_flags():
            assert answers() == own
        assert answers() == own
    assert dict(Flags.__dict__) == before
    assert answers() == own


def test_calls_of_numbas_functions_are_remembered_while_a_kernel_is_compiled(monkeypatch):
    monkeypatch.setattr(part, "_known_calls", {})
    own, tried = BaseFunction.get_call_type, []
    monkeypatch.setattr(BaseFunction, "get_call_type", lambda *args: tried.append(args[0]) or own(*args))
    watched = BaseFunction.get_call_type
    first = made(total)
    first(np.arange(3.0))
    n_tried = len(tried)
    assert n_tried and BaseFunction.get_call_type is watched
    assert made(total)(np.arange(3.0)) == first(np.arange(3.0)) == 6.0
    assert len(tried) == n_tried  # other kernels profit, too
    with pytest.raises(numba.core.errors.TypingError):
        made(total)("no array")
    assert BaseFunction.get_call_type is watched


def test_compiling_leaves_numba_and_the_collector_as_they_were():
    before, was_enabled = dict(Flags.__dict__), gc.isenabled()
    made(total)(np.arange(2.0))
    with pytest.raises(numba.core.errors.TypingError):
        made(total)("no array")
    assert dict(Flags.__dict__) == before
    assert gc.isenabled() == was_enabled
    gc.disable()
    try:
        with _without_collection():
            assert not gc.isenabled()
        assert not gc.isenabled()
    finally:
        if was_enabled:
            gc.enable()
