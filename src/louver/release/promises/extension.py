"""An extension: its people are those of a first release, row by row, with further attributes; and its edit rules."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import BaseModel, ConfigDict, Field, model_validator

from louver._arrays import Bools, Ints
from louver.release.folder import Folder, Malformed
from louver.release.manifest import Manifest, digest, file_entry, parse
from louver.release.promises.base import Context, Outcome, Promise, places_in
from louver.release.promises.topdown import Rows, leaf_codes
from louver.release.strict_json import read_json

if TYPE_CHECKING:
    from louver.release.promises.agreement import PromisedAgreement

__all__ = [
    "EditRules",
    "Households",
    "PromisedExtension",
    "check_edit_rules",
    "check_extension",
    "check_households",
    "first_of",
]

Labels = tuple[str, ...]
MICRODATA = "data/microdata.parquet"


class View(BaseModel):
    """The attribute that represents one of the first release, and the old label for each of its labels."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)

    attribute: str
    labels: Annotated[dict[str, str], Field(min_length=1)]


class PromisedExtension(Promise):
    """Every row, reduced to the first release's attributes, equals the corresponding row of the first release.

    Attributes
    ----------
    first, first_manifest : str
        Copies of the first release's microdata and manifest.
    first_digest : str
        Digest in the manifest, which identifies the first release.
    attributes : mapping
        The finer attribute that represents each attribute of the first release.
    """

    promise: Literal["extension"]
    file: Literal["data/microdata.parquet"]
    first: Literal["first/microdata.parquet"]
    first_manifest: Literal["first/manifest.json"]
    first_digest: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
    regions: Annotated[Labels, Field(min_length=1)]
    attributes: Annotated[dict[str, View], Field(min_length=1)]


class PromisedRule(BaseModel):
    """People in `cells` are at most `at_most` times those in `of`, or nobody, in all leaves except `broken` of them."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)

    cells: Annotated[dict[str, Labels], Field(min_length=1)]
    at_most: Annotated[int, Field(ge=0)]
    of: Annotated[dict[str, Labels], Field(min_length=1)] | None
    broken: Annotated[int, Field(ge=0)]


class EditRules(Promise):
    """The number of leaves in which each edit rule is violated."""

    promise: Literal["edit-rules"]
    file: Literal["data/microdata.parquet"]
    regions: Annotated[Labels, Field(min_length=1)]
    rules: Annotated[dict[str, PromisedRule], Field(min_length=1)]


class PromisedGap(BaseModel):
    """People in `cells` are at least `younger` years younger than the head, or `older` older, in all but `broken` leaves of one
    household."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)

    cells: Annotated[dict[str, Labels], Field(min_length=1)]
    younger: Annotated[int, Field(ge=1)] | None
    older: Annotated[int, Field(ge=1)] | None
    broken: Annotated[int, Field(ge=0)]

    @model_validator(mode="after")
    def _one_way(self) -> PromisedGap:
        if (self.younger is None) == (self.older is None):
            raise ValueError("either younger or older")
        return self

    def n_broken(self, held: pa.Table, column: str) -> int:
        """Leaves with one head and no outsiders in which the oldest, or youngest, is too close to the head's age."""
        own = held.filter((pc.field("heads") == 1) & (pc.field("outside") == 0) & pc.field(column).is_valid())
        apart = own[column].to_numpy() - own["age"].to_numpy()
        is_near = -apart < self.younger if self.younger is not None else apart < self.older
        return int(is_near.sum())


class Households(Promise):
    """The number of leaves with one head and only members in which each age gap is violated."""

    promise: Literal["households"]
    file: Literal["data/microdata.parquet"]
    regions: Annotated[Labels, Field(min_length=1)]
    years: str
    head: Annotated[dict[str, Labels], Field(min_length=1)]
    members: Annotated[dict[str, Labels], Field(min_length=1)]
    gaps: Annotated[dict[str, PromisedGap], Field(min_length=1)]


def check_extension(context: Context, promise: PromisedExtension) -> Outcome:
    """Compare the people with those of the first release, which must match its manifest."""
    folder = context.folder
    attributes = _first_attributes(folder, promise)
    if isinstance(attributes, str):
        return Outcome(False, attributes)
    names = [*promise.regions, *(view.attribute for view in promise.attributes.values())]
    first = Rows(folder.batches(promise.first, [*promise.regions, *promise.attributes]))
    n_rows = 0
    for batch in folder.batches(promise.file, names):
        before = first.next(batch.num_rows)
        if before is None or not _is_same(batch, before, promise, attributes):
            return Outcome(False, "the people are not those of the first release")
        n_rows += batch.num_rows
    if first.next(1) is not None:
        return Outcome(False, "the first release has more people")
    return Outcome(
        True, f"{n_rows} people are those of the first release {promise.first_digest[:16]}, row by row"
    )


def first_of(
    folder: Folder, promise: PromisedExtension | PromisedAgreement
) -> tuple[Manifest, Mapping[str, Any]] | str:
    """The manifest of the first release and its promise of people, or what is wrong with the copies."""
    content = read_json(folder.file(promise.first_manifest))
    if not isinstance(content, dict) or digest(content) != content.get("digest"):
        return "the first release's manifest was edited"
    if content["digest"] != promise.first_digest:
        return "the first release's manifest is a different one"
    first = parse(content, promise.first_manifest)
    if file_entry(folder.file(promise.first)) != first.files.get(MICRODATA):
        return "the first release's people do not match its manifest"
    topdown = next((one for one in first.promises if one.get("promise") == "topdown"), None)
    if topdown is None or list(promise.regions) != topdown["regions"]:
        return "the first release is not a TopDown release of these regions"
    return first, topdown


