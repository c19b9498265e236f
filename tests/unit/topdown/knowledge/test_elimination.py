"""Crossing statements: complete by elimination in a small tree, against every table; and the words where that ends."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from few_or_many import few_or_many
from louver.data.regions import RegionTree
from louver.errors import BudgetError, InfeasibleError
from louver.optim import elimination
from louver.privacy.budget import Measure
from louver.privacy.ledger import Ledger
from louver.privacy.neighbours import Relation
from louver.run import Run
from louver.topdown import check, measure
from louver.topdown.knowledge import elimination as crossing
from louver.topdown.knowledge.implied import DerivedKind, LevelStatements, derive
from oracles import topdown as oracle
from topdown_town import SPEC, write_town

CROSSING = (0b011, 0b110, 0b111)
BOUND = """
[[topdown.bounds]]
name = "adults"
file = "facilities.csv"
cells = { age = ["adult"] }
upper = 40
"""


def stated(tables, slack):
    """Two overlapping sets and the total, known within some people, of leaves in one or two areas."""
    spine = RegionTree.from_columns(
        [("r", str(i % 2), str(i)) for i in range(len(tables))], ("root", "area", "leaf")
    )
    order = [int(leaf.split("/")[-1]) for leaf in spine.leaves]
    leaves = np.array(tables)[order]
    held = np.stack([leaves[:, [0, 1]].sum(1), leaves[:, [1, 2]].sum(1), leaves.sum(1)], axis=1)
    above = [LevelStatements.nothing(n) for n in spine.sizes[:-1]]
    bounds = LevelStatements(
        masks=CROSSING,
        lower=np.maximum(held - np.array([slack, slack, 0]), 0),
        upper=held + np.array([slack, 0, 0]),
    )
    return spine, [*above, bounds]


@few_or_many(
    2, 6, given(st.lists(st.tuples(*[st.integers(0, 2)] * 3), min_size=2, max_size=3), st.integers(0, 1))
)
def test_what_elimination_calls_complete_is_what_leaf_tables_allow(tables, slack):
    spine, statements = stated(tables, slack)
    implied = derive(spine, 3, statements)
    most = int(np.sum(tables))
    plain = [(s.masks, s.lower.tolist(), s.upper.tolist()) for s in statements]
    allowed = oracle.region_vectors([s.tolist() for s in spine.starts], 3, plain, most)
    for level in (0, 1):
        lower, upper = implied.bounds(level, 0, spine.sizes[level])
        for region, expected in enumerate(allowed[level]):
            found = oracle.within(lower[region], upper[region], 3, most)
            assert found >= expected
            assert implied.kind is not DerivedKind.ELIMINATED or found == expected


def test_three_regions_with_crossing_sets_are_complete_and_contradictions_found():
    spine, statements = stated([(1, 1, 0), (0, 2, 1), (2, 0, 1)], 0)
    assert derive(spine, 3, statements).kind is DerivedKind.ELIMINATED
    impossible = LevelStatements(masks=(0b011,), lower=np.array([[40]]), upper=np.array([[50]]))
    with pytest.raises(InfeasibleError, match="contradicts itself"):
        derive(spine, 3, [impossible, *statements[1:]])
    leaf, more = statements[-1], np.array([9, 0, 0])
    clash = LevelStatements(masks=leaf.masks, lower=leaf.lower + more, upper=leaf.upper + more)
    with pytest.raises(InfeasibleError, match="contradicts itself"):
        derive(spine, 3, [*statements[:-1], clash])


def test_beyond_the_guards_bounds_stay_necessary(monkeypatch):
    spine, statements = stated([(1, 1, 0), (0, 2, 1), (2, 0, 1)], 0)
    with monkeypatch.context() as patch:
        patch.setattr(crossing, "MAX_SUMS", 2)
        assert derive(spine, 3, statements).kind is DerivedKind.CROSSING
    monkeypatch.setattr(elimination, "MAX_ROWS", 1)
    assert derive(spine, 3, statements).kind is DerivedKind.CROSSING


def test_the_pair_that_crosses_is_named_before_anything_is_spent(tmp_path):
    town = write_town(tmp_path / "town")
    town.write_text(SPEC + BOUND)
    words = check(town).crossing
    assert [one.split(" are about")[0] for one in words] == [
        '"dormitories" and "adults"',
        '"prisons" and "adults"',
    ]
    assert "(Theorem 2); necessary bounds are kept" in words[0] and words[0] in repr(check(town))
    ledger = town.parent / "people.csv.ledger"
    Ledger.create(ledger, Measure.EPSILON, Relation.CHANGE_RECORD, Fraction(1))
    told = []
    with pytest.raises(BudgetError):
        measure(town, out=tmp_path / "out", run=Run(tell=told.append))
    assert tuple(told) == words
    above = (
        '[[topdown.invariants]]\nname = "confined"\nlevel = "ward"\ncells = { quarters = ["jail", "dorm"] }\n'
    )
    town.write_text(SPEC + above)
    (one,) = check(town).crossing
    assert '"confined" is stated above the leaves about several of the sets' in one
