"""A spine that was arranged for areas: every leaf has one position, and the regions follow from geography and areas alone.

The published file has one row for each leaf: its regions in the spine and in the geography, and its areas. A rule states what the leaves of
a region have in common; regions are compared with the rules, without the code that arranged them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Annotated, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import BaseModel, ConfigDict, Field

from louver._arrays import Ints
from louver.release.folder import Folder, Malformed, without_dictionary
from louver.release.promises.base import count_distinct

__all__ = ["SpineFile", "named_areas", "regions_of_leaves", "spine_columns", "spine_problems"]

Names = Annotated[tuple[str, ...], Field(min_length=1)]


class SpineRule(BaseModel):
    """The geographic level and the kinds of areas that the leaves of a region share."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)

    geography: str
    areas: tuple[str, ...]


class SpineFile(BaseModel):
    """The file with the regions of every leaf, and the rules by which they were formed.

    Attributes
    ----------
    fixed : str
        The last level of the geography that is kept.
    geography : tuple of str
        Levels of the geography.
    prefixes : tuple of int or None
        Length of the leaf code prefix that names the geographic region of each level; None if a leaf is a path with `/`.
    kinds : tuple of str
        Kinds of areas.
    rules : tuple of SpineRule
        One for each new level.
    """

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)

    file: Literal["public/spine.parquet"]
    fixed: str
    geography: Names
    prefixes: tuple[Annotated[int, Field(ge=0)], ...] | None
    kinds: Names
    rules: Annotated[tuple[SpineRule, ...], Field(min_length=1)]


def spine_columns(spine: Mapping[str, Sequence[str]] | SpineFile, levels: Sequence[str]) -> list[str]:
    """Columns of the file: the leaf, its regions in the spine and in the geography below the fixed level, and its areas."""
    given = spine if isinstance(spine, SpineFile) else SpineFile.model_validate(spine, strict=False)
    first = given.geography.index(given.fixed) + 1
    return [
        "leaf",
        *(f"spine: {name}" for name in levels[:-1]),
        *(f"geography: {name}" for name in given.geography[first:-1]),
        *(f"area: {name}" for name in given.kinds),
    ]


def _check_form(spine: SpineFile, levels: Sequence[str]) -> None:
    """Refuse rules that refer to unknown levels or kinds."""
    if spine.fixed not in spine.geography[:-1] or len(set(spine.geography)) < len(spine.geography):
        raise Malformed("the spine has no fixed level in its geography")
    if spine.prefixes is not None and len(spine.prefixes) != len(spine.geography):
        raise Malformed("the prefixes are not one for each level")
    depth = spine.geography.index(spine.fixed)
    n_new = len(levels) - depth - 2
    if n_new != len(spine.rules) or list(levels[: depth + 1]) != list(spine.geography[: depth + 1]):
        raise Malformed("the levels are not those of the spine")
    if levels[-1] != spine.geography[-1] or len(set(spine.kinds)) < len(spine.kinds):
        raise Malformed("the levels are not those of the spine")
    for rule in spine.rules:
        if rule.geography not in spine.geography[depth:-1] or not set(rule.areas) <= set(spine.kinds):
            raise Malformed("a rule of the spine refers to an unknown level or kind of area")


def _read(folder: Folder, spine: SpineFile, levels: Sequence[str]) -> pa.Table:
    """The file, with its columns checked."""
    _check_form(spine, levels)
    names = spine_columns(spine, levels)
    table = without_dictionary(folder.table(spine.file))
    if table.column_names != names or any(field.type != pa.string() for field in table.schema):
        raise Malformed("the file of the spine has other columns")
    if any(table[name].null_count for name in names if not name.startswith("area: ")):
        raise Malformed("the file of the spine lacks a region")
    return table


def regions_of_leaves(
    folder: Folder, spine: SpineFile, levels: Sequence[str], leaves: pa.Array
) -> list[pa.Array]:
    """For every level, the region in which each of the given leaves lies."""
    table = _read(folder, spine, levels)
    place = pc.index_in(leaves, value_set=table["leaf"].combine_chunks())
    if place.null_count:
        raise Malformed("the spine lacks a leaf that was measured")
    return [*(table[f"spine: {name}"].take(place).combine_chunks() for name in levels[:-1]), leaves]


