"""What the pages that spend share: amounts on a slider, the strip that asks before it pays, and the release that came of it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any, Protocol

from louver.app.dialogs import Confirm
from louver.app.jobs.books import out_folder
from louver.app.look import RunBar, button, card, field, pill, tag, verdict
from louver.app.publishing import Ways
from louver.app.region_view import RegionView
from louver.app.regions import in_words
from louver.app.session import Session
from louver.app.words import RELATIONS, amount_text
from louver.errors import LouverError
from louver.privacy.budget import Loss, Measure, convert
from louver.privacy.neighbours import Relation, steps

__all__ = ["Strip", "amount_at", "amount_slider", "loss_of", "position", "tell_in_words"]

SMALLEST, LARGEST = -20, 20
"""The slider of an amount: tenths of the decimal logarithm, 0.01 to 100."""
LOOK_SECONDS = 0.05
Told = Mapping[str, Any]


class Release(Protocol):
    """What a page keeps of its release: the name it shall have, and what came of it."""

    name: str
    result: Told | None


class Strip:
    """What a release would cost, its name, the one button that spends, and what was released.

    Parameters
    ----------
    session : Session
    asked : Release
    records : str
        Where they come from, in words.
    loss : callable
        What is asked for now; None while nobody knows.
    job : callable
        The job and its first arguments, before ledger and folder; or a sentence about what is missing.
    title : callable
        Says what was released.
    largest_unit : callable
        As for `Ledger.reserve`.
    """

    def __init__(
        self,
        session: Session,
        asked: Release,
        *,
        records: str,
        loss: Callable[[], Loss | None],
        job: Callable[[], tuple[Any, ...] | str],
        title: Callable[[Told], str],
        largest_unit: Callable[[], int | None] = lambda: None,
    ) -> None:
        self._session, self._asked, self._records = session, asked, records
        self._loss, self._job, self._title, self._largest_unit = loss, job, title, largest_unit
        self._draw_cost()
        self._bar = RunBar(session, "spend")  # waits for no search: what was confirmed is what is there now
        self._result = tag("div")
        self._regions = RegionView(session)

    async def start(self) -> None:
        """What there is, and a measurement that was begun before the page was left."""
        if self._session.balance is None:
            await self._refresh_ledger()
        await self.show()
        was_spending = False
        while self._session.is_spending:
            was_spending = True
            if not await self._bar.follow("measure"):  # before and after its work the ledger is read
                await asyncio.sleep(LOOK_SECONDS)
        if was_spending:
            await self._refresh_ledger()
            await self.show()

    async def show(self) -> None:
        """The cost as it is now, and the release that there is."""
        self.draw()
        found = self._asked.result
        self._result.clear()
        if found is None:
            self._regions.clear()
            return
        with (
            self._result,
            verdict("ok", self._title(found), found["paid"], is_status=False),
            tag("div", "row wrap"),
        ):
            Ways(self._session, self._bar, found["name"])
            button("See all releases", lambda: self._session.show("releases"), kind="mini")
        await self._regions.show(found["name"])

    def draw(self) -> None:
        """The cost as it is now."""
        if not self._can_spend:
            return
        loss = self._loss()
        self._asks.text = (
            f"This asks for {'…' if loss is None else f'{loss.measure} {amount_text(loss.amount)}.'}"
        )
        self._keeps.text, is_payable = self._left(loss)
        is_payable = is_payable and not self._session.is_spending
        self._button.clear()
        with self._button:
            made = button(
                "Publish…", kind="pri", data_run="", data_publish="", disabled=None if is_payable else True
            )
            if loss is not None and is_payable:
                self._ask(loss).opens(made)

    @property
    def _can_spend(self) -> bool:
        return self._session.setup.ledger is not None

    def _draw_cost(self) -> None:
        if not self._can_spend:
            with verdict(
                "plain",
                "No ledger: nothing can be spent.",
                "A ledger grants an amount for these people and keeps account of it.",
                is_status=False,
            ):
                button("Make or choose one", lambda: self._session.show("ledger"), kind="mini")
            return
        with card("pad row between wrap"):
            with tag("div", "grow"):
                self._asks, self._keeps = tag("b", "b"), tag("p", "s sub")
            with tag("div", "row end"):
                field("Name of the release", self._asked.name, self._set_name)
                self._button = tag("div")

    def _ask(self, loss: Loss) -> Confirm:
        what = f"The noise is drawn once, from {self._records}. This cannot be undone. {self._left(loss)[0]}"
        return Confirm(f"Spend {amount_text(loss.amount)} of {loss.measure}?", what, "Measure", self._measure)

    def _left(self, loss: Loss | None) -> tuple[str, bool]:
        """What the ledger has and would keep, in its own measure and for its own neighbours; and whether it can pay."""
        balance = self._session.balance
        if balance is None:
            return (
                "What the ledger has is not known yet; the page Ledger tells where it cannot be read.",
                False,
            )
        left = Fraction(balance["left"])
        has = f"The ledger has {balance['measure']} {amount_text(left)}"
        if loss is None:
            return f"{has}.", False
        measure, relation = Measure(balance["measure"]), Relation(balance["neighbours"])
        largest = self._largest_unit()
        if steps(loss.neighbours, relation, largest_unit=largest) is None:
            means = RELATIONS[relation]
            return (
                f"The ledger is for {means}; choose that under Neighbours, or start with another ledger.",
                False,
            )
        try:
            debit = convert(loss, measure, relation, largest_unit=largest).amount
        except LouverError as error:
            return str(error)[:1].upper() + str(error)[1:], False
        counted = "" if debit == loss.amount else f"There it counts {amount_text(debit)}. "
        if debit > left:
            return f"{counted}Not enough left: the ledger has {amount_text(left)}.", False
        return f"{counted}{has} and keeps {amount_text(left - debit)}.", True

    def _set_name(self, value: str) -> None:
        self._asked.name = value.strip()

    async def _measure(self) -> None:
        session, job = self._session, self._job()
        if session.is_spending:
            self._bar.tell("a measurement is under way; wait for its end.")
            return
        if isinstance(job, str):
            self._bar.tell(job)
            return
        try:
            out = out_folder(session.setup.releases, self._asked.name)
        except LouverError as error:
            self._bar.tell(str(error))
            return
        session.is_spending = True
        self.draw()
        try:
            if await self._is_as_shown():
                await self._spend(job, out)
        finally:
            session.is_spending = False
        if not self._bar.is_gone:
            await self.show()
        elif self._bar.sentence:
            session.tell(f"the measurement for {self._asked.name}: {self._bar.sentence}")

    async def _is_as_shown(self) -> bool:
        """Whether the ledger has what it had when somebody confirmed; others may have spent from it."""
        before = self._session.balance
        await self._refresh_ledger()
        now = self._session.balance
        if before is None or now is None or before["left"] == now["left"]:
            return True
        self._bar.tell("others have used the ledger meanwhile; look at what is left, and measure then.")
        return False

    async def _spend(self, job: tuple[Any, ...], out: str) -> None:
        before, name = self._session.balance, self._asked.name
        found = await self._bar.do(*job, str(self._session.setup.ledger), out, key="measure")
        await self._refresh_ledger()
        after = self._session.balance
        if found is not None:
            self._asked.result = {**found, "name": name, "paid": _paid(before, after)}
        elif self._bar.is_cancelled:
            self._bar.tell(_stopped(before, after, is_there=Path(out).exists()))

    async def _refresh_ledger(self) -> None:
        if self._session.refresh_ledger is not None:
            await self._session.refresh_ledger()


def _paid(before: Told | None, after: Told | None) -> str:
    if before is None or after is None:
        return ""
    return f"The ledger had {amount_text(before['left'])} before and has {amount_text(after['left'])} now."


def _stopped(before: Told | None, after: Told | None, *, is_there: bool) -> str:
    """What a cancelled measurement left."""
    if is_there:
        return "cancelled too late: the release is there, and paid for; see Releases."
    if before is None or after is None or before["left"] == after["left"]:
        return "cancelled: nothing was spent."
    return (
        f"cancelled after {amount_text(Fraction(before['left']) - Fraction(after['left']))} was debited. Measure once more under the "
        "same name to go on: the noise is the same, and nothing more is paid."
    )


def loss_of(told: Mapping[str, str]) -> Loss:
    """A loss as a job tells it."""
    return Loss(Fraction(told["amount"]), Measure(told["measure"]), Relation(told["neighbours"]))


def amount_slider(measure: str, amount: Fraction, handler: Callable[[Fraction], Any]) -> None:
    """How much is asked for; `handler` is told every amount that it passes."""
    with tag("div", "row between"):
        tag("h3", text=f"Privacy loss, {measure}")
        shown = tag("b", "nowrap", amount_text(amount))
    slider = tag(
        "input", type="range", min=SMALLEST, max=LARGEST, value=position(amount), aria_label="Privacy loss"
    )

    def slid(place: str) -> Any:
        moved = amount_at(int(place))
        shown.text = amount_text(moved)
        return handler(moved)

    slider.changed(slid, "input")
    with tag("div", "row between s sub"):
        tag("span", text="more private")
        tag("span", text="more accurate")


def tell_in_words(share: float) -> None:
    """How good a number is that is off by this share of it."""
    pill(*in_words(share))


def amount_at(position: int) -> Fraction:
    """Epsilon at a place of the slider: two digits, so that a ledger adds up to something people can read."""
    return Fraction(f"{10 ** (position / 10):.1e}")


def position(amount: Fraction) -> int:
    return min(range(SMALLEST, LARGEST + 1), key=lambda place: abs(amount_at(place) - amount))
