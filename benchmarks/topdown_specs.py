"""Files for the TopDown benchmarks: records, public lists and specs for three places.

rhode_island  25,181 blocks of the 2010 Census, 16 cells, one wide line per block
sample        569 blocks of the 2018 End-to-End Census Test, 2,016 cells: races and group-quarters types are published, their cross is
              not, so it is allocated by the rule in `allocate`; the result is SEMI-SYNTHETIC
synthetic     a state drawn by `synthetic_state`, 2,016 cells, one line per occupied cell
"""

from __future__ import annotations

import csv
import gzip
import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from itertools import product
from pathlib import Path

from synthetic_state import N_CELLS, N_HISPANIC, N_RACES, N_TYPES, N_VOTING, SyntheticState

QUARTERS = (
    "household", "correctional", "juvenile", "nursing", "other-institution", "college", "military", "other",
)  # fmt: skip
GROUPS = ("hisp", "white", "black", "aian", "asian", "nhpi", "other", "two")
LEVELS = ("state", "county", "tract", "blkgrp", "block")
PREFIXES = (2, 5, 11, 12, 15)

# P.L. 94-171 numbers the 63 races by how many are combined, with a subtotal before each size.
RACE_ITEMS = (*range(3, 9), *range(11, 26), *range(27, 47), *range(48, 63), *range(64, 70), 71)
TYPE_ITEMS = (3, 4, 5, 6, 8, 9, 10)  # of P5: the seven group-quarters types


PROTOCOL = """levels = { state = "1/5", county = "1/5", tract = "1/5", blkgrp = "1/5", block = "1/5" }
queries = { total = "0.1", voting_age = "0.2", race = "0.3", detailed = "0.4" }"""


def write_rhode_island(
    folder: Path,
    data: Path,
    *,
    epsilon: str,
    block_totals: bool = False,
    shares: str = PROTOCOL,
    name: str = "rhode-island",
) -> Path:
    """Spec of Rhode Island; by default the protocol's: equal levels, 0.1 / 0.2 / 0.3 / 0.4 for total to detailed."""
    with gzip.open(data / "ri_2010_blocks.csv.gz", "rt", newline="") as file:
        rows = list(csv.DictReader(file))
    cells = list(product(("18+", "<18"), GROUPS))

    def count(row: dict[str, str], age: str, group: str) -> int:
        adults = int(row[f"vap_{group}"])
        return adults if age == "18+" else int(row[f"pop_{group}"]) - adults

    header = ["GEOID", *(f"{age} {group}" for age, group in cells)]
    _write(
        folder / "blocks.csv",
        header,
        ([row["GEOID"], *(count(row, *cell) for cell in cells)] for row in rows),
    )
    _write(folder / "leaves.csv", ["GEOID"], ([row["GEOID"]] for row in rows))
    wide = "".join(
        f'"{age} {group}" = {{ voting_age = "{age}", race = "{group}" }}\n' for age, group in cells
    )
    spec = f"""[source]
file = "blocks.csv"
[source.wide]
{wide}
[attributes.voting_age]
labels = ["18+", "<18"]
[attributes.race]
labels = {json.dumps(GROUPS)}
[topdown]
epsilon = {epsilon}
[topdown.geography]
column = "GEOID"
levels = {json.dumps(LEVELS)}
prefixes = {list(PREFIXES)}
leaves = "leaves.csv"
[topdown.queries]
total = []
voting_age = ["voting_age"]
race = ["race"]
[topdown.shares]
{shares}
[[topdown.invariants]]
name = "total"
level = "{"block" if block_totals else "state"}"
"""
    return _spec(folder / f"{name}-{epsilon}-{'block' if block_totals else 'state'}.toml", spec)


def write_sample(folder: Path, data: Path, *, epsilon: str = "4") -> Path:
    """Spec of the 569 blocks: block totals and group-quarters facilities are public."""
    with gzip.open(data / "ri_e2e2018_pl94171.csv.gz", "rt", newline="") as file:
        blocks = [row for row in csv.DictReader(file) if row["SUMLEV"] == "750"]
    types = {row["GEOCODE"]: [int(row[f"P005{item:04d}"]) for item in TYPE_ITEMS] for row in blocks}
    lines = [
        line for row in blocks for line in allocate(row["GEOCODE"], _persons(row), types[row["GEOCODE"]])
    ]
    facilities = [(code, *(int(n > 0) for n in held)) for code, held in types.items()]
    return _write_full(folder, lines, facilities, epsilon, first_level=1, name="sample")


def write_synthetic(folder: Path, state: SyntheticState, *, epsilon: str = "4") -> Path:
    """Spec of a synthetic state: block totals and group-quarters facilities are public."""
    shape = (N_TYPES, N_VOTING * N_HISPANIC * N_RACES)
    lines = (
        (state.geocodes[block], *divmod(int(cell), shape[1]), int(count))
        for block, cell, count in zip(state.block, state.cell, state.count, strict=True)
    )
    facilities = [
        (code, *row[1:]) for code, row in zip(state.geocodes, state.facilities.tolist(), strict=True)
    ]
    assert shape[0] * shape[1] == N_CELLS
    return _write_full(folder, lines, facilities, epsilon, first_level=0, name="synthetic")


