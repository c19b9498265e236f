"""The information loss of classes of records, in whole units, for every kind of quasi-identifier.

A record is a row of codes, one per column. What a class of records has in common is its *region*: for every column
the least and the greatest code, and for columns generalised to sets one bit per category. The loss of a class is its
number of records times the *spread* of its region, the sum of the losses of its columns. Kinds of columns:

    INTERVAL  code = position in loss units (weight included); loss = greatest - least
    OPEN      the same, where code -1 (missing) matches anything
    GAPPED    the same, where -1 is a category of its own: a class that mixes it with numbers has lost everything
    SET       code = category; loss by the number of distinct categories; -1 matches anything
    TREE      code = leaf in depth-first order; loss of the lowest node above all leaves; -1 matches anything

Trusted input: codes within range, the sum of `full` below 2**31.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from louver.optim.kernels import kernel

__all__ = [
    "GAPPED",
    "INTERVAL",
    "NOTHING",
    "OPEN",
    "SET",
    "TREE",
    "Geometry",
    "add_inplace",
    "class_regions",
    "clear_inplace",
    "column_losses",
    "column_spread",
    "contains",
    "labels_loss",
    "merge_inplace",
    "spread",
    "spread_bound",
    "spread_merged",
    "spread_with",
]

INTERVAL, OPEN, GAPPED, SET, TREE = 0, 1, 2, 3, 4
NOTHING = np.int32(2**31 - 1)
"""Least code of a region without records; its greatest is -1."""
WORD_BITS = 64


class Geometry(NamedTuple):
    """How the m columns turn regions into loss.

    Attributes
    ----------
    kind : int64 (m,)
    full : int64 (m,)
        Loss of a value that is not published at all.
    is_open : bool (m,)
        Whether codes -1 that match anything occur in the column.
    word_start : int64 (m + 1,)
        Where the bits of each column start among the words of a region.
    count_start : int64 (m,)
        SET: where its losses by number of categories (0, 1, 2, ...) start in `count_loss`.
    count_loss : int64
    tree_start, tree_levels, tree_leaves : int64 (m,)
        TREE: node above leaf a at level h is `node[start + h * leaves + a]`, and its loss stands at the same place.
    node : int32
    node_loss : int64
    """

    kind: NDArray[np.int64]
    full: NDArray[np.int64]
    is_open: NDArray[np.bool_]
    word_start: NDArray[np.int64]
    count_start: NDArray[np.int64]
    count_loss: NDArray[np.int64]
    tree_start: NDArray[np.int64]
    tree_levels: NDArray[np.int64]
    tree_leaves: NDArray[np.int64]
    node: NDArray[np.int32]
    node_loss: NDArray[np.int64]


@kernel
def clear_inplace(lower, upper, words):
    """The region of no records."""
    lower[:] = NOTHING
    upper[:] = -1
    words[:] = 0


@kernel
def add_inplace(geometry, lower, upper, words, row):
    """Stretch a region to a record."""
    for j in range(row.shape[0]):
        code = row[j]
        kind = geometry.kind[j]
        if code >= 0:
            if code < lower[j]:
                lower[j] = code
            if code > upper[j]:
                upper[j] = code
            if kind == SET:
                words[geometry.word_start[j] + code // WORD_BITS] |= np.uint64(1) << np.uint64(
                    code % WORD_BITS
                )
        elif kind == GAPPED:
            words[geometry.word_start[j]] = 1


@kernel
def merge_inplace(lower, upper, words, other_lower, other_upper, other_words):
    """Stretch a region to another region."""
    for j in range(lower.shape[0]):
        lower[j] = min(lower[j], other_lower[j])
        upper[j] = max(upper[j], other_upper[j])
    for w in range(words.shape[0]):
        words[w] |= other_words[w]


@kernel
def n_bits(word):
    """Number of bits set in a word."""
    word -= (word >> np.uint64(1)) & np.uint64(0x5555555555555555)
    word = (word & np.uint64(0x3333333333333333)) + ((word >> np.uint64(2)) & np.uint64(0x3333333333333333))
    word = (word + (word >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return np.int64((word * np.uint64(0x0101010101010101)) >> np.uint64(56))


@kernel
def tree_loss(geometry, j, first, last):
    """Loss of the lowest node above two leaves (and so above all between them)."""
    leaves = geometry.tree_leaves[j]
    place = geometry.tree_start[j]
    for _ in range(geometry.tree_levels[j] - 1):
        if geometry.node[place + first] == geometry.node[place + last]:
            break
        place += leaves
    return geometry.node_loss[place + first]


@kernel
def column_spread(geometry, j, lower, upper, words):
    """Loss per record in column j, whose codes span `lower` to `upper`; `words` are those of the whole region."""
    if upper < 0:
        return np.int64(0)
    kind = geometry.kind[j]
    if kind == SET:
        count = np.int64(0)
        for w in range(geometry.word_start[j], geometry.word_start[j + 1]):
            count += n_bits(words[w])
        return geometry.count_loss[geometry.count_start[j] + count]
    if kind == TREE:
        return tree_loss(geometry, j, lower, upper)
    if kind == GAPPED and words[geometry.word_start[j]] != 0:
        return geometry.full[j]
    return np.int64(upper) - np.int64(lower)


@kernel
def spread(geometry, lower, upper, words):
    """Loss per record of a region."""
    total = np.int64(0)
    for j in range(lower.shape[0]):
        total += column_spread(geometry, j, lower[j], upper[j], words)
    return total


@kernel
def set_spread_with(geometry, j, words, code):
    """Loss per record in a SET column once a category (or -1) is added."""
    start = geometry.word_start[j]
    count = np.int64(0)
    for w in range(start, geometry.word_start[j + 1]):
        count += n_bits(words[w])
    if code >= 0 and (words[start + code // WORD_BITS] >> np.uint64(code % WORD_BITS)) & np.uint64(1) == 0:
        count += 1
    return geometry.count_loss[geometry.count_start[j] + count]


@kernel
def spread_with(geometry, lower, upper, words, row):
    """Loss per record of a region once a record is added; the region stays as it is."""
    total = np.int64(0)
    for j in range(row.shape[0]):
        code = row[j]
        kind = geometry.kind[j]
        if kind == INTERVAL:
            total += np.int64(max(upper[j], code)) - np.int64(min(lower[j], code))
        elif kind == SET:
            total += set_spread_with(geometry, j, words, code)
        elif kind == GAPPED and code < 0:
            total += geometry.full[j] if upper[j] >= 0 else 0
        elif code < 0:
            total += column_spread(geometry, j, lower[j], upper[j], words)
        else:
            total += column_spread(geometry, j, min(lower[j], code), max(upper[j], code), words)
    return total


@kernel
def spread_merged(geometry, lower, upper, words, other_lower, other_upper, other_words):
    """Loss per record of the union of two regions."""
    total = np.int64(0)
    for j in range(lower.shape[0]):
        low, high = min(lower[j], other_lower[j]), max(upper[j], other_upper[j])
        kind = geometry.kind[j]
        if kind == SET:
            count = np.int64(0)
            for w in range(geometry.word_start[j], geometry.word_start[j + 1]):
                count += n_bits(words[w] | other_words[w])
            total += geometry.count_loss[geometry.count_start[j] + count]
        elif kind == GAPPED and high >= 0 and other_words[geometry.word_start[j]] != 0:
            total += geometry.full[j]
        else:
            total += column_spread(geometry, j, low, high, words)
    return total


@kernel
def spread_bound(geometry, lower, upper, words, block_lower, block_upper, block_words):
    """A lower bound on `spread_with` for every record inside a block's region."""
    total = np.int64(0)
    for j in range(lower.shape[0]):
        kind = geometry.kind[j]
        if kind == INTERVAL:
            total += np.int64(max(upper[j], block_lower[j])) - np.int64(min(lower[j], block_upper[j]))
        elif kind == SET:
            count = np.int64(0)
            is_shared = geometry.is_open[j]
            for w in range(geometry.word_start[j], geometry.word_start[j + 1]):
                count += n_bits(words[w])
                is_shared |= (words[w] & block_words[w]) != 0
            total += geometry.count_loss[geometry.count_start[j] + count + (0 if is_shared else 1)]
        elif kind == TREE and not geometry.is_open[j]:
            # Of the leaves outside the region the nearest has the lowest common node.
            first, last = min(lower[j], block_upper[j]), max(upper[j], block_lower[j])
            total += tree_loss(geometry, j, first, last)
        else:
            total += column_spread(geometry, j, lower[j], upper[j], words)
    return total


