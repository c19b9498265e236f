"""Forecasts before anything is spent: from public knowledge alone, right where they can be checked, written as a spec."""

from __future__ import annotations

import json
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import csv as pacsv

from louver.errors import InputError
from louver.privacy.budget import Measure
from louver.privacy.ledger import Ledger
from louver.privacy.neighbours import Relation
from louver.release.verify import verify
from louver.report.topdown import plan_report
from louver.topdown import estimate, measure, plan, topdown
from louver.topdown.errors.simulate import public_seed
from louver.topdown.load import read_design
from louver.topdown.measuring import sealing
from louver.topdown.measuring.noise_plan import make_plan
from louver.topdown.measuring.true_counts import true_leaves
from louver.topdown.planning import forecast as planning
from louver.topdown.planning.forecast import forecast
from louver.topdown.planning.stand_in import draw_stand_in, read_stand_in
from topdown_town import SPEC, people, simulated, write_town

OPEN = SPEC.partition("[[topdown.bounds]]")[0]
SHARES = SPEC[SPEC.index("[topdown.shares]") : SPEC.index("[[topdown.invariants]]")]
BARE = SPEC.replace(SHARES, "")


@pytest.fixture
def town(tmp_path):
    """The town without its records: whoever opens them fails."""
    path = write_town(tmp_path / "town")
    path.with_name("people.csv").unlink()
    return path


def table_of(folder, records, name="other.csv"):
    path = folder / name
    path.write_text("\n".join(["block,quarters,age,race", *map(",".join, records)]))
    return path


def test_a_forecast_has_every_query_at_every_level_and_opens_no_records(town):
    found = plan(town, simulations=1)
    assert list(found.plans) == ["spec", "chosen", "equal"]
    levels, queries = ("town", "ward", "area", "block"), ("total", "quarters", "age_race", "detailed")
    assert {(x.level, x.query) for x in found.lines} == {(a, b) for a in levels for b in queries}
    assert len(found.lines) == 3 * 16 and found.simulations == 1
    assert found.line("spec", "ward", "total").mean_absolute == 0  # an invariant
    assert found.line("spec", "block", "detailed").share == "1/8"
    assert "nothing is spent" in repr(found) and "Totals of level ward will be exact." in repr(found)
    assert len(json.loads(found.to_json())["lines"]) == found.to_frame().num_rows == 48
    assert "<svg" in plan_report(found) and "mean absolute error" in plan_report(found)


def test_the_plan_of_a_spec_without_shares_is_the_one_that_it_will_be_measured_by(town):
    town.write_text(BARE)
    found = plan(town, simulations=0)
    assert list(found.plans) == ["default", "chosen", "equal"]
    assert found.plans["default"].design.options.shares == read_design(town).options.shares


@pytest.mark.long
def test_the_same_forecast_for_any_number_of_workers(town):
    assert plan(town, engine="local:2", simulations=1).lines == plan(town, simulations=1).lines


def test_a_forecast_is_what_releases_of_the_stand_in_are_off_by(tmp_path):
    spec = write_town(tmp_path)
    design = read_design(spec)
    leaves, asked = true_leaves(design), make_plan(design)
    found = forecast({"one": asked}, leaves, "the town itself", simulations=2)
    off = []
    for run in simulated(asked, leaves, [public_seed("forecast", str(n)) for n in range(2)]):
        off.append(run.leaves.to_dense(18) - leaves.to_dense(18))
    line = found.line("one", "block", "detailed")
    assert line.method == "simulated"
    assert line.mean_absolute == pytest.approx(np.abs(off).mean())
    assert line.standard_error == pytest.approx(np.sqrt(np.square(off).mean()))
    assert line.relative == pytest.approx(line.mean_absolute / leaves.to_dense(18).mean())


