"""The command line: parse, call the library, print. Exit 0 done, 1 a check failed, 2 bad input."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from louver import __version__
from louver.errors import InputError, LouverError

if TYPE_CHECKING:
    from louver.bounds import BoundsAudit, Comparison, Suggestions, Summary
    from louver.schema.spec import Spec

__all__ = ["app", "main"]

VERBS = ("bounds", "demo")
CHECK_FAILED, BAD_INPUT, INTERNAL, INTERRUPTED, OUTPUT_CLOSED = 1, 2, 70, 130, 141
FILE_OPTIONS = ("recode", "given", "cells", "arrangements")
NUMBER_KINDS = {int: "a whole number", float: "a number"}
MAX_PRINTED = 12

app = typer.Typer(
    name="louver",
    help="Publish statistics about people without publishing the people.",
    pretty_exceptions_enable=False,
    pretty_exceptions_show_locals=False,
    add_completion=False,
    rich_markup_mode=None,
)


def main() -> None:
    """Run the command line; every expected failure is one sentence on stderr."""
    verb = next((argument for argument in sys.argv[1:] if not argument.startswith("-")), "")
    name = f"louver {verb}" if verb in VERBS else "louver"
    # Matplotlib complains about a home it cannot write to; stderr is for our own sentences.
    logging.getLogger("matplotlib").setLevel(logging.ERROR)
    try:
        result = app(prog_name="louver", standalone_mode=False)
        code = result if isinstance(result, int) else 0
    except LouverError as error:
        code = _fail(name, str(error))
    except typer.TyperException as error:
        code = _fail(name, _usage_problem(error))
    except SystemExit:  # how the parser ends when whoever reads our output has gone
        code = OUTPUT_CLOSED
    except MemoryError:
        code = _fail(name, "the table is too large for this machine's memory; use fewer attributes.")
    except Exception as error:
        if os.environ.get("LOUVER_DEBUG"):
            raise
        code = _fail(name, _internal_problem(error), INTERNAL)
    if code == INTERRUPTED:
        _fail(name, "stopped.")
    sys.exit(code)


def _fail(name: str, sentence: str, code: int = BAD_INPUT) -> int:
    sys.stderr.write(f"{name}: {sentence}\n")
    return code


def _usage_problem(error: typer.TyperException) -> str:
    """A usage error in our words; the parser's own messages quote what was typed."""
    if isinstance(error, typer.BadParameter):
        assert error.param is not None
        kind = NUMBER_KINDS[error.param.type_descriptor.annotation]
        return f"option {error.param.opts[0]} must be {kind}."
    # The parser's other classes are not public, so they are told apart by what they carry.
    carried = vars(error)
    option, context = carried.get("option_name"), carried.get("ctx")
    if option is None and context is not None and context.parent is None:
        return f"there is no such command; choose {' or '.join(VERBS)}."
    if option is None:
        return "there is one argument too many; leave no space after a comma, and quote names that have one."
    if "possibilities" in carried:
        near = [f"did you mean {other}?" for other in carried["possibilities"] or ()]
        return f"there is no option {option}; {near[0] if near else 'see --help.'}"
    return f"option {option} {'takes no value' if 'not take' in error.message else 'needs a value'}."


