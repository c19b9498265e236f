"""Generalised least squares over the tree: what all measurements below a region say about it.

The upward pass: a region's evidence is its own measurements and the sum of its children's, each weighted by its
precision. TopDown's constrained solves, parent by parent, are the downward pass: they divide a region among its children by the
children's evidence.

Where every query keeps whole attributes the precision is one number for each subspace (`subspaces`), and the evidence
is that of the dense least squares over the whole subtree. It is handed on as weighted marginals: those measured and their
intersections, whose weights solve p_S = sum of w_T n / n_T over the sets T that hold S. Such a weight can come out
slightly negative where sibling subtrees differ; it is then set to almost nothing. Where a query merges labels,
queries are added up one by one. That is the same where the precisions of siblings are proportional; otherwise it is less
precise, not biased.

Notes
-----
**Implements**: Hay et al. (2010), section 4.2, for several marginals with unequal variances.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial, reduce

import numpy as np

from louver._arrays import Floats, Ints
from louver.engine.engines import ONE_CORE, Engine, Shared
from louver.run import Run
from louver.topdown.batches import Known, Span
from louver.topdown.problem import Evidence, NoisyCounts, Problem, Query, region_range, split_batches
from louver.topdown.subspaces import Subspaces, mask_of, precisions_above

__all__ = ["TreeEvidence", "gather_evidence"]

LEAST_WEIGHT = 1e-7  # of a marginal beside the cells it sums; what is below counts as none
WIDEST_ADDED = 64  # rows of a marginal that nobody measured but whose weight is not zero


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TreeEvidence:
    """Evidence about every region, from its own measurements and all below it.

    Parameters
    ----------
    problem : Problem
    noisy : NoisyCounts
        Where that of the leaves is read.
    above : tuple of Evidence
        For each level but the last, evidence about all its regions.
    cell_variance : tuple of ndarray, shape (regions or 1,)
        For each level the variance of a cell's least-squares value.
    """

    problem: Problem
    noisy: NoisyCounts
    above: tuple[Evidence, ...]
    cell_variance: tuple[Floats, ...]

    def read(self, level: int, start: int, stop: int) -> Evidence:
        """Evidence about the regions start to stop of a level; at the last one that of their own answers."""
        if level == len(self.above):
            return Evidence.measured(self.problem.workloads[level], self.noisy.read(level, start, stop))
        found = self.above[level]
        return Evidence(
            queries=found.queries,
            values=tuple(values[start:stop] for values in found.values),
            weights=tuple(weights[start:stop] for weights in found.weights),
        )


def gather_evidence(
    problem: Problem, noisy: NoisyCounts, *, engine: Engine = ONE_CORE, run: Run | None = None
) -> TreeEvidence:
    """The upward pass.

    Notes
    -----
    **Cost**: one reading of all measurements; memory for the cells of all regions above the leaves.
    """
    queries = [query for load in problem.workloads for query in load.queries]
    is_whole = bool(problem.shape) and all(query.axes is not None for query in queries)
    climb = _by_subspaces if is_whole else _by_queries
    return climb(problem, noisy, engine, run)


def _measured_sums(
    problem: Problem, noisy: NoisyCounts, level: int, engine: Engine, run: Run | None
) -> list[Floats]:
    """Sums of the answers of a level's children of every parent, query by query, batch by batch."""
    batches = split_batches(problem.spine, level, problem.workloads[level].n_values)
    known = engine.share(Known(problem, noisy))
    parts = list(engine.map(partial(_batch_sums, known, level), batches, run))
    return [np.concatenate(column).astype(np.float64) for column in zip(*parts, strict=True)]


def _batch_sums(known: Shared[Known], level: int, span: Span, run: Run) -> list[Ints]:
    """Sums of the answers of the children of a batch of parents."""
    spine = known.value.problem.spine
    start, stop = region_range(spine, level, span)
    own = spine.starts[level - 1][span[0] : span[1]] - start
    return [np.add.reduceat(part, own, axis=0) for part in known.value.noisy.read(level, start, stop)]


def _answers(problem: Problem, noisy: NoisyCounts, level: int) -> list[Floats]:
    """All answers of a level, query by query."""
    batches = split_batches(problem.spine, level, problem.workloads[level].n_values)
    parts = [noisy.read(level, *region_range(problem.spine, level, span)) for span in batches]
    return [np.concatenate(column).astype(np.float64) for column in zip(*parts, strict=True)]


def _information(queries: Sequence[Query], weights: Sequence[float], answers: Sequence[Floats]) -> Floats:
    """Sum of w_q M_q' y_q, (regions, cells)."""
    return reduce(
        np.add, (w * y[:, query.row_of] for query, w, y in zip(queries, weights, answers, strict=True))
    )


