"""Before and after: how far the published values keep the distributions and the associations of the source.

A published interval, set or node says nothing about where inside it a value lies; after generalisation a record is
spread evenly over all that its published value stands for. What is computed here describes the confidential values
and stays inside: it is in the result and in the report for the steward, never in the release.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from louver._arrays import Floats, Ints
from louver.anonymize.columns import Column, NumericColumn, given_values
from louver.anonymize.generalise import Meaning, Published, Sort
from louver.schema.attribute import Attribute

__all__ = ["Association", "Comparison", "Distribution", "compare"]

N_BINS = 20
MISSING_BIN = "(missing)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Distribution:
    """Shares of the records in the bins or categories of one quasi-identifier.

    Attributes
    ----------
    distance : float
        Total variation distance between before and after.
    """

    name: str
    bins: tuple[str, ...]
    before: tuple[float, ...]
    after: tuple[float, ...]

    @property
    def distance(self) -> float:
        return sum(abs(a - b) for a, b in zip(self.before, self.after, strict=True)) / 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Association:
    """Cramer's V of two quasi-identifiers in their bins, before and after."""

    first: str
    second: str
    before: float
    after: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Distributions and associations of the quasi-identifiers before and after."""

    distributions: tuple[Distribution, ...]
    associations: tuple[Association, ...]


def compare(columns: Sequence[Column], published: Sequence[Published], rows: Ints, sizes: Ints) -> Comparison:
    """Compare source and release.

    Parameters
    ----------
    columns, published : sequences
        One of each for every quasi-identifier.
    rows : int64 (n,)
        Source rows of the sample.
    sizes : int64 (groups,)
        Records published as each group.
    """
    bins = [_Bins(p.attribute, c, rows) for c, p in zip(columns, published, strict=True)]
    before = [b.of_records for b in bins]
    after = [
        np.stack([b.spread(meaning) for meaning in p.meanings])[p.of_group]
        for b, p in zip(bins, published, strict=True)
    ]
    n_published = max(1, int(sizes.sum()))
    distributions = tuple(
        Distribution(
            name=b.name,
            bins=b.labels,
            before=tuple((np.bincount(old, minlength=len(b.labels)) / len(rows)).tolist()),
            after=tuple((sizes @ new / n_published).tolist()),
        )
        for b, old, new in zip(bins, before, after, strict=True)
    )
    associations = tuple(
        Association(
            first=bins[i].name,
            second=bins[j].name,
            before=_cramers_v(_crossed(before[i], before[j], bins[i], bins[j])),
            after=_cramers_v((after[i] * sizes[:, None]).T @ after[j]),
        )
        for i, j in combinations(range(len(bins)), 2)
    )
    return Comparison(distributions=distributions, associations=associations)


class _Bins:
    """Bins of one quasi-identifier: its labels, or at most N_BINS equal steps of its range."""

    def __init__(self, attribute: Attribute, column: Column, rows: Ints) -> None:
        self.name = attribute.name
        self._edges: Floats | None = None
        values = given_values(column, rows)
        missing = np.isnan(values)
        if isinstance(column, NumericColumn) and not attribute.labels:
            low, high = column.span
            is_whole = bool((values[~missing] == np.floor(values[~missing])).all())
            self._width = 1.0 if is_whole else 0.0
            n = min(N_BINS, int(high - low) + 1) if is_whole else N_BINS
            edges = np.linspace(low, high + self._width, n + 1)
            self._edges = np.floor(edges) if is_whole else edges
            labels = [f"{edge:g}" for edge in self._edges[:-1]]
            codes = np.clip(np.searchsorted(self._edges, values, side="right") - 1, 0, n - 1)
        else:
            labels = list(attribute.labels)
            codes = np.where(missing, 0, values).astype(np.int64)
        self._n_values = len(labels)
        if missing.any():
            labels.append(MISSING_BIN)
        self.labels = tuple(labels)
        self.of_records: Ints = np.where(missing, self._n_values, np.where(missing, 0, codes)).astype(
            np.int64
        )
        self._place = {label: place for place, label in enumerate(labels)}

    def spread(self, meaning: Meaning) -> Floats:
        """Shares of the bins that a record with this published value has."""
        shares = np.zeros(len(self.labels))
        if meaning.sort is Sort.MISSING:
            shares[-1] = 1.0
        elif meaning.members is not None:
            shares[[self._place[label] for label in meaning.members]] = 1.0
        elif meaning.sort is Sort.ANYTHING:
            shares[:] = 1.0
        else:
            assert self._edges is not None and meaning.lower is not None and meaning.upper is not None
            stop = meaning.upper + self._width
            overlap = np.minimum(self._edges[1:], stop) - np.maximum(self._edges[:-1], meaning.lower)
            shares[: self._n_values] = np.maximum(overlap, 0.0)
            if not shares.any():  # a single number without width
                place = int(np.searchsorted(self._edges, meaning.lower, side="right")) - 1
                shares[min(max(place, 0), self._n_values - 1)] = 1.0
        normalised: Floats = shares / shares.sum()
        return normalised


def _crossed(first: Ints, second: Ints, a: _Bins, b: _Bins) -> Floats:
    n, m = len(a.labels), len(b.labels)
    return np.bincount(first * m + second, minlength=n * m).reshape(n, m).astype(np.float64)


def _cramers_v(table: Floats) -> float:
    """Cramer's V, from 0 (independent) to 1."""
    table = table[table.sum(axis=1) > 0][:, table.sum(axis=0) > 0]
    least = min(table.shape) - 1
    if least < 1:
        return 0.0
    total = table.sum()
    expected = np.outer(table.sum(axis=1), table.sum(axis=0)) / total
    return float(np.sqrt(((table - expected) ** 2 / expected).sum() / (total * least)))
