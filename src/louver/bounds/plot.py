"""Pictures of an audit. Matplotlib is imported inside the functions: it is slow to load."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from louver._figure import blank_figure, literal_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from louver.bounds.result import BoundedCell, BoundsAudit, Comparison
    from louver.bounds.search import Suggestions

__all__ = ["narrowest", "plot_audit", "plot_comparison", "plot_suggestions"]

SAFE, RISK, MUTED, INK = "#2a6f97", "#c1442d", "#9aa5b1", "#22313f"
MAX_FOREST_ROWS = 24
MAX_DOTS = 400
LABEL_WIDTH = 58
VALUE_CLASSES = {"1": 1, "2": 2, "3-5": 3, "6-10": 6, "11-100": 11, "101-1000": 101, "> 1000": 1001}
LINEAR_UP_TO = 100  # counts beyond this are drawn on a logarithmic axis


def plot_audit(audit: BoundsAudit) -> Figure:
    """Left: the cells with the fewest feasible values, each value a dot. Right: the number of values that cells can have."""
    shown, counts = narrowest(audit)
    figure, (left, right) = _figure(2, (11.5, max(3.2, 1.2 + 0.21 * len(shown))), [2.1, 1])
    _forest(left, shown, audit.small)
    _ambiguity(right, counts)
    return literal_text(figure)


def narrowest(audit: BoundsAudit) -> tuple[list[BoundedCell], dict[str, int]]:
    """The content of the picture: the most exposed cells, some of which are still open, and cells by number of feasible values."""
    cells = sorted((cell for cell in audit.cells() if cell.upper > 0), key=_narrowness)
    certain = [cell for cell in cells if cell.is_determined]
    open_ones = [cell for cell in cells if not cell.is_determined]
    n_open = min(len(open_ones), max(MAX_FOREST_ROWS // 2, MAX_FOREST_ROWS - len(certain)))
    shown = certain[: MAX_FOREST_ROWS - n_open] + open_ones[:n_open]
    sizes = np.array([cell.n_values for cell in cells], dtype=np.int64)
    counts = np.histogram(sizes, bins=[*VALUE_CLASSES.values(), np.inf])[0].tolist()
    return shown, dict(zip(VALUE_CLASSES, counts, strict=True))


def plot_comparison(comparison: Comparison) -> Figure:
    """Disclosed small cells and disclosed rows of each arrangement."""
    lines = comparison.lines[:MAX_FOREST_ROWS][::-1]
    n_slots = max(len(lines), 3)
    figure, (axes,) = _figure(1, (11, 1.2 + 0.3 * n_slots), [1])
    places = np.arange(len(lines))
    axes.barh(
        places + 0.2,
        [s.disclosed_small_cells for _, s in lines],
        0.38,
        color=RISK,
        label="small cells disclosed",
    )
    axes.barh(places - 0.2, [s.disclosed_rows for _, s in lines], 0.38, color=MUTED, label="rows disclosed")
    axes.set_yticks(places, [_short(a.label, LABEL_WIDTH) for a, _ in lines], parse_math=False)
    axes.set_ylim((len(lines) - n_slots) / 2 - 0.6, (len(lines) + n_slots) / 2 - 0.4)
    axes.set_xlabel("count")
    _whole_ticks(axes)
    axes.legend(frameon=False, loc="lower left", bbox_to_anchor=(0, 1), ncols=2, fontsize=9)
    return literal_text(figure)


def plot_suggestions(suggestions: Suggestions) -> Figure:
    """Information kept against zero cells still visible, for every suggested redesign."""
    figure, (axes,) = _figure(1, (11, 4.6), [1])
    share = [100 * line.share for line in suggestions.lines]
    zeros = [line.summary.disclosed_zero_cells for line in suggestions.lines]
    rows = [line.summary.disclosed_rows for line in suggestions.lines]
    most = max(rows, default=0) or 1
    axes.scatter(zeros, share, s=[40 + 200 * n / most for n in rows], color=SAFE, alpha=0.75, linewidths=0)
    for number, (x, y) in enumerate(zip(zeros, share, strict=True), start=1):
        if number <= 9:
            axes.annotate(
                str(number), (x, y), xytext=(6, 4), textcoords="offset points", fontsize=9, color=INK
            )
    pad = max(1, 0.08 * (max(zeros, default=0) - min(zeros, default=0)))
    axes.set_xlim(max(min(zeros, default=0) - pad, -0.5), max(zeros, default=0) + pad)
    _whole_ticks(axes)
    axes.set_xlabel("zero cells visible")
    axes.set_ylabel("information about the responses kept, %")
    axes.set_title("Safe redesigns; a larger dot has more determined rows", loc="left", fontsize=10.5)
    axes.grid(alpha=0.25)
    return literal_text(figure)


def _figure(n_axes: int, size: tuple[float, float], widths: list[float]) -> tuple[Figure, list[Axes]]:
    """A figure with plain axes that needs no display."""
    figure = blank_figure(*size)
    axes = figure.subplots(1, n_axes, gridspec_kw={"width_ratios": widths}, squeeze=False)[0]
    for one in axes:
        one.spines[["top", "right"]].set_visible(False)
        one.tick_params(colors=INK, labelsize=8.5)
        for text in (one.xaxis.label, one.yaxis.label):
            text.set_size(10)
    return figure, list(axes)


def _whole_ticks(axes: Axes) -> None:
    """Ticks of the horizontal axis: whole counts."""
    from matplotlib.ticker import MaxNLocator

    axes.xaxis.set_major_locator(MaxNLocator("auto", integer=True, steps=[1, 2, 5, 10]))


def _forest(axes: Axes, cells: list[BoundedCell], small: int) -> None:
    for place, cell in enumerate(reversed(cells)):
        values = _some_values(cell)
        is_risky = cell.is_determined and cell.lower < small
        colour = RISK if is_risky else INK if cell.is_determined else SAFE
        axes.plot([cell.lower, cell.upper], [place, place], color=colour, alpha=0.35, linewidth=1.6)
        axes.plot(
            values, [place] * len(values), "D" if cell.is_determined else ".", color=colour, markersize=5
        )
    axes.set_yticks(range(len(cells)), [_label(cell) for cell in reversed(cells)], parse_math=False)
    if max((cell.upper for cell in cells), default=0) > LINEAR_UP_TO:
        axes.set_xscale("symlog", linthresh=10)
        axes.set_xlim(left=0)
    else:
        _whole_ticks(axes)
    axes.set_xlabel("feasible counts, gaps included; red: a small count is certain")
    axes.set_title("Cells with the fewest feasible values", loc="left", fontsize=10.5)
    axes.grid(axis="x", alpha=0.25)


def _ambiguity(axes: Axes, counts: dict[str, int]) -> None:
    axes.barh(list(counts), list(counts.values()), color=[RISK, *[SAFE] * (len(counts) - 1)])
    axes.invert_yaxis()
    for place, count in enumerate(counts.values()):
        axes.annotate(
            str(count), (count, place), xytext=(4, 0), textcoords="offset points", va="center", fontsize=8.5
        )
    axes.margins(x=0.15)
    _whole_ticks(axes)
    axes.set_xlabel("nonzero cells")
    axes.set_title("Number of feasible values per cell", loc="left", fontsize=10.5)


def _narrowness(cell: BoundedCell) -> tuple[int, int]:
    return cell.n_values, cell.lower


def _some_values(cell: BoundedCell) -> list[int]:
    """All feasible values, or every n-th and the last if there are too many to draw."""
    every = -(-cell.n_values // MAX_DOTS)
    values: list[int] = []
    passed = 0
    for start, stop, step in cell.values:
        values.extend(range(start + -passed % every * step, stop + 1, step * every))
        passed += (stop - start) // step + 1
    return values if values[-1] == cell.upper else [*values, cell.upper]


def _label(cell: BoundedCell) -> str:
    """Labels of the row, shortened if necessary, and of the column."""
    col = _short(", ".join(cell.col.values()), LABEL_WIDTH // 2)
    return f"{_short(', '.join(cell.row.values()), LABEL_WIDTH - len(col))} → {col}"


def _short(text: str, width: int) -> str:
    """Text on one line, limited to the given number of characters."""
    line = " ".join(text.split())
    return line if len(line) <= width else line[: width - 1] + "…"
