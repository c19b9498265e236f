"""louver topdown on bad input: exit 2, one sentence that says where, nothing written, no value quoted, nothing spent."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import pytest

from cli.command import Runner
from louver.privacy.budget import Measure
from louver.privacy.ledger import Ledger
from louver.privacy.neighbours import Relation
from topdown_town import SPEC, write_town

SECRET = "Zyx77Confidential"
OUT = ("--out", "out")


@dataclass(frozen=True)
class Bad:
    """An edit of one of the town's files, arguments to give, and words the sentence must have."""

    name: str
    says: str
    file: str = "town.toml"
    old: str = ""
    new: str = ""
    arguments: tuple[str, ...] = ("run", "town.toml", *OUT)

    def __str__(self) -> str:
        return self.name


def spec(name: str, says: str, old: str, new: str) -> Bad:
    """A spec that cannot be used."""
    assert old in SPEC, old
    return Bad(name, says, "town.toml", old, new)


def options(name: str, says: str, *arguments: str) -> Bad:
    """Options that cannot be used, with a good spec."""
    return Bad(name, says, arguments=arguments)


SHARES = SPEC[SPEC.index("[topdown.shares]") : SPEC.index("[[topdown.invariants]]")]
MERGED = SPEC.replace(SHARES, "").replace(
    'quarters = ["quarters"]', 'few = { attributes = ["race"], merge = { race = { x = ["b", "c"] } } }'
)

COLUMNS = 'columns = ["a", "b"]\nlevels = ["a", "b"]\nleaves = "leaves.csv"\n[topdown.rest]'

SPECS = [
    spec("not TOML", "town.toml is not valid TOML", "[topdown]\n", f"[topdown]\n{SECRET}\n"),
    spec("no topdown section", "needs a budget", SPEC[SPEC.index("[topdown]") :], ""),
    spec("unknown key", 'key "epsilno"', "epsilon = 2", f'epsilon = 2\nepsilno = "{SECRET}"'),
    spec("no budget", "needs a budget", "epsilon = 2\n", ""),
    spec("two budgets", "needs a budget", "epsilon = 2", "epsilon = 2\nrho = 1"),
    spec("budget that is text", 'key "epsilon"', "epsilon = 2", f'epsilon = "{SECRET}"'),
    spec("budget of nothing", 'key "epsilon"', "epsilon = 2", "epsilon = 0"),
    spec("rho without delta", "delta", "epsilon = 2", "rho = 2"),
    spec("unknown neighbours", 'key "neighbours"', "epsilon = 2", f'epsilon = 2\nneighbours = "{SECRET}"'),
    spec("level shares", "sums to 5/4, not to 1", 'town = "1/4"', 'town = "1/2"'),
    spec("query shares", '"shares.queries" sums to 3/4', 'detailed = "1/2"', 'detailed = "1/4"'),
    spec("shares in decimals that round", "not to 1", 'town = "1/4"', 'town = "0.2499999999"'),
    spec("level without share", "every level", 'town = "1/4", ', ""),
    spec("share of no query", '"shares.queries.other"', 'detailed = "1/2"', 'other = "1/2"'),
    spec("query of a stranger", '"queries.age_race"', '["age", "race"]', f'["{SECRET}"]'),
    spec("query that is a path", "letters, digits", "age_race = [", '"../../age" = ['),
    spec("labels not listed", 'attribute "race" needs its labels', 'labels = ["a", "b", "c"]', ""),
    spec("prefixes", "prefix length", "[0, 1, 2, 3]", "[0, 2, 1, 3]"),
    spec("several roots", "more than one region", 'levels = ["town", "ward", "area", "block"]\nprefixes = [0, 1, 2, 3]',
         'levels = ["ward", "area", "block"]\nprefixes = [1, 2, 3]'),
    spec("a column short", "one column for each of the 4 levels", 'column = "block"\nlevels = ["town", "ward", "area", "block"]\nprefixes = [0, 1, 2, 3]',
         'columns = ["ward", "area", "block"]\nlevels = ["town", "ward", "area", "block"]'),
    spec("leaves absent", "nowhere.csv does not exist", 'leaves = "leaves.csv"', 'leaves = "nowhere.csv"'),
    spec("leaves are the records", '"geography.leaves"', 'leaves = "leaves.csv"', 'leaves = "people.csv"'),
    spec("source absent", "gone.csv does not exist", 'file = "people.csv"', 'file = "gone.csv"'),
    spec("invariant of no level", '"invariants[1]"', 'level = "ward"', f'level = "{SECRET}"'),
    spec("invariant of no label", "has no such label", 'level = "ward"', f'level = "ward"\ncells = {{ race = ["{SECRET}"] }}'),
    spec("side table absent", "gone.csv does not exist", 'file = "facilities.csv"', 'file = "gone.csv"'),
    spec("side table without the column", 'no column "beds"', 'facilities = "dorm"', 'facilities = "beds"'),
    spec("side table is the records", '"bounds[1]"', 'file = "facilities.csv"', 'file = "people.csv"'),
    spec("names twice", "the same name", 'name = "prisons"', 'name = "dormitories"'),
    spec("everything a structural zero", "all cells", 'quarters = ["jail"]\nage = ["child"]', 'age = ["adult", "child"]'),
    spec("nobody to protect", "nothing would be protected", "epsilon = 2", 'epsilon = 2\nneighbours = "add-remove-record"'),
]  # fmt: skip

