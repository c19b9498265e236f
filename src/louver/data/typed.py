"""Numbers that were read as text become numbers again: a CSV file has no types, what is made from it has."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

__all__ = ["common_type", "number_type", "typed"]

INTEGER = r"^-?(0|[1-9][0-9]{0,17})$"
NUMBER = r"^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?$"
"""As programs write numbers: what starts with a plus sign or with zeros is a code ("007", "+49")."""


def typed(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """A column of text as whole numbers or numbers where every value is one; anything else as it is.

    Examples
    --------
    >>> [str(typed(pa.chunked_array([texts])).type) for texts in (["1", None], ["1.5", "2"], ["01", "2"])]
    ['int64', 'double', 'string']
    """
    kind = number_type(column)
    return column if kind is None or pa.types.is_null(kind) else column.cast(kind)


def number_type(column: pa.ChunkedArray) -> pa.DataType | None:
    """The type of numbers that every value of a column of text is; null where there is no value, None where it is not numbers."""
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
    """The type of numbers of a column, from those of its parts."""
    if one is None or other is None:
        return None
    if pa.types.is_null(one) or pa.types.is_null(other):
        return other if pa.types.is_null(one) else one
    return one if one == other else pa.float64()
