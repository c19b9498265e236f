"""The error of published numbers, by level, query and class of the number.

Every region has two variances for a row of a query, those of least squares (`subspaces`): its own, from its subtree alone, and the final
one, whose root is its `unit`. A number's class is given by its size in units. For each class the model gives, in units, the difference
between the truth and numbers of this class in simulations. It also says how the errors of a parent's children, apart from the error of the
parent, compare with their own variances.

Unions of leaves are split into families, and their errors are calibrated on unions of simulated leaves.

Notes
-----
**Implements**: children c of a parent p, their errors e_c = d_c + (v_c / s) e_p, where v_c is the own variance times the ratio
of the class, s the sum of v_c, and the d_c have the covariance diag(v) - v v' / s, independent of e_p. This holds for least squares
before any constraint binds. A sum of a_c e_c therefore has the variance sum a_c^2 v_c - (sum a_c v_c)^2 / s, and is
an additional (sum a_c v_c / s) e_p: the same problem one level up.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from louver._arrays import Floats, Ints
from louver.data.regions import RegionTree

if TYPE_CHECKING:
    from louver.topdown.errors.intervals import Sample

__all__ = [
    "COVERAGE",
    "NORMAL_HALF",
    "ErrorClasses",
    "ErrorModel",
    "Family",
    "Interval",
    "calibrate_unions",
    "combined",
    "family_of",
    "in_units",
    "union_error",
]

COVERAGE = 0.9
"""Of intervals."""

NORMAL_HALF = 1.6448536269514722
"""Standard deviations on either side of a normal 90 % interval."""

COLUMNS = ("first", "pairs", "bias", "error", "lower", "upper", "within")


@dataclass(frozen=True, slots=True, eq=False)
class Interval:
    """Standard errors and 90 % intervals of numbers, in the same shape."""

    standard_error: Floats
    lower: Ints
    upper: Ints


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ErrorClasses:
    """Classes of the numbers of one query at one level, or of unions; arrays (classes,), in units.

    Parameters
    ----------
    first : ndarray of float64
        Where each class begins, ascending from 0; for unions the number of leaves.
    pairs : ndarray of int64
        Number of simulated values that a class is based on; 0 where the least-squares values are used.
    bias, error : ndarray of float64
        Mean and root mean square of truth minus published number.
    lower, upper : ndarray of float64
        Quantiles of this difference that leave out a tenth of it.
    within : ndarray of float64
        Ratio of the variance among siblings to their own variances; for unions, the fraction of `upper` that leaves out a tenth where the
        lower end is zero.
    """

    first: Floats
    pairs: Ints
    bias: Floats
    error: Floats
    lower: Floats
    upper: Floats
    within: Floats

    @classmethod
    def linear(cls) -> ErrorClasses:
        """The single class of least squares before any constraint binds."""
        one = np.ones(1)
        return cls(
            first=np.zeros(1),
            pairs=np.zeros(1, np.int64),
            bias=np.zeros(1),
            error=one,
            lower=-NORMAL_HALF * one,
            upper=NORMAL_HALF * one,
            within=one,
        )

    def widened(self, ratio: float) -> ErrorClasses:
        """The same classes with squared errors scaled by this factor, except where least squares are used."""
        factor = np.where(self.pairs > 0, np.sqrt(ratio), 1.0)
        return replace(
            self,
            error=self.error * factor,
            lower=self.lower * factor,
            upper=self.upper * factor,
            within=self.within * factor**2,
        )

    def place(self, sizes: Floats) -> Ints:
        """Class of each given size."""
        found: Ints = np.maximum(np.searchsorted(self.first, sizes, side="right") - 1, 0)
        return found

    def intervals(self, numbers: Ints, units: Floats) -> Interval:
        """Intervals of numbers with these units; exact where the unit is zero."""
        place = self.place(in_units(numbers, units))
        lower = np.minimum(numbers, np.rint(numbers + self.lower[place] * units))
        upper = np.maximum(numbers, np.rint(numbers + self.upper[place] * units))
        return Interval(
            np.round(self.error[place] * units, 2),
            np.maximum(lower, 0).astype(np.int64),
            upper.astype(np.int64),
        )


def in_units(numbers: Ints | Floats, units: Floats) -> Floats:
    """Size of numbers in units."""
    return np.asarray(numbers / np.where(units > 0, units, 1.0), np.float64)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ErrorModel:
    """The classes of every query at every level, and those of unions of leaves.

    Parameters
    ----------
    levels, queries : tuple of str
    classes : mapping of (level, query) to ErrorClasses
    unions : mapping of query to ErrorClasses
        By number of leaves; `lower` and `upper` are in standard errors of the union.
    """

    levels: tuple[str, ...]
    queries: tuple[str, ...]
    classes: dict[tuple[int, int], ErrorClasses]
    unions: dict[int, ErrorClasses]

    def to_table(self) -> pa.Table:
        """One row for each class; the level is null for unions."""
        parts: list[tuple[str | None, int, ErrorClasses]] = [
            (self.levels[level], query, own) for (level, query), own in sorted(self.classes.items())
        ]
        parts += [(None, query, own) for query, own in sorted(self.unions.items())]
        rows: dict[str, list[object]] = {name: [] for name in ("level", "query", *COLUMNS)}
        for level, query, own in parts:
            rows["level"] += [level] * len(own.first)
            rows["query"] += [self.queries[query]] * len(own.first)
            for name in COLUMNS:
                rows[name] += getattr(own, name).tolist()
        kinds = {"level": pa.string(), "query": pa.string(), "pairs": pa.int64()}
        return pa.table({n: pa.array(column, kinds.get(n, pa.float64())) for n, column in rows.items()})

    @classmethod
    def from_table(cls, table: pa.Table, levels: Sequence[str], queries: Sequence[str]) -> ErrorModel:
        """Read the model from a table; a KeyError or ValueError if it does not belong to these levels and queries."""
        columns = {name: table[name].to_pylist() for name in ("level", "query", *COLUMNS)}
        rows: dict[tuple[str | None, str], list[int]] = {}
        for i, key in enumerate(zip(columns["level"], columns["query"], strict=True)):
            rows.setdefault(key, []).append(i)

        def own(level: str | None, query: str) -> ErrorClasses:
            here = rows[level, query]
            arrays = {name: np.array([columns[name][i] for i in here]) for name in COLUMNS}
            return ErrorClasses(**arrays)

        return cls(
            levels=tuple(levels),
            queries=tuple(queries),
            classes={(i, j): own(a, b) for i, a in enumerate(levels) for j, b in enumerate(queries)},
            unions={j: own(None, b) for j, b in enumerate(queries)},
        )


@dataclass(frozen=True, slots=True, eq=False)
class Family:
    """The errors of the children of one parent, for the rows of a query.

    Parameters
    ----------
    variance : ndarray, shape (children, rows)
        Among siblings: v_c.
    bias : ndarray, shape (children, rows)
        Expected value of truth minus published number.
    """

    variance: Floats
    bias: Floats


def combined(parts: Floats, family: Family) -> tuple[Floats, Floats, Floats]:
    """For a sum over children with these weights (children, rows): the parent's weight, and the remaining variance and bias (rows,)."""
    v = family.variance
    s = v.sum(axis=0)
    above = (parts * v).sum(axis=0) / np.where(s > 0, s, 1.0)
    variance = (parts**2 * v).sum(axis=0) - above**2 * s
    bias = (parts * family.bias).sum(axis=0) - above * family.bias.sum(axis=0)
    return above, np.maximum(variance, 0.0), bias


