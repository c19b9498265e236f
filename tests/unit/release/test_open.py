"""`lv.open` reads any release back, early ones too."""

from __future__ import annotations

import shutil
from dataclasses import FrozenInstanceError
from pathlib import Path

import pytest

import louver as lv
from louver.errors import InputError
from releases import edit, made

EARLY = Path(__file__).parents[2] / "data" / "releases-0.1"
"""Small releases that louver 0.1.0 made before promises were checked against a model."""


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
        with pytest.raises(InputError, match="no release directory"):
            lv.open(place)


@pytest.mark.parametrize("early", sorted(path.name for path in EARLY.iterdir()))
def test_early_releases_open_and_are_checked(early: str) -> None:
    release = lv.open(EARLY / early)
    assert release.kind == early.partition("-")[0]
    assert all(table.num_rows for table in release.tables.values())
    found = release.verify(skip_report=True)  # early pages had other words, and cannot be made again
    failed = {check.name: check.found for check in found.checks if not check.passed}
    assert failed == FAILED.get(early, {})


UNNAMED = {
    "contents": "data/anonymized.parquet has a column that neither the parameters nor a dictionary of columns name"
}
"""Columns without a role were published, and nothing listed them."""

FAILED = {
    **dict.fromkeys(("anonymize", "anonymize-bounds", "anonymize-freeform", "anonymize-k-map"), UNNAMED),
    # Whole numbers among real ones were listed otherwise than they were published.
    "anonymize-real": {
        **UNNAMED,
        "t-closeness": "the file has a sensitive value that the promise does not list",
    },
    "groups-seeded": {"private noise": "made with a seed that anyone can repeat"},
    # Nothing was promised of what the relaxed mechanisms of groups released.
    "groups-relaxed": {"promises": "one of group-counts, group-table must be promised, once"},
}


def test_early_releases_are_doubted(tmp_path: Path) -> None:
    """Each promise of an early release fails when it is made larger than the files allow."""
    for early, change in {
        "anonymize": lambda m: m["promises"][3].update(k=5),
        "anonymize-k-map": lambda m: m["promises"][3].update(k=50),
        "anonymize-freeform": lambda m: m["promises"][3].update(k=8),
        "groups": lambda m: m["promises"][0].update(total=9),
        "topdown": lambda m: m["promises"][0]["attributes"]["race"].pop(),
    }.items():
        out = tmp_path / early
        shutil.copytree(EARLY / early, out)
        edit(out, change)
        assert not lv.verify(out).passed
