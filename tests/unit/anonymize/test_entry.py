"""What the register keeps of a k-anonymous file: all that can be counted in it, true of the records, and taken along by later audits."""

from __future__ import annotations

from collections import Counter
from itertools import product
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pytest

import louver as lv
from louver._verdict import Level
from louver.anonymize import entry as entry_module
from louver.audit import register
from louver.audit.register import earlier_names, from_entries
from louver.data.read import open_source
from louver.data.tabulate import tabulate
from louver.errors import InputError
from louver.release.register import Register, RegisterEntry
from louver.schema.attribute import Attribute
from louver.schema.recode import Recode
from louver.tables import transport
from louver.tables.pieces import Cross, Margin

TOWNS = {"A": "north", "B": "north", "C": "south"}


def people(folder: Path, n: int = 60) -> Path:
    """Three people have the illness "rare", in three towns."""
    random = np.random.default_rng(8)
    rows = [
        (
            random.integers(20, 60),
            random.choice(list(TOWNS)),
            random.choice(["flu", "none"]),
            random.choice(["f", "m"]),
        )
        for _ in range(n)
    ]
    for row, town in zip((3, 17, 31), TOWNS, strict=True):
        rows[row] = (rows[row][0], town, "rare", rows[row][3])
    file = folder / "people.csv"
    file.write_text("age,town,ill,sex\n" + "".join(",".join(map(str, row)) + "\n" for row in rows))
    return file


ILL = {"name": "illnesses", "by": ["ill"], "below": 5}


def release_of(file: Path, register: Path, out: str | None = "file", **more: object):
    asked = {"quasi": ["age", "town"], "keep": ["ill", "sex"], "k": 5, "method": "greedy", **more}
    return lv.anonymize(file, **asked, registry=register, out=None if out is None else file.parent / out)


def test_what_can_be_counted_in_the_file_is_not_hidden_by_a_table(tmp_path: Path) -> None:
    """Before, the file was known by its classes alone, and the table was published with a hidden 3 that the file shows."""
    file, register = people(tmp_path), tmp_path / "register"
    release_of(file, register)
    refused = lv.audit(file, tables=[ILL], registry=register, publish=tmp_path / "out", no_advice=True)
    assert refused.published is None and not (tmp_path / "out").exists()
    worst = next(refused.disclosed())
    assert (worst.cell, worst.lower, worst.upper) == ({"ill": "rare"}, 3, 3)
    assert worst.because[0].startswith("k-anonymity with k = 5")


def test_what_the_file_shows_by_itself_does_not_stop_other_tables(tmp_path: Path) -> None:
    """Each town has one person with the rare illness; the file shows that, a table of other columns does not."""
    file, register = people(tmp_path), tmp_path / "register"
    release_of(file, register, quasi=["town"], identifying=["age"], method="exact")
    found = lv.audit(
        file,
        tables=[{"name": "both", "by": ["ill"], "recode": {"ill": {"any": ["flu", "rare"]}}}],
        registry=register,
        publish=tmp_path / "out",
        no_advice=True,
    )
    assert found.published and found.earlier == 1
    table = {"name": "rare by town", "by": ["town", "ill"], "below": 5}
    refused = lv.audit(file, tables=[table], registry=register, publish=tmp_path / "two", no_advice=True)
    assert refused.published is None


# The oracle: people of a cell, counted one by one --------------------------------------------------------------------


def fits(row: dict[str, str], cross: Cross, wanted: dict[str, str]) -> bool:
    """Whether a record is among those of a cell; the only recodes here merge labels."""

    def shown(name: str) -> str:
        merge = cross.recodes[name].merge if name in cross.recodes else {}
        return next((new for new, old in merge.items() if row[name] in old), row[name])

    return all(shown(name) in labels for name, labels in cross.where.items()) and all(
        shown(name) == label for name, label in wanted.items()
    )


def labels_of(cross: Cross, name: str, attributes: list[Attribute]) -> list[str]:
    """Labels of a column in a cross, each where its first old label stands."""
    labels = next(list(a.labels) for a in attributes if a.name == name)
    merge = cross.recodes[name].merge if name in cross.recodes else {}
    return list(
        dict.fromkeys(next((new for new, old in merge.items() if label in old), label) for label in labels)
    )


