"""What the tests run in other processes; a program, not a test module.

debit LEDGER N        make N debits of 1/2000 each, as fast as the lock allows; print how many were granted
forked LEDGER N       fork N children of one process that each reserve and draw; print (key, nonce) digests
succeed LEDGER N      call `succeed` for NEW-N.ledger; print whether it was this one
handover DIRECTORY N  kill `succeed` at every Nth event, look, and call it again; print what was wrong
crash DIRECTORY SEED  measure in a child that is killed, at named events and at random ones, then measure again
"""

# ruff: noqa: T201

from __future__ import annotations

import hashlib
import json
import os
import signal
import sys
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np

from louver.errors import BudgetError
from louver.privacy import ledger_file
from louver.privacy.budget import Loss, Measure
from louver.privacy.distributions import DiscreteLaplace
from louver.privacy.ledger import Ledger
from louver.privacy.measurements import Measurements, TrueBatch
from louver.privacy.neighbours import Relation
from louver.privacy.noise import KeyedNoise, Nonce, perturb
from louver.privacy.spend import Account, Payment, measure

LOSS = Loss(Fraction(1, 2000), Measure.EPSILON, Relation.ADD_REMOVE_RECORD)


def dataset(secret: bytes) -> bytes:
    return hashlib.sha256(secret + b"the data").digest()


def debit(ledger: Ledger, n: int) -> None:
    granted = 0
    for i in range(n):
        try:
            held = ledger.reserve(LOSS, request=f"{os.getpid()} {i}", purpose="test", dataset=dataset)
        except BudgetError:
            continue
        ledger.seal(held, {})
        granted += 1
    print(granted)


def forked(ledger: Ledger, n: int) -> None:
    inherited = KeyedNoise(bytes(32))
    for child in range(n):
        if os.fork() == 0:
            lines = ["an inherited source served a child"]
            try:
                inherited.draw(DiscreteLaplace(Fraction(1)), 1, Nonce(0, 0, 0))
            except BudgetError:
                held = ledger.reserve(LOSS, request=f"child {child}", purpose="test", dataset=dataset)
                noise = KeyedNoise(held.key)
                for batch in range(3):
                    noise.draw(DiscreteLaplace(Fraction(1)), 10, Nonce(0, 0, batch))
                key = hashlib.sha256(held.key).hexdigest()
                lines = [" ".join(map(str, (key, *nonce))) for nonce in sorted(noise._served)]
            # One write: the children share the pipe, and print may write a line in two pieces.
            os.write(1, "".join(line + "\n" for line in lines).encode())
            os._exit(0)
    for _ in range(n):
        os.wait()


def succeed(ledger: Ledger, number: int) -> None:
    try:
        ledger.succeed(ledger.path.with_name(f"NEW-{number}.ledger"))
        print("done")
    except BudgetError:
        print("refused")


def handover(directory: Path, stride: int) -> None:
    """Whatever the moment of a kill, two ledgers never both take debits, and a second call finishes."""
    events = 0
    for event in range(0, 10_000, stride):
        here = directory / str(event)
        here.mkdir()
        old = Ledger.create(here / "old.ledger", LOSS.measure, LOSS.neighbours, Fraction(1))
        old.seal(old.reserve(LOSS, request="r", purpose="test", dataset=dataset), {})
        old.disclose("exact")
        new = here / "new.ledger"

        def until(event: int = event, here: Path = here, old: Ledger = old, new: Path = new) -> None:
            (here / "events").write_text(str(events_until(event, partial(old.succeed, new))))

        status = in_child(until)
        if event == 0:
            events = int((here / "events").read_text())
        elif event > events:
            break
        else:
            assert os.WIFSIGNALED(status), status
        if new.exists() and old.state().successor is None:
            print(f"event {event}: two ledgers take debits")
        again = old.succeed(new)
        state = again.state()
        if (state.spent, state.disclosures, old.state().successor) != (LOSS.amount, ("exact",), "new.ledger"):
            print(f"event {event}: not carried over")
        if not (again.verify().is_sound and old.verify().is_sound):
            print(f"event {event}: not sound")
    print(f"{events // stride} kills")


def _batches() -> list[TrueBatch]:
    counts = np.arange(60).reshape(10, 6)
    return [
        TrueBatch(
            level="leaf",
            query="count",
            nonce=Nonce(0, 0, b),
            nodes=tuple(f"node {b} {i}" for i in range(10)),
            true_counts=counts + b,
            distribution=DiscreteLaplace(Fraction(20)),
        )
        for b in range(4)
    ]


