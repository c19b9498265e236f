"""Methods of anonymisation against brute force over all partitions, and what must hold of every answer."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from few_or_many import few_or_many
from louver.anonymize.columns import Distance, LKind, NumericColumn, Sensitive, SetColumn, TreeColumn
from louver.anonymize.methods import auto, exact, freeform, greedy, k_member, mondrian, split_carry
from louver.anonymize.methods import auto as neighbourhood
from louver.anonymize.methods import sorted_cut as sorted_method
from louver.anonymize.methods.freeform import Matching
from louver.anonymize.methods.split_carry import Carry
from louver.anonymize.problem import SUPPRESSED, AnonymizeProblem
from louver.anonymize.watch import Watch
from louver.errors import InfeasibleError
from louver.optim.status import Status
from oracles.kanonymity_milp import solve_milp
from oracles.partitions import (
    has_distinct,
    has_entropy,
    interval_loss,
    is_close,
    least_loss,
    set_loss,
    tree_loss,
)

LEVELS = [[0, 1, 2, 3, 4], [0, 0, 1, 1, 1], [0, 0, 0, 0, 0]]
"""A hierarchy of five leaves: {0, 1} and {2, 3, 4} under the root."""


def annealed(problem):
    """auto without `exact`, which would solve such small problems before anything is annealed."""
    with patch.object(auto, "EXACT_RECORDS", 0):
        return auto.solve(problem, steps=3, workers=1)


METHODS = {
    "auto": annealed,
    "greedy": greedy.solve,
    "greedy as published": lambda p: greedy.solve(p, published_leftovers=True),
    "k-member": k_member.solve,
    "sorted": sorted_method.solve,
    "initial": sorted_method.initial,
    "mondrian": mondrian.solve,
    "mondrian relaxed": lambda p: mondrian.solve(p, is_strict=False),
    "split-carry": lambda p: split_carry.solve(p, n_sets=2),
    "subset carry": lambda p: split_carry.solve(p, n_sets=2, carry=Carry.SUBSET),
    "bubble carry": lambda p: split_carry.solve(p, n_sets=2, carry=Carry.BUBBLE),
}


@dataclass(frozen=True)
class Case:
    """A problem and the oracle's view of it."""

    columns: tuple
    losses: tuple
    k: int

    @property
    def n(self):
        return len(self.columns[0].ranks)

    def problem(self, **more):
        return AnonymizeProblem.build(self.columns, k=self.k, **more)

    def least_loss(self, **more):
        return least_loss(self.n, self.k, self.losses, **more)


@st.composite
def cases(draw, max_records=8, kinds=("number", "gapped", "open", "set", "one-hot", "open set", "tree")):
    n = draw(st.integers(2, max_records))
    k = draw(st.integers(1, min(4, n)))
    columns, losses = [], []
    for position in range(draw(st.integers(1, 3))):
        kind = draw(st.sampled_from(kinds))
        weight = draw(st.sampled_from([1.0, 1.0, 0.5, 0.25]))
        name = f"c{position}"
        codes = draw(st.lists(st.integers(0, 4), min_size=n, max_size=n))
        if kind in ("number", "gapped", "open"):
            values = [None if kind != "number" and code == 4 else float(code * code) for code in codes]
            array = np.array([math.nan if v is None else v for v in values])
            matches = kind == "open"
            columns.append(NumericColumn(name=name, values=array, weight=weight, missing_matches=matches))
            losses.append((weight, interval_loss(values, missing_matches=matches)))
        elif kind == "tree":
            codes = [-1 if draw(st.integers(0, 9)) == 0 else code for code in codes]
            levels = [np.array(level) for level in LEVELS]
            columns.append(TreeColumn(name=name, codes=np.array(codes), ancestors=levels, weight=weight))
            losses.append((weight, tree_loss(codes, LEVELS)))
        else:
            one_hot = kind == "one-hot"
            codes = [-1 if kind == "open set" and code == 4 else code for code in codes]
            columns.append(
                SetColumn(name=name, codes=np.array(codes), n_labels=5, weight=weight, one_hot=one_hot)
            )
            losses.append((weight, set_loss(codes, 5, one_hot=one_hot)))
    return Case(tuple(columns), tuple(losses), k)


@settings(max_examples=150)
@given(cases(max_records=9))
def test_exact_equals_brute_force(case):
    problem = case.problem()
    partition = exact.solve(problem)
    assert partition.status is Status.OPTIMAL
    assert partition.lower_bound == partition.loss
    assert problem.information_loss(partition) == pytest.approx(case.least_loss(), abs=1e-6)
    assert_publishable(problem, partition)


@settings(max_examples=60)
@given(cases(max_records=7), st.integers(1, 2))
def test_exact_with_suppression_equals_brute_force(case, most):
    assume(case.n - most >= case.k)
    problem = case.problem(max_suppressed=most)
    partition = exact.solve(problem)
    expected = case.least_loss(max_suppressed=most)
    assert problem.information_loss(partition) == pytest.approx(expected, abs=1e-6)
    assert partition.status is Status.OPTIMAL
    assert_publishable(problem, partition)


