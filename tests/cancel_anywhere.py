"""Stopping every verb at random moments. A program, not a test module.

cancel_anywhere.py [--times 50] [--verb V ...]     cancel a `Run` from another thread, and the command by signals; one line per verb:
                                                   how long it took to stop, and what was wrong afterwards

What must hold whenever it is stopped: nothing is left behind but what a run can be carried on from, and no debit is without its
noise, that is, the same call afterwards ends well and the ledger has paid once.
"""

# ruff: noqa: T201

from __future__ import annotations

import argparse
import os
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

import louver as lv
from louver.data.samples import sample_path
from louver.errors import Cancelled
from louver.privacy.budget import Measure
from louver.privacy.ledger import Ledger
from louver.privacy.neighbours import Relation
from louver.run import Run
from topdown_town import write_town

KEPT = (".topdown", ".ledger", ".ledger-wal", ".ledger-shm")


@dataclass(frozen=True)
class Verb:
    """A call that takes a second or more, in a folder of its own, and the same as a command."""

    prepare: Callable[[Path], None]
    call: Callable[[Path, Run | None], object]
    command: Callable[[Path], list[str]]
    cost: Fraction | None = None  # what one run takes from the ledger


def _people(folder: Path, n: int = 20_000) -> None:
    draw = random.Random(3)
    with (folder / "people.csv").open("w") as file:
        file.write("age,town,sex,ill,home\n")
        for i in range(n):
            row = (
                draw.randrange(90),
                f"t{draw.randrange(40)}",
                draw.choice("fm"),
                draw.choice("abcd"),
                f"h{i // 3}",
            )
            file.write(",".join(map(str, row)) + "\n")
    (folder / "towns.csv").write_text("town\n" + "".join(f"t{i}\n" for i in range(40)))


def _with_ledger(neighbours: Relation, prepare: Callable[[Path], None]) -> Callable[[Path], None]:
    def both(folder: Path) -> None:
        prepare(folder)
        Ledger.create(folder / "people.csv.ledger", Measure.EPSILON, neighbours, Fraction(9))

    return both


CPS8 = {"rows": ["X1", "X2", "X3", "X4", "X5", "X6"], "cols": ["X7", "X8"], "weight": "count"}
GROUPS: dict[str, Any] = {
    "unit": "home",
    "regions": ["town"],
    "max_size": 40,
    "epsilon": 1,
    "across": "split",
}
CPS8_OPTIONS = ["--rows=X1,X2,X3,X4,X5,X6", "--cols=X7,X8", "--weight=count"]

VERBS = {
    "bounds": Verb(
        lambda folder: None,
        lambda folder, run: lv.bounds(sample_path("cps8"), **CPS8, run=run),
        lambda folder: ["bounds", str(sample_path("cps8")), *CPS8_OPTIONS, "--json"],
    ),
    "suggest": Verb(
        lambda folder: None,
        lambda folder, run: lv.bounds.suggest(sample_path("cps8"), **CPS8, seconds=5, run=run),
        lambda folder: [
            "bounds",
            str(sample_path("cps8")),
            *CPS8_OPTIONS,
            "--suggest",
            "--seconds=5",
            "--json",
        ],
    ),
    "anonymize": Verb(
        _people,
        lambda folder, run: lv.anonymize(
            folder / "people.csv",
            quasi=["age", "town", "sex"],
            identifying=["home"],
            seconds=3,
            out=folder / "out",
            run=run,
        ),
        lambda folder: [
            "anonymize",
            "people.csv",
            "--quasi=age,town,sex",
            "--identifying=home",
            "--seconds=3",
            "--out=out",
        ],
    ),
    "groups": Verb(
        _with_ledger(Relation.ADD_REMOVE_RECORD, _people),
        lambda folder, run: lv.groups(
            folder / "people.csv", domain=str(folder / "towns.csv"), **GROUPS, out=folder / "out", run=run
        ),
        lambda folder: [
            "groups",
            "people.csv",
            "--domain=towns.csv",
            "--unit=home",
            "--regions=town",
            "--max-size=40",
            "--epsilon=1",
            "--across=split",
            "--out=out",
        ],
        cost=Fraction(1),
    ),
    "topdown": Verb(
        _with_ledger(Relation.CHANGE_RECORD, lambda folder: (write_town(folder), None)[1]),
        lambda folder, run: lv.topdown(folder / "town.toml", out=folder / "out", resume=True, run=run),
        lambda folder: ["topdown", "run", "town.toml", "--out=out", "--resume"],
        cost=Fraction(2),
    ),
}


@dataclass
class Tally:
    """What was seen of one verb."""

    late: list[float] = field(default_factory=list)
    n_finished: int = 0
    n_early: int = 0
    faults: list[str] = field(default_factory=list)


def cancel_thread(verb: Verb, folder: Path, moment: float, tally: Tally) -> None:
    """Cancel the library's call from another thread."""
    run, ended = Run(), []

    def work() -> None:
        try:
            verb.call(folder, run)
            ended.append("finished")
        except Cancelled:
            ended.append("cancelled")
        except BaseException as error:  # noqa: BLE001 - whatever it is, it is told
            ended.append(repr(error))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join(moment)
    asked = time.monotonic()
    run.cancel()
    thread.join()
    _note(tally, ended[0], time.monotonic() - asked)


