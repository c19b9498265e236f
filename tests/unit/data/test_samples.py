"""Sample data."""

from __future__ import annotations

import pytest

from louver.data.samples import FILES, FOLDER, sample_path
from louver.errors import InputError


def test_every_sample_has_its_source_noted():
    notes = (FOLDER / "SOURCES.md").read_text(encoding="utf-8")
    samples = sorted(path.name for path in FOLDER.glob("*.csv.gz"))
    assert samples == sorted(f"{name}.csv.gz" for name in {*FILES.values(), "cps8"})
    assert all(f"## {name}" in notes for name in samples)


@pytest.mark.parametrize("name", ["cps9", "../samples/cps8", ""])
def test_an_unknown_sample_is_refused(name):
    with pytest.raises(
        InputError,
        match="choose one of county, county_blocks, cps8, ges2013, ges2013_regions, people, survey",
    ):
        sample_path(name)
