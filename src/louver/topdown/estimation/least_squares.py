"""Least squares: real, non-negative counts of the children that fit the noisy answers best.

Children add up to their parent, cell by cell, and respect the bounds on sets of types. Whole batches of
families are solved by one call of compiled code; families that do not fit its structure are solved by a general solver.

Notes
-----
**Implements**: Abowd et al. (2019), equations (6) and (9), each query weighted by the inverse of its variance.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array

from louver._arrays import Floats, Ints
from louver.optim.kernels.families.batches import INFEASIBLE, Batch, solve_batch_inplace
from louver.optim.kernels.families.semismooth import SOLVED
from louver.optim.quadratic import solve_least_squares
from louver.optim.status import Status
from louver.topdown.knowledge.implied import UNBOUNDED
from louver.topdown.problem import Families, Problem

__all__ = [
    "MAX_LINK_ROWS",
    "QP_TOLERANCE",
    "Fractional",
    "TypeRows",
    "encode",
    "needed_sets",
    "objective",
    "solve",
]

DUAL_RESIDUAL = 1e-8
"""Maximum violation of a constraint, in persons, when Newton's method on the dual stops."""

ROUNDING = 2.0**-48
"""The same tolerance relative to the largest count, if that is more: national sums are not exact to a hundred-millionth of a person."""

ACCEPTED_RESIDUAL = 1e-5
"""Maximum violation of a constraint, in persons, in any least-squares solution that is rounded."""

QP_TOLERANCE = 1e-10
"""Absolute and relative tolerance for the general quadratic solver."""

