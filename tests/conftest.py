"""Shared fixtures: a PostgreSQL server of our own, and the rule that nothing is skipped in CI."""

from __future__ import annotations

import glob
import os
import pwd
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from one_database import one_database

NOTHING_SKIPPED = os.environ.get("LOUVER_NOTHING_SKIPPED") == "1"

# A shared machine is slow at times; a slow example is not a fault. In CI the examples are the same every time, so that a
# run says something about the change; elsewhere new ones are tried.
settings.register_profile(
    "louver", deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=NOTHING_SKIPPED
)
settings.load_profile("louver")

SERVER_START_SECONDS = 60

STARTING = {"browser", "explorer", "postgres_uri", "cluster", "certificate", "manual", "run_louver"}
"""Fixtures that start a server or another program: their tests are long, whether they say so or not."""

if "PYTEST_XDIST_WORKER" in os.environ:
    from compiling import compile_once

    compile_once()


def pytest_collection_modifyitems(items):
    for item in items:
        is_starting = not STARTING.isdisjoint(getattr(item, "fixturenames", ()))
        if is_starting or item.get_closest_marker("chromium") or item.get_closest_marker("postgres"):
            item.add_marker(pytest.mark.long)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    report = yield
    return fail_if_skipped(report)


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector):
    report = yield
    return fail_if_skipped(report)


def fail_if_skipped(report):
    """Where everything is installed a skip hides a fault; an expected failure is not a skip."""
    if NOTHING_SKIPPED and report.outcome == "skipped" and not hasattr(report, "wasxfail"):
        report.outcome = "failed"
        report.longrepr = f"skipped although LOUVER_NOTHING_SKIPPED=1: {report.longrepr}"
    return report


@pytest.fixture(autouse=True)
def shares_database() -> Iterator[None]:
    """Sources share a database. Tests of reading and of DuckDB's files leave it out by a fixture of this name."""
    with one_database():
        yield


@pytest.fixture(scope="session")
def postgres_uri() -> Iterator[str]:
    """Address of a fresh PostgreSQL server that listens on a socket in its own folder."""
    programs = find_postgres()
    if programs is None:
        pytest.skip("PostgreSQL (initdb, postgres) is not installed")
    owner = server_owner()
    if owner is None:
        pytest.skip("PostgreSQL does not run as root and there is no user postgres or nobody")
    folder = Path(tempfile.mkdtemp(prefix="louver-pg-"))
    os.chown(folder, owner.pw_uid, owner.pw_gid)
    data = folder / "data"
    drop = {"user": owner.pw_uid, "group": owner.pw_gid, "extra_groups": []} if os.geteuid() == 0 else {}
    quiet = {"cwd": folder, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    initdb = [programs / "initdb", "-D", data, "-U", "louver", "-A", "trust", "-E", "UTF8", "--no-sync"]
    server = None
    try:
        subprocess.run([*initdb, "--locale=C"], check=True, **quiet, **drop)
        command = [
            programs / "postgres",
            "-D",
            data,
            "-k",
            folder,
            "-c",
            "listen_addresses=",
            "-c",
            "fsync=off",
        ]
        server = subprocess.Popen(command, **quiet, **drop)
        wait_for(folder / ".s.PGSQL.5432", server)
        yield f"postgresql:///postgres?host={folder}&user=louver"
    finally:
        if server is not None:
            server.terminate()
            server.wait(timeout=600)
        shutil.rmtree(folder, ignore_errors=True)


def find_postgres() -> Path | None:
    """Folder of the newest server programs."""
    folders = sorted(glob.glob("/usr/lib/postgresql/*/bin"), reverse=True)
    found = shutil.which("initdb")
    if found is not None:
        folders.append(str(Path(found).resolve().parent))
    usable = (Path(folder) for folder in folders)
    return next(
        (folder for folder in usable if (folder / "initdb").exists() and (folder / "postgres").exists()), None
    )


def server_owner() -> pwd.struct_passwd | None:
    """The user to run the server as: ourselves, or an unprivileged one where we are root."""
    if os.geteuid() != 0:
        return pwd.getpwuid(os.geteuid())
    known = {entry.pw_name: entry for entry in pwd.getpwall()}
    return known.get("postgres", known.get("nobody"))


def wait_for(socket: Path, server: subprocess.Popen) -> None:
    """Wait until the server has made its socket and answers."""
    from adbc_driver_postgresql import dbapi

    deadline = time.monotonic() + SERVER_START_SECONDS
    while True:
        if server.poll() is not None or time.monotonic() > deadline:
            raise RuntimeError("the PostgreSQL server did not start")
        if socket.exists():
            try:
                dbapi.connect(f"postgresql:///postgres?host={socket.parent}&user=louver").close()
                return
            except dbapi.Error:
                pass
        time.sleep(0.1)
