"""Nanoseconds per draw: louver, OpenDP and numpy side by side, in one process, alternating.

Run: python benchmarks/sampling.py [--draws 2000000] [--rounds 7]

numpy's draws come from floating-point generators that leak the confidential value; they are here as the
speed anybody would like to have. The last column is the p-value of a chi-square test of louver's draws
against the exact mass function, so that speed is not bought with a wrong distribution.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import math
import statistics
import sys
import time
from collections.abc import Callable
from fractions import Fraction
from itertools import count
from pathlib import Path

import numpy as np

from louver.privacy.distributions import DiscreteGaussian, DiscreteLaplace, Distribution, table_of
from louver.privacy.noise import KeyedNoise, Nonce, OpenDPNoise

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from oracles.noise import gaussian_weights, laplace_weights, p_value

SCALES = (1, 25, 1000)
OPENDP_SHARE = 100
"""OpenDP draws this many times fewer, or the run would take minutes."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=2_000_000)
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    versions = ", ".join(f"{p} {importlib.metadata.version(p)}" for p in ("opendp", "numpy", "numba"))
    print(
        f"{options.draws:,} draws, median of {options.rounds} rounds; {versions}; python {sys.version.split()[0]}"
    )
    print(
        f"{'noise':<10}{'scale':>6}{'louver ns':>11}{'(spread)':>14}{'numpy ns':>10}{'opendp ns':>11}"
        f"{'opendp/louver':>15}{'table ms':>10}{'p-value':>9}"
    )
    for scale in SCALES:
        for distribution in (DiscreteLaplace(Fraction(scale)), DiscreteGaussian(Fraction(scale) ** 2)):
            _row(distribution, scale, options.draws, options.rounds)


def _row(distribution: Distribution, scale: int, n: int, rounds: int) -> None:
    keyed, opendp, batch = KeyedNoise.from_seed(1), OpenDPNoise(), count()
    generator = np.random.default_rng(1)
    is_laplace = isinstance(distribution, DiscreteLaplace)
    began = time.perf_counter()
    table_of(distribution)
    table_ms = 1e3 * (time.perf_counter() - began)

    def numpy_draws() -> object:
        if is_laplace:
            p = -math.expm1(-1 / scale)
            return generator.geometric(p, n) - generator.geometric(p, n)
        return np.rint(generator.normal(0, scale, n)).astype(np.int64)

    contenders: dict[str, tuple[Callable[[], object], int]] = {
        "louver": (lambda: keyed.draw(distribution, n, Nonce(0, 0, next(batch))), n),
        "numpy": (numpy_draws, n),
        "opendp": (lambda: opendp.draw(distribution, n // OPENDP_SHARE, Nonce(0, 0, 0)), n // OPENDP_SHARE),
    }
    times: dict[str, list[float]] = {name: [] for name in contenders}
    for draw, _ in contenders.values():  # compile and warm up
        draw()
    for _ in range(rounds):
        for name, (draw, drawn) in contenders.items():
            began = time.perf_counter()
            draw()
            times[name].append(1e9 * (time.perf_counter() - began) / drawn)
    ns = {name: statistics.median(values) for name, values in times.items()}
    spread = f"{min(times['louver']):.1f}-{max(times['louver']):.1f}"
    print(
        f"{'laplace' if is_laplace else 'gaussian':<10}{scale:>6}{ns['louver']:>11.1f}{spread:>14}{ns['numpy']:>10.1f}"
        f"{ns['opendp']:>11.0f}{ns['opendp'] / ns['louver']:>15.0f}{table_ms:>10.1f}{_quality(distribution, keyed):>9.2f}"
    )


def _quality(distribution: Distribution, noise: KeyedNoise) -> float:
    draws = noise.draw(distribution, 400_000, Nonce(1, 0, 0))
    if isinstance(distribution, DiscreteLaplace):
        return p_value(draws, laplace_weights(distribution.scale, 12 * math.ceil(distribution.scale)))
    sigma = math.isqrt(math.ceil(distribution.sigma_squared))
    return p_value(draws, gaussian_weights(distribution.sigma_squared, 8 * sigma + 20))


if __name__ == "__main__":
    main()
