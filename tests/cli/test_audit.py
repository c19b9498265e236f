"""`louver audit` as a command, and every kind of input that it refuses in one sentence."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from cli.command import Runner

SECRET = "Zyx77Confidential"
PEOPLE = "town,age,ill,count\n" + "\n".join(
    f"{town},{age},{ill},{count}"
    for town, age, ill, count in [
        ("A", 30, "y", 7), ("A", 30, "n", 20), ("A", 40, "y", 9), ("A", 40, "n", 25),
        ("B", 30, "y", 3), ("B", 30, "n", 11), ("B", 40, "y", 2), ("B", 40, "n", 14),
    ]
)  # fmt: skip
SOURCE = '[source]\nfile = "people.csv"\nweight = "count"\n'
AGES = '[attributes.age]\nkind = "integer"\n'
DIFFERENCE = """
[[audit.tables]]
name = "everyone"
by = ["age", "ill"]
[[audit.tables]]
name = "town A"
by = ["age", "ill"]
where = { town = "A" }
"""


def write(folder: Path, tables: str, *, head: str = SOURCE, **files: str) -> Path:
    (folder / "people.csv").write_text(PEOPLE)
    for name, content in files.items():
        (folder / name.replace("_", ".")).write_text(content)
    spec = folder / "audit.toml"
    spec.write_text(head + tables)
    return spec


def test_two_tables_that_give_a_group_away(call_louver: Runner, tmp_path: Path) -> None:
    spec = write(tmp_path, DIFFERENCE)
    done = call_louver("audit", spec, "--json", "--fail-on", "small")
    assert done.code == 1
    told = json.loads(done.out)
    assert told["summary"]["small_exact"] == 2
    reasons = [c["because"] for c in told["cells"] if c["status"] == "exact" and 0 < c["lower"] < 5]
    assert reasons == [["everyone", "town A"]] * 2
    assert told["advice"]["safe"]


def test_a_cell_of_a_filtered_table_shows_the_filter(call_louver: Runner, tmp_path: Path) -> None:
    spec = write(tmp_path, DIFFERENCE.replace('town = "A"', 'town = "B"'))
    assert "disclosed: town=B, age=30, ill=y: 3" in call_louver("audit", spec).out
    cells = json.loads(call_louver("audit", spec, "--json").out)["cells"]
    assert {"town": "B"} in [cell["where"] for cell in cells if cell["table"] == "town A"]


def test_cells_to_hide_are_listed(call_louver: Runner, tmp_path: Path) -> None:
    spec = write(
        tmp_path, '[[audit.tables]]\nname = "one"\nby = ["town", "age", "ill"]\nbelow = 5\ntotals = true\n'
    )
    told = call_louver("audit", spec, "--hide").out
    (plan,) = json.loads(call_louver("audit", spec, "--hide", "--json").out)["hide"]
    assert plan["safe"] and plan["cells"]
    for cell in plan["cells"][:12]:
        assert "    " + ", ".join(f"{name}={label}" for name, label in cell.items()) in told


def test_a_folder_that_exists_is_named_with_its_option(call_louver: Runner, tmp_path: Path) -> None:
    spec = write(tmp_path, DIFFERENCE)
    done = call_louver("audit", spec, "--register", tmp_path / "register", "--publish", tmp_path)
    assert done.code == 2 and "option --publish:" in done.err and "already exists" in done.err


def test_a_file_that_numbers_households_has_a_way_on(call_louver: Runner, tmp_path: Path) -> None:
    spec = write(
        tmp_path, '[[audit.tables]]\nname = "one"\nby = ["sex"]\n', head='[source]\nfile = "people.csv"\n'
    )
    rows = [f"{number // 3},{'fm'[number % 2]}" for number in range(120)]
    (tmp_path / "people.csv").write_text("\n".join(["hhid,sex", *rows]))
    asked = ("audit", spec, "--register", tmp_path / "register", "--publish", tmp_path / "out")
    refused = call_louver(*asked)
    assert refused.code == 1 and "--count-people" in refused.out
    assert call_louver(*asked, "--count-people").code == 0
    assert call_louver("verify", tmp_path / "out").code == 0


def test_a_report_is_written(call_louver: Runner, tmp_path: Path) -> None:
    spec = write(tmp_path, DIFFERENCE)
    done = call_louver("audit", spec, "--html", tmp_path / "report.html")
    assert done.code == 0
    assert done.out.startswith("Anyone who combines the tables learns 2 small counts exactly. Do not publish")
    assert "small cells exact" in done.out and done.out.count("  disclosed: ") == 2
    assert "minus" in (tmp_path / "report.html").read_text()


SURVEY = """
[source]
file = "survey.csv"
weight = "count"
[[audit.tables]]
name = "everybody"
by = ["age", "education", "salary"]
below = 5
[[audit.tables]]
name = "employed"
by = ["age", "education", "salary"]
where = { employment = ["Gov't", "Private", "Self-employed"] }
below = 5
[[audit.tables]]
name = "sex of the oldest"
by = ["sex"]
where = { age = "55+" }
"""


def test_a_further_attribute_does_not_hide_a_difference(call_louver: Runner, tmp_path: Path) -> None:
    """What two tables leave between them is a sum of cells of all attributes once a third table brings another one."""
    assert call_louver("demo", "--files", "--out", tmp_path / "demo").code == 0
    spec = tmp_path / "demo" / "data" / "three.toml"
    spec.write_text(SURVEY)
    done = call_louver("audit", spec, "--json", "--fail-on", "small")
    assert done.code == 1
    told = json.loads(done.out)
    assert told["verdict"]["level"] == "stop" and told["summary"]["small_exact"] == 3
    found = [c for c in told["cells"] if c["table"] == "groups"]
    assert all(c["cell"]["employment"] == "Other" and "sex" not in c["cell"] for c in found)
    assert sorted(c["lower"] for c in found) == [1, 2, 2]
    assert {tuple(c["because"]) for c in found} == {("everybody", "employed")}
    register = ("--register", tmp_path / "register", "--publish", tmp_path / "out")
    for more in ((), ("--decide",)):
        refused = call_louver("audit", spec, *register, *more)
        assert refused.code == 1 and 'Not published: "everybody" minus "employed" leaves' in refused.out
    assert not (tmp_path / "out").exists()


def test_what_was_not_found_out_fails(call_louver: Runner, tmp_path: Path) -> None:
    spec = write(tmp_path, '[[audit.tables]]\nname = "t"\nby = ["town", "ill"]\nbase = 3\ntotals = true\n')
    late = ("--seconds", "1e-9", "--small", "20")
    for more in ((), ("--decide",)):
        done = call_louver("audit", spec, *late, *more, "--json", "--fail-on", "small")
        told = json.loads(done.out)
        assert done.code == 1 and told["summary"]["small_exact"] == 0 < told["summary"]["undecided"]
        assert told["verdict"]["level"] == "care" and "more seconds" in told["verdict"]["sentence"]
    assert call_louver("audit", spec, *late).code == 0


@dataclass(frozen=True)
class Bad:
    """A spec that cannot be used, and words that the sentence must have. `$` stands for a secret."""

    name: str
    says: str
    tables: str
    head: str = SOURCE
    files: dict[str, str] = field(default_factory=dict)
    more: tuple[str, ...] = ()

    def __str__(self) -> str:
        return self.name


def one(name: str, says: str, *lines: str, **kwargs) -> Bad:
    """One table of counts by town and illness, with more keys."""
    return Bad(name, says, "\n".join(['[[audit.tables]]\nname = "t"', *lines, ""]), **kwargs)


def listed(name: str, says: str, content: str, *lines: str, **kwargs) -> Bad:
    """One table that is read from a file."""
    return one(
        name, says, 'by = ["town", "ill"]', 'file = "t.csv"', *lines, files={"t_csv": content}, **kwargs
    )


def shares(name: str, says: str, content: str, *lines: str) -> Bad:
    return one(
        name, says, 'rows = ["town"]', 'cols = ["ill"]', 'file = "t.csv"', *lines, files={"t_csv": content}
    )


BY = 'by = ["town", "ill"]'
GOOD = "town,ill,count\nA,y,16\nA,n,45\nB,y,5\nB,n,25\n"
OUTSIDE = '[attributes.town]\nlabels = ["A", "B"]\n[attributes.ill]\nlabels = ["y", "n"]\n'

BAD = [
    Bad("no section", "audit", ""),
    Bad("no tables", "tables", "[audit]\nsmall = 3\n"),
    Bad("no name", "name", '[[audit.tables]]\nby = ["town"]\n'),
    Bad("two of one name", "give them different names", DIFFERENCE.replace('"town A"', '"everyone"')),
    one("unknown key", "spelling", BY, 'wher = "x"'),
    one("unknown attribute", "column", 'by = ["tawn"]'),
    one("attribute twice", "twice", 'by = ["town", "town"]'),
    one("counts and conditionals", "keep one", BY, 'rows = ["age"]', 'cols = ["ill"]'),
    one("rows without cols", "both rows and cols", 'rows = ["town"]'),
    one("base for conditionals", "conditionals do not take", 'rows = ["town"]', 'cols = ["ill"]', "base = 5"),
    one("decimals for counts", "only conditionals take", BY, "decimals = 2"),
    one("base of one", "at least 2", BY, "base = 1"),
    one("rounding without base", "no base", BY, 'rounding = "nearest"'),
    one("half-up without decimals", "no decimals", 'rows = ["town"]', 'cols = ["ill"]', 'rounding = "half-up"'),
    one("half-up with base", "nearest or random", BY, "base = 5", 'rounding = "half-up"'),
    one("random without file", "needs file", BY, "base = 5", 'rounding = "random"'),
    one("mark without file", "no file to read", BY, 'mark = ["x"]'),
    one("mark range backwards", "ends before it starts", BY, 'file = "t.csv"', "mark_range = [4, 1]", files={"t_csv": GOOD}),
    one("mark range without marks", "hides nothing", BY, "mark_range = [1, 4]"),
    one("mark range that is too narrow", "does not hold", BY, "below = 6", "mark_range = [1, 4]"),
    one("below zero", "at least 1", BY, "below = 0"),
    one("too many decimals", "at most 6", 'rows = ["town"]', 'cols = ["ill"]', "decimals = 7"),
    one("filter is not a table", "table of labels", BY, "where = 3"),
    one("filter with a number", "in quotes", BY, "where = { town = 3 }"),
    one("filter with an unknown label", "does not have this label", BY, 'where = { town = "$" }'),
    one("recode of another attribute", "does not use", BY, 'recode = { age = { old = ["30"] } }'),
    one("recode with an unknown label", "check its spelling", BY, 'recode = { town = { all = ["$"] } }'),
    one("recode that is no table", "must be a table", BY, "recode = { town = 3 }"),
    one("hidden cell of another attribute", "that the table does not have", BY, 'hide = [{ age = "30" }]'),
    one("hidden total without totals", "set totals", BY, 'hide = [{ town = "A" }]'),
    one("hidden cell with an unknown label", "check its spelling", BY, 'hide = [{ town = "$", ill = "y" }]'),
    one("file and below", "mark shows", BY, 'file = "t.csv"', "below = 3", files={"t_csv": GOOD}),
    one("file that is not there", "t.csv", BY, 'file = "t.csv"'),
    listed("file without a column", "count", "town,ill\nA,y\n"),
    listed("label of no attribute", "row 1", "town,ill,count\n$,y,1\n"),
    listed("a cell twice", "the cell of row 1", "town,ill,count\nA,y,16\nA,y,16\n"),
    listed("a mark that is not told", "list all marks", GOOD.replace("16", "$")),
    listed("a negative count", "neither a count", GOOD.replace("16", "-16")),
    listed("a fraction", "neither a count", GOOD.replace("16", "16.5")),
    listed("cells left out", "unlisted", "town,ill,count\nA,y,16\n"),
    listed("totals left out", "unlisted", GOOD, "totals = true"),
    listed("a total where none is told", "totals is not set", GOOD + "Total,y,21\n"),
    listed("a count that the records do not have", "row 2 of t.csv does not agree", GOOD.replace("45", "46")),
    listed("a total that does not add up", "does not agree", GOOD + "A,Total,60\nB,Total,30\nTotal,y,21\nTotal,n,70\nTotal,Total,91\n",
           "totals = true"),
    listed("not a multiple of the base", "multiple of the base 5", GOOD, "base = 5"),
    shares("shares that do not add up", "do not add up to 1", "town,ill,count\nA,y,1/3\nA,n,1/3\nB,y,1/6\nB,n,5/6\n"),
    shares("a percentage", "above 1", "town,ill,count\nA,y,26\nA,n,74\nB,y,17\nB,n,83\n"),
    shares("a share of text", "no share", "town,ill,count\nA,y,$\nA,n,1\nB,y,0\nB,n,1\n"),
    shares("more decimals than told", "more decimals", "town,ill,count\nA,y,0.262\nA,n,0.738\nB,y,0.17\nB,n,0.83\n", "decimals = 2"),
    shares("shares that the records do not have", "does not agree", "town,ill,count\nA,y,0.27\nA,n,0.73\nB,y,0.17\nB,n,0.83\n",
           "decimals = 2"),
    shares("another number of people", "differs from the records", "town,ill,count\nA,y,16/61\nA,n,45/61\nB,y,1/6\nB,n,5/6\n", "n = 90"),
    Bad("a statement that tells nothing", "has no bound", DIFFERENCE + '[[audit.known]]\nwhere = { town = "A" }\n'),
    Bad("a statement with two bounds", "keep one", DIFFERENCE + '[[audit.known]]\nwhere = { town = "A" }\nexactly = 3\nat_most = 4\n'),
    Bad("a statement backwards", "above at_most", DIFFERENCE + '[[audit.known]]\nwhere = { town = "A" }\nat_least = 3\nat_most = 1\n'),
    Bad("a statement against the records", "does not agree with the records",
        DIFFERENCE + '[[audit.known]]\nname = "k"\nwhere = { town = "A" }\nexactly = 3\n'),
    Bad("a target of nothing", "names no cells", DIFFERENCE + '[[audit.targets]]\nname = "x"\n'),
    Bad("a target twice", "twice", DIFFERENCE + '[[audit.targets]]\nby = ["age", "age"]\n'),
    Bad("hide without hidden cells", "needs a table with below", DIFFERENCE, more=("--hide",)),
    Bad("nobody where the records have people", "rule out a cell that occurs in the records",
        DIFFERENCE + '[[audit.known]]\nwhere = { town = "A" }\nat_most = 0\n'),
    Bad("conditionals and counts that do not go together", "contradict",
        '[[audit.tables]]\nname = "t"\nrows = ["town"]\ncols = ["ill"]\nfile = "t.csv"\nn = 4\n',
        head=OUTSIDE, files={"t_csv": "town,ill,count\nA,y,1/3\nA,n,2/3\nB,y,1/2\nB,n,1/2\n"}),
    Bad("small of zero", "at least 1", DIFFERENCE, more=("--small", "0")),
    Bad("within a hundred", "less than 100", DIFFERENCE, more=("--within", "100")),
    Bad("no time", "greater than 0", DIFFERENCE, more=("--seconds", "0")),
    Bad("fail on within without within", "--within", DIFFERENCE, more=("--fail-on", "within")),
    one("no records and no file", "no file, and there are no records", BY, head=OUTSIDE),
    one("no records and no labels", "must be listed", BY, 'file = "t.csv"', head="", files={"t_csv": GOOD}),
    one("decide without records", "needs the records", BY, 'file = "t.csv"', head=OUTSIDE, files={"t_csv": GOOD}, more=("--decide",)),
    one("small targets without records", "needs the records", BY, 'file = "t.csv"', '[[audit.targets]]\nby = ["town"]\nonly_small = true',
        head=OUTSIDE, files={"t_csv": GOOD}),
    one("counts that only the records determine", "give n", 'rows = ["town"]', 'cols = ["ill"]', 'file = "t.csv"', 'counts = "rows"', head=OUTSIDE,
        files={"t_csv": "town,ill,count\nA,y,1/2\nA,n,1/2\nB,y,1/2\nB,n,1/2\n"}),
    one("a file whose totals do not add up", "contradicts itself", BY, 'file = "t.csv"', "totals = true", head=OUTSIDE,
        files={"t_csv": GOOD + "A,Total,60\nB,Total,30\nTotal,y,21\nTotal,n,70\nTotal,Total,91\n"}),
    Bad("two files that contradict each other", 'tables "t" and "u" contradict each other',
        '[[audit.tables]]\nname = "t"\nby = ["town"]\nfile = "t.csv"\n[[audit.tables]]\nname = "u"\nby = ["ill"]\nfile = "u.csv"\n',
        head=OUTSIDE, files={"t_csv": "town,count\nA,3\nB,4\n", "u_csv": "ill,count\ny,3\nn,3\n"}),
]  # fmt: skip


@pytest.mark.parametrize("bad", BAD, ids=str)
def test_bad_input_is_one_sentence(bad: Bad, call_louver: Runner, tmp_path: Path) -> None:
    files = {name: content.replace("$", SECRET) for name, content in bad.files.items()}
    spec = write(tmp_path, bad.tables.replace("$", SECRET), head=bad.head, **files)
    done = call_louver("audit", spec, *bad.more)
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("louver") and done.err.count("\n") == 1
    assert bad.says in done.err
    assert SECRET not in done.err


def test_a_spec_is_needed(call_louver: Runner) -> None:
    done = call_louver("audit")
    assert done.code == 2 and "SPEC.toml" in done.err


def test_there_are_enough_bad_inputs() -> None:
    assert len(BAD) >= 40


def test_a_publication_that_gives_people_away_is_refused_with_its_reason(
    call_louver: Runner, tmp_path: Path
) -> None:
    everyone, town_a = DIFFERENCE.split("[[audit.tables]]")[1:]
    target = '[[audit.targets]]\nby = ["town", "age", "ill"]\n'
    memory = ("--register", tmp_path / "register")
    spec = write(tmp_path, f"[[audit.tables]]{everyone}{target}")
    first = call_louver("audit", spec, *memory, "--publish", tmp_path / "one")
    assert first.code == 0 and "Published: " in first.out
    assert call_louver("verify", tmp_path / "one").code == 0
    spec = write(tmp_path, f"[[audit.tables]]{town_a}{target}")
    second = call_louver("audit", spec, *memory, "--publish", tmp_path / "two")
    assert second.code == 1
    assert 'Not published: "everyone (published' in second.out and 'minus "town A" leaves' in second.out
    assert not (tmp_path / "two").exists()
    third = call_louver("audit", spec, "--publish", tmp_path / "three")
    assert third.code == 2 and "--register" in third.err
