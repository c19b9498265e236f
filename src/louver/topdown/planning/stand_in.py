"""A table on which a plan is tried: public, never the records. It is an earlier census, an earlier release, or a table drawn from the
domain.

A stand-in may have other regions than the spec: every region of the spec is then matched to a region of the stand-in, and its children to
that region's children, so that regions stay similar to their parents. Where a region of the spec has more or fewer leaves than the one it
is matched to, their counts are scaled, so that regions above the leaves keep their sizes.

A stand-in is fitted to the known composition: people are given other labels but live together as in the stand-in.

Notes
-----
**Implements**: iterative proportional fitting (Deming and Stephan 1940) of leaves by cells. Among all tables with the wanted sizes of
leaves and counts of cells it has the least relative entropy to the stand-in, and it keeps the stand-in's odds ratios: how far groups live
apart does not change when their numbers do. A single step towards the counts would not reach them, since leaves keep their sizes: the
tables would be too mixed, and forecasts of their errors too high.
"""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from louver._arrays import Floats, Ints
from louver.data.people import has_same_records
from louver.data.read import open_source
from louver.data.regions import RegionTree
from louver.data.tabulate import read_text
from louver.errors import InputError
from louver.release.open import open_release
from louver.run import Run
from louver.schema.source import SourceOptions
from louver.topdown.measuring.true_counts import true_leaves
from louver.topdown.problem import Design, Query, SparseLevel, Statement
from louver.topdown.result import MICRODATA_FILE

__all__ = [
    "bent",
    "by_popularity",
    "draw_stand_in",
    "gathered",
    "leaf_of",
    "read_stand_in",
    "refuse_records",
    "rounded",
    "without_zeros",
]

EMPTY, SPREAD, MOST_KINDS = 0.3, 1.0, 32
"""For drawn leaves: the share without people, the standard deviation of the log size of the others (both as in US census blocks), and
the number of draws for the cells."""


def read_stand_in(
    design: Design,
    given: Any,
    *,
    people: int | None = None,
    composition: Ints | None = None,
    run: Run | None = None,
) -> SparseLevel:
    """Histograms of the spec's leaves, from a table laid out like the source or from a release of such a spec.

    Parameters
    ----------
    design : Design
    given : path or dataframe
    people : int, optional
        Total number of people; by default the number that the regions above the leaves already have.
    composition : ndarray of int64, shape (regions, cells), optional
        Earlier counts of the regions of one level: leaves are adjusted so that regions have that mix.
    run : Run, optional
        Checked for cancellation while the stand-in is compared with the records.
    """
    refuse_records(design, given, "--stand-in", run)
    design = _as_counted(design, given)
    if isinstance(given, str | Path) and Path(given).is_dir():
        given = open_release(given).tables[Path(MICRODATA_FILE).stem]
    tree = _own_tree(design, given)
    leaves = true_leaves(replace(design, data=given, spine=tree))
    draw = random.Random(0)
    factor = np.ones(leaves.n_regions)
    if tree.codes != design.spine.codes:
        chosen, factor = _places(design.geographic, tree, draw)
        if design.arrangement is not None:
            chosen, factor = chosen[design.arrangement.leaf], factor[design.arrangement.leaf]
        leaves = leaves.take(chosen)
    if people is not None:
        factor = factor * people / max(float((leaves.people * factor).sum()), 1.0)
    if composition is None and (factor == 1.0).all():
        return _fitted(design, leaves)
    wanted = leaves.count * factor[leaf_of(leaves)]
    if composition is not None:
        leaves = by_popularity(leaves, wanted, design.shape, composition.sum(axis=0))
        leaves = without_zeros(replace(leaves, count=leaves.count * design.is_possible[leaves.cell]))
        wanted = bent(leaves, leaves.people * factor, _regions(design.spine, len(composition)), composition)
    return _fitted(design, rounded(leaves, wanted, draw))


def draw_stand_in(design: Design, people: int) -> SparseLevel:
    """A synthetic population: leaves of very unequal size, each with most of its people in a few cells."""
    draw = random.Random(0)
    n_leaves, possible = design.spine.sizes[-1], np.flatnonzero(design.is_possible)
    sizes = np.array([draw.lognormvariate(0.0, SPREAD) * (draw.random() >= EMPTY) for _ in range(n_leaves)])
    sizes = np.rint(sizes * people / max(sizes.sum(), 1e-9)).astype(np.int64)
    popular = np.cumsum([draw.expovariate(1.0) ** 2 for _ in possible]).tolist()
    parts = []
    for size in sizes.tolist():
        chosen = draw.choices(range(len(possible)), cum_weights=popular, k=min(size, MOST_KINDS))
        wanted = np.array([draw.expovariate(1.0) for _ in chosen])
        upto = np.floor(np.cumsum(wanted) / max(wanted.sum(), 1e-9) * size + 0.5)
        counts = np.bincount(possible[chosen], np.diff(upto, prepend=0.0)).astype(np.int64)
        parts.append(_region(np.flatnonzero(counts), counts[counts > 0]))
    return _fitted(design, SparseLevel.concatenate(parts))


