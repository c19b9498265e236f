"""The information loss of classes of records, in whole units, for every kind of quasi-identifier.

A record is a row of codes, one per column. The *region* of a class of records consists of the least and the greatest code of every column,
and for columns generalised to sets one bit per category. The loss of a class is its number of records times the *spread* of its region, the
sum of the losses of its columns. Kinds of columns:

    INTERVAL  code = position in loss units (weight included); loss = greatest - least
    OPEN      the same, where code -1 (missing) matches anything
    GAPPED    the same, where -1 is a category of its own: a class that mixes it with numbers has lost everything
    SET       code = category; loss by the number of distinct categories; -1 matches anything
    TREE      code = leaf in depth-first order; loss of the lowest node above all leaves; -1 matches anything

Trusted input: codes within range, full losses that add up to less than 2**31.
"""

from __future__ import annotations

import numpy as np

from louver.optim.kernels import kernel

__all__ = [
    "GAPPED",
    "INTERVAL",
    "NOTHING",
    "OPEN",
    "SET",
    "TREE",
    "add_inplace",
    "add_widths_inplace",
    "class_losses",
    "class_regions",
    "clear_inplace",
    "column_spread",
    "contains",
    "count_matches",
    "full_loss",
    "has_other_kinds",
    "labels_loss",
    "merge_inplace",
    "n_words",
    "spread",
    "spread_bound",
    "spread_merged",
    "spread_with",
]

INTERVAL, OPEN, GAPPED, SET, TREE = 0, 1, 2, 3, 4
NOTHING = np.int32(2**31 - 1)
"""Least code of a region without records; its greatest is -1."""
WORD_BITS = 64


# The geometry is one array of integers: N_FIELDS of them for each column, then the tables they point to. It
# is a single array because passing a tuple of ten costs twenty times as much as computing a loss.
N_FIELDS = 8
KIND = 0
FULL = 1
"""Loss of a value that is not published at all."""
IS_OPEN = 2
"""Whether the code -1, which matches anything, occurs."""
WORD_START, WORD_STOP = 3, 4
"""Where the bits of the column lie among the words of a region."""
TABLE = 5
"""SET: where its losses by number of categories start. TREE: where its nodes start: that above leaf a at level h
is at h * leaves + a from there, and its loss levels * leaves further on."""
LEVELS, LEAVES = 6, 7


@kernel
def n_words(geometry, m):
    """Words of a region over m columns."""
    return geometry[(m - 1) * N_FIELDS + WORD_STOP]


@kernel
def full_loss(geometry, m):
    """Loss of a record that is not published."""
    total = np.int64(0)
    for j in range(m):
        total += geometry[j * N_FIELDS + FULL]
    return total


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
        kind = geometry[j * N_FIELDS + KIND]
        if code >= 0:
            if code < lower[j]:
                lower[j] = code
            if code > upper[j]:
                upper[j] = code
            if kind == SET:
                words[geometry[j * N_FIELDS + WORD_START] + code // WORD_BITS] |= np.uint64(1) << np.uint64(
                    code % WORD_BITS
                )
        elif kind == GAPPED:
            words[geometry[j * N_FIELDS + WORD_START]] = 1


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
    leaves = geometry[j * N_FIELDS + LEAVES]
    levels = geometry[j * N_FIELDS + LEVELS]
    place = geometry[j * N_FIELDS + TABLE]
    to_loss = levels * leaves
    for _ in range(levels - 1):
        if geometry[place + first] == geometry[place + last]:
            break
        place += leaves
    return geometry[place + to_loss + first]


