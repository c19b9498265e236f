"""The page of a k-anonymous release: what was done, what was lost, and the remaining risk."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from html import escape
from typing import Any

from louver._words import listed
from louver.release.manifest import Manifest
from louver.release.pages.chart import Bars, Panel, across, drawing, percents
from louver.release.pages.frame import answers, facts, figure, page, table, tiles
from louver.release.pages.published import Published
from louver.release.sentences import IN_ORDER, WEAKER

__all__ = ["TITLE", "ReleaseContent", "anonymize_page", "optimality"]

COLUMNS = "data/columns.parquet"

MOST_SIZES = 12
"""Number of class sizes listed next to the picture; the manifest has them all."""

MOST_DRAWN = 30
"""Number of class sizes drawn."""

TITLE = {
    "k-anonymity": "{k}-anonymous microdata",
    "k-map": "Microdata with {k}-map",
    "k-units": "Microdata of {k} different units in every class",
    "freeform": "Freeform microdata, k = {k}: weaker than k-anonymity",
}
MEANING = {
    "k-anonymity": "Every record shares its published quasi-identifiers with at least {others:,} others.",
    "k-map": "The published quasi-identifiers of every record match at least {k:,} people of the population; "
    "anyone who knows that a person is in this file may find fewer records.",
    "k-units": "Every record shares its published quasi-identifiers with records of at least {others:,} other units "
    "(households); data/classes.parquet lists how many units each class has.",
    "freeform": "The published quasi-identifiers of every record fit {k:,} original records, and every original "
    "record fits {k:,} published ones; published records need not be equal.",
}
NEEDED_BY = {"l_kind": "l", "distance": "t"}
"""Options that have no effect without another option."""


@dataclass(frozen=True)
class ReleaseContent:
    """A release's description of itself: its manifest and its column dictionary."""

    manifest: Manifest
    published: Published

    @property
    def results(self) -> Mapping[str, Any]:
        return self.manifest.results

    @property
    def quasi(self) -> list[str]:
        """Columns of the file that hold the quasi-identifiers."""
        return next(list(entry["quasi"]) for entry in self.manifest.promises if "k" in entry)

    @cached_property
    def dictionary(self) -> list[dict[str, Any]]:
        return [line for part in self.published(COLUMNS) for line in part.to_pylist()]

    @property
    def coded(self) -> dict[str, str]:
        """Columns whose numbers were rounded, top-coded or bottom-coded but not generalised, with the coding."""
        done = {line["name"]: line["done"] for line in self.dictionary}
        return {name: done[name] for name in self.results["unchanged"] if done[name] != "unchanged"}

    def answers(self, gcp: float) -> str:
        """What an outsider may learn, how accurate the file is, whether to publish it, and what to do next."""
        coded, suppressed = self.coded, self.results["suppressed"]
        kept = ", ".join(
            f"{name} {how}" if (how := coded.get(name)) else name for name in self.results["unchanged"]
        )
        more = (
            f" Anyone who also knows the columns that are not generalised ({kept}) may learn more."
            if kept
            else ""
        )
        left_out = f" {suppressed:,} records were left out." if suppressed else ""
        recoded = [entry for entry in self.manifest.promises if entry["promise"] == "one-recoding"]
        if n := sum(entry.get("exceptions") or 0 for entry in recoded):
            left_out += (
                f" One recoding holds for all records but {n:,}, whose classes are generalised one by one."
            )
        return answers(
            released=f"{self.results['records']:,} records, one for each person. Generalised: {', '.join(self.quasi)}. "
            f"Published unchanged: {kept or 'nothing'}.{left_out}",
            promised=f"Anyone who knows {listed(self.quasi)} of a person in this file finds a class of records, not the person, but learns "
            f"what the records of that class have in common.{more}",
            accuracy=f"The generalised columns have lost {gcp:.1%} of their detail; counts by them are that much coarser.",
            check="Publish it if these columns are all that outsiders can know, and no other release about the same people exists: read "
            "the columns below, try --against earlier releases, and run louver verify. What each published value stands for is in "
            "data/mapping.parquet.",
        )


def _meaning(manifest: Manifest) -> str:
    """The meaning of the guarantee, and what diversity and closeness count if units are protected."""
    k, guarantee = manifest.results["k"], manifest.results["guarantee"]
    sentences = [MEANING[guarantee].format(k=k, others=k - 1)]
    if manifest.parameters.get("whole_units"):
        sentences.append(
            f"Records with the same unit_id belong together, and at least {k - 1:,} other units of the same size have the same published "
            "quasi-identifiers, member by member."
        )
    if guarantee == "k-units" and manifest.parameters.get("l") is not None:
        sentences.append(
            "The l sensitive values of a class belong to as many different units, as its maker counted them."
        )
    if guarantee == "k-units" and manifest.parameters.get("t") is not None:
        sentences.append("Closeness of sensitive values counts records, not units.")
    return " ".join(sentences)


