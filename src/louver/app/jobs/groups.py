"""Jobs of the page Group sizes: a forecast from public knowledge, and the release that a ledger pays for."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from louver.app.jobs.ledgers import loss_for_page
from louver.app.jobs.releases import release_folder
from louver.data.read import open_source
from louver.groups import GroupsOptions, groups, preview
from louver.groups.load import GroupsCall
from louver.privacy.ledger import Ledger
from louver.release.open import open_release
from louver.report.groups import groups_report
from louver.run import Run
from louver.schema.request import Request
from louver.schema.source import SourceOptions
from louver.schema.validate import validated

__all__ = ["column_names", "forecast", "is_paid", "release", "sizes_of"]

MOST_REGIONS = 500
"""Number of regions offered for selection."""


def column_names(path: str, run: Run) -> list[str]:
    """The columns of a public file."""
    with open_source(path) as source:
        return list(source.columns)


def forecast(options: Mapping[str, Any], expect: int, run: Run) -> dict[str, Any]:
    """Errors by level before anything is spent, and the privacy loss; no data are opened."""
    found = preview(expect=expect, spec=None, run=run, **options)
    return found.to_dict() | {"loss": loss_for_page(found.plan.loss)}


def is_paid(
    data: str, source: Mapping[str, Any], options: Mapping[str, Any], ledger: str, out: str, run: Run
) -> bool:
    """Whether an interrupted measurement of exactly this request has been paid for; no data are opened."""
    request = Request(
        data=data,
        source=validated(SourceOptions, dict(source)),
        schema=None,
        options=validated(GroupsOptions, dict(options)),
        run=run,
    )
    call = GroupsCall.check(request)
    return Ledger(Path(ledger)).is_pending(call.payment(call.public_plan()).request)


def release(
    data: str, source: Mapping[str, Any], options: Mapping[str, Any], ledger: str, out: str, run: Run
) -> dict[str, Any]:
    """Measure, pay and publish."""
    made = groups(data, **source, **options, ledger=ledger, out=out, report=groups_report, run=run)
    return {**made.to_dict(), "entry": None if made.head is None else made.head.entry}


def sizes_of(folder: str, name: str, region: str, run: Run) -> dict[str, Any]:
    """The published numbers of units by size: of a region, given by its levels separated by slashes, or of all regions together."""
    found = open_release(release_folder(folder, name)).tables["groups"]
    levels = found.column_names[: found.column_names.index("level")]
    sizes: dict[str, list[tuple[int, int]]] = {}
    for row in found.to_pylist():
        place = "/".join(str(row[level]) for level in levels if row[level] is not None)
        sizes.setdefault(place, []).append((row["size"], row["groups"]))
    regions = [place for place in sizes if place]
    shown = sizes.get(region) or sizes.get("", [])
    return {
        "regions": regions[:MOST_REGIONS],
        "left": max(len(regions) - MOST_REGIONS, 0),
        "sizes": shown,
        "largest": max((size for size, _ in shown), default=0),
    }
