"""Group sizes: how many households of each size every region has, with noise; the forecast changes as the budget moves."""

from __future__ import annotations

from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

from louver.app.columns import ColumnChoices
from louver.app.controls import ask_to_replace, share_sliders, shares_of
from louver.app.copying import DRAWN_ANEW, Call
from louver.app.jobs.groups import column_names, forecast, is_paid, release, sizes_of
from louver.app.look import (
    RunBar,
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
)
from louver.app.session import JobAnswer, Opened, Receiver, Session
from louver.app.spending import Strip, amount_slider, loss_of, tell_in_words
from louver.app.words import RELATIONS
from louver.data.samples import sample_path
from louver.groups import GroupsOptions
from louver.privacy.budget import Loss
from louver.schema.source import SourceOptions

__all__ = ["GroupsChoices", "SizesPanel", "build", "repeated"]


class GroupsChoices:
    """The choices made in a tab."""

    def __init__(self) -> None:
        self.domain: str | None = None
        self.domain_name = self.domain_copied = ""
        self.columns: list[str] = []
        self.regions: list[str] = []
        self.unit = ""
        self.max_size = 20
        self.expect = 10_000
        self.epsilon = Fraction(1)
        self.shares: dict[str, Fraction] = {}
        self.sharing = "chosen"
        self.neighbours = "add-remove-record"
        self.loss: Loss | None = None
        self.name = ""
        self.result: JobAnswer | None = None

    @property
    def levels(self) -> list[str]:
        """The levels that take a share, starting with the root."""
        return ["total", *self.regions]

    def parts(self) -> dict[str, Fraction]:
        """The share of each level; a level added later is given the average of the others."""
        known = [self.shares[level] for level in self.levels if level in self.shares]
        mean = sum(known, Fraction(0)) / len(known) if known else Fraction(1)
        return {level: Fraction(self.shares.get(level, mean)) for level in self.levels}

    def options(self) -> dict[str, Any]:
        """The options for the verb, checked by its own model."""
        shares: Any = self.sharing
        if self.sharing == "own":
            shares = list(shares_of(self.parts()).values())
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
    await _GroupsPage(session).start()


