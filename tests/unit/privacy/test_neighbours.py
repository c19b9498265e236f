"""Steps between neighbour relations, and sensitivities of histograms, by enumeration of small data sets."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import combinations_with_replacement

import pytest

from louver.privacy.neighbours import Relation, steps

UNITS = ("u", "v")
VALUES = ("a", "b")
RECORDS = [(unit, value) for unit in UNITS for value in VALUES]
LARGEST_UNIT = 2

Data = tuple[tuple[str, str], ...]


def _is_valid(data: Data) -> bool:
    return all(sum(unit == u for unit, _ in data) <= LARGEST_UNIT for u in UNITS)


UNIVERSE = [
    data
    for n in range(len(UNITS) * LARGEST_UNIT + 1)
    for data in combinations_with_replacement(RECORDS, n)
    if _is_valid(data)
]


def _without(data: Data, i: int) -> Data:
    return data[:i] + data[i + 1 :]


def _neighbours(data: Data, relation: Relation) -> Iterator[Data]:
    """Every neighbour inside the universe, straight from the sentence that defines the relation."""
    if relation is Relation.ADD_REMOVE_RECORD:
        candidates = [_without(data, i) for i in range(len(data))] + [(*data, r) for r in RECORDS]
    elif relation is Relation.CHANGE_RECORD:
        candidates = [(*_without(data, i), r) for i in range(len(data)) for r in RECORDS]
    else:
        candidates = []
        for unit in UNITS:
            rest = tuple(r for r in data if r[0] != unit)
            if rest != data:
                candidates.append(rest)
            else:
                own = [r for r in RECORDS if r[0] == unit]
                for n in range(1, LARGEST_UNIT + 1):
                    candidates += [rest + new for new in combinations_with_replacement(own, n)]
    yield from {tuple(sorted(c)) for c in candidates if _is_valid(c)} - {data}


def _distance(start: Data, goal: Data, relation: Relation) -> int | None:
    """Breadth-first search over data sets."""
    frontier, seen, distance = {start}, {start}, 0
    while frontier:
        if goal in frontier:
            return distance
        frontier = {n for data in frontier for n in _neighbours(data, relation)} - seen
        seen |= frontier
        distance += 1
    return None


@pytest.mark.parametrize("source", list(Relation))
@pytest.mark.parametrize("target", list(Relation))
def test_steps_by_enumeration(source: Relation, target: Relation) -> None:
    distances = [
        _distance(data, neighbour, source) for data in UNIVERSE for neighbour in _neighbours(data, target)
    ]
    declared = steps(source, target, largest_unit=LARGEST_UNIT)
    if declared is None:
        assert None in distances
    else:
        assert None not in distances
        assert max(d for d in distances if d is not None) == declared


def test_without_a_largest_unit_nothing_is_implied_for_units() -> None:
    assert steps(Relation.ADD_REMOVE_RECORD, Relation.ADD_REMOVE_UNIT) is None


@pytest.mark.parametrize(
    ("relation", "l1", "squared_l2"),
    [
        (Relation.ADD_REMOVE_RECORD, 1, 1),
        (Relation.CHANGE_RECORD, 2, 2),
        (Relation.ADD_REMOVE_UNIT, LARGEST_UNIT, LARGEST_UNIT**2),
    ],
)
def test_histogram_sensitivity_by_enumeration(relation: Relation, l1: int, squared_l2: int) -> None:
    """The histogram of values, ERRATA T7: changing one record moves two cells."""
    differences = []
    for data in UNIVERSE:
        for neighbour in _neighbours(data, relation):
            counts = Counter(value for _, value in data)
            counts.subtract(Counter(value for _, value in neighbour))
            differences.append([abs(d) for d in counts.values()])
    assert max(sum(d) for d in differences) == l1
    assert max(sum(x * x for x in d) for d in differences) == squared_l2


def test_every_relation_has_a_meaning() -> None:
    assert len({relation.meaning for relation in Relation}) == len(Relation)
