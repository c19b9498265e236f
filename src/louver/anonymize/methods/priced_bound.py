"""A lower bound on the loss of every partition, by prices of records, within the time of `--bound-seconds`.

The bound of `auto` takes the best possible class of every record, and ignores that most other records of this class would be better off in
another class. Prices take this into account: they are the dual of choosing classes so that every record is in one.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from louver._arrays import Floats, Ints
from louver.anonymize.methods.auto import PAIRS_SOUGHT, TRIPLES_SOUGHT
from louver.anonymize.problem import AnonymizeProblem, DistinctRecords, Partition
from louver.anonymize.watch import Watch
from louver.engine.local import run_pieces
from louver.optim.aside import n_cores
from louver.optim.kernels.classes.loss_bounds import least_losses
from louver.optim.kernels.classes.priced_classes import cheapest_classes, fit_prices_inplace
from louver.optim.kernels.classes.record_tree import NUMBER_BITS, NUMBER_MASK, build_tree, nearest

__all__ = ["MAX_POINTS", "Prices", "lower_bound", "priced", "warm_up"]

MAX_POINTS = 50_000
"""Maximum number of distinct records: the work of a round and the workspace of a thread grow with them."""

LISTED = 128
"""Number of neighbours listed for every point; a head whose price reaches further examines all points."""

HEADS = 64
"""Number of heads in one task. Heads of all prices are mixed, because those with high prices take longest."""

FIT_ROUNDS = 1500
FIRST_NODES, MOST_NODES = 200, 12_800
"""Nodes of the search around a head, doubled every second round."""

NEW_SHARE = 0.6
"""Weight of the fitted prices in the prices that are tried; the rest is that of the best prices so far."""

SLACK = 0.02
"""Share of a price below which the search for a violation is not worth its time."""

MAX_ROUNDS = 60
ENOUGH = 1e-4
"""The work ends once the maximum number of nodes has been tried and the bound grows by less than this share."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Prices:
    """Prices of the records of each point, under which no class of `least_publishable` records loses less than the sum of its prices.

    Attributes
    ----------
    points : DistinctRecords
    values : int64 (p,)
    """

    points: DistinctRecords
    values: Ints

    @property
    def bound(self) -> int:
        """Units that every partition loses at least."""
        return int(self.points.multiplicity @ self.values)


@dataclass(slots=True, kw_only=True, eq=False)
class _Listed:
    """Classes found so far, each once."""

    seen: set[tuple[int, ...]] = field(default_factory=set)
    start: list[int] = field(default_factory=lambda: [0])
    member: list[int] = field(default_factory=list)
    cost: list[int] = field(default_factory=list)

    def add(self, points: Iterable[int], cost: int) -> None:
        line = tuple(sorted(points))
        if line not in self.seen:
            self.seen.add(line)
            self.member.extend(line)
            self.start.append(len(self.member))
            self.cost.append(cost)


def lower_bound(problem: AnonymizeProblem, known: Partition, watch: Watch, workers: int | None = None) -> int:
    """Units that every partition loses at least: the better of the known bound and the one that prices prove within the time limit."""
    before = known.lower_bound or 0
    if problem.requirements.matches or problem.least_publishable < 2 or known.loss == before:
        return before
    found = priced(problem, known, watch, workers=workers or n_cores())
    return before if found is None else max(before, found.bound)


def priced(
    problem: AnonymizeProblem,
    known: Partition,
    watch: Watch,
    *,
    workers: int = 1,
    max_rounds: int = MAX_ROUNDS,
) -> Prices | None:
    """Prices of all records; None if there are too many records or no time.

    Notes
    -----
    Only the size of classes counts. A class of 2k records or more can be cut in two without loss, so classes of k to 2k - 1 records are
    considered, with k the minimum that l and t allow (`least_publishable`). Column generation: prices are fitted to the classes listed so
    far, those of `known` first; then classes that lose less than their prices are sought around every record, and are listed, too. A search
    proves how far the loss of a class with this record as its dearest can be below its prices; the record's price is lowered by that
    amount, after which the prices are a proof. Fitted prices are mixed with the best proof so far, which is at first the least loss of each
    record (`least_losses`). A record that is left out loses everything, so with `max_suppressed` no price exceeds that.

    **Cost**: a round takes a millisecond or so for each distinct record, later ones more, and O(p) for each whose price exceeds its reach.
    """
    points = problem.points()
    n = len(points.codes)
    if n < 2 or n > MAX_POINTS or watch.is_over:
        return None
    return _Pricing(problem, points, known, watch, workers).run(max_rounds)


def warm_up(problem: AnonymizeProblem) -> None:
    """Compile the kernels that this problem needs."""
    tiny = problem.tiny()
    one = tiny.partition(np.zeros(tiny.n_records, np.int64), method="one class")
    priced(tiny, one, Watch(), max_rounds=1)


