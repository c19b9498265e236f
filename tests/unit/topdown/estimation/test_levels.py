"""What is compiled at the first run is what a run calls."""

from __future__ import annotations

from functools import wraps

from louver.optim import aside
from louver.optim.kernels.families.batches import round_batch_inplace, solve_batch_inplace
from louver.topdown import topdown
from louver.topdown.estimation import bayes_cells, bayes_leaves, estimators, levels
from louver.topdown.estimation.levels import nobody
from topdown_town import write_town


def test_every_batch_is_of_one_kind(tmp_path, monkeypatch):
    kept = []
    monkeypatch.setattr(aside, "is_kept", lambda kernel: kept.append(kernel) or True)
    topdown(write_town(tmp_path / "town"), seed=1, estimator="plain")
    assert {*kept} == {solve_batch_inplace, round_batch_inplace}
    for kernel in (solve_batch_inplace, round_batch_inplace):
        (types,) = kernel.entry.overloads
        assert types[0] == kernel.typeof_pyval(nobody())


def test_the_kernels_of_a_prior_are_compiled_for_what_they_are_called_with(tmp_path, monkeypatch):
    called, announced, asked = {}, {}, []

    def kinds(kernel, args):
        return tuple(kernel.typeof_pyval(value) for value in args)

    def watched(kernel):
        @wraps(kernel.py_func)
        def call(*args):
            called.setdefault(kernel.__name__, set()).add(kinds(kernel, args))
            return kernel(*args)

        return call

    for kernel, args in (*bayes_cells.cell_kernels(), *bayes_leaves.leaf_kernels()):
        module = bayes_cells if hasattr(bayes_cells, kernel.__name__) else bayes_leaves
        announced[kernel.__name__] = {kinds(kernel, args)}
        monkeypatch.setattr(module, kernel.__name__, watched(kernel))
    monkeypatch.setattr(
        levels, "compile_calls", lambda run, calls: asked.append({kernel.__name__ for kernel, _ in calls})
    )
    monkeypatch.setattr(estimators, "FEWEST", 2)
    topdown(write_town(tmp_path / "town"), seed=1, estimator="bayes", intervals=2)
    assert called == {name: announced[name] for name in asked[0] - {"round_batch_inplace"}}
