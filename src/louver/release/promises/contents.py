"""The content of a release: the files that its verb publishes and its promises cover, with the required columns.

A file that no promise covers could hold anything, and so could an unchecked column, a note in a file's metadata or bytes between its
parts. So the list of permitted content is closed and follows from the promises: a file whose promise is dropped is refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from louver.release.folder import Folder, Malformed
from louver.release.manifest import Manifest
from louver.release.promises.base import Context, Outcome
from louver.release.promises.copies import csv_of, excel_of
from louver.release.promises.measurements import MEASUREMENTS
from louver.release.promises.spine import spine_columns

__all__ = ["check_contents"]

REPORT = "report.html"
ERROR_COLUMNS = ["standard_error", "lower_90", "upper_90"]
MEASURED = ["level", "node", "query", "values", "variance", "entry"]

PARQUET_KEYS = {b"ARROW:schema"}
OWN_KEYS = {b"louver"}
"""Files of measurements, which describe themselves; their own check determines what they may contain."""

FIELD_KEYS = {b"PARQUET:field_id"}
LONGEST_WRITER = 200
"""Maximum length of the name of the software that wrote a Parquet file."""

Entry = Mapping[str, Any]
Columns = Sequence[Sequence[str]]
"""Permitted names of the columns of a file: one of several lists, or any names if there is no list."""


def check_contents(context: Context) -> Outcome:
    """Look for files, columns and notes that do not belong to the release; the page is checked elsewhere."""
    manifest, folder = context.manifest, context.folder
    spoken = _spoken(manifest)
    extra = sorted(set(manifest.files) - set(spoken) - {REPORT})
    if extra:
        return Outcome(False, f"{extra[0]} is not covered by the promises of {manifest.verb}")
    for file, names in spoken.items():
        if file.endswith(".parquet") and file in manifest.files:
            for problem in _parquet_problems(folder, manifest.verb, file, names):
                return Outcome(False, f"{file} {problem}")
    return Outcome(True, f"{len(manifest.files)} files covered by the promises, with nothing else in them")


def _spoken(manifest: Manifest) -> dict[str, Columns]:
    """The files that a release may have, and the names that their columns may have."""
    by_name: dict[str, Entry] = {str(entry.get("promise")): entry for entry in manifest.promises}
    return dict(FILES[manifest.verb](manifest, by_name))


def _anonymize(manifest: Manifest, by_name: Mapping[str, Entry]) -> Iterator[tuple[str, Columns]]:
    request = manifest.parameters
    columns: list[str] = [
        *request.get("quasi", ()),
        *request.get("sensitive", ()),
        *request.get("keep", ()),
        "class_id",
        "unit_id",
    ]
    columns += [f"{name}_{end}" for name in request.get("quasi", ()) for end in ("lower", "upper")]
    # With a dictionary of all columns, `columns` compares it with the file.
    yield "data/anonymized.parquet", () if "columns" in by_name else _Among(columns)
    yield "data/mapping.parquet", ()  # its own check covers columns and types
    if "columns" in by_name:
        yield "data/columns.parquet", ()  # likewise
    if "csv" in by_name:
        yield "data/anonymized.csv", ()
    for name, counted in (("k-map", "people"), ("k-units", "units")):
        if name in by_name:
            yield "data/classes.parquet", [[*by_name[name].get("quasi", ()), counted]]


def _groups(manifest: Manifest, by_name: Mapping[str, Entry]) -> Iterator[tuple[str, Columns]]:
    regions = [*manifest.parameters.get("regions", ()), "level"]
    numbers, persons = [*regions, "size", "groups"], [*regions, "persons"]
    yield "data/groups.parquet", [numbers, numbers + ERROR_COLUMNS]
    yield "data/persons.parquet", [persons, persons + ERROR_COLUMNS]
    yield "measurements/groups.parquet", [MEASURED]
    if manifest.parameters.get("total") == "public":
        yield "invariants.parquet", [["invariant", "value"]]
    if "agreement" in by_name:
        agreement = by_name["agreement"]
        yield str(agreement.get("first")), [[*agreement.get("regions", ()), *agreement.get("attributes", ())]]
        yield str(agreement.get("first_manifest")), ()
        if agreement.get("bounds") is not None:
            yield str(agreement["bounds"]), [[*regions[:-1], "least_groups", "most_groups"]]


def _topdown(manifest: Manifest, by_name: Mapping[str, Entry]) -> Iterator[tuple[str, Columns]]:
    promise = by_name.get("topdown", {})
    people = [*promise.get("regions", ()), *promise.get("attributes", {})]
    yield str(promise.get("file")), [people]
    if promise.get("csv") is not None:
        yield str(promise["csv"]), ()
    yield str(promise.get("measurements")), [MEASURED]
    yield str(promise.get("statements")), [["statement", "region", "lower", "upper"]]
    yield str(promise.get("invariants")), [["invariant", "level", "region", "value"]]
    if promise.get("spine") is not None:
        yield str(promise["spine"]["file"]), [spine_columns(promise["spine"], promise.get("levels", ()))]
    for table in promise.get("tables", {}).values():
        yield str(table["file"]), ()  # compared with the people, column by column
    if promise.get("errors") is not None:
        yield str(promise["errors"]["file"]), ()
        yield str(promise["errors"]["regions"]), [["level", "region", "parent", "own_variance", "variance"]]
    if "extension" in by_name:
        extension = by_name["extension"]
        yield str(extension.get("first")), [[*extension.get("regions", ()), *extension.get("attributes", {})]]
        yield str(extension.get("first_manifest")), ()


def _audit(manifest: Manifest, by_name: Mapping[str, Entry]) -> Iterator[tuple[str, Columns]]:
    for table in by_name.get("tables", {}).get("tables", ()):
        yield str(table["file"]), ()  # its own check covers its columns
        yield csv_of(str(table["file"])), ()


def _protect(manifest: Manifest, by_name: Mapping[str, Entry]) -> Iterator[tuple[str, Columns]]:
    names = ("protected-tables", "rounded-tables", "cell-key-tables")
    entry = next((by_name[name] for name in names if name in by_name), {})
    for table in entry.get("tables", ()):
        file = str(table["file"])  # its own check covers its columns
        yield from ((one, ()) for one in (file, csv_of(file), excel_of(file)))


FILES = {
    "anonymize": _anonymize,
    "groups": _groups,
    "topdown": _topdown,
    "audit": _audit,
    "protect": _protect,
}


class _Among(tuple[Sequence[str], ...]):
    """Permitted names of columns, each at most once, in any order and number."""

    def __new__(cls, names: Iterable[str]) -> _Among:
        return super().__new__(cls, ([*names],))


def _parquet_problems(folder: Folder, verb: str, file: str, names: Columns) -> Iterator[str]:
    """What a Parquet file contains beyond the columns of its list."""
    metadata = folder.footer(file)
    schema = metadata.schema.to_arrow_schema()
    found = schema.names
    if len(set(found)) < len(found):
        yield "has two columns with the same name"
    if isinstance(names, _Among):
        if not set(found) <= set(names[0]):
            yield "has a column that is neither in the parameters nor in the dictionary of columns"
    elif names and found not in [list(allowed) for allowed in names]:
        yield "has different columns from those its verb publishes"
    keys = PARQUET_KEYS | (OWN_KEYS if file == MEASUREMENTS.get(verb) else set())
    if not set(metadata.metadata or ()) <= keys or len(metadata.created_by) > LONGEST_WRITER:
        yield "has notes in its metadata that louver does not write"
    if any(not set(field.metadata or ()) <= FIELD_KEYS for field in _fields(schema)):
        yield "has notes in its columns that louver does not write"
    if _unaccounted(metadata, folder.file(file).stat().st_size):
        yield "has bytes that belong to no column"


def _fields(schema: Iterable[pa.Field]) -> Iterator[pa.Field]:
    """Every field, nested ones included."""
    for field in schema:
        yield field
        yield from _fields(field.type.field(place) for place in range(field.type.num_fields))


def _unaccounted(metadata: pq.FileMetaData, size: int) -> int:
    """Bytes that belong neither to a column nor to the footer."""
    used = sum(
        metadata.row_group(group).column(column).total_compressed_size
        for group in range(metadata.num_row_groups)
        for column in range(metadata.num_columns)
    )
    if used > size:
        raise Malformed("a column is longer than its file")
    return size - int(used) - int(metadata.serialized_size) - 12  # two magic numbers and the footer's length
