"""`louver profile` and the options about files, from the command line."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest

from cli.command import Runner

SECRET = "Zyx77Confidential"
PEOPLE = "id;age;sex;income\n" + "".join(f"{i};{20 + i % 7};{'fm'[i % 2]};{i},5\n" for i in range(60))


@pytest.fixture
def people(tmp_path: Path) -> Path:
    path = tmp_path / "people.csv"
    path.write_text(PEOPLE)
    return path


def test_text_json_page_and_spec(call_louver: Runner, people: Path) -> None:
    html, spec = people.with_name("p.html"), people.with_name("start.toml")
    done = call_louver("profile", people, "--decimal-mark", ",", "--html", html, "--write-spec", spec)
    assert (done.code, done.err) == (0, "")
    assert (
        "do not release any of this" in done.out
        and "identifying (nearly every value occurs once)" in done.out
    )
    assert str(spec) in done.out and f"not for release: {html}" in done.out
    assert all(stat.S_IMODE(path.stat().st_mode) == 0o600 for path in (html, spec))
    told = json.loads(call_louver("profile", people, "--decimal-mark=,", "--json").out)
    assert [column["kind"] for column in told["columns"]] == ["id", "ordered code", "category", "number"]
    again = call_louver("profile", "--spec", spec, "--json")
    assert json.loads(again.out)["columns"] == told["columns"]


def test_a_spec_to_start_from_is_refused_until_it_is_filled_in(call_louver: Runner, people: Path) -> None:
    spec = people.with_name("start.toml")
    call_louver("profile", people, "--decimal-mark=,", "--write-spec", spec)
    done = call_louver("groups", "--spec", spec, "--out", people.with_name("out"))
    assert done.code == 2 and "still has the placeholder" in done.err and not people.with_name("out").exists()


BAD = {
    "wrong column": (("--columns", "agee"), 'no column "agee"; perhaps "age" is meant.'),
    "empty column": (("--columns", "age,"), "--columns has an empty name"),
    "column twice": (("--columns", "age,age"), "--columns names a column twice"),
    "too large sets": (("--largest", "9"), "--largest must be at most 4"),
    "no share": (("--alone", "0"), "--alone must be greater than 0"),
    "share of more than all": (("--alone", "1.5"), "--alone must be at most 1"),
    "spec in no folder": (("--write-spec", "nowhere/s.toml"), "s.toml does not exist"),
    "spec over the data": (("--write-spec", "people.csv"), "--write-spec would replace people.csv"),
    "page over the data": (("--html", "people.csv"), "--html would overwrite people.csv"),
    "decimal mark": (("--decimal-mark", ";"), "--decimal-mark must be"),
    "encoding": (("--encoding", SECRET), "--encoding is not a known encoding"),
    "other encoding": (("--encoding", "utf-16"), "a UTF-16 byte order mark"),
    "delimiter of two": (("--delimiter", ";;"), "--delimiter must be one character"),
    "delimiter that is a letter": (("--delimiter", "a"), "--delimiter must be one character"),
    "other delimiter": (("--delimiter", "|"), "one column, whose name contains another separator"),
    "filter without an end": (("--where", f"age = '{SECRET}"), "--where cannot be understood at character 7"),
    "filter of nothing": (("--where", ""), "--where cannot be understood at character 1"),
    "filter without a value": (("--where", "age >="), "--where cannot be understood at character 7"),
    "filter with SQL": (("--where", f"age = 1; DROP TABLE {SECRET}"), "cannot be understood at character 8"),
    "filter of a stranger": (("--where", "agee > 1"), 'no column "agee"; perhaps "age" is meant.'),
    "filter of mixed values": (("--where", f"age in (1, '{SECRET}')"), "values of one type"),
    "filter too deep": (("--where", "(" * 99 + "age = 1" + ")" * 99), "nested more than 50 levels deep"),
    "filter too long": (("--where", "age = 1 or " * 2_000 + "age = 1"), "longer than 10,000 characters"),
    "filter of words by number": (
        ("--where", "sex = 1"),
        'column "sex" with a number, but row 1 is not a number',
    ),
    "filter that leaves nothing": (("--where", "age > 99"), "no row of people.csv satisfies --where"),
    "filter without parenthesis": (("--where", "(age = 1"), 'where ")" should be'),
    "sheet of a text file": (("--table", "Sheet1"), "leave out --table"),
    "codes of a text file": (("--keep-codes",), "--keep-codes applies only to Stata, SPSS and SAS files"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_one_sentence(
    call_louver: Runner, people: Path, monkeypatch: pytest.MonkeyPatch, case: str
) -> None:
    monkeypatch.chdir(people.parent)
    arguments, says = BAD[case]
    mark = () if case == "decimal mark" else ("--decimal-mark", ",")
    done = call_louver("profile", "people.csv", *mark, *arguments)
    assert (done.code, done.out) == (2, "") and says in done.err
    assert done.err.count("\n") == 1 and SECRET not in done.err
    assert people.read_text() == PEOPLE


def test_decimal_commas_are_refused_by_every_verb(call_louver: Runner, people: Path) -> None:
    for verb in (("profile",), ("bounds", "--rows", "age", "--cols", "sex")):
        done = call_louver(verb[0], people, *verb[1:])
        assert done.code == 2 and 'give --decimal-mark ","' in done.err
