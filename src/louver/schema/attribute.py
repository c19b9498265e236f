"""Attributes: columns with integer-coded domains."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import pairwise

import numpy as np

from louver._arrays import Ints
from louver.errors import InputError
from louver.schema.hierarchy import Hierarchy, is_day
from louver.schema.recode import Recode, bin_labels

__all__ = ["Attribute", "Kind"]

INTEGER_LABEL = re.compile(r"-?(0|[1-9][0-9]*)")
NUMBER_LABEL = re.compile(r"-?[0-9]+(\.[0-9]+)?")


class Kind(StrEnum):
    """How the labels of an attribute relate to each other."""

    CATEGORY = "category"
    ORDERED = "ordered"
    INTEGER = "integer"
    NUMBER = "number"
    DATE = "date"


@dataclass(frozen=True, slots=True, kw_only=True)
class Attribute:
    """One column and its domain.

    Parameters
    ----------
    name : str
        Column name.
    kind : Kind
        Category (no order), ordered (order of the labels), integer, number or date (labels are ISO days).
    labels : tuple of str
        The domain; the code of a label is its position. Empty while the domain is not listed (numbers before binning, or labels still to be
        taken from the data), which is impossible for an ordered attribute.
    hierarchy : Hierarchy, optional
        Tree whose leaves include all labels.
    missing : str, optional
        Label under which missing values are counted; without it a missing value is an error.

    Examples
    --------
    >>> sex = Attribute(name="sex", labels=("female", "male"))
    >>> sex.size, sex.code_of("male"), sex.is_ordered
    (2, 1, False)
    """

    name: str
    kind: Kind = Kind.CATEGORY
    labels: tuple[str, ...] = ()
    hierarchy: Hierarchy | None = None
    missing: str | None = None
    _codes: dict[str, int] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "kind", Kind(self.kind))
        object.__setattr__(self, "labels", tuple(self.labels))
        object.__setattr__(self, "_codes", {label: code for code, label in enumerate(self.labels)})
        if not self.name:
            raise InputError("an attribute needs a name.")
        if self.kind is Kind.ORDERED and not self.labels:
            raise self._error("is ordered and needs its labels in order")
        self._check_labels()
        if self.hierarchy is not None:
            self._check_hierarchy(self.hierarchy)

    @property
    def size(self) -> int:
        """Number of labels."""
        return len(self.labels)

    @property
    def is_ordered(self) -> bool:
        """Whether labels have an order: every kind but category."""
        return self.kind is not Kind.CATEGORY

    def has_label(self, label: str) -> bool:
        """Whether the domain lists the label."""
        return label in self._codes

    def code_of(self, label: str) -> int:
        """Code of a label.

        Raises
        ------
        InputError
            If the attribute does not have this label.
        """
        code = self._codes.get(label)
        if code is None:
            raise self._error("has no such label")
        return code

    def recoded(self, recode: Recode) -> tuple[Attribute, Ints]:
        """Apply a recode to the domain.

        Returns
        -------
        attribute : Attribute
            The coarser attribute; new labels are in the order of their first old label.
        codes : ndarray of int64, shape (size,)
            Old code -> new code; read-only.

        Examples
        --------
        >>> age = Attribute(name="age", kind="integer", labels=("24", "25", "60"))
        >>> coarse, codes = age.recoded(Recode("age", bins=[25, 55]))
        >>> coarse.labels, codes.tolist()
        (('<25', '25-54', '55+'), [0, 1, 2])
        """
        if recode.attribute not in ("", self.name):
            raise self._error(f'does not fit the recode of attribute "{recode.attribute}"')
        if recode.bins is not None:
            return self._binned(recode.bins)
        if recode.level is not None:
            return self._lifted(recode.level)
        assert recode.merge is not None
        return self._grouped(self._merge_targets(recode.merge), None)

    def _check_labels(self) -> None:
        if len(self._codes) < self.size:
            raise self._error("lists a label twice; labels must be unique")
        if "" in self._codes or self.missing == "":
            raise self._error("has an empty label; every label needs text")
        if self.labels and self.missing is not None and self.missing not in self._codes:
            raise self._error("counts missing values under a label that is not listed; add it to the labels")
        if self.kind in (Kind.INTEGER, Kind.NUMBER):
            values = [self._value_of(position) for position in self._numeric_codes()]
            if any(a >= b for a, b in pairwise(values)):
                raise self._error(f"is of kind {self.kind.value} and needs its labels in increasing order")

        if self.kind is Kind.DATE:
            days = [self.labels[code] for code in self._numeric_codes()]
            if not all(map(is_day, days)) or any(a >= b for a, b in pairwise(days)):
                raise self._error(
                    "is of kind date and needs days such as 2020-02-29 as labels, in increasing order"
                )

    def _numeric_kind(self) -> Kind:
        """Integer or number: the kind that was set, or for a category the kind that its labels allow."""
        if self.kind in (Kind.INTEGER, Kind.NUMBER):
            return self.kind
        labels = [self.labels[code] for code in self._numeric_codes()]
        if (
            self.kind in (Kind.ORDERED, Kind.DATE)
            or not labels
            or not all(NUMBER_LABEL.fullmatch(label) for label in labels)
        ):
            raise self._error(
                "has labels that are not numbers and cannot be cut into bins; merge labels instead"
            )
        return Kind.INTEGER if all(INTEGER_LABEL.fullmatch(label) for label in labels) else Kind.NUMBER

    def _numeric_codes(self) -> list[int]:
        """Codes of all labels except the one for missing values."""
        return [code for code, label in enumerate(self.labels) if label != self.missing]

    def _value_of(self, code: int) -> float:
        """Number for which a label of an integer or number attribute stands."""
        label = self.labels[code]
        try:
            value = float(label)
        except ValueError:
            value = math.nan
        if not math.isfinite(value) or (self.kind is Kind.INTEGER and not INTEGER_LABEL.fullmatch(label)):
            expected = "whole numbers" if self.kind is Kind.INTEGER else "numbers"
            raise self._error(f"is of kind {self.kind.value}, but label {code + 1} is not; give {expected}")
        return value

    def _check_hierarchy(self, hierarchy: Hierarchy) -> None:
        for position, label in enumerate(self.labels, start=1):
            if not hierarchy.has_leaf(label):
                message = f"has label {position}, which is no leaf of {hierarchy.source}; add the leaf"
                raise self._error(message)

    def _binned(self, edges: tuple[float, ...]) -> tuple[Attribute, Ints]:
        """Cut numbers at the edges; the label for missing values, if any, remains separate.

        Requesting bins implies that labels are numbers, so a category whose labels are all numbers needs no kind.
        """
        whole = self._numeric_kind() is Kind.INTEGER
        if whole and not all(edge.is_integer() for edge in edges):
            raise self._error("is of kind integer, so its bins must be whole numbers")
        labels = bin_labels(edges, whole=whole)
        if self.missing is not None:
            labels = (*labels, self.missing)
        codes = np.full(self.size, len(labels) - 1, dtype=np.int64)
        numeric = self._numeric_codes()
        codes[numeric] = np.searchsorted(edges, [self._value_of(code) for code in numeric], side="right")
        codes.flags.writeable = False
        return Attribute(name=self.name, kind=Kind.ORDERED, labels=labels, missing=self.missing), codes

    def _lifted(self, level: int) -> tuple[Attribute, Ints]:
        """Replace every label by its ancestor at a level of the hierarchy."""
        if self.hierarchy is None:
            raise self._error("has no hierarchy, so it cannot be recoded to a level of one")
        targets = [self.hierarchy.ancestor_of(label, level) for label in self.labels]
        return self._grouped(targets, self.hierarchy.above(level))

    def _merge_targets(self, merge: Mapping[str, tuple[str, ...]]) -> list[str]:
        """New label of every old label."""
        targets: list[str | None] = [None] * self.size
        for new, old in merge.items():
            for position, label in enumerate(old, start=1):
                code = self._codes.get(label)
                if code is None:
                    raise self._error(
                        f'does not have label {position} of the group "{new}" in its recode; check its spelling'
                    )
                targets[code] = new
        for code, label in enumerate(self.labels):
            if targets[code] is None and label in merge:
                message = (
                    f'keeps a label with the name of the group "{label}" in its recode; add it to that group'
                )
                raise self._error(message)
        return [label if new is None else new for label, new in zip(self.labels, targets, strict=True)]

    def _grouped(self, targets: list[str], hierarchy: Hierarchy | None) -> tuple[Attribute, Ints]:
        """Number the target labels by first appearance."""
        order: dict[str, int] = {}
        mapping = [order.setdefault(label, len(order)) for label in targets]
        if self.is_ordered and any(a > b for a, b in pairwise(mapping)):
            raise self._error("is ordered, so only labels next to each other can be merged")
        kind = self.kind
        if kind in (Kind.INTEGER, Kind.NUMBER, Kind.DATE) and tuple(targets) != self.labels:
            kind = Kind.ORDERED
        missing = None if self.missing is None else targets[self._codes[self.missing]]
        codes = np.array(mapping, dtype=np.int64)
        codes.flags.writeable = False
        attribute = Attribute(
            name=self.name, kind=kind, labels=tuple(order), hierarchy=hierarchy, missing=missing
        )
        return attribute, codes

    def _error(self, problem: str) -> InputError:
        return InputError(f'attribute "{self.name}" {problem}.', column=self.name)
