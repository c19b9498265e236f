"""The town of the TopDown tests, known later in more detail: years of age, sex and how people belong to their household.

It is not simulated unless a test asks for it, for time.
"""

from __future__ import annotations

import random
from pathlib import Path

from topdown_town import SPEC, _write, people, write_town

YEARS = {"adult": ("18-39", "40+"), "child": ("0-9", "10-17")}
PLACES = {"home": ("holder", "spouse", "parent", "other"), "dorm": ("hall", "convent"), "jail": ("cell",)}
GEOGRAPHY = SPEC[SPEC.index("[topdown.geography]") : SPEC.index("[topdown.queries]")]

LARGER = f"""
[source]
file = "people.csv"

[attributes.race]
labels = ["a", "b", "c"]
[attributes.years]
labels = ["0-9", "10-17", "18-39", "40+"]
[attributes.sex]
labels = ["f", "m"]
[attributes.place]
labels = ["holder", "spouse", "parent", "other", "hall", "convent", "cell"]

[[structural_zeros]]
place = ["holder", "spouse", "parent", "cell"]
years = ["0-9", "10-17"]

[[structural_zeros]]
place = ["convent"]
sex = ["m"]

[topdown]
extends = "first"
epsilon = 1
intervals = 0

[topdown.refines.age]
attribute = "years"
merge = {{ adult = ["18-39", "40+"], child = ["0-9", "10-17"] }}

[topdown.refines.quarters]
attribute = "place"
merge = {{ home = ["holder", "spouse", "parent", "other"], dorm = ["hall", "convent"], jail = ["cell"] }}

{GEOGRAPHY}[topdown.queries]
place = ["place"]
sex_years = ["sex", "years"]

[topdown.shares]
levels = {{ town = "1/4", ward = "1/4", area = "1/4", block = "1/4" }}
queries = {{ place = "1/2", sex_years = "1/2" }}

[[topdown.bounds]]
name = "convents"
file = "convents.csv"
cells = {{ place = ["convent"] }}
facilities = "convents"

[[topdown.rules]]
name = "spouses"
cells = {{ place = ["spouse"] }}
at_most = 1
of = {{ place = ["holder"] }}

[[topdown.rules]]
name = "parents"
cells = {{ place = ["parent"] }}
at_most = 2
of = {{ place = ["holder"] }}
"""

CONVENTS = {"2B1": 1}


def larger_people(seed: int = 7) -> list[tuple[str, ...]]:
    """Records (block, quarters, age, race, years, sex, place) that agree with the larger schema."""
    draw = random.Random(seed)
    records = []
    for block, quarters, age, race in people():
        places = [p for p in PLACES[quarters] if age == "adult" or p not in ("holder", "spouse", "parent")]
        place = draw.choice([p for p in places if p != "convent" or block in CONVENTS])
        sex = "f" if place == "convent" else draw.choice("fm")
        records.append((block, quarters, age, race, draw.choice(YEARS[age]), sex, place))
    return records


def write_larger(folder: Path, first: str = SPEC, larger: str = LARGER) -> tuple[Path, Path]:
    """Write the records with all columns, the public tables and both specs; return the specs' paths."""
    town = write_town(folder, first)
    header = ("block", "quarters", "age", "race", "years", "sex", "place")
    _write(folder / "people.csv", header, larger_people())
    blocks = (folder / "leaves.csv").read_text().split()[1:]
    _write(folder / "convents.csv", ("block", "convents"), [(b, CONVENTS.get(b, 0)) for b in blocks])
    path = folder / "larger.toml"
    path.write_text(larger)
    return town, path
