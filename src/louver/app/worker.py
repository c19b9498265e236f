"""The process in which a session's jobs run: reads requests from stdin, runs them, and writes events to stdout.

Started by `work.Worker`. A thread reads, so that a request to cancel arrives while a job runs; data and kernels stay loaded
between jobs. Any error is sent back as one sentence that contains no value from the data.
"""

from __future__ import annotations

import os
import pickle
import queue
import sys
import threading
import traceback
from collections.abc import Callable
from importlib import import_module
from typing import Any, BinaryIO

from louver.errors import Cancelled, LouverError, internal_error, one_sentence
from louver.optim.notice import listeners
from louver.run import Run

__all__ = ["END", "HURRY", "load_jobs", "main"]

END, HURRY = ("end",), ("hurry",)
"""The effect on an earlier request of a request without a function: stop, or return the best result so far."""
Job = tuple[int, Callable[..., Any], tuple[Any, ...]]


class _MessageLine:
    """The return channel: messages from several threads, sent one at a time."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._lock = threading.Lock()

    def send(self, kind: str, number: int, *content: Any) -> None:
        packed = pickle.dumps((kind, number, content))
        with self._lock:
            self._stream.write(packed)
            self._stream.flush()


def main() -> None:
    """Work until stdin ends."""
    line = _MessageLine(os.fdopen(os.dup(1), "wb"))
    os.dup2(2, 1)  # output of libraries must not get mixed in
    jobs: queue.SimpleQueue[Job] = queue.SimpleQueue()
    runs: dict[int, Run] = {}
    threading.Thread(target=_read, args=(sys.stdin.buffer, line, jobs, runs), daemon=True).start()
    while True:
        number, function, args = jobs.get()
        run = runs[number]

        def compiling(seconds: int, number: int = number) -> None:
            line.send("progress", number, f"compiling, once per installation: about {seconds} s", 0, 0)

        listeners[:] = [compiling]
        _do(line, number, function, args, run)
        del runs[number]


def load_jobs(run: Run) -> None:
    """Import the libraries that most jobs need before the first job is requested: kernels, DuckDB, Arrow."""
    import_module("louver.app.jobs.data")


def _read(stream: BinaryIO, line: _MessageLine, jobs: queue.SimpleQueue[Job], runs: dict[int, Run]) -> None:
    """Receive requests; the process ends when the stream ends."""
    try:
        while True:
            number, function, args = pickle.load(stream)
            if function is not None:

                def show(stage: str, done: float, total: float, number: int = number) -> None:
                    line.send("progress", number, stage, done, total)

                def stand(lost: float, least: float | None, number: int = number) -> None:
                    line.send("standing", number, lost, least)

                runs[number] = Run(show, stand=stand)
                jobs.put((number, function, args))
            elif (run := runs.get(number)) is not None:  # it may end at this moment
                run.hurry() if args == HURRY else run.cancel()
    finally:
        os._exit(0)


def _do(
    line: _MessageLine, number: int, function: Callable[..., Any], args: tuple[Any, ...], run: Run
) -> None:
    try:
        run.check()
        with one_sentence():
            answer = function(*args, run=run)
        line.send(
            "answer", number, answer
        )  # even if it was cancelled in the meantime, because the work is done
    except Cancelled:
        line.send("cancelled", number)
    except LouverError as error:
        line.send("error", number, str(error))
    except MemoryError:
        line.send("error", number, "the table is too large for this machine's memory; use fewer attributes.")
    except Exception as error:  # noqa: BLE001 - the page tells where, never what
        if os.environ.get("LOUVER_DEBUG"):
            traceback.print_exc()
        line.send("error", number, f"{internal_error(error)}.")


if __name__ == "__main__":
    main()
