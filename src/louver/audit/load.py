"""From options to pieces: computed from the records by their description, or read as published and checked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from math import lcm, prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from louver.audit.cells import Units
from louver.audit.dependencies import Known, known_dependencies, near_dependencies, possible_cells
from louver.audit.listed import Listed, ListedShares, read_counts, read_shares
from louver.audit.marks import HIDDEN, told_by_mark, told_by_rule
from louver.audit.options import MAX_COUNT, AuditOptions, KnownOptions, TableOptions, TargetOptions
from louver.data.histogram import Histogram
from louver.errors import InputError
from louver.optim.kernels.audit.propagate import UNBOUNDED
from louver.schema.attribute import Attribute
from louver.schema.recode import parse_recodes
from louver.tables.pieces import Cross, Domain, Margin, Piece, Shares, cross_attributes, refined
from louver.tables.system import IntArray

__all__ = ["Loaded", "Target", "attribute_names", "crosses_of", "load", "restrict"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """Cells that are asked about: of a piece, or of a cross of their own."""

    name: str
    cross: Cross
    only_small: bool = False


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Loaded:
    """Pieces and targets over one domain; `truth` (n_cells,) is None where the records are not known.

    `dependencies` are columns of which the first determines the second, as everybody knows, `near` those with few exceptions. `units`
    are those of a column that the steward named; `household` is a column of the records that looks like the number of a household,
    where none is named.
    """

    domain: Domain
    pieces: tuple[Piece, ...]
    targets: tuple[Target, ...]
    truth: IntArray | None
    is_possible: NDArray[np.bool_] | None
    dependencies: tuple[tuple[str, str], ...] = ()
    near: tuple[Known, ...] = ()
    household: str | None = None
    units: Units | None = None


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
) -> Loaded:
    """Bind the options to the attributes, and to the records where there are any.

    Parameters
    ----------
    attributes : sequence of Attribute
        All that `attribute_names` lists, with labels.
    histogram : Histogram, optional
        The records, over the same attributes.
    folder : str
        Where the files of the pieces lie.
    earlier : sequence of Piece
        What was published before.
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
    dependencies = known_dependencies(attributes, histogram)
    is_possible = possible_cells(domain, dependencies)
    if zeros:
        is_possible = np.ones(domain.n_cells, dtype=bool) if is_possible is None else is_possible
        for zero in zeros:
            is_possible &= domain.assign(zero) < 0
    return Loaded(
        domain=domain,
        pieces=(*pieces, *(_as_read(piece, domain, truth) for piece in earlier)),
        targets=tuple(targets),
        truth=truth,
        is_possible=is_possible,
        dependencies=tuple((one.determinant, one.dependent) for one in dependencies),
        near=near_dependencies(attributes, histogram),
    )


def crosses_of(options: AuditOptions, attributes: Sequence[Attribute]) -> list[Cross]:
    """What tables, statements and targets speak of."""
    crosses = [_table_cross(table, attributes) for table in options.tables]
    crosses += [_statement_cross(entry, attributes, f"known {n}") for n, entry in enumerate(options.known, 1)]
    return crosses + [_target(entry, attributes, n).cross for n, entry in enumerate(options.targets, 1)]


# Crosses ----------------------------------------------------------------------------------------------------------


def _table_cross(table: TableOptions, attributes: Sequence[Attribute]) -> Cross:
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
                f'{place} recodes "{name}", which it does not use; add it to by or where, or drop the recode.',
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
                    f'{place}: where names label {position} of "{name}", which has no such label; check its spelling.',
                    column=name,
                )
    for name in by:
        if name in recodes:
            by_name[name].recoded(recodes[name])
    return cross


# Pieces -----------------------------------------------------------------------------------------------------------


def _piece(table: TableOptions, cross: Cross, domain: Domain, truth: IntArray | None, folder: str) -> Piece:
    if table.file is None and truth is None:
        raise InputError(
            f'table "{table.name}" has no file, and there are no records to compute it from; give one of them.',
            option="tables",
        )
    if table.is_shares:
        return _shares_piece(table, cross, domain, truth, folder)
    margins = _margins(table, cross)
    if table.file is None:
        return Piece(name=table.name, margins=_counted(table, margins, domain, truth))
    listed = read_counts(table, cross, margins, domain, folder)
    return Piece(name=table.name, margins=_checked(table, margins, listed, domain, truth))


def _margins(table: TableOptions, cross: Cross) -> list[Cross]:
    """The cross itself, and with totals every sum over some of its attributes, finest first."""
    if not table.totals:
        return [cross]
    sizes = range(len(cross.by), -1, -1)
    return [cross.over(by) for size in sizes for by in combinations(cross.by, size)]