def check(margin: Margin, rows: list[dict[str, str]], attributes: list[Attribute]) -> bool:
    """The counts lie within the bounds; returns whether all bounds are exact."""
    by = margin.cross.by
    cells = list(product(*(labels_of(margin.cross, name, attributes) for name in by)))
    assert len(cells) == len(margin.lower) == len(margin.upper)
    for cell, low, high in zip(cells, margin.lower, margin.upper, strict=True):
        true = sum(fits(row, margin.cross, dict(zip(by, cell, strict=True))) for row in rows)
        assert low <= true <= high
    return bool((margin.lower == margin.upper).all())


CROSSES = [
    Cross(by=("ill",)),
    Cross(by=("town", "ill")),
    Cross(by=("ill", "sex"), where={"town": ("A", "C")}),
    Cross(
        by=("town",), recodes={"town": Recode("town", merge={"north": ("A", "B")})}, where={"ill": ("flu",)}
    ),
    Cross(by=("age",), where={"sex": ("f",)}),
    Cross(by=(), where={"ill": ("well",)}, recodes={"ill": Recode("ill", merge={"well": ("none", "flu")})}),
]


@pytest.mark.parametrize(
    "more",
    [
        {},
        {"method": "mondrian"},
        {"suppress": 0.1},
        {"format": "bounds", "sensitive": ["ill"], "keep": ["sex"], "l": 2},
        pytest.param({"recoding": "global", "method": "auto"}, marks=pytest.mark.long),
        {"quasi": ["town"], "keep": ["ill", "sex", "age"], "method": "exact"},
    ],
    ids=str,
)
@pytest.mark.parametrize("crosses", [CROSSES, CROSSES[3:4]], ids=["all", "one"])
def test_the_bounds_of_a_file_hold_for_the_records(more: dict, crosses: list[Cross], tmp_path: Path) -> None:
    file = people(tmp_path)
    release = release_of(file, tmp_path / "r", out=None, **more)
    assert not Register(tmp_path / "r").entries
    entry = RegisterEntry(
        number=1, created="2026", records="", same=(), apart=(), content=release.entry, previous="", digest=""
    )
    named = sorted({name for cross in crosses for name in cross.names})
    names = list(dict.fromkeys([*named, *earlier_names([entry], named)]))
    with open_source(file) as source:
        attributes = list(tabulate(source, names).attributes)
    [piece] = from_entries([entry], attributes, crosses)
    head, *lines = file.read_text().splitlines()
    rows = [dict(zip(head.split(","), line.split(","), strict=True)) for line in lines]
    assert len(piece.margins) > release.n_classes
    for margin in piece.margins:
        is_exact = check(margin, rows, attributes)
        is_plain = set(margin.cross.names) <= set(release.unchanged)
        assert is_exact or release.n_suppressed or not is_plain  # what is published as it is can be counted


def test_a_file_of_disjoint_classes_is_counted_exactly_and_stays_inside(tmp_path: Path) -> None:
    file, register = people(tmp_path), tmp_path / "register"
    release = release_of(file, register, quasi=["town"], keep=["ill", "sex", "age"], method="exact")
    (kept,) = release.entry["files"]
    assert kept["columns"].keys() == {"ill", "sex", "age"} and sum(kept["counts"]) == 60
    assert lv.verify(tmp_path / "file").passed and len(Register(register).entries) == 1
    found = lv.audit(file, tables=[{"name": "sex", "by": ["sex"]}], registry=register, no_advice=True)
    assert found.earlier == 1 and found.tables[-1].startswith("k-anonymity with k = 5")
    manifest = (tmp_path / "file/manifest.json").read_text()
    assert "too_large" not in manifest and str(register) not in manifest


def test_a_column_that_is_not_described_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = people(tmp_path)
    monkeypatch.setattr(entry_module, "MOST_NUMBERS", 200)
    more = {"quasi": ["town"], "keep": ["ill", "sex", "age"], "method": "exact"}
    release = release_of(file, tmp_path / "register", **more)
    assert release.entry["files"][0]["too_large"] == ["age"]
    asked = {"registry": tmp_path / "register", "no_advice": True}
    with pytest.raises(InputError, match='publishes column "age" record by record') as caught:
        lv.audit(file, tables=[{"name": "age", "by": ["age"]}], **asked)
    assert (caught.value.option, caught.value.column) == ("--register", "age")
    assert lv.audit(file, tables=[{"name": "sex", "by": ["sex"]}], **asked).earlier == 1
    rounded = release_of(file, tmp_path / "other", out=None, round_to={"age": 10.0}, **more)
    assert rounded.entry["files"][0]["too_large"] == ["age"]


