"""Forecast errors of `bayes` in closed form, by which shares are chosen. They only compare plans; reported errors are simulated.

There are three parts, all public: variances of least squares in a tree whose regions of one level are all alike; departures of regions from
their parents, as a sample from a real or synthetic stand-in; and the errors that follow from both.

Notes
-----
**Implements**: a count that departs by d from the value expected from its parent, and is known with the variance v of least squares, is
estimated with a mean square error of d^2 v / (d^2 + v) if the typical departure is known (ideal shrinkage; Donoho and Johnstone, 1994, who
show that estimators without that knowledge come within a nearly constant factor). Departures are those of a sample of regions. In leaves,
cells are estimated first, independently, and sums add up their errors; above the leaves, totals are those of least squares. **Implements**:
`least_squares_variances` (Hay et al., 2010, on every subspace) for one region of each level, which has as many children as the level's
regions have on average: microseconds in place of milliseconds, and smooth in the precisions, which may be complex, so that derivatives are
exact. **Implements**: synthetic regions have the parent's composition, tilted by a log-normal factor for every label of every attribute and
a smaller one for every cell; leaves are of very unequal size, some of them empty. The size of the tilts was taken from Hawaii in 2020, a
public census: labels by 0.2 to 0.6 at every level, cells within a label by 0.1 to 0.3.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri, pdtrik

from louver._arrays import Bools, Floats, Ints
from louver.topdown.estimation.draws import Draws
from louver.topdown.problem import Design, Query, SparseLevel, add_levels

__all__ = ["BayesErrors", "Departures", "Numbers", "ScalarTree", "made_up_departures", "stand_in_departures"]

GRID = np.arange(-6.0, 30.0, 0.5)
"""Logarithms of variances at which errors are tabulated."""

TINY = 1e-9
SHARP = 4  # power in the smooth minimum of two variances
ALONE = (
    6  # power that favours the query most informative about leaves, for whose rows posteriors are computed
)
LOSS, LITTLE = (
    0.1,
    50.0,
)  # errors in leaves grow beyond the ideal by this power of the noise's variance over `LITTLE`
PLAIN_LEAVES = 2.5  # ratio of the paper's error in leaves to the ideal, where most rows are empty and absorb the noise of others


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BayesErrors:
    """Mean square errors of one row of every wanted query at every level, from the precisions of all measurements.

    Parameters
    ----------
    tree : ScalarTree
        Variances of least squares, equal for all rows.
    above : sequence of RegionErrors
        Errors at levels solved like regions, including leaves if bounds or invariants decide their totals.
    leaves : LeafErrors or None
        Errors at the last level otherwise.
    plain : sequence of RegionErrors
        Errors at all levels with the paper's algorithm.
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
        """Tabulate errors of regions that depart from their parents in this way."""
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
        """Mean square errors of `bayes` (..., levels, wanted), from precisions (..., levels, queries)."""
        variances = self.tree.variances(precision)
        found = [one(variances[..., level, :]) for level, one in enumerate(self.above)]
        if self.leaves is not None:
            found.append(self.leaves(1.0 / (precision[..., -1, :] + np.exp(-GRID[-1]))))
        return np.stack(found, axis=-2) ** 2

    def plain_squares(self, precision: Numbers) -> Any:
        """The same for the paper's algorithm; zero where invariants determine everything."""
        variances = self.tree.variances(precision, is_plain=True)
        found = np.stack([one(variances[..., level, :]) for level, one in enumerate(self.plain)], axis=-2)
        found[..., -1, :] *= PLAIN_LEAVES
        return np.where(variances.real > 0.0, found**2, 0.0)


