"""Run: the single channel for progress and cancellation.

Work stops only where it checks for cancellation, so nothing is left half finished; it calls `report` or `check` at least every 0.2 seconds.

- **A loop in Python** calls `report(stage, done, total)` or `check()`.
- **A kernel** that may run longer takes `run.flag` and returns early once it is set; then Python calls `check`. Kernels run without the
  interpreter lock, so cancelling (from the thread that watches for signals, or a button of the explorer) is not delayed. The loop that
  checks the flag must write to some array; otherwise the compiler reads the flag only once.
- **A long computation that cannot check** and releases the interpreter lock is made through `run.attend(function, ...)`, in a thread that
  is abandoned on cancellation.
- **A call with an interrupt of its own** (DuckDB) is made inside `with run.interrupting(connection.interrupt)`.
- **A solver without a callback** (HiGHS, OR-Tools) runs in time slices where it can be resumed, otherwise through `run.call(function,
  ...)`: in a child process that is ended on cancellation. A child takes about half a second to start and its arguments are copied, so this
  is for work that is expected to take seconds.

The command line handles signals (`cli/console.py`) in a thread of their own, because the interpreter's handlers wait until the main thread
leaves a kernel. The first signal cancels; if no check follows within 0.4 seconds, the main thread is interrupted as by an ordinary Ctrl-C,
and the resulting error counts as cancellation; a second signal ends the process.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from louver.errors import Cancelled, SolverError

if TYPE_CHECKING:
    from subprocess import Popen

    import numpy as np
    from numpy.typing import NDArray

__all__ = ["Run"]

POLL_SECONDS = 0.05
CHILD = """
import os, pickle, sys
answers = os.fdopen(os.dup(1), "wb")
os.dup2(2, 1)
sys.path[:] = pickle.load(sys.stdin.buffer)
function, args, keywords = pickle.load(sys.stdin.buffer)
pickle.dump(function(*args, **keywords), answers)
"""
"""Program of the child process; the solver's output goes to stderr, because stdout carries the answer."""

P = ParamSpec("P")
R = TypeVar("R")


