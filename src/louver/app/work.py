"""Work off the event loop, in a process of its own that Cancel really ends.

A request has a number and a key; a newer one with the same key makes an older one late, and late answers are dropped. Cancelling
asks first, as `Run` does everywhere; where nothing has ended after `GRACE_SECONDS` the process is killed, and the next request
starts a new one.
"""

from __future__ import annotations

import asyncio
import os
import pickle
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from typing import Any

from louver.app.worker import HURRY, load_jobs
from louver.errors import Cancelled, LouverError

__all__ = ["SPARE_AFTER_SECONDS", "Late", "Progress", "Standing", "Worker", "end_spares", "prepare"]

GRACE_SECONDS = 0.7
START = "import pickle, sys; sys.path[:] = pickle.load(sys.stdin.buffer); from louver.app.worker import main; main()"
SPARE_AFTER_SECONDS = 4.0
_spares: list[subprocess.Popen[bytes]] = []
"""At most one process that belongs to nobody yet, so that a new tab need not wait for one to start."""
Progress = Callable[[str, float, float], object]
Standing = Callable[[float, float | None], object]


class Late(Cancelled):
    """An answer that nobody waits for any more: a newer request of the same kind was made."""


@dataclass(slots=True)
class _Request:
    key: str
    answer: asyncio.Future[Any]
    progress: Progress | None
    standing: Standing | None


class Worker:
    """One child process, started when it is first needed."""

    def __init__(self) -> None:
        self._child: subprocess.Popen[bytes] | None = None
        self._waiting: dict[int, _Request] = {}
        self._numbers = count(1)

    @property
    def is_busy(self) -> bool:
        return bool(self._waiting)

    async def do(
        self,
        function: Callable[..., Any],
        *args: Any,
        key: str = "",
        progress: Progress | None = None,
        standing: Standing | None = None,
    ) -> Any:
        """`function(*args, run=run)` in the process; `progress` and `standing` are told what `Run` is told.

        Raises
        ------
        Late
            If a request with the same key was made meanwhile.
        Cancelled
            If `cancel` was called.
        LouverError
            What the job raised, as one sentence.
        """
        for number, request in list(self._waiting.items()):
            if key and request.key == key:
                self._settle(number, Late())
                self._write(number, None, ())
        number = next(self._numbers)
        answer = asyncio.get_running_loop().create_future()
        self._waiting[number] = _Request(key, answer, progress, standing)
        self.start()
        self._write(number, function, args)
        try:
            return await answer
        finally:
            self._waiting.pop(number, None)

    def cancel(self, key: str = "") -> None:
        """End the requests with this key, or all; a process that does not listen is killed."""
        asked = [number for number, request in self._waiting.items() if not key or request.key == key]
        for number in asked:
            self._write(number, None, ())
        if asked:
            asyncio.get_running_loop().call_later(GRACE_SECONDS, self._kill_if_waiting, asked)

    def hurry(self) -> None:
        """Ask searches for the best they have."""
        for number in self._waiting:
            self._write(number, None, HURRY)

    def start(self) -> None:
        """Start the process, unless it runs."""
        if self._child is not None and self._child.poll() is None:
            return
        self._child = _spares.pop() if _spares else _spawn()
        loop = asyncio.get_running_loop()
        threading.Thread(target=_listen, args=(self._child, loop, self._hear), daemon=True).start()

    def close(self) -> None:
        """End the process and whoever waits for it."""
        for number in list(self._waiting):
            self._settle(number, Cancelled())
        if self._child is not None:
            self._child.kill()
            self._child.wait()
            self._child = None

    def _write(self, number: int, function: Callable[..., Any] | None, args: tuple[Any, ...]) -> None:
        self._send(pickle.dumps((number, function, args)))

    def _send(self, packed: bytes) -> None:
        assert self._child is not None and self._child.stdin is not None
        try:
            self._child.stdin.write(packed)
            self._child.stdin.flush()
        except OSError:
            self._gone(self._child)

    def _hear(self, child: subprocess.Popen[bytes], message: tuple[str, int, tuple[Any, ...]] | None) -> None:
        """Take in what the process says; None is its end. What an older process still says is not heard."""
        if child is not self._child:
            return
        if message is None:
            self._gone(child)
            return
        kind, number, what = message
        request = self._waiting.get(number)
        if request is None:
            return
        if kind == "answer":
            self._settle(number, what[0])
        elif kind == "error":
            self._settle(number, LouverError(what[0]))
        elif kind == "cancelled":
            self._settle(number, Cancelled())
        elif kind == "standing" and request.standing is not None:
            request.standing(*what)
        elif kind == "progress" and request.progress is not None:
            request.progress(*what)

    def _settle(self, number: int, outcome: Any) -> None:
        request = self._waiting.pop(number)
        if request.answer.done():
            return
        if isinstance(outcome, Exception):
            request.answer.set_exception(outcome)
        else:
            request.answer.set_result(outcome)

    def _kill_if_waiting(self, asked: list[int]) -> None:
        if any(number in self._waiting for number in asked):
            for number in asked:
                if number in self._waiting:
                    self._settle(number, Cancelled())
            child, self._child = self._child, None
            if child is not None:
                child.kill()
                child.wait()
            self._gone(None)

    def _gone(self, child: subprocess.Popen[bytes] | None) -> None:
        """Nobody waits for a process that has ended."""
        if child is not None:
            self._child = None
        for number in list(self._waiting):
            self._settle(
                number, LouverError("the work ended early; free some memory, or use a smaller table.")
            )


def prepare() -> None:
    """Start a process that the next session takes over, unless one waits already."""
    if not _spares:
        child = _spawn()
        assert child.stdin is not None
        child.stdin.write(pickle.dumps((0, load_jobs, ())))  # nobody waits for number 0
        child.stdin.flush()
        _spares.append(child)


def end_spares() -> None:
    """End what nobody took."""
    while _spares:
        _spares.pop().kill()


def _spawn() -> subprocess.Popen[bytes]:
    """A process that waits for jobs; in a session of its own, for Ctrl-C at the terminal is to reach us alone."""
    child = subprocess.Popen(
        [sys.executable, "-P", "-c", START],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL if not os.environ.get("LOUVER_DEBUG") else None,
        start_new_session=True,
    )
    assert child.stdin is not None
    child.stdin.write(pickle.dumps(sys.path))
    child.stdin.flush()
    return child


def _listen(
    child: subprocess.Popen[bytes], loop: asyncio.AbstractEventLoop, hear: Callable[..., None]
) -> None:
    """Read what a process says until it ends, in a thread."""
    assert child.stdout is not None
    message: Any = ()
    while message is not None:
        try:
            message = pickle.load(child.stdout)
        except (EOFError, OSError, pickle.UnpicklingError):
            message = None
        try:
            loop.call_soon_threadsafe(hear, child, message)
        except RuntimeError:  # the loop has ended
            return
