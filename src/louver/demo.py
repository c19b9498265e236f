"""`louver demo`: the main job on embedded data, ending with a report to open."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from louver.bounds import bounds, compare, suggest
from louver.data.samples import sample_path
from louver.errors import InputError
from louver.report.bounds import bounds_report
from louver.report.page import write_page
from louver.schema.spec import read_spec

__all__ = ["run_demo"]

PREDICTORS = ["X1", "X2", "X3", "X4", "X5", "X6"]
ARRANGEMENTS = [
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


def run_demo(out: Path, seconds: float, progress: Callable[[float, str], None]) -> Path:
    """Audit the 8-way table of the Current Population Survey; returns the report's path."""
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError:
        message = f"option --out cannot make the folder {out}; name one in a place you may write to."
        raise InputError(message, option="--out") from None
    spec = read_spec(sample_path("cps8").with_name("cps8.toml"))
    source: dict[str, Any] = {"data": spec.data, "schema": spec.schema, "weight": spec.source.weight}
    audit = bounds(**source, rows=PREDICTORS, cols=["X7", "X8"])
    comparison = compare(**source, arrangements=ARRANGEMENTS)
    suggestions = suggest(**source, rows=PREDICTORS, cols=["X7", "X8"], seconds=seconds, progress=progress)
    report = out / "bounds.html"
    name = "the 8-way table of the Current Population Survey (48,842 people)"
    write_page(
        bounds_report(source=name, audit=audit, comparison=comparison, suggestions=suggestions), report
    )
    return report
