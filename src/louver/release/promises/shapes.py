"""What each verb may state in a manifest: known keys, and values of the right types, as models of its parameters and results.

Every string must be a name or a label of the published files, one of a list, or of a fixed form; strings that can be none of these are
collected as untraced. Everything that the options of a verb accept must be permitted here. A release that is refused at sealing has already
been paid for, so parameters are checked for the same form beforehand (`check_parameters`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import chain, pairwise
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, ValidationInfo

from louver.errors import PromiseError
from louver.privacy.budget import exact_fraction

__all__ = ["METHOD_USED", "SHAPES", "Mechanism", "TracedStrings", "check_parameters"]

LONGEST, MOST_UNTRACED = 2_000, 1_000_000
"""Maximum number of characters of one string, and of all strings, that are in no published file: a column may have its survey question
as a name, and a recode may list every postcode of a country."""

MOST_REPEATED = 8
"""Maximum number of repeated names in a list; an option that repeats one does no harm."""

MOST_EDGES = 1_000
"""Maximum number of bin edges of one column."""


@dataclass(slots=True)
class TracedStrings:
    """Strings of the published files and promises; `untraced` collects strings of the manifest that are not among them."""

    names: frozenset[str]
    labels: frozenset[str] = frozenset()
    untraced: dict[tuple[str, str], str] = field(default_factory=dict)
    n_characters: int = 0

    def is_name(self, text: str) -> bool:
        return text in self.names

    def take(self, text: str, kind: str, key: str) -> str:
        """Count a string that cannot be traced: it must be short, and counts once for its kind, under the first key that has it."""
        if len(text) > LONGEST:
            raise ValueError("a string is longer than any name")
        if (kind, text) not in self.untraced:
            self.untraced[kind, text] = key
            self.n_characters += len(text)
        if self.n_characters > MOST_UNTRACED:
            raise ValueError("there are more strings than any release states")
        return text


class _Unpublished(TracedStrings):
    """Known strings before there are files in which to trace them: any string may become a name in these files."""

    def is_name(self, text: str) -> bool:
        return True


def _name(text: str, info: ValidationInfo[TracedStrings]) -> str:
    if not info.context.is_name(text):
        raise ValueError("not a name from the published files")
    return text


def _label(text: str, info: ValidationInfo[TracedStrings]) -> str:
    return text if text in info.context.labels else info.context.take(text, "labels", str(info.field_name))


def _untraced(text: str, info: ValidationInfo[TracedStrings]) -> str:
    return text if text in info.context.names else info.context.take(text, "names", str(info.field_name))


def _once(listed: list[Any]) -> list[Any]:
    if len(listed) - len(set(listed)) > MOST_REPEATED:
        raise ValueError("something is listed twice")
    return listed


def _ascending(listed: list[Any]) -> list[Any]:
    if any(a >= b for a, b in pairwise(listed)):
        raise ValueError("numbers that do not increase")
    return listed


def _disjoint(merged: dict[str, list[str]]) -> dict[str, list[str]]:
    _once([*chain.from_iterable(merged.values())])
    return merged


def _amount(text: str) -> str:
    """An amount in any notation that an option accepts: .5, 1/2, 5e-1, 1_000."""
    exact_fraction(text)
    return text


Name = Annotated[str, AfterValidator(_name)]
"""A column, level, query or statement of the release."""

Label = Annotated[str, AfterValidator(_label)]
"""A label, of the published files or not."""

Own = Annotated[str, AfterValidator(_untraced)]
"""A name of a column or a file of the source."""

Names = Annotated[list[Name], AfterValidator(_once)]

Owns = Annotated[list[Own], AfterValidator(_once)]

Number = int | float

Count = Annotated[int, Field(ge=0)]

Amount = Number | Annotated[str, AfterValidator(_amount)] | None

Loss = Annotated[str, Field(pattern=r"^(epsilon|rho) = [0-9]{1,2000}(/[0-9]{1,2000})? \([a-z-]{1,30}\)$")]

Neighbours = Literal["add-remove-record", "change-record", "add-remove-unit"]

Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]

Labels = dict[Name, Annotated[list[Label], AfterValidator(_once)]]

Merge = Annotated[dict[Label, Annotated[list[Label], Field(min_length=1)]], AfterValidator(_disjoint)]
"""New labels with the old ones that each merges; every old one occurs once."""

Method = Literal[
    "auto",
    "exact",
    "split-carry",
    "greedy",
    "sorted",
    "mondrian",
    "mondrian-relaxed",
    "k-member",
    "freeform-greedy",
    "freeform-sort-greedy",
    "freeform-hungarian",
]

METHOD_USED = r"^[a-z][a-z-]{0,30}$"
"""The method that found the classes, as one word."""

Mechanism = Literal[
    "louver", "M_H", "M_H^r", "M_dp^OP", "M_H^dp", "M_c", "M_c^r", "M_c^dp", "M_c^ch", "TopDown"
]


class _StatedPart(BaseModel):
    """Known keys and types; keys that early versions did not write may be missing."""

    # Each model is built on first use, because a release needs only those of its own verb.
    model_config = ConfigDict(strict=True, extra="forbid", allow_inf_nan=False, defer_build=True)


class Bins(_StatedPart):
    bins: Annotated[list[Number], Field(max_length=MOST_EDGES), AfterValidator(_ascending)]


class StatedLevel(_StatedPart):
    level: Count


Recode = Bins | StatedLevel | Merge


class AnonymizeParameters(_StatedPart):
    quasi: Names
    k: int
    identifying: Owns = []
    sensitive: Names = []
    keep: Names = []
    ordered: Labels | Names = []
    categorical: Names = []
    weights: dict[Name, Number] = {}
    method: Method
    recoding: Literal["local", "global"] = "local"
    exceptions: Number = 0
    seconds: Number = 0
    steps: int | None = None
    normalise: bool = False
    one_hot: Names = []
    sets: int | None = None
    boundary: int | None = None
    carry: Literal["classes", "subset", "bubble"] | None = None
    size: int | None = None
    accepted: int | None = None
    subproblem_seconds: Number | None = None
    l: Number | None = None  # noqa: E741 - the field's own name
    l_kind: Literal["distinct", "entropy", "recursive"] | None = None
    c: Number | None = None
    t: Number | None = None
    distance: Literal["equal", "ordered", "hierarchical"] | None = None
    count_missing: bool = False
    suppress: Number = 0
    population_count: Own | None = None
    k_map: bool = False
    unit: Own | None = None
    whole_units: bool = False
    sampling_weight: Own | None = None
    top_code: dict[Name, Number] = {}
    bottom_code: dict[Name, Number] = {}
    round_to: dict[Name, Number] = {}
    missing: Literal["category", "match", "error"] = "category"
    parts: Annotated[str, Field(pattern=r"^(auto|[0-9]{1,9})$")] | None = None
    format: Literal["labels", "bounds"] = "labels"
    csv: bool = False
    keep_order: bool = False
    class_id: bool = False
    missing_code: Labels = {}
    hierarchy: Names = []
    population: bool = False
    recode: dict[Name, Recode] = {}


class Subproblems(_StatedPart):
    number: Count
    largest: Count
    mean: Number


class ReachedLimit(_StatedPart):
    name: Name
    l: Number | None  # noqa: E741 - the field's own name
    t: Number | None
    distance: Literal["equal", "ordered", "hierarchical"]


class RiskFigures(_StatedPart):
    prosecutor_highest: Number
    prosecutor_average: Number
    marketer: Number
    journalist_highest: Number | None
    journalist_average: Number | None
    uniques_after: Count
    class_sizes: list[Annotated[list[Count], Field(min_length=2, max_length=2)]]
    counted: Literal["records", "units"] = "records"


class UtilityFigures(_StatedPart):
    discernibility: Count
    average_class_size: Number


class AnonymizeResults(_StatedPart):
    method: Annotated[str, Field(pattern=METHOD_USED)]
    guarantee: Literal["k-anonymity", "k-map", "k-units", "freeform"]
    k: int
    records: Count
    classes: Count
    smallest_class: Count
    suppressed: Count
    subproblems: Subproblems | None = None
    parts: Count | None = None
    unchanged: Names = []
    reached: list[ReachedLimit] = []
    gcp: Number
    by_column: list[list[Name | Number]]
    gap: Number | None = None
    risk: RiskFigures
    utility: UtilityFigures


class AuditTable(_StatedPart):
    name: Own
    file: Name
    by: Names
    base: int | None
    total: Label | None
    n_rows_by: int | None
    decimals: int | None
    where: dict[Own, Annotated[list[Label], Field(min_length=1), AfterValidator(_once)]] = {}
    recode: dict[Own, Recode] = {}
    people: Count | None = None


class AuditParameters(_StatedPart):
    small: Count
    within: Number | None
    counted: Literal["people, not households", "units, not people"] | None = None
    tables: list[AuditTable]


class ProtectTable(_StatedPart):
    name: Own
    by: list[Name]


class ProtectParameters(_StatedPart):
    tables: list[ProtectTable]


class GroupsParameters(_StatedPart):
    unit: Own | None = None
    size: Own | None = None
    groups: Own | None = None
    regions: Names
    domain_from_data: bool = False
    max_size: Count
    min_size: Count = 0
    epsilon: Amount = None
    rho: Amount = None
    delta: Amount = None
    shares: Literal["chosen", "equal"] | list[Amount] = "chosen"
    mechanism: Mechanism | None = None
    noise: Literal["louver", "opendp"] = "louver"
    quantity: Own | None = None
    max_quantity: Number = 1
    across: Literal["error", "split"] = "error"
    total: Literal["public", "noisy"]
    neighbours: Neighbours
    agrees_with: Sha256 | None = None
    members: Labels = {}
    heads: Labels = {}
    code: Own | None = None
    most_groups: Own | None = None
    least_groups: Own | None = None
    failsafe: bool = False
    seed: int | None = None
    evaluate: bool = False
    as_published: bool = False


class GroupsLevel(_StatedPart):
    name: Name
    regions: Count
    share: Number
    measured_l1: Number
    forecast_l1: Number
    forecast_emd: Number
    measured_emd: Number | None = None
    noise: Number | None = None
    weighed: Number | None = None
    typical: Count | None = None
    l1_error: Number | None = None
    emd: Number | None = None
    suffix_emd: Number | None = None


class GroupsResults(_StatedPart):
    mechanism: Mechanism
    epsilon: Number | None = None
    rho: Number | None = None
    delta: Number | None = None
    neighbours: Neighbours
    debited: Loss | None = None
    levels: list[GroupsLevel]
    total_groups: Count
    query: Literal["sizes", "prefix", "suffix", "chain"] | None = None
    sizes: Annotated[list[Count], Field(max_length=2)] = []


class Geography(_StatedPart):
    levels: Names
    leaves: Own
    column: Own | None = None
    prefixes: Annotated[list[Count], AfterValidator(_ascending)] | None = None
    columns: Owns | None = None


class SpineRequest(_StatedPart):
    areas: Own
    fixed: Name | None = None
    levels: Names | None = None
    tolerance: Number


class StatedShares(_StatedPart):
    levels: dict[Name, Amount]
    queries: dict[Name, Amount]
    at: dict[Name, dict[Name, Amount]] = {}


class QueryRequest(_StatedPart):
    attributes: Names
    merge: dict[Name, Merge] = {}


class InvariantRequest(_StatedPart):
    name: Name
    level: Name
    cells: Labels


class BoundRequest(_StatedPart):
    name: Name
    file: Own
    cells: Labels
    lower: int | Own | None = None
    upper: int | Own | None = None
    facilities: Label | None = None


class CovariateRequest(_StatedPart):
    column: Own
    file: Own | None = None
    cells: Labels = {}


class CovariateUsed(_StatedPart):
    column: Own
    file: Own
    sha256: Sha256


class Refined(_StatedPart):
    attribute: Name
    merge: Merge


class RuleRequest(_StatedPart):
    name: Name
    cells: Labels
    at_most: Count
    of: Labels | None = None


class GapRequest(_StatedPart):
    name: Name
    cells: Labels
    younger: Count | None = None
    older: Count | None = None


class HouseholdRequest(_StatedPart):
    head: Labels
    members: Labels
    years: Name
    gaps: list[GapRequest] = []


class PublishedRequest(_StatedPart):
    by: Own
    files: Count
    sha256: Sha256
    tabulation: Count | None = None
    variances: dict[Name, dict[Name, Amount]]


class TopDownParameters(_StatedPart):
    geography: Geography | None = None
    spine: SpineRequest | None = None
    shares: StatedShares | None = None
    queries: dict[Name, QueryRequest] = {}
    invariants: list[InvariantRequest] = []
    bounds: list[BoundRequest] = []
    covariates: list[CovariateRequest] = []
    extended_by: Own | None = None
    published: PublishedRequest | None = None
    epsilon: Amount = None
    rho: Amount = None
    delta: Amount = None
    neighbours: Neighbours
    acknowledge_invariants: bool = False
    estimator: Literal["bayes", "least-squares", "plain"] = "bayes"
    shrink: Number | Literal["off"] = 0
    intervals: Count = 0
    extends: Own | None = None
    digest: Sha256 | None = None
    refines: dict[Name, Refined] = {}
    rules: list[RuleRequest] = []
    household: HouseholdRequest | None = None


class StatedQuery(_StatedPart):
    name: Name
    loss: Annotated[str, Field(pattern=r"^[0-9]{1,2000}(/[0-9]{1,2000})?$")]
    variance: Number


class TopDownLevel(_StatedPart):
    name: Name
    regions: Count
    share: Number
    largest_residual: Number
    queries: list[StatedQuery]
    sizes: Annotated[list[Count], Field(max_length=21)] = []
    median: Count | None = None
    error: Number | None = None
    unproved: Count | None = None
    mean_absolute_error: dict[Name, Number] | None = None


class Rescued(_StatedPart):
    level: Name
    region: Name
    distance: Number
    moved: Count
    kept_margin: bool


class TypicalError(_StatedPart):
    level: Name
    query: Name
    error: Number
    simulated: bool


class Errors(_StatedPart):
    typical: list[TypicalError]
    bias: Annotated[list[Annotated[list[Number], Field(max_length=3)]], Field(max_length=100)]


class StatementKnown(_StatedPart):
    name: Name
    exact: bool
    level: Name


class EditsMade(_StatedPart):
    broken_before: dict[Name, Count]
    broken_after: dict[Name, Count]
    leaves: Count
    people: Count


class TopDownResults(_StatedPart):
    epsilon: Number | None = None
    rho: Number | None = None
    neighbours: Neighbours
    debited: Loss | None = None
    people: Count
    levels: list[TopDownLevel]
    failsafe_regions: Names = []
    suboptimal_regions: Names = []
    intervals: Count = 0
    errors: Errors | None = None
    statements: list[StatementKnown] = []
    structural_zeros: Count | None = None
    covariates: list[CovariateUsed] = []
    failsafe: list[Rescued] = []
    extends: Sha256 | None = None
    edits: EditsMade | None = None


class Nothing(_StatedPart):
    """No key."""


SHAPES: Mapping[str, tuple[type[_StatedPart], type[_StatedPart]]] = {
    "anonymize": (AnonymizeParameters, AnonymizeResults),
    "audit": (AuditParameters, Nothing),
    "protect": (ProtectParameters, Nothing),
    "groups": (GroupsParameters, GroupsResults),
    "topdown": (TopDownParameters, TopDownResults),
}


def check_parameters(verb: str, parameters: Mapping[str, Any]) -> None:
    """Refuse, before anything is spent, parameters that no manifest of the verb could state.

    Raises
    ------
    PromiseError
        If the finished release would be refused for its parameters alone.
    """
    model, _ = SHAPES[verb]
    try:
        model.model_validate(parameters, context=_Unpublished(frozenset()))
    except ValidationError as error:
        keys = ", ".join(sorted({str(line["loc"][0]) for line in error.errors(include_input=False)}))
    else:
        return
    raise PromiseError(
        f"the release could not state what was requested ({keys}), which is a bug in louver (please report it); nothing was spent, and "
        "other spellings or shorter names may work.",
        promise="manifest contents",
    )
