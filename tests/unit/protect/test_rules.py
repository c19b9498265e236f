"""Which cells are primary, and how wide their ranges are, by the formulas of the handbook."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import louver as lv
from louver.errors import InputError
from louver.protect.load import Cell, _expanded
from louver.protect.options import RuleOptions
from louver.protect.rules import _hit
from unit.protect.spec import FEW, LINES, protect, write


def cell(value: int, *largest: float, frequency: int = 9, **more: Any) -> Cell:
    return Cell(value=value, decimals=0, measured="x", frequency=frequency, largest=tuple(largest), **more)


@pytest.mark.parametrize(
    ("rule", "one", "expected"),
    [
        # p %: 10 % of 800 is 80, the rest is 1000 - 800 - 150 = 50: primary, 30 are missing.
        ({"rule": "p-percent", "p": 10.0}, cell(1000, 800, 150), (30, 30)),
        ({"rule": "p-percent", "p": 6.0}, cell(1000, 800, 150), None),
        ({"rule": "p-percent", "p": 10.0}, cell(800, 800, frequency=1), (80, 80)),
        # p-q: (p / q) 800 = 100 against a rest of 50.
        ({"rule": "p-q", "p": 10.0, "q": 80.0}, cell(1000, 800, 150), (50, 50)),
        ({"rule": "p-q", "p": 5.0, "q": 80.0}, cell(1000, 800, 150), None),
        # (2, 90): 950 * 100 / 90 - 1000 = 55.6.
        ({"rule": "dominance", "n": 2, "k": 90.0}, cell(1000, 800, 150), (56, 56)),
        ({"rule": "dominance", "n": 1, "k": 80.0}, cell(1000, 800, 150), None),
        ({"rule": "dominance", "n": 1, "k": 70.0, "range": 20.0}, cell(1000, 800, 150), (200, 200)),
        ({"rule": "frequency", "minimum": 3}, cell(1000, frequency=2), (100, 100)),
        ({"rule": "frequency", "minimum": 3, "range": 15.0}, cell(3, frequency=2), (1, 1)),
        ({"rule": "frequency", "minimum": 3}, cell(0, frequency=1), (1, 0)),
        ({"rule": "frequency", "minimum": 3}, cell(1000, frequency=3), None),
        ({"rule": "frequency", "minimum": 3}, cell(0, frequency=0), None),
        ({"rule": "frequency", "minimum": 5}, cell(2, frequency=2, is_count=True), (3, 0)),
        ({"rule": "frequency", "minimum": 3, "range": 50.0}, cell(40, frequency=2, is_count=True), (20, 0)),
        ({"rule": "zero", "up": 12.5}, cell(0, 0.0, frequency=4), (13, 0)),
        ({"rule": "zero", "up": 12.5}, cell(0, frequency=0), None),
        ({"rule": "zero", "up": 12.5}, cell(7, 7, frequency=4), None),
        ({"rule": "zero", "up": 2.0}, cell(0, 0.0, frequency=4, is_negative=True), (2, 2)),
        ({"rule": "zero", "up": 2.0}, cell(0, 5, 5, frequency=4, is_negative=True), None),
        # Negative contributions count by their size.
        ({"rule": "dominance", "n": 1, "k": 50.0}, cell(-10, 90, 80, is_negative=True), (10, 10)),
        ({"rule": "frequency", "minimum": 3}, cell(-200, frequency=2, is_negative=True), (20, 20)),
    ],
)
def test_ranges(rule: dict[str, Any], one: Cell, expected: tuple[int, int] | None) -> None:
    found = _hit(one, RuleOptions(**rule))
    assert (None if found is None else (found.up, found.down)) == expected


def test_weights_stand_for_as_many_contributors() -> None:
    """A firm of 100 with weight 2.5 stands for two firms of 100 and half of one."""
    assert _expanded([(250, 100.0, 250.0), (60, 60.0, 60.0)]) == pytest.approx(
        (100, 100, 0.5 * 100 + 0.5 * 60, 30)
    )
    assert _expanded([(0, 0.0, 0.0)]) == (0.0,)


def test_a_weighted_sample_and_holdings() -> None:
    firms = pa.table(
        {
            "trade": ["a", "a", "a", "b", "b", "b", "c", "c", "c"],
            "turnover": [10, 20, 30, 40, 50, 60, 30, 50, 55],
            "owner": ["x", "x", None, "y", "y", "z", None, None, None],
            "w": [1.0, 1.5, 1.0, 1, 1, 1, 1, 1, 1],
        }
    )
    table = {"name": "t", "by": ["trade"], "value": "turnover"}
    few = lv.protect(firms, tables=[table], rules=[FEW])
    assert few.summary.primary == 0
    owned = lv.protect(firms, tables=[table], rules=[FEW], holding="owner", sampling_weight="w")
    assert {cell.cell["trade"] for cell in owned.cells if cell.kind == "primary"} == {"a", "b"}
    assert owned.is_protected
    [a] = [cell for cell in owned.cells if cell.cell["trade"] == "a"]
    assert a.value == "70"  # 10 + 1.5 * 20 + 30


def test_decisions_by_hand_and_in_a_file(tmp_path: Path) -> None:
    write(tmp_path, [line.replace("iron,small,5,120,40,30,,", "iron,small,5,120,40,30,u,") for line in LINES])
    decided = [
        {"table": "firms", "cell": {"trade": "food", "size": "small"}, "set": "publish", "reason": "consent"},
        {
            "table": "firms",
            "cell": {"trade": "wood", "size": "large"},
            "set": "hide",
            "reason": "asked",
            "range": 50.0,
        },
        {
            "table": "firms",
            "cell": {"trade": "wood", "size": "small"},
            "set": "cost",
            "cost": 9.0,
            "reason": "in use",
        },
    ]
    found = protect(tmp_path, table={"status": "status"}, status=decided)
    kinds = {tuple(cell.cell.values()): cell for cell in found.cells}
    assert ("food", "small") not in kinds
    assert kinds["wood", "large"].reasons == ("decided: asked",)
    assert kinds["iron", "small"].reasons == ("decided: status in the file",)
    assert ("firms", "food, small", "publish: consent (although fewer than 3 contributors)") in found.decided
    assert found.verdict.level == "care" and "Published by decision" in str(found.verdict)
    assert ("wood", "small") not in kinds and found.is_protected


def test_who_asked_is_protected_beyond_a_share() -> None:
    """A firm of 60 in 100 asked; one of 80 in 100 did not; a holding has asked if one of its records has."""
    records = pa.table(
        {
            "trade": ["a", "a", "b", "b", "c", "c", "c", "d", "d"],
            "owner": ["1", "2", "3", "4", "5", "5", "6", "7", "8"],
            "asked": ["yes", "no", None, "1", "0", "1", "0", "1", "no"],
            "turnover": [60, 40, 80, 20, 30, 25, 45, 50, 50],
        }
    )
    found = lv.protect(
        records,
        tables=[{"name": "t", "by": ["trade"], "value": "turnover"}],
        rules=[{"rule": "request", "k": 50.0}],
        request="asked",
        holding="owner",
        attackers="outsider",
    )
    assert {cell.cell["trade"] for cell in found.cells if cell.kind == "primary"} == {"a", "c"}
    assert "a contributor who requested protection has more than 50 %" in found.cells[0].reasons
    with pytest.raises(InputError, match="is neither yes nor no") as error:
        lv.protect(
            records.set_column(2, "asked", pa.array(["?"] + ["no"] * 8)),
            tables=[{"name": "t", "by": ["trade"], "value": "turnover"}],
            rules=[{"rule": "request", "k": 50.0}],
            request="asked",
        )
    assert error.value.column == "asked" and error.value.row == 1