@dataclass(frozen=True, slots=True, eq=False)
class Curve:
    """A function of a variance, given by its logarithms on the grid and interpolated linearly between them."""

    logs: Floats

    def __call__(self, variance: Numbers) -> Any:
        """Values at these variances, which may be complex."""
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
        Variance of a row whose cells are estimated independently, by a cell's variance.
    final : sequence of Curve
        Error of a row by its variance.
    """

    summed: Sequence[Curve]
    final: Sequence[Curve]

    @classmethod
    def of(cls, sample: Departures, wanted: Sequence[Query], *, has_prior: bool) -> RegionErrors:
        """Cells with a prior shrink towards their expected values; other cells, and all totals, shrink towards zero if small."""
        away = sample.counts - sample.expected if has_prior else sample.counts
        summed, final = [], []
        for query in wanted:
            cells = sample.counts if query.n_rows == 1 else away
            rows = _rows(query, sample.counts) if query.n_rows == 1 else _rows(query, away)
            summed.append(_curve(lambda v, c=cells, q=query: _rows(q, _shrunk(c, v)).mean()))
            final.append(_curve(lambda v, r=rows: np.sqrt(_shrunk(r, v).mean())))
        return cls(summed, final)

    def __call__(self, variances: Numbers) -> Any:
        """Errors (..., wanted) from variances of least squares (..., wanted), the last of which are those of cells."""
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
        For each measured and each wanted query, the error by the variance of the measured query's noise.
    unknown : ndarray, shape (wanted,)
        Errors where nothing is measured.
    """

    curves: Sequence[Sequence[Curve]]
    unknown: Floats

    @classmethod
    def of(cls, sample: Departures, measured: Sequence[Query], wanted: Sequence[Query]) -> LeafErrors:
        """Cells are shrunk towards their expected values; sums add up the cells."""
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
    else:  # people are divided as in the parent, with unknown error
        whole, held = _rows(measured, sample.expected), _rows(measured, sample.counts)
        part = sample.expected / np.maximum(whole, TINY)[:, measured.row_of]
        apart = sample.counts - part * held[:, measured.row_of]
        found = np.minimum(_rows(wanted, part**2 * shrunk[:, measured.row_of] + apart**2), own)
    return float(np.sqrt(found.mean()) * (variance / LITTLE) ** LOSS)


def _shrunk(away: Floats, variance: float) -> Floats:
    """Mean square errors of counts with these departures from their expected values."""
    square = away**2
    return np.asarray(square * variance / (square + variance))


def _rows(query: Query, cells: Floats) -> Floats:
    """Sums (regions, rows) of values of the cells."""
    rows = np.zeros((len(cells), query.n_rows))
    np.add.at(rows.T, query.row_of, cells.T)
    return rows


def _refines(fine: Query, coarse: Query) -> bool:
    """Whether every row of one query lies within a row of the other."""
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


Numbers = NDArray[np.inexact[Any]]
"""Real, or complex where a derivative is taken."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ScalarTree:
    """The parameters of variances other than the noise.

    Parameters
    ----------
    children : ndarray of float64, shape (levels - 1,)
        Mean number of children of a region.
    gain : ndarray of float64, shape (queries, sets)
        The precision on each subspace for one unit of a query's precision.
    spread : ndarray of float64, shape (sets, wanted)
        The contribution of the variance of each subspace to that of one row of a wanted query.
    is_known : ndarray of bool, shape (levels, sets)
        Subspaces that invariants fix.
    live : ndarray of float64, shape (levels, queries)
        Share of the rows of a query that are not empty. Counts cannot be negative, so empty rows add next to no error to a region that is
        solved; sums passed upwards keep all their noise.
    """

    children: Floats
    gain: Floats
    spread: Floats
    is_known: Bools
    live: Floats

    @property
    def n_levels(self) -> int:
        """Number of levels."""
        return len(self.children) + 1

    def variances(self, precision: Numbers, *, is_plain: bool = False) -> Numbers:
        """Variances (..., levels, wanted) of one row, from the precisions (..., levels, queries) of all measurements.

        With `is_plain` every level is fitted to its own measurements alone, as in the paper.
        """
        own = precision @ self.gain
        solved = (precision / self.live) @ self.gain
        whole = own[..., -1, :]
        up = [1.0 / solved[..., -1, :]]
        for level in range(self.n_levels - 2, -1, -1):
            below = whole / self.children[level]
            up.insert(0, 1.0 / (solved[..., level, :] + (0.0 if is_plain else below)))
            whole = own[..., level, :] + below
        final = np.where(self.is_known[0], 0.0, up[0])
        found = [final @ self.spread]
        for level, (v, k) in enumerate(zip(up[1:], self.children, strict=True), start=1):
            # v - (v / s)^2 (s - V) with s = k v
            final = np.where(self.is_known[level], 0.0, v - (v - final / k) / k)
            found.append(final @ self.spread)
        return np.stack(found, axis=-2)


MOST_ENTRIES, MOST_REGIONS, LEAST_REGIONS = 40_000, 400, 40  # sampled at a level
LABEL_TILT, CELL_TILT = 0.45, 0.2
NEXT_LABEL = 0.4  # ratio of the people of a label to those of the label before it, from the most frequent on
EMPTY, LEAF_SPREAD, REGION_SPREAD = (
    0.3,
    1.2,
    0.6,
)  # share of leaves without people; spread of logarithms of sizes


@dataclass(frozen=True, slots=True, eq=False)
class Departures:
    """Regions of one level: their counts, and those expected from their parents, both (regions, cells)."""

    counts: Floats
    expected: Floats

    def with_own_totals(self) -> Departures:
        """The same where a region's total is known: only its composition is expected from the parent."""
        own, held = (x.sum(axis=1, keepdims=True) for x in (self.counts, self.expected))
        return Departures(self.counts, self.expected * own / np.where(held > 0.0, held, 1.0))


