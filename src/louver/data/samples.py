"""Sample data included with louver; `samples/SOURCES.md` states their sources."""

from __future__ import annotations

import gzip
import shutil
from collections.abc import Iterable
from pathlib import Path

from louver.errors import InputError

__all__ = ["sample_outlines", "sample_path", "write_samples"]

FOLDER = Path(__file__).with_name("samples")
FILES = {
    "people.csv": "people",
    "survey.csv": "survey",
    "crashes.csv": "ges2013",
    "regions.csv": "ges2013_regions",
    "county.csv": "county",
    "blocks.csv": "county_blocks",
    "turnover_size.csv": "turnover_size",
    "turnover_form.csv": "turnover_form",
}
OUTLINES = {"0301001": "county_outlines", "Northeast/1": "ges2013_outlines"}
"""A region of a sample -> made-up outlines of its regions."""
TEXTS = ("survey.toml", "tables.toml", "county.toml", "turnover.toml", "activity.hrc")


def sample_path(name: str) -> Path:
    """Path of a sample data set.

    Parameters
    ----------
    name : str
        `people`: 6,000 people of the 1994 Current Population Survey, one line each. `survey` and `cps8`: all 48,842 counted
        by eight attributes, with plain names and with those of the literature. `ges2013`: 86,519 people in 34,782 road
        crashes of 2013, with region and sampling unit; `ges2013_regions` lists these. `county`: age and race in
        the blocks of a county in 2010, counted; `county_blocks` lists the blocks. `turnover_size` and `turnover_form`: made-up
        turnover of firms by activity and size, and by activity and legal form.

    Examples
    --------
    >>> sample_path("cps8").name
    'cps8.csv.gz'
    """
    path = FOLDER / f"{name}.csv.gz"
    if path.parent != FOLDER or not path.is_file():
        known = ", ".join(sorted(file.name.removesuffix(".csv.gz") for file in FOLDER.glob("*.csv.gz")))
        raise InputError(f"there is no sample of that name; choose one of {known}.", option="sample")
    return path


def write_samples(folder: Path) -> None:
    """Copy the samples of the guides into a folder, as plain CSV files and specs."""
    folder.mkdir(parents=True, exist_ok=True)
    for file, name in FILES.items():
        with gzip.open(sample_path(name)) as packed, (folder / file).open("wb") as plain:
            shutil.copyfileobj(packed, plain)
    for text in TEXTS:
        shutil.copyfile(FOLDER / text, folder / text)


def sample_outlines(regions: Iterable[str]) -> Path | None:
    """Made-up outlines (adjacent squares) of a sample's regions; None for any other regions."""
    found = next((OUTLINES[region] for region in regions if region in OUTLINES), None)
    return None if found is None else FOLDER / f"{found}.geojson"
