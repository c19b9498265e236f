"""Checking a release that somebody brings: a zip file of its folder, doubted as `louver verify` does."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from louver.app.jobs.publishing import checked_upload
from louver.app.look import RunBar, button, icon, tag, verdict_of
from louver.app.session import Receiver, Session

__all__ = ["MAX_RELEASE", "VerifyPanel"]

MAX_RELEASE = 300_000_000
"""Bytes that the zip file may have."""
MOST_CHECKS = 60
Told = Mapping[str, Any]


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
        found = await self._bar.do(checked_upload, path, str(self._session.folder), key="brought")
        if found is not None and not self._bar.is_gone:
            with self._found:
                _tell(name, found)


def _tell(name: str, found: Told) -> None:
    """What the checks found; they judge, this only shows them."""
    failed = [one for one in found["checks"] if not one["passed"]]
    told = found["told"]
    about = "" if told is None else f"{name}: made by louver {told['kind']}, {told['method']}."
    verdict_of(found["verdict"], about)
    for one in [*failed, *(check for check in found["checks"] if check["passed"])][:MOST_CHECKS]:
        with tag("div", "row top0 s check"):
            icon("ok" if one["passed"] else "warning", "mini" + ("" if one["passed"] else " bad"))
            tag("span", text=f"{one['name']}: {one['found']}")
    if told is not None and told["not_protected"]:
        tag("p", "s sub", f"Not protected: {'; '.join(told['not_protected'])}")
