"""Rounding: integer counts nearest to the real ones that keep parent sums and bounds.

Where the constraints are integral by structure compiled code finds the optimum; otherwise an integer program
does. The root, which has no parent, is rounded type by type.

Notes
-----
**Implements**: Abowd et al. (2019), equations (7) and (11).
**Departs**: every count becomes its floor or one more (ERRATA T6); ties are broken by a public hash.
"""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array, vstack

from louver._arrays import Floats, Ints
from louver.optim.highs import solve_linear
from louver.optim.kernels.families.batches import Batch, round_batch_inplace
from louver.optim.kernels.families.polymatroid import box_inplace, exchange_masks_inplace, nearest_inplace
from louver.optim.kernels.families.rounding import ROUNDED, rank_of, split_count
from louver.optim.kernels.families.semismooth import SOLVED
from louver.optim.status import Status
from louver.topdown.estimation.least_squares import Fractional, TypeRows
from louver.topdown.knowledge.implied import cut_total
from louver.topdown.problem import Families, Problem

__all__ = ["round_counts", "round_root"]


def round_counts(
    problem: Problem, families: Families, batch: Batch, real: Fractional
) -> tuple[Ints, list[Status]]:
    """Round all solved families of a batch.

    Parameters
    ----------
    problem : Problem
    families : Families
    batch : Batch
        The same families, as `encode` arranges them.
    real : Fractional
        Their real counts.

    Returns
    -------
    counts : ndarray of int64
        Laid out as `real.counts`.
    status : list of Status
        OPTIMAL where rounded, INFEASIBLE where it was impossible; the status of `real` if that was.
    """
    counts = np.zeros(len(real.counts), dtype=np.int64)
    if families.parents is None:
        counts, is_rounded = round_root(problem, families, batch.cell, real.counts)
        return counts, [Status.OPTIMAL if is_rounded else Status.INFEASIBLE]
    is_solved = np.array([status is not Status.INFEASIBLE for status in real.status])
    codes = np.where(is_solved, SOLVED, SOLVED + 1).astype(np.int64)
    if problem.implied.is_integral:
        round_batch_inplace(batch, real.counts, families.first_child, counts, codes)
    status = list(real.status)
    for family in np.flatnonzero(is_solved).tolist():
        status[family] = Status.OPTIMAL
        if codes[family] != ROUNDED or not problem.implied.is_integral:
            block = slice(real.offsets[family], real.offsets[family + 1])
            rounded = _round_by_program(problem, families, family, real)
            status[family] = Status.INFEASIBLE if rounded is None else Status.OPTIMAL
            counts[block] = 0 if rounded is None else rounded
    return counts, status


def _round_by_program(problem: Problem, families: Families, family: int, real: Fractional) -> Ints | None:
    """Round one family by an integer program; None where it has no solution."""
    cells, parent = families.cells_of(family, problem.is_possible)
    first, last = int(families.child_start[family]), int(families.child_start[family + 1])
    n, m = len(cells), last - first
    by_child = real.block(family, m).T.ravel()
    floor, rank = _floors_and_ranks(by_child, families.first_child + first, cells)
    rows = [csr_array(np.tile(np.arange(n), m)[None, :] == np.arange(n)[:, None], dtype=np.float64)]
    least = [np.asarray(parent, dtype=np.float64)]
    most = [np.asarray(parent, dtype=np.float64)]
    if families.is_bounded:
        bounds = TypeRows.build(families, family, problem.type_of[cells], problem.implied.n_types)
        rows.append(bounds.rows)
        least.append(bounds.lower)
        most.append(bounds.upper)
    matrix = csr_array(vstack(rows, format="csr"))
    limits = (np.concatenate(least), np.concatenate(most))
    # Where a count was snapped to an integer, one below may be needed as well.
    for below in (0, 1):
        base = np.maximum(floor - below, 0).astype(np.float64)
        status, x = solve_linear(
            -rank / 2.0**40, matrix, *limits, base, (floor + 1).astype(np.float64), is_integer=True
        )
        if status is Status.OPTIMAL and x is not None:
            return np.rint(x).astype(np.int64).reshape(m, n).T.ravel()
    return None


def _floors_and_ranks(by_child: Floats, first_node: int, cells: Ints) -> tuple[Ints, Ints]:
    """Floor of each count, and its fraction with the tie broken, child by child."""
    floor = np.empty(len(by_child), dtype=np.int64)
    rank = np.empty(len(by_child), dtype=np.int64)
    for place, x in enumerate(by_child):
        floor[place], fraction = split_count(x)
        child, i = divmod(place, len(cells))
        rank[place] = rank_of(fraction, first_node + child, cells[i])
    return floor, rank


def round_root(problem: Problem, families: Families, cells: Ints, real: Floats) -> tuple[Ints, bool]:
    """Round the root's counts; their sum becomes the integer nearest to what it was.

    Notes
    -----
    Within a type the largest fractions are rounded up, so only the number rounded up in each type is open. The
    gain is concave in these numbers and they form a polymatroid: exchanges of one person between two types, as
    long as they help, lead to the best.
    """
    floor, rank = _floors_and_ranks(real, 0, cells)
    n_types = problem.implied.n_types
    n_up = int(np.rint(real.sum())) - int(floor.sum())
    types = problem.type_of[cells]
    if not families.is_bounded:
        chosen = np.argsort(-rank, kind="stable")[:n_up]
        floor[chosen] += 1
        return floor, 0 <= n_up <= len(cells)
    ranks = [np.sort(rank[types == t])[::-1] for t in range(n_types)]
    held = np.bincount(types, weights=floor, minlength=n_types).astype(np.int64)
    up = _best_numbers(families.lower[0], families.upper[0], held, ranks, int(floor.sum()) + n_up)
    if up is None:
        return floor, False
    for t in range(n_types):
        inside = np.flatnonzero(types == t)
        floor[inside[np.argsort(-rank[inside], kind="stable")[: up[t]]]] += 1
    return floor, True


def _best_numbers(lower: Ints, upper: Ints, held: Ints, ranks: list[Ints], total: int) -> Ints | None:
    """How many counts of each type to round up, given the ranks of each type in descending order."""
    n_types = len(held)
    sizes = np.array([len(rank) for rank in ranks])
    low, high = np.empty_like(lower), np.empty_like(upper)
    if not box_inplace(lower, upper, n_types, held, held + sizes, low, high):
        return None
    low, high = cut_total(low, high, total)
    if (low > high).any():
        return None
    allow = np.zeros(n_types + 1, dtype=np.int64)
    chosen = np.zeros(n_types, dtype=np.int64)
    nearest_inplace(low, high, n_types, held + sizes // 2, chosen, allow)
    while True:
        exchange_masks_inplace(low, high, n_types, chosen, allow)
        best, pair = 0, None
        for i in range(n_types):
            for j in range(n_types):
                if i != j and allow[i] >> j & 1:
                    gain = int(ranks[i][chosen[i] - held[i]]) - int(ranks[j][chosen[j] - held[j] - 1])
                    if gain > best:
                        best, pair = gain, (i, j)
        if pair is None:
            return chosen - held
        chosen[pair[0]] += 1
        chosen[pair[1]] -= 1
