"""Counts from records: each row counts as one, or a column holds its count (weight), or there is one column of counts per cell (wide).

`--weight` names a column with the number of people that a row stands for. A column of incomes also contains whole numbers, but an audit of
euros says nothing about people. A sampling weight is the number of people that a record represents, not the number of people counted.
Columns that look like either are refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from louver._arrays import Ints
from louver.data.coding import Coder, binned_sql, date_sql, find_row, text_sql
from louver.data.kinds import is_named_like_money, is_named_like_weight
from louver.data.read import RECORDS, SAMPLE, SAMPLE_ROWS, Source, quoted
from louver.errors import InputError
from louver.schema.attribute import Attribute, Kind
from louver.schema.recode import Recode

if TYPE_CHECKING:
    from louver.schema.spec import Schema

__all__ = ["Wide", "attribute_of", "check_weight", "coder_of", "counted_rows"]

COUNT_PROBLEMS = {
    "missing": "has no value on row {row}; every row needs a count",
    "text": "is not a number on row {row}; counts are whole numbers",
    "negative": "is negative on row {row}; counts are zero or more",
    "fraction": "has a fraction on row {row}; counts are whole numbers",
    "large": "has a number too large for a count on row {row}; check the column",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Wide:
    """Columns of counts, and the cell that each of them counts."""

    columns: tuple[str, ...]
    attributes: tuple[Attribute, ...]
    cells: Ints  # (columns, attributes)

    @classmethod
    def build(cls, wide: Mapping[str, Mapping[str, str]], schema: Schema | None) -> Wide:
        first = next(iter(wide.values()), {})
        attributes = []
        for name in first:
            attribute, recode = attribute_of(name, schema)
            if recode is not None and recode.bins is not None:
                attribute = attribute.recoded(recode)[0]
            if not attribute.labels:
                labels = dict.fromkeys(cell[name] for cell in wide.values() if name in cell)
                attribute = replace(attribute, kind=Kind.CATEGORY, labels=tuple(labels), missing=None)
            attributes.append(attribute)
        cells = np.empty((len(wide), len(attributes)), dtype=np.int64)
        for number, (column, cell) in enumerate(wide.items()):
            if set(cell) != set(first) or not cell:
                message = f'the wide column "{column}" must have the same attributes as the first one.'
                raise InputError(message, column=column)
            for axis, attribute in enumerate(attributes):
                if not attribute.has_label(cell[attribute.name]):
                    message = (
                        f'the wide column "{column}" names a label that "{attribute.name}" does not have.'
                    )
                    raise InputError(message, column=column)
                cells[number, axis] = attribute.code_of(cell[attribute.name])
        if len(np.unique(cells, axis=0)) < len(cells):
            raise InputError("two wide columns count the same cell; give each cell one column.")
        return cls(columns=tuple(wide), attributes=tuple(attributes), cells=cells)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(attribute.name for attribute in self.attributes)

    def unpivot(self, codes: Ints, counts: Ints) -> tuple[Ints, Ints]:
        """One row per group and count column; without wide columns nothing changes."""
        if not self.columns:
            return codes, counts[:, 0]
        repeated = np.repeat(codes, len(self.columns), axis=0)
        return np.hstack([repeated, np.tile(self.cells, (len(codes), 1))]), counts.ravel()


def attribute_of(name: str, schema: Schema | None) -> tuple[Attribute, Recode | None]:
    """A column as described by the schema: its domain as read, and its recode."""
    if schema is None or name not in schema.names:
        return Attribute(name=name), None
    return schema.attribute(name), schema.recode_of(name)


def coder_of(source: Source, name: str, schema: Schema | None) -> Coder:
    """A coder for the column; numbers with bins are cut in SQL, before they are grouped."""
    attribute, recode = attribute_of(name, schema)
    text = text_sql(source, name)
    if attribute.kind is Kind.DATE:
        return Coder(attribute=attribute, sql=date_sql(source, name, text))
    if recode is not None and recode.bins is not None:
        return Coder(attribute=attribute.recoded(recode)[0], sql=binned_sql(text, attribute, recode))
    return Coder(attribute=attribute, sql=text)


def counted_rows(
    source: Source, coders: Sequence[Coder], columns: Sequence[str], *, is_grouped: bool
) -> Iterator[tuple[Ints, Ints]]:
    """Codes (rows, coders) and counts (rows, columns of counts) of all records, a batch at a time.

    Parameters
    ----------
    is_grouped : bool
        Whether equal records become one row, by one GROUP BY, which keeps the distinct ones in memory or spills them. Otherwise records are
        returned unchanged, in their original order, and reading stops at the first fault.
    """
    keys = [coder.sql for coder in coders]
    weights = [_weight_sql(text_sql(source, column)) for column in columns]
    count_sql, plain = (_sum_sql, "count(*), 0") if is_grouped else (_row_sql, "1, 0")
    fields = [*keys, *(map(count_sql, weights) if weights else [plain])]
    grouping = "GROUP BY " + ", ".join(map(str, range(1, len(keys) + 1))) if is_grouped and keys else ""
    faulty: set[int] = set()
    is_large = False
    for batch in source.batches(f"SELECT {', '.join(fields)} FROM records {grouping}"):
        measures = batch.columns[len(coders) :]
        codes = _stack([c.encode(array) for c, array in zip(coders, batch.columns, strict=False)], batch)
        counts = _stack([_sums(array) for array in measures[::2]], batch)
        faulty.update(axis for axis, bad in enumerate(measures[1::2]) if np.from_dlpack(bad).any())
        if not is_grouped and (faulty or (codes < 0).any()):
            break
        is_large |= bool((counts < 0).any())
        yield codes, counts
    for coder in coders:
        coder.check(source)
    if faulty:
        raise _count_error(source, columns[min(faulty)], weights[min(faulty)])
    if is_large:
        message = f"the counts in {source.name} add up to more than 64 bits can hold."
        raise InputError(message, file=source.name)


def _sum_sql(sql: str) -> str:
    """The sum of a group, -1 where it exceeds 64 bits, and the number of rows without a valid count."""
    return f"coalesce(TRY_CAST(sum({sql}) AS BIGINT), -1), count(*) - count({sql})"


def _row_sql(sql: str) -> str:
    """The count for one row, and whether it is invalid."""
    return f"coalesce({sql}, 0), CAST(({sql}) IS NULL AS TINYINT)"


def _stack(columns: list[Ints], batch: pa.RecordBatch) -> Ints:
    """Columns side by side, even if there are none."""
    return np.column_stack(columns) if columns else np.empty((batch.num_rows, 0), dtype=np.int64)


def _sums(array: pa.Array) -> Ints:
    return np.asarray(np.from_dlpack(array), dtype=np.int64)


def _weight_sql(text: str) -> str:
    """SQL for a count, NULL where the text is not a whole number of zero or more."""
    valid = rf"regexp_full_match(trim({text}), '\+?[0-9]+(\.0*)?')"
    return f"CASE WHEN {valid} THEN TRY_CAST(regexp_extract({text}, '[0-9]+') AS BIGINT) END"


def _count_error(source: Source, column: str, sql: str) -> InputError:
    """The error message for the first invalid count."""
    row = find_row(source, f"({sql}) IS NULL")
    text = text_sql(source, column)
    value = f"TRY_CAST({text} AS DOUBLE)"
    found = source.first_row(
        f"SELECT CASE WHEN {text} IS NULL THEN 'missing' WHEN {value} IS NULL OR isnan({value}) THEN 'text'"
        f" WHEN {value} < 0 THEN 'negative' WHEN {value} <> trunc({value}) THEN 'fraction' ELSE 'large' END"
        f" AS kind FROM whole LIMIT 1 OFFSET {row - 1}"
    )
    assert found is not None
    problem = COUNT_PROBLEMS[found["kind"]].format(row=row)
    message = f'column "{column}" in {source.name} {problem}.'
    return InputError(message, file=source.name, column=column, row=row)


ROUND = 100
MOSTLY = 0.5
LARGE = 1000
FEWEST = 10
"""Counts of people are seldom multiples of 100: if most are, and half of them are 1,000 or more, they look like money. Fewer rows than
`FEWEST` are not enough to decide."""
REPEATED = 0.05
"""A table of counts has one line for each cell. Where at least this share of the lines repeats another one, but for the weight, and most
weights are more than 1, the lines look like the records of a sample."""


def check_weight(source: Source, column: str) -> None:
    """Refuse a column that looks like money or like a sampling weight, unless `--weight-is-count` says that it counts people.

    Raises
    ------
    InputError
        Names the column and what makes it suspicious.
    """
    source.check_column(column)
    if source.is_weight_count:
        return
    reason = _reason(source, column)
    if reason is None:
        return
    raise InputError(
        f'column "{column}" in {source.name} {reason}, so it may not count people; name a column of counts, leave --weight out if each '
        "row is one person, or give --weight-is-count if the column does count people.",
        file=source.name,
        column=column,
        option="weight",
    )


def _reason(source: Source, column: str) -> str | None:
    if is_named_like_money(column):
        return "is named like an amount of money"
    if is_named_like_weight(column):
        return "is named like a sampling weight"
    value = f"TRY_CAST({text_sql(source, column)} AS DOUBLE)"
    view = SAMPLE if source.is_as_stored else RECORDS
    found = source.first_row(
        f"SELECT count(*) >= {FEWEST} AND count_if(v % {ROUND} = 0) >= {MOSTLY} * count(*) AND median(v) >= {LARGE} AS is_round"
        f" FROM (SELECT {value} AS v FROM {view} LIMIT {SAMPLE_ROWS}) WHERE v > 0"
    )
    assert found is not None
    if found["is_round"]:
        return f"holds large numbers that are mostly multiples of {ROUND}, as amounts of money are"
    others = ", ".join(quoted(name) for name in source.columns if name != column)
    if not others:
        return None
    found = source.first_row(
        f"SELECT count(*) >= {FEWEST} AND median(v) > 1 AND count(*) - count(DISTINCT hash(cell)) >= {REPEATED} * count(*) AS repeats"
        f" FROM (SELECT {value} AS v, ({others},) AS cell FROM {view} LIMIT {SAMPLE_ROWS}) WHERE v > 0"
    )
    assert found is not None
    return (
        "stands on many lines that are otherwise equal, as weights of a sample do"
        if found["repeats"]
        else None
    )
