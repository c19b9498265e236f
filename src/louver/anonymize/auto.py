"""auto: a fast start, improved by simulated annealing on all cores for as long as it may take."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from louver._arrays import Ints
from louver.anonymize import exact, greedy, k_member
from louver.anonymize import sorted as sorted_order
from louver.anonymize.neighbourhood import find_neighbours
from louver.anonymize.problem import SUPPRESSED, Partition, Problem
from louver.engine.run import run_pieces
from louver.optim.kernels.classes.annealing import Scene, anneal_piece_inplace
from louver.optim.kernels.classes.bisection import cut_pieces, mixed
from louver.optim.kernels.classes.draft_partition import LANES
from louver.optim.kernels.classes.loss import INTERVAL, KIND, N_FIELDS, class_losses
from louver.optim.status import Status

__all__ = ["solve"]

EXACT_RECORDS = 40
"""Up to this many records the optimum is sought first, in EXACT_SHARE of the time or NODES_PER_STEP for each step."""

EXACT_SHARE = 0.5
NODES_PER_STEP = 10_000

K_MEMBER_RECORDS = 50_000
"""Up to this many records k-member is one of the starts; its cost grows with their square."""

NEIGHBOURS = 12
"""Neighbouring points among which a partner for a record is sought."""

PIECE_RECORDS = 16_000
"""Records that are annealed in one piece. Larger pieces have fewer records at their borders, smaller ones fit in caches."""

ROUND_RECORDS = 200_000
"""Records that a round goes over, each as often as a whole number of sweeps needs; pieces are cut anew every round."""

MAX_SWEEPS_PER_ROUND = 100
MAX_SWEEPS = 20_000
"""Sweeps after which the result is final even if time is left."""

HOT, COLD = 1.5, 0.04
"""First and last temperature, in the mean loss of a record that loses anything. The last is reached geometrically."""

ENOUGH_SWEEPS = 100
"""A run of fewer sweeps starts colder, so that it does not end before it has cooled down."""


def solve(
    problem: Problem,
    *,
    seconds: float | None = 10.0,
    steps: int | None = None,
    workers: int | None = None,
    progress: Callable[[float], None] | None = None,
) -> Partition:
    """The best partition that the time or the steps allow.

    Parameters
    ----------
    problem : Problem
    seconds : float, optional
        Time limit. The start is always made: the best of Greedy Search, the best cut of the sorted order and, up to
        K_MEMBER_RECORDS records, k-member.
    steps : int, optional
        Rounds of annealing, in place of the time limit: the same answer on every machine with any number of workers.
    workers : int, optional
        Threads; by default as many as there are cores.
    progress : callable, optional
        Told the share of the work that is done.

    Notes
    -----
    Up to EXACT_RECORDS records `exact` is tried first, and if it proves the optimum that is the answer. Otherwise the
    best start is improved by simulated annealing: records move to a class nearby or are exchanged with a
    record of it, classes are dissolved into their neighbours and founded from records that others can spare, and
    records are left out where the problem allows it. Changes that make a class break a requirement are never made.
    In every round the classes are cut into pieces that lie close together, along other borders each time, and the
    pieces are annealed in threads. They do not depend on the number of threads, and each has its own stream of random
    numbers. The best partition at the end of any round is returned.

    With a population (k-map) nothing is annealed: to count who matches a class costs too much to be done at every
    step, so the best start is the answer.

    The lower bound is that of `louver.anonymize.neighbourhood`, or that of `exact`.

    **Cost**: the start about n log n; then as long as told. O(n (m + NEIGHBOURS)) memory.
    """
    if steps is not None:
        seconds = None
    is_small = problem.n_records <= EXACT_RECORDS
    if seconds is not None and not is_small:
        _compile(problem)
    started = time.perf_counter()
    best = _tried_exactly(problem, seconds, steps) if is_small else _best_start(problem)
    if best.loss == 0:
        best = replace(best, status=Status.OPTIMAL, lower_bound=0)
    if best.status is Status.OPTIMAL or problem.requirements.matches:
        return best
    if seconds is not None and is_small:
        _compile(problem)
        started = time.perf_counter() - EXACT_SHARE * seconds
    annealing = _Annealing.of(problem, best, workers or _n_cores())
    clock = _Clock(
        seconds=seconds,
        steps=steps,
        started=started,
        began=time.perf_counter(),
        max_rounds=MAX_SWEEPS // annealing.n_sweeps,
    )
    return annealing.run(best, clock, progress or _ignore)


def _best_start(problem: Problem) -> Partition:
    starts = [greedy.solve(problem), sorted_order.solve(problem)]
    if problem.n_records <= K_MEMBER_RECORDS:
        starts.append(k_member.solve(problem))
    return replace(min(starts, key=lambda partition: partition.loss), method="auto")


def _compile(problem: Problem) -> None:
    """Have the kernels compiled before the clock starts."""
    tiny = replace(problem.part(np.arange(min(2, problem.n_records))), k=1)
    best = _best_start(tiny)
    _Annealing.of(tiny, best, 1).run_round(_first_records(best.labels), 0.0, 0)


def _tried_exactly(problem: Problem, seconds: float | None, steps: int | None) -> Partition:
    share = None if seconds is None else EXACT_SHARE * seconds
    nodes = None if steps is None else NODES_PER_STEP * steps
    found = exact.solve(problem, seconds=share, max_nodes=nodes)
    return replace(found, method="auto")


def _n_cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _ignore(share: float) -> None:
    pass


@dataclass(frozen=True, slots=True, kw_only=True)
class _Clock:
    """How much of a run that started, and began its rounds, at some time is over: by rounds alone (steps) or by time."""

    seconds: float | None
    steps: int | None
    started: float
    began: float
    max_rounds: int

    def share(self, n_rounds: int) -> float:
        """Share of the run that is over after so many rounds; 1 where another round would take it too far."""
        if self.steps is not None:
            return n_rounds / self.steps if self.steps else 1.0
        share = n_rounds / self.max_rounds
        if self.seconds is not None:
            now = time.perf_counter()
            half_a_round = (now - self.began) / (2 * n_rounds) if n_rounds else 0.0
            is_last = now - self.started + half_a_round > self.seconds
            share = max(share, 1.0 if is_last else (now - self.started) / self.seconds)
        return min(1.0, share)

    def expected_rounds(self, n_rounds: int) -> float:
        """Rounds of the whole run, as far as it is known after so many of them; 0 before the first of a timed run."""
        if self.steps is not None:
            return self.steps
        if self.seconds is None:
            return self.max_rounds
        if n_rounds == 0:
            return 0
        now = time.perf_counter()
        left = max(0.0, self.seconds - (now - self.started))
        return min(self.max_rounds, n_rounds * (1 + left / (now - self.began)))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Annealing:
    """What the rounds of a run share."""

    problem: Problem
    scene: Scene
    lower_bound: int
    n_sweeps: int
    workers: int

    @classmethod
    def of(cls, problem: Problem, best: Partition, workers: int) -> _Annealing:
        m, points = len(problem.columns), problem.points()
        found = find_neighbours(problem, points, n_wanted=NEIGHBOURS, workers=workers)
        fields = problem.geometry[: m * N_FIELDS].reshape(m, N_FIELDS)
        is_interval = fields[:, KIND] == INTERVAL
        order = np.argsort(is_interval, kind="stable")
        intervals = problem.codes[:, is_interval]
        n_filled = -intervals.shape[1] % LANES
        scene = Scene(
            geometry=np.concatenate([fields[order].ravel(), problem.geometry[m * N_FIELDS :]]),
            limits=problem.requirements.limits,
            codes=np.ascontiguousarray(np.pad(intervals, ((0, 0), (0, n_filled)))),
            others=np.ascontiguousarray(problem.codes[:, ~is_interval]),
            sensitive=problem.requirements.sensitive,
            point_of=points.of_record.astype(np.int32),
            near=found.near,
            least_size=np.int64(problem.least_size),
            full=np.int64(problem.full_loss),
            is_free=np.bool_(not problem.sensitive),
        )
        return cls(
            problem=problem,
            scene=scene,
            lower_bound=max(found.lower_bound, best.lower_bound or 0),
            n_sweeps=min(MAX_SWEEPS_PER_ROUND, max(1, ROUND_RECORDS // problem.n_records)),
            workers=workers,
        )

    def run(self, best: Partition, clock: _Clock, progress: Callable[[float], None]) -> Partition:
        """Anneal a partition until the clock says stop; the best found."""
        labels = _first_records(best.labels)
        best_labels, best_loss, unit = labels.copy(), best.loss, _loss_per_losing_record(self.problem, best)
        n_rounds = 0
        while best_loss > self.lower_bound and (share := clock.share(n_rounds)) < 1:
            progress(share)
            n_sweeps = self.n_sweeps * clock.expected_rounds(n_rounds)
            hot = COLD * (HOT / COLD) ** min(1.0, n_sweeps / ENOUGH_SWEEPS)
            loss = self.run_round(labels, unit * hot * (COLD / hot) ** share, n_rounds)
            n_rounds += 1
            if loss < best_loss:
                best_labels[:], best_loss = labels, loss
        progress(1.0)
        status = Status.OPTIMAL if best_loss == self.lower_bound else Status.FEASIBLE
        return self.problem.partition(best_labels, method="auto", status=status, lower_bound=self.lower_bound)

    def run_round(self, labels: Ints, temperature: float, number: int) -> int:
        """Cut into pieces and anneal each; the loss that results."""
        problem, scene = self.problem, self.scene
        most_classes = max(1, PIECE_RECORDS // problem.least_size)
        seed = int(mixed(np.uint64(number)))
        members, start = cut_pieces(problem.geometry, problem.codes, labels, most_classes, np.uint64(seed))
        n_pieces = len(start) - 1
        quotas = self._quotas(labels, n_pieces)

        def annealed(piece: int) -> int:
            own, piece_seed = members[start[piece] : start[piece + 1]], mixed(np.uint64(seed ^ (piece + 1)))
            return int(
                anneal_piece_inplace(
                    scene, labels, own, quotas[piece], self.n_sweeps, temperature, piece_seed | np.uint64(1)
                )
            )

        # The largest pieces first, so that all workers end at about the same time.
        largest_first = np.argsort(-np.diff(start), kind="stable")
        return sum(run_pieces(annealed, largest_first.tolist(), workers=self.workers))

    def _quotas(self, labels: Ints, n_pieces: int) -> Ints:
        """How many more records each piece may leave out."""
        left = self.problem.max_suppressed - int((labels == SUPPRESSED).sum())
        quotas = np.full(n_pieces, left // n_pieces)
        quotas[: left % n_pieces] += 1
        return quotas


def _first_records(labels: Ints) -> Ints:
    """The first record of each record's class; -1 for records left out."""
    first = np.full(int(labels.max()) + 2, len(labels), np.int64)
    kept = labels >= 0
    np.minimum.at(first, labels[kept], np.flatnonzero(kept))
    return np.where(kept, first[labels], SUPPRESSED)


def _loss_per_losing_record(problem: Problem, partition: Partition) -> float:
    """Mean loss of the records in classes that lose anything, in units."""
    losses = class_losses(problem.geometry, problem.codes, partition.labels, partition.n_classes)
    return float(losses.sum() / max(1, partition.sizes[losses > 0].sum()))
