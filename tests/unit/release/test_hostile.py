"""Somebody else's release: whatever it holds, verify fails a check or says one sentence; it never hangs, dies or looks elsewhere."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from louver.data.write import write_csv
from louver.errors import InputError
from louver.privacy.budget import Measure
from louver.privacy.ledger import Ledger
from louver.privacy.neighbours import Relation
from louver.release.folder import Folder, Malformed
from louver.release.manifest import Manifest, digest, file_entry
from louver.release.open import open_release
from louver.release.promises.base import Context
from louver.release.promises.layout import check_layout
from louver.release.sentences import TABLES
from louver.release.verify import verify
from louver.release.write import ReleaseWriter
from releases import doubt, edit, made

DATA = "data/anonymized.parquet"


@pytest.fixture
def release(tmp_path: Path) -> Path:
    return made(tmp_path / "release")


def promise(content: dict[str, Any], name: str) -> dict[str, Any]:
    return next(entry for entry in content["promises"] if entry["promise"] == name)


def said(**changes: Any) -> Callable[[Path], None]:
    """Change fields of the promise `name`, digest included."""
    name = changes.pop("name")
    return lambda out: edit(out, lambda m: promise(m, name).update(changes))


def kept_only(*names: str) -> Callable[[Path], None]:
    return lambda out: edit(out, lambda m: m.update(promises=[promise(m, name) for name in names]))


def rewritten(name: str, change: Callable[[pa.Table], pa.Table]) -> Callable[[Path], None]:
    """Replace a Parquet file, hash and digest included."""

    def apply(out: Path) -> None:
        pq.write_table(change(pq.read_table(out / name)), out / name)
        listed(out, name)

    return apply


def listed(out: Path, name: str) -> None:
    """List a file with its present bytes."""
    found = file_entry(out / name)
    entry = {"bytes": found.bytes, "sha256": found.sha256}
    edit(out, lambda m: m["files"].update({name: entry}))


def retyped(column: str, values: Callable[[int], pa.Array]) -> Callable[[Path], None]:
    def change(table: pa.Table) -> pa.Table:
        return table.set_column(table.column_names.index(column), column, values(table.num_rows))

    return rewritten(DATA, change)


def elsewhere(out: Path) -> Path:
    """A good file outside the release."""
    path = out.parent / "x.parquet"
    path.write_bytes((out / DATA).read_bytes())
    return path


def outside(spelling: str) -> Callable[[Path], None]:
    """Let every promise and the list of files speak of a file outside."""

    def apply(out: Path) -> None:
        path = elsewhere(out)
        name = str(path) if spelling == "absolute" else "../x.parquet"
        found = file_entry(path)

        def change(m: dict[str, Any]) -> None:
            m["files"][name] = {"bytes": found.bytes, "sha256": found.sha256}
            for entry in m["promises"]:
                if "file" in entry:
                    entry["file"] = name

        edit(out, change)

    return apply


def linked_folder(out: Path) -> None:
    moved = out.parent / "moved"
    (out / "data").rename(moved)
    (out / "data").symlink_to(moved, target_is_directory=True)


def linked_manifest(out: Path) -> None:
    moved = out.parent / "manifest.json"
    (out / "manifest.json").rename(moved)
    (out / "manifest.json").symlink_to(moved)


def pipe(name: str) -> Callable[[Path], None]:
    def apply(out: Path) -> None:
        (out / name).unlink(missing_ok=True)
        os.mkfifo(out / name)

    return apply


def text(change: Callable[[str], str]) -> Callable[[Path], object]:
    """Change the text of the manifest."""
    return lambda out: (out / "manifest.json").write_text(change((out / "manifest.json").read_text()))


def half_a_character(content: dict[str, Any]) -> None:
    content["method"] = "\ud800"


def write_raw(out: Path, change: Callable[[dict[str, Any]], object]) -> None:
    content = json.loads((out / "manifest.json").read_text())
    change(content)
    (out / "manifest.json").write_text(json.dumps(content))


def tree(*levels: list[int]) -> Callable[[Path], None]:
    """Ask for a hierarchical distance with an odd hierarchy."""

    def change(m: dict[str, Any]) -> None:
        promise(m, "t-closeness").update(distance="hierarchical", hierarchy=list(levels), t=1)
        m["parameters"].update(distance="hierarchical", t=1)

    return lambda out: edit(out, change)


def close(**changes: Any) -> Callable[[Path], None]:
    """Ask for closeness by other values or another distance, as the parameters then do."""

    def change(m: dict[str, Any]) -> None:
        promise(m, "t-closeness").update(changes)
        m["parameters"].update({key: changes[key] for key in {"t", "distance"} & set(changes)})

    return lambda out: edit(out, change)


def hollow(name: str) -> Callable[[Path], None]:
    """A file of two terabytes that takes no room on the disk, listed with its size."""

    def apply(out: Path) -> None:
        os.truncate(out / name, 1 << 41)
        edit(out, lambda m: m["files"][name].update(bytes=1 << 41))

    return apply


NOBODY = [[f"nobody {i}"] for i in range(100)]

HOSTILE: dict[str, Callable[[Path], object]] = {
    "files outside, relative": outside("relative"),
    "files outside, absolute": outside("absolute"),
    "a link as an extra folder": lambda out: (out / "more").symlink_to(out.parent, target_is_directory=True),
    "a link as the data folder": linked_folder,
    "a link as the manifest": linked_manifest,
    "a pipe as an extra file": pipe("data/more.parquet"),
    "a pipe as a listed file": pipe(DATA),
    "a pipe as the manifest": pipe("manifest.json"),
    "k negative": said(name="k-anonymity", k=-5),
    "k true": said(name="k-anonymity", k=True),
    "k as text": said(name="k-anonymity", k="3"),
    "k with a fraction": said(name="k-anonymity", k=2.5),
    "k missing": lambda out: edit(out, lambda m: promise(m, "k-anonymity").pop("k")),
    "k infinite": text(lambda t: t.replace('"k": 3\n', '"k": 1e999\n')),
    "k smaller than asked for": said(name="k-anonymity", k=1),
    "a quasi-identifier left out": said(name="k-anonymity", quasi=[]),
    "another quasi-identifier": said(name="k-anonymity", quasi=["ill"]),
    "l below one": said(name="l-diversity", l=0),
    "l smaller than asked for": said(name="l-diversity", l=1),
    "t above one": said(name="t-closeness", t=7),
    "t larger than asked for": said(name="t-closeness", t=1),
    "only the number of records": kept_only("records"),
    "no k": kept_only("records", "mapping", "losses", "l-diversity", "t-closeness"),
    "no l": kept_only("records", "mapping", "losses", "k-anonymity", "t-closeness"),
    "a promise of another verb": lambda out: edit(
        out, lambda m: m["promises"].append({"promise": "group-counts"})
    ),
    "an unknown verb": lambda out: edit(out, lambda m: m.update(verb="anything")),
    "a promise with something more": said(name="records", also=1),
    "promises as a mapping": lambda out: edit(out, lambda m: m.update(promises={"records": 6})),
    "promises as text": lambda out: edit(out, lambda m: m.update(promises="all")),
    "a promise as text": lambda out: edit(out, lambda m: m["promises"].append("all")),
    "a promise without a name": lambda out: edit(out, lambda m: m["promises"].append({})),
    "a promise with a list for a name": said(name="records", promise=["records"]),
    "files as a list": lambda out: edit(out, lambda m: m.update(files=[])),
    "sizes as text": lambda out: edit(out, lambda m: m["files"][DATA].update(bytes="1")),
    "a format to come": lambda out: edit(out, lambda m: m.update(format=2)),
    "parameters as a list": lambda out: edit(out, lambda m: m.update(parameters=[])),
    "quasi-identifiers as a number": lambda out: edit(out, lambda m: m["parameters"].update(quasi=5)),
    "a key twice": text(lambda t: t.replace('"verb"', '"method": "exact",\n "verb"', 1)),
    "deep JSON": text(lambda t: t.replace('"warnings": []', '"warnings": ' + "[" * 9999 + "]" * 9999)),
    "an integer of 5,000 digits": text(lambda t: t.replace('"k": 3', '"k": ' + "9" * 5000)),
    "a number of 1,000 digits": lambda out: edit(out, lambda m: m["results"].update(a=10**1000)),
    "not a number": lambda out: edit(out, lambda m: m["results"].update(a=float("nan"))),
    "infinity": lambda out: edit(out, lambda m: m["results"].update(a=float("inf"))),
    "infinity by its exponent": text(lambda t: t.replace('"suppressed": 0', '"suppressed": 1e999')),
    "two terabytes of holes": hollow(DATA),
    "values that nobody has": close(
        values=[["cold"], *NOBODY, ["flu"], ["ulcer"]], distance="ordered", t=0.2
    ),
    "levels above the root": close(distance="hierarchical", hierarchy=[[0, 0, 1], *[[0, 0, 0]] * 60], t=0.01),
    "half a character": lambda out: write_raw(out, half_a_character),
    "half a character as a file": lambda out: write_raw(
        out, lambda m: m["files"].update({"\ud800": {"bytes": 1, "sha256": ""}})
    ),
    "not UTF-8": lambda out: (out / "manifest.json").write_bytes(b"\xff\xfe{}"),
    "a nul in a file's name": lambda out: edit(
        out, lambda m: m["files"].update({"a\0b": {"bytes": 1, "sha256": ""}})
    ),
    "an over-long file name": lambda out: edit(
        out, lambda m: m["files"].update({"a" * 9999: {"bytes": 1, "sha256": ""}})
    ),
    "a hierarchy without levels": tree(),
    "a hierarchy of another length": tree([0, 0], [0, 0]),
    "a hierarchy without a root": tree([0, 1, 1]),
    "a hierarchy that parts again": tree([0, 0, 1], [0, 1, 1], [0, 0, 0]),
    "a hierarchy with negative numbers": tree([0, -1, 5], [0, 0, 0]),
    "values twice": said(name="l-diversity", values=[["flu"], ["cold"], ["ulcer"], ["flu"]]),
    "values left out": said(name="l-diversity", values=[["flu"], ["cold"]]),
    "values as numbers": said(name="l-diversity", values=[1, 2, 3]),
    "quasi-identifier as lists": retyped("age", lambda n: pa.array([["20-29"]] * n)),
    "quasi-identifier as structs": retyped("age", lambda n: pa.array([{"a": 1}] * n)),
    "quasi-identifier as bytes": retyped("age", lambda n: pa.array([b"\xff"] * n)),
    "quasi-identifier all null": retyped("age", lambda n: pa.nulls(n)),
    "quasi-identifier as numbers": retyped("age", lambda n: pa.array([1.5] * n)),
    "sensitive as lists": retyped("ill", lambda n: pa.array([["flu"]] * n)),
    "sensitive as times": retyped("ill", lambda n: pa.array([1] * n, pa.timestamp("ns"))),
    "a column twice": rewritten(
        DATA, lambda t: pa.table([*t.columns, t["age"]], names=["age", "ill", "age"])
    ),
    "a column gone": rewritten(DATA, lambda t: t.drop_columns(["ill"])),
    "a mapping of another form": rewritten("data/mapping.parquet", lambda t: t.drop_columns(["members"])),
    "a mapping of other types": rewritten(
        "data/mapping.parquet",
        lambda t: t.set_column(6, "records", pa.array(["3"] * t.num_rows)),
    ),
    "a mapping of unknown sorts": rewritten(
        "data/mapping.parquet", lambda t: t.set_column(2, "sort", pa.array(["all"] * t.num_rows))
    ),
    "a mapping of missing names": rewritten(
        "data/mapping.parquet", lambda t: t.set_column(0, "attribute", pa.nulls(t.num_rows, pa.string()))
    ),
    "no Parquet at all": lambda out: ((out / DATA).write_bytes(b"PAR1 nothing PAR1"), listed(out, DATA)),
}


def test_closeness_is_not_diluted(release: Path) -> None:
    """The classes are 1/6 away from the whole, in order and in a tree; no list of values and no more levels make that less."""
    honest = {"distance": "ordered", "values": [["flu"], ["cold"], ["ulcer"]]}
    assert doubt(release, "t-closeness", **honest, t=0.17).passed
    assert not doubt(release, "t-closeness", **honest, t=0.16).passed
    diluted = {**honest, "values": [["flu"], ["cold"], ["ulcer"], *NOBODY]}
    found = doubt(release, "t-closeness", **diluted, t=0.1)
    assert not found.passed and "no published record has" in found.found
    tree = {"distance": "hierarchical", "values": honest["values"]}
    assert doubt(release, "t-closeness", **tree, hierarchy=[[0, 0, 1], [0, 0, 0]], t=0.17).passed
    found = doubt(release, "t-closeness", **tree, hierarchy=[[0, 0, 1], *[[0, 0, 0]] * 60], t=0.1)
    assert not found.passed and "root" in found.found


@pytest.mark.parametrize("attack", HOSTILE.values(), ids=HOSTILE.keys())
def test_a_hostile_release_fails(release: Path, attack: Callable[[Path], object]) -> None:
    attack(release)
    try:
        outcome = verify(release)
    except InputError:
        return
    assert not outcome.passed
    str(outcome).encode()
    outcome.to_json().encode()


def test_huge_numbers_of_nodes_cost_nothing(release: Path) -> None:
    tree([0, 2**62, 5], [0, 0, 0])(release)
    assert verify(release).passed


def test_nothing_outside_is_opened(release: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    outside("relative")(release)
    opened: list[str] = []
    real = Path.open
    monkeypatch.setattr(Path, "open", lambda self, *a, **k: opened.append(str(self)) or real(self, *a, **k))
    assert not verify(release).passed
    assert not any("x.parquet" in name for name in opened)


def test_names_cannot_forge_lines(release: Path) -> None:
    name = "data/a\n  passed everything: \x1b[32myes"
    edit(release, lambda m: m["files"].update({name: {"bytes": 1, "sha256": ""}}))
    told = str(verify(release))
    assert "\x1b" not in told and "\n  passed everything" not in told


BOMB_ROWS = 24_000_000  # two columns of 200 letters: ten gigabytes, three times what the process may take


@pytest.mark.long
def test_a_bomb_is_read_in_small_pieces(release: Path) -> None:
    """A file of a megabyte that unfolds to gigabytes: every row is looked at, with little memory."""
    column = pa.DictionaryArray.from_arrays(pa.array(np.zeros(1 << 22, np.int32)), ["20-29" * 40])
    part = pa.table({"age": column, "ill": column})
    with pq.ParquetWriter(release / DATA, part.schema, store_schema=False) as writer:  # read as text
        for _ in range(BOMB_ROWS // (1 << 22)):
            writer.write_table(part, row_group_size=1 << 22)
    listed(release, DATA)
    program = (
        "import resource, sys; from louver.release.verify import verify;"
        "resource.setrlimit(resource.RLIMIT_AS, (3 << 30, 3 << 30));"
        f"outcome = verify({str(release)!r});"
        "print(outcome.passed, [c.found for c in outcome.checks if c.name == 'k-anonymity'])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("False ['smallest of 1 classes has"), done.stdout
    assert resource.getrlimit(resource.RLIMIT_AS)[0] != 3 << 30


def test_a_mapping_larger_than_the_records_allow_is_not_read(release: Path) -> None:
    mapping = pq.read_table(release / "data/mapping.parquet")
    pq.write_table(pa.concat_tables([mapping] * 100), release / "data/mapping.parquet")
    listed(release, "data/mapping.parquet")
    found = {check.name: check.found for check in verify(release).checks}
    assert "larger than the promise allows" in found["mapping"]


def test_a_table_with_too_many_values_is_not_read(release: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    most = 1 << 16
    monkeypatch.setattr("louver.release.folder.MOST_VALUES", most)
    assert verify(release).passed
    members = pa.ListArray.from_arrays(
        pa.array([0, most // 2, most + 1], pa.int32()),
        pa.DictionaryArray.from_arrays(pa.array(np.zeros(most + 1, np.int8)), ["a"]),
    )
    mapping = pq.read_table(release / "data/mapping.parquet")
    pq.write_table(mapping.set_column(5, "members", members), release / "data/mapping.parquet")
    listed(release, "data/mapping.parquet")
    found = {check.name: check.found for check in verify(release).checks}
    assert "larger than the promise allows" in found["mapping"]


def test_more_rows_than_the_size_of_a_file_allows_are_not_read(
    release: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("louver.release.folder.FREE_VALUES", 1000)
    assert verify(release).passed
    column = pa.DictionaryArray.from_arrays(pa.array(np.zeros(1 << 20, np.int32)), ["20-29"])
    pq.write_table(pa.table({"age": column, "ill": column}), release / DATA)
    listed(release, DATA)
    found = {check.name: check.found for check in verify(release).checks if not check.passed}
    assert "more values than its size allows" in found["k-anonymity"]
    with pytest.raises(InputError, match="cannot be read"):
        open_release(release).tables["anonymized"]


def test_a_report_larger_than_any_is_not_read(release: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (release / "report.html").write_text("<p>report</p>")
    listed(release, "report.html")
    monkeypatch.setattr("louver.release.folder.MOST_TEXT", 5)
    with pytest.raises(InputError, match="too large to be read"):
        _ = open_release(release).report


def test_a_manifest_of_too_many_parts_is_not_parsed(release: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("louver.release.strict_json.MOST_PARTS", 10)
    with pytest.raises(InputError, match="is not a manifest"):
        open_release(release)


def test_a_manifest_that_is_too_long_is_not_parsed(release: Path) -> None:
    with (release / "manifest.json").open("ab") as stream:
        stream.truncate(1 << 40)
    with pytest.raises(InputError, match="is not a manifest"):
        open_release(release)


def shares(out: Path, *texts: str) -> Path:
    """A release of one table of shares."""
    table = {"file": "data/01-a.parquet", "by": ["a", "b"], "base": None, "total": None, "n_rows_by": 1}
    told = {**table, "decimals": 1}
    manifest = Manifest(
        verb="audit",
        method="tables",
        parameters={"small": 5, "within": None, "tables": [{"name": "a", **told}]},
        promises=[{"promise": "tables", "tables": [told]}],
        disclosures=(TABLES,),
    )
    rows = pa.table({"a": ["x"] * len(texts), "b": list(map(str, range(len(texts)))), "share": list(texts)})
    with ReleaseWriter(out) as writer:
        pq.write_table(rows, writer.path("data/01-a.parquet"))
        write_csv(rows, writer.path("data/01-a.csv"))
        writer.seal(manifest)
    return out


@pytest.mark.parametrize("text", ["1e-999999999", "1E9", "1/0", "1/00", "-0.5", "0." + "1" * 99, "nan", "½"])
def test_a_share_that_is_no_number_is_not_computed(tmp_path: Path, text: str) -> None:
    out = shares(tmp_path / "out", "0.5", "0.5")
    rewritten("data/01-a.parquet", lambda t: t.set_column(2, "share", pa.array(["0.5", text])))(out)
    assert "a share is not a number" in [check.found for check in verify(out).checks]


def test_decimals_beyond_any_are_not_computed(tmp_path: Path) -> None:
    out = shares(tmp_path / "out", "0.5", "0.5")

    def change(m: dict[str, Any]) -> None:
        promise(m, "tables")["tables"][0]["decimals"] = m["parameters"]["tables"][0]["decimals"] = 10**10

    edit(out, change)
    assert not verify(out).passed


def test_a_pipe_does_not_hang_the_ledger(release: Path, tmp_path: Path) -> None:
    ledger = Ledger.create(tmp_path / "ledger", Measure.EPSILON, Relation.CHANGE_RECORD, 1)
    pipe("manifest.json")(release)
    pipe("data/more.parquet")(release)
    assert ledger.verify(tmp_path).problems == ()


def test_only_what_has_noise_is_asked_for_private_noise(release: Path) -> None:
    assert "private noise" not in [check.name for check in verify(release).checks]


@pytest.mark.parametrize("attack", ["a pipe as the manifest", "a key twice", "deep JSON", "files as a list"])
def test_what_cannot_be_read_is_not_opened(release: Path, attack: str) -> None:
    HOSTILE[attack](release)
    with pytest.raises(InputError):
        open_release(release)


def test_digest_follows_the_content(release: Path) -> None:
    content = json.loads((release / "manifest.json").read_text())
    assert content["digest"] == digest(content)


def test_many_files_of_holes_are_not_read(release: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each may be small; together they would take as long to read as a large one."""
    for i in range(4):
        with (release / f"data/{i}.bin").open("wb") as stream:
            stream.truncate(1 << 29)
        edit(release, lambda m, i=i: m["files"].update({f"data/{i}.bin": {"bytes": 1 << 29, "sha256": ""}}))
    monkeypatch.setattr("louver.release.verify.file_entry", lambda path: pytest.fail("it was read"))
    assert [check.name for check in verify(release).checks if not check.passed] == ["files"]


