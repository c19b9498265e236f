"""Simulated releases: the same as a seeded run on the same table."""

from __future__ import annotations

import numpy as np
import pytest

from louver.topdown import topdown
from louver.topdown.load import read_design
from louver.topdown.measuring import true_levels
from louver.topdown.plan import make_plan
from louver.topdown.simulate import simulate
from topdown_town import write_town


@pytest.mark.parametrize("estimator", ["bayes", "plain"])
def test_simulation_is_a_seeded_run_without_files(tmp_path, estimator):
    town = write_town(tmp_path)
    plan = make_plan(read_design(town).estimated(estimator=estimator))
    leaves = true_levels(plan.design)[-1]
    for seed, found in zip((1, 2), simulate(plan, leaves, (1, 2)), strict=True):
        released = topdown(town, seed=seed, estimator=estimator).estimate.leaves
        assert np.array_equal(found.leaves.to_dense(18), released.to_dense(18))
