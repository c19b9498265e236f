"""From spec to release: what is kept, who pays, what is read, and that nothing depends on the workers."""

from __future__ import annotations

import json
import re
import shutil
from collections import Counter
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from louver._verdict import Level
from louver.errors import BudgetError, Cancelled, InfeasibleError, InputError
from louver.privacy.budget import Measure, epsilon_at
from louver.privacy.composition import ChangedCounts, delta_at
from louver.privacy.ledger import Ledger
from louver.privacy.neighbours import Relation
from louver.release.pages.promised import topdown_verdict
from louver.release.verify import verify
from louver.report.topdown import topdown_report
from louver.schema.spec import AttributeOptions, SourceOptions
from louver.topdown import check, estimate, measure, topdown
from louver.topdown.estimation import levels as estimation
from louver.topdown.load import read_design
from louver.topdown.measuring import sealing
from louver.topdown.measuring.noise_plan import make_plan
from louver.topdown.measuring.true_counts import SealedCounts
from releases import doubt, edit
from topdown_town import BLOCKS, FACILITIES, SPEC, people, write_town


def holds(release):
    """Every promise holds; the noise is seeded, which verify refuses."""
    return [check.name for check in verify(release).checks if not check.passed] == ["private noise"]


@pytest.fixture
def town(tmp_path):
    return write_town(tmp_path / "town")


@pytest.fixture
def ledger(town):
    path = town.parent / "people.csv.ledger"
    return Ledger.create(path, Measure.EPSILON, Relation.CHANGE_RECORD, Fraction(2))


def data_bytes(folder):
    """All of data/, and the manifest without what may differ."""
    files = {
        p.relative_to(folder).as_posix(): p.read_bytes() for p in (folder / "data").rglob("*") if p.is_file()
    }
    manifest = json.loads((folder / "manifest.json").read_text())
    for key in ("created", "seconds", "digest"):
        manifest.pop(key)
    return files, manifest


def rows_of(folder):
    table = pq.read_table(folder / "data/microdata.parquet")
    return Counter(zip(*(table[name].to_pylist() for name in table.column_names), strict=True))


def test_a_release_keeps_what_is_public(town, tmp_path):
    release = topdown(town, out=tmp_path / "out", seed=3)
    assert holds(tmp_path / "out")
    rows = rows_of(tmp_path / "out")
    truth = Counter(block[0] for block, *_ in people())
    wards = Counter()
    for (block, quarters, age, _race), count in rows.items():
        wards[block[0]] += count
        assert quarters == "home" or FACILITIES[quarters].get(block, 0) > 0
        assert (quarters, age) != ("jail", "child")
    assert wards == truth
    for quarters, where in FACILITIES.items():
        for block, least in where.items():
            assert sum(n for (b, q, *_), n in rows.items() if (b, q) == (block, quarters)) >= least
    assert not release.is_private and release.n_people == len(people())
    assert not release.estimate.rescued and not release.estimate.suboptimal


def test_results_do_not_depend_on_the_workers(town, tmp_path, monkeypatch):
    monkeypatch.setattr("louver.topdown.problem.BATCH_VALUES", 60)  # several batches to a level
    seen = []
    for workers in (1, 2, 4):
        out = tmp_path / f"out{workers}"
        topdown(town, out=out, seed=3, engine=f"local:{workers}")
        seen.append(data_bytes(out))
    assert seen[0] == seen[1] == seen[2]


def test_what_is_counted_and_bounded_in_small_parts_is_the_same_release(town, tmp_path, monkeypatch):
    topdown(town, out=tmp_path / "whole", seed=3)
    monkeypatch.setattr("louver.data.read.BATCH_ROWS", 5)
    monkeypatch.setattr("louver.data.scratch.AT_ONCE", 2)
    for name, at_once in (("PARENT_CHUNK", 1), ("LEAF_CHUNK", 2), ("MOST_HELD", 0)):
        monkeypatch.setattr(f"louver.topdown.knowledge.implied.{name}", at_once)
    topdown(town, out=tmp_path / "parts", seed=3)
    assert data_bytes(tmp_path / "parts") == data_bytes(tmp_path / "whole")


def test_a_stopped_measurement_leaves_no_true_count_behind(town, ledger, tmp_path, monkeypatch):
    """Cancelled while noise is drawn: what was counted lay in a private folder, without a name, and is gone."""
    seen = []
    real = sealing.true_batches

    def stop(plan, levels):
        yield next(real(plan, levels))
        seen.extend(path for folder in temporary.iterdir() for path in (folder, *folder.iterdir()))
        raise Cancelled

    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    monkeypatch.setattr(sealing, "true_batches", stop)
    with pytest.raises(Cancelled):
        measure(town, out=tmp_path / "out")
    assert [path.name for path in seen[1:]] == ["lock"] and seen[0].name.startswith("louver-scratch-")
    assert not list(temporary.iterdir())


