"""Controlled rounding by trying every choice of multiples; nothing here knows of programs or annealing."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

Sum = tuple[int, tuple[int, ...]]
"""A total and its parts, by their places."""


def nearest(values: Sequence[int], sums: Sequence[Sum], base: int, beyond: int) -> int | None:
    """The least total distance with every number at most `beyond` multiples past the two next ones; None where nothing adds up."""
    finest = [n for n in range(len(values)) if n not in {total for total, _ in sums}]

    def choices(value: int) -> list[int]:
        low, high = value // base * base, -(-value // base) * base
        return [r for r in range(low - beyond * base, high + beyond * base + 1, base) if r >= 0]

    best = None
    for picked in product(*(choices(values[n]) for n in finest)):
        number = dict(zip(finest, picked, strict=True))
        is_additive = True
        while len(number) < len(values):
            for total, parts in sums:
                if all(part in number for part in parts):
                    number.setdefault(total, sum(number[part] for part in parts))
        for total, parts in sums:
            is_additive &= number[total] == sum(number[part] for part in parts)
        if is_additive and all(number[n] in choices(values[n]) for n in range(len(values))):
            distance = sum(abs(number[n] - values[n]) for n in range(len(values)))
            best = distance if best is None else min(best, distance)
    return best
