"""Columns that determine others: tables by either are protected together, as readers know which district lies in which region."""

from __future__ import annotations

import csv
from itertools import product
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from scipy.optimize import Bounds, LinearConstraint, milp

import louver as lv
from louver.errors import InputError

FEW = {"rule": "frequency", "minimum": 3}
DISTRICTS = [f"d{n}" for n in range(8)]
STATUS = ["in work", "out of work"]
REGION = {district: f"r{n % 3}" for n, district in enumerate(DISTRICTS)}


def people(seed: int) -> pa.Table:
    random = np.random.default_rng(seed)
    district = random.choice(DISTRICTS, 120, p=[0.3, 0.2, 0.15, 0.1, 0.1, 0.08, 0.05, 0.02]).tolist()
    status = random.choice(STATUS, 120, p=[0.85, 0.15]).tolist()
    return pa.table({"district": district, "region": [REGION[one] for one in district], "status": status})


def lines(path: Path) -> dict[tuple[str, ...], int | None]:
    """Labels of each published line -> its number, None where it is hidden."""
    with path.open(newline="") as file:
        return {
            (first, status): int(number) if number else None
            for first, status, number, *_ in list(csv.reader(file))[1:]
        }


def largest(folder: Path) -> dict[tuple[str, ...], int]:
    """The largest count that a reader of both tables, who knows the districts of each region, thinks possible of each hidden cell."""
    cells = list(product(DISTRICTS, STATUS))
    rows, low, high, wanted = [], [], [], {}
    for path in sorted((folder / "data").glob("*.csv")):
        for (place, status), number in lines(path).items():
            row = [
                float(place in ("Total", own, REGION[own]) and status in ("Total", one)) for own, one in cells
            ]
            rows.append(row)
            low.append(1 if number is None else number)
            high.append(np.inf if number is None else number)
            if number is None:
                wanted[place, status] = row
    shown = lines(sorted((folder / "data").glob("*.csv"))[0])
    empty = [0 if (district, status) not in shown else np.inf for district, status in cells]
    found = {}
    for label, row in wanted.items():
        best = milp(
            -np.array(row),
            constraints=LinearConstraint(np.array(rows), low, high),
            bounds=Bounds(0, np.minimum(empty, 1_000)),
            integrality=np.ones(len(cells)),
        )
        assert best.success
        found[label] = round(-best.fun)
    return found


TABLES = [
    {"name": "districts", "by": ["district", "status"]},
    {"name": "regions", "by": ["region", "status"]},
]


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_readers_who_know_the_districts_of_a_region_find_no_small_count(seed: int, tmp_path: Path) -> None:
    out = tmp_path / "out"
    found = lv.protect(people(seed), tables=TABLES, rules=[FEW], out=out)
    assert found.question.linked == (("district", "region"),) and found.verdict.level == "ok"
    hidden = largest(out)
    assert hidden and min(hidden.values()) >= 3
    assert lv.verify(out).passed


def test_names_of_codes_are_those_codes(tmp_path: Path) -> None:
    """Each table hid another cell beside the primary one, and showed the other's."""
    codes = ["c1"] * 8 + ["c2"] + ["c3"] * 9 + ["c4"] * 6 + ["c5"] * 7
    names = {"c1": "n4", "c2": "n2", "c3": "n5", "c4": "n3", "c5": "n1"}
    records = pa.table(
        {"code": codes, "name": [names[code] for code in codes], "turnover": [*range(10, 10 + len(codes))]}
    )
    tables = [{"name": by, "by": [by], "value": "turnover"} for by in ("code", "name")]
    status = [
        {"table": "code", "cell": {"code": "c4"}, "set": "cost", "cost": 0.1, "reason": "cheap"},
        {"table": "name", "cell": {"name": "n4"}, "set": "cost", "cost": 0.1, "reason": "cheap"},
    ]
    found = lv.protect(records, tables=tables, rules=[FEW], status=status, minimise="cost")
    assert found.summary.cells == 6 and found.summary.primary == 1
    hidden = [{names.get(label, label) for label in cell.cell.values()} for cell in found.cells]
    of_codes, of_names = (
        [own for own, cell in zip(hidden, found.cells, strict=True) if cell.table == name]
        for name in ("code", "name")
    )
    assert sorted(map(sorted, of_codes)) == sorted(map(sorted, of_names))


