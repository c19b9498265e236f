"""Names, text, numbers, files and conditions on rows (`louver.schema.where`), written in SQL.

Nothing that a user wrote becomes SQL verbatim: names are looked up and quoted, text and numbers are written as literals.
"""

from __future__ import annotations

import glob
from pathlib import Path
from typing import TYPE_CHECKING

from louver.errors import InputError
from louver.schema.attribute import Kind
from louver.schema.where import All, Among, Column, Compare, Condition, Missing, Not, Some

if TYPE_CHECKING:
    from louver.data.read import Source

__all__ = ["file_literal", "filter_sql", "literal", "quoted", "split_table"]


def quoted(identifier: str) -> str:
    """A quoted SQL identifier."""
    return '"' + identifier.replace('"', '""') + '"'


def literal(text: str) -> str:
    """A SQL string literal."""
    return "'" + text.replace("'", "''") + "'"


def file_literal(path: Path) -> str:
    """The path of one file, written so that DuckDB interprets nothing in it as a pattern or a protocol."""
    return literal(glob.escape(str(path.absolute())))


def split_table(table: str, default_schema: str) -> tuple[str, str]:
    """Schema and name of a table."""
    schema, dot, name = table.rpartition(".")
    return (schema, name) if dot else (default_schema, table)


NUMERIC = ("DECIMAL", "DOUBLE", "FLOAT", "BIGINT", "HUGEINT", "INTEGER", "SMALLINT", "TINYINT")


def filter_sql(source: Source, view: str, condition: Condition) -> str:
    """SQL that is true for the rows that meet a condition and false for all others.

    Parameters
    ----------
    view : str
        The view in which rows that make a comparison impossible are sought.

    Raises
    ------
    InputError
        On a column that the data do not have, on a column of numbers that is compared with text, or on a column of text that is compared
        with numbers and has a row that is not a number.
    """
    match condition:
        case All(parts):
            return "(" + " AND ".join(filter_sql(source, view, part) for part in parts) + ")"
        case Some(parts):
            return "(" + " OR ".join(filter_sql(source, view, part) for part in parts) + ")"
        case Not(inner):
            return f"(NOT {filter_sql(source, view, inner)})"
        case Missing(column):
            return f"(({_text(source, column)}) IS NULL)"
        case Among(column, values):
            listed = ", ".join(literal(v) if isinstance(v, str) else repr(v) for v in values)
            is_text = isinstance(values[0], str)
            left = _compared_text(source, column) if is_text else _number(source, view, column)
            return f"coalesce(({left}) IN ({listed}), false)"
        case Compare(column, operator, other):
            left, right = _sides(source, view, column, other)
            return f"coalesce(({left}) {operator} ({right}), false)"


def _sides(source: Source, view: str, column: Column, other: Column | str | float) -> tuple[str, str]:
    if isinstance(other, str):
        return _compared_text(source, column), literal(other)
    if not isinstance(other, Column):
        return _number(source, view, column), repr(other)
    if _is_numeric(source, column) or _is_numeric(source, other):
        return _number(source, view, column), _number(source, view, other)
    return _text(source, column), _text(source, other)


def _is_numeric(source: Source, column: Column) -> bool:
    source.check_column(column.name)
    return source.types[column.name].lstrip("U").startswith(NUMERIC)


def _text(source: Source, column: Column) -> str:
    from louver.data.coding import text_sql

    return text_sql(source, column.name)


def _compared_text(source: Source, column: Column) -> str:
    if _is_numeric(source, column):
        message = f'option --where compares column "{column.name}", which holds numbers, with text; leave the quotes out.'
        raise InputError(message, file=source.name, column=column.name, option="where")
    return _text(source, column)


def _number(source: Source, view: str, column: Column) -> str:
    """SQL for the number in a column; text that is not a number is refused with its row."""
    from louver.data.coding import number_sql

    text = _text(source, column)
    value = number_sql(text, Kind.NUMBER)
    if not _is_numeric(source, column):
        numbered = f"SELECT row_number() OVER () AS row, ({text}) IS NOT NULL AND ({value}) IS NULL AS is_hit FROM {view}"
        found = source.first_row(f"SELECT min(row) AS row FROM ({numbered}) WHERE is_hit")
        if found is not None and found["row"] is not None:
            row = int(found["row"])
            message = (
                f'option --where compares column "{column.name}" with a number, but row {row} is not a number; put the value in single '
                "quotes to compare text."
            )
            raise InputError(message, file=source.name, column=column.name, row=row, option="where")
    return value
