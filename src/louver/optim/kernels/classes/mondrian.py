"""Mondrian partitioning."""

from __future__ import annotations

import numpy as np

from louver.optim.kernels import kernel
from louver.optim.kernels.classes.diversity import (
    FARTHEST,
    LEAST_DISTINCT,
    LEAST_ENTROPY,
    N_LIMITS,
    SLACK,
    count_inplace,
    distance,
    excess,
    has_matches,
    n_known,
    n_sensitive_values,
    variety,
)
from louver.optim.kernels.classes.loss import (
    add_inplace,
    class_regions,
    clear_inplace,
    column_spread,
    n_words,
)

__all__ = ["mondrian_labels"]


@kernel
def mondrian_labels(geometry, requirements, codes, least_size, is_strict, stop):
    """Labels of the parts that no allowable cut divides further; once `stop` is set, no part is divided further."""
    n = codes.shape[0]
    labels = np.empty(n, np.int64)
    order = np.arange(n)
    stack = np.empty((n + 1, 2), np.int64)
    stack[0, 0], stack[0, 1] = 0, n
    depth, n_parts = 1, 0
    while depth > 0:
        depth -= 1
        first, last = stack[depth, 0], stack[depth, 1]
        cut = find_cut_inplace(geometry, requirements, codes, order[first:last], least_size, is_strict, stop)
        if cut == 0:
            for t in range(first, last):
                labels[order[t]] = n_parts
            n_parts += 1
            continue
        stack[depth, 0], stack[depth, 1] = first, first + cut
        stack[depth + 1, 0], stack[depth + 1, 1] = first + cut, last
        depth += 2
    return labels


@kernel
def find_cut_inplace(geometry, requirements, codes, members, least_size, is_strict, stop):
    """Sort the members by the column to cut and return the size of the left side; 0 if nothing can be cut."""
    n, m = members.shape[0], codes.shape[1]
    if n < 2 * least_size or stop[0] != 0:
        return 0
    rows = np.empty((n, m), np.int32)
    for t in range(n):
        for j in range(m):
            rows[t, j] = codes[members[t], j]
    lower, upper, words, _ = class_regions(geometry, rows, np.zeros(n, np.int64), 1)
    widths, is_tried = np.empty(m, np.int64), np.zeros(m, np.bool_)
    for j in range(m):
        widths[j] = column_spread(geometry, j, lower[0, j], upper[0, j], words[0])
    values, ordered = np.empty(n, np.int64), np.empty(n, np.int64)
    for _ in range(m):
        j = -1
        for other in range(m):
            if not is_tried[other] and (j < 0 or widths[other] > widths[j]):
                j = other
        is_tried[j] = True
        if widths[j] == 0 and is_strict:
            break
        for t in range(n):
            values[t] = rows[t, j]
        by_value = np.argsort(values, kind="mergesort")
        for t in range(n):
            ordered[t] = members[by_value[t]]
        cut = nearest_cut(geometry, requirements, codes, ordered, j, least_size, is_strict, stop)
        if cut > 0:
            for t in range(n):
                members[t] = ordered[t]
            return cut
    return 0


@kernel
def nearest_cut(geometry, requirements, codes, ordered, j, least_size, is_strict, stop):
    """The allowable cut nearest the middle (of two equally near, the earlier one); 0 if there is none."""
    middle = ordered.shape[0] // 2
    most = ordered.shape[0]
    left = steps_to_cut(geometry, requirements, codes, ordered, j, least_size, is_strict, -1, most, stop)
    if left >= 0:
        most = left - 1
    right = steps_to_cut(geometry, requirements, codes, ordered, j, least_size, is_strict, 1, most, stop)
    if right >= 0:
        return middle + right
    return middle - left if left >= 0 else 0


