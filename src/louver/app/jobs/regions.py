"""What trees and maps of regions ask for: the numbers of a release by region, and outlines from a public GeoJSON file."""

from __future__ import annotations

from typing import Any

from louver.app.jobs.books import release_folder
from louver.app.outlines import Outlines, read_outlines
from louver.app.regions import Region, Regions
from louver.errors import InputError
from louver.release.open import Release, open_release
from louver.run import Run
from louver.topdown.errors.totals import region_totals

__all__ = ["outlined", "regions_of"]

MOST_REGIONS = 200_000
"""Regions that a tree holds; levels below are left out, and the page says so."""


def regions_of(folder: str, name: str, run: Run) -> Regions | None:
    """Every region of a release with its published number; None where it is of another kind."""
    release = open_release(release_folder(folder, name))
    if release.kind == "topdown":
        return _topdown(release, run)
    if release.kind == "groups" and "persons" in release.tables:
        return _groups(release)
    return None


def outlined(path: str, run: Run) -> Outlines:
    """Outlines of a GeoJSON file, ready to be drawn."""
    return read_outlines(path, run)


def _topdown(release: Release, run: Run) -> Regions:
    rows = region_totals(release.path, run).to_pylist()
    levels = list(dict.fromkeys(row["level"] for row in rows))
    is_path = release.promises[0].get("prefixes") is None
    place = {(row["level"], row["region"]): i for i, row in enumerate(rows)}
    listed = []
    for row in rows:
        level, code, above = levels.index(row["level"]), row["region"], row["parent"]
        parent = -1 if level == 0 else place[levels[level - 1], above]
        name = code[len(above) + 1 :] if is_path and above else code
        listed.append(
            Region(level, name or row["level"], code, parent, row["count"], *(row[key] for key in ERRORS))
        )
    has_errors = release.promises[0].get("errors") is not None
    return Regions.of("People", levels, listed, MOST_REGIONS, can_add_up=has_errors)


ERRORS = ("standard_error", "lower_90", "upper_90")


def _groups(release: Release) -> Regions:
    rows: list[dict[str, Any]] = release.tables["persons"].to_pylist()
    columns = [name for name in rows[0] if name not in ("level", "persons", *ERRORS)] if rows else []
    paths = [tuple(str(row[name]) for name in columns if row[name] is not None) for row in rows]
    levels = list(dict.fromkeys(row["level"] for row in rows))
    place = {path: i for i, path in enumerate(paths)}
    try:
        listed = [
            Region(
                len(path),
                path[-1] if path else "Total",
                "/".join(path),
                place[path[:-1]] if path else -1,
                row["persons"],
                *(row.get(key) for key in ERRORS),
            )
            for row, path in zip(rows, paths, strict=True)
        ]
    except KeyError:
        raise InputError(f"{release.path.name} is damaged; check it with `louver verify`.") from None
    return Regions.of("People in units", levels, listed, MOST_REGIONS)
