"""Ledgers from the page Ledger, without a browser: made, found, and told about further data."""

from __future__ import annotations

from pathlib import Path

import pytest

from louver.app.jobs.ledgers import admitted, ledger_made, ledgers_there
from louver.app.pages.ledger import place_of
from louver.app.session import Session, Setup
from louver.errors import BudgetError, InputError
from louver.run import Run

ADD_REMOVE = "add-remove-record"


@pytest.fixture
def people(tmp_path: Path) -> Path:
    path = tmp_path / "people.csv"
    path.write_text("age,ill\n31,flu\n33,cold\n")
    return path


def test_a_ledger_is_made_granted_and_found_again(tmp_path: Path, people: Path) -> None:
    path = tmp_path / "releases" / "people.ledger"
    told = ledger_made(str(path), "rho", "1/2", "change-record", None, False, Run())
    assert (told["measure"], told["neighbours"], told["left"]) == ("rho", "change-record", "1/2")
    (tmp_path / "releases" / "broken.ledger").write_text("no ledger")
    (found,) = ledgers_there(str(tmp_path / "releases"), str(people), Run())
    assert (found["path"], found["name"]) == (str(path), "people.ledger")
    own = tmp_path / "people.csv.ledger"
    ledger_made(str(own), "epsilon", "1", ADD_REMOVE, None, False, Run())
    names = [one["name"] for one in ledgers_there(str(tmp_path / "releases"), str(people), Run())]
    assert names == ["people.csv.ledger", "people.ledger"]
    assert ledgers_there(str(tmp_path / "none"), None, Run()) == []


@pytest.mark.parametrize("amount", ["", "0", "-1", "many"])
def test_without_an_amount_no_ledger_is_made(tmp_path: Path, amount: str) -> None:
    with pytest.raises(InputError, match="amount"):
        ledger_made(str(tmp_path / "people.ledger"), "epsilon", amount, ADD_REMOVE, None, False, Run())
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="the folder inner cannot be created"):
        ledger_made(
            str(tmp_path / "file" / "inner" / "a.ledger"), "epsilon", "1", ADD_REMOVE, None, False, Run()
        )


def test_other_data_about_the_same_people_are_admitted_under_their_name(tmp_path: Path, people: Path) -> None:
    path = tmp_path / "town.ledger"
    ledger_made(str(path), "epsilon", "1", ADD_REMOVE, "the town", False, Run())
    told = admitted(str(path), None, str(people), "last year.csv", None, None, False, Run())
    assert "last year.csv" in str(told)


def test_a_second_ledger_for_other_people_takes_a_word(tmp_path: Path, people: Path) -> None:
    ledger_made(str(tmp_path / "people.csv.ledger"), "epsilon", "1", ADD_REMOVE, None, False, Run())
    others = tmp_path / "others.csv"
    others.write_text("age,ill\n51,flu\n53,cold\n")
    path = str(tmp_path / "others.csv.ledger")
    with pytest.raises(BudgetError, match="--new-population"):
        ledger_made(path, "epsilon", "1", ADD_REMOVE, None, False, Run())
    ledger_made(path, "epsilon", "1", ADD_REMOVE, None, True, Run())
    more = tmp_path / "more.csv"
    more.write_text("income\n51\n53\n")
    town = str(tmp_path / "town.ledger")
    ledger_made(town, "epsilon", "1", ADD_REMOVE, None, False, Run())
    with pytest.raises(BudgetError, match="--new-population"):
        admitted(town, None, str(more), "more.csv", None, None, False, Run())
    admitted(town, None, str(more), "more.csv", None, None, True, Run())


def test_a_ledger_lies_beside_the_file_that_was_named_or_among_the_releases(
    tmp_path: Path, people: Path
) -> None:
    session = Session(Setup(folder=tmp_path, releases=tmp_path / "releases", file=str(people)))
    assert place_of(session, "crashes") == tmp_path / "releases" / "crashes.ledger"
    for name in ("", ".", "../out", "a/b", "-x", "a\\b"):
        with pytest.raises(InputError, match="simple name"):
            place_of(session, name)
    session.open_start()
    assert place_of(session, "crashes") == tmp_path / "people.csv.ledger"
