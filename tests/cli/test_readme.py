"""What README, two guides and the Python page print runs as printed, in their order, on the files of `louver demo --files`."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from cli.command import Runner
from louver.data.samples import write_samples

ROOT = Path(__file__).parents[2]


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(
        rf"^```{language}\n(.*?)^```", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL
    )


@pytest.mark.parametrize("page", ["README.md", "docs/bounds.md", "docs/audit.md"])
def test_commands(call_louver: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, page: str) -> None:
    monkeypatch.chdir(tmp_path)
    for line in "".join(blocks(ROOT / page, "sh")).splitlines():
        command, *arguments = shlex.split(line, comments=True)
        if command == "cd":
            monkeypatch.chdir(arguments[0])
            continue
        done = call_louver(*arguments)
        assert (command, done.code, done.err) == ("louver", 0, ""), line
    for block in blocks(ROOT / page, "python"):
        exec(block, {})


def test_python_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_samples(tmp_path)
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    for block in blocks(ROOT / "docs" / "python.md", "python"):
        exec(block, names)
