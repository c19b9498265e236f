"""Simulations of an assumed truth: repeatable, of whole families, and off by what least squares says where nothing binds."""

from __future__ import annotations

import numpy as np
import pytest

from louver.engine.local import LocalEngine
from louver.topdown import topdown
from louver.topdown.errors.simulate import AssumedTruth, public_seed
from louver.topdown.estimation import bayes
from louver.topdown.estimation.draws import Draws
from louver.topdown.estimation.subspaces import least_squares_variances
from louver.topdown.load import read_design
from louver.topdown.measuring.noise_plan import make_plan
from louver.topdown.measuring.true_counts import invariant_values, true_leaves
from louver.topdown.problem import Query, SparseLevel
from topdown_town import SPEC, simulated, write_town

OPEN = SPEC.partition("[[topdown.bounds]]")[0].partition("[[structural_zeros]]")
OPEN = OPEN[0] + "[topdown]" + OPEN[2].partition("[topdown]")[2].replace('level = "ward"', 'level = "town"')


def assumed(folder, estimator):
    plan = make_plan(read_design(write_town(folder)).estimated(estimator=estimator))
    return AssumedTruth.of(plan, true_leaves(plan.design))


@pytest.mark.parametrize("estimator", ["bayes", "plain"])
def test_simulation_is_a_seeded_run_without_files(tmp_path, estimator):
    town = write_town(tmp_path)
    plan = make_plan(read_design(town).estimated(estimator=estimator))
    leaves = true_leaves(plan.design)
    for seed, found in zip((1, 2), simulated(plan, leaves, (1, 2)), strict=True):
        released = topdown(town, seed=seed, estimator=estimator).estimate.leaves
        assert np.array_equal(found.leaves.to_dense(18), released.to_dense(18))


@pytest.mark.parametrize("estimator", ["bayes", "least-squares", "plain"])
def test_the_same_key_gives_the_same_for_any_number_of_workers(tmp_path, estimator, monkeypatch):
    monkeypatch.setattr("louver.topdown.estimation.estimators.FEWEST", 2)
    truth = assumed(tmp_path, estimator)
    one, two, other = (
        truth.simulate(public_seed("test", key), engine=LocalEngine(workers))
        for key, workers in (("0", 1), ("0", 2), ("1", 1))
    )
    for level, (a, b) in enumerate(zip(one.levels, two.levels, strict=True)):
        assert np.array_equal(a.count, b.count) and np.array_equal(a.cell, b.cell)
        assert a.people.sum() == truth.levels[level].people.sum()
    assert not np.array_equal(one.levels[-1].to_dense(18), other.levels[-1].to_dense(18))


def test_what_a_region_gets_does_not_depend_on_what_is_read_with_it(tmp_path, monkeypatch):
    monkeypatch.setattr("louver.topdown.problem.BATCH_VALUES", 60)
    noisy = assumed(tmp_path, "plain").simulate(public_seed("test")).noisy
    for whole, part in zip(noisy.read(3, 0, 3), noisy.read(3, 1, 3), strict=True):
        assert np.array_equal(whole[1:3], part)


def test_some_families_of_leaves_are_enough(tmp_path, monkeypatch):
    monkeypatch.setattr("louver.topdown.estimation.estimators.FEWEST", 2)
    monkeypatch.setattr(bayes, "MOST_REGIONS", 4)
    monkeypatch.setattr(bayes, "MOST_LEAVES", 4)
    truth = assumed(tmp_path, "bayes")
    some = [truth.simulate(public_seed("test"), among=truth.families(3, turn=turn)) for turn in (0, 1)]
    for found in some:
        assert 0 < len(found.leaves) < 9 and found.levels[-1].n_regions == len(found.leaves)
        assert found.levels[2].n_regions == 4
    assert set(some[0].leaves) != set(some[1].leaves)


