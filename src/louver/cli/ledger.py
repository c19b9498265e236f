"""`louver ledger`."""

from __future__ import annotations

import json as json_module
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Annotated

import typer

from louver._words import counted
from louver.cli import VERBS
from louver.cli.console import say, say_json
from louver.cli.parameters import CHECK_FAILED, Epsilon, Json, Rho, command, group, help_alone
from louver.errors import InputError, printable
from louver.privacy.budget import Measure, fraction_of
from louver.privacy.ledger import SUFFIX, Ledger, LedgerState
from louver.privacy.ledger_finding import admit_source, bind_apart, check_next_to, check_no_second
from louver.privacy.neighbours import Relation
from louver.run import Run

app = group(VERBS["ledger"])
help_alone(app)

KINDS = {
    "init": "made",
    "grant": "granted",
    "reserve": "debit",
    "disclosure": "disclosed exactly",
    "refusal": "refused because of the data",
    "admit": "admitted",
    "people": "known by the people in it",
    "succeeded": "closed, succeeded by",
}
"""Names of the kinds of entries, for a reader."""

LedgerFile = Annotated[Path | None, typer.Argument(metavar="FILE", help="The ledger file.")]
NewPopulation = Annotated[
    bool,
    typer.Option(
        "--new-population",
        help="The data are about different people from those of the other ledgers in that folder.",
    ),
]


@command(app, name="init")
def ledger_init(
    file: LedgerFile = None,
    epsilon: Epsilon = None,
    rho: Rho = None,
    neighbours: Annotated[
        str,
        typer.Option(
            metavar="RELATION",
            help="add-remove-record, change-record or add-remove-unit; cannot be changed later.",
        ),
    ] = "add-remove-record",
    population: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="The population it covers; sources are then admitted one by one."),
    ] = None,
    new_population: NewPopulation = False,
    json: Json = False,
    *,
    run: Run,
) -> int:
    """Make a ledger and grant it a first amount; its measure becomes that of the ledger."""
    if neighbours not in list(Relation):
        raise InputError(f"option --neighbours must be one of {', '.join(Relation)}.", option="--neighbours")
    measure, amount = _ledger_amount(epsilon, rho)
    path = _new_ledger_file(_ledger_file(file))
    if new_population:
        check_next_to(path)
    else:
        check_no_second(path, run)
    made = Ledger.create(path, measure, Relation(neighbours), amount, population=population)
    if new_population:
        bind_apart(made, run)
    return _show_ledger(made.state(), path, json)


@command(app, name="admit")
def ledger_admit(
    file: LedgerFile = None,
    data: Annotated[
        str | None,
        typer.Argument(metavar="DATA", help="File or postgresql:// address about the same people."),
    ] = None,
    table: Annotated[str | None, typer.Option(metavar="T", help="Table of a database.")] = None,
    query: Annotated[str | None, typer.Option(metavar="Q", help="Query of a PostgreSQL database.")] = None,
    new_population: NewPopulation = False,
    json: Json = False,
    *,
    run: Run,
) -> int:
    """Let a ledger pay for another copy, table or query about the same people."""
    path = _ledger_file(file)
    if data is None:
        raise InputError("argument DATA is missing; name the data to admit.", option="DATA")
    state = admit_source(
        Ledger(path), data, table=table, query=query, is_new_population=new_population, run=run
    )
    return _show_ledger(state, path, json)


@command(app, name="succeed")
def ledger_succeed(
    file: LedgerFile = None,
    new: Annotated[Path | None, typer.Argument(metavar="NEW", help="The ledger file to create.")] = None,
    json: Json = False,
) -> int:
    """Continue in a new ledger after the data changed: it starts with what was spent, and the old one is closed."""
    path = _ledger_file(file)
    if new is None:
        raise InputError("argument NEW is missing; name the ledger to create.", option="NEW")
    _new_ledger_file(new)
    return _show_ledger(Ledger(path).succeed(new).state(), new, json)


@command(app, name="grant")
def ledger_grant(
    file: LedgerFile = None, epsilon: Epsilon = None, rho: Rho = None, json: Json = False
) -> int:
    """Allow more to be spent."""
    measure, amount = _ledger_amount(epsilon, rho)
    path = _ledger_file(file)
    return _show_ledger(Ledger(path).grant(amount, measure), path, json)


