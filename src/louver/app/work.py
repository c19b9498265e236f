"""Work outside the event loop, in a separate process that Cancel really ends.

A request has a number and a key; a newer request with the same key makes an older one late, and late answers are dropped. Cancelling first
sends a request, as `Run` does everywhere; if the work has not ended after `GRACE_SECONDS`, the process is killed. Requests are processed
one after the other, so requests not yet begun lose nothing when a process ends, because another process takes them over.
"""

from __future__ import annotations

import asyncio
import os
import pickle
import subprocess
import sys
import threading
from collections.abc import Callable, Container
from dataclasses import dataclass
from itertools import count
from typing import Any

from louver.app.worker import END, HURRY, load_jobs
from louver.errors import Cancelled, LouverError

__all__ = ["SPARE_AFTER_SECONDS", "Late", "Progress", "Standing", "Worker", "end_spares", "prepare"]

GRACE_SECONDS = 0.7
START = "import pickle, sys; sys.path[:] = pickle.load(sys.stdin.buffer); from louver.app.worker import main; main()"
SPARE_AFTER_SECONDS = 4.0
_spares: list[subprocess.Popen[bytes]] = []
"""At most one process not yet assigned to a tab, so that a new tab does not wait for one to start."""
Progress = Callable[[str, float, float], object]
Standing = Callable[[float, float | None], object]
OUTCOMES: dict[str, Callable[..., Any]] = {
    "answer": lambda found: found,
    "error": LouverError,
    "cancelled": Cancelled,
}
"""Messages by which a process reports the end of a request and its outcome."""


class Late(Cancelled):
    """An answer that is no longer awaited: a newer request of the same kind was made."""


@dataclass(slots=True)
class _Request:
    key: str
    packed: bytes
    answer: asyncio.Future[Any]
    progress: Progress | None
    standing: Standing | None


