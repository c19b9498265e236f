"""Pieces that cannot all be true: a smallest set of them, by name."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from math import comb

from louver.audit.load import Loaded
from louver.errors import InfeasibleError
from louver.run import Run
from louver.tables.enumerate import feasible_point
from louver.tables.problem import build
from louver.tables.system import split

__all__ = ["contradiction"]

EXHAUSTIVE = 300
"""Sets of pieces that are tried one size after another before pieces are left out one by one."""

EFFORT = 2.0


def contradiction(loaded: Loaded, run: Run) -> InfeasibleError:
    """The error that names a smallest set of pieces without a table that agrees with all of them."""
    numbers = _smallest(loaded, run)
    names = [f'"{loaded.pieces[number].name}"' for number in numbers]
    if len(names) == 1:
        told = f"table {names[0]} contradicts itself: its numbers do not add up"
    else:
        told = f"tables {', '.join(names[:-1])} and {names[-1]} contradict each other: no table of counts fits them all"
    return InfeasibleError(f"{told}; check their files.", clash=tuple(number + 1 for number in numbers))


def _smallest(loaded: Loaded, run: Run) -> tuple[int, ...]:
    n_pieces, spent = len(loaded.pieces), 0
    for size in range(1, n_pieces):
        spent += comb(n_pieces, size)
        if spent > EXHAUSTIVE:
            break
        for chosen in combinations(range(n_pieces), size):
            if _is_impossible(loaded, chosen, run):
                return chosen
    kept = list(range(n_pieces))
    for number in range(n_pieces):
        rest = [other for other in kept if other != number]
        if rest and _is_impossible(loaded, rest, run):
            kept = rest
    return tuple(kept)


def _is_impossible(loaded: Loaded, chosen: Sequence[int], run: Run) -> bool:
    """Whether it is proved that no table agrees with these pieces."""
    run.check()
    try:
        problem = build(loaded.domain, [loaded.pieces[number] for number in chosen], None, loaded.is_possible)
    except InfeasibleError:
        return True
    system, clash = problem.system.propagated(run)
    if clash >= 0:
        return True
    return any(
        feasible_point(system.part(columns, rows), EFFORT, run).is_impossible
        for columns, rows in split(system)
    )
