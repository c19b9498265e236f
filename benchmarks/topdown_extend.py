"""DHC persons as an extension of a PL94 release, on a synthetic state: projection, invariants, zeros, edits, seconds, memory.

    python benchmarks/topdown_extend.py --blocks 2000 --people 80000
    python benchmarks/topdown_extend.py --blocks 2000 --people 80000 --evaluate 3 [--first-seed 0] [--without-bands] [--intervals 3]

Both releases are paid for by one ledger and verified; a third run changes one byte of the first release and must be refused.
With `--evaluate` both are seeded instead, and errors of the joint tables are told by level beside a direct release: every noisy answer of the
same variance by itself, set to zero where it is below; and what share of some residents is of the age that all of them are. Race is that of
the first release, beside sums of its own noisy answers. With `--intervals` also how many 90 % intervals hold the truth, and stated over true error.
`--without-bands` leaves relationship x age bands unmeasured. Nothing in the data describes a real place. There is no peer that extends a release.
"""

from __future__ import annotations

import argparse
import csv
import resource
import shutil
import tempfile
import time
import tomllib
from fractions import Fraction
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from synthetic_state import N_HISPANIC, N_RACES, N_VOTING, SyntheticState, synthetic_state

import louver
from louver.errors import InputError
from louver.privacy.budget import Measure
from louver.privacy.ledger import Ledger
from louver.privacy.neighbours import Relation
from louver.topdown import extend, topdown
from louver.topdown.problem import Query

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
queries = {{ relationship = "1/4", relationship_age = "1/4", sex_age = "1/2" }}

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
    is_over = (adult == 0) | (quarters == NURSING)  # the state counts adults first, and has children anywhere
    age = np.where(is_over, rng.integers(18, 90, len(cell)), rng.integers(0, 18, len(cell)))
    relationship, units = _households(rng, block, quarters, is_over, len(state.geocodes))
    age = np.where(is_over, _ages(rng, relationship, quarters), age)
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
    age = _within_limits(large, relationship, age)
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


YOUNGEST, OLDEST = np.full(15, 18), np.full(15, 89)
YOUNGEST[[0, 1, 6]], OLDEST[[2, 5, 11, 12, 13]] = (22, 22, 55), (45, 60, 40, 40, 55)
NURSING = 3
IN_QUARTERS = ((18, 55), (18, 20), (65, 100), (18, 90), (18, 23), (18, 35), (18, 70))  # by major type


def _ages(rng, relationship, quarters):
    """Ages of adults: parents are old, grown children and roomers young, and each kind of quarters has ages of its own."""
    low, high = YOUNGEST[relationship], OLDEST[relationship]
    for major, (least, most) in enumerate(IN_QUARTERS, start=1):
        low, high = np.where(quarters == major, least, low), np.where(quarters == major, most, high)
    return rng.integers(low, high + 1)


def _within_limits(schema, relationship, age):
    """Ages in quarters moved into the limits of the schema's edit rules, as they are for real people."""
    labels, age = schema["attributes"]["relationship"]["labels"], age.copy()
    for rule in schema["topdown"]["rules"]:
        if rule["at_most"] == 0:
            usual = sorted(set(range(116)) - {int(x) for x in rule["cells"]["age"]})
            here = np.isin(relationship, [labels.index(x) for x in rule["cells"]["relationship"]])
            age[here] = np.clip(age[here], usual[0], usual[-1])
    return age


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


