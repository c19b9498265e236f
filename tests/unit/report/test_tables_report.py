"""The report of published tables: from the published numbers alone, whatever they are called."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

import louver as lv
from louver.release.pages import page_of
from louver.release.pages.tables import MOST_ROWS

HOSTILE = "<script>alert(1)</script>"


def test_counts_shares_and_hidden_numbers_are_told(tmp_path: Path) -> None:
    towns = [HOSTILE, *(f"town {i}" for i in range(MOST_ROWS // 2))]
    people = pa.table(
        {
            "town": [town for town in towns for _ in "ny"],
            "ill": ["n", "y"] * len(towns),
            "count": [1000 + 7 * i for i in range(2 * len(towns))],
        }
    )
    hidden = [{"town": HOSTILE, "ill": "y"}, {"town": HOSTILE, "ill": "n"}]
    tables = [
        {"name": f"counts {HOSTILE}", "by": ["town", "ill"], "hide": hidden},
        {"name": "rounded", "by": ["ill"], "base": 10},
        {"name": "shares", "rows": ["ill"], "cols": ["town"], "decimals": 3, "counts": "total"},
    ]
    found = lv.audit(
        people,
        weight="count",
        tables=tables,
        registry=tmp_path / "register",
        publish=tmp_path / "out",
        no_advice=True,
        seconds=5.0,
        report=page_of,
    )
    assert found.published is not None
    release = lv.open(tmp_path / "out")
    assert release.verify().passed and "report.html" in release.manifest.files
    page = release.report
    assert page is not None and HOSTILE not in page and "1,000" not in page, "a hidden count stays hidden"
    for told in ("2 numbers hidden", "multiples of 10", "rounded to 3 digits", f"The first {MOST_ROWS} of"):
        assert told in page
