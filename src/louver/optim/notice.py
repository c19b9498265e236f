"""That kernels are being compiled, which takes long but only once: kernels say so, and the command line listens."""

from __future__ import annotations

from collections.abc import Callable

__all__ = ["SECONDS", "compiling", "listeners"]

SECONDS = {"classes": 14, "families": 23, "semigroups": 7, "trees": 2}
"""About how long a first call takes to compile a family of kernels: measured on two virtual cores with nothing else to do."""

A_FEW = 2
"""The same for a family that is not listed."""

listeners: list[Callable[[int], None]] = []
"""Told about how many seconds it takes."""


def compiling(family: str) -> None:
    """Tell everybody who listens."""
    for listener in listeners:
        listener(SECONDS.get(family, A_FEW))
