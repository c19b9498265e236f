"""Solver calls that cannot be told to stop, in a process of their own that can be ended."""

from __future__ import annotations

from typing import Any

from scipy.optimize import milp

from louver.run import Run

__all__ = ["interruptible_milp"]


def interruptible_milp(run: Run | None, **problem: Any) -> Any:
    """`scipy.optimize.milp`, which offers no callback; with a `run` in a child process, ended when the run is cancelled.

    Notes
    -----
    **Cost**: the child takes about half a second to start.
    """
    return milp(**problem) if run is None else run.call(milp, **problem)
