"""The report of a release of group sizes: errors before and after, every level drawn, nothing fetched, labels as text."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from louver.groups import groups
from louver.groups.result import GroupRelease
from louver.report.groups import groups_report


def _release(n_states: int, n_counties: int, names: str = "s{}", **more: Any) -> GroupRelease:
    """Two homes in every county, one with a person and one with two."""
    places = [(names.format(s), f"c{c}") for s in range(n_states) for c in range(n_counties)]
    rows = [(f"{s}{c}{home}", s, c) for s, c in places for home in (1, 2) for _ in range(home)]
    homes, states, counties = zip(*rows, strict=True)
    people = pa.table({"home": homes, "state": states, "county": counties})
    given: dict[str, Any] = {"regions": ["state", "county"], "max_size": 4, "epsilon": 1, "seed": 1}
    return groups(people, unit="home", domain_from_data=True, **{**given, **more})


def test_errors_before_and_after_stand_in_the_report() -> None:
    release = _release(2, 3)
    text = groups_report(release)
    for before, after in zip(release.forecast.before, release.forecast.after, strict=True):
        assert f'<td class="number">{round(before.l1):,}</td>' in text
        assert f'<td class="number">{round(after.l1):,}</td>' in text
        assert before.l1 > after.l1
    assert "measurements as drawn" in text and "after post-processing" in text
    assert "state: s0" in text and "state: s1" in text
    assert "All regions of the lowest level (county)" in text
    assert text.count("<svg ") == 1 + 1 + 2 + 1
    assert "NOT PRIVATE" in text


def test_many_regions_are_not_all_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("louver.release.pages.groups.MOST_PICTURES", 1)
    monkeypatch.setattr("louver.release.pages.groups.MOST_PANELS", 3)
    text = groups_report(_release(3, 2))
    assert "The first 1 of 3 regions; the file has all." in text
    assert "The first 3 of 6 regions of the lowest level (county)" in text
    assert text.count("<svg ") == 1 + 1 + 1 + 1


@pytest.mark.parametrize(
    "more",
    [
        {"regions": ["state"]},
        {"mechanism": "M_H^dp"},
        {"mechanism": "M_c^ch", "evaluate": True, "as_published": True, "total": "public"},
        {"epsilon": None, "rho": 1},
        {"total": "public", "epsilon": 1000},
    ],
    ids=["two levels", "sizes", "chain", "rho", "public total"],
)
def test_every_kind_of_release_has_a_report(more: dict[str, Any]) -> None:
    text = groups_report(_release(2, 2, **more))
    assert text.startswith("<!doctype html>") and text.endswith("</html>\n")
    assert not re.search(r"(src|href)=\"(?!#)", text) and "http" not in text
    assert ("epsilon" in text) and ("delta 1e-10" in text) == ("rho" in more)


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ({"epsilon": 1}, "change by a factor of at most 2.72."),
        ({"epsilon": 1, "delta": 1e-6}, "change by a factor of at most 2.72, except with probability 1e-06."),
        ({"epsilon": None, "rho": 1}, "is bounded by rho"),
        ({"epsilon": 50}, "hardly a bound"),
    ],
)
def test_the_first_paragraph_says_what_is_learnt_how_accurate_and_what_next(more, told) -> None:
    release = replace(_release(2, 2, **more), is_private=True)
    text = groups_report(release)
    assert told in text and "of the truth" in text and "It may be published: run louver verify" in text
    assert ("its levels composed" in text) == ("delta" in more)
    numbers = [int(release.counts[0, 0]), release.uncertainty.lower[0, 0], release.uncertainty.upper[0, 0]]
    assert f'<td class="number">{numbers[0]:,}</td>' in text and f"{numbers[1]:,} to {numbers[2]:,}" in text
    assert "Do not publish this" in groups_report(_release(2, 2, **more))


def test_labels_of_regions_are_text() -> None:
    text = groups_report(_release(2, 3, names="<b>$a_{}$ & a long name of a place that nobody shortens"))
    assert "<b>" not in text.replace('<div class="tile"><b>', "") and "&lt;b&gt;$a_0$ &amp; a long" in text
    assert "…" in text
