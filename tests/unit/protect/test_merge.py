"""Cells that always change together are searched for as one: the same optimum, with proofs for every cell."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from scipy.sparse import csr_array

from louver.run import Run
from louver.tables.hiding import hide as engine
from louver.tables.hiding.certify import certify
from louver.tables.hiding.hide import Hiding, hide
from louver.tables.hiding.merge import merge_cells
from louver.tables.hiding.problem import UNBOUNDED, Attacker, Demand, PatternProblem


def sparse_table(seed: int) -> PatternProblem:
    """A sparse table of three ways with all totals; cells below 4 are primary, and two contributors know some cells."""
    draw = np.random.default_rng(seed)
    shape = (3, 3, 2)
    numbers = np.where(draw.random(shape) < 0.6, draw.integers(1, 9, shape), 0)
    for axis in range(3):
        numbers = np.concatenate([numbers, numbers.sum(axis=axis, keepdims=True)], axis=axis)
    place = np.cumsum(numbers.ravel() > 0).reshape(numbers.shape) - 1
    lines = []
    for axis in range(3):
        moved, listed = np.moveaxis(numbers, axis, 0), np.moveaxis(place, axis, 0)
        for at in product(*map(range, moved.shape[1:])):
            if moved[(-1, *at)]:
                lines.append((listed[(-1, *at)], listed[(slice(-1), *at)][moved[(slice(-1), *at)] > 0]))
    values = numbers[numbers > 0]
    n = len(values)
    sums = np.zeros((len(lines), n), dtype=np.int8)
    for row, (total, parts) in enumerate(lines):
        sums[row, total], sums[row, parts] = 1, -1
    must, nothing = values < 4, np.zeros(0, dtype=np.int64)
    may = ~must & (draw.random(n) < 0.95)
    cells = [np.sort(draw.permutation(n)[:3]) for _ in range(2)]
    knowing = [
        Attacker(f"contributor {cell}", cell, values[cell] // 2, np.full(3, UNBOUNDED)) for cell in cells
    ]
    demands = [
        Demand(int(cell), sign, 1 if sign < 0 else 2, 0) for cell in np.flatnonzero(must) for sign in (1, -1)
    ]
    return PatternProblem(
        values=values,
        sums=csr_array(sums),
        must_hide=must,
        may_hide=may,
        cost=np.where(must, 0.0, draw.integers(1, 4, n)),
        down=values.copy(),
        up=np.full(n, UNBOUNDED),
        attackers=(Attacker("an outsider", nothing, nothing, nothing), *knowing),
        demands=tuple(replace(one, attacker=attacker) for attacker in range(3) for one in demands),
    )


def open_demands(problem: PatternProblem, found: Hiding) -> set[Demand]:
    problem = replace(problem, demands=found.demands)
    certificate = certify(problem, found.hidden, found.witnesses, Run())
    return {found.demands[n] for n in certificate.missing}


@pytest.mark.parametrize("seed", range(25))
def test_groups_have_the_same_optimum_as_cells(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    problem = sparse_table(seed)
    found = hide(problem, Run(), steps=200)
    monkeypatch.setattr(engine, "merge_cells", lambda problem: None)
    expected = hide(problem, Run(), steps=200)
    assert found.is_optimal and expected.is_optimal
    assert found.cost == problem.spent(found.hidden) == expected.cost
    assert open_demands(problem, found) == open_demands(problem, expected)


@pytest.mark.parametrize("seed", range(25))
def test_large_tables_are_proved_for_every_cell_and_contributor(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    problem = sparse_table(seed)
    best = hide(problem, Run(), steps=200)
    lost = open_demands(problem, best)
    monkeypatch.setattr(engine, "LARGE", 0)

    def demand_of(attacker: int, demand: Demand) -> Demand | None:
        return replace(demand, attacker=attacker)

    own = tuple(one for one in problem.demands if not one.attacker)
    listed = replace(problem, demands=own, demand_of=demand_of)
    found = hide(listed, Run(), steps=2)
    assert found.cost == problem.spent(found.hidden) and found.cost >= found.bound
    assert open_demands(listed, found) <= {replace(one, attacker=0) for one in lost} | lost
    if not lost:
        assert found.cost >= best.cost >= found.bound


def test_a_total_with_one_part_is_one_with_it() -> None:
    merged = [merge_cells(sparse_table(seed)) for seed in range(25)]
    assert any(one is not None for one in merged)
    for one in merged:
        if one is not None:
            assert one.problem.n_cells == len(set(one.group_of.tolist())) < one.original.n_cells
