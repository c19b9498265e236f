"""A spine in a release: recorded, verified leaf by leaf, and asked about by the names of areas and geographic regions."""

from __future__ import annotations

import json
import shutil

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from louver.errors import InputError
from louver.release.verify import verify
from louver.report.topdown import topdown_report
from louver.topdown import area, areas, topdown
from releases import doubt, edit
from topdown_town import SPEC, write_town

SECTION = '[topdown.spine]\nareas = "areas.csv"\nfixed = "ward"\ntolerance = 9\n[topdown.queries]'
TOWN = SPEC.replace('area = "1/4"', '"part 1" = "1/4"').replace("[topdown.queries]", SECTION)
AREAS = "leaf,area,kind\n1A1,north,district\n1B,north,district\n1A2,south,district\n2A,south,district\n1A1,park,tribal\n"
SPINE = "public/spine.parquet"


@pytest.fixture(scope="module")
def released(tmp_path_factory):
    folder = tmp_path_factory.mktemp("spine")
    spec = TOWN.partition("[[topdown.bounds]]")[0].replace("intervals = 0", "intervals = 2")
    path = write_town(folder / "town", spec)
    (folder / "town" / "areas.csv").write_text(AREAS)
    return topdown(path, out=folder / "out", seed=4).path


def test_a_release_holds_all_its_promises(released):
    failed = [check.name for check in verify(released).checks if not check.passed]
    assert failed == ["private noise"]
    people = pq.read_table(released / "data/microdata.parquet")
    assert set(people["block"].to_pylist()) <= set(pq.read_table(released / SPINE)["leaf"].to_pylist())


def changed(column, row, value):
    def change(table):
        values = table[column].to_pylist()
        values[row] = values[value] if isinstance(value, int) else value
        return table.set_column(table.column_names.index(column), column, pa.array(values, pa.string()))

    return change


def exchanged(column, one, other):
    def change(table):
        values = table[column].to_pylist()
        values[one], values[other] = values[other], values[one]
        return table.set_column(table.column_names.index(column), column, pa.array(values, pa.string()))

    return change


CHANGES = {
    "a leaf in two places": (lambda t: pa.concat_tables([t, t.slice(0, 1)]), "two places"),
    "a leaf that is gone": (lambda t: t.slice(1), "lacks a leaf"),
    "an unknown leaf": (lambda t: changed("leaf", 0, "other")(t), "lacks a leaf"),
    "a leaf in another region": (lambda t: changed("spine: part 1", 0, len(t) - 1)(t), "not those of the spine"),
    "an unknown region": (lambda t: changed("spine: part 1", 0, "other")(t), "not those of the spine"),
    "a region left out": (lambda t: changed("spine: ward", 0, None)(t), "lacks a region"),
    "another area": (
        lambda t: changed("area: district", t["leaf"].to_pylist().index("2A1"), "elsewhere")(t), "do not follow"),
    "areas left out": (lambda t: t.drop_columns(["area: tribal"]), "other columns"),
    "leaves exchanged": (lambda t: exchanged("leaf", 0, 2)(t), "does not match the people"),
    "a geographic region in two wards": (
        lambda t: changed("geography: area", 0, len(t) - 1)(t), "does not follow from the codes"),
}  # fmt: skip


@pytest.mark.parametrize("name", CHANGES)
def test_a_leaf_that_does_not_lie_where_the_rules_say_is_found(released, tmp_path, name):
    change, expected = CHANGES[name]
    out = tmp_path / "out"
    shutil.copytree(released, out)
    pq.write_table(change(pq.read_table(out / SPINE)), out / SPINE)
    check = doubt(out, "topdown")
    assert not check.passed and expected in check.found, check.found


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"fixed": "town"}, "levels are not those"),
        ({"fixed": "block"}, "no fixed level"),
        ({"geography": ["town", "ward", "ward", "block"]}, "no fixed level"),
        ({"geography": ["town", "ward", "area", "house"]}, "levels are not those"),
        ({"rules": [{"geography": "house", "areas": []}]}, "unknown level or kind"),
        ({"rules": [{"geography": "area", "areas": ["other"]}]}, "unknown level or kind"),
        ({"rules": [{"geography": "ward", "areas": []}]}, "do not follow"),
        ({"prefixes": [0, 1, 2]}, "one for each level"),
        ({"prefixes": [0, 2, 2, 3]}, "does not follow from the codes"),
        ({"kinds": ["district", "district"]}, "levels are not those"),
    ],
)
def test_rules_that_are_not_those_of_the_regions_are_found(released, tmp_path, change, expected):
    out = tmp_path / "out"
    shutil.copytree(released, out)
    edit(out, lambda manifest: manifest["promises"][0]["spine"].update(change))
    check = doubt(out, "topdown")
    assert not check.passed and expected in check.found, check.found


def test_a_spine_that_nobody_asked_for_is_found(released, tmp_path):
    out = tmp_path / "out"
    shutil.copytree(released, out)
    edit(out, lambda manifest: manifest["parameters"].pop("spine"))
    failed = {check.name: check.found for check in verify(out).checks if not check.passed}
    assert "a different spine from the request" in failed["manifest contents"]


def test_areas_and_geographic_regions_have_their_names(released):
    people = pq.read_table(released / "data/microdata.parquet")["block"].to_pylist()
    assert area(released, leaves=["south"]).total.count == sum(b in ("1A2", "2A1", "2A2") for b in people)
    assert area(released, leaves=["1A"]).total.count == sum(b.startswith("1A") for b in people)
    assert area(released, leaves=["district: south"]) == area(released, leaves=["1A2", "2A1", "2A2"])
    table = areas(released)
    assert list(table.areas)[:3] == ["district: north", "district: south", "tribal: park"]
    assert {name for name in table.areas if name.startswith("area")} == {
        f"area: {a}" for a in ("1A", "1B", "2A", "2B")
    }
    for one in table.areas.values():
        assert one.total.lower_90 <= one.total.count <= one.total.upper_90


def test_a_release_without_a_spine_has_no_areas_of_its_own(tmp_path):
    spec = SPEC.partition("[[topdown.bounds]]")[0].replace("intervals = 0", "intervals = 1")
    out = topdown(write_town(tmp_path / "town", spec), out=tmp_path / "out", seed=4).path
    with pytest.raises(InputError, match="option --areas is missing"):
        areas(out)
    assert "spine" not in json.loads((out / "manifest.json").read_text())["parameters"]


def test_the_page_says_what_regions_share(tmp_path):
    path = write_town(tmp_path / "town", TOWN.partition("[[topdown.bounds]]")[0])
    (tmp_path / "town" / "areas.csv").write_text(AREAS)
    out = topdown(path, out=tmp_path / "out", seed=4, report=topdown_report).path
    rule = json.loads((out / "manifest.json").read_text())["promises"][0]["spine"]["rules"][0]
    shared = " and ".join([rule["geography"], *rule["areas"]])
    assert f"part 1: the same {shared}. public/spine.parquet" in (out / "report.html").read_text()
    assert [check.name for check in verify(out).checks if not check.passed] == ["private noise"]