@kernel
def column_spread(geometry, j, lower, upper, words):
    """Loss per record in column j, whose codes span `lower` to `upper`; `words` are those of the whole region."""
    if upper < 0:
        return np.int64(0)
    kind = geometry[j * N_FIELDS + KIND]
    if kind == SET:
        count = np.int64(0)
        for w in range(geometry[j * N_FIELDS + WORD_START], geometry[j * N_FIELDS + WORD_STOP]):
            count += n_bits(words[w])
        return geometry[geometry[j * N_FIELDS + TABLE] + count]
    if kind == TREE:
        return tree_loss(geometry, j, lower, upper)
    if kind == GAPPED and words[geometry[j * N_FIELDS + WORD_START]] != 0:
        return geometry[j * N_FIELDS + FULL]
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
    start = geometry[j * N_FIELDS + WORD_START]
    count = np.int64(0)
    for w in range(start, geometry[j * N_FIELDS + WORD_STOP]):
        count += n_bits(words[w])
    if code >= 0 and (words[start + code // WORD_BITS] >> np.uint64(code % WORD_BITS)) & np.uint64(1) == 0:
        count += 1
    return geometry[geometry[j * N_FIELDS + TABLE] + count]


@kernel
def spread_with(geometry, lower, upper, words, row):
    """Loss per record of a region once a record is added; the region stays as it is."""
    total = np.int64(0)
    for j in range(row.shape[0]):
        code = row[j]
        kind = geometry[j * N_FIELDS + KIND]
        if kind == INTERVAL:
            high = code if code > upper[j] else upper[j]
            low = code if code < lower[j] else lower[j]
            total += np.int64(high) - np.int64(low)
        elif kind == SET:
            total += set_spread_with(geometry, j, words, code)
        elif kind == GAPPED and code < 0:
            total += geometry[j * N_FIELDS + FULL] if upper[j] >= 0 else 0
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
        kind = geometry[j * N_FIELDS + KIND]
        if kind == SET:
            count = np.int64(0)
            for w in range(geometry[j * N_FIELDS + WORD_START], geometry[j * N_FIELDS + WORD_STOP]):
                count += n_bits(words[w] | other_words[w])
            total += geometry[geometry[j * N_FIELDS + TABLE] + count]
        elif kind == GAPPED and high >= 0 and other_words[geometry[j * N_FIELDS + WORD_START]] != 0:
            total += geometry[j * N_FIELDS + FULL]
        else:
            total += column_spread(geometry, j, low, high, words)
    return total


@kernel
def spread_bound(geometry, lower, upper, words, block_lower, block_upper, block_words):
    """A lower bound on `spread_with` for every record inside a block's region."""
    total = np.int64(0)
    for j in range(lower.shape[0]):
        kind = geometry[j * N_FIELDS + KIND]
        if kind == INTERVAL:
            total += np.int64(max(upper[j], block_lower[j])) - np.int64(min(lower[j], block_upper[j]))
        elif kind == SET:
            count = np.int64(0)
            is_shared = geometry[j * N_FIELDS + IS_OPEN] != 0
            for w in range(geometry[j * N_FIELDS + WORD_START], geometry[j * N_FIELDS + WORD_STOP]):
                count += n_bits(words[w])
                is_shared |= (words[w] & block_words[w]) != 0
            total += geometry[geometry[j * N_FIELDS + TABLE] + count + (0 if is_shared else 1)]
        elif kind == TREE and geometry[j * N_FIELDS + IS_OPEN] == 0:
            # Of the leaves outside the region the nearest has the lowest common node.
            first, last = min(lower[j], block_upper[j]), max(upper[j], block_lower[j])
            total += tree_loss(geometry, j, first, last)
        else:
            total += column_spread(geometry, j, lower[j], upper[j], words)
    return total


@kernel
def add_widths_inplace(total, tops, bottoms, n, low, high):
    """Add to each total the width of an interval stretched up to `tops` and down to `bottoms`.

    Written out with 32-bit results so that it compiles to vector code, twenty times as fast as min and max.
    """
    for t in range(n):
        top, bottom = tops[t], bottoms[t]
        top = high if high > top else top
        bottom = low if low < bottom else bottom
        total[t] = np.int32(total[t] + np.int32(top - bottom))


@kernel
def has_other_kinds(geometry, m):
    """Whether any column is not a plain interval."""
    n_other = 0
    for j in range(m):
        n_other += geometry[j * N_FIELDS + KIND] != INTERVAL
    return n_other > 0


@kernel
def contains(geometry, lower, upper, words, row):
    """Whether a record of a population matches what would be published for a region."""
    for j in range(row.shape[0]):
        code = row[j]
        kind = geometry[j * N_FIELDS + KIND]
        if kind == GAPPED and code < 0:
            if words[geometry[j * N_FIELDS + WORD_START]] == 0:
                return False
        elif code < 0 or (upper[j] < 0 and geometry[j * N_FIELDS + IS_OPEN] != 0):
            continue  # a value that is missing in the population, or in the whole class, matches anything
        elif kind == SET:
            word = words[geometry[j * N_FIELDS + WORD_START] + code // WORD_BITS]
            if (word >> np.uint64(code % WORD_BITS)) & np.uint64(1) == 0:
                return False
        elif kind == TREE:
            stretched = tree_loss(geometry, j, min(lower[j], code), max(upper[j], code))
            if stretched != tree_loss(geometry, j, lower[j], upper[j]):
                return False
        elif code < lower[j] or code > upper[j]:
            return False
    return True


@kernel
def count_matches(geometry, lower, upper, words, sizes, rows, multiplicity, key):
    """How many rows (by multiplicity) fit each region, and how many records (by size) of all regions each row fits.

    Rows ascend in column `key`, which has intervals without missing values, unless that is -1.
    """
    by_region = np.zeros(lower.shape[0], np.int64)
    by_row = np.zeros(rows.shape[0], np.int64)
    for c in range(lower.shape[0]):
        first, last = 0, rows.shape[0]
        if key >= 0:
            first = np.searchsorted(rows[:, key], lower[c, key], side="left")
            last = np.searchsorted(rows[:, key], upper[c, key], side="right")
        for p in range(first, last):
            if contains(geometry, lower[c], upper[c], words[c], rows[p]):
                by_region[c] += multiplicity[p]
                by_row[p] += sizes[c]
    return by_region, by_row


@kernel
def class_regions(geometry, codes, labels, n_classes):
    """Regions (C, m), (C, m), (C, words) and sizes (C,) of all classes; label -1 is left out."""
    m = codes.shape[1]
    lower = np.empty((n_classes, m), np.int32)
    upper = np.empty((n_classes, m), np.int32)
    words = np.empty((n_classes, n_words(geometry, m)), np.uint64)
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
def class_losses(geometry, codes, labels, n_classes):
    """Loss in units of each class, size times spread; 0 for a class without records."""
    lower, upper, words, sizes = class_regions(geometry, codes, labels, n_classes)
    losses = np.zeros(n_classes, np.int64)
    for c in range(n_classes):
        if sizes[c] > 0:
            losses[c] = sizes[c] * spread(geometry, lower[c], upper[c], words[c])
    return losses


def labels_loss(geometry, codes, labels, n_classes):
    """Total loss in units: that of all classes, plus the full loss of suppressed records (label -1)."""
    full = geometry[FULL : codes.shape[1] * N_FIELDS : N_FIELDS].sum()
    return class_losses(geometry, codes, labels, n_classes).sum() + (labels < 0).sum() * full
