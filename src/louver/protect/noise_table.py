"""Perturbation tables of cell keys: the noise that is added to a count for each value of its key.

A table has a row for every true count from 1 up to a last one that stands for all larger counts. A row lists how many of the 2^20 values of
a key lead to each noise value, so that its distribution is exact and can be enumerated.

A built table has, in each row, the distribution of largest entropy among those on the whole numbers from -min(count, maximum) to the
maximum with mean 0 and the requested variance. Its weights are rounded to whole numbers such that the mean is exactly 0.

Notes
-----
**Implements**: Fraser & Wooton (2005), "A proposed method for confidentialising tabular output to protect against differencing", with
tables of the kind of Marley & Leaver (2011), "A method for confidentialising user-defined tables": entropy, mean, variance, bound.
**Departs**: a count of 0 remains 0 in every table, and a table that leaves a small count certain is refused (`check_safe`).
"""

from __future__ import annotations

import csv
import hashlib
import io
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from louver._arrays import Floats, Ints
from louver.errors import InputError
from louver.schema.validate import decode_text, read_bytes

__all__ = ["KEY_VALUES", "NoiseTable", "build_noise_table", "check_safe", "read_noise_table"]

KEY_BITS = 20
KEY_VALUES = 1 << KEY_BITS
"""Number of values that the key of a cell can have."""

LARGEST_NOISE = 1_000
UNBIASED = 1e-6
"""Mean up to which a row of a file counts as having mean 0; the exact table derived from it has mean 0."""

NEWTON_STEPS, SMALLEST_STEP = 200, 1e-13


@dataclass(frozen=True, slots=True, eq=False)
class NoiseTable:
    """Weights of noise for each true count.

    Attributes
    ----------
    rows : tuple of mapping of int to int
        For the counts 1, 2, ...: noise -> number of values of the key that lead to it; the last row is for all larger counts.
    """

    rows: tuple[Mapping[int, int], ...]

    @property
    def most(self) -> int:
        """The largest absolute noise."""
        return max(abs(noise) for row in self.rows for noise in row)

    @property
    def variance(self) -> float:
        """The variance of the noise of large counts."""
        return variance_of(self.rows[-1])

    @property
    def least_variance(self) -> float:
        """The variance of the counts that have the least noise."""
        return min(variance_of(row) for row in self.rows)

    def unchanged(self, count: int, *, or_less: bool = False) -> float:
        """Probability that a count is published unchanged, or with `or_less` as that or less."""
        row = self.row_of(count)
        return (
            sum(weight for noise, weight in row.items() if noise == 0 or (or_less and noise < 0)) / KEY_VALUES
        )

    @property
    def digest(self) -> str:
        """Digest of the table for the register."""
        text = ";".join(",".join(f"{d}:{w}" for d, w in sorted(row.items())) for row in self.rows)
        return hashlib.sha256(text.encode()).hexdigest()

    def row_of(self, count: int) -> Mapping[int, int]:
        return self.rows[min(count, len(self.rows)) - 1]

    def noise(self, counts: Ints, keys: Ints) -> Ints:
        """The noise of each cell; `keys` are below `KEY_VALUES`. A count of 0 has none."""
        found = np.zeros(len(counts), dtype=np.int64)
        which = np.minimum(counts, len(self.rows))
        for number, row in enumerate(self.rows, start=1):
            chosen = np.flatnonzero(which == number)
            noises = np.array(sorted(row), dtype=np.int64)
            thresholds = np.cumsum([row[int(noise)] for noise in noises])
            found[chosen] = noises[np.searchsorted(thresholds, keys[chosen], side="right")]
        return found


def variance_of(row: Mapping[int, int]) -> float:
    return sum(weight * noise * noise for noise, weight in row.items()) / KEY_VALUES


def build_noise_table(variance: float, most: int) -> NoiseTable:
    """The table of largest entropy with mean 0, this variance and noise of at most `most`.

    Raises
    ------
    InputError
        If a count cannot have noise of this variance.

    Examples
    --------
    >>> table = build_noise_table(2.0, 5)
    >>> len(table.rows), sorted(table.rows[0]), round(table.variance, 3)
    (5, [-1, 0, 1, 2, 3, 4, 5], 2.0)
    """
    rows = []
    for count in range(1, most + 1):
        noises = np.arange(-min(count, most), most + 1)
        largest = -int(noises[0]) * most  # all probability at the two ends
        if variance >= largest:
            raise InputError(
                f"option --variance: noise of a count of {count} with a mean of 0 and at most {most} has a variance below {largest}; "
                "give a smaller variance or a larger --max-noise.",
                option="--variance",
            )
        rows.append(_integer_weights(noises, _largest_entropy(noises, variance)))
    return NoiseTable(tuple(rows))


def _largest_entropy(noises: Ints, variance: float) -> Floats:
    """Probabilities exp(a d + b d^2) with mean 0 and the variance, by Newton's method on the convex dual."""
    moments = np.stack([noises, noises**2]).astype(np.float64)
    aim = np.array([0.0, variance])
    at = np.array([0.0, -0.5 / variance])
    for _ in range(NEWTON_STEPS):
        found = _exponential(at @ moments)
        off = moments @ found - aim
        if np.abs(off).max() < SMALLEST_STEP * max(1.0, variance):
            break
        centred = moments - (moments @ found)[:, None]
        step = np.linalg.lstsq((centred * found) @ centred.T, off, rcond=None)[0]
        value, size = _dual(at, moments, aim), 1.0
        while size > SMALLEST_STEP and _dual(at - size * step, moments, aim) > value - 1e-4 * size * (
            off @ step
        ):
            size /= 2
        at = at - size * step
    return _exponential(at @ moments)


