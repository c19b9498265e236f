"""What the pages that spend share: amounts on a slider, the strip that asks before it pays, and a release region by region."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any, Protocol

from louver.app.dialogs import Confirm
from louver.app.jobs.books import out_folder
from louver.app.look import RunBar, Tag, button, card, field, pill, table, tag, verdict
from louver.app.session import Session
from louver.app.words import amount_text
from louver.errors import LouverError

__all__ = ["Strip", "amount_at", "amount_slider", "position", "tell_in_words"]

SMALLEST, LARGEST = -20, 20
"""The slider of an amount: tenths of the decimal logarithm, 0.01 to 100."""
WORDS = ((0.01, "very good", "ok"), (0.05, "usable", "acc"), (0.2, "rough", "care"))
WIDEST = 0.5
"""Where the pictures of intervals end."""
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
    amount : callable
        Measure and amount that are asked for now.
    job : callable
        The job and its first arguments, before ledger and folder; or a sentence about what is missing.
    title : callable
        Says what was released.
    column : str
        What the numbers of regions are.
    """

    def __init__(
        self,
        session: Session,
        asked: Release,
        *,
        records: str,
        amount: Callable[[], tuple[str, Fraction]],
        job: Callable[[], tuple[Any, ...] | str],
        title: Callable[[Told], str],
        column: str,
    ) -> None:
        self._session, self._asked, self._records = session, asked, records
        self._amount, self._job, self._title, self._column = amount, job, title, column
        self._cost = tag("div")
        self._bar = RunBar(session, "long")
        self._result = tag("div")

    def draw(self) -> None:
        """The cost as it is now, and the release that there is."""
        self._draw_cost()
        self._draw_result()

    def _draw_cost(self) -> None:
        self._cost.clear()
        with self._cost:
            if self._session.setup.ledger is None:
                verdict(
                    "plain",
                    "No ledger: nothing can be spent.",
                    "Start louver explore with --ledger FILE.",
                    is_status=False,
                )
                return
            measure, amount = self._amount()
            with card("pad row between"):
                with tag("div"):
                    tag("b", "b", f"This asks for {measure} {amount_text(amount)}.")
                    tag("p", "s sub", self._left(Fraction(0)))
                with tag("div", "row"):
                    field("Name of the release", self._asked.name, self._set_name)
                    what = f"The noise is drawn once, from {self._records}. This cannot be undone. {self._left(amount)}"
                    question = f"Spend {amount_text(amount)} of {measure}?"
                    Confirm(question, what, "Measure", self._measure).opens(
                        button("Measure…", kind="pri", data_run="")
                    )

    def _left(self, amount: Fraction) -> str:
        balance = self._session.balance
        if balance is None:
            return ""
        left = Fraction(balance["left"])
        if not amount:
            return f"{amount_text(left)} is left in the ledger."
        if amount > left:
            return f"Not enough left: the ledger has {amount_text(left)}."
        return f"The ledger has {amount_text(left)} and keeps {amount_text(left - amount)}."

    def _set_name(self, value: str) -> None:
        self._asked.name = value.strip()

    async def _measure(self) -> None:
        session, job = self._session, self._job()
        if isinstance(job, str):
            self._bar.tell(job)
            return
        try:
            out = out_folder(session.setup.releases, self._asked.name)
        except LouverError as error:
            self._bar.tell(str(error))
            return
        found = await self._bar.do(*job, str(session.setup.ledger), out, key="measure")
        if session.refresh_ledger is not None:
            await session.refresh_ledger()
        if found is not None:
            self._asked.result = found
        self.draw()

    def _draw_result(self) -> None:
        found = self._asked.result
        self._result.clear()
        if found is None:
            return
        with self._result, card():
            with tag("div", "pad row"):
                tag("h2", text=self._title(found))
                button("See all releases", lambda: self._session.show("releases"), kind="mini ghost")
            with _region_table(self._column):
                for row in found["table"]:
                    _region_line(row)


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
    pill(*next(((word, kind) for most, word, kind in WORDS if share <= most), ("too noisy alone", "stop")))


def _region_table(what: str) -> Tag:
    """A table of regions; put the lines into what is returned."""
    columns = {"Region": "", what: "r", "90 % interval": "r"}
    return table(columns | {f"error, -{WIDEST:.0%} to +{WIDEST:.0%}": "", "": "r"})


def _region_line(row: Told) -> None:
    """One published number with its interval, indented by its level."""
    persons = max(row["persons"], 1)
    with tag("tr"):
        tag("td", "" if row["level"] else "b", str(row["name"])).style(
            f"padding-left:{8 + 18 * row['level']}px"
        )
        tag("td", "r b", f"{row['persons']:,}")
        is_exact = row["lower"] == row["upper"]
        tag("td", "r s", "exact" if is_exact else f"{row['lower']:,} to {row['upper']:,}")
        below, above = ((row[end] - row["persons"]) / persons for end in ("lower", "upper"))
        with tag("td"), tag("div", "whisker"):
            start, end = (50 + 50 * max(-1.0, min(1.0, off / WIDEST)) for off in (below, above))
            tag("i").style(f"left:{start:.2f}%;width:{end - start:.2f}%")
            tag("b").style("left:50%")
        half = 50 * (above - below)
        tag("td", "r s", "" if is_exact else f"± {half:.0f} %" if half >= 10 else f"± {half:.2g} %")


def amount_at(position: int) -> Fraction:
    """Epsilon at a place of the slider: two digits, so that a ledger adds up to something people can read."""
    return Fraction(f"{10 ** (position / 10):.1e}")


def position(amount: Fraction) -> int:
    return min(range(SMALLEST, LARGEST + 1), key=lambda place: abs(amount_at(place) - amount))
