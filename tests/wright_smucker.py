"""Tables 10 and 11 of Wright & Smucker (2014): the arrangements of the timing tests, and their sizes.

Data: the 8-way table comes with louver, the 6-way and 16-way tables stand in tests/data (czech_autoworkers: Reinis
et al. 1981; nltcs: National Long Term Care Survey, order of the items as in Erosheva et al. 2007).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path

from louver.bounds.problem import Arrangement, TwoWayTable, ZeroRows, arrange
from louver.data.histogram import Histogram
from louver.data.read import open_source
from louver.data.samples import sample_path
from louver.data.tabulate import tabulate
from louver.schema.spec import read_spec

DATA = Path(__file__).with_name("data")

NAMES = {
    "8-way": tuple(f"X{i}" for i in range(1, 9)),
    "16-way": tuple(f"y{i}" for i in range(1, 17)),
    "6-way": ("smoke", "mental", "phys", "systol", "protein", "family"),
}


@dataclass(frozen=True, slots=True)
class PaperTable:
    """One line of Table 10 with its line of Table 11: I, nnz, J and N."""

    name: str
    data: str
    rows: tuple[int, ...]
    cols: tuple[int, ...]
    is_without_zeros: bool
    sizes: tuple[int, int, int, int]

    @property
    def arrangement(self) -> Arrangement:
        names = NAMES[self.data]
        return Arrangement(
            rows=tuple(names[i - 1] for i in self.rows), cols=tuple(names[i - 1] for i in self.cols)
        )

    def table(self) -> TwoWayTable:
        zero_rows = ZeroRows.DROP if self.is_without_zeros else ZeroRows.KEEP
        return arrange(histogram(self.data), self.arrangement, zero_rows=zero_rows)


ALL_BUT_14 = (*range(1, 14), 15, 16)

TABLE_10 = (
    PaperTable("B", "8-way", (4, 6, 7), (8,), False, (12, 12, 2, 48842)),
    PaperTable("C", "8-way", (3, 5, 6, 7), (8,), False, (60, 60, 2, 48842)),
    PaperTable("D", "8-way", (3, 4, 6, 7), (8,), False, (60, 60, 2, 48842)),
    PaperTable("F", "8-way", (1, 3, 6), (8,), False, (30, 30, 2, 48842)),
    PaperTable("G", "16-way", (8, 10, 11, 12, 13), (14, 16), False, (32, 32, 4, 21574)),
    PaperTable("H", "8-way", (1, 3, 4, 5, 6, 7), (8,), True, (240, 240, 2, 44381)),
    PaperTable("I", "8-way", (1, 2, 3, 4, 5, 6, 7), (8,), True, (557, 557, 2, 41465)),
    PaperTable("J", "16-way", ALL_BUT_14, (14,), True, (672, 672, 2, 17563)),
    PaperTable("L", "6-way", (1, 2, 3, 4, 5), (6,), False, (32, 32, 2, 1841)),
    PaperTable("M", "8-way", (1, 3, 4, 5, 6, 7), (8,), False, (360, 347, 2, 48842)),
    PaperTable("N", "8-way", (1, 2, 3, 4, 5, 6, 7), (8,), False, (1440, 1138, 2, 48842)),
    PaperTable("O", "16-way", ALL_BUT_14, (14,), False, (32768, 2480, 2, 21574)),
)


@cache
def histogram(data: str) -> Histogram:
    """The whole 6-, 8- or 16-way table."""
    if data == "8-way":
        schema = read_spec(sample_path("cps8").with_name("cps8.toml")).schema
        path = sample_path("cps8")
    else:
        schema = None
        path = DATA / ("nltcs.csv.gz" if data == "16-way" else "czech_autoworkers.csv.gz")
    with open_source(path) as source:
        return tabulate(source, NAMES[data], weight="count", schema=schema)
