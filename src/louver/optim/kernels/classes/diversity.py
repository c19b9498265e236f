"""Which classes may be published: l-diversity and t-closeness of sensitive columns, and matches in a population.

A class is judged by how often each value of each sensitive column occurs in it, among the records that have one. All requirements are
closed under uniting classes: distinct values only grow, entropy is concave, earth mover's distances are convex, a larger region matches
more of the population, and what recursive diversity compares is subadditive (`excess`).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from louver.optim.kernels import inner, kernel
from louver.optim.kernels.classes.loss import contains

__all__ = [
    "EQUAL",
    "ORDERED",
    "TREE_DISTANCE",
    "Requirements",
    "count_inplace",
    "distance",
    "excess",
    "excess_of",
    "has_matches",
    "insert_top_inplace",
    "is_diverse",
    "lack",
    "n_known",
    "n_sensitive_values",
    "variety",
]

EQUAL, ORDERED, TREE_DISTANCE = 0, 1, 2
ROUNDING = 1e-12
"""Relative error with which c times a number of records may be rounded."""
SLACK = 1e-12
"""Tolerance for rounding in entropies and distances, far below what `verify` allows."""

# The requirements on each sensitive column are one array of numbers, for the reason given in the loss
# kernels: the number of columns, N_LIMITS numbers for each of them, then the tables they point to.
N_LIMITS = 9
START, STOP = 1, 2
"""Where the values of the column start in arrays over all values."""
LEAST_DISTINCT = 3
"""Minimum number of distinct values; 0 for no requirement."""
LEAST_ENTROPY = 4
"""Minimum entropy, in nats; negative for no requirement."""
FARTHEST = 5
"""Maximum distance from the whole table; negative for no requirement."""
DISTANCE = 6
TABLES = 7
"""Where the shares of its values in the whole table start; for TREE_DISTANCE the node above value a at height h stands
(h + 1) * values + a further on."""
LEVELS = 8
RATIO = 9
"""c of recursive (c, l)-diversity, whose l is at LEAST_DISTINCT; negative for no requirement."""


class Requirements(NamedTuple):
    """Requirements on every class, apart from its size.

    Attributes
    ----------
    sensitive : int32 (n, s)
        Codes of the s sensitive columns; -1 for a missing value, which does not count as a value.
    limits : float64
        Requirements on the sensitive columns.
    population : int32 (p, m)
        Codes of the population's quasi-identifiers; no rows where none is given. Ascending in column `key`.
    multiplicity : int64 (p,)
        How many people each row of the population stands for.
    matches : int64
        Number of people in the population who must match a class; 0 without a population.
    key : int64
        A column of intervals without missing values, by which people are looked up; -1 where there is none.
    """

    sensitive: NDArray[np.int32]
    limits: NDArray[np.float64]
    population: NDArray[np.int32]
    multiplicity: NDArray[np.int64]
    matches: np.int64
    key: np.int64


@kernel
def n_sensitive_values(limits):
    """Total number of values of all sensitive columns."""
    n = np.int64(limits[0])
    return np.int64(limits[(n - 1) * N_LIMITS + STOP]) if n > 0 else np.int64(0)


@kernel
def count_inplace(limits, counts, codes, step):
    """Add a record's sensitive codes to the counts of a class, `step` times."""
    for s in range(codes.shape[0]):
        if codes[s] >= 0:
            counts[np.int64(limits[s * N_LIMITS + START]) + codes[s]] += step


@kernel
def n_known(limits, s, counts):
    """Records of a class that have a value in sensitive column s."""
    known = np.int64(0)
    for v in range(np.int64(limits[s * N_LIMITS + START]), np.int64(limits[s * N_LIMITS + STOP])):
        known += counts[v]
    return known


@kernel
def distance(limits, s, counts):
    """Earth mover's distance between a class and the whole table in sensitive column s; 0 if the class has no values."""
    field = s * N_LIMITS
    size = n_known(limits, s, counts)
    if size == 0:
        return 0.0
    first, last = np.int64(limits[field + START]), np.int64(limits[field + STOP])
    table, kind = np.int64(limits[field + TABLES]), limits[field + DISTANCE]
    n_values = last - first
    total = 0.0
    if kind == ORDERED:
        surplus = 0.0
        for v in range(n_values):
            surplus += counts[first + v] / size - limits[table + v]
            total += abs(surplus)
        return total / (n_values - 1 if n_values > 1 else 1)
    for v in range(n_values):
        total += abs(counts[first + v] / size - limits[table + v])
    if kind == EQUAL:
        return total / 2
    levels = np.int64(limits[field + LEVELS])
    surplus_of = np.empty(n_values)
    for h in range(levels - 1):
        surplus_of[:] = 0.0
        nodes = table + (h + 1) * n_values
        for v in range(n_values):
            surplus_of[np.int64(limits[nodes + v])] += counts[first + v] / size - limits[table + v]
        for v in range(n_values):
            total += abs(surplus_of[v])
    return total / (2 * levels)


