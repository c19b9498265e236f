"""Implied constraints: what public knowledge about leaves says about every region above them.

Cells are divided into *types*. A statement bounds the number of people in a set of types in one region, or
fixes it. The question is which type counts x of a region can be divided among its leaves so that every
statement holds, in integers.

Where the sets stated about leaves are nested or disjoint (laminar), the answer is: those with
lower(S) <= x(S) <= upper(S) for every set S of types, and the bounds of a region are the sums of its
children's, cut by what is stated about the region itself. Two exact crossing margins, two by two, are also
complete (Lemma 1). Other crossing statements are worked out by elimination where the tree is small (`crossing`); otherwise only
necessary conditions are derived, and `kind` says so.

Notes
-----
**Implements**: Abowd et al. (2019), sections 7.2-7.4, Theorem 3, Lemma 1 and equations (19)-(25).
**Departs**: with upper bounds the paper's flow over combinations of types is not complete (ERRATA T8). Here
each leaf's vectors are the generalised polymatroid of f(S) = min(u(S), n - l(V - S)) and its counterpart
from below; sums of such sets, and their cuts by bounds on single types and on the total, are again such sets
and split into integers (Frank & Tardos 1988).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction

import numpy as np

from louver._arrays import Ints
from louver.data.regions import RegionTree
from louver.errors import InfeasibleError, InputError
from louver.optim.elimination import Row
from louver.optim.kernels.families.polymatroid import UNBOUNDED as _UNBOUNDED
from louver.optim.kernels.families.polymatroid import box_inplace
from louver.topdown.crossing import eliminate

__all__ = [
    "MAX_TYPES",
    "UNBOUNDED",
    "Implied",
    "Kind",
    "LevelStatements",
    "Violation",
    "classify",
    "cut_total",
    "derive",
    "is_laminar",
    "leaf_bounds",
    "set_sums",
]

UNBOUNDED = int(_UNBOUNDED)
"""Stands for "no upper bound"."""

MAX_TYPES = 10
"""Types a problem may have: every region carries 2^types bounds."""

LEAF_CHUNK = 4096  # leaves whose bounds are held at once while they are added up


class Kind(StrEnum):
    """What the derived constraints are worth."""

    NESTED = "nested"
    """Complete and integral: rounding needs no integer program."""

    TWO_BY_TWO = "two-by-two"
    """Complete, but rounding needs an integer program."""

    ELIMINATED = "eliminated"
    """Complete by elimination, for a small tree; rounding needs an integer program."""

    CROSSING = "crossing"
    """Necessary only: some region may turn out to have no solution below it."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LevelStatements:
    """What is publicly known about every region of one level.

    Parameters
    ----------
    masks : tuple of int
        Sets of types spoken about, each a bit mask.
    lower, upper : ndarray of int64, shape (regions, sets)
        Bounds; 0 and UNBOUNDED where nothing is known.
    """

    masks: tuple[int, ...]
    lower: Ints
    upper: Ints

    @classmethod
    def nothing(cls, n_regions: int) -> LevelStatements:
        """No statement about any region of a level."""
        return cls(
            masks=(), lower=np.zeros((n_regions, 0), np.int64), upper=np.zeros((n_regions, 0), np.int64)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Violation:
    """Why type counts of a region cannot be divided among its leaves.

    Parameters
    ----------
    mask : int
        The set of types with too many or too few people.
    held : int
        How many there are.
    bound : int
        How many there may be at most (`is_upper`) or must be at least.
    leaves : tuple of str
        The leaves that can take people of these types (`is_upper`) or must have some.
    """

    level: str
    region: str
    mask: int
    held: int
    bound: int
    is_upper: bool
    leaves: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Implied:
    """Bounds on every set of types, for every region.

    Parameters
    ----------
    spine : RegionTree
    n_types : int
    kind : Kind
    statements : tuple of LevelStatements
        What they were derived from.
    above : tuple of (lower, upper)
        For every level but the last, arrays (regions, 2^types). Those of leaves are derived when asked for.
    constrained : tuple of bool
        Whether any region of a level is constrained at all.
    """

    spine: RegionTree
    n_types: int
    kind: Kind
    statements: tuple[LevelStatements, ...]
    above: tuple[tuple[Ints, Ints], ...]
    constrained: tuple[bool, ...]

    @property
    def is_integral(self) -> bool:
        """Whether rounding is integral by structure (ERRATA T10)."""
        return self.kind is Kind.NESTED

    def bounds(self, level: int, start: int, stop: int) -> tuple[Ints, Ints]:
        """Lower and upper bounds of the regions start to stop of a level, arrays (regions, 2^types)."""
        if level < self.spine.n_levels - 1:
            lower, upper = self.above[level]
            return lower[start:stop], upper[start:stop]
        leaves = self.statements[-1]
        return leaf_bounds(self.n_types, leaves.masks, leaves.lower[start:stop], leaves.upper[start:stop])

    def find_violation(self, level: int, region: int, type_counts: Ints) -> Violation | None:
        """Decide whether a region with these type counts can be extended to its leaves (Problem 2).

        Parameters
        ----------
        level, region : int
        type_counts : ndarray of int64, shape (types,)

        Returns
        -------
        Violation or None
            None if it can; the worst violation otherwise. Where `kind` is CROSSING, None proves nothing.
        """
        lower, upper = self.bounds(level, region, region + 1)
        held = set_sums(type_counts[None, :])[0]
        excess, lack = held - upper[0], lower[0] - held
        worst = max(int(excess.max()), int(lack.max()))
        if worst <= 0:
            return None
        is_upper = int(excess.max()) == worst
        mask = int((excess if is_upper else lack).argmax())
        first, last = self.spine.leaf_range(level, region, region + 1)
        share = self.bounds(self.spine.n_levels - 1, first, last)[1 if is_upper else 0][:, mask]
        leaves = tuple(self.spine.leaves[first + i] for i in np.flatnonzero(share > 0))
        return Violation(
            level=self.spine.names[level],
            region=self.spine.codes[level][region],
            mask=mask,
            held=int(held[mask]),
            bound=int((upper if is_upper else lower)[0, mask]),
            is_upper=is_upper,
            leaves=leaves,
        )


def derive(
    spine: RegionTree, n_types: int, statements: Sequence[LevelStatements], *, above_leaves: bool = True
) -> Implied:
    """Derive the bounds of every region from statements about regions of any level.

    Parameters
    ----------
    spine : RegionTree
    n_types : int
        At most MAX_TYPES.
    statements : sequence of LevelStatements
        One for each level, the root first.
    above_leaves : bool
        False leaves out what follows for regions above the leaves, so that only what is stated about a region
        binds it. For tests of the failsafe.

    Raises
    ------
    InfeasibleError
        If the statements contradict each other; names the level and a region, whose number `clash` holds.

    Notes
    -----
    **Cost**: O(leaves 2^types); O(4^types) more for each region above the leaves with bounds of its own.

    Examples
    --------
    Example 1 of the paper: female, co-ed and male dorms; 98 students in each of two regions, the first without
    male and the second without female dorms.

    >>> spine = RegionTree.from_columns([("town", "1"), ("town", "2")], ("town", "region"))
    >>> stated = LevelStatements(masks=(1, 4, 7), lower=np.array([[0, 0, 98], [0, 0, 98]]),
    ...                          upper=np.array([[UNBOUNDED, 0, 98], [0, UNBOUNDED, 98]]))
    >>> implied = derive(spine, 3, [LevelStatements.nothing(1), stated])
    >>> implied.find_violation(0, 0, np.array([48, 49, 99])).leaves
    ('town/2',)
    """
    if not 1 <= n_types <= MAX_TYPES:
        raise InputError(f"there are {n_types} types of cells; at most {MAX_TYPES} can be bounded.")
    leaves = statements[-1]
    kind = classify(n_types, statements)
    bounds: tuple[Ints, Ints] | None = None
    above: list[tuple[Ints, Ints]] = []
    for level in range(spine.n_levels - 2, -1, -1):
        if not above_leaves:
            bounds = leaf_bounds(n_types, (), *_no_bounds(spine.sizes[level]))
        elif bounds is None:
            bounds = _add_up_leaves(spine, n_types, leaves)
        else:
            bounds = (spine.add_up(level, bounds[0]), np.minimum(spine.add_up(level, bounds[1]), UNBOUNDED))
        bounds = _cut(spine, level, n_types, statements[level], bounds)
        above.append(bounds)
    above.reverse()
    if not above:
        _check_leaves(spine, *leaf_bounds(n_types, leaves.masks, leaves.lower, leaves.upper), 0)
    elif kind is Kind.CROSSING and above_leaves:
        kind, above = _by_elimination(spine, n_types, statements, above)
    constrained = [bool((low > 0).any() or (high[:, 1:] < UNBOUNDED).any()) for low, high in above]
    constrained.append(bool((leaves.lower > 0).any() or (leaves.upper < UNBOUNDED).any()))
    return Implied(
        spine=spine,
        n_types=n_types,
        kind=kind,
        statements=tuple(statements),
        above=tuple(above),
        constrained=tuple(constrained),
    )


def _by_elimination(
    spine: RegionTree, n_types: int, statements: Sequence[LevelStatements], above: list[tuple[Ints, Ints]]
) -> tuple[Kind, list[tuple[Ints, Ints]]]:
    """Bounds of crossing statements, sharpened where the tree is small enough, and what they are worth then."""
    found = eliminate(
        spine,
        n_types,
        [_rows(n_types, stated, n) for stated, n in zip(statements, spine.sizes, strict=True)],
        above,
    )
    if found is None:
        return Kind.CROSSING, above
    for level, (lower, upper) in enumerate(found.above):
        clash = np.flatnonzero((lower > upper).any(axis=1))
        if len(clash):
            raise _contradiction(spine, level, int(clash[0]))
    return Kind.ELIMINATED if found.is_complete else Kind.CROSSING, list(found.above)


def _rows(n_types: int, stated: LevelStatements, n_regions: int) -> list[list[Row]]:
    """Statements about each region as rows over its types."""
    regions: list[list[Row]] = []
    for region in range(n_regions):
        rows = []
        for mask, low, high in zip(stated.masks, stated.lower[region], stated.upper[region], strict=True):
            inside = tuple(mask >> t & 1 for t in range(n_types))
            rows.append(Row(inside, Fraction(int(low))))
            if high < UNBOUNDED:
                rows.append(Row(tuple(-a for a in inside), Fraction(-int(high))))
        regions.append(rows)
    return regions


def is_laminar(masks: Sequence[int]) -> bool:
    """Whether any two sets are nested or disjoint.

    Examples
    --------
    >>> is_laminar([0b1111, 0b0011, 0b0100]), is_laminar([0b0011, 0b0110])
    (True, False)
    """
    return all(a & b in (0, a, b) for a in masks for b in masks)


def set_sums(counts: Ints) -> Ints:
    """Sum of every set of columns: (rows, types) to (rows, 2^types)."""
    sums = np.zeros((len(counts), 1 << counts.shape[1]), dtype=np.int64)
    for t in range(counts.shape[1]):
        sums[:, 1 << t : 2 << t] = sums[:, : 1 << t] + counts[:, t, None]
    return sums


def leaf_bounds(n_types: int, masks: Sequence[int], lower: Ints, upper: Ints) -> tuple[Ints, Ints]:
    """Bounds on every set of types in each leaf.

    Parameters
    ----------
    n_types : int
    masks : sequence of int
        The sets stated about.
    lower, upper : ndarray of int64, shape (leaves, sets)

    Returns
    -------
    lower, upper : ndarray of int64, shape (leaves, 2^types)
        Least and greatest number of people in each set. Contradictions show as lower > upper.

    Notes
    -----
    **Implements**: for laminar sets, bottom up: parts that were not bounded together yet are independent;
    a bound [a, b] on their union A gives upper(S) = min(upper(S), b - lower(A - S)) and, from below,
    lower(S) = max(lower(S), a - upper(A - S)) for S within A.
    """
    everything = (1 << n_types) - 1
    if _is_two_by_two(n_types, masks, lower, upper):
        return _two_by_two(n_types, masks, lower)
    low = np.zeros((len(lower), everything + 1), dtype=np.int64)
    high = set_sums(np.full((len(lower), n_types), UNBOUNDED))
    np.minimum(high, UNBOUNDED, out=high)
    for column in sorted(range(len(masks)), key=lambda j: masks[j].bit_count()):
        _bound_union(masks[column], lower[:, column], upper[:, column], low, high)
    if not is_laminar(masks):
        # Necessary conditions only: once more, now that every other set is bounded.
        for column in range(len(masks)):
            _bound_union(masks[column], lower[:, column], upper[:, column], low, high)
    return low, high


def cut_total(lower: Ints, upper: Ints, total: int) -> tuple[Ints, Ints]:
    """Bounds of one region (2^types) cut by a fixed number of people."""
    low, high = lower[None, :].copy(), upper[None, :].copy()
    fixed = np.array([total])
    _bound_union(len(lower) - 1, fixed, fixed, low, high)
    return low[0], high[0]


def _bound_union(union: int, at_least: Ints, at_most: Ints, low: Ints, high: Ints) -> None:
    """Cut all sets by a bound on one union of types, in place."""
    size = low.shape[1]
    inside = np.array([s for s in range(size) if s & ~union == 0])
    at_most = np.where(at_most >= UNBOUNDED, 2 * UNBOUNDED, at_most)
    new_high = np.minimum(high[:, inside], at_most[:, None] - low[:, union - inside])
    new_low = np.maximum(low[:, inside], at_least[:, None] - high[:, union - inside])
    low[:, inside], high[:, inside] = new_low, np.minimum(new_high, UNBOUNDED)
    part = np.arange(size) & union
    rest = np.arange(size) & ~union
    across = np.flatnonzero((part > 0) & (rest > 0))
    low[:, across] = np.maximum(low[:, across], low[:, part[across]] + low[:, rest[across]])
    high[:, across] = np.minimum(high[:, across], high[:, part[across]] + high[:, rest[across]])


def _is_two_by_two(n_types: int, masks: Sequence[int], lower: Ints, upper: Ints) -> bool:
    """Whether the statements fix the margins of four types seen as two crossing pairs."""
    if n_types != 4 or not np.array_equal(lower, upper):
        return False
    pairs = {min(mask, 15 - mask) for mask in masks if mask.bit_count() == 2}
    return len(pairs) == 2 and all(mask.bit_count() in (2, 4) for mask in masks) and _fixes_total(masks)


def _fixes_total(masks: Sequence[int]) -> bool:
    return 15 in masks or any(15 - mask in masks for mask in masks)


def _two_by_two(n_types: int, masks: Sequence[int], fixed: Ints) -> tuple[Ints, Ints]:
    """Bounds where both margins of a two by two table are fixed: one count is free, between two ends.

    **Implements**: Abowd et al. (2019), Lemma 1.
    """
    known = dict(zip(masks, fixed.T, strict=True))
    pairs = [mask for mask in masks if mask.bit_count() == 2]
    total = known[15] if 15 in known else next(known[m] + known[15 - m] for m in pairs if 15 - m in known)
    row = pairs[0]
    column = next(mask for mask in pairs if mask not in (row, 15 - row))
    corner = row & column
    ends = (np.maximum(0, known[row] + known[column] - total), np.minimum(known[row], known[column]))
    tables = []
    for count in ends:
        table = np.empty((len(fixed), n_types), dtype=np.int64)
        table[:, _bit(corner)] = count
        table[:, _bit(row & ~column)] = known[row] - count
        table[:, _bit(column & ~row)] = known[column] - count
        table[:, _bit(15 & ~row & ~column)] = total - known[row] - known[column] + count
        tables.append(set_sums(table))
    return np.minimum(*tables), np.maximum(*tables)


def _bit(mask: int) -> int:
    return mask.bit_length() - 1


def classify(n_types: int, statements: Sequence[LevelStatements]) -> Kind:
    """What can be derived from statements about these sets of types."""
    everything = (1 << n_types) - 1
    leaves = statements[-1]
    if _is_two_by_two(n_types, leaves.masks, leaves.lower, leaves.upper):
        is_complete = all(mask == everything for level in statements[:-1] for mask in level.masks)
        return Kind.TWO_BY_TWO if is_complete else Kind.CROSSING
    # Above the leaves only single types and the total keep the bounds complete.
    simple = {everything, *(1 << t for t in range(n_types))}
    is_simple = all(mask in simple for level in statements[:-1] for mask in level.masks)
    return Kind.NESTED if is_simple and is_laminar(leaves.masks) else Kind.CROSSING


def _no_bounds(n_regions: int) -> tuple[Ints, Ints]:
    return np.zeros((n_regions, 0), np.int64), np.zeros((n_regions, 0), np.int64)


def _add_up_leaves(spine: RegionTree, n_types: int, leaves: LevelStatements) -> tuple[Ints, Ints]:
    """Sums of the leaves' bounds for the level above them, some thousand leaves at a time."""
    level = spine.n_levels - 2
    starts = spine.starts[level]
    lower = np.zeros((spine.sizes[level], 1 << n_types), dtype=np.int64)
    upper = np.zeros_like(lower)
    first = 0
    while first < len(lower):
        last = max(first + 1, int(np.searchsorted(starts, starts[first] + LEAF_CHUNK, side="right")) - 1)
        span = slice(starts[first], starts[last])
        low, high = leaf_bounds(n_types, leaves.masks, leaves.lower[span], leaves.upper[span])
        _check_leaves(spine, low, high, int(starts[first]))
        offsets = starts[first:last] - starts[first]
        lower[first:last] = np.add.reduceat(low, offsets, axis=0)
        upper[first:last] = np.minimum(np.add.reduceat(high, offsets, axis=0), UNBOUNDED)
        first = last
    return lower, upper


def _check_leaves(spine: RegionTree, lower: Ints, upper: Ints, first: int) -> None:
    clash = np.flatnonzero((lower > upper).any(axis=1))
    if len(clash):
        raise _contradiction(spine, spine.n_levels - 1, first + int(clash[0]))


def _contradiction(spine: RegionTree, level: int, region: int) -> InfeasibleError:
    message = (
        f'the public knowledge about {spine.names[level]} "{spine.codes[level][region]}" contradicts itself; '
        "run `louver topdown check` to see which statements clash."
    )
    return InfeasibleError(message, clash=(region,))


def _cut(
    spine: RegionTree, level: int, n_types: int, stated: LevelStatements, bounds: tuple[Ints, Ints]
) -> tuple[Ints, Ints]:
    """Cut the bounds that follow from below by what is stated about the regions themselves."""
    everything = (1 << n_types) - 1
    lower, upper = bounds[0].copy(), bounds[1].copy()
    at_least = np.zeros((len(lower), n_types), dtype=np.int64)
    at_most = np.full((len(lower), n_types), UNBOUNDED)
    for column, mask in enumerate(stated.masks):
        low, high = stated.lower[:, column], stated.upper[:, column]
        if mask.bit_count() == 1:
            at_least[:, _bit(mask)] = np.maximum(at_least[:, _bit(mask)], low)
            at_most[:, _bit(mask)] = np.minimum(at_most[:, _bit(mask)], high)
        elif mask != everything:
            np.maximum(lower[:, mask], low, out=lower[:, mask])
            np.minimum(upper[:, mask], high, out=upper[:, mask])
    singles = 1 << np.arange(n_types)
    binding = (at_least > lower[:, singles]) | (at_most < upper[:, singles])
    for region in np.flatnonzero(binding.any(axis=1)):
        new_lower, new_upper = np.empty_like(lower[0]), np.empty_like(upper[0])
        box = (lower[region], upper[region], n_types, at_least[region], at_most[region])
        if not box_inplace(*box, new_lower, new_upper):
            raise _contradiction(spine, level, int(region))
        lower[region], upper[region] = new_lower, new_upper
    for column, mask in enumerate(stated.masks):
        if mask == everything:
            _bound_union(mask, stated.lower[:, column], stated.upper[:, column], lower, upper)
    clash = np.flatnonzero((lower > upper).any(axis=1))
    if len(clash):
        raise _contradiction(spine, level, int(clash[0]))
    return lower, upper