class Run:
    """Progress and cancellation of one call; every layer may receive it.

    Parameters
    ----------
    show : callable, optional
        Called with the stage in words, the amount done and the total, in the same unit.
    tell : callable, optional
        Called with sentences that the user should read before the work continues.
    stand : callable, optional
        Called with the state of a search: the share that its best answer loses, and a lower bound on this share (None if unknown).

    Examples
    --------
    >>> seen = []
    >>> run = Run(lambda stage, done, total: seen.append((stage, done, total)))
    >>> run.report("counting", 1, 2)
    >>> run.cancel()
    >>> run.report("counting", 2, 2)
    Traceback (most recent call last):
    ...
    louver.errors.Cancelled: stopped.
    >>> seen
    [('counting', 1, 2)]
    """

    def __init__(
        self,
        show: Callable[[str, float, float], None] | None = None,
        tell: Callable[[str], None] | None = None,
        stand: Callable[[float, float | None], None] | None = None,
    ) -> None:
        self._show = show
        self._tell = tell
        self._stand = stand
        self._interrupts: list[Callable[[], object]] = []
        self._flag = bytearray(1)
        self._is_ending = False
        self._is_hurried = False

    @property
    def flag(self) -> NDArray[np.uint8]:
        """The flag as an array that shares its memory; numpy is imported only if there are kernels."""
        import numpy as np

        shared: NDArray[Any] = np.frombuffer(self._flag, dtype=np.uint8)
        return shared

    @property
    def is_cancelled(self) -> bool:
        """Whether the run was cancelled."""
        return bool(self._flag[0])

    @property
    def is_ending(self) -> bool:
        """Whether the work is ending: it has noticed the cancellation, or can no longer be stopped."""
        return self._is_ending

    @property
    def is_hurried(self) -> bool:
        """Whether a search should end with the best answer found so far."""
        return self._is_hurried

    def hurry(self) -> None:
        """Ask a search to end with the best answer found so far; safe to call from other threads. Other work ignores it."""
        self._is_hurried = True

    def cancel(self) -> None:
        """Ask the work to end; safe to call from other threads and from signal handlers."""
        self._flag[0] = 1
        for interrupt in tuple(self._interrupts):
            interrupt()

    def check(self) -> None:
        """Raise `Cancelled` if the run was cancelled."""
        if self._flag[0]:
            self._is_ending = True
            raise Cancelled

    def finish(self) -> None:
        """Record that the work is past the point where it can be stopped."""
        self._is_ending = True

    def report(
        self, stage: str, done: float, total: float, lost: float | None = None, least: float | None = None
    ) -> None:
        """Report progress, for a search with its loss and a lower bound; raise `Cancelled` if the run was cancelled."""
        self.check()
        if self._stand is not None and lost is not None:
            self._stand(lost, least)
        if self._show is not None:
            self._show(stage, done, total)

    def tell(self, sentence: str) -> None:
        """Show a message that is not about progress."""
        if self._tell is not None:
            self._tell(sentence)

    @contextmanager
    def interrupting(self, interrupt: Callable[[], object]) -> Iterator[None]:
        """Let `cancel` call `interrupt` within the block; a resulting error counts as cancellation."""
        self.check()
        self._interrupts.append(interrupt)
        try:
            yield
        except Exception:
            self.check()
            raise
        finally:
            self._interrupts.remove(interrupt)
        self.check()

    def attend(self, function: Callable[P, R], *args: P.args, **keywords: P.kwargs) -> R:
        """`function(*args, **keywords)` in a thread, which is abandoned if the run is cancelled.

        For compiled code that cannot check. It must not write to shared state, and must not wait for a pool.

        Examples
        --------
        >>> Run().attend(divmod, 7, 2)
        (3, 1)
        """
        from contextvars import copy_context
        from threading import Thread

        self.check()
        context = copy_context()
        answers: list[R] = []
        errors: list[BaseException] = []

        def work() -> None:
            try:
                answers.append(context.run(function, *args, **keywords))
            except BaseException as error:  # noqa: BLE001 - raised in the waiting thread
                errors.append(error)

        thread = Thread(target=work, daemon=True)
        thread.start()
        try:
            while thread.is_alive():
                self.check()
                thread.join(POLL_SECONDS)
        except BaseException:
            self.cancel()  # Ctrl-C without a signal watcher: the thread must stop too
            raise
        self.check()
        for error in errors:
            raise error
        return answers[0]

    def call(self, function: Callable[P, R], *args: P.args, **keywords: P.kwargs) -> R:
        """`function(*args, **keywords)` in a child process, which is ended if the run is cancelled.

        Function and arguments must be picklable: a function of a module, not of a script.

        Raises
        ------
        SolverError
            If the child ends without an answer.

        Examples
        --------
        >>> Run().call(divmod, 7, 2)
        (3, 1)
        """
        import pickle
        import subprocess

        self.check()
        given = pickle.dumps(sys.path) + pickle.dumps((function, args, keywords))
        pipe, command = subprocess.PIPE, [sys.executable, "-P", "-c", CHILD]
        # A separate session, so that Ctrl-C at a terminal reaches only this process, which ends the child.
        with subprocess.Popen(
            command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, start_new_session=True
        ) as child:
            try:
                _hand_over(child, given)
                while True:
                    self.check()
                    with suppress(subprocess.TimeoutExpired):
                        answer = child.communicate(timeout=POLL_SECONDS)[0]
                        break
            except BaseException:
                child.kill()
                raise
        if child.returncode:
            message = "the process of the solver ended early; free some memory, or use a smaller table."
            raise SolverError(message)
        result: R = pickle.loads(answer)
        return result


def _hand_over(child: Popen[bytes], given: bytes) -> None:
    """Write in a thread: it may be more than a pipe holds, and `communicate` loses the rest after a timeout."""
    from threading import Thread

    pipe, child.stdin = child.stdin, None
    assert pipe is not None

    def write() -> None:
        with suppress(OSError), pipe:  # the child may have been terminated
            pipe.write(given)

    Thread(target=write, daemon=True).start()
