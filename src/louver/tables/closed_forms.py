"""Bounds that need no search: sets of feasible row totals for conditionals, and decomposable sets of margins.

In a row of conditionals, only some numbers of people n agree with the printed shares. Counts over the row attributes that nest
restrict sums of these n, so the sets are summed and restricted along a tree. A set is a Python integer whose bit n is set if n
is feasible. The bounds hold whatever else is published, and are tight if nothing else is. Wright & Smucker (2014) do this for
one table of exact conditionals and its sample size.

Dobra & Fienberg (2000): with cliques C and separators S of a decomposable set of margins, a cell has the upper bound min n_C and
the lower bound max(0, sum of n_C - sum of n_S), and whole tables attain both: joining two tables over a separator is a set of
two-way tables with known totals, in each of which one cell can be made as large, or as small, as its two totals allow.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from louver.errors import InfeasibleError
from louver.optim.kernels.audit.propagate import UNBOUNDED
from louver.tables.pieces import Domain, Margin, Piece, Shares, cross_attributes
from louver.tables.system import IntArray, System

__all__ = [
    "MAX_PEOPLE",
    "ConditionalBounds",
    "cliques_and_separators",
    "closed_form",
    "cut",
    "feasible_totals",
    "row_set",
    "share_bounds",
    "tightened",
]

MAX_PEOPLE = 2_000_000
"""Largest total for which sets are built."""


def row_set(shares: Shares, row: int, most: int) -> int:
    """Totals up to `most` that agree with the printed shares of one row."""
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
    """Bounds on the counts of each cell (cols, totals) that round to the printed shares with n people in the row."""
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
    """Totals of each row that occur in some feasible choice of all rows' totals.

    Parameters
    ----------
    sets : sequence of int
        Feasible totals of the rows one by one, as bits.
    sums : sequence of (rows, lower, upper)
        Bounds on sums of rows, `upper` finite; the sets of rows must nest.

    Returns
    -------
    list of int, or None if there is no feasible choice.
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
    """Tight bounds of the cells of one row whose total is in a given set; each bound allows all other cells to adapt."""
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
    """Rows are the first nodes; sums of rows follow, each the parent of what it contains; children come before parents."""

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
    """All sums, up to `most`, of one member of each set."""
    if first.bit_count() < second.bit_count():
        first, second = second, first
    out = 0
    for start, step, count in _runs(_members(second)):
        out |= _spread(first << start, step, count)
    return out & ((1 << (most + 1)) - 1)


def _differences(first: int, second: int) -> int:
    """All non-negative differences between a member of the first set and one of the second."""
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
    """For each set, the sum of all others, combined from the left and from the right."""
    if not sets:
        return []
    before, after = [1], [1]
    for bits in sets[:-1]:
        before.append(_sumset(before[-1], bits, most))
    for bits in reversed(sets[1:]):
        after.append(_sumset(after[-1], bits, most))
    return [_sumset(a, b, most) for a, b in zip(before, reversed(after), strict=True)]


Sum = tuple[frozenset[int], int, int]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ConditionalBounds:
    """Bounds of all cells of one table of conditionals (cells,), and whether they are tight given everything that is published."""

    lower: IntArray
    upper: IntArray
    is_known: NDArray[np.bool_]
    is_tight: bool


