"""The page of a profile: what the table contains, what singles people out, and what to do about it."""

from __future__ import annotations

from html import escape

from louver._version import __version__
from louver.data.dependencies import CHANCE, LEAST_ACCURACY, LEAST_GAIN
from louver.profile.result import DistributionOfValues, Profile, dependency_lines, percent
from louver.profile.roles import MOSTLY_ALONE, Role
from louver.report.page import page, picture, table, tiles, verdict

__all__ = ["profile_report"]

MAX_LISTED = 100
BAR_WIDTH, BAR_HEIGHT, GAP = 14, 46, 2  # sizes sizes of a small chart, in pixels
COLOUR = "#2a6f97"


def profile_report(profile: Profile) -> str:
    """The report as HTML."""
    sections = [
        verdict(profile.verdict),
        _tiles(profile),
        "<h2>Columns</h2>",
        _column_table(profile),
        "<h2>How identifying each column is</h2>",
        picture(
            profile.plot(),
            "Records with a unique value; red: enough of them for the column to single people out.",
        ),
        "<h2>Sets of columns that single people out</h2>",
        _sets(profile),
        "<h2>Columns that determine others</h2>",
        _dependencies(profile),
        *_scenarios(profile),
        "<h2>How values are spread</h2>",
        _distributions(profile),
        _method(profile),
    ]
    subtitle = f"Profile of {profile.source}. For the data steward only: it shows confidential counts and is not for release."
    return page("Contents of this table", subtitle, sections, f"Made by louver {__version__}.")


def _tiles(profile: Profile) -> str:
    n_quasi = sum(column.role is Role.QUASI for column in profile.columns)
    n_alone = sum(column.share_alone >= profile.share for column in profile.columns)
    return tiles(
        [
            (profile.n_rows, "records", False),
            (len(profile.columns), "columns", False),
            (n_alone, "columns that single people out by themselves", n_alone > 0),
            (n_quasi, "quasi-identifiers suggested", False),
            (profile.n_sets, "small sets that single people out", bool(profile.sets)),
            (len(profile.dependencies), "pairs in which one determines the other", False),
        ]
    )


def _column_table(profile: Profile) -> str:
    lines = [
        [
            c.name,
            str(c.kind),
            c.distinct,
            c.missing,
            _unbroken(c.share_alone),
            str(c.role),
            c.reason,
        ]
        for c in profile.columns
    ]
    return table(["column", "kind", "different values", "missing", "alone", "suggested role", "why"], lines)


def _unbroken(share: float) -> str:
    return percent(share).replace(" ", "\u00a0")


def _sets(profile: Profile) -> str:
    if not profile.sets:
        content = (
            f"No set of up to {profile.largest} columns singles out {percent(profile.share)} of the records."
        )
        return f"<p>{escape(content)}</p>"
    lines = [
        [", ".join(one.columns), len(one.columns), one.n_alone, _unbroken(one.share)]
        for one in profile.sets[:MAX_LISTED]
    ]
    note = "" if profile.is_complete else "<p>Only the most promising sets were examined.</p>"
    return table(["columns", "how many", "records alone", "share"], lines) + note


def _dependencies(profile: Profile) -> str:
    if not profile.dependencies:
        return "<p>No column determines another.</p>"
    lines = dependency_lines(profile.dependencies)[:MAX_LISTED]
    return "<ul>" + "".join(f"<li>{escape(line)}</li>" for line in lines) + "</ul>"


def _scenarios(profile: Profile) -> list[str]:
    """The risk of a sample: one line for each set of columns that someone might know, then the details behind it."""
    if not profile.scenarios:
        return []
    header = [
        "who knows",
        "people of the population",
        "records alone",
        "expected matches",
        "highest risk",
        "average risk",
    ]
    lines = [
        [
            f"{one.name}: {', '.join(one.columns)}",
            round(one.people),
            one.unique_records,
            round(one.expected_matches, 1),
            percent(one.journalist_highest),
            percent(one.marketer),
        ]
        for one in profile.scenarios
    ]
    details = "".join(
        f"<p>{'<br>'.join(escape(line.strip()) for line in one.lines())}</p>" for one in profile.scenarios
    )
    note = (
        "A combination of values that f records in the file have is taken to belong to F people in the population, estimated from the "
        "sampling weights; the risk is the expected 1 / F. People alone in the population are estimated by "
        "models that can differ a lot: treat them as an order of magnitude."
    )
    return [
        "<h2>Risk of records, by what an attacker knows</h2>",
        table(header, lines),
        details,
        f"<p>{note}</p>",
    ]


def _distributions(profile: Profile) -> str:
    """A small chart of each column next to its figures."""
    rows = "".join(
        f"<tr><td>{escape(column.name)}</td><td>{_bars(column.name, found)}</td><td>{escape(_numbers(found))}</td></tr>"
        for column in profile.columns
        if (found := column.distribution) is not None and found.counts
    )
    return (
        f'<table class="facts"><tbody>{rows}</tbody></table><p>Values of ids and free text are not shown.</p>'
    )


def _numbers(found: DistributionOfValues) -> str:
    return "; ".join(f"{label}: {count:,}" for label, count in zip(found.labels, found.counts, strict=True))


def _bars(name: str, found: DistributionOfValues) -> str:
    most = max(max(found.counts), 1)
    step = BAR_WIDTH + GAP
    bars = "".join(
        f'<rect x="{i * step}" y="{BAR_HEIGHT - height}" width="{BAR_WIDTH}" height="{height}" fill="{COLOUR}"/>'
        for i, height in enumerate(max(round(BAR_HEIGHT * n / most), 1 if n else 0) for n in found.counts)
    )
    width = len(found.counts) * step
    label = escape(f"distribution of {name}")
    return (
        f'<svg role="img" aria-label="{label}" width="{width}" height="{BAR_HEIGHT}" '
        f'viewBox="0 0 {width} {BAR_HEIGHT}">{bars}</svg>'
    )


def _method(profile: Profile) -> str:
    text = (
        f"A set of columns singles people out if at least {percent(profile.share)} of the records have a unique combination of values, and "
        "no subset of the columns reaches that share. A column identifies by itself if at least "
        f"{MOSTLY_ALONE:.0%} of its values occur once. A column determines another if, among records that share its value, at least "
        f"{LEAST_ACCURACY:.0%} agree with the commonest value of the other; if that corrects at least {LEAST_GAIN:.0%} of the errors of "
        f"the commonest value alone; and if chance would produce it less than once in {1 / CHANCE:,.0f} tables. Kinds and "
        "roles are guesses from values and names: check them."
    )
    return f"<h2>How to read this</h2><p>{escape(text)}</p>"
