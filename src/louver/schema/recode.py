"""Recodes: merge categories, cut numbers into bins, or climb a hierarchy.

A `Recode` only states the request; `Attribute.recoded` applies it to a coded domain.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any

from louver.errors import InputError
from louver.schema.validate import file_or, read_toml

__all__ = ["Recode", "RecodeTable", "bin_labels", "parse_recodes", "read_recodes", "recodes_of"]

RecodeTable = Annotated[str | dict[str, Any], file_or(lambda value: isinstance(value, dict), "a table")]
"""An option that names a file of recodes, or contains the recodes."""

RESERVED = {
    "bins": "must be a list of numbers and the only key",
    "level": "must be a whole number and the only key",
}
"""Required content of each key that is not a group name."""


@dataclass(frozen=True, slots=True)
class Recode:
    """A coarser domain for one attribute.

    Parameters
    ----------
    attribute : str
        Name of the attribute; an empty name fits any attribute.
    merge : mapping of str to tuple of str, optional
        New label -> old labels; labels not mentioned remain unchanged.
    bins : tuple of float, optional
        Increasing edges; each bin includes its lower edge and excludes its upper one.
    level : int, optional
        Level of the attribute's hierarchy, 0 = the leaves.

    Examples
    --------
    >>> Recode("X3", merge={"degree": ["Bachelor", "Bachelor+"]}).merge
    {'degree': ('Bachelor', 'Bachelor+')}
    >>> Recode("age", bins=[25, 55]).bins
    (25.0, 55.0)
    """

    attribute: str
    _: KW_ONLY
    merge: Mapping[str, tuple[str, ...]] | None = None
    bins: tuple[float, ...] | None = None
    level: int | None = None

    def __post_init__(self) -> None:
        if [self.merge, self.bins, self.level].count(None) != 2:
            raise self._error("needs exactly one of merge, bins and level")
        if self.merge is not None:
            self._check_merge(self.merge)
        elif self.bins is not None:
            object.__setattr__(self, "bins", tuple(float(edge) for edge in self.bins))
            self._check_bins(self.bins)
        elif self.level is not None and self.level < 0:
            raise self._error("has a negative level; levels count from 0, the leaves")

    def __hash__(self) -> int:
        groups = None if self.merge is None else tuple(sorted(self.merge.items()))
        return hash((self.attribute, groups, self.bins, self.level))

    def to_table(self) -> dict[str, Any]:
        """The recode as written in a file."""
        if self.merge is not None:
            return {new: list(old) for new, old in self.merge.items()}
        return {"level": self.level} if self.bins is None else {"bins": list(self.bins)}

    def _check_merge(self, merge: Mapping[str, Sequence[str]]) -> None:
        """Store the groups as tuples; refuse an empty name, an empty group and a label in two groups."""
        groups = {new: tuple(old) for new, old in merge.items()}
        seen: set[str] = set()
        for new, old in groups.items():
            if not new:
                raise self._error("has a group with no name")
            if not old:
                raise self._error(f'has the group "{new}" without labels')
            for position, label in enumerate(old, start=1):
                if label in seen:
                    raise self._error(f'lists label {position} of the group "{new}" twice; keep one')
                seen.add(label)
        object.__setattr__(self, "merge", groups)

    def _check_bins(self, edges: tuple[float, ...]) -> None:
        if not edges or not all(math.isfinite(edge) for edge in edges):
            raise self._error("needs one or more finite edges as bins")
        if any(a >= b for a, b in pairwise(edges)):
            raise self._error("needs bins whose edges increase")

    def _error(self, problem: str) -> InputError:
        of = f' of attribute "{self.attribute}"' if self.attribute else ""
        return InputError(f"the recode{of} {problem}.", column=self.attribute or None)


def bin_labels(edges: Sequence[float], *, whole: bool) -> tuple[str, ...]:
    """Labels of the bins between `edges`, lowest first.

    Parameters
    ----------
    edges : sequence of float
        Increasing edges, n of them.
    whole : bool
        Whether values are whole numbers, so that a bin can be named by its last value.

    Returns
    -------
    tuple of str
        n + 1 labels.

    Examples
    --------
    >>> bin_labels([25, 55], whole=True)
    ('<25', '25-54', '55+')
    >>> bin_labels([25, 26, 55], whole=True)
    ('<25', '25', '26-54', '55+')
    >>> bin_labels([0.5, 2], whole=False)
    ('<0.5', '0.5-<2', '2+')
    """
    middle = []
    for lower, upper in pairwise(edges):
        if not whole:
            middle.append(f"{_plain(lower)}-<{_plain(upper)}")
        elif upper - lower == 1:
            middle.append(_plain(lower))
        else:
            middle.append(f"{_plain(lower)}-{_plain(upper - 1)}")
    return (f"<{_plain(edges[0])}", *middle, f"{_plain(edges[-1])}+")


def read_recodes(path: str | Path) -> list[Recode]:
    """Read the recodes of a TOML file: one table per attribute, see `parse_recodes`."""
    return parse_recodes(read_toml(path), where=Path(path).name)


def recodes_of(given: str | Mapping[str, Any] | None) -> list[Recode]:
    """The recodes of an option: a file, or a table in the spec."""
    return read_recodes(given) if isinstance(given, str) else parse_recodes(given or {}, "recode")


def parse_recodes(mapping: Mapping[str, Any], where: str = "recodes") -> list[Recode]:
    """Turn nested tables into recodes.

    Parameters
    ----------
    mapping : mapping
        Attribute -> table, which holds either groups (new label -> list of old labels), or `bins` alone
        (a list of numbers), or `level` alone (a whole number).
    where : str
        Name of the mapping's origin in messages.

    Examples
    --------
    >>> parse_recodes({"age": {"bins": [25]}, "region": {"level": 2}})[1].level
    2
    """
    return [_parse_recode(attribute, table, where) for attribute, table in mapping.items()]


def _parse_recode(attribute: str, table: Any, where: str) -> Recode:
    if not isinstance(table, Mapping) or not table:
        raise _parse_error(where, attribute, "must be a table with groups of labels, bins or a level")
    try:
        if set(table) == {"level"} and _is_list_of([table["level"]], int):
            return Recode(attribute, level=table["level"])
        if set(table) == {"bins"} and _is_list_of(table["bins"], int, float):
            return Recode(attribute, bins=tuple(table["bins"]))
        wrong = [new for new, old in table.items() if not _is_list_of(old, str)]
        if not wrong:
            return Recode(attribute, merge={new: tuple(old) for new, old in table.items()})
    except InputError as error:
        raise InputError(f"{where}: {error}", file=where, column=attribute, option=attribute) from None
    expected = RESERVED.get(wrong[0], "must be a list of labels in quotes")
    raise _parse_error(where, f"{attribute}.{wrong[0]}", expected)


def _parse_error(where: str, key: str, expected: str) -> InputError:
    return InputError(f'{where}: key "{key}" {expected}.', file=where, option=key)


def _is_list_of(value: Any, *types: type) -> bool:
    """Whether `value` is a non-empty list (or tuple) of the types; a boolean is not a number."""
    return (
        isinstance(value, list | tuple)
        and len(value) > 0
        and all(isinstance(item, types) and not isinstance(item, bool) for item in value)
    )


def _plain(number: float) -> str:
    """Shortest text of a number, whole ones without a decimal point."""
    return str(int(number)) if float(number).is_integer() else repr(float(number))
