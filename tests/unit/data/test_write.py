"""Files appear whole or not at all."""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import csv

from louver.data.read import open_source
from louver.data.write import replacing, write_csv
from louver.errors import InputError

TABLE = pa.table({"a": pa.array(["x", 'q"q, r', None]).dictionary_encode(), "n": [1, 2, 3]})


def test_write_csv_can_be_read_back(tmp_path):
    path = tmp_path / "t.csv"
    write_csv(TABLE, path)
    assert path.read_bytes() == b'"a","n"\n"x",1\n"q""q, r",2\n,3\n'
    with open_source(path) as source:
        assert source.relation.fetchall() == [("x", "1"), ('q"q, r', "2"), (None, "3")]


def test_what_is_no_plain_file_is_not_replaced(tmp_path):
    os.mkfifo(tmp_path / "device")
    with (
        pytest.raises(InputError, match="device cannot be written; name a plain file"),
        replacing(tmp_path / "device"),
    ):
        pytest.fail("a pipe was opened for writing")
    assert (tmp_path / "device").is_fifo() and os.listdir(tmp_path) == ["device"]


def test_an_interrupted_write_leaves_the_old_file(tmp_path):
    path = tmp_path / "t.txt"
    path.write_text("old")

    def interrupted():
        with replacing(path) as file:
            file.write(b"new")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["t.txt"]
    with replacing(path) as file:
        file.close()
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["t.txt"]
    with replacing(path) as file:
        file.write(b"new")
    assert path.read_text() == "new"


def test_a_file_obeys_the_umask(tmp_path):
    before = os.umask(0o027)
    try:
        write_csv(TABLE, tmp_path / "t.csv")
    finally:
        os.umask(before)
    assert os.stat(tmp_path / "t.csv").st_mode & 0o777 == 0o640


@pytest.mark.parametrize("place", ["nowhere/t.csv", "."])
def test_a_file_that_cannot_be_written(tmp_path, place):
    with pytest.raises(InputError, match="cannot be written; name a plain file, and check its folder"):
        write_csv(TABLE, tmp_path / place)
    assert os.listdir(tmp_path) == []


def test_no_cell_of_a_csv_file_is_a_formula(tmp_path: Path) -> None:
    """Text that a spreadsheet would compute gets an apostrophe, numbers stay numbers, and one apostrophe less is the text again."""
    labels = ["=1+1", "+cmd", "-2+3", "@sum", "\tx", "\rx", "'s", "-1", "+1.5e3", "a=b", "", None]
    table = pa.table({"=label": pa.array(labels).dictionary_encode(), "number": list(range(-3, 9))})
    write_csv(table, tmp_path / "a.csv")
    text = (tmp_path / "a.csv").read_text()
    back = csv.read_csv(
        tmp_path / "a.csv",
        parse_options=csv.ParseOptions(newlines_in_values=True),
        convert_options=csv.ConvertOptions(column_types={"'=label": pa.string()}, strings_can_be_null=True),
    )
    assert back.column_names == ["'=label", "number"] and back["number"].to_pylist() == list(range(-3, 9))
    written = back["'=label"].to_pylist()
    assert [value.removeprefix("'") if value else value for value in written][:10] == labels[:10]
    assert not any(value and value[0] in "=+@\t\r" and value != "+1.5e3" for value in written)
    assert "-3" in text and '"-1"' in text


@pytest.mark.skipif(os.name != "posix", reason="permissions and locks of POSIX")
def test_only_the_owner_reads_a_file_before_it_appears(tmp_path):
    old = os.umask(0o022)
    try:
        with replacing(tmp_path / "t.csv") as file:
            file.write(b"a")
            file.flush()
            (unfinished,) = tmp_path.iterdir()
            assert unfinished.stat().st_mode & 0o777 == 0o600
    finally:
        os.umask(old)
    assert (tmp_path / "t.csv").stat().st_mode & 0o777 == 0o644


@pytest.mark.skipif(os.name != "posix", reason="locks of POSIX")
def test_what_a_killed_writer_left_is_removed_and_what_a_living_one_holds_is_not(tmp_path):
    killed = tmp_path / f".t.csv.{'0' * 16}.tmp"
    killed.write_text("half a fi")
    with replacing(tmp_path / "t.csv") as first:
        first.write(b"first")
        with replacing(tmp_path / "t.csv") as second:
            second.write(b"second")
    assert [path.name for path in tmp_path.iterdir()] == ["t.csv"]
    assert (tmp_path / "t.csv").read_bytes() == b"first"


@pytest.mark.skipif(os.name != "posix", reason="permissions of POSIX")
def test_no_unfinished_file_is_ever_readable_by_others(tmp_path, monkeypatch):
    """A kill before any of these calls leaves at most a hidden file that its owner alone may read."""
    seen = []

    def watched(name):
        call = getattr(os, name)

        def looked(*args):
            seen.extend(path.stat().st_mode & 0o777 for path in tmp_path.glob(".*"))
            return call(*args)

        return looked

    old = os.umask(0o022)
    try:
        with replacing(tmp_path / "t.csv") as file:
            file.write(b"a")
            for name in ("fsync", "replace", "fchmod", "rename"):
                monkeypatch.setattr(os, name, watched(name))
    finally:
        os.umask(old)
    assert seen and set(seen) == {0o600}
    assert (tmp_path / "t.csv").stat().st_mode & 0o777 == 0o644
