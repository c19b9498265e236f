"""protect: hide cells of linked tables so that no reader learns too much about a contributor, with a proof and a bound.

`louver.protect(...)` finds the cells that reveal too much by themselves (primary cells), hides further cells so that they cannot be
derived from the others, proves it for every attacker, and states how far from the best the pattern is.

Attackers
---------
An *outsider* sees every shown number of all tables and knows all hierarchies and sums, which cells are hidden, and that numbers are not
negative; with `known_percent`, also every number to within this percentage. A *contributor* also knows their own part of every number, and
every number to which nobody else contributes; with `holding`, everything that one holding owns is one contributor. The contributors
considered are those who are alone in a cell, or one of two.

For every primary cell and every attacker, two whole tables are found, and checked in integers, that agree with everything the attacker
knows: one in which the cell is above its value by at least its safety range, and one in which it is below.

Not covered: contributors of different holdings who share what they know; readers who know how the pattern was found; tables published
elsewhere or before; other variables of the same contributors; and, if tables are linked in a circle, readers who reason about the
unpublished crossed table behind them. The verdict says which of these apply to the tables at hand.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Unpack

from louver._callable import make_callable
from louver.data.parsing_once import parsing_once
from louver.protect.cellkey import average, count_with_keys, noise_table_of, smallest_safe
from louver.protect.keybounds import bounds_of
from louver.protect.load import load
from louver.protect.options import ProtectKeywords, ProtectOptions
from louver.protect.release import publish, publish_noisy
from louver.protect.result import (
    CellKeyFigures,
    HiddenCell,
    ProtectedTable,
    ProtectedTables,
    ProtectSummary,
    RoundingFigures,
    noisy_result,
    result_of,
)
from louver.protect.solve import solve
from louver.protect.together import (
    audit_noisy,
    audit_together,
    check_same_keys,
    check_same_noise,
    earlier_tables,
    mark_of,
    match_register,
    shown_by_files,
)
from louver.protect.verdict import Question, question_of
from louver.release import disclosures
from louver.release.write import check_out
from louver.run import Run
from louver.schema.request import Request, SpecLike, door, requested
from louver.schema.spec import Schema

if TYPE_CHECKING:
    from louver.data.read import ArrowStream
    from louver.protect.load import Loaded
    from louver.protect.solve import Solved
    from louver.release.matched_register import MatchedRegister

    Data = str | Path | ArrowStream

__all__ = [
    "CellKeyFigures",
    "HiddenCell",
    "ProtectOptions",
    "ProtectSummary",
    "ProtectedTable",
    "ProtectedTables",
    "Question",
    "RoundingFigures",
    "protect",
]


@door(ProtectOptions, keywords=ProtectKeywords)
def protect(
    data: Data | None = None,
    *,
    spec: SpecLike = None,
    schema: Schema | None = None,
    out: str | Path | None = None,
    run: Run | None = None,
    **options: Unpack[ProtectKeywords],
) -> ProtectedTables:
    """Hide cells of linked tables so that no reader learns too much about a contributor.

    Parameters
    ----------
    data : path, PostgreSQL uri or dataframe, optional
        Records, one line per contributor. Without them every table comes from a file.
    tables : sequence of mappings
        The tables to publish: `name`, `by`, and `value` for sums of a variable; see the guide.
    codes : mapping
        Attribute -> `hierarchy`, `total` and `of`.
    rules : sequence of mappings
        Rules that make cells primary: `rule` and its numbers.
    status : sequence of mappings
        Decisions about single cells: `table`, `cell`, `set` and `reason`.
    out : path, optional
        Release directory to make; it is made only if every primary cell is protected.

    Returns
    -------
    ProtectedTables

    Examples
    --------
    >>> import pyarrow as pa
    >>> firms = pa.table(
    ...     {
    ...         "trade": ["food", "food", "food", "wood", "wood", "wood", "iron", "iron", "iron"],
    ...         "size": ["small", "large", "large", "small", "small", "large", "small", "small", "large"],
    ...         "turnover": [5, 40, 30, 6, 7, 50, 4, 8, 60],
    ...     }
    ... )
    >>> found = protect(
    ...     firms,
    ...     tables=[{"name": "turnover", "by": ["trade", "size"], "value": "turnover"}],
    ...     rules=[{"rule": "frequency", "minimum": 2}],
    ... )
    >>> found.summary.primary, found.summary.secondary, found.is_protected
    (3, 5, True)
    """
    whole = requested(spec, ProtectOptions)
    if out is not None:
        check_out(Path(out))
    folder = None if out is None else Path(out)
    with parsing_once(whole.options.registry is not None):
        return (_with_noise if whole.options.method == "cellkey" else _protected)(whole, folder)


def _protected(request: Request[ProtectOptions], out: Path | None) -> ProtectedTables:
    """Hide or round; files are written here rather than in a thread, which would continue after a cancelled run."""
    options, run = request.options, request.run
    register = None if options.registry is None else match_register(request, is_publishing=out is not None)
    loaded, solved, found = run.attend(_searched, request, register)
    log = None
    if register is not None and found.is_protected:
        together, content = audit_together(request, loaded, solved, register)
        found = found.audited(together)

        def log(tables: Sequence[disclosures.Plain]) -> str:
            return register.append({**content, "protected": list(tables)})

    if out is None or not found.is_publishable:
        return found
    publish(out, options, loaded, solved, run, log)
    return replace(found, published=str(out))


def _searched(
    request: Request[ProtectOptions], register: MatchedRegister | None
) -> tuple[Loaded, Solved, ProtectedTables]:
    """The tables, a pattern or rounded numbers, and the result."""
    started = time.perf_counter()
    options, run = request.options, request.run
    folder = Path() if request.spec is None else request.spec.parent
    before = () if register is None else earlier_tables(register)
    loaded = load(options, request.data, request.source.opening(), folder, run, before)
    solved = solve(options, loaded, run)
    question = question_of(
        loaded,
        primary=len(solved.judged.primary),
        attackers=len(solved.problem.attackers) - 1,
        known_percent=options.known_percent,
        asks_contributors=options.attackers == "contributors",
        waived=len(solved.judged.waived),
        earlier=None if register is None else len(register.entries),
        apart=None if register is None else register.remark,
        is_apart_by_word=register is not None and register.is_apart_by_word,
        ledger=None if register is None else register.only_in_ledger,
        n_counts=sum(loaded.cells[number].is_count for number in solved.judged.primary),
        shown_before=() if register is None else shown_by_files(register, options),
    )
    return loaded, solved, result_of(options, loaded, solved, question, time.perf_counter() - started)


def _with_noise(request: Request[ProtectOptions], out: Path | None) -> ProtectedTables:
    """Count with keys, and publish if no small count can be averaged out or follows from bounds and sums."""
    started, options = time.perf_counter(), request.options
    folder = Path() if request.spec is None else request.spec.parent
    noise, limit = noise_table_of(options, folder), smallest_safe(options)
    register = match_register(request, is_publishing=out is not None)
    check_same_noise(register, noise)
    again = [one for one in earlier_tables(register) if one.table["method"] == options.method]
    tables, before = count_with_keys(request, folder, register.key, noise, again)
    mark = mark_of(register, tables)
    check_same_keys(register, mark)
    averaging = request.run.attend(average, [*tables, *before], noise)
    determined = bounds_of([*tables, *before], noise, request.run).determined(limit)
    question = Question(
        primary=int((averaging.counts < limit).sum()),
        attackers=0,
        known_percent=None,
        unknown_pairs=0,
        asks_contributors=False,
        dependent=(),
        is_circle=False,
        waived=0,
        earlier=len(register.entries),
        apart=register.remark,
        is_noisy=True,
    )
    found = noisy_result(
        tables, before, averaging, determined, noise, limit, question, time.perf_counter() - started
    )
    if not found.is_protected:
        return found
    together, content = audit_noisy(request, tables, noise.most, register, small=limit)
    found = found.audited(together)
    if out is None or found.refusal is not None:
        return found
    publish_noisy(
        out,
        options,
        tables,
        noise,
        mark,
        request.run,
        lambda kept: register.append({**content, "protected": list(kept)}),
    )
    return replace(found, published=str(out))


make_callable(__name__, protect)
