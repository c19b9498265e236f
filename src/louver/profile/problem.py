"""The records as the verb works on them: every column as codes into the list of its values."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from louver._arrays import Ints

__all__ = ["CodedColumn", "Problem"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CodedColumn:
    """One column. Confidential.

    Attributes
    ----------
    name : str
    codes : ndarray of int32, shape (n,)
        Position of each record's value in `values`; the number of values where it is missing.
    values : StringArray
        The values that occur, as text.
    counts : ndarray of int64, shape (number of values,)
        Records of each value.
    n_missing : int
    """

    name: str
    codes: NDArray[np.int32]
    values: pa.StringArray
    counts: Ints
    n_missing: int

    @property
    def n_values(self) -> int:
        """Different values, missing aside."""
        return len(self.counts)

    @property
    def n_known(self) -> int:
        """Records that have a value."""
        return len(self.codes) - self.n_missing

    @property
    def n_codes(self) -> int:
        """Different codes, that of missing included where it occurs."""
        return self.n_values + (self.n_missing > 0)

    @property
    def n_alone(self) -> int:
        """Records whose value no other record has."""
        return int((self.counts == 1).sum()) + (self.n_missing == 1)


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
