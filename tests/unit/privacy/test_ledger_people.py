"""One budget for the same people, in whatever shape their records come."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.parquet as pq
import pytest

from louver.data.people import fingerprint
from louver.errors import BudgetError, Cancelled, InputError
from louver.privacy.budget import Loss, Measure
from louver.privacy.ledger import Debit, Ledger, People
from louver.privacy.ledger_finding import admit_source, bind_apart, check_next_to, check_no_second
from louver.privacy.ledger_people import FOLDER
from louver.privacy.neighbours import Relation
from louver.privacy.spend import open_ledger
from louver.run import Run

RECORD = Relation.ADD_REMOVE_RECORD
LOSS = Loss(Fraction(1, 10), Measure.EPSILON, RECORD)
N = 300


@pytest.fixture
def shares_database() -> None:
    """Every source has a database of its own here."""


def town(first: int = 0, n: int = N) -> pa.Table:
    """People who differ in every column."""
    who = range(first, first + n)
    return pa.table(
        {
            "name": [f"person {i * 7919 % 100003}" for i in who],
            "age": [i * 31 % 97 for i in who],
            "ward": [f"w{i * 17 % 11}" for i in who],
        }
    )


def saved(folder: Path, name: str, table: pa.Table) -> Path:
    path = folder / name
    pq.write_table(table, path) if name.endswith("parquet") else pc.write_csv(table, path)
    return path


def new(folder: Path, name: str) -> Ledger:
    return Ledger.create(folder / name, Measure.EPSILON, RECORD, Fraction(1))


def pay(ledger: Ledger, data: Path, request: str = "r") -> Debit:
    dataset, people = fingerprint(data), People(data)
    ledger.check_data(dataset, people)
    debit = ledger.reserve(LOSS, request=request, purpose="a table", dataset=dataset, people=people)
    ledger.seal(debit, {})
    return debit


@pytest.fixture
def people(tmp_path: Path) -> Path:
    return saved(tmp_path, "people.csv", town())


@pytest.fixture
def ledger(people: Path) -> Ledger:
    """A ledger that has paid for people.csv."""
    made = new(people.parent, "people.csv.ledger")
    pay(made, people)
    return made


SHAPES: dict[str, Callable[[pa.Table], pa.Table]] = {
    "a column added": lambda t: t.append_column("more", pa.array([i % 5 for i in range(t.num_rows)])),
    "sorted": lambda t: t.sort_by("age"),
    "a column dropped": lambda t: t.drop_columns(["age"]),
    "a column renamed": lambda t: t.rename_columns(["name", "years", "ward"]),
    "people left out": lambda t: t.slice(40),
    "a column coded anew": lambda t: t.set_column(1, "age", pa.array([1000 + i for i in range(t.num_rows)])),
}


COPIES = [
    pytest.param(shape, f"copy.{kind}", marks=() if (n + m) % 2 == 0 else pytest.mark.long)
    for n, shape in enumerate(SHAPES)
    for m, kind in enumerate(["csv", "parquet"])
]


@pytest.mark.parametrize(("shape", "name"), COPIES)
def test_the_same_people_get_no_second_budget(ledger: Ledger, people: Path, shape: str, name: str) -> None:
    copy = saved(people.parent, name, SHAPES[shape](town()))
    with pytest.raises(
        BudgetError, match=rf"people of {name} are .*`louver ledger\s+admit people.csv.ledger {name}`"
    ):
        check_no_second(copy.with_name(f"{name}.ledger"))
    second = new(people.parent, "second.ledger")
    for spend in (lambda: pay(second, copy), lambda: admit_source(second, str(copy))):
        with pytest.raises(BudgetError, match=r"those that people.csv.ledger pays for"):
            spend()
    assert second.state().spent == 0 and not second.state().sources
    with pytest.raises(
        BudgetError, match=rf"has not admitted .* `louver ledger admit people.csv.ledger {name}`"
    ):
        pay(ledger, copy, "s")
    with pytest.raises(InputError, match=rf"`louver ledger admit people.csv.ledger {name}` lets it pay"):
        open_ledger(copy, None, LOSS)
    admit_source(ledger, str(copy))
    pay(ledger, copy, "s")
    assert ledger.state().spent == Fraction(1, 5)


def test_the_share_of_people_in_common_is_told(ledger: Ledger, people: Path) -> None:
    saved(people.parent, "half.csv", town(N // 2))
    state = admit_source(ledger, str(people.with_name("half.csv")))
    (told,) = [event.what for event in state.events if event.kind == "people" and event.what]
    assert "people of half.csv are among those of earlier sources (50 % of its people" in told
    saved(people.parent, "others.csv", town(10 * N))
    told = admit_source(ledger, str(people.with_name("others.csv"))).events[-1].what
    assert "nobody in others.csv was found among those of earlier sources" in told
    saved(people.parent, "homes.csv", pa.table({"rooms": [1, 2, 3]}))
    told = admit_source(ledger, str(people.with_name("homes.csv"))).events[-1].what
    assert told == "it is not known whether people of homes.csv are among those of earlier sources"


def test_a_second_population_takes_the_word_of_the_steward(ledger: Ledger, people: Path) -> None:
    others = saved(people.parent, "others.csv", town(10 * N))
    with pytest.raises(
        BudgetError, match="nobody in others.csv was found among those that people.csv.ledger pays for"
    ):
        check_no_second(others.with_name("others.csv.ledger"))
    made = new(people.parent, "others.csv.ledger")
    with pytest.raises(BudgetError, match="say with --new-population"):
        pay(made, others)
    bind_apart(made)
    pay(made, others)
    assert made.state().apart == {ledger.identity}
    # The word holds for both, for data whose people neither knows.
    more = saved(people.parent, "more.csv", town(20 * N))
    admit_source(made, str(more))
    admit_source(ledger, str(saved(people.parent, "else.csv", town(30 * N))))
    # And not for people whom the other ledger does know.
    with pytest.raises(
        BudgetError, match="people of half.csv are among those that people.csv.ledger pays for"
    ):
        admit_source(made, str(saved(people.parent, "half.csv", town(N // 2))))


def test_who_lies_beside_no_file_is_said_when_data_are_admitted(ledger: Ledger, people: Path) -> None:
    with pytest.raises(InputError, match="--new-population needs a data file next to town.ledger"):
        check_next_to(people.with_name("town.ledger"))
    check_next_to(people.with_name("people.csv.ledger"))
    town_ledger = new(people.parent, "town.ledger")
    bind_apart(town_ledger)
    assert not town_ledger.state().sources
    others = saved(people.parent, "others.csv", town(10 * N))
    admit_source(town_ledger, str(others), is_new_population=True)
    pay(town_ledger, others)


def test_a_ledger_that_paid_nothing_yet_is_for_the_file_beside_it(people: Path) -> None:
    new(people.parent, "people.csv.ledger")
    copy = saved(people.parent, "copy.csv", SHAPES["a column added"](town()))
    with pytest.raises(BudgetError, match="the people of copy.csv are those that people.csv.ledger"):
        pay(new(people.parent, "second.ledger"), copy)


def test_ledgers_of_the_folder_of_the_data_are_asked_too(
    ledger: Ledger, people: Path, tmp_path: Path
) -> None:
    copy = saved(people.parent, "copy.csv", town().sort_by("age"))
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    with pytest.raises(BudgetError, match="the people of copy.csv are those that people.csv.ledger"):
        pay(new(elsewhere, "own.ledger"), copy)


def test_a_successor_pays_for_people_whose_data_changed(ledger: Ledger, people: Path, tmp_path: Path) -> None:
    later = tmp_path / "later"
    later.mkdir()
    changed = saved(later, "people.csv", town(20))
    successor = ledger.succeed(later / "people.csv.ledger")
    pay(successor, changed, "s")
    told = [event.what for event in successor.state().events if event.kind == "people"]
    assert len(told) == 1 and told[0].startswith(
        "people of people.csv are among those of earlier sources (93 %"
    )
    copy = saved(later, "copy.csv", town(20).sort_by("age"))
    with pytest.raises(BudgetError, match="the people of copy.csv are those"):
        check_no_second(copy.with_name("copy.csv.ledger"))
    # The closed ledger speaks for its successor, which lies elsewhere.
    with pytest.raises(BudgetError, match=r"nobody in x\.csv was found among those that people\.csv\.ledger"):
        pay(new(people.parent, "next.ledger"), saved(people.parent, "x.csv", town(10 * N)))


def test_a_ledger_of_an_older_version_learns_who_it_pays_for(people: Path) -> None:
    old = new(people.parent, "people.csv.ledger")
    old.seal(old.reserve(LOSS, request="r", purpose="a table", dataset=fingerprint(people)), {})
    assert not old.state().people
    copy = saved(people.parent, "copy.csv", town().sort_by("age"))
    with pytest.raises(BudgetError, match="people of copy.csv are those that people.csv.ledger"):
        check_no_second(copy.with_name("copy.csv.ledger"))
    people.rename(people.with_name("moved.csv"))
    with pytest.raises(BudgetError, match="it is not known whether people of copy.csv are among those"):
        check_no_second(copy.with_name("copy.csv.ledger"))
    pay(old, people.with_name("moved.csv"), "s")
    assert len(old.state().people) == 1
    pay(old, people.with_name("moved.csv"), "t")
    assert [event.kind for event in old.state().events].count("people") == 1


@pytest.mark.parametrize("harm", ["missing", "changed"])
def test_sketches_that_are_missing_or_changed_are_no_proof(ledger: Ledger, people: Path, harm: str) -> None:
    (sketch,) = (people.parent / FOLDER).iterdir()
    if harm == "missing":
        sketch.unlink()
    else:
        sketch.write_text(sketch.read_text().replace('"people": 300', '"people": 301'))
    people.unlink()
    others = saved(people.parent, "others.csv", town(10 * N))
    with pytest.raises(BudgetError, match="it is not known whether people of others.csv are among those"):
        check_no_second(others.with_name("others.csv.ledger"))
    assert ledger.verify().is_sound


def test_the_ledger_file_alone_holds_nothing_to_test_a_guess_against(ledger: Ledger, people: Path) -> None:
    """All that is in it: the secret, and digests that change with anybody's record."""
    (sketch,) = (people.parent / FOLDER).iterdir()
    assert sketch.stat().st_mode & 0o777 == 0o600 and sketch.parent.stat().st_mode & 0o777 == 0o700
    kept = json.loads(sketch.read_text())
    with sqlite3.connect(ledger.path) as db:
        (body,) = [
            json.loads(text) for (text,) in db.execute("SELECT body FROM entries") if '"people"' in text
        ]
    assert set(body) == {"kind", "format", "dataset", "sketch", "what", "apart", "at"}
    assert body["sketch"] == sketch.stem and (body["format"], body["what"], body["apart"]) == (1, "", [])
    content = ledger.path.read_bytes()
    assert str(kept["whole"]).encode() not in content and kept["sample"][:40].encode() not in content
    digests = {
        new(saved(people.parent, f"{i}.csv", table).parent, f"n{i}.ledger").people_key
        for i, table in enumerate([town()])
    }
    assert ledger.people_key not in digests  # every ledger has its own key
    one_less = People(saved(people.parent, "less.csv", town().slice(1))).sketch(ledger.people_key)
    assert one_less is not None and one_less.digest != sketch.stem


