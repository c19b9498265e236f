"""A small town for the TopDown tests: nine blocks, three kinds of quarters, about 150 people; from a fixed seed.

It is not simulated unless a test asks for it, for time.
"""

from __future__ import annotations

import csv
import random
from pathlib import Path

from louver.engine.engines import ONE_CORE
from louver.topdown.errors.simulate import AssumedTruth, SimulatedCounts
from louver.topdown.estimation.levels import Estimate

BLOCKS = ("1A1", "1A2", "1A3", "1B1", "1B2", "2A1", "2A2", "2B1", "2B2")
QUARTERS = ("home", "dorm", "jail")
AGES = ("adult", "child")
RACES = ("a", "b", "c")
FACILITIES = {"dorm": {"1A2": 1, "2B1": 2}, "jail": {"1B1": 1}}
HOUSES = {block: 12 + 3 * i for i, block in enumerate(BLOCKS)}

SPEC = """
[source]
file = "people.csv"

[attributes.quarters]
labels = ["home", "dorm", "jail"]
[attributes.age]
labels = ["adult", "child"]
[attributes.race]
labels = ["a", "b", "c"]

[[structural_zeros]]
quarters = ["jail"]
age = ["child"]

[topdown]
epsilon = 2
intervals = 0

[topdown.geography]
column = "block"
levels = ["town", "ward", "area", "block"]
prefixes = [0, 1, 2, 3]
leaves = "leaves.csv"

[topdown.queries]
quarters = ["quarters"]
age_race = ["age", "race"]

[topdown.shares]
levels = { town = "1/4", ward = "1/4", area = "1/4", block = "1/4" }
queries = { quarters = "1/4", age_race = "1/4", detailed = "1/2" }

[[topdown.invariants]]
name = "ward total"
level = "ward"

[[topdown.bounds]]
name = "dormitories"
file = "facilities.csv"
cells = { quarters = ["dorm"] }
facilities = "dorm"

[[topdown.bounds]]
name = "prisons"
file = "facilities.csv"
cells = { quarters = ["jail"] }
facilities = "jail"
"""


def people(seed: int = 5) -> list[tuple[str, str, str, str]]:
    """Records (block, quarters, age, race) that agree with the public tables."""
    draw = random.Random(seed)
    records = []
    for number, block in enumerate(BLOCKS):
        for _ in range(draw.randrange(6, 14) if number != 4 else 0):
            records.append((block, "home", draw.choice(AGES), draw.choices(RACES, (6, 3, 1))[0]))
        for quarters, where in FACILITIES.items():
            for _ in range(where.get(block, 0) * draw.randrange(3, 9)):
                age = "adult" if quarters == "jail" else draw.choice(AGES)
                records.append((block, quarters, age, draw.choice(RACES)))
    return records


def write_town(folder: Path, spec: str = SPEC) -> Path:
    """Write records, leaves, public table and spec; return the spec's path."""
    folder.mkdir(parents=True, exist_ok=True)
    _write(folder / "people.csv", ("block", "quarters", "age", "race"), people())
    _write(folder / "leaves.csv", ("block",), [(block,) for block in BLOCKS])
    rows = [(b, FACILITIES["dorm"].get(b, 0), FACILITIES["jail"].get(b, 0), HOUSES[b]) for b in BLOCKS]
    _write(folder / "facilities.csv", ("block", "dorm", "jail", "houses"), rows)
    path = folder / "town.toml"
    path.write_text(spec)
    return path


def _write(path: Path, header: tuple[str, ...], rows: list[tuple]) -> None:
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(header)
        writer.writerows(rows)


def simulated(plan, leaves, seeds):
    """Releases of leaves that stand in for the truth, one for each seed, as the plan would release the records."""
    truth = AssumedTruth.of(plan, leaves)
    for seed in seeds:
        yield Estimate.of(truth.steps(SimulatedCounts(plan, truth.levels, seed), None, ONE_CORE, None))
