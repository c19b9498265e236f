"""`louver demo`: every job once, as the commands that do it, on sample files shipped with louver."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Annotated

import typer

from louver.cli import VERBS
from louver.cli.console import compile_notices, say
from louver.cli.parameters import command, group
from louver.data.samples import write_samples
from louver.errors import InputError, LouverError, printable
from louver.run import Run

app = group(VERBS["demo"])

MARK = "made-by-louver-demo"
STEPS = (
    (
        "What does a file of people contain, and what would single them out?",
        "profile data/people.csv --html profile.html",
        "profile.html: the weight alone singles out most people, and age with hours worked one in ten.",
    ),
    (
        "Can this table of percentages be published? If not, which one can?",
        "bounds --spec data/survey.toml --suggest --seconds {seconds} --html bounds.html",
        "bounds.html: the counts that anybody can derive, and tables that reveal none.",
    ),
    (
        "Two tables that each look harmless: what do they disclose together?",
        "audit data/tables.toml --html audit.html",
        "audit.html: one table minus the other leaves single people; and what to publish instead.",
    ),
    (
        "A file of people that researchers may have:",
        "anonymize data/people.csv --quasi age,education,marital,race,sex --sensitive income --identifying weight -k 5"
        " --seconds {seconds} --out anonymous --html anonymous-inside.html",
        "anonymous-inside.html is confidential: what was lost, attribute by attribute. The folder anonymous is the release.",
    ),
    (
        "Anyone can check what a release promises:",
        "verify anonymous",
        "each promise, recomputed from the published files alone.",
    ),
    (
        "How many people were in each crash, by region, protecting each person's record:",
        "ledger init data/crashes.csv.ledger --epsilon 1 --neighbours add-remove-record",
        "",
    ),
    (
        "",
        "groups data/crashes.csv --unit CASENUM --regions REGION,PSU --domain data/regions.csv --max-size 20 --epsilon 1"
        " --out crashes",
        "crashes/report.html: counts that add up over regions, with their margins of error.",
    ),
    (
        "Private microdata of a county's 1,092 blocks, with its total kept exactly:",
        "ledger init data/county.csv.ledger --epsilon 2 --neighbours change-record --new-population",
        "",
    ),
    (
        "",
        "topdown run data/county.toml --out county",
        "county/report.html: what each level cost, and what is not protected.",
    ),
    (
        "What was spent?",
        "ledger show data/county.csv.ledger",
        "every debit is dated, chained and paid only once.",
    ),
)
"""A step of the demo: a question, the commands that answer it, and what to look at."""


@command(app)
def demo(
    *,
    out: Annotated[
        Path, typer.Option(metavar="FOLDER", help="Folder for data and reports; created if needed.")
    ] = Path("demo-output"),
    seconds: Annotated[float, typer.Option(metavar="S", help="Time for each search.")] = 5.0,
    files: Annotated[bool, typer.Option("--files", help="Write the sample files only.")] = False,
    run: Run,
) -> int:
    """Run every job once on sample data, as commands to copy, with reports to open in a browser."""
    if not seconds > 0:
        raise InputError("option --seconds must be greater than 0.", option="--seconds")
    _make_room(out)
    write_samples(out / "data")
    if not files:
        with compile_notices(lambda notice: say(f"({notice})")):
            run_demo(out, seconds, run)
    return 0


def run_demo(out: Path, seconds: float, run: Run) -> None:
    """Run the commands one after another, while the largest kernel of the last step is compiled."""
    from louver.optim.aside import compiled_aside
    from louver.topdown.estimation.levels import solver

    with compiled_aside(run, solver()):
        _run_steps(out, seconds, run)
    say(f"\nEverything is in {printable(out)}; begin with {printable(out / 'bounds.html')} in a browser.")


def _run_steps(out: Path, seconds: float, run: Run) -> None:
    from louver.cli.app import app as louver

    for question, command_line, look_at in STEPS:
        run.check()
        arguments = [_placed(word, out) for word in command_line.format(seconds=f"{seconds:g}").split()]
        if question:
            say(f"\n{question}")
        say(f"$ louver {printable(' '.join(arguments))}")
        if louver(arguments, prog_name="louver", standalone_mode=False):
            raise LouverError("a step of the demo did not succeed; please report it.")
        if look_at:
            say(f"=> {look_at}")


def _placed(word: str, out: Path) -> str:
    """Names of files and folders, relative to where the demo was called."""
    is_path = word.startswith("data/") or word.endswith(".html") or word in ("anonymous", "crashes", "county")
    return str(out / word) if is_path else word


def _make_room(out: Path) -> None:
    """An empty folder with the demo's mark; files of an earlier demo are removed, and anything else is refused."""
    if (out / MARK).is_file():
        shutil.rmtree(out)
    elif out.is_dir() and any(out.iterdir()):
        message = f"option --out: {out} holds files that the demo did not write; name another folder."
        raise InputError(message, option="--out")
    try:
        out.mkdir(parents=True, exist_ok=True)
        (out / MARK).touch()
    except OSError:
        message = f"option --out cannot create the folder {out}; choose a place where you may write."
        raise InputError(message, option="--out") from None
