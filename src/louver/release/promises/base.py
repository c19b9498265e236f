"""The parts of every promise: a model that its entry in the manifest must match exactly, and a check."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import BaseModel, ConfigDict

from louver._arrays import Ints
from louver.release.folder import Folder, Malformed
from louver.release.manifest import Manifest

__all__ = [
    "TOLERANCE",
    "Context",
    "Outcome",
    "Places",
    "Promise",
    "Registered",
    "codes_of",
    "count_codes",
    "count_distinct",
    "promise_of",
]

TOLERANCE = 1e-9
"""Slack for promises about real numbers (entropies, distances, losses)."""

MERGED_ROWS = 1 << 20
"""Number of distinct rows collected before they are merged."""


class Promise(BaseModel):
    """One entry of a manifest's `promises`: nothing is missing, nothing is extra, and every value has its type and range."""

    # Each model is built on first use, because a release needs only those of its own verb.
    model_config = ConfigDict(strict=True, extra="forbid", frozen=True, allow_inf_nan=False, defer_build=True)

    promise: str


def promise_of(manifest: Manifest, name: str) -> Mapping[str, Any]:
    """The entry of one promise; a release that lacks it is malformed."""
    for entry in manifest.promises:
        if entry.get("promise") == name:
            return entry
    raise Malformed(f'the manifest does not promise "{name}"')


@dataclass(frozen=True, slots=True)
class Outcome:
    """Whether a promise is kept, and the finding."""

    passed: bool
    found: str


@dataclass(frozen=True, slots=True)
class Context:
    """The context in which a promise is checked: the files that may be opened, and the rest of the manifest."""

    folder: Folder
    manifest: Manifest


@dataclass(frozen=True, slots=True)
class Registered:
    """A promise with its model and check; `only` lists the methods that may make it, if not all may."""

    model: type[Promise]
    check: Callable[[Context, Any], Outcome]
    only: frozenset[str] | None = None


def count_distinct(folder: Folder, file: str, names: Sequence[str]) -> pa.Table:
    """Distinct rows of some columns of a file, read in batches, and how often each occurs.

    Returns
    -------
    pyarrow.Table
        One column for each name, called by its position ("0", "1", ...), then `n`. A missing value equals itself.
    """
    counted, values = count_codes(folder, file, names)
    columns = [known.take(counted.column(place).combine_chunks()) for place, known in enumerate(values)]
    return pa.table([*columns, counted["n"]], names=counted.column_names)


def count_codes(folder: Folder, file: str, names: Sequence[str]) -> tuple[pa.Table, list[pa.Array]]:
    """The same with numbers in place of values, and for each column the values for which they stand.

    Numbers take a fraction of the memory: the classes of a large file are millions of rows.
    """
    keys = [str(place) for place in range(len(names))]
    fields = folder.schema(file)
    values = [_plain_type(fields.field(name).type) for name in names]
    known = [pa.array([], kind) for kind in values]
    parts: list[pa.Table] = []
    for batch in _growing(folder.batches(file, names), known):
        columns = []
        for place, name in enumerate(names):
            numbers, known[place] = _numbered(batch[name].combine_chunks(), known[place])
            columns.append(numbers)
        counted = pa.table(columns, names=keys).group_by(keys).aggregate([([], "count_all")])
        parts.append(counted.select([*keys, "count_all"]).rename_columns([*keys, "n"]))
        if sum(part.num_rows for part in parts) > MERGED_ROWS + 2 * parts[0].num_rows:
            parts = [_merged(parts, keys)]
    if parts:
        return _merged(parts, keys), known
    return pa.schema([*((key, pa.int32()) for key in keys), ("n", pa.int64())]).empty_table(), known


