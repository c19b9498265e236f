"""The command as a newcomer meets it: in a process of its own, or in this one where that adds nothing."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from cli.command import COUNTED, SAFE, Finished, Runner, child_environment
from louver.cli import main


@pytest.fixture(scope="session")
def run_louver() -> Runner:
    """Run `python -m louver ...` in a process of its own."""

    def run(*arguments: str | Path, cwd: Path | None = None, **environment: str) -> Finished:
        done = subprocess.run(
            [sys.executable, "-m", "louver", *map(str, arguments)],
            cwd=cwd,
            env=child_environment(**environment),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
        )
        return Finished(done.returncode, done.stdout, done.stderr)

    return run


@pytest.fixture
def call_louver(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Runner:
    """The same in this process, through `main`."""

    def call(*arguments: str | Path) -> Finished:
        monkeypatch.setattr("louver.cli._leave_at_once", sys.exit)
        monkeypatch.setattr(sys, "argv", ["louver", *map(str, arguments)])
        capfd.readouterr()
        with pytest.raises(SystemExit) as ended:
            main()
        out, err = capfd.readouterr()
        assert isinstance(ended.value.code, int)
        return Finished(ended.value.code, out, err)

    return call


@pytest.fixture
def counted(tmp_path: Path) -> Path:
    """A counted table all of whose counts are determined."""
    path = tmp_path / "counted.csv"
    path.write_text(COUNTED, encoding="utf-8")
    return path


@pytest.fixture
def safe(tmp_path: Path) -> Path:
    """A counted table that gives no count away."""
    path = tmp_path / "safe.csv"
    path.write_text(SAFE, encoding="utf-8")
    return path
