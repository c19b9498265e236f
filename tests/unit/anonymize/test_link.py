"""Earlier releases about the same people, whose values have changed since: everybody is looked up by the values of then."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

import louver as lv
from few_or_many import few_or_many
from louver._verdict import Level
from louver.errors import InputError
from small_people import written

Row = dict[str, Any]


def fits(person: Row, row: Row) -> bool:
    """Whether a published row may be a person's, by its printed age and town."""
    low, _, high = row["age"].strip("[]").partition(", ")
    return int(low) <= person["age"] <= int(high or low) and person["town"] in row["town"].split(" | ")


def attack(
    then: list[Row], now: list[Row], first: list[Row], second: list[Row]
) -> tuple[list[int], list[str]]:
    """All that somebody learns who knows everybody's age and town, then and now: candidates of each person, and whose illness of now
    is certain from both files but not from one. By hand: every pair of an earlier and a later row that can be one person's."""
    by_key = {person["id"]: person for person in then}
    candidates, certain = [], []
    for person in now:
        before = by_key.get(person["id"])
        late = [row for row in second if fits(person, row)]
        early = [row for row in first if before is not None and fits(before, row)]
        same = [n for n in ("sex", "ill") if before is not None and before[n] == person[n]]
        counts = [Counter(tuple(row[n] for n in same) for row in rows) for rows in (early, late)]
        both = sum(min(counts[0][v], counts[1][v]) for v in counts[1])
        candidates.append(min(n for n in (len(late), len(early), both) if n))
        left = {b["ill"] for b in late if any(all(a[n] == b[n] for n in same) for a in early)}
        alone = [{row["ill"] for row in late}] + ([{row["ill"] for row in early}] if "ill" in same else [])
        if len(left) == 1 and all(len(values) > 1 for values in alone):
            certain.append(person["id"])
    return candidates, certain


def table_of(rows: list[Row]) -> pa.Table:
    return pa.Table.from_pylist(rows)


def compared(
    folder: Path, then: list[Row], now: list[Row], **more: Any
) -> tuple[lv.AnonymizedRelease, list[Row]]:
    """A release of then, and one of now that is compared with it."""
    common = {"quasi": ["age", "town"], "sensitive": ["ill"], "keep": ["sex"], "k": 2, "method": "greedy"}
    first = lv.anonymize(table_of(then), **common, identifying=["id"])
    out = written(first, folder / "first")
    pc.write_csv(table_of(then), folder / "then.csv")
    linked = more or {"earlier": folder / "then.csv", "link": "id"}
    release = lv.anonymize(table_of(now), **common, against=out, **linked)
    return release, first.to_frame().to_pylist()


PERSON = st.tuples(
    st.integers(20, 29),
    st.sampled_from("abc"),
    st.sampled_from("fm"),
    st.sampled_from(["flu", "cold", "ulcer"]),
)


