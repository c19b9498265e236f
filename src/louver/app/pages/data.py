"""Data: open a file, see what is in it, and say what each column may do."""

from __future__ import annotations

from functools import partial

from louver.app.jobs.data import profiled
from louver.app.look import RunBar, button, empty, head, tag
from louver.app.session import SAMPLES, Session

__all__ = ["build"]


async def build(session: Session) -> None:
    """Draw the page."""
    with head("Data", "what is in the file, and what each column may do"):
        pass
    if session.opened is None:
        _open(session)
        return
    bar = RunBar(session, "quick")
    found = await bar.do(profiled, session.opened.path, session.opened.source.opening(), key="profile")
    if found is None:
        return
    session.shape = f"{found['n_rows']:,} records, {len(found['columns'])} columns"
    session.refresh_top()
    for column in found["columns"]:
        tag("p", text=column["name"])


def _open(session: Session) -> None:
    with empty(
        "Open a file, or try a sample",
        "It stays on this machine. CSV, Parquet, Excel, Stata, SPSS and SAS files are read.",
    ):
        choose = tag("input", "gone", type="file", id="file", aria_label="File")
        choose.on("change", js_handler="(e) => louver.upload(e.target.files[0])")
        button("Open a file", kind="pri", icon_name="file").on(
            "click", js_handler="() => document.getElementById('file').click()"
        )
        for name, (title, about, _) in SAMPLES.items():
            with tag("div", "row"):
                button(title, partial(_take, session, name))
                tag("span", "sub s", about)


def _take(session: Session, name: str) -> None:
    session.open_sample(name)
    session.show("data")