def anonymize_page(manifest: Manifest, published: Published) -> str:
    """The page as HTML. It is published with the release and reveals nothing that the records do not."""
    content, r = ReleaseContent(manifest, published), manifest.results
    risk, utility, losses, k = r["risk"], r["utility"], r["by_column"], r["k"]
    sections = [
        *([f'<p class="verdict risk">{escape(WEAKER)}</p>'] if r["guarantee"] == "freeform" else []),
        f'<p class="verdict">{escape(_meaning(manifest))}</p>',
        content.answers(r["gcp"]),
        tiles(
            [
                (r["records"], "records published", False),
                (
                    r["classes"],
                    f"classes, the smallest of {r['smallest_class']:,} {risk['counted']}",
                    False,
                ),
                (f"{r['gcp']:.2%}", "of the quasi-identifiers' detail lost", False),
                (f"{risk['prosecutor_highest']:.1%}", "highest re-identification risk", False),
                (r["suppressed"], "records suppressed", False),
            ]
        ),
        "<h2>Columns</h2>",
        table(["column", "role", "kind", "what was done"], [[*line.values()] for line in content.dictionary]),
        "<h2>What was lost</h2>",
        figure(
            across(
                "Detail lost per quasi-identifier",
                [name for name, _ in losses],
                [("lost", [share for _, share in losses])],
                label_of=percents,
            ),
            "Detail lost per quasi-identifier.",
        ),
        table(
            ["quasi-identifier", "mean share of its published range lost"],
            [[name, f"{share:.2%}"] for name, share in losses],
        ),
        "<h2>Class sizes</h2>",
        figure(_class_sizes(risk), "Number of classes of each size."),
        table(
            [f"{risk['counted']} in a class", "classes"],
            [list(pair) for pair in risk["class_sizes"][:MOST_SIZES]],
        ),
        "<h2>Appendix: how it was made, and measures</h2>",
        facts(_facts(content)),
        f"<p>{escape(optimality(r['gap']))}</p>",
        table(
            ["measure", "value"],
            [
                ["GCP", f"{r['gcp']:.4%}"],
                ["discernibility", f"{utility['discernibility']:,}"],
                ["average class size over k", f"{utility['average_class_size']:.3f}"],
                [
                    "prosecutor risk, highest and average",
                    f"{risk['prosecutor_highest']:.3%}, {risk['prosecutor_average']:.3%}",
                ],
                ["marketer risk", f"{risk['marketer']:.3%}"],
                *_journalist(risk),
                ["records with unique published values", f"{risk['uniques_after']:,}"],
            ],
        ),
    ]
    title = TITLE[r["guarantee"]].format(k=k)
    return page(title, "Check it with: louver verify", sections, f"Made by louver {manifest.version}.")


def _class_sizes(risk: Mapping[str, Any]) -> str:
    shown = risk["class_sizes"][:MOST_DRAWN]
    rest = sum(count for _, count in risk["class_sizes"][MOST_DRAWN:])
    below = f"{risk['counted']} in the class" + (f" ({rest:,} larger classes are not shown)" if rest else "")
    bars = Bars([size for size, _ in shown], [count for _, count in shown])
    return drawing(
        [Panel(title="Classes by size", marks=[bars], x_label=below, y_label="classes")], height=220
    )


def _journalist(risk: Mapping[str, Any]) -> list[list[str]]:
    highest, average = risk["journalist_highest"], risk["journalist_average"]
    if highest is None or average is None:
        return []
    return [["journalist risk, highest and average", f"{highest:.3%}, {average:.3%}"]]


def optimality(gap: float | None) -> str:
    """A sentence about how far the loss may be above the minimum."""
    if gap == 0:
        return "No other partition into classes loses less information: this is the optimum."
    if gap is not None:
        return f"The information loss is at most {gap:.0%} above the optimum."
    return "The information loss is the smallest found; no bound on the optimum is known."


def _facts(content: ReleaseContent) -> list[tuple[str, str]]:
    parameters = content.manifest.parameters
    shown = {
        name: value
        for name, value in parameters.items()
        if value not in (None, [], {}, False)
        and name not in ("seconds", "method")
        and parameters.get(NEEDED_BY.get(name, name)) is not None
    }
    entries = [("Method used", str(content.manifest.method))]
    entries += [(name.replace("_", " "), _shown(value)) for name, value in shown.items()]
    plain = [name for name in content.results["unchanged"] if name not in content.coded]
    entries.append(("Published unchanged", ", ".join(plain) or "no column"))
    is_order_kept = IN_ORDER in content.manifest.warnings
    entries.append(("Rows", "in the order of the source" if is_order_kept else "shuffled"))
    return entries


def _shown(value: object) -> str:
    """The request, written as command-line options."""
    if value is True:
        return "yes"
    if isinstance(value, Mapping):
        return ", ".join(f"{name}={_shown(part)}" if part else str(name) for name, part in value.items())
    if isinstance(value, list):
        return ", ".join(map(_shown, value))
    return f"{value:.15g}" if isinstance(value, float) else str(value)
