"""Bad input: exit code 2 and one sentence, no traceback, no output, no value from a file in the message."""

from __future__ import annotations

import gzip
import io
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cli.command import COUNTED, Runner

SECRET = "Zyx77Confidential"
ARRANGED = ("--rows", "site", "--cols", "ill")
WEIGHTED = (*ARRANGED, "--weight", "count")


@dataclass(frozen=True)
class Bad:
    """Files to write, arguments to give, and words that the sentence must have. `$` stands for the secret."""

    name: str
    says: str
    arguments: tuple[str, ...] = ("data.csv", *WEIGHTED)
    files: dict[str, str | bytes] = field(default_factory=dict)

    def __str__(self) -> str:
        return self.name


def data(name: str, says: str, content: str | bytes, *more: str, file: str = "data.csv") -> Bad:
    """A data file that cannot be used."""
    return Bad(name, says, (file, *WEIGHTED, *more), {file: content})


def parquet(**columns: list[object]) -> bytes:
    """A Parquet file with one row."""
    stream = io.BytesIO()
    pq.write_table(pa.table({"ill": ["no"], "count": [1], **columns}), stream)
    return stream.getvalue()


def option(name: str, says: str, *more: str) -> Bad:
    """Options that cannot be used, with good data."""
    return Bad(name, says, ("data.csv", *more), {"data.csv": COUNTED})


def beside(name: str, says: str, flag: str, content: str | bytes, *more: str) -> Bad:
    """A file beside good data that cannot be used."""
    file = f"beside{'.csv' if flag == '--cells' else '.toml'}"
    return Bad(name, says, ("data.csv", *WEIGHTED, flag, file, *more), {"data.csv": COUNTED, file: content})


def spec(name: str, says: str, content: str | bytes, *more: str) -> Bad:
    """A spec that cannot be used, with good data."""
    return Bad(name, says, ("--spec", "audit.toml", *more), {"data.csv": COUNTED, "audit.toml": content})


SOURCE = '[source]\nfile = "data.csv"\nweight = "count"\n'
BOUNDS = '[bounds]\nrows = ["site"]\ncols = ["ill"]\n'
CONDITIONALS = (*WEIGHTED, "--conditionals")

FILES = [
    Bad("file absent", "nowhere.csv does not exist", ("nowhere.csv", *WEIGHTED)),
    Bad("file is a folder", "is a directory", (".", *WEIGHTED)),
    data("empty file", "data.csv is empty", b""),
    data("header only", "data.csv has no rows", "site,ill,count\n"),
    data("unknown ending", "has no known file extension", COUNTED, file="data.txt"),
    data("gzip by name only", "is not a gzip file", COUNTED, file="data.csv.gz"),
    data("gzip in disguise", "gzip-compressed", gzip.compress(COUNTED.encode())),
    data(
        "gzip cut short", "ends early", gzip.compress(b"x" * 9 + COUNTED.encode() * 99)[:-40], file="d.csv.gz"
    ),
    data("not Parquet", "is not a Parquet file", f"{SECRET}", file="data.parquet"),
    data("not DuckDB", "cannot be opened as a DuckDB", f"{SECRET}" * 99, "--table", "t", file="data.duckdb"),
    data("database without a table named", "--table", b"", file="data.duckdb"),
    data("not UTF-8", "row 2 is not UTF-8 text", "site,ill,count\nA,no,1\n$,\xe9,2\n".encode("latin-1")),
    data("UTF-16", "is not UTF-8 text", COUNTED.encode("utf-16")),
    data("column twice", "columns 2 and 3", "site,ill,Ill,count\nA,no,$,1\n"),
    data("too few fields", "row 2 has fewer", "site,ill,count\nA,no,1\n$\n"),
    data("too many fields", "row 1 has more", "site,ill,count\nA,no,1,$\n"),
    data("quote left open", "quote", 'site,ill,count\nA,no,1\n"$,no,1\nB,no,2\n'),
    data("no such column", 'no column "ill"', "site,sick,count\nA,$,1\n"),
    data("no such weight", 'no column "count"', "site,ill,n\nA,$,1\n"),
    data("label missing", 'column "ill" in data.csv has no value on row 2', "site,ill,count\nA,no,1\n$,,2\n"),
    data("count missing", 'column "count" in data.csv has no', "site,ill,count\nA,no,1\n$,no,\n"),
    data("count negative", "row 2", "site,ill,count\nA,no,1\n$,no,-7719\n"),
    data("count fractional", "row 1", "site,ill,count\n$,no,7719.5\n"),
    data("count is text", "row 1", "site,ill,count\nA,no,$\n"),
    data("count too large", "row 1", "site,ill,count\n$,no,99999999999999999999\n"),
    data("counts add up too high", "64 bits", "site,ill,count\n" + "$,no,9000000000000000000\n" * 2),
    data("all counts zero", "no people", "site,ill,count\n$,no,0\nB,yes,0\n"),
    data("table of a CSV file", "leave out --table", COUNTED, "--table", "t"),
    data("query of a CSV file", "PostgreSQL", COUNTED, "--query", "SELECT 1"),
    data("nested values", "nested or binary type", parquet(site=[[SECRET]]), file="data.parquet"),
    data("counts with a fraction", "row 1", parquet(site=["A"], count=[7719.5]), file="data.parquet"),
    Bad("no such server", "cannot be reached", ("postgresql:///x?host=/nowhere", *ARRANGED, "--table", "t")),
    Bad("server without a table", "--table or --query", ("postgresql:///x?host=/nowhere", *ARRANGED)),
]

