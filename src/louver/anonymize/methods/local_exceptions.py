"""One recoding for most of the file, and a few records in classes of their own: between global and local recoding.

If there is one recoding for everyone, a few rare records determine how coarse it is. Here they are exceptions: records whose class is too
small are put into classes with one another, each generalised by itself.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import floor

import numpy as np

from louver._arrays import Ints
from louver.anonymize.methods import auto, global_recoding, greedy
from louver.anonymize.methods.global_recoding import searched
from louver.anonymize.methods.method import Method
from louver.anonymize.problem import AnonymizeProblem, Partition
from louver.anonymize.recoding import Codings, Exceptions, Recoded, Recoding, RecodingSpace
from louver.anonymize.watch import Watch
from louver.optim.status import Status
from louver.run import Run

__all__ = ["METHOD", "exceptional", "solve"]

TURNS = 4
"""Number of searches for a recoding, each with a better estimate of what exceptions lose."""

TURN_SHARE = 0.2
"""Share of the remaining time for each of them; the rest is for the classes of the exceptions."""

FIRST_SHARE = 0.3
"""Initial estimate of the loss of an exception, as a share of all its values."""

ENOUGH = 0.05
"""The searches end once this share changes by less than this fraction of itself."""

MOST_TRIED = 64
"""Number of classes, the smallest first, that are tried as companions of exceptions that are too few for a class."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Candidate:
    """A recoding with classes of the exceptions to it; `loss` is that of all records."""

    codings: Codings
    exceptions: Exceptions
    kept_loss: float
    loss: float


