"""anonymize of files beyond memory: seconds per million records, memory of all processes together, loss against a whole run.

Run: python benchmarks/anonymize_beyond.py [--records 20000000] [--whole 1000000] [--seconds-per-million 30] [--engine local:2]
                                           [--kill-after S] [--folder DIR] [--small]

Makes a file of people (Parquet, seeded, streamed): 8 quasi-identifiers like those of Adult, of 2 to 20,000 values, that depend on one
another, and one sensitive column. Its first records are anonymised whole, and in parts with as many seconds a record; then the whole file
in parts. --engine dask starts a scheduler and two worker processes of one thread on this machine, and ends them; --kill-after kills one of
them while the whole file is in work, and it is started anew. Memory is the sum of the proportional set sizes (pages shared by processes
counted once) of all processes below this one, the workers among them, looked at every second; the file cache is not in it. The files are
removed at the end.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import psutil
import pyarrow as pa
import pyarrow.parquet as pq

import louver as lv

QUASI = ("age", "sex", "race", "education", "marital", "occupation", "county", "wage")
K = 5
BATCH = 500_000
LOOK_SECONDS = 1.0


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--records", type=int, default=20_000_000)
    parser.add_argument("--whole", type=int, default=1_000_000)
    parser.add_argument("--seconds-per-million", type=float, default=30.0, help="for the search")
    parser.add_argument(
        "--steps",
        type=int,
        help="rounds of the search in place of seconds: a busy machine loses as a quiet one",
    )
    parser.add_argument("--method", default="auto")
    parser.add_argument("--engine", default="local:2", help="local:N, or dask for two worker processes here")
    parser.add_argument("--folder", help="where the files and the release go (the system's temporary folder)")
    parser.add_argument(
        "--kill-after", type=float, help="with --engine dask: seconds after which a worker dies"
    )
    parser.add_argument("--skip-whole", action="store_true", help="only the large file, in parts")
    parser.add_argument("--small", action="store_true")
    options = parser.parse_args()
    if options.small:
        options.records, options.whole, options.engine = 3_000, 1_000, "local:2"
        options.seconds_per_million = 100.0
    print(f"louver {lv.__version__}, numpy {np.__version__}, {os.cpu_count()} cores, load {os.getloadavg()}")
    with (
        tempfile.TemporaryDirectory(dir=options.folder) as folder,
        engine(options.engine) as (address, workers),
    ):
        place = Path(folder)
        write_people(place / "people.parquet", options.records)
        write_people(place / "first.parquet", options.whole)
        size = (place / "people.parquet").stat().st_size
        print(
            f"{options.records:,} records x {len(QUASI)} quasi-identifiers, {size / 2**20:,.0f} MiB as Parquet, k = {K}"
        )
        parts = ["--parts", "3" if options.small else "auto", "--engine", address]
        for file, n, how in (
            ("first", options.whole, "whole"),
            ("first", options.whole, "in parts"),
            ("people", options.records, "in parts"),
        ):
            if file == "people" or not options.skip_whole:
                seconds = ["--seconds", str(options.seconds_per_million * n / 1e6)]
                time_limit = seconds if options.steps is None else ["--steps", str(options.steps)]
                given = [*time_limit, "--method", options.method, *(parts if how == "in parts" else [])]
                dying = workers[:1] if file == "people" and options.kill_after else []
                run(place, file, how, given, dying, options.kill_after or 0)


def run(
    folder: Path, file: str, how: str, given: list[str], dying: list[psutil.Process], kill_after: float
) -> None:
    """One call of the command in a process of its own, and what it took."""
    out = folder / f"{file}-{how.replace(' ', '-')}"
    command = [
        sys.executable,
        "-m",
        "louver",
        "anonymize",
        str(folder / f"{file}.parquet"),
        "--out",
        str(out),
    ]
    command += [
        "--quasi",
        ",".join(QUASI),
        "--categorical",
        "county",
        "--sensitive",
        "diagnosis",
        "-k",
        str(K),
    ]
    started = time.perf_counter()
    with (
        subprocess.Popen([*command, *given, "--json"], stdout=subprocess.PIPE) as child,
        peak() as found,
    ):
        for worker in dying:
            threading.Timer(kill_after, worker.kill).start()
        assert child.stdout is not None
        told = json.loads(child.stdout.read() or "{}")
    seconds = time.perf_counter() - started
    if child.returncode:
        sys.exit(f"{file} {how}: exit {child.returncode}")
    n = told["records"]
    cuts = f", {told['parts']} parts" if told["parts"] else ""
    stages = ", ".join(f"{name} {took:.0f}" for name, took in told["stages"].items())
    print(
        f"  {n:,} records {how}{cuts}: loss {told['gcp']:.4%}, {told['classes']:,} classes; {seconds:,.0f} s "
        f"({seconds / n * 1e6:.1f} s per million; {stages}), at most {max(found) / 2**30:.2f} GB together"
        f"{', one worker killed' if dying else ''}",
        flush=True,
    )
    began = time.perf_counter()
    command = [sys.executable, "-m", "louver", "verify", str(out)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as doubt, peak() as doubted:
        doubt.wait()
    print(
        f"    verify: exit {doubt.returncode}, {time.perf_counter() - began:,.0f} s, {max(doubted) / 2**30:.2f} GB",
        flush=True,
    )


@contextlib.contextmanager
def peak() -> Iterator[list[int]]:
    """Bytes that the processes below this one hold together, looked at again and again."""
    found, is_over = [0], threading.Event()

    def look() -> None:
        while not is_over.wait(LOOK_SECONDS):
            with contextlib.suppress(psutil.Error):
                found.append(sum(_bytes(p) for p in psutil.Process().children(recursive=True)))

    watcher = threading.Thread(target=look)
    watcher.start()
    try:
        yield found
    finally:
        is_over.set()
        watcher.join()


def _bytes(process: psutil.Process) -> int:
    with contextlib.suppress(psutil.Error):
        return int(process.memory_full_info().pss)
    return 0


@contextlib.contextmanager
def engine(asked: str) -> Iterator[tuple[str, list[psutil.Process]]]:
    """The address of an engine, and the processes of its workers."""
    if asked != "dask":
        yield asked, []
        return
    from distributed import LocalCluster

    with LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None) as cluster:
        workers = [psutil.Process(worker.pid) for worker in cluster.workers.values()]
        yield cluster.scheduler_address.replace("tcp://", "dask://"), workers


def write_people(path: Path, n: int) -> None:
    """The first n made-up people; every batch has a seed of its own, so a longer file begins like a shorter one."""
    writer = None
    for number, first in enumerate(range(0, n, BATCH)):
        table = people(number).slice(0, n - first)
        writer = writer or pq.ParquetWriter(path, table.schema)
        writer.write_table(table)
    assert writer is not None
    writer.close()


def people(number: int) -> pa.Table:
    """One batch: age, education and county decide much of the rest, wages have a long tail."""
    random = np.random.default_rng([2011, number])
    age = np.clip(random.gamma(6, 6.5, BATCH) + 10, 17, 95).astype(np.int64)
    sex = random.integers(0, 2, BATCH)
    county = np.minimum((300 * random.random(BATCH) ** 2).astype(np.int64), 299)
    race = np.minimum(random.geometric(0.55, BATCH) - 1 + (county % 7 == 0), 5)
    education = np.clip(np.rint(random.normal(9 + (county < 60), 2.5)), 1, 16).astype(np.int64)
    marital = np.where(age < 28, random.integers(0, 2, BATCH), np.minimum(random.geometric(0.5, BATCH), 6))
    occupation = (education // 2 + random.integers(0, 7, BATCH)) % 14
    wage = np.exp(random.normal(6.0 + 0.09 * education + 0.008 * np.minimum(age, 55), 0.5))
    wage = np.minimum((wage / 5).astype(np.int64) * 5, 99_995)
    names = {"sex": sex, "race": race, "marital": marital, "occupation": occupation}
    names["diagnosis"] = random.integers(0, 40, BATCH)
    columns = {"age": age, "education": education, "county": county, "wage": wage}
    for name, codes in names.items():
        columns[name] = pa.array([f"{name[0]}{code}" for code in range(40)]).take(pa.array(codes))
    return pa.table({name: columns[name] for name in (*QUASI, "diagnosis")})


if __name__ == "__main__":
    main()
