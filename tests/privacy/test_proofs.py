"""The proofs name lines of the code; a line that changed must be proved again."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROOFS = sorted((ROOT / "docs" / "proofs").glob("*.md"))
RELIED_ON = re.compile(r"^- R\d+ `([^`]+)`: `(.+)`$", re.MULTILINE)


def joined(proof: Path) -> str:
    """The text of a proof with every item of a list on one line."""
    return proof.read_text().replace("\n  ", " ")


LINES = [
    pytest.param(path, line, id=f"{proof.stem}-{i}")
    for proof in PROOFS
    for i, (path, line) in enumerate(RELIED_ON.findall(joined(proof)), 1)
]


def test_every_line_that_a_proof_lists_is_checked() -> None:
    listed = sum(len(re.findall(r"^- R\d+ ", proof.read_text(), re.MULTILINE)) for proof in PROOFS)
    assert len(LINES) == listed >= 40


@pytest.mark.parametrize(("path", "line"), LINES)
def test_a_line_relied_on_stands_in_the_code_once(path: str, line: str) -> None:
    source = [text.strip() for text in (ROOT / path).read_text().splitlines()]
    assert source.count(line) == 1
