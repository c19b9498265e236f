"""The risk-utility curve."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import louver as lv
from few_or_many import few_or_many
from louver.anonymize import AnonymizeOptions, compare_each_k
from louver.report.anonymize import inside_report
from louver.run import Run
from louver.schema.request import ask
from small_people import people, written


def test_the_curve_stays_inside(tmp_path: Path) -> None:
    release = lv.anonymize(people(), quasi=["age"], k=3, curve=[2, 3, 50], seconds=600)
    assert {(point.method, point.k) for point in release.curve} >= {("auto", 2), ("greedy", 3)}
    assert all(point.k != 50 for point in release.curve)
    by_method = [point.gcp for point in release.curve if point.method == "auto"]
    assert by_method == sorted(by_method)
    assert "Risk and utility" in inside_report(release)
    out = written(release, tmp_path / "release")
    published = (out / "manifest.json").read_text() + (out / "report.html").read_text()
    for inside in ("associations", "distributions", "curve", '"against"'):
        assert inside not in published
    assert json.loads(release.to_json())["curve"]


def test_the_release_is_a_point_of_its_curve() -> None:
    """Also where its k is not among those of the curve; its method has its options at every k."""
    release = lv.anonymize(people(), quasi=["age"], k=3, method="split-carry", sets=2, curve=[2], steps=5)
    (own,) = [point for point in release.curve if (point.method, point.k) == ("split-carry", 3)]
    assert (own.gcp, own.highest_risk) == (release.utility.gcp, release.risk.prosecutor_highest)
    assert {point.k for point in release.curve if point.method == "split-carry"} == {2, 3}
    assert {point.k for point in release.curve if point.method == "greedy"} == {2}


@pytest.mark.parametrize("method", ["greedy", "mondrian", "k-member"])
@few_or_many(
    4,
    15,
    given(
        rows=st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30)), min_size=12, max_size=24),
        k=st.integers(2, 6),
    ),
)
def test_the_loss_never_falls_as_k_grows(method: str, rows: list[tuple[int, int]], k: int) -> None:
    """A file with k look-alikes has k - 1, too; the release is one of the points, and is as good."""
    table = pa.table({"a": [a for a, _ in rows], "b": [b for _, b in rows]})
    asked = {"quasi": ["a", "b"], "k": k, "method": method, "curve": (2, 3, 4, 5, 6), "steps": 1}
    release = compare_each_k(ask(AnonymizeOptions, table, None, asked), Run())
    losses = [point.gcp for point in release.curve]
    assert all(one <= other + 1e-9 for one, other in pairwise(losses))
    (own,) = [point for point in release.curve if (point.method, point.k) == (method, k)]
    assert (own.gcp, own.highest_risk) == (release.utility.gcp, release.risk.prosecutor_highest)
    assert release.smallest_class >= k


def test_what_was_found_for_a_larger_k_proves_nothing_for_a_smaller_one() -> None:
    rows = {"a": [i * 37 % 101 for i in range(80)], "b": [i * 53 % 97 for i in range(80)]}
    asked = {"quasi": ["a", "b"], "k": 2, "curve": (2, 3, 4), "steps": 0}
    release = compare_each_k(ask(AnonymizeOptions, pa.table(rows), None, asked), Run())
    assert release.lower_bound is None or release.lower_bound <= release.utility.information_loss
