"""What is compiled at the first run is what a run calls."""

from __future__ import annotations

from louver.optim.kernels.families.batches import round_batch_inplace, solve_batch_inplace
from louver.topdown import topdown
from louver.topdown.estimation.warm_up import nobody, warm_up
from topdown_town import write_town


def test_every_batch_is_of_one_kind(tmp_path, monkeypatch):
    kept = []
    monkeypatch.setattr("louver.topdown.estimation.warm_up.is_kept", lambda kernel: kept.append(kernel))
    warm_up(None)
    assert kept == [round_batch_inplace]
    topdown(write_town(tmp_path / "town"), seed=1, estimator="plain")
    for kernel in (solve_batch_inplace, round_batch_inplace):
        (types,) = kernel.entry.overloads
        assert types[0] == kernel.typeof_pyval(nobody())
