"""Risk and utility of the classes that a reader of the file sees, under the names used in the field.

Such a class consists of all records with equal published quasi-identifiers. A method may form several classes that publish the same values:
to a reader they are one, and every figure about classes counts them as one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import exp, inf
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from louver._arrays import Bools, Floats, Ints
from louver.anonymize.columns import Distance, LKind, QuasiColumn, given_values
from louver.anonymize.generalise import Meaning, PublishedColumn, Sort
from louver.anonymize.problem import SUPPRESSED, AnonymizeProblem, Grouping
from louver.optim.kernels.classes.diversity import (
    N_LIMITS,
    START,
    STOP,
    count_inplace,
    distance,
    excess_of,
    n_sensitive_values,
    variety,
)
from louver.run import Run

__all__ = [
    "NEARLY",
    "InferableValues",
    "MeasuredLimits",
    "PublishedClasses",
    "Risk",
    "UnitsFound",
    "Utility",
    "count_alike",
    "count_alone",
    "count_alone_in_units",
    "derivable_values",
    "looks_of_units",
    "measured_diversity",
    "published_classes",
    "published_losses",
    "risk_of",
    "utility_of",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Risk:
    """Re-identification risk of a released file, from its classes as published: records with equal quasi-identifiers.

    Attributes
    ----------
    counted : str
        What the size of a class counts: records, or units (households) where they are known.
    prosecutor_highest : float
        The attacker knows that a given person is in the file: 1 / smallest class.
    prosecutor_average, marketer : float
        Expected share of records re-identified if all are attacked: classes / records; with units the mean over records of
        1 / units in their class.
    journalist_highest, journalist_average : float or None
        The attacker knows that a given person is in the population: 1 / least number of people that a class matches, and the
        mean over records of 1 / people that their class matches; None if nothing is known about the population.
    uniques_before, uniques_after : int
        Records with a unique combination of quasi-identifiers.
    class_sizes : tuple of (size, number of classes)
    """

    prosecutor_highest: float
    prosecutor_average: float
    marketer: float
    journalist_highest: float | None
    journalist_average: float | None
    uniques_before: int
    uniques_after: int
    class_sizes: tuple[tuple[int, int], ...]
    counted: str = "records"


@dataclass(frozen=True, slots=True, kw_only=True)
class Utility:
    """The loss of a release.

    Attributes
    ----------
    information_loss : float
        Sum over records and quasi-identifiers of weight x share of the column's range (Definition 4).
    gcp : float
        Mean over records and quasi-identifiers of that share, ignoring weights; suppressed records lose everything.
    discernibility : int
        Sum of squared class sizes, plus the total number of records for each suppressed record.
    average_class_size : float
        Mean number of records per class, divided by k.
    by_column : tuple of (name, mean share lost)
    """

    information_loss: float
    gcp: float
    discernibility: int
    average_class_size: float
    by_column: tuple[tuple[str, float], ...]


def risk_of(
    sizes: Ints,
    multiplicity_before: Ints,
    people: Floats | None = None,
    matches: Ints | None = None,
    units: Ints | None = None,
) -> Risk:
    """Risk from the sizes of the released classes, and of the classes of equal records before generalisation.

    Parameters
    ----------
    sizes : int64 (classes,)
        Records that share their published values.
    multiplicity_before : int64
        Records that had the same values before.
    people : float64 (classes,), optional
        People of the population that each class stands for, by count or by sampling weights.
    matches : int64 (n,), optional
        How many published records each record fits, if that is not the size of its class.
    units : int64 (classes,), optional
        Distinct units with records in each class, if k counts units.

    Examples
    --------
    >>> risk = risk_of(np.array([3, 5]), np.array([1, 1, 6]))
    >>> round(risk.prosecutor_highest, 3), risk.marketer, risk.uniques_before, risk.uniques_after
    (0.333, 0.25, 2, 0)
    """
    n = int(sizes.sum())
    counted = sizes if units is None else units
    values, counts = np.unique(counted, return_counts=True)
    each = 1 / (counted if matches is None else matches)
    average = float(each.mean()) if matches is not None else float((sizes / counted).sum()) / max(1, n)
    journalist = None if people is None or not n else 1 / np.maximum(people, 1)
    return Risk(
        prosecutor_highest=float(each.max(initial=0.0)),
        prosecutor_average=average,
        marketer=average,
        journalist_highest=None if journalist is None else float(journalist.max()),
        journalist_average=None if journalist is None else float(sizes @ journalist) / n,
        uniques_before=int((multiplicity_before == 1).sum()),
        uniques_after=int((counted == 1).sum()),
        class_sizes=tuple(zip(values.tolist(), counts.tolist(), strict=True)),
        counted="records" if units is None else "units",
    )


def utility_of(
    names: list[str],
    weights: Floats,
    lost: Floats,
    sizes: Ints,
    n_suppressed: int,
    k: int,
) -> Utility:
    """Utility from the class sizes and the share lost in each column, summed over records without weights.

    Examples
    --------
    >>> utility = utility_of(["age"], np.array([2.0]), np.array([1.5]), np.array([2, 3]), 0, 2)
    >>> utility.information_loss, utility.gcp, utility.discernibility, utility.average_class_size
    (3.0, 0.3, 13, 1.25)
    """
    n = int(sizes.sum()) + n_suppressed
    shares = lost / max(1, n)
    return Utility(
        information_loss=float((lost * weights).sum()),
        gcp=float(shares.mean()),
        discernibility=int((sizes**2).sum()) + n_suppressed * n,
        average_class_size=int(sizes.sum()) / max(1, len(sizes)) / k,
        by_column=tuple(zip(names, shares.tolist(), strict=True)),
    )


def published_losses(mapping: pa.Table) -> list[tuple[str, float]]:
    """Mean share of each attribute that published records lose, measured from published values only.

    Intervals lose their width divided by that of all intervals together, sets and nodes (labels - 1) divided by all labels that
    occur in the mapping. The source is not used, because its range may be due to a record that was left out.
    """
    losses = []
    for name in pc.unique(mapping["attribute"]).to_pylist():
        lines = mapping.filter(pc.equal(mapping["attribute"], name)).to_pylist()
        records = sum(line["records"] for line in lines)
        lost = sum(line["records"] * share for line, share in zip(lines, _shares(lines), strict=True))
        losses.append((name, lost / max(1, records)))
    return losses


def _shares(lines: list[dict[str, Any]]) -> list[float]:
    """Share of an attribute that each published value loses."""
    labels = {member for line in lines for member in line["members"] or ()}
    known = [line for line in lines if line["lower"] is not None]
    span = max((line["upper"] for line in known), default=0) - min(
        (line["lower"] for line in known), default=0
    )
    shares = []
    for line in lines:
        if line["sort"] == "anything":
            shares.append(1.0)
        elif line["members"] is not None:
            steps = len(labels) - 1 if line["sort"] == "interval" else len(labels)
            shares.append((len(line["members"]) - 1) / max(1, steps))
        else:
            shares.append(
                (line["upper"] - line["lower"]) / span if line["lower"] is not None and span else 0.0
            )
    return shares


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitsFound:
    """How units are spread over classes formed without regard to them, judged by a column that looks like a household number.

    Attributes
    ----------
    column : str
    classes : int
    below_k, single : int
        Classes with records of fewer than k units, and of one.
    """

    column: str
    k: int
    classes: int
    below_k: int
    single: int

    def __str__(self) -> str:
        return (
            f'{self.below_k:,} of {self.classes:,} classes have records of fewer than {self.k} households by column "{self.column}", '
            f"{self.single:,} of a single one, and relatives do not protect each other: name it in --unit, so that k counts households"
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PublishedClasses:
    """Classes as published.

    Attributes
    ----------
    of_group : int64 (groups,)
        The class of each group that a method formed.
    first : int64 (classes,)
        A group of each class.
    sizes : int64 (classes,)
        Records in each.
    """

    of_group: Ints
    first: Ints
    sizes: Ints

    @property
    def n(self) -> int:
        return len(self.sizes)

    def of_records(self, labels: Ints) -> Ints:
        """The class of each record, by its group; -1 where it is left out."""
        return np.where(labels >= 0, np.append(self.of_group, 0)[labels], -1)


def published_classes(
    published: Sequence[PublishedColumn], sizes: Ints, *, as_bounds: bool
) -> PublishedClasses:
    """Classes of equal published values.

    Parameters
    ----------
    sizes : int64 (groups,)
        Records published as each group.
    """
    if not len(sizes):
        nothing = np.zeros(0, np.int64)
        return PublishedClasses(of_group=nothing, first=nothing, sizes=nothing)
    of_group = np.zeros(len(sizes), np.int64)
    for p in published:
        printed = _printed(p, as_bounds)
        of_group = of_group * (int(printed.max()) + 1) + printed[p.of_group]
        _, first, of_group = np.unique(of_group, return_index=True, return_inverse=True)
    counted = np.bincount(of_group, sizes, minlength=len(first)).astype(np.int64)
    return PublishedClasses(of_group=of_group, first=first, sizes=counted)


def _printed(published: PublishedColumn, as_bounds: bool) -> Ints:
    """A number for each meaning of a column, equal for meanings that are printed in the same way."""
    every = replace(published, of_group=np.arange(len(published.meanings)))
    columns = [values.to_pylist() for _, values in every.columns(as_bounds)]
    number: dict[tuple[object, ...], int] = {}
    return np.array(
        [number.setdefault(line, len(number)) for line in zip(*columns, strict=True)], dtype=np.int64
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredLimits:
    """The l of the least diverse class and the t of the most distant class of a release, for one sensitive column.

    Attributes
    ----------
    l : float or None
        The least number of distinct values, the exponential of the least entropy, or the greatest l for which all classes are (c,
        l)-diverse; None if no l is required.
    t : float or None
        Largest distance from the published table; None if no t is required.
    distance : str
        The distance in which t is measured.
    """

    name: str
    l: float | None  # noqa: E741 - the field's own name
    t: float | None
    distance: str

    def __str__(self) -> str:
        found = [] if self.l is None else [f"l = {self.l:.4g} reached"]
        found += [] if self.t is None else [f"t = {self.t:.4g} reached, {self.distance} distance"]
        return f"{self.name}: {', '.join(found)}"


def measured_diversity(problem: AnonymizeProblem, answer: Grouping) -> tuple[MeasuredLimits, ...]:
    """The l and t of the classes, measured on the published records alone."""
    members = np.flatnonzero(answer.labels != SUPPRESSED)
    if not problem.sensitive or not len(members):
        return ()
    requirements = problem.kept(members).requirements
    limits, labels = requirements.limits, answer.labels[members]
    order = np.argsort(labels, kind="stable")
    starts = np.flatnonzero(np.diff(labels[order], prepend=-1))
    worst = [(inf, inf, 0.0)] * len(problem.sensitive)
    for records in np.split(requirements.sensitive[order], starts[1:]):
        counts = np.zeros(n_sensitive_values(limits), np.int64)
        for codes in records:
            count_inplace(limits, counts, codes, 1)
        for s, (fewest, entropy, farthest) in enumerate(worst):
            n_distinct, spread = variety(limits, s, counts)
            ratio = problem.sensitive[s].c
            worst[s] = (
                min(fewest, n_distinct if ratio is None else _recursive_l(limits, s, counts, ratio)),
                min(entropy, spread),
                max(farthest, distance(limits, s, counts)),
            )
    return tuple(
        MeasuredLimits(
            name=required.name,
            l=None
            if required.l is None
            else exp(entropy)
            if required.l_kind is LKind.ENTROPY
            else float(fewest),
            t=None if required.t is None else float(farthest),
            distance=Distance(required.distance).value,
        )
        for required, (fewest, entropy, farthest) in zip(problem.sensitive, worst, strict=True)
    )


def _recursive_l(limits: Floats, s: int, counts: Ints, ratio: float) -> int:
    """The greatest l for which a class is (ratio, l)-diverse in sensitive column s; 0 if there is none."""
    start, stop = (int(limits[s * N_LIMITS + place]) for place in (START, STOP))
    descending = -np.sort(-counts[start:stop])
    found, size = 0, int(descending.sum())
    while found < stop - start and excess_of(descending, found + 1, ratio, size) <= 0 < size:
        found += 1
    return found


NEARLY = 0.95
"""Share of the records with one unchanged value that must have the same value of the quasi-identifier for it to count as revealed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InferableValues:
    """What columns that are published unchanged reveal about one quasi-identifier.

    Attributes
    ----------
    name : str
    generalised : int
        Published records whose value is generalised.
    exactly, nearly : int
        How many of these follow without exception from one unchanged column or from all of them together; and how many are the commonest
        value, if at least 95 % have it.
    column : str
        The unchanged column that reveals most.
    """

    name: str
    generalised: int
    exactly: int
    nearly: int
    column: str

    def __str__(self) -> str:
        return (
            f"{self.name}: {self.exactly:,} of {self.generalised:,} generalised values can be inferred exactly from unchanged "
            f"columns, {self.nearly:,} at {NEARLY:.0%} (most from {self.column})"
        )


