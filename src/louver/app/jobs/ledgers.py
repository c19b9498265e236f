"""Ledgers that are made, found and told about further data from the page Ledger."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from louver.app.jobs.books import ledger_left, ledger_read
from louver.errors import InputError, LouverError, printable
from louver.privacy.budget import Measure, fraction_of
from louver.privacy.ledger import Ledger, ledgers_in
from louver.privacy.ledger_finding import admit_source, bind_apart, check_no_second, ledger_of
from louver.privacy.neighbours import Relation
from louver.run import Run

__all__ = ["admitted", "ledger_made", "ledgers_there"]


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
        problem = f"the folder {printable(place.parent.name)} cannot be made; start the explorer where you may write."
    else:
        made = Ledger.create(place, Measure(measure), Relation(neighbours), granted, population=population)
        if is_new_population:
            bind_apart(made, run)
        return ledger_left(path, run)
    raise InputError(problem)


def ledgers_there(releases: str, data: str | None, run: Run) -> list[dict[str, str]]:
    """Ledgers among the releases, and the one of the data, each with what is left; one that cannot be read is left out."""
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
    """Let a ledger pay for the data that are open, as `louver ledger admit` does."""
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
