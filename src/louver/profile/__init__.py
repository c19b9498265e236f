"""profile: what is in a table, before anything is published from it.

Columns and their kinds, how identifying they are alone and together, which column tells which, and what role each might play.
A profile stays inside; `write_spec` makes a spec from it that holds nothing of the data but names, kinds and roles.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from louver._callable import make_callable
from louver.profile.load import load
from louver.profile.options import ProfileOptions
from louver.profile.result import ColumnProfile, Profile
from louver.profile.solve import profile_columns
from louver.profile.spec import write_spec
from louver.run import Run
from louver.schema.request import SpecLike, door, requested
from louver.schema.spec import Schema

if TYPE_CHECKING:
    from louver.data.read import ArrowStream

    Data = str | Path | ArrowStream

__all__ = ["ColumnProfile", "Profile", "ProfileOptions", "profile", "write_spec"]


@door(ProfileOptions)
def profile(
    data: Data | None = None,
    *,
    spec: SpecLike = None,
    schema: Schema | None = None,
    table: str | None = None,
    query: str | None = None,
    decimal_mark: str | None = None,
    encoding: str | None = None,
    delimiter: str | None = None,
    keep_codes: bool | None = None,
    where: str | None = None,
    header_row: int | None = None,
    missing_code: Mapping[str, Sequence[str | int]] | None = None,
    date_order: str | None = None,
    columns: str | Sequence[str] = (),
    largest: int = 3,
    alone: float = 0.05,
    run: Run | None = None,
) -> Profile:
    """Profile a table: kinds, how identifying its columns are, what tells what, and roles to consider.

    Parameters
    ----------
    data : path, PostgreSQL uri or dataframe
        Records, one person a row.
    schema : Schema, optional
        Not used: a profile looks at the data as they are.

    Returns
    -------
    Profile

    Examples
    --------
    >>> import pyarrow as pa
    >>> people = pa.table({"id": range(40), "sex": ["f", "m"] * 20, "town": ["A"] * 30 + ["B"] * 10})
    >>> found = profile(people)
    >>> [(column.name, str(column.kind), str(column.role)) for column in found.columns]
    [('id', 'id', 'identifying'), ('sex', 'category', 'quasi'), ('town', 'category', 'quasi')]
    >>> [one.columns for one in found.sets]
    [('id',)]
    """
    request, run = requested(spec, ProfileOptions), run or Run()
    started = time.perf_counter()
    problem = load(request, run)
    return profile_columns(problem, request.options, run, started)


make_callable(__name__, profile)
