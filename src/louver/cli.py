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
    from fractions import Fraction

    from louver.bounds import BoundsAudit, Comparison, Suggestions, Summary
    from louver.privacy.budget import Measure
    from louver.privacy.ledger import LedgerState
    from louver.schema.spec import Spec

__all__ = ["app", "main"]

VERBS = ("bounds", "anonymize", "groups", "verify", "demo", "topdown", "ledger")
CHECK_FAILED, BAD_INPUT, INTERNAL, INTERRUPTED, OUTPUT_CLOSED = 1, 2, 70, 130, 141
FILE_OPTIONS = ("recode", "given", "cells", "arrangements", "domain", "population")
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


Epsilon = Annotated[str | None, typer.Option(metavar="E", help="Amount in pure epsilon, such as 0.5 or 1/2.")]
Rho = Annotated[str | None, typer.Option(metavar="R", help="Amount in rho (zero-concentrated), such as 0.1.")]
Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON and nothing else.")]
Table = Annotated[
    str | None, typer.Option(metavar="NAME", help="Table in a DuckDB file or PostgreSQL database.")
]
Query = Annotated[str | None, typer.Option(metavar="SQL", help="Query for a PostgreSQL database.")]
SpecFile = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="TOML file with the same options, source and attributes."),
]


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
    commands = list(getattr(getattr(context, "command", None), "commands", None) or ())
    if option is None and commands:
        return f"there is no such command; choose {', '.join(commands[:-1])} or {commands[-1]}."
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
    table: Table = None,
    query: Query = None,
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
    json: Json = False,
    spec: SpecFile = None,
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


