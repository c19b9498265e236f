"""The choices made in a tab on the page TopDown, the form, and the choices as a section of a spec, as a command and in Python."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any, get_args

from louver.app.controls import equal_parts, share_sliders, shares_of
from louver.app.copying import DRAWN_ANEW, Repeatable, Texts, WithFiles
from louver.app.jobs.topdown import CHOICES
from louver.app.look import RunBar, Tag, button, field, segments, select, tag
from louver.app.session import JobAnswer, Session
from louver.app.spec_files import SpecFiles, moved, written
from louver.app.spending import Strip, amount_slider
from louver.app.words import RELATIONS
from louver.data.samples import write_samples
from louver.errors import LouverError
from louver.privacy.budget import Loss
from louver.schema.validate import read_toml
from louver.topdown.options import TopDownOptions

__all__ = ["SpecForm", "TopDownChoices", "choose_files", "extends_of", "repeated", "spec_text", "take_sample"]

SAMPLE = "louver-sample"
"""Where a copied command writes the files of the sample."""
DELTA = "1e-10"


class TopDownChoices:
    """The choices made in a tab.

    Attributes
    ----------
    spec : Path or None
        The spec that is read.
    extending : str
        Name of the release to be extended, if it was chosen before the spec of the extension.
    first : Path or None
        The release that is extended; None if the spec names it.
    ready : str
        Name of the ready-made schema from which the spec was made.
    before : Path or None
        The spec of the first release, if it was open before a ready-made schema was chosen.
    """

    def __init__(self) -> None:
        self.spec: Path | None = None
        self.extending = ""
        self.first: Path | None = None
        self.ready = ""
        self.before: Path | None = None
        self.files: SpecFiles | None = None
        self.is_sample = False
        self.about: JobAnswer | None = None
        self.budget = "epsilon"
        self.amount = Fraction(1)
        self.delta = DELTA
        self.choices: dict[str, Any] = {}
        self.levels: dict[str, Fraction] = {}
        self.queries: dict[str, Fraction] = {}
        self.is_moved = False
        self.query = ""
        self.loss: Loss | None = None
        self.name = ""
        self.result: JobAnswer | None = None

    @property
    def measure(self) -> str:
        """The value of the slider."""
        return "rho" if self.budget == "rho" else "epsilon"

    def open(self, spec: Path | None, *, is_sample: bool = False) -> None:
        """Start over with another spec."""
        self.spec, self.is_sample = spec, is_sample
        self.about = self.loss = self.result = self.first = None
        self.before = None
        self.ready = self.name = ""
        if is_sample or spec is None:
            self.files = None

    def open_ready(self, spec: Path, schema: str) -> None:
        """Continue with the spec made from a ready-made schema and the open spec."""
        before = self.spec
        self.open(spec)
        self.before, self.ready = before, schema

    def change_first(self, release: Path | None) -> None:
        """Extend another release."""
        self.first, self.name = release, ""
        self.about = self.loss = self.result = None

    def reset(self, about: JobAnswer) -> None:
        """Choose what the spec contains."""
        self.about = about
        self.amount, self.delta = Fraction(about["amount"]), about["delta"] or DELTA
        self.budget = (
            "rho" if about["measure"] == "rho" else "both" if about["delta"] is not None else "epsilon"
        )
        self.choices = {name: about[name] for name in CHOICES}
        self.levels = {level["name"]: 100 * Fraction(level["share"]) for level in about["levels"]}
        self.queries = {name: 100 * Fraction(share) for name, share in about["query_shares"].items()}
        self.is_moved = False

    def section(self) -> dict[str, Any]:
        """Changes to the section of the spec; None removes a key."""
        about = self.about
        assert about is not None
        content: dict[str, Any] = {
            name: self.choices[name] for name in CHOICES if self.choices[name] != about[name]
        }
        delta = None if self.budget == "epsilon" else self.delta
        if (self.measure, self.amount, delta) != (
            about["measure"],
            Fraction(about["amount"]),
            about["delta"],
        ):
            content |= {"epsilon": None, "rho": None, "delta": delta, self.measure: str(self.amount)}
        if self.first is not None:
            content["extends"] = str(self.first)
        if self.is_moved:
            content["shares"] = {"levels": shares_of(self.levels), "queries": shares_of(self.queries)}
        return content


def extends_of(spec: Path) -> str | None:
    """The release that a spec extends, as extended in the spec; None if it is not the spec of an extension."""
    try:
        section = read_toml(spec).get("topdown")
    except LouverError:  # reading the spec reports what is wrong
        return None
    extended = section.get("extends") if isinstance(section, dict) else None
    return extended if isinstance(extended, str) else None


def repeated(chosen: TopDownChoices, ledger: Path | None) -> Repeatable | None:
    """The choices, as the words of a command that repeats them; an upload keeps its name, the sample is written first."""
    if chosen.spec is None or chosen.about is None:
        return None
    spec, first, python = str(chosen.spec), "", ""
    section = chosen.section()
    if chosen.is_sample:
        spec = f"{SAMPLE}/data/{chosen.spec.name}"
        first = f"louver demo --files --out={SAMPLE}"
        python = f"from pathlib import Path\nfrom louver.data.samples import write_samples\nwrite_samples(Path('{SAMPLE}/data'))"
    files = {}
    if section or chosen.files is not None:
        folder = Path() if chosen.files is not None else Path(spec).parent
        spec = str(folder / "louver-explore.toml")
        files = {spec: spec_text(chosen.spec, section)}
    out = chosen.name or "release"
    is_extension = extends_of(chosen.spec) is not None
    words = ["louver", "topdown", "extend" if is_extension else "run", spec, f"--out={out}"]
    words += [] if ledger is None else [f"--ledger={ledger}"]
    paid = "" if ledger is None else f", ledger={str(ledger)!r}"
    verb = "lv.topdown.extend" if is_extension else "lv.topdown"
    call = Texts(tuple(words), f"print({verb}({spec!r}, out={out!r}{paid}))", DRAWN_ANEW)
    return WithFiles(call, files, first, python)


def spec_text(path: Path, section: Mapping[str, Any]) -> str:
    """The spec with the changes made on the page, to be written next to it so that the files it names are found."""
    return written(moved(read_toml(path), section))


BUDGETS = {"epsilon": "epsilon", "both": "epsilon, delta", "rho": "rho, delta"}


def choose_files(text: str, kind: str) -> None:
    """A button that takes a spec and the files that it names."""
    choose = tag(
        "input", "gone", type="file", multiple=True, id="spec", aria_label="Spec and the files it names"
    )
    choose.on("change", js_handler="(e) => louver.uploadAll(e.target.files, 'spec')")
    button(text, kind=kind).on("click", js_handler="() => document.getElementById('spec').click()")


def take_sample(session: Session, chosen: TopDownChoices) -> None:
    """Open the sample."""
    folder = session.folder / "sample"
    write_samples(folder)
    chosen.open(folder / "county.toml", is_sample=True)
    session.show("topdown")


class SpecForm:
    """The form of one tab. A page draws the result, and defines in `_update` how it reacts to each change."""

    _form: Tag
    _strip: Strip
    _bar: RunBar

    def __init__(self, session: Session, chosen: TopDownChoices) -> None:
        assert chosen.spec is not None
        self._session, self._choices, self._spec = session, chosen, str(chosen.spec)

    async def _update(self) -> None:
        raise NotImplementedError

    def _draw_form(self) -> None:
        raise NotImplementedError

    def _missing(self) -> str:
        """A sentence about missing records; empty if they are there."""
        files = self._choices.files
        missing = "" if files is None else files.missing_records()
        return missing and f"the records are missing; choose {missing} too, or start louver explore with it."

    def _draw_spec(self) -> None:
        chosen = self._choices
        with tag("div", "pad part"):
            tag("h3", text="Spec")
            name = "The sample: a county of 1,092 blocks" if chosen.is_sample else Path(self._spec).name
            files = chosen.files
            if chosen.ready:
                name = f"The ready-made schema {chosen.ready}"
            elif files is not None:
                name = f"{files.spec} and {len(files.names) - 1} more"
            tag("p", "s", name)
            missing = "" if files is None else files.missing_records()
            if missing:
                tag("p", "s sub", f"The records {missing} are missing. They are needed only to publish.")
            with tag("div", "row"):
                choose_files("Choose files", "mini")
                if not chosen.is_sample:
                    button("Try the sample", partial(take_sample, self._session, chosen), kind="mini ghost")

    def _draw_budget(self) -> None:
        chosen = self._choices
        with tag("div", "pad part"):
            amount_slider(chosen.measure, chosen.amount, self._slide)
            segments(BUDGETS, chosen.budget, self._set_budget, "Budget in")
            if chosen.budget != "epsilon":
                field("delta", chosen.delta, self._set_delta)
        for title, parts in (("Shares by level", chosen.levels), ("Shares by question", chosen.queries)):
            with tag("div", "pad part"):
                tag("h3", text=f"{title}, percent")
                share_sliders(title, parts, self._moved)
        with tag("div", "pad part"):
            button("As in the spec", self._back, kind="mini")
            button("Equal", self._equal, kind="mini")

    def _draw_neighbours(self) -> None:
        tag("p", "s sub", "Neighbours")
        relations = get_args(TopDownOptions.model_fields["neighbours"].annotation)
        select(
            {name: RELATIONS[name] for name in relations},
            self._choices.choices["neighbours"],
            partial(self._set, "neighbours"),
            "Neighbours",
        )

    async def _moved(self) -> None:
        self._choices.is_moved = True
        await self._update()

    async def _slide(self, amount: Fraction) -> None:
        self._choices.amount = amount
        await self._update()

    async def _set_budget(self, budget: str) -> None:
        self._choices.budget = budget
        self._draw_form()
        await self._update()

    async def _set_delta(self, value: str) -> None:
        self._choices.delta = value.strip()
        await self._update()

    async def _set(self, name: str, value: Any) -> None:
        self._choices.choices[name] = value
        await self._update()

    async def _back(self) -> None:
        assert self._choices.about is not None
        self._choices.reset(self._choices.about)
        self._draw_form()
        await self._update()

    async def _equal(self) -> None:
        for parts in (self._choices.levels, self._choices.queries):
            parts.update(equal_parts(parts))
        self._choices.is_moved = True
        self._draw_form()
        await self._update()
