"""The verb: linked cells, attackers, what it proves and what it says."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from scipy.sparse import csr_array

import louver as lv
from louver.errors import Cancelled, InfeasibleError, InputError
from louver.protect.build import build_problem
from louver.protect.load import load
from louver.protect.options import ProtectOptions
from louver.protect.rules import judge_cells
from louver.protect.solve import _repaired, solve
from louver.run import Run
from louver.schema.request import ask
from louver.tables.hiding.certify import certify
from louver.tables.hiding.hide import hide
from louver.tables.hiding.outsider import Witness
from louver.tables.hiding.problem import Attacker, Demand, PatternProblem
from unit.protect.spec import FEW, LINES, TABLE, protect, write

NOTHING = np.zeros(0, dtype=np.int64)


def hidden(found: object) -> set[tuple[str, ...]]:
    return {tuple(cell.cell.values()) for cell in found.cells}  # type: ignore[attr-defined]


def test_one_small_cell_takes_three_more(tmp_path: Path) -> None:
    write(tmp_path)
    found = protect(tmp_path, attackers="outsider")
    assert (found.summary.primary, found.summary.secondary) == (1, 3) and found.summary.optimal
    assert found.verdict.level == "ok" and "no pattern is cheaper" in str(found.verdict)
    assert "Contributors who know their own part were not considered." in found.verdict.reasons
    by_value = protect(tmp_path, attackers="outsider", minimise="value")
    assert by_value.summary.cost == by_value.summary.bound == 400 + 130 + 500
    by_cost = protect(tmp_path, attackers="outsider", minimise="cost", table={"cost": "cost"})
    assert by_cost.summary.cost == 3


def test_the_same_input_gives_the_same_pattern(tmp_path: Path) -> None:
    write(tmp_path)
    first, second = protect(tmp_path), protect(tmp_path)
    assert first.to_dict()["cells"] == second.to_dict()["cells"]
    assert first.summary == second.summary


def test_steps_and_seconds_end_the_search(tmp_path: Path) -> None:
    write(tmp_path)
    for limit in ({"steps": 0}, {"seconds": 1e-9}):
        found = protect(tmp_path, **limit)
        assert found.is_protected and found.summary.rounds == 0 and found.summary.bound == 0
        assert "how much a better pattern could save was not determined" in str(found.verdict)


def test_contributors_who_are_alone_see_through_each_other(tmp_path: Path) -> None:
    """Two single firms in a row with the total shown: each subtracts himself, an outsider cannot."""
    lines = ["a,1,40,40", "b,1,60,60", "c,9,900,200", "d,9,800,200", "Total,20,1800,200"]
    write(tmp_path, lines, head="trade,n,turnover,first\n")
    table = {"by": ["trade"], "largest": ["first"]}
    alone = protect(tmp_path, table=table, attackers="outsider")
    assert hidden(alone) == {("a",), ("b",)}
    both = protect(tmp_path, table=table)
    assert both.summary.secondary == 1 and both.summary.attackers == 3


def test_one_of_two_contributors_subtracts_himself(tmp_path: Path) -> None:
    """In a cell of 95 + 5 the larger firm knows that the number is at least 95: not even everything hidden moves it below."""
    lines = ["a,2,100,95", "b,9,900,200", "c,9,800,200", "Total,20,1800,200"]
    write(tmp_path, lines, head="trade,n,turnover,first\n")
    found = protect(tmp_path, table={"by": ["trade"], "largest": ["first"]})
    assert found.is_protected and found.summary.attackers == 3
    _, problem = posed(tmp_path, {"by": ["trade"], "largest": ["first"]})
    needs = {(d.attacker, d.sign): d.need for d in problem.demands}
    assert needs == {(0, 1): 10, (0, -1): 10, (1, 1): 10, (1, -1): 5, (2, 1): 10, (2, -1): 10}
    unknown = protect(tmp_path, table={"by": ["trade"], "largest": []})
    assert unknown.verdict.level == "care" and unknown.question.unknown_pairs == 1


def posed(folder: Path, table: dict, **more: object) -> tuple[object, PatternProblem]:
    given = {"tables": [{**TABLE, "file": str(folder / "firms.csv"), **table}], "rules": [FEW], **more}
    request = ask(ProtectOptions, None, None, given)
    loaded = load(request.options, None, request.source.opening(), Path(), Run())
    return loaded, build_problem(request.options, loaded, judge_cells(request.options, loaded))


@pytest.mark.parametrize(("number", "cells"), [(40, [1, 1, 2]), (400_000, [2]), (0, [1, 1])])
def test_cells_with_the_same_number_may_have_the_same_contributor(
    tmp_path: Path, number: int, cells: list[int]
) -> None:
    """A firm alone in a trade and a firm alone in a size, both of 40: asked about as one, and as two; of 400000, as one."""
    write(tmp_path, [f"a,1,{number}", "b,9,900000", f"Total,10,{900000 + number}"], head="trade,n,turnover\n")
    write(
        tmp_path,
        [f"s,1,{number}", "t,9,900000", f"Total,10,{900000 + number}"],
        "sizes.csv",
        "size,n,turnover\n",
    )
    tables = [
        {"name": by, "by": [by], "file": str(tmp_path / file), "value": "turnover", "frequency": "n"}
        for by, file in (("trade", "firms.csv"), ("size", "sizes.csv"))
    ]
    request = ask(ProtectOptions, None, None, {"tables": tables, "rules": [FEW]})
    loaded = load(request.options, None, request.source.opening(), Path(), Run())
    assert sorted(len(one.alone) for one in loaded.contributors) == cells
    assert solve(request.options, loaded, Run()).open_cells == {}


def test_codes_with_the_same_leaves_are_one_cell(tmp_path: Path) -> None:
    """A code with a single part is its part; a coarser attribute shares the cells of the finer one."""
    (tmp_path / "trade.hrc").write_text("soft\n@food\n@wood\nhard\n@iron\n")
    records = pa.table(
        {
            "trade": ["food"] * 3 + ["wood"] * 3 + ["iron"],
            "sector": ["soft"] * 6 + ["hard"],
            "turnover": [5, 6, 7, 8, 9, 10, 11],
        }
    )
    tables = [{"name": by, "by": [by], "value": "turnover"} for by in ("trade", "sector")]
    codes = {"trade": {"hierarchy": str(tmp_path / "trade.hrc")}}
    known = lv.protect(records, tables=tables, codes=codes, rules=[FEW])
    assert known.question.linked == (("trade", "sector"),) and known.verdict.level == "ok"
    linked = lv.protect(records, tables=tables, codes={**codes, "sector": {"of": "trade"}}, rules=[FEW])
    assert linked.summary.cells == 5 and linked.verdict.level == "ok"
    # hard, iron and the sector hard are one primary cell.
    assert linked.summary.primary == 1 and len([c for c in linked.cells if c.kind == "primary"]) == 3


def test_a_sum_and_a_count_of_one_name_are_two_quantities() -> None:
    records = pa.table({"trade": ["a", "a", "b"], "count": [5, 6, 7]})
    tables = [{"name": "sums", "by": ["trade"], "value": "count"}, {"name": "firms", "by": ["trade"]}]
    found = lv.protect(records, tables=tables, rules=[{"rule": "frequency", "minimum": 2}])
    assert found.summary.cells == 6 and found.is_protected


def test_records_that_contradict_their_codes() -> None:
    """A sector that is said to be made of industries, and a record of another industry."""
    records = pa.table({"trade": ["a", "b", "b"], "sector": ["a", "a", "b"], "turnover": [5, 6, 7]})
    tables = [{"name": by, "by": [by], "value": "turnover"} for by in ("trade", "sector")]
    with pytest.raises(
        InputError, match='"sector": a cell of the records differs in its number from table "trade"'
    ):
        lv.protect(records, tables=tables, rules=[FEW], codes={"trade": {}, "sector": {"of": "trade"}})


def test_several_hierarchies_over_the_same_codes(tmp_path: Path) -> None:
    (tmp_path / "a.hrc").write_text("soft\n@food\n@wood\nhard\n@iron\n@steel\n")
    (tmp_path / "b.hrc").write_text("old\n@food\n@iron\nnew\n@wood\n@steel\n")
    trades = ["food", "wood", "iron", "steel"]
    records = pa.table({"trade": [t for t in trades for _ in range(3)][2:], "turnover": range(10, 110, 10)})
    codes = {"trade": {"hierarchy": [str(tmp_path / "a.hrc"), str(tmp_path / "b.hrc")]}}
    found = lv.protect(records, tables=[{"name": "t", "by": ["trade"], "value": "turnover"}], codes=codes, rules=[{"rule": "frequency", "minimum": 2}], attackers="outsider")  # fmt: skip
    assert found.summary.cells == 9 and found.is_protected
    # One hierarchy alone would be satisfied with food and wood.
    assert found.summary.secondary >= 2


def test_tables_in_a_circle_are_said_to_be(tmp_path: Path) -> None:
    records = pa.table({name: ["x", "x", "y"] * 3 for name in "abc"} | {"v": range(1, 10)})
    tables = [{"name": "".join(by), "by": list(by), "value": "v"} for by in ("ab", "bc", "ca")]
    found = lv.protect(records, tables=tables, rules=[{"rule": "frequency", "minimum": 2}])
    assert found.question.is_circle and found.verdict.level == "care"
    assert (
        found.verdict.sentence == "Nothing needs to be hidden, as far as checked; read what was not checked."
    )


def test_what_cannot_be_protected_is_not_called_so_and_not_written(tmp_path: Path) -> None:
    write(tmp_path)
    kept = [
        {"table": "firms", "cell": {"trade": trade, "size": size}, "set": "publish", "reason": "law"}
        for trade, size in (("food", "large"), ("food", "Total"))
    ]
    found = protect(tmp_path, status=kept, out=tmp_path / "out")
    assert not found.is_protected and found.published is None and not (tmp_path / "out").exists()
    assert found.verdict.level == "stop" and "1 primary cell" in str(found.verdict)
    assert [tuple(cell.cell.values()) for cell in found.unprotected()] == [("food", "small")]


def test_what_readers_know_beforehand(tmp_path: Path) -> None:
    write(tmp_path)
    wide = protect(tmp_path, known_percent=50.0, attackers="outsider")
    assert wide.is_protected and "to within 50 % beforehand" in str(wide.verdict)
    narrow = protect(tmp_path, known_percent=5.0, attackers="outsider")
    assert not narrow.is_protected  # anyone who knows 5 % before cannot be kept from 10 %


def test_negative_numbers(tmp_path: Path) -> None:
    lines = [line.replace("food,large,9,400,90,60", "food,large,9,-400,,").replace("food,Total,10,450,90,60", "food,Total,10,-350,,") for line in LINES]  # fmt: skip
    lines = [line.replace("Total,large,19,1500", "Total,large,19,700").replace("Total,Total,32,1800", "Total,Total,32,1000") for line in lines]  # fmt: skip
    write(tmp_path, lines)
    found = protect(tmp_path, table={"negative": True, "largest": []})
    assert found.is_protected and found.summary.secondary == 3


def halves(room: int) -> PatternProblem:
    """Hidden x, y, z and w with x + y, y + z and x + z + w + v shown: w moves by 1 where the others move by halves."""
    x, y, z, w, v, xy, yz, rest = range(8)
    matrix = np.zeros((3, 8), dtype=np.int8)
    for row, (total, parts) in enumerate(((xy, (x, y)), (yz, (y, z)), (rest, (x, z, w, v)))):
        matrix[row, total] = 1
        matrix[row, list(parts)] = -1
    up = np.full(8, 5)
    up[w] = room
    return PatternProblem(
        values=np.array([5, 5, 5, 5, 5, 10, 10, 20]),
        sums=csr_array(matrix),
        must_hide=np.arange(8) < 4,
        may_hide=np.arange(8) == v,
        cost=(np.arange(8) == v).astype(float),
        down=np.full(8, 5),
        up=up,
        attackers=(Attacker("an outsider", NOTHING, NOTHING, NOTHING),),
        demands=(Demand(w, 1, 1, 0),),
    )


@pytest.mark.parametrize(("room", "more"), [(5, 0), (1, 1)])
def test_a_witness_in_halves_is_mended_or_costs_a_cell(room: int, more: int) -> None:
    problem = halves(room)
    found = hide(problem, Run(), steps=5)
    assert found.cost == 0 and found.witnesses[0] is not None
    proof = certify(problem, found.hidden, found.witnesses, Run())
    assert len(proof.missing) == more
    repaired = _repaired(problem, found, proof, Run())
    assert repaired.cost == more and repaired.is_optimal == (not more)
    assert certify(problem, repaired.hidden, repaired.witnesses, Run()).missing == []


def test_a_false_witness_is_not_believed(tmp_path: Path) -> None:
    write(tmp_path)
    _, problem = posed(tmp_path, {}, attackers="outsider")
    found = hide(problem, Run(), steps=0)
    demand = problem.demands[0]
    nothing = np.zeros(problem.n_cells, dtype=np.int64)
    assert problem.broken(demand, found.hidden, nothing) == "the cell does not move far enough"
    one = nothing.copy()
    one[demand.cell] = demand.need
    assert problem.broken(demand, found.hidden, one) == "a sum does not hold"
    assert problem.broken(demand, ~found.hidden, one) == "it changes a shown cell"
    assert problem.broken(demand, found.hidden, one * -100) == "a sum does not hold"
    assert problem.broken(demand, found.hidden, one << 50) == "it is too large for exact arithmetic"
    cells, change = certify(problem, found.hidden, found.witnesses, Run()).changes[1]
    far = nothing.copy()
    far[cells] = change * 100
    assert problem.broken(problem.demands[1], found.hidden, far) == "it contradicts what every reader knows"
    knowing = replace(
        problem,
        attackers=(Attacker("a contributor", cells[:1], np.zeros(1, np.int64), np.zeros(1, np.int64)),),
    )
    far[cells] = change
    assert knowing.broken(problem.demands[1], found.hidden, far) == "it contradicts what the attacker knows"
    lies = [Witness(np.array([demand.cell]), np.array([float(demand.need)])), None]
    assert certify(problem, problem.must_hide, lies, Run()).missing == [0, 1]


def test_it_can_be_stopped(tmp_path: Path) -> None:
    write(tmp_path)
    run = Run()
    run.cancel()
    with pytest.raises(Cancelled):
        protect(tmp_path, run=run, out=tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_the_result_says_what_it_is(tmp_path: Path) -> None:
    write(tmp_path)
    found = protect(tmp_path)
    told = json.loads(found.to_json())
    assert told["summary"]["certified"] == told["summary"]["demands"] and "value" not in told["cells"][0]
    assert found.to_frame().num_rows == len(found.cells) == 4
    assert len(repr(found).splitlines()) <= 10 and "proved best" in repr(found)
    assert "<table" in found._repr_html_()
    assert found.tables[0].hidden_share == pytest.approx(sum(int(c.value) for c in found.cells) / 1800)


def test_what_cannot_be_rounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path)
    with pytest.raises(InputError, match="a table has a base"):
        protect(tmp_path, table={"base": 5})
    kept = [{"table": "firms", "cell": {"trade": "wood", "size": "small"}, "set": "publish", "reason": "law"}]
    with pytest.raises(InputError, match="changes every number"):
        protect(tmp_path, method="round", status=kept)
    both = [
        {**TABLE, "file": str(tmp_path / "firms.csv"), "base": 5},
        {**TABLE, "name": "again", "file": str(tmp_path / "firms.csv"), "base": 10},
    ]
    with pytest.raises(InputError, match='"again" has a different base'):
        lv.protect(tables=both, rules=[FEW], method="round")
    monkeypatch.setattr("louver.protect.round._Model.linear", lambda self, beyond: None)
    monkeypatch.setattr("louver.protect.round.WIDER", (0,))
    monkeypatch.setattr("louver.protect.round._Model.whole", lambda self, *rest: (None, True))
    with pytest.raises(InfeasibleError, match="choose another base"):
        protect(tmp_path, method="round")


def test_a_given_pattern_is_judged_as_it_is(tmp_path: Path) -> None:
    """Of the four cells of a rectangle one is primary; without one of the other three nothing is protected."""
    letters = {0: "u", 1: "m", 6: "m", 7: "x"}
    for left_out in (None, 7):
        lines = [
            line.replace(",,1", f",{letters[n] if n in letters and n != left_out else ''},1")
            for n, line in enumerate(LINES)
        ]
        write(tmp_path, lines)
        given = {"table": {"status": "status"}, "given_pattern": True, "attackers": "outsider"}
        found = protect(tmp_path, **given)
        assert found.is_protected == (left_out is None) and found.summary.secondary == 3 - (
            left_out is not None
        )
        assert found.verdict.level == ("ok" if left_out is None else "stop")
        assert hidden(found) == {tuple(LINES[n].split(",")[:2]) for n in letters if n != left_out}
        assert not found.summary.optimal and found.summary.bound == 0
    found = protect(tmp_path, table={"status": "status"}, attackers="outsider")
    assert (
        found.is_protected and found.summary.primary == 3
    )  # elsewhere a letter is a decision with a range of its own


def test_a_primary_cell_that_a_given_pattern_shows_is_named(tmp_path: Path) -> None:
    write(tmp_path, [line.replace(",,1", ",m,1") if n == 4 else line for n, line in enumerate(LINES)])
    found = protect(tmp_path, table={"status": "status"}, given_pattern=True)
    named = [cell for cell in found.cells if not cell.is_protected]
    assert [cell.kind for cell in named] == ["primary"] and named[0].cell == {
        "trade": "food",
        "size": "small",
    }
    assert found.summary.secondary == 1 and not found.is_protected
