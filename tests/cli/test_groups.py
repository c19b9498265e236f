"""louver groups on the command line: forecast, a paid release, a seeded evaluation."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pyarrow.parquet as pq
import pytest

from cli.command import Runner
from louver.data.samples import sample_path


@pytest.fixture
def people(tmp_path: Path) -> Path:
    path = tmp_path / "people.csv"
    rows = [f"h{home},{'GA' if home % 2 else 'NY'}" for home in range(30) for _ in range(1 + home % 3)]
    path.write_text("home,state\n" + "\n".join(rows) + "\n")
    (tmp_path / "regions.csv").write_text("state\nGA\nNY\n")
    return path


def _given(people: Path) -> list[str]:
    domain = str(people.with_name("regions.csv"))
    return [
        "--unit=home",
        "--regions=state",
        f"--domain={domain}",
        "--max-size=4",
        "--epsilon=1",
        "--total=public",
    ]


def test_from_ledger_to_verify(call_louver: Runner, people: Path, tmp_path: Path) -> None:
    out = tmp_path / "release"
    refused = call_louver("groups", people, *_given(people), "--out", out)
    assert refused.code == 2 and "louver ledger init people.csv.ledger" in refused.err
    assert call_louver("ledger", "init", tmp_path / "people.csv.ledger", "--epsilon=1").code == 0
    done = call_louver("groups", people, *_given(people), "--out", out, "--json")
    assert (done.code, done.err) == (0, "")
    told = json.loads(done.out)
    assert told["mechanism"] == "louver" and told["total_groups"] == 30
    assert (out / "report.html").is_file()
    assert call_louver("verify", out).code == 0
    assert call_louver("ledger", "verify", tmp_path / "people.csv.ledger", "--releases", tmp_path).code == 0
    assert call_louver("groups", people, *_given(people), "--out", tmp_path / "more").code == 2


def test_forecast_opens_no_data(call_louver: Runner, people: Path) -> None:
    people.unlink()
    done = call_louver("groups", people, *_given(people), "--forecast=1000", "--json")
    assert done.code == 0
    assert [level["name"] for level in json.loads(done.out)["levels"]] == ["total", "state"]


def test_evaluation_fails_verify(call_louver: Runner, people: Path, tmp_path: Path) -> None:
    out = tmp_path / "evaluation"
    done = call_louver("groups", people, *_given(people), "--seed=1", "--evaluate", "--out", out)
    assert done.code == 0 and "NOT PRIVATE" in done.out
    assert call_louver("verify", out).code == 1


def test_the_embedded_crashes_end_to_end(call_louver: Runner, tmp_path: Path) -> None:
    """A real file: 34,782 crashes of 2013 in 60 sampling units of four regions, paid, verified, and compared with itself."""
    data, domain = sample_path("ges2013"), sample_path("ges2013_regions")
    ledger, out = tmp_path / "crashes.ledger", tmp_path / "release"
    assert call_louver("ledger", "init", ledger, "--epsilon=2").code == 0
    given = ["--unit=CASENUM", "--regions=REGION,PSU", f"--domain={domain}", "--max-size=20", "--epsilon=2"]
    given.append("--total=public")
    done = call_louver("groups", data, *given, "--ledger", ledger, "--out", out, "--json")
    assert (done.code, done.err) == (0, "")
    told = json.loads(done.out)
    assert told["total_groups"] == 34782
    assert [level["regions"] for level in told["levels"]] == [1, 4, 60]
    assert call_louver("verify", out).code == 0
    assert call_louver("ledger", "verify", ledger, "--releases", tmp_path).code == 0
    frame = pq.read_table(out / "data" / "groups.parquet").to_pandas()
    true = pd.read_csv(data).groupby("CASENUM").size().clip(upper=20).value_counts()
    root = frame[frame.level == "total"].set_index("size").groups
    assert all(abs(root[size] - true.get(size, 0)) < 200 for size in range(21))
    assert abs(root[2] - true[2]) < true[2] / 50
    assert str(tmp_path) not in (out / "report.html").read_text(encoding="utf-8")
