"""TopDown's problems solved the slow way: every leaf table enumerated, every set bound a row of a program."""

from __future__ import annotations

from itertools import product

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, linprog, milp

LARGE = 2**39  # an upper bound beyond this is none


def leaf_vectors(n_types, masks, lower, upper, most):
    """All type counts up to `most` that one leaf may have."""
    return {
        x
        for x in product(range(most + 1), repeat=n_types)
        if all(
            low <= sum(x[t] for t in range(n_types) if mask >> t & 1) <= high
            for mask, low, high in zip(masks, lower, upper, strict=True)
        )
    }


def sums(first, second):
    """All sums of a vector of one set and one of the other."""
    return {tuple(a + b for a, b in zip(x, y, strict=True)) for x in first for y in second}


def region_vectors(starts, n_types, statements, most):
    """Type counts every region may have so that its whole subtree can be filled: one list of sets a level."""
    masks, lower, upper = statements[-1]
    level = [leaf_vectors(n_types, masks, low, high, most) for low, high in zip(lower, upper, strict=True)]
    levels = [level]
    for depth in range(len(starts) - 1, -1, -1):
        start, (masks, lower, upper) = starts[depth], statements[depth]
        above = []
        for region in range(len(start) - 1):
            found = {(0,) * n_types}
            for child in range(start[region], start[region + 1]):
                found = sums(found, level[child])
            own = zip(masks, lower[region], upper[region], strict=True)
            stated = [(mask, low, high) for mask, low, high in own]
            above.append(
                {
                    x
                    for x in found
                    if all(
                        low <= sum(x[t] for t in range(n_types) if mask >> t & 1) <= high
                        for mask, low, high in stated
                    )
                }
            )
        level = above
        levels.insert(0, level)
    return levels


def within(lower, upper, n_types, most):
    """All type counts up to `most` that respect a bound on every set of types."""
    return leaf_vectors(n_types, range(1 << n_types), lower, upper, most)


def set_rows(types, n_types, n_children):
    """One row per child and set of types over (children x cells) unknowns, child by child."""
    n = len(types)
    rows = np.zeros((n_children << n_types, n_children * n))
    for child in range(n_children):
        for mask in range(1 << n_types):
            rows[(child << n_types) + mask, child * n : (child + 1) * n] = mask >> types & 1
    return rows


def parent_rows(n, n_children):
    """One row per cell over (children x cells) unknowns: the children's sum."""
    return np.tile(np.eye(n), n_children)


def least_squares(queries, variances, noisy, cells, parent, types, lower, upper):
    """Optimal objective by Clarabel: sum of squared misfits over variance; None where it finds no answer.

    `noisy` holds one (children, rows) array per query, that of the detailed one first; a variance is a number or
    broadcasts to such an array; `lower` and `upper` are (children, sets).
    """
    import clarabel
    from scipy import sparse

    m, n = len(noisy[0]), len(cells)
    matrix, goal, weight = [], [], []
    for row_of, variance, answers in zip(queries, variances, noisy, strict=True):
        for child in range(m):
            for row in np.unique(row_of[cells]):
                line = np.zeros(m * n)
                line[child * n : (child + 1) * n] = row_of[cells] == row
                matrix.append(line)
                goal.append(answers[child, row])
                weight.append(1.0 / np.broadcast_to(variance, answers.shape)[child, row])
    matrix, goal, weight = np.array(matrix), np.array(goal, dtype=float), np.array(weight)
    # Unknowns are differences from a point nearby: with large numbers the solver loses digits.
    centre = np.maximum(noisy[0][:, cells].ravel(), 0).astype(float)
    residual = matrix @ centre - goal
    equal = np.zeros((0, m * n)) if parent is None else parent_rows(n, m)
    equal_goal = np.zeros(0) if parent is None else np.asarray(parent, dtype=float)
    n_types = int(np.log2(lower.shape[1])) if lower.size else 0
    sets = set_rows(types, n_types, m) if n_types else np.zeros((0, m * n))
    low, high = lower.ravel().astype(float), upper.ravel().astype(float)
    is_filled = sets.any(axis=1)
    is_capped, is_needed = is_filled & (high < LARGE), is_filled & (low > 0)
    rows = np.vstack([equal, -np.eye(m * n), sets[is_capped], -sets[is_needed]])
    limits = np.concatenate([equal_goal, np.zeros(m * n), high[is_capped], -low[is_needed]]) - rows @ centre
    cones = [clarabel.ZeroConeT(len(equal)), clarabel.NonnegativeConeT(len(rows) - len(equal))]
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-9
    hessian = 2.0 * matrix.T @ (weight[:, None] * matrix)
    linear = 2.0 * matrix.T @ (weight * residual)
    solver = clarabel.DefaultSolver(
        sparse.csc_matrix(np.triu(hessian)), linear, sparse.csc_matrix(rows), limits, cones, settings
    )
    solution = solver.solve()
    if str(solution.status) not in ("Solved", "AlmostSolved"):
        return None
    return float(weight @ (matrix @ np.array(solution.x) + residual) ** 2)


