"""That kernels are being compiled, which takes long but only once: kernels say so, and the command line listens."""

from __future__ import annotations

from collections.abc import Callable

__all__ = ["compiling", "listeners"]

listeners: list[Callable[[int], None]] = []
"""Told about how many seconds it takes."""


def compiling(seconds: int) -> None:
    """Tell everybody who listens."""
    for listener in listeners:
        listener(seconds)
