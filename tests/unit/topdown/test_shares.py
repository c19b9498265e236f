"""Shares: the closed form they are chosen by, the optimum against a grid, and exact fractions that sum to one."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from louver.errors import InputError
from louver.topdown.load import read_design
from louver.topdown.plan import make_plan, measurable
from louver.topdown.shares import (
    Aim,
    _objective,
    _squares,
    choose_shares,
    precision_of,
    scalar_tree,
    usual_parts,
    with_shares,
)
from louver.topdown.subspaces import least_squares_variances
from topdown_town import SPEC, write_town

OPEN = SPEC.partition("[[topdown.bounds]]")[0]
BARE = OPEN[: OPEN.index("[topdown.shares]")] + OPEN[OPEN.index("[[topdown.invariants]]") :]
RHO = OPEN.replace("epsilon = 2", 'rho = "1/2"\ndelta = 1e-10')
LEVELS = "a/b/c"


def regular(folder, spec=OPEN):
    """The town with two blocks in each of four areas: all regions of a level are alike."""
    path = write_town(folder, spec)
    blocks = [f"{ward}{area}{block}" for ward, area, block in product("12", "AB", "12")]
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
    aim = Aim.named(name, design)
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
    aim = Aim.named(name, design)
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
    aim = Aim.named("even", written)
    assert bare.has_chosen_shares and not written.has_chosen_shares
    assert bare.options.shares == choose_shares(written, measurable(written), aim).shares


def test_merged_labels_have_no_closed_form(tmp_path):
    merged = BARE.replace(
        'quarters = ["quarters"]', 'few = { attributes = ["race"], merge = { race = { x = ["b", "c"] } } }'
    )
    with pytest.raises(InputError, match="write shares for a spec that merges labels"):
        regular(tmp_path, merged)
