"""Independent tasks on the cores of this machine.

Results come in the order of the pieces, whatever the number of workers, so results never depend on it. Workers are threads: the work is
compiled code, which runs without the interpreter lock.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import ClassVar, Generic, TypeVar

from louver.errors import InputError
from louver.run import Run

__all__ = ["LocalEngine", "open_local", "run_pieces"]

MAX_WORKERS = 1024

Piece = TypeVar("Piece")
Result = TypeVar("Result")
T = TypeVar("T")


def run_pieces(
    work: Callable[[Piece], Result], pieces: Iterable[Piece], *, workers: int = 1
) -> Iterator[Result]:
    """Yield work(piece) for every piece, in order.

    Parameters
    ----------
    work : callable
        Must not depend on which worker runs it.
    pieces : iterable
        Only a few pieces are read ahead of the results, so that neither side has to fit into memory.
    workers : int
        Number of threads; with 1, work runs in the calling thread.

    Examples
    --------
    >>> list(run_pieces(abs, [-3, 2, -1], workers=2))
    [3, 2, 1]
    """
    if workers < 1:
        raise InputError("the number of workers must be at least 1.", option="engine")
    if workers == 1:
        yield from map(work, pieces)
        return
    waiting: deque[Future[Result]] = deque()
    remaining = iter(pieces)
    with ThreadPoolExecutor(max_workers=workers) as pool:
        try:
            waiting.extend(pool.submit(work, piece) for piece in islice(remaining, 2 * workers))
            while waiting:
                result = waiting.popleft().result()
                waiting.extend(pool.submit(work, piece) for piece in islice(remaining, 1))
                yield result
        finally:
            for future in waiting:
                future.cancel()


@dataclass(frozen=True, slots=True)
class Held(Generic[T]):
    """An object shared by all threads."""

    value: T


@dataclass(frozen=True, slots=True)
class LocalEngine:
    """Threads of this process; see `engines.Engine`."""

    workers: int
    folder: ClassVar[Path | None] = None

    def share(self, shared: T) -> Held[T]:
        """Threads share everything."""
        return Held(shared)

    def map(
        self, work: Callable[[Piece, Run], Result], pieces: Iterable[Piece], run: Run | None
    ) -> Iterator[Result]:
        """Yield work(piece, run) for every piece, in order."""
        run = run or Run()

        def one(piece: Piece) -> Result:
            run.check()
            return work(piece, run)

        return run_pieces(one, pieces, workers=self.workers)


def open_local(number: str, folder: Path | None, run: Run) -> AbstractContextManager[LocalEngine]:
    """The engine for an address of the form "local:N".

    Examples
    --------
    >>> with open_local("2", None, Run()) as engine:
    ...     engine.workers
    2
    """
    if not number.isdecimal() or not 1 <= int(number) <= MAX_WORKERS:
        message = (
            f"option --engine: the engine must be local:N with N from 1 to {MAX_WORKERS}, such as local:2."
        )
        raise InputError(message, option="--engine")
    return nullcontext(LocalEngine(int(number)))
