"""Bytes of a Parquet file that do not appear in its rows: unused dictionary values, false statistics, padding in pages and in the footer.

A reader of rows never sees them, but a text editor does. Every part of a column is written again from its rows and compared: its statistics
must be equal, and it may be only slightly longer. Bytes are not compared, because another version of Arrow packs the same rows differently.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from louver.release.folder import MOST_VALUES, Folder, Malformed, examined, is_text
from louver.release.promises.base import Context, Outcome

__all__ = ["check_layout"]

WRITER = re.compile(r"parquet-cpp-arrow version [0-9]{1,4}(\.[0-9]{1,4}){2}[A-Za-z0-9.\-]{0,20}")
LONGER, ROOM = 1.05, 128
"""Maximum length of a part of a column relative to the rewritten part, and the additional bytes allowed beyond that."""
ENDS = 12
"""Bytes of a metadata file apart from the metadata: two magic numbers and a length."""
SCHEMA = b"ARROW:schema"


def check_layout(context: Context) -> Outcome:
    """Search every Parquet file for bytes that belong to no row."""
    files = sorted(name for name in context.manifest.files if name.endswith(".parquet"))
    for name in files:
        for problem in _problems(context.folder, name):
            return Outcome(False, f"{name} {problem}")
    return Outcome(True, f"{len(files)} Parquet files, without bytes that no row needs")


def _problems(folder: Folder, name: str) -> Iterator[str]:
    metadata = folder.footer(name)
    if not WRITER.fullmatch(metadata.created_by):
        yield "was not written by Arrow"
    if not _is_plain_footer(metadata):
        yield "has a footer with more than its columns need"
    schema = metadata.schema.to_arrow_schema()
    texts = [field.name for field in schema if is_text(field.type)]
    with pq.ParquetFile(folder.file(name), metadata=metadata, read_dictionary=texts) as file:
        for place in range(metadata.num_row_groups):
            group = metadata.row_group(place)
            start = 0
            for field in schema:
                end = start + _n_leaves(field.type)
                parts = [group.column(leaf) for leaf in range(start, end)]
                start = end
                if sum(part.num_values for part in parts) > MOST_VALUES:
                    raise Malformed("a part of a column is larger than any that louver writes")
                rows = examined(file.read_row_group(place, [field.name]), name)
                if field.name in texts and _has_unused(rows.column(0)):
                    yield "has values in a dictionary that no row has"
                elif not _are_as_written(parts, rows):
                    yield "has statistics or bytes that do not follow from its rows"


def _is_plain_footer(metadata: pq.FileMetaData) -> bool:
    """Whether the footer is no longer than its content needs, and its schema no longer than the columns need."""
    sink = pa.BufferOutputStream()
    metadata.write_metadata_file(sink)
    if metadata.serialized_size > sink.getvalue().size - ENDS:
        return False
    described = (metadata.metadata or {}).get(SCHEMA)
    schema = metadata.schema.to_arrow_schema()
    return described is None or len(described) <= len(base64.b64encode(schema.serialize())) + ROOM


def _has_unused(column: pa.ChunkedArray) -> bool:
    """Whether dictionaries hold a value that no row has."""
    listed = pa.chunked_array([chunk.dictionary for chunk in column.chunks], column.type.value_type)
    used = pa.chunked_array(
        [chunk.indices for chunk in column.unify_dictionaries().chunks], column.type.index_type
    )
    return bool(
        pc.count_distinct(used, mode="only_valid").as_py() < pc.count_distinct(listed, mode="all").as_py()
    )


def _are_as_written(parts: list[pq.ColumnChunkMetaData], rows: pa.Table) -> bool:
    """Whether the parts of a column state and contain no more than when they are written again."""
    kinds = {part.compression for part in parts}
    if len(kinds) > 1:
        return False
    kind = kinds.pop()
    codec = "none" if kind == "UNCOMPRESSED" else kind.lower()
    again = _written(rows, codec)
    if all(_is_part_like(part, again.column(place)) for place, part in enumerate(parts)):
        return True
    field = rows.schema.field(0)
    if not pa.types.is_dictionary(field.type):
        return False
    # A writer drops a dictionary that grows beyond its limit and stores plain text from then on, which is longer.
    again = _written(rows.cast(pa.schema([field.with_type(field.type.value_type)])), codec)
    return _is_part_like(parts[0], again.column(0)) and (
        _dictionary_size(parts[0]) <= LONGER * _dictionary_size(again.column(0)) + ROOM
    )


def _written(rows: pa.Table, codec: str) -> pq.RowGroupMetaData:
    """The metadata of a file that holds these rows as one group."""
    sink = pa.BufferOutputStream()
    pq.write_table(rows, sink, compression=codec, row_group_size=max(1, rows.num_rows))
    return pq.read_metadata(pa.BufferReader(sink.getvalue())).row_group(0)


def _dictionary_size(part: pq.ColumnChunkMetaData) -> int:
    """Bytes of the dictionary of a part; 0 without one."""
    return part.data_page_offset - part.dictionary_page_offset if part.has_dictionary_page else 0


def _is_part_like(part: pq.ColumnChunkMetaData, again: pq.ColumnChunkMetaData) -> bool:
    stated = part.statistics
    return (
        (stated is None or (again.statistics is not None and stated.equals(again.statistics)))
        and not (part.bloom_filter_offset or part.has_column_index or part.has_offset_index)
        and not (part.metadata or part.file_path or part.geo_statistics)
        and part.total_compressed_size <= LONGER * again.total_compressed_size + ROOM
    )


def _n_leaves(kind: pa.DataType) -> int:
    """Number of columns of the file that make up a column of the table."""
    if pa.types.is_dictionary(kind) or not kind.num_fields:
        return 1
    return sum(_n_leaves(kind.field(place).type) for place in range(kind.num_fields))
