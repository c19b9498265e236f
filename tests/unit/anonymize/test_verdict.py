"""One verdict, which every surface renders."""

from __future__ import annotations

import json
import re

import pyarrow as pa
import pytest

import louver as lv
from louver._verdict import Level
from louver.anonymize.methods import CHOICES
from louver.anonymize.watch import Stopped
from louver.errors import InputError
from louver.report.anonymize import inside_report

AGES = [31, 33, 34, 52, 55, 58, 59, 60]


def people(**more: list[object]) -> pa.Table:
    return pa.table({"age": AGES, **more})


FINDINGS = {
    "alone": "are unique to anyone",
    "worked-out": "can be inferred exactly",
    "alike": "all have the same value of",
    "lost": "More than half",
    "weaker": "weaker",
    "stopped": "reached its limit",
}


def abouts(release: lv.AnonymizedRelease) -> set[str]:
    """What the reasons of the verdict speak of."""
    told = " ".join(release.verdict.reasons)
    return {about for about, words in FINDINGS.items() if words in told}


def check_everywhere(release: lv.AnonymizedRelease) -> None:
    """Screen, JSON and the steward's page say the same."""
    verdict = release.verdict
    sentences = [verdict.sentence, *verdict.reasons]
    page = re.sub("</?code>", "", inside_report(release)).replace("&quot;", '"').replace("&#x27;", "'")
    assert all(sentence in repr(release) and sentence in page for sentence in sentences)
    assert json.loads(release.to_json())["verdict"] == verdict.to_dict()


def test_a_file_with_nothing_but_narrow_classes_is_ok_and_says_what_was_not_asked() -> None:
    release = lv.anonymize(people(), quasi=["age"], k=2, method="exact")
    assert release.verdict.level is Level.OK and not abouts(release)
    assert any("--against" in sentence for sentence in release.verdict.reasons)
    check_everywhere(release)


def test_kept_columns_that_tell_people_apart_or_give_values_back_need_care() -> None:
    table = people(plan=["a", "a", "a", "b", "b", "c", "c", "c"], hours=[8, 7, 6, 5, 4, 3, 2, 1])
    release = lv.anonymize(table, quasi=["age"], keep=["plan", "hours"], k=3, method="exact")
    assert release.verdict.level is Level.CARE and abouts(release) == {"alone"}
    check_everywhere(release)
    table = pa.table({"town": ["A"] * 3 + ["B"] * 3 + ["C"] * 3, "zip": [1, 1, 1, 2, 2, 2, 3, 3, 3]})
    release = lv.anonymize(table, quasi=["town"], keep=["zip"], k=4, method="sorted")
    assert "worked-out" in abouts(release)
    check_everywhere(release)


def test_classes_of_one_sensitive_value_need_care() -> None:
    ill = ["flu", "flu", "flu", "cold", "flu", "cold", "flu", "cold"]
    release = lv.anonymize(people(ill=ill), quasi=["age"], sensitive=["ill"], k=3, method="exact")
    classes: dict[str, list[str]] = {}
    for row in release.to_frame().to_pylist():
        classes.setdefault(row["age"], []).append(row["ill"])
    known = sum(len(values) for values in classes.values() if len(set(values)) == 1)
    assert known and release.alike == (("ill", known),) and "alike" in abouts(release)
    check_everywhere(release)
    release = lv.anonymize(people(ill=ill), quasi=["age"], sensitive=["ill"], k=3, l=2, method="exact")
    assert "alike" not in abouts(release)


def test_a_file_that_lost_most_and_a_weaker_guarantee_need_care() -> None:
    assert "lost" in abouts(lv.anonymize(people(), quasi=["age"], k=8, method="sorted"))
    assert "weaker" in abouts(lv.anonymize(people(), quasi=["age"], k=2, method="freeform-greedy"))


def numbers(n: int) -> pa.Table:
    return pa.table({"a": [i * 37 % 101 for i in range(n)], "b": [i * 53 % 97 for i in range(n)]})


