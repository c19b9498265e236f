"""Mondrian partitioning."""

from __future__ import annotations

import numpy as np

from louver.optim.kernels import kernel
from louver.optim.kernels.classes.diversity import count_inplace, n_sensitive_values
from louver.optim.kernels.classes.loss import (
    add_inplace,
    class_regions,
    clear_inplace,
    column_spread,
    n_words,
)
from louver.optim.kernels.classes.publishable import may_publish

__all__ = ["mondrian_labels"]


@kernel
def mondrian_labels(geometry, requirements, codes, least_size, is_strict):
    """Labels of the parts that no allowable cut divides further."""
    n = codes.shape[0]
    labels = np.empty(n, np.int64)
    order = np.arange(n)
    stack = np.empty((n + 1, 2), np.int64)
    stack[0, 0], stack[0, 1] = 0, n
    depth, n_parts = 1, 0
    while depth > 0:
        depth -= 1
        first, last = stack[depth, 0], stack[depth, 1]
        cut = find_cut_inplace(geometry, requirements, codes, order[first:last], least_size, is_strict)
        if cut == 0:
            labels[order[first:last]] = n_parts
            n_parts += 1
            continue
        stack[depth, 0], stack[depth, 1] = first, first + cut
        stack[depth + 1, 0], stack[depth + 1, 1] = first + cut, last
        depth += 2
    return labels


@kernel
def find_cut_inplace(geometry, requirements, codes, members, least_size, is_strict):
    """Sort the members by the column to cut and return the size of the left side; 0 if nothing can be cut."""
    n, m = members.shape[0], codes.shape[1]
    if n < 2 * least_size:
        return 0
    lower, upper, words, _ = class_regions(geometry, codes[members], np.zeros(n, np.int64), 1)
    widths = np.empty(m, np.int64)
    for j in range(m):
        widths[j] = column_spread(geometry, j, lower[0, j], upper[0, j], words[0])
    tried = np.argsort(-widths, kind="mergesort")
    for j in tried:
        if widths[j] == 0 and is_strict:
            break
        by_value = np.argsort(codes[members, j], kind="mergesort")
        ordered = members[by_value]
        cut = nearest_cut(geometry, requirements, codes, ordered, j, least_size, is_strict)
        if cut > 0:
            members[:] = ordered
            return cut
    return 0


@kernel
def nearest_cut(geometry, requirements, codes, ordered, j, least_size, is_strict):
    """The allowable cut nearest the middle; 0 if there is none."""
    n = ordered.shape[0]
    for step in range(n):
        for side in (-1, 1):
            cut = n // 2 + side * step
            if cut < least_size or n - cut < least_size or (step == 0 and side == 1):
                continue
            if is_strict and codes[ordered[cut - 1], j] == codes[ordered[cut], j]:
                continue
            if has_requirements(requirements) and not (
                is_part_allowed(geometry, requirements, codes, ordered[:cut], least_size)
                and is_part_allowed(geometry, requirements, codes, ordered[cut:], least_size)
            ):
                continue
            return cut
    return 0


@kernel
def has_requirements(requirements):
    """Whether classes must meet more than their size."""
    return requirements.limits[0] > 0 or requirements.matches > 0


@kernel
def is_part_allowed(geometry, requirements, codes, members, least_size):
    """Whether the members meet all requirements as a class."""
    m = codes.shape[1]
    lower, upper = np.empty(m, np.int32), np.empty(m, np.int32)
    words = np.empty(n_words(geometry, m), np.uint64)
    counts = np.zeros(n_sensitive_values(requirements.limits), np.int64)
    clear_inplace(lower, upper, words)
    for i in members:
        add_inplace(geometry, lower, upper, words, codes[i])
        count_inplace(requirements.limits, counts, requirements.sensitive[i], 1)
    return may_publish(geometry, requirements, lower, upper, words, counts, members.shape[0], least_size)
