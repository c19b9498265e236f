"""The cells that an audit examines, their bounds, and the finding for each."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from louver.audit.cells import AuditCells, forms_for, window
from louver.audit.load import LoadedTables
from louver.audit.options import AuditOptions
from louver.errors import InputError
from louver.optim.kernels.audit.propagate import UNBOUNDED
from louver.run import Run
from louver.tables.evidence import Witnesses
from louver.tables.pieces import Cross, Domain, Piece
from louver.tables.problem import TablesProblem
from louver.tables.solve import decide, solve
from louver.tables.system import IntArray

__all__ = []


MAX_JOINT = 200_000
"""Maximum size of the finest cross that is audited in full unless targets are given; with more cells, only small cells of published
tables are audited."""


JOINT, GROUPS = "all attributes", "groups"


SHARE_EARLY, SHARE_BOUNDS, SHARE_GROUPS, SHARE_REASONS = 0.5, 0.6, 0.95, 0.85
"""Shares of the time after which work stops on early decisions, bounds, groups, and reasons (if there is anything to explain)."""

LARGE = 1_000
"""Number of unknowns above which small counts are decided before any bounds are computed."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TargetCells:
    """Cells of one table or target: their joint cells, numbers, true counts, labels by number, and the labels that its filter keeps.

    `units` are the numbers of distinct units of each cell, if units are known.
    """

    name: str
    assign: IntArray
    cells: IntArray
    true: IntArray | None
    units: IntArray | None
    labels: Callable[[int], dict[str, str]]
    where: dict[str, str] = field(default_factory=dict)

    def among(self, is_kept: NDArray[np.bool_]) -> TargetCells:
        """The cells that satisfy a mask."""
        true = None if self.true is None else self.true[is_kept]
        units = None if self.units is None else self.units[is_kept]
        return replace(self, cells=self.cells[is_kept], true=true, units=units)

    @property
    def sizes(self) -> IntArray | None:
        """Size of each cell: number of units where they are known, otherwise of people."""
        return self.true if self.units is None else self.units


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TargetBounds:
    """Bounds of all targets, or, if they are only decided, of the confined ones.

    `is_undecided` marks counts that must not be disclosed and for which it is unknown whether they are.
    """

    lower: IntArray
    upper: IntArray
    certified: NDArray[np.bool_]
    is_undecided: NDArray[np.bool_]

    @classmethod
    def from_published(cls, lower: IntArray, upper: IntArray) -> TargetBounds:
        """The counts as a table states them."""
        nowhere = np.zeros(len(lower), dtype=bool)
        return cls(lower=lower, upper=upper, certified=nowhere, is_undecided=nowhere)

    def among(self, is_kept: NDArray[np.bool_]) -> TargetBounds:
        """The bounds of the targets that satisfy a mask."""
        return TargetBounds(
            lower=self.lower[is_kept],
            upper=self.upper[is_kept],
            certified=self.certified[is_kept],
            is_undecided=self.is_undecided[is_kept],
        )

    def followed_by(self, other: TargetBounds) -> TargetBounds:
        return TargetBounds(
            lower=np.concatenate([self.lower, other.lower]),
            upper=np.concatenate([self.upper, other.upper]),
            certified=np.concatenate([self.certified, other.certified]),
            is_undecided=np.concatenate([self.is_undecided, other.is_undecided]),
        )

    def decided(
        self, chosen: IntArray, verdict: NDArray[np.int8], floor: IntArray, ceiling: IntArray
    ) -> TargetBounds:
        """The bounds after checking some undecided targets: 1 confined to [floor, ceiling], 0 not, -1 still unknown."""
        lower, upper, is_undecided = self.lower.copy(), self.upper.copy(), self.is_undecided.copy()
        is_in = verdict == 1
        lower[chosen[is_in]] = np.maximum(lower[chosen[is_in]], floor[is_in])
        upper[chosen[is_in]] = np.minimum(upper[chosen[is_in]], ceiling[is_in])
        is_undecided[chosen] = verdict < 0
        return replace(self, lower=lower, upper=upper, is_undecided=is_undecided)


