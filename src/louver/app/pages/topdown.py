"""TopDown: private microdata over a tree of regions; the forecast changes as the budget moves."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any, get_args

from louver.app.copying import DRAWN_ANEW, Repeatable, Texts, WithFiles
from louver.app.jobs.topdown import CHOICES, described, is_paid, planned, released
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
    segments,
    select,
    table,
    tag,
)
from louver.app.session import MAX_UPLOAD, Receiver, Session
from louver.app.spec_files import ENDING, SpecFiles, moved, written
from louver.app.spending import Strip, amount_slider, loss_of, tell_in_words
from louver.app.words import RELATIONS
from louver.data.endings import UPLOADS
from louver.data.samples import write_samples
from louver.errors import LouverError
from louver.privacy.budget import Loss
from louver.schema.files import read_toml
from louver.schema.options import described as options_of
from louver.topdown.options import Estimator, RunOptions, TopDownOptions

__all__ = ["Asked", "build", "repeated", "spec_text"]

SAMPLE = "louver-sample"
"""Where a copied command writes the files of the sample."""
BUDGETS = {"epsilon": "epsilon", "both": "epsilon, delta", "rho": "rho, delta"}
DELTA = "1e-10"
HELP = {told.name: told.help.partition("; in place of")[0].rstrip(".") for told in options_of(RunOptions)}
Told = Mapping[str, Any]


class Asked:
    """What a tab chose."""

    def __init__(self) -> None:
        self.spec: Path | None = None
        self.files: SpecFiles | None = None
        self.is_sample = False
        self.about: Told | None = None
        self.budget = "epsilon"
        self.amount = Fraction(1)
        self.delta = DELTA
        self.choices: dict[str, Any] = {}
        self.levels: dict[str, int] = {}
        self.queries: dict[str, int] = {}
        self.is_moved = False
        self.query = ""
        self.loss: Loss | None = None
        self.name = ""
        self.result: Told | None = None

    @property
    def measure(self) -> str:
        """What the slider moves."""
        return "rho" if self.budget == "rho" else "epsilon"

    def open(self, spec: Path | None, *, is_sample: bool = False) -> None:
        """Begin anew with another spec."""
        self.spec, self.is_sample = spec, is_sample
        self.about = self.loss = self.result = None
        if is_sample or spec is None:
            self.files = None

    def reset(self, about: Told) -> None:
        """Choose what the spec has."""
        self.about = about
        self.amount, self.delta = Fraction(about["amount"]), about["delta"] or DELTA
        self.budget = (
            "rho" if about["measure"] == "rho" else "both" if about["delta"] is not None else "epsilon"
        )
        self.choices = {name: about[name] for name in CHOICES}
        self.levels = {level["name"]: max(1, round(200 * level["share"])) for level in about["levels"]}
        self.queries = {name: max(1, round(200 * share)) for name, share in about["query_shares"].items()}
        self.is_moved = False

    def section(self) -> dict[str, Any]:
        """What differs from the spec, for its section; None takes a key away."""
        about = self.about
        assert about is not None
        told: dict[str, Any] = {
            name: self.choices[name] for name in CHOICES if self.choices[name] != about[name]
        }
        delta = None if self.budget == "epsilon" else self.delta
        if (self.measure, self.amount, delta) != (
            about["measure"],
            Fraction(about["amount"]),
            about["delta"],
        ):
            told |= {"epsilon": None, "rho": None, "delta": delta, self.measure: str(self.amount)}
        if self.is_moved:
            told["shares"] = {"levels": _fractions(self.levels), "queries": _fractions(self.queries)}
        return told


async def build(session: Session) -> None:
    """Draw the page."""
    asked = session.state(Asked)
    if asked.spec is None and asked.files is None:
        asked.spec = session.setup.topdown
    session.receivers["spec"] = Receiver(
        partial(_take, session),
        (ENDING, *UPLOADS),
        MAX_UPLOAD,
        "a spec (.toml), or a table that it names",
    )
    if asked.spec is None:
        _no_spec(session, asked)
        return
    await _Page(session, asked).start()


def _choose_files(text: str, kind: str) -> None:
    choose = tag(
        "input", "gone", type="file", multiple=True, id="spec", aria_label="Spec and the files it names"
    )
    choose.on("change", js_handler="(e) => louver.uploadAll(e.target.files, 'spec')")
    button(text, kind=kind).on("click", js_handler="() => document.getElementById('spec').click()")


async def _take(session: Session, path: str, name: str) -> None:
    """Take in a spec, or a file that one names; what is complete is opened."""
    asked = session.state(Asked)  # as it is when the file has arrived
    files = asked.files or SpecFiles(session.folder / "spec", session.setup.file)
    files.take(Path(path), name)
    asked.open(None)
    asked.files = files
    if files.spec and all(one.is_there or one.role == "records" for one in files.named()):
        asked.spec = files.ready()
    session.show("topdown")


def _take_sample(session: Session, asked: Asked) -> None:
    folder = session.folder / "sample"
    write_samples(folder)
    asked.open(folder / "county.toml", is_sample=True)
    session.show("topdown")


def _no_spec(session: Session, asked: Asked) -> None:
    """What to do next: choose a spec, or the files that it names."""
    head("TopDown", "private microdata over a tree of regions")
    files = asked.files
    if files is None:
        with (
            empty(
                "There is no spec yet",
                "A spec says which regions, attributes and questions there are. Choose it together with the public files that it names, "
                "or try the sample: a county of 1,092 blocks.",
            ),
            tag("div", "row"),
        ):
            _choose_files("Choose files", "pri")
            button("Try the sample", partial(_take_sample, session, asked))
        return
    title = "The spec names more files" if files.spec else "The spec itself is missing"
    text = (
        "No path in a spec is opened: choose the files here, by their names."
        if files.spec
        else "Choose the .toml file; what you have chosen is kept."
    )
    with empty(title, text):
        try:
            listed = [(one.name, one.role, one.is_there) for one in files.named()] if files.spec else []
        except LouverError as error:
            _spoilt(asked, str(error))
            listed = []
        with table({"File": "", "What for": "", "": ""}):
            for name, role, is_there in listed or [(name, "", True) for name in sorted(files.names)]:
                with tag("tr"):
                    tag("td", "", name)
                    tag("td", "", role)
                    with tag("td"):
                        pill("here", "ok", "ok") if is_there else pill("missing", "care", "warning")
        with tag("div", "row"):
            _choose_files("Choose files", "pri")
            button("Begin anew", partial(_begin_anew, session, asked))


def _spoilt(asked: Asked, sentence: str) -> None:
    with tag("div", "problem", role="alert"):
        icon("warning", "mini")
        tag("span", text=sentence[:1].upper() + sentence[1:])


def _begin_anew(session: Session, asked: Asked) -> None:
    asked.open(None)
    session.show("topdown")


class _Page:
    """The sliders, the forecast, and what came of it."""

    def __init__(self, session: Session, asked: Asked) -> None:
        assert asked.spec is not None
        self._session, self._asked, self._spec = session, asked, str(asked.spec)

    async def start(self) -> None:
        asked = self._asked
        with head("TopDown", "private microdata over a tree of regions"):
            self._knowledge = tag("div")
            ledger = None if asked.is_sample else self._session.setup.ledger
            copy_button(lambda: repeated(asked, ledger))
        self._bar = RunBar(self._session, "quick")
        if asked.about is None:
            about = await self._bar.do(described, self._spec, key="spec")
            if about is None:
                with tag("div", "row"):
                    _choose_files("Choose files", "pri")
                    button("Try the sample", partial(_take_sample, self._session, asked))
                return
            asked.reset(about)
        about = asked.about
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
                    asked,
                    records="the records that the spec names",
                    stem="topdown",
                    loss=lambda: asked.loss,
                    job=self._job,
                    title=lambda found: f"Released: {found['people']:,} people.",
                    is_sample=lambda: asked.is_sample,
                    is_paid=lambda: (is_paid, self._spec, asked.section()),
                )
        self._bar.dim(self._forecast)
        self._draw_form()
        await self._update()
        await self._strip.start()

    def _job(self) -> tuple[Any, ...] | str:
        files = self._asked.files
        missing = "" if files is None else files.missing_records()
        if missing:
            return f"the records are missing; choose {missing} too, or start louver explore with it."
        return released, self._spec, self._asked.section()

    def _draw_form(self) -> None:
        asked, about = self._asked, self._asked.about
        assert about is not None
        self._form.clear()
        with self._form:
            self._draw_spec()
            with tag("div", "pad part"):
                amount_slider(asked.measure, asked.amount, self._slide)
                segments(BUDGETS, asked.budget, self._set_budget, "Budget in")
                if asked.budget != "epsilon":
                    field("delta", asked.delta, self._set_delta)
            self._shown: dict[str, Any] = {}
            for title, parts in (("Shares by level", asked.levels), ("Shares by question", asked.queries)):
                with tag("div", "pad part"):
                    tag("h3", text=title)
                    for name in parts:
                        self._share(title, name, parts)
            with tag("div", "pad part"):
                button("As the spec has it", self._back, kind="mini")
                button("Equal", self._equal, kind="mini")
            with tag("div", "pad part"):
                self._draw_choices()
            with tag("div", "pad"):
                tag("h3", text="Published exactly")
                for name in about["exact"]:
                    with tag("div", "row between s"):
                        tag("span", text=name)
                        icon("lock", "mini")
                tag("p", "s sub", "What is exact is not protected." if about["exact"] else "Nothing.")

    def _draw_spec(self) -> None:
        asked = self._asked
        with tag("div", "pad part"):
            tag("h3", text="Spec")
            name = "The sample: a county of 1,092 blocks" if asked.is_sample else Path(self._spec).name
            files = asked.files
            tag("p", "s", name if files is None else f"{files.spec} and {len(files.names) - 1} more")
            missing = "" if files is None else files.missing_records()
            if missing:
                tag("p", "s sub", f"Records not given: {missing}. The forecast needs none.")
            with tag("div", "row"):
                _choose_files("Choose files", "mini")
                if not asked.is_sample:
                    button("Try the sample", partial(_take_sample, self._session, asked), kind="mini ghost")

    def _draw_choices(self) -> None:
        """What the options models ask for beside the budget."""
        chosen = self._asked.choices
        tag("p", "s sub", "Neighbours")
        relations = get_args(TopDownOptions.model_fields["neighbours"].annotation)
        select(
            {name: RELATIONS[name] for name in relations},
            chosen["neighbours"],
            partial(self._set, "neighbours"),
            "Neighbours",
        )
        tag("p", "s sub", "Estimator")
        names = {name: name for name in get_args(Estimator)}
        select(
            names, chosen["estimator"], partial(self._set, "estimator"), "Estimator", title=HELP["estimator"]
        )
        if chosen["estimator"] == "bayes":
            field("Shrink small groups by at most", chosen["shrink"], self._set_shrink, title=HELP["shrink"])
        field(
            "Simulations for intervals",
            chosen["intervals"],
            self._set_intervals,
            type="number",
            min=0,
            title=HELP["intervals"],
        )

    def _share(self, title: str, name: str, parts: dict[str, int]) -> None:
        with tag("label", "slide"):
            tag("span", "s", name)
            slider = tag(
                "input", type="range", min=1, max=200, value=parts[name], aria_label=f"{title}: {name}"
            )
            self._shown[f"{title}/{name}"] = tag("span", "s", _percent(parts, name))
        slider.changed(partial(self._move, title, name, parts), "input")

    async def _move(self, title: str, name: str, parts: dict[str, int], value: str) -> None:
        parts[name] = int(value)
        self._asked.is_moved = True
        for other in parts:
            self._shown[f"{title}/{other}"].text = _percent(parts, other)
        await self._update()

    async def _slide(self, amount: Fraction) -> None:
        self._asked.amount = amount
        await self._update()

    async def _set_budget(self, budget: str) -> None:
        self._asked.budget = budget
        self._draw_form()
        await self._update()

    async def _set_delta(self, value: str) -> None:
        self._asked.delta = value.strip()
        await self._update()

    async def _set(self, name: str, value: Any) -> None:
        self._asked.choices[name] = value
        if name == "estimator":
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

    async def _back(self) -> None:
        assert self._asked.about is not None
        self._asked.reset(self._asked.about)
        self._draw_form()
        await self._update()

    async def _equal(self) -> None:
        for parts in (self._asked.levels, self._asked.queries):
            parts.update(dict.fromkeys(parts, 100))
        self._asked.is_moved = True
        self._draw_form()
        await self._update()

    async def _update(self, simulations: int = 0) -> None:
        """The forecast of what is chosen now; a later choice overtakes an earlier one. Until it is there nothing can be spent."""
        self._asked.loss = None
        self._strip.draw()
        found = await self._bar.do(planned, self._spec, self._asked.section(), simulations, key="forecast")
        if found is not None and not self._bar.is_gone:
            self._asked.loss = loss_of(found["loss"])
            self._draw_forecast(found)
            await self._strip.update()

    def _look_at(self, found: Told, query: str) -> None:
        """The forecast of another question."""
        self._asked.query = query
        self._draw_forecast(found)

    def _draw_forecast(self, found: Told) -> None:
        about = self._asked.about
        assert about is not None
        regions = {level["name"]: level["regions"] for level in about["levels"]}
        names = list(dict.fromkeys(line["query"] for line in found["lines"]))
        query = self._asked.query if self._asked.query in names else found["total"]
        shown = [line for line in found["lines"] if line["query"] == query]
        lines = [line for line in shown if line["plan"] == "asked"]
        equal = {line["level"]: line["mean_absolute"] for line in shown if line["plan"] == "equal"}
        widest = max([*(line["mean_absolute"] for line in lines), *equal.values()], default=0) or 1
        columns = {"Level": "", "Regions": "r", "Typical error": "r", "people": ""}
        self._forecast.clear()
        with self._forecast:
            with tag("div", "pad row"):
                tag("h2", text="Forecast: how far off a number of a region will be")
                choices = {name: "total" if name == found["total"] else name for name in names}
                select(choices, query, partial(self._look_at, found), "Question that the forecast is about")
                pill("spends nothing, reads no records", "ok", "ok")
                tag("div", "grow")
                button("Simulate", partial(self._update, 1), kind="mini")
            with table(columns | {"Of a mean region": "r", "In words": ""}):
                for line in lines:
                    self._line(line, regions[line["level"]], equal[line["level"]], widest)
            how = (
                "one simulated release"
                if found["simulations"]
                else "the noise alone, before counts below zero are mended"
            )
            about_people = "for about 50 people in each smallest region"
            tag("p", "pad s sub", f"The mark is an equal share. Computed from {how}, {about_people}.")

    def _line(self, line: Told, regions: int, equal: float, widest: float) -> None:
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


def repeated(asked: Asked, ledger: Path | None) -> Repeatable | None:
    """What was chosen, as words that do it again; an upload is named as it was, the sample is written first."""
    if asked.spec is None or asked.about is None:
        return None
    spec, first, python = str(asked.spec), "", ""
    section = asked.section()
    if asked.is_sample:
        spec = f"{SAMPLE}/data/{asked.spec.name}"
        first = f"louver demo --files --out={SAMPLE}"
        python = f"from pathlib import Path\nfrom louver.data.samples import write_samples\nwrite_samples(Path('{SAMPLE}/data'))"
    files = {}
    if section or asked.files is not None:
        folder = Path() if asked.files is not None else Path(spec).parent
        spec = str(folder / "louver-explore.toml")
        files = {spec: spec_text(asked.spec, section)}
    out = asked.name or "release"
    words = ["louver", "topdown", "run", spec, f"--out={out}"]
    words += [] if ledger is None else [f"--ledger={ledger}"]
    paid = "" if ledger is None else f", ledger={str(ledger)!r}"
    call = Texts(tuple(words), f"print(lv.topdown({spec!r}, out={out!r}{paid}))", DRAWN_ANEW)
    return WithFiles(call, files, first, python)


def spec_text(path: Path, section: Mapping[str, Any]) -> str:
    """A spec with what was moved on the page, to be written beside it: the files it names are found from there."""
    return written(moved(read_toml(path), section))


def _fractions(parts: Mapping[str, int]) -> dict[str, str]:
    whole = sum(parts.values())
    return {name: str(Fraction(part, whole)) for name, part in parts.items()}


def _percent(parts: Mapping[str, int], name: str) -> str:
    return f"{100 * parts[name] / sum(parts.values()):.0f} %"
