"""A text file is parsed once for all readers of a call, and they read what they would have read by themselves."""

from __future__ import annotations

import gzip
import hmac
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from louver.data import parsing_once
from louver.data.parsing_once import forget_parsed
from louver.data.people import Census, fingerprint
from louver.data.read import open_source
from louver.errors import Cancelled, InputError
from louver.run import Run

FILES = {
    "plain": b"a,b\n1,2\n3,4\n",
    "without a last line end": b"a,b\n1,2\n3,4",
    "with a mark": b"\xef\xbb\xbfa,b\n1,2\n",
    "by Windows": b'a,b\r\n1,2\r\n3,"x\r\ny"\r\n',
    "quoted": b'a;b\n"x;""y";2\n;\n',
    "long": b"a,b\n" + b"".join(b"%d,x%d\n" % (row, row % 7) for row in range(200_000)),
    "with a row too long": b"a,b\n1,2\n1,2,3\n" + b"1,2\n" * 100_000,
    "in another encoding": b"a,b\n\xe9,2\n",
    "empty": b"",
    "without rows": b"a,b\n",
}


def read(path: Path, **how: object) -> object:
    try:
        with open_source(path, **how) as source:  # type: ignore[arg-type]
            return source.read_all().to_pydict(), source.types
    except InputError as error:
        return str(error)


