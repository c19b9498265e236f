"""Options that do not go together."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
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
        ({"l_kind": "recursive", "l": 2, "sensitive": ["ill"]}, "--l-kind recursive needs --l and --c"),
        ({"l_kind": "recursive", "c": 2, "sensitive": ["ill"]}, "--l-kind recursive needs --l and --c"),
        ({"c": 2, "l": 2, "sensitive": ["ill"]}, "--c needs --l-kind recursive"),
        ({"l_kind": "recursive", "c": 0, "l": 2, "sensitive": ["ill"]}, "--c must be greater than 0"),
        ({"l_kind": "recursive", "c": 1, "l": 2, "sensitive": ["ill"], "unit": "town"}, "it counts records"),
        ({"exceptions": 0.1}, "--exceptions needs --recoding global"),
        ({"exceptions": 1.5, "recoding": "global"}, "--exceptions must be at most 1"),
        ({"exceptions": -0.1, "recoding": "global"}, "--exceptions must be at least 0"),
        ({"exceptions": float("nan"), "recoding": "global"}, "--exceptions must be a finite number"),
        ({"one_hot": ["town"]}, "not in --quasi"),
        ({"one_hot": ["age"], "ordered": ["age"]}, "choose one"),
    ],
)
def test_options_that_do_not_go_together(options: dict[str, object], says: str) -> None:
    with pytest.raises(InputError, match=says):
        lv.anonymize(people(), quasi=["age"], k=3, **options)


@pytest.mark.parametrize(
    ("quasi", "options", "option"),
    [
        (["age", "class_id"], {"class_id": True}, "--class-id"),
        (["age"], {"class_id": True, "keep": ["class_id"]}, "--class-id"),
        (["age", "age_lower"], {"format": "bounds"}, "--format"),
        (["age"], {"format": "bounds", "sensitive": ["age_upper"]}, "--format"),
    ],
)
def test_a_column_with_the_name_of_one_that_is_added_is_refused(
    quasi: list[str], options: dict[str, object], option: str
) -> None:
    records = {"age": list(range(8)), "class_id": [1] * 8, "age_lower": [1] * 8, "age_upper": [1, 2] * 4}
    with pytest.raises(InputError, match="adds a column") as refused:
        lv.anonymize(pa.table(records), quasi=quasi, k=3, **options)
    assert refused.value.option == option


def test_a_column_that_an_option_would_add_is_published_without_the_option() -> None:
    records = {"age": [1, 1, 1, 2, 2, 2], "age_lower": [1, 1, 1, 2, 2, 2], "class_id": [3] * 6}
    table = lv.anonymize(pa.table(records), quasi=["age", "age_lower"], keep=["class_id"], k=3).table
    assert table.column_names == ["age", "age_lower", "class_id"]