class Worker:
    """One child process, started when it is first needed."""

    def __init__(self) -> None:
        self._child: subprocess.Popen[bytes] | None = None
        self._waiting: dict[int, _Request] = {}
        self._sent: list[int] = []
        """Requests that the process has not answered yet, awaited or not; it is working on the first."""
        self._numbers = count(1)

    async def do(
        self,
        function: Callable[..., Any],
        *args: Any,
        key: str = "",
        progress: Progress | None = None,
        standing: Standing | None = None,
    ) -> Any:
        """`function(*args, run=run)` in the process; `progress` and `standing` receive what `Run` receives.

        Raises
        ------
        Late
            If a request with the same key was made in the meantime.
        Cancelled
            If `cancel` was called.
        LouverError
            The error raised by the job, as one sentence.
        """
        for number in self._with_key(key) if key else ():
            self._settle(number, Late())
            self._write(number, END)
        number = next(self._numbers)
        answer = asyncio.get_running_loop().create_future()
        request = _Request(key, pickle.dumps((number, function, args)), answer, progress, standing)
        self.start()
        self._waiting[number] = request
        self._sent.append(number)
        self._send(request.packed)
        try:
            return await answer
        finally:
            if self._waiting.pop(number, None) is not None:  # the caller may be gone
                self._write(number, END)

    def follow(
        self, key: str, progress: Progress | None, standing: Standing | None
    ) -> asyncio.Future[Any] | None:
        """Report a request's progress to another caller; returns its outcome, or None if no such request is under way."""
        found = self._with_key(key)
        if not found:
            return None
        request = self._waiting[found[0]]
        request.progress, request.standing = progress, standing
        return request.answer

    def cancel(self, key: str = "", but: Container[str] = ()) -> None:
        """End the requests with this key, or all but some; a process that does not respond is killed."""
        ending = [number for number in self._with_key(key) if self._waiting[number].key not in but]
        running = self._sent[0] if self._sent else 0
        for number in ending:
            self._write(number, END)
            if number != running:
                self._settle(number, Cancelled())
        if ending and (running in ending or running not in self._waiting):
            asyncio.get_running_loop().call_later(GRACE_SECONDS, self._kill_if_running, running)

    def hurry(self) -> None:
        """Ask searches for their best result so far."""
        for number in list(self._waiting):
            self._write(number, HURRY)

    def start(self) -> None:
        """Start the process unless it is already running."""
        if self._child is not None and self._child.poll() is not None:
            self._gone()
        if self._child is not None:
            return
        self._child = _spare() or _spawn()
        loop = asyncio.get_running_loop()
        threading.Thread(target=_listen, args=(self._child, loop, self._hear), daemon=True).start()

    def close(self) -> None:
        """End the process, and release callers that wait for it."""
        for number in list(self._waiting):
            self._settle(number, Cancelled())
        self._sent.clear()
        self._end()

    def _with_key(self, key: str) -> list[int]:
        """Pending requests with a given key; without a key, all of them."""
        return [number for number, request in self._waiting.items() if not key or request.key == key]

    def _write(self, number: int, word: tuple[str, ...]) -> None:
        self._send(pickle.dumps((number, None, word)))

    def _send(self, packed: bytes) -> bool:
        """Whether the process received the message; one that has ended does not."""
        if self._child is None or self._child.stdin is None:
            return False
        try:
            self._child.stdin.write(packed)
            self._child.stdin.flush()
        except OSError:
            self._gone()
            return False
        return True

    def _hear(self, child: subprocess.Popen[bytes], message: tuple[str, int, tuple[Any, ...]] | None) -> None:
        """Handle a message from the process; None means that it ended. Messages from an older process are ignored."""
        if child is not self._child:
            return
        if message is None:
            self._gone()
            return
        kind, number, content = message
        request = self._waiting.get(number)
        if kind in OUTCOMES:
            self._sent = [other for other in self._sent if other != number]
            self._settle(number, OUTCOMES[kind](*content))
        elif request is None:
            return
        elif kind == "standing" and request.standing is not None:
            request.standing(*content)
        elif kind == "progress" and request.progress is not None:
            request.progress(*content)

    def _settle(self, number: int, outcome: Any) -> None:
        request = self._waiting.pop(number, None)
        if request is None or request.answer.done():
            return
        if isinstance(outcome, Exception):
            request.answer.set_exception(outcome)
        else:
            request.answer.set_result(outcome)

    def _kill_if_running(self, number: int) -> None:
        if self._sent[:1] == [number]:
            self._settle(number, Cancelled())
            self._end()
            self._go_on()

    def _end(self) -> None:
        child, self._child = self._child, None
        if child is not None:
            child.kill()
            child.wait()

    def _gone(self) -> None:
        """Handle the end of the process: its current request is no longer awaited."""
        self._child = None
        for number in self._sent[:1]:
            self._settle(
                number, LouverError("the work ended early; free some memory, or use a smaller table.")
            )
        self._go_on()

    def _go_on(self) -> None:
        """Hand the requests that the last process had not begun to another one."""
        self._sent = [number for number in self._sent[1:] if number in self._waiting]
        if not self._sent:
            return
        self.start()
        for number in list(self._sent):
            if not self._send(self._waiting[number].packed):
                return


def prepare() -> None:
    """Start a process that the next session takes over, unless one is waiting already."""
    if not _spares:
        child = _spawn()
        assert child.stdin is not None
        child.stdin.write(pickle.dumps((0, load_jobs, ())))  # number 0 is never awaited
        child.stdin.flush()
        _spares.append(child)


def _spare() -> subprocess.Popen[bytes] | None:
    """The spare process, if it is still running."""
    child = _spares.pop() if _spares else None
    return child if child is not None and child.poll() is None else None


def end_spares() -> None:
    """End the spare process if it was never taken."""
    while _spares:
        _spares.pop().kill()


def _spawn() -> subprocess.Popen[bytes]:
    """A process that waits for jobs; in its own process group, so that Ctrl-C at the terminal reaches only the server."""
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
    """Read a process's messages until it ends, in a thread."""
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
