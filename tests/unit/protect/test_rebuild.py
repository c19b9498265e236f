"""Parts of a pattern built anew: the best of all patterns of some cells, the others as they are."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from scipy.sparse import csr_array

from louver.run import Run
from louver.tables.hiding.problem import UNBOUNDED, PatternProblem
from louver.tables.hiding.rebuild import PatternPart


def problem_of(cost: np.ndarray) -> PatternProblem:
    n = len(cost)
    return PatternProblem(
        values=np.ones(n, dtype=np.int64),
        sums=csr_array((0, n), dtype=np.int8),
        must_hide=np.zeros(n, dtype=bool),
        may_hide=np.ones(n, dtype=bool),
        cost=cost,
        down=np.full(n, UNBOUNDED),
        up=np.full(n, UNBOUNDED),
        attackers=(),
        demands=(),
    )


@pytest.mark.parametrize("seed", range(40))
def test_a_part_is_the_best_of_all_patterns_of_its_cells(seed: int) -> None:
    draw = np.random.default_rng(seed)
    cost = draw.integers(1, 5, 9).astype(np.float64)
    shares = np.where(draw.random((6, 9)) < 0.4, draw.choice([0.5, 1.0], (6, 9)), 0.0)
    shares[np.arange(6), draw.integers(0, 9, 6)] = 1.0  # with everything hidden all hold
    hidden = np.ones(9, dtype=bool)
    for cell in draw.permutation(9)[:2]:  # a pattern that is not the best
        trial = hidden.copy()
        trial[cell] = False
        hidden = trial if (shares @ trial >= 1).all() else hidden
    cells = np.sort(draw.permutation(9)[:6])
    part = PatternPart(problem_of(cost), cells, hidden, Run())
    part.require(csr_array(shares[:3]))
    part.require(csr_array(shares[3:]))
    best = np.inf
    for chosen in product([False, True], repeat=len(cells)):
        pattern = hidden.copy()
        pattern[cells] = chosen
        if (shares @ pattern >= 1).all():
            best = min(best, float(cost[pattern].sum()))
    while (found := part.solve(1.0)) is not None:
        assert (shares @ found >= 1).all() and cost[found].sum() <= cost[hidden].sum() - 1
        others = np.setdiff1d(np.arange(9), cells)
        assert (found[others] == hidden[others]).all()
        hidden = found
        part = PatternPart(problem_of(cost), cells, hidden, Run())
        part.require(csr_array(shares))
    assert cost[hidden].sum() == best