def _counted(
    table: TableOptions, crosses: Sequence[Cross], domain: Domain, truth: IntArray | None
) -> tuple[Margin, ...]:
    """What a table computed from the records tells: counts, hidden where small or named, or rounded."""
    assert truth is not None
    counts = [domain.sums(cross, truth) for cross in crosses]
    hidden = [_named_cells(table, cross, domain) for cross in crosses]
    if table.below is not None:
        hidden = [h | ((c > 0) & (c < table.below)) for h, c in zip(hidden, counts, strict=True)]
    mark = told_by_mark(table, np.concatenate([c[h] for h, c in zip(hidden, counts, strict=True)]))
    margins = []
    for cross, count, is_hidden in zip(crosses, counts, hidden, strict=True):
        if (is_hidden & ((count < mark[0]) | (count > mark[1]))).any():
            raise InputError(
                f'table "{table.name}": mark_range does not hold for every hidden count; widen it or leave it out.',
                option="mark_range",
            )
        lower = upper = printed = count
        if table.base is not None:
            printed = _nearest(count, table.base)
            lower, upper = _around(printed, table.base, is_random=False)
        if table.below is not None:
            lower, upper = told_by_rule(lower, upper, table.below)
        margins.append(_marked(cross, lower, upper, printed, is_hidden, mark))
    return tuple(margins)


def _marked(
    cross: Cross,
    lower: IntArray,
    upper: IntArray,
    printed: IntArray,
    is_hidden: NDArray[np.bool_],
    mark: tuple[int, int],
) -> Margin:
    return Margin(
        cross=cross,
        lower=np.where(is_hidden, mark[0], lower),
        upper=np.where(is_hidden, mark[1], upper),
        printed=np.where(is_hidden, HIDDEN, printed),
    )


def _as_read(piece: Piece, domain: Domain, truth: IntArray | None) -> Piece:
    """An earlier piece, whose entry may say less about hidden cells than a reader knows: that none of them is empty."""
    if truth is None:
        return piece
    blank = [(margin.lower == 0) & (margin.upper >= UNBOUNDED) for margin in piece.margins]
    pairs = list(zip(piece.margins, blank, strict=True))
    if not all(domain.sums(margin.cross, truth)[b].all() for margin, b in pairs if b.any()):
        return piece
    return replace(piece, margins=tuple(replace(m, lower=np.where(b, 1, m.lower)) for m, b in pairs))


def _named_cells(table: TableOptions, cross: Cross, domain: Domain) -> NDArray[np.bool_]:
    """Cells of this margin that `hide` lists; an entry names a label for each attribute of its margin."""
    attributes = cross_attributes(cross, domain.attributes)
    is_hidden = np.zeros(prod(a.size for a in attributes), dtype=bool)
    for number, entry in enumerate(table.hide, start=1):
        place = f'table "{table.name}": entry {number} of hide'
        if not set(entry) <= set(table.by):
            raise InputError(f"{place} names an attribute that the table has not.", option="hide")
        if set(entry) != set(table.by) and not table.totals:
            raise InputError(f"{place} names a total, and the table shows none; set totals.", option="hide")
        if set(entry) == set(cross.by):
            cell = 0
            for attribute in attributes:
                if not attribute.has_label(entry[attribute.name]):
                    raise InputError(
                        f'{place} names a label that "{attribute.name}" has not; check its spelling.',
                        column=attribute.name,
                    )
                cell = cell * attribute.size + attribute.code_of(entry[attribute.name])
            is_hidden[cell] = True
    return is_hidden


def _checked(
    table: TableOptions,
    crosses: Sequence[Cross],
    listed: Sequence[Listed],
    domain: Domain,
    truth: IntArray | None,
) -> tuple[Margin, ...]:
    """What a file tells, after a look at the records where they are known."""
    counts = None if truth is None else [domain.sums(cross, truth) for cross in crosses]
    hidden = None
    if counts is not None:
        hidden = np.concatenate([c[one.is_hidden] for c, one in zip(counts, listed, strict=True)])
    mark = told_by_mark(table, hidden)
    margins = []
    for number, (cross, one) in enumerate(zip(crosses, listed, strict=True)):
        lower = upper = one.values
        if table.base is not None:
            is_odd = ~one.is_hidden & (one.values % table.base != 0)
            if is_odd.any():
                raise one.error(is_odd, f"is not a multiple of the base {table.base}")
            lower, upper = _around(one.values, table.base, is_random=table.rounding == "random")
        margin = _marked(cross, lower, upper, one.values, one.is_hidden, mark)
        if counts is not None:
            is_wrong = (counts[number] < margin.lower) | (counts[number] > margin.upper)
            if is_wrong.any():
                raise one.error(is_wrong, "does not agree with the records")
        margins.append(margin)
    return tuple(margins)


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


