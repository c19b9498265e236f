"""The register: what was published before counts, two at once, a crash in between, and a hand in the files."""

from __future__ import annotations

import json
import multiprocessing
import os
import shutil
import signal
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

import louver as lv
from louver._verdict import Level
from louver.data import people as people_module
from louver.data.people import fingerprint
from louver.errors import InputError
from louver.privacy.budget import Measure
from louver.privacy.ledger import Ledger, People
from louver.privacy.neighbours import Relation
from louver.release import disclosures
from louver.release import register as register_module
from louver.release.matched_register import MatchedRegister
from louver.release.register import Register
from louver.schema.source import SourceOptions


@pytest.fixture
def people(tmp_path: Path) -> Path:
    path = tmp_path / "people.csv"
    rows = [("A", "y", 9), ("A", "n", 30), ("B", "y", 3), ("B", "n", 25)]
    town, ill, count = zip(*rows, strict=True)
    pa.csv.write_csv(pa.table({"town": town, "ill": ill, "count": count}), path)
    return path


EVERYONE = {"name": "everyone", "by": ["ill"]}
TOWN_A = {"name": "town A", "by": ["ill"], "where": {"town": "A"}}


def publish(people: Path, table: dict, out: str, register: str = "register"):
    folder = people.parent
    targets = [{"by": ["town", "ill"]}]
    return lv.audit(
        people,
        weight="count",
        tables=[table],
        targets=targets,
        registry=folder / register,
        publish=folder / out,
    )


def test_a_second_publication_that_gives_people_away_with_the_first_is_refused(people: Path) -> None:
    first = publish(people, EVERYONE, "one")
    assert first.published and lv.verify(first.published).passed
    second = publish(people, TOWN_A, "two")
    assert second.published is None and second.earlier == 1
    worst = next(second.disclosed())
    assert worst.lower == worst.upper == 3
    assert (
        worst.words.startswith('"everyone (published ') and 'minus "town A" leaves 3 people.' in worst.words
    )
    assert not (people.parent / "two").exists()
    assert len(Register(people.parent / "register").entries) == 1
    assert second.advice.leave_out == ("town A",)


def test_what_an_earlier_table_hides_is_not_given_away_by_a_later_one(tmp_path: Path) -> None:
    """Town A is neither a cell of the new table nor of the finest cross."""
    counts = {"A": (1, 2), "B": (9, 11), "C": (30, 40)}
    rows = [(town, sex, n) for town, both in counts.items() for sex, n in zip("fm", both, strict=True)]
    town, sex, count = zip(*rows, strict=True)
    path = tmp_path / "people.csv"
    pa.csv.write_csv(pa.table({"town": town, "sex": sex, "count": count}), path)
    hidden = {"name": "towns", "by": ["town"], "below": 5}
    merged = {"name": "merged", "by": ["town", "sex"], "recode": {"town": {"X": ["A", "B"], "Y": ["C"]}}}
    kept = {"weight": "count", "registry": tmp_path / "register"}
    assert lv.audit(path, tables=[hidden], publish=tmp_path / "one", **kept).published
    found = lv.audit(path, tables=[merged], publish=tmp_path / "two", **kept)
    assert found.published is None
    assert [(cell.cell, cell.lower, cell.upper) for cell in found.disclosed()] == [({"town": "A"}, 3, 3)]


def test_small_cells_of_a_large_cross_are_looked_at(people: Path, monkeypatch) -> None:
    monkeypatch.setattr(sys.modules["louver.audit.targets"], "MAX_JOINT", 1)
    kept = {"weight": "count", "registry": people.parent / "register"}
    assert lv.audit(people, tables=[EVERYONE], publish=people.parent / "one", **kept).published
    found = lv.audit(people, tables=[TOWN_A], publish=people.parent / "two", **kept)
    assert found.published is None and next(found.disclosed()).cell == {"town": "B", "ill": "y"}
    asked = lv.audit(people, tables=[TOWN_A], **kept)
    assert asked.verdict.level is Level.STOP and next(asked.disclosed()).cell == {"town": "B", "ill": "y"}


def test_targets_do_not_keep_small_cells_from_being_looked_at(people: Path) -> None:
    kept = {"weight": "count", "registry": people.parent / "register"}
    table = {"name": "all", "by": ["town", "ill"]}
    elsewhere = [{"by": ["ill"]}]
    found = lv.audit(people, tables=[table], targets=elsewhere, publish=people.parent / "one", **kept)
    assert found.published is None and next(found.disclosed()).lower == 3
    assert {cell.table for cell in lv.audit(people, tables=[table], targets=elsewhere, **kept).cells} == {
        "target 1"
    }