def evaluate(blocks: int, people: int, seeds: range, *, bands: bool, intervals: int) -> None:
    """Errors of an extension by level, beside those of noisy answers by themselves; and how many intervals hold."""
    state = synthetic_state(
        tracts=(20, 8, 4), block_groups=max(40, blocks // 20), blocks=blocks, people=people, seed=7
    )
    own: dict[tuple[str, str], list[float]] = {}
    direct: dict[tuple[str, str], list[float]] = {}
    fitting: dict[str, list[float]] = {}
    held: dict[tuple[str, str], list[np.ndarray]] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_state(folder, state)
        if not bands:
            text = (folder / "larger.toml").read_text()
            text = text.replace('relationship = "1/4", relationship_age = "1/4"', 'relationship = "1/2"')
            (folder / "larger.toml").write_text(text)
        rng = np.random.default_rng(3)
        for seed in seeds:
            shutil.rmtree(folder / "first", ignore_errors=True)
            first = topdown(folder / "first.toml", out=folder / "first", seed=seed)
            release = extend(folder / "larger.toml", seed=seed, evaluate=True, intervals=intervals)
            levels = tuple(release.levels())[::-1]
            for level, query, variance, true in _truths(release, first, folder / "people.parquet"):
                key = (release.plan.design.spine.names[level], query.name)
                found = query.answer(levels[level])
                own.setdefault(key, []).append(float(np.abs(found - true).mean()))
                if variance is not None:
                    noise = np.rint(rng.laplace(0, (variance / 2) ** 0.5, true.shape))
                    direct.setdefault(key, []).append(
                        float(np.abs(np.maximum(true + noise, 0) - true).mean())
                    )
                if release.known_error is not None and query.name in release.known_error.model.queries:
                    held.setdefault(key, []).append(_held(release.known_error, level, query, found, true))
            for what, share in _fitting(release, folder / "people.parquet"):
                fitting.setdefault(what, []).append(share)
            print(f"seed {seed}: {release.seconds}", flush=True)
    print(f"{blocks:,} blocks, {len(seeds)} seeds, {'with' if bands else 'without'} relationship x age bands")
    for (level, query), errors in own.items():
        beside = direct.get((level, query))
        line = f"  {level:8}{query:18}{np.mean(errors):9.3f}"
        line += "" if beside is None else f"{np.mean(beside):9.3f}{np.mean(errors) / np.mean(beside):8.2f}"
        if (level, query) in held:
            n, n_held, stated, squares = np.sum(held[level, query], axis=0)
            line += f"   holds {n_held / max(n, 1):.1%} of {n:,.0f}, stated over true {(stated / max(squares, 1e-9)) ** 0.5:.2f}"
        print(line)
    for what, shares in fitting.items():
        print(f"  {what}: {np.mean(shares):.0%}")


def _truths(release, first, path: Path):
    """Level, query, variance of one noisy answer and true answers (regions, rows): of every measured query, the total, and race."""
    design = release.plan.design
    records = pq.read_table(path)
    codes = []
    for attribute in design.attributes:
        labels = pa.array(attribute.labels)
        codes.append(pc.index_in(records[attribute.name].cast(pa.string()), labels).to_numpy())
    cell = np.ravel_multi_index(codes, design.shape)
    leaf = pc.index_in(records["GEOID"].cast(pa.string()), pa.array(design.spine.leaves)).to_numpy()
    axis = next(i for i, attribute in enumerate(design.attributes) if attribute.name == "race")
    race_of = np.unravel_index(np.arange(design.n_cells), design.shape)[axis].astype(np.int64)
    race = Query(name="race", row_of=race_of, n_rows=design.shape[axis], axes=(axis,))
    total = next(query for query in design.published_queries if query.n_rows == 1)
    for level, measured in enumerate(release.plan.measured):
        region = leaf
        for starts in reversed(design.spine.starts[level:]):
            region = np.searchsorted(starts, region, side="right") - 1
        voters = next(one for one in first.plan.measured[level] if one.query.name == "voters")
        wanted = [(one.query, one.distribution.variance) for one in measured]
        wanted += [(race, voters.distribution.variance * voters.query.n_rows / race.n_rows), (total, None)]
        for query, variance in wanted:
            n = design.spine.sizes[level] * query.n_rows
            true = np.bincount(region * query.n_rows + query.row_of[cell], minlength=n)
            yield level, query, variance, true.reshape(-1, query.n_rows)


def _held(known, level: int, query: Query, found: np.ndarray, true: np.ndarray) -> np.ndarray:
    """Of published numbers above zero: how many, how many with the truth in their interval, squares stated and true."""
    region, row = np.nonzero(found)
    number, truth = found[region, row], true[region, row]
    interval = known.intervals(level, query, region, row, number)
    inside = (interval.lower <= truth) & (truth <= interval.upper)
    squares = np.square(interval.standard_error).sum(), np.square(number - truth).sum()
    return np.array([len(number), inside.sum(), *squares], dtype=np.float64)


def _fitting(release, path: Path):
    """Shares of some people who are of certain ages, and the same in truth."""
    records = pq.read_table(path, columns=["relationship", "age"])
    true = [records[name].to_numpy() for name in ("relationship", "age")]
    codes = dict(
        zip(
            (attribute.name for attribute in release.plan.design.attributes),
            np.unravel_index(release.estimate.leaves.cell, release.plan.design.shape),
            strict=True,
        )
    )
    count, age = release.estimate.leaves.count, codes["age"]
    labels = next(a for a in release.plan.design.attributes if a.name == "relationship").labels
    for label, low, high in (("301", 60, 115), ("501", 16, 29), ("601", 17, 39), ("parent", 50, 115)):
        here = codes["relationship"] == labels.index(label)
        fits = here & (age >= low) & (age <= high)
        yield f"{label} of {low} to {high}", float(count[fits].sum() / max(count[here].sum(), 1))
        ages = true[1][true[0] == label].astype(np.int64)
        yield f"{label} of {low} to {high} in truth", float(((ages >= low) & (ages <= high)).mean())


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
    parser.add_argument("--evaluate", type=int, metavar="SEEDS")
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--without-bands", action="store_true")
    parser.add_argument("--intervals", type=int, default=0, help="simulations for intervals, with --evaluate")
    given = parser.parse_args()
    if given.evaluate:
        seeds = range(given.first_seed, given.first_seed + given.evaluate)
        evaluate(given.blocks, given.people, seeds, bands=not given.without_bands, intervals=given.intervals)
    else:
        main(given.blocks, given.people)
