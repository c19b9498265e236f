"""What a change of classes would cost, and what classes know of themselves after many changes, against definitions."""

from __future__ import annotations

import numba
import numpy as np
import pytest

from louver.anonymize.methods.auto import _Annealing
from louver.anonymize.methods.sorted_cut import solve as sorted_order
from louver.anonymize.watch import Watch
from louver.optim.kernels.classes.annealing import new_draft, place_inplace
from louver.optim.kernels.classes.draft_partition import (
    HEAD,
    LABEL,
    LOSS,
    NEXT,
    SIZE,
    enter_inplace,
    join_change,
    leave_inplace,
    loss_exchanged,
    loss_of,
    loss_with,
    loss_without,
    settle_inplace,
)
from mixed_records import KINDS, mixed_problem, plain_spread

UNITS = 8
"""Rounding of a few columns to whole units."""


@numba.njit
def losses_of(draft, c, gone, come):
    return (
        loss_of(draft, c),
        loss_with(draft, c, come),
        loss_without(draft, c, gone),
        loss_exchanged(draft, c, gone, come),
        join_change(draft, c, come),
    )


@numba.njit
def transfer(draft, x, c):
    """Move record x to class c."""
    before = np.int64(draft.records[x, LABEL])
    leave_inplace(draft, before, x)
    enter_inplace(draft, c, x)
    settle_inplace(draft, before)
    settle_inplace(draft, c)


def draft_of(problem, labels):
    """All records in one piece; labels are first records of classes."""
    scene = _Annealing.of(problem, sorted_order(problem), Watch(), 1).scene._replace(is_free=np.bool_(False))
    draft = new_draft(
        scene, np.arange(problem.n_records), np.full(scene.near.shape[0], -1, np.int32), np.int64(0)
    )
    place_inplace(draft, np.arange(problem.n_records), labels, np.full(len(labels), -1, np.int32))
    return draft


def members_of(draft, c):
    """The ring of a class, which must agree with the labels."""
    ring, x = [], int(draft.classes[c, HEAD])
    for _ in range(draft.classes[c, SIZE]):
        ring.append(x)
        x = int(draft.records[x, NEXT])
    assert sorted(ring) == np.flatnonzero(draft.records[:, LABEL] == c).tolist()
    return ring


@pytest.mark.parametrize("kinds", [("number",), KINDS], ids=["number", "all"])
@pytest.mark.parametrize("seed", range(3))
def test_costs_of_changes_after_random_moves(kinds, seed):
    problem = mixed_problem(14, seed, k=3, kinds=kinds)
    labels = np.array([0, 0, 0, 0, 4, 4, 4, 4, 4, 9, 9, 9, 9, 9])
    draft, spread_of = draft_of(problem, labels), plain_spread(problem)
    random = np.random.default_rng(seed)
    for _ in range(25):
        x = int(random.integers(14))
        a = int(draft.records[x, LABEL])
        c = int(random.choice([other for other in range(3) if other != a]))
        if draft.classes[a, SIZE] > 2:
            transfer(draft, x, c)
        gone = int(random.choice(members_of(draft, c)))
        come = int(random.choice(np.flatnonzero(draft.records[:, LABEL] != c)))
        own = members_of(draft, c)
        rest = [i for i in own if i != gone]
        expected = [spread_of(own), spread_of([*own, come]), spread_of(rest), spread_of([*rest, come])]
        found = losses_of(draft, c, gone, come)
        assert found[:4] == pytest.approx(expected, abs=UNITS)
        more = (len(own) + 1) * expected[1] - len(own) * expected[0]
        assert found[4] == pytest.approx(more, abs=2 * UNITS * len(own))
        assert draft.classes[c, LOSS] == problem.class_loss(own)