MAX_LINK_ROWS = 128
"""Maximum number of rows of all queries other than the detailed and the grouping one, in the structured solver."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Fractional:
    """Real counts of a batch.

    Parameters
    ----------
    counts : ndarray of float64
        One (cells, children) block per family, one after another.
    offsets : ndarray of int64
        Where each block begins, and the end.
    status : list of Status
        One per family: OPTIMAL, FEASIBLE (accepted, not proved optimal) or INFEASIBLE.
    residual : ndarray of float64
        Largest violation of a constraint in each family, in persons.
    """

    counts: Floats
    offsets: Ints
    status: list[Status]
    residual: Floats

    def block(self, family: int, n_children: int) -> Floats:
        """Counts of one family, (cells, children)."""
        flat = self.counts[self.offsets[family] : self.offsets[family + 1]]
        return flat.reshape(-1, max(n_children, 1))


def solve(problem: Problem, families: Families, batch: Batch | None = None) -> Fractional:
    """Solve all families of a batch; `batch` is the result of `encode`, if it was already called.

    Notes
    -----
    **Cost**: 0.1-0.5 ms for a parent with 20 children and 40 cells; 0.2 s for 150 children and 400 cells.
    """
    batch = encode(problem, families) if batch is None else batch
    sizes = np.diff(batch.cell_start) * np.diff(batch.child_start)
    offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    counts = np.zeros(offsets[-1])
    n = families.n_families
    codes, steps, residual = np.zeros(n, np.int64), np.zeros(n, np.int64), np.zeros(n)
    if problem.implied.is_integral and _Arrangement.choose(problem, families).fits:
        largest = float(np.max(batch.parent if batch.has_parent else batch.detail, initial=0.0))
        accepted = max(DUAL_RESIDUAL, ROUNDING * largest)
        solve_batch_inplace(batch, accepted, counts, codes, steps, residual)
    else:
        codes[:] = SOLVED + 1
    status = [Status.OPTIMAL] * n
    for family in np.flatnonzero(codes != SOLVED).tolist():
        status[family] = Status.INFEASIBLE
        if codes[family] != INFEASIBLE:
            block = slice(offsets[family], offsets[family + 1])
            status[family], counts[block], residual[family] = _solve_generally(problem, families, family)
    return Fractional(counts=counts, offsets=offsets, status=status, residual=residual)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Arrangement:
    """Which query plays which part in the structured solver; numbers are positions in the evidence."""

    detailed: int
    grouping: int | None
    links: tuple[int, ...]
    types: int | None  # the query that measures the types themselves
    fits: bool

    @classmethod
    def choose(cls, problem: Problem, families: Families) -> _Arrangement:
        queries, detailed = families.evidence.queries, families.evidence.detailed
        types = None
        if families.is_bounded:
            same = (i for i, query in enumerate(queries) if np.array_equal(query.row_of, problem.type_of))
            types = next((i for i in same if i != detailed), None)
        rest = [i for i in range(len(queries)) if i not in (detailed, types)]
        # The query with the most rows has the smallest groups, which are eliminated in closed form.
        grouping = max(rest, key=lambda i: queries[i].n_rows, default=None)
        links = tuple(i for i in rest if i != grouping)
        n_rows = sum(queries[i].n_rows for i in links)
        return cls(
            detailed=detailed, grouping=grouping, links=links, types=types, fits=n_rows <= MAX_LINK_ROWS
        )


def encode(problem: Problem, families: Families) -> Batch:
    """Arrays of a batch for the compiled solver and for rounding."""
    plan = _Arrangement.choose(problem, families)
    queries, noisy, weights = families.evidence.queries, families.evidence.values, families.evidence.weights
    cell_start, cell, parent = _cells(problem, families)
    rows: list[Ints] = []
    row_weights: list[Floats] = []
    values: list[Ints | Floats] = []
    n_types = 0
    if families.is_bounded:
        n_types = problem.implied.n_types
        rows.append(problem.type_of)
        is_measured = plan.types is not None
        row_weights.append(_by_row(weights[plan.types or 0] if is_measured else np.zeros((1, 1)), n_types))
        values.append(noisy[plan.types or 0] if is_measured else np.zeros((len(families.upper), n_types)))
    offset = n_types
    for i in plan.links:
        rows.append(queries[i].row_of + offset)
        row_weights.append(_by_row(weights[i], queries[i].n_rows))
        values.append(noisy[i])
        offset += queries[i].n_rows
    n_children = int(families.child_start[-1])
    identity = np.arange(problem.n_cells, dtype=np.int64)
    grouping = plan.grouping
    return Batch(
        has_parent=families.parents is not None,
        cell_start=cell_start,
        cell=cell,
        parent=parent,
        child_start=_own(families.child_start),
        a=_real(weights[plan.detailed]),
        detail=_real(noisy[plan.detailed]),
        v=np.zeros(1) if grouping is None else _real(weights[grouping][:, 0]),
        grouped=_real(noisy[plan.detailed if grouping is None else grouping]),
        group_of=identity if grouping is None else _own(queries[grouping].row_of),
        link_row=np.array(rows, dtype=np.int64).reshape(len(rows), problem.n_cells),
        weight=_side_by_side(row_weights),
        noisy=np.column_stack([*values, np.zeros((n_children, 0))]).astype(np.float64),
        n_types=n_types,
        is_bounded=families.is_bounded,
        lower=_own(families.lower),
        upper=_own(families.upper),
    )


def _by_row(weights: Floats, n_rows: int) -> Floats:
    """Weights (regions or 1, rows) of a query."""
    return np.repeat(weights, n_rows, axis=1) if weights.shape[1] == 1 else weights


def _side_by_side(parts: Sequence[Floats]) -> Floats:
    """Weights of several queries, one after another."""
    n = max((len(part) for part in parts), default=1)
    return np.column_stack([*(np.broadcast_to(part, (n, part.shape[1])) for part in parts), np.zeros((n, 0))])


def _real(array: Ints | Floats) -> Floats:
    """The same for real numbers or for noisy whole numbers."""
    return np.require(array, np.float64, ["C", "W"])


def _own(array: Ints) -> Ints:
    """A contiguous, writable array: the code is compiled for this kind of array only."""
    return np.require(array, requirements=["C", "W"])


def _cells(problem: Problem, families: Families) -> tuple[Ints, Ints, Floats]:
    """Cells the children of each parent may fill, with the parents' counts."""
    if families.parents is None:
        cell = np.flatnonzero(problem.is_possible)
        return np.array([0, len(cell)], dtype=np.int64), cell.astype(np.int64), np.zeros(len(cell))
    parents = families.parents
    return _own(parents.start), _own(parents.cell), parents.count.astype(np.float64)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TypeRows:
    """Rows of a linear system over the counts of one family, (children x cells) unknowns child by child.

    Every row bounds one child's people in one set of types.
    """

    rows: csr_array
    lower: Floats
    upper: Floats

    @classmethod
    def build(cls, families: Families, family: int, types: Ints, n_types: int) -> TypeRows:
        first, last = families.child_start[family], families.child_start[family + 1]
        row, column, lower, upper = [], [], [], []
        n_rows, n = 0, len(types)
        for child in range(first, last) if families.is_bounded else ():
            low, high = families.lower[child], families.upper[child]
            for mask in needed_sets(low, high, n_types):
                inside = np.flatnonzero(mask >> types & 1)
                row.append(np.full(len(inside), n_rows))
                column.append((child - first) * n + inside)
                lower.append(float(low[mask]))
                upper.append(float(high[mask]) if high[mask] < UNBOUNDED else np.inf)
                n_rows += 1
        shape = (n_rows, int(last - first) * n)
        if not n_rows:
            return cls(rows=csr_array(shape), lower=np.zeros(0), upper=np.zeros(0))
        places = (np.concatenate(row), np.concatenate(column))
        matrix = csr_array((np.ones(len(places[0])), places), shape=shape)
        return cls(rows=matrix, lower=np.array(lower), upper=np.array(upper))


