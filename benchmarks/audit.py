"""Joint audits of several tables against plain linear programs, in one run.

    python benchmarks/audit.py                        all cases
    python benchmarks/audit.py "all 2-way" shares     cases whose names hold one of these
    python benchmarks/audit.py --adult adult.csv.gz   with the two age bandings of the Adult file

Each case is a list of tables over one set of records; every cell of the cross of all attributes (or a sample of them, and
every hidden cell) is bounded from both sides. A side counts as certified when its bound is proved in integers and attained
by a whole table. The peer is `scipy.optimize.linprog` from scratch, one program per side, on the same cells under a
published zero left out; it stops at real numbers. Seconds are processor seconds of the whole program (build, reduce,
solve) and of the peer, both on one core, so that other work on the machine does not matter.

Exits with 1 when a target is missed: 95 % certified for all 2-way and all 3-way margins of cps8, all sides of the sparse
cases, and 20 times faster per side than the peer on all 2-way margins.
"""

from __future__ import annotations

import argparse
import itertools
import platform
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import csr_array

from louver.audit.load import LoadedTables, attribute_names, load
from louver.audit.options import AuditOptions
from louver.data.read import open_source
from louver.data.samples import sample_path
from louver.data.tabulate import tabulate
from louver.optim.kernels.audit.propagate import UNBOUNDED
from louver.run import Run
from louver.schema.validate import validated
from louver.tables.problem import TablesProblem, build, forms_of
from louver.tables.solve import Answer, solve

NLTCS = Path(__file__).resolve().parents[1] / "tests" / "data" / "nltcs.csv.gz"
PEER_SIDES = 12
SPEED_TARGET = 20.0


@dataclass(frozen=True)
class Case:
    """Tables, where the records are, how many cells are asked about, and what share of sides must be certified."""

    name: str
    tables: Sequence[dict]
    path: Path = field(default_factory=lambda: sample_path("cps8"))
    sample: int | None = None
    target: float = 0.0
    weight: str | None = "count"
    cross: Sequence[str] = ()
    is_set_case: bool = False


def margins(names: Sequence[str], size: int) -> list[dict]:
    return [{"name": "x".join(c), "by": list(c)} for c in itertools.combinations(names, size)]


def named(*crosses: str, **more: object) -> list[dict]:
    """Tables by digits: "123" is X1 X2 X3."""
    return [{"name": cross, "by": [f"X{digit}" for digit in cross], **more} for cross in crosses]


def cases(adult: Path | None) -> Iterator[Case]:
    x = [f"X{n}" for n in range(1, 9)]
    y = [f"y{n}" for n in range(1, 17)]
    yield Case("cps8, all 2-way", margins(x, 2), target=0.95)
    yield Case("cps8, three cyclic 4-way", named("1234", "3456", "5612"), target=1.0)
    yield Case("cps8, 1238 / 3458 / 1567", named("1238", "3458", "1567"), target=1.0)
    yield Case("cps8, chain", named("123", "234", "345", "456", "567", "678"), target=1.0)
    yield Case("cps8, all 3-way", margins(x, 3), sample=600, target=0.95)
    yield Case("nltcs, 8 of 16, all 4-way", margins(y[:8], 4), path=NLTCS)
    yield Case("nltcs, 10 of 16, all 4-way", margins(y[:10], 4), path=NLTCS, sample=150)
    windows = [{"name": f"w{n}", "by": [y[(2 * n + k) % 16] for k in range(4)]} for n in range(8)]
    yield Case("nltcs, 16, eight windows", windows, path=NLTCS, sample=200, target=1.0)
    hidden = [{"name": "hidden", "by": ["X1", "X2", "X3", "X7", "X8"], "below": 5, "totals": True}]
    yield Case("hidden below 5, 5-way with totals", hidden, target=1.0)
    yield Case("base 5, three 4-way", named("1234", "3456", "5678", base=5), target=1.0)
    filters = [
        *named("1238", "3458", base=3),
        {"name": "married", "by": ["X1", "X2", "X3", "X7"], "where": {"X4": ["Married"]}},
        {"name": "women", "by": ["X2", "X3", "X5", "X8"], "where": {"X6": ["Female"]}},
    ]
    yield Case("filters and base 3", filters, target=1.0)
    if adult is not None:
        cross = ["sex", "race", "income"]
        bands = [
            {"name": f"bands {n}", "by": ["age", *cross], "recode": {"age": {"bins": edges}}}
            for n, edges in enumerate((list(range(20, 80, 5)), list(range(18, 80, 5))))
        ]
        yield Case("adult, two age bandings", bands, path=adult, weight=None, target=1.0)
    for decimals in (3, 4):
        shares = {"name": "shares", "rows": ["X1", "X2", "X3"], "cols": ["X7", "X8"], "decimals": decimals}
        tables = [shares, *named("12")]
        yield Case(f"shares to {decimals} decimals, X1 x X2", tables, target=1.0, is_set_case=True)


@dataclass(frozen=True)
class Line:
    """What one case took."""

    case: Case
    unknowns: int
    sides: int
    certified: int
    seconds: float
    peer: float
    exact: int
    small_exact: int
    small: int

    @property
    def ms_per_side(self) -> float:
        return 1e3 * self.seconds / max(1, self.sides)

    def misses(self) -> list[str]:
        found = []
        if self.certified < self.case.target * self.sides:
            found.append(f"{self.case.name}: {self.certified} of {self.sides} sides certified")
        if "all 2-way" in self.case.name and self.peer < SPEED_TARGET * self.ms_per_side / 1e3:
            found.append(f"{self.case.name}: less than {SPEED_TARGET:.0f} times faster than linprog")
        return found


