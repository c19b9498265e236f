"""The privacy loss of a release: recomputed from the noise of its measurements and compared with all statements of the manifest about it.

Written from docs/proofs (topdown.md, groups.md, composition.md); shares no code with the choice of the noise. The measurements list the
levels and queries with the variance of their noise; the neighbour relation and the query give the sensitivity; together they give the loss
of every query, and their sum that of the release. The exact disclosures are those that the folder holds.

The variance that a file states is assumed to be that of the noise that was drawn: no file can prove how it was drawn.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import islice
from math import prod
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from louver._arrays import Bools
from louver.errors import printable
from louver.release.folder import Malformed, without_dictionary
from louver.release.manifest import Manifest, parse
from louver.release.promises.base import Context, Outcome, promise_of
from louver.release.promises.measurements import MEASUREMENTS, publisher_of
from louver.release.promises.noise import Changed, MeasuredNoise, log_delta, read_noise
from louver.release.promises.topdown import TopDown
from louver.release.strict_json import read_json

__all__ = ["FIRST", "check_privacy"]

FIRST = "first/"
FIRST_MANIFEST = "first/manifest.json"
INVARIANTS, GROUPS = "invariants.parquet", "data/groups.parquet"

VARIANCE_SLACK = 1e-6
"""Tolerated relative difference between two computations of the same variance."""

LEAST_VARIANCE = 1e-300
"""Smaller variances count as zero, as floats cannot represent them reliably."""

DELTA_SLACK = math.log(1.01)
"""Tolerated log excess of a delta over the claimed one, because the check is numerical."""

MOST_CELLS = 1 << 26
"""Largest number of schema cells that are examined one by one."""

MOST_LEVELS = 64
"""Largest number of region levels; the check of a delta examines every pair of them."""

MEANING = {
    "add-remove-record": "one record is added or removed",
    "change-record": "one record is replaced by another, in the same unit or not",
    "add-remove-unit": "one unit is added or removed with all its records",
}
GIVEN = "The guarantee holds among tables that share the exact values of the invariants."
UNITS = "the list of units and their regions, hence the total number of groups"
REGIONS = "the list of regions that occur"
ALONE = "whether a person who is alone in a unit is there at all (public total)"
UNHIDDEN = "how many units a region has: no noise of this budget hides it (public total)"

AMOUNT = r"^[0-9]{1,2000}(/[0-9]{1,2000})?$"
Amount = Annotated[str, Field(pattern=AMOUNT)]
Pair = tuple[Amount, Amount] | None
Key = tuple[str, str]
Ways = Sequence[Sequence[Sequence[tuple[int, int]]]]
"""For every kind of change and every query: (size of the change, number of counts)."""


class _PrivacyPart(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)


class LevelLoss(_PrivacyPart):
    """Privacy loss of a level of group sizes, and the sensitivities for which its noise was chosen."""

    name: str
    loss: Amount
    sensitivity: int
    squared_sensitivity: int | None = None


class QueryLoss(_PrivacyPart):
    """Privacy loss of a query at a level."""

    level: str
    query: str
    loss: Amount


class LossOfFirstRelease(_PrivacyPart):
    """Privacy loss of the release that is extended."""

    measure: str
    amount: Amount
    neighbours: str


class Claim(_PrivacyPart):
    """The privacy block of a manifest."""

    measure: Literal["epsilon", "rho"]
    amount: Amount
    neighbours: Literal["add-remove-record", "change-record", "add-remove-unit"]
    meaning: str
    invariants: tuple[str, ...]
    not_protected: tuple[str, ...] | None = None
    composed: Pair = None
    budget: Amount | None = None
    epsilon_at_delta: Pair = None
    conditional_on: str | None = None
    levels: tuple[LevelLoss, ...] | None = None
    queries: tuple[QueryLoss, ...] | None = None
    first_release: LossOfFirstRelease | None = None
    stated_by: str | None = None


def check_privacy(context: Context) -> Outcome:
    """Compare the loss stated in the manifest with the measurements and the exact files."""
    manifest = context.manifest
    if manifest.not_private and manifest.not_for_release and manifest.parameters.get("as_published"):
        return Outcome(True, "the noise is that printed in a paper and is not private; no loss is claimed")
    claim = Claim.model_validate_json(json.dumps(manifest.privacy))
    by = publisher_of(manifest)
    if claim.stated_by != by:
        return Outcome(False, "the manifest does not say who stated the noise of published measurements")
    noise = read_noise(context.folder, MEASUREMENTS[manifest.verb], is_published=by is not None)
    check = _topdown_problems if manifest.verb == "topdown" else _groups_problems
    for problem in (*_common_problems(claim, manifest), *check(context, claim, noise)):
        return Outcome(False, problem)
    detail = (
        f"{claim.measure} = {claim.amount} ({claim.neighbours}) follows from {len(noise)} measured queries"
    )
    if by is not None:
        amount = f"{claim.measure} = {float(Fraction(claim.amount)):.4g} ({claim.neighbours})"
        detail = (
            f"louver claims no loss of its own; the usual variances of {len(noise)} queries, as {printable(by)} states them, amount to "
            f"{amount}"
        )
    if manifest.parameters.get("quantity") is not None:
        detail += ", given the largest quantity of a record that its maker states"
    if claim.first_release is not None:
        detail += f"; the release that it builds on adds {claim.first_release.measure} = {claim.first_release.amount}"
    return Outcome(True, detail)


def _common_problems(claim: Claim, manifest: Manifest) -> Iterator[str]:
    """Differences between the privacy block, the parameters and the results."""
    if claim.meaning != MEANING[claim.neighbours]:
        yield "the neighbour relation is described as a different one"
    elsewhere = {one.get("neighbours", claim.neighbours) for one in (manifest.parameters, manifest.results)}
    if elsewhere != {claim.neighbours}:
        yield "the manifest names several neighbour relations"
    epsilon, rho = manifest.results.get("epsilon"), manifest.results.get("rho")
    amount, composed = float(Fraction(claim.amount)), claim.composed
    expected = {"epsilon": (amount, None), "rho": (None, amount)}[claim.measure]
    if manifest.verb == "groups" and composed is not None:
        expected = (float(Fraction(composed[0])), amount)
        if manifest.results.get("delta") != float(Fraction(composed[1])):
            yield "the results state a different loss from the privacy block"
    if (epsilon, rho) != expected:
        yield "the results state a different loss from the privacy block"


def _loss_problems(
    claim: Claim, losses: Sequence[Fraction], variances: Sequence[float], changes: Sequence[tuple[int, int]]
) -> Iterator[str]:
    """Whether noise of these variances has the claimed loss, given L1 and squared L2 sensitivities."""
    for loss, variance, (l1, squared) in zip(losses, variances, changes, strict=True):
        # A variance may be too small for a float, and is then 0.
        if not 0 < loss <= 10**12 or not 0 <= variance < math.inf or not min(l1, squared) >= 1:
            yield "a loss is not positive, or a variance is invalid"
            return
        expected = (
            laplace_variance(l1 / float(loss))
            if claim.measure == "epsilon"
            else gaussian_variance(squared / (2 * float(loss)))
        )
        if claim.stated_by is not None:  # the stated variance is treated as the parameter of the distribution
            expected = squared / (2 * float(loss))
        if not abs(variance - expected) <= VARIANCE_SLACK * expected + LEAST_VARIANCE < math.inf:
            yield "the noise of the measurements does not match the loss claimed"
            return
    if sum(losses, Fraction(0)) != Fraction(claim.amount):
        yield "the losses of the measured queries do not add up to the loss claimed"
    if claim.budget is not None and Fraction(claim.budget) < Fraction(claim.amount):
        yield "the loss is larger than the budget"


def laplace_variance(scale: float) -> float:
    """Variance of discrete Laplace noise: P(x) proportional to e^(-|x| / scale)."""
    return 2 * math.exp(-1 / scale) / math.expm1(-1 / scale) ** 2


def gaussian_variance(sigma_squared: float) -> float:
    """Variance of discrete Gaussian noise: P(x) proportional to e^(-x^2 / (2 sigma_squared))."""
    if sigma_squared >= 64:
        return sigma_squared
    x = np.arange(-120, 121, dtype=np.float64)
    weight = np.exp(-x * x / (2 * sigma_squared))
    return float((x * x) @ weight / weight.sum())


def _delta_problems(
    claim: Claim, losses: Sequence[Fraction], squared: Sequence[int], ways: Ways
) -> Iterator[str]:
    """Whether every pair of epsilon and delta holds for all kinds of change."""
    pairs = [pair for pair in (claim.composed, claim.epsilon_at_delta) if pair is not None]
    if pairs and claim.measure != "rho":
        yield "an epsilon with a delta is claimed, which this noise does not have"
        return
    if not pairs:
        return
    together = {tuple(_together(_changed(losses, squared, way))) for way in ways}
    for epsilon, delta in pairs:
        for changed in together:
            found = log_delta(float(Fraction(epsilon)), changed)
            if not found <= _log(Fraction(delta)) + DELTA_SLACK:
                yield "the noise does not give the epsilon and delta claimed"
                return


def _changed(
    losses: Sequence[Fraction], squared: Sequence[int], way: Sequence[Sequence[tuple[int, int]]]
) -> list[Changed]:
    """Effect of one kind of change on the noisy counts of every query."""
    return [
        Changed(float(Fraction(l2) / (2 * loss)), shift, count)
        for loss, l2, own in zip(losses, squared, way, strict=True)
        for shift, count in own
    ]


def _together(changed: Sequence[Changed]) -> list[Changed]:
    """Equal changes of equal noise counted together."""
    counts: dict[tuple[float, int], int] = {}
    for one in changed:
        counts[one.sigma_squared, one.shift] = counts.get((one.sigma_squared, one.shift), 0) + one.count
    return [Changed(sigma_squared, shift, count) for (sigma_squared, shift), count in counts.items()]


def _log(value: Fraction) -> float:
    return math.log(value.numerator) - math.log(value.denominator)


# TopDown


def _topdown_problems(context: Context, claim: Claim, noise: Mapping[Key, MeasuredNoise]) -> Iterator[str]:
    """The queries of every level, invariants, and the release that is extended."""
    manifest = context.manifest
    promise = _topdown_promise(manifest)
    yield from _query_problems(claim, manifest, {key: one.variance for key, one in noise.items()})
    yield from _width_problems(promise, noise)
    if claim.conditional_on != GIVEN:
        yield "the manifest does not say what the guarantee is conditional on"
    n_regions = {level: one.n_regions for (level, _), one in noise.items()}
    if claim.stated_by is not None:  # levels with exact values need not have been measured
        exact = without_dictionary(context.folder.table(INVARIANTS))
        for name, level in promise.exact.items():
            n_regions[level] = exact["invariant"].to_pylist().count(name)
    invariants, not_protected = list(promise.exact), _not_protected(promise, claim.neighbours, n_regions)
    if _is_extension(context):
        if invariants:
            yield "an extension publishes nothing exactly of its own"
        first = parse(read_json(context.folder.file(FIRST_MANIFEST)), FIRST_MANIFEST)
        yield from _first_problems(claim, first, manifest)
        if manifest.disclosures:
            yield "an extension discloses nothing exactly of its own"
        invariants = list(first.privacy.get("invariants", ()))
        not_protected = list(first.privacy.get("not_protected", ()))
    elif claim.first_release is not None:
        yield "the manifest refers to a first release that is not in the folder"
    else:
        exactly = [f'the counts of invariant "{name}", exactly' for name in invariants]
        if sorted(manifest.disclosures) != sorted(exactly):
            yield "what the manifest lists as disclosed is not what the folder contains exactly"
    if sorted(claim.invariants) != sorted(invariants):
        yield "the invariants named are not those whose exact values are in the folder"
    if claim.not_protected is None or sorted(claim.not_protected) != sorted(not_protected):
        yield "what the manifest calls not protected is not what the invariants reveal"
    if claim.neighbours == "add-remove-record" and not _counts_somebody_freely(promise):
        yield "the invariants count everybody, so that nobody could be added or removed"


def _is_extension(context: Context) -> bool:
    return any(name.startswith(FIRST) for name in context.manifest.files)


def _topdown_promise(manifest: Manifest) -> TopDown:
    entry = promise_of(manifest, "topdown")
    return TopDown.model_validate_json(json.dumps(entry))


def _query_problems(claim: Claim, manifest: Manifest, variances: Mapping[Key, float]) -> Iterator[str]:
    """One person is in one row of every query: if a person is replaced, two rows change by one; if added or removed, one row does."""
    if claim.neighbours == "add-remove-unit" or claim.queries is None:
        yield "TopDown protects records, and lists the loss of every query"
        return
    losses = {(one.level, one.query): Fraction(one.loss) for one in claim.queries}
    results = {
        (level["name"], query["name"]): _amount(query["loss"])
        for level in manifest.results["levels"]
        for query in level["queries"]
    }
    if len(losses) != len(claim.queries) or set(losses) != set(variances) or results != losses:
        yield "the queries that the manifest lists are not those that were measured"
        return
    n = 2 if claim.neighbours == "change-record" else 1
    amounts = list(losses.values())
    yield from _loss_problems(claim, amounts, [variances[key] for key in losses], [(n, n)] * len(losses))
    yield from _delta_problems(claim, amounts, [n] * len(losses), [[((1, n),)] * len(losses)])


def _amount(text: str) -> Fraction:
    """A fraction in plain digits, because an exponent could stand for a number of any length."""
    if not re.fullmatch(AMOUNT, text):
        raise Malformed("a loss is not a fraction in plain digits")
    return Fraction(text)


def _width_problems(promise: TopDown, noise: Mapping[Key, MeasuredNoise]) -> Iterator[str]:
    """Whether every query counts a person once, that is, has as many numbers as its table has cells."""
    n_cells = prod(map(len, promise.attributes.values()))
    widths = {name: prod(map(len, table.attributes.values())) for name, table in promise.tables.items()}
    if any(one.n_values != widths.get(query, n_cells) for (_, query), one in noise.items()):
        yield "a query has more numbers than its table has cells, so that a person could count twice"


def _not_protected(promise: TopDown, neighbours: str, n_regions: Mapping[str, int]) -> list[str]:
    """What neighbouring tables have in common, in words."""
    detail = []
    for name, level in promise.exact.items():
        who = " and ".join(f"{key} {' or '.join(labels)}" for key, labels in promise.cells[name].items())
        is_divided = n_regions[level] > 1
        if neighbours != "change-record":
            what = f"whether a person with {who} is there at all"
        elif who and is_divided:
            what = f"whether a person of a {level} has {who}, and which {level} such a person lives in"
        elif who:
            what = f"whether a person has {who}"
        else:
            what = f"which {level} a person lives in" if is_divided else "how many people there are"
        detail.append(f'{what} (invariant "{name}")')
    return detail


def _counts_somebody_freely(promise: TopDown) -> bool:
    """Whether somebody may be in cells that no invariant counts."""
    shape = [len(labels) for labels in promise.attributes.values()]
    if any(not promise.cells[name] for name in promise.exact):
        return False
    if prod(shape) > MOST_CELLS:
        return True
    is_counted = np.zeros(shape, np.bool_)
    for cells in (*promise.structural_zeros, *(promise.cells[name] for name in promise.exact)):
        is_counted |= _inside(promise, cells)
    return not is_counted.all()


def _inside(promise: TopDown, cells: Mapping[str, Sequence[str]]) -> Bools:
    """Cells that have one of the labels in every attribute named."""
    inside: Bools = np.ones([1] * len(promise.attributes), np.bool_)
    for axis, (name, labels) in enumerate(promise.attributes.items()):
        if name in cells:
            chosen = np.isin(np.array(labels), np.array(cells[name]))
            inside = inside & chosen.reshape([-1 if a == axis else 1 for a in range(len(promise.attributes))])
    return inside


def _first_problems(claim: Claim, first: Manifest, manifest: Manifest) -> Iterator[str]:
    """Problems of the statement about the release that is extended, whose loss must follow from the queries listed."""
    detail = Claim.model_validate_json(json.dumps(first.privacy))
    stated = claim.first_release
    if stated is None or (stated.measure, stated.amount, stated.neighbours) != (
        detail.measure,
        detail.amount,
        detail.neighbours,
    ):
        yield "the manifest does not state the privacy loss of the release that it extends"
    variances = {
        (str(level["name"]), str(query["name"])): float(query["variance"])
        for level in first.results["levels"]
        for query in level["queries"]
    }
    yield from _common_problems(detail, first)
    yield from _query_problems(detail, first, variances)
    if sorted(detail.invariants) != sorted(_topdown_promise(first).exact):
        yield "the first release does not state its invariants"
    if (first.not_private and not manifest.not_private) or (
        first.not_for_release and not manifest.not_for_release
    ):
        yield "the release that it extends is not private, or not for release"


# Group sizes


def _groups_problems(context: Context, claim: Claim, noise: Mapping[Key, MeasuredNoise]) -> Iterator[str]:
    """The levels of group sizes, and what a public total discloses."""
    manifest = context.manifest
    queries = {query for _, query in noise}
    levels = claim.levels or ()
    if len(levels) > MOST_LEVELS:
        yield f"there are more than {MOST_LEVELS} levels of regions"
        return
    if len(queries) != 1 or sorted(level for level, _ in noise) != sorted(level.name for level in levels):
        yield "the levels that the manifest lists are not those that were measured"
        return
    query = queries.pop()
    is_public = INVARIANTS in context.folder.files
    known_exactly = _first_known(context, claim)
    if isinstance(known_exactly, str):
        yield known_exactly
        return
    yield from _total_problems(context, claim, query, is_public, known_exactly)
    changes = [
        groups_sensitivity(query, claim.neighbours, noise[level.name, query], manifest.parameters, is_public)
        for level in levels
    ]
    if None in changes:
        yield f"{query} counts are not private for these neighbours and this total"
        return
    known = [one for one in changes if one is not None]
    used = []
    for level, (l1, squared) in zip(levels, known, strict=True):
        # Earlier versions used the square of the L1 sensitivity, which gives more noise than needed.
        allowed = {squared, l1 * l1} if level.squared_sensitivity is None else {level.squared_sensitivity}
        if level.sensitivity != l1 or not allowed <= {squared, l1 * l1}:
            yield "the sensitivities listed are not those of the queries"
            return
        used.append((l1, level.squared_sensitivity or (l1 * l1 if claim.measure == "rho" else squared)))
    losses = [Fraction(level.loss) for level in levels]
    yield from _loss_problems(claim, losses, [noise[level.name, query].variance for level in levels], used)
    yield from _delta_problems(claim, losses, [l2 for _, l2 in used], _ways(query, claim.neighbours, known))


def groups_sensitivity(
    query: str, neighbours: str, measured: MeasuredNoise, parameters: Mapping[str, Any], is_public: bool
) -> tuple[int, int] | None:
    """L1 and squared L2 sensitivity over all regions of a level (docs/proofs/groups.md); None if there is none."""
    stated = parameters.get("max_quantity", 1)
    if type(stated) is not int or stated < 1:
        raise Malformed("max_quantity is not a whole number of at least 1")
    largest = min(stated, measured.n_values)
    if query in ("prefix", "chain") and not is_public:
        return None
    if neighbours == "add-remove-unit":
        if is_public or parameters.get("across") == "split":
            return None
        return {"sizes": (1, 1), "suffix": (measured.n_values, measured.n_values)}.get(query)
    times = 2 if neighbours == "change-record" else 1
    if query == "sizes":
        return (2 * times, 6 if times == 2 else 2)
    width = {"prefix": 1, "suffix": 1, "chain": measured.n_regions}.get(query)
    return None if width is None else (largest * width * times, largest * width * times)


def _ways(query: str, neighbours: str, changes: Sequence[tuple[int, int]]) -> Ways:
    """How one step changes the counts of all levels: every kind of change, or a larger change that covers it."""
    if query != "sizes":
        return [[((1, l1),) for l1, _ in changes]]
    if neighbours != "change-record":
        return [[((1, squared),) for _, squared in changes]]
    # Two units are in one region down to some level, and in different regions below it.
    n = len(changes)
    return [[((2, 1), (1, 2))] * above + [((1, 4),)] * (n - above) for above in range(n + 1)]


def _first_known(context: Context, claim: Claim) -> tuple[list[str], list[str]] | str:
    """What the release of people with which the sizes agree publishes exactly and does not protect; or what is wrong with it."""
    if not _is_extension(context):
        return (
            ([], [])
            if claim.first_release is None
            else "the manifest describes a first release that is not there"
        )
    first = parse(read_json(context.folder.file(FIRST_MANIFEST)), FIRST_MANIFEST)
    for problem in _first_problems(claim, first, context.manifest):
        return problem
    detail = Claim.model_validate_json(json.dumps(first.privacy))
    if detail.neighbours != claim.neighbours:
        return "the two releases protect other neighbours"
    if detail.neighbours == "add-remove-record" and detail.invariants:
        return "the first release publishes counts exactly, so that nobody could be added or removed"
    n_regions = {str(level["name"]): int(level["regions"]) for level in first.results["levels"]}
    expected = _not_protected(_topdown_promise(first), detail.neighbours, n_regions)
    if sorted(detail.not_protected or ()) != sorted(expected):
        return "what the first release calls not protected is not what its invariants reveal"
    return list(detail.invariants), list(detail.not_protected or ())


def _total_problems(
    context: Context, claim: Claim, query: str, is_public: bool, first: tuple[list[str], list[str]]
) -> Iterator[str]:
    """Problems of what is published exactly: the number of groups, if the folder has it, and regions taken from the data."""
    manifest = context.manifest
    entry: Mapping[str, Any] = manifest.promises[0] if manifest.promises else {}
    if (manifest.parameters.get("total") == "public") != is_public or (query == "suffix" and is_public):
        yield "the manifest and the folder differ on whether the total is public"
    if is_public:
        exact = context.folder.table(INVARIANTS, most_rows=1)["value"].to_pylist()
        if len(exact) != 1 or ("total" in entry and entry["total"] != exact[0]):
            yield "the total promised is not the one in the folder"
    elif entry.get("total") is not None:
        yield "a total is promised that the folder does not have"
    elif any(0 in batch["size"].to_pylist() for batch in islice(context.folder.batches(GROUPS, ["size"]), 1)):
        yield "sizes begin at 0, which is only possible with a public total"
    invariants = [UNITS] * is_public + [REGIONS] * bool(manifest.parameters.get("domain_from_data"))
    disclosed = ["the total number of groups, exactly"] * is_public
    disclosed += [f"{REGIONS}, exactly"] * bool(manifest.parameters.get("domain_from_data"))
    if list(claim.invariants) != [*invariants, *first[0]] or list(manifest.disclosures) != disclosed:
        yield "the invariants named are not those that the folder and the parameters show"
    own = (ALONE, UNHIDDEN) if is_public else ()
    if claim.not_protected not in (None, (*own, *first[1])):
        yield "what the manifest calls not protected is not what a public total reveals"
