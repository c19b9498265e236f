"""bounds: what can be recovered from a released table of conditional frequencies.

Wright & Smucker (2014), extended by rounded conditionals and a search for safe redesigns.

`louver.bounds(...)` audits one table, `louver.bounds.compare` ranks several arrangements of it, `louver.bounds.suggest` searches
for safer ones, and `louver.bounds.publish` audits a table together with earlier releases and publishes it.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Unpack

from louver._callable import make_callable
from louver.bounds.answer import BoundsAnswer, TablePublication, publish_table
from louver.bounds.check import audit_table
from louver.bounds.check import compare as compare_arrangements
from louver.bounds.disclosure import BoundsSummary
from louver.bounds.knowledge import KnownCells
from louver.bounds.load import LoadedArrangement, count, load, read_rules
from louver.bounds.options import (
    BoundsOptions,
    CompareKeywords,
    OneTableKeywords,
    PublishKeywords,
    SuggestKeywords,
    parse_arrangements,
    read_arrangements,
)
from louver.bounds.problem import Arrangement
from louver.bounds.result import BoundsAudit, Comparison
from louver.bounds.search import Suggestion, Suggestions, search_redesigns
from louver.data.parsing_once import parsing_once
from louver.data.read import POSTGRES_SCHEMES
from louver.errors import InputError
from louver.release.write import check_out
from louver.run import Run
from louver.schema.request import Request, SpecLike, door, requested
from louver.schema.spec import Schema

if TYPE_CHECKING:
    from louver.data.read import ArrowStream

    Data = str | Path | ArrowStream

__all__ = [
    "Arrangement",
    "BoundsAnswer",
    "BoundsAudit",
    "BoundsOptions",
    "BoundsSummary",
    "Comparison",
    "KnownCells",
    "Suggestion",
    "Suggestions",
    "TablePublication",
    "answer",
    "bounds",
    "compare",
    "publish",
    "suggest",
]


@door(BoundsOptions, keywords=OneTableKeywords)
def bounds(
    data: Data | None = None,
    *,
    spec: SpecLike = None,
    schema: Schema | None = None,
    run: Run | None = None,
    **options: Unpack[OneTableKeywords],
) -> BoundsAudit:
    """Audit one table: tight bounds and all feasible values of every cell.

    Parameters
    ----------
    data : path, PostgreSQL uri or dataframe
        Records, or a counted table with `weight`, or published conditionals with `conditionals=True`.
    recode, given, cells : path or inline value, optional
        Recodes, a-priori knowledge (`[[known]]` entries), and cells to solve (all by default).

    Returns
    -------
    BoundsAudit

    Examples
    --------
    >>> import pyarrow as pa
    >>> people = pa.table({"site": ["A", "A", "B", "B"], "ill": ["y", "n", "y", "n"], "count": [3, 4, 5, 3]})
    >>> audit = bounds(people, rows=["site"], cols=["ill"], weight="count")
    >>> [(cell.lower, cell.upper) for cell in audit.cells()]
    [(4, 4), (3, 3), (3, 3), (5, 5)]
    >>> audit.discloses("small")
    True
    """
    request = requested(spec, BoundsOptions)
    return _audit(load(request), request)


@door(BoundsOptions, keywords=CompareKeywords)
def compare(
    data: Data | None = None,
    *,
    spec: SpecLike = None,
    schema: Schema | None = None,
    run: Run | None = None,
    **options: Unpack[CompareKeywords],
) -> Comparison:
    """Audit a list of arrangements, and sort them by risk.

    Parameters
    ----------
    data : path, PostgreSQL uri or dataframe
        Records, or a counted table with `weight`.
    arrangements : path or sequence of mappings
        A TOML file with `[[arrangement]]` entries, or the entries.
    """
    return _compare(requested(spec, BoundsOptions))


@door(BoundsOptions, keywords=SuggestKeywords)
def suggest(
    data: Data | None = None,
    *,
    spec: SpecLike = None,
    schema: Schema | None = None,
    run: Run | None = None,
    **options: Unpack[SuggestKeywords],
) -> Suggestions:
    """Search for redesigns of one table that disclose nothing.

    Parameters
    ----------
    data : path, PostgreSQL uri or dataframe
        Records, or a counted table with `weight`.
    apart : mapping, optional
        Column -> labels, or sets of labels, no two of which are ever merged.
    """
    request = requested(spec, BoundsOptions)
    _check_folders(request.options)
    return _suggest(load(request), request)


@door(BoundsOptions, keywords=PublishKeywords)
def publish(
    data: Data | None = None,
    *,
    spec: SpecLike = None,
    schema: Schema | None = None,
    run: Run | None = None,
    **options: Unpack[PublishKeywords],
) -> TablePublication:
    """Audit one table together with everything in its register, and publish it if nothing is disclosed.

    Parameters
    ----------
    data : path, PostgreSQL uri or dataframe
        Records, or a counted table with `weight`.
    publish : path, optional
        Folder of the release, which must not exist; without it the table is only audited with the register.

    Returns
    -------
    TablePublication
        `refused` gives the reason if nothing was published.
    """
    request = requested(spec, BoundsOptions)
    if request.options.registry is None:
        raise InputError(
            "option --register is missing; name the folder of the register.", option="--register"
        )
    _check_folders(request.options)
    with parsing_once():
        return publish_table(_audit(load(request), request), request)


def answer(request: Request[BoundsOptions]) -> BoundsAnswer:
    """Everything that the options request: an audit with or without redesigns and publication, or a comparison of arrangements."""
    options = request.options
    options.check_suggest()
    _check_folders(options)
    if options.arrangements is not None:
        return BoundsAnswer(comparison=_compare(request), fail_on=options.fail_on)
    with parsing_once(options.registry is not None):
        loaded = load(request)
        audit = _audit(loaded, request)
        return BoundsAnswer(
            audit=audit,
            suggestions=_suggest(loaded, request) if options.suggest else None,
            publication=None if options.registry is None else publish_table(audit, request),
            recodes=options.write_recodes,
            fail_on=options.fail_on,
        )


def _check_folders(options: BoundsOptions) -> None:
    """Refuse folders that cannot be written, before any work is done."""
    for flag, folder in (("--publish", options.publish), ("--write-recodes", options.write_recodes)):
        if folder is not None:
            check_out(Path(folder), flag)


def _data_in_call(request: Request[BoundsOptions]) -> list[str]:
    """The arguments that name the data in a call, except an address, which may contain a password."""
    is_file = isinstance(request.data, str | Path) and not str(request.data).startswith(POSTGRES_SCHEMES)
    about = {
        "--weight": request.source.weight,
        "--spec": request.spec,
        "--decimals": request.options.decimals,
    }
    options = [text for name, value in about.items() if value is not None for text in (name, str(value))]
    return [str(request.data) if is_file else "FILE", *options]


def _audit(loaded: LoadedArrangement, request: Request[BoundsOptions]) -> BoundsAudit:
    return request.run.attend(
        audit_table,
        loaded.table,
        loaded.arrangement,
        loaded.rules,
        selected=loaded.selected,
        is_counted=loaded.histogram is not None,
    )


def _compare(request: Request[BoundsOptions]) -> Comparison:
    given = request.options.arrangements
    if given is None:
        raise InputError("option --arrangements is needed to compare arrangements.", option="--arrangements")
    arrangements = read_arrangements(given) if isinstance(given, str) else parse_arrangements(given)
    names = list(dict.fromkeys(name for a in arrangements for name in (*a.rows, *a.cols)))
    return compare_arrangements(count(request, names), arrangements, read_rules(request), request.run)


def _suggest(loaded: LoadedArrangement, request: Request[BoundsOptions]) -> Suggestions:
    """Search for redesigns, and write them as recode files if a folder is given."""
    assert loaded.histogram is not None
    options = request.options
    found = search_redesigns(
        loaded.histogram,
        loaded.arrangement,
        loaded.rules,
        avoid=options.avoid,
        wishes=loaded.wishes,
        seconds=options.seconds,
        run=request.run,
    )
    if options.write_recodes is not None:
        found.write_recodes(options.write_recodes, _data_in_call(request))
    return found


make_callable(__name__, bounds)
