"""profile: what a table contains, before anything is published from it.

Columns and their kinds, how identifying they are alone and together, which column determines which, and what role each might play.
A profile is confidential; `write_spec` derives a spec from it that contains nothing from the data except names, kinds and roles.
"""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Unpack

from louver._callable import make_callable
from louver.data.dependencies import find_dependencies
from louver.data.kinds import guess_kind
from louver.profile.load import ProfileProblem, load
from louver.profile.options import ProfileKeywords, ProfileOptions
from louver.profile.result import ColumnProfile, Profile, spread
from louver.profile.roles import Role, find_unit, suggest_roles
from louver.profile.sample_risk import ScenarioRisk, measure_scenarios
from louver.profile.singling import find_singling_sets
from louver.profile.spec import write_spec
from louver.run import Run
from louver.schema.request import SpecLike, door, requested
from louver.schema.spec import Schema

if TYPE_CHECKING:
    from louver.data.read import ArrowStream

    Data = str | Path | ArrowStream

__all__ = ["ColumnProfile", "Profile", "ProfileOptions", "ScenarioRisk", "profile", "write_spec"]


DROPPED = (Role.IDENTIFYING, Role.UNIT, Role.WEIGHT)
"""Roles that no release publishes: sets with columns of these roles are listed last, and given as a reason only if there is no other."""


@door(ProfileOptions, keywords=ProfileKeywords)
def profile(
    data: Data | None = None,
    *,
    spec: SpecLike = None,
    schema: Schema | None = None,
    run: Run | None = None,
    **options: Unpack[ProfileKeywords],
) -> Profile:
    """Profile a table: kinds, how identifying its columns are, which of them determine others, and roles to consider.

    Parameters
    ----------
    data : path, PostgreSQL uri or dataframe
        Records, one person a row.
    schema : Schema, optional
        Not used, because a profile examines the data unchanged.

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
    return _profile_columns(problem, request.options, run, started)


def _profile_columns(problem: ProfileProblem, options: ProfileOptions, run: Run, started: float) -> Profile:
    """Examine columns, sets of columns and pairs; `started` is the time at which the call began."""
    guesses = []
    for number, column in enumerate(problem.columns):
        run.report("kinds of columns", number, len(problem.columns))
        guesses.append(guess_kind(column))
    kinds = [kind for kind, _ in guesses]
    dependencies = find_dependencies(problem.columns, run)
    problem = replace(problem, unit=find_unit(problem.columns, kinds, dependencies))
    singling = find_singling_sets(problem, options.largest, options.alone, run)
    roles = suggest_roles(problem.columns, kinds, singling.sets, dependencies)
    dropped = {
        column.name for column, role in zip(problem.columns, roles, strict=True) if role.role in DROPPED
    }
    sets = tuple(
        sorted(singling.sets, key=lambda one: len(one.columns) > 1 and not dropped.isdisjoint(one.columns))
    )
    roles = suggest_roles(problem.columns, kinds, sets, dependencies)
    columns = tuple(
        ColumnProfile(
            name=column.name,
            kind=kind,
            kind_reason=why,
            distinct=column.n_values,
            missing=column.n_missing,
            alone=alone,
            share_alone=alone / problem.n_rows,
            role=suggested.role,
            reason=suggested.reason,
            distribution=spread(column, kind),
        )
        for column, (kind, why), suggested, alone in zip(
            problem.columns, guesses, roles, singling.alone, strict=True
        )
    )
    suggested = tuple(column.name for column in columns if column.role is Role.QUASI)
    return Profile(
        source=problem.name,
        n_rows=problem.n_rows,
        unit=None if problem.unit is None else problem.columns[problem.unit].name,
        columns=columns,
        sets=sets,
        n_sets=singling.n_found,
        share=options.alone,
        largest=options.largest,
        is_complete=singling.is_complete,
        dependencies=dependencies,
        scenarios=measure_scenarios(problem, suggested, options, run),
        seconds=time.perf_counter() - started,
    )


make_callable(__name__, profile)
