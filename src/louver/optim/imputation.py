"""Completed copies of records whose values are known as intervals or sets: draws from a model, within what is known.

Chained equations: every column is drawn again and again given all others, numbers from a normal regression truncated to their interval,
categories from a logistic regression restricted to their set. The parameters are drawn as well, so that differences between copies show the
uncertainty (van Buuren 2018, chapter 4; Raghunathan et al. 2001).

An interval made from the values of a class says more than that its records lie within it: some record lies at each end. Draws that ignore
this are too close together, and regressions on them are too steep.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize
from scipy.special import ndtr, ndtri

from louver._arrays import Bools, Floats, Ints
from louver._mixing import GOLDEN, mixed

__all__ = ["Category", "Number", "draw_copies"]

FIRST_ROUNDS, ROUNDS_BETWEEN = 6, 2
"""Rounds before the first copy and between copies: by then the means of copies no longer drift in the benchmark's files."""
MOST_FITTED = 5_000
"""Maximum number of records a regression of labels is fitted to, evenly spread over the file."""
MOST_INDICATORS = 15
"""Indicators of a column among the predictors of others; rarer labels share the rest."""
RIDGE = 1e-3
LABEL_RIDGE = 0.1
"""Weights of normal priors on standardised coefficients of numbers and of labels: columns that repeat each other stay solvable."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Number:
    """A column of numbers.

    Attributes
    ----------
    lower, upper : ndarray of float64, shape (n,)
        Ends of what is known; equal where the number is known; NaN in both where nothing is known.
    is_whole : bool
        Whether its numbers are whole.
    is_attained : bool
        Whether some record in each class has the number at each end.
    """

    lower: Floats
    upper: Floats
    is_whole: bool
    is_attained: bool = False


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Category:
    """A column of labels.

    Attributes
    ----------
    sets : ndarray of bool, shape (s, labels)
        The sets that occur, each with at least one label.
    of : ndarray of int64, shape (n,)
        Set of each record.
    is_attained : bool
        Whether some record in each class has each label of its set.
    """

    sets: Bools
    of: Ints
    is_attained: bool = False


def draw_copies(
    columns: Sequence[Number | Category], classes: Ints, n_copies: int, seed: int
) -> Iterator[list[Floats | Ints]]:
    """Yield completed copies: one array per column, of numbers or positions of labels.

    Parameters
    ----------
    columns : sequence of Number or Category
    classes : ndarray of int64, shape (n,)
        Class of each record: records for which the same is known.
    n_copies, seed : int

    Notes
    -----
    **Cost**: per round and open column one regression on all others; memory of a few copies of the records.
    The same seed gives the same copies. The draws provide no protection: they are made from what has already been published.
    """
    chain = _ImputationChain(columns, classes, seed)
    for number in range(n_copies):
        for _ in range(ROUNDS_BETWEEN if number else FIRST_ROUNDS):
            chain.advance()
        yield [values.copy() for values in chain.values]


class _ImputationChain:
    """The current copy, and how it is redrawn."""

    def __init__(self, columns: Sequence[Number | Category], classes: Ints, seed: int) -> None:
        self._columns, self._classes, self._seed, self._n_uniforms = columns, classes, seed, 0
        self.values = [self._first(column) for column in columns]
        self._common = [
            _common_labels(values) if isinstance(column, Category) else np.zeros(0, np.int64)
            for column, values in zip(columns, self.values, strict=True)
        ]
        self._coefficients: dict[int, Floats] = {}
        self._open = [place for place, column in enumerate(columns) if _is_open(column)]

    def advance(self) -> None:
        """Draw every open column once, given all others."""
        for place in self._open:
            predictors = self._predictors(place)
            column = self._columns[place]
            if isinstance(column, Number):
                self.values[place] = self._draw_numbers(column, self.values[place], predictors)
            else:
                self.values[place] = self._draw_labels(place, column, self.values[place], predictors)

    def _first(self, column: Number | Category) -> Floats | Ints:
        """Initial values, spread evenly within what is known."""
        if isinstance(column, Category):
            return _pick(column.sets[column.of].astype(np.float64), self._uniforms(len(column.of)))
        lower, upper = _ends(column)
        return _inverse_uniform(lower, upper, self._uniforms(len(lower)), column.is_whole)

    def _uniforms(self, n: int) -> Floats:
        """Numbers between 0 and 1, both excluded; no stream is used twice."""
        self._n_uniforms += 1
        keys = np.arange(n, dtype=np.uint64) + np.uint64((self._n_uniforms << 40) % 2**64)
        stream = mixed(np.array([(self._seed * GOLDEN + 1) % 2**64], np.uint64))
        bits = mixed(mixed(keys * np.uint64(GOLDEN)) ^ stream)
        return ((bits >> np.uint64(12)).astype(np.float64) + 0.5) * 2.0**-52

    def _predictors(self, but: int) -> Floats:
        """The predictors: a constant, and every other column as a standardised number or as indicators."""
        n = len(self.values[but])
        parts = [np.ones((n, 1))]
        for place, values in enumerate(self.values):
            if place != but:
                column = self._columns[place]
                raw = (
                    _powers(values)
                    if isinstance(column, Number)
                    else _indicators(values, self._common[place])
                )
                spread = raw.std(axis=0)
                parts.append((raw - raw.mean(axis=0)) / np.where(spread > 0, spread, 1.0))
        return np.concatenate(parts, axis=1)

    def _draw_numbers(self, column: Number, current: Floats | Ints, x: Floats) -> Floats:
        """Draw from a normal regression with drawn parameters, truncated to each interval."""
        n, k = x.shape
        centre, scale = float(current.mean()), float(current.std()) or 1.0
        y = (current - centre) / scale
        gram = x.T @ x + RIDGE * np.eye(k)
        found = np.linalg.solve(gram, x.T @ y)
        # the variance by Rubin: residual sum of squares over a chi-squared number, here by its normal approximation
        freedom = max(n - k, 1)
        chi = max(freedom + np.sqrt(2.0 * freedom) * float(ndtri(self._uniforms(1))[0]), freedom / 4)
        sigma = np.sqrt(max(float(((y - x @ found) ** 2).sum()), 1e-12) / chi)
        noise = np.linalg.solve(np.linalg.cholesky(gram).T, ndtri(self._uniforms(k)))
        mean = x @ (found + sigma * noise)
        lower, upper = _ends(column)
        half = 0.5 if column.is_whole else 0.0
        low, high = (((end - centre) / scale - mean) / sigma for end in (lower - half, upper + half))
        drawn = centre + scale * (mean + sigma * _inverse_normal(low, high, self._uniforms(n)))
        drawn = np.clip(np.round(drawn) if column.is_whole else drawn, lower, upper)
        if column.is_attained:
            for end, other in ((lower, upper), (upper, lower)):
                distance = ((end - centre) / scale - mean) / sigma
                drawn = self._attain(drawn, end, other, -0.5 * distance**2)
        result: Floats = drawn
        return result

    def _attain(self, drawn: Floats, end: Floats, other: Floats, log_odds: Floats) -> Floats:
        """In classes where no record has the number at one end, assign it to a record that is not the only one at the other end."""
        n_classes = int(self._classes.max(initial=-1)) + 1
        n_at_end, n_at_other = (
            np.bincount(self._classes, weights=drawn == place, minlength=n_classes)[self._classes]
            for place in (end, other)
        )
        may_move = (end != other) & ((drawn != other) | (n_at_other > 1))
        candidates = np.flatnonzero(may_move & (n_at_end == 0))
        chosen = self._choose(candidates, log_odds[candidates])
        drawn[chosen] = end[chosen]
        return drawn

    def _choose(self, candidates: Ints, log_odds: Floats) -> Ints:
        """One candidate from each class, with probabilities in these proportions (the largest of log odds plus Gumbel numbers)."""
        keys = log_odds - np.log(-np.log(self._uniforms(len(candidates))))
        order = np.lexsort((-keys, self._classes[candidates]))
        of = self._classes[candidates][order]
        chosen: Ints = (
            candidates[order[np.concatenate([[True], of[1:] != of[:-1]])]] if len(of) else candidates
        )
        return chosen

    def _draw_labels(self, place: int, column: Category, current: Floats | Ints, x: Floats) -> Ints:
        """Draw from a multinomial logistic regression with drawn coefficients, restricted to each record's set."""
        labels = current.astype(np.int64)
        step = -(-len(x) // MOST_FITTED)
        found = _fit_labels(x[::step], labels[::step], column.sets.shape[1], self._coefficients.get(place))
        self._coefficients[place] = found
        drawn = found + self._shake(x[::step], found)
        scores = np.where(column.sets[column.of], x @ drawn, -np.inf)
        chances = np.exp(scores - scores.max(axis=1, keepdims=True))
        picked = _pick(chances, self._uniforms(len(x)))
        return self._attain_labels(column, picked, scores) if column.is_attained else picked

    def _attain_labels(self, column: Category, picked: Ints, scores: Floats) -> Ints:
        """In classes where no record has a certain label of the set, assign it to a record whose own label others also have."""
        n_labels, n_classes = column.sets.shape[1], int(self._classes.max(initial=-1)) + 1
        for label in np.flatnonzero(column.sets[column.sets.sum(axis=1) > 1].any(axis=0)):
            held = np.bincount(self._classes * n_labels + picked, minlength=n_classes * n_labels)
            is_free = held[self._classes * n_labels + picked] > 1
            lacks = held[self._classes * n_labels + label] == 0
            candidates = np.flatnonzero(column.sets[column.of, label] & lacks & is_free)
            rows = scores[candidates]
            odds = rows[:, label] - rows[np.arange(len(rows)), picked[candidates]]
            picked[self._choose(candidates, odds)] = label
        return picked

    def _shake(self, x: Floats, found: Floats) -> Floats:
        """Deviations of coefficients as large as their standard errors, label by label."""
        scores = x @ found
        chances = np.exp(scores - scores.max(axis=1, keepdims=True))
        chances /= chances.sum(axis=1, keepdims=True)
        moved = np.zeros_like(found)
        for label in range(found.shape[1]):
            p = chances[:, label]
            curvature = x.T @ ((p * (1 - p))[:, None] * x) + LABEL_RIDGE * np.eye(x.shape[1])
            moved[:, label] = np.linalg.solve(
                np.linalg.cholesky(curvature).T, ndtri(self._uniforms(x.shape[1]))
            )
        return moved


def _fit_labels(x: Floats, labels: Ints, n_labels: int, start: Floats | None) -> Floats:
    """Coefficients of a multinomial logistic regression with a weak normal prior, one column for each label."""
    wanted = np.zeros((len(labels), n_labels))
    wanted[np.arange(len(labels)), labels] = 1.0

    def loss(flat: Floats) -> tuple[float, Floats]:
        coefficients = flat.reshape(x.shape[1], n_labels)
        scores = x @ coefficients
        scores -= scores.max(axis=1, keepdims=True)
        powers = np.exp(scores)
        totals = powers.sum(axis=1, keepdims=True)
        value = np.log(totals).sum() - (scores * wanted).sum() + 0.5 * LABEL_RIDGE * (flat @ flat)
        slope = x.T @ (powers / totals - wanted) + LABEL_RIDGE * coefficients
        return float(value), slope.ravel()

    first = np.zeros(x.shape[1] * n_labels) if start is None else start.ravel()
    found = minimize(
        loss, first, jac=True, method="L-BFGS-B", options={"maxiter": 30 if start is None else 5}
    )
    coefficients: Floats = found.x.reshape(x.shape[1], n_labels)
    return coefficients


def _is_open(column: Number | Category) -> bool:
    if isinstance(column, Number):
        return bool((column.lower != column.upper).any())
    return bool((column.sets.sum(axis=1) > 1)[column.of].any())


def _ends(column: Number) -> tuple[Floats, Floats]:
    """The ends of the known interval; where nothing is known, those of the whole column."""
    is_known = ~np.isnan(column.lower)
    least = float(column.lower[is_known].min()) if is_known.any() else 0.0
    most = float(column.upper[is_known].max()) if is_known.any() else 0.0
    return np.where(is_known, column.lower, least), np.where(is_known, column.upper, most)


def _inverse_uniform(lower: Floats, upper: Floats, uniforms: Floats, is_whole: bool) -> Floats:
    if is_whole:
        return np.minimum(lower + np.floor((upper - lower + 1) * uniforms), upper)
    return lower + (upper - lower) * uniforms


def _inverse_normal(low: Floats, high: Floats, uniforms: Floats) -> Floats:
    """A standard normal number between two ends; far in a tail, where probabilities round to 0, evenly between them."""
    flip = low > 0  # the lower tail keeps its digits
    low, high = np.where(flip, -high, low), np.where(flip, -low, high)
    below, above = ndtr(low), ndtr(high)
    found = ndtri(below + (above - below) * uniforms)
    is_lost = (above - below < 1e-290) | ~np.isfinite(found)
    even = low + (high - low) * uniforms
    result: Floats = np.where(flip, -1.0, 1.0) * np.where(is_lost, even, found)
    return result


def _powers(values: Floats | Ints) -> Floats:
    """A number and its square, so that a relation may be curved."""
    centred = values - values.mean()
    found: Floats = np.stack([centred, centred**2], axis=1)
    return found


def _common_labels(labels: Floats | Ints) -> Ints:
    """Labels that get an indicator of their own: the most common ones except the first."""
    counts = np.bincount(labels.astype(np.int64))
    order = np.argsort(-counts, kind="stable")[1 : MOST_INDICATORS + 1]
    found: Ints = order[counts[order] > 0].astype(np.int64)
    return found


def _indicators(labels: Floats | Ints, common: Ints) -> Floats:
    """One column for each of these labels; other labels have zeros in all of them."""
    found: Floats = (labels.astype(np.int64)[:, None] == common).astype(np.float64)
    return found


def _pick(chances: Floats, uniforms: Floats) -> Ints:
    """One position for each row, with the row's probabilities."""
    cumulative = np.cumsum(chances, axis=1)
    picked: Ints = (cumulative < uniforms[:, None] * cumulative[:, -1:]).sum(axis=1).astype(np.int64)
    return picked
