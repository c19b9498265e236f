"""Numbers in sentences."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["counted", "listed"]


def counted(number: int, noun: str) -> str:
    """A number with its noun: "1 small cell", "1,185 zero cells"."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def listed(names: Sequence[str]) -> str:
    """Names in a sentence: "age", "age and sex", "age, sex and income"."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