@app.command(epilog="Exit codes: 0 done, 2 bad input.")
def anonymize(
    file: Annotated[
        str | None, typer.Argument(help="CSV, CSV.gz, Parquet or DuckDB file, or a postgresql:// address.")
    ] = None,
    quasi: Annotated[
        str | None, typer.Option(metavar="A,B,C", help="Quasi-identifying columns, separated by commas.")
    ] = None,
    k: Annotated[
        int | None,
        typer.Option("-k", metavar="K", help="Records that share their quasi-identifiers (default 5)."),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Release directory; must not exist.")
    ] = None,
    identifying: Annotated[str | None, typer.Option(metavar="A,B", help="Columns to drop.")] = None,
    sensitive: Annotated[
        str | None, typer.Option(metavar="A,B", help="Columns that --l and --t speak of.")
    ] = None,
    ordered: Annotated[
        str | None,
        typer.Option(metavar="A,B", help="Quasi-identifiers in text whose categories have an order."),
    ] = None,
    hierarchy: Annotated[
        list[str] | None,
        typer.Option(metavar="A=FILE", help="Hierarchy in the layout of ARX; may be repeated."),
    ] = None,
    weights: Annotated[
        str | None, typer.Option(metavar="A=.8,B=.2", help="Importance of quasi-identifiers (default 1).")
    ] = None,
    method: Annotated[
        str | None,
        typer.Option(
            metavar="M",
            help="auto (default), exact, split-carry, greedy, sorted, mondrian, mondrian-relaxed, k-member; "
            "weaker: freeform-greedy, freeform-sort-greedy, freeform-hungarian.",
        ),
    ] = None,
    seconds: Annotated[
        float | None, typer.Option(metavar="S", help="Time for auto, exact and split-carry (default 10).")
    ] = None,
    steps: Annotated[
        int | None,
        typer.Option(
            metavar="N", help="In place of --seconds: rounds of auto, for a run that can be repeated."
        ),
    ] = None,
    normalise: Annotated[
        bool, typer.Option("--normalise", help="Scale the weights so that they add up to one.")
    ] = False,
    one_hot: Annotated[
        str | None,
        typer.Option(metavar="A,B", help="Columns whose loss counts one binary attribute per category."),
    ] = None,
    sets: Annotated[
        int | None, typer.Option(metavar="S", help="Split & Carry: k-sets in a sub-problem (default 5).")
    ] = None,
    boundary: Annotated[
        int | None, typer.Option(metavar="N", help="Split & Carry: boundary records (default k).")
    ] = None,
    carry: Annotated[
        str | None,
        typer.Option(
            metavar="classes|subset|bubble", help="Split & Carry: what goes to the next sub-problem."
        ),
    ] = None,
    size: Annotated[
        int | None, typer.Option(metavar="P", help="Bubble carry: records in a sub-problem.")
    ] = None,
    accepted: Annotated[
        int | None, typer.Option(metavar="A", help="Bubble carry: classes kept of a sub-problem.")
    ] = None,
    subproblem_seconds: Annotated[
        float | None, typer.Option(metavar="S", help="Split & Carry: time for one sub-problem.")
    ] = None,
    l: Annotated[  # noqa: E741 - the field's own name
        float | None, typer.Option("--l", metavar="L", help="l-diversity of the sensitive columns.")
    ] = None,
    l_kind: Annotated[
        str | None, typer.Option(metavar="distinct|entropy", help="Sort of l-diversity (default distinct).")
    ] = None,
    t: Annotated[
        float | None, typer.Option("--t", metavar="T", help="t-closeness of the sensitive columns.")
    ] = None,
    distance: Annotated[
        str | None,
        typer.Option(metavar="D", help="Distance for --t: equal (default), ordered or hierarchical."),
    ] = None,
    suppress: Annotated[
        float | None, typer.Option(metavar="SHARE", help="Share of records that may be left out (default 0).")
    ] = None,
    population: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Population with the quasi-identifiers: journalist risk."),
    ] = None,
    population_count: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="Column of the population that counts people.")
    ] = None,
    k_map: Annotated[
        bool, typer.Option("--k-map", help="k counts matching people of the population, not records.")
    ] = False,
    sampling_weight: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help="People that a record stands for: journalist risk."),
    ] = None,
    against: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="RELEASE",
            help="Earlier release of the same data; says what both disclose together. May be repeated.",
        ),
    ] = None,
    ledger: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Ledger to log the file in (default: beside FILE, where there is one)."
        ),
    ] = None,
    html: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Report for the steward, before and after; keep it inside."),
    ] = None,
    curve: Annotated[
        str | None,
        typer.Option(
            metavar="K,K,...", help="Trace the risk-utility curve at these k, for --html and --json."
        ),
    ] = None,
    missing: Annotated[
        str | None,
        typer.Option(
            metavar="category|match|error", help="What a missing value is (default: a category of its own)."
        ),
    ] = None,
    format: Annotated[
        str | None,
        typer.Option(metavar="labels|bounds", help="Intervals as one label (default) or as two columns."),
    ] = None,
    keep_order: Annotated[
        bool, typer.Option("--keep-order", help="Leave the rows in the order of the source; recorded.")
    ] = False,
    class_id: Annotated[bool, typer.Option("--class-id", help="Add the number of the class.")] = False,
    table: Table = None,
    query: Query = None,
    json: Json = False,
    spec: SpecFile = None,
) -> int:
    """Make microdata k-anonymous with little information loss."""
    given = {
        "quasi": _names(quasi, "--quasi"),
        "k": k,
        "identifying": _names(identifying, "--identifying"),
        "sensitive": _names(sensitive, "--sensitive"),
        "ordered": _names(ordered, "--ordered"),
        "hierarchy": _pairs(hierarchy, "--hierarchy"),
        "weights": _weights(weights),
        "normalise": normalise or None,
        "one_hot": _names(one_hot, "--one-hot"),
        "method": method,
        "seconds": seconds,
        "steps": steps,
        "sets": sets,
        "boundary": boundary,
        "carry": carry,
        "size": size,
        "accepted": accepted,
        "subproblem_seconds": subproblem_seconds,
        "population": population if population is None else str(population),
        "population_count": population_count,
        "k_map": k_map or None,
        "sampling_weight": sampling_weight,
        "against": tuple(map(str, against)) if against else None,
        "curve": _whole_numbers(curve, "--curve"),
        "l": l,
        "l_kind": l_kind,
        "t": t,
        "distance": distance,
        "suppress": suppress,
        "missing": missing,
        "format": format,
        "keep_order": keep_order or None,
        "class_id": class_id or None,
    }
    source, options = _with_spec("anonymize", spec, file, table, query, given)
    if source.pop("wide", None) or options.pop("weight", None):
        raise InputError(
            "the source of anonymize is records, one person a row; drop weight and wide.", option="--spec"
        )
    if out is None:
        raise InputError("option --out is missing; name a folder for the release.", option="--out")
    return _run_anonymize(source, options, out, html, ledger, json)


