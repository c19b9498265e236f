"""TopDown on a nation-shaped source: seconds, peak memory and bytes on disk of every stage, per block.

Run: python benchmarks/topdown_nation.py [--blocks 20000 ...] [--estimators plain bayes] [--engine local:2] [--folder FOLDER]

The source is drawn from a seed and streamed to Parquet, one row per person: nation, states, counties, tracts, block groups and blocks
in the proportions of the 2020 Census (6.2 million blocks, 240,000 block groups, 84,000 tracts, 3,143 counties), 50 people a block on
average and every third block empty, group quarters in few of them. The schema is the ready one, `pl94`: 2,016 cells; every level
measures housing type, voting age x ethnicity x race, and all cells. State totals are invariant, as in 2020, and the facilities of a
block bound its people in group quarters. Nothing in it describes a real place.

Every stage is a process of its own, so that its peak memory is its own; `tabulate` is also part of `measure`.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray
from synthetic_state import N_HISPANIC, N_RACES, N_VOTING, _facilities

import louver as lv
from louver.data.scratch import Scratch
from louver.schema.spec import with_ready
from louver.topdown.measuring.noise_plan import make_plan
from louver.topdown.measuring.true_counts import true_levels

PEOPLE_PER_BLOCK, EMPTY = 50, 1 / 3
BLOCKS_PER = {"county": 1_970, "tract": 74, "group": 26}
BLOCKS_PER_STATE = 20_000  # up to 51 states
AT_ONCE = 20_000  # blocks drawn together
NATION = 6_200_000
QUARTERS = (
    "correctional",
    "juvenile",
    "nursing",
    "other-institutional",
    "college",
    "military",
    "other-noninstitutional",
)
LEVELS = ("nation", "state", "county", "tract", "group", "block")


def main() -> None:
    options = _options()
    if options.stage:
        _stage(options)
        return
    for blocks in options.blocks:
        folder = options.again or Path(tempfile.mkdtemp(prefix="nation-", dir=options.folder))
        try:
            _measure_all(folder, blocks, options)
        finally:
            if not options.keep and not options.again:
                shutil.rmtree(folder)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--blocks", type=int, nargs="+", default=[2_000])
    parser.add_argument("--estimators", nargs="*", default=["plain", "bayes"])
    parser.add_argument("--engine", default="local:2")
    parser.add_argument(
        "--intervals", type=int, default=0, help="simulations for standard errors; 3 in a release"
    )
    parser.add_argument("--folder", type=Path, help="where files go; the system's by default")
    parser.add_argument("--keep", action="store_true", help="leave the files of every size where they are")
    parser.add_argument("--again", type=Path, help="such a folder: what was measured there is estimated")
    parser.add_argument("--stage", help=argparse.SUPPRESS)
    parser.add_argument("--estimator", default="bayes", help=argparse.SUPPRESS)
    return parser.parse_args()


def _measure_all(folder: Path, blocks: int, options: argparse.Namespace) -> None:
    """All stages of one size, one process after another."""
    if not options.again:
        _run(folder, "draw", blocks, options)
    print(f"\n{blocks:,} blocks, {options.engine}; {json.loads((folder / 'drawn.json').read_text())}")
    heads = ("seconds", "cpu s", "cpu ms/block", "GiB peak", "kB/block", "bytes on disk", "bytes/block")
    print(f"{'stage':<20}" + "".join(f"{head:>14}" for head in heads))
    if not options.again:
        _tell("tabulate", blocks, _run(folder, "tabulate", blocks, options), folder / "people.parquet")
        _tell("measure", blocks, _run(folder, "measure", blocks, options), folder / "measured")
    for estimator in options.estimators:
        options.estimator = estimator
        shutil.rmtree(folder / "measured/checkpoints", ignore_errors=True)
        found = _run(folder, "estimate", blocks, options)
        _tell(f"estimate {estimator}", blocks, found, folder / "measured/checkpoints")
        found = _run(folder, "release", blocks, options)
        _tell(f"release {estimator}", blocks, found, folder / "release/data")
        _tell(f"verify {estimator}", blocks, _run(folder, "verify", blocks, options), None)
        shutil.rmtree(folder / "release")


def _run(folder: Path, stage: str, blocks: int, options: argparse.Namespace) -> tuple[float, float, int]:
    """Seconds, seconds of all cores and peak resident bytes of one stage in a process of its own."""
    command = [sys.executable, __file__, "--stage", stage, "--folder", str(folder), "--blocks", str(blocks),
               "--engine", options.engine, "--estimator", options.estimator, "--intervals", str(options.intervals)]  # fmt: skip
    began = time.perf_counter()
    child = subprocess.Popen(command)
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        raise SystemExit(f"stage {stage} failed")
    return time.perf_counter() - began, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024


def _tell(stage: str, blocks: int, used: tuple[float, float, int], place: Path | None) -> None:
    seconds, cpu, peak = used
    files = (
        [] if place is None else [place] if place.is_file() else [p for p in place.rglob("*") if p.is_file()]
    )
    size = sum(p.stat().st_size for p in files)
    told = (f"{seconds:.1f}", f"{cpu:.1f}", f"{1e3 * cpu / blocks:.3f}", f"{peak / 2**30:.2f}",
            f"{peak / blocks / 1e3:.2f}", f"{size:,}", f"{size / blocks:.0f}")  # fmt: skip
    print(f"{stage:<20}" + "".join(f"{text:>14}" for text in told), flush=True)


def _stage(options: argparse.Namespace) -> None:
    folder, spec = options.folder, options.folder / "nation.toml"
    if options.stage == "draw":
        draw(folder, options.blocks[0])
    elif options.stage == "tabulate":
        from louver.topdown.load import read_design

        with Scratch() as scratch:
            true_levels(make_plan(read_design(spec)).design, scratch.path)
    elif options.stage == "measure":
        lv.topdown.measure(spec, out=folder / "measured")
    elif options.stage == "verify":
        found = lv.verify(folder / "release")
        if not found.passed:
            raise SystemExit(str(found))
    else:
        out = folder / "release" if options.stage == "release" else None
        release = lv.topdown.estimate(
            spec, measurements=folder / "measured", out=out, engine=options.engine,
            estimator=options.estimator, intervals=options.intervals,
        )  # fmt: skip
        if out is None:
            told = ", ".join(f"{level.name} {level.seconds:.1f}" for level in release.estimate.levels)
            print(f"    {release.seconds['estimate']:.1f} s, of which by level: {told}; {release.n_people:,} people, "
                  f"{len(release.estimate.leaves.cell) / options.blocks[0]:.1f} occupied cells a block, "
                  f"{len(release.estimate.rescued)} rescued, {len(release.estimate.suboptimal)} without proof")  # fmt: skip


def draw(folder: Path, blocks: int, seed: int = 11) -> None:
    """Write source, list of leaves, facilities, ledger and spec."""
    from louver.privacy.budget import Measure
    from louver.privacy.ledger import Ledger
    from louver.privacy.neighbours import Relation

    labels = {name: a["labels"] for name, a in with_ready({"schema": "pl94"}, "")["attributes"].items()}
    columns = ["GEOID", "race", "hispanic", "voting_age", "housing"]
    schema = pa.schema([(name, pa.dictionary(pa.int32(), pa.string())) for name in columns])
    n_people = n_cells = 0
    with (
        pq.ParquetWriter(folder / "people.parquet", schema, compression="zstd") as people,
        (folder / "leaves.csv").open("w") as leaves,
        (folder / "facilities.csv").open("w") as facilities,
    ):
        leaves.write("GEOID\n")
        facilities.write(",".join(["GEOID", *QUARTERS]) + "\n")
        for codes, held, block, cell in _chunks(blocks, seed):
            leaves.writelines(f"{code}\n" for code in codes)
            facilities.writelines(
                f"{code},{','.join(map(str, row))}\n"
                for code, row in zip(codes, held[:, 1:].tolist(), strict=True)
            )
            places = (block, *np.unravel_index(cell, (8, N_VOTING, N_HISPANIC, N_RACES))[::-1])
            names = [codes, *(labels[name] for name in columns[1:])]
            people.write_table(pa.table(
                [pa.DictionaryArray.from_arrays(pa.array(p.astype(np.int32)), pa.array(n)) for p, n in zip(places, names, strict=True)],
                schema=schema,
            ))  # fmt: skip
            n_people += len(cell)
            n_cells += len(np.unique(block * 2016 + cell))
    told = {"people": n_people, "occupied cells per block": round(n_cells / blocks, 2)}
    (folder / "drawn.json").write_text(json.dumps(told))
    (folder / "nation.toml").write_text(_spec())
    Ledger.create(folder / "people.parquet.ledger", Measure.RHO, Relation.CHANGE_RECORD, Fraction(4))


def _chunks(blocks: int, seed: int) -> Iterator[tuple[list[str], NDArray, NDArray, NDArray]]:
    """Codes and facilities of some blocks, and block (in the chunk) and cell of everyone there."""
    rng = np.random.default_rng(seed)
    races = np.r_[0.62, 0.12, 0.07, 0.05, 0.012, 0.002, np.maximum(0.05 * 0.75 ** np.arange(57), 4e-6)]
    mix = np.einsum("i,j,k->ijk", [0.22, 0.78], [0.85, 0.15], races / races.sum()).ravel()
    # Regions are numbered through: block b lies in group b // 26 and so on, each level cut where the one above is.
    per_state = -(-blocks // min(51, max(2, blocks // BLOCKS_PER_STATE)))
    counties: dict[tuple[int, int], NDArray] = {}
    for first in range(0, blocks, AT_ONCE):
        number = np.arange(first, min(first + AT_ONCE, blocks))
        state, rest = np.divmod(number, per_state)
        county, rest = np.divmod(rest, BLOCKS_PER["county"])
        tract, rest = np.divmod(rest, BLOCKS_PER["tract"])
        group, block = np.divmod(rest, BLOCKS_PER["group"])
        codes = [
            f"{s + 1:02d}{c:03d}{t:06d}{g}{b:03d}"
            for s, c, t, g, b in zip(state, county, tract, group, block, strict=True)
        ]
        _, start, of_group = np.unique([code[:12] for code in codes], return_index=True, return_inverse=True)
        mixes = np.empty((len(start), len(mix)))
        tracts: dict[tuple[int, int, int], NDArray] = {}
        for i, b in enumerate(start):
            above = (int(state[b]), int(county[b]))
            if above not in counties:
                counties[above] = rng.dirichlet(mix * 600 + 1e-9)
            if (*above, tract[b]) not in tracts:
                tracts[*above, tract[b]] = rng.dirichlet(counties[above] * 90 + 1e-9)
            mixes[i] = rng.dirichlet(tracts[*above, tract[b]] * 250 + 1e-9)
        facilities = _facilities(rng, len(number))
        sizes = np.where(
            rng.random(len(number)) < EMPTY, 0.0, rng.gamma(0.8, 0.97 / 0.8 / (1 - EMPTY), len(number))
        )
        held = np.where(facilities > 0, facilities + rng.poisson(rng.gamma(0.7, 45.0, facilities.shape)), 0)
        held[:, 0] = rng.poisson(PEOPLE_PER_BLOCK * sizes)
        where = np.repeat(np.arange(held.size), held.ravel())
        block, kind = np.divmod(where, held.shape[1])
        cumulated = (np.cumsum(mixes, axis=1) + np.arange(len(mixes))[:, None]).ravel()
        drawn = np.searchsorted(cumulated, of_group[block] + rng.random(len(block)), side="right")
        cell = np.minimum(drawn - of_group[block] * len(mix), len(mix) - 1)
        yield codes, facilities, block, kind * len(mix) + cell


def _spec() -> str:
    shares = ", ".join(f'{level} = "1/{len(LEVELS)}"' for level in LEVELS)
    bounds = "".join(
        f'[[topdown.bounds]]\nname = "{kind}"\nfile = "facilities.csv"\ncells = {{ housing = ["{kind}"] }}\nfacilities = "{kind}"\n'
        for kind in QUARTERS
    )
    return f"""schema = "pl94"
[source]
file = "people.parquet"
[topdown]
rho = "2.63"
delta = "1e-10"
[topdown.geography]
column = "GEOID"
levels = {json.dumps(LEVELS)}
prefixes = [0, 2, 5, 11, 12, 15]
leaves = "leaves.csv"
[topdown.shares]
levels = {{ {shares} }}
queries = {{ housing = "0.225", voters = "0.675", detailed = "0.1" }}
[[topdown.invariants]]
name = "total"
level = "state"
{bounds}"""


if __name__ == "__main__":
    main()
