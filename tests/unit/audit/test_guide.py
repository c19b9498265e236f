"""The guide explains every key of the spec's sections."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from louver.audit.options import AuditTableOptions, KnownOptions, TargetOptions

GUIDE = Path(__file__).parents[3] / "docs" / "audit.md"
SECTIONS = {"tables": AuditTableOptions, "known": KnownOptions, "targets": TargetOptions}


@pytest.mark.parametrize("section", SECTIONS)
def test_every_key_is_explained(section: str) -> None:
    text = GUIDE.read_text(encoding="utf-8").split(f"`[[audit.{section}]]`\n", 1)[1].split("\n## ", 1)[0]
    rows = re.findall(r"^\| (`.*?) \|", text, re.MULTILINE)
    keys = {key for row in rows for key in re.findall(r"`(\w+)`", row)}
    assert keys >= set(SECTIONS[section].model_fields)