OPTIONS = [
    Bad("no file", "argument FILE is missing", ARRANGED),
    option("no rows", "--rows", "--cols", "ill", "--weight", "count"),
    option("no cols", "--cols", "--rows", "site", "--weight", "count"),
    option("empty name", "--rows has an empty name", "--rows", "site,", "--cols", "ill"),
    option("row named twice", 'names column "site" twice', "--rows", "site,site", "--cols", "ill"),
    option("row and column", "both --rows and --cols", "--rows", "site", "--cols", "ill,site"),
    option("weight in the rows", "cannot be both", *ARRANGED, "--weight", "site"),
    option("unknown option", "no option --smalls; did you mean --small?", *WEIGHTED, "--smalls", "3"),
    option("value left out", "--small needs a value", *WEIGHTED, "--small"),
    option("value for a flag", "--json takes no value", *WEIGHTED, "--json=yes"),
    option("argument too many", "one argument too many", "--rows", "site,", "ill", "--cols", "ill"),
    option("small is text", "--small must be a whole number", *WEIGHTED, "--small", SECRET),
    option("small is zero", "--small must be at least 1", *WEIGHTED, "--small", "0"),
    option("decimals out of range", "--decimals must be at most 9", *WEIGHTED, "--decimals", "10"),
    option("unknown rounding", "--rounding must be", *WEIGHTED, "--decimals", "1", "--rounding", SECRET),
    option("rounding of nothing", "--rounding needs --decimals", *WEIGHTED, "--rounding", "half-even"),
    option("no time", "--seconds must be greater than 0.", *WEIGHTED, "--suggest", "--seconds", "0"),
    option(
        "time is not a number",
        "--seconds must be a finite number",
        *WEIGHTED,
        "--suggest",
        "--seconds",
        "nan",
    ),
    option("unknown check", "--fail-on must be", *WEIGHTED, "--fail-on", SECRET),
    option("total contradicted", "--n differs from the total", *WEIGHTED, "--n", "16"),
    option(
        "drop and merge", "--drop-zero-rows and --merge", *WEIGHTED, "--drop-zero-rows", "--merge-zero-rows"
    ),
    option("suggest and given", "--suggest and --given", *WEIGHTED, "--suggest", "--given", "g.toml"),
    option("report into nowhere", "--html cannot write", *WEIGHTED, "--html", "nowhere/report.html"),
    option("report onto a folder", "--html cannot write", *WEIGHTED, "--html", "."),
    option("report onto the data", "--html would overwrite data.csv", *WEIGHTED, "--html", "data.csv"),
    option("certain of nothing", "--certain must be greater than 50", *WEIGHTED, "--certain", "50"),
    option("more than certain", "--certain must be at most 100", *WEIGHTED, "--certain", "100.1"),
    option("certain to no end", "--certain has more than six", *WEIGHTED, "--certain", "99.12345678"),
    option("fix without a search", "--fix needs --suggest", *WEIGHTED, "--fix", "site"),
    option("apart without a search", "--apart needs --suggest", *WEIGHTED, "--apart", "site=A,B"),
    option("avoid without a search", "--avoid needs --suggest", *WEIGHTED, "--avoid", "small"),
    option("recodes without a search", "--write-recodes needs --suggest", *WEIGHTED, "--write-recodes", "r"),
    option("fix another column", '--fix names column "age"', *WEIGHTED, "--suggest", "--fix", "age"),
    option(
        "apart in another column", '--apart names column "age"', *WEIGHTED, "--suggest", "--apart", "age=A,B"
    ),
    option("apart from nothing", "at least two labels", *WEIGHTED, "--suggest", "--apart", f"site={SECRET}"),
    option("apart without labels", "at least two labels", *WEIGHTED, "--suggest", "--apart", SECRET),
    option(
        "apart from nobody",
        'label 2 for column "site"',
        *WEIGHTED,
        "--suggest",
        "--apart",
        f"site=A,{SECRET}",
    ),
    option("avoid what", "--avoid must be", *WEIGHTED, "--suggest", "--avoid", SECRET),
    option(
        "recodes onto a file",
        "--write-recodes: data.csv already exists",
        *WEIGHTED,
        "--suggest",
        "--write-recodes",
        "data.csv",
    ),
    option(
        "recodes into nowhere",
        "the parent folder of r does not",
        *WEIGHTED,
        "--suggest",
        "--write-recodes",
        "no/r",
    ),
    option("percent of counts", "--percent needs --conditionals", *WEIGHTED, "--percent"),
    option("row totals of counts", "--row-n needs --conditionals", *WEIGHTED, "--row-n", "count"),
    option("publish without a register", "--publish needs --register", *WEIGHTED, "--publish", "out"),
    option("accept nothing", "--accept needs --publish", *WEIGHTED, "--accept"),
    option(
        "register and drop",
        "--register and --drop-zero-rows",
        *WEIGHTED,
        "--register",
        "r",
        "--drop-zero-rows",
    ),
    option("register and cells", "--register and --cells", *WEIGHTED, "--register", "r", "--cells", "c.csv"),
    option("no name for the recodes", "is a directory", *WEIGHTED, "--recode", ""),
]

