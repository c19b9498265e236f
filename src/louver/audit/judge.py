"""Targets of an audit, their bounds, what each amounts to, and why."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import partial
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, vstack

from louver.audit.advise import Small, advise
from louver.audit.already import as_cells, known_already
from louver.audit.contradiction import contradiction
from louver.audit.explain import Cells, Reason, explain, forms_for
from louver.audit.groups import Asked, ask, box_cells
from louver.audit.hide import Pattern, hide
from louver.audit.load import Loaded
from louver.audit.nearly import followers
from louver.audit.options import AuditOptions
from louver.audit.result import Advice, AuditedCell, HidingPlan
from louver.audit.verdict import Question
from louver.audit.window import window
from louver.audit.words import in_words
from louver.errors import InfeasibleError, InputError
from louver.optim.kernels.audit.propagate import UNBOUNDED
from louver.run import Run
from louver.tables.descriptions import Box
from louver.tables.domain import Domain
from louver.tables.joint import decide, solve, witnesses_of
from louver.tables.pieces import Cross, Piece
from louver.tables.problem import Problem, build
from louver.tables.system import IntArray
from louver.tables.witnesses import Witnesses

__all__ = ["Findings", "judge"]

MAX_JOINT = 200_000
"""Cells of the finest cross up to which they are audited unless targets are named; beyond, only the small ones of tables that are published."""

JOINT, GROUPS = "all attributes", "groups"
SHARE_BOUNDS, SHARE_GROUPS, SHARE_REASONS = 0.6, 0.95, 0.85
"""Parts of the time after which bounds, groups, and reasons where there is something to explain, are no longer worked on."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Group:
    """Cells of one table or target: their joint cells, numbers, true counts, labels by number, and what a filter lets through.

    `units` are the different units of each cell, where units are known.
    """

    name: str
    assign: IntArray
    cells: IntArray
    true: IntArray | None
    units: IntArray | None
    labels: Callable[[int], dict[str, str]]
    where: dict[str, str] = field(default_factory=dict)

    def among(self, is_kept: NDArray[np.bool_]) -> _Group:
        """Some of the cells."""
        true = None if self.true is None else self.true[is_kept]
        units = None if self.units is None else self.units[is_kept]
        return replace(self, cells=self.cells[is_kept], true=true, units=units)

    @property
    def sizes(self) -> IntArray | None:
        """How many each cell counts for: units where they are known, people otherwise."""
        return self.true if self.units is None else self.units


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Findings:
    """Judged cells, advice where small cells are given away, and what was asked."""

    cells: tuple[AuditedCell, ...]
    advice: Advice | None
    question: Question
    n_small: int
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

    def followed_by(self, other: _Bounds) -> _Bounds:
        return _Bounds(
            lower=np.concatenate([self.lower, other.lower]),
            upper=np.concatenate([self.upper, other.upper]),
            certified=np.concatenate([self.certified, other.certified]),
            is_undecided=np.concatenate([self.is_undecided, other.is_undecided]),
        )

    def decided(
        self, chosen: IntArray, verdict: NDArray[np.int8], floor: IntArray, ceiling: IntArray
    ) -> _Bounds:
        """After a look at some that were undecided: 1 confined to [floor, ceiling], 0 not, -1 still not known."""
        lower, upper, is_undecided = self.lower.copy(), self.upper.copy(), self.is_undecided.copy()
        is_in = verdict == 1
        lower[chosen[is_in]] = np.maximum(lower[chosen[is_in]], floor[is_in])
        upper[chosen[is_in]] = np.minimum(upper[chosen[is_in]], ceiling[is_in])
        is_undecided[chosen] = verdict < 0
        return replace(self, lower=lower, upper=upper, is_undecided=is_undecided)


