"""Errors of unions of leaves: taken apart into families, and calibrated on unions of simulated leaves."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from louver._arrays import Floats, Ints
from louver.data.regions import RegionTree
from louver.topdown.errors.error_model import (
    COVERAGE,
    NORMAL_HALF,
    ErrorClasses,
    ErrorModel,
    Family,
    combined,
    in_units,
)

if TYPE_CHECKING:
    from louver.topdown.errors.intervals import Sample

__all__ = ["calibrate_unions", "family_of", "union_error"]

MOST_UNIONS = 100
"""Of one simulation."""

MOST_ROWS = 32
"""Rows of a query that unions are calibrated on: those with most people."""

LEAVES = (1, 3, 9, 33)
"""Where classes of unions begin, by number of leaves."""

NORMAL_TENTH = 1.2815515655446004  # standard deviations that a tenth of a normal distribution lies beyond

MULTIPLIER, INCREMENT = 6364136223846793005, 1442695040888963407  # Knuth's generator modulo 2^64


def family_of(classes: ErrorClasses, numbers: Ints, own: Floats, final: Floats) -> Family:
    """What the model says of children with these numbers (children, rows) and variances (children,); exact ones have none."""
    units = np.sqrt(final)[:, None]
    place = classes.place(in_units(numbers, units))
    return Family(classes.within[place] * np.where(final > 0, own, 0.0)[:, None], classes.bias[place] * units)


def union_error(
    starts: Sequence[Ints], leaves: Ints, family: Callable[[int, int], Family], root: tuple[Floats, Floats]
) -> tuple[Floats, Floats]:
    """Variance and bias (rows,) of the sum over some leaves.

    Parameters
    ----------
    starts : sequence of ndarray
        For each level but the last, where the children of every region begin.
    leaves : ndarray of int64
        Ascending.
    family : callable
        The children, which are of a level, of a parent.
    root : (variance, bias)
        Of the root itself.
    """
    variance, bias = np.zeros(len(root[0])), np.zeros(len(root[0]))
    parts: dict[int, Floats | None] = dict.fromkeys(leaves.tolist())  # None is the whole region
    for level in range(len(starts), 0, -1):
        above: dict[int, Floats | None] = {}
        for parent, children in _by_parent(starts[level - 1], parts).items():
            first, last = starts[level - 1][parent : parent + 2]
            if len(children) == last - first and all(parts[child] is None for child in children):
                above[parent] = None
                continue
            held = np.zeros((last - first, len(variance)))
            for child in children:
                own = parts[child]
                held[child - first] = 1.0 if own is None else own
            above[parent], more, shift = combined(held, family(level, parent))
            variance, bias = variance + more, bias + shift
        parts = above
    share = parts[0]
    factor = np.ones(len(variance)) if share is None else share
    return variance + factor**2 * root[0], bias + factor * root[1]


def _by_parent(starts: Ints, parts: dict[int, Floats | None]) -> dict[int, list[int]]:
    """Regions grouped by parent, in order."""
    found: dict[int, list[int]] = {}
    parents = np.searchsorted(starts, list(parts), side="right") - 1
    for parent, region in zip(parents.tolist(), parts, strict=True):
        found.setdefault(parent, []).append(region)
    return found


def calibrate_unions(
    model: ErrorModel,
    spine: RegionTree,
    query: int,
    samples: Sequence[Sequence[Sample]],
    own: Sequence[Floats],
    final: Sequence[Floats],
    *,
    least_pairs: int,
) -> ErrorClasses:
    """How far the sums over simulated unions were off, in their standard errors, by number of leaves.

    Errors of neighbours have more in common in truth than in simulations: intervals are never narrower than normal ones. Where zero
    keeps the truth from being below an interval, the upper end may leave out the whole tenth.
    """
    sizes, errors, numbers = [np.zeros(0)], [np.zeros(0)], [np.zeros(0)]
    rows = np.argsort(-samples[0][0].number[0], kind="stable")[:MOST_ROWS]
    for i in range(len(samples[0])):
        by_level = [
            replace(level[i], number=level[i].number[:, rows], off=level[i].off[:, rows]) for level in samples
        ]
        for union in _unions(by_level[-1]):
            number, z = _in_errors(model, spine, query, by_level, own, final, union)
            sizes.append(np.full(len(z), float(len(union))))
            errors.append(z)
            numbers.append(number)
    size, error, number = np.concatenate(sizes), np.concatenate(errors), np.concatenate(numbers)
    first = _class_starts(size, least_pairs)
    if not first:
        return ErrorClasses.linear()
    place = np.searchsorted(first, size, side="right") - 1
    tail = (1.0 - COVERAGE) / 2
    told = [np.quantile(error[place == k], [tail, 1 - tail]) for k in range(len(first))]
    lower = np.array([min(-NORMAL_HALF, low) for low, _ in told])
    upper = np.array([max(NORMAL_HALF, high) for _, high in told])
    cut = [error[(place == k) & (number + lower[place] <= 0)] for k in range(len(first))]
    return ErrorClasses(
        first=np.array(first),
        pairs=np.bincount(place, minlength=len(first)),
        bias=np.zeros(len(first)),
        error=np.array([max(1.0, np.sqrt(np.square(error[place == k]).mean())) for k in range(len(first))]),
        lower=lower,
        upper=upper,
        within=np.array([_left(z, most, least_pairs) for z, most in zip(cut, upper, strict=True)]),
    )


def _left(errors: Floats, upper: float, least: int) -> float:
    """Part of an upper end that leaves out a tenth of these errors, and of a normal one's."""
    if len(errors) < least:
        return 1.0
    return min(1.0, max(NORMAL_TENTH, float(np.quantile(errors, COVERAGE))) / upper)


