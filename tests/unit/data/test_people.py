"""People are known again in any row order, with columns added, dropped, renamed or typed otherwise, and are counted right."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from few_or_many import few_or_many
from louver.data import people as people_module
from louver.data.people import Census, Common, Sketch
from louver.data.read import open_source

KEY = bytes(range(32))
NAMES = ("a", "b", "c")

Columns = Mapping[str, Sequence[object]]


def sketch_of(columns: Columns, **asked: str) -> Sketch:
    with open_source(pa.table(dict(columns))) as source:
        return Census(source, KEY, **asked).sketch()


def common(earlier: Columns, these: Columns, **asked: str) -> Common:
    """What two sets of records have in common; the earlier one is known only by its sketch as it is kept."""
    kept = Sketch.from_json(sketch_of(earlier, **asked).to_json())
    with open_source(pa.table(dict(these))) as source:
        census = Census(source, KEY, **asked)
        [found] = census.compare(census.sketch(), [kept])
        return found


def in_common(earlier: Columns, these: Columns) -> tuple[float, float]:
    """Shares by the definition: as many records of a kind as both have, by the columns that both have."""
    shared = [name for name in earlier if name in these]
    one, other = (Counter(zip(*(data[name] for name in shared), strict=True)) for data in (earlier, these))
    both = (one & other).total()
    return both / one.total(), both / other.total()


def rows_of(columns: Columns, rows: Sequence[int]) -> Columns:
    return {name: [values[row] for row in rows] for name, values in columns.items()}


@st.composite
def files(draw: st.DrawFn) -> Columns:
    n = draw(st.integers(2, 30))
    values = st.lists(st.integers(0, draw(st.integers(1, 9))), min_size=n, max_size=n)
    return {name: draw(values) for name in NAMES}


@few_or_many(
    3,
    15,
    given(
        files(), st.randoms(use_true_random=False), st.sets(st.sampled_from(NAMES), max_size=2), st.booleans()
    ),
)
def test_the_same_records_are_known_again(file: Columns, random, dropped: set[str], is_added: bool) -> None:
    order = list(range(len(file["a"])))
    random.shuffle(order)
    names = list(file)
    random.shuffle(names)
    these = {name: rows_of(file, order)[name] for name in names if name not in dropped}
    if is_added:
        these["year"] = [random.randrange(3) for _ in order]
    found = common(file, these)
    assert found.is_same and found.of_earlier == found.of_these == 1
    assert set(found.columns) <= set(file)


@few_or_many(3, 15, given(files(), st.data()))
def test_shares_of_parts_and_of_larger_files_are_right(file: Columns, data: st.DataObject) -> None:
    n = len(file["a"])
    some = data.draw(st.lists(st.sampled_from(range(n)), unique=True, min_size=1, max_size=n - 1))
    dropped = data.draw(st.sets(st.sampled_from(NAMES), max_size=2))
    part = {name: values for name, values in rows_of(file, some).items() if name not in dropped}
    found = common(file, part)
    assert not found.is_same
    assert (found.of_earlier, found.of_these) == pytest.approx(in_common(file, part))
    assert found.of_these == pytest.approx(1)
    whole = {name: values for name, values in file.items() if name not in dropped}
    found = common(rows_of(file, some), whole)
    assert (found.of_earlier, found.of_these) == pytest.approx(in_common(rows_of(file, some), whole))
    assert not found.is_same and found.of_earlier == 1


def person(n: int, random: np.random.Generator) -> dict[str, list[object]]:
    return {
        "born": random.integers(0, 30_000, n).tolist(),
        "income": random.integers(0, 90_000, n).tolist(),
        "sex": random.choice(["f", "m"], n).tolist(),
    }


def test_other_people_are_not_known_and_a_sample_is_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(people_module, "SAMPLE", 400)
    random = np.random.default_rng(3)
    file, others = person(6000, random), person(4000, random)
    by = ("born", "income", "sex")
    assert common(file, others) == Common(is_same=False, of_earlier=0.0, of_these=0.0, columns=by)
    joined = {name: values[:3000] + others[name] for name, values in file.items()}
    found = common(file, joined)
    assert found.of_earlier == pytest.approx(0.5, abs=0.08) and found.of_these == pytest.approx(
        3 / 7, abs=0.08
    )
    assert len(sketch_of(file).counts) == 400


@pytest.mark.long
def test_one_changed_value_is_noticed_though_the_sample_misses_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(people_module, "SAMPLE", 8)
    file = person(500, np.random.default_rng(4))
    for row in range(0, 500, 50):
        changed = {**file, "income": [*file["income"]]}
        changed["income"][row] = 1
        found = common(file, changed)
        assert not found.is_same and found.share == 1


def test_values_are_the_same_however_they_are_typed() -> None:
    typed = {"n": [1.0, 7.0, None, 2.5], "flag": [True, False, True, None], "code": [7, 8, 9, 10]}
    text = {
        "n": ["1", "07", "", "2.50"],
        "flag": ["TRUE", "false ", "true", ""],
        "code": ["7", "8", "9", "10"],
    }
    assert common(typed, text).is_same


def test_a_renamed_column_is_known_by_what_it_holds() -> None:
    file = person(300, np.random.default_rng(5))
    renamed = {"year": file["born"], "pay": file["income"], "sex": file["sex"]}
    assert common(file, renamed).is_same
    assert common({"a": [1, 1]}, {"b": [1, 1]}) == Common(is_same=False, of_earlier=None, of_these=None)


def test_counts_are_people() -> None:
    listed = {"town": ["A", "A", "A", "B"], "n": [1, 1, 1, 1]}
    counted = {"town": ["B", "A", "C"], "n": [1, 3, 0]}
    assert common(listed, counted, weight="n").is_same
    found = common(counted, {"town": ["A"], "n": [2]}, weight="n")
    assert (found.of_earlier, found.of_these) == (0.5, 1.0)
    assert common({"town": ["A"], "n": [0]}, {"town": ["B"], "n": [0]}, weight="n").share == 0


def test_nested_columns_are_left_aside() -> None:
    assert sketch_of({"a": [1, 2], "nested": [[1], [2]]}).columns == ("a",)


def test_persons_are_counted_once() -> None:
    earlier = {"id": [1, 1, 2, 3], "v": [1, 2, 3, 4]}
    found = common(earlier, {"id": [3, 3, 4], "v": [9, 9, 9]}, person="id")
    assert (found.of_earlier, found.of_these) == pytest.approx((1 / 3, 1 / 2)) and not found.is_same
    assert common(earlier, {"id": [3, 2, 1], "v": [9, 9, 9]}, person="id").share == 1


def test_a_sketch_says_nothing_without_the_key() -> None:
    file = {"town": ["A", "B", "B"]}
    with open_source(pa.table(file)) as source:
        other = Census(source, bytes(32)).sketch()
    one = sketch_of(file)
    assert not set(one.sample.ravel().tolist()) & set(other.sample.ravel().tolist())
    assert one.digest != other.digest and one.digest == sketch_of({"town": ["B", "A", "B"]}).digest


def test_long_numbers_of_persons_are_told_apart() -> None:
    """Eighteen digits are more than a floating-point number holds."""
    first = 110105199001010011
    for kind in (int, str):
        file = {"id": [kind(first + i) for i in range(0, 40, 2)]}
        others = {"id": [kind(first + i) for i in range(1, 40, 2)]}
        assert common(file, others).share == 0
        assert common(file, others, person="id").share == 0
    file = {"id": [str(first), f"0{first + 1}", f"{first + 2}.0", "7", "1e20", "9" * 45]}
    assert common(file, {"id": [first, first + 1, first + 2, 7, 0, 0]}).of_earlier == pytest.approx(4 / 6)
    assert common(file, {"id": ["007", f"1{'0' * 20}", "9" * 44 + "8"]}).of_earlier == pytest.approx(2 / 6)


@pytest.mark.long
def test_a_few_people_of_many_may_be_missed_by_a_sample_and_are_not_called_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(people_module, "SAMPLE", 50)
    file = {"id": [f"p{i}" for i in range(5000)]}
    for asked in ({}, {"person": "id"}):
        for start in range(0, 100, 20):
            found = common(file, rows_of(file, range(start, start + 20)), **asked)
            assert (found.share is None and found.is_too_few) or found.share == 1
        assert common(file, {"id": [f"q{i}" for i in range(20)]}, **asked).is_too_few
        assert common(file, {"id": [f"q{i}" for i in range(3000)]}, **asked).share == 0
    # Many people of a few kinds are as hard to find as a few people.
    counted, few = {**file, "n": [9] * 5000}, {"id": ["q1", "q2"], "n": [30_000, 10_000]}
    assert common(counted, few, weight="n").is_too_few