def derivable_values(
    records: pa.Table,
    unchanged: Sequence[str],
    columns: Sequence[QuasiColumn],
    published: Sequence[PublishedColumn],
    group_of: Ints,
    run: Run,
) -> tuple[InferableValues, ...]:
    """For every quasi-identifier, how many of its generalised values the unchanged columns reveal.

    Parameters
    ----------
    group_of : int64 (rows,)
        The group that each row of the source is published as; -1 is suppressed.

    Notes
    -----
    **Cost**: a sort of the records for each pair of an unchanged column and a quasi-identifier.
    """
    known = [(name, _coded(records[name])) for name in unchanged]
    if len(known) > 1:
        known.append(("all of them together", _joined([codes for _, codes in known])))
    rows = np.arange(records.num_rows)
    return tuple(
        _of_one(column.name, given_values(column, rows), _is_generalised(p, group_of), known, run)
        for column, p in zip(columns, published, strict=True)
    )


def count_alone(table: pa.Table) -> int:
    """Published records that no other record equals in every column: anyone who knows all values of a person can find the record."""
    if not table.num_columns:
        return 0
    _, counts = np.unique(_joined([_coded(column) for column in table.columns]), return_counts=True)
    return int((counts == 1).sum())


def count_alone_in_units(table: pa.Table, units: Ints) -> int:
    """Published records of units that no other unit equals, member by member in every column.

    Parameters
    ----------
    units : int64 (n,)
        The unit of each record, from 0.
    """
    if not table.num_columns or not len(units):
        return 0
    member = np.unique(_joined([_coded(column) for column in table.columns]), return_inverse=True)[1]
    looks = looks_of_units(member, units)
    first = np.unique(units, return_index=True)[1]
    alike = np.bincount(looks[first])
    return int((alike[looks] == 1).sum())