@pytest.mark.parametrize("decide", [False, True])
def test_what_was_not_found_out_in_time_is_not_published(people: Path, decide: bool) -> None:
    found = lv.audit(
        people,
        weight="count",
        tables=[{"name": "rounded", "by": ["town", "ill"], "base": 3, "totals": True}],
        registry=people.parent / "register",
        publish=people.parent / "one",
        seconds=1e-9,
        decide=decide,
    )
    assert found.published is None and not list(found.disclosed())
    assert found.verdict.level is Level.CARE and "more seconds" in found.refusal


def test_the_same_again_is_no_more_than_before(people: Path) -> None:
    publish(people, EVERYONE, "one")
    assert publish(people, EVERYONE, "again").published
    assert len(Register(people.parent / "register").entries) == 2


def saved_otherwise(people: Path, change) -> Path:
    other = people.with_name("other.csv")
    head, *rows = people.read_text().splitlines()
    other.write_text("\n".join(change(head, rows)) + "\n")
    return other


SAME_PEOPLE = {
    "sorted otherwise": lambda head, rows: [head, *reversed(rows)],
    "a column added": lambda head, rows: [head + ",year", *(row + ",2026" for row in rows)],
    "columns in another order": lambda head, rows: [
        ",".join(reversed(row.split(","))) for row in (head, *rows)
    ],
}


@pytest.mark.parametrize("change", SAME_PEOPLE.values(), ids=SAME_PEOPLE)
def test_the_same_people_saved_otherwise_are_known_again(people: Path, change) -> None:
    """Before, they were "none from this file", and the second table was published."""
    assert publish(people, EVERYONE, "one").published
    refused = publish(saved_otherwise(people, change), TOWN_A, "two")
    assert refused.published is None and refused.earlier == 1 and refused.remark is None
    worst = next(refused.disclosed())
    assert (worst.cell, worst.lower, worst.upper) == ({"town": "B", "ill": "y"}, 3, 3)


def test_a_table_of_a_column_that_is_gone_cannot_be_audited(people: Path) -> None:
    publish(people, {"name": "towns", "by": ["town"]}, "one")
    other = people.with_name("other.csv")
    pa.csv.write_csv(pa.table({"ill": ["y", "n", "y", "n"], "count": [9, 30, 3, 25]}), other)
    with pytest.raises(InputError, match='publication 1 refers to column "town"') as caught:
        publish(other, EVERYONE, "two")
    assert (caught.value.option, caught.value.column) == ("--register", "town")


def test_records_that_changed_are_not_published_beside_the_old_ones(people: Path) -> None:
    publish(people, EVERYONE, "one")
    other = saved_otherwise(people, lambda head, rows: [head, *(row.replace("30", "31") for row in rows)])
    with pytest.raises(
        InputError, match=r"99 % of the people of other.csv, all of the earlier ones"
    ) as caught:
        publish(other, TOWN_A, "two")
    assert caught.value.option == "--register" and "--new-population" in str(caught.value)
    asked = {"weight": "count", "tables": [TOWN_A], "registry": people.parent / "register"}
    with pytest.raises(InputError, match="cannot be audited"):
        lv.audit(other, **asked)
    second = lv.audit(other, **asked, new_population=True, publish=people.parent / "two")
    assert second.published and second.earlier == 0 and "count as other people" in second.remark
    assert second.verdict.level is Level.CARE and "or together" not in str(second.verdict)
    assert second.remark[1:] in str(second.verdict)


def test_other_people_are_published_where_the_steward_says_so(people: Path) -> None:
    publish(people, EVERYONE, "one")
    other = saved_otherwise(people, lambda head, rows: [head, "C,y,12", "C,n,40", "D,y,9", "D,n,22"])
    asked = {"weight": "count", "registry": people.parent / "register", "no_advice": True}
    alone = lv.audit(other, tables=[EVERYONE], **asked)
    assert "holds 1 publication, none of them about people who were found in other.csv" in alone.remark
    assert alone.remark in repr(alone)
    with pytest.raises(InputError, match="none of them about people who were found in other.csv"):
        publish(other, EVERYONE, "two")
    told = lv.audit(other, tables=[EVERYONE], publish=people.parent / "two", new_population=True, **asked)
    assert told.published and told.earlier == 0
    # Said once, it is remembered from both sides.
    third = publish(other, EVERYONE, "three")
    assert third.published and third.earlier == 1 and third.remark is None
    fourth = publish(people, EVERYONE, "four")
    assert fourth.published and fourth.earlier == 1