def test_the_whole_result_is_readable(town, tmp_path):
    release = topdown(town, out=tmp_path / "out", seed=3, evaluate=True)
    result = json.loads(release.to_json())
    assert result["epsilon"] == 2.0 and result["rho"] is None
    assert [level["name"] for level in result["levels"]] == ["town", "ward", "area", "block"]
    assert result["failsafe_regions"] == [] and result["suboptimal_regions"] == []
    assert result["levels"][1]["mean_absolute_error"]["detailed"] > 0
    assert "NOT PRIVATE" in repr(release) and "block: 9 regions" in release._repr_html_()
    assert not verify(tmp_path / "out").passed  # an evaluation is not for release


def test_more_budget_means_less_error(town):
    errors = []
    for epsilon in (1, 1000):
        path = write_town(
            town.parent.parent / f"e{epsilon}", SPEC.replace("epsilon = 2", f"epsilon = {epsilon}")
        )
        release = topdown(path, seed=3, evaluate=True)
        assert release.evaluation is not None
        errors.append(sum(error.mean_absolute for error in release.evaluation))
    assert errors[1] < 0.01 < errors[0]


def test_a_paid_release_debits_once_and_names_its_entry(town, ledger, tmp_path):
    release = topdown(town, out=tmp_path / "out")
    assert release.is_private and release.head is not None
    assert verify(tmp_path / "out").passed
    assert ledger.state().remaining == 0
    assert len(ledger.state().sealed) == 1 and not ledger.state().pending
    assert ledger.verify(tmp_path).is_sound
    manifest = json.loads((tmp_path / "out/manifest.json").read_text())
    assert manifest["ledger_head"] == str(release.head)
    assert manifest["privacy"]["invariants"] == ["ward total"]
    assert not list(tmp_path.glob(".out*"))


def test_the_budget_is_not_overspent(town, ledger, tmp_path):
    topdown(town, out=tmp_path / "out")
    with pytest.raises(BudgetError):
        topdown(town, out=tmp_path / "again")
    assert not (tmp_path / "again").exists()


def test_estimate_never_opens_the_records(town, ledger, tmp_path):
    folder = measure(town, out=tmp_path / "measured").folder
    (town.parent / "people.csv").unlink()
    release = estimate(town, measurements=folder, out=tmp_path / "out")
    assert verify(tmp_path / "out").passed and release.is_private


def test_estimate_gives_the_same_bytes_again(town, ledger, tmp_path):
    folder = measure(town, out=tmp_path / "measured").folder
    for name in ("one", "two"):
        estimate(town, measurements=folder, out=tmp_path / name, engine="local:2")
    assert data_bytes(tmp_path / "one") == data_bytes(tmp_path / "two")


def test_measuring_again_changes_nothing(town, ledger, tmp_path):
    folder = measure(town, out=tmp_path / "measured").folder
    before = (folder / "measurements/topdown.parquet").read_bytes()
    measure(town, out=folder, resume=True)
    assert (folder / "measurements/topdown.parquet").read_bytes() == before
    assert ledger.state().spent == 2 and len(ledger.state().disclosures) == 1


def test_a_run_stopped_before_the_seal_draws_the_same_noise(town, ledger, tmp_path, monkeypatch):
    drawn = []

    class Stopped(Exception):
        pass

    def stop(self, debit, files, **place):
        drawn.append(files)
        raise Stopped

    with monkeypatch.context() as patch:
        patch.setattr(Ledger, "seal", stop)
        with pytest.raises(Stopped):
            topdown(town, out=tmp_path / "out")
    assert ledger.state().pending
    with pytest.raises(InputError, match="add --resume"):
        topdown(town, out=tmp_path / "out")
    topdown(town, out=tmp_path / "out", resume=True)
    assert list(ledger.state().sealed.values()) == drawn
    assert ledger.state().spent == 2


def test_a_run_stopped_in_the_middle_of_estimating_is_carried_on(town, ledger, tmp_path, monkeypatch):
    real = estimation._estimate_level
    levels = []

    def stop_at_area(own, *rest):
        levels.append(own.level)
        if own.level == 2 and levels.count(2) == 1:
            raise KeyboardInterrupt
        return real(own, *rest)

    monkeypatch.setattr(estimation, "_estimate_level", stop_at_area)
    with pytest.raises(KeyboardInterrupt):
        topdown(town, out=tmp_path / "out")
    topdown(town, out=tmp_path / "out", resume=True)
    assert levels == [0, 1, 2, 2, 3]
    assert ledger.state().spent == 2