def looks_of_units(members: Ints, units: Ints) -> Ints:
    """A number for the published values of each record's unit, member by member: equal for units that are alike.

    Parameters
    ----------
    members : int64 (n,)
        Number of the published values of each record, from 0.
    units : int64 (n,)
        The unit of each record, from 0.
    """
    order, size = np.lexsort([members, units]), np.bincount(units)
    looks, n_looks = np.zeros(len(size), np.int64), 0
    for s in np.unique(size[size > 0]).tolist():
        of_size = members[order][size[units[order]] == s].reshape(-1, s)
        found = np.unique(of_size, axis=0, return_inverse=True)[1].reshape(-1)
        looks[size == s] = n_looks + found
        n_looks += int(found.max()) + 1
    return looks[units]


def count_alike(values: pa.ChunkedArray, classes: Ints) -> int:
    """Published records in classes whose members all have the same value of a sensitive column; a missing value counts.

    Parameters
    ----------
    classes : int64 (n,)
        The class of each value.
    """
    if not len(classes):
        return 0
    codes = _coded(values) + 1
    first = np.zeros(int(classes.max()) + 1, np.int64)
    first[classes] = codes
    is_mixed = np.zeros(len(first), np.bool_)
    is_mixed[classes[codes != first[classes]]] = True
    return int((~is_mixed[classes]).sum())