@few_or_many(
    5,
    25,
    given(
        people=st.lists(st.tuples(PERSON, PERSON, st.integers(0, 5)), min_size=4, max_size=12),
        leave=st.integers(0, 2),
        join=st.integers(0, 2),
    ),
)
def test_no_less_is_found_than_by_somebody_who_knows_both_files(
    people: list[tuple[Any, Any, int]], leave: int, join: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    names = ("age", "town", "sex", "ill")
    then, now = [], []
    for number, (old, new, changed) in enumerate(people):
        kept = [new[i] if i < changed % 5 else old[i] for i in range(4)]
        then.append({"id": f"p{number}", **dict(zip(names, old, strict=True))})
        now.append({"id": f"p{number}", **dict(zip(names, kept, strict=True))})
    then, now = then[: len(then) - join], now[leave:][::-1]
    if len(then) < 2 or len(now) < 2 or not {p["id"] for p in then} & {p["id"] for p in now}:
        return
    release, first = compared(tmp_path_factory.mktemp("linked"), then, now)
    candidates, certain = attack(then, now, first, release.to_frame().to_pylist())
    found = release.intersection
    assert found is not None and found.link == "id"
    assert found.fewest == min(candidates) and found.below_k == sum(n < 2 for n in candidates)
    assert found.single == sum(n == 1 for n in candidates)
    assert dict(found.learnt)["ill"] >= len(certain)
    assert "id" not in release.to_frame().column_names


def moved() -> tuple[list[Row], list[Row]]:
    """Four people; all are a year older, and two have moved, so that each class of now joins two of then."""
    ages, ills = [20, 21, 40, 41], ["flu", "cold", "flu", "ulcer"]
    then = [{"id": str(i), "age": ages[i], "town": "a", "sex": "f", "ill": ills[i]} for i in range(4)]
    now = [{**person, "age": age} for person, age in zip(then, [60, 31, 30, 61], strict=True)]
    return then, now


def test_a_change_of_values_no_longer_hides_what_is_certain(tmp_path: Path) -> None:
    then, now = moved()
    release, first = compared(tmp_path, then, now)
    _, certain = attack(then, now, first, release.to_frame().to_pylist())
    assert len(certain) == 2 and dict(release.intersection.learnt) == {"ill": 2}
    assert release.is_withheld and release.verdict.level is Level.STOP


def test_without_a_key_the_verdict_says_what_is_assumed(tmp_path: Path) -> None:
    then, now = moved()
    release, _ = compared(tmp_path, then, now, accept=True, identifying=["id"])
    assert release.intersection.link is None and release.verdict.level is Level.CARE
    told = [reason for reason in release.verdict.reasons if reason.startswith("Together with")]
    assert (
        len(told) == 1
        and "at least" in told[0]
        and "values have changed (a birthday, a move)" in told[0]
        and "--link" in told[0]
    )


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"link": "id"}, "--link needs --earlier once for each --against"),
        ({"earlier": "then.csv"}, "--earlier needs --link"),
        ({"link": "sex", "earlier": "then.csv"}, 'column "sex" is named in --link and in --keep'),
        ({"link": "no", "earlier": "then.csv"}, 'no column "no"'),
        ({"link": "id", "earlier": "nowhere.csv"}, "nowhere.csv"),
    ],
)
def test_what_a_link_refuses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, asked: Row, message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    then, now = moved()
    with pytest.raises(InputError, match=message):
        compared(tmp_path, then, now, identifying=[n for n in ["id"] if n != asked.get("link")], **asked)
    with pytest.raises(InputError, match="--link needs --against"):
        lv.anonymize(table_of(now), quasi=["age"], link="id")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda rows: [*rows, rows[0]], "repeats a value"),
        (lambda rows: [{**rows[0], "id": None}, *rows[1:]], "has no value on row 1"),
        (lambda rows: [{**row, "id": f"x{row['id']}"} for row in rows], "has no person in common"),
        (lambda rows: [{**row, "age": 90} for row in rows], "was not made from then.csv"),
        (
            lambda rows: [{n: v for n, v in row.items() if n != "age"} for row in rows],
            'generalises column "age"',
        ),
    ],
)
def test_records_of_then_that_do_not_belong_to_the_release_are_refused(
    tmp_path: Path, change, message: str
) -> None:
    then, now = moved()
    compared(tmp_path, then, now)
    pc.write_csv(table_of(change(then)), tmp_path / "then.csv")
    with pytest.raises(InputError, match=message):
        lv.anonymize(
            table_of(now), quasi=["age", "town"], sensitive=["ill"], keep=["sex"], k=2, method="greedy",
            against=tmp_path / "first", earlier=tmp_path / "then.csv", link="id",
        )  # fmt: skip


def test_a_release_made_with_recodes_is_refused(tmp_path: Path) -> None:
    table = pa.table({"age": [1, 2, 3, 4]})
    recode = {"age": {"bins": [0, 2.5, 5]}}
    out = written(lv.anonymize(table, quasi=["age"], k=2, recode=recode), tmp_path / "first")
    with pytest.raises(InputError, match="made with --recode"):
        lv.anonymize(table, quasi=["age"], k=2, against=out)


def test_rare_sets_of_changed_columns_are_attacked_by_what_they_have_in_common(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    then, now = moved()
    now = [now[0], {**now[1], "sex": "m"}, {**now[2], "ill": "cold"}, now[3]]
    all_sets, _ = compared(tmp_path, then, now)
    monkeypatch.setattr("louver.anonymize.intersection.MOST_PATTERNS", 1)
    (tmp_path / "other").mkdir()
    one_set, _ = compared(tmp_path / "other", then, now)
    assert one_set.intersection.below_k <= all_sets.intersection.below_k
    assert one_set.intersection.records == all_sets.intersection.records == 4
