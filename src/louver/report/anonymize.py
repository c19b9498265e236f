"""The report inside a k-anonymous release, and the one for the steward, which compares it with the source."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from html import escape
from pathlib import Path

from louver import __version__
from louver.anonymize.analyses import Comparisons
from louver.anonymize.metrics import NEARLY
from louver.anonymize.plot import plot_analyses, plot_comparison, plot_curve
from louver.anonymize.result import COLUMNS_FILE, AnonymizedRelease
from louver.anonymize.verdict import level_together
from louver.data.write import replacing
from louver.release.pages import Published, in_memory, page_of
from louver.release.pages.anonymize import TITLE, ReleaseContent, optimality
from louver.release.pages.frame import verdict_line
from louver.report.page import page, picture, table, verdict

__all__ = ["anonymize_report", "inside_report", "reports"]


@contextmanager
def reports(html: Path | None) -> Iterator[Callable[[AnonymizedRelease], str]]:
    """Make the released page and the steward's page; the latter is moved into place if the block succeeds and a release was made.

    By then the page is on disk under a temporary name, so nothing can fail once a release is in place.
    """
    if html is None:
        yield anonymize_report
        return
    with replacing(html, mode=0o600) as stream:

        def make(release: AnonymizedRelease) -> str:
            stream.write(inside_report(release).encode("utf-8"))
            stream.flush()
            return anonymize_report(release)

        yield make
        if not stream.tell():
            stream.close()


def anonymize_report(release: AnonymizedRelease) -> str:
    """The report as HTML. It is published with the release, and made only from what is published with it."""
    return page_of(release.manifest(), _published(release))


def _published(release: AnonymizedRelease) -> Published:
    return in_memory({COLUMNS_FILE: release.dictionary})


def inside_report(release: AnonymizedRelease) -> str:
    """The report for the steward as HTML: it compares the release with the confidential source and is confidential."""
    u, r, comparison = release.utility, release.risk, release.comparison
    sections = [
        '<p class="verdict risk">This page describes confidential values. It is for the data steward; do not publish it.</p>',
        verdict(release.verdict),
        ReleaseContent(release.manifest(), _published(release)).answers(u.gcp),
        f"<p>{escape(optimality(release.gap))}</p>",
        table(
            ["measure", "value"],
            [
                [
                    "information loss (sum of weighted shares of the source's range)",
                    f"{u.information_loss:.6g}",
                ],
                ["GCP, of the source's range", f"{u.gcp:.4%}"],
                [
                    "lower bound on any partition",
                    "not known" if release.lower_bound is None else f"{release.lower_bound:.6g}",
                ],
                [
                    "records with unique quasi-identifiers, before and after",
                    f"{r.uniques_before:,}, {r.uniques_after:,}",
                ],
                ["unique records, unchanged columns included", f"{release.n_alone:,}"],
            ],
        ),
    ]
    sections += [*_derivable_values(release), *_local_comparison(release)]
    if release.intersection is not None:
        found = escape(_sentence(str(release.intersection)))
        sections.append(
            f"<h2>Compared with earlier releases</h2>{verdict_line(level_together(release), found)}"
        )
    if release.analyses is not None:
        sections += _analyses(release.analyses)
    if release.curve:
        sections += [
            "<h2>Risk and utility</h2>",
            picture(plot_curve(release.curve), "Detail lost against the highest re-identification risk."),
            table(
                ["method", "k", "detail lost", "highest risk", "average risk", "seconds"],
                [
                    [
                        p.method,
                        p.k,
                        f"{p.gcp:.2%}",
                        f"{p.highest_risk:.2%}",
                        f"{p.average_risk:.2%}",
                        f"{p.seconds:.2f}",
                    ]
                    for p in release.curve
                ],
            ),
        ]
    sections += [
        "<h2>Before and after</h2>",
        picture(
            plot_comparison(release),
            "Shares of the records before and after; a generalised value is spread evenly over the values it stands for.",
        ),
    ]
    if comparison.associations:
        sections += [
            "<h2>Associations</h2><p>Cramer's V of every pair of quasi-identifiers, from 0 (independent) to 1.</p>",
            table(
                ["quasi-identifiers", "before", "after"],
                [
                    [f"{line.first} and {line.second}", f"{line.before:.3f}", f"{line.after:.3f}"]
                    for line in comparison.associations
                ],
            ),
        ]
    title = f"Inside: {TITLE[release.guarantee.value].format(k=release.k)}"
    return page(title, "For the data steward", sections, f"Made by louver {__version__}.")


def _derivable_values(release: AnonymizedRelease) -> list[str]:
    """What the columns published unchanged reveal about those that were generalised."""
    if not release.unchanged:
        return []
    return [
        "<h2>What the unchanged columns reveal</h2><p>Generalised values that follow from a column published unchanged, or from all of "
        "them together, for anyone who knows how they are related.</p>",
        table(
            ["quasi-identifier", "generalised", "inferred exactly", f"at {NEARLY:.0%}", "mostly from"],
            [[w.name, w.generalised, w.exactly, w.nearly, w.column] for w in release.worked_out],
        ),
    ]


def _local_comparison(release: AnonymizedRelease) -> list[str]:
    """The loss of both kinds of recoding, if one recoding holds for the whole file."""
    u, one_by_one = release.utility, release.local
    if one_by_one is None:
        return []
    lines: list[tuple[str, float, float, int]] = [
        ("one recoding of the whole file (this release)", u.information_loss, u.gcp, release.n_classes),
        ("classes formed one by one", one_by_one.information_loss, one_by_one.gcp, one_by_one.classes),
    ]
    return [
        "<h2>Global compared with local recoding</h2>",
        table(
            ["recoding", "information loss", "GCP", "classes"],
            [[name, f"{loss:.6g}", f"{gcp:.2%}", f"{n:,}"] for name, loss, gcp, n in lines],
        ),
    ]


def _sentence(text: str) -> str:
    return text[0].upper() + text[1:] + "."


def _analyses(found: Comparisons) -> list[str]:
    """Estimates before and after, starting with those that do not survive."""
    lines = [
        [
            term.analysis,
            term.term,
            f"{term.before:.4g} ({term.before_lower:.4g} to {term.before_upper:.4g})",
            "cannot be estimated"
            if term.after is None
            else f"{term.after:.4g} ({term.after_lower:.4g} to {term.after_upper:.4g})",
            f"{term.overlap:.0%}",
            "yes" if term.survives else "NO",
        ]
        for term in sorted(found.terms, key=lambda term: term.survives)
    ]
    how = (
        "Estimates with 95 % intervals. After: ten completed copies of the published file, combined by Rubin's rules. An estimate survives "
        "if its two intervals overlap by half or more and a coefficient stays above 0, below 0, or neither."
    )
    if found.propensity is not None:
        how += (
            f" A model that tries to tell the published records from the original ones does {found.propensity:.1f} times as well as "
            "chance (1: they cannot be told apart)."
        )
    header = ["analysis", "estimate", "before", "after", "overlap", "survives"]
    return [
        "<h2>Which analyses survive</h2>",
        f"<p>{escape(found.sentence)}</p>",
        *(
            [
                picture(
                    plot_analyses(found),
                    "Intervals before (grey) and after (blue; red where the estimate does not survive), in half-widths of the original "
                    "interval; the worst first, cut off at five.",
                )
            ]
            if found.terms
            else []
        ),
        table(header, lines),
        f"<p>{escape(how)}</p>",
    ]
