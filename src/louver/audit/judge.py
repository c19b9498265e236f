"""Targets of an audit, their bounds, what each amounts to, and why."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from louver.audit.advise import Small, advise
from louver.audit.already import known_already
from louver.audit.contradiction import contradiction
from louver.audit.domain import Domain
from louver.audit.explain import Cells, Reason, explain, forms_for
from louver.audit.hide import Pattern, hide
from louver.audit.joint import Answer, decide, solve
from louver.audit.load import Loaded
from louver.audit.options import AuditOptions
from louver.audit.pieces import Cross, Piece
from louver.audit.problem import build
from louver.audit.result import Advice, AuditedCell, HidingPlan
from louver.audit.system import IntArray
from louver.audit.window import window
from louver.audit.words import in_words
from louver.errors import InfeasibleError, InputError
from louver.optim.kernels.audit.propagate import UNBOUNDED
from louver.run import Run

__all__ = ["Findings", "judge", "looks_at_all"]

MAX_JOINT = 200_000
"""Cells of the finest cross up to which they are audited unless targets are named; beyond, only the small ones of tables that are published."""

JOINT = "all attributes"
SHARE_BOUNDS, SHARE_REASONS = 0.6, 0.85
"""Parts of the time after which bounds, and after which reasons, are no longer worked on."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Group:
    """Cells of one table or target: their joint cells, numbers, true counts, and labels by number."""

    name: str
    assign: IntArray
    cells: IntArray
    true: IntArray | None
    labels: Callable[[int], dict[str, str]]

    def among(self, is_kept: NDArray[np.bool_]) -> _Group:
        """Some of the cells."""
        true = None if self.true is None else self.true[is_kept]
        return replace(self, cells=self.cells[is_kept], true=true)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Findings:
    """Judged cells, and advice where small cells are given away."""

    cells: tuple[AuditedCell, ...]
    advice: Advice | None
    hide: tuple[HidingPlan, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Bounds:
    """Bounds of all targets; in a decision, of those that are confined.

    `is_undecided` where it was not found out whether a count that must not be given away is.
    """

    lower: IntArray
    upper: IntArray
    certified: NDArray[np.bool_]
    is_undecided: NDArray[np.bool_]

    @classmethod
    def told(cls, lower: IntArray, upper: IntArray) -> _Bounds:
        """As a table tells them."""
        nowhere = np.zeros(len(lower), dtype=bool)
        return cls(lower=lower, upper=upper, certified=nowhere, is_undecided=nowhere)


def judge(loaded: Loaded, options: AuditOptions, run: Run) -> Findings:
    """Bound, classify, explain and advise, within the seconds of the options."""
    started = time.monotonic()
    groups = _asked(loaded, options)
    cells = Cells(assigns=tuple(g.assign for g in groups), cells=tuple(g.cells for g in groups))
    true = None if loaded.truth is None else np.concatenate([_true(group) for group in groups])
    if options.decide:
        bounds = _decided(loaded, cells, true, options, run)
    else:
        try:
            bounds = _bounded(loaded, cells, true, options, run)
        except InfeasibleError:
            if loaded.truth is not None:
                raise
            raise contradiction(loaded, run) from None
    status = _statuses(bounds, true, options)
    is_bad = _is_disclosed(bounds, status, options)
    small = _small(cells, bounds, np.flatnonzero(is_bad))
    reasons = explain(
        loaded, small.cells, small.floor, small.ceiling, run, started + SHARE_REASONS * options.seconds
    )
    advice = None
    if not options.no_advice and is_bad.any():
        deadline = started + max(options.seconds, time.monotonic() - started + 1)
        advice = advise(loaded, small, reasons, len(options.tables), run, deadline)
    reason_of = dict(zip(np.flatnonzero(is_bad).tolist(), reasons, strict=True))
    plans: list[HidingPlan] = []
    if options.hide:
        plans = _plans(loaded, options, run, started + 2 * options.seconds)
    judged = _judged(loaded, groups, bounds, status, reason_of, true)
    return Findings(cells=tuple(judged), advice=advice, hide=tuple(plans))


# Targets ----------------------------------------------------------------------------------------------------------


def _asked(loaded: Loaded, options: AuditOptions) -> list[_Group]:
    """The named targets, or every cell of all tables, earlier ones too, and of the finest cross; both where tables are published."""
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
    is_news = np.ones(len(joint.cells), dtype=bool)
    is_news[
        [cells[0] for cells in known_already(loaded.domain, loaded.pieces, options.small) if len(cells) == 1]
    ] = False
    joint = joint.among(is_news)
    if loaded.domain.n_cells <= MAX_JOINT:
        groups.append(joint)
    elif options.publish is not None:
        groups.append(joint.among(_is_small(joint, options.small)))
    return groups


def looks_at_all(loaded: Loaded, options: AuditOptions) -> bool:
    """Whether the small cells of the finest cross are among those that are judged, or nobody asked for them."""
    return loaded.domain.n_cells <= MAX_JOINT or options.publish is not None or bool(loaded.targets)


def _left_open(loaded: Loaded, piece: Piece, options: AuditOptions) -> Iterator[_Group]:
    """Cells of an earlier table that it did not tell itself, and that may be small: what is new may give them away."""
    for margin in piece.margins:
        own = _Bounds.told(margin.lower, margin.upper)
        is_told = (own.lower == own.upper) | _is_disclosed(own, _statuses(own, None, options), options)
        is_open = ~is_told & ((own.lower < options.small) | (options.within > 0))
        if is_open.any():
            group = _group(loaded, piece.name, margin.cross, None)
            yield group.among(is_open[group.cells])
    for shares in piece.shares:
        yield _group(loaded, piece.name, shares.cross, None)


def _distinct(crosses: tuple[Cross, ...]) -> list[Cross]:
    """Crosses without repetition."""
    kept: list[Cross] = []
    for cross in crosses:
        if cross not in kept:
            kept.append(cross)
    return kept


def _group(loaded: Loaded, name: str, cross: Cross, only_below: int | None) -> _Group:
    domain = loaded.domain
    assign = domain.assign(cross)
    cells = np.unique(assign[assign >= 0])
    true = None
    if loaded.truth is not None:
        true = domain.sums(cross, loaded.truth)[cells]
    if only_below is not None and true is None:
        raise InputError(f"{name} asks for small cells only, which needs the records.", option="targets")
    group = _Group(
        name=name, assign=assign, cells=cells, true=true, labels=lambda cell: domain.labels(cross, cell)
    )
    return group if only_below is None else group.among(_is_small(group, only_below))


def _is_small(group: _Group, below: int) -> NDArray[np.bool_]:
    """Cells with somebody and not many; none where the records are not known."""
    if group.true is None:
        return np.zeros(len(group.cells), dtype=bool)
    return np.asarray((group.true > 0) & (group.true < below))


def _joint(loaded: Loaded) -> _Group:
    cells = np.arange(loaded.domain.n_cells, dtype=np.int64)
    return _Group(
        name=JOINT,
        assign=cells,
        cells=cells,
        true=loaded.truth,
        labels=lambda cell: _class_labels(loaded.domain, cell),
    )


def _class_labels(domain: Domain, cell: int) -> dict[str, str]:
    """Labels of a joint cell; a class of several labels is written with all of them."""
    codes = np.unravel_index(cell, domain.shape)
    return {
        attribute.name: " or ".join(attribute.labels[label] for label in np.flatnonzero(classes == code))
        for attribute, classes, code in zip(domain.attributes, domain.classes, codes, strict=True)
    }


def _true(group: _Group) -> IntArray:
    assert group.true is not None
    return group.true


# Bounds -----------------------------------------------------------------------------------------------------------


def _bounded(loaded: Loaded, cells: Cells, true: IntArray | None, options: AuditOptions, run: Run) -> _Bounds:
    problem = build(loaded.domain, loaded.pieces, loaded.truth, loaded.is_possible)
    answer = solve(problem, forms_for(problem, cells), run, SHARE_BOUNDS * options.seconds)
    return _Bounds(
        lower=answer.lower,
        upper=answer.upper,
        certified=answer.certified,
        is_undecided=np.zeros(len(answer.lower), dtype=bool)
        if true is None
        else _is_undecided(answer, true, options),
    )


def _is_undecided(answer: Answer, true: IntArray, options: AuditOptions) -> NDArray[np.bool_]:
    """Counts not to be given away that are neither confined to what is too close to them nor attained outside of it."""
    return _is_wanted(true, options) & (answer.verdict(*window(true, options.within)) < 0)


def _is_wanted(true: IntArray, options: AuditOptions) -> NDArray[np.bool_]:
    """Counts that must not be given away."""
    return np.asarray((true > 0) & ((true < options.small) | (options.within > 0)))


def _decided(loaded: Loaded, cells: Cells, true: IntArray | None, options: AuditOptions, run: Run) -> _Bounds:
    """Only whether cells are given away; bounds of the others stay open."""
    if true is None:
        raise InputError(
            "option --decide needs the records; leave it out for an outsider's audit.", option="decide"
        )
    lower, upper = np.zeros_like(true), np.full_like(true, UNBOUNDED)
    certified, is_undecided = np.zeros((2, len(true)), dtype=bool)
    chosen = np.flatnonzero(_is_wanted(true, options))
    problem = build(loaded.domain, loaded.pieces, loaded.truth, loaded.is_possible)
    deadline = time.monotonic() + SHARE_BOUNDS * options.seconds
    for within in dict.fromkeys((options.within, 0.0)):
        forms = forms_for(problem, cells.pick(chosen))
        floor, ceiling = window(true[chosen], within)
        verdict = decide(problem, forms, floor, ceiling, run, deadline - time.monotonic())
        is_confined = verdict == 1
        lower[chosen[is_confined]], upper[chosen[is_confined]] = floor[is_confined], ceiling[is_confined]
        certified[chosen], is_undecided[chosen] = verdict >= 0, verdict < 0
        # Large counts may be known exactly, not nearly.
        chosen = chosen[is_confined & (true[chosen] >= options.small)]
    return _Bounds(lower=lower, upper=upper, certified=certified, is_undecided=is_undecided)


# Further cells to hide --------------------------------------------------------------------------------------------


def _plans(loaded: Loaded, options: AuditOptions, run: Run, deadline: float) -> list[HidingPlan]:
    """A pattern for each table whose small cells are hidden; together they protect what the audit asks about."""
    if loaded.truth is None:
        raise InputError(
            "option --hide needs the records; leave it out for an outsider's audit.", option="--hide"
        )
    limit = max(table.below for table in options.tables if table.below is not None)
    asked = options.model_copy(update={"small": min(options.small, limit)})

    def ask(pieces: Sequence[Piece], seconds: float) -> Small:
        changed = asked.model_copy(update={"seconds": max(seconds, 1e-3)})
        return _given_away(replace(loaded, pieces=tuple(pieces)), changed, run)

    found = hide(loaded, options.tables, options.within, ask, run, deadline)
    return [_plan(loaded, number, pattern) for number, pattern in found.items()]


def _given_away(loaded: Loaded, options: AuditOptions, run: Run) -> Small:
    """Small counts that the pieces give away, or may: this audit's own decision about all that it asks."""
    groups = _asked(loaded, options)
    cells = Cells(assigns=tuple(g.assign for g in groups), cells=tuple(g.cells for g in groups))
    true = np.concatenate([_true(group) for group in groups])
    bounds = _decided(loaded, cells, true, options, run)
    is_bad = _is_disclosed(bounds, _statuses(bounds, true, options), options) | bounds.is_undecided
    chosen = np.flatnonzero(is_bad & (true < options.small))
    floor, ceiling = window(true[chosen], options.within)
    return Small(cells=cells.pick(chosen), floor=floor, ceiling=ceiling)


def _plan(loaded: Loaded, number: int, found: Pattern) -> HidingPlan:
    piece = loaded.pieces[number]
    cells = [
        loaded.domain.labels(margin.cross, int(cell))
        for margin, added in zip(piece.margins, found.added, strict=True)
        for cell in np.flatnonzero(added)
    ]
    return HidingPlan(
        table=piece.name,
        cells=tuple(cells),
        small_cells=found.n_primary,
        by_mark=found.by_mark,
        is_safe=found.is_safe,
        is_possible=found.is_possible,
        is_least=found.is_least,
    )


# What it amounts to -----------------------------------------------------------------------------------------------


def _statuses(bounds: _Bounds, true: IntArray | None, options: AuditOptions) -> list[str]:
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
    """Whether an interval lies within so many percent of the true count; of some count where it is not known."""
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


def _is_disclosed(bounds: _Bounds, status: list[str], options: AuditOptions) -> NDArray[np.bool_]:
    """Small and exact, or too close."""
    names = np.array(status, dtype=object)
    is_small = (bounds.lower > 0) & (bounds.lower < options.small)
    disclosed: NDArray[np.bool_] = ((names == "exact") & is_small) | (names == "within")
    return disclosed


def _small(cells: Cells, bounds: _Bounds, chosen: IntArray) -> Small:
    return Small(cells=cells.pick(chosen), floor=bounds.lower[chosen], ceiling=bounds.upper[chosen])


def _judged(
    loaded: Loaded,
    groups: list[_Group],
    bounds: _Bounds,
    status: list[str],
    reason_of: dict[int, Reason | None],
    true: IntArray | None,
) -> list[AuditedCell]:
    names = [piece.name for piece in loaded.pieces]
    found, number = [], 0
    for group in groups:
        for cell in group.cells:
            reason = reason_of.get(number)
            upper = int(bounds.upper[number])
            found.append(
                AuditedCell(
                    table=group.name,
                    cell=group.labels(int(cell)),
                    lower=int(bounds.lower[number]),
                    upper=None if upper >= UNBOUNDED else upper,
                    certified=bool(bounds.certified[number]),
                    is_undecided=bool(bounds.is_undecided[number]),
                    status=status[number],
                    because=None if reason is None else tuple(names[piece] for piece in reason.pieces),
                    is_smallest=reason is not None and reason.is_smallest,
                    words=None
                    if reason is None
                    else in_words(loaded, group.assign == cell, reason, int(bounds.lower[number]), upper),
                    true_count=None if true is None else int(true[number]),
                )
            )
            number += 1
    return found
