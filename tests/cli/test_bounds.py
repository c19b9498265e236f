"""`louver bounds`: every option once, on tables whose answer can be checked by hand."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cli.command import COUNTED, SAFE, Finished, Runner

ARRANGED = ("--rows", "site", "--cols", "ill")
WEIGHTED = (*ARRANGED, "--weight", "count")
LABELS = [("A", "no"), ("A", "yes"), ("B", "no"), ("B", "yes")]

COUNTED_SUMMARY = {
    "rows": 2,
    "cols": 2,
    "n": 15,
    "reduced_total": 15,
    "zero_rows": 0,
    "unit_rows": 0,
    "disclosed_rows": 2,
    "disclosed_zero_cells": 0,
    "disclosed_small_cells": 3,
    "certain_rows": 0,
    "certain_people": 0,
    "small_rows": 0,
    "small_row_people": 0,
}


def answer(done: Finished) -> dict[str, Any]:
    """The result on stdout, which must hold nothing else."""
    assert (done.code, done.err) == (0, "")
    assert done.out.count("\n") == 1
    result: dict[str, Any] = json.loads(done.out)
    return result


def values(result: dict[str, Any]) -> list[list[list[int]]]:
    """Feasible values of the four cells, whose labels must be those of the tables here."""
    assert [(cell["row"]["site"], cell["col"]["ill"]) for cell in result["cells"]] == LABELS
    return [cell["values"] for cell in result["cells"]]


def only(*counts: int) -> list[list[list[int]]]:
    """Values of cells that can have one count each."""
    return [[[count, count, 1]] for count in counts]


def write(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


class TestSources:
    """The same table in every form gives the same result."""

    def check(self, done: Finished) -> None:
        result = answer(done)
        assert result["summary"] == COUNTED_SUMMARY
        assert values(result) == only(4, 3, 3, 5)
        assert [(cell["lower"], cell["upper"]) for cell in result["cells"]] == [
            (4, 4),
            (3, 3),
            (3, 3),
            (5, 5),
        ]

    def test_counted(self, call_louver: Runner, counted: Path) -> None:
        self.check(call_louver("bounds", counted, *WEIGHTED, "--json"))

    def test_records(self, call_louver: Runner, tmp_path: Path) -> None:
        people = "A,no\n" * 4 + "B,yes\n" * 5 + "A,yes\n" * 3 + "B,no\n" * 3
        self.check(
            call_louver("bounds", write(tmp_path, "p.csv", "site,ill\n" + people), *ARRANGED, "--json")
        )

    def test_compressed(self, call_louver: Runner, tmp_path: Path) -> None:
        path = tmp_path / "counted.csv.gz"
        path.write_bytes(gzip.compress(COUNTED.encode()))
        self.check(call_louver("bounds", path, *WEIGHTED, "--json"))

    def test_semicolons(self, call_louver: Runner, tmp_path: Path) -> None:
        path = write(tmp_path, "counted.csv", COUNTED.replace(",", ";"))
        self.check(call_louver("bounds", path, *WEIGHTED, "--json"))

    def test_parquet(self, call_louver: Runner, tmp_path: Path) -> None:
        path = tmp_path / "counted.parquet"
        pq.write_table(frame(), path)
        self.check(call_louver("bounds", path, *WEIGHTED, "--json"))

    def test_duckdb_table(self, call_louver: Runner, tmp_path: Path) -> None:
        path, counted = tmp_path / "counted.duckdb", frame()
        with duckdb.connect(str(path)) as database:
            database.register("counted", counted)
            database.execute("CREATE SCHEMA health; CREATE TABLE health.visits AS SELECT * FROM counted")
        self.check(call_louver("bounds", path, "--table", "health.visits", *WEIGHTED, "--json"))

    def test_wide(self, call_louver: Runner, tmp_path: Path) -> None:
        write(tmp_path, "wide.csv", "site,well,sick\nA,4,3\nB,3,5\n")
        spec = write(
            tmp_path,
            "wide.toml",
            '[source]\nfile = "wide.csv"\n[source.wide]\nwell = {ill = "no"}\nsick = {ill = "yes"}\n'
            '[bounds]\nrows = ["site"]\ncols = ["ill"]\n',
        )
        self.check(call_louver("bounds", "--spec", spec, "--json"))

    def test_conditionals(self, call_louver: Runner, tmp_path: Path) -> None:
        path = write(tmp_path, "shares.csv", CONDITIONALS)
        self.check(call_louver("bounds", path, *WEIGHTED, "--conditionals", "--n", "15", "--json"))

    @pytest.mark.postgres
    def test_postgres(self, call_louver: Runner, postgres_uri: str, tmp_path: Path) -> None:
        """A table or a query; the report names it, and never the address, an address may contain a password."""
        from adbc_driver_postgresql import dbapi

        with dbapi.connect(postgres_uri) as server, server.cursor() as cursor:
            cursor.execute("DROP TABLE IF EXISTS clinic_visits")
            cursor.adbc_ingest("clinic_visits", frame())
            server.commit()
        address = f"{postgres_uri}&password=Zyx77Confidential"
        report = tmp_path / "report.html"
        options = (*WEIGHTED, "--json", "--html", report)
        self.check(call_louver("bounds", address, "--table", "clinic_visits", *options))
        text = report.read_text(encoding="utf-8")
        assert "Audit of the database table &quot;clinic_visits&quot;." in text
        assert "Zyx77" not in text
        query = "SELECT site, ill, sum(count) AS count FROM clinic_visits GROUP BY site, ill"
        self.check(call_louver("bounds", address, "--query", query, *options))
        assert "Audit of the database query." in report.read_text(encoding="utf-8")


def frame() -> pa.Table:
    lines = [line.split(",") for line in COUNTED.split()[1:]]
    site, ill, count = zip(*lines, strict=True)
    return pa.table({"site": site, "ill": ill, "count": [int(text) for text in count]})


CONDITIONALS = "site,ill,count\nA,no,4/7\nA,yes,3/7\nB,no,3/8\nB,yes,0.625\n"


def test_sample_size_decides(call_louver: Runner, tmp_path: Path) -> None:
    """7a + 8b = 100 has the solutions (4, 9) and (12, 2) only, so every cell has two values."""
    path = write(tmp_path, "shares.csv", CONDITIONALS)
    result = answer(call_louver("bounds", path, *WEIGHTED, "--conditionals", "--n", "100", "--json"))
    assert values(result) == [[[16, 48, 32]], [[12, 36, 24]], [[6, 27, 21]], [[10, 45, 35]]]
    assert result["summary"]["disclosed_rows"] == 0


def test_conditionals_of_numbered_rows(call_louver: Runner, tmp_path: Path) -> None:
    """A row attribute that a spec calls a number keeps its rows apart."""
    path = write(tmp_path, "shares.csv", CONDITIONALS.replace("A", "10").replace("B", "9"))
    spec = write(tmp_path, "numbers.toml", '[attributes.site]\nkind = "integer"\n')
    options = (*WEIGHTED, "--conditionals", "--n", "15", "--json")
    cells = answer(call_louver("bounds", path, "--spec", spec, *options))["cells"]
    assert [(cell["row"]["site"], cell["lower"]) for cell in cells] == [
        ("9", 3),
        ("9", 5),
        ("10", 4),
        ("10", 3),
    ]


def test_n_may_repeat_the_total(call_louver: Runner, counted: Path) -> None:
    assert (
        answer(call_louver("bounds", counted, *WEIGHTED, "--n", "15", "--json"))["summary"] == COUNTED_SUMMARY
    )


def test_recode(call_louver: Runner, tmp_path: Path) -> None:
    fine = "site,ill,count\nA,no,4\nA,mild,2\nA,severe,1\nB,no,3\nB,mild,3\nB,severe,2\n"
    recode = write(tmp_path, "recode.toml", '[ill]\nyes = ["mild", "severe"]\n')
    done = call_louver("bounds", write(tmp_path, "fine.csv", fine), *WEIGHTED, "--recode", recode, "--json")
    result = answer(done)
    assert result["summary"] == COUNTED_SUMMARY
    assert {cell["col"]["ill"]: cell["lower"] for cell in result["cells"][:2]} == {"no": 4, "yes": 3}


def test_given(call_louver: Runner, safe: Path, tmp_path: Path) -> None:
    """Each cell is anything from 1 to 29 until somebody knows that at most 3 are ill in A."""
    assert values(answer(call_louver("bounds", safe, *WEIGHTED, "--json"))) == [[[1, 29, 1]]] * 4
    given = write(tmp_path, "given.toml", '[[known]]\nrow = {site = "A"}\ncol = {ill = "yes"}\nat_most = 3\n')
    result = answer(call_louver("bounds", safe, *WEIGHTED, "--given", given, "--json"))
    assert values(result) == [[[1, 3, 1]]] * 2 + [[[27, 29, 1]]] * 2


def test_cells(call_louver: Runner, counted: Path, tmp_path: Path) -> None:
    cells = write(tmp_path, "cells.csv", "ill,site\nyes,B\n")
    result = answer(call_louver("bounds", counted, *WEIGHTED, "--cells", cells, "--json"))
    assert result["cells"] == [
        {"row": {"site": "B"}, "col": {"ill": "yes"}, "lower": 5, "upper": 5, "values": [[5, 5, 1]]}
    ]
    assert result["summary"]["disclosed_small_cells"] == 0


ARRANGEMENTS = """
[[arrangement]]
rows = ["site"]
cols = ["ill"]

