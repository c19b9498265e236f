"""Pieces: every class in one of them, small enough where it can be cut; random keys as published."""

from __future__ import annotations

import numpy as np
import pytest

from louver.optim.kernels.classes.bisection import best_cut, cut_pieces, mixed, random_share
from mixed_records import mixed_problem


def test_mixed_is_splitmix64():
    """The first numbers of the published generator from seed 1234567: each is the mixed state."""
    golden, published = 0x9E3779B97F4A7C15, [6457827717110365317, 3203168211198807973, 9817491932198370423]
    for i, expected in enumerate(published):
        assert mixed(np.uint64((1234567 + i * golden) % 2**64)) == expected


def test_shares_are_spread_evenly():
    shares = np.array([random_share(np.uint64(key)) for key in range(4000)])
    assert shares.min() >= 0 and shares.max() < 1
    assert np.histogram(shares, 10, (0, 1))[0].min() > 300


def grouped(n, size, seed):
    """First records of classes of consecutive records in sorted order, some left out."""
    labels = np.arange(n) // size * size
    labels[np.random.default_rng(seed).choice(n, 5, replace=False)] = -1
    for label in np.unique(labels[labels >= 0]):
        labels[labels == label] = np.flatnonzero(labels == label)[0]
    return labels


@pytest.mark.parametrize("seed", range(4))
def test_pieces_hold_whole_classes(seed):
    problem = mixed_problem(300, seed, kinds=("number", "gapped"))
    labels = grouped(300, 4, seed)
    members, start = cut_pieces(problem.geometry, problem.codes, labels, 20, np.uint64(seed))
    assert sorted(members.tolist()) == list(range(300))
    piece_of = np.empty(300, np.int64)
    for piece in range(len(start) - 1):
        own = members[start[piece] : start[piece + 1]]
        assert len(own) and (np.diff(own) > 0).all()
        piece_of[own] = piece
    assert all(len(set(piece_of[labels == label])) == 1 for label in np.unique(labels[labels >= 0]))
    assert len(start) > 2
    everything, whole = cut_pieces(problem.geometry, problem.codes, labels, 300, np.uint64(seed))
    assert everything.tolist() == list(range(300)) and whole.tolist() == [0, 300]


def test_a_cut_leaves_a_share_on_either_side_and_equal_classes_are_not_cut():
    lower = np.stack([np.arange(100), np.zeros(100)], axis=1).astype(np.int32)
    column, code = best_cut(lower, lower, np.arange(100), 0, 100, np.uint64(9))
    assert column == 0 and 30 <= code <= 70
    equal = lower[:, 1:].copy()
    assert best_cut(equal, equal, np.arange(100), 0, 100, np.uint64(9))[0] == -1
