"""Which analyses survive: chosen means, shares and regressions before and after, side by side with their intervals.

After generalisation every interval and set is replaced by draws (`release.draws`), and the estimates of several copies are combined, as a
careful analyst of the published file would do. The results describe confidential records and are for internal use only.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from louver._arrays import Bools, Floats
from louver._words import counted, listed
from louver.data.coded import typed
from louver.errors import InputError
from louver.optim.regression import Fit, combine, fit_linear, fit_logistic, fit_mean
from louver.release.draws import draw_tables
from louver.run import Run
from louver.schema.analysis import Analysis

__all__ = ["Comparisons", "TermComparison", "compare_analyses"]

COPIES = 10
CONFIDENCE = 0.95
LEAST_OVERLAP = 0.5
"""Minimum average overlap of two intervals that lead to the same conclusion."""
LONGEST = 4.0
"""How many times as long the interval of a surviving estimate may become: one around everything overlaps with all of the old one."""
MOST_LABELS = 50
"""Maximum number of labels of a column that enter an analysis individually."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TermComparison:
    """One estimate before and after. Confidential.

    Attributes
    ----------
    analysis, term : str
    before, before_lower, before_upper : float
        The estimate from the source, with a 95 % interval.
    after, after_lower, after_upper : float or None
        The estimate from the published file; None if it can no longer be estimated.
    overlap : float
        Length common to both intervals, averaged as a share of each (Karr et al. 2006); 0 where they do not overlap.
    survives : bool
        Whether they overlap by half or more, the new one is at most four times as long, and both lead to the same conclusion about a
        coefficient: above 0, below 0, or neither.
    """

    analysis: str
    term: str
    before: float
    before_lower: float
    before_upper: float
    after: float | None
    after_lower: float | None
    after_upper: float | None
    overlap: float
    survives: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparisons:
    """All estimates, and whether published and original records can be told apart. Confidential.

    Attributes
    ----------
    terms : tuple of TermComparison
    not_estimated : tuple of str
        Analyses that cannot be estimated on the source itself, such as logistic regressions whose predictors separate the outcome.
    propensity : float or None
        Mean squared error of the propensity score, divided by its value if both files came from the same population: 1 is as good as the
        original (Snoke et al. 2018); None if it cannot be estimated.
    """

    terms: tuple[TermComparison, ...]
    not_estimated: tuple[str, ...]
    propensity: float | None

    @property
    def sentence(self) -> str:
        """A sentence that says how many estimates survive."""
        n, n_lost = len(self.terms), sum(not term.survives for term in self.terms)
        some = "All" if not n_lost else f"{n - n_lost:,} of"
        found = (
            f"{some} {counted(n, 'estimate')} of the analyses survive."
            if n
            else "No analysis can be estimated."
        )
        if n and self.not_estimated:
            found += f" Cannot be estimated on the source itself: {listed(self.not_estimated)}."
        return found


