"""louver topdown area: words, JSON, and what is missing."""

from __future__ import annotations

import json

import pytest

from cli.command import Runner
from louver.topdown import area, topdown
from topdown_town import write_town


def test_json_and_words(tmp_path, call_louver: Runner):
    released = topdown(write_town(tmp_path / "town"), out=tmp_path / "out", seed=4, intervals=1).path
    leaves = tmp_path / "area.csv"
    leaves.write_text("1A1\n1A3\n2B1\n")
    done = call_louver("topdown", "area", released, "--leaves", leaves, "--json")
    told = json.loads(done.out)
    assert (done.code, set(told)) == (0, {"leaves", "total", "counts"})
    assert set(told["total"]) == {"count", "standard_error", "rating", "lower_90", "upper_90"}
    words = call_louver("topdown", "area", released, "--leaves", leaves)
    assert words.out.startswith("3 leaves: ") and "90 % interval" in words.out
    assert area(released, leaves=leaves).to_frame().num_rows == len(told["counts"]) + 1


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ((), "argument RELEASE is missing"),
        (("out",), "option --leaves is missing"),
        (("out", "--leaves", "area.csv", "--level", "x"), "--level"),
    ],
)
def test_what_is_missing_is_named(call_louver: Runner, arguments, told):
    done = call_louver("topdown", "area", *arguments)
    assert done.code == 2 and told in done.err and done.out == ""
