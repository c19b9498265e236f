"""The command itself: version, help, demo, and how it ends when something unexpected happens."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

import louver
import louver.cli
from cli.command import Runner, child_environment
from louver.cli.demo import MARK, STEPS
from louver.data.samples import sample_path
from louver.optim.notice import SECONDS, compiling

ARRANGED = ("--rows", "site", "--cols", "ill", "--weight", "count")
SECRET = "Zyx77Confidential"


def test_version(run_louver: Runner) -> None:
    done = run_louver("--version")
    assert (done.code, done.out, done.err) == (0, f"louver {louver.__version__}\n", "")


def test_version_of_the_package() -> None:
    assert version("louver") == louver.__version__


def test_help(call_louver: Runner) -> None:
    """Bare `louver` is a question, not a mistake."""
    bare, asked = call_louver(), call_louver("--help")
    assert bare == asked
    assert (asked.code, asked.err) == (0, "")
    assert re.findall(r"^  (\w+)  ", asked.out, re.MULTILINE) == list(louver.cli.VERBS)


@pytest.mark.parametrize("verb", louver.cli.VERBS)
def test_help_of_a_verb(call_louver: Runner, verb: str) -> None:
    done = call_louver(verb, "--help")
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith(f"Usage: louver {verb} ")
    options = re.findall(r"^  (--[\w-]+).*", done.out, re.MULTILINE)
    assert "--help" in options
    assert len(options) == len(set(options))
    for told in re.findall(r"^  --[\w-]+(.*(?:\n {8}.*)*)", done.out, re.MULTILINE):
        assert re.search(r" {2}\S", told), "an option without a word of help"


def test_options_of_bounds(call_louver: Runner) -> None:
    """The options that other programs rely on."""
    out = call_louver("bounds", "--help").out
    promised = (
        "rows cols weight conditionals n recode given cells arrangements decimals rounding small drop-zero-rows "
        "suggest seconds fail-on html json spec table query"
    )
    for name in promised.split():
        assert re.search(rf"^  --{name}\b", out, re.MULTILINE), name


@pytest.mark.long
def test_demo(call_louver: Runner, tmp_path: Path) -> None:
    """Every job once, as commands that can be copied; an earlier demo is replaced."""
    out = tmp_path / "demo-output"
    assert call_louver("demo", "--files", "--out", out).code == 0
    assert (out / "data" / "people.csv").read_text().startswith("age,employment,")
    (out / "left").touch()
    done = call_louver("demo", "--seconds", "1", "--out", out)
    assert (done.code, done.err) == (0, "")
    assert len(re.findall(r"^\$ louver \w+", done.out, re.MULTILINE)) == len(STEPS)
    names = [
        "anonymous",
        "anonymous-inside.html",
        "audit.html",
        "bounds.html",
        "county",
        "crashes",
        "data",
        "profile.html",
    ]
    assert sorted(path.name for path in out.iterdir()) == sorted([*names, MARK])
    assert "Redesigns" in (out / "bounds.html").read_text(encoding="utf-8")
    for release in ("crashes", "county"):
        assert call_louver("verify", out / release).code == 0
        assert "NOT PRIVATE" not in (out / release / "report.html").read_text(encoding="utf-8")


def test_the_demo_explains_the_wait(
    call_louver: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not only on a terminal, where every command says so."""
    monkeypatch.setattr("louver.cli.demo.run_demo", lambda *_: compiling("families"))
    done = call_louver("demo", "--out", tmp_path / "out")
    assert (done.code, done.out) == (
        0,
        f"(compiling, once per installation: about {SECONDS['families']} s)\n",
    )


def test_demo_leaves_files_of_others_alone(call_louver: Runner, tmp_path: Path) -> None:
    (tmp_path / "mine.csv").touch()
    done = call_louver("demo", "--out", tmp_path)
    assert done.code == 2 and done.err.endswith(
        "holds files that the demo did not write; name another folder.\n"
    )
    assert [path.name for path in tmp_path.iterdir()] == ["mine.csv"]


