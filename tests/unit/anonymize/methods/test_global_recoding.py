"""One recoding for the whole file: equal to brute force where it is proved, and one label per value always."""

from __future__ import annotations

from itertools import product
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from louver.anonymize.columns import LKind, NumericColumn, Sensitive, SetColumn, TreeColumn
from louver.anonymize.methods import global_recoding as harmonise
from louver.anonymize.methods.global_recoding import Lattice, all_codings
from louver.anonymize.problem import AnonymizeProblem
from louver.anonymize.recoding import Recoded, RecodingSpace, _words
from louver.anonymize.watch import Watch
from louver.errors import InfeasibleError
from louver.optim.status import Status
from mixed_records import TREE
from oracles.partitions import has_distinct, has_entropy, interval_loss, set_loss
from oracles.recodings import Coding, least_recoding, runs, sets

LEVELS = [np.array(level) for level in TREE]


def problem_of(
    numbers: list[float], leaves: list[int], labels: list[int], **more: object
) -> AnonymizeProblem:
    return AnonymizeProblem.build(
        [
            NumericColumn(name="number", values=np.array(numbers, float), weight=2.0),
            TreeColumn(name="tree", codes=np.array(leaves), ancestors=LEVELS),
            SetColumn(name="set", codes=np.array(labels), n_labels=3),
        ],
        **{"k": 2, **more},
    )


def node_loss(coding: Coding, rows: list[int]) -> float:
    level, node = coding[rows[0]]
    return (TREE[level].count(node) - 1) / len(TREE[0])


def columns_of(problem: AnonymizeProblem) -> list[tuple[float, list[Coding], object]]:
    """The columns for brute force, rows in the order of the problem."""
    number, tree, label = (column for column in problem.columns)
    values = [None if np.isnan(v) else float(v) for v in number.values[problem.rows]]
    leaves, labels = tree.codes[problem.rows].tolist(), label.codes[problem.rows].tolist()
    width, members = interval_loss(values), set_loss(labels, 3)
    return [
        (2.0, list(runs(values)), lambda _, rows: width(rows)),
        (1.0, [[(level, TREE[level][leaf]) for leaf in leaves] for level in range(3)], node_loss),
        (1.0, list(sets(labels)), lambda _, rows: members(rows)),
    ]


records = st.lists(
    st.tuples(st.sampled_from([0, 1, 3, 7, np.nan]), st.integers(0, 4), st.integers(0, 2)),
    min_size=2,
    max_size=9,
)


@settings(max_examples=40)
@given(records, st.integers(1, 3), st.integers(0, 3))
def test_small_lattices_equal_brute_force(rows, k, most_out):
    if len(rows) < k:
        return
    problem = problem_of(*map(list, zip(*rows, strict=True)), k=k, max_suppressed=most_out)
    answer = harmonise.solve(problem)
    assert answer.status is Status.OPTIMAL
    expected = least_recoding(columns_of(problem), k, most_out)
    assert problem.information_loss(answer) == pytest.approx(expected)
    assert answer.loss * problem.unit == pytest.approx(expected)


@settings(max_examples=15)
@given(records, st.integers(0, 2))
def test_diversity_equals_brute_force(rows, most_out):
    problem = problem_of(*map(list, zip(*rows, strict=True)), k=2, max_suppressed=most_out)
    codes = np.arange(len(rows)) % 2
    limits = [Sensitive(name="ill", codes=codes, n_values=2, l=2)]
    problem = problem_of(*map(list, zip(*rows, strict=True)), k=2, max_suppressed=most_out, sensitive=limits)
    is_fine = has_distinct(codes[problem.rows].tolist(), 2)
    expected = least_recoding(columns_of(problem), 2, most_out, is_fine)
    if expected is None:
        with pytest.raises(InfeasibleError, match="no recoding of these records"):
            harmonise.solve(problem)
    else:
        assert problem.information_loss(harmonise.solve(problem)) == pytest.approx(expected)


