"""The report inside a k-anonymous release: what was done, what was lost, what risk is left."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from html import escape
from pathlib import Path

from louver import __version__
from louver._words import listed
from louver.anonymize.guarantee import WEAKER, Guarantee
from louver.anonymize.plot import plot_comparison, plot_curve
from louver.anonymize.result import AnonymizedRelease
from louver.anonymize.worked_out import NEARLY
from louver.data.write import replacing
from louver.report.page import answers, facts, page, picture, table, tiles, verdict

__all__ = ["anonymize_report", "inside_report", "reports"]


@contextmanager
def reports(html: Path | None) -> Iterator[Callable[[AnonymizedRelease], str]]:
    """Makes the page that is released, and the steward's, which is put in place if the block ends well and a release was made.

    All but its name is on disk by then: nothing can fail once a release is in place.
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
    """The report as HTML. It is published with the release, so it says nothing that the records themselves do not."""
    u, r, losses = release.utility, release.risk, release.published_losses
    gcp = sum(share for _, share in losses) / max(1, len(losses))
    sections = [
        *_warning(release),
        f'<p class="verdict">{escape(_meaning(release))}</p>',
        _answers(release, gcp),
        tiles(
            [
                (release.table.num_rows, "records published", False),
                (
                    release.n_classes,
                    f"classes, the smallest of {release.smallest_class:,} {r.counted}",
                    False,
                ),
                (f"{gcp:.2%}", "of the quasi-identifiers' detail lost", False),
                (f"{r.prosecutor_highest:.1%}", "highest re-identification risk", False),
                (release.n_suppressed, "records suppressed", False),
            ]
        ),
        "<h2>Columns</h2>",
        table(
            ["column", "role", "kind", "what was done"],
            [[*line.values()] for line in release.dictionary.to_pylist()],
        ),
        "<h2>What was lost</h2>",
        picture(release.plot(), "Detail lost per quasi-identifier, and how many classes have which size."),
        table(
            ["quasi-identifier", "mean share of its published range lost"],
            [[name, f"{share:.2%}"] for name, share in losses],
        ),
        "<h2>Class sizes</h2>",
        table([f"{r.counted} in a class", "classes"], [list(pair) for pair in r.class_sizes[:MOST_SIZES]]),
        "<h2>Appendix: how it was made, and measures</h2>",
        facts(_facts(release)),
        f"<p>{escape(_optimality(release.published_gap))}</p>",
        table(
            ["measure", "value"],
            [
                ["GCP", f"{gcp:.4%}"],
                ["discernibility", f"{u.discernibility:,}"],
                ["average class size over k", f"{u.average_class_size:.3f}"],
                [
                    "prosecutor risk, highest and average",
                    f"{r.prosecutor_highest:.3%}, {r.prosecutor_average:.3%}",
                ],
                ["marketer risk", f"{r.marketer:.3%}"],
                *_journalist(release),
                ["records alone with their published values", f"{r.uniques_after:,}"],
            ],
        ),
    ]
    title = TITLE[release.guarantee].format(k=release.k)
    return page(title, "Check it with: louver verify", sections, f"Made by louver {__version__}.")


def inside_report(release: AnonymizedRelease) -> str:
    """The report for the steward as HTML: it compares the release with the confidential source and must stay inside."""
    u, r, comparison = release.utility, release.risk, release.comparison
    sections = [
        '<p class="verdict risk">This page describes confidential values. It is for the data steward; do not publish it.</p>',
        verdict(release.verdict),
        _answers(release, u.gcp),
        f"<p>{escape(_optimality(release.gap))}</p>",
        table(
            ["measure", "value"],
            [
                [
                    "information loss (sum of weighted shares of the source's range)",
                    f"{u.information_loss:.6g}",
                ],
                ["GCP, of the source's range", f"{u.gcp:.4%}"],
                [
                    "no partition loses less than",
                    "not known" if release.lower_bound is None else f"{release.lower_bound:.6g}",
                ],
                [
                    "records alone with their quasi-identifiers, before and after",
                    f"{r.uniques_before:,}, {r.uniques_after:,}",
                ],
                ["records that differ from all others, unchanged columns included", f"{release.n_alone:,}"],
            ],
        ),
    ]
    sections += [*_worked_out(release), *_beside(release)]
    if release.intersection is not None:
        is_risky = release.intersection.is_risky
        sections.append(
            "<h2>Compared with earlier releases</h2>"
            f'<p class="verdict{" risk" if is_risky else ""}">{escape(_sentence(str(release.intersection)))}</p>'
        )
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
            "Shares of the records before and after; a generalised value is spread evenly over what it stands for.",
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
    title = f"Inside: {TITLE[release.guarantee].format(k=release.k)}"
    return page(title, "For the data steward", sections, f"Made by louver {__version__}.")


MOST_SIZES = 12
"""Class sizes listed beside the picture; the manifest has them all."""

TITLE = {
    Guarantee.K_ANONYMITY: "{k}-anonymous microdata",
    Guarantee.K_MAP: "Microdata with {k}-map",
    Guarantee.K_UNITS: "Microdata of {k} different units in every class",
    Guarantee.FREEFORM: "Freeform microdata, k = {k}: weaker than k-anonymity",
}
MEANING = {
    Guarantee.K_ANONYMITY: "Every record shares its published quasi-identifiers with at least {others:,} others.",
    Guarantee.K_MAP: "The published quasi-identifiers of every record match at least {k:,} people of the population; "
    "somebody who knows that a person is in this file may find fewer records.",
    Guarantee.K_UNITS: "Every record shares its published quasi-identifiers with records of at least {others:,} other units "
    "(households); data/classes.parquet lists how many units each class has.",
    Guarantee.FREEFORM: "The published quasi-identifiers of every record fit {k:,} original records, and every original "
    "record fits {k:,} published ones; published records need not be equal.",
}


