"""Loss of household files: k units in a class, and units that are alike as a whole (--whole-units).

Run: python benchmarks/households.py DIR [--files made-up] [--k 3 5 10] [--seconds 20] [--method auto] [--bound S]

DIR holds nm_pums_persons.csv.gz, nm_pums_households.csv.gz, pums_sample_persons.csv.gz and pums_sample_households.csv.gz (census microdata
samples that UDST/synthpop ships); `made-up` needs none: 1,500 couples, families and people alone in 12 districts. Every release is counted
again by code of this file. --bound gives the lower bound of classes of k records so much time.
"""

from __future__ import annotations

import argparse
import os
import time
from collections import Counter
from pathlib import Path

import numpy as np
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
    parser.add_argument("--files", nargs="*", choices=list(FILES), default=list(FILES))
    parser.add_argument("--bound", type=float)
    options = parser.parse_args()
    for name in options.files:
        table, quasi = FILES[name](options.folder)
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
                if options.bound is not None and not more:
                    more = {"bound_seconds": options.bound}
                release = lv.anonymize(
                    table.select([*quasi, "home"]), **asked, **more, keep_order=not more.get("whole_units")
                )
                if "whole_units" in more:
                    check(release, k)
                else:
                    check_units(release, table["home"].to_pylist(), k)
                bound = "" if release.gcp_bound is None else f", no classes below {release.gcp_bound:.2%}"
                words.append(
                    f"{title} {release.utility.gcp:.2%}{bound}, {release.n_suppressed} left out ({time.perf_counter() - began:.0f} s)"
                )
            print("; ".join(words), f"load {os.getloadavg()[0]:.0f}", flush=True)


def check(release: lv.AnonymizedRelease, k: int) -> None:
    """Count the households that are equal member by member."""
    homes: dict[int, list[tuple]] = {}
    for row in release.table.to_pylist():
        homes.setdefault(row["unit_id"], []).append(tuple(row[name] for name in release.quasi))
    counts = Counter(tuple(sorted(members)) for members in homes.values())
    assert min(counts.values()) >= k


def check_units(release: lv.AnonymizedRelease, homes: list[str], k: int) -> None:
    """Count the different households of every class, rows being in the order of the source."""
    members: dict[tuple, set[str]] = {}
    for row, home in zip(release.table.to_pylist(), homes, strict=True):
        members.setdefault(tuple(row[name] for name in release.quasi), set()).add(home)
    assert min(map(len, members.values())) >= k


def made_up(_: Path) -> tuple[pa.Table, list[str]]:
    """Households whose members resemble each other."""
    random = np.random.default_rng(25)
    rows = []
    for home in range(1500):
        district, rooms = int(random.integers(12)), int(random.integers(1, 7))
        age, race = int(random.integers(20, 85)), int(random.choice(5, p=[0.6, 0.2, 0.1, 0.07, 0.03]))
        n_children = int(random.poisson(1.0)) if age < 55 else 0
        ages = [age, *([age + int(random.normal(0, 4))] if random.random() < 0.6 else [])]
        ages += [max(0, age - 25 - int(random.integers(0, 15))) for _ in range(n_children)]
        rows += [(f"h{home}", district, rooms, one, int(random.integers(2)), race) for one in ages]
    names = ["home", "district", "rooms", "age", "sex", "race"]
    table = pa.table(dict(zip(names, map(list, zip(*rows, strict=True)), strict=True)))
    return table, names[1:]


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


FILES = {"nm_pums": nm_pums, "pums_sample": pums_sample, "made-up": made_up}


if __name__ == "__main__":
    main()
