"""What the page Group sizes asks for: a forecast from public knowledge, and the release that a ledger pays for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from louver.data.read import open_source
from louver.groups import GroupRelease, groups, preview
from louver.report.groups import groups_report
from louver.run import Run

__all__ = ["column_names", "forecast", "release"]

MOST_REGIONS = 2_000
"""Rows of regions that cross to the page."""


def column_names(path: str, run: Run) -> list[str]:
    """The columns of a public file."""
    with open_source(path) as source:
        return list(source.columns)


def forecast(options: Mapping[str, Any], expect: int, run: Run) -> dict[str, Any]:
    """Errors by level before anything is spent; no data are opened."""
    return preview(expect=expect, spec=None, run=run, **options).to_dict()


def release(
    data: str, source: Mapping[str, Any], options: Mapping[str, Any], ledger: str, out: str, run: Run
) -> dict[str, Any]:
    """Measure, pay and publish."""
    made = groups(data, **source, **options, ledger=ledger, out=out, report=groups_report, run=run)
    return {
        **made.to_dict(),
        "entry": None if made.head is None else made.head.entry,
        "table": _regions(made),
    }


def _regions(made: GroupRelease) -> list[dict[str, Any]]:
    """Every region with the persons that its groups imply and how far off they may be, each below its own: published numbers alone."""
    found = made.persons_frame()
    columns = ("persons", "lower_90", "upper_90")
    rows = zip(made.plan.regions.labels, *(found[name].to_pylist() for name in columns), strict=True)
    return [
        {
            "level": len(names),
            "name": names[-1] if names else "Total",
            "persons": persons,
            "lower": lower,
            "upper": upper,
        }
        for names, persons, lower, upper in sorted(rows)[:MOST_REGIONS]
    ]
