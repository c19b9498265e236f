"""Freeform generalisation, labelled as weaker everywhere."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import louver as lv
from louver.anonymize.columns import Sensitive
from louver.anonymize.methods import freeform
from louver.errors import InputError
from louver.release.manifest import read_manifest
from louver.report.anonymize import anonymize_report, inside_report
from releases import doubt
from small_people import AGES, TOWN, people, problem_of, written


@pytest.mark.parametrize("method", ["freeform-greedy", "freeform-sort-greedy", "freeform-hungarian"])
def test_freeform_is_labelled_as_weaker_everywhere(method: str, tmp_path: Path) -> None:
    release = lv.anonymize(people(), quasi=["age", "town"], k=3, method=method, keep_order=True)
    assert "weaker than k-anonymity" in repr(release)
    assert release.guarantee == "freeform" and release.to_dict()["guarantee"] == "freeform"
    for page in (anonymize_report(release), inside_report(release)):
        assert "weaker than k-anonymity" in page
    out = written(release, tmp_path / "release")
    manifest = read_manifest(out)
    assert "weaker" in manifest.warnings[0]
    assert [p["promise"] for p in manifest.promises] == [
        "records",
        "mapping",
        "losses",
        "columns",
        "freeform",
    ]
    assert lv.verify(out).passed
    # Every original fits k published records, counted from the printed intervals and sets.
    for age, town in zip(AGES, TOWN, strict=True):
        fits = 0
        for line in release.table.to_pylist():
            low, _, high = line["age"].strip("[]").partition(", ")
            fits += int(low) <= age <= int(high or low) and town in line["town"].split(" | ")
        assert fits >= 3


def test_verify_refuses_freeform_records_that_meet_too_few(tmp_path: Path) -> None:
    release = lv.anonymize(people(), quasi=["age"], k=3, method="freeform-hungarian")
    out = written(release, tmp_path / "release")
    assert doubt(out, "freeform", k=3).passed
    assert not doubt(out, "freeform", k=7).passed


def test_freeform_takes_nothing_beside_k() -> None:
    with pytest.raises(InputError, match="cannot be combined with"):
        lv.anonymize(people(), quasi=["age"], k=3, method="freeform-greedy", sampling_weight="stands_for")
    with pytest.raises(InputError, match="cannot be combined with"):
        lv.anonymize(people(), quasi=["age"], k=3, method="freeform-greedy", sensitive=["ill"], l=2)


def test_freeform_with_missing_values_that_match_anything_verifies(tmp_path: Path) -> None:
    table = pa.table({"x": pa.array([1, None, 9, 5, None, 2], pa.int64()), "y": [1, 2, 3, 4, 5, 6]})
    for number, method in enumerate(["freeform-greedy", "freeform-hungarian"]):
        release = lv.anonymize(table, quasi=["x", "y"], k=2, missing="match", method=method)
        assert lv.verify(written(release, tmp_path / str(number))).passed


def test_freeform_refuses_requirements_and_too_many_records(monkeypatch):
    sensitive = Sensitive(name="s", codes=np.array([0, 1, 0, 1]), n_values=2, l=2)
    with pytest.raises(InputError) as caught:
        freeform.solve(problem_of([1, 2, 3, 4], k=2, sensitive=[sensitive]))
    assert caught.value.option == "--method"
    monkeypatch.setattr(freeform, "MAX_RECORDS", 3)
    with pytest.raises(InputError, match="at most 3 records"):
        freeform.solve(problem_of([1, 2, 3, 4], k=2))


def test_freeform_where_every_record_must_match_every_other():
    problem = problem_of([1, 2, 4, 8], k=4)
    for matching in freeform.Matching:
        found = freeform.solve(problem, matching=matching)
        assert sorted(found.matches[2].tolist()) == [0, 1, 2, 3]
        assert problem.information_loss(found) == pytest.approx(4.0)