def test_what_a_table_is_by_both_is_a_doubt() -> None:
    tables = [*TABLES, {"name": "both", "by": ["district", "region"]}]
    found = lv.protect(people(0), tables=tables, rules=[FEW])
    assert found.question.linked == () and found.question.dependent == (("district", "region"),)
    assert found.verdict.level != "ok"


def test_tables_of_an_earlier_release_are_linked_too(tmp_path: Path) -> None:
    file, register = tmp_path / "people.csv", tmp_path / "register"
    with file.open("w", newline="") as out:
        writer = csv.writer(out)
        writer.writerow(people(0).column_names)
        writer.writerows(zip(*people(0).to_pydict().values(), strict=True))
    lv.protect(file, tables=TABLES[:1], rules=[FEW], registry=register, out=tmp_path / "first")
    found = lv.protect(file, tables=TABLES[1:], rules=[FEW], registry=register, out=tmp_path / "second")
    assert found.question.linked == (("district", "region"),)
    if found.published is not None:
        both = tmp_path / "both" / "data"
        both.mkdir(parents=True)
        for number, folder in enumerate(("first", "second")):
            path = next((tmp_path / folder / "data").glob("*.csv"))
            (both / f"{number}.csv").write_text(path.read_text())
        assert min(largest(both.parent).values()) >= 3


def test_the_same_numbers_under_two_names_are_refused(tmp_path: Path) -> None:
    tables = [{"name": name, "by": ["status"], "variable": name} for name in ("people", "persons")]
    with pytest.raises(InputError, match="have the same numbers of the records under two names"):
        lv.protect(people(0), tables=tables, rules=[FEW])


def test_nor_may_a_later_release_name_them_otherwise(tmp_path: Path) -> None:
    file = tmp_path / "firms.csv"
    file.write_text("trade,turnover\n" + "".join(f"t{n % 4},{n}\n" for n in range(1, 30)))
    table = {"name": "t", "by": ["trade"], "value": "turnover"}
    register = tmp_path / "register"
    lv.protect(file, tables=[table], rules=[FEW], registry=register, out=tmp_path / "first")
    with pytest.raises(InputError, match='has the same numbers of the records under the name "turnover"'):
        lv.protect(file, tables=[{**table, "variable": "sales"}], rules=[FEW], registry=register)


def test_a_rule_with_few_exceptions_is_a_doubt() -> None:
    """Readers may take it for a rule, and are then off by the exceptions alone."""
    data = people(3)
    region = data["region"].to_pylist()
    tables = [{"name": one, "by": [one, "status"]} for one in ("district", "region")]
    assert lv.protect(data, tables=tables, rules=[FEW]).verdict.level == "ok"
    for exceptions in (1, 3):
        moved = [f"r{(int(one[1]) + 1) % 3}" if n < exceptions else one for n, one in enumerate(region)]
        untidy = data.set_column(1, "region", pa.array(moved))
        found = lv.protect(untidy, tables=tables, rules=[FEW])
        assert found.question.near == (("district", "region"),) and found.verdict.level == "care"
        assert any("who assume this rule" in reason for reason in found.verdict.reasons)
    both = [{"name": "both", "by": ["district", "region"]}]
    assert lv.protect(untidy, tables=both, rules=[FEW]).question.near == ()
    shuffled = data.set_column(1, "region", pa.array(np.random.default_rng(1).permutation(region)))
    assert lv.protect(shuffled, tables=tables, rules=[FEW]).question.near == ()
