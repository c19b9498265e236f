"""The proofs name lines of the code; a line that changed must be proved again."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
RELIED_ON = re.compile(r"^- R\d+ `([^`]+)`: `(.+)`$", re.MULTILINE)

LINES = [
    pytest.param(path, line, id=f"{proof.stem}-{i}")
    for proof in sorted((ROOT / "docs" / "proofs").glob("*.md"))
    for i, (path, line) in enumerate(RELIED_ON.findall(proof.read_text()), 1)
]


def test_there_are_lines_to_check() -> None:
    assert len(LINES) >= 40


@pytest.mark.parametrize(("path", "line"), LINES)
def test_a_line_relied_on_stands_in_the_code_once(path: str, line: str) -> None:
    source = [text.strip() for text in (ROOT / path).read_text().splitlines()]
    assert source.count(line) == 1