MOST_UNIONS = 100
"""Number of unions drawn in one simulation."""

MOST_ROWS = 32
"""Maximum number of rows of a query used to calibrate unions: those with most people."""

LEAVES = (1, 3, 9, 33)
"""Where classes of unions begin, by number of leaves."""

NORMAL_TENTH = 1.2815515655446004  # a tenth of a normal distribution lies more than this many standard deviations above the mean

MULTIPLIER, INCREMENT = 6364136223846793005, 1442695040888963407  # Knuth's generator modulo 2^64


def family_of(classes: ErrorClasses, numbers: Ints, own: Floats, final: Floats) -> Family:
    """The model's errors for children with these numbers (children, rows) and variances (children,), zero for exact ones."""
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
        Returns the children, on a given level, of a given parent.
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
    """Errors of the sums over simulated unions, in standard errors, by number of leaves.

    Errors of neighbours are more strongly related in reality than in simulations: intervals are never narrower than normal ones. Where the
    truth cannot be below an interval because that would be less than zero, the upper end may leave out the whole tenth.
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
    quantiles = [np.quantile(error[place == k], [tail, 1 - tail]) for k in range(len(first))]
    lower = np.array([min(-NORMAL_HALF, low) for low, _ in quantiles])
    upper = np.array([max(NORMAL_HALF, high) for _, high in quantiles])
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
    """Factor that shortens an upper end as long as at most a tenth of these errors, and of normal errors, lie beyond it."""
    if len(errors) < least:
        return 1.0
    return min(1.0, max(NORMAL_TENTH, float(np.quantile(errors, COVERAGE))) / upper)


def _class_starts(size: Floats, least: int) -> list[float]:
    """Numbers of leaves at which classes begin, each with at least this many sums."""
    first: list[float] = []
    for edge in LEAVES:
        before = (size < edge) & (size >= first[-1]) if first else np.ones(len(size), np.bool_)
        if (size >= edge).sum() >= least and before.sum() >= least:
            first.append(float(edge))
    return first


def _unions(sample: Sample) -> Iterator[Ints]:
    """Positions of leaves in a sample: neighbours from one or several families."""
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
    """For rows with people: the number of a simulated union with the bias removed, and its error, in standard errors."""
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
    is_noisy = (number > 0) & (variance > 0)
    deviation = np.sqrt(variance[is_noisy])
    return (number + bias)[is_noisy] / deviation, (off - bias)[is_noisy] / deviation
