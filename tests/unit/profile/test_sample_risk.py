"""Scenarios: risk against brute force over sets of columns, weights, households and wrong calls."""

from __future__ import annotations

import json
from collections import Counter
from itertools import combinations
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from louver.errors import InputError
from louver.optim.superpopulation import individual_risk
from louver.profile import profile
from louver.report.profile import profile_report

NAMES = ["a", "b", "c", "d"]
ROWS = st.lists(st.tuples(*[st.integers(0, 2)] * 4, st.integers(1, 9)), min_size=1, max_size=25)


def table(rows: list[tuple[int, ...]]) -> pa.Table:
    return pa.table(
        {name: [f"v{row[i]}" for row in rows] for i, name in enumerate(NAMES)}
        | {"w": [row[4] for row in rows]}
    )


def minimal_uniques(rows: list[tuple[int, ...]], largest: int) -> list[list[tuple[int, ...]]]:
    """Of every record, the smallest sets of columns whose values it has alone."""
    found: list[list[tuple[int, ...]]] = [[] for _ in rows]
    for size in range(1, largest + 1):
        for chosen in combinations(range(4), size):
            counts = Counter(tuple(row[i] for i in chosen) for row in rows)
            for number, row in enumerate(rows):
                is_alone = counts[tuple(row[i] for i in chosen)] == 1
                if is_alone and not any(set(one) < set(chosen) for one in found[number]):
                    found[number].append(chosen)
    return found


@given(ROWS, st.integers(1, 4))
@settings(max_examples=40, deadline=None)
def test_suda_scores_by_brute_force(rows: list[tuple[int, ...]], largest: int) -> None:
    [risk] = profile(table(rows), scenario={"all": NAMES}, largest=largest).scenarios
    found = minimal_uniques(rows, largest)
    points = {
        size: np.prod([max(4 - i, 1) for i in range(size, largest + 1)]) for size in range(1, largest + 1)
    }
    assert risk.records.suda.tolist() == [sum(points[len(one)] for one in sets) for sets in found]
    smallest = Counter(min(map(len, sets)) for sets in found if sets)
    assert risk.minimal_uniques == tuple(smallest[size] for size in range(1, largest + 1))


@given(ROWS)
@settings(max_examples=25, deadline=None)
def test_risk_is_that_of_the_weights_of_equal_records(rows: list[tuple[int, ...]]) -> None:
    [risk] = profile(table(rows), scenario={"two": ["a", "b"]}, sampling_weight="w").scenarios
    for number, row in enumerate(rows):
        equal = [one for one in rows if one[:2] == row[:2]]
        people = float(sum(one[4] for one in equal))
        expected = individual_risk(np.array([len(equal)]), np.array([people]))[0]
        assert risk.records.individual[number] == pytest.approx(expected)
    assert risk.expected_matches == pytest.approx(risk.records.individual.sum())
    assert risk.people == sum(row[4] for row in rows)


def test_a_file_without_weights_is_the_whole_population() -> None:
    people = pa.table({"age": [1, 1, 2, 3, 3, 3], "sex": list("ffmmmm")})
    [risk] = profile(people, scenario={"neighbour": ["age", "sex"]}).scenarios
    assert risk.records.individual.tolist() == pytest.approx([1 / 2, 1 / 2, 1, 1 / 3, 1 / 3, 1 / 3])
    assert risk.unique_people == (("counted", 1.0),) and risk.expected_matches == pytest.approx(3)


def test_one_member_recognised_is_the_household_recognised() -> None:
    n = 300
    people = pa.table(
        {"household": np.repeat(np.arange(n // 3), 3), "age": np.arange(n) % 90, "sex": ["f", "m"] * (n // 2)}
    )
    found = profile(people, scenario={"neighbour": ["age", "sex"]}, population_size=3_000)
    [risk] = found.scenarios
    assert found.unit == "household" and risk.records.household is not None
    single = risk.records.individual.reshape(-1, 3)
    assert risk.records.household.reshape(-1, 3)[:, 0] == pytest.approx(1 - np.prod(1 - single, axis=1))
    assert risk.expected_households == pytest.approx((1 - np.prod(1 - single, axis=1)).sum())


def test_the_suggested_quasi_identifiers_are_the_scenario_where_none_is_named() -> None:
    people = pa.table({"age": [20, 21] * 20, "sex": ["f", "m"] * 20, "score": [0.5] * 40})
    [risk] = profile(people, population_size=1_000).scenarios
    assert risk.columns == ("age", "sex")
    assert profile(people).scenarios == ()


def test_json_report_and_text_say_the_same_without_single_records() -> None:
    people = pa.table({"age": [f"{i}" for i in range(40)], "sex": ["f", "m"] * 20})
    found = profile(people, scenario={"neighbour": ["age", "sex"]}, population_size=400)
    [plain] = json.loads(found.to_json())["scenarios"]
    assert "records" not in plain and plain["unique_records"] == 40
    assert found.scenarios[0].sentence in str(found.verdict)
    assert "neighbour: age, sex" in profile_report(found) and "neighbour" in repr(found)


@pytest.mark.parametrize(
    ("call", "option"),
    [
        ({"scenario": {"x": []}}, "--scenario"),
        ({"scenario": {"x": ["age", "age"]}}, "--scenario"),
        ({"scenario": {"x": ["weight"]}, "sampling_weight": "weight"}, "--scenario"),
        ({"sampling_weight": "weight", "population_size": 100}, "--population-size"),
        ({"population_size": 2}, "--population-size"),
        ({"scenario": {"x": ["age"]}, "sampling_weight": "weight"}, "--sampling-weight"),
        ({"scenario": {"x": ["age"]}, "sampling_weight": "name"}, "--sampling-weight"),
    ],
)
def test_calls_that_cannot_be_answered(call: dict[str, Any], option: str) -> None:
    people = pa.table({"age": [1, 2, 3], "weight": [1.0, 0.5, 2.0], "name": ["x", "y", None]})
    with pytest.raises(InputError) as caught:
        profile(people, **call)
    assert caught.value.option == option


def test_a_scenario_with_a_column_that_is_not_there() -> None:
    with pytest.raises(InputError, match="no column"):
        profile(pa.table({"age": [1]}), scenario={"x": ["agee"]})
