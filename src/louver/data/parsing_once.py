"""Text files that several readers of one call share: parsed once, into a private database, and hashed in the same pass.

A call with a register or a ledger reads its records for several purposes: to recognise the people in them, to publish, and to check that
they are the data that were paid for. Inside `parsing_once`, a text file is parsed at the first reading and kept with every column as text;
later readings create their own views of it. A file that has changed in the meantime is parsed again. A file of more than `LARGEST` bytes of
text is not kept, because its copy would take twice as much memory or disk.
"""

from __future__ import annotations

import os
import threading
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

import duckdb

from louver.data.scratch import Scratch
from louver.data.sql import file_literal, literal
from louver.run import Run

__all__ = [
    "GZIP_RATIO",
    "LARGEST",
    "ROWS",
    "connect",
    "forget_parsed",
    "is_parsing_once",
    "parse_and_hash",
    "parsed",
    "parsing_once",
]

LARGEST = 1 << 30
"""Maximum number of bytes of text in a file that is kept."""

GZIP_RATIO = 5
"""Approximate bytes of text per compressed byte."""

ROWS = "parsed_rows"
"""The table with the rows of a parsed file."""

BLOCK = 1 << 20  # bytes between two checks for cancellation, a millisecond
PACKED_BLOCK = 1 << 16  # compressed bytes, which may be a thousand times as much text

GZIP = 31  # what zlib calls the format
PLAIN = "compression = 'none'"

MEMORY_LIMIT = "1GB"

Key = tuple[object, ...]


@dataclass(slots=True)
class _Parsed:
    """A database with the rows of a file; None if the file cannot be parsed."""

    connection: duckdb.DuckDBPyConnection | None
    scratch: Scratch

    def close(self) -> None:
        if self.connection is not None:
            self.connection.close()
        self.scratch.close()


@dataclass(slots=True)
class _Shared:
    """The files parsed in a call, by path, time of change and options of reading."""

    files: dict[Key, _Parsed] = field(default_factory=dict)
    is_over: bool = False

    def close(self) -> None:
        self.is_over = True
        while self.files:
            self.files.popitem()[1].close()


_shared: ContextVar[_Shared | None] = ContextVar("_shared", default=None)


@contextmanager
def parsing_once(is_needed: bool = True) -> Iterator[None]:
    """Keep files parsed in the block for other readers in it; a nested block is part of the outer one."""
    if not is_needed or _shared.get() is not None:
        yield
        return
    shared = _Shared()
    token = _shared.set(shared)
    try:
        yield
    finally:
        _shared.reset(token)
        shared.close()


def _open_block() -> _Shared | None:
    shared = _shared.get()
    return None if shared is None or shared.is_over else shared


def is_parsing_once() -> bool:
    """Whether there is a block around this call that keeps files."""
    return _open_block() is not None


def forget_parsed() -> None:
    """Release kept files before the block ends, if they will not be read again; from here on nothing is kept."""
    shared = _shared.get()
    if shared is not None:
        shared.close()


def connect(scratch: Scratch) -> duckdb.DuckDBPyConnection:
    """A private database in memory that downloads nothing and spills only into its own folder."""
    connection = duckdb.connect(
        ":memory:",
        config={
            "allow_community_extensions": "false",
            "autoinstall_known_extensions": "false",
            "autoload_known_extensions": "false",
            "memory_limit": MEMORY_LIMIT,
            "python_enable_replacements": "false",
            "temp_directory": str(scratch.path),
            "threads": str(
                len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
            ),
        },
    )
    _begin(connection)
    with suppress(duckdb.Error):
        # Encrypt records spilled to disk if this version of DuckDB can do so without an extension. Its
        # built-in cipher is called unsafe because its random numbers are not cryptographic. This is enough
        # for the file of a killed process; while the process runs, the folder's permissions keep others out.
        connection.execute("SET force_mbedtls_unsafe = true; SET temp_file_encryption = true")
    return connection


def _begin(connection: duckdb.DuckDBPyConnection) -> None:
    connection.execute("SET enable_progress_bar = false; SET TimeZone = 'UTC'")


def parsed(
    path: Path, options: Sequence[str], *, is_compressed: bool, run: Run
) -> duckdb.DuckDBPyConnection | None:
    """A separate connection to the parsed rows (table `ROWS`); None if the file is not kept.

    Parameters
    ----------
    options : sequence of str
        Arguments of `read_csv` in addition to the file.
    """
    shared = _open_block()
    if shared is None:
        return None
    with suppress(OSError):
        status = os.stat(path)
        key = _key(path, status, options)
        if key not in shared.files and _is_kept(status, is_compressed=is_compressed):
            shared.files[key] = _parse(file_literal(path), options, run)
        if key in shared.files and (whole := shared.files[key].connection) is not None:
            own = whole.cursor()
            _begin(own)
            return own
    return None


