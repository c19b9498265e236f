"""Placement of people one by one: each goes to a place with room, so that the places' marginals come as close as possible to the targets.

People of one class are interchangeable apart from their cells. `need` holds, for every query, place and row, the people that are wanted
there minus those that are there; the sum of its squares, plus a penalty for broken limits, is minimised. First all people go where the need
is greatest, then pairs of a class swap places as long as that helps. Candidates are drawn by a fixed generator, so that results are
reproducible.
"""

from __future__ import annotations

import numpy as np

from louver.optim.kernels import inner, kernel

__all__ = ["draw_cells_inplace", "share_out_inplace", "swap_people_inplace"]

BROKEN = 100.0  # what it costs to break a limit by one person, in squared people
WORTH = 1e-9  # gains below this are rounding error


@inner
def _next(state):
    """The next number of a 64-bit linear congruential generator (Knuth's constants)."""
    return state * np.uint64(6364136223846793005) + np.uint64(1442695040888963407)


@inner
def _below(state, n):
    """A number from 0 to n - 1, from the high bits."""
    return np.int64((state >> np.uint64(33)) % np.uint64(n))


@inner
def _gain(need, base, n_rows, row, cell, place):
    """How much the squares shrink if a person with this cell is added to a place, minus one for each query."""
    total = 0.0
    for q in range(row.shape[0]):
        total += 2.0 * need[base[q] + place * n_rows[q] + row[q, cell]]
    return total


@inner
def _move(need, base, n_rows, row, cell, place, people):
    """Record people of a cell as being at a place."""
    for q in range(row.shape[0]):
        need[base[q] + place * n_rows[q] + row[q, cell]] -= people


@inner
def _excess(value, low, high):
    """How far a value is outside its limits."""
    return max(low - value, 0) + max(value - high, 0)


@kernel
def share_out_inplace(
    person_start,
    person,
    member_start,
    member,
    room,
    base,
    n_rows,
    row,
    kind,
    coefficient,
    low,
    high,
    value,
    proposals,
    need,
    out,
):
    """Give every person of every class a place.

    Parameters
    ----------
    person_start : int64 (classes + 1,)
        People of class c are at positions person_start[c] to person_start[c + 1].
    person : int64 (people,)
        Cell of each, in the order in which they are placed.
    member_start, member, room : int64
        Class c may go to the places member[member_start[c]...], each with room for that many people; the room of a class equals its people.
    base, n_rows : int64 (queries,)
        Where the need of a query begins, and its rows.
    row : int64 (queries, cells)
    kind : int64 (cells,)
        Column of `coefficient` that a cell has.
    coefficient : int64 (limits, kinds)
    low, high, value : int64 (limits, places)
        The sum of coefficients over the people of a place should lie within limits; `value`, zero at first, is that sum.
    proposals : int64
        Number of swaps tried per person.
    need : float64, changed
    out : int64 (people,), written
        For each person the position in `member`.
    """
    for c in range(person_start.shape[0] - 1):
        for p in range(person_start[c], person_start[c + 1]):
            best, chosen = -np.inf, member_start[c]
            for j in range(member_start[c], member_start[c + 1]):
                if room[j] > 0:
                    gain = _gain(need, base, n_rows, row, person[p], member[j])
                    for r in range(coefficient.shape[0]):
                        # Until everybody is placed, only an excess can be detected.
                        over = value[r, member[j]] + coefficient[r, kind[person[p]]] - high[r, member[j]]
                        if coefficient[r, kind[person[p]]] > 0 and over > 0:
                            gain -= BROKEN
                    if gain > best:
                        best, chosen = gain, j
            room[chosen] -= 1
            _move(need, base, n_rows, row, person[p], member[chosen], 1.0)
            for r in range(coefficient.shape[0]):
                value[r, member[chosen]] += coefficient[r, kind[person[p]]]
            out[p] = chosen
    state = np.uint64(88172645463325252)
    for c in range(person_start.shape[0] - 1):
        n = person_start[c + 1] - person_start[c]
        if n < 2 or member_start[c + 1] - member_start[c] < 2:
            continue
        for p in range(person_start[c], person_start[c + 1]):
            for _ in range(proposals):
                state = _next(state)
                other = person_start[c] + _below(state, n)
                _change_places(
                    p,
                    other,
                    person,
                    member,
                    base,
                    n_rows,
                    row,
                    kind,
                    coefficient,
                    low,
                    high,
                    value,
                    need,
                    out,
                )


