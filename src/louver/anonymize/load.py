"""From the source to coded records: one codebook for the whole file, and all records in memory.

The codebook lists the distinct values of every column once. Records are stored as numbers of these values, whether they are all in memory
or cut into parts (`louver.anonymize.parts`), so codes and losses mean the same everywhere.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import floor

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from louver._arrays import Floats, Ints
from louver.anonymize.coding import (
    attribute_of,
    codes_of,
    declared_missing,
    public_labels,
    quasi_identifier,
    sensitive_of,
)
from louver.anonymize.columns import QuasiColumn, Sensitive, given_values, of_rows
from louver.anonymize.options import AnonymizeOptions
from louver.anonymize.problem import AnonymizeProblem, RecordUnits
from louver.anonymize.roles import NumberCoding, check_roles
from louver.data.coded import CodedColumn, read_coded
from louver.data.coding import find_row, number_sql, text_sql
from louver.data.read import Source, open_source, quoted
from louver.data.tabulate import Records, coded_batches, read_codes, read_values
from louver.data.units import find_unit_column
from louver.errors import InputError
from louver.run import Run
from louver.schema.attribute import Attribute, Kind
from louver.schema.spec import Schema

__all__ = ["Codebook", "HeldFile", "check_columns", "coded_records", "load", "read_codebook", "weights_of"]

MAX_PEOPLE = 2**40
"""Upper limit on the people that a row of a population represents."""

WEIGHT = "\0weight"
"""Name of the column of sampling weights in the batches of records; no file has a column with this name."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Codebook:
    """The quasi-identifiers, then the sensitive columns with requirements, by their distinct values. Confidential.

    Attributes
    ----------
    read : tuple of Attribute
        How the columns are coded when they are read; every label is listed.
    attributes : tuple of Attribute
        The quasi-identifiers as they are generalised, after recodes; numbers have no labels.
    columns : tuple of QuasiColumn
        The quasi-identifiers over their distinct values, followed by the rows of the population.
    sensitive : tuple of Sensitive
        The sensitive columns with requirements, over their distinct values.
    counts : tuple of int64 (values,)
        Records that have each value.
    found_by : tuple of arrays
        Number of the value that a code represents; for columns of numbers the ascending numbers themselves.
    public : mapping of str to frozenset of str
        Labels of a quasi-identifier that are publicly known to exist: from the schema, a hierarchy or the population.
    n_records : int
    missing_code : mapping of str to sequence of str
        Values of a column that stand for missing.
    given : mapping of str to ChunkedArray
        The distinct values of each quasi-identifier as in the source.
    population : int64 (p,) or None
        How many people each row of the population stands for.
    """

    read: tuple[Attribute, ...]
    attributes: tuple[Attribute, ...]
    columns: tuple[QuasiColumn, ...]
    sensitive: tuple[Sensitive, ...]
    counts: tuple[Ints, ...]
    found_by: tuple[Ints | Floats, ...]
    public: Mapping[str, frozenset[str]]
    n_records: int
    missing_code: Mapping[str, Sequence[str]]
    given: Mapping[str, pa.ChunkedArray]
    population: Ints | None = None

    @property
    def schema(self) -> Schema:
        """The schema for coding further batches of the same file."""
        return Schema(attributes=self.read)

    @property
    def value_columns(self) -> list[QuasiColumn]:
        """The quasi-identifiers over their distinct values alone."""
        return [
            of_rows(column, np.arange(len(counts)))
            for column, counts in zip(self.columns, self.counts, strict=False)
        ]

    def values_of(self, coded: Sequence[NDArray[np.int32] | Floats]) -> list[Ints]:
        """Value numbers of some records, from their codes or numeric values."""
        return [_places(by, given) for by, given in zip(self.found_by, coded, strict=True)]

    def columns_of(self, values: Sequence[Ints]) -> list[QuasiColumn]:
        """The quasi-identifiers of some records, stacked above the population; loss is measured against the range of the whole file."""
        found = []
        for column, chosen, counts in zip(self.columns, values, self.counts, strict=False):
            n_people = 0 if self.population is None else len(self.population)
            rows = np.concatenate([chosen, len(counts) + np.arange(n_people)])
            found.append(of_rows(column, rows, len(chosen)))
        return found

    def problem(
        self,
        values: Sequence[Ints],
        options: AnonymizeOptions,
        max_suppressed: int,
        unit: CodedColumn | None = None,
    ) -> AnonymizeProblem:
        """The problem of some records, given by the numbers of their values."""
        chosen = values[len(self.columns) :]
        columns = self.columns_of(values)
        return AnonymizeProblem.build(
            columns,
            k=options.k,
            sensitive=[replace(s, codes=s.codes[v]) for s, v in zip(self.sensitive, chosen, strict=True)],
            max_suppressed=max_suppressed,
            population=self.population,
            is_k_map=options.k_map,
            units=None if unit is None else _units(unit, columns),
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class HeldFile:
    """A file in memory, and the problem made of it.

    Attributes
    ----------
    records : pyarrow.Table
        Every column as read; numbers that are published unchanged are coded as they will be published.
    values : list of int64 (n,)
        Numbers of the values of the records, by column of the codebook.
    represents : float64 (n,) or None
        How many people of the population each record stands for, if sampling weights are given.
    is_text : bool
        Whether the source has no types, so that numbers among `records` are text.
    likely_unit : CodedColumn or None
        A column that looks like household numbers but is not named as the unit.
    """

    records: pa.Table
    codebook: Codebook
    values: list[Ints]
    problem: AnonymizeProblem
    represents: Floats | None
    is_text: bool
    likely_unit: CodedColumn | None

    @property
    def column_names(self) -> list[str]:
        names: list[str] = self.records.column_names
        return names


def load(source: Source, options: AnonymizeOptions, schema: Schema | None, run: Run) -> HeldFile:
    """Read all columns, code the quasi-identifiers and the sensitive columns with requirements."""
    check_columns(source, options)
    records = source.read_all()
    if not records.num_rows:
        raise InputError(f"{source.name} has no records.", file=source.name)
    records = NumberCoding.of(source, options, records.column_names, records.column).apply(records)
    check_roles(source, records, options, run)
    codebook = read_codebook(source, options, schema, run)
    parts = list(coded_records(source, codebook, options, {}))
    values = [np.concatenate(found) for found in zip(*(values for values, _ in parts), strict=True)]
    unit = None if options.unit is None else _read_unit(source, options.unit, options.k, run)
    return HeldFile(
        records=records,
        codebook=codebook,
        values=values,
        problem=codebook.problem(values, options, floor(options.suppress * records.num_rows), unit),
        represents=np.concatenate([weights_of(others) for _, others in parts])
        if options.sampling_weight is not None
        else None,
        is_text=source.is_text,
        likely_unit=None if options.unit is not None else find_unit_column(source, options.quasi, run),
    )


def check_columns(source: Source, options: AnonymizeOptions) -> None:
    """Refuse columns that the data do not have."""
    single = (name for name in (options.unit, options.sampling_weight) if name is not None)
    for name in (*options.quasi, *options.identifying, *options.sensitive, *options.keep, *single):
        source.check_column(name)


def read_codebook(source: Source, options: AnonymizeOptions, schema: Schema | None, run: Run) -> Codebook:
    """Collect the distinct values of every column."""
    limited = options.sensitive if options.l is not None or options.t is not None else ()
    names = (*options.quasi, *options.sensitive)
    given_attributes, read, values, counts, found_by, given = [], [], [], [], [], {}
    for number, name in enumerate(names):
        run.report("counting", number, len(names))
        table = pa.Table.from_batches(
            list(source.batches(f"SELECT DISTINCT {quoted(name)} FROM records ORDER BY 1"))
        )
        attribute = attribute_of(source, table.column(0), name, options, schema)
        if name in options.quasi:
            given[name] = table.column(0)
        elif name not in limited and not attribute.labels:
            continue
        records, count, by = _occurring(*read_values(source, name, Schema(attributes=(attribute,))))
        if name in options.quasi or name in limited:
            given_attributes.append(attribute)
            read.append(records.attributes[0] if records.attributes else attribute)
            values.append(records)
            counts.append(count)
            found_by.append(by)
    _check_weights(source, options)
    recodes = {recode.attribute: recode for recode in options.recodes()}
    m = len(options.quasi)
    people = _population(given_attributes[:m], options, source.run)
    quasi = [
        quasi_identifier(name, given_attributes, records, people, options, recodes.get(name))
        for name, records in zip(options.quasi, values[:m], strict=True)
    ]
    required = [
        sensitive_of(records.attributes[0], codes_of(records, name), options)
        for name, records in zip(limited, values[m:], strict=True)
    ]
    return Codebook(
        read=tuple(read),
        attributes=tuple(attribute for attribute, _ in quasi),
        columns=tuple(column for _, column in quasi),
        sensitive=tuple(limits for _, limits in required),
        counts=tuple(counts),
        found_by=tuple(found_by),
        public={
            a.name: public_labels(a, schema, options, _labels(people, a.name)) for a in given_attributes[:m]
        },
        n_records=int(counts[0].sum()),
        missing_code=declared_missing(source, options),
        given=given,
        population=None if people is None else people[1],
    )


def coded_records(
    source: Source, codebook: Codebook, options: AnonymizeOptions, also: Mapping[str, str]
) -> Iterator[tuple[list[Ints], pa.RecordBatch]]:
    """All records in batches: the numbers of their values, and additional columns by SQL, including the sampling weight."""
    if options.sampling_weight is not None:
        also = {**also, WEIGHT: number_sql(text_sql(source, options.sampling_weight), Kind.NUMBER)}
    for coded, others in coded_batches(source, codebook.schema, also):
        yield codebook.values_of(coded), others


def weights_of(others: pa.RecordBatch) -> Floats:
    """Sampling weights of a batch of `coded_records`."""
    return np.asarray(np.from_dlpack(others.column(WEIGHT)), np.float64)


def _occurring(records: Records, counts: Ints) -> tuple[Records, Ints, Ints | Floats]:
    """One record for each value that occurs, in the order of the codes, the number of records with it, and its look-up table."""
    for numbers in records.numbers.values():
        return records, counts, numbers
    attribute, codes = records.attributes[0], records.codes[:, 0]
    total = np.bincount(codes, counts, minlength=attribute.size).astype(np.int64)
    occurring = np.flatnonzero(total)
    by = np.full(attribute.size, -1, np.int64)
    by[occurring] = np.arange(len(occurring))
    kept = replace(records, codes=occurring.astype(np.int32)[:, None])
    return kept, total[occurring], by


def _places(by: Ints | Floats, given: NDArray[np.int32] | Floats) -> Ints:
    if np.issubdtype(by.dtype, np.floating):
        return np.searchsorted(by, given)
    return np.asarray(by[given.astype(np.int64)], np.int64)


def _population(
    attributes: Sequence[Attribute], options: AnonymizeOptions, run: Run
) -> tuple[Records, Ints] | None:
    """The population, coded like the records, and how many people each of its rows stands for."""
    if options.population is None:
        return None
    count = options.population_count
    # Labels that occur only in the population are added later; its dates may fall in other years, so one calendar covers both.
    read = [replace(a, labels=(), hierarchy=None) if a.kind is Kind.DATE else a for a in attributes]
    listed = [*read, *([Attribute(name=count, kind=Kind.NUMBER)] if count is not None else [])]
    with open_source(options.population, run=run) as source:
        for attribute in listed:
            source.check_column(attribute.name)
        records = read_codes(source, [a.name for a in listed], Schema(attributes=tuple(listed)))
        if count is None:
            return records, np.ones(records.n_rows, np.int64)
        counts = records.numbers[count]
        bad = ~((counts >= 0) & (counts == np.floor(counts)) & (counts < MAX_PEOPLE))
        if bad.any():
            row = source.row_of(int(np.argmax(bad)) + 1)
            raise _bad_row(source, count, row, "the number of people must be a whole number")
    return records, counts.astype(np.int64)


def _labels(people: tuple[Records, Ints] | None, name: str) -> frozenset[str]:
    """Labels of a column in the population."""
    attributes = () if people is None else people[0].attributes
    return frozenset(label for a in attributes if a.name == name for label in a.labels)


def _check_weights(source: Source, options: AnonymizeOptions) -> None:
    """Refuse sampling weights below 1."""
    name = options.sampling_weight
    if name is None:
        return
    value = number_sql(text_sql(source, name), Kind.NUMBER)
    is_bad = f"({value}) IS NULL OR ({value}) < 1"
    if source.first_row(f"SELECT 1 FROM records WHERE {is_bad} LIMIT 1") is not None:
        raise _bad_row(
            source, name, find_row(source, is_bad), "the sampling weight must be a number of at least 1"
        )


def _read_unit(source: Source, name: str, k: int, run: Run) -> CodedColumn:
    """The column of units, in which no value may be missing."""
    (column,) = read_coded(source, [name], run)
    is_missing = column.codes == column.n_values
    if is_missing.any():
        row = source.row_of(int(np.argmax(is_missing)) + 1)
        raise _bad_row(source, name, row, "the number of the unit is missing")
    if column.n_values < k:
        raise InputError(
            f'column "{name}" has fewer than k = {k} different units; choose a smaller -k.',
            option="--unit",
            column=name,
        )
    return column


def _units(unit: CodedColumn, columns: Sequence[QuasiColumn]) -> RecordUnits:
    """The unit of every record, and the quasi-identifiers that are constant within each unit."""
    codes = unit.codes.astype(np.int64)
    order = np.argsort(codes, kind="stable")
    starts = np.flatnonzero(np.diff(codes[order], prepend=-1))
    shared = []
    for place, quasi in enumerate(columns):
        _, values = np.unique(given_values(quasi, order), return_inverse=True)
        is_constant = np.minimum.reduceat(values, starts) == np.maximum.reduceat(values, starts)
        shared += [place] if is_constant.all() else []
    return RecordUnits(codes=codes, n=unit.n_values, shared=tuple(shared))


def _bad_row(source: Source, column: str, row: int, problem: str) -> InputError:
    return InputError(
        f'column "{column}" in {source.name}, row {row}: {problem}; correct it.',
        file=source.name,
        column=column,
        row=row,
    )
