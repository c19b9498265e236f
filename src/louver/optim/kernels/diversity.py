"""Which classes may be published: l-diversity and t-closeness of sensitive columns, and matches in a population.

A class is judged by how often each value of each sensitive column occurs in it. All requirements are closed under
uniting classes: distinct values only grow, entropy is concave, earth mover's distances are convex, and a larger region
matches more of the population.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from louver.optim.kernels import kernel
from louver.optim.kernels.loss import contains

__all__ = ["EQUAL", "ORDERED", "TREE_DISTANCE", "Requirements", "distance", "has_matches", "is_diverse"]

EQUAL, ORDERED, TREE_DISTANCE = 0, 1, 2
SLACK = 1e-12
"""Room for rounding in entropies and distances, far below what `verify` allows."""


class Requirements(NamedTuple):
    """What every class must meet, but for its size.

    Attributes
    ----------
    sensitive : int32 (n, s)
        Codes of the s sensitive columns.
    start : int64 (s + 1,)
        Where the values of each column start in arrays over all values.
    least_distinct : int64 (s,)
        Distinct values needed; 0 asks for nothing.
    least_entropy : float64 (s,)
        Entropy needed, in nats; negative asks for nothing.
    farthest : float64 (s,)
        Distance allowed from `reference`; negative asks for nothing.
    distance : int64 (s,)
    reference : float64 (values,)
        Share of each value in the whole table.
    tree_start, tree_levels : int64 (s,)
        TREE_DISTANCE: node above value a at height h is `node[start + h * values + a]`.
    node : int64
    population : int32 (p, m)
        Codes of the population's quasi-identifiers; no rows where none is given.
    multiplicity : int64 (p,)
        How many people each row of the population stands for.
    matches : int64
        People of the population who must match a class.
    """

    sensitive: NDArray[np.int32]
    start: NDArray[np.int64]
    least_distinct: NDArray[np.int64]
    least_entropy: NDArray[np.float64]
    farthest: NDArray[np.float64]
    distance: NDArray[np.int64]
    reference: NDArray[np.float64]
    tree_start: NDArray[np.int64]
    tree_levels: NDArray[np.int64]
    node: NDArray[np.int64]
    population: NDArray[np.int32]
    multiplicity: NDArray[np.int64]
    matches: np.int64


@kernel
def distance(requirements, s, counts, size):
    """Earth mover's distance between a class and the whole table in sensitive column s."""
    first, last = requirements.start[s], requirements.start[s + 1]
    n_values = last - first
    total = 0.0
    if requirements.distance[s] == ORDERED:
        surplus = 0.0
        for v in range(first, last):
            surplus += counts[v] / size - requirements.reference[v]
            total += abs(surplus)
        return total / max(1, n_values - 1)
    for v in range(first, last):
        total += abs(counts[v] / size - requirements.reference[v])
    if requirements.distance[s] == EQUAL:
        return total / 2
    levels = requirements.tree_levels[s]
    surplus_of = np.zeros(n_values)
    for h in range(levels - 1):
        surplus_of[:] = 0.0
        place = requirements.tree_start[s] + h * n_values
        for v in range(n_values):
            surplus_of[requirements.node[place + v]] += (
                counts[first + v] / size - requirements.reference[first + v]
            )
        for v in range(n_values):
            total += abs(surplus_of[v])
    return total / (2 * levels)


@kernel
def is_diverse(requirements, counts, size):
    """Whether a class of `size` records with these counts of sensitive values may be published."""
    for s in range(requirements.start.shape[0] - 1):
        first, last = requirements.start[s], requirements.start[s + 1]
        n_distinct = 0
        entropy = 0.0
        for v in range(first, last):
            if counts[v] > 0:
                n_distinct += 1
                entropy -= counts[v] / size * np.log(counts[v] / size)
        if n_distinct < requirements.least_distinct[s]:
            return False
        if entropy < requirements.least_entropy[s] - SLACK:
            return False
        if (
            requirements.farthest[s] >= 0
            and distance(requirements, s, counts, size) > requirements.farthest[s] + SLACK
        ):
            return False
    return True


@kernel
def has_matches(requirements, geometry, lower, upper, words):
    """Whether enough of the population matches a region."""
    found = np.int64(0)
    for p in range(requirements.population.shape[0]):
        if contains(geometry, lower, upper, words, requirements.population[p]):
            found += requirements.multiplicity[p]
            if found >= requirements.matches:
                return True
    return found >= requirements.matches
