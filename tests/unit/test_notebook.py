"""What a notebook shows of a result: a table, and figures inline."""

from __future__ import annotations

from pathlib import Path

import pytest

import louver as lv
from louver._figure import blank_figure
from louver._html import Shown, html_table


def test_numbers_and_hostile_labels() -> None:
    found = html_table(["<n>", "label"], [(1234, "<script>"), (5, None)])
    assert '<th class="number">&lt;n&gt;</th>' in found
    assert '<td class="number">1,234</td><td>&lt;script&gt;</td>' in found


def test_a_figure_is_inline_svg() -> None:
    assert blank_figure(2, 1)._repr_html_().startswith("<svg ")  # type: ignore[attr-defined]


def test_long_results_say_how_many_lines_are_left(tmp_path: Path) -> None:
    path = tmp_path / "counts.csv"
    path.write_text("site,ill,n\n" + "".join(f"s{i},{ill},{7 + i}\n" for i in range(30) for ill in "ab"))
    shown = lv.bounds(path, rows=["site"], cols=["ill"], weight="n")._repr_html_()
    assert shown.count("<tr>") == 21 and "and 40 more" in shown


def test_what_is_shown_needs_a_frame() -> None:
    with pytest.raises(NotImplementedError):
        Shown().to_frame()
