"""Every redesign of a small table: all roles x all partitions, each audited by Algorithm 3.1.

An attribute is described by its axis of a dense table and the partitions it may take; it is a predictor or a
response. A redesign keeps at least one predictor, has a response in the columns and something in the rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from math import gcd, log2

import numpy as np

from oracles.knapsack import algorithm_3_1

Partition = tuple[tuple[int, ...], ...]
Scores = tuple[float, bool, int, int, int]


@dataclass(frozen=True, slots=True)
class Axis:
    """`far` lists the partitions that unite what is far apart."""

    partitions: tuple[Partition, ...]
    is_response: bool
    far: frozenset[Partition] = frozenset()


@dataclass(frozen=True, slots=True)
class Redesign:
    roles: tuple[str, ...]
    partitions: tuple[Partition | None, ...]
    bits: float
    disclosed_rows: int
    zero_cells: int
    small_cells: int
    certain_rows: int
    is_far: bool

    @property
    def scores(self) -> Scores:
        return round(self.bits, 7), self.is_far, self.certain_rows, self.disclosed_rows, self.zero_cells

    @property
    def is_plain(self) -> bool:
        """Whether attributes were only moved."""
        return all(p is not None and all(len(group) == 1 for group in p) for p in self.partitions)

    def is_safe(self, avoid: str) -> bool:
        return self.small_cells == 0 and (avoid == "small" or self.certain_rows == 0)


def set_partitions(size: int) -> tuple[Partition, ...]:
    """All partitions of 0..size-1 into two groups or more (or the only one of a single label)."""

    def grow(code: int) -> Iterator[list[list[int]]]:
        if code == 0:
            yield [[0]]
            return
        for groups in grow(code - 1):
            for i in range(len(groups)):
                yield [[*group, code] if i == j else group for j, group in enumerate(groups)]
            yield [*groups, [code]]

    found = [tuple(sorted(tuple(group) for group in groups)) for groups in grow(size - 1)]
    return tuple(p for p in found if len(p) > 1 or size == 1)


def interval_partitions(size: int) -> tuple[Partition, ...]:
    """Those of its partitions whose groups are neighbours."""
    return tuple(
        p for p in set_partitions(size) if all(group[-1] - group[0] + 1 == len(group) for group in p)
    )


def all_redesigns(counts: np.ndarray, axes: Sequence[Axis], small: int) -> list[Redesign]:
    choices = [
        [("omit", None), *((role, p) for role in ("row", "col") for p in axis.partitions)] for axis in axes
    ]
    found = []
    for chosen in product(*choices):
        roles = tuple(role for role, _ in chosen)
        if _is_valid(roles, axes):
            found.append(_audited(counts, axes, roles, tuple(p for _, p in chosen), small))
    return found


def pareto(redesigns: Sequence[Redesign], avoid: str) -> set[Scores]:
    """Scores of the safe redesigns that no other safe one beats, and of the plain moves that no other plain one beats."""
    return {
        score
        for some in (redesigns, [one for one in redesigns if one.is_plain])
        for score in _unbeaten({one.scores for one in some if one.is_safe(avoid)})
    }


def _unbeaten(safe: set[Scores]) -> set[Scores]:
    return {
        a
        for a in safe
        if not any(
            b != a and b[0] >= a[0] and all(x <= y for x, y in zip(b[1:], a[1:], strict=True)) for b in safe
        )
    }


def _is_valid(roles: Sequence[str], axes: Sequence[Axis]) -> bool:
    pairs = list(zip(roles, (axis.is_response for axis in axes), strict=True))
    keeps_predictor = any(role != "omit" and not is_response for role, is_response in pairs)
    return "row" in roles and ("col", True) in pairs and keeps_predictor


def _audited(counts, axes, roles, partitions, small) -> Redesign:
    table = counts
    for axis, partition in enumerate(partitions):
        groups = [tuple(range(table.shape[axis]))] if partition is None else partition
        table = np.stack([table.take(group, axis=axis).sum(axis=axis) for group in groups], axis=axis)
    part = ["row" if r == "row" else "col" if r == "col" else "omit" for r in roles]
    order = [i for i, role in enumerate(part) if role == "row"]
    n_rows = int(np.prod([table.shape[i] for i in order]))
    flat = np.transpose(table, [*order, *(i for i in range(table.ndim) if i not in order)]).reshape(
        n_rows, -1
    )
    kinds = [
        "omit" if r == "omit" else "predictor" if not a.is_response else "response" if r == "col" else "given"
        for r, a in zip(roles, axes, strict=True)
    ]
    rows, zeros, smalls = _disclosed(flat, small)
    certain = sum(1 for row in flat.tolist() if sum(row) and max(row) == sum(row))
    is_far = any(p in axis.far for p, axis in zip(partitions, axes, strict=True))
    return Redesign(roles, partitions, _bits(table, kinds), rows, zeros, smalls, certain, is_far)


def _disclosed(flat: np.ndarray, small: int) -> tuple[int, int, int]:
    """Disclosed rows, zero cells, and disclosed small cells."""
    rows = [row for row in flat.tolist() if any(row)]
    sums = [sum(row) // gcd(*row) for row in rows]
    least, greatest = algorithm_3_1(sums, int(flat.sum()) - sum(sums))
    determined = [row for row, a, b in zip(rows, least, greatest, strict=True) if a == b]
    return len(determined), int((flat == 0).sum()), sum(0 < x < small for row in determined for x in row)


def _bits(table: np.ndarray, kinds: Sequence[str]) -> float:
    """I(predictors; responses | given), cell by cell."""
    n = table.sum()

    def margin(*kept: str) -> np.ndarray:
        away = tuple(i for i, kind in enumerate(kinds) if kind not in kept)
        return table.sum(axis=away, keepdims=True) / n

    joint = margin("predictor", "response", "given")
    both = margin("predictor", "given"), margin("response", "given"), margin("given")
    xz, yz, z = (np.broadcast_to(one, joint.shape) for one in both)
    return sum(
        p * log2(p * r / (a * b))
        for p, a, b, r in zip(joint.ravel(), xz.ravel(), yz.ravel(), z.ravel(), strict=True)
        if p > 0
    )
