"""The risk-utility curve."""

from __future__ import annotations

import json
from pathlib import Path

import louver as lv
from louver.report.anonymize import inside_report
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
