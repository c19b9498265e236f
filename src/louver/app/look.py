"""The parts that pages are made of. Whatever text they are given is text: it never becomes HTML, an attribute's name or a script."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

from nicegui import ElementFilter, context
from nicegui.element import Element
from nicegui.elements.mixins.text_element import TextElement

from louver.app.copying import Repeatable
from louver.app.icons import ICONS
from louver.app.session import Session
from louver.app.words import capital, without_flags
from louver.app.work import Late
from louver.errors import Cancelled, LouverError

__all__ = [
    "Handler",
    "RunBar",
    "Tag",
    "button",
    "card",
    "check",
    "copy_button",
    "drawer",
    "empty",
    "field",
    "finder",
    "head",
    "icon",
    "number_tile",
    "pill",
    "problem",
    "segments",
    "select",
    "slider",
    "table",
    "tag",
    "verdict",
    "verdict_of",
]

Handler = Callable[[], Any]
MOST_IN_LINE = 2
"""Reasons of a verdict that are not yet a list."""
DIM_AFTER_SECONDS, RUN_BAR_AFTER_SECONDS = 0.15, 0.6


class Tag(TextElement):
    """An HTML element with classes, text and attributes."""

    def __init__(self, name: str, classes: str = "", text: str = "", **attributes: Any) -> None:
        super().__init__(tag=name, text=text)
        self.classes(classes)
        self.set(**attributes)

    def set(self, **attributes: Any) -> Tag:
        """Set attributes; None removes one. `aria_label` is written `aria-label`."""
        for name, value in attributes.items():
            key = name.rstrip("_").replace("_", "-")
            if value is None:
                self._props.pop(key, None)
            else:
                self._props[key] = value
        self.update()
        return self

    def click(self, handler: Handler) -> Tag:
        """Call `handler` without arguments; it may be asynchronous."""
        self.on("click", lambda: handler(), args=[])
        return self

    def changed(self, handler: Callable[[str], Any], event: str = "change") -> Tag:
        """Call `handler` with the new value of a field, which stays when the page is drawn again."""

        def take(value: str) -> Any:
            self._props["value"] = value
            return handler(value)

        self.on(event, lambda e: take(e.args), js_handler="(e) => emit(e.target.value)")
        if event == "change":  # what is typed so far stays too, when an answer about something else arrives
            self.on("input", js_handler=f"(e) => louver.typed({self.id}, e.target.value)")
        return self


def tag(name: str, classes: str = "", text: str = "", **attributes: Any) -> Tag:
    """An HTML element; use it with `with` to put others into it."""
    return Tag(name, classes, text, **attributes)


def icon(name: str, classes: str = "") -> Tag:
    """One of our icons; decoration, so no reader tells it."""
    return Tag("svg", f"i {classes}", viewBox="0 0 18 18", aria_hidden="true", innerHTML=ICONS[name])


def button(
    text: str, handler: Handler | None = None, *, kind: str = "", icon_name: str = "", **attributes: Any
) -> Tag:
    """A button; `kind` is pri (one a page), ghost, stop or mini."""
    made = Tag("button", f"btn {kind}", type="button", **attributes)
    with made:
        if icon_name:
            icon(icon_name, "mini")
        if text:
            Tag("span", text=text)
    if handler is not None:
        made.click(handler)
    return made


def card(classes: str = "") -> Tag:
    """A surface with a line around it."""
    return Tag("section", f"card {classes}")


def head(title: str, about: str) -> Tag:
    """The first line of a page; put its buttons into what is returned."""
    with Tag("div", "head"):
        with Tag("div", "row base"):
            Tag("h1", text=title)
            Tag("p", text=about)
        Tag("div", "grow")
        return Tag("div", "row actions")


def verdict(
    kind: str,
    bold: str,
    text: str = "",
    note: str = "",
    *,
    reasons: Sequence[str] = (),
    is_status: bool = True,
) -> Tag:
    """What to conclude, in a sentence; `kind` is stop, care, ok or plain. Put an action into what is returned.

    Several reasons are a list.
    """
    if len(reasons) <= MOST_IN_LINE:
        text, reasons = " ".join(filter(None, (text, *reasons))), ()
    made = Tag("div", f"verdict {kind}", role="status" if is_status else None)
    with made:
        icon({"ok": "ok", "plain": "info"}.get(kind, "warning"))
        with Tag("div", "grow"):
            Tag("b", "b", without_flags(bold))
            Tag("span", text=f" {without_flags(text)}" if text else "")
            if reasons:
                with Tag("ul", "reasons"):
                    for reason in reasons:
                        Tag("li", text=without_flags(reason))
            if note:
                Tag("small", text=without_flags(note))
    return made


def verdict_of(found: Mapping[str, Any], text: str = "", note: str = "", *, is_status: bool = True) -> Tag:
    """A verb's own verdict, as its JSON has it; a page adds only what it is about."""
    reasons = found["reasons"]
    return verdict(found["level"], found["sentence"], text, note, reasons=reasons, is_status=is_status)


