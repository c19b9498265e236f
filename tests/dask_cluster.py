"""A Dask scheduler and workers on loopback, started as the guide says; and work for them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from distributed import Client, Security

WAIT_SECONDS = 120  # for a busy machine; nothing takes that long
TESTS = Path(__file__).parent


class Cluster:
    """A scheduler and some workers, each a process; `tls` are a certificate and its key, which all of them show and trust."""

    def __init__(self, folder: Path, tls: tuple[Path, Path] | None = None) -> None:
        self._folder = folder
        self._file = folder / "scheduler.json"
        self._given, security = [], None
        if tls is not None:
            self._given = [f"--tls-ca-file={tls[0]}", f"--tls-cert={tls[0]}", f"--tls-key={tls[1]}"]
            files = {
                "tls_ca_file": str(tls[0]),
                "tls_client_cert": str(tls[0]),
                "tls_client_key": str(tls[1]),
            }
            security = Security(require_encryption=True, **files)
        self.workers: list[subprocess.Popen[bytes]] = []
        protocol = [] if tls is None else ["--protocol=tls"]
        self.scheduler = self._start(
            *(
                "scheduler",
                "--host=127.0.0.1",
                "--port=0",
                "--no-dashboard",
                f"--scheduler-file={self._file}",
            ),
            *(*protocol, *self._given),
        )
        until(self._file.is_file)
        self.client = Client(
            scheduler_file=str(self._file), set_as_default=False, timeout=WAIT_SECONDS, security=security
        )
        self.address = self.client.scheduler.address.replace("tcp://", "dask://")

    def add_workers(self, number: int, before: str = "") -> None:
        """Start workers, which run some lines of Python before."""
        self.workers += [self._start_worker(before) for _ in range(number)]
        self.wait_for(len(self.workers))

    def wait_for(self, number: int) -> None:
        """Wait until the scheduler knows so many workers."""
        until(lambda: len(self.client.nthreads()) == number)

    def end_workers(self) -> None:
        """Kill all workers."""
        for worker in self.workers:
            end(worker)
        self.workers.clear()
        self.wait_for(0)

    def close(self) -> None:
        """End everything."""
        self.client.close()
        for process in (*self.workers, self.scheduler):
            end(process)

    def _start_worker(self, before: str) -> subprocess.Popen[bytes]:
        given = [f"--scheduler-file={self._file}", "--host=127.0.0.1", "--no-nanny", "--nthreads=1"]
        return self._start(
            *("worker", *given, "--no-dashboard", f"--local-directory={self._folder}", *self._given),
            before=before,
        )

    def _start(self, *command: str, before: str = "") -> subprocess.Popen[bytes]:
        code = f"{before}\nfrom dask.__main__ import main\nmain()"
        return subprocess.Popen(
            [sys.executable, "-c", code, *command],
            cwd=self._folder,
            env={**os.environ, "PYTHONPATH": str(TESTS)},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )


@contextmanager
def cluster_of(folder: Path, workers: int, tls: tuple[Path, Path] | None = None) -> Iterator[Cluster]:
    """A cluster for as long as this lasts."""
    cluster = Cluster(folder, tls)
    try:
        cluster.add_workers(workers)
        yield cluster
    finally:
        cluster.close()


def end(process: subprocess.Popen[bytes]) -> None:
    """Kill a process and wait for its end."""
    process.send_signal(signal.SIGKILL)
    process.wait()


def until(is_so: Callable[[], bool]) -> None:
    """Wait for something that happens."""
    deadline = time.monotonic() + WAIT_SECONDS
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def add(number, piece, run):
    """Work: something shared and a piece."""
    run.check()
    return number.value + piece


def stop_for_good(folder, piece, run):
    """Work that ends when it is told to, and leaves word of its beginning and end."""
    (folder / "begun").touch()
    try:
        while True:
            run.check()
            time.sleep(0.01)
    finally:
        (folder / "ended").touch()


def die_at(name: str) -> None:
    """On a worker: end without a word in the middle of the first batch of a level."""
    from louver.topdown.estimation import levels as estimation

    solve = estimation._solve_batch

    def dying(problem, families, margin):
        if problem.spine.names[families.level] == name:
            os._exit(9)
        return solve(problem, families, margin)

    estimation._solve_batch = dying


def die_forming_classes() -> None:
    """On a worker: end without a word once the classes of a part have been formed, before anybody hears of it."""
    from louver.anonymize import parts

    form = parts.form_classes

    def dying(*given):
        form(*given)
        os._exit(9)

    parts.form_classes = dying


OPENED: list[str] = []
WATCHED: list[str] = []


def watch(folder: str) -> None:
    """On a worker: note all files of a folder that are opened from now on."""
    WATCHED.append(folder)

    def note(event, given):
        if event == "open" and any(str(given[0]).startswith(own) for own in WATCHED):
            OPENED.append(str(given[0]))

    sys.addaudithook(note)


def opened() -> list[str]:
    """On a worker: what was noted."""
    WATCHED.clear()
    return OPENED
