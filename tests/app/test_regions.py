"""Regions without a browser: the tree of a release is its published numbers, folds as trees do, and outlines find their regions."""

from __future__ import annotations

import json
import shlex
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from louver.app.jobs.regions import area_of, area_of_file, area_of_text, compared, outlined, regions_of
from louver.app.region_view import ChosenArea, copied, toggled
from louver.app.regions import Folded, Region, Regions, coloured, in_words, matched
from louver.cli.app import app as louver
from louver.data.samples import sample_outlines
from louver.errors import InputError
from louver.groups import groups
from louver.run import Run
from louver.topdown import area, topdown
from louver.topdown.errors.area import region_totals
from topdown_town import SPEC, write_town


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("regions")
    (made / "out").mkdir()
    spec = SPEC.partition("[[topdown.bounds]]")[0]
    topdown(write_town(made / "town", spec), out=made / "out" / "unsure", seed=4)
    topdown(write_town(made / "town", spec), out=made / "out" / "town", seed=4, intervals=3)
    people = made / "people.csv"
    people.write_text("state,county,home\nA,1,1\nA,1,1\nA,2,2\nB,3,3\nB,3,3\nB,3,4\n")
    domain = made / "domain.csv"
    domain.write_text("state,county\nA,1\nA,2\nB,3\n")
    given: dict[str, Any] = {"unit": "home", "regions": ["state", "county"], "domain": str(domain)}
    groups(people, **given, max_size=3, epsilon=1, seed=1, out=made / "out" / "homes")
    return made / "out"


def test_a_topdown_release_is_told_as_a_tree(folder: Path) -> None:
    found = regions_of(str(folder), "town", Run())
    assert found is not None and found.levels == ("town", "ward", "area", "block")
    people = pq.read_table(folder / "town" / "data" / "microdata.parquet")["block"].to_pylist()
    for one in found.regions:
        assert one.count == sum(block.startswith(one.code) for block in people)
        assert one.lower is not None and one.upper is not None and one.lower <= one.count <= one.upper
        assert (one.error == 0) == (one.level <= 1), "the wards are invariants"
        if one.parent >= 0:
            assert found.regions[one.parent].level == one.level - 1
            assert one.code.startswith(found.regions[one.parent].code)
    assert [one.code for one in found.regions][:5] == ["", "1", "1A", "1A1", "1A2"]


def test_without_intervals_there_are_none(folder: Path) -> None:
    with_errors, without = (region_totals(folder / name).to_pydict() for name in ("town", "unsure"))
    assert set(without["lower_90"]) == {None}
    for name in ("level", "region", "parent", "count"):
        assert without[name] == with_errors[name]


def test_group_sizes_are_told_as_a_tree(folder: Path) -> None:
    found = regions_of(str(folder), "homes", Run())
    assert found is not None
    assert [one.code for one in found.regions] == ["", "A", "A/1", "A/2", "B", "B/3"]
    assert [one.name for one in found.regions] == ["Total", "A", "1", "2", "B", "3"]
    told = compared(str(folder), ["homes", "town", "unsure", "gone"], Run())
    assert set(told) == {"homes", "town"} and told["town"]["off"] > 0


def test_an_area_is_what_the_verb_says(folder: Path, tmp_path: Path) -> None:
    release = folder / "town"
    wanted = area(release, leaves=["1A1", "1A2", "1A3", "2B1"]).to_dict()
    assert area_of(str(folder), "town", ["1A", "2B1"], Run()) == wanted
    found = area_of_text(str(folder), "town", "name,block\nx,1A\ny,2B1\n", str(tmp_path), Run())
    assert found == wanted | {"codes": ["1A", "2B1"]}
    file = tmp_path / "upload.csv"
    file.write_text("1A\n2B1\n")
    assert area_of_file(str(folder), "town", str(file), Run()) == found and not any(tmp_path.iterdir())
    with pytest.raises(InputError, match="The list has no region of the release .such as a block. on row 2"):
        area_of_text(str(folder), "town", "1A\n7\n", str(tmp_path), Run())


