"""Our measurements in the layout of noisy measurement files, and back: every value, variance and constraint the same."""

from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from louver.errors import InputError
from louver.privacy.measurements import Measurements, write_measurements
from louver.privacy.noise import KeyedNoise
from louver.topdown.load import read_design
from louver.topdown.measuring.noise_plan import QueryPlan, make_plan
from louver.topdown.measuring.sealing import measurements_path
from louver.topdown.measuring.true_counts import invariant_values, true_batches, true_levels, write_invariants
from louver.topdown.published.read import Published, read_published
from louver.topdown.published.write import published_names, write_published
from louver.topdown.result import INVARIANTS_FILE, MEASUREMENTS_FILE

LEAVES = ("044a1", "044a2", "044b1", "144a1", "144c1", "144c2")
SPEC = """
[source]
file = "people.csv"

[attributes.sex]
labels = ["f", "m"]

[attributes.age]
labels = ["child", "adult", "old"]

[topdown]
rho = "1"
delta = "1/1000000"

[topdown.geography]
levels = ["US", "State", "County", "Block"]
leaves = "leaves.csv"
column = "block"
prefixes = [0, 3, 4, 5]

[topdown.queries]
total = []
turned = ["age", "sex"]
grown = { attributes = ["age"], merge = { age = { grown = ["adult", "old"] } } }

[topdown.shares]
levels = { US = "1/4", State = "1/4", County = "1/4", Block = "1/4" }
queries = { total = "1/4", turned = "1/4", grown = "1/4", detailed = "1/4" }

[[topdown.invariants]]
name = "people"
level = "State"

[[topdown.bounds]]
name = "adults"
file = "bounds.csv"
cells = { age = ["adult"] }
lower = "low"
upper = "high"
"""


def town(folder: Path, spec: str = SPEC) -> tuple[QueryPlan, Path]:
    """A small town, its plan and a folder with its measurements."""
    (folder / "spec.toml").write_text(spec)
    (folder / "leaves.csv").write_text("block\n" + "\n".join(LEAVES) + "\n")
    bounds = [f"{leaf},{place % 2},{50 + place}" for place, leaf in enumerate(LEAVES)]
    (folder / "bounds.csv").write_text("block,low,high\n" + "\n".join(bounds) + "\n")
    people = [
        f"{leaf},{sex},{age}"
        for place, leaf in enumerate(LEAVES)
        for sex in "fm"
        for number, age in enumerate(("child", "adult", "old"))
        for _ in range(1 + place * number)
    ]
    (folder / "people.csv").write_text("block,sex,age\n" + "\n".join(people) + "\n")
    plan = make_plan(read_design(folder / "spec.toml"))
    measured = folder / "measured"
    path = measurements_path(measured)
    levels = true_levels(plan.design, folder)
    write_invariants(measured / INVARIANTS_FILE, plan, invariant_values(plan, levels))
    batches = partial(true_batches, plan, levels)
    write_measurements(path, batches, KeyedNoise.from_seed(7), design=plan.design.measured_fingerprint())
    return plan, measured


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> tuple[QueryPlan, Path, Path, Published]:
    folder = tmp_path_factory.mktemp("town")
    plan, measured = town(folder)
    out = write_published(plan, measured, folder / "nmf")
    return plan, measured, out, read_published(out)


def test_every_noisy_value_and_variance_comes_back(
    written: tuple[QueryPlan, Path, Path, Published],
) -> None:
    plan, measured, _, found = written
    names = published_names(plan.design)
    levels = {level.name: level for level in found.levels}
    seen = 0
    for batch in Measurements(measured / MEASUREMENTS_FILE).batches():
        rows = {one.name: one for one in levels[batch.level].answers}[names[batch.query].name]
        place = {levels[batch.level].codes[region]: row for row, region in enumerate(rows.region)}
        own = [place[node] for node in batch.nodes]
        # The query lists age before sex; the layout has axes in the order of the spec.
        expected = batch.noisy_counts
        if batch.query == "turned":
            expected = expected.reshape(-1, 3, 2).swapaxes(1, 2).reshape(-1, 6)
        assert np.array_equal(rows.values[own], expected)
        assert (rows.variances[own] == batch.variance).all()
        seen += len(own)
    assert seen == sum(len(one.region) for level in found.levels for one in level.answers)