def test_people_without_a_column_in_common_are_not_taken_for_others(people: Path) -> None:
    publish(people, EVERYONE, "one")
    other = people.with_name("other.csv")
    pa.csv.write_csv(pa.table({"sex": ["f", "m"], "count": [30, 40]}), other)
    with pytest.raises(
        InputError, match="publication 1 are about the same people, for they have no columns in common"
    ):
        lv.audit(
            other,
            weight="count",
            tables=[{"name": "sex", "by": ["sex"]}],
            registry=people.parent / "register",
        )


def test_the_same_records_are_no_new_population(people: Path) -> None:
    publish(people, EVERYONE, "one")
    with pytest.raises(InputError, match="--new-population: people.csv has the same records") as caught:
        lv.audit(
            people,
            weight="count",
            tables=[EVERYONE],
            registry=people.parent / "register",
            new_population=True,
        )
    assert caught.value.option == "--new-population"


def test_files_of_the_same_records_are_one_family(people: Path) -> None:
    """The third file has no column in common with the first; the second joins them."""
    registry = people.parent / "register"

    def published(name: str, columns: dict, by: str) -> int:
        path = people.with_name(f"{name}.csv")
        pa.csv.write_csv(pa.table(columns), path)
        table = {"name": by, "by": [by]}
        return lv.audit(
            path, tables=[table], registry=registry, publish=people.parent / name, no_advice=True
        ).earlier

    a, b, c = ["x", "y"] * 20, ["p"] * 10 + ["q"] * 30, ["u"] * 18 + ["v"] * 22
    assert published("first", {"a": a, "b": b}, "b") == 0
    assert published("second", {"a": a, "b": b, "c": c}, "b") == 1
    with pytest.raises(InputError, match='publication 1 refers to column "b"'):
        published("third", {"c": c}, "c")


def test_a_column_of_persons_knows_people_whose_values_changed(tmp_path: Path) -> None:
    def file(name: str, start: int, ages: int) -> Path:
        path = tmp_path / name
        rows = [f"{n},{'fm'[n % 2]},{20 + (n + ages) % 40}" for n in range(start, start + 80)]
        path.write_text("\n".join(["id,sex,age", *rows]) + "\n")
        return path

    asked = {"tables": [{"name": "sex", "by": ["sex"]}], "registry": tmp_path / "register"}
    first = lv.audit(file("old.csv", 0, 0), **asked, person="id", publish=tmp_path / "one")
    assert first.published
    with pytest.raises(InputError, match=r"75 % of the people of new.csv, 75 % of the earlier ones"):
        lv.audit(file("new.csv", 20, 1), **asked)  # the register remembers which column tells persons apart
    text = "".join(path.read_text() for path in (tmp_path / "register").glob("*.json"))
    assert '"id"' in text
    with pytest.raises(InputError, match='"person number"'):
        lv.audit(tmp_path / "new.csv", **asked, person="person number")
    with pytest.raises(InputError, match="--person needs --register"):
        lv.audit(tmp_path / "new.csv", tables=asked["tables"], person="id")


def test_people_who_are_others_by_an_earlier_word_are_a_doubt_again(tmp_path: Path) -> None:
    """The word was given once, for a publication that shares only the sex of these people; later verdicts were "ok"."""

    def published(name: str, **columns: list[str]) -> lv.JointAudit:
        path = tmp_path / f"{name}.csv"
        pa.csv.write_csv(pa.table(columns), path)
        asked = {"registry": tmp_path / "register", "new_population": name == "staff"}
        by = [key for key in columns if key != "sex"]
        return lv.audit(
            path, tables=[{"name": name, "by": by}], publish=tmp_path / name, no_advice=True, **asked
        )

    sex = ["f"] * 30 + ["m"] * 30
    assert published("patients", sex=sex, ward=["A", "B"] * 30).verdict.level == "ok"
    staff = {"sex": sex[:40], "grade": ["x", "y"] * 20}
    first = published("staff", **staff)
    assert first.verdict.level == "care" and "compared by sex" in str(first.verdict)
    again = published("later", **staff)
    assert again.published and again.verdict.level == "care"
    assert "by an earlier --new-population they count as other people" in str(again.verdict)
    assert again.earlier == 1