def test_the_copied_area_gives_the_same(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    told = copied(str(folder / "town"), ["1A", "2B1"]).texts()
    *first, last = told["Command"].splitlines()
    subprocess.run(["sh", "-e", "-c", "\n".join(first)], check=True)
    done = CliRunner().invoke(louver, shlex.split(last)[1:])
    assert done.exit_code == 0, done.output
    exec(told["Python"], {})
    assert done.output == capsys.readouterr().out


def test_a_damaged_release_is_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "bad").mkdir()
    manifest = {
        "verb": "topdown",
        "method": "",
        "parameters": {},
        "promises": [],
        "privacy": {},
        "results": {},
    }
    (tmp_path / "bad" / "manifest.json").write_text(json.dumps(manifest | {"files": {}, "created": ""}))
    with pytest.raises(InputError):
        region_totals(tmp_path / "bad")


def made(*paths: str) -> Regions:
    """Regions by their paths, such as ("a", "a/b")."""
    place = {path: i for i, path in enumerate(paths)}
    listed = [
        Region(
            path.count("/") + ("" in place and path != ""),
            path.rpartition("/")[2],
            path,
            place.get(path.rpartition("/")[0], -1) if path else -1,
            10 + i,
            1.0,
            9 + i,
            12 + i,
        )
        for i, path in enumerate(paths)
    ]
    return Regions.of("People", ("top", "middle", "low"), listed, 100)


def test_regions_go_into_an_area_and_out_of_it() -> None:
    regions = made("", "a", "b", "a/1", "a/2", "b/1")
    at = regions.places
    chosen: list[str] = []
    for code, codes in {"a/1": ["a/1"], "b/1": ["a/1", "b/1"], "a": ["b/1", "a"]}.items():
        found = toggled(regions, chosen, at[code])
        assert found == codes, "a region takes the place of those in it"
        chosen = found
    assert toggled(regions, chosen, at["a/2"]) is None, "it is in the area already, with a"
    chosen_area = ChosenArea()
    chosen_area.codes = chosen
    marks = chosen_area.marks(regions, range(len(regions.regions)))
    told = {one.code: mark for one, mark in zip(regions.regions, marks, strict=True)}
    assert told == {"": "part", "a": "in", "a/1": "within", "a/2": "within", "b": "part", "b/1": "in"}
    assert toggled(regions, chosen, at["a"]) == ["b/1"]
    whole = toggled(regions, chosen, at[""])
    assert whole == ["a", "b"], "the whole has no code: it is all that is right below it"
    chosen_area.codes = whole
    assert chosen_area.marks(regions, [at[""], at["b"]]) == ["in", "in"]
    assert toggled(regions, whole, at[""]) == []


def test_folding_and_keys() -> None:
    tree = Folded(made("r", "r/a", "r/b", "r/a/1", "r/a/2", "r/b/1"))
    names = lambda: [tree.regions.regions[i].code for i in tree.lines]  # noqa: E731
    assert names() == ["r", "r/a", "r/b"]
    for key in ("ArrowDown", "ArrowRight", "ArrowRight"):
        tree.press(key)
    assert names() == ["r", "r/a", "r/a/1", "r/a/2", "r/b"] and tree.chosen == 2
    tree.press("End")
    assert tree.regions.regions[tree.chosen].code == "r/b"
    tree.press("PageUp")
    assert tree.chosen == 0
    tree.choose(5)
    assert "r/b/1" in names()
    tree.press("ArrowLeft")
    tree.press("ArrowLeft")
    assert tree.regions.regions[tree.chosen].code == "r/b" and "r/b/1" not in names()
    tree.press("ArrowLeft")
    assert tree.chosen == 0
    tree.choose(2)
    tree.press("Home")
    tree.press("Enter")
    assert names() == ["r"] and tree.chosen == 0
    tree.open_all()
    assert len(names()) == 6
    tree.choose(3)
    tree.open_all(to=False)
    assert names() == ["r", "r/a", "r/b"] and tree.line(tree.chosen) is not None


def test_a_window_is_what_is_seen() -> None:
    tree = Folded(made("r", *(f"r/{i}" for i in range(40))))
    window = tree.window(10, 15)
    assert window["n"] == 41 and window["first"] == 10 and len(window["lines"]) == 5
    assert window["lines"][0]["name"] == "9" and window["lines"][0]["interval"] == "19 to 22"
    assert tree.window(99, 120)["lines"] == []
    assert tree.regions.find("39", 0) == 40 and tree.regions.find("nowhere", 0) is None
    assert tree.regions.left_out == 0 and Regions.of("", ("a", "b"), tree.regions.regions, 5).left_out == 40
    assert in_words(0.3)[0] == "too noisy alone"