@kernel
def variety(limits, s, counts):
    """Number of distinct values of a class in sensitive column s, and their entropy if required."""
    field = s * N_LIMITS
    is_entropy = limits[field + LEAST_ENTROPY] > 0
    size = n_known(limits, s, counts) if is_entropy else np.int64(0)
    n_distinct, entropy = 0, 0.0
    for v in range(np.int64(limits[field + START]), np.int64(limits[field + STOP])):
        if counts[v] > 0:
            n_distinct += 1
            if is_entropy:
                entropy -= counts[v] / size * np.log(counts[v] / size)
    return n_distinct, entropy


@inner
def insert_top_inplace(top, n):
    """Put a count into a list of the greatest counts, which descends."""
    at = top.shape[0] - 1
    if n <= top[at]:
        return
    while at > 0 and top[at - 1] < n:
        top[at] = top[at - 1]
        at -= 1
    top[at] = n


@inner
def excess_of(top, rank, ratio, size):
    """By how many records the commonest value exceeds `ratio` times the records of all values from the `rank`-th on; positive where it is
    too many.

    A commonest value with exactly the limit of records is one too many, and rounding errs on that side.
    """
    tail = size
    for place in range(rank - 1):
        tail -= top[place]
    return top[0] - ratio * (1 - ROUNDING) * tail


@kernel
def excess(limits, s, counts):
    """`excess_of` a class in sensitive column s; 0 where recursive diversity is not required.

    With counts r that sum to n it is r_1 - c (n - r_1 - ... - r_(l-1)), in which every sum of the greatest counts is subadditive over
    classes: a union of classes with no excess has none.
    """
    field = s * N_LIMITS
    if limits[field + RATIO] < 0:
        return 0.0
    rank = np.int64(limits[field + LEAST_DISTINCT])
    top = np.zeros(max(np.int64(1), rank - 1), np.int64)
    size = np.int64(0)
    for v in range(np.int64(limits[field + START]), np.int64(limits[field + STOP])):
        size += counts[v]
        insert_top_inplace(top, counts[v])
    return excess_of(top, rank, limits[field + RATIO], size)


@kernel
def is_diverse(limits, counts):
    """Whether a class with these counts of sensitive values may be published."""
    for s in range(np.int64(limits[0])):
        field = s * N_LIMITS
        n_distinct, entropy = variety(limits, s, counts)
        if n_distinct < limits[field + LEAST_DISTINCT] or entropy < limits[field + LEAST_ENTROPY] - SLACK:
            return False
        if excess(limits, s, counts) > 0:
            return False
        farthest = limits[field + FARTHEST]
        if farthest >= 0 and distance(limits, s, counts) > farthest + SLACK:
            return False
    return True


@kernel
def lack(limits, counts):
    """How far a class with these counts is from being diverse (0 if it is): missing values and entropy, excess distance and records."""
    total = 0.0
    for s in range(np.int64(limits[0])):
        field = s * N_LIMITS
        n_distinct, entropy = variety(limits, s, counts)
        total += max(0.0, limits[field + LEAST_DISTINCT] - n_distinct)
        if entropy < limits[field + LEAST_ENTROPY] - SLACK:
            total += limits[field + LEAST_ENTROPY] - entropy
        total += max(0.0, excess(limits, s, counts)) / max(1, n_known(limits, s, counts))
        farthest = limits[field + FARTHEST]
        if farthest >= 0:
            beyond = distance(limits, s, counts) - farthest
            total += beyond if beyond > SLACK else 0.0
    return total


@kernel
def has_matches(requirements, geometry, lower, upper, words):
    """Whether enough of the population matches a region."""
    found = np.int64(0)
    first, last, key = 0, requirements.population.shape[0], requirements.key
    if key >= 0:
        first = np.searchsorted(requirements.population[:, key], lower[key], side="left")
        last = np.searchsorted(requirements.population[:, key], upper[key], side="right")
    for p in range(first, last):
        if contains(geometry, lower, upper, words, requirements.population[p]):
            found += requirements.multiplicity[p]
            if found >= requirements.matches:
                return True
    return found >= requirements.matches
