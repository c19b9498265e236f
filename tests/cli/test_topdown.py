"""louver topdown on the command line: check, a paid run, the wall between measure and estimate, an evaluation."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cli.command import Runner
from topdown_town import SPEC, write_town


@pytest.fixture
def town(tmp_path: Path) -> Path:
    return write_town(tmp_path / "town")


@pytest.fixture
def paid(call_louver: Runner, town: Path) -> Path:
    ledger = town.parent / "people.csv.ledger"
    assert call_louver("ledger", "init", ledger, "--epsilon=2", "--neighbours=change-record").code == 0
    return ledger


def test_from_ledger_to_verify(call_louver: Runner, town: Path, tmp_path: Path) -> None:
    out = tmp_path / "release"
    refused = call_louver("topdown", "run", town, "--out", out)
    advice = "louver ledger init people.csv.ledger --epsilon 2 --neighbours change-record"
    assert refused.code == 2 and f"`{advice}`" in refused.err
    ledger = town.parent / "people.csv.ledger"
    assert call_louver("ledger", "init", ledger, *advice.split()[4:]).code == 0
    done = call_louver("topdown", "run", town, "--out", out, "--engine=local:2", "--csv", "--json")
    assert (done.code, done.err) == (0, "")
    told = json.loads(done.out)
    assert told["epsilon"] == 2.0 and told["failsafe_regions"] == told["suboptimal_regions"] == []
    assert told["manifest"] == str(out / "manifest.json")
    page = (out / "report.html").read_text()
    assert "which ward a person lives in" in page and "failsafe was never used" in page
    assert "NOT PRIVATE" not in page and "Run time" not in page
    assert (out / "data/microdata.csv").is_file()
    assert call_louver("verify", out).code == 0
    assert call_louver("ledger", "verify", ledger, "--releases", tmp_path).code == 0
    again = call_louver("topdown", "run", town, "--out", tmp_path / "more")
    assert again.code == 2 and "0 left" in again.err and not (tmp_path / "more").exists()


def test_the_wall(call_louver: Runner, town: Path, paid: Path, tmp_path: Path) -> None:
    folder, out = tmp_path / "measured", tmp_path / "release"
    done = call_louver("topdown", "measure", town, "--out", folder, "--json")
    assert done.code == 0 and json.loads(done.out)["epsilon"] == 2.0
    (town.parent / "people.csv").unlink()
    done = call_louver("topdown", "estimate", town, "--measurements", folder, "--out", out)
    assert done.code == 0 and "TopDownRelease" in done.out and f"Release: {out}" in done.out
    assert call_louver("verify", out).code == 0
    # A published release holds all that another estimate needs.
    done = call_louver("topdown", "estimate", town, "--measurements", out, "--out", tmp_path / "again")
    assert done.code == 0
    microdata = "data/microdata.parquet"
    assert (out / microdata).read_bytes() == (tmp_path / "again" / microdata).read_bytes()


def test_evaluation_fails_verify(call_louver: Runner, town: Path, tmp_path: Path) -> None:
    out = tmp_path / "evaluation"
    done = call_louver("topdown", "run", town, "--seed=1", "--evaluate", "--out", out, "--json")
    assert done.code == 0
    assert set(json.loads(done.out)["levels"][0]["mean_absolute_error"]) == {
        "quarters",
        "age_race",
        "detailed",
    }
    page = (out / "report.html").read_text()
    assert "NOT PRIVATE" in page and "How far off it is" in page
    assert call_louver("verify", out).code == 1


@pytest.mark.parametrize("out", [".", "/", ".."])
@pytest.mark.parametrize("more", [[], ["--seed=1"], ["--resume"]])
def test_a_place_that_is_no_new_folder_is_refused(
    call_louver: Runner, town: Path, paid: Path, monkeypatch: pytest.MonkeyPatch, out: str, more: list[str]
) -> None:
    monkeypatch.chdir(town.parent)
    before = sorted(town.parent.iterdir())
    done = call_louver("topdown", "run", town, "--out", out, *more)
    assert done.code == 2 and "option --out" in done.err and "already exists" in done.err
    assert sorted(town.parent.iterdir()) == before and "2 left" in call_louver("ledger", "show", paid).out


def test_seeded_without_a_folder(call_louver: Runner, town: Path) -> None:
    done = call_louver("topdown", "run", town, "--seed=1")
    assert done.code == 0 and "NOT PRIVATE" in done.out and "Release" not in done.out.splitlines()[-1]


def test_rho_is_restated(call_louver: Runner, tmp_path: Path) -> None:
    town = write_town(tmp_path / "town", SPEC.replace("epsilon = 2", 'rho = "1/2"\ndelta = 1e-6'))
    assert call_louver("topdown", "run", town, "--seed=1", "--out", tmp_path / "out").code == 0
    assert "at delta 1e-06" in (tmp_path / "out/report.html").read_text()


def test_check_finds_a_clash(call_louver: Runner, town: Path, tmp_path: Path) -> None:
    done = call_louver("topdown", "check", town)
    assert done.code == 0 and "consistent" in done.out and "dormitories: at least 3" in done.out
    values = tmp_path / "values.csv"
    values.write_text("invariant,level,region,value\nward total,ward,1,1\nward total,ward,2,60\n")
    done = call_louver("topdown", "check", town, "--invariants", values, "--json")
    assert done.code == 1
    clash = {(part["statement"], part["region"]) for part in json.loads(done.out)["clash"]}
    assert clash == {("ward total", "1"), ("dormitories", "1A2"), ("prisons", "1B1")}


def test_check_of_a_table(call_louver: Runner, town: Path, tmp_path: Path) -> None:
    counts = tmp_path / "counts.csv"
    counts.write_text("quarters,age,race,count\nhome,adult,a,50\ndorm,child,b,2\njail,adult,c,1\n")
    placed = ("--table", counts, "--level=town", "--region=")
    done = call_louver("topdown", "check", town, *placed)
    assert done.code == 1 and "cannot be extended" in done.out and "1A2" in done.out


def test_help_without_a_command(call_louver: Runner) -> None:
    done = call_louver("topdown")
    assert done.code == 0 and "estimate" in done.out


def test_measurements_go_out_in_the_published_layout_and_come_back(
    call_louver: Runner, paid: Path, town: Path, tmp_path: Path
) -> None:
    measured = tmp_path / "measured"
    assert call_louver("topdown", "measure", town, "--out", measured).code == 0
    assert call_louver("topdown", "export-nmf", town, "--out", tmp_path / "nmf").code == 2
    given = ("topdown", "export-nmf", town, "--measurements", measured, "--out", tmp_path / "nmf")
    done = call_louver(*given)
    assert (done.code, done.out) == (0, "Written to nmf\n")
    told = call_louver(
        "topdown", "import-nmf", tmp_path / "nmf", "--out", tmp_path / "in", "--by", "Town", "--json"
    )
    assert told.code == 0 and json.loads(told.out)["published_by"] == "Town"
    missing = call_louver("topdown", "import-nmf", "--out", tmp_path / "again")
    assert missing.code == 2 and "FOLDER" in missing.err
    assert call_louver("topdown", "import-nmf", tmp_path, "--out", tmp_path / "again").code == 2
