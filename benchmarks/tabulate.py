"""Time and peak memory of tabulating many records: `python benchmarks/tabulate.py [--records 10000000]`.

Makes records of eight attributes (3 x 4 x 5 x 2 x 2 x 2 x 3 x 90 labels) as CSV and as Parquet in a temporary
folder, a chunk at a time, then tabulates each file in a process of its own and prints seconds and peak
resident memory of that process.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

SIZES = (3, 4, 5, 2, 2, 2, 3, 90)
NAMES = tuple(f"X{number}" for number in range(1, len(SIZES) + 1))
CHUNK_RECORDS = 1_000_000
LIMIT_GIGABYTES = 2.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=10_000_000)
    parser.add_argument("--child", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child is not None:
        tabulate_file(arguments.child, arguments.records)
        return
    with tempfile.TemporaryDirectory() as folder:
        paths = make_records(Path(folder), arguments.records)
        for path in paths:
            size = path.stat().st_size / 1e6
            print(f"{path.suffix[1:]:8} {size:8.0f} MB  ", end="", flush=True)
            command = [sys.executable, __file__, "--child", str(path), "--records", str(arguments.records)]
            subprocess.run(command, check=True)


def make_records(folder: Path, n_records: int) -> tuple[Path, Path]:
    """The same records as CSV and as Parquet; labels are short texts."""
    generator = np.random.default_rng(20140101)
    labels = [
        pa.array([f"{name}-{code}" for code in range(size)]) for name, size in zip(NAMES, SIZES, strict=True)
    ]
    schema = pa.schema([(name, pa.string()) for name in NAMES])
    csv_path, parquet_path = folder / "records.csv", folder / "records.parquet"
    with pyarrow.csv.CSVWriter(csv_path, schema) as text, pq.ParquetWriter(parquet_path, schema) as columnar:
        for start in range(0, n_records, CHUNK_RECORDS):
            n_chunk = min(CHUNK_RECORDS, n_records - start)
            codes = [generator.integers(0, size, n_chunk) for size in SIZES]
            columns = [label.take(pa.array(code)) for label, code in zip(labels, codes, strict=True)]
            table = pa.table(columns, schema=schema)
            text.write_table(table)
            columnar.write_table(table)
    return csv_path, parquet_path


def tabulate_file(path: Path, n_records: int) -> None:
    """Tabulate one file and print what it took; runs in a process of its own."""
    from louver.data.read import open_source
    from louver.data.tabulate import tabulate

    start = time.perf_counter()
    with open_source(path) as source:
        histogram = tabulate(source, NAMES)
    seconds = time.perf_counter() - start
    assert histogram.total == n_records
    gigabytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9
    print(
        f"{n_records:,} records x {len(NAMES)} attributes -> {len(histogram.counts):,} cells: "
        f"{seconds:.1f} s, peak {gigabytes:.2f} GB on {os.cpu_count()} cores"
    )
    if gigabytes > LIMIT_GIGABYTES:
        raise SystemExit(f"peak memory is above {LIMIT_GIGABYTES} GB")


if __name__ == "__main__":
    main()
