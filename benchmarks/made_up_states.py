"""Three made-up states of other shapes than Rhode Island, with its schema: voting age x 8 groups, five levels.

plain_state   like farmland: 60 % of the blocks are empty, few people in the others, one group has nine tenths of them
mixed_state   like islands: 20 % are empty, large blocks, no group has half of the people, and block groups differ much
split_state   like a segregated city: 40 % are empty, three large groups that live apart block by block

Counts are drawn from a fixed seed and describe no real place. One constant of louver was chosen with them
in view: the cap of 0.9 on a level's error over plain's (decision 0036).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["SHAPES", "MadeUpState", "Shape", "made_up_state"]


@dataclass(frozen=True)
class Shape:
    """What a state is like.

    Parameters
    ----------
    seed : int
    counties, tracts, groups, blocks : int
        Counties; tracts of a county, block groups of a tract and blocks of a block group, on average.
    empty : float
        Share of blocks without people.
    people : float
        Mean of a block that is not empty.
    mix : tuple of float
        Shares of the eight groups.
    likeness : tuple of float
        Of county, tract, block group and block with the region above: concentrations of Dirichlet distributions.
    minors : float
        Share of people under 18.
    """

    seed: int
    counties: int
    tracts: int
    groups: float
    blocks: float
    empty: float
    people: float
    mix: tuple[float, ...]
    likeness: tuple[float, float, float, float]
    minors: float


SHAPES = {
    "plain_state": Shape(11, 8, 25, 3.0, 40.0, 0.60, 45.0, (3, 91, 2, 1, 1, 0.2, 0.3, 1.5), (200, 60, 200, 60), 0.25),
    "mixed_state": Shape(12, 4, 60, 3.0, 18.0, 0.20, 110.0, (12, 30, 4, 1, 35, 8, 1, 9), (30, 15, 60, 25), 0.20),
    "split_state": Shape(13, 6, 45, 3.5, 25.0, 0.40, 70.0, (30, 38, 25, 0.5, 4, 0.1, 0.4, 2), (40, 4, 15, 5), 0.23),
}  # fmt: skip


@dataclass(frozen=True)
class MadeUpState:
    """Blocks sorted by geocode, with counts (blocks, 16): adults of the eight groups, then minors."""

    geocodes: list[str]
    counts: NDArray[np.int64]


def made_up_state(name: str, *, part: float = 1.0) -> MadeUpState:
    """Draw a state, or one with so small a part of its tracts."""
    shape = SHAPES[name]
    rng = np.random.default_rng(shape.seed)
    mix = np.array(shape.mix) / sum(shape.mix)
    codes, rows = [], []
    for county in range(shape.counties):
        in_county = _near(rng, mix, shape.likeness[0])
        for tract in range(max(1, round(rng.gamma(4.0, shape.tracts * part / 4.0)))):
            in_tract = _near(rng, in_county, shape.likeness[1])
            for group in range(1 + min(int(rng.poisson(shape.groups - 1.0)), 8)):
                in_group = _near(rng, in_tract, shape.likeness[2])
                minors = np.clip(rng.normal(shape.minors, 0.05), 0.02, 0.6)
                for block in range(1 + min(int(rng.poisson(rng.gamma(2.0, shape.blocks / 2.0))), 998)):
                    codes.append(f"99{county:03d}{tract:06d}{group + 1}{block:03d}")
                    rows.append(_block(rng, shape, in_group, minors))
    order = np.argsort(codes, kind="stable")
    return MadeUpState([codes[i] for i in order], np.array(rows, dtype=np.int64)[order])


def _near(rng: np.random.Generator, mix: NDArray[np.float64], likeness: float) -> NDArray[np.float64]:
    return rng.dirichlet(mix * likeness + 1e-6)


def _block(
    rng: np.random.Generator, shape: Shape, mix: NDArray[np.float64], minors: float
) -> NDArray[np.int64]:
    """Adults and minors by group."""
    if rng.random() < shape.empty:
        return np.zeros(16, dtype=np.int64)
    size = 1 + rng.poisson(shape.people * rng.gamma(0.9, 1.0 / 0.9))
    by_group = rng.multinomial(size, _near(rng, mix, shape.likeness[3]))
    young = rng.binomial(by_group, np.clip(rng.normal(minors, 0.06), 0.0, 0.7))
    return np.concatenate([by_group - young, young])
