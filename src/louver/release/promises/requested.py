"""Whether a release makes the promises that its verb must make, none weaker than requested, because a weak promise is easily kept."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from louver.release.manifest import Manifest
from louver.release.promises import PROMISES, REQUIRED

__all__ = ["weaknesses"]

Entry = Mapping[str, Any]


def weaknesses(manifest: Manifest) -> Iterator[str]:
    """What is wrong with the list of promises."""
    required = REQUIRED.get(manifest.verb)
    if required is None:
        yield "made by a verb that this version does not know"
        return
    names = Counter(str(entry.get("promise")) for entry in manifest.promises)
    for name in sorted(required.always):
        if names[name] != 1:
            yield f'"{name}" must be promised exactly once'
    if sum(names[name] for name in required.one_of) != 1:
        yield f"exactly one of {', '.join(sorted(required.one_of))} must be promised"
    unknown = set(names) - required.always - required.one_of - required.may
    if unknown:
        yield f"{len(unknown)} promises are not made by {manifest.verb}"
    for name in sorted(set(names) - unknown):
        only = PROMISES[name].only
        if only is not None and manifest.method not in only:
            yield f'{manifest.method} must promise more than "{name}"'
    yield from ASKED[manifest.verb](manifest)


def _anonymize(manifest: Manifest) -> Iterator[str]:
    """Check k, its kind, the quasi-identifiers, l and t against the parameters."""
    request, by_name = manifest.parameters, _by_name(manifest.promises)
    sort = _sort_of(request)
    for entry in by_name.get(sort, [{}]):
        if entry.get("k") != request.get("k") or type(entry.get("k")) is not int:
            yield f'"{sort}" is not promised with the requested k'
    whole_units = [entry.get("k") for entry in by_name.get("whole-units", [])]
    if whole_units != ([request.get("k")] if request.get("whole_units") else []):
        yield '"whole-units" is not promised as requested'
    for name in (sort, "l-diversity", "t-closeness", "whole-units"):
        for entry in by_name.get(name, []):
            if not _holds_all(entry.get("quasi", []), request):
                yield f'"{name}" is not about the requested quasi-identifiers'
    losses = [line[0] for entry in by_name.get("losses", []) for line in entry.get("by_column", ())]
    if losses != request.get("quasi"):
        yield '"losses" is not about the requested quasi-identifiers'
    recoded = [entry.get("columns") for entry in by_name.get("one-recoding", [])]
    if recoded != ([request.get("quasi")] if request.get("recoding") == "global" else []):
        yield '"one-recoding" is not promised as requested'
    for entry in by_name.get("one-recoding", []):
        records = next((one["records"] for one in by_name.get("records", ())), 0)
        if entry.get("exceptions", 0) > request.get("exceptions", 0) * (
            records + manifest.results.get("suppressed", 0)
        ):
            yield '"one-recoding" has more exceptions than requested'
    for name, key, kind in (("l-diversity", "l", "l_kind"), ("t-closeness", "t", "distance")):
        wanted = request.get("sensitive", []) if request.get(key) is not None else []
        field = "kind" if key == "l" else "distance"
        made = [(entry.get("sensitive"), entry.get(key), entry.get(field)) for entry in by_name.get(name, [])]
        if request.get(kind) is None:  # the kind that matches the values
            made = [
                (sensitive, value, None) for sensitive, value, sort in made if sort in ("equal", "ordered")
            ]
        if sorted(made, key=repr) != sorted(((s, request[key], request.get(kind)) for s in wanted), key=repr):
            yield f'"{name}" is not promised as requested'
        if key == "l" and any(entry.get("c") != request.get("c") for entry in by_name.get(name, [])):
            yield '"l-diversity" is not promised with the requested c'
        if not all(_is_missing(entry, request) for entry in by_name.get(name, [])):
            yield f'"{name}" counts values as missing that are not missing'


def _is_missing(entry: Entry, request: Entry) -> bool:
    """Whether a value that a promise calls missing is empty, or was declared a missing-value code."""
    codes = request.get("missing_code", {}).get(entry.get("sensitive"), [])
    unknown = entry.get("unknown")
    if request.get("count_missing", True):
        return unknown is None
    return unknown is not None and set(unknown) <= {None, "", "nan", *codes}


def _sort_of(request: Entry) -> str:
    """The kind of k that the parameters request."""
    if str(request.get("method")).startswith("freeform-"):
        return "freeform"
    if request.get("unit") is not None:
        return "k-units"
    return "k-map" if request.get("k_map") else "k-anonymity"


def _holds_all(columns: Sequence[str], request: Entry) -> bool:
    """Whether columns hold the quasi-identifiers: each by its name, or by the two ends of its intervals."""
    left = list(columns)
    for name in request.get("quasi", []):
        ends = [f"{name}_lower", f"{name}_upper"]
        if left[:1] == [name]:
            left = left[1:]
        elif request.get("format") == "bounds" and left[:2] == ends:
            left = left[2:]
        else:
            return False
    return bool(columns) and not left


def _groups(manifest: Manifest) -> Iterator[str]:
    """Check the requested levels, and the release of people with which the sizes agree."""
    by_name, request = _by_name(manifest.promises), manifest.parameters
    for entry in manifest.promises:
        if entry.get("promise") != "agreement" and entry.get("levels") != [
            "total",
            *manifest.parameters.get("regions", []),
        ]:
            yield "the levels promised are not the requested ones"
    agreed = by_name.get("agreement", [])
    first = request.get("agrees_with")
    if [entry.get("first_digest") for entry in agreed] != ([] if first is None else [first]):
        yield "the requested agreement is not promised"
    has_bounds = request.get("most_groups") is not None or request.get("least_groups") is not None
    for entry in agreed:
        if (entry.get("members"), entry.get("heads")) != (request.get("members"), request.get("heads")):
            yield "the agreement is about other people than requested"
        if entry.get("largest") != request.get("max_size"):
            yield "the agreement is about other sizes than requested"
        if (entry.get("bounds") is not None) != has_bounds:
            yield "the requested bounds are not promised"
        if (entry.get("prefixes") is not None) != (request.get("code") is not None):
            yield "the agreement is about other regions than requested"
        if entry.get("moved") and not request.get("failsafe"):
            yield "bounds were moved without a failsafe"


def _audit(manifest: Manifest) -> Iterator[str]:
    """Check every requested table by its attributes, base, decimals and totals."""
    keys = ("by", "base", "decimals", "total")
    request = [[entry.get(key) for key in keys] for entry in manifest.parameters.get("tables", [])]
    made = [
        [table.get(key) for key in keys] for entry in manifest.promises for table in entry.get("tables", [])
    ]
    if made != request:
        yield "the tables promised are not the requested ones"


def _protect(manifest: Manifest) -> Iterator[str]:
    """Check every requested table by its name and attributes."""
    request = [[entry.get("name"), entry.get("by")] for entry in manifest.parameters.get("tables", [])]
    made = [[t.get("name"), t.get("by")] for entry in manifest.promises for t in entry.get("tables", [])]
    if made != request:
        yield "the tables promised are not the requested ones"


def _topdown(manifest: Manifest) -> Iterator[str]:
    """Check the levels that the results list and, if a release was extended, the extension and its rules."""
    levels = [level.get("name") for level in manifest.results.get("levels", [])]
    by_name, request = _by_name(manifest.promises), manifest.parameters
    for entry in by_name.get("topdown", []):
        if entry.get("levels") != levels:
            yield "the levels promised differ from the results"
    extended = by_name.get("extension", [])
    holds_first = any(name.startswith("first/") for name in manifest.files)
    if not len(extended) == (request.get("extends") is not None) == holds_first:
        yield '"extension" must be promised exactly once if a release is extended, and otherwise not'
    for entry in extended:
        if entry.get("first_digest") != manifest.results.get("extends"):
            yield '"extension" is about a different release than the results'
        views = {name: view.get("attribute") for name, view in entry.get("attributes", {}).items()}
        if {name: views.get(name) for name in request.get("refines", {})} != {
            name: one.get("attribute") for name, one in request.get("refines", {}).items()
        }:
            yield '"extension" does not refine what was requested'
    rules = [
        {"name": name, **{key: rule.get(key) for key in ("cells", "at_most", "of")}}
        for entry in by_name.get("edit-rules", [])
        for name, rule in entry.get("rules", {}).items()
    ]
    if rules != list(request.get("rules", [])):
        yield '"edit-rules" are not the requested ones'
    household = request.get("household") or {}
    promised = [
        {key: entry.get(key) for key in ("head", "members", "years")}
        | {"gaps": [{"name": name, **gap, "broken": None} for name, gap in entry.get("gaps", {}).items()]}
        for entry in by_name.get("households", [])
    ]
    gaps = [{**gap, "broken": None} for gap in household.get("gaps", [])]
    if promised != ([{**household, "gaps": gaps}] if gaps else []):
        yield '"households" are not the requested ones'


def _by_name(promises: Sequence[Entry]) -> dict[str, list[Entry]]:
    found: dict[str, list[Entry]] = {}
    for entry in promises:
        found.setdefault(str(entry.get("promise")), []).append(entry)
    return found


ASKED = {
    "anonymize": _anonymize,
    "groups": _groups,
    "audit": _audit,
    "protect": _protect,
    "topdown": _topdown,
}
