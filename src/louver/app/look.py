"""The look of the explorer: icons, and elements such as cards, buttons and tables that every page is made of."""

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
from louver.app.session import Session
from louver.app.words import capital, without_flags
from louver.app.work import Late
from louver.errors import Cancelled, LouverError

__all__ = [
    "ICONS",
    "Handler",
    "RunBar",
    "Tag",
    "button",
    "card",
    "check",
    "choice",
    "copy_button",
    "drawer",
    "empty",
    "field",
    "finder",
    "head",
    "icon",
    "listed",
    "number_tile",
    "pill",
    "problem",
    "segments",
    "select",
    "slider",
    "table",
    "tag",
    "tried",
    "verdict",
    "verdict_of",
]

ICONS = {
    "home": '<path d="M2.500 8.500 9 3l6.500 5.500M4.500 7v8.500h9V7M7.500 15.500v-4h3v4"/>',
    "data": '<ellipse cx="9" cy="4" rx="6" ry="2.4"/><path d="M3 4v10c0 1.3 2.7 2.4 6 2.4s6-1.1 6-2.4V4M3 9c0 1.3 2.7 2.4 6 2.4s6-1.1 '
    '6-2.4"/>',
    "table": '<rect x="2" y="3" width="14" height="12" rx="1.5"/><path d="M2 7.500h14M7 3v12M11.500 7.500V15M2 11.200h14"/>',
    "layers": '<path d="M9 2.500 16 6 9 9.500 2 6zM2 9.500 9 13l7-3.500M2 12.500 9 16l7-3.500"/>',
    "people": '<circle cx="6" cy="5.500" r="2.500"/><circle cx="12.500" cy="6.500" r="2"/><path d="M1.500 15c0-3 2-5 4.500-5s4.500 2 4.500 '
    '5M12 10.500c2.500 0 4.200 1.700 4.500 4.500"/>',
    "bars": '<path d="M2 15V9M6 15V4M10 15V7M14 15v-4M1 15.500h16"/>',
    "tree": '<rect x="6.500" y="1.500" width="5" height="4" rx="1"/><rect x="1.500" y="12" width="4.500" height="4" rx="1"/><rect x="12" '
    'y="12" width="4.500" height="4" rx="1"/><path d="M9 5.500V9M3.700 12V9h10.600v3"/>',
    "box": '<path d="M3 6.500 9 3l6 3.500v6L9 16l-6-3.500zM3 6.500 9 10l6-3.500M9 10v6"/>',
    "book": '<path d="M4 2h9a2 2 0 0 1 2 2v12H5a2 2 0 0 1-2-2V3a1 1 0 0 1 1-1zM6.500 6h5M6.500 9h5M3 13.500A1.500 1.500 0 0 1 4.500 '
    '12H15"/>',
    "file": '<path d="M5 2h5.500L14 5.500V16H5zM10.500 2v3.500H14M7.500 9h4M7.500 12h4"/>',
    "hidden": '<path d="M1.500 9S4 4 9 4s7.500 5 7.500 5-2.500 5-7.500 5S1.500 9 1.500 9zM2.500 15.500l13-13"/>',
    "moon": '<path d="M15 10.500A6.500 6.500 0 1 1 7.500 3a5 5 0 0 0 7.500 7.500z"/>',
    "help": '<circle cx="9" cy="9" r="7"/><path d="M7 7.200a2 2 0 1 1 2.700 1.900c-.5.200-.7.600-.7 1.200M9 12.900v.1"/>',
    "ok": '<circle cx="9" cy="9" r="7"/><path d="m5.800 9.200 2.200 2.200 4.300-4.600"/>',
    "warning": '<path d="M9 2 1.500 15.500h15zM9 7v4M9 13.200v.1"/>',
    "info": '<circle cx="9" cy="9" r="7"/><path d="M9 8.500V13M9 5.500v.1"/>',
    "clock": '<circle cx="9" cy="9" r="7"/><path d="M9 5v4.200l2.800 1.600"/>',
    "lock": '<rect x="3.500" y="8" width="11" height="7.500" rx="1.500"/><path d="M6 8V5.500a3 3 0 0 1 6 0V8"/>',
    "plus": '<path d="M9 3.500v11M3.500 9h11"/>',
    "close": '<path d="m4.500 4.500 9 9M13.500 4.500l-9 9"/>',
    "copy": '<rect x="6" y="6" width="9" height="10" rx="1.500"/><path d="M12 6V3.500A1.500 1.500 0 0 0 10.500 2h-6A1.500 1.500 0 0 0 3 '
    '3.500V11a1.500 1.500 0 0 0 1.500 1.500H6"/>',
    "download": '<path d="M9 2v9M5.500 8 9 11.500 12.500 8M3 15h12"/>',
    "spark": '<path d="M9 2v4M9 12v4M2 9h4M12 9h4M4.200 4.200l2.200 2.200M11.600 11.600l2.200 2.200M13.800 4.200l-2.200 2.200M6.400 '
    '11.600l-2.200 2.200"/>',
    "undo": '<path d="M6 3 2.500 6.500 6 10M3 6.500h7.500a4 4 0 0 1 0 8H7"/>',
    "down": '<path d="m5 7 4 4 4-4"/>',
    "right": '<path d="m7 5 4 4-4 4"/>',
}


