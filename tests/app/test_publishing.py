"""Publishing from a page, without a browser: what the command line refuses is refused, and what is made can be taken away."""

from __future__ import annotations

import io
import subprocess
import sys
import zipfile
from pathlib import Path

import openpyxl
import pytest
from nicegui import Client, ui

import louver as lv
from cli.command import child_environment
from louver.app.jobs import releases as release_jobs
from louver.app.jobs.releases import checked_upload, free_name, out_folder, packed, publish_table
from louver.app.jobs.tables import published_together
from louver.app.pages.audit import Audits
from louver.app.publishing import published_verdict
from louver.app.session import Setup
from louver.bounds import BoundsOptions
from louver.errors import InputError
from louver.release.packed import pack
from louver.release.register import Register
from louver.run import Run
from louver.schema.source import SourceOptions

COUNTS = {"A": (12, 30), "B": (4, 26), "C": (10, 40)}
SOURCE = SourceOptions(weight="count")
OPTIONS = BoundsOptions(rows=("town",), cols=("ill",))


@pytest.fixture
def people(tmp_path: Path) -> Path:
    path = tmp_path / "people.csv"
    lines = [
        f"{town},{ill},{n}" for town, counts in COUNTS.items() for ill, n in zip("yn", counts, strict=True)
    ]
    path.write_text("\n".join(["town,ill,count", *lines, ""]))
    return path


def published(people: Path, name: str, **given: object) -> dict[str, object]:
    folder = people.parent
    asked = {"registry": str(folder / "register"), **given}
    return publish_table(str(people), SOURCE, OPTIONS, asked, str(folder / name), Run())


def test_a_table_is_published_and_entered_into_the_register(people: Path) -> None:
    assert published(people, "out")["refused"] is None
    assert lv.verify(people.parent / "out").passed
    assert len(Register(people.parent / "register").entries) == 1


def refused_alone(people: Path) -> None:
    people.write_text(people.read_text() + "D,y,1\n")


def refused_together(people: Path) -> None:
    lv.audit(
        people,
        weight="count",
        tables=[{"name": "towns", "by": ["town"]}],
        registry=people.parent / "register",
        publish=people.parent / "first",
    )


@pytest.mark.parametrize("before", [pytest.param(refused_alone, marks=pytest.mark.long), refused_together])
def test_what_the_command_line_refuses_no_page_publishes(people: Path, before) -> None:
    before(people)
    folder = people.parent
    arranged = ("--rows", "town", "--cols", "ill", "--weight", "count", "--register", folder / "register")
    command = [sys.executable, "-m", "louver", "bounds", people, *arranged, "--publish", folder / "command"]
    told = subprocess.run(command, env=child_environment(), capture_output=True, encoding="utf-8")
    assert told.returncode == 1
    found = published(people, "page")
    assert told.stdout.splitlines()[-1] == f"Not published: {found['refused']}"
    assert not (folder / "command").exists() and not (folder / "page").exists()


def test_rows_that_tell_a_status_are_published_only_where_that_is_accepted(people: Path) -> None:
    refused_alone(people)
    assert published(people, "out")["refused"] is not None
    assert published(people, "out", accept=True)["refused"] is None


def test_households_are_counted_by_people_only_where_that_is_said(tmp_path: Path) -> None:
    """Records that number households: both pages refuse until somebody says that people are counted."""
    path = tmp_path / "homes.csv"
    rows = [f"{i // 4},{'AB'[i // 4 % 2]},{'yn'[i % 2]}" for i in range(240)]
    path.write_text("\n".join(["household_id,town,ill", *rows, ""]))
    given = {"registry": str(tmp_path / "register")}
    asked = str(path), SourceOptions(), OPTIONS
    assert "households" in str(publish_table(*asked, given, str(tmp_path / "one"), Run())["refused"])
    found = publish_table(*asked, given | {"count_people": True}, str(tmp_path / "one"), Run())
    assert found["refused"] is None and lv.verify(tmp_path / "one").passed
    state = Audits(pieces=[{"name": "some", "by": ["town", "ill"]}])
    for state.count_people in (False, True):
        options = state.options(str(tmp_path / "register"), "household_id")
        found = published_together(str(path), SourceOptions(), options, str(tmp_path / "two"), Run())
        assert (found["refused"] is None) == state.count_people and options["person"] == "household_id"
    with pytest.raises(InputError, match="--count-people needs --register"):
        BoundsOptions(rows=("town",), cols=("ill",), count_people=True).check()


