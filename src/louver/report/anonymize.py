"""The report inside a k-anonymous release: what was done, what was lost, what risk is left."""

from __future__ import annotations

from html import escape

from louver import __version__
from louver.anonymize.result import AnonymizedRelease
from louver.optim.status import Status
from louver.report.page import facts, page, picture, table, tiles

__all__ = ["anonymize_report"]


def anonymize_report(release: AnonymizedRelease) -> str:
    """The report as HTML. It is published with the release, so it says nothing about single records."""
    u, r = release.utility, release.risk
    smallest = r.class_sizes[0][0] if r.class_sizes else 0
    sections = [
        f'<p class="verdict">{escape(_verdict(release))}</p>',
        tiles(
            [
                (release.table.num_rows, "records published", False),
                (release.n_classes, f"classes, the smallest of {smallest:,} records", False),
                (f"{u.gcp:.2%}", "of the quasi-identifiers' detail lost", False),
                (f"{r.prosecutor_highest:.1%}", "highest re-identification risk", False),
                (release.n_suppressed, "records suppressed", False),
            ]
        ),
        "<h2>What was done</h2>",
        facts(_facts(release)),
        "<h2>What was lost</h2>",
        picture(release.plot(), "Detail lost per quasi-identifier, and how many classes have which size."),
        table(
            ["quasi-identifier", "mean share of its range lost"],
            [[name, f"{share:.2%}"] for name, share in u.by_column],
        ),
        "<h2>Measures</h2>",
        table(
            ["measure", "value"],
            [
                ["information loss (sum of weighted shares)", f"{u.information_loss:.6g}"],
                ["GCP", f"{u.gcp:.4%}"],
                ["discernibility", f"{u.discernibility:,}"],
                ["average class size over k", f"{u.average_class_size:.3f}"],
                [
                    "prosecutor risk, highest and average",
                    f"{r.prosecutor_highest:.3%}, {r.prosecutor_average:.3%}",
                ],
                ["marketer risk", f"{r.marketer:.3%}"],
                [
                    "records that were unique before, and are now",
                    f"{r.uniques_before:,}, {r.uniques_after:,}",
                ],
            ],
        ),
        "<h2>How to read this</h2><p>Every record shares its published quasi-identifiers with at least "
        f"{release.k - 1:,} others. k-anonymity does not protect against somebody who learns from the columns that were "
        "not generalised, or who compares this file with another release of the same data.</p>",
    ]
    title = f"{release.k}-anonymous microdata"
    return page(title, "Check it with: louver verify", sections, f"Made by louver {__version__}.")


def _verdict(release: AnonymizedRelease) -> str:
    if release.status is Status.OPTIMAL:
        return "No way to form classes loses less information: this is the optimum."
    if release.gap is not None:
        return f"The information loss is at most {release.gap:.1%} above the optimum."
    return "The information loss is the least found; how far the optimum lies below it is not known."


def _facts(release: AnonymizedRelease) -> list[tuple[str, str]]:
    shown = {
        name: value
        for name, value in release.parameters.items()
        if value not in (None, (), [], {}, False) and name not in ("seconds",)
    }
    entries = [("Method used", release.method)]
    for name, value in shown.items():
        text = ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
        entries.append((name.replace("_", " "), text))
    entries.append(("Rows", "in the order of the source" if release.is_order_kept else "shuffled"))
    return entries
