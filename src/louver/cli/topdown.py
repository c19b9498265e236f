"""`louver topdown`."""

from __future__ import annotations

from collections.abc import Mapping
from json import dumps
from pathlib import Path
from typing import Annotated, Any

import typer

from louver.cli.console import say, say_json, say_release
from louver.cli.parameters import (
    CHECK_FAILED,
    Given,
    Html,
    Json,
    Out,
    Payer,
    SpecAgain,
    command,
    group,
    help_alone,
    the_spec,
)
from louver.errors import InputError
from louver.report.page import check_page, write_page
from louver.report.topdown import plan_report, topdown_report
from louver.run import Run
from louver.schema.validate import validated
from louver.topdown import area, areas, check, estimate, export_nmf, extend, import_nmf, measure, plan
from louver.topdown import topdown as topdown_verb
from louver.topdown.options import (
    AreaOptions,
    AreasOptions,
    CheckOptions,
    ImportOptions,
    PlanOptions,
    RunOptions,
)

app = group(
    "Private microdata over a tree of regions, with public knowledge kept exactly. A spec file describes the release."
)
help_alone(app)

DONE = "Exit codes: 0 done, 2 bad input."
SpecArgument = Annotated[
    Path | None, typer.Argument(metavar="SPEC.toml", help="File with a [topdown] section.")
]


@command(
    app,
    CheckOptions,
    name="check",
    epilog="Exit codes: 0 consistent, 1 contradictory or not extendable, 2 bad input.",
)
def topdown_check(
    *, file: SpecArgument = None, given: Given, json: Json = False, spec: SpecAgain = None, run: Run
) -> int:
    """Check whether the public knowledge is consistent, and what it implies. Opens no records, spends nothing."""
    options = validated(CheckOptions, given)
    found = check(_spec(file, spec), invariants=options.invariants, table=options.placed(), run=run)
    say_json(found.to_json()) if json else say(repr(found))
    return 0 if found.passed else CHECK_FAILED


@command(app, PlanOptions, name="plan", epilog=DONE)
def topdown_plan(
    *,
    file: SpecArgument = None,
    given: Given,
    html: Html = None,
    json: Json = False,
    spec: SpecAgain = None,
    run: Run,
) -> int:
    """Forecast every error before anything is spent, and choose shares of the budget. Opens no records."""
    path = _spec(file, spec)
    if html is not None:
        check_page(html, [path])
    found = plan(path, **given, run=run)
    if html is not None:
        write_page(plan_report(found), html)
    say_json(found.to_json()) if json else say(repr(found))
    return 0


@command(app, RunOptions, only=("resume",), name="measure", epilog=DONE)
def topdown_measure(
    *,
    file: SpecArgument = None,
    out: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Folder for measurements and invariants; must not exist."),
    ] = None,
    ledger: Payer = None,
    given: Given,
    json: Json = False,
    spec: SpecAgain = None,
    run: Run,
) -> int:
    """Read the records once, debit the ledger, draw the noise, and write what may leave the confidential side to a folder."""
    measured = measure(_spec(file, spec), out=_folder(out), ledger=ledger, **given, run=run)
    say_json(measured.to_json()) if json else say(repr(measured))
    return 0


@command(
    app,
    RunOptions,
    only=("measurements", "engine", "estimator", "shrink", "intervals", "csv"),
    name="estimate",
    epilog=DONE,
)
def topdown_estimate(
    *,
    file: SpecArgument = None,
    out: Out = None,
    given: Given,
    json: Json = False,
    spec: SpecAgain = None,
    run: Run,
) -> int:
    """Make a release from measurements; never opens the records, costs no privacy, and may be repeated."""
    _measurements(given)
    release = estimate(_spec(file, spec), out=_folder(out), **given, report=topdown_report, run=run)
    say_release(release, out, as_json=json)
    return 0


@command(
    app,
    RunOptions,
    only=("engine", "resume", "estimator", "shrink", "intervals", "seed", "evaluate", "csv"),
    name="run",
    epilog=DONE,
)
def topdown_run(
    *,
    file: SpecArgument = None,
    out: Out = None,
    ledger: Payer = None,
    given: Given,
    json: Json = False,
    spec: SpecAgain = None,
    run: Run,
) -> int:
    """Measure, estimate and release in one step."""
    release = topdown_verb(_spec(file, spec), out=out, ledger=ledger, **given, report=topdown_report, run=run)
    say_release(release, out, as_json=json)
    return 0


