"""Freeform generalisation: every published record matches k original ones, but need not equal k published ones.

This is weaker than k-anonymity. Results, manifests and reports always say so (`louver.release.sentences.WEAKER`).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from louver._arrays import Ints
from louver.anonymize.columns import Guarantee
from louver.anonymize.methods import sorted_cut
from louver.anonymize.methods.method import Method
from louver.anonymize.problem import AnonymizeProblem
from louver.anonymize.watch import Watch
from louver.errors import InputError
from louver.optim.kernels.classes.freeform import (
    assignment,
    complete_inplace,
    greedy_round,
    round_costs,
    sort_greedy_round,
)
from louver.optim.kernels.classes.loss import class_regions, merge_inplace
from louver.optim.status import Status

__all__ = ["MAX_RECORDS", "METHODS", "FreeformGroups", "Matching", "solve"]

MAX_RECORDS = 20_000
"""Maximum number of records: with more, the costs of all pairs would not fit in memory (1.6 GB)."""


class Matching(StrEnum):
    """How the matches of a round are chosen."""

    GREEDY = "greedy"
    SORT_GREEDY = "sort-greedy"
    HUNGARIAN = "hungarian"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FreeformGroups:
    """The matches between records.

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
        """Records that each published record covers, and where the records of each start."""
        n, k = self.matches.shape
        return self.matches.ravel(), np.arange(n) * k

    @property
    def levels(self) -> tuple[Ints | None, ...]:
        return ()

    def covered(self, column: int) -> tuple[Ints, Ints, Ints]:
        """The records that each published record covers, the same for every column."""
        return *self.grouped(), np.arange(len(self.matches))


def solve(
    problem: AnonymizeProblem, watch: Watch | None = None, *, matching: Matching = Matching.GREEDY
) -> FreeformGroups:
    """Freeform generalisation.

    Notes
    -----
    Implements: Doka, Xue, Tsoumakos & Karras (2015), Greedy, SortGreedy and Hungarian: in each of k - 1 rounds every record is matched to
    one that it has not been matched to before, no record twice in a round, at the least loss. If time runs out before the last round, all
    matches are those of a cut of the sorted order. Departs: records that the greedy rounds leave unmatched are matched by the cheapest
    exchange or, if no single exchange is enough, by an optimal matching of the round, instead of by backtracking.

    **Cost**: O(k n^2 m) time (Hungarian: O(k n^3)) and 4 n^2 bytes.

    Raises
    ------
    InputError
        For more than MAX_RECORDS records, or requirements in addition to k.
    """
    if not problem.is_plain:
        raise InputError(
            "a freeform method cannot be combined with --l, --t, --suppress or a population; choose another --method.",
            option="--method",
        )
    watch = watch or Watch()
    n = problem.n_records
    if n > MAX_RECORDS:
        raise InputError(
            f"a freeform method takes at most {MAX_RECORDS:,} records; choose another --method.",
            option="--method",
        )
    with watch.stage("search"):
        matches = _rounds(problem, watch, matching)
    if watch.is_over:
        with watch.stage("first answer"):
            matches = _cut(problem, Watch(watch.run))
    loss = sum(problem.class_loss(line) for line in matches) // problem.k
    return FreeformGroups(matches=matches, loss=loss, method=f"freeform-{matching.value}")


def _cut(problem: AnonymizeProblem, watch: Watch) -> Ints:
    """Each record matched to the k - 1 that follow it in its class of the best cut of the sorted order."""
    matches = np.empty((problem.n_records, problem.k), np.int64)
    for members in sorted_cut.solve(problem, watch).classes():
        for r in range(problem.k):
            matches[members, r] = np.roll(members, -r)
    return matches


def _rounds(problem: AnonymizeProblem, watch: Watch, matching: Matching) -> Ints:
    """The matches of all rounds; unusable if time runs out before the last one."""
    n, k = problem.n_records, problem.k
    lower, upper, words, _ = class_regions(problem.geometry, problem.codes, np.arange(n), n)
    matches = np.empty((n, k), np.int64)
    matches[:, 0] = np.arange(n)
    costs = np.empty((n, n), np.int32)
    for r in range(1, k):
        round_costs(problem.geometry, problem.codes, lower, upper, words, matches, r, costs, watch.stop)
        matches[:, r] = _matched(costs, matching, watch.stop)
        watch.share = r / (k - 1)
        if watch.is_over:
            break
        region = class_regions(problem.geometry, problem.codes[matches[:, r]], np.arange(n), n)
        for i in range(n):
            merge_inplace(lower[i], upper[i], words[i], region[0][i], region[1][i], region[2][i])
    watch.run.check()
    return matches


def _matched(costs: NDArray[np.int32], matching: Matching, stop: NDArray[np.uint8]) -> Ints:
    """The matches of one round."""
    match = np.full(len(costs), -1, np.int64)
    if matching is Matching.GREEDY:
        greedy_round(costs, match, stop)
    elif matching is Matching.SORT_GREEDY:
        sort_greedy_round(costs, match, stop)
    if matching is Matching.HUNGARIAN or (not stop[0] and complete_inplace(costs, match, stop)):
        match = assignment(costs, stop)
    return match


def _method(matching: Matching) -> Method:
    return Method(
        name=f"freeform-{matching.value}",
        solve=lambda problem, watch, _: solve(problem, watch, matching=matching),
        guarantee=Guarantee.FREEFORM,
        refuses=("population", "sampling_weight", "class_id"),
    )


METHODS = tuple(_method(matching) for matching in Matching)
