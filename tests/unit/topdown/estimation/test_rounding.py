"""The failsafe on built cases: it fires, its distance is that of a linear program, and all but the parent's sum holds."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from louver.data.regions import RegionTree
from louver.engine.local import run_pieces
from louver.errors import InfeasibleError, InputError, SolverError
from louver.release.verify import verify
from louver.report.topdown import topdown_report
from louver.topdown import topdown
from louver.topdown.estimation.levels import estimate
from louver.topdown.estimation.rounding import distance_to_feasibility, rescue
from louver.topdown.knowledge.implied import UNBOUNDED, LevelStatements, derive
from louver.topdown.measuring.noise_plan import QueryPlan
from louver.topdown.problem import Families, Problem, Query, SparseLevel, Workload
from oracles import topdown as oracle
from topdown_town import SPEC, write_town

# Two types (home, dorm) by two races: cells are home a, home b, dorm a, dorm b.
TYPE_OF = np.array([0, 0, 1, 1])
RACE_OF = np.array([0, 1, 0, 1])
DETAILED = Query(name="detailed", row_of=np.arange(4), n_rows=4)
WORKLOAD = Workload(queries=(DETAILED,), variances=(2.0,))


class Given:
    """Noisy answers held in memory, one array (regions, cells) per level."""

    def __init__(self, *levels):
        self.levels = [np.array(level) for level in levels]

    def read(self, level, start, stop):
        return (self.levels[level][start:stop],)


def dormitories(*, is_possible=(True, True, True, True), implied=False):
    """A town of two blocks, each with three people in its dormitory at least."""
    spine = RegionTree.from_columns([("t", "1"), ("t", "2")], ("town", "block"))
    stated = LevelStatements(masks=(2,), lower=np.array([[3], [3]]), upper=np.full((2, 1), UNBOUNDED))
    bounds = derive(spine, 2, [LevelStatements.nothing(1), stated], above_leaves=implied)
    return Problem(
        spine=spine,
        n_cells=4,
        is_possible=np.array(is_possible),
        type_of=TYPE_OF,
        implied=bounds,
        workloads=(WORKLOAD, WORKLOAD),
    )


def family(problem, parent):
    noisy = Given([parent], [[2, 3, 0, 0], [5, 4, 1, 0]])
    return Families.gather(problem, 1, SparseLevel.from_dense(np.array([parent])), (0, 1), noisy)


NOISY = Given([[6, 8, 1, 0]], [[2, 3, 0, 0], [5, 4, 1, 0]])


def test_it_fires_where_implied_constraints_are_off_and_names_the_region():
    problem = dormitories()
    result = estimate(problem, NOISY, kept_margin=RACE_OF)
    (rescued,) = result.rescued
    assert (rescued.level, rescued.region) == ("town", "t")
    # The root came out as (6, 8, 1, 0): one in a dormitory, where the blocks have six.
    counts = result.leaves.to_dense(4)
    parent = np.array([6, 8, 1, 0])
    expected = oracle.distance(parent, TYPE_OF, *problem.implied.bounds(1, 0, 2), RACE_OF)
    assert rescued.distance == pytest.approx(expected) == 10
    assert rescued.moved == np.abs(counts.sum(axis=0) - parent).sum() <= expected + 1
    assert (counts[:, 2:].sum(axis=1) >= 3).all() and counts.min() >= 0
    assert rescued.kept_margin
    assert np.bincount(RACE_OF, counts.sum(axis=0)).tolist() == [7, 8]


def test_it_is_not_needed_where_they_are_on():
    result = estimate(dormitories(implied=True), NOISY, kept_margin=RACE_OF)
    assert not result.rescued
    assert (result.leaves.to_dense(4)[:, 2:].sum(axis=1) >= 3).all()


def test_margins_are_given_up_where_they_cannot_be_kept():
    """Nobody of race b can be in a dormitory, and only two are of race a."""
    problem = dormitories(is_possible=(True, True, True, False))
    found = rescue(problem, family(problem, [1, 12, 1, 0]), 0, RACE_OF)
    assert not found.kept_margin
    counts = np.zeros((4, 2), dtype=int)
    counts[found.cells] = found.counts
    assert counts.sum() == 14 and (counts[2] >= 3).all() and not counts[3].any()


def test_where_no_bounds_are_the_children_add_up():
    """A solver that gives up leaves a family without bounds to the failsafe, which has nothing to give up there."""
    problem = dormitories()
    free = replace(
        problem, implied=derive(problem.spine, 2, [LevelStatements.nothing(1), LevelStatements.nothing(2)])
    )
    families = family(free, [6, 8, 1, 0])
    assert not families.is_bounded
    found = rescue(free, families, 0, RACE_OF)
    assert (found.distance, found.moved, found.kept_margin) == (0, 0, True)
    assert found.counts.sum(axis=1).tolist() == np.array([6, 8, 1, 0])[found.cells].tolist()


def test_a_total_that_is_too_small_is_an_error():
    problem = dormitories()
    with pytest.raises(SolverError, match='region "t" respect their own bounds with its total'):
        rescue(problem, family(problem, [2, 3, 0, 0]), 0, RACE_OF)


def test_children_without_any_solution_are_an_error():
    problem = dormitories()
    families = family(problem, [6, 8, 1, 0])
    impossible = replace(families, upper=np.zeros_like(families.upper))
    assert distance_to_feasibility(problem, impossible, 0, RACE_OF) is None
    with pytest.raises(SolverError, match="respect their own bounds"):
        rescue(problem, impossible, 0, RACE_OF)


def test_a_root_without_solution_is_an_error():
    """Six people in dormitories, whose cells are all structural zeros."""
    problem = dormitories(is_possible=(True, True, False, False), implied=True)
    with pytest.raises(InfeasibleError, match="root"):
        estimate(problem, NOISY)


def test_problems_that_cannot_be():
    problem = dormitories()
    with pytest.raises(InputError, match="every level needs a workload"):
        replace(problem, workloads=(WORKLOAD,))
    total = Workload(queries=(Query(name="total", row_of=np.zeros(4, int), n_rows=1),), variances=(1.0,))
    with pytest.raises(InputError, match='level "block" does not measure the detailed cells'):
        replace(problem, workloads=(WORKLOAD, total))
    with pytest.raises(InputError, match="at most 10"):
        derive(problem.spine, 11, [LevelStatements.nothing(1), LevelStatements.nothing(2)])


def test_contradictions_name_the_region():
    spine = RegionTree.from_columns([("t", "1"), ("t", "2")], ("town", "block"))
    leaf = LevelStatements(masks=(1, 3), lower=np.array([[0, 0], [4, 0]]), upper=np.array([[9, 9], [9, 3]]))
    with pytest.raises(InfeasibleError, match='block "t/2"'):
        derive(spine, 2, [LevelStatements.nothing(1), leaf])
    leaf = LevelStatements(masks=(1,), lower=np.array([[2], [4]]), upper=np.full((2, 1), UNBOUNDED))
    town = LevelStatements(masks=(1,), lower=np.array([[0]]), upper=np.array([[5]]))
    with pytest.raises(InfeasibleError, match='town "t"'):
        derive(spine, 2, [town, leaf])


def test_leaves_that_cannot_be():
    with pytest.raises(InputError, match="leaf row 2 does not have a label") as error:
        RegionTree.from_columns([("t", "1"), ("t", "")], ("town", "block"))
    assert error.value.row == 2
    with pytest.raises(InputError, match="list of leaves is empty"):
        RegionTree.from_columns([], ("town", "block"))


def test_no_workers():
    with pytest.raises(InputError, match="must be at least 1"):
        list(run_pieces(abs, [1], workers=0))


def test_a_release_says_where_it_was_used(tmp_path, monkeypatch):
    """A town with little budget and no implied constraints; all that was promised holds all the same."""
    real = QueryPlan.problem
    monkeypatch.setattr(QueryPlan, "problem", lambda self, values: real(self, values, above_leaves=False))
    spec = SPEC.replace("epsilon = 2", 'epsilon = "1/10"').replace('level = "ward"', 'level = "town"')
    town = write_town(tmp_path / "town", spec)
    release = topdown(town, seed=7, out=tmp_path / "out", estimator="plain", report=topdown_report)
    regions = [rescued.region for rescued in release.estimate.rescued]
    assert regions[:2] == ["1A", "1B"], release.estimate.levels
    failed = [check.name for check in verify(tmp_path / "out").checks if not check.passed]
    assert failed == ["private noise"]
    manifest = json.loads((tmp_path / "out/manifest.json").read_text())
    assert manifest["results"]["failsafe_regions"] == regions
    assert [used["region"] for used in manifest["results"]["failsafe"]] == regions
    assert any("failsafe" in text for text in manifest["warnings"])
    page = (tmp_path / "out/report.html").read_text()
    assert "people moved" in page and "never used" not in page
