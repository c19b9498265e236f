"""`louver anonymize` and `louver verify` as a newcomer meets them, and what they refuse."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from cli.command import Runner
from louver.errors import InputError

SECRET = "Zyx77Confidential"
PEOPLE = "name,age,town,ill\n" + "".join(
    f"{name},{age},{town},{ill}\n"
    for name, age, town, ill in zip(
        "abcdef",
        (31, 33, 34, 52, 55, 58),
        ("Ayr", "Ayr", "Bute", "Cairn", "Doon", "Doon"),
        ("flu", "cold") * 3,
        strict=True,
    )
)
QUASI = ("--quasi", "age,town", "-k", "3", "--identifying", "name")
TREE = "Ayr;West;*\nBute;West;*\nCairn;East;*\nDoon;East;*\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "people.csv").write_text(PEOPLE)
    (tmp_path / "town.csv").write_text(TREE)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_release_and_verify(folder: Path, call_louver: Runner) -> None:
    done = call_louver(
        "anonymize", "people.csv", *QUASI, "--hierarchy", "town=town.csv",
        "--weights", "age=2", "--method", "exact", "--out", "release", "--json",
    )  # fmt: skip
    assert (done.code, done.err) == (0, "")
    content = json.loads(done.out)
    assert (content["classes"], content["smallest_class"], content["optimal"]) == (2, 3, True)
    table = pq.read_table(folder / "release/data/anonymized.parquet")
    assert table.column_names == ["age", "town", "ill"]
    assert {*table["age"].to_pylist()} == {"[31, 34]", "[52, 58]"}
    checked = call_louver("verify", "release")
    assert (checked.code, checked.err) == (0, "")
    assert "every promise holds" in checked.out
    assert json.loads(call_louver("verify", "release", "--json").out)["passed"] is True


def test_verify_notices_a_changed_file(folder: Path, call_louver: Runner) -> None:
    assert call_louver("anonymize", "people.csv", *QUASI, "--out", "release").code == 0
    with (folder / "release/report.html").open("a") as stream:
        stream.write(" ")
    done = call_louver("verify", "release")
    assert done.code == 1 and "FAILED file report.html" in done.out


def test_spec_and_command_line_together(folder: Path, call_louver: Runner) -> None:
    (folder / "spec.toml").write_text(
        '[source]\nfile = "people.csv"\n[anonymize]\nquasi = ["age", "town"]\nidentifying = ["name"]\nk = 2\nhierarchy = '
        '{town = "town.csv"}\n'
    )
    done = call_louver("anonymize", "--spec", "spec.toml", "-k", "3", "--out", "release", "--json")
    assert json.loads(done.out)["k"] == 3


def test_in_a_process_of_its_own(folder: Path, run_louver: Runner) -> None:
    done = run_louver("anonymize", "people.csv", *QUASI, "--out", "release", cwd=folder)
    assert (done.code, done.err) == (0, "")
    assert "k-anonymity with k = 3" in done.out and "Release: release" in done.out


def test_against_an_earlier_release_with_a_page_for_the_steward(folder: Path, call_louver: Runner) -> None:
    common = ("--quasi", "age", "-k", "2", "--sensitive", "ill", "--identifying", "name,town")
    assert call_louver("anonymize", "people.csv", *common, "--out", "first").code == 0
    second = (
        "anonymize", "people.csv", "--quasi", "town", "-k", "2", "--identifying", "name", "--keep", "age", "--sensitive", "ill",
        "--against", "first", "--html", "inside.html", "--curve", "2,3", "--out", "second",
    )  # fmt: skip
    done = call_louver(*second)
    assert (done.code, done.err) == (1, "") and "Nothing was written" in done.out and "--accept" in done.out
    assert not (folder / "second").exists() and not (folder / "inside.html").exists()
    done = call_louver(*second, "--accept")
    assert (done.code, done.err) == (0, "")
    assert "Together with first: " in done.out and "For the steward, not for release: inside.html" in done.out
    assert "Risk and utility" in (folder / "inside.html").read_text()
    assert call_louver("verify", "second").code == 0


def test_a_ledger_beside_the_data_logs_the_file(folder: Path, call_louver: Runner) -> None:
    assert call_louver("ledger", "init", "people.csv.ledger", "--epsilon", "1").code == 0
    done = call_louver("anonymize", "people.csv", *QUASI, "--out", "releases")
    assert "Logged as an exact disclosure" in done.out
    shown = json.loads(call_louver("ledger", "show", "people.csv.ledger", "--json").out)
    assert shown["disclosures"] == ["a file of 6 records, k-anonymity with k = 3"] and shown["spent"] == "0"
    assert call_louver("ledger", "verify", "people.csv.ledger", "--releases", "releases").code == 0
    other = call_louver("ledger", "init", "other.ledger", "--epsilon", "1")
    assert other.code == 0
    told = call_louver("ledger", "verify", "other.ledger", "--releases", "releases")
    assert told.code == 0 and "1 of them paid by another ledger" in told.out
    (folder / "people.csv.ledger").rename(folder / "gone")
    assert call_louver("ledger", "verify", "other.ledger", "--releases", "releases").code == 1


def test_a_register_and_a_ledger_both_keep_the_file(folder: Path, call_louver: Runner) -> None:
    assert call_louver("ledger", "init", "people.csv.ledger", "--epsilon", "1").code == 0
    done = call_louver("anonymize", "people.csv", *QUASI, "--register", "register", "--out", "releases")
    assert (done.code, done.err) == (0, "") and (folder / "register/000001.json").exists()
    assert call_louver("ledger", "verify", "people.csv.ledger", "--releases", "releases").code == 0


def test_options_of_the_population_in_a_spec(folder: Path, call_louver: Runner) -> None:
    (folder / "sub").mkdir()
    (folder / "sub/population.csv").write_text("age,people\n" + "".join(f"{a},3\n" for a in range(30, 60)))
    (folder / "sub/spec.toml").write_text(
        '[source]\nfile = "../people.csv"\n[anonymize]\nquasi = ["age"]\nidentifying = ["name", "town"]\nk = 3\nk_map = true\n'
        'population = "population.csv"\npopulation_count = "people"\ncurve = [2]\n'
    )
    done = call_louver("anonymize", "--spec", "sub/spec.toml", "--out", "release", "--json")
    assert (done.code, done.err) == (0, "")
    content = json.loads(done.out)
    assert content["guarantee"] == "k-map" and content["information_loss"] == 0
    assert content["risk"]["journalist_highest"] == 1 / 3


BAD = {
    "ledger absent": (("people.csv", *QUASI, "--ledger", "nowhere.ledger"), "no ledger nowhere.ledger"),
    "against nothing": (("people.csv", *QUASI, "--against", "nowhere"), "not a release directory"),
    "curve of no numbers": (("people.csv", *QUASI, "--curve", f"2,{SECRET}"), "--curve needs whole numbers"),
    "curve of zero": (("people.csv", *QUASI, "--curve", "0"), "option --curve"),
    "html without a folder": (("people.csv", *QUASI, "--html", "a/b.html"), "--html cannot write"),
    "html over the data": (("people.csv", *QUASI, "--html", "people.csv"), "would overwrite people.csv"),
    "k-map without a population": (("people.csv", *QUASI, "--k-map"), "--k-map needs --population"),
    "population absent": (("people.csv", *QUASI, "--population", "nowhere.csv"), "does not exist"),
    "population without a column": (("people.csv", *QUASI, "--population", "gaps.csv"), 'no column "town"'),
    "carry without split-carry": (("people.csv", *QUASI, "--carry", "bubble"), "--method split-carry"),
    "one-hot of numbers": (("people.csv", *QUASI, "--one-hot", "age"), "holds numbers"),
    "one-hot of another column": (("people.csv", *QUASI, "--one-hot", "ill"), "not in --quasi"),
    "sampling weight absent": (("people.csv", *QUASI, "--sampling-weight", "w"), 'no column "w"'),
    "sampling weight of text": (("people.csv", *QUASI, "--sampling-weight", "ill"), 'column "ill"'),
    "freeform with l": (
        ("people.csv", *QUASI, "--method", "freeform-greedy", "--sensitive", "ill", "--l", "2"),
        "freeform method cannot be combined with",
    ),
    "no role for names": (
        ("people.csv", "--quasi", "age,town", "-k", "3"),
        '"name" (many values occur once)',
    ),
    "no role for ages": (("people.csv", "--quasi", "town", "--identifying", "name"), '"age" (many values'),
    "kept column absent": (("people.csv", *QUASI, "--keep", "il"), 'no column "il"'),
    "kept and identifying": (("people.csv", *QUASI, "--keep", "name"), "in --identifying and in --keep"),
    "kept and quasi": (("people.csv", *QUASI, "--keep", "age"), "in --quasi and in --keep"),
    "kept and sensitive": (("people.csv", *QUASI, "--keep", "ill", "--sensitive", "ill"), "one role"),
    "kept twice": (("people.csv", *QUASI, "--keep", "ill,ill"), "one role"),
    "keep without a name": (("people.csv", *QUASI, "--keep", "ill,"), "empty name"),
    "accept alone": (("people.csv", *QUASI, "--accept"), "--accept needs --against"),
    "weight as a quasi-identifier": (("people.csv", *QUASI, "--sampling-weight", "age"), "choose one"),
    "categorical of another column": (
        ("people.csv", *QUASI, "--categorical", "ill"),
        "--quasi or --sensitive",
    ),
    "categorical and ordered": (
        ("people.csv", *QUASI, "--categorical", "age", "--ordered", "age"),
        "--categorical and in --ordered",
    ),
    "ordered without values": (("people.csv", *QUASI, "--ordered", "age="), "empty name"),
    "ordered without a name": (("people.csv", *QUASI, "--ordered", "=1,2"), "--ordered needs A,B or A=VALUE"),
    "ordered one value": (("people.csv", *QUASI, "--ordered", f"town={SECRET}"), "at least two"),
    "ordered a value twice": (("people.csv", *QUASI, "--ordered", "town=Ayr,Ayr,Bute"), "each only once"),
    "ordered twice": (("people.csv", *QUASI, "--ordered", "town", "--ordered", "town=a,b"), "each name once"),
    "ordered lacks a value": (("people.csv", *QUASI, "--ordered", "town=Ayr,Bute,Doon"), "row 4"),
    "ordered of another column": (("people.csv", *QUASI, "--ordered", "ill"), "--quasi or --sensitive"),
    "missing code in the order": (
        ("people.csv", *QUASI, "--missing-code", "town=Ayr", "--ordered", "town=Ayr,Bute,Cairn,Doon"),
        "--missing-code and in --ordered",
    ),
    "missing code refused": (
        ("people.csv", *QUASI, "--missing-code", "age=33", "--missing", "error"),
        "no value on row 2",
    ),
    "count missing alone": (("people.csv", *QUASI, "--count-missing"), "--count-missing needs --l or --t"),
    "distance alone": (("people.csv", *QUASI, "--distance", "equal"), "--distance needs --t"),
    "unit absent": (("people.csv", *QUASI, "--unit", "home"), 'no column "home"'),
    "unit and quasi": (("people.csv", *QUASI, "--unit", "age"), "in --quasi and in --unit"),
    "unit and identifying": (("people.csv", *QUASI, "--unit", "name"), "in --identifying and in --unit"),
    "unit and sampling weight": (
        ("people.csv", *QUASI, "--unit", "ill", "--sampling-weight", "ill"),
        "--unit and in --sampling-weight",
    ),
    "unit with suppression": (
        ("people.csv", *QUASI, "--unit", "ill", "--suppress", ".1"),
        "cannot be combined",
    ),
    "unit with a population": (
        ("people.csv", *QUASI, "--unit", "ill", "--population", "people.csv"),
        "cannot be combined",
    ),
    "unit by another method": (
        ("people.csv", *QUASI, "--unit", "ill", "--method", "mondrian"),
        "--unit needs --method auto or greedy",
    ),
    "too few units": (("people.csv", *QUASI, "--unit", "ill"), "fewer than k = 3 different units"),
    "register of a freeform file": (
        ("people.csv", *QUASI, "--method", "freeform-greedy", "--register", "register"),
        "--register needs classes",
    ),
    "register in nowhere": (("people.csv", *QUASI, "--register", "no/such"), "--register"),
    "no quasi": (("people.csv",), "--quasi is empty"),
    "unknown column": (("people.csv", "--quasi", "agee"), 'no column "agee"'),
    "unknown identifying column": (("people.csv", *QUASI, "--identifying", "nam"), 'no column "nam"'),
    "two roles": (("people.csv", *QUASI, "--sensitive", "age"), "a column has one role"),
    "quasi twice": (("people.csv", "--quasi", "age,age"), "a column has one role"),
    "k too large": (("people.csv", *QUASI, "-k", "7"), "fewer than k = 7"),
    "k zero": (("people.csv", "--quasi", "age", "-k", "0"), "option -k must"),
    "k not a number": (("people.csv", "--quasi", "age", "-k", SECRET), "must be a whole number"),
    "unknown method": (("people.csv", *QUASI, "--method", SECRET), "option --method must"),
    "seconds negative": (("people.csv", *QUASI, "--seconds", "-1"), "option --seconds must"),
    "steps negative": (("people.csv", *QUASI, "--steps", "-1"), "option --steps must"),
    "steps and seconds": (("people.csv", *QUASI, "--steps", "9", "--seconds", "9"), "give only one of them"),
    "l without sensitive": (("people.csv", *QUASI, "--l", "2"), "--l needs --sensitive"),
    "t without sensitive": (("people.csv", *QUASI, "--t", "0.2"), "--t needs --sensitive"),
    "t above one": (("people.csv", *QUASI, "--sensitive", "ill", "--t", "2"), "option --t must"),
    "l that cannot be met": (("people.csv", *QUASI, "--sensitive", "ill", "--l", "3"), "requirement"),
    "suppress above one": (("people.csv", *QUASI, "--suppress", "2"), "option --suppress must"),
    "weights without a name": (("people.csv", *QUASI, "--weights", "=1"), "--weights needs NAME=VALUE"),
    "weights not a number": (("people.csv", *QUASI, "--weights", f"age={SECRET}"), "number after each ="),
    "weights negative": (("people.csv", *QUASI, "--weights", "age=-1"), "option --weights"),
    "weights all zero": (("people.csv", *QUASI, "--weights", "age=0,town=0"), "not all zero"),
    "weights of another column": (("people.csv", *QUASI, "--weights", "ill=1"), "not in --quasi"),
    "ordered and hierarchy": (
        ("people.csv", *QUASI, "--ordered", "town", "--hierarchy", "town=town.csv"),
        "choose one",
    ),
    "hierarchy absent": (("people.csv", *QUASI, "--hierarchy", "town=nowhere.csv"), "nowhere.csv"),
    "hierarchy without a leaf": (("people.csv", *QUASI, "--hierarchy", "town=short.csv"), "row 4"),
    "hierarchy not nested": (("people.csv", *QUASI, "--hierarchy", "town=twisted.csv"), "twisted.csv"),
    "hierarchical distance without a tree": (
        ("people.csv", *QUASI, "--sensitive", "ill", "--t", "0.5", "--distance", "hierarchical"),
        "needs --hierarchy",
    ),
    "missing refused": (
        ("gaps.csv", "--quasi", "age", "--keep", "x", "-k", "2", "--missing", "error"),
        "no value on row 2",
    ),
    "file absent": (("nowhere.csv", *QUASI), "does not exist"),
    "no records": (("empty.csv", *QUASI), "no rows"),
    "a weight in the spec": (("--spec", "weighted.toml"), "one person per row"),
    "misspelt option in the spec": (("--spec", "misspelt.toml"), "quazi"),
    "out is missing": (("people.csv", *QUASI), "--out is missing"),
    "out exists": (("people.csv", *QUASI, "--out", "taken"), "already exists"),
    "out below nothing": (("people.csv", *QUASI, "--out", "a/b"), "does not exist"),
}


@pytest.mark.parametrize("name", BAD)
def test_one_sentence(name: str, folder: Path, call_louver: Runner) -> None:
    arguments, says = BAD[name]
    (folder / "gaps.csv").write_text(f"age,x\n{SECRET},1\n,2\n{SECRET},3\n")
    (folder / "empty.csv").write_text("age,town\n")
    (folder / "short.csv").write_text("Ayr;*\nBute;*\nDoon;*\n")
    (folder / "twisted.csv").write_text(f"Ayr;{SECRET};*\nBute;{SECRET};**\nCairn;East;*\nDoon;East;*\n")
    (folder / "weighted.toml").write_text(
        '[source]\nfile = "people.csv"\nweight = "age"\n[anonymize]\nquasi = ["town"]\n'
    )
    (folder / "misspelt.toml").write_text('[source]\nfile = "people.csv"\n[anonymize]\nquazi = ["age"]\n')
    (folder / "taken").mkdir()
    before = set(folder.rglob("*"))
    out = () if "--out" in arguments or name == "out is missing" else ("--out", "release")
    done = call_louver("anonymize", *arguments, *out)
    assert (done.code, done.out) == (2, ""), done
    assert (
        done.err.startswith("louver anonymize: ") and done.err.count("\n") == 1 and done.err.endswith(".\n")
    )
    assert says in done.err
    assert SECRET not in done.err
    assert set(folder.rglob("*")) == before


@pytest.mark.parametrize("name", ["nowhere", "people.csv", "taken"])
def test_verify_needs_a_release(name: str, folder: Path, call_louver: Runner) -> None:
    (folder / "taken").mkdir()
    done = call_louver("verify", name)
    assert (done.code, done.out) == (2, "")
    assert "not a release directory" in done.err and done.err.count("\n") == 1


def test_a_report_that_fails_leaves_no_release(
    call_louver: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What can fail comes before the release is moved into place."""
    (tmp_path / "people.csv").write_text("age,ill\n" + "".join(f"{age},flu\n" for age in range(6)))

    def refuse(*_: object) -> str:
        raise InputError("a picture cannot be drawn.")

    monkeypatch.setattr("louver.report.anonymize.inside_report", refuse)
    asked = ("anonymize", tmp_path / "people.csv", "--quasi=age", "-k", "3", "--out", tmp_path / "out")
    done = call_louver(*asked, "--html", tmp_path / "inside.html")
    assert done.code == 2 and "picture" in done.err
    assert [path.name for path in tmp_path.iterdir()] == ["people.csv"]


