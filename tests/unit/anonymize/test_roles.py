"""Every column has a role: what nobody listed is looked at, and what is published unchanged is told."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import louver as lv
from louver.anonymize.metrics import derivable_values
from louver.errors import InputError
from louver.report.anonymize import anonymize_report, inside_report
from louver.run import Run
from releases import doubt
from small_people import written

N = 120


def survey() -> dict[str, list[object]]:
    """A made-up survey: names, a weight that tells the region, a density that nearly does, and two harmless columns."""
    random = np.random.default_rng(5)
    region = random.integers(0, 6, N)
    density = np.where(np.arange(N) % 60 == 0, 1.5, 10.5 * region)
    return {
        "name": [f"{'ABCDEFGH'[i % 8]}. Person {i // 2}" for i in range(N)],
        "age": random.integers(20, 60, N).tolist(),
        "region": [f"R{r}" for r in region],
        "weight": (100 + 7 * region).tolist(),
        "density": density.tolist(),
        "income": (random.integers(10_000, 99_000, N)).tolist(),
        "smokes": random.choice(["yes", "no"], N).tolist(),
        "ill": random.choice(["flu", "cold", "ulcer"], N).tolist(),
    }


def without(*names: str) -> pa.Table:
    return pa.table({name: values for name, values in survey().items() if name not in names})


ASKED = {"quasi": ["age", "region"], "sensitive": ["ill"], "k": 4, "method": "greedy"}


def test_names_that_nobody_listed_are_refused_by_name_not_by_value() -> None:
    with pytest.raises(InputError) as caught:
        lv.anonymize(without("weight", "density", "income"), **ASKED)
    said = str(caught.value)
    assert '"name" (many values occur once)' in said and "Person" not in said and said.count(".") == 1
    for way_out in ("--identifying", "--quasi", "--sensitive", "--keep"):
        assert way_out in said
    assert '"smokes"' not in said and '"ill"' not in said


def test_names_that_come_again_are_refused_for_what_they_are_called() -> None:
    table = pa.table({"age": [*range(20)] * 2, "Surname": ["Smith", "Jones"] * 20})
    with pytest.raises(InputError, match='"Surname" \\(its name suggests that it identifies a person\\)'):
        lv.anonymize(table, quasi=["age"], k=2)


def test_a_weight_that_gives_back_the_region_is_refused() -> None:
    with pytest.raises(InputError, match='"weight" \\(named like a sampling weight\\)'):
        lv.anonymize(without("name", "density", "income"), **ASKED)
    with pytest.raises(InputError, match=r'"factor" \(determines "region"\)'):
        lv.anonymize(pa.table({**without("name", "density", "income", "weight").to_pydict(),
                               "factor": survey()["weight"]}), **ASKED)  # fmt: skip


def test_all_that_is_risky_is_told_at_once() -> None:
    with pytest.raises(InputError) as caught:
        lv.anonymize(without(), **ASKED)
    said = str(caught.value)
    assert '"name", "income" (many values occur once)' in said
    assert '"weight" (named like a sampling weight); "density" (determines "region")' in said


def test_numbers_are_judged_as_they_are_published() -> None:
    """Rounded well, incomes are nobody's; rounded to next to nothing, or cut off where few are, they still are refused."""
    table = without("name", "weight", "density")
    for coding in ({}, {"round_to": {"income": 10.0}}, {"top_code": {"income": 90_000.0}}):
        with pytest.raises(InputError, match='"income" \\(many values occur once\\)'):
            lv.anonymize(table, **ASKED, **coding)
    released = lv.anonymize(table, **ASKED, round_to={"income": 10_000.0})
    assert set(released.to_frame()["income"].to_pylist()) <= set(range(10_000, 110_000, 10_000))


def test_rounded_numbers_that_tell_a_quasi_identifier_are_refused() -> None:
    table = without("name", "weight", "density", "income")
    telling = [1000 * int(region[1:]) + i for i, region in enumerate(table["region"].to_pylist())]
    with pytest.raises(InputError, match=r'"rate" \(determines "region"\)'):
        lv.anonymize(table.append_column("rate", pa.array(telling)), **ASKED, round_to={"rate": 1000.0})


def test_a_sampling_weight_is_published_only_where_it_is_kept() -> None:
    table = without("name", "density", "income")
    dropped = lv.anonymize(table, **ASKED, sampling_weight="weight")
    assert dropped.table.column_names == ["age", "region", "smokes", "ill"]
    kept = lv.anonymize(table, **ASKED, sampling_weight="weight", keep=["weight"])
    assert "weight" in kept.table.column_names
    roles = {line["name"]: (line["role"], line["done"]) for line in dropped.dictionary.to_pylist()}
    assert roles["weight"] == ("weight", "dropped") and roles["smokes"] == ("keep", "unchanged")


