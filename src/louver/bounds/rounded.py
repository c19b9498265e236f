"""Every feasible value of every cell from conditionals rounded to a number of decimals.

Wright & Smucker (2014) leave this case open. For a row total t >= 1, each cell has an interval of counts that round to its published value;
t is feasible if counts in these intervals can add up to t. Row totals combine by sumsets to the sample size. A printed 0 may hide a
positive count.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from fractions import Fraction

import numpy as np

from louver._arrays import Bools, Ints
from louver.bounds.knowledge import NO_LIMIT, BoundStatement, clash_error
from louver.bounds.problem import Runs, values_in_runs
from louver.errors import InputError
from louver.optim.kernels.semigroups.leave_one_out import leave_one_out_plan
from louver.optim.kernels.semigroups.progressions import compressed
from louver.optim.kernels.semigroups.rounded_conditionals import (
    add_set_inplace,
    cell_runs,
    count_interval,
    feasible_totals,
    matching_totals,
)

__all__ = ["RoundedSolution", "RoundingRule", "published_values", "solve_rounded"]


MAX_WORK = 2**29
"""Largest n x (columns + 2) that is handled, counted in 4-byte numbers (2 GiB)."""


class RoundingRule(StrEnum):
    """How a value halfway between two printable values is rounded."""

    HALF_UP = "half-up"
    HALF_EVEN = "half-even"


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundedSolution:
    """Runs of values of each cell; `span` (n, J, 2) gives the range of runs of each cell, empty for rows not requested.

    `totals` (n, 2) are the least and the greatest total of each row. `is_certain` (n,) says whether one cell of the row has at least the
    share `certain` in every table that fits; None if no share is given.
    """

    runs: Ints
    span: Ints
    totals: Ints
    is_certain: Bools | None = None

    @property
    def lower(self) -> Ints:
        """Tight lower bound of every cell, (n, J)."""
        lowest: Ints = self.runs[self.span[:, :, 0], 0]
        return lowest

    @property
    def upper(self) -> Ints:
        highest: Ints = self.runs[self.span[:, :, 1] - 1, 1]
        return highest

    @property
    def n_values(self) -> Ints:
        """Number of feasible values of every cell, (n, J)."""
        return values_in_runs(self.runs, self.span)

    def values(self, row: int, col: int) -> Runs:
        """All feasible values of one cell as (start, stop, step) runs."""
        start, stop = self.span[row, col]
        return [(a, b, c) for a, b, c in self.runs[start:stop].tolist()]


@dataclass(frozen=True, slots=True)
class _StatementTree:
    """Cells, nested known sums and the row: parent of each node, bounds on each; the row is last."""

    parent: Ints
    at_least: Ints
    at_most: Ints
    crossing: tuple[BoundStatement, ...] = ()

    @property
    def is_free(self) -> bool:
        """Whether there is no prior knowledge about this row."""
        return not (self.at_least.any() or (self.at_most < NO_LIMIT).any() or self.crossing)


@dataclass(frozen=True, slots=True)
class _Row:
    """A published row without its impossible cells; `columns` are the remaining ones."""

    columns: Ints
    published: Ints
    tree: _StatementTree


@dataclass(frozen=True, slots=True)
class _Totals:
    """Feasible totals of one row, minus the smallest: bits up to `size[0]`, then all set or all clear."""

    least: int
    words: np.ndarray[tuple[int], np.dtype[np.uint64]]
    size: Ints


def published_values(counts: Ints, decimals: int, rounding: RoundingRule) -> Ints:
    """The printed conditionals of nonzero rows in units of the last decimal, computed in integers.

    Examples
    --------
    >>> published_values(np.array([[1, 7]]), 2, RoundingRule.HALF_UP).tolist()
    [[13, 88]]
    >>> published_values(np.array([[1, 7]]), 2, RoundingRule.HALF_EVEN).tolist()
    [[12, 88]]
    """
    totals = counts.sum(axis=1, keepdims=True)
    doubled = 2 * counts * 10**decimals + totals
    values = doubled // (2 * totals)
    if rounding is RoundingRule.HALF_EVEN:
        values -= (doubled % (2 * totals) == 0) & (values % 2 == 1)
    return np.ascontiguousarray(values)


def solve_rounded(
    published: Ints,
    decimals: int,
    rounding: RoundingRule,
    n: int,
    known: Sequence[BoundStatement],
    wanted: Bools,
    where: str = "given",
    possible: Bools | None = None,
    *,
    content: Sequence[BoundStatement] = (),
    certain: Fraction | None = None,
) -> RoundedSolution:
    """All feasible values of the cells in the wanted rows.

    Parameters
    ----------
    published : int64 (rows, J)
        Printed conditionals of the nonzero rows in units of the last decimal.
    n : int
        Sample size.
    known, wanted, where
        As for `solve_exact`.
    possible : bool (rows, J), optional
        False where a structural zero makes a cell impossible: its printed 0 hides nothing.
    totals_stated : sequence of BoundStatement
        Row totals published with the conditionals.
    certain : Fraction, optional
        Above 1/2: also find the rows that have at least this share in one cell in every table that fits.

    Notes
    -----
    Cost: O(J T) per row for T = n minus the least totals of the other rows, and O(rows log rows) sumsets of sets that are mostly solid
    beyond a few times 10**decimals.
    """
    if n * (published.shape[1] + 2) > MAX_WORK:
        raise InputError(
            "rounded conditionals of so large a sample cannot be solved in memory; check --n.",
            option="--decimals",
        )
    rule = _Rule(10**decimals, rounding is RoundingRule.HALF_EVEN)
    shown = np.ones(published.shape, dtype=bool) if possible is None else possible
    found = _solve(published, shown, rule, n, (*content, *known), wanted, certain)
    if found is None and known:
        nothing = np.zeros(len(published), dtype=bool)

        def is_feasible(some: Sequence[BoundStatement]) -> bool:
            return _solve(published, shown, rule, n, (*content, *some), nothing) is not None

        if is_feasible(()):
            raise clash_error(known, is_feasible, where)
    if found is None:
        raise InputError(
            "no table has these rounded conditionals and this sample size; check --n, --decimals and --rounding.",
            option="--decimals",
        )
    return found


@dataclass(frozen=True, slots=True)
class _Rule:
    unit: int
    half_even: bool


def _solve(
    published: Ints,
    possible: Bools,
    rule: _Rule,
    n: int,
    known: Sequence[BoundStatement],
    wanted: Bools,
    certain: Fraction | None = None,
) -> RoundedSolution | None:
    """The solution, or None if no table agrees."""
    if any(one.fails_on_zeros for one in known) or len(published) > n or (not len(published) and n):
        return None
    rows = [
        _row(values, shown, [one for one in known if one.row == position])
        for position, (values, shown) in enumerate(zip(published, possible, strict=True))
    ]
    items, item_of = _distinct(rows)
    copies = np.bincount(item_of, minlength=len(items))
    totals = [one for row in items if (one := _row_totals(row, rule, n)) is not None]
    if len(totals) < len(items):
        return None
    target = n - sum(int(c) * one.least for c, one in zip(copies, totals, strict=True))
    if target < 0:
        return None
    # One answer shows whether a solution exists.
    requested = np.unique(item_of[wanted]) if wanted.any() else np.arange(min(1, len(items)))
    item_span = np.zeros((len(items), published.shape[1], 2), dtype=np.int64)
    item_span[:, :, 1] = 1
    item_totals = np.zeros((len(items), 2), dtype=np.int64)
    is_certain = np.zeros(len(items), dtype=bool)
    parts: list[Ints] = [np.array([[0, 0, 1]])]  # the values of impossible cells
    end = 1
    for item, listed, solid in _leave_one_out(totals, copies, requested, target):
        if not listed.size and not solid:
            return None
        runs, span = _cell_runs(items[item], rule, listed, solid)
        parts.append(runs)
        item_span[item, items[item].columns] = span + end
        end += len(runs)
        ends = [*listed[:1], *listed[-1:], *solid[:1], *solid[-1:]]
        item_totals[item] = min(ends), max(ends)
        is_certain[item] = certain is not None and _is_certain(items[item], rule, listed, solid, certain)
    return RoundedSolution(
        runs=np.concatenate(parts),
        span=item_span[item_of] * wanted[:, None, None],
        totals=item_totals[item_of],
        is_certain=None if certain is None else is_certain[item_of],
    )


def _row(published: Ints, possible: Bools, known: Sequence[BoundStatement]) -> _Row:
    columns = np.flatnonzero(possible)
    shown = [replace(one, cells=one.cells[columns]) for one in known]
    return _Row(columns, published[columns], _tree(shown, columns.size))


def _distinct(rows: Sequence[_Row]) -> tuple[list[_Row], Ints]:
    """Rows with equal printed values and no prior knowledge share an answer."""
    place: dict[object, int] = {}
    items: list[_Row] = []
    item_of = np.empty(len(rows), dtype=np.int64)
    for position, row in enumerate(rows):
        key: object = (row.columns.tobytes(), row.published.tobytes()) if row.tree.is_free else position
        if key not in place:
            place[key] = len(items)
            items.append(row)
        item_of[position] = place[key]
    return items, item_of


def _tree(known: Sequence[BoundStatement], n_cells: int) -> _StatementTree:
    """Nest the known sums of one row; sums that cross others are kept separately."""
    sets: dict[bytes, tuple[Bools, int, int]] = {}
    for one in known:
        key = one.cells.tobytes()
        _, lower, upper = sets.get(key, (one.cells, 0, NO_LIMIT))
        sets[key] = (one.cells, max(lower, one.lower), min(upper, one.upper))
    nodes = [(np.arange(n_cells) == cell, 0, NO_LIMIT) for cell in range(n_cells)]
    nested: list[tuple[Bools, int, int]] = []
    crossing: list[BoundStatement] = []
    for cells, lower, upper in sorted(sets.values(), key=lambda entry: int(entry[0].sum())):
        if int(cells.sum()) == 1:
            nodes[int(cells.argmax())] = (cells, lower, upper)
        elif any((cells & other).any() and not (other <= cells).all() for other, _, _ in nested):
            crossing.append(BoundStatement(number=0, row=0, cells=cells, lower=lower, upper=upper))
        else:
            nested.append((cells, lower, upper))
    if not nested or not nested[-1][0].all():
        nested.append((np.ones(n_cells, dtype=bool), 0, NO_LIMIT))
    nodes += nested
    parent = np.full(len(nodes), -1, dtype=np.int64)
    for node in range(len(nodes) - 1):
        parent[node] = next(
            up for up in range(max(node + 1, n_cells), len(nodes)) if (nodes[node][0] <= nodes[up][0]).all()
        )
    bounds = np.array([(lower, upper) for _, lower, upper in nodes], dtype=np.int64)
    return _StatementTree(parent, bounds[:, 0].copy(), bounds[:, 1].copy(), tuple(crossing))


def _row_totals(row: _Row, rule: _Rule, n: int) -> _Totals | None:
    """Feasible totals 1..n of one row; None if there is none."""
    published, tree = row.published, row.tree
    solid = _solid_from(published, rule.unit) if tree.is_free else None
    largest = n if solid is None else min(n, solid)
    allowed = feasible_totals(
        published, rule.unit, rule.half_even, tree.parent, tree.at_least, tree.at_most, largest
    )
    for t in np.flatnonzero(allowed) if tree.crossing else ():
        allowed[t] = bool(_crossing_values(published, tree, rule, int(t)))
    places = np.flatnonzero(allowed)
    if not places.size:
        return None
    least = int(places[0])
    bits = allowed[least:]
    words = np.zeros(len(bits) // 64 + 1, dtype=np.uint64)
    words.view(np.uint8)[: -(-len(bits) // 8)] = np.packbits(bits, bitorder="little")
    has_tail = solid is not None and largest == solid
    return _Totals(least, words, np.array([len(bits), int(has_tail)], dtype=np.int64))


def _solid_from(published: Ints, unit: int) -> int | None:
    """A total from which every total is feasible, or None if rounding errors cannot cancel.

    With J cells, Z of them printed 0 and S the sum of the printed values: every interval holds an integer once
    t >= unit; the lower ends add up to at most t once t (2 unit - 2 S + J - Z) >= 2 unit (J - Z), the upper ends
    to at least t once t (2 S + J - 2 unit) >= 2 unit J.
    """
    n_cells, total = published.size, int(published.sum())
    positive = int((published > 0).sum())
    room_below = 2 * unit - 2 * total + positive
    room_above = 2 * total + n_cells - 2 * unit
    if room_below <= 0 or room_above <= 0:
        return None
    return max(unit, -(-2 * unit * positive // room_below), -(-2 * unit * n_cells // room_above))


def _leave_one_out(
    totals: Sequence[_Totals], copies: Ints, requested: Ints, target: int
) -> Iterator[tuple[int, Ints, range]]:
    """Each requested item with its feasible totals (listed and as a range), given all other items."""
    plan = leave_one_out_plan(len(requested))
    depth = 2 + (int(plan[:, 0].max()) if len(plan) else 0)
    n_words = _longest(totals, copies, target) // 64 + 1
    work = np.zeros(n_words, dtype=np.uint64)
    words = np.zeros((depth, n_words), dtype=np.uint64)
    size = np.zeros((depth, 2), dtype=np.int64)
    words[0, 0], size[0] = 1, (1, 0)

    def add(level: int, item: int, n_copies: int) -> None:
        for _ in range(n_copies):
            add_set_inplace(words[level], size[level], totals[item].words, totals[item].size, work)

    for item in np.setdiff1d(np.arange(len(totals)), requested):
        add(0, int(item), int(copies[item]))
    for level, low, high, leaf in plan.tolist():
        if level > 0:
            words[level], size[level] = words[level - 1], size[level - 1]
        for item in requested[low:high].tolist():
            add(level, item, int(copies[item]))
        if leaf >= 0:
            item = int(requested[leaf])
            add(level, item, int(copies[item]) - 1)
            own = totals[item]
            listed, first, last = matching_totals(own.words, own.size, words[level], size[level], target)
            yield item, listed + own.least, range(first + own.least, last + own.least + 1)


def _longest(totals: Sequence[_Totals], copies: Ints, target: int) -> int:
    """Number of bits that any sumset can need: sets with a tail only become shorter, and the lengths of the others add up."""
    with_tail = max((int(one.size[0]) for one in totals if one.size[1]), default=0)
    without = sum(int(c) * int(one.size[0]) for c, one in zip(copies, totals, strict=True) if not one.size[1])
    return min(target + 1, max(with_tail, without, 1))


def _cell_runs(row: _Row, rule: _Rule, listed: Ints, solid: range) -> tuple[Ints, Ints]:
    """Values of the cells of one row over its feasible totals, as runs and their spans."""
    tree = row.tree
    wide = max(solid.start, _wide_from(row.published, rule.unit)) if solid and tree.is_free else solid.stop
    narrow = np.arange(solid.start, min(wide, solid.stop), dtype=np.int64)
    totals = np.concatenate([listed, narrow])
    if tree.crossing:
        return _crossing_runs(row.published, tree, rule, totals)
    runs, span = cell_runs(
        row.published,
        rule.unit,
        rule.half_even,
        tree.parent,
        tree.at_least,
        tree.at_most,
        totals,
        wide,
        solid.stop - 1,
    )
    return runs, span


def _wide_from(published: Ints, unit: int) -> int:
    """A total from which the interval of every cell has more values than there are cells.

    When t grows by one, the lower end of a cell rises by at most one and its upper end falls by at most the number of cells minus two; so
    from here on the intervals of neighbouring totals overlap. The width of an interval is one of four differences, all of which grow with
    t: that of the cell's own interval by t / (2 unit) - 2, and those of all cells together as in `_solid_from`; a cell that contains
    everyone cannot exceed t. A single cell is the total itself.
    """
    n_cells, total = published.size, int(published.sum())
    if n_cells == 1:
        return 0
    positive = int((published > 0).sum())
    room_below = 2 * unit - 2 * total + positive
    room_above = 2 * total + n_cells - 2 * unit - int((published == unit).any())
    return max(
        2 * unit * (n_cells + 2),
        -(-2 * unit * (positive + n_cells) // room_below),
        -(-2 * unit * 2 * n_cells // room_above),
    )


def _is_certain(row: _Row, rule: _Rule, listed: Ints, solid: range, certain: Fraction) -> bool:
    """Whether one cell holds at least this share of the row, for every feasible total and every way to fill it.

    Large totals are checked first: the ends of the printed intervals approach a share that is too low.
    """
    low = [Fraction(2 * k - 1, 2 * rule.unit) for k in row.published.tolist()]
    high = [Fraction(2 * k + 1, 2 * rule.unit) for k in row.published.tolist()]
    if any(max(own, 1 - sum(high) + most) >= certain for own, most in zip(low, high, strict=True)):
        return True
    could_be = np.ones(row.published.size, dtype=bool)
    for total in (*reversed(solid), *listed[::-1].tolist()):
        runs, span = _cell_runs(row, rule, np.array([total]), range(0))
        could_be &= runs[span[:, 0], 0] * certain.denominator >= total * certain.numerator
        if not could_be.any():
            return False
    return True


def _crossing_runs(published: Ints, tree: _StatementTree, rule: _Rule, totals: Ints) -> tuple[Ints, Ints]:
    """As `cell_runs`, for known sums that cross one another."""
    values: list[set[int]] = [set() for _ in published]
    for t in totals.tolist():
        for found, more in zip(values, _crossing_values(published, tree, rule, t), strict=True):
            found |= more
    runs = [compressed(np.array(sorted(found), dtype=np.int64)) for found in values]
    ends = np.cumsum([len(some) for some in runs])
    return np.concatenate(runs), np.stack([np.append(0, ends[:-1]), ends], axis=1)


def _crossing_values(published: Ints, tree: _StatementTree, rule: _Rule, t: int) -> list[set[int]]:
    """Values of each cell for total t when known sums cross; an empty list if there are none.

    Interval passing is not exact here, so partial sums of all known sets are enumerated cell by cell, forwards
    and backwards.
    """
    n_cells = published.size
    members, bounds = _memberships(tree, n_cells, t)
    choices = []
    for cell in range(n_cells):
        low, high = count_interval(int(published[cell]), rule.unit, t, rule.half_even)
        choices.append(range(max(low, int(tree.at_least[cell])), min(high, int(tree.at_most[cell])) + 1))
    highest = [upper for _, upper in bounds]
    forward: list[set[tuple[int, ...]]] = [{(0,) * len(bounds)}]
    for cell in range(n_cells):
        sums = {_plus(partial, value, members[cell]) for partial in forward[-1] for value in choices[cell]}
        forward.append({total for total in sums if all(map(int.__le__, total, highest))})
    alive = {end for end in forward[-1] if all(low <= x for x, (low, _) in zip(end, bounds, strict=True))}
    values: list[set[int]] = [set() for _ in range(n_cells)]
    for cell in range(n_cells - 1, -1, -1):
        before = set()
        for partial in forward[cell]:
            for value in choices[cell]:
                if _plus(partial, value, members[cell]) in alive:
                    values[cell].add(value)
                    before.add(partial)
        alive = before
    return values if alive else []


def _plus(partial: tuple[int, ...], value: int, member: tuple[int, ...]) -> tuple[int, ...]:
    """Partial sums after a cell with this value."""
    return tuple(total + value * counts for total, counts in zip(partial, member, strict=True))


def _memberships(
    tree: _StatementTree, n_cells: int, t: int
) -> tuple[list[tuple[int, ...]], list[tuple[int, int]]]:
    """Which known sums (nested, crossing, and the row itself) include each cell, and their bounds."""
    n_nodes = len(tree.parent)
    above: list[list[int]] = [[0] * (n_nodes - n_cells) for _ in range(n_cells)]
    for cell in range(n_cells):
        node = int(tree.parent[cell])
        while node >= 0:
            above[cell][node - n_cells] = 1
            node = int(tree.parent[node])
    bounds = [
        (int(low), int(high))
        for low, high in zip(tree.at_least[n_cells:], tree.at_most[n_cells:], strict=True)
    ]
    bounds[-1] = (max(bounds[-1][0], t), min(bounds[-1][1], t))
    members = [(*above[cell], *(int(one.cells[cell]) for one in tree.crossing)) for cell in range(n_cells)]
    return members, bounds + [(one.lower, one.upper) for one in tree.crossing]
