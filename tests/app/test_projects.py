"""Projects: what was chosen comes back, nothing of the records is in them, and a hostile one opens nothing."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from louver.app.columns import ColumnChoices, MergeTree
from louver.app.pages.audit import Audits
from louver.app.pages.microdata import MicrodataChoices
from louver.app.pages.protect_state import Protects
from louver.app.pages.tables_state import Tables
from louver.app.projects import go_on, open_data_of, read_project, saved
from louver.app.session import Session, Setup
from louver.errors import InputError
from louver.run import Run

SECRET = "Winterbottom"


class Direct(Session):
    """A session whose jobs are done in this process."""

    async def ask(self, job: Callable[..., Any], *args: Any, **how: Any) -> Any:
        return job(*args, run=Run())


@pytest.fixture
def people(tmp_path: Path) -> Path:
    path = tmp_path / "people.csv"
    path.write_text(
        "name,town,ill\n" + "".join(f"{SECRET}{n},{'ABC'[n % 3]},{'yn'[n % 2]}\n" for n in range(12))
    )
    return path


def session_of(tmp_path: Path, people: Path | None) -> Direct:
    return Direct(Setup(folder=tmp_path, file=None if people is None else str(people)))


def chosen(tmp_path: Path, people: Path) -> str:
    """A session in which something was chosen on every page, saved."""
    session = session_of(tmp_path, people)
    session.open_start()
    session.read_as(missing_code={"ill": ["9"]}, where="town in ('A', 'B')")
    columns, tables = session.state(ColumnChoices), session.state(Tables)
    columns.roles = {"name": "identifying", "town": "quasi", "ill": ""}
    columns.set_kind("ill", "category")
    columns.trees["town"] = MergeTree({"A": 4, "B": 4})
    columns.trees["town"].merge(1, ["A", "B"], "AB")
    attributes = [{"name": "town", "labels": ["A", "B"]}, {"name": "ill", "labels": ["n", "y"]}]
    tables.open({"attributes": attributes, "left": {}, "missing": [], "n": 8})
    found = {
        "summary": {"disclosed_small_cells": 1, "certain_rows": 0},
        "kept": 1.0,
        "verdict": {"level": "stop", "sentence": "One small count is disclosed."},
    }
    tables.remember("As opened", tables.options(), found)
    tables.decimals = 2
    tables.remember("Publish rounded", tables.options(), found)
    session.state(Audits).pieces = [{"name": "ill", "by": ["ill"], "below": 5}]
    protects = session.state(Protects)
    protects.tables, protects.method = [{"name": "ill", "by": ["ill"]}], "round"
    protects.pin("ill", {"ill": "y"}, "cost", "old")
    session.state(MicrodataChoices).k, session.state(MicrodataChoices).more.t = 7, "0.3"
    assert session.has_work
    return saved(session)


def test_what_was_chosen_comes_back(tmp_path: Path, people: Path) -> None:
    path = tmp_path / "project.json"
    path.write_text(chosen(tmp_path, people), encoding="utf-8")
    project = read_project(path)
    session = session_of(tmp_path, people)
    assert open_data_of(session, project)
    session.project = project
    asyncio.run(go_on(session))
    assert session.opened is not None and session.project is None
    assert session.opened.source.missing_code == {"ill": ("9",)} and session.opened.source.where is not None
    columns, tables = session.state(ColumnChoices), session.state(Tables)
    assert columns.roles == {"name": "identifying", "town": "quasi"} and columns.kinds == {"ill": "category"}
    assert columns.trees["town"].at(1) == {"A": "AB", "B": "AB"}
    assert [one.words for one in tables.waiting] == ["As opened", "Publish rounded"]
    assert tables.waiting[-1].options.decimals == 2
    assert session.state(Audits).pieces[0]["below"] == 5
    protects = session.state(Protects)
    assert protects.tables == [{"name": "ill", "by": ["ill"]}] and protects.method == "round"
    assert protects.pinned("ill", {"ill": "y"})["set"] == "cost" and protects.rules[0]["minimum"] == 3
    assert (session.state(MicrodataChoices).k, session.state(MicrodataChoices).more.t) == (7, "0.3")


def test_no_record_and_no_count_is_in_it(tmp_path: Path, people: Path) -> None:
    text = chosen(tmp_path, people)
    assert SECRET not in text and str(tmp_path) not in text, "neither records nor where they lie"
    assert '"kept"' not in text and "disclosed" not in text


def test_other_data_are_chosen_by_hand(tmp_path: Path, people: Path) -> None:
    path = tmp_path / "project.json"
    path.write_text(chosen(tmp_path, people), encoding="utf-8")
    project = read_project(path)
    session = session_of(tmp_path, None)
    assert not open_data_of(session, project) and session.opened is None
    session.project = project
    session.open_sample("people")
    asyncio.run(go_on(session))
    assert session.project is project, "it waits for its own data"


@pytest.mark.parametrize(
    "change",
    [
        lambda content: "no JSON",
        lambda content: "[" * 100_000,
        lambda content: [],
        lambda content: {**content, "louver": "release"},
        lambda content: {**content, "data": {"name": ""}},
        lambda content: {**content, "data": {"name": "x", "path": "/etc/passwd"}},
        lambda content: {**content, "source": {"nonsense": 1}},
        lambda content: {**content, "roles": {"a": "king"}},
        lambda content: {**content, "tables": [{"words": "x", "options": {"rows": 1}}]},
        lambda content: {**content, "audit": {"pieces": [{"name": ""}]}},
        lambda content: {**content, "audit": {"pieces": [{"name": "x", "by": ["a"], "file": "/etc/passwd"}]}},
        lambda content: {
            **content,
            "protect": {"tables": [{"name": "x", "by": ["a"], "value": "b", "file": "/etc/passwd"}]},
        },
        lambda content: {**content, "protect": {"rules": [{"rule": "frequency"}]}},
        lambda content: {**content, "protect": {"pins": [{"table": "x", "cell": {}, "set": "publish"}]}},
        lambda content: {**content, "microdata": {"k": 1}},
        lambda content: {**content, "microdata": {"seconds": "forever"}},
    ],
)
def test_what_is_no_project_is_told(tmp_path: Path, people: Path, change: Callable[[Any], Any]) -> None:
    made = change(json.loads(chosen(tmp_path, people)))
    path = tmp_path / "project.json"
    path.write_text(made if isinstance(made, str) else json.dumps(made), encoding="utf-8")
    with pytest.raises(InputError, match="project"):
        read_project(path)


def test_a_project_opens_no_path(tmp_path: Path, people: Path) -> None:
    content = json.loads(chosen(tmp_path, people)) | {"data": {"name": str(people)}}
    path = tmp_path / "project.json"
    path.write_text(json.dumps(content), encoding="utf-8")
    assert not open_data_of(session_of(tmp_path, None), read_project(path))