def _of_one(
    name: str, values: Floats, is_generalised: Bools, known: Sequence[tuple[str, Ints]], run: Run
) -> InferableValues:
    _, codes = np.unique(values, return_inverse=True)
    exactly = nearly = np.zeros(len(codes), np.bool_)
    most, best = 0, ""
    for other, of_record in known:
        run.check()
        is_exact, is_near = _tells(of_record, codes)
        found = int((is_near & is_generalised).sum())
        if found > most:
            most, best = found, other
        exactly, nearly = exactly | is_exact, nearly | is_near
    return InferableValues(
        name=name,
        generalised=int(is_generalised.sum()),
        exactly=int((exactly & is_generalised).sum()),
        nearly=int((nearly & is_generalised).sum()),
        column=best,
    )


def _tells(known: Ints, codes: Ints) -> tuple[Bools, Bools]:
    """Whether the code of each record follows from what is known about it, without exception and by majority."""
    n_codes = int(codes.max(initial=0)) + 1
    pairs, of_record, counts = np.unique(known * n_codes + codes, return_inverse=True, return_counts=True)
    groups = pairs // n_codes
    starts = np.flatnonzero(np.concatenate([[True], groups[1:] != groups[:-1]]))
    place = np.repeat(np.arange(len(starts)), np.diff(np.append(starts, len(pairs))))
    sizes = np.add.reduceat(counts, starts)[place]
    is_shared = (sizes > 1) & (groups >= 0)
    is_near = is_shared & (counts >= NEARLY * sizes)
    return (is_near & (counts == sizes))[of_record], is_near[of_record]


def _coded(column: pa.ChunkedArray) -> Ints:
    """A number for each value; -1 where it is missing."""
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    indices = column.combine_chunks().dictionary_encode().indices.fill_null(-1)
    return np.asarray(np.from_dlpack(indices), np.int64)


def _joined(parts: Sequence[Ints]) -> Ints:
    """A number for each combination."""
    number = np.zeros(len(parts[0]), np.int64)
    for part in parts:
        _, number = np.unique(number * (int(part.max(initial=0)) + 2) + part + 1, return_inverse=True)
    return number


def _is_generalised(published: PublishedColumn, group_of: Ints) -> Bools:
    is_wide = np.array([_is_wide(meaning) for meaning in published.meanings], np.bool_)
    flags: Bools = np.zeros(len(group_of), np.bool_)
    is_kept = group_of >= 0
    flags[is_kept] = is_wide[published.of_group][group_of[is_kept]]
    return flags


def _is_wide(meaning: Meaning) -> bool:
    if meaning.members is not None:
        return len(meaning.members) > 1
    return meaning.sort is Sort.ANYTHING or meaning.lower != meaning.upper