@app.command()
def groups(
    file: Annotated[
        str | None, typer.Argument(help="CSV, CSV.gz, Parquet or DuckDB file, or a postgresql:// address.")
    ] = None,
    unit: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="Column that says which unit a record belongs to.")
    ] = None,
    size: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="For a table counted before: column of the size.")
    ] = None,
    group_counts: Annotated[
        str | None,
        typer.Option("--groups", metavar="COLUMN", help="For a table counted before: number of groups."),
    ] = None,
    regions: Annotated[
        str | None, typer.Option(metavar="R1,R2", help="Columns of the region levels, coarsest first.")
    ] = None,
    domain: Annotated[
        str | None, typer.Option(metavar="FILE", help="Public list of the leaf regions, with these columns.")
    ] = None,
    domain_from_data: Annotated[
        bool, typer.Option("--domain-from-data", help="Take the regions from the data; discloses them.")
    ] = False,
    max_size: Annotated[
        int | None, typer.Option(metavar="N", help="Largest size told apart; larger groups count with it.")
    ] = None,
    min_size: Annotated[
        int | None,
        typer.Option(
            metavar="0|1", help="Smallest size told apart; 1 where no group can be empty (default 0)."
        ),
    ] = None,
    epsilon: Epsilon = None,
    rho: Rho = None,
    shares: Annotated[
        str | None,
        typer.Option(metavar="S,S,..", help="chosen (default), equal, or a share for total and every level."),
    ] = None,
    mechanism: Annotated[
        str | None,
        typer.Option(
            metavar="M", help="louver, or one of the paper's: M_H^dp, M_c^dp, ... (default: by --neighbours)."
        ),
    ] = None,
    noise: Annotated[
        str | None,
        typer.Option(
            metavar="SOURCE", help="louver (default), or opendp, which a stopped run cannot replay."
        ),
    ] = None,
    quantity: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="What a record adds to its unit's size (default 1).")
    ] = None,
    max_quantity: Annotated[
        int | None, typer.Option(metavar="Z", help="Most that a record may add (default 1).")
    ] = None,
    across: Annotated[
        str | None, typer.Option(metavar="error|split", help="Units in several regions (default: an error).")
    ] = None,
    total: Annotated[
        str | None,
        typer.Option(
            metavar="public|noisy", help="Whether the number of groups is published exactly (default)."
        ),
    ] = None,
    neighbours: Annotated[
        str | None,
        typer.Option(metavar="RELATION", help="add-remove-record (default), change-record, add-remove-unit."),
    ] = None,
    ledger: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Who pays (default: the ledger beside the data).")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Release directory; must not exist.")
    ] = None,
    forecast: Annotated[
        int | None,
        typer.Option(
            metavar="GROUPS", help="Only forecast the errors for about so many groups; opens no data."
        ),
    ] = None,
    seed: Annotated[
        int | None, typer.Option(metavar="S", help="For tests and demos: repeatable, NOT private, no ledger.")
    ] = None,
    evaluate: Annotated[
        bool, typer.Option("--evaluate", help="Compare with the truth; needs --seed, never for release.")
    ] = False,
    as_published: Annotated[
        bool, typer.Option("--as-published", help="M_c^ch with the paper's noise, which is NOT private.")
    ] = False,
    table: Table = None,
    query: Query = None,
    json: Json = False,
    spec: Annotated[
        Path | None, typer.Option(metavar="FILE", help="TOML file with the same options and source.")
    ] = None,
) -> int:
    """Release how many groups of each size every region has, with differential privacy."""
    given = {
        "unit": unit,
        "size": size,
        "groups": group_counts,
        "regions": _names(regions, "--regions"),
        "domain": domain,
        "domain_from_data": domain_from_data or None,
        "max_size": max_size,
        "min_size": min_size,
        "epsilon": epsilon,
        "rho": rho,
        "shares": shares if shares in (None, "chosen", "equal") else _names(shares, "--shares"),
        "mechanism": mechanism,
        "noise": noise,
        "quantity": quantity,
        "max_quantity": max_quantity,
        "across": across,
        "total": total,
        "neighbours": neighbours,
        "seed": seed,
        "evaluate": evaluate or None,
        "as_published": as_published or None,
    }
    if forecast is not None and spec is None:
        return _forecast_groups(
            {key: value for key, value in given.items() if value is not None}, forecast, json
        )
    source, options = _with_spec("groups", spec, file, table, query, given)
    if source.pop("wide", None) or options.pop("weight", None):
        raise InputError(
            "the source of groups has no weight and no wide columns; use --groups.", option="--spec"
        )
    source.pop("schema", None)
    if forecast is not None:
        return _forecast_groups(options, forecast, json)
    from louver.groups import groups as groups_verb
    from louver.report.groups import groups_report

    release = groups_verb(**source, **options, out=out, ledger=ledger, report=groups_report)
    told = repr(release) if out is None else f"{release!r}\nRelease: {out}"
    typer.echo(release.to_json() if json else told)
    return 0


