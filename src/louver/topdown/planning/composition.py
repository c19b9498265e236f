"""Invariants of several specs together: whether each spec still protects anyone.

Each spec on its own leaves neighbours. If several are published, all their invariants hold at once: counts of race a by block today and of
the other races tomorrow make up the whole table. A ledger keeps the invariants of every spec as records, and a new spec is checked against
all of them. Nothing here reads data.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from louver.data.regions import SEPARATOR
from louver.errors import InputError
from louver.privacy.neighbours import Relation
from louver.topdown.options import MAX_CELLS
from louver.topdown.problem import Design

__all__ = ["Protection", "check_extension", "check_together", "invariant_records", "judge", "space_of"]

Record = Mapping[str, Any]
Cells = NDArray[np.bool_]
Labels = NDArray[np.int64]


class Protection(Enum):
    """The protection that remains for each spec under the invariants of all specs."""

    PROTECTED = "each spec still has neighbours"
    EXPOSED = "some spec has no neighbours left"
    UNDECIDED = "the invariants refer to different leaves or attributes"


def space_of(design: Design) -> dict[str, Any]:
    """Description of a spec's cells and leaves, for comparison with another spec's, as plain JSON."""
    names = {attribute.name for attribute in design.attributes}
    zeros = [zero for zero in design.spec.schema.structural_zeros if set(zero) <= names]
    return {
        "leaves": hashlib.sha256(json.dumps(design.geographic.leaves).encode()).hexdigest(),
        "attributes": {a.name: [a.size, _coding(design, a.name)] for a in design.attributes},
        "zeros": [_codes(design, zero) for zero in zeros],
        **({} if design.spec.source.where is None else {"where": design.spec.source.where}),
    }


def invariant_records(design: Design) -> list[dict[str, Any]]:
    """The invariants of a spec by level, leaves and cells, as a ledger keeps them."""
    space = space_of(design)
    return [
        {
            "verb": "topdown",
            "name": statement.name,
            "level": design.spine.names[statement.level],
            "region": _leaf_prefix(design, statement.level),
            "cells": {name: list(labels) for name, labels in statement.labels.items()},
            "codes": _codes(design, statement.labels),
            "acknowledged": design.options.acknowledge_invariants,
            **space,
        }
        for statement in design.statements
        if statement.is_invariant
    ]


def _leaf_prefix(design: Design, level: int) -> list[Any]:
    """How the code of a leaf identifies its region at a level. Invariants of a spine refer to levels of the geography."""
    geography, tree = design.options.geography, design.geographic
    if level == design.spine.n_levels - 1:
        level = tree.n_levels - 1
    if geography is None or geography.prefixes is None:
        return ["depth", level + 1]
    return ["prefix", geography.prefixes[level]]


def _codes(design: Design, labels: Mapping[str, Sequence[str]]) -> dict[str, list[int]]:
    by_name = {attribute.name: attribute for attribute in design.attributes}
    return {name: sorted({by_name[name].code_of(one) for one in own}) for name, own in labels.items()}


def _coding(design: Design, name: str) -> str:
    """Hash of how an attribute's values become codes."""
    schema = design.spec.schema
    coded = next(a for a in design.attributes if a.name == name)
    how = (schema.attribute(name), coded, [one for one in schema.recodes if one.attribute == name])
    return hashlib.sha256(repr(how).encode()).hexdigest()[:16]


def check_together(design: Design, published: Sequence[Record]) -> None:
    """Refuse a spec whose invariants must not be added to those published before.

    Raises
    ------
    InputError
        If some spec would be left without neighbours; or, unless the spec acknowledges it, if that cannot be decided.
    """
    own = invariant_records(design)
    verdict = judge([*published, *own], space_of(design), design.geographic.leaves, design.budget.neighbours)
    if verdict is Protection.EXPOSED:
        raise InputError(
            "together with the invariants that this ledger has already published, these would fix a whole table "
            "exactly; leave out some invariants.",
            option="invariants",
        )
    _check_decided(verdict, design)


def check_extension(design: Design, class_of: Labels, published: Sequence[Record]) -> None:
    """Refuse an extension that leaves no one protected given the invariants published before; it adds none itself.

    Cells of one class of the first release that agree in every attribute that invariants refer to are equal for all invariants; if there
    are two, a changed record is protected.

    Raises
    ------
    InputError
        If it has no neighbours; or, unless the spec acknowledges it, if that cannot be decided.
    """
    relation, space = design.budget.neighbours, space_of(design)
    if relation is Relation.CHANGE_RECORD:
        seen = {name for one in published for name in one.get("attributes", ())}
        if _has_unseen_change(design, class_of, seen):
            return
    else:  # whether a record is counted at all depends only on the attributes that invariants refer to
        space |= {"attributes": {}, "zeros": []}
    verdict = judge(published, space, design.spine.leaves, relation)
    if verdict is Protection.EXPOSED:
        raise InputError(
            f"the invariants that this ledger has published leave no two tables as neighbours ({relation}); nothing would be "
            "protected.",
            option="neighbours",
        )
    _check_decided(verdict, design)


def _has_unseen_change(design: Design, class_of: Labels, seen: set[str]) -> bool:
    """Whether two possible cells of one class agree in all of some attributes."""
    possible = np.flatnonzero(design.is_possible)
    alike = class_of[possible]
    for attribute, codes in zip(design.attributes, np.unravel_index(possible, design.shape), strict=True):
        if attribute.name in seen:
            alike = np.unique(alike * attribute.size + codes, return_inverse=True)[1]
    return len(np.unique(alike)) < len(possible)


