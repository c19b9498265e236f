"""Which ledger pays for which data: the one beside them, or one of the same folder that has admitted them."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlsplit

from louver.data.fingerprint import fingerprint, has_same_records
from louver.errors import BudgetError, InputError
from louver.privacy.ledger import (
    Ledger,
    LedgerState,
    ledger_beside,
    ledgers_admitting,
    ledgers_in,
    source_beside,
)
from louver.run import Run

__all__ = ["admit_source", "check_no_second", "check_not_elsewhere", "find_ledger", "ledger_of"]


def ledger_of(
    data: object, *, table: str | None = None, query: str | None = None, run: Run | None = None
) -> Path | None:
    """The ledger of a data file: the one beside it, else the one of its folder that has admitted its content.

    Returns
    -------
    Path or None
        None for what is no file, and where no ledger knows it.

    Raises
    ------
    InputError
        If several ledgers have admitted it.
    """
    if not isinstance(data, str | Path) or not Path(data).is_file():
        return None
    source = Path(data)
    if ledger_beside(source).is_file():
        return ledger_beside(source)
    dataset = fingerprint(source, table=table, query=query, run=run)
    knowing = [ledger.path for ledger in ledgers_admitting(dataset, ledgers_in(source.parent))]
    if len(knowing) > 1:
        raise InputError(
            f"{source.name} was admitted to {knowing[0].name} and to {knowing[1].name}; name one with --ledger.",
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
    """The ledger named, or else the one of the data where there is one; it must be sound."""
    path = Path(ledger) if ledger is not None else ledger_of(data, table=table, query=query, run=run)
    if path is not None:
        Ledger(path).state()
    return path


def check_no_second(path: Path, run: Run | None = None) -> None:
    """Refuse to make a ledger beside a file whose people another ledger of the folder pays for.

    Two files are taken to be about the same people where a ledger knows the bytes of one, or where both hold the same records.
    """
    source = source_beside(path)
    if source is None or path.exists():
        return
    for other in ledgers_in(path.parent):
        if _is_about(other, source, run):
            raise InputError(
                f"{source.name} is about the same people as the ledger {other.name}; use that one: "
                f"`louver ledger admit {other.name} {source.name}`.",
                file=path.name,
            )


def check_not_elsewhere(
    ledger: Ledger,
    data: object,
    *,
    table: str | None = None,
    query: str | None = None,
    run: Run | None = None,
) -> None:
    """Refuse a first debit from a ledger in another folder where one beside the data has paid for them already."""
    if not isinstance(data, str | Path) or not Path(data).is_file():
        return
    folder = Path(data).resolve().parent
    if folder == ledger.path.resolve().parent or ledger.state().sources:
        return
    dataset = fingerprint(data, table=table, query=query, run=run)
    for other in ledgers_admitting(dataset, ledgers_in(folder)):
        raise BudgetError(f"{other.name} beside {Path(data).name} pays for these data already; use that one.")


def _is_about(ledger: Ledger, source: Path, run: Run | None) -> bool:
    if any(ledgers_admitting(fingerprint(source, run=run), [ledger])):
        return True
    other = source_beside(ledger.path)
    return other is not None and has_same_records(source, other, run=run)


def admit_source(
    ledger: Ledger,
    data: str,
    *,
    name: str | None = None,
    table: str | None = None,
    query: str | None = None,
    run: Run | None = None,
) -> LedgerState:
    """Let a ledger pay for another file, or table or query of a database; `name` is what it is called there."""
    is_address = "://" in data
    if not is_address and not Path(data).is_file():
        raise InputError(f"{Path(data).name} does not exist; name the data to be admitted.", option="DATA")
    if name is None:
        name = f"database {urlsplit(data).path.strip('/')}" if is_address else Path(data).name
    dataset = fingerprint(data, table=table, query=query, run=run)
    return ledger.admit(dataset, name=name, table=table, query=query)