def test_a_debit_and_who_it_is_about_are_written_together(ledger: Ledger, people: Path) -> None:
    kinds = [event.kind for event in ledger.state().events]
    assert kinds == ["init", "grant", "reserve", "people", "seal"]


def test_what_cannot_be_read_as_a_table_is_known_by_its_content(ledger: Ledger, people: Path) -> None:
    odd = people.with_name("odd.duckdb")
    odd.write_bytes(b"no database")
    assert People(odd).sketch(bytes(32)) is None
    with pytest.raises(Cancelled):
        stopped = Run()
        stopped.cancel()
        People(people, run=stopped).sketch(bytes(32))


def test_a_folder_that_cannot_be_made_is_named(people: Path) -> None:
    (people.parent / FOLDER).write_text("a file")
    with pytest.raises(InputError, match=f"{FOLDER} next to people.csv.ledger cannot be created"):
        pay(new(people.parent, "people.csv.ledger"), people)


def test_a_successor_elsewhere_leaves_no_second_budget(ledger: Ledger, people: Path, tmp_path: Path) -> None:
    """The people of a ledger that was carried on in another folder have a budget all the same."""
    pay(ledger, people)
    later = tmp_path / "later"
    later.mkdir()
    successor = ledger.succeed(later / "next.ledger")
    second, wider = new(tmp_path, "second.ledger"), town().append_column("n", pa.array(range(N)))
    for data in (people, saved(tmp_path, "wider.csv", wider)):
        with pytest.raises(BudgetError, match=r"people\.csv\.ledger"):
            pay(second, data)
    pay(successor, people, "s")


