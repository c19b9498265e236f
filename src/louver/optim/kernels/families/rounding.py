"""Round the counts of a parent's children to integers, as closely as the constraints allow.

Every count becomes its floor or one more. Cell by cell the children must add up to the parent, and the type counts of each child must stay
in its polymatroid. Because the number of counts rounded up is fixed, the L1 distance is least where the sum of the fractions rounded up is
largest.

First each cell gives its units to the largest fractions. That is optimal if the children's bounds are ignored, so the numbers they then
hold of each type (`held`) may violate the bounds; `target` is the nearest admissible vector. The excess is then carried, one person at a
time, along shortest paths: a step moves a person of a cell to another child, at the price of the fractions, or exchanges two types within a
child's target at no cost. This is the successive shortest path method for submodular flows; paths with the fewest steps among the shortest
keep every target admissible.

Fractions are compared as integers, 2^20 steps to a person, ties within a step by a public hash of the child
and the cell, so that the answer is the same whatever the method and the order.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from louver.optim.kernels import inner, kernel
from louver.optim.kernels.families.polymatroid import exchange_masks_inplace, is_member, nearest_inplace

__all__ = ["FAILED", "ROUNDED", "RoundingProblem", "rank_of", "round_family_inplace", "split_count"]

ROUNDED = 0
FAILED = 1

FRACTION_STEPS = 1 << 20
SNAP = 1e-6  # in persons: counts this close to an integer are snapped to it
FAR_AWAY = np.int64(1 << 62)


class RoundingProblem(NamedTuple):
    """One family: real counts (n, m), which of them may be positive, parent (n,), type of each cell.

    Bounds are restricted to the types in keep[c], as `restrict_inplace` leaves them.
    """

    counts: np.ndarray
    is_open: np.ndarray
    parent: np.ndarray
    rank: np.ndarray
    type_of: np.ndarray
    n_types: int
    is_bounded: bool
    keep: np.ndarray
    lower: np.ndarray
    upper: np.ndarray


@inner
def rank_of(fraction, node, cell):
    """The fraction in steps, ties broken by a hash (splitmix64) of the node and the cell."""
    x = np.uint64(node) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(cell) * np.uint64(0xD1B54A32D192ED03)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    x = x ^ (x >> np.uint64(31))
    return np.int64(round(fraction * FRACTION_STEPS)) * (1 << 20) + np.int64(x >> np.uint64(44))


@inner
def split_count(x):
    """Floor and fraction of a count, near-integers snapped."""
    nearest = np.floor(x + 0.5)
    if abs(x - nearest) <= SNAP:
        return np.int64(nearest), 0.0
    floor = np.floor(x)
    return np.int64(floor), x - floor


@kernel
def _largest_first_inplace(family, floor, is_up, potential):
    """Each cell rounds up its largest ranks; False where it has more units than counts to round up."""
    n, m = family.counts.shape
    negative = np.empty(m, np.int64)
    for i in range(n):
        left = family.parent[i]
        n_open = 0
        for c in range(m):
            left -= floor[i, c]
            is_up[i, c] = False
            if family.is_open[i, c]:
                n_open += 1
        if left < 0 or left > n_open:
            return False
        for c in range(m):
            negative[c] = -family.rank[i, c]
        order = np.argsort(negative)
        taken, last, next_rank = 0, np.int64(0), np.int64(-1)
        for c in order:
            if not family.is_open[i, c]:
                continue
            if taken < left:
                is_up[i, c] = True
                last = family.rank[i, c]
                taken += 1
            else:
                next_rank = family.rank[i, c]
                break
        # A potential between the last rank taken and the next one, so that all steps through this cell cost at least 0.
        potential[i] = last if taken > 0 else next_rank
    return True


@inner
def _own_bits_inplace(keep, n_types, own):
    """Set own[j] to the type that bit j of the restricted masks stands for; returns how many there are."""
    k = 0
    for t in range(n_types):
        if keep >> t & 1:
            own[k] = t
            k += 1
    return k


@kernel
def _targets_inplace(family, held, target, excess, allow):
    """The admissible vectors nearest to what the children hold, and the excess of what they hold."""
    m, n_types = held.shape
    own = np.empty(n_types, np.int64)
    wanted = np.empty(n_types, np.int64)
    out = np.empty(n_types, np.int64)
    is_done = True
    for c in range(m):
        k = _own_bits_inplace(family.keep[c], n_types, own)
        for j in range(k):
            wanted[j] = held[c, own[j]]
        nearest_inplace(family.lower[c], family.upper[c], k, wanted, out, allow[c])
        for j in range(k):
            target[c, own[j]] = out[j]
            excess[c * n_types + own[j]] = wanted[j] - out[j]
            is_done = is_done and wanted[j] == out[j]
    return is_done


@inner
def _push(heap, size, distance, hops, node):
    """Add to a binary heap of (distance, hops, node) rows."""
    i = size
    while i > 0:
        up = (i - 1) // 2
        if heap[up, 0] < distance or (heap[up, 0] == distance and heap[up, 1] <= hops):
            break
        heap[i, 0], heap[i, 1], heap[i, 2] = heap[up, 0], heap[up, 1], heap[up, 2]
        i = up
    heap[i, 0], heap[i, 1], heap[i, 2] = distance, hops, node
    return size + 1


@inner
def _pop(heap, size):
    """Remove the first row; the caller has read it."""
    size -= 1
    distance, hops, node = heap[size, 0], heap[size, 1], heap[size, 2]
    i = 0
    while True:
        child = 2 * i + 1
        if child >= size:
            break
        if child + 1 < size and (
            heap[child + 1, 0] < heap[child, 0]
            or (heap[child + 1, 0] == heap[child, 0] and heap[child + 1, 1] < heap[child, 1])
        ):
            child += 1
        if distance < heap[child, 0] or (distance == heap[child, 0] and hops <= heap[child, 1]):
            break
        heap[i, 0], heap[i, 1], heap[i, 2] = heap[child, 0], heap[child, 1], heap[child, 2]
        i = child
    heap[i, 0], heap[i, 1], heap[i, 2] = distance, hops, node
    return size


@inner
def _arcs(family, is_up, allow, node, target_node, cost):
    """Steps that lead out of a node: fills in their ends and costs, and returns their number.

    Nodes are child x type, then the cells, then the ground.
    """
    n, m = family.counts.shape
    n_types = family.n_types
    ground = m * n_types + n
    count = 0
    if node < m * n_types:
        c, t = node // n_types, node % n_types
        place = 0
        for other in range(t):
            place += family.keep[c] >> other & 1
        mask = allow[c, place]
        j = 0
        for other in range(n_types):
            if family.keep[c] >> other & 1:
                if other != t and mask >> j & 1:
                    target_node[count], cost[count] = c * n_types + other, 0
                    count += 1
                j += 1
        if mask >> j & 1:
            target_node[count], cost[count] = ground, 0
            count += 1
        for i in range(n):
            if is_up[i, c] and family.type_of[i] == t:
                target_node[count], cost[count] = m * n_types + i, family.rank[i, c]
                count += 1
    elif node < ground:
        i = node - m * n_types
        for c in range(m):
            if family.is_open[i, c] and not is_up[i, c]:
                target_node[count], cost[count] = c * n_types + family.type_of[i], -family.rank[i, c]
                count += 1
    else:
        for c in range(m):
            j = 0
            for t in range(n_types):
                j += family.keep[c] >> t & 1
            mask = allow[c, j]
            j = 0
            for t in range(n_types):
                if family.keep[c] >> t & 1:
                    if mask >> j & 1:
                        target_node[count], cost[count] = c * n_types + t, 0
                        count += 1
                    j += 1
    return count


@inner
def _shortest_path(family, is_up, allow, excess, potential, work, heap):
    """The deficit nearest to any excess, -1 if there is none; the path is left in work[2] (each node's predecessor)."""
    distance, hops, before = work[0], work[1], work[2]
    target_node, cost = work[3], work[4]
    n_nodes = excess.shape[0]
    size = 0
    for node in range(n_nodes):
        distance[node], hops[node], before[node] = FAR_AWAY, 0, -1
        if excess[node] > 0:
            distance[node] = 0
            size = _push(heap, size, 0, 0, node)
    found = -1
    while size > 0 and found < 0:
        at, steps, node = heap[0, 0], heap[0, 1], heap[0, 2]
        size = _pop(heap, size)
        if at > distance[node] or (at == distance[node] and steps > hops[node]):
            continue
        if excess[node] < 0:
            found = node
            break
        for arc in range(_arcs(family, is_up, allow, node, target_node, cost)):
            other = target_node[arc]
            far = at + cost[arc] + potential[node] - potential[other]
            if far < distance[other] or (far == distance[other] and steps + 1 < hops[other]):
                distance[other], hops[other], before[other] = far, steps + 1, node
                size = _push(heap, size, far, steps + 1, other)
    if found >= 0:
        for node in range(n_nodes):
            if distance[node] < distance[found]:
                potential[node] += distance[node] - distance[found]
    return found


@kernel
def _augment_inplace(family, found, before, is_up, target, excess):
    """Carry one person along the path; returns a mask array of the children whose target changed."""
    n, m = family.counts.shape
    n_types = family.n_types
    n_pairs, ground = m * n_types, m * n_types + n
    is_changed = np.zeros(m, np.bool_)
    node = found
    excess[node] += 1
    while before[node] >= 0:
        source = before[node]
        if n_pairs <= node < ground:
            is_up[node - n_pairs, source // n_types] = False
        elif n_pairs <= source < ground:
            is_up[source - n_pairs, node // n_types] = True
        else:
            if source < n_pairs:
                target[source // n_types, source % n_types] += 1
                is_changed[source // n_types] = True
            if node < n_pairs:
                target[node // n_types, node % n_types] -= 1
                is_changed[node // n_types] = True
        node = source
    excess[node] -= 1
    return is_changed


@kernel
def _refresh_inplace(family, c, target, allow):
    """Exchanges of a child after its target changed; False where the target is not admissible."""
    own = np.empty(family.n_types, np.int64)
    counts = np.empty(family.n_types, np.int64)
    k = _own_bits_inplace(family.keep[c], family.n_types, own)
    for j in range(k):
        counts[j] = target[c, own[j]]
    exchange_masks_inplace(family.lower[c], family.upper[c], k, counts, allow[c])
    return is_member(family.lower[c], family.upper[c], k, counts)


@inner
def _total(values):
    """Sum of whole numbers."""
    total = 0
    for i in range(values.shape[0]):
        total += values[i]
    return total


@inner
def _most(values):
    """The greatest of whole numbers, or 0."""
    most = 0
    for i in range(values.shape[0]):
        most = max(most, values[i])
    return most


@kernel
def round_family_inplace(family, out):
    """Round one family into `out` (n, m); returns a status and the number of persons carried."""
    n, m = family.counts.shape
    n_types = family.n_types
    floor = np.empty((n, m), np.int64)
    for i in range(n):
        for c in range(m):
            floor[i, c] = split_count(family.counts[i, c])[0]
    is_up = np.empty((n, m), np.bool_)
    n_nodes = m * n_types + n + 1
    potential = np.zeros(n_nodes, np.int64)
    if not _largest_first_inplace(family, floor, is_up, potential[m * n_types : n_nodes - 1]):
        return FAILED, 0
    n_carried = 0
    if family.is_bounded:
        held = np.zeros((m, n_types), np.int64)
        for i in range(n):
            for c in range(m):
                held[c, family.type_of[i]] += floor[i, c] + (1 if is_up[i, c] else 0)
        target = np.zeros((m, n_types), np.int64)
        excess = np.zeros(n_nodes, np.int64)
        allow = np.zeros((m, n_types + 1), np.int64)
        if not _targets_inplace(family, held, target, excess, allow):
            excess[n_nodes - 1] = -_total(excess)
            work = np.empty((5, max(n_nodes, n + m * (n_types + 1))), np.int64)
            heap = np.empty((n * m + m * n_types * (n_types + 2) + n_nodes, 3), np.int64)
            while _most(excess) > 0:
                found = _shortest_path(family, is_up, allow, excess, potential, work, heap)
                if found < 0:
                    return FAILED, n_carried
                is_changed = _augment_inplace(family, found, work[2], is_up, target, excess)
                n_carried += 1
                for c in range(m):
                    if is_changed[c] and not _refresh_inplace(family, c, target, allow):
                        return FAILED, n_carried
    for i in range(n):
        for c in range(m):
            out[i, c] = floor[i, c] + (1 if is_up[i, c] else 0)
    return ROUNDED, n_carried