def test_a_run_stopped_after_the_move_is_done(town, ledger, tmp_path, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr("louver.topdown.solve.shutil.rmtree", lambda *_, **__: None)
        first = topdown(town, out=tmp_path / "out")
    assert (tmp_path / ".out.topdown").exists()
    with monkeypatch.context() as patch:  # the levels are there: none is estimated again
        patch.setattr(estimation, "_estimate_level", None)
        again = topdown(town, out=tmp_path / "out", resume=True)
    assert again.head == first.head and not (tmp_path / ".out.topdown").exists()
    # Nothing is left to carry on: the same answer, and nothing is paid.
    assert topdown(town, out=tmp_path / "out", resume=True).to_frame() == first.to_frame()
    assert ledger.state().spent == 2


def test_resuming_refuses_another_release(town, ledger, tmp_path):
    topdown(town, out=tmp_path / "seeded", seed=1)
    with pytest.raises(InputError, match="already exists"):
        topdown(town, out=tmp_path / "seeded", resume=True)
    topdown(town, out=tmp_path / "out")
    town.write_text(SPEC.replace("epsilon = 2", "epsilon = 1"))
    (tmp_path / "plain").mkdir()
    for name in ("out", "plain"):
        with pytest.raises(InputError, match="already exists"):
            topdown(town, out=tmp_path / name, resume=True)
    assert ledger.state().spent == 2


def test_a_refused_debit_leaves_nothing(town, tmp_path):
    Ledger.create(town.parent / "people.csv.ledger", Measure.EPSILON, Relation.CHANGE_RECORD, Fraction(1))
    for verb in (topdown, measure):
        with pytest.raises(BudgetError):
            verb(town, out=tmp_path / "out")
    assert [path.name for path in tmp_path.iterdir()] == ["town"]
    assert not Ledger(town.parent / "people.csv.ledger").state().disclosures


def test_data_that_change_while_they_are_read_are_refused(town, ledger, tmp_path, monkeypatch):
    real = sealing.true_levels

    def write_meanwhile(*asked):
        levels = real(*asked)
        with (town.parent / "people.csv").open("a") as file:
            file.write("1A1,home,adult,a\n")
        return levels

    monkeypatch.setattr(sealing, "true_levels", write_meanwhile)
    with pytest.raises(InputError, match="changed while being read"):
        topdown(town, out=tmp_path / "out")
    assert ledger.state().spent == 0 and not list(tmp_path.glob(".out*"))


READ_OTHERWISE = {
    "source.file": None,  # the records themselves, which the ledger's keyed hash binds
    "source.uri": None,
    "source.table": ('file = "people.csv"', 'file = "people.csv"\ntable = "t"'),
    "source.query": ('file = "people.csv"', 'file = "people.csv"\nquery = "q"'),
    "source.weight": ('file = "people.csv"', 'file = "people.csv"\nweight = "n"'),
    "source.wide": ('file = "people.csv"', 'file = "people.csv"\nwide = { n = { age = "adult" } }'),
    "source.decimal_mark": ('file = "people.csv"', 'file = "people.csv"\ndecimal_mark = ","'),
    "source.encoding": ('file = "people.csv"', 'file = "people.csv"\nencoding = "cp1252"'),
    "source.delimiter": ('file = "people.csv"', 'file = "people.csv"\ndelimiter = ","'),
    "source.keep_codes": ('file = "people.csv"', 'file = "people.csv"\nkeep_codes = true'),
    "source.header_row": ('file = "people.csv"', 'file = "people.csv"\nheader_row = 1'),
    "source.missing_code": ('file = "people.csv"', 'file = "people.csv"\nmissing_code = { "*" = ["N"] }'),
    "source.date_order": ('file = "people.csv"', 'file = "people.csv"\ndate_order = "dmy"'),
    "source.weight_is_count": ('file = "people.csv"', 'file = "people.csv"\nweight_is_count = true'),
    "source.where": None,  # below, with neighbours that a filter goes with
    "attribute.kind": ('labels = ["adult"', 'kind = "ordered"\nlabels = ["adult"'),
    "attribute.labels": ('labels = ["a", "b", "c"]', 'labels = ["c", "b", "a"]'),
    "attribute.missing": ('labels = ["a", "b", "c"]', 'labels = ["a", "b", "c"]\nmissing = "c"'),
    "attribute.bins": ('labels = ["a", "b", "c"]', 'kind = "integer"\nbins = [5, 6]'),
    "attribute.merge": (
        'labels = ["a", "b", "c"]',
        'labels = ["a", "b", "c", "d"]\nmerge = { c = ["c", "d"] }',
    ),
    "attribute.hierarchy": ('labels = ["a", "b", "c"]', 'labels = ["a", "b", "c"]\nhierarchy = "h.csv"'),
    "attribute.level": ('labels = ["a", "b", "c"]', 'hierarchy = "h.csv"\nlevel = 0'),
}


def test_every_option_of_reading_is_accounted_for():
    fields = {f"source.{name}" for name in SourceOptions.model_fields}
    assert fields | {f"attribute.{name}" for name in AttributeOptions.model_fields} == set(READ_OTHERWISE)


@pytest.mark.parametrize(("old", "new"), [pair for pair in READ_OTHERWISE.values() if pair])
def test_a_debit_is_not_taken_up_by_a_spec_that_reads_otherwise(town, old, new):
    """Two readings of the same records under one key would give the differences away."""
    (town.parent / "h.csv").write_text("level0,level1\na,x\nb,y\nc,y\n")
    before = make_plan(read_design(town)).request()
    text = SPEC.replace(old, new)
    assert text != SPEC
    town.write_text(text)
    assert make_plan(read_design(town)).request() != before


def test_another_filter_is_another_request(town):
    requests = set()
    for where in ("", "where = \"age = 'adult'\"\n", "where = \"age = 'child'\"\n"):
        text = SPEC.replace('file = "people.csv"\n', f'file = "people.csv"\n{where}')
        text = re.sub(r"(?m)^\[\[topdown.invariants\]\]\n(\w+ = .*\n)*", "", text)
        town.write_text(text.replace("epsilon = 2", 'epsilon = 2\nneighbours = "add-remove-record"'))
        requests.add(make_plan(read_design(town)).request())
    assert len(requests) == 3


def test_a_filter_needs_neighbours_that_may_come_and_go(town):
    town.write_text(SPEC.replace('file = "people.csv"', 'file = "people.csv"\nwhere = "age = \'adult\'"'))
    with pytest.raises(InputError, match="--where cannot be used with neighbours change-record"):
        read_design(town)


@pytest.mark.parametrize("merge", ['{ x = ["b", "c"] }', '{ x = ["a", "b"] }'])
def test_the_same_labels_by_another_merge_are_another_request(town, merge):
    plain = SPEC.replace('labels = ["a", "b", "c"]', 'labels = ["a", "b", "c"]\nmerge = { x = ["a", "c"] }')
    town.write_text(plain)
    before = make_plan(read_design(town)).request()
    town.write_text(plain.replace('{ x = ["a", "c"] }', merge))
    assert make_plan(read_design(town)).request() != before


def test_checkpoints_belong_to_what_was_publicly_known(town, ledger, tmp_path):
    folder = measure(town, out=tmp_path / "measured").folder
    estimate(town, measurements=folder)
    facilities = town.parent / "facilities.csv"
    facilities.write_text(facilities.read_text().replace("1A2,1,0", "1A2,3,0"))
    estimate(town, measurements=folder, out=tmp_path / "out")
    assert verify(tmp_path / "out").passed
    found = pq.read_table(tmp_path / "out/data/tables/quarters.parquet").to_pylist()
    assert next(r["count"] for r in found if (r["region"], r["quarters"]) == ("1A2", "dorm")) >= 3


def test_microdata_as_csv(town, tmp_path):
    topdown(town, out=tmp_path / "out", seed=3, csv=True)
    assert holds(tmp_path / "out")
    lines = (tmp_path / "out/data/microdata.csv").read_text().splitlines()
    assert lines[0] == '"block","quarters","age","race"' and len(lines) == len(people()) + 1
    lines[1], lines[2] = lines[-1], lines[1]
    (tmp_path / "out/data/microdata.csv").write_text("\n".join(lines) + "\n")
    check = doubt(tmp_path / "out", "topdown")
    assert (check.passed, check.found) == (False, "the microdata as CSV differ from those as Parquet")


def test_what_the_invariants_give_away_is_said(tmp_path):
    added = SPEC.replace("epsilon = 2", 'epsilon = 2\nneighbours = "add-remove-record"')
    some = 'level = "ward"\ncells = { quarters = ["dorm"] }'
    told = {}
    for name, text in (
        ("changed", SPEC),
        ("some", SPEC.replace('level = "ward"', some)),
        ("added", added.replace('level = "ward"', some)),
        ("root", SPEC.replace('name = "ward total"\nlevel = "ward"', 'name = "ward total"\nlevel = "town"')),
    ):
        topdown(write_town(tmp_path / name, text), seed=1, out=tmp_path / f"{name}-out")
        privacy = json.loads((tmp_path / f"{name}-out/manifest.json").read_text())["privacy"]
        (told[name],) = privacy["not_protected"]
        found = topdown_verdict(privacy, (), is_private=True, is_for_release=True)
        assert found.level is Level.CARE and "tables that hide small counts" in found.reasons[-1]
    assert told == {
        "changed": 'which ward a person lives in (invariant "ward total")',
        "some": "whether a person of a ward has quarters dorm, and which ward such a person lives in "
        '(invariant "ward total")',
        "added": 'whether a person with quarters dorm is there at all (invariant "ward total")',
        "root": 'how many people there are (invariant "ward total")',
    }


HAMLET = """
[attributes.sex]
labels = ["f", "m"]
[attributes.age]
labels = ["adult", "child"]
[topdown]
epsilon = 1
neighbours = "{}"
[topdown.geography]
column = "block"
levels = ["hamlet", "area", "block"]
prefixes = [0, 1, 2]
leaves = "leaves.csv"
[topdown.shares]
levels = {{ hamlet = "1/3", area = "1/3", block = "1/3" }}
queries = {{ detailed = 1 }}
"""
EVERYONE, WOMEN, CHILDREN = "{}", '{ sex = ["f"] }', '{ age = ["child"] }'


@pytest.mark.parametrize(
    ("neighbours", "level", "counted", "is_refused"),
    [
        ("add-remove-record", "hamlet", [EVERYONE], True),
        ("add-remove-record", "block", [WOMEN, CHILDREN], False),
        ("change-record", "block", [EVERYONE], False),
        # Which of the four cells a record has can be read off the counts of every block ...
        ("change-record", "block", [EVERYONE, WOMEN, CHILDREN], True),
        # ... but it may move between the blocks of an area.
        ("change-record", "area", [EVERYONE, WOMEN, CHILDREN], False),
    ],
)
def test_invariants_that_leave_nobody_to_protect_are_refused(
    tmp_path, neighbours, level, counted, is_refused
):
    text = HAMLET.format(neighbours)
    for number, cells in enumerate(counted):
        text += f'[[topdown.invariants]]\nname = "{number}"\nlevel = "{level}"\ncells = {cells}\n'
    (tmp_path / "leaves.csv").write_text("block\n11\n12\n21\n")
    (tmp_path / "hamlet.toml").write_text(text)
    design = read_design(tmp_path / "hamlet.toml")
    if is_refused:
        with pytest.raises(InputError, match="nothing would be protected"):
            make_plan(design)
    else:
        assert make_plan(design).not_protected


def test_zero_concentrated_privacy(town, tmp_path):
    path = write_town(tmp_path / "rho", SPEC.replace("epsilon = 2", 'rho = "1/2"\ndelta = 1e-6'))
    release = topdown(path, seed=1, out=tmp_path / "out")
    manifest = json.loads((tmp_path / "out/manifest.json").read_text())
    assert manifest["privacy"]["measure"] == "rho" and manifest["privacy"]["amount"] == "1/2"
    epsilon, delta = manifest["privacy"]["epsilon_at_delta"]
    assert Fraction(epsilon) > Fraction(1, 2) and Fraction(delta) == Fraction(1, 10**6)
    assert release.to_dict()["epsilon"] is None


def test_epsilon_with_delta_is_composed_and_paid_for_in_rho(town, tmp_path):
    path = write_town(tmp_path / "both", SPEC.replace("epsilon = 2", "epsilon = 2\ndelta = 1e-6"))
    plan = make_plan(read_design(path))
    queries = [m for level in plan.measured for m in level]
    noise = [ChangedCounts(m.distribution.sigma_squared, 2) for m in queries]
    assert plan.loss.measure is Measure.RHO and delta_at(Fraction(2), noise) <= 1e-6
    assert sum(part.rho for part in noise) == plan.loss.amount
    assert epsilon_at(plan.loss.amount, Fraction(1, 10**6)) > 2
    other = make_plan(
        read_design(write_town(tmp_path / "rho", SPEC.replace("epsilon = 2", "rho = 2\ndelta = 1e-6")))
    )
    assert plan.request() != other.request()
    ledger = path.parent / "people.csv.ledger"
    Ledger.create(ledger, Measure.EPSILON, Relation.CHANGE_RECORD, Fraction(9))
    with pytest.raises(BudgetError, match="use a ledger in rho"):
        measure(path, out=tmp_path / "measured")
    ledger.unlink()
    paid = Ledger.create(ledger, Measure.RHO, Relation.CHANGE_RECORD, Fraction(9))
    assert (
        measure(path, out=tmp_path / "measured").loss == plan.loss and paid.state().spent == plan.loss.amount
    )
    release = estimate(path, measurements=tmp_path / "measured", out=tmp_path / "out")
    told = json.loads((tmp_path / "out/manifest.json").read_text())["privacy"]
    assert told["composed"] == ["2", "1/1000000"] and told["amount"] == told["budget"] == str(
        plan.loss.amount
    )
    assert Fraction(told["epsilon_at_delta"][0]) > 2
    assert "epsilon 2 at delta 1e-06, its queries composed" in topdown_report(release)


def test_queries_that_invariants_answer_are_not_paid_for(tmp_path):
    spec = SPEC.replace('quarters = ["quarters"]', 'quarters = ["quarters"]\ntotal = []').replace(
        'detailed = "1/2"', 'detailed = "1/4", total = "1/4"'
    )
    release = topdown(write_town(tmp_path / "town", spec), seed=1)
    measured = [[m.query.name for m in level] for level in release.plan.measured]
    assert "total" not in measured[0] + measured[1] and "total" in measured[2] and "total" in measured[3]
    assert release.plan.loss.amount == Fraction(2) * (1 - Fraction(1, 4) * Fraction(1, 4) * 2)


def test_regions_by_columns_and_counted_records(tmp_path):
    spec = SPEC.replace(
        'column = "block"\nlevels = ["town", "ward", "area", "block"]\nprefixes = [0, 1, 2, 3]',
        'columns = ["town", "ward", "area", "block"]\nlevels = ["town", "ward", "area", "block"]',
    ).replace('file = "people.csv"', 'file = "people.csv"\nweight = "n"')
    path = write_town(tmp_path / "town", spec)
    columns = [("T", block[0], block[1], block[2]) for block in BLOCKS]
    head = "town,ward,area,block"
    (path.parent / "leaves.csv").write_text("\n".join([head, *(",".join(c) for c in columns)]) + "\n")
    lines = [
        ",".join([*c, str(FACILITIES["dorm"].get(b, 0)), str(FACILITIES["jail"].get(b, 0))])
        for b, c in zip(BLOCKS, columns, strict=True)
    ]
    (path.parent / "facilities.csv").write_text("\n".join([head + ",dorm,jail", *lines]) + "\n")
    counted = Counter(people())
    rows = [",".join(["T", *record[0], *record[1:], str(n)]) for record, n in counted.items()]
    (path.parent / "people.csv").write_text("\n".join([head + ",quarters,age,race,n", *rows]) + "\n")
    by_code = topdown(write_town(tmp_path / "coded"), seed=2, out=tmp_path / "one")
    by_column = topdown(path, seed=2, out=tmp_path / "two")
    assert holds(tmp_path / "two")
    table = pq.read_table(tmp_path / "two/data/microdata.parquet")
    assert table.column_names[:4] == ["town", "ward", "area", "block"]
    assert np.array_equal(by_code.estimate.leaves.count, by_column.estimate.leaves.count)


def test_bounds_from_above(tmp_path):
    """Houses bound the people at home; home is a type of its own."""
    extra = (
        '\n[[topdown.bounds]]\nname = "houses"\nfile = "facilities.csv"\ncells = { quarters = ["home"] }\n'
    )
    spec = SPEC + extra + 'upper = "houses"\n'
    topdown(write_town(tmp_path / "town", spec), seed=4, out=tmp_path / "out")
    assert holds(tmp_path / "out")


def test_data_that_contradict_public_knowledge_end_before_a_debit(town, ledger, tmp_path):
    lines = (town.parent / "people.csv").read_text().splitlines()
    kept = [line for line in lines if not line.startswith("1")]
    (town.parent / "people.csv").write_text("\n".join(kept) + "\n")
    with pytest.raises(InfeasibleError, match='ward "1"'):
        topdown(town, out=tmp_path / "out")
    assert ledger.state().spent == 0 and not ledger.state().disclosures


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"engine": "remote:1"}, "engine"),
        ({"engine": "local:0"}, "engine"),
        ({"evaluate": True}, "--seed"),
        ({}, "--out"),
    ],
)
def test_options_that_cannot_be(town, ledger, options, message):
    with pytest.raises(InputError, match=re.escape(message)):
        topdown(town, **options)