PUBLISHED = [
    Bad(
        name,
        says,
        ("data.csv", *CONDITIONALS, *more),
        {"data.csv": "site,ill,count\n" + content},
    )
    for name, says, content, more in [
        ("conditionals without n", "needs --n", "A,no,4/7\nA,yes,3/7\n", ()),
        ("conditionals and suggest", "--suggest", "A,no,4/7\nA,yes,3/7\n", ("--n", "7", "--suggest")),
        ("not a fraction", "no conditional on row 2", "A,no,1/2\nA,$,half\n", ("--n", "7")),
        ("nought below the line", "no conditional on row 2", "A,no,1/2\nA,$,1/0\n", ("--n", "7")),
        ("percentages", "above 1 on row 1", "A,no,57.1\nA,$,42.9\n", ("--n", "7", "--decimals", "3")),
        ("not one in all", "do not add up to exactly 1", "A,no,4/7\nA,$,2/7\n", ("--n", "7")),
        ("cell twice", "row 2 of data.csv", "$,no,1/2\n$,no,1/2\n", ("--n", "7")),
        (
            "too many decimals",
            "more decimals than --decimals",
            "A,no,0.57\nA,$,0.43\n",
            ("--n", "7", "--decimals", "1"),
        ),
        ("sample too small", "sample size", "A,no,4/7\nA,yes,3/7\nB,no,1/2\nB,$,1/2\n", ("--n", "3")),
        ("sample cannot be made up", "sample size", "A,no,4/7\nA,$,3/7\n", ("--n", "8")),
        ("all zero", "sample size", "A,no,0\nA,$,0\n", ("--n", "8")),
        ("a % sign", "has a percentage on row 1; add --percent", "A,no,57 %\nA,$,43 %\n", ("--n", "7")),
        ("no percentage", "no percentage on row 2", "A,no,57\nA,$,3/7\n", ("--n", "7", "--percent")),
        ("above 100", "percentage above 100 on row 2", "A,no,57\nA,$,143\n", ("--n", "7", "--percent")),
        (
            "decimals of percentages",
            "42.9 % is 0.429 and has three",
            "A,no,57.1\nA,$,42.9\n",
            ("--n", "7", "--percent", "--decimals", "1"),
        ),
        ("rounded after all", "give --decimals 3", "A,no,57.1\nA,$,42.9\n", ("--n", "7", "--percent")),
        ("rounded and not one", "--decimals 2 for rounded", "A,no,0.67\nA,$,0.34\n", ("--n", "7")),
        ("row totals nowhere", 'no column "people"', "A,no,4/7\nA,$,3/7\n", ("--row-n", "people")),
        ("row totals in use", "which is already in use", "A,no,4/7\nA,$,3/7\n", ("--row-n", "site")),
        ("nothing rounds so", "sample size", "A,no,0.9\nA,$,0.9\n", ("--n", "8", "--decimals", "1")),
    ]
]