def _exponential(exponents: Floats) -> Floats:
    sizes = np.exp(exponents - exponents.max())
    found: Floats = sizes / sizes.sum()
    return found


def _dual(at: Floats, moments: Floats, aim: Floats) -> float:
    exponents = at @ moments
    largest = float(exponents.max())
    return largest + math.log(float(np.exp(exponents - largest).sum())) - float(at @ aim)


def _integer_weights(noises: Ints, probabilities: Floats) -> dict[int, int]:
    """Whole weights close to the probabilities, with the exact sum `KEY_VALUES` and the exact mean 0.

    The rounding error of the sum and the mean is corrected at two neighbouring noise values, the most likely pair.
    """
    if len(noises) == 1:
        return {int(noises[0]): KEY_VALUES}
    weights = np.rint(probabilities * KEY_VALUES).astype(np.int64)
    missing, off = KEY_VALUES - int(weights.sum()), -int(noises @ weights)
    pair = int(np.argmax(probabilities[:-1] + probabilities[1:]))
    low = int(noises[pair])
    weights[pair + 1] += off - low * missing
    weights[pair] += missing - (off - low * missing)
    return {int(d): int(w) for d, w in zip(noises, weights, strict=True) if w}


def read_noise_table(path: Path) -> NoiseTable:
    """Read a table: a CSV file with the columns `i` (true count), `j` (published count) and `p`, as exported by ptable."""
    name = path.name
    text = decode_text(read_bytes(path), name)
    reader = csv.DictReader(
        io.StringIO(text, newline=""), delimiter=";" if ";" in text.partition("\n")[0] else ","
    )
    if not {"i", "j", "p"} <= set(reader.fieldnames or ()):
        raise InputError(
            f"{name} needs the columns i, j and p: true count, published count, probability.", file=name
        )
    listed: dict[int, dict[int, float]] = {}
    for line, entry in enumerate(reader, start=2):
        try:
            true, shown, p = int(entry["i"]), int(entry["j"]), float(entry["p"].replace(",", "."))
        except (TypeError, ValueError, AttributeError):
            true, shown, p = -1, -1, math.nan
        if true < 0 or shown < 0 or not 0 <= p <= 1 or abs(shown - true) > LARGEST_NOISE:
            raise InputError(
                f"{name}: line {line} needs counts of 0 or more in i and j, at most {LARGEST_NOISE:,} apart, and a probability in p.",
                file=name,
                row=line,
            )
        if shown - true in listed.setdefault(true, {}):
            raise InputError(
                f"{name}: line {line} repeats a probability; list each once.", file=name, row=line
            )
        listed[true][shown - true] = p
    if listed.pop(0, {0: 1.0}).get(0) != 1:
        raise InputError(f"{name}: a count of 0 must stay 0.", file=name)
    if not listed or sorted(listed) != [*range(1, len(listed) + 1)]:
        raise InputError(
            f"{name} must have the true counts 1, 2, ... without gaps; the last stands for all larger ones.",
            file=name,
        )
    rows = []
    for true, row in sorted(listed.items()):
        if abs(sum(row.values()) - 1) > UNBIASED or abs(sum(d * p for d, p in row.items())) > UNBIASED:
            raise InputError(
                f"{name}: the probabilities of the true count {true} must add up to 1, and their noise to a mean of 0.",
                file=name,
            )
        noises = np.arange(min(row), max(row) + 1)
        made = _integer_weights(noises, np.array([row.get(int(d), 0.0) for d in noises]))
        if min(made.values()) < 0 or made.keys() - {d for d, p in row.items() if p > 0}:
            raise InputError(
                f"{name}: the probabilities of the true count {true} cannot be rounded to multiples of 2^-{KEY_BITS} with a mean of 0; "
                "write them with more digits.",
                file=name,
            )
        rows.append(made)
    return NoiseTable(tuple(rows))


def check_safe(table: NoiseTable, small: int, option: str) -> None:
    """Refuse a table with which a single published number reveals that the true count is small, or reveals the count exactly.

    Every published number, including 0, must be possible for a count of `small` or more, so that noise extends at least as far as `small`;
    and every count must have more than one possible number. Several numbers together may still reveal a count; see `keybounds` and
    `cellkey.average`.

    Parameters
    ----------
    small : int
        Counts below this are small.
    option : str
        The option to change.
    """
    certain = next((n for n, row in enumerate(table.rows, start=1) if len(row) == 1), None)
    if certain is not None:
        raise InputError(
            f"option {option}: a count of {certain} would be published unchanged; give it noise.",
            option=option,
        )
    counts = range(1, len(table.rows) + table.most + small + 1)
    for shown in range(small + table.most):
        possible = [n for n in counts if shown - n in table.row_of(n)]
        if possible and max(possible) < small:
            raise InputError(
                f"option {option}: a published {shown} would reveal that the true count is below {small}; choose noise of at least "
                f"{small}, and a variance large enough that it occurs.",
                option=option,
            )
