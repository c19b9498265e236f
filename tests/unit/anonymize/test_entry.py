"""What the register keeps of a k-anonymous file: true of the records, and taken along by audits of later tables."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest

import louver as lv
from louver.anonymize import entry as entry_module
from louver.release.register import Register


def people(folder: Path, n: int = 40) -> Path:
    random = np.random.default_rng(8)
    rows = zip(
        random.integers(20, 60, n),
        random.choice(["A", "B", "C"], n),
        random.choice(["y", "n"], n),
        strict=True,
    )
    file = folder / "people.csv"
    file.write_text("age,town,ill\n" + "".join(f"{age},{town},{ill}\n" for age, town, ill in rows))
    return file


@pytest.mark.parametrize("more", [{}, {"suppress": 0.1}, {"format": "bounds"}], ids=str)
def test_the_counts_of_classes_hold_for_the_records(more: dict[str, object], tmp_path: Path) -> None:
    file = people(tmp_path)
    release = lv.anonymize(file, quasi=["age", "town"], k=3, method="greedy", registry=tmp_path / "r", **more)
    assert release.entry is not None and not Register(tmp_path / "r").entries
    (table,) = release.entry["tables"]
    rows = pa.csv.read_csv(file).to_pylist()
    assert len(table["margins"]) == release.n_classes
    for margin in table["margins"]:
        fitting = sum(
            all(str(row[name]) in labels for name, labels in margin["where"].items()) for row in rows
        )
        (low,), (high,) = margin["lower"], margin["upper"]
        assert 3 <= low <= fitting <= high


def test_a_file_of_disjoint_classes_is_counted_exactly_and_audited_along(tmp_path: Path) -> None:
    file, register = people(tmp_path), tmp_path / "register"
    release = lv.anonymize(
        file,
        quasi=["town"],
        keep=["ill", "age"],
        k=5,
        method="exact",
        registry=register,
        out=tmp_path / "one",
    )
    (margins,) = [table["margins"] for table in release.entry["tables"]]
    assert all(margin["lower"] == margin["upper"] for margin in margins)
    assert lv.verify(tmp_path / "one").passed and len(Register(register).entries) == 1
    table = {"name": "ill", "by": ["ill"]}
    found = lv.audit(file, tables=[table], registry=register, no_advice=True)
    assert found.earlier == 1 and found.tables[-1].startswith("k-anonymity with k = 5")
    manifest = (tmp_path / "one/manifest.json").read_text()
    assert "margins" not in manifest and str(register) not in manifest


def test_missing_values_and_many_classes_tell_less(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(entry_module, "MOST_COMPARED", 1)
    table = pa.table({"x": [1.0, 1.0, 2.5, 2.5, None, None], "s": ["a", "a", "b", "b", None, "c"]})
    release = lv.anonymize(table, quasi=["x", "s"], k=2, method="exact", registry=tmp_path / "r")
    margins = release.entry["tables"][0]["margins"]
    assert [margin["where"] for margin in margins] == [{"x": ["1"], "s": ["a"]}, {"x": ["2.5"], "s": ["b"]}]
    assert all(margin["upper"] == [None] for margin in margins)
