"""What to leave out or coarsen so that no small cell is disclosed exactly.

Every set of pieces that discloses a cell must lose a piece. The cheapest pieces that hit all sets found so far are left out, the rest is
audited again, and new sets are added until nothing is disclosed (implicit hitting set). Then each omitted piece is put
back in the finest coarser form that is safe: categories of one attribute merged step by step, down to a table without it. These
steps nest, so the finest safe one is found by bisection. The coarser table is judged with all its counts; the same table rounded or with
hidden cells discloses less.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from louver.audit.cells import Small, forms_for
from louver.audit.explain import Reason, explain
from louver.audit.kind import CoarserTable, TableKind
from louver.audit.load import LoadedTables
from louver.audit.result import Advice
from louver.run import Run
from louver.tables.pieces import Domain, Piece
from louver.tables.solve import decide
from louver.tables.system import IntArray

__all__ = ["Ask", "advise", "finest_safe"]

EXPLAINED_AT_ONCE = 3
"""Number of cells explained in each round; most have the same reasons."""


Ask = Callable[[LoadedTables, float], Small]
"""The small groups that pieces disclose, or may disclose, found before a deadline."""


def advise(
    loaded: LoadedTables,
    small: Small,
    reasons: Sequence[Reason | None],
    kinds: Sequence[TableKind],
    ask: Ask | None,
    run: Run,
    deadline: float,
) -> Advice | None:
    """Pieces to leave out, and those of them that may remain in a coarser form. Only tables are considered; they come first, with these
    kinds.

    The rest is audited again as a whole (`ask`): it may disclose a larger group that contains one of `small`. None if leaving all of them
    out does not help, or if time ran out before anything was found.
    """
    sets = {frozenset(reason.pieces) for reason in reasons if reason is not None}
    is_least = None not in reasons
    while True:
        chosen = _cheapest(sets, [_cost(piece, loaded.domain) for piece in loaded.pieces[: len(kinds)]])
        if chosen is None:
            return None
        rest = [number for number in range(len(loaded.pieces)) if number not in chosen]
        left = replace(loaded, pieces=tuple(loaded.pieces[number] for number in rest))
        verdict = _verdict(left, small, run, deadline)
        if (verdict == 0).all():
            more = None if ask is None else ask(left, deadline)
            if more is None or not len(more.floor):
                return _with_coarser(loaded, kinds, small, chosen, is_least, ask, run, deadline)
            verdict = np.append(verdict, np.ones(len(more.floor), dtype=np.int64))
            small = small.followed_by(more)
        if time.monotonic() > deadline:
            return None
        confined = np.flatnonzero(verdict != 0)[:EXPLAINED_AT_ONCE]
        some = small.pick(confined)
        new = explain(left, some.cells, some.floor, some.ceiling, run, deadline)
        found = {frozenset(rest[number] for number in reason.pieces) for reason in new if reason is not None}
        if not found - sets:
            # The cells are neither proved disclosed nor proved safe: leave out every piece that involves them.
            found = {frozenset(rest)}
            is_least = False
        sets |= found


def _verdict(left: LoadedTables, small: Small, run: Run, deadline: float) -> IntArray:
    problem = left.problem()
    seconds = max(0.0, deadline - time.monotonic())
    verdict = decide(problem, forms_for(problem, small.cells), small.floor, small.ceiling, run, seconds)
    return verdict.astype(np.int64)


def _cost(piece: Piece, domain: Domain) -> int:
    """Cells that readers lose when a piece is left out."""
    return sum(domain.size(cross) for cross in piece.crosses[:1])


def _cheapest(sets: set[frozenset[int]], costs: Sequence[int]) -> set[int] | None:
    """The fewest pieces that hit every set, with the fewest cells among ties; None if a set contains no candidate."""
    from ortools.sat.python import cp_model

    model = cp_model.CpModel()
    is_out = [model.new_bool_var("") for _ in costs]
    for members in sorted(sets, key=sorted):
        choices = [is_out[number] for number in sorted(members) if number < len(costs)]
        if not choices:
            return None
        model.add_bool_or(choices)
    total = sum(costs) + 1
    model.minimize(sum((total + cost) * var for cost, var in zip(costs, is_out, strict=True)))
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    solver.solve(model)
    return {number for number, var in enumerate(is_out) if solver.value(var)}


# Coarser forms ---------------------------------------------------------------------------------------


def _with_coarser(
    loaded: LoadedTables,
    kinds: Sequence[TableKind],
    small: Small,
    chosen: set[int],
    is_least: bool,
    ask: Ask | None,
    run: Run,
    deadline: float,
) -> Advice:
    """Put pieces back one after another, each in the finest form that is still safe."""
    kept = {number: piece for number, piece in enumerate(loaded.pieces) if number not in chosen}
    coarsen: list[tuple[str, str]] = []
    for number in sorted(chosen):

        def is_safe(coarser: Piece, small: Small) -> bool:
            if time.monotonic() > deadline:
                return False
            trial = replace(loaded, pieces=(*kept.values(), coarser))
            return bool((_verdict(trial, small, run, deadline) == 0).all())

        while True:
            found = finest_safe(loaded, kinds[number], loaded.pieces[number], partial(is_safe, small=small))
            if found is None or ask is None:
                break
            more = ask(replace(loaded, pieces=(*kept.values(), found.piece)), deadline)
            if not len(more.floor):
                break
            small = small.followed_by(more)
        if found is not None:
            kept[number] = found.piece
            coarsen.append((found.piece.name, found.how))
    put_back = {name for name, _ in coarsen}
    return Advice(
        leave_out=tuple(
            loaded.pieces[number].name
            for number in sorted(chosen)
            if loaded.pieces[number].name not in put_back
        ),
        coarsen=tuple(coarsen),
        is_safe=True,
        is_least=is_least,
    )


def finest_safe(
    loaded: LoadedTables, kind: TableKind, piece: Piece, is_safe: Callable[[Piece], bool]
) -> CoarserTable | None:
    """The safe form with the most cells, over all attributes; None if there is none. Needs the records.

    `is_safe` returns False when time is up.
    """
    if loaded.truth is None:
        return None
    best: CoarserTable | None = None
    for steps in kind.coarser(piece, loaded.domain, loaded.truth):
        worth = [step for step in steps if best is None or step.n_cells > best.n_cells]
        best = _first_safe(worth, is_safe) or best
    return best


def _first_safe(steps: Sequence[CoarserTable], is_safe: Callable[[Piece], bool]) -> CoarserTable | None:
    """The first safe step; all later steps are safe, too."""
    if not steps or not is_safe(steps[-1].piece):
        return None
    low, high = 0, len(steps) - 1
    while low < high:
        middle = (low + high) // 2
        if is_safe(steps[middle].piece):
            high = middle
        else:
            low = middle + 1
    return steps[high]