@command(app, name="show")
def ledger_show(file: LedgerFile = None, json: Json = False) -> int:
    """Print what is granted, spent, left and pending."""
    path = _ledger_file(file)
    return _show_ledger(Ledger(path).state(), path, json)


@command(app, name="abandon")
def ledger_abandon(
    file: LedgerFile = None,
    entry: Annotated[
        int | None, typer.Option(metavar="N", help="Number of the pending entry, as show prints it.")
    ] = None,
    json: Json = False,
) -> int:
    """Give up an interrupted debit: its key is erased, its amount stays spent."""
    path = _ledger_file(file)
    if entry is None:
        raise InputError(
            "option --entry is missing; `louver ledger show` prints the numbers.", option="--entry"
        )
    ledger = Ledger(path)
    ledger.abandon(entry)
    return _show_ledger(ledger.state(), path, json)


@command(app, name="verify")
def ledger_verify(
    file: LedgerFile = None,
    releases: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER", help="Folder of releases; the ledger heads recorded there are checked."
        ),
    ] = None,
    json: Json = False,
) -> int:
    """Check that the past was neither edited nor rolled back; exit 1 if it was."""
    path = _ledger_file(file)
    check = Ledger(path).verify(releases)
    if json:
        say_json(json_module.dumps(check.to_dict()))
    else:
        for line in str(check).splitlines():
            say(printable(line))
    return 0 if check.is_sound else CHECK_FAILED


def _ledger_file(file: Path | None) -> Path:
    if file is None:
        raise InputError("argument FILE is missing; name the ledger.", option="FILE")
    return file


def _new_ledger_file(file: Path) -> Path:
    """Refuse file names under which the folder's other ledgers would not recognise this one as a ledger."""
    if file.suffix != SUFFIX:
        raise InputError(
            f"the name of a ledger must end in {SUFFIX}; call it {file.name}{SUFFIX}.",
            file=file.name,
            option="FILE",
        )
    return file


def _ledger_amount(epsilon: str | None, rho: str | None) -> tuple[Measure, Fraction]:

    if (epsilon is None) == (rho is None):
        raise InputError("give the amount either as --epsilon or as --rho.", option="--epsilon")
    if epsilon is not None:
        return Measure.EPSILON, fraction_of(epsilon, "--epsilon")
    return Measure.RHO, fraction_of(rho, "--rho")


def _show_ledger(state: LedgerState, file: Path, as_json: bool) -> int:
    if as_json:
        say_json(json_module.dumps(state.to_dict()))
        return 0
    say(
        f"{printable(file.name)}: {state.measure} {state.remaining} left of {state.granted} granted ({state.neighbours}); "
        f"{counted(len(state.sealed), 'debit')} sealed, head {state.head.entry} {state.head.hash[:12]}"
    )
    for line in (*_facts(state), *_history(state)):
        say(printable(f"  {line}"))
    for entry, body in state.pending.items():
        say(printable(f"  entry {entry} is pending: {body['amount']} for {body['purpose']}"))
    return 0


def _facts(state: LedgerState) -> Iterator[str]:
    if state.population is not None:
        yield f"population: {state.population}"
    for source in state.sources.values():
        yield f"pays for: {source.words}"
    if state.predecessor is not None:
        yield f"continues {state.predecessor}: {len(state.carried)} exact publications from before the first line"
        yield from (f"disclosed exactly: {one.what}" for one in state.carried)
    if state.successor is not None:
        yield f"succeeded by {state.successor}, closed to new entries"


def _history(state: LedgerState) -> Iterator[str]:
    """A dated line for every event; the outcome of a debit has its own line."""
    shown = [
        event
        for event in state.events
        if event.kind not in ("seal", "abandon", "handed over") and (event.kind != "people" or event.what)
    ]
    amounts = ["" if event.amount is None else str(event.amount) for event in shown]
    width = max(map(len, ["amount", *amounts]))
    yield f"{'':>4}  {'date':<16}  {'verb':<9}  {'amount':>{width}}  purpose, or what was published exactly"
    for event, amount in zip(shown, amounts, strict=True):
        kind = KINDS.get(event.kind, event.kind)
        fate = "" if event.state is None else f" ({event.state})"
        place = "" if event.release is None else f", release {event.release}"
        date = event.at[:16].replace("T", " ")
        content = f"{kind}{': ' if event.what else ''}{event.what}{fate}{place}"
        yield f"{event.entry:>4}  {date:<16}  {event.verb or 'ledger':<9}  {amount:>{width}}  {content}"