PUBLISHED += [
    Bad(
        name,
        says,
        ("data.csv", *CONDITIONALS, "--row-n", "n", *more),
        {"data.csv": "site,ill,count,n\n" + content},
    )
    for name, says, content, more in [
        ("row total is text", 'column "n" in data.csv has no whole number', "A,no,4/7,7\nA,yes,3/7,$\n", ()),
        ("two totals of a row", "row 2 of data.csv has a different total", "A,no,4/7,7\nA,$,3/7,14\n", ()),
        ("no total of a row", "has people but no total", "A,no,4/7,\nA,$,3/7,\n", ()),
        ("total of nobody", "has a total but only zeros", "A,no,4/7,7\nA,yes,3/7,7\n$,no,0,7\n", ()),
        ("total that does not fit", "contradicts its conditionals", "A,no,4/7,8\nA,$,3/7,8\n", ()),
        ("totals and another n", "--n differs", "A,no,4/7,7\nA,$,3/7,7\n", ("--n", "14")),
        (
            "rounded total that does not fit",
            "check it, --decimals and --rounding",
            "A,no,0.4,2\nA,$,0.6,2\n",
            ("--decimals", "1"),
        ),
    ]
]

KNOWN = '[[known]]\nrow = {{site = "{site}"}}\ncol = {{ill = "yes"}}\n{limit}\n'
BESIDE = [
    beside("given is absent", "no.toml does not exist", "--weight", "count", "--given", "no.toml"),
    beside("given is not TOML", "beside.toml is not valid TOML at line 1", "--given", f"[[known\n{SECRET}"),
    beside("given is not UTF-8", "not UTF-8 text on line 2", "--given", b"# $\n# \xff\n"),
    beside("given without entries", "known", "--given", 'other = "$"\n'),
    beside("no limit", "statement 1 of beside.toml", "--given", KNOWN.format(site="A", limit="")),
    beside(
        "limit is text", 'key "known[1].at_most"', "--given", KNOWN.format(site="A", limit='at_most = "$"')
    ),
    beside("limit is negative", "at least 0", "--given", KNOWN.format(site="A", limit="at_most = -7719")),
    beside(
        "two limits",
        "combines exactly with",
        "--given",
        KNOWN.format(site="A", limit="exactly = 1\nat_most = 2"),
    ),
    beside("unknown label", 'column "site" lacks', "--given", KNOWN.format(site="$", limit="exactly = 1")),
    beside("row left out", "each row attribute (site)", "--given", "[[known]]\nrow = {}\nexactly = 7719\n"),
    beside(
        "label is a number", "in quotes", "--given", KNOWN.format(site="A", limit="").replace('"yes"', "7719")
    ),
    beside(
        "not a column",
        "not a column attribute",
        "--given",
        '[[known]]\nrow={site="A"}\ncol={x="$"}\nexactly=1\n',
    ),
    beside(
        "contradiction",
        "statement 1 of beside.toml contradicts",
        "--given",
        KNOWN.format(site="A", limit="exactly = 7719"),
    ),
    Bad(
        "row that is left out",
        "statement 1 of g.toml is about a row with a zero cell",
        ("data.csv", *WEIGHTED, "--drop-zero-rows", "--given", "g.toml"),
        {"data.csv": COUNTED + "$,no,1\n", "g.toml": KNOWN.format(site="$", limit="at_most = 7719")},
    ),
    beside("cells without a column", 'no column "ill"', "--cells", "site\n$\n"),
    beside("cells unknown", "row 2 of beside.csv", "--cells", "site,ill\nA,no\n$,no\n"),
    beside("cells empty", "beside.csv is empty", "--cells", ""),
    beside("recode of another", "neither in --rows nor in --cols", "--recode", '[age]\nyoung = ["$"]\n'),
    beside("recode is no table", "must be a table", "--recode", 'ill = "$"\n'),
    beside("recode of a number", "list of labels", "--recode", "[ill]\nany = 7719\n"),
    beside("recode of no label", "does not have label 2", "--recode", '[ill]\nany = ["yes", "$"]\n'),
    beside("bins of categories", "cannot be cut into bins", "--recode", "[ill]\nbins = [7719]\n"),
    beside("level of no hierarchy", "has no hierarchy", "--recode", "[ill]\nlevel = 1\n"),
    beside("bins of nothing", "must be a list of numbers", "--recode", "[ill]\nbins = []\n"),
    beside("level is text", "must be a whole number", "--recode", '[ill]\nlevel = "$"\n'),
    beside("group like a label", "add it to that group", "--recode", '[ill]\nyes = ["no"]\n'),
    beside("label in two groups", "twice", "--recode", '[ill]\na = ["yes"]\nb = ["yes"]\n'),
    beside("arrangements without entries", "arrangement", "--arrangements", "arrangement = []\n"),
    beside("arrangement without columns", "cols", "--arrangements", '[[arrangement]]\nrows = ["$"]\n'),
    beside(
        "arrangement of text",
        "must be a list",
        "--arrangements",
        '[[arrangement]]\nrows = "$"\ncols = ["ill"]\n',
    ),
    beside(
        "arrangement of nothing",
        "no column",
        "--arrangements",
        '[[arrangement]]\nrows = ["age"]\ncols = ["ill"]\n',
    ),
    beside("arrangement misspelt", "not a known key", "--arrangements", '[[arrangement]]\nrow = ["$"]\n'),
    beside(
        "arrangement recodes a stranger",
        "arrangement 2 of beside.toml: a recode is given for",
        "--arrangements",
        '[[arrangement]]\nrows = ["site"]\ncols = ["ill"]\n' * 2 + 'recode.age = {any = ["$"]}\n',
    ),
    beside(
        "arrangement of one column",
        "arrangement 1 of beside.toml: column",
        "--arrangements",
        '[[arrangement]]\nrows = ["ill"]\ncols = ["ill"]\n',
    ),
    beside(
        "arrangements and recode", "--arrangements and --recode", "--arrangements", "", "--recode", "r.toml"
    ),
    beside("arrangements and cells", "--arrangements and --cells", "--arrangements", "", "--cells", "c.csv"),
]