FILES = [
    Bad("leaf twice", "leaf row 10 occurs twice", "leaves.csv", "2B2", "2B2\r\n1A1"),
    Bad("leaf of another length", "leaf code 1 ", "leaves.csv", "1A1", f"1A1{SECRET}"),
    Bad("leaf missing", 'column "block" in leaves.csv has no value on row 2', "leaves.csv", "1A2", '""'),
    Bad("no leaves", "leaves.csv has no rows", "leaves.csv", "*", "block\n"),
    Bad("leaves without the column", 'no column "block"', "leaves.csv", "block", "Block_"),
    Bad("record outside the leaves", 'column "block"', "people.csv", "1A1", "9Z9"),
    Bad("record with a strange label", 'column "race"', "people.csv", "adult,a", f"adult,{SECRET}"),
    Bad("record without a value", 'column "age" in people.csv has no value', "people.csv", "home,adult", "home,"),
    Bad("record in a structural zero", "structural zero", "people.csv", "jail,adult", "jail,child"),
    Bad("record with too many fields", "people.csv: row 1 has more", "people.csv", "1A1,home", f"1A1,{SECRET},home"),
    Bad("side table with a strange leaf", "facilities.csv names a region on row 1", "facilities.csv", "1A1", SECRET),
    Bad("side table with a leaf twice", "has a leaf twice, on row 2", "facilities.csv", "1A2", "1A1"),
    Bad("side table without a leaf", "no row for some of the leaves", "facilities.csv", "2B2,0,0,36\r\n", ""),
    Bad("side table with text", 'column "dorm" in facilities.csv is not a whole number on row 1', "facilities.csv",
        "1A1,0", f"1A1,{SECRET}"),
    Bad("side table with a negative number", "not a whole number on row 2", "facilities.csv", "1A2,1", "1A2,-1"),
    # Ward 1 has 57 people, and 99 dormitories with somebody in each.
    Bad("records against the side table", 'ward "1"', "facilities.csv", "1A2,1,", "1A2,99,"),
]  # fmt: skip

