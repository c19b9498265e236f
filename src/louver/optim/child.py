"""Solver calls that cannot be told to stop, in a process of their own that can be ended."""

from __future__ import annotations

import pickle
import subprocess
import sys
from typing import Any

from scipy.optimize import milp

from louver.errors import SolverError
from louver.run import Run

__all__ = ["interruptible_milp"]

POLL_SECONDS = 0.05

_CHILD = """
import pickle, sys
from scipy.optimize import milp
pickle.dump(milp(**pickle.load(sys.stdin.buffer)), sys.stdout.buffer)
"""


def interruptible_milp(run: Run | None, **problem: Any) -> Any:
    """`scipy.optimize.milp`, which offers no callback; with a `run` in a child process, ended when the run is cancelled.

    Notes
    -----
    **Cost**: the child takes about half a second to start.
    """
    if run is None:
        return milp(**problem)
    command = [sys.executable, "-P", "-c", _CHILD]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        try:
            given: bytes | None = pickle.dumps(problem)
            while True:
                run.check()
                try:
                    answer, _ = child.communicate(given, timeout=POLL_SECONDS)
                    break
                except subprocess.TimeoutExpired:
                    given = None  # it has been handed over, or is on its way
        except BaseException:
            child.kill()
            raise
    if child.returncode:
        raise SolverError("the process of the solver ended early; free some memory, or use a smaller table.")
    return pickle.loads(answer)