def _forecast_groups(options: dict[str, Any], expect: int, as_json: bool) -> int:
    import json

    from louver.groups import preview

    plan, found = preview(expect=expect, **options)
    levels = [
        {
            "name": level.name,
            "regions": level.n_regions,
            "share": float(level.share),
            "measured_l1": before.l1,
            "forecast_l1": after.l1,
            "forecast_emd": after.emd,
        }
        for level, before, after in zip(plan.levels, found.before, found.after, strict=True)
    ]
    if as_json:
        typer.echo(json.dumps({"mechanism": plan.mechanism.name, "levels": levels}))
        return 0
    typer.echo(
        f"Forecast for {plan.mechanism.name} on {expect:,} groups spread evenly, {plan.loss}; nothing is spent:"
    )
    for entry in levels:
        typer.echo(
            f"  {entry['name']}: {entry['regions']:,} regions, share {entry['share']:.3f}, "
            f"L1 error about {entry['forecast_l1']:,.0f}, earth mover's about {entry['forecast_emd']:,.0f}"
        )
    return 0


topdown_app = typer.Typer(
    help="Private microdata over a tree of regions, with public knowledge kept exactly. Everything is asked for in a spec file."
)
app.add_typer(topdown_app, name="topdown")

TopDownSpec = Annotated[
    Path | None, typer.Argument(metavar="SPEC.toml", help="File with a [topdown] section.")
]
Engine = Annotated[
    str, typer.Option(metavar="local:N", help="Cores to work on; results do not depend on it.")
]
Out = Annotated[Path | None, typer.Option(metavar="DIR", help="Release directory; must not exist.")]
Payer = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Who pays (default: the ledger beside the data).")
]
Csv = Annotated[bool, typer.Option("--csv", help="Write the microdata as CSV too.")]
Resume = Annotated[
    bool, typer.Option("--resume", help="Carry on a run that was interrupted; costs nothing more.")
]


@topdown_app.callback(invoke_without_command=True)
def _topdown(context: typer.Context) -> None:
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


@topdown_app.command(
    "check", epilog="Exit codes: 0 consistent, 1 contradictory or not extendable, 2 bad input."
)
def topdown_check(
    spec: TopDownSpec = None,
    invariants: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Values known already: columns invariant, level, region, value."),
    ] = None,
    table: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Counts of one region; can they be divided among its leaves?"),
    ] = None,
    level: Annotated[
        str | None, typer.Option(metavar="LEVEL", help="Level of the region of --table.")
    ] = None,
    region: Annotated[str | None, typer.Option(metavar="CODE", help="The region of --table.")] = None,
    json: Json = False,
) -> int:
    """Is the public knowledge consistent, and what follows from it? Opens no records, spends nothing."""
    from louver.topdown import check

    if (table is None) != (level is None) or (table is None) != (region is None):
        raise InputError(
            "options --table, --level and --region belong together; give all three.", option="--table"
        )
    placed = None if table is None else (level or "", region or "", table)
    found = check(_spec_file(spec), invariants=invariants, table=placed)
    typer.echo(found.to_json() if json else repr(found))
    return 0 if found.passed else CHECK_FAILED


