"""Files of tau-ARGUS: what they stand for, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import louver as lv
from louver.errors import InputError
from louver.protect.argus import read_argus
from unit.protect.spec import LINES

RDA = """<SEPARATOR> ";"
<UNSAFE> "X"
trade
  <RECODEABLE>
  <TOTCODE> "Total"
  <HIERARCHICAL>
  <HIERCODELIST> "trade.hrc"
  <HIERLEADSTRING> "#"
size
  <RECODEABLE>
  <TOTCODE> "Total"
  <CODELIST> "size.cdl"
n
  <FREQUENCY>
turnover
  <NUMERIC>
  <DECIMALS> 0
first
  <MAXSCORE>
second
  <MAXSCORE>
state
  <STATUS>
price
  <COST>
"""
ARB = """// a comment
<OPENTABLEDATA> "firms.tab"
<OPENMETADATA> "firms.rda"
<SPECIFYTABLE> "trade""size"|"turnover"|""|"price"
<SAFETYRULE> FREQ(3,10)|P(15,1)|NK(0,0)|ZERO(0)|MIS(0)|MAN(20)|WGT(0)
<READTABLE> 1
<SUPPRESS> MOD(1,5,1,1,1)
<WRITETABLE> (1,4,AS+,"out.sbs")
<GOINTERACTIVE>
"""
HRC = "craft\n#food\n#wood\niron\n"
TAB = "".join(";".join([*line.split(",")[:6], "", "1"]) + "\n" for line in LINES) + (
    "craft;small;8;180;50;30;;1\ncraft;large;13;900;200;150;;1\ncraft;Total;21;1080;200;150;;1\n"
)


def write(folder: Path, arb: str = ARB, rda: str = RDA, tab: str = TAB, **files: str) -> Path:
    texts = {"firms.arb": arb, "firms.rda": rda, "firms.tab": tab, "trade.hrc": HRC}
    for name, text in (texts | {key.replace("_", "."): text for key, text in files.items()}).items():
        (folder / name).write_text(text)
    return folder / "firms.arb"


def test_a_batch_of_a_ready_table(tmp_path: Path) -> None:
    options, records = read_argus(write(tmp_path))
    assert records is None and (options["method"], options["minimise"]) == ("hide", "cost")
    (table,) = options["tables"]
    assert (
        table["by"] == ["trade", "size"]
        and table["largest"] == ["first", "second"]
        and table["cost"] == "price"
    )
    assert [(rule["rule"], rule["tables"]) for rule in options["rules"]] == [
        ("frequency", ["table 1"]),
        ("p-percent", ["table 1"]),
    ]
    found = lv.protect(**options)
    assert found.is_protected and found.summary.cells == 15 and found.summary.primary >= 1
    first = {tuple(cell.cell.values()) for cell in found.cells if cell.kind == "primary"}
    assert ("food", "small") in first


def test_status_letters_and_decisions(tmp_path: Path) -> None:
    tab = TAB.replace("iron;large;6;600;250;150;;1", "iron;large;6;600;250;150;X;1")
    hst = "wood;small;c;50\nwood;large;p\niron;small;s\n\niron;Total;u\n"
    arb = ARB.replace("<READTABLE>", '<APRIORI> "firms.hst",1,";",0,0\n<READTABLE>')
    options, _ = read_argus(write(tmp_path, arb, tab=tab, firms_hst=hst))
    assert [(one["set"], one.get("cost"), one.get("range")) for one in options["status"]] == [
        ("cost", 50.0, None),
        ("publish", None, None),
        ("hide", None, 20.0),
    ]
    found = lv.protect(**options)
    hidden = {tuple(cell.cell.values()): cell.kind for cell in found.cells}
    assert hidden["iron", "large"] == hidden["iron", "Total"] == "primary" and ("wood", "large") not in hidden
    assert ("table 1", "iron, Total", "hide: line 5 of firms.hst") in found.decided


FIXED_RDA = """trade 1 4
  <RECODABLE>
  <HIERARCHICAL>
  <HIERLEVELS> 1 1 0
size 6 5 99 98
  <RECODABLE>
  <TOTCODE> "all"
turnover 12 4
  <NUMERIC>
  <DECIMALS> 1
firm 17 1
  <HOLDING>
weight 19 3
  <WEIGHT>
