"""Figures show text literally (a label such as `$x$` is a label, not mathematics) and are shown inline in a notebook."""

from __future__ import annotations

import io
import re
import warnings
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from matplotlib.ticker import Formatter

__all__ = ["blank_figure", "literal_text", "svg"]

SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def blank_figure(width: float, height: float) -> Figure:
    """An empty figure that needs no display and is drawn inline in a notebook, whatever the backend."""
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
    """Switch mathematics off for all text of a finished figure; powers of ten on logarithmic axes are written 10³."""
    from matplotlib.text import Text
    from matplotlib.ticker import LogFormatterSciNotation

    for axes in figure.axes:
        for axis in (axes.xaxis, axes.yaxis):
            if isinstance(axis.get_major_formatter(), LogFormatterSciNotation):
                axis.set_major_formatter(_plain(axis.get_major_formatter()))
                axis.set_minor_formatter(_plain(axis.get_minor_formatter()))
    for text in figure.findobj(Text):
        text.set_parse_math(False)
    return figure


def _plain(formatter: Formatter) -> Formatter:
    """A formatter of powers whose labels need no mathematics; typesetting it would take a fifth of a page's time."""
    plain = _plain_class()()
    vars(plain).update(vars(formatter))
    return plain


@cache
def _plain_class() -> type[Formatter]:
    from matplotlib.ticker import LogFormatterSciNotation

    class PlainPowers(LogFormatterSciNotation):
        def __call__(self, x: float, pos: int | None = None) -> str:
            return plain_power(super().__call__(x, pos))

    return PlainPowers


def plain_power(text: str) -> str:
    r"""A label written by Matplotlib, without mathematical notation.

    Examples
    --------
    >>> plain_power(r"$\mathdefault{10^{3}}$"), plain_power(r"$\mathdefault{-2\times10^{-1}}$"), plain_power("")
    ('10³', '−2×10⁻¹', '')
    """
    text = re.sub(r"\^\{(-?\d+)\}", lambda power: power[1].translate(SUPERSCRIPTS), text)
    return re.sub(r"[$}]|\\mathdefault\{", "", text).replace("\\times", "×").replace("-", "−")


def svg(figure: Figure) -> str:
    """A figure as inline SVG: text remains searchable text, and equal figures give equal bytes."""
    from matplotlib import rc_context

    stream = io.StringIO()
    with (
        rc_context({"svg.fonttype": "none", "svg.hashsalt": "louver", "font.family": "sans-serif"}),
        warnings.catch_warnings(),
    ):
        # The browser has glyphs that Matplotlib's font lacks, and the warning would quote a label.
        warnings.filterwarnings("ignore", message="Glyph")
        figure.savefig(stream, format="svg", metadata={"Date": None, "Creator": None})
    return _inline(stream.getvalue())


def _inline(drawing: str) -> str:
    """The drawing alone: no prologue, no namespace declarations, and only ids that are referenced."""
    drawing = re.sub(
        r"^.*?(?=<svg)|<metadata>.*?</metadata>|<!--.*?-->| xmlns(:\w+)?=\"[^\"]*\"",
        "",
        drawing,
        flags=re.DOTALL,
    )
    used = set(re.findall(r'(?:href="#|url\(#)([^")]+)', drawing))
    return re.sub(r' id="([^"]*)"', lambda found: found[0] if found[1] in used else "", drawing)