def test_a_step_of_the_demo_that_fails(
    call_louver: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("louver.cli.demo.STEPS", (("Nothing there?", "verify data", ""),))
    done = call_louver("demo", "--out", tmp_path / "out")
    assert done.code == 2 and done.err


def test_demo_into_nowhere(call_louver: Runner, counted: Path) -> None:
    for out in (counted, counted / "below"):
        done = call_louver("demo", "--out", out)
        assert (done.code, done.out) == (2, "")
        assert done.err.startswith("louver demo: option --out cannot create the folder ")
    done = call_louver("demo", "--seconds", "0", "--out", counted.parent)
    assert (done.code, done.err) == (2, "louver demo: option --seconds must be greater than 0.\n")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (
            ("nonsense",),
            "louver: unknown command; choose profile, bounds, audit, protect, anonymize, groups, verify, demo, topdown, ledger or explore.",
        ),
        (("--nonsense",), "louver: there is no option --nonsense; see --help."),
        (("-x", "bounds"), "louver bounds: there is no option -x; see --help."),
        (("bounds", "-x"), "louver bounds: there is no option -x; see --help."),
        (("--versio",), "louver: there is no option --versio; did you mean --version?"),
        (("demo", "--seconds", "soon"), "louver demo: option --seconds must be a number."),
        (("demo", "--out"), "louver demo: option --out needs a value."),
        (
            ("demo", "here"),
            "louver demo: there is one argument too many; put no space after a comma, and quote names that contain one.",
        ),
    ],
)
def test_wrong_use(call_louver: Runner, arguments: tuple[str, ...], sentence: str) -> None:
    done = call_louver(*arguments)
    assert (done.code, done.out, done.err) == (2, "", sentence + "\n")


def fail_with(monkeypatch: pytest.MonkeyPatch, error: BaseException) -> None:
    """Let the audit break down."""

    def broken(*_: object, **__: object) -> int:
        raise error

    monkeypatch.setattr("louver.cli.bounds.answer", broken)


def test_internal_error(call_louver: Runner, counted: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A fault of ours names the line and not the value."""
    fail_with(monkeypatch, ValueError(SECRET))
    done = call_louver("bounds", counted, *ARRANGED)
    assert (done.code, done.out) == (70, "")
    assert re.fullmatch(
        r"louver bounds: internal error ValueError at test_command\.py:\d+; please report it "
        r"\(LOUVER_DEBUG=1 shows more\)\.\n",
        done.err,
    )
    monkeypatch.setenv("LOUVER_DEBUG", "1")
    monkeypatch.setattr(sys, "argv", ["louver", "bounds", str(counted), *ARRANGED])
    with pytest.raises(ValueError):
        louver.cli.main()


@pytest.mark.parametrize(
    ("error", "code", "told"),
    [(KeyboardInterrupt(), 130, "stopped."), (MemoryError(), 2, "too large for this machine's memory")],
)
def test_stopped(
    call_louver: Runner,
    counted: Path,
    monkeypatch: pytest.MonkeyPatch,
    error: BaseException,
    code: int,
    told: str,
) -> None:
    fail_with(monkeypatch, error)
    done = call_louver("bounds", counted, *ARRANGED)
    assert (done.code, done.out) == (code, "")
    assert told in done.err
    assert done.err.count("\n") == 1


def test_nobody_reads(counted: Path) -> None:
    """`louver ... | head`: no traceback, and not the exit code of a failed check."""
    command = [sys.executable, "-m", "louver", "bounds", str(counted), *ARRANGED, "--json"]
    process = subprocess.Popen(
        command, env=child_environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout is not None
    process.stdout.close()
    _, err = process.communicate()
    assert (process.returncode, err) == (141, b"")


@pytest.mark.long
def test_progress_on_a_terminal() -> None:
    """From the second second on, on stderr only, and nothing of it is left."""
    rows = ("--rows", "X1,X2,X3,X4,X5,X6", "--cols", "X7,X8", "--weight", "count")
    command = [sys.executable, "-m", "louver", "bounds", str(sample_path("cps8")), *rows]
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [*command, "--suggest", "--seconds", "2", "--json"],
        env=child_environment(TERM="xterm", COLUMNS="100"),
        stdout=subprocess.PIPE,
        stderr=theirs,
    )
    os.close(theirs)
    out, _ = process.communicate()
    shown = read_all(ours)
    assert process.returncode == 0
    assert out.startswith(b'{"summary"')
    assert b"searching redesigns" in shown
    assert b"arrangements examined" in shown
    assert b"arrangements examined" not in out


def read_all(terminal: int) -> bytes:
    """What was written to a terminal whose other side is closed."""
    read = b""
    try:
        while chunk := os.read(terminal, 2**16):
            read += chunk
    except OSError:  # how Linux reports the end
        pass
    os.close(terminal)
    return read


def test_no_label_in_json_commands_a_terminal(call_louver: Runner, tmp_path: Path) -> None:
    path = tmp_path / "odd.csv"
    path.write_text("site\x9b,ill,count\nA\u2028,no,4\nA\u2028,yes,3\nB,no,3\nB,yes,5\n", encoding="utf-8")
    done = call_louver("bounds", path, "--rows=site\x9b", "--cols=ill", "--weight=count", "--json")
    assert done.code == 0 and "\x9b" not in done.out and "\u2028" not in done.out
    assert {cell["row"]["site\x9b"] for cell in json.loads(done.out)["cells"]} == {"A\u2028", "B"}
