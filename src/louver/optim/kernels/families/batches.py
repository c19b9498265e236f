"""Whole batches of families: gather each parent with its children, solve, write the counts back.

A batch is a run of consecutive parents. Its children are rows 0.. of every array of noisy counts, those of
parent f being rows child_start[f] to child_start[f + 1]. Counts are written as one (cells, children) block
for each parent, one after another, cells in ascending order.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from louver.optim.kernels import inner, kernel
from louver.optim.kernels.families.polymatroid import UNBOUNDED, restrict_inplace
from louver.optim.kernels.families.rounding import (
    ROUNDED,
    RoundingProblem,
    rank_of,
    round_family_inplace,
    split_count,
)
from louver.optim.kernels.families.semismooth import (
    SOLVED,
    STALLED,
    FamilyArrays,
    solve_family_inplace,
    weigh,
)

__all__ = ["INFEASIBLE", "Batch", "round_batch_inplace", "solve_batch_inplace"]

INFEASIBLE = 2

MAX_PROXIMAL = 40  # maximum number of rounds for type counts that are bounded but not measured
SOFTNESS = 1e-3  # weight of such a count relative to that of the cells it sums
UNSETTLED = 1e-5  # persons the last round may move it by; times SOFTNESS, the remaining error


class Batch(NamedTuple):
    """Parents, children and noisy counts; see `FamilyArrays` for what the parts mean.

    `cell` lists the cells each parent's children may fill, ascending, `parent` its count. `link_row` is
    (links, cells of the schema) with rows numbered through all links, the types first. `lower` and `upper`
    are (children, 2^types), used where is_bounded is True. Weights are `a` (children, cells), `v` (children,) and
    `weight` (children, rows); an axis of length one stands for all.
    """

    has_parent: bool
    cell_start: np.ndarray
    cell: np.ndarray
    parent: np.ndarray
    child_start: np.ndarray
    a: np.ndarray
    detail: np.ndarray
    v: np.ndarray
    grouped: np.ndarray
    group_of: np.ndarray
    link_row: np.ndarray
    weight: np.ndarray
    noisy: np.ndarray
    n_types: int
    is_bounded: bool
    lower: np.ndarray
    upper: np.ndarray


@kernel
def _sorted_cells(batch, f):
    """Positions of the parent's cells in the order of their groups, and where each group begins."""
    first, last = batch.cell_start[f], batch.cell_start[f + 1]
    n, n_names = last - first, 0
    for i in range(first, last):
        n_names = max(n_names, batch.group_of[batch.cell[i]] + 1)
    at = np.zeros(n_names + 1, np.int64)
    for i in range(first, last):
        at[batch.group_of[batch.cell[i]] + 1] += 1
    start, order = np.empty(n + 1, np.int64), np.empty(n, np.int64)
    n_groups = 0
    for name in range(n_names):
        if at[name + 1] > 0:
            start[n_groups] = at[name]
            n_groups += 1
        at[name + 1] += at[name]
    start[n_groups] = n
    for i in range(n):
        name = batch.group_of[batch.cell[first + i]]
        order[at[name]] = i
        at[name] += 1
    return order, start[: n_groups + 1]


@kernel
def _local_rows(batch, cells):
    """Rows of the links that these cells touch, renumbered in ascending order, and how many of them are types."""
    n_links, n = batch.link_row.shape[0], cells.shape[0]
    place = np.empty(batch.weight.shape[1], np.int64)
    place[:] = -1
    for q in range(n_links):
        for i in range(n):
            place[batch.link_row[q, cells[i]]] = 0
    n_rows, n_types = 0, 0
    used = np.empty(batch.weight.shape[1], np.int64)
    for k in range(place.shape[0]):
        if place[k] == 0:
            place[k] = n_rows
            used[n_rows] = k
            n_rows += 1
            if k < batch.n_types:
                n_types += 1
    row = np.empty((n_links, n), np.int64)
    for q in range(n_links):
        for i in range(n):
            row[q, i] = place[batch.link_row[q, cells[i]]]
    return row, used[:n_rows], n_types


@inner
def _is_feasible(batch, first, last, counts):
    """Whether type counts can be divided among the children: they bound every set of types."""
    for s in range(batch.upper.shape[1]):
        held = 0.0
        for t in range(batch.n_types):
            if s >> t & 1:
                held += counts[t]
        lower, upper = 0, 0
        for c in range(first, last):
            lower += batch.lower[c, s]
            upper += min(batch.upper[c, s], UNBOUNDED)
        if held < lower or held > upper:
            return False
    return True


