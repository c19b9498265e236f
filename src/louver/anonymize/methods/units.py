"""Classes of k different units: records of households, published so that a household is as hard to find as a person.

A unit is a household, a business, a person with several records. A class needs records of k different units, and what is constant
within every unit (its region, its size) is generalised alike for all its members, or comparing them would give it back.
Where sensitive values must be diverse, they must be so among units: nine relatives with nine illnesses are one unit.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import maximum_bipartite_matching

from louver._arrays import Ints
from louver.anonymize.columns import of_rows
from louver.anonymize.methods import auto, greedy
from louver.anonymize.problem import Partition, Problem, Units
from louver.anonymize.requirements import Sensitive, build_requirements
from louver.anonymize.watch import Stopped, Watch
from louver.errors import InfeasibleError
from louver.optim.kernels.classes.diversity import N_LIMITS, STOP
from louver.optim.kernels.classes.loss import labels_loss
from louver.optim.status import Status

__all__ = ["UnitPartition", "solve", "values_apart"]

LEAST_SECONDS = 0.05
"""A cell that would have less time than this keeps the classes of Greedy Search."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class UnitPartition(Partition):
    """Classes, and the cells of units that share the published values of unit-level columns.

    Attributes
    ----------
    cells : int64 (n,)
        Cell of each record; a class lies in one cell, and so does a unit.
    shared : tuple of int
        Positions of the columns that are constant within every unit.
    """

    cells: Ints = field(default_factory=lambda: np.zeros(0, np.int64))
    shared: tuple[int, ...] = ()

    def covered(self, column: int) -> tuple[Ints, Ints, Ints]:
        """Records that published values of a column cover: those of the class, or of its cell for a unit-level column."""
        members, starts = self.grouped()
        if column not in self.shared:
            return members, starts, np.arange(len(starts))
        order = np.argsort(self.cells, kind="stable")
        firsts = np.flatnonzero(np.diff(self.cells[order], prepend=-1))
        return order, firsts, self.cells[members[starts]]


def solve(
    problem: Problem, watch: Watch | None = None, *, is_auto: bool, steps: int | None = None
) -> UnitPartition:
    """Cells of units, and classes within each.

    Parameters
    ----------
    is_auto : bool
        Improve the classes of every cell by `auto` for as long as the time allows.

    Notes
    -----
    Units are put into cells of at least K units by their unit-level columns, and the records of each cell into classes with k
    different units by all other columns; K is k, 2k, 4k, ... and all units, of which the least loss is kept. A small K keeps the
    unit-level columns narrow, a large one lets records of many units choose their class. "k different units" is distinct
    l-diversity of the number of the unit, with l = k.

    With `l`, a class needs l values from l different units, each from another (`values_apart`). Classes that lack them are united
    with the next one, which keeps all other requirements: they hold for a union where they hold for its parts.

    **Cost**: log2(units / k) times Greedy Search.

    Raises
    ------
    InfeasibleError
        Where requirements on sensitive columns cannot be met, not even by all records together.
    """
    watch = watch or Watch()
    assert problem.units is not None
    tried: list[UnitPartition] = []
    for cells in _cells(problem, problem.units, watch):
        try:
            tried.append(_within(problem, problem.units, cells, lambda part: greedy.solve(part, watch)))
        except InfeasibleError:
            if not cells.any():
                raise
    best = min(tried, key=lambda partition: partition.loss)
    if is_auto and not watch.is_over:
        improved = _within(problem, problem.units, best.cells, _by_auto(problem, watch, steps))
        best = min((best, improved), key=lambda partition: partition.loss)
    return replace(best, method="auto" if is_auto else "greedy")


def _by_auto(problem: Problem, watch: Watch, steps: int | None) -> Callable[[Problem], Partition]:
    """Each cell has its share of the time that is left."""
    seconds = watch.left if watch.is_limited else None

    def improve(part: Problem) -> Partition:
        own = None if seconds is None else seconds * part.n_records / problem.n_records
        if watch.is_over or (own is not None and own < LEAST_SECONDS):
            watch.note(Stopped.UNFINISHED)
            return greedy.solve(part, watch)
        limited = Watch(watch.run, own)
        limited.stop = watch.stop
        found = auto.solve(part, limited, steps=steps)
        watch.note(None if found.status is Status.OPTIMAL else limited.stopped)
        return found

    return improve


def _cells(problem: Problem, units: Units, watch: Watch) -> Iterator[Ints]:
    """Ways to put units into cells, as the cell of each record: one for all units first."""
    yield np.zeros(problem.n_records, np.int64)
    of_record = units.codes[problem.rows]
    _, first = np.unique(of_record, return_index=True)
    shared = [of_rows(problem.columns[j], problem.rows[first]) for j in units.shared]
    least = problem.k
    while shared and sum(c.weight for c in shared) and least < units.n and not watch.is_over:
        of_units = Problem.build(shared, k=least)
        cell_of = np.empty(units.n, np.int64)
        cell_of[of_units.rows] = greedy.solve(of_units, watch).labels
        yield cell_of[of_record]
        least *= 2


