"""How long a method may search, whether somebody asked it to stop, and how long each of its stages took."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from enum import StrEnum
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from louver.run import Run

if TYPE_CHECKING:
    from louver.anonymize.problem import Problem

__all__ = ["NODES_PER_SECOND", "Stopped", "Watch"]

NODES_PER_SECOND = 700_000
"""Search nodes of `exact` per second, on the safe side: where a part of the time is given, it is given in nodes."""

LOOK_SECONDS = 0.05
"""Between two looks at the clock and at the run while a method works."""

STAGE = "forming classes"

STAGES = ("reading", "first answer", "bound", "search", "publishing")
"""What a result tells the seconds of."""

Result = TypeVar("Result")


class Stopped(StrEnum):
    """Where a limit on time or steps ended a search, the mildest first."""

    IMPROVING = "improving"
    """The method had its answer and looked for a better one."""
    UNFINISHED = "unfinished"
    """The method was not done: its answer was completed in a simpler way, or hardly improved."""


class Watch:
    """The time that a method has, and the run it belongs to.

    Parameters
    ----------
    run : Run, optional
    seconds : float, optional
        Limit on the search; none without it. Reading it is left to `attend`.
    cores : int, optional
        That a method may use; all without it.

    Attributes
    ----------
    stop : uint8 (1,)
        For kernels: set once the time is up or the run is cancelled.
    took : dict of str to float
        Seconds of each stage.
    share : float
        Share of the work that is done.
    lost, least : float or None
        Share of all detail, by weight, that the best answer so far loses, and that every answer loses at least.
    problem : Problem or None
        What the shares are told of; answers to parts of it are no news.
    stopped : Stopped or None
        Where a limit ended the search; None where it ended by itself.
    """

    def __init__(
        self, run: Run | None = None, seconds: float | None = None, cores: int | None = None
    ) -> None:
        self.run = Run() if run is None else run
        self.cores = cores
        self.stop = np.zeros(1, dtype=np.uint8)
        self.took: dict[str, float] = {}
        self.share = 0.0
        self.lost: float | None = None
        self.least: float | None = None
        self.problem: Problem | None = None
        self.stopped: Stopped | None = None
        self._seconds = seconds
        self._is_inside = False
        self.restart()

    def restart(self) -> None:
        """Let the time begin only now, after the kernels are compiled."""
        self.started = time.perf_counter()
        self.stop[0] = self.run.is_cancelled

    @property
    def is_limited(self) -> bool:
        return self._seconds is not None

    @property
    def left(self) -> float:
        """Seconds that are left; without a limit, as many as one likes."""
        return np.inf if self._seconds is None else self.started + self._seconds - time.perf_counter()

    @property
    def share_of_time(self) -> float:
        """Share of the time that is used."""
        return 0.0 if self._seconds is None else min(1.0, 1 - self.left / self._seconds)

    @property
    def is_over(self) -> bool:
        """Whether the search shall end, by the clock or by the run; sets `stop`."""
        if self.left <= 0 or self.run.is_cancelled or self.run.is_hurried:
            self.stop[0] = 1
        return bool(self.stop[0])

    @property
    def told(self) -> dict[str, float]:
        """Seconds of the stages that a steward knows."""
        return {name: seconds for name, seconds in self.took.items() if name in STAGES}

    def found(self, problem: Problem, loss: float, bound: float | None = None) -> None:
        """Note what an answer loses, in units of the loss, and what no answer can lose less than."""
        if problem is self.problem:
            full = max(1, problem.n_records * problem.full_loss)
            self.lost = loss / full if self.lost is None else min(self.lost, loss / full)
            self.least = self.least if bound is None else bound / full

    def note(self, stopped: Stopped | None) -> None:
        """Note that a limit ended the search, or a part of it; the worst is kept."""
        if self.stopped is not Stopped.UNFINISHED:
            self.stopped = stopped or self.stopped

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Add what is done inside to the seconds of a stage; a stage within another counts as part of that."""
        if self._is_inside:
            yield
            return
        began = time.perf_counter()
        self._is_inside = True
        try:
            yield
        finally:
            self._is_inside = False
            self.took[name] = self.took.get(name, 0.0) + time.perf_counter() - began
        self.run.check()

    def attend(self, work: Callable[[Watch], Result]) -> Result:
        """Do the work in a thread of its own; this one watches the clock, and signals reach it.

        A kernel runs without the interpreter lock, so the clock is looked at even while one runs. A search that is cancelled
        is not waited for: kernels that are being compiled or loaded ask nobody.
        """
        pool = ThreadPoolExecutor(max_workers=1)
        try:
            doing = pool.submit(work, self)
            while not wait([doing], timeout=LOOK_SECONDS).done:
                share = 1.0 if self.is_over else self.share
                self.run.report(STAGE, share, 1.0, self.lost, self.least)
        except BaseException:
            self.run.cancel()
            self.stop[0] = 1
            raise
        finally:
            pool.shutdown(wait=False)
        return doing.result()
