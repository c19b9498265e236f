"""M_H, M_c and M_dp^OP: the models of the paper, passed to a general solver. Reference implementations for small cases.

Fioretto, Van Hentenryck & Zhu (2021), Models 1 and 2, and the dynamic program of section 6 with one optimisation for each
entry of a cost table.
"""

from __future__ import annotations

import numpy as np
from scipy import sparse
from scipy.optimize import Bounds, LinearConstraint, milp

from louver._arrays import Floats, Ints
from louver.errors import InputError, SolverError
from louver.groups.problem import NoisyAnswers, SizeQuery, sizes_of
from louver.optim.highs import interruptible_milp
from louver.optim.trees import LevelTree
from louver.run import Run

__all__ = ["check_size", "solve_by_tables", "solve_cumulative_program", "solve_program"]

MOST_UNITS = 200_000
"""Maximum product of regions, sizes and groups; beyond it these methods do not finish."""


def solve_program(noisy: NoisyAnswers, run: Run | None = None) -> Ints:
    """M_H: Model 1, (H1)-(H4), as a mixed-integer program."""
    return _integer_program(noisy, run, is_cumulative=False)


def solve_cumulative_program(noisy: NoisyAnswers, run: Run | None = None) -> Ints:
    """M_c: Model 2, (C1)-(C5), as a mixed-integer program on prefix counts."""
    return sizes_of(_integer_program(noisy, run, is_cumulative=True), SizeQuery.PREFIX)


def check_size(n_cells: int, total: int) -> None:
    """Refuse a table that a general solver would not finish, before anything is spent on it."""
    if n_cells * (total + 1) > MOST_UNITS:
        raise InputError(
            "the table is too large for a general solver; use M_H^dp, M_c^dp or the default mechanism.",
            option="--mechanism",
        )


def _total(noisy: NoisyAnswers) -> int:
    if noisy.total is None:
        raise SolverError("the integer programs of the paper need a public total.")
    check_size(noisy.rows.size, noisy.total)
    return noisy.total


def _integer_program(noisy: NoisyAnswers, run: Run | None, *, is_cumulative: bool) -> Ints:
    """Write the square of each unknown as a sum of unit steps of increasing cost, which a solver takes in order."""
    total, tree = _total(noisy), noisy.tree
    n_regions, n_sizes = noisy.rows.shape
    n_cells = n_regions * n_sizes
    units = np.arange(total)
    prices = (2 * (units - noisy.rows.reshape(-1, 1)) + 1).ravel().astype(float)
    # Unknowns: the value of every cell, then its unit steps.
    steps = sparse.kron(sparse.identity(n_cells), np.ones((1, total)))
    rows = [sparse.hstack([sparse.identity(n_cells), -steps])]
    lower, upper = [np.zeros(n_cells)], [np.zeros(n_cells)]

    def require(matrix: sparse.spmatrix, least: float, most: float) -> None:
        rows.append(sparse.hstack([matrix, sparse.csr_matrix((matrix.shape[0], n_cells * total))]))
        lower.append(np.full(matrix.shape[0], least))
        upper.append(np.full(matrix.shape[0], most))

    require(_consistency(tree, n_sizes), 0, 0)
    if is_cumulative:
        rising = sparse.diags([-1.0, 1.0], [0, 1], shape=(n_sizes - 1, n_sizes))
        if n_sizes > 1:
            require(sparse.kron(sparse.identity(n_regions), rising), 0, np.inf)
        require(_selector([n_sizes - 1], n_cells), total, total)
    else:
        require(_selector(range(n_sizes), n_cells), total, total)
    solution = interruptible_milp(
        run,
        c=np.concatenate([np.zeros(n_cells), prices]),
        constraints=LinearConstraint(sparse.vstack(rows), np.concatenate(lower), np.concatenate(upper)),
        integrality=np.repeat([1, 0], [n_cells, n_cells * total]),
        bounds=Bounds(0, np.concatenate([np.full(n_cells, total), np.ones(n_cells * total)])),
    )
    if not solution.success:
        raise SolverError("the integer program was not solved to optimality; use M_H^dp or M_c^dp.")
    counts: Ints = np.rint(solution.x[:n_cells]).astype(np.int64).reshape(n_regions, n_sizes)
    return counts


def _consistency(tree: LevelTree, n_sizes: int) -> sparse.spmatrix:
    """One row for each parent and size: the parent minus its children."""
    n_parents = int(tree.level_start[-2])
    parents = sparse.eye(n_parents, tree.n_regions)
    children = sparse.csr_matrix(
        (np.ones(tree.n_regions - 1), (tree.parent[1:], np.arange(1, tree.n_regions))),
        shape=(n_parents, tree.n_regions),
    )
    return sparse.kron(parents - children, sparse.identity(n_sizes))


def _selector(cells: range | list[int], n_cells: int) -> sparse.spmatrix:
    """One row that adds up the given cells."""
    columns = list(cells)
    return sparse.csr_matrix((np.ones(len(columns)), ([0] * len(columns), columns)), shape=(1, n_cells))


def solve_by_tables(noisy: NoisyAnswers, run: Run | None = None) -> Ints:
    """M_dp^OP: the dynamic program of section 6, with each entry of each cost table optimised separately.

    Notes
    -----
    **Implements**: (4a)-(4d) on T^dp, with the whole domain 0 .. G.
    **Cost**: O(regions x sizes x G) calls of a solver (Theorem 2).
    """
    total, tree = _total(noisy), noisy.tree
    n_sizes = noisy.rows.shape[1]
    domain = np.arange(total + 1)
    tables = [np.empty((tree.n_regions, total + 1)) for _ in range(n_sizes)]
    for s, table in enumerate(tables):
        for r in range(tree.n_regions - 1, -1, -1):
            if run is not None:
                run.check()
            table[r] = (domain - noisy.rows[r, s]) ** 2
            if r < tree.level_start[-2]:
                table[r] += [_split(table[tree.children(r)], v)[0] for v in range(total + 1)]
    values = np.zeros(noisy.rows.shape, np.int64)
    values[0] = _split(np.stack([table[0] for table in tables]), total)[1]
    for s, table in enumerate(tables):
        for r in range(int(tree.level_start[-2])):
            values[tree.children(r), s] = _split(table[tree.children(r)], int(values[r, s]))[1]
    return values


def _split(tables: Floats, value: int) -> tuple[float, Ints]:
    """Minimise the sum of the children's costs at values that sum to `value`: (4b)-(4d) with one choice for each child."""
    n_children, n_values = tables.shape
    chosen = np.kron(np.eye(n_children), np.ones((1, n_values)))
    amounts = np.tile(np.arange(n_values, dtype=float), n_children)
    right = np.append(np.ones(n_children), value)
    solution = milp(
        tables.ravel(),
        constraints=LinearConstraint(np.vstack([chosen, amounts]), right, right),
        integrality=np.ones(tables.size, np.int64),
        bounds=Bounds(0, 1),
    )
    if not solution.success:
        raise SolverError("an entry of a cost table was not solved; use M_H^dp.")
    picked = np.rint(solution.x).reshape(n_children, n_values)
    return float(solution.fun), (picked @ np.arange(n_values)).astype(np.int64)
