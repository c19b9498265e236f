"""The risk-utility curve: what other choices of k and method would lose, on the same data."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

from louver.anonymize.load import Loaded
from louver.anonymize.methods import METHODS
from louver.anonymize.options import AnonymizeOptions
from louver.anonymize.problem import Problem
from louver.anonymize.solve import solve
from louver.anonymize.watch import Watch
from louver.errors import InfeasibleError
from louver.run import Run

__all__ = ["CURVE_METHODS", "CurvePoint", "trace"]

CURVE_METHODS = ("auto", "greedy", "sorted", "mondrian-relaxed")

MOST_SECONDS = 3.0
"""Most time for one point."""


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


def trace(loaded: Loaded, options: AnonymizeOptions, run: Run) -> tuple[CurvePoint, ...]:
    """Solve for every k that was asked for and several methods; combinations that cannot be met are left out."""
    points = []
    own = [name for method in METHODS.values() for name in method.own_options]
    for method in CURVE_METHODS if options.curve else ():
        plain = options.model_copy(update={"method": method, **dict.fromkeys((*own, "steps"))})
        for k in sorted(set(options.curve)):
            watch = Watch(run, min(options.seconds, MOST_SECONDS))
            found = _point(loaded.problem, plain, k, watch)
            points += [] if found is None else [found]
    return tuple(points)


def _point(problem: Problem, options: AnonymizeOptions, k: int, watch: Watch) -> CurvePoint | None:
    """What one choice of method and k gives; None where it cannot be met."""
    if k > problem.n_records and not problem.requirements.matches:
        return None
    matches = type(problem.requirements.matches)(k if problem.requirements.matches else 0)
    requirements = problem.requirements._replace(matches=matches)
    started = time.perf_counter()
    try:
        answer = solve(replace(problem, k=k, requirements=requirements), options, watch)
    except InfeasibleError:
        return None
    sizes = answer.sizes
    return CurvePoint(
        method=options.method,
        k=k,
        gcp=float(problem.lost_shares(answer).mean()) / problem.n_records,
        highest_risk=1 / int(sizes.min()),
        average_risk=len(sizes) / int(sizes.sum()),
        seconds=time.perf_counter() - started,
    )
