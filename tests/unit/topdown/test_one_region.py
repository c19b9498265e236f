"""Specs without geography: one region with everybody, its margins, intervals and ledger, and what cannot be used."""

from __future__ import annotations

import csv
from fractions import Fraction
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import louver as lv
from louver.errors import InputError
from louver.privacy.budget import Measure
from louver.privacy.ledger import Ledger
from louver.privacy.neighbours import Relation

PEOPLE = {("f", "young"): 200, ("f", "old"): 200, ("m", "young"): 200, ("m", "old"): 400}
ATTRIBUTES = {"sex": {"labels": ["f", "m"]}, "age": {"labels": ["young", "old"]}}


def _people() -> pa.Table:
    rows = [cell for cell, n in PEOPLE.items() for _ in range(n)]
    return pa.table({"sex": [sex for sex, _ in rows], "age": [age for _, age in rows]})


def _spec(**more: object) -> dict[str, object]:
    return {
        "attributes": ATTRIBUTES,
        "topdown": {"epsilon": 1, "queries": {"sex": ["sex"], "age": ["age"]}, **more},
    }


def test_a_dataframe_becomes_a_crosstab_with_margins_and_intervals(tmp_path: Path) -> None:
    lv.topdown(_spec(), data=_people(), out=tmp_path / "release", seed=1)
    sexes = pq.read_table(tmp_path / "release/data/tables/sex.parquet").to_pylist()
    ages = pq.read_table(tmp_path / "release/data/tables/age.parquet").to_pylist()
    microdata = pq.read_table(tmp_path / "release/data/microdata.parquet")
    assert microdata.column_names == ["sex", "age"]
    assert [(row["level"], row["region"], row["sex"]) for row in sexes] == [
        ("all", "all", "f"),
        ("all", "all", "m"),
    ]
    assert sum(row["count"] for row in sexes) == sum(row["count"] for row in ages) == microdata.num_rows
    assert all(row["lower_90"] <= row["count"] <= row["upper_90"] for row in sexes + ages)


def test_it_is_paid_for_and_verified(tmp_path: Path) -> None:
    ledger = tmp_path / "people.ledger"
    Ledger.create(ledger, Measure.EPSILON, Relation.CHANGE_RECORD, Fraction(2))
    invariant = [{"name": "everybody", "level": "all"}]
    release = lv.topdown(_spec(invariants=invariant), data=_people(), out=tmp_path / "release", ledger=ledger)
    checks = lv.verify(tmp_path / "release")
    assert checks.passed
    assert release.to_dict()["debited"] is not None
    assert release.to_dict()["people"] == 1_000


def test_a_bound_of_everybody_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    _write("known.csv", ["most"], ["150"])
    bound = {"name": "young women", "file": "known.csv", "upper": "most"}
    spec = _spec(bounds=[{**bound, "cells": {"sex": ["f"], "age": ["young"]}}])
    release = lv.topdown(spec, data=_people(), out="release", seed=3)
    young_women = int(release.estimate.leaves.to_dense(4)[0, 0])
    assert young_women == 150


def test_a_measured_folder_is_estimated_again_without_the_records(tmp_path: Path) -> None:
    first = lv.topdown(_spec(), data=_people(), out=tmp_path / "release", seed=5)
    again = lv.topdown.estimate(_spec(), measurements=tmp_path / "release", out=tmp_path / "again")
    assert (again.estimate.leaves.count == first.estimate.leaves.count).all()


@pytest.mark.parametrize(
    ("rows", "told"),
    [([], "no row"), ([["3"], ["4"]], "twice, on row 2"), ([["x"]], "whole number on row 1")],
)
def test_a_bound_needs_one_row(
    rows: list[list[str]], told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    _write("known.csv", ["most"], *rows)
    spec = _spec(bounds=[{"name": "most", "file": "known.csv", "upper": "most"}])
    with pytest.raises(InputError, match=told) as caught:
        lv.topdown(spec, data=_people(), seed=1)
    assert caught.value.file == "known.csv"


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ({"invariants": [{"name": "a", "level": "state"}]}, "names no level"),
        ({"shares": {"levels": {"state": 1}, "queries": {"detailed": 1}}}, "every level"),
        ({"geography": {}}, "geography"),
    ],
)
def test_what_speaks_of_other_regions_is_refused(more: dict[str, object], told: str) -> None:
    with pytest.raises(InputError, match=told):
        lv.topdown(_spec(**more), data=_people(), seed=1)


def test_a_spec_without_attributes_is_refused() -> None:
    with pytest.raises(InputError, match=r"needs at least one attribute\."):
        lv.topdown({"topdown": {"epsilon": 1}}, data=_people(), seed=1)


def _write(name: str, *rows: list[str]) -> None:
    with Path(name).open("w", newline="") as file:
        csv.writer(file).writerows(rows)
