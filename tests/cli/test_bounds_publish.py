"""`louver bounds --register --publish`: a table becomes a release, unless it gives people away by itself or with earlier ones."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

import louver as lv
from cli.command import COUNTED, Runner
from louver.errors import InputError
from louver.release.register import Register
from releases import doubt

COUNTS = {"A": (12, 30), "B": (4, 26), "C": (10, 40)}
SHARES = ("--rows", "town", "--cols", "ill", "--weight", "count")


@pytest.fixture
def people(tmp_path: Path) -> Path:
    """Sick people by town: shares with N leave several tables, shares with the total of B leave one."""
    rows = [(town, ill, n) for town, counts in COUNTS.items() for ill, n in zip("yn", counts, strict=True)]
    town, ill, count = zip(*rows, strict=True)
    path = tmp_path / "people.csv"
    pa.csv.write_csv(pa.table({"town": town, "ill": ill, "count": count}), path)
    return path


def published(call_louver: Runner, people: Path, out: str, *more: str, arranged: tuple[str, ...] = SHARES):
    folder = people.parent
    options = ("--register", folder / "register", "--publish", folder / out)
    return call_louver("bounds", people, *arranged, *options, *more)


def entries(people: Path) -> int:
    return len(Register(people.parent / "register").entries)


def test_python_publishes_the_same(call_louver: Runner, people: Path) -> None:
    arranged = {"rows": "town", "cols": "ill", "weight": "count"}
    folder, out = people.parent, people.parent / "out"
    done = lv.bounds.publish(people, **arranged, registry=folder / "register", publish=out)
    assert done.published == str(out) and done.refused is None and done.is_safe
    assert lv.verify(out).passed and entries(people) == 1
    again = published(call_louver, people, "again")
    assert again.code == 0 and lv.open(out).manifest.promises == lv.open(folder / "again").manifest.promises
    alone = lv.bounds.publish(people, **arranged, registry=folder / "register")
    assert alone.published is None and alone.earlier == 2 and entries(people) == 2


def test_publishing_needs_a_register(people: Path) -> None:
    with pytest.raises(InputError, match="name the folder of the register") as caught:
        lv.bounds.publish(people, rows="town", cols="ill", weight="count")
    assert caught.value.option == "--register"


@pytest.mark.parametrize("more", [(), ("--decimals", "2"), ("--decimals", "2", "--rounding", "half-even")])
def test_a_table_becomes_a_release_that_verifies(
    call_louver: Runner, people: Path, more: tuple[str, ...]
) -> None:
    done = published(call_louver, people, "out", *more)
    assert (done.code, done.err) == (0, "")
    out = people.parent / "out"
    assert done.out.splitlines()[-1] == f"Published: {out}"
    assert lv.verify(out).passed and call_louver("verify", out).code == 0
    manifest = json.loads((out / "manifest.json").read_text())
    (told,) = manifest["parameters"]["tables"]
    assert told["people"] == sum(map(sum, COUNTS.values()))
    table = pq.read_table(out / told["file"])
    assert table.column_names == ["town", "ill", "share"] and table.num_rows == 6
    assert (out / told["file"]).with_suffix(".csv").exists()
    page = lv.open(out).report
    assert page is not None and "What is promised" in page and f"{told['people']:,}" in page
    expected = {"A": "2/7", "B": "2/15", "C": "1/5"} if not more else {"A": "0.29", "B": "0.13", "C": "0.20"}
    assert {row["town"]: row["share"] for row in table.to_pylist() if row["ill"] == "y"} == expected
    assert entries(people) == 1


def test_what_was_asked_for_is_not_advised_again(call_louver: Runner, people: Path) -> None:
    alone = call_louver("bounds", people, *SHARES).out
    assert "Next: --register" in alone
    asked = call_louver("bounds", people, *SHARES, "--register", people.parent / "register").out
    assert "--register" not in asked and "Next: --publish DIR writes it as a release." in asked
    assert "Next:" not in published(call_louver, people, "out").out
    rows = ("--rows", "town", "--cols", "ill", "--weight", "count", "--small", "60")
    few = call_louver("bounds", people, *rows, "--register", people.parent / "register").out
    assert "Next: --suggest looks for a redesign." in few


def test_a_table_that_gives_away_small_counts_is_refused(call_louver: Runner, people: Path) -> None:
    people.write_text(COUNTED, encoding="utf-8")
    arranged = ("--rows", "site", "--cols", "ill", "--weight", "count")
    done = published(call_louver, people, "out", "--accept", "--json", arranged=arranged)
    told = json.loads(done.out)["publication"]
    assert done.code == 1 and told["published"] is told["together"] is None
    assert "can be derived" in told["refused"] and "--accept" not in told["refused"]
    assert not (people.parent / "out").exists() and not (people.parent / "register").exists()


def test_a_table_that_tells_a_status_is_refused_unless_accepted(call_louver: Runner, people: Path) -> None:
    with people.open("a", encoding="utf-8") as file:
        file.write('"D","y",1\n')
    done = published(call_louver, people, "out")
    assert done.code == 1
    assert done.out.splitlines()[-1].startswith(
        "Not published: Counts cannot be derived, but 1 row reveals a"
    )
    assert not (people.parent / "out").exists()
    assert published(call_louver, people, "out", "--accept").code == 0
    assert lv.verify(people.parent / "out").passed


def test_doubts_of_a_published_table_are_said(call_louver: Runner, people: Path) -> None:
    """Only the steward's word says that its people are others than those of the register: "Published" alone was said."""
    strangers = people.with_name("strangers.csv")
    lines = [f"{town},{n % 7},{'yn'[n % 2]}" for town in "ABC" for n in range(40)]
    strangers.write_text("\n".join(["town,age,well", *lines, ""]), encoding="utf-8")
    assert published(call_louver, people, "one").code == 0
    asked = ("--register", people.parent / "register", "--new-population", "--publish", people.parent / "two")
    page = people.parent / "page.html"
    done = call_louver("bounds", strangers, "--rows", "town", "--cols", "well", *asked, "--html", page)
    assert done.code == 0
    *_, doubts, outcome, _ = done.out.splitlines()
    assert outcome == f"Published: {people.parent / 'two'}"
    assert doubts.endswith("check what they reveal together with the earlier ones.")
    assert done.out.count("with --new-population they count as other people") == 1
    assert f'<p class="verdict care">{outcome}</p>' in page.read_text(encoding="utf-8")