class _GroupsPage:
    """The form, its forecast and the outcome."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._choices = session.state(GroupsChoices)

    async def start(self) -> None:
        with head("Group sizes", "how many units of each size, by region, with noise"):
            pill("records not read", "ok", "lock")
            ledger = None if self._is_sample() else self._session.setup.ledger
            copy_button(lambda: repeated(self._choices, self._session.opened, ledger))
        self._session.receivers["domain"] = Receiver(self._take_domain)
        with tag("div", "across form"):
            self._form = card("stack form")
            with tag("div", "stack"):
                self._bar = RunBar(self._session, "quick")
                self._forecast = card()
                self._strip = Strip(
                    self._session,
                    self._choices,
                    records="the file open on the page Data",
                    stem="group-sizes",
                    loss=lambda: self._choices.loss,
                    job=self._job,
                    title=lambda found: (
                        f"Released: {found['total_groups']:,} units, paid by entry {found['entry']}."
                    ),
                    largest_unit=lambda: self._choices.max_size,
                    is_sample=self._is_sample,
                    is_paid=self._paid_job,
                    after=self._show_sizes,
                )
                self._sizes = SizesPanel(self._session)
        self._draw_form()
        await self._update()
        await self._strip.start()

    async def _show_sizes(self, name: str | None) -> None:
        """The histogram that was released."""
        await self._sizes.show(name)

    def _draw_form(self) -> None:
        made = self._choices
        self._form.clear()
        with self._form:
            with tag("div", "pad part"):
                tag("h3", text="Regions, from a public file")
                choose = tag("input", "gone", type="file", id="domain", aria_label="List of regions")
                choose.on("change", js_handler="(e) => louver.upload(e.target.files[0], 'domain')")
                tag(
                    "p",
                    "s",
                    made.domain_name or "Nothing chosen: needs a table with one row per smallest region.",
                )
                with tag("div", "row"):
                    button("Choose a file", kind="mini").on(
                        "click", js_handler="() => document.getElementById('domain').click()"
                    )
                    sample = button("Try the sample", kind="mini ghost")
                question = ask_to_replace(self._session, "Open the sample", self._take_sample)
                sample.click(self._take_sample) if question is None else question.opens(sample)
                for name in made.columns:
                    with tag("label", "row s"):
                        box = tag("input", type="checkbox", checked=name in made.regions)
                        box.on("change", partial(self._toggle, name), args=[])
                        tag("span", text=name)
            with tag("div", "pad part"):
                self._draw_unit()
                field(
                    "Largest size reported separately",
                    made.max_size,
                    partial(self._set_number, "max_size"),
                    type="number",
                    min=1,
                )
                field(
                    "Approximate number of units",
                    made.expect,
                    partial(self._set_number, "expect"),
                    type="number",
                    min=1,
                )
            self._budget = tag("div", "pad part")
        self._draw_budget()

    def _draw_unit(self) -> None:
        """The column of units: chosen from a list if the Data page has listed the columns, otherwise typed in."""
        label = "Column that identifies a person's unit"
        columns = self._session.state(ColumnChoices)
        if columns.profile is None:
            field(label, self._choices.unit, self._set_unit)
            return
        names = [column["name"] for column in columns.profile["columns"]]
        self._choices.unit = self._choices.unit or next(iter(columns.with_role("unit")), "")
        with tag("label", "field"):
            tag("span", "s sub", label)
            select(
                {"": "choose one"} | {name: name for name in names}, self._choices.unit, self._set_unit, label
            )

    def _draw_budget(self) -> None:
        made = self._choices
        self._budget.clear()
        with self._budget:
            amount_slider("epsilon", made.epsilon, self._slide)
            tag("p", "s sub", "Neighbours")
            select(RELATIONS, made.neighbours, partial(self._set, "neighbours"), "Neighbours")
            tag("p", "s sub", "Shares of the levels, percent")
            choices = {"chosen": "chosen", "equal": "equal", "own": "my own"}
            segments(choices, made.sharing, self._set_sharing, "Shares of the levels")
            if made.sharing == "own":
                made.shares = made.parts()
                share_sliders("Share", made.shares, self._update)

    async def _take_domain(self, path: str, name: str) -> None:
        columns = await self._bar.do(column_names, path, key="columns")
        if columns is not None:
            self._choices.domain, self._choices.domain_name, self._choices.domain_copied = path, name, name
            self._choices.columns, self._choices.regions = columns, list(columns)
            if not self._bar.is_gone:
                self._draw_form()
                await self._update()

    async def _take_sample(self) -> None:
        path = str(sample_path("ges2013_regions"))
        columns = await self._bar.do(column_names, path, key="columns")
        if columns is not None and not self._bar.is_gone:
            self._session.open_sample("ges2013")
            made = self._session.state(GroupsChoices)
            made.unit, made.expect = "CASENUM", 35_000
            made.domain, made.domain_copied = path, path
            made.domain_name = "Regions of the sample of crashes"
            made.columns, made.regions = columns, list(columns)
            self._session.show("groups")

    async def _toggle(self, name: str) -> None:
        chosen = set(self._choices.regions) ^ {name}
        self._choices.regions = [one for one in self._choices.columns if one in chosen]
        if self._choices.sharing == "own":
            self._draw_budget()
        await self._update()

    async def _set(self, name: str, value: str | int) -> None:
        setattr(self._choices, name, value)
        await self._update()

    async def _set_sharing(self, value: str) -> None:
        self._choices.sharing = value
        self._draw_budget()
        await self._update()

    async def _set_unit(self, value: str) -> None:
        self._choices.unit = value.strip()
        await self._strip.update()

    async def _set_number(self, name: str, value: str) -> None:
        if not value.isdigit() or not int(value):
            self._bar.tell("this must be a whole number of at least 1.")
            return
        await self._set(name, int(value))

    async def _slide(self, amount: Fraction) -> None:
        self._choices.epsilon = amount
        await self._update()

    async def _update(self) -> None:
        """The forecast of the current choices; a later choice replaces an earlier one."""
        made = self._choices
        made.loss = None
        self._strip.draw()
        if made.domain is None or not made.regions:
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
        options = made.options()
        found = await self._bar.do(forecast, options, made.expect, key="forecast")
        if found is not None and options == made.options() and not self._bar.is_gone:
            made.loss = loss_of(found["loss"])
            self._draw_forecast(found)
            await self._strip.update()

    def _draw_forecast(self, found: JobAnswer) -> None:
        expect = self._choices.expect
        self._forecast.clear()
        with self._forecast:
            with tag("div", "pad row"):
                tag("h2", text="Forecast: how many units will be counted at the wrong size")
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
                    with tag("tr"):
                        tag("td", "b", level["name"])
                        tag("td", "r", f"{level['regions']:,}")
                        tag("td", "r", f"{100 * level['share']:.3g} %")
                        tag("td", "r b", f"{level['forecast_l1']:,.0f}")
                        with tag("td"), tag("div", "lane"):
                            tag("i").style(f"width:{100 * level['forecast_l1'] / widest:.1f}%")
                        tag("td", "r", f"{100 * share:.3g} %")
                        with tag("td"):
                            tell_in_words(share)
            tag(
                "p",
                "pad s sub",
                f"For about {expect:,} units spread evenly over the regions, all regions of a level together.",
            )

    def _is_sample(self) -> bool:
        return self._session.opened is not None and self._session.opened.is_sample

    def _job(self) -> tuple[Any, ...] | str:
        opened, made = self._session.opened, self._choices
        if opened is None:
            return "no file is open; open the records on the page Data first."
        if not made.unit:
            return "choose the column that identifies a person's unit."
        return release, opened.path, opened.source.keywords(), made.options()

    def _paid_job(self) -> tuple[Any, ...] | None:
        job = self._job()
        return None if isinstance(job, str) else (is_paid, *job[1:])


def repeated(made: GroupsChoices, opened: Opened | None, ledger: Path | None) -> Call | None:
    """The choices as a call of the verb."""
    if made.domain is None or opened is None or not made.unit:
        return None
    more = {"--out": made.name or "release"}
    if ledger is not None:
        more["--ledger"] = str(ledger)
    return Call(
        options=GroupsOptions.model_validate(made.options() | {"domain": made.domain_copied}),
        data=opened.copied,
        source=opened.source if opened.source.weight is None else SourceOptions(),
        command="groups",
        function="groups",
        more=more,
        note=DRAWN_ANEW,
    )


TOTAL = ""


class SizesPanel:
    """The sizes of one region at a time, as published."""

    def __init__(self, session: Session) -> None:
        self._session, self._name = session, ""
        self._bar = RunBar(session, "quick")
        self._place = tag("div")

    async def show(self, name: str | None) -> None:
        """Show the release of this name, starting at the total, or nothing."""
        self._name = name or ""
        if not name:
            self._place.clear()
            return
        await self._go(TOTAL)

    async def _go(self, region: str) -> None:
        name = self._name
        found = await self._bar.do(sizes_of, str(self._session.setup.releases), name, region, key="sizes")
        if found is not None and name == self._name and not self._bar.is_gone:
            self._draw(found, region)

    def _draw(self, found: JobAnswer, region: str) -> None:
        most = max((units for _, units in found["sizes"]), default=0) or 1
        self._place.clear()
        with self._place, card():
            with tag("div", "pad row between wrap"):
                tag("h2", text="Released: how many units have each size")
                choices = {TOTAL: "all regions"} | {one: one for one in found["regions"]}
                select(choices, region, self._go, "Region of the sizes")
            with tag("div", "scroll sizes"), table({"Size": "r", "Units": "r", "": ""}):
                for size, units in found["sizes"]:
                    last = size == found["largest"]
                    with tag("tr"):
                        tag("td", "r", f"{size:,} or more" if last else f"{size:,}")
                        tag("td", "r b", f"{units:,}")
                        with tag("td"), tag("div", "lane"):
                            tag("i").style(f"width:{100 * units / most:.1f}%")
            if found["left"]:
                tag("p", "pad s sub", f"{found['left']:,} more regions are in the files of the release.")