def objective(queries, variances, noisy, cells, counts):
    """Sum of squared misfits over variance of counts (cells, children)."""
    total = 0.0
    for row_of, variance, answers in zip(queries, variances, noisy, strict=True):
        for row in np.unique(row_of[cells]):
            held = counts[row_of[cells] == row].sum(axis=0)
            own = np.broadcast_to(variance, answers.shape)[:, row]
            total += float(((held - answers[:, row]) ** 2 / own).sum())
    return total


def best_rounding(floor, rank, parent, types, lower, upper):
    """Largest sum of ranks rounded up, by an integer program; None where there is no solution.

    `floor` and `rank` are (cells, children).
    """
    n, m = floor.shape
    n_types = int(np.log2(lower.shape[1])) if lower.size else 0
    sets = set_rows(types, n_types, m) if n_types else np.zeros((0, m * n))
    rows = np.vstack([parent_rows(n, m), sets])
    base = floor.T.ravel()
    shift = rows @ base
    least = np.concatenate([parent, lower.ravel()]) - shift
    most = np.concatenate([parent, upper.ravel()]) - shift
    answer = milp(
        -rank.T.ravel() / 2.0**10,
        constraints=LinearConstraint(rows, least, most),
        bounds=Bounds(np.zeros(m * n), np.ones(m * n)),
        integrality=np.ones(m * n),
        options={"mip_rel_gap": 0.0},
    )
    if answer.x is None:
        return None
    return int(rank.T.ravel() @ np.rint(answer.x).astype(np.int64))


def distance(parent, types, lower, upper, margin):
    """Least L1 distance between a parent's cells and the sum of children within their bounds, by a program.

    Children keep the parent's margin: cells with one number in `margin` have its sum. None where none do.
    """
    n, m = len(parent), len(lower)
    n_types = int(np.log2(lower.shape[1]))
    sets = set_rows(types, n_types, m)
    zeros = np.zeros((len(sets), 2 * n))
    kept = (np.unique(margin)[:, None] == margin).astype(float)
    answer = linprog(
        np.concatenate([np.zeros(m * n), np.ones(2 * n)]),
        A_ub=np.vstack([np.hstack([sets, zeros]), np.hstack([-sets, zeros])]),
        b_ub=np.concatenate([upper.ravel(), -lower.ravel()]),
        A_eq=np.vstack(
            [
                np.hstack([parent_rows(n, m), -np.eye(n), np.eye(n)]),
                np.hstack([kept @ parent_rows(n, m), np.zeros((len(kept), 2 * n))]),
            ]
        ),
        b_eq=np.concatenate([parent, kept @ parent]),
    )
    return answer.fun if answer.status == 0 else None


def compact_flow(
    n_types: int, least: np.ndarray, is_present: np.ndarray, totals: np.ndarray
) -> dict[int, tuple[int, np.ndarray]]:
    """Combinations of types and the flow bounds of the paper, for lower bounds and fixed leaf totals.

    Parameters
    ----------
    n_types : int
    least : ndarray of int64, shape (leaves, types)
        Least number of people of each type.
    is_present : ndarray of bool, shape (leaves, types)
        Types that a leaf may have.
    totals : ndarray of int64, shape (leaves,)

    Returns
    -------
    dict
        Mask of the types present -> (people in leaves with exactly these types, least flow from each type).

    Notes
    -----
    **Implements**: Abowd et al. (2019), section 7.3.2: Y_j, N_j and f_ij of equations (20)-(25). Exact only
    without upper bounds (ERRATA T8); an independent form of the same constraints.
    """
    combination = is_present @ (1 << np.arange(n_types))
    flow = {}
    for mask in np.unique(combination):
        inside = combination == mask
        flow[int(mask)] = (int(totals[inside].sum()), least[inside].sum(axis=0))
    return flow
