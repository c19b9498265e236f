"""What other choices would lose on the same data: the risk-utility curve over k and methods, and local beside global recoding."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from louver.anonymize.load import Loaded
from louver.anonymize.methods import METHODS
from louver.anonymize.options import AnonymizeOptions
from louver.anonymize.problem import Answer
from louver.anonymize.publish import classes_as_published, risk_as_published
from louver.anonymize.solve import form_classes
from louver.anonymize.watch import Watch
from louver.errors import InfeasibleError
from louver.run import Run

__all__ = ["CURVE_METHODS", "Beside", "CurvePoint", "Tried", "local_beside", "trace", "try_each_k"]

CURVE_METHODS = ("auto", "greedy", "sorted", "mondrian-relaxed")

MOST_SECONDS = 3.0
"""Most time for one point of another method than that of the release."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CurvePoint:
    """One choice of method and k.

    Attributes
    ----------
    gcp : float
        Mean share of the quasi-identifiers' detail that is lost.
    highest_risk, average_risk : float
        Prosecutor risk.
    """

    method: str
    k: int
    gcp: float
    highest_risk: float
    average_risk: float
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Tried:
    """What a search for one k found; `seconds` is how long it took."""

    answer: Answer
    seconds: float


def try_each_k(loaded: Loaded, options: AnonymizeOptions, made: Tried, run: Run) -> dict[int, Tried]:
    """The best answer of the release's own method for every k that was asked for, and for that of the release.

    Parameters
    ----------
    made : Tried
        What was found for the release.

    Notes
    -----
    Every k has the same limit and options. Classes of k records have fewer, too, so what was found for a larger k is taken for a
    smaller one where it loses less: the loss never falls as k grows. That holds for the release itself, which is one of the points.
    """
    if not options.curve:
        return {options.k: made}
    limit = options.seconds if options.steps is None else None
    return _from_the_largest(loaded, options, {*options.curve, options.k}, {options.k: made}, limit, run)


def _from_the_largest(
    loaded: Loaded,
    options: AnonymizeOptions,
    ks: Iterable[int],
    known: Mapping[int, Tried],
    seconds: float | None,
    run: Run,
) -> dict[int, Tried]:
    """Answers by k, none of which loses more than one for a larger k; a k that cannot be met has none."""
    found: dict[int, Tried] = {}
    best: Tried | None = None
    for k in sorted(ks, reverse=True):
        own = known[k] if k in known else _search(loaded, options, k, Watch(run, seconds))
        if own is not None and (best is None or own.answer.loss <= best.answer.loss):
            best = own
        elif own is not None and best is not None:
            proved = {"lower_bound": own.answer.lower_bound, "status": own.answer.status}
            best = Tried(answer=replace(best.answer, **proved), seconds=own.seconds)  # type: ignore[type-var]
        if best is not None:
            found[k] = best
    return dict(sorted(found.items()))


def _search(loaded: Loaded, options: AnonymizeOptions, k: int, watch: Watch) -> Tried | None:
    """What one method finds for one k; None where it cannot be met."""
    problem = loaded.problem
    if k > problem.n_records and not problem.requirements.matches:
        return None
    matches = type(problem.requirements.matches)(k if problem.requirements.matches else 0)
    requirements = problem.requirements._replace(matches=matches)
    started = time.perf_counter()
    try:
        problem = replace(problem, k=k, requirements=requirements)
        answer = form_classes(replace(loaded, problem=problem), options, watch)
    except InfeasibleError:
        return None
    return Tried(answer=answer, seconds=time.perf_counter() - started)


def trace(
    loaded: Loaded,
    options: AnonymizeOptions,
    own: Mapping[int, Tried],
    run: Run,
    others: Sequence[str] = CURVE_METHODS,
) -> tuple[CurvePoint, ...]:
    """The points of the release's own method, and those of `others`, which have MOST_SECONDS at most for each k."""
    if not options.curve:
        return ()
    points = [_point(loaded, options, k, tried) for k, tried in own.items()]
    unset = [name for method in METHODS.values() for name in method.own_options]
    for method in others:
        if method != options.method:
            plain = options.model_copy(update={"method": method, **dict.fromkeys((*unset, "steps"))})
            limit = min(options.seconds, MOST_SECONDS)
            found = _from_the_largest(loaded, plain, set(options.curve), {}, limit, run)
            points += [_point(loaded, plain, k, tried) for k, tried in found.items()]
    return tuple(points)


def _point(loaded: Loaded, options: AnonymizeOptions, k: int, tried: Tried) -> CurvePoint:
    answer, problem = tried.answer, loaded.problem
    risk = risk_as_published(loaded, answer, classes_as_published(loaded, answer, options))
    return CurvePoint(
        method=options.method,
        k=k,
        gcp=float((problem.lost_shares(answer) / problem.n_records).mean()),
        highest_risk=risk.prosecutor_highest,
        average_risk=risk.prosecutor_average,
        seconds=tried.seconds,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Beside:
    """The loss of a way of recoding that was not chosen, on the scale of the one that was."""

    recoding: str
    information_loss: float
    gcp: float
    classes: int
    suppressed: int


def local_beside(loaded: Loaded, options: AnonymizeOptions, run: Run) -> Beside | None:
    """What classes formed one by one would lose, in a short search; None where those are what is published."""
    if options.recoding == "local":
        return None
    watch = Watch(run, min(options.seconds, MOST_SECONDS) if options.steps is None else None)
    answer = form_classes(loaded, options.model_copy(update={"recoding": "local"}), watch)
    problem = loaded.problem
    return Beside(
        recoding="local",
        information_loss=problem.information_loss(answer),
        gcp=float(problem.lost_shares(answer).mean()) / problem.n_records,
        classes=classes_as_published(loaded, answer, options).n,
        suppressed=answer.n_suppressed,
    )
