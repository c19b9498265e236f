"""An attack on whole mechanisms: what their output proves about the loss, and that it catches M_c^ch as published.

Two neighbouring data sets, many seeded runs of each. On the first half of the runs the attacker looks for the event that tells them
apart best; the second half gives a lower bound on the loss at 99.99 % confidence (Clopper-Pearson, both ends).
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from louver.data.regions import RegionTree
from louver.groups.mechanisms import MECHANISMS
from louver.groups.plan import SizePlan, equal_shares, make_plan
from louver.groups.problem import GroupTable, SizeQuery, Total, answers
from louver.groups.simulate import measured
from louver.privacy.budget import Loss, Measure
from louver.privacy.neighbours import Relation
from louver.privacy.noise import KeyedNoise

CONFIDENCE = 0.9999


def run(table: GroupTable, plan: SizePlan, noise: KeyedNoise) -> np.ndarray:
    """Measure a table and post-process the measurements, all in memory."""
    return plan.mechanism.solve(measured(table, plan, noise))


def proven_loss(first: np.ndarray, second: np.ndarray) -> float:
    """Lower bound on epsilon from two samples of a number that an attacker computes from the output."""
    half = len(first) // 2
    cuts = np.unique(np.concatenate([first[:half], second[:half]]))
    best = 0.0
    chosen = None
    for cut in np.quantile(cuts, np.linspace(0, 1, 41)):
        for sign in (1, -1):
            p, q = np.mean(sign * first[:half] >= sign * cut), np.mean(sign * second[:half] >= sign * cut)
            for a, b, swap in ((p, q, False), (q, p, True)):
                if a * half >= 5 and math.log(a / max(b, 5 / half)) > best:
                    best, chosen = math.log(a / max(b, 5 / half)), (cut, sign, swap)
    if chosen is None:
        return 0.0
    cut, sign, swap = chosen
    likely, rare = (second, first) if swap else (first, second)
    hits = int(np.sum(sign * likely[half:] >= sign * cut)), int(np.sum(sign * rare[half:] >= sign * cut))
    n, alpha = len(first) - half, (1 - CONFIDENCE) / 2
    low = stats.beta.ppf(alpha, hits[0], n - hits[0] + 1) if hits[0] else 0.0
    high = stats.beta.ppf(1 - alpha, hits[1] + 1, n - hits[1]) if hits[1] < n else 1.0
    return math.log(low / high) if low > 0 else -math.inf


def _tables(leaves: int, largest: int, per_cell: int, total: Total) -> tuple[GroupTable, GroupTable]:
    """A unit of the first region has one member more in the second table."""
    regions = RegionTree.from_leaves(("zone",), [(f"{i:04d}",) for i in range(leaves)])
    first = 0 if total is Total.PUBLIC else 1
    counts = np.full((leaves, largest + 1 - first), per_cell, np.int64)
    before, after = counts.copy(), counts.copy()
    before[0, 1] += 1
    after[0, 2] += 1
    return tuple(GroupTable(regions, regions.tree.sum_up(c), first) for c in (before, after))  # type: ignore[return-value]


def _plan(
    name: str, table: GroupTable, epsilon: Fraction, total: Total, as_published: bool = False
) -> SizePlan:
    budget = Loss(epsilon, Measure.EPSILON, Relation.ADD_REMOVE_RECORD)
    shares = equal_shares(table.regions.tree.n_levels)
    return make_plan(
        MECHANISMS[name],
        table.regions,
        table.largest_size,
        budget,
        shares,
        total=total,
        as_published=as_published,
    )


def _statistics(table: GroupTable, plan: SizePlan, runs: int, offset: int) -> np.ndarray:
    """What the attacker computes: several numbers for each run, one column each."""
    tree = table.regions.tree
    seen = []
    for seed in range(runs):
        released = run(table, plan, KeyedNoise.from_seed(offset + seed))
        chain = answers(released, SizeQuery.CHAIN, tree)[tree.level(1)]
        first = 1 - table.first_size
        seen.append(
            [
                released[1, first],
                released[1, first + 1] - released[1, first],
                released[0, first + 1] - released[0, first],
                chain[:, first].sum() + released[0, first],
            ]
        )
    return np.array(seen)


RUNS = {"M_H": 100, "M_c": 100, "M_dp^OP": 20, "louver": 800, "M_c^r": 800}
FEW = {"louver", "M_c^dp"}
"""Attacked with every change; the others with all tests."""


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in FEW else pytest.mark.long) for name in MECHANISMS]
)
def test_no_mechanism_loses_more_than_it_says(name: str) -> None:
    epsilon = Fraction(1)
    before, after = _tables(2, 2, 1, Total.PUBLIC)
    plan = _plan(name, before, epsilon, Total.PUBLIC)
    assert plan.is_private and plan.loss.amount == epsilon
    runs = RUNS.get(name, 1500)
    a, b = _statistics(before, plan, runs, 0), _statistics(after, plan, runs, 10**6)
    assert max(proven_loss(a[:, i], b[:, i]) for i in range(a.shape[1])) <= float(epsilon)


@pytest.mark.parametrize("name", ["louver", pytest.param("M_H^dp", marks=pytest.mark.long)])
def test_no_more_with_a_noisy_total(name: str) -> None:
    before, after = _tables(2, 3, 1, Total.NOISY)
    plan = _plan(name, before, Fraction(1), Total.NOISY)
    a, b = _statistics(before, plan, 800, 0), _statistics(after, plan, 800, 10**6)
    assert max(proven_loss(a[:, i], b[:, i]) for i in range(a.shape[1])) <= 1.0


def test_the_attack_catches_m_c_ch_as_published() -> None:
    """ERRATA G1, on the released table alone: 300 zones, epsilon 1/2 claimed."""
    before, after = _tables(300, 2, 400, Total.PUBLIC)
    epsilon = Fraction(1, 2)
    published = _plan("M_c^ch", before, epsilon, Total.PUBLIC, as_published=True)
    assert not published.is_private
    a, b = _statistics(before, published, 800, 0)[:, 3], _statistics(after, published, 800, 10**6)[:, 3]
    assert proven_loss(a, b) > float(epsilon)


def test_the_attack_catches_noise_that_is_too_small() -> None:
    """The same attack on an honest mechanism paid with a quarter of what it uses."""
    before, after = _tables(2, 2, 1, Total.PUBLIC)
    plan = _plan("M_H^dp", before, Fraction(8), Total.PUBLIC)
    a, b = _statistics(before, plan, 1500, 0), _statistics(after, plan, 1500, 10**6)
    assert max(proven_loss(a[:, i], b[:, i]) for i in range(a.shape[1])) > 1.0


def _lone(total: Total) -> tuple[GroupTable, GroupTable]:
    """Somebody who is alone in a unit of the first region is there, or not; what happens in the second is the same."""
    regions = RegionTree.from_leaves(("zone",), [("0",), ("1",)])
    first = 0 if total is Total.PUBLIC else 1
    present = np.zeros((2, 31 - first), np.int64)
    present[0, 1 - first], present[1, 2 - first] = 1, 5
    absent = present.copy()
    absent[0, 1 - first] = 0
    return tuple(GroupTable(regions, regions.tree.sum_up(c), first) for c in (present, absent))  # type: ignore[return-value]


@pytest.mark.parametrize("total", Total)
def test_a_public_total_gives_a_lone_person_away(total: Total) -> None:
    """From the released number of groups of one region alone, at a claimed epsilon of 1: why `noisy` is the default."""
    present, absent = _lone(total)
    plan = _plan("louver", present, Fraction(1), total)
    a, b = (
        np.array([run(table, plan, KeyedNoise.from_seed(offset + seed))[1].sum() for seed in range(400)])
        for table, offset in ((present, 0), (absent, 10**6))
    )
    proven = proven_loss(a, b)
    assert proven > 1 if total is Total.PUBLIC else proven <= 1
    assert bool(plan.not_protected) == (total is Total.PUBLIC)
