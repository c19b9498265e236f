"""Bounds against the published algorithms and a MILP solver, in one run.

    python benchmarks/bounds.py            all arrangements of Table 10 and a large synthetic table
    python benchmarks/bounds.py B L        only these arrangements

Times are medians of seconds on the arranged table, without tabulating. Peers: Algorithm 3.1 of Wright & Smucker
(2014) with its implementation notes; the classical dynamic program (Algorithm 3.4), once per row; HiGHS, two
integer programs per row. Where a peer would take longer than its limit, some rows are timed and the rest
extrapolated, which is marked with "~". All answers are compared.
"""

from __future__ import annotations

import platform
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba
import numpy as np
import scipy

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from louver.bounds.exact import solve_exact
from louver.optim.kernels.multiples import feasible_multiples
from oracles.knapsack import algorithm_3_1, algorithm_3_4, highs
from wright_smucker import TABLE_10

LIMIT_SECONDS = 60.0
TARGET_SECONDS = 0.005


def median_seconds(function: Callable[[], Any], *, repeats: int = 7) -> float:
    times = []
    for _ in range(repeats):
        started = time.perf_counter()
        function()
        times.append(time.perf_counter() - started)
    return statistics.median(times)


def row_by_row(solve: Callable[[int], Any], n_rows: int, limit: float) -> tuple[float, bool, dict[int, Any]]:
    """Seconds for all rows, whether they are extrapolated, and the answers of the rows that were solved."""
    answers: dict[int, Any] = {}
    started = time.perf_counter()
    for row in np.random.default_rng(0).permutation(n_rows).tolist():
        answers[row] = solve(row)
        if time.perf_counter() - started > limit:
            break
    spent = time.perf_counter() - started
    return spent * n_rows / len(answers), len(answers) < n_rows, answers


def compare(name: str, limit: float = LIMIT_SECONDS) -> dict[str, Any]:
    """One arrangement of Table 10 by louver and its peers; raises if an answer differs."""
    entry = next(one for one in TABLE_10 if one.name == name)
    table = entry.table()
    wanted = np.ones(len(table.counts), dtype=bool)
    solution = solve_exact(table, (), wanted)
    row_sums = solution.reduced.sum(axis=1)
    gap = table.n - int(row_sums.sum())
    least = solution.runs[solution.span[:, 0], 0]
    greatest = solution.runs[solution.span[:, 1] - 1, 1]

    ours = median_seconds(lambda: solve_exact(table, (), wanted))
    published = median_seconds(lambda: algorithm_3_1(row_sums, gap), repeats=3)
    low, high = algorithm_3_1(row_sums, gap)
    assert (low == least).all() and (high == greatest).all(), f"{name}: Algorithm 3.1 differs"
    classical = row_by_row(lambda row: algorithm_3_4(row_sums, gap, row), len(row_sums), limit)
    milp = row_by_row(lambda row: highs(row_sums, gap, row), len(row_sums), limit)
    for _, _, answers in (classical, milp):
        for row, answer in answers.items():
            assert answer == (least[row], greatest[row]), f"{name}: row {row} differs"
    return {
        "name": name,
        "rows": len(row_sums),
        "n": table.n,
        "louver": ours,
        "3.1": published,
        "3.4": classical[:2],
        "highs": milp[:2],
    }


def synthetic() -> None:
    """2,000 distinct reduced row sums between 500 and 4,000, at N = 2R and N = 100R."""
    values = np.sort(np.random.default_rng(1).choice(np.arange(500, 4001), 2000, replace=False)).astype(
        np.int64
    )
    none = np.zeros(len(values), dtype=np.int64)
    without = np.full(len(values), 2**62, dtype=np.int64)
    wanted = np.ones(len(values), dtype=bool)
    total = int(values.sum())
    seconds = []
    for factor in (2, 100):
        gap = (factor - 1) * total
        feasible_multiples(values, none, without, gap, wanted)
        seconds.append(median_seconds(lambda gap=gap: feasible_multiples(values, none, without, gap, wanted)))
        print(f"2,000 distinct row sums, N = {factor}R = {factor * total:,}: {seconds[-1] * 1e3:.1f} ms")
    print(f"ratio {seconds[1] / seconds[0]:.2f} (target: each below 1 s, ratio below 2)")


def shown(peer: tuple[float, bool], ours: float) -> str:
    seconds, is_extrapolated = peer
    return f"{'~' if is_extrapolated else ''}{seconds:.3f} s ({seconds / ours:,.0f}x)"


def main(names: list[str]) -> None:
    print(
        f"Python {platform.python_version()}, numpy {np.__version__}, scipy {scipy.__version__}, "
        f"numba {numba.__version__}, {platform.machine()}"
    )
    print("   rows      N      louver      Alg. 3.1            Alg. 3.4               HiGHS")
    lines = []
    for name in names:
        line = compare(name)
        lines.append(line)
        print(
            f"{name} {line['rows']:>5} {line['n']:>7} {line['louver'] * 1e3:>7.3f} ms"
            f" {shown((line['3.1'], False), line['louver']):>18} {shown(line['3.4'], line['louver']):>22}"
            f" {shown(line['highs'], line['louver']):>22}",
            flush=True,
        )
    slowest = max(line["louver"] for line in lines)
    print(f"slowest {slowest * 1e3:.3f} ms (target below {TARGET_SECONDS * 1e3:.0f} ms)")
    print(f"least ratio to HiGHS {min(x['highs'][0] / x['louver'] for x in lines):,.0f} (target 100)")
    print(f"least ratio to Algorithm 3.1 {min(x['3.1'] / x['louver'] for x in lines):,.1f} (target 1)")
    synthetic()


if __name__ == "__main__":
    main(sys.argv[1:] or [entry.name for entry in TABLE_10])
