"""A synthetic state with the shape of the redistricting file: 2,016 cells, five levels, group quarters.

Counts are drawn from a fixed seed: a skewed mix of races that drifts from county to tract to block group, and
group quarters in few blocks. Nothing in it describes a real place.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

N_TYPES, N_VOTING, N_HISPANIC, N_RACES = 8, 2, 2, 63
N_CELLS = N_TYPES * N_VOTING * N_HISPANIC * N_RACES
TRACTS = (150, 40, 30, 20, 10)


@dataclass(frozen=True)
class SyntheticState:
    """Blocks sorted by geocode; `block`, `cell`, `count` list the occupied cells, types slowest."""

    geocodes: list[str]
    block: NDArray[np.int64]
    cell: NDArray[np.int64]
    count: NDArray[np.int64]
    facilities: NDArray[np.int64]  # (blocks, 8), column 0 (households) zero

    @property
    def dense(self) -> NDArray[np.int64]:
        """All counts (blocks, 2016)."""
        table = np.zeros((len(self.geocodes), N_CELLS), dtype=np.int64)
        table[self.block, self.cell] = self.count
        return table


def synthetic_state(
    *,
    tracts: tuple[int, ...] = TRACTS,
    block_groups: int = 900,
    blocks: int = 20_000,
    people: int = 1_000_000,
    seed: int = 7,
) -> SyntheticState:
    """Draw a state; the defaults give 5 counties, 250 tracts, 900 block groups and 20,000 blocks."""
    rng = np.random.default_rng(seed)
    group_tract = np.sort(
        np.r_[np.arange(sum(tracts)), rng.integers(0, sum(tracts), block_groups - sum(tracts))]
    )
    block_group = np.sort(
        np.r_[np.arange(block_groups), rng.integers(0, block_groups, blocks - block_groups)]
    )
    tract_county = np.repeat(np.arange(len(tracts)), tracts)
    mixes = _race_mixes(rng, len(tracts), tract_county, group_tract)
    sizes = rng.gamma(0.8, 1.0, blocks)
    sizes = np.where(rng.random(blocks) < 0.15, 0.0, sizes)
    sizes = rng.poisson(sizes * (0.97 * people / sizes.sum()))
    facilities = _facilities(rng, blocks)
    block, cell, count = _people(rng, block_group, mixes, sizes, facilities)
    geocodes = _geocodes(tract_county, group_tract, block_group)
    return SyntheticState(geocodes, block, cell, count, facilities)


def _race_mixes(rng, n_counties, tract_county, group_tract) -> NDArray[np.float64]:
    """Shares of the 252 voting age x Hispanic x race combinations for each block group."""
    base = np.empty((N_VOTING, N_HISPANIC, N_RACES))
    races = np.r_[0.62, 0.12, 0.07, 0.05, 0.012, 0.002, 0.05 * 0.75 ** np.arange(57)]
    races[6:] = np.maximum(races[6:], 4e-6)
    base[:] = races / races.sum()
    base *= np.array([0.78, 0.22])[:, None, None] * np.array([0.85, 0.15])[None, :, None]
    mix = base.ravel() / base.sum()
    counties = np.array([rng.dirichlet(mix * 600 + 1e-9) for _ in range(n_counties)])
    of_tract = np.array([rng.dirichlet(counties[c] * 90 + 1e-9) for c in tract_county])
    return np.array([rng.dirichlet(of_tract[t] * 250 + 1e-9) for t in group_tract])


def _facilities(rng, blocks: int) -> NDArray[np.int64]:
    """Occupied group-quarters facilities per block and type: about one block in thirty has some."""
    facilities = np.zeros((blocks, N_TYPES), dtype=np.int64)
    chance = np.array([0, 0.002, 0.001, 0.008, 0.001, 0.006, 0.001, 0.014])
    facilities[:] = rng.random((blocks, N_TYPES)) < chance
    return facilities * rng.integers(1, 4, (blocks, N_TYPES))


def _people(rng, block_group, mixes, sizes, facilities):
    block, cell, count = [], [], []
    in_quarters = np.where(
        facilities > 0, facilities + rng.poisson(rng.gamma(0.7, 45.0, facilities.shape)), 0
    )
    for b in range(len(block_group)):
        mix = mixes[block_group[b]]
        for t in range(N_TYPES):
            n = sizes[b] if t == 0 else in_quarters[b, t]
            if n > 0:
                drawn = rng.multinomial(n, mix)
                cells = np.flatnonzero(drawn)
                block.append(np.full(len(cells), b))
                cell.append(cells + t * len(mix))
                count.append(drawn[cells])
    return np.concatenate(block), np.concatenate(cell), np.concatenate(count).astype(np.int64)


def _geocodes(tract_county, group_tract, block_group) -> list[str]:
    """15 digits: state 2, county 3, tract 6, block group 1, block 3."""
    first_tract = np.searchsorted(tract_county, tract_county)
    first_group = np.searchsorted(group_tract, group_tract)
    first_block = np.searchsorted(block_group, block_group)
    codes = []
    for b, g in enumerate(block_group):
        t = group_tract[g]
        c = tract_county[t]
        codes.append(
            f"99{c + 1:03d}{t - first_tract[t] + 1:06d}{g - first_group[g]:01d}{b - first_block[b]:03d}"
        )
    return codes
