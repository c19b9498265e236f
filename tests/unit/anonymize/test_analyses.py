"""Analyses before and after: equal where nothing is generalised, lost where everything is, refused where they say nothing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import louver as lv
from louver.anonymize.analyses import Comparisons, TermComparison, _compared
from louver.anonymize.plot import plot_analyses
from louver.errors import InputError
from louver.optim.regression import Fit
from louver.report.anonymize import inside_report
from louver.schema.analysis import Analysis, analyses_of

ALL = {
    "analyses": [
        {"kind": "mean", "of": "hours", "by": ["sex"]},
        {"kind": "share", "of": "ill", "label": "yes"},
        {"kind": "linear", "of": "hours", "on": ["age", "sex"]},
        {"kind": "logistic", "of": "ill", "label": "yes", "on": ["age"]},
    ]
}


def people(n: int = 200) -> pa.Table:
    random = np.random.default_rng(7)
    age = random.integers(20, 70, n)
    return pa.table(
        {
            "age": age,
            "sex": random.choice(["f", "m"], n),
            "hours": (30 + 0.2 * age + random.normal(0, 3, n)).round(1),
            "ill": np.where(random.random(n) < age / 100, "yes", "no"),
        }
    )


def released(data: pa.Table, analysis: Any = ALL, **options: Any) -> lv.AnonymizedRelease:
    return lv.anonymize(
        data,
        **{"quasi": ["age", "sex"], "sensitive": ["hours", "ill"], "method": "mondrian", "analysis": analysis}
        | options,
    )


def test_analyses_of_a_file_that_stays_as_it_is_all_survive() -> None:
    twice = people(60)
    found = released(pa.concat_tables([twice] * 5), k=5).analyses
    assert found is not None and all(term.survives and term.overlap > 0.999 for term in found.terms)
    assert found.propensity == pytest.approx(0, abs=1e-6)
    assert [term.term for term in found.terms][:3] == ["sex = f", "sex = m", "everybody"] or len(
        found.terms
    ) == 8


def test_estimates_before_are_those_of_the_source() -> None:
    data = people()
    found = released(data, k=4).analyses
    assert found is not None
    of = {(term.analysis, term.term): term for term in found.terms}
    hours, sex, age = (np.array(data[name]) for name in ("hours", "sex", "age"))
    assert of["mean of hours by sex", "sex = f"].before == pytest.approx(hours[sex == "f"].mean())
    first = "m" if (sex == "f").sum() >= (sex == "m").sum() else "f"
    x = np.column_stack([np.ones(len(age)), age, sex == first])
    slope = np.linalg.lstsq(x, hours, rcond=None)[0][1]
    assert of["linear regression of hours on age and sex", "age"].before == pytest.approx(slope)


def test_a_conclusion_that_is_lost_does_not_survive() -> None:
    random = np.random.default_rng(1)
    age = np.tile(np.arange(20, 60), 5)
    data = pa.table({"age": age, "noise": random.permutation(200), "hours": age + random.normal(0, 1, 200)})
    analysis = {"analyses": [{"kind": "linear", "of": "hours", "on": ["age"]}]}
    found = released(
        data, analysis, quasi=["age", "noise"], sensitive=["hours"], k=100, weights={"age": 0.0}
    ).analyses
    assert found is not None and not all(term.survives for term in found.terms)


@pytest.mark.parametrize(("error", "survives"), [(0.01, True), (0.039, True), (0.041, False), (1.0, False)])
def test_an_interval_around_everything_does_not_survive(error: float, survives: bool) -> None:
    of = Analysis(kind="mean", of="hours")
    before, after = (
        Fit(estimates=np.array([1.0]), standard_errors=np.array([e]), freedom=np.array([np.inf]))
        for e in (0.01, error)
    )
    (term,) = _compared(of, [()], before, after)
    assert term.overlap >= 0.5 and term.survives is survives


def test_result_report_and_manifest(tmp_path: Path) -> None:
    found = released(people(), k=4, out=tmp_path / "r")
    assert found.analyses is not None
    plain = json.loads(found.to_json())["analyses"]
    assert len(plain["terms"]) == len(found.analyses.terms)
    assert found.analyses.sentence in repr(found) and "Which analyses survive" in inside_report(found)
    assert "analys" not in (tmp_path / "r" / "manifest.json").read_text()
    assert lv.verify(tmp_path / "r").passed


def test_separated_outcomes_are_named_and_not_dropped() -> None:
    data = people().append_column(
        "old", pa.array(["y" if age > 45 else "n" for age in people()["age"].to_pylist()])
    )
    analysis = {"analyses": [{"kind": "logistic", "of": "old", "label": "y", "on": ["age"]}]}
    found = released(data, analysis, keep=["old"], k=4).analyses
    assert (
        found is not None
        and len(found.not_estimated) == 1
        and found.sentence == "No analysis can be estimated."
    )


@pytest.mark.parametrize(
    "one",
    [
        {"kind": "median", "of": "hours"},
        {"kind": "share", "of": "ill"},
        {"kind": "mean", "of": "hours", "label": "1"},
        {"kind": "linear", "of": "hours"},
        {"kind": "linear", "of": "hours", "on": ["age"], "by": ["sex"]},
        {"kind": "mean", "of": "hours", "on": ["age"]},
        {"kind": "linear", "of": "age", "on": ["age"]},
        {"kind": "mean", "of": "hours", "of_": 1},
    ],
)
def test_analyses_that_say_nothing(one: dict[str, Any]) -> None:
    with pytest.raises(InputError):
        analyses_of({"analyses": [one]})


@pytest.mark.parametrize(
    ("one", "column"),
    [
        ({"kind": "mean", "of": "wage"}, "wage"),
        ({"kind": "mean", "of": "ill"}, "ill"),
        ({"kind": "mean", "of": "hours", "by": ["age"]}, "age"),
        ({"kind": "share", "of": "hours", "label": "many"}, "hours"),
    ],
)
def test_analyses_of_other_columns(one: dict[str, Any], column: str) -> None:
    with pytest.raises(InputError) as caught:
        released(people(40), {"analyses": [one]}, k=2)
    assert caught.value.column == column and caught.value.option == "--analysis"


def test_parts_take_no_analyses(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="--analysis"):
        released(people(40), k=2, parts=2, out=tmp_path / "r")


def term(
    name: str, after: tuple[float, float, float] | None, *, survives: bool, overlap: float
) -> TermComparison:
    lower, middle, upper = after or (None, None, None)
    return TermComparison(
        analysis="mean of hours",
        term=name,
        before=10.0,
        before_lower=8.0,
        before_upper=12.0,
        after=middle,
        after_lower=lower,
        after_upper=upper,
        overlap=overlap,
        survives=survives,
    )


def test_the_picture_draws_the_worst_first_in_half_widths_of_the_original_interval() -> None:
    terms = (
        term("good", (9.0, 11.0, 13.0), survives=True, overlap=0.8),
        term("far", (30.0, 40.0, 50.0), survives=False, overlap=0.0),
        term("gone", None, survives=False, overlap=0.1),
    )
    figure = plot_analyses(Comparisons(terms=terms, not_estimated=(), propensity=None))
    (axes,) = figure.axes
    assert [label.get_text() for label in axes.get_yticklabels()] == [
        "mean of hours: good",
        "mean of hours: gone",
        "mean of hours: far",
    ]
    drawn = [(line.get_color(), list(line.get_xdata())) for line in axes.lines if len(line.get_xdata()) == 2]
    after = [(colour, ends) for colour, ends in drawn if ends not in ([-1, 1], [0, 0], [0, 1])]
    assert [ends for _, ends in after] == [[-0.5, 1.5], [5.0, 5.0]]
    assert len({colour for colour, _ in after}) == 2
