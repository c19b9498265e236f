"""The register: what was published before counts, two at once, a crash in between, and a hand in the files."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

import louver as lv
from louver._verdict import Level
from louver.data.fingerprint import fingerprint
from louver.errors import InputError
from louver.release import told
from louver.release.register import Memory, Register


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
    monkeypatch.setattr(sys.modules["louver.audit.judge"], "MAX_JOINT", 1)
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


def test_other_records_are_another_matter(people: Path) -> None:
    publish(people, EVERYONE, "one")
    other = people.with_name("other.csv")
    other.write_text(people.read_text().replace("30", "31"))
    second = publish(other, TOWN_A, "two")
    assert second.published and "holds 1 publication, none from this file" in second.remark
    assert second.remark in repr(second)


def test_a_new_register_says_so(people: Path) -> None:
    assert "register is new: it knows of nothing" in publish(people, EVERYONE, "one").remark
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
    memory = Memory.of(people.parent / "register", fingerprint(people))
    memory.append({"tables": [told.table("5-anonymous", margins=told.counts_of_classes(classes))]})


def test_a_k_anonymous_file_counts_by_its_classes(people: Path) -> None:
    enter_classes(people, [({"ill": ["y"]}, 12, 12), ({"ill": ["n"], "town": ["A", "B"]}, 55, 55)])
    refused = publish(people, TOWN_A, "one")
    worst = next(refused.disclosed())
    assert refused.published is None and (worst.lower, worst.upper) == (3, 3)
    assert worst.because[1].startswith("5-anonymous")


def test_classes_that_overlap_are_at_least_so_many(people: Path) -> None:
    enter_classes(people, [({"ill": ["y", "n"], "town": ["A"]}, 20, None), ({"town": ["A", "B"]}, 47, None)])
    found = lv.audit(people, weight="count", tables=[EVERYONE], registry=people.parent / "register")
    assert found.summary.small_exact == 0 and found.summary.certified == found.summary.targets


def test_a_class_with_labels_that_are_gone_is_an_error(people: Path) -> None:
    enter_classes(people, [({"ill": ["perhaps"]}, 12, 12)])
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
        register.append("ab", {"tables": [], "out": out})
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
    # Whatever the kill left, the same tables can be published, and what they would give away is still refused.
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
    with pytest.raises(InputError, match="entry 1 does not fit its hash"):
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
        register.append("ab", {"tables": []})


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
    with pytest.raises(InputError, match="exists already"):
        publish(people, EVERYONE, "there")


def test_a_filter_of_the_source_is_refused_beside_a_register(people: Path) -> None:
    """Its tables would be remembered as tables of all records."""
    with pytest.raises(InputError, match="--register and --where cannot") as caught:
        lv.audit(
            people, weight="count", tables=[EVERYONE], where="town = 'A'", registry=people.parent / "register"
        )
    assert caught.value.option == "--where"
