"""What an attacker knows of every person when a release was made: the values to look that person up by.

Values change between two releases: people have birthdays and move. Whoever looks for a person in a release uses the values of its time.
The records of now say what they were for a release made from the same records; for an earlier one its own records are needed, and a key
that tells which of them are the same person's (`--earlier`, `--link`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from louver._arrays import Bools, Floats, Ints
from louver.anonymize.columns import given_values
from louver.anonymize.load import MISSING, Loaded
from louver.anonymize.options import NUMBER_CODES, AnonymizeOptions
from louver.anonymize.recodes import coded_numbers
from louver.data.coded import CodedColumn, read_coded, typed
from louver.data.coding import date_form, iso_day
from louver.data.read import Source, open_source
from louver.data.tabulate import read_codes
from louver.errors import InputError
from louver.run import Run
from louver.schema.attribute import Attribute
from louver.schema.spec import Schema

__all__ = ["Coding", "Known", "Values", "as_texts", "known_now", "known_then", "person_keys"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Values:
    """The distinct values of a column, as text and as numbers, and which of them each person has; a missing one is neither."""

    texts: Sequence[str | None]
    numbers: Floats
    of_person: Ints


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Known:
    """What is known of the people of the new release at the time of one release.

    Attributes
    ----------
    values : mapping of str to Values
        Columns that some release generalises.
    records : pyarrow.Table
        The record of each person then, numbers coded as they were published; nulls for those who were not among the records.
    rows : int64 (people,)
        The row of each person among the records of then; -1 for those who were not among them.
    """

    values: Mapping[str, Values]
    records: pa.Table
    rows: Ints

    @property
    def is_present(self) -> Bools:
        present: Bools = self.rows >= 0
        return present


@dataclass(frozen=True, slots=True, kw_only=True)
class Coding:
    """How a release was made from its records, by its manifest.

    Attributes
    ----------
    missing_code : mapping of str to tuple of str
        Values that stand for missing, by column.
    number_codes : mapping
        `--top-code`, `--bottom-code` and `--round-to`.
    """

    missing_code: Mapping[str, tuple[str, ...]]
    number_codes: Mapping[str, Any]

    @classmethod
    def of(cls, parameters: Mapping[str, Any]) -> Coding:
        return cls(
            missing_code={
                name: tuple(codes) for name, codes in (parameters.get("missing_code") or {}).items() if codes
            },
            number_codes={name: parameters.get(name) or {} for name in NUMBER_CODES},
        )


def known_now(source: Source, loaded: Loaded, names: Sequence[str]) -> Known:
    """What the records of now say: the quasi-identifiers, and the other columns that are named."""
    rows = np.arange(loaded.records.num_rows)
    values: dict[str, Values] = {}
    for attribute, column in zip(loaded.attributes, loaded.problem.columns, strict=True):
        distinct, of_person = np.unique(given_values(column, rows), return_inverse=True)
        texts: list[str | None] = [None] * len(distinct)
        if attribute.labels:
            texts = [None if np.isnan(d) else attribute.labels[int(d)] for d in distinct]
            distinct = _numbers(texts)
        values[attribute.name] = Values(texts=texts, numbers=distinct, of_person=of_person)
    for name in dict.fromkeys(names):
        if name not in values:
            values[name] = _read(source, name, rows)
    return Known(values=values, records=loaded.records, rows=rows)


def person_keys(source: Source, link: str, run: Run) -> pa.Array:
    """The key of each person, as text.

    Raises
    ------
    InputError
        Where a record has none, or two have the same.
    """
    source.check_column(link)
    (column,) = read_coded(source, [link], run)
    is_repeated = np.append(column.counts > 1, False)[column.codes]
    for bad, told in (
        (column.codes == column.n_values, "has no value"),
        (is_repeated, "has a value that another row has, too,"),
    ):
        if bad.any():
            row = source.row_of(int(np.argmax(bad)) + 1)
            raise InputError(
                f'option --link: column "{link}" in {source.name} {told} on row {row}; name a column with one key for each person.',
                file=source.name,
                column=link,
                row=row,
                option="--link",
            )
    return _as_text(column)


def known_then(
    file: str | Path,
    opening: Mapping[str, Any],
    link: str,
    keys: pa.Array,
    names: Sequence[str],
    coding: Coding,
    run: Run,
) -> Known:
    """What the records say that an earlier release was made from, in the order of the people of now.

    Parameters
    ----------
    opening : mapping
        How the file is read.
    keys : StringArray (people,)
        Keys of the people of now.
    names : sequence of str
        Columns that some release generalises; those that the file does not have are left out.
    """
    with open_source(str(file), **opening, missing_code=coding.missing_code, run=run) as source:
        then = person_keys(source, link, run)
        found = pc.index_in(keys, value_set=then)
        if found.null_count == len(found):
            raise InputError(
                f'option --link: {source.name} has nobody in common with the data by column "{link}"; name the key of a person.',
                file=source.name,
                column=link,
                option="--link",
            )
        rows = np.asarray(found.fill_null(-1).to_numpy(zero_copy_only=False), np.int64)
        coded = AnonymizeOptions.model_construct(**coding.number_codes)
        records = coded_numbers(source.read_all(), source, coded)
        values = {
            name: _read(source, name, rows) for name in dict.fromkeys(names) if name in records.column_names
        }
    return Known(values=values, records=records.take(found), rows=rows)


def _as_text(column: CodedColumn) -> pa.Array:
    return column.values.take(pa.array(column.codes))


def _read(source: Source, name: str, rows: Ints) -> Values:
    """A column as categories, in the order of the people; -1 for those whose row is -1."""
    coded = read_codes(source, [name], Schema(attributes=(Attribute(name=name, missing=MISSING),)))
    labels = _days(list(coded.attributes[0].labels), source, name)
    numbers = _numbers([None if label == MISSING else label for label in labels])
    of_row = coded.codes[:, 0].astype(np.int64)
    return Values(texts=labels, numbers=numbers, of_person=np.where(rows >= 0, of_row[rows], -1))


def _days(labels: list[str], source: Source, name: str) -> list[str]:
    """Labels of a column of dates as releases have them, ISO days; other labels as they are."""
    try:
        form = date_form([label for label in labels if label != MISSING], source, name)
    except InputError:  # no release generalised dates that can be read in two ways
        form = None
    return labels if form is None else [iso_day(label, form) or label for label in labels]


def _numbers(texts: Sequence[str | None]) -> Floats:
    values = []
    for text in texts:
        try:
            values.append(float(text) if text is not None else np.nan)
        except ValueError:
            values.append(np.nan)
    return np.array(values, np.float64)


def as_texts(column: pa.ChunkedArray) -> pa.Array:
    """A column as it is compared: numbers as numbers are written."""
    cast = pc.cast(typed(column), pa.string())
    return pa.chunked_array(cast.chunks, pa.string()).combine_chunks()
