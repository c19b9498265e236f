"""From coded columns to a profile: kinds, sets, dependencies, roles, in that order."""

from __future__ import annotations

import time
from dataclasses import replace

from louver.data.dependencies import find_dependencies
from louver.data.kinds import guess_kind
from louver.profile.distribution import spread
from louver.profile.load import Problem
from louver.profile.options import ProfileOptions
from louver.profile.result import ColumnProfile, Profile
from louver.profile.roles import Role, find_unit, suggest_roles
from louver.profile.singling import find_singling_sets
from louver.run import Run

__all__ = ["profile_columns"]

DROPPED = (Role.IDENTIFYING, Role.UNIT, Role.WEIGHT)
"""Roles that no release publishes: sets with such columns are told last, and never as a reason where another is."""


def profile_columns(problem: Problem, options: ProfileOptions, run: Run, started: float) -> Profile:
    """Look at every column, at sets of them and at pairs; `started` is when the call began."""
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
        column.name for column, told in zip(problem.columns, roles, strict=True) if told.role in DROPPED
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
            role=told.role,
            reason=told.reason,
            distribution=spread(column, kind),
        )
        for column, (kind, why), told, alone in zip(
            problem.columns, guesses, roles, singling.alone, strict=True
        )
    )
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
        seconds=time.perf_counter() - started,
    )
