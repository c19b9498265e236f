"""Unions of leaves: what the tables say where a union is a region, counts that add up, and bad input in one sentence."""

from __future__ import annotations

import shutil

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from louver.errors import InputError
from louver.topdown import area, topdown
from releases import edit
from topdown_town import BLOCKS, SPEC, write_town

SECRET = "Zyx77Confidential"


@pytest.fixture(scope="module")
def released(tmp_path_factory):
    folder = tmp_path_factory.mktemp("area")
    spec = SPEC.partition("[[topdown.bounds]]")[0].replace("intervals = 0", "intervals = 3")
    return topdown(write_town(folder / "town", spec), out=folder / "out", seed=4).path


@pytest.fixture
def leaves(tmp_path):
    path = tmp_path / "area.csv"
    path.write_text("1A1\n1A3\n2B1\n")
    return path


def test_counts_are_those_of_the_people(released, leaves):
    people = [row for row in pq.read_table(released / "data/microdata.parquet").to_pylist()
              if row["block"] in ("1A1", "1A3", "2B1")]  # fmt: skip
    found = area(released, leaves=leaves)
    assert (found.leaves, found.total.count) == (3, len(people))
    for count in (found.total, *found.counts):
        inside = [row for row in people if all(row[a] == label for a, label in count.labels.items())]
        assert count.count == len(inside)
        assert 0 <= count.lower_90 <= count.count <= count.upper_90 and count.standard_error >= 0
    assert not any(c.labels == {"quarters": "jail", "age": "child", "race": "a"} for c in found.counts)
    assert area(released, leaves=["2B1", "1A1", "1A3"]) == found


@pytest.mark.parametrize(("level", "region"), [("area", "1A"), ("ward", "2"), ("town", ""), ("block", "1A2")])
def test_a_whole_region_has_the_errors_of_its_tables(released, level, region):
    found = area(released, leaves=[block for block in BLOCKS if block.startswith(region)])
    table = pq.read_table(released / "data/tables/quarters.parquet").to_pylist()
    rows = {row["quarters"]: row for row in table if (row["level"], row["region"]) == (level, region)}
    for count in found.counts:
        if count.query == "quarters" and count.count:
            row = rows[count.labels["quarters"]]
            names = ("count", "standard_error", "lower_90", "upper_90")
            assert [getattr(count, name) for name in names] == [row[name] for name in names]


def test_what_is_exact_above_stays_exact_in_a_union_of_it(released):
    wards = area(released, leaves=list(BLOCKS))
    assert (wards.total.standard_error, wards.total.lower_90) == (0, wards.total.count)
    part = area(released, leaves=list(BLOCKS)[:-1])
    assert part.total.standard_error > 0


def test_a_region_stands_for_its_leaves(released, tmp_path):
    path = tmp_path / "area.txt"
    path.write_text("2\n1A\n1B1\n")
    wanted = [block for block in BLOCKS if block.startswith(("2", "1A")) or block == "1B1"]
    assert area(released, leaves=path) == area(released, leaves=wanted)
    assert area(released, leaves=["1A"]) == area(released, leaves=[b for b in BLOCKS if b.startswith("1A")])


def test_a_header_and_other_columns_are_taken(released, tmp_path):
    path = tmp_path / "area.csv"
    path.write_text("\ufeffname,block\nx,1A1\n\ny,2B1\n", encoding="utf-8")
    assert area(released, leaves=path).leaves == 2


