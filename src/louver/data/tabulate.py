"""Tabulation: from records to a histogram, at once or in parts, to coded records, and to small tables of text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from louver._arrays import Floats, Ints
from louver.data.coding import Coder, find_row, number_sql, text_sql
from louver.data.counting import Wide, attribute_of, check_weight, coder_of, counted_rows
from louver.data.histogram import Histogram
from louver.data.read import Source
from louver.errors import InputError
from louver.schema.attribute import Attribute, Kind
from louver.schema.hierarchy import Hierarchy
from louver.schema.recode import Recode

if TYPE_CHECKING:
    from louver.schema.spec import Schema

__all__ = [
    "Records",
    "coded_batches",
    "read_codes",
    "read_labelled_text",
    "read_text",
    "read_values",
    "tabulate",
    "tabulate_in_parts",
]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Records:
    """Microdata, coded: one row per record. It belongs on the confidential side of the wall.

    Parameters
    ----------
    attributes : tuple of Attribute
        The d coded columns.
    codes : ndarray of int32, shape (n, d)
        Codes, each column contiguous; read-only.
    numbers : mapping of str to ndarray of float64, shape (n,)
        Columns of kind integer or number that list no labels; NaN where a value is missing.
    """

    attributes: tuple[Attribute, ...]
    codes: NDArray[np.int32]
    numbers: Mapping[str, Floats]

    @property
    def n_rows(self) -> int:
        """Number of records."""
        return len(self.codes)


def tabulate(
    source: Source,
    names: Sequence[str],
    *,
    weight: str | None = None,
    wide: Mapping[str, Mapping[str, str]] | None = None,
    schema: Schema | None = None,
) -> Histogram:
    """Count the records of a source by some of its columns.

    Parameters
    ----------
    source : Source
        Open records.
    names : sequence of str
        Columns to count by; they become the attributes, in this order.
    weight : str, optional
        Column that holds the count of each row.
    wide : mapping, optional
        Column of counts -> {attribute: label} of the cell that it counts. The attributes named there are not
        columns of the data.
    schema : Schema, optional
        Domains, recodes and structural zeros. Without it, or for an attribute without labels, the labels
        are those that occur, in numeric order if all are numbers and as text otherwise; a verb that
        spends budget must not rely on that.

    Returns
    -------
    Histogram

    Raises
    ------
    InputError
        On a missing value without a label for it, a value outside the domain, a count that is negative,
        fractional or too large, or a record in a structural zero; names column and row, never the value.

    Notes
    -----
    **Cost**: one pass over the data; memory for the cells that occur.
    """
    counting = _Counting.of(source, names, weight, wide or {}, schema)
    parts = list(counted_rows(source, counting.coders, counting.columns, is_grouped=True))
    codes, counts = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
    finished = [coder.finish() for coder in counting.coders]
    for axis, (_, mapping) in enumerate(finished):
        if mapping is not None:
            codes[:, axis] = mapping[codes[:, axis]]
    attributes = counting.attributes([attribute for attribute, _ in finished])
    return counting.histogram(codes, counts, attributes)


def tabulate_in_parts(
    source: Source,
    names: Sequence[str],
    *,
    weight: str | None = None,
    wide: Mapping[str, Mapping[str, str]] | None = None,
    schema: Schema,
) -> Iterator[Histogram]:
    """Count the records in batches, in their order: histograms that add up to the one of `tabulate`.

    Parameters and errors are those of `tabulate`; every attribute lists its labels.

    Notes
    -----
    **Cost**: one pass over the data; memory for one batch.
    """
    counting = _Counting.of(source, names, weight, wide or {}, schema)
    attributes = counting.attributes([coder.attribute for coder in counting.coders])
    for codes, counts in counted_rows(source, counting.coders, counting.columns, is_grouped=False):
        yield counting.histogram(codes, counts, attributes)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Counting:
    """The plan of a count: columns that are coded, columns of counts, and the schema."""

    source: Source
    names: tuple[str, ...]
    coders: tuple[Coder, ...]
    columns: tuple[str, ...]
    layout: Wide
    schema: Schema | None

    @classmethod
    def of(
        cls,
        source: Source,
        names: Sequence[str],
        weight: str | None,
        wide: Mapping[str, Mapping[str, str]],
        schema: Schema | None,
    ) -> _Counting:
        _check_names(names)
        if weight is not None and wide:
            raise InputError("a source has either a weight column or wide columns; give one of them.")
        if weight in names:
            raise InputError(f'column "{weight}" cannot be both weight and attribute.', column=weight)
        if weight is not None:
            check_weight(source, weight)
        layout = Wide.build(wide, schema)
        return cls(
            source=source,
            names=tuple(names),
            coders=tuple(coder_of(source, name, schema) for name in names if name not in layout.names),
            columns=layout.columns or (() if weight is None else (weight,)),
            layout=layout,
            schema=schema,
        )

    def attributes(self, coded: Sequence[Attribute]) -> tuple[Attribute, ...]:
        """The attributes to count by, in the order of the names, given those of the coders."""
        found = {one.name: _with_hierarchy(self.source, one, self.schema) for one in coded}
        found.update((attribute.name, attribute) for attribute in self.layout.attributes)
        return tuple(found[name] for name in self.names)

    def histogram(self, codes: Ints, counts: Ints, attributes: Sequence[Attribute]) -> Histogram:
        """Rows of codes and counts added up, recoded, and checked for structural zeros."""
        cells, flat_counts = self.layout.unpivot(codes, counts)
        columns = [*(coder.attribute.name for coder in self.coders), *self.layout.names]
        if columns != list(self.names):
            cells = cells[:, [columns.index(name) for name in self.names]]
        histogram = Histogram.from_codes(attributes, cells, flat_counts)
        recodes = _late_recodes(self.names, self.schema)
        histogram = histogram.recode(*recodes) if recodes else histogram
        _check_structural_zeros(self.source, histogram, self.schema)
        return histogram


def read_codes(source: Source, names: Sequence[str], schema: Schema | None = None) -> Records:
    """Read columns of microdata as codes, and unlisted integers and numbers unchanged.

    Parameters
    ----------
    source : Source
        Open records.
    names : sequence of str
        Columns to read.
    schema : Schema, optional
        Domains and recodes; see `tabulate` for attributes without labels.

    Notes
    -----
    **Cost**: one pass; 4 bytes per coded value and 8 per number, plus one column while they are assembled.
    """
    plan = _Plan.of(source, names, schema)
    chunks: list[list[NDArray[np.int32]]] = [[] for _ in plan.coders]
    number_chunks: list[list[Floats]] = [[] for _ in plan.numeric]
    for batch in source.batches(f"SELECT {plan.fields} FROM records"):
        codes, found = plan.encode(batch)
        for kept, new in zip(chunks, codes, strict=True):
            kept.append(new)
        for kept_numbers, numbers in zip(number_chunks, found, strict=True):
            kept_numbers.append(numbers)
    return _joined(plan, chunks, number_chunks, schema)


def read_values(source: Source, name: str, schema: Schema | None = None) -> tuple[Records, Ints]:
    """The distinct values of one column as records, ascending if they are numbers, with the number of records of each.

    Notes
    -----
    **Cost**: one pass; memory for the distinct values.
    """
    plan = _Plan.of(source, [name], schema)
    codes: list[NDArray[np.int32]] = []
    numbers: list[Floats] = []
    counts: list[Ints] = []
    for batch in source.batches(
        f"SELECT {plan.fields} AS v, count(*) AS n FROM records GROUP BY v ORDER BY v"
    ):
        coded, found = plan.encode(batch)
        codes += coded
        numbers += found
        counts.append(np.asarray(np.from_dlpack(batch.column(1)), dtype=np.int64))
    records = _joined(plan, [codes] if plan.coders else [], [numbers] if plan.numeric else [], schema)
    return records, np.concatenate(counts)


def coded_batches(
    source: Source, schema: Schema, also: Mapping[str, str]
) -> Iterator[tuple[list[NDArray[np.int32] | Floats], pa.RecordBatch]]:
    """All records in batches, in the order of the source: the attributes of a schema, coded, and further columns.

    Parameters
    ----------
    schema : Schema
        With every label that occurs, as found by `read_values`.
    also : mapping of str to str
        Name of a further column -> its SQL.
    """
    plan = _Plan.of(source, list(schema.names), schema)
    place = {a.name: i for i, a in enumerate([*(c.attribute for c in plan.coders), *plan.numeric])}
    fields = ", ".join([plan.fields, *also.values()])
    for batch in source.batches(f"SELECT {fields} FROM records"):
        codes, numbers = plan.encode(batch)
        columns: list[NDArray[np.int32] | Floats] = [*codes, *numbers]
        others = pa.RecordBatch.from_arrays(batch.columns[len(columns) :], names=list(also))
        yield [columns[place[name]] for name in schema.names], others


@dataclass(frozen=True, slots=True, kw_only=True)
class _Plan:
    """The way columns are read: labels by coders, numbers unchanged; SQL for all of them, coders first."""

    source: Source
    coders: tuple[Coder, ...]
    numeric: tuple[Attribute, ...]
    texts: Mapping[str, str]

    @classmethod
    def of(cls, source: Source, names: Sequence[str], schema: Schema | None) -> _Plan:
        _check_names(names)
        coders, numeric = [], []
        for name in names:
            attribute, recode = attribute_of(name, schema)
            is_number = attribute.kind in (Kind.INTEGER, Kind.NUMBER)
            if is_number and not attribute.labels and recode is None:
                numeric.append(attribute)
            else:
                coders.append(coder_of(source, name, schema))
        texts = {attribute.name: text_sql(source, attribute.name) for attribute in numeric}
        return cls(source=source, coders=tuple(coders), numeric=tuple(numeric), texts=texts)

    @property
    def fields(self) -> str:
        """SQL for the columns, coders first."""
        values = [
            f"coalesce({number_sql(self.texts[a.name], a.kind)}, CAST('nan' AS DOUBLE))" for a in self.numeric
        ]
        return ", ".join([*(coder.sql for coder in self.coders), *values])

    def encode(self, batch: pa.RecordBatch) -> tuple[list[NDArray[np.int32]], list[Floats]]:
        """Codes and numbers of a batch."""
        n = len(self.coders)
        codes = [coder.encode(batch.column(axis)).astype(np.int32) for axis, coder in enumerate(self.coders)]
        columns = (batch.column(axis) for axis in range(n, n + len(self.numeric)))
        return codes, [np.asarray(np.from_dlpack(column), dtype=np.float64) for column in columns]


def _joined(
    plan: _Plan, chunks: list[list[NDArray[np.int32]]], numbers: list[list[Floats]], schema: Schema | None
) -> Records:
    """All batches together, checked."""
    for coder in plan.coders:
        coder.check(plan.source)
    joined = {a.name: np.concatenate(kept) for a, kept in zip(plan.numeric, numbers, strict=True)}
    for attribute in plan.numeric:
        _check_numbers(plan.source, attribute, plan.texts[attribute.name], joined[attribute.name])
    return _assemble(plan.source, plan.coders, chunks, joined, schema)


def _check_names(names: Sequence[str]) -> None:
    if len(set(names)) < len(names):
        raise InputError("a column is named twice; name each column once.")


def _late_recodes(names: Sequence[str], schema: Schema | None) -> list[Recode]:
    """Recodes that are applied to codes: all but bins."""
    found = [attribute_of(name, schema)[1] for name in names]
    return [recode for recode in found if recode is not None and recode.bins is None]


def _with_hierarchy(source: Source, attribute: Attribute, schema: Schema | None) -> Attribute:
    """Add the hierarchy that follows from labels or columns of the data."""
    rule = schema.hierarchy_rules.get(attribute.name) if schema is not None else None
    if rule is None:
        return attribute
    missing = attribute.missing
    known = [label for label in attribute.labels if label != missing]
    if rule.is_calendar:
        hierarchy = Hierarchy.from_dates(known, source=f'"{attribute.name}"')
    elif rule.prefixes:
        hierarchy = Hierarchy.from_prefixes(known, rule.prefixes, source=f'"{attribute.name}"')
    else:
        above = [column for column in rule.columns if column != attribute.name]
        hierarchy = _level_columns(source, [attribute.name, *reversed(above)])
    if missing is not None and attribute.has_label(missing) and not hierarchy.has_leaf(missing):
        hierarchy = hierarchy.with_leaf(missing)
    return replace(attribute, hierarchy=hierarchy)


def _level_columns(source: Source, columns: Sequence[str]) -> Hierarchy:
    """Hierarchy from the combinations of region columns that occur, most specific column first."""
    texts = [text_sql(source, column) for column in columns]
    fields = ", ".join(texts)
    known = f"({texts[0]}) IS NOT NULL"
    levels: list[list[str]] = [[] for _ in columns]
    for batch in source.batches(f"SELECT DISTINCT {fields} FROM records WHERE {known} ORDER BY ALL"):
        for level, array in enumerate(batch.columns):
            levels[level].extend(array.to_pylist())
    for level, labels in enumerate(levels):
        if None in labels:
            row = find_row(source, f"{known} AND ({texts[level]}) IS NULL")
            message = f'column "{columns[level]}" in {source.name} has no value on row {row}; complete it.'
            raise InputError(message, file=source.name, column=columns[level], row=row)
    return Hierarchy.from_levels(levels, source=f'the hierarchy of "{columns[0]}"')


def _check_structural_zeros(source: Source, histogram: Histogram, schema: Schema | None) -> None:
    if schema is not None and schema.is_structural_zero(histogram.codes, histogram.attributes).any():
        message = f"{source.name} has records in a structural zero; correct the data or schema."
        raise InputError(message, file=source.name)


def _check_numbers(source: Source, attribute: Attribute, text: str, values: Floats) -> None:
    """Refuse values that are not numbers, and missing values if they are not allowed, and name the first row."""
    if not np.isnan(values).any():
        return
    valid = number_sql(text, attribute.kind)
    allowed = "" if attribute.missing is None else f"({text}) IS NOT NULL AND "
    condition = f"{allowed}({valid}) IS NULL"
    if source.first_row(f"SELECT 1 FROM records WHERE {condition} LIMIT 1") is None:
        return
    row = find_row(source, condition)
    expected = "whole number" if attribute.kind is Kind.INTEGER else "number"
    message = (
        f'column "{attribute.name}" in {source.name} has no {expected} on row {row}; correct or drop it.'
    )
    raise InputError(message, file=source.name, column=attribute.name, row=row)


def _assemble(
    source: Source,
    coders: Sequence[Coder],
    chunks: list[list[NDArray[np.int32]]],
    numbers: Mapping[str, Floats],
    schema: Schema | None,
) -> Records:
    """Put the columns together, releasing the batches of each once it is done."""
    n_rows = sum(map(len, chunks[0])) if chunks else len(next(iter(numbers.values()), ()))
    codes = np.empty((n_rows, len(coders)), dtype=np.int32, order="F")
    attributes = []
    for axis, coder in enumerate(coders):
        attribute, mapping = coder.finish()
        attribute = _with_hierarchy(source, attribute, schema)
        np.concatenate(chunks[axis], out=codes[:, axis])
        chunks[axis].clear()
        if mapping is not None:
            codes[:, axis] = mapping[codes[:, axis]]
        for recode in _late_recodes([attribute.name], schema):
            attribute, mapping = attribute.recoded(recode)
            codes[:, axis] = mapping[codes[:, axis]]
        attributes.append(attribute)
    codes.flags.writeable = False
    for values in numbers.values():
        values.flags.writeable = False
    return Records(attributes=tuple(attributes), codes=codes, numbers=numbers)


def read_text(source: Source, columns: Sequence[str]) -> list[tuple[str | None, ...]]:
    """Rows of some columns as text, None if a value is missing."""
    fields = ", ".join(text_sql(source, column) for column in columns)
    rows: list[tuple[str | None, ...]] = []
    for batch in source.batches(f"SELECT {fields} FROM records"):
        rows.extend(zip(*(column.to_pylist() for column in batch.columns), strict=True))
    return rows


def read_labelled_text(
    source: Source, names: Sequence[str], values: Sequence[str], schema: Schema | None = None
) -> tuple[Records, list[tuple[str | None, ...]]]:
    """Codes of the columns `names`, and the text of the columns `values`, row by row."""
    labelled = None if schema is None else _labelled(schema)
    return read_codes(source, names, labelled), read_text(source, values)


def _labelled(schema: Schema) -> Schema:
    """The schema with its unlisted numbers as categories: each number that occurs is a label."""
    recoded = {recode.attribute for recode in schema.recodes}
    attributes = [
        attribute if attribute.labels or attribute.name in recoded else replace(attribute, kind=Kind.CATEGORY)
        for attribute in schema.attributes
    ]
    return replace(schema, attributes=tuple(attributes))
