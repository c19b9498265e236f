"""What several releases disclose together."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import louver as lv
from few_or_many import few_or_many
from louver.errors import InputError
from louver.report.anonymize import inside_report
from small_people import people, written


def candidates(records: pa.Table, tables: list[pa.Table]) -> list[int]:
    """For every record how many rows can be its own in all releases, from the printed values."""
    found = []
    for record in records.to_pylist():
        fitting = []
        for table in tables:
            rows: Counter[str] = Counter()
            for row in table.to_pylist():
                low, _, high = row["age"].strip("[]").partition(", ")
                if int(low) <= record["age"] <= int(high or low) and record["town"] in row["town"].split(
                    " | "
                ):
                    rows[row["ill"]] += 1
            fitting.append(rows)
        found.append(sum(min(rows[ill] for rows in fitting) for ill in fitting[0]))
    return found


def together(
    tmp_path: Path, table: pa.Table, first: dict[str, object], second: dict[str, object], *more: Path
):
    out = tmp_path / f"first{len(list(tmp_path.iterdir()))}"
    lv.anonymize(table, **first).write(out)
    release = lv.anonymize(table, **second, against=[out, *more])
    assert release.intersection is not None
    return release.intersection, out


@few_or_many(
    5,
    25,
    given(
        lines=st.lists(
            st.tuples(st.integers(0, 9), st.sampled_from("abc"), st.sampled_from(["flu", "cold"])),
            min_size=4,
            max_size=10,
        ),
        weight=st.floats(0.01, 100),
    ),
)
def test_several_releases_together(
    lines: list[tuple[int, str, str]], weight: float, tmp_path_factory: pytest.TempPathFactory
) -> None:
    age, town, ill = zip(*lines, strict=True)
    table = pa.table({"age": age, "town": town, "ill": ill})
    out = tmp_path_factory.mktemp("releases") / "first"
    common = {"quasi": ["age", "town"], "sensitive": ["ill"], "k": 2, "method": "greedy"}
    first = lv.anonymize(table, **common)
    first.write(out)
    second = lv.anonymize(table, **common, weights={"age": weight}, against=[out])
    expected = np.array(candidates(table, [second.table, first.table]))
    together = second.intersection
    assert together is not None and together.releases == ("first",)
    assert together.fewest == expected.min() and together.records == len(lines) and together.absent == 0
    assert together.below_k == (expected < 2).sum() and together.single == (expected == 1).sum()


def test_what_becomes_certain(tmp_path: Path) -> None:
    """Two ways to pair four people by age: who is in the middle of both pairs is known."""
    table = pa.table({"age": [1, 2, 3, 4], "town": ["a", "b", "a", "b"], "ill": ["w", "x", "y", "z"]})
    first = lv.anonymize(table, quasi=["age"], identifying=["town"], keep="ill", k=2, method="exact")
    out = written(first, tmp_path / "by-age")
    second = lv.anonymize(
        table, quasi=["town"], identifying=["age"], sensitive=["ill"], k=2, method="exact", against=out
    )
    together = second.intersection
    assert together is not None
    assert (together.fewest, together.below_k, together.learnt) == (1, 4, (("ill", 4),))
    assert "becomes certain for 4" in repr(second) and "becomes certain" in inside_report(second)


def test_releases_with_bounds_and_missing_values_can_be_compared(tmp_path: Path) -> None:
    table = pa.table({"x": pa.array([1, 2, None, None, 7, 8], pa.int64()), "s": list("aabbcc")})
    common = {"quasi": ["x", "s"], "ordered": ["s"], "k": 2}
    first = lv.anonymize(table, **common, method="sorted", format="bounds", missing="match")
    out = written(first, tmp_path / "first")
    second = lv.anonymize(table, **common, method="exact", against=[out])
    assert second.intersection is not None and second.intersection.records == 6


def test_what_against_refuses(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="not a release directory"):
        lv.anonymize(people(), quasi=["age"], k=3, against=[tmp_path / "nowhere"])
    other = lv.anonymize(pa.table({"height": [1, 2, 3]}), quasi=["height"], k=3)
    out = written(other, tmp_path / "other")
    with pytest.raises(InputError, match='column "height", which the data do not have'):
        lv.anonymize(people(), quasi=["age"], k=3, against=[out])
    (out / "data/mapping.parquet").write_text("torn")
    with pytest.raises(InputError, match="has changed since it was released"):
        lv.anonymize(people(), quasi=["age"], k=3, against=[out])
    text = (out / "manifest.json").read_text().replace('"verb": "anonymize"', '"verb": "groups"')
    (out / "manifest.json").write_text(text)
    with pytest.raises(InputError, match="not a release of louver anonymize"):
        lv.anonymize(people(), quasi=["age"], k=3, against=[out])


def test_a_column_that_one_release_generalises_and_another_publishes(tmp_path: Path) -> None:
    table = pa.table({"age": list(range(40)), "zip": [i % 4 for i in range(40)]})
    found, _ = together(
        tmp_path,
        table,
        {"quasi": ["zip"], "keep": ["age"], "k": 5},
        {"quasi": ["age"], "k": 5, "identifying": ["zip"]},
    )
    assert (found.fewest, found.single) == (1, 40)


def test_rows_in_the_same_order_are_linked(tmp_path: Path) -> None:
    table = pa.table({"a": [i // 5 for i in range(20)], "b": [i % 4 for i in range(20)]})
    common = {"k": 5, "keep_order": True, "method": "sorted"}
    found, _ = together(
        tmp_path,
        table,
        {"quasi": ["a"], "identifying": ["b"], **common},
        {"quasi": ["b"], "identifying": ["a"], **common},
    )
    assert found.below_k == 20


def test_one_release_more_never_raises_the_candidates(tmp_path: Path) -> None:
    table = pa.table(
        {"age": list(range(24)), "zip": [i * 7 % 24 for i in range(24)], "ill": [i % 6 for i in range(24)]}
    )
    by_age = {"quasi": ["age"], "identifying": ["zip"], "k": 4}
    by_zip = {"quasi": ["zip"], "identifying": ["age"], "k": 4}
    two, _ = together(tmp_path, table, by_age, by_zip)
    third = written(lv.anonymize(table, quasi=["age"], identifying=["zip", "ill"], k=4), tmp_path / "third")
    three, _ = together(tmp_path, table, by_age, by_zip, third)
    assert two.below_k == three.below_k > 0


def test_who_is_left_out_of_one_release_stands_out(tmp_path: Path) -> None:
    table = pa.table({"x": [1] * 6 + [9999]})
    found, _ = together(tmp_path, table, {"quasi": ["x"], "k": 3, "suppress": 0.2}, {"quasi": ["x"], "k": 3})
    assert found.absent == 1 and found.is_risky and "stand out" in str(found)


def test_padded_text_dates_and_missing_values_of_an_earlier_release_fit(tmp_path: Path) -> None:
    born = pa.array([0, 1, 2, 3, None, None], pa.timestamp("s"))
    table = pa.table({"born": born, "town": [" a", " a", "b ", "b ", None, None], "x": [1, 2, 3, 4, 5, 6]})
    first = {"quasi": ["born", "town"], "k": 2, "identifying": ["x"]}
    found, _ = together(tmp_path, table, first, {"quasi": ["x"], "k": 2, "identifying": ["born", "town"]})
    assert (found.records, found.absent) == (6, 0)