def _measure(directory: Path) -> Measurements:
    return measure(
        directory / "measurements.parquet",
        _batches,
        account=Account(Ledger(directory / "data.ledger"), dataset),
        payment=Payment(loss=LOSS, request="the request", purpose="crash test"),
    )


Moment = int | str  # the number of an event, or its name: "Ledger.reserve return"


def events_until(moment: Moment, task: Callable[[], object]) -> int:
    """Run a task and kill this process at a call or return seen from louver's own code; return how many there were."""
    seen = 0

    def profile(frame: FrameType, what: str, argument: Any) -> None:
        nonlocal seen
        if "louver" in frame.f_code.co_filename:
            seen += 1
            if moment in (seen, f"{frame.f_code.co_qualname} {what}"):
                os.kill(os.getpid(), signal.SIGKILL)

    sys.setprofile(profile)
    task()
    sys.setprofile(None)
    return seen


def killed_in_child(moment: Moment, task: Callable[[], None]) -> None:
    """Run a task that ends at a moment; a named one must come, a numbered one may lie behind the end."""
    status = in_child(task)
    killed = os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL
    assert killed or (isinstance(moment, int) and status == 0), (moment, status)


def in_child(task: Callable[[], None]) -> int:
    """Run a task in a fork of this process, which itself starts no threads; return the wait status."""
    child = os.fork()
    if child == 0:
        task()
        sys.stdout.flush()
        os._exit(0)
    return os.waitpid(child, 0)[1]


def _measure_until(directory: Path, moment: Moment) -> None:
    """Measure, and kill this process at the given moment."""
    (directory / "events").write_text(str(events_until(moment, partial(_measure, directory))))


def _report(directory: Path, moment: Moment) -> None:
    """Look at what a kill left, measure again, and print whether everything is as it must be."""
    ledger, path = Ledger(directory / "data.ledger"), directory / "measurements.parquet"
    before = ledger.state()
    bytes_before = path.read_bytes() if path.exists() else None
    expected = None
    if before.pending:
        held = ledger.reserve(LOSS, request="the request", purpose="peek", dataset=dataset)
        noise = KeyedNoise(held.key)
        expected = [perturb(b.true_counts, b.distribution, noise, b.nonce).tolist() for b in _batches()]
    if not before.sealed:
        _measure(directory)
    after = ledger.state()
    noisy = [b.noisy_counts.tolist() for b in Measurements(path).batches()]
    stage = (
        "unpaid"
        if not before.spent
        else "sealed"
        if before.sealed
        else "renamed"
        if bytes_before
        else "reserved"
    )
    report = {
        "moment": moment,
        "stage": stage,
        "same_noise": expected in (None, noisy),
        "same_bytes": bytes_before in (None, path.read_bytes()),
        "spent": str(after.spent),
        "pending": len(after.pending),
        "sealed": len(after.sealed),
        "left": sorted(p.name for p in directory.iterdir()),
    }
    print(json.dumps(report))


NAMED = {
    "Ledger.reserve call": "unpaid",
    "Ledger.reserve return": "reserved",
    "perturb call": "reserved",
    "Ledger._pin return": "reserved",
    "sha256_of call": "renamed",
    "Ledger.seal call": "renamed",
    "Ledger.seal return": "sealed",
}
N_KILLS = len(NAMED) + 5


def crash(directory: Path, seed: int) -> None:
    rng = np.random.default_rng(seed)
    KeyedNoise.from_seed(0).draw(DiscreteLaplace(Fraction(20)), 1, Nonce(0, 0, 0))  # load the kernels once
    events = _count_events(directory / "whole")
    random = [1 + int(events * rng.random()) for _ in range(N_KILLS - len(NAMED))]
    for trial, moment in enumerate([*NAMED, *random]):
        here = _fresh(directory / str(trial))
        killed_in_child(moment, partial(_measure_until, here, moment))
        assert in_child(partial(_report, here, moment)) == 0


def _count_events(directory: Path) -> int:
    assert in_child(partial(_measure_until, _fresh(directory), 0)) == 0
    return int((directory / "events").read_text())


def _fresh(directory: Path) -> Path:
    directory.mkdir()
    Ledger.create(directory / "data.ledger", LOSS.measure, LOSS.neighbours, Fraction(1))
    return directory


if __name__ == "__main__":
    ledger_file.BUSY_SECONDS = 3600.0  # on a busy machine the lock may be long in coming
    command, where, number = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])
    if command in ("crash", "handover"):
        {"crash": crash, "handover": handover}[command](where, number)
    else:
        {"debit": debit, "forked": forked, "succeed": succeed}[command](Ledger(where), number)
