"""An install that nobody may write to, and kernels that are compiled once."""

from __future__ import annotations

import json
import os
import pwd
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cli.command import COUNTED, PACKAGE, Runner, child_environment

ARRANGED = ("--rows", "site", "--cols", "ill", "--weight", "count")
CACHES = ("NUMBA_CACHE_DIR", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "MPLCONFIGDIR")


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that every user can reach, unlike pytest's own."""
    path = Path(tempfile.mkdtemp(prefix="louver-install-"))
    path.chmod(0o755)
    yield path
    for below in path.rglob("*"):
        if below.is_dir():
            below.chmod(0o755)
    shutil.rmtree(path)


@pytest.fixture
def site(folder: Path) -> Path:
    """A copy of the package that cannot be written to."""
    site = folder / "site"
    shutil.copytree(PACKAGE, site / "louver", ignore=shutil.ignore_patterns("__pycache__"))
    for path in (site, *site.rglob("*")):
        path.chmod(0o555 if path.is_dir() else 0o444)
    return site


def unprivileged() -> tuple[list[str], dict[str, Any]]:
    """How to run a command whom permissions bind: a prefix to it, and arguments of `subprocess.run`."""
    if os.geteuid() != 0:
        return [], {}
    nobody = pwd.getpwnam("nobody")
    drop = {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}
    try:
        subprocess.run([sys.executable, "-c", ""], check=True, **drop)
    except (
        OSError,
        subprocess.CalledProcessError,
    ):  # an interpreter in somebody's home: root without its powers
        if shutil.which("setpriv") is None:
            pytest.skip("running as root, nobody cannot reach the interpreter, and there is no setpriv")
        return ["setpriv", "--bounding-set=-all", "--inh-caps=-all"], {}
    return [], drop


@pytest.mark.long
def test_read_only_install_without_a_home(site: Path, folder: Path) -> None:
    """Kernels are compiled anew, pictures are drawn without a place for fonts, and nobody is told."""
    (folder / "counted.csv").write_text(COUNTED)
    out = folder / "out"
    out.mkdir()
    out.chmod(0o777)
    prefix, drop = unprivileged()
    environment = {name: value for name, value in child_environment().items() if name not in CACHES}
    environment |= {"PYTHONPATH": str(site), "HOME": str(site / "no-home")}
    environment["NUMBA_OPT"] = "0"  # half the time to compile

    def run(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
        command = [*prefix, sys.executable, *map(str, arguments)]
        return subprocess.run(
            command, cwd=folder, env=environment, capture_output=True, encoding="utf-8", **drop
        )

    probe = "import louver; open(louver.__path__[0] + '/new', 'w')"
    assert "PermissionError" in run("-c", probe).stderr
    done = run("-m", "louver", "bounds", "counted.csv", *ARRANGED, "--json", "--html", out / "report.html")
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["summary"]["disclosed_small_cells"] == 3
    assert "<svg" in (out / "report.html").read_text(encoding="utf-8")
    assert not list(site.rglob("*.nbi"))


def test_kernels_are_compiled_once(run_louver: Runner, counted: Path) -> None:
    """The second run loads machine code and saves none."""
    command = ("bounds", counted, *ARRANGED)
    run_louver(*command)
    again = run_louver(*command, NUMBA_DEBUG_CACHE="1")
    assert again.code == 0
    assert "[cache] data loaded from" in again.out
    assert "[cache] data saved to" not in again.out
