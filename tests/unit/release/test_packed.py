"""A release as one file: what is packed comes back, and what is hostile is not unpacked."""

from __future__ import annotations

import stat
import struct
import zipfile
from pathlib import Path

import pytest

import releases
from louver.errors import InputError
from louver.release import packed
from louver.release.manifest import MANIFEST
from louver.release.packed import pack, unpack
from louver.release.verify import verify


def archive_of(folder: Path, *members: tuple[str | zipfile.ZipInfo, bytes]) -> Path:
    made = folder / "some.zip"
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members:
            archive.writestr(name, content)
    return made


@pytest.mark.parametrize("top", ["", "release/"])
def test_what_is_packed_comes_back_and_verifies_alike(tmp_path: Path, top: str) -> None:
    source = releases.made(tmp_path / "source")
    pack(source, tmp_path / "plain.zip")
    archive = tmp_path / "plain.zip"
    if top:
        with zipfile.ZipFile(archive) as plain:
            archive = archive_of(tmp_path, *((top + name, plain.read(name)) for name in plain.namelist()))
    folder = unpack(archive, tmp_path / "into")
    assert verify(folder).passed == verify(source).passed
    assert [c.found for c in verify(folder).checks] == [c.found for c in verify(source).checks]


def link() -> zipfile.ZipInfo:
    info = zipfile.ZipInfo("data/link")
    info.external_attr = (stat.S_IFLNK | 0o777) << 16
    return info


@pytest.mark.parametrize(
    "name",
    [
        "../out",
        "a/../../out",
        "/etc/out",
        "a\\..\\out",
        "C:out",
        "a\x1bb",
        "x" * 300,
        "/".join("a" * 20),
        link(),
    ],
    ids=str,
)
def test_a_name_that_leads_out_of_the_folder_is_refused(tmp_path: Path, name: str) -> None:
    made = archive_of(tmp_path, (MANIFEST, b"{}"), (name, b"harm"))
    with pytest.raises(InputError, match="leads out of its folder"):
        unpack(made, tmp_path / "into")
    assert {p.name for p in tmp_path.iterdir()} <= {"some.zip", "into"}
    assert not list((tmp_path / "into").iterdir()), "nothing is written before all names are looked at"


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_a_name_that_comes_twice_is_refused(tmp_path: Path) -> None:
    made = archive_of(tmp_path, (MANIFEST, b"{}"), ("data/a", b"1"), ("data/a", b"2"))
    with pytest.raises(InputError, match="a repeated file"):
        unpack(made, tmp_path / "into")


def test_sizes_are_counted_as_they_are_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packed, "MOST_BYTES", 1000)
    with pytest.raises(InputError, match="larger than any release"):
        unpack(archive_of(tmp_path, (MANIFEST, b"{}"), ("data/a", bytes(5000))), tmp_path / "into")


def test_more_files_than_a_release_has_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packed, "MOST_FILES", 2)
    members = [(f"data/{number}", b"") for number in range(3)]
    with pytest.raises(InputError, match="larger than any release"):
        unpack(archive_of(tmp_path, *members), tmp_path / "into")


def test_a_list_of_files_that_would_fill_the_memory_is_not_read(tmp_path: Path) -> None:
    made = archive_of(tmp_path, (MANIFEST, b"{}"))
    content = bytearray(made.read_bytes())
    struct.pack_into("<I", content, len(content) - 10, 10**9)
    made.write_bytes(content)
    with pytest.raises(InputError, match="larger than any release"):
        unpack(made, tmp_path / "into")
    with_long_end = content[:-22] + b"PK\x06\x07" + bytes(16) + archive_of(tmp_path).read_bytes()[-22:]
    made.write_bytes(with_long_end)
    with pytest.raises(InputError, match="larger than any release"):
        unpack(made, tmp_path / "into")


def test_what_is_no_archive_of_a_release_is_told(tmp_path: Path) -> None:
    made = tmp_path / "some.zip"
    made.write_bytes(b"people")
    with pytest.raises(InputError, match="cannot be read"):
        unpack(made, tmp_path / "first")
    with pytest.raises(InputError, match="has no release"):
        unpack(archive_of(tmp_path, ("a.csv", b"1")), tmp_path / "second")
    whole = archive_of(tmp_path, (MANIFEST, b"{}" * 500)).read_bytes()
    at = whole.index(MANIFEST.encode()) + len(MANIFEST)
    made.write_bytes(whole[:at] + b"\xff\xff\xff" + whole[at + 3 :])
    with pytest.raises(InputError, match="cannot be read"):
        unpack(made, tmp_path / "third")
