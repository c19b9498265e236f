"""Figures about classes count what a reader sees: records whose published quasi-identifiers are equal."""

from __future__ import annotations

from collections import Counter

import pyarrow as pa
import pytest

import louver as lv
from louver.anonymize.methods import CHOICES

METHODS_TRIED = [name for name in CHOICES if not name.startswith("freeform")]


def people() -> pa.Table:
    """Three ages that many people have, so that methods cut them into classes that publish the same age."""
    ages = [30] * 12 + [31] * 7 + [60] * 9
    return pa.table({"age": ages, "sex": ["f", "m"] * 14, "ill": ["flu", "cold", "flu", "ulcer"] * 7})


def sizes_read(release: lv.AnonymizedRelease) -> list[int]:
    """The sizes of the classes, by a plain count of the published rows."""
    rows = release.to_frame().select(list(release.quasi)).to_pylist()
    return sorted(Counter(tuple(row.values()) for row in rows).values())


@pytest.mark.parametrize("format_", ["labels", "bounds"])
@pytest.mark.parametrize("method", METHODS_TRIED)
def test_risk_and_classes_are_those_of_the_published_rows(method: str, format_: str) -> None:
    release = lv.anonymize(
        people(), quasi=["age"], keep=["sex", "ill"], k=3, method=method, format=format_, curve=(3,)
    )
    sizes = sizes_read(release)
    assert release.n_classes == len(sizes) and release.smallest_class == min(sizes)
    assert [size for size, n in release.risk.class_sizes for _ in range(n)] == sizes
    assert release.risk.prosecutor_highest == pytest.approx(1 / min(sizes))
    assert release.risk.prosecutor_average == pytest.approx(len(sizes) / sum(sizes))
    assert release.utility.discernibility == sum(size**2 for size in sizes)
    own = next(point for point in release.curve if (point.method, point.k) == (method, 3))
    assert own.highest_risk == release.risk.prosecutor_highest


def test_class_ids_are_those_of_published_classes() -> None:
    release = lv.anonymize(
        people(), quasi=["age"], keep=["sex", "ill"], k=3, method="mondrian-relaxed", class_id=True
    )
    pairs = {(row["age"], row["class_id"]) for row in release.to_frame().to_pylist()}
    assert len(pairs) == release.n_classes == len({age for age, _ in pairs})


def test_parts_count_published_classes_too(tmp_path) -> None:
    release = lv.anonymize(
        people(), quasi=["age"], keep=["sex", "ill"], k=3, steps=1, parts=2, out=tmp_path / "out"
    )
    assert sizes_read(release) == [size for size, n in release.risk.class_sizes for _ in range(n)]
