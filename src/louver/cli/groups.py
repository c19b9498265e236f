"""`louver groups`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from louver.cli import VERBS
from louver.cli.console import say, say_json
from louver.cli.legacy import Epsilon, Query, Rho, Table
from louver.cli.legacy import names_of as _names
from louver.cli.legacy import with_spec as _with_spec
from louver.cli.parameters import Json, command
from louver.errors import InputError

app = typer.Typer(help=VERBS["groups"], rich_markup_mode=None, add_completion=False)


@command(app)
def groups(
    file: Annotated[
        str | None,
        typer.Argument(
            metavar="FILE", help="CSV, CSV.gz, Parquet or DuckDB file, or a postgresql:// address."
        ),
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
            metavar="public|noisy",
            help="noisy (default), or public: the number of groups is published exactly, and who is alone is not protected.",
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
    say_json(release.to_json()) if json else say(told)
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
        say_json(json.dumps({"mechanism": plan.mechanism.name, "levels": levels}))
        return 0
    say(
        f"Forecast for {plan.mechanism.name} on {expect:,} groups spread evenly, {plan.loss}; nothing is spent:"
    )
    for entry in levels:
        say(
            f"  {entry['name']}: {entry['regions']:,} regions, share {entry['share']:.3f}, "
            f"L1 error about {entry['forecast_l1']:,.0f}, earth mover's about {entry['forecast_emd']:,.0f}"
        )
    return 0
