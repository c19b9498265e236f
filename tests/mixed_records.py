"""Small random tables with every kind of quasi-identifier, coded for the kernels and as plain losses for oracles."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from louver.anonymize.columns import NumericColumn, SetColumn, TreeColumn
from louver.anonymize.problem import AnonymizeProblem
from oracles.partitions import Loss, interval_loss, set_loss, tree_loss

GOING, STOPPED = np.zeros(1, np.uint8), np.ones(1, np.uint8)
"""What kernels are told: to go on, and to stop."""

TREE = [[0, 1, 2, 3, 4], [0, 0, 1, 1, 2], [0, 0, 0, 0, 0]]
KINDS = ("number", "open", "gapped", "set", "tree")


def mixed_problem(
    n: int, seed: int, *, k: int = 2, kinds: Sequence[str] = KINDS, **more: object
) -> AnonymizeProblem:
    """A problem with one column of each kind; few values, so that records tie."""
    random = np.random.default_rng(seed)
    number = random.integers(0, 12, n).astype(float)
    holes = np.where(random.random(n) < 0.2, np.nan, random.integers(0, 9, n))
    holes[0] = 3.0
    sets, leaves = random.integers(-1, 70, n), random.integers(-1, 5, n)
    made = {
        "number": NumericColumn(name="number", values=number, weight=2.0),
        "open": NumericColumn(name="open", values=holes, missing_matches=True),
        "gapped": NumericColumn(name="gapped", values=holes),
        "set": SetColumn(name="set", codes=sets, n_labels=70),
        "tree": TreeColumn(name="tree", codes=leaves, ancestors=[np.array(level) for level in TREE]),
    }
    return AnonymizeProblem.build([made[kind] for kind in kinds], k=k, **more)


def plain_losses(problem: AnonymizeProblem) -> list[tuple[float, Loss]]:
    """Weights and losses by definition, over the records in the problem's order."""
    losses: list[tuple[float, Loss]] = []
    for column in problem.columns:
        if isinstance(column, NumericColumn):
            given = [None if np.isnan(v) else float(v) for v in column.values[problem.rows]]
            loss = interval_loss(given, missing_matches=column.missing_matches)
        elif isinstance(column, SetColumn):
            loss = set_loss(column.codes[problem.rows].tolist(), column.n_labels)
        else:
            loss = tree_loss(column.codes[problem.rows].tolist(), TREE)
        losses.append((column.weight, loss))
    return losses


def plain_spread(problem: AnonymizeProblem) -> Callable[[Sequence[int]], float]:
    """Loss per record of a class given as records, in units."""
    losses = plain_losses(problem)
    return lambda members: sum(weight * loss(members) for weight, loss in losses) / problem.unit
