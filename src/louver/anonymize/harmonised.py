"""One recoding for the whole file: the coded problem seen by columns, what a recoding loses, and the answer it makes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from louver._arrays import Bools, Floats, Ints
from louver.anonymize.domains import Domain, domain_of
from louver.anonymize.problem import SUPPRESSED, Problem, renumbered
from louver.anonymize.requirements import LKind
from louver.optim.kernels.classes.recoding import diverse_groups, group_points
from louver.optim.status import Status

__all__ = ["Codings", "Recoded", "Recoding", "Whole"]

Codings = tuple[Ints, ...]
"""A coding for each column."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Recoding:
    """A recoding that may be published, and what it loses: `loss` includes the records left out, at full loss."""

    codings: Codings
    loss: float


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Whole:
    """A problem as recodings of whole columns see it.

    Attributes
    ----------
    domains : tuple of Domain
    weights : float64 (m,)
    atoms : int32 (p, m)
        Distinct combinations of values.
    multiplicity : int64 (p,)
    of_record : int64 (n,)
        The combination that each record of the problem has.
    problem : Problem
    """

    domains: tuple[Domain, ...]
    weights: Floats
    atoms: NDArray[np.int32]
    multiplicity: Ints
    of_record: Ints
    problem: Problem

    @classmethod
    def of(cls, problem: Problem) -> Whole:
        domains = tuple(domain_of(column, problem.rows) for column in problem.columns)
        records = np.stack([domain.atoms for domain in domains], axis=1).astype(np.int32)
        group, sizes = _divided(
            records, [np.arange(d.size) for d in domains], np.ones(len(records), np.int64)
        )
        first = np.empty(len(sizes), np.int64)
        first[group[::-1]] = np.arange(len(group))[::-1]
        return cls(
            domains=domains,
            weights=np.array([column.weight for column in problem.columns]),
            atoms=records[first],
            multiplicity=sizes,
            of_record=group,
            problem=problem,
        )

    @property
    def coarsest(self) -> Codings:
        return tuple(domain.coarsest() for domain in self.domains)

    @property
    def has_bound(self) -> bool:
        """Whether no recoding loses less than its columns do while nobody is left out."""
        is_leaving_out = self.problem.max_suppressed > 0
        return not is_leaving_out or all(d.level(d.coarsest()) is not None for d in self.domains)

    @property
    def is_monotone(self) -> bool:
        """Whether no coarser recoding leaves more records out.

        United classes that are published meet every requirement again, so nobody has to be left out who was not. But where
        somebody may be, entropy and closeness may fail for the union of a class that is published and one that is not.
        """
        is_counting = all(one.t is None and one.l_kind is LKind.DISTINCT for one in self.problem.sensitive)
        return self.problem.max_suppressed == 0 or is_counting

    def least_loss(self, codings: Codings) -> float:
        """What every record loses at least: exact where nobody is left out, and for hierarchies a bound."""
        return float(sum(self.column_loss(place, coding) for place, coding in enumerate(codings)))

    def column_loss(self, place: int, coding: Ints) -> float:
        """Loss of a column while nobody is left out."""
        domain = self.domains[place]
        return float(self.weights[place]) * domain.loss(coding, domain.counts)

    def groups(self, codings: Codings) -> tuple[Ints, Ints, Bools]:
        """The group of each point, the records in each group, and which groups may be published."""
        problem = self.problem
        group, sizes = _divided(self.atoms, codings, self.multiplicity)
        passed = sizes >= problem.least_size
        if problem.sensitive:
            needs = problem.requirements
            passed &= diverse_groups(needs.limits, needs.sensitive, group[self.of_record], sizes)
        return group, sizes, passed

    def judged(self, codings: Codings) -> Recoding | None:
        """The recoding, with what it loses; None where too many records would be left out.

        Classes that may not be published are left out, and what the others lose is measured by what is published: the ends
        of an interval are those of published records.
        """
        group, sizes, passed = self.groups(codings)
        n_out = int(sizes[~passed].sum())
        if n_out > self.problem.max_suppressed:
            return None
        if n_out == 0:
            return Recoding(codings=codings, loss=self.least_loss(codings))
        kept = self.multiplicity * passed[group]
        loss = n_out * float(self.weights.sum())
        for place, (domain, coding) in enumerate(zip(self.domains, codings, strict=True)):
            counts = np.bincount(self.atoms[:, place], kept, minlength=domain.size).astype(np.int64)
            loss += float(self.weights[place]) * domain.loss(coding, counts)
        return Recoding(codings=codings, loss=loss)

    def answer(self, best: Recoding, *, method: str, status: Status, lower_bound: float | None) -> Recoded:
        """The answer that a recoding makes."""
        group, _, passed = self.groups(best.codings)
        labels = np.where(passed[group], group, SUPPRESSED)[self.of_record]
        labels = renumbered(labels)
        codings = zip(self.domains, best.codings, strict=True)
        unit = self.problem.unit
        return Recoded(
            labels=labels,
            blocks=np.stack([coding[domain.atoms] for domain, coding in codings]),
            levels=tuple(d.level(coding) for d, coding in zip(self.domains, best.codings, strict=True)),
            loss=round(best.loss / unit),
            lower_bound=None if lower_bound is None else round(lower_bound / unit),
            status=status,
            method=method,
        )


