"""Whether the mapping agrees with the printed values: "[20, 29]" must stand for 20 to 29 and nothing else."""

from __future__ import annotations

import json

import pyarrow as pa
import pyarrow.compute as pc

__all__ = ["prints_what_it_means"]

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
