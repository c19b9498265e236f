"""Files in the published layout, made by hand: what is read from good ones, and one sentence for each bad one."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from louver.errors import InputError
from louver.topdown.published.read import read_published

COUNTIES = ("044100011", "044100031")
BLOCKS = tuple(f"{county}000101440{n}010107023300{n}" for county in COUNTIES for n in (1, 2))
ANSWER = "Block.parquet/DPQuery/State=044/part-0.parquet"
EXACT = "Block.parquet/Constraint/State=044/part-0.parquet"
COUNTY = "County.parquet/DPQuery/State=044/part-0.parquet"
COUNTY_EXACT = "County.parquet/Constraint/State=044/part-0.parquet"
STATE = "State.parquet/DPQuery/State=044/part-0.parquet"

Rows = list[dict[str, Any]]


def answer(code: str, value: list[int], variance: float) -> dict[str, Any]:
    return {
        "geocode": code,
        "query_name": "detailed_dpq",
        "h1": "detailed",
        "query_shape": [2],
        "value": value,
        "variance": variance,
    }


def exact(code: str, value: int) -> dict[str, Any]:
    return {
        "geocode": code,
        "query_name": "total_con",
        "h1": "*",
        "query_shape": [1],
        "value": [value],
        "variance": 0.0,
        "sign": "=",
    }


def units() -> dict[str, Rows]:
    """Housing units of four blocks in two counties; the second block of each has no noisy row."""
    return {
        STATE: [answer("044", [3, 50], 2735.4)],
        COUNTY: [answer(COUNTIES[0], [-7, 19], 156.31), answer(COUNTIES[1], [2, 31], 156.31 * 0.394)],
        COUNTY_EXACT: [exact(COUNTIES[0], 23), exact(COUNTIES[1], 27)],
        ANSWER: [answer(BLOCKS[2], [1, 2], 110.52), answer(BLOCKS[0], [7, -19], 110.52)],
        EXACT: [exact(block, 11 + place) for place, block in enumerate(BLOCKS)],
    }


def write(root: Path, files: dict[str, Any]) -> Path:
    for name, rows in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(rows, bytes):
            path.write_bytes(rows)
        else:
            table = rows if isinstance(rows, pa.Table) else pa.Table.from_pylist(rows)
            pq.write_table(table, path)
    return root


def test_absent_rows_and_other_variances_are_read_as_they_are(tmp_path: Path) -> None:
    found = read_published(write(tmp_path / "US_Unit_PL_PROD", units()))
    assert [level.name for level in found.levels] == ["State", "County", "Block"]
    assert [level.width for level in found.levels] == [3, 9, len(BLOCKS[0])]
    block = found.levels[-1]
    assert block.codes == tuple(sorted(BLOCKS))
    (answers,) = block.answers
    assert [block.codes[region] for region in answers.region] == sorted([BLOCKS[0], BLOCKS[2]])
    assert answers.values.tolist() == [[7, -19], [1, 2]]
    assert found.levels[1].answers[0].variances.tolist() == [156.31, 156.31 * 0.394]
    assert block.constraints[0].values.ravel().tolist() == [11, 12, 13, 14]
    assert [axis.labels for axis in found.axes] == [("vacant", "occupied")]


def test_persons_have_the_axes_in_the_order_of_the_shape(tmp_path: Path) -> None:
    axes = {"hhgq": "*", "votingage": "*", "hispanic": "*", "cenrace": "*"}
    columns = {"geocode": "044", "variance": np.float32(4.7)}
    rows = [
        {
            **columns,
            "query_name": "hhinstlevels_dpq",
            **axes,
            "hhgq": "hhinstlevels",
            "query_shape": [3, 1, 1, 1],
            "value": [44, 12, -150],
        },
        {
            **columns,
            "query_name": "hispanic * cenrace_dpq",
            **axes,
            "hispanic": "hispanic",
            "cenrace": "cenrace",
            "query_shape": [1, 1, 2, 63],
            "value": list(range(126)),
        },
        {
            **columns,
            "query_name": "detailed_dpq",
            **dict.fromkeys(axes, "detailed"),
            "query_shape": [8, 2, 2, 63],
            "value": list(range(2016)),
        },
    ]
    bound = {
        **columns,
        "query_name": "nurse_nva_0_con",
        **axes,
        "hhgq": "gqNursingTotal",
        "votingage": "nonvoting",
        "query_shape": [1, 1, 1, 1],
        "value": [0],
        "variance": np.float32(0),
        "sign": "=",
    }
    files = {STATE: rows, STATE.replace("DPQuery", "Constraint"): [bound]}
    found = read_published(write(tmp_path / "persons", files))
    (level,) = found.levels
    assert [one.shape for one in level.answers] == [(3, 1, 1, 1), (1, 1, 2, 63), (8, 2, 2, 63)]
    assert [len(axis.labels) for axis in found.axes] == [8, 2, 2, 63]
    assert found.axes[3].labels[6] == "white+black" and found.axes[3].labels[62].count("+") == 5
    assert found.axes[0].groups(level.constraints[0].entries[0]) == ((3,),)


def first(file: str, **changed: Any) -> Callable[[dict[str, Any]], None]:
    """Change the first row of a file."""

    def change(files: dict[str, Any]) -> None:
        files[file][0] |= changed

    return change


def all_rows(file: str, **changed: Any) -> Callable[[dict[str, Any]], None]:
    def change(files: dict[str, Any]) -> None:
        files[file] = [row | changed for row in files[file]]

    return change


def without(file: str, column: str) -> Callable[[dict[str, Any]], None]:
    def change(files: dict[str, Any]) -> None:
        files[file] = [{name: one for name, one in row.items() if name != column} for row in files[file]]

    return change


def described(text: str) -> Callable[[dict[str, Any]], None]:
    def change(files: dict[str, Any]) -> None:
        files[ANSWER] = pa.Table.from_pylist(files[ANSWER]).replace_schema_metadata({"louver": text})

    return change


def replaced(file: str, rows: Any) -> Callable[[dict[str, Any]], None]:
    def change(files: dict[str, Any]) -> None:
        files[file] = rows(files[file]) if callable(rows) else rows

    return change


def both_bounds(files: dict[str, Any]) -> None:
    files[EXACT] += [exact(BLOCKS[0], 10) | {"query_name": "total_ub_con", "sign": "<="}]


def other_file(files: dict[str, Any]) -> None:
    more = [answer(BLOCKS[1], [1, 2], 110.52) | {"h1": "h1"}]
    files[ANSWER.replace("part-0", "part-1")] = more


def twice_in_two_files(files: dict[str, Any]) -> None:
    files[ANSWER.replace("part-0", "part-1")] = files[ANSWER][:1]


def same_width(files: dict[str, Any]) -> None:
    files["Parish.parquet/DPQuery/part-0.parquet"] = files[COUNTY]


def other_axes(files: dict[str, Any]) -> None:
    labels = '{"format": "louver nmf 1", "axes": {"h1": {"labels": ["a", "b"], "binnings": {}}}}'
    described(labels)(files)


def twin_columns(files: dict[str, Any]) -> None:
    table = pa.Table.from_pylist(files[ANSWER])
    files[ANSWER] = table.append_column("value", table["value"])


def gap(files: dict[str, Any]) -> None:
    files[ANSWER][0]["value"] = [1, None]


def huge(files: dict[str, Any]) -> None:
    table = pa.Table.from_pylist(files[ANSWER])
    values = pa.array([[1 << 63, 1], [1, 1]], pa.list_(pa.uint64()))
    files[ANSWER] = table.set_column(table.column_names.index("value"), "value", values)


BAD: dict[str, Callable[[dict[str, Any]], None]] = {
    "truncated": replaced(ANSWER, b"PAR1 and no more"),
    "empty file": replaced(ANSWER, b""),
    "text in place of Parquet": replaced(COUNTY, b"geocode,value\n"),
    **{
        f"no {column}": without(ANSWER, column)
        for column in ("geocode", "query_name", "query_shape", "value", "variance")
    },
    "no sign": without(EXACT, "sign"),
    "no axis": without(ANSWER, "h1"),
    "another axis": all_rows(ANSWER, sex="*"),
    "twin columns": twin_columns,
    **{
        f"missing {column}": first(ANSWER, **{column: None})
        for column in ("geocode", "query_name", "h1", "query_shape", "value", "variance")
    },
    "missing sign": first(EXACT, sign=None),
    "a gap in the values": gap,
    "values too large for 64 bits": huge,
    "a value of 2^53": first(ANSWER, value=[1 << 53, 0]),
    "numbers as geocodes": all_rows(ANSWER, geocode=44),
    "numbers as query names": all_rows(ANSWER, query_name=3),
    "fractions as values": all_rows(ANSWER, value=[0.5, 1.5]),
    "one value, not a list": all_rows(ANSWER, value=3),
    "whole numbers as variances": all_rows(ANSWER, variance=3),
    "texts as variances": all_rows(ANSWER, variance="3"),
    "one shape, not a list": all_rows(ANSWER, query_shape=2),
    "too few values": first(ANSWER, value=[1]),
    "too many values": first(ANSWER, value=[1, 2, 3]),
    "no values": first(ANSWER, value=[]),
    "another shape": first(ANSWER, query_shape=[3]),
    "a shape of two axes": first(ANSWER, query_shape=[1, 2]),
    "an empty shape": first(ANSWER, query_shape=[]),
    "an unknown binning": all_rows(ANSWER, h1="halves"),
    "two binnings of one query": first(ANSWER, h1="h1"),
    "two binnings in two files": other_file,
    "two binnings at two levels": all_rows(COUNTY, h1="h1"),
    "a summed axis with two values": first(EXACT, h1="h1"),
    "negative variance": first(ANSWER, variance=-1.0),
    "a variance of zero": first(ANSWER, variance=0.0),
    "infinite variance": first(ANSWER, variance=float("inf")),
    "variance that is no number": first(ANSWER, variance=float("nan")),
    "a constraint with noise": first(EXACT, variance=1.0),
    "a constraint that is no number": first(EXACT, variance=float("nan")),
    "a negative constraint": first(EXACT, value=[-1]),
    "an unknown sign": all_rows(EXACT, sign="<"),
    "two signs": first(EXACT, sign="<="),
    "an upper bound below an exact value": both_bounds,
    "exact values that do not add up": first(COUNTY_EXACT, value=[25]),
    "an answer named as a constraint": first(ANSWER, query_name="detailed_con"),
    "a constraint named as an answer": first(EXACT, query_name="total_dpq"),
    "a name that is only an ending": first(ANSWER, query_name="_dpq"),
    "a foreign state": first(ANSWER, geocode="045" + BLOCKS[2][3:]),
    "another width": first(ANSWER, geocode=BLOCKS[2][:-1]),
    "another width in another file": first(EXACT, geocode=BLOCKS[0] + "1"),
    "a space in a geocode": first(ANSWER, geocode=BLOCKS[2][:-1] + " "),
    "a child without parent": first(EXACT, geocode="044100051" + BLOCKS[0][9:]),
    "a parent without child": replaced(COUNTY, lambda rows: [*rows, answer("044100051", [1, 1], 156.31)]),
    "a region twice": replaced(ANSWER, lambda rows: [*rows, rows[0]]),
    "a region twice in two files": twice_in_two_files,
    "two levels of one width": same_width,
    "axes of two kinds": other_axes,
    "a description that is no JSON": described("{"),
    "a description that is a list": described("[]"),
    "a description of another format": described('{"format": "louver nmf 2", "axes": {}}'),
    "a description without axes": described('{"format": "louver nmf 1"}'),
    "a description of other axes": described(
        '{"format": "louver nmf 1", "axes": {"sex": {"labels": [], "binnings": {}}}}'
    ),
    "a binning beyond the labels": described(
        '{"format": "louver nmf 1", "axes": {"h1": {"labels": ["a"], "binnings": {"x": [[0, 7]]}}}}'
    ),
    "a binning that counts twice": described(
        '{"format": "louver nmf 1", "axes": {"h1": {"labels": ["a"], "binnings": {"x": [[0], [0]]}}}}'
    ),
    "no rows at all": lambda files: (
        [files.update({name: pa.Table.from_pylist(files[name]).slice(0, 0)}) for name in files] and None
    ),
    "no folders": lambda files: files.clear(),
}


def test_there_are_at_least_fifty_bad_inputs() -> None:
    assert len(BAD) >= 50


@pytest.mark.parametrize("spoil", BAD.values(), ids=BAD.keys())
def test_bad_input_is_refused_in_one_sentence(
    tmp_path: Path, spoil: Callable[[dict[str, Any]], None]
) -> None:
    files: dict[str, Any] = units()
    spoil(files)
    root = tmp_path / "units"
    root.mkdir()
    with pytest.raises(InputError) as raised:
        read_published(write(root, files))
    message = str(raised.value)
    assert message.endswith(".") and "\n" not in message and raised.value.file
    assert not any(block in message for block in BLOCKS)


def test_a_folder_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="not a folder"):
        read_published(tmp_path / "none")
