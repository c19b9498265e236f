"""The records as the verb works on them: every column as codes into the list of its values."""

from __future__ import annotations

from dataclasses import dataclass

from louver.data.coded import CodedColumn

__all__ = ["Problem"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Problem:
    """A table of records, coded. Confidential.

    Attributes
    ----------
    name : str
        What messages call the source.
    n_rows : int
    columns : tuple of CodedColumn
    """

    name: str
    n_rows: int
    columns: tuple[CodedColumn, ...]
