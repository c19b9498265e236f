"""Hiding cells of the turnover tables of rtauargus: number, value, bound and seconds, beside the figures printed for tau-ARGUS.

    python benchmarks/protect.py                          the two tables that come with louver, alone and linked
    python benchmarks/protect.py --tables FOLDER          the four tables, alone and linked
    python benchmarks/protect.py --seconds 600 linked     cases whose names hold one of these, for so long each

Rules: fewer than 3 contributors, or the largest above 85 %; ranges of 10 % on both sides. Each case runs against outsiders alone and
with contributors who know their own part. Seconds are of the wall and of the processor. tau-ARGUS was run elsewhere by others; its figures
are not like for like: it minimises the value as far as known, and drops ranges to 0 after the first pass over linked tables.
"""

from __future__ import annotations

import argparse
import gzip
import platform
import shutil
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

import louver as lv
from louver.data.samples import FOLDER, sample_path
from louver.protect import ProtectedTables

RULES = [
    {"rule": "frequency", "minimum": 3, "range": 10.0},
    {"rule": "dominance", "n": 1, "k": 85.0, "range": 10.0},
]
BY = {
    "act_size": ["activity", "size"],
    "act_cj": ["activity", "cj"],
    "nuts_size": ["nuts", "size"],
    "nuts_cj": ["nuts", "cj"],
}
PRINTED = {"act_size": 64, "four linked": 354}
"""Further cells that tau-ARGUS hides, over all tables, as rtauargus prints them."""


@dataclass(frozen=True)
class Case:
    """Tables to protect together."""

    name: str
    tables: Sequence[str]


def cases(has_nuts: bool) -> list[Case]:
    two = [
        Case("act_size", ["act_size"]),
        Case("act_cj", ["act_cj"]),
        Case("two linked", ["act_size", "act_cj"]),
    ]
    return [*two, Case("four linked", list(BY))] if has_nuts else two


def prepared(folder: Path, tables: Path | None) -> Path:
    """The files of all tables and hierarchies in one folder."""
    if tables is not None:
        for path in tables.glob("*.csv"):
            shutil.copy(path, folder)
    else:
        for name, sample in (("act_size", "turnover_size"), ("act_cj", "turnover_form")):
            (folder / f"turnover_{name}.csv").write_bytes(gzip.decompress(sample_path(sample).read_bytes()))
    shutil.copy(FOLDER / "activity.hrc", folder)
    return folder


def run(case: Case, folder: Path, **options: object) -> ProtectedTables:
    tables = [
        {
            "name": name,
            "by": BY[name],
            "file": str(folder / f"turnover_{name}.csv"),
            "value": "tot",
            "frequency": "n_obs",
            "largest": ["max"],
        }
        for name in case.tables
    ]
    codes = {
        "activity": {"hierarchy": str(folder / "activity.hrc")},
        "nuts": {"hierarchy": str(folder / "nuts_tree.csv")},
    }
    used = {name for table in case.tables for name in BY[table]}
    return lv.protect(
        tables=tables, codes={k: v for k, v in codes.items() if k in used}, rules=RULES, **options
    )


def show(case: Case, who: str, what: str, found: ProtectedTables, wall: float, cpu: float) -> None:
    s = found.summary
    over = sum(table.secondary for table in found.tables)
    printed = PRINTED.get(case.name)
    print(
        f"{case.name:12} {who:12} {what:6} {s.cells:5} cells {s.primary:4} primary  {s.secondary:4} further ({over} over the tables)"
        f"  cost {s.cost:14,.6g}  bound {s.bound:14,.6g}  gap {s.gap:6.1%}  {s.certified}/{s.demands} certified"
        f"  {wall:6.1f} s wall {cpu:6.1f} s cpu" + (f"  tau-ARGUS {printed}" if printed else ""),
        flush=True,
    )


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*")
    parser.add_argument("--tables", type=Path)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--minimise", choices=["number", "value"], nargs="+", default=["number"])
    parser.add_argument(
        "--attackers", choices=["outsider", "contributors"], nargs="+", default=["outsider", "contributors"]
    )
    asked = parser.parse_args()
    print(
        f"louver {lv.__version__}, scipy {version('scipy')}, Python {platform.python_version()}, {platform.machine()}"
    )
    is_open = False
    with tempfile.TemporaryDirectory() as name:
        folder = prepared(Path(name), asked.tables)
        for case in cases(asked.tables is not None):
            if asked.names and not any(name in case.name for name in asked.names):
                continue
            for who in asked.attackers:
                for what in asked.minimise:
                    wall, cpu = time.perf_counter(), time.process_time()
                    found = run(
                        case, folder, attackers=who, minimise=what, seconds=asked.seconds, steps=1_000_000
                    )
                    show(case, who, what, found, time.perf_counter() - wall, time.process_time() - cpu)
                    is_open |= not found.is_protected
    return int(is_open)


if __name__ == "__main__":
    sys.exit(main())
