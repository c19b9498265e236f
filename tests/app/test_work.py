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


async def begun(worker: Worker, job: Callable[..., Any], key: str = "") -> asyncio.Task[Any]:
    """A request that the process works on."""
    started = asyncio.Event()
    task = asyncio.create_task(worker.do(job, key=key, progress=lambda *what: started.set()))
    await started.wait()
    return task


def test_whoever_was_not_begun_is_asked_of_another_process() -> None:
    """Data are opened while a deaf job runs, and the new page asks at once; or a job takes the process with it."""

    async def story(worker: Worker) -> None:
        deaf = await begun(worker, some_jobs.wait_deafly)
        worker.cancel()
        assert await worker.do(some_jobs.add, 1, 2) == 3
        with pytest.raises(Cancelled):
            await deaf
        answers = await asyncio.gather(
            worker.do(some_jobs.fall), worker.do(some_jobs.add, 2, 2), return_exceptions=True
        )
        assert "ended early" in str(answers[0]) and answers[1] == 4

    with_worker(story)


def test_a_process_that_fell_unheard_is_no_end_of_waiting() -> None:
    async def story(worker: Worker) -> None:
        first = await begun(worker, some_jobs.wait_deafly)
        worker._child.kill()
        worker._child.wait()
        assert await worker.do(some_jobs.add, 1, 2) == 3
        with pytest.raises(LouverError, match="the work ended early"):
            await first

    with_worker(story)


def test_cancelling_one_leaves_the_others() -> None:
    async def story(worker: Worker) -> None:
        running = await begun(worker, some_jobs.search, "measure")
        queued = asyncio.create_task(worker.do(some_jobs.add, 1, 2, key="table"))
        await asyncio.sleep(0)
        worker.cancel(but=("measure",))
        with pytest.raises(Cancelled):
            await queued
        worker.hurry()
        assert await running == "the best so far"

    with_worker(story)


def test_what_ended_in_spite_of_cancel_is_told() -> None:
    """A release that was made must not be called cancelled."""

    async def story(worker: Worker) -> None:
        running = await begun(worker, some_jobs.finish_anyway)
        worker.cancel()
        assert await running == "made"

    with_worker(story)


def test_work_ends_with_whoever_asked() -> None:
    """A page that is left keeps nobody waiting."""

    async def story(worker: Worker) -> None:
        process = await worker.do(some_jobs.pid)
        left = await begun(worker, some_jobs.wait_politely)
        left.cancel()
        assert await worker.do(some_jobs.pid) == process

    with_worker(story)


def test_work_is_followed_from_elsewhere() -> None:
    async def story(worker: Worker) -> None:
        running = await begun(worker, some_jobs.search, "search")
        told = asyncio.Event()
        answer = worker.follow("search", lambda *what: told.set(), None)
        assert answer is not None and worker.follow("another", None, None) is None
        await told.wait()
        worker.hurry()
        assert await answer == await running == "the best so far"

    with_worker(story)
