"""A stand-in bent to what is known of the composition: people of other labels, living together as the stand-in's people do.

Notes
-----
**Implements**: iterative proportional fitting (Deming and Stephan 1940) of leaves by cells. Among all tables with the wanted sizes
of leaves and counts of cells it has the least relative entropy to the stand-in, and it keeps the stand-in's odds ratios: how far groups
live apart does not change when their numbers do. A single step towards the counts does not reach them, since leaves keep their
sizes: its tables are more mixed than those asked for, and so are forecasts of their errors too high.
"""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np

from louver._arrays import Floats, Ints
from louver.topdown.problem import SparseLevel

__all__ = ["bent", "by_popularity", "gathered", "leaf_of", "rounded", "without_zeros"]

MOST_STEPS = 300
CLOSE = 1e-4
"""Relative change of a cell's counts at which fitting ends."""

NOBODY = 1e-9
"""People wanted in a cell that has none, so that leaves with no other cell keep their people."""


def leaf_of(leaves: SparseLevel) -> Ints:
    """The leaf that each count belongs to."""
    return np.repeat(np.arange(leaves.n_regions), np.diff(leaves.start))


def gathered(leaf: Ints, cell: Ints, count: Ints, n_regions: int) -> SparseLevel:
    """Histograms from triples in any order, each cell of a leaf once."""
    order = np.lexsort((cell, leaf))
    start = np.searchsorted(leaf[order], np.arange(n_regions + 1)).astype(np.int64)
    return SparseLevel(start=start, cell=cell[order], count=count[order])


def by_popularity(leaves: SparseLevel, weight: Floats, shape: tuple[int, ...], wanted: Ints) -> SparseLevel:
    """The same people under other labels: the most frequent label of each attribute for the most frequent that is wanted."""
    has = np.bincount(leaves.cell, weight, minlength=len(wanted))
    label = []
    for axis in range(len(shape)):
        others = tuple(other for other in range(len(shape)) if other != axis)
        own, asked = (values.reshape(shape).sum(axis=others) for values in (has, wanted))
        to = np.empty(shape[axis], dtype=np.int64)
        to[np.argsort(-own, kind="stable")] = np.argsort(-asked, kind="stable")
        label.append(to)
    codes = np.unravel_index(leaves.cell, shape)
    cell = np.ravel_multi_index(tuple(to[code] for to, code in zip(label, codes, strict=True)), shape)
    return gathered(leaf_of(leaves), cell, leaves.count, leaves.n_regions)


def bent(leaves: SparseLevel, sizes: Floats, region: Ints, composition: Ints) -> Floats:
    """For every count what it becomes where leaves have these sizes, and the cells of regions are mixed as they are wanted.

    Parameters
    ----------
    leaves : SparseLevel
    sizes : ndarray, shape (leaves,)
    region : ndarray of int64, shape (leaves,)
        Which region a leaf lies in.
    composition : ndarray of int64, shape (regions, cells)
        Scaled to the people of each region; one without counts takes the mix of the whole.
    """
    leaf, asked = leaf_of(leaves), np.maximum(composition, NOBODY)
    asked = np.where(composition.sum(axis=1, keepdims=True) > 0, asked, asked.sum(axis=0))
    asked *= (np.bincount(region, sizes, minlength=len(asked)) / asked.sum(axis=1))[:, None]
    group, place = np.unique(region[leaf] * asked.shape[1] + leaves.cell, return_inverse=True)
    wanted, counts = asked.ravel()[group], leaves.count.astype(np.float64)
    for _ in range(MOST_STEPS):
        ratio = wanted / np.maximum(np.bincount(place, counts), 1e-300)
        counts = counts * ratio[place]
        whole = np.bincount(leaf, counts, minlength=leaves.n_regions)
        counts *= (sizes / np.maximum(whole, 1e-300))[leaf]
        if np.abs(ratio - 1.0).max(initial=0.0) < CLOSE:
            break
    return counts


def rounded(leaves: SparseLevel, wanted: Floats, draw: random.Random) -> SparseLevel:
    """Histograms with these counts, rounded at random, systematically within a leaf."""
    leaf, upto = leaf_of(leaves), np.cumsum(wanted)
    before = np.concatenate([[0.0], upto])[leaves.start[:-1]]
    offset = np.array([draw.random() for _ in range(leaves.n_regions)]) - before
    count = (np.floor(upto + offset[leaf]) - np.floor(upto - wanted + offset[leaf])).astype(np.int64)
    return without_zeros(replace(leaves, count=count))


def without_zeros(leaves: SparseLevel) -> SparseLevel:
    """The same without cells that nobody has."""
    some = leaves.count > 0
    return gathered(leaf_of(leaves)[some], leaves.cell[some], leaves.count[some], leaves.n_regions)
