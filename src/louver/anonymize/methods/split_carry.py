"""Split & Carry: a chain of small exact problems along the sorted order, linked by the classes at their boundaries."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

import numpy as np

from louver._arrays import Ints
from louver.anonymize.methods import exact, sorted_cut
from louver.anonymize.methods.method import Method, repaired
from louver.anonymize.problem import AnonymizeProblem, Partition
from louver.anonymize.watch import NODES_PER_SECOND, Watch

if TYPE_CHECKING:
    from louver.anonymize.options import AnonymizeOptions

__all__ = ["METHOD", "Carry", "solve"]


N_SETS = 5
"""S, the default number of k-sets in a sub-problem."""

SUBPROBLEM_NODES = 300_000
"""Search nodes after which a sub-problem keeps the best partition found."""


class Carry(StrEnum):
    """Kinds of records carried from one sub-problem to the next."""

    CLASSES = "classes"
    SUBSET = "subset"
    BUBBLE = "bubble"


def solve(
    problem: AnonymizeProblem,
    watch: Watch | None = None,
    *,
    n_sets: int = N_SETS,
    boundary: int | None = None,
    carry: Carry = Carry.CLASSES,
    size: int | None = None,
    accepted: int | None = None,
    subproblem_seconds: float | None = None,
    subproblem_nodes: int | None = None,
) -> Partition:
    """Split & Carry.

    Parameters
    ----------
    problem : AnonymizeProblem
    watch : Watch, optional
        Sub-problems share its time; once it is up, the remaining records are classed by the best cut of the sorted order.
    n_sets : int
        S, the number of k-sets in each sub-problem, in addition to what is carried.
    boundary : int, optional
        l, how many records at the end of a sub-problem have their classes carried; k by default.
    carry : Carry
        Whole classes; of a class with more than k records only as many as leave k behind (subset); or all but the
        cheapest classes of a sub-problem of fixed size (bubble).
    size, accepted : int, optional
        Bubble carry: P, the size of a sub-problem (n_sets x k), and A, how many of its classes are kept (half).
    subproblem_seconds : float, optional
        Limit for each sub-problem; one that reaches it keeps the best partition found (early termination).
    subproblem_nodes : int, optional
        Search nodes of a sub-problem (SUBPROBLEM_NODES): a limit that does not depend on the machine.

    Notes
    -----
    Implements: Liang & Samavi (2020), Algorithm 1 with section 3.1; the parameter l, the subset carry and the bubble
    carry of section 6.
    Departs: sub-problems are solved by `louver.anonymize.methods.exact`, whose classes have fewer than 2k records; a boundary
    record then has fewer than k records indirectly equivalent to it, and its whole class is carried. S = 2 works (K6).
    Requirements in addition to k are met by uniting classes at the end.

    **Cost**: linear in n; see `exact` for the cost of a sub-problem of at most k (2k - 1 + S) records (Lemma 2).
    """
    watch = watch or Watch()
    chain = _Chain(
        problem,
        watch,
        subproblem_seconds=subproblem_seconds,
        subproblem_nodes=SUBPROBLEM_NODES if subproblem_nodes is None else subproblem_nodes,
    )
    k = problem.least_size
    with watch.stage("search"):
        if carry is Carry.BUBBLE:
            at_once = max(2 * k, size if size is not None else n_sets * k)
            chain.run_bubbles(at_once, accepted if accepted is not None else max(1, at_once // k // 2))
        else:
            chain.run(n_sets * k, boundary if boundary is not None else k, is_subset=carry is Carry.SUBSET)
    with watch.stage("first answer"):
        labels = repaired(problem, chain.labels, watch)
    return problem.partition(labels, method="split-carry", subproblem_sizes=chain.sizes)


class _Chain:
    """The sub-problems one after another, and the classes they leave behind."""

    def __init__(
        self,
        problem: AnonymizeProblem,
        watch: Watch,
        *,
        subproblem_seconds: float | None,
        subproblem_nodes: int,
    ) -> None:
        self.problem = problem
        self.k = problem.least_size
        self.labels = np.full(problem.n_records, -1, np.int64)
        self.sizes: list[int] = []
        self._n_classes = 0
        self._watch = watch
        self._subproblem_seconds = subproblem_seconds
        self._subproblem_nodes = subproblem_nodes

    def run(self, step: int, boundary: int, *, is_subset: bool) -> None:
        """Algorithm 1: carry what belongs to the last `boundary` records."""
        n = self.problem.n_records
        # The last k-set of the initial solution holds what remains beyond a multiple of k.
        n_sets = n // self.k
        stops = [min(stop, n_sets * self.k) for stop in range(step, n_sets * self.k + step, step)]
        stops[-1] = n
        carried = np.zeros(0, np.int64)
        first = 0
        for stop in stops:
            if self._watch.is_over:
                return self._keep_cut(np.concatenate([carried, np.arange(first, n)]))
            members = np.concatenate([carried, np.arange(first, stop)])
            classes = self._solved(members, (n - first) / step)
            is_last = stop == n
            carried = self._kept(
                classes, np.arange(n if is_last else stop - boundary, stop), is_subset=is_subset
            )
            first = stop

    def run_bubbles(self, size: int, accepted: int) -> None:
        """Bubble carry: keep the `accepted` cheapest classes, carry the rest into a sub-problem of the same size."""
        n = self.problem.n_records
        members, first = np.zeros(0, np.int64), 0
        while first < n or len(members):
            if self._watch.is_over:
                return self._keep_cut(np.concatenate([members, np.arange(first, n)]))
            stop = min(n, first + size - len(members))
            if n - stop < self.k:
                stop = n
            members = np.concatenate([members, np.arange(first, stop)])
            first = stop
            classes = self._solved(members, (n - first) / (accepted * self.k) + 1)
            cheapest = sorted(classes, key=lambda c: (self.problem.class_loss(c) / len(c), int(c[0])))
            if first == n:
                accepted = len(classes)
            for members_kept in cheapest[:accepted]:
                self._keep(members_kept)
            rest = cheapest[accepted:]
            members = np.sort(np.concatenate(rest)) if rest else np.zeros(0, np.int64)

    def _solved(self, members: Ints, n_left: float) -> list[Ints]:
        """Classes of a sub-problem; `n_left` sub-problems share the remaining time."""
        self.sizes.append(len(members))
        seconds = min(max(0.0, self._watch.left) / max(1.0, n_left), self._subproblem_seconds or np.inf)
        nodes = self._subproblem_nodes
        if np.isfinite(seconds):
            nodes = min(nodes, int(seconds * NODES_PER_SECOND))
        partition = exact.solve(self.problem.part(members), self._watch, max_nodes=nodes)
        self._watch.run.check()
        self._watch.share = float(members.max() + 1) / self.problem.n_records
        return [members[c] for c in partition.classes()]

    def _keep_cut(self, members: Ints) -> None:
        """Keep the best cut of the sorted order of all remaining records."""
        part = self.problem.part(members)
        for line in sorted_cut.solve(part).classes():
            self._keep(members[line])

    def _kept(self, classes: list[Ints], boundary: Ints, *, is_subset: bool) -> Ints:
        """Keep the classes without a boundary record; return the carried records."""
        carried = []
        for members in classes:
            if not np.isin(members, boundary).any():
                self._keep(members)
            elif is_subset and len(members) > self.k:
                out = self._least_costly(members)
                carried.append(out)
                self._keep(np.setdiff1d(members, out))
            else:
                carried.append(members)
        return np.sort(np.concatenate(carried)) if carried else np.zeros(0, np.int64)

    def _least_costly(self, members: Ints) -> Ints:
        """The records beyond k that contribute least to the loss."""
        losses = [self.problem.class_loss(np.delete(members, t)) for t in range(len(members))]
        return members[np.argsort(losses, kind="stable")[self.k :]]

    def _keep(self, members: Ints) -> None:
        self.labels[members] = self._n_classes
        self._n_classes += 1


def _requested(problem: AnonymizeProblem, watch: Watch, options: AnonymizeOptions) -> Partition:
    return solve(
        problem,
        watch,
        n_sets=options.sets or N_SETS,
        boundary=options.boundary,
        carry=Carry(options.carry or Carry.CLASSES),
        size=options.size,
        accepted=options.accepted,
        subproblem_seconds=options.subproblem_seconds,
        subproblem_nodes=None if options.steps is None else exact.NODES_PER_STEP * options.steps,
    )


METHOD = Method(
    name="split-carry",
    solve=_requested,
    own_options=("sets", "boundary", "carry", "size", "accepted", "subproblem_seconds"),
)
