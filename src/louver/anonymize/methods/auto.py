"""auto: a fast start, improved by simulated annealing on all cores until the time limit."""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from louver._arrays import Ints
from louver.anonymize.methods import diverse_growth, exact, greedy, sorted_cut
from louver.anonymize.methods.method import Method
from louver.anonymize.problem import SUPPRESSED, AnonymizeProblem, DistinctRecords, Partition
from louver.anonymize.watch import NODES_PER_SECOND, Stopped, Watch
from louver.engine.local import run_pieces
from louver.optim.aside import compiled_aside, n_cores
from louver.optim.kernels.classes.annealing import Scene, anneal_piece_inplace
from louver.optim.kernels.classes.bisection import cut_pieces, mixed
from louver.optim.kernels.classes.diversity import n_sensitive_values
from louver.optim.kernels.classes.draft_partition import LANES
from louver.optim.kernels.classes.loss import INTERVAL, KIND, N_FIELDS, class_losses
from louver.optim.kernels.classes.loss_bounds import diverse_reach, least_losses
from louver.optim.kernels.classes.record_tree import NUMBER_BITS, NUMBER_MASK, build_tree, nearest
from louver.optim.status import Status
from louver.run import Run

__all__ = ["METHOD", "Neighbourhood", "TimeUpError", "find_neighbours", "solve", "warm_up"]

EXACT_RECORDS = 40
"""Up to this many records, the optimum is searched for first, using EXACT_SHARE of the time or NODES_PER_STEP per step."""

EXACT_SHARE = 0.5
NODES_PER_STEP = 10_000

NEIGHBOURS = 12
"""Number of neighbouring points searched for a partner for a record."""

PIECE_RECORDS = 16_000
"""Records annealed as one piece. Larger pieces have fewer records at their borders; smaller ones fit in the cache."""

ROUND_RECORDS = 200_000
"""Record visits per round, rounded to a whole number of sweeps; pieces are cut again in every round."""

MAX_SWEEPS_PER_ROUND = 100
MAX_SWEEPS = 20_000
"""Sweeps after which the result is final even if time is left."""

HOT, COLD = 1.5, 0.04
"""First and last temperature, in the mean loss of a record that loses anything. The temperature falls geometrically."""

ENOUGH_SWEEPS = 100
"""A run of fewer sweeps starts at a lower temperature, so that it cools down before it ends."""


