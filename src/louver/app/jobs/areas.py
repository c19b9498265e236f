"""What the area below a tree of regions asks for: the verb's own answer for regions that were chosen or listed."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from louver.app.jobs.books import release_folder
from louver.release.open import open_release
from louver.run import Run
from louver.topdown import area
from louver.topdown.errors.area import read_leaves

__all__ = ["LIST", "area_of", "area_of_file", "area_of_text"]

LIST = "The list"
"""What messages call a list that was typed or read from a file."""


def area_of(releases: str, name: str, codes: Sequence[str], run: Run) -> dict[str, Any]:
    """People of some regions of a release together."""
    return area(release_folder(releases, name), leaves=list(codes), run=run).to_dict()


def area_of_text(releases: str, name: str, text: str, folder: str, run: Run) -> dict[str, Any]:
    """The same for a list as `louver topdown area` reads it; and the codes in it."""
    release = release_folder(releases, name)
    with tempfile.TemporaryDirectory(dir=folder) as place:
        path = Path(place) / LIST
        path.write_text(text, encoding="utf-8")
        return _listed(release, path, run)


def area_of_file(releases: str, name: str, file: str, run: Run) -> dict[str, Any]:
    """The same for a list that was uploaded, which is not kept."""
    release = release_folder(releases, name)
    with tempfile.TemporaryDirectory(dir=Path(file).parent) as place:
        return _listed(release, Path(file).replace(Path(place) / LIST), run)


def _listed(release: Path, path: Path, run: Run) -> dict[str, Any]:
    found = area(release, leaves=path, run=run).to_dict()
    named = read_leaves(path, open_release(release).promises[0]["regions"])
    return found | {"codes": [code for _, code in named]}
