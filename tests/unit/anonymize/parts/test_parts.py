"""Files cut into parts: the same records, the same promises, losses by the range of the whole file."""

from __future__ import annotations

import json
import tempfile
from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

import louver as lv
from louver.anonymize import parts as parts_module
from louver.anonymize import result
from louver.anonymize.parts import spill
from louver.anonymize.parts import spill as arrange
from louver.errors import Cancelled, InfeasibleError, InputError
from louver.run import Run

QUASI = ("age", "town", "size", "region")


def records(n: int = 60, seed: int = 3) -> pa.Table:
    """Numbers with gaps, labels, ordered labels, labels under a hierarchy, and what travels along."""
    random = np.random.default_rng(seed)
    age = random.integers(0, 30, n)
    return pa.table(
        {
            "id": np.arange(n),
            "age": pa.array(age, mask=age % 11 == 0),
            "town": random.choice(["Ayr", "Bute", "Cairn"], n),
            "size": random.choice(["1", "2", "3", "4"], n),
            "region": random.choice(list("abcd"), n),
            "ill": random.choice(["flu", "cold", "ulcer"], n),
        }
    )


@pytest.fixture
def options(tmp_path: Path) -> dict[str, object]:
    (tmp_path / "region.csv").write_text("a;west;*\nb;west;*\nc;east;*\nd;east;*\n")
    return {
        "quasi": QUASI,
        "identifying": "id",
        "sensitive": "ill",
        "ordered": "size",
        "hierarchy": {"region": tmp_path / "region.csv"},
        "k": 3,
        "method": "sorted",
        "keep_order": True,
    }


def data_of(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (folder / "data").iterdir()}


@pytest.mark.parametrize(
    "more",
    [
        {},
        {"format": "bounds"},
        {"l": 2, "missing": "match"},
        {"suppress": 0.2, "l": 2},
        {"one_hot": ["town"], "weights": {"age": 2.0}, "normalise": True},
        {"recode": {"age": {"bins": [10, 20]}}, "ordered": {"size": ["4", "3", "2", "1"]}},
        {"where": "town != 'Bute'", "missing_code": {"age": ["7"]}},
    ],
)
def test_one_part_is_the_ordinary_run(
    more: dict[str, object], options: dict[str, object], tmp_path: Path
) -> None:
    whole = lv.anonymize(records(), **{**options, **more}, out=tmp_path / "whole")
    alone = lv.anonymize(records(), **{**options, **more}, out=tmp_path / "alone", parts=1)
    assert data_of(tmp_path / "whole") == data_of(tmp_path / "alone")
    assert alone.utility == whole.utility and alone.risk == whole.risk and alone.promises == whole.promises
    assert alone.comparison == whole.comparison and alone.reached == whole.reached
    assert alone.n_alone == whole.n_alone and alone.to_frame().equals(whole.to_frame())


