"""Numbers in sentences."""

from __future__ import annotations

__all__ = ["counted"]


def counted(number: int, noun: str) -> str:
    """A number with its noun: "1 small cell", "1,185 zero cells"."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
