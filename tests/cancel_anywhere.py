"""Stopping every verb at random moments. A program, not a test module.

cancel_anywhere.py [--times 50] [--verb V ...]     cancel a `Run` from another thread, and the command by signals; two lines per verb:
                                                   how long it took to stop, and what was wrong afterwards

Most commands are forked from a process that has loaded them; every fifth is started from nothing. Of a machine that others use too,
the processor time between the request and the end tells more than the seconds.

What must hold whenever it is stopped: nothing is left behind but what a run can be carried on from, and no debit is without its
noise, that is, the same call afterwards ends well and the ledger has paid once.
"""

# ruff: noqa: T201

from __future__ import annotations

import argparse
import multiprocessing
import os
import random
import shutil
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
from functools import partial
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
from topdown_larger import write_larger
from topdown_town import write_town

KEPT = (".topdown", ".ledger", ".ledger-wal", ".ledger-shm")
COLD_EVERY = 5
TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Verb:
    """A call that takes a while, in a folder of its own, and the same as a command."""

    prepare: Callable[[Path], object]
    call: Callable[[Path, Run | None], object]
    command: list[str]
    cost: Fraction | None = None  # what one run takes from the ledger
    made: str = "out"  # what it makes
    left: tuple[
        str, ...
    ] = ()  # what a stopped run may leave, because the next one carries on with it or uses it again


def _nothing(folder: Path) -> None:
    pass


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


def _paid_people(folder: Path) -> None:
    _people(folder)
    Ledger.create(folder / "people.csv.ledger", Measure.EPSILON, Relation.ADD_REMOVE_RECORD, Fraction(9))


def _paid_town(folder: Path) -> None:
    write_town(folder)
    Ledger.create(folder / "people.csv.ledger", Measure.EPSILON, Relation.CHANGE_RECORD, Fraction(9))


def _measured_town(folder: Path) -> None:
    _paid_town(folder)
    lv.topdown.measure(folder / "town.toml", out=folder / "measured")


def _released_town(folder: Path) -> None:
    """A town whose first release is paid for: 2 of 9."""
    first, _ = write_larger(folder)
    Ledger.create(folder / "people.csv.ledger", Measure.EPSILON, Relation.CHANGE_RECORD, Fraction(9))
    lv.topdown(first, out=folder / "first")


CPS8 = {"rows": ["X1", "X2", "X3", "X4", "X5", "X6"], "cols": ["X7", "X8"], "weight": "count"}
CPS8_COMMAND = [
    "bounds",
    str(sample_path("cps8")),
    "--rows=X1,X2,X3,X4,X5,X6",
    "--cols=X7,X8",
    "--weight=count",
]
TABLES = [
    {"name": "a", "by": ["age", "sex"]},
    {"name": "b", "by": ["town", "sex"]},
    {"name": "c", "by": ["town", "ill"]},
]
AUDIT_SPEC = "".join(
    f'[[audit.tables]]\nname = "{table["name"]}"\nby = {table["by"]}\n'.replace("'", '"') for table in TABLES
)
GROUPS: dict[str, Any] = {
    "unit": "home",
    "regions": ["town"],
    "max_size": 40,
    "epsilon": 1,
    "across": "split",
}


def _audited(folder: Path) -> None:
    _people(folder)
    (folder / "audit.toml").write_text(f'[source]\nfile = "people.csv"\n{AUDIT_SPEC}')


PROTECT: dict[str, Any] = {
    "hide": {"tables": TABLES, "rules": [{"rule": "frequency", "minimum": 15}], "attackers": "outsider"},
    "cellkey": {
        "tables": TABLES,
        "rules": [{"rule": "frequency", "minimum": 5}],
        "method": "cellkey",
        "person": "id",
    },
}


def _protected(folder: Path) -> None:
    _people(folder)
    lines = (folder / "people.csv").read_text().splitlines()
    numbered = [f"{'id' if number == 0 else number},{line}" for number, line in enumerate(lines)]
    (folder / "people.csv").write_text("\n".join(numbered) + "\n")
    for method, asked in PROTECT.items():
        minimum = asked["rules"][0]["minimum"]
        spec = f'[source]\nfile = "people.csv"\n[[protect.rules]]\nrule = "frequency"\nminimum = {minimum}\n'
        (folder / f"{method}.toml").write_text(spec + AUDIT_SPEC.replace("audit.", "protect."))