def compare_analyses(
    source: pa.Table,
    published: pa.Table,
    mapping: pa.Table,
    analyses: Sequence[Analysis],
    *,
    weight: str | None,
    is_local: bool,
    run: Run,
) -> Comparisons | None:
    """Estimate on the source and on completed copies of the published file.

    Parameters
    ----------
    source : pyarrow.Table
        The confidential records.
    published, mapping : pyarrow.Table
        The release.
    weight : str, optional
        Column of sampling weights; where it is not published, the published records count as one each.
    is_local : bool
        Whether intervals and sets were derived from the values of a class.
    """
    if not analyses:
        return None
    before = _Data.of(source, analyses, weight)
    copies = []
    for number, copy in enumerate(draw_tables(published, mapping, COPIES, 0, is_local=is_local)):
        run.report("analyses", number, COPIES)
        copies.append(_Data.of(copy, analyses, weight))
    terms: list[TermComparison] = []
    not_estimated = []
    for one in analyses:
        groups = before.terms(one)
        then = before.fit(one, groups)
        if np.isnan(then.estimates).all():
            not_estimated.append(one.name)
            continue
        now = combine([copy.fit(one, groups) for copy in copies])
        terms += _compared(one, groups, then, now)
    columns = sorted({name for one in analyses for name in (one.of, *one.by, *one.on)})
    return Comparisons(
        terms=tuple(terms),
        not_estimated=tuple(not_estimated),
        propensity=_propensity(before, copies[0], columns),
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Data:
    """Columns that analyses name: numbers as float64 (NaN where missing), anything else as labels."""

    numbers: Mapping[str, Floats]
    labels: Mapping[str, pa.Array]
    weights: Floats

    @staticmethod
    def of(table: pa.Table, analyses: Sequence[Analysis], weight: str | None) -> _Data:
        numbers, labels = {}, {}
        for name in dict.fromkeys(name for one in analyses for name in (one.of, *one.by, *one.on)):
            if name not in table.column_names:
                raise InputError(
                    f'option --analysis names column "{name}", which is not published; keep it, or leave the analysis out.',
                    option="--analysis",
                    column=name,
                )
            column = typed(table[name].combine_chunks() if table[name].num_chunks == 1 else table[name])
            if pa.types.is_integer(column.type) or pa.types.is_floating(column.type):
                numbers[name] = np.array(pc.cast(column, pa.float64()).fill_null(np.nan), dtype=np.float64)
            else:
                text = pc.cast(column, pa.string())
                labels[name] = text.combine_chunks() if isinstance(text, pa.ChunkedArray) else text
        weights = np.ones(table.num_rows)
        if weight is not None and weight in table.column_names:
            weights = np.array(pc.cast(typed(table[weight]), pa.float64()), dtype=np.float64)
        return _Data(numbers=numbers, labels=labels, weights=weights)

    def terms(self, analysis: Analysis) -> list[Any]:
        """The terms of an analysis, from the source: groups, or a constant and predictors."""
        if analysis.kind in ("mean", "share"):
            return list(self._groups(analysis.by))
        found: list[Any] = [("(constant)", None)]
        for name in analysis.on:
            if name in self.numbers:
                found.append((name, None))
            else:
                found += [(name, label) for label in self._labels(name)[1:]]
        return found

    def _labels(self, name: str) -> list[str]:
        """Labels of a column, the commonest first."""
        counts = pc.value_counts(self.labels[name].drop_null()).to_pylist()
        if len(counts) > MOST_LABELS:
            raise InputError(
                f'option --analysis uses column "{name}", which has more than {MOST_LABELS} labels; merge some (--recode), or leave it '
                "out.",
                option="--analysis",
                column=name,
            )
        return [str(one["values"]) for one in sorted(counts, key=lambda one: (-one["counts"], one["values"]))]

    def _groups(self, by: Sequence[str]) -> Iterator[tuple[tuple[str, str], ...]]:
        for name in by:
            if name in self.numbers:
                raise InputError(
                    f'option --analysis groups by column "{name}", which holds numbers; divide it into bands (--recode) or '
                    "name another column.",
                    option="--analysis",
                    column=name,
                )
        if not by:
            yield ()
            return
        for label in self._labels(by[0]):
            for rest in self._groups(by[1:]):
                yield ((by[0], label), *rest)

    def fit(self, analysis: Analysis, terms: Sequence[Any]) -> Fit:
        """Estimates of the terms on these records; records with a missing value are left out."""
        y = self._outcome(analysis)
        if analysis.kind in ("mean", "share"):
            fits = [
                self._mean(y, np.logical_and.reduce([np.isfinite(y), *map(self._is, group)]))
                for group in terms
            ]
            return Fit(
                estimates=np.array([fit.estimates[0] for fit in fits]),
                standard_errors=np.array([fit.standard_errors[0] for fit in fits]),
                freedom=np.full(len(fits), np.inf),
            )
        x = np.column_stack([self._predictor(name, label) for name, label in terms])
        used = np.isfinite(x).all(axis=1) & np.isfinite(y)
        fit = fit_linear if analysis.kind == "linear" else fit_logistic
        if used.sum() <= x.shape[1]:
            nothing = np.full(x.shape[1], np.nan)
            return Fit(estimates=nothing, standard_errors=nothing, freedom=np.full(x.shape[1], np.inf))
        return fit(x[used], y[used], self.weights[used])

    def _mean(self, y: Floats, used: Bools) -> Fit:
        if used.sum() < 2:
            return Fit(
                estimates=np.array([np.nan]), standard_errors=np.array([np.nan]), freedom=np.array([np.inf])
            )
        return fit_mean(y[used], self.weights[used])

    def _outcome(self, analysis: Analysis) -> Floats:
        if analysis.label is not None:
            return self._is((analysis.of, analysis.label), missing=np.nan)
        if analysis.of not in self.numbers:
            raise InputError(
                f'option --analysis needs numbers in column "{analysis.of}"; name a label for a share or a logistic regression.',
                option="--analysis",
                column=analysis.of,
            )
        return self.numbers[analysis.of]

    def _is(self, pair: tuple[str, str], missing: float = 0.0) -> Floats:
        """1 where a column has a given label, else 0."""
        name, label = pair
        if name in self.numbers:
            values = self.numbers[name]
            return np.where(np.isnan(values), missing, values == _number(name, label)).astype(np.float64)
        found = pc.cast(pc.equal(self.labels[name], label), pa.float64()).fill_null(missing)
        return np.array(found, dtype=np.float64)

    def _predictor(self, name: str, label: str | None) -> Floats:
        if label is not None:
            return self._is((name, label), missing=np.nan)
        return self.numbers[name] if name in self.numbers else np.ones(len(self.weights))


def _number(name: str, label: str) -> float:
    try:
        return float(label)
    except ValueError:
        problem = f'option --analysis names a label of column "{name}" that is not a number, although all its values are.'
    raise InputError(problem, option="--analysis", column=name)


def _compared(analysis: Analysis, terms: Sequence[Any], then: Fit, now: Fit) -> Iterator[TermComparison]:
    is_regression = analysis.kind in ("linear", "logistic")
    (before_low, before_high), (after_low, after_high) = then.interval(CONFIDENCE), now.interval(CONFIDENCE)
    for i, term in enumerate(terms):
        if np.isnan(then.estimates[i]):
            continue
        is_lost = bool(np.isnan(now.estimates[i]))
        old, new = (before_low[i], before_high[i]), (after_low[i], after_high[i])
        overlap = 0.0 if is_lost else _overlap(old, new)
        is_same = not is_regression or is_lost or _side(old) == _side(new)
        is_close = overlap >= LEAST_OVERLAP and new[1] - new[0] <= LONGEST * (old[1] - old[0])
        yield TermComparison(
            analysis=analysis.name,
            term=_term_name(term, is_regression=is_regression),
            before=float(then.estimates[i]),
            before_lower=float(old[0]),
            before_upper=float(old[1]),
            after=None if is_lost else float(now.estimates[i]),
            after_lower=None if is_lost else float(new[0]),
            after_upper=None if is_lost else float(new[1]),
            overlap=overlap,
            survives=bool(is_close and is_same),
        )


def _term_name(term: Any, *, is_regression: bool) -> str:
    if is_regression:
        name, label = term
        return str(name) if label is None else f"{name} = {label}"
    return ", ".join(f"{name} = {label}" for name, label in term) or "everybody"


def _overlap(one: tuple[float, float], other: tuple[float, float]) -> float:
    """Length that both intervals have in common, as a share of each, averaged."""
    shared = min(one[1], other[1]) - max(one[0], other[0])
    lengths = (one[1] - one[0], other[1] - other[0])
    if min(lengths) <= 0:
        return float(shared >= 0)
    return float(max(0.0, sum(shared / length for length in lengths) / 2))


def _side(interval: tuple[float, float]) -> int:
    """1 for an interval above 0, -1 for one below 0, and 0 for one that contains 0."""
    return int(interval[0] > 0) - int(interval[1] < 0)


def _propensity(before: _Data, after: _Data, columns: Sequence[str]) -> float | None:
    """pMSE ratio of a logistic regression that distinguishes published records from source records."""
    parts = []
    for name in columns:
        if name in before.numbers:
            pair = np.concatenate([before.numbers[name], after.numbers[name]])
            parts += [np.nan_to_num(pair, nan=0.0), np.isnan(pair).astype(np.float64)]
        else:
            parts += [
                np.concatenate([data._is((name, label)) for data in (before, after)])
                for label in before._labels(name)[1:]
            ]
    is_new = np.repeat([0.0, 1.0], [len(before.weights), len(after.weights)])
    x = np.column_stack([np.ones(len(is_new)), *parts])
    spread = x.std(axis=0)
    is_used = (spread > 0) | (np.arange(x.shape[1]) == 0)
    x = x[:, is_used] / np.where(spread > 0, spread, 1.0)[is_used]
    fit = fit_logistic(x, is_new, np.ones(len(is_new)))
    used = np.isfinite(fit.estimates)
    k, share = int(used.sum()), float(is_new.mean())
    if k < 2:
        return None
    score = 1 / (1 + np.exp(-(x[:, used] @ fit.estimates[used])))
    expected = (k - 1) * (1 - share) ** 2 * share / len(is_new)
    return float(((score - share) ** 2).mean() / expected)
