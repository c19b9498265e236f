"""One recoding for the whole file: loss and time beside local recoding and beside a plain full search of the lattice.

Run: python benchmarks/recoding.py [--adult FILE] [--seconds 10] [--rows N]

Adult with 4 and 8 quasi-identifiers, k = 5, without and with 1 % of the records left out. Numbers have hierarchies of bands of
5, 10, 20 and 40; other columns their most frequent 7, 3 and 1 labels apart from the others. Adult is read from --adult or LOUVER_ADULT;
without it a table of the same shape is made up. The plain search judges every combination of levels, one after the other.
"""

from __future__ import annotations

import argparse
import os
import time
from itertools import product

import numpy as np
import pyarrow as pa
import pyarrow.csv

from louver.anonymize.columns import TreeColumn
from louver.anonymize.harmonised import Whole
from louver.anonymize.methods import auto, harmonise
from louver.anonymize.problem import Problem
from louver.anonymize.watch import Watch

FOUR = ("age", "education-num", "race", "sex")
EIGHT = (*FOUR, "workclass", "marital-status", "occupation", "native-country")
PLAIN_SECONDS = 60.0
"""After these the plain search is ended, and its time is told as a bound."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--adult", default=os.environ.get("LOUVER_ADULT"))
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--rows", type=int)
    given = parser.parse_args()
    table = pa.csv.read_csv(given.adult) if given.adult else made_up(given.rows or 5_000)
    table = table.slice(0, given.rows)
    print(
        "columns  left out  global  seconds  proved  plain/global seconds  plain/global loss  local loss  local/global loss"
    )
    for names, share in product((FOUR, EIGHT), (0.0, 0.01)):
        compare(table, names, share, given.seconds)


def compare(table: pa.Table, names: tuple[str, ...], share: float, seconds: float) -> None:
    columns = [column_of(table, name) for name in names]
    problem = Problem.build(columns, k=5, max_suppressed=int(share * table.num_rows))
    harmonise.solve(problem.tiny())
    auto.warm_up(problem)
    began = time.perf_counter()
    ours = harmonise.solve(problem, Watch(seconds=seconds))
    took = time.perf_counter() - began
    plain, plain_took, is_done = plain_search(problem)
    local = Watch(seconds=seconds).attend(lambda watch: auto.solve(problem, watch))
    cells = problem.n_records * len(names)
    mean = [100 * problem.information_loss(answer) / cells for answer in (ours, local)]
    print(
        f"{len(names):7} {share:9.0%} {mean[0]:6.2f}% {took:8.2f} {ours.status.name == 'OPTIMAL'!s:>7} "
        f"{'' if is_done else '>'}{plain_took / took:20.1f} {plain / problem.information_loss(ours):18.4f} "
        f"{mean[1]:10.2f}% {mean[1] / mean[0]:18.3f}",
        flush=True,
    )


def plain_search(problem: Problem) -> tuple[float, float, bool]:
    """The least loss over all levels, how long that took, and whether it ended."""
    whole = Whole.of(problem)
    began, best = time.perf_counter(), np.inf
    for codings in product(*(domain.codings() or [] for domain in whole.domains)):
        found = whole.judged(codings)
        best = best if found is None else min(best, found.loss)
        if time.perf_counter() - began > PLAIN_SECONDS:
            return best, time.perf_counter() - began, False
    return best, time.perf_counter() - began, True


def column_of(table: pa.Table, name: str) -> TreeColumn:
    """A column with a hierarchy: bands of numbers, or categories by frequency, the rare ones together first."""
    values = table[name].combine_chunks().dictionary_encode()
    labels = values.dictionary.to_pylist()
    codes = values.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    n = len(labels)
    if all(isinstance(label, int) for label in labels):
        steps = (1, 5, 10, 20, 40) if n > 20 else (1, 2, 4, 8)
        levels = [np.unique([label // step for label in labels], return_inverse=True)[1] for step in steps]
    else:
        rank = np.argsort(np.argsort(-np.bincount(codes, minlength=n), kind="stable"))
        levels = [np.minimum(rank, most) for most in (n, 7, 3, 1) if most >= n or most < n - 1]
    return TreeColumn(name=name, codes=codes, ancestors=[*levels, np.zeros(n, np.int64)])


def made_up(n: int) -> pa.Table:
    random = np.random.default_rng(1)
    sizes = {"race": 5, "sex": 2, "workclass": 8, "marital-status": 7, "occupation": 14, "native-country": 41}
    table = {
        "age": np.clip(random.gamma(7, 5.5, n), 17, 90).astype(int),
        "education-num": random.integers(1, 17, n),
    }
    for name, size in sizes.items():
        table[name] = np.array([f"{name} {i}" for i in range(size)])[
            np.minimum(random.geometric(0.4, n) - 1, size - 1)
        ]
    return pa.table(table)


if __name__ == "__main__":
    main()
