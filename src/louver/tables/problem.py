"""Pieces as one system of integer rows over the joint cells, and targets as sums of its unknowns.

Joint cells that no piece distinguishes are one unknown. If a sum contains only some cells of such a group, the group's
remaining cells may take all or nothing: its lower bound is that of the whole groups in it, its upper bound that of all groups
it touches.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.sparse import csr_array, hstack, vstack

from louver.errors import InfeasibleError
from louver.optim.kernels.audit.propagate import UNBOUNDED
from louver.tables.closed_forms import closed_form, cut, tightened
from louver.tables.pieces import Domain, Margin, Piece, Shares
from louver.tables.system import IntArray, System
from louver.tables.transport import Transport

__all__ = ["Forms", "TablesProblem", "build", "forms_of"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TablesProblem:
    """A system, with the origin of its parts.

    Attributes
    ----------
    system : System
        Unknowns: groups of joint cells first, then auxiliary unknowns of the conditionals, then those of files of records.
    group : int64 (n_cells,)
        Group of each joint cell; -1 for a cell known to be empty from a published zero or an impossible combination.
    size : int64 (groups,)
        Joint cells in each group.
    row_piece : int64 (rows,)
        The piece from which each row comes.
    is_tight : bool (unknowns,)
        Unknowns whose bounds were found by sets of totals and are attained by some table.
    helper : tuple of (first row, first unknown, Shares)
        Rows that define the cells of each table of conditionals, and the corresponding unknowns.
    proposed : tuple of int64 (unknowns,)
        Tables that may agree with everything published, from a caller who has a reason to think so; each is checked before it counts.
    """

    system: System
    group: IntArray
    size: IntArray
    row_piece: IntArray
    is_tight: np.ndarray[tuple[int], np.dtype[np.bool_]]
    helper: tuple[tuple[int, int, Shares], ...] = ()
    proposed: tuple[IntArray, ...] = ()

    @property
    def n_groups(self) -> int:
        return len(self.size)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Forms:
    """Queried sums: one row of unknowns per target for the lower bound, and one for the upper bound."""

    lower: csr_array
    upper: csr_array


def build(
    domain: Domain,
    pieces: Sequence[Piece],
    truth: IntArray | None = None,
    is_possible: np.ndarray[tuple[int], np.dtype[np.bool_]] | None = None,
) -> TablesProblem:
    """Everything the pieces state, as one system.

    Parameters
    ----------
    truth : int64 (n_cells,), optional
        True counts of the joint cells. A piece that contradicts them is an error.
    is_possible : bool (n_cells,), optional
        False for cells ruled out by structural zeros.
    """
    parts = _Parts(domain, is_possible)
    for number, piece in enumerate(pieces):
        for assign, lower, upper in _margin_blocks(domain, piece.margins):
            parts.add_margin(number, assign, lower, upper)
        for shares in piece.shares:
            parts.add_shares(number, domain.assign(shares.cross), shares)
        if piece.transport is not None:
            parts.add_transport(number, piece.transport)
    problem = parts.assembled(truth)
    if truth is not None:
        _check_truth(problem, pieces, truth)
    if parts.transports:
        return problem
    if problem.helper:
        return _cut(problem, domain, pieces)
    return problem if is_possible is not None else _in_closed_form(problem, domain, pieces)


def _margin_blocks(
    domain: Domain, margins: Sequence[Margin]
) -> Iterator[tuple[IntArray, IntArray, IntArray]]:
    """Assignment and bounds of each margin; single sums over disjoint cells (classes of records) share one block."""
    sums: list[tuple[IntArray, list[int], list[int]]] = []
    for margin in margins:
        if margin.cross.by:
            yield domain.assign(margin.cross), margin.lower, margin.upper
            continue
        cells = domain.inside(margin.cross)
        fitting = (block for block in sums if (block[0][cells] < 0).all())
        block = next(fitting, None)
        if block is None:
            block = (np.full(domain.n_cells, -1, dtype=np.int64), [], [])
            sums.append(block)
        block[0][cells] = len(block[1])
        block[1].append(int(margin.lower[0]))
        block[2].append(int(margin.upper[0]))
    for assign, lower, upper in sums:
        yield assign, np.array(lower, dtype=np.int64), np.array(upper, dtype=np.int64)


def forms_of(problem: TablesProblem, assign: IntArray, cells: IntArray) -> Forms:
    """The given cells of a cross as targets."""
    n_unknowns = problem.system.n_columns
    position = np.full(int(assign.max(initial=-1)) + 1, -1, dtype=np.int64)
    wanted = cells[cells < len(position)]
    position[wanted] = np.flatnonzero(cells < len(position))
    is_asked = (assign >= 0) & (problem.group >= 0)
    is_asked[is_asked] = position[assign[is_asked]] >= 0
    rows, groups = position[assign[is_asked]], problem.group[is_asked]
    shape = (len(cells), n_unknowns)
    held = csr_array((np.ones(len(rows), dtype=np.int64), (rows, groups)), shape=shape)
    held.sum_duplicates()
    touched = csr_array((np.ones_like(held.data), held.indices, held.indptr), shape=shape)
    is_whole = (held.data == problem.size[held.indices]).astype(np.int64)
    whole = csr_array((is_whole, held.indices, held.indptr), shape=shape, copy=True)
    whole.eliminate_zeros()
    return Forms(lower=whole, upper=touched)


def _in_closed_form(problem: TablesProblem, domain: Domain, pieces: Sequence[Piece]) -> TablesProblem:
    """Bounds of all unknowns together, if the pieces are a decomposable set of exact margins."""
    is_first = np.unique(problem.group, return_index=True)[1]
    cells = is_first[len(is_first) - problem.n_groups :]
    bounds = closed_form(domain, pieces, cells) if len(cells) else None
    if bounds is None:
        return problem
    system = replace(problem.system, lower=bounds[0], upper=bounds[1])
    return replace(problem, system=system, is_tight=np.ones(system.n_columns, dtype=bool))


def _cut(problem: TablesProblem, domain: Domain, pieces: Sequence[Piece]) -> TablesProblem:
    """Bounds of the cells of conditionals by sets of totals."""
    system, is_tight = problem.system, problem.is_tight.copy()
    for first_row, first_unknown, shares in problem.helper:
        bounds = cut(shares, domain, pieces)
        if bounds is not None:
            n_cells = shares.printed.size
            columns = np.arange(first_unknown, first_unknown + n_cells)
            system = tightened(system, columns, bounds)
            if bounds.is_tight:
                is_tight[columns] = True
                rows = system.matrix[first_row : first_row + n_cells, : problem.n_groups]
                is_single = np.diff(rows.indptr) == 1
                is_tight[rows.indices[rows.indptr[:-1][is_single]]] = True
    return replace(problem, system=system, is_tight=is_tight)


class _Parts:
    """A collector of rows over joint cells; cells are merged at the end."""

    def __init__(
        self, domain: Domain, is_possible: np.ndarray[tuple[int], np.dtype[np.bool_]] | None
    ) -> None:
        self.alive = np.ones(domain.n_cells, dtype=bool) if is_possible is None else is_possible.copy()
        self.blocks: list[tuple[int, IntArray, IntArray, IntArray]] = []
        self.shares: list[tuple[int, int, Shares]] = []
        self.transports: list[tuple[int, int, Transport]] = []

    def add_margin(self, piece: int, assign: IntArray, lower: IntArray, upper: IntArray) -> None:
        is_bounded = (lower > 0) | (upper < UNBOUNDED)
        if not is_bounded.all():
            number = np.where(is_bounded, np.cumsum(is_bounded) - 1, -1)
            assign = np.where(assign >= 0, number[assign], -1)
            lower, upper = lower[is_bounded], upper[is_bounded]
        inside = assign >= 0
        self.alive[inside] &= upper[assign[inside]] > 0
        self.blocks.append((piece, assign, lower, upper))

    def add_shares(self, piece: int, assign: IntArray, shares: Shares) -> None:
        """Cells of conditionals are additional unknowns: `helper = sum of joint cells` has both bounds 0."""
        n_cells = shares.printed.size
        upper = np.zeros(n_cells, dtype=np.int64)
        inside = assign >= 0
        is_dead = np.repeat(np.asarray(shares.is_empty, dtype=bool), shares.n_cols)
        if shares.decimals is None:
            is_dead |= shares.printed.ravel() == 0
        self.alive[inside] &= ~is_dead[assign[inside]]
        self.shares.append((piece, len(self.blocks), shares))
        self.blocks.append((piece, assign, upper.copy(), upper))

    def add_transport(self, piece: int, transport: Transport) -> None:
        """Records of a file are unknowns of their own: the people of a cell are its records, and at most all that were left out."""
        n_pairs = np.bincount(transport.cell, minlength=transport.n_cells)
        upper = np.full(transport.n_cells, transport.n_left_out, dtype=np.int64)
        inside = transport.assign >= 0
        self.alive[inside] &= (n_pairs + upper)[transport.assign[inside]] > 0
        self.transports.append((piece, len(self.blocks), transport))
        self.blocks.append((piece, transport.assign, np.zeros_like(upper), upper))

    def assembled(self, truth: IntArray | None) -> TablesProblem:
        group, size = self._grouped()
        n_groups = len(size)
        is_first = np.unique(group, return_index=True)[1]
        representative = is_first[-n_groups:] if n_groups else np.zeros(0, dtype=np.int64)
        matrices, lowers, uppers, owner = [], [], [], []
        for piece, assign, lower, upper in self.blocks:
            rows = assign[representative]
            inside = rows >= 0
            data = np.ones(int(inside.sum()), dtype=np.int64)
            matrices.append(
                csr_array((data, (rows[inside], np.flatnonzero(inside))), shape=(len(lower), n_groups))
            )
            lowers.append(lower)
            uppers.append(upper)
            owner.append(np.full(len(lower), piece, dtype=np.int64))
        sums = None
        if truth is not None:
            sums = np.zeros(n_groups, dtype=np.int64)
            np.add.at(sums, group[group >= 0], truth[group >= 0])
        matrix = vstack(matrices, format="csr") if matrices else csr_array((0, n_groups), dtype=np.int64)
        extended = _with_helpers(self, csr_array(matrix), lowers, uppers, owner, sums)
        return TablesProblem(
            system=extended[0],
            group=group,
            size=size,
            row_piece=extended[1],
            is_tight=np.zeros(extended[0].n_columns, dtype=bool),
            helper=tuple(extended[2]),
        )

    def _grouped(self) -> tuple[IntArray, IntArray]:
        """Group of each joint cell not known to be empty: cells that are in the same row of every block."""
        alive = np.flatnonzero(self.alive)
        group = np.full(len(self.alive), -1, dtype=np.int64)
        if not len(alive):
            return group, np.zeros(0, dtype=np.int64)
        numbers = np.zeros(len(alive), dtype=np.int64)
        for _, assign, _, _ in self.blocks:
            rows = assign[alive]
            # Numbers stay below (cells)^2, so they are exact without hashing.
            numbers = np.unique(numbers * (int(rows.max(initial=0)) + 2) + rows + 1, return_inverse=True)[1]
        first: IntArray
        _, first, inverse, size = np.unique(
            numbers, return_index=True, return_inverse=True, return_counts=True
        )
        rank = np.empty(len(first), dtype=np.int64)
        rank[np.argsort(first, kind="stable")] = np.arange(len(first))
        group[alive] = rank[inverse]
        ordered = np.empty(len(first), dtype=np.int64)
        ordered[rank] = size
        return group, ordered


def _with_helpers(
    parts: _Parts,
    matrix: csr_array,
    lowers: list[IntArray],
    uppers: list[IntArray],
    owner: list[IntArray],
    truth: IntArray | None,
) -> tuple[System, IntArray, list[tuple[int, int, Shares]]]:
    """Add the auxiliary unknowns of conditionals and the rows that connect them."""
    n_groups = matrix.shape[1]
    helper: list[tuple[int, int, Shares]] = []
    offsets = np.concatenate([[0], np.cumsum([len(lower) for lower in lowers])]).astype(np.int64)
    for piece, block, shares in parts.shares:
        start, stop = int(offsets[block]), int(offsets[block + 1])
        cells = None if truth is None else csr_array(matrix[start:stop])[:, :n_groups] @ truth[:n_groups]
        links = _links(shares, cells)
        n_before, n_helpers = matrix.shape[1], links.matrix.shape[1]
        n_cells = stop - start
        helper.append((start, n_before, shares))
        minus = csr_array(
            (np.full(n_cells, -1), (np.arange(start, stop), np.arange(n_cells))),
            shape=(matrix.shape[0], n_helpers),
        )
        below = hstack([csr_array((links.matrix.shape[0], n_before), dtype=np.int64), links.matrix])
        matrix = csr_array(vstack([hstack([matrix, minus]), below]).tocsr().astype(np.int64))
        lowers.append(links.lower)
        uppers.append(links.upper)
        owner.append(np.full(len(links.lower), piece, dtype=np.int64))
        if truth is not None:
            truth = np.concatenate([truth, links.truth])
    for piece, block, transport in parts.transports:
        n_rows, n_before, n_pairs = matrix.shape[0], matrix.shape[1], len(transport.kind)
        minus = csr_array(
            (np.full(n_pairs, -1), (int(offsets[block]) + transport.cell, np.arange(n_pairs))),
            shape=(n_rows, n_pairs),
        )
        below = hstack([csr_array((len(transport.lower), n_before), dtype=np.int64), transport.matrix])
        matrix = csr_array(vstack([hstack([matrix, minus]), below]).tocsr().astype(np.int64))
        lowers.append(transport.lower)
        uppers.append(transport.upper)
        owner.append(np.full(len(transport.lower), piece, dtype=np.int64))
        if truth is not None:
            assert transport.start is not None
            truth = np.concatenate([truth, transport.start])
    n_columns = matrix.shape[1]
    matrix.sort_indices()
    system = System(
        matrix=matrix,
        row_lower=np.concatenate([np.zeros(0, dtype=np.int64), *lowers]),
        row_upper=np.concatenate([np.zeros(0, dtype=np.int64), *uppers]),
        lower=np.zeros(n_columns, dtype=np.int64),
        upper=np.full(n_columns, UNBOUNDED, dtype=np.int64),
        truth=truth,
    )
    return system, np.concatenate([np.zeros(0, dtype=np.int64), *owner]), helper


@dataclass(frozen=True, slots=True, eq=False)
class _Links:
    """Rows over auxiliary unknowns: the cells of one table of conditionals, and multipliers if shares are exact."""

    matrix: csr_array
    lower: IntArray
    upper: IntArray
    truth: IntArray


def _links(shares: Shares, cells: IntArray | None) -> _Links:
    return _exact_links(shares, cells) if shares.decimals is None else _rounded_links(shares, cells)


def _exact_links(shares: Shares, cells: IntArray | None) -> _Links:
    """x_ij = r_ij nu_i with nu_i >= 1 (Wright & Smucker 2014, section 2)."""
    n_rows, n_cols = shares.printed.shape
    n_cells = n_rows * n_cols
    i, j = np.divmod(np.arange(n_cells), n_cols)
    entries = np.concatenate([np.ones(n_cells, dtype=np.int64), -shares.printed[i, j]])
    where = (np.concatenate([np.arange(n_cells)] * 2), np.concatenate([np.arange(n_cells), n_cells + i]))
    times = csr_array((entries, where), shape=(n_cells, n_cells + n_rows))
    positive = csr_array(
        (np.ones(n_rows, dtype=np.int64), (np.arange(n_rows), n_cells + np.arange(n_rows))),
        shape=(n_rows, n_cells + n_rows),
    )
    times.eliminate_zeros()
    is_empty = np.asarray(shares.is_empty, dtype=bool)
    least = (~is_empty).astype(np.int64)
    most = np.where(is_empty, 0, UNBOUNDED)
    truth = np.zeros(0, dtype=np.int64)
    if cells is not None:
        sums = shares.printed.sum(axis=1)
        multiplier = cells.reshape(n_rows, n_cols).sum(axis=1) // np.maximum(1, sums)
        truth = np.concatenate([cells, multiplier])
    zeros = np.zeros(n_cells, dtype=np.int64)
    return _Links(
        csr_array(vstack([times, positive])),
        np.concatenate([zeros, least]),
        np.concatenate([zeros, most]),
        truth,
    )


def _rounded_links(shares: Shares, cells: IntArray | None) -> _Links:
    """(2q - 1) n <= 2 10^D x < (2q + 1) n for every cell of a row with n people; ties follow the rounding rule."""
    assert shares.decimals is not None
    n_rows, n_cols = shares.printed.shape
    n_cells = n_rows * n_cols
    doubled = 2 * 10**shares.decimals
    first = np.repeat(np.arange(n_cells), n_cols)
    row = first // n_cols
    other = row * n_cols + np.tile(np.arange(n_cols), n_cells)
    printed = shares.printed.ravel()
    is_own = (first == other).astype(np.int64)
    at_least = csr_array(
        (doubled * is_own - (2 * printed[first] - 1), (first, other)), shape=(n_cells, n_cells)
    )
    below = csr_array((doubled * is_own - (2 * printed[first] + 1), (first, other)), shape=(n_cells, n_cells))
    people = csr_array(
        (np.ones(n_cells, dtype=np.int64), (np.arange(n_cells) // n_cols, np.arange(n_cells))),
        shape=(n_rows, n_cells),
    )
    is_empty = np.asarray(shares.is_empty, dtype=bool)
    is_strict_above = np.ones(n_cells, dtype=np.int64)
    is_strict_below = np.zeros(n_cells, dtype=np.int64)
    if shares.is_half_even:
        is_strict_above = is_strict_below = printed % 2
    is_free = np.repeat(is_empty, n_cols)
    return _Links(
        csr_array(vstack([at_least, below, people])),
        np.concatenate(
            [
                np.where(is_free, -UNBOUNDED, is_strict_below),
                np.full(n_cells, -UNBOUNDED),
                (~is_empty).astype(np.int64),
            ]
        ),
        np.concatenate(
            [
                np.full(n_cells, UNBOUNDED),
                np.where(is_free, UNBOUNDED, -is_strict_above),
                np.where(is_empty, 0, UNBOUNDED),
            ]
        ),
        np.zeros(0, dtype=np.int64) if cells is None else cells,
    )


def _check_truth(problem: TablesProblem, pieces: Sequence[Piece], truth: IntArray) -> None:
    """Check that every row holds for the records themselves."""
    system = problem.system
    if truth[problem.group < 0].any():
        raise InfeasibleError("the tables rule out a cell that occurs in the records; check the files.")
    assert system.truth is not None
    sums = system.matrix @ system.truth
    wrong = np.flatnonzero((sums < system.row_lower) | (sums > system.row_upper))
    if len(wrong):
        number = int(problem.row_piece[wrong[0]])
        raise InfeasibleError(
            f'table "{pieces[number].name}" does not agree with the records; check the file and how it was made.',
            clash=(number + 1,),
        )
