"""Brute force for a published file of records: every table of people that its records may be."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations_with_replacement, product

import numpy as np

__all__ = ["ShownClass", "possible_tables"]


@dataclass(frozen=True)
class ShownClass:
    """Records that look alike but for a kept column: labels of each axis, and how many have each label of the kept one.

    `labels` lists the codes of each axis; None where all records are told apart by `kept`, which counts the codes of that axis. Somebody
    has every label that is listed.
    """

    labels: tuple[tuple[int, ...] | None, ...]
    kept: tuple[int, ...]


def possible_tables(shape: Sequence[int], classes: Sequence[ShownClass], n_left_out: int) -> np.ndarray:
    """Every table that agrees with the file, (tables, cells)."""
    cells = list(np.ndindex(*shape))
    sums = {(0,) * len(cells)}
    for one in classes:
        options = _options(cells, one)
        sums = {tuple(a + b for a, b in zip(x, y, strict=True)) for x in sums for y in options}
    for _ in range(n_left_out):
        sums = {
            tuple(n + (place == at) for place, n in enumerate(x)) for x in sums for at in range(len(cells))
        }
    return np.array(sorted(sums), dtype=np.int64)


def _options(cells: Sequence[tuple[int, ...]], one: ShownClass) -> set[tuple[int, ...]]:
    """Every way in which the records of one class may be people."""
    alike = []
    for label, n in enumerate(one.kept):
        allowed = [
            place
            for place, cell in enumerate(cells)
            if all(
                code == label if labels is None else code in labels
                for code, labels in zip(cell, one.labels, strict=True)
            )
        ]
        alike.append(list(combinations_with_replacement(allowed, n)))
    found = set()
    for chosen in product(*alike):
        people = [place for some in chosen for place in some]
        if all(
            labels is None or {cells[place][axis] for place in people} == set(labels)
            for axis, labels in enumerate(one.labels)
        ):
            found.add(tuple(people.count(place) for place in range(len(cells))))
    return found