@topdown_app.command("measure", epilog="Exit codes: 0 done, 2 bad input.")
def topdown_measure(
    spec: TopDownSpec = None,
    out: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Folder for measurements and invariants; must not exist."),
    ] = None,
    ledger: Payer = None,
    resume: Resume = False,
    json: Json = False,
) -> int:
    """Read the records once, pay, draw the noise, and leave what may cross the wall in a folder."""
    from louver.topdown import measure

    measured = measure(_spec_file(spec), out=_out_folder(out), ledger=ledger, resume=resume)
    typer.echo(measured.to_json() if json else repr(measured))
    return 0


@topdown_app.command("estimate", epilog="Exit codes: 0 done, 2 bad input.")
def topdown_estimate(
    spec: TopDownSpec = None,
    measurements: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Folder that measure left, or a release directory.")
    ] = None,
    out: Out = None,
    engine: Engine = "local:1",
    csv: Csv = False,
    json: Json = False,
) -> int:
    """Make a release from measurements; never opens the records, costs no privacy, and may be repeated."""
    from louver.report.topdown import topdown_report
    from louver.topdown import estimate

    if measurements is None:
        raise InputError(
            "option --measurements is missing; name the folder that measure left.", option="--measurements"
        )
    path, folder = _spec_file(spec), _out_folder(out)
    with _level_progress() as progress:
        release = estimate(
            path,
            measurements=measurements,
            out=folder,
            engine=engine,
            csv=csv,
            report=topdown_report,
            progress=progress,
        )
    typer.echo(release.to_json() if json else f"{release!r}\nRelease: {folder}")
    return 0


@topdown_app.command("run", epilog="Exit codes: 0 done, 2 bad input.")
def topdown_run(
    spec: TopDownSpec = None,
    out: Out = None,
    engine: Engine = "local:1",
    resume: Resume = False,
    ledger: Payer = None,
    seed: Annotated[
        int | None, typer.Option(metavar="S", help="For tests and demos: repeatable, NOT private, no ledger.")
    ] = None,
    evaluate: Annotated[
        bool, typer.Option("--evaluate", help="Compare with the truth; needs --seed, never for release.")
    ] = False,
    csv: Csv = False,
    json: Json = False,
) -> int:
    """Measure, estimate and release in one go."""
    from louver.report.topdown import topdown_report
    from louver.topdown import topdown as topdown_verb

    path = _spec_file(spec)
    with _level_progress() as progress:
        release = topdown_verb(
            path,
            out=out,
            ledger=ledger,
            engine=engine,
            resume=resume,
            csv=csv,
            seed=seed,
            evaluate=evaluate,
            report=topdown_report,
            progress=progress,
        )
    told = repr(release) if out is None else f"{release!r}\nRelease: {out}"
    typer.echo(release.to_json() if json else told)
    return 0


def _spec_file(spec: Path | None) -> Path:
    if spec is None:
        raise InputError("argument SPEC.toml is missing; name the spec.", option="SPEC.toml")
    return spec


def _out_folder(out: Path | None) -> Path:
    if out is None:
        raise InputError("option --out is missing; name a new folder.", option="--out")
    return out


@contextmanager
def _level_progress() -> Iterator[Callable[[str, int, int], None]]:
    """The progress bar for work that reports a level, batches done and batches in all."""
    with _progress("estimating") as report:
        yield lambda level, done, total: report(done / total, f"{level} {done}/{total}")


@app.command(epilog="Exit codes: 0 every promise holds, 1 one does not, 2 no release directory.")
def verify(
    release: Annotated[Path, typer.Argument(metavar="DIR", help="Release directory.")],
    json: Json = False,
) -> int:
    """Recompute every promise of a release from its published files."""
    from louver.release.verify import verify as verify_release

    outcome = verify_release(release)
    typer.echo(outcome.to_json() if json else repr(outcome))
    return 0 if outcome.passed else CHECK_FAILED