def choose_targets(
    loaded: LoadedTables,
    options: AuditOptions,
) -> list[TargetCells]:
    """The named targets, or every cell of all tables, earlier ones too, and of the finest cross; both where tables are published.

    The finest cross comes last.
    """
    groups = [
        _group(loaded, target.name, target.cross, options.small if target.only_small else None)
        for target in loaded.targets
    ]
    if groups and options.publish is None:
        return groups
    n_tables = len(options.tables)
    groups += [
        _group(loaded, piece.name, cross, None)
        for piece in loaded.pieces[:n_tables]
        for cross in _distinct(piece.crosses)
    ]
    for piece in loaded.pieces[n_tables + len(options.known) :]:
        if not piece.is_file:
            groups += _left_open(loaded, piece, options)
    joint = _joint(loaded)
    if loaded.domain.n_cells <= MAX_JOINT:
        groups.append(joint)
    elif options.publish is not None:
        groups.append(joint.among(_is_small(joint, options.small)))
    return groups


def without_shown(
    groups: list[TargetCells],
    bounds: TargetBounds,
    small: int,
    shows: Callable[[list[IntArray]], NDArray[np.int8]],
) -> tuple[list[TargetCells], TargetBounds]:
    """Without the cells of the finest cross that are or may be determined, but whose counts earlier files show by themselves.

    `shows` says of which groups of joint cells files show the count (1), or may show it (-1).
    """
    if groups[-1].name != JOINT:
        return groups, bounds
    joint = groups[-1]
    own = slice(len(bounds.lower) - len(joint.cells), None)
    may_be_known = bounds.is_undecided[own] | (bounds.lower[own] == bounds.upper[own])
    asked = np.flatnonzero(_is_small(joint, small) & may_be_known)
    is_kept = np.ones(len(bounds.lower), dtype=bool)
    is_kept[own][asked] = shows(list(joint.cells[asked, None])) != 1
    return [*groups[:-1], joint.among(is_kept[own])], bounds.among(is_kept)


def join_cells(groups: list[TargetCells]) -> AuditCells:
    return AuditCells(assigns=tuple(g.assign for g in groups), cells=tuple(g.cells for g in groups))


def true_counts(groups: list[TargetCells]) -> IntArray | None:
    """True counts of all cells; None if the records are not known."""
    true = [group.true for group in groups if group.true is not None]
    return np.concatenate(true) if len(true) == len(groups) else None


def group_sizes(groups: list[TargetCells]) -> IntArray | None:
    """Size of each cell in people or units; None if the records are not known."""
    sizes = [group.sizes for group in groups if group.sizes is not None]
    return np.concatenate(sizes) if len(sizes) == len(groups) else None


def count_members(loaded: LoadedTables, assign: IntArray, n_groups: int) -> IntArray:
    """Number of units of groups of joint cells, or of people if no units are known."""
    if loaded.units is not None:
        return loaded.units.count(assign, n_groups)
    assert loaded.truth is not None
    return np.bincount(assign[assign >= 0], loaded.truth[assign >= 0], n_groups).astype(np.int64)


def _left_open(loaded: LoadedTables, piece: Piece, options: AuditOptions) -> Iterator[TargetCells]:
    """Cells of an earlier table that it did not reveal itself and that may be small: new tables may disclose them."""
    for margin in piece.margins:
        own = TargetBounds.from_published(margin.lower, margin.upper)
        is_settled = (own.lower == own.upper) | is_disclosed(own, classify(own, None, options), None, options)
        is_few = own.lower < options.small
        if loaded.units is not None:
            is_few |= count_members(loaded, loaded.domain.assign(margin.cross), len(is_few)) < options.small
        is_open = ~is_settled & (is_few | (options.within > 0))
        if is_open.any():
            group = _group(loaded, piece.name, margin.cross, None)
            yield group.among(is_open[group.cells])
    for shares in piece.shares:
        yield _group(loaded, piece.name, shares.cross, None)


def _distinct(crosses: tuple[Cross, ...]) -> list[Cross]:
    """Distinct crosses."""
    kept: list[Cross] = []
    for cross in crosses:
        if cross not in kept:
            kept.append(cross)
    return kept


