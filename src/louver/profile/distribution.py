"""How the values of a column are spread, for a small picture with its numbers."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from louver._arrays import Floats
from louver.data.coded import CodedColumn
from louver.data.kinds import ColumnKind

__all__ = ["Distribution", "spread"]

MAX_BARS = 12
YEAR = r"(?P<year>[0-9]{4})"
NUMBER = re.compile(r"-?[0-9]+(\.[0-9]+)?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Distribution:
    """Records by value, by class of numbers or by year. Confidential.

    Attributes
    ----------
    labels : tuple of str
    counts : tuple of int
    """

    labels: tuple[str, ...]
    counts: tuple[int, ...]


def spread(column: CodedColumn, kind: ColumnKind) -> Distribution | None:
    """At most twelve bars; None for ids, free text and empty columns, whose values say who it is."""
    if kind in (ColumnKind.ID, ColumnKind.TEXT, ColumnKind.EMPTY):
        return None
    if kind in (ColumnKind.INTEGER, ColumnKind.NUMBER):
        return _classes(column)
    if kind is ColumnKind.DATE:
        return _years(column)
    return _commonest(
        column.values.to_pylist(), column.counts.tolist(), is_ordered=kind is ColumnKind.ORDERED_CODE
    )


def _commonest(labels: list[str], counts: list[int], *, is_ordered: bool) -> Distribution:
    pairs = sorted(zip(labels, counts, strict=True), key=lambda pair: (-pair[1], pair[0]))
    shown, rest = pairs[: MAX_BARS - 1], pairs[MAX_BARS - 1 :]
    if len(rest) == 1:
        shown, rest = pairs, []
    if is_ordered:
        shown.sort(key=lambda pair: (_leading(pair[0]), pair[0]))
    if rest:
        shown.append((f"{len(rest):,} others", sum(count for _, count in rest)))
    return Distribution(labels=tuple(label for label, _ in shown), counts=tuple(n for _, n in shown))


def _leading(label: str) -> float:
    """The number that a code starts with."""
    found = NUMBER.search(label)
    return float(found[0]) if found else 0.0


def _classes(column: CodedColumn) -> Distribution:
    """Equal steps of a round width; a number on an edge counts above it, the largest one below."""
    numbers: Floats = np.asarray(np.from_dlpack(pc.cast(column.values, pa.float64())))
    edges = _edges(float(numbers.min(initial=np.inf)), float(numbers.max(initial=-np.inf)))
    counts, _ = np.histogram(numbers, bins=edges, weights=column.counts)
    labels = tuple(f"{_short_number(low)} to {_short_number(high)}" for low, high in pairwise(edges.tolist()))
    return Distribution(labels=labels, counts=tuple(int(count) for count in counts))


def _edges(least: float, most: float) -> Floats:
    """Multiples of 1, 2 or 5 times a power of ten around the numbers, for at most twelve classes."""
    if not np.isfinite([least, most]).all() or least == most:
        return np.array([0.0, 1.0]) if least > most else np.array([least, np.nextafter(most, np.inf)])
    power = 10.0 ** np.floor(np.log10((most - least) / MAX_BARS))
    for width in (factor * power for factor in (1, 2, 5, 10, 20)):
        first, last = np.floor(least / width), np.ceil(most / width)
        if last - first <= MAX_BARS:
            break
    edges: Floats = np.arange(first, last + 1) * width
    return edges


def _short_number(number: float) -> str:
    return f"{number:,.0f}" if abs(number) >= 1000 else f"{number:.6g}"


def _years(column: CodedColumn) -> Distribution:
    """Equal runs of years; dates whose year has two digits come last."""
    found = pc.struct_field(pc.extract_regex(column.values, YEAR), "year").to_pylist()
    by_year: dict[int, int] = {}
    for year, count in zip(found, column.counts.tolist(), strict=True):
        by_year[int(year or 0)] = by_year.get(int(year or 0), 0) + count
    other = by_year.pop(0, 0)
    labels, counts = [], []
    first, last = min(by_year, default=0), max(by_year, default=-1)
    step = -(-(last - first + 1) // MAX_BARS)
    for start in range(first, last + 1, max(step, 1)):
        end = min(start + step - 1, last)
        labels.append(str(start) if start == end else f"{start} to {end}")
        counts.append(sum(n for year, n in by_year.items() if start <= year <= end))
    if other:
        labels, counts = [*labels, "other dates"], [*counts, other]
    return Distribution(labels=tuple(labels), counts=tuple(counts))
