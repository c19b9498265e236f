"""A spine together with forecasts, stand-ins, extensions, other layouts and other specs on one ledger."""

from __future__ import annotations

import numpy as np
import pytest

from louver.errors import InputError
from louver.release.verify import verify
from louver.report.topdown import plan_report
from louver.topdown import export_nmf, extend, plan, topdown
from louver.topdown.load import read_design
from louver.topdown.planning.composition import invariant_records, space_of
from louver.topdown.planning.stand_in import read_stand_in
from topdown_larger import LARGER, write_larger
from topdown_town import BLOCKS, SPEC, write_town

AREAS = "leaf,area,kind\n1A1,north,district\n1B,north,district\n1A2,south,district\n2A,south,district\n1A1,park,tribal\n"
SECTION = '[topdown.spine]\nareas = "areas.csv"\nfixed = "ward"\ntolerance = 9\n[topdown.queries]'
PLAIN = SPEC.partition("[[topdown.bounds]]")[0]
TOWN = PLAIN.replace('area = "1/4"', '"part 1" = "1/4"').replace("[topdown.queries]", SECTION)


@pytest.fixture
def town(tmp_path):
    path = write_town(tmp_path, TOWN)
    (tmp_path / "areas.csv").write_text(AREAS)
    return path


def test_a_plan_has_every_area_with_both_spines(town):
    found = plan(town, simulations=0, people=200)
    told = found.to_dict()["spine"]
    assert [(one["kind"], one["area"], one["leaves"]) for one in told["areas"]] == [
        ("district", "north", 3.0), ("district", "south", 3.0), ("tribal", "park", 1.0)]  # fmt: skip
    assert [one["kind"] for one in told["levels"]] == ["ward", "area", "block"]
    assert [one["steps_geography"] for one in told["areas"]] == [2, 2, 1]
    assert all(one["error_spine"] > 0 for one in told["areas"])
    assert "Regions of the spine:" in repr(found) and "district (2 areas)" in repr(found)
    assert any(note.startswith("With equal shares, totals of named areas") for note in found.notes)
    page = plan_report(found)
    assert "Areas, with the geography and with the spine" in page and "park" in page


def test_regions_of_both_trees_have_the_error_of_their_own_plan(town):
    """A fixed level that an invariant fixes is exact, and leaves are as in the table of the plan."""
    found = plan(town, simulations=0, people=200)
    ward, _, block = found.spine.levels
    assert (ward.error_geography, ward.error_spine) == (0.0, 0.0)
    line = found.line("spec", "block", found.lines[0].query)
    if line.method == "closed form":  # a root mean square there, a mean here
        assert block.error_spine == pytest.approx(line.mean_absolute, rel=0.02)


def test_a_plan_without_a_spine_says_nothing_of_areas(tmp_path):
    found = plan(write_town(tmp_path, PLAIN), simulations=0, people=200)
    assert "spine" not in found.to_dict() and "spine" not in repr(found)


def test_a_stand_in_of_the_same_leaves_is_counted_leaf_by_leaf(town):
    design = read_design(town)
    rows = ["block,quarters,age,race", *(f"{b},home,adult,a" for n, b in enumerate(BLOCKS) for _ in range(n))]
    stand_in = town.parent / "other.csv"
    stand_in.write_text("\n".join(rows) + "\n")
    leaves = read_stand_in(design, str(stand_in))
    assert leaves.people.tolist() == [BLOCKS.index(leaf) for leaf in design.spine.leaves]


def test_a_stand_in_of_other_regions_is_matched_by_geography(town, tmp_path):
    """Its leaves stand for the same leaves as without a spine, whatever their order."""
    design, plain = read_design(town), read_design(write_town(tmp_path / "plain", PLAIN))
    counts = {"8A1": 9, "8A2": 5, "8B1": 2, "9A1": 1}
    rows = ["block,quarters,age,race", *(f"{b},home,adult,a" for b, n in counts.items() for _ in range(n))]
    (tmp_path / "other.csv").write_text("\n".join(rows) + "\n")
    found, before = (read_stand_in(one, str(tmp_path / "other.csv")) for one in (design, plain))
    by_leaf = dict(zip(plain.spine.leaves, before.people.tolist(), strict=True))
    wanted = [by_leaf[leaf] for leaf in design.spine.leaves]
    assert np.abs(found.people - np.array(wanted)).max() <= 1  # rounded at random
    assert len(set(wanted)) > 2


def test_invariants_are_compared_with_those_of_specs_without_a_spine(town, tmp_path):
    before = read_design(write_town(tmp_path / "plain", PLAIN))
    after = read_design(town)
    assert space_of(after)["leaves"] == space_of(before)["leaves"]
    assert [one["region"] for one in invariant_records(after)] == [
        one["region"] for one in invariant_records(before)
    ]


def test_the_fingerprint_knows_where_leaves_lie(town):
    before = read_design(town).measured_fingerprint()
    (town.parent / "areas.csv").write_text(AREAS.replace("1A2,south", "1A2,north"))
    assert read_design(town).measured_fingerprint() != before


def test_the_layout_of_noisy_measurement_files_cannot_hold_a_spine(town, tmp_path):
    with pytest.raises(InputError, match="prefixes"):
        export_nmf(town, measurements=tmp_path / "measured", out=tmp_path / "nmf")


def test_a_tree_of_columns_can_be_arranged(tmp_path):
    spec = TOWN.replace('column = "block"', 'columns = ["town", "ward", "area", "block"]').replace(
        "prefixes = [0, 1, 2, 3]\n", ""
    )
    path = write_town(tmp_path, spec)
    rows = ["town,ward,area,block", *(f"t,{b[0]},{b[:2]},{b}" for b in BLOCKS)]
    (tmp_path / "leaves.csv").write_text("\n".join(rows) + "\n")
    (tmp_path / "areas.csv").write_text("leaf,area\nt/1/1A/1A1,x\nt/1/1B,x\nt/2,y\n")
    design = read_design(path)
    assert sorted(design.spine.leaves) == sorted(f"t/{b[0]}/{b[:2]}/{b}" for b in BLOCKS)
    assert design.spine.leaf_labels[0] == ("t", "1", "1A", "1A1")
    assert design.geographic.names == ("town", "ward", "area", "block")


def test_an_extension_has_the_spine_of_what_it_extends(tmp_path):
    def arranged(spec):
        return spec.replace('area = "1/4"', '"part 1" = "1/4"').replace("[topdown.queries]", SECTION)

    first, larger = write_larger(tmp_path, arranged(SPEC), arranged(LARGER))
    (tmp_path / "areas.csv").write_text(AREAS)
    topdown(first, seed=1, out=tmp_path / "first")
    out = extend(larger, seed=2, out=tmp_path / "second").path
    assert [check.name for check in verify(out).checks if not check.passed] == ["private noise"]
    (tmp_path / "areas.csv").write_text(AREAS.replace("1A2,south", "1A2,north"))
    with pytest.raises(InputError, match="the geography is not that of first"):
        extend(larger, seed=2, out=tmp_path / "third")


def test_shares_left_open_are_those_of_the_geography(town, tmp_path):
    def open_(spec):
        return spec[: spec.index("[topdown.shares]")] + spec[spec.index("[[topdown.invariants]]") :]

    plain = read_design(write_town(tmp_path / "plain", open_(PLAIN)))
    town.write_text(open_(TOWN))
    design = read_design(town)
    assert design.has_chosen_shares and design.spine.names == ("town", "ward", "part 1", "block")
    assert (design.level_shares, design.query_shares) == (plain.level_shares, plain.query_shares)
