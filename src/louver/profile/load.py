"""Reading a table once and coding every column, which makes the problem of the verb."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from louver._arrays import Ints
from louver.data.coded import CodedColumn, read_coded
from louver.data.read import open_source
from louver.errors import InputError
from louver.profile.options import ProfileOptions
from louver.run import Run
from louver.schema.request import Request

__all__ = ["ProfileProblem", "load"]


def load(request: Request[ProfileOptions], run: Run) -> ProfileProblem:
    """Read the requested columns in one scan."""
    with open_source(request.data, **request.source.opening(), run=request.run) as source:
        names = request.options.columns or source.columns
        if len(set(names)) < len(names):
            raise InputError("option --columns names a column twice; name each once.", option="--columns")
        names = tuple(dict.fromkeys((*names, *request.options.needed_columns())))
        columns = read_coded(source, names, run)
        name = source.name
    return ProfileProblem(name=name, n_rows=len(columns[0].codes), columns=columns)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ProfileProblem:
    """A table of records, coded. Confidential.

    Attributes
    ----------
    name : str
        Name of the source in messages.
    n_rows : int
    columns : tuple of CodedColumn
    unit : int or None
        Position of the column that numbers households, whose records count as one.
    """

    name: str
    n_rows: int
    columns: tuple[CodedColumn, ...]
    unit: int | None = None

    def units(self) -> Ints | None:
        """The household of each record, if numbered; a record without a number is a household of its own."""
        if self.unit is None:
            return None
        column = self.columns[self.unit]
        codes = column.codes.astype(np.int64)
        is_missing = codes == column.n_values
        return np.where(is_missing, column.n_values + np.arange(len(codes)), codes)
