"""Where there is no ledger: make one, or choose one that lies beside the data or among the releases."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from louver.app.jobs.ledgers import ledger_made, ledgers_there
from louver.app.look import RunBar, button, card, check, field, select, table, tag, verdict
from louver.app.session import Session
from louver.app.words import RELATIONS, amount_text
from louver.errors import InputError
from louver.privacy.ledger import SUFFIX, ledger_beside

__all__ = ["NewLedger", "place_of"]

MEASURES = {"epsilon": "epsilon, for Laplace noise", "rho": "rho, for Gaussian noise"}


def place_of(session: Session, name: str) -> Path:
    """Where a new ledger is kept: beside the file that the explorer was started with, otherwise among the releases.

    Raises
    ------
    InputError
        If the name is no plain name.
    """
    opened, file = session.opened, session.setup.file
    if opened is not None and opened.path == file and "://" not in opened.path:
        return ledger_beside(Path(opened.path))
    plain = name.removesuffix(SUFFIX)
    if not plain or not plain.isprintable() or plain.startswith((".", "-")) or set(plain) & set("/\\:"):
        raise InputError("the ledger needs a plain name, such as people.")
    return session.setup.releases / f"{plain}{SUFFIX}"


class NewLedger:
    """A form that makes a ledger, and a list of those there are."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._typed = {"name": self._stem(), "amount": "1", "population": ""}
        self._chosen = {"measure": "epsilon", "neighbours": "add-remove-record"}
        self._is_new_population = False

    async def start(self) -> None:
        """Draw the form, then what is found."""
        verdict(
            "plain",
            "No ledger: nothing can be spent.",
            "A ledger says how much noise budget there is for these people, and remembers what was spent. Make one ledger for one "
            "population, and keep it.",
            is_status=False,
        )
        self._bar = RunBar(self._session, "quick")
        with tag("div", "across halves"):
            with card("pad roomy"):
                tag("h2", text="Make a ledger")
                self._draw()
            self._there = card("pad roomy")
        with self._there:
            tag("h2", text="Ledgers that are there")
        await self._list()

    def _stem(self) -> str:
        opened = self._session.opened
        return "people" if opened is None else opened.name.partition(".")[0] or "people"

    def _draw(self) -> None:
        opened = self._session.opened
        is_beside = (
            opened is not None and opened.path == self._session.setup.file and "://" not in opened.path
        )
        if is_beside and opened is not None:
            tag("p", "s sub", f"It is kept beside the data, as {ledger_beside(Path(opened.path)).name}.")
        else:
            field("Name", self._typed["name"], partial(self._type, "name"))
            tag("p", "s sub", f"It is kept in the folder {self._session.setup.releases.name}.")
        for name, label, choices in (
            ("measure", "Counts", MEASURES),
            ("neighbours", "Protects", RELATIONS),
        ):
            with tag("label", "field"):
                tag("span", "s sub", f"{label}; fixed for good")
                select(choices, self._chosen[name], partial(self._choose, name), label)
        field("Amount granted now", self._typed["amount"], partial(self._type, "amount"), inputmode="decimal")
        field(
            "Population, where several files are about the same people (optional)",
            "",
            partial(self._type, "population"),
        )
        if is_beside:
            check(
                "These are other people than those of the ledgers that are there",
                self._is_new_population,
                self._say_new,
            )
        button("Make the ledger", self._make, kind="pri", data_run="")

    def _type(self, name: str, value: str) -> None:
        self._typed[name] = value.strip()

    def _say_new(self, is_new: bool) -> None:
        self._is_new_population = is_new

    def _choose(self, name: str, value: str) -> None:
        self._chosen[name] = value

    async def _make(self) -> None:
        try:
            path = place_of(self._session, self._typed["name"])
        except InputError as error:
            self._bar.tell(str(error))
            return
        asked = (self._chosen["measure"], self._typed["amount"], self._chosen["neighbours"])
        found = await self._bar.do(
            ledger_made,
            str(path),
            *asked,
            self._typed["population"] or None,
            self._is_new_population,
            key="make",
        )
        if found is not None:
            await self._take(str(path))

    async def _list(self) -> None:
        opened = self._session.opened
        data = None if opened is None or opened.path != self._session.setup.file else opened.path
        found = await self._bar.do(ledgers_there, str(self._session.setup.releases), data, key="there")
        if found is None or self._bar.is_gone:
            return
        with self._there:
            if not found:
                tag("p", "s sub", "None beside the data, and none among the releases.")
                return
            with table({"Ledger": "", "Left": "r", "": ""}):
                for one in found:
                    with tag("tr"):
                        tag("td", "", one["name"])
                        tag("td", "r", f"{one['measure']} {amount_text(one['left'])}")
                        with tag("td"):
                            button("Use it", partial(self._take, one["path"]), kind="mini")

    async def _take(self, path: str) -> None:
        self._session.setup.ledger = Path(path)
        if self._session.refresh_ledger is not None:
            await self._session.refresh_ledger()
        self._session.show("ledger")
