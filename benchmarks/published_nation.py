"""A nation-shaped set in the published layout: seconds and memory of import and estimate per million blocks.

    python benchmarks/published_nation.py --data DIR --every 200

States, counties and voting districts are those of the 2020 Census (47 states and DC); every so many-th district becomes a block group with
made-up blocks, people and housing units. The stages run in processes of their own, so that peaks are theirs.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import multiprocessing
import resource
import tempfile
import time
from pathlib import Path

import numpy as np
from published_state import SHAPE, PublishedState, publish

from louver.topdown import estimate, import_nmf


def nation(data: Path, every: int, blocks: int = 6, seed: int = 3) -> PublishedState:
    """Blocks of every so many-th voting district."""
    random = np.random.default_rng(seed)
    with gzip.open(data / "us_2020_vtd.csv.gz", "rt", newline="") as file:
        rows = list(csv.DictReader(file))[::every]
    states = sorted({row["state"] for row in rows})
    codes, counts, units = [], [], []
    mix = np.r_[0.7, 0.1, 0.02, 0.05, 0.01, 0.07, np.full(57, 0.05 / 57)]
    for place, row in enumerate(rows):
        fips, county = states.index(row["state"]) + 1, int(row["county"][-3:])
        group = f"0{fips:02d}10{county:03d}1{place % 9999 + 1:04d}01"
        for block in range(int(random.integers(1, 2 * blocks))):
            codes.append(f"{group}{fips:02d}{county:03d}{place % 999999:06d}1{1000 + block:04d}")
            n, held = int(random.gamma(0.8, 60)), np.zeros(SHAPE, np.int32)
            held[0] = random.multinomial(
                n, np.multiply.outer([[0.18, 0.04], [0.66, 0.12]], mix / mix.sum()).ravel()
            ).reshape(SHAPE[1:])
            counts.append(held.ravel())
            units.append(max(1, n * 2 // 5))
    order = sorted(range(len(codes)), key=codes.__getitem__)
    held = np.stack(counts)[order]
    return PublishedState(
        [codes[i] for i in order], held, np.array(units)[order], np.zeros((len(codes), 7), np.int64)
    )


def _import(folder: Path) -> None:
    import_nmf(folder / "files", out=folder / "measured")


def _estimate(folder: Path) -> None:
    spec = folder / "measured/topdown.toml"
    estimate(spec, measurements=folder / "measured", out=folder / "release", intervals=0)


def _timed(work, folder: Path, told) -> None:
    began = time.perf_counter()
    work(folder)
    used = resource.getrusage(resource.RUSAGE_SELF)
    told.put((time.perf_counter() - began, used.ru_utime + used.ru_stime, used.ru_maxrss / 2**20))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--every", type=int, default=200)
    asked = parser.parse_args()
    state = nation(asked.data, asked.every)
    n = len(state.codes)
    print(f"{n:,} blocks in {len({code[:3] for code in state.codes})} states, {state.counts.sum():,} people")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        publish(state, folder / "files", seed=1)
        for title, work in (("import", _import), ("estimate", _estimate)):
            told = multiprocessing.get_context("spawn").Queue()
            process = multiprocessing.get_context("spawn").Process(target=_timed, args=(work, folder, told))
            process.start()
            wall, processor, peak = told.get()
            process.join()
            million = 1e6 / n
            print(
                f"{title}: {wall:.0f} s ({processor:.0f} s of processor), peak {peak:.2f} GiB; {processor * million:,.0f} s per million"
            )


if __name__ == "__main__":
    main()
