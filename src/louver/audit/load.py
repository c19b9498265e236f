"""From options to tables: these are computed from the records by their descriptions, or read as published and checked; with common
knowledge.

Everyone knows which columns determine others: a district lies in one region. The records imply this if each label of one column occurs with
a single label of the other, more often than by chance; a hierarchy of the spec implies it for a column that has its labels. Combinations
that are ruled out are empty in every table that an outsider considers. Rules with few exceptions are examined too: the exceptions are
assumed to be known and subtracted from everything published, and all other people follow the rule."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import permutations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from louver.audit.cells import UnitCounts
from louver.audit.counts import Counts
from louver.audit.kind import TableKind
from louver.audit.options import MAX_COUNT, AuditOptions, AuditTableOptions, KnownOptions, TargetOptions
from louver.audit.shares import Conditionals
from louver.data.dependencies import is_function, near_function
from louver.data.histogram import Histogram
from louver.errors import InputError
from louver.optim.kernels.audit.propagate import UNBOUNDED
from louver.run import Run
from louver.schema.attribute import Attribute
from louver.schema.recode import parse_recodes
from louver.tables.pieces import Cross, Domain, Margin, Piece, refined
from louver.tables.problem import TablesProblem, build
from louver.tables.system import IntArray
from louver.tables.transport import Transport

__all__ = [
    "KINDS",
    "LoadedTables",
    "StatedDependency",
    "Target",
    "attribute_names",
    "crosses_of",
    "followers",
    "known_dependencies",
    "load",
    "near_dependencies",
    "possible_cells",
    "restrict",
    "suspected",
]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StatedDependency:
    """One column that determines another.

    Attributes
    ----------
    determinant, dependent : str
    codes : int64 (labels,)
        Code of the dependent label that goes with each label of the determinant; -1 if it cannot be known.
    share : float
        Share of the records that follow it.
    """

    determinant: str
    dependent: str
    codes: IntArray
    share: float = 1.0


def known_dependencies(
    attributes: Sequence[Attribute], histogram: Histogram | None
) -> tuple[StatedDependency, ...]:
    """Every pair of attributes where one determines the other, in their order."""
    found = []
    for first, second in permutations(attributes, 2):
        pairs = None if histogram is None else _pairs(histogram, first.name, second.name)
        codes = _by_hierarchy(first, second, pairs)
        if codes is None and pairs is not None and is_function(*pairs):
            codes = np.full(first.size, -1, dtype=np.int64)
            codes[pairs[0]] = pairs[1]
        if codes is not None:
            found.append(StatedDependency(determinant=first.name, dependent=second.name, codes=codes))
    return tuple(found)


def near_dependencies(
    attributes: Sequence[Attribute], histogram: Histogram | None
) -> tuple[StatedDependency, ...]:
    """Every pair of attributes of which one determines a coarser one in nearly all records: readers may assume this as a rule."""
    found: list[StatedDependency] = []
    if histogram is None:
        return ()
    for first, second in permutations(attributes, 2):
        near = near_function(*_pairs(histogram, first.name, second.name))
        if near is not None:
            codes = np.full(first.size, -1, dtype=np.int64)
            codes[list(near[0])] = list(near[0].values())
            found.append(
                StatedDependency(determinant=first.name, dependent=second.name, codes=codes, share=near[1])
            )
    return tuple(found)


def _pairs(histogram: Histogram, first: str, second: str) -> tuple[IntArray, IntArray, IntArray]:
    """Pairs of labels that occur in the records, and the number of people with each."""
    both = histogram.marginalise([first, second])
    has_people = both.counts > 0
    return both.codes[has_people, 0], both.codes[has_people, 1], both.counts[has_people]


def _by_hierarchy(
    first: Attribute, second: Attribute, pairs: tuple[IntArray, IntArray, IntArray] | None
) -> IntArray | None:
    """The dependency implied by a level of the first attribute's hierarchy, if its labels are those of the second and no record
    contradicts it."""
    tree = first.hierarchy
    if tree is None or second.size < 2:
        return None
    for level in range(1, tree.n_levels):
        above = [tree.ancestor_of(label, level) for label in first.labels]
        if all(second.has_label(label) for label in above):
            codes = np.array([second.code_of(label) for label in above], dtype=np.int64)
            if pairs is None or (codes[pairs[0]] == pairs[1]).all():
                return codes
    return None


def possible_cells(domain: Domain, known: Sequence[StatedDependency]) -> NDArray[np.bool_] | None:
    """Joint cells that the dependencies leave possible, (n_cells,); None if there are no dependencies."""
    if not known:
        return None
    names = [attribute.name for attribute in domain.attributes]
    is_possible = np.ones(domain.shape, dtype=bool)
    for one in known:
        first, second = names.index(one.determinant), names.index(one.dependent)
        allowed = np.zeros((domain.shape[first], domain.shape[second]), dtype=bool)
        is_known = one.codes >= 0
        allowed[domain.classes[first][is_known], domain.classes[second][one.codes[is_known]]] = True
        allowed[domain.classes[first][~is_known]] = True
        shape = [1] * len(domain.shape)
        shape[first], shape[second] = allowed.shape
        is_possible &= (allowed if first < second else allowed.T).reshape(shape)
    return is_possible.ravel()


def suspected(loaded: LoadedTables) -> LoadedTables:
    """The tables as seen by readers who assume a rule wherever a column determines a coarser one of another table, even by chance.

    Such a rule is too uncertain to conclude that a table discloses something, but a pattern of hidden cells that protects only against
    readers who overlook it is not enough.
    """
    assert loaded.truth is not None
    domain = loaded.domain
    people = loaded.truth.reshape(domain.shape)
    names = [attribute.name for attribute in domain.attributes]
    together = [set(cross.by) for piece in loaded.pieces for cross in piece.crosses]
    is_possible = np.ones(domain.shape, dtype=bool)
    for first, second in permutations(range(len(names)), 2):
        if any({names[first], names[second]} <= by for by in together):
            continue  # the table itself shows which combinations are empty
        others = tuple(axis for axis in range(len(names)) if axis not in (first, second))
        occurs = people.sum(axis=others) > 0
        occurs = occurs if first < second else occurs.T
        is_used = occurs.any(axis=1)
        n_codes = int(occurs.any(axis=0).sum())
        if (occurs.sum(axis=1) > 1).any() or not 2 <= n_codes < is_used.sum():
            continue
        allowed = occurs | ~is_used[:, None]
        shape = [1] * len(names)
        shape[first], shape[second] = allowed.shape
        is_possible &= (allowed if first < second else allowed.T).reshape(shape)
    if is_possible.all():
        return loaded
    known = is_possible.ravel() if loaded.is_possible is None else is_possible.ravel() & loaded.is_possible
    return replace(loaded, is_possible=known)


def followers(loaded: LoadedTables) -> LoadedTables | None:
    """The people who follow the rules, and the content of the pieces about them; None with shares or files of records: they cannot be split."""
    is_possible = possible_cells(loaded.domain, loaded.near)
    is_whole = any(piece.shares or piece.transport is not None for piece in loaded.pieces)
    if is_possible is None or loaded.truth is None or is_whole:
        return None
    if loaded.is_possible is not None:
        is_possible &= loaded.is_possible
    others = np.where(is_possible, 0, loaded.truth)
    pieces = [
        replace(
            piece,
            margins=tuple(
                _without(margin, loaded.domain.sums(margin.cross, others)) for margin in piece.margins
            ),
        )
        for piece in loaded.pieces
    ]
    return replace(
        loaded,
        pieces=tuple(pieces),
        truth=loaded.truth - others,
        is_possible=is_possible,
        near=(),
        units=None if loaded.units is None else loaded.units.within(is_possible),
    )


def _without(margin: Margin, others: IntArray) -> Margin:
    upper = np.where(margin.upper >= UNBOUNDED, margin.upper, np.maximum(0, margin.upper - others))
    return replace(margin, lower=np.maximum(0, margin.lower - others), upper=upper)


KINDS: dict[str, TableKind] = {"counts": Counts(), "shares": Conditionals()}
"""The kinds of tables, by `AuditTableOptions.kind`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """Target cells: of a piece, or of a cross of their own."""

    name: str
    cross: Cross
    only_small: bool = False


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LoadedTables:
    """Pieces and targets over one domain; `truth` (n_cells,) is None if the records are not known.

    `dependencies` are pairs of columns of which the first determines the second, as everyone knows; `near` are those with few exceptions.
    `units` are those of the steward's column; `household` is a column of the records that looks like the number of a household, if the
    steward gave none. `proposed` are tables of unknowns that may agree with the pieces.
    """

    domain: Domain
    pieces: tuple[Piece, ...]
    targets: tuple[Target, ...]
    truth: IntArray | None
    is_possible: NDArray[np.bool_] | None
    dependencies: tuple[tuple[str, str], ...] = ()
    near: tuple[StatedDependency, ...] = ()
    household: str | None = None
    units: UnitCounts | None = None
    proposed: tuple[IntArray, ...] = ()

    def problem(self) -> TablesProblem:
        """Everything that the pieces state, as one system."""
        found = build(self.domain, self.pieces, self.truth, self.is_possible)
        own = tuple(table for table in self.proposed if len(table) == found.system.n_columns)
        return replace(found, proposed=own)