def test_places_that_cannot_be(town, tmp_path):
    (tmp_path / "taken").mkdir()
    with pytest.raises(InputError, match="already exists"):
        topdown(town, out=tmp_path / "taken", seed=1)
    with pytest.raises(InputError, match="no ledger"):
        topdown(town, out=tmp_path / "out")
    with pytest.raises(InputError, match="has no measurements"):
        estimate(town, measurements=tmp_path / "taken")
    text = town.read_text().replace('file = "people.csv"', 'uri = "postgresql://host/base"')
    town.write_text(text)
    with pytest.raises(InputError, match="--ledger"):
        topdown(town, out=tmp_path / "out")
    town.write_text(text.replace('uri = "postgresql://host/base"', ""))
    with pytest.raises(InputError, match="has no source"):
        topdown(town, seed=1)


def test_a_folder_whose_note_cannot_be_read_is_left_alone(town, ledger, tmp_path):
    folder = measure(town, out=tmp_path / "measured").folder
    for note in ("", "{}"):
        (folder / "request.json").write_text(note)
        with pytest.raises(InputError, match="request.json in measured cannot be read"):
            measure(town, out=folder, resume=True)
    assert ledger.state().spent == 2


def test_labels_in_another_order_are_other_measurements(town, ledger, tmp_path):
    folder = measure(town, out=tmp_path / "measured").folder
    town.write_text(SPEC.replace('labels = ["a", "b", "c"]', 'labels = ["c", "b", "a"]'))
    with pytest.raises(InputError, match="not measured by this spec"):
        estimate(town, measurements=folder)


