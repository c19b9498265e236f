"""People one by one: rooms are kept, closed places are avoided where they can be, and marginals come near."""

from __future__ import annotations

from itertools import permutations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from louver.optim.kernels.sharing.people import draw_cells_inplace, share_out_inplace, swap_people_inplace


def shared(seed, proposals, *, closed=0):
    """Two classes of people, three places, one query of two rows."""
    rng = np.random.default_rng(seed)
    row = rng.integers(0, 2, (1, 6))
    person = np.concatenate([np.sort(rng.integers(0, 3, 9)), np.sort(rng.integers(3, 6, 6))])
    room = np.array([3, 3, 3, 4, 2])
    member = np.array([0, 1, 2, 0, 2])
    need = rng.uniform(0, 5, 6)
    wanted, out = need.copy(), np.zeros(15, dtype=np.int64)
    kind, coefficient = np.array([1, 0, 0, 0, 0, 0]), np.array([[0, 1]])
    low, high, value = (
        np.zeros((1, 3), np.int64),
        np.array([[99 - 99 * closed, 99, 99]]),
        np.zeros((1, 3), np.int64),
    )
    share_out_inplace(
        np.array([0, 9, 15]), person, np.array([0, 3, 5]), member, room.copy(), np.array([0]), np.array([2]), row,
        kind, coefficient, low, high, value, proposals, need, out,
    )  # fmt: skip
    assert np.array_equal(value[0], np.bincount(member[out][person == 0], minlength=3))
    held = np.zeros(6)
    np.add.at(held, member[out] * 2 + row[0, person], 1)
    assert np.allclose(need, wanted - held)  # what is booked is what is there
    assert np.array_equal(np.bincount(out, minlength=5), room)
    assert (out[:9] < 3).all() and (out[9:] >= 3).all()
    return float(((wanted - held) ** 2).sum()), member[out], person


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_rooms_are_kept_and_exchanges_help(seed):
    first, *_ = shared(seed, 0)
    later, *_ = shared(seed, 50)
    assert later <= first + 1e-9


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_nobody_goes_to_a_closed_place_who_need_not(seed):
    _, place, person = shared(seed, 200, closed=1)
    marked = int((person[:9] == 0).sum())
    assert int(((person[:9] == 0) & (place[:9] == 0)).sum()) == max(0, marked - 6)


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_cells_are_drawn_within_classes_and_near_the_marginals(seed):
    rng = np.random.default_rng(seed)
    weight = rng.gamma(0.5, 2.0, 20) + 0.01
    n_people = np.maximum(np.rint([weight[:12].sum(), weight[12:].sum()]), 1).astype(np.int64)
    row = rng.integers(0, 4, (1, 20))
    wanted = np.bincount(row[0], weight, minlength=4)
    errors = []
    for proposals in (0, 60):
        need, out = wanted.copy(), np.zeros(n_people.sum(), dtype=np.int64)
        start = np.array([0, n_people[0], n_people.sum()])
        draw_cells_inplace(
            np.array([0, 12, 20]), n_people, weight, np.array([0]), np.array([4]), row, proposals, need, start, out
        )  # fmt: skip
        assert (out[: n_people[0]] < 12).all() and (out[n_people[0] :] >= 12).all()
        assert np.allclose(need, wanted - np.bincount(row[0, out], minlength=4))
        errors.append((need**2).sum())
    assert errors[1] <= errors[0] + 1e-9


def test_swaps_visit_every_way_to_share_out_as_often_as_its_weight():
    """Four people of three cells in three places, against the list of all ways; a second class with one place stays as it is."""
    person, places = np.array([0, 0, 1, 2, 3]), np.array([0, 1, 1, 2, 3])
    weight = np.random.default_rng(8).gamma(1.0, 1.0, (3, 3)) + 0.1
    ways = set(permutations(places[:4].tolist()))
    mass = {way: float(np.prod([weight[person[i], way[i]] for i in range(4)])) for way in ways}
    seen = dict.fromkeys(ways, 0)
    logs = np.concatenate([np.log(weight).ravel(), [0.0]])
    for state in range(20_000):
        out = places.copy()
        swap_people_inplace(
            np.array([0, 4, 5]), person, np.array([0, 3, 4]), np.array([0, 3]), np.array([0, 9]), logs,
            20, np.uint64(state * 7919 + 1), out,
        )  # fmt: skip
        assert out[4] == 3
        seen[tuple(out[:4].tolist())] += 1
    for way in ways:
        expected = 20_000 * mass[way] / sum(mass.values())
        assert abs(seen[way] - expected) < 6 * expected**0.5 + 6
