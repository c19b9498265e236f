"""Generalised least squares over the tree: the evidence of all measurements in its subtree about a region.

The upward pass: a region's evidence is its own measurements and the sum of its children's, each weighted by its
precision. TopDown's constrained solves, parent by parent, are the downward pass: they divide a region among its children by the
children's evidence.

If every query keeps whole attributes, the precision is one number for each subspace (`subspaces`), and the evidence is that of the dense
least squares over the whole subtree. It is passed on as weighted marginals: those measured and their intersections, whose weights solve p_S
= sum of w_T n / n_T over the sets T that hold S. Such a weight can come out slightly negative where sibling subtrees differ; it is then set
to almost nothing. Where a query merges labels, queries are added up one by one. The result is equal where the precisions of siblings are
proportional; otherwise it is less precise, but not biased. Where regions differ in what they measured, a matrix over some labels takes the
place of each number (`region_noise`).

The rows of a whole level lie in a scratch file (`RowFile`), read and written some regions at a time.

Notes
-----
**Implements**: Hay et al. (2010), section 4.2, for several marginals with unequal variances.
"""

from __future__ import annotations

import secrets
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from pathlib import Path
from typing import Any

import numpy as np

from louver._arrays import Floats, Ints
from louver.data.regions import RegionTree
from louver.data.scratch import Scratch
from louver.engine.engines import ONE_CORE, Engine, Shared
from louver.run import Run
from louver.topdown.estimation.batches import Known, Span
from louver.topdown.estimation.least_squares import MAX_LINK_ROWS
from louver.topdown.estimation.region_noise import KeptLabels, LabelTree
from louver.topdown.estimation.subspaces import Subspaces, mask_of, precisions_above
from louver.topdown.problem import Evidence, NoisyCounts, Problem, Query, region_range, split_batches

__all__ = ["RowFile", "TreeEvidence", "differs_by_region", "gather_evidence"]

LEAST_WEIGHT = 1e-7  # weight of a marginal relative to the cells it sums; anything below counts as zero
WIDEST_ADDED = 64  # maximum number of rows of a marginal that was not measured but has a weight


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LevelEvidence:
    """Evidence about all regions of a level, its values in a file.

    Parameters
    ----------
    queries : tuple of Query
    weights : tuple of ndarray, shape (regions, 1)
    rows : RowFile
        For each region the cells' values, of which the other marginals are sums; or the values of all queries side by side.
    """

    queries: tuple[Query, ...]
    weights: tuple[Floats, ...]
    rows: RowFile

    @property
    def detailed(self) -> int:
        """Position of the query for all cells."""
        return next(i for i, query in enumerate(self.queries) if query.is_detailed)

    def read(self, start: int, stop: int) -> Evidence:
        """Evidence about the regions start to stop."""
        values = self.rows.read(start, stop)
        is_cells = self.rows.width == self.queries[self.detailed].n_rows
        return Evidence(
            queries=self.queries,
            values=tuple(_margins(self.queries, values) if is_cells else _side_by_side(self.queries, values)),
            weights=tuple(weights[start:stop] for weights in self.weights),
        )


