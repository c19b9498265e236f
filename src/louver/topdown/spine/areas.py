"""The areas of interest: unions of leaves of several kinds, from a public file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from louver._arrays import Ints
from louver.data.read import open_source
from louver.data.regions import RegionTree
from louver.data.tabulate import read_text
from louver.errors import InputError
from louver.run import Run

__all__ = ["AreaKind", "read_area_kinds"]

ONE_KIND = "areas"
"""Name of the kind where the file has no column for it."""

MOST_KINDS = 4


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class AreaKind:
    """Areas of one kind, such as school districts: no leaf lies in two of them.

    Parameters
    ----------
    name : str
    areas : tuple of str
        In ascending order.
    area_of : ndarray of int64, shape (leaves,)
        The area of every leaf of the geographic tree, -1 for none.
    """

    name: str
    areas: tuple[str, ...]
    area_of: Ints


def read_area_kinds(
    path: Path, tree: RegionTree, run: Run | None = None, names: Sequence[str] = ()
) -> tuple[AreaKind, ...]:
    """Read a file with the columns leaf and area, and perhaps kind; a region may stand for all its leaves.

    Parameters
    ----------
    path : Path
    tree : RegionTree
        The geographic tree.
    run : Run, optional
    names : sequence of str
        Names that a kind must not have.

    Raises
    ------
    InputError
        One sentence that names file and row.
    """
    with open_source(path, run=run) as source:
        has_kind = "kind" in source.columns
        rows = read_text(source, ("leaf", "area", "kind") if has_kind else ("leaf", "area"))
    if not rows:
        raise InputError(f"{path.name} lists no areas; give one row for each leaf of each.", file=path.name)
    place_of = _places(tree)
    found: dict[str, list[tuple[int, tuple[int, int], str]]] = {}
    for number, row in enumerate(rows, start=1):
        if not all(row):
            column = ("leaf", "area", "kind")[[bool(value) for value in row].index(False)]
            message = f'column "{column}" in {path.name} has no value on row {number}; fill it in.'
            raise InputError(message, file=path.name, column=column, row=number)
        leaf, area, kind = str(row[0]), str(row[1]), str(row[2]) if has_kind else ONE_KIND
        if leaf not in place_of:
            message = f"{path.name} names a region on row {number} that is not in the list of leaves or above it; correct it."
            raise InputError(message, file=path.name, column="leaf", row=number)
        found.setdefault(kind, []).append((number, place_of[leaf], area))
    if len(found) > MOST_KINDS:
        message = f"{path.name} has {len(found)} kinds of areas, but at most {MOST_KINDS} are possible; leave some out."
        raise InputError(message, file=path.name, column="kind")
    for kind in found:
        if kind in names:
            message = (
                f'{path.name} has areas of a kind that is named like a level, "{kind}"; rename the kind.'
            )
            raise InputError(message, file=path.name, column="kind")
    return tuple(_kind(kind, own, tree.sizes[-1], path) for kind, own in sorted(found.items()))


def _places(tree: RegionTree) -> dict[str, tuple[int, int]]:
    """Leaves of every region by its code: the first and the one after the last."""
    found: dict[str, tuple[int, int]] = {}
    for level in range(tree.n_levels):
        for region, code in enumerate(tree.codes[level]):
            found[code] = tree.leaf_range(level, region, region + 1)
    if len(tree.leaf_labels[0]) == 1:
        found.update((labels[0], (leaf, leaf + 1)) for leaf, labels in enumerate(tree.leaf_labels))
    return found


def _kind(name: str, rows: Sequence[tuple[int, tuple[int, int], str]], n_leaves: int, path: Path) -> AreaKind:
    areas = tuple(sorted({area for _, _, area in rows}))
    place = {area: i for i, area in enumerate(areas)}
    area_of = np.full(n_leaves, -1, np.int64)
    for number, (first, last), area in rows:
        before = area_of[first:last]
        if ((before >= 0) & (before != place[area])).any():
            message = (
                f"{path.name} puts a leaf into two areas of one kind on row {number}; make them areas of "
                "different kinds, in the column kind."
            )
            raise InputError(message, file=path.name, column="area", row=number)
        area_of[first:last] = place[area]
    return AreaKind(name=name, areas=areas, area_of=area_of)
