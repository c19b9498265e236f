"""Progress and cancellation: threads, interrupts, and children that are ended."""

from __future__ import annotations

import threading
import time

import pytest

from louver.errors import Cancelled, SolverError
from louver.run import Run


def test_the_flag_is_one_and_the_same() -> None:
    run = Run()
    flag = run.flag
    assert not flag[0] and not run.is_cancelled
    run.cancel()
    assert flag[0] and run.is_cancelled and run.flag.flags.writeable
    with pytest.raises(Cancelled, match="stopped"):
        run.check()


def test_interrupting() -> None:
    """What fails because it was interrupted counts as cancelled; what fails by itself does not."""
    run, calls = Run(), []
    with pytest.raises(ZeroDivisionError), run.interrupting(lambda: calls.append("late")):
        raise ZeroDivisionError
    with pytest.raises(Cancelled), run.interrupting(lambda: calls.append("now")):
        run.cancel()
        raise RuntimeError("interrupted")
    assert calls == ["now"]
    with pytest.raises(Cancelled), run.interrupting(lambda: calls.append("never")):
        pass
    assert calls == ["now"]


def test_a_child_is_ended() -> None:
    run = Run()
    threading.Timer(0.3, run.cancel).start()
    with pytest.raises(Cancelled):
        run.call(time.sleep, 600)


def test_a_child_without_an_answer() -> None:
    with pytest.raises(SolverError, match="ended early"):
        Run().call(divmod, 1, 0)
    assert Run().call(sorted, [3, 1], reverse=True) == [3, 1]
