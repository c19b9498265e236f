"""Labels are drawn as they are, however much they look like mathematics."""

from __future__ import annotations

import pyarrow as pa
import pytest
from matplotlib.figure import Figure

import louver as lv
from louver._figure import literal_text
from louver.report.anonymize import anonymize_report, inside_report
from louver.report.page import picture

LABEL = r"$\frac{1$"


@pytest.mark.parametrize("scale", ["linear", "log", "symlog"])
def test_labels_are_not_mathematics_and_powers_of_ten_are(scale: str) -> None:
    figure = Figure()
    axes = figure.subplots()
    axes.plot([1, 1000], [1, 2], label=LABEL)
    axes.set(xscale=scale, xlabel=LABEL, title=LABEL)
    axes.set_yticks([1, 2], [LABEL, "b"])
    axes.legend()
    svg = picture(literal_text(figure), "a figure")
    assert svg.count(LABEL) >= 4
    assert "mathdefault" not in svg


def test_an_anonymised_table_with_odd_labels_is_drawn() -> None:
    table = pa.table({LABEL: [LABEL, LABEL, "b", "b"], "age": [1, 2, 3, 4]})
    release = lv.anonymize(table, quasi=[LABEL, "age"], k=2, method="greedy")
    for page in (anonymize_report(release), inside_report(release)):
        assert LABEL in page
