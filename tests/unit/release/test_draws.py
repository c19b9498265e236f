"""Draws of real releases: every value is one that the published one stands for, other columns are untouched."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import louver as lv
from louver.errors import InputError


def people(n: int = 120) -> pa.Table:
    random = np.random.default_rng(4)
    age = random.integers(18, 80, n)
    return pa.table(
        {
            "age": age,
            "height": (150 + random.normal(20, 8, n)).round(1),
            "town": random.choice(["Ah", "Bee", "Cee", "Dee"], n),
            "born": [f"{2020 - a}-0{1 + a % 9}-11" for a in age],
            "income": random.lognormal(10, 1, n).round(),
            "ill": random.choice(["yes", "no"], n),
        }
    )


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"format": "bounds"},
        pytest.param({"recoding": "global", "suppress": 0.1}, marks=pytest.mark.long),
        {"missing": "match", "ordered": {"town": ["Ah", "Bee", "Cee", "Dee"]}},
    ],
)
def test_draws_are_among_the_values_that_were_published(options: dict[str, Any], tmp_path: Path) -> None:
    lv.anonymize(
        people(),
        quasi=["age", "height", "town", "born"],
        sensitive=["income", "ill"],
        k=4,
        steps=5,
        out=tmp_path / "r",
        **options,
    )
    release = lv.open(tmp_path / "r")
    records, lines = release.tables["anonymized"], release.tables["mapping"].to_pylist()
    copies = release.draws(2, seed=3)
    assert [copy.to_pydict() for copy in copies] == [copy.to_pydict() for copy in release.draws(2, seed=3)]
    for copy in copies:
        assert copy.num_rows == records.num_rows
        assert copy["income"].equals(records["income"]) and copy["ill"].equals(records["ill"])
        for name in ("age", "height", "town", "born"):
            assert copy[name].null_count == 0
            by_label = {line["published"]: line for line in lines if line["attribute"] == name}
            if name not in records.column_names:
                lower, upper = records[f"{name}_lower"].to_pylist(), records[f"{name}_upper"].to_pylist()
                drawn = copy[name].to_pylist()
                assert all(lo <= value <= up for lo, value, up in zip(lower, drawn, upper, strict=True))
                continue
            for label, value in zip(records[name].to_pylist(), copy[name].to_pylist(), strict=True):
                line = by_label[label]
                if line["members"]:
                    assert value in line["members"]
                elif line["lower"] is not None:
                    assert line["lower"] <= value <= line["upper"]


def test_draws_need_generalised_records(tmp_path: Path) -> None:
    crashes = pa.table({"unit": [f"u{i // 2}" for i in range(20)], "state": ["A"] * 10 + ["B"] * 10})
    domain = pa.table({"state": ["A", "B"]})
    lv.groups(
        crashes,
        unit="unit",
        regions=["state"],
        domain=domain,
        max_size=5,
        epsilon=1,
        seed=1,
        out=tmp_path / "g",
    )
    with pytest.raises(InputError, match="only releases of anonymize have draws"):
        lv.open(tmp_path / "g").draws(1)


def test_no_copies_are_refused(tmp_path: Path) -> None:
    lv.anonymize(
        people(40),
        quasi=["age"],
        sensitive=["income"],
        identifying=["born", "height"],
        k=4,
        steps=1,
        out=tmp_path / "r",
    )
    with pytest.raises(InputError, match="at least one copy"):
        lv.open(tmp_path / "r").draws(0)
