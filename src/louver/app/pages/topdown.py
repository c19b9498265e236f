"""TopDown: private microdata over a tree of regions; the forecast changes as the budget moves."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

from louver.app.copying import Repeatable, Texts, WithFiles, toml
from louver.app.jobs.topdown import described, planned, released
from louver.app.look import (
    RunBar,
    button,
    card,
    copy_button,
    empty,
    head,
    icon,
    pill,
    table,
    tag,
)
from louver.app.session import Session
from louver.app.spending import Strip, amount_slider, tell_in_words
from louver.data.samples import write_samples
from louver.schema.files import toml_text

__all__ = ["build", "spec_text"]

Told = Mapping[str, Any]


class Asked:
    """What a tab chose."""

    def __init__(self) -> None:
        self.spec: Path | None = None
        self.is_sample = False
        self.about: Told | None = None
        self.amount = Fraction(1)
        self.levels: dict[str, int] = {}
        self.queries: dict[str, int] = {}
        self.is_moved = False
        self.name = ""
        self.result: Told | None = None

    def section(self) -> dict[str, Any]:
        """What differs from the spec, for its section."""
        assert self.about is not None
        told: dict[str, Any] = {self.about["measure"]: str(self.amount)}
        if self.is_moved:
            told["shares"] = {"levels": _fractions(self.levels), "queries": _fractions(self.queries)}
        return told


async def build(session: Session) -> None:
    """Draw the page."""
    asked = session.state(Asked)
    if asked.spec is None:
        asked.spec = session.setup.topdown
    if asked.spec is None:
        head("TopDown", "private microdata over a tree of regions")
        with empty(
            "There is no spec yet",
            "A spec says which regions, attributes and questions there are. Start louver explore with --topdown SPEC.toml, or try the "
            "sample: a county of 1,092 blocks.",
        ):
            button("Try the sample", partial(_take_sample, session, asked), kind="pri")
        return
    await _Page(session, asked).start()


def _take_sample(session: Session, asked: Asked) -> None:
    folder = session.folder / "sample"
    write_samples(folder)
    asked.spec, asked.is_sample = folder / "county.toml", True
    session.show("topdown")


class _Page:
    """The sliders, the forecast, and what came of it."""

    def __init__(self, session: Session, asked: Asked) -> None:
        assert asked.spec is not None
        self._session, self._asked, self._spec = session, asked, str(asked.spec)

    async def start(self) -> None:
        with head("TopDown", "private microdata over a tree of regions"):
            self._knowledge = tag("div")
            copy_button(self._texts)
        self._bar = RunBar(self._session, "quick")
        if self._asked.about is None:
            self._asked.about = await self._bar.do(described, self._spec, key="spec")
            if self._asked.about is None:
                return
            self._reset()
        about = self._asked.about
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
                    self._asked,
                    records="the records that the spec names",
                    amount=lambda: (about["measure"], self._asked.amount),
                    job=lambda: (released, self._spec, self._asked.section()),
                    title=lambda found: f"Released: {found['people']:,} people",
                    column="People",
                )
        self._bar.dim(self._forecast)
        self._draw_form()
        self._strip.draw()
        await self._update()

    def _reset(self) -> None:
        asked, about = self._asked, self._asked.about
        assert about is not None
        asked.amount = Fraction(about["amount"])
        asked.levels = {level["name"]: max(1, round(200 * level["share"])) for level in about["levels"]}
        asked.queries = {name: max(1, round(200 * share)) for name, share in about["query_shares"].items()}
        asked.is_moved = False

    def _draw_form(self) -> None:
        asked, about = self._asked, self._asked.about
        assert about is not None
        self._form.clear()
        with self._form:
            with tag("div", "pad part"):
                amount_slider(about["measure"], asked.amount, self._slide)
            self._shown: dict[str, Any] = {}
            for title, parts in (("Shares by level", asked.levels), ("Shares by question", asked.queries)):
                with tag("div", "pad part"):
                    tag("h3", text=title)
                    for name in parts:
                        self._share(title, name, parts)
            with tag("div", "pad part"):
                button("As the spec has it", self._back, kind="mini")
                button("Equal", self._equal, kind="mini")
            with tag("div", "pad"):
                tag("h3", text="Published exactly")
                for name in about["exact"]:
                    with tag("div", "row between s"):
                        tag("span", text=name)
                        icon("lock", "mini")
                tag("p", "s sub", "What is exact is not protected." if about["exact"] else "Nothing.")

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
        self._strip.draw()
        await self._update()

    async def _back(self) -> None:
        self._reset()
        self._draw_form()
        self._strip.draw()
        await self._update()

    async def _equal(self) -> None:
        for parts in (self._asked.levels, self._asked.queries):
            parts.update(dict.fromkeys(parts, 100))
        self._asked.is_moved = True
        self._draw_form()
        await self._update()

    async def _update(self, simulations: int = 0) -> None:
        """The forecast of what is chosen now; a later choice overtakes an earlier one."""
        found = await self._bar.do(planned, self._spec, self._asked.section(), simulations, key="forecast")
        if found is not None:
            self._draw_forecast(found)

    def _draw_forecast(self, found: Told) -> None:
        about = self._asked.about
        assert about is not None
        regions = {level["name"]: level["regions"] for level in about["levels"]}
        lines = [line for line in found["lines"] if line["plan"] == "asked"]
        equal = {line["level"]: line["mean_absolute"] for line in found["lines"] if line["plan"] == "equal"}
        widest = max([*(line["mean_absolute"] for line in lines), *equal.values()], default=0) or 1
        self._forecast.clear()
        with self._forecast:
            with tag("div", "pad row"):
                tag("h2", text="Forecast: how far off a region's total will be")
                pill("spends nothing, reads no records", "ok", "ok")
                tag("div", "grow")
                button("Simulate", partial(self._update, 1), kind="mini")
            with table(
                {
                    "Level": "",
                    "Regions": "r",
                    "Typical error": "r",
                    "people": "",
                    "Of a mean region": "r",
                    "In words": "",
                }
            ):
                for line in lines:
                    self._line(line, regions[line["level"]], equal[line["level"]], widest)
            how = (
                "one simulated release"
                if found["simulations"]
                else "the noise alone, before counts below zero are mended"
            )
            tag(
                "p",
                "pad s sub",
                f"The mark is an equal share. Computed from {how}, for about 50 people in each smallest region.",
            )

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

    def _texts(self) -> Repeatable:
        asked, ledger = self._asked, self._session.setup.ledger
        out = asked.name or "release"
        spec, files = self._spec, {}
        if asked.about is not None and (asked.is_moved or asked.amount != Fraction(asked.about["amount"])):
            spec = str(Path(self._spec).with_name("louver-explore.toml"))
            files = {spec: spec_text(Path(self._spec), asked.section())}
        words = ["louver", "topdown", "run", spec, f"--out={out}"]
        words += [] if ledger is None else [f"--ledger={ledger}"]
        paid = "" if ledger is None else f", ledger={str(ledger)!r}"
        return WithFiles(Texts(tuple(words), f"print(lv.topdown({spec!r}, out={out!r}{paid}))"), files)


def spec_text(path: Path, section: Mapping[str, Any]) -> str:
    """A spec with what was moved on the page, to be written beside it: the files it names are found from there."""
    content = tomllib.loads(path.read_text(encoding="utf-8"))
    content["topdown"] = {**content["topdown"], **section}
    return "".join(f"{toml_text(key)} = {toml(value)}\n" for key, value in content.items())


def _fractions(parts: Mapping[str, int]) -> dict[str, str]:
    whole = sum(parts.values())
    return {name: str(Fraction(part, whole)) for name, part in parts.items()}


def _percent(parts: Mapping[str, int], name: str) -> str:
    return f"{100 * parts[name] / sum(parts.values()):.0f} %"