def _first_attributes(folder: Folder, promise: PromisedExtension) -> Mapping[str, Sequence[str]] | str:
    """Attributes of the first release, or what is wrong with its manifest."""
    found = first_of(folder, promise)
    if isinstance(found, str):
        return found
    _, topdown = found
    attributes: Mapping[str, Sequence[str]] = topdown["attributes"]
    if set(promise.attributes) != set(attributes):
        return "not every attribute of the first release is promised"
    return attributes


def _is_same(
    batch: pa.Table, before: pa.Table, promise: PromisedExtension, attributes: Mapping[str, Sequence[str]]
) -> bool:
    """Whether rows agree in the first release's attributes."""
    for name in promise.regions:
        if not batch[name].cast(pa.string()).equals(before[name].cast(pa.string())):
            return False
    for name, view in promise.attributes.items():
        old = list(attributes[name])
        if not set(view.labels.values()) <= set(old):
            raise Malformed("a finer label corresponds to no label of the first release")
        stands_for = np.array([*(old.index(label) for label in view.labels.values()), -1])
        found = stands_for[places_in(batch[view.attribute], pa.array(list(view.labels)))]
        expected = places_in(before[name], pa.array(old))
        if (found < 0).any() or not np.array_equal(found, expected):
            return False
    return True


def check_edit_rules(context: Context, promise: EditRules) -> Outcome:
    """Count the leaves in which each rule is broken."""
    used = {name for rule in promise.rules.values() for name in (*rule.cells, *(rule.of or ()))}
    parts: list[pa.Table] = []
    for batch in context.folder.batches(promise.file, [*promise.regions, *sorted(used)]):
        columns = {"leaf": leaf_codes(batch, promise.regions).cast(pa.string())}
        for number, rule in enumerate(promise.rules.values()):
            surplus = -_inside(batch, rule.cells).astype(np.int64)
            if rule.of is not None:
                surplus += rule.at_most * _inside(batch, rule.of)
            columns[str(number)] = pa.array(surplus)
        parts.append(_by_leaf(pa.table(columns), len(promise.rules)))
    held = _by_leaf(pa.concat_tables(parts), len(promise.rules)) if parts else None
    broken_rules = []
    for number, (name, rule) in enumerate(promise.rules.items()):
        values: Ints = np.zeros(0, np.int64) if held is None else held[str(number)].to_numpy()
        if int((values < 0).sum()) != rule.broken:
            return Outcome(False, f'rule "{name}" is broken in a different number of leaves')
        broken_rules.append(f'"{name}" is broken in {rule.broken or "no"} leaves')
    return Outcome(True, "; ".join(broken_rules))


def check_households(context: Context, promise: Households) -> Outcome:
    """Count the leaves of one household in which each gap is broken."""
    gaps = list(promise.gaps.values())
    sets = [promise.head, promise.members, *(gap.cells for gap in gaps)]
    used = {promise.years, *(name for cells in sets for name in cells)}
    ways = [("heads", "sum"), ("outside", "sum"), ("age", "sum")]
    ways += [(str(number), "min" if gap.younger is None else "max") for number, gap in enumerate(gaps)]
    parts = []
    for batch in context.folder.batches(promise.file, [*promise.regions, *sorted(used)]):
        years, is_head = _years(batch[promise.years]), _inside(batch, promise.head)
        columns = {"leaf": leaf_codes(batch, promise.regions).cast(pa.string())}
        columns |= {
            "heads": pa.array(is_head.astype(np.int64)),
            "outside": pa.array((~_inside(batch, promise.members)).astype(np.int64)),
            "age": pa.array(years * is_head),
        }
        for number, gap in enumerate(gaps):
            columns[str(number)] = pa.array(years, mask=~_inside(batch, gap.cells))
        parts.append(_gathered(pa.table(columns), ways))
    held = _gathered(pa.concat_tables(parts), ways) if parts else None
    broken_rules = []
    for number, (name, gap) in enumerate(promise.gaps.items()):
        if (0 if held is None else gap.n_broken(held, str(number))) != gap.broken:
            return Outcome(False, f'gap "{name}" is broken in a different number of leaves')
        broken_rules.append(f'"{name}" is broken in {gap.broken or "no"} leaves of one household')
    return Outcome(True, "; ".join(broken_rules))


def _years(column: pa.ChunkedArray) -> Ints:
    """Ages as numbers."""
    text = column.cast(pa.string())
    if not pc.all(pc.match_substring_regex(text, "^[0-9]{1,9}$"), skip_nulls=False).as_py():
        raise Malformed("years are not whole numbers")
    numbers: Ints = text.cast(pa.int64()).to_numpy()
    return numbers


def _inside(batch: pa.Table, cells: Mapping[str, Sequence[str]]) -> Bools:
    inside = np.ones(batch.num_rows, dtype=np.bool_)
    for name, labels in cells.items():
        inside &= places_in(batch[name], pa.array(list(labels))) >= 0
    return inside


def _by_leaf(table: pa.Table, n_rules: int) -> pa.Table:
    return _gathered(table, [(str(number), "sum") for number in range(n_rules)])


def _gathered(table: pa.Table, ways: Sequence[tuple[str, str]]) -> pa.Table:
    """One row for each leaf, with columns aggregated as specified."""
    done = table.group_by("leaf").aggregate(list(ways))
    return done.select(["leaf", *(f"{name}_{way}" for name, way in ways)]).rename_columns(
        ["leaf", *(name for name, _ in ways)]
    )