@pytest.fixture
def n_parsed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Every place that was parsed for all readers."""
    places: list[str] = []
    parse = parsing_once._parse

    def noted(place: str, options: list[str], run: Run) -> parsing_once._Parsed:
        places.append(place)
        return parse(place, options, run)

    monkeypatch.setattr(parsing_once, "_parse", noted)
    return places


@pytest.mark.parametrize("is_compressed", [False, True])
@pytest.mark.parametrize("name", FILES)
def test_what_is_read_and_the_hash_are_the_same(tmp_path: Path, name: str, is_compressed: bool) -> None:
    path = tmp_path / ("a.csv.gz" if is_compressed else "a.csv")
    path.write_bytes(gzip.compress(FILES[name]) if is_compressed else FILES[name])
    alone, digest = read(path), hmac.digest(b"key", path.read_bytes(), "sha256")
    assert fingerprint(path)(b"key") == digest
    with parsing_once.parsing_once():
        assert read(path) == read(path) == alone
        assert fingerprint(path)(b"key") == digest
    with parsing_once.parsing_once():
        assert fingerprint(path)(b"key") == digest
        assert read(path) == read(path) == alone


PACKED = {
    "in two members": gzip.compress(FILES["long"]) + gzip.compress(b"7,x\n"),
    "padded": gzip.compress(FILES["plain"]) + bytes(1000) + gzip.compress(b"5,6\n") + bytes(100_000),
    "cut off": gzip.compress(FILES["long"])[:-9],
    "cut off in the header": gzip.compress(FILES["plain"])[:5],
    "damaged": gzip.compress(FILES["long"])[:60_000] + b"?" * 1000 + gzip.compress(FILES["long"])[61_000:],
    "with something after it": gzip.compress(FILES["plain"]) + b"something",
    "not compressed": FILES["plain"],
}


@pytest.mark.parametrize("block", [None, 1000])
@pytest.mark.parametrize("name", PACKED)
def test_what_is_unpacked_while_it_is_hashed_is_the_same(
    tmp_path: Path, name: str, block: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.csv.gz"
    path.write_bytes(PACKED[name])
    if block is not None:
        monkeypatch.setattr(parsing_once, "PACKED_BLOCK", block)
    alone, digest = read(path), hmac.digest(b"key", PACKED[name], "sha256")
    with parsing_once.parsing_once():
        assert fingerprint(path)(b"key") == digest
        assert read(path) == read(path) == alone
        assert fingerprint(path)(b"key") == digest


def test_a_compressed_file_is_parsed_while_it_is_hashed(tmp_path: Path, n_parsed: list[str]) -> None:
    path = tmp_path / "a.csv.gz"
    path.write_bytes(gzip.compress(FILES["long"]))
    with parsing_once.parsing_once():
        fingerprint(path)(b"key")
        assert read(path)[0]["a"][-1] == "199999"  # type: ignore[index]
    assert len(n_parsed) == 1 and "/dev/fd" in n_parsed[0]


def test_nothing_is_lost_where_the_parser_is_faster_than_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(FILES["plain"])
    write = parsing_once._write

    def slowly(pipe: int, block: bytes) -> bool:
        time.sleep(0.01)
        return write(pipe, block)

    monkeypatch.setattr(parsing_once, "BLOCK", 1)
    monkeypatch.setattr(parsing_once, "_write", slowly)
    alone = read(path)
    with parsing_once.parsing_once():
        assert fingerprint(path)(b"key") == hmac.digest(b"key", path.read_bytes(), "sha256")
        assert read(path) == alone


def test_a_file_is_parsed_once(tmp_path: Path, n_parsed: list[str]) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(FILES["plain"])
    read(path)
    assert not n_parsed  # outside of a block every reader reads for itself
    with parsing_once.parsing_once():
        fingerprint(path)(b"key")
        fingerprint(path)(b"other key")
        read(path)
        with parsing_once.parsing_once():  # part of the outer one
            read(path, where="a > 1")
        read(path)
        with open_source(path) as source:
            sketch = Census(source, b"key").sketch()
        assert len(n_parsed) == 1
        Run().attend(read, path)
        assert len(n_parsed) == 1
        forget_parsed()
        read(path)
        assert len(n_parsed) == 1  # nobody was expected to read it again
    with open_source(path) as source:
        assert Census(source, b"key").sketch().digest == sketch.digest


def test_readers_of_one_file_have_their_own_filters_and_marks(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text('a;b\n1;"2,5"\n3;"4,5"\n')
    hows = ({"where": "a > 1", "decimal_mark": "."}, {"decimal_mark": ","}, {"decimal_mark": "."})
    alone = [read(path, **how) for how in hows]
    with parsing_once.parsing_once():
        assert [read(path, **how) for how in hows] == alone
        assert read(path, decimal_mark=".", header_row=2) == read(path, decimal_mark=".", header_row=2)
    assert len({str(one) for one in alone}) == 3


@pytest.mark.parametrize("change", ["content", "file"])
def test_a_file_that_changed_is_parsed_again(tmp_path: Path, change: str) -> None:
    path = tmp_path / "a.csv"
    path.write_text("a,b\n1,2\n")
    with parsing_once.parsing_once():
        first = read(path)
        if change == "content":
            path.write_text("a,b\n1,2\n3,4\n")
        else:
            other = tmp_path / "b.csv"
            other.write_text("a,b\n5,6\n")
            os.utime(other, ns=(path.stat().st_atime_ns, path.stat().st_mtime_ns))
            other.replace(path)
        second = read(path)
    assert first != second == read(path)


def test_a_large_file_is_not_kept(
    tmp_path: Path, n_parsed: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(FILES["plain"])
    monkeypatch.setattr(parsing_once, "LARGEST", 8)
    with parsing_once.parsing_once():
        fingerprint(path)(b"key")
        assert read(path) == read(path)
    assert not n_parsed


def hash_it(path: Path, run: Run) -> object:
    return fingerprint(path, run=run)(b"key")


def read_it(path: Path, run: Run) -> object:
    return read(path, run=run)


@pytest.mark.parametrize("work", [hash_it, read_it])
def test_it_can_be_cancelled_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, work: Callable[[Path, Run], object]
) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(FILES["long"])
    parse, run = parsing_once._parse, Run()

    def cancelled(place: str, options: list[str], run: Run) -> parsing_once._Parsed:
        run.cancel()
        return parse(place, options, run)

    monkeypatch.setattr(parsing_once, "_parse", cancelled)
    n_threads, descriptors = threading.active_count(), len(os.listdir("/dev/fd"))
    with parsing_once.parsing_once(), pytest.raises(Cancelled):
        work(path, run)
    assert threading.active_count() == n_threads
    assert len(os.listdir("/dev/fd")) == descriptors