def test_too_many_people_are_refused_before_a_debit(tmp_path):
    spec = SPEC.replace('file = "people.csv"', 'file = "people.csv"\nweight = "n"')
    town = write_town(tmp_path / "town", spec)
    (town.parent / "people.csv").write_text(f"block,quarters,age,race,n\n1A1,home,adult,a,{1 << 40}\n")
    with pytest.raises(InputError, match="people or more"):
        topdown(town, seed=1)


def test_a_checkpoint_that_is_cut_short_is_refused(town, ledger, tmp_path):
    folder = measure(town, out=tmp_path / "measured").folder
    estimate(town, measurements=folder)
    for path in (folder / "checkpoints").rglob("level-1.npz"):
        path.write_bytes(path.read_bytes()[:-30])
    with pytest.raises(InputError, match="checkpoint level-1.npz cannot be read"):
        estimate(town, measurements=folder)


def test_a_folder_of_other_measurements_is_left_alone(town, ledger, tmp_path):
    folder = measure(town, out=tmp_path / "measured").folder
    town.write_text(SPEC.replace("epsilon = 2", "epsilon = 1"))
    with pytest.raises(InputError, match="another spec"):
        measure(town, out=folder, resume=True)
    (tmp_path / "full").mkdir()
    (tmp_path / "full/file").write_text("x")
    for resume in (False, True):
        with pytest.raises(InputError, match="already exists"):
            measure(town, out=tmp_path / "full", resume=resume)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("epsilon = 2", "epsilon = 1"),
        ("age_race =", "both ="),
        ('age_race = ["age", "race"]', 'age_race = ["race"]'),
        ('"ward", "area"', '"ward", "quarter"'),
        ("prefixes = [0, 1, 2, 3]", "prefixes = [0, 1, 2, 3] # same"),
    ],
)
def test_measurements_of_another_spec_are_refused(town, ledger, tmp_path, old, new):
    folder = measure(town, out=tmp_path / "measured").folder
    text = (
        SPEC.replace(old, new).replace("area = ", "quarter = ")
        if "quarter" in new
        else SPEC.replace(old, new)
    )
    town.write_text(text)
    if new.endswith("same"):
        estimate(town, measurements=folder)
        return
    with pytest.raises(InputError, match="not measured by this spec"):
        estimate(town, measurements=folder)


