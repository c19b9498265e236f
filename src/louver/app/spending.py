"""Spending from ledgers and samples: the budget strip, amounts, the steps of a paid release, and a tab's own sample ledgers."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from fractions import Fraction
from pathlib import Path
from typing import Any, Protocol

from louver.app.controls import Confirm
from louver.app.jobs.ledgers import ledger_left, practice_ledger
from louver.app.jobs.releases import free_name, out_folder
from louver.app.look import RunBar, Tag, button, card, field, pill, tag, verdict, verdict_of
from louver.app.publishing import Ways
from louver.app.region_view import RegionView
from louver.app.regions import in_words
from louver.app.session import JobAnswer, Session
from louver.app.words import RELATIONS, amount_text
from louver.errors import LouverError
from louver.privacy.budget import Loss, Measure, convert, fraction_of
from louver.privacy.ledger_check import SAMPLE_LEDGERS
from louver.privacy.neighbours import Relation, steps
from louver.topdown.solve import work_of

__all__ = [
    "GRANTED",
    "Practice",
    "Strip",
    "amount_at",
    "amount_slider",
    "loss_of",
    "position",
    "tell_in_words",
]

GRANTED = Fraction(10)


class Practice:
    """The ledgers of a tab from which samples spend: one for each measure and neighbour relation that is tried."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def path(self, loss: Loss) -> Path:
        """Location of the ledger, existing or not, that can pay a loss."""
        session = self._session
        own = f"{session.folder.name}-{loss.measure}-{loss.neighbours}"
        return session.setup.releases / SAMPLE_LEDGERS / own / "sample.ledger"

    def balance(self, loss: Loss) -> dict[str, str]:
        """The balance; the ledger is created when something is spent."""
        new = {"granted": str(GRANTED), "left": str(GRANTED), "held": "0"}
        kind = {"measure": str(loss.measure), "neighbours": str(loss.neighbours)}
        return self._session.practice.get(self.path(loss), kind | new)

    async def refresh(self, loss: Loss) -> None:
        """Read the balance."""
        path = self.path(loss)
        if path.exists():
            self._session.practice[path] = await self._session.ask(ledger_left, str(path), key="")

    async def make(self, loss: Loss) -> None:
        """Create the ledger if it is missing."""
        kind = str(loss.measure), str(loss.neighbours)
        await self._session.ask(practice_ledger, str(self.path(loss)), *kind, str(GRANTED), key="")


SMALLEST, LARGEST = -20, 20
"""The slider of an amount: tenths of the decimal logarithm, 0.01 to 100."""
LOOK_SECONDS = 0.05
PAID = "The same noise is drawn from where it stopped, and nothing more is debited."
PRACTICE = "It is for trying things out, and is kept next to the releases. No other ledger is charged."


class PaidRelease(Protocol):
    """State of a page about its release: its intended name and its result."""

    name: str
    result: JobAnswer | None


