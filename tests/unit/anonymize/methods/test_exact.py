"""The optimum, and bounds under a limit."""

from __future__ import annotations

import numpy as np
import pytest

from louver.anonymize.columns import Sensitive
from louver.anonymize.methods import exact
from louver.anonymize.watch import Watch
from louver.errors import InfeasibleError
from louver.optim.status import Status
from small_people import problem_of, random_columns


def test_a_limit_gives_a_bound_and_is_never_called_optimal():
    problem = problem_of(*random_columns(80, 4), k=5)
    cut_short = exact.solve(problem, max_nodes=60_000)
    assert cut_short.status is Status.FEASIBLE
    assert cut_short.lower_bound is not None
    assert 0 < cut_short.lower_bound < cut_short.loss
    assert cut_short.gap == pytest.approx(cut_short.loss / cut_short.lower_bound - 1)
    at_once = exact.solve(problem, max_nodes=0)
    assert at_once.status is Status.FEASIBLE
    assert at_once.lower_bound is None
    assert cut_short.loss <= at_once.loss


def test_bounds_under_a_limit_lie_below_the_optimum():
    problem = problem_of(*random_columns(24, 3), k=4)
    optimum = exact.solve(problem).loss
    for max_nodes in (300, 1000, 3000, 10_000):
        partition = exact.solve(problem, max_nodes=max_nodes)
        assert partition.loss >= optimum
        assert partition.lower_bound is None or partition.lower_bound <= optimum


def test_no_time_gives_the_first_partition():
    problem = problem_of(*random_columns(60, 3), k=3)
    partition = exact.solve(problem, Watch(seconds=0.0))
    assert partition.status is Status.FEASIBLE
    assert partition.sizes.min() >= 3


def test_infeasible_even_with_records_left_out():
    sensitive = Sensitive(name="s", codes=np.array([0, 1, 0, 1]), n_values=3, l=3)
    with pytest.raises(InfeasibleError):
        exact.solve(problem_of([1, 2, 3, 4], k=2, sensitive=[sensitive], max_suppressed=1))
