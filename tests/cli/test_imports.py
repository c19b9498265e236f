"""Imports are lazy: what a question does not need is not loaded."""

from __future__ import annotations

import subprocess
import sys

import pytest

from cli.command import child_environment
from releases import made

pytestmark = pytest.mark.long

HEAVY = {"numba", "duckdb", "matplotlib", "pyarrow", "scipy", "pandas", "polars"}
PRINT_MODULES = "\nimport sys; print(*{name.partition('.')[0] for name in sys.modules}, file=sys.stderr)"


def modules_after(code: str) -> set[str]:
    """Top-level modules that a fresh interpreter has after running some code."""
    done = subprocess.run(
        [sys.executable, "-c", code + PRINT_MODULES], env=child_environment(), capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return set(done.stderr.split())


RUN = """
import sys
sys.argv = ["louver", {arguments}]
from louver.cli import main
try:
    main()
except SystemExit as end:
    assert end.code == 0
"""


@pytest.mark.parametrize(
    "code",
    ["import louver; louver.__version__; dir(louver)", RUN.format(arguments='"--version"')],
    ids=["import louver", "louver --version"],
)
def test_nothing_heavy(code: str) -> None:
    loaded = modules_after(code)
    assert "louver" in loaded
    assert not loaded & HEAVY


def test_an_audit_draws_nothing(tmp_path) -> None:
    """Without a report there is no picture, and nobody waits for Matplotlib; nor for other people's dataframes."""
    path = tmp_path / "counted.csv"
    path.write_text("site,ill,count\nA,no,4\nA,yes,3\n")
    arguments = ", ".join(
        map(repr, ["bounds", str(path), "--rows=site", "--cols=ill", "--weight=count", "--json"])
    )
    loaded = modules_after(RUN.format(arguments=arguments))
    assert {"numba", "duckdb"} <= loaded
    assert not loaded & {"matplotlib", "pandas", "polars"}


def test_a_profile_without_a_population_needs_no_optimisation(tmp_path) -> None:
    path = tmp_path / "people.csv"
    path.write_text("age,sex\n30,m\n31,f\n32,f\n")
    loaded = modules_after(RUN.format(arguments=f'"profile", {str(path)!r}'))
    assert "duckdb" in loaded
    assert not loaded & {"scipy", "matplotlib", "pandas", "polars"}


def test_verbs_by_attribute() -> None:
    code = "import louver; assert callable(louver.bounds); assert louver.bounds.suggest"
    assert "duckdb" in modules_after(code)


def test_verify_loads_what_it_needs(tmp_path) -> None:
    """A small release is doubted in a moment: no kernel, no database, and not the dataframes of others, which PyArrow would load."""
    out = made(tmp_path / "release")
    loaded = modules_after(RUN.format(arguments=f'"verify", {str(out)!r}, "--skip-report"'))
    assert "pyarrow" in loaded
    assert not loaded & (HEAVY - {"pyarrow"})


def test_the_constraint_solver_gets_its_pandas() -> None:
    """OR-Tools imports pandas itself; refused, every search by constraints would end in an internal error."""
    code = "import sys; from louver.cli import WithoutPandas; sys.meta_path.insert(0, WithoutPandas)"
    assert "pandas" in modules_after(f"{code}; from ortools.sat.python import cp_model")
