"""A tree over records that finds the record by which a class grows least, and the one farthest from a record.

Records are cut by the widest column into leaves of LEAF records; ARITY neighbouring leaves, and then groups of
groups, share a node. A node stores the region of its records, how many of them are left and their lowest number.

The search is best-first with stale keys: as a class grows, the cost of adding a record only rises, so a key computed for a smaller class
remains a lower bound, and the node on top of the heap is the answer once its key is fresh. Keys are (spread, record number) in one integer:
of equal spreads the record with the least number wins, exactly as in a plain scan over all records.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from louver.optim.kernels import kernel
from louver.optim.kernels.classes.loss import (
    FULL,
    INTERVAL,
    KIND,
    N_FIELDS,
    SET,
    TABLE,
    TREE,
    add_inplace,
    add_widths_inplace,
    clear_inplace,
    has_other_kinds,
    merge_inplace,
    n_words,
    spread_bound,
    spread_with,
    tree_loss,
)

__all__ = [
    "NUMBER_BITS",
    "NUMBER_MASK",
    "NumberedRecords",
    "build_tree",
    "column_width",
    "farthest",
    "grow_inplace",
    "nearest",
    "new_search",
    "remove_inplace",
    "select_inplace",
]

LEAF = 32
ARITY = 16
NUMBER_BITS = 31
NUMBER_MASK = 2**NUMBER_BITS - 1
NO_KEY = np.int64(2**63 - 1)
MAX_LEAVES = 64
"""Number of leaves searched for the neighbours of a record."""


class NumberedRecords(NamedTuple):
    """The tree; nodes 0 to n_leaves - 1 are the leaves, the top nodes come last.

    Attributes
    ----------
    codes : int32 (n, m)
        Codes of all records, including those not in the tree.
    record : int32 (leaves, LEAF)
        Records of each leaf, the first `left` of them still there.
    data : int32 (leaves, m, LEAF)
        Their codes, by column.
    left, first : int64 (nodes,)
        Number of records left below a node, and their lowest record number.
    lower, upper : int32 (m, nodes)
    words : uint64 (nodes, words)
    parent, child : int64 (nodes,)
        Parent (-1 at the top), and first of at most ARITY children (-1 for a leaf).
    place : int64 (n,)
        Leaf of each record.
    n_leaves, top : int64
        Number of leaves, and the first top node.
    """

    codes: NDArray[np.int32]
    record: NDArray[np.int32]
    data: NDArray[np.int32]
    left: NDArray[np.int64]
    first: NDArray[np.int64]
    lower: NDArray[np.int32]
    upper: NDArray[np.int32]
    words: NDArray[np.uint64]
    parent: NDArray[np.int64]
    child: NDArray[np.int64]
    place: NDArray[np.int64]
    n_leaves: int
    top: int


class Search(NamedTuple):
    """Workspace of a search.

    Attributes
    ----------
    heap : int64 (nodes + 2, 2)
        Keys and nodes from row 1 on; `heap[0, 0]` is their number.
    total : int32 (max(LEAF, ARITY),)
        Sums per child or record.
    bound : int32 (leaves,)
    """

    heap: NDArray[np.int64]
    total: NDArray[np.int32]
    bound: NDArray[np.int32]


@kernel
def new_search(tree):
    """Workspace for searches in a tree."""
    return Search(
        np.zeros((tree.left.shape[0] + 2, 2), np.int64),
        np.empty(max(LEAF, ARITY), np.int32),
        np.empty(tree.n_leaves, np.int32),
    )


@kernel
def select_inplace(order, values, first, last, middle):
    """Arrange order[first:last] so that values left of `middle` are no greater than those right of it."""
    left, right = first, last - 1
    while left < right:
        pivot = values[order[(left + right) // 2]]
        i, j = left, right
        # Everything left of i is <= pivot, everything right of j is >= pivot.
        while i <= j:
            while values[order[i]] < pivot:
                i += 1
            while values[order[j]] > pivot:
                j -= 1
            if i <= j:
                order[i], order[j] = order[j], order[i]
                i += 1
                j -= 1
        if middle <= j:
            right = j
        elif middle >= i:
            left = i
        else:
            return


@kernel
def column_width(geometry, codes, order, first, last, j):
    """Loss of records order[first:last] in column j, by least and greatest code; -1 where these are equal."""
    low = high = codes[order[first], j]
    for t in range(first, last):
        low = min(low, codes[order[t], j])
        high = max(high, codes[order[t], j])
    if high <= low:
        return np.int64(-1)
    if geometry[j * N_FIELDS + KIND] == SET:
        return geometry[j * N_FIELDS + FULL] // 2
    if geometry[j * N_FIELDS + KIND] == TREE:
        return tree_loss(geometry, j, max(low, 0), high)
    return np.int64(high) - low


@kernel
def widest_column(geometry, codes, order, first, last):
    """The column in which records order[first:last] lose most, by least and greatest code."""
    best = np.int64(-1)
    widest = 0
    for j in range(codes.shape[1]):
        width = column_width(geometry, codes, order, first, last, j)
        if width > best:
            best = width
            widest = j
    return widest


@kernel
def leaf_order(geometry, codes, members):
    """The members, ordered so that each run of LEAF records lies close together."""
    order = members.copy()
    n = order.shape[0]
    stack = np.empty((128, 2), np.int64)
    stack[0, 0], stack[0, 1] = 0, n
    depth = 1
    while depth > 0:
        depth -= 1
        first, last = stack[depth, 0], stack[depth, 1]
        if last - first <= LEAF:
            continue
        grain = LEAF * ARITY if last - first > 2 * LEAF * ARITY else LEAF
        half = max(grain, (last - first) // 2 // grain * grain)
        j = widest_column(geometry, codes, order, first, last)
        select_inplace(order, codes[:, j], first, last, first + half)
        stack[depth, 0], stack[depth, 1] = first, first + half
        stack[depth + 1, 0], stack[depth + 1, 1] = first + half, last
        depth += 2
    return order


@kernel
def count_nodes(n_leaves):
    """Number of nodes in a tree with `n_leaves` leaves, and where the top level starts."""
    total, level, start = n_leaves, n_leaves, 0
    while level > ARITY:
        start = total
        level = (level + ARITY - 1) // ARITY
        total += level
    return total, start


@kernel
def build_tree(geometry, codes, members):
    """A tree over some records, each with its number (its row in `codes`)."""
    m = codes.shape[1]
    n = members.shape[0]
    order = leaf_order(geometry, codes, members)
    n_leaves = max(1, (n + LEAF - 1) // LEAF)
    n_nodes, top = count_nodes(n_leaves)
    record = np.full((n_leaves, LEAF), -1, np.int32)
    data = np.zeros((n_leaves, m, LEAF), np.int32)
    count = np.zeros(n_nodes, np.int64)
    first = np.full(n_nodes, NUMBER_MASK, np.int64)
    lower = np.empty((n_nodes, m), np.int32)
    upper = np.empty((n_nodes, m), np.int32)
    words = np.empty((n_nodes, n_words(geometry, m)), np.uint64)
    parent = np.full(n_nodes, -1, np.int64)
    child = np.full(n_nodes, -1, np.int64)
    place = np.full(codes.shape[0], -1, np.int64)
    for node in range(n_nodes):
        clear_inplace(lower[node], upper[node], words[node])
    for t in range(n):
        i, leaf = order[t], t // LEAF
        place[i] = leaf
        record[leaf, t % LEAF] = i
        for j in range(m):
            data[leaf, j, t % LEAF] = codes[i, j]
        count[leaf] += 1
        first[leaf] = min(first[leaf], i)
        add_inplace(geometry, lower[leaf], upper[leaf], words[leaf], codes[i])
    start, stop = 0, n_leaves
    while stop - start > ARITY:
        for node in range(start, stop):
            above = stop + (node - start) // ARITY
            parent[node] = above
            if child[above] < 0:
                child[above] = node
            count[above] += count[node]
            first[above] = min(first[above], first[node])
            merge_inplace(lower[above], upper[above], words[above], lower[node], upper[node], words[node])
        start, stop = stop, stop + (stop - start + ARITY - 1) // ARITY
    return NumberedRecords(
        codes,
        record,
        data,
        count,
        first,
        np.ascontiguousarray(lower.T),
        np.ascontiguousarray(upper.T),
        words,
        parent,
        child,
        place,
        n_leaves,
        top,
    )


@kernel
def remove_inplace(tree, i):
    """Remove a record; the regions are left unchanged and so remain valid bounds."""
    leaf = tree.place[i]
    tree.place[i] = -1
    last = tree.left[leaf] - 1
    for t in range(last + 1):
        if tree.record[leaf, t] == i:
            tree.record[leaf, t] = tree.record[leaf, last]
            for j in range(tree.data.shape[1]):
                tree.data[leaf, j, t] = tree.data[leaf, j, last]
            break
    if tree.first[leaf] == i:
        least = np.int64(NUMBER_MASK)
        for t in range(last):
            least = min(least, np.int64(tree.record[leaf, t]))
        tree.first[leaf] = least
    node = leaf
    while node >= 0:
        tree.left[node] -= 1
        above = tree.parent[node]
        if above >= 0 and tree.first[above] == i:
            least = np.int64(NUMBER_MASK)
            for c in range(tree.child[above], stop_of(tree.parent, tree.child, above)):
                least = min(least, tree.first[c])
            tree.first[above] = least
        node = above


@kernel
def stop_of(parent, child, node):
    """One past the last child of a node."""
    start = child[node]
    stop = start
    while stop < parent.shape[0] and stop < start + ARITY and parent[stop] == node:
        stop += 1
    return stop


@kernel
def push_inplace(heap, key, node):
    at = heap[0, 0] + 1
    heap[0, 0] = at
    while at > 1:
        above = at // 2
        if heap[above, 0] <= key:
            break
        heap[at, 0], heap[at, 1] = heap[above, 0], heap[above, 1]
        at = above
    heap[at, 0], heap[at, 1] = key, node


@kernel
def pop_inplace(heap):
    """Node with the least key."""
    popped = heap[1, 1]
    size = heap[0, 0]
    key, node = heap[size, 0], heap[size, 1]
    size -= 1
    heap[0, 0] = size
    at = 1
    while True:
        below = 2 * at
        if below > size:
            break
        if below < size and heap[below + 1, 0] < heap[below, 0]:
            below += 1
        if heap[below, 0] >= key:
            break
        heap[at, 0], heap[at, 1] = heap[below, 0], heap[below, 1]
        at = below
    heap[at, 0], heap[at, 1] = key, node
    return popped


@kernel
def push_nodes_inplace(tree, geometry, search, is_mixed, start, stop, lower, upper, words):
    """Put nodes start to stop - 1 on the heap, keyed by the least cost of growing into them."""
    heap, total = search.heap, search.total
    total[: stop - start] = 0
    for j in range(lower.shape[0]):
        if geometry[j * N_FIELDS + KIND] == INTERVAL:
            least, greatest = tree.lower[j, start:stop], tree.upper[j, start:stop]
            add_widths_inplace(total, least, greatest, stop - start, lower[j], upper[j])
    for c in range(start, stop):
        if tree.left[c] > 0:
            value = np.int64(total[c - start])
            if is_mixed:
                value = spread_bound(
                    geometry, lower, upper, words, tree.lower[:, c], tree.upper[:, c], tree.words[c]
                )
            push_inplace(heap, (value << NUMBER_BITS) | tree.first[c], c)


@kernel
def leaf_totals_inplace(total, geometry, is_mixed, codes, record, data, count, lower, upper, words):
    """Spread of a region with each of the `count` records of a leaf."""
    if is_mixed:
        for t in range(count):
            total[t] = spread_with(geometry, lower, upper, words, codes[record[t]])
        return
    total[:LEAF] = 0
    for j in range(lower.shape[0]):
        # The whole leaf, including removed records: a loop of fixed length is vectorised.
        add_widths_inplace(total, data[j], data[j], LEAF, lower[j], upper[j])


@kernel
def leaf_keys(total, record, count):
    """Best record of a leaf, its key, and the next best key."""
    best, key, next_key = np.int64(-1), NO_KEY, NO_KEY
    for t in range(count):
        this = (np.int64(total[t]) << NUMBER_BITS) | np.int64(record[t])
        if this < key:
            best, key, next_key = np.int64(record[t]), this, key
        elif this < next_key:
            next_key = this
    return best, key, next_key


@kernel
def grow_inplace(tree, geometry, search, lower, upper, words, members, size, target):
    """Grow the class members[:size] with this region to `target` records, always by the cheapest; these are removed from the tree."""
    heap, total = search.heap, search.total
    codes, record, data, count, child = tree.codes, tree.record, tree.data, tree.left, tree.child
    is_mixed = has_other_kinds(geometry, codes.shape[1])
    heap[0, 0] = 0
    push_nodes_inplace(tree, geometry, search, is_mixed, tree.top, count.shape[0], lower, upper, words)
    while size < target:
        node = pop_inplace(heap)
        if child[node] >= 0:
            stop = stop_of(tree.parent, child, node)
            push_nodes_inplace(tree, geometry, search, is_mixed, child[node], stop, lower, upper, words)
            continue
        leaf_totals_inplace(
            total, geometry, is_mixed, codes, record[node], data[node], count[node], lower, upper, words
        )
        best, key, next_key = leaf_keys(total, record[node], count[node])
        if heap[0, 0] > 0 and heap[1, 0] < key:
            push_inplace(heap, key, node)
            continue
        members[size] = best
        size += 1
        add_inplace(geometry, lower, upper, words, codes[best])
        remove_inplace(tree, best)
        if next_key < NO_KEY:
            push_inplace(heap, next_key, node)


@kernel
def nearest(tree, geometry, first, last, n_wanted):
    """Neighbours of records first to last - 1, nearest first, as keys (distance, number) in one integer.

    The distance between two records is the loss per record of the class that consists of them. A search ends after MAX_LEAVES leaves, so
    that with many columns, where little can be pruned, not all pairs are compared. Returns the keys (NO_KEY where there are no more) and
    for each record its reach: records not listed are at least that far away.
    """
    m = tree.codes.shape[1]
    lower, upper = np.empty(m, np.int32), np.empty(m, np.int32)
    words = np.empty(n_words(geometry, m), np.uint64)
    search = new_search(tree)
    keys = np.full((last - first, n_wanted), NO_KEY, np.int64)
    reach = np.empty(last - first, np.int64)
    for i in range(first, last):
        clear_inplace(lower, upper, words)
        add_inplace(geometry, lower, upper, words, tree.codes[i])
        reach[i - first] = nearest_inplace(tree, geometry, search, i, lower, upper, words, keys[i - first])
    return keys, reach


@kernel
def nearest_inplace(tree, geometry, search, i, lower, upper, words, keys):
    """Neighbours of record i, whose region is given, as in `nearest`; returns its reach."""
    heap, total, worst = search.heap, search.total, keys.shape[0] - 1
    codes, record, data, count, child = tree.codes, tree.record, tree.data, tree.left, tree.child
    is_mixed = has_other_kinds(geometry, codes.shape[1])
    heap[0, 0] = 0
    push_nodes_inplace(tree, geometry, search, is_mixed, tree.top, count.shape[0], lower, upper, words)
    n_leaves = 0
    while heap[0, 0] > 0 and heap[1, 0] < keys[worst]:
        if n_leaves == MAX_LEAVES:
            return heap[1, 0] >> NUMBER_BITS
        node = pop_inplace(heap)
        if child[node] >= 0:
            stop = stop_of(tree.parent, child, node)
            push_nodes_inplace(tree, geometry, search, is_mixed, child[node], stop, lower, upper, words)
            continue
        leaf_totals_inplace(
            total, geometry, is_mixed, codes, record[node], data[node], count[node], lower, upper, words
        )
        n_leaves += 1
        for t in range(count[node]):
            key = (np.int64(total[t]) << NUMBER_BITS) | np.int64(record[node, t])
            if key >= keys[worst] or record[node, t] == i:
                continue
            at = worst
            while at > 0 and keys[at - 1] > key:
                keys[at] = keys[at - 1]
                at -= 1
            keys[at] = key
    return keys[worst] >> NUMBER_BITS


@kernel
def farthest(tree, geometry, search, row, lower, upper, words):
    """Record with the greatest distance (loss per record together with `row`); ties go to the lowest number.

    `lower`, `upper`, `words` are workspace for a region.
    """
    clear_inplace(lower, upper, words)
    add_inplace(geometry, lower, upper, words, row)
    farthest_bounds_inplace(tree, geometry, search.bound, row)
    is_mixed = has_other_kinds(geometry, row.shape[0])
    codes, record, data, count, total = tree.codes, tree.record, tree.data, tree.left, search.total
    best, best_key = np.int64(-1), NO_KEY
    start = np.argmax(search.bound)
    for turn in range(-1, tree.n_leaves):
        leaf = start if turn < 0 else turn
        if turn == start or (-np.int64(search.bound[leaf]) << NUMBER_BITS) | tree.first[leaf] > best_key:
            continue
        leaf_totals_inplace(
            total, geometry, is_mixed, codes, record[leaf], data[leaf], count[leaf], lower, upper, words
        )
        for t in range(count[leaf]):
            i = np.int64(record[leaf, t])
            key = (-np.int64(total[t]) << NUMBER_BITS) | i
            if key < best_key:
                best, best_key = i, key
    return best


@kernel
def farthest_bounds_inplace(tree, geometry, bound, row):
    """For every leaf, the largest possible distance of its records from `row`; -1 where none is left."""
    bound[:] = 0
    n_leaves = tree.n_leaves
    for j in range(row.shape[0]):
        code, kind = row[j], geometry[j * N_FIELDS + KIND]
        if kind == INTERVAL:
            add_widths_inplace(bound, tree.upper[j], tree.lower[j], n_leaves, code, code)
        elif kind == SET:
            bound += geometry[geometry[j * N_FIELDS + TABLE] + 2]
        else:
            bound += geometry[j * N_FIELDS + FULL]
    for leaf in range(n_leaves):
        if tree.left[leaf] == 0:
            bound[leaf] = -1
