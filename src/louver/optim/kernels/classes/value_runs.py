"""Sensitive values of classes as sorted runs (value, count), so that a union is examined without recounting.

A class of s records has at most s different values, however many the column has: its requirements are checked in
O(s), where an array of counts takes O(values). Values are numbered so that those below one node of a hierarchy stand
together; then the runs of every level follow from those of the values.

With P the shares in a class, Q those in the whole table, both of total one, and F and G the shares up to a value:

    EQUAL          sum |P - Q| / 2 = sum of max(0, P - Q), to which only values of the class contribute
    ORDERED        sum |F - G| / (values - 1); F is constant between two runs, G ascends: one search splits the sum
    TREE_DISTANCE  EQUAL of the values and of the nodes at every height below the root, over the number of heights

Each distance is a norm of P - Q. So size x distance of a union is at least the difference of those of its parts,
which rules most unions out at once. Records without a value are in no run.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from louver.optim.kernels import inner, kernel
from louver.optim.kernels.classes.diversity import (
    DISTANCE,
    FARTHEST,
    LEAST_DISTINCT,
    LEAST_ENTROPY,
    LEVELS,
    N_LIMITS,
    ORDERED,
    RATIO,
    SLACK,
    START,
    STOP,
    TABLES,
    TREE_DISTANCE,
    excess_of,
    insert_top_inplace,
    n_sensitive_values,
)

__all__ = [
    "ClassRuns",
    "SensitiveValues",
    "can_pass",
    "class_runs",
    "is_union_diverse",
    "merge_runs_inplace",
    "sensitive_values",
]

NONE = -1


class SensitiveValues(NamedTuple):
    """The whole table: the values of all sensitive columns, one column after another.

    Attributes
    ----------
    limits : float64
        The requirements, as in `louver.optim.kernels.classes.diversity`.
    place : int64 (values,)
        Position of each code among the values of its column.
    share : float64 (values,)
        Q by position.
    up_to, before : float64 (values,)
        G by position, and the sum of G over all positions before.
    node : int64 (heights, values)
        Hierarchical distance: the node above each position.
    node_share : float64 (heights, values)
        Share of that node.
    current, gathered : int64 (heights,)
        Workspace: the node that a walk along runs has reached at each height, and the number of its records.
    top : int64
        Workspace for the greatest counts of a class.
    """

    limits: NDArray[np.float64]
    place: NDArray[np.int64]
    share: NDArray[np.float64]
    up_to: NDArray[np.float64]
    before: NDArray[np.float64]
    node: NDArray[np.int64]
    node_share: NDArray[np.float64]
    current: NDArray[np.int64]
    gathered: NDArray[np.int64]
    top: NDArray[np.int64]


class ClassRuns(NamedTuple):
    """Runs of all classes, linked in ascending order of position.

    Attributes
    ----------
    first : int64 (classes, s)
        First run of each class in each sensitive column.
    following : int64 (runs,)
        The next run of the same class; -1 after the last.
    position : int64 (runs,)
    times : int64 (runs,)
        How many records have the value.
    known : int64 (classes, s)
        Records of each class that have a value.
    far : float64 (classes, s)
        Known records x distance of each class from the whole table; 0 where no distance is required.
    """

    first: NDArray[np.int64]
    following: NDArray[np.int64]
    position: NDArray[np.int64]
    times: NDArray[np.int64]
    known: NDArray[np.int64]
    far: NDArray[np.float64]


@kernel
def sensitive_values(limits):
    """The properties of the values that do not depend on any class."""
    n_columns, n = np.int64(limits[0]), n_sensitive_values(limits)
    most, n_top = np.int64(0), np.int64(1)
    for s in range(n_columns):
        most = max(most, np.int64(limits[s * N_LIMITS + LEVELS]) - 1)
        n_top = max(n_top, np.int64(limits[s * N_LIMITS + LEAST_DISTINCT]) - 1)
    place = np.empty(n, np.int64)
    share, up_to, before = np.empty(n), np.empty(n), np.empty(n)
    node, node_share = np.zeros((most, n), np.int64), np.zeros((most, n))
    for s in range(n_columns):
        field = s * N_LIMITS
        start, stop = np.int64(limits[field + START]), np.int64(limits[field + STOP])
        table, levels = np.int64(limits[field + TABLES]), np.int64(limits[field + LEVELS])
        n_values = stop - start
        order = np.arange(n_values)
        for h in range(levels):
            nodes = table + (h + 1) * n_values
            order = order[np.argsort(limits[nodes : nodes + n_values][order], kind="mergesort")]
        total, sums = 0.0, 0.0
        for position in range(n_values):
            v = order[position]
            place[start + v] = position
            share[start + position] = limits[table + v]
            before[start + position] = sums
            total += limits[table + v]
            up_to[start + position] = total
            sums += total
        for h in range(levels - 1):
            nodes = table + (h + 1) * n_values
            shares = np.zeros(n_values)
            for v in range(n_values):
                shares[np.int64(limits[nodes + v])] += limits[table + v]
            for position in range(n_values):
                node[h, start + position] = np.int64(limits[nodes + order[position]])
                node_share[h, start + position] = shares[node[h, start + position]]
    room, more_room = np.empty(most, np.int64), np.empty(most, np.int64)
    top = np.empty(n_top, np.int64)
    return SensitiveValues(limits, place, share, up_to, before, node, node_share, room, more_room, top)


@kernel
def class_runs(values, sensitive, labels, n_classes):
    """The runs of all classes."""
    n, n_columns = sensitive.shape
    first = np.full((n_classes, n_columns), NONE, np.int64)
    following = np.full(n * n_columns, NONE, np.int64)
    position, count = np.empty(n * n_columns, np.int64), np.zeros(n * n_columns, np.int64)
    n_runs = 0
    for s in range(n_columns):
        start = np.int64(values.limits[s * N_LIMITS + START])
        stop = np.int64(values.limits[s * N_LIMITS + STOP])
        keys = np.empty(n, np.int64)
        for i in range(n):
            at = values.place[start + sensitive[i, s]] if sensitive[i, s] >= 0 else 0
            keys[i] = labels[i] * (stop - start) + at
        last_class = NONE
        for i in np.argsort(keys, kind="mergesort"):
            c = labels[i]
            if c < 0 or sensitive[i, s] < 0:
                continue
            at = values.place[start + sensitive[i, s]]
            if c == last_class and position[n_runs - 1] == at:
                count[n_runs - 1] += 1
                continue
            position[n_runs], count[n_runs] = at, 1
            if c == last_class:
                following[n_runs - 1] = n_runs
            else:
                first[c, s] = n_runs
            last_class = c
            n_runs += 1
    known = np.zeros((n_classes, n_columns), np.int64)
    runs = ClassRuns(first, following, position, count, known, np.zeros((n_classes, n_columns)))
    for c in range(n_classes):
        measure_inplace(values, runs, c)
    return runs


@inner
def measure_inplace(values, runs, c):
    """Update a class's count of known records and its product of count and distance."""
    for s in range(runs.first.shape[1]):
        size = np.int64(0)
        run = runs.first[c, s]
        while run >= 0:
            size += runs.times[run]
            run = runs.following[run]
        runs.known[c, s] = size
        if values.limits[s * N_LIMITS + FARTHEST] >= 0 and size > 0:
            runs.far[c, s] = size * judged(values, runs, s, runs.first[c, s], NONE, size)[3]