def parse_and_hash(
    path: Path,
    options: Sequence[str],
    *,
    is_compressed: bool,
    update: Callable[[bytes], object],
    run: Run,
) -> bool:
    """Parse a file for later readers and give `update` all its bytes in the same pass; False where nothing was done.

    The parser reads from a pipe what is hashed, so that the hash is that of the parsed bytes. Compressed files are unpacked here, because
    DuckDB loses their last rows when it reads them from a pipe.
    """
    shared = _open_block()
    if shared is None or not os.path.exists("/dev/fd"):
        return False
    with open(path, "rb") as file:
        before = os.fstat(file.fileno())
        key = _key(path, before, options)
        if key in shared.files or not _is_kept(before, is_compressed=is_compressed):
            return False
        plain = [PLAIN if option.startswith("compression") else option for option in options]
        found = _parse_and_hash(file, _Gunzip() if is_compressed else None, plain, update, run)
        if _key(path, os.fstat(file.fileno()), options) == key:
            shared.files[key] = found
        else:
            found.close()
    return True


def _key(path: Path, status: os.stat_result, options: Sequence[str]) -> Key:
    return (
        os.path.realpath(path),
        status.st_dev,
        status.st_ino,
        status.st_size,
        status.st_mtime_ns,
        *options,
    )


def _is_kept(status: os.stat_result, *, is_compressed: bool) -> bool:
    return status.st_size * (GZIP_RATIO if is_compressed else 1) <= LARGEST


def _parse(place: str, options: Sequence[str], run: Run) -> _Parsed:
    scratch = Scratch()
    connection = connect(scratch)
    try:
        with run.interrupting(connection.interrupt):
            connection.execute(
                f"CREATE TABLE {ROWS} AS SELECT * FROM read_csv({', '.join([place, *options])})"
            )
        return _Parsed(connection, scratch)
    except duckdb.Error:  # the reader that needs the faulty rows reports what is wrong with them
        connection.close()
        return _Parsed(None, scratch)
    except BaseException:
        connection.close()
        scratch.close()
        raise


class _Gunzip:
    """The text of a gzip file, which may have several members, block by block."""

    def __init__(self) -> None:
        self._member = zlib.decompressobj(GZIP)
        self._is_faulty = False

    @property
    def is_whole(self) -> bool:
        """Whether all blocks together were a gzip file."""
        return self._member.eof and not self._is_faulty

    def unpack(self, block: bytes) -> Iterator[bytes]:
        """The text of the next block; none after a fault."""
        while block and not self._is_faulty:
            if self._member.eof:
                self._member = zlib.decompressobj(GZIP)
            try:
                text = self._member.decompress(block)
            except zlib.error:
                self._is_faulty = True
                return
            block = self._member.unused_data
            yield text


def _parse_and_hash(
    file: BinaryIO,
    packed: _Gunzip | None,
    options: Sequence[str],
    update: Callable[[bytes], object],
    run: Run,
) -> _Parsed:
    reading, writing = os.pipe()
    errors: list[BaseException] = []

    def pump() -> None:
        is_open = True
        try:
            while block := file.read(PACKED_BLOCK if packed else BLOCK):
                if run.is_cancelled:
                    break
                update(block)
                for text in packed.unpack(block) if packed else (block,):
                    is_open = is_open and _write(writing, text)
        except BaseException as error:  # noqa: BLE001 - raised in the waiting thread
            errors.append(error)
        finally:
            os.close(writing)

    thread = threading.Thread(target=pump, daemon=True)
    thread.start()
    try:
        found = _parse(literal(f"/dev/fd/{reading}"), options, run)
    finally:
        os.close(reading)  # after a fault the rest is only hashed
        thread.join()
    for error in errors:
        found.close()
        raise error
    if packed and not packed.is_whole and found.connection is not None:
        found.connection.close()  # the reader says what is wrong with the file
        found = _Parsed(None, found.scratch)
    return found


def _write(pipe: int, block: bytes) -> bool:
    """Write all of a block; False if the pipe is no longer read."""
    rest = memoryview(block)
    try:
        while rest:
            rest = rest[os.write(pipe, rest) :]
    except BrokenPipeError:
        return False
    return True
