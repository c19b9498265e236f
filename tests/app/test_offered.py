"""What a verb can be asked for, a page offers; what only the command line can do is listed here."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from louver import topdown
from louver.anonymize import AnonymizeOptions
from louver.app.columns import ColumnChoices
from louver.app.jobs import regions as region_jobs
from louver.app.jobs import topdown as topdown_jobs
from louver.app.pages.audit import Audits
from louver.app.pages.microdata import MicrodataChoices, _MicrodataPage
from louver.app.pages.microdata_panels import More
from louver.app.pages.protect_state import Protects
from louver.app.pages.tables import _TablesPage as TablesPage
from louver.app.pages.tables_state import Tables
from louver.app.session import Session, Setup
from louver.app.words import without_flags
from louver.audit.options import AuditOptions
from louver.bounds import BoundsOptions
from louver.cli.topdown import app as commands
from louver.protect.options import ProtectOptions

TABLES_ONLY_THERE = {
    *(
        "arrangements",
        "cells",
    ),  # several tables and some cells at once: the page has one table, and all of it
    *("conditionals", "percent", "n", "row_n"),  # tables of others, without their records
    *("drop_zero_rows", "merge_zero_rows", "rounding"),
    *("avoid", "fix", "apart", "write_recodes"),  # of the search for safer tables
    "fail_on",
}
AUDIT_ONLY_THERE = {"known", "targets", "decide", "no_advice", "fail_on"}
PROTECT_ONLY_THERE = {
    "variance",
    "max_noise",
    "noise_table",
    "given_pattern",
    "request",
    "state",
}  # cell keys; patterns of other programs; who asked; searches of hours
MICRODATA_ONLY_THERE = {
    *("parts", "engine"),  # files beyond memory
    *("format", "keep_order", "class_id", "whole_units"),
    *("missing", "one_hot", "recode"),
    *(
        "boundary",
        "carry",
        "size",
        "accepted",
        "sets",
        "normalise",
        "subproblem_seconds",
    ),  # of single methods
    "curve",  # the page compares other k
    "analysis",
    "bound_seconds",  # the page shows the bound that every search has
}
"""Options of the models that no page offers."""
TOPDOWN_ONLY_THERE = {"areas", "estimate", "export-nmf", "import-nmf", "measure"}
"""Commands of `louver topdown` that no page has: the two halves of `run`, for a machine each, and those about files of the Bureau."""


@pytest.fixture
def session(tmp_path: Path) -> Session:
    made = Session(Setup(folder=tmp_path, releases=tmp_path / "releases"))
    made.open_sample("people")
    return made


def microdata(session: Session, **source: Any) -> dict[str, Any]:
    """Everything that the page Microdata asks for, where everything is asked for."""
    if source:
        session.read_as(**source)
    columns, asked = session.state(ColumnChoices), session.state(MicrodataChoices)
    columns.roles = {"age": "quasi", "income": "sensitive", "hours": "keep", "weight": "identifying"}
    columns.person, asked.l, asked.seconds, asked.new_population = "weight", 2, "r10", True
    asked.accept_unchecked = True
    asked.more = More(l_kind="recursive", c="3", t="0.4", distance="equal", count_missing=True, against=["a"])
    asked.more.accept, asked.more.link, asked.more.earlier = True, "weight", {"a": ("x.csv", "x.csv")}
    asked.more.codes = {name: {"hours": "1"} for name in ("top_code", "bottom_code", "round_to")}
    asked.more.population, asked.more.population_count, asked.more.k_map = "p.csv", "n", True
    page = _MicrodataPage(session)
    return page._options({}) | page._people()


def test_microdata(session: Session) -> None:
    offered = {*microdata(session), "seconds"}  # a time, or rounds
    assert set(AnonymizeOptions.model_fields) - offered == MICRODATA_ONLY_THERE


def test_a_condition_on_rows_keeps_nothing_out_of_the_register(session: Session) -> None:
    assert microdata(session, where="age > 20")["registry"] == str(session.setup.registry)


def test_audit() -> None:
    state = Audits(pieces=[{"name": "a", "by": ["b"], "below": 5}], within="5", hide=True)
    state.count_people = state.new_population = state.accept_unchecked = True
    offered = {*state.options("register", "id"), "publish"}
    state.count_people = False  # counts by the column with the role of a unit instead
    offered |= set(state.options("register", "id", ["home"]))
    assert set(AuditOptions.model_fields) - offered == AUDIT_ONLY_THERE


def test_protect() -> None:
    state = Protects(tables=[{"name": "a", "by": ["b"]}], known_percent="5", holding="b", sampling_weight="c")
    state.pin("a", {"b": "x"}, "hide", "why")
    state.new_population = state.accept_unchecked = True
    offered = set(state.options({"b": "hierarchy.csv"}, "register", "id")) | {"steps", "seconds"}
    state.method, state.pins = "round", []
    offered |= set(state.options({}, "register"))
    assert set(ProtectOptions.model_fields) - offered == PROTECT_ONLY_THERE


def test_tables(session: Session) -> None:
    state = session.state(Tables)
    state.rows, state.cols, state.decimals = ["a"], ["b"], 2
    session.state(ColumnChoices).roles = {"home": "unit"}
    publish, *_, given, _ = TablesPage(session)._publication("out")
    state.merged, state.given = {"a": {"x": ["y", "z"]}}, [{"row": {"a": "x"}, "exactly": 3}]
    offered = {*state.options().model_fields_set, *given, "publish", "suggest", "seconds"}
    assert publish.__name__ == "publish_table"
    assert set(BoundsOptions.model_fields) - offered == TABLES_ONLY_THERE


def test_topdown() -> None:
    """A page does what a command does by the verb's own function; its forecast, which moves with sliders, by that of the plan."""
    assert (topdown_jobs.check, topdown_jobs.topdown) == (topdown.check, topdown.topdown)
    assert (topdown_jobs.extend, region_jobs.area) == (topdown.extend, topdown.area)
    offered = {"check", "plan", "run", "extend", "area"}
    assert {command.name for command in commands.registered_commands} - offered == TOPDOWN_ONLY_THERE


@pytest.mark.parametrize(
    ("told", "wanted"),
    [
        ("ask for --l 2 or more.", "ask for l\u00a0=\u00a02 or more."),
        ("36 rows tell. --accept publishes it anyway.", 'Tick "Publish although rows'),
        (
            "option --register: x holds others; confirm with --new-population that these are other people",
            "x holds",
        ),
        ("4 of a single one: name it in --unit, so that", 'the role "Household or unit" on the page Data'),
        ("merges labels, but --where selects only some", "the condition on rows selects"),
        ("the register register is new", "the register is new"),
        (
            "this ledger did not pay for x; name the one that did with --ledger.",
            "choose the one that did on the page",
        ),
        ("Give more --seconds.", "Give more seconds."),
        ("Option --register: x and y have people in common", "x and y"),
        (
            "x pays; let that ledger pay (`louver ledger admit a b`), or say with --new-population that they are other people (`louver "
            "ledger init`, or `admit` for a ledger that exists).",
            "x pays; on the page Ledger, choose that ledger",
        ),
    ],
)
def test_pages_say_it_in_their_own_words(told: str, wanted: str) -> None:
    found = without_flags(told)
    assert wanted in found and "--" not in found and "louver " not in found and "ption" not in found