def tree_distance(a, b):
    if a == b:
        return 0.0
    return 0.5 if (a < 2) == (b < 2) else 1.0


ASKED = {
    "distinct": (
        lambda codes: Sensitive(name="s", codes=codes, n_values=5, l=2),
        lambda codes: has_distinct(codes, 2),
    ),
    "entropy": (
        lambda codes: Sensitive(name="s", codes=codes, n_values=5, l=1.8, l_kind=LKind.ENTROPY),
        lambda codes: has_entropy(codes, 1.8),
    ),
    "equal": (
        lambda codes: Sensitive(name="s", codes=codes, n_values=5, t=0.4),
        lambda codes: is_close(codes, 5, 0.4, lambda a, b: float(a != b)),
    ),
    "ordered": (
        lambda codes: Sensitive(name="s", codes=codes, n_values=5, t=0.2, distance=Distance.ORDERED),
        lambda codes: is_close(codes, 5, 0.2, lambda a, b: abs(a - b) / 4),
    ),
    "hierarchical": (
        lambda codes: Sensitive(
            name="s",
            codes=codes,
            n_values=5,
            t=0.3,
            distance=Distance.HIERARCHICAL,
            ancestors=[np.array([0, 0, 1, 1, 1]), np.zeros(5, int)],
        ),
        lambda codes: is_close(codes, 5, 0.3, tree_distance),
    ),
}


@pytest.mark.parametrize("asked", ASKED)
@few_or_many(8, 40, given(case=cases(max_records=6), data=st.data()))
def test_exact_with_requirements_equals_brute_force(asked, case, data):
    codes = np.array(data.draw(st.lists(st.integers(0, 4), min_size=case.n, max_size=case.n)))
    most = data.draw(st.integers(0, 1))
    build, allow = ASKED[asked]
    problem = case.problem(sensitive=[build(codes)], max_suppressed=most)
    expected = case.least_loss(is_allowed=allow(codes.tolist()), max_suppressed=most)
    if expected is None:
        with pytest.raises(InfeasibleError):
            exact.solve(problem)
        return
    partition = exact.solve(problem)
    assert problem.information_loss(partition) == pytest.approx(expected, abs=1e-6)
    assert_publishable(problem, partition)


@settings(max_examples=30)
@given(cases(max_records=6, kinds=("number", "set", "tree")), st.data())
def test_exact_with_a_population_equals_brute_force(case, data):
    """k-map: enough people of the population fall into every published region."""
    n_people = data.draw(st.integers(1, 6))
    chosen = data.draw(st.lists(st.integers(0, case.n - 1), min_size=n_people, max_size=n_people))
    times = np.array(data.draw(st.lists(st.integers(1, 3), min_size=n_people, max_size=n_people)))
    # The population holds every record of the sample once, and some more people like them.
    rows = [*range(case.n), *chosen]
    counts = np.concatenate([np.ones(case.n, int), times])
    columns = [with_population(column, rows) for column in case.columns]
    problem = AnonymizeProblem.build(columns, k=case.k, population=counts)

    def is_allowed(members):
        inside = [
            all(loss([*members, row]) == loss(members) for _, loss in case.losses)
            and all(fits(column, members, row) for column in case.columns)
            for row in rows
        ]
        return counts[inside].sum() >= case.k

    expected = least_loss(case.n, 1, case.losses, is_allowed=is_allowed)
    assert problem.information_loss(exact.solve(problem)) == pytest.approx(expected, abs=1e-6)
    assert_publishable(problem, greedy.solve(problem))


def with_population(column, rows):
    if isinstance(column, NumericColumn):
        return replace(
            column, values=np.concatenate([column.values, column.values[rows]]), n_sample=len(column.values)
        )
    codes = np.concatenate([column.codes, column.codes[rows]])
    return replace(column, codes=codes)


def fits(column, members, row):
    """Whether a row lies in the set or interval published for the members; trees are judged by their loss."""
    if isinstance(column, NumericColumn):
        inside = column.values[list(members)]
        return inside.min() <= column.values[row] <= inside.max()
    if isinstance(column, SetColumn):
        return column.codes[row] in column.codes[list(members)]
    return True


@few_or_many(
    5,
    25,
    given(
        st.integers(4, 7).flatmap(
            lambda n: st.lists(st.tuples(st.integers(0, 5), st.integers(0, 3)), min_size=n, max_size=n)
        ),
        st.integers(2, 3),
    ),
)
def test_exact_equals_the_papers_program(rows, k):
    values = np.array(rows, float)
    weights = np.array([0.75, 0.25])
    columns = [NumericColumn(name=str(j), values=values[:, j], weight=weights[j]) for j in range(2)]
    problem = AnonymizeProblem.build(columns, k=k)
    expected, is_optimal = solve_milp(values, k, weights)
    assert is_optimal
    assert problem.information_loss(exact.solve(problem)) == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("method", METHODS)
