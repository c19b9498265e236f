"""Each redesign can be written as a recode file and run."""

from __future__ import annotations

import shlex
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import louver as lv
from louver.bounds.options import BoundsOptions
from louver.errors import InputError
from louver.schema.request import ask

TOWNS = ['a "b"', "c\\d", "e | f", "e", "f"]


@pytest.fixture
def people() -> pa.Table:
    """Labels that TOML must escape, one that a merged group would be called, and people alone."""
    counts = np.random.default_rng(2).integers(0, 6, (5, 3, 2)) * 7
    counts[0, 0] = (1, 0)
    rows = [(TOWNS[i], str(10 * j), "yn"[k], int(n)) for (i, j, k), n in np.ndenumerate(counts)]
    town, age, ill, count = zip(*rows, strict=True)
    return pa.table({"town": town, "age": age, "ill": ill, "count": count})


@pytest.mark.parametrize("recode", [None, {"town": {"E": ["e"], "rest": ["f", "c\\d"]}}])
def test_written_redesigns_run_and_give_what_they_promise(people: pa.Table, recode, tmp_path: Path) -> None:
    found = lv.bounds.suggest(
        people, rows=["town", "age"], cols=["ill"], weight="count", recode=recode, seconds=30
    )
    assert any(line.merged for line in found.lines)
    paths = found.write_recodes(tmp_path / "redesigns", ["people.csv", "--weight", "count"])
    assert len(paths) == len(found.lines)
    for path, line in zip(paths, found.lines, strict=True):
        assert path.stat().st_mode & 0o777 == 0o600
        call = shlex.split(path.read_text().splitlines()[1].removeprefix("# louver bounds people.csv "))
        asked = dict(zip(call[::2], call[1::2], strict=True))
        assert asked["--recode"] == str(path)
        again = lv.bounds(
            people,
            rows=asked["--rows"].split(","),
            cols=asked["--cols"].split(","),
            weight=asked["--weight"],
            recode=asked["--recode"],
        )
        assert again.summary == line.summary


def test_a_folder_that_is_there_is_left_alone(people: pa.Table, tmp_path: Path) -> None:
    found = lv.bounds.suggest(people, rows=["town"], cols=["ill"], weight="count", seconds=30)
    with pytest.raises(InputError, match="already exists") as caught:
        found.write_recodes(tmp_path)
    assert caught.value.option == "--write-recodes"
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="does not exist"):
        found.write_recodes(tmp_path / "file" / "r")


def test_a_folder_that_cannot_be_made(
    people: pa.Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(self: Path, mode: int = 0) -> None:
        raise OSError

    found = lv.bounds.suggest(people, rows=["town"], cols=["ill"], weight="count", seconds=30)
    monkeypatch.setattr(Path, "mkdir", fail)
    with pytest.raises(InputError, match="cannot be created"):
        found.write_recodes(tmp_path / "r")


def test_an_address_is_not_written_into_files() -> None:
    from louver.bounds import _data_in_call

    given = {"rows": ["a"], "cols": ["b"], "table": "t", "weight": "n"}
    assert _data_in_call(ask(BoundsOptions, "postgresql://me:secret@host/db", None, given)) == [
        "FILE",
        "--weight",
        "n",
    ]