def _group(loaded: LoadedTables, name: str, cross: Cross, only_below: int | None) -> TargetCells:
    domain = loaded.domain
    assign = domain.assign(cross)
    cells = np.unique(assign[assign >= 0])
    true = None
    if loaded.truth is not None:
        true = domain.sums(cross, loaded.truth)[cells]
    if only_below is not None and true is None:
        raise InputError(f"{name} asks for small cells only, which needs the records.", option="targets")
    where = {n: " or ".join(labels) for n, labels in cross.where.items() if n not in cross.by}
    group = TargetCells(
        name=name,
        assign=assign,
        cells=cells,
        true=true,
        units=None if loaded.units is None else loaded.units.count(assign, domain.size(cross))[cells],
        labels=lambda cell: domain.labels(cross, cell),
        where=where,
    )
    return group if only_below is None else group.among(_is_small(group, only_below))


def _is_small(group: TargetCells, below: int) -> NDArray[np.bool_]:
    """Nonempty cells with few people; none if the records are not known."""
    if group.sizes is None:
        return np.zeros(len(group.cells), dtype=bool)
    return np.asarray((group.sizes > 0) & (group.sizes < below))


def _joint(loaded: LoadedTables) -> TargetCells:
    cells = np.arange(loaded.domain.n_cells, dtype=np.int64)
    return TargetCells(
        name=JOINT,
        assign=cells,
        cells=cells,
        true=loaded.truth,
        units=None if loaded.units is None else loaded.units.count(cells, len(cells)),
        labels=lambda cell: _class_labels(loaded.domain, cell),
    )


def _class_labels(domain: Domain, cell: int) -> dict[str, str]:
    """Labels of a joint cell; a class of several labels is written with all of them."""
    codes = np.unravel_index(cell, domain.shape)
    return {
        attribute.name: " or ".join(attribute.labels[label] for label in np.flatnonzero(classes == code))
        for attribute, classes, code in zip(domain.attributes, domain.classes, codes, strict=True)
    }


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TargetSearch:
    """A search that bounds or decides cells, with the number of people in each and its size, if the records are known."""

    problem: TablesProblem
    witnesses: Witnesses
    cells: AuditCells
    true: IntArray | None
    sizes: IntArray | None
    options: AuditOptions
    run: Run

    def answered(self, started: float) -> TargetBounds:
        """Bounds of the cells, or only whether they are disclosed; undecided cells are retried while time remains.

        In a large system, counts that must not be disclosed are decided first, because bounding may take all the time.
        """
        bounds = self._decided() if self.options.decide else self._early_and_bounded(started)
        chosen = np.flatnonzero(bounds.is_undecided)
        if not len(chosen) or self.true is None:
            return bounds
        floor, ceiling = window(self.true[chosen], self.options.within)
        left = started + SHARE_GROUPS * self.options.seconds - time.monotonic()
        forms = forms_for(self.problem, self.cells.pick(chosen))
        verdict = decide(
            self.problem, forms, floor, ceiling, self.run, left, witnesses=self.witnesses, is_patient=True
        )
        return bounds.decided(chosen, verdict, floor, ceiling)

    def _early_and_bounded(self, started: float) -> TargetBounds:
        seconds = self.options.seconds
        if self.true is None or self.problem.system.n_columns <= LARGE:
            return self._bounded(SHARE_BOUNDS * seconds)
        chosen = np.flatnonzero(self._is_wanted(self.true))
        floor, ceiling = window(self.true[chosen], self.options.within)
        left = started + SHARE_EARLY * seconds - time.monotonic()
        forms = forms_for(self.problem, self.cells.pick(chosen))
        verdict = decide(self.problem, forms, floor, ceiling, self.run, left, witnesses=self.witnesses)
        bounds = self._bounded(started + SHARE_BOUNDS * seconds - time.monotonic())
        is_news = bounds.is_undecided[chosen] & (verdict >= 0)
        return bounds.decided(chosen[is_news], verdict[is_news], floor[is_news], ceiling[is_news])

    def _bounded(self, seconds: float) -> TargetBounds:
        forms = forms_for(self.problem, self.cells)
        answer = solve(self.problem, forms, self.run, seconds, self.witnesses)
        return TargetBounds(
            lower=answer.lower,
            upper=answer.upper,
            certified=answer.certified,
            is_undecided=np.zeros(len(answer.lower), dtype=bool)
            if self.true is None
            else self._is_wanted(self.true) & (answer.verdict(*window(self.true, self.options.within)) < 0),
        )

    def _decided(self) -> TargetBounds:
        """Decide only whether cells are disclosed; bounds of the others remain open."""
        true, options = self.true, self.options
        if true is None:
            raise InputError(
                "option --decide needs the records; leave it out for an outsider's audit.", option="decide"
            )
        lower, upper = np.zeros_like(true), np.full_like(true, UNBOUNDED)
        certified, is_undecided = np.zeros((2, len(true)), dtype=bool)
        is_wanted = self._is_wanted(true)
        is_small = is_wanted & ((true if self.sizes is None else self.sizes) < options.small)
        chosen = np.flatnonzero(is_wanted)
        deadline = time.monotonic() + SHARE_BOUNDS * options.seconds
        for within in dict.fromkeys((options.within, 0.0)):
            forms = forms_for(self.problem, self.cells.pick(chosen))
            floor, ceiling = window(true[chosen], within)
            left = deadline - time.monotonic()
            verdict = decide(self.problem, forms, floor, ceiling, self.run, left, witnesses=self.witnesses)
            is_confined = verdict == 1
            lower[chosen[is_confined]], upper[chosen[is_confined]] = floor[is_confined], ceiling[is_confined]
            certified[chosen], is_undecided[chosen] = verdict >= 0, verdict < 0
            # Of large counts that are confined, it is also decided whether they are exact.
            chosen = chosen[is_confined & ~is_small[chosen]]
        return TargetBounds(lower=lower, upper=upper, certified=certified, is_undecided=is_undecided)

    def _is_wanted(self, true: IntArray) -> NDArray[np.bool_]:
        """Counts that must not be disclosed."""
        is_small = (true if self.sizes is None else self.sizes) < self.options.small
        return np.asarray((true > 0) & (is_small | (self.options.within > 0)))