def loaded_case(case: Case) -> LoadedTables:
    options = validated(AuditOptions, {"tables": list(case.tables)}, "benchmark")
    kinds = _ages() if case.weight is None else None
    with open_source(case.path) as source:
        histogram = tabulate(source, attribute_names(options), weight=case.weight, schema=kinds)
    return load(options, histogram.attributes, histogram)


def _ages():
    from louver.schema.attribute import Attribute
    from louver.schema.spec import Schema

    return Schema(
        attributes=(
            Attribute(name="age", kind="integer"),
            *(Attribute(name=n) for n in ("sex", "race", "income")),
        )
    )


def measure(case: Case, seconds: float) -> Line:
    loaded = loaded_case(case)
    every = np.arange(loaded.domain.n_cells)
    started = time.process_time()
    problem = build(loaded.domain, loaded.pieces, loaded.truth)
    cells = np.flatnonzero(problem.group >= 0)
    if case.sample is not None and case.sample < len(cells):
        cells = np.sort(np.random.default_rng(1).choice(cells, case.sample, replace=False))
    answer = solve(problem, forms_of(problem, every, cells), Run(), seconds)
    took = time.process_time() - started
    true = loaded.truth[cells]
    is_exact = answer.lower == answer.upper
    is_small = (true > 0) & (true < 5)
    return Line(
        case=case,
        unknowns=problem.n_groups,
        sides=2 * len(cells),
        certified=int(answer.is_lower_tight.sum() + answer.is_upper_tight.sum()),
        seconds=took,
        peer=peer(problem, answer),
        exact=int((is_exact & (true > 0)).sum()),
        small_exact=int((is_exact & is_small).sum()),
        small=int(is_small.sum()),
    )


def peer(problem: TablesProblem, answer: Answer) -> float:
    """Seconds of one linear program from scratch; the published rows and nothing else."""
    system = problem.system
    rng = np.random.default_rng(2)
    columns = rng.choice(problem.n_groups, min(PEER_SIDES, problem.n_groups), replace=False)
    is_equal = system.row_lower == system.row_upper
    above = ~is_equal & (system.row_upper < UNBOUNDED)
    below = ~is_equal & (system.row_lower > -UNBOUNDED)
    matrix = csr_array(system.matrix.astype(np.float64))
    inequalities = csr_array(_stacked(matrix, above, below))
    started = time.process_time()
    for number, column in enumerate(columns):
        cost = np.zeros(system.n_columns)
        cost[column] = 1.0 if number % 2 else -1.0
        linprog(
            cost,
            A_ub=inequalities if inequalities.shape[0] else None,
            b_ub=np.concatenate([system.row_upper[above], -system.row_lower[below]]).astype(float)
            if inequalities.shape[0]
            else None,
            A_eq=matrix[np.flatnonzero(is_equal)] if is_equal.any() else None,
            b_eq=system.row_lower[is_equal].astype(float) if is_equal.any() else None,
            bounds=(0, None),
            method="highs",
        )
    return (time.process_time() - started) / len(columns)


def _stacked(matrix: csr_array, above: np.ndarray, below: np.ndarray) -> csr_array:
    from scipy.sparse import vstack

    return vstack([matrix[np.flatnonzero(above)], -matrix[np.flatnonzero(below)]], format="csr")


def show(line: Line) -> None:
    share = line.certified / max(1, line.sides)
    print(
        f"{line.case.name:36}{line.unknowns:>8,}{line.sides:>8,}{share:>9.2%}{line.sides / line.seconds:>9.0f}"
        f"{line.ms_per_side:>9.2f}{1e3 * line.peer:>9.1f}{1e3 * line.peer / line.ms_per_side:>8.0f}"
        f"{line.exact:>8,}{line.small_exact:>6,} of {line.small:<5,}",
        flush=True,
    )


def warm_up() -> None:
    """Compile every kernel."""
    measure(Case("", named("123", "345", "15")), 60.0)


def main(arguments: Sequence[str] | None = None, measured: Callable[[Case, float], Line] = measure) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", help="parts of the names of cases to run")
    parser.add_argument("--seconds", type=float, default=900.0, help="limit of each case")
    parser.add_argument("--adult", type=Path, help="the Adult file, for its two age bandings")
    options = parser.parse_args(arguments)
    packages = ", ".join(f"{name} {version(name)}" for name in ("numpy", "numba", "scipy", "ortools"))
    print(f"Python {platform.python_version()}, {packages}, {platform.machine()}")
    print(
        f"{'':36}{'unknowns':>8}{'sides':>8}{'certified':>9}{'sides/s':>9}{'ms/side':>9}{'linprog':>9}{'times':>8}"
        f"{'exact':>8}  small exact"
    )
    warm_up()
    misses: list[str] = []
    for case in cases(options.adult):
        if not options.names or any(name in case.name for name in options.names):
            line = measured(case, options.seconds)
            show(line)
            misses += line.misses()
    for miss in misses:
        print("missed target:", miss)
    raise SystemExit(bool(misses))


if __name__ == "__main__":
    sys.exit(main())
