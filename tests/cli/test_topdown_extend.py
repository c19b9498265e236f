"""louver topdown extend: from the command line, and on bad input: exit 2, one sentence, nothing written, nothing spent."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import pytest

from cli.command import Runner
from louver.privacy.budget import Measure
from louver.privacy.ledger import Ledger
from louver.privacy.neighbours import Relation
from louver.topdown import topdown
from topdown_larger import LARGER, write_larger

SECRET = "Zyx77Confidential"
OUT = ("--out", "out")


@dataclass(frozen=True)
class Bad:
    """An edit of one of the files, and words the sentence must have."""

    name: str
    says: str
    old: str = ""
    new: str = ""
    arguments: tuple[str, ...] = ("extend", "larger.toml", *OUT)
    file: str = "larger.toml"

    def __str__(self) -> str:
        return self.name


HOME = 'home = ["holder", "spouse", "parent", "other"]'
BOUNDS = "[[topdown.bounds]]"


def household(
    years: str = "years",
    members: str = "holder",
    cells: str = "spouse",
    gap: str = "older = 1",
    name: str = "a",
) -> str:
    """A section about households."""
    return (
        f'[topdown.household]\nyears = "{years}"\nhead = {{ place = ["holder"] }}\nmembers = {{ place = ["{members}", "spouse"] }}\n'
        f'[[topdown.household.gaps]]\nname = "{name}"\n{gap}\ncells = {{ place = ["{cells}"] }}\n'
    )


CASES = [
    Bad("no extends", 'key "extends" is required', 'extends = "first"\n', ""),
    Bad("extends nothing", 'key "extends" names no release', '"first"', f'"{SECRET}"'),
    Bad("extends a file", 'key "extends" names no release', '"first"', '"people.csv"'),
    Bad("another release", 'first is not the release that key "digest" names', "epsilon = 1", 'epsilon = 1\ndigest = "00"'),
    Bad("label left out", 'does not list every label of "place"', '"parent", "other"]', '"parent"]'),
    Bad("label twice", 'does not list every label of "place"', HOME, 'home = ["holder", "holder", "spouse", "parent", "other"]'),
    Bad("label of a stranger", 'does not list every label of "place"', '"other"], dorm', f'"{SECRET}"], dorm'),
    Bad("old label left out", "exactly the labels that the first release has", ', jail = ["cell"]', ""),
    Bad("refines nothing", 'names "years", which the first release does not have', "refines.age]", "refines.years]"),
    Bad("refined by a stranger", "names an attribute that the spec does not have", 'attribute = "years"', f'attribute = "{SECRET}"'),
    Bad("refinement missing", 'no attribute "quarters" with the labels', LARGER[LARGER.index("[topdown.refines.quarters]") :
        LARGER.index("[topdown.geography]")], ""),
    Bad("same name, other labels", 'no attribute "race" with the labels', 'labels = ["a", "b", "c"]', 'labels = ["a", "b", "d"]'),
    Bad("one attribute for two", "uses one attribute for two", 'attribute = "place"\nmerge = { ' + HOME + ', dorm = ["hall", "convent"], jail = ["cell"] }',
        'attribute = "years"\nmerge = { home = ["0-9", "10-17"], dorm = ["18-39"], jail = ["40+"] }'),
    Bad("invariants", 'key "invariants" does not apply to an extension', "[[topdown.bounds]]",
        '[[topdown.invariants]]\nname = "x"\nlevel = "town"\n[[topdown.bounds]]'),
    Bad("extended again", 'key "extended_by" does not apply to an extension', "epsilon = 1", 'epsilon = 1\nextended_by = "x.toml"'),
    Bad("extended by nothing", "gone.toml does not exist", "epsilon = 2", 'epsilon = 2\nextended_by = "gone.toml"',
        ("run", "town.toml", *OUT), "town.toml"),
    Bad("extended by itself", "does not apply to an extension", "epsilon = 2", 'epsilon = 2\nextended_by = "town.toml"',
        ("check", "town.toml"), "town.toml"),
    Bad("estimator", 'key "estimator" does not apply to an extension', "epsilon = 1", 'epsilon = 1\nestimator = "plain"'),
    Bad("leaf of a stranger", "convents.csv names a region on row 9", "2B2", "2B3", file="leaves.csv"),
    Bad("zeros without room", "leave no cell for people whom first has with quarters dorm",
        'place = ["convent"]\nsex = ["m"]', 'place = ["hall", "convent"]'),  # facilities hold people whatever the noise is
    Bad("rules of one name", "two rules or gaps have the same name", 'name = "parents"', 'name = "spouses"'),
    Bad("rule on both sides", "counts some cells on both sides", 'cells = { place = ["spouse"] }', 'cells = { place = ["holder"] }'),
    Bad("rule of a stranger", 'key "rules[1]" names an attribute', 'cells = { place = ["spouse"] }', f'cells = {{ {SECRET} = ["spouse"] }}'),
    Bad("rule of no label", "has no such label", 'cells = { place = ["spouse"] }', f'cells = {{ place = ["{SECRET}"] }}'),
    Bad("rule of nothing", 'key "rules", item 1 needs "of"', "at_most = 1", "at_most = 0"),
    Bad("rule of no cells", 'key "rules[1].of"', 'of = { place = ["holder"] }', "of = {}"),
    Bad("years of no number", 'key "years" must name an attribute whose labels are whole numbers', BOUNDS, household() + BOUNDS),
    Bad("years of a stranger", 'key "years" must name an attribute', BOUNDS, household(years=SECRET) + BOUNDS),
    Bad("head who is no member", "a head is a member too", BOUNDS, household(members="spouse") + BOUNDS),
    Bad("gap of the head", "must be members other than the head", BOUNDS, household(cells="holder") + BOUNDS),
    Bad("gap both ways", 'key "household.gaps", item 1 needs either "younger" or "older"', BOUNDS, household(gap="older = 2\nyounger = 1") + BOUNDS),
    Bad("gap of no years", 'key "household.gaps[1].older" must be at least 1', BOUNDS, household(gap="older = 0") + BOUNDS),
    Bad("gap named like a rule", "two rules or gaps have the same name", BOUNDS, household(name="spouses") + BOUNDS),
    Bad("bound below itself", "convents.csv is not a whole number", "2B1,1", f"2B1,{SECRET}", file="convents.csv"),
    Bad("query shares", "sums to 3/4", 'place = "1/2"', 'place = "1/4"'),
    Bad("no spec", "argument SPEC.toml is missing", arguments=("extend", *OUT)),
    Bad("no neighbours", "nothing would be protected", "epsilon = 1", 'epsilon = 1\nneighbours = "add-remove-record"'),
    Bad("no out", "option --out is missing", arguments=("extend", "larger.toml")),
    Bad("evaluate without seed", "option --seed is missing", arguments=("extend", "larger.toml", *OUT, "--evaluate")),
    Bad("first spec", "does not apply to an extension", arguments=("extend", "town.toml", *OUT)),
    Bad("run of an extension", 'key "extends"', arguments=("run", "larger.toml", *OUT)),
    Bad("out exists", "already exists", arguments=("extend", "larger.toml", "--out", "first")),
    Bad("other records", "has not admitted these data", ",f,", f",{SECRET},", file="people.csv"),
]  # fmt: skip


@pytest.fixture(scope="module")
def paid(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A town whose first release is paid for."""
    folder = tmp_path_factory.mktemp("paid")
    first, _ = write_larger(folder)
    Ledger.create(folder / "people.csv.ledger", Measure.EPSILON, Relation.CHANGE_RECORD, Fraction(9))
    topdown(first, out=folder / "first")
    return folder


