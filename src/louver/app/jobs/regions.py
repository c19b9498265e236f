"""Releases by their published numbers: trees and maps of regions, sums of regions, and the cost of releases, for a chart."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from louver.app.jobs.releases import release_folder
from louver.app.regions import Outlines, Region, Regions, read_outlines
from louver.errors import InputError, LouverError
from louver.release.open import Release, open_release
from louver.run import Run
from louver.topdown import area
from louver.topdown.errors.area import read_leaves, region_totals

__all__ = ["LIST", "area_of", "area_of_file", "area_of_text", "compared", "outlined", "regions_of"]

MOST_REGIONS = 200_000
"""Maximum number of regions in a tree; levels below that are left out, and the page says so."""


def regions_of(folder: str, name: str, run: Run) -> Regions | None:
    """Every region of a release with its published number; None for another kind of release."""
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
    promise = release.promises[0]
    is_path = promise.get("prefixes") is None and promise.get("spine") is None
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


LIST = "The list"
"""The name in messages of a list that was typed or read from a file."""


def area_of(releases: str, name: str, codes: Sequence[str], run: Run) -> dict[str, Any]:
    """Total number of people in some regions of a release."""
    return area(release_folder(releases, name), leaves=list(codes), run=run).to_dict()


def area_of_text(releases: str, name: str, text: str, folder: str, run: Run) -> dict[str, Any]:
    """The same for a list in the format of `louver topdown area`, and the codes in it."""
    release = release_folder(releases, name)
    with tempfile.TemporaryDirectory(dir=folder) as place:
        path = Path(place) / LIST
        path.write_text(text, encoding="utf-8")
        return _listed(release, path, run)


def area_of_file(releases: str, name: str, file: str, run: Run) -> dict[str, Any]:
    """The same for a list that was uploaded, which is not kept."""
    release = release_folder(releases, name)
    with tempfile.TemporaryDirectory(dir=Path(file).parent) as place:
        return _listed(release, Path(file).replace(Path(place) / LIST), run)


def _listed(release: Path, path: Path, run: Run) -> dict[str, Any]:
    found = area(release, leaves=path, run=run).to_dict()
    entries = read_leaves(path, open_release(release).promises[0]["regions"])
    return found | {"codes": [code for _, code in entries]}


MOST_PEOPLE = 5_000_000
"""Larger releases are not read for a chart."""


def compared(folder: str, names: Sequence[str], run: Run) -> dict[str, dict[str, float]]:
    """The cost of a release. With noise: `off`, the published typical standard error for a smallest region, relative to its number. For
    tables: `small`, the small counts that are published, and `lost`, the share of numbers that are hidden or rounded.
    """
    found: dict[str, dict[str, float]] = {}
    for number, name in enumerate(names):
        run.report("reading the releases", number, len(names))
        try:
            release = open_release(release_folder(folder, name))
            content = (
                release.table_costs()
                if release.kind == "audit"
                else _noise_compared(folder, name, release, run)
            )
        except LouverError:  # errors of the list itself are reported when it is read
            content = None
        if content is not None:
            found[name] = content
    return found


def _noise_compared(folder: str, name: str, release: Release, run: Run) -> dict[str, float] | None:
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
