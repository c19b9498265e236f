"""Before and after: how well the published values preserve the distributions and the associations of the source.

A published interval, set or node says nothing about where inside it a value lies; after generalisation a record is spread evenly over all
that its published value stands for. The figures describe confidential values: they are in the result and in the report for the steward,
never in the release.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from scipy.sparse import csr_array

from louver._arrays import Floats, Ints
from louver.anonymize.columns import NumericColumn, QuasiColumn, given_values
from louver.anonymize.generalise import Meaning, PublishedColumn, Sort
from louver.schema.attribute import Attribute, Kind

__all__ = ["Association", "BeforeAndAfter", "ColumnBins", "SharesOfColumn", "Tally", "compare", "tally"]

N_BINS = 20
MOST_DATE_BINS = 150
MISSING_BIN = "(missing)"


@dataclass(frozen=True, slots=True, kw_only=True)
class SharesOfColumn:
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
class BeforeAndAfter:
    """Distributions and associations of the quasi-identifiers before and after."""

    distributions: tuple[SharesOfColumn, ...]
    associations: tuple[Association, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Tally:
    """Records by bin, and by pairs of bins, before and after; tallies of parts of a file add up."""

    before: tuple[Floats, ...]
    after: tuple[Floats, ...]

    def __add__(self, other: Tally) -> Tally:
        return Tally(
            tuple(a + b for a, b in zip(self.before, other.before, strict=True)),
            tuple(a + b for a, b in zip(self.after, other.after, strict=True)),
        )


def tally(
    bins: Sequence[ColumnBins], before: Sequence[Ints], published: Sequence[PublishedColumn], sizes: Ints
) -> Tally:
    """Tally source and release.

    Parameters
    ----------
    bins, before, published : sequences
        For every quasi-identifier: its bins, the bin of each record, and its published form.
    sizes : int64 (groups,)
        Records published as each group.
    """
    after = [_spread(b, p) for b, p in zip(bins, published, strict=True)]
    pairs = list(combinations(range(len(bins)), 2))
    counted = [
        np.bincount(old, minlength=len(b.labels)).astype(np.float64)
        for b, old in zip(bins, before, strict=True)
    ]
    crossed = [_crossed(before[i], before[j], bins[i], bins[j]) for i, j in pairs]
    weighted = [new.multiply(sizes[:, None]).T.tocsr() for new in after]
    return Tally(
        (*counted, *crossed),
        (*(new.T @ sizes for new in after), *((weighted[i] @ after[j]).toarray() for i, j in pairs)),
    )


def _spread(bins: ColumnBins, published: PublishedColumn) -> csr_array:
    """Shares of the bins (groups, bins) that the records of each group have; most groups touch few bins."""
    rows = [bins.spread(meaning) for meaning in published.meanings]
    touched = [np.flatnonzero(row) for row in rows]
    shares = np.concatenate([row[places] for row, places in zip(rows, touched, strict=True)])
    starts = np.cumsum([0, *map(len, touched)])
    return csr_array((shares, np.concatenate(touched), starts), shape=(len(rows), len(bins.labels)))[
        published.of_group
    ]


def compare(bins: Sequence[ColumnBins], found: Tally) -> BeforeAndAfter:
    """Compare source and release by their tally."""
    n, n_published = found.before[0].sum(), max(1.0, round(found.after[0].sum()))
    distributions = tuple(
        SharesOfColumn(
            name=b.name,
            bins=b.labels,
            before=tuple((old / n).tolist()),
            after=tuple((new / n_published).tolist()),
        )
        for b, old, new in zip(bins, found.before, found.after, strict=False)
    )
    m = len(bins)
    associations = tuple(
        Association(first=a.name, second=b.name, before=_cramers_v(old), after=_cramers_v(new))
        for (a, b), old, new in zip(combinations(bins, 2), found.before[m:], found.after[m:], strict=True)
    )
    return BeforeAndAfter(distributions=distributions, associations=associations)


class ColumnBins:
    """Bins of one quasi-identifier: its labels, or at most N_BINS equal steps of its range."""

    def __init__(self, attribute: Attribute, column: QuasiColumn, rows: Ints) -> None:
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
            names = _bin_names(attribute)
            labels = list(dict.fromkeys(names))
            bin_of = {label: place for place, label in enumerate(labels)}
            of_label = np.array([bin_of[name] for name in names], np.int64)
            self._place = dict(zip(attribute.labels, of_label.tolist(), strict=True))
            codes = of_label[np.where(missing, 0, values).astype(np.int64)]
        self._n_values = len(labels)
        if missing.any():
            labels.append(MISSING_BIN)
        self.labels = tuple(labels)
        self.of_records: Ints = np.where(missing, self._n_values, np.where(missing, 0, codes)).astype(
            np.int64
        )

    def spread(self, meaning: Meaning) -> Floats:
        """Shares of the bins that a record with this published value has."""
        shares = np.zeros(len(self.labels))
        if meaning.sort is Sort.MISSING:
            shares[-1] = 1.0
        elif meaning.members is not None:
            np.add.at(shares, [self._place[label] for label in meaning.members], 1.0)
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


def _bin_names(attribute: Attribute) -> Sequence[str]:
    """The bin of each label: the label itself, and for days the finest level of the calendar that is not too long to show."""
    if attribute.kind is not Kind.DATE or attribute.hierarchy is None:
        return attribute.labels
    tree = attribute.hierarchy
    level = next(level for level in range(tree.n_levels) if len(tree.labels_at(level)) <= MOST_DATE_BINS)
    return [tree.ancestor_of(label, level) for label in attribute.labels]


def _crossed(first: Ints, second: Ints, a: ColumnBins, b: ColumnBins) -> Floats:
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
