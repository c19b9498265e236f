"""Finding the ledger that pays for data: the one next to them, or one in the same folder that has admitted them."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlsplit

from louver.data.parsing_once import parsing_once
from louver.data.people import fingerprint
from louver.errors import BudgetError, InputError
from louver.privacy.ledger import (
    Ledger,
    LedgerState,
    People,
    check_second,
    ledger_next_to,
    ledgers_admitting,
    ledgers_in,
    source_next_to,
)
from louver.privacy.ledger_people import in_words
from louver.run import Run

__all__ = [
    "admit_source",
    "bind_apart",
    "check_known_elsewhere",
    "check_next_to",
    "check_no_second",
    "check_not_elsewhere",
    "find_ledger",
    "ledger_of",
    "published_exactly",
]


def ledger_of(
    data: object, *, table: str | None = None, query: str | None = None, run: Run | None = None
) -> Path | None:
    """The ledger of a data file: the one next to it, or else the one in its folder that has admitted its content.

    Returns
    -------
    Path or None
        None if the data are not a file, or if no ledger has recorded it.

    Raises
    ------
    InputError
        If several ledgers have admitted it.
    """
    if not isinstance(data, str | Path) or not Path(data).is_file():
        return None
    source = Path(data)
    if ledger_next_to(source).is_file():
        return ledger_next_to(source)
    dataset = fingerprint(source, table=table, query=query, run=run)
    knowing = [ledger.path for ledger in ledgers_admitting(dataset, ledgers_in(source.parent))]
    if len(knowing) > 1:
        raise InputError(
            f"{source.name} was admitted to {knowing[0].name} and to {knowing[1].name}; choose one with --ledger.",
            option="--ledger",
        )
    return knowing[0] if knowing else None


def find_ledger(
    data: object,
    ledger: str | Path | None = None,
    *,
    table: str | None = None,
    query: str | None = None,
    run: Run | None = None,
) -> Path | None:
    """The given ledger, or the data's own ledger if there is one; it must be intact."""
    path = Path(ledger) if ledger is not None else ledger_of(data, table=table, query=query, run=run)
    if path is not None:
        Ledger(path).state()
    return path


def published_exactly(
    data: object, *, table: str | None = None, query: str | None = None, run: Run | None = None
) -> tuple[str, ...]:
    """What the ledgers in the folder of a data file list as published exactly about its people, in words."""
    if not isinstance(data, str | Path) or not Path(data).is_file():
        return ()
    source = Path(data)
    states = {ledger: ledger.state() for ledger in ledgers_in(source.parent)}
    # A successor repeats what its predecessor published.
    listed = [
        ledger
        for ledger, state in states.items()
        if state.published and not (state.successor and (source.parent / state.successor).is_file())
    ]
    if not listed:
        return ()
    dataset = fingerprint(source, table=table, query=query, run=run)
    people = People(source, table=table, query=query, run=run)
    about_them = [
        ledger
        for ledger in listed
        if ledger.path == ledger_next_to(source) or ledger.has_admitted(dataset) or ledger.has_people(people)
    ]
    return tuple(one.what for ledger in about_them for one in states[ledger].published)


def check_no_second(path: Path, run: Run | None = None) -> None:
    """Refuse to create a ledger next to a file if another ledger in the folder pays, or may pay, for its people."""
    source = source_next_to(path)
    if source is None or path.exists():
        return
    for other in ledgers_admitting(fingerprint(source, run=run), ledgers_in(path.parent)):
        raise InputError(
            f"{other.name} pays for {source.name} already; use that one.", file=path.name, option="FILE"
        )
    check_second(People(source, run=run), [path.parent])


def bind_apart(ledger: Ledger, run: Run | None = None) -> None:
    """Bind a new ledger to the file next to it, whose people differ from those of all other ledgers there."""
    source = source_next_to(ledger.path)
    if source is not None:
        admit_source(ledger, str(source), is_new_population=True, run=run)


def check_next_to(path: Path) -> None:
    """Refuse --new-population for a ledger that has no data file next to it."""
    if source_next_to(path) is None:
        raise InputError(
            f"option --new-population needs a data file next to {path.name}; give it to `louver ledger admit` instead.",
            option="--new-population",
        )


def check_known_elsewhere(
    data: object, *, table: str | None = None, query: str | None = None, run: Run | None = None
) -> None:
    """If a file has no ledger, name the one in its folder that pays for the same people."""
    if not isinstance(data, str | Path) or not Path(data).is_file():
        return
    people = People(data, table=table, query=query, run=run)
    for other in ledgers_in(Path(data).parent):
        if other.state().successor is None and other.has_people(people):
            common = other.common(people)
            assert common is not None
            raise InputError(
                f"{in_words(common, people.name, f'those that {other.name} pays for')}: "
                f"`louver ledger admit {other.name} {people.name}` lets it pay for them.",
                file=other.name,
                option="--ledger",
            )


def check_not_elsewhere(
    ledger: Ledger,
    data: object,
    *,
    table: str | None = None,
    query: str | None = None,
    run: Run | None = None,
) -> None:
    """Refuse a first debit from a ledger in another folder if one next to the data has already paid for them."""
    if not isinstance(data, str | Path) or not Path(data).is_file():
        return
    folder = Path(data).resolve().parent
    if folder == ledger.path.resolve().parent or ledger.state().sources:
        return
    dataset = fingerprint(data, table=table, query=query, run=run)
    for other in ledgers_admitting(dataset, ledgers_in(folder)):
        raise BudgetError(
            f"{other.name} next to {Path(data).name} pays for these data already; use that one."
        )


def admit_source(
    ledger: Ledger,
    data: str,
    *,
    name: str | None = None,
    table: str | None = None,
    query: str | None = None,
    is_new_population: bool = False,
    run: Run | None = None,
) -> LedgerState:
    """Let a ledger pay for another file, or table or query of a database; `name` is its name in the ledger."""
    is_address = "://" in data
    if not is_address and not Path(data).is_file():
        raise InputError(f"{Path(data).name} does not exist; name the data to admit.", option="DATA")
    if name is None:
        name = f"database {urlsplit(data).path.strip('/')}" if is_address else Path(data).name
    dataset = fingerprint(data, table=table, query=query, run=run)
    with parsing_once():
        return ledger.admit(
            dataset,
            name=name,
            table=table,
            query=query,
            people=People(data, table=table, query=query, run=run),
            is_new_population=is_new_population,
        )