@pytest.mark.parametrize("spec", [SPEC, OPEN], ids=["bounds", "open"])
def test_a_truth_is_drawn_given_the_answers(tmp_path, monkeypatch, spec):
    """It has the same public values, adds up, is no other where fewer leaves are drawn, and depends on its seed alone."""
    monkeypatch.setattr("louver.topdown.estimation.estimators.FEWEST", 2)
    plan = make_plan(read_design(write_town(tmp_path, spec)))
    truth = AssumedTruth.of(plan, true_leaves(plan.design))
    noisy = truth.simulate(public_seed("test")).noisy
    whole, again, other = (
        truth.drawn(noisy, public_seed("drawn", key), engine=LocalEngine(workers))
        for key, workers in (("0", 1), ("0", 2), ("1", 1))
    )
    public, drawn = (invariant_values(plan, part.levels) for part in (truth, whole))
    assert all(np.array_equal(drawn[name], values) for name, values in public.items()) and public
    dense = [part.levels[-1].to_dense(18) for part in (whole, again, other)]
    assert np.array_equal(dense[0], dense[1]) and not np.array_equal(dense[0], dense[2])
    part = truth.drawn(noisy, public_seed("drawn", "0"), among=[(1, 2)])
    starts = truth.problem.spine.starts[-1]
    for level in range(3):
        assert np.array_equal(part.levels[level].to_dense(18), whole.levels[level].to_dense(18))
    assert not part.levels[-1].people[starts[0] + 1 : starts[1]].any()  # its first leaf has everybody


def test_draws_are_even_and_belong_to_places():
    regions, cells = np.indices((300, 100)).reshape(2, -1)
    draws = Draws(7).at(2)
    uniform = draws.uniform("cells", regions, cells)
    assert 0 < uniform.min() < 0.001 and 0.999 < uniform.max() < 1 and len(np.unique(uniform)) == 30_000
    assert uniform.mean() == pytest.approx(0.5, abs=0.01) and uniform.var() == pytest.approx(
        1 / 12, abs=0.002
    )
    assert np.abs(np.corrcoef(uniform.reshape(300, 100).T[:5])[0, 1:]).max() < 0.2
    assert np.array_equal(draws.uniform("cells", regions[5:9], cells[5:9]), uniform[5:9])
    assert not np.array_equal(draws.uniform("sizes", regions[:9], cells[:9]), uniform[:9])


def test_errors_are_those_of_least_squares_where_nothing_binds(tmp_path):
    plan = make_plan(read_design(write_town(tmp_path, OPEN)).estimated(estimator="least-squares"))
    truth = AssumedTruth.of(plan, SparseLevel.from_dense(np.full((9, 18), 10_000)))
    design = plan.design
    exact = [[Query(name="all", row_of=np.zeros(18, np.int64), n_rows=1, axes=())]]
    expected = least_squares_variances(
        design.spine, design.shape, truth.problem.workloads, design.queries, exact=exact
    )
    squares = [0.0] * 4
    for i in range(40):
        found = truth.simulate(public_seed("oracle", str(i)))
        for level, (a, b) in enumerate(zip(found.levels, truth.levels, strict=True)):
            squares[level] += (
                np.square(design.queries[-1].answer(a) - design.queries[-1].answer(b)).mean() / 40
            )
    for level in range(4):  # rounding adds a twelfth or so
        assert squares[level] == pytest.approx(expected[level][:, -1].mean(), rel=0.15)


def test_a_family_without_people_is_simulated_alone(tmp_path, monkeypatch):
    """Nobody lives in the second ward, and its total is public: its parents have no cells at all."""
    monkeypatch.setattr("louver.topdown.estimation.estimators.FEWEST", 2)
    plan = make_plan(read_design(write_town(tmp_path, SPEC.partition("[[topdown.bounds]]")[0])))
    dense = true_leaves(plan.design).to_dense(18)
    dense[5:] = 0
    truth = AssumedTruth.of(plan, SparseLevel.from_dense(dense))
    found = truth.simulate(public_seed("test"), among=truth.families(9))
    assert not found.levels[-1].people[5:].any()