SPECS = [
    Bad("spec absent", "no.toml does not exist", ("--spec", "no.toml")),
    spec("spec is not TOML", "audit.toml is not valid TOML at line 2", "[bounds]\nrows = $\n"),
    spec("spec names no data", "names no source", BOUNDS),
    spec("spec names data twice", "both a file and a uri", '[source]\nfile = "$"\nuri = "$"\n'),
    spec("unknown section", 'key "bound" is not a known key', SOURCE + '[bound]\nrows = ["$"]\n'),
    spec("unknown key", 'audit.toml [bounds]: key "row"', SOURCE + '[bounds]\nrow = ["$"]\n'),
    spec("wrong type", 'audit.toml [bounds]: key "small"', SOURCE + BOUNDS + 'small = "$"\n'),
    spec("wrong choice", 'audit.toml [bounds]: key "fail_on"', SOURCE + BOUNDS + 'fail_on = "$"\n'),
    spec("given of the wrong type", 'key "given" must be a file name', SOURCE + BOUNDS + "given = 7719\n"),
    spec("recode of the wrong type", 'key "recode" must be a file name', SOURCE + BOUNDS + "recode = 7719\n"),
    spec(
        "cells of the wrong type",
        'key "cells" must be a file name',
        SOURCE + BOUNDS + "cells = [{ill = 7719}]\n",
    ),
    spec("data of the spec absent", "gone.csv does not exist", '[source]\nfile = "gone.csv"\n' + BOUNDS),
    spec("file of the spec absent", "gone.toml does not exist", SOURCE + BOUNDS + 'given = "gone.toml"\n'),
    spec("unknown kind", "attributes.ill.kind", SOURCE + BOUNDS + '[attributes.ill]\nkind = "$"\n'),
    spec("label twice", "lists a label twice", SOURCE + BOUNDS + '[attributes.ill]\nlabels = ["$", "$"]\n'),
    spec("value outside the labels", "row 1", SOURCE + BOUNDS + '[attributes.ill]\nlabels = ["yes"]\n'),
    spec(
        "ordered without labels", "labels in order", SOURCE + BOUNDS + '[attributes.ill]\nkind = "ordered"\n'
    ),
    spec("text as numbers", "row 1", SOURCE + BOUNDS + '[attributes.ill]\nkind = "integer"\n'),
    spec(
        "bins and merge",
        "bins, merge and level",
        SOURCE + BOUNDS + "[attributes.ill]\nbins = [1]\nlevel = 1\n",
    ),
    spec(
        "hierarchy absent",
        "h.csv does not exist",
        SOURCE + BOUNDS + '[attributes.ill]\nhierarchy = "h.csv"\n',
    ),
    spec("zero of a stranger", 'no attribute "age"', SOURCE + BOUNDS + '[[structural_zeros]]\nage = ["$"]\n'),
    spec(
        "people in a structural zero",
        "structural zero",
        SOURCE + BOUNDS + '[attributes.ill]\nlabels = ["no", "yes"]\n[[structural_zeros]]\nill = ["yes"]\n',
    ),
    spec("wide and weight", "both a weight column and wide", SOURCE + '[source.wide]\ncount = {ill = "$"}\n'),
    spec(
        "wide without its column",
        'no column "many"',
        '[source]\nfile = "data.csv"\nwide = {many = {sex = "$"}}\n'
        + '[bounds]\nrows = ["site"]\ncols = ["sex"]\n',
    ),
]