PLANS = [
    options("plan without a spec", "argument SPEC.toml is missing", "plan"),
    options("stand-in absent", "gone.csv does not exist", "plan", "town.toml", "--stand-in", "gone.csv"),
    options("records as stand-in", "names the records themselves", "plan", "town.toml", "--stand-in", "people.csv"),
    options("stand-in of another kind", 'no column "quarters"', "plan", "town.toml", "--stand-in", "facilities.csv"),
    options("stand-in that is no release", "manifest", "plan", "town.toml", "--stand-in", "."),
    options("nobody", "option --people must be", "plan", "town.toml", "--people", "0"),
    options("people that are text", "--people must be a whole number", "plan", "town.toml", "--people", SECRET),
    options("composition alone", "give --stand-in too", "plan", "town.toml", "--composition", "known.csv"),
    options("records as composition", "--composition names the records themselves", "plan", "town.toml", "--composition",
            "people.csv", "--stand-in", "facilities.csv"),
    options("composition without counts", 'no column "count"', "plan", "town.toml", "--composition", "facilities.csv",
            "--stand-in", "facilities.csv"),
    options("simulations below zero", "option --simulations", "plan", "town.toml", "--simulations", "-1"),
    options("workload of another name", "option --workload", "plan", "town.toml", "--workload", SECRET),
    options("weight of no level", "--weight names a level or query", "plan", "town.toml", "--weight", f"{SECRET}/detailed=1"),
    options("weight of no query", "--weight names a level or query", "plan", "town.toml", "--weight", f"block/{SECRET}=1"),
    options("weight without a number", "needs a number after each =", "plan", "town.toml", "--weight", f"block={SECRET}"),
    options("weight below zero", "weights of 0 or more", "plan", "town.toml", "--weight", "block=-1"),
    options("weights of nothing", "gives no query a positive weight", "plan", "town.toml", "--weight", "block=0"),
    options("target of no level", "--target names a level or query", "plan", "town.toml", "--target", f"{SECRET}=1"),
    options("target of nothing", "percentages above 0", "plan", "town.toml", "--target", "block/detailed=0"),
    options("plan over a file", "facilities.csv already exists", "plan", "town.toml", "--write", "facilities.csv"),
    options("plan elsewhere", "a file in the folder of town.toml", "plan", "town.toml", "--write", "/tmp/louver-none.toml"),
    options("plan on another engine", "engine must be local:N", "plan", "town.toml", "--engine", f"x:{SECRET}"),
    options("page in nowhere", "--html cannot write", "plan", "town.toml", "--html", "nowhere/page.html"),
    Bad("shares left out and labels merged", "write shares", "town.toml", "*", MERGED, ("run", "town.toml", *OUT)),
]  # fmt: skip

OPTIONS = [
    options("no spec", "argument SPEC.toml is missing", "run", *OUT),
    options("spec absent", "no.toml does not exist", "run", "no.toml", *OUT),
    options("no out", "option --out is missing", "run", "town.toml"),
    options("no out to measure", "option --out is missing", "measure", "town.toml"),
    options("out exists", "town.toml already exists", "run", "town.toml", "--out", "town.toml"),
    options("out in nowhere", "the parent folder of", "run", "town.toml", "--out", "nowhere/out"),
    options("evaluate without seed", "option --seed is missing", "run", "town.toml", *OUT, "--evaluate"),
    options("seed that is text", "--seed must be a whole number", "run", "town.toml", *OUT, "--seed", SECRET),
    options("engine of another kind", "engine must be local:N", "run", "town.toml", *OUT, "--engine", f"x:{SECRET}"),
    options("engine without cores", "engine must be local:N", "estimate", "town.toml", "--measurements", ".", *OUT,
            "--engine", "local:0"),
    options("ledger absent", "there is no ledger gone.ledger", "run", "town.toml", *OUT, "--ledger", "gone.ledger"),
    options("no measurements", "option --measurements is missing", "estimate", "town.toml", *OUT),
    options("measurements that are none", "has no measurements", "estimate", "town.toml", "--measurements", ".", *OUT),
    options("table without its region", "belong together", "check", "town.toml", "--table", "people.csv"),
    options("known values without columns", 'no column "invariant"', "check", "town.toml", "--invariants", "people.csv"),
]  # fmt: skip

