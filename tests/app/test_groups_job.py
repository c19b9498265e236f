"""The page Group sizes, without a browser: the forecast opens no records, the release is paid for once."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest

from louver.app.jobs.groups import column_names, forecast, is_paid, release, sizes_of
from louver.app.jobs.ledgers import ledger_read, practice_ledger
from louver.app.jobs.releases import listed, out_folder
from louver.app.pages.groups import GroupsChoices
from louver.app.session import Session, Setup
from louver.app.spending import Practice, amount_at, position
from louver.errors import Cancelled, InputError
from louver.groups import groups
from louver.privacy.budget import Loss, Measure
from louver.privacy.ledger import Ledger
from louver.privacy.neighbours import Relation
from louver.release.open import open_release
from louver.release.verify import verify
from louver.run import Run


@pytest.fixture
def asked(tmp_path: Path) -> GroupsChoices:
    domain = tmp_path / "regions.csv"
    domain.write_text("state,county\nA,1\nA,2\nB,3\n")
    chosen = GroupsChoices()
    chosen.domain, chosen.unit, chosen.max_size = str(domain), "home", 3
    chosen.columns = chosen.regions = ["state", "county"]
    return chosen


def test_the_forecast_needs_no_records(asked: GroupsChoices) -> None:
    assert asked.domain is not None
    assert column_names(asked.domain, Run()) == ["state", "county"]
    levels = forecast(asked.options(), 50, Run())["levels"]
    assert [level["name"] for level in levels] == ["total", "state", "county"]


def test_shares_of_ones_own_add_up(asked: GroupsChoices) -> None:
    asked.sharing, asked.shares = "own", {"total": 1, "state": 1, "county": 2}
    assert [level["share"] for level in forecast(asked.options(), 50, Run())["levels"]] == [0.25, 0.25, 0.5]


def test_a_release_is_paid_for(asked: GroupsChoices, tmp_path: Path) -> None:
    people = tmp_path / "people.csv"
    homes = [("A", "1", 1), ("A", "1", 1), ("A", "2", 2), ("B", "3", 3), ("B", "3", 3), ("B", "3", 4)]
    people.write_text("state,county,home\n" + "".join(f"{a},{b},{c}\n" for a, b, c in homes))
    ledger = tmp_path / "people.ledger"
    Ledger.create(ledger, Measure.EPSILON, Relation.ADD_REMOVE_RECORD, Fraction(2))
    (tmp_path / "releases").mkdir()
    out = out_folder(tmp_path / "releases", "homes")
    call = str(people), {}, asked.options(), str(ledger), out
    assert not is_paid(*call, Run())

    class Stopping(Run):
        def check(self) -> None:
            if Ledger(ledger).state().pending:
                raise Cancelled
            super().check()

    with pytest.raises(Cancelled):
        release(*call, Stopping())
    assert is_paid(*call, Run()), "the page does not ask to spend again"
    release(*call, Run())
    assert not is_paid(*call, Run()) and verify(out).passed
    found = sizes_of(str(tmp_path / "releases"), "homes", "", Run())
    assert [size for size, _ in found["sizes"]] == [1, 2, 3], "whatever columns stand beside the counts"
    assert found["regions"] == ["A", "B", "A/1", "A/2", "B/3"]
    assert Ledger(ledger).state().remaining == 1
    with pytest.raises(InputError, match="already exists"):
        out_folder(tmp_path / "releases", "homes")


def test_samples_of_two_tabs_have_ledgers_of_their_own_that_other_checks_find(
    asked: GroupsChoices, tmp_path: Path
) -> None:
    """A release that no ledger nearby has paid for would pass for an edited past."""
    people, releases = tmp_path / "people.csv", tmp_path / "releases"
    people.write_text("state,county,home\nA,1,1\nA,2,2\nB,3,3\n")
    mine = tmp_path / "mine" / "mine.ledger"
    mine.parent.mkdir()
    Ledger.create(mine, Measure.EPSILON, Relation.ADD_REMOVE_RECORD, Fraction(2))
    for name in ("one", "other"):
        session = Session(Setup(folder=tmp_path, releases=releases))
        loss = Loss(Fraction(1), Measure.EPSILON, Relation.ADD_REMOVE_RECORD)
        ledger = str(Practice(session).path(loss))
        practice_ledger(ledger, str(loss.measure), str(loss.neighbours), "10", Run())
        release(str(people), {}, asked.options(), ledger, out_folder(releases, name), Run())
        session.close()
    assert ledger_read(str(mine), str(releases), Run())["check"]["sound"]
    assert {one["folder"] for one in listed(str(releases), Run())} == {"one", "other"}


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "/tmp/x", "a\\b", "-x", "C:", "a\nb"])
def test_a_release_gets_a_plain_name(tmp_path: Path, name: str) -> None:
    with pytest.raises(InputError, match="simple name"):
        out_folder(tmp_path, name)


def test_the_slider_gives_amounts_of_two_digits() -> None:
    assert [amount_at(place) for place in (-20, 0, 3)] == [Fraction(1, 100), 1, 2]
    assert position(Fraction(1, 2)) == -3


def test_the_released_sizes_are_shown_as_published(asked: GroupsChoices, tmp_path: Path) -> None:
    folder = tmp_path / "releases"
    folder.mkdir()
    people = tmp_path / "people.csv"
    people.write_text("home,state,county\n" + "".join(f"h{i // 2},A,1\nk{i},B,3\n" for i in range(20)))
    groups(people, **asked.options(), seed=1, out=folder / "groups")
    published = open_release(folder / "groups").tables["groups"].to_pylist()
    found = sizes_of(str(folder), "groups", "", Run())
    assert found["sizes"] == [(row["size"], row["groups"]) for row in published if row["level"] == "total"]
    assert found["largest"] == max(row["size"] for row in published) and found["left"] == 0
    one = next(row for row in published if row["level"] == "state")
    of_state = sizes_of(str(folder), "groups", one["state"], Run())
    wanted = [
        (row["size"], row["groups"])
        for row in published
        if row["level"] == "state" and row["state"] == one["state"]
    ]
    assert of_state["sizes"] == wanted and one["state"] in found["regions"]
