"""Empirical Bayes: what a cell is told by rows, what a prior adds, what is learnt, that it helps, and that draws are like the truth."""

from __future__ import annotations

import csv
from itertools import product
from statistics import fmean
from types import SimpleNamespace

import numpy as np
import pytest

from louver.topdown import topdown
from louver.topdown.errors.simulate import AssumedTruth
from louver.topdown.estimation.bayes import _total_evidence, _whole_totals
from louver.topdown.estimation.bayes_cells import (
    DEPARTURES,
    EXPONENTS,
    _with_prior,
    cell_evidence,
    leans_on_marginals,
    learn_cells,
)
from louver.topdown.estimation.division import Division, learn_division
from louver.topdown.estimation.entries import SMALL_SHARE, Entries, capped, usual_weights
from louver.topdown.load import read_design
from louver.topdown.measuring.noise_plan import make_plan
from louver.topdown.measuring.true_counts import true_leaves
from louver.topdown.problem import Evidence, Families, Query, SparseLevel, Workload

DETAILED = Query(name="detailed", row_of=np.arange(4), n_rows=4)
ROWS = Query(name="rows", row_of=np.array([0, 0, 1, 1]), n_rows=2)


def entries_of(expected):
    """One child that may fill cells 0, 2 and 3."""
    cells = np.array([0, 2, 3])
    zeros = np.zeros(3, np.int64)
    share = np.asarray(expected) / sum(expected)
    return Entries(
        family=zeros, child=zeros, cell=cells, share=share, expected=np.asarray(expected, float), people=share, totals=np.zeros((1, 1))
    )  # fmt: skip


def families_of(rows_weight):
    evidence = Evidence(
        queries=(DETAILED, ROWS),
        values=(np.array([[8.0, 0.0, 3.0, 5.0]]), np.array([[6.0, 12.0]])),
        weights=(np.full((1, 1), 0.25), np.full((1, 1), rows_weight)),
    )
    return SimpleNamespace(evidence=evidence, level=0, child_start=np.array([0, 1]))


def problem_of(rows_variance, *, constrained, n_types=2):
    load = Workload(queries=(DETAILED, ROWS), variances=(4.0, rows_variance))
    return SimpleNamespace(
        workloads=(load,), implied=SimpleNamespace(constrained=(constrained,), n_types=n_types)
    )


def test_a_row_with_one_cell_left_is_a_measurement_of_it():
    problem = problem_of(1.0, constrained=True)
    value, variance, own = cell_evidence(problem, families_of(1.0), entries_of([5.0, 2.0, 6.0]), np.ones(1))
    assert value[0] == pytest.approx((0.25 * 8 + 6) / 1.25) and variance[0] == pytest.approx(0.8)
    other = 1 + 6 + (0.5 * 6) ** 2  # noise of the row, and of the cell beside
    assert value[1] == pytest.approx((0.25 * 3 + (12 - 6) / other) / (0.25 + 1 / other))
    assert own.tolist() == [0.25] * 3


def test_rows_count_only_where_they_are_better_known():
    assert leans_on_marginals(problem_of(1.0, constrained=False), 0)
    assert leans_on_marginals(problem_of(4.0, constrained=True), 0)
    assert not leans_on_marginals(problem_of(4.0, constrained=False), 0)
    assert not leans_on_marginals(problem_of(4.0, constrained=True, n_types=1), 0)  # bounds on everybody
    value, variance, _ = cell_evidence(
        problem_of(4.0, constrained=False), families_of(0.25), entries_of([5.0, 2.0, 6.0]), np.full(1, 3.5)
    )
    assert value.tolist() == [8, 3, 5] and variance.tolist() == [3.5] * 3


def test_evidence_and_prior_give_the_posterior_back():
    values, noise = np.array([9.0, 1.0]), np.array([4.0, 4.0])
    mean, variance = np.array([6.0, 0.5]), np.array([1.5, 5.0])
    value, weight = _with_prior(values, noise, 1 / noise, mean, variance)
    assert value == pytest.approx(mean)
    assert weight[0] == pytest.approx(1 / 1.5)
    assert weight[1] == pytest.approx(
        1.05 / 4
    )  # a posterior that is wider than the noise still has some prior


