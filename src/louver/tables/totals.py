"""Sets of feasible totals: tight bounds from row conditionals where a linear program sees nothing.

For a row of conditionals only some numbers of people n fit the printed shares. Counts over the row attributes that nest
tell sums of these n, so sets add up and are cut down along a tree. Sets are bits of Python's integers: bit n is set if n
is feasible. Wright & Smucker (2014) do it for one table of exact conditionals and its sample size.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from louver.optim.kernels.audit.propagate import UNBOUNDED
from louver.tables.pieces import Shares
from louver.tables.system import IntArray

__all__ = ["MAX_PEOPLE", "feasible_totals", "row_set", "share_bounds"]

MAX_PEOPLE = 2_000_000
"""Largest total for which sets are laid out."""


def row_set(shares: Shares, row: int, most: int) -> int:
    """Totals up to `most` that fit the printed shares of one row."""
    if shares.is_empty[row]:
        return 1
    printed = shares.printed[row]
    if shares.decimals is None:
        unit = int(printed.sum())
        return _bits(np.arange(unit, most + 1, unit))
    n = np.arange(1, most + 1, dtype=np.int64)
    low, high = _intervals(shares, printed, n)
    is_met = (low <= high).all(axis=0) & (low.sum(axis=0) <= n) & (n <= high.sum(axis=0))
    return _bits(n[is_met])


def _intervals(shares: Shares, printed: IntArray, n: IntArray) -> tuple[IntArray, IntArray]:
    """Counts of each cell (cols, totals) that round to the printed shares when n people are in the row."""
    assert shares.decimals is not None
    doubled = 2 * 10**shares.decimals
    below, above = (2 * printed - 1)[:, None] * n, (2 * printed + 1)[:, None] * n
    is_closed = np.zeros(len(printed), dtype=bool)
    is_open_below = np.zeros(len(printed), dtype=bool)
    if shares.is_half_even:
        is_closed, is_open_below = printed % 2 == 0, printed % 2 == 1
    low = -(-below // doubled)
    low = np.where(is_open_below[:, None] & (below % doubled == 0), below // doubled + 1, low)
    high = -(-above // doubled) - 1
    high = np.where(is_closed[:, None], above // doubled, high)
    return np.maximum(low, 0), np.minimum(high, n)


def feasible_totals(sets: Sequence[int], sums: Sequence[tuple[frozenset[int], int, int]]) -> list[int] | None:
    """Totals of each row that some choice of all rows' totals has.

    Parameters
    ----------
    sets : sequence of int
        Feasible totals of the rows one by one, as bits.
    sums : sequence of (rows, lower, upper)
        Bounds on sums of rows, `upper` finite; the sets of rows must nest.

    Returns
    -------
    list of int, or None where nothing fits.
    """
    tree = _Tree.of(len(sets), sums)
    up: dict[int, int] = {}
    for node in tree.order:
        children = tree.children[node]
        total = (
            sets[node] if node < len(sets) else _sum_of([up[child] for child in children], tree.most(node))
        )
        up[node] = total & tree.mask(node)
        if not up[node]:
            return None
    allowed = dict(up)
    for node in reversed(tree.order):
        children = tree.children[node]
        for child, others in zip(
            children, _all_but_one([up[child] for child in children], tree.most(node)), strict=True
        ):
            allowed[child] = up[child] & _differences(allowed[node], others)
    return [allowed[row] for row in range(len(sets))]


def share_bounds(shares: Shares, row: int, totals: int) -> tuple[IntArray, IntArray]:
    """Tight bounds of the cells of one row whose total is one of a set, each with the others free to adapt."""
    n = _members(totals)
    if shares.is_empty[row]:
        zeros = np.zeros(shares.n_cols, dtype=np.int64)
        return zeros, zeros
    printed = shares.printed[row]
    if shares.decimals is None:
        unit = int(printed.sum())
        return printed * (n[0] // unit), printed * (n[-1] // unit)
    low, high = _intervals(shares, printed, n)
    least = np.maximum(low, n - (high.sum(axis=0) - high))
    most = np.minimum(high, n - (low.sum(axis=0) - low))
    return least.min(axis=1), most.max(axis=1)


@dataclass(frozen=True, slots=True)
class _Tree:
    """Rows are the first nodes; sums of rows follow, each the parent of what it holds; children stand before parents."""

    order: list[int]
    children: dict[int, list[int]]
    limits: dict[int, tuple[int, int]]

    @classmethod
    def of(cls, n_rows: int, sums: Sequence[tuple[frozenset[int], int, int]]) -> _Tree:
        limits: dict[frozenset[int], tuple[int, int]] = {}
        for rows, low, high in sums:
            before = limits.get(rows, (0, UNBOUNDED))
            limits[rows] = (max(before[0], low), min(before[1], high))
        nodes = sorted(limits, key=lambda rows: (len(rows), sorted(rows)))
        children: dict[int, list[int]] = {row: [] for row in range(n_rows)}
        top = {row: row for row in range(n_rows)}
        for number, rows in enumerate(nodes, start=n_rows):
            children[number] = list(dict.fromkeys(top[row] for row in sorted(rows)))
            for row in rows:
                top[row] = number
        bounds = {number: limits[rows] for number, rows in enumerate(nodes, start=n_rows)}
        return cls(list(range(n_rows + len(nodes))), children, bounds)

    def most(self, node: int) -> int:
        return self.limits[node][1] if node in self.limits else 0

    def mask(self, node: int) -> int:
        """Bits of the totals that a sum's bounds allow."""
        low, high = self.limits.get(node, (0, UNBOUNDED))
        if high >= UNBOUNDED:
            return -1 << low
        return (1 << (high + 1)) - (1 << low) if high >= low else 0


