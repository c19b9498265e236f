"""What a sample spends: a ledger of the tab's own, beside the releases. Nobody else's ledger pays for a sample or is bound to it.

It lies where checks of other ledgers find it: a sample's release that no ledger there has paid for would pass for a past that was edited.
Each has a folder of its own, for two ledgers of one folder do not pay for the same data.
"""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

from louver.app.jobs.books import ledger_left, practice_ledger
from louver.app.session import Session
from louver.privacy.budget import Loss
from louver.privacy.ledger_check import SAMPLE_LEDGERS

__all__ = ["GRANTED", "Practice"]

GRANTED = Fraction(10)


class Practice:
    """The ledgers of a tab that samples spend from: one for each measure and neighbour relation that is tried."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def path(self, loss: Loss) -> Path:
        """Where the ledger is, or will be, that can pay a loss."""
        session = self._session
        own = f"{session.folder.name}-{loss.measure}-{loss.neighbours}"
        return session.setup.releases / SAMPLE_LEDGERS / own / "sample.ledger"

    def balance(self, loss: Loss) -> dict[str, str]:
        """What is left in it; it is made when something is spent."""
        new = {"granted": str(GRANTED), "left": str(GRANTED), "held": "0"}
        kind = {"measure": str(loss.measure), "neighbours": str(loss.neighbours)}
        return self._session.practice.get(self.path(loss), kind | new)

    async def refresh(self, loss: Loss) -> None:
        """Look what is left."""
        path = self.path(loss)
        if path.exists():
            self._session.practice[path] = await self._session.ask(ledger_left, str(path), key="")

    async def make(self, loss: Loss) -> None:
        """Make the ledger, where it is missing."""
        kind = str(loss.measure), str(loss.neighbours)
        await self._session.ask(practice_ledger, str(self.path(loss)), *kind, str(GRANTED), key="")
