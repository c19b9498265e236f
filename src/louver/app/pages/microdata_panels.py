"""Panels of the page Microdata: further requirements, and what a run found."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from louver.app.columns import ColumnChoices
from louver.app.jobs.releases import listed
from louver.app.look import (
    RunBar,
    Tag,
    button,
    card,
    check,
    drawer,
    number_tile,
    problem,
    segments,
    select,
    table,
)
from louver.app.look import field as text_field
from louver.app.parts import Points
from louver.app.session import JobAnswer, Receiver, Session
from louver.app.words import as_number, natural_order, share_text
from louver.errors import InputError, LouverError

__all__ = ["ClassesPanel", "More", "MorePanel", "curve", "distributions", "losses", "numbers", "tried"]

L_KINDS = {
    "distinct": "different values",
    "entropy": "entropy",
    "recursive": "recursive: the commonest value against the rarer ones",
}
DISTANCES = {
    "": "as the column is",
    "equal": "equal: all values are equally far apart",
    "ordered": "ordered: by rank",
    "hierarchical": "hierarchical: by its tree",
}
CODES = {
    "top_code": ("Top", "Larger numbers become this"),
    "bottom_code": ("Bottom", "Smaller numbers become this"),
    "round_to": ("Round to", "Rounded to multiples of this"),
}
NUMBERS = ("integer", "number", "ordered code")
ACCEPT_FEWER = (
    "Publish although some people share their values with fewer than k others in all releases together"
)


@dataclass
class More:
    """Requirements in addition to k; numbers as they were typed."""

    l_kind: str = "distinct"
    c: str = ""
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
        """The same in the form that the verb accepts, without options that do not apply.

        Raises
        ------
        InputError
            If a number is not one, or a person key is named without the records of an earlier release.
        """
        content: dict[str, Any] = {"l_kind": self.l_kind} if has_l and self.l_kind != "distinct" else {}
        if content.get("l_kind") == "recursive":
            content |= {"c": as_number(self.c, "c of recursive diversity")}
        content |= {"t": as_number(self.t, "t")} if self.t else {}
        content |= {"distance": self.distance} if self.t and self.distance else {}
        content |= {"count_missing": True} if self.count_missing and (has_l or self.t) else {}
        for name, texts in self.codes.items():
            found = {
                c: as_number(text, f"{CODES[name][0]} of {c}")
                for c, text in texts.items()
                if text and c in kept
            }
            content |= {name: found} if found else {}
        if self.against:
            content["against"] = [str(releases / name) for name in self.against]
            content |= self._linked(is_copied) if self.link else {}
            content |= {"accept": True} if self.accept else {}
        if self.population:
            content["population"] = self.population_name if is_copied else self.population
            content |= {"population_count": self.population_count} if self.population_count else {}
            content |= {"k_map": True} if self.k_map else {}
        return content

    def _linked(self, is_copied: bool) -> dict[str, Any]:
        """The person key, and the records of every earlier release, in the order of these."""
        for name in self.against:
            if name not in self.earlier:
                raise InputError(
                    f"choose the records that {name} was made from under More protection, or remove the person key."
                )
        files = [self.earlier[name][1 if is_copied else 0] for name in self.against]
        return {"link": self.link, "earlier": files}

    def is_empty(self) -> bool:
        """Whether there are no further requirements."""
        return self == More()


class MorePanel:
    """A drawer with the requirements; they apply to the next run."""

    def __init__(
        self, session: Session, more: More, columns: ColumnChoices, changed: Callable[[], object]
    ) -> None:
        self._session, self._more, self._columns, self._changed = session, more, columns, changed
        self._names: list[str] = []
        session.receivers["population"] = Receiver(self._take_population)
        with drawer("More protection"):
            Tag("p", "s sub", "These apply to the next run.")
            if columns.with_role("sensitive"):
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
            "identifies a person in both files. Neither is published. Otherwise everyone is looked up by their current values."
        )
        Tag("p", "s sub", about)
        names = self._columns.with_role("identifying")
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
            "c, if recursive: the commonest value has fewer than c times the records of all from the l-th on",
            more.c,
            partial(self._set, "c"),
            inputmode="decimal",
        )
        text_field(
            "t: maximum distance of a class from the whole file, 0 to 1 (empty: no requirement)",
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
        along = [*self._columns.with_role("sensitive"), *self._columns.with_role("keep")]
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
                "span", "s", self._more.population_name or "None: risks are measured within the file itself."
            )
            button("Choose a file", kind="mini").on(
                "click", js_handler=f"() => document.getElementById('c{choose.id}').click()"
            )
        text_field(
            "Its column of counts (empty: one person per row)",
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
            Tag("p", "s sub", "They apply to the next run.")


MOST_BINS, MOST_LINES = 40, 200
SHORT = 14
FIRST_CLASSES = {"ascending": "Smallest first", "descending": "Largest first"}


def numbers(found: JobAnswer) -> None:
    """The four numbers that users need first."""
    risk = found["risk"]
    with Tag("div", "tiles four"):
        number_tile(share_text(found["gcp"]), "detail lost")
        out = f", {found['suppressed']:,} left out" if found["suppressed"] else ""
        number_tile(f"{found['classes']:,}", f"classes, smallest {found['smallest_class']:,}{out}")
        number_tile(f"{risk['uniques_before']:,} → {risk['uniques_after']:,}", "unique people")
        number_tile(share_text(risk["prosecutor_highest"]), "highest chance of being identified")


def curve(points: Mapping[int, float], chosen: int, choose: Callable[[int], Any]) -> None:
    """Detail lost by k, as a plot with clickable points."""
    chart = Points(
        xlabel="k, safer to the right",
        ylabel="detail lost, %",
        label="Detail lost, by k",
        line=True,
        even=True,
    )
    listed = [
        {"n": k, "x": k, "y": 100 * lost, "ok": False, "label": f"k = {k}: {share_text(lost)} lost"}
        for k, lost in sorted(points.items())
    ]
    chart.put(points=listed, chosen=chosen, high=max(110 * lost for lost in points.values()) or 1)
    chart.hear("choose", lambda k: choose(int(k)))


def losses(by_column: Sequence[tuple[str, float]]) -> None:
    """The loss of each attribute, as bars."""
    most = max((share for _, share in by_column), default=0) or 1
    for name, share in by_column:
        with Tag("div", "slide wide"):
            Tag("span", "s clip", name, title=name)
            with Tag("div", "lane"):
                Tag("i").style(f"width:{100 * share / most:.1f}%")
            Tag("span", "s", share_text(share))


def distributions(lines: Sequence[JobAnswer]) -> None:
    """Before and after of all columns at once."""
    with card("pad"):
        with Tag("div", "row between"):
            Tag("h2", text="Before and after")
            Tag(
                "span",
                "s sub",
                "Grey bars: before. Blue lines: after. The percentage says how far apart they are.",
            )
        with Tag("div", "multiples"):
            for line in lines:
                with Tag("div"):
                    _before_after(line)


def _before_after(line: JobAnswer) -> None:
    values = list(zip(line["bins"], line["before"], line["after"], strict=True))
    values = [values[place] for place in _order(line["bins"])]
    bins = together(values)
    most = max((max(before, after) for _, before, after in bins), default=0) or 1
    with Tag("div", "row between s"):
        Tag("b", "b clip", line["name"], title=line["name"])
        Tag("span", "sub nowrap", share_text(line["distance"]))
    with Tag(
        "div",
        "pairs",
        role="img",
        aria_label=f"{line['name']} before and after; the table below has the same numbers",
    ):
        for label, before, after in bins:
            with Tag("div", title=f"{label}: {share_text(before)} before, {share_text(after)} after"):
                Tag("i").style(f"height:{100 * before / most:.1f}%")
                Tag("b").style(f"bottom:{100 * after / most:.1f}%")
        Tag("u", text=share_text(most), aria_hidden="true")
    with Tag("div", "row between s sub ends", aria_hidden="true"):
        Tag("span", "clip", str(values[0][0]) if values else "")
        Tag("span", "clip r", str(values[-1][0]) if len(values) > 1 else "")
    with Tag("details", "s"):
        Tag("summary", text="As a table")
        with table({"Value": "", "Before": "r", "After": "r"}):
            for label, before, after in values[:MOST_LINES]:
                with Tag("tr"):
                    Tag("td", "", str(label))
                    Tag("td", "r", share_text(before))
                    Tag("td", "r", share_text(after))


def together(values: Sequence[tuple[str, float, float]]) -> list[tuple[str, float, float]]:
    """Neighbouring values combined into bars, if there are more values than bars.

    Examples
    --------
    >>> together([(str(n), 0.25, n / 6) for n in range(4)]) == [(str(n), 0.25, n / 6) for n in range(4)]
    True
    """
    width = -(-len(values) // MOST_BINS)
    if width <= 1:
        return list(values)
    groups = [values[start : start + width] for start in range(0, len(values), width)]
    return [
        (
            f"{group[0][0]} to {group[-1][0]}" if len(group) > 1 else group[0][0],
            sum(before for _, before, _ in group),
            sum(after for *_, after in group),
        )
        for group in groups
    ]


def _order(labels: Sequence[str]) -> Sequence[int]:
    """Labels in text order have no meaningful order, so numbers are sorted by size."""
    listed = list(labels)
    is_text = listed == sorted(listed) or listed[:-1] == sorted(listed[:-1])  # a missing value comes last
    return natural_order(listed) if is_text else range(len(listed))


def tried(runs: Sequence[JobAnswer], again: Callable[[int], Any]) -> None:
    """All runs of this tab side by side; a click restores the form."""
    with card("pad"):
        Tag("h2", text="Tried so far")
        heads = {
            "#": "",
            "k": "r",
            "Recoding": "",
            "Method": "",
            "Left out": "r",
            "Classes": "r",
            "Detail lost": "r",
        }
        with table(heads):
            for number, one in enumerate(runs):
                with Tag("tr", "sel" if number == len(runs) - 1 else ""):
                    with Tag("td"):
                        Tag(
                            "button", "linky b", str(number + 1), type="button", title="Set the form to this"
                        ).click(partial(again, number))
                    Tag("td", "r", str(one["k"]))
                    Tag("td", "s", one["recoding"])
                    Tag("td", "s", one["method"])
                    for text in (f"{one['suppressed']:,}", f"{one['classes']:,}", share_text(one["lost"])):
                        Tag("td", "r", text)


class ClassesPanel:
    """The published classes, one page at a time."""

    def __init__(self, fetch: Callable[[int, str], Any], found: JobAnswer) -> None:
        self._fetch, self._order, self._start = fetch, "ascending", 0
        with drawer("Classes of people with the same published values").classes("wide"):
            segments(FIRST_CLASSES, self._order, self._sort, "Order of the classes")
            self._body = Tag("div", "stack")
        self._paint(found)

    async def _sort(self, order: str) -> None:
        self._order, self._start = order, 0
        await self._go(0)

    async def _go(self, start: int) -> None:
        found = await self._fetch(start, self._order)
        if found is not None and not self._body.is_deleted:
            self._start = start
            self._paint(found)

    def _paint(self, found: JobAnswer) -> None:
        last = self._start + len(found["rows"])
        self._body.clear()
        with self._body:
            with Tag("div", "row between"):
                Tag("span", "s sub", f"{self._start + 1:,} to {last:,} of {found['n']:,} classes")
                with Tag("span", "row"):
                    if self._start:
                        button("Before", partial(self._go, max(self._start - found["step"], 0)), kind="mini")
                    if last < found["n"]:
                        button("Next", partial(self._go, last), kind="mini")
            values = {f"{name}, values": "r" for name in found["sensitive"]}
            with table({"Records": "r"} | values | dict.fromkeys(found["columns"], "")):
                for labels, counts in found["rows"]:
                    with Tag("tr"):
                        for count in counts:
                            Tag("td", "r", f"{count:,}")
                        for label in labels:
                            Tag("td", "s nowrap" if len(label) < SHORT else "s", label)
