"""Lists of areas and specs with a spine that cannot be used: one sentence each, naming where and never what."""

from __future__ import annotations

import re

import numpy as np
import pytest

from louver.errors import InputError
from louver.topdown.load import read_design
from louver.topdown.measuring.noise_plan import make_plan
from topdown_town import SPEC, write_town

SECRET = "s3cr3t"
GOOD = "leaf,area,kind\n1A1,north,district\n1A2,south,district\n2A,south,district\n1A1,park,tribal\n"
SECTION = '[topdown.spine]\nareas = "areas.csv"\nfixed = "ward"\n'
TOWN = SPEC.replace('area = "1/4"', '"part 1" = "1/4"').replace(
    "[topdown.queries]", SECTION + "[topdown.queries]"
)


def town(folder, spec=TOWN, areas=GOOD):
    path = write_town(folder, spec)
    if areas is not None:
        (folder / "areas.csv").write_text(areas)
    return path


def test_areas_are_read_by_kind(tmp_path):
    arrangement = read_design(town(tmp_path)).arrangement
    district, tribal = arrangement.kinds
    assert (district.name, district.areas) == ("district", ("north", "south"))
    assert district.area_of.tolist() == [0, 1, -1, -1, -1, 1, 1, -1, -1]
    assert (tribal.name, tribal.areas) == ("tribal", ("park",))
    assert tribal.area_of.tolist() == [0, *[-1] * 8]


def test_without_a_column_there_is_one_kind(tmp_path):
    (kind,) = read_design(town(tmp_path, areas="area,leaf\nx,1A\n")).arrangement.kinds
    assert (kind.name, np.flatnonzero(kind.area_of == 0).tolist()) == ("areas", [0, 1, 2])


BAD_AREAS = {
    "no file": (None, "does not exist"),
    "empty file": ("", "areas.csv"),
    "no rows": ("leaf,area\n", "no rows"),
    "no column of leaves": ("block,area\n1A1,x\n", '"leaf"'),
    "no column of areas": ("leaf,district\n1A1,x\n", '"area"'),
    "a leaf is missing": ("leaf,area\n1A1,x\n,x\n", 'column "leaf" in areas.csv has no value on row 2'),
    "an area is missing": ("leaf,area\n1A1,x\n1A2,\n", 'column "area" in areas.csv has no value on row 2'),
    "a kind is missing": ("leaf,area,kind\n1A1,x,\n", 'column "kind" in areas.csv has no value on row 1'),
    "a leaf that is not there": (f"leaf,area\n1A1,x\n{SECRET},x\n", "region on row 2 that is not in the list"),
    "a leaf in two areas": (f"leaf,area\n1A1,x\n1A1,{SECRET}\n", "two areas of one kind on row 2"),
    "a region over another area": (f"leaf,area\n1A1,x\n1A,{SECRET}\n", "two areas of one kind on row 2"),
    "five kinds": (
        "leaf,area,kind\n" + "".join(f"1A1,x,{SECRET}{n}\n" for n in range(5)), "at most 4 are possible"),
    "a kind named like a level": ("leaf,area,kind\n1A1,x,ward\n", 'named like a level, "ward"'),
    "another format": ("\x00\x01\x02", "areas.csv"),
    "a row too long": ("leaf,area\n1A1,x,y,z\n", "areas.csv"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD_AREAS)
def test_a_bad_list_of_areas_is_one_sentence(tmp_path, name):
    areas, expected = BAD_AREAS[name]
    with pytest.raises(InputError) as error:
        read_design(town(tmp_path, areas=areas))
    sentence = str(error.value)
    assert re.search(re.escape(expected), sentence), sentence
    assert "\n" not in sentence and sentence.endswith(".") and SECRET not in sentence


NO_GEOGRAPHY = TOWN[TOWN.index("[topdown.geography]") : TOWN.index("[topdown.spine]")]
BAD_SPECS = {
    "fixed at no level": ('fixed = "ward"', f'fixed = "{SECRET}"', "names no level above the leaves"),
    "fixed at the leaves": ('fixed = "ward"', 'fixed = "block"', "names no level above the leaves"),
    "no areas": ('areas = "areas.csv"\n', "", "areas"),
    "areas without a name": ('areas = "areas.csv"', 'areas = ""', "areas"),
    "an unknown key": ('fixed = "ward"', 'fixed = "ward"\nfixd = "ward"', "fixd"),
    "levels named alike": ('fixed = "ward"', 'fixed = "ward"\nlevels = ["x", "x"]', "differ from each other"),
    "a level named as before": ('fixed = "ward"', 'fixed = "ward"\nlevels = ["area"]', "differ from each other"),
    "no levels": ('fixed = "ward"', 'fixed = "ward"\nlevels = []', "levels"),
    "a level without a name": ('fixed = "ward"', 'fixed = "ward"\nlevels = [""]', "levels"),
    "nine levels": ('fixed = "ward"', f'fixed = "ward"\nlevels = {[f"l{n}" for n in range(9)]}', "levels"),
    "tolerance below zero": ('fixed = "ward"', 'fixed = "ward"\ntolerance = -0.1', "tolerance"),
    "tolerance that is text": ('fixed = "ward"', f'fixed = "ward"\ntolerance = "{SECRET}"', "tolerance"),
    "tolerance without end": ('fixed = "ward"', 'fixed = "ward"\ntolerance = inf', "tolerance"),
    "shares of the levels of before": ('"part 1" = "1/4"', 'area = "1/4"', "shares.levels"),
    "an invariant of new regions": ('level = "ward"', 'level = "part 1"', "no level of the geography"),
    "no geography": (NO_GEOGRAPHY, "", "has none to arrange"),
    "a spine that is text": (SECTION, 'spine = "x"\n', "spine"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD_SPECS)
def test_a_bad_spine_is_one_sentence(tmp_path, name):
    old, new, expected = BAD_SPECS[name]
    assert old in TOWN
    with pytest.raises(InputError) as error:
        make_plan(read_design(town(tmp_path, TOWN.replace(old, new, 1))))
    sentence = str(error.value)
    assert re.search(re.escape(expected), sentence), sentence
    assert "\n" not in sentence and sentence.endswith(".") and SECRET not in sentence


def test_an_invariant_of_regions_that_are_gone_is_refused(tmp_path):
    spec = TOWN.replace('fixed = "ward"', 'levels = ["one"]').replace(
        'ward = "1/4", "part 1" = "1/4"', 'one = "1/2"'
    )
    with pytest.raises(
        InputError, match=r"invariants\[1\].* that the spine rearranges; let the spine begin below them"
    ):
        read_design(town(tmp_path, spec))