@kernel
def _gather(batch, f, order, group_start):
    """The family of parent f, and whether its bounds allow a solution."""
    first, last = batch.child_start[f], batch.child_start[f + 1]
    m = last - first
    cells, parent = np.empty(order.shape[0], np.int64), np.empty(order.shape[0])
    for i in range(order.shape[0]):
        cells[i] = batch.cell[batch.cell_start[f] + order[i]]
        parent[i] = batch.parent[batch.cell_start[f] + order[i]]
    row, used, n_types = _local_rows(batch, cells)
    noisy, weight = np.empty((used.shape[0], m)), np.empty((used.shape[0], m))
    for k in range(used.shape[0]):
        for c in range(m):
            noisy[k, c] = batch.noisy[first + c, used[k]]
            weight[k, c] = batch.weight[min(first + c, batch.weight.shape[0] - 1), used[k]]
    keep, lower, upper = _gather_bounds(batch, first, m, used, n_types)
    is_feasible = True
    if batch.is_bounded and batch.has_parent:
        held = np.zeros(batch.n_types)
        for i in range(parent.shape[0]):
            held[batch.link_row[0, cells[i]]] += parent[i]
        is_feasible = _is_feasible(batch, first, last, held)
    slot_start, entry_cell, detail, a, v, grouped = _gather_slots(batch, first, cells, group_start, row, keep)
    share, inverse, alone, ratio = weigh(group_start.shape[0] - 1, slot_start, a, v)
    family = FamilyArrays(
        a, v, share, inverse, alone, ratio, batch.has_parent, parent, group_start, slot_start, entry_cell, detail, grouped, row,
        weight, noisy, n_types, batch.is_bounded, keep, lower, upper,
    )  # fmt: skip
    return family, is_feasible


@kernel
def _gather_bounds(batch, first, m, used, n_types):
    """For each child the types it may fill, as a mask of local types, and its bounds restricted to them."""
    keep = np.empty(m, np.int64)
    keep[:] = (1 << n_types) - 1
    size = 1 << n_types if batch.is_bounded else 1
    lower = np.zeros((m, size), np.int64)
    upper = np.zeros((m, size), np.int64)
    if batch.is_bounded:
        for c in range(m):
            mask = 0
            keep[c] = 0
            for k in range(n_types):
                if batch.upper[first + c, 1 << used[k]] > 0:
                    keep[c] |= 1 << k
                    mask |= 1 << used[k]
            restrict_inplace(batch.lower[first + c], batch.upper[first + c], mask, lower[c], upper[c])
    return keep, lower, upper


@kernel
def _gather_slots(batch, first, cells, group_start, row, keep):
    """Entries slot by slot, with the noisy counts and the weights of their cells and groups."""
    n_groups, m = group_start.shape[0] - 1, keep.shape[0]
    slot_start = np.empty(n_groups * m + 1, np.int64)
    entry_cell = np.empty(cells.shape[0] * m, np.int64)
    detail, a = np.empty(cells.shape[0] * m), np.empty(cells.shape[0] * m)
    grouped, v = np.zeros(n_groups * m), np.zeros(n_groups * m)
    n_entries = 0
    for j in range(n_groups):
        group = batch.group_of[cells[group_start[j]]]
        for c in range(m):
            slot_start[j * m + c] = n_entries
            child = min(first + c, batch.a.shape[0] - 1)
            v[j * m + c] = batch.v[min(first + c, batch.v.shape[0] - 1)]
            if v[j * m + c] > 0.0:
                grouped[j * m + c] = batch.grouped[first + c, group]
            for i in range(group_start[j], group_start[j + 1]):
                if not batch.is_bounded or keep[c] >> row[0, i] & 1:
                    entry_cell[n_entries] = i
                    detail[n_entries] = batch.detail[first + c, cells[i]]
                    a[n_entries] = batch.a[child, min(cells[i], batch.a.shape[1] - 1)]
                    n_entries += 1
    slot_start[n_groups * m] = n_entries
    return slot_start, entry_cell[:n_entries], detail[:n_entries], a[:n_entries], v, grouped


@kernel
def _solve_proximal_inplace(family, h, tolerance):
    """Solve where the types are bounded but not measured: their counts in the previous round stand in for measurements.

    Implements: the proximal point method, which ends at a solution of the problem without these terms.
    """
    n_rows, m = family.noisy.shape
    # One weight for all types: the projection onto a polymatroid is Euclidean.
    least = family.a[0]
    for e in range(family.a.shape[0]):
        least = min(least, family.a[e])
        h[e] = max(family.detail[e], 0.0)
    family.weight[: family.n_types] = SOFTNESS * least * family.n_types / family.parent.shape[0]
    held = np.empty((family.n_types, m))
    _type_counts_inplace(family, h, held)
    for k in range(family.n_types):
        for c in range(m):
            family.noisy[k, c] = held[k, c]
    price = np.zeros(family.parent.shape[0])
    z = np.zeros((n_rows, m))
    n_steps, residual = 0, 0.0
    for _ in range(MAX_PROXIMAL):
        status, steps, residual = solve_family_inplace(family, h, price, z, tolerance)
        n_steps += steps
        if status != SOLVED:
            return status, n_steps, residual
        _type_counts_inplace(family, h, held)
        moved = 0.0
        for k in range(family.n_types):
            for c in range(m):
                moved = max(moved, abs(held[k, c] - family.noisy[k, c]))
                # g is left unchanged: z absorbs the shift of the centre.
                z[k, c] += family.weight[k, c] * (family.noisy[k, c] - held[k, c])
                family.noisy[k, c] = held[k, c]
        if moved <= UNSETTLED:
            return SOLVED, n_steps, residual
    return STALLED, n_steps, residual