def test_small_groups_are_not_moved_further_than_allowed():
    mean, values, noise = np.array([1.0, 1.0, 9.0]), np.array([10.0, 10.0, 10.0]), np.full(3, 4.0)
    share = np.array([SMALL_SHARE / 2, SMALL_SHARE * 2, SMALL_SHARE / 2])
    assert capped(mean, values, noise, share, 2.0).tolist() == [6, 1, 9]
    assert capped(mean, values, noise, share, None).tolist() == [1, 1, 9]


EVERYBODY = Query(name="total", row_of=np.zeros(4, np.int64), n_rows=1)


def totals_of(people, starts, evidence, bounds=None):
    """Families whose parents have so many people, with bounds (children, 2^types)."""
    lower, upper = bounds if bounds is not None else (np.zeros((starts[-1], 0), np.int64),) * 2
    families = Families(
        level=1, first_parent=0, first_child=0, parents=SparseLevel.from_dense(np.array(people)[:, None]),
        child_start=np.array(starts), evidence=evidence, lower=lower, upper=upper,
    )  # fmt: skip
    types = np.array([0, 0, 1, 1]) if upper.shape[1] == 4 else np.zeros(4, np.int64)
    return SimpleNamespace(implied=SimpleNamespace(n_types=int(types.max()) + 1), type_of=types), families


def nearest(value, variance, lower, upper, people):
    """The oracle: every choice of who is at which bound, and the best of those that are feasible."""
    found = []
    for choice in product((0, 1, 2), repeat=len(value)):
        free = np.array(choice) == 2
        at = np.where(np.array(choice) == 0, lower, np.where(np.isfinite(upper), upper, 0.0))
        x = np.where(free, value, at)
        if free.any():
            x = np.where(free, x + variance * (people - x.sum()) / variance[free].sum(), x)
        if abs(x.sum() - people) < 1e-9 and (x >= lower - 1e-9).all() and (x <= upper + 1e-9).all():
            found.append((float((np.square(x - value) / variance).sum()), x))
    return min(found, key=lambda one: one[0])[1]


@pytest.mark.parametrize("is_bounded", [False, True])
def test_totals_are_the_nearest_that_add_up_within_their_bounds(is_bounded):
    random = np.random.default_rng(3)
    for _ in range(20):
        starts = [0, 3, 4, 8]
        values = [random.normal(8, 12, (8, n)) for n in (4, 2, 1)]
        weights = [random.uniform(0.01, 0.3, (8, 1)) for _ in range(3)]
        evidence = Evidence(queries=(DETAILED, ROWS, EVERYBODY), values=tuple(values), weights=tuple(weights))
        people, bounds = random.integers(0, 60, 3), None
        lower, upper = np.zeros(8), np.full(8, np.inf)
        if is_bounded:
            lower, upper = random.integers(0, 3, 8), random.integers(20, 90, 8)
            people = np.maximum(people, np.add.reduceat(lower, starts[:-1]))
            people = np.minimum(people, np.add.reduceat(upper, starts[:-1]))
            bounds = np.column_stack([0 * lower, lower]), np.column_stack([0 * upper, upper])
        problem, families = totals_of(people, starts, evidence, bounds)
        precision = weights[0][:, 0] / 4 + weights[1][:, 0] / 2 + weights[2][:, 0]  # of each query's sum
        sums = [value.sum(axis=1) for value in values]
        value = (
            weights[0][:, 0] / 4 * sums[0] + weights[1][:, 0] / 2 * sums[1] + weights[2][:, 0] * sums[2]
        ) / precision
        found = _whole_totals(problem, families)
        for own, total in zip(map(slice, starts[:-1], starts[1:]), people, strict=True):
            wanted = nearest(
                value[own], 1 / precision[own], lower[own].astype(float), upper[own].astype(float), total
            )
            assert found[own] == pytest.approx(wanted, abs=1e-6)


