"""`louver bounds` where no count can be derived and people are disclosed all the same, and tables as others print them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from cli.command import Finished, Runner

ASKED = ("--rows", "age,town", "--cols", "status", "--weight", "count")


def answer(done: Finished) -> dict[str, Any]:
    assert (done.code, done.err) == (0, "")
    result: dict[str, Any] = json.loads(done.out)
    return result


@pytest.fixture
def survey(tmp_path: Path) -> Path:
    """A survey table in small cells: 40 rows of one person, 25 more at 100 %, 15 that are mixed."""
    lines = []
    for row in range(80):
        people = (
            (1, 0, 0) if row < 40 else (0, 3 + row % 7, 0) if row < 65 else (40 + row, 20 + row, 10 + row)
        )
        labels = f"{18 + row // 4},{'NESW'[row % 4]}"
        lines += [
            f"{labels},{status},{n}" for status, n in zip(("works", "retired", "other"), people, strict=True)
        ]
    path = tmp_path / "survey.csv"
    path.write_text("age,town,status,count\n" + "\n".join(lines) + "\n", encoding="utf-8")
    return path


def test_a_table_that_tells_everybodys_status_is_no_longer_called_safe(
    call_louver: Runner, survey: Path
) -> None:
    summary = answer(call_louver("bounds", survey, *ASKED, "--json"))["summary"]
    assert (summary["disclosed_small_cells"], summary["disclosed_rows"]) == (0, 0)
    people = sum(3 + row % 7 for row in range(40, 65))
    small = [3 + row % 7 for row in range(40, 65) if 3 + row % 7 < 5]
    assert (summary["certain_rows"], summary["certain_people"]) == (65, 40 + people)
    assert (summary["small_rows"], summary["small_row_people"]) == (40 + len(small), 40 + sum(small))
    assert summary["unit_rows"] == 65
    done = call_louver("bounds", survey, *ASKED, "--fail-on", "attribute")
    assert done.code == 1
    assert done.out.startswith(
        f"Counts cannot be derived, but 65 rows reveal a person's status ({40 + people} people). "
        f"{40 + len(small)} rows hold fewer than 5 people. Do not publish it as it is."
    )
    assert call_louver("bounds", survey, *ASKED, "--fail-on", "any").code == 1
    assert call_louver("bounds", survey, *ASKED, "--fail-on", "small").code == 0


def test_rounding_does_not_hide_it(call_louver: Runner, survey: Path) -> None:
    summary = answer(call_louver("bounds", survey, *ASKED, "--decimals", "1", "--json"))["summary"]
    assert (summary["unit_rows"], summary["certain_rows"]) == (None, 65)


def test_certain_may_be_less_than_all(call_louver: Runner, tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("site,ill,count\nA,no,19\nA,yes,1\nB,no,9\nB,yes,9\n", encoding="utf-8")
    options = ("bounds", path, "--rows", "site", "--cols", "ill", "--weight", "count")
    assert answer(call_louver(*options, "--json"))["summary"]["certain_rows"] == 0
    done = call_louver(*options, "--certain", "95", "--fail-on", "attribute")
    assert done.code == 1
    assert "1 row reveals a person's status with at least 95 % certainty (20 people)" in done.out
    assert "1 row with at least 95 % in one cell" in done.out


def test_redesigns_avoid_such_rows_and_run(call_louver: Runner, survey: Path, tmp_path: Path) -> None:
    folder = tmp_path / "redesigns"
    options = ("--suggest", "--seconds", "2", "--fix", "status", "--json")
    result = answer(call_louver("bounds", survey, *ASKED, *options, "--write-recodes", folder))
    assert result["suggestions"]
    files = sorted(folder.iterdir())
    assert len(files) == len(result["suggestions"])
    for file, suggestion in zip(files, result["suggestions"], strict=True):
        assert suggestion["summary"]["certain_rows"] == suggestion["summary"]["disclosed_small_cells"] == 0
        arranged = ("--rows", ",".join(suggestion["rows"]), "--cols", ",".join(suggestion["cols"]))
        again = call_louver("bounds", survey, *arranged, "--weight", "count", "--recode", file, "--json")
        assert answer(again)["summary"] == suggestion["summary"]
        for merged in suggestion["merged"]:
            if merged["attribute"] == "age":
                ages = [int(label) for label in merged["labels"]]
                assert ages == list(range(ages[0], ages[-1] + 1))


PRINTED = "site,ill,share,people\nA,no,57.1 %,7\nA,yes,42.9%,7\nB,no,37.5,8\nB,yes,62.5,\n"
SHARES = ("--rows", "site", "--cols", "ill", "--weight", "share", "--conditionals", "--percent")


@pytest.fixture
def printed(tmp_path: Path) -> Path:
    path = tmp_path / "printed.csv"
    path.write_text(PRINTED, encoding="utf-8")
    return path


@pytest.mark.parametrize("known", [("--row-n", "people"), ("--n", "15")])
def test_percentages_as_published(call_louver: Runner, printed: Path, known: tuple[str, str]) -> None:
    result = answer(call_louver("bounds", printed, *SHARES, *known, "--decimals", "3", "--json"))
    assert [(cell["lower"], cell["upper"]) for cell in result["cells"]] == [(4, 4), (3, 3), (3, 3), (5, 5)]
    assert (result["summary"]["n"], result["summary"]["small_rows"]) == (15, 0)


def test_decimal_commas_in_percentages(call_louver: Runner, tmp_path: Path) -> None:
    path = tmp_path / "printed.csv"
    path.write_text(PRINTED.replace(",", ";").replace(".", ","), encoding="utf-8")
    options = ("--row-n", "people", "--decimals", "3", "--decimal-mark", ",", "--json")
    result = answer(call_louver("bounds", path, *SHARES, *options))
    assert [cell["lower"] for cell in result["cells"]] == [4, 3, 3, 5]


def test_exact_decimals_that_fit_no_table_are_told_to_be_rounded(call_louver: Runner, printed: Path) -> None:
    done = call_louver("bounds", printed, *SHARES, "--n", "15")
    assert (done.code, done.out) == (2, "")
    assert "no table has these conditionals" in done.err and "give --decimals 3" in done.err
    done = call_louver("bounds", printed, *SHARES, "--row-n", "people")
    assert "give --decimals if the conditionals are rounded" in done.err


def test_somebody_elses_table_is_not_ours_to_publish(call_louver: Runner, tmp_path: Path) -> None:
    path = tmp_path / "printed.csv"
    path.write_text("site,ill,share\nA,no,1\nB,no,0.5\nB,yes,0.5\n", encoding="utf-8")
    done = call_louver(
        "bounds", path, "--rows", "site", "--cols", "ill", "--weight", "share", "--conditionals", "--n", "9"
    )
    first = done.out.splitlines()[0]
    assert "1 row reveals a person's status (at least 1 person)" in first
    assert first.endswith("Anyone who has the table can derive this.")