@kernel
def steps_to_cut(geometry, requirements, codes, ordered, j, least_size, is_strict, side, most_steps, stop):
    """How many records off the middle, on one side, the nearest allowable cut lies; -1 if none is near enough.

    As the cut moves outwards one part shrinks and the other grows, a record at a time.
    """
    n, limits = ordered.shape[0], requirements.limits
    cut, shrinking = n // 2, (0 if side < 0 else 1)
    counts = np.zeros((2, n_sensitive_values(limits)), np.int64)
    if limits[0] > 0:
        for t in range(n):
            count_inplace(limits, counts[0 if t < cut else 1], requirements.sensitive[ordered[t]], 1)
    step = 0 if side < 0 else 1
    if requirements.matches > 0:
        step = max(step, steps_to_match(geometry, requirements, codes, ordered, side))
    while step <= most_steps and stop[0] == 0:
        while cut != n // 2 + side * step:
            if cut == 0 or cut == n:
                return -1
            moved = ordered[cut - 1] if side < 0 else ordered[cut]
            count_inplace(limits, counts[shrinking], requirements.sensitive[moved], -1)
            count_inplace(limits, counts[1 - shrinking], requirements.sensitive[moved], 1)
            cut += side
        size = cut if side < 0 else n - cut
        if size < least_size:
            return -1
        wait = 1
        if not (is_strict and codes[ordered[cut - 1], j] == codes[ordered[cut], j]):
            wait = steps_to_wait(limits, counts[shrinking], counts[1 - shrinking])
        if wait < 0:
            return -1
        if wait == 0:
            part = ordered[:cut] if side < 0 else ordered[cut:]
            return (
                step
                if requirements.matches == 0 or matches_enough(geometry, requirements, codes, part)
                else -1
            )
        step += wait
    return -1


@kernel
def steps_to_wait(limits, shrinking, growing):
    """Number of steps during which the parts cannot both be diverse: 0 if they already are, -1 if they never will be.

    As every distance is a norm, moving a record changes (known records x distance) by at most one.
    """
    wait = np.int64(0)
    for s in range(np.int64(limits[0])):
        field = s * N_LIMITS
        for is_growing in (False, True):
            counts = growing if is_growing else shrinking
            n_distinct, entropy = variety(limits, s, counts)
            if n_distinct < limits[field + LEAST_DISTINCT]:
                if not is_growing:
                    return np.int64(-1)
                wait = max(wait, np.int64(1))
            if entropy < limits[field + LEAST_ENTROPY] - SLACK:
                wait = max(wait, np.int64(1))
            if excess(limits, s, counts) > 0:
                wait = max(wait, np.int64(1))
            farthest = limits[field + FARTHEST]
            if farthest < 0:
                continue
            beyond = distance(limits, s, counts) - farthest
            if beyond > SLACK:
                steps = n_known(limits, s, counts) * beyond / (1 + farthest if is_growing else 1 - farthest)
                wait = max(wait, max(np.int64(1), np.int64(steps - 1e-6)))
    return wait


@kernel
def steps_to_match(geometry, requirements, codes, ordered, side):
    """The minimum number of steps after which the growing part matches enough of the population; further steps only add matches.

    One more than the number of steps if it never does.
    """
    n = ordered.shape[0]
    low, high = 0, n // 2 + 1
    while low < high:
        step = (low + high) // 2
        part = ordered[n // 2 - step :] if side < 0 else ordered[: n // 2 + step]
        if matches_enough(geometry, requirements, codes, part):
            high = step
        else:
            low = step + 1
    return low


@kernel
def matches_enough(geometry, requirements, codes, members):
    """Whether enough of the population matches the members as a class."""
    m = codes.shape[1]
    lower, upper = np.empty(m, np.int32), np.empty(m, np.int32)
    words = np.empty(n_words(geometry, m), np.uint64)
    clear_inplace(lower, upper, words)
    for i in members:
        add_inplace(geometry, lower, upper, words, codes[i])
    return has_matches(requirements, geometry, lower, upper, words)