@pytest.mark.parametrize(
    "more",
    [
        {"csv": True},
        {"round_to": {"pay": 10}, "top_code": {"pay": 90}},
        pytest.param({"curve": [2, 5]}, marks=pytest.mark.long),
        {"sampling_weight": "weight"},
        {"population": "population.csv"},
        {"new_population": True},
    ],
    ids=lambda more: "-".join(more),
)
def test_parts_take_what_a_file_in_memory_takes(
    more: dict[str, object], options: dict[str, object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(result, "BATCH_RECORDS", 7)
    source = (
        records()
        .append_column("pay", pa.array([row * 37 % 100 + 0.5 for row in range(60)]))
        .append_column("weight", pa.array([1 + row % 4 for row in range(60)]))
    )
    pa.csv.write_csv(source, tmp_path / "people.csv")
    pa.csv.write_csv(source.select([*QUASI]).slice(0, 50), tmp_path / "population.csv")
    keep = ["pay"] if "sampling_weight" in more else ["pay", "weight"]
    given = {**options, **more, "keep": keep}
    found = {}
    for name, parts in (("whole", {}), ("alone", {"parts": 1}), ("cut", {"parts": 3})):
        register = {"registry": tmp_path / f"register {name}"} if "new_population" in more else {}
        found[name] = lv.anonymize(tmp_path / "people.csv", **given, **parts, **register, out=tmp_path / name)
        assert lv.verify(tmp_path / name).passed
    whole, alone, cut = found["whole"], found["alone"], found["cut"]
    assert data_of(tmp_path / "whole") == data_of(tmp_path / "alone")
    assert (whole.risk, whole.alike, whole.n_alone) == (alone.risk, alone.alike, alone.n_alone)
    assert whole.entry == alone.entry and (whole.entry is None) == (cut.entry is None)
    points = [
        [(p.k, p.gcp, p.highest_risk) for p in one.curve if p.method == "sorted"] for one in (whole, alone)
    ]
    assert points[0] == points[1]
    assert len(cut.curve) == len(whole.curve) and len(cut.part_sizes) == 3
    assert (cut.risk.journalist_highest is None) == (whole.risk.journalist_highest is None)


def test_a_csv_file_gets_the_same_types(options: dict[str, object], tmp_path: Path) -> None:
    """What every published record has decides, whichever part it is in."""
    table = (
        records()
        .append_column("pay", pa.array(["1"] * 59 + ["2.5"]))
        .append_column("code", pa.array(["07"] * 60))
    )
    pa.csv.write_csv(table, tmp_path / "people.csv")
    given = {**options, "keep": ["pay", "code"], "l": 2}
    for name, more in (("whole", {}), ("alone", {"parts": 1}), ("cut", {"parts": 4})):
        lv.anonymize(tmp_path / "people.csv", **given, **more, out=tmp_path / name)
    assert data_of(tmp_path / "whole") == data_of(tmp_path / "alone")
    kinds = [pq.read_schema(tmp_path / name / "data/anonymized.parquet") for name in ("whole", "cut")]
    assert kinds[0] == kinds[1] and kinds[0].field("pay").type == pa.float64()
    assert lv.verify(tmp_path / "cut").passed


@pytest.mark.parametrize(
    "more", [{}, {"format": "bounds", "class_id": True}, {"l": 2, "l_kind": "entropy"}, {"suppress": 0.3}]
)
def test_parts_keep_every_promise(
    more: dict[str, object], options: dict[str, object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(arrange, "STRETCH_ROWS", 16)
    monkeypatch.setattr(spill, "FLUSH_ROWS", 10)
    source = records()
    release = lv.anonymize(source, **{**options, **more}, out=tmp_path / "release", parts=4)
    assert lv.verify(tmp_path / "release").passed
    assert len(release.part_sizes) == 4 and sum(release.part_sizes) == 60
    assert release.smallest_class >= 3 and release.n_suppressed <= 0.3 * 60
    assert release.lower_bound is None
    file = pq.ParquetFile(tmp_path / "release/data/anonymized.parquet").metadata
    groups = [file.row_group(i).num_rows for i in range(file.num_row_groups)]
    assert all(n == 16 for n in groups[:-1])  # nothing tells where records were left out
    if not release.n_suppressed:
        assert release.to_frame()["ill"].to_pylist() == source["ill"].to_pylist()
        covered(source, release)


def covered(source: pa.Table, release: lv.AnonymizedRelease) -> None:
    """Every record is published as something that its own values belong to, and what is lost follows from that."""
    lines = {(line["attribute"], line["published"]): line for line in release.mapping.to_pylist()}
    n_labels = {"town": 3, "region": 4}
    published = release.to_frame()
    if "age" not in published.column_names:
        return
    ages = [age for age in source["age"].to_pylist() if age is not None]
    for name, loss in release.utility.by_column:
        lost = 0.0
        for value, label in zip(source[name].to_pylist(), published[name].to_pylist(), strict=True):
            line = lines[name, label]
            if name == "age":
                if line["sort"] == "interval":
                    assert line["lower"] <= value <= line["upper"]
                    lost += (line["upper"] - line["lower"]) / (max(ages) - min(ages))
                lost += line["sort"] == "anything"
            else:
                assert value in line["members"]
                lost += (len(line["members"]) - 1) / n_labels.get(name, 3)
        assert loss == pytest.approx(lost / source.num_rows)


@pytest.mark.parametrize("engine", ["local:1", "local:2"])
def test_classes_do_not_depend_on_the_engine(engine: str, options: dict[str, object], tmp_path: Path) -> None:
    for name in ("one", engine):
        address = "local:1" if name == "one" else name
        lv.anonymize(records(), **options, out=tmp_path / name, parts=3, engine=address)
    assert data_of(tmp_path / "one") == data_of(tmp_path / engine)
    assert "engine" not in json.loads((tmp_path / engine / "manifest.json").read_text())["parameters"]


def test_parts_lose_no_less_than_the_best_partition_of_the_whole(tmp_path: Path) -> None:
    table = records(24).select(["age", "town"])
    given = {"quasi": ["age", "town"], "k": 3, "method": "exact", "steps": 10_000}
    whole = lv.anonymize(table, **given)
    cut = lv.anonymize(table, **given, parts=2, out=tmp_path / "cut")
    assert whole.status.name == "OPTIMAL" and whole.lower_bound is not None
    assert cut.utility.information_loss >= whole.lower_bound - 1e-9
    assert cut.status.name == "FEASIBLE" and "in 2 parts of at most" in repr(cut)


def test_rows_come_in_a_random_order(
    options: dict[str, object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(arrange, "STRETCH_ROWS", 16)
    given = {**options, "keep": ["id"], "identifying": ()}
    kept, mixed = (
        lv.anonymize(
            records(), **{**given, "keep_order": is_kept}, out=tmp_path / str(is_kept), parts=4
        ).to_frame()
        for is_kept in (True, False)
    )
    assert kept["id"].to_pylist() == list(range(60)) != mixed["id"].to_pylist()
    assert Counter(map(str, kept.to_pylist())) == Counter(map(str, mixed.to_pylist()))


def test_parts_without_enough_sensitive_values_are_taken_together(tmp_path: Path) -> None:
    """Where one half of the file has a single sensitive value, no class could be formed there."""
    table = pa.table({"age": list(range(40)), "ill": ["flu"] * 20 + ["flu", "cold"] * 10})
    release = lv.anonymize(
        table, quasi="age", sensitive="ill", k=2, l=2, parts=4, method="sorted", out=tmp_path / "out"
    )
    assert lv.verify(tmp_path / "out").passed and release.reached[0].l == 2
    assert len(release.part_sizes) == 2 and max(release.part_sizes) == 30


def test_auto_makes_one_part_of_a_small_file(options: dict[str, object], tmp_path: Path) -> None:
    assert len(lv.anonymize(records(), **options, parts="auto", out=tmp_path / "out").part_sizes) == 1


@pytest.mark.parametrize("stage", ["counting", "cutting", "forming classes", "arranging"])
def test_a_cancelled_run_leaves_nothing(
    stage: str, options: dict[str, object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    before = set(tmp_path.iterdir())

    def stop(now: str, done: float, total: float) -> None:
        if now == stage:
            run.cancel()

    run = Run(stop)
    with pytest.raises(Cancelled):
        lv.anonymize(records(), **options, parts=3, out=tmp_path / "out", run=run)
    assert set(tmp_path.iterdir()) == before


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ({"recoding": "global", "method": "auto"}, "--recoding global: one recoding"),
        ({"t": 0.3}, "--t: a part is not close"),
        ({"unit": "id", "identifying": (), "method": "auto"}, "--unit: the records of a unit"),
        ({"population": "people.csv", "k_map": True}, "--k-map: a part may match too few"),
        ({"against": ["earlier"]}, "--against: everyone is looked up"),
        ({"method": "freeform-greedy"}, "every record is matched"),
        ({"parts": 0}, "from 1 to 10000"),
        ({"parts": "many"}, "must be auto or a whole number"),
        ({"parts": 20_000}, "from 1 to 10000"),
        ({"parts": None, "engine": "local:2"}, "--engine needs --parts"),
        ({"engine": "local:0"}, "must be local:N"),
        ({"engine": "nowhere:1"}, "must be local:N"),
        ({"identifying": ()}, 'column "id" in the dataframe has no role, and --parts'),
        ({"keep": "salary"}, 'has no column "salary"'),
        ({"missing": "error"}, 'column "age" in the dataframe has no value on row'),
        ({"k": 61}, "fewer than k = 61 records"),
        ({"l": 4}, "not even all records together"),
    ],
)
def test_what_cannot_be_had_in_parts_is_refused(
    more: dict[str, object], says: str, options: dict[str, object], tmp_path: Path
) -> None:
    with pytest.raises((InputError, InfeasibleError), match=says):
        lv.anonymize(records(), **{**options, "parts": 2, **more}, out=tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_parts_need_a_folder(options: dict[str, object]) -> None:
    with pytest.raises(InputError, match="give a folder for the release"):
        lv.anonymize(records(), **options, parts=2)


def test_a_worker_that_was_thought_dead_and_ends_after_all_changes_nothing(options, tmp_path, monkeypatch):
    """A part is formed again where its worker is lost; whoever writes late has classes that nobody described."""
    data, form = records(), parts_module._form_part
    lv.anonymize(data, **options, parts=3, out=tmp_path / "once")

    def formed_twice(*given):
        found = form(*given)
        with monkeypatch.context() as late:
            one_class = lambda problem, *_: problem.partition(np.zeros(problem.n_records, int), method="late")  # noqa: E731
            late.setattr(parts_module, "form_classes", one_class)
            form(*given)
        return found

    monkeypatch.setattr(parts_module, "_form_part", formed_twice)
    lv.anonymize(data, **options, parts=3, out=tmp_path / "twice")
    assert data_of(tmp_path / "once") == data_of(tmp_path / "twice")
