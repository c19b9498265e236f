"""The written reference says what the program does."""

from __future__ import annotations

import importlib.util
import json
import re
import shutil
from pathlib import Path
from types import ModuleType

import pytest

from cli.command import Runner
from louver.data.samples import write_samples
from topdown_town import write_town

DOCS = Path(__file__).parents[2] / "docs"

STABLE = {
    "summary.rows",
    "summary.cols",
    "summary.n",
    "summary.reduced_total",
    "summary.zero_rows",
    "summary.unit_rows",
    "summary.disclosed_rows",
    "summary.disclosed_zero_cells",
    "summary.disclosed_small_cells",
    "summary.certain_rows",
    "summary.certain_people",
    "summary.small_rows",
    "summary.small_row_people",
    "cells[].row",
    "cells[].col",
    "cells[].lower",
    "cells[].upper",
    "cells[].values",
}
"""Keys that other programs rely on; none of them may ever be renamed."""


@pytest.fixture(scope="module")
def generate() -> ModuleType:
    place = importlib.util.spec_from_file_location("generate", DOCS / "generate.py")
    assert place is not None and place.loader is not None
    module = importlib.util.module_from_spec(place)
    place.loader.exec_module(module)
    return module


def test_cli_reference(generate: ModuleType) -> None:
    assert generate.cli_reference() == (DOCS / "cli.md").read_text(encoding="utf-8"), "run `make docs`"


def test_json_reference(generate: ModuleType) -> None:
    assert generate.json_reference() == (DOCS / "json.md").read_text(encoding="utf-8"), "run `make docs`"


def test_spec_reference(generate: ModuleType) -> None:
    assert generate.spec_reference() == (DOCS / "spec.md").read_text(encoding="utf-8"), "run `make docs`"


@pytest.mark.long
@pytest.mark.parametrize(
    ("verb", "more"),
    [
        ("profile", ()),
        ("bounds", ()),
        ("audit", ()),
        ("protect", ("--out", "out")),
        ("anonymize", ("--out", "out", "--seconds=0.2")),
        ("groups", ("--out", "out", "--seed=1")),
        ("topdown", ("--out", "out", "--seed=1")),
    ],
)
def test_the_examples_of_the_spec_page_run(
    call_louver: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, verb: str, more: tuple[str, ...]
) -> None:
    write_samples(tmp_path)
    shutil.copy(DOCS / "specs" / f"{verb}.toml", tmp_path)
    monkeypatch.chdir(tmp_path)
    command = (verb, "run") if verb == "topdown" else (verb,)
    done = call_louver(*command, "--spec", f"{verb}.toml", *more)
    assert (done.code, done.err) == (0, "")


def test_stable_keys() -> None:
    written = re.findall(r"^\| `([^`]+)` \|", (DOCS / "json.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert set(written) >= STABLE


def test_stable_keys_on_stdout(call_louver: Runner, counted: Path) -> None:
    done = call_louver("bounds", counted, "--rows=site", "--cols=ill", "--weight=count", "--json")
    result = json.loads(done.out)
    assert set(result) == {"verdict", "summary", "cells"}
    assert {f"summary.{key}" for key in result["summary"]} | {
        f"cells[].{key}" for key in result["cells"][0]
    } == STABLE
    for cell in result["cells"]:
        assert (set(cell["row"]), set(cell["col"])) == ({"site"}, {"ill"})


@pytest.mark.long
def test_the_spec_of_the_topdown_reference_works(call_louver: Runner, tmp_path: Path) -> None:
    spec, *_ = re.findall(
        r"^```toml\n(.*?)^```", (DOCS / "topdown-reference.md").read_text(), re.MULTILINE | re.DOTALL
    )
    path = write_town(tmp_path / "town", spec)
    done = call_louver("topdown", "run", path, "--seed=1", "--out", tmp_path / "out", "--json")
    assert (done.code, done.err) == (0, "")
    assert {"epsilon", "levels", "failsafe_regions", "suboptimal_regions", "seconds", "manifest"} <= set(
        json.loads(done.out)
    )


def test_guide_names_real_options(generate: ModuleType) -> None:
    """Every option in the prose exists; tests/cli/test_blocks.py has the blocks."""
    of_dask = {"--tls-ca-file", "--tls-cert", "--tls-key"}
    known = of_dask | set(re.findall(r"--[a-z][a-z-]*", generate.cli_reference()))
    for page in (
        DOCS.parent / "README.md",
        *DOCS.glob("*.md"),
        *DOCS.glob("explain/*"),
        *DOCS.glob("howto/*"),
    ):
        elsewhere = r"^```.*?^```|`python benchmarks/[^`]*`"
        prose = re.sub(elsewhere, "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
        assert set(re.findall(r"(?<![\w-])--[a-z][a-z-]*", prose)) <= known, page.name