Handler = Callable[[], Any]
MOST_IN_LINE = 2
"""Number of reasons of a verdict up to which they are not shown as a list."""
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
        """Call `handler` with the new value of a field, which is kept when the page is drawn again."""

        def take(value: str) -> Any:
            self._props["value"] = value
            return handler(value)

        self.on(event, lambda e: take(e.args), js_handler="(e) => emit(e.target.value)")
        if event == "change":  # unfinished input is also kept when an unrelated answer arrives
            self.on("input", js_handler=f"(e) => louver.typed({self.id}, e.target.value)")
        return self


def tag(name: str, classes: str = "", text: str = "", **attributes: Any) -> Tag:
    """An HTML element; use it in a `with` statement to put others into it."""
    return Tag(name, classes, text, **attributes)


def icon(name: str, classes: str = "") -> Tag:
    """One of our icons; decorative, so screen readers skip it."""
    return Tag("svg", f"i {classes}", viewBox="0 0 18 18", aria_hidden="true", innerHTML=ICONS[name])


def button(
    text: str, handler: Handler | None = None, *, kind: str = "", icon_name: str = "", **attributes: Any
) -> Tag:
    """A button; `kind` is pri (one per page), ghost, stop or mini."""
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
    """A surface with a border."""
    return Tag("section", f"card {classes}")


def head(title: str, about: str) -> Tag:
    """The first line of a page; put its buttons into the returned element."""
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
    """The conclusion, in one sentence; `kind` is stop, care, ok or plain. Put an action into the returned element.

    Several reasons are shown as a list.
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
    """A verb's own verdict, as in its JSON; a page adds only the subject."""
    reasons = found["reasons"]
    return verdict(found["level"], found["sentence"], text, note, reasons=reasons, is_status=is_status)


def problem(sentence: str) -> Tag:
    """An error message, shown where its cause is."""
    with Tag("div", "problem", role="alert") as made:
        icon("warning", "mini")
        Tag("span", text=capital(without_flags(sentence)))
    return made


def empty(title: str, text: str) -> Tag:
    """What to do next on an empty page; put the next step into the returned element."""
    with Tag("div", "empty") as made:
        Tag("h2", text=title)
        Tag("p", "sub", text)
    return made


def segments(choices: Mapping[str, str], chosen: str, handler: Callable[[str], Any], label: str) -> Tag:
    """A choice between a few options, all of them shown."""
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
    """A choice between several options, using the browser's own control."""
    made = Tag("select", "inp", aria_label=label, value=chosen, **attributes)
    with made:
        for value, text in choices.items():
            Tag("option", text=text, value=value)
    return made.changed(handler)


def choice(
    label: str, choices: Mapping[str, str], chosen: str, handler: Callable[[str], Any], text: str = ""
) -> None:
    """The same under its label, or a longer text."""
    with Tag("label", "field"):
        Tag("span", "s sub", text or label)
        select(choices, chosen, handler, label)


def field(label: str, value: object, handler: Callable[[str], Any], **attributes: Any) -> Tag:
    """A line of text or a number under its label; typed text is kept."""
    with Tag("label", "field"):
        Tag("span", "s sub", label)
        return Tag("input", "inp", value=str(value), **attributes).changed(handler)


