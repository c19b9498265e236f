"""Jobs of the page Microdata: classes, their loss, and the release made from exactly that result."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import pyarrow.compute as pc

from louver.anonymize import (
    AnonymizedRelease,
    AnonymizeOptions,
    anonymize,
    compare_each_k,
    write_release,
)
from louver.errors import InputError
from louver.report.anonymize import anonymize_report
from louver.run import Run
from louver.schema.request import Request, ask
from louver.schema.source import SourceOptions

__all__ = ["anonymized", "browsed", "published", "traced"]

UNREGISTERED = (
    "it was not entered into the register, so later tables of these people are not audited together with it."
)
WITHHELD = "together with the earlier releases given, it discloses too much."

MOST_CLASSES = 200


@dataclass
class _Kept:
    """The last result, with a number: the result published later is the one shown on the page, not that of another search."""

    made: AnonymizedRelease | None = None
    number: str = ""
    request: Request[AnonymizeOptions] | None = None
    sensitive: tuple[str, ...] = ()


KEPT = _Kept()


def anonymized(path: str, source: SourceOptions, options: Mapping[str, Any], run: Run) -> dict[str, Any]:
    """Form classes and return the numbers for the page."""
    request = ask(AnonymizeOptions, path, None, {**source.keywords(), **options})
    return _kept(anonymize(spec=request, run=run), request, options)


def _kept(
    made: AnonymizedRelease, request: Request[AnonymizeOptions], options: Mapping[str, Any]
) -> dict[str, Any]:
    """Keep a result for publication; returns the numbers for the page."""
    KEPT.made, KEPT.number, KEPT.request = made, secrets.token_hex(8), request
    KEPT.sensitive = tuple(options.get("sensitive", ()))
    content = made.to_dict() | {"number": KEPT.number}
    content["information_lost"] = made.utility.gcp
    content["bound"] = made.gcp_bound
    content["by_column"] = [(name, share) for name, share in made.published_losses]
    return content


def traced(
    path: str, source: SourceOptions, options: Mapping[str, Any], ks: tuple[int, ...], run: Run
) -> dict[str, Any]:
    """The same, with `by_k`: the share lost for each k, with the limit that was chosen for the result."""
    given = {**source.keywords(), **options, "curve": ks}
    request = ask(AnonymizeOptions, path, None, given)
    made = compare_each_k(request, run)
    return _kept(made, request, options) | {"by_k": [(point.k, point.gcp) for point in made.curve]}


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


def published(
    number: str, people: Mapping[str, Any], ledger: str | None, out: str, run: Run
) -> dict[str, Any]:
    """Write the result that is shown as a release directory, unless the verb withholds it.

    `people` has the options about the register: `person`, `new_population` and `accept_unchecked` of the verb.
    """
    made, request = _made(number), KEPT.request
    assert request is not None
    if request.options.registry is not None:
        request = replace(request, options=request.options.model_copy(update=dict(people)))
    found = write_release(made, request, out, ledger=ledger, report=anonymize_report, run=run)
    logged = "" if found.ledger is None else "Logged in the ledger as an exact disclosure."
    remark = UNREGISTERED if request.options.registry is None else found.remark
    refused = WITHHELD if found.is_withheld else None
    return {"refused": refused, "remark": remark, "words": logged, "verdict": found.verdict.to_dict()}


def _made(number: str) -> AnonymizedRelease:
    """The result with a number; another search may have finished since, or been cancelled along with its process."""
    if KEPT.made is None or KEPT.number != number:
        raise InputError(
            "the result shown is no longer available, because another search was started; run again."
        )
    return KEPT.made