@settings(max_examples=25)
@given(records, st.lists(st.integers(0, 2), min_size=9, max_size=9), st.integers(0, 4))
def test_entropy_equals_brute_force_though_coarser_recodings_may_leave_out_more(rows, ills, most_out):
    codes = np.array(ills[: len(rows)])
    limits = [Sensitive(name="ill", codes=codes, n_values=3, l=1.9, l_kind=LKind.ENTROPY)]
    problem = problem_of(*map(list, zip(*rows, strict=True)), k=1, max_suppressed=most_out, sensitive=limits)
    is_fine = has_entropy(codes[problem.rows].tolist(), 1.9)
    expected = least_recoding(columns_of(problem), 1, most_out, is_fine)
    if expected is None:
        with pytest.raises(InfeasibleError):
            harmonise.solve(problem)
    else:
        assert problem.information_loss(harmonise.solve(problem)) == pytest.approx(expected)


def many(n: int = 400, **more: object) -> AnonymizeProblem:
    random = np.random.default_rng(3)
    return AnonymizeProblem.build(
        [
            NumericColumn(name="age", values=np.floor(random.gamma(4.0, 9.0, n))),
            NumericColumn(name="income", values=np.round(random.lognormal(9, 1, n), 2)),
            SetColumn(name="job", codes=np.minimum(random.geometric(0.3, n) - 1, 9), n_labels=10),
            TreeColumn(name="tree", codes=random.integers(0, 5, n), ancestors=LEVELS),
        ],
        **{"k": 5, **more},
    )


def is_one_partition(problem: AnonymizeProblem, answer: Recoded) -> bool:
    """Equal values have equal blocks, blocks of numbers do not overlap, and classes are all that share their blocks."""
    kept = answer.labels >= 0
    for place, column in enumerate(problem.columns):
        blocks = answer.blocks[place]
        values = column.ranks[problem.rows]
        by_value = {(v, b) for v, b in zip(values.tolist(), blocks.tolist(), strict=True)}
        if len(by_value) != len(np.unique(values)):
            return False
        if isinstance(column, NumericColumn) and (np.diff(blocks[np.argsort(values)]) < 0).any():
            return False
    keys = [tuple(answer.blocks[:, i]) for i in np.flatnonzero(kept)]
    return len(set(keys)) == len(answer.sizes) and int(answer.sizes.min()) >= problem.k


@pytest.mark.long
@pytest.mark.parametrize("most_out", [0, 20])
def test_larger_files_are_searched_within_steps(most_out):
    problem = many(max_suppressed=most_out)
    short, long = (harmonise.solve(problem, steps=steps) for steps in (0, 12))
    assert is_one_partition(problem, short) and is_one_partition(problem, long)
    assert long.loss <= short.loss < problem.full_loss * problem.n_records
    assert long.n_suppressed <= most_out
    again = harmonise.solve(problem, steps=12)
    assert (again.labels == long.labels).all() and again.loss == long.loss
    assert problem.information_loss(long) == pytest.approx(long.loss * problem.unit)


def test_the_lattice_judges_fewer_than_there_are():
    random = np.random.default_rng(1)
    columns = [TreeColumn(name=str(j), codes=random.integers(0, 5, 60), ancestors=LEVELS) for j in range(4)]
    problem = AnonymizeProblem.build(columns, k=3)
    whole = RecodingSpace.of(problem)
    losses = []
    for levels in product(range(3), repeat=4):
        found = whole.judged(tuple(LEVELS[level] for level in levels))
        losses += [] if found is None else [found.loss]
    codings = all_codings(whole)
    lattice = Lattice(whole, codings, Watch())
    best = lattice.search(None)
    assert lattice.is_complete and best.loss == pytest.approx(min(losses))
    assert lattice.n_judged < 3**4 / 2
    cut_short = Lattice(whole, codings, Watch(), 1)
    cut_short.search(None)
    assert not cut_short.is_complete


def test_a_stopped_search_still_answers():
    watch = Watch(seconds=1e-9)
    problem = many()
    answer = harmonise.solve(problem, watch)
    assert is_one_partition(problem, answer) and answer.status is Status.FEASIBLE