@kernel
def contains(geometry, lower, upper, words, row):
    """Whether a record (of a population) fits what would be published of a region."""
    for j in range(row.shape[0]):
        code = row[j]
        kind = geometry.kind[j]
        if code < 0:
            continue
        if kind == SET:
            if (words[geometry.word_start[j] + code // WORD_BITS] >> np.uint64(code % WORD_BITS)) & np.uint64(
                1
            ) == 0:
                return False
        elif kind == TREE:
            if upper[j] < 0:
                return False
            if tree_loss(geometry, j, min(lower[j], code), max(upper[j], code)) != tree_loss(
                geometry, j, lower[j], upper[j]
            ):
                return False
        elif code < lower[j] or code > upper[j]:
            return False
    return True


@kernel
def class_regions(geometry, codes, labels, n_classes):
    """Regions (C, m), (C, m), (C, words) and sizes (C,) of all classes; label -1 is left out."""
    m = codes.shape[1]
    lower = np.empty((n_classes, m), np.int32)
    upper = np.empty((n_classes, m), np.int32)
    words = np.empty((n_classes, geometry.word_start[m]), np.uint64)
    sizes = np.zeros(n_classes, np.int64)
    for c in range(n_classes):
        clear_inplace(lower[c], upper[c], words[c])
    for i in range(codes.shape[0]):
        c = labels[i]
        if c >= 0:
            sizes[c] += 1
            add_inplace(geometry, lower[c], upper[c], words[c], codes[i])
    return lower, upper, words, sizes


@kernel
def labels_loss(geometry, codes, labels, n_classes):
    """Total loss in units: classes by size times spread, suppressed records (label -1) in full."""
    lower, upper, words, sizes = class_regions(geometry, codes, labels, n_classes)
    total = (codes.shape[0] - sizes.sum()) * geometry.full.sum()
    for c in range(n_classes):
        if sizes[c] > 0:
            total += sizes[c] * spread(geometry, lower[c], upper[c], words[c])
    return total


@kernel
def column_losses(geometry, codes, labels, n_classes):
    """Total loss in units of each column."""
    lower, upper, words, sizes = class_regions(geometry, codes, labels, n_classes)
    n_suppressed = codes.shape[0] - sizes.sum()
    losses = n_suppressed * geometry.full
    for c in range(n_classes):
        for j in range(codes.shape[1]):
            losses[j] += sizes[c] * column_spread(geometry, j, lower[c, j], upper[c, j], words[c])
    return losses