@inner
def _type_counts_inplace(family, counts, held):
    """Sum entries by type and child."""
    m = held.shape[1]
    held[:] = 0.0
    for slot in range(family.slot_start.shape[0] - 1):
        for e in range(family.slot_start[slot], family.slot_start[slot + 1]):
            held[family.row[0, family.cell[e]], slot % m] += counts[e]


@inner
def _is_fixed(family):
    """Whether the bounds leave every child a single vector of type counts."""
    for c in range(family.keep.shape[0]):
        size = 0
        for k in range(family.n_types):
            size += family.keep[c] >> k & 1
        for j in range(size):
            if family.lower[c, 1 << j] != family.upper[c, 1 << j]:
                return False
    return True


@kernel
def solve_batch_inplace(batch, tolerance, counts, status, n_steps, residual):
    """Solve every family of a batch; `counts` is flat, the other three have one entry per parent."""
    offset = 0
    for f in range(batch.cell_start.shape[0] - 1):
        m = batch.child_start[f + 1] - batch.child_start[f]
        order, group_start = _sorted_cells(batch, f)
        n = order.shape[0]
        status[f], n_steps[f], residual[f] = SOLVED, 0, 0.0
        if n == 0 or m == 0:
            continue
        if m == 1 and batch.has_parent:
            for i in range(n):
                counts[offset + i] = batch.parent[batch.cell_start[f] + i]
        family, is_feasible = _gather(batch, f, order, group_start)
        if not is_feasible:
            status[f] = INFEASIBLE
        elif m > 1 or not batch.has_parent:
            h = np.zeros(family.cell.shape[0])
            if batch.is_bounded and batch.weight[0, 0] == 0.0 and not _is_fixed(family):
                status[f], n_steps[f], residual[f] = _solve_proximal_inplace(family, h, tolerance)
            else:
                # Weights of zero remain only where the counts are fixed; they have no effect there.
                for k in range(family.weight.shape[0]):
                    for c in range(m):
                        if family.weight[k, c] == 0.0:
                            family.weight[k, c] = 1.0
                price = np.zeros(n)
                z = np.zeros((family.weight.shape[0], m))
                status[f], n_steps[f], residual[f] = solve_family_inplace(family, h, price, z, tolerance)
            for slot in range(family.slot_start.shape[0] - 1):
                for e in range(family.slot_start[slot], family.slot_start[slot + 1]):
                    counts[offset + order[family.cell[e]] * m + slot % m] = h[e]
        offset += n * m


@kernel
def round_batch_inplace(batch, counts, first_node, out, status):
    """Round the solved families of a batch; `counts` as `solve_batch_inplace` left them, `out` likewise.

    `first_node` is the number of the batch's first child within its level; ties depend on it. Families whose
    status is not SOLVED on entry are left alone; on return FAILED marks those that could not be rounded.
    """
    offset = 0
    for f in range(batch.cell_start.shape[0] - 1):
        first, m = batch.child_start[f], batch.child_start[f + 1] - batch.child_start[f]
        cells = batch.cell[batch.cell_start[f] : batch.cell_start[f + 1]]
        n = cells.shape[0]
        if n > 0 and m > 0 and status[f] == SOLVED:
            row, used, n_types = _local_rows(batch, cells)
            keep, lower, upper = _gather_bounds(batch, first, m, used, n_types)
            parent = np.empty(n, np.int64)
            real, whole = np.empty((n, m)), np.empty((n, m), np.int64)
            rank, is_open = np.empty((n, m), np.int64), np.empty((n, m), np.bool_)
            is_open[:] = True
            for i in range(n):
                parent[i] = round(batch.parent[batch.cell_start[f] + i])
                for c in range(m):
                    real[i, c] = counts[offset + i * m + c]
                    rank[i, c] = rank_of(split_count(real[i, c])[1], first_node + first + c, cells[i])
                    if batch.is_bounded:
                        is_open[i, c] = keep[c] >> row[0, i] & 1 == 1
            type_of = row[0] if batch.is_bounded else np.zeros(n, np.int64)
            family = RoundingProblem(
                real, is_open, parent, rank, type_of, n_types, batch.is_bounded, keep, lower, upper
            )
            status[f] = round_family_inplace(family, whole)[0]
            for i in range(n * m if status[f] == ROUNDED else 0):
                out[offset + i] = whole[i // m, i % m]
        offset += n * m
