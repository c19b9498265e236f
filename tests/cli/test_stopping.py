"""Ctrl-C, SIGTERM and SIGHUP: one line, the right exit code, at whatever moment they come."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from cli.command import child_environment

POLITE = "while True: run.check(); time.sleep(0.01)"
DEAF = "time.sleep(600)"
STUBBORN = """
while True:
    try:
        time.sleep(600)
    except KeyboardInterrupt:
        print("interrupted", flush=True)
"""

COMMAND = """
import sys, time
import louver.cli.demo
from louver.cli import main

def work(out, seconds, run):
    print("ready", flush=True)
{work}

louver.cli.demo.run_demo = work
sys.argv = ["louver", "demo"]
main()
"""


def start(work: str, place: Path) -> subprocess.Popen[str]:
    """The command with other work in it, once it has begun."""
    indented = "\n".join("    " + line for line in work.splitlines())
    process = subprocess.Popen(
        [sys.executable, "-c", COMMAND.format(work=indented)],
        cwd=place,
        env=child_environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None and process.stdout.readline() == "ready\n"
    return process


@pytest.mark.parametrize("work", [POLITE, DEAF], ids=["asks", "never asks"])
@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)]
)
def test_stopped(work: str, number: int, code: int, tmp_path: Path) -> None:
    process = start(work, tmp_path)
    process.send_signal(number)
    out, err = process.communicate()
    assert (process.returncode, out, err) == (code, "", "louver demo: stopped.\n")


def test_the_second_signal_ends_at_once(tmp_path: Path) -> None:
    process = start(STUBBORN, tmp_path)
    process.send_signal(signal.SIGINT)
    assert process.stdout is not None and process.stdout.readline() == "interrupted\n"
    process.send_signal(signal.SIGINT)
    _, err = process.communicate()
    assert (process.returncode, err) == (130, "louver: stopped.\n")


def test_while_a_kernel_holds_the_main_thread(tmp_path: Path) -> None:
    """The flag is set although the interpreter's own handlers have to wait."""
    kernel = """
import numba, numpy
@numba.njit(nogil=True)
def spin(flag, turns):
    while flag[0] == 0:
        turns[0] += 1
turns = numpy.zeros(1, numpy.uint8)
spin(numpy.ones(1, numpy.uint8), turns)
print("compiled", flush=True)
spin(run.flag, turns)
run.check()
"""
    process = start(kernel, tmp_path)
    assert process.stdout is not None and process.stdout.readline() == "compiled\n"
    process.send_signal(signal.SIGINT)
    _, err = process.communicate()
    assert (process.returncode, err) == (130, "louver demo: stopped.\n")


def test_while_it_is_loaded() -> None:
    code = """
import sys
class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == "typer":
            raise KeyboardInterrupt
sys.meta_path.insert(0, Finder())
from louver.cli import main
main()
"""
    done = subprocess.run(
        [sys.executable, "-c", code], env=child_environment(), capture_output=True, text=True
    )
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "louver: stopped.\n")


def test_handlers_are_put_back() -> None:
    from louver.cli.console import console_run

    before = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
    with console_run() as run:
        os.kill(os.getpid(), signal.SIGTERM)
        while not run.is_cancelled:
            time.sleep(0.01)
    assert (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)) == before
