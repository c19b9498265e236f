"""Loss of auto on surveys beside Mondrian and k-member, for k alone and with l or t.

Run: python benchmarks/surveys.py DIR [--files adult nist acs] [--k 3 5 10] [--seconds 10 60] [--records N] [--diverse] [--bound S]

DIR holds adult.csv.gz (UCI, header added), nist_acs2019_ma.csv.gz (NIST CRC, 2019 ACS excerpts) and acs2013_ma_persons.csv.gz (ACS PUMS
2013, Massachusetts, as in ARX's benchmarks). Numbers become intervals, other columns sets; all columns count the same. The loss is the
share of all detail that is lost, by louver's own measure; every partition is checked again by code of this file. --diverse asks for l and t
of a sensitive column besides k = 5, with auto alone. --bound gives the lower bound by prices so much time, once the last search is over.
"""

from __future__ import annotations

import argparse
import os
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv

from louver.anonymize.columns import Distance, LKind, NumericColumn, Sensitive, SetColumn
from louver.anonymize.methods import auto, k_member, mondrian, priced_bound
from louver.anonymize.problem import AnonymizeProblem, Partition
from louver.anonymize.watch import Watch

FILES = {
    "adult": (
        "adult.csv.gz",
        ("age", "education-num", "race", "sex", "marital-status", "workclass"),
        "occupation",
    ),
    "nist": ("nist_acs2019_ma.csv.gz", ("PUMA", "AGEP", "SEX", "MSP", "RAC1P", "EDU"), "INDP_CAT"),
    "acs": ("acs2013_ma_persons.csv.gz", ("Age", "Sex", "Race", "Marital status"), "Education"),
}
NUMBERS = ("age", "education-num", "AGEP", "EDU", "Age")

DIVERSE = {
    "t = 0.3": {"t": 0.3},
    "t = 0.2": {"t": 0.2},
    "t = 0.15 ordered": {"t": 0.15, "distance": Distance.ORDERED},
    "l = 4": {"l": 4},
    "entropy l = 4": {"l": 4, "l_kind": LKind.ENTROPY},
}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--files", nargs="*", default=list(FILES), choices=list(FILES))
    parser.add_argument("--k", type=int, nargs="*", default=[3, 5, 10])
    parser.add_argument("--seconds", type=float, nargs="*", default=[10.0, 60.0])
    parser.add_argument("--records", type=int)
    parser.add_argument("--diverse", action="store_true")
    parser.add_argument("--bound", type=float)
    options = parser.parse_args()
    auto.solve(read(options, "acs", 3, records=200), steps=1)  # compiles
    for name in options.files:
        for k in options.k:
            if options.diverse:
                for asked, how in DIVERSE.items():
                    compare(f"{name}, k = {k}, {asked}", read(options, name, k, **how), options, [])
            else:
                compare(f"{name}, k = {k}", read(options, name, k), options, [mondrian, k_member])


def compare(title: str, problem: AnonymizeProblem, options: argparse.Namespace, peers: list) -> None:
    """One line: the peers, then auto at each time, then the bounds."""
    words = [f"{title}, {problem.n_records:,} records"]
    full = problem.n_records * problem.full_loss
    for peer in peers:
        began = time.perf_counter()
        found = peer.solve(problem)
        check(problem, found)
        words.append(f"{found.method} {found.loss / full:.3%} ({time.perf_counter() - began:.0f} s)")
    for limit in options.seconds:
        found = Watch(seconds=limit).attend(lambda watch: auto.solve(problem, watch))
        check(problem, found)
        words.append(f"auto {limit:.0f} s {found.loss / full:.3%}")
    bound = "none" if found.lower_bound is None else f"{found.lower_bound / full:.3%}"
    if options.bound is not None:
        priced_bound.warm_up(problem)
        before = time.process_time()
        proved = Watch(seconds=options.bound).attend(
            lambda watch: priced_bound.lower_bound(problem, found, watch)
        )
        words.append(
            f"by prices {proved / full:.3%}, gap {found.loss / proved - 1:.0%} ({time.process_time() - before:.0f} s of processors)"
        )
    load = os.getloadavg()[0]
    print(
        "; ".join([*words, f"bound {bound}, mean class {found.sizes.mean():.1f}, load {load:.0f}"]),
        flush=True,
    )


def check(problem: AnonymizeProblem, found: Partition) -> None:
    """k, l and t by counting in the source's columns, by code of its own."""
    for rows in found.classes():
        assert len(rows) >= problem.k
        for column in problem.sensitive:
            counts = np.bincount(column.codes[problem.rows[rows]], minlength=column.n_values)
            shares = counts / counts.sum()
            if column.l is not None and column.l_kind is LKind.ENTROPY:
                some = shares[shares > 0]
                assert np.exp(-(some * np.log(some)).sum()) >= column.l - 1e-9
            elif column.l is not None:
                assert (counts > 0).sum() >= column.l
            if column.t is not None:
                whole = np.bincount(column.codes, minlength=column.n_values) / len(column.codes)
                if column.distance is Distance.ORDERED:
                    far = np.abs(np.cumsum(shares - whole)).sum() / (column.n_values - 1)
                else:
                    far = np.abs(shares - whole).sum() / 2
                assert far <= column.t + 1e-9


def read(
    options: argparse.Namespace, name: str, k: int, records: int | None = None, **how: object
) -> AnonymizeProblem:
    file, quasi, sensitive = FILES[name]
    table = pa.csv.read_csv(options.folder / file).slice(0, records or options.records)
    columns: list[NumericColumn | SetColumn] = []
    for column in quasi:
        if column in NUMBERS:
            values = [float(v) if str(v) not in ("N", "?") else np.nan for v in table[column].to_pylist()]
            columns.append(NumericColumn(name=column, values=np.array(values)))
        else:
            labels, codes = np.unique(np.array(table[column].to_pylist()).astype(str), return_inverse=True)
            columns.append(SetColumn(name=column, codes=codes, n_labels=len(labels)))
    labels, codes = np.unique(np.array(table[sensitive].to_pylist()).astype(str), return_inverse=True)
    asked = [Sensitive(name=sensitive, codes=codes, n_values=len(labels), **how)] if how else []
    return AnonymizeProblem.build(columns, k=k, sensitive=asked)


if __name__ == "__main__":
    main()
