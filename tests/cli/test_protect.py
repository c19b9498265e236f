"""`louver protect` from the command line."""

from __future__ import annotations

import json
from pathlib import Path

import openpyxl

from cli.command import Runner

SPEC = """
[source]
file = "firms.csv"

[[protect.tables]]
name = "turnover"
by = ["trade", "size"]
value = "turnover"

[[protect.rules]]
rule = "frequency"
minimum = 2
"""
FIRMS = "trade,size,turnover\n" + "".join(
    f"{trade},{size},{10 * n + 7 * place}\n"
    for n, trade in enumerate(("food", "wood", "iron", "glass"), start=1)
    for size in ("small", "large")
    for place in range(1 if (trade, size) == ("food", "small") else 3)
)


def write(folder: Path, spec: str = SPEC) -> Path:
    (folder / "firms.csv").write_text(FIRMS)
    (folder / "protect.toml").write_text(spec)
    return folder / "protect.toml"


def test_tables_are_protected_published_and_verified(call_louver: Runner, tmp_path: Path) -> None:
    spec = write(tmp_path)
    done = call_louver("protect", spec, "--out", tmp_path / "out", "--html", tmp_path / "inside.html")
    assert (done.code, done.err) == (0, "")
    assert "Every primary cell is protected." in done.out and "Published: " in done.out
    page = (tmp_path / "inside.html").read_text()
    assert "fewer than 2 contributors" in page and "For the data steward only" in page
    assert "Map of the pattern" in page and "primary (C)" in page and "secondary (D)" in page
    assert call_louver("verify", tmp_path / "out").code == 0
    lines = (tmp_path / "out/data/01-turnover.csv").read_text().splitlines()
    assert lines[0] == '"trade","size","turnover","obs_status","conf_status"'
    assert '"food","small",,"Q","C"' in lines
    book = openpyxl.load_workbook(tmp_path / "out/data/01-turnover.xlsx")
    rows = [[cell.value for cell in row] for row in book["table"].iter_rows()]
    assert rows[0][-2:] == ["obs_status", "conf_status"] and ["food", "small", None, "Q", "C"] in rows
    assert not (tmp_path / "out/report.html").exists()


def test_json_and_options(call_louver: Runner, tmp_path: Path) -> None:
    done = call_louver(
        "protect", "--spec", write(tmp_path), "--minimise=value", "--attackers=outsider", "--json"
    )
    told = json.loads(done.out)
    assert done.code == 0 and told["summary"]["optimal"] and told["question"]["asks_contributors"] is False


def test_what_cannot_be_protected_exits_with_1(call_louver: Runner, tmp_path: Path) -> None:
    kept = '\n[[protect.status]]\ntable = "turnover"\ncell = {{ trade = "{}", size = "{}" }}\nset = "publish"\nreason = "law"\n'
    cells = (("food", "large"), ("food", "Total"))
    spec = write(tmp_path, SPEC + "".join(kept.format(*cell) for cell in cells))
    done = call_louver("protect", spec, "--out", tmp_path / "out", "--html", tmp_path / "inside.html")
    assert done.code == 1 and "Not published." in done.out and "Do not publish" in done.out
    assert "not proved protected" in (tmp_path / "inside.html").read_text()
    assert not (tmp_path / "out").exists()


def test_rounded_tables(call_louver: Runner, tmp_path: Path) -> None:
    spec = write(tmp_path)
    out, page = tmp_path / "out", tmp_path / "inside.html"
    done = call_louver("protect", spec, "--method=round", "--base=10", "--out", out, "--html", page)
    assert (done.code, done.err) == (0, "") and "less than the base from its value" in done.out
    assert "How the tables were rounded" in page.read_text() and "base 10" in page.read_text()
    assert call_louver("verify", out).code == 0
    lines = (out / "data/01-turnover.csv").read_text().splitlines()
    assert lines[0] == '"trade","size","turnover"' and all(line.endswith("0") for line in lines[1:])
    told = json.loads(call_louver("protect", spec, "--method=round", "--base=10", "--json").out)
    assert told["method"] == "round" and told["rounding"]["beyond"] == 0


def test_cell_keys(call_louver: Runner, tmp_path: Path) -> None:
    people = "id,trade,size\n" + "".join(f"{n},{'fw'[n % 2]},{'sl'[n % 3 // 2]}\n" for n in range(60))
    (tmp_path / "people.csv").write_text(people)
    (tmp_path / "spec.toml").write_text(
        '[source]\nfile = "people.csv"\n[protect]\nmethod = "cellkey"\nperson = "id"\n'
        '[[protect.tables]]\nname = "t"\nby = ["trade", "size"]\n'
    )
    arguments = ("protect", tmp_path / "spec.toml", "--register", tmp_path / "register")
    done = call_louver(*arguments, "--out", tmp_path / "out", "--html", tmp_path / "inside.html")
    assert (
        (done.code, done.err) == (0, "")
        and "not differential privacy" in done.out
        and "Published: " in done.out
    )
    assert "How the counts were changed" in (tmp_path / "inside.html").read_text()
    assert call_louver("verify", tmp_path / "out").code == 0
    told = json.loads(call_louver(*arguments, "--json").out)
    assert told["cell_keys"]["maximum"] == 5 and told["question"]["earlier"] == 1
    assert (tmp_path / "register/key").stat().st_mode & 0o777 == 0o600


def test_a_batch_file_of_tau_argus(call_louver: Runner, tmp_path: Path) -> None:
    (tmp_path / "firms.rda").write_text(
        '<SEPARATOR> ","\ntrade\n<RECODEABLE>\nsize\n<RECODEABLE>\nturnover\n<NUMERIC>\n'
    )
    (tmp_path / "firms.asc").write_text(FIRMS.split("\n", 1)[1])
    (tmp_path / "firms.arb").write_text(
        '<OPENMICRODATA> "firms.asc"\n<SPECIFYTABLE> "trade""size"|"turnover"||-1\n<SAFETYRULE> FREQ(2,10)\n<SUPPRESS> MOD(1)\n'
    )
    done = call_louver("protect", tmp_path / "firms.arb", "--attackers=outsider", "--out", tmp_path / "out")
    assert (done.code, done.err) == (0, "") and call_louver("verify", tmp_path / "out").code == 0
    (tmp_path / "firms.arb").write_text("<RECODE>\n")
    done = call_louver("protect", tmp_path / "firms.arb")
    assert done.code == 2 and len(done.err.splitlines()) == 1


def test_bad_calls(call_louver: Runner, tmp_path: Path) -> None:
    spec = write(tmp_path)
    for arguments, says in (
        ((), "argument SPEC.toml is missing"),
        ((spec, "--spec", spec), "the spec is named twice"),
        ((spec, "--minimise=least"), "option --minimise must be"),
        ((spec, "--out", tmp_path), "already exists"),
        ((spec, "--html", spec), "would overwrite protect.toml"),
        ((spec, "--known-percent=0"), "option --known-percent must be greater than 0"),
        ((spec, "--method=guess"), "option --method must be"),
        ((spec, "--method=round", "--base=1"), "option --base must be at least 2"),
        ((spec, "--base=5"), "option --base needs --method round"),
        ((spec, "--steps=-1"), "option --steps must be at least 0"),
    ):
        done = call_louver("protect", *arguments)
        assert done.code == 2 and says in done.err and len(done.err.splitlines()) == 1, arguments
