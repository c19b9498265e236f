"""People and household sizes measured under one ledger: what one step of the relation changes in both, by enumeration."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import combinations_with_replacement, product

import numpy as np
import pyarrow as pa
import pytest

from louver._arrays import Ints
from louver.data.read import open_source
from louver.data.regions import RegionTree
from louver.data.units import count_units
from louver.groups.agreement import by_code
from louver.groups.problem import GroupTable, SizeQuery, Total, answers, sensitivity
from louver.privacy.neighbours import Relation

LEAVES, KINDS, HOMES = ("1", "2"), ("adult", "child"), (None, "a", "b")
RECORDS = list(product(LEAVES, KINDS, HOMES))
"""A person: where, of which kind, and in which household, if any. A household in two leaves counts once in each."""

REGIONS = RegionTree.from_leaves(("leaf",), [(leaf,) for leaf in LEAVES])
Table = tuple[tuple[str, str, str | None], ...]


def _people(table: Table) -> Ints:
    """What TopDown measures: people by kind, in every region of every level."""
    counts = np.zeros((len(LEAVES), len(KINDS)), np.int64)
    for leaf, kind, _ in table:
        counts[LEAVES.index(leaf), KINDS.index(kind)] += 1
    return REGIONS.tree.sum_up(counts)


def _sizes(table: Table, largest: int) -> Ints:
    """What is measured of sizes: households of at least each size, the larger ones counted with the largest."""
    members = Counter((leaf, home) for leaf, _, home in table if home is not None)
    cells: Counter[tuple[tuple[str, ...], int]] = Counter()
    for (leaf, _), n in members.items():
        cells[(leaf,), min(n, largest)] += 1
    true = GroupTable.from_cells(REGIONS, cells, largest, Total.NOISY)
    return answers(true.counts, SizeQuery.SUFFIX, REGIONS.tree)


def _tables(most: int) -> Iterator[Table]:
    for n in range(most + 1):
        yield from combinations_with_replacement(RECORDS, n)


def _neighbours(table: Table, relation: Relation) -> Iterator[Table]:
    if relation is Relation.ADD_REMOVE_RECORD:
        yield from ((*table, record) for record in RECORDS)
        return
    for place in range(len(table)):
        for record in RECORDS:
            yield (*table[:place], record, *table[place + 1 :])


def _by_level(rows: Ints) -> list[int]:
    """Sum of the numbers of each level."""
    tree = REGIONS.tree
    return [int(rows[tree.level(k)].sum()) for k in range(tree.n_levels)]


@pytest.mark.parametrize("largest", [1, 2, 3])
@pytest.mark.parametrize("relation", [Relation.CHANGE_RECORD, Relation.ADD_REMOVE_RECORD])
def test_one_step_changes_both_tables_as_declared_and_no_more(relation: Relation, largest: int) -> None:
    declared = [
        sensitivity(SizeQuery.SUFFIX, relation, Total.NOISY, n_level_regions=n, n_sizes=largest)
        for n in REGIONS.tree.level_sizes
    ]
    per_person = 2 if relation is Relation.CHANGE_RECORD else 1
    most_people, most_sizes, most_joint, most_square = [0, 0], [0, 0], 0, 0
    for table in _tables(3):
        people, sizes = _people(table), _sizes(table, largest)
        for other in _neighbours(table, relation):
            off_people = _by_level(np.abs(_people(other) - people))
            change = _sizes(other, largest) - sizes
            off_sizes = _by_level(np.abs(change))
            most_people = list(map(max, most_people, off_people))
            most_sizes = list(map(max, most_sizes, off_sizes))
            most_joint = max(most_joint, sum(off_people) + sum(off_sizes))
            most_square = max(most_square, *_by_level(change**2))
    assert most_people == declared == [per_person] * 2
    # With a single size, a household that ends and one that begins are the same number at the root.
    at_root = 1 if largest == 1 else per_person
    assert most_sizes == [at_root, per_person]
    # All queries of all levels look at the same person, and one step reaches every one of the maxima together.
    together = sum(most_people) + sum(most_sizes)
    assert most_joint == together if largest > 1 else most_joint <= together
    assert most_square == per_person


def test_invariants_of_people_leave_neighbours_of_sizes_only_where_records_change() -> None:
    """With exact numbers of people in every leaf, a person can change household, but nobody can come or go."""
    found = dict.fromkeys((Relation.CHANGE_RECORD, Relation.ADD_REMOVE_RECORD), False)
    for relation, table in product(found, _tables(2)):
        for other in _neighbours(table, relation):
            is_same = (_people(other) == _people(table)).all()
            found[relation] |= bool(is_same and (_sizes(other, 3) != _sizes(table, 3)).any())
    assert found == {Relation.CHANGE_RECORD: True, Relation.ADD_REMOVE_RECORD: False}


CODES = ("1a", "1b", "2a")
CODED = RegionTree.from_leaves(("county", "site"), [(code[:1], code) for code in CODES])
"""Leaves whose codes begin with the code of their county."""


def _read(records: list[tuple[str, str | None]], largest: int) -> Ints | None:
    """Suffix counts by way of the reader itself; None where a record is in no leaf, so that the data are refused."""
    codes, homes = zip(*records, strict=True)
    table = pa.table({"code": pa.array(codes, pa.string()), "home": pa.array(homes, pa.string())})
    with open_source(table) as source:
        read = count_units(source, "home", ["code"], largest, is_split=True, may_be_alone=True)
    counted = by_code(read, (1, 2))
    if not set(counted.leaves) <= set(CODED.leaf_labels):
        return None
    true = GroupTable.from_cells(CODED, counted.cells, largest, Total.NOISY)
    return answers(true.counts, SizeQuery.SUFFIX, CODED.tree)


def test_a_code_with_further_characters_replaces_no_leaf() -> None:
    """Every neighbour of a small table whose changed record may have any code, one that begins with a leaf's code too."""
    table: list[tuple[str, str | None]] = [*(("1a", f"h{n}") for n in range(5)), ("1b", "h0"), ("2a", None)]
    before = _read(table, 2)
    assert before is not None
    refused, most = 0, 0
    for place, code, home in product(range(len(table)), (*CODES, "1aX", "1", "1a/"), (None, "h0", "h1", "z")):
        after = _read([*table[:place], (code, home), *table[place + 1 :]], 2)
        if after is None:
            refused += 1
            continue
        off = np.abs(after - before)
        most = max(most, *(int(off[CODED.tree.level(k)].sum()) for k in range(CODED.tree.n_levels)))
    assert most == 2
    # Three homes in each of three codes that are no leaf; without a home, nobody counts the record.
    assert refused == len(table) * 3 * 3