[[arrangement]]
name = "all in one"
rows = ["site"]
cols = ["ill"]
recode.ill = {any = ["no", "yes"]}
"""


def test_arrangements(call_louver: Runner, counted: Path, tmp_path: Path) -> None:
    """Least disclosive first: with one column the rows reduce to 1 and say nothing."""
    path = write(tmp_path, "arrangements.toml", ARRANGEMENTS)
    options = ("bounds", counted, "--weight", "count", "--arrangements", path)
    first, second = answer(call_louver(*options, "--json"))["arrangements"]
    assert (first["name"], first["summary"]["disclosed_small_cells"]) == ("all in one", 0)
    assert (second["name"], second["rows"], second["cols"]) == ("site | ill", ["site"], ["ill"])
    assert second["summary"] == COUNTED_SUMMARY
    done = call_louver(*options)
    assert [line.split()[:4] for line in done.out.splitlines()[1:]] == [
        ["0", "2", "0", "0"],
        ["3", "0", "2", "0"],
    ]


def test_decimals(call_louver: Runner, tmp_path: Path) -> None:
    """1 and 7 of 8 are printed 0 and 1 without decimals, and so are 0 to 3 and 8 to 5."""
    path = write(tmp_path, "eight.csv", "site,ill,count\nA,no,1\nA,yes,7\n")
    result = answer(call_louver("bounds", path, *WEIGHTED, "--decimals", "0", "--json"))
    assert [cell["values"] for cell in result["cells"]] == [[[0, 3, 1]], [[5, 8, 1]]]
    assert result["summary"]["reduced_total"] is result["summary"]["unit_rows"] is None


@pytest.mark.parametrize(("printed", "rule"), [("0.13", "half-up"), ("0.12", "half-even")])
def test_rounding(call_louver: Runner, tmp_path: Path, printed: str, rule: str) -> None:
    """One eighth is 0.125: each rule prints it in its own way, and the other cannot have printed it."""
    path = write(tmp_path, "eight.csv", f"site,ill,count\nA,no,{printed}\nA,yes,0.88\n")
    options = ("bounds", path, *WEIGHTED, "--conditionals", "--n", "8", "--decimals", "2", "--json")
    result = answer(call_louver(*options, "--rounding", rule))
    assert [cell["values"] for cell in result["cells"]] == only(1, 7)
    other = {"half-up": "half-even", "half-even": "half-up"}[rule]
    done = call_louver(*options, "--rounding", other)
    assert (done.code, "rounded conditionals" in done.err) == (2, True)


WITH_ZEROS = COUNTED + "C,no,2\nD,yes,3\n"


def test_zero_rows_stay(call_louver: Runner, tmp_path: Path) -> None:
    done = call_louver("bounds", write(tmp_path, "zeros.csv", WITH_ZEROS), *WEIGHTED, "--json")
    summary = answer(done)["summary"]
    assert (summary["rows"], summary["n"], summary["unit_rows"]) == (4, 20, 2)
    assert summary["disclosed_zero_cells"] == 2


def test_drop_zero_rows(call_louver: Runner, tmp_path: Path) -> None:
    path = write(tmp_path, "zeros.csv", WITH_ZEROS)
    result = answer(call_louver("bounds", path, *WEIGHTED, "--drop-zero-rows", "--json"))
    assert result["summary"] == COUNTED_SUMMARY
    assert values(result) == only(4, 3, 3, 5)


def test_merge_zero_rows(call_louver: Runner, tmp_path: Path) -> None:
    path = write(tmp_path, "zeros.csv", WITH_ZEROS)
    result = answer(call_louver("bounds", path, *WEIGHTED, "--merge-zero-rows", "--json"))
    assert (result["summary"]["rows"], result["summary"]["n"]) == (3, 20)
    assert [(cell["row"]["site"], cell["lower"]) for cell in result["cells"][4:]] == [
        ("Other", 2),
        ("Other", 3),
    ]


def test_small(call_louver: Runner, counted: Path) -> None:
    for small, n_disclosed in (("1", 0), ("4", 2), ("6", 4)):
        summary = answer(call_louver("bounds", counted, *WEIGHTED, "--small", small, "--json"))["summary"]
        assert summary["disclosed_small_cells"] == n_disclosed


def test_suggest(call_louver: Runner, tmp_path: Path) -> None:
    """Only merging the severities, or leaving something out, hides the small counts."""
    fine = "site,ill,count\nA,no,40\nA,mild,20\nA,severe,3\nB,no,30\nB,mild,30\nB,severe,2\n"
    options = ("bounds", write(tmp_path, "fine.csv", fine), *WEIGHTED, "--suggest", "--seconds", "600")
    result = answer(call_louver(*options, "--json"))
    assert result["summary"]["disclosed_small_cells"] == 2
    assert result["proved"] is True
    assert result["suggestions"]
    for suggestion in result["suggestions"]:
        assert suggestion["summary"]["disclosed_small_cells"] == 0
        assert 0 <= suggestion["share"] <= 1
    shares = [suggestion["share"] for suggestion in result["suggestions"]]
    assert shares == sorted(shares, reverse=True)
    assert "redesign" in call_louver(*options).out


ONLY_ZEROS = "site,ill,count\nA,no,10\nA,yes,10\nB,no,20\nB,yes,0\n"


@pytest.mark.parametrize(
    ("table", "fail_on", "code"),
    [
        (COUNTED, "small", 1),
        (COUNTED, "rows", 1),
        (COUNTED, "any", 1),
        (SAFE, "small", 0),
        (SAFE, "rows", 0),
        (SAFE, "any", 0),
        (ONLY_ZEROS, "small", 0),
        (ONLY_ZEROS, "rows", 0),
        (ONLY_ZEROS, "any", 1),
        (COUNTED, "attribute", 0),
        (SAFE, "attribute", 0),
        (ONLY_ZEROS, "attribute", 1),
    ],
)
def test_fail_on(call_louver: Runner, tmp_path: Path, table: str, fail_on: str, code: int) -> None:
    done = call_louver(
        "bounds", write(tmp_path, "table.csv", table), *WEIGHTED, "--fail-on", fail_on, "--json"
    )
    assert (done.code, done.err) == (code, "")
    assert set(json.loads(done.out)) == {"verdict", "summary", "cells"}


def test_fail_on_any_arrangement(call_louver: Runner, counted: Path, tmp_path: Path) -> None:
    path = write(tmp_path, "arrangements.toml", ARRANGEMENTS)
    options = ("bounds", counted, "--weight", "count", "--arrangements", path, "--fail-on")
    assert call_louver(*options, "small").code == 1
    path.write_text(
        ARRANGEMENTS.rpartition("[[")[0].replace(
            'cols = ["ill"]', 'cols = ["ill"]\nrecode.ill = {any = ["no", "yes"]}'
        )
    )
    assert call_louver(*options, "small").code == 0


def test_spec_and_command_line(call_louver: Runner, counted: Path, tmp_path: Path) -> None:
    """A spec holds the same options; what stands on the command line wins."""
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    given = '[[known]]\nrow = {site = "A"}\nat_least = 1\n'
    write(folder, "given.toml", given)
    spec = write(
        folder,
        "audit.toml",
        f'[source]\nfile = "../{counted.name}"\nweight = "count"\n'
        '[attributes.site]\nlabels = ["B", "A", "C"]\n'
        '[bounds]\nrows = ["site"]\ncols = ["ill"]\nsmall = 4\nfail_on = "small"\ngiven = "given.toml"\n',
    )
    done = call_louver("bounds", "--spec", spec, "--json")
    result = json.loads(done.out)
    assert (done.code, result["summary"]["disclosed_small_cells"]) == (1, 2)
    assert [cell["row"]["site"] for cell in result["cells"]] == ["B", "B", "A", "A", "C", "C"]
    assert result["summary"]["zero_rows"] == 1
    done = call_louver("bounds", "--spec", spec, "--small", "1", "--json")
    assert (done.code, json.loads(done.out)["summary"]["disclosed_small_cells"]) == (0, 0)
    done = call_louver("bounds", write(tmp_path, "safe.csv", SAFE), "--spec", spec, "--json")
    assert (done.code, json.loads(done.out)["summary"]["n"]) == (0, 60)


def test_structural_zero(call_louver: Runner, tmp_path: Path) -> None:
    """A cell that cannot occur is neither listed nor counted as visible."""
    write(tmp_path, "zeros.csv", ONLY_ZEROS.replace("B,yes,0\n", ""))
    spec = write(
        tmp_path,
        "audit.toml",
        '[source]\nfile = "zeros.csv"\nweight = "count"\n'
        '[attributes.site]\nlabels = ["A", "B"]\n[attributes.ill]\nlabels = ["no", "yes"]\n'
        '[[structural_zeros]]\nsite = ["B"]\nill = ["yes"]\n[bounds]\nrows = ["site"]\ncols = ["ill"]\n',
    )
    result = answer(call_louver("bounds", "--spec", spec, "--json"))
    assert [(cell["row"]["site"], cell["col"]["ill"]) for cell in result["cells"]] == LABELS[:3]
    assert result["summary"]["disclosed_zero_cells"] == 0


def test_html(call_louver: Runner, counted: Path, tmp_path: Path) -> None:
    report = tmp_path / "report.html"
    done = call_louver("bounds", counted, *WEIGHTED, "--html", report)
    assert done.code == 0
    assert done.out.splitlines()[-1] == f"Report: {report}"
    text = report.read_text(encoding="utf-8")
    assert text.startswith("<!doctype html>")
    assert "Audit of counted.csv" in text
    before = set(tmp_path.iterdir())
    answer(call_louver("bounds", counted, *WEIGHTED, "--html", report, "--json"))
    assert set(tmp_path.iterdir()) == before


def test_text(call_louver: Runner, counted: Path) -> None:
    """Without --json: what a steward asks first, then the disclosed cells."""
    done = call_louver("bounds", counted, *WEIGHTED)
    lines = done.out.splitlines()
    assert lines[0].startswith(
        "3 small counts can be derived, but no row reveals a person's status. Do not publish"
    )
    assert lines[2].split()[:4] == ["3", "small", "cells", "disclosed"]
    assert [line for line in lines if "disclosed:" in line] == [
        "  disclosed: site=A → ill=no: 4",
        "  disclosed: site=A → ill=yes: 3",
        "  disclosed: site=B → ill=no: 3",
    ]


def test_long_lists_are_cut(call_louver: Runner, tmp_path: Path) -> None:
    lines = "".join(f"S{site:02},no,1\nS{site:02},yes,{site + 1}\n" for site in range(1, 12))
    path = write(tmp_path, "many.csv", "site,ill,count\n" + lines)
    done = call_louver("bounds", path, *WEIGHTED)
    assert sum("disclosed: " in line for line in done.out.splitlines()) == 12
    assert "--json or --html lists them all" in done.out


def test_in_a_process_of_its_own(run_louver: Runner, counted: Path, tmp_path: Path) -> None:
    """What a shell script sees: JSON alone on stdout, nothing on stderr, the exit code, the report."""
    options = (*WEIGHTED, "--json", "--fail-on", "small", "--html", "report.html")
    done = run_louver("bounds", counted.name, *options, cwd=tmp_path)
    assert (done.code, done.err) == (1, "")
    assert json.loads(done.out)["summary"] == COUNTED_SUMMARY
    assert (tmp_path / "report.html").exists()