def _internal_problem(error: BaseException) -> str:
    """Where an unexpected error arose, without any value it may carry."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    place = (
        "unknown" if trace is None else f"{Path(trace.tb_frame.f_code.co_filename).name}:{trace.tb_lineno}"
    )
    return f"internal error {type(error).__name__} at {place}; please report it (LOUVER_DEBUG=1 shows more)."


@app.callback(invoke_without_command=True)
def _root(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version and stop.")] = False,
) -> None:
    if version:
        typer.echo(f"louver {__version__}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


@app.command(epilog="Exit codes: 0 done, 1 a check failed (--fail-on), 2 bad input.")
def bounds(
    file: Annotated[
        str | None,
        typer.Argument(
            metavar="FILE", help="CSV, CSV.gz, Parquet or DuckDB file, or a postgresql:// address."
        ),
    ] = None,
    rows: Annotated[
        str | None, typer.Option(metavar="A,B", help="Columns that make the rows, separated by commas.")
    ] = None,
    cols: Annotated[
        str | None, typer.Option(metavar="C,D", help="Columns that make the columns (the responses).")
    ] = None,
    weight: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help="Column of counts; without it every line is one person."),
    ] = None,
    table: Annotated[
        str | None, typer.Option(metavar="NAME", help="Table in a DuckDB file or PostgreSQL database.")
    ] = None,
    query: Annotated[str | None, typer.Option(metavar="SQL", help="Query for a PostgreSQL database.")] = None,
    conditionals: Annotated[
        bool,
        typer.Option(
            "--conditionals", help="The weight column holds conditionals such as 3/7, not counts; needs --n."
        ),
    ] = False,
    n: Annotated[
        int | None, typer.Option("--n", metavar="N", help="Sample size, with --conditionals.")
    ] = None,
    recode: Annotated[
        str | None, typer.Option(metavar="FILE", help="TOML file with merged categories and bins.")
    ] = None,
    given: Annotated[
        str | None, typer.Option(metavar="FILE", help="TOML file with bounds that outsiders know beforehand.")
    ] = None,
    cells: Annotated[
        str | None, typer.Option(metavar="FILE", help="CSV file of cells; only these are solved.")
    ] = None,
    arrangements: Annotated[
        str | None, typer.Option(metavar="FILE", help="TOML file with arrangements to compare.")
    ] = None,
    decimals: Annotated[
        int | None,
        typer.Option(
            metavar="D",
            help="Decimals of the published proportions (0.429 has 3, and so has 42.9 %); exact fractions otherwise.",
        ),
    ] = None,
    rounding: Annotated[
        str | None,
        typer.Option(
            metavar="half-up|half-even", help="How ties are rounded, with --decimals (default half-up)."
        ),
    ] = None,
    small: Annotated[
        int | None, typer.Option(metavar="N", help="Counts below this are small (default 5).")
    ] = None,
    drop_zero_rows: Annotated[
        bool, typer.Option("--drop-zero-rows", help="Leave out rows with a zero cell, and their people.")
    ] = False,
    merge_zero_rows: Annotated[
        bool, typer.Option("--merge-zero-rows", help='Add rows with a zero cell up in one row "Other".')
    ] = False,
    suggest: Annotated[
        bool, typer.Option("--suggest", help="Search for redesigns without a disclosed small cell.")
    ] = False,
    seconds: Annotated[
        float | None, typer.Option(metavar="S", help="Time for --suggest (default 30).")
    ] = None,
    fail_on: Annotated[
        str | None,
        typer.Option(
            metavar="small|rows|any",
            help="Exit with 1 if a small cell, a row, or anything at all (zero cells too) is disclosed.",
        ),
    ] = None,
    html: Annotated[Path | None, typer.Option(metavar="FILE", help="Write the report to this file.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print the result as JSON and nothing else.")] = False,
    spec: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="TOML file with the same options, source and attributes."),
    ] = None,
) -> int:
    """Audit what a table of conditional frequencies gives away."""
    given_options = {
        "rows": _names(rows, "--rows"),
        "cols": _names(cols, "--cols"),
        "weight": weight,
        "conditionals": conditionals or None,
        "n": n,
        "recode": recode,
        "given": given,
        "cells": cells,
        "arrangements": arrangements,
        "decimals": decimals,
        "rounding": rounding,
        "small": small,
        "drop_zero_rows": drop_zero_rows or None,
        "merge_zero_rows": merge_zero_rows or None,
        "suggest": suggest or None,
        "seconds": seconds,
        "fail_on": fail_on,
    }
    source, options = _with_spec("bounds", spec, file, table, query, given_options)
    if html is not None:
        _check_writable(html, [spec, source["data"], *(options.get(name) for name in FILE_OPTIONS)])
    return _run_bounds(source, options, html, json)


@app.command()
def demo(
    out: Annotated[
        Path, typer.Option(metavar="FOLDER", help="Folder for the report; made where there is none.")
    ] = Path("demo-output"),
    seconds: Annotated[float, typer.Option(metavar="S", help="Time for the redesign search.")] = 15.0,
) -> int:
    """Audit an embedded sample table and write a report to open in a browser."""
    from louver.demo import run_demo

    with _progress("searching redesigns") as progress:
        report = run_demo(out, seconds, progress)
    typer.echo(f"Open {report} in a browser.")
    return 0


def _names(text: str | None, option: str) -> tuple[str, ...] | None:
    if text is None:
        return None
    names = tuple(name.strip() for name in text.split(","))
    if "" in names:
        raise InputError(f"option {option} has an empty name between its commas.", option=option)
    return names


def _with_spec(
    verb: str,
    path: Path | None,
    file: str | None,
    table: str | None,
    query: str | None,
    given: dict[str, Any],
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Where the data are, and the options: those of the command line win over those of the spec."""
    options = {name: value for name, value in given.items() if value is not None}
    if path is None:
        if file is None:
            raise InputError("argument FILE is missing; name the data, or a --spec that does.", option="FILE")
        return {"data": file, "table": table, "query": query}, options
    from louver.schema.spec import read_spec

    spec = read_spec(path)
    source = spec.source
    data = file or spec.data
    if data is None:
        raise InputError(
            f"{path.name} names no source file and no FILE is given; add one.", file=path.name, option="FILE"
        )
    return (
        {
            "data": data,
            "table": table or source.table,
            "query": query or source.query,
            "wide": source.wide or None,
            "schema": spec.schema,
        },
        {**({"weight": source.weight} if source.weight else {}), **_resolved(spec, verb), **options},
    )