def test_what_travels_unchanged_is_told_everywhere(tmp_path: Path) -> None:
    release = lv.anonymize(without("name", "income"), **ASKED, identifying=["weight"], keep=["density"])
    assert release.unchanged == ("density", "smokes", "ill")
    assert "published unchanged: density, smokes, ill" in repr(release)
    assert "quasi-identifiers: age (number), region (category)" in repr(release)
    out = written(release, tmp_path / "release")
    manifest = json.loads((out / "manifest.json").read_text())
    assert manifest["results"]["unchanged"] == ["density", "smokes", "ill"]
    assert manifest["disclosures"][0] == 'column "density", record by record'
    assert "density, smokes, ill" in (out / "report.html").read_text()
    assert pq.read_table(out / "data/columns.parquet").to_pylist() == [
        {"name": "age", "role": "quasi", "kind": "number", "done": "generalised to intervals"},
        {"name": "region", "role": "quasi", "kind": "category", "done": "generalised to sets"},
        {"name": "weight", "role": "identifying", "kind": "", "done": "dropped"},
        {"name": "density", "role": "keep", "kind": "number", "done": "unchanged"},
        {"name": "smokes", "role": "keep", "kind": "text", "done": "unchanged"},
        {"name": "ill", "role": "sensitive", "kind": "text", "done": "unchanged"},
    ]
    assert doubt(out, "columns").passed and lv.verify(out).passed


def test_what_can_be_worked_out_is_told_inside_and_never_published(tmp_path: Path) -> None:
    release = lv.anonymize(without("name", "income"), **ASKED, keep=["weight", "density"])
    (region,) = [line for line in release.worked_out if line.name == "region"]
    assert region.generalised == region.exactly == region.nearly > 0 and region.column == "weight"
    assert "can be inferred exactly" in repr(release) and "inferred exactly" in inside_report(release)
    assert release.to_dict()["worked_out"][1]["exactly"] == region.exactly
    out = written(release, tmp_path / "release")
    assert "worked" not in (out / "manifest.json").read_text() + (out / "report.html").read_text()
    assert "worked" not in anonymize_report(release)


@pytest.mark.parametrize("seed", range(4))
def test_worked_out_by_definition(seed: int) -> None:
    """For every record: do the others with the same unchanged value, and it, agree on the quasi-identifier?"""
    random = np.random.default_rng(seed)
    values = {"q": random.integers(0, 3, 60).tolist()}
    values["a"] = [
        None if i % 9 == 0 else int(q * 10 + random.integers(0, 2)) for i, q in enumerate(values["q"])
    ]
    values["b"] = random.integers(0, 25, 60).tolist()
    release = lv.anonymize(
        pa.table(values), quasi=["q"], keep=["a", "b"], k=25, method="sorted", keep_order=True
    )
    (found,) = release.worked_out
    exactly = nearly = 0
    for i in range(60):
        is_exact = is_near = False
        for known in (["a"], ["b"], ["a", "b"]):
            mine = [values[n][i] for n in known]
            if known != ["a", "b"] and mine == [None]:
                continue
            alike = [values["q"][j] for j in range(60) if [values[n][j] for n in known] == mine]
            share = alike.count(values["q"][i]) / len(alike)
            is_exact |= len(alike) > 1 and share == 1
            is_near |= len(alike) > 1 and share >= 0.95
        is_generalised = release.table["q"][i].as_py().startswith("[")
        exactly, nearly = exactly + (is_exact and is_generalised), nearly + (is_near and is_generalised)
    assert (found.exactly, found.nearly) == (exactly, nearly)
    assert derivable_values(pa.table(values), [], (), (), np.zeros(60, np.int64), Run()) == ()


@pytest.mark.parametrize("change", ["a column more", "a column less", "another form"])
def test_verify_doubts_the_dictionary(change: str, tmp_path: Path) -> None:
    release = lv.anonymize(without("name", "income", "weight"), **ASKED, keep=["density"])
    out = written(release, tmp_path / "release")
    lines = release.dictionary.to_pylist()
    made = {
        "a column more": pa.Table.from_pylist([*lines, {**lines[0], "name": "other"}]),
        "a column less": pa.Table.from_pylist(lines[1:]),
        "another form": pa.table({"name": ["age"]}),
    }
    pq.write_table(made[change], out / "data/columns.parquet")
    assert not doubt(out, "columns").passed


def test_exact_dates_that_nobody_listed_are_refused() -> None:
    days = [f"2020-01-{1 + i % 9:02d}" for i in range(N)]
    table = without("name", "weight", "density", "income").append_column("admitted", pa.array(days))
    with pytest.raises(
        InputError, match='"admitted" \\(exact dates, which others may know\\); name each in --ident'
    ):
        lv.anonymize(table, **ASKED)
    assert "admitted" in lv.anonymize(table, **ASKED, keep=["admitted"]).table.column_names
