"""Leaves of one household: where ages say that somebody cannot be the head's child or parent.

Records say nothing about households, so items 8 to 10 of section 8.2 can only be looked at where a leaf has one head and nobody
outside households: all its people are that head's household.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from louver._arrays import Bools, Ints
from louver.errors import InputError
from louver.topdown.design import Design
from louver.topdown.extension.options import ExtendOptions, GapOptions
from louver.topdown.load import cell_set
from louver.topdown.problem import SparseLevel

__all__ = ["Gap", "Household", "read_household"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Gap:
    """People in `cells` are at least `years` older than the head (`sign` 1) or younger (-1)."""

    name: str
    cells: Bools
    sign: int
    years: int


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Household:
    """How a leaf of one household is known, and what its ages must keep.

    Parameters
    ----------
    head, members : ndarray of bool, shape (cells,)
    years : ndarray of int64, shape (cells,)
    apart_from_years : ndarray of int64, shape (cells,)
        A number for everything but the years.
    gaps : tuple of Gap
    """

    head: Bools
    members: Bools
    years: Ints
    apart_from_years: Ints
    gaps: tuple[Gap, ...]

    def broken(self, leaves: SparseLevel) -> Bools:
        """Which gaps are broken in which leaves of one household, (gaps, leaves)."""
        n = leaves.n_regions
        leaf = np.repeat(np.arange(n), np.diff(leaves.start))
        heads = np.bincount(leaf, self.head[leaves.cell] * leaves.count, minlength=n)
        outside = np.bincount(leaf, ~self.members[leaves.cell] * leaves.count, minlength=n)
        age = np.bincount(leaf, (self.head * self.years)[leaves.cell] * leaves.count, minlength=n)
        is_one = (heads == 1) & (outside == 0)
        misfit = self.misfits(leaves.cell, age[leaf].astype(np.int64)) & is_one[leaf]
        found = [np.bincount(leaf, own, minlength=n) > 0 for own in misfit]
        return np.array(found, dtype=np.bool_).reshape(-1, n)

    def misfits(self, cells: Ints, age: Ints) -> Bools:
        """Which gaps people in cells break beside a head of an age each, (gaps, cells)."""
        apart = self.years[cells] - age
        found = [gap.cells[cells] & (gap.sign * apart < gap.years) for gap in self.gaps]
        return np.array(found, dtype=np.bool_).reshape(-1, len(cells))


def read_household(design: Design, where: str) -> Household | None:
    """`[topdown.household]` of an extension's spec.

    Raises
    ------
    InputError
        One sentence that names the key.
    """
    assert isinstance(design.options, ExtendOptions)
    given = design.options.household
    if given is None:
        return None
    place = f'{where}: key "household"'
    head = cell_set(given.head, design.attributes, place)
    members = cell_set(given.members, design.attributes, place)
    if (head & ~members).any():
        raise InputError(f"{place}: a head is a member too; add its labels to members.", option="household")
    gaps = tuple(_read_gap(gap, design, head, members, place) for gap in given.gaps)
    years, others = _years(given.years, design, place)
    return Household(head=head, members=members, years=years, apart_from_years=others, gaps=gaps)


def _read_gap(given: GapOptions, design: Design, head: Bools, members: Bools, place: str) -> Gap:
    cells = cell_set(given.cells, design.attributes, place)
    if (cells & (head | ~members)).any():
        message = f"{place}: people of a gap must be members other than the head; correct its cells."
        raise InputError(message, option="household")
    sign, years = (-1, given.younger) if given.older is None else (1, given.older)
    assert years is not None, "checked by the options"
    return Gap(name=given.name, cells=cells, sign=sign, years=years)


def _years(name: str, design: Design, place: str) -> tuple[Ints, Ints]:
    """The age of every cell, and a number for all else."""
    axis = next((axis for axis, one in enumerate(design.attributes) if one.name == name), None)
    if axis is None or not all(label.isdecimal() for label in design.attributes[axis].labels):
        message = f'{place}: key "years" must name an attribute whose labels are whole numbers.'
        raise InputError(message, option="household")
    labels = np.array([int(label) for label in design.attributes[axis].labels], dtype=np.int64)
    code = list(np.indices(design.shape, sparse=True))
    years = np.broadcast_to(labels[code[axis]], design.shape).reshape(-1)
    code[axis] = np.zeros_like(code[axis])
    others = np.broadcast_to(np.ravel_multi_index(np.broadcast_arrays(*code), design.shape), design.shape)
    return years, np.ascontiguousarray(others).reshape(-1).astype(np.int64)
