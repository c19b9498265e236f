"""The page of a release, made only from its manifest and its published files.

Code that makes a release calls `page_of` before sealing it, and `verify` calls it again and compares: a page can show only what is in the
rest of the release. To show a number, publish it or put it into the manifest's results.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from louver.release.manifest import Manifest, parse
from louver.release.pages.anonymize import anonymize_page
from louver.release.pages.groups import groups_page
from louver.release.pages.published import Published, in_memory
from louver.release.pages.tables import tables_page
from louver.release.pages.topdown import topdown_page
from louver.release.strict_json import parse_json

__all__ = ["PAGES", "Published", "in_memory", "page_of"]

PAGES: Mapping[str, Callable[[Manifest, Published], str]] = {
    "anonymize": anonymize_page,
    "audit": tables_page,
    "groups": groups_page,
    "topdown": topdown_page,
}


def page_of(manifest: Manifest, published: Published) -> str:
    """The page as HTML.

    Parameters
    ----------
    manifest : Manifest
        In its current or final form; dates, hashes and times are not shown.
    published : callable
        Returns the rows of a published Parquet file.
    """
    as_read = parse(parse_json(manifest.to_json().encode()), "the release")
    return PAGES[manifest.verb](as_read, published)