def test_a_file_that_is_none_is_refused(town, tmp_path):
    plan = make_plan(read_design(town))
    (tmp_path / "none.parquet").write_text("nothing")
    with pytest.raises(InputError, match="not measured by this spec"):
        SealedCounts(tmp_path / "none.parquet", plan).read(0, 0, 1)


def test_invariants_that_do_not_belong_are_refused(town, ledger, tmp_path):
    folder = measure(town, out=tmp_path / "measured").folder
    table = pq.read_table(folder / "invariants.parquet")
    pq.write_table(table.slice(0, 1), folder / "invariants.parquet")
    with pytest.raises(InputError, match="does not hold the invariants"):
        estimate(town, measurements=folder)
    for odd in ([[1]] * len(table), [None] * len(table), [1.5] * len(table)):
        pq.write_table(table.set_column(3, "value", pa.array(odd)), folder / "invariants.parquet")
        with pytest.raises(InputError, match="does not hold the invariants"):
            estimate(town, measurements=folder)
    (folder / "invariants.parquet").write_text("nothing")
    with pytest.raises(InputError, match="does not hold the invariants"):
        estimate(town, measurements=folder)


def test_records_outside_the_domain_are_refused(town):
    records = town.parent / "people.csv"
    records.write_text(records.read_text() + "9Z9,home,adult,a\n")
    with pytest.raises(InputError) as error:
        topdown(town, seed=1)
    assert error.value.column == "block" and "9Z9" not in str(error.value)


