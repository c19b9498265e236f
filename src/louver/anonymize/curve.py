"""The risk-utility curve: what other choices of k and method would lose, on the same data."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from louver._arrays import Floats
from louver.anonymize.load import Loaded
from louver.anonymize.problem import Answer, Problem
from louver.errors import InfeasibleError

__all__ = ["CURVE_METHODS", "CurvePoint", "trace"]

CURVE_METHODS = ("auto", "greedy", "sorted", "mondrian-relaxed")


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


def trace(
    loaded: Loaded,
    ks: Sequence[int],
    solve: Callable[[Problem, str], Answer],
    lost_shares: Callable[[Problem, Answer], Floats],
    methods: Sequence[str] = CURVE_METHODS,
) -> tuple[CurvePoint, ...]:
    """Solve for every method and k; combinations that cannot be met are left out."""
    problem = loaded.problem
    points = []
    for method in methods:
        for k in sorted(set(ks)):
            if k > problem.n_records and not problem.requirements.matches:
                continue
            matches = type(problem.requirements.matches)(k if problem.requirements.matches else 0)
            requirements = problem.requirements._replace(matches=matches)
            started = time.perf_counter()
            try:
                answer = solve(replace(problem, k=k, requirements=requirements), method)
            except InfeasibleError:
                continue
            sizes = answer.sizes
            points.append(
                CurvePoint(
                    method=method,
                    k=k,
                    gcp=float(lost_shares(problem, answer).mean()) / problem.n_records,
                    highest_risk=1 / int(sizes.min()),
                    average_risk=len(sizes) / int(sizes.sum()),
                    seconds=time.perf_counter() - started,
                )
            )
    return tuple(points)