def problem(sentence: str) -> Tag:
    """An error where its cause is, in words."""
    with Tag("div", "problem", role="alert") as made:
        icon("warning", "mini")
        Tag("span", text=capital(without_flags(sentence)))
    return made


def empty(title: str, text: str) -> Tag:
    """What to do next where there is nothing yet; put the next step into what is returned."""
    with Tag("div", "empty") as made:
        Tag("h2", text=title)
        Tag("p", "sub", text)
    return made


def segments(choices: Mapping[str, str], chosen: str, handler: Callable[[str], Any], label: str) -> Tag:
    """A choice between a few things that are all shown."""
    made = Tag("div", "seg", role="group", aria_label=label)
    buttons: dict[str, Tag] = {}

    def choose(value: str) -> Any:
        for name, one in buttons.items():
            one.set(aria_pressed=str(name == value).lower())
        return handler(value)

    with made:
        for value, text in choices.items():
            buttons[value] = Tag(
                "button", text=text, type="button", aria_pressed=str(value == chosen).lower()
            )
            buttons[value].click(partial(choose, value))
    return made


def select(
    choices: Mapping[str, str], chosen: str, handler: Callable[[str], Any], label: str, **attributes: Any
) -> Tag:
    """A choice between several things, in the browser's own control."""
    made = Tag("select", "inp", aria_label=label, value=chosen, **attributes)
    with made:
        for value, text in choices.items():
            Tag("option", text=text, value=value)
    return made.changed(handler)


def field(label: str, value: object, handler: Callable[[str], Any], **attributes: Any) -> Tag:
    """A line of text or a number under its label; what is typed stays."""
    with Tag("label", "field"):
        Tag("span", "s sub", label)
        return Tag("input", "inp", value=str(value), **attributes).changed(handler)


def check(label: str, value: bool, handler: Callable[[bool], Any], **attributes: Any) -> Tag:
    """A choice of yes or no before its label."""
    with Tag("label", "row s"):
        made = Tag("input", type="checkbox", checked=True if value else None, **attributes)
        Tag("span", text=label)
    made.on("change", lambda e: handler(bool(e.args)), js_handler="(e) => emit(e.target.checked)")
    return made


def finder(label: str, selector: str) -> Tag:
    """A field that shows only those of many things that have the typed text in their names; nothing is sent for it."""
    made = Tag("input", "inp", type="search", placeholder=label, aria_label=label)
    made.on("input", js_handler=f"(e) => louver.filter(e.target.value, '{selector}')")
    return made


def slider(
    label: str,
    value: float,
    handler: Callable[[float], Any],
    *,
    name: str,
    least: float,
    most: float,
    step: float = 1,
) -> None:
    """A number on a slider, or typed beside it; what is typed outside of it becomes its nearest end."""
    limits: dict[str, Any] = {"min": least, "max": most, "step": step}
    with Tag("div", "slide"):
        Tag("span", "s clip", label, title=label)
        slid = Tag("input", type="range", value=f"{value:g}", aria_label=name, **limits)
        typed = Tag("input", "inp", type="number", value=f"{value:g}", aria_label=f"{name}, typed", **limits)

    def take(text: str) -> Any:
        try:
            number = min(max(float(text), least), most)
        except ValueError:
            number = value
        for one in (slid, typed):
            one.set(value=f"{number:g}")
        return handler(number)

    slid.changed(take, "input")
    typed.changed(take)


