"""Errors that `bayes` will have, in closed form: what shares are chosen by. They are for comparing plans; errors are simulated.

Notes
-----
**Implements**: a count that departs by d from what its parent leads to expect, known with the variance v of least squares, is estimated
with a mean square error of d^2 v / (d^2 + v) where one knows how far such counts depart (ideal shrinkage; Donoho and Johnstone, 1994,
who show that estimators which do not know come within a factor that is nearly the same for all). Departures are those of a sample of
regions. In leaves cells are estimated first, each for itself, and sums add up their errors; above them totals are those of least squares.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from louver._arrays import Floats, Ints
from louver.topdown.planning.departures import Departures
from louver.topdown.planning.scalar_tree import Numbers, ScalarTree
from louver.topdown.problem import Query

__all__ = ["BayesErrors"]

GRID = np.arange(-6.0, 30.0, 0.5)
"""Logarithms of variances at which errors are tabulated."""

TINY = 1e-9
SHARP = 4  # power by which the smaller of two variances is taken
ALONE = 6  # power by which the query that tells most about leaves stands out: posteriors are of its rows
LOSS, LITTLE = (
    0.1,
    50.0,
)  # errors in leaves grow beyond the ideal by this power of the noise's variance over `LITTLE`
PLAIN_LEAVES = 2.5  # error of the paper's algorithm in leaves over the ideal, where most rows are empty and take in others' noise


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BayesErrors:
    """Mean square errors of one row of every wanted query at every level, from the precisions of all measurements.

    Parameters
    ----------
    tree : ScalarTree
        Variances of least squares, all rows alike.
    above : sequence of RegionErrors
        Of levels that are solved as regions are, leaves among them where bounds or invariants decide their totals.
    leaves : LeafErrors or None
        Of the last level otherwise.
    plain : sequence of RegionErrors
        Of all levels, for the paper's algorithm.
    """

    tree: ScalarTree
    above: Sequence[RegionErrors]
    leaves: LeafErrors | None
    plain: Sequence[RegionErrors]

    @classmethod
    def of(
        cls, tree: ScalarTree, departures: Sequence[Departures], measured: Sequence[Query], wanted: Sequence[Query],
        *, has_prior: Sequence[bool], has_leaf_prior: bool,
    ) -> BayesErrors:  # fmt: skip
        """Tabulate errors of regions that depart so from their parents."""
        last = len(departures) - 1
        regions = list(departures)
        if has_leaf_prior:
            regions.pop()
        elif last > 0:
            regions[last] = regions[last].with_own_totals()
        return cls(
            tree=tree,
            above=[
                RegionErrors.of(one, wanted, has_prior=known)
                for one, known in zip(regions, has_prior, strict=False)
            ],
            leaves=LeafErrors.of(departures[last], measured, wanted) if has_leaf_prior else None,
            plain=[RegionErrors.of(one, wanted, has_prior=False) for one in departures],
        )

    def squares(self, precision: Numbers) -> Any:
        """Of `bayes` (..., levels, wanted), from precisions (..., levels, queries)."""
        variances = self.tree.variances(precision)
        found = [one(variances[..., level, :]) for level, one in enumerate(self.above)]
        if self.leaves is not None:
            found.append(self.leaves(1.0 / (precision[..., -1, :] + np.exp(-GRID[-1]))))
        return np.stack(found, axis=-2) ** 2

    def plain_squares(self, precision: Numbers) -> Any:
        """The same of the paper's algorithm; zero where invariants say it all."""
        variances = self.tree.variances(precision, is_plain=True)
        found = np.stack([one(variances[..., level, :]) for level, one in enumerate(self.plain)], axis=-2)
        found[..., -1, :] *= PLAIN_LEAVES
        return np.where(variances.real > 0.0, found**2, 0.0)


@dataclass(frozen=True, slots=True, eq=False)
class Curve:
    """A function of a variance, given by its logarithms on the grid and straight between them."""

    logs: Floats

    def __call__(self, variance: Numbers) -> Any:
        """At these variances, which may be complex."""
        x = (np.log(variance) - GRID[0]) / (GRID[1] - GRID[0])
        place = np.clip(np.floor(x.real), 0, len(GRID) - 2).astype(np.int64)
        rise = self.logs[place + 1] - self.logs[place]
        return np.exp(self.logs[place] + rise * (x - place))


