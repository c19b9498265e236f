"""auto: what a run may change, what it may not depend on, and the bound it proves."""

from __future__ import annotations

from contextlib import contextmanager

import numpy as np
import pytest

from louver.anonymize.columns import NumericColumn, Sensitive, SetColumn, TreeColumn
from louver.anonymize.methods import auto, exact, greedy
from louver.anonymize.methods import sorted_cut as sorted_method
from louver.anonymize.methods.auto import find_neighbours
from louver.anonymize.problem import SUPPRESSED, AnonymizeProblem
from louver.anonymize.watch import Watch
from louver.optim.kernels.classes.bisection import cut_pieces
from louver.optim.status import Status
from louver.run import Run

ANCESTORS = [np.arange(7), np.array([0, 0, 1, 1, 1, 2, 2]), np.zeros(7, int)]


def numbers(n, k, m=3, **more):
    """Clustered columns with many ties."""
    random = np.random.default_rng(n + k)
    columns = [random.geometric(0.08, n), random.integers(0, 7, n), random.geometric(0.3, n)]
    return AnonymizeProblem.build(
        [NumericColumn(name=str(j), values=c.astype(float)) for j, c in enumerate(columns[:m])], k=k, **more
    )


def all_kinds(n, k, **more):
    random = np.random.default_rng(n)
    number = random.geometric(0.1, n).astype(float)
    gapped = number.copy()
    gapped[::9] = np.nan
    sets, leaves = random.integers(0, 70, n), random.integers(0, 7, n)
    sets[::13], leaves[::7] = -1, -1
    columns = [
        NumericColumn(name="number", values=number, weight=0.5),
        NumericColumn(name="gapped", values=gapped),
        NumericColumn(name="open", values=np.roll(gapped, 1), missing_matches=True),
        SetColumn(name="set", codes=sets, n_labels=70),
        TreeColumn(name="tree", codes=leaves, ancestors=ANCESTORS, weight=2.0),
    ]
    return AnonymizeProblem.build(columns, k=k, **more)


def sensitive(n, **asked):
    return Sensitive(name="ill", codes=np.random.default_rng(n).integers(0, 4, n), n_values=4, **asked)


PROBLEMS = {
    "numbers": lambda: numbers(400, 3),
    "large classes": lambda: numbers(300, 20),
    "all kinds": lambda: all_kinds(300, 4),
    "suppression": lambda: all_kinds(300, 4, max_suppressed=12),
    "diversity": lambda: numbers(240, 3, sensitive=[sensitive(240, l=3)]),
    "closeness and suppression": lambda: numbers(240, 4, sensitive=[sensitive(240, t=0.3)], max_suppressed=9),
}


def start_loss(problem):
    return min(solve(problem).loss for solve in (greedy.solve, sorted_method.solve))


@pytest.fixture
def in_pieces(monkeypatch):
    """Several pieces even for a few hundred records, and few sweeps."""
    monkeypatch.setattr(auto, "PIECE_RECORDS", 150)
    monkeypatch.setattr(auto, "MAX_SWEEPS_PER_ROUND", 5)


@pytest.mark.parametrize("name", PROBLEMS)
def test_better_than_the_start_publishable_and_the_same_in_any_number_of_threads(name, in_pieces):
    problem = PROBLEMS[name]()
    found = [auto.solve(problem, steps=12, workers=workers) for workers in (1, 2, 4)]
    assert all((other.labels == found[0].labels).all() for other in found[1:])
    best = found[0]
    assert best.method == "auto"
    assert best.loss < start_loss(problem)
    assert best.lower_bound <= best.loss == problem.total_loss(best.labels)
    assert best.n_suppressed <= problem.max_suppressed
    assert all(problem.is_allowed(members) for members in best.classes())


@pytest.mark.parametrize("name", PROBLEMS)
def test_every_round_reports_the_loss_of_its_classes(name, in_pieces):
    problem = PROBLEMS[name]()
    start = greedy.solve(problem)
    watch = Watch()
    annealing = auto._Annealing.of(problem, start, watch, 1)
    labels = auto._first_records(start.labels)
    unit = auto._loss_per_losing_record(problem, start)
    for number, temperature in enumerate([2 * unit, unit / 2, 0.0]):
        loss = annealing.run_round(labels, temperature, number, watch)
        partition = problem.partition(labels, method="round")
        assert loss == partition.loss
        assert all(problem.is_allowed(members) for members in partition.classes())
        assert partition.n_suppressed <= problem.max_suppressed


def test_no_steps_give_the_better_start():
    problem = numbers(200, 5)
    best = auto.solve(problem, steps=0)
    assert best.loss == start_loss(problem)
    assert best.status is Status.FEASIBLE


def test_a_time_limit_ends_the_rounds():
    problem = numbers(500, 4)
    best = Watch(seconds=0.2).attend(lambda watch: auto.solve(problem, watch, workers=2))
    assert best.loss <= greedy.solve(problem).loss


def test_few_records_are_final_before_the_time_is_over(monkeypatch):
    monkeypatch.setattr(auto, "MAX_SWEEPS", 300)
    watch = Watch(seconds=1e6)
    auto.solve(numbers(60, 4), watch)
    assert watch.share == pytest.approx(2 / 3, abs=1e-6)


