"""The report inside a TopDown release."""

from __future__ import annotations

from louver.release.pages import in_memory, page_of
from louver.topdown.result import TopDownRelease

__all__ = ["topdown_report"]


def topdown_report(release: TopDownRelease) -> str:
    """The report as HTML. It is published with the release and made only from what is published in it."""
    return page_of(release.manifest({}), in_memory({}))
