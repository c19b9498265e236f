"""Every column has a role: those that nobody listed are looked at before anything is published."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from louver.anonymize.options import NUMBER_CODES, AnonymizeOptions
from louver.data.coded import coded_column, read_coded
from louver.data.dependencies import find_dependencies
from louver.data.kinds import LIKE_A_UNIT, ColumnKind, guess_kind, may_be_unit, why_telling
from louver.data.read import Source
from louver.errors import InputError
from louver.run import Run

__all__ = ["check_roles", "dropped", "unchanged"]

EXACT_DATES = "exact dates, which others may know"


def dropped(options: AnonymizeOptions) -> tuple[str, ...]:
    """Columns that are not published: identifying ones, that of units, a person key, and a sampling weight that is not kept."""
    published = {*options.keep, *options.sensitive, None}
    others = [name for name in (options.unit, options.link, options.sampling_weight) if name not in published]
    return tuple(dict.fromkeys([*options.identifying, *(name for name in others if name is not None)]))


def unchanged(columns: Sequence[str], options: AnonymizeOptions) -> tuple[str, ...]:
    """Columns that are published as they are, in the order of the source."""
    changed = {*options.quasi, *dropped(options)}
    return tuple(name for name in columns if name not in changed)


def check_roles(source: Source, records: pa.Table, options: AnonymizeOptions, run: Run) -> None:
    """Refuse to publish columns that nobody gave a role and that single people out or tell a quasi-identifier.

    Parameters
    ----------
    source : Source
    records : Table
        All columns, numbers that travel along already coded as they are published.
    options : AnonymizeOptions
    run : Run

    Notes
    -----
    The thresholds are those of `louver.data.kinds` and `louver.data.dependencies`, which `louver profile` uses too. A column that
    is rounded or cut off is judged by what is published of it: nobody sees more, and what still is nearly unique is refused.
    """
    listed = {*options.sensitive, *options.keep}
    names = [name for name in unchanged(source.columns, options) if name not in listed]
    if not names:
        return
    as_published = {name for codes in NUMBER_CODES.values() for name in codes(options)}
    coded = [
        coded_column(column.name, records[column.name]) if column.name in as_published else column
        for column in read_coded(source, [*names, *options.quasi], run)
    ]
    others, quasi = coded[: len(names)], coded[len(names) :]
    found: dict[str, list[str]] = {}
    telling, kinds = {}, {column.name: guess_kind(column)[0] for column in others}
    for column in others:
        reason = why_telling(column, kinds[column.name])
        if reason is None and kinds[column.name] is ColumnKind.DATE and column.n_values > 1:
            reason = EXACT_DATES
        if reason is not None:
            telling[column.name] = reason
    numbers = [c for c in others if c.name not in telling and may_be_unit(c, kinds[c.name])]
    if numbers:
        rest = [name for name in source.columns if name not in {*names, *options.quasi}]
        every = [*coded, *(read_coded(source, rest, run) if rest else ())]
        for column in numbers:
            of = [other for other in every if other.name != column.name]
            if find_dependencies([column], run, of=of):
                telling[column.name] = LIKE_A_UNIT
    for dependency in find_dependencies([c for c in others if c.name not in telling], run, of=quasi):
        telling.setdefault(dependency.determinant, f'tells "{dependency.dependent}"')
    for name in names:
        if name in telling:
            found.setdefault(telling[name], []).append(f'"{name}"')
    if found:
        told = "; ".join(f"{', '.join(columns)} ({reason})" for reason, columns in found.items())
        households = "in --unit if it numbers households, " if LIKE_A_UNIT in found else ""
        raise InputError(
            f"{source.name} has columns without a role that may give people away: {told}; name each {households}in --identifying to "
            "drop it, in --quasi to generalise it, or in --sensitive or --keep to publish it unchanged.",
            file=source.name,
            column=next(iter(telling)),
            option="--keep",
        )
