"""The limit on the search of every method, and being asked to stop."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from louver.anonymize.classes import solve
from louver.anonymize.columns import Distance, NumericColumn, Sensitive
from louver.anonymize.methods import auto, exact, freeform, greedy, k_member, mondrian, split_carry
from louver.anonymize.methods import sorted_cut as sorted_method
from louver.anonymize.methods.split_carry import Carry
from louver.anonymize.options import AnonymizeOptions
from louver.anonymize.problem import AnonymizeProblem
from louver.anonymize.watch import Watch
from louver.errors import Cancelled
from louver.run import Run

METHODS = {
    "auto": auto.solve,
    "exact": exact.solve,
    "greedy": greedy.solve,
    "k-member": k_member.solve,
    "sorted": sorted_method.solve,
    "mondrian": mondrian.solve,
    "split-carry": split_carry.solve,
    "bubble": lambda problem, watch: split_carry.solve(problem, watch, carry=Carry.BUBBLE),
}
N = 300


def sensitive(random, **asked):
    return Sensitive(name="s", codes=random.integers(0, 5, N), n_values=5, **asked)


def problem_of(which):
    random = np.random.default_rng(8)
    columns = [random.integers(0, 40, 2 * N).astype(float) for _ in range(3)]
    more = {
        "plain": {},
        "l": {"sensitive": [sensitive(random, l=3)]},
        "t": {"sensitive": [sensitive(random, t=0.3)]},
        "ordered": {"sensitive": [sensitive(random, t=0.1, distance=Distance.ORDERED)]},
        "suppress": {"max_suppressed": 9},
        "k-map": {"population": np.ones(N, np.int64)},
    }[which]
    n = 2 * N if which == "k-map" else N
    named = [NumericColumn(name=str(j), values=c[:n], n_sample=N) for j, c in enumerate(columns)]
    return AnonymizeProblem.build(named, k=4, **more)


@pytest.mark.parametrize("which", ["plain", "l", "t", "ordered", "suppress", "k-map"])
@pytest.mark.parametrize("method", METHODS)
def test_without_any_time_the_classes_may_still_be_published(method, which):
    problem, watch = problem_of(which), Watch(seconds=0.0)
    assert watch.is_over
    partition = METHODS[method](problem, watch)
    assert all(problem.is_allowed(members) for members in partition.classes())
    assert partition.n_suppressed <= problem.max_suppressed
    assert partition.loss == problem.total_loss(partition.labels)


@pytest.mark.parametrize("matching", freeform.Matching)
def test_freeform_without_time_matches_neighbours_in_order(matching):
    problem, watch = problem_of("plain"), Watch(seconds=0.0)
    assert watch.is_over
    found = freeform.solve(problem, watch, matching=matching)
    assert all(len(set(line)) == 4 for line in found.matches.tolist())
    assert np.bincount(found.matches.ravel()).tolist() == [4] * N


@pytest.mark.parametrize("method", METHODS)
def test_a_cancelled_run_ends_every_method(method):
    run = Run()
    run.cancel()
    with pytest.raises(Cancelled):
        METHODS[method](problem_of("suppress"), Watch(run))


def test_attended_work_is_stopped_from_outside():
    """The work ends only once it is told to."""
    run, is_working = Run(), threading.Event()

    def work(watch):
        is_working.set()
        while not watch.stop[0]:
            pass
        watch.run.check()

    threading.Thread(target=lambda: (is_working.wait(), run.cancel())).start()
    with pytest.raises(Cancelled):
        Watch(run).attend(work)


def test_attended_work_is_told_when_its_time_is_up():
    def work(watch):
        while not watch.stop[0]:
            pass
        return "done"

    assert Watch(seconds=0.01).attend(work) == "done"


def test_an_interrupt_ends_the_work():
    def show(stage, done, total):
        raise KeyboardInterrupt

    def work(watch):
        while not watch.stop[0]:
            pass

    run = Run(show)
    with pytest.raises(KeyboardInterrupt):
        Watch(run).attend(work)
    assert run.is_cancelled


def test_stages_add_up_and_an_inner_one_is_part_of_its_outer():
    watch = Watch()
    for _ in range(2):
        with watch.stage("search"), watch.stage("bound"):
            pass
    assert list(watch.took) == ["search"] and watch.took["search"] >= 0


@pytest.mark.parametrize("recoding", ["local", "global"])
def test_a_search_tells_what_it_loses_and_cannot_fall_below(recoding):
    problem, told = problem_of("plain"), []
    options = AnonymizeOptions(quasi=["0"], k=4, recoding=recoding, steps=3)
    watch = Watch(Run(stand=lambda lost, least: told.append((lost, least))))
    answer = solve(problem, options, watch)
    watch.run.report("done", 1, 1, watch.lost, watch.least)
    lost, least = told[-1]
    assert lost == pytest.approx(answer.loss / (problem.n_records * problem.full_loss))
    assert least is None if recoding == "global" else 0 < least <= lost
    assert [one for one, _ in told] == sorted((one for one, _ in told), reverse=True)


def test_a_hurried_search_ends_with_the_best_it_has():
    problem, run = problem_of("plain"), Run()
    run.hurry()
    answer = solve(problem, AnonymizeOptions(quasi=["0"], k=4, seconds=3600), Watch(run, 3600))
    assert all(problem.is_allowed(members) for members in answer.classes()) and not run.is_cancelled


def test_parts_of_a_problem_are_no_news():
    watch = Watch()
    watch.problem = problem_of("plain")
    watch.found(watch.problem.part(np.arange(9)), 1)
    assert watch.lost is None
