"""A ready-to-copy table of areas: each a union of leaves, with its estimates, standard errors and 90 % intervals.

Areas are listed in a file with one row for each leaf or region: columns `area` and `leaf`. An area may be any union of leaves: a school
district, a precinct, or a county in a release whose tree has no counties.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from louver._html import JsonText, Shown
from louver.data.read import open_source
from louver.data.tabulate import read_text
from louver.data.write import write_csv
from louver.errors import InputError, printable
from louver.release.write import check_out
from louver.run import Run
from louver.topdown.errors.area import Area, AreaCount, OpenRelease

__all__ = ["AreaTable", "read_areas"]

MOST_SHOWN = 20
COLUMNS = ("area", "leaf")


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class AreaTable(JsonText, Shown):
    """The counts of several areas of a release.

    Parameters
    ----------
    areas : mapping of str to Area
        In the order of the file.
    """

    areas: Mapping[str, Area]

    def to_frame(self) -> pa.Table:
        """One row for each area and row of a query: the total first, then the queries that the release publishes."""
        rows = [
            _row(name, area, count)
            for name, area in self.areas.items()
            for count in (area.total, *area.counts)
        ]
        return pa.Table.from_pylist(rows)

    def to_dict(self) -> dict[str, Any]:
        """The content of the JSON result; its keys are stable."""
        return {"areas": [{"area": name, **area.to_dict()} for name, area in self.areas.items()]}

    def write_csv(self, path: Path) -> None:
        """Write the table; the file must not exist."""
        check_out(path)
        write_csv([self.to_frame()], path)

    def __repr__(self) -> str:
        lines = [
            f"{len(self.areas):,} areas; estimate, standard error and 90 % interval of the people in each"
        ]
        for name, area in list(self.areas.items())[:MOST_SHOWN]:
            one = area.total
            lines.append(
                f"  {name}: {one.count:,}, {one.standard_error:g}, {one.lower_90:,} to {one.upper_90:,}"
            )
        if len(self.areas) > MOST_SHOWN:
            lines.append(f"  and {len(self.areas) - MOST_SHOWN:,} more; --csv and --json have them all")
        return "\n".join(map(printable, lines))


def _row(name: str, area: Area, count: AreaCount) -> dict[str, Any]:
    return {
        "area": name,
        "blocks": area.leaves,
        "query": count.query,
        "people": ", ".join(count.labels.values()) or "everybody",
        "estimate": count.count,
        "standard_error": count.standard_error,
        "lower_90": count.lower_90,
        "upper_90": count.upper_90,
    }


def read_areas(
    release: Path, areas: str | Path | Mapping[str, Sequence[str]] | None, run: Run | None = None
) -> AreaTable:
    """The counts of every area listed in a file or in a mapping of names to leaves; by default those of the release's spine."""
    name = "areas"
    if areas is None:
        return _of_spine(release, run)
    if isinstance(areas, str | Path):
        name = Path(areas).name
        rows_of = _read(Path(areas), run)
    else:
        rows_of = {area: list(enumerate(map(str, leaves), start=1)) for area, leaves in areas.items()}
    if not rows_of:
        raise InputError(
            f"{name} lists no areas; give one row for each leaf of each.", file=name, option="--areas"
        )
    opened = OpenRelease.of(release, run)
    found: dict[str, Area] = {}
    for place, (area, rows) in enumerate(rows_of.items()):
        if run is not None:
            run.report("adding up areas", place, len(rows_of))
        found[area] = opened.area(opened.places(rows, name))
    return AreaTable(areas=found)


def _of_spine(release: Path, run: Run | None) -> AreaTable:
    """The areas that the release's spine was arranged for, and the geographic regions that it cuts."""
    opened = OpenRelease.of(release, run)
    if not opened.named:
        raise InputError(
            "option --areas is missing; name a file with the columns area and leaf.", option="--areas"
        )
    found: dict[str, Area] = {}
    for place, name in enumerate(opened.named):
        if run is not None:
            run.report("adding up areas", place, len(opened.named))
        found[name] = opened.area(np.array(sorted(opened.leaves_of[name]), np.int64))
    return AreaTable(areas=found)


def _read(path: Path, run: Run | None) -> dict[str, list[tuple[int, str]]]:
    """The rows of every area, with their numbers."""
    with open_source(path, run=run) as source:
        rows = read_text(source, COLUMNS)
    found: dict[str, list[tuple[int, str]]] = {}
    for number, (area, leaf) in enumerate(rows, start=1):
        if not area or not leaf:
            message = f"{path.name} lacks an area or a leaf on row {number}; fill it in."
            raise InputError(message, file=path.name, row=number)
        found.setdefault(str(area), []).append((number, str(leaf)))
    return found
