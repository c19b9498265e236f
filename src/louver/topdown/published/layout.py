"""The layout of the Census Bureau's noisy measurement files: columns, axes, binnings.

A folder `LEVEL.parquet` for each level holds `DPQuery` (noisy answers) and `Constraint` (exact values and bounds), one row for each
region and query. A column for each axis says how the query divides it: `*` (summed), `detailed` or the axis itself (every label), or
the name of a binning. This was written without opening any file of the Bureau: it reflects what public programs for such files agree on.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import combinations

__all__ = [
    "ANSWERS",
    "COLUMNS",
    "CONSTRAINTS",
    "EVERY",
    "FORMAT",
    "PRODUCTS",
    "SUMMED",
    "Groups",
    "HistogramAxis",
]

ANSWERS, CONSTRAINTS = "DPQuery", "Constraint"
SUMMED, EVERY = "*", "detailed"
COLUMNS = ("geocode", "query_name", "query_shape", "value", "variance", "sign", "plb")
"""Columns that are not axes; `sign` is needed for constraints only, `plb` is ignored."""
FORMAT = "louver nmf 1"
"""Format name in files written by louver; they list their axes, unlike the Bureau's."""

Groups = tuple[tuple[int, ...], ...]
"""For each row of a binning, the numbers of the labels that it counts; some labels may be in no row."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HistogramAxis:
    """An attribute as categorised in the files."""

    name: str
    labels: tuple[str, ...]
    binnings: Mapping[str, Groups] = field(default_factory=dict)

    def groups(self, entry: str) -> Groups | None:
        """Labels counted by each row where a query's column has this entry; None if it is unknown.

        Examples
        --------
        >>> PERSONS[0].groups("hhinstlevels")
        ((0,), (1, 2, 3, 4), (5, 6, 7))
        """
        codes = tuple(range(len(self.labels)))
        if entry == SUMMED:
            return (codes,)
        if entry in (EVERY, self.name):
            return tuple((code,) for code in codes)
        return self.binnings.get(entry)


RACES = ("white", "black", "native", "asian", "pacific", "other")
HOUSING = (
    "household",
    "correctional",
    "juvenile",
    "nursing",
    "other-institutional",
    "college",
    "military",
    "other-noninstitutional",
)

PERSONS = (
    HistogramAxis(
        name="hhgq",
        labels=HOUSING,
        binnings={"hhinstlevels": ((0,), (1, 2, 3, 4), (5, 6, 7)), "gqNursingTotal": ((3,),)},
    ),
    HistogramAxis(name="votingage", labels=("under", "over"), binnings={"nonvoting": ((0,),)}),
    HistogramAxis(name="hispanic", labels=("no", "yes")),
    HistogramAxis(
        name="cenrace",
        labels=tuple("+".join(one) for size in range(1, 7) for one in combinations(RACES, size)),
    ),
)
UNITS = (HistogramAxis(name="h1", labels=("vacant", "occupied")),)

PRODUCTS = (PERSONS, UNITS)
"""Axes of the redistricting files, in the order of their shapes: persons and housing units."""