@pytest.mark.parametrize("place", ["the same folder", "the folder of the data"])
def test_a_copy_of_a_ledger_is_no_second_budget(
    ledger: Ledger, people: Path, tmp_path: Path, place: str
) -> None:
    folder = people.parent if place == "the same folder" else tmp_path / "elsewhere"
    folder.mkdir(exist_ok=True)
    copy = Ledger(Path(shutil.copy(ledger.path, folder / "copy.ledger")))
    pay(ledger, people, "s")  # a copy that has paid for nothing more is a backup
    with pytest.raises(
        BudgetError, match=r"people\.csv\.ledger is a copy of the ledger copy\.ledger with entries"
    ):
        pay(copy, people, "t")


def test_two_copies_that_both_have_paid_pay_no_more(ledger: Ledger, people: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    copy = Ledger(Path(shutil.copy(ledger.path, elsewhere / "copy.ledger")))
    copy.seal(copy.reserve(LOSS, request="t", purpose="a table", dataset=fingerprint(people)), {})
    pay(ledger, people, "s")  # what lies in another folder is not seen
    shutil.copy(copy.path, people.parent / "copy.ledger")
    for one in (ledger, Ledger(people.parent / "copy.ledger")):
        with pytest.raises(BudgetError, match="is a copy of the ledger"):
            pay(one, people, "u")


def test_a_ledger_behind_a_link_is_asked_too(people: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    behind = new(elsewhere, "town.ledger")
    pay(behind, people)
    (people.parent / "town.ledger").symlink_to(behind.path)
    (people.parent / "loop.ledger").symlink_to(people.parent / "loop.ledger")
    copy = saved(people.parent, "copy.csv", town().sort_by("age"))
    with pytest.raises(BudgetError, match=r"the people of copy\.csv are those that town\.ledger"):
        pay(new(people.parent, "second.ledger"), copy)
    pay(Ledger(people.parent / "town.ledger"), people, "s")  # a link to the payer is the payer
    assert behind.state().spent == Fraction(1, 5)


def test_a_copy_whose_entries_were_edited_stops_the_payer(ledger: Ledger, people: Path) -> None:
    copy = Path(shutil.copy(ledger.path, people.parent / "copy.ledger"))
    with sqlite3.connect(copy) as db:
        db.execute("UPDATE entries SET body = replace(body, '1/10', '1/99')")
    with pytest.raises(BudgetError, match=r"entry \d of the ledger copy\.ledger was edited"):
        pay(ledger, people, "s")
    copy.unlink()
    pay(ledger, people, "s")
