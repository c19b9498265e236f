"""Run: the one channel through which work tells how far it is and learns that it shall stop."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from louver.errors import Cancelled

__all__ = ["Run"]


class Run:
    """Progress and cancellation of one call; every layer may take it.

    Work calls `report` or `check` at least every 0.2 seconds. A kernel that runs longer takes `flag` and returns early
    once it is set.

    Parameters
    ----------
    show : callable, optional
        Told the stage in words, what is done and what there is to do in all, in the same unit.

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

    def __init__(self, show: Callable[[str, float, float], None] | None = None) -> None:
        self._show = show
        self.flag = np.zeros(1, dtype=np.uint8)

    @property
    def is_cancelled(self) -> bool:
        """Whether somebody asked for the end."""
        return bool(self.flag[0])

    def cancel(self) -> None:
        """Ask the work to end; safe from other threads and from signal handlers."""
        self.flag[0] = 1

    def check(self) -> None:
        """Raise `Cancelled` if the work shall end."""
        if self.flag[0]:
            raise Cancelled

    def report(self, stage: str, done: float, total: float) -> None:
        """Tell how far the work is, unless it shall end."""
        self.check()
        if self._show is not None:
            self._show(stage, done, total)
