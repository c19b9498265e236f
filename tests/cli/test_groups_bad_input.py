"""Bad input to louver groups: exit code 2, one sentence, nothing spent, nothing written, no value of the data told."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import pytest

from cli.command import Runner
from louver.privacy.budget import Measure
from louver.privacy.ledger import Ledger
from louver.privacy.neighbours import Relation

SECRET = "Zyx77Confidential"

GOOD = {
    "unit": "home",
    "regions": "state,county",
    "domain": "regions.csv",
    "max-size": "5",
    "epsilon": "1",
    "total": "public",
    "out": "release",
}


@dataclass(frozen=True)
class Bad:
    """Options changed (None: left out; empty: a flag), a row added to the data, and words that the sentence must have."""

    says: str
    options: dict[str, str | None]
    row: str = ""
    domain: str = "state,county\nGA,Cobb\nNY,Kings\n"

    def __str__(self) -> str:
        return self.says


CASES = [
    Bad("give either --unit", {"unit": None}),
    Bad("give either --unit", {"size": "home"}),
    Bad("--groups is missing", {"unit": None, "size": "home"}),
    Bad("--regions is missing", {"regions": None}),
    Bad("has an empty name", {"regions": "state,,county"}),
    Bad("names a column twice", {"regions": "state,state"}),
    Bad('no column "street"', {"regions": "state,street"}),
    Bad('no column "house"', {"unit": "house"}),
    Bad("--max-size is missing", {"max-size": None}),
    Bad("must be at least 1", {"max-size": "0"}),
    Bad("--max-size", {"max-size": "many"}),
    Bad("--min-size must be at most 1", {"min-size": "2"}),
    Bad("--domain is missing", {"domain": None}),
    Bad("nowhere.csv", {"domain": "nowhere.csv"}),
    Bad("is the data file itself", {"domain": "people.csv"}),
    Bad("cannot be used together", {"domain-from-data": ""}),
    Bad("--epsilon or as --rho", {"epsilon": None}),
    Bad("--epsilon or as --rho", {"rho": "1"}),
    Bad("--epsilon is not a number", {"epsilon": SECRET}),
    Bad("--epsilon is not a number", {"epsilon": "0"}),
    Bad("2 budget shares are given for 3 levels", {"shares": "1/2,1/2"}),
    Bad("sum to 7/6", {"shares": "1/2,1/3,1/3"}),
    Bad("--mechanism must be one of", {"mechanism": SECRET}),
    Bad("too large for a general solver", {"mechanism": "M_H", "max-size": "90000"}),
    Bad("needs a public total", {"mechanism": "M_c^dp", "total": "noisy"}),
    Bad("option --noise", {"noise": "numpy"}),
    Bad("OpenDP takes no seed", {"noise": "opendp", "seed": "1"}),
    Bad("use --total noisy", {"neighbours": "add-remove-unit"}),
    Bad("option --neighbours", {"neighbours": "friends"}),
    Bad("--quantity is missing", {"max-quantity": "3"}),
    Bad("not a whole number from 0 to 1 on row 1", {"quantity": "county"}),
    Bad("--seed is missing", {"evaluate": ""}),
    Bad("needs --evaluate", {"as-published": ""}),
    Bad("--out is missing", {"out": None}),
    Bad("already exists", {"out": "people.csv"}),
    Bad("there is no ledger none.ledger", {"ledger": "none.ledger"}),
    Bad("has epsilon 2 left, and 3 was requested", {"epsilon": "3"}),
    Bad("the domain does not list", {}, row=f"h9,NY,{SECRET}"),
    Bad("has no value on row 4", {}, row="h9,NY,"),
    Bad("has no value on row 4", {}, row=",NY,Kings"),
    Bad("more than one region, first on row 1", {}, row="h1,NY,Kings"),
    Bad("no rows", {}, domain="state,county\n"),
    Bad("a leaf region on row 2", {}, domain="state,county\nGA,Cobb\nGA,Cobb\n"),
    Bad("has no value on row 1", {}, domain="state,county\nGA,\n"),
]


@pytest.mark.parametrize("bad", CASES, ids=str)
def test_bad_input(bad: Bad, call_louver: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    rows = ["home,state,county", "h1,GA,Cobb", "h1,GA,Cobb", "h2,NY,Kings", bad.row]
    Path("people.csv").write_text("\n".join(rows).rstrip() + "\n")
    Path("regions.csv").write_text(bad.domain)
    ledger = Ledger.create(
        Path("people.csv.ledger"), Measure.EPSILON, Relation.ADD_REMOVE_RECORD, Fraction(2)
    )
    options = {name: value for name, value in {**GOOD, **bad.options}.items() if value is not None}
    done = call_louver("groups", "people.csv", *(f"--{k}={v}" if v else f"--{k}" for k, v in options.items()))
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("louver groups: ") and done.err.count("\n") == 1 and done.err.endswith(".\n")
    assert bad.says in done.err and SECRET not in done.err and "Traceback" not in done.err
    assert ledger.state().spent == 0 and not ledger.state().pending
    assert not Path("release").exists() and not list(tmp_path.glob(".*"))


def test_the_same_with_nothing_bad_works(
    call_louver: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the cases above change is good in itself, and there are enough of them."""
    monkeypatch.chdir(tmp_path)
    Path("people.csv").write_text("home,state,county\nh1,GA,Cobb\nh1,GA,Cobb\nh2,NY,Kings\n")
    Path("regions.csv").write_text("state,county\nGA,Cobb\nNY,Kings\n")
    Ledger.create(Path("people.csv.ledger"), Measure.EPSILON, Relation.ADD_REMOVE_RECORD, Fraction(2))
    assert call_louver("groups", "people.csv", *(f"--{k}={v}" for k, v in GOOD.items())).code == 0
    assert len(CASES) >= 20