def _growing(batches: Iterator[pa.Table], known: Sequence[pa.Array]) -> Iterator[pa.Table]:
    """Batches, merged until they have as many rows as there are values known so far.

    Numbering a batch examines all known values: for a file with as many values as classes, numbering every batch separately would cost the
    square of its length.
    """
    held: list[pa.Table] = []
    for batch in batches:
        held.append(batch)
        if sum(part.num_rows for part in held) >= max(map(len, known), default=0):
            yield pa.concat_tables(held).unify_dictionaries()
            held = []
    if held:
        yield pa.concat_tables(held).unify_dictionaries()


def _plain_type(kind: pa.DataType) -> pa.DataType:
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def _numbered(column: pa.Array, known: pa.Array) -> tuple[pa.Array, pa.Array]:
    """The position of each value in a list of values; new ones are appended to it."""
    if not pa.types.is_dictionary(column.type) or column.indices.null_count:
        column = (
            column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column
        ).dictionary_encode(null_encoding="encode")
    own = column.dictionary
    places = pc.index_in(own, value_set=known)
    new = own.filter(pc.is_null(places))
    if len(new):
        known = pa.concat_arrays([known, pc.unique(new)])
        places = pc.index_in(own, value_set=known)
    return places.take(column.indices), known


def _merged(parts: list[pa.Table], keys: list[str]) -> pa.Table:
    summed = pa.concat_tables(parts).group_by(keys).aggregate([("n", "sum")])
    return summed.select([*keys, "n_sum"]).rename_columns([*keys, "n"])


def codes_of(table: pa.Table, names: Sequence[str]) -> Ints:
    """Number of the combination of values in each row; a missing value equals only itself."""
    codes = np.zeros(table.num_rows, dtype=np.int64)
    for name in names:
        encoded = table.column(name).combine_chunks().dictionary_encode(null_encoding="encode")
        new = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
        _, codes = np.unique(codes * (len(encoded.dictionary) + 1) + new, return_inverse=True)
    return codes


def places_in(column: pa.Array | pa.ChunkedArray, values: pa.Array) -> Ints:
    """Position of each value of a text column in a list, -1 if it is absent."""
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    if pa.types.is_dictionary(column.type):
        places = places_in(column.dictionary, values)
        indices = pc.fill_null(column.indices, len(places)).to_numpy(zero_copy_only=False)
        return np.asarray(np.append(places, -1)[indices], np.int64)
    found = pc.index_in(column.cast(pa.string()), value_set=values, skip_nulls=True)
    answer: Ints = pc.fill_null(found, -1).to_numpy(zero_copy_only=False).astype(np.int64)
    return answer


class Places:
    """Positions in a long list of strings that is searched repeatedly, mostly in its order.

    Examples
    --------
    >>> Places(pa.array(["b", "c", "a"])).of(pa.array(["a", "b", "z", None])).tolist()
    [2, 0, -1, -1]
    """

    def __init__(self, values: pa.Array) -> None:
        order = pc.sort_indices(values)
        self._order = np.append(order.to_numpy().astype(np.int64), -1)
        self._sorted = values.take(order)

    def of(self, column: pa.Array | pa.ChunkedArray) -> Ints:
        """Position of each value of a text column, -1 if it is absent."""
        if isinstance(column, pa.ChunkedArray):
            column = column.combine_chunks()
        if pa.types.is_dictionary(column.type):
            places = self.of(column.dictionary)
            indices = pc.fill_null(column.indices, len(places)).to_numpy(zero_copy_only=False)
            return np.asarray(np.append(places, -1)[indices], np.int64)
        ends = pc.min_max(column.cast(pa.string()))
        if ends["min"].as_py() is None:
            return np.full(len(column), -1)
        first = bisect_left(self._sorted, ends["min"].as_py(), key=_text)
        last = bisect_right(self._sorted, ends["max"].as_py(), key=_text)
        found = places_in(column, self._sorted.slice(first, last - first))
        return self._order[np.where(found < 0, -1, found + first)]


def _text(scalar: pa.Scalar) -> str:
    return str(scalar.as_py())
