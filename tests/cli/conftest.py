"""The command as a newcomer meets it: in a process of its own, or in this one where that adds nothing.

With LOUVER_SITE set to a folder that holds an installed wheel, both run against that wheel.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

if SITE := os.environ.get("LOUVER_SITE"):
    sys.path.insert(0, SITE)

import louver
from louver.cli import main

PACKAGE = Path(louver.__file__).parent

# Two sites, N = 15 = R, so that every count is determined: the factors of both rows are 1.
COUNTED = "site,ill,count\nA,no,4\nA,yes,3\nB,no,3\nB,yes,5\n"

# Both rows reduce to (1, 1): 2a + 2b = 60 with a, b >= 1, so that each cell is anything from 1 to 29.
SAFE = "site,ill,count\nA,no,10\nA,yes,10\nB,no,20\nB,yes,20\n"


@dataclass(frozen=True)
class Finished:
    """How a run of the command ended."""

    code: int
    out: str
    err: str


Runner = Callable[..., Finished]


def child_environment(**more: str) -> dict[str, str]:
    """The environment of a child that imports the louver under test."""
    return {**os.environ, "PYTHONPATH": str(PACKAGE.parent), **more}


@pytest.fixture(scope="session")
def run_louver() -> Runner:
    """Run `python -m louver ...` in a process of its own."""

    def run(*arguments: str | Path, cwd: Path | None = None, **environment: str) -> Finished:
        command = [sys.executable, "-m", "louver", *map(str, arguments)]
        done = subprocess.run(
            command,
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
        monkeypatch.setattr(sys, "argv", ["louver", *map(str, arguments)])
        capfd.readouterr()
        with pytest.raises(SystemExit) as ended:
            main()
        out, err = capfd.readouterr()
        return Finished(int(ended.value.code), out, err)

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