CASES = [*FILES, *OPTIONS, *PUBLISHED, *BESIDE, *SPECS]


@pytest.fixture
def arrange(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Write the files of a case and go where they are."""

    def write(case: Bad) -> set[Path]:
        for file, content in case.files.items():
            raw = content if isinstance(content, bytes) else content.encode()
            (tmp_path / file).write_bytes(raw.replace(b"$", SECRET.encode()))
        monkeypatch.chdir(tmp_path)
        return set(tmp_path.rglob("*"))

    return write


@pytest.mark.parametrize("case", CASES, ids=str)
def test_one_sentence(case: Bad, arrange, call_louver: Runner, tmp_path: Path) -> None:
    before = arrange(case)
    report = () if "--html" in case.arguments else ("--html", "report.html")
    done = call_louver("bounds", *report, *case.arguments)
    assert (done.code, done.out) == (2, ""), done
    assert_sentence(done.err, case)
    assert set(tmp_path.rglob("*")) == before


def assert_sentence(text: str, case: Bad) -> None:
    """One line that says what is wrong where, and repeats nothing."""
    assert text.startswith("louver bounds: ")
    assert text.endswith((".\n", "?\n"))
    assert text.count("\n") == 1
    assert case.says in text
    for secret in (SECRET, SECRET.lower(), "7719", "Traceback"):
        assert secret not in text


@pytest.mark.parametrize("case", [CASES[0], FILES[11], SPECS[1]], ids=str)
def test_in_a_process_of_its_own(case: Bad, arrange, run_louver: Runner, tmp_path: Path) -> None:
    before = arrange(case)
    done = run_louver("bounds", "--html", "report.html", *case.arguments, cwd=tmp_path)
    assert (done.code, done.out) == (2, ""), done
    assert_sentence(done.err, case)
    assert set(tmp_path.rglob("*")) == before


def test_names_are_unique() -> None:
    assert len({case.name for case in CASES}) == len(CASES)
