"""The records as the verb works on them: every column as codes into the list of its values."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from louver._arrays import Ints
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
    unit : int or None
        Place of the column that numbers households, whose records count as one.
    """

    name: str
    n_rows: int
    columns: tuple[CodedColumn, ...]
    unit: int | None = None

    def units(self) -> Ints | None:
        """The household of each record, where one is numbered; a record without a number is one of its own."""
        if self.unit is None:
            return None
        column = self.columns[self.unit]
        codes = column.codes.astype(np.int64)
        is_missing = codes == column.n_values
        return np.where(is_missing, column.n_values + np.arange(len(codes)), codes)
