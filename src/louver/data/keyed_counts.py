"""Counts of records with the sum of their keys, a number that is the same wherever a set of records is counted.

A record's key is 64 bits of a hash, under a secret, of the text of its person. The sum of the keys modulo 2^64 depends only on the set of
records, whatever the order, file or table in which they are counted, as long as the text of every person is the same; without the secret it
reveals nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from louver._arrays import Ints
from louver.data.coding import find_row, text_sql
from louver.data.read import Source
from louver.data.sql import quoted
from louver.errors import InputError

__all__ = ["KeyedCounts", "keyed_counts"]

MODULUS = 1 << 64
HELD = "keyed"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class KeyedCounts:
    """The combinations of values that occur in some columns.

    Attributes
    ----------
    labels : tuple of list of str
        One list for each column.
    counts : int64 (combinations,)
    keys : uint64 (combinations,)
        Sums of record keys.
    """

    labels: tuple[list[str], ...]
    counts: Ints
    keys: NDArray[np.uint64]


def keyed_counts(
    source: Source, tables: Sequence[Sequence[str]], person: str, secret: str
) -> Iterator[KeyedCounts]:
    """Count records by the columns of each table.

    Parameters
    ----------
    person : str
        Column with a distinct value in every record.
    secret : str
        A secret of letters and digits.

    Raises
    ------
    InputError
        On a missing value, or if two records have the same person.

    Notes
    -----
    **Cost**: one pass that hashes every record, and a grouped query for each table.
    """
    names = list(dict.fromkeys(name for table in tables for name in table))
    for name in (person, *names):
        source.check_column(name)
    texts = {name: text_sql(source, name) for name in (person, *names)}
    for name in (person, *names):
        _refuse_missing(source, name, texts[name])
    columns = "".join(f", {texts[name]} AS {quoted(f'c{place}')}" for place, name in enumerate(names))
    hashed = f"CAST('0x' || substr(sha256($secret || ':' || {texts[person]}), 1, 16) AS UBIGINT)"
    _refuse_twice(source, person, texts[person])
    made = f"CREATE OR REPLACE TEMP TABLE {HELD} AS SELECT {hashed} AS key{columns} FROM records"
    for _ in source.batches(made, secret=secret):
        pass
    for table in tables:
        by = ", ".join(quoted(f"c{names.index(name)}") for name in table)
        total = f"CAST(sum(key) % {MODULUS} AS UBIGINT)"
        sql = f"SELECT {by}, count(*) AS n, {total} AS total FROM {HELD} GROUP BY {by} ORDER BY {by}"
        found = pa.Table.from_batches(source.batches(sql))
        *labels, counts, keys = found.columns
        yield KeyedCounts(
            labels=tuple(column.to_pylist() for column in labels),
            counts=np.array(np.from_dlpack(counts.combine_chunks()), dtype=np.int64),
            keys=np.array(np.from_dlpack(keys.combine_chunks()), dtype=np.uint64),
        )


def _refuse_missing(source: Source, name: str, text: str) -> None:
    found = source.first_row(f"SELECT count(*) AS n FROM records WHERE {text} IS NULL")
    if found is not None and found["n"]:
        row = find_row(source, f"{text} IS NULL")
        raise InputError(
            f'column "{name}" in {source.name} has no value on row {row}; drop the row or add a code.',
            file=source.name,
            column=name,
            row=row,
        )


def _refuse_twice(source: Source, person: str, text: str) -> None:
    """Refuse two records of one person: they would have the same key, which the key of a set with both would reveal."""
    found = source.first_row(f"SELECT {text} AS person FROM records GROUP BY 1 HAVING count(*) > 1 LIMIT 1")
    if found is not None:
        row = find_row(source, f"{text} = $twice", twice=found["person"])
        raise InputError(
            f'column "{person}" in {source.name} repeats the value of row {row} in a later row; cell keys need one record per person.',
            file=source.name,
            column=person,
            row=row,
        )
