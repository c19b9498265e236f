"""Greedy Search (Algorithm 2) and k-member clustering over the tree of records."""

from __future__ import annotations

import numpy as np

from louver.optim.kernels import kernel
from louver.optim.kernels.classes.loss import (
    add_inplace,
    class_regions,
    clear_inplace,
    n_words,
    spread,
    spread_with,
)
from louver.optim.kernels.classes.record_tree import (
    build_tree,
    farthest,
    grow_inplace,
    new_search,
    remove_inplace,
)

__all__ = ["assign_leftovers_inplace", "greedy_labels"]


@kernel
def greedy_labels(geometry, codes, k, farthest_first, stop):
    """Classes of k records, each grown from a seed by the cheapest record; label -1 for the remaining records, fewer than k.

    Once `stop` is set no further class is grown, and label -1 marks all records without one.
    Seeds are the first record left (Greedy Search), or the one farthest from the record taken last (k-member).
    """
    n, m = codes.shape
    labels = np.full(n, -1, np.int64)
    lower, upper = np.empty(m, np.int32), np.empty(m, np.int32)
    words = np.empty(n_words(geometry, m), np.uint64)
    members = np.empty(k, np.int64)
    tree = build_tree(geometry, codes, np.arange(n))
    search = new_search(tree)
    n_left, n_built, n_classes, first = n, n, 0, 0
    members[k - 1] = 0
    while n_left >= k and stop[0] == 0:
        if 2 * n_left < n_built:
            # Half of the records are gone from the tree: a new one has smaller regions and fewer leaves.
            left, n_built = np.empty(n_left, np.int64), 0
            for i in range(n):
                if labels[i] < 0:
                    left[n_built] = i
                    n_built += 1
            tree = build_tree(geometry, codes, left)
            search = new_search(tree)
        if farthest_first:
            seed = farthest(tree, geometry, search, codes[members[k - 1]], lower, upper, words)
        else:
            while labels[first] >= 0:
                first += 1
            seed = first
        clear_inplace(lower, upper, words)
        add_inplace(geometry, lower, upper, words, codes[seed])
        remove_inplace(tree, seed)
        members[0] = seed
        grow_inplace(tree, geometry, search, lower, upper, words, members, 1, k)
        for t in range(k):
            labels[members[t]] = n_classes
        n_classes += 1
        n_left -= k
    return labels


@kernel
def assign_leftovers_inplace(geometry, codes, labels, n_classes, by_increment):
    """Put records without a class into existing ones, in order.

    By the smallest increase in the class's loss, or (as in Table 7, K4) by the smallest loss of the enlarged class.
    """
    lower, upper, words, sizes = class_regions(geometry, codes, labels, n_classes)
    for i in range(codes.shape[0]):
        if labels[i] >= 0:
            continue
        best, best_cost = -1, np.int64(2**62)
        for c in range(n_classes):
            cost = (sizes[c] + 1) * spread_with(geometry, lower[c], upper[c], words[c], codes[i])
            if by_increment:
                cost -= sizes[c] * spread(geometry, lower[c], upper[c], words[c])
            if cost < best_cost:
                best, best_cost = c, cost
        labels[i] = best
        sizes[best] += 1
        add_inplace(geometry, lower[best], upper[best], words[best], codes[i])