CASES = [*SPECS, *FILES, *OPTIONS, *PLANS]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A town with a ledger that has enough, as the working folder."""
    write_town(tmp_path)
    Ledger.create(tmp_path / "people.csv.ledger", Measure.EPSILON, Relation.CHANGE_RECORD, Fraction(100))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def assert_sentence(text: str, says: str) -> None:
    """One line that says what is wrong where, and repeats nothing."""
    assert text.startswith("louver topdown: ")
    assert text.endswith(".\n") and text.count("\n") == 1
    assert says in text
    for secret in (SECRET, SECRET.lower(), "9Z9", "Traceback", "internal error"):
        assert secret not in text


@pytest.mark.parametrize("case", CASES, ids=str)
def test_one_sentence(case: Bad, here: Path, call_louver: Runner) -> None:
    text = (here / case.file).read_bytes().decode()
    assert case.old in text or case.old == "*"
    (here / case.file).write_bytes(
        (case.new if case.old == "*" else text.replace(case.old, case.new, 1)).encode()
    )
    before = set(here.rglob("*"))
    done = call_louver("topdown", *case.arguments)
    assert (done.code, done.out) == (2, ""), done
    assert_sentence(done.err, case.says)
    left = {path for path in here.rglob("*") if not path.name.startswith("people.csv.ledger-")}
    assert left == before
    state = Ledger(here / "people.csv.ledger").state()
    assert state.spent == 0 and not state.disclosures and not state.pending


GRANTS = {
    "too little": (
        Measure.EPSILON,
        Relation.CHANGE_RECORD,
        Fraction(1),
        "has epsilon 1 left, and 2 was requested",
    ),
    "nothing": (Measure.EPSILON, Relation.CHANGE_RECORD, None, "has epsilon 0 left"),
    "another relation": (
        Measure.EPSILON,
        Relation.ADD_REMOVE_RECORD,
        Fraction(9),
        "implies none for add-remove",
    ),
}


@pytest.mark.parametrize("name", GRANTS)
def test_budget_without_a_grant(name: str, tmp_path: Path, monkeypatch, call_louver: Runner) -> None:
    measure, relation, amount, says = GRANTS[name]
    write_town(tmp_path)
    Ledger.create(tmp_path / "people.csv.ledger", measure, relation, amount)
    monkeypatch.chdir(tmp_path)
    before = set(tmp_path.rglob("*"))
    for verb in ("run", "measure"):
        done = call_louver("topdown", verb, "town.toml", *OUT)
        assert (done.code, done.out) == (2, "")
        assert_sentence(done.err, says)
    left = {path for path in tmp_path.rglob("*") if not path.name.startswith("people.csv.ledger-")}
    assert left == before
    assert not Ledger(tmp_path / "people.csv.ledger").state().disclosures


def test_pure_epsilon_ledger_and_rho_spec(here: Path, call_louver: Runner) -> None:
    (here / "town.toml").write_text(SPEC.replace("epsilon = 2", "rho = 1\ndelta = 1e-9"))
    done = call_louver("topdown", "run", "town.toml", *OUT)
    assert done.code == 2
    assert_sentence(done.err, "no rho implies a pure epsilon")
    assert not (here / ".out.topdown").exists()


def test_regions_that_do_not_nest(here: Path, call_louver: Runner) -> None:
    """By columns, a record's combination of regions must be one of the list, even where each region is."""
    levels, shares = '["state", "area", "county"]', '{ state = "1/3", area = "1/3", county = "1/3" }'
    text = SPEC.replace('column = "block"\n', "").replace("prefixes = [0, 1, 2, 3]", f"columns = {levels}")
    text = text.replace('["town", "ward", "area", "block"]', levels)
    text = text.replace('{ town = "1/4", ward = "1/4", area = "1/4", block = "1/4" }', shares)
    (here / "town.toml").write_text(text[: text.index("[[topdown.invariants]]")])
    (here / "leaves.csv").write_text("state,area,county\nS,A,x\nS,B,y\n")
    head = "state,area,county,quarters,age,race\nS,A,x,home,adult,a\n"
    (here / "people.csv").write_text(head + "S,A,y,home,adult,a\n")
    done = call_louver("topdown", "run", "town.toml", "--seed=1")
    assert done.code == 2
    assert_sentence(done.err, "people.csv has a record in a region that the list of leaves does not have")
    (here / "leaves.csv").write_text("state,area,county\nS,A,x\nT,A,y\n")
    done = call_louver("topdown", "check", "town.toml")
    assert done.code == 2
    assert_sentence(done.err, "more than one region")


def test_in_a_process_of_its_own(here: Path, run_louver: Runner) -> None:
    (here / "people.csv").write_text(f"block,quarters,age,race\n1A1,home,adult,{SECRET}\n")
    done = run_louver("topdown", "run", "town.toml", *OUT, cwd=here)
    assert (done.code, done.out) == (2, "")
    assert_sentence(done.err, 'column "race"')


def test_there_are_enough() -> None:
    assert len({case.name for case in CASES}) == len(CASES) >= 30
