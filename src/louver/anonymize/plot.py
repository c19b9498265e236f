"""Pictures of an anonymised release. Matplotlib is imported only here, inside the functions."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from louver.anonymize.result import AnonymizedRelease

__all__ = ["plot_release"]

BAR, INK = "#2a6f97", "#22313f"
MAX_SIZES = 30


def plot_release(release: AnonymizedRelease) -> Figure:
    """Left: mean share of detail lost in each quasi-identifier. Right: how many classes have which size."""
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator, PercentFormatter

    figure = Figure(figsize=(11, 3.8), layout="constrained")
    FigureCanvasSVG(figure)
    left, right = figure.subplots(1, 2)
    names = [name for name, _ in release.utility.by_column][::-1]
    left.barh(names, [share for _, share in release.utility.by_column][::-1], color=BAR)
    left.xaxis.set_major_formatter(PercentFormatter(1.0))
    left.set_title("Detail lost per quasi-identifier", loc="left", fontsize=10.5)
    sizes = release.risk.class_sizes
    shown, rest = sizes[:MAX_SIZES], sum(count for _, count in sizes[MAX_SIZES:])
    right.bar([size for size, _ in shown], [count for _, count in shown], color=BAR)
    right.xaxis.set_major_locator(MaxNLocator(integer=True))
    right.set_xlabel("records in the class" + (f" ({rest} larger classes not shown)" if rest else ""))
    right.set_title("Classes by size", loc="left", fontsize=10.5)
    for axes in (left, right):
        axes.spines[["top", "right"]].set_visible(False)
        axes.tick_params(colors=INK, labelsize=8.5)
    return figure
