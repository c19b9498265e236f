"""Figures show text as it is (a label such as `$x$` is a label, not mathematics) and stand inline in a notebook."""

from __future__ import annotations

import io
import re
import warnings
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["blank_figure", "literal_text", "svg"]


def blank_figure(width: float, height: float) -> Figure:
    """An empty figure that needs no display, and that a notebook draws inline whatever backend it has."""
    from matplotlib.backends.backend_svg import FigureCanvasSVG

    figure = _inline_class()(figsize=(width, height), layout="constrained")
    FigureCanvasSVG(figure)
    return figure


@cache
def _inline_class() -> type[Figure]:
    from matplotlib.figure import Figure

    class InlineFigure(Figure):
        def _repr_html_(self) -> str:
            return svg(self)

    return InlineFigure


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


def svg(figure: Figure) -> str:
    """A figure as inline SVG: text stays text (searchable), and the same figure gives the same bytes."""
    from matplotlib import rc_context

    stream = io.StringIO()
    with (
        rc_context({"svg.fonttype": "none", "svg.hashsalt": "louver", "font.family": "sans-serif"}),
        warnings.catch_warnings(),
    ):
        # The browser has letters that Matplotlib's font lacks, and the warning would quote a label.
        warnings.filterwarnings("ignore", message="Glyph")
        figure.savefig(stream, format="svg", metadata={"Date": None, "Creator": None})
    return _inline(stream.getvalue())


def _inline(drawing: str) -> str:
    """The drawing alone: no prologue, no addresses of namespaces, and only names that are referred to."""
    drawing = re.sub(
        r"^.*?(?=<svg)|<metadata>.*?</metadata>|<!--.*?-->| xmlns(:\w+)?=\"[^\"]*\"",
        "",
        drawing,
        flags=re.DOTALL,
    )
    used = set(re.findall(r'(?:href="#|url\(#)([^")]+)', drawing))
    return re.sub(r' id="([^"]*)"', lambda found: found[0] if found[1] in used else "", drawing)
