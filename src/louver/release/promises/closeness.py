"""t-closeness: how far the sensitive values of a class are from those of the whole table.

Li, Li & Venkatasubramanian (2007): the earth mover's distance with equal, ordered or hierarchical ground distances.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from louver._arrays import Floats
from louver.release.folder import Malformed
from louver.release.promises.base import TOLERANCE, Context, Outcome
from louver.release.promises.diversity import AboutSensitive, count_sensitive

__all__ = ["TCloseness", "check_t_closeness"]

Numbers = tuple[Annotated[int, Field(ge=0)], ...]


class TCloseness(AboutSensitive):
    """The sensitive distribution of every class is within t of the whole table's.

    Attributes
    ----------
    hierarchy : tuple of tuples
        Hierarchical distance: `hierarchy[h][value]` numbers the node above each value at height h + 1; the last is the root, and
        the only level with a single node.

    Every value listed occurs in the file. Values that never occur, and levels above the root, would divide each distance by too large a
    number, so that any class could pass as close. For the same reason, a level that merges no nodes of the level below is not counted.
    """

    promise: Literal["t-closeness"]
    distance: Literal["equal", "ordered", "hierarchical"]
    hierarchy: tuple[Numbers, ...] = ()
    t: Annotated[float, Field(ge=0, le=1)]


def check_t_closeness(context: Context, promise: TCloseness) -> Outcome:
    """Measure every class."""
    counts = count_sensitive(context, promise)
    if not counts.n_classes:
        return Outcome(True, "no records")
    if len(np.unique(counts.value)) < counts.n_values:
        raise Malformed("a sensitive value is listed that no published record has")
    if promise.distance == "hierarchical":
        _check_tree(promise.hierarchy, counts.n_values)
    whole = np.bincount(counts.value, counts.n, minlength=counts.n_values) / max(1, counts.n.sum())
    worst = 0.0
    for block in counts.blocks():
        sizes = block.sum(axis=1, keepdims=True)
        difference = np.where(sizes > 0, block / np.maximum(sizes, 1) - whole, 0.0)
        worst = max(worst, float(_distances(difference, promise).max()))
    detail = f"largest distance is {worst:.4g}, promised {promise.t:g}"
    return Outcome(worst <= promise.t + TOLERANCE, detail)


def _distances(difference: Floats, promise: TCloseness) -> Floats:
    """Distance of each class from its differences (classes, values) to the whole."""
    if promise.distance == "hierarchical":
        return tree_distance(difference, _without_repeats(promise.hierarchy))
    if promise.distance == "equal":
        total: Floats = np.abs(difference).sum(axis=1)
        return total / 2
    moved: Floats = np.abs(np.cumsum(difference, axis=1)).sum(axis=1) / max(1, difference.shape[1] - 1)
    return moved


def _check_tree(levels: Sequence[Sequence[int]], n_values: int) -> None:
    """Reject anything but a tree over the values: levels of unequal length, nodes that split again, no root or several roots."""
    if not levels or any(len(level) != n_values for level in levels):
        raise Malformed("the hierarchy is not a tree over the sensitive values")
    if [len(set(level)) == 1 for level in levels] != [False] * (len(levels) - 1) + [True]:
        raise Malformed("the hierarchy has no root, or more than one level of it")
    for below, above in pairwise(levels):
        if len(set(zip(below, above, strict=True))) != len(set(below)):
            raise Malformed("the hierarchy is not a tree over the sensitive values")


def _without_repeats(levels: Sequence[Sequence[int]]) -> list[Sequence[int]]:
    """The levels of a tree that have fewer nodes than the level below."""
    sizes = [len(set(level)) for level in levels]
    return [level for n, level in enumerate(levels) if not n or sizes[n] < sizes[n - 1]]


def tree_distance(difference: Floats, levels: Sequence[Sequence[int]]) -> Floats:
    """Earth mover's distance where moving across a node at height h of H costs h / H.

    A unit that leaves its node at height h crosses a node twice, once up and once down. So the distance is the sum over heights of half the
    absolute surplus of the nodes, times 1 / H.
    """
    total: Floats = np.abs(difference).sum(axis=1)
    for ancestors in levels[:-1]:
        _, node = np.unique(ancestors, return_inverse=True)
        surplus = np.zeros((len(difference), int(node.max()) + 1))
        np.add.at(surplus.T, node, difference.T)
        total = total + np.abs(surplus).sum(axis=1)
    return total / (2 * len(levels))
