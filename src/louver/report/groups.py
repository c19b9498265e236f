"""The report inside a release of group sizes."""

from __future__ import annotations

from louver.groups.result import DATA_FILE, PERSONS_FILE, GroupRelease
from louver.release.pages import in_memory, page_of

__all__ = ["groups_report"]


def groups_report(release: GroupRelease) -> str:
    """The report as HTML. It is published with the release, and built only from what is published there."""
    tables = {DATA_FILE: release.to_frame(), PERSONS_FILE: release.persons_frame()}
    return page_of(release.manifest({}), in_memory(tables))