def _check_decided(verdict: Protection, design: Design) -> None:
    if verdict is Protection.UNDECIDED and not design.options.acknowledge_invariants:
        raise InputError(
            "this ledger has published invariants of other leaves or attributes, and what they disclose together with this "
            'spec cannot be decided; if that is acceptable, write "acknowledge_invariants = true" under [topdown].',
            option="acknowledge_invariants",
        )


def judge(
    invariants: Sequence[Record], space: Record, leaves: Sequence[str], relation: Relation
) -> Protection:
    """Decide whether every spec keeps neighbours when all invariants are known.

    Parameters
    ----------
    invariants : sequence of record
        Of all specs, as `invariant_records` writes them. Those of other verbs have no effect.
    space : record
        The space of the newest spec, which may have no invariants.
    leaves : sequence of str
        Its leaf codes.
    relation : Relation

    Notes
    -----
    Cells are those of all attributes of all specs together. A changed record preserves every invariant if and only if its old and its new
    cell are counted by the same invariants, and its old and new leaf lie in one region of each of these. A spec has neighbours if such a
    change can be seen in its own attributes or in the leaf. An added or removed record preserves every invariant if and only if no
    invariant counts it.

    **Cost**: cells x invariants, and leaves x levels.
    """
    joint = _joint([space, *invariants])
    same = (
        "leaves",
        "where",
    )  # statements about one part of the records prove nothing about another
    if joint is None or any(one.get(key) != space.get(key) for one in invariants for key in same):
        return Protection.UNDECIDED
    sets = [joint.holds(one["codes"]) for one in invariants]
    is_possible = joint.is_possible([zero for one in (space, *invariants) for zero in one["zeros"]])
    signature = np.zeros(joint.n_cells, dtype=np.int64)
    for inside in sets:
        signature = np.unique(signature * 2 + inside, return_inverse=True)[1].astype(np.int64)
    cells = np.flatnonzero(is_possible)
    if relation is Relation.ADD_REMOVE_RECORD:
        counted = np.any(sets, axis=0) if sets else np.zeros(joint.n_cells, dtype=np.bool_)
        return Protection.EXPOSED if counted[cells].all() else Protection.PROTECTED
    if _can_move(signature[cells], [inside[cells] for inside in sets], invariants, leaves):
        return Protection.PROTECTED
    for names in {tuple(sorted(one["attributes"])) for one in (space, *invariants)}:
        if not _can_change(signature[cells], joint.places(names)[cells]):
            return Protection.EXPOSED
    return Protection.PROTECTED


def _can_change(signature: Labels, place: Labels) -> bool:
    """Whether two cells that are counted by the same invariants are visibly different."""
    pairs = np.unique(np.stack([signature, place]), axis=1)
    return bool(pairs.shape[1] > len(np.unique(signature)))


def _can_move(
    signature: Labels, sets: Sequence[Cells], invariants: Sequence[Record], leaves: Sequence[str]
) -> bool:
    """Whether a record of some cell can move to another leaf and stay in all regions that its invariants count."""
    known: dict[frozenset[tuple[str, int]], bool] = {}
    for cell in np.unique(signature, return_index=True)[1]:
        looked_at = frozenset(
            (str(one["region"][0]), int(one["region"][1]))
            for inside, one in zip(sets, invariants, strict=True)
            if inside[cell]
        )
        if looked_at not in known:
            regions = {tuple(_region(leaf, *how) for how in sorted(looked_at)) for leaf in leaves}
            known[looked_at] = len(regions) < len(leaves)
        if known[looked_at]:
            return True
    return False


def _region(leaf: str, kind: str, length: int) -> str:
    """The region of a leaf: a prefix of its code, or the first steps of its path."""
    if kind == "prefix":
        return leaf[:length]
    return SEPARATOR.join(leaf.split(SEPARATOR)[:length])


@dataclass(frozen=True, slots=True)
class _Joint:
    """The cells of all attributes of several specs, the last attribute fastest."""

    sizes: Mapping[str, int]

    @property
    def n_cells(self) -> int:
        return prod(self.sizes.values())

    def _axis(self, name: str) -> Labels:
        """Code of one attribute in every cell."""
        names = list(self.sizes)
        after = prod(self.sizes[other] for other in names[names.index(name) + 1 :])
        return np.arange(self.n_cells) // after % self.sizes[name]

    def holds(self, codes: Mapping[str, Sequence[int]]) -> Cells:
        """Cells with one of the codes in every attribute named."""
        inside = np.ones(self.n_cells, dtype=np.bool_)
        for name, own in codes.items():
            inside &= np.isin(self._axis(name), own)
        return inside

    def is_possible(self, zeros: Sequence[Mapping[str, Sequence[int]]]) -> Cells:
        possible = np.ones(self.n_cells, dtype=np.bool_)
        for zero in zeros:
            possible &= ~self.holds(zero)
        return possible

    def places(self, names: Sequence[str]) -> Labels:
        """What is visible of every cell through some of the attributes."""
        place = np.zeros(self.n_cells, dtype=np.int64)
        for name in names:
            place = place * self.sizes[name] + self._axis(name)
        return place


def _joint(records: Sequence[Record]) -> _Joint | None:
    """The cells of all attributes; None if records do not list them, code one attribute in two ways, or there are too many cells."""
    known: dict[str, tuple[int, str]] = {}
    for one in records:
        if one.get("verb", "topdown") != "topdown" or "attributes" not in one:
            return None
        for name, (size, coding) in one["attributes"].items():
            if known.setdefault(name, (size, coding)) != (size, coding):
                return None
    sizes = {name: size for name, (size, _) in known.items()}
    return _Joint(sizes) if prod(sizes.values()) <= MAX_CELLS else None