@command(
    app,
    RunOptions,
    only=("engine", "resume", "intervals", "seed", "evaluate", "csv"),
    name="extend",
    epilog=DONE,
)
def topdown_extend(
    *,
    file: SpecArgument = None,
    out: Out = None,
    ledger: Payer = None,
    given: Given,
    json: Json = False,
    spec: SpecAgain = None,
    run: Run,
) -> int:
    """Give the people of a release new and finer attributes, paid for by the same ledger; everything else about them stays the same."""
    release = extend(_spec(file, spec), out=out, ledger=ledger, **given, report=topdown_report, run=run)
    say_release(release, out, as_json=json)
    return 0


@command(app, AreasOptions, name="areas", epilog=DONE)
def topdown_areas(
    *,
    release: Annotated[
        Path | None, typer.Argument(metavar="RELEASE", help="Release directory with intervals.")
    ] = None,
    given: Given,
    json: Json = False,
    run: Run,
) -> int:
    """Count the people of many areas of a release in one table, with standard errors and 90 % intervals."""
    if release is None:
        raise InputError("argument RELEASE is missing; name a release directory.", option="RELEASE")
    found = areas(release, **given, run=run)
    say_json(found.to_json()) if json else say(repr(found))
    return 0


@command(app, ImportOptions, name="import-nmf", epilog=DONE)
def topdown_import(
    *,
    folder: Annotated[
        Path | None,
        typer.Argument(metavar="FOLDER", help="Folder of one product, with County.parquet and others."),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Folder for spec, leaves and measurements; must not exist."),
    ] = None,
    given: Given,
    json: Json = False,
    run: Run,
) -> int:
    """Read noisy measurement files that the Census Bureau published, to estimate from; costs no privacy."""
    if folder is None:
        raise InputError("argument FOLDER is missing; name the folder of one product.", option="FOLDER")
    found = import_nmf(folder, out=_folder(out), **given, run=run)
    say_json(found.to_json()) if json else say(repr(found))
    return 0


@command(app, RunOptions, only=("measurements",), name="export-nmf", epilog=DONE)
def topdown_export(
    *,
    file: SpecArgument = None,
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Folder for the files; must not exist.")
    ] = None,
    given: Given,
    json: Json = False,
    spec: SpecAgain = None,
    run: Run,
) -> int:
    """Write measurements in the layout of noisy measurement files, for programs that read these; costs no privacy."""
    path = export_nmf(_spec(file, spec), measurements=_measurements(given), out=_folder(out), run=run)
    content = {"files": str(path)}
    say_json(dumps(content)) if json else say(f"Written to {path.name}")
    return 0


@command(app, AreaOptions, name="area", epilog=DONE)
def topdown_area(
    *,
    release: Annotated[
        Path | None, typer.Argument(metavar="RELEASE", help="Release directory with intervals.")
    ] = None,
    given: Given,
    json: Json = False,
    run: Run,
) -> int:
    """Count the people of any set of leaves or regions of a release, with standard errors and 90 % intervals."""
    if release is None:
        raise InputError("argument RELEASE is missing; name a release directory.", option="RELEASE")
    if "leaves" not in given:
        raise InputError(
            "option --leaves is missing; name a file with the list of leaves.", option="--leaves"
        )
    found = area(release, **given, run=run)
    say_json(found.to_json()) if json else say(repr(found))
    return 0


def _measurements(given: Mapping[str, Any]) -> str:
    if "measurements" not in given:
        raise InputError(
            "option --measurements is missing; name the folder that `measure` wrote.", option="--measurements"
        )
    return str(given["measurements"])


def _spec(file: Path | None, spec: Path | None) -> Path:
    return the_spec(file, spec, "the spec")


def _folder(out: Path | None) -> Path:
    if out is None:
        raise InputError("option --out is missing; name a new folder.", option="--out")
    return out