def test_large_counts_are_forecast_in_closed_form(tmp_path):
    spec = write_town(tmp_path, OPEN.replace("epsilon = 2", "epsilon = 2\nestimator = 'least-squares'"))
    table = table_of(tmp_path, [(*record,) for record in people() for _ in range(400)])
    closed, simulated = (
        plan(spec, stand_in=str(table), simulations=n).line("spec", "ward", "age_race") for n in (0, 1)
    )
    assert closed.method == simulated.method == "closed form"
    assert closed == simulated


def test_a_stand_in_with_other_regions_keeps_sizes_above_the_leaves(town, tmp_path):
    design = read_design(town)
    records = [
        (f"{w}{a}{b}", "home", "adult", "a") for w in "7" for a in "XY" for b in "12" for _ in range(30)
    ]
    leaves = read_stand_in(design, str(table_of(tmp_path, records)))
    assert leaves.n_regions == 9 and leaves.count.sum() > 100
    with pytest.raises(InputError, match="not structured like the spec's"):
        read_stand_in(design, str(table_of(tmp_path, [("1", "home", "adult", "a")])))


def test_a_composition_bends_a_stand_in(town, tmp_path):
    design = read_design(town)
    table = table_of(tmp_path, [record for record in people() for _ in range(20)])
    plain = read_stand_in(design, str(table))
    wanted = np.zeros((1, 18), np.int64)
    wanted[0, [2, 5]] = 900, 100  # home, adult, c; home, child, c
    bent = read_stand_in(design, str(table), composition=wanted)
    shares = np.bincount(bent.cell, bent.count, minlength=18)
    assert shares[2] > 5 * shares[5] > 0
    assert bent.count.sum() == pytest.approx(plain.count.sum(), rel=0.05)
    fewer = read_stand_in(design, str(table), people=500)
    assert fewer.count.sum() == pytest.approx(500, rel=0.1)


def test_the_records_are_refused_as_a_stand_in_whatever_their_name_order_and_format(tmp_path):
    spec = write_town(tmp_path / "town")
    source = pacsv.read_csv(
        spec.with_name("people.csv"),
        convert_options=pacsv.ConvertOptions(column_types=dict.fromkeys(["block", "age"], "string")),
    )
    turned = source.take(list(reversed(range(len(source))))).select(source.column_names[::-1])
    pq.write_table(turned, tmp_path / "innocent.parquet")
    with pytest.raises(InputError, match="names the records themselves") as caught:
        plan(spec, stand_in=tmp_path / "innocent.parquet", simulations=1)
    assert caught.value.option == "--stand-in"
    people = spec.with_name("people.csv")
    numbered = source.append_column("person", pa.array(range(len(source))))
    pacsv.write_csv(numbered, people)
    with pytest.raises(InputError, match="names the records themselves"):
        plan(spec, stand_in=tmp_path / "innocent.parquet", simulations=1)
    pq.write_table(turned.slice(1), tmp_path / "others.parquet")
    assert plan(spec, stand_in=tmp_path / "others.parquet", simulations=1).lines


def test_the_sentences_are_about_the_shares_that_are_written(town):
    before, found = plan(town, simulations=0), plan(town, simulations=0, write=town.with_name("new.toml"))
    assert (before.headline, found.headline) == ("spec", "chosen")
    line = found.line("chosen", "block", "total")
    assert f"level block will be off by about {line.mean_absolute:.1f} people" in repr(found)
    assert f"level block will be off by about {line.mean_absolute:.0f} people" not in repr(before)
    assert 'The shares called "chosen" are in new.toml.' in repr(found)
    assert json.loads(found.to_json())["headline"] == "chosen"


