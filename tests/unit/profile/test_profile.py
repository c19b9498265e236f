"""What a profile finds: planted ids, near-ids, sets and dependencies, and nothing that is not there."""

from __future__ import annotations

import json
import stat
import tomllib
from collections.abc import Iterable
from itertools import combinations
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import louver as lv
from louver.data import dependencies as dependencies_module
from louver.data.dependencies import Dependency
from louver.data.kinds import ColumnKind
from louver.errors import Cancelled, InputError
from louver.profile import Profile, ProfileOptions, profile, singling, write_spec
from louver.profile import singling as hashing
from louver.profile.result import percent
from louver.profile.roles import Role
from louver.report.profile import profile_report
from louver.run import Run
from louver.schema.request import ask
from louver.schema.source import SourceOptions
from louver.schema.spec import PLACEHOLDER, read_spec

SIZES = [300, 3_000, 30_000]


def people(n: int, seed: int = 1) -> pa.Table:
    """A table with one column of every kind and role; county tells state, age tells born, nearly."""
    random = np.random.default_rng(seed)
    county, age = random.integers(0, 40, n), random.integers(0, 90, n)
    born = np.where(random.random(n) < 0.02, age + 1, age)
    return pa.table(
        {
            "id": np.arange(n),
            "name": [f"Person {i} of {i % 7}" for i in range(n)],
            "near_id": [f"X{i // 2 if i < n // 50 else i}" for i in range(n)],
            "age": age,
            "sex": random.choice(["f", "m"], n),
            "county": [f"{code:03d}" for code in county],
            "state": [f"S{code // 10}" for code in county],
            "edu": random.integers(1, 8, n),
            "income": random.lognormal(10, 1, n),
            "hhid": np.sort(random.integers(0, n // 3, n)),
            "weight": 1 + random.random(n) * 100,
            "born": [f"{2020 - year}-01-01" for year in born],
            "nothing": pa.nulls(n, pa.string()),
        }
    )


def independent(n: int, seed: int) -> pa.Table:
    random = np.random.default_rng(seed)
    columns = {f"c{k}": random.integers(0, k, n) for k in (2, 3, 5, 20, 100, n // 3, n)}
    columns["rare"] = (random.random(n) < 0.03).astype(int)
    return pa.table(columns)


def pairs(found: Profile, *, is_exact: bool) -> set[tuple[str, str]]:
    return {(d.determinant, d.dependent) for d in found.dependencies if d.is_exact is is_exact}


@pytest.mark.parametrize("n", SIZES)
def test_what_was_planted_is_found(n: int) -> None:
    found = profile(people(n))
    kinds = {column.name: column.kind for column in found.columns}
    assert kinds["id"] is kinds["near_id"] is ColumnKind.ID and kinds["name"] is ColumnKind.TEXT
    assert kinds["age"] is ColumnKind.INTEGER and kinds["income"] is ColumnKind.NUMBER
    assert kinds["edu"] is ColumnKind.ORDERED_CODE and kinds["sex"] is kinds["county"] is ColumnKind.CATEGORY
    assert kinds["born"] is ColumnKind.DATE and kinds["nothing"] is ColumnKind.EMPTY
    roles = {column.name: column.role for column in found.columns}
    assert {name for name, role in roles.items() if role is Role.IDENTIFYING} == {"id", "near_id", "name"}
    assert roles["hhid"] is Role.UNIT and roles["weight"] is Role.WEIGHT and roles["income"] is Role.SENSITIVE
    assert all(roles[name] is Role.QUASI for name in ("age", "sex", "county", "state", "born"))
    assert {("id",), ("name",), ("near_id",)} <= {one.columns for one in found.sets}
    assert ("county", "state") in pairs(found, is_exact=True)
    if n >= 3_000:
        assert pairs(found, is_exact=True) == {("county", "state")}
        assert pairs(found, is_exact=False) == {("age", "born"), ("born", "age")}


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("seed", range(4))
def test_nothing_is_found_between_independent_columns(n: int, seed: int) -> None:
    assert profile(independent(n, seed), largest=1).dependencies == ()


@pytest.mark.parametrize("seed", range(3))
def test_sets_are_those_of_plain_counting(seed: int) -> None:
    """Every minimal set of up to three columns, and no other."""
    random = np.random.default_rng(seed)
    n = 400
    columns = {f"c{i}": random.integers(0, k, n) for i, k in enumerate((2, 4, 6, 9, 15, 40))}
    share = 0.1
    found = {one.columns: one.n_alone for one in profile(pa.table(columns), alone=share).sets}
    expected: dict[tuple[str, ...], int] = {}
    for size in (1, 2, 3):
        for names in combinations(columns, size):
            if any(set(part) <= set(names) for part in expected if len(part) < size):
                continue
            rows = list(zip(*(columns[name] for name in names), strict=True))
            n_alone = sum(rows.count(row) == 1 for row in rows)
            if n_alone >= share * n:
                expected[names] = n_alone
    assert found == expected


def test_a_sample_of_a_large_table_finds_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    table = people(30_000)
    exact = profile(table)
    for module in (hashing, dependencies_module):
        monkeypatch.setattr(module, "SAMPLED_FROM", 5_000)
        monkeypatch.setattr(module, "SAMPLE", 2_500)
    sampled = profile(table)
    assert sampled.dependencies == exact.dependencies
    clear = {one for one in exact.sets if one.share > 0.08}
    assert clear <= set(sampled.sets) <= set(exact.sets)


def test_a_search_that_is_cut_short_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(singling, "MAX_EXAMINED", 12)
    monkeypatch.setattr(singling, "MAX_LISTED", 1)
    found = profile(people(1_000))
    assert not found.is_complete and "only the most promising sets were tried" in repr(found)
    assert found.n_sets > len(found.sets)
    assert "Only the most promising sets were examined." in profile_report(found)


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (["01", "02", "01"] * 20, ColumnKind.CATEGORY),
        ([f"{i:08d}" for i in range(60)], ColumnKind.ID),
        ([str(1_000 + 37 * i % 997) for i in range(60)], ColumnKind.ID),
        ([str(i * i * 31 % 10_007) for i in range(60)], ColumnKind.INTEGER),
        (["0-4", "5-9", "85+"] * 20, ColumnKind.ORDERED_CODE),
        (["1", "0"] * 30, ColumnKind.CATEGORY),
        (["3.2.2020", "14.12.1999"] * 30, ColumnKind.DATE),
        (["the patient was seen at home, and again in the clinic"] * 60, ColumnKind.TEXT),
        (["1", "2", "x"] * 20, ColumnKind.CATEGORY),
    ],
)
def test_kinds(values: list[str], kind: ColumnKind) -> None:
    assert profile(pa.table({"c": values})).columns[0].kind is kind


def test_missing_values_are_counted_and_join_sets() -> None:
    found = profile(pa.table({"a": ["x"] * 9 + [None], "b": [None] * 5 + ["y"] * 5}))
    assert [(column.missing, column.alone) for column in found.columns] == [(1, 1), (5, 0)]
    assert found.column("a").distinct == 1


def test_columns_and_rows_can_be_chosen() -> None:
    found = profile(people(100), columns=["age", "sex"], where="age >= 18 and sex = 'f'")
    assert [column.name for column in found.columns] == ["age", "sex"] and found.n_rows < 60
    with pytest.raises(InputError, match="names a column twice"):
        profile(people(100), columns=["age", "age"])
    with pytest.raises(InputError, match='no column "agee"; perhaps "age" is meant'):
        profile(people(100), columns=["agee"])
    with pytest.raises(InputError, match="--largest must be at most 4"):
        profile(people(100), largest=5)


def test_results_are_frames_json_tables_and_pictures() -> None:
    found = lv.profile(people(200))
    assert (
        found.to_frame().column_names[:3] == ["name", "kind", "kind_reason"]
        and found.to_frame().num_rows == 13
    )
    told = json.loads(found.to_json())
    assert told["n_rows"] == 200 and told["columns"][0]["role"] == "identifying"
    html = found._repr_html_()
    assert (
        html.count("<tr>") == 14
        and "<table>" in html
        and "not for release" not in html.partition("<table>")[2]
    )
    assert "do not release any of this" in repr(found)
    page = profile_report(found)
    assert page.count("<svg") >= 9 and "is not for release" in page
    assert "Person 3 of 3" not in page + repr(found)  # values of ids and names are nowhere


def test_a_table_without_findings_says_so() -> None:
    found = profile(pa.table({"a": ["x", "y"] * 50}))
    assert "No set of up to 3 columns singles out 5.0 %" in repr(
        found
    ) and "No column determines another." in repr(found)
    page = profile_report(found)
    assert "No set of up to 3 columns" in page and "No column determines another." in page


def test_progress_and_cancellation() -> None:
    stages: list[str] = []

    def show(stage: str, done: float, total: float) -> None:
        stages.append(stage)
        if stage == "sets of 3 columns":
            run.cancel()

    run = Run(show)
    with pytest.raises(Cancelled):
        profile(people(500), run=run)
    assert set(stages) == {
        "reading",
        "kinds of columns",
        "sets of 1 columns",
        "sets of 2 columns",
        "sets of 3 columns",
        "dependencies",
    }


def test_shares_are_never_rounded_to_all_or_nothing() -> None:
    assert [percent(share) for share in (0, 1e-6, 0.5, 1 - 1e-6, 1)] == [
        "0.0 %", "<0.1 %", "50.0 %", ">99.9 %", "100.0 %",
    ]  # fmt: skip


def test_a_telling_column_is_a_quasi_identifier() -> None:
    random = np.random.default_rng(0)
    region = random.integers(0, 9, 2_000)
    found = profile(
        pa.table({"region": region, "density": region * 7 + 100, "shoe": random.integers(30, 48, 2_000)})
    )
    assert (
        found.column("density").role is Role.QUASI and "determines region" in found.column("density").reason
    )
    assert found.column("shoe").role is Role.KEEP
    assert (
        Dependency(determinant="density", dependent="region", share=1, accuracy=1, is_exact=True)
        in found.dependencies
    )


def spec_of(folder: Path, table: pa.Table, **reading: str) -> tuple[Path, str]:
    found = profile(table, **reading)
    path = folder / "start.toml"
    write_spec(found, folder / "people.csv", SourceOptions(**reading), path)
    return path, path.read_text()


def test_a_spec_holds_names_kinds_and_roles_and_nothing_else(tmp_path: Path) -> None:
    table = people(500)
    path, text = spec_of(tmp_path, table, where="age >= 0")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    other_path = tmp_path / "other"
    other_path.mkdir()
    random = np.random.default_rng(3)
    shuffled = table.take(random.permutation(400))  # other people, fewer of them
    assert spec_of(other_path, shuffled, where="age >= 0")[1] == text
    spec = read_spec(path)
    assert spec.data == str(tmp_path / "people.csv") and spec.source.where == "age >= 0"
    assert spec.schema.attribute("age").kind == "integer" and not spec.schema.attribute("sex").labels
    assert spec.options("anonymize")["quasi"] == ["age", "sex", "county", "state", "edu", "born"]
    assert "hhid" in tomllib.loads(text)["groups"]["unit"]


@pytest.mark.parametrize("verb", ["groups", "topdown"])
def test_verbs_that_spend_refuse_placeholders(tmp_path: Path, verb: str) -> None:
    path, _ = spec_of(tmp_path, people(300))
    with pytest.raises(InputError, match=f'start.toml: key "{verb}.* still has the placeholder; fill it in'):
        read_spec(path).options(verb)


def test_a_spec_replaces_no_file(tmp_path: Path) -> None:
    spec_of(tmp_path, people(100))
    with pytest.raises(InputError, match="--write-spec would replace start.toml"):
        spec_of(tmp_path, people(100))


def test_a_spec_of_other_sources(tmp_path: Path) -> None:
    found = profile(pa.table({'odd "name"\n': [1, 2]}))
    for data in (pa.table({"a": [1]}), "postgresql://me:secret@host/db"):
        path = tmp_path / f"{type(data).__name__}.toml"
        write_spec(found, data, SourceOptions(), path)
        assert "secret" not in path.read_text() and read_spec(path).schema.names == ('odd "name"\n',)
    assert f'uri = "{PLACEHOLDER}"' in (tmp_path / "str.toml").read_text()


def test_a_spec_can_ask_for_a_profile(tmp_path: Path) -> None:
    (tmp_path / "p.csv").write_text("a;b\n1,5;x\n2,5;y\n")
    (tmp_path / "s.toml").write_text(
        '[source]\nfile = "p.csv"\ndecimal_mark = ","\n[profile]\ncolumns = ["a"]\nlargest = 1\n'
    )
    found = profile(spec=tmp_path / "s.toml")
    assert [column.kind for column in found.columns] == [ColumnKind.NUMBER] and found.largest == 1
    assert ask(ProfileOptions, None, tmp_path / "s.toml", {"largest": 2}).options.largest == 2


def test_dates_are_drawn_by_runs_of_years() -> None:
    days = [f"{1950 + i % 60}-01-01" for i in range(120)]
    found = profile(pa.table({"day": days})).columns[0].distribution
    assert found is not None and len(found.labels) == 12 and found.labels[0] == "1950 to 1954"
    assert sum(found.counts) == 120
    short = profile(pa.table({"day": ["1.2.99", "3.4.2001"] * 30})).columns[0].distribution
    assert short is not None and short.labels == ("2001", "other dates") and short.counts == (30, 30)


@pytest.mark.parametrize(
    ("numbers", "first", "last", "bars"),
    [
        (range(96), "0 to 10", "90 to 100", 10),
        ([n * 1234.5 for n in range(90)], "0 to 10,000", "100,000 to 110,000", 11),
        ([n / 8 - 3 for n in range(100)], "-4 to -2", "8 to 10", 7),
    ],
)
def test_numbers_are_drawn_by_round_classes(
    numbers: Iterable[float], first: str, last: str, bars: int
) -> None:
    found = profile(pa.table({"x": [*numbers] * 2})).columns[0].distribution
    assert found is not None and (found.labels[0], found.labels[-1], len(found.labels)) == (first, last, bars)
    assert sum(found.counts) == 2 * len([*numbers])


@pytest.mark.parametrize("name", ["weight", "hhid"])
def test_sets_with_weights_come_last_and_those_with_household_numbers_are_not_asked_for(name: str) -> None:
    n = 600
    people = {
        name: [1000 + i // 3 for i in range(n)],
        "age": [i * 7 % 90 for i in range(n)],
        "sex": ["fm"[i % 2] for i in range(n)],
        "town": [str(i * 11 % 40) for i in range(n)],
    }
    found = profile(pa.table(people), alone=0.02)
    has_it = [name in one.columns for one in found.sets if len(one.columns) > 1]
    assert has_it == sorted(has_it) and False in has_it and (True in has_it) == (name == "weight")


@pytest.mark.parametrize("seed", range(3))
def test_the_records_of_a_household_count_as_one(seed: int) -> None:
    """Alone is who resembles nobody outside of the household, by plain counting; every minimal set of up to two columns."""
    random = np.random.default_rng(seed)
    home = np.repeat(np.arange(90), random.integers(1, 6, 90))
    n, share = len(home), 0.1
    columns = {f"c{i}": random.integers(0, k, 90)[home] for i, k in enumerate((2, 4, 9, 15, 30))}
    found = profile(pa.table({"household": home, **columns}), alone=share, largest=2)
    assert found.unit == "household" and found.column("household").role == "unit"
    expected: dict[tuple[str, ...], int] = {}
    for size in (1, 2):
        for names in combinations(columns, size):
            homes: dict[tuple[int, ...], set[int]] = {}
            rows = list(zip(*(columns[name].tolist() for name in names), strict=True))
            for row, number in zip(rows, home.tolist(), strict=True):
                homes.setdefault(row, set()).add(number)
            n_alone = sum(len(homes[row]) == 1 for row in rows)
            if size == 1:
                assert found.column(names[0]).alone == n_alone
            if n_alone >= share * n and not any(set(part) <= set(names) for part in expected):
                expected[names] = n_alone
    assert {one.columns: one.n_alone for one in found.sets if one.columns != ("household",)} == expected
    assert "counting the records of a household" in repr(found)
