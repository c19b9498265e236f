"""What a manifest may state: known keys, values of the right types, and no sentences other than those louver writes.

Parameters, results and warnings are read by people but covered by no promise, so anything could hide there. Every string must be a name or
a label of the published files, one of a list, or of a fixed form. Strings that can be none of these, such as the labels that a recode
merged, must be short; they are counted, and limited (`ALLOWED`) unless the person who verifies has read them and accepts more. Lists hardly
repeat a name, because they could otherwise spell out records in published labels; a number has no more digits than a float; and the text of
the file has no spaces between its parts, as written by programs.

The models of what each verb may state are in `shapes`.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from math import isclose
from typing import Any

import pyarrow.compute as pc

from louver.privacy.budget import exact_fraction
from louver.release.folder import Folder, without_dictionary
from louver.release.manifest import Manifest, parse
from louver.release.promises.base import TOLERANCE, Context, Outcome, count_distinct, promise_of
from louver.release.promises.mapping import DATA, published_columns
from louver.release.promises.measurements import publisher_of
from louver.release.promises.sensitive import LDiversity, TCloseness, check_l_diversity, check_t_closeness
from louver.release.promises.shapes import METHOD_USED, SHAPES, Mechanism, TracedStrings
from louver.release.sentences import (
    CELL_KEY_CELLS,
    CHAIN,
    HIDDEN_CELLS,
    IN_ORDER,
    NOT_PRIVATE,
    ROUNDED_ALONE,
    ROUNDED_CELLS,
    TABLES,
    WEAKER,
    bounds_moved,
    column_disclosed,
    failsafe_used,
    public_numbers,
)
from louver.release.strict_json import (
    MOST_BYTES,
    NOT_AS_WRITTEN,
    is_as_written,
    parse_json,
    read_bytes,
    read_json,
)

__all__ = ["MAKERS_WORD", "check_stated"]

MAKERS_WORD = "its maker's word"
"""Ending of a finding that relies on something unchecked."""

ALLOWED: Mapping[str, tuple[int, int]] = {"names": (64, 600), "labels": (32, 300)}
"""Maximum number of strings of each kind, and of their characters, that are in no published file and need no acceptance. Names are those of
columns, files and tables of the source; labels are those that a recode united or a filter left out, codes of missing values, and codes of
a hierarchy that no table shows."""

LARGEST = 1 << 128
"""Whole numbers must be smaller than this."""

EARLIER_DISCLOSURE = "every column that is not a quasi-identifier, record by record"
"""Statement of early versions about all columns together."""

GROUPS = "data/groups.parquet"

DICTIONARY, FIRST_MANIFEST = "data/columns.parquet", "first/manifest.json"

MEASURED = "measurements/topdown.parquet"

TOPDOWN_METHODS = (
    "dual Newton least squares, rounding by shortest paths",
    "likeliest counts within the classes of the first release, people allocated one by one",
)

EXACT = ("anonymize", "audit", "protect")
"""Verbs without a budget: they publish true numbers, or noise without any guarantee about individuals."""


def check_stated(context: Context, accepted: int | None = 0) -> Outcome:
    """Look for anything in the manifest that does not belong there."""
    manifest, folder = context.manifest, context.folder
    known = KNOWN[manifest.verb](folder, manifest)
    for problem in _problems(manifest, known):
        return Outcome(False, problem)
    if manifest.verb == "anonymize":
        for problem in (*_anonymize_problems(folder, manifest, known), *_reached_problems(context)):
            return Outcome(False, problem)
    if manifest.verb == "groups":
        for problem in _groups_problems(folder, manifest):
            return Outcome(False, problem)
    if manifest.verb == "topdown":
        for problem in _topdown_problems(folder, manifest):
            return Outcome(False, problem)
    if manifest.verb == "audit":
        if not _are_as_promised(manifest):
            return Outcome(False, "the parameters describe different tables from the promise")
        if not _are_filters_shown(folder, manifest):
            return Outcome(False, "a table is said to count labels that it does not list")
    if FIRST_MANIFEST in manifest.files:
        text = read_bytes(folder.file(FIRST_MANIFEST), MOST_BYTES)
        if not is_as_written(text):
            return Outcome(False, f"the first release's manifest {NOT_AS_WRITTEN}")
        first = parse(parse_json(text), FIRST_MANIFEST)
        own = _topdown_known(folder, first)
        if manifest.verb == "groups":
            own.names |= _group_regions(folder, manifest)
        for problem in _problems(first, own):
            return Outcome(False, f"the first release's manifest: {problem}")
        known.untraced |= own.untraced
    return _judge_untraced(known.untraced, accepted)


def _judge_untraced(untraced: Mapping[tuple[str, str], str], accepted: int | None) -> Outcome:
    """Whether the strings that are in no published file are no more than releases need, or than the verifier accepts.

    Parameters
    ----------
    untraced : mapping
        Kind and text of each string -> the key of the manifest that has it.
    accepted : int, optional
        How many strings are accepted, of whatever length; None for any number.
    """
    known = "known keys, and values of their kinds"
    if not untraced:
        return Outcome(True, known)
    n = len(untraced)
    found = f"{known}; {n} of them are in no other file"
    excess = [*_excess(untraced)]
    if not excess:
        return Outcome(True, found)
    if accepted is None or n <= accepted:
        return Outcome(True, f"{found}, accepted as requested: {MAKERS_WORD}")
    return Outcome(
        False,
        f"{n} strings are in no other file: {' and '.join(excess)}. Read them in manifest.json: people could be described there. Then "
        "accept "
        f"{n} strings",
    )


def _excess(untraced: Mapping[tuple[str, str], str]) -> Iterator[str]:
    """The kinds of strings that exceed what releases usually need."""
    for kind, (most, most_characters) in ALLOWED.items():
        own = {text: key for (one, text), key in untraced.items() if one == kind}
        n_characters = sum(map(len, own))
        if len(own) > most or n_characters > most_characters:
            keys = ", ".join(sorted(set(own.values())))
            yield (
                f"{len(own)} {kind} with {n_characters:,} characters under {keys}, where {most} with {most_characters} need no "
                "acceptance"
            )


def _problems(manifest: Manifest, known: TracedStrings) -> Iterator[str]:
    """What is wrong with the blocks that no promise covers."""
    parameters, results = SHAPES[manifest.verb]
    if any(abs(number) >= LARGEST for number in _whole_numbers([manifest.parameters, manifest.results])):
        yield "a number is longer than any that louver writes"
        return
    for model, block, name in (
        (parameters, manifest.parameters, "parameters"),
        (results, manifest.results, "results"),
    ):
        try:
            model.model_validate(block, context=known)
        except ValueError:
            yield f"the {name} contain a key or a value that {manifest.verb} does not write"
            return
    yield from _repeated(manifest)
    forms = {
        manifest.created: r"[0-9T:+.\-Z]{0,40}",
        manifest.version: r"[0-9A-Za-z.+\-]{1,40}",
        manifest.spec_sha256 or "": r"([0-9a-f]{64})?",
        manifest.ledger_head or "": r"([0-9]{1,12}:)?([0-9a-f]{64})?",
    }
    if not all(re.fullmatch(form, text) for text, form in forms.items()):
        yield "the date, the version or a hash is invalid"
    if not re.fullmatch(METHODS[manifest.verb], manifest.method):
        yield f"{manifest.verb} has no such method"
    if manifest.verb in EXACT and manifest.privacy:
        yield f"{manifest.verb} claims no loss of privacy"
    if list(manifest.warnings) != _warnings(manifest):
        yield "the warnings are not those that follow from the rest"
    if manifest.verb in EXACT and list(manifest.disclosures) not in _disclosures(manifest):
        yield "what is disclosed is not what follows from the rest"


def _whole_numbers(content: Any) -> Iterator[int]:
    if isinstance(content, int):
        yield content
    elif isinstance(content, Mapping | list | tuple):
        for part in content.values() if isinstance(content, Mapping) else content:
            yield from _whole_numbers(part)


def _repeated(manifest: Manifest) -> Iterator[str]:
    """Whether a level, query, table or statement is listed twice, or there are more than the levels allow."""
    results, request = manifest.results, manifest.parameters
    levels = [level["name"] for level in results.get("levels", ())]
    errors = (results.get("errors") or {}).get("typical", ())
    for names in (
        levels,
        [one["name"] for one in results.get("statements", ())],
        [(one["level"], one["query"]) for one in errors],
        *([query["name"] for query in level.get("queries", ())] for level in results.get("levels", ())),
        results.get("failsafe_regions", ()),
        results.get("suboptimal_regions", ()),
        [one["region"] for one in results.get("failsafe", ())],
        [one["name"] for one in results.get("reached", ())],
        [one.get("file", one["name"]) for one in request.get("tables", ())],
        [one["name"] for one in request.get("invariants", ())],
        [one["name"] for one in request.get("bounds", ())],
    ):
        if len(set(names)) < len(names):
            yield "the results or the parameters list something twice"
            return
    shares, geography = request.get("shares"), request.get("geography") or {}
    for one in (shares, geography.get("prefixes"), geography.get("columns")):
        if isinstance(one, list) and len(one) > len(levels):
            yield "the parameters list more than there are levels"
    if manifest.verb == "groups" and levels != ["total", *manifest.parameters["regions"]]:
        yield "the results list different levels from those requested"


def _moved(manifest: Manifest) -> list[int]:
    """The number of leaf regions in which a failsafe moved bounds, as promised; nothing if there are none."""
    return [entry["moved"] for entry in manifest.promises if entry.get("promise") == "agreement"]


PROTECTED_CELLS = {"hide": HIDDEN_CELLS, "round": ROUNDED_CELLS, "cellkey": CELL_KEY_CELLS}

PROTECTED_PROMISES = {"hide": "protected-tables", "round": "rounded-tables", "cellkey": "cell-key-tables"}
"""Sentences for each method of `protect`."""

METHODS: Mapping[str, str] = {
    "anonymize": METHOD_USED,
    "audit": "tables",
    "protect": "hide|round|cellkey",
    "groups": "|".join(map(re.escape, Mechanism.__args__)),  # type: ignore[attr-defined]
    "topdown": "|".join(map(re.escape, TOPDOWN_METHODS)),
}


def _warnings(manifest: Manifest) -> list[str]:
    """The warnings that a release must carry, in order."""
    if manifest.verb == "anonymize":
        is_weaker = manifest.results["guarantee"] == "freeform"
        return [WEAKER] * is_weaker + [IN_ORDER] * (manifest.parameters.get("keep_order") is True)
    if manifest.verb == "groups":
        is_rounded = manifest.method in ("M_H^r", "M_c^r") and "query" in manifest.results
        return (
            [NOT_PRIVATE] * manifest.not_private
            + [bounds_moved(n) for n in _moved(manifest) if n]
            + [CHAIN] * (manifest.method == "M_c^ch" and manifest.parameters.get("as_published") is True)
            + [ROUNDED_ALONE] * is_rounded
        )
    if manifest.verb == "topdown":
        rescued = len(manifest.results.get("failsafe", ()))
        # An extension of a non-private release is not private either, whatever its own noise.
        is_own = manifest.not_private and (
            "extends" not in manifest.results or NOT_PRIVATE in manifest.warnings
        )
        covariates = [one["column"] for one in manifest.results.get("covariates", ())]
        return (
            [NOT_PRIVATE] * is_own
            + [failsafe_used(rescued)] * (rescued > 0)
            + [public_numbers(covariates)] * bool(covariates)
        )
    return []


def _disclosures(manifest: Manifest) -> list[list[str]]:
    """The permitted lists of what a release publishes exactly."""
    if manifest.verb == "audit":
        return [[TABLES]]
    if manifest.verb == "protect":
        return [[PROTECTED_CELLS[manifest.method]]]
    columns = [column_disclosed(name) for name in manifest.results.get("unchanged", ())]
    return [columns] if "unchanged" in manifest.results else [[EARLIER_DISCLOSURE]]


def _anonymize_known(folder: Folder, manifest: Manifest) -> TracedStrings:
    names = set(folder.schema(DATA).names)
    names |= {name.removesuffix("_lower") for name in names if name.endswith("_lower")}
    if DICTIONARY in folder.files:
        names |= set(folder.table(DICTIONARY)["name"].to_pylist())
    mapping = folder.table("data/mapping.parquet")
    members = {label for labels in mapping["members"].to_pylist() for label in labels or ()}
    return TracedStrings(frozenset(names), frozenset(members))


def _audit_known(folder: Folder, manifest: Manifest) -> TracedStrings:
    tables = [table for entry in manifest.promises for table in entry.get("tables", ())]
    names = {name for table in tables for name in (*table["by"], table["file"])}
    return TracedStrings(frozenset(names), frozenset(_audit_labels(folder, tables)))


def _are_as_promised(manifest: Manifest) -> bool:
    """Whether tables are described in the parameters as they are in the promise, which is checked."""
    promised = promise_of(manifest, "tables")["tables"]
    request = manifest.parameters["tables"]
    return len(request) == len(promised) and all(
        one[key] == other[key] for one, other in zip(request, promised, strict=True) for key in other
    )


def _are_filters_shown(folder: Folder, manifest: Manifest) -> bool:
    """Whether a table of counts that is filtered by an attribute of its own lists every label of the filter.

    Labels that were merged afterwards, rows of shares without people, and other attributes are in no file, and are counted as untraced.
    """
    for table in manifest.parameters["tables"]:
        own = [
            name
            for name in table["by"]
            if name in table.get("where", {}) and name not in table.get("recode", {})
        ]
        if table["n_rows_by"] is not None or not own:
            continue
        listed: dict[str, set[Any]] = {name: set() for name in own}
        for batch in folder.batches(table["file"], own):
            for name, column in zip(own, batch.columns, strict=True):
                listed[name].update(column.unique().to_pylist())
        if any(not set(table["where"][name]) <= listed[name] for name in own):
            return False
    return True


def _audit_labels(folder: Folder, tables: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    for table in tables:
        for batch in folder.batches(table["file"], table["by"]):
            for column in batch.columns:
                yield from (label for label in column.unique().to_pylist() if label is not None)


def _protect_known(folder: Folder, manifest: Manifest) -> TracedStrings:
    """Codes of the hierarchies that no table shows are still public; they are counted."""
    promise = promise_of(manifest, PROTECTED_PROMISES[manifest.method])
    tables = promise["tables"]
    names = {name for table in tables for name in (*table["by"], table["name"])}
    known = TracedStrings(frozenset(names), frozenset(_audit_labels(folder, tables)))
    for codes in promise["codes"].values():
        listed = {part for tree in codes["trees"] for parts in tree.values() for part in parts}
        listed |= {leaf for leaves in codes["stands_for"].values() for leaf in leaves}
        for code in listed - known.labels:
            known.take(code, "labels", "codes")
    return known


def _groups_known(folder: Folder, manifest: Manifest) -> TracedStrings:
    names = {"total", *folder.schema("data/groups.parquet").names}
    labels: set[str] = set()
    if FIRST_MANIFEST in folder.files:
        first = parse(read_json(folder.file(FIRST_MANIFEST)), FIRST_MANIFEST)
        attributes = promise_of(first, "topdown")["attributes"]
        names |= set(attributes) | set(promise_of(first, "topdown")["regions"])
        labels |= {label for own in attributes.values() for label in own}
    return TracedStrings(frozenset(names), frozenset(labels))


def _group_regions(folder: Folder, manifest: Manifest) -> set[str]:
    """The codes of all regions in the table of sizes, alone and as paths."""
    columns = list(manifest.parameters["regions"])
    rows = without_dictionary(folder.table(GROUPS).select(columns)).to_pylist()
    paths = {tuple(label for label in row.values() if label is not None) for row in rows}
    return {"/".join(path) for path in paths} | {path[-1] for path in paths if path}


def _topdown_known(folder: Folder, manifest: Manifest) -> TracedStrings:
    names: set[str] = set()
    labels: set[str] = set()
    for entry in manifest.promises:
        names |= {*entry.get("levels", ()), *entry.get("regions", ()), *entry.get("attributes", {})}
        names |= {
            *entry.get("cells", {}),
            *entry.get("tables", {}),
            *entry.get("rules", {}),
            *entry.get("gaps", {}),
        }
        if entry.get("promise") == "topdown":
            names |= set((entry.get("errors") or {}).get("queries", ()))
            spine = entry.get("spine") or {}
            names |= {*spine.get("geography", ()), *spine.get("kinds", ())}
            labels |= {label for own in entry.get("attributes", {}).values() for label in own}
            tables = entry.get("tables", {}).values()
            labels |= {label for table in tables for own in table["attributes"].values() for label in own}
        if entry.get("promise") == "extension":
            names |= {view["attribute"] for view in entry.get("attributes", {}).values()}
            labels |= {label for view in entry.get("attributes", {}).values() for label in view["labels"]}
            labels |= {
                label for view in entry.get("attributes", {}).values() for label in view["labels"].values()
            }
    listed = [*manifest.results.get("failsafe_regions", ()), *manifest.results.get("suboptimal_regions", ())]
    if listed or manifest.results.get("failsafe"):
        names |= _regions(folder)
    return TracedStrings(frozenset({*names, "detailed", "total"}), frozenset(labels))


def _regions(folder: Folder) -> set[str]:
    """The codes of all regions that were measured."""
    found: set[str] = set()
    for batch in folder.batches(MEASURED, ["node"]):
        found |= set(batch["node"].combine_chunks().unique().to_pylist())
    return found


KNOWN = {
    "anonymize": _anonymize_known,
    "audit": _audit_known,
    "protect": _protect_known,
    "groups": _groups_known,
    "topdown": _topdown_known,
}


def _groups_problems(folder: Folder, manifest: Manifest) -> Iterator[str]:
    """Whether numbers of regions and of groups, and the sizes, are those of the table."""
    results, levels = manifest.results, [level["name"] for level in manifest.results["levels"]]
    keys = [*levels[1:], "level", "size"]
    table = without_dictionary(folder.table(GROUPS).select([*keys, "groups"]))
    table = table.rename_columns([*map(str, range(len(levels) - 1)), "level", "size", "groups"])
    sizes = table["size"].to_pylist()
    n_sizes = len(set(sizes))
    for level in results["levels"]:
        of_level = table.filter(pc.equal(table["level"], level["name"]))
        if of_level.num_rows != level["regions"] * n_sizes:
            yield "the results state different numbers of regions from the file"
            return
        if level["name"] == levels[0] and pc.sum(of_level["groups"]).as_py() != results["total_groups"]:
            yield "the results state a different number of groups from the file"
    if max(sizes) > manifest.parameters["max_size"] or min(sizes) < manifest.parameters["min_size"]:
        yield "the file has sizes that were not requested"


def _topdown_problems(folder: Folder, manifest: Manifest) -> Iterator[str]:
    """Whether numbers of people and regions, and the requested loss, are those of the files and of the privacy block."""
    results, request = manifest.results, manifest.parameters
    if results["people"] != folder.rows(promise_of(manifest, "topdown")["file"]):
        yield "the results state a different number of people from the file"
    if publisher_of(manifest) is None and not _are_regions_measured(folder, results["levels"]):
        yield "the results state different numbers of regions from those measured"
    if not _is_requested_spine(promise_of(manifest, "topdown").get("spine"), request):
        yield "the promise has a different spine from the request"
    for measure in ("epsilon", "rho"):
        amount, stated = request.get(measure), results.get(measure)
        if amount is None or stated is None or request.get("delta") is not None:
            continue
        if float(exact_fraction(amount)) < stated:  # queries whose answers are public cost nothing
            yield "the results state a greater loss than requested"


def _is_requested_spine(spine: Mapping[str, Any] | None, request: Mapping[str, Any]) -> bool:
    """Whether a spine was arranged where one was requested, in the geography and below the level requested."""
    given = request.get("spine")
    if spine is None or given is None:
        return spine is None and given is None
    levels = (request.get("geography") or {}).get("levels", [])
    return bool(list(spine["geography"]) == levels and spine["fixed"] == (given.get("fixed") or levels[0]))


def _are_regions_measured(folder: Folder, levels: Sequence[Mapping[str, Any]]) -> bool:
    """Whether every query was answered for the stated number of regions at each level; other publishers may leave answers out."""
    rows: Counter[tuple[str, str]] = Counter()
    for batch in folder.batches(MEASURED, ["level", "query"]):
        found = without_dictionary(batch).group_by(["level", "query"]).aggregate([([], "count_all")])
        for line in found.to_pylist():
            rows[line["level"], line["query"]] += line["count_all"]
    return all(
        {n for (name, _), n in rows.items() if name == level["name"]} <= {level["regions"]}
        for level in levels
    )


ROLES = ("identifying", "unit", "weight", "quasi", "sensitive", "keep")

KINDS = ("", "whole number", "number", "truth value", "date", "text", "ordered", "hierarchy", "category")

GENERALISED = (
    "generalised to intervals",
    "generalised to sets",
    "generalised along the hierarchy",
    "generalised to months, quarters, years or decades",
)

REACHED = {"l-diversity": "l", "t-closeness": "t"}

CODED = {
    "round_to": "rounded to multiples of",
    "bottom_code": "bottom-coded at",
    "top_code": "top-coded at",
}


def _done(line: Mapping[str, Any], parameters: Mapping[str, Any]) -> Sequence[str]:
    """The possible treatments of a column, in words, by its role and the parameters."""
    if line["role"] == "quasi":
        return GENERALISED
    if line["role"] not in ("sensitive", "keep"):
        return ("dropped",)
    codes = {words: parameters.get(key, {}).get(line["name"]) for key, words in CODED.items()}
    parts = [f"{words} {value:.15g}" for words, value in codes.items() if value is not None]
    return (", ".join(parts) or "unchanged",)


def _anonymize_problems(folder: Folder, manifest: Manifest, known: TracedStrings) -> Iterator[str]:
    """Whether counts, losses, classes and the dictionary agree with the files."""
    results, promises = manifest.results, {str(entry.get("promise")): entry for entry in manifest.promises}
    guarantee = promises.get(results["guarantee"])
    if (
        guarantee is None
        or guarantee.get("k") != results["k"]
        or results["method"] != manifest.method
        or results["by_column"] != promises["losses"].get("by_column")
        or results["records"] != promises["records"].get("records")
    ):
        yield "the results differ from what is promised"
        return
    if DICTIONARY in folder.files:
        lines = folder.table(DICTIONARY).to_pylist()
        if not _are_roles(lines, manifest.parameters):
            yield "the parameters give columns different roles from the dictionary"
        unchanged = [line["name"] for line in lines if line["role"] in ("sensitive", "keep")]
        if results.get("unchanged", unchanged) != unchanged:
            yield "the columns published unchanged are not those of the dictionary"
        for line in lines:
            is_known = line["role"] in ROLES and line["kind"] in KINDS
            if not is_known or line["done"] not in _done(line, manifest.parameters):
                yield "the dictionary of columns has words that louver does not write"
                return
            if line["role"] in ("identifying", "unit", "weight"):
                known.take(line["name"], "names", "identifying")
    sizes = [tuple(pair) for pair in results["risk"]["class_sizes"]]
    if (
        "counted" not in results["risk"]
    ):  # early versions counted classes as they were formed, which no file shows
        is_said = (
            sizes == sorted(dict(sizes).items()) and sum(size * n for size, n in sizes) == results["records"]
        )
    else:
        is_said = sizes == _class_sizes(folder, manifest)
    if not is_said:
        yield "the sizes of classes are not those of the published records"
    elif "counted" in results["risk"] and not _follows(folder, manifest, dict(sizes)):
        yield "risks and losses do not follow from the published records"


def _are_roles(lines: Sequence[Mapping[str, Any]], request: Mapping[str, Any]) -> bool:
    """Whether columns have the requested roles; other columns are kept or dropped."""
    by_role = {role: {line["name"] for line in lines if line["role"] == role} for role in ROLES}
    dropped = by_role["identifying"] | by_role["unit"] | by_role["weight"]
    are_kept_and_dropped = (
        set(request.get("keep", ())) <= by_role["keep"] and set(request.get("identifying", ())) <= dropped
    )
    return are_kept_and_dropped and all(
        set(request.get(role, ())) == by_role[role] for role in ("quasi", "sensitive")
    )


def _follows(folder: Folder, manifest: Manifest, sizes: Mapping[int, int]) -> bool:
    """Whether the figures at the top of the page follow from the class sizes and the losses of columns.

    The risks of freeform releases (they count fitting records, not classes) and averages over units are not checked.
    """
    results, request = manifest.results, manifest.parameters
    risk, utility, records = results["risk"], results["utility"], results["records"]
    n_classes, smallest, n_suppressed = sum(sizes.values()), min(sizes, default=0), results["suppressed"]
    shares = [share for _, share in results["by_column"]]
    by_records = sizes
    if risk["counted"] == "units":
        by_records = Counter(
            map(int, count_distinct(folder, DATA, _quasi(folder, manifest))["n"].to_pylist())
        )
    stated = [
        (results["classes"], n_classes),
        (results["smallest_class"], smallest),
        (risk["uniques_after"], sizes.get(1, 0)),
        (utility["discernibility"], _squares(by_records) + n_suppressed * (records + n_suppressed)),
        (utility["average_class_size"], records / max(1, n_classes) / results["k"]),
        (results["gcp"], sum(shares) / max(1, len(shares))),
    ]
    if results["guarantee"] != "freeform":
        stated.append((risk["prosecutor_highest"], 1 / smallest if smallest else 0))
        if risk["counted"] == "records":
            average = n_classes / max(1, records)
            stated += [(risk["prosecutor_average"], average), (risk["marketer"], average)]
    is_public = any(
        request.get(key) for key in ("population", "population_count", "k_map", "sampling_weight")
    )
    is_journalist = risk["journalist_highest"] is not None or risk["journalist_average"] is not None
    return all(isclose(value, found, rel_tol=1e-9, abs_tol=TOLERANCE) for value, found in stated) and (
        is_public or not is_journalist
    )


def _squares(sizes: Mapping[int, int]) -> int:
    return sum(n * size**2 for size, n in sizes.items())


def _reached_problems(context: Context) -> Iterator[str]:
    """Whether the diversity and closeness stated as reached hold in the records, given that the accompanying promise holds."""
    reached = {line["name"]: line for line in context.manifest.results.get("reached", ())}
    made: set[tuple[str, str]] = set()
    for entry in context.manifest.promises:
        name, key = entry.get("sensitive"), REACHED.get(str(entry.get("promise")))
        if key is None or name not in reached or reached[name][key] is None:
            continue
        made.add((str(name), key))
        reached_entry = {**entry, key: reached[name][key]}
        if key == "l":
            held = check_l_diversity(context, LDiversity.model_validate_json(json.dumps(reached_entry)))
        else:
            held = check_t_closeness(context, TCloseness.model_validate_json(json.dumps(reached_entry)))
        if not held.passed:
            yield "the results state more diversity or closeness than the records have"
    for name, line in reached.items():
        if any(line[key] is not None and (name, key) not in made for key in ("l", "t")):
            yield "the results state a diversity or closeness that is not promised"


def _class_sizes(folder: Folder, manifest: Manifest) -> list[tuple[int, int]]:
    """Number of classes of equal quasi-identifiers by size, counted in records or units."""
    if manifest.results["risk"].get("counted") == "units":
        sizes = folder.table("data/classes.parquet")["units"].to_pylist()
    else:
        sizes = count_distinct(folder, DATA, _quasi(folder, manifest))["n"].to_pylist()
    return sorted(Counter(map(int, sizes)).items())


def _quasi(folder: Folder, manifest: Manifest) -> list[str]:
    return [column for name in manifest.parameters["quasi"] for column in published_columns(folder, name)]
