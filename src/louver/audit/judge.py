"""An audit from pieces to findings: bounds, groups, reasons, advice and cells to hide."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise

import numpy as np
from scipy.sparse import csr_array

from louver.audit.advise import advise
from louver.audit.cells import AuditCells, Small, forms_for, window
from louver.audit.explain import Reason, contradiction, explain, in_words
from louver.audit.groups import FilesAlone, GroupSearch, box_cells, search_groups
from louver.audit.hide import Pattern, hide
from louver.audit.load import KINDS, LoadedTables, followers, suspected
from louver.audit.options import AuditOptions
from louver.audit.result import Advice, AuditedCell, HidingPlan
from louver.audit.targets import (
    GROUPS,
    SHARE_BOUNDS,
    SHARE_GROUPS,
    SHARE_REASONS,
    TargetBounds,
    TargetCells,
    TargetSearch,
    choose_targets,
    classify,
    count_members,
    group_sizes,
    is_disclosed,
    is_small_count,
    join_cells,
    true_counts,
    without_shown,
)
from louver.audit.verdict import AuditQuestion
from louver.errors import InfeasibleError, InputError
from louver.optim.kernels.audit.propagate import UNBOUNDED
from louver.run import Run
from louver.tables.descriptions import Box
from louver.tables.evidence import Witnesses
from louver.tables.pieces import Domain
from louver.tables.problem import TablesProblem
from louver.tables.solve import witnesses_of
from louver.tables.system import IntArray

__all__ = ["Findings", "judge"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Findings:
    """Findings about cells, advice if small cells are disclosed, and the question that was examined."""

    cells: tuple[AuditedCell, ...]
    advice: Advice | None
    question: AuditQuestion
    n_small: int
    hide: tuple[HidingPlan, ...] = ()


def judge(loaded: LoadedTables, options: AuditOptions, run: Run) -> Findings:
    """Bound, test all groups, classify, explain and advise, within the time limit of the options."""
    started = time.monotonic()
    try:
        answers = _answers(loaded, options, run, started)
    except InfeasibleError:
        if loaded.truth is not None:
            raise
        raise contradiction(loaded, run) from None
    groups, bounds = answers.groups, answers.bounds
    cells, true, sizes = join_cells(groups), true_counts(groups), group_sizes(groups)
    status = classify(bounds, true, options)
    is_bad = is_disclosed(bounds, status, sizes, options)
    small = _small(cells, bounds, np.flatnonzero(is_bad))
    reasons = explain(
        loaded, small.cells, small.floor, small.ceiling, run, started + SHARE_REASONS * options.seconds
    )
    advice = None
    if not options.no_advice and is_bad.any():
        deadline = started + max(options.seconds, time.monotonic() - started + 1)
        again = None if answers.question.has_targets else partial(_open_groups, options=options, run=run)
        advice = advise(
            loaded, small, reasons, [KINDS[table.kind] for table in options.tables], again, run, deadline
        )
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
    """Cells of tables and targets, followed by groups that are or may be determined, with the findings about each."""

    problem: TablesProblem
    groups: list[TargetCells]
    bounds: TargetBounds
    question: AuditQuestion


def _answers(loaded: LoadedTables, options: AuditOptions, run: Run, started: float) -> _Answers:
    """All answers that the options request."""
    files = FilesAlone(loaded, run) if any(piece.is_file for piece in loaded.pieces) else None
    groups = choose_targets(loaded, options)
    problem = loaded.problem()
    witnesses = witnesses_of(problem, run)
    targets = TargetSearch(
        problem=problem,
        witnesses=witnesses,
        cells=join_cells(groups),
        true=true_counts(groups),
        sizes=group_sizes(groups),
        options=options,
        run=run,
    )
    bounds = targets.answered(started)
    if files is not None and (options.publish is not None or not loaded.targets):
        shows = partial(files.shows, deadline=started + SHARE_GROUPS * options.seconds)
        groups, bounds = without_shown(groups, bounds, options.small, shows)
    is_late = bool(bounds.is_undecided.any()) and time.monotonic() > started + SHARE_GROUPS * options.seconds
    search = None
    if options.publish is not None or not loaded.targets:
        known = _known(problem, groups, bounds, options)
        share = SHARE_BOUNDS if known.shape[0] else SHARE_GROUPS
        search = search_groups(
            loaded, problem, witnesses, known, options.small, run, started + share * options.seconds, files
        )
    question = _question(loaded, options, groups, search, is_late)
    if search is not None:
        described, more = _described(loaded, witnesses, problem, search)
        groups, bounds = [*groups, *described], bounds.followed_by(more)
    return _Answers(problem=problem, groups=groups, bounds=bounds, question=question)


def _if_followed(loaded: LoadedTables, options: AuditOptions, run: Run) -> int | None:
    """Small counts that readers who know the exceptions to nearly exact rules can derive; None if this is undecided."""
    rest = followers(loaded)
    if rest is None or loaded.truth is None:
        return 0 if _is_always_together(loaded) else None
    search = options.model_copy(update={"decide": True, "within": 0.0})
    answers = _answers(rest, search, run, time.monotonic())
    true = true_counts(answers.groups)
    real = [count_members(loaded, g.assign, loaded.domain.n_cells)[g.cells] for g in answers.groups]
    is_small = np.concatenate(real) < options.small
    status = classify(answers.bounds, true, search)
    is_bad = is_small & is_disclosed(answers.bounds, status, group_sizes(answers.groups), search)
    if is_bad.any():
        return _n_distinct(answers.problem, join_cells(answers.groups).pick(np.flatnonzero(is_bad)))
    is_open = bool((is_small & answers.bounds.is_undecided).any()) or not answers.question.is_complete
    return None if is_open else 0


def _is_always_together(loaded: LoadedTables) -> bool:
    """Whether each piece names both columns of a rule or neither; a piece with both shows the exceptions itself."""
    crossed = [cross.names for piece in loaded.pieces for cross in piece.crosses if cross.names]
    return all(
        (one.determinant in names) == (one.dependent in names) for one in loaded.near for names in crossed
    )


# Targets ----------------------------------------------------------------------------------------------------------


# Bounds -----------------------------------------------------------------------------------------------------------


# Groups -----------------------------------------------------------------------------------------------------------


def _known(
    problem: TablesProblem, groups: list[TargetCells], bounds: TargetBounds, options: AuditOptions
) -> csr_array:
    """Small cells that are exact, as sums of unknowns."""
    is_small = (bounds.lower == bounds.upper) & is_small_count(bounds, group_sizes(groups), options)
    return forms_for(problem, join_cells(groups).pick(np.flatnonzero(is_small))).upper


def _described(
    loaded: LoadedTables, witnesses: Witnesses, problem: TablesProblem, search: GroupSearch
) -> tuple[list[TargetCells], TargetBounds]:
    """Groups that are or may be determined, as cells of blocks of groups with no people in common."""
    domain, counts = loaded.domain, witnesses.by_cell(problem)[0]
    blocks: list[tuple[IntArray, list[Box]]] = []
    for box in (*search.found, *search.undecided):
        cells = box_cells(domain.shape, box)
        block = next((block for block in blocks if (block[0][cells] < 0).all()), None)
        if block is None:
            block = (np.full(domain.n_cells, -1, dtype=np.int64), [])
            blocks.append(block)
        block[0][cells] = len(block[1])
        block[1].append(box)
    groups = [_block(loaded, assign, boxes) for assign, boxes in blocks]
    order = [box for _, boxes in blocks for box in boxes]
    is_found = np.array([box in set(search.found) for box in order], dtype=bool)
    count = np.array([counts[box_cells(domain.shape, box)].sum() for box in order], dtype=np.int64)
    bounds = TargetBounds(
        lower=np.where(is_found, count, 0),
        upper=np.where(is_found, count, UNBOUNDED),
        certified=is_found,
        is_undecided=~is_found,
    )
    return groups, bounds


def _open_groups(loaded: LoadedTables, deadline: float, *, options: AuditOptions, run: Run) -> Small:
    """Groups that pieces determine or may determine, as far as they are found before a deadline."""
    problem = loaded.problem()
    witnesses = witnesses_of(problem, run)
    nothing = csr_array((0, problem.system.n_columns), dtype=np.int64)
    files = FilesAlone(loaded, run) if any(piece.is_file for piece in loaded.pieces) else None
    search = search_groups(loaded, problem, witnesses, nothing, options.small, run, deadline, files)
    described: list[TargetCells] = []
    if search is not None:
        described, _ = _described(loaded, witnesses, problem, search)
    counts = witnesses.by_cell(problem)[0]
    each = [np.bincount(g.assign[g.assign >= 0], counts[g.assign >= 0], len(g.cells)) for g in described]
    exact = np.concatenate([np.zeros(0), *each]).astype(np.int64)
    return Small(cells=join_cells(described), floor=exact, ceiling=exact)


def _block(loaded: LoadedTables, assign: IntArray, boxes: list[Box]) -> TargetCells:
    true = None
    if loaded.truth is not None:
        true = np.bincount(assign[assign >= 0], loaded.truth[assign >= 0], len(boxes)).astype(np.int64)
    return TargetCells(
        name=GROUPS,
        assign=assign,
        cells=np.arange(len(boxes), dtype=np.int64),
        true=true,
        units=None if loaded.units is None else loaded.units.count(assign, len(boxes)),
        labels=lambda cell: _box_labels(loaded.domain, boxes[cell]),
    )


def _box_labels(domain: Domain, box: Box) -> dict[str, str]:
    """Labels of a group, without the attributes of which it has all labels."""
    found = {}
    for attribute, classes, size, chosen in zip(
        domain.attributes, domain.classes, domain.shape, box, strict=True
    ):
        if len(chosen) < size:
            labels = [attribute.labels[label] for label in np.flatnonzero(np.isin(classes, chosen))]
            found[attribute.name] = " or ".join(labels)
    return found


def _question(
    loaded: LoadedTables,
    options: AuditOptions,
    groups: list[TargetCells],
    search: GroupSearch | None,
    is_late: bool,
) -> AuditQuestion:
    names = tuple(attribute.name for attribute in loaded.domain.attributes)
    return AuditQuestion(
        cells=sum(len(group.cells) for group in groups),
        groups=None if search is None else search.n_tested,
        attributes=names,
        most=len(names) if search is None else search.descriptions.most,
        some_sets=() if search is None else search.descriptions.some_sets,
        is_whole=search is None or (search.is_whole and search.descriptions.is_whole),
        is_late=is_late or (search is not None and search.is_late),
        has_targets=bool(loaded.targets) and options.publish is None,
        dependencies=loaded.dependencies,
        within=options.within,
        household=loaded.household,
        unit=None if loaded.units is None else loaded.units.column,
        counts_people=options.count_people,
        near=tuple((one.determinant, one.dependent, one.share) for one in loaded.near),
        files=tuple(piece.name for piece in loaded.pieces if piece.states_more),
    )


def _n_distinct(problem: TablesProblem, cells: AuditCells) -> int:
    """Number of distinct groups of people among cells; tables often share groups."""
    forms = forms_for(problem, cells).upper
    forms.sort_indices()
    return len({forms.indices[a:b].tobytes() for a, b in pairwise(forms.indptr.tolist())})


# Further cells to hide --------------------------------------------------------------------------------------------


def _plans(loaded: LoadedTables, options: AuditOptions, run: Run, deadline: float) -> list[HidingPlan]:
    """A pattern for each table whose small cells are hidden; together they protect the counts that the audit examines."""
    if loaded.truth is None:
        raise InputError(
            "option --hide needs the records; leave it out for an outsider's audit.", option="--hide"
        )
    loaded = suspected(loaded)
    limit = max(table.below for table in options.tables if table.below is not None)
    search = options.model_copy(update={"small": min(options.small, limit)})

    def decide_again(changed: LoadedTables, seconds: float) -> tuple[Small, bool]:
        asked = search.model_copy(update={"seconds": max(seconds, 1e-3), "decide": True})
        return _disclosed_counts(changed, asked, run)

    found = hide(loaded, options.tables, options.within, decide_again, run, deadline)
    return [_plan(loaded, number, pattern) for number, pattern in found.items()]


def _disclosed_counts(loaded: LoadedTables, options: AuditOptions, run: Run) -> tuple[Small, bool]:
    """Small counts that the pieces disclose or may disclose, by this audit's own decision, and whether it was complete."""
    answers = _answers(loaded, options, run, time.monotonic())
    bounds, cells, true = answers.bounds, join_cells(answers.groups), true_counts(answers.groups)
    assert true is not None
    sizes = group_sizes(answers.groups)
    assert sizes is not None
    is_bad = is_disclosed(bounds, classify(bounds, true, options), sizes, options) | bounds.is_undecided
    chosen = np.flatnonzero(is_bad & (sizes < options.small))
    floor, ceiling = window(true[chosen], options.within)
    return Small(cells=cells.pick(chosen), floor=floor, ceiling=ceiling), answers.question.is_complete


def _plan(loaded: LoadedTables, number: int, found: Pattern) -> HidingPlan:
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
        is_safe=found.is_safe and not any(piece.states_more for piece in loaded.pieces),
        is_possible=found.is_possible,
        is_least=found.is_least,
    )


# Verdict ----------------------------------------------------------------------------------------------------------


def _small(cells: AuditCells, bounds: TargetBounds, chosen: IntArray) -> Small:
    return Small(cells=cells.pick(chosen), floor=bounds.lower[chosen], ceiling=bounds.upper[chosen])


def _judged(
    loaded: LoadedTables,
    groups: list[TargetCells],
    bounds: TargetBounds,
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
