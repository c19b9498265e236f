"""The anonymize verb: what is published, what travels along, and that verify agrees."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import louver as lv
from louver.errors import InfeasibleError, InputError
from louver.report.anonymize import anonymize_report
from small_people import AGES, ILL, TOWN


def people(**more: object) -> pa.Table:
    return pa.table({"name": list("abcdefg"), "age": AGES, "town": TOWN, "ill": ILL, **more})


def test_intervals_sets_and_the_rest_as_it_was() -> None:
    release = lv.anonymize(
        people(),
        quasi=["age", "town"],
        identifying=["name"],
        k=3,
        method="exact",
        keep_order=True,
        class_id=True,
    )
    assert release.table.column_names == ["age", "town", "ill", "class_id"]
    assert release.table["ill"].to_pylist() == ILL
    assert release.table["age"].to_pylist() == ["[31, 34]"] * 3 + ["[52, 60]"] * 4
    assert release.table["town"].to_pylist() == ["Ayr | Bute"] * 3 + ["Cairn | Doon"] * 4
    # Ranges 3/29 for three and 8/29 for four records; one category more of four, for seven.
    assert release.utility.information_loss == pytest.approx((9 + 32) / 29 + 7 / 4)
    assert release.lower_bound == pytest.approx(release.utility.information_loss, rel=1e-6)
    assert "optimal" in repr(release)
    assert release.risk.uniques_before == 7 and release.risk.uniques_after == 0


def test_bounds_as_two_columns() -> None:
    release = lv.anonymize(
        people(), quasi=["age"], identifying=["name"], k=3, method="sorted", format="bounds", keep_order=True
    )
    assert release.quasi == ("age_lower", "age_upper")
    assert release.table["age_lower"].to_pylist() == [31] * 3 + [52] * 4
    assert release.table["age_upper"].to_pylist() == [34] * 3 + [60] * 4


def test_hierarchy_labels(tmp_path: Path) -> None:
    file = tmp_path / "town.csv"
    file.write_text("Ayr;West;*\nBute;West;*\nCairn;East;*\nDoon;East;*\n")
    release = lv.anonymize(
        people(),
        quasi=["town"],
        identifying=["name", "age"],
        k=3,
        hierarchy={"town": file},
        method="greedy",
        keep_order=True,
    )
    assert release.table["town"].to_pylist() == ["West"] * 3 + ["East"] * 4


def test_ordered_text() -> None:
    table = pa.table({"size": ["1 S", "2 M", "3 L", "3 L"]})
    release = lv.anonymize(table, quasi=["size"], ordered=["size"], k=2, method="exact", keep_order=True)
    assert release.table["size"].to_pylist() == ["[1 S, 2 M]"] * 2 + ["3 L"] * 2


def test_missing_numbers_are_a_category_of_their_own() -> None:
    table = pa.table({"x": pa.array([1, 2, None, None], pa.int64())})
    release = lv.anonymize(table, quasi=["x"], k=2, method="exact", keep_order=True)
    assert release.table["x"].to_pylist() == ["[1, 2]", "[1, 2]", None, None]


def test_missing_numbers_that_match_anything_cost_nothing() -> None:
    table = pa.table({"x": pa.array([1, 2, None, None], pa.int64())})
    release = lv.anonymize(table, quasi=["x"], k=2, missing="match", method="exact", keep_order=True)
    published = release.table["x"].to_pylist()
    assert published[:2] == ["1", "2"] and {*published[2:]} == {"1", "2"}
    assert release.utility.information_loss == 0


def test_missing_value_mixed_with_numbers_is_anything() -> None:
    table = pa.table({"x": pa.array([1, None], pa.int64())})
    release = lv.anonymize(table, quasi=["x"], k=2, method="sorted")
    assert release.table["x"].to_pylist() == ["*", "*"]
    assert release.utility.gcp == 1.0


def test_missing_text_is_a_category() -> None:
    table = pa.table({"x": ["a", None, "a", None]})
    release = lv.anonymize(table, quasi=["x"], k=2, method="exact", keep_order=True)
    assert release.table["x"].to_pylist() == ["a", "(missing)", "a", "(missing)"]


def test_missing_can_be_refused() -> None:
    with pytest.raises(InputError, match="row 2") as caught:
        lv.anonymize(pa.table({"x": ["a", None]}), quasi=["x"], k=2, missing="error")
    assert (caught.value.column, caught.value.row) == ("x", 2)


def test_suppression_is_used_and_counted() -> None:
    table = pa.table({"x": [1, 1, 1, 2, 2, 2, 1000]})
    release = lv.anonymize(table, quasi=["x"], k=3, suppress=0.2, method="exact", keep_order=True)
    assert release.table["x"].to_pylist() == ["1"] * 3 + ["2"] * 3
    assert release.n_suppressed == 1
    assert release.utility.information_loss == pytest.approx(1.0)


@pytest.mark.parametrize(
    "limits",
    [
        {"l": 2.0},
        {"l": 1.5, "l_kind": "entropy"},
        {"t": 0.5},
        {"t": 0.5, "distance": "ordered"},
        {"l": 2.0, "t": 0.6},
    ],
)
@pytest.mark.parametrize(
    "method", ["auto", "greedy", "sorted", "mondrian", "mondrian-relaxed", "k-member", "exact"]
)
def test_release_is_verified(tmp_path: Path, limits: dict, method: str) -> None:
    table = pa.concat_tables([people()] * 3)
    release = lv.anonymize(
        table,
        quasi=["age", "town"],
        identifying=["name"],
        sensitive=["ill"],
        k=3,
        method=method,
        seconds=2.0,
        **limits,
    )
    out = tmp_path / "release"
    release.write(out, anonymize_report(release))
    outcome = lv.verify(out)
    assert outcome.passed, repr(outcome)
    assert len(outcome.checks) >= 6


def test_hierarchical_closeness_is_verified(tmp_path: Path) -> None:
    file = tmp_path / "ill.csv"
    file.write_text("flu;airways;*\ncold;airways;*\nulcer;stomach;*\n")
    table = pa.concat_tables([people()] * 3)
    options = {"sensitive": ["ill"], "hierarchy": {"ill": file}, "t": 0.4, "distance": "hierarchical"}
    release = lv.anonymize(table, quasi=["age"], identifying=["name"], k=3, method="mondrian", **options)
    release.write(tmp_path / "release", anonymize_report(release))
    assert lv.verify(tmp_path / "release").passed


def test_limits_that_cannot_be_met() -> None:
    with pytest.raises(InfeasibleError):
        lv.anonymize(people(), quasi=["age"], identifying=["name"], sensitive=["ill"], k=2, l=4.0)


@pytest.mark.parametrize("method", ["auto", "exact", "split-carry"])
def test_steps_make_a_run_that_can_be_repeated(method: str) -> None:
    table = pa.table({"x": [(37 * i) % 101 for i in range(60)], "y": [(53 * i) % 97 for i in range(60)]})
    runs = [
        lv.anonymize(table, quasi=["x", "y"], k=3, method=method, steps=2, keep_order=True) for _ in range(2)
    ]
    assert runs[0].table.equals(runs[1].table)
    assert runs[0].parameters["steps"] == 2


def test_rows_are_shuffled() -> None:
    table = pa.table({"x": [1] * 400, "row": list(range(400))})
    rows = lv.anonymize(table, quasi=["x"], keep=["row"], k=2, method="sorted").table["row"].to_pylist()
    assert rows != list(range(400)) and sorted(rows) == list(range(400))


def test_json_keys_are_stable() -> None:
    content = json.loads(lv.anonymize(people(), quasi=["age"], identifying=["name"], k=3).to_json())
    stable = {
        "method",
        "k",
        "records",
        "classes",
        "smallest_class",
        "suppressed",
        "information_loss",
        "gcp",
        "lower_bound",
        "seconds",
    }
    assert stable <= set(content)
    assert (content["records"], content["k"]) == (7, 3)


def test_report_escapes_labels_and_needs_no_network() -> None:
    table = pa.table({"<script>": ["a", "b", "a", "b"]})
    html = anonymize_report(lv.anonymize(table, quasi=["<script>"], k=2))
    assert "<script" not in html and "http" not in html.replace("http://www.w3.org", "")
    assert "What it costs in accuracy" in html and "4 records, one for each person" in html


def test_closeness_with_suppression_holds_for_the_published_file(tmp_path):
    """Some seeds leave out records so that classes close to the whole table must be united to be close to the file."""
    n_left_out = 0
    for seed in range(12):
        random = np.random.default_rng(seed)
        age = random.integers(20, 40, 24)
        age[0] = 90
        people = pa.table({"age": age, "ill": random.choice(["a", "b", "c"], 24)})
        options = {"quasi": ["age"], "sensitive": ["ill"], "k": 3, "t": 0.25, "suppress": 0.1}
        release = lv.anonymize(people, **options, method="exact")
        n_left_out += release.n_suppressed > 0
        release.write(tmp_path / str(seed))
        assert lv.verify(tmp_path / str(seed)).passed
    assert n_left_out


@pytest.mark.parametrize("method", ["auto", "exact", "split-carry", "greedy", "mondrian", "freeform-greedy"])
def test_seconds_are_told_inside_and_never_published(method: str, tmp_path: Path) -> None:
    release = lv.anonymize(people(), quasi=["age"], identifying=["name"], k=3, method=method)
    assert ({"reading", "publishing"} < set(release.stages) and "search" in repr(release)) or "first" in repr(
        release
    )
    release.write(tmp_path / "release", anonymize_report(release))
    manifest = json.loads((tmp_path / "release/manifest.json").read_text())
    assert manifest["seconds"] is None and "stages" not in json.dumps(manifest)


def test_more_than_half_lost_is_said_in_words() -> None:
    release = lv.anonymize(people(), quasi=["age"], identifying=["name"], k=7, method="sorted")
    assert "More than half" in repr(release)
    fine = lv.anonymize(people(), quasi=["age"], identifying=["name"], k=1, method="sorted")
    assert "More than half" not in repr(fine)
