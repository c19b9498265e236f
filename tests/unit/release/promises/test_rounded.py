"""Rounded tables that do not keep what they promise."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import louver as lv
from releases import edit
from unit.release.promises.test_protected import changed

FILE = "data/01-t.parquet"


@pytest.fixture
def release(tmp_path: Path) -> Path:
    (tmp_path / "trade.hrc").write_text("soft\n@food\n@wood\nhard\n@iron\n@steel\n")
    trades = ["food", "wood", "iron", "steel"]
    records = pa.table(
        {
            "trade": [t for t in trades for _ in range(9)],
            "size": [s for _ in trades for s in "xyz" for _ in range(3)],
        }
    )
    found = lv.protect(
        records,
        tables=[{"name": "t", "by": ["trade", "size"]}, {"name": "u", "by": ["size"]}],
        codes={"trade": {"hierarchy": str(tmp_path / "trade.hrc")}},
        method="round",
        base=5,
        out=tmp_path / "release",
    )
    assert found.published and found.verdict.level == "care"
    assert lv.verify(tmp_path / "release").passed
    return tmp_path / "release"


def refused(release: Path) -> str:
    verified = lv.verify(release)
    assert not verified.passed
    return str(verified)


def add(amount: int | None) -> Callable[[list[dict[str, Any]]], None]:
    def change(rows: list[dict[str, Any]]) -> None:
        row = next(row for row in rows if row["trade"] == "steel" and row["size"] == "x")
        row["count"] = None if amount is None else row["count"] + amount

    return change


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (add(5), "is not the sum of its parts"),
        (add(1), "not a multiple of the base"),
        (add(None), "not a multiple of the base"),
        (add(-50), "is negative"),
        (lambda rows: rows.append(dict(rows[0])), "has no code or is repeated"),
        (lambda rows: rows[0].update(trade="glass"), "is in no hierarchy"),
    ],
)
def test_tables_that_break_their_promise(release: Path, change: Any, says: str) -> None:
    changed(release, change)
    assert says in refused(release)


def test_tables_that_contradict_each_other(release: Path) -> None:
    def change(rows: list[dict[str, Any]]) -> None:
        for row in rows:
            row["count"] += 5 if row["size"] in ("x", "Total") else 0

    changed(release, change, "data/02-u.parquet")
    assert "in another table" in refused(release)


def test_a_csv_copy_that_differs(release: Path) -> None:
    from louver.release.manifest import file_entry

    path = release / "data/01-t.csv"
    path.write_text(path.read_text().replace(",10\n", ",15\n", 1))

    def hashes(manifest: dict[str, Any]) -> None:
        entry = file_entry(path)
        manifest["files"]["data/01-t.csv"] = {"bytes": entry.bytes, "sha256": entry.sha256}

    edit(release, hashes)
    refused(release)


def test_columns_and_kinds(release: Path) -> None:
    def hide(manifest: dict[str, Any]) -> None:
        manifest["method"] = "hide"

    def decimals(manifest: dict[str, Any]) -> None:
        manifest["method"] = "round"
        manifest["promises"][0]["tables"][0]["decimals"] = 1

    def value(manifest: dict[str, Any]) -> None:
        manifest["promises"][0]["tables"][0] |= {"decimals": 0, "value": "persons"}

    edit(release, hide)
    refused(release)
    edit(release, decimals)
    assert "are not whole" in refused(release)
    edit(release, value)
    assert "not the promised ones" in refused(release)
    assert pq.read_table(release / FILE).column_names == ["trade", "size", "count"]


@pytest.fixture
def noisy(tmp_path: Path) -> Path:
    records = pa.table(
        {
            "id": [str(n) for n in range(90)],
            "trade": ["food", "wood", "steel"] * 30,
            "size": ["x"] * 40 + ["y"] * 50,
        }
    )
    found = lv.protect(
        records,
        tables=[{"name": "t", "by": ["trade", "size"]}, {"name": "u", "by": ["size"]}],
        method="cellkey",
        registry=tmp_path / "register",
        person="id",
        out=tmp_path / "release",
    )
    assert found.published and lv.verify(tmp_path / "release").passed
    return tmp_path / "release"


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda rows: rows[0].update(count=0), "not a count of 1 or more"),
        (lambda rows: rows[0].update(count=-1), "is negative"),
        (lambda rows: rows[0].update(size="z"), "is in no hierarchy"),
        (lambda rows: rows.append(rows[0]), "is repeated"),
        (
            lambda rows: next(row for row in rows if row["trade"] == "Total").update(count=1),
            "in another table",
        ),
    ],
)
def test_forged_cell_keys_are_noticed(noisy: Path, change: Any, says: str) -> None:
    changed(noisy, change)
    assert says in refused(noisy)
