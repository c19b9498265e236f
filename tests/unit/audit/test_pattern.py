"""What the engine of `protect` is asked by `audit --hide`, and where it cannot be asked."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_array

from louver.audit.pattern import HiddenRows, cheap_pattern
from louver.run import Run
from louver.tables.problem import Forms
from louver.tables.system import System

MATRIX = np.array(
    [
        [1, 0, 0, 0],
        [0, 1, 0, 0],
        [0, 0, 1, 0],
        [0, 0, 0, 1],
        [1, 1, 0, 0],
        [0, 0, 1, 1],
        [1, 0, 1, 0],
        [0, 1, 0, 1],
    ]
)
"""Two by two cells, their rows and their columns."""

TRUTH = np.array([1, 9, 8, 7])


def asked(matrix: np.ndarray, shown_upper: np.ndarray | None = None) -> np.ndarray | None:
    shown = matrix @ TRUTH
    upper = shown if shown_upper is None else shown_upper
    n = len(shown)
    system = System(
        matrix=csr_array(matrix),
        row_lower=np.zeros(n, dtype=np.int64),
        row_upper=np.full(n, 2**60),
        lower=np.zeros(4, dtype=np.int64),
        upper=np.full(4, 2**60),
        truth=TRUTH,
    )
    is_small = np.arange(n) == 0
    rows = HiddenRows(
        rows=np.arange(n),
        hidden=is_small,
        may_hide=~is_small,
        shown_lower=shown,
        shown_upper=upper,
        lower=np.where(is_small, 1, 5),
        upper=np.where(is_small, 4, 2**60),
        cost=np.where(np.arange(n) < 4, 1.0, 5.0),
    )
    count = csr_array(np.array([[1, 0, 0, 0]]))
    window = np.array([1]), np.array([1])
    return cheap_pattern(system, rows, Forms(lower=count, upper=count), *window, Run(), 60.0)


def test_the_cheapest_rectangle_is_hidden() -> None:
    found = asked(MATRIX)
    assert found is not None and np.flatnonzero(found.hidden).tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("reason", ["shares", "rounded"])
def test_what_the_engine_cannot_state_is_left_to_the_audit(reason: str) -> None:
    if reason == "shares":
        assert asked(np.vstack([MATRIX, [3, -2, 0, 0]])) is None
    else:
        assert asked(MATRIX, MATRIX @ TRUTH + (np.arange(8) == 5)) is None