def test_too_many_classes_are_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = people(tmp_path)
    release_of(file, tmp_path / "register")
    monkeypatch.setattr(register, "MOST_CELLS", 10)
    with pytest.raises(InputError, match="too many classes for an audit together with ill"):
        lv.audit(file, tables=[ILL], registry=tmp_path / "register")


def test_missing_values_are_kept_and_tell_of_no_label(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(register, "MOST_COMPARED", 1)
    table = pa.table(
        {
            "x": [1.0, 1.0, 2.5, 2.5, None, None],
            "s": ["a", "a", "b", "b", None, "c"],
            "kept": [True, None, False, True, True, None],
        }
    )
    asked = {"quasi": ["x", "s"], "keep": ["kept"], "k": 2, "method": "exact", "registry": tmp_path / "r"}
    release = lv.anonymize(table, **asked)
    (file,) = release.entry["files"]
    assert set(file["columns"]["kept"]) == {"true", None, "false"}
    attributes = [
        Attribute(name="x", labels=("1", "2.5", "?"), missing="?"),
        Attribute(name="s", labels=("a", "b", "c", "?"), missing="?"),
        Attribute(name="kept", labels=("false", "true", "?"), missing="?"),
    ]
    piece = register.file_piece(file, "file", attributes, [Cross(by=("kept",)), Cross(by=("x",))], [])
    known = [margin for margin in piece.margins if len(margin.cross.where) == 2]
    assert [margin.cross.where for margin in known] == [
        {"x": ("1",), "s": ("a",)},
        {"x": ("2.5",), "s": ("b",)},
    ]
    assert all((margin.upper > 1000).all() for margin in known)
    of_x = piece.margins[-1]
    assert (of_x.lower.tolist(), of_x.upper.tolist()) == ([2, 2, 0], [4, 4, 2])
    with pytest.raises(InputError, match='other labels of "kept"'):
        register.file_piece(
            file, "file", [*attributes[:2], Attribute(name="kept", labels=("false", "true"))], [], []
        )
    matched = lv.anonymize(table, **asked, missing="match")
    assert all(value is None for value in matched.entry["files"][0]["values"][0])


TWENTY = "Bm Df Df Df Bf Dm Dm Am Af Af Df Cm Cm Cm Dm Am Bf Am Cf Am"


def twenty(folder: Path) -> Path:
    """Twenty people of four towns."""
    file = folder / "twenty.csv"
    file.write_text("town,sex\n" + "".join(f"{one[0]},{one[1]}\n" for one in TWENTY.split()))
    return file


def by_town_and_sex(file: Path, out: str = "towns", **more: object):
    table = {"name": "towns", "by": ["town"]}
    asked = {"small": 3, "no_advice": True, "registry": file.parent / "register", **more}
    return lv.audit(file, tables=[table], publish=file.parent / out, **asked)


def test_the_people_of_a_class_are_at_least_those_of_all_classes_inside_it(tmp_path: Path) -> None:
    """Town D has 7 people, 6 of them in classes of its own: of the 3 women of "A | D" one is from D, and 2 are all the women of A."""
    file = twenty(tmp_path)
    asked = {"quasi": ["town", "sex"], "k": 3, "method": "greedy", "keep_order": True, "csv": True}
    lv.anonymize(file, **asked, registry=tmp_path / "register", out=tmp_path / "file")
    shown = Counter((tmp_path / "file/data/anonymized.csv").read_text().replace('"', "").splitlines()[1:])
    assert {line: n for line, n in shown.items() if "D" in line} == {"D,f": 3, "D,m": 3, "A | D,f": 3}
    refused = by_town_and_sex(file)
    assert refused.published is None
    assert {"town": "A", "sex": "f"} in [cell.cell for cell in refused.disclosed()]


@pytest.mark.parametrize(
    ("recoding", "most"), [("local", 1), ("local", None), ("global", 1), ("global", None)]
)
def test_what_classes_confine_together_is_asked_or_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, recoding: str, most: int | None
) -> None:
    """Classes that were formed one by one overlap, and readers know that every label they list occurs; margins show one recoding."""
    if most is not None:
        monkeypatch.setattr(transport, "MOST_PAIRS", most)
    file, table = people(tmp_path), {"name": "towns", "by": ["town"]}
    release_of(
        file,
        tmp_path / "register",
        keep=[],
        identifying=["ill", "sex"],
        recoding=recoding,
        method="auto",
        steps=3,
    )
    asked = {"registry": tmp_path / "register", "no_advice": True, "small": 3}
    assert lv.audit(file, tables=[{"name": "sexes", "by": ["sex"]}], **asked).verdict.level == "ok"
    found = lv.audit(file, tables=[table], publish=tmp_path / "out", fail_on="small", **asked)
    is_open = recoding == "local" and most is not None
    assert found.verdict.level == ("care" if is_open else "ok")
    assert any("each class was considered by itself" in reason for reason in found.verdict.reasons) == is_open
    assert (found.published is None, found.passed, found.summary.undecided) == (is_open, not is_open, is_open)
    if is_open:
        assert "It is not known" in found.refusal and found.is_acceptable
        accepted = lv.audit(file, tables=[table], publish=tmp_path / "out", accept_unchecked=True, **asked)
        assert accepted.published and accepted.verdict == found.verdict and accepted.summary.undecided == 1


