"""The least loss per record that any class around a point can have, from the point's nearest neighbours."""

from __future__ import annotations

import numpy as np

from louver.optim.kernels import kernel
from louver.optim.kernels.classes.loss import add_inplace, clear_inplace, n_words, spread_with
from louver.optim.kernels.classes.record_tree import NUMBER_BITS, NUMBER_MASK

__all__ = ["least_losses"]

FAR = np.int64(2**62)


@kernel
def insert_inplace(values, weights, n, value, weight):
    """Put a value into an ascending list of n; the greatest falls out of a full list. Returns the new length."""
    if n == values.shape[0]:
        if value >= values[n - 1]:
            return n
        n -= 1
    at = n
    while at > 0 and values[at - 1] > value:
        values[at], weights[at] = values[at - 1], weights[at - 1]
        at -= 1
    values[at], weights[at] = value, weight
    return n + 1


@kernel
def reached_at(values, weights, n, needed):
    """The least of the ascending values up to which the weights add up to `needed`; FAR if they do not."""
    for t in range(n):
        needed -= weights[t]
        if needed <= 0:
            return values[t]
    return FAR


@kernel
def least_losses(geometry, codes, multiplicity, keys, reach, first, k, with_triples):
    """A lower bound on the loss per record of every class of k records or more that holds a point.

    Parameters
    ----------
    geometry : int64
    codes : int32 (p, m)
    multiplicity : int64 (p,)
        Records of each point.
    keys : int64 (h, l)
        Near others of points `first` to `first` + h - 1, as `nearest` gives them.
    reach : int64 (h,)
        Points that are not listed are no nearer than this.
    first, k : int
    with_triples : bool
        Whether to look at triples; at pairs only if not.

    Returns
    -------
    int64 (h,)

    Notes
    -----
    A class S around point i holds `needed` = k - (records of i) further ones. For each point c of S, ask how little
    a class can lose that holds i, c and enough others: at least the value up to which the losses of the triples (i,
    c, d) bring in the records still needed, as S holds them all and loses no less than any triple. Every point of S
    answers at most the loss of S, and together they have `needed` records: so the loss of S is at least the value up
    to which the answers bring in that many. Without triples, the answer of c is its distance from i. A class that holds
    a point that is not listed loses at least the reach.

    **Cost**: O(h l (l m + needed)), without triples O(h l needed).
    """
    n_near, m = keys.shape[1], codes.shape[1]
    lower, upper = np.empty(m, np.int32), np.empty(m, np.int32)
    words = np.empty(n_words(geometry, m), np.uint64)
    least = np.zeros(keys.shape[0], np.int64)
    room = max(1, min(k, n_near))
    answers, answer_weights = np.empty(room, np.int64), np.empty(room, np.int64)
    triples, triple_weights = np.empty(room, np.int64), np.empty(room, np.int64)
    for h in range(keys.shape[0]):
        needed = k - multiplicity[first + h]
        if needed <= 0:
            continue
        n_answers = 0
        for a in range(n_near):
            c = keys[h, a] & NUMBER_MASK
            answer = keys[h, a] >> NUMBER_BITS
            if n_answers == room and answer >= answers[room - 1]:
                break
            if with_triples and multiplicity[c] < needed:
                clear_inplace(lower, upper, words)
                add_inplace(geometry, lower, upper, words, codes[first + h])
                add_inplace(geometry, lower, upper, words, codes[c])
                n_triples = 0
                for b in range(n_near):
                    d = keys[h, b] & NUMBER_MASK
                    if b != a and (n_triples < room or keys[h, b] >> NUMBER_BITS < triples[room - 1]):
                        loss = spread_with(geometry, lower, upper, words, codes[d])
                        n_triples = insert_inplace(triples, triple_weights, n_triples, loss, multiplicity[d])
                answer = reached_at(triples, triple_weights, n_triples, needed - multiplicity[c])
            n_answers = insert_inplace(answers, answer_weights, n_answers, answer, multiplicity[c])
        least[h] = reached_at(answers, answer_weights, n_answers, needed)
        if n_near < codes.shape[0] - 1 or reach[h] < keys[h, n_near - 1] >> NUMBER_BITS:
            least[h] = min(least[h], reach[h])
    return least
