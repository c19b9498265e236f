"""`lv.open` reads any release back."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import FrozenInstanceError
from pathlib import Path

import pyarrow as pa
import pytest

import louver as lv
from louver.errors import InputError
from releases import edit, made


def test_what_is_in_a_release(tmp_path: Path) -> None:
    release = lv.open(made(tmp_path / "release"))
    assert release.kind == "anonymize" and release.manifest.method == "exact"
    assert list(release.tables) == ["anonymized", "mapping"] and len(release.tables) == 2
    assert release.tables["anonymized"].num_rows == 6
    assert [entry["promise"] for entry in release.promises][:2] == ["records", "mapping"]
    assert release.report is None and release.privacy == {}
    assert release.verify().passed and lv.verify(release).passed
    assert "k-anonymity" in repr(release) and "<table>" in release._repr_html_()
    with pytest.raises(FrozenInstanceError):
        release.path = tmp_path  # type: ignore[misc]


def test_tables_that_cannot_be_read(tmp_path: Path) -> None:
    out = made(tmp_path / "release")
    (out / "data/anonymized.parquet").write_bytes(b"nothing")
    edit(out, lambda m: m["files"].update({"../elsewhere.parquet": {"bytes": 1, "sha256": ""}}))
    release = lv.open(out)
    for name in ("anonymized", "../elsewhere"):
        with pytest.raises(InputError, match="cannot be read"):
            release.tables[name]
    with pytest.raises(KeyError):
        release.tables["nothing"]


def test_no_release(tmp_path: Path) -> None:
    for place in (tmp_path, tmp_path / "nowhere"):
        with pytest.raises(InputError, match="not a release directory"):
            lv.open(place)


@pytest.mark.parametrize("change", [lambda m: m.update(format=2), lambda m: m.pop("format")])
def test_a_format_of_another_version_is_one_sentence(
    tmp_path: Path, change: Callable[[dict], object]
) -> None:
    out = made(tmp_path / "release")
    edit(out, change)
    told = "has a format that louver .* does not read; use the version that made it"
    with pytest.raises(InputError, match=told):
        lv.open(out)
    [check] = lv.verify(out).checks
    assert not check.passed and re.search(told, check.found)


def test_what_published_counts_show_and_lose(tmp_path: Path) -> None:
    people = pa.table({"town": ["A"] * 12 + ["B"] * 9, "ill": ["y"] * 3 + ["n"] * 9 + ["y"] * 4 + ["n"] * 5})
    tables = [{"name": "t", "by": ["town", "ill"], "below": 4}]
    given = {"registry": tmp_path / "register", "publish": str(tmp_path / "out"), "new_population": True}
    found = lv.audit(people, tables=tables, small=2, **given)
    assert found.published
    assert lv.open(tmp_path / "out").table_costs() == {"small": 0, "lost": 1 / 4}
    edit(tmp_path / "out", lambda m: m["parameters"]["tables"][0].update(file="data/elsewhere.parquet"))
    with pytest.raises(InputError, match="is damaged"):
        lv.open(tmp_path / "out").table_costs()
    assert lv.open(made(tmp_path / "records")).table_costs() is None
