"""The spec file: source, attributes, structural zeros and the options of each verb, in TOML.

schema = "pl94"                  # optional: a ready-made schema, see `READY`

[source]
file = "patients.csv"
weight = "count"

[attributes.age]
kind = "integer"
bins = [25, 55]

[attributes.region]
labels = ["44001", "44003"]
hierarchy = { prefixes = [2, 5] }

[[structural_zeros]]
age = ["<25"]
region = ["44003"]

[bounds]
small = 5
"""

from __future__ import annotations

import copy
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import BeforeValidator, Field, FiniteFloat, model_validator
from pydantic_core import PydanticCustomError

from louver._arrays import Bools
from louver.errors import InputError
from louver.schema.attribute import Attribute, Kind
from louver.schema.hierarchy import Hierarchy
from louver.schema.recode import Recode
from louver.schema.source import SourceOptions
from louver.schema.validate import OWN, Options, read_toml, validated

__all__ = [
    "PLACEHOLDER",
    "READY",
    "HierarchyRule",
    "Schema",
    "SourceOptions",
    "Spec",
    "as_spec",
    "read_spec",
    "validated",
    "with_ready",
]

VERBS = ("profile", "bounds", "audit", "protect", "anonymize", "groups", "topdown")

PLACEHOLDER = "FILL IN"
"""The placeholder that `louver profile` leaves for the user to fill in; no verb accepts it as a value."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HierarchyRule:
    """How to derive a hierarchy once the labels are known: from code prefixes, from other columns or from the calendar.

    Parameters
    ----------
    prefixes : tuple of int
        Increasing prefix lengths, see `Hierarchy.from_prefixes`.
    columns : tuple of str
        Columns of the data from the most general to the most specific, like `--regions`; the attribute's
        own column comes last and may be left out.
    is_calendar : bool
        Labels are days, under months, quarters, years and decades.
    """

    prefixes: tuple[int, ...] = ()
    columns: tuple[str, ...] = ()
    is_calendar: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Schema:
    """The attributes of a data set as they are read, with recodes and structural zeros.

    Parameters
    ----------
    attributes : tuple of Attribute
        Domains of the columns as they appear in the data.
    structural_zeros : tuple of mappings
        Each maps attributes to labels (after recoding); a cell with one of the labels in every attribute
        of a mapping cannot occur.
    recodes : tuple of Recode
        Applied while reading, at most one per attribute.
    hierarchy_rules : mapping of str to HierarchyRule
        Rules for attributes whose hierarchy follows from labels that are not listed here.

    Examples
    --------
    >>> sex = Attribute(name="sex", labels=("female", "male"))
    >>> ward = Attribute(name="ward", labels=("maternity", "other"))
    >>> zeros = ({"sex": ("male",), "ward": ("maternity",)},)
    >>> schema = Schema(attributes=(sex, ward), structural_zeros=zeros)
    >>> schema.is_structural_zero(np.array([[0, 0], [1, 0], [1, 1]])).tolist()
    [False, True, False]
    """

    attributes: tuple[Attribute, ...]
    structural_zeros: tuple[Mapping[str, tuple[str, ...]], ...] = ()
    recodes: tuple[Recode, ...] = ()
    hierarchy_rules: Mapping[str, HierarchyRule] = field(default_factory=dict)
    coded: tuple[Attribute, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        names = [attribute.name for attribute in self.attributes]
        if len(set(names)) < len(names):
            raise InputError("the schema lists an attribute twice; attributes must be unique.")
        recoded = [recode.attribute for recode in self.recodes]
        if len(set(recoded)) < len(recoded):
            raise InputError("the schema has two recodes of one attribute; keep one.")
        for name in (*recoded, *self.hierarchy_rules):
            self.attribute(name)
        object.__setattr__(self, "coded", tuple(self._code(attribute) for attribute in self.attributes))
        for zero in self.structural_zeros:
            self._check_zero(zero)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the attributes."""
        return tuple(attribute.name for attribute in self.attributes)

    def attribute(self, name: str) -> Attribute:
        """The attribute of that name, as it is read."""
        for attribute in self.attributes:
            if attribute.name == name:
                return attribute
        raise InputError(f'the schema has no attribute "{name}"; add it or correct the name.', column=name)

    def recode_of(self, name: str) -> Recode | None:
        """The recode of an attribute, if it has one."""
        return next((recode for recode in self.recodes if recode.attribute == name), None)

    def is_structural_zero(
        self, codes: NDArray[np.integer[Any]], attributes: Sequence[Attribute] | None = None
    ) -> Bools:
        """Whether each cell is one that cannot occur.

        Parameters
        ----------
        codes : ndarray of int, shape (n, d)
            One cell per row.
        attributes : sequence of Attribute, optional
            Attributes of the d columns; `coded` by default. A structural zero that names another attribute does not apply to these cells.
        """
        columns = {a.name: (axis, a) for axis, a in enumerate(attributes or self.coded)}
        answer = np.zeros(len(codes), dtype=np.bool_)
        for zero in self.structural_zeros:
            if set(zero) <= set(columns):
                inside = np.ones(len(codes), dtype=np.bool_)
                for name, labels in zero.items():
                    axis, attribute = columns[name]
                    wanted = [attribute.code_of(label) for label in labels if attribute.has_label(label)]
                    inside &= np.isin(codes[:, axis], wanted)
                answer |= inside
        return answer

    def _code(self, attribute: Attribute) -> Attribute:
        """The attribute after its recode; without listed labels, it depends on the data."""
        recode = self.recode_of(attribute.name)
        if recode is None or (not attribute.labels and recode.bins is None):
            return attribute
        return attribute.recoded(recode)[0]

    def _check_zero(self, zero: Mapping[str, Sequence[str]]) -> None:
        if not zero:
            raise InputError("a structural zero names no attribute; name at least one.")
        for name, labels in zero.items():
            self.attribute(name)
            attribute = next(coded for coded in self.coded if coded.name == name)
            for position, label in enumerate(labels, start=1):
                if attribute.labels and not attribute.has_label(label):
                    message = (
                        f'a structural zero lists label {position} for "{name}", which does not have it.'
                    )
                    raise InputError(message, column=name)


