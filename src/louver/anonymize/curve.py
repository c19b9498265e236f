"""The risk-utility curve: what other choices of k and method would lose, on the same data."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

from louver.anonymize.load import Loaded
from louver.anonymize.methods import METHODS
from louver.anonymize.options import AnonymizeOptions
from louver.anonymize.publish import classes_as_published, risk_as_published
from louver.anonymize.solve import form_classes
from louver.anonymize.watch import Watch
from louver.errors import InfeasibleError
from louver.run import Run

__all__ = ["CURVE_METHODS", "CurvePoint", "trace"]

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


def trace(loaded: Loaded, options: AnonymizeOptions, made: CurvePoint, run: Run) -> tuple[CurvePoint, ...]:
    """Solve for every k that was asked for and several methods; combinations that cannot be met are left out.

    The release itself, `made`, is the point of its own method and k, and its method has the same time and options at every k: the
    curve and the release agree. Other methods have MOST_SECONDS at most.
    """
    if not options.curve:
        return ()
    points = []
    own = [name for method in METHODS.values() for name in method.own_options]
    for method in dict.fromkeys((options.method, *CURVE_METHODS)):
        plain = options.model_copy(update={"method": method, **dict.fromkeys((*own, "steps"))})
        for k in sorted({*options.curve, *((options.k,) if method == options.method else ())}):
            if (method, k) == (options.method, options.k):
                points.append(made)
            elif method == options.method:
                watch = Watch(run, options.seconds if options.steps is None else None)
                points += _point(loaded, options, k, watch)
            else:
                points += _point(loaded, plain, k, Watch(run, min(options.seconds, MOST_SECONDS)))
    return tuple(points)


def _point(loaded: Loaded, options: AnonymizeOptions, k: int, watch: Watch) -> list[CurvePoint]:
    """What one choice of method and k gives; nothing where it cannot be met."""
    problem = loaded.problem
    if k > problem.n_records and not problem.requirements.matches:
        return []
    matches = type(problem.requirements.matches)(k if problem.requirements.matches else 0)
    requirements = problem.requirements._replace(matches=matches)
    started = time.perf_counter()
    try:
        problem = replace(problem, k=k, requirements=requirements)
        answer = form_classes(replace(loaded, problem=problem), options, watch)
    except InfeasibleError:
        return []
    risk = risk_as_published(loaded, answer, classes_as_published(loaded, answer, options))
    return [
        CurvePoint(
            method=options.method,
            k=k,
            gcp=float(problem.lost_shares(answer).mean()) / problem.n_records,
            highest_risk=risk.prosecutor_highest,
            average_risk=risk.prosecutor_average,
            seconds=time.perf_counter() - started,
        )
    ]