@inner
def _change_places(
    p, other, person, member, base, n_rows, row, kind, coefficient, low, high, value, need, out
):
    """Swap two people of one class if that helps."""
    here, there = member[out[p]], member[out[other]]
    if here == there or person[p] == person[other]:
        return
    gain = 0.0
    for q in range(row.shape[0]):
        mine, theirs = row[q, person[p]], row[q, person[other]]
        if mine != theirs:
            a, b = base[q] + here * n_rows[q], base[q] + there * n_rows[q]
            # Four needs change by one each, so each square changes by twice the need plus one.
            gain += 2.0 * (need[a + theirs] - need[a + mine] + need[b + mine] - need[b + theirs]) - 4.0
    mine, theirs = kind[person[p]], kind[person[other]]
    if mine != theirs:
        for r in range(coefficient.shape[0]):
            d = coefficient[r, theirs] - coefficient[r, mine]
            if d != 0:
                before = _excess(value[r, here], low[r, here], high[r, here])
                before += _excess(value[r, there], low[r, there], high[r, there])
                after = _excess(value[r, here] + d, low[r, here], high[r, here])
                after += _excess(value[r, there] - d, low[r, there], high[r, there])
                gain += BROKEN * (before - after)
    if gain > WORTH:
        for cell, old, new in ((person[p], here, there), (person[other], there, here)):
            _move(need, base, n_rows, row, cell, old, -1.0)
            _move(need, base, n_rows, row, cell, new, 1.0)
        for r in range(coefficient.shape[0]):
            d = coefficient[r, theirs] - coefficient[r, mine]
            value[r, here] += d
            value[r, there] -= d
        out[p], out[other] = out[other], out[p]


@kernel
def swap_people_inplace(
    person_start, person, member_start, cell_start, table_start, log_weight, proposals, state, out
):
    """Draw places at random: pairs of a class swap theirs with odds given by the weights (Metropolis).

    The places of a class keep their numbers of people, and so do its cells; the probability of an allocation of people is proportional to
    the product of the weights of everyone's cell and place.

    Parameters
    ----------
    person_start, person, member_start
        As for `share_out_inplace`.
    cell_start, table_start : int64 (classes,)
        First cell of each class, and where its weights begin: cell by cell, one for each place.
    log_weight : float64
    proposals : int64
        Swaps tried per person.
    state : uint64
        Of the generator.
    out : int64 (people,), changed
        For each person the position in `member`.
    """
    for c in range(person_start.shape[0] - 1):
        n = person_start[c + 1] - person_start[c]
        n_places = member_start[c + 1] - member_start[c]
        if n < 2 or n_places < 2:
            continue
        for p in range(person_start[c], person_start[c + 1]):
            for _ in range(proposals):
                state = _next(state)
                other = person_start[c] + _below(state, n)
                if out[p] == out[other] or person[p] == person[other]:
                    continue
                mine = table_start[c] + (person[p] - cell_start[c]) * n_places - member_start[c]
                theirs = table_start[c] + (person[other] - cell_start[c]) * n_places - member_start[c]
                gain = log_weight[mine + out[other]] + log_weight[theirs + out[p]]
                gain -= log_weight[mine + out[p]] + log_weight[theirs + out[other]]
                state = _next(state)
                if np.log((np.float64(state >> np.uint64(11)) + 0.5) / 9007199254740992.0) < gain:
                    out[p], out[other] = out[other], out[p]


@kernel
def draw_cells_inplace(class_start, n_people, weight, base, n_rows, row, proposals, need, start, out):
    """Give every person of every class one of its cells, for a single place.

    Parameters
    ----------
    class_start : int64 (classes + 1,)
        Cells of class c are at positions class_start[c] to class_start[c + 1].
    n_people : int64 (classes,)
    weight : float64 (cells,)
        People wanted in each cell.
    start : int64 (classes + 1,)
        Where the people of a class start in `out`.
    out : int64 (people,), written
        Cell of each person.
    """
    state = np.uint64(88172645463325252)
    total = np.empty(weight.shape[0])
    for c in range(class_start.shape[0] - 1):
        held = 0.0
        for i in range(class_start[c], class_start[c + 1]):
            held += weight[i]
            total[i] = held
        for p in range(n_people[c]):
            # Evenly along the cells, so that every run of cells gets its share of people to within one.
            out[start[c] + p] = _cell_at(
                total, class_start[c], class_start[c + 1], (p + 0.5) * held / n_people[c]
            )
            _move(need, base, n_rows, row, out[start[c] + p], 0, 1.0)
    for c in range(class_start.shape[0] - 1):
        held = total[class_start[c + 1] - 1]
        for p in range(start[c], start[c + 1]):
            for _ in range(proposals):
                state = _next(state)
                at = held * (np.float64(state >> np.uint64(11)) / 9007199254740992.0)
                new = _cell_at(total, class_start[c], class_start[c + 1], at)
                old = out[p]
                gain = 0.0
                for q in range(row.shape[0]):
                    if row[q, old] != row[q, new]:
                        gain += 2.0 * (need[base[q] + row[q, new]] - need[base[q] + row[q, old]]) - 2.0
                if gain > WORTH:
                    _move(need, base, n_rows, row, old, 0, -1.0)
                    _move(need, base, n_rows, row, new, 0, 1.0)
                    out[p] = new


@inner
def _cell_at(total, first, last, at):
    """The first cell at which the cumulative weight exceeds a number."""
    low, high = first, last - 1
    while low < high:
        middle = (low + high) // 2
        if total[middle] > at:
            high = middle
        else:
            low = middle + 1
    return low
