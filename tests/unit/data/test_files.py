"""How text files are read: encodings, separators, decimal commas; and rows that are asked for."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from louver.anonymize import anonymize
from louver.bounds import bounds
from louver.data.read import open_source
from louver.data.tabulate import read_text, tabulate
from louver.errors import InputError

SECRET = "Zwürgl-4711"
PEOPLE = "name,age,state,income\nÄ,31,GA,10\nB,8,NY,\nC,70,GA,7.5\nD,,FL,3\n"


def written(folder: Path, content: str | bytes, name: str = "p.csv") -> Path:
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def rows(path: Any, *columns: str, **reading: Any) -> list[tuple[str | None, ...]]:
    with open_source(path, **reading) as source:
        return read_text(source, columns or source.columns)


@pytest.mark.parametrize("encoding", ["cp1252", "latin-1", "utf-16", "utf-8", "windows-1252"])
@pytest.mark.parametrize("is_compressed", [False, True])
def test_encodings(tmp_path: Path, encoding: str, is_compressed: bool) -> None:
    content = PEOPLE.encode(encoding)
    path = (
        written(tmp_path, gzip.compress(content), "p.csv.gz") if is_compressed else written(tmp_path, content)
    )
    plain = written(tmp_path, PEOPLE, "plain.csv")
    assert rows(path, encoding=encoding) == rows(plain)


def test_a_copy_goes_where_the_system_has_no_files_in_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr("os.memfd_create")
    path = written(tmp_path, PEOPLE.encode("cp1252"))
    with open_source(path, encoding="cp1252") as source:
        copy = source._scratch.path / "copy.csv"
        assert copy.exists()
        assert read_text(source, ["name"])[0] == ("Ä",)
    assert not copy.exists()


def test_a_mark_of_utf8_is_no_part_of_a_name(tmp_path: Path) -> None:
    assert rows(written(tmp_path, PEOPLE.encode("utf-8-sig")), "name")[0] == ("Ä",)


@pytest.mark.parametrize("sign", [",", ";", "\t", "|", ":"])
def test_delimiters(tmp_path: Path, sign: str) -> None:
    path = written(tmp_path, PEOPLE.replace(",", sign))
    assert rows(path, delimiter=sign) == rows(written(tmp_path, PEOPLE, "plain.csv"))


def test_decimal_commas_are_numbers_where_they_are_announced(tmp_path: Path) -> None:
    path = written(tmp_path, "id;income;note\n1;16090,69;a,b\n2;-5;1,x\n3;;c\n")
    with pytest.raises(
        InputError, match='column "income" in p.csv has numbers with commas; give --decimal-mark ","'
    ):
        rows(path)
    assert rows(path, "income", decimal_mark=",") == [("16090.69",), ("-5",), (None,)]
    assert rows(path, "note", decimal_mark=",") == [("a,b",), ("1,x",), ("c",)]
    assert rows(path, "income", decimal_mark=".")[0] == ("16090,69",)
    assert rows(path, "income", decimal_mark=",", where="income > 16000.5") == [("16090.69",)]


def test_a_few_words_among_decimal_commas_do_not_hide_them(tmp_path: Path) -> None:
    path = written(tmp_path, "income\n" + '"1,5"\n' * 19 + "N/A\n")
    with pytest.raises(InputError, match="--decimal-mark"):
        rows(path)
    assert rows(written(tmp_path, 'place\n"Bonn, Nord"\n"Ulm, 7"\n'))[0] == ("Bonn, Nord",)


CONDITIONS = {
    "age >= 31": "ÄC",
    "age < 31 or income = 3": "BD",
    "not age >= 31": "BD",  # a comparison with a missing value is false
    "age != 31": "BC",
    "age is missing": "D",
    "age is not missing and income is not missing": "ÄC",
    "state in ('GA', 'FL') and not (age > 60)": "ÄD",
    "state not in ('GA')": "BD",
    "age in (8, 70)": "BC",
    "\"state\" = 'NY'": "B",
    "income > age": "",
    "income < age": "ÄC",
    "name <> state": "ÄBCD",
    "STATE == 'NY'": None,  # names are told apart by case
    "state > 'FL' and state <= 'GA'": "ÄC",
    "income = 7.50": "C",
}


@pytest.mark.parametrize("where", CONDITIONS)
def test_conditions(tmp_path: Path, where: str) -> None:
    path = written(tmp_path, PEOPLE)
    expected = CONDITIONS[where]
    if not expected:
        with pytest.raises(
            InputError, match="no row of p.csv satisfies --where" if expected == "" else "no column"
        ):
            rows(path, "name", where=where)
    else:
        assert [name for (name,) in rows(path, "name", where=where)] == list(expected)


def test_conditions_on_columns_of_numbers() -> None:
    frame = pa.table({"age": [31, 8, None], "name": ["x", "y", "z"], "day": pa.array([0, 1, 2], pa.date32())})
    assert rows(frame, "name", where="age > 8.5") == [("x",)]
    assert rows(frame, "name", where="age in (8)") == [("y",)]
    assert rows(frame, "name", where="day >= '1970-01-02'") == [("y",), ("z",)]
    with pytest.raises(
        InputError, match='column "age", which holds numbers, with text; leave the quotes out'
    ):
        rows(frame, where="age = '31'")


def test_text_in_a_condition_is_never_sql(tmp_path: Path) -> None:
    path = written(tmp_path, 'a"b,c\nit\'s,1\n"x"" OR 1=1 --",2\n')
    assert rows(path, "c", where="\"a\"\"b\" = 'it''s'") == [("1",)]
    assert rows(path, "c", where='"a""b" = \'x" OR 1=1 --\'') == [("2",)]


def test_rows_are_counted_as_they_stand_in_the_file(tmp_path: Path) -> None:
    path = written(tmp_path, "a,n\nx,1\ny,2\nx,\nx,-1\n")
    for where, says in (
        ("a = 'x' and n is not missing", "negative on row 4"),
        ("a = 'x'", "no value on row 3"),
    ):
        with open_source(path, where=where) as source, pytest.raises(InputError, match=says):
            tabulate(source, ["a"], weight="n")


def test_rows_of_verbs_that_count_themselves(tmp_path: Path) -> None:
    path = written(tmp_path, "a,b,share\ny,u,x\nx,u,1/2\ny,v,x\nx,v,7\nx,,1/2\n")
    with pytest.raises(InputError, match="conditional above 1 on row 4"):
        bounds(
            path,
            rows="a",
            cols="b",
            weight="share",
            conditionals=True,
            n=4,
            where="a = 'x' and share != '1/2'",
        )
    with pytest.raises(InputError, match="no value on row 5"):
        anonymize(path, quasi=["b"], identifying=["share", "a"], k=1, missing="error", where="a = 'x'")


def test_close_names_are_suggested(tmp_path: Path) -> None:
    path = written(tmp_path, PEOPLE)
    for asked, says in (
        ("Income", 'perhaps "income" is meant\\.$'),
        ("stat", 'perhaps "state" is meant\\.$'),
        ("zip", "check the spelling\\.$"),
    ):
        with pytest.raises(InputError, match=f'no column "{asked}"; {says}'):
            rows(path, asked)


@pytest.mark.parametrize(
    "content",
    ["1,2020-01-02,GA,4.5\n2,2020-01-03,NY,3\n", "GA,Meyer,Bonn\nNY,Schulz,Bonn\nGA,Kunz,Ulm\n"],
    ids=["numbers", "words that recur"],
)
def test_a_first_line_of_data_is_not_repeated(tmp_path: Path, content: str) -> None:
    with pytest.raises(InputError) as caught:
        rows(written(tmp_path, content), "Mayer")
    assert str(caught.value) == (
        'p.csv has no column "Mayer"; its first line looks like data; add a line with the column names.'
    )


BAD: dict[str, tuple[str | bytes, dict[str, Any], str]] = {
    "one column by the sign given": (PEOPLE, {"delimiter": ";"}, "one column, whose name contains another separator"),
    "one column with bars": ("a|b\n1|2\n", {}, "one column, whose name contains another separator"),
    "two separators alike": ("a,b;c\n1,2;3\n", {}, "split at commas and at semicolons"),
    "latin without a word": (f"a,b\n1,2\n{SECRET},x\n".encode("latin-1"), {}, "row 2 is not UTF-8 text in column 1"),
    "cp1252 with a hole": (b"a,b\n1,2\n\x81,x\n", {"encoding": "cp1252"}, "is not cp1252 text on row 2"),
    "a hole in the header": (b"a\x81,b\n1,2\n", {"encoding": "cp1252"}, "is not cp1252 text in its first line"),
    "utf-16 without a mark": (PEOPLE.encode("utf-16-le"), {"encoding": "utf-16"}, "a UTF-16 byte order mark"),
    "utf-16 cut short": (PEOPLE.encode("utf-16") + b"\0", {"encoding": "utf-16"}, "is not utf-16 text on row"),
    "utf-16 without a word": (PEOPLE.encode("utf-16"), {}, "not UTF-8 text but UTF-16; say so"),
    "utf-16 as latin": (PEOPLE.encode("utf-16"), {"encoding": "latin-1"}, "not UTF-8 text but UTF-16; say so"),
    "utf-8 as latin": (PEOPLE.encode("utf-8-sig"), {"encoding": "latin-1"}, "leave out --encoding"),
    "empty in another encoding": (b"", {"encoding": "cp1252"}, "is empty"),
    "only a mark": (b"\xef\xbb\xbf", {}, "is empty"),
    "ragged in another encoding": ("a,b\nü\n".encode("cp1252"), {"encoding": "cp1252"}, "row 1 has fewer"),
    "thousands and decimals": ('n\n"1.234,5"\n', {}, "has numbers with commas"),
    "thousands in English": ('n\n"1,234"\n"12,345,678"\n', {}, "has numbers with commas"),
    "points beside decimal commas": ('n;m\n1,5;1\n1.234;1\n', {"decimal_mark": ","}, "points inside numbers"),
    "filter of a stranger": (PEOPLE, {"where": "agee > 3"}, 'no column "agee"; perhaps "age" is meant'),
    "filter of words by number": (PEOPLE, {"where": "state > 3"}, 'column "state" with a number, but row 1 is not a number'),
    "filter that leaves nothing": (PEOPLE, {"where": "age > 300"}, "no row of p.csv satisfies --where"),
    "codes of a text file": (PEOPLE, {"keep_codes": True}, "--keep-codes applies only to Stata"),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD)
def test_bad_files_are_one_sentence(tmp_path: Path, case: str) -> None:
    content, reading, says = BAD[case]
    with pytest.raises(InputError) as caught:
        rows(written(tmp_path, content), **reading)
    said = str(caught.value)
    assert says in said and said.count(". ") == 0 and said[-1] in ".?"
    assert SECRET not in said and "4711" not in said


def test_what_a_kind_of_data_does_not_have_is_refused(tmp_path: Path) -> None:
    frame = pa.table({"a": [1]})
    for reading, says in (
        ({"encoding": "cp1252"}, "--encoding applies only to CSV"),
        ({"delimiter": ";"}, "--delimiter applies only to CSV"),
        ({"keep_codes": True}, "--keep-codes applies only to Stata"),
    ):
        with pytest.raises(InputError, match=says):
            rows(frame, **reading)