def _persons(row: dict[str, str]) -> list[int]:
    """People of a block by voting age x Hispanic x race: 252 counts; P1-P4 give them exactly."""
    # P2 and P4 have one line more before the races, "not Hispanic".
    everyone = [int(row[f"P001{item:04d}"]) for item in RACE_ITEMS]
    adults = [int(row[f"P003{item:04d}"]) for item in RACE_ITEMS]
    others = [int(row[f"P002{item + 2:04d}"]) for item in RACE_ITEMS]
    other_adults = [int(row[f"P004{item + 2:04d}"]) for item in RACE_ITEMS]
    hispanic_adults = [a - b for a, b in zip(adults, other_adults, strict=True)]
    other_minors = [a - b for a, b in zip(others, other_adults, strict=True)]
    minors = [a - b for a, b in zip(everyone, adults, strict=True)]
    hispanic_minors = [a - b for a, b in zip(minors, other_minors, strict=True)]
    return [*other_adults, *hispanic_adults, *other_minors, *hispanic_minors]


def allocate(code: str, persons: Sequence[int], types: Sequence[int]) -> Iterator[tuple[str, int, int, int]]:
    """Say who of a block lives in its group quarters: the rule that makes the sample semi-synthetic.

    People stand in the order of a hash of seed, block, cell and number. Each type in turn takes the first of them that are of
    its age (juvenile: minors; all others: adults), then, if these do not suffice, the first that are left.
    """
    n_adults = N_HISPANIC * N_RACES
    people = [(cell, number) for cell, count in enumerate(persons) for number in range(count)]
    people.sort(key=lambda who: hashlib.sha256(f"louver 1/{code}/{who[0]}/{who[1]}".encode()).digest())
    held = [[0] * len(persons) for _ in QUARTERS]
    for number, wanted in enumerate(types, start=1):
        wants_minors = QUARTERS[number] == "juvenile"
        people.sort(key=lambda who: (who[0] >= n_adults) != wants_minors)
        for cell, _ in people[:wanted]:
            held[number][cell] += 1
        people = people[wanted:]
    for cell, _ in people:
        held[0][cell] += 1
    for quarters, counts in enumerate(held):
        for cell, count in enumerate(counts):
            if count:
                yield code, quarters, cell, count


def _write_full(
    folder: Path,
    lines: Iterable[tuple[str, int, int, int]],
    facilities: Sequence[Sequence[object]],
    epsilon: str,
    *,
    first_level: int,
    name: str,
) -> Path:
    """Counted lines (block, type, voting age x Hispanic x race, count) with the full P.L. 94-171 schema."""
    combined = N_HISPANIC * N_RACES
    people = (
        (code, QUARTERS[t], ("18+", "<18")[cell // combined], ("no", "yes")[cell % combined // N_RACES],
         f"r{cell % N_RACES:02d}", count)
        for code, t, cell, count in lines
    )  # fmt: skip
    _write(folder / f"{name}.csv", ["GEOID", "quarters", "voting_age", "hispanic", "race", "count"], people)
    _write(folder / f"{name}-leaves.csv", ["GEOID"], ([row[0]] for row in facilities))
    _write(folder / f"{name}-facilities.csv", ["GEOID", *QUARTERS[1:]], facilities)
    levels, prefixes = LEVELS[first_level:], PREFIXES[first_level:]
    shares = ", ".join(f'{level} = "1/{len(levels)}"' for level in levels)
    bounds = "".join(
        f'[[topdown.bounds]]\nname = "{kind}"\nfile = "{name}-facilities.csv"\ncells = {{ quarters = ["{kind}"] }}\n'
        f'facilities = "{kind}"\n'
        for kind in QUARTERS[1:]
    )
    spec = f"""[source]
file = "{name}.csv"
weight = "count"
[attributes.quarters]
labels = {json.dumps(QUARTERS)}
[attributes.voting_age]
labels = ["18+", "<18"]
[attributes.hispanic]
labels = ["no", "yes"]
[attributes.race]
labels = {json.dumps([f"r{i:02d}" for i in range(N_RACES)])}
[topdown]
epsilon = {epsilon}
[topdown.geography]
column = "GEOID"
levels = {json.dumps(levels)}
prefixes = {list(prefixes)}
leaves = "{name}-leaves.csv"
[topdown.queries]
quarters = ["quarters"]
people = ["voting_age", "hispanic", "race"]
[topdown.shares]
levels = {{ {shares} }}
queries = {{ quarters = "0.225", people = "0.675", detailed = "0.1" }}
[[topdown.invariants]]
name = "total"
level = "block"
{bounds}"""
    return _spec(folder / f"{name}.toml", spec)


def _spec(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def _write(path: Path, header: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(header)
        writer.writerows(rows)
