"""Making classes publishable: merge those that fail their requirements, or suppress records."""

from __future__ import annotations

import numpy as np

from louver.optim.kernels import inner, kernel
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
from louver.optim.kernels.classes.value_runs import (
    can_pass,
    class_runs,
    is_union_diverse,
    merge_runs_inplace,
    sensitive_values,
)

__all__ = ["may_publish", "suppress_inplace", "unite_inplace"]

WINDOW = 4096
"""Number of classes on either side, in the order of their first records, searched for a partner."""

FEW_VALUES = 64
"""Up to this many sensitive values, every class in the window is tried as a partner; with more, only the TRIED cheapest."""

TRIED = 256
SEARCHED = 8
"""Number of partners found one by one before the rest is sorted."""

NO_COST = np.int64(2**62)


@kernel
def unite_inplace(geometry, requirements, codes, labels, n_classes, least_size, n_suppressible, stop):
    """Merge every class that may not be published with the cheapest other class, or suppress it if that costs less.

    Classes that make it publishable take precedence; among equals the first is chosen. Once `stop` is
    set, the partner is simply the next class in order, so that the run ends soon.

    Returns the number of classes that still may not be published: 0, or 1 if merging all of them was not enough.
    """
    by_class_lower, by_class_upper, words, sizes = class_regions(geometry, codes, labels, n_classes)
    lower, upper = np.ascontiguousarray(by_class_lower.T), np.ascontiguousarray(by_class_upper.T)
    values = sensitive_values(requirements.limits)
    runs = class_runs(values, requirements.sensitive, labels, n_classes)
    n_tried = n_classes if values.share.shape[0] <= FEW_VALUES else TRIED
    total, costs = np.empty(n_classes, np.int32), np.empty(n_classes, np.int64)
    is_mixed = has_other_kinds(geometry, codes.shape[1])
    full = full_loss(geometry, codes.shape[1])
    losses = np.empty(n_classes, np.int64)
    for c in range(n_classes):
        losses[c] = sizes[c] * spread(geometry, lower[:, c], upper[:, c], words[c])
    target = np.arange(n_classes)
    n_failing = 0
    for c in range(n_classes):
        # Invariant: every remaining class before c may be published, or is the only one left.
        while sizes[c] > 0 and not (
            sizes[c] >= least_size
            and is_union_diverse(values, runs, c, -1)
            and (
                requirements.matches == 0
                or has_matches(requirements, geometry, lower[:, c], upper[:, c], words[c])
            )
        ):
            first, last = window_of(sizes, c, stop)
            merged_spreads_inplace(geometry, is_mixed, lower, upper, words, c, first, last, total)
            partner, increment = cheapest_partner(
                values, runs, sizes, losses, total, costs, c, first, last, least_size, n_tried
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
            merge_runs_inplace(values, runs, c, partner)
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
def window_of(sizes, c, stop):
    """The classes first to last - 1 searched for a partner for class c: at least one, if there is any.

    The WINDOW classes on either side; where none of these remains, or once `stop` is set, up to the nearest remaining one.
    """
    n = sizes.shape[0]
    first, last = max(0, c - WINDOW), min(n, c + WINDOW + 1)
    if stop[0] == 0:
        for d in range(first, last):
            if d != c and sizes[d] > 0:
                return first, last
    after = c + 1
    while after < n and sizes[after] == 0:
        after += 1
    if after < n:
        return after, after + 1
    before = c - 1
    while before > 0 and sizes[before] == 0:
        before -= 1
    return max(0, before), max(0, before + 1)


@kernel
def may_publish(geometry, requirements, lower, upper, words, counts, size, least_size):
    """Whether a class meets all requirements."""
    return (
        size >= least_size
        and is_diverse(requirements.limits, counts)
        and (requirements.matches == 0 or has_matches(requirements, geometry, lower, upper, words))
    )


@kernel
def merged_spreads_inplace(geometry, is_mixed, lower, upper, words, c, first, last, total):
    """Loss per record of class c merged with each of the classes first to last - 1."""
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
def cheapest_partner(values, runs, sizes, losses, total, costs, c, first, last, least_size, n_tried):
    """The class whose union with class c adds least loss, and that loss; -1 if c is alone.

    Among the `n_tried` cheapest, those that make c diverse take precedence over all others.
    """
    for d in range(first, last):
        costs[d] = NO_COST
        if d != c and sizes[d] > 0:
            costs[d] = (sizes[c] + sizes[d]) * np.int64(total[d]) - losses[c] - losses[d]
    best = first + np.argmin(costs[first:last]) if last > first else -1
    if best < 0 or costs[best] == NO_COST:
        return -1, NO_COST
    best_cost = costs[best]
    partner = best
    for trial in range(min(n_tried, last - first)):
        if trial == SEARCHED:
            return first_diverse(
                values, runs, sizes, costs, c, first, last, least_size, n_tried, best, best_cost
            )
        if trial > 0:
            partner = first + np.argmin(costs[first:last])
        if costs[partner] == NO_COST:
            break
        if makes_diverse(values, runs, sizes, c, partner, least_size):
            return partner, costs[partner]
        costs[partner] = NO_COST
    return best, best_cost


@kernel
def first_diverse(values, runs, sizes, costs, c, first, last, least_size, n_tried, best, best_cost):
    """The cheapest remaining class that makes c diverse when merged with it; otherwise `best`."""
    order = np.argsort(costs[first:last], kind="mergesort")
    for t in range(min(n_tried - SEARCHED, last - first)):
        d = first + order[t]
        if costs[d] == NO_COST:
            break
        if makes_diverse(values, runs, sizes, c, d, least_size):
            return d, costs[d]
    return best, best_cost


@inner
def makes_diverse(values, runs, sizes, c, d, least_size):
    """Whether classes c and d together are large and diverse enough."""
    size = sizes[c] + sizes[d]
    return size >= least_size and can_pass(values, runs, c, d, size) and is_union_diverse(values, runs, c, d)


@kernel
def suppress_inplace(geometry, requirements, codes, labels, n_classes, least_size, n_suppressible, stop):
    """Repeatedly suppress the record whose removal saves most beyond its own loss; returns how many were suppressed.

    Ends early once `stop` is set.
    """
    full = full_loss(geometry, codes.shape[1])
    gains = np.zeros(codes.shape[0], np.int64)
    members = np.argsort(labels, kind="mergesort")
    end = np.searchsorted(labels[members], np.arange(n_classes), side="right")
    start = np.searchsorted(labels[members], np.arange(n_classes), side="left")
    for c in range(n_classes):
        class_gains_inplace(
            geometry,
            requirements,
            codes,
            members[start[c] : end[c]],
            labels,
            c,
            least_size,
            full,
            gains,
            stop,
        )
    n_done = 0
    while n_done < n_suppressible and stop[0] == 0:
        i = np.argmax(gains)
        if gains[i] <= 0:
            break
        c = labels[i]
        labels[i] = -1
        gains[i] = 0
        n_done += 1
        class_gains_inplace(
            geometry,
            requirements,
            codes,
            members[start[c] : end[c]],
            labels,
            c,
            least_size,
            full,
            gains,
            stop,
        )
    return n_done


@kernel
def class_gains_inplace(geometry, requirements, codes, members, labels, c, least_size, full, gains, stop):
    """Loss saved by suppressing each single member of class c; 0 where the rest may not be published."""
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
        if stop[0] != 0:
            continue
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
