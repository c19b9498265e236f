"""Locks and syncs, with POSIX and on a system that has neither locks nor folders that can be opened."""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa
import pytest

from louver import _files
from louver._files import lock_folder, sync, try_lock
from louver.data.scratch import Scratch
from louver.data.write import replacing
from louver.groups import groups
from louver.release.verify import verify
from louver.release.write import ReleaseWriter


@pytest.fixture
def no_posix(monkeypatch) -> None:
    """No `fcntl`, and a folder cannot be opened."""
    real = os.open

    def open_file(path, *rest, **named):
        if Path(path).is_dir():
            raise PermissionError(13, "a folder cannot be opened")
        return real(path, *rest, **named)

    monkeypatch.setattr(_files, "fcntl", None)
    monkeypatch.setattr(os, "open", open_file)


def test_a_folder_is_held_by_one(tmp_path) -> None:
    held = lock_folder(tmp_path)
    assert held is not None
    other = os.open(tmp_path, os.O_RDONLY)
    assert not try_lock(other)
    held.close()
    assert try_lock(other)
    os.close(other)
    sync(tmp_path)


def test_a_folder_that_is_gone_is_not_held(tmp_path) -> None:
    assert lock_folder(tmp_path / "gone") is None


@pytest.mark.usefixtures("no_posix")
def test_without_posix_nothing_is_locked(tmp_path) -> None:
    held = lock_folder(tmp_path)
    assert held is not None and held.descriptor is None
    held.close()
    assert lock_folder(tmp_path / "gone") is None
    with (tmp_path / "file").open("w") as file:
        assert not try_lock(file.fileno())
    sync(tmp_path)
    sync(tmp_path / "file")


@pytest.mark.usefixtures("no_posix")
def test_without_posix_files_and_folders_can_be_written(tmp_path) -> None:
    with replacing(tmp_path / "note") as sink:
        sink.write(b"written")
    assert (tmp_path / "note").read_bytes() == b"written"
    with Scratch(tmp_path, "scratch-") as scratch:
        assert scratch.path.is_dir()
    stale = tmp_path / ".release.partial-stale"
    stale.mkdir()
    with ReleaseWriter(tmp_path / "release") as writer:
        writer.path("data/a.txt").write_text("a")
    assert stale.is_dir()  # nobody can tell whether it is held
    assert not (tmp_path / "release").exists()


@pytest.mark.usefixtures("no_posix")
def test_without_posix_a_release_can_be_made(tmp_path) -> None:
    people = pa.table({"home": ["A", "A", "B", "C"], "state": ["GA", "GA", "GA", "NY"]})
    out = tmp_path / "release"
    groups(
        people, unit="home", regions=["state"], domain_from_data=True, max_size=3, epsilon=50, seed=1, out=out
    )
    failed = [check.name for check in verify(out).checks if not check.passed]
    assert failed == ["private noise"]  # of a seed, as it has to be
