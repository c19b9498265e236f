"""The mapping of generalised records: what each published value stands for, and how many records have it.

The mapping must mean what the records print: "[20, 29]" must stand for 20 to 29 and nothing else.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import pyarrow as pa
import pyarrow.compute as pc

from louver.release.folder import Folder, Malformed
from louver.release.promises.base import Context, Outcome, Promise, count_distinct

__all__ = [
    "COMMON",
    "DATA",
    "MAPPING",
    "MappingPromise",
    "attributes_of",
    "check_mapping",
    "lines_of",
    "prints_what_it_means",
    "published_columns",
    "read_mapping",
    "value_of",
]

DATA = "data/anonymized.parquet"
MAPPING = "data/mapping.parquet"

SCHEMA = {
    "attribute": pa.string(),
    "published": pa.string(),
    "sort": pa.string(),
    "lower": pa.float64(),
    "upper": pa.float64(),
    "members": pa.list_(pa.string()),
    "records": pa.int64(),
}
COMMON = "common"
"""Column that says whether a value belongs to the recoding, if there are exceptions to one recoding."""
SORTS = {"interval", "set", "node", "missing", "anything"}

Line = Mapping[str, Any]
Value = tuple[object, ...]


class MappingPromise(Promise):
    """The mapping lists exactly the published values, with the correct number of records and the values as printed."""

    promise: Literal["mapping"]
    file: Literal["data/anonymized.parquet"]
    mapping: Literal["data/mapping.parquet"]


def read_mapping(folder: Folder) -> pa.Table:
    """The mapping, with the required columns and types; no value can be published more often than there are records."""
    n_cells = folder.rows(DATA) * len(folder.schema(DATA))
    mapping = folder.table(MAPPING, most_rows=n_cells)
    fields = [(field.name, field.type) for field in mapping.schema]
    if fields not in (list(SCHEMA.items()), [*SCHEMA.items(), (COMMON, pa.bool_())]):
        raise Malformed("the mapping has other columns")
    if not SORTS.issuperset(pc.unique(mapping["sort"]).to_pylist()):
        raise Malformed("the mapping has values of an unknown kind")
    return mapping


def attributes_of(mapping: pa.Table) -> list[str]:
    """Generalised columns, in the order of the mapping."""
    return [str(name) for name in pc.unique(mapping["attribute"]).to_pylist()]


def lines_of(mapping: pa.Table, name: str) -> list[Line]:
    """The lines of the mapping about one column."""
    lines: list[Line] = mapping.filter(pc.equal(mapping["attribute"], name)).to_pylist()
    return lines


def published_columns(folder: Folder, name: str) -> list[str]:
    """Columns of the file that hold an attribute: itself, or the two ends of its intervals."""
    return [name] if name in folder.schema(DATA).names else [f"{name}_lower", f"{name}_upper"]


def value_of(line: Line, columns: list[str]) -> Value:
    """The published value of an attribute for records to which a line of the mapping applies."""
    if len(columns) == 1:
        return (line["published"],)
    return (line["members"][0], line["members"][-1]) if line["members"] else (line["lower"], line["upper"])


def check_mapping(context: Context, promise: MappingPromise) -> Outcome:
    """Count the records of every published value and compare."""
    mapping = read_mapping(context.folder)
    names = attributes_of(mapping)
    for name in names:
        columns = published_columns(context.folder, name)
        found = count_distinct(context.folder, promise.file, columns)
        lines = mapping.filter(pc.equal(mapping["attribute"], name))
        is_text = len(columns) == 1 and pa.types.is_string(found.schema.field(0).type)
        if not (_fits(found, lines) if is_text else _fits_by_ends(found, lines.to_pylist(), columns)):
            return Outcome(False, f'the mapping of "{name}" does not match the records')
        if not prints_what_it_means(lines):
            return Outcome(False, f'the mapping of "{name}" has different values from the records')
    return Outcome(True, f"{mapping.num_rows} published values of {len(names)} quasi-identifiers")


def _fits(found: pa.Table, lines: pa.Table) -> bool:
    """Whether the texts in the records, and their frequencies, agree with the lines of the mapping."""
    most = pc.sum(found["n"]).as_py() or 0
    if pc.any(pc.or_(pc.less(lines["records"], 0), pc.greater(lines["records"], most))).as_py():
        return False  # and no sum exceeds 64 bits
    said = pa.table([lines["published"], pc.multiply(lines["records"], -1)], names=["0", "n"])
    both = pa.concat_tables([found, said]).group_by("0").aggregate([("n", "sum")])
    return both.num_rows == found.num_rows and not pc.any(pc.not_equal(both["n_sum"], 0)).as_py()


def _fits_by_ends(found: pa.Table, lines: Sequence[Line], columns: list[str]) -> bool:
    """The same for other values: the two ends of an interval, each in its own column."""
    *values, counts = found.to_pydict().values()
    said: dict[Value, int] = {}
    # A missing value and a value that covers everything both have two empty ends.
    for line in lines:
        value = value_of(line, columns)
        said[value] = said.get(value, 0) + line["records"]
    return said == dict(zip(zip(*values, strict=True), counts, strict=True))


NUMBER = r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,3})?"
FORMS = (
    rf"^\[(?P<lower>{NUMBER}), (?P<upper>{NUMBER})\]$",
    rf"^(?P<lower>{NUMBER})$",
    rf"^(?P<lower>{NUMBER})-(?P<upper>{NUMBER})$",  # the form that early versions printed
)
SEPARATOR, ANYTHING = " | ", "*"
AMBIGUOUS = frozenset('[],"')


def prints_what_it_means(lines: pa.Table) -> bool:
    """Whether every line of one attribute's mapping prints the numbers or labels that it stands for."""
    is_of = {sort: pc.equal(lines["sort"], sort) for sort in ("interval", "set", "anything", "missing")}
    has_members = pc.is_valid(lines["members"])
    numbers = lines.filter(pc.and_(is_of["interval"], pc.invert(has_members)))
    labels = (
        lines.filter(pc.and_(is_of["interval"], has_members)).select(["published", "members"]).to_pylist()
    )
    sets = lines.filter(is_of["set"])
    stars = lines.filter(is_of["anything"])["published"]
    return (
        _prints_numbers(numbers)
        and all(line["published"] in _interval_labels(line["members"]) for line in labels)
        and _all(pc.equal(sets["published"], pc.binary_join(sets["members"], SEPARATOR)))
        and _all(pc.equal(stars, ANYTHING))
        and lines.filter(is_of["missing"])["published"].null_count == pc.sum(is_of["missing"]).as_py()
    )


