"""Reading a table once and coding every column."""

from __future__ import annotations

from louver.data.coded import read_coded
from louver.data.read import open_source
from louver.errors import InputError
from louver.profile.options import ProfileOptions
from louver.profile.problem import Problem
from louver.run import Run
from louver.schema.request import Request

__all__ = ["load"]


def load(request: Request[ProfileOptions], run: Run) -> Problem:
    """Read the columns asked for, in one scan."""
    with open_source(request.data, **request.source.opening(), run=request.run) as source:
        names = request.options.columns or source.columns
        if len(set(names)) < len(names):
            raise InputError("option --columns names a column twice; name each once.", option="--columns")
        columns = read_coded(source, names, run)
        name = source.name
    return Problem(name=name, n_rows=len(columns[0].codes), columns=columns)