@inner
def can_pass(values, runs, c, d, size):
    """False where the union of two classes, of `size` records, is certain to be too far from the whole table."""
    for s in range(runs.first.shape[1]):
        farthest = values.limits[s * N_LIMITS + FARTHEST]
        if farthest >= 0 and abs(runs.far[c, s] - runs.far[d, s]) > (farthest + 1e-9) * size:
            return False
    return True


@inner
def is_union_diverse(values, runs, c, d):
    """Whether class c, united with class d unless that is -1, meets the requirements."""
    for s in range(runs.first.shape[1]):
        field = s * N_LIMITS
        other = runs.first[d, s] if d >= 0 else NONE
        size = runs.known[c, s] + (runs.known[d, s] if d >= 0 else 0)
        n_distinct, entropy, excess, distance = judged(values, runs, s, runs.first[c, s], other, size)
        if n_distinct < values.limits[field + LEAST_DISTINCT]:
            return False
        if entropy < values.limits[field + LEAST_ENTROPY] - SLACK:
            return False
        if excess > 0:
            return False
        farthest = values.limits[field + FARTHEST]
        if farthest >= 0 and distance > farthest + SLACK:
            return False
    return True


@inner
def judged(values, runs, s, a, b, size):
    """Distinct values, entropy, excess and distance from the whole table of two linked lists of runs, of `size` records together."""
    if size == 0:
        return 0, 0.0, 0.0, 0.0
    limits, field = values.limits, s * N_LIMITS
    start = np.int64(limits[field + START])
    n_values = np.int64(limits[field + STOP]) - start
    is_distance, kind = limits[field + FARTHEST] >= 0, limits[field + DISTANCE]
    is_entropy, is_recursive = limits[field + LEAST_ENTROPY] > 0, limits[field + RATIO] >= 0
    top, rank = values.top, np.int64(limits[field + LEAST_DISTINCT])
    top[: max(1, rank - 1)] = 0
    heights = np.int64(limits[field + LEVELS]) - 1 if is_distance and kind == TREE_DISTANCE else 0
    current, gathered = values.current, values.gathered
    for h in range(heights):
        current[h], gathered[h] = NONE, 0
    n_distinct, entropy, total = 0, 0.0, 0.0
    last, below = 0, 0.0
    while a >= 0 or b >= 0:
        if b < 0 or (a >= 0 and runs.position[a] < runs.position[b]):
            at, n = runs.position[a], runs.times[a]
            a = runs.following[a]
        elif a < 0 or runs.position[b] < runs.position[a]:
            at, n = runs.position[b], runs.times[b]
            b = runs.following[b]
        else:
            at, n = runs.position[a], runs.times[a] + runs.times[b]
            a, b = runs.following[a], runs.following[b]
        n_distinct += 1
        if is_entropy:
            entropy -= n / size * np.log(n / size)
        if is_recursive:
            insert_top_inplace(top[: max(1, rank - 1)], n)
        if not is_distance:
            continue
        if kind == ORDERED:
            total += apart(values, start, last, at, below / size)
            last, below = at, below + n
            continue
        total += max(0.0, n / size - values.share[start + at])
        for h in range(heights):
            if current[h] >= 0 and values.node[h, start + current[h]] != values.node[h, start + at]:
                total += max(0.0, gathered[h] / size - values.node_share[h, start + current[h]])
                gathered[h] = 0
            current[h] = at
            gathered[h] += n
    excess = excess_of(top, rank, limits[field + RATIO], size) if is_recursive else 0.0
    if kind == ORDERED and is_distance:
        total += apart(values, start, last, n_values, 1.0)
        return n_distinct, entropy, excess, total / max(1, n_values - 1)
    for h in range(heights):
        total += max(0.0, gathered[h] / size - values.node_share[h, start + current[h]])
    return n_distinct, entropy, excess, total / (heights + 1)