class Strip:
    """The cost of a release, its name, the one button that spends, and the outcome.

    Parameters
    ----------
    session : Session
    requested : PaidRelease
    records : str
        Origin of the records, in words.
    stem : str
        Default name for releases of this page.
    loss : callable
        The loss currently requested; None while it is unknown.
    job : callable
        The job and its first arguments, before ledger and folder; or a sentence about what is missing.
    title : callable
        Describes the release.
    largest_unit : callable
        As for `Ledger.reserve`.
    is_sample : callable
        Whether the records are those of a sample, which spends only from its own ledger.
    ways : callable, optional
        Receives the name of the release that is shown; draws further actions for it.
    after : callable, optional
        Receives the name of the release that is shown, or None.
    is_paid : callable
        The job and its first arguments, before ledger and folder, that shows whether this was paid for and interrupted.
    """

    def __init__(
        self,
        session: Session,
        requested: PaidRelease,
        *,
        records: str,
        stem: str,
        loss: Callable[[], Loss | None],
        job: Callable[[], tuple[Any, ...] | str],
        title: Callable[[JobAnswer], str],
        largest_unit: Callable[[], int | None] = lambda: None,
        is_sample: Callable[[], bool] = lambda: False,
        is_paid: Callable[[], tuple[Any, ...] | None] = lambda: None,
        after: Callable[[str | None], Awaitable[None]] | None = None,
        ways: Callable[[str], object] = lambda name: None,
    ) -> None:
        self._session, self._state, self._records = session, requested, records
        self._stem, self._after, self._ways = stem, after, ways
        self._is_sample, self._practice = is_sample, Practice(session)
        self._paid_job, self._is_paid = is_paid, False
        self._paid_for: tuple[Any, ...] = ()
        self._drawn: tuple[Any, ...] = ()
        self._name_shown: Tag | None = None
        self._loss, self._job, self._title, self._largest_unit = loss, job, title, largest_unit
        self._draw_cost()
        self._bar = RunBar(
            session, "spend"
        )  # this does not wait for a search, so the confirmed request is the one shown now
        self._result = tag("div")
        self._regions = RegionView(session)

    async def start(self) -> None:
        """Show the current state, and follow a measurement that was started before the page was left."""
        if self._balance(self._loss()) is None:
            await self._refresh_ledger(self._loss())
        await self.show()
        was_spending = False
        while self._session.is_spending:
            was_spending = True
            if not await self._bar.follow(
                "measure"
            ):  # the ledger is being read, before or after the measurement
                await asyncio.sleep(LOOK_SECONDS)
        if was_spending:
            await self._refresh_ledger(self._loss())
            await self.show()

    async def show(self) -> None:
        """The current cost, and the release if there is one."""
        await self.update()
        found = self._state.result
        self._result.clear()
        if self._after is not None:
            await self._after(None if found is None else found["name"])
        if found is None:
            self._regions.clear()
            return
        with (
            self._result,
            verdict_of(found["verdict"], f"{self._title(found)} {found['paid']}".strip(), is_status=False),
            tag("div", "row wrap"),
        ):
            Ways(self._session, self._bar, found["name"])
            self._ways(found["name"])
            button("See all releases", lambda: self._session.show("releases"), kind="mini")
        await self._regions.show(found["name"])

    async def update(self) -> None:
        """The current cost; a release interrupted after payment costs nothing more."""
        self.draw(is_paid=self._is_paid and self._wanted() == self._paid_for)
        await self._look_for_payment()

    def _wanted(self) -> tuple[Any, ...]:
        """The request, and the name of its release."""
        return self._loss(), self._paid_job(), self._state.name

    async def _look_for_payment(self) -> None:
        loss, job, releases = self._loss(), self._paid_job(), self._session.setup.releases
        balance = self._balance(loss)
        if not self._can_spend or loss is None or job is None or balance is None:
            return
        out = releases / (self._state.name or "-")
        is_paid, wanted = False, self._wanted()
        if Fraction(balance["held"]) or work_of(out).exists():
            with suppress(LouverError):  # the measurement itself reports the error
                is_paid = await self._session.ask(*job, self._ledger(loss), str(out), key="paid")
        if is_paid is not self._is_paid and not self._bar.is_gone and wanted == self._wanted():
            self._paid_for = wanted
            self.draw(is_paid=is_paid)

    def draw(self, *, is_paid: bool = False) -> None:
        """Draw the current cost; an open confirmation remains while nothing has changed."""
        self._is_paid = is_paid
        if not self._can_spend:
            return
        loss = self._loss()
        self._asks.text = (
            "This was interrupted after payment."
            if is_paid
            else f"This costs {'…' if loss is None else f'{loss.measure} {amount_text(loss.amount)}.'}"
        )
        self._keeps.text, is_payable = self._left(loss)
        is_payable = is_payable and not self._session.is_spending
        drawn = is_paid, is_payable, loss, str(self._balance(loss)), self._keeps.text
        if drawn == self._drawn:
            return
        self._drawn = drawn
        self._button.clear()
        with self._button:
            text = "Go on…" if is_paid else "Publish…"
            made = button(
                text, kind="pri", data_run="", data_publish="", disabled=None if is_payable else True
            )
            if loss is not None and is_payable:
                self._ask(loss).opens(made)

    @property
    def _can_spend(self) -> bool:
        return self._is_sample() or self._session.setup.ledger is not None

    def _balance(self, loss: Loss | None) -> dict[str, str] | None:
        """The balance of the paying ledger; a sample's is known before it is created, once the cost is known."""
        if not self._is_sample():
            return self._session.balance
        return None if loss is None else self._practice.balance(loss)

    def _draw_cost(self) -> None:
        if not self._can_spend:
            with verdict(
                "plain",
                "No ledger: nothing can be spent.",
                "A ledger grants an amount for these people and records how it is spent.",
                is_status=False,
            ):
                button("Make or choose one", lambda: self._session.show("ledger"), kind="mini")
            return
        releases, name = self._session.setup.releases, self._state.name
        if not name or (releases / name).exists():
            self._state.name = free_name(releases, self._stem)
        with card("pad row between wrap"):
            with tag("div", "grow"):
                self._asks, self._keeps = tag("b", "b"), tag("p", "s sub")
            with tag("div", "row end"):
                field("Name of the release", self._state.name, self._set_name)
                self._button = tag("div")

    def _ask(self, loss: Loss) -> Confirm:
        """The confirmation before spending: the cost, and the name under which the release is stored."""
        if self._is_paid:
            dialog = Confirm("Continue with what was paid for?", PAID, "Go on", self._measure)
        else:
            amount = f"{amount_text(loss.amount)} of {loss.measure}"
            what = f"The noise is drawn once, from {self._records}. This cannot be undone."
            dialog = Confirm(f"Spend {amount}?", what, "Measure", self._measure)
        with dialog.inside, tag("table", "sums"), tag("tbody"):
            for name, value in self._sums(loss):
                with tag("tr"):
                    tag("th", text=name, scope="row")
                    tag("td", "r", value)
            with tag("tr"):
                tag("th", text="Name of the release", scope="row")
                self._name_shown = tag("td", "r", self._state.name)
        return dialog

    def _sums(self, loss: Loss) -> list[tuple[str, str]]:
        """The ledger's balance before and after."""
        balance, debit = self._balance(loss), self._debit(loss)
        assert balance is not None
        left = Fraction(balance["left"])
        if self._is_paid:
            return [("In the ledger, before and after", amount_text(left))]
        return [
            ("In the ledger now", amount_text(left)),
            ("This release", f"− {amount_text(debit)}"),
            ("In the ledger afterwards", amount_text(left - debit)),
        ]

    def _debit(self, loss: Loss) -> Fraction:
        """A loss in the measure of the ledger and for its neighbours."""
        balance = self._balance(loss)
        assert balance is not None
        kind = Measure(balance["measure"]), Relation(balance["neighbours"])
        return convert(loss, *kind, largest_unit=self._largest_unit()).amount

    def _ledger(self, loss: Loss) -> str:
        """Location of the paying ledger."""
        return str(self._practice.path(loss) if self._is_sample() else self._session.setup.ledger)

    def _left(self, loss: Loss | None) -> tuple[str, bool]:
        """The balance now and afterwards, in the ledger's own measure and for its own neighbours; and whether it can pay."""
        balance = self._balance(loss)
        if balance is None and self._is_sample():
            return PRACTICE, False
        if balance is None:
            return (
                "The balance of the ledger is not known yet; if it cannot be read, the page Ledger says why.",
                False,
            )
        if self._is_paid:
            return PAID, True
        left = Fraction(balance["left"])
        whose = "The sample's own ledger" if self._is_sample() else "The ledger"
        has = f"{whose} has {balance['measure']} {amount_text(left)}"
        if loss is None:
            return f"{has}.", False
        relation = Relation(balance["neighbours"])
        if steps(loss.neighbours, relation, largest_unit=self._largest_unit()) is None:
            means = RELATIONS[relation]
            return (
                f"The ledger is for {means}; choose that under Neighbours, or choose another on the page Ledger.",
                False,
            )
        try:
            debit = self._debit(loss)
        except LouverError as error:
            return str(error)[:1].upper() + str(error)[1:], False
        counted = "" if debit == loss.amount else f"There it counts {amount_text(debit)}. "
        if debit > left:
            return f"{counted}Not enough left: the ledger has {amount_text(left)}.", False
        practice = f" {PRACTICE}" if self._is_sample() else ""
        return f"{counted}{has} and keeps {amount_text(left - debit)}.{practice}", True

    async def _set_name(self, value: str) -> None:
        self._state.name = value.strip()
        if self._name_shown is not None and not self._name_shown.is_deleted:
            self._name_shown.text = self._state.name
        await self._look_for_payment()

    async def _measure(self) -> None:
        session, job, loss = self._session, self._job(), self._loss()
        if session.is_spending:
            self._bar.tell("a measurement is under way; wait for its end.")
            return
        if isinstance(job, str):
            self._bar.tell(job)
            return
        try:
            out = out_folder(session.setup.releases, self._state.name)
        except LouverError as error:
            self._bar.tell(str(error))
            return
        session.is_spending = True
        self.draw()
        try:
            if await self._is_as_shown(loss):
                await self._spend(job, out, loss)
        finally:
            session.is_spending = False
        if not self._bar.is_gone:
            await self.show()
        elif self._bar.sentence:
            session.tell(f"the measurement for {self._state.name}: {self._bar.sentence}")

    async def _is_as_shown(self, loss: Loss | None) -> bool:
        """Whether the ledger has the same balance as at confirmation; others may have spent from it."""
        before = self._balance(loss)
        await self._refresh_ledger(loss)
        now = self._balance(loss)
        if before is None or now is None or before["left"] == now["left"]:
            return True
        self._bar.tell("the ledger has been used by others in the meantime; check the balance, then measure.")
        return False

    async def _spend(self, job: tuple[Any, ...], out: str, loss: Loss | None) -> None:
        before, name = self._balance(loss), self._state.name
        assert loss is not None
        if self._is_sample():
            await self._practice.make(loss)
        found = await self._bar.do(*job, self._ledger(loss), out, key="measure")
        await self._refresh_ledger(loss)
        after = self._balance(loss)
        if found is not None:
            self._state.result = {**found, "name": name, "paid": _paid(before, after)}
        elif self._bar.is_cancelled:
            self._bar.tell(_stopped(before, after, is_there=Path(out).exists()))

    async def _refresh_ledger(self, loss: Loss | None) -> None:
        if self._is_sample():
            if loss is not None:
                await self._practice.refresh(loss)
        elif self._session.refresh_ledger is not None:
            await self._session.refresh_ledger()