def beside_a_file(folder: Path, columns: dict[str, list], by: list[str], spec: str = "", **more: object):
    """The audit of a table beside a file of the same people."""
    pa_csv.write_csv(pa.table(columns), folder / "people.csv")
    (folder / "spec.toml").write_text(spec)
    asked = {"keep": ["ill"], "k": 3, "method": "greedy", "registry": folder / "register"}
    lv.anonymize(folder / "people.csv", **asked, out=folder / "file", **more)
    return lv.audit(
        folder / "people.csv",
        spec=folder / "spec.toml",
        tables=[{"name": "table", "by": by}],
        registry=folder / "register",
        small=2,
        fail_on="small",
        no_advice=True,
    )


def test_a_node_of_a_hierarchy_has_somebody_in_two_branches(tmp_path: Path) -> None:
    """ "North" is the lowest node above a class: A and B occur in both classes. If a table counts 2 in B, one of them has the flu."""
    (tmp_path / "towns.csv").write_text("A,North,*\nB,North,*\n")
    people = {"town": [*"AABAAB"], "age": [30] * 3 + [50] * 3, "ill": ["flu"] * 3 + ["cold"] * 3}
    found = beside_a_file(
        tmp_path,
        people,
        ["town"],
        quasi=["town", "age"],
        weights={"age": 100},
        hierarchy={"town": str(tmp_path / "towns.csv")},
    )
    assert (found.verdict.level, found.passed, len(found.question.files)) == (Level.CARE, False, 1)


def test_values_that_may_be_missing_are_not_all_values(tmp_path: Path) -> None:
    """Missing values match any: "30" is 30 or missing. If a table counts 3 of 30 and 4 of 50, one missing value is of somebody with the flu."""
    people = {"age": [30, 30, 30, None, 50, 50, 50, 50, None], "ill": ["flu"] * 4 + ["cold"] * 5}
    spec = '[attributes.age]\nlabels = ["30", "50", "?"]\nmissing = "?"\n'
    found = beside_a_file(tmp_path, people, ["age"], spec, quasi=["age"], missing="match")
    assert (found.verdict.level, found.passed, len(found.question.files)) == (Level.CARE, False, 1)


def test_a_table_of_a_column_that_determines_one_of_the_file_is_asked_about(tmp_path: Path) -> None:
    """A table counts districts, the file has regions: two people of B, one in each class of "A | B", one of them has the flu."""
    people = {
        "region": [*"AABAAB", *"CDE" * 12],
        "district": ["A1", "A2", "B1", "A1", "A2", "B1", *["C1", "D1", "E1", "C2", "D2", "E2"] * 6],
        "age": [30] * 3 + [50] * 3 + [70] * 36,
        "ill": ["flu"] * 3 + ["cold"] * 3 + ["none"] * 36,
    }
    found = beside_a_file(
        tmp_path,
        people,
        ["district"],
        quasi=["region", "age"],
        weights={"age": 100},
        identifying=["district"],
    )
    assert ("district", "region") in found.question.dependencies
    assert not found.passed and found.verdict.level is not Level.OK
