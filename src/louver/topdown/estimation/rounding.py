"""Rounding: integer counts nearest to the real ones that keep parent sums and bounds.

Where the structure of the constraints makes them integral, compiled code finds the optimum; otherwise an integer program does. The root,
which has no parent, is rounded type by type.

The failsafe finds children for a parent whose counts cannot be divided among them. It should never be needed while implied constraints are
complete. If it is used, the children keep every bound of their own, and depart as little as possible from adding up to the parent.

Notes
-----
**Implements**: Abowd et al. (2019), equations (7) and (11). **Departs**: every count becomes its floor or one more (ERRATA T6); ties are
broken by a public hash. **Implements**: Abowd et al. (2019), section 9: the distance d* to feasibility, then least squares and rounding
with the children's sum within d* + 1 of the parent, keeping the margins over what the types do not involve. **Departs**: d* is the distance
of children that keep these margins. The paper's d* is the distance of arbitrary children. Where these may add up to another total, it is
too small, and the second step has no solution.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from scipy.sparse import csr_array, eye_array, hstack, vstack

from louver._arrays import Floats, Ints
from louver.errors import SolverError
from louver.optim.highs import solve_linear
from louver.optim.kernels.families.batches import Batch, round_batch_inplace
from louver.optim.kernels.families.polymatroid import box_inplace, exchange_masks_inplace, nearest_inplace
from louver.optim.kernels.families.rounding import ROUNDED, rank_of, split_count
from louver.optim.kernels.families.semismooth import SOLVED
from louver.optim.quadratic import solve_least_squares
from louver.optim.status import Status
from louver.topdown.estimation.least_squares import QP_TOLERANCE, Fractional, TypeRows, objective
from louver.topdown.knowledge.elimination import bound_union
from louver.topdown.knowledge.implied import cut_total
from louver.topdown.problem import Families, Problem

__all__ = ["Rescue", "distance_to_feasibility", "rescue", "round_counts", "round_root"]

SNAP = 1e-6
"""Largest difference, in persons, between a real sum and the whole number that it stands for."""


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
    if problem.implied.is_integral and problem.workloads[families.level].by_region is not None:
        near = codes.copy()
        round_batch_inplace(
            _near_totals(problem, batch, real), real.counts, families.first_child, counts, near
        )
        codes[near == ROUNDED] = ROUNDED
        retried = np.where(near == ROUNDED, SOLVED + 1, codes)
        round_batch_inplace(batch, real.counts, families.first_child, counts, retried)
        codes[retried == ROUNDED] = ROUNDED
    elif problem.implied.is_integral:
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


def _near_totals(problem: Problem, batch: Batch, real: Fractional) -> Batch:
    """The batch with every child's people bounded by the whole numbers next to their real sum: rounding errors of cells then cancel."""
    totals = np.zeros(len(batch.noisy))
    for family, (first, last) in enumerate(pairwise(batch.child_start.tolist())):
        totals[first:last] = real.block(family, last - first).sum(axis=0)
    least, most = np.floor(totals + SNAP).astype(np.int64), np.ceil(totals - SNAP).astype(np.int64)
    if batch.is_bounded:
        lower, upper = batch.lower.copy(), batch.upper.copy()
        whole = lower.shape[1] - 1
        least, most = np.maximum(least, lower[:, whole]), np.minimum(most, upper[:, whole])
        bound_union(whole, least, np.maximum(least, most), lower, upper)
        return batch._replace(lower=lower, upper=upper)
    nobody = np.zeros_like(least)
    return batch._replace(
        link_row=np.zeros((1, problem.n_cells), np.int64),
        n_types=1,
        is_bounded=True,
        lower=np.column_stack([nobody, least]),
        upper=np.column_stack([nobody, most]),
    )


