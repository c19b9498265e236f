"""One recoding for the whole file: loss and time beside local recoding and beside a plain full search of the lattice.

Run: python benchmarks/recoding.py [--adult FILE] [--seconds 10] [--rows N] [--long SECONDS]
                                      [--exceptions 0.01 0.05 0.2]

Adult with 4 and 8 quasi-identifiers under the hierarchies of benchmarks/hierarchies, k = 5, without and with 1 % of the records left
out; then with age cut anywhere and with sets of labels in place of hierarchies, where codings are too many to try all. Adult is read from
--adult or LOUVER_ADULT; without it the 6,000 people that come with louver are, with hours in place of the country. The plain search
judges every combination of levels, one after the other. --exceptions tries only these shares of exceptions, with 8 columns: under
hierarchies, with age cut anywhere, and with sets of labels. Losses are means over records and columns; seconds are the processor's.
"""

from __future__ import annotations

import argparse
import os
import time
from itertools import product
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv

from louver.anonymize.columns import NumericColumn, QuasiColumn, SetColumn, TreeColumn
from louver.anonymize.methods import auto, local_exceptions
from louver.anonymize.methods import global_recoding as harmonise
from louver.anonymize.problem import AnonymizeProblem
from louver.anonymize.recoding import RecodingSpace
from louver.anonymize.watch import Watch
from louver.data.samples import sample_path
from louver.run import Run
from louver.schema.hierarchy import Hierarchy

FOUR = ("age", "education", "race", "sex")
EIGHT = (*FOUR, "workclass", "marital-status", "occupation", "native-country")
OF_SAMPLE = {"employment": "workclass", "marital": "marital-status", "hours": "hours-per-week"}
HIERARCHIES = Path(__file__).with_name("hierarchies")
LOCAL_SECONDS = 10.0
PLAIN_SECONDS = 60.0
"""After these the plain search is ended, and its time is told as a bound."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--adult", default=os.environ.get("LOUVER_ADULT"))
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--rows", type=int)
    parser.add_argument("--long", type=float, help="search again for so long where the optimum is not proved")
    parser.add_argument("--exceptions", type=float, nargs="*", default=[])
    given = parser.parse_args()
    table = adult(given.adult).slice(0, given.rows)
    if given.exceptions:
        return with_exceptions(table, given)
    print(
        f"{table.num_rows:,} records; columns, left out | global, seconds, proved | plain: seconds, loss | local | after a long search"
    )
    for names, share in product((FOUR, EIGHT), (0.0, 0.01)):
        compare(table, names, share, given)
    for is_tree, share in product((True, False), (0.0, 0.01)):
        compare(table, EIGHT, share, given, is_tree=is_tree, is_cut=True)


def with_exceptions(table: pa.Table, given: argparse.Namespace) -> None:
    """One recoding with some shares of exceptions; the classes are counted again by code of this file."""
    for title, is_tree, is_cut in (
        ("hierarchies", True, False),
        ("age cut", True, True),
        ("no hierarchies", False, True),
    ):
        columns = [
            column_of(table, name, is_tree=is_tree and not (is_cut and name == "age"))
            for name in (name if name in table.column_names else "hours-per-week" for name in EIGHT)
        ]
        problem = AnonymizeProblem.build(columns, k=5)
        local_exceptions.warm_up(problem, Run())
        losses = []
        for share in given.exceptions:
            began, most = time.process_time(), int(share * table.num_rows)
            found = Watch(seconds=given.seconds).attend(
                lambda watch, problem=problem, most=most: local_exceptions.solve(problem, watch, most=most)
            )
            assert np.bincount(found.labels).min() >= 5
            is_out = found.is_exception[found.labels]
            assert is_out.sum() <= most
            for place, column in enumerate(columns):
                pairs = np.stack([column.ranks[problem.rows][~is_out], found.blocks[place][~is_out]])
                assert len(np.unique(pairs, axis=1).T) == len(np.unique(pairs[0]))
            gcp = problem.information_loss(found) / (problem.n_records * len(columns))
            losses.append(f"{share:.0%} {gcp:.2%} ({time.process_time() - began:.0f} s)")
        print(f"{table.num_rows:,} records, k = 5, {title}; exceptions: {', '.join(losses)}", flush=True)


def adult(path: str | None) -> pa.Table:
    table = pa.csv.read_csv(path or sample_path("people"))
    return table.rename_columns([OF_SAMPLE.get(name, name) for name in table.column_names])


def compare(
    table: pa.Table,
    names: tuple[str, ...],
    share: float,
    given: argparse.Namespace,
    *,
    is_tree: bool = True,
    is_cut: bool = False,
) -> None:
    names = tuple(name if name in table.column_names else "hours-per-week" for name in names)
    columns = [column_of(table, name, is_tree=is_tree and not (is_cut and name == "age")) for name in names]
    problem = AnonymizeProblem.build(columns, k=5, max_suppressed=int(share * table.num_rows))
    harmonise.solve(problem.tiny())
    auto.warm_up(problem, Run())
    began = time.process_time()
    ours = harmonise.solve(problem, Watch(seconds=given.seconds))
    took = time.process_time() - began
    kind = "" if not is_cut else " age cut" if is_tree else " no hierarchies"
    local = Watch(seconds=min(given.seconds, LOCAL_SECONDS)).attend(lambda watch: auto.solve(problem, watch))
    cells = problem.n_records * len(names)
    is_proved = ours.status.name == "OPTIMAL"
    told = f"{len(names)}{kind}, {share:.0%} | {problem.information_loss(ours) / cells:.2%} {took:.2f} {is_proved}"
    if ours.lower_bound is not None and not is_proved:
        told += f" bound {ours.lower_bound / (problem.n_records * problem.full_loss):.2%}"
    told += " | "
    if not is_cut:
        plain, plain_took, is_done = plain_search(problem)
        told += f"{'' if is_done else '>'}{plain_took:.2f} {plain / cells:.2%}"
    told += f" | {problem.information_loss(local) / cells:.2%} | "
    if given.long and not is_proved:
        long = harmonise.solve(problem, Watch(seconds=given.long))
        told += f"{problem.information_loss(long) / cells:.2%}"
    print(told, flush=True)


def plain_search(problem: AnonymizeProblem) -> tuple[float, float, bool]:
    """The least loss over all levels, how long that took, and whether it ended."""
    whole = RecodingSpace.of(problem)
    began, best = time.process_time(), np.inf
    for codings in product(*(domain.codings() or [] for domain in whole.domains)):
        found = whole.judged(codings)
        best = best if found is None else min(best, found.loss)
        if time.process_time() - began > PLAIN_SECONDS:
            return best, time.process_time() - began, False
    return best, time.process_time() - began, True


def column_of(table: pa.Table, name: str, *, is_tree: bool) -> QuasiColumn:
    """A column under its hierarchy; without it numbers are cut anywhere, and labels make sets."""
    values = table[name]
    if not is_tree and pa.types.is_integer(values.type):
        return NumericColumn(name=name, values=values.to_numpy().astype(np.float64))
    leaves = Hierarchy.from_csv(HIERARCHIES / f"{name}.csv")
    texts = ["?" if value in ("", None) else str(value) for value in values.to_pylist()]
    codes = np.array([leaves.leaves.index(text) for text in texts])
    if is_tree:
        levels = [leaves.ancestors(level) for level in range(leaves.n_levels)]
        return TreeColumn(name=name, codes=codes, ancestors=levels)
    _, codes = np.unique(codes, return_inverse=True)
    return SetColumn(name=name, codes=codes, n_labels=int(codes.max()) + 1)


if __name__ == "__main__":
    main()
