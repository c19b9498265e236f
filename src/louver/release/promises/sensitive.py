"""l-diversity and t-closeness: the sensitive values of a class, counted, and compared with those of the whole table.

l-diversity is distinct, by entropy or recursive. t-closeness is the earth mover's distance with equal, ordered or hierarchical ground
distances: Li, Li & Venkatasubramanian (2007).
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Annotated, Literal

import numpy as np
import pyarrow as pa
from pydantic import Field

from louver._arrays import Floats, Ints
from louver.release.folder import Malformed
from louver.release.promises.base import (
    TOLERANCE,
    Context,
    Outcome,
    Promise,
    codes_of,
    count_codes,
)

__all__ = [
    "AboutSensitive",
    "LDiversity",
    "SensitiveCounts",
    "TCloseness",
    "check_l_diversity",
    "check_t_closeness",
    "count_sensitive",
]

BLOCK_CELLS = 1 << 22
"""Number of class-by-value cells examined together."""

NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
DAY = re.compile(r"([0-9]{1,4})([-./])([0-9]{1,2})\2([0-9]{1,4})([T ][0-9:.,+Z -]*)?")
NAMED_DAY = re.compile(
    r"([0-9]{1,2})[- ]?(jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]{0,6}[- ]?([0-9]{4})([T ][0-9:.,+Z -]*)?",
    re.IGNORECASE,
)

UNKNOWN = -1
"""Position that stands for a missing value."""


class AboutSensitive(Promise):
    """A promise about a sensitive column in the classes of equal quasi-identifiers.

    Attributes
    ----------
    values : tuple
        Sensitive values in their order, each with all the texts that stand for it in the file: spellings of one number or day, or codes and
        the label of a missing value, where None is an empty entry. Releases of early versions have one text each, and "None" for a missing
        value.
    unknown : tuple, optional
        Texts that stand for a missing value, which does not count as a value; if omitted, it is one of `values`.
    """

    file: Literal["data/anonymized.parquet"]
    quasi: Annotated[tuple[str, ...], Field(min_length=1)]
    sensitive: str
    values: Annotated[tuple[str | tuple[str | None, ...], ...], Field(min_length=1)]
    unknown: tuple[str | None, ...] | None = None


class LDiversity(AboutSensitive):
    """Every class has l distinct sensitive values, or the entropy of l equally frequent ones, or is recursively (c, l)-diverse.

    Recursive: the commonest value of a class has fewer than c times as many records as all values from the l-th commonest on.
    """

    promise: Literal["l-diversity"]
    kind: Literal["distinct", "entropy", "recursive"]
    l: Annotated[float, Field(ge=1)]  # noqa: E741 - the field's own name
    c: Annotated[float, Field(gt=0)] | None = None


@dataclass(frozen=True, slots=True)
class SensitiveCounts:
    """Records by class and sensitive value, without the zeros and without missing values, sorted by class.

    Attributes
    ----------
    of_class, value, n : int64 (entries,)
    n_classes, n_values : int
    """

    of_class: Ints
    value: Ints
    n: Ints
    n_classes: int
    n_values: int

    def blocks(self) -> Iterator[Ints]:
        """Dense counts (classes, values) of some classes at a time."""
        step = max(1, BLOCK_CELLS // self.n_values)
        for first in range(0, self.n_classes, step):
            last = min(first + step, self.n_classes)
            start, stop = np.searchsorted(self.of_class, [first, last])
            counts = np.zeros((last - first, self.n_values), np.int64)
            np.add.at(counts, (self.of_class[start:stop] - first, self.value[start:stop]), self.n[start:stop])
            yield counts


def check_l_diversity(context: Context, promise: LDiversity) -> Outcome:
    """Count the values of every class, compute its entropy, or compare its commonest value with the rarer ones."""
    counts = count_sensitive(context, promise)
    if not counts.n_classes:
        return Outcome(True, "no records")
    if promise.kind == "distinct":
        fewest = min(int((block > 0).sum(axis=1).min()) for block in counts.blocks())
        detail = f"least diverse class has {fewest} values, promised {promise.l:g}"
        return Outcome(fewest >= promise.l, detail)
    if promise.kind == "recursive":
        return _check_recursive(counts, promise)
    sizes = np.bincount(counts.of_class, counts.n)
    shares = counts.n / sizes[counts.of_class]
    entropy = np.bincount(counts.of_class, -shares * np.log(shares), minlength=counts.n_classes)
    least = float(np.exp(entropy.min()))
    detail = f"least entropy equals that of {least:.4g} values, promised {promise.l:g}"
    return Outcome(least >= promise.l - TOLERANCE, detail)


def _check_recursive(counts: SensitiveCounts, promise: LDiversity) -> Outcome:
    """Check recursive diversity in whole numbers: c is the decimal number written in the promise."""
    if promise.c is None:
        raise Malformed("a promise of recursive diversity does not say c")
    c, first = Fraction(repr(promise.c)), math.ceil(promise.l) - 1
    n_failing = 0
    for block in counts.blocks():
        descending = -np.sort(-block, axis=1)
        for commonest, rarer in zip(
            descending[:, 0].tolist(), descending[:, first:].sum(axis=1).tolist(), strict=True
        ):
            n_failing += commonest >= c * rarer
    what = f"({promise.c:g}, {promise.l:g})-diverse"
    if n_failing:
        return Outcome(False, f"{n_failing:,} of {counts.n_classes:,} classes are not {what}")
    return Outcome(True, f"all {counts.n_classes:,} classes are {what}")


def count_sensitive(context: Context, promise: AboutSensitive) -> SensitiveCounts:
    """Count the sensitive values, by their position in the promise, in every class."""
    rows, values = count_codes(context.folder, promise.file, [*promise.quasi, promise.sensitive])
    *keys, sensitive, _ = rows.column_names
    classes, places = (
        codes_of(rows, keys),
        _places(values[-1].take(rows[sensitive].combine_chunks()), promise, _missing_in(context, promise)),
    )
    order = np.argsort(classes, kind="stable")
    order = order[places[order] != UNKNOWN]
    return SensitiveCounts(
        of_class=classes[order],
        value=places[order],
        n=rows["n"].to_numpy().astype(np.int64)[order],
        n_classes=int(classes.max(initial=-1)) + 1,
        n_values=len(promise.values),
    )


def _missing_in(context: Context, promise: AboutSensitive) -> set[object]:
    """The values that stand for a missing value in the sensitive column, as returned by `_value_of`."""
    codes = context.manifest.parameters.get("missing_code", {}).get(promise.sensitive, ())
    return {None, "", "nan", *(_value_of(str(code)) for code in codes)}


def _value_of(text: str | None) -> object:
    """The value of a text: different spellings of a number or a day are equal, and any other text is its own value."""
    if text is None:
        return None
    if NUMBER.fullmatch(text.strip()) and math.isfinite(float(text)):
        return float(text)
    if found := DAY.fullmatch(text.strip()):
        return tuple(map(int, found.group(1, 3, 4)))
    if found := NAMED_DAY.fullmatch(text.strip()):
        return int(found[1]), found[2].lower(), int(found[3])
    return text


def _places(column: pa.Array, promise: AboutSensitive, missing: set[object]) -> Ints:
    """Position of each row's sensitive value in the promise."""
    place_of: dict[str | None, int] = {}
    for place, texts in enumerate(promise.values):
        # The label for missing values may itself be a code for a missing value.
        if not isinstance(texts, str) and len(set(map(_value_of, texts)) - missing) > 1:
            raise Malformed("different sensitive values are listed as one")
        for text in (texts,) if isinstance(texts, str) else texts:
            if text in place_of:
                raise Malformed("a sensitive value is listed twice")
            place_of[text] = place
    for text in promise.unknown or ():
        if text in place_of:
            raise Malformed("a sensitive value is listed twice")
        place_of[text] = UNKNOWN
    is_early = all(isinstance(texts, str) for texts in promise.values)
    encoded = column.dictionary_encode(null_encoding="encode")
    places = [_place(value, place_of, is_early) for value in encoded.dictionary.to_pylist()]
    indices = encoded.indices.to_numpy(zero_copy_only=False)
    return np.asarray(np.array(places, np.int64)[indices])