def cut(shares: Shares, domain: Domain, pieces: Sequence[Piece]) -> ConditionalBounds | None:
    """Bounds by sets; None if no count bounds a row."""
    assign = domain.assign(shares.cross)
    n_rows = shares.printed.shape[0]
    sums, is_all = _sums(shares, assign, domain, pieces)
    most = _most(n_rows, sums)
    rows = [row for row in range(n_rows) if most[row] <= MAX_PEOPLE]
    if not rows or shares.cross.where:
        return None
    number = {row: place for place, row in enumerate(rows)}
    nested = [
        (frozenset(number[row] for row in members), low, high)
        for members, low, high in sums
        if members <= number.keys() and high <= MAX_PEOPLE
    ]
    totals = feasible_totals([row_set(shares, row, most[row]) for row in rows], nested)
    if totals is None:
        raise InfeasibleError(
            "no number of people agrees with both the conditionals and the counts; check the tables."
        )
    lower = np.zeros(shares.printed.shape, dtype=np.int64)
    upper = np.full(shares.printed.shape, UNBOUNDED, dtype=np.int64)
    for row, allowed in zip(rows, totals, strict=True):
        lower[row], upper[row] = share_bounds(shares, row, allowed)
    is_known = np.repeat(np.isin(np.arange(n_rows), rows), shares.n_cols)
    return ConditionalBounds(
        lower=lower.ravel(), upper=upper.ravel(), is_known=is_known, is_tight=is_all and len(rows) == n_rows
    )