class HierarchyOptions(Options):
    """`hierarchy = "file.csv"`, `{ prefixes = [...] }` or `{ columns = [...] }`."""

    file: str | None = None
    prefixes: list[Annotated[int, Field(ge=1)]] | None = Field(default=None, min_length=1)
    columns: list[str] | None = Field(default=None, min_length=1)

    @model_validator(mode="after")
    def _check(self) -> HierarchyOptions:
        if [self.file, self.prefixes, self.columns].count(None) != 2:
            raise PydanticCustomError(OWN, "needs exactly one of file, prefixes and columns")
        return self


def _as_table(value: Any) -> Any:
    """Read a file name alone as the table with that file."""
    if isinstance(value, str):
        return {"file": value}
    if isinstance(value, dict):
        return value
    raise PydanticCustomError(OWN, "must be a file name in quotes or a table")


class AttributeOptions(Options):
    """`[attributes.NAME]`."""

    kind: Literal["category", "ordered", "integer", "number", "date"] = "category"
    labels: list[str] | None = Field(default=None, min_length=1)
    missing: Annotated[str, Field(min_length=1)] = "error"
    hierarchy: Annotated[HierarchyOptions, BeforeValidator(_as_table)] | None = None
    bins: list[FiniteFloat] | None = Field(default=None, min_length=1)
    merge: dict[str, Annotated[list[str], Field(min_length=1)]] | None = Field(default=None, min_length=1)
    level: Annotated[int, Field(ge=0)] | None = None

    @model_validator(mode="after")
    def _check(self) -> AttributeOptions:
        if [self.bins, self.merge, self.level].count(None) < 2:
            raise PydanticCustomError(OWN, "has more than one of bins, merge and level; keep one")
        return self