def _prints_numbers(lines: pa.Table) -> bool:
    """Intervals of numbers: both endpoints are printed, or a single number if they are equal."""
    left = lines.select(["published", "lower", "upper"])
    if left["lower"].null_count or left["upper"].null_count:
        return False
    for form in FORMS:
        found = pc.extract_regex(left["published"], form)
        is_found = pc.is_valid(found)
        own, ends = left.filter(is_found), found.filter(is_found)
        lower = pc.struct_field(ends, "lower").cast(pa.float64())
        upper = pc.struct_field(ends, "upper").cast(pa.float64()) if "upper" in form else lower
        if not (_all(pc.equal(own["lower"], lower)) and _all(pc.equal(own["upper"], upper))):
            return False
        if not _all(pc.less_equal(lower, upper)):
            return False
        left = left.filter(pc.invert(is_found))
    return not left.num_rows


def _interval_labels(members: list[str]) -> tuple[str, ...]:
    """How an interval of labels may be printed: by its only label, or by its two ends."""
    if not members:
        return ()
    first, last = members[0], members[-1]
    if first == last:
        return (first, json.dumps(first, ensure_ascii=False))
    ends = [json.dumps(end, ensure_ascii=False) if AMBIGUOUS & set(end) else end for end in (first, last)]
    return (f"[{', '.join(ends)}]", f"{first}-{last}")


def _all(values: pa.ChunkedArray) -> bool:
    """Whether all are true; a missing value counts as false."""
    return bool(pc.all(values, skip_nulls=False, min_count=0).as_py() is True)