def test_exact_publications_that_only_a_ledger_lists_are_a_doubt(tmp_path: Path) -> None:
    """An invariant of a noisy release may be the very count that a table hides."""
    path = tmp_path / "people.csv"
    towns = ["A"] * 9 + ["B"] * 30
    pa.csv.write_csv(pa.table({"town": towns, "ill": ["y"] * 3 + ["n"] * 33 + ["y"] * 3}), path)
    ledger = Ledger.create(
        tmp_path / "people.csv.ledger", measure=Measure.EPSILON, neighbours=Relation.CHANGE_RECORD
    )
    asked = {
        "tables": [{"name": "towns", "by": ["town"]}],
        "registry": tmp_path / "register",
        "fail_on": "small",
    }
    assert lv.audit(path, **asked).verdict.level is Level.OK
    ledger.disclose('topdown: the counts of invariant "ill"', dataset=fingerprint(path), people=People(path))
    for kept in ({}, {"publish": tmp_path / "one"}, {"publish": tmp_path / "one", "accept_unchecked": True}):
        found = lv.audit(path, **asked, **kept)
        assert found.verdict.level is Level.CARE and 'of invariant "ill"' in " ".join(found.verdict.reasons)
        assert found.summary.undecided == 1 and not found.passed
        assert (found.published is None) == ("accept_unchecked" not in kept)
        assert found.is_acceptable == ("accept_unchecked" not in kept)
    assert lv.verify(tmp_path / "one").passed
    hidden = {
        "tables": [{"name": "ill", "by": ["ill"]}],
        "rules": [{"rule": "frequency", "minimum": 3}],
        "registry": tmp_path / "new",
    }
    protected = lv.protect(path, **hidden, out=tmp_path / "two")
    assert 'of invariant "ill"' in str(protected.verdict)
    assert protected.is_acceptable and protected.published is None
    protected = lv.protect(path, **hidden, out=tmp_path / "two", accept_unchecked=True)
    assert protected.published and protected.verdict.level is Level.CARE
    assert str(protected.verdict).count('of invariant "ill"') == 1
    into = {"quasi": ["town"], "sensitive": ["ill"], "k": 3, "steps": 1, "registry": tmp_path / "file"}
    with pytest.raises(InputError, match="a ledger lists exact publications.*--accept-unchecked"):
        lv.anonymize(path, **into, out=tmp_path / "three")
    file = lv.anonymize(path, **into, out=tmp_path / "three", accept_unchecked=True)
    assert file.verdict.level is Level.CARE and 'of invariant "ill"' in str(file.verdict)
    copy = tmp_path / "copy.parquet"
    pa.parquet.write_table(pa.csv.read_csv(path).take(list(reversed(range(39)))), copy)
    assert lv.audit(copy, **asked).verdict.level is Level.CARE
    ledger.succeed(tmp_path / "next.ledger")
    (reason,) = [one for one in lv.audit(path, **asked).verdict.reasons if "ledger" in one]
    assert reason.count("topdown") == 1
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    shutil.copy(path, elsewhere)
    assert lv.audit(elsewhere / "people.csv", **asked).verdict.level is Level.OK


def test_a_file_that_ledger_and_register_have_is_no_doubt(people: Path) -> None:
    folder = people.parent
    pa.csv.write_csv(
        pa.table({"town": ["A", "B"] * 12, "ill": ["y"] * 12 + ["n"] * 12}), folder / "records.csv"
    )
    ledger = folder / "records.csv.ledger"
    Ledger.create(ledger, measure=Measure.EPSILON, neighbours=Relation.CHANGE_RECORD)
    asked = {"quasi": ["town"], "sensitive": ["ill"], "k": 3, "recoding": "global", "steps": 1}
    for register, level in (("register", Level.OK), (None, Level.CARE)):
        kept = {} if register is None else {"registry": folder / register}
        lv.anonymize(folder / "records.csv", out=folder / f"{level}", **asked, **kept)
        (folder / "register").mkdir(exist_ok=True)
        found = lv.audit(
            folder / "records.csv", tables=[{"name": "towns", "by": ["town"]}], registry=folder / "register"
        )
        assert found.verdict.level is level


def test_a_spoilt_sketch_and_an_entry_of_another_format_are_one_sentence(people: Path) -> None:
    publish(people, EVERYONE, "one")
    folder = people.parent / "register"
    [sketch] = folder.glob("people-*.json")
    text = sketch.read_text()
    for spoilt in ("{", text.replace("town", "Town")):
        sketch.write_text(spoilt)
        with pytest.raises(InputError, match="lacks people-"):
            publish(people, EVERYONE, "two")
    sketch.write_text(text)
    entry = json.loads((folder / "000001.json").read_text())
    del entry["digest"]
    without = {key: value for key, value in entry.items() if key != "format"}
    for other, says in (
        ({**entry, "format": 2}, "a format that this version of louver"),
        (without, "was edited"),
    ):
        (folder / "000001.json").write_text(json.dumps({**other, "digest": register_module._digest(other)}))
        with pytest.raises(InputError, match=says):
            publish(people, EVERYONE, "two")


