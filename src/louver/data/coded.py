"""Columns as codes into the list of their values, for what is to be learnt about a table before it is published."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from louver._arrays import Ints
from louver.data.coding import text_sql
from louver.data.read import BATCH_ROWS, Source
from louver.run import Run

__all__ = ["CodedColumn", "coded_column", "read_coded"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CodedColumn:
    """One column. Confidential.

    Attributes
    ----------
    name : str
    codes : ndarray of int32, shape (n,)
        Position of each record's value in `values`; the number of values where it is missing.
    values : StringArray
        The values that occur, as text.
    counts : ndarray of int64, shape (number of values,)
        Records of each value.
    n_missing : int
    """

    name: str
    codes: NDArray[np.int32]
    values: pa.StringArray
    counts: Ints
    n_missing: int

    @property
    def n_values(self) -> int:
        """Different values, missing aside."""
        return len(self.counts)

    @property
    def n_known(self) -> int:
        """Records that have a value."""
        return len(self.codes) - self.n_missing

    @property
    def n_codes(self) -> int:
        """Different codes, that of missing included where it occurs."""
        return self.n_values + (self.n_missing > 0)

    @property
    def n_alone(self) -> int:
        """Records whose value no other record has."""
        return int((self.counts == 1).sum()) + (self.n_missing == 1)


def read_coded(source: Source, names: Sequence[str], run: Run) -> tuple[CodedColumn, ...]:
    """Read columns in one scan.

    Notes
    -----
    **Cost**: 4 bytes per value, and the text of every different value of a column.
    """
    chunks = _encoded(source, names, run)
    return tuple(_coded(column, parts) for column, parts in zip(names, chunks, strict=True))


def coded_column(name: str, column: pa.ChunkedArray) -> CodedColumn:
    """The same of a column in memory."""
    texts = column.cast(pa.string()).combine_chunks()
    return _coded(name, [texts.dictionary_encode()])


def _encoded(source: Source, names: Sequence[str], run: Run) -> list[list[pa.DictionaryArray]]:
    """Every column as batches of codes, each with the values of its batch."""
    fields = ", ".join(text_sql(source, name) for name in names)
    counted = source.first_row("SELECT count(*) AS n FROM records")
    assert counted is not None
    chunks: list[list[pa.DictionaryArray]] = [[] for _ in names]
    for number, batch in enumerate(source.batches(f"SELECT {fields} FROM records")):
        for parts, column in zip(chunks, batch.columns, strict=True):
            parts.append(column.dictionary_encode())
        run.report("reading", min((number + 1) * BATCH_ROWS, counted["n"]), counted["n"])
    return chunks


def _coded(name: str, parts: list[pa.DictionaryArray]) -> CodedColumn:
    """One list of values for all batches; the batches are let go."""
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
