"""`louver topdown`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from louver.cli.console import say, say_json
from louver.cli.parameters import CHECK_FAILED, Json, command, group, help_alone
from louver.errors import InputError
from louver.report.topdown import topdown_report
from louver.run import Run
from louver.topdown import check, estimate, measure
from louver.topdown import topdown as topdown_verb

app = group(
    "Private microdata over a tree of regions, with public knowledge kept exactly. Everything is asked for in a spec file."
)
help_alone(app)

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


@command(
    app, name="check", epilog="Exit codes: 0 consistent, 1 contradictory or not extendable, 2 bad input."
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
    if (table is None) != (level is None) or (table is None) != (region is None):
        raise InputError(
            "options --table, --level and --region belong together; give all three.", option="--table"
        )
    placed = None if table is None else (level or "", region or "", table)
    found = check(_spec_file(spec), invariants=invariants, table=placed)
    say_json(found.to_json()) if json else say(repr(found))
    return 0 if found.passed else CHECK_FAILED


@command(app, name="measure", epilog="Exit codes: 0 done, 2 bad input.")
def topdown_measure(
    *,
    run: Run,
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
    measured = measure(_spec_file(spec), out=_out_folder(out), ledger=ledger, resume=resume, run=run)
    say_json(measured.to_json()) if json else say(repr(measured))
    return 0


@command(app, name="estimate", epilog="Exit codes: 0 done, 2 bad input.")
def topdown_estimate(
    *,
    run: Run,
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
    if measurements is None:
        raise InputError(
            "option --measurements is missing; name the folder that measure left.", option="--measurements"
        )
    path, folder = _spec_file(spec), _out_folder(out)
    release = estimate(
        path,
        measurements=measurements,
        out=folder,
        engine=engine,
        csv=csv,
        report=topdown_report,
        run=run,
    )
    say_json(release.to_json()) if json else say(f"{release!r}\nRelease: {folder}")
    return 0


@command(app, name="run", epilog="Exit codes: 0 done, 2 bad input.")
def topdown_run(
    *,
    run: Run,
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
    path = _spec_file(spec)
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
        run=run,
    )
    told = repr(release) if out is None else f"{release!r}\nRelease: {out}"
    say_json(release.to_json()) if json else say(told)
    return 0


def _spec_file(spec: Path | None) -> Path:
    if spec is None:
        raise InputError("argument SPEC.toml is missing; name the spec.", option="SPEC.toml")
    return spec


def _out_folder(out: Path | None) -> Path:
    if out is None:
        raise InputError("option --out is missing; name a new folder.", option="--out")
    return out