def _round_by_program(problem: Problem, families: Families, family: int, real: Fractional) -> Ints | None:
    """Round one family by an integer program; None if it has no solution."""
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
    # Where a count was snapped to an integer, the integer below may be needed as well.
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
    """Round the root's counts; their sum becomes the nearest integer.

    Notes
    -----
    Within a type the largest fractions are rounded up, so only the number rounded up in each type is open. The
    gain is concave in these numbers and they form a polymatroid: exchanging one person between two types, as
    long as that helps, leads to the optimum.
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


FUDGE = 1.0  # persons allowed beyond the distance; the paper's value


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Rescue:
    """The result of the failsafe for one parent.

    Parameters
    ----------
    level, region : str
        The parent.
    distance : float
        Least possible L1 distance between the children's sum and the parent.
    moved : int
        The distance of the children that were chosen.
    kept_margin : bool
        Whether the margin over the attributes that types do not involve is the parent's.
    cells : ndarray of int64
        Cells of the children.
    counts : ndarray of int64, shape (cells, children)
    """

    level: str
    region: str
    distance: float
    moved: int
    kept_margin: bool
    cells: Ints
    counts: Ints


def rescue(problem: Problem, families: Families, family: int, margin: Ints) -> Rescue:
    """Find children for a parent for which no feasible children exist.

    Parameters
    ----------
    problem : Problem
    families : Families
    family : int
        The parent within the batch.
    margin : ndarray of int64, shape (cells,)
        For every cell of the schema its position in the margin that is kept.

    Raises
    ------
    SolverError
        If even the children's own bounds have no solution with the parent's total.
    """
    for keeps_margin in (True, False):
        kept = margin if keeps_margin else np.zeros_like(margin)  # the total alone
        distance = distance_to_feasibility(problem, families, family, kept)
        if distance is None:
            continue
        system = _System.build(problem, families, family, kept)
        counts = _solve_relaxed(families, family, system, distance + FUDGE)
        if counts is not None:
            moved = np.abs(counts.sum(axis=1) - system.parent).sum()
            return Rescue(
                level=problem.spine.names[families.level - 1],
                region=problem.spine.codes[families.level - 1][families.first_parent + family],
                distance=distance,
                moved=int(moved),
                kept_margin=keeps_margin,
                cells=system.cells,
                counts=counts,
            )
    region = problem.spine.codes[families.level - 1][families.first_parent + family]
    raise SolverError(f'no children of region "{region}" respect their own bounds with its total.')


def distance_to_feasibility(problem: Problem, families: Families, family: int, margin: Ints) -> float | None:
    """Least L1 distance between a parent and the sum of children that respect their bounds and keep a margin.

    Returns
    -------
    float or None
        None if there are no such children.

    Notes
    -----
    Within a type any child may fill any cell, so only the children's type counts and the cells' sums matter: the problem is a linear
    program over both and the excess and deficit of every cell.
    """
    n_types = problem.implied.n_types
    first, last = int(families.child_start[family]), int(families.child_start[family + 1])
    m = last - first
    parent = _dense_parent(problem, families, family)
    cells = np.flatnonzero(problem.is_possible)
    n = len(cells)
    bounds = TypeRows.build(families, family, np.arange(n_types), n_types)
    identity = eye_array(n, format="csr")
    of_type = csr_array(problem.type_of[cells] == np.arange(n_types)[:, None], dtype=np.float64)
    used, place = np.unique(margin[cells], return_inverse=True)
    of_margin = csr_array((np.ones(n), (place, np.arange(n))), shape=(len(used), n))
    # Unknowns: type counts child by child, then sum, excess and deficit of every cell.
    sums = hstack([csr_array((n, m * n_types)), identity, -identity, identity])
    types = hstack([csr_array(np.tile(np.eye(n_types), m)), -of_type, csr_array((n_types, 2 * n))])
    stated = hstack([bounds.rows, csr_array((len(bounds.lower), 3 * n))])
    margins = hstack([csr_array((len(used), m * n_types)), of_margin, csr_array((len(used), 2 * n))])
    held = np.bincount(margin, weights=parent, minlength=int(margin.max()) + 1)[used]
    fixed = [parent[cells].astype(np.float64), np.zeros(n_types)]
    status, x = solve_linear(
        np.concatenate([np.zeros(m * n_types + n), np.ones(2 * n)]),
        csr_array(vstack([sums, types, stated, margins], format="csr")),
        np.concatenate([*fixed, bounds.lower, held]),
        np.concatenate([*fixed, bounds.upper, held]),
        np.zeros(m * n_types + 3 * n),
        np.full(m * n_types + 3 * n, np.inf),
        is_integer=False,
    )
    return float(x[m * n_types + n :].sum()) if status is Status.OPTIMAL and x is not None else None


def _dense_parent(problem: Problem, families: Families, family: int) -> Ints:
    """Counts of the parent in all cells."""
    filled, count = families.cells_of(family, problem.is_possible)
    assert count is not None, "the root has no parent to depart from"
    dense = np.zeros(problem.n_cells, dtype=np.int64)
    dense[filled] = count
    return dense


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _System:
    """Constraints of the relaxed problem over children x cells counts, then excess and deficit of every cell."""

    cells: Ints
    parent: Ints
    rows: csr_array
    lower: Floats
    upper: Floats
    n_children: int

    @classmethod
    def build(cls, problem: Problem, families: Families, family: int, margin: Ints) -> _System:
        dense = _dense_parent(problem, families, family)
        by_margin = np.bincount(margin, weights=dense)
        # Cells that are empty in the parent may be needed, but not those outside its margin.
        cells = np.flatnonzero(problem.is_possible & (by_margin[margin] > 0))
        n, m = len(cells), int(families.child_start[family + 1] - families.child_start[family])
        used, place = np.unique(margin[cells], return_inverse=True)
        bounds = TypeRows.build(families, family, problem.type_of[cells], problem.implied.n_types)
        every = np.tile(np.arange(n), m)
        sums = csr_array((np.ones(n * m), (every, np.arange(n * m))), shape=(n, n * m))
        margins = csr_array((np.ones(n * m), (place[every], np.arange(n * m))), shape=(len(used), n * m))
        nothing = csr_array((len(bounds.lower) + len(used), 2 * n))
        identity = eye_array(n, format="csr")
        rows = vstack(
            [
                hstack([sums, -identity, identity]),
                hstack([vstack([bounds.rows, margins]), nothing]),
                hstack([csr_array((1, n * m)), csr_array(np.ones((1, 2 * n)))]),
            ],
            format="csr",
        )
        fixed = np.concatenate([dense[cells], bounds.lower, by_margin[used], [0.0]])
        most = np.concatenate([dense[cells], bounds.upper, by_margin[used], [np.inf]])
        return cls(
            cells=cells, parent=dense[cells], rows=csr_array(rows), lower=fixed, upper=most, n_children=m
        )


def _solve_relaxed(families: Families, family: int, system: _System, distance: float) -> Ints | None:
    """Least squares and rounding within a distance of the parent; None if there is no solution."""
    n, m = len(system.cells), system.n_children
    span = (int(families.child_start[family]), int(families.child_start[family + 1]))
    upper = system.upper.copy()
    upper[-1] = distance
    weight, goal, answers = objective(families, span, system.cells)
    n_answers = len(weight) - n * m
    # Unknowns: counts, excess, deficit, answers.
    slack = csr_array((answers.shape[0], 2 * n))
    rows = vstack(
        [
            hstack([system.rows, csr_array((system.rows.shape[0], n_answers))]),
            hstack([answers[:, : n * m], slack, answers[:, n * m :]]),
        ],
        format="csr",
    )
    zeros = np.zeros(answers.shape[0])
    weights = np.concatenate([weight[: n * m], np.zeros(2 * n), weight[n * m :]])
    goals = np.concatenate([goal[: n * m], np.zeros(2 * n), goal[n * m :]])
    least = np.concatenate([np.zeros(n * m + 2 * n), np.full(n_answers, -np.inf)])
    limits = (np.concatenate([system.lower, zeros]), np.concatenate([upper, zeros]))
    status, x = solve_least_squares(
        weights, goals, csr_array(rows), *limits, least, np.full(len(weights), np.inf), tolerance=QP_TOLERANCE
    )
    if x is None or status is Status.INFEASIBLE:
        return None
    return _round_relaxed(system, np.maximum(x[: n * m], 0.0), upper, families.first_child + span[0])


def _round_relaxed(system: _System, real: Floats, upper: Floats, first_node: int) -> Ints | None:
    """Integer counts nearest to the real ones that satisfy the relaxed system, by an integer program."""
    n, m = len(system.cells), system.n_children
    # Ties: rounding up costs slightly less for the higher hash, which ranks fractions of zero.
    ties = [
        rank_of(0.0, first_node + place // n, system.cells[place % n]) / 2.0**50 for place in range(n * m)
    ]
    identity = eye_array(n * m, format="csr")
    n_rows = system.rows.shape[0]
    rows = vstack(
        [
            hstack([system.rows, csr_array((n_rows, 2 * n * m))]),
            hstack([identity, csr_array((n * m, 2 * n)), -identity, identity]),
        ],
        format="csr",
    )
    n_whole = n * m + 2 * n
    status, x = solve_linear(
        np.concatenate([np.zeros(n_whole), 1.0 - np.array(ties), np.ones(n * m)]),
        csr_array(rows),
        np.concatenate([system.lower, real]),
        np.concatenate([upper, real]),
        np.zeros(n_whole + 2 * n * m),
        np.full(n_whole + 2 * n * m, np.inf),
        is_integer=np.arange(n_whole + 2 * n * m) < n_whole,
    )
    if status is not Status.OPTIMAL or x is None:
        return None
    return np.rint(x[: n * m]).astype(np.int64).reshape(m, n).T
