"""`louver explore`: what is refused before anything is served, in one sentence."""

from __future__ import annotations

import socket
import sys
from pathlib import Path

import pytest

from cli.command import Runner


def test_bad_calls(call_louver: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        done = call_louver("explore", f"--port={port}")
    assert (done.code, done.err) == (
        2,
        f"louver explore: option --port: {port} is in use or not allowed; choose another, or leave it out.\n",
    )
    done = call_louver("explore", str(tmp_path / "people.csv"))
    assert (done.code, done.err) == (2, "louver explore: people.csv does not exist; check the path.\n")
    monkeypatch.setitem(sys.modules, "nicegui", None)
    done = call_louver("explore")
    assert (done.code, done.err) == (
        2,
        "louver explore: the explorer is not installed; run pip install 'louver[app]'.\n",
    )