"""
FIXED = "".join(
    f"{trade:4} {size:5} {value:4} {firm} {weight:3}\n"
    for trade, size, value, firm, weight in [
        ("11", "small", "5.5", "a", "1"),
        ("11", "large", "40", "b", "2"),
        ("12", "small", "6", "c", "1"),
        ("12", "large", "30", "d", "1"),
        ("20", "small", "8", "e", "1.5"),
        ("20", "large", "60", "f", "1"),
        ("11", "large", "44", "g", "1"),
        ("12", "small", "9", "h", "1"),
        ("20", "small", "7", "a", "1"),
    ]
)
FIXED_ARB = """<OPENMICRODATA> "firms.asc"
<OPENMETADATA> "firms.rda"
<SPECIFYTABLE> "trade""size"|"turnover"||-1
<SAFETYRULE> NK(1,90)|FREQ(2,10)|WGT(1)
<READMICRODATA>
<SUPPRESS> OPT(1)
"""


def test_a_batch_of_records(tmp_path: Path) -> None:
    options, records = read_argus(write(tmp_path, FIXED_ARB, FIXED_RDA, firms_asc=FIXED))
    assert records is not None and records["turnover"].to_pylist()[0] == "5.5" and records.num_rows == 9
    assert (options["holding"], options["sampling_weight"], options["minimise"]) == (
        "firm",
        "weight",
        "number",
    )
    assert options["codes"]["trade"]["levels"] == [1, 1] and options["codes"]["size"]["total"] == "all"
    found = lv.protect(records, **options)
    assert found.summary.cells == 15 and found.summary.primary
    counts = (
        FIXED_ARB.replace('"turnover"||-1', "<freq>||")
        .replace("NK(1,90)|", "")
        .replace("OPT(1)", "RND(1,10,0,60)")
    )
    options, records = read_argus(write(tmp_path, counts, FIXED_RDA, firms_asc=FIXED))
    assert (options["method"], options["base"]) == ("round", 10) and "value" not in options["tables"][0]
    assert lv.protect(records, **options).summary.cells == 15


def test_separated_records_and_slashes(tmp_path: Path) -> None:
    rda = '<SEPARATOR> ","\n"trade"\n<RECODEABLE>\n"value"\n<NUMERIC>\n'
    arb = '<OPENMICRODATA> sub\\firms.asc\n<SPECIFYTABLE> "Trade"|"VALUE"|"value"|"value"\n<SAFETYRULE> PQ(10,50,1)\n<SUPPRESS> GH(1,75)\n'
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub/firms.rda").write_text(rda)
    (tmp_path / "sub/firms.asc").write_text('"a",1\n"b",2\n\n"b",3\n')
    (tmp_path / "x.arb").write_text(arb)
    options, records = read_argus(tmp_path / "x.arb")
    assert options["rules"] == [{"rule": "p-q", "p": 10.0, "q": 50.0, "tables": ["table 1"]}]
    assert records is not None and records["trade"].to_pylist() == ["a", "b", "b"]


def changed(old: str, new: str) -> dict[str, str]:
    return {"arb": ARB.replace(old, new)}


BAD: dict[str, tuple[dict[str, str], str, int | None]] = {
    "no command": (
        changed("<GOINTERACTIVE>", "GOINTERACTIVE"),
        "firms.arb: line 9 does not start with a command",
        9,
    ),
    "unknown": (changed("<READTABLE>", "<RECODE>"), "line 6 has RECODE, which louver does not read", 6),
    "cover": (changed("<READTABLE>", "<COVER>"), "line 6 has COVER, which louver does not read", 6),
    "no data": ({"arb": '<SPECIFYTABLE> "a"|"b"||\n'}, "needs either OPENMICRODATA or OPENTABLEDATA", None),
    "both data": (
        changed("<READTABLE>", '<OPENMICRODATA> "x.asc"\n<READTABLE>'),
        "needs either OPENMICRODATA or",
        None,
    ),
    "data twice": (
        changed("<READTABLE>", '<OPENTABLEDATA> "x.tab"\n<READTABLE>'),
        "line 6 repeats OPENTABLEDATA",
        6,
    ),
    "no file": (changed('"firms.tab"', ""), "line 2 needs the name of a file", 2),
    "no table": (changed("<SPECIFYTABLE>", "<LOGBOOK>").copy(), "line 5 comes before any table", 5),
    "nothing": ({"arb": '<OPENTABLEDATA> "firms.tab"\n'}, "firms.arb specifies no table", None),
    "no attributes": (changed('"trade""size"|', "|"), "line 4 needs attributes and a response variable", 4),
    "no response": (
        changed('|"turnover"|""|"price"', ""),
        "line 4 needs attributes and a response variable",
        4,
    ),
    "attribute": (
        changed('"trade""size"', '"town"'),
        'line 4 names the column "town", which firms.rda does not describe',
        4,
    ),
    "value": (changed('"turnover"', '"sales"'), 'line 4 names the column "sales"', 4),
    "shadow": (changed('|""|', '|"first"|'), "line 4 has a shadow variable", 4),
    "cost": (changed('"price"', "-3"), "line 4 has an unknown cost", 4),
    "rule form": (changed("P(15,1)", "P15"), "line 5 has a rule that is not of the form", 5),
    "rule name": (changed("P(15,1)", "REQ(1,2,3)"), "line 5 has the rule REQ in a form", 5),
    "rule numbers": (changed("P(15,1)", "P(x)"), "line 5 needs a number of 0 or more", 5),
    "coalition": (changed("P(15,1)", "P(15,2)"), "line 5 has P against several contributors", 5),
    "missing": (changed("MIS(0)", "MIS(1)"), "line 5 has MIS", 5),
    "holdings": (changed("NK(0,0)", "P(0,1)|P(10,1)"), "line 5 has a third P, a rule about holdings", 5),
    "method": (changed("MOD(1,5,1,1,1)", "CTA(1)"), "line 7 has a method that louver does not have", 7),
    "rounding": (changed("MOD(1,5,1,1,1)", "RND(1)"), "line 7 has a method that louver does not have", 7),
    "base": (changed("MOD(1,5,1,1,1)", "RND(1,x)"), "line 7 needs a whole number", 7),
    "two methods": (
        changed("<GOINTERACTIVE>", "<SUPPRESS> RND(1,5)"),
        "protects its tables in different ways",
        None,
    ),
    "two costs": (
        changed("<READTABLE>", '<SPECIFYTABLE> "size"|"turnover"||-1\n<READTABLE>'),
        "tables with different costs",
        None,
    ),
    "apriori": (
        changed("<READTABLE> 1", '<APRIORI> "firms.hst",2'),
        "line 6 needs a file and the number of a table",
        6,
    ),
    "apriori file": (changed("<READTABLE> 1", '<APRIORI> "none.hst",1'), "none.hst", None),
    "apriori codes": (
        {**changed("<READTABLE> 1", '<APRIORI> "firms.hst",1'), "firms_hst": "wood,u\n"},
        "firms.hst: line 1 needs a code",
        1,
    ),
    "apriori status": (
        {**changed("<READTABLE> 1", '<APRIORI> "firms.hst",1'), "firms_hst": "wood,small,pl,5,5\n"},
        "firms.hst: line 1 has a status",
        1,
    ),
    "apriori cost": (
        {**changed("<READTABLE> 1", '<APRIORI> "firms.hst",1'), "firms_hst": "wood,small,c,x\n"},
        "firms.hst: line 1 needs a number",
        1,
    ),
    "no metadata": (changed('"firms.rda"', '"none.rda"'), "none.rda", None),
    "empty metadata": ({"rda": '<SEPARATOR> ";"\n'}, "firms.rda describes no columns", None),
    "early": ({"rda": "<NUMERIC>\n"}, "firms.rda: line 1 has NUMERIC before any column", 1),
    "separator": ({"rda": '<SEPARATOR> ";;"\n'}, "firms.rda: line 1 needs a separator of one character", 1),
    "no value": (
        {"rda": RDA.replace('<TOTCODE> "Total"', "<TOTCODE>", 1)},
        "firms.rda: line 5 needs a value of TOTCODE",
        5,
    ),
    "request": (
        {"rda": RDA.replace("<MAXSCORE>", '<REQUEST> "1"', 1)},
        "firms.rda: line 19 has REQUEST, which louver does not read",
        19,
    ),
    "position": (
        {"rda": "trade\n<RECODEABLE>\n"},
        "firms.rda: line 1 needs the first position and the width",
        1,
    ),
    "decimals": ({"rda": RDA.replace("<DECIMALS> 0", "<DECIMALS> x")}, "line 4 needs a whole number", 4),
    "fields": (
        {"tab": TAB.replace(";450;", ";")},
        'table "table 1": row 3 of firms.tab has 7 fields, but columns lists 8',
        3,
    ),
    "lead": ({"trade_hrc": "craft\n##food\n"}, "trade.hrc: line 2 has at least two more marks", 2),
}


@pytest.mark.parametrize("case", BAD)
def test_what_is_not_understood_is_refused_with_its_place(tmp_path: Path, case: str) -> None:
    files, says, row = BAD[case]
    with pytest.raises(InputError) as error:
        options, records = read_argus(write(tmp_path, **files))
        lv.protect(records, **options)
    assert says in str(error.value) and error.value.row == row
    assert str(tmp_path) not in str(error.value)


BAD_TABLES: dict[str, tuple[dict[str, Any], str]] = {
    "no separator": ({"columns": ["trade"]}, "needs columns and separator together"),
    "no status": ({"status_codes": {"X": "hide"}}, "has status_codes but no status"),
    "no column": (
        {"columns": ["trade", "size", "turnover"], "separator": ";"},
        'has no column "n" among its columns',
    ),
}


@pytest.mark.parametrize("case", BAD_TABLES)
def test_options_of_files_without_names_are_checked(tmp_path: Path, case: str) -> None:
    more, says = BAD_TABLES[case]
    write(tmp_path)
    table = {
        "name": "t",
        "by": ["trade", "size"],
        "file": str(tmp_path / "firms.tab"),
        "value": "turnover",
        "frequency": "n",
    }
    with pytest.raises(InputError) as error:
        lv.protect(tables=[{**table, **more}], rules=[{"rule": "frequency", "minimum": 3}])
    assert says in str(error.value)


def test_records_with_a_short_line_are_refused(tmp_path: Path) -> None:
    rda = '<SEPARATOR> ","\ntrade\n<RECODEABLE>\nvalue\n<NUMERIC>\n'
    arb = '<OPENMICRODATA> "firms.asc"\n<SPECIFYTABLE> "trade"|"value"||\n'
    with pytest.raises(
        InputError, match=r"firms.asc: row 2 has 1 fields, but the metadata describe 2"
    ) as error:
        read_argus(write(tmp_path, arb, rda, firms_asc="a,1\nb\n"))
    assert error.value.row == 2
