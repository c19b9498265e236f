"""Batches on a Dask cluster: a running scheduler, and workers on machines that see the same files.

A task consists of the name of a function, the names and hashes of files with the shared data, and a piece. These files are kept in a
separate folder on the shared path while the engine is open. Only the results are returned.

If a worker is lost, another one processes its batch from the same files, even if a result was lost with the worker.
Dask exchanges pickles, so a scheduler can run any code on the machines that connect to it; connect only to your own scheduler.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import pickle
import platform
import secrets
import socket
import time
import uuid
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import CancelledError, wait
from concurrent.futures import Future as Pending
from contextlib import contextmanager, suppress
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast
from urllib.parse import urlsplit

from louver._version import __version__
from louver.data.scratch import Scratch
from louver.engine.shared import SharedObject, forget
from louver.errors import InputError
from louver.run import Run

if TYPE_CHECKING:
    from distributed import Client, Future

__all__ = ["DaskEngine", "open_dask"]

CONNECT_SECONDS = 10.0
"""Time within which a scheduler must answer."""

LOST_SECONDS = 30.0
"""Seconds without any worker after which the run gives up."""

POLL_SECONDS = 0.05
LOOK_SECONDS = 1.0  # seconds between two checks for workers
CARRY_ON = "resume the run (run and extend: with --resume)"
DECIDING = ("numpy", "scipy", "numba", "pyarrow", "piqp", "ortools")  # results may depend on their versions

Piece = TypeVar("Piece")
Result = TypeVar("Result")
T = TypeVar("T")


@contextmanager
def open_dask(protocol: str, rest: str, folder: Path | None, run: Run) -> Iterator[DaskEngine]:
    """The engine for an address written as "dask://HOST:PORT" or "tls://HOST:PORT".

    Raises
    ------
    InputError
        If nothing answers there, there are no workers, or a worker has different software or does not see the folder.
    """
    host, port = _host_and_port(rest)
    if folder is None:
        raise _error("this command runs on this machine only; give local:N")
    with (
        _connected(f"{protocol}://{host}:{port}", (host.strip("[]"), port), run) as client,
        _made(folder.absolute()) as scratch,
    ):
        _check_workers(client, scratch.path, run)
        yield DaskEngine(client, scratch.path)
        with suppress(Exception):  # the work is done, so failures no longer matter
            run.attend(client.run, forget, on_error="ignore")


def _made(folder: Path) -> Scratch:
    """A folder for this run that workers of other users may read; folders left by killed runs on this machine are removed."""
    try:
        made = Scratch(folder, f".louver-engine-{_machine()}-")
        probe = made.path / "probe"
        probe.mkdir()
        made.path.chmod(probe.stat().st_mode & 0o777)
        probe.rmdir()
    except (InputError, OSError):
        raise _error(
            f"{folder.name}, where this run keeps its files, does not exist or cannot be written to; choose another folder"
        ) from None
    return made


def _machine() -> str:
    """An identifier of this machine among those that share a path, some of which may have the same name."""
    return hashlib.sha256(f"{socket.gethostname()} {uuid.getnode()}".encode()).hexdigest()[:12]


def _host_and_port(rest: str) -> tuple[str, int]:
    """Host and port from "//HOST:PORT"; anything else is refused."""
    message = "the address must be dask://HOST:PORT, such as dask://10.0.0.5:8786, with a port from 1 to 65535 and nothing after it"
    try:
        parts = urlsplit(rest)
        host, port = parts.hostname, parts.port
    except ValueError:
        raise _error(message) from None
    if not host or not port or any(letter.isspace() for letter in rest):
        raise _error(message)
    bracketed = f"[{host}]" if ":" in host else host
    if rest.lower() != f"//{bracketed}:{port}":
        raise _error(message)
    return bracketed, port


@contextmanager
def _connected(address: str, place: tuple[str, int], run: Run) -> Iterator[Client]:
    """A client of the scheduler at an address."""
    try:
        from distributed import Client
    except ImportError:
        raise _error('Dask is not installed; install it with pip install "louver[cluster]"') from None
    where = f"{place[0]}:{place[1]}"
    try:
        run.attend(socket.create_connection, place, CONNECT_SECONDS).close()
    except OSError:
        message = (
            f"nothing is listening at {where}; start a scheduler with dask scheduler, or correct the address"
        )
        raise _error(message) from None
    if run.attend(_kind, address) != "Scheduler":
        message = f"the server at {where} does not answer like a Dask scheduler of this version; correct the address, or, if it encrypts,"
        raise _error(f"{message} write tls:// and give Dask the certificates")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # versions are compared below
        client = run.attend(Client, address, timeout=CONNECT_SECONDS, set_as_default=False, name="louver")
    loggers = [logging.getLogger(name) for name in ("distributed", "distributed.client")]
    levels = [logger.level for logger in loggers]
    try:
        for logger in loggers:
            logger.setLevel(logging.CRITICAL)  # louver itself reports lost workers if they matter
        yield client
    finally:
        with suppress(OSError, TimeoutError, RuntimeError):
            client.close(timeout=LOOK_SECONDS)
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)


def _kind(address: str) -> str | None:
    """The type that a server reports through Dask's protocol; None for a server that does not use it."""
    from distributed import Security, rpc

    async def ask() -> Any:
        async with rpc(address, connection_args=Security().get_connection_args("client")) as there:
            return await there.identity()

    async def within() -> Any:
        return await asyncio.wait_for(ask(), CONNECT_SECONDS)

    try:
        return str(asyncio.run(within())["type"])
    except Exception:  # noqa: BLE001 - an unknown server may answer anything
        return None


