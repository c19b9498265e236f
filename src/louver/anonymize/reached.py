"""The l and t that the published classes reach, for the sensitive columns of which something is asked."""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, inf

import numpy as np

from louver.anonymize.problem import SUPPRESSED, Answer, Problem
from louver.anonymize.requirements import Distance, LKind
from louver.optim.kernels.classes.diversity import count_inplace, distance, n_sensitive_values, variety

__all__ = ["Reached", "reached_by"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reached:
    """What the least diverse and the farthest class of a release have in one sensitive column.

    Attributes
    ----------
    l : float or None
        Fewest distinct values, or the exponential of the least entropy; None where none is asked for.
    t : float or None
        Largest distance from the published table; None where none is asked for.
    distance : str
        The distance that t is measured by.
    """

    name: str
    l: float | None  # noqa: E741 - the field's own name
    t: float | None
    distance: str

    def __str__(self) -> str:
        told = [] if self.l is None else [f"l = {self.l:.4g} reached"]
        told += [] if self.t is None else [f"t = {self.t:.4g} reached, {self.distance} distance"]
        return f"{self.name}: {', '.join(told)}"


def reached_by(problem: Problem, answer: Answer) -> tuple[Reached, ...]:
    """What is reached, measured by the published records alone."""
    members = np.flatnonzero(answer.labels != SUPPRESSED)
    if not problem.sensitive or not len(members):
        return ()
    requirements = problem.kept(members).requirements
    limits, labels = requirements.limits, answer.labels[members]
    order = np.argsort(labels, kind="stable")
    starts = np.flatnonzero(np.diff(labels[order], prepend=-1))
    worst = [(inf, inf, 0.0)] * len(problem.sensitive)
    for records in np.split(requirements.sensitive[order], starts[1:]):
        counts = np.zeros(n_sensitive_values(limits), np.int64)
        for codes in records:
            count_inplace(limits, counts, codes, 1)
        for s, (fewest, entropy, farthest) in enumerate(worst):
            n_distinct, spread = variety(limits, s, counts)
            worst[s] = (
                min(fewest, n_distinct),
                min(entropy, spread),
                max(farthest, distance(limits, s, counts)),
            )
    return tuple(
        Reached(
            name=asked.name,
            l=None if asked.l is None else exp(entropy) if asked.l_kind is LKind.ENTROPY else float(fewest),
            t=None if asked.t is None else float(farthest),
            distance=Distance(asked.distance).value,
        )
        for asked, (fewest, entropy, farthest) in zip(problem.sensitive, worst, strict=True)
    )
