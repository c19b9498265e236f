"""The report inside a TopDown release, and that of a plan."""

from __future__ import annotations

from html import escape

from louver import __version__
from louver.release.pages import in_memory, page_of
from louver.report.page import page, picture, table
from louver.topdown.planning.forecast import PlanForecast, percent
from louver.topdown.result import TopDownRelease
from louver.topdown.spine.forecast import SpineForecast

__all__ = ["plan_report", "topdown_report"]


def topdown_report(release: TopDownRelease) -> str:
    """The report as HTML. It is published with the release and made only from what is published in it."""
    return page_of(release.manifest({}), in_memory({}))


def _spine(spine: SpineForecast) -> list[str]:
    """Areas and geographic levels under both spines."""
    rows = (
        (
            one.kind,
            one.area or "mean of all",
            f"{one.leaves:,.0f}",
            f"{one.steps_geography:,.1f}",
            f"{one.steps_spine:,.1f}",
            f"{one.error_geography:,.2f}",
            f"{one.error_spine:,.2f}",
        )
        for one in (*spine.levels, *spine.areas)
    )
    return [
        "<h2>Areas, with the geography and with the spine</h2>",
        *(f"<p>{escape(line.strip())}</p>" for line in spine.in_words()),
        table(
            [
                "kind",
                "area",
                "leaves",
                "steps, geography",
                "steps, spine",
                "error, geography",
                "error, spine",
            ],
            rows,
        ),
    ]


def plan_report(forecast: PlanForecast) -> str:
    """The page as HTML. It is public: nothing on it comes from the records."""
    sections = [
        f'<p class="verdict">{escape(" ".join(forecast.in_words()))}</p>',
        "<p>This page is public: it is made from the spec and public files; no record was opened, and nothing was spent.</p>",
        *(f"<p>{escape(sentence)}</p>" for sentence in forecast.notes),
        picture(forecast.plot(), "How each plan divides the budget, and the errors that result."),
        "<h2>Every query at every level</h2>",
        table(
            [
                "plan",
                "level",
                "query",
                "share",
                "people",
                "mean absolute error",
                "standard error",
                "relative",
                "how",
            ],
            (
                (
                    line.plan,
                    line.level,
                    line.query,
                    line.share or "-",
                    f"{line.people:,.1f}",
                    f"{line.mean_absolute:,.2f}",
                    f"{line.standard_error:,.2f}",
                    "-" if line.relative is None else percent(line.relative),
                    line.method,
                )
                for line in forecast.lines
            ),
        ),
        "<p>Errors are those of one count in one region, averaged over regions. Shares are of the whole budget.</p>",
        *([] if forecast.spine is None else _spine(forecast.spine)),
    ]
    how = (
        f"{forecast.simulations} simulated releases of {forecast.stand_in}"
        if forecast.simulations
        else "closed form"
    )
    return page("TopDown: what to expect", f"Forecast from {how}", sections, f"louver {__version__}")
