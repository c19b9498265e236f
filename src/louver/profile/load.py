"""Reading a table once and coding every column."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from louver.data.coding import text_sql
from louver.data.read import BATCH_ROWS, Source, open_source
from louver.errors import InputError
from louver.profile.options import ProfileOptions
from louver.profile.problem import CodedColumn, Problem
from louver.run import Run
from louver.schema.request import Request

__all__ = ["load"]


def load(request: Request[ProfileOptions], run: Run) -> Problem:
    """Read the columns asked for, in one scan.

    Notes
    -----
    **Cost**: 4 bytes per value, and the text of every different value of a column.
    """
    with open_source(request.data, **request.source.opening()) as source:
        names = request.options.columns or source.columns
        if len(set(names)) < len(names):
            raise InputError("option --columns names a column twice; name each once.", option="--columns")
        chunks = _encoded(source, names, run)
        name = source.name
    columns = tuple(_coded(column, parts) for column, parts in zip(names, chunks, strict=True))
    return Problem(name=name, n_rows=len(columns[0].codes), columns=columns)


def _encoded(source: Source, names: tuple[str, ...], run: Run) -> list[list[pa.DictionaryArray]]:
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
