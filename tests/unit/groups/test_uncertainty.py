"""Standard errors and intervals: closed forms, what they are read off from, that only public things enter, and a small coverage."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from louver.data.regions import RegionTree
from louver.errors import Cancelled
from louver.groups import uncertainty
from louver.groups.mechanisms import MECHANISMS, Mechanism
from louver.groups.plan import SizePlan, equal_shares, make_plan
from louver.groups.problem import GroupTable, Total
from louver.groups.simulate import measured
from louver.groups.uncertainty import Uncertainty, least_squares_variances, simulate_release
from louver.optim.trees import LevelTree
from louver.privacy.budget import Loss, Measure
from louver.privacy.neighbours import Relation
from louver.privacy.noise import KeyedNoise
from louver.run import Run

REGIONS = RegionTree.from_leaves(
    ("county", "town"), [(f"c{i}", f"t{j}") for i in range(3) for j in range(2 + i)]
)


def _table(first: int = 1) -> GroupTable:
    """Numbers that fall by size from some hundreds to none, and differ by town."""
    sizes = np.arange(8 - first)
    leaves = np.array([(300 + 40 * town) * 0.45**sizes for town in range(REGIONS.tree.n_leaves)])
    return GroupTable(REGIONS, REGIONS.tree.sum_up(np.rint(leaves).astype(np.int64)), first)


def _plan(
    mechanism: str = "louver",
    measure: Measure = Measure.EPSILON,
    neighbours: Relation = Relation.ADD_REMOVE_RECORD,
    total: Total = Total.NOISY,
) -> SizePlan:
    budget = Loss(Fraction(3, 10), measure, neighbours)
    return make_plan(MECHANISMS[mechanism], REGIONS, 7, budget, equal_shares(3), total=total)


def _released(table: GroupTable, plan: SizePlan, seed: int) -> GroupTable:
    counts = plan.mechanism.solve(measured(table, plan, KeyedNoise.from_seed(seed)))
    return GroupTable(table.regions, counts, table.first_size)


def _same(a: Uncertainty, b: Uncertainty) -> bool:
    return all(
        np.array_equal(getattr(a, name), getattr(b, name)) for name in ("standard_error", "lower", "upper")
    )


def test_variances_are_those_of_a_dense_solve():
    tree = LevelTree.from_counts([[2], [1, 3]])
    own = np.array([5.0, 0.7, 2.0])
    sums = tree.sum_up(np.eye(tree.n_leaves, dtype=np.int64)).astype(float)
    precision = np.repeat(1 / own, tree.level_sizes)
    covariance = sums @ np.linalg.inv(sums.T @ (precision[:, None] * sums)) @ sums.T
    assert least_squares_variances(own, tree) == pytest.approx(np.diag(covariance))


def test_a_bin_tells_root_mean_square_and_quantiles_of_its_pairs(monkeypatch):
    monkeypatch.setattr(uncertainty, "POOLED", 3)
    key, off = np.array([0.0, 9.0, 1.0, 8.0, 2.0, 7.0]), np.array([1.0, 10.0, 2.0, 30.0, 3.0, 20.0])
    found = uncertainty._read_off(key, off, np.array([-5.0, 1.5, 7.0, 100.0]))
    assert found[1].tolist() == [1, 1, 10, 10] and found[2].tolist() == [3, 3, 30, 30]
    assert found[0] == pytest.approx(np.sqrt([14 / 3, 14 / 3, 1400 / 3, 1400 / 3]))


@pytest.mark.parametrize("name", MECHANISMS)
@pytest.mark.parametrize("measure", list(Measure))
def test_every_mechanism_has_intervals_that_hold_its_numbers(name, measure, monkeypatch):
    monkeypatch.setattr(uncertainty, "MOST_RUNS", 4)
    table, plan = _table(0), _plan(name, measure, total=Total.PUBLIC)
    found = simulate_release(table, plan)
    for numbers, told in ((table.counts, found.groups), (table.counts @ np.arange(8), found.persons)):
        assert told.standard_error.shape == numbers.shape and (told.standard_error >= 0).all()
        assert (told.lower >= 0).all() and (told.lower <= numbers).all() and (numbers <= told.upper).all()


def test_nothing_but_the_release_and_the_plan_enters():
    """The same bytes again; and no key that a seed or a debit could have."""
    plan = _plan()
    released = _released(_table(), plan, 1)
    first, second = simulate_release(released, plan), simulate_release(released, plan)
    assert _same(first.groups, second.groups) and _same(first.persons, second.persons)
    keys = {uncertainty._public_noise(i)._key for i in range(100)}
    assert keys.isdisjoint(KeyedNoise.from_seed(seed)._key for seed in range(1000))
    assert len(keys) == 100


@pytest.mark.parametrize(
    "plan",
    [
        _plan(),
        _plan(measure=Measure.RHO, neighbours=Relation.CHANGE_RECORD),
        _plan("M_H^dp", neighbours=Relation.ADD_REMOVE_UNIT),
    ],
    ids=["louver", "rho change-record", "units"],
)
def test_intervals_cover_nine_tenths_or_so(plan):
    """benchmarks/groups_intervals.py says how nearly; this catches a sign or a scale that is wrong."""
    table, inside, squares, told = _table(), [], 0.0, 0.0
    for seed in range(6):
        released = _released(table, plan, seed)
        found = simulate_release(released, plan).groups
        large = released.counts >= 10
        inside.append(((found.lower <= table.counts) & (table.counts <= found.upper))[large])
        squares += float(np.square(released.counts - table.counts)[large].sum())
        told += float(np.square(found.standard_error)[large].sum())
    assert 0.8 < np.concatenate(inside).mean() < 0.98
    assert 0.6 < told / squares < 1.7


def test_large_tables_are_simulated_less_and_a_run_can_be_stopped():
    seen: list[tuple[int, int]] = []
    run = Run(lambda stage, done, total: seen.append((done, total)))
    simulate_release(_table(), _plan(), run)
    assert {total for _, total in seen} == {uncertainty.MOST_RUNS}
    stopped = Run(lambda stage, done, total: stopped.cancel() if done == 1 else None)
    with pytest.raises(Cancelled):
        simulate_release(_table(), _plan(), stopped)


@pytest.mark.parametrize("total", list(Total))
def test_a_table_with_another_root_is_whole_and_adds_up(total):
    table = _table()
    root = table.counts[0].copy()
    root[[1, 3]] += [50, -20]
    found = uncertainty._with_root(table, root.copy(), total).counts
    assert (found >= 0).all() and (REGIONS.tree.sum_up(found[REGIONS.tree.level(2)]) == found).all()
    if total is Total.PUBLIC:
        assert found[0].sum() == table.n_groups and found[0, 1:].tolist() == root[1:].tolist()
    else:
        assert found[0].tolist() == root.tolist()
    leaves, before = found[REGIONS.tree.level(2)], table.counts[REGIONS.tree.level(2)]
    assert np.abs(leaves[:, 1] - before[:, 1] * root[1] / table.counts[0, 1]).max() <= 1


def test_what_stands_for_the_truth_is_nearer_to_a_border_than_the_release():
    """Nobody has size 0, but releases with a public total say so of some units."""
    plan = _plan(total=Total.PUBLIC)
    table = _table(0)
    leaves = table.counts[REGIONS.tree.level(2)].copy()
    leaves[:, 1] += leaves[:, 0]
    leaves[:, 0] = 0
    released = _released(GroupTable(REGIONS, REGIONS.tree.sum_up(leaves), 0), plan, 1)
    assert released.counts[0, 0] > 10
    assert uncertainty._unbiased(released, plan, 4, None).counts[0, 0] < 0.8 * released.counts[0, 0]


@pytest.mark.parametrize("total", list(Total))
def test_simulations_of_the_default_end_near_its_optimum(total):
    plan = _plan(total=total)
    noisy = measured(_table(0 if total is Total.PUBLIC else 1), plan, KeyedNoise.from_seed(1))
    off = plan.mechanism.simulate(noisy) - plan.mechanism.solve(noisy)
    assert np.sqrt(np.square(off).mean()) < 0.2 * min(noisy.variances) ** 0.5


def test_simulations_take_the_fast_way_where_there_is_one():
    def refuse(noisy, run=None):
        raise AssertionError

    plan = _plan("M_H", total=Total.PUBLIC)
    mechanism: Mechanism = replace(plan.mechanism, solve=refuse)
    simulate_release(_table(0), replace(plan, mechanism=mechanism))