def test_columns_with_one_coding_take_no_part():
    """More of them than an array has axes; and nothing but them."""
    random = np.random.default_rng(2)
    one = [NumericColumn(name=str(j), values=np.full(12, 3.0)) for j in range(70)]
    tree = TreeColumn(name="tree", codes=random.integers(0, 5, 12), ancestors=LEVELS)
    for columns, alone in (([*one, tree], [tree]), (one, one[:1])):
        found = harmonise.solve(AnonymizeProblem.build(columns, k=3))
        assert found.status is Status.OPTIMAL
        assert found.labels.tolist() == harmonise.solve(AnonymizeProblem.build(alone, k=3)).labels.tolist()


def test_keys_of_many_columns_are_exact():
    """More combinations of blocks than 63 bits tell apart are counted in parts."""
    values = np.tile(np.random.default_rng(4).permuted(np.tile(np.arange(25.0), (20, 1)), axis=1), 2)
    whole = RecodingSpace.of(
        AnonymizeProblem.build([NumericColumn(name=str(j), values=v) for j, v in enumerate(values)], k=1)
    )
    assert whole.multiplicity.tolist() == [2] * 25
    assert len(_words([25] * 20, 25)) > 1
    halves = tuple(np.arange(25) // 13 if place < 17 else np.arange(25) for place in range(20))
    group, sizes, _ = whole.groups(halves)
    blocks = np.stack([half[whole.atoms[:, place]] for place, half in enumerate(halves)], axis=1)
    _, first, expected = np.unique(blocks, axis=0, return_inverse=True, return_counts=True)
    assert sorted(2 * expected) == sorted(sizes)
    assert len(set(zip(group.tolist(), first.reshape(-1).tolist(), strict=True))) == len(sizes)


@settings(max_examples=30, deadline=None)
@given(records, st.integers(1, 3), st.integers(0, 2), st.sampled_from([1, 4, 12, 30]), st.booleans())
def test_bounds_of_some_columns_and_of_an_abandoned_lattice_hold(rows, k, most_out, most_nodes, is_diverse):
    """The lattice of all columns is taken for too large; groups of columns have at most `most_nodes` combinations, or end after two."""
    if len(rows) < k:
        return
    codes = np.arange(len(rows)) % 2
    limits = [Sensitive(name="ill", codes=codes, n_values=2, l=2)] if is_diverse else []
    problem = problem_of(*map(list, zip(*rows, strict=True)), k=k, max_suppressed=most_out, sensitive=limits)
    is_fine = has_distinct(codes[problem.rows].tolist(), 2) if is_diverse else lambda rows: True
    expected = least_recoding(columns_of(problem), k, most_out, is_fine)
    if expected is None:
        return
    space = RecodingSpace.of(problem)
    with mock.patch.object(harmonise, "MOST_NODES", most_nodes):
        whole = harmonise.bound_by_columns(space, Watch(), 10_000)
        short = harmonise.bound_by_columns(space, Watch(), 2)
    assert -1e-9 <= short <= whole + 1e-9 <= expected + 2e-9
    if most_nodes == 30 and most_out == 0 and len(set(rows)) == 1:
        assert whole == pytest.approx(expected)
    if space.has_bound:
        lattice = Lattice(space, all_codings(space), Watch(), 3)
        lattice.search(None)
        assert lattice.least <= expected + 1e-9


def test_a_lattice_too_large_still_has_a_bound_on_the_result():
    random = np.random.default_rng(2)
    trees = [TreeColumn(name=str(j), codes=random.integers(0, 5, 80), ancestors=LEVELS) for j in range(3)]
    income = NumericColumn(name="income", values=np.round(random.lognormal(9, 1, 80), 2))
    found = harmonise.solve(AnonymizeProblem.build([income, *trees], k=4), steps=2)
    assert found.status is Status.FEASIBLE and found.lower_bound is not None
    assert 0 < found.lower_bound < found.loss