def _resolved(spec: Spec, verb: str) -> dict[str, Any]:
    """Options of the verb; file names in them are relative to the spec."""
    from louver.bounds.options import BoundsOptions
    from louver.schema.validate import validated

    options = spec.options(verb)
    validated(BoundsOptions, options, f"{spec.path.name} [{verb}]")
    for name in FILE_OPTIONS:
        if isinstance(options.get(name), str):
            options[name] = str(spec.path.parent / options[name])
    return options


def _check_writable(path: Path, read: Sequence[object]) -> None:
    """Refuse a report that could not be written, or that would replace a file the audit reads."""
    if path.is_dir() or not path.parent.is_dir():
        raise InputError(
            f"option --html cannot write {path}; name a file in a folder that exists.", option="--html"
        )
    for other in read:
        if isinstance(other, str | Path) and path.exists() and Path(other).exists() and path.samefile(other):
            raise InputError(
                f"option --html would replace {path.name}, which is read; name another.", option="--html"
            )


def _run_bounds(source: dict[str, Any], options: dict[str, Any], html: Path | None, as_json: bool) -> int:
    import json

    from louver.bounds import bounds as audit_verb
    from louver.bounds import compare, suggest

    audit: BoundsAudit | None = None
    comparison: Comparison | None = None
    suggestions: Suggestions | None = None
    fail_on = options.pop("fail_on", None)
    if options.get("arrangements") is not None:
        comparison = compare(**source, **options, fail_on=fail_on)
        summaries = [summary for _, summary in comparison.lines]
    else:
        audit = audit_verb(**source, **options, fail_on=fail_on)
        summaries = [audit.summary]
        if options.get("suggest"):
            with _progress("searching redesigns") as progress:
                suggestions = suggest(**source, **options, progress=progress)
    if html is not None:
        from louver.data.read import name_of
        from louver.report.bounds import bounds_report
        from louver.report.page import write_page

        name = name_of(source["data"], source["table"])
        write_page(
            bounds_report(source=name, audit=audit, comparison=comparison, suggestions=suggestions), html
        )
    results = [result for result in (audit, comparison, suggestions) if result is not None]
    if as_json:
        merged: dict[str, Any] = {}
        for result in results:
            merged.update(result.to_dict())
        typer.echo(json.dumps(merged, ensure_ascii=False))
    else:
        _print_results(audit, comparison, suggestions, html)
    return CHECK_FAILED if any(_is_disclosive(summary, fail_on) for summary in summaries) else 0


def _is_disclosive(summary: Summary, fail_on: str | None) -> bool:
    small, rows, zeros = summary.risk
    return {None: False, "small": small > 0, "rows": rows > 0, "any": small + rows + zeros > 0}[fail_on]


def _print_results(
    audit: BoundsAudit | None,
    comparison: Comparison | None,
    suggestions: Suggestions | None,
    html: Path | None,
) -> None:
    from itertools import islice

    if audit is not None:
        typer.echo(repr(audit))
        shown = list(islice(audit.disclosed_cells(), MAX_PRINTED + 1))
        for cell in shown[:MAX_PRINTED]:
            labels = f"{', '.join(cell.row.values())} → {', '.join(cell.col.values())}"
            typer.echo(f"  disclosed: {_printable(labels)} = {cell.lower}")
        if len(shown) > MAX_PRINTED:
            typer.echo("  ... --json or --html lists them all")
    if comparison is not None:
        typer.echo(
            f"{'small':>6} {'rows':>6} {'zeros':>7} {'size':>12}  arrangement (least disclosive first)"
        )
        for arrangement, s in comparison.lines:
            small, rows, zeros = s.risk
            typer.echo(f"{small:>6} {rows:>6} {zeros:>7} {f'{s.rows} x {s.cols}':>12}  {arrangement.label}")
    if suggestions is not None:
        typer.echo(repr(suggestions))
    if html is not None:
        typer.echo(f"Report: {html}")


def _printable(text: str) -> str:
    """Text without line breaks and without what a terminal would take for a command."""
    return "".join(letter if letter.isprintable() else "?" for letter in text)


@contextmanager
def _progress(what: str) -> Iterator[Callable[[float, str], None]]:
    """A progress bar on stderr, from the second second on, where stderr is a terminal."""
    import time

    if not sys.stderr.isatty():
        yield lambda share, told: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn(what), BarColumn(), TextColumn("{task.fields[told]}"), TimeElapsedColumn())
    bar = Progress(*columns, console=Console(stderr=True), transient=True)
    task = bar.add_task(what, total=1.0, told="")
    started = time.perf_counter()

    def report(share: float, told: str) -> None:
        if not bar.live.is_started and time.perf_counter() - started > 1:
            bar.start()
        bar.update(task, completed=min(share, 1.0), told=told)

    try:
        yield report
    finally:
        bar.stop()
