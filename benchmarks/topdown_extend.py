"""DHC persons as an extension of a PL94 release, on a synthetic state: projection, invariants, zeros, edits, seconds, memory.

    python benchmarks/topdown_extend.py --blocks 2000 --people 80000

Both releases are paid for by one ledger and verified; a third run changes one byte of the first release and must be refused.
Nothing in the data describes a real place. There is no peer that extends a release.
"""

from __future__ import annotations

import argparse
import csv
import resource
import tempfile
import time
import tomllib
from fractions import Fraction
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from synthetic_state import N_HISPANIC, N_RACES, N_VOTING, SyntheticState, synthetic_state

import louver
from louver.errors import InputError
from louver.privacy.budget import Measure
from louver.privacy.ledger import Ledger
from louver.privacy.neighbours import Relation
from louver.topdown import extend, topdown

READY = Path(louver.__file__).parent / "schema" / "ready"
GEOGRAPHY = """
[source]
file = "people.parquet"

[topdown.geography]
column = "GEOID"
prefixes = [2, 5, 11, 12, 15]
levels = ["state", "county", "tract", "blkgrp", "block"]
leaves = "leaves.csv"
"""
SHARES = 'levels = { state = "1/5", county = "1/5", tract = "1/5", blkgrp = "1/5", block = "1/5" }'
FIRST = f"""schema = "pl94"
{GEOGRAPHY}
[topdown]
epsilon = 4
estimator = "plain"
intervals = 0
extended_by = "larger.toml"              # facilities by major type and household limits follow from there

[topdown.shares]
{SHARES}
queries = {{ housing = "1/4", voters = "1/2", detailed = "1/4" }}

[[topdown.invariants]]
name = "state total"
level = "state"
"""
LARGER = f"""schema = "dhc-persons"
{GEOGRAPHY}
[topdown]
extends = "first"
epsilon = 4

[topdown.shares]
{SHARES}
queries = {{ relationship = "1/2", sex_age = "1/2" }}

[[topdown.bounds]]
name = "housing units"
file = "public.csv"
cells = {{ relationship = ["householder"] }}
upper = "units"
"""


def bound(name: str, attribute: str, label: str, column: str) -> str:
    """At least one person for each facility, nobody where there is none."""
    return (
        f'\n[[topdown.bounds]]\nname = "{name}"\nfile = "public.csv"\n'
        f'cells = {{ {attribute} = ["{label}"] }}\nfacilities = "{column}"\n'
    )


