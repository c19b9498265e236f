"""Regions and losses of every kind of column against their definitions, record by record."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from louver.optim.kernels.classes.loss import (
    class_losses,
    class_regions,
    contains,
    count_matches,
    full_loss,
    labels_loss,
    merge_inplace,
    n_bits,
    spread,
    spread_bound,
    spread_merged,
    spread_with,
)
from mixed_records import KINDS, mixed_problem, plain_spread

UNITS = 8
"""Each column is rounded to whole units; a class of several columns may be this many away."""


def region(problem, members):
    labels = np.full(problem.n_records, -1)
    labels[list(members)] = 0
    lower, upper, words, _ = class_regions(problem.geometry, problem.codes, labels, 1)
    return lower[0], upper[0], words[0]


def test_bits_of_words():
    for word in [0, 1, 2**63, 2**64 - 1, 0x0123456789ABCDEF]:
        assert n_bits(np.uint64(word)) == word.bit_count()


@pytest.mark.parametrize("kind", [*KINDS, "all"])
@pytest.mark.parametrize("seed", range(3))
def test_spreads_are_the_losses_by_definition(kind, seed):
    problem = mixed_problem(9, seed, kinds=KINDS if kind == "all" else (kind,))
    spread_of = plain_spread(problem)
    for size in (1, 2, 3):
        for members in combinations(range(9), size):
            own = region(problem, members)
            expected = spread_of(members)
            assert spread(problem.geometry, *own) == pytest.approx(expected, abs=UNITS)
            for other in range(9):
                grown = spread_with(problem.geometry, *own, problem.codes[other])
                assert grown == spread(problem.geometry, *region(problem, {*members, other}))


@pytest.mark.parametrize("seed", range(3))
def test_unions_and_bounds(seed):
    problem = mixed_problem(10, seed)
    random = np.random.default_rng(seed)
    for _ in range(60):
        first = random.choice(10, random.integers(1, 4), replace=False).tolist()
        second = random.choice(10, random.integers(1, 4), replace=False).tolist()
        mine, theirs = region(problem, first), region(problem, second)
        together = spread(problem.geometry, *region(problem, {*first, *second}))
        assert spread_merged(problem.geometry, *mine, *theirs) == together
        least = min(spread_with(problem.geometry, *mine, problem.codes[i]) for i in second)
        assert spread_bound(problem.geometry, *mine, *theirs) <= least
        merge_inplace(*mine, *theirs)
        assert spread(problem.geometry, *mine) == together


@pytest.mark.parametrize("seed", range(3))
def test_losses_of_labels(seed):
    problem = mixed_problem(12, seed)
    labels = np.random.default_rng(seed).integers(-1, 3, 12)
    labels.flags.writeable = False
    spread_of = plain_spread(problem)
    classes = [np.flatnonzero(labels == c).tolist() for c in range(3)]
    expected = [len(members) * spread_of(members) if members else 0 for members in classes]
    assert class_losses(problem.geometry, problem.codes, labels, 3) == pytest.approx(expected, abs=12 * UNITS)
    n_out = int((labels < 0).sum())
    total = sum(expected) + n_out * full_loss(problem.geometry, len(problem.columns))
    assert labels_loss(problem.geometry, problem.codes, labels, 3) == pytest.approx(total, abs=12 * UNITS)


def test_every_record_fits_its_own_class_and_matches_are_counted():
    problem = mixed_problem(12, 4)
    labels = np.arange(12) % 3
    lower, upper, words, sizes = class_regions(problem.geometry, problem.codes, labels, 3)
    fits = np.array(
        [
            [contains(problem.geometry, lower[c], upper[c], words[c], row) for row in problem.codes]
            for c in range(3)
        ]
    )
    assert fits[labels, np.arange(12)].all()
    multiplicity = np.arange(1, 13)
    by_region, by_row = count_matches(
        problem.geometry, lower, upper, words, sizes, problem.codes, multiplicity, -1
    )
    assert by_region.tolist() == (fits @ multiplicity).tolist()
    assert by_row.tolist() == (sizes @ fits).tolist()


@pytest.mark.parametrize("kind", ["number", "set", "tree"])
def test_who_fits_a_region_does_not_widen_what_is_published(kind):
    """A known value fits a region of known values exactly if a class with it too would lose no more."""
    problem = mixed_problem(12, 5, kinds=(kind,))
    known = np.flatnonzero(problem.codes[:, 0] >= 0)
    for members in combinations(known[:7].tolist(), 2):
        own = region(problem, members)
        for i in known:
            is_free = spread_with(problem.geometry, *own, problem.codes[i]) == spread(problem.geometry, *own)
            assert contains(problem.geometry, *own, problem.codes[i]) == is_free
