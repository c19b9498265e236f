"""The smallest size of each benchmark, untimed: it runs, and louver and its peers agree."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

FOLDER = Path(__file__).resolve().parents[2] / "benchmarks"


def load(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"benchmark_{name}", FOLDER / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", ["B", "L"])
def test_bounds_and_its_peers_agree(name: str) -> None:
    line = load("bounds").compare(
        name, limit=0.0
    )  # one row of the slow peers; raises where an answer differs
    assert line["rows"] > 0


def test_the_large_synthetic_table_is_solved(capsys: pytest.CaptureFixture[str]) -> None:
    load("bounds").synthetic()
    assert "N = 100R" in capsys.readouterr().out
