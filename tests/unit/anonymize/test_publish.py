"""What is published, what it promises, and what it keeps to itself."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import louver as lv
from louver.errors import InputError
from louver.release.folder import Folder
from louver.release.manifest import read_manifest
from louver.release.promises.base import count_distinct
from releases import doubt
from small_people import people, written


def published_bytes(out: Path) -> str:
    """Everything in a release that is text, without what names the moment."""
    manifest = json.loads((out / "manifest.json").read_text())
    for told in ("created", "seconds", "files", "digest"):
        manifest.pop(told)
    tables = [
        pq.read_table(out / "data" / name).to_pylist() for name in ("anonymized.parquet", "mapping.parquet")
    ]
    return json.dumps([manifest, tables], default=str) + (out / "report.html").read_text()


def test_the_mapping_says_what_published_values_stand_for(tmp_path: Path) -> None:
    tree = tmp_path / "town.csv"
    tree.write_text("Ayr;West;*\nBute;West;*\nCairn;East;*\nDoon;East;*\n")
    release = lv.anonymize(
        people(), quasi=["age", "town", "ill"], hierarchy={"town": tree}, k=3, method="exact"
    )
    lines = release.mapping.to_pylist()
    ages = [line for line in lines if line["attribute"] == "age"]
    assert [(a["published"], a["lower"], a["upper"], a["records"]) for a in ages] == [
        ("[31, 34]", 31, 34, 3),
        ("[52, 60]", 52, 60, 4),
    ]
    towns = {line["published"]: line for line in lines if line["attribute"] == "town"}
    assert towns["West"]["members"] == ["Ayr", "Bute"] and towns["West"]["sort"] == "node"
    ills = {line["published"]: line["members"] for line in lines if line["attribute"] == "ill"}
    assert ills == {"cold | flu": ["cold", "flu"], "cold | flu | ulcer": ["cold", "flu", "ulcer"]}


@pytest.mark.parametrize("format", ["labels", "bounds"])
def test_verify_checks_the_mapping(format: str, tmp_path: Path) -> None:
    table = pa.table({"age": pa.array([1, 2, 3, None, None, 5], pa.int64()), "size": list("aabbcc")})
    release = lv.anonymize(table, quasi=["age", "size"], ordered=["size"], k=2, method="exact", format=format)
    assert lv.verify(written(release, tmp_path / "release")).passed
    lines = release.mapping
    other = lines.set_column(6, "records", pa.array([9] * lines.num_rows))
    empty = lines.set_column(6, "records", pa.array([0] * lines.num_rows))
    unused = empty.set_column(1, "published", pa.array(["9"] * lines.num_rows))
    unused = unused.set_column(3, "lower", pa.array([9.0] * lines.num_rows))
    half = 2**63 - 1  # twice and 2 more is 0 in 64 bits
    large = lines.set_column(6, "records", pa.array([half] * lines.num_rows))
    beyond = pa.concat_tables(
        [lines, large, large, empty.set_column(6, "records", pa.array([2] * lines.num_rows))]
    )
    for wrong in (other, lines.slice(1), pa.concat_tables([lines, unused.slice(0, 1)]), beyond):
        pq.write_table(wrong, tmp_path / "release/data/mapping.parquet")
        assert not doubt(tmp_path / "release", "mapping").passed


def test_batches_are_counted_as_the_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Values that come again, or not, in batches that grow with what is known."""
    table = pa.table({"a": [f"{n * n % 7}" for n in range(60)], "b": pa.array([None, 1, 2] * 20)})
    pq.write_table(table, tmp_path / "file.parquet")
    folder = Folder(tmp_path, {"file.parquet"})
    whole = count_distinct(folder, "file.parquet", ["a", "b"])
    monkeypatch.setattr("louver.release.folder.BATCH_ROWS", 2)
    parts = count_distinct(folder, "file.parquet", ["a", "b"])
    assert Counter(map(str, parts.to_pylist())) == Counter(map(str, whole.to_pylist()))
    assert sum(parts["n"].to_pylist()) == 60


def test_a_release_says_nothing_of_the_values_of_records_left_out(tmp_path: Path) -> None:
    """Two sources that differ in the suppressed record alone give the same release."""
    told = []
    for number, outlier in enumerate([(104, "b", "rare"), (5_000, "zz", "secret")]):
        age, grade, ill = zip(*[(20 + i, "ac"[i % 2], "fc"[i % 2]) for i in range(5)], outlier, strict=True)
        table = pa.table({"age": age, "grade": grade, "ill": ill, "kind": pa.array(ill).dictionary_encode()})
        release = lv.anonymize(
            table, quasi=["age", "grade"], ordered=["grade"], sensitive=["ill"], l=1, k=5, suppress=0.2,
            method="exact", keep_order=True,
        )  # fmt: skip
        assert release.n_suppressed == 1
        out = written(release, tmp_path / str(number))
        assert lv.verify(out).passed
        told.append(published_bytes(out))
        assert outlier[2].encode() not in (out / "data/anonymized.parquet").read_bytes()
    assert told[0] == told[1]


def test_closeness_in_order_is_measured_on_published_values(tmp_path: Path) -> None:
    """The value that only the suppressed record has would count as a step of the order; so nothing is left out."""
    ill = ["1", "2", "4"] * 6 + ["3"]
    table = pa.table({"age": [30] * 18 + [99], "ill": ill})
    release = lv.anonymize(
        table, quasi=["age"], sensitive=["ill"], t=0.5, distance="ordered", k=3, suppress=0.1, method="greedy"
    )
    assert release.n_suppressed == 0
    assert lv.verify(written(release, tmp_path / "release")).passed


def test_losses_in_the_manifest_are_recomputed(tmp_path: Path) -> None:
    release = lv.anonymize(people(), quasi=["age", "town"], k=3, method="exact")
    out = written(release, tmp_path / "release")
    promise = next(p for p in read_manifest(out).promises if p["promise"] == "losses")
    assert doubt(out, "losses").passed
    assert dict(promise["by_column"])["age"] == pytest.approx((3 * 3 + 4 * 8) / 29 / 7)
    assert not doubt(out, "losses", by_column=[["age", 0.5], ["town", 0.5]]).passed


def test_class_numbers_do_not_follow_the_order_of_values() -> None:
    table = pa.table({"x": list(range(60))})
    seen = {
        tuple(
            lv.anonymize(table, quasi=["x"], k=3, method="sorted", class_id=True, keep_order=True)
            .table["class_id"]
            .to_pylist()
        )
        for _ in range(3)
    }
    assert len(seen) > 1 and all(sorted(set(ids)) == list(range(20)) for ids in seen)
    with pytest.raises(InputError, match="--class-id"):
        lv.anonymize(table, quasi=["x"], k=3, method="freeform-greedy", class_id=True)
