"""The left side of the page TopDown: a spec, its budget, and what each level and question gets of it."""

from __future__ import annotations

from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any, get_args

from louver.app.look import RunBar, Tag, button, field, segments, select, tag
from louver.app.pages.topdown_state import Asked
from louver.app.session import Session
from louver.app.shares import equal_parts, share_sliders
from louver.app.spending import Strip, amount_slider
from louver.app.words import RELATIONS
from louver.data.samples import write_samples
from louver.topdown.options import TopDownOptions

__all__ = ["SpecForm", "choose_files", "take_sample"]

BUDGETS = {"epsilon": "epsilon", "both": "epsilon, delta", "rho": "rho, delta"}


def choose_files(text: str, kind: str) -> None:
    """A button that takes a spec and the files that it names."""
    choose = tag(
        "input", "gone", type="file", multiple=True, id="spec", aria_label="Spec and the files it names"
    )
    choose.on("change", js_handler="(e) => louver.uploadAll(e.target.files, 'spec')")
    button(text, kind=kind).on("click", js_handler="() => document.getElementById('spec').click()")


def take_sample(session: Session, asked: Asked) -> None:
    """Open the sample."""
    folder = session.folder / "sample"
    write_samples(folder)
    asked.open(folder / "county.toml", is_sample=True)
    session.show("topdown")


class SpecForm:
    """The form of one tab. A page draws what comes of it, and says in `_update` what follows from every change."""

    _form: Tag
    _strip: Strip
    _bar: RunBar

    def __init__(self, session: Session, asked: Asked) -> None:
        assert asked.spec is not None
        self._session, self._asked, self._spec = session, asked, str(asked.spec)

    async def _update(self) -> None:
        raise NotImplementedError

    def _draw_form(self) -> None:
        raise NotImplementedError

    def _missing(self) -> str:
        """A sentence about records that nobody gave; empty where they are there."""
        files = self._asked.files
        missing = "" if files is None else files.missing_records()
        return missing and f"the records are missing; choose {missing} too, or start louver explore with it."

    def _draw_spec(self) -> None:
        asked = self._asked
        with tag("div", "pad part"):
            tag("h3", text="Spec")
            name = "The sample: a county of 1,092 blocks" if asked.is_sample else Path(self._spec).name
            files = asked.files
            if asked.ready:
                name = f"The ready schema {asked.ready}"
            elif files is not None:
                name = f"{files.spec} and {len(files.names) - 1} more"
            tag("p", "s", name)
            missing = "" if files is None else files.missing_records()
            if missing:
                tag("p", "s sub", f"Records not given: {missing}. They are needed to publish only.")
            with tag("div", "row"):
                choose_files("Choose files", "mini")
                if not asked.is_sample:
                    button("Try the sample", partial(take_sample, self._session, asked), kind="mini ghost")

    def _draw_budget(self) -> None:
        asked = self._asked
        with tag("div", "pad part"):
            amount_slider(asked.measure, asked.amount, self._slide)
            segments(BUDGETS, asked.budget, self._set_budget, "Budget in")
            if asked.budget != "epsilon":
                field("delta", asked.delta, self._set_delta)
        for title, parts in (("Shares by level", asked.levels), ("Shares by question", asked.queries)):
            with tag("div", "pad part"):
                tag("h3", text=f"{title}, percent")
                share_sliders(title, parts, self._moved)
        with tag("div", "pad part"):
            button("As the spec has it", self._back, kind="mini")
            button("Equal", self._equal, kind="mini")

    def _draw_neighbours(self) -> None:
        tag("p", "s sub", "Neighbours")
        relations = get_args(TopDownOptions.model_fields["neighbours"].annotation)
        select(
            {name: RELATIONS[name] for name in relations},
            self._asked.choices["neighbours"],
            partial(self._set, "neighbours"),
            "Neighbours",
        )

    async def _moved(self) -> None:
        self._asked.is_moved = True
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
        await self._update()

    async def _back(self) -> None:
        assert self._asked.about is not None
        self._asked.reset(self._asked.about)
        self._draw_form()
        await self._update()

    async def _equal(self) -> None:
        for parts in (self._asked.levels, self._asked.queries):
            parts.update(equal_parts(parts))
        self._asked.is_moved = True
        self._draw_form()
        await self._update()