def attribute_names(options: AuditOptions) -> tuple[str, ...]:
    """Every attribute that a piece, a statement or a target names, in that order."""
    names: list[str] = []
    for table in options.tables:
        names += [*table.by, *table.rows, *table.cols, *table.where]
    for entry in options.known:
        names += entry.where
    for target in options.targets:
        names += [*target.by, *target.where]
    return tuple(dict.fromkeys(names))


def load(
    options: AuditOptions,
    attributes: Sequence[Attribute],
    histogram: Histogram | None,
    structural_zeros: Sequence[Mapping[str, Sequence[str]]] = (),
    folder: str = "",
    earlier: Sequence[Piece] = (),
) -> LoadedTables:
    """Bind the options to the attributes, and to the records if there are any.

    Parameters
    ----------
    attributes : sequence of Attribute
        All that `attribute_names` lists, with labels.
    histogram : Histogram, optional
        The records, over the same attributes.
    folder : str
        Folder of the files of the pieces.
    earlier : sequence of Piece
        Earlier publications.
    """
    if histogram is not None and histogram.total > MAX_COUNT:
        raise InputError(
            f"the records count more than {MAX_COUNT:,} people; check the weight column.", option="weight"
        )
    crosses = [_table_cross(table, attributes) for table in options.tables]
    known = [_statement_cross(entry, attributes, f"known {n}") for n, entry in enumerate(options.known, 1)]
    targets = [_target(entry, attributes, n) for n, entry in enumerate(options.targets, 1)]
    zeros = [_zero_cross(zero) for zero in structural_zeros]
    before = [cross for piece in earlier for cross in piece.crosses]
    domain = refined(attributes, [*crosses, *known, *zeros, *before], [target.cross for target in targets])
    truth = None if histogram is None else domain.counts(histogram)
    pieces = [
        _piece(table, cross, domain, truth, folder)
        for table, cross in zip(options.tables, crosses, strict=True)
    ]
    pieces += [
        _known_piece(entry, cross, number)
        for number, (entry, cross) in enumerate(zip(options.known, known, strict=True), 1)
    ]
    dependencies, near = known_dependencies(attributes, histogram), near_dependencies(attributes, histogram)
    named = [cross.names for cross in (*crosses, *known, *(target.cross for target in targets))]
    named += [cross.names for piece in earlier if not piece.is_file for cross in piece.crosses]
    rules = [(one.determinant, one.dependent) for one in (*dependencies, *near)]
    linked = _linked(
        named, [*rules, *(cross.names for cross in zeros), *(piece.columns for piece in earlier)]
    )
    is_possible = possible_cells(domain, dependencies)
    if zeros:
        is_possible = np.ones(domain.n_cells, dtype=bool) if is_possible is None else is_possible
        for zero in zeros:
            is_possible &= domain.assign(zero) < 0
    return LoadedTables(
        domain=domain,
        pieces=(
            *pieces,
            *(_joined(_as_read(piece, domain, truth), domain, truth, linked) for piece in earlier),
        ),
        targets=tuple(targets),
        truth=truth,
        is_possible=is_possible,
        dependencies=tuple((one.determinant, one.dependent) for one in dependencies),
        near=near,
    )


