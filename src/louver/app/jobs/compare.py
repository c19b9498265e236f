"""What releases promise and what they cost, from their published files alone, so that they can stand on one chart."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow.compute as pc

from louver.app.jobs.books import release_folder
from louver.app.jobs.regions import regions_of
from louver.errors import InputError, LouverError
from louver.release.open import Release, open_release
from louver.run import Run

__all__ = ["compared"]

MOST_PEOPLE = 5_000_000
"""Releases of more are not read for a chart."""


def compared(folder: str, names: Sequence[str], run: Run) -> dict[str, dict[str, float]]:
    """For noise: `off`, the typical standard error of a smallest region's number, as a share of it, as published. For tables: `small`,
    the small counts that stand there, and `lost`, the share of numbers that are hidden or rounded.
    """
    found: dict[str, dict[str, float]] = {}
    for number, name in enumerate(names):
        run.report("reading the releases", number, len(names))
        try:
            release = open_release(release_folder(folder, name))
            told = _tables(release) if release.kind == "audit" else _noise(folder, name, release, run)
        except LouverError:  # the list says what is wrong with it
            told = None
        if told is not None:
            found[name] = told
    return found


def _noise(folder: str, name: str, release: Release, run: Run) -> dict[str, float] | None:
    people = release.manifest.results.get("people")
    if isinstance(people, int) and people > MOST_PEOPLE:
        return None
    regions = regions_of(folder, name, run)
    if regions is None or regions.left_out:
        return None
    lowest = [one for one in regions.regions if one.level == len(regions.levels) - 1]
    errors = [one.error for one in lowest if one.error is not None]
    if not errors or len(errors) < len(lowest):
        return None
    return {"off": float(np.mean(errors)) / max(float(np.mean([one.count for one in lowest])), 1.0)}


def _tables(release: Release) -> dict[str, float] | None:
    """Counts of all tables together; shares are left out, for what they tell is worked out by `bounds`."""
    parameters: Any = release.manifest.parameters
    small, told, hidden, cells = int(parameters.get("small", 5)), 0, 0, 0
    for table in parameters.get("tables", ()):
        rows = release.tables[_stem(table)]
        if "count" not in rows.column_names:
            continue
        counts = rows["count"]
        is_rounded = table.get("base") is not None
        cells += len(counts)
        hidden += len(counts) if is_rounded else counts.null_count
        inside = pc.and_(pc.greater(counts, 0), pc.less(counts, small))
        told += 0 if is_rounded else int(pc.sum(inside).as_py() or 0)
    return {"small": told, "lost": hidden / cells} if cells else None


def _stem(table: Any) -> str:
    file = table.get("file") if isinstance(table, dict) else None
    if not isinstance(file, str):
        raise InputError("the release is damaged; check it with `louver verify`.")
    return file.removesuffix(".parquet").removeprefix("data/")