def _paid(before: JobAnswer | None, after: JobAnswer | None) -> str:
    if before is None or after is None:
        return ""
    return f"The ledger had {amount_text(before['left'])} before and has {amount_text(after['left'])} now."


def _stopped(before: JobAnswer | None, after: JobAnswer | None, *, is_there: bool) -> str:
    """The state after a cancelled measurement."""
    if is_there:
        return "cancelled too late: the release was written and paid for; see Releases."
    if before is None or after is None or before["left"] == after["left"]:
        return "cancelled: nothing was spent."
    return (
        f"cancelled after {amount_text(Fraction(before['left']) - Fraction(after['left']))} was debited. Continue under the same name: "
        "the noise is the same, and nothing more is debited."
    )


def loss_of(content: Mapping[str, str]) -> Loss:
    """A loss as a job reports it."""
    return Loss(Fraction(content["amount"]), Measure(content["measure"]), Relation(content["neighbours"]))


def amount_slider(measure: str, amount: Fraction, handler: Callable[[Fraction], Any]) -> None:
    """The requested amount, on a slider or typed; `handler` is called with every amount the slider passes."""
    with tag("div", "row between"):
        tag("h3", text=f"Privacy loss, {measure}")
        shown = tag(
            "input", "inp k", value=_typed(amount), inputmode="decimal", aria_label=f"Privacy loss, {measure}"
        )
    slider = tag(
        "input", type="range", min=SMALLEST, max=LARGEST, value=position(amount), aria_label="Privacy loss"
    )

    def slid(place: str) -> Any:
        moved = amount_at(int(place))
        shown.set(value=_typed(moved), aria_invalid=None)
        return handler(moved)

    def typed(text: str) -> Any:
        try:
            requested = fraction_of(text.strip(), "the amount")
        except LouverError:
            shown.set(aria_invalid="true")
            return None
        shown.set(aria_invalid=None)
        slider.set(value=position(requested))
        return handler(requested)

    slider.changed(slid, "input")
    shown.changed(typed)
    with tag("div", "row between s sub"):
        tag("span", text="more private")
        tag("span", text="more accurate")


def _typed(amount: Fraction) -> str:
    """An amount as a user would type it: a decimal number, or a fraction if no decimal is exact."""
    short = f"{float(amount):.6g}"
    return short if Fraction(short) == amount else str(amount)


def tell_in_words(share: float) -> None:
    """A rating of a number with this relative error."""
    pill(*in_words(share))


def amount_at(position: int) -> Fraction:
    """Epsilon at a slider position: two digits, so that the ledger's totals stay readable."""
    return Fraction(f"{10 ** (position / 10):.1e}")


def position(amount: Fraction) -> int:
    return min(range(SMALLEST, LARGEST + 1), key=lambda place: abs(amount_at(place) - amount))