def _check_workers(client: Client, scratch: Path, run: Run) -> None:
    """Refuse a cluster without workers, and workers whose results might differ."""
    probe, secret = scratch / "probe", secrets.token_bytes(32)
    probe.write_bytes(secret)
    answers = run.attend(client.run, _introduce, str(probe), on_error="return")
    if not answers:
        raise _error("the scheduler has no workers; start some with dask worker and the scheduler's address")
    for worker, answer in answers.items():
        if not isinstance(answer, tuple):
            raise _error(
                f"the worker {worker} cannot load louver {__version__}; install the same version there"
            )
        _compare(worker, answer[0])
        if answer[1] != secret:
            message = f"the worker {worker} does not see {scratch.parent.name}, where this run keeps its files, under the same path"
            raise _error(f"{message}; choose a folder that all machines share")


def _introduce(probe: str) -> tuple[dict[str, str], bytes | None]:
    """A worker's software versions, and what it reads from a file."""
    try:
        return software(), Path(probe).read_bytes()
    except OSError:
        return software(), None


@cache
def software() -> dict[str, str]:
    """Versions that results depend on."""
    found = {"louver": __version__, "Python": platform.python_version(), "machine": platform.machine()}
    for name in DECIDING:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "none"
    return found


def _compare(worker: str, theirs: dict[str, str]) -> None:
    for name, own in software().items():
        if theirs.get(name) != own:
            message = f"the worker {worker} has another version of {name} ({theirs.get(name)}, here {own})"
            raise _error(f"{message}; install the same on all machines")


def _error(sentence: str) -> InputError:
    return InputError(f"option --engine: {sentence}.", option="--engine")


class WorkerRun(Run):
    """The run of a task on a worker: cancelled when its result is no longer needed."""

    def __init__(self) -> None:
        super().__init__()
        from distributed import get_worker

        worker = get_worker()
        self._tasks, self._key = worker.state.tasks, worker.get_current_task()

    def check(self) -> None:
        """Raise `Cancelled` if the task was cancelled or its client is gone."""
        task = self._tasks.get(self._key)
        if task is None or task.state != "executing":
            self.cancel()
        super().check()


def _work(packed: bytes, piece: bytes, expected: dict[str, str]) -> Any:
    """Work on one piece; the worker may have joined after the others were checked."""
    _compare(socket.gethostname(), expected)
    return pickle.loads(packed)(pickle.loads(piece), WorkerRun())


class DaskEngine:
    """Workers of a Dask cluster; see `engines.Engine`."""

    def __init__(self, client: Client, scratch: Path) -> None:
        self._client, self._scratch = client, scratch
        self._loop = cast(Any, client.loop).asyncio_loop
        self._looked = self._seen = time.monotonic()

    @property
    def folder(self) -> Path:
        """The folder that all workers see."""
        return self._scratch

    @property
    def workers(self) -> int:
        """Current number of threads of all workers."""
        return max(1, int(sum(self._client.nthreads().values())))

    def share(self, shared: T) -> SharedObject[T]:
        """Share an object with all workers for as long as the returned handle exists."""
        return SharedObject(shared, self._scratch)

    def map(
        self, work: Callable[[Piece, Run], Result], pieces: Iterable[Piece], run: Run | None
    ) -> Iterator[Result]:
        """Yield work(piece, run) for every piece, in order."""
        run, packed, remaining = run or Run(), pickle.dumps(work), iter(pieces)
        ahead = 8 + 2 * sum(run.attend(self._client.nthreads).values())
        waiting: deque[Future[Any]] = deque()
        try:
            waiting.extend(self._submit(packed, piece) for piece in islice(remaining, ahead))
            while waiting:
                result = self._result(waiting[0], run)
                waiting.popleft().release()
                waiting.extend(self._submit(packed, piece) for piece in islice(remaining, 1))
                yield result
        finally:
            for future in waiting:
                future.release()

    def _submit(self, packed: bytes, piece: object) -> Future[Any]:
        return self._client.submit(_work, packed, pickle.dumps(piece), software(), pure=False)

    def _result(self, future: Future[Any], run: Run) -> Any:
        """A worker's result, as soon as it has arrived."""
        from distributed import KilledWorker

        gathered = self._client.gather(future, asynchronous=True)
        pending: Pending[Any] = asyncio.run_coroutine_threadsafe(gathered, self._loop)
        self._seen = time.monotonic()
        try:
            while not wait([pending], POLL_SECONDS).done:
                run.check()
                self._look(run)
            return pending.result()
        except KilledWorker:
            message = "workers ended one after another at the same batch; give them more memory"
        except (asyncio.CancelledError, CancelledError):
            message = "the scheduler has gone; start it and its workers"
        finally:
            pending.cancel()
        raise _error(f"{message}, and {CARRY_ON}")

    def _look(self, run: Run) -> None:
        """Give up if there have been no workers for a while."""
        now = time.monotonic()
        if now - self._looked < LOOK_SECONDS:
            return
        self._looked = now
        with suppress(OSError):  # a lost scheduler is reported by its batches
            if run.attend(self._client.nthreads):
                self._seen = now
        if now - self._seen > LOST_SECONDS:
            raise _error(f"all workers have gone; start workers, and {CARRY_ON}")