def test_a_composition_by_region_is_read(town, tmp_path):
    design = read_design(town)
    (tmp_path / "counts.csv").write_text(
        "ward,quarters,age,race,count\n1,home,adult,b,7\n2,home,adult,a,3\n2,home,child,c,4\n"
    )
    counts = planning._composition(design, tmp_path / "counts.csv")
    assert counts.shape == (2, 18)
    assert {(int(i), int(j)): int(counts[i, j]) for i, j in np.argwhere(counts)} == {
        (0, 1): 7,
        (1, 0): 3,
        (1, 5): 4,
    }
    found = plan(
        town,
        stand_in=table_of(tmp_path, [record for record in people() for _ in range(20)]),
        composition=tmp_path / "counts.csv",
        simulations=1,
    )
    assert found.lines
    (tmp_path / "counts.csv").write_text("ward,quarters,age,race,count\n9,home,adult,b,7\n")
    with pytest.raises(InputError, match=r'column "ward" in counts.csv'):
        planning._composition(design, tmp_path / "counts.csv")


def test_a_drawn_stand_in_agrees_with_the_bounds(town):
    design = read_design(town)
    leaves = draw_stand_in(design, 2000)
    dense = leaves.to_dense(18).reshape(9, 3, 6)
    assert (dense[:, 1].sum(axis=1) > 0).tolist() == [
        block in ("1A2", "2B1") for block in design.spine.leaves
    ]
    assert not dense[:, 2, 3:].any()  # no children in prison
    assert make_plan(design) is not None


def test_a_release_is_a_stand_in_for_the_next(tmp_path):
    spec = write_town(tmp_path / "town")
    topdown(spec, seed=1, out=tmp_path / "release")
    found = plan(spec, stand_in=tmp_path / "release", simulations=1)
    assert found.line("spec", "town", "total").people == len(people())


def test_chosen_shares_are_written_as_a_spec_that_says_the_same(town):
    found = plan(town, simulations=0, workload="below", write=town.with_name("new.toml"))
    written = read_design(town.with_name("new.toml"))
    assert written.options.shares == found.plans["chosen"].design.options.shares
    assert written.options.queries == read_design(town).options.queries
    assert sum(written.level_shares) == 1


@pytest.mark.long
def test_targets_are_reached_or_a_sentence_says_that_they_cannot_be(town):
    assert "is reached" in plan(town, simulations=0, target={"area/detailed": 500}).notes[0]
    notes = plan(town, simulations=0, target={"area/detailed": 0.01}).notes
    assert "cannot be reached within the budget" in notes[0] and "; the spec has 2" in notes[-1]


def test_weights_draw_the_budget(town):
    shares = plan(town, simulations=0, weight={"ward/quarters": 1}).plans["chosen"].design.level_shares
    assert shares[1] == max(shares)


def measured(tmp_path):
    spec = write_town(tmp_path / "town", BARE)
    ledger = Ledger.create(
        spec.with_name("people.csv.ledger"), Measure.EPSILON, Relation.CHANGE_RECORD, Fraction(4)
    )
    return spec, ledger


def other_shares(monkeypatch):
    """An optimiser that finds something else than the one before."""
    from louver.topdown.planning.shares import Choice, equal_shares
    from louver.topdown.spine import forecast

    monkeypatch.setattr(
        forecast,
        "choose_shares",
        lambda design, is_measured, aim: Choice(
            shares=equal_shares(design, is_measured), objective=0.0, budget_factor=0.0
        ),
    )


def test_shares_are_fixed_before_the_debit_and_a_resumed_run_takes_them(tmp_path, monkeypatch):
    spec, ledger = measured(tmp_path)
    folder = tmp_path / "measured"

    def killed(*args, **kwargs):
        assert (
            folder / "shares.json"
        ).is_file() and not ledger.state().pending  # fixed, nothing reserved yet
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr("louver.privacy.spend.Account.reserve", killed)
        measure(spec, out=folder)
    fixed = (folder / "shares.json").read_text()
    other_shares(monkeypatch)
    measure(spec, out=folder, resume=True)
    assert (folder / "shares.json").read_text() == fixed and ledger.state().spent == 2
    estimate(spec, measurements=folder, out=tmp_path / "release")
    again = estimate(spec, measurements=tmp_path / "release", estimator="plain")  # shares from the manifest
    assert again.plan.design.options.shares.model_dump_json() == fixed
    assert verify(tmp_path / "release").passed


