"""Groups that agree with numbers of people, by trying everything."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product

__all__ = ["best_tree", "has_rows", "rows_of"]


def rows_of(people: int, n_sizes: int, least: int, most: int) -> Iterator[tuple[int, ...]]:
    """Every way that `people` live in least to most households of 1 to n_sizes members: households of at least each size."""
    for sizes in product(range(people + 1), repeat=n_sizes):
        members = sum(size * n for size, n in enumerate(sizes, start=1))
        if members == people and least <= sum(sizes) <= most:
            yield tuple(sum(sizes[s:]) for s in range(n_sizes))


def has_rows(people: int, n_sizes: int, least: int, most: int) -> bool:
    """Whether there is any."""
    return next(rows_of(people, n_sizes, least, most), None) is not None


def best_tree(
    targets: Sequence[Sequence[float]],
    groups: Sequence[Sequence[int]],
    choices: Sequence[list[tuple[int, ...]]],
) -> float:
    """The least squared distance, over all regions, of sums of leaves to targets.

    Parameters
    ----------
    targets : rows of all regions
    groups : for every region, the leaves in it
    choices : for every leaf, the rows that it can have
    """
    best = float("inf")
    for chosen in product(*choices):
        distance = 0.0
        for target, leaves in zip(targets, groups, strict=True):
            for s, wanted in enumerate(target):
                distance += (sum(chosen[leaf][s] for leaf in leaves) - wanted) ** 2
        best = min(best, distance)
    return best