def write_state(folder: Path, state: SyntheticState, seed: int = 11) -> None:
    """Records with all columns, leaves, public table and both specs."""
    rng = np.random.default_rng(seed)
    small = tomllib.loads((READY / "pl94.toml").read_text())["attributes"]
    large = tomllib.loads((READY / "dhc-persons.toml").read_text())
    person = np.repeat(np.arange(len(state.cell)), state.count)
    block, cell = state.block[person], state.cell[person]
    quarters, adult, hispanic, race = np.unravel_index(cell, (8, N_VOTING, N_HISPANIC, N_RACES))
    is_over = adult == 0  # the state counts adults first
    age = np.where(is_over, rng.integers(18, 90, len(cell)), rng.integers(0, 18, len(cell)))
    relationship, units = _households(rng, block, quarters, is_over, len(state.geocodes))
    types = list(large["topdown"]["refines"]["housing"]["merge"].items())
    facilities = np.zeros((len(state.geocodes), 28), dtype=np.int64)
    codes = [code for _, own in types[1:] for code in own]
    for major, (_, own) in enumerate(types[1:], start=1):
        where = np.flatnonzero(state.facilities[:, major])
        chosen = rng.integers(0, len(own), len(where))
        column = codes.index(own[0]) + chosen
        facilities[where, column] = state.facilities[where, major]
        of_block = np.full(len(state.geocodes), -1)
        of_block[where] = column
        here = quarters == major
        relationship[here] = 15 + of_block[block[here]]
    labels = {name: one["labels"] for name, one in (large["attributes"] | small).items()}
    columns = {
        "race": race,
        "hispanic": hispanic,
        "voting_age": is_over.astype(int),
        "housing": quarters,
        "age": age,
        "relationship": relationship,
        "sex": rng.integers(0, 2, len(cell)),
    }
    table = {"GEOID": pa.array(np.array(state.geocodes)[block])}
    table |= {name: pa.array(np.array(labels[name])[code]) for name, code in columns.items()}
    pq.write_table(pa.table(table), folder / "people.parquet")
    with (folder / "public.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["GEOID", "units", *codes])
        for b, code in enumerate(state.geocodes):
            writer.writerow([code, units[b], *facilities[b]])
    (folder / "leaves.csv").write_text("GEOID\n" + "\n".join(state.geocodes) + "\n")
    (folder / "first.toml").write_text(FIRST)
    (folder / "larger.toml").write_text(LARGER + "".join(bound(c, "relationship", c, c) for c in codes))


def _households(rng, block, quarters, is_over, n_blocks):
    """Places in households that keep every rule: about one householder for two adults, at most one couple each."""
    relationship = np.full(len(block), 2)
    units = np.zeros(n_blocks, dtype=np.int64)
    for b in np.unique(block):
        adults = np.flatnonzero((block == b) & (quarters == 0) & is_over)
        n = (len(adults) + 1) // 2
        if not n and ((block == b) & (quarters == 0)).any():
            n = 1  # a unit, though its householder is under age
        units[b] = n + rng.binomial(n + 1, 0.1)  # about one in ten is vacant
        relationship[adults[:n]] = 0
        rest = adults[n:]
        relationship[rest] = rng.choice(
            [1, 13, 2, 5, 6, 11, 12], len(rest), p=[0.5, 0.1, 0.2, 0.05, 0.05, 0.05, 0.05]
        )
    children = np.flatnonzero((quarters == 0) & ~is_over)
    relationship[children] = rng.choice([2, 3, 4, 7, 10], len(children), p=[0.8, 0.04, 0.06, 0.06, 0.04])
    return relationship, units


def main(blocks: int, people: int, out: Path | None = None) -> dict[str, float]:
    state = synthetic_state(
        tracts=(20, 8, 4), block_groups=max(40, blocks // 20), blocks=blocks, people=people, seed=7
    )
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) if out is None else out
        write_state(folder, state)
        Ledger.create(folder / "people.parquet.ledger", Measure.EPSILON, Relation.CHANGE_RECORD, Fraction(8))
        seconds = {}
        began = time.perf_counter()
        topdown(folder / "first.toml", out=folder / "first", engine="local:2")
        seconds["first"] = time.perf_counter() - began
        began = time.perf_counter()
        release = extend(folder / "larger.toml", out=folder / "larger", engine="local:2")
        seconds["extension"] = time.perf_counter() - began
        began = time.perf_counter()
        passed = louver.verify(folder / "first").passed and louver.verify(folder / "larger").passed
        seconds["verify both"] = time.perf_counter() - began
        spent = Ledger(folder / "people.parquet.ledger").state().spent
        print(f"{blocks:,} blocks, {release.n_people:,} people, {release.plan.design.n_cells:,} cells")
        print(f"verified: {passed}; ledger: epsilon {spent} of two debits")
        print(
            "seconds: " + ", ".join(f"{what} {value:.1f}" for what, value in seconds.items()), release.seconds
        )
        print(f"peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20:.2f} GB")
        print(f"edits: {release.edits.people} people in {release.edits.leaves} blocks")
        for rule, broken in release.edits.broken_before.items():
            if broken:
                print(f"  {rule}: {broken} blocks before, {release.edits.broken_after[rule]} after")
        print("tampered first release: " + _tampered(folder))
        return {**seconds, "edited": release.edits.people, "passed": passed}


def _tampered(folder: Path) -> str:
    path = folder / "first/data/microdata.parquet"
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(bytes(content))
    try:
        extend(folder / "larger.toml", out=folder / "again")
    except InputError as error:
        return f"refused ({error})"
    return "NOT REFUSED"


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--blocks", type=int, default=2000)
    parser.add_argument("--people", type=int, default=80_000)
    given = parser.parse_args()
    main(given.blocks, given.people)
