"""Simulated annealing of classes: records move and are exchanged, classes are dissolved and founded.

A change that costs `change` units is made if change <= temperature * E with E exponentially distributed, which is the
rule of Metropolis.

The classes are worked on in pieces, each copied to a `DraftPartition` of its own, so that pieces may run at the same time and the
outcome depends neither on their timing nor on their number of threads. The random numbers steer a search and do not protect
anyone: a fixed xorshift stream per piece and round.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from louver.optim.kernels import inner, kernel
from louver.optim.kernels.classes.diversity import count_inplace, lack, n_sensitive_values
from louver.optim.kernels.classes.draft_partition import (
    CORE,
    FIRST,
    HEAD,
    LABEL,
    LOSS,
    N_NEAR,
    N_SPARE,
    NEXT,
    NOBODY,
    POINT,
    QUOTA,
    SIZE,
    DraftPartition,
    enter_inplace,
    has_room,
    is_allowed,
    is_core,
    join_change,
    join_inplace,
    leave_inplace,
    link_inplace,
    loss_exchanged,
    loss_without,
    refresh_inplace,
    settle_inplace,
    unite_inplace,
    unlink_inplace,
)
from louver.optim.kernels.classes.loss import n_words

__all__ = ["Scene", "anneal_piece_inplace"]

OWN_POINT = 2
"""One partner in this many is sought among the records of the same point."""
DISSOLVE, FOUND, LEAVE_OUT = 32, 8, 16
"""One step in this many tries to dissolve the class, to found a new one, or to leave the record out."""
COPIES = 6
"""Records of a neighbouring point that are considered for a new class."""
QUANTILES = -np.log((np.arange(512) + 0.5) / 512)
"""Quantiles of the exponential distribution."""


class Scene(NamedTuple):
    """What stays the same while classes are improved, as in a `DraftPartition`; n records, p points.

    Attributes
    ----------
    geometry : int64
    limits : float64
    codes : int32 (n, a)
    others : int32 (n, b)
    sensitive : int32 (n, s)
    point_of : int32 (n,)
        Point of each record, ascending.
    near : int32 (p, l)
        Nearest other points, nearest first.
    least_size, full : int64
    is_free : bool
    """

    geometry: NDArray[np.int64]
    limits: NDArray[np.float64]
    codes: NDArray[np.int32]
    others: NDArray[np.int32]
    sensitive: NDArray[np.int32]
    point_of: NDArray[np.int32]
    near: NDArray[np.int32]
    least_size: np.int64
    full: np.int64
    is_free: np.bool_


@inner
def random_bits(state):
    """The next 64 bits of a xorshift stream."""
    bits = state[0]
    bits ^= bits << np.uint64(13)
    bits ^= bits >> np.uint64(7)
    bits ^= bits << np.uint64(17)
    state[0] = bits
    return bits


@inner
def random_below(state, n):
    """A whole number below n (n < 2**31)."""
    return np.int64(((random_bits(state) >> np.uint64(32)) * np.uint64(n)) >> np.uint64(32))


@inner
def partner_of(draft, x, state):
    """A record near x: of the same point, or of a neighbouring one, the nearer the likelier; x itself if there is no other."""
    points = draft.points
    p = np.int64(draft.records[x, POINT])
    q, n_near = p, points[p, N_NEAR]
    is_single = points[p + 1, FIRST] - points[p, FIRST] == 1
    if n_near > 0 and (is_single or random_below(state, OWN_POINT) > 0):
        share = np.float64(random_bits(state) >> np.uint64(11)) * 2.0**-53
        q = np.int64(draft.near[p, np.int64(n_near * share * share * share)])
    first = np.int64(points[q, FIRST])
    return first + random_below(state, points[q + 1, FIRST] - first)


@inner
def move(draft, x, b, allowance):
    """Move record x to class b, or add a record that was left out to it."""
    a = np.int64(draft.records[x, LABEL])
    if not has_room(draft, b):
        return False
    if a == NOBODY:
        change = join_change(draft, b, x) - draft.full
        if change > allowance or not is_allowed(draft, b, NOBODY, x):
            return False
        draft.totals[QUOTA] += 1
        join_inplace(draft, b, x)
        return True
    if draft.classes[a, SIZE] <= draft.least_size:
        return False
    change = join_change(draft, b, x) - draft.classes[a, LOSS]
    if change > allowance:
        return False
    change += (draft.classes[a, SIZE] - 1) * loss_without(draft, a, x)
    if change > allowance:
        return False
    if not (is_allowed(draft, a, x, NOBODY) and is_allowed(draft, b, NOBODY, x)):
        return False
    leave_inplace(draft, a, x)
    join_inplace(draft, b, x)
    settle_inplace(draft, a)
    return True


@inner
def exchange(draft, x, b, allowance, state):
    """Exchange record x with a random record of class b."""
    a = np.int64(draft.records[x, LABEL])
    is_large_core = is_core(draft, b)
    y = draft.classes[b, HEAD]
    if not is_large_core:
        for _ in range(random_below(state, draft.classes[b, SIZE])):
            y = np.int64(draft.records[y, NEXT])
    elif draft.classes[b, SIZE] < 2 * draft.least_size:
        is_large_core = False
    if draft.records[x, POINT] == draft.records[y, POINT] and draft.is_free:
        return False
    change = draft.classes[a, SIZE] * loss_exchanged(draft, a, x, y) - draft.classes[a, LOSS]
    if change - draft.classes[b, LOSS] > allowance:
        return False
    if is_large_core:
        change += join_change(draft, b, x)
    else:
        change += draft.classes[b, SIZE] * loss_exchanged(draft, b, y, x) - draft.classes[b, LOSS]
    if change > allowance:
        return False
    if not (is_allowed(draft, a, x, y) and is_allowed(draft, b, y, x)):
        return False
    leave_inplace(draft, a, x)
    leave_inplace(draft, b, y)
    if is_large_core:
        join_inplace(draft, b, x)
    else:
        if is_core(draft, b):
            draft.points[draft.records[y, POINT], CORE] = NOBODY
        enter_inplace(draft, b, x)
        settle_inplace(draft, b)
    enter_inplace(draft, a, y)
    settle_inplace(draft, a)
    return True


@inner
def leave_out(draft, x, allowance):
    """Leave record x out of the release."""
    a = np.int64(draft.records[x, LABEL])
    if draft.totals[QUOTA] == 0 or draft.classes[a, SIZE] <= draft.least_size:
        return False
    change = (draft.classes[a, SIZE] - 1) * loss_without(draft, a, x) - draft.classes[a, LOSS] + draft.full
    if change > allowance or not is_allowed(draft, a, x, NOBODY):
        return False
    leave_inplace(draft, a, x)
    draft.records[x, LABEL] = NOBODY
    draft.totals[QUOTA] -= 1
    settle_inplace(draft, a)
    return True


@inner
def count_of(c, classes, n):
    """How often c occurs among the first n."""
    count = 0
    for i in range(n):
        count += classes[i] == c
    return count


@inner
def best_home(draft, a, x, n_taken, state):
    """The neighbouring class that record x costs least to join, apart from a and the targets so far, and that cost."""
    best, least = NOBODY, np.int64(2**62)
    points = draft.points
    p = np.int64(draft.records[x, POINT])
    for i in range(-1, points[p, N_NEAR]):
        q = p if i < 0 else np.int64(draft.near[p, i])
        c = np.int64(points[q, CORE])
        if c < 0:
            first = np.int64(points[q, FIRST])
            c = np.int64(draft.records[first + random_below(state, points[q + 1, FIRST] - first), LABEL])
        if c < 0 or c == a or not has_room(draft, c):
            continue
        change = join_change(draft, c, x)
        if change >= least:
            continue
        if (change > 0 or not draft.is_free) and count_of(c, draft.target, n_taken) > 0:
            continue
        if is_allowed(draft, c, NOBODY, x):
            best, least = c, change
            if change == 0:
                break
    return best, least


@inner
def dissolve(draft, a, allowance, state):
    """Distribute the records of class a over neighbouring classes, or leave some of them out."""
    size = draft.classes[a, SIZE]
    chosen, target = draft.chosen, draft.target
    if size > chosen.shape[0]:
        return False
    change = -draft.classes[a, LOSS]
    quota = draft.totals[QUOTA]
    x = draft.classes[a, HEAD]
    for i in range(size):
        c, cost = best_home(draft, a, x, i, state)
        if quota > 0 and draft.full < cost:
            c, cost = NOBODY, draft.full
            quota -= 1
        elif c == NOBODY:
            return False
        change += cost
        if change > allowance:
            return False
        chosen[i], target[i] = x, c
        x = np.int64(draft.records[x, NEXT])
    for i in range(size):
        unlink_inplace(draft, chosen[i])
        if target[i] == NOBODY:
            draft.records[chosen[i], LABEL] = NOBODY
        else:
            join_inplace(draft, target[i], chosen[i])
    draft.totals[QUOTA] = quota
    settle_inplace(draft, a)
    return True


@inner
def gather(draft, x):
    """Choose x and the nearest records that their classes can spare, until they may be a class; returns their number.

    Where classes have requirements other than size, a record is taken only if it brings the class nearer to them. If there is no such
    class, too few records are returned.
    """
    wanted, limits, counts = draft.least_size, draft.limits, draft.gathered
    chosen, target, points = draft.chosen, draft.target, draft.points
    chosen[0], target[0] = x, draft.records[x, LABEL]
    n, lacking = 1, 0.0
    if not draft.is_free:
        counts[:] = 0
        count_inplace(limits, counts, draft.sensitive[x], 1)
        lacking = lack(limits, counts)
    p = np.int64(draft.records[x, POINT])
    for i in range(-1, points[p, N_NEAR]):
        q = p if i < 0 else np.int64(draft.near[p, i])
        core = np.int64(points[q, CORE])
        if core >= 0:
            z = draft.classes[core, HEAD]
            for _ in range(min(draft.classes[core, SIZE] - wanted, wanted - n)):
                chosen[n], target[n] = z, core
                n += 1
                z = np.int64(draft.records[z, NEXT])
        for z in range(points[q, FIRST], min(points[q + 1, FIRST], points[q, FIRST] + COPIES)):
            if n >= wanted and lacking <= 0.0:
                return n
            if n == chosen.shape[0]:
                return 0
            c = draft.records[z, LABEL]
            if z == x or c < 0 or c == core or draft.classes[c, SIZE] - count_of(c, target, n) <= wanted:
                continue
            if not draft.is_free:
                count_inplace(limits, counts, draft.sensitive[z], 1)
                then = lack(limits, counts)
                if then > lacking or (then == lacking and lacking > 0.0):
                    count_inplace(limits, counts, draft.sensitive[z], -1)
                    continue
                lacking = then
            chosen[n], target[n] = z, c
            n += 1
    return n if lacking <= 0.0 else 0


@inner
def found(draft, x, allowance):
    """Found a class of record x and records that other classes can spare."""
    wanted, totals = draft.least_size, draft.totals
    if totals[N_SPARE] == 0 or draft.classes[draft.records[x, LABEL], SIZE] <= wanted:
        return False
    n = gather(draft, x)
    if n < wanted:
        return False
    chosen, target = draft.chosen, draft.target
    new = draft.spare[totals[N_SPARE] - 1]
    for i in range(n):
        unlink_inplace(draft, chosen[i])
        link_inplace(draft, new, chosen[i])
    refresh_inplace(draft, new)
    change = draft.classes[new, LOSS]
    is_fine = is_allowed(draft, new, NOBODY, NOBODY)
    for i in range(n):
        c = target[i]
        if count_of(c, target, i) == 0 and not is_core(draft, c):
            change -= draft.classes[c, LOSS]
            refresh_inplace(draft, c)
            change += draft.classes[c, LOSS]
            is_fine = is_fine and is_allowed(draft, c, NOBODY, NOBODY)
    if is_fine and change <= allowance:
        totals[N_SPARE] -= 1
        for i in range(n):
            if count_of(target[i], target, i) == 0:
                settle_inplace(draft, target[i])
        settle_inplace(draft, new)
        return True
    for i in range(n):
        unlink_inplace(draft, chosen[i])
        link_inplace(draft, target[i], chosen[i])
    for i in range(n):
        if not is_core(draft, target[i]):
            refresh_inplace(draft, target[i])
    draft.classes[new, LOSS] = 0
    return False


@inner
def step(draft, x, temperature, state):
    """Try to change the class of record x; return whether anything changed."""
    a = np.int64(draft.records[x, LABEL])
    if a != NOBODY and draft.classes[a, LOSS] == 0:
        return False
    z = partner_of(draft, x, state)
    b = np.int64(draft.records[z, LABEL])
    allowance = temperature * QUANTILES[random_below(state, QUANTILES.shape[0])]
    if b != NOBODY and b != a:
        if move(draft, x, b, allowance):
            return True
        if a != NOBODY and (move(draft, z, a, allowance) or exchange(draft, x, b, allowance, state)):
            return True
    if a == NOBODY:
        return False
    if random_below(state, DISSOLVE) == 0 and dissolve(draft, a, allowance, state):
        return True
    if random_below(state, FOUND) == 0 and found(draft, x, allowance):
        return True
    if draft.totals[QUOTA] > 0 and random_below(state, LEAVE_OUT) == 0:
        return leave_out(draft, x, allowance)
    return False


@kernel
def new_draft(scene, members, place, quota):
    """Some records (ascending) without classes yet; `place` is -1 for all points."""
    n, n_intervals, n_others = members.shape[0], scene.codes.shape[1], scene.others.shape[1]
    k = scene.least_size
    codes = np.empty((n, n_intervals), np.int32)
    others = np.empty((n, n_others), np.int32)
    sensitive = np.empty((n, scene.sensitive.shape[1]), np.int32)
    records = np.empty((n, 4), np.int32)
    points = np.empty((n + 1, 3), np.int32)
    which = np.empty(n, np.int32)
    p = 0
    for i in range(n):
        x = members[i]
        for j in range(n_intervals):
            codes[i, j] = scene.codes[x, j]
        for j in range(n_others):
            others[i, j] = scene.others[x, j]
        for j in range(sensitive.shape[1]):
            sensitive[i, j] = scene.sensitive[x, j]
        q = scene.point_of[x]
        if p == 0 or which[p - 1] != q:
            which[p], place[q] = q, p
            points[p, FIRST], points[p, CORE] = i, NOBODY
            p += 1
        records[i, POINT], records[i, LABEL] = p - 1, NOBODY
    points[p, FIRST] = n
    near = np.empty((p, scene.near.shape[1]), np.int32)
    for i in range(p):
        n_near = 0
        for q in scene.near[which[i]]:
            if place[q] >= 0:
                near[i, n_near] = place[q]
                n_near += 1
        points[i, N_NEAR] = n_near
    c = n // k + 1
    classes = np.zeros((c, 3), np.int64)
    room = 4 * k + 8
    w = n_words(scene.geometry, n_others) if n_others > 0 else 0
    return DraftPartition(
        scene.geometry, scene.limits, codes, others, sensitive, records, points, near, classes,
        np.empty((c, 4, n_intervals + n_others), np.int32), np.empty((c, 2, w), np.uint64),
        np.empty(c, np.int64), np.array([0, quota]), np.empty(room, np.int64), np.empty(room, np.int64),
        np.empty(n_sensitive_values(scene.limits), np.int64), np.empty(n_sensitive_values(scene.limits), np.int64),
        k, scene.full, scene.is_free,
    )  # fmt: skip


@kernel
def place_inplace(draft, members, labels, number):
    """Set up the classes that the labels (each the first record of its class) describe; `number` is -1 for all records."""
    n_classes = 0
    for i in range(members.shape[0]):
        root = labels[members[i]]
        if root < 0:
            continue
        if number[root] < 0:
            number[root] = n_classes
            n_classes += 1
        link_inplace(draft, np.int64(number[root]), i)
    for c in range(draft.classes.shape[0] - 1, n_classes - 1, -1):
        draft.spare[draft.totals[N_SPARE]] = c
        draft.totals[N_SPARE] += 1
    for c in range(n_classes):
        refresh_inplace(draft, c)
        if draft.classes[c, LOSS] == 0 and draft.is_free:
            unite_inplace(draft, c)


@kernel
def sweep(draft, n_sweeps, temperature, seed, stop):
    """Sweep over the records that lose something, until `stop` is set."""
    state = np.full(1, seed, np.uint64)
    active = np.empty(draft.records.shape[0], np.int64)
    n_active = 0
    for x in range(draft.records.shape[0]):
        if draft.records[x, LABEL] < 0 or draft.classes[draft.records[x, LABEL], LOSS] > 0:
            active[n_active] = x
            n_active += 1
    for _ in range(n_sweeps):
        for i in range(n_active):
            if stop[0] != 0:
                return
            step(draft, active[i], temperature, state)


@kernel
def anneal_piece_inplace(scene, labels, members, quota, n_sweeps, temperature, seed, stop):
    """Anneal the classes of one piece.

    Parameters
    ----------
    scene : Scene
    labels : int64 (n,)
        The first record of each record's class, -1 for records left out; changed for the members only.
    members : int64 (h,)
        Records of the piece, ascending: whole classes.
    quota : int
        How many more records of the piece may be left out.
    n_sweeps : int
    temperature : float
        In units.
    seed : uint64
        Seed of the random numbers; not zero.
    stop : uint8 (1,)
        Set from outside to end early.

    Returns
    -------
    Units that the members lose.
    """
    draft = new_draft(scene, members, np.full(scene.near.shape[0], -1, np.int32), quota)
    place_inplace(draft, members, labels, np.full(labels.shape[0], -1, np.int32))
    sweep(draft, n_sweeps, temperature, seed, stop)
    total = np.int64(0)
    first = np.full(draft.classes.shape[0], -1, np.int64)
    for i in range(members.shape[0]):
        c = draft.records[i, LABEL]
        if c < 0:
            labels[members[i]] = -1
            total += draft.full
            continue
        if first[c] < 0:
            first[c] = members[i]
            total += draft.classes[c, LOSS]
        labels[members[i]] = first[c]
    return total
