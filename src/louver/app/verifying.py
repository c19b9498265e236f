"""Checking a release that somebody brings: a zip file of its folder, doubted as `louver verify` does."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from louver.app.jobs.publishing import checked_upload
from louver.app.look import RunBar, button, check, field, icon, tag, verdict
from louver.app.session import Receiver, Session

__all__ = ["MAX_RELEASE", "Accepting", "VerifyPanel", "accepting_fields"]

MAX_RELEASE = 300_000_000
"""Bytes that the zip file may have."""
MOST_CHECKS = 60
Told = Mapping[str, Any]


@dataclass(slots=True)
class Accepting:
    """What whoever verifies has read and accepts: the page of another version, strings that no published file has."""

    skip_report: bool = False
    strings: int = 0

    def accept_report(self, value: bool) -> None:
        self.skip_report = value

    def accept_strings(self, value: str) -> None:
        self.strings = int(value) if value.isascii() and value.isdecimal() and len(value) < 10 else 0


def accepting_fields(accepting: Accepting) -> None:
    """Say what was read and is accepted, before a check."""
    check("Leave its page out, which I have read", accepting.skip_report, accepting.accept_report)
    field("Strings accepted that no file has", accepting.strings, accepting.accept_strings)


class VerifyPanel:
    """A button that takes a release, and what its checks found."""

    def __init__(self, session: Session) -> None:
        self._session = session
        tag(
            "p",
            "s sub",
            "Every promise of a release is recomputed from its published files. Choose a zip file of its folder; nothing of it is kept.",
        )
        choose = tag(
            "input", "gone", type="file", accept=".zip", aria_label="Zip file of a release", tabindex=-1
        )
        choose.on("change", js_handler="(e) => louver.upload(e.target.files[0], 'release')")
        self._accepting = Accepting()
        accepting_fields(self._accepting)
        with tag("div", "row"):
            button("Choose a zip file", icon_name="box").on(
                "click", js_handler=f"() => document.getElementById('c{choose.id}').click()"
            )
        self._bar = RunBar(session, "long")
        self._found = tag("div", "stack", aria_live="polite")
        session.receivers["release"] = Receiver(
            self._take, (".zip",), MAX_RELEASE, "a zip file of a release folder"
        )

    async def _take(self, path: str, name: str) -> None:
        if self._found.is_deleted:
            return
        self._found.clear()
        found = await self._bar.do(
            checked_upload,
            path,
            str(self._session.folder),
            self._accepting.skip_report,
            self._accepting.strings,
            key="brought",
        )
        if found is not None and not self._bar.is_gone:
            with self._found:
                _tell(name, found)


def _tell(name: str, found: Told) -> None:
    """What the checks found; they judge, this only shows them."""
    failed = [one for one in found["checks"] if not one["passed"]]
    told = found["told"]
    about = "" if told is None else f"{name}: made by louver {told['kind']}, {told['method']}."
    if found["passed"]:
        verdict("ok", "Every promise holds.", about)
    else:
        verdict("stop", f"{len(failed)} of {len(found['checks'])} checks failed.", about)
    for one in [*failed, *(one for one in found["checks"] if one["passed"])][:MOST_CHECKS]:
        with tag("div", "row top0 s check"):
            icon("ok" if one["passed"] else "warning", "mini" + ("" if one["passed"] else " bad"))
            tag("span", text=f"{one['name']}: {one['found']}")
    if told is not None and told["not_protected"]:
        tag("p", "s sub", f"Not protected: {'; '.join(told['not_protected'])}")