@pytest.fixture(scope="module")
def honest(tmp_path_factory):
    folder = tmp_path_factory.mktemp("honest")
    topdown(write_town(folder / "town"), out=folder / "out", seed=3)
    assert doubt(folder / "out", "topdown").passed
    return folder / "out"


@pytest.fixture
def published(honest, tmp_path):
    """A copy to change."""
    return shutil.copytree(honest, tmp_path / "out")


def replaced(table, column, row, value):
    values = table[column].to_pylist()
    values[row] = value
    return table.set_column(table.column_names.index(column), column, pa.array(values))


@pytest.mark.parametrize(
    ("name", "change", "found"),
    [
        ("data/microdata.parquet", lambda t: t.slice(1), "invariant"),
        ("data/microdata.parquet", lambda t: replaced(t, "race", 0, "z"), "domain"),
        ("data/microdata.parquet", lambda t: replaced(t, "block", 0, "1Z9"), "leaves"),
        ("invariants.parquet", lambda t: t.slice(1), "one value for each region"),
        ("measurements/topdown.parquet", lambda t: t.slice(1), "variances"),
        ("data/microdata.parquet", lambda t: replaced(t, "race", 0, "c"), "table"),
        ("data/microdata.parquet", lambda t: replaced(t, "block", 0, "1B2"), "table"),
        ("data/microdata.parquet", lambda t: replaced(t, "quarters", 0, "jail"), "bound"),
        ("data/microdata.parquet", lambda t: t.rename_columns(["b", *t.column_names[1:]]), "other columns"),
        (
            "data/tables/quarters.parquet",
            lambda t: replaced(t, "count", 0, t["count"][0].as_py() + 1),
            "table",
        ),
        ("data/tables/quarters.parquet", lambda t: t.slice(1), "table"),
        ("data/tables/quarters.parquet", lambda t: pa.concat_tables([t, t.slice(0, 1)]), "table"),
        ("data/tables/quarters.parquet", lambda t: t.drop_columns(["region"]), "table"),
        ("invariants.parquet", lambda t: replaced(t, "value", 0, 1), "invariant"),
        (
            "public/statements.parquet",
            lambda t: replaced(t, "lower", t["lower"].to_pylist().index(1), 99),
            "bound",
        ),
    ],
)
def test_what_does_not_hold_is_noticed(published, name, change, found):
    pq.write_table(change(pq.read_table(published / name)), published / name)
    check = doubt(published, "topdown")
    assert not check.passed and found in check.found


