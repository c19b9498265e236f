"""Epsilon with delta: variance saved by composing the queries numerically instead of through rho, beside dp-accounting.

Run: python benchmarks/accounting.py [--fine]

The budget and the shares of levels are those of the 2020 redistricting data (rho 2.56 at delta 1e-10), one query a level, then smaller
budgets. The peer is dp-accounting's privacy loss distribution of the same noise. Its epsilon, by connecting the dots of a grid, falls
with the square of the grid's width; two widths give its limit. `--fine` uses narrower grids.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Sequence
from fractions import Fraction

from dp_accounting.pld import privacy_loss_distribution
from scipy.optimize import brentq

from louver.privacy.budget import epsilon_at
from louver.privacy.composition import ChangedCounts, delta_at, largest_rho

LEVELS = {"US": 25, "state": 351, "county": 109, "tract": 168, "block group": 306, "block": 40}
"""Thousandths; they sum to 999."""

DELTA = Fraction(1, 10**10)
CHANGED = ((1, 2),)
"""A changed record: two counts of every query, by one each."""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--fine", action="store_true")
    widths = (4e-4, 2e-4) if parser.parse_args().fine else (1e-3, 5e-4)
    shares = [Fraction(share, sum(LEVELS.values())) for share in LEVELS.values()]
    print("change-record, delta 1e-10, shares " + ", ".join(f"{k} {v / 10:g} %" for k, v in LEVELS.items()))
    print(f"{'rho':>8}{'epsilon by rho':>16}{'rho composed':>14}{'variance saved':>16}{'seconds':>9}")
    for rho in map(Fraction, ("2.56", "1", "0.1", "0.01", "0.001")):
        saved(rho, shares)
    peer(Fraction("2.56"), shares, widths)


def saved(rho: Fraction, shares: Sequence[Fraction]) -> None:
    epsilon = epsilon_at(rho, DELTA, decimals=6)
    began = time.perf_counter()
    better = largest_rho(epsilon, DELTA, shares, [[CHANGED] * len(shares)])
    seconds = time.perf_counter() - began
    print(
        f"{float(rho):>8g}{float(epsilon):>16.4f}{float(better):>14.5g}{100 * float(1 - rho / better):>14.2f} %"
        f"{seconds:>9.1f}",
        flush=True,
    )


def peer(rho: Fraction, shares: Sequence[Fraction], widths: tuple[float, float]) -> None:
    """Epsilon of the noise of rho: ours, and the peer's at two widths of its grid and in their limit."""
    measured = [ChangedCounts(1 / (rho * share), 2) for share in shares]
    goal = math.log(DELTA)
    ours = brentq(lambda e: math.log(delta_at(Fraction(e), measured)) - goal, 1, 40, xtol=1e-9)
    theirs = [_theirs(measured, width) for width in widths]
    limit = (4 * theirs[1] - theirs[0]) / 3
    print(f"\nepsilon at delta 1e-10 of the noise of rho {float(rho):g}: louver {ours:.7f}")
    for width, epsilon in zip(widths, theirs, strict=True):
        print(f"  dp-accounting, grid {width:g}: {epsilon:.7f}, louver less {epsilon - ours:+.2e}")
    print(f"  their limit: {limit:.7f}, louver less {limit - ours:+.2e} ({abs(limit / ours - 1):.1e} of it)")


def _theirs(measured: Sequence[ChangedCounts], width: float) -> float:
    total = None
    for part in measured:
        one = privacy_loss_distribution.from_discrete_gaussian_mechanism(
            math.sqrt(part.sigma_squared), value_discretization_interval=width, use_connect_dots=True
        ).self_compose(part.count, tail_mass_truncation=0)
        total = one if total is None else total.compose(one, tail_mass_truncation=0)
    assert total is not None
    return float(total.get_epsilon_for_delta(float(DELTA)))


if __name__ == "__main__":
    main()
