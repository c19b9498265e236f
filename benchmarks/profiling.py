"""`louver profile` on a large table: seconds, processor seconds and peak memory, and whether what was planted was found.

Run: python benchmarks/profiling.py [--rows 1000000] [--columns 30]

A made-up table as CSV, profiled in a process of its own. Planted are an id, a near-id (one value in a hundred comes twice), an area that
tells its region and a density that nearly does; the other columns are independent, with 2 to 5,000 values, some missing.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv

PLANTED = {("area", "region"), ("area", "density"), ("region", "density"), ("density", "region")}
SIZES = (2, 3, 5, 7, 12, 20, 45, 90, 300, 1000, 5000)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--columns", type=int, default=30)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "people.csv"
        pa.csv.write_csv(made_up(given.rows, given.columns), path)
        measure(path, given.rows, given.columns)


def made_up(n: int, n_columns: int) -> pa.Table:
    random = np.random.default_rng(1)
    area = random.integers(0, 400, n)
    region = area % 20
    table: dict[str, object] = {
        "id": random.permutation(n),
        "near_id": [f"N{i}" for i in random.permutation(n - n // 100)] + [f"N{i}" for i in range(n // 100)],
        "area": area,
        "region": np.array([f"region {i}" for i in range(20)])[region],
        "density": np.where(random.random(n) < 0.01, random.integers(0, 20, n), region) * 12.5,
    }
    for number in range(n_columns - len(table)):
        values = random.integers(0, SIZES[number % len(SIZES)], n)
        column = pa.array(values, mask=random.random(n) < 0.02 * (number % 3))
        table[f"column_{number}"] = column if number % 2 else pa.array(values).cast(pa.string())
    return pa.table(table)


def measure(path: Path, n_rows: int, n_columns: int) -> None:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    began = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-m", "louver", "profile", str(path), "--json"], capture_output=True, check=True
    )
    seconds = time.perf_counter() - began
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    processor = sum(getattr(after, kind) - getattr(before, kind) for kind in ("ru_utime", "ru_stime"))
    found = json.loads(done.stdout)
    told = {(one["determinant"], one["dependent"]) for one in found["dependencies"]}
    singling = {tuple(one["columns"]) for one in found["sets"] if len(one["columns"]) == 1}
    print(
        f"{n_rows:,} x {n_columns} ({path.stat().st_size / 1e6:.0f} MB): {seconds:.1f} s, {processor:.1f} of the processor, "
        f"peak {after.ru_maxrss / 1024:.0f} MB; planted found: {told >= PLANTED and singling == {('id',), ('near_id',)}}, "
        f"others invented: {len(told - PLANTED)}"
    )


if __name__ == "__main__":
    main()
