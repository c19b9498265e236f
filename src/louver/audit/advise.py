"""What to leave out or to coarsen so that no small cell is exact.

Every set of pieces that discloses a cell must lose a piece. The cheapest pieces that hit all sets found so far are left out, what
remains is audited again, and new sets join until nothing is disclosed (implicit hitting set). Then each piece left out is put
back in the finest coarser form that is safe: categories of one attribute merged step by step, down to a table without it. These
steps nest, so the finest safe one is found by bisection. What is judged is the coarser table with all its counts; the same table
rounded or with hidden cells discloses less.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from louver.audit.cells import Small, forms_for
from louver.audit.explain import Reason, explain
from louver.audit.load import Loaded
from louver.audit.result import Advice
from louver.run import Run
from louver.schema.attribute import Attribute
from louver.schema.recode import Recode
from louver.tables.pieces import Cross, Domain, Margin, Piece, cross_attributes
from louver.tables.problem import build
from louver.tables.solve import decide
from louver.tables.system import IntArray

__all__ = ["Ask", "Coarser", "advise", "finest_safe"]

EXPLAINED_AT_ONCE = 3
"""Cells explained in each round; most share their reasons."""


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


@dataclass(frozen=True, slots=True)
class Coarser:
    """A coarser form of a table, what to do in words, and the cells it has."""

    piece: Piece
    how: str
    n_cells: int


def finest_safe(loaded: Loaded, piece: Piece, is_safe: Callable[[Piece], bool]) -> Coarser | None:
    """The safe form with the most cells, over all attributes; None where there is none. Needs the records.

    `is_safe` says no when time is up.
    """
    if loaded.truth is None or piece.shares or not piece.margins:
        return None
    best: Coarser | None = None
    for steps in _chains(loaded, piece):
        worth = [step for step in steps if best is None or step.n_cells > best.n_cells]
        best = _first_safe(worth, is_safe) or best
    return best


def _first_safe(steps: list[Coarser], is_safe: Callable[[Piece], bool]) -> Coarser | None:
    """The first safe step, all after it being safe, too."""
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


def _chains(loaded: Loaded, piece: Piece) -> Iterator[list[Coarser]]:
    """For each attribute its steps, finest first."""
    assert loaded.truth is not None
    cross = piece.margins[0].cross
    for attribute in cross_attributes(cross, loaded.domain.attributes):
        name = attribute.name
        crosses: list[tuple[Cross, str]] = []
        if name not in cross.where:
            own = loaded.domain.sums(cross.over((name,)), loaded.truth)
            crosses = [
                (_merged(cross, loaded.domain, attribute, groups), f"with {name} merged: {_told(groups)}")
                for groups in _groupings(attribute, own)
            ]
        if len(cross.by) > 1:
            fewer = tuple(other for other in cross.by if other != name)
            crosses.append((cross.over(fewer), f"without {name}"))
        yield [_coarser(loaded, piece.name, coarse, how) for coarse, how in crosses]


def _groupings(attribute: Attribute, people: IntArray) -> Iterator[list[tuple[str, ...]]]:
    """Labels in groups, one group fewer each time: the group with the fewest people joins its smaller neighbour.

    Any two are neighbours where the labels have no order. A missing value stays by itself.
    """
    kept = [code for code, label in enumerate(attribute.labels) if label != attribute.missing]
    groups = [([code], int(people[code])) for code in kept]
    while len(groups) > 2:
        if not attribute.is_ordered:
            groups.sort(key=lambda group: (group[1], group[0]))
        smallest = min(range(len(groups)), key=lambda place: groups[place][1])
        beside = [place for place in (smallest - 1, smallest + 1) if 0 <= place < len(groups)]
        other = min(beside, key=lambda place: groups[place][1])
        first, second = sorted((smallest, other))
        groups[first : second + 1] = [
            (sorted(groups[first][0] + groups[second][0]), groups[first][1] + groups[second][1])
        ]
        yield [tuple(attribute.labels[code] for code in codes) for codes, _ in groups if len(codes) > 1]


def _told(groups: list[tuple[str, ...]]) -> str:
    return "; ".join(" and ".join(group) for group in groups)


def _merged(cross: Cross, domain: Domain, attribute: Attribute, groups: list[tuple[str, ...]]) -> Cross:
    """The cross with labels of an attribute merged, on top of the recode that it has."""
    raw = domain.attribute(attribute.name)
    codes = np.arange(raw.size)
    if attribute.name in cross.recodes:
        codes = raw.recoded(cross.recodes[attribute.name])[1]
    new_label = {label: label for label in attribute.labels}
    new_label |= {label: " and ".join(group) for group in groups for label in group}
    merge: dict[str, list[str]] = {}
    for old, code in zip(raw.labels, codes, strict=True):
        merge.setdefault(new_label[attribute.labels[code]], []).append(old)
    recode = Recode(attribute.name, merge={new: tuple(old) for new, old in merge.items()})
    return Cross(by=cross.by, recodes={**cross.recodes, attribute.name: recode}, where=cross.where)


def _coarser(loaded: Loaded, name: str, cross: Cross, how: str) -> Coarser:
    assert loaded.truth is not None
    counts = loaded.domain.sums(cross, loaded.truth)
    margin = Margin(cross=cross, lower=counts, upper=counts)
    return Coarser(Piece(name=name, margins=(margin,)), how, len(counts))
