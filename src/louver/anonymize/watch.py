"""The time limit of a method, whether it should stop, and the time each of its stages took."""

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
    from louver.anonymize.problem import AnonymizeProblem

__all__ = ["NODES_PER_SECOND", "Stopped", "Watch"]

NODES_PER_SECOND = 700_000
"""Search nodes of `exact` per second, a conservative estimate used to convert a time limit into nodes."""

LOOK_SECONDS = 0.05
"""Seconds between checks of the clock and the run while a method works."""

STAGE = "forming classes"

STAGES = ("reading", "first answer", "bound", "search", "publishing")
"""The stages whose seconds a result reports."""

Result = TypeVar("Result")


class Stopped(StrEnum):
    """The stage at which a limit on time or steps ended a search, the mildest first."""

    IMPROVING = "improving"
    """The method had an answer and was looking for a better one."""
    UNFINISHED = "unfinished"
    """The method did not finish: its answer was completed in a simpler way or hardly improved."""


class Watch:
    """The time that a method has, and the run to which it belongs.

    Parameters
    ----------
    run : Run, optional
    seconds : float, optional
        Limit on the search; unlimited by default. `attend` enforces it.
    cores : int, optional
        Cores that a method may use; all by default.

    Attributes
    ----------
    stop : uint8 (1,)
        For kernels: set once the time is up or the run is cancelled.
    took : dict of str to float
        Seconds of each stage.
    share : float
        Fraction of the work done so far.
    lost, least : float or None
        Share of all detail, by weight, that the best answer so far loses, and a lower bound on this share.
    problem : AnonymizeProblem or None
        The problem to which the shares refer; answers to parts of it are not reported.
    stopped : Stopped or None
        The stage at which a limit ended the search; None if it ended by itself.
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
        self.problem: AnonymizeProblem | None = None
        self.stopped: Stopped | None = None
        self._seconds = seconds
        self._is_inside = False
        self.restart()

    def restart(self) -> None:
        """Start the clock now, after the kernels have been compiled."""
        self.started = time.perf_counter()
        self.stop[0] = self.run.is_cancelled

    @property
    def is_limited(self) -> bool:
        return self._seconds is not None

    @property
    def limit(self) -> float | None:
        """Seconds that the search may take."""
        return self._seconds

    @property
    def left(self) -> float:
        """Remaining seconds; unbounded if there is no limit."""
        return np.inf if self._seconds is None else self.started + self._seconds - time.perf_counter()

    @property
    def share_of_time(self) -> float:
        """Fraction of the time used so far."""
        return 0.0 if self._seconds is None else min(1.0, 1 - self.left / self._seconds)

    @property
    def is_over(self) -> bool:
        """Whether the search should end, because of the clock or the run; sets `stop`."""
        if self.left <= 0 or self.run.is_cancelled or self.run.is_hurried:
            self.stop[0] = 1
        return bool(self.stop[0])

    @property
    def stages(self) -> dict[str, float]:
        """Seconds of the stages that are reported to a steward."""
        return {name: seconds for name, seconds in self.took.items() if name in STAGES}

    def found(self, problem: AnonymizeProblem, loss: float, bound: float | None = None) -> None:
        """Record the loss of an answer, in units of the loss, and the lower bound for any answer."""
        if problem is self.problem:
            full = max(1, problem.n_records * problem.full_loss)
            self.lost = loss / full if self.lost is None else min(self.lost, loss / full)
            self.least = self.least if bound is None else bound / full

    def note(self, stopped: Stopped | None) -> None:
        """Record that a limit ended the search or part of it; the worst case is kept."""
        if self.stopped is not Stopped.UNFINISHED:
            self.stopped = stopped or self.stopped

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Add the time spent in the block to a stage; a nested stage counts as part of the outer one."""
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
        """Do the work in a separate thread; this one watches the clock and receives signals.

        A kernel runs without the interpreter lock, so the clock is checked even while one runs. A cancelled search is not awaited, because
        kernels that are being compiled or loaded do not check for cancellation.
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
