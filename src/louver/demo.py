"""`louver demo`: the main jobs on embedded data, ending with reports to open."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from louver.bounds import bounds, compare, suggest
from louver.data.samples import sample_path
from louver.errors import InputError
from louver.groups import groups
from louver.release.manifest import read_manifest
from louver.report.bounds import bounds_report
from louver.report.groups import groups_report
from louver.report.page import write_page
from louver.run import Run
from louver.schema.spec import read_spec

__all__ = ["run_demo"]

PREDICTORS = ["X1", "X2", "X3", "X4", "X5", "X6"]
ARRANGEMENTS: list[dict[str, Any]] = [
    {"name": "salary by all others", "rows": [*PREDICTORS, "X7"], "cols": ["X8"]},
    {"name": "hours and salary", "rows": PREDICTORS, "cols": ["X7", "X8"]},
    *(
        {
            "name": f"without {left_out}",
            "rows": [x for x in PREDICTORS if x != left_out],
            "cols": ["X7", "X8"],
        }
        for left_out in PREDICTORS
    ),
    {
        "name": "hours below 40, and 40 or more",
        "rows": PREDICTORS,
        "cols": ["X7", "X8"],
        "recode": {"X7": {"40 or more": ["40", ">40"]}},
    },
]


CRASHES: dict[str, Any] = {
    "unit": "CASENUM",
    "regions": ["REGION", "PSU"],
    "max_size": 20,
    "epsilon": 1,
    "seed": 2013,
}
"""How many people were in each crash; seeded, so that the demo repeats and no ledger is needed."""


def run_demo(out: Path, seconds: float, run: Run) -> list[Path]:
    """Audit the 8-way table of the Current Population Survey, and release sizes of crashes; returns the reports' paths."""
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError:
        message = f"option --out cannot make the folder {out}; name one in a place you may write to."
        raise InputError(message, option="--out") from None
    crashes = _emptied(out / "groups")
    return [_audit(out / "bounds.html", seconds, run), _release(crashes)]


def _emptied(release: Path) -> Path:
    """Make room for a release where an earlier demo left its own; anything else stays."""
    if release.exists():
        if not read_manifest(release).not_private:
            message = f"option --out: {release} is a release of your own; name another folder."
            raise InputError(message, option="--out")
        shutil.rmtree(release)
    return release


def _audit(report: Path, seconds: float, run: Run) -> Path:
    spec = read_spec(sample_path("cps8").with_name("cps8.toml"))
    source: dict[str, Any] = {"data": spec.data, "schema": spec.schema, "weight": spec.source.weight}
    audit = bounds(**source, rows=PREDICTORS, cols=["X7", "X8"])
    comparison = compare(**source, arrangements=ARRANGEMENTS)
    suggestions = suggest(**source, rows=PREDICTORS, cols=["X7", "X8"], seconds=seconds, run=run)
    name = "the 8-way table of the Current Population Survey (48,842 people)"
    write_page(
        bounds_report(source=name, audit=audit, comparison=comparison, suggestions=suggestions), report
    )
    return report


def _release(out: Path) -> Path:
    domain = str(sample_path("ges2013_regions"))
    groups(sample_path("ges2013"), domain=domain, out=out, report=groups_report, **CRASHES)
    return out / "report.html"
