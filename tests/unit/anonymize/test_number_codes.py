"""Numbers that travel along: rounded, then cut off; whole numbers stay whole, text stays text."""

from __future__ import annotations

import pyarrow as pa
import pytest

import louver as lv
from louver.anonymize.options import AnonymizeOptions
from louver.errors import InputError

PEOPLE = pa.table(
    {
        "age": [20, 21, 40, 41],
        "pay": [149, 151, 1_000_000, None],
        "rate": [0.123, -5.0, 0.36, 2.0],
        "text": ["12", " 14", "", "19"],
        "name": list("abcd"),
    }
)


def released(**options: object) -> dict[str, list[object]]:
    keep = [name for name in PEOPLE.column_names[1:] if name not in str(options.get("identifying", ()))]
    if "sensitive" in options:
        keep.remove("pay")
    options = {"quasi": ["age"], "k": 2, "steps": 0, "keep_order": True, "keep": keep, **options}
    return lv.anonymize(PEOPLE, **options).table.to_pydict()


def test_rounded_then_cut_off():
    table = released(
        top_code={"pay": 990, "text": 15},
        bottom_code={"rate": 0},
        round_to={"pay": 100, "rate": 0.1, "text": 2},
    )
    assert table["pay"] == [100, 200, 990, None]
    assert table["rate"] == [0.1, 0.0, 0.4, 2.0]
    assert table["text"] in (["12", "14", None, "15"], [12, 14, None, 15])


def test_manifest_and_dictionary_say_so():
    release = lv.anonymize(
        PEOPLE.select(["age", "pay"]), quasi=["age"], k=2, steps=0, keep=["pay"], top_code={"pay": 500}
    )
    assert release.manifest().parameters["top_code"] == {"pay": 500.0}
    assert release.dictionary.to_pylist()[1]["done"] == "top-coded at 500"


BAD = [
    ({"top_code": {"age": 30}}, "--top-code", "which is in --quasi"),
    ({"round_to": {"name": 2}, "identifying": ["name"]}, "--round-to", "which is in --identifying"),
    ({"top_code": {"pay": 5}, "sensitive": ["pay"], "l": 2}, "--top-code", "--sensitive with --l or --t"),
    ({"top_code": {"pay": 5}, "bottom_code": {"pay": 9}}, "--bottom-code", "above its --top-code"),
    ({"round_to": {"pay": 0}}, "round_to.pay", "must be"),
    ({"top_code": {"nobody": 5}}, None, '"nobody"'),
    ({"bottom_code": {"name": 5}}, "--bottom-code", "does not hold numbers"),
]


@pytest.mark.parametrize(("options", "flag", "words"), BAD, ids=[words for _, _, words in BAD])
def test_what_cannot_be_coded_is_refused(options, flag, words):
    with pytest.raises(InputError, match="column|option") as caught:
        released(**options)
    assert words in str(caught.value)
    assert flag is None or caught.value.option == flag


def test_codes_may_be_given_in_one_option_or_several():
    options = AnonymizeOptions(quasi=("age",), top_code={"pay": 5, "rate": 1})
    assert options.top_code == {"pay": 5.0, "rate": 1.0}