def _by_subspaces(problem: Problem, noisy: NoisyCounts, engine: Engine, run: Run | None) -> TreeEvidence:
    """The upward pass on every subspace."""
    spine, subspaces = problem.spine, Subspaces(problem.shape)
    whole, below = precisions_above(spine, subspaces, problem.workloads)
    sizes = np.array([np.prod([n - 1 for axis, n in enumerate(problem.shape) if mask >> axis & 1])
                      for mask in range(subspaces.n_sets)])  # fmt: skip
    cell_variance = tuple((sizes / part).sum(axis=1) / subspaces.n_cells for part in whole)
    above: list[Evidence] = []
    summed: Floats | None = None  # least-squares values of the children, added up
    masks = {mask_of(query) for query in problem.workloads[-1].queries}
    for level in range(spine.n_levels - 2, -1, -1):
        load = problem.workloads[level]
        if summed is None:
            leaves = problem.workloads[-1]
            sums = _measured_sums(problem, noisy, level + 1, engine, run)
            known = _information(leaves.queries, [1.0 / x for x in leaves.variances], sums)
            summed = subspaces.join(
                subspaces.split(known), np.broadcast_to(1.0 / whole[-1], (len(known), subspaces.n_sets))
            )
        known = _information(load.queries, [1.0 / x for x in load.variances], _answers(problem, noisy, level))
        parts = [own + _scaled(part, below[level][:, mask]) for mask, (own, part) in
                 enumerate(zip(subspaces.split(known), subspaces.split(summed), strict=True))]  # fmt: skip
        values = subspaces.join(parts, 1.0 / whole[level])
        masks |= {mask_of(query) for query in load.queries}
        above.insert(0, _as_marginals(subspaces, masks, load.queries, values, whole[level]))
        if level > 0:
            summed = np.add.reduceat(values, spine.starts[level - 1][:-1], axis=0)
    return TreeEvidence(problem=problem, noisy=noisy, above=tuple(above), cell_variance=cell_variance)


def _scaled(part: Floats, factor: Floats) -> Floats:
    return part * factor.reshape(-1, *([1] * (part.ndim - 1)))


def _as_marginals(
    subspaces: Subspaces, masks: set[int], measured: Sequence[Query], values: Floats, precision: Floats
) -> Evidence:
    """Least-squares values with their precision as marginals with one weight each."""
    closed = set(masks)
    while len(more := closed | {a & b for a in closed for b in closed}) > len(closed):
        closed = more
    named = {mask_of(query): query for query in measured}
    found: dict[int, Floats] = {}
    for mask in sorted(closed, key=int.bit_count, reverse=True):
        own = precision[:, mask] - sum(w for other, w in found.items() if other & mask == mask)
        found[mask] = np.maximum(own, LEAST_WEIGHT * precision[:, -1])
    queries, weights = [], []
    for mask, scaled in found.items():
        query = named.get(mask) or subspaces.marginal(mask)
        is_needed = mask in named or query.is_detailed or (
            query.n_rows <= WIDEST_ADDED and bool((scaled > 10 * LEAST_WEIGHT * precision[:, -1]).any())
        )  # fmt: skip
        if is_needed:
            queries.append(query)
            weights.append((scaled * query.n_rows / subspaces.n_cells)[:, None])
    return Evidence(queries=tuple(queries), values=tuple(_margins(queries, values)), weights=tuple(weights))


def _margins(queries: Sequence[Query], values: Floats) -> Iterator[Floats]:
    """Marginals of tables (regions, cells)."""
    for query in queries:
        if query.is_detailed:
            yield values
            continue
        order = np.argsort(query.row_of, kind="stable")
        starts = np.searchsorted(query.row_of[order], np.arange(query.n_rows))
        yield np.add.reduceat(values[:, order], starts, axis=1)


def _by_queries(problem: Problem, noisy: NoisyCounts, engine: Engine, run: Run | None) -> TreeEvidence:
    """The upward pass query by query."""
    spine = problem.spine
    leaves = problem.workloads[-1]
    held: dict[str, tuple[Floats, Floats]] = {}  # of the children, added up: values and variance
    above: list[Evidence] = []
    for level in range(spine.n_levels - 2, -1, -1):
        starts = spine.starts[level]
        if level == spine.n_levels - 2:
            sums = _measured_sums(problem, noisy, level + 1, engine, run)
            number = np.diff(starts)[:, None]
            for query, values, variance in zip(leaves.queries, sums, leaves.variances, strict=True):
                held[query.name] = (values, variance * number.astype(np.float64))
        else:
            last = above[0]
            held = {
                query.name: (
                    np.add.reduceat(values.astype(np.float64), starts[:-1], axis=0),
                    np.add.reduceat(1.0 / weights, starts[:-1], axis=0),
                )
                for query, values, weights in zip(last.queries, last.values, last.weights, strict=True)
            }
        above.insert(0, _added(problem, noisy, level, held, above[0].queries if above else leaves.queries))
    cell_variance = [1.0 / part.weights[part.detailed][:, 0] for part in above]
    detailed = next(x for query, x in zip(leaves.queries, leaves.variances, strict=True) if query.is_detailed)
    return TreeEvidence(
        problem=problem, noisy=noisy, above=tuple(above), cell_variance=(*cell_variance, np.full(1, detailed))
    )


def _added(
    problem: Problem,
    noisy: NoisyCounts,
    level: int,
    held: dict[str, tuple[Floats, Floats]],
    below: Sequence[Query],
) -> Evidence:
    """A level's own answers and the sums of its children's, query by query."""
    load = problem.workloads[level]
    own = dict(zip((q.name for q in load.queries), zip(_answers(problem, noisy, level), load.variances, strict=True), strict=True))  # fmt: skip
    queries = [*load.queries, *(q for q in below if q.name not in own)]
    values, weights = [], []
    n = problem.spine.sizes[level]
    for query in queries:
        total, weight = np.zeros((n, query.n_rows)), np.zeros((n, 1))
        for value, variance in [own[query.name]] if query.name in own else []:
            total, weight = total + value / variance, weight + 1.0 / variance
        if query.name in held:
            value, variances = held[query.name]
            total, weight = total + value / variances, weight + 1.0 / variances
        values.append(total / weight)
        weights.append(weight)
    return Evidence(queries=tuple(queries), values=tuple(values), weights=tuple(weights))
