"""Least squares and rounding of TopDown's families beside general solvers, on nodes of a synthetic state.

Every node has 2,016 cells less those that are empty in its parent, block totals and group-quarters bounds below it, and its
implied constraints on. Parents are true histograms, children have noisy answers at epsilon 4. Ours is `solve` (or `round_counts`) on
a bundle of nodes in one call, all of its Python included; peers get ready-made sparse matrices, so only their set-up and solution
are counted. HiGHS runs in a process of its own: it cannot share one with OR-Tools. Objectives are compared as well.
"""

from __future__ import annotations

import multiprocessing
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from synthetic_state import synthetic_state
from topdown_specs import write_synthetic

from louver.optim.kernels.families.rounding import rank_of, split_count
from louver.optim.row_rounding import min_cost_flow
from louver.privacy.measurements import write_measurements
from louver.privacy.noise import KeyedNoise
from louver.topdown.estimation.least_squares import Fractional, TypeRows, encode, objective, solve
from louver.topdown.estimation.rounding import round_counts
from louver.topdown.knowledge.implied import UNBOUNDED
from louver.topdown.load import read_design
from louver.topdown.measuring.noise_plan import make_plan
from louver.topdown.measuring.true_counts import SealedCounts, invariant_values, true_batches, true_leaves
from louver.topdown.problem import Families, Problem, SparseLevel, add_levels, region_range, split_batches

TOLERANCE = 1e-8  # asked of every peer, relative
REPEATS = 3
HIGHS_VARIABLES = 2_500  # HiGHS's active-set method is not asked to solve more
HIGHS_SECONDS = 60.0

Vector = NDArray[np.float64]


@dataclass(frozen=True)
class Program:
    """min 1/2 x'Px + q'x with rows @ x between bounds and x >= lower; unknowns are differences from a goal."""

    weight: Vector
    goal: Vector
    rows: sparse.csr_array
    row_lower: Vector
    row_upper: Vector
    lower: Vector

    def value(self, x: Vector) -> float:
        """Sum of squared misfits over variance."""
        return float(self.weight @ x**2)


@dataclass(frozen=True)
class Place:
    """Nodes of one level and where their noisy answers come from."""

    problem: Problem
    truth: tuple[SparseLevel, ...]
    noisy: SealedCounts

    def families(self, level: int, first: int, last: int) -> Families:
        """Parents first to last of a level with their children."""
        return Families.gather(self.problem, level, self.truth[level - 1], (first, last), self)

    def read(self, level: int, start: int, stop: int) -> tuple[NDArray[np.int64], ...]:
        """Answers for any regions: whole batches are read and cut."""
        spine = self.problem.spine
        batches = split_batches(spine, level, self.problem.workloads[level].n_values)
        spans = [region_range(spine, level, batch) for batch in batches]
        parts = []
        for first, last in spans:
            if first < stop and start < last:
                answers = self.noisy.read(level, first, last)
                parts.append([a[max(start - first, 0) : min(stop, last) - first] for a in answers])
        return tuple(np.concatenate(columns) for columns in zip(*parts, strict=True))


def compare_solvers(*, small: bool = False) -> None:
    """Print one line per sort of node; ratios are peer over ours, medians over bundles."""
    sizes = {"tracts": (6, 3), "block_groups": 24, "blocks": 300, "people": 15_000} if small else {}
    with tempfile.TemporaryDirectory() as folder:
        place = _place(write_synthetic(Path(folder), synthetic_state(**sizes)), Path(folder))
        bundles = _bundles(place, small)
        print("least squares: ms per node; objectives are relative to ours, +x is worse")
        _header(("ours", "PIQP", "Clarabel", "HiGHS"))
        for name, families in bundles:
            _compare_least_squares(name, place.problem, families)
        _round_by_flow(
            _choice(place.problem, bundles[0][1][0], 0, solve(place.problem, bundles[0][1][0]))
        )  # load it
        print("\nrounding: ms per node; `same` means equally good roundings")
        _header(("ours", "OR-Tools", "HiGHS"))
        for name, families in bundles:
            _compare_rounding(name, place.problem, families)


def _place(spec: Path, folder: Path) -> Place:
    plan = make_plan(read_design(spec))
    truth = add_levels(plan.design.spine, true_leaves(plan.design), plan.design.n_cells)
    path = folder / "measurements.parquet"
    write_measurements(path, lambda: true_batches(plan, truth), KeyedNoise.from_seed(1))
    return Place(plan.problem(invariant_values(plan, truth)), truth, SealedCounts(path, plan))


