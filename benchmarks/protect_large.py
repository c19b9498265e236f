"""Hiding cells of large hierarchical tables: seconds, memory, number, bound and gap, and a check by other code.

    python benchmarks/protect_large.py adult.csv.gz                    tables of 576, 12,111 and 96,570 cells
    python benchmarks/protect_large.py adult.csv.gz --cells 1e4 --check 200

Tables are sums of the weekly hours of the 48,842 people of Adult (UCI Machine Learning Repository), by three or four of its columns with
all levels of the hierarchies in benchmarks/hierarchies; codes with the same people are one cell, and empty cells are none. A cell is
primary where fewer than 3 people are in it, and must stay open by 10 % on both sides to an outsider. What is timed is the engine (`hide`
and `certify`), without reading records and writing tables.

The check asks SciPy's `linprog`, from nothing, how far each of some primary cells can be from its value, with all hidden cells open. In
the largest table these are cells in a part of it: hidden cells near the asked one may change, and all others may not, so that a
range which is found there is one of the whole table.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import hashlib
import resource
import sys
import time
from itertools import pairwise
from pathlib import Path

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import csr_array

from louver.run import Run
from louver.tables.hiding.certify import certify
from louver.tables.hiding.hide import Hiding, hide
from louver.tables.hiding.problem import UNBOUNDED, Attacker, Demand, PatternProblem

HIERARCHIES = Path(__file__).with_name("hierarchies")
CASES = {
    "1e3": [("education", 0), ("occupation", 1), ("sex", 0)],
    "1e4": [("age", 1), ("education", 0), ("occupation", 0)],
    "1e5": [("age", 1), ("education", 0), ("occupation", 0), ("marital-status", 0)],
}
"""Columns of a table, and the level of their hierarchies at which it begins."""

Axis = tuple[list[frozenset[str]], list[tuple[int, list[int]]], dict[str, str]]


def axis(column: str, bottom: int) -> Axis:
    """Codes as sets of leaves, the sums among them, and the leaf of each value."""
    with (HIERARCHIES / f"{column}.csv").open(newline="") as file:
        _, *lines = csv.reader(file)
    leaf_of = {line[0]: line[bottom] for line in lines}
    levels = []
    for level in reversed(range(bottom, len(lines[0]))):
        groups: dict[str, set[str]] = {}
        for line in lines:
            groups.setdefault(line[level], set()).add(line[bottom])
        levels.append([frozenset(group) for group in groups.values()])
    codes = list(dict.fromkeys(code for level in levels for code in level))
    parts = []
    for upper, lower in pairwise(levels):
        for code in upper:
            below = [codes.index(part) for part in lower if part <= code]
            if len(below) > 1:
                parts.append((codes.index(code), below))
    return codes, parts, leaf_of


def problem_of(
    people: list[dict[str, str]], columns: list[tuple[str, int]], minimum: int = 3
) -> PatternProblem:
    axes = [axis(column, bottom) for column, bottom in columns]
    leaves = [sorted(set(leaf_of.values())) for _, _, leaf_of in axes]
    number = np.zeros([len(own) for own in leaves], dtype=np.int64)
    hours = number.copy()
    places = tuple(
        np.array([own.index(leaf_of[person[column]]) for person in people])
        for (column, _), own, (_, _, leaf_of) in zip(columns, leaves, axes, strict=True)
    )
    np.add.at(number, places, 1)
    np.add.at(hours, places, [int(person["hours-per-week"]) for person in people])
    for place, ((codes, _, _), own) in enumerate(zip(axes, leaves, strict=True)):
        inside = np.array([[leaf in code for code in codes] for leaf in own], dtype=np.int64)
        number = np.moveaxis(np.tensordot(number, inside, (place, 0)), -1, place)
        hours = np.moveaxis(np.tensordot(hours, inside, (place, 0)), -1, place)
    grid = np.full(number.shape, -1)
    grid[number > 0] = np.arange((number > 0).sum())
    rows = []
    for place, (_, parts, _) in enumerate(axes):
        moved = np.moveaxis(grid, place, 0).reshape(grid.shape[place], -1)
        for total, below in parts:
            for column in np.flatnonzero(moved[total] >= 0):
                rows.append([moved[total, column], *(cell for cell in moved[below, column] if cell >= 0)])
    ends = np.cumsum([0, *(len(row) for row in rows)])
    signs = np.full(ends[-1], -1, dtype=np.int8)
    signs[ends[:-1]] = 1
    values = hours[number > 0]
    sums = csr_array((signs, np.concatenate(rows), ends), shape=(len(rows), len(values)))
    must = number[number > 0] < minimum
    nothing = np.zeros(0, dtype=np.int64)
    return PatternProblem(
        values=values,
        sums=sums,
        must_hide=must,
        may_hide=~must,
        cost=np.where(must, 0.0, 1.0),
        down=values.copy(),
        up=np.full(len(values), UNBOUNDED),
        attackers=(Attacker("an outsider", nothing, nothing, nothing),),
        demands=tuple(
            Demand(int(cell), sign, int(-(-values[cell] // 10)), 0)
            for cell in np.flatnonzero(must)
            for sign in (1, -1)
        ),
    )


def unprotected(problem: PatternProblem, hidden: np.ndarray, n_asked: int) -> tuple[int, int]:
    """How many demands on some primary cells fail under linear programs made here, and how many were asked."""
    demands = problem.demands[:: max(1, len(problem.demands) // max(1, n_asked))]
    sums, columns = problem.sums.astype(np.float64), problem.sums.tocsc()
    failed = 0
    for demand in demands:
        for most in (400, 4_000, problem.n_cells):
            own, last = {demand.cell}, [demand.cell]
            while last and len(own) < most:
                touched = np.unique(columns[:, last].indices)
                near = np.unique(problem.sums[touched].indices)
                last = [int(cell) for cell in near if hidden[cell] and int(cell) not in own]
                own.update(last)
            cells = np.array(sorted(own))
            part = sums[:, cells]
            part = part[np.diff(part.indptr) > 0]
            cost = -demand.sign * (cells == demand.cell)
            bounds = [(-float(problem.values[cell]), None) for cell in cells]
            found = linprog(cost, A_eq=part, b_eq=np.zeros(part.shape[0]), bounds=bounds)
            is_met = found.status == 3 or (found.status == 0 and -found.fun >= demand.need - 1e-6)
            if is_met or len(own) < most:
                break
        failed += not is_met
    return failed, len(demands)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("adult", type=Path)
    parser.add_argument("--cells", nargs="+", choices=list(CASES), default=list(CASES))
    parser.add_argument("--steps", type=int, default=1)
    parser.add_argument("--seconds", type=float)
    parser.add_argument("--check", type=int, default=100, help="demands that are checked by linprog")
    asked = parser.parse_args()
    with gzip.open(asked.adult, "rt", newline="") as file:
        people = list(csv.DictReader(file))
    is_open = False
    for name in asked.cells:
        problem = problem_of(people, CASES[name])
        wall, cpu = time.perf_counter(), time.process_time()
        found: Hiding = hide(problem, Run(), steps=asked.steps, seconds=asked.seconds)
        certificate = certify(problem, found.hidden, found.witnesses, Run())
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        failed, n_asked = unprotected(problem, found.hidden, asked.check)
        print(
            f"{name}: {problem.n_cells:,} cells, {problem.sums.shape[0]:,} sums, {problem.must_hide.sum():,} primary,"
            f" {found.cost:,.0f} further, bound {found.bound:,.0f}, gap {found.gap:.1%},"
            f" {len(certificate.missing)} of {len(problem.demands):,} demands without a proof,"
            f" {failed} of {n_asked} fail under linprog, {cpu:.0f} s of the processor, {wall:.0f} s, {memory:.2f} GiB,"
            f" pattern {hashlib.sha256(found.hidden.tobytes()).hexdigest()[:12]}",
            flush=True,
        )
        is_open |= bool(certificate.missing or failed)
    return int(is_open)


if __name__ == "__main__":
    sys.exit(main())
