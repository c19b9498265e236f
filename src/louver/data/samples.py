"""Sample data that come with louver; `samples/SOURCES.md` says where they are from."""

from __future__ import annotations

from pathlib import Path

from louver.errors import InputError

__all__ = ["sample_path"]

FOLDER = Path(__file__).with_name("samples")


def sample_path(name: str) -> Path:
    """Path of a sample data set.

    Parameters
    ----------
    name : str
        `cps8`: the 8-way table of 48,842 people from the 1994 Current Population Survey, counted. `ges2013`: 86,519
        people in 34,782 road crashes of 2013, with region and sampling unit; `ges2013_regions` lists these.

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
