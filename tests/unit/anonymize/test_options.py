"""Options that do not go together."""

from __future__ import annotations

from pathlib import Path

import pytest

import louver as lv
from louver.errors import InputError
from small_people import people


def population(folder: Path, text: str) -> Path:
    (folder / "population.csv").write_text(text)
    return folder / "population.csv"


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"sets": 3}, "--sets needs --method split-carry"),
        ({"size": 6, "method": "split-carry"}, "--size needs --carry bubble"),
        ({"k_map": True}, "--k-map needs --population"),
        ({"population_count": "n"}, "--population-count needs --population"),
        ({"population": "a.csv", "sampling_weight": "stands_for"}, "both describe the population"),
        ({"sampling_weight": "age"}, "in --quasi; choose one"),
        ({"one_hot": ["town"]}, "not in --quasi"),
        ({"one_hot": ["age"], "ordered": ["age"]}, "choose one"),
    ],
)
def test_options_that_do_not_go_together(options: dict[str, object], says: str) -> None:
    with pytest.raises(InputError, match=says):
        lv.anonymize(people(), quasi=["age"], k=3, **options)