def _protect(folder: Path, run: Run | None, method: str) -> object:
    return lv.protect(
        folder / "people.csv", **PROTECT[method], registry=folder / "register", out=folder / "out", run=run
    )


ANONYMIZE = ["anonymize", "people.csv", "--quasi=age,town,sex", "--identifying=home", "--out=out"]


def _anonymized(folder: Path, run: Run | None, **more: Any) -> object:
    return lv.anonymize(
        folder / "people.csv",
        quasi=["age", "town", "sex"],
        identifying=["home"],
        out=folder / "out",
        run=run,
        **more,
    )


VERBS = {
    "profile": Verb(
        _people,
        lambda folder, run: lv.profile(folder / "people.csv", run=run),
        ["profile", "people.csv", "--html=out.html"],
        made="out.html",
    ),
    "bounds": Verb(
        _nothing,
        lambda folder, run: lv.bounds(sample_path("cps8"), **CPS8, run=run),
        [*CPS8_COMMAND, "--html=out.html"],
        made="out.html",
    ),
    "suggest": Verb(
        _nothing,
        lambda folder, run: lv.bounds.suggest(sample_path("cps8"), **CPS8, seconds=1, run=run),
        [*CPS8_COMMAND, "--suggest", "--seconds=1", "--html=out.html"],
        made="out.html",
    ),
    "audit": Verb(
        _audited,
        lambda folder, run: lv.audit(
            folder / "people.csv",
            tables=TABLES,
            registry=folder / "register",
            publish=folder / "out",
            run=run,
        ),
        ["audit", "audit.toml", "--register=register", "--publish=out", "--html=out.html"],
        left=("register", "out.html"),
    ),
    "protect": Verb(
        _protected,
        partial(_protect, method="hide"),
        [
            "protect",
            "hide.toml",
            "--attackers=outsider",
            "--register=register",
            "--out=out",
            "--html=out.html",
        ],
        left=("register", "out.html"),
    ),
    "cellkey": Verb(
        _protected,
        partial(_protect, method="cellkey"),
        ["protect", "cellkey.toml", "--method=cellkey", "--person=id", "--register=register", "--out=out"],
        left=("register",),
    ),
    "anonymize": Verb(
        lambda folder: _people(folder, 2_000),
        partial(_anonymized, seconds=1),
        [*ANONYMIZE, "--seconds=1", "--html=out.html"],
        left=("out.html",),
    ),
    "parts": Verb(
        lambda folder: _people(folder, 2_000),
        partial(_anonymized, keep=["ill"], parts=3, seconds=0.5),
        [*ANONYMIZE, "--keep=ill", "--parts=3", "--seconds=0.5"],
    ),
    "groups": Verb(
        _paid_people,
        lambda folder, run: lv.groups(
            folder / "people.csv", domain=str(folder / "towns.csv"), **GROUPS, out=folder / "out", run=run
        ),
        [
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
    "measure": Verb(
        _paid_town,
        lambda folder, run: lv.topdown.measure(
            folder / "town.toml", out=folder / "out", resume=True, run=run
        ),
        ["topdown", "measure", "town.toml", "--out=out", "--resume"],
        cost=Fraction(2),
    ),
    "estimate": Verb(
        _measured_town,
        lambda folder, run: lv.topdown.estimate(
            folder / "town.toml", measurements=folder / "measured", out=folder / "out", run=run
        ),
        ["topdown", "estimate", "town.toml", "--measurements=measured", "--out=out"],
        cost=Fraction(2),
    ),
    "topdown": Verb(
        _paid_town,
        lambda folder, run: lv.topdown(folder / "town.toml", out=folder / "out", resume=True, run=run),
        ["topdown", "run", "town.toml", "--out=out", "--resume"],
        cost=Fraction(2),
    ),
    "extend": Verb(
        _released_town,
        lambda folder, run: lv.topdown.extend(
            folder / "larger.toml", out=folder / "out", resume=True, run=run
        ),
        ["topdown", "extend", "larger.toml", "--out=out", "--resume"],
        cost=Fraction(3),  # with the release that it extends
    ),
}


@dataclass
class Tally:
    """What was seen of one verb: seconds and processor seconds until it stopped."""

    late: list[float] = field(default_factory=list)
    worked: list[float] = field(default_factory=list)
    n_finished: int = 0
    n_early: int = 0
    faults: list[str] = field(default_factory=list)

    def note(self, how: str, late: float, worked: float) -> None:
        if how == "finished":
            self.n_finished += 1
        elif (
            how == "early"
        ):  # the system ended the process before the command was loaded, and nothing was begun
            self.n_early += 1
        elif how == "cancelled":
            self.late.append(late)
            self.worked.append(worked)
        else:
            self.faults.append(how)

    def __str__(self) -> str:
        stopped = "never stopped"
        if self.late:
            stopped = (
                f"{len(self.late)} stopped (median {statistics.median(self.late):.2f} s, longest {max(self.late):.2f} s; "
                f"of processor time {statistics.median(self.worked):.2f} and {max(self.worked):.2f} s)"
            )
        return f"{stopped}, {self.n_finished} had finished, {self.n_early} had not begun, {len(self.faults)} faults"


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
    asked, used = time.monotonic(), time.process_time()
    run.cancel()
    thread.join()
    tally.note(ended[0], time.monotonic() - asked, time.process_time() - used)


def command_here(arguments: list[str], folder: Path) -> None:
    """A command in a forked process."""
    from louver.cli import main

    os.chdir(folder)
    os.environ["TMPDIR"] = tempfile.tempdir = str(folder.with_name(f"tmp{folder.name}"))
    for name, stream in (("/dev/null", 1), (folder.with_name(f"err{folder.name}"), 2)):
        os.dup2(os.open(name, os.O_WRONLY | os.O_CREAT), stream)
    sys.argv = ["louver", *arguments]
    main()


def start(verb: Verb, folder: Path, is_cold: bool) -> tuple[int, Callable[[float | None], int | None]]:
    """A command: its process, and what waits for its exit code."""
    folder.with_name(f"err{folder.name}").touch()
    if not is_cold:
        process = SERVER.Process(target=command_here, args=(verb.command, folder))
        process.start()
        return process.pid or 0, lambda seconds: (process.join(seconds), process.exitcode)[1]
    environment = os.environ | {"TMPDIR": str(folder.with_name(f"tmp{folder.name}"))}
    with folder.with_name(f"err{folder.name}").open("w") as told:
        begun = subprocess.Popen(
            [sys.executable, "-m", "louver", *verb.command],
            cwd=folder,
            env=environment,
            stdout=subprocess.DEVNULL,
            stderr=told,
        )

    def wait(seconds: float | None) -> int | None:
        try:
            return begun.wait(seconds)
        except subprocess.TimeoutExpired:
            return None

    return begun.pid, wait


def signal_command(
    verb: Verb, folder: Path, moment: float, tally: Tally, kind: signal.Signals, is_cold: bool
) -> None:
    """Send a signal to the command."""
    pid, wait = start(verb, folder, is_cold)
    code, used = wait(moment), 0.0
    if code is None:
        used = processor_seconds(pid)
        os.kill(pid, kind)
    asked = latest = time.monotonic()
    last = used
    while code is None:
        last = max(last, processor_seconds(pid))
        latest, code = time.monotonic(), wait(0.02)
    told = folder.with_name(f"err{folder.name}").read_text()
    stopped = code in (128 + kind, 130) and told.count("\n") == 1 and told.endswith("stopped.\n")
    how = (
        "finished"
        if code == 0
        else "early"
        if code in (-kind, 1) and not told
        else "cancelled"
        if stopped
        else f"exit {code}: {told[-300:]}"
    )
    tally.note(how, max(latest, time.monotonic()) - asked, last - used)


def processor_seconds(pid: int) -> float:
    """What a process has used so far; 0 where it has ended."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / TICKS


def look_around(verb: Verb, folder: Path, before: set[str], scratch: Path, by_command: bool) -> list[str]:
    """What must not be there, and whether what was paid for can still be had."""
    faults = []
    if by_command and "out.html" in verb.left and (folder / "out.html").exists() != (folder / "out").exists():
        faults.append("the page or the release is there without the other")
    left = {path.name for path in folder.iterdir()} - before - {verb.made, *verb.left}
    if odd := {name for name in left if not name.endswith(KEPT)}:
        faults.append(f"left behind: {sorted(odd)}")
    if odd := [path.name for path in scratch.iterdir()]:
        faults.append(f"left in the temporary folder: {odd[:3]}")
    if "register" in verb.left:
        n_entries = len(list(folder.glob("register/0*.json")))
        if n_entries != (folder / "out").exists():
            faults.append(f"{n_entries} entries in the register")
    if verb.cost is not None:
        faults += look_at_ledger(verb, verb.cost, folder)
    out = folder / "out"
    if (out / "manifest.json").exists() and not lv.verify(out).passed:
        faults.append("the release does not verify")
    return faults


def look_at_ledger(verb: Verb, cost: Fraction, folder: Path) -> list[str]:
    """No debit without its noise: the same call afterwards ends well, and has paid once."""
    faults = []
    ledger = Ledger(folder / "people.csv.ledger")
    if not ledger.verify().is_sound:
        faults.append("the ledger is not sound")
    state = ledger.state()
    if state.spent > cost:
        faults.append(f"spent {state.spent}")
    if state.pending or not (folder / "out" / "measurements").exists():
        verb.call(folder, None)
        after = ledger.state()
        if after.spent != cost or after.pending:
            faults.append(f"after it was carried on: spent {after.spent}, {len(after.pending)} pending")
    return faults


def stop_often(name: str, times: int, draw: random.Random) -> tuple[Tally, Tally]:
    """Stop one verb at random moments of its whole run, by either way in turn."""
    verb, thread, command = VERBS[name], Tally(), Tally()
    with tempfile.TemporaryDirectory(prefix="louver-cancel-") as root_name:
        root = Path(root_name)
        whole, before = root / "whole", set[str]()
        whole.mkdir()
        verb.prepare(whole)
        before = {path.name for path in whole.iterdir()}
        lengths = [_length(verb, whole, way) for way in (None, False, True)]
        for number in range(times):
            folder, scratch = root / str(number), root / f"tmp{number}"
            shutil.copytree(whole, folder)
            scratch.mkdir()
            tempfile.tempdir = str(scratch)
            is_cold = number % (2 * COLD_EVERY) == 1
            by_command = number % 2 == 1
            moment = draw.random() * lengths[1 + is_cold if by_command else 0]
            kind = draw.choice((signal.SIGTERM, signal.SIGINT, signal.SIGHUP))
            if by_command:
                signal_command(verb, folder, moment, command, kind, is_cold)
            else:
                cancel_thread(verb, folder, moment, thread)
            tally = command if by_command else thread
            tally.faults.extend(look_around(verb, folder, before, scratch, by_command))
            shutil.rmtree(folder)
        tempfile.tempdir = None
    return thread, command


def _length(verb: Verb, whole: Path, is_cold: bool | None) -> float:
    """Seconds of a run that nobody stops, of a thread (None) or a command; the first one compiles, the second counts."""
    for number in range(2):
        folder = whole.with_name(f"{whole.name}{is_cold}{number}")
        shutil.copytree(whole, folder)
        folder.with_name(f"tmp{folder.name}").mkdir()
        began = time.monotonic()
        if is_cold is None:
            verb.call(folder, None)
        elif start(verb, folder, is_cold)[1](None) != 0 or not (folder / verb.made).exists():
            raise RuntimeError(folder.with_name(f"err{folder.name}").read_text())
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
            print(f"{name}, {way}: {tally}", flush=True)
            for fault in tally.faults:
                print(f"    {fault}", flush=True)
            n_faults += len(tally.faults)
    return 1 if n_faults else 0


SERVER = multiprocessing.get_context("forkserver")
SERVER.set_forkserver_preload(
    [
        "louver.cli.app",
        *(f"louver.cli.{name}" for name in ("profile", "bounds", "audit", "anonymize", "groups", "topdown")),
    ]
)

if __name__ == "__main__":
    sys.exit(main())
