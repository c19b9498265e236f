"""From classes of k records to classes that may be published: diversity, closeness, population, suppression."""

from __future__ import annotations

import numpy as np

from louver._arrays import Ints
from louver.anonymize.problem import SUPPRESSED, Problem
from louver.errors import InfeasibleError
from louver.optim.kernels.classes.publishable import suppress_inplace, unite_inplace

__all__ = ["repaired"]


def repaired(problem: Problem, labels: Ints) -> Ints:
    """Labels whose classes all meet the problem's requirements.

    Notes
    -----
    Every requirement is closed under uniting classes, so uniting each failing class with its cheapest partner ends
    with classes that all pass, or with one class that does not. Then records whose absence saves more than they
    themselves cost are left out, as far as the problem allows.

    **Cost**: O(failing classes x 8,192 x m); suppression O(records left out x n).

    Raises
    ------
    InfeasibleError
        If even the whole table, less what may be left out, does not meet the requirements.
    """
    if problem.is_plain:
        return labels
    labels = np.array(labels, np.int64)
    n_classes = int(labels.max(initial=-1)) + 1
    spare = problem.max_suppressed - int((labels == SUPPRESSED).sum())
    n_failing = unite_inplace(
        problem.geometry,
        problem.requirements,
        problem.codes,
        labels,
        n_classes,
        problem.least_size,
        spare,
    )
    if n_failing:
        raise InfeasibleError(
            "no classes of these records meet the requirements, not even all records together; ask for less."
        )
    spare = problem.max_suppressed - int((labels == SUPPRESSED).sum())
    if spare > 0:
        suppress_inplace(
            problem.geometry,
            problem.requirements,
            problem.codes,
            labels,
            n_classes,
            problem.least_size,
            spare,
        )
    return labels
