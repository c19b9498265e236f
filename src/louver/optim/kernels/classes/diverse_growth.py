"""Classes grown until they are diverse: the next record is the cheapest among those that bring the class nearest to its requirements.

The *lack* of a class is one number that says how far it is from its requirements: the distinct values and entropy that are missing, and the
distance from the whole table in excess of what is allowed, summed over the sensitive columns.
"""

from __future__ import annotations

import numpy as np

from louver.optim.kernels import inner, kernel
from louver.optim.kernels.classes.diversity import SLACK, count_inplace, is_diverse, lack, n_sensitive_values
from louver.optim.kernels.classes.loss import add_inplace, clear_inplace, n_words, spread_with
from louver.optim.kernels.classes.record_tree import (
    NUMBER_MASK,
    build_tree,
    nearest_inplace,
    new_search,
    remove_inplace,
)

__all__ = ["diverse_labels"]

POOL = 192
"""Number of records near a seed from which its class is chosen."""

NO_KEY = np.int64(2**63 - 1)


@kernel
def diverse_labels(geometry, requirements, codes, seeds, least_size, strictness, stop):
    """Classes grown from each seed that has none yet; label -1 for records that found no class.

    Parameters
    ----------
    seeds : int64 (n,)
        Records in the order in which they start a class.
    strictness : float
        A record may be chosen if it lowers the class's lack by this share of what the best record would.
    stop : uint8 (1,)
        Once set, no further class is grown.
    """
    n, m = codes.shape
    labels = np.full(n, -1, np.int64)
    tree = build_tree(geometry, codes, np.arange(n))
    search = new_search(tree)
    lower, upper = np.empty(m, np.int32), np.empty(m, np.int32)
    words = np.empty(n_words(geometry, m), np.uint64)
    keys = np.empty(POOL, np.int64)
    members = np.empty(POOL + 1, np.int64)
    counts = np.empty(n_sensitive_values(requirements.limits), np.int64)
    lacks = np.empty(max(counts.shape[0], POOL))
    n_left, n_built, n_classes = n, n, 0
    for seed in seeds:
        if labels[seed] >= 0:
            continue
        if stop[0] != 0 or n_left < least_size:
            break
        if 2 * n_left < n_built:
            left, n_built = np.empty(n_left, np.int64), 0
            for i in range(n):
                if labels[i] < 0:
                    left[n_built] = i
                    n_built += 1
            tree = build_tree(geometry, codes, left)
            search = new_search(tree)
        clear_inplace(lower, upper, words)
        add_inplace(geometry, lower, upper, words, codes[seed])
        keys[:] = NO_KEY
        nearest_inplace(tree, geometry, search, seed, lower, upper, words, keys)
        counts[:] = 0
        count_inplace(requirements.limits, counts, requirements.sensitive[seed], 1)
        members[0] = seed
        size = grow_inplace(
            geometry,
            requirements,
            codes,
            keys,
            lower,
            upper,
            words,
            counts,
            lacks,
            members,
            least_size,
            strictness,
        )
        for t in range(size):
            labels[members[t]] = n_classes
            remove_inplace(tree, members[t])
        n_left -= size
        n_classes += size > 0
    return labels


@kernel
def grow_inplace(
    geometry, requirements, codes, keys, lower, upper, words, counts, lacks, members, least_size, strictness
):
    """Grow a class from `members[0]`, with its region and counts, until it may be published; return 0 if the pool holds no such class."""
    limits, sensitive = requirements.limits, requirements.sensitive
    size, n_pool = 1, 0
    while n_pool < keys.shape[0] and keys[n_pool] != NO_KEY:
        n_pool += 1
    while size < least_size or not is_diverse(limits, counts):
        now = lack(limits, counts)
        least = pool_lacks_inplace(limits, sensitive, keys[:n_pool], counts, lacks)
        if n_pool < size or least == np.inf or (now > 0 and least >= now):
            return 0
        most = now - strictness * (now - least) + SLACK if now > 0 else least + SLACK
        best, best_spread = -1, np.int64(2**62)
        for p in range(n_pool):
            if keys[p] >= 0 and lacks[p] <= most:
                total = spread_with(geometry, lower, upper, words, codes[keys[p] & NUMBER_MASK])
                if total < best_spread:
                    best, best_spread = p, total
        chosen = keys[best] & NUMBER_MASK
        keys[best] = -1
        members[size] = chosen
        size += 1
        add_inplace(geometry, lower, upper, words, codes[chosen])
        count_inplace(limits, counts, sensitive[chosen], 1)
    return size


@kernel
def pool_lacks_inplace(limits, sensitive, keys, counts, lacks):
    """The lack of a class after each record of the pool joins it, and the least of these; keys of -1 are taken."""
    least = np.inf
    for p in range(keys.shape[0]):
        if keys[p] < 0:
            continue
        x = keys[p] & NUMBER_MASK
        lacks[p] = np.inf
        for q in range(p):  # records with the same values make the same difference
            if keys[q] >= 0 and same_values(sensitive, x, keys[q] & NUMBER_MASK):
                lacks[p] = lacks[q]
                break
        if lacks[p] == np.inf:
            count_inplace(limits, counts, sensitive[x], 1)
            lacks[p] = lack(limits, counts)
            count_inplace(limits, counts, sensitive[x], -1)
        least = min(least, lacks[p])
    return least


@inner
def same_values(sensitive, x, y):
    """Whether two records have the same sensitive values."""
    is_same = True
    for s in range(sensitive.shape[1]):
        is_same &= sensitive[x, s] == sensitive[y, s]
    return is_same
