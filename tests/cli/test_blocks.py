"""Every block of README and the manual runs as printed, page by page and top to bottom, on the files of `louver demo --files`.

`sh` is run, a command after which `# exits with 1` stands with that code; `python` is executed, with the names of the blocks before;
`toml` begins with its file name in a comment and is written, or says what the sample of that name says; `text` stands in what the
command before it printed. `<!-- not run: why -->` before a block spares it: then its commands and their options exist.
References that the program writes, and decisions, are not read here.
"""

from __future__ import annotations

import re
import shlex
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow  # noqa: F401  # a page uses dataframes after commands: loaded first, the command line does not hide pandas
import pytest
from typer.main import get_command

from cli.command import Runner
from louver.cli.app import app
from louver.data.samples import write_samples

pytestmark = pytest.mark.long

ROOT = Path(__file__).parents[2]
GENERATED = ("cli.md", "json.md", "spec.md")
BLOCK = re.compile(r"^(?:<!-- not run: (.+?) -->\n)?```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
INLINE = re.compile(r"`(louver [a-z][^`]*)`")
OTHER_PROGRAMS = ("dask", "louver/bin/louver", "louver/bin/pip", "make", "pip", "podman", "python")


@dataclass(frozen=True)
class Block:
    why_not: str | None
    language: str
    text: str

    def commands(self) -> list[str]:
        return [line for line in self.text.replace("\\\n", "").splitlines() if line and line[0] != "#"]


def pages() -> list[Path]:
    docs = ROOT / "docs"
    found = [
        *docs.glob("*.md"),
        *docs.glob("explain/*.md"),
        *docs.glob("howto/*.md"),
        *docs.glob("proofs/*.md"),
    ]
    return [ROOT / "README.md", *sorted(page for page in found if page.name not in GENERATED)]


def blocks(page: Path) -> list[Block]:
    return [Block(why or None, language, text) for why, language, text in BLOCK.findall(page.read_text())]


def named(page: Path) -> str:
    return str(page.relative_to(ROOT))


NOT_RUN = [(page, block) for page in pages() for block in blocks(page) if block.why_not]


@pytest.mark.parametrize("page", [page for page in pages() if blocks(page)], ids=named)
def test_a_page_runs_as_printed(
    page: Path, call_louver: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_samples(tmp_path)
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    printed = ""
    for block in blocks(page):
        if block.why_not:
            continue
        if block.language == "sh":
            printed = "".join(run(line, call_louver, monkeypatch) for line in block.commands())
        elif block.language == "python":
            exec(compile(block.text, page.name, "exec"), names)
        elif block.language == "toml":
            keep(block.text)
        else:
            assert block.language == "text", "a block says which language it is in"
            stands_in(block.text, printed)


def run(line: str, call_louver: Runner, monkeypatch: pytest.MonkeyPatch) -> str:
    command, *arguments = shlex.split(line, comments=True)
    if command == "cd":
        monkeypatch.chdir(arguments[0])
        return ""
    done = call_louver(*arguments)
    expected = 1 if "# exits with 1" in line else 0
    err = re.sub(r"\(compiling, once per installation: about \d+ s\)\n", "", done.err)
    assert (command, done.code, "" if expected else err) == ("louver", expected, ""), (line, done)
    return done.out


def keep(text: str) -> None:
    """Write a file that a page shows."""
    name = re.match(r"# ([\w./-]+\.toml)\b", text)
    assert name is not None, f"the first line is a comment with the file's name: {text[:60]}"
    path = Path(name[1])
    if path.exists():
        assert tomllib.loads(text) == tomllib.loads(path.read_text())
    path.write_text(text)


def stands_in(text: str, printed: str) -> None:
    """Lines are printed in this order; `...` stands for any others."""
    for line in text.splitlines():
        if line.strip() != "...":
            _, found, printed = printed.partition(line)
            assert found, line


@pytest.mark.parametrize(
    ("page", "block"), NOT_RUN, ids=[f"{named(page)}: {block.why_not}" for page, block in NOT_RUN]
)
def test_what_is_not_run_could_be(page: Path, block: Block) -> None:
    if block.language == "sh":
        for line in block.commands():
            exists(line)
    elif block.language == "toml":
        tomllib.loads(block.text)
    else:
        assert block.language == "text"


def test_commands_in_sentences_exist() -> None:
    for page in pages():
        for line in INLINE.findall(re.sub(BLOCK, "", page.read_text()).replace("\n", " ")):
            exists(line)


def test_nothing_hides_in_an_indented_block() -> None:
    assert [
        named(page) for page in pages() if re.search(r"^    +louver ", page.read_text(), re.MULTILINE)
    ] == []


def exists(line: str) -> None:
    """Verb and options are there, whatever their values."""
    command, *words = shlex.split(line, comments=True)
    assert command in ("louver", *OTHER_PROGRAMS), line
    if command != "louver":
        return
    level: Any = get_command(app)
    while hasattr(level, "get_command") and words and re.fullmatch("[a-z][a-z-]*", words[0]):
        level = level.get_command(None, words.pop(0))
        assert level is not None, line
    known = {name for option in level.params for name in (*option.opts, *option.secondary_opts)}
    options = {word.partition("=")[0] for word in words if word.startswith("--")}
    assert options <= known | {"--help", "--version"}, line
