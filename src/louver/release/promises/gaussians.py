"""Epsilon and delta of counts with discrete Gaussian noise, computed independently from the definition.

One step of the neighbour relation changes some counts by whole numbers. The loss at an outcome is ln P/Q, and the least delta at epsilon is
E[max(0, 1 - e^(epsilon - L))], L being the sum of the losses of all counts (docs/proofs/composition.md, section 1). Its distribution is
computed on a grid by Fourier transforms, exponentially tilted so that it is centred near epsilon, because delta may be arbitrarily small.
This is a numerical check of a claim, accurate to a thousandth of delta, not a proof.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from louver._arrays import Floats

__all__ = ["Changed", "log_delta"]

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
