"""Allocation: every class of the first release is divided over the cells of the larger schema, level by level.

A class is the people of one region with one cell of the first release. Their number is known in every region, so a class of a parent is
divided among the children in fixed numbers, and the cells of its people in the larger schema were found one level above. This gives a table
with both margins known for every class of every parent. Classes are connected only through the noisy answers. No array is as large as
regions times cells: a child's class can only have cells that the parent's has.

Notes
-----
**Implements**: Abowd et al. (2019), Problem 1, step 3, for one record class of the first release at a time (section 1.1). **Departs**:
without a measurement of all cells, least squares (9) has many solutions. The most likely counts are taken, given that children resemble
their parent (`optim.entropy`); people are then allocated one by one, which keeps every margin by construction.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from louver._arrays import Floats, Ints
from louver.engine.engines import ONE_CORE, Engine, Shared
from louver.optim.entropy import GroupSums, Inequality, NoisySums, fit
from louver.optim.kernels.sharing.people import draw_cells_inplace, share_out_inplace, swap_people_inplace
from louver.run import Run
from louver.topdown.estimation.batches import Span
from louver.topdown.estimation.draws import Draws
from louver.topdown.estimation.levels import Estimate, LevelReport
from louver.topdown.extension.constraints import Constraints
from louver.topdown.extension.problem import Extension
from louver.topdown.extension.root import posterior_of_answers
from louver.topdown.knowledge.implied import UNBOUNDED
from louver.topdown.problem import NoisyCounts, SparseLevel, region_range, split_batches

__all__ = ["estimate_classes", "fit_root"]

PROPOSALS = 20
"""Changes tried for each person once everyone has been placed."""

ROOT_TRUST = 4.0
"""The variance of the root's answers is divided by this: with no parent to resemble, the pull towards even counts would raise small
cells."""

LEAST_EXPECTED = 1e-9  # minimum expected people in a cell of a place, for the odds of being there
ROOT_ROUNDS = 6  # fits of the root, each starting where the one before ended
CLOSED = 1e-6  # share of the expected count, where a bound allows no one


def estimate_classes(
    extension: Extension,
    noisy: NoisyCounts,
    *,
    engine: Engine = ONE_CORE,
    draws: Draws | None = None,
    run: Run | None = None,
) -> Estimate:
    """Histograms of all leaves in the larger schema, whose projection is the first release exactly.

    Cells of a leaf are in the order of the first release's cells, then their own. With `draws`, the root is drawn given its answers, and
    below it people are placed at random in proportion to expected counts, as unevenly as real people.
    """
    first, closed = extension.first_levels(), extension.closed()
    constraints = Constraints.of(extension)
    known = engine.share(_Known(extension.without_source(), constraints, noisy))
    current: SparseLevel | None = None
    reports = []
    for level, name in enumerate(extension.design.spine.names):
        began = time.perf_counter()
        limits = constraints.at(extension, level)
        own = None if draws is None else draws.at(level)
        source = engine.share(_ExtendedLevel(known, level, first[level], closed[level], limits, current, own))
        current, residual = _estimate_level(extension, source, level, engine, run)
        reports.append(
            LevelReport(
                name=name,
                regions=extension.design.spine.sizes[level],
                largest_residual=residual,
                suboptimal=(),
                rescued=(),
                seconds=time.perf_counter() - began,
            )
        )
    assert current is not None
    return Estimate(leaves=current, levels=tuple(reports))


@dataclass(frozen=True, slots=True, eq=False)
class _Known:
    """What all levels share."""

    extension: Extension
    constraints: Constraints
    noisy: NoisyCounts


@dataclass(frozen=True, slots=True, eq=False)
class _ExtendedLevel:
    """Data to process the batches of a level: first release, bounds that allow nobody, limits, parents, and the key of a draw."""

    known: Shared[_Known]
    level: int
    first: SparseLevel
    closed: Ints
    limits: tuple[Ints, Ints]
    parents: SparseLevel | None
    draws: Draws | None


def _estimate_level(
    extension: Extension, source: Shared[_ExtendedLevel], level: int, engine: Engine, run: Run | None
) -> tuple[SparseLevel, float]:
    """All regions of a level, batch by batch; also the largest distance, in persons, of a real count from a margin."""
    spine = extension.design.spine
    batches = split_batches(spine, level, extension.plan.workloads()[level].n_values)
    pieces = []
    for piece in engine.map(partial(_estimate_batch, source), batches, run):
        pieces.append(piece)
        if run is not None:
            run.report(f"extending {spine.names[level]}", len(pieces), len(batches))
    return SparseLevel.concatenate([regions for regions, _ in pieces]), max(missed for _, missed in pieces)


def _estimate_batch(source: Shared[_ExtendedLevel], span: Span, run: Run) -> tuple[SparseLevel, float]:
    """The children of a batch of parents, or the root."""
    own, known = source.value, source.value.known.value
    extension, level = known.extension, own.level
    spine = extension.design.spine
    start, stop = region_range(spine, level, span)
    answers, first = known.noisy.read(level, start, stop), own.first.part(start, stop)
    if own.parents is None:
        return _draw_root(extension, first, answers, own.draws, run)
    n_children = np.diff(spine.starts[level - 1][span[0] : span[1] + 1])
    family = np.repeat(np.arange(len(n_children)), n_children)
    tables = _Classes.of(extension, own.parents.part(*span), first, family)
    here = slice(start, stop)
    limits = (own.limits[0][:, here], own.limits[1][:, here])
    draws = None if own.draws is None else own.draws.at(start)
    return _share_out(
        extension, known.constraints, level, here, tables, answers, own.closed[here], limits, draws, run
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Classes:
    """The tables of a batch: for every class of every parent its cells with counts, and its children with counts.

    Entries are ordered by class; `pair_cell` and `pair_child` are the entries that meet at each position of the tables.
    """

    cell: Ints
    cell_count: Ints
    cell_start: Ints
    child: Ints
    child_count: Ints
    child_start: Ints
    pair_cell: Ints
    pair_child: Ints

    @classmethod
    def of(cls, extension: Extension, parents: SparseLevel, children: SparseLevel, family: Ints) -> _Classes:
        class_of, n_first = extension.refinement.class_of, extension.first.n_cells
        parent = np.repeat(np.arange(parents.n_regions), np.diff(parents.start))
        of_cell = parent * n_first + class_of[parents.cell]  # ascending: cells stand by classes
        child = np.repeat(np.arange(children.n_regions), np.diff(children.start))
        of_child = family[child] * n_first + children.cell
        order = np.lexsort((child, of_child))
        known = np.unique(of_cell)
        cell_start = np.append(np.searchsorted(of_cell, known), len(of_cell)).astype(np.int64)
        child_start = np.append(np.searchsorted(of_child[order], known), len(order)).astype(np.int64)
        n_children = np.diff(child_start)
        sizes = np.diff(cell_start) * n_children
        table = np.repeat(np.arange(len(known)), sizes)
        within = np.arange(len(table)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        return cls(
            cell=parents.cell,
            cell_count=parents.count,
            cell_start=cell_start,
            child=child[order],
            child_count=children.count[order],
            child_start=child_start,
            pair_cell=cell_start[table] + within // n_children[table],
            pair_child=child_start[table] + within % n_children[table],
        )

    def prior(self) -> Floats:
        """The expected counts: every child divides a class as its parent does."""
        totals = np.add.reduceat(self.cell_count, self.cell_start[:-1])
        total = np.repeat(totals, np.diff(self.cell_start)).astype(np.float64)
        return np.asarray((self.cell_count / total)[self.pair_cell] * self.child_count[self.pair_child])


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Wanted:
    """Marginals of a batch: groups of its pairs, and arrays for the kernels."""

    noisy: tuple[NoisySums, ...]
    base: Ints
    n_rows: Ints
    row: Ints

    @classmethod
    def of(
        cls,
        extension: Extension,
        level: int,
        cells: Ints,
        pair_cell: Ints,
        place: Ints,
        answers: Sequence[Ints],
    ) -> _Wanted:
        measured = extension.plan.measured[level]
        row = np.array([one.query.row_of[cells] for one in measured], dtype=np.int64).reshape(
            len(measured), -1
        )
        n_rows = np.array([one.query.n_rows for one in measured], dtype=np.int64)
        sizes = np.array([answer.size for answer in answers], dtype=np.int64)
        sums = tuple(
            NoisySums(
                place * one.query.n_rows + row[q, pair_cell],
                answer.ravel().astype(np.float64),
                one.distribution.variance,
            )
            for q, (one, answer) in enumerate(zip(measured, answers, strict=True))
        )
        return cls(noisy=sums, base=np.cumsum(sizes) - sizes, n_rows=n_rows, row=row)

    def need(self, counts: Floats) -> Floats:
        """The marginals of real counts, by which people are allocated."""
        held = [np.bincount(own.group, weights=counts, minlength=len(own.value)) for own in self.noisy]
        return np.concatenate([*held, np.zeros(0)])


def _kept(
    extension: Extension, level: int, span: slice, cells: Ints, pair_cell: Ints, place: Ints
) -> list[Inequality]:
    """Edit rules (8.2.3) and bounds of every region of a batch; they are penalised here, and enforced by the last edit of the leaves."""
    n_places = span.stop - span.start
    kept = []
    for rule in extension.rules:
        if rule.coefficient.max() <= 0:
            continue  # where this can hold, these cells are empty from the root on
        coefficient = rule.coefficient[cells][pair_cell]
        index = np.flatnonzero(coefficient)
        own = coefficient[index].astype(np.float64)
        kept.append(Inequality(index, place[index], own, np.zeros(n_places)))
    for number, (lower, upper) in enumerate(extension.bounds(level)):
        least, most = lower[span].astype(np.float64), upper[span].astype(np.float64)
        if not least.any() and not ((most > 0) & (most < UNBOUNDED)).any():
            continue
        index = np.flatnonzero(extension.marks[cells][pair_cell] >> number & 1)
        kept.append(Inequality(index, place[index], np.ones(len(index)), least))
        if (most < UNBOUNDED).any():
            kept.append(Inequality(index, place[index], -np.ones(len(index)), -most))
    return kept


def _share_out(
    extension: Extension,
    known: Constraints,
    level: int,
    span: slice,
    tables: _Classes,
    answers: Sequence[Ints],
    closed: Ints,
    limits: tuple[Ints, Ints],
    draws: Draws | None,
    run: Run,
) -> tuple[SparseLevel, float]:
    """The children of a batch of parents."""
    place, n_places = tables.child[tables.pair_child], len(closed)
    wanted = _Wanted.of(extension, level, tables.cell, tables.pair_cell, place, answers)
    prior, marks = tables.prior(), extension.marks[tables.cell]
    if closed.any():
        prior[(marks[tables.pair_cell] & closed[place]) != 0] *= CLOSED
    margins = [
        GroupSums(tables.pair_cell, tables.cell_count),
        GroupSums(tables.pair_child, tables.child_count),
    ]
    kept = _kept(extension, level, span, tables.cell, tables.pair_cell, place)
    counts = fit(prior, margins, wanted.noisy, kept, run=run)
    held = np.bincount(tables.pair_cell, weights=counts, minlength=len(tables.cell))
    person = np.repeat(np.arange(len(tables.cell)), tables.cell_count)
    person_start = np.concatenate([[0], np.cumsum(tables.cell_count)])[tables.cell_start]
    person = _shuffled(person, person_start)
    chosen = np.zeros(len(person), dtype=np.int64)
    run.attend(
        share_out_inplace,
        person_start,
        person,
        tables.child_start,
        tables.child,
        tables.child_count.copy(),
        wanted.base,
        wanted.n_rows,
        wanted.row,
        known.kind_of[tables.cell],
        known.coefficient,
        np.ascontiguousarray(limits[0]),
        np.ascontiguousarray(limits[1]),
        np.zeros((len(known.names), n_places), dtype=np.int64),
        PROPOSALS,
        wanted.need(counts),
        chosen,
    )
    if draws is not None:
        run.attend(_place_at_random, tables, counts, person_start, person, draws, chosen)
    regions = _gathered(extension, tables.child[chosen], tables.cell[person], n_places)
    return regions, float(np.max(np.abs(held - tables.cell_count), initial=0.0))


def _place_at_random(
    tables: _Classes, counts: Floats, person_start: Ints, person: Ints, draws: Draws, chosen: Ints
) -> None:
    """Let the people of every class change places until they are as uneven as a random placement by these expected counts."""
    sizes = np.diff(tables.cell_start) * np.diff(tables.child_start)
    swap_people_inplace(
        person_start,
        person,
        tables.child_start,
        tables.cell_start[:-1].copy(),
        np.cumsum(sizes) - sizes,
        np.log(np.maximum(counts, LEAST_EXPECTED)),
        PROPOSALS,
        np.uint64(draws.seed),
        chosen,
    )


def fit_root(
    prior: Floats,
    exact: Sequence[GroupSums],
    noisy: Sequence[NoisySums],
    kept: Sequence[Inequality],
    run: Run,
) -> Floats:
    """Counts of the root near its answers, even where uniform counts are far from them.

    A row with many people is pulled towards even counts by its variance times the logarithm of its distance from them. Counts are therefore
    fitted again with the previous fit as the expected counts, so that the pull goes to zero (proximal point method).
    """
    counts = prior
    for _ in range(ROOT_ROUNDS):
        counts = fit(counts, exact, noisy, kept, run=run)
    return counts


def _draw_root(
    extension: Extension, own: SparseLevel, answers: Sequence[Ints], draws: Draws | None, run: Run
) -> tuple[SparseLevel, float]:
    """The root: every class is divided over all its possible and usual cells, according to each answer by itself."""
    class_of = extension.refinement.class_of
    people = np.zeros(extension.first.n_cells, dtype=np.int64)
    people[own.cell] = own.count
    cells = np.flatnonzero(extension.design.is_possible & (people[class_of] > 0) & ~extension.unusual())
    cells = cells[np.argsort(class_of[cells], kind="stable")]
    known, class_start, place = np.unique(class_of[cells], return_index=True, return_inverse=True)
    class_start = np.append(class_start, len(cells)).astype(np.int64)
    prior = people[known][place] / np.diff(class_start)[place]
    everyone, nobody = np.arange(len(cells)), np.zeros(len(cells), dtype=np.int64)
    wanted = _Wanted.of(extension, 0, cells, everyone, nobody, answers)
    kept = _kept(extension, 0, slice(0, 1), cells, everyone, nobody)
    trusted = []
    for sums, one in zip(wanted.noisy, extension.plan.measured[0], strict=True):
        steer = None if draws is None else draws.uniform(one.query.name, np.arange(one.query.n_rows))
        mean, variance = posterior_of_answers(sums.value.astype(np.int64), one.distribution, steer)
        trusted.append(NoisySums(sums.group, mean, variance / ROOT_TRUST))
    counts = fit_root(prior, [GroupSums(place, people[known])], trusted, kept, run)
    start = np.concatenate([[0], np.cumsum(people[known])]).astype(np.int64)
    chosen = np.zeros(int(start[-1]), dtype=np.int64)
    run.attend(
        draw_cells_inplace,
        class_start,
        people[known],
        counts,
        wanted.base,
        wanted.n_rows,
        wanted.row,
        PROPOSALS,
        wanted.need(counts),
        start,
        chosen,
    )
    return _gathered(extension, np.zeros(len(chosen), dtype=np.int64), cells[chosen], 1), 0.0


def _shuffled(person: Ints, start: Ints) -> Ints:
    """People of every class in an order that is independent of their cells and always the same."""
    number = np.arange(len(person), dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    number = (number ^ (number >> np.uint64(29))) * np.uint64(0xBF58476D1CE4E5B9)
    table = np.repeat(np.arange(len(start) - 1), np.diff(start))
    return person[np.lexsort((number ^ (number >> np.uint64(32)), table))]


def _gathered(extension: Extension, region: Ints, cell: Ints, n_regions: int) -> SparseLevel:
    """Histograms from the region and cell of every person; cells by classes of the first release."""
    order = np.lexsort((cell, extension.refinement.class_of[cell], region))
    region, cell = region[order], cell[order]
    is_new = (
        np.append(True, (region[1:] != region[:-1]) | (cell[1:] != cell[:-1]))
        if len(cell)
        else np.zeros(0, bool)
    )
    first = np.flatnonzero(is_new)
    return SparseLevel(
        start=np.searchsorted(region[first], np.arange(n_regions + 1)).astype(np.int64),
        cell=cell[first].astype(np.int64),
        count=np.diff(np.append(first, len(cell))).astype(np.int64),
    )