def _divided(atoms: NDArray[np.int32], codings: Sequence[Ints], weight: Ints) -> tuple[Ints, Ints]:
    """The group of each point, equal where all its blocks are, and the records in each group."""
    group, sizes = np.zeros(len(atoms), np.int64), np.empty(len(atoms), np.int64)
    start = np.cumsum([0, *(len(coding) for coding in codings[:-1])])
    n_blocks = np.array([int(coding.max(initial=0)) + 1 for coding in codings])
    blocks = np.concatenate(codings).astype(np.int32)
    n_groups = 1
    for columns in _words(n_blocks.tolist(), len(atoms)):
        n_groups = group_points(atoms, blocks, start, n_blocks, columns, weight, group, sizes)
    return group, sizes[:n_groups]


def _words(n_blocks: Sequence[int], n_points: int) -> list[Ints]:
    """Columns with more than one block, in parts whose combinations with groups of points have numbers of 63 bits."""
    parts: list[list[int]] = [[]]
    n_keys = n_points
    for column, n in enumerate(n_blocks):
        if n_keys * n >= 2**63:
            parts.append([])
            n_keys = n_points
        if n > 1:
            parts[-1].append(column)
            n_keys *= n
    return [np.array(part, np.int64) for part in parts]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Recoded:
    """Records recoded column by column; an `Answer`.

    Attributes
    ----------
    labels : int64 (n,)
        Class of each record, from 0 by first record; -1 is suppressed.
    blocks : int64 (m, n)
        Block of each record in each column.
    levels : tuple of int or None
        Level of each column with a hierarchy.
    """

    labels: Ints
    blocks: Ints
    levels: tuple[int | None, ...]
    loss: int
    lower_bound: int | None
    status: Status
    method: str

    @property
    def sizes(self) -> Ints:
        return np.bincount(self.labels[self.labels >= 0])

    @property
    def n_suppressed(self) -> int:
        return int((self.labels == SUPPRESSED).sum())

    def grouped(self) -> tuple[Ints, Ints]:
        """Records by class, and where each class starts among them."""
        members = np.argsort(self.labels, kind="stable")[self.n_suppressed :]
        return members, np.cumsum(self.sizes) - self.sizes

    def covered(self, column: int) -> tuple[Ints, Ints, Ints]:
        """The published records by block, where each block starts, and the block of each class."""
        kept = np.flatnonzero(self.labels >= 0)
        _, of_kept = np.unique(self.blocks[column, kept], return_inverse=True)
        of_kept = of_kept.reshape(-1)
        sizes = np.bincount(of_kept)
        block_of = np.empty(len(self.sizes), np.int64)
        block_of[self.labels[kept]] = of_kept
        return kept[np.argsort(of_kept, kind="stable")], np.cumsum(sizes) - sizes, block_of