def _bundles(place: Place, small: bool) -> list[tuple[str, list[Families]]]:
    """Block groups in bundles of ten, tracts in bundles of ten, and single large nodes."""
    spine = place.problem.spine
    n_bundles = 1 if small else 8
    step = max(10, (spine.sizes[3] - 10) // n_bundles)
    block_groups = [place.families(4, k * step, k * step + 10) for k in range(n_bundles)]
    tracts = [place.families(3, k * step // 4, k * step // 4 + 5) for k in range(n_bundles)]
    counties = np.diff(spine.starts[1])
    single = [
        (f"county of {counties[c]} tracts", [place.families(2, int(c), int(c) + 1)])
        for c in np.argsort(counties, kind="stable")[::-1][: 1 if small else 3]
    ]
    return [
        ("block groups", block_groups),
        ("tracts", tracts),
        *single,
        ("state", [place.families(1, 0, 1)]),
    ]


def _header(names: Sequence[str]) -> None:
    print(
        f"{'nodes':<24}{'children':>9}{'unknowns':>10}"
        + "".join(f"{name:>12}" for name in names)
        + "   peer / ours"
    )


def _line(
    name: str, families: list[Families], unknowns: list[int], seconds: dict[str, list[float]], told: str
) -> None:
    """Medians over bundles; each bundle's ratio is of sums over the same nodes."""
    children = [int(n) for f in families for n in np.diff(f.child_start)]
    nodes = [f.n_families for f in families]
    ours = seconds["ours"]
    columns, ratios = "", []
    for solver, taken in seconds.items():
        if not taken:
            columns += f"{'-':>12}"
            continue
        columns += f"{1e3 * statistics.median(t / n for t, n in zip(taken, nodes, strict=False)):>12.3f}"
        if solver != "ours":
            found = [t / o for t, o in zip(taken, ours, strict=False)]
            ratios.append(f"{solver} {statistics.median(found):.1f} ({min(found):.1f}-{max(found):.1f})")
    print(
        f"{name:<24}{statistics.median(children):>9.0f}{statistics.median(unknowns):>10.0f}{columns}   {', '.join(ratios)}; {told}",
        flush=True,
    )


def _best(task: Callable[[], object], repeats: int = REPEATS) -> float:
    taken = []
    for _ in range(repeats):
        began = time.perf_counter()
        task()
        taken.append(time.perf_counter() - began)
    return min(taken)


# --- Least squares -----------------------------------------------------------------------------------


def _program(problem: Problem, families: Families, family: int) -> Program:
    """One node as a sparse program; answers of queries are unknowns of their own, which keeps P diagonal."""
    cells, parent = families.cells_of(family, problem.is_possible)
    assert parent is not None
    first, last = int(families.child_start[family]), int(families.child_start[family + 1])
    n, m = len(cells), last - first
    weight, goal, answers = objective(families, (first, last), cells)
    sums = sparse.hstack([sparse.eye_array(n)] * m + [sparse.csr_array((n, len(weight) - n * m))])
    # The first query counts the types: bounds on sets of them are short rows over its answers, child by child.
    n_types = problem.implied.n_types
    assert np.array_equal(problem.workloads[families.level].queries[0].row_of, problem.type_of)
    used = np.unique(problem.type_of[cells])
    bounds = TypeRows.build(families, family, np.arange(n_types), n_types)
    of_used = bounds.rows[:, (np.arange(m)[:, None] * n_types + used).ravel()]
    after = len(weight) - n * m - of_used.shape[1]
    sets = sparse.hstack(
        [sparse.csr_array((len(bounds.lower), n * m)), of_used, sparse.csr_array((len(bounds.lower), after))]
    )
    is_empty = np.diff(sparse.csr_array(sets).indptr) == 0
    sets, bounds = (
        sparse.csr_array(sets)[~is_empty],
        TypeRows(rows=bounds.rows, lower=bounds.lower[~is_empty], upper=bounds.upper[~is_empty]),
    )
    rows = sparse.csr_array(sparse.vstack([answers, sums, sets]))
    zeros, held = np.zeros(answers.shape[0]), parent.astype(float)
    moved = rows @ goal
    lower = np.full(len(weight), -np.inf)
    lower[: n * m] = 0.0
    return Program(
        weight=weight,
        goal=goal,
        rows=rows,
        row_lower=np.concatenate([zeros, held, bounds.lower]) - moved,
        row_upper=np.concatenate([zeros, held, bounds.upper]) - moved,
        lower=lower - goal,
    )


def _compare_least_squares(name: str, problem: Problem, bundles: list[Families]) -> dict[str, float]:
    """Print a line; return the largest relative difference of each peer's objective from ours."""
    peers = {"PIQP": _ready_piqp, "Clarabel": _ready_clarabel}
    seconds: dict[str, list[float]] = {"ours": [], "PIQP": [], "Clarabel": [], "HiGHS": []}
    worst: dict[str, float] = {}
    unknowns: list[int] = []
    repeats = 1 if int(np.diff(bundles[0].child_start).max()) > 60 else REPEATS
    for families in bundles:
        batch = encode(problem, families)
        real = solve(problem, families, batch)
        seconds["ours"].append(_best(lambda: solve(problem, families, batch)))  # noqa: B023 - called at once
        programs = [_program(problem, families, f) for f in range(families.n_families)]
        values = [_value(problem, families, f, real, p) for f, p in enumerate(programs)]
        unknowns += [int(real.offsets[f + 1] - real.offsets[f]) for f in range(families.n_families)]
        answers = {}
        for peer, prepare in peers.items():
            tasks = [prepare(program) for program in programs]
            answers[peer] = [task() for task in tasks]
            seconds[peer].append(sum(_best(task, repeats) for task in tasks))
        if max(len(p.weight) for p in programs) <= HIGHS_VARIABLES:
            taken, found = _highs(programs)
            if taken is not None:
                seconds["HiGHS"].append(taken)
                answers["HiGHS"] = found
        for peer, found in answers.items():
            for program, x, value in zip(programs, found, values, strict=True):
                if x is not None:
                    difference = (program.value(x) - value) / max(1.0, value)
                    worst[peer] = max(worst.get(peer, difference), difference, key=abs)
    told = ", ".join(f"{peer} {x:+.0e}" for peer, x in worst.items())
    _line(name, bundles, unknowns, seconds, told)
    return worst


def _value(problem: Problem, families: Families, family: int, real: Fractional, program: Program) -> float:
    """The objective of our counts, in the peers' terms."""
    m = int(families.child_start[family + 1] - families.child_start[family])
    counts = real.block(family, m).T.ravel()
    n_answers = len(program.weight) - len(counts)
    answers = program.rows[:n_answers, : len(counts)] @ counts
    return program.value(np.concatenate([counts, answers]) - program.goal)


def _ready_piqp(program: Program) -> Callable[[], Vector]:
    import piqp

    n = len(program.weight)
    is_equal = program.row_lower == program.row_upper
    given = (
        sparse.csc_array(sparse.diags_array(2.0 * program.weight)),
        np.zeros(n),
        sparse.csc_array(program.rows[is_equal]),
        program.row_lower[is_equal],
        sparse.csc_array(program.rows[~is_equal]),
        program.row_lower[~is_equal],
        program.row_upper[~is_equal],
        program.lower,
        np.full(n, np.inf),
    )

    def run() -> Vector:
        solver = piqp.SparseSolver()
        settings = solver.settings
        settings.eps_abs = settings.eps_rel = TOLERANCE
        settings.eps_duality_gap_abs = settings.eps_duality_gap_rel = TOLERANCE
        solver.setup(*given)
        solver.solve()
        return np.array(solver.result.x)

    return run


def _ready_clarabel(program: Program) -> Callable[[], Vector]:
    import clarabel

    n = len(program.weight)
    is_equal = program.row_lower == program.row_upper
    has_upper, has_lower = ~is_equal & (program.row_upper < np.inf), ~is_equal & (program.row_lower > -np.inf)
    bounded = np.isfinite(program.lower)
    identity = sparse.eye_array(n, format="csr")[bounded]
    matrix = sparse.vstack(
        [program.rows[is_equal], program.rows[has_upper], -program.rows[has_lower], -identity], format="csc"
    )
    limits = np.concatenate(
        [program.row_lower[is_equal], program.row_upper[has_upper], -program.row_lower[has_lower],
         -program.lower[bounded]]
    )  # fmt: skip
    cones = [
        clarabel.ZeroConeT(int(is_equal.sum())),
        clarabel.NonnegativeConeT(len(limits) - int(is_equal.sum())),
    ]
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = TOLERANCE
    hessian = sparse.csc_matrix(sparse.diags_array(2.0 * program.weight))
    given = (hessian, np.zeros(n), sparse.csc_matrix(matrix), limits, cones, settings)
    return lambda: np.array(clarabel.DefaultSolver(*given).solve().x)


def _highs(programs: list[Program]) -> tuple[float | None, list[Vector | None]]:
    """HiGHS's own seconds for all programs, in a process of its own; None where it is not there or does not end."""
    if find_spec("highspy") is None:
        return None, [None] * len(programs)
    context = multiprocessing.get_context("spawn")
    receive, send = context.Pipe(duplex=False)
    worker = context.Process(target=_highs_worker, args=(programs, send))
    worker.start()
    answer = receive.recv() if receive.poll(HIGHS_SECONDS) else (None, [None] * len(programs))
    worker.terminate()
    worker.join()
    return answer


def _highs_worker(programs: list[Program], send: object) -> None:
    import highspy

    taken, found = 0.0, []
    for program in programs:
        n, n_rows = len(program.weight), program.rows.shape[0]
        model = highspy.HighsModel()
        columns = sparse.csc_array(program.rows)
        model.lp_.num_col_, model.lp_.num_row_ = n, n_rows
        model.lp_.col_cost_ = np.zeros(n)
        model.lp_.col_lower_, model.lp_.col_upper_ = program.lower, np.full(n, highspy.kHighsInf)
        model.lp_.row_lower_ = program.row_lower
        model.lp_.row_upper_ = np.minimum(program.row_upper, highspy.kHighsInf)
        model.lp_.a_matrix_.format_ = highspy.MatrixFormat.kColwise
        model.lp_.a_matrix_.start_, model.lp_.a_matrix_.index_ = columns.indptr, columns.indices
        model.lp_.a_matrix_.value_ = columns.data
        model.hessian_.dim_ = n
        model.hessian_.format_ = highspy.HessianFormat.kTriangular
        model.hessian_.start_, model.hessian_.index_ = np.arange(n + 1), np.arange(n)
        model.hessian_.value_ = 2.0 * program.weight
        began = time.perf_counter()
        solver = highspy.Highs()
        solver.setOptionValue("output_flag", False)
        solver.passModel(model)
        solver.run()
        taken += time.perf_counter() - began
        found.append(np.array(solver.getSolution().col_value))
    send.send((taken, found))  # type: ignore[attr-defined]


# --- Rounding ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Choice:
    """Which counts of one node to round up: ranks to gain, units each cell must give, and bounds on sets of types."""

    rank: NDArray[np.int64]  # (children, cells)
    floor: NDArray[np.int64]
    units: NDArray[np.int64]  # (cells,)
    types: NDArray[np.int64]
    lower: NDArray[np.int64]
    upper: NDArray[np.int64]
    sets: TypeRows


def _choice(problem: Problem, families: Families, family: int, real: Fractional) -> Choice:
    cells, parent = families.cells_of(family, problem.is_possible)
    assert parent is not None
    first, last = int(families.child_start[family]), int(families.child_start[family + 1])
    block = real.block(family, last - first).T
    floor, rank = np.empty(block.shape, dtype=np.int64), np.empty(block.shape, dtype=np.int64)
    for c, row in enumerate(block):
        for i, x in enumerate(row):
            floor[c, i], fraction = split_count(x)
            rank[c, i] = rank_of(fraction, families.first_child + first + c, cells[i])
    types = problem.type_of[cells]
    sets = TypeRows.build(families, family, types, problem.implied.n_types)
    bounds = families.lower[first:last], families.upper[first:last]
    return Choice(rank, floor, parent - floor.sum(axis=0), types, *bounds, sets)


def _compare_rounding(name: str, problem: Problem, bundles: list[Families]) -> set[str]:
    """Print a line; return what was found about each peer's roundings."""
    seconds: dict[str, list[float]] = {"ours": [], "OR-Tools": [], "HiGHS": []}
    unknowns: list[int] = []
    outcomes: set[str] = set()
    for families in bundles:
        batch = encode(problem, families)
        real = solve(problem, families, batch)
        counts, _ = round_counts(problem, families, batch, real)
        seconds["ours"].append(_best(lambda: round_counts(problem, families, batch, real)))  # noqa: B023
        choices = [_choice(problem, families, f, real) for f in range(families.n_families)]
        unknowns += [c.rank.size for c in choices]
        gains = []
        for f, choice in enumerate(choices):
            block = counts[real.offsets[f] : real.offsets[f + 1]].reshape(len(choice.units), -1).T
            gains.append(int(((block - choice.floor) * choice.rank).sum()))
        peers = {"HiGHS": _round_by_highs}
        if all(_is_network(choice) for choice in choices):
            peers["OR-Tools"] = _round_by_flow
        for peer, run in peers.items():
            found = [run(choice) for choice in choices]
            seconds[peer].append(sum(taken for taken, _ in found))
            # Peers see ranks without the last twenty bits, which only break ties.
            outcomes |= {
                f"{peer} {'same' if abs(gain - own) <= choice.rank.size << 20 else 'DIFFERS'}"
                for (_, gain), own, choice in zip(found, gains, choices, strict=True)
            }
    _line(name, bundles, unknowns, seconds, ", ".join(sorted(outcomes)))
    return outcomes


def _is_network(choice: Choice) -> bool:
    """Whether bounds on single types and totals say everything, so that a flow does."""
    everything = (1 << (int(choice.lower.shape[1]).bit_length() - 1)) - 1
    sizes = {int(mask).bit_count() for mask in range(1, everything)}
    for low, high in zip(choice.lower, choice.upper, strict=True):
        for mask in range(1, everything):
            if mask.bit_count() > 1 and sizes:
                single = [1 << t for t in range(everything.bit_length()) if mask >> t & 1]
                others = [1 << t for t in range(everything.bit_length()) if not mask >> t & 1]
                most = min(
                    sum(int(high[s]) for s in single),
                    int(high[everything]) - sum(int(low[s]) for s in others),
                )
                least = max(
                    sum(int(low[s]) for s in single), int(low[everything]) - sum(int(high[s]) for s in others)
                )
                if min(most, UNBOUNDED) > min(int(high[mask]), UNBOUNDED) or least < int(low[mask]):
                    return False
    return True


def _round_by_flow(choice: Choice) -> tuple[float, int]:
    """OR-Tools: cells send their units to (child, type), those to the child, children to a sink."""
    m, n = choice.rank.shape
    n_types = int(choice.lower.shape[1]).bit_length() - 1
    everything = (1 << n_types) - 1
    held = np.zeros((m, n_types), dtype=np.int64)
    np.add.at(held.T, choice.types, choice.floor.T)
    child, cell = np.nonzero(np.ones((m, n), dtype=bool))
    first_type, first_child, sink = n, n + m * n_types, n + m * n_types + m
    single = np.array([1 << t for t in range(n_types)])
    low = np.maximum(choice.lower[:, single] - held, 0)
    high = np.minimum(choice.upper[:, single], UNBOUNDED) - held
    least = np.maximum(choice.lower[:, everything] - held.sum(axis=1), 0)
    most = np.minimum(choice.upper[:, everything], UNBOUNDED) - held.sum(axis=1)
    pairs, children = np.arange(m * n_types), np.arange(m)
    tails = np.concatenate([cell, first_type + pairs, first_child + children])
    heads = np.concatenate(
        [first_type + child * n_types + choice.types[cell], first_child + pairs // n_types, np.full(m, sink)]
    )
    capacities = np.concatenate([np.ones(m * n, np.int64), (high - low).ravel(), most - least])
    costs = np.concatenate([-choice.rank.ravel() >> 20, np.zeros(m * n_types + m, np.int64)])
    supplies = np.zeros(sink + 1, dtype=np.int64)
    supplies[:n] = choice.units
    supplies[first_type:first_child] -= low.ravel()
    supplies[first_child:sink] += low.sum(axis=1) - least
    supplies[sink] = least.sum() - choice.units.sum()
    began = time.perf_counter()
    flow = min_cost_flow(tails, heads, capacities, costs, supplies)
    taken = time.perf_counter() - began
    return taken, int(choice.rank.ravel() @ flow[: m * n])


def _round_by_highs(choice: Choice) -> tuple[float, int]:
    """HiGHS through SciPy: a linear program, which is integral here; its answer is rounded."""
    from scipy.optimize import linprog

    m, n = choice.rank.shape
    sums = sparse.csr_array(sparse.hstack([sparse.eye_array(n)] * m))
    held = choice.sets.rows @ choice.floor.ravel()
    finite = np.isfinite(choice.sets.upper)
    rows = sparse.vstack([choice.sets.rows[finite], -choice.sets.rows]) if len(held) else None
    limits = (
        np.concatenate([(choice.sets.upper - held)[finite], held - choice.sets.lower]) if len(held) else None
    )
    began = time.perf_counter()
    answer = linprog(
        -choice.rank.ravel() / 2.0**40, A_ub=rows, b_ub=limits, A_eq=sums, b_eq=choice.units, bounds=(0, 1),
        method="highs-ds",
    )  # fmt: skip
    taken = time.perf_counter() - began
    return taken, int(choice.rank.ravel() @ np.rint(answer.x).astype(np.int64))