def check(label: str, value: bool, handler: Callable[[bool], Any], **attributes: Any) -> Tag:
    """A checkbox in front of its label."""
    with Tag("label", "row s"):
        made = Tag("input", type="checkbox", checked=True if value else None, **attributes)
        Tag("span", text=label)
    made.on("change", lambda e: handler(bool(e.args)), js_handler="(e) => emit(e.target.checked)")
    return made


def listed(name: str, text: str, remove: Callable[[], Any]) -> None:
    """An entry of a list, which can be removed."""
    with Tag("div", "row between known"):
        with Tag("span", "s"):
            Tag("b", "b", f"{name}: " if name else "")
            Tag("span", text=text)
        button("", remove, kind="ghost mini", icon_name="close", aria_label=f"Remove {name or text}")


def tried(place: Tag, work: Callable[[], Any], text: str) -> bool:
    """Do something, and report in an element that it was done, or why it was not."""
    place.clear()
    with place:
        try:
            work()
        except LouverError as error:
            problem(str(error))
            return False
        Tag("p", "s sub", text)
    return True


def finder(label: str, selector: str) -> Tag:
    """A field that filters a long list by the text typed, matched against names; nothing is sent to the server."""
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
    """A number set on a slider or typed next to it; a typed number outside its range becomes the nearest end."""
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
    """The running job, its progress, and Cancel. It appears after a moment; the previous content stays, dimmed."""

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
        """Draw the elements before Cancel."""

    def stand(self, lost: float, least: float | None) -> None:
        """The progress of a search."""

    @property
    def is_gone(self) -> bool:
        """Whether its page has been left, or drawn again."""
        return self._bar.is_deleted

    def dim(self, *elements: Element) -> None:
        """Elements that are out of date while something is running."""
        self._dims.extend(elements)

    def cancel(self) -> None:
        """Stop the job of this bar; other work in the same lane continues."""
        self._stage.text = "cancelling"
        for key in set(self._running):
            self._session.cancel(self._lane, key)

    def tell(self, sentence: str) -> None:
        """Show why there is no result; an empty sentence clears the message."""
        self.sentence = sentence
        if self.is_gone:
            return
        self._problem.clear()
        if sentence:
            with self._problem:
                problem(sentence)

    async def do(self, job: Callable[..., Any], *args: Any, key: str) -> Any:
        """The result of a job, or None if it was cancelled, came too late or failed, in which case the bar reports it."""
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
                self.tell(self._session.message_of(error))
        return None

    async def follow(self, key: str) -> bool:
        """Show a job that was started before its page was left, until it ends; False if there is none."""
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
    """A panel over the right side; put its content into the returned element. It replaces any other one."""
    client = context.client  # the calling element may be in the drawer that is replaced
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
    """A number with a legend."""
    with Tag("div", "tile"), Tag("div"):
        Tag("b", text=number)
        Tag("span", text=legend)


def table(columns: Mapping[str, str]) -> Tag:
    """A table with its header, name -> classes of the column; put the rows into the returned element."""
    with Tag("table"):
        with Tag("thead"), Tag("tr"):
            for name, classes in columns.items():
                Tag("th", classes, name, scope="col")
        return Tag("tbody")


def copy_button(call: Callable[[], Repeatable | None], text: str = "Copy as…", **attributes: Any) -> Tag:
    """Opens a drawer with the choices as a command and as Python."""

    def open_drawer() -> None:
        with drawer("Repeat this"):
            _repeat(call())

    return button(text, open_drawer, icon_name="copy", **{"data_copy": ""} | attributes)


def _repeat(call: Repeatable | None) -> None:
    if call is None:
        Tag("p", "sub", "Nothing to copy yet: make some choices first.")
        return
    texts = call.texts()
    segments({name: name for name in texts}, "Command", lambda name: code.set_text(texts[name]), "Form")
    code = Tag("pre", "mono", texts["Command"], tabindex=0)
    button("Copy", icon_name="copy", kind="pri").on("click", js_handler=f"() => louver.copy('c{code.id}')")
    Tag("p", "s sub", f"{call.note} It names columns and labels: keep it confidential.")
