"""Regions between a fixed level and the leaves, rearranged for areas of interest. It uses public input only.

A level of new regions follows a rule: leaves are in one region if they are in the same geographic region, and in the same area of each of
some kinds. Rules become finer from level to level, so that the regions are a tree and every leaf is in exactly one region of every level.
Of all such sequences of rules, the one chosen is that for which least squares would estimate areas best, as long as no geographic level
becomes much worse."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations_with_replacement, pairwise, product
from math import comb
from typing import Any

import numpy as np
import pyarrow as pa

from louver._arrays import Floats, Ints
from louver.data.regions import SEPARATOR, RegionTree
from louver.errors import InputError
from louver.optim.spines import Parts, upward_variances
from louver.run import Run
from louver.topdown.spine.areas import AreaKind

__all__ = [
    "ArrangedSpine",
    "RegionRule",
    "arrange",
    "build_spine",
    "choose_rules",
    "region_of",
    "spine_table",
]

MOST_CANDIDATES = 20_000
DIGITS = 9
"""Number of decimals to which forecasts are compared, so that the choice does not depend on the machine."""


@dataclass(frozen=True, slots=True)
class RegionRule:
    """The common properties of the leaves of a new region.

    Parameters
    ----------
    depth : int
        The geographic level, counted from the fixed one, which is 0.
    kinds : tuple of int
        Kinds of areas.
    """

    depth: int
    kinds: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ArrangedSpine:
    """A spine that was arranged for areas, and its inputs.

    Parameters
    ----------
    geographic : RegionTree
        The regions as they were.
    fixed : int
        The last of the levels that are kept.
    kinds : tuple of AreaKind
    rules : tuple of RegionRule
        One for each new level.
    spine : RegionTree
        The new regions.
    leaf : ndarray of int64, shape (leaves,)
        For each leaf of the new spine its place in the geographic tree.
    """

    geographic: RegionTree
    fixed: int
    kinds: tuple[AreaKind, ...]
    rules: tuple[RegionRule, ...]
    spine: RegionTree
    leaf: Ints

    @property
    def rule_names(self) -> tuple[tuple[str, tuple[str, ...]], ...]:
        """For every new level, the geographic level and the kinds of areas that define its regions."""
        return tuple(
            (
                self.geographic.names[self.fixed + rule.depth],
                tuple(self.kinds[kind].name for kind in rule.kinds),
            )
            for rule in self.rules
        )

    def stated(self) -> dict[str, Any]:
        """The rules, in the form of a manifest."""
        return {
            "fixed": self.geographic.names[self.fixed],
            "geography": list(self.geographic.names),
            "kinds": [kind.name for kind in self.kinds],
            "rules": [{"geography": level, "areas": list(kinds)} for level, kinds in self.rule_names],
        }

    def area_of(self, kind: AreaKind) -> Ints:
        """The area of every leaf of the new spine."""
        return kind.area_of[self.leaf]


def arrange(
    tree: RegionTree,
    fixed: int,
    kinds: tuple[AreaKind, ...],
    names: Sequence[str],
    *,
    tolerance: float = 0.05,
    power: int = 1,
    run: Run | None = None,
) -> ArrangedSpine:
    """Choose the rules of the new levels and build the spine.

    Parameters
    ----------
    tree : RegionTree
        The geographic tree.
    fixed : int
        Levels down to this one are kept.
    kinds : tuple of AreaKind
    names : sequence of str
        Names of the new levels.
    tolerance : float
        Fraction by which the forecast error of a geographic level may grow.
    power : int
        Variances grow with this power of the number of levels that share a budget: 1 for rho, 2 for epsilon.
    run : Run, optional
        Checked for cancellation.
    """
    rules = choose_rules(tree, fixed, kinds, len(names), tolerance=tolerance, power=power, run=run)
    spine, leaf = build_spine(tree, fixed, kinds, rules, names)
    return ArrangedSpine(geographic=tree, fixed=fixed, kinds=kinds, rules=rules, spine=spine, leaf=leaf)


def choose_rules(
    tree: RegionTree,
    fixed: int,
    kinds: Sequence[AreaKind],
    n_new: int,
    *,
    tolerance: float,
    power: int = 1,
    run: Run | None = None,
) -> tuple[RegionRule, ...]:
    """The rules with the least forecast error of areas, among those that are within the tolerance or exceed it least."""
    n_geographic = tree.n_levels - 2 - fixed
    atoms = _Atoms.of(tree, fixed, kinds, power)
    before = atoms.errors([RegionRule(depth, ()) for depth in range(1, n_geographic + 1)])
    candidates = _candidates(n_geographic, len(kinds), n_new)
    best, chosen = (np.inf, np.inf), candidates[0]
    for number, rules in enumerate(candidates):
        if run is not None:
            run.report("arranging regions", number, len(candidates))
        found = atoms.errors(rules)
        ratio = np.divide(found, before, out=np.ones(len(before)), where=before > 0)
        worst = round(max(float(ratio[len(kinds) :].max()), 1.0 + tolerance), DIGITS)
        score = round(float(ratio[: len(kinds)].mean()), DIGITS)
        if (worst, score) < best:
            best, chosen = (worst, score), rules
    return chosen


def _candidates(n_geographic: int, n_kinds: int, n_new: int) -> list[tuple[RegionRule, ...]]:
    """All sequences of rules that become finer, starting with the geography or the sequence closest to it."""
    size = comb(n_geographic + n_new, n_new) * (n_new + 1) ** n_kinds
    if size > MOST_CANDIDATES:
        message = (
            f"{n_new} new levels and {n_kinds} kinds of areas can be combined in {size:,} ways, more than "
            f"{MOST_CANDIDATES:,}; use fewer."
        )
        raise InputError(message, option="spine.levels")
    depths = sorted(
        combinations_with_replacement(range(n_geographic + 1), n_new),
        key=lambda own: (-len(set(own)), own[::-1]),
    )
    found = []
    for own in depths:
        for begins in product(range(n_new, -1, -1), repeat=n_kinds):  # the level from which on a kind is used
            kinds = [tuple(k for k, first in enumerate(begins) if first <= level) for level in range(n_new)]
            found.append(tuple(map(RegionRule, own, kinds)))
    return found


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Atoms:
    """Groups of leaves that no rule distinguishes, with their sizes and locations.

    Parameters
    ----------
    size : ndarray of int64, shape (atoms,)
    above : sequence of ndarray of int64
        For each level below the root, down to the fixed one, the parent of every region.
    regions : sequence of ndarray of int64, shape (atoms,)
        The region at the fixed level and at every geographic level below it, except the leaves.
    areas : sequence of ndarray of int64, shape (atoms,)
        The area of every kind, -1 for none.
    power : int
    """

    size: Ints
    above: Sequence[Ints]
    regions: Sequence[Ints]
    areas: Sequence[Ints]
    power: int

    @classmethod
    def of(cls, tree: RegionTree, fixed: int, kinds: Sequence[AreaKind], power: int) -> _Atoms:
        """The atoms of a tree and some kinds of areas."""
        regions = [region_of(tree, level) for level in range(fixed, tree.n_levels - 1)]
        columns = [*regions, *(kind.area_of for kind in kinds)]
        number = _numbered(columns)
        first = np.unique(number, return_index=True)[1]
        return cls(
            size=np.bincount(number),
            above=[
                np.repeat(np.arange(n), np.diff(s))
                for n, s in zip(tree.sizes[:fixed], tree.starts, strict=False)
            ],
            regions=[own[first] for own in regions],
            areas=[kind.area_of[first] for kind in kinds],
            power=power,
        )

    def errors(self, rules: Sequence[RegionRule]) -> Floats:
        """Mean standard errors of a count: for areas of each kind, for regions of the fixed and the geographic levels, and for leaves.

        Every level has the same share of the budget.
        """
        groups = [self.regions[0], *map(self._group, rules)]
        parents = [*self.above, *(_parents(*pair) for pair in pairwise(groups))]
        n_levels = len(parents) + 2
        precision = 1.0 / n_levels**self.power
        n_leaves = np.bincount(groups[-1], self.size)
        lowest = 1.0 / (precision + precision / n_leaves)
        variances = upward_variances(parents, [precision] * len(parents), lowest)
        found = []
        for areas in (*self.areas, *self.regions):
            parts = _parts(groups[-1], areas, self.size, n_leaves, 1.0 / precision)
            found.append(np.sqrt(parts.climb(parents, variances, int(areas.max()) + 1)).mean())
        own = np.arange(len(n_leaves))
        leaf = Parts(region=own, area=own, share=1 / n_leaves, rest=(1 - 1 / n_leaves) / precision)
        each = np.sqrt(leaf.climb(parents, variances, len(own)))
        found.append(np.average(each, weights=n_leaves))
        return np.array(found)

    def _group(self, rule: RegionRule) -> Ints:
        return _numbered([self.regions[rule.depth], *(self.areas[kind] for kind in rule.kinds)])


def _parts(group: Ints, areas: Ints, size: Ints, n_leaves: Ints, variance: float) -> Parts:
    """The parts of areas, for groups of leaves with equal variances."""
    inside = np.flatnonzero(areas >= 0)
    n_areas = int(areas.max()) + 1
    keys, place = np.unique(group[inside] * n_areas + areas[inside], return_inverse=True)
    region, area = np.divmod(keys, n_areas)
    number, whole = np.bincount(place, size[inside]), n_leaves[region]
    return Parts(
        region=region, area=area, share=number / whole, rest=variance * (number - number * (number / whole))
    )


def region_of(tree: RegionTree, level: int) -> Ints:
    """The region of a level in which each leaf lies."""
    ends = np.arange(tree.sizes[level] + 1)
    for starts in tree.starts[level:]:
        ends = starts[ends]
    return np.repeat(np.arange(tree.sizes[level]), np.diff(ends))


def _numbered(columns: Sequence[Ints]) -> Ints:
    """Numbers of the distinct rows of the columns, in the order of their first occurrence."""
    number = np.zeros(len(columns[0]), np.int64)
    for column in columns:
        number = np.unique(number * (int(column.max()) + 2) + column + 1, return_inverse=True)[1]
    first = np.unique(number, return_index=True)[1]
    rank = np.empty(len(first), np.int64)
    rank[np.argsort(first, kind="stable")] = np.arange(len(first))
    return rank[number]


def _parents(coarse: Ints, fine: Ints) -> Ints:
    """The coarse group of every fine one."""
    found: Ints = coarse[np.unique(fine, return_index=True)[1]]
    return found


def build_spine(
    tree: RegionTree, fixed: int, kinds: Sequence[AreaKind], rules: Sequence[RegionRule], names: Sequence[str]
) -> tuple[RegionTree, Ints]:
    """The tree of new regions, and for each of its leaves the place in the geographic tree.

    Within a region, regions and leaves are in the order of their first geographic leaf. The code of a new region is that of the region
    above it, a slash and a number.
    """
    groups = [region_of(tree, fixed)]
    for rule in rules:
        columns = [region_of(tree, fixed + rule.depth), *(kinds[kind].area_of for kind in rule.kinds)]
        groups.append(_numbered([groups[-1], *columns]))
    leaf = np.lexsort(groups[::-1])
    codes, starts = [list(tree.codes[fixed])], []
    for above, own in pairwise(group[leaf] for group in groups):
        begins = np.flatnonzero(np.diff(own, prepend=-1))
        parent = above[begins]
        starts.append(np.append(np.flatnonzero(np.diff(parent, prepend=-1)), len(parent)).astype(np.int64))
        codes.append(_codes(codes[-1], starts[-1]))
    lowest = groups[-1][leaf]
    starts.append(np.append(np.flatnonzero(np.diff(lowest, prepend=-1)), len(lowest)).astype(np.int64))
    labels = [tree.leaf_labels[i] for i in leaf]
    spine = RegionTree(
        names=(*tree.names[: fixed + 1], *names, tree.names[-1]),
        codes=(
            *tree.codes[:fixed],
            *(tuple(own) for own in codes),
            tuple(tree.leaves[i] for i in leaf),
        ),
        leaf_labels=tuple(labels),
        starts=(*tree.starts[:fixed], *starts),
    )
    return spine, leaf


def _codes(above: Sequence[str], starts: Ints) -> list[str]:
    """Codes of the children of regions."""
    found = []
    for code, n in zip(above, np.diff(starts).tolist(), strict=True):
        width = len(str(n))
        found += [f"{code}{SEPARATOR}{number:0{width}d}" for number in range(1, n + 1)]
    return found


def spine_table(arrangement: ArrangedSpine) -> pa.Table:
    """One row for each leaf, in the order of the spine."""
    spine, tree, leaf = arrangement.spine, arrangement.geographic, arrangement.leaf
    columns = {"leaf": pa.array(spine.leaves, pa.string())}
    for level in range(spine.n_levels - 1):
        columns[f"spine: {spine.names[level]}"] = _text(region_of(spine, level), spine.codes[level])
    for level in range(arrangement.fixed + 1, tree.n_levels - 1):
        columns[f"geography: {tree.names[level]}"] = _text(region_of(tree, level)[leaf], tree.codes[level])
    for kind in arrangement.kinds:
        columns[f"area: {kind.name}"] = _text(arrangement.area_of(kind), kind.areas)
    return pa.table(columns)


def _text(place: Ints, names: tuple[str, ...]) -> pa.Array:
    """Names in place of numbers; -1 stands for none."""
    return pa.array(names, pa.string()).take(pa.array(place, mask=np.asarray(place < 0)))
