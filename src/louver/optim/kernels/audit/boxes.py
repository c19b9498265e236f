"""All boxes of a joint domain that hold few people and that no witness moves.

A box takes one set of labels of each attribute. Counts and moves of the joint cells are summed over sets, one attribute
after another: the sums of a set are those of its parent, a set with one label fewer, and of the label that it adds.
"""

from __future__ import annotations

import numpy as np

from louver.optim.kernels import inner, kernel

__all__ = ["unmoved_boxes"]

STILL, LARGE = 1, 2


@inner
def _fill(
    start,
    rest,
    n_atoms,
    first,
    last,
    parent,
    atom,
    small,
    counts,
    moves,
    is_open,
    is_still,
    is_large,
    state,
    base,
):
    """Sums of every set of one attribute, for each cell of the later attributes; `start` is where its input begins.

    A label is still if no witness moves any of its cells, and large if each of them holds `small` people or more. A set is
    marked STILL or LARGE if it holds such a label. Where `is_open` is True, large sets are left out. Returns the number of cells summed.
    """
    for a in range(n_atoms):
        is_still[a] = True
        is_large[a] = True
        for j in range(rest):
            if moves[start + a * rest + j] != 0:
                is_still[a] = False
            if counts[start + a * rest + j] < small:
                is_large[a] = False
    n_sets = 0
    for i in range(first, last):
        mark = (STILL if is_still[atom[i]] else 0) | (LARGE if is_large[atom[i]] else 0)
        if parent[i] >= 0:
            mark |= state[first + parent[i]]
        state[i] = mark
        if mark & LARGE and not is_open:
            continue
        n_sets += 1
        here = base + (i - first) * rest
        there = start + atom[i] * rest
        if parent[i] < 0:
            for j in range(rest):
                counts[here + j] = counts[there + j]
                moves[here + j] = moves[there + j]
        else:
            above = base + parent[i] * rest
            for j in range(rest):
                counts[here + j] = counts[above + j] + counts[there + j]
                moves[here + j] = moves[above + j] + moves[there + j]
    return (n_sets + n_atoms) * rest


@kernel
def unmoved_boxes(
    shape,
    offset,
    parent,
    atom,
    is_asked,
    is_every_set,
    rest,
    base,
    counts,
    moves,
    small,
    most_work,
    out,
    flag,
):
    """List boxes with 0 < count < small whose move is 0.

    Parameters
    ----------
    shape : int64 (d,)
        Labels of each attribute.
    offset : int64 (d + 1,)
        Where the sets of each attribute begin in `parent`, `atom` and `is_asked`.
    parent, atom : int64 (sets,)
        The set with one label less (-1 for none), numbered within its attribute and listed before, and the label.
    is_asked : bool (sets,)
        False for sets that are only intermediate steps to others.
    is_every_set : bool (d,)
        Attributes all of whose sets of labels are listed. A set that holds a label without any move is then left out: the set without this
        label, or the label alone, is a box as well.
    rest : int64 (d,)
        Joint cells of the attributes after each one.
    base : int64 (d,)
        Where the sums of each attribute's sets begin in `counts` and `moves`.
    counts : int64, moves : uint64
        The values of the joint cells, followed by room for sums.
    out : int64 (capacity, d)
        The sets of each box found, numbered within their attribute. For the last attribute, -1 - set stands for the set without its labels
        that have no move.

    Returns
    -------
    n_found : int
        Boxes written; one more than the capacity where there was not enough room.
    n_small : int
        Boxes with 0 < count < small that were examined; -1 where more than `most_work` cells would have to be summed.
    """
    d = len(shape)
    last = d - 1
    position = np.zeros(d, dtype=np.int64)
    state = np.zeros(len(parent), dtype=np.int64)
    is_still = np.zeros(shape.max(), dtype=np.bool_)
    is_large = np.zeros(shape.max(), dtype=np.bool_)
    n_found, n_small = 0, 0
    level = 0
    position[0] = -1
    work = _fill(
        0, rest[0], shape[0], offset[0], offset[1], parent, atom, small, counts, moves,
        last == 0 and not is_every_set[0], is_still, is_large, state, base[0],
    )  # fmt: skip
    while level >= 0:
        if flag[0]:
            break
        if work > most_work:
            return 0, -1
        if level == last:
            n_sets = offset[d] - offset[last]
            for i in range(n_sets):
                number = offset[last] + i
                if not is_asked[number]:
                    continue
                if is_every_set[last] and (
                    state[number] & LARGE or (state[number] & STILL and parent[number] >= 0)
                ):
                    continue
                count = counts[base[last] + i]
                move = moves[base[last] + i]
                entry = i
                if count >= small:
                    if move != 0 or is_every_set[last] or not state[number] & STILL:
                        continue
                    # What is left of a known set without its known labels.
                    count = 0
                    step = i
                    start = 0 if last == 0 else base[last - 1] + position[last - 1] * rest[last - 1]
                    while step >= 0:
                        label = atom[offset[last] + step]
                        if moves[start + label] != 0:
                            count += counts[start + label]
                        step = parent[offset[last] + step]
                    entry = -1 - i
                if count <= 0 or count >= small:
                    continue
                n_small += 1
                if move != 0:
                    continue
                if n_found < len(out):
                    for k in range(last):
                        out[n_found, k] = position[k]
                    out[n_found, last] = entry
                n_found += 1
                if n_found > len(out):
                    return n_found, n_small
            level -= 1
            continue
        position[level] += 1
        number = offset[level] + position[level]
        if number == offset[level + 1]:
            level -= 1
            continue
        if not is_asked[number] or state[number] & LARGE:
            continue
        if is_every_set[level] and state[number] & STILL and parent[number] >= 0:
            continue
        start = base[level] + position[level] * rest[level]
        is_empty = True
        for j in range(rest[level]):
            if counts[start + j] > 0:
                is_empty = False
                break
        if is_empty:
            continue
        level += 1
        position[level] = -1
        work += _fill(
            start, rest[level], shape[level], offset[level], offset[level + 1], parent, atom, small, counts, moves,
            level == last and not is_every_set[last], is_still, is_large, state, base[level],
        )  # fmt: skip
    return n_found, n_small