def test_levels_axes_and_names_are_those_of_the_layout(
    written: tuple[QueryPlan, Path, Path, Published],
) -> None:
    _, _, out, found = written
    assert [(level.name, level.width) for level in found.levels] == [
        ("US", 0),
        ("State", 3),
        ("County", 4),
        ("Block", 5),
    ]
    assert [level.codes for level in found.levels][:2] == [("",), ("044", "144")]
    assert [(axis.name, axis.labels) for axis in found.axes] == [
        ("sex", ("f", "m")),
        ("age", ("child", "adult", "old")),
    ]
    detailed = {one.name: (one.entries, one.shape) for one in found.levels[1].answers}
    assert detailed["detailed"] == (("detailed", "detailed"), (2, 3))
    assert detailed["sex * age"] == (("sex", "age"), (2, 3))
    assert detailed["grown"] == (("*", "grown"), (1, 2))
    assert sorted(map(str, found.files)) == sorted(
        path.relative_to(out).as_posix() for path in out.rglob("*.parquet") if path.is_file()
    )
    assert "Block.parquet/DPQuery/State=144/part-0.parquet" in found.files
    assert "US.parquet/DPQuery/part-0.parquet" in found.files


def test_invariants_and_bounds_come_back_as_constraints(
    written: tuple[QueryPlan, Path, Path, Published],
) -> None:
    _, _, _, found = written
    state, leaf = found.levels[1], found.levels[-1]
    (people,) = state.constraints
    assert (people.name, people.sign, people.entries) == ("people", "=", ("*", "*"))
    lower, upper = leaf.constraints
    assert (lower.name, lower.sign, upper.name, upper.sign) == ("adults_lb", ">=", "adults_ub", "<=")
    assert [leaf.codes[region] for region in lower.region] == ["044a2", "144a1", "144c2"]
    assert upper.values.ravel().tolist() == [50, 51, 52, 53, 54, 55]
    ages = found.axes[1]
    assert ages.groups(lower.entries[1]) == ((1,),)


def test_rows_of_a_state_may_come_in_any_order_and_width(tmp_path: Path) -> None:
    plan, measured = town(tmp_path)
    out = write_published(plan, measured, tmp_path / "nmf")
    before = read_published(out)
    path = out / "Block.parquet/DPQuery/State=044/part-0.parquet"
    table = pq.read_table(path)
    narrow = table.set_column(
        table.column_names.index("value"), "value", table["value"].cast(pa.list_(pa.int32()))
    )
    pq.write_table(narrow.take(list(reversed(range(len(narrow))))), path)
    after = read_published(out)
    for level, other in zip(before.levels, after.levels, strict=True):
        rows = {one.name: one for one in other.answers}
        for one in level.answers:
            assert np.array_equal(one.values, rows[one.name].values)


@pytest.mark.parametrize(
    ("old", "new", "option"),
    [
        (
            'levels = ["US", "State", "County", "Block"]',
            'levels = ["US", "State", "Co/unty", "Block"]',
            "levels",
        ),
        ("[attributes.sex]", "[attributes.sign]", "attributes"),
    ],
)
def test_what_the_layout_cannot_hold_is_refused(tmp_path: Path, old: str, new: str, option: str) -> None:
    spec = SPEC.replace(old, new).replace('"sex"', '"sign"' if "sign" in new else '"sex"')
    spec = spec.replace("County =", '"Co/unty" =') if "Co/unty" in new else spec
    (tmp_path / "spec.toml").write_text(spec)
    (tmp_path / "leaves.csv").write_text("block\n" + "\n".join(LEAVES) + "\n")
    bounds = [f"{leaf},0,9" for leaf in LEAVES]
    (tmp_path / "bounds.csv").write_text("block,low,high\n" + "\n".join(bounds) + "\n")
    plan = make_plan(read_design(tmp_path / "spec.toml"))
    with pytest.raises(InputError) as raised:
        write_published(plan, tmp_path / "measured", tmp_path / "nmf")
    assert option in (raised.value.option or "")
    assert not (tmp_path / "nmf").exists()


def test_regions_in_columns_are_refused(tmp_path: Path) -> None:
    spec = SPEC.replace('column = "block"\nprefixes = [0, 3, 4, 5]', 'columns = ["state", "block"]')
    spec = spec.replace('["US", "State", "County", "Block"]', '["State", "Block"]')
    spec = spec.replace(
        'US = "1/4", State = "1/4", County = "1/4", Block = "1/4"', 'State = "1/2", Block = "1/2"'
    )
    spec = spec[: spec.index("[[topdown.bounds]]")]
    (tmp_path / "spec.toml").write_text(spec)
    (tmp_path / "leaves.csv").write_text("state,block\na,b\na,c\n")
    plan = make_plan(read_design(tmp_path / "spec.toml"))
    with pytest.raises(InputError) as raised:
        write_published(plan, tmp_path / "measured", tmp_path / "nmf")
    assert raised.value.option == "geography"
