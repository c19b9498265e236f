"""A weight counts people: money and sampling weights are asked about, in every verb that counts."""

from __future__ import annotations

import pyarrow as pa
import pytest

import louver as lv
from louver.data.read import open_source
from louver.data.tabulate import tabulate
from louver.errors import InputError

SEX = ["f", "m"] * 20
TOWN = [f"t{i // 2}" for i in range(40)]
ROUNDED = [1200 + 100 * i for i in range(40)]
LOOKING_LIKE_MONEY = {
    "inc": (list(range(1, 41)), "an amount of money"),
    "annualIncome": (list(range(1, 41)), "an amount of money"),
    "PINCP": (list(range(1, 41)), "an amount of money"),
    "monatslohn": (list(range(1, 41)), "an amount of money"),
    "PWGTP": (list(range(1, 41)), "a sampling weight"),
    "fnlwgt": (list(range(1, 41)), "a sampling weight"),
    "x": (ROUNDED, "multiples of 100"),
}
COUNTS = {
    "count": list(range(40)),
    "n": [3] * 40,
    "population": [4213 + 7 * i for i in range(40)],
    "province": list(range(40)),
    "since": list(range(40)),
}


@pytest.mark.parametrize("name", LOOKING_LIKE_MONEY)
def test_what_looks_like_money_or_a_sampling_weight_is_asked_about(name: str) -> None:
    values, reason = LOOKING_LIKE_MONEY[name]
    data = pa.table({"sex": SEX, name: values})
    with (
        open_source(data) as source,
        pytest.raises(InputError, match=f"{reason}.*--weight-is-count") as caught,
    ):
        tabulate(source, ["sex"], weight=name)
    assert caught.value.column == name and caught.value.option == "weight"
    with open_source(data, weight_is_count=True) as source:
        assert tabulate(source, ["sex"], weight=name).total == sum(values)


@pytest.mark.parametrize("name", COUNTS)
def test_counts_of_people_are_counted(name: str) -> None:
    with open_source(pa.table({"sex": SEX, "town": TOWN, name: COUNTS[name]})) as source:
        assert tabulate(source, ["sex"], weight=name).total == sum(COUNTS[name])


@pytest.mark.parametrize(
    ("others", "weights", "is_refused"),
    [
        ({"sex": SEX}, [20 + i for i in range(40)], True),
        ({"sex": SEX, "town": [*TOWN[:38], "t1", "t1"]}, [3] * 40, True),
        ({"sex": SEX}, [1] * 40, False),
        ({"sex": SEX}, [0] * 31 + [3] * 9, False),
        ({}, [3] * 40, False),
    ],
    ids=["respondents", "some lines again", "lines of one person", "too few lines", "only counts"],
)
def test_weights_of_a_sample_are_recognised_by_lines_that_repeat(
    others: dict[str, list[str]], weights: list[int], is_refused: bool
) -> None:
    """A weight of 37 is one respondent: an audit that takes it for 37 people calls every cell large."""
    with open_source(pa.table({**others, "factor": weights})) as source:
        if is_refused:
            with pytest.raises(InputError, match='"factor".*otherwise equal.*--weight-is-count'):
                tabulate(source, list(others), weight="factor")
        else:
            assert tabulate(source, list(others), weight="factor").total == sum(weights)


def test_every_verb_that_counts_asks() -> None:
    people = pa.table({"sex": SEX, "ill": ["y", "n", "n", "y"] * 10, "inc": ROUNDED})
    asked = {"weight": "inc"}
    with pytest.raises(InputError, match='"inc" in the dataframe is named like an amount of money'):
        lv.bounds(people, rows=["sex"], cols=["ill"], **asked)
    with pytest.raises(InputError, match='"inc" in the dataframe is named like an amount of money'):
        lv.audit(people, tables=[{"name": "one", "by": ["sex", "ill"]}], **asked)
