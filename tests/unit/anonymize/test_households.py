"""Where the number of a household is known, households are counted: nine relatives are not nine look-alikes."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pc
import pytest

import louver as lv
from louver._verdict import Level
from louver.errors import InputError
from louver.profile import write_spec
from louver.report.anonymize import anonymize_report, inside_report
from louver.schema.source import SourceOptions

ASKED: dict[str, Any] = {"quasi": ["age", "region"], "sensitive": ["income"], "k": 3, "method": "greedy"}


def survey() -> pa.Table:
    """120 households of one to five, whose members have similar ages, one region and one income."""
    random = np.random.default_rng(3)
    sizes = random.integers(1, 6, 120)
    home = np.repeat(np.arange(120), sizes)
    age = (random.integers(20, 60, 120)[home] // 4 + random.integers(0, 2, len(home))).tolist()
    return pa.table(
        {
            "hhid": home + 1000,
            "age": age,
            "region": [f"R{r}" for r in random.integers(0, 5, 120)[home]],
            "income": (random.integers(10, 40, 120)[home]).tolist(),
        }
    )


def households(release: lv.AnonymizedRelease, source: pa.Table) -> dict[tuple[str, ...], set[int]]:
    """The households of every published class, by a plain look at the rows, which are in the order of the source."""
    found: dict[tuple[str, ...], set[int]] = defaultdict(set)
    for row, home in zip(release.to_frame().to_pylist(), source["hhid"].to_pylist(), strict=True):
        found[tuple(row[name] for name in release.quasi)].add(home)
    return found


def test_a_household_number_without_a_role_stops_the_run_and_says_what_to_do() -> None:
    with pytest.raises(InputError) as caught:
        lv.anonymize(survey(), **ASKED)
    said = str(caught.value)
    assert '"hhid" (each value groups a few records, like a household number)' in said
    assert "in --unit if it numbers households" in said and caught.value.column == "hhid"


def test_a_household_number_of_any_name_stops_the_run() -> None:
    """Nobody is alone with it and it tells no quasi-identifier, but a column that goes along."""
    home = np.repeat(np.arange(60), 3)
    random = np.random.default_rng(1)
    rooms = random.integers(1, 7, 60)[home]
    table = pa.table({"nr": home, "age": random.integers(0, 9, 180), "rooms": rooms})
    with pytest.raises(InputError, match=r'"nr" \(each value groups a few records'):
        lv.anonymize(table, quasi=["age"], keep=["rooms"], k=3, method="greedy")


def test_the_risk_is_the_households() -> None:
    table = survey()
    release = lv.anonymize(table, **ASKED, unit="hhid", keep_order=True)
    counts = sorted(len(homes) for homes in households(release, table).values())
    assert min(counts) >= 3 and release.risk.counted == "units"
    assert release.risk.prosecutor_highest == 1 / counts[0] and release.smallest_class == counts[0]
    assert [size for size, n in release.risk.class_sizes for _ in range(n)] == counts
    each = [
        len(households(release, table)[tuple(row[n] for n in release.quasi)])
        for row in release.to_frame().to_pylist()
    ]
    assert release.risk.prosecutor_average == pytest.approx(sum(1 / n for n in each) / len(each))
    assert f"the smallest of {counts[0]:,} units" in repr(release) and "units in a class" in anonymize_report(
        release
    )
    assert not any("--unit counts households" in reason for reason in release.verdict.reasons)


def test_a_release_of_units_with_its_report_is_published_and_verified(tmp_path) -> None:
    lv.anonymize(survey(), **ASKED, unit="hhid", out=tmp_path / "release", report=anonymize_report, csv=True)
    assert lv.verify(tmp_path / "release").passed


@pytest.mark.parametrize("role", ["identifying", "keep"])
def test_a_household_number_with_another_role_is_counted_all_the_same(role: str) -> None:
    table = survey()
    release = lv.anonymize(table, **ASKED, **{role: ["hhid"]}, keep_order=True)
    counts = [len(homes) for homes in households(release, table).values()]
    below, single = sum(n < 3 for n in counts), sum(n == 1 for n in counts)
    found = release.units_found
    assert (
        below
        and found is not None
        and (found.classes, found.below_k, found.single) == (len(counts), below, single)
    )
    assert release.verdict.level is Level.CARE and f"{found}." in release.verdict.reasons
    assert f"{below} of {len(counts)} classes" in repr(release) and "name it in" in inside_report(release)
    assert json.loads(release.to_json())["households"]["below_k"] == below
    assert "households" not in json.dumps(release.published_dict())


def test_a_household_without_a_number_is_one_of_its_own() -> None:
    table = survey()
    homes = [None if i < 40 else home for i, home in enumerate(table["hhid"].to_pylist())]
    table = table.set_column(0, "hhid", pa.array(homes, pa.int64()))
    release = lv.anonymize(table, **ASKED, identifying=["hhid"])
    assert release.units_found is not None and release.units_found.classes == release.n_classes


def test_the_written_spec_names_the_household_as_the_unit_and_runs(tmp_path: Path) -> None:
    data = tmp_path / "people.csv"
    pc.write_csv(survey(), data)
    write_spec(lv.profile(data), data, SourceOptions(), tmp_path / "spec.toml")
    text = (tmp_path / "spec.toml").read_text()
    assert 'unit = "hhid"' in text and '"hhid"' not in text.partition("identifying = ")[2].partition("\n")[0]
    release = lv.anonymize(spec=tmp_path / "spec.toml", k=3, method="greedy")
    assert release.guarantee == "k-units" and "hhid" not in release.to_frame().column_names
