"""How regions depart from their parents, as a sample that shares can be chosen by: of a stand-in, or made up. Nothing of it is private.

Notes
-----
**Implements**: made-up regions have the parent's composition, tilted by a factor for every label of every attribute and a smaller one
for every cell, logarithmically normal; leaves of very unequal size, some of them empty. How far they are tilted was read from Hawaii in
2020, a public census: labels by 0.2 to 0.6 at every level, cells within a label by 0.1 to 0.3.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri, pdtrik

from louver._arrays import Floats, Ints
from louver.topdown.design import Design
from louver.topdown.estimation.draws import Draws
from louver.topdown.problem import SparseLevel, add_levels

__all__ = ["Departures", "made_up_departures", "stand_in_departures"]

MOST_ENTRIES, MOST_REGIONS, LEAST_REGIONS = 40_000, 400, 40  # sampled at a level
LABEL_TILT, CELL_TILT = 0.45, 0.2
NEXT_LABEL = 0.4  # people of a label over those of the one before, from the most frequent on
EMPTY, LEAF_SPREAD, REGION_SPREAD = (
    0.3,
    1.2,
    0.6,
)  # share of leaves without people; spread of logarithms of sizes


@dataclass(frozen=True, slots=True, eq=False)
class Departures:
    """Regions of one level: their counts, and what their parents lead to expect, (regions, cells) both."""

    counts: Floats
    expected: Floats

    def with_own_totals(self) -> Departures:
        """The same where a region's total is known: only its composition is expected of the parent."""
        own, held = (x.sum(axis=1, keepdims=True) for x in (self.counts, self.expected))
        return Departures(self.counts, self.expected * own / np.where(held > 0.0, held, 1.0))


def made_up_departures(design: Design, people: float) -> list[Departures]:
    """Regions of every level, each below the one of the level above."""
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
    """Compositions of children of regions with these."""
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
    """Sizes over their mean."""
    spread = LEAF_SPREAD if is_leaf else REGION_SPREAD
    sizes = np.exp(spread * ndtri(draws.uniform("sizes", np.arange(n))))
    if is_leaf:
        sizes = sizes * (draws.uniform("empty", np.arange(n)) >= EMPTY)
    return np.asarray(sizes / sizes.mean())


def _places(shape: Sequence[int]) -> tuple[Ints, ...]:
    return tuple(np.indices(tuple(shape)).reshape(len(shape), -1))


def _poisson(mean: Floats, uniform: Floats) -> Floats:
    """The count of this mean that stands at this quantile."""
    return np.where(mean > 0.0, np.maximum(np.ceil(pdtrik(uniform, np.maximum(mean, 1e-12))), 0.0), 0.0)
