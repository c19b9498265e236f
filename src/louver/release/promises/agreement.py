"""Groups that agree with people: in every leaf region, sizes times groups equal the number of people of a TopDown release who are in
groups.

Recomputed from the published tables: the sizes, a copy of the people, and the public bounds on numbers of groups.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import Field

from louver._arrays import Bools, Ints
from louver._words import counted
from louver.release.folder import Folder, Malformed, without_dictionary
from louver.release.promises.base import Context, Outcome, Promise, places_in
from louver.release.promises.extension import first_of

__all__ = ["PromisedAgreement", "check_agreement"]

Labels = Annotated[tuple[str, ...], Field(min_length=1)]
SEPARATOR = "\x1f"
"""Separator between the labels of a leaf; labels that contain it are refused."""

MOST = 1 << 40
"""Largest number that a table may hold; sums of sizes times groups stay within 64 bits."""


class PromisedAgreement(Promise):
    """In every leaf region, sizes times groups are the first release's people in `members`, and groups are within bounds.

    Attributes
    ----------
    first, first_manifest : str
        Copies of the first release's microdata and manifest.
    first_digest : str
        Digest in the manifest, which identifies the first release.
    regions, attributes : tuple of str
        The columns of the first release.
    prefixes : tuple of int or None
        Length of the prefix of a leaf's code that names its region of each level; None if regions are columns.
    members, heads : mapping
        Labels of the people who are in groups, and of the heads, of whom every group has one; empty if that is not promised.
    bounds : str or None
        A file with the minimum and maximum number of groups of every leaf.
    largest : int
        The largest size.
    moved : int
        Number of leaves in which no number of groups within the bounds agrees with the people, so that bounds were moved as far as needed.
    """

    promise: Literal["agreement"]
    file: Literal["data/groups.parquet"]
    first: Literal["first/microdata.parquet"]
    first_manifest: Literal["first/manifest.json"]
    first_digest: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
    regions: Labels
    attributes: Labels
    prefixes: Annotated[tuple[Annotated[int, Field(ge=1)], ...], Field(min_length=1)] | None
    members: dict[str, Labels]
    heads: dict[str, Labels]
    bounds: Literal["data/bounds.parquet"] | None
    largest: Annotated[int, Field(ge=1, le=1_000_000)]
    moved: Annotated[int, Field(ge=0)]


def check_agreement(context: Context, promise: PromisedAgreement) -> Outcome:
    """Count people and groups of every leaf, and compare."""
    folder, manifest = context.folder, context.manifest
    if (problem := _first_problem(folder, promise)) is not None:
        return Outcome(False, problem)
    regions = list(manifest.parameters["regions"])
    leaves, groups, people = _groups_of(folder, promise, regions)
    members, heads = _people_of(folder, promise, regions, leaves)
    wrong = np.flatnonzero(people != members)
    if len(wrong):
        return Outcome(
            False,
            f"in {counted(len(wrong), 'leaf region')} sizes times groups are not the people of the first release",
        )
    least, most = np.zeros(len(groups), np.int64), np.full(len(groups), MOST)
    if promise.heads:
        least = most = heads
    elif promise.bounds is not None:
        least, most = _bounds_of(folder, promise.bounds, regions, leaves)
    fewest = (members + promise.largest - 1) // promise.largest
    is_moved = (most < fewest) | (least > members)
    # A bound that cannot be satisfied is moved to the nearest number of groups that the people allow.
    lower = np.where(least > members, members, least)
    upper = np.where(most < fewest, fewest, most)
    if ((groups < lower) | (groups > upper)).any():
        return Outcome(False, "a leaf region has fewer or more groups than promised")
    if int(is_moved.sum()) != promise.moved:
        return Outcome(False, "bounds were moved in a different number of leaf regions")
    moved = f", bounds moved in {promise.moved}" if promise.moved else ""
    return Outcome(
        True,
        f"in all {len(groups)} leaf regions sizes times groups are the people of the first release "
        f"{promise.first_digest[:16]}{moved}",
    )


def _first_problem(folder: Folder, promise: PromisedAgreement) -> str | None:
    """The first problem with the copy of the first release, if any."""
    found = first_of(folder, promise)
    if isinstance(found, str):
        return found
    first, topdown = found
    if topdown.get("spine") is not None or any(one.get("promise") == "extension" for one in first.promises):
        return "the first release is an extension, or its regions were arranged for areas"
    if list(promise.attributes) != list(topdown["attributes"]):
        return "the first release has other attributes"
    for cells in (promise.members, promise.heads):
        if any(not set(labels) <= set(topdown["attributes"].get(name, ())) for name, labels in cells.items()):
            return "the promise names labels that the first release does not have"
    if promise.prefixes is not None and not set(promise.prefixes) <= set(topdown["prefixes"] or ()):
        return "the first release has regions of other prefixes"
    return None


def _groups_of(
    folder: Folder, promise: PromisedAgreement, regions: Sequence[str]
) -> tuple[pa.Array, Ints, Ints]:
    """The leaves, with the groups of each and the people that they imply."""
    table = without_dictionary(folder.table(promise.file).select([*regions, "level", "size", "groups"]))
    table = table.filter(pc.equal(table["level"], regions[-1]))
    size, groups = (table[name].to_numpy().astype(np.int64) for name in ("size", "groups"))
    if (groups < 0).any() or (groups > MOST).any() or (size < 1).any() or (size > promise.largest).any():
        raise Malformed("a size or a number of groups is out of range")
    if len(np.unique(size)) != promise.largest:
        raise Malformed("the sizes are not those from 1 to the largest")
    if promise.prefixes is not None:
        _check_prefixes(table, promise.prefixes, regions)
    key = _keys(table, regions)
    leaves = pc.unique(key)
    place = places_in(key, leaves)
    n_groups, n_people = np.zeros(len(leaves), np.int64), np.zeros(len(leaves), np.int64)
    np.add.at(n_groups, place, groups)
    np.add.at(n_people, place, groups * size)
    return leaves, n_groups, n_people


def _check_prefixes(table: pa.Table, prefixes: Sequence[int], regions: Sequence[str]) -> None:
    """Regions of coded leaves are the prefixes of their codes."""
    if len(prefixes) != len(regions):
        raise Malformed("there are more or fewer prefixes than regions")
    code = table[regions[-1]]
    for name, length in zip(regions, prefixes, strict=True):
        if not table[name].equals(pc.utf8_slice_codeunits(code, 0, length)):
            raise Malformed("a region is not a prefix of its leaf's code")


def _keys(table: pa.Table, names: Sequence[str]) -> pa.Array:
    """One string for the labels of each row."""
    columns = [table[name].combine_chunks().cast(pa.string()) for name in names]
    for column in columns:
        if column.null_count or pc.any(pc.match_substring(column, SEPARATOR)).as_py():
            raise Malformed("a leaf region has no label, or an ambiguous one")
    return columns[0] if len(columns) == 1 else pc.binary_join_element_wise(*columns, SEPARATOR)


def _people_of(
    folder: Folder, promise: PromisedAgreement, regions: Sequence[str], leaves: pa.Array
) -> tuple[Ints, Ints]:
    """People of each leaf who are in groups, and how many of them are heads."""
    coded = promise.prefixes is not None
    columns = list(promise.regions) if coded else list(regions)
    used = sorted({*promise.members, *promise.heads})
    members, heads = np.zeros(len(leaves), np.int64), np.zeros(len(leaves), np.int64)
    # The last region of coded leaves is the code itself, which is only in its own column.
    known = leaves if not coded else _last(leaves)
    for batch in folder.batches(promise.first, [*columns, *used]):
        rows = without_dictionary(batch)
        place = places_in(_keys(rows, columns), known)
        if (place < 0).any():
            raise Malformed("the first release has people in a region that the table of sizes lacks")
        is_member = _inside(rows, promise.members)
        is_head = _inside(rows, promise.heads) if promise.heads else np.zeros(len(place), np.bool_)
        if (is_head & ~is_member).any():
            raise Malformed("heads are not all members")
        members += np.bincount(place[is_member], minlength=len(leaves))
        heads += np.bincount(place[is_head], minlength=len(leaves))
    return members, heads


def _last(leaves: pa.Array) -> pa.Array:
    """The last label of each leaf."""
    return pa.array([leaf.rsplit(SEPARATOR, 1)[-1] for leaf in leaves.to_pylist()], pa.string())


def _inside(rows: pa.Table, cells: Mapping[str, Sequence[str]]) -> Bools:
    inside = np.ones(rows.num_rows, dtype=np.bool_)
    for name, labels in cells.items():
        inside &= places_in(rows[name], pa.array(list(labels), pa.string())) >= 0
    return inside


def _bounds_of(folder: Folder, file: str, regions: Sequence[str], leaves: pa.Array) -> tuple[Ints, Ints]:
    """The bounds of each leaf, which must be listed once for every leaf."""
    table = without_dictionary(folder.table(file, most_rows=len(leaves)))
    place = places_in(_keys(table, regions), leaves)
    if len(place) != len(leaves) or not np.array_equal(np.sort(place), np.arange(len(leaves))):
        raise Malformed("there is not exactly one pair of bounds for each leaf region")
    found = []
    for name in ("least_groups", "most_groups"):
        if table[name].null_count or not pa.types.is_integer(table[name].type):
            raise Malformed("a bound is not a whole number")
        own = np.zeros(len(leaves), np.int64)
        own[place] = table[name].to_numpy()
        found.append(own)
    if (found[0] < 0).any() or (found[0] > found[1]).any():
        raise Malformed("a lower bound on groups is negative or above the upper bound")
    return found[0], found[1]
