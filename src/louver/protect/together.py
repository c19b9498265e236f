"""Protecting tables together with what was published earlier about the same people.

Tables of sums or counts in which an earlier release hides cells are protected together with the new ones (`load.Earlier`): what it shows
remains shown, and what it hides must remain protected. Tables of counts are also audited, by `louver.audit`, together with everything in
the register: other tables, shares and files of records.
"""

from __future__ import annotations

import hmac
from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any

import numpy as np

from louver._arrays import Ints
from louver.audit import JointAudit, audit_pieces
from louver.errors import InputError
from louver.optim.kernels.audit.propagate import UNBOUNDED
from louver.protect.cellkey import KeyedTable, smallest_safe
from louver.protect.cells import Axis
from louver.protect.load import Earlier, Loaded
from louver.protect.noise_table import NoiseTable
from louver.protect.options import ProtectOptions
from louver.protect.solve import Solved, bases_of
from louver.release.matched_register import MatchedRegister
from louver.schema.attribute import Attribute
from louver.schema.recode import Recode
from louver.schema.request import Request
from louver.tables.pieces import Cross, Margin, Piece, cross_attributes

__all__ = [
    "audit_noisy",
    "audit_together",
    "check_same_keys",
    "check_same_noise",
    "earlier_tables",
    "mark_of",
    "match_register",
    "shown_by_files",
]


def match_register(request: Request[ProtectOptions], *, is_publishing: bool) -> MatchedRegister:
    """The register's information about the people in the records."""
    options = request.options
    assert options.registry is not None
    if request.source.where is not None:
        raise InputError(
            "option --where: with --register all records are read; write the records of the tables to a separate file.",
            option="--where",
        )
    return MatchedRegister.of(
        options.registry,
        request.data,
        request.source,
        person=options.person,
        is_new_population=options.new_population,
        is_publishing=is_publishing,
        run=request.run,
    )


def earlier_tables(register: MatchedRegister) -> list[Earlier]:
    """Protected tables of earlier releases."""
    return [
        Earlier(table, f"{table['name']} (published {entry.created[:10]})")
        for entry in register.entries
        for table in entry.content.get("protected", ())
    ]


def shown_by_files(register: MatchedRegister, options: ProtectOptions) -> tuple[str, ...]:
    """Columns that these tables sum and that earlier files of records publish."""
    files = [file for entry in register.entries for file in entry.content.get("files", ())]
    shown = {name for file in files for name in (*file["quasi"], *file["columns"], *file["too_large"])}
    summed = dict.fromkeys(table.value for table in options.tables if table.value is not None)
    return tuple(name for name in summed if name in shown)


def audit_together(
    request: Request[ProtectOptions], loaded: Loaded, solved: Solved, register: MatchedRegister
) -> tuple[JointAudit | None, dict[str, Any]]:
    """Audit the tables of counts together with what was published earlier; also return what the register stores about them.

    Counts of weighted records are estimates of other people and are not audited.
    """
    options = request.options
    counts = [table for table in loaded.tables if table.options.is_counts and options.sampling_weight is None]
    if not counts:
        return None, {"tables": []}
    names = tuple(dict.fromkeys(name for table in counts for name in table.options.by))
    lower, upper = _reader_bounds(options, loaded, solved)

    def pieces_of(attributes: Sequence[Attribute]) -> list[Piece]:
        return [
            _piece(table.options.name, table.grid.axes, table.grid.cells, attributes, lower, upper)
            for table in counts
        ]

    return audit_pieces(
        request,
        names,
        pieces_of,
        register,
        small=smallest_safe(options),
        is_accepted=options.accept_unchecked,
    )


def audit_noisy(
    request: Request[ProtectOptions],
    tables: Sequence[KeyedTable],
    most: int,
    register: MatchedRegister,
    *,
    small: int,
) -> tuple[JointAudit | None, dict[str, Any]]:
    """The same for counts with noise of at most `most`."""
    names = tuple(dict.fromkeys(name for table in tables for name in table.options.by))

    def pieces_of(attributes: Sequence[Attribute]) -> list[Piece]:
        return [
            _piece(
                table.options.name,
                table.axes,
                np.arange(table.noisy.size).reshape(table.noisy.shape),
                attributes,
                np.maximum(table.noisy.ravel() - most, table.noisy.ravel() > 0),
                table.noisy.ravel() + most,
            )
            for table in tables
        ]

    return audit_pieces(
        request, names, pieces_of, register, small=small, is_accepted=request.options.accept_unchecked
    )


