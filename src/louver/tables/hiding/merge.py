"""Cells that always change together, as one.

Where a total has a single part that may change, both have the same change in every witness: they are hidden together, or neither of them
hides anything. In sparse tables most sums are of this kind, and the search over the groups is the same search over fewer cells.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from louver._arrays import Bools, Ints
from louver.tables.hiding.outsider import Witness
from louver.tables.hiding.problem import Attacker, Demand, PatternProblem

__all__ = ["MergedProblem", "merge_cells"]


@dataclass(frozen=True, slots=True, eq=False)
class MergedProblem:
    """A problem over groups of cells, and the way back.

    Attributes
    ----------
    original, problem : PatternProblem
        The problem over cells, and the one over groups. Groups with a primary cell cost nothing in the second one.
    group_of : int array
        The group of every cell.
    numbers : tuple of int
        For every demand of the cells its number among those of the groups.
    spent : float
        Cost of the groups with a primary cell.
    """

    original: PatternProblem
    problem: PatternProblem
    group_of: Ints
    numbers: tuple[int, ...]
    spent: float

    def answers(
        self, demands: tuple[Demand, ...], witnesses: tuple[Witness | None, ...]
    ) -> tuple[tuple[Demand, ...], tuple[Witness | None, ...]]:
        """The demands of the cells with their witnesses, given those of the groups; demands that the search has added come last."""
        made: dict[int, Witness] = {}
        for one in witnesses:
            if one is not None and id(one) not in made:
                made[id(one)] = self._spread(one)
        spread = [None if one is None else made[id(one)] for one in witnesses]
        asked, found = list(self.original.demands), [spread[number] for number in self.numbers]
        n_own = len(self.problem.demands)
        added = list(zip(demands[n_own:], spread[n_own:], strict=True))
        if added:
            of_group = _by_group(self.original.demands, self.group_of)
            for demand, witness in added:
                own = _others(self.original, of_group, demand)
                asked += own
                found += [witness] * len(own)
        return tuple(asked), tuple(found)

    def _spread(self, witness: Witness) -> Witness:
        """A change of groups as one of their cells."""
        change = np.zeros(self.problem.n_cells)
        change[witness.cells] = witness.change
        return Witness.of(change[self.group_of])


def merge_cells(problem: PatternProblem) -> MergedProblem | None:
    """The problem over groups of cells that always change together; None where there are none, or where cells are tied to others."""
    if problem.twins is not None:
        return None
    usable = problem.must_hide | problem.may_hide
    group_of = _groups(problem.sums.astype(np.int64), usable)
    n = int(group_of.max(initial=-1)) + 1
    if n == problem.n_cells:
        return None
    must = np.zeros(n, dtype=bool)
    must[group_of[problem.must_hide]] = True
    may = np.ones(n, dtype=bool)
    may[group_of[~usable]] = False
    cost = np.bincount(group_of, problem.cost, n)
    places: dict[Demand, int] = {}
    numbers = [places.setdefault(_of_group(demand, group_of), len(places)) for demand in problem.demands]
    down, up = _least(problem.down, group_of, n), _least(problem.up, group_of, n)
    small = PatternProblem(
        values=problem.values[np.unique(group_of, return_index=True)[1]],
        sums=_sums(problem.sums.astype(np.int64), usable, group_of, n),
        must_hide=must,
        may_hide=may & ~must,
        cost=np.where(must, 0.0, cost),
        down=down,
        up=up,
        attackers=tuple(_attacker(one, group_of, down, up) for one in problem.attackers),
        demands=tuple(places),
        demand_of=None if problem.demand_of is None else _DemandOf(problem, group_of),
    )
    return MergedProblem(problem, small, group_of, tuple(numbers), float(cost[must].sum()))


def _groups(sums: csr_array, usable: Bools) -> Ints:
    """The group of every cell, numbered by their first cells; cells that cannot be hidden stay alone."""
    n = len(usable)
    group: Ints = np.arange(n)
    while True:
        rows = _sums(sums, usable, group, n)
        two = np.flatnonzero(np.diff(rows.indptr) == 2)
        ends = rows.indices[rows.indptr[two][:, None] + [0, 1]]
        signs = rows.data[rows.indptr[two][:, None] + [0, 1]]
        ends = ends[signs.sum(axis=1) == 0]
        if not len(ends):
            return _numbered(group)
        edges = csr_array((np.ones(len(ends)), (ends[:, 0], ends[:, 1])), shape=(n, n))
        group = connected_components(edges, directed=False)[1].astype(np.int64)[group]


def _numbered(group: Ints) -> Ints:
    """Groups numbered by their first cells."""
    _, first, number = np.unique(group, return_index=True, return_inverse=True)
    rank = np.empty(len(first), dtype=np.int64)
    rank[np.argsort(first)] = np.arange(len(first))
    return rank[number]


def _sums(sums: csr_array, usable: Bools, group_of: Ints, n: int) -> csr_array:
    """The sums over groups, without cells that never change; each sum once."""
    entries = sums.tocoo()
    own = usable[entries.col]
    shape = sums.shape[0], n
    rows = csr_array((entries.data[own], (entries.row[own], group_of[entries.col[own]])), shape=shape)
    rows.sum_duplicates()
    rows.eliminate_zeros()
    rows.sort_indices()
    start = rows.indptr
    seen = {
        (rows.indices[a:b].tobytes(), rows.data[a:b].tobytes()): row
        for row, (a, b) in reversed(
            list(enumerate(zip(start[:-1].tolist(), start[1:].tolist(), strict=True)))
        )
        if a < b
    }
    return csr_array(rows[sorted(seen.values())])


def _least(room: Ints, group_of: Ints, n: int) -> Ints:
    found = np.full(n, np.iinfo(np.int64).max)
    np.minimum.at(found, group_of, room)
    return found


def _attacker(one: Attacker, group_of: Ints, down: Ints, up: Ints) -> Attacker:
    """What a reader knows of groups: of each cell that is known better, and as much of the others as everybody."""
    cells, place = np.unique(group_of[one.cells], return_inverse=True)
    below, above = down[cells], up[cells]
    np.minimum.at(below, place, one.down)
    np.minimum.at(above, place, one.up)
    return Attacker(one.name, cells, below, above)


def _of_group(demand: Demand, group_of: Ints) -> Demand:
    return Demand(int(group_of[demand.cell]), demand.sign, demand.need, demand.attacker)


OfGroup = dict[tuple[int, int], list[Demand]]


def _by_group(demands: tuple[Demand, ...], group_of: Ints) -> OfGroup:
    """The outsider's demands on the cells of each group, by direction."""
    found: OfGroup = {}
    for demand in demands:
        if not demand.attacker:
            found.setdefault((int(group_of[demand.cell]), demand.sign), []).append(demand)
    return found


def _others(problem: PatternProblem, of_group: OfGroup, demand: Demand) -> list[Demand]:
    """The demands of an attacker on the cells of a group that one on the group meets."""
    assert problem.demand_of is not None
    own = of_group[demand.cell, demand.sign]
    found = (problem.demand_of(demand.attacker, one) for one in own)
    return [one for one in found if one is not None and one.need <= demand.need]


class _DemandOf:
    """`PatternProblem.demand_of` over groups."""

    def __init__(self, problem: PatternProblem, group_of: Ints) -> None:
        self._problem, self._of_group = problem, _by_group(problem.demands, group_of)

    def __call__(self, attacker: int, demand: Demand) -> Demand | None:
        assert self._problem.demand_of is not None
        own = self._of_group[demand.cell, demand.sign]
        found = (self._problem.demand_of(attacker, one) for one in own)
        needs = [one.need for one in found if one is not None]
        return Demand(demand.cell, demand.sign, max(needs), attacker) if needs else None