def test_people_of_a_register_are_known_again(folder: Path, call_louver: Runner) -> None:
    """A file that is sorted otherwise, or has fewer people, is not entered as another one."""
    asked = (*QUASI, "--register", "register")
    first = call_louver("anonymize", "people.csv", *asked, "--out", "one")
    assert first.code == 0 and "The register is new" in first.out
    head, *rows = (folder / "people.csv").read_text().splitlines()
    (folder / "sorted.csv").write_text("\n".join([head, *sorted(rows)]) + "\n")
    refused = call_louver("anonymize", "sorted.csv", *asked, "--out", "two")
    assert refused.code == 2 and "--accept-unchecked publishes it anyway" in refused.err
    again = call_louver("anonymize", "sorted.csv", *asked, "--accept-unchecked", "--out", "two")
    assert again.code == 0 and "The register holds 1 file of the same records" in again.out
    (folder / "part.csv").write_text("\n".join([head, *rows[1:]]) + "\n")
    part = call_louver("anonymize", "part.csv", *asked, "--out", "three")
    assert part.code == 2 and "all of the people of part.csv" in part.err and not (folder / "three").exists()
    told = call_louver("anonymize", "part.csv", *asked, "--new-population", "--out", "three")
    assert told.code == 0 and "with --new-population they count as other people" in told.out
    manifest = (folder / "three" / "manifest.json").read_text()
    assert "new_population" not in manifest and '"person"' not in manifest
