"""Engines: where batches of work run, by an address such as `local:2` or `dask://10.0.0.5:8786`.

A verb opens one engine and passes it on; code that works in batches maps a function over them::

    def counted(known: Shared[Known], span: Span, run: Run) -> Counts:      # a module-level function, not a nested one
        return known.value.count(span, run)

    with open_engine(address, folder, run) as engine:
        known = engine.share(Known(...))             # needed by all batches; sent to every worker once
        for counts in engine.map(partial(counted, known), spans, run):
            run.report("counting", ...)              # reported by the caller

- Results come in the order of the pieces, whatever the engine, the number of workers and the workers lost on the way.
- Only a few pieces are read ahead of the results, so that neither side has to fit into memory; keep pieces and results small.
- On a cluster, functions, pieces, results and shared objects are pickled, and shared objects are stored in `folder`, which all workers must
  see under the same path. So none of it may contain records, a ledger or a key that the work does not need.
- On this machine, `run` is the caller's. On a cluster it belongs to the worker, and can only be checked for cancellation.
- A `Shared` lives as long as it is referenced; its file is removed with it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import Protocol, TypeVar

from louver.engine.dask import open_dask
from louver.engine.local import LocalEngine, open_local
from louver.errors import InputError
from louver.run import Run

__all__ = ["ENGINES", "ONE_CORE", "Engine", "Shared", "open_engine"]

Piece = TypeVar("Piece")
Result = TypeVar("Result")
T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


class Shared(Protocol[T_co]):
    """An object that all batches need."""

    @property
    def value(self) -> T_co:
        """The shared object, on any worker."""
        ...


class Engine(Protocol):
    """Where batches of work run."""

    @property
    def folder(self) -> Path | None:
        """Folder for the files that the work reads; None if any folder will do."""
        ...

    @property
    def workers(self) -> int:
        """Number of pieces that are processed at a time."""
        ...

    def share(self, shared: T) -> Shared[T]:
        """Share an object with all workers for as long as the returned handle exists."""
        ...

    def map(
        self, work: Callable[[Piece, Run], Result], pieces: Iterable[Piece], run: Run | None
    ) -> Iterator[Result]:
        """Yield work(piece, run) for every piece, in order."""
        ...


Opener = Callable[[str, Path | None, Run], AbstractContextManager[Engine]]

ENGINES: dict[str, Opener] = {
    "local": open_local,
    "dask": partial(open_dask, "tcp"),
    "tls": partial(open_dask, "tls"),
}
"""Scheme of an address -> function that opens an engine at the rest of the address."""

ONE_CORE: Engine = LocalEngine(1)
"""The default engine."""


def open_engine(
    address: str, folder: Path | None = None, run: Run | None = None
) -> AbstractContextManager[Engine]:
    """The engine at an address, to be used in a `with`.

    Parameters
    ----------
    address : str
    folder : Path, optional
        An existing folder where engines on several machines put shared files. None if only this machine's cores are used.
    run : Run, optional
        Checked for cancellation while connecting.

    Examples
    --------
    >>> with open_engine("local:2") as engine:
    ...     list(engine.map(lambda piece, run: abs(piece), [-3, 2, -1], None))
    [3, 2, 1]
    """
    scheme, _, rest = address.partition(":")
    if scheme not in ENGINES:
        message = "option --engine: the engine must be local:N, such as local:2, or a Dask cluster, dask://HOST:PORT."
        raise InputError(message, option="--engine")
    return ENGINES[scheme](rest, folder, run or Run())