def test_a_release_is_taken_away_whole_or_as_tables(people: Path, tmp_path: Path) -> None:
    published(people, "out")
    taken = {
        form: io.BytesIO(packed(str(tmp_path), "out", form, str(tmp_path), Run()))
        for form in ("zip", "csv", "xlsx")
    }
    assert {"manifest.json", "report.html"} <= set(zipfile.ZipFile(taken["zip"]).namelist())
    (name,) = zipfile.ZipFile(taken["csv"]).namelist()
    text = zipfile.ZipFile(taken["csv"]).read(name).decode()
    assert text.splitlines()[0].replace('"', "") == "town,ill,share" and len(text.splitlines()) == 7
    (sheet,) = openpyxl.load_workbook(taken["xlsx"]).worksheets
    assert [cell.value for cell in next(sheet.iter_rows())] == ["town", "ill", "share"]
    assert {place.name for place in tmp_path.iterdir()} == {"people.csv", "out", "register"}, (
        "nothing is left"
    )


def test_what_is_too_large_for_a_browser_is_named(
    people: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    published(people, "out")
    monkeypatch.setattr(release_jobs, "MOST_DOWNLOAD", 10)
    with pytest.raises(InputError, match="copy it from the folder of releases"):
        packed(str(tmp_path), "out", "zip", str(tmp_path), Run())


def test_a_release_that_was_brought_is_doubted_and_not_kept(people: Path, tmp_path: Path) -> None:
    published(people, "out")
    private = tmp_path / "private"
    private.mkdir()
    pack(tmp_path / "out", private / "brought.zip")
    found = checked_upload(str(private / "brought.zip"), str(private), False, 0, Run())
    assert found["passed"] and found["manifest"]["kind"] == "audit"
    assert list(private.iterdir()) == []
    (tmp_path / "out" / "report.html").write_text("harm")
    pack(tmp_path / "out", private / "brought.zip")
    found = checked_upload(str(private / "brought.zip"), str(private), False, 0, Run())
    assert not found["passed"] and [one["name"] for one in found["checks"] if not one["passed"]]
    (tmp_path / "out" / "manifest.json").write_text("{")
    pack(tmp_path / "out", private / "brought.zip")
    assert checked_upload(str(private / "brought.zip"), str(private), False, 0, Run())["manifest"] is None
    assert list(private.iterdir()) == []


def test_the_folder_of_releases_is_made_with_the_first_one(tmp_path: Path) -> None:
    setup = Setup(folder=tmp_path, releases=tmp_path / "releases")
    assert not setup.releases.exists() and free_name(setup.releases, "table") == "table"
    (Path(out_folder(setup.releases, "table"))).mkdir()
    assert free_name(setup.releases, "table") == "table-2"
    assert setup.registry == tmp_path / "releases" / "register"
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="cannot be created"):
        out_folder(tmp_path / "file" / "releases", "table")


def test_what_was_published_is_judged_by_the_verb_alone(people: Path) -> None:
    """Only the steward's word says that these people are others: the page was green where the command line says "care"."""
    assert published(people, "first")["verdict"]["level"] == "ok"
    lines = [f"{town},{n % 7},{'yn'[n % 2]}" for town in COUNTS for n in range(40)]
    people.write_text("\n".join(["town,age,well", *lines, ""]))
    source = SourceOptions()
    options = BoundsOptions(rows=("town",), cols=("well",))
    asked = {"registry": str(people.parent / "register"), "new_population": True}
    found = publish_table(str(people), source, options, asked, str(people.parent / "second"), Run())
    client = Client(ui.page("/"))
    try:
        with client.content, ui.element() as drawn:
            published_verdict("second", found)
        [banner] = [one for one in drawn.descendants() if "verdict" in one.classes]
        texts = [str(getattr(one, "text", "")) for one in banner.descendants()]
    finally:
        client.delete()
    assert found["refused"] is None and "care" in banner.classes
    assert "Published: second." in texts and found["verdict"]["sentence"] in " ".join(texts)
