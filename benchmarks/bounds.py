"""Bounds from exact conditionals against three peers, in one run.

    python benchmarks/bounds.py            a quick look
    python benchmarks/bounds.py all        all arrangements of Table 10 and a large synthetic table
    python benchmarks/bounds.py B L        only these arrangements, and the large table

The twelve arrangements B-O of Wright & Smucker (2014), Table 10, each from its two-way table of counts:
louver (all feasible values), Algorithm 3.1 as published (bounds), Algorithm 3.4 and HiGHS row by row (bounds).
Medians after a warm-up; louver and Algorithm 3.1 take turns in one process. Algorithm 3.4 stops after a minute and
HiGHS solves a sample of the rows where all would take more than two; times marked * are extrapolated
from the rows that were solved. Every answer is compared with louver's.

Then a table with 2,000 distinct reduced row sums between 500 and 4,000 at N = 2 R and at N = 100 R.

Exits with 1 when a target is missed: 5 ms and 100 times HiGHS on each arrangement, never slower than Algorithm 3.1;
one second on the large table, the second sample size less than twice the first.
"""

from __future__ import annotations

import argparse
import platform
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from louver.bounds.check import ExactSolution, solve_exact
from louver.bounds.problem import TwoWayTable
from louver.optim.kernels.semigroups.reduced_rows import reduced_rows
from louver.schema.attribute import Attribute
from oracles.knapsack import algorithm_3_1, algorithm_3_4, highs
from wright_smucker import TABLE_10, PaperTable

SECONDS_CLASSICAL = 60.0
SECONDS_HIGHS = 120.0
HIGHS_SAMPLE = 40

TARGET_SECONDS = 0.005
TARGET_HIGHS = 100.0
TARGET_LARGE_SECONDS = 1.0
TARGET_GROWTH = 2.0


@dataclass(frozen=True, slots=True)
class Peer:
    """Seconds for all rows, whether extrapolated, and whether every row solved equals louver's answer."""

    seconds: float
    is_extrapolated: bool
    is_equal: bool

    def __str__(self) -> str:
        return f"{1e3 * self.seconds:10.2f}{'*' if self.is_extrapolated else ' '}"


@dataclass(frozen=True, slots=True)
class Line:
    """What one arrangement took; every peer has answered the same knapsacks."""

    name: str
    rows: int
    n: int
    louver: float
    published: Peer
    classical: Peer
    highs: Peer

    def misses(self) -> list[str]:
        found = []
        if self.louver > TARGET_SECONDS:
            found.append(f"{self.name}: above {1e3 * TARGET_SECONDS:.0f} ms")
        if self.louver > self.published.seconds:
            found.append(f"{self.name}: slower than Algorithm 3.1")
        if self.louver * TARGET_HIGHS > self.highs.seconds:
            found.append(f"{self.name}: less than {TARGET_HIGHS:.0f} times faster than HiGHS")
        if not (self.published.is_equal and self.classical.is_equal and self.highs.is_equal):
            found.append(f"{self.name}: answers differ")
        return found


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "names", nargs="*", help="letters of the arrangements to run, or all; a quick look at all without any"
    )
    parser.add_argument("--rounds", type=int, default=51, help="measurements of louver and Algorithm 3.1")
    parser.add_argument("--classical-seconds", type=float, default=SECONDS_CLASSICAL)
    parser.add_argument("--highs-seconds", type=float, default=SECONDS_HIGHS)
    arguments = parser.parse_args()
    is_quick = not arguments.names
    if is_quick:
        arguments.rounds, arguments.classical_seconds, arguments.highs_seconds = 5, 1.0, 1.0
    packages = ", ".join(f"{name} {version(name)}" for name in ("numpy", "numba", "scipy"))
    print(f"Python {platform.python_version()}, {packages}, {platform.machine()}; milliseconds, median")
    print(f"{'':2}{'rows':>6}{'N':>7}{'louver':>9}{'alg. 3.1':>11} {'alg. 3.4':>10} {'HiGHS':>10}  ", end="")
    print("times faster than 3.1, 3.4, HiGHS; answers")
    misses = []
    for paper in TABLE_10:
        if is_quick or arguments.names == ["all"] or paper.name in arguments.names:
            line = measure(paper, arguments.rounds, arguments.classical_seconds, arguments.highs_seconds)
            show(line)
            misses += line.misses()
    misses += measure_large()
    for miss in misses:
        print("missed target:", miss)
    raise SystemExit(bool(misses) and not is_quick)


def measure(paper: PaperTable, rounds: int, classical_seconds: float, highs_seconds: float) -> Line:
    """Time louver and its peers on one arrangement."""
    table = paper.table()
    wanted = np.ones(len(table.counts), dtype=bool)
    own, published = alternate(
        [lambda: solve_exact(table, (), wanted), lambda: published_bounds(table)], rounds
    )
    solution = solve_exact(table, (), wanted)
    answer = ends(solution)
    row_sums = reduced_rows(table.counts)[1]
    gap = table.n - int(row_sums.sum())
    least, greatest = published_bounds(table)
    is_equal = list(zip(least.tolist(), greatest.tolist(), strict=True)) == answer
    return Line(
        name=paper.name,
        rows=len(row_sums),
        n=table.n,
        louver=own,
        published=Peer(published, False, is_equal),
        classical=row_by_row(algorithm_3_4, row_sums, gap, answer, classical_seconds, len(row_sums)),
        highs=row_by_row(highs, row_sums, gap, answer, highs_seconds, HIGHS_SAMPLE),
    )