def check_same_noise(register: MatchedRegister, noise: NoiseTable) -> None:
    """Refuse to publish the same counts a second time with other noise, because the mean of both has less noise."""
    for entry in register.entries:
        for table in entry.content.get("protected", ()):
            if table["value"] is None and table.get("noise") != noise.digest:
                raise InputError(
                    f'option --register: publication {entry.number} has the same counts, protected by method "{table["method"]}" or with '
                    "other "
                    "noise; use the perturbation table of that publication.",
                    option="--register",
                )


def mark_of(register: MatchedRegister, tables: Sequence[KeyedTable]) -> str:
    """The sum of the keys of all records, and their number, under the register's key; it reveals nothing without the key."""
    keys, counts = (array.ravel()[0] for array in (tables[0].keys, tables[0].counts))
    return hmac.new(register.key, f"keyed records:{keys}:{counts}".encode(), "sha256").hexdigest()


def check_same_keys(register: MatchedRegister, mark: str) -> None:
    """Refuse other keys for the same records (another column of persons, or its texts written in another way), because these would
    produce fresh noise."""
    for entry in register.entries:
        for table in entry.content.get("protected", ()):
            if table["method"] == "cellkey" and table.get("mark") != mark:
                named = f'column "{table["person"]}"' if "person" in table else "column"
                raise InputError(
                    f"option --person: publication {entry.number} gave these records different keys, so averaging would remove the noise; "
                    f"use the {named} of that publication with exactly the same values.",
                    option="--person",
                )


def _reader_bounds(options: ProtectOptions, loaded: Loaded, solved: Solved) -> tuple[Ints, Ints]:
    """Lower and upper bounds that readers of one table can put on each count; a listed count is at least 1."""
    values = np.array([cell.value for cell in loaded.cells], dtype=np.int64)
    if solved.rounding is None:
        hidden = solved.hiding.hidden
        return np.where(hidden, 1, values), np.where(hidden, UNBOUNDED, values)
    bases = bases_of(options, loaded)
    base = np.array([bases[cell.measured] for cell in loaded.cells], dtype=np.int64)
    reach = base * (1 + solved.rounding.beyond) - 1
    return np.maximum(1, solved.rounding.numbers - reach), solved.rounding.numbers + reach


def _piece(
    name: str, axes: Sequence[Axis], numbers: Ints, attributes: Sequence[Attribute], lower: Ints, upper: Ints
) -> Piece:
    """A table as margins: one for each combination of attribute levels."""
    by_name = {attribute.name: attribute for attribute in attributes}
    levels = [list(_levels(axis, by_name[axis.attribute.name])) for axis in axes]
    margins = []
    for chosen in product(*levels):
        recoded = [(axis, recode) for axis, recode in zip(axes, chosen, strict=True) if recode is not None]
        cross = Cross(
            by=tuple(axis.attribute.name for axis, _ in recoded),
            recodes={axis.attribute.name: recode for axis, recode in recoded if recode.merge},
        )
        coarse = cross_attributes(cross, attributes)
        labels = dict(zip(cross.by, (attribute.labels for attribute in coarse), strict=True))
        # A label that is listed in a spec but never occurs has no code in the table and is represented by -1.
        places = [
            np.array(
                [
                    axis.place_of.get(label, -1)
                    for label in labels.get(axis.attribute.name, (axis.attribute.total,))
                ]
            )
            for axis in axes
        ]
        listed = np.full([len(place) for place in places], -1, dtype=np.int64)
        listed[np.ix_(*(place >= 0 for place in places))] = numbers[
            np.ix_(*(place[place >= 0] for place in places))
        ]
        cells = listed.ravel()
        is_listed = cells >= 0
        margins.append(
            Margin(
                cross=cross,
                lower=np.where(is_listed, lower[cells], 0),
                upper=np.where(is_listed, upper[cells], 0),
            )
        )
    return Piece(name=name, margins=tuple(margins))


def _levels(axis: Axis, attribute: Attribute) -> Iterator[Recode | None]:
    """The labels merged into the codes of each level, with leaves above the level unchanged; None for the total."""
    yield None
    seen: list[dict[str, tuple[str, ...]]] = []
    present = set(attribute.labels)
    for tree in axis.attribute.trees:
        for level in range(1, 1 + max(tree.depth[code] for code in tree.codes if code in axis.place_of)):
            merge = {}
            for code in tree.codes:
                below = tuple(sorted(tree.leaves[code] & present))
                if tree.depth[code] == level and below and below != (code,):
                    merge[code] = below
            if merge not in seen:
                seen.append(merge)
                yield Recode(attribute.name, merge=merge)
