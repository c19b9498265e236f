"""Leaves of one household: ages that do not fit the head's are found, and changed as little as can be."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from louver.topdown.extension.constraints import Constraints
from louver.topdown.extension.finder import Finder
from louver.topdown.extension.gaps import settle
from louver.topdown.extension.household import Gap, Household
from louver.topdown.problem import SparseLevel
from oracles.households import fewest_changes

PLACES, YEARS = ("head", "child", "parent", "other", "hall"), (3, 20, 38, 56)
SHAPE = (len(PLACES), len(YEARS))
PLACE, AGE = (axis.ravel() for axis in np.indices(SHAPE))
CELLS = np.arange(PLACE.size)
POSSIBLE = ~((PLACE == 0) & (AGE == 0))
CLASS = 2 * (PLACE == 4) + (AGE > 0)  # of age or not, in a household or not: the first release
HOUSEHOLD = Household(
    head=PLACE == 0,
    members=PLACE != 4,
    years=np.array(YEARS)[AGE],
    apart_from_years=PLACE,
    gaps=(
        Gap(name="children", cells=PLACE == 1, sign=-1, years=15),
        Gap(name="parents", cells=PLACE == 2, sign=1, years=15),
    ),
)


def constraints(most_others):
    """Parents are at most two to a head; in the leaf there is a limit for others."""
    rows = np.array([PLACE == 3, 2 * (PLACE == 0) - 1 * (PLACE == 2)], dtype=np.int64)
    kinds, kind_of = np.unique(rows, axis=1, return_inverse=True)
    return Constraints(
        names=("others", "parents at most"),
        kind_of=kind_of.ravel(),
        coefficient=kinds,
        lower=np.array([[0], [0]]),
        upper=np.array([[most_others], [1 << 40]]),
        n_bounds=1,
    )


def finder_of(known):
    cell = CELLS[POSSIBLE][np.argsort(CLASS[POSSIBLE], kind="stable")]
    start = np.searchsorted(CLASS[cell], np.arange(5))
    allowed = np.ones((4, known.coefficient.shape[1]), dtype=np.bool_)
    return Finder(allowed=allowed, shape=SHAPE, kind_of=known.kind_of, cell=cell, start=start)


def n_misfits(people):
    head = next(YEARS[AGE[cell]] for cell in people if PLACE[cell] == 0)
    apart = {1: lambda years: years > head - 15, 2: lambda years: years < head + 15}
    return sum(apart.get(int(PLACE[c]), lambda years: False)(YEARS[AGE[c]]) for c in people)


def excesses(known, people):
    held = known.coefficient[:, known.kind_of[np.array(people)]].sum(axis=1)
    return np.maximum(known.lower[:, 0] - held, 0) + np.maximum(held - known.upper[:, 0], 0)


members = [int(c) for c in CELLS if POSSIBLE[c] and 0 < PLACE[c] < 4]


@given(
    st.sampled_from([int(c) for c in CELLS if POSSIBLE[c] and PLACE[c] == 0]),
    st.lists(st.sampled_from(members), min_size=1, max_size=3),
    st.integers(0, 2),
)
@settings(max_examples=60)
def test_as_few_changes_as_by_trying_everything(head, rest, most_others):
    people, known = [head, *rest], constraints(most_others)
    before = excesses(known, people)
    found = fewest_changes(
        people,
        lambda place: [
            int(c)
            for c in CELLS
            if POSSIBLE[c] and CLASS[c] == CLASS[people[place]] and (PLACE[c] == 0) == (place == 0)
        ],
        n_misfits,
        lambda tried: bool((excesses(known, tried) <= before).all()),
    )
    changed, n_changed = settle(HOUSEHOLD, known, finder_of(known), CLASS, 0, dict(Counter(people)))
    after = list(Counter(changed).elements())
    assert (n_misfits(after), n_changed) == found
    assert (excesses(known, after) <= before).all()
    assert Counter(CLASS[after].tolist()) == Counter(CLASS[people].tolist())
    assert sum(PLACE[c] == 0 for c in after) == 1
    assert (Counter(after) - Counter(people)).total() <= n_changed


def level(*leaves):
    people = [sorted(Counter(leaf).items()) for leaf in leaves]
    pairs = [pair for leaf in people for pair in leaf]
    return SparseLevel(
        start=np.cumsum([0, *map(len, people)]),
        cell=np.array([cell for cell, _ in pairs], dtype=np.int64),
        count=np.array([count for _, count in pairs], dtype=np.int64),
    )


def cell(place, years):
    return int(PLACES.index(place) * len(YEARS) + YEARS.index(years))


@pytest.mark.parametrize(
    ("leaf", "broken"),
    [
        ([("head", 38), ("child", 3)], [False, False]),
        ([("head", 38), ("child", 38)], [True, False]),
        ([("head", 38), ("parent", 38), ("parent", 38)], [False, True]),
        ([("head", 20), ("child", 20), ("parent", 20)], [True, True]),
        ([("head", 38), ("head", 38), ("child", 38)], [False, False]),  # two households
        ([("head", 38), ("child", 38), ("hall", 20)], [False, False]),  # not all live in a household
        ([("child", 38)], [False, False]),
        ([], [False, False]),
    ],
)
def test_leaves_of_one_household_are_looked_at(leaf, broken):
    found = HOUSEHOLD.broken(level([cell(*one) for one in leaf], [cell("head", 38), cell("child", 3)]))
    assert found.tolist() == [[one, False] for one in broken]