def test_rows_of_people_who_cannot_be_there_say_nothing_about_a_total():
    evidence = Evidence(
        queries=(DETAILED, ROWS, EVERYBODY),
        values=(np.array([[5.0, 6.0, 90.0, -70.0]]), np.array([[12.0, 40.0]]), np.array([[14.0]])),
        weights=(np.full((1, 1), 0.5), np.full((1, 1), 0.25), np.full((1, 1), 2.0)),
    )
    bounds = np.zeros((1, 4), np.int64), np.array([[0, 99, 0, 99]])  # nobody of the second type
    value, variance = _total_evidence(*totals_of([30], [0, 1], evidence, bounds))
    precision = 0.5 / 2 + 0.25 + 2.0
    assert variance == pytest.approx([1 / precision])
    assert value == pytest.approx([(0.25 * 11 + 0.25 * 12 + 2.0 * 14) / precision])


def cells_of(n_children, shape):
    """A problem with these attributes, and one child after another with all of its cells, eight people expected in each."""
    n_cells = int(np.prod(shape))
    problem = SimpleNamespace(shape=shape, n_cells=n_cells, type_of=np.zeros(n_cells, np.int64))
    n = n_children * n_cells
    expected, zeros = np.full(n, 8.0), np.zeros(n, np.int64)
    child, cell = np.divmod(np.arange(n), n_cells)
    own = Entries(
        family=zeros, child=child, cell=cell, share=np.full(n, 0.05), expected=expected, people=expected, totals=np.zeros((1, 1))
    )  # fmt: skip
    return problem, own


def test_a_prior_follows_what_is_seen_and_else_what_is_usual():
    problem, own = cells_of(400, (1,))
    values = np.where(np.arange(400) % 2 == 0, 16.0, 0.0)  # twice what is expected, or nothing
    prior = learn_cells(problem, [(own, values, np.full(400, 1.0))])
    weights, usual = prior.factors, usual_weights(EXPONENTS, empty=0.9, scale=3.0)
    assert weights.sum(axis=1) == pytest.approx(np.ones(len(weights)))
    seen = weights[np.abs(weights - usual).sum(axis=1).argmax()]
    factors = np.append(0.0, np.exp(EXPONENTS))
    assert seen[(factors > 1.6) & (factors < 2.5)].sum() > 0.3 and seen[factors < 0.2].sum() > 0.3
    assert weights[-1] == pytest.approx(usual)


def test_what_cells_of_a_group_have_in_common_is_told_from_what_is_their_own():
    """Two ages of three races: each race has far more or far fewer people than expected, in both ages or in each on its own."""
    problem, own = cells_of(300, (2, 3))
    random, is_shared = np.random.default_rng(2), {}
    factor = np.array([0.5, 2.0])
    for name, drawn in (
        ("race", np.tile(random.choice(factor, (300, 1, 3)), (1, 2, 1))),
        ("cell", random.choice(factor, (300, 2, 3))),
    ):
        values = 8.0 * drawn.ravel() + random.normal(0.0, 1.0, 1800)
        prior = learn_cells(problem, [(own, values, np.full(1800, 1.0))])
        kind = np.abs(prior.departures - prior.departures[0]).sum(axis=1)[:-1].argmax()
        is_shared[name] = prior.departures[kind, 1:][np.abs(DEPARTURES) < 0.3].sum()
        assert prior.departures[-1].tolist() == np.append(0.0, DEPARTURES == 0.0).tolist()
    assert is_shared["race"] > 0.85 and is_shared["cell"] < 0.5


SPEC = """
[source]
file = "people.csv"
weight = "count"
[attributes.age]
labels = ["adult", "child"]
[attributes.race]
labels = ["a", "b", "c", "d"]
[topdown]
epsilon = 1
[topdown.geography]
columns = ["place", "part", "block"]
levels = ["place", "part", "block"]
leaves = "leaves.csv"
[topdown.shares]
levels = { place = "1/10", part = "1/2", block = "2/5" }
queries = { detailed = 1 }
[[topdown.invariants]]
name = "total"
level = "place"
"""