def _nearest(counts: IntArray, base: int) -> IntArray:
    """Multiples of the base, halves up."""
    return (2 * counts + base) // (2 * base) * base


def _around(printed: IntArray, base: int, *, is_random: bool) -> tuple[IntArray, IntArray]:
    """Counts that may be printed so: within half a base, halves up; within less than a base where it was random."""
    below, above = (base - 1, base - 1) if is_random else (base // 2, (base - 1) // 2)
    return np.maximum(0, printed - below), printed + above


# Conditionals -----------------------------------------------------------------------------------------------------


def _shares_piece(
    table: TableOptions, cross: Cross, domain: Domain, truth: IntArray | None, folder: str
) -> Piece:
    attributes = cross_attributes(cross, domain.attributes)
    n_cols = prod(a.size for a in attributes[len(table.rows) :])
    counts = None if truth is None else domain.sums(cross, truth).reshape(-1, n_cols)
    is_half_even = table.rounding == "half-even"
    if table.file is None:
        assert counts is not None
        shares = _computed_shares(cross, counts, table.decimals, is_half_even)
    else:
        listed = read_shares(table, cross, n_cols, domain, folder)
        shares = _listed_shares(cross, listed, table.decimals, is_half_even)
        if counts is not None:
            _check_shares(listed, shares, _computed_shares(cross, counts, table.decimals, is_half_even))
    return Piece(name=table.name, margins=_beside(table, cross, counts), shares=(shares,))


def _computed_shares(cross: Cross, counts: IntArray, decimals: int | None, is_half_even: bool) -> Shares:
    totals = counts.sum(axis=1)
    if decimals is None:
        divisor = np.maximum(1, np.gcd.reduce(counts, axis=1))
        printed = counts // divisor[:, None]
    else:
        people = np.maximum(1, totals)[:, None]
        doubled = 2 * counts * 10**decimals + people
        printed = doubled // (2 * people)
        if is_half_even:
            printed -= (doubled % (2 * people) == 0) & (printed % 2 == 1)
    return Shares(
        cross=cross,
        n_cols=counts.shape[1],
        printed=printed,
        decimals=decimals,
        is_half_even=is_half_even,
        is_empty=totals == 0,
    )


def _listed_shares(cross: Cross, listed: ListedShares, decimals: int | None, is_half_even: bool) -> Shares:
    rows = []
    for values in listed.values:
        unit = lcm(*(value.denominator for value in values)) if decimals is None else 10**decimals
        rows.append([int(value * unit) for value in values])
    printed = np.array(rows, dtype=np.int64)
    return Shares(
        cross=cross,
        n_cols=printed.shape[1],
        printed=printed,
        decimals=decimals,
        is_half_even=is_half_even,
        is_empty=(printed == 0).all(axis=1),
    )


def _check_shares(listed: ListedShares, told: Shares, true: Shares) -> None:
    """Shares as printed must be those of the records."""
    wrong = np.flatnonzero((told.printed != true.printed).any(axis=1) | (told.is_empty != true.is_empty))
    if len(wrong):
        line = listed.line[int(wrong[0])]
        place = f"the table row that begins on row {line} of {listed.file}"
        if not line:
            place = f"a table row that {listed.file} does not list"
        raise InputError(
            f'table "{listed.table}": {place} does not agree with the records; check the file and how it was made.',
            file=listed.file,
            row=line or None,
        )


def _beside(table: TableOptions, cross: Cross, counts: IntArray | None) -> tuple[Margin, ...]:
    """Counts that are published beside conditionals: the number of people, or one of each row."""
    told = table.counts or ("none" if table.n is None else "total")
    if told == "none":
        return ()
    if told == "rows" and counts is not None and table.n is None:
        totals = counts.sum(axis=1)
        return (Margin(cross=cross.over(table.rows), lower=totals, upper=totals),)
    if counts is None and table.n is None:
        raise InputError(
            f'table "{table.name}" has counts that only records could tell; give n, or the row totals as a table.',
            option="counts",
        )
    if counts is not None and table.n is not None and table.n != counts.sum():
        raise InputError(f'table "{table.name}": n differs from the records; leave it out.', option="n")
    n = table.n if counts is None else int(counts.sum())
    total = np.array([n], dtype=np.int64)
    return (Margin(cross=cross.over(()), lower=total, upper=total),)


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
                        f'{place} merges labels of "{name}" of which --where lets only some through; keep them apart.',
                        option="--where",
                        column=name,
                    )
                allowed = [label for code, label in enumerate(coarse.labels) if code in inside]
            where[name] = tuple(label for label in where.get(name, allowed) if label in allowed)
            if not where[name]:
                raise InputError(
                    f'{place} has a where on "{name}" that shares no label with --where; change one of them.',
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
