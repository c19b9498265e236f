"""What an arrangement keeps of the information about its columns, as `louver.bounds.suggest` counts it."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from louver.bounds.problem import Arrangement
from louver.data.histogram import Histogram

__all__ = ["kept"]


def kept(histogram: Histogram, base: Arrangement, arrangement: Arrangement) -> float | None:
    """Share of the information about the columns of `base`: I(X'; Y' | Z') of I(X; Y); None where it is about other things."""
    names = (*arrangement.rows, *arrangement.cols)
    responses = [name for name in arrangement.cols if name in base.cols]
    if not responses or not {*names} <= {*base.rows, *base.cols}:
        return None
    whole = histogram.marginalise((*base.rows, *base.cols)).recode(*base.recodes)
    first = _information(whole, base.rows, base.cols, ())
    now = histogram.marginalise(names).recode(*arrangement.recodes)
    given = [name for name in arrangement.rows if name in base.cols]
    predictors = [name for name in names if name not in base.cols]
    return _information(now, predictors, responses, given) / first if first > 1e-9 else 1.0


def _information(histogram: Histogram, x: Iterable[str], y: Iterable[str], z: Iterable[str]) -> float:
    x, y, z = tuple(x), tuple(y), tuple(z)
    if not x or not y:
        return 0.0
    parts = _entropy(histogram, (*x, *z)) + _entropy(histogram, (*y, *z))
    return parts - _entropy(histogram, (*x, *y, *z)) - _entropy(histogram, z)


def _entropy(histogram: Histogram, names: tuple[str, ...]) -> float:
    if not names:
        return 0.0
    counts = histogram.marginalise(names).counts
    p = counts[counts > 0] / histogram.total
    return float(-(p * np.log2(p)).sum())
