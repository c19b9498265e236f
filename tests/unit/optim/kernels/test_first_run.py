"""The first run of a kernel: whoever waits is told once, and a child process compiles for the arguments that come."""

from __future__ import annotations

import importlib
import pickle

import numba
import numpy as np
import pytest
from numba.core.environment import Environment

from louver.errors import Cancelled
from louver.optim import aside, kernels, notice
from louver.optim.aside import compile_all, compiled_aside
from louver.optim.kernels import is_kept
from louver.run import Run

pytestmark = pytest.mark.skipif(numba.config.DISABLE_JIT, reason="kernels are not compiled")

SOURCE = """
import numpy as np

from louver.optim.kernels import kernel

@kernel
def doubled(n):
    return 2 * n

@kernel
def halved(n):
    return n // 2

@kernel
def pair(n):
    return np.array([n, doubled(n)])

@kernel
def second(n):
    return pair(n)[1]
"""


@pytest.fixture
def family(tmp_path, monkeypatch):
    """A family of two kernels that nobody has compiled."""
    (tmp_path / "made_family").mkdir()
    (tmp_path / "made_family" / "__init__.py").touch()
    (tmp_path / "made_family" / "numbers.py").write_text(SOURCE, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(numba.config, "CACHE_DIR", "")
    monkeypatch.setattr(kernels, "_announced", set())
    monkeypatch.setattr(aside, "n_cores", lambda: 2)
    yield lambda: importlib.reload(importlib.import_module("made_family.numbers"))
    kernels._cache_of.cache_clear()


@pytest.fixture
def told():
    seconds = []
    notice.listeners.append(seconds.append)
    yield seconds
    notice.listeners.remove(seconds.append)


def test_a_family_is_announced_once_and_not_when_its_code_is_kept(family, told, monkeypatch):
    numbers = family()
    assert (numbers.doubled(3), numbers.halved(3), told) == (6, 1, [2])
    monkeypatch.setattr(kernels, "_announced", set())
    numbers = family()
    assert (numbers.doubled(4), told) == (8, [2])
    assert sum(numbers.doubled.entry.stats.cache_hits.values()) == 1


def test_kept_kernels_work_in_any_order(family, monkeypatch):
    """An array for Python needs an environment, which is kept with the kernel and not with those that call it."""
    numbers = family()
    assert (numbers.second(2), list(numbers.pair(2))) == (4, [2, 4])
    for order in ("pair", "second"), ("second", "pair"):
        monkeypatch.setattr(Environment, "_memo", {})  # as in a process that has compiled nothing
        numbers = family()
        answers = {name: np.ravel(getattr(numbers, name)(3)).tolist() for name in order}
        assert answers == {"pair": [3, 6], "second": [6]}
        assert sum(numbers.pair.entry.stats.cache_hits.values()) == 1


def test_every_family_that_is_announced_with_seconds_exists():
    for name in notice.SECONDS:
        importlib.import_module(f"louver.optim.kernels.{name}")


def test_a_child_leaves_code_for_the_very_arguments(family, monkeypatch):
    monkeypatch.setattr(Run, "call", lambda run, function, jobs: function(pickle.loads(pickle.dumps(jobs))))
    numbers = family()
    assert not is_kept(numbers.doubled)
    with compiled_aside(Run(), (numbers.doubled, (3,))):
        assert numbers.halved(4) == 2
    assert is_kept(numbers.doubled)
    numbers = family()
    assert numbers.doubled(5) == 10
    assert sum(numbers.doubled.entry.stats.cache_hits.values()) == 1


def test_a_child_that_cannot_be_had_is_done_without(family, monkeypatch):
    monkeypatch.setattr(aside, "compile_all", None)
    numbers = family()
    with compiled_aside(Run(), (numbers.doubled, (3,))):
        pass
    assert numbers.doubled(3) == 6


def test_a_child_is_ended_with_the_run(family, monkeypatch):
    ended = []

    def waiting(run, function, jobs):
        while not run.is_cancelled:
            pass
        ended.append(jobs)

    monkeypatch.setattr(Run, "call", waiting)
    numbers, run = family(), Run()
    with pytest.raises(Cancelled), compiled_aside(run, (numbers.doubled, (3,))):
        run.cancel()
    with pytest.raises(KeyError), compiled_aside(Run(), (numbers.doubled, (3,))):
        raise KeyError


def test_kernels_are_found_by_name(family):
    numbers = family()
    compile_all([("made_family.numbers", "halved", (numba.types.int64,))])
    assert is_kept(numbers.halved)
