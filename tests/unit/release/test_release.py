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

from louver.errors import InputError, PromiseError
from louver.release.manifest import Manifest, read_manifest
from louver.release.promises.sensitive import tree_distance
from louver.release.verify import verify
from louver.release.write import ReleaseWriter
from releases import doubt, edit, made, table_of

AGES = ["20-29", "20-29", "20-29", "30-39", "30-39", "30-39"]
ILL = ["flu", "cold", "flu", "cold", "flu", "ulcer"]


def test_release_passes_and_reads_back(tmp_path: Path) -> None:
    out = made(tmp_path / "release")
    outcome = verify(out)
    assert outcome.passed, repr(outcome)
    assert {check.name for check in outcome.checks} >= {
        entry["promise"] for entry in read_manifest(out).promises
    }
    manifest = read_manifest(out)
    assert set(manifest.files) == {"data/anonymized.parquet", "data/mapping.parquet"}
    assert manifest.created and manifest.parameters["k"] == 3
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
    a, b = out / "data/anonymized.parquet", out / "data/mapping.parquet"
    first, second = a.read_bytes(), b.read_bytes()
    a.write_bytes(second)
    b.write_bytes(first)


def append_a_byte(out: Path) -> None:
    with (out / "data/mapping.parquet").open("ab") as stream:
        stream.write(b" ")


def replace_by_link(out: Path) -> None:
    path = out / "data/mapping.parquet"
    moved = out.parent / "elsewhere.parquet"
    path.rename(moved)
    path.symlink_to(moved)


TAMPERING: dict[str, Callable[[Path], object]] = {
    "a value changed": change_a_value,
    "a row dropped": drop_a_row,
    "files swapped": swap_files,
    "a byte appended to the mapping": append_a_byte,
    "the mapping removed": lambda out: (out / "data/mapping.parquet").unlink(),
    "a file added": lambda out: (out / "data/raw.csv").write_text("name\n"),
    "a hidden file added": lambda out: (out / ".note").write_text("x"),
    "a file replaced by a link": replace_by_link,
    "manifest cut short": lambda out: (out / "manifest.json").write_text("{"),
    "manifest is a list": lambda out: (out / "manifest.json").write_text("[]"),
    "manifest edited": lambda out: edit(out, lambda m: m.update(method="auto"), with_digest=False),
    "digest removed": lambda out: edit(out, lambda m: m.pop("digest"), with_digest=False),
    "a larger k claimed": lambda out: edit(out, lambda m: m["promises"][3].update(k=4)),
    "a quasi-identifier more claimed": lambda out: edit(
        out, lambda m: m["promises"][3].update(quasi=["age", "ill"])
    ),
    "more records claimed": lambda out: edit(out, lambda m: m["promises"][0].update(records=7)),
    "a larger l claimed": lambda out: edit(out, lambda m: m["promises"][4].update(l=3)),
    "a smaller t claimed": lambda out: edit(out, lambda m: m["promises"][5].update(t=0.1)),
    "promises removed": lambda out: edit(out, lambda m: m.update(promises=[])),
    "unknown promise": lambda out: edit(out, lambda m: m["promises"][0].update(promise="safe")),
    "promise without its file": lambda out: edit(out, lambda m: m["promises"][0].pop("file")),
    "not for release": lambda out: edit(out, lambda m: m.update(not_for_release=True)),
}


@pytest.mark.parametrize("tamper", TAMPERING.values(), ids=TAMPERING.keys())
def test_tampering_is_noticed(tmp_path: Path, tamper: Callable[[Path], object]) -> None:
    out = made(tmp_path / "release")
    tamper(out)
    outcome = verify(out)
    assert not outcome.passed
    assert "FAILED" in repr(outcome)


def test_evaluation_is_not_for_release(tmp_path: Path) -> None:
    assert not verify(made(tmp_path / "release", not_for_release=True)).passed


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
    with pytest.raises(InputError, match="already exists"):
        ReleaseWriter(out)


def test_out_that_appears_meanwhile_is_not_replaced(tmp_path: Path) -> None:
    out = tmp_path / "release"

    def appear() -> str:
        out.mkdir()
        return "0:ab"

    with pytest.raises(InputError, match="already exists"):
        made(out, log=appear)
    assert os.listdir(out) == [] and os.listdir(tmp_path) == ["release"]


def test_missing_parent_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="does not exist"):
        ReleaseWriter(tmp_path / "a" / "b")


def test_unwritable_parent_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(**_: object) -> str:
        raise PermissionError

    monkeypatch.setattr("louver.release.write.tempfile.mkdtemp", refuse)
    with pytest.raises(InputError, match="is not writable"), ReleaseWriter(tmp_path / "release"):
        pytest.fail("unreachable")


@pytest.mark.parametrize("name", ["nothing", "empty"])
def test_no_release_directory(tmp_path: Path, name: str) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="not a release directory"):
        verify(tmp_path / name)


