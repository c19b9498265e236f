"""Columns in memory: codes into the list of their values, and the type of number for which their text stands."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from louver._arrays import Ints
from louver.data.coding import text_sql
from louver.data.read import BATCH_ROWS, Source
from louver.run import Run

__all__ = ["CodedColumn", "coded_column", "common_type", "number_type", "read_coded", "typed"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CodedColumn:
    """One column. Confidential.

    Attributes
    ----------
    name : str
    codes : ndarray of int32, shape (n,)
        Position of each record's value in `values`; the number of values if it is missing.
    values : StringArray
        The values that occur, as text.
    counts : ndarray of int64, shape (number of values,)
        Number of records with each value.
    n_missing : int
    """

    name: str
    codes: NDArray[np.int32]
    values: pa.StringArray
    counts: Ints
    n_missing: int

    @property
    def n_values(self) -> int:
        """Number of distinct values, not counting missing."""
        return len(self.counts)

    @property
    def n_known(self) -> int:
        """Number of records that have a value."""
        return len(self.codes) - self.n_missing

    @property
    def n_codes(self) -> int:
        """Number of distinct codes, including the code for missing if it occurs."""
        return self.n_values + (self.n_missing > 0)

    @property
    def n_alone(self) -> int:
        """Number of records whose value no other record has."""
        return int((self.counts == 1).sum()) + (self.n_missing == 1)


def read_coded(source: Source, names: Sequence[str], run: Run) -> tuple[CodedColumn, ...]:
    """Read columns in one scan.

    Notes
    -----
    **Cost**: 4 bytes per value, and the text of every distinct value of a column.
    """
    chunks = _encoded(source, names, run)
    return tuple(_coded(column, parts) for column, parts in zip(names, chunks, strict=True))


def coded_column(name: str, column: pa.ChunkedArray) -> CodedColumn:
    """Encode one column that is in memory."""
    texts = column.cast(pa.string()).combine_chunks()
    return _coded(name, [texts.dictionary_encode()])


def _encoded(source: Source, names: Sequence[str], run: Run) -> list[list[pa.DictionaryArray]]:
    """Every column as batches of codes, each with the list of values of its batch."""
    fields = ", ".join(text_sql(source, name) for name in names)
    total = source.estimate_rows()
    chunks: list[list[pa.DictionaryArray]] = [[] for _ in names]
    for number, batch in enumerate(source.batches(f"SELECT {fields} FROM records")):
        for parts, column in zip(chunks, batch.columns, strict=True):
            parts.append(column.dictionary_encode())
        done = (number + 1) * BATCH_ROWS
        run.report("reading", min(done, total), total)
    return chunks


def _coded(name: str, parts: list[pa.DictionaryArray]) -> CodedColumn:
    """One list of values for all batches; the batches are released."""
    whole = pa.chunked_array(parts).unify_dictionaries()
    parts.clear()
    values = whole.chunk(0).dictionary
    codes = np.empty(len(whole), dtype=np.int32)
    place = 0
    for chunk in whole.chunks:
        filled = chunk.indices.fill_null(len(values))
        codes[place : place + len(chunk)] = np.from_dlpack(filled)
        place += len(chunk)
    codes.flags.writeable = False
    counts = np.bincount(codes, minlength=len(values) + 1).astype(np.int64)
    return CodedColumn(name=name, codes=codes, values=values, counts=counts[:-1], n_missing=int(counts[-1]))


INTEGER = r"^-?(0|[1-9][0-9]{0,17})$"
NUMBER = r"^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?$"
"""Numbers as programs write them; a leading plus sign or leading zeros mark a code ("007", "+49")."""


def typed(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """A text column converted to integers or numbers if every value is one; otherwise unchanged.

    Examples
    --------
    >>> [str(typed(pa.chunked_array([texts])).type) for texts in (["1", None], ["1.5", "2"], ["01", "2"])]
    ['int64', 'double', 'string']
    """
    kind = number_type(column)
    return column if kind is None or pa.types.is_null(kind) else column.cast(kind)


def number_type(column: pa.ChunkedArray) -> pa.DataType | None:
    """The type of number that all values of a text column have; null if there is no value, None if some are not numbers."""
    if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
        return None
    values = pc.drop_null(pc.unique(column))
    if not len(values):
        return pa.null()
    for pattern, kind in ((INTEGER, pa.int64()), (NUMBER, pa.float64())):
        if pc.all(pc.match_substring_regex(values, pattern)).as_py():
            return kind if pc.all(pc.is_finite(values.cast(kind))).as_py() else None
    return None


def common_type(one: pa.DataType | None, other: pa.DataType | None) -> pa.DataType | None:
    """The type of a column of numbers, from the types of its parts."""
    if one is None or other is None:
        return None
    if pa.types.is_null(one) or pa.types.is_null(other):
        return other if pa.types.is_null(one) else one
    return one if one == other else pa.float64()
