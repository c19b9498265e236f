"""Every verb once, in a process of its own: what `make wheel-test` runs against the built wheel."""

from __future__ import annotations

from pathlib import Path

import pytest

import louver
import louver.cli
from cli.command import PACKAGE, SITE, Runner
from topdown_town import write_town

PEOPLE = "name,home,place,age,ill\n" + "".join(
    f"n{i},h{i // 3},{'AB'[i % 2]},{20 + i % 5},{'yes' if i % 4 == 0 else 'no'}\n" for i in range(60)
)
AUDIT = """
[source]
file = "people.csv"
[[audit.tables]]
name = "everyone"
by = ["place", "ill"]
[[audit.tables]]
name = "A"
by = ["ill"]
where = { place = "A" }
"""
PROTECT = """
[source]
file = "people.csv"
[[protect.tables]]
name = "age"
by = ["place", "ill"]
value = "age"
[[protect.rules]]
rule = "p-percent"
p = 10
"""
SIZES = [
    "people.csv",
    "--unit=home",
    "--regions=place",
    "--across=split",
    "--domain-from-data",
    "--max-size=4",
]
ANONYMOUS = [
    "people.csv",
    "--quasi=place,age",
    "-k3",
    "--identifying=name,home",
    "--steps=4",
    "--out=anonymous",
]

STORY: dict[str, list[list[str]]] = {
    "profile": [["profile", "people.csv", "--json"]],
    "bounds": [["bounds", "people.csv", "--rows=place", "--cols=ill", "--html=bounds.html"]],
    "audit": [["audit", "--spec=audit.toml", "--json"]],
    "protect": [["protect", "protect.toml", "--out=protected", "--html=protected.html"], ["verify", "protected"]],
    "anonymize": [["anonymize", *ANONYMOUS]],
    "groups": [["groups", *SIZES, "--epsilon=1", "--seed=1", "--out=sizes"]],
    "verify": [["anonymize", *ANONYMOUS], ["verify", "anonymous"]],
    "demo": [["demo", "--files"]],
    "topdown": [["topdown", "check", "town/town.toml"], ["topdown", "run", "town/town.toml", "--seed=1", "--out=out"]],
    "ledger": [["ledger", "init", "people.csv.ledger", "--epsilon=1"], ["ledger", "show", "people.csv.ledger"]],
    "explore": [["explore", "--help"]],  # it serves until it is interrupted; tests/app has it in a browser
}  # fmt: skip


@pytest.mark.parametrize("verb", louver.cli.VERBS)
def test_every_verb(verb: str, run_louver: Runner, tmp_path: Path) -> None:
    (tmp_path / "people.csv").write_text(PEOPLE)
    (tmp_path / "audit.toml").write_text(AUDIT)
    (tmp_path / "protect.toml").write_text(PROTECT)
    write_town(tmp_path / "town")
    for command in STORY[verb]:
        done = run_louver(*command, cwd=tmp_path)
        assert (done.code, done.err) == (0, ""), command


def test_the_wheel_is_under_test() -> None:
    assert SITE is None or Path(SITE) / "louver" == PACKAGE