def needed_sets(lower: Ints, upper: Ints, n_types: int) -> list[int]:
    """Sets whose bounds do not follow from those of two smaller sets and non-negativity."""
    sets = []
    for mask in range(1, 1 << n_types):
        splits = [(1 << t, mask & ~(1 << t)) for t in range(n_types) if mask >> t & 1]
        from_above = min(int(upper[a] + upper[b]) for a, b in splits) if mask.bit_count() > 1 else UNBOUNDED
        from_below = max(int(lower[a] + lower[b]) for a, b in splits) if mask.bit_count() > 1 else 0
        is_upper_new = int(upper[mask]) < min(UNBOUNDED, from_above)
        if is_upper_new or int(lower[mask]) > from_below:
            sets.append(mask)
    return sets


def _solve_generally(problem: Problem, families: Families, family: int) -> tuple[Status, Floats, float]:
    """One family by the general solver: counts (cells, children) flattened, and the largest violation."""
    cells, parent = families.cells_of(family, problem.is_possible)
    first, last = int(families.child_start[family]), int(families.child_start[family + 1])
    n, m = len(cells), last - first
    if n == 0:  # no people to distribute
        return Status.OPTIMAL, np.zeros(0), 0.0
    weight, goal, sums = objective(families, (first, last), cells)
    matrices: list[csr_array] = [sums]
    lower, upper = [np.zeros(sums.shape[0])], [np.zeros(sums.shape[0])]
    if parent is not None:
        cell_sums = csr_array(np.tile(np.arange(n), m)[None, :] == np.arange(n)[:, None], dtype=np.float64)
        matrices.append(_widen(cell_sums, len(weight)))
        lower.append(parent.astype(np.float64))
        upper.append(parent.astype(np.float64))
    if families.is_bounded:
        bounds = TypeRows.build(families, family, problem.type_of[cells], problem.implied.n_types)
        matrices.append(_widen(bounds.rows, len(weight)))
        lower.append(bounds.lower)
        upper.append(bounds.upper)
    rows = _stack(matrices)
    least, most = np.concatenate(lower), np.concatenate(upper)
    at_least = np.full(len(weight), -np.inf)
    at_least[: n * m] = 0.0
    free = np.full(len(weight), np.inf)
    status, x = solve_least_squares(weight, goal, rows, least, most, at_least, free, tolerance=QP_TOLERANCE)
    if x is None:
        return Status.INFEASIBLE, np.zeros(n * m), 0.0
    counts = np.maximum(x[: n * m], 0.0)
    x[: n * m] = counts
    held = rows @ x
    residual = float(np.max(np.maximum(least - held, held - most), initial=0.0))
    if residual > ACCEPTED_RESIDUAL:
        return Status.INFEASIBLE, np.zeros(n * m), residual
    return status, counts.reshape(m, n).T.ravel(), residual


def objective(families: Families, span: tuple[int, int], cells: Ints) -> tuple[Floats, Floats, csr_array]:
    """Weights and goals of the unknowns, and rows that define each answer as a sum of counts.

    Unknowns are the counts child by child, then the answers of every query but the detailed one, which stands
    first.
    """
    n, m = len(cells), span[1] - span[0]
    queries, detailed = families.evidence.queries, families.evidence.detailed

    def part(i: int, rows: Ints) -> tuple[Floats, Floats]:
        value, own = families.evidence.values[i], families.evidence.weights[i]
        weight = np.broadcast_to(own, (len(value), queries[i].n_rows))[span[0] : span[1], rows]
        return weight.ravel(), value[span[0] : span[1], rows].ravel().astype(np.float64)

    first = part(detailed, cells)
    weights, goals = [first[0]], [first[1]]
    row, column, value = [], [], []
    place, n_rows = n * m, 0
    for i, query in enumerate(queries):
        if i == detailed:
            continue
        used, local = np.unique(query.row_of[cells], return_inverse=True)
        for child in range(m):
            row.append(n_rows + local)
            column.append(child * n + np.arange(n))
            value.append(np.ones(n))
            row.append(n_rows + np.arange(len(used)))
            column.append(place + np.arange(len(used)))
            value.append(np.full(len(used), -1.0))
            place += len(used)
            n_rows += len(used)
        weight, goal = part(i, used)
        weights.append(weight)
        goals.append(goal)
    entries = np.concatenate([*value, np.zeros(0)])
    places = (np.concatenate([*row, np.zeros(0, int)]), np.concatenate([*column, np.zeros(0, int)]))
    return np.concatenate(weights), np.concatenate(goals), csr_array((entries, places), shape=(n_rows, place))


def _widen(rows: csr_array, n_columns: int) -> csr_array:
    """The same rows over more unknowns."""
    return csr_array((rows.data, rows.indices, rows.indptr), shape=(rows.shape[0], n_columns))


def _stack(matrices: Sequence[csr_array]) -> csr_array:
    from scipy.sparse import vstack

    return csr_array(vstack(list(matrices), format="csr"))