@pytest.fixture
def here(paid: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    there = shutil.copytree(paid, tmp_path / "town")
    monkeypatch.chdir(there)
    return there


@pytest.mark.parametrize("case", CASES, ids=str)
def test_one_sentence(case: Bad, here: Path, call_louver: Runner) -> None:
    path = here / case.file
    text = path.read_bytes().decode()
    assert case.old in text
    if case.old:
        path.write_bytes(text.replace(case.old, case.new, 1).encode())
    before = set(here.rglob("*"))
    done = call_louver("topdown", *case.arguments)
    assert (done.code, done.out) == (2, ""), done
    assert done.err.startswith("louver topdown: ") and done.err.endswith(".\n") and done.err.count("\n") == 1
    assert case.says in done.err and SECRET not in done.err
    assert {one for one in here.rglob("*") if not one.name.startswith("people.csv.ledger-")} == before
    assert Ledger(here / "people.csv.ledger").state().spent == 2


def test_nothing_to_extend(here: Path, call_louver: Runner) -> None:
    same = (here / "town.toml").read_text().replace("epsilon = 2", 'epsilon = 1\nextends = "first"')
    start, end = same.index("[[topdown.invariants]]"), same.index("[[topdown.bounds]]")
    (here / "same.toml").write_text((same[:start] + same[end:]).replace("intervals = 0\n", ""))
    done = call_louver("topdown", "extend", "same.toml", *OUT)
    assert done.code == 2 and "there is nothing to extend" in done.err


def test_extend_from_the_command_line(here: Path, call_louver: Runner) -> None:
    done = call_louver("topdown", "extend", "larger.toml", *OUT, "--json")
    assert done.code == 0, done
    told = json.loads(done.out)
    assert told["epsilon"] == 1 and len(told["extends"]) == 64
    assert not any(told["edits"]["broken_after"].values())
    assert call_louver("verify", "out").code == 0
    page = (here / "out/report.html").read_text()
    assert "given the exact counts" in page and "nothing is exact" not in page
    assert "in addition to epsilon = 2 (change-record)" in page and "the whole privacy loss" not in page
    assert page.count("which ward a person lives in") == 2
    assert Ledger(here / "people.csv.ledger").state().spent == 3
    assert not (here / ".out.topdown").exists()