@few_or_many(8, 40, given(case=cases(max_records=14), most=st.integers(0, 2)))
def test_every_method_is_publishable_and_no_better_than_exact(method, case, most):
    problem = case.problem(max_suppressed=min(most, case.n - case.k))
    partition = METHODS[method](problem)
    assert_publishable(problem, partition)
    assert partition.loss == problem.total_loss(partition.labels)
    if case.n <= 10:
        assert exact.solve(problem).loss <= partition.loss


@settings(max_examples=60)
@given(cases(max_records=9), st.integers(0, 1))
def test_neighbours_prove_a_bound_below_the_optimum(case, most):
    problem = case.problem(max_suppressed=min(most, case.n - case.k))
    optimum = exact.solve(problem).loss
    # Few neighbours, as in a large problem, or all.
    for n_sought in (0, 2, 6, 24):
        with (
            patch.object(neighbourhood, "TRIPLES_SOUGHT", n_sought),
            patch.object(neighbourhood, "PAIRS_SOUGHT", n_sought),
        ):
            found = neighbourhood.find_neighbours(problem, problem.points(), Watch(), n_wanted=1)
            assert found.lower_bound <= optimum


@pytest.mark.parametrize("method", METHODS)
@few_or_many(5, 25, given(case=cases(max_records=14), data=st.data()))
def test_every_method_meets_requirements(method, case, data):
    codes = np.array(data.draw(st.lists(st.integers(0, 4), min_size=case.n, max_size=case.n)))
    asked = data.draw(st.sampled_from(sorted(ASKED)))
    problem = case.problem(sensitive=[ASKED[asked][0](codes)])
    if not problem.is_allowed(np.arange(case.n)):
        with pytest.raises(InfeasibleError):
            METHODS[method](problem)
        return
    assert_publishable(problem, METHODS[method](problem))


@pytest.mark.parametrize("method", METHODS)
@few_or_many(5, 25, given(case=cases(max_records=12), data=st.data()))
def test_row_order_does_not_change_the_loss(method, case, data):
    order = data.draw(st.permutations(range(case.n)))
    shuffled = replace(case, columns=tuple(reordered(column, order) for column in case.columns))
    assert METHODS[method](shuffled.problem()).loss == METHODS[method](case.problem()).loss


@pytest.mark.parametrize("method", METHODS)
@few_or_many(5, 25, given(data=st.data()))
def test_names_of_categories_do_not_change_the_loss(method, data):
    """Categories beside numbers: whatever the alphabet, the answer loses the same."""
    n = data.draw(st.integers(4, 14))
    values = np.array(data.draw(st.lists(st.integers(0, 9), min_size=n, max_size=n)), float)
    codes = np.array(data.draw(st.lists(st.integers(0, 4), min_size=n, max_size=n)))
    renamed = np.array(data.draw(st.permutations(range(5))))[codes]
    number = NumericColumn(name="number", values=values)
    as_given, as_renamed = (
        METHODS[method](AnonymizeProblem.build([number, SetColumn(name="set", codes=c, n_labels=5)], k=3))
        for c in (codes, renamed)
    )
    assert as_renamed.loss == as_given.loss


@settings(max_examples=40)
@given(cases(max_records=14), st.sampled_from(list(Matching)))
def test_freeform_covers_every_record_k_times(case, matching):
    problem = case.problem()
    found = freeform.solve(problem, matching=matching)
    assert (found.matches[:, 0] == np.arange(case.n)).all()
    for line in found.matches:
        assert len(set(line.tolist())) == case.k
    assert (np.bincount(found.matches.ravel()) == case.k).all()
    expected = sum(
        weight * loss(problem.rows[line].tolist()) for line in found.matches for weight, loss in case.losses
    )
    assert problem.information_loss(found) == pytest.approx(expected, abs=1e-6)
    assert found.loss * problem.unit == pytest.approx(expected, abs=1e-4)


@settings(max_examples=60)
@given(cases(max_records=12), st.data())
def test_units_and_real_numbers_agree(case, data):
    problem = case.problem(max_suppressed=1)
    labels = np.array(data.draw(st.lists(st.integers(-1, 3), min_size=case.n, max_size=case.n)))
    partition = problem.partition(labels, method="drawn")
    expected = 0.0
    for label in set(labels.tolist()):
        rows = problem.rows[labels == label].tolist()
        each = [weight * (1.0 if label == SUPPRESSED else loss(rows)) for weight, loss in case.losses]
        expected += len(rows) * sum(each)
    assert problem.information_loss(partition) == pytest.approx(expected, abs=1e-9)
    assert partition.loss * problem.unit == pytest.approx(expected, abs=1e-6)


def reordered(column, order):
    if isinstance(column, NumericColumn):
        return replace(column, values=column.values[list(order)])
    return replace(column, codes=column.codes[list(order)])


def assert_publishable(problem, partition):
    """What a k-anonymous answer is, checked record by record."""
    assert partition.n_suppressed <= problem.max_suppressed
    assert (partition.labels == SUPPRESSED).sum() == partition.n_suppressed
    for members in partition.classes():
        assert len(members) >= problem.least_size
        assert problem.is_allowed(members)