def test_regions_by_columns(tmp_path):
    spec = """
[source]
file = "people.csv"
[attributes.sex]
labels = ["f", "m"]
[topdown]
epsilon = 1
[topdown.geography]
columns = ["town", "block"]
levels = ["town", "block"]
leaves = "leaves.csv"
[topdown.shares]
levels = { town = "1/2", block = "1/2" }
queries = { detailed = 1 }
"""
    (tmp_path / "leaves.csv").write_text("town,block\nA,1\nA,2\nA,3\n")
    (tmp_path / "people.csv").write_text("town,block,sex\nA,1,f\nA,2,m\n")
    (tmp_path / "spec.toml").write_text(spec)
    out = topdown(tmp_path / "spec.toml", seed=1, out=tmp_path / "out").path
    (tmp_path / "area.csv").write_text("block,town\n1,A\n3,A\n")
    assert area(out, leaves=tmp_path / "area.csv") == area(out, leaves=["A/1", "A/3"])
    (tmp_path / "area.csv").write_text("block,town\n,A\n")
    assert area(out, leaves=tmp_path / "area.csv") == area(out, leaves=["A/1", "A/2", "A/3"])


def _text(text):
    return lambda out, file: file.write_text(text, encoding="utf-8")


def _without(name):
    return lambda out, file: (out / name).unlink()


def _broken(name):
    return lambda out, file: (out / name).write_bytes(b"PAR1")


def _column(name, column, value):
    def change(out, file):
        table = pq.read_table(out / name)
        values = [value] * len(table)
        pq.write_table(
            table.set_column(table.column_names.index(column), column, pa.array(values)), out / name
        )

    return change


def _rolled(out, file):
    table = pq.read_table(out / "data/regions.parquet")
    pq.write_table(table.take(np.roll(np.arange(len(table)), 3)), out / "data/regions.parquet")


BAD = {
    "no file of leaves": (lambda out, file: file.unlink(), "area.csv does not exist"),
    "a folder for a file": (lambda out, file: (file.unlink(), file.mkdir()), "not a text file with one leaf per line"),
    "a file that is no text": (lambda out, file: file.write_bytes(b"\xff\xfe\x00\xd8"), "not a text file"),
    "an empty file": (_text(""), "lists no leaves"),
    "a header alone": (_text("block\n"), "lists no leaves"),
    "an unknown leaf": (_text(f"1A1\n{SECRET}\n"), "on row 2"),
    "a leaf and its region": (_text("1A1\n1A\n"), "row 2 that row 1 has too"),
    "the code of the root": (_text("name,block\nx,\n"), "no region of the release .such as a block. on row 2"),
    "a leaf twice": (_text("1A1\n1A2\n1A1\n"), "row 3 that row 1 has too"),
    "several columns without a header": (_text("1A1,1A2\n"), "2 columns on row 1"),
    "a row that is too short": (_text("name,block\nx\n"), "on row 2"),
    "no release": (lambda out, file: shutil.rmtree(out), "not a release directory"),
    "a manifest that is none": (lambda out, file: (out / "manifest.json").write_text("{"), "manifest"),
    "a release of another verb": (lambda out, file: edit(out, lambda x: x.update(verb="groups")), "not a TopDown release"),
    "a release without intervals": (
        lambda out, file: edit(out, lambda x: x["promises"][0].update(errors=None)),
        "--intervals 3",
    ),
    "a promise that is none": (lambda out, file: edit(out, lambda x: x["promises"][0].pop("levels")), "damaged"),
    "no promise": (lambda out, file: edit(out, lambda x: x.update(promises=[])), "damaged"),
    "no microdata": (_without("data/microdata.parquet"), "damaged"),
    "broken microdata": (_broken("data/microdata.parquet"), "damaged"),
    "no errors": (_without("data/errors.parquet"), "damaged"),
    "errors of other queries": (_column("data/errors.parquet", "query", "other"), "damaged"),
    "broken regions": (_broken("data/regions.parquet"), "damaged"),
    "regions of other parents": (_column("data/regions.parquet", "parent", "other"), "damaged"),
    "regions of one level": (_column("data/regions.parquet", "level", "block"), "damaged"),
    "regions in another order": (_rolled, "damaged"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_one_sentence(released, leaves, tmp_path, name):
    out = tmp_path / "copy"
    shutil.copytree(released, out)
    change, told = BAD[name]
    change(out, leaves)
    with pytest.raises(InputError, match=told) as caught:
        area(out, leaves=leaves)
    assert SECRET not in str(caught.value) and "\n" not in str(caught.value)
