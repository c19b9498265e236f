"""A ledger that continues another, so that what was spent follows the people when their data change.

Two files cannot be written in one atomic step. The old ledger is closed first, with the text of the new one's first entry inside its
own last one; then the new file is made from that text; then the old ledger records that it exists. A crash in between leaves
a closed ledger and no second budget, and the same call finishes the work.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from louver.errors import BudgetError, InputError
from louver.privacy.ledger_file import Entry, LedgerFile, chained, commitment, stamped
from louver.privacy.ledger_state import FORMAT, LedgerState, carried, replay

__all__ = ["hand_over"]


def hand_over(old: LedgerFile, path: Path) -> None:
    """Close a ledger and create its successor at `path`, or finish what an interrupted call began."""
    with old._writing() as db:
        entries = old._entries(db)
        state, secret = replay(entries), old._secret(db, entries)
        if state.successor is None:
            first = _closed(old, db, state, secret, path)
        elif state.successor == path.name:
            first = _noted(entries)
        else:
            raise BudgetError(
                f"the ledger {old.name} was already succeeded by {state.successor}; use that one."
            )
    _make(old, path, secret, first, state.is_handed_over)
    if not state.is_handed_over:
        with old._writing() as db:
            if not replay(old._entries(db)).is_handed_over:
                old._append(db, {"kind": "handed over"})


def _closed(old: LedgerFile, db: sqlite3.Connection, state: LedgerState, secret: bytes, path: Path) -> str:
    """Close the old ledger; return the text of the new one's first entry."""
    if state.pending:
        entry = min(state.pending)
        raise BudgetError(
            f"entry {entry} of the ledger {old.name} is pending; finish its run, or abandon it with "
            f"`louver ledger abandon {old.name} --entry {entry}`."
        )
    if os.path.lexists(path):
        raise InputError(f"{path.name} already exists; a ledger is never overwritten.", file=path.name)
    first = {
        "kind": "init",
        "format": FORMAT,
        "measure": state.measure,
        "neighbours": state.neighbours,
        "secret": commitment(secret),
        "population": state.population,
        "predecessor": carried(state, old.name),
    }
    text = stamped(first)
    with old._unfinished(path, secret, [text]):
        pass  # a location where it cannot be made is refused before anything is closed
    old._append(db, {"kind": "succeeded", "by": path.name, "first": text})
    return text


def _noted(entries: Sequence[Entry]) -> str:
    """The first entry of the successor, as kept by the closed ledger."""
    return next(str(entry.body["first"]) for entry in entries if entry.body["kind"] == "succeeded")


def _make(old: LedgerFile, path: Path, secret: bytes, first: str, is_handed_over: bool) -> None:
    """Make the successor's file, or check that it exists."""
    if not os.path.lexists(path):
        if is_handed_over:
            raise BudgetError(f"the ledger {old.name} was succeeded by {path.name}; restore that file.")
        with suppress(FileExistsError):  # another such call may have been faster
            LedgerFile._write_new(path, secret, [first])
    new = LedgerFile(path)
    with new._reading() as db:
        if new._entries(db)[0].head.hash != chained("", first):
            raise BudgetError(f"{path.name} is not the successor of {old.name}; move it away.")
