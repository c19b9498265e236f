"""From cells and rules to the problem: what every attacker knows, and which ranges must remain possible for each.

The outsider sees the shown numbers and knows every sum. The outsider knows that a hidden number is not negative (a count is at least 1,
because empty cells are shown), or, with `known_percent`, that it lies within this percentage of its value. A contributor knows the same,
and also their own part of every number, which is a lower bound on it, and every number to which nobody else contributes.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from louver._arrays import Bools, Ints
from louver.protect.load import Contributor, Loaded
from louver.protect.options import ProtectOptions
from louver.protect.rules import Judged
from louver.tables.hiding.hide import is_large
from louver.tables.hiding.problem import UNBOUNDED, Attacker, Demand, PatternProblem

__all__ = ["build_problem"]


def build_problem(
    options: ProtectOptions, loaded: Loaded, judged: Judged, published: tuple[Ints, Ints] | None = None
) -> PatternProblem:
    """The problem of hiding cells of these tables.

    With `published`, the range of each number given its changed value, nothing is hidden: every number may lie anywhere in its range.
    """
    cells = loaded.cells
    values = np.array([cell.value for cell in cells], dtype=np.int64)
    chosen = judged.primary.keys() if judged.given is None else judged.given
    must = np.array([n in chosen or not cell.is_shown for n, cell in enumerate(cells)], dtype=bool)
    kept = {n for n, one in judged.decided.items() if one.status == "publish"}
    may = np.array(
        [cell.is_shown and cell.value != 0 and n not in kept for n, cell in enumerate(cells)], dtype=bool
    )
    twins = _twins(options, loaded, must | may)
    is_free = must & ~np.isin(np.arange(len(cells)), sorted((judged.given or set()) - judged.primary.keys()))
    if judged.given is not None:
        may[:] = False
    if twins is not None:
        is_hit = np.isin(twins, twins[must])
        must, may = must | is_hit, may & ~is_hit
    down, up = _outsider(options, loaded)
    if published is not None:
        must, may = np.ones(len(cells), dtype=bool), np.zeros(len(cells), dtype=bool)
        down = np.minimum(down, values - published[0])
        up = np.minimum(up, published[1] - values)
    nothing = np.zeros(0, dtype=np.int64)
    attackers = [Attacker("an outsider", nothing, nothing, nothing)]
    demands = [
        demand
        for number, primary in sorted(judged.primary.items())
        for demand in _demands(number, primary.up, primary.down, 0)
    ]
    considered: list[Contributor] = []
    if options.attackers == "contributors":
        for contributor in loaded.contributors:
            attacker = _contributor(contributor, down, up, values)
            if (must | may)[attacker.cells].any():
                attackers.append(attacker)
                considered.append(contributor)

    def demand_of(attacker: int, demand: Demand) -> Demand | None:
        """The demand of a contributor that goes with a demand of the outsider."""
        contributor = considered[attacker - 1]
        cell = cells[demand.cell]
        is_other = cell.measured != cells[next(iter(contributor.own))].measured
        if is_other or demand.cell in contributor.alone:
            return None
        need = demand.need
        if demand.sign < 0 and not cell.is_negative:
            need = min(need, int(values[demand.cell]) - contributor.own.get(demand.cell, 0))
        return replace(demand, need=need, attacker=attacker) if need > 0 else None

    is_listed = published is not None or not is_large(len(cells))
    if is_listed:
        outsiders = tuple(demands)
        both = ((number, demand) for number in range(1, len(attackers)) for demand in outsiders)
        demands += [one for number, demand in both if (one := demand_of(number, demand)) is not None]
    return PatternProblem(
        values=values,
        sums=loaded.sums,
        must_hide=must,
        may_hide=may & ~must,
        cost=np.where(is_free, 0.0, _cost(options, loaded, judged)),
        down=down,
        up=up,
        attackers=tuple(attackers),
        demands=tuple(demands),
        demand_of=None if is_listed or not considered else demand_of,
        twins=twins,
    )


def _twins(options: ProtectOptions, loaded: Loaded, may_hide: Bools) -> Ints | None:
    """For each cell, the first of the cells that are hidden with it; cells that cannot be hidden represent themselves."""
    first = np.arange(len(loaded.cells))
    keys = loaded.index.keys
    tables = {table.options.name: table for table in loaded.tables}
    for table in loaded.tables:
        if table.options.hide_with is None:
            continue
        other = tables[table.options.hide_with]
        place = {keys[line.cell][1]: line.cell for line in other.lines if may_hide[line.cell]}
        for line in table.lines:
            twin = place.get(keys[line.cell][1])
            if twin is not None and may_hide[line.cell]:
                ends = sorted((int(first[line.cell]), int(first[twin])))
                first[first == ends[1]] = ends[0]
    return first if any(table.options.hide_with for table in loaded.tables) else None


def _demands(cell: int, up: int, down: int, attacker: int) -> list[Demand]:
    ways = ((1, up), (-1, down))
    return [Demand(cell, sign, need, attacker) for sign, need in ways if need > 0]


def _cost(options: ProtectOptions, loaded: Loaded, judged: Judged) -> Ints:
    """The cost of hiding each cell; never zero, because cells would then be hidden without need."""
    found = []
    for number, cell in enumerate(loaded.cells):
        cost = 1.0
        if options.minimise == "value":
            cost = max(abs(cell.value), 1) / 10**cell.decimals
        elif options.minimise == "cost":
            cost = 1.0 if cell.cost is None else cell.cost
        decided = judged.decided.get(number)
        if decided is not None and decided.cost is not None:
            cost = decided.cost
        found.append(max(cost, 1e-6))
    return np.array(found)


def _outsider(options: ProtectOptions, loaded: Loaded) -> tuple[Ints, Ints]:
    """How far each hidden cell may lie below and above its value, for a reader of the tables."""
    down = np.full(len(loaded.cells), UNBOUNDED, dtype=np.int64)
    up = down.copy()
    for number, cell in enumerate(loaded.cells):
        if not cell.is_negative:
            down[number] = max(0, cell.value - (1 if cell.is_count else 0))
        if options.known_percent is not None:
            near = math.floor(abs(cell.value) * options.known_percent / 100)
            down[number], up[number] = min(int(down[number]), near), near
    return down, up


def _contributor(contributor: Contributor, down: Ints, up: Ints, values: Ints) -> Attacker:
    cells = np.array(sorted({*contributor.own, *contributor.alone}), dtype=np.int64)
    below, above = down[cells], up[cells]
    for place, number in enumerate(cells.tolist()):
        if number in contributor.alone:
            below[place] = above[place] = 0
        elif below[place] < UNBOUNDED:  # an attacker's own part does not bound numbers that may be negative
            below[place] = min(int(below[place]), max(0, int(values[number]) - contributor.own[number]))
    return Attacker(contributor.name, cells, below, above)
