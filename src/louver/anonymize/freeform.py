"""Freeform generalisation: every published record matches k original ones, but need not equal k published ones.

This is weaker than k-anonymity. Results, manifests and reports always say so (`WEAKER`).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from louver._arrays import Ints
from louver.anonymize.problem import Problem
from louver.errors import InputError
from louver.optim.kernels.classes.freeform import (
    FORBIDDEN,
    complete_inplace,
    greedy_round,
    round_costs,
    sort_greedy_round,
)
from louver.optim.kernels.classes.loss import class_regions, merge_inplace
from louver.optim.status import Status

__all__ = ["MAX_RECORDS", "WEAKER", "Freeform", "Matching", "solve"]

MAX_RECORDS = 20_000
"""Beyond this the costs of all pairs would not fit in memory (1.6 GB)."""

WEAKER = (
    "Freeform generalisation is weaker than k-anonymity: each published record fits k original records, and each original "
    "record fits k published ones, but published records need not have k - 1 others equal to them."
)


class Matching(StrEnum):
    """How the matches of a round are chosen."""

    GREEDY = "greedy"
    SORT_GREEDY = "sort-greedy"
    HUNGARIAN = "hungarian"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Freeform:
    """Who matches whom.

    Attributes
    ----------
    matches : int64 (n, k)
        Records whose values the published record covers, itself first; every record occurs k times in all.
    loss : int
        Units lost.
    """

    matches: Ints
    loss: int
    method: str
    lower_bound: int | None = None
    status: Status = Status.FEASIBLE

    @property
    def labels(self) -> Ints:
        """Every record is a group of its own."""
        return np.arange(len(self.matches))

    @property
    def sizes(self) -> Ints:
        return np.ones(len(self.matches), np.int64)

    @property
    def n_suppressed(self) -> int:
        return 0

    def grouped(self) -> tuple[Ints, Ints]:
        """Records that each published record covers, and where those of each start."""
        n, k = self.matches.shape
        return self.matches.ravel(), np.arange(n) * k


def solve(problem: Problem, *, matching: Matching = Matching.GREEDY) -> Freeform:
    """Freeform generalisation.

    Notes
    -----
    Implements: Doka, Xue, Tsoumakos & Karras (2015), Greedy, SortGreedy and Hungarian: in each of k - 1 rounds every
    record is matched to one that it has not been matched to before, no record twice in a round, at the least loss.
    Departs: records that the greedy rounds leave without a match get one by the cheapest exchange, or, where no single
    exchange will do, by an optimal matching of the round, instead of by backtracking.

    **Cost**: O(k n^2 m) time (Hungarian: O(k n^3)) and 4 n^2 bytes.

    Raises
    ------
    InputError
        For more than MAX_RECORDS records, or requirements beside k.
    """
    if not problem.is_plain:
        raise InputError(
            "a freeform method takes no --l, --t, --suppress or population; choose another --method.",
            option="--method",
        )
    n, k = problem.n_records, problem.k
    if n > MAX_RECORDS:
        raise InputError(
            f"a freeform method takes at most {MAX_RECORDS:,} records; choose another --method.",
            option="--method",
        )
    lower, upper, words, _ = class_regions(problem.geometry, problem.codes, np.arange(n), n)
    matches = np.empty((n, k), np.int64)
    matches[:, 0] = np.arange(n)
    costs = np.empty((n, n), np.int32)
    for r in range(1, k):
        round_costs(problem.geometry, problem.codes, lower, upper, words, matches, r, costs)
        matches[:, r] = _matched(costs, matching)
        region = class_regions(problem.geometry, problem.codes[matches[:, r]], np.arange(n), n)
        for i in range(n):
            merge_inplace(lower[i], upper[i], words[i], region[0][i], region[1][i], region[2][i])
    loss = sum(problem.class_loss(line) for line in matches) // k
    return Freeform(matches=matches, loss=loss, method=f"freeform-{matching.value}")


def _matched(costs: NDArray[np.int32], matching: Matching) -> Ints:
    """The matches of one round."""
    match = np.empty(len(costs), np.int64)
    if matching is Matching.GREEDY:
        greedy_round(costs, match)
    elif matching is Matching.SORT_GREEDY:
        sort_greedy_round(costs, np.argsort(costs, axis=None, kind="stable"), match)
    if matching is Matching.HUNGARIAN or complete_inplace(costs, match):
        # The dearest assignment without a forbidden pair costs less than one forbidden pair.
        prices = np.where(costs == FORBIDDEN, float(FORBIDDEN) * len(costs), costs)
        match = linear_sum_assignment(prices)[1].astype(np.int64)
    return match
