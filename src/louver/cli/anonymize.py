"""`louver anonymize`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from louver.cli import VERBS
from louver.cli.console import say, say_json
from louver.cli.legacy import Query, SpecFile, Table
from louver.cli.legacy import names_of as _names
from louver.cli.legacy import pairs_of as _pairs
from louver.cli.legacy import weights_of as _weights
from louver.cli.legacy import whole_numbers as _whole_numbers
from louver.cli.legacy import with_spec as _with_spec
from louver.cli.parameters import Json, command
from louver.errors import InputError
from louver.run import Run

app = typer.Typer(help=VERBS["anonymize"], rich_markup_mode=None, add_completion=False)


@command(app, epilog="Exit codes: 0 done, 2 bad input.")
def anonymize(
    *,
    run: Run,
    file: Annotated[
        str | None,
        typer.Argument(
            metavar="FILE", help="CSV, CSV.gz, Parquet or DuckDB file, or a postgresql:// address."
        ),
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
    return _run_anonymize(source, options, out, html, ledger, json, run)


def _run_anonymize(
    source: dict[str, Any],
    options: dict[str, Any],
    out: Path,
    html: Path | None,
    ledger: Path | None,
    as_json: bool,
    run: Run,
) -> int:
    from louver.anonymize import anonymize as anonymize_verb
    from louver.privacy.ledger import Ledger, ledger_beside
    from louver.release.manifest import check_out
    from louver.report.anonymize import anonymize_report, inside_report
    from louver.report.page import check_page, write_page

    check_out(out)
    if html is not None:
        check_page(html, [Path(str(one)) for one in (source["data"], options.get("population")) if one])
    beside = ledger_beside(Path(source["data"]))
    payer = ledger or (beside if beside.is_file() else None)
    if payer is not None:
        Ledger(payer).state()
    release = anonymize_verb(
        **source, **options, progress=lambda share: run.report("forming classes", share, 1.0)
    )
    release.write(out, anonymize_report(release), payer)
    told = [repr(release), f"Release: {out}"]
    if payer is not None:
        told.append(f"Logged as an exact disclosure in {payer}")
    if html is not None:
        write_page(inside_report(release), html)
        told.append(f"For the steward, not for release: {html}")
    say_json(release.to_json()) if as_json else say("\n".join(told))
    return 0