@pytest.mark.parametrize("spoilt", ["[" * 200_000, '{"number": 1' + "1" * 10_000 + "}", '{"number": NaN}'])
def test_an_entry_that_no_register_has_is_one_sentence(people: Path, spoilt: str) -> None:
    publish(people, EVERYONE, "one")
    (people.parent / "register/000001.json").write_text(spoilt)
    with pytest.raises(InputError, match="entry 1 does not match its hash"):
        Register(people.parent / "register")


def test_files_of_a_register_are_read_up_to_a_size(people: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    publish(people, EVERYONE, "one")
    folder = people.parent / "register"
    records = Register(folder).entries[0].records
    (folder / "head").write_text("0" * 5_000)
    with pytest.raises(InputError, match="rolled back"):
        Register(folder)
    (folder / "head").unlink()
    register = Register(folder)
    monkeypatch.setattr("louver.release.register.MOST_BYTES", 20)
    with pytest.raises(InputError, match="store a publication this large"):
        register.append({"tables": []}, records)
    with pytest.raises(InputError, match="lacks people-"):
        register.sketch(records)
    with pytest.raises(InputError, match="does not match its hash"):
        Register(folder)


def test_a_new_register_says_so(people: Path) -> None:
    assert "register is new: it has no earlier publications" in publish(people, EVERYONE, "one").remark
    assert publish(people, EVERYONE, "again").remark is None


@pytest.mark.parametrize(
    "table",
    [
        {"name": "hidden", "by": ["town", "ill"], "totals": True, "hide": [{"town": t, "ill": i} for t in "AB" for i in "yn"]},
        {"name": "rounded", "by": ["town", "ill"], "base": 5},
        {"name": "shares", "rows": ["town"], "cols": ["ill"], "decimals": 1},
        {"name": "exact shares", "rows": ["town"], "cols": ["ill"]},
        {"name": "recoded", "by": ["town"], "recode": {"town": {"both": ["A", "B"]}}},
    ],
    ids=lambda table: table["name"],
)  # fmt: skip
def test_every_kind_of_table_is_published_verified_and_remembered(people: Path, table: dict) -> None:
    found = publish(people, table, "one")
    assert found.published, [cell.words for cell in found.disclosed()]
    assert lv.verify(found.published).passed
    again = lv.audit(
        people, weight="count", tables=[EVERYONE], registry=people.parent / "register", no_advice=True
    )
    assert again.earlier == 1 and again.tables[-1].startswith(table["name"])


def enter_classes(people: Path, classes: list) -> None:
    memory = MatchedRegister.of(
        people.parent / "register", people, SourceOptions(weight="count"), is_publishing=True
    )
    names = list(dict.fromkeys(name for where, _ in classes for name in where))
    file = disclosures.file(
        "5-anonymous",
        quasi=names,
        values=[[where.get(name) for where, _ in classes] for name in names],
        columns={},
        rows=[[number] * len(names) for number in range(len(classes))],
        counts=[count for _, count in classes],
        n_left_out=0,
        where={},
        too_large=["income"],
        is_one_recoding=False,
    )
    memory.append({"tables": [], "files": [file]})


def test_a_k_anonymous_file_counts_by_its_classes(people: Path) -> None:
    enter_classes(people, [({"ill": ["y"]}, 12), ({"ill": ["n"], "town": ["A", "B"]}, 55)])
    refused = publish(people, TOWN_A, "one")
    worst = next(refused.disclosed())
    assert refused.published is None and (worst.lower, worst.upper) == (3, 3)
    assert worst.because[1].startswith("5-anonymous")


def test_classes_that_overlap_are_at_least_so_many(people: Path) -> None:
    enter_classes(people, [({"ill": ["y", "n"], "town": ["A"]}, 20), ({"town": ["A", "B"]}, 47)])
    found = lv.audit(people, weight="count", tables=[EVERYONE], registry=people.parent / "register")
    assert found.summary.small_exact == 0 and found.summary.certified == found.summary.targets


def enter_illnesses(file: Path, *, too_large: list[str]) -> None:
    """One recoding: A and B are one class, and the illnesses of all classes are published."""
    memory = MatchedRegister.of(file.parent / "register", file, SourceOptions(), is_publishing=True)
    kept = disclosures.file(
        "4-anonymous",
        quasi=["town"],
        values=[[["A", "B"], ["C"]]],
        columns={"ill": ["flu", "none"]},
        rows=[[0, 0], [0, 1], [1, 0], [1, 1]],
        counts=[1, 3, 5, 5],
        n_left_out=0,
        where={},
        too_large=too_large,
        is_one_recoding=True,
    )
    memory.append({"tables": [], "files": [kept]})


def test_columns_that_a_file_keeps_are_asked_about_although_no_table_names_them(tmp_path: Path) -> None:
    """The table shows that all of "A or B" live in A; then the one with flu is the one of A."""
    file = tmp_path / "people.csv"
    rows = ["A,flu", *["A,none"] * 3, *["C,flu"] * 5, *["C,none"] * 5]
    file.write_text("\n".join(["town,ill", *rows]) + "\n")
    (tmp_path / "spec.toml").write_text('[attributes.town]\nlabels = ["A", "B", "C"]\n')
    enter_illnesses(file, too_large=[])
    found = lv.audit(
        file,
        spec=tmp_path / "spec.toml",
        tables=[{"name": "towns", "by": ["town"]}],
        registry=tmp_path / "register",
        small=3,
    )
    assert [cell.cell for cell in found.disclosed()] == [{"town": "A", "ill": "flu"}]


def test_columns_of_a_file_that_are_not_described_leave_the_question_open(tmp_path: Path) -> None:
    file = tmp_path / "people.csv"
    rows = ["A,flu", "A,none", *["B,none"] * 2, *["C,flu"] * 5, *["C,none"] * 5]
    file.write_text("\n".join(["town,ill", *rows]) + "\n")
    enter_illnesses(file, too_large=["income"])
    table = {"name": "A to C", "by": ["town"], "recode": {"town": {"AB": ["A", "B"], "C": ["C"]}}}
    asked = {"registry": tmp_path / "register", "small": 3}
    found = lv.audit(file, tables=[table], publish=tmp_path / "out", fail_on="small", **asked)
    assert found.published is None and not found.passed and found.summary.undecided == 1
    accepted = lv.audit(file, tables=[table], publish=tmp_path / "out", accept_unchecked=True, **asked)
    assert accepted.published and accepted.verdict.level is Level.CARE
    hidden = table | {"below": 3}
    (plan,) = lv.audit(file, tables=[hidden], hide=True, **asked).hide
    assert not plan.is_safe and not plan.listed
    with pytest.raises(InputError, match="--accept-unchecked needs --register") as caught:
        lv.audit(file, tables=[table], accept_unchecked=True)
    assert caught.value.option == "--accept-unchecked"


def test_a_class_with_labels_that_are_gone_is_an_error(people: Path) -> None:
    enter_classes(people, [({"ill": ["perhaps"]}, 12)])
    with pytest.raises(InputError, match='other labels of "ill"'):
        publish(people, EVERYONE, "one")


def test_a_spoilt_file_breaks_its_promise(people: Path) -> None:
    found = publish(people, {**EVERYONE, "totals": True}, "one")
    [file] = (Path(found.published) / "data").glob("*.parquet")
    table = pa.parquet.read_table(file)
    counts = [n + (place == 0) for place, n in enumerate(table["count"].to_pylist())]
    pa.parquet.write_table(table.set_column(1, "count", pa.array(counts)), file)
    assert not lv.verify(found.published).passed


def _publish_in_a_child(people: Path, out: str, ready, go) -> None:
    """Audit, wait for the other, then enter."""
    register = Register(people.parent / "register")
    ready.put(out)
    go.wait()
    try:
        register.append({"tables": [], "out": out}, "ab")
        ready.put((out, "entered"))
    except InputError as error:
        ready.put((out, str(error)))


def test_of_two_at_once_the_second_is_told_to_audit_again(people: Path) -> None:
    context = multiprocessing.get_context("spawn")
    ready, go = context.Queue(), context.Event()
    Register(people.parent / "register")
    children = [
        context.Process(target=_publish_in_a_child, args=(people, out, ready, go)) for out in ("one", "two")
    ]
    for child in children:
        child.start()
    assert {ready.get(timeout=3600), ready.get(timeout=3600)} == {"one", "two"}
    go.set()
    outcomes = dict([ready.get(timeout=3600), ready.get(timeout=3600)])
    for child in children:
        child.join(timeout=3600)
    assert sorted(told == "entered" for told in outcomes.values()) == [False, True]
    assert any("run the audit again" in told for told in outcomes.values())
    assert len(Register(people.parent / "register").entries) == 1


def _die_at(event: str, people: Path) -> None:
    """Publish, and be killed at a named moment."""
    real = getattr(os, event)

    def killed(*args, **kwargs):
        if any("register" in str(argument) for argument in args):
            os.kill(os.getpid(), signal.SIGKILL)
        return real(*args, **kwargs)

    Register(people.parent / "register")
    setattr(os, event, killed)
    publish(people, EVERYONE, "one")


@pytest.mark.long
@pytest.mark.parametrize("event", ["link", "replace"])
def test_a_kill_leaves_an_entry_whole_or_not_at_all(people: Path, event: str) -> None:
    context = multiprocessing.get_context("spawn")
    child = context.Process(target=_die_at, args=(event, people))
    child.start()
    child.join(timeout=3600)
    assert child.exitcode == -signal.SIGKILL
    entries = Register(people.parent / "register").entries
    assert len(entries) == (0 if event == "link" else 1)
    assert not (people.parent / "one").exists()
    # Whatever the kill left, the same tables can be published, and what they would disclose is still refused.
    assert publish(people, EVERYONE, "one").published
    assert publish(people, TOWN_A, "two").published is None


def test_an_edited_missing_or_rolled_back_entry_is_noticed(people: Path) -> None:
    folder = people.parent / "register"
    for out in ("one", "two"):
        publish(people, EVERYONE, out)
    first, second = folder / "000001.json", folder / "000002.json"
    kept = first.read_text()
    told = json.loads(kept)
    told["content"]["tables"] = []
    first.write_text(json.dumps(told))
    with pytest.raises(InputError, match="entry 1 does not match its hash"):
        Register(folder)
    first.write_text("{")
    with pytest.raises(InputError, match="entry 1"):
        Register(folder)
    first.unlink()
    with pytest.raises(InputError, match="lacks entry 1"):
        Register(folder)
    first.write_text(kept)
    second.unlink()
    with pytest.raises(InputError, match="rolled back"):
        Register(folder)


def test_a_register_that_cannot_be_opened_is_one_sentence(people: Path) -> None:
    (people.parent / "register").write_text("not a folder")
    with pytest.raises(InputError, match="cannot be opened"):
        publish(people, EVERYONE, "one")


def test_a_register_that_cannot_be_written_is_one_sentence(
    people: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    register = Register(people.parent / "register")
    monkeypatch.setattr(os, "link", lambda *_: (_ for _ in ()).throw(OSError(28, "full")))
    with pytest.raises(InputError, match="cannot be written"):
        register.append({"tables": []}, "ab")


def test_other_labels_than_before_are_an_error(people: Path) -> None:
    publish(people, EVERYONE, "one")
    register = people.parent / "register"
    labels = {"attributes": {"ill": {"labels": ["y", "n"]}}, "audit": {"tables": [EVERYONE]}}
    with pytest.raises(InputError, match='other labels of "ill"'):
        lv.audit(people, weight="count", spec=labels, registry=register)


def test_options_that_do_not_go_together(people: Path) -> None:
    with pytest.raises(InputError, match="needs --register"):
        lv.audit(people, weight="count", tables=[EVERYONE], publish=people.parent / "one")
    with pytest.raises(InputError, match="needs the records"):
        lv.audit(tables=[{**EVERYONE, "file": "t.csv"}], registry=people.parent / "register")
    (people.parent / "there").mkdir()
    with pytest.raises(InputError, match="already exists"):
        publish(people, EVERYONE, "there")


def audit_some(people: Path, where: str, table: dict, out: str | None = None, **more: object):
    kept = {"weight": "count", "registry": people.parent / "register", "no_advice": True}
    published = None if out is None else people.parent / out
    return lv.audit(people, tables=[table], where=where, publish=published, **kept, **more)


def test_a_table_of_some_records_is_remembered_as_such(people: Path) -> None:
    """Before, --register refused --where. Town A with all people leaves the 3 of town B."""
    first = audit_some(people, "town = 'A'", EVERYONE, "one")
    assert first.published and first.remark.startswith("the register is new")
    (entry,) = Register(people.parent / "register").entries
    assert [margin["where"] for margin in entry.content["tables"][0]["margins"]] == [{"town": ["A"]}]
    refused = publish(people, EVERYONE, "two")
    assert refused.published is None and next(refused.disclosed()).lower == 3


def test_a_table_of_some_records_is_audited_with_tables_of_all(people: Path) -> None:
    publish(people, EVERYONE, "one")
    refused = audit_some(people, "town in ('A', 'Z') and not ill is missing", EVERYONE, "two")
    assert refused.published is None and refused.earlier == 1
    assert next(refused.disclosed()).lower == 3


def test_a_filter_meets_recodes_and_filters_of_the_tables(people: Path) -> None:
    merged = {
        "name": "merged",
        "by": ["ill"],
        "where": {"town": ["both"]},
        "recode": {"town": {"both": ["A", "B"]}},
    }
    with pytest.raises(InputError, match='"merged" merges labels of "town", but --where') as caught:
        audit_some(people, "town = 'A'", merged)
    assert (caught.value.option, caught.value.column) == ("--where", "town")
    renamed = {**merged, "where": {"town": ["first"]}, "recode": {"town": {"first": ["A"]}}}
    assert audit_some(people, "town = 'A'", renamed, "one").published
    with pytest.raises(InputError, match="excludes every label of --where"):
        audit_some(people, "town = 'B'", TOWN_A)
    known = [{"where": {"ill": "y"}, "exactly": 9}]
    found = audit_some(people, "town = 'A'", EVERYONE, known=known, targets=[{"by": ["town"]}])
    assert [(cell.cell, cell.lower) for cell in found.cells] == [({"town": "A"}, 39)]


@pytest.mark.parametrize(
    ("where", "told"),
    [
        ("town = 'A' or ill = 'y'", "involves several columns"),
        ("town = ill", "involves several columns"),
        ("count > 26", 'cuts through a label of "count"'),
    ],
)
def test_a_filter_that_is_no_set_of_labels_is_one_sentence(people: Path, where: str, told: str) -> None:
    spec = {"attributes": {"count": {"kind": "integer", "bins": [5, 20]}}}
    table = {"name": "ill", "by": ["ill"]}
    with pytest.raises(InputError, match=told) as caught:
        lv.audit(people, tables=[table], where=where, spec=spec, registry=people.parent / "register")
    assert caught.value.option == "--where"


def test_a_table_of_some_records_lists_their_labels_alone(people: Path) -> None:
    table = {"name": "towns", "by": ["town", "ill"], "totals": True}
    found = audit_some(people, "town = 'A'", table, "one")
    assert found.published and lv.verify(found.published).passed
    shown = pa.csv.read_csv(next((people.parent / "one/data").glob("*.csv"))).to_pylist()
    assert {row["town"] for row in shown} == {"A", "Total"}
    assert {row["count"] for row in shown} == {9, 30, 39}


def test_a_file_of_some_records_is_audited_as_such(tmp_path: Path) -> None:
    path = tmp_path / "people.csv"
    rows = [("A", 30, "y")] * 6 + [("A", 40, "n")] * 9 + [("B", 30, "y")] * 3 + [("B", 50, "n")] * 7
    path.write_text("town,age,ill\n" + "".join(f"{t},{a},{i}\n" for t, a, i in rows))
    register = tmp_path / "register"
    lv.anonymize(
        path,
        quasi=["age"],
        keep=["ill", "town"],
        k=5,
        where="town = 'A'",
        registry=register,
        out=tmp_path / "file",
    )
    (entry,) = Register(register).entries
    assert entry.content["files"][0]["where"] == {"town": ["A"]}
    asked = {"registry": register, "no_advice": True, "targets": [{"by": ["town", "ill"]}]}
    refused = lv.audit(path, tables=[{"name": "ill", "by": ["ill"]}], publish=tmp_path / "out", **asked)
    worst = next(refused.disclosed())
    assert refused.published is None and (worst.cell["town"], worst.cell["ill"], worst.lower) == ("B", "y", 3)


def test_a_few_people_whom_a_sample_may_miss_are_not_taken_for_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(people_module, "SAMPLE", 20)
    table = pa.table({"id": [f"p{i}" for i in range(2000)], "ill": ["y", "n"] * 1000})
    pa.csv.write_csv(table, tmp_path / "all.csv")
    asked = {"tables": [EVERYONE], "registry": tmp_path / "register", "no_advice": True}
    assert lv.audit(tmp_path / "all.csv", publish=tmp_path / "one", **asked).published
    pa.csv.write_csv(
        pa.table({"id": [f"q{i}" for i in range(40)], "ill": ["y", "n"] * 20}), tmp_path / "few.csv"
    )
    with pytest.raises(
        InputError,
        match="it is not known whether .* one of them has too few people to be found in a sample",
    ) as caught:
        lv.audit(tmp_path / "few.csv", **asked)
    assert "--new-population" in str(caught.value)
    assert "not known" in lv.audit(tmp_path / "few.csv", new_population=True, **asked).remark


def test_a_folder_of_other_files_is_no_register(people: Path) -> None:
    published = publish(people, EVERYONE, "one").published
    before = sorted(os.listdir(published))
    with pytest.raises(
        InputError, match="one is not a register but contains other files; name a new or an empty folder"
    ):
        Register(published)
    assert sorted(os.listdir(published)) == before
    (people.parent / "empty").mkdir()
    assert Register(people.parent / "empty").entries == []