def test_after_an_audit_that_published_a_table_the_shares_are_refused(
    call_louver: Runner, people: Path
) -> None:
    """Everybody in B is one number; beside the shares it gives the four sick people away."""
    folder = people.parent
    first = lv.audit(
        people,
        weight="count",
        tables=[{"name": "people by town", "by": ["town"]}],
        registry=folder / "register",
        publish=folder / "one",
    )
    assert first.published
    alone = call_louver("bounds", people, *SHARES, "--register", folder / "register", "--json")
    told = json.loads(alone.out)["publication"]
    assert alone.code == 0
    assert (told["earlier"], told["together"], told["refused"], told["published"]) == (1, 1, None, None)
    failing = ("--register", folder / "register", "--fail-on", "small")
    assert call_louver("bounds", people, *SHARES, *failing).code == 1
    done = published(call_louver, people, "two")
    assert done.code == 1
    reason = done.out.splitlines()[-1]
    assert reason.startswith("Not published: ") and "people by town (published" in reason
    assert reason.endswith("It is about town=B, ill=y.")
    assert not (folder / "two").exists() and entries(people) == 1


def test_after_the_shares_an_audit_and_another_table_of_bounds_are_refused(
    call_louver: Runner, people: Path
) -> None:
    folder = people.parent
    assert published(call_louver, people, "one").code == 0
    second = lv.audit(
        people,
        weight="count",
        tables=[{"name": "people by town", "by": ["town"]}],
        registry=folder / "register",
        publish=folder / "two",
    )
    assert second.published is None and second.earlier == 1
    recode = folder / "recode.toml"
    recode.write_text('[town]\n"A or B" = ["A", "B"]\n', encoding="utf-8")
    done = published(call_louver, people, "three", "--recode", str(recode))
    assert (done.code, entries(people)) == (1, 1)
    reason = done.out.splitlines()[-1]
    assert (
        reason.startswith("Not published: ") and "town | ill (published" in reason and "town* | ill" in reason
    )