def _sums(
    shares: Shares, assign: IntArray, domain: Domain, pieces: Sequence[Piece]
) -> tuple[list[Sum], bool]:
    """Bounded sums of whole rows that nest, and whether the pieces state nothing else."""
    found: list[Sum] = []
    is_all = sum(len(piece.shares) for piece in pieces) == 1
    row_of = np.where(assign >= 0, assign // shares.n_cols, -1)
    for piece in pieces:
        for margin in piece.margins:
            by_row = _by_row(domain.assign(margin.cross), row_of, shares.printed.shape[0])
            if by_row is None:
                is_all = False
                continue
            for cell in np.flatnonzero((margin.lower > 0) | (margin.upper < UNBOUNDED)):
                members = frozenset(np.flatnonzero(by_row == cell).tolist())
                entry = (members, int(margin.lower[cell]), int(margin.upper[cell]))
                if not members or not _nests(members, found) or entry[2] > MAX_PEOPLE:
                    is_all = is_all and not members
                else:
                    found.append(entry)
    return found, is_all


def _by_row(assign: IntArray, row_of: IntArray, n_rows: int) -> IntArray | None:
    """The margin's cell of each row, if it is the same for all joint cells of a row; -1 for rows it leaves out."""
    cell = np.full(n_rows, -2, dtype=np.int64)
    cell[row_of] = assign
    return cell if (row_of >= 0).all() and np.array_equal(cell[row_of], assign) else None


def _nests(members: frozenset[int], found: list[Sum]) -> bool:
    return all(members <= other or other <= members or not members & other for other, _, _ in found)


def _most(n_rows: int, sums: list[Sum]) -> list[int]:
    """The largest total of each row that its sums allow."""
    most = [UNBOUNDED] * n_rows
    for members, _, high in sums:
        for row in members:
            most[row] = min(most[row], high)
    return most


def tightened(system: System, columns: IntArray, bounds: ConditionalBounds) -> System:
    """The system with the bounds of some unknowns tightened."""
    lower, upper = system.lower.copy(), system.upper.copy()
    known = columns[bounds.is_known]
    lower[known] = np.maximum(lower[known], bounds.lower[bounds.is_known])
    upper[known] = np.minimum(upper[known], bounds.upper[bounds.is_known])
    return replace(system, lower=lower, upper=upper)


Names = frozenset[str]


def closed_form(domain: Domain, pieces: Sequence[Piece], cells: IntArray) -> tuple[IntArray, IntArray] | None:
    """Bounds of the given joint cells, tight in integers; None if the pieces are not a decomposable set of exact margins."""
    margins = [margin for piece in pieces for margin in piece.margins]
    if any(piece.shares for piece in pieces) or not all(_is_plain(margin, domain) for margin in margins):
        return None
    counts = {frozenset(margin.cross.by): _in_classes(margin, domain) for margin in margins}
    ordered = cliques_and_separators(list(counts))
    if ordered is None or not _agree(margins, counts, [clique for clique, _ in ordered], domain):
        return None
    codes = np.unravel_index(cells, domain.shape)
    upper = np.full(len(cells), np.iinfo(np.int64).max)
    lower = np.zeros(len(cells), dtype=np.int64)
    for clique, separator in ordered:
        content = _at(counts[clique], codes)
        upper = np.minimum(upper, content)
        lower += content
        if separator is not None:
            lower -= _at(_summed(counts[clique], separator, domain), codes)
    return np.maximum(lower, 0), upper


def cliques_and_separators(sets: Sequence[Names]) -> list[tuple[Names, Names | None]] | None:
    """Sets with what each shares with the sets after it (None for the last); None if they have no running intersection.

    Graham's reduction: a set whose shared elements all lie in one other set is removed, until one is left.

    Examples
    --------
    >>> pairs = [frozenset("ab"), frozenset("bc"), frozenset("b")]
    >>> [(sorted(c), s and sorted(s)) for c, s in cliques_and_separators(pairs)]
    [(['a', 'b'], ['b']), (['b', 'c'], None)]
    >>> cliques_and_separators([frozenset("ab"), frozenset("bc"), frozenset("ac")]) is None
    True
    """
    left = [one for one in dict.fromkeys(sets) if not any(one < other for other in sets)]
    found: list[tuple[Names, Names | None]] = []
    while len(left) > 1:
        for ear in left:
            others = [other for other in left if other != ear]
            shared = ear & frozenset().union(*others)
            if any(shared <= other for other in others):
                found.append((ear, shared))
                left = others
                break
        else:
            return None
    return [*found, (left[0], None)] if left else None


def _is_plain(margin: Margin, domain: Domain) -> bool:
    """Whether a margin states exact counts of all records, in the finest categories that any piece uses."""
    if margin.cross.where or not np.array_equal(margin.lower, margin.upper):
        return False
    sizes = dict(zip((attribute.name for attribute in domain.attributes), domain.shape, strict=True))
    return all(
        attribute.size == sizes[attribute.name]
        for attribute in cross_attributes(margin.cross, domain.attributes)
    )


def _in_classes(margin: Margin, domain: Domain) -> IntArray:
    """Counts of a margin with one axis for every attribute of the domain, which has length one if the margin is not split by it."""
    sizes = [attribute.size for attribute in cross_attributes(margin.cross, domain.attributes)]
    codes = [domain.codes(name, margin.cross) for name in margin.cross.by]
    content = margin.lower.reshape(sizes)[np.ix_(*codes)] if codes else margin.lower.reshape(())
    names = [attribute.name for attribute in domain.attributes if attribute.name in margin.cross.by]
    content = content.transpose([margin.cross.by.index(name) for name in names])
    return content.reshape(
        [
            size if attribute.name in names else 1
            for attribute, size in zip(domain.attributes, domain.shape, strict=True)
        ]
    )


def _summed(counts: IntArray, names: Names, domain: Domain) -> IntArray:
    """Counts by the named attributes only."""
    axes = [axis for axis, attribute in enumerate(domain.attributes) if attribute.name not in names]
    total: IntArray = counts.sum(axis=tuple(axes), keepdims=True)
    return total


def _at(counts: IntArray, codes: tuple[IntArray, ...]) -> IntArray:
    """Counts of the cells with the given classes."""
    picked: IntArray = counts[
        tuple(code if size > 1 else 0 for code, size in zip(codes, counts.shape, strict=True))
    ]
    return picked


def _agree(
    margins: Sequence[Margin], counts: dict[Names, IntArray], cliques: list[Names], domain: Domain
) -> bool:
    """Whether all margins agree wherever they overlap."""
    for margin in margins:
        own = frozenset(margin.cross.by)
        content = _in_classes(margin, domain)
        for clique in cliques:
            shared = own & clique
            if not np.array_equal(_summed(content, shared, domain), _summed(counts[clique], shared, domain)):
                return False
    return True