def write_place(folder):
    """Blocks that resemble their part, a third of them empty."""
    random = np.random.default_rng(3)
    rows, leaves = [], []
    for part in range(24):
        mix = random.dirichlet([4.0, 1.0, 0.3, 0.1])
        for block in range(10):
            leaves.append(("p", part, block))
            size = 0 if random.random() < 0.35 else random.lognormal(3.2, 0.8)
            for age, share in (("adult", 0.75), ("child", 0.25)):
                for race, own in zip("abcd", mix, strict=True):
                    rows.append(("p", part, block, age, race, random.poisson(size * share * own)))
    for name, header, lines in (
        ("people.csv", ("place", "part", "block", "age", "race", "count"), rows),
        ("leaves.csv", ("place", "part", "block"), leaves),
    ):
        with (folder / name).open("w", newline="") as file:
            csv.writer(file).writerows([header, *lines])
    (folder / "place.toml").write_text(SPEC)
    return folder / "place.toml"


@pytest.mark.long
def test_it_has_less_error_than_the_paper(tmp_path):
    spec = write_place(tmp_path)
    errors = {}
    for estimator in ("plain", "least-squares", "bayes"):
        releases = [
            topdown(spec, seed=seed, evaluate=True, intervals=0, estimator=estimator) for seed in range(3)
        ]
        found = [(e.level, e.mean_absolute) for release in releases for e in release.evaluation]
        errors[estimator] = {
            level: fmean(x for own, x in found if own == level) for level in ("part", "block")
        }
    assert errors["least-squares"]["part"] < errors["plain"]["part"]
    assert errors["bayes"]["part"] < errors["plain"]["part"]
    assert errors["bayes"]["block"] < 0.9 * errors["plain"]["block"]


@pytest.mark.long
def test_leaves_are_known_by_their_most_precise_query(tmp_path):
    errors = {}
    for query in ("cells", "race", "total"):
        (tmp_path / query).mkdir()
        spec = write_place(tmp_path / query)
        own = {
            "cells": "detailed = 1",
            "race": 'race = "19/20", detailed = "1/20"',
            "total": 'total = "19/20", detailed = "1/20"',
        }
        spec.write_text(
            SPEC.replace(
                "[topdown.shares]", '[topdown.queries]\ntotal = []\nrace = ["race"]\n[topdown.shares]'
            ).replace(
                "queries = { detailed = 1 }",
                f"queries = {{ detailed = 1 }}\nat = {{ block = {{ {own[query]} }} }}",
            )
        )
        found = [
            e for seed in range(3) for e in topdown(spec, seed=seed, evaluate=True, intervals=0).evaluation
        ]
        errors[query] = {
            name: fmean(e.mean_absolute for e in found if (e.level, e.query) == ("block", name))
            for name in ("total", "detailed")
        }
    assert errors["total"]["total"] < 0.8 * errors["cells"]["total"]
    assert errors["race"]["total"] < 0.95 * errors["cells"]["total"]
    assert errors["race"]["detailed"] < 1.1 * errors["cells"]["detailed"]


def with_public_numbers(spec):
    """Columns of the leaves: houses, as many as people suggest; numbers that say nothing; who may live there at all."""
    random, rows = np.random.default_rng(8), {}
    with (spec.parent / "people.csv").open() as file:
        for row in csv.DictReader(file):
            place = (row["place"], row["part"], row["block"])
            rows[place] = rows.get(place, 0) + int(row["count"])
    lines = [
        (*place, random.poisson(n / 2.5), random.poisson(9), 10**6 * (n > 0)) for place, n in rows.items()
    ]
    with (spec.parent / "leaves.csv").open("w", newline="") as file:
        csv.writer(file).writerows([("place", "part", "block", "houses", "nothing", "most"), *lines])
    return spec


COVARIATE = '[[topdown.covariates]]\ncolumn = "{}"\n'
BOUND = '[[topdown.bounds]]\nname = "inhabited"\nfile = "leaves.csv"\nupper = "most"\n'


@pytest.mark.long
def test_public_numbers_help_and_those_that_say_nothing_cost_nothing(tmp_path):
    spec, errors = with_public_numbers(write_place(tmp_path)), {}
    more = {
        "none": "",
        "houses": COVARIATE.format("houses"),
        "nothing": COVARIATE.format("nothing"),
        "bound": BOUND,
    }
    for name, text in more.items():
        spec.write_text(SPEC + text)
        releases = [topdown(spec, seed=seed, evaluate=True, intervals=0) for seed in range(3)]
        found = [e.mean_absolute for release in releases for e in release.evaluation if e.level == "block"]
        errors[name] = fmean(found)
    assert errors["houses"] < 0.9 * errors["none"]
    assert errors["nothing"] < 1.02 * errors["none"]
    assert errors["bound"] < errors["none"]