def published_bounds(table: TwoWayTable) -> tuple[np.ndarray, np.ndarray]:
    """Algorithm 3.1 from the same table of counts as louver."""
    row_sums = reduced_rows(table.counts)[1]
    found = algorithm_3_1(row_sums, table.n - int(row_sums.sum()))
    assert found is not None
    return found


def ends(solution: ExactSolution) -> list[tuple[int, int]]:
    """nu- and nu+ of every row."""
    return [(int(solution.runs[start, 0]), int(solution.runs[stop - 1, 1])) for start, stop in solution.span]


def alternate(jobs: Sequence[Callable[[], object]], rounds: int) -> list[float]:
    """Median seconds of each job, run in turns after a warm-up."""
    seconds: list[list[float]] = [[] for _ in jobs]
    for turn in range(rounds + 2):
        for job, measured in zip(jobs, seconds, strict=True):
            start = time.perf_counter()
            job()
            if turn >= 2:
                measured.append(time.perf_counter() - start)
    return [statistics.median(measured) for measured in seconds]


def row_by_row(
    solve: Callable[[Sequence[int], int, int], tuple[int, int] | None],
    row_sums: np.ndarray,
    gap: int,
    answer: Sequence[tuple[int, int]],
    limit: float,
    n_first: int,
) -> Peer:
    """All rows if they are done in `limit` seconds by the pace of the first ones, else as many as fit, spread evenly.

    `n_first` rows are solved before the pace is judged; the limit always ends the run.
    """
    n = len(row_sums)
    order = np.argsort(np.arange(n) * 0.6180339887498949 % 1.0, kind="stable")  # evenly spread prefixes
    start = time.perf_counter()
    n_done, is_equal = 0, True
    for row in order.tolist():
        spent = time.perf_counter() - start
        if (n_done and spent > limit) or (n_done == n_first and spent / n_done * n > limit):
            break
        is_equal &= solve(row_sums, gap, row) == answer[row]
        n_done += 1
    spent = time.perf_counter() - start
    return Peer(spent / n_done * n, n_done < n, is_equal)


def show(line: Line) -> None:
    peers = (line.published, line.classical, line.highs)
    ratios = " ".join(f"{peer.seconds / line.louver:10.1f}" for peer in peers)
    equal = "equal" if all(peer.is_equal for peer in peers) else "DIFFERENT"
    times = "".join(str(peer) for peer in peers)
    print(
        f"{line.name:2}{line.rows:6}{line.n:7}{1e3 * line.louver:9.3f}{times}  {ratios}  {equal}", flush=True
    )


def large_table(n_rows: int, seed: int = 2014) -> tuple[TwoWayTable, int]:
    """Rows (r - 1, 1) with distinct r between 500 and 4,000, both ends included, and their sum R."""
    generator = np.random.default_rng(seed)
    inner = generator.choice(np.arange(501, 4000), n_rows - 2, replace=False)
    row_sums = generator.permutation(np.concatenate([[500, 4000], inner]))
    attribute = Attribute(name="row", labels=tuple(map(str, range(n_rows))))
    table = TwoWayTable(
        row_attributes=(attribute,),
        col_attributes=(Attribute(name="col", labels=("a", "b")),),
        row_index=np.arange(n_rows),
        counts=np.stack([row_sums - 1, np.ones(n_rows, dtype=np.int64)], axis=1),
        n=0,
    )
    return table, int(row_sums.sum())


def at_sample_size(table: TwoWayTable, n: int) -> TwoWayTable:
    return TwoWayTable(
        row_attributes=table.row_attributes,
        col_attributes=table.col_attributes,
        row_index=table.row_index,
        counts=table.counts,
        n=n,
    )


def measure_large(n_rows: int = 2000, rounds: int = 11) -> list[str]:
    """Time the large table at both sample sizes; returns the targets missed."""
    table, total = large_table(n_rows)
    wanted = np.ones(n_rows, dtype=bool)
    tables = [at_sample_size(table, factor * total) for factor in (2, 100)]
    small, large = alternate([lambda t=t: solve_exact(t, (), wanted) for t in tables], rounds)
    for seconds, one in zip((small, large), tables, strict=True):
        print(f"{n_rows} distinct reduced row sums, R = {total:,}, N = {one.n:,}: {1e3 * seconds:.1f} ms")
    print(f"100 R over 2 R: {large / small:.2f}")
    missed = []
    if max(small, large) > TARGET_LARGE_SECONDS:
        missed.append(f"large table: above {TARGET_LARGE_SECONDS:.0f} s")
    if large > TARGET_GROWTH * small:
        missed.append(f"large table: 100 R takes more than {TARGET_GROWTH:.0f} times as long as 2 R")
    return missed


if __name__ == "__main__":
    main()