def _within(
    problem: Problem, units: Units, cells: Ints, form: Callable[[Problem], Partition]
) -> UnitPartition:
    """Classes of k different units within every cell."""
    of_record, shared = units.codes[problem.rows], list(units.shared)
    asked = Sensitive(name="units", codes=units.codes, n_values=units.n, l=problem.k)
    needed = (*problem.sensitive, asked)
    whole = build_requirements(needed, problem.rows, problem.codes[:0], problem.rows[:0], 0)
    labels = np.empty(problem.n_records, np.int64)
    n_classes = loss = 0
    order = np.argsort(cells, kind="stable")
    for members in np.split(order, np.flatnonzero(np.diff(cells[order])) + 1):
        codes = problem.codes[members]
        codes[:, shared] = codes[0, shared]
        sorted_ = np.lexsort([of_record[members], *codes.T[::-1]])
        members, codes = members[sorted_], np.ascontiguousarray(codes[sorted_])
        present, number = np.unique(of_record[members], return_inverse=True)
        sensitive, limits = whole.sensitive[members].copy(), whole.limits.copy()
        sensitive[:, -1] = number
        last = (len(needed) - 1) * N_LIMITS
        limits[last + STOP] += len(present) - units.n
        part = replace(
            problem,
            units=None,
            sensitive=needed,
            rows=problem.rows[members],
            codes=codes,
            requirements=whole._replace(sensitive=sensitive, limits=limits),
        )
        found = _diverse_among_units(part, form(part), of_record[members])
        labels[members] = found.labels + n_classes
        n_classes += found.n_classes
        loss += found.loss
    flat = problem.codes.copy()
    others = [j for j in range(flat.shape[1]) if j not in shared]
    flat[:, others] = flat[0, others]
    loss += int(labels_loss(problem.geometry, flat, cells, int(cells.max()) + 1)) if shared else 0
    return UnitPartition(labels=labels, loss=loss, method="", cells=cells, shared=units.shared)


def values_apart(labels: Ints, n_classes: int, units: Ints, values: Ints) -> Ints:
    """Most different values of each class that come from different units, each from another: a largest matching.

    Parameters
    ----------
    labels, units, values : int64 (n,)
        Class, unit and value of each record; a value of -1 is missing.
    """
    told = np.unique(np.stack([labels, units, values], axis=1)[values >= 0], axis=0)
    _, unit = np.unique(told[:, :2], axis=0, return_inverse=True)
    pairs, value = np.unique(told[:, [0, 2]], axis=0, return_inverse=True)
    if not len(pairs):
        return np.zeros(n_classes, np.int64)
    graph = csr_array((np.ones(len(told), np.int8), (unit.reshape(-1), value.reshape(-1))))
    is_matched = maximum_bipartite_matching(graph, perm_type="row") >= 0
    return np.bincount(pairs[is_matched, 0], minlength=n_classes).astype(np.int64)


def _diverse_among_units(part: Problem, found: Partition, units: Ints) -> Partition:
    """Unite classes until in each of them l sensitive values come from l different units."""
    asked = [(one.codes[part.rows], math.ceil(one.l)) for one in part.sensitive[:-1] if one.l is not None]
    labels, n_classes = found.labels, found.n_classes
    while True:
        is_short = np.zeros(n_classes, np.bool_)
        for values, least in asked:
            is_short |= values_apart(labels, n_classes, units, values) < least
        if not is_short.any():
            break
        if n_classes == 1:
            raise InfeasibleError(
                "no classes of these records have --l sensitive values from as many different units, not even all records together; "
                "ask for a smaller --l."
            )
        labels, n_classes = _united(labels, is_short)
    if n_classes == found.n_classes:
        return found
    loss = int(labels_loss(part.geometry, part.codes, labels, n_classes))
    return replace(found, labels=labels, loss=loss, lower_bound=None, status=Status.FEASIBLE)


def _united(labels: Ints, is_short: NDArray[np.bool_]) -> tuple[Ints, int]:
    """Classes in the order of their first records; each that is short joins the next one, the last the one before."""
    _, first = np.unique(labels, return_index=True)
    order = np.argsort(first)
    begins = np.concatenate([[True], ~is_short[order][:-1]])
    if is_short[order[-1]]:
        begins[-1] = len(order) == 1
    number = np.empty(len(order), np.int64)
    number[order] = np.cumsum(begins) - 1
    return number[labels], int(begins.sum())