def signal_command(verb: Verb, folder: Path, moment: float, tally: Tally, kind: signal.Signals) -> None:
    """Send a signal to the command."""
    command = [sys.executable, "-m", "louver", *verb.command(folder)]
    process = subprocess.Popen(
        command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )
    try:
        process.wait(moment)
    except subprocess.TimeoutExpired:
        process.send_signal(kind)
    asked = time.monotonic()
    _, told = process.communicate()
    stopped = process.returncode in (128 + kind, 130)
    is_sentence = told.count("\n") == 1 and told.endswith("stopped.\n")
    how = (
        "finished"
        if process.returncode == 0
        else "early"
        if process.returncode == -kind
        else "cancelled"
        if stopped and is_sentence
        else f"exit {process.returncode}: {told[-300:]}"
    )
    _note(tally, how, time.monotonic() - asked)


def _note(tally: Tally, how: str, seconds: float) -> None:
    if how == "finished":
        tally.n_finished += 1
    elif how == "early":  # the system ended the process before the command was loaded, and nothing was begun
        tally.n_early += 1
    elif how == "cancelled":
        tally.late.append(seconds)
    else:
        tally.faults.append(how)


def look_around(verb: Verb, folder: Path, before: set[str], scratch: Path) -> list[str]:
    """What must not be there, and whether what was paid for can still be had."""
    faults = []
    left = {path.name for path in folder.iterdir()} - before - {"out"}
    if odd := {name for name in left if not name.endswith(KEPT)}:
        faults.append(f"left behind: {sorted(odd)}")
    if odd := [path.name for path in scratch.iterdir()]:
        faults.append(f"left in the temporary folder: {odd[:3]}")
    if verb.cost is None:
        return faults
    ledger = Ledger(folder / "people.csv.ledger")
    if not ledger.verify().is_sound:
        faults.append("the ledger is not sound")
    state = ledger.state()
    if state.spent > verb.cost:
        faults.append(f"spent {state.spent}")
    if not (folder / "out").exists():
        verb.call(folder, None)
        after = ledger.state()
        if after.spent != verb.cost or after.pending:
            faults.append(f"after it was carried on: spent {after.spent}, {len(after.pending)} pending")
    if not lv.verify(folder / "out").passed:
        faults.append("the release does not verify")
    return faults


def stop_often(name: str, times: int, draw: random.Random) -> tuple[Tally, Tally]:
    """Stop one verb at random moments of its whole run, by either way in turn."""
    verb, thread, command = VERBS[name], Tally(), Tally()
    with tempfile.TemporaryDirectory(prefix="louver-cancel-") as root_name:
        root = Path(root_name)
        lengths = [_whole(verb, root / "whole", by_command) for by_command in (False, True)]
        for number in range(times):
            by_command = number % 2 == 1
            folder = root / str(number)
            folder.mkdir()
            verb.prepare(folder)
            before = {path.name for path in folder.iterdir()}
            scratch = root / f"tmp{number}"
            scratch.mkdir()
            tempfile.tempdir = os.environ["TMPDIR"] = str(scratch)
            moment = draw.random() * lengths[by_command]
            if by_command:
                signal_command(
                    verb, folder, moment, command, draw.choice((signal.SIGTERM, signal.SIGINT, signal.SIGHUP))
                )
            else:
                cancel_thread(verb, folder, moment, thread)
            (command if by_command else thread).faults.extend(look_around(verb, folder, before, scratch))
        tempfile.tempdir = None
        del os.environ["TMPDIR"]
    return thread, command


def _whole(verb: Verb, folder: Path, by_command: bool) -> float:
    """Seconds of a run that nobody stops; the first one compiles, the second counts."""
    for number in range(2):
        place = folder.with_name(f"{folder.name}{by_command}{number}")
        place.mkdir()
        verb.prepare(place)
        began = time.monotonic()
        if by_command:
            subprocess.run(
                [sys.executable, "-m", "louver", *verb.command(place)],
                cwd=place,
                stdout=subprocess.DEVNULL,
                check=True,
            )
        else:
            verb.call(place, None)
    return time.monotonic() - began


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--times", type=int, default=50)
    parser.add_argument("--verb", nargs="+", choices=VERBS, default=list(VERBS))
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    draw = random.Random(options.seed)
    n_faults = 0
    for name in options.verb:
        for way, tally in zip(("thread", "command"), stop_often(name, options.times, draw), strict=True):
            late = (
                f"median {statistics.median(tally.late):.2f} s, longest {max(tally.late):.2f} s"
                if tally.late
                else "never"
            )
            print(
                f"{name}, {way}: {len(tally.late)} stopped ({late}), {tally.n_finished} had finished, "
                f"{tally.n_early} had not begun, {len(tally.faults)} faults",
                flush=True,
            )
            for fault in tally.faults:
                print(f"    {fault}", flush=True)
            n_faults += len(tally.faults)
    return 1 if n_faults else 0


if __name__ == "__main__":
    sys.exit(main())