@app.command()
def demo(
    out: Annotated[
        Path, typer.Option(metavar="FOLDER", help="Folder for the reports; made where there is none.")
    ] = Path("demo-output"),
    seconds: Annotated[float, typer.Option(metavar="S", help="Time for the redesign search.")] = 15.0,
) -> int:
    """Audit one embedded sample and release group sizes of another, with reports to open in a browser."""
    from louver.demo import run_demo

    with _progress("searching redesigns") as progress:
        reports = run_demo(out, seconds, progress)
    for report in reports:
        typer.echo(f"Open {report} in a browser.")
    return 0


ledger_app = typer.Typer(help="Budgets: what may be spent on a data set, and what has been.")
app.add_typer(ledger_app, name="ledger")

LedgerFile = Annotated[Path | None, typer.Argument(metavar="FILE", help="The ledger file.")]


@ledger_app.callback(invoke_without_command=True)
def _ledger(context: typer.Context) -> None:
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


@ledger_app.command("init")
def ledger_init(
    file: LedgerFile = None,
    epsilon: Epsilon = None,
    rho: Rho = None,
    neighbours: Annotated[
        str,
        typer.Option(
            metavar="RELATION", help="add-remove-record, change-record or add-remove-unit; fixed for good."
        ),
    ] = "add-remove-record",
    json: Json = False,
) -> int:
    """Make a ledger and grant it a first amount; the amount's measure stays the ledger's."""
    from louver.privacy.ledger import Ledger
    from louver.privacy.neighbours import Relation

    if neighbours not in list(Relation):
        raise InputError(f"option --neighbours must be one of {', '.join(Relation)}.", option="--neighbours")
    measure, amount = _ledger_amount(epsilon, rho)
    path = _ledger_file(file)
    return _show_ledger(Ledger.create(path, measure, Relation(neighbours), amount).state(), path, json)


@ledger_app.command("grant")
def ledger_grant(
    file: LedgerFile = None, epsilon: Epsilon = None, rho: Rho = None, json: Json = False
) -> int:
    """Allow more to be spent."""
    from louver.privacy.ledger import Ledger

    measure, amount = _ledger_amount(epsilon, rho)
    path = _ledger_file(file)
    return _show_ledger(Ledger(path).grant(amount, measure), path, json)


@ledger_app.command("show")
def ledger_show(file: LedgerFile = None, json: Json = False) -> int:
    """Print what is granted, spent, left and pending."""
    from louver.privacy.ledger import Ledger

    path = _ledger_file(file)
    return _show_ledger(Ledger(path).state(), path, json)


@ledger_app.command("abandon")
def ledger_abandon(
    file: LedgerFile = None,
    entry: Annotated[
        int | None, typer.Option(metavar="N", help="Number of the pending entry, as show prints it.")
    ] = None,
    json: Json = False,
) -> int:
    """Give up an interrupted debit: its key is erased, its amount stays spent."""
    from louver.privacy.ledger import Ledger

    path = _ledger_file(file)
    if entry is None:
        raise InputError(
            "option --entry is missing; `louver ledger show` prints the numbers.", option="--entry"
        )
    ledger = Ledger(path)
    ledger.abandon(entry)
    return _show_ledger(ledger.state(), path, json)


@ledger_app.command("verify")
def ledger_verify(
    file: LedgerFile = None,
    releases: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Folder of releases whose recorded heads are checked."),
    ] = None,
    json: Json = False,
) -> int:
    """Check that the past was neither edited nor rolled back; exit 1 if it was."""
    import json as json_module

    from louver.privacy.ledger import Ledger

    path = _ledger_file(file)
    check = Ledger(path).verify(releases)
    if json:
        typer.echo(json_module.dumps(check.to_dict()))
    else:
        for problem in check.problems:
            typer.echo(f"  {problem}")
        verdict = "sound" if check.is_sound else "NOT SOUND"
        typer.echo(f"{path.name}: {verdict}; {check.n_entries} entries, {check.n_releases} releases checked")
    return 0 if check.is_sound else CHECK_FAILED


def _ledger_file(file: Path | None) -> Path:
    if file is None:
        raise InputError("argument FILE is missing; name the ledger.", option="FILE")
    return file


