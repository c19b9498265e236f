"""Independent pieces of work on the cores of this machine.

Results come in the order of the pieces, whatever the number of workers, so what is computed never depends on
it. Workers are threads: the work is compiled code, which runs without the interpreter lock.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice
from typing import TypeVar

from louver.errors import InputError

__all__ = ["parse_engine", "run_pieces"]

MAX_WORKERS = 1024

Piece = TypeVar("Piece")
Result = TypeVar("Result")


def run_pieces(
    work: Callable[[Piece], Result], pieces: Iterable[Piece], *, workers: int = 1
) -> Iterator[Result]:
    """Yield work(piece) for every piece, in order.

    Parameters
    ----------
    work : callable
        Must not depend on which worker runs it.
    pieces : iterable
        Read a few ahead of the results, so that neither side has to be held in memory.
    workers : int
        Threads; 1 works in the caller's.

    Examples
    --------
    >>> list(run_pieces(abs, [-3, 2, -1], workers=2))
    [3, 2, 1]
    """
    if workers < 1:
        raise InputError("the number of workers is below 1; give at least one.", option="engine")
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


def parse_engine(engine: str) -> int:
    """Number of workers of an engine written as "local:N".

    Examples
    --------
    >>> parse_engine("local:2")
    2
    """
    kind, _, number = engine.partition(":")
    if kind != "local" or not number.isdecimal() or not 1 <= int(number) <= MAX_WORKERS:
        message = f"the engine must be local:N with N from 1 to {MAX_WORKERS}, such as local:2."
        raise InputError(message, option="--engine")
    return int(number)
