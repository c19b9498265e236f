"""What pages conclude is what was checked, no more."""

from __future__ import annotations

from typing import Any

import pytest
from nicegui import Client, ui

from louver.app.pages.releases import verdict_on

FINE, BROKEN = {"passed": True, "checks": []}, {"passed": False, "checks": []}


def shown(releases: dict[str, Any], outcomes: dict[str, Any]) -> tuple[str, str]:
    """Kind and text of the verdict."""
    client = Client(ui.page("/"))
    try:
        with client.content, ui.element() as page:
            verdict_on(releases, outcomes)
        [banner] = [one for one in page.descendants() if "verdict" in one.classes]
        texts = [str(getattr(one, "text", "")) for one in banner.descendants()]
        return next(kind for kind in ("stop", "care", "ok", "plain") if kind in banner.classes), " ".join(
            texts
        )
    finally:
        client.delete()


@pytest.mark.parametrize(
    ("outcomes", "kind", "words"),
    [
        ({}, "plain", "No promise was checked yet."),
        ({"a": FINE}, "plain", "Not all promises were checked yet."),
        ({"a": FINE, "b": BROKEN}, "stop", "1 release does not keep what was promised."),
        ({"a": BROKEN, "b": BROKEN}, "stop", "2 releases do not keep what was promised."),
        ({"a": FINE, "b": FINE}, "care", "Every promise was recomputed and holds."),
    ],
)
def test_releases_are_said_to_keep_only_what_was_recomputed(
    outcomes: dict[str, Any], kind: str, words: str
) -> None:
    """A fixed banner said that each keeps its own promises, before any check and beside two broken ones."""
    releases = {"a": {"problem": None}, "b": {"problem": None}}
    found = shown(releases, outcomes)
    assert found[0] == kind and words in found[1] and "together" in found[1]


def test_a_release_that_cannot_be_read_keeps_nothing() -> None:
    assert shown({"a": {"problem": "no manifest"}}, {})[0] == "stop"
    assert shown({"a": {"problem": None}}, {"a": FINE}) == (
        "ok",
        "  Every promise was recomputed and holds. ",
    )
