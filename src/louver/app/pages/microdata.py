"""Microdata: one row per person, nobody with a unique combination of values; shows what each choice costs as it is made."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from louver.anonymize.methods import CHOICES
from louver.anonymize.options import WEAKER, AnonymizeOptions
from louver.app.columns import ColumnChoices
from louver.app.controls import SearchBar, ask_to_replace
from louver.app.copying import BY_TIME, SAME, Call
from louver.app.jobs.data import profiled
from louver.app.jobs.microdata import anonymized, browsed, published, traced
from louver.app.look import (
    RunBar,
    button,
    card,
    copy_button,
    empty,
    finder,
    head,
    segments,
    select,
    slider,
    tag,
    verdict,
    verdict_of,
)
from louver.app.pages.microdata_panels import (
    ClassesPanel,
    More,
    MorePanel,
    curve,
    distributions,
    losses,
    numbers,
    tried,
)
from louver.app.publishing import Publishing, accepting_unchecked, people_choices
from louver.app.session import JobAnswer, Session
from louver.app.words import share_text
from louver.errors import LouverError

__all__ = ["build"]

TIMES = {"3": "3 seconds", "10": "10 seconds", "30": "30 seconds", "120": "2 minutes"}
ROUNDS = {"r10": "10 rounds", "r50": "50 rounds", "r200": "200 rounds"}
"""Rounds give the same answer on every machine."""
LEFT_OUT = {"0": "nobody", "0.01": "1 % of records", "0.05": "5 % of records"}
RECODINGS = {"local": "Class by class", "global": "Whole file"}
ABOUT = {
    "local": "Least loss. Labels overlap; choose Whole file if analysts compare groups.",
    "global": "One set of labels for the whole file: comparable, but more is lost. A few exceptions, in classes of their own, avoid much of the loss.",
}
CURVE = (2, 3, 5, 10, 20, 50)
MANY_COLUMNS = 15
"""A further search is possible."""


class MicrodataChoices:
    """The choices made in a tab, and the last result."""

    def __init__(self) -> None:
        self.k = 5
        self.l: int | None = None
        self.weights: dict[str, float] = {}
        self.recoding = "local"
        self.method = "auto"
        self.seconds = "10"
        self.suppress = "0"
        self.exceptions = "0"
        self.name = ""
        self.more = More()
        self.new_population = self.accept_unchecked = False
        self.result: JobAnswer | None = None
        self.curve: dict[int, float] = {}
        self.tried: list[dict[str, Any]] = []

    @property
    def has_work(self) -> bool:
        """Whether there is a result."""
        return self.result is not None

    @property
    def has_rounds(self) -> bool:
        """Whether the search takes a number of rounds in place of a time."""
        return self.recoding == "global" or self.method == "auto"

    def effort(self) -> dict[str, Any]:
        """How long to search, as options of the verb."""
        if self.seconds in TIMES:
            return {"seconds": float(self.seconds)}
        return {"steps": int(self.seconds[1:])} if self.has_rounds else {"seconds": 3.0}

    def choices(self) -> dict[str, Any]:
        """The current content of the form."""
        names = ("k", "l", "recoding", "method", "seconds", "suppress", "exceptions")
        return {name: getattr(self, name) for name in names} | {"weights": dict(self.weights)}

    def take(self, request: dict[str, Any], found: JobAnswer) -> None:
        """Keep a result, and drop a curve that belongs to other choices."""
        if self.tried and {**request, "k": 0} != {**self.tried[-1]["asked"], "k": 0}:
            self.curve = {}
        self.result = found
        shown = {name: found[name] for name in ("k", "suppressed", "classes")}
        words = {"recoding": RECODINGS[request["recoding"]], "method": found["method"], "lost": found["gcp"]}
        self.tried.append({"asked": request, **shown, **words})


async def build(session: Session) -> None:
    """Draw the page."""
    if session.opened is None or session.opened.source.weight is not None:
        head("Microdata", "one row per person, nobody with a unique combination of values")
        with empty("No records yet", "Open a file with one row per person, or try a sample."):
            take = partial(_take_sample, session)
            question = ask_to_replace(session, "Open the sample", take)
            sample = button("Try the sample", kind="pri")
            sample.click(take) if question is None else question.opens(sample)
            button("Open a file", lambda: session.show("data"))
        return
    await _MicrodataPage(session).start()


def _take_sample(session: Session) -> None:
    session.open_sample("people")
    session.show("microdata")


class _MicrodataPage:
    """The choices, the result, and what can be done with it."""

    def __init__(self, session: Session) -> None:
        assert session.opened is not None
        self._session, self._opened = session, session.opened
        self._choices = session.state(MicrodataChoices)
        self._columns = session.state(ColumnChoices)

    async def start(self) -> None:
        with head("Microdata", "one row per person, nobody with a unique combination of values"):
            button("Browse classes", self._browse)
            copy_button(self._call)
            button("Publish…", self._open_publishing, icon_name="download", kind="pri", data_publish="")
        self._long = RunBar(self._session, "quick")  # hidden hidden until there is something to search
        if self._columns.profile is None:
            found = await self._long.do(profiled, self._opened.path, self._opened.source, key="profile")
            if found is None:
                return
            self._columns.take(found)
        if waiting := self._columns.with_role(""):
            many = "One column needs" if len(waiting) == 1 else f"{len(waiting)} columns need"
            with verdict("care", f"{many} a decision before you publish anything.", ", ".join(waiting)):
                button("Decide on the page Data", lambda: self._session.show("data"), kind="pri")
            return
        with tag("div", "across form"):
            with card("stack form"):
                self._form = tag("div")
                with tag("div", "pad"):
                    button("Run", self._run, kind="pri fill", data_run="")
            with tag("div", "stack"):
                self._message = tag("div")
                self._long = SearchBar(self._session, "long", _loss_text)
                self._result = tag("div", "stack")
        self._long.dim(self._result, self._message)
        self._draw_form()
        self._draw_result()
        for key in ("anonymize", "curve"):
            if await self._long.follow(key):
                self._draw_result()

    def _draw_form(self) -> None:
        request = self._choices
        self._form.clear()
        with self._form:
            with tag("div", "pad part"):
                with tag("div", "row between"):
                    tag("h3", text="k, people with the same published values")
                    self._k = tag("input", "inp k", type="number", min=2, value=request.k, aria_label="k")
                    self._k.changed(self._type_k)
                self._slider = tag(
                    "input", type="range", min=2, max=50, value=min(request.k, 50), aria_label="k by slider"
                )
                self._slider.changed(self._slide_k, "input")
                if self._columns.with_role("sensitive"):
                    choices = {"": "no demand"} | {str(n): f"at least {n} values" for n in (2, 3, 4)}
                    tag("p", "s sub", "Different sensitive values in a class (l)")
                    select(
                        choices, str(request.l or ""), self._set_l, "Different sensitive values in a class"
                    )
                with tag("div", "row between"):
                    content = "" if request.more.is_empty() else "Further requirements apply."
                    tag("span", "s sub", content)
                    button("More protection…", self._open_more, kind="mini")
            with tag("div", "pad part"):
                with tag("div", "row between"):
                    tag("h3", text="Keep more detail in")
                    button("Reset", self._reset, kind="ghost mini", title="All weights 1")
                quasi = self._columns.with_role("quasi")
                if len(quasi) > MANY_COLUMNS:
                    finder(f"Find one of {len(quasi)} quasi-identifiers", ".weights .slide")
                with tag("div", "weights"):
                    for name in quasi:
                        self._weight(name)
                if not quasi:
                    tag("p", "s", "No column is a quasi-identifier. Choose at least one on the page Data.")
            with tag("div", "pad part"):
                tag("h3", text="Recoding")
                segments(RECODINGS, request.recoding, partial(self._set, "recoding"), "Recoding")
                tag("p", "s sub", ABOUT[request.recoding])
            with tag("div", "pad part"):
                names = {"auto": "auto"} if request.recoding == "global" else {name: name for name in CHOICES}
                for label, choices, name in (
                    ("Method", names, "method"),
                    ("Time", TIMES | ROUNDS if request.has_rounds else TIMES, "seconds"),
                    ("May leave out", LEFT_OUT, "suppress"),
                    *([("Exceptions", LEFT_OUT, "exceptions")] if request.recoding == "global" else []),
                ):
                    with tag("div", "row between"):
                        tag("span", "s", label)
                        chosen = getattr(request, name)
                        chosen = chosen if chosen in choices else next(iter(choices))
                        select(choices, chosen, partial(self._set, name), label)

    def _weight(self, name: str) -> None:
        slider(
            name,
            self._choices.weights.get(name, 1.0),
            partial(self._choices.weights.__setitem__, name),
            name=f"Weight of {name}",
            least=0,
            most=4,
            step=0.5,
        )

    def _slide_k(self, value: str) -> None:
        self._choices.k = int(value)
        self._k.set(value=value)

    def _type_k(self, value: str) -> None:
        self._choices.k = max(2, int(value)) if value.isdecimal() else self._choices.k
        self._k.set(value=str(self._choices.k))
        self._slider.set(value=min(self._choices.k, 50))

    def _reset(self) -> None:
        self._choices.weights.clear()
        self._draw_form()

    async def _open_more(self) -> None:
        """Requirements that most files do not need."""
        await MorePanel(self._session, self._choices.more, self._columns, self._draw_form).start()

    def _set_l(self, value: str) -> None:
        self._choices.l = int(value) if value else None

    def _set(self, name: str, value: str) -> None:
        setattr(self._choices, name, value)
        if name in ("recoding", "method"):
            self._draw_form()

    def _options(self, files: Mapping[str, str], *, is_copied: bool = False) -> dict[str, Any]:
        """The options for the verb that differ from its defaults. A copied call uses the user's file names."""
        request, columns = self._choices, self._columns
        weights = {
            name: w for name, w in request.weights.items() if w != 1 and name in columns.with_role("quasi")
        }
        units, samples = columns.with_role("unit"), columns.with_role("weight")
        content: dict[str, Any] = {
            role: columns.with_role(role) for role in ("quasi", "identifying", "sensitive", "keep")
        }
        content["identifying"] += [
            *units[1:],
            *samples[1:],
        ]  # only one of each can be used for counting; the others are dropped
        content |= {
            "k": request.k,
            **request.effort(),
            "method": "auto" if request.recoding == "global" else request.method,
            "recoding": request.recoding,
        }
        content |= {
            "suppress": float(request.suppress),
            "exceptions": float(request.exceptions) if request.recoding == "global" else 0.0,
            "weights": weights,
            "l": request.l,
            "hierarchy": dict(files),
        }
        content |= {
            "csv": True,
            "unit": units[0] if units else None,
            "sampling_weight": samples[0] if samples else None,
        }
        content |= columns.described([*columns.with_role("quasi"), *columns.with_role("sensitive")])
        content |= request.more.options(
            has_l=request.l is not None,
            kept=[*columns.with_role("sensitive"), *columns.with_role("keep")],
            releases=self._session.setup.releases,
            is_copied=is_copied,
        )
        if content["method"] not in WEAKER:
            content["registry"] = str(self._session.setup.registry)
        return content

    def _people(self) -> dict[str, Any]:
        """How the register identifies the people, as options of the verb."""
        return {
            "person": self._columns.person or None,
            "new_population": self._choices.new_population,
            "accept_unchecked": self._choices.accept_unchecked,
        }

    def _files(self) -> dict[str, str]:
        """Column -> name of the file with its hierarchy; a generated name, because columns can have any name."""
        wanted = [name for name in self._columns.hierarchies() if name in self._columns.with_role("quasi")]
        return {name: f"hierarchy-{number}.csv" for number, name in enumerate(wanted, start=1)}

    def _written(self) -> dict[str, str]:
        """Column -> path of the file with its hierarchy, in its current version; an earlier search may still read an older one."""
        texts, files = self._columns.hierarchies(), {}
        folder = Path(tempfile.mkdtemp(dir=self._session.folder))
        for name, file in self._files().items():
            path = folder / file
            path.write_text(texts[name], encoding="utf-8")
            files[name] = str(path)
        return files

    def _options_for_job(self) -> dict[str, Any] | None:
        """The options passed to the verb; None if something is missing, which the page then reports."""
        try:
            return self._options(self._written())
        except LouverError as error:
            self._long.tell(str(error))
        return None

    async def _run(self) -> None:
        request, options = self._choices.choices(), self._options_for_job()
        found = options and await self._long.do(
            anonymized, self._opened.path, self._opened.source, options, key="anonymize"
        )
        if found is not None:
            self._choices.take(request, found)
            if not self._long.is_gone:
                self._draw_result()

    def _draw_result(self) -> None:
        found = self._choices.result
        self._message.clear()
        self._result.clear()
        if found is None:
            with self._message:
                verdict(
                    "plain",
                    "Nothing has been tried yet.",
                    "Choose k and press Run; this publishes nothing.",
                    is_status=False,
                )
            return
        with self._message:
            self._verdict(found)
        with self._result:
            numbers(found)
            with tag("div", "across halves"):
                with card("pad"):
                    with tag("div", "row between"):
                        tag("h2", text="Detail lost, by k")
                        button("Compare other k", self._trace, kind="mini")
                    if self._choices.curve:
                        curve(self._choices.curve, found["k"], self._choose_k)
                        tag("p", "s sub", "Click a k to choose it.")
                    else:
                        content = f"k = {found['k']} loses {share_text(found['gcp'])}. Compare what other k would lose."
                        tag("p", "s sub", content)
                with card("pad"):
                    tag("h2", text="Loss by attribute")
                    losses(found["by_column"])
            if found["distributions"]:
                distributions(found["distributions"])
            if len(self._choices.tried) > 1:
                tried(self._choices.tried, self._again)

    def _verdict(self, found: JobAnswer) -> None:
        """The verdict given by the verb."""
        bound = found["bound"]
        proof = (
            "No choice of classes loses less."
            if found["optimal"]
            else ""
            if bound is None
            else f"It cannot fall below {share_text(bound)}."
        )
        lost = f"Lost {share_text(found['gcp'])} of the detail. {proof}"
        content = found["verdict"]
        made = verdict_of(content, note=lost)
        if any(records for _, records in found["alike"]):
            with made:
                button("Ask for l = 2", self._ask_l)

    async def _ask_l(self) -> None:
        self._choices.l = 2
        self._draw_form()
        await self._run()

    async def _trace(self) -> None:
        request, options = self._choices.choices(), self._options_for_job()
        found = options and await self._long.do(
            traced, self._opened.path, self._opened.source, options, CURVE, key="curve"
        )
        if found is not None:
            self._choices.take(request, found)
            self._choices.curve = dict(found["by_k"])
            if not self._long.is_gone:
                self._draw_result()

    async def _choose_k(self, k: int) -> None:
        if self._choices.result is None or k != self._choices.result["k"]:
            self._choices.k = k
            self._draw_form()
            await self._run()

    def _again(self, number: int) -> None:
        """Restore the form to the settings of a run."""
        for name, value in self._choices.tried[number]["asked"].items():
            setattr(self._choices, name, value)
        self._draw_form()

    async def _browse(self) -> None:
        result = self._choices.result
        if result is None:
            self._long.tell("run first: there are no classes yet.")
            return
        fetch = partial(self._classes, result["number"])
        found = await fetch(0, "ascending")
        if found is not None and not self._long.is_gone:
            ClassesPanel(fetch, found)

    async def _classes(self, number: int, start: int, order: str) -> Any:
        return await self._long.do(browsed, number, start, order, key="browse")

    def _open_publishing(self) -> None:
        """Publish the result that is shown."""
        Publishing(
            self._session,
            self._choices,
            "microdata",
            "The result shown, with its report and promises. If there is a ledger, it is logged there as an exact publication; its classes "
            "are entered into the register, for audits of later tables.",
            self._publication,
            self._publishing_choices,
        )

    def _publishing_choices(self) -> None:
        people_choices(self._session, self._choices, list(self._columns.roles))
        accepting_unchecked(self._choices)

    def _publication(self, out: str) -> tuple[Any, ...] | str:
        if self._choices.result is None:
            return "run first: there is nothing to publish."
        ledger = self._session.setup.ledger
        ledger_path = None if ledger is None else str(ledger)
        return published, self._choices.result["number"], self._people(), ledger_path, out

    def _call(self) -> Call | None:
        if not self._columns.with_role("quasi"):
            return None
        files = self._files()
        try:
            given = self._options(files, is_copied=True)
        except LouverError:
            return None
        given |= self._people() if "registry" in given else {}
        options = AnonymizeOptions.model_validate(given)
        texts = self._columns.hierarchies()
        return Call(
            options=options,
            data=self._opened.copied,
            source=self._opened.source,
            command="anonymize",
            function="anonymize",
            more={"--out": self._choices.name or "release"},
            files={file: texts[name] for name, file in files.items()},
            note=BY_TIME if self._choices.has_rounds and options.steps is None else SAME,
        )


def _loss_text(lost: float, least: float | None) -> str:
    bound = "" if least is None else f", cannot fall below {share_text(least)}"
    return f"Lost {share_text(lost)}{bound}"
