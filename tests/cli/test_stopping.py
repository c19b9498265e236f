"""Ctrl-C, SIGTERM and SIGHUP: one line, the right exit code, at whatever moment they come."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from cli.command import child_environment
from louver.cli import app, console, demo
from louver.errors import Cancelled
from louver.release import write
from louver.release.manifest import Manifest
from louver.report import page
from louver.run import Run

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
    before = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM), sys.unraisablehook
    with console.console_run() as run:
        stop(run)
    assert (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM), sys.unraisablehook) == before


def stop(run: Run) -> None:
    """A signal to this process, until the run knows of it."""
    os.kill(os.getpid(), signal.SIGTERM)
    while not run.is_cancelled:
        time.sleep(0.01)


def test_a_clean_up_that_fails_hides_nothing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A drawing that is interrupted was told as an internal error of the library that draws."""

    def draw(out: Path, seconds: float, run: Run) -> None:
        stop(run)
        raise ValueError("an element was left open")

    monkeypatch.setattr(demo, "run_demo", draw)
    monkeypatch.setattr(demo, "_make_room", lambda out: None)
    monkeypatch.setattr(demo, "write_samples", lambda out: None)
    monkeypatch.setattr(sys, "argv", ["louver", "demo"])
    assert app.run_app() == 143
    assert capsys.readouterr() == ("", "louver demo: stopped.\n")


class Finalizer:
    def __del__(self) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(600)


def test_an_interrupt_that_a_finalizer_swallows(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nothing is printed about it, and the work behind it is interrupted all the same."""
    monkeypatch.setattr(console, "GRACE_SECONDS", 0.01)
    with pytest.raises(KeyboardInterrupt), console.console_run():
        Finalizer()
        time.sleep(600)
    assert capsys.readouterr() == ("", "")


def test_other_failures_of_finalizers_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    told = []
    monkeypatch.setattr(sys, "unraisablehook", told.append)
    monkeypatch.setattr(Finalizer, "__del__", lambda self: 1 / 0)
    with console.console_run():
        Finalizer()
    assert [one.exc_type for one in told] == [ZeroDivisionError]


def test_who_clears_up_is_left_in_peace(monkeypatch: pytest.MonkeyPatch) -> None:
    """Work that has noticed is not interrupted while it removes what it made."""
    monkeypatch.setattr(console, "GRACE_SECONDS", 0.01)
    with pytest.raises(Cancelled), console.console_run() as run:
        run.cancel()
        try:
            run.check()
        finally:
            stop(run)
            time.sleep(0.1)


def test_a_release_that_is_logged_is_moved_into_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The ledger would tell of a release that nobody has."""
    monkeypatch.setattr(console, "GRACE_SECONDS", 0.01)
    monkeypatch.setattr(write, "_check_kept", lambda folder, manifest: None)
    with console.console_run() as run, write.ReleaseWriter(tmp_path / "out", run) as writer:

        def log() -> str:
            stop(run)
            time.sleep(0.1)
            return "head"

        writer.path("data/a.txt").write_text("a")
        writer.seal(Manifest(verb="test", method="none", parameters={}, promises=[]), log)
    assert (tmp_path / "out").is_dir()


def test_while_a_page_is_drawn(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """It is left to itself and never written, nor is what would be written beside it."""
    end = threading.Event()

    def draw(figure: object) -> str:
        os.kill(os.getpid(), signal.SIGINT)
        end.wait()
        return "<svg>"

    (tmp_path / "people.csv").write_text("age,sex\n30,f\n40,m\n")
    monkeypatch.setattr(page, "svg", draw)
    monkeypatch.setattr(console, "GRACE_SECONDS", 600.0)
    monkeypatch.chdir(tmp_path)
    asked = ["profile", "people.csv", "--write-spec=a.toml", "--html=a.html"]
    monkeypatch.setattr(sys, "argv", ["louver", *asked])
    assert app.run_app() == 130
    end.set()
    assert capsys.readouterr() == ("", "louver profile: stopped.\n")
    assert [path.name for path in tmp_path.iterdir()] == ["people.csv"]


def test_while_a_release_is_sealed_the_stewards_page_is_not_left_behind(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """It would compare the records with a release that nobody has; an older page stays as it was."""

    def check(folder: object, manifest: object) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        threading.Event().wait()

    (tmp_path / "people.csv").write_text("age,ill\n" + "".join(f"{age},flu\n" for age in range(6)))
    (tmp_path / "old.html").write_text("old")
    monkeypatch.setattr(write, "_check_kept", check)
    monkeypatch.setattr(console, "GRACE_SECONDS", 600.0)
    monkeypatch.chdir(tmp_path)
    for page_name in ("a.html", "old.html"):
        asked = ["anonymize", "people.csv", "--quasi=age", "-k", "3", "--out=out", f"--html={page_name}"]
        monkeypatch.setattr(sys, "argv", ["louver", *asked])
        assert app.run_app() == 130
        assert capsys.readouterr() == ("", "louver anonymize: stopped.\n")
    assert {path.name for path in tmp_path.iterdir()} == {"people.csv", "old.html"}
    assert (tmp_path / "old.html").read_text() == "old"


PUBLISHING = {
    "audit": ["audit", "audit.toml", "--register=register", "--publish=out"],
    "bounds": ["bounds", "people.csv", "--rows=town", "--cols=sex", "--register=register", "--publish=out"],
}


@pytest.mark.parametrize("verb", PUBLISHING)
def test_what_is_published_gets_its_page(
    verb: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """A signal that comes while the page is drawn is too late: the register tells of the tables already."""
    real = page.svg

    def draw(figure: object) -> str:
        os.kill(os.getpid(), signal.SIGINT)
        return real(figure)

    (tmp_path / "people.csv").write_text("town,sex\n" + "A,f\nA,m\nB,f\nB,m\n" * 20)
    (tmp_path / "audit.toml").write_text(
        '[source]\nfile = "people.csv"\n[[audit.tables]]\nname = "a"\nby = ["town", "sex"]\n'
    )
    monkeypatch.setattr(page, "svg", draw)
    monkeypatch.setattr(console, "GRACE_SECONDS", 600.0)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["louver", *PUBLISHING[verb], "--html=a.html"])
    assert app.run_app() == 0, capsys.readouterr()
    assert (tmp_path / "out" / "manifest.json").exists() and (tmp_path / "a.html").exists()