def solve(
    problem: AnonymizeProblem,
    watch: Watch | None = None,
    *,
    steps: int | None = None,
    workers: int | None = None,
) -> Partition:
    """The best partition that the time or the steps allow.

    Parameters
    ----------
    problem : AnonymizeProblem
    watch : Watch, optional
        Its time covers the start (the best of Greedy Search, the best cut of the sorted order and, where l or t is asked for,
        `diverse_growth`), the neighbours with the bound, and the rounds. Without a limit in time or steps there are MAX_SWEEPS sweeps.
    steps : int, optional
        Rounds of annealing, in place of the time limit: the same answer on every machine with any number of workers.
    workers : int, optional
        Threads; by default as many as there are cores.

    Notes
    -----
    Up to EXACT_RECORDS records `exact` is tried first, and if it proves the optimum that is the answer. Otherwise the best start is
    improved by simulated annealing: records move to a class nearby or are exchanged with a record of it, classes are dissolved into their
    neighbours and founded from records that others can spare (chosen towards l and t, where these are asked for), and records are left out
    where the problem allows it. Changes that make a class break a requirement are never made. In every round the classes are cut into
    pieces that lie close together, along other borders each time, and the pieces are annealed in threads. The pieces do not depend on the
    number of threads, and each has its own stream of random numbers. The best partition at the end of any round is returned.

    With a population (k-map) nothing is annealed: counting the people who match a class at every step would cost too much, so the best
    start is the answer.

    The lower bound is that of `find_neighbours`, or that of `exact` (`priced_bound` has a better one, computed on request); if time runs
    out before all neighbours are found, there is no bound, and the best start is the answer.

    **Cost**: the start about n log n; then as long as allowed. O(n (m + NEIGHBOURS)) memory.
    """
    watch = watch or Watch()
    is_small = problem.n_records <= EXACT_RECORDS
    if is_small:
        best = _tried_exactly(problem, watch, steps)
    else:
        with watch.stage("first answer"):
            best = _best_start(problem, watch)
    if best.loss == 0:
        best = replace(best, status=Status.OPTIMAL, lower_bound=0)
    if best.status is Status.OPTIMAL or problem.requirements.matches or watch.is_over:
        return best
    try:
        with watch.stage("bound"):
            annealing = _Annealing.of(problem, best, watch, workers or n_cores())
    except TimeUpError:
        return best
    clock = _Clock(watch=watch, steps=steps, max_rounds=MAX_SWEEPS // annealing.n_sweeps)
    with watch.stage("search"):
        return annealing.run(best, clock, watch)


def _best_start(problem: AnonymizeProblem, watch: Watch) -> Partition:
    """The best of the starts that there is time for; at least one is always computed."""
    first = sorted_cut.solve(problem, watch)
    watch.found(problem, first.loss)
    starts = [first] if watch.is_over else [greedy.solve(problem, watch), first]
    watch.found(problem, starts[0].loss)
    if diverse_growth.is_useful(problem) and not watch.is_over:
        starts.append(diverse_growth.solve(problem, watch))
    best = min(starts, key=lambda partition: partition.loss)
    watch.found(problem, best.loss)
    return replace(best, method="auto")


def warm_up(problem: AnonymizeProblem, run: Run) -> None:
    """Compile the kernels that this problem needs: those of the starts, of the rounds and, for few records, of `exact`."""
    tiny, watch = problem.tiny(), Watch(run)
    points = tiny.points()
    near = np.zeros((len(points.codes), 0), np.int32)
    sample = anneal_piece_inplace, _sample(tiny, _scene(tiny, points, near), watch)
    with suppress(TimeUpError):  # the run may be asked to finish early in the meantime
        with compiled_aside(watch.run, sample):
            if problem.n_records <= EXACT_RECORDS:
                exact.solve(tiny, watch)
            best = _best_start(tiny, watch)
            if problem.requirements.matches:
                return
            annealing = _Annealing.of(tiny, best, watch, 1)
        annealing.run_round(_first_records(best.labels), 0.0, 0, watch)


def _sample(problem: AnonymizeProblem, scene: Scene, watch: Watch) -> tuple[Any, ...]:
    """Arguments of the same form as those for annealing a piece."""
    labels = np.zeros(problem.n_records, np.int64)
    return scene, labels, labels, np.int64(0), 1, 0.0, np.uint64(1), watch.stop


def _tried_exactly(problem: AnonymizeProblem, watch: Watch, steps: int | None) -> Partition:
    nodes = None if steps is None else NODES_PER_STEP * steps
    if watch.is_limited:
        nodes = int(EXACT_SHARE * max(0.0, watch.left) * NODES_PER_SECOND)
    found = exact.solve(problem, watch, max_nodes=nodes)
    return replace(found, method="auto")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Clock:
    """Progress of a run whose rounds began at a given time, measured by rounds alone (steps) or by time."""

    watch: Watch
    steps: int | None
    max_rounds: int
    began: float = field(default_factory=time.perf_counter)

    def share(self, n_rounds: int) -> float:
        """Share of the run completed after this many rounds; 1 where another round would exceed the limit."""
        if self.steps is not None:
            return n_rounds / self.steps if self.steps else 1.0
        share = n_rounds / self.max_rounds
        if self.watch.is_limited:
            half_a_round = (time.perf_counter() - self.began) / (2 * n_rounds) if n_rounds else 0.0
            share = max(share, 1.0 if self.watch.left < half_a_round else self.watch.share_of_time)
        return min(1.0, share)

    def expected_rounds(self, n_rounds: int) -> float:
        """Estimated total rounds of the run after this many of them; 0 before the first round of a timed run."""
        if self.steps is not None:
            return self.steps
        if not self.watch.is_limited:
            return self.max_rounds
        if n_rounds == 0:
            return 0
        left = max(0.0, self.watch.left)
        return min(self.max_rounds, n_rounds * (1 + left / (time.perf_counter() - self.began)))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Annealing:
    """Data shared by the rounds of a run."""

    problem: AnonymizeProblem
    scene: Scene
    lower_bound: int
    n_sweeps: int
    workers: int

    @classmethod
    def of(cls, problem: AnonymizeProblem, best: Partition, watch: Watch, workers: int) -> _Annealing:
        points = problem.points()
        found = find_neighbours(problem, points, watch, n_wanted=NEIGHBOURS, workers=workers)
        return cls(
            problem=problem,
            scene=_scene(problem, points, found.near),
            lower_bound=max(found.lower_bound, best.lower_bound or 0),
            n_sweeps=min(MAX_SWEEPS_PER_ROUND, max(1, ROUND_RECORDS // problem.n_records)),
            workers=workers,
        )

    def run(self, best: Partition, clock: _Clock, watch: Watch) -> Partition:
        """Anneal a partition until time is up; return the best found."""
        labels = _first_records(best.labels)
        best_labels, best_loss, unit = labels.copy(), best.loss, _loss_per_losing_record(self.problem, best)
        n_rounds = 0
        watch.found(self.problem, best_loss, self.lower_bound)
        while best_loss > self.lower_bound and (share := clock.share(n_rounds)) < 1:
            watch.share = share
            n_sweeps = self.n_sweeps * clock.expected_rounds(n_rounds)
            hot = COLD * (HOT / COLD) ** min(1.0, n_sweeps / ENOUGH_SWEEPS)
            loss = self.run_round(labels, unit * hot * (COLD / hot) ** share, n_rounds, watch)
            watch.run.check()
            n_rounds += 1
            if loss < best_loss:
                best_labels[:], best_loss = labels, loss
                watch.found(self.problem, best_loss, self.lower_bound)
        if n_rounds < clock.max_rounds:
            is_short = self.n_sweeps * n_rounds < ENOUGH_SWEEPS
            watch.note(Stopped.UNFINISHED if is_short else Stopped.IMPROVING)
        status = Status.OPTIMAL if best_loss == self.lower_bound else Status.FEASIBLE
        return self.problem.partition(best_labels, method="auto", status=status, lower_bound=self.lower_bound)

    def run_round(self, labels: Ints, temperature: float, number: int, watch: Watch) -> int:
        """Cut into pieces and anneal each; return the resulting loss."""
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
                    scene,
                    labels,
                    own,
                    quotas[piece],
                    self.n_sweeps,
                    temperature,
                    piece_seed | np.uint64(1),
                    watch.stop,
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


def _scene(problem: AnonymizeProblem, points: DistinctRecords, near: NDArray[np.int32]) -> Scene:
    """A problem as passed to the kernels: its intervals, in blocks of LANES, separate from its other columns."""
    m = len(problem.columns)
    fields = problem.geometry[: m * N_FIELDS].reshape(m, N_FIELDS)
    is_interval = fields[:, KIND] == INTERVAL
    order = np.argsort(is_interval, kind="stable")
    intervals = problem.codes[:, is_interval]
    n_filled = -intervals.shape[1] % LANES
    return Scene(
        geometry=np.concatenate([fields[order].ravel(), problem.geometry[m * N_FIELDS :]]),
        limits=problem.requirements.limits,
        codes=np.ascontiguousarray(np.pad(intervals, ((0, 0), (0, n_filled)))),
        others=np.ascontiguousarray(problem.codes[:, ~is_interval]),
        sensitive=problem.requirements.sensitive,
        point_of=points.of_record.astype(np.int32),
        near=near,
        least_size=np.int64(problem.least_size),
        full=np.int64(problem.full_loss),
        is_free=np.bool_(not problem.sensitive),
    )


def _first_records(labels: Ints) -> Ints:
    """The first record of each record's class; -1 for records left out."""
    first = np.full(int(labels.max()) + 2, len(labels), np.int64)
    kept = labels >= 0
    np.minimum.at(first, labels[kept], np.flatnonzero(kept))
    return np.where(kept, first[labels], SUPPRESSED)


def _loss_per_losing_record(problem: AnonymizeProblem, partition: Partition) -> float:
    """Mean loss of the records in classes that lose anything, in units."""
    losses = class_losses(problem.geometry, problem.codes, partition.labels, partition.n_classes)
    return float(losses.sum() / max(1, partition.sizes[losses > 0].sum()))


METHOD = Method(
    name="auto",
    solve=lambda problem, watch, options: solve(problem, watch, steps=options.steps, workers=watch.cores),
    warm_up=warm_up,
)


CHUNK = 2048
"""Points whose neighbours are searched for in one batch."""

TRIPLES_SOUGHT, PAIRS_SOUGHT = 24, 64
"""Neighbours sought for the bound; triples of points are used while classes need at most half that many."""

MOST_VALUES = 256
"""Up to this many sensitive values, the bound considers which neighbours could make a class close; with more, only how many values they
have."""


class TimeUpError(Exception):
    """Time ran out before all neighbours were found."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Neighbourhood:
    """Neighbours of all points.

    Attributes
    ----------
    near : int32 (p, l)
        Neighbouring points, nearest first; at equal distance by number.
    lower_bound : int
        Units that every partition loses at least.
    """

    near: NDArray[np.int32]
    lower_bound: int


def find_neighbours(
    problem: AnonymizeProblem, points: DistinctRecords, watch: Watch, *, n_wanted: int, workers: int = 1
) -> Neighbourhood:
    """The `n_wanted` nearest points of every point, or all if there are fewer, and the lower bound they prove.

    If there are many columns, some of those listed may be near but not the nearest.

    Notes
    -----
    The distance of two records is the loss per record of a class of both.

    **Lower bound**: a record that is published lies in a class of at least k records (more where l or t need more), whose loss per record
    is at least what `louver.optim.kernels.classes.loss_bounds` proves for the record's point from its neighbours, by their number and by
    their sensitive values. A record that is left out loses everything, which is no less. The sum over all records is therefore a bound,
    whatever else the classes must meet.

    **Time**: once it is up, `TimeUpError` is raised: there is then neither a search nor a bound.

    **Cost**: O(p (log p + l^2 m)) for l neighbours sought; O(p l) memory.
    """
    codes, multiplicity, least_size = points.codes, points.multiplicity, problem.least_publishable
    tree = build_tree(problem.geometry, codes, np.arange(len(codes)))
    n_wanted = min(n_wanted, len(codes) - 1)
    with_triples = 2 * (least_size - 1) <= TRIPLES_SOUGHT
    n_useful = min(TRIPLES_SOUGHT if with_triples else min(PAIRS_SOUGHT, least_size - 1), len(codes) - 1)
    n_sought = min(max(n_wanted, n_useful, PAIRS_SOUGHT if problem.sensitive else 0), len(codes) - 1)
    needs = problem.requirements
    is_table_whole = problem.max_suppressed == 0 and bool((needs.sensitive >= 0).all())
    is_table_whole &= n_sensitive_values(needs.limits) <= MOST_VALUES

    def part(first: int) -> tuple[NDArray[np.int32], int]:
        watch.run.check()
        if watch.is_over:
            raise TimeUpError
        last = min(len(codes), first + CHUNK)
        keys, reach = nearest(tree, problem.geometry, first, last, n_sought)
        near = (keys[:, :n_wanted] & NUMBER_MASK).astype(np.int32)
        useful = np.ascontiguousarray(keys[:, :n_useful])
        beyond = reach if n_useful == n_sought else np.minimum(reach, keys[:, n_useful] >> NUMBER_BITS)
        least = least_losses(
            problem.geometry, codes, multiplicity, useful, beyond, first, least_size, with_triples
        )
        by_values = diverse_reach(
            needs.limits, needs.sensitive, points.start, keys, reach, first, least_size, is_table_whole
        )
        return near, int(multiplicity[first:last] @ np.maximum(least, by_values))

    if n_wanted == 0:
        return Neighbourhood(near=np.zeros((len(codes), 0), np.int32), lower_bound=0)
    parts = list(run_pieces(part, range(0, len(codes), CHUNK), workers=workers))
    return Neighbourhood(
        near=np.concatenate([near for near, _ in parts]), lower_bound=sum(bound for _, bound in parts)
    )