def test_entropy_l_diversity(tmp_path: Path) -> None:
    out = made(tmp_path / "release")
    # Classes hold (1, 2, 0) and (1, 1, 1): the first has the entropy of 1.8899 equal values.
    assert doubt(out, "l-diversity", kind="entropy", l=1.88).passed
    assert not doubt(out, "l-diversity", kind="entropy", l=1.9).passed


def test_ordered_t_closeness(tmp_path: Path) -> None:
    out = made(tmp_path / "release")
    # Whole (2, 3, 1) / 6; class 2 (1, 1, 1) / 3: cumulative differences 0 and -1/6, over 2 steps.
    assert doubt(out, "t-closeness", distance="ordered", t=1 / 12).passed
    assert not doubt(out, "t-closeness", distance="ordered", t=1 / 12 - 1e-6).passed


def test_hierarchical_t_closeness(tmp_path: Path) -> None:
    out = made(tmp_path / "release")
    # Half of the sums of |difference| over leaves (1/3, 1/3) and over the nodes above (0 and 0): 1/6 over two levels.
    tree = [[0, 1, 1], [0, 0, 0]]
    assert doubt(out, "t-closeness", distance="hierarchical", hierarchy=tree, t=0.17).passed
    assert not doubt(out, "t-closeness", distance="hierarchical", hierarchy=tree, t=0.01).passed


def test_tree_distance_is_the_cost_of_moving() -> None:
    # Leaves a, b under x; c under y. Moving a -> b costs 1/2, a -> c costs 1.
    levels = [[0, 0, 1], [0, 0, 0]]
    moved = np.array([[-1.0, 1.0, 0.0], [-1.0, 0.0, 1.0]])
    assert tree_distance(moved, levels).tolist() == [0.5, 1.0]


def test_empty_file_is_k_anonymous(tmp_path: Path) -> None:
    out = made(tmp_path / "release")
    pq.write_table(
        table_of([], []).cast(pa.schema([("age", pa.string()), ("ill", pa.string())])),
        out / "data/anonymized.parquet",
    )
    for name in ("k-anonymity", "l-diversity", "t-closeness"):
        assert doubt(out, name).passed


def test_missing_value_is_a_value_of_its_own(tmp_path: Path) -> None:
    table = table_of([None] * 3 + ["1"] * 3, ILL)
    assert verify(made(tmp_path / "release", table=table)).passed


def test_early_releases_list_one_text_for_each_value(tmp_path: Path) -> None:
    """Until now values were written as the source had them: 1 for 1.0, true for True, None for a missing one."""
    for number, (ill, values) in enumerate(
        [([1.0, 2.5, None] * 2, ["1", "2.5", "None"]), ([True, False, None] * 2, ["true", "false", "None"])]
    ):
        out = made(tmp_path / str(number), table=table_of(["1"] * 3 + ["2"] * 3, ill))
        assert doubt(out, "l-diversity", values=values, l=3).passed
        assert not doubt(out, "l-diversity", values=values[:-1]).passed


def test_what_does_not_keep_its_promises_is_not_written(tmp_path: Path) -> None:
    with pytest.raises(PromiseError, match="k-anonymity") as caught:
        made(tmp_path / "release", k=4)
    assert caught.value.promise == "k-anonymity" and os.listdir(tmp_path) == []


def test_a_release_is_logged_only_once_it_is_known_to_be_good(tmp_path: Path) -> None:
    def log() -> str:
        pytest.fail("unreachable")

    with pytest.raises(PromiseError), ReleaseWriter(tmp_path / "release") as writer:
        writer.seal(Manifest(verb="anonymize", method="exact", parameters={}, promises=[]), log)


@pytest.mark.parametrize("mask", [0o022, 0o027, 0o077])
def test_permissions_follow_the_umask(tmp_path: Path, mask: int) -> None:
    before = os.umask(mask)
    try:
        out = made(tmp_path / "release")
    finally:
        os.umask(before)
    for path in (out, out / "data"):
        assert path.stat().st_mode & 0o777 == 0o777 & ~mask
    for path in (out / "manifest.json", out / "data/anonymized.parquet", out / "data/mapping.parquet"):
        assert path.stat().st_mode & 0o777 == 0o666 & ~mask


def test_what_a_killed_run_left_is_swept_and_what_a_live_one_holds_is_not(tmp_path: Path) -> None:
    stale = tmp_path / ".release.partial-killed"
    (stale / "data").mkdir(parents=True)
    (tmp_path / ".other.partial-killed").mkdir()
    (tmp_path / ".release.partial-link").symlink_to(tmp_path / ".other.partial-killed")
    with ReleaseWriter(tmp_path / "release") as live:
        live.path("data/a").write_text("a")
        assert not stale.exists()
        with ReleaseWriter(tmp_path / "release"):
            assert live.path("data/a").exists()
    assert sorted(os.listdir(tmp_path)) == [".other.partial-killed", ".release.partial-link"]


def test_a_full_disk_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be written"), ReleaseWriter(tmp_path / "release"):
        raise OSError(28, "No space left on device")
    assert os.listdir(tmp_path) == []
