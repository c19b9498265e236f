"""Budgets of an epsilon with a delta, and noise for rho: who pays what, what is recorded, what a stopped run draws again."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import louver as lv
from louver.errors import BudgetError, LouverError
from louver.groups import groups
from louver.groups.load import GroupsCall
from louver.groups.options import GroupsOptions
from louver.groups.plan import SizePlan, true_batches
from louver.groups.result import MEASUREMENTS_FILE
from louver.privacy.budget import Measure, epsilon_at
from louver.privacy.composition import ChangedCounts, delta_at
from louver.privacy.ledger import Ledger
from louver.privacy.measurements import Measurements
from louver.privacy.neighbours import Relation
from louver.privacy.noise import KeyedNoise, perturb
from louver.release.manifest import read_manifest
from louver.release.verify import verify
from louver.schema.request import ask

RECORD, CHANGE = Relation.ADD_REMOVE_RECORD, Relation.CHANGE_RECORD
SECRET = "Xyzzy"


@pytest.fixture
def people(tmp_path: Path) -> Path:
    homes = [f"h{home},{state}" for state in ("GA", "NY") for home in range(4) for _ in range(1 + home % 3)]
    path = tmp_path / "people.csv"
    path.write_text("home,state\n" + "\n".join(homes) + "\n")
    (tmp_path / "states.csv").write_text("state\nGA\nNY\n")
    return path


def _asked(people: Path, **more: Any) -> dict[str, Any]:
    given = {"unit": "home", "regions": ["state"], "domain": str(people.parent / "states.csv"), "max_size": 4}
    return {**given, "across": "split", **more}


def _plan(people: Path, **more: Any) -> tuple[GroupsCall, SizePlan]:
    asked = GroupsCall.check(ask(GroupsOptions, str(people), None, _asked(people, **more)))
    return asked, asked.public_plan()


def _ledger(
    people: Path, measure: Measure = Measure.RHO, amount: int = 5, relation: Relation = RECORD
) -> Ledger:
    return Ledger.create(people.with_name("people.csv.ledger"), measure, relation, Fraction(amount))


def test_what_the_ledger_debits_is_said_where_it_counts_otherwise(people, tmp_path):
    ledger = _ledger(people, Measure.EPSILON, 5, CHANGE)
    asked = _asked(people, epsilon=1, neighbours="add-remove-record", ledger=ledger.path)
    released = groups(str(people), **asked, out=tmp_path / "out")
    assert (
        released.to_dict()["debited"] == "epsilon = 2 (change-record)" and released.to_dict()["epsilon"] == 1
    )
    assert "debited: epsilon = 2 (change-record)" in repr(released)
    assert ledger.state().spent == 2
    again = groups(str(people), **asked | {"neighbours": "change-record"}, out=tmp_path / "again")
    assert "debited:" not in repr(again) and again.debited == "epsilon = 1 (change-record)"


@pytest.mark.parametrize("neighbours", ["add-remove-record", "change-record", "add-remove-unit"])
@pytest.mark.parametrize("mechanism", ["louver", "M_H^dp"])
def test_noise_keeps_the_promise_and_is_less_than_by_rho(people, neighbours, mechanism):
    more = {"across": "error", "neighbours": neighbours, "mechanism": mechanism, "regions": ["state"]}
    _, plan = _plan(people, epsilon=2, delta="1e-8", shares="equal", **more)
    assert plan.loss.measure is Measure.RHO and plan.promise == (2, Fraction(1, 10**8))
    assert epsilon_at(plan.loss.amount, Fraction(1, 10**8)) > 2  # what rho alone would say
    counts = [
        ChangedCounts(level.distribution.sigma_squared, level.squared_sensitivity) for level in plan.levels
    ]
    assert delta_at(Fraction(2), counts) <= 1e-8 * (
        1 + 1e-3
    )  # the other way to change six is no worse, or hardly
    _, by_rho = _plan(people, rho=str(plan.loss.amount), shares="equal", **more)
    assert [a.distribution for a in by_rho.levels] == [b.distribution for b in plan.levels]


def test_a_ledger_in_rho_pays_the_true_rho_and_one_in_epsilon_refuses(people, tmp_path):
    ledger = _ledger(people)
    released = lv.groups(people, **_asked(people, epsilon=1, delta=1e-6), out=tmp_path / "out")
    assert ledger.state().spent == released.plan.loss.amount and verify(tmp_path / "out").passed
    told = read_manifest(tmp_path / "out").privacy
    assert (told["measure"], told["amount"]) == ("rho", str(released.plan.loss.amount))
    assert told["composed"] == ["1", "1/1000000"]
    result = released.to_dict()
    assert (result["epsilon"], result["delta"], result["rho"]) == (1, 1e-6, float(released.plan.loss.amount))
    (tmp_path / "people.csv.ledger").unlink()
    ledger = _ledger(people, Measure.EPSILON)
    with pytest.raises(BudgetError, match="use a ledger in rho"):
        lv.groups(people, **_asked(people, epsilon=1, delta=1e-6), out=tmp_path / "again")
    assert ledger.state().spent == 0 and not (tmp_path / "again").exists()


def test_regions_from_the_data_are_paid_for_as_well(people, tmp_path):
    ledger = _ledger(people)
    asked = _asked(people, epsilon=1, delta=1e-6, domain=None, domain_from_data=True)
    released = lv.groups(people, **asked, out=tmp_path / "out")
    assert ledger.state().spent == released.plan.loss.amount


def _drawn(asked: GroupsCall, plan: SizePlan, key: bytes) -> np.ndarray:
    noise = KeyedNoise(key)
    batches = true_batches(asked.read(), plan)
    return np.concatenate([perturb(b.true_counts, b.distribution, noise, b.nonce) for b in batches])


def _found(folder: Path) -> np.ndarray:
    return np.concatenate([b.noisy_counts for b in Measurements(folder / MEASUREMENTS_FILE).batches()])


def test_a_stopped_run_draws_the_same_again(people, tmp_path):
    ledger = _ledger(people)
    asked, plan = _plan(people, epsilon=1, delta=1e-6)
    debit = asked.account(None).reserve(asked.payment(plan))
    released = lv.groups(people, **_asked(people, epsilon=1, delta=1e-6), out=tmp_path / "out")
    assert ledger.state().spent == plan.loss.amount and released.head.entry == debit.entry
    assert np.array_equal(_found(tmp_path / "out"), _drawn(asked, plan, debit.key))


def test_a_request_names_the_delta(people):
    one, plan = _plan(people, epsilon=1, delta=1e-6)
    other, same = _plan(people, rho=str(plan.loss.amount))
    assert [a.distribution for a in plan.levels] == [b.distribution for b in same.levels]
    assert one.payment(plan).request != other.payment(same).request


def test_the_squared_sensitivity_is_not_the_square(people):
    """A person moves from one size to the next: two counts change by 1, so 2 is enough, where the square of the L1 change is 4."""
    _, plan = _plan(people, mechanism="M_H^dp", rho="1/2")
    assert [level.squared_sensitivity for level in plan.levels] == [2, 2]


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"delta": 1e-6}, "either as"),
        ({"delta": 1e-6, "rho": 1}, "--delta needs --epsilon"),
        ({"delta": 1e-6, "rho": 1, "epsilon": 1}, "either as"),
        ({"delta": 0, "epsilon": 1}, "--delta is not a number"),
        ({"delta": -0.1, "epsilon": 1}, "--delta is not a number"),
        ({"delta": 1, "epsilon": 1}, "delta not between 0 and 1"),
        ({"delta": "2", "epsilon": 1}, "delta not between 0 and 1"),
        ({"delta": SECRET, "epsilon": 1}, "--delta is not a number"),
        ({"delta": "nan", "epsilon": 1}, "--delta is not a number"),
        ({"delta": "1/0", "epsilon": 1}, "--delta is not a number"),
        ({"delta": "1e-101", "epsilon": 1}, "delta at least 1e-100"),
        ({"delta": "1e-9999999", "epsilon": 1}, "--delta is not a number"),
        ({"delta": 1e-6, "epsilon": "1e-7"}, "epsilon with a delta must be from 1e-6"),
        ({"delta": 1e-6, "epsilon": 20_000}, "epsilon with a delta must be from 1e-6"),
        ({"delta": 1e-6, "epsilon": "inf"}, "--epsilon is not a number"),
        ({"delta": 1e-6, "epsilon": 1, "noise": "opendp"}, "--delta and --noise opendp"),
        ({"delta": 1e-6, "epsilon": 1, "shares": ["1/2", "1/3"]}, "sum to 5/6"),
        ({"delta": 1e-6, "epsilon": 1, "shares": ["1"]}, "1 budget shares are given for 2 levels"),
        ({"delta": 1e-90, "epsilon": "1e-6"}, "give the budget as rho"),
        ({"delta": 1e-6, "epsilon": 1, "quantity": "home", "max_quantity": 10_000, "max_size": 9000}, "give the budget as rho"),
        (
            {"delta": 1e-6, "epsilon": 1, "mechanism": "M_c^ch", "as_published": True, "evaluate": True, "seed": 1},
            "--delta and --as-published",
        ),
    ],
)  # fmt: skip
def test_bad_budgets_with_a_delta_are_one_sentence(people, tmp_path, given, told):
    _ledger(people)
    with pytest.raises(LouverError) as caught:
        groups(people, **_asked(people, **given), out=tmp_path / "out")
    sentence = str(caught.value)
    assert told in sentence and "\n" not in sentence and SECRET not in sentence
    assert not (tmp_path / "out").exists()
