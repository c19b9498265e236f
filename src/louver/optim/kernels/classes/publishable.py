"""Making classes publishable: unite those that fail their requirements, or leave records out."""

from __future__ import annotations

import numpy as np

from louver.optim.kernels import kernel
from louver.optim.kernels.classes.diversity import count_inplace, has_matches, is_diverse, n_sensitive_values
from louver.optim.kernels.classes.loss import (
    add_inplace,
    add_widths_inplace,
    class_regions,
    clear_inplace,
    full_loss,
    has_other_kinds,
    merge_inplace,
    n_words,
    spread,
    spread_merged,
)

__all__ = ["suppress_inplace", "unite_inplace"]

WINDOW = 4096
"""Classes on either side, in the order of their first records, among which a partner is looked for."""


@kernel
def class_counts(requirements, labels, n_classes):
    """How often each sensitive value occurs in each class."""
    counts = np.zeros((n_classes, n_sensitive_values(requirements.limits)), np.int64)
    for i in range(labels.shape[0]):
        if labels[i] >= 0:
            count_inplace(requirements.limits, counts[labels[i]], requirements.sensitive[i], 1)
    return counts


@kernel
def unite_inplace(geometry, requirements, codes, labels, n_classes, least_size, n_suppressible):
    """Unite every class that may not be published with the class that costs least, or leave it out if that costs less.

    Returns the number of classes that still may not be published: 0, or 1 when all are united in vain.
    """
    by_class_lower, by_class_upper, words, sizes = class_regions(geometry, codes, labels, n_classes)
    lower, upper = np.ascontiguousarray(by_class_lower.T), np.ascontiguousarray(by_class_upper.T)
    counts = class_counts(requirements, labels, n_classes)
    total = np.empty(n_classes, np.int32)
    is_mixed = has_other_kinds(geometry, codes.shape[1])
    full = full_loss(geometry, codes.shape[1])
    losses = np.empty(n_classes, np.int64)
    for c in range(n_classes):
        losses[c] = sizes[c] * spread(geometry, lower[:, c], upper[:, c], words[c])
    target = np.arange(n_classes)
    n_failing = 0
    for c in range(n_classes):
        # Invariant: every class before c that is left may be published, or is the only one left.
        while sizes[c] > 0 and not may_publish(
            geometry, requirements, lower[:, c], upper[:, c], words[c], counts[c], sizes[c], least_size
        ):
            first, last = max(0, c - WINDOW), min(n_classes, c + WINDOW + 1)
            merged_spreads_inplace(geometry, is_mixed, lower, upper, words, c, first, last, total)
            partner, increment = cheapest_partner(
                requirements.limits, counts, sizes, losses, total, c, first, last, least_size
            )
            if sizes[c] <= n_suppressible and (partner < 0 or sizes[c] * full - losses[c] < increment):
                n_suppressible -= sizes[c]
                sizes[c] = 0
                target[c] = -1
                break
            if partner < 0:
                n_failing += 1
                break
            merge_inplace(
                lower[:, c],
                upper[:, c],
                words[c],
                lower[:, partner],
                upper[:, partner],
                words[partner],
            )
            counts[c] += counts[partner]
            sizes[c] += sizes[partner]
            losses[c] += losses[partner] + increment
            sizes[partner] = 0
            target[partner] = c
    for i in range(labels.shape[0]):
        c = labels[i]
        while c >= 0 and target[c] != c:
            c = target[c]
        labels[i] = c
    return n_failing


@kernel
def may_publish(geometry, requirements, lower, upper, words, counts, size, least_size):
    """Whether a class meets all requirements."""
    return (
        size >= least_size
        and is_diverse(requirements.limits, counts, size)
        and (requirements.matches == 0 or has_matches(requirements, geometry, lower, upper, words))
    )


