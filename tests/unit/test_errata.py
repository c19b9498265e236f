"""Every erratum that code, tests or docs cite stands in docs/errata.md."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CITED = re.compile(r"ERRATA ([BTKG]\d+(?:(?:, | and )[BTKG]\d+)*)")


def test_every_cited_erratum_is_listed():
    if not (ROOT / "docs").is_dir():
        pytest.skip("the documentation is not part of this copy")
    listed = set(re.findall(r"^- \*\*([BTKG]\d+)\*\*", (ROOT / "docs/errata.md").read_text(), re.MULTILINE))
    cited: dict[str, str] = {}
    for folder in ("src", "tests", "docs", "benchmarks"):
        for path in [*(ROOT / folder).rglob("*.py"), *(ROOT / folder).rglob("*.md")]:
            for entries in CITED.findall(path.read_text(encoding="utf-8")):
                cited.update(dict.fromkeys(re.findall(r"[BTKG]\d+", entries), str(path)))
    assert len(cited) > 10
    assert {entry: path for entry, path in cited.items() if entry not in listed} == {}