def families_with(problem, upper=None):
    """Two parents with two and three leaves; the cells' answers as they are expected by the values of a covariate."""
    child_start = np.array([0, 2, 5])
    parents = SparseLevel.from_dense(np.array([[60, 20], [30, 90]]))
    values = np.array([[45.0, 11], [15, 9], [10, 31], [20, 29], [0, 30]])
    evidence = Evidence(
        queries=(Query(name="detailed", row_of=np.arange(2), n_rows=2),), values=(values,), weights=(np.full((1, 1), 0.5),)
    )  # fmt: skip
    bounds = np.zeros((5, 0), np.int64) if upper is None else np.array([[0, x] for x in upper])
    return Families(
        level=1, first_parent=0, first_child=0, parents=parents, child_start=child_start, evidence=evidence, lower=0 * bounds, upper=bounds
    )  # fmt: skip


def test_people_are_divided_by_what_the_answers_bear_out():
    """Weights against every mixture of even shares and of two covariates' shares on a fine grid."""
    own = [np.array([3.0, 1, 1, 2, 0]), np.array([1.0, 5, 9, 0, 1])]
    first = np.array([True, False])
    problem = SimpleNamespace(
        n_cells=2, type_of=np.zeros(2, np.int64),
        covariates=[SimpleNamespace(cells=first, values=values) for values in own],
    )  # fmt: skip
    families = families_with(problem)
    division = learn_division(problem, [families])
    shares = division.shares(problem, families)[:, division.group_of]
    assert np.add.reduceat(shares, [0, 2], axis=0) == pytest.approx(np.ones((2, 2)))
    assert shares[:, 1] == pytest.approx(
        [1 / 2, 1 / 2, 1 / 3, 1 / 3, 1 / 3]
    )  # no covariate speaks about these
    parts = [np.array([1 / 2, 1 / 2, 1 / 3, 1 / 3, 1 / 3])]
    parts += [values / np.repeat([values[:2].sum(), values[2:].sum()], [2, 3]) for values in own]
    people, seen = np.array([60, 60, 30, 30, 30]), families.evidence.values[0][:, 0]
    weight = 1 / (2.0 + (0.6 * people * parts[0]) ** 2)

    def left(a, b):
        expected = people * ((1 - a - b) * parts[0] + a * parts[1] + b * parts[2])
        return (weight * (seen - expected) ** 2).sum()

    best = min(left(a, b) for a in np.linspace(0, 1, 51) for b in np.linspace(0, 1 - a, 51))
    found = division.weights[division.group_of[0]]
    assert found.sum() == pytest.approx(1) and found.min() >= 0 and found[2] == 0  # the second gains nothing
    assert left(*found[1:]) < best + 1e-3


def test_leaves_that_must_be_empty_expect_nobody():
    problem = SimpleNamespace(n_cells=2, type_of=np.zeros(2, np.int64), covariates=[])
    families = families_with(problem, upper=[9, 0, 5, 0, 5])
    shares = Division.even(problem).shares(problem, families)
    assert shares[:, 0].tolist() == [1, 0, 0.5, 0, 0.5]


@pytest.mark.long
def test_a_draw_is_rougher_than_the_release_and_as_far_from_it_as_the_truth(tmp_path):
    plan = make_plan(read_design(write_place(tmp_path)))
    truth = AssumedTruth.of(plan, true_leaves(plan.design))
    empty, squares = np.zeros(3), np.zeros(2)
    for seed in range(4):
        released = truth.simulate(seed)
        drawn = AssumedTruth.of(plan, released.levels[-1]).drawn(released.noisy, seed)
        true, out, draw = (levels[-1].to_dense(8) for levels in (truth.levels, released.levels, drawn.levels))
        empty += [(x.sum(axis=1) == 0).mean() for x in (true, out, draw)]
        squares += [np.square(x.sum(axis=1) - out.sum(axis=1)).mean() for x in (true, draw)]
    assert 1.5 * empty[1] < empty[2] < empty[0]  # little is known of blocks here: none is certain to be empty
    assert 0.7 < squares[1] / squares[0] < 1.3