@inner
def apart(values, start, first, last, share):
    """Sum of |share - G| over the positions first to last - 1."""
    if first == last:
        return 0.0
    low, high = first, last
    while low < high:
        middle = (low + high) // 2
        if values.up_to[start + middle] > share:
            high = middle
        else:
            low = middle + 1
    return (
        share * (low - first)
        - (sum_before(values, start, low) - sum_before(values, start, first))
        + (sum_before(values, start, last) - sum_before(values, start, low))
        - share * (last - low)
    )


@inner
def sum_before(values, start, position):
    """Sum of G over the positions before one, which may be the end."""
    if position == 0:
        return 0.0
    return values.before[start + position - 1] + values.up_to[start + position - 1]


@inner
def merge_runs_inplace(values, runs, c, d):
    """Move the runs of class d into class c."""
    for s in range(runs.first.shape[1]):
        a, b = runs.first[c, s], runs.first[d, s]
        tail = NONE
        while a >= 0 or b >= 0:
            if b < 0 or (a >= 0 and runs.position[a] <= runs.position[b]):
                if b >= 0 and runs.position[a] == runs.position[b]:
                    runs.times[a] += runs.times[b]
                    b = runs.following[b]
                taken, a = a, runs.following[a]
            else:
                taken, b = b, runs.following[b]
            if tail >= 0:
                runs.following[tail] = taken
            else:
                runs.first[c, s] = taken
            tail = taken
        if tail >= 0:
            runs.following[tail] = NONE
        runs.first[d, s] = NONE
    measure_inplace(values, runs, c)
