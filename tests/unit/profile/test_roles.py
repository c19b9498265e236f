"""Suggested roles of a survey as offices have it, and a run that starts with them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest

import louver as lv
from louver.profile import Profile, write_spec
from louver.profile.roles import Role
from louver.schema.source import SourceOptions

N = 1_500


def survey() -> pa.Table:
    """Forty columns under the names of real files; people of one household stand together."""
    random = np.random.default_rng(1)
    home = np.sort(random.integers(0, 600, N))
    income = (50 * random.integers(0, 400, N)).astype(object)
    income[:200] = "N"
    columns: dict[str, object] = {
        "cluster": home,
        "PUMA": home // 120,
        "AGEP": random.integers(0, 95, N),
        "SEX": random.integers(1, 3, N),
        "HISP": random.integers(0, 5, N),
        "origin": random.choice(["here", "there", "elsewhere"], N),
        "DEYE": random.integers(1, 3, N),
        "disability_any": random.integers(0, 2, N),
        "PINCP": [str(value) for value in income],
        "savings": random.integers(0, 10**6, N),
        "PWGTP": 1 + random.integers(1, 300, N),
        "wt_final": 20 + 100 * random.random(N),
        "wgt_norm": random.random(N),
        "SERIALNO": 10**6 + random.permutation(N) * 7,
    }
    columns |= {f"q{i}": random.integers(0, 9, N) for i in range(1, 27)}
    return pa.table({name: pa.array(np.asarray(values).tolist()) for name, values in columns.items()})


@pytest.fixture(scope="module")
def found() -> Profile:
    return lv.profile(survey(), largest=2)


EXPECTED = {
    Role.UNIT: {"cluster"},
    Role.WEIGHT: {"PWGTP", "wt_final"},
    Role.SENSITIVE: {"PINCP", "savings", "DEYE", "disability_any"},
    Role.IDENTIFYING: {"SERIALNO", "wgt_norm"},
}


@pytest.mark.parametrize("role", EXPECTED)
def test_columns_get_the_role_that_their_name_and_values_speak_of(found: Profile, role: Role) -> None:
    assert {column.name for column in found.columns if column.role is role} == EXPECTED[role]


def test_few_columns_are_quasi_identifiers(found: Profile) -> None:
    """Answers that nobody outside knows stay, unless they single people out without any column that is protected."""
    quasi = {column.name for column in found.columns if column.role is Role.QUASI}
    assert quasi == {"PUMA", "AGEP", "SEX", "HISP", "origin"} and len(found.columns) == 40


def test_a_set_of_unknown_columns_gets_one_quasi_identifier() -> None:
    random = np.random.default_rng(2)
    table = pa.table({"q1": random.integers(0, 90, 1_000), "q2": random.integers(0, 40, 1_000)})
    roles = {column.name: column.role for column in lv.profile(table).columns}
    assert roles == {"q1": Role.QUASI, "q2": Role.KEEP}


def test_the_spec_of_a_profile_starts_a_run(tmp_path: Path, found: Profile) -> None:
    data, spec = tmp_path / "survey.csv", tmp_path / "start.toml"
    pa.csv.write_csv(survey(), data)
    write_spec(found, data, SourceOptions(missing_code={"PINCP": ("N",)}), spec)
    release = lv.anonymize(spec=spec, steps=20, k=2)
    assert release.table.num_rows <= N and "SERIALNO" not in release.table.column_names
    assert (
        'missing_code = { "PINCP" = ["N"] }' in spec.read_text()
        or "missing_code = { PINCP" in spec.read_text()
    )


def test_numbers_that_are_all_different_are_dropped_whatever_they_are_called() -> None:
    random = np.random.default_rng(6)
    table = pa.table(
        {
            "persnr": random.choice(10**6, 500, replace=False),
            "plz": random.choice(10**6, 500, replace=False),
            "gemeinde": random.choice(["Bern", "Thun", "Biel"], 500),
            "commune": random.choice(["Sion", "Brig", "Visp"], 500),
        }
    )
    roles = {column.name: column.role for column in lv.profile(table, largest=1).columns}
    assert roles == {
        "persnr": Role.IDENTIFYING,
        "plz": Role.QUASI,
        "gemeinde": Role.QUASI,
        "commune": Role.QUASI,
    }
