"""Group sizes by brute force: every table, every neighbour."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product

import numpy as np

from louver.optim.trees import LevelTree


def compositions(total: int, parts: int) -> Iterator[tuple[int, ...]]:
    """Every way to write `total` as an ordered sum of numbers that are not negative."""
    if parts == 1:
        yield (total,)
        return
    for first in range(total + 1):
        for rest in compositions(total - first, parts - 1):
            yield (first, *rest)


def tables(tree: LevelTree, n_sizes: int, total: int) -> Iterator[np.ndarray]:
    """Every consistent table of numbers of groups with this total."""
    n_leaves = tree.n_leaves
    for flat in compositions(total, n_leaves * n_sizes):
        rows = [np.array(flat).reshape(n_leaves, n_sizes)]
        for k in range(tree.n_levels - 2, -1, -1):
            below = rows[0]
            offset = int(tree.level_start[k + 1])
            parents = range(int(tree.level_start[k]), int(tree.level_start[k + 1]))
            rows.insert(
                0,
                np.array(
                    [
                        below[tree.first_child[r] - offset : tree.first_child[r + 1] - offset].sum(axis=0)
                        for r in parents
                    ]
                ),
            )
        yield np.concatenate(rows)


def best_cost(noisy: np.ndarray, tree: LevelTree, total: int, weights: Sequence[int]) -> int:
    """Cost of the best table of Model 1, by trying all."""
    weight = np.repeat(weights, tree.level_sizes)[:, None]
    return min(int((weight * (t - noisy) ** 2).sum()) for t in tables(tree, noisy.shape[1], total))


def is_table(counts: np.ndarray, tree: LevelTree, total: int | None) -> bool:
    """Conditions 2 to 4 of section 4, one by one."""
    if counts.dtype.kind != "i" or (counts < 0).any():
        return False
    for r in range(int(tree.level_start[-2])):
        children = counts[tree.first_child[r] : tree.first_child[r + 1]]
        if not np.array_equal(children.sum(axis=0), counts[r]):
            return False
    levels = [counts[tree.level(k)].sum() for k in range(tree.n_levels)]
    return all(level == (levels[0] if total is None else total) for level in levels)


def data_sets(units: Sequence[int], leaves: int, largest: int) -> Iterator[dict[int, tuple[int, int]]]:
    """Every way to give each unit a leaf region and a size from 0 to `largest`."""
    for choice in product(product(range(leaves), range(largest + 1)), repeat=len(units)):
        yield dict(zip(units, choice, strict=True))


def leaf_counts(data: dict[int, tuple[int, int]], leaves: int, first_size: int, largest: int) -> np.ndarray:
    counts = np.zeros((leaves, largest + 1 - first_size), np.int64)
    for leaf, size in data.values():
        if size >= first_size:
            counts[leaf, min(size, largest) - first_size] += 1
    return counts
