"""How much rougher the truth is than the draws that simulations take for it: read from the measurements themselves.

Where the truth is rougher than what is drawn, simulations understate errors. Each region's own noisy answer y, less what was
published, is the error of what was published plus noise: r = (truth - published) + noise. Noise and its part in the
published number are the same in simulations, so E r^2 differs from that of simulations by what the squared error does. The
ratio of squared errors is therefore 1 + (mean r^2 - mean simulated r^2) / mean simulated squared error: public, and without
any assumption about the truth but that the estimator answers noise there as it does in simulations.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from louver._arrays import Floats, Ints
from louver.topdown.measuring.noise_plan import QueryPlan
from louver.topdown.measuring.true_counts import batches_of
from louver.topdown.problem import NoisyCounts, Query

__all__ = ["Squares", "own_answers", "roughness"]

USUAL = 0.3
"""Deviation from 1 that is expected of a ratio: one that is known less well than that is drawn towards 1."""

MOST_READ = 4_000_000
"""Noisy values of a level that are read for it, about."""

FEWEST = 80  # squares that a ratio is read from
LARGEST = 3.0


@dataclass(frozen=True, slots=True)
class Squares:
    """Mean of some squares and its squared standard error."""

    mean: float
    variance: float
    n: int

    @classmethod
    def of(cls, values: Floats) -> Squares:
        """Squares of values."""
        squares, n = np.square(values), len(values)
        return cls(float(squares.mean()), float(squares.var()) / n, n) if n else cls(0.0, 0.0, 0)


def roughness(seen: Squares, simulated: Squares, error: float) -> float:
    """Ratio of squared errors to simulated ones, 1 or more; drawn towards 1 as far as it is uncertain."""
    if min(seen.n, simulated.n) < FEWEST or error <= 0:
        return 1.0
    excess = (seen.mean - simulated.mean) / error
    variance = (seen.variance + simulated.variance) / error**2
    return float(np.clip(1.0 + excess * USUAL**2 / (USUAL**2 + variance), 1.0, LARGEST))


def own_answers(
    plan: QueryPlan, noisy: NoisyCounts, level: int, queries: Sequence[Query], regions: Ints
) -> list[Floats]:
    """What a level's own measurements say of the rows of queries, weighted by precision: arrays (regions, rows).

    Parameters
    ----------
    regions : ndarray of int64
        Ascending. Of large levels the first are looked at alone, and arrays are as much shorter.
    """
    found: list[list[Floats]] = [[np.zeros((0, query.n_rows))] for query in queries]
    n_values = sum(measured.query.n_rows for measured in plan.measured[level])
    for start, stop in batches_of(plan)[level]:
        here = regions[slice(*np.searchsorted(regions, [start, stop]))] - start
        if len(here) and start * n_values < MOST_READ:
            answers = noisy.read(level, start, stop)
            for place, query in enumerate(queries):
                found[place].append(_answer(plan, level, query, [part[here] for part in answers]))
    return [np.concatenate(parts) for parts in found]


def _answer(plan: QueryPlan, level: int, query: Query, answers: Sequence[Ints]) -> Floats:
    """Mean of what every query whose rows lie within those of `query` says, by precision."""
    total = np.zeros((len(answers[0]), query.n_rows))
    precision = np.zeros(query.n_rows)
    for measured, answer in zip(plan.measured[level], answers, strict=True):
        held = _rows_within(measured.query, query)
        if held is None:
            continue
        order = np.argsort(held, kind="stable")
        starts = np.searchsorted(held[order], np.arange(query.n_rows))
        weight = 1.0 / (np.bincount(held, minlength=query.n_rows) * measured.distribution.variance)
        total += weight * np.add.reduceat(answer[:, order], starts, axis=1)
        precision += weight
    return np.asarray(total / precision)


def _rows_within(inner: Query, outer: Query) -> Ints | None:
    """Row of `outer` that each row of `inner` lies in; None where one lies in several."""
    pairs = np.unique(inner.row_of * outer.n_rows + outer.row_of)
    if len(pairs) != inner.n_rows:
        return None
    return np.asarray(pairs % outer.n_rows)