def _region(cell: Ints, count: Ints) -> SparseLevel:
    return SparseLevel(start=np.array([0, len(cell)], dtype=np.int64), cell=cell, count=count)


def refuse_records(design: Design, given: Any, option: str, run: Run | None = None) -> None:
    """Refuse the records themselves, under whatever name, order or format, and without some of their columns: a forecast is public."""
    source = design.spec.source
    if given is design.data or (
        design.data is not None
        and not (isinstance(given, str | Path) and Path(given).is_dir())
        and has_same_records(
            given, design.data, weight=source.weight, table=source.table, query=source.query, run=run
        )
    ):
        message = f"option {option} names the records themselves; a forecast is public, so give other data."
        raise InputError(message, option=option)


def _as_counted(design: Design, given: Any) -> Design:
    """The design with a source laid out as the stand-in is: like the spec's, or one row per person in a release."""
    if isinstance(given, str | Path) and Path(given).is_dir():
        schema = replace(design.spec.schema, attributes=design.attributes, recodes=(), hierarchy_rules={})
        return replace(design, spec=replace(design.spec, schema=schema, source=SourceOptions()))
    kept = {"file": None, "uri": None, "table": None, "query": None, "where": None}
    return replace(design, spec=replace(design.spec, source=design.spec.source.model_copy(update=kept)))


def _own_tree(design: Design, given: Any) -> RegionTree:
    """The regions of a stand-in: the spec's if the stand-in has no others, otherwise those that occur in it."""
    geography = design.options.geography
    if geography is None:
        return design.spine
    with open_source(given, **design.spec.source.opening()) as source:
        found = {tuple(str(label) for label in row) for row in read_text(source, design.geography_columns)}
        name = source.name
    if found <= set(design.spine.leaf_labels):
        return design.spine
    try:
        if geography.prefixes is not None:
            codes = sorted(row[0] for row in found)
            return RegionTree.from_prefixes(codes, geography.levels, geography.prefixes)
        return RegionTree.from_columns(sorted(found), geography.levels)
    except InputError:
        message = f"{name} has regions that are not structured like the spec's; give another stand-in."
        raise InputError(message, file=name, option="--stand-in") from None


def _places(spine: RegionTree, tree: RegionTree, draw: random.Random) -> tuple[Ints, Floats]:
    """For every leaf of the spec, a leaf of the stand-in, found child by child, and the factor for its counts.

    Among the children of a region, those with many leaves are matched to those with many.
    """
    chosen, factor = np.zeros(1, dtype=np.int64), np.ones(1)
    for level in range(spine.n_levels - 1):
        number, below = np.diff(spine.starts[level]), []
        own, theirs = _leaves_under(spine, level + 1), _leaves_under(tree, level + 1)
        for first, n, place in zip(spine.starts[level], number.tolist(), chosen.tolist(), strict=False):
            children = range(*tree.children(level, place))
            if n >= 2 * len(children) and level < spine.n_levels - 2:  # too few leaves to represent this many
                children = range(tree.sizes[level + 1])
            rounds, rest = divmod(n, len(children))
            found = np.array([*children] * rounds + draw.sample(children, rest))
            taken = np.empty(n, dtype=np.int64)
            taken[np.argsort(own[first : first + n], kind="stable")] = found[
                np.argsort(theirs[found], kind="stable")
            ]
            below.append(taken)
        factor = np.repeat(np.diff(tree.starts[level])[chosen] / number, number)
        chosen = np.concatenate(below)
    return chosen, factor


def _leaves_under(tree: RegionTree, level: int) -> Ints:
    """Number of leaves of every region of a level."""
    ends = np.arange(tree.sizes[level] + 1)
    for starts in tree.starts[level:]:
        ends = starts[ends]
    return np.diff(ends)


def _regions(spine: RegionTree, n_regions: int) -> Ints:
    """For every leaf, its region at the level with this many regions; if two levels have as many, their regions coincide."""
    return np.repeat(np.arange(n_regions), _leaves_under(spine, spine.sizes.index(n_regions)))


def _fitted(design: Design, leaves: SparseLevel) -> SparseLevel:
    """The same leaves, with the number of people in the cells of each bound limited to what the public tables allow."""
    bounds = [statement for statement in design.statements if not statement.is_invariant]
    for _ in range(2):
        for statement in bounds:
            leaves = _within(design, statement, leaves)
    if any((_counted(s, leaves) < s.lower).any() or (_counted(s, leaves) > s.upper).any() for s in bounds):
        message = "the bounds of the spec overlap so much that no stand-in can be fitted to them; leave some out to forecast."
        raise InputError(message, option="bounds")
    return leaves


def _counted(statement: Statement, leaves: SparseLevel) -> Ints:
    inside = Query(name=statement.name, row_of=statement.cells.astype(np.int64), n_rows=2)
    answer: Ints = inside.answer(leaves)[:, 1]
    return answer