def _class_starts(size: Floats, least: int) -> list[float]:
    """Numbers of leaves that classes begin with, each of so many sums or more."""
    first: list[float] = []
    for edge in LEAVES:
        before = (size < edge) & (size >= first[-1]) if first else np.ones(len(size), np.bool_)
        if (size >= edge).sum() >= least and before.sum() >= least:
            first.append(float(edge))
    return first


def _unions(sample: Sample) -> Iterator[Ints]:
    """Places of leaves in a sample: neighbours of one family, or of several."""
    ends = np.append(sample.starts[1:], len(sample.regions))
    state = 1
    for k in range(min(MOST_UNIONS, 4 * len(ends))):
        union: list[int] = []
        n_families = (1, 1, 2, 1, 4, 1, 8, 2)[k % 8]
        for _ in range(n_families):
            state = (state * MULTIPLIER + INCREMENT) % 2**64
            family = (state >> 33) % len(ends)
            first, n = int(sample.starts[family]), int(ends[family] - sample.starts[family])
            state = (state * MULTIPLIER + INCREMENT) % 2**64
            length, begin = 1 + (state >> 33) % n, (state >> 45) % n
            union += [first + (begin + j) % n for j in range(length)]
        yield np.unique(union)


def _in_errors(
    model: ErrorModel,
    spine: RegionTree,
    query: int,
    samples: Sequence[Sample],
    own: Sequence[Floats],
    final: Sequence[Floats],
    union: Ints,
) -> tuple[Floats, Floats]:
    """Number of a simulated union with the bias taken off, and how far it was off, in standard errors: of rows that hold anybody."""
    last = samples[-1]

    def family(level: int, parent: int) -> Family:
        first, end = spine.starts[level - 1][parent : parent + 2]
        place = slice(*np.searchsorted(samples[level].regions, [first, end]))
        return family_of(
            model.classes[level, query],
            samples[level].number[place],
            own[level][first:end, query],
            final[level][first:end, query],
        )

    top = model.classes[0, query]
    units = np.sqrt(final[0][:1, query])
    place = top.place(in_units(samples[0].number[0], units))
    root = (np.square(top.error[place] * units), top.bias[place] * units)
    variance, bias = union_error(spine.starts, last.regions[union], family, root)
    number, off = last.number[union].sum(axis=0), last.off[union].sum(axis=0)
    is_told = (number > 0) & (variance > 0)
    deviation = np.sqrt(variance[is_told])
    return (number + bias)[is_told] / deviation, (off - bias)[is_told] / deviation