class _Pricing:
    """The rounds of fitting and proving."""

    def __init__(
        self, problem: AnonymizeProblem, points: DistinctRecords, known: Partition, watch: Watch, workers: int
    ) -> None:
        self._problem, self._points, self._watch, self._workers = problem, points, watch, workers
        self._least = max(2, problem.least_publishable)
        self._most = min(problem.n_records, 2 * self._least - 1)
        n = len(points.codes)
        tree = build_tree(problem.geometry, points.codes, np.arange(n))
        self._keys, self._reach = nearest(tree, problem.geometry, 0, n, min(LISTED, n - 1))
        self._listed = _Listed()
        self._highest = self._list_nearest()
        self._start = self._list_known(known)
        positive = self._start[self._start > 0]
        self._unit = float(positive.mean()) if len(positive) else 1.0
        self._loss = known.loss

    def _list_nearest(self) -> Floats:
        """List the class of each point with its nearest neighbours; no price is higher than the loss of this class."""
        points, problem = self._points, self._problem
        highest = np.zeros(len(points.codes))
        for i in np.flatnonzero(points.multiplicity < self._least):
            members = [int(i)] * int(points.multiplicity[i])
            for key in self._keys[i]:
                j = int(key & NUMBER_MASK)
                if len(members) >= self._least or j >= len(points.codes):
                    break
                members += [j] * int(min(points.multiplicity[j], self._least - len(members)))
            if len(members) < self._least:
                highest[i] = float(problem.full_loss)
                continue
            loss = problem.class_loss(points.start[members])
            highest[i] = loss / points.multiplicity[i]
            self._listed.add(members, loss)
        return np.minimum(highest, problem.full_loss) if problem.max_suppressed else highest

    def _list_known(self, known: Partition) -> Floats:
        """List the classes of a partition; returns the mean loss of the records of each point."""
        losses = np.full(self._problem.n_records, float(self._problem.full_loss))
        for members in known.classes():
            loss = self._problem.class_loss(members)
            losses[members] = loss / len(members)
            if self._least <= len(members) <= self._most:
                self._listed.add(self._points.of_record[members].tolist(), loss)
        mean: Floats = np.add.reduceat(losses, self._points.start[:-1]) / self._points.multiplicity
        return mean

    def _by_neighbours(self) -> Prices:
        """Each point priced at the least loss per record of a class around it, from its neighbours: no class loses less than the sum of
        these prices."""
        with_triples = 2 * (self._least - 1) <= TRIPLES_SOUGHT
        n_useful = min(
            TRIPLES_SOUGHT if with_triples else min(PAIRS_SOUGHT, self._least - 1), self._keys.shape[1]
        )
        keys = np.ascontiguousarray(self._keys[:, :n_useful])
        values = least_losses(
            self._problem.geometry,
            self._points.codes,
            self._points.multiplicity,
            keys,
            np.minimum(self._reach, keys[:, -1] >> NUMBER_BITS),
            0,
            self._least,
            with_triples,
        )
        return Prices(points=self._points, values=np.minimum(values, self._problem.full_loss))

    def run(self, max_rounds: int) -> Prices:
        """The best prices proved within the time limit."""
        multiplicity, highest = self._points.multiplicity, self._highest / self._unit
        fitted, use = np.minimum(self._start / self._unit, highest), np.zeros(0)
        best = self._by_neighbours()
        for number in range(max_rounds):
            use = np.concatenate([use, np.zeros(len(self._listed.cost) - len(use))])
            fit_prices_inplace(
                np.array(self._listed.start),
                np.array(self._listed.member, np.int64),
                np.array(self._listed.cost) / self._unit,
                multiplicity.astype(np.float64),
                highest,
                fitted,
                use,
                FIT_ROUNDS,
                self._watch.stop,
            )
            mixed = NEW_SHARE * fitted + (1 - NEW_SHARE) * best.values / self._unit
            nodes = min(MOST_NODES, FIRST_NODES << (number // 2))
            proved = self._proved(np.maximum(0, np.floor(mixed * self._unit)).astype(np.int64), nodes)
            if proved is None:
                break
            is_idle = proved.bound - best.bound < ENOUGH * best.bound
            best = max(best, proved, key=lambda prices: prices.bound)
            self._watch.found(self._problem, self._loss, best.bound)
            if best.bound >= self._loss or (nodes == MOST_NODES and is_idle):
                break
        return best

    def _proved(self, prices: Ints, max_nodes: int) -> Prices | None:
        """Lower the prices until they are a proof, and list the classes found on the way; None if time is up."""
        ranked = np.lexsort([np.arange(len(prices)), -prices])
        n_pieces = -(-len(prices) // HEADS)
        slack = (SLACK * prices).astype(np.int64)

        def piece(number: int) -> tuple[Ints, Ints, NDArray[np.int32], Ints] | None:
            self._watch.run.check()
            if self._watch.is_over:
                return None
            places = np.arange(number, len(prices), n_pieces)
            out = np.empty((4 * len(places), self._most + 1), np.int32)
            cost = np.empty(4 * len(places), np.int64)
            lowest, n_found = cheapest_classes(
                self._problem.geometry,
                self._points.codes,
                self._points.multiplicity,
                prices,
                ranked,
                places,
                self._keys,
                self._reach,
                self._least,
                self._most,
                slack,
                max_nodes,
                out,
                cost,
                self._watch.stop,
            )
            return ranked[places], lowest, out[:n_found], cost[:n_found]

        found = list(run_pieces(piece, range(n_pieces), workers=self._workers))
        if any(part is None for part in found):
            return None
        values = prices.copy()
        for part in found:
            assert part is not None
            heads, lowest, classes, costs = part
            values[heads] += lowest
            for line, cost in zip(classes.tolist(), costs.tolist(), strict=True):
                self._listed.add(line[1 : line[0] + 1], cost)
        if self._problem.max_suppressed:
            values = np.minimum(values, self._problem.full_loss)
        return Prices(points=self._points, values=values)