def _within(design: Design, statement: Statement, leaves: SparseLevel) -> SparseLevel:
    """People beyond an upper bound leave; those missing for a lower bound are added to the most populated cell of the set."""
    found = _counted(statement, leaves)
    leaf = leaf_of(leaves)
    share = np.minimum(1.0, statement.upper / np.maximum(found, 1))[leaf]
    count = np.where(statement.cells[leaves.cell], np.floor(leaves.count * share + 1e-9), leaves.count)
    kept = gathered(leaf, leaves.cell, count.astype(np.int64), leaves.n_regions)
    lacking = np.maximum(statement.lower - _counted(statement, kept), 0)
    usable = np.flatnonzero(statement.cells & design.is_possible)
    weight = np.bincount(leaves.cell, leaves.count, minlength=design.n_cells)[usable]
    if lacking.any() and len(usable):
        there = np.flatnonzero(lacking)
        added = np.full(len(there), usable[int(np.argmax(weight))])
        leaf, cell = np.append(leaf, there), np.append(kept.cell, added)
        place, group = np.unique(leaf * design.n_cells + cell, return_inverse=True)
        total = np.bincount(group, np.append(kept.count, lacking[there])).astype(np.int64)
        kept = gathered(place // design.n_cells, place % design.n_cells, total, leaves.n_regions)
    return without_zeros(kept)


MOST_STEPS = 300
CLOSE = 1e-4
"""Relative change of a cell's counts below which fitting stops."""

NOBODY = 1e-9
"""Target number of people in an empty cell, so that leaves with no other cell keep their people."""


def leaf_of(leaves: SparseLevel) -> Ints:
    """The leaf that each count belongs to."""
    return np.repeat(np.arange(leaves.n_regions), np.diff(leaves.start))


def gathered(leaf: Ints, cell: Ints, count: Ints, n_regions: int) -> SparseLevel:
    """Histograms from triples in any order, with each cell of a leaf merged into one entry."""
    order = np.lexsort((cell, leaf))
    start = np.searchsorted(leaf[order], np.arange(n_regions + 1)).astype(np.int64)
    return SparseLevel(start=start, cell=cell[order], count=count[order])


def by_popularity(leaves: SparseLevel, weight: Floats, shape: tuple[int, ...], wanted: Ints) -> SparseLevel:
    """The same people under other labels: those of each attribute are exchanged by frequency for the wanted labels."""
    has = np.bincount(leaves.cell, weight, minlength=len(wanted))
    label = []
    for axis in range(len(shape)):
        others = tuple(other for other in range(len(shape)) if other != axis)
        own, target = (values.reshape(shape).sum(axis=others) for values in (has, wanted))
        to = np.empty(shape[axis], dtype=np.int64)
        to[np.argsort(-own, kind="stable")] = np.argsort(-target, kind="stable")
        label.append(to)
    codes = np.unravel_index(leaves.cell, shape)
    cell = np.ravel_multi_index(tuple(to[code] for to, code in zip(label, codes, strict=True)), shape)
    return gathered(leaf_of(leaves), cell, leaves.count, leaves.n_regions)


def bent(leaves: SparseLevel, sizes: Floats, region: Ints, composition: Ints) -> Floats:
    """The counts after fitting the leaves to these sizes and the cells of regions to the wanted composition.

    Parameters
    ----------
    leaves : SparseLevel
    sizes : ndarray, shape (leaves,)
    region : ndarray of int64, shape (leaves,)
        The region of each leaf.
    composition : ndarray of int64, shape (regions, cells)
        Scaled to the people of each region; a region without counts takes the mix of the whole.
    """
    leaf, targets = leaf_of(leaves), np.maximum(composition, NOBODY)
    targets = np.where(composition.sum(axis=1, keepdims=True) > 0, targets, targets.sum(axis=0))
    targets *= (np.bincount(region, sizes, minlength=len(targets)) / targets.sum(axis=1))[:, None]
    group, place = np.unique(region[leaf] * targets.shape[1] + leaves.cell, return_inverse=True)
    wanted, counts = targets.ravel()[group], leaves.count.astype(np.float64)
    for _ in range(MOST_STEPS):
        ratio = wanted / np.maximum(np.bincount(place, counts), 1e-300)
        counts = counts * ratio[place]
        whole = np.bincount(leaf, counts, minlength=leaves.n_regions)
        counts *= (sizes / np.maximum(whole, 1e-300))[leaf]
        if np.abs(ratio - 1.0).max(initial=0.0) < CLOSE:
            break
    return counts


def rounded(leaves: SparseLevel, wanted: Floats, draw: random.Random) -> SparseLevel:
    """Histograms with these counts, rounded at random by systematic sampling within a leaf."""
    leaf, upto = leaf_of(leaves), np.cumsum(wanted)
    before = np.concatenate([[0.0], upto])[leaves.start[:-1]]
    offset = np.array([draw.random() for _ in range(leaves.n_regions)]) - before
    count = (np.floor(upto + offset[leaf]) - np.floor(upto - wanted + offset[leaf])).astype(np.int64)
    return without_zeros(replace(leaves, count=count))


def without_zeros(leaves: SparseLevel) -> SparseLevel:
    """The same without empty cells."""
    some = leaves.count > 0
    return gathered(leaf_of(leaves)[some], leaves.cell[some], leaves.count[some], leaves.n_regions)