def _linked(named: Sequence[Sequence[str]], links: Sequence[Sequence[str]]) -> set[str]:
    """Columns about which the named ones may say something, through rules that relate columns and files that publish them together."""
    found = {name for names in named for name in names}
    while more := {name for link in links if not found.isdisjoint(link) for name in link} - found:
        found |= more
    return found


def crosses_of(options: AuditOptions, attributes: Sequence[Attribute]) -> list[Cross]:
    """The crosses of tables, statements and targets."""
    crosses = [_table_cross(table, attributes) for table in options.tables]
    crosses += [_statement_cross(entry, attributes, f"known {n}") for n, entry in enumerate(options.known, 1)]
    return crosses + [_target(entry, attributes, n).cross for n, entry in enumerate(options.targets, 1)]


# Crosses ----------------------------------------------------------------------------------------------------------


def _table_cross(table: AuditTableOptions, attributes: Sequence[Attribute]) -> Cross:
    return _cross(
        (*table.by, *table.rows, *table.cols), table.where, table.recode, attributes, f'table "{table.name}"'
    )


def _statement_cross(entry: KnownOptions, attributes: Sequence[Attribute], place: str) -> Cross:
    return _cross((), entry.where, entry.recode, attributes, place)


def _target(entry: TargetOptions, attributes: Sequence[Attribute], number: int) -> Target:
    name = entry.name or f"target {number}"
    cross = _cross(entry.by, entry.where, entry.recode, attributes, name)
    return Target(name=name, cross=cross, only_small=entry.only_small)


