"""Invariants of several specs together, by enumerating tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations_with_replacement, product
from typing import Any

Record = tuple[str, Mapping[str, int]]


def every_spec_has_neighbours(
    invariants: Sequence[Mapping[str, Any]],
    spaces: Sequence[Mapping[str, Any]],
    leaves: Sequence[str],
    *,
    is_changed: bool,
    n_people: int = 2,
) -> bool:
    """Whether, for each space, two tables that differ in one record agree on all invariants and look different in it."""
    sizes = {name: size for space in spaces for name, (size, _) in space["attributes"].items()}
    zeros = [zero for space in spaces for zero in space["zeros"]]
    people = [
        (leaf, cell) for leaf in leaves for cell in _cells(sizes) if not any(_in(cell, z) for z in zeros)
    ]
    tables = [
        table for n in range(n_people + 1) for table in combinations_with_replacement(range(len(people)), n)
    ]
    pairs = [
        ([people[i] for i in one], [people[i] for i in other])
        for one in tables
        for other in tables
        if _are_neighbours(one, other, is_changed)
    ]
    agreeing = [(a, b) for a, b in pairs if all(_values(a, one) == _values(b, one) for one in invariants)]
    return all(any(_seen(a, space) != _seen(b, space) for a, b in agreeing) for space in spaces)


def _cells(sizes: Mapping[str, int]) -> Iterator[dict[str, int]]:
    for codes in product(*map(range, sizes.values())):
        yield dict(zip(sizes, codes, strict=True))


def _in(cell: Mapping[str, int], codes: Mapping[str, Sequence[int]]) -> bool:
    return all(cell[name] in own for name, own in codes.items())


def _are_neighbours(one: tuple[int, ...], other: tuple[int, ...], is_changed: bool) -> bool:
    gone, come = Counter(one) - Counter(other), Counter(other) - Counter(one)
    moves = (gone.total(), come.total())
    return moves == (1, 1) if is_changed else moves in ((0, 1), (1, 0))


def _values(table: Sequence[Record], invariant: Mapping[str, Any]) -> Counter[str]:
    kind, length = invariant["region"]
    region = (
        (lambda leaf: leaf[:length])
        if kind == "prefix"
        else (lambda leaf: leaf.split("/")[:length].__repr__())
    )
    return Counter(region(leaf) for leaf, cell in table if _in(cell, invariant["codes"]))


def _seen(table: Sequence[Record], space: Mapping[str, Any]) -> Counter[tuple[Any, ...]]:
    names = sorted(space["attributes"])
    return Counter((leaf, *(cell[name] for name in names)) for leaf, cell in table)
