"""Recodes before anonymizing: bins of numbers, merged labels, levels; and one recoding for the file beside them."""

from __future__ import annotations

import pyarrow as pa
import pytest

import louver as lv
from louver.errors import InputError
from louver.report.anonymize import anonymize_report

PEOPLE = pa.table(
    {
        "age": [20, 24, 25, 54, 55, 90, None, None],
        "job": ["smith", "baker", "cook", "cook", "smith", "baker", "cook", "smith"],
        "size": ["S", "M", "L", "S", "M", "L", "S", "M"],
    }
)
RECODE = {"age": {"bins": [25, 55]}, "job": {"food": ["baker", "cook"]}}


def released(table: pa.Table = PEOPLE, **options: object) -> lv.AnonymizedRelease:
    quasi = options.get("quasi", ["age", "job"])
    keep = [name for name in table.column_names if name not in (*quasi, *options.get("sensitive", ()))]
    options = {"quasi": quasi, "k": 1, "steps": 0, "keep_order": True, "keep": keep, **options}
    return lv.anonymize(table, **options)


def test_a_recode_comes_first(tmp_path):
    table = released(recode=RECODE).table.to_pydict()
    assert table["age"] == ["<25", "<25", "25-54", "25-54", "55+", "55+", "(missing)", "(missing)"]
    assert table["job"] == ["smith", "food", "food", "food", "smith", "food", "food", "smith"]
    path = tmp_path / "recode.toml"
    path.write_text('[age]\nbins = [25, 55]\n[job]\nfood = ["baker", "cook"]\n')
    release = released(recode=path)
    assert release.table.to_pydict()["age"] == table["age"]
    assert release.manifest().parameters["recode"] == {
        "age": {"bins": [25.0, 55.0]},
        "job": {"food": ["baker", "cook"]},
    }


def test_levels_and_ordered_labels(tmp_path):
    path = tmp_path / "job.csv"
    path.write_text("smith;craft;any\nbaker;food;any\ncook;food;any\n")
    table = released(quasi=["job"], hierarchy={"job": path}, recode={"job": {"level": 1}}).table
    assert table.to_pydict()["job"][:3] == ["craft", "food", "food"]
    table = released(quasi=["size"], ordered=["size"], recode={"size": {"tall": ["L", "M"]}}).table
    assert set(table.to_pydict()["size"]) == {"tall", "S"}


@pytest.mark.parametrize("recoding", ["local", "global"])
def test_recoded_columns_are_generalised_further(recoding, tmp_path):
    release = released(recode=RECODE, k=2, recoding=recoding, out=tmp_path / "release")
    assert lv.verify(tmp_path / "release").passed
    assert release.smallest_class >= 2


BAD = [
    ({"recode": {"sex": {"bins": [3]}}}, "--recode", 'column "sex", which is not in --quasi'),
    ({"recode": {"age": {"old": ["90"]}}}, "--recode", "give bins"),
    ({"recode": {"job": {"bins": [3]}}}, None, "cannot be cut into bins"),
    ({"recode": {"job": {"level": 1}}}, None, "has no hierarchy"),
    ({"recode": {"job": {"food": ["bread"]}}}, None, "check its spelling"),
    ({"recode": RECODE, "against": ["earlier"]}, "--recode", "cannot be combined with --against"),
    ({"recoding": "global", "method": "greedy"}, "--recoding", "cannot be combined with --method"),
    ({"recoding": "global", "missing": "match"}, "--recoding", "cannot be combined with --missing match"),
    (
        {"recoding": "global", "population": "people.csv"},
        "--recoding",
        "cannot be combined with --population",
    ),
    (
        {"recoding": "global", "population": "people.csv", "k_map": True},
        "--recoding",
        "cannot be combined with --k-map",
    ),
    (
        {"recoding": "global", "sensitive": ["size"], "t": 0.3, "suppress": 0.1},
        "--recoding",
        "cannot be combined with --suppress with --t",
    ),
    ({"recoding": "global", "unit": "size", "keep": []}, "--recoding", "cannot be combined with --unit"),
    ({"recoding": "both"}, "recoding", "local"),
]


@pytest.mark.parametrize(("options", "flag", "words"), BAD, ids=[words for _, _, words in BAD])
def test_what_cannot_be_recoded_is_refused(options, flag, words):
    with pytest.raises(InputError) as caught:
        released(**options)
    assert words in str(caught.value)
    assert flag is None or caught.value.option == flag


def test_local_stands_beside_global():
    people = pa.table({"age": list(range(20, 40)), "job": ["smith", "baker"] * 10})
    release = released(people, k=3, recoding="global", steps=2)
    assert release.local is not None and release.local.recoding == "local"
    assert release.local.information_loss <= release.utility.information_loss
    assert release.to_dict()["beside"]["classes"] == release.local.classes
    assert "would lose" in repr(release) and released(people, k=3).local is None


def test_numbers_that_were_coded_are_not_called_unchanged():
    many = pa.table({"age": [20] * 6, "size": [*"SSSMMM"], "pay": [10, 20, 30, 40, 55, 90]})
    release = released(many, quasi=["age"], k=3, round_to={"pay": 50.0})
    assert "published unchanged: size\n  published coded: pay (rounded to multiples of 50)" in repr(release)
    assert release.n_alone == 2 and "2 of 6 records are unique to anyone who also knows" in repr(release)
    report = anonymize_report(release)
    assert "Published unchanged: size, pay rounded to multiples of 50." in report
    assert "<td>pay=50</td>" in report


def test_a_hierarchy_goes_before_codes_and_kinds(tmp_path):
    path = tmp_path / "job.csv"
    path.write_text("smith;craft;any\nbaker;food;any\ncook;food;any\n")
    spec = {"attributes": {"job": {"kind": "category"}}}
    for more in ({"categorical": ["job"]}, {"spec": spec}):
        release = released(quasi=["job"], hierarchy={"job": path}, k=2, **more)
        kinds = {line["name"]: line["kind"] for line in release.dictionary.to_pylist()}
        assert kinds["job"] == "hierarchy"