@kernel
def merged_spreads_inplace(geometry, is_mixed, lower, upper, words, c, first, last, total):
    """Loss per record of class c united with each of the classes first to last - 1."""
    total[first:last] = 0
    for j in range(lower.shape[0]):
        add_widths_inplace(
            total[first:last],
            upper[j, first:last],
            lower[j, first:last],
            last - first,
            lower[j, c],
            upper[j, c],
        )
    if is_mixed:
        for d in range(first, last):
            total[d] = spread_merged(
                geometry, lower[:, c], upper[:, c], words[c], lower[:, d], upper[:, d], words[d]
            )


@kernel
def cheapest_partner(limits, counts, sizes, losses, total, c, first, last, least_size):
    """The class whose union with class c adds least loss, and that loss; -1 if c is alone.

    Classes with which c becomes diverse go before all others; of equal ones the first is taken.
    """
    best, best_cost = -1, np.int64(2**62)
    diverse, diverse_cost = -1, np.int64(2**62)
    together = np.empty(counts.shape[1], np.int64)
    for d in range(first, last):
        if d == c or sizes[d] == 0:
            continue
        size = sizes[c] + sizes[d]
        cost = size * np.int64(total[d]) - losses[c] - losses[d]
        if cost < best_cost:
            best, best_cost = d, cost
        if cost < diverse_cost and size >= least_size:
            for v in range(together.shape[0]):
                together[v] = counts[c, v] + counts[d, v]
            if is_diverse(limits, together, size):
                diverse, diverse_cost = d, cost
    if diverse >= 0:
        return diverse, diverse_cost
    return best, best_cost


@kernel
def suppress_inplace(geometry, requirements, codes, labels, n_classes, least_size, n_suppressible):
    """Leave out, one after another, the record whose absence saves most beyond its own loss; returns how many."""
    full = full_loss(geometry, codes.shape[1])
    gains = np.zeros(codes.shape[0], np.int64)
    members = np.argsort(labels, kind="mergesort")
    stop = np.searchsorted(labels[members], np.arange(n_classes), side="right")
    start = np.searchsorted(labels[members], np.arange(n_classes), side="left")
    for c in range(n_classes):
        class_gains_inplace(
            geometry, requirements, codes, members[start[c] : stop[c]], labels, c, least_size, full, gains
        )
    n_done = 0
    while n_done < n_suppressible:
        i = np.argmax(gains)
        if gains[i] <= 0:
            break
        c = labels[i]
        labels[i] = -1
        gains[i] = 0
        n_done += 1
        class_gains_inplace(
            geometry, requirements, codes, members[start[c] : stop[c]], labels, c, least_size, full, gains
        )
    return n_done


@kernel
def class_gains_inplace(geometry, requirements, codes, members, labels, c, least_size, full, gains):
    """What leaving out each member of class c alone would save; 0 where the rest may not be published."""
    m = codes.shape[1]
    lower, upper = np.empty(m, np.int32), np.empty(m, np.int32)
    words = np.empty(n_words(geometry, m), np.uint64)
    counts = np.zeros(n_sensitive_values(requirements.limits), np.int64)
    size = 0
    clear_inplace(lower, upper, words)
    for i in members:
        if labels[i] == c:
            size += 1
            add_inplace(geometry, lower, upper, words, codes[i])
            count_inplace(requirements.limits, counts, requirements.sensitive[i], 1)
    before = size * spread(geometry, lower, upper, words)
    for out in members:
        if labels[out] != c:
            continue
        gains[out] = 0
        if size - 1 < least_size:
            continue
        clear_inplace(lower, upper, words)
        for i in members:
            if labels[i] == c and i != out:
                add_inplace(geometry, lower, upper, words, codes[i])
        gain = before - (size - 1) * spread(geometry, lower, upper, words) - full
        if gain <= 0:
            continue
        count_inplace(requirements.limits, counts, requirements.sensitive[out], -1)
        if may_publish(geometry, requirements, lower, upper, words, counts, size - 1, least_size):
            gains[out] = gain
        count_inplace(requirements.limits, counts, requirements.sensitive[out], 1)
