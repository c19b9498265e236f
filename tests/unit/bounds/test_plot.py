"""Pictures of results: what is drawn, and that no label is taken for anything but text."""

from __future__ import annotations

from itertools import pairwise

import pytest

from louver._verdict import Level, Verdict
from louver.bounds.disclosure import BoundsSummary
from louver.bounds.plot import LABEL_WIDTH, MAX_DOTS, MAX_FOREST_ROWS, _label, _some_values, plot_comparison
from louver.bounds.plot import plot_suggestions as draw_suggestions
from louver.bounds.problem import Arrangement
from louver.bounds.result import BoundedCell, Comparison
from louver.bounds.search import Suggestion, Suggestions

SUMMARY = BoundsSummary(
    rows=2,
    cols=2,
    n=15,
    reduced_total=15,
    zero_rows=0,
    unit_rows=0,
    disclosed_rows=0,
    disclosed_zero_cells=0,
    disclosed_small_cells=0,
    certain_rows=0,
    certain_people=0,
    small_rows=0,
    small_row_people=0,
)


def cell(*runs: tuple[int, int, int], row: str = "A", col: str = "yes") -> BoundedCell:
    return BoundedCell(
        row={"site": row}, col={"ill": col}, lower=runs[0][0], upper=runs[-1][1], values=list(runs)
    )


@pytest.mark.parametrize(
    "runs",
    [
        [(3, 3, 1)],
        [(1, 9, 2), (20, 20, 1)],
        [(0, MAX_DOTS - 1, 1)],
    ],
)
def test_few_values_are_all_drawn(runs: list[tuple[int, int, int]]) -> None:
    expected = [value for start, stop, step in runs for value in range(start, stop + 1, step)]
    assert _some_values(cell(*runs)) == expected


@pytest.mark.parametrize(
    "runs",
    [
        [(0, 10 * MAX_DOTS, 1)],
        [(10 * i, 10 * i, 1) for i in range(5 * MAX_DOTS)],
        [(100 * i, 100 * i + 3 * i, 3) for i in range(90)],
    ],
)
def test_many_values_are_thinned_out_evenly(runs: list[tuple[int, int, int]]) -> None:
    """Ascending feasible values from the first to the last, none left out for longer than the others."""
    everything = [value for start, stop, step in runs for value in range(start, stop + 1, step)]
    drawn = _some_values(cell(*runs))
    assert (drawn[0], drawn[-1]) == (everything[0], everything[-1])
    assert len(drawn) <= MAX_DOTS + 1
    places = [everything.index(value) for value in drawn]
    steps = {b - a for a, b in pairwise(places[:-1])}
    assert len(steps) == 1


def test_labels_stay_short_and_keep_the_column() -> None:
    long = _label(cell((1, 1, 1), row="a row\nlabel " * 20, col="yes"))
    assert long.endswith("… → yes")
    assert "\n" not in long
    both = _label(cell((1, 1, 1), row="r" * 99, col="c" * 99))
    assert len(both) <= LABEL_WIDTH + len(" → ")
    assert both.count("…") == 2


def test_names_of_arrangements_are_text() -> None:
    arrangement = Arrangement(rows=("a",), cols=("b",), name="$x_{ $ and 100 $")
    figure = plot_comparison(Comparison(lines=((arrangement, SUMMARY),) * (MAX_FOREST_ROWS + 5)))
    figure.canvas.draw()
    labels = [text.get_text() for text in figure.axes[0].get_yticklabels()]
    assert labels == ["$x_{ $ and 100 $"] * MAX_FOREST_ROWS


@pytest.mark.parametrize("n_lines", [0, 1, 12])
def test_suggestions(n_lines: int) -> None:
    """The first nine are numbered, and the axis of counts has whole numbers only."""
    line = Suggestion(
        arrangement=Arrangement(rows=("a",), cols=("b",)),
        summary=SUMMARY,
        verdict=Verdict(Level.OK, ""),
        bits=1.0,
        share=0.5,
    )
    figure = draw_suggestions(Suggestions(lines=(line,) * n_lines, is_proved=True, examined=1, bits=2.0))
    figure.canvas.draw()
    (axes,) = figure.axes
    assert [text.get_text() for text in axes.texts] == [str(number + 1) for number in range(min(n_lines, 9))]
    assert all(float(tick).is_integer() for tick in axes.get_xticks())
