"""Classes of a few thousand records while they are being improved: which record is where, and what a change would cost.

A class keeps, for every column, the two least and the two greatest codes of its records (and for sets the categories
that occur at all and those that occur twice), so that the loss without one record, with another, or both takes O(m).

Records that are equal in all quasi-identifiers are a *point*. Where size is the only requirement, all classes within one point are united
in its *core*: it loses nothing, and every record beyond the minimum size is free to join a neighbouring class. A record that joins a large
core takes only as many records as it needs into a new class.

Columns that are intervals come in blocks of LANES, filled up with columns that are all zero: loops of fixed length are compiled to vector
code. Conditions and 32-bit results serve the same purpose.

Trusted input: records of a point are numbered without gaps.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from louver.optim.kernels import inner
from louver.optim.kernels.classes.diversity import count_inplace, is_diverse
from louver.optim.kernels.classes.loss import (
    FULL,
    GAPPED,
    KIND,
    N_FIELDS,
    NOTHING,
    SET,
    TABLE,
    TREE,
    WORD_BITS,
    WORD_START,
    WORD_STOP,
    n_bits,
    tree_loss,
)

__all__ = [
    "CORE",
    "FIRST",
    "HEAD",
    "LABEL",
    "LANES",
    "LOSS",
    "NEXT",
    "NOBODY",
    "N_NEAR",
    "N_SPARE",
    "POINT",
    "QUOTA",
    "SIZE",
    "DraftPartition",
    "enter_inplace",
    "has_room",
    "is_allowed",
    "is_core",
    "join_change",
    "join_inplace",
    "leave_inplace",
    "link_inplace",
    "loss_exchanged",
    "loss_without",
    "refresh_inplace",
    "settle_inplace",
    "unite_inplace",
    "unlink_inplace",
]

NOBODY = np.int64(-1)

POINT, LABEL, NEXT, PREVIOUS = 0, 1, 2, 3
"""Of a record: its point, its class, its neighbours in the ring of that class."""
FIRST, CORE, N_NEAR = 0, 1, 2
"""Of a point: its first record, the class that unites the classes within it, how many neighbours are listed."""
HEAD, SIZE, LOSS = 0, 1, 2
"""Of a class: one of its records, how many it has, units lost."""
N_SPARE, QUOTA = 0, 1
"""Of the draft: unused class numbers, and records that may still be left out."""
LEAST, SECOND_LEAST, SECOND_GREATEST, GREATEST = 0, 1, 2, 3
"""Ends of a class in a column."""


LANES = 8


class DraftPartition(NamedTuple):
    """State of a search; n records with a interval columns (a multiple of LANES) and b others, p points, c class numbers.

    Attributes
    ----------
    geometry : int64
        The other columns come first in it.
    limits : float64
        Requirements on the sensitive columns.
    codes : int32 (n, a)
    others : int32 (n, b)
    sensitive : int32 (n, s)
    records : int32 (n, 4)
    points : int32 (p + 1, 3)
    near : int32 (p, l)
        Nearest other points of the draft, nearest first.
    classes : int64 (c, 3)
    ends : int32 (c, 4, a + b)
    words : uint64 (c, 2, w)
        Categories that occur at all, and those that occur at least twice.
    spare : int64 (c,)
        Unused class numbers.
    totals : int64 (2,)
    chosen, target : int64 (h,)
        Workspace for a list of records and the classes they leave or enter.
    counts, gathered : int64 (values,)
        Workspace for counts of sensitive values: of a class that is examined, and of one that is gathered.
    least_size, full : int64
        Minimum number of records in a class; loss, in units, of a record that is left out.
    is_free : bool
        Whether size is the only requirement on a class.
    """

    geometry: NDArray[np.int64]
    limits: NDArray[np.float64]
    codes: NDArray[np.int32]
    others: NDArray[np.int32]
    sensitive: NDArray[np.int32]
    records: NDArray[np.int32]
    points: NDArray[np.int32]
    near: NDArray[np.int32]
    classes: NDArray[np.int64]
    ends: NDArray[np.int32]
    words: NDArray[np.uint64]
    spare: NDArray[np.int64]
    totals: NDArray[np.int64]
    chosen: NDArray[np.int64]
    target: NDArray[np.int64]
    counts: NDArray[np.int64]
    gathered: NDArray[np.int64]
    least_size: np.int64
    full: np.int64
    is_free: np.bool_


@inner
def link_inplace(draft, c, x):
    """Put a record into the ring of a class."""
    records, classes = draft.records, draft.classes
    if classes[c, SIZE] == 0:
        classes[c, HEAD] = x
        records[x, NEXT] = x
        records[x, PREVIOUS] = x
    else:
        head = classes[c, HEAD]
        tail = records[head, PREVIOUS]
        records[tail, NEXT] = x
        records[x, PREVIOUS] = tail
        records[x, NEXT] = head
        records[head, PREVIOUS] = x
    classes[c, SIZE] += 1
    records[x, LABEL] = c


@inner
def unlink_inplace(draft, x):
    """Take a record out of the ring of its class; its label stays until it is put elsewhere."""
    records, classes = draft.records, draft.classes
    c = records[x, LABEL]
    before, after = records[x, PREVIOUS], records[x, NEXT]
    records[before, NEXT] = after
    records[after, PREVIOUS] = before
    if classes[c, HEAD] == x:
        classes[c, HEAD] = after
    classes[c, SIZE] -= 1


@inner
def stretch_inplace(ends, c, j, code):
    """Stretch the ends of a class in column j to a code."""
    least, second = ends[c, LEAST, j], ends[c, SECOND_LEAST, j]
    inside = code if code > least else least
    ends[c, SECOND_LEAST, j] = inside if inside < second else second
    ends[c, LEAST, j] = code if code < least else least
    greatest, second = ends[c, GREATEST, j], ends[c, SECOND_GREATEST, j]
    inside = code if code < greatest else greatest
    ends[c, SECOND_GREATEST, j] = inside if inside > second else second
    ends[c, GREATEST, j] = code if code > greatest else greatest


@inner
def mark_inplace(draft, c, i, code):
    """Stretch the region of a class in the other column i to one more code."""
    geometry, words = draft.geometry, draft.words
    kind = geometry[i * N_FIELDS + KIND]
    if code >= 0:
        stretch_inplace(draft.ends, c, draft.codes.shape[1] + i, code)
    if (kind == SET and code >= 0) or (kind == GAPPED and code < 0):
        bit = np.int64(code) if code > 0 else np.int64(0)
        word = geometry[i * N_FIELDS + WORD_START] + bit // WORD_BITS
        mask = np.uint64(1) << np.uint64(bit % WORD_BITS)
        words[c, 1, word] |= words[c, 0, word] & mask
        words[c, 0, word] |= mask


@inner
def enter_inplace(draft, c, x):
    """Let record x, which is in no ring, enter a class; `settle_inplace` updates the loss later."""
    link_inplace(draft, c, x)
    for block in range(0, draft.codes.shape[1], LANES):
        for lane in range(LANES):
            stretch_inplace(draft.ends, c, block + lane, draft.codes[x, block + lane])
    for i in range(draft.others.shape[1]):
        mark_inplace(draft, c, i, draft.others[x, i])


@inner
def leave_inplace(draft, c, x):
    """Let record x leave class c; `settle_inplace` updates the loss later."""
    unlink_inplace(draft, x)
    codes, ends = draft.codes, draft.ends
    is_tiny = draft.classes[c, SIZE] < 2
    for j in range(codes.shape[1]):
        code = codes[x, j]
        if is_tiny or (
            ends[c, LEAST, j] < ends[c, GREATEST, j]
            and (code <= ends[c, SECOND_LEAST, j] or code >= ends[c, SECOND_GREATEST, j])
        ):
            rescan_inplace(draft, c, j)
    for i in range(draft.others.shape[1]):
        rescan_other_inplace(draft, c, i)


@inner
def clear_ends_inplace(ends, c, j):
    """Ends of a class without records."""
    ends[c, LEAST, j] = NOTHING
    ends[c, SECOND_LEAST, j] = NOTHING
    ends[c, SECOND_GREATEST, j] = -1
    ends[c, GREATEST, j] = -1


@inner
def rescan_inplace(draft, c, j):
    """Recompute the ends of a class in the interval column j from its records."""
    clear_ends_inplace(draft.ends, c, j)
    x = draft.classes[c, HEAD]
    for _ in range(draft.classes[c, SIZE]):
        stretch_inplace(draft.ends, c, j, draft.codes[x, j])
        x = np.int64(draft.records[x, NEXT])


@inner
def rescan_other_inplace(draft, c, i):
    """Recompute the region of a class in the other column i from its records."""
    geometry, words = draft.geometry, draft.words
    clear_ends_inplace(draft.ends, c, draft.codes.shape[1] + i)
    for word in range(geometry[i * N_FIELDS + WORD_START], geometry[i * N_FIELDS + WORD_STOP]):
        words[c, 0, word] = 0
        words[c, 1, word] = 0
    x = draft.classes[c, HEAD]
    for _ in range(draft.classes[c, SIZE]):
        mark_inplace(draft, c, i, draft.others[x, i])
        x = np.int64(draft.records[x, NEXT])


@inner
def refresh_inplace(draft, c):
    """Recompute the region of a class from its records."""
    for j in range(draft.codes.shape[1]):
        rescan_inplace(draft, c, j)
    for i in range(draft.others.shape[1]):
        rescan_other_inplace(draft, c, i)
    draft.classes[c, LOSS] = draft.classes[c, SIZE] * loss_of(draft, c)


@inner
def has_bit(words, c, times, start, code):
    """Whether a category occurs in a class at all (times 0) or at least twice (times 1)."""
    return (words[c, times, start + code // WORD_BITS] >> np.uint64(code % WORD_BITS)) & np.uint64(1) != 0


@inner
def categories_after(draft, c, i, gone, come):
    """Number of categories in a SET column after one code leaves and another enters (negative: none)."""
    geometry, words = draft.geometry, draft.words
    start = geometry[i * N_FIELDS + WORD_START]
    count = np.int64(0)
    for word in range(start, geometry[i * N_FIELDS + WORD_STOP]):
        count += n_bits(words[c, 0, word])
    is_last = gone >= 0 and not has_bit(words, c, 1, start, gone)
    if is_last:
        count -= 1
    if come >= 0 and (not has_bit(words, c, 0, start, come) or (is_last and come == gone)):
        count += 1
    return count


@inner
def others_loss(draft, c, gone, come):
    """Loss per record in the other columns after records leave and enter (-1: none)."""
    geometry, ends, others = draft.geometry, draft.ends, draft.others
    total = np.int64(0)
    for i in range(others.shape[1]):
        j, kind = draft.codes.shape[1] + i, geometry[i * N_FIELDS + KIND]
        out = np.int64(others[gone, i]) if gone >= 0 else np.int64(-2)
        new = np.int64(others[come, i]) if come >= 0 else np.int64(-2)
        low, high = np.int64(ends[c, LEAST, j]), np.int64(ends[c, GREATEST, j])
        if out >= 0 and out == low:
            low = np.int64(ends[c, SECOND_LEAST, j])
        if out >= 0 and out == high:
            high = np.int64(ends[c, SECOND_GREATEST, j])
        if new >= 0:
            low, high = min(low, new), max(high, new)
        if high < 0:
            continue
        if kind == TREE:
            total += tree_loss(geometry, i, low, high)
        elif kind == SET:
            total += geometry[geometry[i * N_FIELDS + TABLE] + categories_after(draft, c, i, out, new)]
        elif kind == GAPPED and (
            new == -1 or draft.words[c, 1 if out == -1 else 0, geometry[i * N_FIELDS + WORD_START]] != 0
        ):
            total += geometry[i * N_FIELDS + FULL]
        else:
            total += high - low
    return total


@inner
def loss_of(draft, c):
    """Loss per record of a class."""
    ends = draft.ends
    total = np.int32(0)
    for block in range(0, draft.codes.shape[1], LANES):
        for lane in range(LANES):
            j = block + lane
            total = np.int32(total + np.int32(ends[c, GREATEST, j] - ends[c, LEAST, j]))
    if draft.others.shape[1] == 0:
        return np.int64(total)
    return np.int64(total) + others_loss(draft, c, NOBODY, NOBODY)


@inner
def loss_with(draft, c, come):
    """Loss per record of a class after a record joins it."""
    codes, ends = draft.codes, draft.ends
    total = np.int32(0)
    for block in range(0, codes.shape[1], LANES):
        for lane in range(LANES):
            j = block + lane
            code, low, high = codes[come, j], ends[c, LEAST, j], ends[c, GREATEST, j]
            low = code if code < low else low
            high = code if code > high else high
            total = np.int32(total + np.int32(high - low))
    if draft.others.shape[1] == 0:
        return np.int64(total)
    return np.int64(total) + others_loss(draft, c, NOBODY, come)


@inner
def loss_without(draft, c, gone):
    """Loss per record of a class after a record leaves it."""
    codes, ends = draft.codes, draft.ends
    total = np.int32(0)
    for block in range(0, codes.shape[1], LANES):
        for lane in range(LANES):
            j = block + lane
            code, low, high = codes[gone, j], ends[c, LEAST, j], ends[c, GREATEST, j]
            low = ends[c, SECOND_LEAST, j] if code == low else low
            high = ends[c, SECOND_GREATEST, j] if code == high else high
            total = np.int32(total + np.int32(high - low))
    if draft.others.shape[1] == 0:
        return np.int64(total)
    return np.int64(total) + others_loss(draft, c, gone, NOBODY)


@inner
def loss_exchanged(draft, c, gone, come):
    """Loss per record of a class after one record leaves and another enters."""
    codes, ends = draft.codes, draft.ends
    total = np.int32(0)
    for block in range(0, codes.shape[1], LANES):
        for lane in range(LANES):
            j = block + lane
            code, new, low, high = codes[gone, j], codes[come, j], ends[c, LEAST, j], ends[c, GREATEST, j]
            low = ends[c, SECOND_LEAST, j] if code == low else low
            high = ends[c, SECOND_GREATEST, j] if code == high else high
            low = new if new < low else low
            high = new if new > high else high
            total = np.int32(total + np.int32(high - low))
    if draft.others.shape[1] == 0:
        return np.int64(total)
    return np.int64(total) + others_loss(draft, c, gone, come)


@inner
def is_allowed(draft, c, gone, come):
    """Whether a class may be published after one record leaves and another enters (-1: none)."""
    size = draft.classes[c, SIZE] - (gone >= 0) + (come >= 0)
    if size < draft.least_size:
        return False
    return draft.is_free or meets_requirements(draft, c, gone, come, size)


@inner
def meets_requirements(draft, c, gone, come, size):
    """Whether a class of `size` meets all requirements other than size, as in `is_allowed`."""
    limits, counts = draft.limits, draft.counts
    counts[:] = 0
    x = draft.classes[c, HEAD]
    for _ in range(draft.classes[c, SIZE]):
        if x != gone:
            count_inplace(limits, counts, draft.sensitive[x], 1)
        x = draft.records[x, NEXT]
    if come >= 0:
        count_inplace(limits, counts, draft.sensitive[come], 1)
    return is_diverse(limits, counts)


@inner
def is_core(draft, c):
    """Whether a class unites the classes within its point."""
    return draft.points[draft.records[draft.classes[c, HEAD], POINT], CORE] == c


@inner
def has_room(draft, c):
    """Whether a class may grow: one of twice the minimum size is better split in two."""
    return not draft.is_free or draft.classes[c, SIZE] < 2 * draft.least_size - 1 or is_core(draft, c)


@inner
def splits_for(draft, c, x):
    """Whether record x would split off a class from class c instead of joining all of it."""
    if draft.classes[c, SIZE] < 2 * draft.least_size - 1 or draft.totals[N_SPARE] == 0:
        return False
    return is_core(draft, c) and draft.records[x, POINT] != draft.records[draft.classes[c, HEAD], POINT]


@inner
def join_change(draft, c, x):
    """Additional units lost if record x joins class c."""
    if splits_for(draft, c, x):
        return draft.least_size * loss_with(draft, c, x)
    return (draft.classes[c, SIZE] + 1) * loss_with(draft, c, x) - draft.classes[c, LOSS]


@inner
def join_inplace(draft, c, x):
    """Let record x, which is in no ring, join class c, or a part split off from it where c is a large core."""
    classes, totals = draft.classes, draft.totals
    if splits_for(draft, c, x):
        totals[N_SPARE] -= 1
        new = draft.spare[totals[N_SPARE]]
        for _ in range(draft.least_size - 1):
            y = classes[c, HEAD]
            unlink_inplace(draft, y)
            link_inplace(draft, new, y)
        link_inplace(draft, new, x)
        refresh_inplace(draft, new)
        return
    if is_core(draft, c):
        p = draft.records[classes[c, HEAD], POINT]
        if draft.records[x, POINT] == p:
            link_inplace(draft, c, x)
            return
        draft.points[p, CORE] = NOBODY
    enter_inplace(draft, c, x)
    classes[c, LOSS] = classes[c, SIZE] * loss_of(draft, c)


@inner
def free_inplace(draft, c):
    """Hand back the number of an empty class."""
    draft.classes[c, LOSS] = 0
    draft.spare[draft.totals[N_SPARE]] = c
    draft.totals[N_SPARE] += 1


@inner
def settle_inplace(draft, c):
    """Update the loss of a class after records left or entered it; unite it with its point's core if it lies within the point."""
    if draft.classes[c, SIZE] == 0:
        free_inplace(draft, c)
    elif not is_core(draft, c):
        draft.classes[c, LOSS] = draft.classes[c, SIZE] * loss_of(draft, c)
        if draft.classes[c, LOSS] == 0 and draft.is_free:
            unite_inplace(draft, c)


@inner
def unite_inplace(draft, c):
    """Make a class within one point its core, or part of it."""
    records, classes = draft.records, draft.classes
    x = classes[c, HEAD]
    p = records[x, POINT]
    for _ in range(classes[c, SIZE]):
        if records[x, POINT] != p:
            return
        x = records[x, NEXT]
    core = draft.points[p, CORE]
    if core < 0:
        draft.points[p, CORE] = c
    elif core != c:
        while classes[c, SIZE] > 0:
            x = classes[c, HEAD]
            unlink_inplace(draft, x)
            link_inplace(draft, core, x)
        free_inplace(draft, c)
