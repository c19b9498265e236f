"""Loss of household files: k units in a class, and units that are alike as a whole (--whole-units).

Run: python benchmarks/households.py DIR [--k 3 5 10] [--seconds 20] [--method auto]

DIR holds nm_pums_persons.csv.gz, nm_pums_households.csv.gz, pums_sample_persons.csv.gz and pums_sample_households.csv.gz (census
microdata samples that UDST/synthpop ships). Every release is counted again by code of this file.
"""

from __future__ import annotations

import argparse
import os
import time
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pyarrow.csv

import louver as lv


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--k", type=int, nargs="*", default=[3, 5, 10])
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--method", default="auto")
    options = parser.parse_args()
    for name, (table, quasi) in {
        "nm_pums": nm_pums(options.folder),
        "pums_sample": pums_sample(options.folder),
    }.items():
        for k in options.k:
            asked = {
                "quasi": quasi,
                "unit": "home",
                "k": k,
                "method": options.method,
                "seconds": options.seconds,
            }
            words = [f"{name}, k = {k}"]
            for title, more in (("k units", {}), ("whole units", {"whole_units": True, "suppress": 0.02})):
                began = time.perf_counter()
                release = lv.anonymize(table.select([*quasi, "home"]), **asked, **more)
                if more:
                    check(release, k)
                words.append(
                    f"{title} {release.utility.gcp:.2%}, {release.n_suppressed} left out ({time.perf_counter() - began:.0f} s)"
                )
            print("; ".join(words), f"load {os.getloadavg()[0]:.0f}", flush=True)


def check(release: lv.AnonymizedRelease, k: int) -> None:
    """Count the households that are equal member by member."""
    homes: dict[int, list[tuple]] = {}
    for row in release.table.to_pylist():
        homes.setdefault(row["unit_id"], []).append(tuple(row[name] for name in release.quasi))
    counts = Counter(tuple(sorted(members)) for members in homes.values())
    assert min(counts.values()) >= k


def nm_pums(folder: Path) -> tuple[pa.Table, list[str]]:
    persons = pa.csv.read_csv(folder / "nm_pums_persons.csv.gz")
    households = pa.csv.read_csv(folder / "nm_pums_households.csv.gz")
    joined = persons.join(households, ["puma", "hhid"], right_suffix="_of_home")
    home = [f"{a}-{b}" for a, b in zip(joined["puma"].to_pylist(), joined["hhid"].to_pylist(), strict=True)]
    shared = [name for name in ("puma", "inc", "veh") if name in joined.column_names]
    own = [name for name in ("age", "sex", "race") if name in joined.column_names]
    return joined.append_column("home", pa.array(home)), [*shared, *own]


def pums_sample(folder: Path) -> tuple[pa.Table, list[str]]:
    persons = pa.csv.read_csv(folder / "pums_sample_persons.csv.gz").select(
        ["serialno", "AGEP", "SEX", "RAC1P"]
    )
    households = pa.csv.read_csv(folder / "pums_sample_households.csv.gz").select(
        ["serialno", "cars", "children", "income"]
    )
    joined = persons.join(households, "serialno", join_type="inner")
    return joined.append_column("home", joined["serialno"].cast(pa.string())), [
        "cars",
        "children",
        "income",
        "AGEP",
        "SEX",
        "RAC1P",
    ]


if __name__ == "__main__":
    main()
