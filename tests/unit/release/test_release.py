"""The release directory exists whole or not at all, and verify notices tampering."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from louver.errors import InputError
from louver.release.manifest import Manifest, ReleaseWriter, digest, read_manifest
from louver.release.promises import PROMISES, _tree_distance
from louver.release.verify import verify

AGES = ["20-29", "20-29", "20-29", "30-39", "30-39", "30-39"]
ILL = ["flu", "cold", "flu", "cold", "flu", "ulcer"]
VALUES = ["cold", "flu", "ulcer"]


def write(out: Path, *, k: int = 3, table: pa.Table | None = None, **changes: object) -> Path:
    table = pa.table({"age": AGES, "ill": ILL}) if table is None else table
    promises = [
        {"promise": "records", "file": "data/anonymized.parquet", "records": table.num_rows},
        {"promise": "k-anonymity", "file": "data/anonymized.parquet", "quasi": ["age"], "k": k},
        {
            "promise": "l-diversity",
            "file": "data/anonymized.parquet",
            "quasi": ["age"],
            "sensitive": "ill",
            "values": VALUES,
            "kind": "distinct",
            "l": 2,
        },
        {
            "promise": "t-closeness",
            "file": "data/anonymized.parquet",
            "quasi": ["age"],
            "sensitive": "ill",
            "values": VALUES,
            "distance": "equal",
            "t": 0.2,
        },
    ]
    manifest = Manifest(verb="anonymize", method="exact", parameters={"k": k}, promises=promises, **changes)  # type: ignore[arg-type]
    with ReleaseWriter(out) as writer:
        pq.write_table(table, writer.path("data/anonymized.parquet"))
        writer.path("report.html").write_text("<p>report</p>")
        writer.seal(manifest)
    return out


def edit(out: Path, change: Callable[[dict], None], *, with_digest: bool = False) -> None:
    path = out / "manifest.json"
    content = json.loads(path.read_text())
    change(content)
    if with_digest:
        content["digest"] = digest(content)
    path.write_text(json.dumps(content))


def test_release_passes_and_reads_back(tmp_path: Path) -> None:
    out = write(tmp_path / "release")
    outcome = verify(out)
    assert outcome.passed, repr(outcome)
    assert {check.name for check in outcome.checks} >= {
        entry["promise"] for entry in read_manifest(out).promises
    }
    manifest = read_manifest(out)
    assert set(manifest.files) == {"data/anonymized.parquet", "report.html"}
    assert manifest.created and manifest.parameters == {"k": 3}
    assert json.loads(outcome.to_json())["passed"] is True
    assert "every promise holds" in repr(outcome)
    assert not list(tmp_path.glob(".release.partial-*"))


def drop_a_row(out: Path) -> None:
    path = out / "data/anonymized.parquet"
    pq.write_table(pq.read_table(path).slice(1), path)


def change_a_value(out: Path) -> None:
    path = out / "data/anonymized.parquet"
    table = pq.read_table(path)
    ages = table["age"].to_pylist()
    pq.write_table(table.set_column(0, "age", pa.array(["20", *ages[1:]])), path)


def swap_files(out: Path) -> None:
    a, b = out / "data/anonymized.parquet", out / "report.html"
    first, second = a.read_bytes(), b.read_bytes()
    a.write_bytes(second)
    b.write_bytes(first)


def append_a_byte(out: Path) -> None:
    with (out / "report.html").open("ab") as stream:
        stream.write(b" ")


def replace_by_link(out: Path) -> None:
    path = out / "report.html"
    moved = out.parent / "elsewhere.html"
    path.rename(moved)
    path.symlink_to(moved)


TAMPERING: dict[str, Callable[[Path], object]] = {
    "a value changed": change_a_value,
    "a row dropped": drop_a_row,
    "files swapped": swap_files,
    "a byte appended to the report": append_a_byte,
    "the report removed": lambda out: (out / "report.html").unlink(),
    "a file added": lambda out: (out / "data/raw.csv").write_text("name\n"),
    "a hidden file added": lambda out: (out / ".note").write_text("x"),
    "a file replaced by a link": replace_by_link,
    "manifest cut short": lambda out: (out / "manifest.json").write_text("{"),
    "manifest is a list": lambda out: (out / "manifest.json").write_text("[]"),
    "manifest edited": lambda out: edit(out, lambda m: m.update(method="auto")),
    "digest removed": lambda out: edit(out, lambda m: m.pop("digest")),
    "a larger k claimed": lambda out: edit(out, lambda m: m["promises"][1].update(k=4), with_digest=True),
    "a quasi-identifier more claimed": lambda out: edit(
        out, lambda m: m["promises"][1].update(quasi=["age", "ill"]), with_digest=True
    ),
    "more records claimed": lambda out: edit(
        out, lambda m: m["promises"][0].update(records=7), with_digest=True
    ),
    "a larger l claimed": lambda out: edit(out, lambda m: m["promises"][2].update(l=3), with_digest=True),
    "a smaller t claimed": lambda out: edit(out, lambda m: m["promises"][3].update(t=0.1), with_digest=True),
    "promises removed": lambda out: edit(out, lambda m: m.update(promises=[]), with_digest=True),
    "unknown promise": lambda out: edit(
        out, lambda m: m["promises"][0].update(promise="safe"), with_digest=True
    ),
    "promise without its file": lambda out: edit(
        out, lambda m: m["promises"][0].pop("file"), with_digest=True
    ),
    "not for release": lambda out: edit(out, lambda m: m.update(not_for_release=True), with_digest=True),
}


@pytest.mark.parametrize("tamper", TAMPERING.values(), ids=TAMPERING.keys())
def test_tampering_is_noticed(tmp_path: Path, tamper: Callable[[Path], object]) -> None:
    out = write(tmp_path / "release")
    tamper(out)
    outcome = verify(out)
    assert not outcome.passed
    assert "FAILED" in repr(outcome)


def test_evaluation_is_not_for_release(tmp_path: Path) -> None:
    assert not verify(write(tmp_path / "release", not_for_release=True)).passed


def test_nothing_is_left_of_an_unsealed_release(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError), ReleaseWriter(tmp_path / "release") as writer:
        writer.path("data/a").write_text("a")
        raise RuntimeError
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("kind", ["folder", "file", "dangling link"])
def test_existing_out_is_refused(tmp_path: Path, kind: str) -> None:
    out = tmp_path / "release"
    if kind == "folder":
        out.mkdir()
    elif kind == "file":
        out.write_text("")
    else:
        out.symlink_to(tmp_path / "nowhere")
    with pytest.raises(InputError, match="exists already"):
        ReleaseWriter(out)


def test_out_that_appears_meanwhile_is_not_replaced(tmp_path: Path) -> None:
    out = tmp_path / "release"
    with pytest.raises(InputError, match="exists already"), ReleaseWriter(out) as writer:
        out.mkdir()
        writer.seal(Manifest(verb="anonymize", method="exact", parameters={}, promises=[]))
    assert os.listdir(out) == []


def test_missing_parent_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="does not exist"):
        ReleaseWriter(tmp_path / "a" / "b")


def test_unwritable_parent_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(**_: object) -> str:
        raise PermissionError

    monkeypatch.setattr("louver.release.manifest.tempfile.mkdtemp", refuse)
    with pytest.raises(InputError, match="cannot be written"), ReleaseWriter(tmp_path / "release"):
        pytest.fail("unreachable")


@pytest.mark.parametrize("name", ["nothing", "empty"])
def test_no_release_directory(tmp_path: Path, name: str) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="no release directory"):
        verify(tmp_path / name)


def test_entropy_l_diversity(tmp_path: Path) -> None:
    out = write(tmp_path / "release")
    promise = {**read_manifest(out).promises[2], "kind": "entropy"}
    # Classes hold (1, 2, 0) and (1, 1, 1): the first has the entropy of 1.8899 equal values.
    assert PROMISES["l-diversity"](out, {**promise, "l": 1.88})[0]
    assert not PROMISES["l-diversity"](out, {**promise, "l": 1.9})[0]


def test_ordered_t_closeness(tmp_path: Path) -> None:
    out = write(tmp_path / "release")
    promise = {**read_manifest(out).promises[3], "distance": "ordered"}
    # Whole (2, 3, 1) / 6; class 2 (1, 1, 1) / 3: cumulative differences 0 and -1/6, over 2 steps.
    assert PROMISES["t-closeness"](out, {**promise, "t": 1 / 12})[0]
    assert not PROMISES["t-closeness"](out, {**promise, "t": 1 / 12 - 1e-6})[0]


def test_tree_distance_is_the_cost_of_moving() -> None:
    # Leaves a, b under x; c under y. Moving a -> b costs 1/2, a -> c costs 1.
    levels = [[0, 0, 1], [0, 0, 0]]
    moved = np.array([[-1.0, 1.0, 0.0], [-1.0, 0.0, 1.0]])
    assert _tree_distance(moved, levels).tolist() == [0.5, 1.0]


def test_empty_file_is_k_anonymous(tmp_path: Path) -> None:
    table = pa.table({"age": pa.array([], pa.string()), "ill": pa.array([], pa.string())})
    out = write(tmp_path / "release", table=table)
    assert PROMISES["k-anonymity"](out, read_manifest(out).promises[1])[0]


def test_missing_value_is_a_value_of_its_own(tmp_path: Path) -> None:
    table = pa.table({"age": [None, None, None, "1", "1", "1"], "ill": ILL})
    assert verify(write(tmp_path / "release", table=table)).passed
