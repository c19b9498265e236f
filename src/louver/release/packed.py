"""A release as one file: packing it for transport, and unpacking it safely when it comes from someone else.

An archive may come from anyone. Names that lead out of the folder, links, and archives that are larger than any release
are refused before or while they are read; sizes are counted as they are written, not as the archive states them.
"""

from __future__ import annotations

import stat
import struct
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from louver.errors import InputError
from louver.release.folder import plain_files
from louver.release.manifest import MANIFEST
from louver.run import Run

__all__ = ["MOST_BYTES", "MOST_FILES", "pack", "unpack"]

MOST_FILES = 5_000
MOST_BYTES = 2_000_000_000
"""Limit on the bytes of all files together, unpacked."""
MOST_DIRECTORY = 2_000_000
"""Maximum size in bytes of the file list at the end of an archive; Python reads all of it at once."""
MOST_LETTERS, MOST_DEPTH = 200, 8
CHUNK = 1 << 20
END, END_SIZE, LONG_END, LONG_END_SIZE = b"PK\x05\x06", 22, b"PK\x06\x07", 20
BROKEN = "the archive cannot be read; create it again as an ordinary zip file of the release folder."
LARGE = "the archive is larger than any release; choose the zip file of one release folder."


def pack(folder: Path, zip_file: Path, run: Run | None = None) -> None:
    """Write all plain files of a release folder into one zip file."""
    names, _ = plain_files(folder)
    with zipfile.ZipFile(zip_file, "w", zipfile.ZIP_DEFLATED) as made:
        for name in sorted(names):
            (run or Run()).check()
            made.write(folder / name, name)


def unpack(zip_file: Path, into: Path, run: Run | None = None) -> Path:
    """Unpack a zip file of a release into a new folder.

    Parameters
    ----------
    archive : Path
    into : Path
        Folder to make; files written before the archive is refused remain there.
    run : Run, optional
        Checked for cancellation.

    Returns
    -------
    Path
        The folder with the manifest: `into`, or the one folder in it.

    Raises
    ------
    InputError
        If it is not an archive of a release, has names that lead out of the folder, or is too large.
    """
    _check_end(zip_file)
    into.mkdir(mode=0o700)
    try:
        with zipfile.ZipFile(zip_file) as opened:
            members = list(_members(opened))
            left = MOST_BYTES
            for info, name in members:
                left -= _written(opened, info, into / name, left, run or Run())
    except (
        zipfile.BadZipFile,
        zlib.error,
        OSError,
        EOFError,
        RuntimeError,
        NotImplementedError,
        ValueError,
    ):
        problem = BROKEN
    else:
        return _release_in(into, [name for _, name in members])
    raise InputError(problem)


def _check_end(zip_file: Path) -> None:
    """Refuse a list of files that would not fit in memory, before it is read."""
    with open(zip_file, "rb") as stream:
        size = stream.seek(0, 2)
        stream.seek(max(size - END_SIZE - LONG_END_SIZE - 0xFFFF, 0))
        tail = stream.read()
    at = tail.rfind(END)
    if at < 0 or len(tail) - at < END_SIZE:
        raise InputError(BROKEN)
    directory = struct.unpack_from("<I", tail, at + 12)[0]
    is_long = tail[max(at - LONG_END_SIZE, 0) : at].startswith(LONG_END)
    if is_long or directory > MOST_DIRECTORY:
        raise InputError(LARGE)


def _members(opened: zipfile.ZipFile) -> Iterator[tuple[zipfile.ZipInfo, str]]:
    """The plain files of an archive, each name checked and used once."""
    infos = [info for info in opened.infolist() if not info.is_dir()]
    if len(infos) > MOST_FILES:
        raise InputError(LARGE)
    seen: set[str] = set()
    for info in infos:
        name = PurePosixPath(info.filename)
        mode = info.external_attr >> 16
        is_plain = (
            not name.is_absolute()
            and ".." not in name.parts
            and 0 < len(name.parts) <= MOST_DEPTH
            and info.filename.isprintable()
            and len(info.filename.encode()) <= MOST_LETTERS
            and not set(info.filename) & set("\\:")
            and (not stat.S_IFMT(mode) or stat.S_ISREG(mode))
        )
        if not is_plain or str(name) in seen:
            raise InputError(
                "the archive has a link, a file whose name leads out of its folder, or a repeated file; it was not unpacked."
            )
        seen.add(str(name))
        yield info, str(name)


def _written(opened: zipfile.ZipFile, info: zipfile.ZipInfo, path: Path, most: int, run: Run) -> int:
    """Write one file of at most this many bytes; return how many it has."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    size = 0
    with opened.open(info) as stream, open(path, "xb") as written:
        while chunk := stream.read(CHUNK):
            run.check()
            size += len(chunk)
            if size > most:
                raise InputError(LARGE)
            written.write(chunk)
    return size


def _release_in(folder: Path, names: list[str]) -> Path:
    if MANIFEST in names:
        return folder
    tops = {name.partition("/")[0] for name in names}
    if len(tops) == 1 and (top := tops.pop()) and f"{top}/{MANIFEST}" in names:
        return folder / top
    raise InputError(f"the archive has no release: there is no {MANIFEST} in its folder.")