class RunBar:
    """What runs, how far it is, and Cancel. It shows after a moment; what was there before stays, dimmed."""

    def __init__(self, session: Session, lane: str, dims: Sequence[Element] = ()) -> None:
        self._session, self._lane, self._dims = session, lane, list(dims)
        self._running: list[str] = []
        self.sentence = ""
        self.is_cancelled = False
        with Tag("div", "run gone", role="status") as self._bar:
            self._stage = Tag("span", "stage")
            with Tag("div", "bar", role="progressbar", aria_label="Progress"):
                self._done = Tag("i")
            self._add()
            self._cancel = button("Cancel", self.cancel, kind="mini", data_cancel="")
        with Tag("div") as self._problem:
            pass

    def _add(self) -> None:
        """Draw what stands before Cancel."""

    def stand(self, lost: float, least: float | None) -> None:
        """Where a search stands."""

    @property
    def is_gone(self) -> bool:
        """Whether its page has been left, or drawn again."""
        return self._bar.is_deleted

    def dim(self, *elements: Element) -> None:
        """What is out of date while something runs."""
        self._dims.extend(elements)

    def cancel(self) -> None:
        """End what runs here; other work in the same lane goes on."""
        self._stage.text = "cancelling"
        for key in set(self._running):
            self._session.cancel(self._lane, key)

    def tell(self, sentence: str) -> None:
        """Say why there is no result; an empty sentence takes it back."""
        self.sentence = sentence
        if self.is_gone:
            return
        self._problem.clear()
        if sentence:
            with self._problem:
                problem(sentence)

    async def do(self, job: Callable[..., Any], *args: Any, key: str) -> Any:
        """The answer of a job, or None where there is none: it was cancelled, is late, or failed, which the bar then tells."""
        self.is_cancelled = False
        self.tell("")
        with self._showing(key):
            try:
                return await self._session.ask(
                    job, *args, key=key, lane=self._lane, progress=self._mark, standing=self._stand
                )
            except Late:
                return None
            except Cancelled:
                self.is_cancelled = True
                self.tell("cancelled.")
            except LouverError as error:
                self.tell(self._session.told(error))
        return None

    async def follow(self, key: str) -> bool:
        """Show work that was begun on a page that has gone since, until it ends; False where there is none."""
        answer = self._session.follow(self._lane, key, self._mark, self._stand)
        if answer is None:
            return False
        with self._showing(key):
            await asyncio.wait([answer])
        return True

    @contextmanager
    def _showing(self, key: str) -> Iterator[None]:
        self._running.append(key)
        self._mark("working", 0, 0)
        loop = asyncio.get_running_loop()
        waits = [
            loop.call_later(DIM_AFTER_SECONDS, self._dim),
            loop.call_later(RUN_BAR_AFTER_SECONDS, self._appear),
        ]
        try:
            yield
        finally:
            for wait in waits:
                wait.cancel()
            self._running.remove(key)
            self._session.mark_work()
            if not self._running and not self.is_gone:
                self._bar.classes(add="gone")
                for element in self._dims:
                    element.classes(remove="dim")

    def _dim(self) -> None:
        for element in () if self.is_gone else self._dims:
            element.classes(add="dim")

    def _appear(self) -> None:
        if not self.is_gone:
            self._bar.classes(remove="gone")

    def _stand(self, lost: float, least: float | None) -> None:
        if not self.is_gone:
            self.stand(lost, least)

    def _mark(self, stage: str, done: float, total: float) -> None:
        if self.is_gone:
            return
        self._stage.text = stage
        self._done.classes(add="endless") if not total else self._done.classes(remove="endless")
        self._done.style(f"width:{100 * min(done / total, 1):.1f}%" if total else "width:30%")


def drawer(title: str, *, is_slim: bool = False) -> Tag:
    """A panel over the right side; put its content into what is returned. Another one takes its place."""
    client = context.client  # what asks may stand in the drawer that goes
    for old in ElementFilter(kind=Tag, marker="drawer"):
        old.delete()
    with client.content:
        made = Tag("aside", "drawer slim" if is_slim else "drawer", role="dialog", aria_label=title).mark(
            "drawer"
        )
    with made, Tag("div", "row between"):
        Tag("h2", text=title)
        button("", made.delete, kind="ghost", icon_name="close", aria_label="Close", data_close="")
    client.run_javascript(f"louver.enter('c{made.id}')")
    return made


def pill(text: str, kind: str = "", icon_name: str = "") -> Tag:
    """A state in a word; `kind` is ok, care, stop or acc."""
    with Tag("span", f"pill {kind}") as made:
        if icon_name:
            icon(icon_name, "mini")
        Tag("span", text=text)
    return made


def number_tile(number: str, legend: str) -> None:
    """A number and what it counts."""
    with Tag("div", "tile"), Tag("div"):
        Tag("b", text=number)
        Tag("span", text=legend)


def table(columns: Mapping[str, str]) -> Tag:
    """A table with its head, name -> classes of the column; put the rows into what is returned."""
    with Tag("table"):
        with Tag("thead"), Tag("tr"):
            for name, classes in columns.items():
                Tag("th", classes, name, scope="col")
        return Tag("tbody")


def copy_button(call: Callable[[], Repeatable | None], text: str = "Copy as…", **attributes: Any) -> Tag:
    """Opens a drawer with what was chosen as a command and as Python."""

    def open_drawer() -> None:
        with drawer("Repeat this"):
            _repeat(call())

    return button(text, open_drawer, icon_name="copy", **{"data_copy": ""} | attributes)


def _repeat(call: Repeatable | None) -> None:
    if call is None:
        Tag("p", "sub", "Nothing to repeat yet: choose something first.")
        return
    texts = call.texts()
    segments({name: name for name in texts}, "Command", lambda name: code.set_text(texts[name]), "Form")
    code = Tag("pre", "mono", texts["Command"], tabindex=0)
    button("Copy", icon_name="copy", kind="pri").on("click", js_handler=f"() => louver.copy('c{code.id}')")
    Tag("p", "s sub", f"{call.note} It names columns and labels: keep it inside.")
