"""Implied constraints: the consequences of public knowledge about leaves for every region above them.

Cells are divided into *types*. A statement bounds the number of people in a set of types in one region, or
fixes it. The question is which type counts x of a region can be divided among its leaves so that every
statement holds, in integers.

Where the sets stated about leaves are nested or disjoint (laminar), the answer is: those with lower(S) <= x(S) <= upper(S) for every set S
of types, and the bounds of a region are the sums of its children's, cut by what is stated about the region itself. Two exact crossing
margins, two by two, are also complete (Lemma 1). Other crossing statements are handled by elimination where the tree is small
(`elimination`); otherwise only necessary conditions are derived, and `kind` says so.

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
from dataclasses import dataclass, replace
from enum import StrEnum
from fractions import Fraction

import numpy as np

from louver._arrays import Ints
from louver.data.regions import RegionTree
from louver.errors import InfeasibleError, InputError
from louver.optim.elimination import LinearRow
from louver.optim.kernels.families.polymatroid import box_inplace
from louver.topdown.knowledge.elimination import (
    UNBOUNDED,
    Bounds,
    bit,
    bound_union,
    cut_total,
    eliminate,
    is_laminar,
    is_two_by_two,
    leaf_bounds,
    set_sums,
)

__all__ = [
    "MAX_TYPES",
    "UNBOUNDED",
    "DerivedKind",
    "Implied",
    "LevelStatements",
    "Violation",
    "classify",
    "cut_total",
    "derive",
    "is_laminar",
    "leaf_bounds",
    "set_sums",
]

MAX_TYPES = 10
"""Maximum number of types in a problem: every region carries 2^types bounds."""

LEAF_CHUNK, PARENT_CHUNK = 4096, 512  # leaves, and parents of leaves, whose bounds are computed together

MOST_HELD = 4096
"""Maximum number of parents of leaves whose bounds are kept, 2^(types + 4) bytes each; beyond it, bounds are derived again on request."""


class DerivedKind(StrEnum):
    """How strong the derived constraints are."""

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
    """Public bounds for every region of one level.

    Parameters
    ----------
    masks : tuple of int
        Sets of types that the statements cover, each a bit mask.
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
        Their number.
    bound : int
        The maximum (`is_upper`) or minimum number allowed.
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
    kind : DerivedKind
    statements : tuple of LevelStatements
        The statements from which they were derived.
    above : tuple of (lower, upper) or None
        For every level but the last, arrays (regions, 2^types). Those of leaves, and of many parents of leaves (None), are derived on
        request.
    constrained : tuple of bool
        Whether any region of a level is constrained at all.
    """

    spine: RegionTree
    n_types: int
    kind: DerivedKind
    statements: tuple[LevelStatements, ...]
    above: tuple[Bounds | None, ...]
    constrained: tuple[bool, ...]

    @property
    def is_integral(self) -> bool:
        """Whether rounding is integral by structure (ERRATA T10)."""
        return self.kind is DerivedKind.NESTED

    def bounds(self, level: int, start: int, stop: int) -> Bounds:
        """Lower and upper bounds of the regions start to stop of a level, arrays (regions, 2^types)."""
        if level < self.spine.n_levels - 1:
            held = self.above[level]
            if held is None:
                return _from_leaves(self.spine, self.n_types, self.statements, start, stop)
            return held[0][start:stop], held[1][start:stop]
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
        False leaves out the consequences for regions above the leaves, so that a region is bound only by statements about itself. For tests
        of the failsafe.

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
    above: list[Bounds | None] = []
    constrained: list[bool] = []
    if spine.n_levels == 1:
        _check_leaves(spine, *leaf_bounds(n_types, leaves.masks, leaves.lower, leaves.upper), 0)
    elif above_leaves:
        above, constrained = _derive_above(spine, n_types, statements, kind)
    else:
        for level, size in enumerate(spine.sizes[:-1]):
            free = leaf_bounds(n_types, (), *_no_bounds(size))
            bounds = _cut(spine, level, n_types, statements[level], free)
            above.append(bounds)
            constrained.append(_binds(*bounds))
    if kind is DerivedKind.CROSSING and above_leaves and above:
        kind, above = _by_elimination(spine, n_types, statements, above)
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
    spine: RegionTree, n_types: int, statements: Sequence[LevelStatements], above: list[Bounds | None]
) -> tuple[DerivedKind, list[Bounds | None]]:
    """Bounds of crossing statements, sharpened where the tree is small enough, and their strength."""
    found = eliminate(
        spine,
        n_types,
        [_rows(n_types, stated, n) for stated, n in zip(statements, spine.sizes, strict=True)],
        [bounds for bounds in above if bounds is not None],  # all levels, for crossing statements
    )
    if found is None:
        return DerivedKind.CROSSING, above
    for level, (lower, upper) in enumerate(found.above):
        clash = np.flatnonzero((lower > upper).any(axis=1))
        if len(clash):
            raise _contradiction(spine, level, int(clash[0]))
    return DerivedKind.ELIMINATED if found.is_complete else DerivedKind.CROSSING, list(found.above)


def _rows(n_types: int, stated: LevelStatements, n_regions: int) -> list[list[LinearRow]]:
    """Statements about each region as rows over its types."""
    regions: list[list[LinearRow]] = []
    for region in range(n_regions):
        rows = []
        for mask, low, high in zip(stated.masks, stated.lower[region], stated.upper[region], strict=True):
            inside = tuple(mask >> t & 1 for t in range(n_types))
            rows.append(LinearRow(inside, Fraction(int(low))))
            if high < UNBOUNDED:
                rows.append(LinearRow(tuple(-a for a in inside), Fraction(-int(high))))
        regions.append(rows)
    return regions


def classify(n_types: int, statements: Sequence[LevelStatements]) -> DerivedKind:
    """How completely statements about these sets of types can be derived."""
    everything = (1 << n_types) - 1
    leaves = statements[-1]
    if is_two_by_two(n_types, leaves.masks, leaves.lower, leaves.upper):
        is_complete = all(mask == everything for level in statements[:-1] for mask in level.masks)
        return DerivedKind.TWO_BY_TWO if is_complete else DerivedKind.CROSSING
    # Above the leaves only single types and the total keep the bounds complete.
    simple = {everything, *(1 << t for t in range(n_types))}
    is_simple = all(mask in simple for level in statements[:-1] for mask in level.masks)
    return DerivedKind.NESTED if is_simple and is_laminar(leaves.masks) else DerivedKind.CROSSING


def _no_bounds(n_regions: int) -> Bounds:
    return np.zeros((n_regions, 0), np.int64), np.zeros((n_regions, 0), np.int64)


def _derive_above(
    spine: RegionTree, n_types: int, statements: Sequence[LevelStatements], kind: DerivedKind
) -> tuple[list[Bounds | None], list[bool]]:
    """Bounds of every level above the leaves, None for many parents of leaves; and whether they constrain anything."""
    is_held = kind is DerivedKind.CROSSING or spine.sizes[-2] <= MOST_HELD
    lowest, is_bound, sums = _parents_of_leaves(spine, n_types, statements, is_held=is_held)
    above, constrained = [lowest], [is_bound]
    for level in range(spine.n_levels - 3, -1, -1):
        bounds = _cut(spine, level, n_types, statements[level], sums)
        above.insert(0, bounds)
        constrained.insert(0, _binds(*bounds))
        if level > 0:
            lower, upper = (spine.add_up(level - 1, own) for own in bounds)
            sums = lower, np.minimum(upper, UNBOUNDED)
    return above, constrained


def _binds(lower: Ints, upper: Ints) -> bool:
    return bool((lower > 0).any() or (upper[:, 1:] < UNBOUNDED).any())


def _parents_of_leaves(
    spine: RegionTree, n_types: int, statements: Sequence[LevelStatements], *, is_held: bool
) -> tuple[Bounds | None, bool, Bounds]:
    """Bounds of the level above the leaves, None unless they are to be kept; also whether they bind, and their sums for the level above."""
    level, held, is_bound = spine.n_levels - 2, [], False
    lower = np.zeros((spine.sizes[max(0, level - 1)], 1 << n_types), dtype=np.int64)
    upper = np.zeros_like(lower)
    for first in range(0, spine.sizes[level], PARENT_CHUNK):
        own = _from_leaves(spine, n_types, statements, first, min(first + PARENT_CHUNK, spine.sizes[level]))
        is_bound |= _binds(*own)
        if is_held:
            held.append(own)
        if level > 0:
            _add_into(lower, spine.starts[level - 1], first, own[0])
            _add_into(upper, spine.starts[level - 1], first, own[1])
    bounds = (
        (np.concatenate([low for low, _ in held]), np.concatenate([high for _, high in held]))
        if held
        else None
    )
    return bounds, is_bound, (lower, np.minimum(upper, UNBOUNDED))


def _from_leaves(
    spine: RegionTree, n_types: int, statements: Sequence[LevelStatements], start: int, stop: int
) -> Bounds:
    """Bounds of the parents of leaves start to stop: those of the leaves added up, tightened by what is stated about the parents."""
    level, leaves = spine.n_levels - 2, statements[-1]
    starts = spine.starts[level][start : stop + 1]
    lower = np.zeros((stop - start, 1 << n_types), dtype=np.int64)
    upper = np.zeros_like(lower)
    for first in range(int(starts[0]), int(starts[-1]), LEAF_CHUNK):
        span = slice(first, min(first + LEAF_CHUNK, int(starts[-1])))
        low, high = leaf_bounds(n_types, leaves.masks, leaves.lower[span], leaves.upper[span])
        _check_leaves(spine, low, high, first)
        _add_into(lower, starts, first, low)
        _add_into(upper, starts, first, high)
    return _cut(spine, level, n_types, statements[level], (lower, np.minimum(upper, UNBOUNDED)), start)


def _add_into(sums: Ints, starts: Ints, first: int, rows: Ints) -> None:
    """Add the rows of regions from `first` on to those of their parents, whose children begin at `starts`."""
    parent = np.searchsorted(starts, np.arange(first, first + len(rows)), side="right") - 1
    begin = np.flatnonzero(np.r_[True, parent[1:] > parent[:-1]])
    sums[parent[begin]] += np.add.reduceat(rows, begin, axis=0)


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
    spine: RegionTree, level: int, n_types: int, stated: LevelStatements, bounds: Bounds, first: int = 0
) -> Bounds:
    """Tighten the bounds derived from below by what is stated about the regions themselves, from `first` on."""
    span = slice(first, first + len(bounds[0]))
    stated = replace(stated, lower=stated.lower[span], upper=stated.upper[span])
    everything = (1 << n_types) - 1
    lower, upper = bounds[0].copy(), bounds[1].copy()
    at_least = np.zeros((len(lower), n_types), dtype=np.int64)
    at_most = np.full((len(lower), n_types), UNBOUNDED)
    for column, mask in enumerate(stated.masks):
        low, high = stated.lower[:, column], stated.upper[:, column]
        if mask.bit_count() == 1:
            at_least[:, bit(mask)] = np.maximum(at_least[:, bit(mask)], low)
            at_most[:, bit(mask)] = np.minimum(at_most[:, bit(mask)], high)
        elif mask != everything:
            np.maximum(lower[:, mask], low, out=lower[:, mask])
            np.minimum(upper[:, mask], high, out=upper[:, mask])
    singles = 1 << np.arange(n_types)
    binding = (at_least > lower[:, singles]) | (at_most < upper[:, singles])
    for region in np.flatnonzero(binding.any(axis=1)):
        new_lower, new_upper = np.empty_like(lower[0]), np.empty_like(upper[0])
        box = (lower[region], upper[region], n_types, at_least[region], at_most[region])
        if not box_inplace(*box, new_lower, new_upper):
            raise _contradiction(spine, level, first + int(region))
        lower[region], upper[region] = new_lower, new_upper
    for column, mask in enumerate(stated.masks):
        if mask == everything:
            bound_union(mask, stated.lower[:, column], stated.upper[:, column], lower, upper)
    clash = np.flatnonzero((lower > upper).any(axis=1))
    if len(clash):
        raise _contradiction(spine, level, first + int(clash[0]))
    return lower, upper
