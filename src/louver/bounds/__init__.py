"""bounds: what can be recovered from a released table of conditional frequencies.

Wright & Smucker (2014), and past it: rounded conditionals and a search for safe redesigns.

`louver.bounds(...)` audits one arrangement; `louver.bounds.compare` a list of them; `louver.bounds.suggest`
looks for better ones.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from louver._callable import make_callable
from louver.bounds.answer import BoundsAnswer
from louver.bounds.check import audit_table
from louver.bounds.check import compare as compare_arrangements
from louver.bounds.knowledge import Statement
from louver.bounds.load import Loaded, count, load, read_rules
from louver.bounds.options import BoundsOptions, TableKeywords, parse_arrangements, read_arrangements
from louver.bounds.problem import Arrangement
from louver.bounds.publication import publish_table
from louver.bounds.result import BoundsAudit, Comparison
from louver.bounds.search import search_redesigns as suggest_redesigns
from louver.bounds.suggestions import Suggestion, Suggestions
from louver.bounds.summary import Summary
from louver.data.kinds import is_named_like_weight
from louver.data.read import POSTGRES_SCHEMES
from louver.errors import InputError
from louver.release.write import check_out
from louver.run import Run
from louver.schema.request import Request, SpecLike, door, requested
from louver.schema.source import SourceOptions
from louver.schema.spec import Schema

if TYPE_CHECKING:
    from louver.data.read import ArrowStream

    Data = str | Path | ArrowStream

__all__ = [
    "Arrangement",
    "BoundsAnswer",
    "BoundsAudit",
    "BoundsOptions",
    "Comparison",
    "Statement",
    "Suggestion",
    "Suggestions",
    "Summary",
    "answer",
    "bounds",
    "compare",
    "suggest",
]


@door(BoundsOptions)
def bounds(
    data: Data | None = None,
    *,
    spec: SpecLike = None,
    schema: Schema | None = None,
    weight: str | None = None,
    wide: Mapping[str, Mapping[str, str]] | None = None,
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
    weight_is_count: bool | None = None,
    rows: str | Sequence[str] = (),
    cols: str | Sequence[str] = (),
    conditionals: bool = False,
    percent: bool = False,
    n: int | None = None,
    row_n: str | None = None,
    recode: str | Path | Mapping[str, Any] | None = None,
    given: str | Path | Sequence[Statement | Mapping[str, Any]] | None = None,
    cells: str | Path | Sequence[Mapping[str, str]] | None = None,
    decimals: int | None = None,
    rounding: str = "half-up",
    small: int = 5,
    certain: float = 100.0,
    drop_zero_rows: bool = False,
    merge_zero_rows: bool = False,
    run: Run | None = None,
) -> BoundsAudit:
    """Audit one arrangement: tight bounds and all feasible values of every cell.

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
    """
    request = requested(spec, BoundsOptions)
    return _audit(load(request), request)


@door(BoundsOptions, keywords=TableKeywords)
def compare(
    data: Data | None = None,
    *,
    spec: SpecLike = None,
    schema: Schema | None = None,
    arrangements: str | Path | Sequence[Mapping[str, Any]] | None = None,
    run: Run | None = None,
    **options: Unpack[TableKeywords],
) -> Comparison:
    """Audit a list of arrangements and sort them by risk.

    Parameters
    ----------
    data : path, PostgreSQL uri or dataframe
        Records, or a counted table with `weight`.
    arrangements : path or sequence of mappings
        A TOML file with `[[arrangement]]` entries, or the entries.
    """
    return _compare(requested(spec, BoundsOptions))


@door(BoundsOptions, keywords=TableKeywords)
def suggest(
    data: Data | None = None,
    *,
    spec: SpecLike = None,
    schema: Schema | None = None,
    rows: str | Sequence[str] = (),
    cols: str | Sequence[str] = (),
    recode: str | Path | Mapping[str, Any] | None = None,
    seconds: float = 30.0,
    avoid: str = "attribute",
    fix: str | Sequence[str] = (),
    apart: Mapping[str, Sequence[str] | Sequence[Sequence[str]]] | None = None,
    run: Run | None = None,
    **options: Unpack[TableKeywords],
) -> Suggestions:
    """Search for redesigns of one arrangement that give nothing away.

    Parameters
    ----------
    data : path, PostgreSQL uri or dataframe
        Records, or a counted table with `weight`.
    apart : mapping, optional
        Column -> labels, or sets of labels, of which no two are ever merged.
    """
    request = requested(spec, BoundsOptions)
    return _suggest(load(request), request.options, request.run)


def answer(request: Request[BoundsOptions], run: Run | None = None) -> BoundsAnswer:
    """All that the options ask for: an audit with or without redesigns and publication, or a comparison of arrangements."""
    request = replace(request, run=run or request.run)
    request.options.check_suggest()
    if request.options.publish is not None:
        check_out(Path(request.options.publish), "--publish")
    if request.options.write_recodes is not None:
        check_out(Path(request.options.write_recodes), "--write-recodes")
    audit = comparison = suggestions = published = None
    if request.options.arrangements is not None:
        comparison = _compare(request)
    else:
        loaded = load(request)
        audit = _audit(loaded, request)
        if request.options.suggest:
            suggestions = _suggest(loaded, request.options, request.run)
            if request.options.write_recodes is not None:
                suggestions.write_recodes(request.options.write_recodes, _named(request))
        if request.options.registry is not None:
            published = publish_table(audit, request, request.run)
    return BoundsAnswer(
        audit=audit,
        comparison=comparison,
        suggestions=suggestions,
        publication=published,
        recodes=request.options.write_recodes,
        fail_on=request.options.fail_on,
    )


def _named(request: Request[BoundsOptions]) -> list[str]:
    """How a call names the data, without an address that may hold a password."""
    is_file = isinstance(request.data, str | Path) and not str(request.data).startswith(POSTGRES_SCHEMES)
    about = {
        "--weight": request.source.weight,
        "--spec": request.spec,
        "--decimals": request.options.decimals,
    }
    told = [text for name, value in about.items() if value is not None for text in (name, str(value))]
    return [str(request.data) if is_file else "FILE", *told]


def _audit(loaded: Loaded, request: Request[BoundsOptions]) -> BoundsAudit:
    found = request.run.attend(
        audit_table,
        loaded.table,
        loaded.arrangement,
        loaded.options,
        selected=loaded.selected,
        is_counted=loaded.histogram is not None,
    )
    return replace(found, survey_weight=survey_weight(request.source)) if found.is_counted else found


def survey_weight(source: SourceOptions) -> str | None:
    """The column of counts, where its name says that it may weight people up."""
    return source.weight if source.weight is not None and is_named_like_weight(source.weight) else None


def _compare(request: Request[BoundsOptions]) -> Comparison:
    given = request.options.arrangements
    if given is None:
        raise InputError("option --arrangements is needed to compare arrangements.", option="--arrangements")
    arrangements = read_arrangements(given) if isinstance(given, str) else parse_arrangements(given)
    names = list(dict.fromkeys(name for a in arrangements for name in (*a.rows, *a.cols)))
    return compare_arrangements(count(request, names), arrangements, read_rules(request), request.run)


def _suggest(loaded: Loaded, asked: BoundsOptions, run: Run) -> Suggestions:
    assert loaded.histogram is not None
    return suggest_redesigns(
        loaded.histogram,
        loaded.arrangement,
        loaded.options,
        avoid=asked.avoid,
        wishes=loaded.wishes,
        seconds=asked.seconds,
        run=run,
    )


make_callable(__name__, bounds)