def made_up_departures(design: Design, people: float) -> list[Departures]:
    """Synthetic regions of every level, each the child of one at the level above."""
    spine, draws = design.spine, Draws(0)
    n = _number(design.n_cells)
    usual = design.is_possible.astype(np.float64)
    for labels in np.indices(design.shape).reshape(len(design.shape), -1):
        usual = usual * NEXT_LABEL**labels
    composition = np.tile(usual / usual.sum(), (n, 1))
    found, size = [], np.full(n, float(people))
    for level in range(spine.n_levels):
        own, above = draws.at(level), composition
        if level > 0:
            composition = _tilted(design, composition, own)
            size = people / spine.sizes[level] * _sizes(own, n, is_leaf=level == spine.n_levels - 1)
        mean = composition * size[:, None]
        counts = _poisson(mean, own.uniform("counts", *_places(mean.shape)).reshape(mean.shape))
        is_even = level == spine.n_levels - 1
        expected = above * (people / spine.sizes[level] if is_even else counts.sum(axis=1, keepdims=True))
        found.append(Departures(counts, expected))
    return found


def stand_in_departures(design: Design, leaves: SparseLevel) -> list[Departures]:
    """Regions of a stand-in, spread over every level."""
    levels = add_levels(design.spine, leaves, design.n_cells)
    found, n = [], _number(design.n_cells)
    for level, table in enumerate(levels):
        chosen = np.unique(np.linspace(0, table.n_regions - 1, n).astype(np.int64))
        counts = _dense(table, chosen, design.n_cells)
        if level == 0:
            found.append(Departures(counts, counts))
            continue
        parent = np.searchsorted(design.spine.starts[level - 1], chosen, side="right") - 1
        above = _dense(levels[level - 1], parent, design.n_cells)
        if level == len(levels) - 1:
            factor = 1.0 / np.diff(design.spine.starts[level - 1])[parent]
        else:
            factor = counts.sum(axis=1) / np.maximum(above.sum(axis=1), 1.0)
        found.append(Departures(counts, above * factor[:, None]))
    return found


def _number(n_cells: int) -> int:
    return int(np.clip(MOST_ENTRIES // n_cells, LEAST_REGIONS, MOST_REGIONS))


def _dense(table: SparseLevel, chosen: Ints, n_cells: int) -> Floats:
    return np.asarray(table.take(chosen).to_dense(n_cells), np.float64)


def _tilted(design: Design, composition: Floats, draws: Draws) -> Floats:
    """Compositions of the children of regions with the given compositions."""
    n = len(composition)
    logs = CELL_TILT * ndtri(draws.uniform("cells", *_places(composition.shape))).reshape(composition.shape)
    for axis, labels in enumerate(np.indices(design.shape).reshape(len(design.shape), -1)):
        shape = (n, design.shape[axis])
        logs = (
            logs
            + LABEL_TILT * ndtri(draws.uniform(f"axis {axis}", *_places(shape))).reshape(shape)[:, labels]
        )
    tilted = composition * np.exp(logs)
    return np.asarray(tilted / tilted.sum(axis=1, keepdims=True))


def _sizes(draws: Draws, n: int, *, is_leaf: bool) -> Floats:
    """Sizes relative to their mean."""
    spread = LEAF_SPREAD if is_leaf else REGION_SPREAD
    sizes = np.exp(spread * ndtri(draws.uniform("sizes", np.arange(n))))
    if is_leaf:
        sizes = sizes * (draws.uniform("empty", np.arange(n)) >= EMPTY)
    return np.asarray(sizes / sizes.mean())


def _places(shape: Sequence[int]) -> tuple[Ints, ...]:
    return tuple(np.indices(tuple(shape)).reshape(len(shape), -1))


def _poisson(mean: Floats, uniform: Floats) -> Floats:
    """The count at this quantile of a distribution with this mean."""
    return np.where(mean > 0.0, np.maximum(np.ceil(pdtrik(uniform, np.maximum(mean, 1e-12))), 0.0), 0.0)
