"""Notices that kernels are being compiled, which takes a while but happens only once."""

from __future__ import annotations

from collections.abc import Callable

__all__ = ["SECONDS", "compiling", "listeners"]

SECONDS = {"classes": 9, "families": 14, "semigroups": 6, "trees": 2}
"""About how long the first call of a family of kernels takes to compile on two idle cores."""

A_FEW = 2
"""The same for a family that is not listed."""

listeners: list[Callable[[int], None]] = []
"""Called with the approximate number of seconds it takes."""


def compiling(family: str) -> None:
    """Notify all listeners."""
    for listener in listeners:
        listener(SECONDS.get(family, A_FEW))