def judge(loaded: Loaded, options: AuditOptions, run: Run) -> Findings:
    """Bound, ask about all groups, classify, explain and advise, within the seconds of the options."""
    started = time.monotonic()
    try:
        answers = _answers(loaded, options, run, started)
    except InfeasibleError:
        if loaded.truth is not None:
            raise
        raise contradiction(loaded, run) from None
    groups, bounds = answers.groups, answers.bounds
    cells, true, sizes = _cells(groups), _true_counts(groups), _sizes(groups)
    status = _statuses(bounds, true, options)
    is_bad = _is_disclosed(bounds, status, sizes, options)
    small = _small(cells, bounds, np.flatnonzero(is_bad))
    reasons = explain(
        loaded, small.cells, small.floor, small.ceiling, run, started + SHARE_REASONS * options.seconds
    )
    advice = None
    if not options.no_advice and is_bad.any():
        deadline = started + max(options.seconds, time.monotonic() - started + 1)
        again = None if answers.question.has_targets else partial(_open_groups, options=options, run=run)
        advice = advise(loaded, small, reasons, len(options.tables), again, run, deadline)
    reason_of = dict(zip(np.flatnonzero(is_bad).tolist(), reasons, strict=True))
    plans: list[HidingPlan] = []
    if options.hide:
        plans = _plans(loaded, options, run, started + 2 * options.seconds)
    judged = _judged(loaded, groups, bounds, status, reason_of, true)
    question = answers.question
    if loaded.near and not is_bad.any() and not bounds.is_undecided.any():
        question = replace(question, near_small=_if_followed(loaded, options, run))
    return Findings(
        cells=tuple(judged),
        advice=advice,
        question=question,
        n_small=_n_distinct(
            answers.problem, cells.pick(np.flatnonzero(is_bad & (np.array(status) == "exact")))
        ),
        hide=tuple(plans),
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Answers:
    """Cells of tables and targets, then groups that are determined or may be, with what is known about them."""

    problem: Problem
    groups: list[_Group]
    bounds: _Bounds
    question: Question


def _answers(loaded: Loaded, options: AuditOptions, run: Run, started: float) -> _Answers:
    """Everything that the options ask."""
    groups = _asked(loaded, options)
    problem = build(loaded.domain, loaded.pieces, loaded.truth, loaded.is_possible)
    witnesses = witnesses_of(problem, run)
    targets = _Targets(
        problem=problem,
        witnesses=witnesses,
        cells=_cells(groups),
        true=_true_counts(groups),
        sizes=_sizes(groups),
        options=options,
        run=run,
    )
    bounds = targets.answered(started)
    is_late = bool(bounds.is_undecided.any()) and time.monotonic() > started + SHARE_GROUPS * options.seconds
    asked = None
    if options.publish is not None or not loaded.targets:
        known = _known(problem, groups, bounds, options)
        share = SHARE_BOUNDS if known.shape[0] else SHARE_GROUPS
        known = csr_array(vstack([known, _known_already(loaded, problem, options)], format="csr"))
        asked = ask(loaded, problem, witnesses, known, options.small, run, started + share * options.seconds)
    question = _question(loaded, options, groups, asked, is_late)
    if asked is not None:
        described, more = _described(loaded, witnesses, problem, asked)
        groups, bounds = [*groups, *described], bounds.followed_by(more)
    return _Answers(problem=problem, groups=groups, bounds=bounds, question=question)


def _if_followed(loaded: Loaded, options: AuditOptions, run: Run) -> int | None:
    """Small counts that readers work out who know the exceptions to rules that nearly hold; None where it is not found out."""
    rest = followers(loaded)
    if rest is None or loaded.truth is None:
        return 0 if _is_always_together(loaded) else None
    asked = options.model_copy(update={"decide": True, "within": 0.0})
    answers = _answers(rest, asked, run, time.monotonic())
    true = _true_counts(answers.groups)
    real = [_count(loaded, g.assign, loaded.domain.n_cells)[g.cells] for g in answers.groups]
    is_small = np.concatenate(real) < options.small
    status = _statuses(answers.bounds, true, asked)
    is_bad = is_small & _is_disclosed(answers.bounds, status, _sizes(answers.groups), asked)
    if is_bad.any():
        return _n_distinct(answers.problem, _cells(answers.groups).pick(np.flatnonzero(is_bad)))
    is_open = bool((is_small & answers.bounds.is_undecided).any()) or not answers.question.is_reached
    return None if is_open else 0


def _is_always_together(loaded: Loaded) -> bool:
    """Whether each piece names both columns of a rule or neither: it shows the exceptions itself."""
    named = [cross.names for piece in loaded.pieces for cross in piece.crosses if cross.names]
    return all(
        (one.determinant in names) == (one.dependent in names) for one in loaded.near for names in named
    )


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
    is_news[[cells[0] for cells in _shown_already(loaded, options) if len(cells) == 1]] = False
    joint = joint.among(is_news)
    if loaded.domain.n_cells <= MAX_JOINT:
        groups.append(joint)
    elif options.publish is not None:
        groups.append(joint.among(_is_small(joint, options.small)))
    return groups


def _cells(groups: list[_Group]) -> Cells:
    return Cells(assigns=tuple(g.assign for g in groups), cells=tuple(g.cells for g in groups))


def _true_counts(groups: list[_Group]) -> IntArray | None:
    """Of all cells; None where the records are not known."""
    true = [group.true for group in groups if group.true is not None]
    return np.concatenate(true) if len(true) == len(groups) else None


def _sizes(groups: list[_Group]) -> IntArray | None:
    """How many all cells count for; None where the records are not known."""
    sizes = [group.sizes for group in groups if group.sizes is not None]
    return np.concatenate(sizes) if len(sizes) == len(groups) else None


def _count(loaded: Loaded, assign: IntArray, n_groups: int) -> IntArray:
    """Units of groups of joint cells, or people where no units are known."""
    if loaded.units is not None:
        return loaded.units.count(assign, n_groups)
    assert loaded.truth is not None
    return np.bincount(assign[assign >= 0], loaded.truth[assign >= 0], n_groups).astype(np.int64)


def _left_open(loaded: Loaded, piece: Piece, options: AuditOptions) -> Iterator[_Group]:
    """Cells of an earlier table that it did not tell itself, and that may be small: what is new may give them away."""
    for margin in piece.margins:
        own = _Bounds.told(margin.lower, margin.upper)
        is_told = (own.lower == own.upper) | _is_disclosed(own, _statuses(own, None, options), None, options)
        is_few = own.lower < options.small
        if loaded.units is not None:
            is_few |= _count(loaded, loaded.domain.assign(margin.cross), len(is_few)) < options.small
        is_open = ~is_told & (is_few | (options.within > 0))
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
    where = {n: " or ".join(labels) for n, labels in cross.where.items() if n not in cross.by}
    group = _Group(
        name=name,
        assign=assign,
        cells=cells,
        true=true,
        units=None if loaded.units is None else loaded.units.count(assign, domain.size(cross))[cells],
        labels=lambda cell: domain.labels(cross, cell),
        where=where,
    )
    return group if only_below is None else group.among(_is_small(group, only_below))


def _is_small(group: _Group, below: int) -> NDArray[np.bool_]:
    """Cells with somebody and not many; none where the records are not known."""
    if group.sizes is None:
        return np.zeros(len(group.cells), dtype=bool)
    return np.asarray((group.sizes > 0) & (group.sizes < below))


def _joint(loaded: Loaded) -> _Group:
    cells = np.arange(loaded.domain.n_cells, dtype=np.int64)
    return _Group(
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


# Bounds -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Targets:
    """Cells that are bounded or decided: how many people each has and how many it counts for, where the records are known."""

    problem: Problem
    witnesses: Witnesses
    cells: Cells
    true: IntArray | None
    sizes: IntArray | None
    options: AuditOptions
    run: Run

    def answered(self, started: float) -> _Bounds:
        """Bounds of the cells, or only whether they are given away; what stays open is looked at again while there is time."""
        bounds = self._decided() if self.options.decide else self._bounded()
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

    def _bounded(self) -> _Bounds:
        forms = forms_for(self.problem, self.cells)
        answer = solve(self.problem, forms, self.run, SHARE_BOUNDS * self.options.seconds, self.witnesses)
        return _Bounds(
            lower=answer.lower,
            upper=answer.upper,
            certified=answer.certified,
            is_undecided=np.zeros(len(answer.lower), dtype=bool)
            if self.true is None
            else self._is_wanted(self.true) & (answer.verdict(*window(self.true, self.options.within)) < 0),
        )

    def _decided(self) -> _Bounds:
        """Only whether cells are given away; bounds of the others stay open."""
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
            # Large counts may be known exactly, not nearly.
            chosen = chosen[is_confined & ~is_small[chosen]]
        return _Bounds(lower=lower, upper=upper, certified=certified, is_undecided=is_undecided)

    def _is_wanted(self, true: IntArray) -> NDArray[np.bool_]:
        """Counts that must not be given away."""
        is_small = (true if self.sizes is None else self.sizes) < self.options.small
        return np.asarray((true > 0) & (is_small | (self.options.within > 0)))


# Groups -----------------------------------------------------------------------------------------------------------


def _known(problem: Problem, groups: list[_Group], bounds: _Bounds, options: AuditOptions) -> csr_array:
    """Small cells that are exact, as sums of unknowns."""
    is_small = (bounds.lower == bounds.upper) & _is_small_count(bounds, _sizes(groups), options)
    return forms_for(problem, _cells(groups).pick(np.flatnonzero(is_small))).upper


def _known_already(loaded: Loaded, problem: Problem, options: AuditOptions) -> csr_array:
    """Small groups that an earlier file shows by itself, as sums of unknowns."""
    return forms_for(problem, as_cells(loaded.domain, _shown_already(loaded, options))).upper


def _shown_already(loaded: Loaded, options: AuditOptions) -> list[IntArray]:
    return known_already(loaded.domain, loaded.pieces, options.small, loaded.units)


def _described(
    loaded: Loaded, witnesses: Witnesses, problem: Problem, asked: Asked
) -> tuple[list[_Group], _Bounds]:
    """Groups that are determined, or may be, as cells of blocks of groups that share nobody."""
    domain, counts = loaded.domain, witnesses.by_cell(problem)[0]
    blocks: list[tuple[IntArray, list[Box]]] = []
    for box in (*asked.found, *asked.undecided):
        cells = box_cells(domain.shape, box)
        block = next((block for block in blocks if (block[0][cells] < 0).all()), None)
        if block is None:
            block = (np.full(domain.n_cells, -1, dtype=np.int64), [])
            blocks.append(block)
        block[0][cells] = len(block[1])
        block[1].append(box)
    groups = [_block(loaded, assign, boxes) for assign, boxes in blocks]
    order = [box for _, boxes in blocks for box in boxes]
    is_found = np.array([box in set(asked.found) for box in order], dtype=bool)
    count = np.array([counts[box_cells(domain.shape, box)].sum() for box in order], dtype=np.int64)
    bounds = _Bounds(
        lower=np.where(is_found, count, 0),
        upper=np.where(is_found, count, UNBOUNDED),
        certified=is_found,
        is_undecided=~is_found,
    )
    return groups, bounds


def _open_groups(loaded: Loaded, deadline: float, *, options: AuditOptions, run: Run) -> Small:
    """Groups that pieces determine, or may, as far as is found before a deadline."""
    problem = build(loaded.domain, loaded.pieces, loaded.truth, loaded.is_possible)
    witnesses = witnesses_of(problem, run)
    nothing = csr_array((0, problem.system.n_columns), dtype=np.int64)
    asked = ask(loaded, problem, witnesses, nothing, options.small, run, deadline)
    described: list[_Group] = []
    if asked is not None:
        described, _ = _described(loaded, witnesses, problem, asked)
    counts = witnesses.by_cell(problem)[0]
    each = [np.bincount(g.assign[g.assign >= 0], counts[g.assign >= 0], len(g.cells)) for g in described]
    exact = np.concatenate([np.zeros(0), *each]).astype(np.int64)
    return Small(cells=_cells(described), floor=exact, ceiling=exact)


def _block(loaded: Loaded, assign: IntArray, boxes: list[Box]) -> _Group:
    true = None
    if loaded.truth is not None:
        true = np.bincount(assign[assign >= 0], loaded.truth[assign >= 0], len(boxes)).astype(np.int64)
    return _Group(
        name=GROUPS,
        assign=assign,
        cells=np.arange(len(boxes), dtype=np.int64),
        true=true,
        units=None if loaded.units is None else loaded.units.count(assign, len(boxes)),
        labels=lambda cell: _box_labels(loaded.domain, boxes[cell]),
    )


def _box_labels(domain: Domain, box: Box) -> dict[str, str]:
    """Labels of a group, without attributes all of whose labels it has."""
    found = {}
    for attribute, classes, size, chosen in zip(
        domain.attributes, domain.classes, domain.shape, box, strict=True
    ):
        if len(chosen) < size:
            labels = [attribute.labels[label] for label in np.flatnonzero(np.isin(classes, chosen))]
            found[attribute.name] = " or ".join(labels)
    return found


def _question(
    loaded: Loaded, options: AuditOptions, groups: list[_Group], asked: Asked | None, is_late: bool
) -> Question:
    names = tuple(attribute.name for attribute in loaded.domain.attributes)
    return Question(
        cells=sum(len(group.cells) for group in groups),
        groups=None if asked is None else asked.n_asked,
        attributes=names,
        most=len(names) if asked is None else asked.descriptions.most,
        some_sets=() if asked is None else asked.descriptions.some_sets,
        is_whole=asked is None or (asked.is_whole and asked.descriptions.is_whole),
        is_late=is_late or (asked is not None and asked.is_late),
        has_targets=bool(loaded.targets) and options.publish is None,
        dependencies=loaded.dependencies,
        within=options.within,
        household=loaded.household,
        unit=None if loaded.units is None else loaded.units.column,
        counts_people=options.count_people,
        near=tuple((one.determinant, one.dependent, one.share) for one in loaded.near),
    )


def _n_distinct(problem: Problem, cells: Cells) -> int:
    """Different groups of people among cells: tables often share them."""
    forms = forms_for(problem, cells).upper
    forms.sort_indices()
    return len({forms.indices[a:b].tobytes() for a, b in pairwise(forms.indptr.tolist())})


# Further cells to hide --------------------------------------------------------------------------------------------


def _plans(loaded: Loaded, options: AuditOptions, run: Run, deadline: float) -> list[HidingPlan]:
    """A pattern for each table whose small cells are hidden; together they protect what the audit asks about."""
    if loaded.truth is None:
        raise InputError(
            "option --hide needs the records; leave it out for an outsider's audit.", option="--hide"
        )
    limit = max(table.below for table in options.tables if table.below is not None)
    asked = options.model_copy(update={"small": min(options.small, limit)})

    def ask(pieces: Sequence[Piece], seconds: float) -> tuple[Small, bool]:
        changed = asked.model_copy(update={"seconds": max(seconds, 1e-3), "decide": True})
        return _given_away(replace(loaded, pieces=tuple(pieces)), changed, run)

    found = hide(loaded, options.tables, options.within, ask, run, deadline)
    return [_plan(loaded, number, pattern) for number, pattern in found.items()]


def _given_away(loaded: Loaded, options: AuditOptions, run: Run) -> tuple[Small, bool]:
    """Small counts that the pieces give away, or may: this audit's own decision, and whether it asked all it had to."""
    answers = _answers(loaded, options, run, time.monotonic())
    bounds, cells, true = answers.bounds, _cells(answers.groups), _true_counts(answers.groups)
    assert true is not None
    sizes = _sizes(answers.groups)
    assert sizes is not None
    is_bad = _is_disclosed(bounds, _statuses(bounds, true, options), sizes, options) | bounds.is_undecided
    chosen = np.flatnonzero(is_bad & (sizes < options.small))
    floor, ceiling = window(true[chosen], options.within)
    return Small(cells=cells.pick(chosen), floor=floor, ceiling=ceiling), answers.question.is_reached


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


def _is_disclosed(
    bounds: _Bounds, status: list[str], sizes: IntArray | None, options: AuditOptions
) -> NDArray[np.bool_]:
    """Small and exact, or too close."""
    names = np.array(status, dtype=object)
    is_small = _is_small_count(bounds, sizes, options)
    disclosed: NDArray[np.bool_] = ((names == "exact") & is_small) | (names == "within")
    return disclosed


def _is_small_count(bounds: _Bounds, sizes: IntArray | None, options: AuditOptions) -> NDArray[np.bool_]:
    """Whether a count, if it is exact, is one of few: of units where they are known."""
    return np.asarray((bounds.lower > 0) & ((bounds.lower if sizes is None else sizes) < options.small))


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
        for place, cell in enumerate(group.cells):
            reason = reason_of.get(number)
            upper = int(bounds.upper[number])
            found.append(
                AuditedCell(
                    table=group.name,
                    cell=group.labels(int(cell)),
                    where=group.where,
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
                    units=None if group.units is None else int(group.units[place]),
                )
            )
            number += 1
    return found
