"""Sample data."""

from __future__ import annotations

import pytest

from louver.data.samples import FOLDER, sample_path
from louver.errors import InputError


def test_every_sample_has_its_source_noted():
    notes = (FOLDER / "SOURCES.md").read_text(encoding="utf-8")
    samples = sorted(path.name for path in FOLDER.glob("*.csv.gz"))
    assert samples == ["cps8.csv.gz", "ges2013.csv.gz", "ges2013_regions.csv.gz"]
    assert all(f"## {name}" in notes for name in samples)


@pytest.mark.parametrize("name", ["cps9", "../samples/cps8", ""])
def test_an_unknown_sample_is_refused(name):
    with pytest.raises(InputError, match="choose one of cps8, ges2013, ges2013_regions"):
        sample_path(name)