@pytest.mark.parametrize("method", [name for name in CHOICES if name not in ("sorted", "exact")])
def test_a_search_cut_off_by_the_clock_says_so(method: str) -> None:
    """A millionth of a second is no time on any machine."""
    release = lv.anonymize(numbers(600), quasi=["a", "b"], k=3, method=method, seconds=1e-6)
    assert release.stopped is Stopped.UNFINISHED and release.verdict.level is Level.CARE
    assert "stopped" in abouts(release) and json.loads(release.to_json())["stopped"] == "unfinished"
    check_everywhere(release)


def test_one_recoding_cut_off_by_the_clock_says_so() -> None:
    release = lv.anonymize(numbers(300), quasi=["a", "b"], k=3, recoding="global", seconds=1e-6)
    assert release.stopped is Stopped.UNFINISHED


def test_a_search_that_was_improving_or_ended_by_itself_is_told_apart() -> None:
    release = lv.anonymize(numbers(300), quasi=["a", "b"], k=3, steps=2)
    assert release.stopped is Stopped.IMPROVING and "limit of the search" in repr(release)
    assert "stopped" not in abouts(release)
    assert lv.anonymize(numbers(300), quasi=["a", "b"], k=3, method="greedy", steps=1).stopped is None
    assert lv.anonymize(numbers(12), quasi=["a", "b"], k=3, method="exact").stopped is None
    limited = lv.anonymize(numbers(60), quasi=["a", "b"], k=3, method="exact", steps=1)
    assert limited.stopped is (None if limited.gap == 0 else Stopped.IMPROVING)


def test_units_and_parts_note_the_clock_too(tmp_path) -> None:
    table = numbers(600).append_column("home", pa.array([i // 3 for i in range(600)]))
    release = lv.anonymize(table, quasi=["a", "b"], unit="home", k=3, seconds=1e-6)
    assert release.stopped is Stopped.UNFINISHED
    release = lv.anonymize(
        numbers(600), quasi=["a", "b"], k=3, seconds=1e-6, parts=2, out=tmp_path / "release"
    )
    assert release.stopped is Stopped.UNFINISHED


def test_earlier_publications_that_were_not_asked_about_are_a_finding(tmp_path):
    """A table that hides a count, an earlier file, and people who are others by the steward's word alone.

    What a file discloses together with the first two is not known, so it is not published without `accept_unchecked`.
    """
    people = pa.table(
        {"town": ["A", "B", "C"] * 20, "sex": ["f", "m"] * 30, "ill": [*["yes"] * 2, *["no"] * 58]}
    )
    table = {"name": "ill", "by": ["ill"], "below": 5}

    def release(data, register, out, **more):
        asked = {"quasi": ["town", "sex"], "method": "greedy", "registry": tmp_path / register}
        return lv.anonymize(data, **asked, **more, out=tmp_path / out).verdict

    healthy = people.drop_columns(["ill"])
    lv.audit(people, tables=[table], registry=tmp_path / "tables", publish=tmp_path / "table", no_advice=True)
    with pytest.raises(InputError, match="1 table of the same records.*--accept-unchecked"):
        release(people, "tables", "first", identifying=["ill"])
    assert not (tmp_path / "first").exists()
    after_table = release(people, "tables", "first", identifying=["ill"], accept_unchecked=True)
    assert after_table.level == "care" and "1 table of the same records" in str(after_table)
    assert release(healthy, "files", "second").level == "ok"
    with pytest.raises(InputError, match="with which this one was not compared.*--accept-unchecked"):
        release(healthy, "files", "third")
    after_file = release(healthy, "files", "third", accept_unchecked=True)
    assert after_file.level == "care" and "with which this one was not compared" in str(after_file)
    by_word = release(healthy.slice(0, 50), "files", "fourth", new_population=True)
    assert by_word.level == "care" and "with --new-population they count as other people" in str(by_word)