NEEDED_BY = {"l_kind": "l", "distance": "t"}
"""Options that mean nothing without another one."""


def _meaning(release: AnonymizedRelease) -> str:
    """What the guarantee means, and what sensitive values of units are promised by."""
    told = [MEANING[release.guarantee].format(k=release.k, others=release.k - 1)]
    if release.guarantee is Guarantee.K_UNITS and release.parameters["l"] is not None:
        told.append(
            f"At least {math.ceil(release.parameters['l']):,} sensitive values of every class come from records of as many different "
            "units, as its maker counted them."
        )
    if release.guarantee is Guarantee.K_UNITS and release.parameters["t"] is not None:
        told.append("Closeness of sensitive values counts records, not units.")
    return " ".join(told)


def _answers(release: AnonymizedRelease, gcp: float) -> str:
    """What an outsider may learn, how accurate it is, whether to publish it, what to do next."""
    kept = ", ".join(
        f"{name} {how}" if (how := release.coded.get(name)) else name for name in release.unchanged
    )
    more = f" Who knows what is not generalised ({kept}) as well may learn more." if kept else ""
    left_out = f" {release.n_suppressed:,} records were left out." if release.n_suppressed else ""
    return answers(
        released=f"{release.table.num_rows:,} records, one for each person. Generalised: {', '.join(release.quasi)}. "
        f"Person by person: {kept or 'nothing else'}.{left_out}",
        promised=f"Whoever knows {listed(release.quasi)} of a person in this file finds a class of records, not the person, but "
        f"learns what the records of a class have in common.{more}",
        accuracy=f"Of the detail of what was generalised {gcp:.1%} is lost; counts by generalised columns are rougher by that much.",
        check="Publish it if these columns are all that outsiders can know, and no other release of the same people is out: read the "
        "columns below, try --against earlier releases, and run louver verify. What each published value stands for is in "
        "data/mapping.parquet.",
    )


def _warning(release: AnonymizedRelease) -> list[str]:
    if release.guarantee is not Guarantee.FREEFORM:
        return []
    return [f'<p class="verdict risk">{escape(WEAKER)}</p>']


def _worked_out(release: AnonymizedRelease) -> list[str]:
    """What the columns that travel along give back of those that were generalised."""
    if not release.unchanged:
        return []
    return [
        "<h2>What the unchanged columns give back</h2><p>Generalised values that follow from a column which is published "
        "unchanged, or from all of them together, for somebody who knows how they go together.</p>",
        table(
            ["quasi-identifier", "generalised", "worked out exactly", f"at {NEARLY:.0%}", "above all from"],
            [[w.name, w.generalised, w.exactly, w.nearly, w.column] for w in release.worked_out],
        ),
    ]


def _beside(release: AnonymizedRelease) -> list[str]:
    """The loss of both ways of recoding, where one recoding holds for the whole file."""
    u, beside = release.utility, release.beside
    if beside is None:
        return []
    lines: list[tuple[str, float, float, int]] = [
        ("one recoding for the whole file (this release)", u.information_loss, u.gcp, release.n_classes),
        ("classes formed one by one", beside.information_loss, beside.gcp, beside.classes),
    ]
    return [
        "<h2>Global beside local recoding</h2>",
        table(
            ["recoding", "information loss", "GCP", "classes"],
            [[name, f"{loss:.6g}", f"{gcp:.2%}", f"{n:,}"] for name, loss, gcp, n in lines],
        ),
    ]


def _sentence(text: str) -> str:
    return text[0].upper() + text[1:] + "."


def _journalist(release: AnonymizedRelease) -> list[list[str]]:
    highest, average = release.risk.journalist_highest, release.risk.journalist_average
    if highest is None or average is None:
        return []
    return [["journalist risk, highest and average", f"{highest:.3%}, {average:.3%}"]]


def _optimality(gap: float | None) -> str:
    if gap == 0:
        return "No way to form classes loses less information: this is the optimum."
    if gap is not None:
        return f"The information loss is at most {gap:.0%} above the optimum."
    return "The information loss is the least found; how far the optimum lies below it is not known."


def _facts(release: AnonymizedRelease) -> list[tuple[str, str]]:
    shown = {
        name: value
        for name, value in release.parameters.items()
        if value not in (None, (), [], {}, False)
        and name not in ("seconds", "method")
        and release.parameters.get(NEEDED_BY.get(name, name)) is not None
    }
    entries = [("Method used", release.method)]
    for name, value in shown.items():
        entries.append((name.replace("_", " "), _shown(value)))
    plain = [name for name in release.unchanged if name not in release.coded]
    entries.append(("Published unchanged", ", ".join(plain) or "no column"))
    entries.append(("Rows", "in the order of the source" if release.is_order_kept else "shuffled"))
    return entries


def _shown(value: object) -> str:
    """What was asked for, as a command would say it."""
    if value is True:
        return "yes"
    if isinstance(value, Mapping):
        return ", ".join(f"{name}={_shown(part)}" if part else str(name) for name, part in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(map(_shown, value))
    return f"{value:.15g}" if isinstance(value, float) else str(value)
