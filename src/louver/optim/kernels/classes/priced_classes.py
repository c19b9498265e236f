"""Classes that cost less than the prices of their records, found near each record: the basis of a lower bound for large files.

Every point (equal records) has a price. Prices under which every class of k records or more loses at least the prices of its records
prove that every partition loses at least the sum of all prices. `set_partitioning` lists such classes among all points, for dozens of
records; here the search is cut off by distance, so that it serves tens of thousands.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from louver.optim.kernels import kernel
from louver.optim.kernels.classes.loss import add_inplace, clear_inplace, n_words, spread_with
from louver.optim.kernels.classes.record_tree import NUMBER_BITS, NUMBER_MASK

__all__ = ["cheapest_classes", "fit_prices_inplace"]

FAR = np.int64(2**62)


class Branches(NamedTuple):
    """Workspace of a depth-first search; row d belongs to a class of d + 1 records.

    Attributes
    ----------
    point, width, price, spare : int64 (depths, points)
        Points that may follow, by ascending loss per record (`width`) of the class with each; their prices, and the number of records left
        of each.
    bound, order : int64 (depths, points)
        Least reduced cost of a class that ends with a point and otherwise takes earlier points; the points by ascending bound.
    lower, upper : int32 (depths, m)
    words : uint64 (depths, words)
        Regions of the classes.
    chosen, value, spread, n, at : int64 (depths,)
        The record added, the sum of prices, the loss per record, the number of points that may follow, and how many of them have been
        followed.
    top : int64 (depths,)
        Workspace of `bound_endings_inplace`.
    """

    point: NDArray[np.int64]
    width: NDArray[np.int64]
    price: NDArray[np.int64]
    spare: NDArray[np.int64]
    bound: NDArray[np.int64]
    order: NDArray[np.int64]
    lower: NDArray[np.int32]
    upper: NDArray[np.int32]
    words: NDArray[np.uint64]
    chosen: NDArray[np.int64]
    value: NDArray[np.int64]
    spread: NDArray[np.int64]
    n: NDArray[np.int64]
    at: NDArray[np.int64]
    top: NDArray[np.int64]


@kernel
def new_branches(depths, n_points, m, words):
    """Workspace for classes of up to `depths` records."""
    return Branches(
        np.empty((depths, n_points), np.int64), np.empty((depths, n_points), np.int64),
        np.empty((depths, n_points), np.int64), np.empty((depths, n_points), np.int64),
        np.empty((depths, n_points), np.int64), np.empty((depths, n_points), np.int64),
        np.empty((depths, m), np.int32), np.empty((depths, m), np.int32), np.empty((depths, words), np.uint64),
        np.empty(depths, np.int64), np.empty(depths, np.int64), np.empty(depths, np.int64),
        np.empty(depths, np.int64), np.empty(depths, np.int64), np.empty(depths, np.int64),
    )  # fmt: skip


@kernel
def least_ending(width, price, spare, size, value, top, n_top, least, most):
    """The least reduced cost of classes that extend `size` records worth `value` by a record of a point, or more, and others at `top`
    prices.

    Every such class loses at least `width` per record; for a given size, the dearest records give the least reduced cost.
    """
    size, value = size + 1, value + price
    best = size * width - value if size >= least else FAR
    own, t = spare - 1, 0
    while size < most:
        if own > 0 and (t >= n_top or price >= top[t]):
            further = price
            own -= 1
        elif t < n_top:
            further = top[t]
            t += 1
        else:
            break
        if size >= least and further <= width:
            break
        size += 1
        value += further
        if size >= least:
            best = min(best, size * width - value)
    return best


@kernel
def bound_endings_inplace(branches, depth, least, most):
    """For every point that may follow: the least reduced cost of classes that take it and otherwise earlier points."""
    size, value, room, n_top = depth + 1, branches.value[depth], most - depth - 1, 0
    top = branches.top
    for c in range(branches.n[depth]):
        width, price, spare = branches.width[depth, c], branches.price[depth, c], branches.spare[depth, c]
        branches.bound[depth, c] = least_ending(width, price, spare, size, value, top, n_top, least, most)
        for _ in range(min(spare, room)):
            if n_top == room:
                if price <= top[n_top - 1]:
                    break
                n_top -= 1
            at = n_top
            while at > 0 and top[at - 1] < price:
                top[at] = top[at - 1]
                at -= 1
            top[at] = price
            n_top += 1


@kernel
def start_inplace(branches, geometry, codes, multiplicity, prices, ranked, place, near, reach, far):
    """Start at the head ranked[place] with the points ranked after it that are nearer than its price.

    A class that holds a point as far away as its price loses more per record than the price of any of its records.
    """
    head = ranked[place]
    clear_inplace(branches.lower[0], branches.upper[0], branches.words[0])
    add_inplace(geometry, branches.lower[0], branches.upper[0], branches.words[0], codes[head])
    branches.chosen[0], branches.value[0], branches.spread[0], branches.at[0] = head, prices[head], 0, 0
    n = 0
    if reach >= prices[head]:
        for key in near:
            c = key & NUMBER_MASK
            if c >= ranked.shape[0] or key >> NUMBER_BITS >= prices[head]:
                break
            if prices[c] < prices[head] or (prices[c] == prices[head] and c > head):
                far[n] = key
                n += 1
    else:
        for later in range(place + 1, ranked.shape[0]):
            c = ranked[later]
            width = spread_with(geometry, branches.lower[0], branches.upper[0], branches.words[0], codes[c])
            if width < prices[head]:
                far[n] = (width << NUMBER_BITS) | c
                n += 1
        far[:n].sort()
    first = 0
    if multiplicity[head] > 1:
        branches.point[0, 0], branches.width[0, 0], branches.price[0, 0] = head, 0, prices[head]
        branches.spare[0, 0] = multiplicity[head] - 1
        first = 1
    for i in range(n):
        c = far[i] & NUMBER_MASK
        branches.point[0, first + i], branches.width[0, first + i] = c, far[i] >> NUMBER_BITS
        branches.price[0, first + i], branches.spare[0, first + i] = prices[c], multiplicity[c]
    branches.n[0] = first + n


@kernel
def follow_inplace(branches, geometry, codes, depth, c):
    """Add a record of the point at c to the class; earlier points, and the remaining records of this one, may follow."""
    below = depth + 1
    branches.lower[below], branches.upper[below] = branches.lower[depth], branches.upper[depth]
    branches.words[below] = branches.words[depth]
    add_inplace(
        geometry, branches.lower[below], branches.upper[below], branches.words[below], codes[branches.chosen[below]]
    )  # fmt: skip
    n = 0
    for e in range(c + 1):
        spare = branches.spare[depth, e] - (1 if e == c else 0)
        if spare > 0:
            point = branches.point[depth, e]
            branches.point[below, n], branches.spare[below, n] = point, spare
            branches.price[below, n] = branches.price[depth, e]
            branches.width[below, n] = spread_with(
                geometry, branches.lower[below], branches.upper[below], branches.words[below], codes[point]
            )
            n += 1
    order = np.argsort(branches.width[below, :n], kind="mergesort")
    branches.point[below, :n] = branches.point[below, :n][order]
    branches.spare[below, :n] = branches.spare[below, :n][order]
    branches.price[below, :n] = branches.price[below, :n][order]
    branches.width[below, :n] = branches.width[below, :n][order]
    branches.n[below], branches.at[below] = n, 0


@kernel
def search_head(branches, geometry, codes, least, most, limit, max_nodes, out, out_cost, n_found, stop):
    """List ever cheaper classes with the head in row 0; returns a lower bound on the reduced cost of all classes, and the number listed.

    Classes whose reduced cost is between the limit (at most 0) and 0 are not sought; the bound accounts for them, and for all that a search
    stopped at `max_nodes` has not examined.
    """
    bound_endings_inplace(branches, 0, least, most)
    lowest, best, n_nodes, depth = np.int64(0), limit, 0, 0
    while branches.n[0] > 0 and branches.bound[0, branches.n[0] - 1] >= limit:
        lowest = min(lowest, branches.bound[0, branches.n[0] - 1])
        branches.n[0] -= 1
    branches.order[0, : branches.n[0]] = np.argsort(branches.bound[0, : branches.n[0]], kind="mergesort")
    while depth >= 0:
        if branches.at[depth] == branches.n[depth]:
            depth -= 1
            continue
        c = branches.order[depth, branches.at[depth]]
        if branches.bound[depth, c] >= best or n_nodes >= max_nodes or stop[0] != 0:
            # The bounds of all later points are at least as high.
            lowest = min(lowest, branches.bound[depth, c])
            depth -= 1
            continue
        n_nodes += 1
        branches.at[depth] += 1
        below = depth + 1
        size = below + 1
        branches.chosen[below] = branches.point[depth, c]
        branches.value[below] = branches.value[depth] + branches.price[depth, c]
        branches.spread[below] = branches.width[depth, c]
        reduced = size * branches.spread[below] - branches.value[below]
        if size >= least:
            lowest = min(lowest, reduced)
        if size >= least and reduced < best:
            best = reduced
            if n_found < out.shape[0]:
                out[n_found, 0] = size
                for t in range(size):
                    out[n_found, 1 + t] = branches.chosen[t]
                out_cost[n_found] = size * branches.spread[below]
                n_found += 1
        if size == most:
            continue
        follow_inplace(branches, geometry, codes, depth, c)
        bound_endings_inplace(branches, below, least, most)
        n = branches.n[below]
        branches.order[below, :n] = np.argsort(branches.bound[below, :n], kind="mergesort")
        depth = below
    return lowest, n_found


@kernel
def cheapest_classes(
    geometry, codes, multiplicity, prices, ranked, places, keys, reach, least, most, slack, max_nodes, out, out_cost, stop
):  # fmt: skip
    """For each of the given heads, classes of negative reduced cost, and a lower bound on the reduced cost of all its classes.

    A class belongs to the first of its points in the ranking by descending price: its head.

    Parameters
    ----------
    geometry : int64
    codes : int32 (p, m)
    multiplicity, prices : int64 (p,)
        Records of each point, and the price of one.
    ranked : int64 (p,)
        Points by descending price; where prices are equal, by number.
    places : int64 (h,)
        Places of the heads among them.
    keys : int64 (p, l)
        Neighbours of every point, as `nearest` returns them.
    reach : int64 (p,)
        Points that are not listed are no nearer than this.
    least, most : int
        Records of a class.
    slack : int64 (p,)
        Classes of a head whose reduced cost is no lower than minus this are not sought.
    max_nodes : int
        Nodes of the search for each head.
    out : int32 (capacity, most + 1)
        Number of records, then the points, of each class; what does not fit is not listed.
    out_cost : int64 (capacity,)
        Their losses.
    stop : uint8 (1,)

    Returns
    -------
    int64 (h,) : at most 0
    Number of classes listed.

    Notes
    -----
    Depth-first search. The loss per record of a class only grows as records are added, so candidates are sorted by the loss per record of
    the class with each (its width), and the classes of a node are divided by their last candidate in this order: they lose at least its
    width per record, and the prices of the other candidates are at most the greatest before it (`least_ending`).
    """
    p, m = codes.shape
    branches = new_branches(most, p + 1, m, n_words(geometry, m))
    far = np.empty(p, np.int64)
    lowest = np.zeros(places.shape[0], np.int64)
    n_found = 0
    for h in range(places.shape[0]):
        head = ranked[places[h]]
        if prices[head] <= 0:
            continue
        start_inplace(
            branches, geometry, codes, multiplicity, prices, ranked, places[h], keys[head], reach[head], far
        )
        lowest[h], n_found = search_head(
            branches, geometry, codes, least, most, -slack[head], max_nodes, out, out_cost, n_found, stop
        )
    return lowest, n_found


@kernel
def fit_prices_inplace(start, member, cost, multiplicity, most, prices, use, n_rounds, stop):
    """Approximately the prices with the greatest total under which no listed class costs less than the prices of its records.

    Parameters
    ----------
    start : int64 (c + 1,)
        Where the members of each class start.
    member : int64
        Points, as often as the class takes records of them.
    cost : float64 (c,)
        Losses.
    multiplicity, most : float64 (p,)
        Records of each point, and the highest price to be tried.
    prices : float64 (p,)
        Start and answer.
    use : float64 (c,)
        How often each class is used: start and answer.

    Notes
    -----
    Primal-dual steps of Pock and Chambolle (2011), with their diagonal steps (alpha = 1), for the linear program "maximise multiplicity x
    prices, so that the prices of no class exceed its cost". Costs and prices have to be near 1. Nothing is proved here.
    """
    p, n_classes = prices.shape[0], cost.shape[0]
    listed, used, after = np.zeros(p), np.zeros(p), np.empty(p)
    for c in range(n_classes):
        for e in range(start[c], start[c + 1]):
            listed[member[e]] += 1.0
            used[member[e]] += use[c]
    for _ in range(n_rounds):
        if stop[0] != 0:
            return
        for i in range(p):
            step = (multiplicity[i] - used[i]) / max(listed[i], 1.0)
            after[i] = min(max(prices[i] + step, 0.0), most[i])
        used[:] = 0.0
        for c in range(n_classes):
            excess = -cost[c]
            for e in range(start[c], start[c + 1]):
                excess += 2 * after[member[e]] - prices[member[e]]
            use[c] = max(0.0, use[c] + excess / (start[c + 1] - start[c]))
            if use[c] > 0.0:
                for e in range(start[c], start[c + 1]):
                    used[member[e]] += use[c]
        prices[:] = after
