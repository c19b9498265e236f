"""TopDown: private microdata over a tree of regions; the forecast changes as the budget moves."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

from louver.app.jobs.topdown import described, is_paid, planned, released
from louver.app.look import (
    RunBar,
    button,
    card,
    copy_button,
    empty,
    field,
    head,
    icon,
    pill,
    select,
    table,
    tag,
)
from louver.app.pages.topdown_extension import BeginExtension, ExtensionPage
from louver.app.pages.topdown_form import (
    SpecForm,
    TopDownChoices,
    choose_files,
    extends_of,
    repeated,
    take_sample,
)
from louver.app.session import MAX_UPLOAD, JobAnswer, Receiver, Session
from louver.app.spec_files import ENDING, SpecFiles
from louver.app.spending import Strip, loss_of, tell_in_words
from louver.data.formats import UPLOADS
from louver.errors import LouverError
from louver.schema.options import described as options_of
from louver.topdown.estimation.estimators import ESTIMATORS
from louver.topdown.options import RunOptions

__all__ = ["build"]

HELP = {
    content.name: content.help.partition("; instead of")[0].rstrip(".") for content in options_of(RunOptions)
}


async def build(session: Session) -> None:
    """Draw the page."""
    form = session.state(TopDownChoices)
    if form.spec is None and form.files is None:
        form.spec = session.setup.topdown
    session.receivers["spec"] = Receiver(
        partial(_take, session),
        (ENDING, *UPLOADS),
        MAX_UPLOAD,
        "a spec (.toml), or a table that it names",
    )
    is_extension = form.spec is not None and extends_of(form.spec) is not None
    if form.extending and not is_extension and (form.spec is not None or form.files is None):
        await BeginExtension(session, form).start()
        return
    if form.spec is None:
        _no_spec(session, form)
        return
    if is_extension:
        await ExtensionPage(session, form).start()
    else:
        await _TopDownPage(session, form).start()


async def _take(session: Session, path: str, name: str) -> None:
    """Accept a spec, or a file that it names; a complete set is opened."""
    form = session.state(TopDownChoices)  # the state once the file has arrived
    files = form.files or SpecFiles(session.folder / "spec", session.setup.file)
    files.take(Path(path), name)
    form.open(None)
    form.files = files
    if files.spec and all(one.is_there or one.role == "records" for one in files.files_named()):
        form.spec = files.ready()
    session.show("topdown")


def _no_spec(session: Session, form: TopDownChoices) -> None:
    """The next step: choosing a spec, or the files that it names."""
    head("TopDown", "private microdata over a tree of regions")
    files = form.files
    if files is None:
        with (
            empty(
                "No spec yet",
                "A spec lists the regions, attributes and queries. Choose it together with the public files that it names, or try the "
                "sample: a county of 1,092 blocks.",
            ),
            tag("div", "row"),
        ):
            choose_files("Choose files", "pri")
            button("Try the sample", partial(take_sample, session, form))
        return
    title = "The spec names more files" if files.spec else "The spec itself is missing"
    text = (
        "Paths in a spec are not opened: choose the files here, by their names."
        if files.spec
        else "Choose the .toml file; the files chosen so far are kept."
    )
    with empty(title, text):
        try:
            listed = [(one.name, one.role, one.is_there) for one in files.files_named()] if files.spec else []
        except LouverError as error:
            _spoilt(form, str(error))
            listed = []
        with table({"File": "", "What for": "", "": ""}):
            for name, role, is_there in listed or [(name, "", True) for name in sorted(files.names)]:
                with tag("tr"):
                    tag("td", "", name)
                    tag("td", "", role)
                    with tag("td"):
                        pill("here", "ok", "ok") if is_there else pill("missing", "care", "warning")
        with tag("div", "row"):
            choose_files("Choose files", "pri")
            button("Begin anew", partial(_begin_anew, session, form))


def _spoilt(form: TopDownChoices, sentence: str) -> None:
    with tag("div", "problem", role="alert"):
        icon("warning", "mini")
        tag("span", text=sentence[:1].upper() + sentence[1:])


def _begin_anew(session: Session, form: TopDownChoices) -> None:
    form.open(None)
    session.show("topdown")


class _TopDownPage(SpecForm):
    """The sliders, the forecast and the outcome."""

    async def start(self) -> None:
        form = self._choices
        with head("TopDown", "private microdata over a tree of regions"):
            self._knowledge = tag("div")
            ledger = None if form.is_sample else self._session.setup.ledger
            copy_button(lambda: repeated(form, ledger))
        self._bar = RunBar(self._session, "quick")
        if form.about is None:
            about = await self._bar.do(described, self._spec, key="spec")
            if about is None:
                with tag("div", "row"):
                    choose_files("Choose files", "pri")
                    button("Try the sample", partial(take_sample, self._session, form))
                return
            form.reset(about)
        about = form.about
        assert about is not None
        with self._knowledge:
            pill("public knowledge is consistent", "ok", "ok") if about["is_consistent"] else pill(
                "public knowledge contradicts itself", "stop", "warning"
            )
        with tag("div", "across form"):
            self._form = card("stack form")
            with tag("div", "stack"):
                self._forecast = card()
                self._strip = Strip(
                    self._session,
                    form,
                    records="the records that the spec names",
                    stem="topdown",
                    loss=lambda: form.loss,
                    job=self._job,
                    title=lambda found: f"Released: {found['people']:,} people.",
                    is_sample=lambda: form.is_sample,
                    is_paid=lambda: (is_paid, self._spec, form.section()),
                    ways=self._offer_extension,
                )
        self._bar.dim(self._forecast)
        self._draw_form()
        await self._update()
        await self._strip.start()

    def _job(self) -> tuple[Any, ...] | str:
        return self._missing() or (released, self._spec, self._choices.section())

    def _offer_extension(self, name: str) -> None:
        button("Extend…", partial(self._extend, name), kind="mini")

    def _extend(self, name: str) -> None:
        self._choices.extending = name
        self._session.show("topdown")

    def _draw_form(self) -> None:
        about = self._choices.about
        assert about is not None
        self._form.clear()
        with self._form:
            self._draw_spec()
            self._draw_budget()
            with tag("div", "pad part"):
                self._draw_choices()
            with tag("div", "pad"):
                tag("h3", text="Published exactly")
                for name in about["exact"]:
                    with tag("div", "row between s"):
                        tag("span", text=name)
                        icon("lock", "mini")
                tag("p", "s sub", "Exact numbers are not protected." if about["exact"] else "Nothing.")

    def _draw_choices(self) -> None:
        """Fields of the options models other than the budget."""
        chosen = self._choices.choices
        self._draw_neighbours()
        tag("p", "s sub", "Estimator")
        names = {name: name for name in ESTIMATORS}
        select(names, chosen["estimator"], self._set_estimator, "Estimator", title=HELP["estimator"])
        if ESTIMATORS[chosen["estimator"]].learns_prior:
            field("Shrink small groups by at most", chosen["shrink"], self._set_shrink, title=HELP["shrink"])
        field(
            "Simulations for intervals",
            chosen["intervals"],
            self._set_intervals,
            type="number",
            min=0,
            title=HELP["intervals"],
        )

    async def _set_estimator(self, value: str) -> None:
        self._choices.choices["estimator"] = value
        self._draw_form()
        await self._update()

    async def _set_shrink(self, value: str) -> None:
        text = value.strip()
        try:
            number = float(text)
        except ValueError:
            await self._set("shrink", text)
            return
        await self._set("shrink", number)

    async def _set_intervals(self, value: str) -> None:
        await self._set("intervals", int(value) if value.isdecimal() else value)

    async def _update(self, simulations: int = 0) -> None:
        """The forecast of the current choices; a later choice replaces an earlier one. Until it arrives, nothing can be spent."""
        self._choices.loss = None
        self._strip.draw()
        found = await self._bar.do(planned, self._spec, self._choices.section(), simulations, key="forecast")
        if found is not None and not self._bar.is_gone:
            self._choices.loss = loss_of(found["loss"])
            self._draw_forecast(found)
            await self._strip.update()

    def _look_at(self, found: JobAnswer, query: str) -> None:
        """Show the forecast for another query."""
        self._choices.query = query
        self._draw_forecast(found)

    def _draw_forecast(self, found: JobAnswer) -> None:
        about = self._choices.about
        assert about is not None
        regions = {level["name"]: level["regions"] for level in about["levels"]}
        names = list(dict.fromkeys(line["query"] for line in found["lines"]))
        query = self._choices.query if self._choices.query in names else found["total"]
        shown = [line for line in found["lines"] if line["query"] == query]
        lines = [line for line in shown if line["plan"] == "asked"]
        equal = {line["level"]: line["mean_absolute"] for line in shown if line["plan"] == "equal"}
        widest = max([*(line["mean_absolute"] for line in lines), *equal.values()], default=0) or 1
        columns = {"Level": "", "Regions": "r", "Typical error": "r", "people": ""}
        self._forecast.clear()
        with self._forecast:
            with tag("div", "pad row wrap"):
                tag("h2", text="Forecast: how far off a region's numbers will be")
                choices = {name: "total" if name == found["total"] else name for name in names}
                select(choices, query, partial(self._look_at, found), "Question that the forecast is about")
                pill("spends nothing, reads no records", "ok", "ok")
                tag("div", "grow")
                button("Simulate", partial(self._update, 1), kind="mini")
            with table(columns | {"For an average region": "r", "In words": ""}):
                for line in lines:
                    self._line(line, regions[line["level"]], equal[line["level"]], widest)
            how = (
                "one simulated release"
                if found["simulations"]
                else "the noise alone, before negative counts are corrected"
            )
            about_people = "for about 50 people in each smallest region"
            tag("p", "pad s sub", f"The mark is an equal share. Computed from {how}, {about_people}.")

    def _line(self, line: JobAnswer, regions: int, equal: float, widest: float) -> None:
        off, share = line["mean_absolute"], line["relative"] or 0.0
        with tag("tr"):
            tag("td", "b", line["level"])
            tag("td", "r", f"{regions:,}")
            tag("td", "r b", "exact" if off < 1e-9 else f"± {off:,.0f}" if off >= 10 else f"± {off:.1f}")
            with tag("td"), tag("div", "lane"):
                tag("i").style(f"width:{100 * off / widest:.1f}%")
                tag("u").style(f"left:{100 * equal / widest:.1f}%")
            tag("td", "r", f"{100 * share:.2g} %")
            with tag("td"):
                tell_in_words(share)
