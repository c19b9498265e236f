"""Scratch folders: private while they live, gone with their process, and nothing of a record in clear."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from cli.command import child_environment
from louver.data import parsing_once
from louver.data.read import open_source
from louver.data.scratch import PREFIX, Scratch, sweep
from louver.errors import InputError

MARKER = b"Marguerite"
SPILL = f"CREATE TEMP TABLE spilled AS SELECT '{MARKER.decode()}' || range AS name FROM range(3000000)"
KILLED = f"""
import os, signal, sys
from pathlib import Path
from louver.data import parsing_once
from louver.data.read import open_source
parsing_once.MEMORY_LIMIT = "40MB"
source = open_source(sys.argv[1])
source.connection.execute("{SPILL}")
print(source._scratch.path, flush=True)
os.kill(os.getpid(), signal.{{signal}})
"""


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "people.csv"
    path.write_text("name\nAda\n")
    return path


def spilled_bytes(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())


def test_a_folder_is_its_owners_alone_and_goes_with_the_block(temporary: Path) -> None:
    with Scratch() as scratch:
        assert stat.S_IMODE(scratch.path.stat().st_mode) == 0o700
        assert scratch.path.parent == temporary
        (scratch.path / "inside").write_text("x")
    assert not list(temporary.iterdir())


def test_what_duckdb_spills_is_unreadable(
    temporary: Path, table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parsing_once, "MEMORY_LIMIT", "40MB")
    with open_source(table) as source:
        source.connection.execute(SPILL)
        spilled = spilled_bytes(temporary)
        (count,) = source.connection.execute("SELECT count(*) FROM spilled WHERE name <> ''").fetchone()
    assert len(spilled) > 1_000_000 and MARKER not in spilled and MARKER[1:] not in spilled
    assert count == 3_000_000
    assert not list(temporary.iterdir())


@pytest.mark.long
@pytest.mark.parametrize("kind", ["SIGKILL", "SIGTERM"])
def test_what_a_killed_process_left_is_unreadable_and_swept_by_the_next(
    temporary: Path, table: Path, kind: str
) -> None:
    done = subprocess.run(
        [sys.executable, "-c", KILLED.format(signal=kind), str(table)],
        env=child_environment(TMPDIR=str(temporary)),
        capture_output=True,
        text=True,
    )
    assert done.returncode == -getattr(signal, kind), done.stderr
    left = Path(done.stdout.strip())
    assert left.parent == temporary
    spilled = spilled_bytes(left)
    assert len(spilled) > 1_000_000 and MARKER not in spilled
    sweep()
    assert not left.exists()


def test_a_sweep_leaves_what_is_in_use_or_not_ours(
    temporary: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "lock").touch()
    (temporary / f"{PREFIX}link").symlink_to(elsewhere)
    (temporary / f"{PREFIX}unlocked").mkdir()
    (temporary / "louver-pages").mkdir()
    with Scratch() as scratch:
        sweep()
        assert scratch.path.exists()
    sweep()
    assert {path.name for path in temporary.iterdir()} == {
        f"{PREFIX}link",
        f"{PREFIX}unlocked",
        "louver-pages",
    }
    assert (elsewhere / "lock").exists()
    (temporary / f"{PREFIX}unlocked" / "lock").touch()
    monkeypatch.setattr(os, "geteuid", lambda: 12345)
    sweep()
    assert (temporary / f"{PREFIX}unlocked").exists()
    monkeypatch.undo()


def test_a_fork_does_not_remove_its_parents_folder() -> None:
    with Scratch() as scratch:
        child = os.fork()
        if child == 0:
            scratch.close()
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        assert scratch.path.exists()


def test_no_place_for_temporary_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "missing"))
    with pytest.raises(InputError, match="set TMPDIR"):
        Scratch()


def test_a_folder_may_be_made_elsewhere(tmp_path: Path) -> None:
    (tmp_path / "shared").mkdir()
    with Scratch(tmp_path / "shared") as scratch:
        assert scratch.path.parent == tmp_path / "shared"
    assert not list((tmp_path / "shared").iterdir())
    with pytest.raises(InputError, match="has no space for temporary files"):
        Scratch(tmp_path / "nowhere")