def test_measurements_that_another_entry_paid_for_are_noticed(published):
    edit(published, lambda manifest: manifest.update(ledger_head="3:ab"))
    check = next(check for check in verify(published).checks if check.name == "measurements")
    assert not check.passed and "paid for" in check.found


def test_people_in_a_structural_zero_are_noticed(published):
    path = published / "data/microdata.parquet"
    table = pq.read_table(path)
    row = table["quarters"].to_pylist().index("jail")
    pq.write_table(replaced(table, "age", row, "child"), path)
    check = doubt(published, "topdown")
    assert (check.passed, check.found) == (False, "there are people in a structural zero")


def test_checking_before_anything_is_spent(town):
    found = check(town)
    assert found.passed and found.kind == "nested" and not found.outside
    assert found.constrained == {"town": 1, "ward": 2, "area": 4, "block": 9}
    assert any(line.startswith("dormitories: at least 3") for line in found.implied)
    assert json.loads(found.to_json())["passed"] is True
    assert not (town.parent / "people.csv.ledger").exists()


def test_is_a_table_extendable(town):
    counts = np.zeros((3, 2, 3), dtype=int)
    counts[0], counts[1, 0, 0], counts[2, 0, 0] = 20, 3, 1
    assert check(town, table=("town", "", counts)).passed
    counts[1, 0, 0] = 2
    found = check(town, table=("town", "", counts))
    assert not found.passed and found.violation is not None
    assert found.violation.leaves == ("1A2", "2B1") and "cannot be extended" in repr(found)


def test_known_values_and_tables_from_files(town, tmp_path):
    values = tmp_path / "values.csv"
    values.write_text("invariant,level,region,value\nward total,ward,1,1\nward total,ward,2,60\n")
    assert not check(town, invariants=values).is_consistent
    values.write_text("invariant,level,region,value\nward total,ward,1,70\nward total,ward,2,60\n")
    assert check(town, invariants=values).is_consistent
    counts = tmp_path / "counts.csv"
    rows = "home,adult,a,100\ndorm,child,b,3\njail,adult,c,1\n"
    counts.write_text("quarters,age,race,count\n" + rows)
    assert check(town, table=("town", "", counts)).passed
    counts.write_text("quarters,age,race,count\n" + rows.replace("dorm,child,b,3", "dorm,child,b,2"))
    assert not check(town, table=("town", "", counts)).passed


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ("nobody,ward,1,1", "row 1"),
        ("ward total,town,1,1", "row 1"),
        ("ward total,ward,1,1\nward total,ward,3,1", "row 2"),
        ("ward total,ward,1,-1", 'column "value"'),
        ("ward total,ward,1,1", "all regions"),
    ],
)
def test_known_values_that_cannot_be(town, tmp_path, rows, message):
    values = tmp_path / "values.csv"
    values.write_text(f"invariant,level,region,value\n{rows}\n")
    with pytest.raises(InputError, match=message) as error:
        check(town, invariants=values)
    assert error.value.file == "values.csv"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"table": ("nowhere", "1", np.zeros(18))}, "no level"),
        ({"table": ("ward", "9", np.zeros(18))}, "region"),
        ({"table": ("ward", "1", np.zeros(17))}, "18 cells"),
        ({"invariants": {"ward total": [1, 2, 3]}}, "one for each region"),
        ({"invariants": {"ward totals": [1, 2]}}, "does not have"),
    ],
)
def test_checks_that_cannot_be(town, options, message):
    with pytest.raises(InputError, match=message):
        check(town, **options)


def test_a_clash_names_the_smallest_set_of_statements(town):
    # Ward 1 has two facilities' worth of people at least, so a total of one is impossible.
    found = check(town, invariants={"ward total": [1, 60]})
    assert not found.is_consistent and "CONTRADICTORY" in repr(found)
    named = {(clash.statement, clash.region) for clash in found.clash}
    assert named == {("ward total", "1"), ("dormitories", "1A2"), ("prisons", "1B1")}
