"""Jobs of the Ledger page and of every page that spends: the balance of a budget, its history, and new ledgers."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

from louver.errors import InputError, LouverError, printable
from louver.privacy.budget import Loss, Measure, fraction_of
from louver.privacy.ledger import Ledger, ledgers_in
from louver.privacy.ledger_finding import admit_source, bind_apart, check_no_second, ledger_of
from louver.privacy.neighbours import Relation
from louver.run import Run

__all__ = [
    "admitted",
    "given_up",
    "granted",
    "ledger_left",
    "ledger_made",
    "ledger_read",
    "ledgers_there",
    "loss_for_page",
    "practice_ledger",
]


def ledger_left(ledger: str, run: Run) -> dict[str, str]:
    """The balance of a ledger."""
    state = Ledger(Path(ledger)).state()
    amounts = {"granted": state.granted, "left": state.remaining, "held": state.held}
    kind = {"measure": str(state.measure), "neighbours": str(state.neighbours)}
    return kind | {name: str(amount) for name, amount in amounts.items()}


def ledger_read(ledger: str, releases: str | None, run: Run) -> dict[str, Any]:
    """State and history of a ledger, and whether its past is sound."""
    book = Ledger(Path(ledger))
    state = book.state()
    check = book.verify(None if releases is None else Path(releases))
    return state.to_dict() | {"name": printable(Path(ledger).name), "check": check.to_dict()}


def practice_ledger(ledger: str, measure: str, neighbours: str, grant: str, run: Run) -> None:
    """Make a ledger for a sample that has none."""
    if not Path(ledger).exists():
        Path(ledger).parent.mkdir(parents=True, exist_ok=True)
        Ledger.create(Path(ledger), Measure(measure), Relation(neighbours), Fraction(grant))


def granted(ledger: str, releases: str | None, amount: str, run: Run) -> dict[str, Any]:
    """Allow more to be spent."""
    book = Ledger(Path(ledger))
    book.grant(fraction_of(amount, "the amount"), book.state().measure)
    return ledger_read(ledger, releases, run)


def given_up(ledger: str, releases: str | None, entry: int, run: Run) -> dict[str, Any]:
    """Erase the key of an interrupted debit; its amount stays spent."""
    Ledger(Path(ledger)).abandon(entry)
    return ledger_read(ledger, releases, run)


def loss_for_page(loss: Loss) -> dict[str, str]:
    """A privacy loss, as a page shows it."""
    return {"amount": str(loss.amount), "measure": str(loss.measure), "neighbours": str(loss.neighbours)}


def ledger_made(
    path: str,
    measure: str,
    amount: str,
    neighbours: str,
    population: str | None,
    is_new_population: bool,
    run: Run,
) -> dict[str, str]:
    """Make a ledger and grant it a first amount, as `louver ledger init` does."""
    place = Path(path)
    granted = fraction_of(amount, "the amount")
    if not is_new_population:
        check_no_second(place, run)
    try:
        place.parent.mkdir(exist_ok=True)
    except OSError:
        problem = f"the folder {printable(place.parent.name)} cannot be created; start the explorer where you may write."
    else:
        made = Ledger.create(place, Measure(measure), Relation(neighbours), granted, population=population)
        if is_new_population:
            bind_apart(made, run)
        return ledger_left(path, run)
    raise InputError(problem)


def ledgers_there(releases: str, data: str | None, run: Run) -> list[dict[str, str]]:
    """Ledgers among the releases and that of the data, each with what is left; unreadable ones are left out."""
    paths = [ledger.path for ledger in ledgers_in(Path(releases))] if Path(releases).is_dir() else []
    own = None if data is None else ledger_of(data, run=run)
    found = []
    for path in dict.fromkeys([*([] if own is None else [own]), *paths]):
        try:
            found.append({"path": str(path), "name": printable(path.name), **ledger_left(str(path), run)})
        except LouverError:
            continue
    return found


def admitted(
    ledger: str,
    releases: str | None,
    data: str,
    name: str,
    table: str | None,
    query: str | None,
    is_new_population: bool,
    run: Run,
) -> dict[str, Any]:
    """Let a ledger pay for the open data, as `louver ledger admit` does."""
    admit_source(
        Ledger(Path(ledger)),
        data,
        name=name,
        table=table,
        query=query,
        is_new_population=is_new_population,
        run=run,
    )
    return ledger_read(ledger, releases, run)