def _bits(members: IntArray) -> int:
    """A set as an integer with one bit per member."""
    if not len(members):
        return 0
    flags = np.zeros(int(members[-1]) + 1, dtype=np.uint8)
    flags[members] = 1
    return int.from_bytes(np.packbits(flags, bitorder="little").tobytes(), "little")


def _members(bits: int) -> IntArray:
    raw = np.frombuffer(bits.to_bytes(bits.bit_length() // 8 + 1, "little"), dtype=np.uint8)
    return np.flatnonzero(np.unpackbits(raw, bitorder="little")).astype(np.int64)


def _sum_of(sets: Sequence[int], most: int) -> int:
    total = 1
    for bits in sets:
        total = _sumset(total, bits, most)
    return total


def _sumset(first: int, second: int, most: int) -> int:
    """All sums up to `most` of a member of each."""
    if first.bit_count() < second.bit_count():
        first, second = second, first
    out = 0
    for start, step, count in _runs(_members(second)):
        out |= _spread(first << start, step, count)
    return out & ((1 << (most + 1)) - 1)


def _differences(first: int, second: int) -> int:
    """All members of the first less a member of the second, where not negative."""
    out = 0
    for start, step, count in _runs(_members(second)):
        # Less start, less start + step, ...: the same as spreading upwards and then shifting by the last.
        out |= _spread(first, step, count) >> (start + step * (count - 1))
    return out


def _spread(bits: int, step: int, count: int) -> int:
    """Union of bits shifted by 0, step, ..., step (count - 1), in logarithmically many shifts."""
    out, done = bits, 1
    while done < count:
        more = min(done, count - done)
        out |= out << (step * more)
        done += more
    return out


def _runs(members: IntArray) -> list[tuple[int, int, int]]:
    """Increasing members as arithmetic progressions (start, step, count)."""
    found = []
    gaps = np.diff(members)
    start, n = 0, len(members)
    ends = np.append(np.flatnonzero(np.diff(gaps) != 0) + 1, n - 1) if n > 1 else np.array([0])
    for end in ends.tolist():
        if end < start:
            continue
        step = int(gaps[start]) if end > start else 1
        found.append((int(members[start]), step, end - start + 1))
        start = end + 1
    if start < n:
        found.append((int(members[start]), 1, 1))
    return found


def _all_but_one(sets: Sequence[int], most: int) -> list[int]:
    """Sums of all sets but each one, from the left and from the right."""
    if not sets:
        return []
    before, after = [1], [1]
    for bits in sets[:-1]:
        before.append(_sumset(before[-1], bits, most))
    for bits in reversed(sets[1:]):
        after.append(_sumset(after[-1], bits, most))
    return [_sumset(a, b, most) for a, b in zip(before, reversed(after), strict=True)]
