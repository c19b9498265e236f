"""The verb on cases that output checkers know: differencing, other bands, linked tables with hidden cells."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pytest

import louver as lv
from louver.audit.result import Advice, JointAudit
from louver.errors import Cancelled, InfeasibleError, InputError
from louver.report.audit import audit_report
from louver.run import Run


@pytest.fixture
def people():
    """Two towns, four ages, ill or not; 3 ill people of 40-44 in town B."""
    rows = []
    for town, ages in {"A": [30, 35, 40, 45], "B": [30, 35, 40, 45]}.items():
        for place, age in enumerate(ages):
            rows += [
                (town, age, "n", 10 + 3 * place),
                (town, age, "y", 8 + place if town == "A" else 3 + place % 2),
            ]
    town, age, ill, count = zip(*rows, strict=True)
    return pa.table({"town": town, "age": [str(a) for a in age], "ill": ill, "count": count})


def cells_of(found: JointAudit):
    return {tuple(cell.cell.values()): cell for cell in found.cells}


def followed(table, how):
    """What a table of the options becomes by an advice in words."""
    if how.startswith("without "):
        return {"by": [name for name in table["by"] if name != how.removeprefix("without ")]}
    name, groups = how.removeprefix("with ").split(" merged: ")
    return {"recode": {name: {group: group.split(" and ") for group in groups.split("; ")}}}


def test_categories_are_merged_only_as_far_as_needed():
    """Two small categories side by side: merged they are safe, and the others stay."""
    people = pa.table({"age": list("ABCDE"), "count": [40, 30, 2, 3, 50]})
    spec = {"attributes": {"age": {"kind": "ordered", "labels": list("ABCDE")}}}
    table = {"name": "t", "by": ["age"]}
    found = lv.audit(people, weight="count", spec=spec, tables=[table])
    assert found.advice.coarsen == (("t", "with age merged: C and D"),) and not found.advice.leave_out
    again = lv.audit(
        people, weight="count", spec=spec, tables=[{**table, **followed(table, "with age merged: C and D")}]
    )
    assert again.summary.small_exact == 0


def test_a_recode_that_a_table_has_is_merged_further():
    """3 and 4-5 are 4 people together, which is still a small count."""
    people = pa.table({"age": ["1", "2", "3", "4", "5", "6"], "count": [40, 30, 1, 2, 1, 50]})
    spec = {"attributes": {"age": {"kind": "integer"}}}
    table = {"name": "t", "by": ["age"], "recode": {"age": {"bins": [3, 4, 6]}}}
    found = lv.audit(people, weight="count", spec=spec, tables=[table])
    assert found.advice.coarsen == (("t", "with age merged: 3 and 4-5 and 6+"),)
    more = lv.audit(people, weight="count", spec=spec, tables=[table], small=4)
    assert more.advice.coarsen == (("t", "with age merged: 3 and 4-5"),)


def test_a_missing_value_stays_by_itself():
    people = pa.table({"age": ["A", "B", "C", None], "count": [40, 2, 3, 1]})
    spec = {"attributes": {"age": {"labels": ["A", "B", "C", "?"], "missing": "?"}}}
    found = lv.audit(people, weight="count", spec=spec, tables=[{"name": "t", "by": ["age"]}])
    assert found.advice.leave_out == ("t",) and not found.advice.coarsen


def test_the_same_table_with_and_without_a_group_gives_the_group_away(people):
    everyone = {"name": "everyone", "by": ["age", "ill"]}
    a_only = {"name": "town A", "by": ["age", "ill"], "where": {"town": "A"}}
    target = {"by": ["age", "ill"], "where": {"town": "B"}}
    found = lv.audit(people, weight="count", tables=[everyone, a_only], targets=[target])
    cell = cells_of(found)["30", "y"]
    assert (cell.lower, cell.upper, cell.status, cell.certified) == (3, 3, "exact", True)
    assert cell.because == ("everyone", "town A") and cell.is_smallest
    assert cell.words == '"everyone" minus "town A" leaves 3 people.'
    assert found.advice is not None and found.advice.is_safe and found.advice.is_least
    assert len(found.advice.leave_out) + len(found.advice.coarsen) == 1
    kept = [t for t in (everyone, a_only) if t["name"] not in found.advice.leave_out]
    for name, how in found.advice.coarsen:
        kept = [t for t in kept if t["name"] != name]
        whole = next(t for t in (everyone, a_only) if t["name"] == name)
        kept.append({**whole, **followed(whole, how)})
    again = lv.audit(people, weight="count", tables=kept, targets=[target])
    assert again.summary.small_exact == 0


def test_overlapping_bands_of_one_attribute_isolate_the_ages_between(people):
    first = {
        "name": "wide",
        "by": ["age", "town", "ill"],
        "recode": {"age": {"young": ["30", "35"], "old": ["40", "45"]}},
    }
    second = {
        "name": "shifted",
        "by": ["age", "town", "ill"],
        "recode": {"age": {"first": ["30"], "rest": ["35", "40", "45"]}},
    }
    found = lv.audit(people, weight="count", tables=[first, second], targets=[{"by": ["age", "town", "ill"]}])
    cell = cells_of(found)["35", "B", "y"]
    assert (cell.lower, cell.upper) == (4, 4)
    assert set(cell.because) == {"wide", "shifted"}
    assert found.summary.small_exact > 0


def test_three_linked_tables_with_hidden_cells_are_unsafe_together_and_safe_as_advised(people):
    hidden = {"below": 5, "totals": True}
    linked = [
        {"name": "town by age", "by": ["town", "age"], "where": {"ill": "y"}, **hidden},
        {"name": "age by illness", "by": ["age", "ill"], **hidden},
        {"name": "all", "by": ["town", "age", "ill"], **hidden},
    ]
    found = lv.audit(people, weight="count", tables=linked)
    assert found.summary.small_exact > 0
    assert all(cell.because for cell in found.disclosed())
    assert found.advice is not None and found.advice.is_safe
    left = [t for t in linked if t["name"] not in {*found.advice.leave_out, *dict(found.advice.coarsen)}]
    if left:
        targets = [{"by": ["town", "age", "ill"]}]
        assert lv.audit(people, weight="count", tables=left, targets=targets).summary.small_exact == 0


def test_one_hidden_cell_beside_its_totals_is_no_secret(people):
    table = {
        "name": "t",
        "by": ["town", "age"],
        "where": {"ill": "y"},
        "totals": True,
        "hide": [{"town": "B", "age": "30"}],
    }
    found = lv.audit(
        people, weight="count", tables=[table], targets=[{"by": ["town", "age"], "where": {"ill": "y"}}]
    )
    assert cells_of(found)["B", "30"].is_exact


def test_what_is_known_beforehand_counts(people):
    table = {"name": "t", "by": ["age"]}
    target = {"by": ["age", "ill"]}
    before = lv.audit(people, weight="count", tables=[table], targets=[target])
    known = [{"where": {"age": "30", "ill": "n"}, "at_least": 18}]
    after = lv.audit(people, weight="count", tables=[table], known=known, targets=[target])
    assert cells_of(before)["30", "y"].upper > cells_of(after)["30", "y"].upper


def test_within_a_percentage_counts_as_given_away(people):
    table = {"name": "t", "by": ["town", "ill"], "base": 3}
    found = lv.audit(
        people, weight="count", tables=[table], targets=[{"by": ["town"]}], within=5, fail_on="within"
    )
    assert [cell.status for cell in found.cells] == ["within", "within"]
    assert not found.passed
    assert lv.audit(people, weight="count", tables=[table], targets=[{"by": ["town"]}], within=1).passed


def test_a_decision_names_the_same_small_cells(people):
    tables = [
        {"name": "everyone", "by": ["age", "ill"]},
        {"name": "town A", "by": ["age", "ill"], "where": {"town": "A"}},
    ]
    full = lv.audit(people, weight="count", tables=tables)
    fast = lv.audit(people, weight="count", tables=tables, decide=True)
    assert [c.cell for c in full.disclosed()] == [c.cell for c in fast.disclosed()]
    assert full.summary.small_exact == fast.summary.small_exact > 0


def test_a_decision_names_the_same_cells_within_a_percentage(people):
    how = {"weight": "count", "tables": [{"name": "t", "by": ["town", "ill"], "base": 3}], "within": 5}
    full, fast = lv.audit(people, **how), lv.audit(people, **how, decide=True)
    assert [c.cell for c in full.disclosed()] == [c.cell for c in fast.disclosed()]
    assert max(c.true_count for c in fast.disclosed()) >= full.small and full.summary.within > 0


def test_shares_of_an_unknown_number_of_people_are_decided(people):
    """Twice as many people have the same shares."""
    tables = [
        {"name": "ill", "rows": ["town", "age"], "cols": ["ill"], "decimals": 3},
        {"name": "ages", "rows": ["ill"], "cols": ["age"], "decimals": 3},
    ]
    found = lv.audit(people, weight="count", tables=tables, decide=True)
    assert not list(found.disclosed()) and not list(found.undecided())


def test_exact_large_counts_are_no_more_given_away_by_a_decision(people):
    tables = [{"name": "t", "by": ["town"]}, {"name": "near", "by": ["ill"], "base": 3}]
    how = {"weight": "count", "tables": tables, "within": 5}
    full, fast = lv.audit(people, **how), lv.audit(people, **how, decide=True)
    given_away = [[c.cell for c in found.disclosed()] for found in (full, fast)]
    assert given_away[0] == given_away[1] and {"town": "A"} not in given_away[0]


def test_the_same_question_has_the_same_answer(people):
    tables = [
        {"name": "a", "by": ["town", "age"]},
        {"name": "b", "by": ["age", "ill"]},
        {"name": "c", "by": ["town", "ill"]},
    ]
    first, second = (lv.audit(people, weight="count", tables=tables) for _ in range(2))
    assert first == second
    assert first.summary.certified == first.summary.targets


def test_json_and_frame_hold_every_cell(people):
    found = lv.audit(people, weight="count", tables=[{"name": "a", "by": ["town", "ill"]}])
    told = json.loads(found.to_json())
    assert set(told["summary"]) >= {"targets", "exact", "small_exact", "within", "certified", "seconds"}
    assert set(told["cells"][0]) >= {"table", "cell", "lower", "upper", "certified", "because"}
    assert len(told["cells"]) == found.to_frame().num_rows == found.summary.targets
    assert "JointAudit" in found._repr_html_()


def test_the_report_shows_reasons_in_words(people):
    tables = [
        {"name": "every<b>one", "by": ["age", "ill"]},
        {"name": "town A", "by": ["age", "ill"], "where": {"town": "A"}},
    ]
    found = lv.audit(
        people, weight="count", tables=tables, targets=[{"by": ["age", "ill"], "where": {"town": "B"}}]
    )
    page = audit_report(found, "spec.toml")
    assert "minus" in page and "leaves 3 people" in page
    assert "every&lt;b&gt;one" in page and "every<b>one" not in page
    safe = audit_report(lv.audit(people, weight="count", tables=[{"name": "t", "by": ["town"]}]), "spec.toml")
    assert "No small count is disclosed" in safe


def test_work_can_be_stopped(people):
    run = Run()
    run.cancel()
    with pytest.raises(Cancelled):
        lv.audit(people, weight="count", tables=[{"name": "a", "by": ["town"]}], run=run)


def published(folder, name, lines):
    (folder / name).write_text("\n".join(lines) + "\n")
    return name


def spec_of(folder, tables, *, attributes="", source='[source]\nfile = "people.csv"\nweight = "count"\n'):
    path = folder / "audit.toml"
    path.write_text(f"{source}{attributes}[audit]\n{tables}")
    return path


def test_a_published_file_is_checked_against_the_records_and_audited(people, tmp_path):
    import pyarrow.csv

    pyarrow.csv.write_csv(people, tmp_path / "people.csv")
    published(tmp_path, "t.csv", ["town,ill,count", "A,y,x", "A,n,58", "B,y,14", "B,n,58", "A,Total,96", "B,Total,72",
                                  "Total,y,52", "Total,n,116", "Total,Total,168"])  # fmt: skip
    spec = spec_of(
        tmp_path,
        '[[audit.tables]]\nname = "t"\nby = ["town", "ill"]\nfile = "t.csv"\nmark = ["x"]\ntotals = true\n',
    )
    found = lv.audit(spec=spec)
    assert cells_of(found)["A", "y"].lower == cells_of(found)["A", "y"].upper == 38
    published(tmp_path, "t.csv", ["town,ill,count", "A,y,38", "A,n,58", "B,y,15", "B,n,58"])
    spec = spec_of(tmp_path, '[[audit.tables]]\nname = "t"\nby = ["town", "ill"]\nfile = "t.csv"\n')
    with pytest.raises(InputError, match="row 3 of t.csv does not agree with the records") as caught:
        lv.audit(spec=spec)
    assert caught.value.row == 3


OUTSIDE = """
[attributes.town]
labels = ["A", "B"]
[attributes.ill]
labels = ["y", "n"]
"""


def test_an_outsider_needs_no_records(tmp_path):
    published(tmp_path, "t.csv", ["town,ill,count", "A,y,x", "A,n,x", "B,y,x", "B,n,x", "A,Total,5", "B,Total,4",
                                  "Total,y,1", "Total,n,8", "Total,Total,9"])  # fmt: skip
    table = (
        '[[audit.tables]]\nname = "t"\nby = ["town", "ill"]\nfile = "t.csv"\nmark = ["x"]\ntotals = true\n'
    )
    found = lv.audit(spec=spec_of(tmp_path, table, attributes=OUTSIDE, source=""))
    assert not found.has_records and "without the records" in repr(found)
    cell = cells_of(found)["A", "y"]
    assert (cell.lower, cell.upper, cell.certified, cell.true_count) == (0, 1, True, None)


def test_files_that_contradict_each_other_are_named(tmp_path):
    published(tmp_path, "a.csv", ["town,count", "A,5", "B,4"])
    published(tmp_path, "b.csv", ["ill,count", "y,5", "n,5"])
    published(tmp_path, "c.csv", ["town,ill,count", "A,y,1", "A,n,4", "B,y,0", "B,n,4"])
    tables = "".join(
        f'[[audit.tables]]\nname = "{name}"\nby = {by}\nfile = "{name}.csv"\n'
        for name, by in (("a", '["town"]'), ("b", '["ill"]'), ("c", '["town", "ill"]'))
    )
    with pytest.raises(InfeasibleError, match='"b"') as caught:
        lv.audit(spec=spec_of(tmp_path, tables, attributes=OUTSIDE, source=""))
    assert len(caught.value.clash) == 2


def test_conditionals_from_a_file_are_read_and_checked(people, tmp_path):
    import pyarrow.csv

    pyarrow.csv.write_csv(people, tmp_path / "people.csv")
    shares = ["town,ill,count", "A,y,19/48", "A,n,29/48", "B,y,7/36", "B,n,29/36"]
    published(tmp_path, "s.csv", shares)
    table = '[[audit.tables]]\nname = "s"\nrows = ["town"]\ncols = ["ill"]\nfile = "s.csv"\nn = 168\n'
    found = lv.audit(spec=spec_of(tmp_path, table))
    assert cells_of(found)["B", "y"].lower == cells_of(found)["B", "y"].upper == 14
    published(tmp_path, "s.csv", [*shares[:3], "B,y,8/36", "B,n,28/36"])
    with pytest.raises(InputError, match="begins on row 3 of s.csv does not agree with the records"):
        lv.audit(spec=spec_of(tmp_path, table))


def test_numbers_rounded_at_random_are_intervals(people, tmp_path):
    import pyarrow.csv

    pyarrow.csv.write_csv(people, tmp_path / "people.csv")
    published(tmp_path, "r.csv", ["town,count", "A,95", "B,75"])
    table = '[[audit.tables]]\nname = "r"\nby = ["town"]\nfile = "r.csv"\nbase = 5\nrounding = "random"\n'
    found = lv.audit(spec=spec_of(tmp_path, table))
    assert [(cell.lower, cell.upper) for cell in found.cells][:2] == [(91, 99), (71, 79)]


def test_structural_zeros_are_known_to_everybody(tmp_path):
    people = pa.table(
        {
            "sex": ["f", "f", "m", "m"],
            "ward": ["maternity", "other", "maternity", "other"],
            "count": [3, 9, 0, 8],
        }
    )
    spec = {
        "attributes": {"sex": {"labels": ["f", "m"]}, "ward": {"labels": ["maternity", "other"]}},
        "structural_zeros": [{"sex": ["m"], "ward": ["maternity"]}],
        "audit": {"tables": [{"name": "t", "by": ["sex"]}, {"name": "w", "by": ["ward"]}]},
    }
    found = lv.audit(people, weight="count", spec=spec)
    assert cells_of(found)["f", "maternity"].is_exact


def test_a_joint_domain_too_large_is_one_sentence():
    labels = [str(n) for n in range(200)]
    wide = pa.table(dict.fromkeys("abc", labels))
    with pytest.raises(InputError, match="cells; leave out attributes or merge categories"):
        lv.audit(wide, tables=[{"name": "t", "by": ["a", "b", "c"]}])


def test_numbers_of_people_beyond_all_reason_are_refused():
    many = pa.table({"a": ["x", "y"], "count": np.array([2**34, 1])})
    with pytest.raises(InputError, match="check the weight column"):
        lv.audit(many, weight="count", tables=[{"name": "t", "by": ["a"]}])


def test_advice_is_one_sentence_for_all_of_it_is_needed_together() -> None:
    both = Advice(leave_out=("a",), coarsen=(("b", "without sex"),))
    assert both.words == "without: a, and with: b without sex"
    assert Advice(leave_out=("a", "c")).words == "without: a, c" and Advice(leave_out=()).words == ""