def test_a_run_that_was_stopped_is_carried_on_with_its_shares(tmp_path, monkeypatch):
    spec, ledger = measured(tmp_path)

    def stopped(*args, **kwargs):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr("louver.privacy.spend.write_measurements", stopped)
        topdown(spec, out=tmp_path / "out")
    other_shares(monkeypatch)
    release = topdown(spec, out=tmp_path / "out", resume=True)
    assert ledger.state().spent == 2 and not ledger.state().pending
    assert release.plan.design.options.shares != topdown(spec, seed=1).plan.design.options.shares
    resumed = topdown(spec, out=tmp_path / "out", resume=True)  # finished already: read from the release
    assert resumed.to_frame() == release.to_frame() and ledger.state().spent == 2


def test_what_cannot_be_paid_leaves_nothing_behind(tmp_path):
    spec, _ = measured(tmp_path)
    spec.write_text(spec.read_text().replace("epsilon = 2", "epsilon = 20"))
    with pytest.raises(Exception, match="20"):
        measure(spec, out=tmp_path / "measured")
    assert not (tmp_path / "measured").exists()


def test_a_note_of_shares_that_cannot_be_read(tmp_path):
    (tmp_path / "shares.json").write_text("{")
    with pytest.raises(InputError, match=r"shares.json in .* cannot be read"):
        sealing.noted_shares(tmp_path)


def test_a_stand_in_and_a_composition_have_somebody_in_them(town, tmp_path):
    (tmp_path / "counts.csv").write_text("quarters,age,race,count\nhome,adult,a,0\n")
    table = table_of(tmp_path, people())
    with pytest.raises(InputError, match=r"counts.csv has no people"):
        plan(town, stand_in=table, composition=tmp_path / "counts.csv")
    with pytest.raises(InputError, match="has no people"):
        weighted = town.read_text().replace('file = "people.csv"', 'file = "people.csv"\nweight = "n"')
        town.write_text(weighted.partition("[[topdown.bounds]]")[0])
        (tmp_path / "none.csv").write_text("block,quarters,age,race,n\n1A1,home,adult,a,0\n")
        plan(town, stand_in=tmp_path / "none.csv")


def test_only_a_file_can_be_written_anew(town, monkeypatch):
    import tomllib

    monkeypatch.chdir(town.parent)
    with pytest.raises(InputError, match="a spec in a file"):
        plan(tomllib.loads(town.read_text()), write="new.toml")
    inline = (
        SHARES.replace("[topdown.shares]\n", "")
        .replace("levels = ", "shares.levels = ")
        .replace("queries = ", "shares.queries = ")
    )
    town.write_text(SPEC.replace(SHARES, "").replace("epsilon = 2\n", f"epsilon = 2\n{inline}"))
    with pytest.raises(InputError, match=r"not in their own section \[topdown.shares\]"):
        plan(town, simulations=0, write=town.with_name("new.toml"))


def test_bounds_that_overlap_cannot_be_fitted(town):
    bound = (
        '\n[[topdown.bounds]]\nname = "{}"\nfile = "facilities.csv"\ncells = {{ quarters = ["home"] }}\n{}\n'
    )
    town.write_text(OPEN + bound.format("few", "upper = 3") + bound.format("many", "lower = 5"))
    with pytest.raises(InputError, match="no stand-in can be fitted"):
        plan(town, simulations=0)


def test_without_a_closed_form_there_is_a_simulation_at_least(town):
    town.write_text(SPEC.replace("epsilon = 2", 'epsilon = 2\nestimator = "plain"'))
    found = plan(town, simulations=0)
    assert found.simulations == 1 and {line.method for line in found.lines} == {"simulated"}
