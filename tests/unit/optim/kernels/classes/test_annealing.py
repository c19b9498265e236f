"""Annealed classes: always allowed, losing what is said, and at the optimum of small problems."""

from __future__ import annotations

import numpy as np
import pytest

from louver.anonymize.columns import Sensitive
from louver.anonymize.methods.auto import _Annealing
from louver.anonymize.methods.sorted_cut import solve as sorted_order
from louver.anonymize.watch import Watch
from louver.optim.kernels.classes.annealing import anneal_piece_inplace
from mixed_records import GOING, mixed_problem, plain_losses
from oracles.partitions import has_distinct, least_loss

N = 9
COLD = (1.5, 0.5, 0.2, 0.04)


def annealed(problem, seed, quota=0):
    """Labels and loss after a few rounds from the best cut of the sorted order, each colder than the last."""
    start = sorted_order(problem)
    scene = _Annealing.of(problem, start, Watch(), 1).scene
    labels = np.array([np.flatnonzero(start.labels == label)[0] for label in start.labels])
    best, best_labels = start.loss, labels.copy()
    for round_number, cold in enumerate(COLD):
        left = quota - int((labels < 0).sum())
        temperature = cold * start.loss / N
        state = np.uint64(2 * (7 * seed + round_number) + 1)
        loss = anneal_piece_inplace(scene, labels, np.arange(N), left, 60, temperature, state, GOING)
        check(problem, labels, int(loss), quota)
        if loss < best:
            best, best_labels = int(loss), labels.copy()
    return best_labels, best


def check(problem, labels, loss, quota):
    """Labels name the first record of each class; classes are large enough; the loss is the sum over classes."""
    assert int((labels < 0).sum()) <= quota
    total = int((labels < 0).sum()) * problem.full_loss
    for label in np.unique(labels[labels >= 0]):
        members = np.flatnonzero(labels == label)
        assert members[0] == label and len(members) >= problem.k
        total += problem.class_loss(members.tolist())
    assert loss == total


@pytest.mark.parametrize("quota", [0, 2])
@pytest.mark.parametrize("table", range(3))
def test_small_problems_are_solved(table, quota):
    problem = mixed_problem(N, table, k=3, kinds=("number", "set", "gapped"), max_suppressed=quota)
    optimum = least_loss(N, 3, plain_losses(problem), max_suppressed=quota) / problem.unit
    found = min(annealed(problem, seed, quota)[1] for seed in range(4))
    assert found == pytest.approx(optimum, rel=1e-5)


def test_requirements_are_kept():
    values = np.array([0, 1, 2, 0, 1, 2, 0, 1, 2])
    problem = mixed_problem(
        N, 5, k=2, kinds=("number",), sensitive=(Sensitive(name="s", codes=values, n_values=3, l=2),)
    )
    of_record = values[problem.rows].tolist()
    is_allowed = has_distinct(of_record, 2)
    optimum = least_loss(N, 2, plain_losses(problem), is_allowed=is_allowed) / problem.unit
    losses = []
    for seed in range(4):
        labels, loss = annealed(problem, seed)
        assert all(is_allowed(np.flatnonzero(labels == label).tolist()) for label in np.unique(labels))
        losses.append(loss)
    assert min(losses) == pytest.approx(optimum, rel=1e-5)


def test_records_outside_the_piece_stay():
    problem = mixed_problem(12, 6, k=2)
    start = sorted_order(problem)
    scene = _Annealing.of(problem, start, Watch(), 1).scene
    labels = np.array([np.flatnonzero(start.labels == label)[0] for label in start.labels])
    before, members = labels.copy(), np.flatnonzero(labels < 6)
    anneal_piece_inplace(scene, labels, members, 0, 20, 0.1 * start.loss, np.uint64(3), GOING)
    others = np.setdiff1d(np.arange(12), members)
    assert (labels[others] == before[others]).all()
    assert set(labels[members]) <= set(members.tolist())
