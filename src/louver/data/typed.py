"""Numbers that were read as text become numbers again: a CSV file has no types, what is made from it has."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

__all__ = ["typed"]

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
    if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
        return column
    values = pc.drop_null(pc.unique(column))
    for pattern, kind in ((INTEGER, pa.int64()), (NUMBER, pa.float64())):
        if len(values) and pc.all(pc.match_substring_regex(values, pattern)).as_py():
            numbers = column.cast(kind)
            return numbers if pc.all(pc.is_finite(numbers)).as_py() else column
    return column
