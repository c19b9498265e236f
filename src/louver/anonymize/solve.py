"""From the problem to classes: the method that was asked for, under the watch, and what closeness asks in the end."""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np

from louver._arrays import Ints
from louver.anonymize.load import Loaded, shown_codes, up_to_root
from louver.anonymize.methods import METHODS, Method, units
from louver.anonymize.methods import global_recoding as harmonise
from louver.anonymize.methods.method import close_as_published
from louver.anonymize.options import AnonymizeOptions
from louver.anonymize.problem import Answer, Partition, Problem
from louver.anonymize.requirements import Distance, Sensitive
from louver.anonymize.watch import Stopped, Watch
from louver.optim.status import Status

__all__ = ["form_classes", "solve"]


def form_classes(loaded: Loaded, options: AnonymizeOptions, watch: Watch) -> Answer:
    """Classes that may be published."""
    answer = solve(loaded.problem, options, watch)
    if options.t is None or not isinstance(answer, Partition):
        return answer
    if not _leaves_values_out(loaded, answer):
        return close_as_published(loaded.problem, answer, watch)
    # Closeness would be measured by values that are not published: then nothing is left out, and no bound is known.
    everybody = solve(replace(loaded.problem, max_suppressed=0), options, watch)
    assert isinstance(everybody, Partition)
    return replace(everybody, status=Status.FEASIBLE, lower_bound=None)


def solve(problem: Problem, options: AnonymizeOptions, watch: Watch) -> Answer:
    """The answer of the method: compile what it needs, then let its time begin."""
    method = harmonise.METHOD if options.recoding == "global" else METHODS[options.method]

    def work(watch: Watch) -> Answer:
        if watch.is_limited:
            with watch.stage("compiling"):
                if method.warm_up is not None:
                    method.warm_up(problem, watch.run)
                else:
                    plain = options.model_copy(update={"carry": None, "steps": 1})
                    method.solve(problem.tiny(), Watch(), plain)
            watch.restart()
        watch.problem, watch.lost, watch.least, watch.stopped = problem, None, None, None
        return _timed(method, problem, options, watch)

    return watch.attend(work)


def _timed(method: Method, problem: Problem, options: AnonymizeOptions, watch: Watch) -> Answer:
    """The answer; a method that tells no stages of its own is all search."""
    began = time.perf_counter()
    if problem.units is not None:
        answer: Answer = units.solve(problem, watch, is_auto=options.method == "auto", steps=options.steps)
    else:
        answer = method.solve(problem, watch, options)
    if "search" not in watch.took and "first answer" not in watch.took:
        watch.took["search"] = time.perf_counter() - began
    if answer.status is Status.OPTIMAL:
        watch.stopped = None
    elif watch.stopped is None and watch.is_over:
        watch.stopped = Stopped.UNFINISHED
    return answer


def _leaves_values_out(loaded: Loaded, answer: Partition) -> bool:
    """Whether a distance counts values, or levels above them, that the published records do not have."""
    kept = loaded.problem.rows[answer.labels >= 0]
    return any(_is_measured_by_more(limits, limits.codes[kept]) for limits in loaded.problem.sensitive)


def _is_measured_by_more(limits: Sensitive, published: Ints) -> bool:
    shown = shown_codes(published)
    if limits.distance is Distance.ORDERED:
        return len(shown) < limits.n_values
    levels = [np.asarray(level)[shown] for level in limits.ancestors]
    return len(up_to_root(levels)) < len(levels)
