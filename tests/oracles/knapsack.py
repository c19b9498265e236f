"""Peers and oracles of the bounds capability, independent of louver's own solvers.

Algorithms 3.1 and 3.4 of Wright & Smucker (2014), the knapsacks (1)-(2) given to HiGHS one by one, and
enumeration of every integer table. Rows are described by their reduced sums r_i; `gap` is N - R.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise, product

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp

Table = tuple[tuple[int, ...], ...]

UNREACHED = np.int32(2**30)


# --- Algorithm 3.1 ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Viability:
    """The viability table f: bits 0..gamma, and true from there up to the gap."""

    bits: int
    gamma: int
    gap: int

    def remainders(self) -> list[int]:
        """All c <= gap for which f(c) is true."""
        low = [c for c in range(self.gamma + 1) if self.bits >> c & 1]
        return low + list(range(self.gamma + 1, self.gap + 1))

    def multiples(self, value: int) -> np.ndarray:
        """All xi for which f(gap - value xi) is true."""
        places = self._stride(value)
        start = places.size
        solid = np.arange(self.gap // value + 1 - start)
        return np.concatenate([solid, self.gap // value - np.flatnonzero(places)[::-1]])

    def extremes(self, value: int) -> tuple[int, int] | None:
        """The least and the greatest such xi."""
        places, top = self._stride(value), self.gap // value
        hits = np.flatnonzero(places)
        is_solid_beyond = top >= places.size
        if not hits.size and not is_solid_beyond:
            return None
        least = 0 if is_solid_beyond else top - int(hits[-1])
        greatest = top - (int(hits[0]) if hits.size else places.size)
        return least, greatest

    def _stride(self, value: int) -> np.ndarray:
        """f at gap mod value, one value further, and so on up to gamma."""
        packed = np.frombuffer(self.bits.to_bytes(self.gamma // 8 + 1, "little"), dtype=np.uint8)
        return np.unpackbits(packed, bitorder="little")[: self.gamma + 1][self.gap % value :: value]


def algorithm_3_1(
    row_sums: Sequence[int], gap: int, upper: Sequence[int | None] | None = None
) -> tuple[np.ndarray, np.ndarray] | None:
    """nu- and nu+ of every row by Algorithm 3.1 as published; None when the knapsack is infeasible.

    Follows section 3.2 with Update 3.2, or Update 3.3 where `upper` bounds some rows, viability tables as bit
    strings, loops cut at gamma, rows that need solving last, and the simplifications (ERRATA B2, B3).
    """
    sums = np.asarray(row_sums, dtype=np.int64)
    least = np.full(sums.size, -1)
    greatest = np.full(sums.size, -1)
    if upper is None:
        _simplify(sums, gap, least, greatest)
    for row, viability in viability_tables(sums, gap, upper, (least < 0) | (greatest < 0)):
        ends = _within(viability, int(sums[row]), None if upper is None else upper[row])
        if ends is None:
            return None
        least[row], greatest[row] = ends
    return least, greatest


def feasible_values_3_1(
    row_sums: Sequence[int], gap: int, upper: Sequence[int | None] | None = None
) -> list[list[int]]:
    """All feasible nu of every row by Algorithm 3.1 (section 4.1); empty lists when infeasible."""
    values: list[list[int]] = [[] for _ in row_sums]
    for row, viability in viability_tables(row_sums, gap, upper, np.ones(len(row_sums), dtype=bool)):
        most = gap if upper is None or upper[row] is None else upper[row]
        values[row] = [int(xi) for xi in viability.multiples(int(row_sums[row])) if xi <= most]
    return values


def viability_tables(
    row_sums: Sequence[int], gap: int, upper: Sequence[int | None] | None, needed: np.ndarray
) -> Iterator[tuple[int, Viability]]:
    """Each needed row with the remainders that all other rows accommodate, in the published order."""
    order = [*np.flatnonzero(~needed).tolist(), *np.flatnonzero(needed).tolist()]
    first_needed = len(order) - int(needed.sum()) + 1
    if first_needed > len(order):
        return
    sums = [0, *(int(row_sums[row]) for row in order)]
    limits = None if upper is None else [0, *(upper[row] for row in order)]
    low, high, saved = {1: 1}, {1: len(order)}, {}
    empty = Viability(bits=1, gamma=gap, gap=gap) if gap else Viability(bits=0, gamma=-1, gap=0)
    f, depth, direction = empty, 1, 1
    while depth > 0:
        if low[depth] == high[depth]:
            yield order[low[depth] - 1], f
            if low[depth] == first_needed:
                return
            direction = -1
        elif direction == 1:
            low[depth + 1] = -(-(high[depth] + low[depth]) // 2)
            high[depth + 1] = high[depth]
            saved[depth] = f
            f = _updated(f, range(low[depth], low[depth + 1]), sums, limits)
        elif low[depth] < low[depth + 1]:
            high[depth + 1] = low[depth + 1] - 1
            low[depth + 1] = low[depth]
            f = _updated(saved[depth], range(high[depth + 1] + 1, high[depth] + 1), sums, limits)
            direction = 1
        depth += direction


def _updated(
    f: Viability, rows: Iterable[int], sums: list[int], limits: list[int | None] | None
) -> Viability:
    """Update 3.2 or 3.3 of f for each row."""
    bits, gamma = f.bits, f.gamma
    for row in rows:
        value = sums[row]
        if value > gamma or (limits is None and bits >> value & 1):
            continue
        mask = (1 << (gamma + 1)) - 1
        limit = None if limits is None else limits[row]
        if limit is None or limit >= f.gap // value:
            shift = value
            while shift <= gamma:
                bits |= bits << shift & mask
                shift *= 2
        else:
            before = bits
            for k in range(1, min(limit, gamma // value) + 1):
                bits |= before << k * value & mask
        gamma = (bits ^ mask).bit_length() - 1
        bits &= (1 << (gamma + 1)) - 1
    return Viability(bits, gamma, f.gap)


def _within(viability: Viability, value: int, limit: int | None) -> tuple[int, int] | None:
    if limit is None:
        return viability.extremes(value)
    values = viability.multiples(value)
    values = values[values <= limit]
    return (int(values[0]), int(values[-1])) if values.size else None


def _simplify(sums: np.ndarray, gap: int, least: np.ndarray, greatest: np.ndarray) -> None:
    """What section 3.2 says about rows before any viability table; -1 stays where it says nothing."""
    if not sums.size:
        return
    nothing = (sums > gap) | ((gap - sums.min() < sums) & (sums < gap))
    least[nothing] = greatest[nothing] = 0
    for special in (np.flatnonzero(sums == gap), np.flatnonzero(sums == 1)):
        if special.size:
            greatest[special] = gap // sums[special]
            least[:] = np.where(np.arange(sums.size) == special[0], least, 0)
        if special.size > 1:
            least[special[0]] = 0
    if (sums == 1).any():
        greatest[:] = gap // sums


# --- Algorithm 3.4 ---------------------------------------------------------------------------------


def algorithm_3_4(row_sums: Sequence[int], gap: int, row: int) -> tuple[int, int] | None:
    """nu- and nu+ of one row by the classical recurrence, once for the minimum and once for the maximum.

    The recurrence is printed with g_{i-1}(c - r_i) on its right-hand side, which would use every row at most
    once; "in this order" and Update 3.2 show that g_i(c - r_i) is meant.
    """
    order = [int(value) for i, value in enumerate(row_sums) if i != row] + [int(row_sums[row])]
    least, greatest = (_classical(order, gap, sign) for sign in (1, -1))
    return None if least is None or greatest is None else (least, -greatest)


def _classical(order: Sequence[int], gap: int, sign: int) -> int | None:
    """The least sum of sign * nu of the last row."""
    g = np.full(gap + 1, UNREACHED, dtype=np.int32)
    g[0] = 0
    for i, value in enumerate(order):
        cost = sign if i == len(order) - 1 else 0
        length = -(-(gap + 1) // value)
        # Column c of the block holds c, c + value, c + 2 value, ...: the order in which c is visited.
        block = np.full(length * value, UNREACHED, dtype=np.int32)
        block[: gap + 1] = g
        block = block.reshape(length, value)
        paid = cost * np.arange(length, dtype=np.int32)[:, None]
        g = (np.minimum.accumulate(block - paid, axis=0) + paid).ravel()[: gap + 1]
    return int(g[gap]) if abs(int(g[gap])) <= gap else None


# --- HiGHS -----------------------------------------------------------------------------------------


def highs(
    row_sums: Sequence[int],
    gap: int,
    row: int,
    lower: Sequence[int] | None = None,
    upper: Sequence[float] | None = None,
) -> tuple[int, int] | None:
    """nu- and nu+ of one row as two integer programs; None when they have no solution."""
    n = len(row_sums)
    total = LinearConstraint(np.asarray(row_sums, dtype=float)[None, :], gap, gap)
    box = Bounds(np.zeros(n) if lower is None else lower, np.full(n, np.inf) if upper is None else upper)
    ends = []
    for sign in (1, -1):
        cost = np.zeros(n)
        cost[row] = sign
        answer = milp(
            cost, integrality=np.ones(n), bounds=box, constraints=total, options={"mip_rel_gap": 0.0}
        )
        if answer.status == 2:
            return None
        if answer.status != 0:
            raise RuntimeError(f"HiGHS stopped: {answer.message}")
        ends.append(sign * round(answer.fun))
    return ends[0], ends[1]


# --- Sets of sums ----------------------------------------------------------------------------------


def sums(items: Iterable[tuple[int, int | None]], top: int) -> set[int]:
    """All sums up to `top` of multiples of the values, each at most its limit times (None: no limit)."""
    found = {0}
    for value, limit in items:
        most = top // value if limit is None else min(limit, top // value)
        found = {s + k * value for s in found for k in range(most + 1) if s + k * value <= top}
    return found


def feasible_multiples(items: Sequence[tuple[int, int | None]], target: int) -> list[list[int]]:
    """For each item all nu <= its limit such that the others make target - nu * value."""
    answers = []
    for i, (value, limit) in enumerate(items):
        others = sums([*items[:i], *items[i + 1 :]], target)
        most = target // value if limit is None else min(limit, target // value)
        answers.append([nu for nu in range(most + 1) if target - nu * value in others])
    return answers


def expanded(runs: Iterable[Sequence[int]]) -> list[int]:
    """All values of (start, stop, step) runs, in the order of the runs."""
    return [int(x) for start, stop, step in runs for x in range(start, stop + 1, step)]


# --- Every integer table ---------------------------------------------------------------------------


def compositions(total: int, parts: int) -> Iterator[tuple[int, ...]]:
    """All ways to write `total` as an ordered sum of `parts` whole numbers, zeros included."""
    if parts == 0:
        if total == 0:
            yield ()
        return
    for first in range(total + 1) if parts > 1 else (total,):
        for rest in compositions(total - first, parts - 1):
            yield (first, *rest)


def tables_with_conditionals(conditionals: Sequence[Sequence[Fraction]], n: int) -> list[Table]:
    """All integer tables of n people, no row empty, whose rows have exactly these conditionals."""
    return _tables(
        n,
        len(conditionals),
        lambda row, total: (
            [tuple(int(p * total) for p in conditionals[row])]
            if all((p * total).denominator == 1 for p in conditionals[row])
            else []
        ),
    )


def tables_with_rounded(published: Sequence[Sequence[int]], decimals: int, rule: str, n: int) -> list[Table]:
    """All integer tables of n people, no row empty, whose conditionals round to the published ones.

    `published` is in units of the last decimal; `rule` is "half-up" or "half-even".
    """
    n_cells = len(published[0]) if len(published) else 0
    return _tables(
        n,
        len(published),
        lambda row, total: [
            cells
            for cells in compositions(total, n_cells)
            if all(
                rounded(Fraction(count, total), decimals, rule) == printed
                for count, printed in zip(cells, published[row], strict=True)
            )
        ],
    )


def _tables(n: int, n_rows: int, rows_with_total) -> list[Table]:
    choices = [[rows_with_total(row, total) for total in range(1, n + 1)] for row in range(n_rows)]
    found: list[Table] = []
    for totals in compositions(n - n_rows, n_rows) if n >= n_rows else ():
        found += product(*(choices[row][more] for row, more in enumerate(totals)))
    return found


def rounded(value: Fraction, decimals: int, rule: str) -> int:
    """The printed value in units of the last decimal."""
    scaled = value * 10**decimals
    below = scaled.numerator // scaled.denominator
    part = scaled - below
    if part == Fraction(1, 2):
        return below + (1 if rule == "half-up" else below % 2)
    return below + (1 if part > Fraction(1, 2) else 0)


def cell_values(tables: Sequence[Table], row: int, col: int) -> list[int]:
    """All values that one cell takes, ascending."""
    return sorted({table[row][col] for table in tables})


def fewest_runs(values: Sequence[int]) -> int:
    """Least number of arithmetic progressions that ascending values split into, one after the other."""
    best = [0] + [len(values)] * len(values)
    for end in range(1, len(values) + 1):
        for start in range(end):
            piece = values[start:end]
            steps = {b - a for a, b in pairwise(piece)}
            if len(steps) <= 1:
                best[end] = min(best[end], best[start] + 1)
    return best[-1]
