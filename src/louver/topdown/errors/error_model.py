"""What is known of the error of published numbers: by level, query and class of the number.

Every region has two variances for a row of a query, those of least squares (`subspaces`): its own, from its subtree alone, and
the final one, whose root is its `unit`. A number belongs to a class by how many units it is large. For each class the model
says, in units, how far off the truth was from numbers of this class in simulations; and how the error of a parent's children,
apart from the parent's own, compares with their own variances.

Notes
-----
**Implements**: children c of a parent p, their errors e_c = d_c + (v_c / s) e_p, where v_c is the own variance times the ratio
of the class, s the sum of v_c, and the d_c have the covariance diag(v) - v v' / s, independent of e_p. So it is for least squares
before any constraint binds. A sum of a_c e_c therefore has the variance sum a_c^2 v_c - (sum a_c v_c)^2 / s, and is
(sum a_c v_c / s) e_p beside: the same again one level up.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from louver._arrays import Floats, Ints

__all__ = [
    "COVERAGE",
    "NORMAL_HALF",
    "ErrorClasses",
    "ErrorModel",
    "Family",
    "Interval",
    "combined",
    "in_units",
]

COVERAGE = 0.9
"""Of intervals."""

NORMAL_HALF = 1.6448536269514722
"""Standard deviations on either side of a normal 90 % interval."""

COLUMNS = ("first", "pairs", "bias", "error", "lower", "upper", "within")


@dataclass(frozen=True, slots=True, eq=False)
class Interval:
    """Standard errors and 90 % intervals of numbers, in the shape that they have."""

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
        Simulated numbers that it was read from; 0 where least squares are relied on.
    bias, error : ndarray of float64
        Mean and root mean square of truth less published number.
    lower, upper : ndarray of float64
        Quantiles of it that leave out a tenth.
    within : ndarray of float64
        Ratio of the variance among siblings to their own variances; for unions the part of `upper` that leaves out a tenth where the
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
        """Least squares before any constraint binds: one class."""
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
        """The same with squared errors so many times as large; not where least squares are relied on."""
        factor = np.where(self.pairs > 0, np.sqrt(ratio), 1.0)
        return replace(
            self,
            error=self.error * factor,
            lower=self.lower * factor,
            upper=self.upper * factor,
            within=self.within * factor**2,
        )

    def place(self, sizes: Floats) -> Ints:
        """Class of each size."""
        found: Ints = np.maximum(np.searchsorted(self.first, sizes, side="right") - 1, 0)
        return found

    def intervals(self, numbers: Ints, units: Floats) -> Interval:
        """Of numbers with these units; exact where the unit is zero."""
        place = self.place(in_units(numbers, units))
        lower = np.minimum(numbers, np.rint(numbers + self.lower[place] * units))
        upper = np.maximum(numbers, np.rint(numbers + self.upper[place] * units))
        return Interval(
            np.round(self.error[place] * units, 2),
            np.maximum(lower, 0).astype(np.int64),
            upper.astype(np.int64),
        )


def in_units(numbers: Ints | Floats, units: Floats) -> Floats:
    """How many units numbers are large."""
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
        """The model that was written; a KeyError or ValueError where it is none of these levels and queries."""
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
    """What is known of the children of one parent, for the rows of a query.

    Parameters
    ----------
    variance : ndarray, shape (children, rows)
        Among siblings: v_c.
    bias : ndarray, shape (children, rows)
        Expected truth less published number.
    """

    variance: Floats
    bias: Floats


def combined(parts: Floats, family: Family) -> tuple[Floats, Floats, Floats]:
    """Of a sum over children with these parts (children, rows): the parent's part, and variance and bias beside it (rows,)."""
    v = family.variance
    s = v.sum(axis=0)
    above = (parts * v).sum(axis=0) / np.where(s > 0, s, 1.0)
    variance = (parts**2 * v).sum(axis=0) - above**2 * s
    bias = (parts * family.bias).sum(axis=0) - above * family.bias.sum(axis=0)
    return above, np.maximum(variance, 0.0), bias
