"""The distributions of noise: their common interface, the registry, and the kernel's table of a distribution.

To add a distribution, write a module with a class that implements `Distribution` and add it to `DISTRIBUTIONS`. Scales are rational
numbers, never floats.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Hashable, Iterator
from fractions import Fraction
from functools import lru_cache
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from louver.errors import InputError
from louver.privacy.budget import Loss, Measure
from louver.privacy.exact import STORED_BITS, TOP_BITS, Enclosed, Geometric, Thresholds
from louver.privacy.gaussian import DiscreteGaussian
from louver.privacy.laplace import DiscreteLaplace

__all__ = [
    "DISTRIBUTIONS",
    "STORED_BITS",
    "DiscreteGaussian",
    "DiscreteLaplace",
    "Distribution",
    "Geometric",
    "ProbabilityTable",
    "Thresholds",
    "noise_for",
    "table_of",
]

LARGEST_TABLE = 1 << 15
"""Maximum number of thresholds in a table: 256 KiB for the kernel. Beyond it, noise is drawn by a slower exact method."""


class Distribution(Enclosed, Hashable, Protocol):
    """A symmetric distribution on whole numbers; its text is used in requests and therefore states all parameters."""

    name: ClassVar[str]
    """Its name in options and estimators."""
    measure: ClassVar[Measure]
    """The measure of its privacy loss."""

    @property
    def variance(self) -> float:
        """Variance of one draw."""
        ...

    @property
    def tail(self) -> Geometric | None:
        """The distribution of |X| - n_thresholds, given that it is not negative; None if the table is complete."""
        ...

    @classmethod
    def paying(cls, amount: Fraction, l1: int, l2_squared: int) -> Distribution:
        """The noise with privacy loss `amount` on an integer query of this L1 and squared L2 sensitivity."""
        ...

    def sensitivity(self, l1: int, l2_squared: int) -> Fraction:
        """The one of the two sensitivities that `price` takes."""
        ...

    def price(self, sensitivity: Fraction) -> Fraction:
        """The privacy loss on an integer query."""
        ...

    def draw_large(self, words: Iterator[int]) -> int:
        """Draw from a stream of words if a table would be too large."""
        ...

    def by_opendp(self, opendp: Any, domain: Any) -> Any:
        """The same noise as an OpenDP measurement."""
        ...

    def opendp_sensitivity(self, sensitivity: Fraction) -> float:
        """A sensitivity in the form used by OpenDP's privacy map."""
        ...


DISTRIBUTIONS: dict[str, type[Distribution]] = {
    kind.name: kind for kind in (DiscreteLaplace, DiscreteGaussian)
}
"""Every distribution by its name; the first of a measure is its default."""


def noise_for(loss: Loss, *, l1: int, l2_squared: int, name: str | None = None) -> Distribution:
    """The noise whose loss is exactly this on an integer query with the given L1 and squared L2 sensitivity.

    Parameters
    ----------
    name : str, optional
        Name of the distribution; by default the first whose cost is in the loss's measure.

    Raises
    ------
    InputError
        If no distribution of this name has its cost in that measure.

    Examples
    --------
    >>> from louver.privacy.neighbours import Relation
    >>> noise_for(Loss(Fraction(1, 2), Measure.EPSILON, Relation.CHANGE_RECORD), l1=2, l2_squared=2)
    DiscreteLaplace(scale=Fraction(4, 1))
    """
    paid = {kind.name: kind for kind in DISTRIBUTIONS.values() if kind.measure is loss.measure}
    kind = next(iter(paid.values())) if name is None else paid.get(name)
    if kind is None:
        raise InputError(
            f"a budget in {loss.measure} requires noise called {' or '.join(paid)}.", option="noise"
        )
    return kind.paying(loss.amount, l1, l2_squared)


class ProbabilityTable(NamedTuple):
    """The table that the kernel searches; see `louver.optim.kernels.sampling.inverse_cdf.look_up`."""

    thresholds: NDArray[np.uint64]
    guide: NDArray[np.uint16]
    shift: int


@lru_cache(maxsize=64)
def table_of(distribution: Distribution) -> ProbabilityTable | None:
    """Build the kernel's table; None if only the slower method works.

    Notes
    -----
    **Cost**: 2 to 5 microseconds for each threshold; at scale 1,000 about 11,000 of them.
    """
    if distribution.n_thresholds > LARGEST_TABLE:
        return None
    largest = (1 << TOP_BITS) - 1
    spare = STORED_BITS - TOP_BITS
    lower, upper = distribution.cumulative(STORED_BITS)
    if any(
        u - k >= 1 << spare for k, u in zip(lower, upper, strict=True)
    ):  # the kernel allows an error of one unit
        return None
    top = [k >> spare for k in lower]
    top = top[: bisect_left(top, largest) + 1]
    thresholds = np.array([*top, largest], dtype=np.uint64)
    guide_bits = max(1, len(top).bit_length())
    starts = np.arange(1 << guide_bits, dtype=np.uint64) << np.uint64(TOP_BITS - guide_bits)
    # A threshold may be skipped only if it lies below u - 1 for every u of the cell.
    guide = np.searchsorted(thresholds + np.uint64(1), starts, side="left").astype(np.uint16)
    for array in (thresholds, guide):
        array.setflags(write=False)
    return ProbabilityTable(thresholds, guide, TOP_BITS - guide_bits)
