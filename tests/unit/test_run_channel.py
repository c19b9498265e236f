"""Progress and cancellation: threads, interrupts, and children that are ended."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pyarrow as pa
import pytest

from louver.data.read import open_source
from louver.errors import Cancelled, SolverError
from louver.release.write import ReleaseWriter
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


def test_a_thread_is_left_to_itself() -> None:
    run, end = Run(), threading.Event()
    threading.Timer(0.1, run.cancel).start()
    with pytest.raises(Cancelled):
        run.attend(end.wait)
    end.set()
    with pytest.raises(ZeroDivisionError):
        Run().attend(divmod, 1, 0)


def test_a_query_is_interrupted() -> None:
    run = Run()
    with open_source(pa.table({"a": [1]}), run=run) as source:
        threading.Timer(0.1, run.cancel).start()
        with pytest.raises(Cancelled):
            source.first_row(
                "SELECT count(*) AS n FROM range(1000000) AS a, range(1000000) AS b WHERE a.range + b.range < 0"
            )
    with pytest.raises(Cancelled):
        open_source(pa.table({"a": [1]}), run=run)


def test_a_release_is_not_written_on(tmp_path: Path) -> None:
    run = Run()
    with pytest.raises(Cancelled), ReleaseWriter(tmp_path / "out", run) as writer:
        writer.path("data/a.txt").write_text("a")
        run.cancel()
        writer.path("data/b.txt")
    assert not list(tmp_path.iterdir())