def test_a_false_description_of_a_column_does_not_end_the_process(tmp_path: Path) -> None:
    """The footer says that the text is whole numbers, whose sizes it should not have."""
    path = tmp_path / "rows.parquet"
    pq.write_table(pa.table({"site": ["A", "B", "A"]}), path)
    content = bytearray(path.read_bytes())
    start = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
    place = content.index(b"\x15\x0c", start)
    content[place + 1] = 0x02
    path.write_bytes(content)
    with pytest.raises(Malformed, match="rows.parquet is damaged"):
        Folder(tmp_path, {path.name}).footer(path.name)


def test_a_number_outside_its_dictionary_does_not_crash(tmp_path: Path) -> None:
    """Reading leaves such numbers as they are; writing the rows again would end the process."""
    table = pa.table({"site": pa.array(["A", "B", "C"] * 40)})
    path = tmp_path / "rows.parquet"
    pq.write_table(table, path, compression="none")
    column = pq.read_metadata(path).row_group(0).column(0)
    content = bytearray(path.read_bytes())
    content[column.dictionary_page_offset + column.total_compressed_size - 1] = 0xFF  # the last four rows
    path.write_bytes(content)
    folder = Folder(tmp_path, {path.name})
    with pytest.raises(Malformed, match="rows.parquet is damaged"):
        list(folder.batches(path.name, ["site"]))
    context = Context(folder, SimpleNamespace(files={path.name: None}))
    with pytest.raises(Malformed, match="rows.parquet is damaged"):
        check_layout(context)
