"""Households that are alike as a whole: of the same size, and with the same published values member by member.

A reader who sees which records belong together (`--whole-units` publishes fresh numbers of the units) can recognise a household by its size
and by all its members at once. So here a household is one wide record, with values that are constant in every household once and all others
once for each member. Classes of k of these records are formed among households of each size.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from louver._arrays import Ints
from louver.anonymize.columns import Guarantee, of_rows
from louver.anonymize.methods import auto, greedy
from louver.anonymize.methods.method import Method
from louver.anonymize.methods.units import UnitPartition
from louver.anonymize.problem import SUPPRESSED, AnonymizeProblem, Partition
from louver.anonymize.watch import Stopped, Watch
from louver.errors import InfeasibleError
from louver.optim.status import Status
from louver.run import Run

__all__ = ["METHOD", "solve"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Stratum:
    """Households of one size.

    Attributes
    ----------
    records : int64 (households, size)
        Records of each household, its members in the same order as those of all others.
    problem : AnonymizeProblem
        Each household as one record.
    """

    records: Ints
    problem: AnonymizeProblem


def solve(
    problem: AnonymizeProblem, watch: Watch | None = None, *, is_auto: bool, steps: int | None = None
) -> UnitPartition:
    """Classes of k households each, published alike member by member.

    Parameters
    ----------
    is_auto : bool
        Whether to improve by `auto`, for as long as the time allows; otherwise Greedy Search alone.

    Notes
    -----
    The records of a class in this answer are the members at one position in the households of one class: at least k households, each with
    one record. All households of a class are published alike, so at least k households have the same number of members with the same
    published values, and neither the quasi-identifiers of any members nor their number can distinguish them.

    Members are matched by sorting them in every household: by one of the columns in which they differ, then by the others. For each size
    separately, the column chosen is the one with which Greedy Search loses least.

    Households of a size shared by fewer than k are left out, as far as `max_suppressed` allows.

    **Cost**: columns in which members differ x Greedy Search over wide records, then as long as allowed.

    Raises
    ------
    InfeasibleError
        If more records belong to households of rare sizes than may be left out.
    """
    watch = watch or Watch()
    assert problem.units is not None
    labels = np.full(problem.n_records, SUPPRESSED)
    cells = np.full(problem.n_records, SUPPRESSED)
    n_labels = n_cells = 0
    with watch.stage("first answer"):
        strata, n_out = _strata(problem, watch)
    if n_out > problem.max_suppressed:
        raise InfeasibleError(
            f"{n_out:,} records belong to households of sizes that fewer than k = {problem.k} households have; allow "
            "that many to be left out (--suppress), or drop --whole-units."
        )
    losses = [greedy.loss * stratum.problem.unit for stratum, greedy in strata]
    with watch.stage("search"):
        for number in sorted(range(len(strata)), key=lambda number: -losses[number]):
            stratum, found = strata[number]
            if is_auto and found.loss:
                seconds = watch.left * losses[number] / sum(losses[number:]) if watch.is_limited else None
                found = _improved(stratum, found, watch, seconds, steps)
            size = stratum.records.shape[1]
            own = np.empty(stratum.problem.n_records, np.int64)
            own[stratum.problem.rows] = found.labels
            labels[stratum.records] = n_labels + own[:, None] * size + np.arange(size)
            cells[stratum.records] = n_cells + own[:, None]
            n_labels += found.n_classes * size
            n_cells += found.n_classes
    partition = problem.partition(labels, method="auto" if is_auto else "greedy")
    watch.found(problem, partition.loss)
    return UnitPartition(
        labels=partition.labels,
        loss=partition.loss,
        method=partition.method,
        cells=cells,
        shared=problem.units.shared,
    )


def _strata(problem: AnonymizeProblem, watch: Watch) -> tuple[list[tuple[_Stratum, Partition]], int]:
    """Households by size, each size with its first answer, and the records of households whose size is too rare."""
    assert problem.units is not None
    unit = problem.units.codes[problem.rows]
    size = np.bincount(unit, minlength=problem.units.n)
    strata, n_out = [], 0
    for s in np.unique(size[size > 0]).tolist():
        n_households = int((size == s).sum())
        if n_households < problem.k:
            n_out += n_households * s
            continue
        watch.run.check()
        tried = []
        for order in _orders(problem, unit):
            stratum = _stratum(problem, order[size[unit[order]] == s].reshape(n_households, s))
            tried.append((stratum, greedy.solve(stratum.problem, watch)))
            if s == 1 or watch.is_over:
                break
        strata.append(min(tried, key=lambda found: found[1].loss * found[0].problem.unit))
    return strata, n_out


def _orders(problem: AnonymizeProblem, unit: Ints) -> Iterator[Ints]:
    """All records by unit, members in the problem's order, or first by one of the columns in which they differ."""
    yield np.argsort(unit, kind="stable")
    assert problem.units is not None
    for j in range(len(problem.columns)):
        if j not in problem.units.shared:
            yield np.lexsort((problem.codes[:, j], unit))


def _stratum(problem: AnonymizeProblem, records: Ints) -> _Stratum:
    """Households as wide records: a column for all members where it is constant in every household, else one for each member."""
    assert problem.units is not None
    size = records.shape[1]
    columns = []
    for j, column in enumerate(problem.columns):
        places = [0] if j in problem.units.shared else range(size)
        weight = column.weight * size / len(places)
        columns += [
            replace(of_rows(column, problem.rows[records[:, place]]), weight=weight)  # type: ignore[type-var]
            for place in places
        ]
    return _Stratum(records=records, problem=AnonymizeProblem.build(columns, k=problem.k))


def _improved(
    stratum: _Stratum, first: Partition, watch: Watch, seconds: float | None, steps: int | None
) -> Partition:
    """The classes by `auto`, with a separate clock: when the time of one size is over, the others continue."""
    if watch.is_over:
        watch.note(Stopped.UNFINISHED)
        return first
    own = Watch(watch.run, seconds)
    found = auto.solve(stratum.problem, own, steps=steps)
    if found.status is not Status.OPTIMAL:
        watch.note(own.stopped or (Stopped.UNFINISHED if own.is_over else None))
    return min(found, first, key=lambda partition: partition.loss)


def warm_up(problem: AnonymizeProblem, run: Run) -> None:
    """Compile the kernels that wide records need: those of `auto` without requirements."""
    auto.warm_up(problem.part(np.arange(problem.n_records)), run)


METHOD = Method(
    name="whole-units",
    solve=lambda problem, watch, options: solve(
        problem, watch, is_auto=options.method == "auto", steps=options.steps
    ),
    guarantee=Guarantee.K_UNITS,
    warm_up=warm_up,
    is_choice=False,
)