def test_small_problems_are_solved_exactly():
    problem = numbers(24, 3)
    best = auto.solve(problem, Watch(seconds=1e6))
    assert (best.status, best.method, best.loss) == (Status.OPTIMAL, "auto", exact.solve(problem).loss)


def test_a_small_problem_too_hard_in_its_steps_is_annealed():
    problem = numbers(40, 12)
    cut_short = exact.solve(problem, max_nodes=0)
    best = auto.solve(problem, steps=0)
    assert best.status is Status.FEASIBLE and best.loss == cut_short.loss
    assert auto.solve(problem, Watch(seconds=1.0)).loss <= cut_short.loss


def test_what_loses_nothing_is_optimal():
    problem = AnonymizeProblem.build([NumericColumn(name="x", values=np.repeat([1.0, 5.0, 9.0], 20))], k=7)
    best = auto.solve(problem)
    assert (best.loss, best.lower_bound, best.status) == (0, 0, Status.OPTIMAL)


def test_the_bound_proves_pairs_optimal():
    """Twins a little apart: the nearest neighbour of every record is in its class."""
    values = np.arange(100) // 2 * 10.0 + np.arange(100) % 2
    best = auto.solve(AnonymizeProblem.build([NumericColumn(name="x", values=values)], k=2), steps=5)
    assert best.status is Status.OPTIMAL
    assert best.lower_bound == best.loss > 0


def test_all_records_may_be_left_out():
    same = Sensitive(name="ill", codes=np.zeros(60, int), n_values=2, l=2)
    best = auto.solve(numbers(60, 3, sensitive=[same], max_suppressed=60), steps=3)
    assert best.n_suppressed == 60 and best.n_classes == 0


def test_a_population_leaves_the_start_as_it_is():
    values = np.random.default_rng(1).integers(0, 50, 120).astype(float)
    column = NumericColumn(name="x", values=np.tile(values, 2), n_sample=120)
    problem = AnonymizeProblem.build([column], k=4, population=np.ones(120, np.int64))
    best = auto.solve(problem, steps=5)
    assert best.loss == start_loss(problem)
    assert best.lower_bound is None


@pytest.mark.parametrize("make", [numbers, all_kinds])
def test_neighbours_are_the_nearest_points(make):
    problem = make(300, 4)
    points = problem.points()
    found = find_neighbours(problem, points, Watch(), n_wanted=6, workers=2)
    for p in range(0, len(points.codes), 17):
        distance = np.array(
            [
                problem.class_loss([points.start[p], points.start[q]]) // 2 if q != p else 2**40
                for q in range(len(points.codes))
            ]
        )
        assert found.near[p].tolist() == np.argsort(distance, kind="stable")[:6].tolist()


def test_the_bound_counts_what_triples_need():
    """The second nearest other of the record at 11 is 10 away, but every class of three around it spans 11."""
    column = NumericColumn(name="x", values=np.array([0.0, 1.0, 11.0, 12.0, 22.0, 23.0]))
    problem = AnonymizeProblem.build([column], k=3)
    units = find_neighbours(problem, problem.points(), Watch(), n_wanted=5).lower_bound
    assert units * problem.unit == pytest.approx(6 * 11 / 23, rel=1e-6)


def test_one_point_has_no_neighbours():
    problem = AnonymizeProblem.build([NumericColumn(name="x", values=np.ones(9))], k=2)
    found = find_neighbours(problem, problem.points(), Watch(), n_wanted=6)
    assert found.near.shape == (1, 0) and found.lower_bound == 0


def test_pieces_hold_whole_classes_and_every_record_once():
    problem = numbers(600, 3, max_suppressed=5)
    labels = auto._first_records(greedy.solve(problem).labels)
    labels[labels == labels[7]] = SUPPRESSED
    borders = set()
    for seed in range(1, 6):
        members, start = cut_pieces(problem.geometry, problem.codes, labels, 40, np.uint64(seed))
        pieces = np.split(members, start[1:-1])
        assert np.sort(members).tolist() == list(range(600))
        assert len(pieces) > 4
        for piece in pieces:
            assert (np.diff(piece) > 0).all()
            kept = labels[piece][labels[piece] >= 0]
            assert np.isin(np.flatnonzero(np.isin(labels, kept)), piece).all()
        borders.add(tuple(start.tolist()))
    assert len(borders) > 1


def test_the_child_process_compiles_for_the_arguments_that_come(monkeypatch):
    jobs = []

    @contextmanager
    def noted(run, *calls):
        jobs.extend((kernel, tuple(kernel.typeof_pyval(value) for value in args)) for kernel, args in calls)
        yield

    monkeypatch.setattr(auto, "compiled_aside", noted)
    auto.warm_up(all_kinds(60, 3, max_suppressed=2), Run())
    ((kernel, types),) = jobs
    assert kernel.entry.overloads.keys() == {types}


def test_two_records_that_differ_stand_for_a_problem():
    problem = numbers(60, 3)
    assert len(problem.tiny().points().codes) == 2
    same = AnonymizeProblem.build([NumericColumn(name="a", values=np.ones(9))], k=3)
    assert same.tiny().n_records == 2