def test_what_was_not_found_out_in_time_is_not_published(call_louver: Runner, people: Path) -> None:
    """A first table by sex and town leaves small counts of the cross to be decided."""
    folder = people.parent
    table = pa.csv.read_csv(people)
    halves = [
        pa.array([f(n) for n in table["count"].to_pylist()]) for f in (lambda n: n // 2, lambda n: n - n // 2)
    ]
    crossed = pa.concat_tables(
        table.set_column(2, "count", half).append_column("sex", pa.array([sex] * len(table)))
        for sex, half in zip("fm", halves, strict=True)
    )
    pa.csv.write_csv(crossed, people)
    by_sex = ("--rows", "town", "--cols", "sex", "--weight", "count", "--decimals", "2")
    shares = (*SHARES, "--decimals", "2")
    assert published(call_louver, people, "one", arranged=by_sex).code == 0
    late = published(call_louver, people, "two", "--seconds", "1e-9", arranged=shares)
    assert late.code == 1 and late.out.endswith("Allow more seconds before you publish.\n")
    assert not (folder / "two").exists() and entries(people) == 1
    assert published(call_louver, people, "two", arranged=shares).code == 0


def test_the_register_and_the_folder_are_looked_at_first(call_louver: Runner, people: Path) -> None:
    (people.parent / "out").mkdir()
    done = published(call_louver, people, "out")
    assert done.code == 2 and "option --publish: out already exists" in done.err
    done = published(call_louver, people, "no/out")
    assert done.code == 2 and "option --publish: the parent folder of out does not exist" in done.err
    done = published(call_louver, people, "two", "--where", "town != 'B' or town = ill")
    assert done.code == 2 and "involves several columns" in done.err
    done = published(call_louver, people, "two", "--decimals", "7")
    assert done.code == 2 and "at most 6 --decimals" in done.err
    (people.parent / "register").mkdir(exist_ok=True)
    (people.parent / "register" / "000001.json").write_text("{}")
    done = published(call_louver, people, "two")
    assert done.code == 2 and "was edited" in done.err


def test_the_report_tells_what_became_of_it(call_louver: Runner, people: Path) -> None:
    report = people.parent / "report.html"
    assert published(call_louver, people, "out", "--html", report).code == 0
    assert "Published: " in report.read_text(encoding="utf-8")


def test_a_recode_is_remembered(call_louver: Runner, people: Path) -> None:
    recode = people.parent / "recode.toml"
    recode.write_text('[town]\n"A or B" = ["A", "B"]\n', encoding="utf-8")
    assert published(call_louver, people, "one", "--recode", str(recode)).code == 0
    (entry,) = Register(people.parent / "register").entries
    (table,) = entry.content["tables"]
    assert table["shares"][0]["labels"][0] == ["A or B", "C"]


def test_a_share_that_is_not_rounded_as_promised_is_noticed(call_louver: Runner, people: Path) -> None:
    published(call_louver, people, "out", "--decimals", "2")
    (file,) = (people.parent / "out" / "data").glob("*.parquet")
    table = pq.read_table(file)
    for first, told in (
        ("0.710", "different values of"),
        ("0.714", "more than 2 decimals"),
        ("0.9", "does not add up"),
    ):
        shares = [first, *table["share"].to_pylist()[1:]]
        pq.write_table(table.set_column(2, "share", pa.array(shares)), file)
        assert told in doubt(people.parent / "out", "tables").found


def test_shares_of_some_people_are_remembered_as_such(call_louver: Runner, people: Path) -> None:
    done = published(call_louver, people, "one", "--where", "town != 'B'")
    assert done.code == 0, done.err
    (entry,) = Register(people.parent / "register").entries
    (table,) = entry.content["tables"]
    assert table["shares"][0]["where"] == {"town": ["A", "C"]}