def _zero_cross(zero: Mapping[str, Sequence[str]]) -> Cross:
    return Cross(by=(), where={name: tuple(labels) for name, labels in zero.items()})


def _cross(
    by: Sequence[str],
    where: Mapping[str, tuple[str, ...]],
    recode: Mapping[str, Any],
    attributes: Sequence[Attribute],
    place: str,
) -> Cross:
    """A cross whose recodes and labels fit the attributes."""
    recodes = {entry.attribute: entry for entry in parse_recodes(recode, place)}
    cross = Cross(by=tuple(by), recodes=recodes, where=dict(where))
    for name in recodes:
        if name not in cross.names:
            raise InputError(
                f'{place} recodes "{name}", which the table does not use; add it to by or where, or drop the recode.',
                column=name,
            )
    by_name = {attribute.name: attribute for attribute in attributes}
    for name, labels in where.items():
        attribute = by_name[name]
        if name in recodes:
            attribute = attribute.recoded(recodes[name])[0]
        for position, label in enumerate(labels, start=1):
            if not attribute.has_label(label):
                raise InputError(
                    f'{place}: where names label {position} of "{name}", which does not have this label; check its spelling.',
                    column=name,
                )
    for name in by:
        if name in recodes:
            by_name[name].recoded(recodes[name])
    return cross


# Pieces -----------------------------------------------------------------------------------------------------------