def square(x: float, y: float, **properties: object) -> dict[str, Any]:
    ring = [[x, y], [x + 1, y], [x + 1, y + 1], [x, y + 1], [x, y]]
    geometry = {"type": "Polygon", "coordinates": [ring]}
    return {"type": "Feature", "properties": properties, "geometry": geometry}


def written(path: Path, *features: object, kind: str = "FeatureCollection") -> str:
    path.write_text(json.dumps({"type": kind, "features": list(features)}))
    return str(path)


def test_outlines_find_their_regions(tmp_path: Path) -> None:
    regions = made("r", "r/a", "r/b", "r/a/1", "r/a/2", "r/b/1")
    features = [
        square(0, 0, name="1", code="ra1"),
        square(1, 0, name="2", code="ra2"),
        square(2, 0, name="1", code="rb1"),
        square(3, 0, name="9", code="x"),
    ]
    found = outlined(written(tmp_path / "map.json", *features), Run())
    assert found.width == pytest.approx(600) and all(
        set(path) <= set("MLZ0123456789. -") for path in found.paths
    )
    by_code = matched(found, regions, "code")
    assert by_code.level == 2 and [regions.regions[i].code for i in by_code.regions.values()] == [
        "r/a/1",
        "r/a/2",
        "r/b/1",
    ]
    by_name = matched(found, regions, "name")
    assert [regions.regions[i].code for i in by_name.regions.values()] == ["r/a/2"], "two are called 1"
    assert not matched(found, regions, "nothing").regions
    classes, legend = coloured(regions, sorted(by_code.regions.values()), "value")
    assert sorted(classes.values()) == [0, 1, 2] and len(legend) == 3
    classes, legend = coloured(regions, sorted(by_code.regions.values()), "error")
    assert set(classes.values()) == {2} and legend[2].endswith("rough")


def test_a_map_over_the_date_line_and_in_metres(tmp_path: Path) -> None:
    around = outlined(written(tmp_path / "a.json", square(178, 60), square(-180, 60)), Run())
    assert np.ptp([x for x, _ in around.centres]) < around.width
    metres = outlined(written(tmp_path / "b.json", square(2e5, 6e5), square(2e5 + 2, 6e5)), Run())
    assert metres.width == pytest.approx(600) and metres.height == pytest.approx(200)


RING = [[0, 0], [1, 0], [1, 1], [0, 0]]


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("[", "not a GeoJSON"),
        ("[" * 100_000, "not a GeoJSON"),
        (json.dumps({"type": "Topology", "objects": {}}), "not a GeoJSON"),
        (json.dumps({"features": [{"geometry": {"type": "Point", "coordinates": [0, 0]}}]}), "outline 1 is neither"),
        (json.dumps({"features": [{"geometry": None}]}), "outline 1 is neither"),
        (json.dumps({"features": [{"geometry": {"type": "Polygon", "coordinates": [["x"]]}}]}), "outline 1 has"),
        (json.dumps({"features": [{"geometry": {"type": "Polygon", "coordinates": [[[0, 1], [1, 1]]]}}]}), "outline 1 has"),
        ('{"features": [{"geometry": {"type": "Polygon", "coordinates": [[[NaN, 1], [1, 1], [0, 2]]]}}]}', "outline 1 has"),
        (json.dumps({"features": [{"geometry": {"type": "MultiPolygon", "coordinates": []}}]}), "no points"),
        (json.dumps({"features": [{"geometry": {"type": "MultiPolygon", "coordinates": None}}]}), "outline 1 has"),
        (json.dumps({"features": [{"geometry": {"type": "Polygon", "coordinates": [RING]}}] * 20_001}), "more than 20,000"),
    ],
)  # fmt: skip
def test_what_cannot_be_drawn_is_a_sentence(tmp_path: Path, content: str, sentence: str) -> None:
    (tmp_path / "x.json").write_text(content)
    with pytest.raises(InputError, match=sentence):
        outlined(str(tmp_path / "x.json"), Run())


def test_too_many_points_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("louver.app.regions.MOST_POINTS", 5)
    with pytest.raises(InputError, match="simplify"):
        outlined(written(tmp_path / "a.json", square(0, 0), square(1, 0)), Run())


def test_the_samples_have_made_up_outlines() -> None:
    path = sample_outlines(["x", "0301001"])
    assert path is not None and len(outlined(str(path), Run()).paths) == 38
    assert sample_outlines(["x"]) is None
