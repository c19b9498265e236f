"""What the page Microdata asks for: classes, what they cost, and the release made of the very same result."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow.compute as pc

from louver.anonymize import AnonymizedRelease, AnonymizeOptions, anonymize, write_release
from louver.errors import InputError
from louver.report.anonymize import anonymize_report
from louver.run import Run
from louver.schema.request import Request, ask
from louver.schema.source import SourceOptions

__all__ = ["anonymized", "browsed", "published", "traced"]

WITHHELD = "together with the earlier releases that were named it gives too much away."

MOST_CLASSES = 200
CURVE_SECONDS = 2.0


@dataclass
class _Kept:
    """The last result, under a number of its own: what is published later is the one that the page shows, not another search's."""

    made: AnonymizedRelease | None = None
    number: str = ""
    request: Request[AnonymizeOptions] | None = None
    sensitive: tuple[str, ...] = ()


KEPT = _Kept()


def anonymized(path: str, source: SourceOptions, options: Mapping[str, Any], run: Run) -> dict[str, Any]:
    """Form classes; the numbers of the page."""
    request = ask(AnonymizeOptions, path, None, {**source.keywords(), **options})
    made = anonymize(spec=request, run=run)
    KEPT.made, KEPT.number, KEPT.request = made, secrets.token_hex(8), request
    KEPT.sensitive = tuple(options.get("sensitive", ()))
    told = made.to_dict() | {"number": KEPT.number}
    told["information_lost"] = made.utility.gcp
    told["bound"] = (
        None if not made.lower_bound else made.utility.gcp * made.lower_bound / made.utility.information_loss
    )
    told["by_column"] = [(name, share) for name, share in made.published_losses]
    return told


def traced(
    path: str, source: SourceOptions, options: Mapping[str, Any], ks: tuple[int, ...], run: Run
) -> list[tuple[int, float]]:
    """(k, share lost) of the method that was chosen, each with little time."""
    asked = {name: value for name, value in options.items() if name != "steps"}
    asked["seconds"] = min(float(options.get("seconds", CURVE_SECONDS)), CURVE_SECONDS)
    points = []
    for number, k in enumerate(ks):
        run.report(f"k = {k}", number, len(ks))
        made = anonymize(path, **source.keywords(), **{**asked, "k": k}, run=run)
        points.append((k, made.utility.gcp))
    return points


def browsed(number: str, start: int, order: str, run: Run) -> dict[str, Any]:
    """Published classes with their sizes and how many values of each sensitive column they have."""
    made = _made(number)
    quasi = list(made.quasi)
    sensitive = [name for name in KEPT.sensitive if name in made.table.column_names]
    counts = ["count_all", *(f"{name}_count_distinct" for name in sensitive)]
    every = pc.CountOptions(mode="all")
    classes = made.table.group_by(quasi).aggregate(
        [*((name, "count_distinct", every) for name in sensitive), ([], "count_all")]
    )
    keys = [("count_all", order), *((name, "ascending") for name in quasi)]
    shown = classes.sort_by(keys).slice(start, MOST_CLASSES).to_pylist()
    rows = [([str(row[name]) for name in quasi], [row[name] for name in counts]) for row in shown]
    return {
        "columns": quasi,
        "sensitive": sensitive,
        "rows": rows,
        "n": classes.num_rows,
        "step": MOST_CLASSES,
    }


def published(number: str, ledger: str | None, out: str, run: Run) -> dict[str, Any]:
    """Write the result that is shown as a release directory, unless the verb withholds it."""
    made, request = _made(number), KEPT.request
    assert request is not None
    found = write_release(made, request, out, ledger=ledger, report=anonymize_report, run=run)
    logged = "" if found.ledger is None else "Logged in the ledger as an exact disclosure."
    return {"refused": WITHHELD if found.is_withheld else None, "remark": None, "words": logged}


def _made(number: str) -> AnonymizedRelease:
    """The result with a number; another search may have ended since, or have been cancelled with its process."""
    if KEPT.made is None or KEPT.number != number:
        raise InputError(
            "the result that is shown is not kept any more, for another search was begun; run again."
        )
    return KEPT.made
