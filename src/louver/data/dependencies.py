"""Dependencies between columns: the value of one determines that of the other, exactly or almost.

For columns A and B, every record except the first of each value of A is a trial, and a hit if it has the B that most records with its A
have. A determines B if nearly all trials are hits, far more than the commonest value of B alone would explain, and if so many hits are very
unlikely by chance. Values of A that occur once do not count, so ids determine nothing here.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from louver._arrays import Ints
from louver.data.coded import CodedColumn
from louver.run import Run

__all__ = ["Dependency", "find_dependencies", "is_function", "near_function"]

LEAST_ACCURACY = 0.95
"""Minimum share of trials that must be hits."""
LEAST_GAIN = 0.9
"""Minimum share of the errors left by the commonest value alone that must be corrected."""
CHANCE = 1e-6
"""Maximum probability that a table of independent columns shows any dependency."""
LIKELY = 1e-3
"""Maximum probability for a column that determines another in all records of an audit: readers know which district lies in which region,
and assuming too much knowledge can only make a verdict stricter."""
SAMPLED_FROM = 2**18
SAMPLE = 2**16
SLACK = 0.02  # amount by which the accuracy in a sample may be lower


@dataclass(frozen=True, slots=True, kw_only=True)
class Dependency:
    """One column that determines another.

    Attributes
    ----------
    determinant, dependent : str
    share : float
        Share of the records with a value in both columns whose dependent value is the commonest for their determinant.
    accuracy : float
        Share of trials that are hits; 1 if the dependency is exact.
    is_exact : bool
    """

    determinant: str
    dependent: str
    share: float
    accuracy: float
    is_exact: bool


def find_dependencies(
    columns: Sequence[CodedColumn], run: Run, of: Sequence[CodedColumn] | None = None
) -> tuple[Dependency, ...]:
    """All pairs of columns of which one determines the other (or one `of` those), in the order of the columns.

    Notes
    -----
    Pairs of a large table are first tested on a sample: of values of A if these are many, of records otherwise. The remaining pairs are
    counted on all records. **Cost**: for each ordered pair a sort of the sample.
    """
    dependents = columns if of is None else of
    pairs = max(1, len(columns) * len(dependents) - (of is None) * len(columns))
    found = []
    for number, a in enumerate(columns):
        run.report("dependencies", number, len(columns))
        sample = _sample_of(a)
        for b in dependents:
            if a is b or not _is_possible(a, b):
                continue
            if sample is not None and not _trials(a, b, sample).is_determining(pairs, SLACK, 1.0):
                continue
            run.check()
            trials = _trials(a, b, None)
            if trials.is_determining(pairs, 0.0, CHANCE):
                found.append(trials.to_dependency(a.name, b.name))
    return tuple(found)


def is_function(codes_a: Ints, codes_b: Ints, counts: Ints) -> bool:
    """Whether A determines B in all records, and is unlikely to do so by chance.

    Parameters
    ----------
    codes_a, codes_b : ndarray of int64
        Distinct pairs of values that occur in the records.
    counts : ndarray of int64
        Number of records with each pair.
    """
    if len(np.unique(codes_a)) < len(codes_a) or not len(codes_a):
        return False
    n_records, n_trials = int(counts.sum()), int(counts.sum()) - len(codes_a)
    trials = _Trials(
        n_records=n_records,
        n_trials=n_trials,
        n_hits=n_trials,
        n_majority=n_records,
        commonest=float(np.bincount(codes_b, counts).max()) / n_records,
    )
    return trials.is_determining(1, 0.0, LIKELY)


def near_function(codes_a: Ints, codes_b: Ints, counts: Ints) -> tuple[dict[int, int], float] | None:
    """The commonest B of each A and the share of records that have it, if A nearly determines a coarser B and is unlikely to do so by
    chance.

    None if it does not, or if it does so in all records. Parameters as for `is_function`.
    """
    order = np.lexsort((-counts, codes_a))
    _, firsts = np.unique(codes_a[order], return_index=True)
    chosen = order[firsts]
    if len(chosen) == len(codes_a) or len(np.unique(codes_b)) >= len(chosen):
        return None
    n_records, n_majority = int(counts.sum()), int(counts[chosen].sum())
    trials = _Trials(
        n_records=n_records,
        n_trials=n_records - len(chosen),
        n_hits=n_majority - len(chosen),
        n_majority=n_majority,
        commonest=float(np.bincount(codes_b, counts).max()) / n_records,
    )
    if not trials.is_determining(1, 0.0, CHANCE):
        return None
    return dict(zip(codes_a[chosen].tolist(), codes_b[chosen].tolist(), strict=True)), n_majority / n_records


def _is_possible(a: CodedColumn, b: CodedColumn) -> bool:
    """Whether A has repeated values, and enough of them for the values of B."""
    if a.n_values < 2 or b.n_values < 2 or a.n_values == a.n_known:
        return False
    if a.n_values >= b.n_values:
        return True
    most = int(np.sort(b.counts)[-a.n_values :].sum()) + a.n_missing
    return most >= (LEAST_ACCURACY - SLACK) * b.n_known


def _sample_of(a: CodedColumn) -> Ints | None:
    """Positions of about 65,000 records: all records of sampled values of A if it has many; None if all records are used."""
    n_rows = len(a.codes)
    if n_rows <= SAMPLED_FROM:
        return None
    every = n_rows // SAMPLE
    keys = a.codes if a.n_values > 64 * every else np.arange(n_rows, dtype=np.int64)
    mixed = (keys.astype(np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    return np.flatnonzero((mixed >> np.uint64(40)) % np.uint64(every) == 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Trials:
    """Records with a value in both columns, the trials among them, the hits, and the share of the commonest B."""

    n_records: int
    n_trials: int
    n_hits: int
    n_majority: int
    commonest: float

    @property
    def accuracy(self) -> float:
        return self.n_hits / self.n_trials if self.n_trials else 0.0

    def is_determining(self, pairs: int, slack: float, chance: float) -> bool:
        accuracy = self.accuracy
        if accuracy < LEAST_ACCURACY - slack or self.commonest >= 1:
            return False
        gain = (accuracy - self.commonest) / (1 - self.commonest)
        surprise = self.n_trials * _divergence(accuracy, self.commonest)
        return gain >= LEAST_GAIN - 5 * slack and surprise >= math.log(pairs / chance)

    def to_dependency(self, determinant: str, dependent: str) -> Dependency:
        return Dependency(
            determinant=determinant,
            dependent=dependent,
            share=self.n_majority / self.n_records,
            accuracy=self.accuracy,
            is_exact=self.n_hits == self.n_trials,
        )


def _divergence(p: float, q: float) -> float:
    """Kullback-Leibler divergence of two Bernoulli distributions: n trials have this share of hits with probability at most exp(-n times
    this) (Chernoff)."""
    rest = 0.0 if p >= 1 else (1 - p) * math.log((1 - p) / (1 - q))
    return p * math.log(p / q) + rest


def _trials(a: CodedColumn, b: CodedColumn, sample: Ints | None) -> _Trials:
    codes_a, codes_b = (c.codes if sample is None else c.codes[sample] for c in (a, b))
    is_known = (codes_a < a.n_values) & (codes_b < b.n_values)
    if not is_known.all():
        codes_a, codes_b = codes_a[is_known], codes_b[is_known]
    if not len(codes_a):
        return _Trials(n_records=0, n_trials=0, n_hits=0, n_majority=0, commonest=1.0)
    keys = np.sort(codes_a.astype(np.int64) * b.n_values + codes_b)
    starts = np.flatnonzero(np.concatenate([[True], keys[1:] != keys[:-1]]))
    sizes = np.diff(np.append(starts, len(keys)))
    groups = keys[starts] // b.n_values
    firsts = np.flatnonzero(np.concatenate([[True], groups[1:] != groups[:-1]]))
    majority = int(np.maximum.reduceat(sizes, firsts).sum())
    return _Trials(
        n_records=len(keys),
        n_trials=len(keys) - len(firsts),
        n_hits=majority - len(firsts),
        n_majority=majority,
        commonest=float(np.bincount(codes_b, minlength=1).max()) / len(keys),
    )
