"""Estimators: another use of the same measurements, in the manifest and not in what was measured; all promises kept."""

from __future__ import annotations

import hashlib
import json
from fractions import Fraction

import pytest

from louver.errors import InputError
from louver.privacy.budget import Measure
from louver.privacy.ledger import Ledger
from louver.privacy.neighbours import Relation
from louver.release.verify import verify
from louver.run import Run
from louver.topdown import estimate, measure, topdown
from louver.topdown.load import read_design
from louver.topdown.measuring.noise_plan import make_plan
from topdown_town import SPEC, write_town

ESTIMATORS = ["bayes", "least-squares", "plain"]
MERGED = SPEC.replace(
    'age_race = ["age", "race"]',
    'age_race = { attributes = ["age", "race"], merge = { race = { other = ["b", "c"] } } }',
)


# Without bounds leaves have sizes of their own; with a total, and with rows that are better known than cells.
OPEN = SPEC.partition("[[topdown.bounds]]")[0].replace('level = "ward"', 'level = "town"')
TOTAL = OPEN.replace('quarters = ["quarters"]', "quarters = []")
ROWS = OPEN.replace(
    'quarters = "1/4", age_race = "1/4", detailed = "1/2"', 'age_race = "4/5", detailed = "1/5"'
)
GAUSSIAN = OPEN.replace("epsilon = 2", 'rho = "1/2"\ndelta = 1e-9')
COVARIATES = "\n".join([SPEC, *(f'[[topdown.covariates]]\nfile = "facilities.csv"\n{more}' for more in (
    'column = "houses"', 'column = "dorm"\ncells = { quarters = ["dorm"] }'))])  # fmt: skip
SPECS = {
    "covariates": COVARIATES,
    "bounds": SPEC,
    "merged": MERGED,
    "open": OPEN,
    "total": TOTAL,
    "rows": ROWS,
    "gaussian": GAUSSIAN,
}


@pytest.fixture(autouse=True)
def small_levels_have_priors(monkeypatch):
    monkeypatch.setattr("louver.topdown.estimation.estimators.FEWEST", 2)


@pytest.fixture
def measured(tmp_path, monkeypatch):
    """A town that was measured, several batches to a level, and whose records are gone."""
    monkeypatch.setattr("louver.topdown.problem.BATCH_VALUES", 60)
    town = write_town(tmp_path / "town")
    Ledger.create(town.parent / "people.csv.ledger", Measure.EPSILON, Relation.CHANGE_RECORD, Fraction(2))
    measure(town, out=tmp_path / "measured")
    (town.parent / "people.csv").unlink()
    return town


def microdata(folder):
    return (folder / "data/microdata.parquet").read_bytes()


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_one_folder_serves_every_estimator_without_the_records(measured, tmp_path, estimator):
    outs = [tmp_path / f"out{workers}" for workers in (1, 3)]
    for workers, out in zip((1, 3), outs, strict=True):
        release = estimate(
            measured,
            measurements=tmp_path / "measured",
            out=out,
            estimator=estimator,
            engine=f"local:{workers}",
        )
        assert not release.estimate.rescued
    assert verify(outs[0]).passed and microdata(outs[0]) == microdata(outs[1])
    assert json.loads((outs[0] / "manifest.json").read_text())["parameters"]["estimator"] == estimator


def test_another_estimator_is_no_other_measurement(tmp_path):
    town = write_town(tmp_path / "town")
    plans = [make_plan(read_design(town).estimated(estimator=name)) for name in ESTIMATORS]
    assert (
        len({plan.request() for plan in plans}) == len({p.design.measured_fingerprint() for p in plans}) == 1
    )
    assert len({plan.design.fingerprint() for plan in plans}) == len(ESTIMATORS)


CASES = [
    pytest.param(
        estimator, spec, id=f"{estimator}-{name}", marks=() if (n + m) % 3 == 0 else pytest.mark.long
    )
    for n, estimator in enumerate(ESTIMATORS)
    for m, (name, spec) in enumerate(SPECS.items())
]


@pytest.mark.parametrize(("estimator", "spec"), CASES)
def test_every_release_keeps_its_promises(tmp_path, estimator, spec):
    town = write_town(tmp_path / "town", spec)
    release = topdown(town, out=tmp_path / "out", seed=0, estimator=estimator)
    failed = [check.name for check in verify(tmp_path / "out").checks if not check.passed]
    assert failed == ["private noise"] and not release.estimate.rescued
    used = json.loads((tmp_path / "out/manifest.json").read_text())["results"]["covariates"]
    hashed = hashlib.sha256((town.parent / "facilities.csv").read_bytes()).hexdigest()
    assert used == [
        {"column": one.column, "file": "facilities.csv", "sha256": hashed}
        for one in release.plan.design.covariates
    ]


def test_the_spec_names_the_estimator(tmp_path):
    named = write_town(
        tmp_path / "a", SPEC.replace("epsilon = 2", 'epsilon = 2\nestimator = "least-squares"')
    )
    given = write_town(tmp_path / "b")
    topdown(named, out=tmp_path / "named", seed=1)
    topdown(given, out=tmp_path / "given", seed=1, estimator="least-squares")
    assert microdata(tmp_path / "named") == microdata(tmp_path / "given")


@pytest.mark.parametrize(
    ("option", "value"),
    [("estimator", "best"), ("shrink", "much"), ("shrink", 0), ("shrink", True), ("shrink", -1.0)],
)
def test_what_no_estimator_can_do_is_refused(tmp_path, option, value):
    told = "'bayes', 'least-squares' or 'plain'" if option == "estimator" else 'a number above 0, or "off"'
    town = write_town(tmp_path / "town")
    with pytest.raises(InputError, match=f"option --{option} must be {told}"):
        topdown(town, seed=1, **{option: value})
    written = f"epsilon = 2\n{option} = {json.dumps(value)}"
    with pytest.raises(InputError, match=f'key "{option}" must be {told}'):
        read_design(write_town(tmp_path / "spec", SPEC.replace("epsilon = 2", written)))


def test_shrinking_has_a_cap(tmp_path):
    town = write_town(tmp_path / "town")
    how = [read_design(town).estimated(estimator="bayes", shrink=value) for value in ("off", "0.5", 2)]
    assert [design.shrink for design in how] == [None, 0.5, 2.0]
    assert len({design.fingerprint() for design in how}) == 3
    assert len({design.measured_fingerprint() for design in how}) == 1


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_plain_says_where_a_level_has_too_little_to_be_fitted_alone(tmp_path, estimator):
    faint = 'town = "1/4", ward = "1/4", area = "1/100", block = "49/100"'
    told = []
    for name, levels in (("usual", None), ("faint", faint)):
        usual = 'town = "1/4", ward = "1/4", area = "1/4", block = "1/4"'
        town = write_town(tmp_path / name, OPEN.replace(usual, levels or usual))
        told.append([])
        topdown(town, seed=0, intervals=0, estimator=estimator, run=Run(tell=told[-1].append))
    assert not any("fitted" in words or "own answers" in words for words in told[0])
    assert any("level area has 1.00% of the budget" in words for words in told[1]) == (estimator == "plain")
