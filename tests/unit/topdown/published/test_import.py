"""Published files to a folder that can be estimated from: the same values, the third state of a release, and refusals that leave nothing."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import louver as lv
from louver.errors import InputError, LouverError
from louver.release.manifest import read_manifest
from louver.topdown.published.read import read_published
from unit.topdown.published.test_read import BAD, answer, exact, units, write
from unit.topdown.published.test_write import town

BRANCHES = ("044", "144")
UNITS = {
    "044100010" + "001" + "4400101070111001": 12,
    "044100010" + "001" + "4400101070111002": 9,
    "044100030" + "001" + "4400301080121001": 30,
}
"""Housing units of the blocks outside tribal areas; the one inside is an only child."""
TRIBAL = "144100010" + "001" + "4400101070121003"


def branched() -> dict[str, Any]:
    """Housing units of four blocks in two branches, with a county in both; only children have no answers."""
    blocks = {**UNITS, TRIBAL: 7}
    files: dict[str, Any] = {}
    for branch in BRANCHES:
        own = {code: n for code, n in blocks.items() if code.startswith(branch)}
        counties = sorted({code[:9] for code in own})
        folder = f"State={branch}/part-0.parquet"
        files[f"State.parquet/DPQuery/{folder}"] = [answer(branch, [3, sum(own.values()) - 5], 273.5)]
        files[f"State.parquet/Constraint/{folder}"] = [exact(branch, sum(own.values()))]
        held = [sum(n for code, n in own.items() if code.startswith(county)) for county in counties]
        files[f"County.parquet/Constraint/{folder}"] = [
            exact(c, n) for c, n in zip(counties, held, strict=True)
        ]
        files[f"Block.parquet/Constraint/{folder}"] = [exact(code, n) for code, n in own.items()]
    folder = "State=044/part-0.parquet"
    files[f"County.parquet/DPQuery/{folder}"] = [
        answer("044100010", [2, 17], 15.5),
        answer("044100030", [-1, 33], 0.4),
    ]
    files[f"Block.parquet/DPQuery/{folder}"] = [
        answer(code, [value - 8, value], 11.0) for value, code in enumerate(list(UNITS)[:2], start=9)
    ]
    return files


@pytest.fixture(scope="module")
def imported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("units")
    lv.topdown.import_nmf(write(folder / "US_Unit_PL", branched()), out=folder / "measured")
    return folder


@pytest.fixture(scope="module")
def estimated(imported: Path) -> Path:
    out = imported / "release"
    lv.topdown.estimate(imported / "measured/topdown.toml", measurements=imported / "measured", out=out)
    return out


def test_every_value_and_variance_is_the_published_one(imported: Path) -> None:
    rows = pq.read_table(imported / "measured/measurements/topdown.parquet").to_pylist()
    found = {(row["level"], row["node"]): (row["values"], row["variance"]) for row in rows}
    assert found["branch", "441"] == ([3, 2], 273.5)
    assert found["county", "440100030"] == ([-1, 33], 0.4)
    assert found["block", "440" + list(UNITS)[1][3:]] == ([2, 10], 11.0)
    assert found["block", "441" + TRIBAL[3:]] == (None, None)
    read = read_published(imported / "US_Unit_PL")
    assert sum(len(one.region) for level in read.levels for one in level.answers) == sum(
        row["values"] is not None for row in rows
    )


def test_branches_meet_in_a_state_that_nobody_measured(imported: Path) -> None:
    spec = (imported / "measured/topdown.toml").read_text()
    assert 'levels = ["state", "branch", "county", "block"]' in spec and "prefixes = [2, 3, 9, 28]" in spec
    assert 'variances."state"' not in spec


def test_a_release_from_published_measurements_says_whose_noise_it_is(imported: Path, tmp_path: Path) -> None:
    out = tmp_path / "release"
    spec, folder = imported / "measured/topdown.toml", imported / "measured"
    release = lv.topdown.estimate(spec, measurements=folder, out=out)
    assert "louver claims no privacy loss of its own" in release.verdict.sentence
    assert (
        release.verdict.level == "care"
        and "do not show whether they have that noise" in release.verdict.reasons[0]
    )
    found = lv.verify(out)
    assert found.passed, found
    text = " ".join(check.found for check in found.checks)
    assert "drawn and published by U.S. Census Bureau" in text and "no ledger of louver paid" in text
    manifest = read_manifest(out)
    assert manifest.ledger_head is None and not manifest.not_private
    assert manifest.parameters["published"]["files"] == len(branched())
    sizes = dict(zip(release.plan.design.spine.leaves, release.estimate.leaves.people.tolist(), strict=True))
    assert sizes["441" + TRIBAL[3:]] == 7  # exact, as the constraints say


@pytest.mark.parametrize(
    "change",
    [
        lambda c: c["parameters"].update(published=None),
        lambda c: c["parameters"]["published"].update(by="somebody else"),
        lambda c: c["privacy"].pop("stated_by"),
        lambda c: c["privacy"].update(stated_by="somebody else"),
        lambda c: c.update(not_private=True),
    ],
)
def test_verify_notices_who_is_said_to_have_published(
    imported: Path, tmp_path: Path, change: Callable[[Any], None]
) -> None:
    from louver.release.manifest import digest

    out = tmp_path / "release"
    lv.topdown.estimate(
        imported / "measured/topdown.toml", measurements=imported / "measured", out=out, intervals=0
    )
    content = json.loads((out / "manifest.json").read_text())
    change(content)
    content["digest"] = digest(content)
    (out / "manifest.json").write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n")
    assert not lv.verify(out).passed


def test_our_own_measurements_come_back_as_they_were(tmp_path: Path) -> None:
    plan, measured = town(tmp_path)
    root = lv.topdown.export_nmf(plan.design.spec.path, measurements=measured, out=tmp_path / "nmf")
    lv.topdown.import_nmf(root, out=tmp_path / "again", by="Town")
    own, again = (
        {
            (r["level"], r["node"], r["query"]): r["values"]
            for r in pq.read_table(f / "measurements/topdown.parquet").to_pylist()
        }
        for f in (measured, tmp_path / "again")
    )
    assert {level for level, _, _ in again} == {level for level, _, _ in own}
    detailed = {key: value for key, value in own.items() if key[2] in ("detailed", "total")}
    assert detailed == {key: value for key, value in again.items() if key[2] in ("detailed", "total")}
    release = lv.topdown.estimate(
        tmp_path / "again/topdown.toml", measurements=tmp_path / "again", out=tmp_path / "release"
    )
    assert release.n_people > 0 and lv.verify(tmp_path / "release").passed


def test_published_measurements_are_never_made_here(imported: Path, tmp_path: Path) -> None:
    spec = imported / "measured/topdown.toml"
    for call in (
        lambda: lv.topdown.measure(spec, out=tmp_path / "m"),
        lambda: lv.topdown(spec, seed=1),
        lambda: lv.topdown.plan(spec),
    ):
        with pytest.raises(InputError, match="describes measurements that"):
            call()


def test_state_totals_come_from_a_public_file(imported: Path, tmp_path: Path) -> None:
    (tmp_path / "totals.csv").write_text("geocode,value\n44,58\n45,9\n")
    lv.topdown.import_nmf(imported / "US_Unit_PL", out=tmp_path / "m", totals=tmp_path / "totals.csv")
    exact = pq.read_table(tmp_path / "m/invariants.parquet").to_pylist()
    assert {"invariant": "state total", "level": "state", "region": "44", "value": 58} in exact
    (tmp_path / "wrong.csv").write_text("geocode,value\n44,59\n")
    with pytest.raises(LouverError, match="contradicts"):
        lv.topdown.import_nmf(imported / "US_Unit_PL", out=tmp_path / "n", totals=tmp_path / "wrong.csv")
    assert not (tmp_path / "n").exists()


@pytest.mark.parametrize(
    "text", ["geocode,value\n45,1\n", "geocode,value\n44,x\n", "geocode,value\n44,1\n44,1\n"]
)
def test_totals_that_do_not_fit_are_refused(imported: Path, tmp_path: Path, text: str) -> None:
    (tmp_path / "totals.csv").write_text(text)
    with pytest.raises(InputError) as raised:
        lv.topdown.import_nmf(imported / "US_Unit_PL", out=tmp_path / "m", totals=tmp_path / "totals.csv")
    assert raised.value.file == "totals.csv" and not list(tmp_path.glob(".m*"))


def test_the_nation_is_left_out_where_states_are_missing(tmp_path: Path) -> None:
    files = branched()
    files["US.parquet/DPQuery/part-0.parquet"] = [answer("", [40, 400], 99.0)]
    found = lv.topdown.import_nmf(write(tmp_path / "units", files), out=tmp_path / "m")
    assert found.left_out and "nation" not in found.regions
    assert (
        lv.topdown.import_nmf(tmp_path / "units", out=tmp_path / "n", states=["44"]).regions == found.regions
    )


def odd_branch(files: dict[str, Any]) -> None:
    for name in list(files):
        files[name.replace("State=144", "State=944")] = [
            row | {"geocode": row["geocode"].replace("144", "944", 1)} if "144" in name else row
            for row in files.pop(name)
        ]


def unmeasured_leaves(files: dict[str, Any]) -> None:
    del files["Block.parquet/DPQuery/State=044/part-0.parquet"]


def nothing_fits(files: dict[str, Any]) -> None:
    low, high = "Block.parquet/Constraint/State=044/part-0.parquet", {"query_name": "x_lb_con", "sign": ">="}
    files[low] = files[low] + [exact(next(iter(UNITS)), 13) | high]


MORE = {
    "odd branch": odd_branch,
    "leaves without answers": unmeasured_leaves,
    "bounds that nothing fits": nothing_fits,
}


@pytest.mark.parametrize("spoil", [*BAD.values(), *MORE.values()], ids=[*BAD, *MORE])
def test_bad_input_leaves_nothing_behind(tmp_path: Path, spoil: Callable[[dict[str, Any]], None]) -> None:
    files: dict[str, Any] = branched() if spoil in MORE.values() else units()
    spoil(files)
    (tmp_path / "units").mkdir()
    with pytest.raises(LouverError) as raised:
        lv.topdown.import_nmf(write(tmp_path / "units", files), out=tmp_path / "measured")
    message = str(raised.value)
    assert message.endswith(".") and "\n" not in message and len(message) < 300
    assert [path.name for path in tmp_path.iterdir()] == ["units"]


def test_areas_are_named_as_they_are_tabulated(imported: Path, tmp_path: Path) -> None:
    out = tmp_path / "release"
    spec, folder = imported / "measured/topdown.toml", imported / "measured"
    release = lv.topdown.estimate(spec, measurements=folder, out=out)
    sizes = dict(zip(release.plan.design.spine.leaves, release.estimate.leaves.people.tolist(), strict=True))
    (tmp_path / "districts.csv").write_text(
        "area,leaf\nNorth,440010107011001\nNorth,44003\nSouth,440010107012\nSouth,440010107011002\n"
    )
    found = lv.topdown.areas(out, areas=tmp_path / "districts.csv", csv=tmp_path / "table.csv")
    assert found.areas["North"].total.count == sum(UNITS.values()) - 9
    assert found.areas["South"].total.count == 7 + 9  # both branches of the county
    assert lv.topdown.area(out, leaves=["44001"]).total.count == sum(
        n for code, n in sizes.items() if "44001" in code
    )
    lines = (tmp_path / "table.csv").read_text().splitlines()
    assert lines[0].replace('"', "") == "area,blocks,query,people,estimate,standard_error,lower_90,upper_90"
    assert len(lines) == 1 + found.to_frame().num_rows and "North" in repr(found)
    assert json.loads(found.to_json())["areas"][1]["area"] == "South"
    by_name = lv.topdown.areas(out, areas={"North": ["440010107011001", "44003"]})
    assert by_name.areas["North"] == found.areas["North"]


@pytest.mark.parametrize(
    "text",
    [
        "area,leaf\n",
        "area,leaf\nNorth,\n",
        "area,leaf\nNorth,99\n",
        "area,leaf\nNorth,44\nNorth,44003\n",
        "x\n",
    ],
)
def test_areas_that_do_not_fit_are_refused(estimated: Path, tmp_path: Path, text: str) -> None:
    (tmp_path / "districts.csv").write_text(text)
    with pytest.raises(LouverError) as raised:
        lv.topdown.areas(estimated, areas=tmp_path / "districts.csv", csv=tmp_path / "table.csv")
    assert "districts.csv" in str(raised.value) and not (tmp_path / "table.csv").exists()


def test_housing_units_of_persons_enter_the_prior_of_block_sizes(tmp_path: Path) -> None:
    axes = {"hhgq": "*", "votingage": "*", "hispanic": "*", "cenrace": "*"}
    files: dict[str, Any] = {}
    blocks = list(UNITS)[:2]
    for name, codes in (("State", ["044"]), ("Block", blocks)):
        folder = f"{name}.parquet/%s/State=044/part-0.parquet"
        files[folder % "DPQuery"] = [
            {
                **dict.fromkeys(axes, "detailed"),
                "geocode": code,
                "query_name": "detailed_dpq",
                "query_shape": [8, 2, 2, 63],
            }
            | {"value": [30 // len(codes)] + [0] * 2015, "variance": 4.0}
            for code in codes
        ]
        files[folder % "Constraint"] = [
            {
                **axes,
                "hhgq": "hhgq",
                "geocode": code,
                "query_name": "hhgq_total_ub_con",
                "sign": "<=",
                "variance": 0.0,
            }
            | {"query_shape": [8, 1, 1, 1], "value": [99_999 * 7, *[0] * 7]}
            for code in codes
        ]
    found = lv.topdown.import_nmf(write(tmp_path / "persons", files), out=tmp_path / "m")
    assert 'column = "housing_units"' in found.spec.read_text()
    assert {line.split(",")[-8] for line in (tmp_path / "m/leaves.csv").read_text().splitlines()} == {
        "housing_units",
        "7",
    }
    release = lv.topdown.estimate(
        found.spec, measurements=tmp_path / "m", out=tmp_path / "release", intervals=0
    )
    assert lv.verify(tmp_path / "release").passed
    quarters = release.estimate.leaves.to_dense(2016).reshape(2, 8, -1).sum(axis=2)
    assert not quarters[:, 1:].any()  # no facility of any kind