@dataclass(frozen=True, slots=True, eq=False)
class LeafEvidence:
    """Leaves that differ in noise: least squares of all answers of each, as some marginals of its cells.

    Parameters
    ----------
    tree : LabelTree
    queries : tuple of Query
    weights : tuple of ndarray, shape (combinations, 1)
    """

    tree: LabelTree
    queries: tuple[Query, ...]
    weights: tuple[Floats, ...]

    def read(self, problem: Problem, noisy: NoisyCounts, start: int, stop: int) -> Evidence:
        """Evidence about the leaves start to stop."""
        values = _own_values(Known(problem, noisy), self.tree, start, stop)
        place = self.tree.combination_of[start:stop]
        return Evidence(
            queries=self.queries,
            values=tuple(_margins(self.queries, values)),
            weights=tuple(weights[place] for weights in self.weights),
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TreeEvidence:
    """Evidence about every region, from its own measurements and all below it.

    Parameters
    ----------
    problem : Problem
    noisy : NoisyCounts
        Source of the evidence about the leaves.
    above : tuple of LevelEvidence
        For each level but the last.
    cell_variance : tuple of ndarray, shape (regions or 1,)
        For each level the variance of a cell's least-squares value.
    leaves : LeafEvidence or None
        How the leaves' answers are read where leaves differ in noise.
    """

    problem: Problem
    noisy: NoisyCounts
    above: tuple[LevelEvidence, ...]
    cell_variance: tuple[Floats, ...]
    leaves: LeafEvidence | None = None

    def read(self, level: int, start: int, stop: int) -> Evidence:
        """Evidence about the regions start to stop of a level; at the last level, evidence from their own answers."""
        if level == len(self.above) and self.leaves is not None:
            return self.leaves.read(self.problem, self.noisy, start, stop)
        if level == len(self.above):
            return Evidence.measured(
                self.problem.workloads[level], self.noisy.read(level, start, stop), start
            )
        return self.above[level].read(start, stop)


def differs_by_region(problem: Problem) -> bool:
    """Whether regions of one level differ in what they measured."""
    return any(load.by_region is not None for load in problem.workloads)


def gather_evidence(
    problem: Problem,
    noisy: NoisyCounts,
    *,
    engine: Engine = ONE_CORE,
    run: Run | None = None,
    is_climbing: bool = True,
) -> TreeEvidence:
    """The upward pass.

    Parameters
    ----------
    is_climbing : bool
        Whether regions are estimated from everything below them; if False, and regions differ in noise, only their own answers are
        gathered.

    Notes
    -----
    **Cost**: one reading of all measurements; memory for one batch, and disk space for the cells of all regions above the leaves.
    """
    ways = _Climb(problem, engine.share(Known(problem, noisy)), engine, run)
    if differs_by_region(problem):
        return _by_labels(ways, noisy, is_climbing=is_climbing)
    queries = [query for load in problem.workloads for query in load.queries]
    is_whole = bool(problem.shape) and all(query.axes is not None for query in queries)
    climb = _by_subspaces if is_whole else _by_queries
    return climb(ways, noisy)


@dataclass(frozen=True, slots=True)
class _Climb:
    """A method for the upward pass, and the engine that runs it."""

    problem: Problem
    known: Shared[Known]
    engine: Engine
    run: Run | None

    def leaf_sums(self) -> _Children:
        """Sums of the leaves' answers of every parent, all queries side by side."""
        spine, level = self.problem.spine, self.problem.spine.n_levels - 1
        load = self.problem.workloads[level]
        rows = RowFile(load.n_values, self.engine.folder)
        batches = split_batches(spine, level, load.n_values)
        for span, sums in zip(
            batches, self.engine.map(partial(_batch_sums, self.known), batches, self.run), strict=True
        ):
            rows.write(span[0], sums)
        return _Children(load.queries, rows, is_summed=True)

    def level(self, level: int, work: Callable[[Span, Run], Floats], width: int) -> RowFile:
        """Values of all regions of a level, batch by batch."""
        spine = self.problem.spine
        batches = split_batches(spine, level, self.problem.workloads[level].n_values)
        ranges = [region_range(spine, level, span) for span in batches]
        rows = RowFile(width, self.engine.folder)
        for (start, _), values in zip(ranges, self.engine.map(work, ranges, self.run), strict=True):
            rows.write(start, values)
        return rows


def _batch_sums(known: Shared[Known], span: Span, run: Run) -> Floats:
    """Sums of the answers of the leaves of a batch of parents, queries side by side."""
    spine = known.value.problem.spine
    level = spine.n_levels - 1
    start, stop = region_range(spine, level, span)
    own = spine.starts[level - 1][span[0] : span[1]] - start
    answers = known.value.noisy.read(level, start, stop)
    sums = [np.add.reduceat(part, own, axis=0) for part in answers]
    return np.concatenate(sums, axis=1).astype(np.float64)


@dataclass(frozen=True, slots=True)
class _Children:
    """Values of the regions of a level, with queries side by side, or the sums of these values."""

    queries: tuple[Query, ...]
    rows: RowFile
    is_summed: bool = False

    def sums(self, spine: RegionTree, level: int, start: int, stop: int) -> list[Floats]:
        """Sums over the children of the regions start to stop of a level, query by query, parent by parent."""
        if self.is_summed:
            found = self.rows.read(start, stop)
        else:
            ends = spine.starts[level]
            found = np.concatenate([np.add.reduceat(self.rows.read(int(ends[i]), int(ends[i + 1])), [0], axis=0)
                                    for i in range(start, stop)])  # fmt: skip
        return _side_by_side(self.queries, found)


def _side_by_side(queries: Sequence[Query], values: Floats) -> list[Floats]:
    """Split side-by-side values into one array per query."""
    return np.split(values, np.cumsum([query.n_rows for query in queries])[:-1], axis=1)


def _information(queries: Sequence[Query], weights: Sequence[float], answers: Sequence[Any]) -> Floats:
    """Sum of w_q M_q' y_q, (regions, cells)."""
    return reduce(
        np.add, (w * y[:, query.row_of] for query, w, y in zip(queries, weights, answers, strict=True))
    )


def _by_subspaces(climb: _Climb, noisy: NoisyCounts) -> TreeEvidence:
    """The upward pass on every subspace."""
    problem = climb.problem
    spine, subspaces = problem.spine, Subspaces(problem.shape)
    whole, below = precisions_above(spine, subspaces, problem.workloads)
    sizes = np.array([np.prod([n - 1 for axis, n in enumerate(problem.shape) if mask >> axis & 1])
                      for mask in range(subspaces.n_sets)])  # fmt: skip
    cell_variance = tuple((sizes / part).sum(axis=1) / subspaces.n_cells for part in whole)
    above: list[LevelEvidence] = []
    masks = {mask_of(query) for query in problem.workloads[-1].queries}
    children = climb.leaf_sums() if spine.n_levels > 1 else None
    for level in range(spine.n_levels - 2, -1, -1):
        load = problem.workloads[level]
        step = climb.engine.share(_SubspaceStep(level, children, whole[level], below[level], whole[-1]))
        rows = climb.level(level, partial(_climb_subspaces, climb.known, step), subspaces.n_cells)
        masks |= {mask_of(query) for query in load.queries}
        above.insert(
            0, LevelEvidence(rows=rows, **_as_marginals(subspaces, masks, load.queries, whole[level]))
        )
        children = _Children((subspaces.marginal(subspaces.n_sets - 1),), rows)
    return TreeEvidence(problem=problem, noisy=noisy, above=tuple(above), cell_variance=cell_variance)


@dataclass(frozen=True, slots=True)
class _SubspaceStep:
    """Inputs to the values of a level: those of its children, and precisions (regions, sets)."""

    level: int
    children: _Children | None
    whole: Floats
    below: Floats
    leaves: Floats


def _climb_subspaces(known: Shared[Known], step: Shared[_SubspaceStep], span: Span, run: Run) -> Floats:
    """Least-squares values (regions, cells) of some regions, from their own answers and their children's values."""
    problem, own = known.value.problem, step.value
    subspaces, load = Subspaces(problem.shape), problem.workloads[own.level]
    assert own.children is not None
    sums = own.children.sums(problem.spine, own.level, *span)
    summed = sums[0]
    if own.children.is_summed:  # of noisy answers, not of least-squares values
        leaves = problem.workloads[-1]
        own_information = _information(leaves.queries, [1.0 / x for x in leaves.variances], sums)
        factors = np.broadcast_to(1.0 / own.leaves, (len(own_information), subspaces.n_sets))
        summed = subspaces.join(subspaces.split(own_information), factors)
    answers = known.value.noisy.read(own.level, *span)
    own_information = _information(load.queries, [1.0 / x for x in load.variances], answers)
    below = own.below[slice(*span)]
    parts = [own + _scaled(part, below[:, mask]) for mask, (own, part) in
             enumerate(zip(subspaces.split(own_information), subspaces.split(summed), strict=True))]  # fmt: skip
    return subspaces.join(parts, 1.0 / own.whole[slice(*span)])


def _by_labels(climb: _Climb, noisy: NoisyCounts, *, is_climbing: bool) -> TreeEvidence:
    """The upward pass where regions differ in what they measured."""
    problem = climb.problem
    spine, n_levels = problem.spine, problem.spine.n_levels
    tree = LabelTree.of(problem, is_climbing=is_climbing)
    subspaces = Subspaces(problem.shape)
    above: list[LevelEvidence] = []
    masks = {mask_of(query) for query in problem.workloads[-1].queries if query.axes is not None}
    shared = climb.engine.share(tree)
    children = RowFile(problem.n_cells, climb.engine.folder) if n_levels > 1 else None
    if children is not None:
        batches = split_batches(spine, n_levels - 1, problem.workloads[-1].n_values)
        work = partial(_leaf_values, climb.known, shared)
        for span, sums in zip(batches, climb.engine.map(work, batches, climb.run), strict=True):
            children.write(span[0], sums)
    for level in range(n_levels - 2, -1, -1):
        assert children is not None
        whole = [query for query in problem.workloads[level].queries if query.axes is not None]
        own = _Children(
            (subspaces.marginal(subspaces.n_sets - 1),), children, is_summed=level == n_levels - 2
        )
        step = climb.engine.share(_LabelStep(level, own, tree.cells, tree.whole[level], tree.below[level]))
        rows = climb.level(level, partial(_climb_labels, climb.known, step), problem.n_cells)
        masks |= {mask_of(query) for query in whole}
        held = _as_marginals(
            subspaces, masks, whole, tree.scalar_precisions(level, n_levels), problem.type_of
        )
        above.insert(0, LevelEvidence(rows=rows, **held))
        children = rows
    whole = [query for query in problem.workloads[-1].queries if query.axes is not None]
    masks = {mask_of(query) for query in whole}
    leaves = LeafEvidence(
        tree, **_as_marginals(subspaces, masks, whole, tree.leaf_precisions(), problem.type_of)
    )
    cell_variance = tuple(tree.cell_variances(level, n_levels) for level in range(n_levels))
    return TreeEvidence(
        problem=problem, noisy=noisy, above=tuple(above), cell_variance=cell_variance, leaves=leaves
    )


@dataclass(frozen=True, slots=True)
class _LabelStep:
    """Inputs to the values of a level: those of its children, total covariances, and precisions from the children."""

    level: int
    children: _Children
    cells: KeptLabels
    whole: Floats
    below: Floats


def _leaf_values(known: Shared[Known], tree: Shared[LabelTree], span: Span, run: Run) -> Floats:
    """Sums over the leaves of each parent of their least-squares values (parents, cells)."""
    spine = known.value.problem.spine
    level = spine.n_levels - 1
    start, stop = region_range(spine, level, span)
    values = _own_values(known.value, tree.value, start, stop)
    starts = spine.starts[level - 1][span[0] : span[1]] - start
    return np.asarray(np.add.reduceat(values, starts, axis=0))


def _own_values(known: Known, tree: LabelTree, start: int, stop: int) -> Floats:
    """Least-squares values (leaves, cells) of some leaves from their own answers."""
    level = known.problem.spine.n_levels - 1
    information = _own_information(known, tree.cells, level, start, stop)
    covariances = tree.leaves[tree.combination_of[start:stop]]
    return tree.cells.join(
        [covariances[:, mask] @ part for mask, part in enumerate(tree.cells.split(information))]
    )


def _climb_labels(known: Shared[Known], step: Shared[_LabelStep], span: Span, run: Run) -> Floats:
    """Least-squares values (regions, cells) of some regions, from their own answers and their children's values."""
    own = step.value
    summed = own.children.sums(known.value.problem.spine, own.level, *span)[0]
    information = _own_information(known.value, own.cells, own.level, *span)
    below, whole = own.below[slice(*span)], own.whole[slice(*span)]
    parts = [
        whole[:, mask] @ (part + below[:, mask] @ under)
        for mask, (part, under) in enumerate(
            zip(own.cells.split(information), own.cells.split(summed), strict=True)
        )
    ]
    return own.cells.join(parts)


def _own_information(known: Known, cells: KeptLabels, level: int, start: int, stop: int) -> Floats:
    """The answers of some regions mapped to their cells, weighted by precision; queries that are not products are left out."""
    load = known.problem.workloads[level]
    answers = known.noisy.read(level, start, stop)
    found = np.zeros((stop - start, known.problem.n_cells))
    for query, weight, own in zip(load.queries, load.precisions(start, stop), answers, strict=True):
        if cells.factors(query) is not None:
            found += weight * own[:, query.row_of]
    return found


def _scaled(part: Floats, factor: Floats) -> Floats:
    return part * factor.reshape(-1, *([1] * (part.ndim - 1)))


def _as_marginals(
    subspaces: Subspaces,
    masks: set[int],
    measured: Sequence[Query],
    precision: Floats,
    type_of: Ints | None = None,
) -> dict[str, Any]:
    """The marginals in whose form least-squares values with this precision are passed on, with one weight each.

    If the types of cells are given, no more marginals are passed on than the structured solver accepts.
    """
    closed = set(masks)
    while len(more := closed | {a & b for a in closed for b in closed}) > len(closed):
        closed = more
    by_mask = {mask_of(query): query for query in measured}
    found = _shared_out(closed, precision)
    if type_of is not None:
        found = _shared_out(_most_telling(subspaces, found, precision, type_of), precision)
    queries, weights = [], []
    for mask, scaled in found.items():
        query = by_mask.get(mask) or subspaces.marginal(mask)
        is_needed = mask in by_mask or query.is_detailed or (
            query.n_rows <= WIDEST_ADDED and bool((scaled > 10 * LEAST_WEIGHT * precision[:, -1]).any())
        )  # fmt: skip
        if is_needed:
            queries.append(query)
            weights.append((scaled * query.n_rows / subspaces.n_cells)[:, None])
    return {"queries": tuple(queries), "weights": tuple(weights)}


def _shared_out(masks: Iterable[int], precision: Floats) -> dict[int, Floats]:
    """The precision that each marginal adds on its own subspace, in addition to the marginals that contain it."""
    found: dict[int, Floats] = {}
    for mask in sorted(masks, key=int.bit_count, reverse=True):
        own = precision[:, mask] - sum(w for other, w in found.items() if other & mask == mask)
        found[mask] = np.maximum(own, LEAST_WEIGHT * precision[:, -1])
    return found


def _most_telling(
    subspaces: Subspaces, found: Mapping[int, Floats], precision: Floats, type_of: Ints
) -> list[int]:
    """The marginals that add the most precision, as many as fit in addition to the one with the most rows."""
    added = {mask: float((part / precision[:, mask]).mean()) for mask, part in found.items()}
    kept, rows = [subspaces.n_sets - 1], list[int]()
    for mask in sorted(added, key=lambda mask: -added[mask]):
        query = subspaces.marginal(mask)
        if query.is_detailed or np.array_equal(query.row_of, type_of):
            kept += [] if query.is_detailed else [mask]
        elif sum(more := [*rows, query.n_rows]) - max(more) <= MAX_LINK_ROWS:
            kept.append(mask)
            rows = more
    return kept


def _margins(queries: Sequence[Query], values: Floats) -> Iterator[Floats]:
    """Marginals of tables (regions, cells)."""
    for query in queries:
        if query.is_detailed:
            yield values
            continue
        order = np.argsort(query.row_of, kind="stable")
        starts = np.searchsorted(query.row_of[order], np.arange(query.n_rows))
        yield np.add.reduceat(values[:, order], starts, axis=1)


def _by_queries(climb: _Climb, noisy: NoisyCounts) -> TreeEvidence:
    """The upward pass query by query."""
    problem = climb.problem
    spine, leaves = problem.spine, problem.workloads[-1]
    above: list[LevelEvidence] = []
    children = climb.leaf_sums() if spine.n_levels > 1 else None
    for level in range(spine.n_levels - 2, -1, -1):
        assert children is not None
        starts, load = spine.starts[level], problem.workloads[level]
        if level == spine.n_levels - 2:
            number = np.diff(starts)[:, None].astype(np.float64)
            held = {
                q.name: variance * number
                for q, variance in zip(leaves.queries, leaves.variances, strict=True)
            }
        else:
            held = {query.name: np.add.reduceat(1.0 / weights, starts[:-1], axis=0)
                    for query, weights in zip(above[0].queries, above[0].weights, strict=True)}  # fmt: skip
        own = dict(zip((query.name for query in load.queries), load.variances, strict=True))
        queries = (*load.queries, *(query for query in children.queries if query.name not in own))
        weights = tuple(_weight(query, spine.sizes[level], own, held) for query in queries)
        step = climb.engine.share(_QueryStep(level, children, queries, weights, held))
        width = sum(query.n_rows for query in queries)
        rows = climb.level(level, partial(_climb_queries, climb.known, step), width)
        above.insert(0, LevelEvidence(queries=queries, weights=weights, rows=rows))
        children = _Children(queries, rows)
    cell_variance = [1.0 / part.weights[part.detailed][:, 0] for part in above]
    detailed = next(x for query, x in zip(leaves.queries, leaves.variances, strict=True) if query.is_detailed)
    return TreeEvidence(
        problem=problem, noisy=noisy, above=tuple(above), cell_variance=(*cell_variance, np.full(1, detailed))
    )


def _weight(query: Query, n: int, own: Mapping[str, float], held: Mapping[str, Floats]) -> Floats:
    """Inverse variance (regions, 1) of a query from the answers of regions and of their children."""
    weight = np.zeros((n, 1))
    if query.name in own:
        weight = weight + 1.0 / own[query.name]
    return weight + 1.0 / held[query.name] if query.name in held else weight


@dataclass(frozen=True, slots=True)
class _QueryStep:
    """Inputs to the values of a level: sums over its children, with their variances (regions, 1)."""

    level: int
    children: _Children
    queries: tuple[Query, ...]
    weights: tuple[Floats, ...]
    held: Mapping[str, Floats]


def _climb_queries(known: Shared[Known], step: Shared[_QueryStep], span: Span, run: Run) -> Floats:
    """Values of some regions, queries side by side: own answers and sums of the children's values, weighted by precision."""
    problem, own = known.value.problem, step.value
    load, part = problem.workloads[own.level], slice(*span)
    answers = zip(known.value.noisy.read(own.level, *span), load.variances, strict=True)
    own_information = dict(zip((query.name for query in load.queries), answers, strict=True))
    sums = dict(zip((query.name for query in own.children.queries),
                    own.children.sums(problem.spine, own.level, *span), strict=True))  # fmt: skip
    values = []
    for query, weight in zip(own.queries, own.weights, strict=True):
        total = np.zeros((span[1] - span[0], query.n_rows))
        if query.name in own_information:
            total = total + own_information[query.name][0] / own_information[query.name][1]
        if query.name in sums:
            total = total + sums[query.name] / own.held[query.name][part]
        values.append(total / weight[part])
    return np.concatenate(values, axis=1)


class RowFile:
    """Rows of real numbers of one width, in a file that is deleted together with its creator.

    A copy, on this machine or another with access to the folder, reads the same file.

    Parameters
    ----------
    width : int
        Number of values per row.
    folder : Path, optional
        Where the file is stored; a scratch folder of its own by default.

    Examples
    --------
    >>> rows = RowFile(2)
    >>> rows.write(1, np.array([[1.0, 2.0], [3.0, 4.0]]))
    >>> rows.read(2, 3).tolist()
    [[3.0, 4.0]]
    """

    def __init__(self, width: int, folder: Path | None = None) -> None:
        self.width = width
        self._scratch = Scratch() if folder is None else None  # removed later if the process is killed
        place = self._scratch.path if self._scratch is not None else folder
        assert place is not None
        self.path = place.absolute() / f".rows-{secrets.token_hex(8)}"
        self.path.touch(exist_ok=False)
        if self._scratch is None:
            weakref.finalize(self, self.path.unlink, missing_ok=True)

    def __getstate__(self) -> dict[str, object]:
        return {"width": self.width, "path": self.path, "_scratch": None}

    def write(self, start: int, rows: Floats) -> None:
        """Write rows to consecutive positions from `start` on."""
        with self.path.open("r+b") as file:
            file.seek(8 * self.width * start)
            file.write(np.ascontiguousarray(rows, np.float64).data)

    def read(self, start: int, stop: int) -> Floats:
        """The rows start to stop."""
        rows = np.empty((stop - start, self.width))
        with self.path.open("rb") as file:
            file.seek(8 * self.width * start)
            n_read = file.readinto(rows.data)
        if n_read != rows.nbytes:  # the old content of memory must never be mistaken for rows
            raise OSError(f"{self.path.name} ends before its rows do")
        return rows
