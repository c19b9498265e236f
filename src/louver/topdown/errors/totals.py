"""People of every region of a release, from its folder alone: what a tree or a map of the regions shows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import ValidationError

from louver._arrays import Ints
from louver.release.folder import Folder, Malformed, plain_files, without_dictionary
from louver.release.manifest import read_manifest
from louver.release.promises.topdown import TopDown, count_people, leaf_codes
from louver.run import Run
from louver.topdown.errors.area import damaged, open_errors

__all__ = ["region_totals"]


def region_totals(release: str | Path, run: Run | None = None) -> pa.Table:
    """One row for each region, a level after the other: level, region, parent, count, standard_error, lower_90, upper_90.

    The last three are null where the release was made without intervals.

    Raises
    ------
    InputError
        If the folder holds no TopDown release that can be read.
    """
    place = Path(release)
    try:
        manifest = read_manifest(place)
        promise = TopDown.model_validate(json.loads(json.dumps(manifest.promises[0])), strict=False)
        folder = Folder(place, plain_files(place)[0])
        return _unsure(folder, promise) if promise.errors is None else _with_errors(folder, promise, run)
    except (ValidationError, IndexError, OSError, Malformed, KeyError, pa.ArrowException):
        raise damaged(place.name) from None


def _with_errors(folder: Folder, promise: TopDown, run: Run | None) -> pa.Table:
    assert promise.errors is not None
    _, tree, queries = open_errors(folder, promise, run)
    number, query = next((i, query) for i, (query, _) in enumerate(queries) if query.n_rows == 1)
    regions = without_dictionary(folder.table(promise.errors.regions).select(["level", "region", "parent"]))
    exact = _exact_levels(promise)
    parts: list[dict[str, Any]] = []
    for level, histogram in enumerate(tree.levels):
        count = query.answer(histogram)[:, 0]
        units = np.sqrt(tree.final[level][:, number]) * (level > exact)
        found = tree.model.classes[level, number].intervals(count, units)
        parts.append(
            {
                "count": count,
                "standard_error": found.standard_error,
                "lower_90": found.lower,
                "upper_90": found.upper,
            }
        )
    columns = {name: pa.array(np.concatenate([part[name] for part in parts])) for name in parts[0]}
    return pa.table({**{name: regions[name] for name in regions.column_names}, **columns})


def _exact_levels(promise: TopDown) -> int:
    """The lowest level whose totals are published exactly, and with it all above; -1 where none is."""
    told = (level for name, level in promise.exact.items() if not promise.cells[name])
    return max((promise.levels.index(level) for level in told), default=-1)


def _unsure(folder: Folder, promise: TopDown) -> pa.Table:
    """The same where nothing is known of errors: leaves are those that were measured or have somebody in them."""
    measured = without_dictionary(folder.table(promise.measurements).select(["level", "node"]))
    nodes = measured.filter(pc.equal(measured["level"], promise.levels[-1]))["node"].combine_chunks()
    named = [leaf_codes(batch, promise.regions) for batch in folder.batches(promise.file, promise.regions)]
    leaves = pc.unique(pa.chunked_array([nodes, *(codes.cast(pa.string()) for codes in named)]))
    leaves = leaves.take(pc.sort_indices(leaves))
    people = count_people(folder, promise, leaves)
    if isinstance(people, str):
        raise Malformed(people)
    inside: Ints = np.bincount(people.leaf, people.count, minlength=len(leaves)).astype(np.int64)
    rows: dict[str, list[Any]] = {name: [] for name in ("level", "region", "parent", "count")}
    for level, (codes, own) in enumerate(zip(people.regions, people.region_of, strict=True)):
        first = np.unique(own, return_index=True)[1]
        rows["level"] += [promise.levels[level]] * len(codes)
        rows["region"] += codes.to_pylist()
        above = people.region_of[level - 1][first] if level else None
        rows["parent"] += (
            [None] * len(codes) if above is None else people.regions[level - 1].take(above).to_pylist()
        )
        rows["count"] += np.bincount(own, inside, minlength=len(codes)).astype(np.int64).tolist()
    unknown = pa.nulls(len(rows["level"]), pa.int64())
    errors = {"standard_error": unknown.cast(pa.float64()), "lower_90": unknown, "upper_90": unknown}
    return pa.table(
        {name: pa.array(rows[name]) for name in ("level", "region")}
        | {"parent": pa.array(rows["parent"], pa.string()), "count": pa.array(rows["count"], pa.int64())}
        | errors
    )
