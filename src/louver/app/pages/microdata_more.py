"""Further demands on microdata: kinds of diversity, closeness, a population, codes of numbers, earlier releases."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from louver.app.columns import Columns
from louver.app.jobs.books import listed
from louver.app.look import RunBar, Tag, button, check, drawer, problem, select
from louver.app.look import field as text_field
from louver.app.session import Receiver, Session
from louver.errors import InputError, LouverError

__all__ = ["More", "MorePanel"]

L_KINDS = {"distinct": "different values", "entropy": "entropy"}
DISTANCES = {
    "": "as the column is",
    "equal": "equal: all values are as far apart",
    "ordered": "ordered: by rank",
    "hierarchical": "hierarchical: by its tree",
}
CODES = {
    "top_code": ("Top", "Greater numbers become this"),
    "bottom_code": ("Bottom", "Smaller numbers become this"),
    "round_to": ("Round to", "Rounded to multiples of this"),
}
NUMBERS = ("integer", "number", "ordered code")
ACCEPT_FEWER = "Publish although some people have fewer than k look-alikes in all releases together"


@dataclass
class More:
    """What was demanded besides k; numbers as they were typed."""

    l_kind: str = "distinct"
    t: str = ""
    distance: str = ""
    count_missing: bool = False
    codes: dict[str, dict[str, str]] = field(default_factory=dict)
    against: list[str] = field(default_factory=list)
    link: str = ""
    earlier: dict[str, tuple[str, str]] = field(default_factory=dict)
    """Release -> path and name of the records that it was made from."""
    accept: bool = False
    population: str = ""
    population_name: str = ""
    population_count: str = ""
    k_map: bool = False

    def options(
        self, *, has_l: bool, kept: Sequence[str], releases: Path, is_copied: bool = False
    ) -> dict[str, Any]:
        """The same as the verb takes it, as far as it has something to speak of.

        Raises
        ------
        InputError
            If a number is none, or a person key is named without the records of an earlier release.
        """
        told: dict[str, Any] = {"l_kind": self.l_kind} if has_l and self.l_kind != "distinct" else {}
        told |= {"t": _number(self.t, "t")} if self.t else {}
        told |= {"distance": self.distance} if self.t and self.distance else {}
        told |= {"count_missing": True} if self.count_missing and (has_l or self.t) else {}
        for name, texts in self.codes.items():
            found = {
                c: _number(text, f"{CODES[name][0]} of {c}")
                for c, text in texts.items()
                if text and c in kept
            }
            told |= {name: found} if found else {}
        if self.against:
            told["against"] = [str(releases / name) for name in self.against]
            told |= self._linked(is_copied) if self.link else {}
            told |= {"accept": True} if self.accept else {}
        if self.population:
            told["population"] = self.population_name if is_copied else self.population
            told |= {"population_count": self.population_count} if self.population_count else {}
            told |= {"k_map": True} if self.k_map else {}
        return told

    def _linked(self, is_copied: bool) -> dict[str, Any]:
        """The person key, and the records of every earlier release, in the order of these."""
        for name in self.against:
            if name not in self.earlier:
                raise InputError(
                    f"choose the records that {name} was made from under More protection, or no person key."
                )
        files = [self.earlier[name][1 if is_copied else 0] for name in self.against]
        return {"link": self.link, "earlier": files}

    def is_empty(self) -> bool:
        """Whether nothing was demanded."""
        return self == More()


def _number(text: str, what: str) -> float:
    try:
        return float(text)
    except ValueError:
        pass
    raise InputError(f"{what} must be a number.")


class MorePanel:
    """A drawer with the demands; they hold for the next run."""

    def __init__(self, session: Session, more: More, columns: Columns, changed: Callable[[], object]) -> None:
        self._session, self._more, self._columns, self._changed = session, more, columns, changed
        self._names: list[str] = []
        session.receivers["population"] = Receiver(self._take_population)
        with drawer("More protection"):
            Tag("p", "s sub", "These hold for the next run.")
            if columns.named("sensitive"):
                self._draw_sensitive()
            self._draw_codes()
            self._draw_population()
            Tag("h3", text="Earlier releases of the same people")
            self._earlier = Tag("div", "stack")
            self._bar = RunBar(session, "quick")
            self._wrong = Tag("div")
            button("Use them", self._use, kind="pri")

    async def start(self) -> None:
        """List the earlier releases."""
        found = await self._bar.do(listed, str(self._session.setup.releases), key="releases")
        self._names = [one["folder"] for one in found or () if one["kind"] == "anonymize"]
        if not self._bar.is_gone:
            self._paint_earlier()

    def _paint_earlier(self) -> None:
        """The earlier releases; of those chosen, the records that they were made from."""
        more = self._more
        self._earlier.clear()
        with self._earlier:
            if not self._names:
                Tag("p", "s sub", "The folder of releases has no microdata yet.")
                return
            for number, name in enumerate(self._names):
                check(name, name in more.against, partial(self._choose, name))
                if name in more.against:
                    self._draw_records(number, name)
            if more.against:
                self._draw_link()
                check(ACCEPT_FEWER, more.accept, partial(self._set, "accept"))

    def _draw_records(self, number: int, name: str) -> None:
        purpose = f"earlier-{number}"
        self._session.receivers[purpose] = Receiver(partial(self._take_records, name))
        label = f"Records of {name}"
        choose = Tag("input", "gone", type="file", aria_label=label, tabindex=-1)
        choose.on("change", js_handler=f"(e) => louver.upload(e.target.files[0], '{purpose}')")
        with Tag("div", "row between inset"):
            kept = self._more.earlier.get(name)
            Tag("span", "s sub", f"Its records: {kept[1] if kept else 'not chosen'}")
            button("Choose a file", kind="mini", title=label).on(
                "click", js_handler=f"() => document.getElementById('c{choose.id}').click()"
            )

    def _draw_link(self) -> None:
        about = (
            "If values have changed since (a birthday, a move), choose the records that each release was made from and the column that "
            "identifies a person in both files. Neither is published. Otherwise everybody is looked up by today's values."
        )
        Tag("p", "s sub", about)
        names = self._columns.named("identifying")
        if not names:
            Tag(
                "p",
                "s",
                'To use a person key, give its column the role "Identifying: drop" on the page Data.',
            )
            return
        with Tag("div", "row between"):
            Tag("span", "s", "Person key in both files")
            choices = {"": "none: values have not changed"} | {name: name for name in names}
            chosen = self._more.link if self._more.link in choices else ""
            select(choices, chosen, partial(self._set, "link"), "Person key in both files")

    async def _take_records(self, name: str, path: str, shown: str) -> None:
        self._more.earlier[name] = path, shown
        if not self._earlier.is_deleted:
            self._paint_earlier()

    def _set(self, name: str, value: Any) -> None:
        setattr(self._more, name, value.strip() if isinstance(value, str) else value)

    def _choose(self, name: str, is_chosen: bool) -> None:
        kept = [one for one in self._more.against if one != name]
        self._more.against = [*kept, name] if is_chosen else kept
        self._paint_earlier()

    def _draw_sensitive(self) -> None:
        more = self._more
        Tag("h3", text="Sensitive columns")
        with Tag("div", "row between"):
            Tag("span", "s", "l counts")
            select(L_KINDS, more.l_kind, partial(self._set, "l_kind"), "l counts")
        text_field(
            "t: how far a class may be from everybody, 0 to 1 (empty: no demand)",
            more.t,
            partial(self._set, "t"),
            inputmode="decimal",
        )
        with Tag("div", "row between"):
            Tag("span", "s", "Distance")
            select(DISTANCES, more.distance, partial(self._set, "distance"), "Distance")
        check("A missing value counts as a value", more.count_missing, partial(self._set, "count_missing"))

    def _draw_codes(self) -> None:
        assert self._columns.profile is not None
        along = [*self._columns.named("sensitive"), *self._columns.named("keep")]
        kinds = {one["name"]: one["kind"] for one in self._columns.profile["columns"]}
        names = [name for name in along if kinds.get(name) in NUMBERS]
        if not names:
            return
        Tag("h3", text="Numbers that are published as they are")
        for column in names:
            with Tag("div", "row between"):
                Tag("span", "s clip", column, title=column)
                with Tag("span", "row"):
                    for code, (text, title) in CODES.items():
                        made = Tag("input", "inp k", placeholder=text, title=title, inputmode="decimal")
                        made.set(
                            aria_label=f"{text}, {column}",
                            value=self._more.codes.get(code, {}).get(column, ""),
                        )
                        made.changed(partial(self._set_code, code, column))

    def _set_code(self, code: str, column: str, value: str) -> None:
        self._more.codes.setdefault(code, {})[column] = value.strip()

    def _draw_population(self) -> None:
        Tag("h3", text="Population that the records are from")
        choose = Tag("input", "gone", type="file", aria_label="File of the population", tabindex=-1)
        choose.on("change", js_handler="(e) => louver.upload(e.target.files[0], 'population')")
        with Tag("div", "row"):
            self._population = Tag(
                "span", "s", self._more.population_name or "None: risks are those of the file itself."
            )
            button("Choose a file", kind="mini").on(
                "click", js_handler=f"() => document.getElementById('c{choose.id}').click()"
            )
        text_field(
            "Its column that counts people (empty: one line each)",
            self._more.population_count,
            partial(self._set, "population_count"),
        )
        check("k counts people of the population (k-map)", self._more.k_map, partial(self._set, "k_map"))

    async def _take_population(self, path: str, name: str) -> None:
        self._more.population, self._more.population_name = path, name
        if not self._population.is_deleted:
            self._population.text = name

    def _use(self) -> None:
        self._wrong.clear()
        try:
            self._more.options(has_l=True, kept=list(self._columns.roles), releases=Path())
        except LouverError as error:
            with self._wrong:
                problem(str(error))
            return
        self._changed()
        with self._wrong:
            Tag("p", "s sub", "They hold for the next run.")