class SpecOptions(Options):
    """The whole file, with the verbs' tables left unparsed."""

    source: SourceOptions = Field(default_factory=SourceOptions)
    attributes: dict[str, AttributeOptions] = Field(default_factory=dict)
    structural_zeros: list[dict[str, Annotated[list[str], Field(min_length=1)]]] = Field(default_factory=list)
    profile: dict[str, Any] = Field(default_factory=dict)
    bounds: dict[str, Any] = Field(default_factory=dict)
    audit: dict[str, Any] = Field(default_factory=dict)
    protect: dict[str, Any] = Field(default_factory=dict)
    anonymize: dict[str, Any] = Field(default_factory=dict)
    groups: dict[str, Any] = Field(default_factory=dict)
    topdown: dict[str, Any] = Field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Spec:
    """A spec file as read.

    Parameters
    ----------
    path : Path
        The file.
    source : SourceOptions
        Where the records are.
    schema : Schema
        Attributes, recodes and structural zeros.
    verbs : mapping of str to mapping
        Unchecked options of each verb.
    """

    path: Path
    source: SourceOptions
    schema: Schema
    verbs: Mapping[str, Mapping[str, Any]]

    @property
    def data(self) -> str | None:
        """The data to open: a path (relative to the spec's folder) or a uri; None if not given."""
        if self.source.file is not None:
            return str(self.path.parent / self.source.file)
        return self.source.uri

    def options(self, verb: str) -> dict[str, Any]:
        """Options of one verb, still to be validated by it; an unfilled placeholder is refused."""
        key = _placeholder(self.verbs[verb], verb)
        if key is not None:
            message = (
                f'{self.path.name}: key "{key}" still has the placeholder; fill it in, or delete the line.'
            )
            raise InputError(message, file=self.path.name, option=key)
        return copy.deepcopy(dict(self.verbs[verb]))


def _placeholder(value: Any, key: str) -> str | None:
    """The first key whose value contains a placeholder."""
    if isinstance(value, Mapping):
        return next(
            filter(None, (_placeholder(below, f"{key}.{name}") for name, below in value.items())), None
        )
    if isinstance(value, list):
        return next(filter(None, (_placeholder(below, key) for below in value)), None)
    return key if value == PLACEHOLDER else None


def read_spec(path: str | Path) -> Spec:
    """Read and check a spec file.

    Raises
    ------
    InputError
        One sentence that names the file, the key and the expected value.
    """
    return _parsed(read_toml(path), Path(path))


def as_spec(spec: str | Path | Mapping[str, Any] | Spec) -> Spec:
    """A spec from a file, from a mapping with the same content (file names are relative to the working folder), or unchanged."""
    if isinstance(spec, Spec):
        return spec
    if isinstance(spec, str | Path):
        return read_spec(spec)
    if not isinstance(spec, Mapping):
        raise InputError("option --spec must be a file, a mapping or a Spec.", option="--spec")
    return _parsed(spec, Path("spec"))


def _parsed(mapping: Mapping[str, Any], path: Path) -> Spec:
    options = validated(SpecOptions, with_ready(mapping, path.name), path.name)
    rules: dict[str, HierarchyRule] = {}
    attributes, recodes = [], []
    for name, given in options.attributes.items():
        with _located(path.name, f"attributes.{name}"):
            attribute, rule = _build_attribute(name, given, path.parent)
            attributes.append(attribute)
            recodes.extend(_build_recode(name, given))
            if rule is not None:
                rules[name] = rule
    zeros = tuple({k: tuple(v) for k, v in zero.items()} for zero in options.structural_zeros)
    with _located(path.name, "attributes"):
        schema = Schema(attributes=tuple(attributes), recodes=tuple(recodes), hierarchy_rules=rules)
    with _located(path.name, "structural_zeros"):
        schema = replace(schema, structural_zeros=zeros)
    return Spec(
        path=path,
        source=options.source,
        schema=schema,
        verbs={verb: getattr(options, verb) for verb in VERBS},
    )


