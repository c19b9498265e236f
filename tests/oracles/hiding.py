"""Brute force for hidden cells: every table of whole numbers that a reader of tables with marks cannot rule out.

Shares no code with the engine. A table of counts is a matrix with a row for each published number and a column for each cell
of the cross of all attributes. A reader sees the numbers that are shown and knows something about the others.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field

import numpy as np


@dataclass(frozen=True)
class Hiding:
    """A table that hides counts from 1 to below `below`, and more cells: sums of the cells of a truth.

    `groups` merges codes of an axis (code -> new code). Numbers stand in the order of margins, finest first.
    """

    axes: tuple[int, ...]
    below: int
    groups: dict[int, tuple[int, ...]] = field(default_factory=dict)

    def labels(self, shape):
        """Of every published number: axis -> code (merged), totals leave axes out."""
        sizes = [max(self.groups[a]) + 1 if a in self.groups else shape[a] for a in self.axes]
        for size in range(len(self.axes), -1, -1):
            for chosen in itertools.combinations(range(len(self.axes)), size):
                for codes in itertools.product(*(range(sizes[place]) for place in chosen)):
                    yield {self.axes[place]: code for place, code in zip(chosen, codes, strict=True)}

    def sums(self, shape):
        """0/1 matrix: published numbers by cells."""
        cells = list(np.ndindex(*shape))
        rows = []
        for wanted in self.labels(shape):
            rows.append(
                [
                    all(
                        (self.groups[a][cell[a]] if a in self.groups else cell[a]) == code
                        for a, code in wanted.items()
                    )
                    for cell in cells
                ]
            )
        return np.array(rows, dtype=np.int64)


def exact_small(truth, published, *, is_knowing, more=4):
    """Small numbers that a reader works out, as (table, number).

    `published` holds a `Hiding` and the mask of its hidden numbers for each table. The plain reader knows that a hidden
    number is not 0, if none is, and that it is small, if only small ones are hidden. The knowing one knows for every hidden
    number whether it is small. Hidden numbers are tried up to so many people above the true ones.
    """
    sums = np.vstack([table.sums(truth.shape) for table, _ in published])
    true = sums @ truth.ravel()
    small = np.concatenate([_is_small(table, truth) for table, _ in published])
    low, high = true.copy(), true.copy()
    start = 0
    for table, hidden in published:
        own = np.flatnonzero(hidden) + start
        start += len(hidden)
        low[own], high[own] = int(true[own].all()), true[own] + more
        if true[own].all() and small[own].all():
            high[own] = table.below - 1
        if is_knowing:
            high[own[small[own]]] = table.below - 1
            low[own] = np.where(true[own] >= table.below, table.below, low[own])
    free = set(np.flatnonzero(small).tolist())
    for candidate in _agreeing(sums, low, high):
        free -= {number for number in free if candidate[number] != true[number]}
        if not free:
            break
    places = [(place, number) for place, (_, hidden) in enumerate(published) for number in range(len(hidden))]
    return {places[number] for number in free}


def _is_small(table, truth):
    true = table.sums(truth.shape) @ truth.ravel()
    return (true > 0) & (true < table.below)


def _agreeing(sums, low, high):
    """The published numbers of all tables of whole numbers that lie between two bounds, cell after cell."""
    n_cells = sums.shape[1]
    last = [max(np.flatnonzero(row)) for row in sums]
    ends = [[row for row in range(len(sums)) if last[row] == cell] for cell in range(n_cells)]

    def fill(cell, so_far):
        if cell == n_cells:
            yield so_far
            return
        column = sums[:, cell]
        room = int((high - so_far)[column > 0].min())
        for value in range(room + 1):
            now = so_far + value * column
            if all(now[row] >= low[row] for row in ends[cell]):
                yield from fill(cell + 1, now)

    return fill(0, np.zeros(len(sums), dtype=np.int64))