def _piece(
    table: AuditTableOptions, cross: Cross, domain: Domain, truth: IntArray | None, folder: str
) -> Piece:
    kind = KINDS[table.kind]
    if table.file is not None:
        return kind.from_file(table, cross, domain, truth, folder)
    if truth is None:
        raise InputError(
            f'table "{table.name}" has no file, and there are no records to compute it from; give one of them.',
            option="tables",
        )
    return kind.from_records(table, cross, domain, truth)


def _as_read(piece: Piece, domain: Domain, truth: IntArray | None) -> Piece:
    """An earlier piece as a reader sees it: its entry may not say that no hidden cell is empty, which readers know."""
    if truth is None:
        return piece
    blank = [(margin.lower == 0) & (margin.upper >= UNBOUNDED) for margin in piece.margins]
    pairs = list(zip(piece.margins, blank, strict=True))
    if not all(domain.sums(margin.cross, truth)[b].all() for margin, b in pairs if b.any()):
        return piece
    return replace(piece, margins=tuple(replace(m, lower=np.where(b, 1, m.lower)) for m, b in pairs))


def _joined(piece: Piece, domain: Domain, truth: IntArray | None, linked: Collection[str]) -> Piece:
    """An earlier file with all that its records say together, unless they are too many, or no people are found that they may be.

    A file without a column in `linked` says nothing that its margins do not.
    """
    if piece.is_file and not any(name in linked for name in piece.columns):
        return replace(piece, records=None, states_more=False)
    records = piece.records
    if records is None or truth is None:
        return piece
    transport = Transport.of(domain, records)
    if transport is not None:
        transport = transport.started(truth, Run())
    is_open = transport is None and not records.is_in_margins
    return replace(piece, transport=transport, states_more=piece.states_more or is_open)


def _known_piece(entry: KnownOptions, cross: Cross, number: int) -> Piece:
    low = entry.exactly if entry.exactly is not None else entry.at_least or 0
    high = entry.exactly if entry.exactly is not None else entry.at_most
    return Piece(
        name=entry.name or f"known {number}",
        margins=(
            Margin(
                cross=cross,
                lower=np.array([low], dtype=np.int64),
                upper=np.array([UNBOUNDED if high is None else high], dtype=np.int64),
            ),
        ),
    )


Labels = Mapping[str, tuple[str, ...]]


def restrict(options: AuditOptions, labels: Labels, attributes: Sequence[Attribute]) -> AuditOptions:
    """The same tables, statements and targets, each among the records with these labels."""
    if not labels:
        return options
    by_name = {attribute.name: attribute for attribute in attributes}

    def among(entry: Any, place: str) -> Any:
        where = dict(entry.where)
        recodes = {recode.attribute: recode for recode in parse_recodes(entry.recode, place)}
        for name, chosen in labels.items():
            allowed = list(chosen)
            if name in recodes:
                coarse, codes = by_name[name].recoded(recodes[name])
                inside = {int(codes[by_name[name].code_of(label)]) for label in chosen}
                outside = {
                    int(codes[code]) for code, label in enumerate(by_name[name].labels) if label not in chosen
                }
                if inside & outside:
                    raise InputError(
                        f'{place} merges labels of "{name}", but --where selects only some of them; keep them apart.',
                        option="--where",
                        column=name,
                    )
                allowed = [label for code, label in enumerate(coarse.labels) if code in inside]
            where[name] = tuple(label for label in where.get(name, allowed) if label in allowed)
            if not where[name]:
                raise InputError(
                    f'{place} has a where on "{name}" that excludes every label of --where; change one of them.',
                    option="--where",
                    column=name,
                )
        return entry.model_copy(update={"where": where})

    return options.model_copy(
        update={
            "tables": tuple(among(table, f'table "{table.name}"') for table in options.tables),
            "known": tuple(among(entry, f"known {number}") for number, entry in enumerate(options.known, 1)),
            "targets": tuple(
                among(entry, f"target {number}") for number, entry in enumerate(options.targets, 1)
            ),
        }
    )