@contextmanager
def _located(file: str, key: str) -> Iterator[None]:
    """Put the file and the key in front of an error in a part of the schema."""
    try:
        yield
    except InputError as error:
        message = f'{file}: key "{key}": {error}'
        raise InputError(message, file=file, column=error.column, row=error.row, option=key) from None


def _build_attribute(
    name: str, given: AttributeOptions, folder: Path
) -> tuple[Attribute, HierarchyRule | None]:
    """The attribute, and the rule for its hierarchy if that depends on the data."""
    missing = None if given.missing == "error" else given.missing
    labels = tuple(given.labels or ())
    hierarchy, rule = _build_hierarchy(given.hierarchy, labels, folder)
    if given.kind == "date" and given.hierarchy is None:
        hierarchy = Hierarchy.from_dates([label for label in labels if label != missing]) if labels else None
        rule = None if labels else HierarchyRule(is_calendar=True)
    if hierarchy is not None and not labels:
        labels = hierarchy.leaves
    if labels and missing is not None and missing not in labels:
        labels = (*labels, missing)
    if hierarchy is not None and missing is not None and not hierarchy.has_leaf(missing):
        hierarchy = hierarchy.with_leaf(missing)
    attribute = Attribute(
        name=name, kind=Kind(given.kind), labels=labels, hierarchy=hierarchy, missing=missing
    )
    return attribute, rule


def _build_hierarchy(
    given: HierarchyOptions | None, labels: tuple[str, ...], folder: Path
) -> tuple[Hierarchy | None, HierarchyRule | None]:
    if given is None:
        return None, None
    if given.file is not None:
        return Hierarchy.from_csv(folder / given.file), None
    if given.prefixes is not None:
        if labels:
            return Hierarchy.from_prefixes(labels, given.prefixes), None
        return None, HierarchyRule(prefixes=tuple(given.prefixes))
    return None, HierarchyRule(columns=tuple(given.columns or ()))


def _build_recode(name: str, given: AttributeOptions) -> list[Recode]:
    """The attribute's recode as a list of none or one."""
    if given.bins is not None:
        return [Recode(name, bins=tuple(given.bins))]
    if given.merge is not None:
        return [Recode(name, merge={new: tuple(old) for new, old in given.merge.items()})]
    if given.level is not None:
        return [Recode(name, level=given.level)]
    return []


READY = ("pl94", "dhc-persons")
"""Schemas that a spec can name."""

READY_FOLDER = Path(__file__).with_name("ready")


def with_ready(mapping: Mapping[str, Any], where: str) -> Mapping[str, Any]:
    """A spec with the schema that it names, if any, written out; `where` is what messages call the spec.

    Raises
    ------
    InputError
        If there is no schema with this name.
    """
    if "schema" not in mapping:
        return mapping
    name = mapping["schema"]
    if name not in READY:
        known = " or ".join(f'"{one}"' for one in READY)
        raise InputError(f'{where}: key "schema" must be {known}.', file=where, option="schema")
    ready = tomllib.loads((READY_FOLDER / f"{name}.toml").read_text(encoding="utf-8"))
    return _joined(ready, {key: value for key, value in mapping.items() if key != "schema"}, "")


def _not_replaced(ready: Sequence[Any], own: Sequence[Any]) -> list[Any]:
    """Ready tables of which the spec has none of the same name."""
    names = [one.get("name") for one in own if isinstance(one, Mapping)]
    return [one for one in ready if one["name"] not in names]


def _joined(ready: Mapping[str, Any], own: Mapping[str, Any], place: str) -> dict[str, Any]:
    """Merge two tables: `[attributes]` and `[topdown]` key by key, lists of tables one after another; a rule replaces one of its name."""
    joined = dict(ready)
    for key, value in own.items():
        before = ready.get(key)
        if isinstance(before, list) and isinstance(value, list) and key in ("structural_zeros", "rules"):
            joined[key] = [*(_not_replaced(before, value) if key == "rules" else before), *value]
        elif isinstance(before, Mapping) and isinstance(value, Mapping) and place in ("", "topdown"):
            joined[key] = _joined(before, value, key)
        else:
            joined[key] = value
    return joined
