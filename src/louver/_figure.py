"""Figures show text as it is: a label such as `$x$` is a label, not mathematics."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["literal_text"]


def literal_text(figure: Figure) -> Figure:
    """Switch mathematics off for all text of a finished figure but the powers of ten on logarithmic axes."""
    from matplotlib.text import Text
    from matplotlib.ticker import LogFormatterMathtext

    powers: set[int] = set()
    for axes in figure.axes:
        for axis in (axes.xaxis, axes.yaxis):
            if isinstance(axis.get_major_formatter(), LogFormatterMathtext):
                powers |= {id(text) for text in axis.get_ticklabels(which="both")}
    for text in figure.findobj(Text):
        if id(text) not in powers:
            text.set_parse_math(False)
    return figure
