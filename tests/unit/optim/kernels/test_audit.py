"""Kernels of the joint audit, each by what its answer is."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.sparse import csr_array

from louver.errors import Cancelled
from louver.optim.kernels.audit.boxes import unmoved_boxes
from louver.optim.kernels.audit.coordinates import eliminate
from louver.optim.kernels.audit.fit import fit_inplace
from louver.optim.kernels.audit.propagate import UNBOUNDED, activity_bounds, propagate_inplace
from louver.optim.program import Program
from louver.optim.status import Status
from louver.run import Run
from louver.tables.coordinates import Coordinates
from louver.tables.descriptions import _every_set
from louver.tables.evidence import Probe
from louver.tables.solvers import feasible_point, scaled_lower_bound
from louver.tables.system import Intervals, System

FLAG = np.zeros(1, dtype=np.uint8)


def random_system(seed, n=5, m=4):
    """A small integer system around a point, with rows of both kinds."""
    rng = np.random.default_rng(seed)
    matrix = rng.integers(-2, 3, size=(m, n))
    truth = rng.integers(0, 4, size=n)
    sums = matrix @ truth
    slack = rng.integers(0, 2, size=(2, m)) * rng.integers(0, 3, size=(2, m))
    return matrix, truth, sums - slack[0], sums + slack[1]


def sparse_of(matrix):
    """Built from places, as the audit builds its own: their integers are as wide, so that no kernel is compiled twice."""
    return csr_array((matrix[matrix != 0], np.nonzero(matrix)), shape=matrix.shape)


def points_of(matrix, row_lower, row_upper, most=6):
    grid = np.array(list(itertools.product(range(most + 1), repeat=matrix.shape[1])))
    sums = grid @ matrix.T
    return grid[((sums >= row_lower) & (sums <= row_upper)).all(axis=1)]


@pytest.mark.parametrize("seed", range(20))
def test_intervals_hold_every_point(seed):
    matrix, _, row_lower, row_upper = random_system(seed)
    sparse = sparse_of(matrix)
    lower, upper = np.zeros(5, dtype=np.int64), np.full(5, 6)
    clash = propagated(sparse, row_lower, row_upper, lower, upper)
    points = points_of(matrix, row_lower, row_upper)
    assert clash == -1
    assert (points >= lower).all() and (points <= upper).all()
    least, most = np.empty(4, dtype=np.int64), np.empty(4, dtype=np.int64)
    reach = np.full(4, 2**50)
    activity_bounds(
        sparse.indptr, sparse.indices, sparse.data, reach, row_lower, row_upper, lower, upper, least, most
    )
    sums = points @ matrix.T
    assert (sums >= least).all() and (sums <= most).all()


def test_a_row_that_cannot_hold_is_named():
    sparse = sparse_of(np.array([[1, 1], [1, -1]]))
    lower, upper = np.zeros(2, dtype=np.int64), np.full(2, UNBOUNDED)
    row_lower, row_upper = np.array([0, 5]), np.array([3, 9])
    assert propagated(sparse, row_lower, row_upper, lower, upper) == 1


def test_numbers_near_the_end_of_64_bits_count_as_no_bound():
    """x <= 2^34 and y = 2^40 x: the product leaves 64 bits, and nothing false is said about y."""
    sparse = sparse_of(np.array([[1, 0], [2**40, -1]]))
    lower, upper = np.zeros(2, dtype=np.int64), np.full(2, UNBOUNDED)
    limits = np.array([0, 0]), np.array([2**34, 0])
    system = System(matrix=sparse, row_lower=limits[0], row_upper=limits[1], lower=lower, upper=upper)
    found, clash = system.propagated(Run())
    assert clash == -1 and found.upper.tolist() == [2**34, UNBOUNDED]
    assert not system.holds(np.array([2**34, 0]))


def propagated(sparse, row_lower, row_upper, lower, upper):
    columns = sparse.tocsc()
    return propagate_inplace(
        sparse.indptr, sparse.indices, sparse.data, np.full(len(row_lower), 2**50), columns.indptr, columns.indices,
        row_lower, row_upper, lower, upper, np.ones(len(row_lower), dtype=bool), 100, FLAG,
    )  # fmt: skip


@pytest.mark.parametrize("seed", range(20))
def test_elimination_solves_its_rows_in_integers(seed):
    matrix = random_system(seed, n=7)[0]
    columns = sparse_of(matrix).tocsc()
    transform, basic = eliminate(columns.indptr, columns.indices, columns.data, 4, np.arange(7), FLAG)
    tableau = transform @ matrix
    for row, column in enumerate(basic):
        if column >= 0:
            unit = np.zeros(4, dtype=np.int64)
            unit[row] = 1
            assert np.array_equal(tableau[:, column], unit)
    assert abs(round(np.linalg.det(transform))) == 1


@pytest.mark.parametrize("seed", range(20))
def test_repair_finds_points_and_only_points(seed):
    matrix, truth, row_lower, row_upper = random_system(seed)
    system = System(
        matrix=sparse_of(matrix),
        row_lower=row_lower,
        row_upper=row_upper,
        lower=np.zeros(5, dtype=np.int64),
        upper=np.full(5, 6),
        truth=truth,
    )
    coordinates = Coordinates.of(system, Run())
    points = points_of(matrix, row_lower, row_upper)
    for quantity in range(5):
        for goal in range(7):
            probe = Probe(Intervals.of(system.matrix), system, Run())
            if not probe.reach(quantity, goal, goal):
                assert not (points[:, quantity] == goal).any()
                continue
            found = coordinates.repaired(truth, probe.system, 2000, 1, Run())
            if found is not None:
                assert system.holds(found) and found[quantity] == goal
            elif (points[:, quantity] == goal).any():
                # A search may miss, but not a value that the truth has.
                assert goal != truth[quantity]


@pytest.mark.parametrize("seed", range(20))
def test_any_duals_give_a_valid_bound(seed):
    matrix, _, row_lower, row_upper = random_system(seed)
    rng = np.random.default_rng(seed)
    duals, cost = rng.integers(-9, 10, size=4), rng.integers(-3, 4, size=5)
    residual = 4 * cost - matrix.T @ duals
    total = scaled_lower_bound(
        duals, row_lower, row_upper, residual, np.zeros(5, dtype=np.int64), np.full(5, 6)
    )
    points = points_of(matrix, row_lower, row_upper)
    assert total <= (4 * points @ cost).min()


@pytest.mark.parametrize("seed", range(10))
def test_programs_with_and_without_the_solver_inside_scipy_agree(seed, monkeypatch):
    matrix, _, row_lower, row_upper = random_system(seed)
    bounds = row_lower.astype(float), row_upper.astype(float), np.zeros(5), np.full(5, 6.0)
    rows = csr_array(matrix.astype(float))
    from_basis = Program(rows, *bounds, is_primal=True)
    with monkeypatch.context() as patch:
        patch.setattr("louver.optim.program.highs", None)
        from_nothing = Program(rows, *bounds)
    for cost in np.eye(5):
        for sign in (1.0, -1.0):
            warm, cold = from_basis.minimise(sign * cost), from_nothing.minimise(sign * cost)
            assert warm.status is cold.status is Status.OPTIMAL
            assert warm.point @ cost == pytest.approx(cold.point @ cost, abs=1e-6)


def test_an_infeasible_program_is_reported(monkeypatch):
    rows = csr_array(np.array([[1.0, 1.0]]))
    limits = np.array([9.0]), np.array([9.0]), np.zeros(2), np.ones(2)
    assert Program(rows, *limits, is_primal=True).minimise(np.ones(2)).status is Status.INFEASIBLE
    monkeypatch.setattr("louver.optim.program.highs", None)
    assert Program(rows, *limits).minimise(np.ones(2)).status is Status.INFEASIBLE


class CancelledAfter(Run):
    """A run that somebody cancels when it has been asked so often."""

    def __init__(self, n_asked):
        super().__init__()
        self.n_left = n_asked

    @property
    def is_cancelled(self):
        self.n_left -= 1
        if self.n_left < 0:
            self.cancel()
        return super().is_cancelled


def test_a_cancelled_run_ends_a_linear_program_at_its_next_step():
    matrix = np.random.default_rng(1).integers(0, 2, size=(30, 60)).astype(float)
    sums = matrix @ np.ones(60)
    run = CancelledAfter(3)
    program = Program(csr_array(matrix), sums, sums, np.zeros(60), np.full(60, 9.0), run=run, is_primal=True)
    with pytest.raises(Cancelled):
        program.minimise(np.arange(60.0))
    assert run.n_left == -1


def test_a_cancelled_run_stops_the_constraint_solver(monkeypatch):
    """The solver is told to stop by anyone who cancels, here from within its own call."""
    from ortools.sat.python import cp_model

    told, run = [], Run()
    monkeypatch.setattr(cp_model.CpSolver, "stop_search", lambda solver: told.append(solver))
    monkeypatch.setattr(cp_model.CpSolver, "solve", lambda *_: run.cancel() or cp_model.UNKNOWN)
    matrix, truth, row_lower, row_upper = random_system(1)
    limits = {"row_lower": row_lower, "row_upper": row_upper, "lower": np.zeros(5, dtype=np.int64)}
    system = System(matrix=sparse_of(matrix), **limits, upper=np.full(5, 6), truth=truth)
    with pytest.raises(Cancelled):
        feasible_point(system, 1.0, run)
    assert len(told) == 1


@pytest.mark.parametrize("seed", range(5))
def test_a_fit_meets_margins_that_can_be_met(seed):
    table = np.random.default_rng(seed).integers(1, 9, size=(3, 4))
    rows = np.vstack([np.kron(np.eye(3), np.ones(4)), np.kron(np.ones(3), np.eye(4))]).astype(np.int64)
    sums, sparse, point = rows @ table.ravel(), sparse_of(rows), np.ones(12)
    limits = np.zeros(12, dtype=np.int64), np.full(12, 99)
    fit_inplace(sparse.indptr, sparse.indices, sparse.data, sums, sums, *limits, point, 50, FLAG)
    assert rows @ point == pytest.approx(sums)


@pytest.mark.parametrize("seed", range(12))
def test_what_a_walk_says_to_move_does_move(seed):
    """A sum that the steps met on a walk change differs between tables; steps of a table with room are all met."""
    matrix, truth, row_lower, row_upper = random_system(seed)
    system = System(
        matrix=sparse_of(matrix),
        row_lower=row_lower,
        row_upper=row_upper,
        lower=np.zeros(5, dtype=np.int64),
        upper=np.full(5, 6),
        truth=truth,
    )
    coordinates = Coordinates.of(system, Run())
    assert coordinates is not None
    moves = coordinates.steps(60, Run())
    points = points_of(matrix, row_lower, row_upper)
    for form in itertools.product([0, 1], repeat=5):
        if np.array(form, dtype=np.uint64) @ moves:
            assert len({int(value) for value in points @ np.array(form)}) > 1
    assert (moves == 0).all() or len(points) > 1


@pytest.mark.parametrize("seed", range(12))
def test_boxes_are_those_of_brute_force(seed):
    """Each box that is listed is small and does not move, and each such box holds one that is listed."""
    rng = np.random.default_rng(seed)
    shape = [(3, 2), (2, 3, 2), (4,), (3, 3)][seed % 4]
    counts = rng.integers(0, 4, size=shape)
    moves = rng.integers(-1, 2, size=shape)
    sets = [list(range(1, 2**size)) for size in shape]
    families = [_every_set(size) for size in shape]
    rest = np.array([int(np.prod(shape[level + 1 :])) for level in range(len(shape))])
    sizes = [family.size for family in families]
    room = np.cumsum([counts.size, *(np.array(sizes) * rest)])
    space = [np.zeros(room[-1], dtype=np.int64), np.zeros(room[-1], dtype=np.uint64)]
    space[0][: counts.size], space[1][: counts.size] = counts.ravel(), moves.ravel().astype(np.uint64)
    out = np.zeros((4096, len(shape)), dtype=np.int64)
    arguments = (
        np.array(shape), np.cumsum([0, *sizes]), *(np.concatenate([getattr(f, name) for f in families])
        for name in ("parent", "atom", "is_asked")), np.ones(len(shape), dtype=bool), rest, room[:-1],
    )  # fmt: skip
    n_found, n_small = unmoved_boxes(*arguments, *space, 5, 2**40, out, FLAG)

    def mask(numbers):
        inside = [
            [bool(bits >> code & 1) for code in range(size)]
            for bits, size in zip(numbers, shape, strict=True)
        ]
        return np.logical_and.reduce(np.meshgrid(*inside, indexing="ij"))

    listed = [mask(row + 1) for row in out[:n_found]]
    wanted = [
        box
        for box in map(mask, itertools.product(*sets))
        if 0 < counts[box].sum() < 5 and moves[box].sum() == 0
    ]
    assert n_small >= n_found == len({one.tobytes() for one in listed})
    assert all(any((one == box).all() for box in wanted) for one in listed)
    assert all(any(not (one & ~box).any() for one in listed) for box in wanted)
    assert unmoved_boxes(*arguments, *space, 5, 1, out, FLAG)[1] == -1
    if n_found > 1:
        assert unmoved_boxes(*arguments, *space, 5, 2**40, out[:1], FLAG)[0] == 2
