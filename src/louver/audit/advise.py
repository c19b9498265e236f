"""What to leave out or to coarsen so that no small cell is exact.

Every set of pieces that gives a cell away must lose a piece. The cheapest pieces that hit all sets found so far are left out,
what remains is audited again, and new sets join until nothing is given away (implicit hitting set).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from louver.audit.coarsen import finest_safe
from louver.audit.explain import Cells, Reason, explain, forms_for
from louver.audit.load import Loaded
from louver.audit.result import Advice
from louver.run import Run
from louver.tables.domain import Domain
from louver.tables.joint import decide
from louver.tables.pieces import Piece
from louver.tables.problem import build
from louver.tables.system import IntArray

__all__ = ["Ask", "Small", "advise"]

EXPLAINED_AT_ONCE = 3
"""Cells explained in each round; most share their reasons."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Small:
    """Small cells that the pieces together give away, with the interval they must not be confined to."""

    cells: Cells
    floor: IntArray
    ceiling: IntArray

    def pick(self, chosen: IntArray) -> Small:
        return Small(cells=self.cells.pick(chosen), floor=self.floor[chosen], ceiling=self.ceiling[chosen])

    def followed_by(self, other: Small) -> Small:
        return Small(
            cells=Cells(
                assigns=(*self.cells.assigns, *other.cells.assigns),
                cells=(*self.cells.cells, *other.cells.cells),
            ),
            floor=np.concatenate([self.floor, other.floor]),
            ceiling=np.concatenate([self.ceiling, other.ceiling]),
        )


Ask = Callable[[Loaded, float], Small]
"""The small groups that pieces give away, or may, as far as is found before a deadline."""


def advise(
    loaded: Loaded,
    small: Small,
    reasons: Sequence[Reason | None],
    n_tables: int,
    ask: Ask | None,
    run: Run,
    deadline: float,
) -> Advice | None:
    """Pieces to leave out, among the first `n_tables`, and which of them may stay in a coarser form.

    What is left is asked about again as a whole (`ask`): it may give away a larger group that holds one of `small`. None where
    not even leaving all of them out helps, or time ran out before anything was found.
    """
    sets = {frozenset(reason.pieces) for reason in reasons if reason is not None}
    is_least = None not in reasons
    while True:
        chosen = _cheapest(sets, [_cost(piece, loaded.domain) for piece in loaded.pieces[:n_tables]])
        if chosen is None:
            return None
        rest = [number for number in range(len(loaded.pieces)) if number not in chosen]
        left = replace(loaded, pieces=tuple(loaded.pieces[number] for number in rest))
        verdict = _verdict(left, small, run, deadline)
        if (verdict == 0).all():
            more = None if ask is None else ask(left, deadline)
            if more is None or not len(more.floor):
                return _with_coarser(loaded, small, chosen, is_least, ask, run, deadline)
            verdict = np.append(verdict, np.ones(len(more.floor), dtype=np.int64))
            small = small.followed_by(more)
        if time.monotonic() > deadline:
            return None
        confined = np.flatnonzero(verdict != 0)[:EXPLAINED_AT_ONCE]
        some = small.pick(confined)
        new = explain(left, some.cells, some.floor, some.ceiling, run, deadline)
        found = {frozenset(rest[number] for number in reason.pieces) for reason in new if reason is not None}
        if not found - sets:
            # Nothing proves the cells given away, nothing shows them safe: leave out all that speaks of them.
            found = {frozenset(rest)}
            is_least = False
        sets |= found


def _verdict(left: Loaded, small: Small, run: Run, deadline: float) -> IntArray:
    problem = build(left.domain, left.pieces, left.truth, left.is_possible)
    seconds = max(0.0, deadline - time.monotonic())
    verdict = decide(problem, forms_for(problem, small.cells), small.floor, small.ceiling, run, seconds)
    return verdict.astype(np.int64)


def _cost(piece: Piece, domain: Domain) -> int:
    """Cells that a reader loses with a piece."""
    return sum(domain.size(cross) for cross in piece.crosses[:1])


def _cheapest(sets: set[frozenset[int]], costs: Sequence[int]) -> set[int] | None:
    """Fewest pieces that hit every set, and of those the ones with the fewest cells; None if a set holds none."""
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


# Coarser instead of nothing ---------------------------------------------------------------------------------------


def _with_coarser(
    loaded: Loaded,
    small: Small,
    chosen: set[int],
    is_least: bool,
    ask: Ask | None,
    run: Run,
    deadline: float,
) -> Advice:
    """Put pieces back in the finest form that is still safe, one after another."""
    kept = {number: piece for number, piece in enumerate(loaded.pieces) if number not in chosen}
    coarsen: list[tuple[str, str]] = []
    for number in sorted(chosen):

        def is_safe(coarser: Piece, small: Small) -> bool:
            if time.monotonic() > deadline:
                return False
            trial = replace(loaded, pieces=(*kept.values(), coarser))
            return bool((_verdict(trial, small, run, deadline) == 0).all())

        while True:
            found = finest_safe(loaded, loaded.pieces[number], partial(is_safe, small=small))
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
