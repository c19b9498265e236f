"""Group sizes: how many households of each size every region has, with noise; the forecast changes as the budget moves."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from functools import partial
from typing import Any

from louver.app.copying import Call
from louver.app.dialogs import Confirm
from louver.app.jobs.groups import column_names, forecast, out_folder, release
from louver.app.look import (
    RunBar,
    Tag,
    button,
    card,
    copy_button,
    field,
    head,
    pill,
    segments,
    select,
    table,
    tag,
    verdict,
)
from louver.app.session import Session
from louver.app.words import amount_text
from louver.data.samples import sample_path
from louver.errors import LouverError
from louver.groups import GroupsOptions
from louver.schema.source import SourceOptions

__all__ = ["LARGEST", "SMALLEST", "amount_at", "build", "position", "region_line", "region_table"]

SMALLEST, LARGEST = -20, 20
"""The slider of epsilon: tenths of the decimal logarithm, 0.01 to 100."""
RELATIONS = {
    "add-remove-record": "one person more or less",
    "change-record": "one person's answers changed",
    "add-remove-unit": "one whole unit more or less",
}
WORDS = ((0.01, "very good", "ok"), (0.05, "usable", "acc"), (0.2, "rough", "care"))
WIDEST = 0.5
"""Where the pictures of intervals end."""
Told = Mapping[str, Any]


class Asked:
    """What a tab chose."""

    def __init__(self) -> None:
        self.domain: str | None = None
        self.domain_name = ""
        self.columns: list[str] = []
        self.regions: list[str] = []
        self.unit = ""
        self.max_size = 20
        self.expect = 10_000
        self.epsilon = Fraction(1)
        self.shares: dict[str, int] = {}
        self.sharing = "chosen"
        self.neighbours = "add-remove-record"
        self.name = ""
        self.released: Told | None = None

    @property
    def levels(self) -> list[str]:
        """The levels that take a share, the whole first."""
        return ["total", *self.regions]

    def options(self) -> dict[str, Any]:
        """What is asked of the verb; checked by its own model."""
        shares: Any = self.sharing
        if self.sharing == "own":
            parts = [self.shares.get(level, 1) for level in self.levels]
            shares = [f"{part}/{sum(parts)}" for part in parts]
        return {
            "unit": self.unit or "unit",
            "regions": list(self.regions),
            "domain": self.domain,
            "max_size": self.max_size,
            "epsilon": str(self.epsilon),
            "shares": shares,
            "neighbours": self.neighbours,
        }


async def build(session: Session) -> None:
    """Draw the page."""
    await _Page(session).start()


class _Page:
    """The form, its forecast, and what came of it."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._asked = session.state(Asked)

    async def start(self) -> None:
        with head("Group sizes", "how many units of each size, by region, with noise"):
            pill("records not read", "ok", "lock")
            copy_button(self._call)
        self._session.receivers["domain"] = self._take_domain
        with tag("div", "across form"):
            self._form = card("stack form")
            with tag("div", "stack"):
                self._bar = RunBar(self._session, "quick")
                self._forecast = card()
                self._strip = tag("div")
                self._long = RunBar(self._session, "long")
                self._result = tag("div")
        self._draw_form()
        self._draw_strip()
        self._draw_result()
        await self._update()

    def _draw_form(self) -> None:
        asked = self._asked
        self._form.clear()
        with self._form:
            with tag("div", "pad part"):
                tag("h3", text="Regions, from a public file")
                choose = tag("input", "gone", type="file", id="domain", aria_label="List of regions")
                choose.on("change", js_handler="(e) => louver.upload(e.target.files[0], 'domain')")
                tag(
                    "p",
                    "s",
                    asked.domain_name or "Nothing chosen: a table with one row for each smallest region.",
                )
                with tag("div", "row"):
                    button("Choose a file", kind="mini").on(
                        "click", js_handler="() => document.getElementById('domain').click()"
                    )
                    button("Try the sample", self._take_sample, kind="mini ghost")
                for name in asked.columns:
                    with tag("label", "row"):
                        box = tag("input", type="checkbox", checked=name in asked.regions)
                        box.on("change", partial(self._toggle, name), args=[])
                        tag("span", text=name)
            with tag("div", "pad part"):
                field("Column that says which unit a person is in", asked.unit, self._set_unit)
                field(
                    "Largest size told apart",
                    asked.max_size,
                    partial(self._set_number, "max_size"),
                    type="number",
                    min=1,
                )
                field(
                    "About how many units there are",
                    asked.expect,
                    partial(self._set_number, "expect"),
                    type="number",
                    min=1,
                )
            with tag("div", "pad part"):
                self._draw_budget()

    def _draw_budget(self) -> None:
        asked = self._asked
        tag("h3", text="Privacy loss, epsilon")
        with tag("div", "row"):
            slider = tag(
                "input",
                type="range",
                min=SMALLEST,
                max=LARGEST,
                value=position(asked.epsilon),
                aria_label="Epsilon",
            )
            slider.changed(self._slide, "input")
            self._amount = tag("b", "nowrap", amount_text(asked.epsilon))
        with tag("div", "row between s sub"):
            tag("span", text="more private")
            tag("span", text="more accurate")
        tag("p", "s sub", "Neighbours")
        select(RELATIONS, asked.neighbours, partial(self._set, "neighbours"), "Neighbours")
        tag("p", "s sub", "Shares of the levels")
        choices = {"chosen": "chosen", "equal": "equal", "own": "my own"}
        segments(choices, asked.sharing, self._set_sharing, "Shares of the levels")
        if asked.sharing == "own":
            for level in asked.levels:
                with tag("label", "slide"):
                    tag("span", text=level)
                    one = tag(
                        "input",
                        type="range",
                        min=1,
                        max=100,
                        value=asked.shares.get(level, 1),
                        aria_label=f"Share of {level}",
                    )
                    one.changed(partial(self._set_share, level), "input")
                    tag("span", text=f"{asked.shares.get(level, 1)}", id=None)

    async def _take_domain(self, path: str, name: str) -> None:
        columns = await self._bar.do(column_names, path, key="columns")
        if columns is not None:
            self._asked.domain, self._asked.domain_name = path, name
            self._asked.columns, self._asked.regions = columns, list(columns)
            self._draw_form()
            await self._update()

    async def _take_sample(self) -> None:
        self._session.open_sample("ges2013")
        self._session.refresh_top()
        self._asked = self._session.state(Asked)
        self._asked.unit, self._asked.expect = "CASENUM", 35_000
        await self._take_domain(str(sample_path("ges2013_regions")), "Regions of the sample of crashes")

    async def _toggle(self, name: str) -> None:
        chosen = set(self._asked.regions) ^ {name}
        self._asked.regions = [one for one in self._asked.columns if one in chosen]
        await self._update()

    async def _set(self, name: str, value: str) -> None:
        setattr(self._asked, name, value)
        await self._update()

    async def _set_sharing(self, value: str) -> None:
        self._asked.sharing = value
        if value == "own" and not self._asked.shares:
            self._asked.shares = dict.fromkeys(self._asked.levels, 25)
        self._draw_form()
        await self._update()

    def _set_unit(self, value: str) -> None:
        self._asked.unit = value.strip()
        self._draw_strip()

    async def _set_number(self, name: str, value: str) -> None:
        if not value.isdigit() or not int(value):
            self._bar.tell("this must be a whole number of at least 1.")
            return
        await self._set_value(name, int(value))

    async def _set_value(self, name: str, value: int) -> None:
        setattr(self._asked, name, value)
        await self._update()

    async def _set_share(self, level: str, value: str) -> None:
        self._asked.shares[level] = int(value)
        await self._update()

    async def _slide(self, value: str) -> None:
        self._asked.epsilon = amount_at(int(value))
        self._amount.text = amount_text(self._asked.epsilon)
        self._draw_strip()
        await self._update()

    async def _update(self) -> None:
        """The forecast of what is chosen now; a later choice overtakes an earlier one."""
        asked = self._asked
        if asked.domain is None or not asked.regions:
            self._forecast.clear()
            with self._forecast, tag("div", "pad"):
                tag("h2", text="Forecast")
                tag(
                    "p",
                    "sub",
                    "Choose the public list of regions, and tick the columns from the coarsest to the finest.",
                )
            return
        self._bar.dim(self._forecast)
        found = await self._bar.do(forecast, asked.options(), asked.expect, key="forecast")
        if found is not None:
            self._draw_forecast(found)

    def _draw_forecast(self, found: Told) -> None:
        expect = self._asked.expect
        self._forecast.clear()
        with self._forecast:
            with tag("div", "pad row"):
                tag("h2", text="Forecast: how many units will stand under a wrong size")
                pill("spends nothing, reads no records", "ok", "ok")
            widest = max((level["forecast_l1"] for level in found["levels"]), default=0) or 1
            columns = {
                "Level": "",
                "Regions": "r",
                "Share": "r",
                "Units off": "r",
                "": "",
                "Of all units": "r",
                "In words": "",
            }
            with table(columns):
                for level in found["levels"]:
                    share = level["forecast_l1"] / expect
                    word, kind = next(
                        ((w, k) for most, w, k in WORDS if share <= most), ("too noisy alone", "stop")
                    )
                    with tag("tr"):
                        tag("td", "b", level["name"])
                        tag("td", "r", f"{level['regions']:,}")
                        tag("td", "r", f"{100 * level['share']:.3g} %")
                        tag("td", "r b", f"{level['forecast_l1']:,.0f}")
                        with tag("td"), tag("div", "lane"):
                            tag("i").style(f"width:{100 * level['forecast_l1'] / widest:.1f}%")
                        tag("td", "r", f"{100 * share:.3g} %")
                        with tag("td"):
                            pill(word, kind)
            tag(
                "p",
                "pad s sub",
                f"For about {expect:,} units spread evenly over the regions, all regions of a level together.",
            )

    def _draw_strip(self) -> None:
        """What it would cost, and the one button that spends."""
        self._strip.clear()
        session, asked = self._session, self._asked
        with self._strip:
            if session.setup.ledger is None:
                verdict(
                    "plain",
                    "No ledger: nothing can be spent.",
                    "Start louver explore with --ledger FILE.",
                    is_status=False,
                )
                return
            with card("pad row between"):
                with tag("div"):
                    tag("b", "b", f"This asks for epsilon {amount_text(asked.epsilon)}.")
                    left = session.balance
                    tag(
                        "p",
                        "s sub",
                        "" if left is None else f"{amount_text(left['left'])} is left in the ledger.",
                    )
                with tag("div", "row"):
                    field("Name of the release", asked.name, self._set_name)
                    self._dialog()

    def _set_name(self, value: str) -> None:
        self._asked.name = value.strip()

    def _dialog(self) -> None:
        asked, left = self._asked, self._session.balance
        what = "The noise is drawn once, from the file that is open on the page Data. This cannot be undone."
        if left is not None:
            after = Fraction(left["left"]) - asked.epsilon
            what += (
                f" The ledger has {amount_text(left['left'])} and keeps {amount_text(after)}."
                if after >= 0
                else f" Not enough left: the ledger has {amount_text(left['left'])}."
            )
        dialog = Confirm(f"Spend {amount_text(asked.epsilon)} of epsilon?", what, "Measure", self._measure)
        dialog.opens(button("Measure…", kind="pri", data_run=""))

    async def _measure(self) -> None:
        session, asked = self._session, self._asked
        if session.opened is None:
            self._long.tell("no file is open; open the records on the page Data first.")
            return
        if not asked.unit:
            self._long.tell("name the column that says which unit a person is in.")
            return
        try:
            out = out_folder(session.setup.releases, asked.name)
        except LouverError as error:
            self._long.tell(str(error))
            return
        opened = session.opened
        found = await self._long.do(
            release,
            opened.path,
            opened.source.opening(),
            asked.options(),
            str(session.setup.ledger),
            out,
            key="measure",
        )
        if session.refresh_ledger is not None:
            await session.refresh_ledger()
        if found is not None:
            asked.released = found
            self._draw_result()
        self._draw_strip()

    def _draw_result(self) -> None:
        found = self._asked.released
        self._result.clear()
        if found is None:
            return
        with self._result, card():
            with tag("div", "pad row"):
                tag("h2", text=f"Released: {found['total_groups']:,} units, paid by entry {found['entry']}")
                button("See all releases", lambda: self._session.show("releases"), kind="mini ghost")
            with region_table("People in units"):
                for row in found["table"]:
                    region_line(row)

    def _call(self) -> Call | None:
        asked, opened = self._asked, self._session.opened
        if asked.domain is None or opened is None:
            return None
        options = GroupsOptions.model_validate(
            asked.options() | {"domain": asked.domain_name or asked.domain}
        )
        more = {"--out": asked.name or "release"}
        if self._session.setup.ledger is not None:
            more["--ledger"] = str(self._session.setup.ledger)
        source = opened.source if opened.source.weight is None else SourceOptions()
        return Call(
            options=options, data=opened.copied, source=source, command="groups", function="groups", more=more
        )


def region_table(what: str) -> Tag:
    """A table of regions; put the lines into what is returned."""
    columns = {"Region": "", what: "r", "90 % interval": "r"}
    return table(columns | {f"error, -{WIDEST:.0%} to +{WIDEST:.0%}": "", "": "r"})


def region_line(row: Told) -> None:
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