def solve(
    problem: AnonymizeProblem, watch: Watch | None = None, *, most: int, steps: int | None = None
) -> Recoded:
    """The best recoding with at most `most` exceptions that was found.

    Parameters
    ----------
    problem : AnonymizeProblem
        If it allows records to be left out, these are exceptions whose absence costs less than a place in a class.
    watch : Watch, optional
    most : int
        Records that may be exceptions.
    steps : int, optional
        Rounds of each search, in place of the time limit: the same answer on every machine.

    Notes
    -----
    The first search for a recoding (`global_recoding`) allows no exceptions. The others assume a fixed loss for each record whose class may
    not be published; Greedy Search then puts these records into classes, which shows their actual loss, and the next search uses that. The
    best recoding of all searches keeps its exceptions, and `auto` improves their classes.

    If all exceptions together do not form a publishable class, the classes of the recoding that cost least join them.

    **Cost**: TURNS searches, and `auto` for the exceptions.

    Raises
    ------
    InfeasibleError
        If not even one value for all meets the requirements.
    """
    watch = watch or Watch()
    space = replace(RecodingSpace.of(problem), max_out=0)
    with watch.stage("first answer"):
        best = _searched(space, watch, steps)
    assert best is not None
    watch.found(problem, best.loss / problem.unit)
    space = replace(space, max_out=most, out_share=FIRST_SHARE)
    for _ in range(TURNS):
        if watch.is_over:
            break
        with watch.stage("search"):
            found = _searched(space, watch, steps)
        if found is None:
            space = replace(space, max_out=space.max_out * 3 // 4)
            continue
        if found.loss < best.loss:
            best = found
            watch.found(problem, best.loss / problem.unit)
        share = _share_lost(problem, found.exceptions) or space.out_share / 2
        if abs(share - space.out_share) < ENOUGH * space.out_share:
            break
        space = replace(space, out_share=share)
    with watch.stage("search"):
        best = _improved(problem, best, watch, steps)
    watch.run.check()
    recoding = Recoding(codings=best.codings, loss=best.loss)
    return space.answer(
        recoding,
        method=global_recoding.METHOD.name,
        status=Status.FEASIBLE,
        lower_bound=None,
        exceptions=best.exceptions,
    )


def exceptional(space: RecodingSpace, codings: Codings) -> Ints | None:
    """Records that are exceptions to a recoding: those in classes that may not be published and, if these do not form a class, companions.

    None if there are too many, or no records can join them.
    """
    problem = space.problem
    group, sizes, passed = space.groups(codings)
    of_record = group[space.of_record]
    order = np.argsort(of_record, kind="stable")
    start = np.cumsum(sizes) - sizes
    members = np.flatnonzero(~passed[of_record])
    while len(members) and not problem.is_allowed(members):
        left = np.flatnonzero(passed)
        if not len(left) or len(members) >= space.max_out:
            return None
        tried = left[np.argsort(sizes[left], kind="stable")[:MOST_TRIED]]
        unions = [np.append(members, order[start[c] : start[c] + sizes[c]]) for c in tried]
        cheapest = int(np.argmin([problem.class_loss(union) for union in unions]))
        passed[tried[cheapest]] = False
        members = np.sort(unions[cheapest])
    return members if len(members) <= space.max_out else None


def _searched(space: RecodingSpace, watch: Watch, steps: int | None) -> _Candidate | None:
    """The candidate that a search within a share of the time finds."""
    own = Watch(watch.run, TURN_SHARE * max(0.0, watch.left) if watch.is_limited else None)
    codings = searched(space, own, steps)[0].codings
    watch.note(own.stopped)
    return _candidate(space, codings, watch)


def _candidate(space: RecodingSpace, codings: Codings, watch: Watch) -> _Candidate | None:
    """A recoding with classes of its exceptions by Greedy Search; None if there are too many."""
    members = exceptional(space, codings)
    if members is None:
        return None
    problem = space.problem
    is_kept = np.ones(len(space.atoms), np.bool_)
    is_kept[space.of_record[members]] = False
    kept_loss = space.kept_loss(codings, is_kept)
    if len(members):
        classes = greedy.solve(_part(problem, members), watch)
    else:
        classes = Partition(labels=members, loss=0, method=greedy.METHOD.name)
    exceptions = Exceptions(members=members, classes=classes)
    loss = kept_loss + classes.loss * problem.unit
    return _Candidate(codings=codings, exceptions=exceptions, kept_loss=kept_loss, loss=loss)


def _part(problem: AnonymizeProblem, members: Ints) -> AnonymizeProblem:
    """The problem of some records, whose classes are judged by the whole table."""
    requirements = problem.requirements
    return replace(
        problem,
        rows=problem.rows[members],
        codes=problem.codes[members],
        max_suppressed=min(problem.max_suppressed, len(members)),
        requirements=requirements._replace(sensitive=requirements.sensitive[members]),
    )


def _share_lost(problem: AnonymizeProblem, exceptions: Exceptions) -> float:
    """Mean loss of an exception, as a share of all its values; 0 if there is none."""
    return exceptions.classes.loss / max(1, problem.full_loss * len(exceptions.members))


def _improved(problem: AnonymizeProblem, best: _Candidate, watch: Watch, steps: int | None) -> _Candidate:
    """The same recoding with better classes for the exceptions."""
    members = best.exceptions.members
    if not len(members) or watch.is_over:
        return best
    classes = auto.solve(_part(problem, members), watch, steps=steps)
    if classes.loss >= best.exceptions.classes.loss:
        return best
    exceptions = Exceptions(members=members, classes=classes)
    return replace(best, exceptions=exceptions, loss=best.kept_loss + classes.loss * problem.unit)


def warm_up(problem: AnonymizeProblem, run: Run) -> None:
    """Compile the kernels that the search for a recoding and the classes of the exceptions need."""
    global_recoding.solve(problem.tiny(), Watch(run), steps=1)
    auto.warm_up(problem, run)


METHOD = Method(
    name="exceptions",
    solve=lambda problem, watch, options: solve(
        problem, watch, most=floor(options.exceptions * problem.n_records), steps=options.steps
    ),
    warm_up=warm_up,
    is_choice=False,
)