def _ledger_amount(epsilon: str | None, rho: str | None) -> tuple[Measure, Fraction]:
    from louver.privacy.budget import Measure, fraction_of

    if (epsilon is None) == (rho is None):
        raise InputError("give the amount as --epsilon or as --rho, one of them.", option="--epsilon")
    if epsilon is not None:
        return Measure.EPSILON, fraction_of(epsilon, "--epsilon")
    return Measure.RHO, fraction_of(rho, "--rho")


def _show_ledger(state: LedgerState, file: Path, as_json: bool) -> int:
    import json

    if as_json:
        typer.echo(json.dumps(state.to_dict()))
        return 0
    typer.echo(
        f"{file.name}: {state.measure} {state.remaining} left of {state.granted} granted ({state.neighbours}); "
        f"{len(state.sealed)} debits sealed, head {state.head.entry} {state.head.hash[:12]}"
    )
    for entry, body in state.pending.items():
        typer.echo(f"  entry {entry} is pending: {body['amount']} for {body['purpose']}")
    for what in state.disclosures:
        typer.echo(f"  disclosed exactly: {what}")
    return 0


def _names(text: str | None, option: str) -> tuple[str, ...] | None:
    if text is None:
        return None
    names = tuple(name.strip() for name in text.split(","))
    if "" in names:
        raise InputError(f"option {option} has an empty name between its commas.", option=option)
    return names


def _whole_numbers(text: str | None, option: str) -> tuple[int, ...] | None:
    names = _names(text, option)
    if names is None:
        return None
    if not all(name.isdecimal() and name.isascii() for name in names):
        raise InputError(f"option {option} needs whole numbers between its commas.", option=option)
    return tuple(map(int, names))


def _pairs(entries: list[str] | None, option: str) -> dict[str, str] | None:
    if not entries:
        return None
    pairs = dict(entry.split("=", 1) for entry in entries if "=" in entry)
    if len(pairs) < len(entries) or not all(name and value for name, value in pairs.items()):
        raise InputError(f"option {option} needs NAME=VALUE, each name once.", option=option)
    return pairs


def _weights(text: str | None) -> dict[str, float] | None:
    pairs = _pairs(None if text is None else text.split(","), "--weights")
    try:
        return None if pairs is None else {name: float(value) for name, value in pairs.items()}
    except ValueError:
        raise InputError("option --weights needs a number after each =.", option="--weights") from None


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
    from importlib import import_module

    from louver.schema.validate import validated

    options = spec.options(verb)
    model = getattr(import_module(f"louver.{verb}.options"), f"{verb.capitalize()}Options")
    validated(model, options, f"{spec.path.name} [{verb}]")
    for name in FILE_OPTIONS:
        if isinstance(options.get(name), str):
            options[name] = str(spec.path.parent / options[name])
    if "against" in options:
        options["against"] = tuple(str(spec.path.parent / folder) for folder in options["against"])
    for name, file in options.get("hierarchy", {}).items():
        options["hierarchy"][name] = str(spec.path.parent / file)
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


def _run_anonymize(
    source: dict[str, Any],
    options: dict[str, Any],
    out: Path,
    html: Path | None,
    ledger: Path | None,
    as_json: bool,
) -> int:
    from louver.anonymize import anonymize as anonymize_verb
    from louver.privacy.ledger import Ledger, ledger_beside
    from louver.release.manifest import check_out
    from louver.report.anonymize import anonymize_report, inside_report
    from louver.report.page import write_page
    from louver.run import Run

    check_out(out)
    if html is not None:
        _check_writable(html, [source["data"], options.get("population")])
    beside = ledger_beside(Path(source["data"]))
    payer = ledger or (beside if beside.is_file() else None)
    if payer is not None:
        Ledger(payer).state()
    with _progress("forming classes") as report:
        run = Run(lambda stage, done, total: report(done / total, f"{done / total:.0%}"))
        release = anonymize_verb(**source, **options, run=run)
    release.write(out, anonymize_report(release), payer)
    told = [repr(release), f"Release: {out}"]
    if payer is not None:
        told.append(f"Logged as an exact disclosure in {payer}")
    if html is not None:
        write_page(inside_report(release), html)
        told.append(f"For the steward, not for release: {html}")
    typer.echo(release.to_json() if as_json else "\n".join(told))
    return 0


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
