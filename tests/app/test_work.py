"""Work runs in a process of its own: answers, sentences, late answers, and an end that is one."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from app import some_jobs
from louver.app.work import Late, Worker
from louver.errors import Cancelled, LouverError


def with_worker(story: Callable[[Worker], Coroutine[Any, Any, None]]) -> None:
    async def told() -> None:
        worker = Worker()
        try:
            await story(worker)
        finally:
            worker.close()

    asyncio.run(told())


def test_answers_and_errors() -> None:
    async def story(worker: Worker) -> None:
        seen: list[tuple[str, float, float]] = []
        assert await worker.do(some_jobs.add, 2, 3, progress=lambda *what: seen.append(what)) == 5
        assert seen == [("adding", 1, 2)]
        assert not worker.is_busy
        with pytest.raises(LouverError, match="people.csv has no rows"):
            await worker.do(some_jobs.complain)
        with pytest.raises(LouverError, match="too large for this machine's memory"):
            await worker.do(some_jobs.hungry)
        with pytest.raises(LouverError, match="internal error KeyError at some_jobs.py") as caught:
            await worker.do(some_jobs.stumble, "a secret label")
        assert "secret" not in str(caught.value)
        with pytest.raises(LouverError, match="the work ended early"):
            await worker.do(some_jobs.fall)
        assert await worker.do(some_jobs.add, 1, 1) == 2, "a process that fell is replaced"

    with_worker(story)


def test_a_late_answer_is_dropped() -> None:
    async def story(worker: Worker) -> None:
        old = asyncio.create_task(worker.do(some_jobs.wait_politely, key="table"))
        await asyncio.sleep(0)
        assert await worker.do(some_jobs.add, 1, 2, key="table") == 3
        with pytest.raises(Late):
            await old

    with_worker(story)


@pytest.mark.parametrize("job", [some_jobs.wait_politely, some_jobs.wait_deafly])
def test_cancel_ends_it(job: Callable[..., None]) -> None:
    """Whoever listens keeps its process, with all that is loaded; whoever does not is killed."""

    async def story(worker: Worker) -> None:
        process = await worker.do(some_jobs.pid)
        started = asyncio.Event()
        running = asyncio.create_task(worker.do(job, progress=lambda *what: started.set()))
        await started.wait()
        worker.cancel()
        with pytest.raises(Cancelled):
            await asyncio.wait_for(running, 20)
        assert (await worker.do(some_jobs.pid) == process) is (job is some_jobs.wait_politely)

    with_worker(story)


def test_a_search_is_heard_and_hurried() -> None:
    async def story(worker: Worker) -> None:
        seen: list[tuple[float, float | None]] = []

        def stand(*told: Any) -> None:
            seen.append(told)
            worker.hurry()

        assert await worker.do(some_jobs.search, standing=stand) == "the best so far"
        assert seen[0] == (0.5, 0.25)

    with_worker(story)


def test_cancelling_nothing() -> None:
    async def story(worker: Worker) -> None:
        worker.cancel()
        assert await worker.do(some_jobs.add, 1, 2) == 3

    with_worker(story)
