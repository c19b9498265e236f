"""Codings next to a coding: each is one, and they reach every other."""

from __future__ import annotations

import numpy as np
import pytest

from louver.anonymize.columns import NumericColumn, SetColumn, TreeColumn
from louver.anonymize.recoding import domain_of
from mixed_records import TREE

ROWS = np.arange(5)
COLUMNS = [
    NumericColumn(name="number", values=np.array([3.0, 1.0, 8.0, 2.0, 5.0])),
    NumericColumn(name="gaps", values=np.array([3.0, np.nan, 8.0, 2.0, np.nan])),
    SetColumn(name="set", codes=np.array([0, 1, 2, 3, 0]), n_labels=4),
    TreeColumn(name="tree", codes=np.arange(5), ancestors=[np.array(level) for level in TREE]),
]


def partition(coding):
    """Values that are told apart, by the first of each block."""
    return tuple(int(np.flatnonzero(coding == block)[0]) for block in coding)


@pytest.mark.parametrize("column", COLUMNS, ids=lambda column: column.name)
def test_steps_reach_every_coding_and_nothing_else(column):
    domain = domain_of(column, ROWS)
    known = {partition(coding) for coding in domain.codings()}
    ahead, seen = [domain.coarsest()], {partition(domain.coarsest())}
    while ahead:
        coding = ahead.pop()
        for other in (*domain.splits(coding), *domain.others(coding)):
            assert partition(other) != partition(coding)
            if partition(other) not in seen:
                seen.add(partition(other))
                ahead.append(other)
    assert seen == known
