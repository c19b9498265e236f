"""Figures of an anonymised release. Matplotlib is imported inside the functions: it is slow to load."""

from __future__ import annotations

from typing import TYPE_CHECKING

from louver._figure import blank_figure, literal_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.figure import Figure

    from louver.anonymize.alternatives import CurvePoint
    from louver.anonymize.analyses import Comparisons, TermComparison
    from louver.anonymize.result import AnonymizedRelease

__all__ = ["plot_analyses", "plot_comparison", "plot_curve", "plot_release"]

BAR, INK, BEFORE = "#2a6f97", "#22313f", "#c9d3dc"
LINES = ("#2a6f97", "#c1442d", "#6a994e", "#8d6a9f", "#bc8034")
MAX_SIZES = 30
MAX_TICKS = 10
PANELS_WIDE = 3
MAX_TERMS = 40
WIDEST = 5.0
"""Greatest distance from the original estimate at which an interval is drawn, in half-widths of the original interval."""
LOST = "#c1442d"


def plot_release(release: AnonymizedRelease) -> Figure:
    """Left: mean share of detail lost in each quasi-identifier. Right: number of classes of each size."""
    from matplotlib.ticker import MaxNLocator, PercentFormatter

    figure = blank_figure(11, 3.8)
    left, right = figure.subplots(1, 2)
    losses = release.published_losses[::-1]
    left.barh([name for name, _ in losses], [share for _, share in losses], color=BAR)
    left.xaxis.set_major_formatter(PercentFormatter(1.0))
    left.set_title("Detail lost per quasi-identifier", loc="left", fontsize=10.5)
    sizes = release.risk.class_sizes
    shown, rest = sizes[:MAX_SIZES], sum(count for _, count in sizes[MAX_SIZES:])
    right.bar([size for size, _ in shown], [count for _, count in shown], color=BAR)
    right.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
    right.set_xlabel(
        f"{release.risk.counted} in the class" + (f" ({rest} larger classes not shown)" if rest else "")
    )
    right.set_title("Classes by size", loc="left", fontsize=10.5)
    for axes in (left, right):
        axes.spines[["top", "right"]].set_visible(False)
        axes.tick_params(colors=INK, labelsize=8.5)
    return literal_text(figure)


def plot_comparison(release: AnonymizedRelease) -> Figure:
    """Shares of the records in every bin of every quasi-identifier, before (grey) and after (blue)."""
    from matplotlib.ticker import PercentFormatter

    shown = release.comparison.distributions
    n_high = -(-len(shown) // PANELS_WIDE)
    figure = blank_figure(11, 2.9 * n_high)
    panels = figure.subplots(n_high, PANELS_WIDE, squeeze=False).ravel()
    for axes, line in zip(panels, shown, strict=False):
        places = range(len(line.bins))
        axes.bar([x - 0.2 for x in places], line.before, 0.4, color=BEFORE, label="before")
        axes.bar([x + 0.2 for x in places], line.after, 0.4, color=BAR, label="after")
        step = max(1, -(-len(line.bins) // MAX_TICKS))
        axes.set_xticks(list(places)[::step], [_short(name) for name in line.bins[::step]])
        axes.tick_params(colors=INK, labelsize=8)
        axes.tick_params(axis="x", rotation=40 if any(len(name) > 4 for name in line.bins) else 0)
        axes.yaxis.set_major_formatter(PercentFormatter(1.0))
        axes.set_title(f"{line.name} (distance {line.distance:.1%})", loc="left", fontsize=10)
        axes.spines[["top", "right"]].set_visible(False)
    panels[0].legend(frameon=False, fontsize=8.5)
    for axes in panels[len(shown) :]:
        axes.set_visible(False)
    return literal_text(figure)


def plot_analyses(found: Comparisons) -> Figure:
    """Intervals of every estimate before (grey) and after (blue; red where it does not survive), the worst first.

    Each is drawn in half-widths of its original interval, so that estimates of any size fit in one picture.
    """
    shown = sorted(found.terms, key=lambda term: (term.survives, term.overlap))[:MAX_TERMS][::-1]
    figure = blank_figure(9, 1.2 + 0.26 * len(shown))
    axes = figure.subplots()
    for place, term in enumerate(shown):
        axes.plot([-1, 1], [place, place], color=BEFORE, lw=7, solid_capstyle="butt")
        after = _in_half_widths(term)
        if after is not None:
            low, middle, high = after
            colour = BAR if term.survives else LOST
            axes.plot([low, high], [place, place], color=colour, lw=2.2, solid_capstyle="butt")
            axes.plot([middle], [place], "o", color=colour, ms=4)
    axes.axvline(0, color=INK, lw=0.6)
    axes.set_yticks(range(len(shown)), [_short(f"{term.analysis}: {term.term}", 44) for term in shown])
    axes.set_xlim(-WIDEST - 0.3, WIDEST + 0.3)
    axes.set_xlabel("half-widths of the original 95 % interval")
    axes.tick_params(colors=INK, labelsize=8)
    axes.spines[["top", "right"]].set_visible(False)
    return literal_text(figure)


def _in_half_widths(term: TermComparison) -> tuple[float, float, float] | None:
    """The interval after and its middle, from the original estimate, cut off at the margin; None if there is none."""
    if term.after is None or term.after_lower is None or term.after_upper is None:
        return None
    half = (term.before_upper - term.before_lower) / 2
    if half <= 0:
        return None
    low, middle, high = (
        max(-WIDEST, min(WIDEST, (value - term.before) / half))
        for value in (term.after_lower, term.after, term.after_upper)
    )
    return low, middle, high


def plot_curve(points: Sequence[CurvePoint]) -> Figure:
    """Detail lost against the highest re-identification risk, one line per method."""
    from matplotlib.ticker import NullFormatter, PercentFormatter

    figure = blank_figure(8, 4.2)
    axes = figure.subplots()
    methods = dict.fromkeys(point.method for point in points)
    for method, colour in zip(methods, LINES, strict=False):
        line = [point for point in points if point.method == method]
        axes.plot(
            [p.highest_risk for p in line], [p.gcp for p in line], "o-", color=colour, label=method, ms=4
        )
    axes.set_xscale("log")
    ks = sorted({point.k for point in points})
    axes.set_xticks([1 / k for k in ks], [f"k = {k}\n{1 / k:.3g}" for k in ks])
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.yaxis.set_major_formatter(PercentFormatter(1.0))
    axes.set_xlabel("highest re-identification risk (1 / smallest class)")
    axes.set_ylabel("detail lost")
    axes.set_ylim(bottom=0)
    axes.legend(frameon=False, fontsize=9)
    axes.tick_params(colors=INK, labelsize=8.5)
    axes.spines[["top", "right"]].set_visible(False)
    return literal_text(figure)


def _short(name: str, most: int = 14) -> str:
    return name if len(name) <= most else name[: most - 1] + "\u2026"
