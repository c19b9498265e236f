"""Split & Carry: its sub-problems, and what it does without time."""

from __future__ import annotations

from pathlib import Path

import pytest

import louver as lv
from louver.anonymize.methods import split_carry
from louver.anonymize.methods.split_carry import Carry
from louver.anonymize.watch import Watch
from small_people import people, problem_of, random_columns, written


@pytest.mark.parametrize(
    "more", [{"carry": "subset", "boundary": 2}, {"carry": "bubble", "size": 6, "accepted": 1}, {"sets": 2}]
)
def test_split_and_carry_reports_its_subproblems(more: dict[str, object], tmp_path: Path) -> None:
    release = lv.anonymize(people(), quasi=["age"], k=2, method="split-carry", subproblem_seconds=5, **more)
    found = release.to_dict()["subproblems"]
    assert found["number"] == len(release.subproblem_sizes) >= 1 and found["largest"] <= 7
    assert lv.verify(written(release, tmp_path / "release")).passed


def test_split_and_carry_reports_sizes_within_lemma_2():
    k, n_sets = 3, 3
    problem = problem_of(*random_columns(200, 3), k=k)
    watch = Watch()
    partition = split_carry.solve(problem, watch, n_sets=n_sets)
    # The last sub-problem also takes the records beyond a multiple of k.
    assert max(partition.subproblem_sizes) <= k * (2 * k - 1 + n_sets) + k - 1
    assert len(partition.subproblem_sizes) == -(-(200 // k) // n_sets)
    assert watch.share == 1.0


def test_split_and_carry_without_time_still_covers_every_record():
    problem = problem_of(*random_columns(100, 3), k=4)
    partition = split_carry.solve(problem, Watch(seconds=0.0), subproblem_seconds=1.0)
    assert partition.sizes.min() >= 4
    assert partition.sizes.sum() == 100


def test_bubble_carry_keeps_its_size():
    problem = problem_of(*random_columns(100, 3), k=3)
    partition = split_carry.solve(problem, carry=Carry.BUBBLE, size=12, accepted=2)
    assert set(partition.subproblem_sizes[:-1]) == {12}
