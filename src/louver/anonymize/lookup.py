"""An attacker's knowledge about every person at the time of a release: the values by which that person is looked up.

Values change between two releases: people have birthdays and move. To find a person in a release, one needs the values at the time it was
made. For a release made from the current records, these contain the values; an earlier release needs its own records, and a key that links
records of the same person (`--earlier`, `--link`).
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
from louver.anonymize.coding import MISSING
from louver.anonymize.columns import given_values
from louver.anonymize.load import HeldFile
from louver.anonymize.options import NUMBER_CODES, AnonymizeOptions
from louver.anonymize.roles import NumberCoding
from louver.data.coded import CodedColumn, read_coded, typed
from louver.data.coding import date_form, iso_day
from louver.data.read import Source, open_source
from louver.data.tabulate import read_codes
from louver.errors import InputError
from louver.run import Run
from louver.schema.attribute import Attribute
from louver.schema.spec import Schema

__all__ = ["Coding", "KnownPeople", "KnownValues", "as_texts", "known_now", "known_then", "person_keys"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class KnownValues:
    """The distinct values of a column, as text and as numbers, and the value of each person; a missing value is neither text nor number."""

    texts: Sequence[str | None]
    numbers: Floats
    of_person: Ints


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class KnownPeople:
    """Knowledge about the people in the new release at the time of an earlier one.

    Attributes
    ----------
    values : mapping of str to Values
        Columns that some release generalises.
    records : pyarrow.Table
        The record of each person at that time, with numbers coded as they were published; nulls for people who were not among the records.
    rows : int64 (people,)
        The row of each person among the records of that time; -1 for people who were not among them.
    """

    values: Mapping[str, KnownValues]
    records: pa.Table
    rows: Ints

    @property
    def is_present(self) -> Bools:
        present: Bools = self.rows >= 0
        return present


@dataclass(frozen=True, slots=True, kw_only=True)
class Coding:
    """How a release was made from its records, according to its manifest.

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


def known_now(source: Source, file: HeldFile, names: Sequence[str]) -> KnownPeople:
    """The present values: the quasi-identifiers, and the other named columns."""
    rows = np.arange(file.records.num_rows)
    values: dict[str, KnownValues] = {}
    for attribute, column in zip(file.codebook.attributes, file.problem.columns, strict=True):
        distinct, of_person = np.unique(given_values(column, rows), return_inverse=True)
        texts: list[str | None] = [None] * len(distinct)
        if attribute.labels:
            texts = [None if np.isnan(d) else attribute.labels[int(d)] for d in distinct]
            distinct = _numbers(texts)
        values[attribute.name] = KnownValues(texts=texts, numbers=distinct, of_person=of_person)
    for name in dict.fromkeys(names):
        if name not in values:
            values[name] = _read(source, name, rows)
    return KnownPeople(values=values, records=file.records, rows=rows)


def person_keys(source: Source, link: str, run: Run) -> pa.Array:
    """The key of each person, as text.

    Raises
    ------
    InputError
        If a record has no key, or two records share one.
    """
    source.check_column(link)
    (column,) = read_coded(source, [link], run)
    is_repeated = np.append(column.counts > 1, False)[column.codes]
    for bad, problem in (
        (column.codes == column.n_values, "has no value"),
        (is_repeated, "repeats a value"),
    ):
        if bad.any():
            row = source.row_of(int(np.argmax(bad)) + 1)
            raise InputError(
                f'option --link: column "{link}" in {source.name} {problem} on row {row}; name a column with one key for each person.',
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
) -> KnownPeople:
    """The values in the records that an earlier release was made from, in the order of the current people.

    Parameters
    ----------
    opening : mapping
        How the file is read.
    keys : StringArray (people,)
        Keys of the current people.
    names : sequence of str
        Columns that some release generalises; those that the file does not have are left out.
    """
    with open_source(str(file), **opening, missing_code=coding.missing_code, run=run) as source:
        then = person_keys(source, link, run)
        found = pc.index_in(keys, value_set=then)
        if found.null_count == len(found):
            raise InputError(
                f'option --link: {source.name} has no person in common with the data by column "{link}"; name the key of a person.',
                file=source.name,
                column=link,
                option="--link",
            )
        rows = np.asarray(found.fill_null(-1).to_numpy(zero_copy_only=False), np.int64)
        coded = AnonymizeOptions.model_construct(**coding.number_codes)
        records = source.read_all()
        records = NumberCoding.of(source, coded, records.column_names, records.column).apply(records)
        values = {
            name: _read(source, name, rows) for name in dict.fromkeys(names) if name in records.column_names
        }
    return KnownPeople(values=values, records=records.take(found), rows=rows)


def _as_text(column: CodedColumn) -> pa.Array:
    return column.values.take(pa.array(column.codes))


def _read(source: Source, name: str, rows: Ints) -> KnownValues:
    """A column as categories, in the order of the people; -1 for those whose row is -1."""
    coded = read_codes(source, [name], Schema(attributes=(Attribute(name=name, missing=MISSING),)))
    labels = _days(list(coded.attributes[0].labels), source, name)
    numbers = _numbers([None if label == MISSING else label for label in labels])
    of_row = coded.codes[:, 0].astype(np.int64)
    return KnownValues(texts=labels, numbers=numbers, of_person=np.where(rows >= 0, of_row[rows], -1))


def _days(labels: list[str], source: Source, name: str) -> list[str]:
    """Labels of a date column as releases write them, as ISO dates; other labels unchanged."""
    try:
        form = date_form([label for label in labels if label != MISSING], source, name)
    except InputError:  # no release generalises ambiguous dates
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
    """A column as text for comparison, its numbers in one notation."""
    cast = pc.cast(typed(column), pa.string())
    return pa.chunked_array(cast.chunks, pa.string()).combine_chunks()