def _place(value: object, place_of: Mapping[str | None, int], is_early: bool) -> int:
    """Position of a published value; early versions wrote whole numbers and truth values as the source's text."""
    texts = [None if value is None else str(value)]
    if is_early:
        texts += [str(value), str(value).lower()]
        texts += [str(int(value))] if isinstance(value, float) and value.is_integer() else []
        texts += ["None"] if value in ("", None) or value != value else []
    for text in texts:
        if text in place_of:
            return place_of[text]
    raise Malformed("the file has a sensitive value that the promise does not list")


Numbers = tuple[Annotated[int, Field(ge=0)], ...]


class TCloseness(AboutSensitive):
    """The sensitive distribution of every class is within t of the whole table's.

    Attributes
    ----------
    hierarchy : tuple of tuples
        Hierarchical distance: `hierarchy[h][value]` numbers the node above each value at height h + 1; the last is the root, and
        the only level with a single node.

    Every value listed occurs in the file. Values that never occur, and levels above the root, would divide each distance by too large a
    number, so that any class could pass as close. For the same reason, a level that merges no nodes of the level below is not counted.
    """

    promise: Literal["t-closeness"]
    distance: Literal["equal", "ordered", "hierarchical"]
    hierarchy: tuple[Numbers, ...] = ()
    t: Annotated[float, Field(ge=0, le=1)]