def classify(bounds: TargetBounds, true: IntArray | None, options: AuditOptions) -> list[str]:
    lower, upper = bounds.lower, bounds.upper
    is_within = np.zeros(len(lower), dtype=bool)
    if options.within > 0:
        is_within = _is_within(lower, upper, true, options.within)
    checks = [
        (upper == 0, "zero"),
        (lower == upper, "exact"),
        (is_within, "within"),
        (upper < options.small, "small"),
        (lower > 0, "certain"),
    ]
    names = np.full(len(lower), "open", dtype=object)
    for is_met, name in reversed(checks):
        names[is_met] = name
    return list(names)


def _is_within(lower: IntArray, upper: IntArray, true: IntArray | None, within: float) -> NDArray[np.bool_]:
    """Whether an interval lies within this percentage of the true count, or of some count if the true one is not known."""
    if true is not None:
        floor, ceiling = window(true, within)
        return (true > 0) & (lower >= floor) & (upper <= ceiling)
    share = Fraction(str(within)) / 100
    return np.array(
        [
            b < UNBOUNDED and a * (1 + share) >= b * (1 - share)
            for a, b in zip(lower.tolist(), upper.tolist(), strict=True)
        ],
        dtype=bool,
    )


def is_disclosed(
    bounds: TargetBounds, status: list[str], sizes: IntArray | None, options: AuditOptions
) -> NDArray[np.bool_]:
    """Whether each cell is small and exact, or too close."""
    names = np.array(status, dtype=object)
    is_small = is_small_count(bounds, sizes, options)
    disclosed: NDArray[np.bool_] = ((names == "exact") & is_small) | (names == "within")
    return disclosed


def is_small_count(bounds: TargetBounds, sizes: IntArray | None, options: AuditOptions) -> NDArray[np.bool_]:
    """Whether a count, if it is exact, is small; the number of units decides where it is known."""
    return np.asarray((bounds.lower > 0) & ((bounds.lower if sizes is None else sizes) < options.small))
