"""Jobs that do nothing but behave in some way."""

from __future__ import annotations

import os
import time

from louver.errors import InputError
from louver.run import Run


def add(a: int, b: int, run: Run) -> int:
    run.report("adding", 1, 2)
    return a + b


def wait_politely(run: Run) -> None:
    while True:
        run.report("waiting", 0, 0)
        time.sleep(0.01)


def wait_deafly(run: Run) -> None:
    run.report("waiting", 0, 0)
    while True:
        time.sleep(0.01)


def finish_anyway(run: Run) -> str:
    run.report("waiting", 0, 0)
    while not run.is_cancelled:
        time.sleep(0.01)
    return "made"


def search(run: Run) -> str:
    while not run.is_hurried:
        run.report("searching", 0, 0, 0.5, 0.25)
        time.sleep(0.01)
    return "the best so far"


def complain(run: Run) -> None:
    raise InputError("people.csv has no rows; give a file with data.", file="people.csv")


def stumble(secret: str, run: Run) -> None:
    raise KeyError(secret)


def fall(run: Run) -> None:
    os._exit(3)


def hungry(run: Run) -> None:
    raise MemoryError


def pid(run: Run) -> int:
    return os.getpid()