def check_t_closeness(context: Context, promise: TCloseness) -> Outcome:
    """Measure every class."""
    counts = count_sensitive(context, promise)
    if not counts.n_classes:
        return Outcome(True, "no records")
    if len(np.unique(counts.value)) < counts.n_values:
        raise Malformed("a sensitive value is listed that no published record has")
    if promise.distance == "hierarchical":
        _check_tree(promise.hierarchy, counts.n_values)
    whole = np.bincount(counts.value, counts.n, minlength=counts.n_values) / max(1, counts.n.sum())
    worst = 0.0
    for block in counts.blocks():
        sizes = block.sum(axis=1, keepdims=True)
        difference = np.where(sizes > 0, block / np.maximum(sizes, 1) - whole, 0.0)
        worst = max(worst, float(_distances(difference, promise).max()))
    detail = f"largest distance is {worst:.4g}, promised {promise.t:g}"
    return Outcome(worst <= promise.t + TOLERANCE, detail)


def _distances(difference: Floats, promise: TCloseness) -> Floats:
    """Distance of each class from its differences (classes, values) to the whole."""
    if promise.distance == "hierarchical":
        return tree_distance(difference, _without_repeats(promise.hierarchy))
    if promise.distance == "equal":
        total: Floats = np.abs(difference).sum(axis=1)
        return total / 2
    moved: Floats = np.abs(np.cumsum(difference, axis=1)).sum(axis=1) / max(1, difference.shape[1] - 1)
    return moved


def _check_tree(levels: Sequence[Sequence[int]], n_values: int) -> None:
    """Reject anything but a tree over the values: levels of unequal length, nodes that split again, no root or several roots."""
    if not levels or any(len(level) != n_values for level in levels):
        raise Malformed("the hierarchy is not a tree over the sensitive values")
    if [len(set(level)) == 1 for level in levels] != [False] * (len(levels) - 1) + [True]:
        raise Malformed("the hierarchy has no root, or more than one level of it")
    for below, above in pairwise(levels):
        if len(set(zip(below, above, strict=True))) != len(set(below)):
            raise Malformed("the hierarchy is not a tree over the sensitive values")


def _without_repeats(levels: Sequence[Sequence[int]]) -> list[Sequence[int]]:
    """The levels of a tree that have fewer nodes than the level below."""
    sizes = [len(set(level)) for level in levels]
    return [level for n, level in enumerate(levels) if not n or sizes[n] < sizes[n - 1]]


def tree_distance(difference: Floats, levels: Sequence[Sequence[int]]) -> Floats:
    """Earth mover's distance where moving across a node at height h of H costs h / H.

    A unit that leaves its node at height h crosses a node twice, once up and once down. So the distance is the sum over heights of half the
    absolute surplus of the nodes, times 1 / H.
    """
    total: Floats = np.abs(difference).sum(axis=1)
    for ancestors in levels[:-1]:
        _, node = np.unique(ancestors, return_inverse=True)
        surplus = np.zeros((len(difference), int(node.max()) + 1))
        np.add.at(surplus.T, node, difference.T)
        total = total + np.abs(surplus).sum(axis=1)
    return total / (2 * len(levels))
