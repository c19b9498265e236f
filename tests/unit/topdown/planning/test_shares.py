"""Shares: the closed form they are chosen by, the optimum against a grid, and exact fractions that sum to one."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from louver.errors import InputError
from louver.topdown.estimation.subspaces import least_squares_variances
from louver.topdown.load import read_design
from louver.topdown.measuring.noise_plan import make_plan, measurable
from louver.topdown.planning.bayes_errors import (
    LITTLE,
    BayesErrors,
    Departures,
    LeafErrors,
    made_up_departures,
    stand_in_departures,
)
from louver.topdown.planning.shares import (
    Aim,
    _objective,
    _squares,
    choose_shares,
    precision_of,
    scalar_tree,
    usual_parts,
    with_shares,
)
from louver.topdown.planning.stand_in import draw_stand_in
from louver.topdown.problem import Query
from topdown_town import SPEC, write_town

OPEN = SPEC.partition("[[topdown.bounds]]")[0]
BARE = OPEN[: OPEN.index("[topdown.shares]")] + OPEN[OPEN.index("[[topdown.invariants]]") :]
RHO = OPEN.replace("epsilon = 2", 'rho = "1/2"\ndelta = 1e-10')
LEVELS = "a/b/c"


def regular(folder, spec=OPEN, areas="AB", blocks="12"):
    """The town with two blocks in each of four areas, or others: all regions of a level are alike."""
    path = write_town(folder, spec)
    blocks = [f"{ward}{area}{block}" for ward, area, block in product("12", areas, blocks)]
    path.with_name("leaves.csv").write_text("\n".join(["block", *blocks]))
    return read_design(path)


@pytest.mark.parametrize("spec", [OPEN, RHO])
def test_scalar_tree_has_the_variances_of_a_regular_tree(tmp_path, spec):
    design = regular(tmp_path, spec)
    plan = make_plan(design)
    tree = scalar_tree(design, np.ones((4, 3)))
    parts = np.array(
        [
            [float(a * b[q.name]) for q in design.queries]
            for a, b in zip(design.level_shares, design.query_shares, strict=True)
        ]
    )
    total = design.queries[0]
    exact = [[type(total)(name="", row_of=np.zeros(18, np.int64), n_rows=1, axes=())]] * 2 + [[], []]
    wanted = least_squares_variances(
        design.spine, design.shape, plan.workloads(), design.queries, exact=exact
    )
    found = tree.variances(precision_of(design)(parts))
    for level, variances in enumerate(wanted):
        assert found[level][1:] == pytest.approx(variances[0], rel=1e-9 if "rho" not in spec else 0.02)


@pytest.mark.parametrize("name", ["even", "below"])
@pytest.mark.parametrize("spec", [OPEN, RHO])
def test_no_point_of_a_grid_is_better(tmp_path, spec, name):
    spec = spec.replace('age_race = ["age", "race"]\n', "").replace(
        ', age_race = "1/4", detailed = "1/2"', ', detailed = "3/4"'
    )
    spec = spec.replace('["town", "ward", "area", "block"]', '["ward", "block"]').replace(
        "[0, 1, 2, 3]", "[0, 3]"
    )
    spec = spec.replace(
        '{ town = "1/4", ward = "1/4", area = "1/4", block = "1/4" }', '{ ward = "1/2", block = "1/2" }'
    )
    design = read_design(write_town(tmp_path, spec))
    is_measured, live = measurable(design), np.ones((2, 2))
    aim = Aim.for_workload(name, design)
    choice = choose_shares(design, is_measured, aim, live=live)
    tree, precision = scalar_tree(design, live), precision_of(design)
    squares = _squares(design, tree, None, None)
    usual = squares.plain(precision(usual_parts(design, is_measured)))
    objective = _objective(tree, precision, squares.own, usual, aim)
    steps = [step for step in product(range(41), repeat=3) if sum(step) <= 38 and step[1] >= 1]
    grid = np.array([[[a, b], [c, 40 - a - b - c]] for a, b, c in steps]) / 40
    best = float(objective(grid).min())
    assert choice.objective <= best + 0.002 * abs(best)


@pytest.mark.parametrize("name", ["even", "below"])
def test_fractions_are_exact_and_every_level_measures_its_cells(tmp_path, name):
    design = regular(tmp_path)
    aim = Aim.for_workload(name, design)
    chosen = with_shares(design, choose_shares(design, measurable(design), aim).shares)
    assert sum(chosen.level_shares) == 1 and all(sum(own.values()) == 1 for own in chosen.query_shares)
    assert all(own["detailed"] > 0 for own in chosen.query_shares)
    assert make_plan(chosen).loss.amount == 2  # every part of the budget is used
    for level, own in zip(chosen.level_shares, chosen.query_shares, strict=True):
        assert all((level * share * 200).denominator == 1 for share in own.values())


def test_a_target_draws_the_budget_to_it_and_says_what_it_takes(tmp_path):
    design = regular(tmp_path)
    aim = Aim(weights=np.ones((4, 4)), targets={(2, 3): 1.0})
    choice = choose_shares(design, measurable(design), aim)
    assert Fraction(choice.shares.levels["area"]) > Fraction(1, 2)
    assert choice.budget_factor > 1  # 1 person at epsilon 2 is out of reach
    easy = Aim(weights=np.ones((4, 4)), targets={(2, 3): 1e3})
    assert choose_shares(design, measurable(design), easy).budget_factor < 0.1


def test_a_spec_without_shares_has_those_of_the_even_workload(tmp_path):
    written = regular(tmp_path / "a")
    bare = regular(tmp_path / "b", BARE)
    aim = Aim.for_workload("even", written)
    assert bare.has_chosen_shares and not written.has_chosen_shares
    assert bare.options.shares == choose_shares(written, measurable(written), aim).shares


def test_merged_labels_have_no_closed_form(tmp_path):
    merged = BARE.replace(
        'quarters = ["quarters"]', 'few = { attributes = ["race"], merge = { race = { x = ["b", "c"] } } }'
    )
    with pytest.raises(InputError, match="write shares for a spec that merges labels"):
        regular(tmp_path, merged)


@pytest.mark.long
def test_shares_are_chosen_for_the_estimator(tmp_path):
    chosen = {}
    for estimator in ("bayes", "least-squares", "plain"):
        spec = BARE.replace("epsilon = 2", f'epsilon = 2\nestimator = "{estimator}"')
        chosen[estimator] = regular(tmp_path / estimator, spec, "ABCDEFGHIJKL", "123456789").options.shares
    assert chosen["bayes"] != chosen["least-squares"] == chosen["plain"]


def test_shares_of_fine_tables_are_those_of_least_squares(tmp_path):
    """Noise of many empty cells adds up in sums, and the errors forecast for `bayes` know nothing of it."""
    races = ", ".join(f'"{letter}"' for letter in "abcdefghijkl")  # 72 cells
    fine = BARE.replace('labels = ["a", "b", "c"]', f"labels = [{races}]")
    assert fine != BARE
    chosen = []
    for name in ("bayes", "least-squares"):
        spec = fine.replace("epsilon = 2", f'epsilon = 2\nestimator = "{name}"')
        chosen.append(regular(tmp_path / name, spec, "ABCDEFGHIJKL", "123456789").options.shares)
    assert chosen[0] == chosen[1]


@pytest.fixture
def errors(tmp_path):
    """Errors of `bayes` in the town, whose 8 blocks count as many."""
    design = regular(tmp_path)
    tree, wanted = scalar_tree(design, np.ones((4, 3))), design.published_queries
    departures = made_up_departures(design, 400.0)
    return BayesErrors.of(
        tree, departures, design.queries, wanted, has_prior=[False, True, True, True], has_leaf_prior=True
    ), departures


def test_errors_of_bayes_lie_between_nothing_and_what_parents_lead_to_expect(errors):
    found, departures = errors
    nothing, all_ = (found.squares(np.full((4, 3), precision)) for precision in (1e-9, 1e9))
    away = departures[-1].counts - departures[-1].expected
    assert nothing[-1, -1] == pytest.approx((away**2).mean(), rel=1e-6)
    assert nothing[-1, 0] == pytest.approx((away.sum(axis=1) ** 2).mean(), rel=1e-6)
    assert (all_[1:] < 1e-4).all()
    between = [found.squares(np.full((4, 3), precision)) for precision in np.logspace(-6, 3, 10)]
    assert (np.diff(between, axis=0) <= 1e-9).all()


def test_a_count_that_may_be_anything_is_as_uncertain_as_its_noise():
    away = np.full((50, 4), 1e6)
    sample = Departures(away, np.zeros((50, 4)))
    cells = Query(name="detailed", row_of=np.arange(4), n_rows=4)
    everyone = Query(name="total", row_of=np.zeros(4, np.int64), n_rows=1)
    found = LeafErrors.of(sample, (cells,), (everyone, cells))(np.array([LITTLE]))
    assert found == pytest.approx([2 * LITTLE**0.5, LITTLE**0.5], rel=1e-3)


def test_derivatives_of_errors_are_exact(errors):
    found, _ = errors
    at = np.full((4, 3), 0.013)
    step = np.zeros((4, 3))
    step[-1, -1] = 1.0
    slope = found.squares(at + 1e-30j * step).imag / 1e-30
    ratio = (found.squares(at + 1e-7 * step) - found.squares(at - 1e-7 * step)) / 2e-7
    assert slope == pytest.approx(ratio, rel=1e-3, abs=1e-6)


def test_made_up_regions_depart_from_their_parents_and_are_the_same_each_time(tmp_path):
    design = regular(tmp_path)
    one, two = made_up_departures(design, 4000.0), made_up_departures(design, 4000.0)
    for own, again in zip(one, two, strict=True):
        assert np.array_equal(own.counts, again.counts) and np.array_equal(own.expected, again.expected)
        assert not own.counts[:, ~design.is_possible].any()
    leaves = one[-1]
    assert 0.2 < (leaves.counts.sum(axis=1) == 0).mean() < 0.4
    assert leaves.expected.sum(axis=1) == pytest.approx(np.full(len(leaves.expected), 500.0))
    areas = one[-2]
    assert areas.expected.sum(axis=1) == pytest.approx(areas.counts.sum(axis=1))
    assert leaves.with_own_totals().expected.sum(axis=1) == pytest.approx(leaves.counts.sum(axis=1))


def test_departures_of_a_stand_in_are_those_of_its_regions(tmp_path):
    design = regular(tmp_path)
    leaves = draw_stand_in(design, 400)
    found = stand_in_departures(design, leaves)
    dense = leaves.to_dense(design.n_cells)
    assert np.array_equal(found[-1].counts, dense)
    areas = dense.reshape(4, 2, -1).sum(axis=1)
    assert found[-1].expected == pytest.approx(np.repeat(areas / 2, 2, axis=0))
    assert np.array_equal(found[-2].counts, areas)
    wards = np.repeat(areas.reshape(2, 2, -1).sum(axis=1), 2, axis=0)
    assert found[-2].expected == pytest.approx(wards * (areas.sum(axis=1) / wards.sum(axis=1))[:, None])
