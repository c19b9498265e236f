"""The noise that a release states, checked on its own: what was measured with which noise, and the epsilon and delta of discrete Gaussians.

A file of measurements has one row group for each batch of regions of one level and query. Every query of a level must have been answered
once in every region of the level: a query measured twice costs its loss twice.

One step of the neighbour relation changes some counts by whole numbers. The loss at an outcome is ln P/Q, and the least delta at epsilon is
E[max(0, 1 - e^(epsilon - L))], L being the sum of the losses of all counts (docs/proofs/composition.md, section 1). Its distribution is
computed on a grid by Fourier transforms, exponentially tilted so that it is centred near epsilon, because delta may be arbitrarily small.
This is a numerical check of a claim, accurate to a thousandth of delta, not a proof.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from louver._arrays import Floats
from louver.release.folder import Folder, Malformed

__all__ = ["Changed", "MeasuredNoise", "log_delta", "read_noise"]

COLUMNS = ("level", "query", "variance", "node")
NOT_ONCE = "a query was not measured once in every region of its level"


@dataclass(frozen=True, slots=True)
class MeasuredNoise:
    """Variance of the noise of one query at one level, the level's regions, and the number of values measured in each of them."""

    variance: float
    n_regions: int
    n_values: int


def read_noise(
    folder: Folder, file: str, *, is_published: bool = False
) -> Mapping[tuple[str, str], MeasuredNoise]:
    """The noise of every level and query, in the order of the file.

    Parameters
    ----------
    is_published : bool
        Whether another publisher released the measurements: regions may then differ in noise or lack an answer, and the variance is the
        most common one, the smallest in case of ties.
    """
    levels: dict[str, _NoiseLevel] = {}
    variances: dict[tuple[str, str], Counter[float]] = {}
    for rows, n_values in folder.row_groups(file, COLUMNS):
        n_answers = rows.num_rows - (rows["variance"].null_count if is_published else 0)
        if rows.num_rows:
            level, query = (str(_one(rows[name])) for name in COLUMNS[:2])
            n_values -= rows.num_rows - n_answers  # a region without an answer counts as one value
            stated = rows["variance"].drop_null().to_pylist()
            found: Counter[float] = Counter(stated)
            if not is_published:
                _one(rows["variance"])
            if n_values % max(1, n_answers) or not all(isinstance(variance, float) for variance in found):
                raise Malformed("the measured regions do not all have as many numbers")
            own = levels.setdefault(level, _NoiseLevel(query))
            nodes = rows["node"].combine_chunks()
            if not n_answers:
                own.take(query, None, nodes)
                continue
            usual = None if is_published else next(iter(found))
            own.take(query, (usual, n_values // n_answers), nodes)
            variances.setdefault((level, query), Counter()).update(found)
    return {
        (name, query): MeasuredNoise(_usual(variances[name, query]), level.n_regions(), width)
        for name, level in levels.items()
        for query, (_, width) in level.noise.items()
    }


def _usual(variances: Counter[float]) -> float:
    """The most common variance of the regions, the smallest in case of ties."""
    return min(variances, key=lambda variance: (-variances[variance], variance))


class _NoiseLevel:
    """The regions of a level, as its first query lists them; the other queries must list the same."""

    def __init__(self, first: str) -> None:
        self.first, self.noise = first, dict[str, tuple[float | None, int]]()
        self._parts, self._at = list[pa.Array](), dict[str, tuple[int, int]]()

    def take(self, query: str, noise: tuple[float | None, int] | None, regions: pa.Array) -> None:
        """A batch of a query: its noise, None if it has no answers, and the regions that come next."""
        if noise is not None and self.noise.setdefault(query, noise) != noise:
            raise Malformed("a query was measured with different noise in different regions")
        if query == self.first:
            self._parts.append(regions)
            return
        part, start = self._at.get(query, (0, 0))
        while len(regions):
            if part == len(self._parts):
                raise Malformed(NOT_ONCE)
            n = min(len(self._parts[part]) - start, len(regions))
            if not self._parts[part].slice(start, n).equals(regions.slice(0, n)):
                raise Malformed(NOT_ONCE)
            regions, start = regions.slice(n), start + n
            if start == len(self._parts[part]):
                part, start = part + 1, 0
        self._at[query] = (part, start)

    def n_regions(self) -> int:
        """Number of regions of the level, each answered once by every query."""
        regions = pa.chunked_array(self._parts)
        if regions.null_count or pc.count_distinct(regions).as_py() != len(regions):
            raise Malformed(NOT_ONCE)
        if any(self._at.get(query) != (len(self._parts), 0) for query in self.noise if query != self.first):
            raise Malformed(NOT_ONCE)
        return len(regions)


def _one(column: pa.ChunkedArray) -> object:
    """The value shared by all rows of a batch."""
    values: list[object] = pc.unique(column).to_pylist()
    if len(values) != 1 or values[0] is None:
        raise Malformed("the measurements are not in batches of one query at one level")
    return values[0]


POINTS = 1 << 16
"""Number of points of the grid."""

SPREAD, REACH = 30.0, 14.0
"""Width of the grid, and half-width of the noise of one count, in standard deviations."""

FINE = 500.0
"""Noise whose standard deviation exceeds this is evaluated several whole numbers at a time."""


@dataclass(frozen=True, slots=True)
class Changed:
    """A number of counts, with noise of parameter sigma_squared, each of which changes by `shift`."""

    sigma_squared: float
    shift: int
    count: int


def log_delta(epsilon: float, changed: Sequence[Changed]) -> float:
    """Logarithm of the least delta with which the counts are (epsilon, delta)-differentially private.

    Examples
    --------
    >>> round(math.exp(log_delta(1.0, [Changed(100.0, 1, 10)])) * 1e4, 2)     # the Gaussian formula gives 1.10e-4
    1.1
    """
    rho = sum(one.count * one.shift**2 / (2 * one.sigma_squared) for one in changed)
    tilt = max(0.0, (epsilon - rho) / (2 * rho))
    step = SPREAD * math.sqrt(2 * rho) / POINTS
    spectrum, log_mass, mean = np.ones(POINTS // 2 + 1, np.complex128), 0.0, 0.0
    for one in changed:
        loss, share, log_own = _tilted(one, tilt)
        centre = float(share @ loss)
        spectrum *= np.fft.rfft(_on_grid((loss - centre) / step, share)) ** one.count
        log_mass += one.count * log_own
        mean += one.count * centre
    share = np.fft.fftshift(np.fft.irfft(spectrum, POINTS))
    above = mean + (np.arange(POINTS) - POINTS // 2) * step - epsilon
    is_above = above > 0
    weight = np.exp(-tilt * above[is_above]) * -np.expm1(-above[is_above])
    found = float(np.maximum(share[is_above], 0.0) @ weight)
    return log_mass - tilt * epsilon + math.log(found) if found > 0 else -math.inf


def _tilted(one: Changed, tilt: float) -> tuple[Floats, Floats, float]:
    """Losses of one count, their tilted probabilities, and the logarithm of E[e^(tilt loss)]."""
    variance, shift = one.sigma_squared, one.shift
    sigma = math.sqrt(variance)
    stride = max(1, int(sigma / FINE))
    half = math.ceil((REACH * sigma + 2) / stride)
    noise = stride * np.arange(-half, half + 1, dtype=np.float64)
    untilted = float(np.exp(-noise * noise / (2 * variance)).sum())
    noise += stride * round(tilt * shift / stride)
    loss = (shift * shift + 2 * shift * noise) / (2 * variance)
    exponent = tilt * loss - noise * noise / (2 * variance)
    largest = float(exponent.max())
    weight = np.exp(exponent - largest)
    total = float(weight.sum())
    return loss, weight / total, largest + math.log(total / untilted)


def _on_grid(place: Floats, share: Floats) -> Floats:
    """Probabilities on integer positions, each split between its two neighbours so that the mean is preserved."""
    below = np.floor(place)
    part = share * (place - below)
    index = below.astype(np.int64)
    answer: Floats = np.zeros(POINTS)
    np.add.at(answer, index % POINTS, share - part)
    np.add.at(answer, (index + 1) % POINTS, part)
    return answer
