"""One list of the kinds of file: what is read, what may be uploaded, what the guide says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from louver.app.session import Receiver
from louver.app.spec_files import ENDING
from louver.data.formats import FORMATS, UPLOADS, endings_of, format_of
from louver.data.read import READERS, open_source
from louver.errors import InputError

GUIDE = Path(__file__).parents[3] / "docs" / "files.md"


def test_every_ending_is_listed_once_and_has_a_reader() -> None:
    assert len(set(endings_of())) == len(endings_of())
    assert {one.reader for one in FORMATS} == set(READERS)
    for one in FORMATS:
        assert all(format_of(f"a b.x{ending.upper()}") is one for ending in one.endings)


@pytest.mark.parametrize("ending", [*endings_of(), ".txt", ".exe", ""])
def test_what_may_be_uploaded_is_what_is_read(tmp_path: Path, ending: str) -> None:
    """An ending is refused by the reader exactly if it is in no list; uploads are all that is read but databases."""
    path = tmp_path / f"people{ending}"
    path.write_bytes(b"no file of this kind")
    told = ""
    try:
        open_source(path).close()
    except InputError as error:
        told = str(error)
    assert ("has no known file extension" in told) == (ending not in endings_of())
    assert (ending in Receiver(take=None).endings) == (  # type: ignore[arg-type]
        "has no known file extension" not in told and ending not in (".duckdb", ".db")
    )


def test_the_guide_lists_the_same_endings() -> None:
    rows = [line for line in GUIDE.read_text(encoding="utf-8").splitlines() if line.startswith("| ")]
    listed = [ending for row in rows for ending in re.findall(r"`(\.[a-z0-9.]+)`", row.split("|")[2])]
    assert sorted(listed) == sorted(endings_of())


def test_a_spec_is_no_table() -> None:
    assert ENDING not in UPLOADS


@pytest.mark.parametrize(
    ("option", "value", "says"),
    [
        ("delimiter", ";", "--delimiter applies only to CSV and TSV files"),
        ("encoding", "cp1252", "--encoding applies only to CSV, TSV, Stata, SPSS and SAS files"),
        ("header_row", 2, "--header-row applies only to CSV, TSV and Excel files"),
        ("keep_codes", True, "--keep-codes applies only to Stata, SPSS and SAS files"),
    ],
)
def test_an_option_names_the_files_that_it_is_for(
    tmp_path: Path, option: str, value: object, says: str
) -> None:
    path = tmp_path / "people.parquet"
    path.touch()
    with pytest.raises(InputError, match=says):
        open_source(path, **{option: value})