@dataclass(frozen=True, slots=True, eq=False)
class RegionErrors:
    """Errors of one row of wanted queries in regions above the leaves.

    Parameters
    ----------
    summed : sequence of Curve
        Variance of a row, from cells each estimated for itself, by a cell's variance.
    final : sequence of Curve
        Error of a row by its variance.
    """

    summed: Sequence[Curve]
    final: Sequence[Curve]

    @classmethod
    def of(cls, sample: Departures, wanted: Sequence[Query], *, has_prior: bool) -> RegionErrors:
        """With a prior cells are drawn to what is expected of them; without one, and totals ever, to zero where they are small."""
        away = sample.counts - sample.expected if has_prior else sample.counts
        summed, final = [], []
        for query in wanted:
            cells = sample.counts if query.n_rows == 1 else away
            rows = _rows(query, sample.counts) if query.n_rows == 1 else _rows(query, away)
            summed.append(_curve(lambda v, c=cells, q=query: _rows(q, _shrunk(c, v)).mean()))
            final.append(_curve(lambda v, r=rows: np.sqrt(_shrunk(r, v).mean())))
        return cls(summed, final)

    def __call__(self, variances: Numbers) -> Any:
        """Errors (..., wanted) from variances of least squares (..., wanted), of which the cells' are the last."""
        found, cell = [], variances[..., -1] + TINY
        for place, (summed, final) in enumerate(zip(self.summed, self.final, strict=True)):
            least = variances[..., place] + TINY
            found.append(final((least**-SHARP + summed(cell) ** -SHARP) ** (-1.0 / SHARP)))
        return np.stack(found, axis=-1)


@dataclass(frozen=True, slots=True, eq=False)
class LeafErrors:
    """Errors of one row of wanted queries in leaves.

    Parameters
    ----------
    curves : sequence of sequence of Curve
        For each measured query and each wanted one the error, by the variance of the measured query's noise.
    unknown : ndarray, shape (wanted,)
        Errors where nothing is measured.
    """

    curves: Sequence[Sequence[Curve]]
    unknown: Floats

    @classmethod
    def of(cls, sample: Departures, measured: Sequence[Query], wanted: Sequence[Query]) -> LeafErrors:
        """Cells are drawn to what is expected of them, sums are those of the cells."""
        away = sample.counts - sample.expected
        curves = [
            [_curve(lambda v, m=m, q=q: _leaf_error(sample, m, q, v)) for q in wanted] for m in measured
        ]
        unknown = np.array([np.sqrt((_rows(query, away) ** 2).mean()) for query in wanted])
        return cls(curves, np.maximum(unknown, TINY))

    def __call__(self, noise: Numbers) -> Any:
        """Errors (..., wanted) from the variances of the noise (..., measured)."""
        least = self.unknown**-2
        gains: Any = 0.0
        for place, curves in enumerate(self.curves):
            errors = np.stack([curve(noise[..., place]) for curve in curves], axis=-1)
            gain = errors**-2 - least
            gains = gains + np.where(gain.real > 0.0, gain, TINY * least) ** ALONE
        return (least + gains ** (1.0 / ALONE)) ** -0.5


def _leaf_error(sample: Departures, measured: Query, wanted: Query, variance: float) -> float:
    """Mean error of a wanted row where one query is measured with this noise."""
    away = sample.counts - sample.expected
    shrunk = _shrunk(_rows(measured, away), variance)
    own = _rows(wanted, away) ** 2
    if _refines(measured, wanted):
        rows = _coarser(measured, wanted, shrunk)
        found = own * rows / np.maximum(own + rows, TINY)
    else:  # people are divided as in the parent, and how far that is wrong is not known at all
        whole, held = _rows(measured, sample.expected), _rows(measured, sample.counts)
        part = sample.expected / np.maximum(whole, TINY)[:, measured.row_of]
        apart = sample.counts - part * held[:, measured.row_of]
        found = np.minimum(_rows(wanted, part**2 * shrunk[:, measured.row_of] + apart**2), own)
    return float(np.sqrt(found.mean()) * (variance / LITTLE) ** LOSS)


def _shrunk(away: Floats, variance: float) -> Floats:
    """Mean square errors of counts that depart so far from what is expected of them."""
    square = away**2
    return np.asarray(square * variance / (square + variance))


def _rows(query: Query, cells: Floats) -> Floats:
    """Sums (regions, rows) of values of the cells."""
    rows = np.zeros((len(cells), query.n_rows))
    np.add.at(rows.T, query.row_of, cells.T)
    return rows


def _refines(fine: Query, coarse: Query) -> bool:
    """Whether every row of one query lies in a row of the other."""
    return len(np.unique(fine.row_of * coarse.n_rows + coarse.row_of)) == fine.n_rows


def _coarser(fine: Query, coarse: Query, values: Floats) -> Floats:
    """Values of rows added up to the rows of a coarser query."""
    row_of: Ints = np.zeros(fine.n_rows, dtype=np.int64)
    row_of[fine.row_of] = coarse.row_of
    rows = np.zeros((len(values), coarse.n_rows))
    np.add.at(rows.T, row_of, values.T)
    return rows


def _curve(function: Any) -> Curve:
    return Curve(np.log(np.maximum([function(float(v)) for v in np.exp(GRID)], TINY)))