def named_areas(
    folder: Folder, spine: SpineFile, levels: Sequence[str], leaves: Sequence[str]
) -> dict[str, list[int]]:
    """Leaves, by their positions in `leaves`, of every area and of every geographic region that is not a region of the spine.

    Names consist of the kind or level and the area, as in "tract: 030100".
    """
    table = _read(folder, spine, levels)
    place = pc.index_in(table["leaf"].combine_chunks(), value_set=pa.array(leaves, pa.string()))
    if place.null_count:
        raise Malformed("the spine has a leaf that the release does not have")
    found: dict[str, list[int]] = {}
    for column in sorted(table.column_names):  # areas before geography
        kind, _, name = column.partition(": ")
        if kind in ("area", "geography"):
            for leaf, own in zip(place.to_pylist(), table[column].to_pylist(), strict=True):
                if own is not None:
                    found.setdefault(f"{name}: {own}", []).append(leaf)
    return found


def spine_problems(
    folder: Folder, spine: SpineFile, levels: Sequence[str], measurements: str
) -> Iterator[str]:
    """What is wrong with the positions of the leaves, if anything."""
    table = _read(folder, spine, levels)
    if pc.count_distinct(table["leaf"]).as_py() != len(table):
        yield "a leaf is in two places of the spine"
    nodes = count_distinct(folder, measurements, ["level", "node"])
    for name in levels:
        column = "leaf" if name == levels[-1] else f"spine: {name}"
        measured = nodes.filter(pc.equal(nodes["0"], name))["1"]
        if set(measured.to_pylist()) != set(pc.unique(table[column]).to_pylist()):
            yield f'the regions of level "{name}" are not those of the spine'
    for depth, name in enumerate(spine.geography[:-1]):
        column = f"geography: {name}" if f"geography: {name}" in table.column_names else f"spine: {name}"
        if not table[column].equals(_geographic(table["leaf"], spine.prefixes, depth)):
            yield f'column "{column}" of the spine does not follow from the codes of the leaves'
    codes = {name: _encoded(table[name]) for name in table.column_names}
    first = spine.geography.index(spine.fixed) + 1
    chains = (
        [f"spine: {name}" for name in levels[:-1]],
        [f"spine: {spine.fixed}", *(f"geography: {name}" for name in spine.geography[first:-1])],
    )
    for above, below in (pair for chain in chains for pair in pairwise(chain)):
        if not _is_refined(codes[above], codes[below]):
            yield f'a region in column "{below}" of the spine has parts in two regions above it'
    for rule, name in zip(spine.rules, levels[first:-1], strict=True):
        level = f"spine: {spine.fixed}" if rule.geography == spine.fixed else f"geography: {rule.geography}"
        shared = _together([codes[level], *(codes[f"area: {kind}"] for kind in rule.areas)])
        own = codes[f"spine: {name}"]
        if not (_is_refined(own, shared) and _is_refined(shared, own)):
            yield f'the regions of level "{name}" do not follow from geography and areas'


def _geographic(leaf: pa.ChunkedArray, prefixes: Sequence[int] | None, depth: int) -> pa.ChunkedArray:
    """Codes of the geographic regions in which leaves lie."""
    if prefixes is not None:
        return pc.utf8_slice_codeunits(leaf, 0, prefixes[depth])
    return pc.binary_join(pc.list_slice(pc.split_pattern(leaf, "/"), 0, depth + 1), "/")


def _encoded(column: pa.ChunkedArray) -> Ints:
    """Numbers in place of texts, -1 if there is none."""
    indices = column.combine_chunks().dictionary_encode().indices
    return np.asarray(pc.fill_null(indices, -1).to_numpy(zero_copy_only=False), np.int64)


def _together(columns: Sequence[Ints]) -> Ints:
    """Numbers of the distinct rows of the columns."""
    number = np.zeros(len(columns[0]), np.int64)
    for column in columns:
        number = np.unique(number * (len(column) + 2) + column + 1, return_inverse=True)[1].astype(np.int64)
    return number


def _is_refined(coarse: Ints, fine: Ints) -> bool:
    """Whether leaves that are together in the fine regions are together in the coarse ones."""
    both = _together([coarse, fine])
    return len(np.unique(both)) == len(np.unique(fine))
