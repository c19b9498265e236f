"""Kernels compiled before they are called: on the first run with two cores some of them in a child process, into the cache."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from threading import Thread
from typing import Any

from louver.optim.kernels import is_kept
from louver.run import POLL_SECONDS, Run

__all__ = ["Call", "compile_calls", "compiled_aside", "n_cores"]

Call = tuple[Any, tuple[Any, ...]]
"""A kernel and example arguments of the types it will be called with."""


@contextmanager
def compiled_aside(run: Run, *calls: Call) -> Iterator[None]:
    """Compile kernels that are not in the cache in a child process while the block runs, and wait for it at the end.

    Nothing depends on it: kernels that the child does not finish are compiled when they are called.
    """
    jobs = [_job(kernel, args) for kernel, args in calls if not is_kept(kernel)]
    if not jobs or n_cores() < 2:
        yield
        return
    own = Run()
    waiting = Thread(target=_called, args=(own, jobs), daemon=True)
    waiting.start()
    try:
        yield
        while waiting.is_alive():
            waiting.join(POLL_SECONDS)
            run.check()
    finally:
        own.cancel()


def compile_calls(run: Run, calls: Iterable[Call]) -> None:
    """Compile those kernels that are not in the cache in this process, without calling them."""
    for kernel, args in calls:
        run.check()
        if not is_kept(kernel):
            compile_all([_job(kernel, args)])


def compile_all(jobs: list[tuple[str, str, tuple[Any, ...]]]) -> None:
    """Compile the given functions for arguments of the given types."""
    for module, name, types in jobs:
        getattr(import_module(module), name).entry.compile(types)


def n_cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _job(kernel: Any, args: tuple[Any, ...]) -> tuple[str, str, tuple[Any, ...]]:
    return kernel.__module__, kernel.__name__, tuple(kernel.typeof_pyval(value) for value in args)


def _called(run: Run, jobs: list[tuple[str, str, tuple[Any, ...]]]) -> None:
    with suppress(
        Exception
    ):  # out of memory or no interpreter to start: kernels are then compiled when called
        run.call(compile_all, jobs)
