"""The verb end to end: seeded, paid from a ledger, carried on after a stop, doubted by verify; bad input."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import louver as lv
from louver._verdict import Level
from louver.errors import BudgetError, InputError, LouverError, PromiseError
from louver.groups import groups
from louver.groups.options import GroupsOptions
from louver.groups.result import MEASUREMENTS_FILE, GroupRelease
from louver.privacy.budget import Measure
from louver.privacy.ledger import Ledger
from louver.privacy.measurements import Measurements
from louver.privacy.neighbours import Relation
from louver.privacy.noise import OpenDPNoise
from louver.release.manifest import read_manifest
from louver.release.verify import verify
from louver.report.groups import groups_report
from louver.schema.request import ask
from oracles.groups import is_table
from releases import doubt, edit

SECRET = "Xyzzy"
ERROR_COLUMNS = ["standard_error", "lower_90", "upper_90"]
EXACT = ["the total number of groups", "not protected", "not protected"]


def _people(path: Path) -> Path:
    """40 homes in three counties of two states; sizes 1 to 4, one home of 7."""
    lines = ["person,home,state,county"]
    person = 0
    for home in range(40):
        state, county = [("GA", "Cobb"), ("NY", "Bronx"), ("NY", "Kings")][home % 3]
        for _ in range(7 if home == 0 else 1 + home % 4):
            person += 1
            lines.append(f"p{person},h{home},{state},{county}")
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture
def people(tmp_path: Path) -> Path:
    return _people(tmp_path / "people.csv")


@pytest.fixture
def domain(tmp_path: Path) -> Path:
    path = tmp_path / "regions.csv"
    path.write_text("state,county\nGA,Cobb\nNY,Bronx\nNY,Kings\nNY,Queens\n")
    return path


def _options(domain: Path, **more: Any) -> dict[str, Any]:
    given = {
        "unit": "home",
        "regions": ["state", "county"],
        "domain": str(domain),
        "max_size": 5,
        "epsilon": 1,
        "total": "public",
    }
    return {**given, **more}


def test_exact_counts_come_out_of_almost_no_noise(people: Path, domain: Path) -> None:
    released = groups(people, **_options(domain, epsilon=1000, seed=1, evaluate=True))
    assert released.plan.regions.leaf_labels == (
        ("GA", "Cobb"),
        ("NY", "Bronx"),
        ("NY", "Kings"),
        ("NY", "Queens"),
    )
    assert released.total_groups == 40
    assert released.counts[0].tolist() == [0, 9, 10, 10, 10, 1]  # the home of 7 counts with size 5
    assert released.counts[-1].tolist() == [0] * 6
    assert released.evaluation is not None and all(level.l1 == 0 for level in released.evaluation)
    assert released.persons[0] == 9 + 20 + 30 + 40 + 5
    assert not released.is_private


@pytest.mark.parametrize("mechanism", ["louver", "M_H^dp", "M_c^dp", "M_c^ch", "TopDown", "M_H^r", "M_c^r"])
def test_every_mechanism_through_the_verb(people: Path, domain: Path, mechanism: str) -> None:
    released = groups(people, **_options(domain, mechanism=mechanism, seed=3, shares="equal"))
    if released.plan.mechanism.is_consistent:
        assert is_table(released.counts, released.plan.regions.tree, 40)
    assert released.plan.loss.amount == 1


def test_groups_that_cannot_be_empty(people: Path, domain: Path, tmp_path: Path) -> None:
    """Sizes begin with 1, and what a counted table has below counts there."""
    released = groups(people, **_options(domain, epsilon=1000, seed=1, min_size=1), out=tmp_path / "r")
    assert released.sizes == range(1, 6) and released.counts[0].tolist() == [9, 10, 10, 10, 1]
    assert pq.read_table(tmp_path / "r" / "data" / "groups.parquet")["size"].to_pylist()[:5] == [
        1,
        2,
        3,
        4,
        5,
    ]
    counted = pa.table({"state": ["GA", "GA"], "size": [0, 2], "groups": [4, 3]})
    given = {"size": "size", "groups": "groups", "regions": ["state"], "domain_from_data": True}
    given["total"] = "public"
    released = groups(counted, **given, max_size=3, min_size=1, epsilon=900, seed=1)
    assert released.counts[0].tolist() == [4, 3, 0]


def test_the_default_depends_on_the_neighbours(people: Path, domain: Path) -> None:
    """Noise on sizes does not grow with the largest size, where whole units come and go: it is closer there."""
    given = _options(domain, seed=3, neighbours="add-remove-unit", total="noisy", evaluate=True, max_size=30)
    chosen, other = groups(people, **given), groups(people, **given, mechanism="louver")
    assert (chosen.plan.mechanism.name, chosen.plan.levels[0].sensitivity) == ("M_H^dp", 1)
    assert other.plan.levels[0].sensitivity == 30
    assert chosen.evaluation is not None and other.evaluation is not None
    assert sum(e.l1 for e in chosen.evaluation) < sum(e.l1 for e in other.evaluation)


def test_json_and_frame(people: Path, domain: Path) -> None:
    released = groups(people, **_options(domain, seed=3, evaluate=True))
    told = json.loads(released.to_json())
    spent = {"epsilon", "rho", "delta", "neighbours", "debited"}
    assert set(told) == spent | {"mechanism", "levels", "total_groups", "verdict", "seconds"}
    assert [level["name"] for level in told["levels"]] == ["total", "state", "county"]
    assert set(told["levels"][0]) == {
        "name",
        "regions",
        "share",
        "measured_l1",
        "forecast_l1",
        "forecast_emd",
        "l1_error",
        "emd",
        "suffix_emd",
    }
    assert sum(Fraction(str(level["share"])) for level in told["levels"]) == 1
    frame = released.to_frame()
    assert frame.column_names == ["state", "county", "level", "size", "groups", *ERROR_COLUMNS]
    assert frame.num_rows == 7 * 6
    root = frame.slice(0, 6).to_pydict()
    assert root["state"] == root["county"] == [None] * 6 and root["level"] == ["total"] * 6
    assert root["size"] == list(range(6)) and root["groups"] == released.counts[0].tolist()
    assert root["lower_90"] == released.uncertainty.lower[0].tolist()
    persons = released.persons_frame()
    assert persons.column_names == ["state", "county", "level", "persons", *ERROR_COLUMNS]
    assert persons.column("persons").to_pylist() == released.persons.tolist()
    assert "NOT PRIVATE" in repr(released) and len(repr(released).splitlines()) <= 10
    assert "<table>" in released._repr_html_()
    assert len(released.plot().axes) == 2


def test_a_thousand_sizes_are_drawn_as_one_outline(tmp_path: Path) -> None:
    counted = tmp_path / "counted.csv"
    counted.write_text("state,size,n\nA,1,5\nA,900,2\nB,3,4\n")
    (tmp_path / "states.csv").write_text("state\nA\nB\n")
    released = groups(
        counted, size="size", groups="n", regions=["state"], domain=str(tmp_path / "states.csv"),
        max_size=1000, epsilon=100, seed=1,
    )  # fmt: skip
    bars, _ = released.plot().axes
    assert len(bars.patches) == 1 and len(bars.collections) == 1


def _ledger(people: Path, epsilon: str = "2") -> Ledger:
    return Ledger.create(
        people.with_name(people.name + ".ledger"),
        Measure.EPSILON,
        Relation.ADD_REMOVE_RECORD,
        Fraction(epsilon),
    )


def test_a_paid_release_is_whole_and_verifies(people: Path, domain: Path, tmp_path: Path) -> None:
    ledger = _ledger(people)
    released = lv.groups(people, **_options(domain), out=tmp_path / "release", report=groups_report)
    assert released.is_private and released.evaluation is None
    state = ledger.state()
    assert state.spent == 1 and not state.pending and len(state.sealed) == 1
    assert [what.split(" by ")[0] for what in state.disclosures] == EXACT
    assert [(e.verb, e.release) for e in state.events if e.kind == "reserve"] == [("groups", "release")]
    assert {event.verb for event in state.events if event.kind == "disclosure"} == {"groups"}
    assert verify(tmp_path / "release").passed
    assert ledger.verify(tmp_path).is_sound and ledger.verify(tmp_path).n_releases == 1
    manifest = read_manifest(tmp_path / "release")
    assert not manifest.not_private and not manifest.not_for_release
    assert manifest.privacy["not_protected"] == list(released.plan.not_protected)
    assert len(released.plan.not_protected) == 2
    assert all(what in repr(released) for what in released.plan.not_protected)
    assert released.verdict.level is Level.CARE and "hide small counts" in released.verdict.reasons[-1]
    assert manifest.privacy["amount"] == "1" and manifest.privacy["neighbours"] == "add-remove-record"
    assert set(manifest.files) == {
        "data/groups.parquet",
        "data/persons.parquet",
        "invariants.parquet",
        "measurements/groups.parquet",
        "report.html",
    }
    measured = Measurements(tmp_path / "release" / MEASUREMENTS_FILE)
    assert [batch.level for batch in measured.batches()] == ["total", "state", "county"]
    text = (tmp_path / "release" / "manifest.json").read_text()
    assert str(tmp_path) not in text and "h0" not in text


def test_a_noisy_total_has_no_invariants(people: Path, domain: Path, tmp_path: Path) -> None:
    ledger = _ledger(people)
    given = {name: value for name, value in _options(domain).items() if name != "total"}  # the default
    released = groups(people, **given, out=tmp_path / "release")
    assert released.plan.total == "noisy" and "not protected" not in repr(released)
    assert released.verdict.level is Level.OK
    assert read_manifest(tmp_path / "release").privacy["not_protected"] == []
    assert released.sizes == range(1, 6)
    assert ledger.state().disclosures == ()
    assert not (tmp_path / "release" / "invariants.parquet").exists()
    assert read_manifest(tmp_path / "release").disclosures == []
    assert verify(tmp_path / "release").passed


def test_rho_gives_gaussian_noise(people: Path, domain: Path, tmp_path: Path) -> None:
    path = tmp_path / "rho.ledger"
    Ledger.create(path, Measure.RHO, Relation.ADD_REMOVE_RECORD, Fraction(1))
    given = {**_options(domain, rho="1/2"), "epsilon": None}
    released = groups(people, **given, out=tmp_path / "release", ledger=path)
    told = released.to_dict()
    assert (told["epsilon"], told["rho"]) == (None, 0.5)
    assert Ledger(path).state().spent == Fraction(1, 2)


def test_seeded_runs_touch_no_ledger_and_are_marked(people: Path, domain: Path, tmp_path: Path) -> None:
    for name in ("a", "b"):
        groups(people, **_options(domain, seed=5), out=tmp_path / name)
    a, b = ((tmp_path / name / "data" / "groups.parquet").read_bytes() for name in ("a", "b"))
    assert a == b
    manifest = read_manifest(tmp_path / "a")
    assert manifest.not_private and not manifest.not_for_release and manifest.ledger_head is None
    groups(people, **_options(domain, seed=5, evaluate=True), out=tmp_path / "c")
    assert read_manifest(tmp_path / "c").not_for_release
    assert not verify(tmp_path / "c").passed


def test_m_c_ch_as_published_is_never_for_release(people: Path, domain: Path, tmp_path: Path) -> None:
    given = _options(domain, mechanism="M_c^ch", as_published=True, seed=1, evaluate=True)
    groups(people, **given, out=tmp_path / "release")
    manifest = read_manifest(tmp_path / "release")
    assert manifest.not_private and manifest.not_for_release
    assert any("G1" in warning for warning in manifest.warnings)


class _Stop(Exception):
    pass


@pytest.mark.parametrize("where", ["estimate", "move", "seal"])
def test_a_stopped_run_is_carried_on(
    people: Path, domain: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    """Before the files, before the move, and between the move and the seal: the same noise, one debit."""
    ledger = _ledger(people)
    out = tmp_path / "release"

    def stop(*arguments: object, **more: object) -> None:
        raise _Stop

    target = {
        "estimate": "louver.groups.solve.estimate_from",
        "move": "louver.release.write.ReleaseWriter.seal",
        "seal": "louver.privacy.ledger.Ledger.seal",
    }[where]
    with monkeypatch.context() as patch:
        patch.setattr(target, stop)
        with pytest.raises(_Stop):
            groups(people, **_options(domain), out=out)
    assert out.exists() == (where == "seal")
    (entry,) = ledger.state().pending
    with sqlite_key(ledger, entry) as key:
        expected = _noise_of(key, people, domain)
    released = groups(people, **_options(domain), out=out)
    assert np.array_equal(_measured(out), expected)
    state = ledger.state()
    assert state.spent == 1 and list(state.sealed) == [entry] and not state.pending
    assert [what.split(" by ")[0] for what in state.disclosures] == EXACT
    assert verify(out).passed and released.head is not None and released.head.entry == entry
    assert not list(tmp_path.glob(".release*"))


class sqlite_key:
    """The key of a pending entry, read behind the ledger's back."""

    def __init__(self, ledger: Ledger, entry: int) -> None:
        self.ledger, self.entry = ledger, entry

    def __enter__(self) -> bytes:
        with self.ledger._reading() as db:
            (key,) = db.execute("SELECT key FROM keys WHERE entry = ?", (self.entry,)).fetchone()
        return bytes(key)

    def __exit__(self, *_: object) -> None:
        return None


def _noise_of(key: bytes, people: Path, domain: Path) -> np.ndarray:
    from louver.groups.load import GroupsCall
    from louver.groups.plan import true_batches
    from louver.privacy.noise import KeyedNoise, perturb

    asked = GroupsCall.check(ask(GroupsOptions, people, None, _options(domain)))
    table = asked.read()
    plan = asked.plan(table.regions)
    noise = KeyedNoise(key)
    return np.concatenate(
        [perturb(b.true_counts, b.distribution, noise, b.nonce) for b in true_batches(table, plan)]
    )


def _measured(out: Path) -> np.ndarray:
    return np.concatenate([b.noisy_counts for b in Measurements(out / MEASUREMENTS_FILE).batches()])


def test_the_budget_is_guarded(people: Path, domain: Path, tmp_path: Path) -> None:
    ledger = _ledger(people, "3/2")
    groups(people, **_options(domain), out=tmp_path / "one")
    with pytest.raises(BudgetError) as caught:
        groups(people, **_options(domain), out=tmp_path / "two")
    assert (caught.value.requested, caught.value.remaining) == (1, Fraction(1, 2))
    assert not (tmp_path / "two").exists()
    people.write_text(people.read_text() + "p999,h39,GA,Cobb\n")
    with pytest.raises(BudgetError, match="has not admitted these data"):
        groups(people, **_options(domain, epsilon="1/4"), out=tmp_path / "three")
    assert ledger.state().spent == 1


def test_an_existing_place_costs_nothing(people: Path, domain: Path, tmp_path: Path) -> None:
    ledger = _ledger(people)
    (tmp_path / "release").mkdir()
    with pytest.raises(InputError, match="already exists"):
        groups(people, **_options(domain), out=tmp_path / "release")
    assert ledger.state().spent == 0


def test_counted_tables_and_dataframes(tmp_path: Path) -> None:
    counted = pa.table({"state": ["GA", "GA", "NY"], "size": [1, 3, 9], "groups": [4, 2, 1]})
    released = groups(
        counted,
        size="size",
        groups="groups",
        regions=["state"],
        domain_from_data=True,
        max_size=4,
        epsilon=900,
        seed=1,
        total="public",
    )
    assert released.counts.tolist() == [[0, 4, 0, 2, 1], [0, 4, 0, 2, 0], [0, 0, 0, 0, 1]]
    assert released.is_domain_from_data
    path = tmp_path / "c.ledger"
    Ledger.create(path, Measure.EPSILON, Relation.ADD_REMOVE_RECORD, Fraction(1))
    given = {
        "size": "size",
        "groups": "groups",
        "regions": ["state"],
        "domain_from_data": True,
        "max_size": 4,
    }
    groups(counted, **given, epsilon=1, out=tmp_path / "release", ledger=path)
    assert "the list of regions that occur, exactly" in read_manifest(tmp_path / "release").disclosures
    shuffled = counted.take([2, 0, 1])
    with pytest.raises(BudgetError) as caught:  # the same records in another order are the same data
        groups(shuffled, **given, epsilon=1, out=tmp_path / "again", ledger=path)
    assert caught.value.remaining == 0


def test_quantities_and_split_units() -> None:
    people = pa.table({"home": ["A", "A", "B", "B"], "state": ["GA", "GA", "GA", "NY"], "cars": [2, 1, 0, 3]})
    given = {
        "unit": "home",
        "regions": ["state"],
        "domain_from_data": True,
        "max_size": 4,
        "epsilon": 900,
        "seed": 1,
        "total": "public",
    }
    released = groups(people, **given, quantity="cars", max_quantity=3, across="split")
    assert released.counts[1:].tolist() == [[1, 0, 0, 1, 0], [0, 0, 0, 1, 0]]
    assert [level.sensitivity for level in released.plan.levels] == [3, 3]


@pytest.mark.parametrize(
    ("content", "more", "told", "field"),
    [
        ({}, {"unit": None}, "give either --unit", "option"),
        ({}, {"size": "size"}, "give either --unit", "option"),
        ({}, {"unit": None, "size": "home"}, "--groups is missing", "option"),
        ({}, {"groups": "home"}, "--size is missing", "option"),
        ({}, {"regions": []}, "--regions is missing", "option"),
        ({}, {"regions": ["state", "state"]}, "names a column twice", "option"),
        ({}, {"regions": [f"r{i}" for i in range(64)]}, "names 64 columns; name fewer than 64", "option"),
        ({}, {"regions": ["state", "street"]}, 'no column "street"', "column"),
        ({}, {"unit": "house"}, 'no column "house"', "column"),
        ({}, {"max_size": None}, "--max-size is missing", "option"),
        ({}, {"max_size": 0}, "must be at least 1", None),
        ({}, {"domain": None}, "--domain is missing", "option"),
        ({}, {"domain": "missing.csv"}, "missing.csv", "file"),
        ({}, {"domain_from_data": True}, "cannot be used together", "option"),
        ({}, {"epsilon": None}, "--epsilon or as --rho", "option"),
        ({}, {"rho": 1}, "--epsilon or as --rho", "option"),
        ({}, {"epsilon": SECRET}, "--epsilon is not a number", "option"),
        ({}, {"epsilon": -1}, "--epsilon is not a number", "option"),
        ({}, {"shares": ["1/2", "1/2"]}, "2 budget shares are given for 3 levels", None),
        ({}, {"shares": ["1/2", "1/3", "1/3"]}, "sum to 7/6", None),
        ({}, {"shares": ["a", "b", "c"]}, "--shares is not a number", "option"),
        ({}, {"mechanism": SECRET}, "--mechanism must be one of", "option"),
        ({}, {"mechanism": "M_c^dp", "total": "noisy"}, "needs a public total", "option"),
        ({}, {"neighbours": "add-remove-unit"}, "--total noisy", None),
        ({}, {"neighbours": "friends"}, "must be 'add-remove-record'", None),
        ({}, {"max_quantity": 3}, "--quantity is missing", "option"),
        ({}, {"quantity": "county"}, "not a whole number from 0 to 1 on row 1", "row"),
        ({}, {"evaluate": True, "seed": None}, "--seed is missing", "option"),
        ({}, {"as_published": True}, "needs --evaluate", "option"),
        ({}, {"colour": 1}, "not a known key", None),
        ({}, {"mechanism": "M_H", "max_size": 4000}, "too large for a general solver", "option"),
        ({"h99": ("NY", SECRET)}, {}, "a region that the domain does not list", "option"),
        ({"h1": ("NY", "")}, {}, 'column "county" in people.csv has no value on row', "row"),
        ({"": ("NY", "Kings")}, {}, 'column "home" in people.csv has no value on row', "row"),
        ({"h0": ("NY", "Kings")}, {}, "a unit in more than one region, first on row 1", "row"),
    ],
)  # fmt: skip
def test_bad_input_is_one_sentence_that_quotes_nothing(
    people: Path,
    domain: Path,
    content: dict[str, tuple[str, str]],
    more: dict[str, Any],
    told: str,
    field: str | None,
) -> None:
    for home, (state, county) in content.items():
        people.write_text(people.read_text() + f"p0,{home},{state},{county}\n")
    with pytest.raises(LouverError) as caught:
        groups(people, **{**_options(domain, seed=1), **more})
    message = str(caught.value)
    assert told in message
    assert SECRET not in message and "\n" not in message and message.endswith(".")
    if field is not None:
        assert getattr(caught.value, field) is not None


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("state,county\n", "no rows"),
        ("state,county\nGA,\n", "has no value on row 1"),
        ("state,county\nGA,Cobb\nGA,Cobb\n", "a leaf region on row 2"),
        ("state,town\nGA,Cobb\n", 'no column "county"'),
    ],
)
def test_bad_domains(people: Path, tmp_path: Path, text: str, told: str) -> None:
    path = tmp_path / "regions.csv"
    path.write_text(text)
    with pytest.raises(InputError, match=told):
        groups(people, **_options(path, seed=1))


def test_bad_counted_tables() -> None:
    good = {"state": ["GA"], "size": [1], "groups": [4]}
    given = {
        "size": "size",
        "groups": "groups",
        "regions": ["state"],
        "domain_from_data": True,
        "max_size": 4,
    }
    for column, value, told in (
        ("groups", -1, "not a whole number of zero or more on row 1"),
        ("groups", 1.5, "not a whole number of zero or more on row 1"),
        ("size", "two", "not a whole number of zero or more on row 1"),
        ("state", None, "has no value on row 1"),
    ):
        with pytest.raises(InputError, match=told):
            groups(pa.table({**good, column: [value]}), **given, epsilon=1, seed=1)


def test_who_pays_is_asked_for(people: Path, domain: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="--out is missing"):
        groups(people, **_options(domain))
    with pytest.raises(InputError, match="louver ledger init people.csv.ledger"):
        groups(people, **_options(domain), out=tmp_path / "release")
    frame = pa.table({"home": ["A"], "state": ["GA"], "county": ["Cobb"]})
    with pytest.raises(InputError, match="--ledger is missing"):
        groups(frame, **_options(domain), out=tmp_path / "release")


def test_verify_doubts_a_table(people: Path, domain: Path, tmp_path: Path) -> None:
    """Each promise of a group table fails when the published numbers break it."""
    released: GroupRelease = groups(people, **_options(domain, seed=1), out=tmp_path / "r")
    folder = tmp_path / "r"
    path = folder / "data" / "groups.parquet"
    good = pq.read_table(path)
    assert doubt(folder, "group-table").passed

    def doubted(values: list[Any]) -> str:
        column = good.column_names.index("groups")
        pq.write_table(good.set_column(column, "groups", pa.array(values)), path)
        check = doubt(folder, "group-table")
        assert not check.passed
        return check.found

    numbers = good.column("groups").to_pylist()
    assert "negative" in doubted([-1, *numbers[1:]])
    assert "not whole" in doubted([float(n) for n in numbers])
    assert "add up to those above" in doubted([numbers[0] + 1, *numbers[1:]])
    moved = numbers.copy()
    moved[-6] += 1
    assert '"county"' in doubted(moved)
    for name, values in (("lower_90", [n + 1 for n in numbers]), ("standard_error", [-1.0] * len(numbers))):
        pq.write_table(good.set_column(good.column_names.index(name), name, pa.array(values)), path)
        assert "does not contain its number" in doubt(folder, "group-table").found
    pq.write_table(good.drop_columns(["upper_90"]), path)
    assert "not the promised ones" in doubt(folder, "group-table").found
    pq.write_table(good.drop_columns(ERROR_COLUMNS), path)  # as versions before wrote it
    assert doubt(folder, "group-table").passed
    pq.write_table(good, path)
    assert not doubt(folder, "group-table", total=released.total_groups + 1).passed
    assert not doubt(folder, "group-table", levels=["total", "state"]).passed


@pytest.mark.parametrize("mechanism", ["M_H^r", "M_c^r"])
def test_relaxed_mechanisms_promise_what_they_can_keep(
    people: Path, domain: Path, tmp_path: Path, mechanism: str
) -> None:
    """What was paid for verifies; that regions may not add up is said in words."""
    _ledger(people)
    out = tmp_path / "release"
    groups(people, **_options(domain, mechanism=mechanism), out=out)
    outcome = verify(out)
    assert outcome.passed, str(outcome)
    assert [entry["promise"] for entry in read_manifest(out).promises] == ["group-counts"]
    assert any("add up" in warning for warning in read_manifest(out).warnings)
    assert any("not promised to add up" in check.found for check in outcome.checks)
    table = pq.read_table(out / "data/groups.parquet")
    for broken in (table.slice(1), pa.concat_tables([table, table.slice(0, 1)])):
        pq.write_table(broken, out / "data/groups.parquet")
        assert not doubt(out, "group-counts").passed


@pytest.mark.parametrize(
    ("change", "found"),
    [
        ({"not_private": True}, "differ on whether"),
        ({"ledger_head": "7:ab"}, "paid for"),
        ({"ledger_head": None}, "paid for"),
    ],
)
def test_verify_compares_manifest_and_measurements(
    people: Path, domain: Path, tmp_path: Path, change: dict[str, Any], found: str
) -> None:
    _ledger(people)
    out = tmp_path / "release"
    groups(people, **_options(domain), out=out)
    assert verify(out).passed
    edit(out, lambda manifest: manifest.update(change))
    told = {check.name: check for check in verify(out).checks}
    assert not told["measurements"].passed and found in told["measurements"].found


def test_a_release_that_breaks_its_promise_leaves_a_debit_to_resume(
    people: Path, domain: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = _ledger(people)
    out = tmp_path / "release"
    with monkeypatch.context() as patched:
        patched.setattr(GroupRelease, "_promise", lambda self: {"promise": "group-table"})
        with pytest.raises(PromiseError):
            groups(people, **_options(domain), out=out)
    assert not list(tmp_path.glob("*release*")) and len(ledger.state().pending) == 1
    groups(people, **_options(domain), out=out)
    assert verify(out).passed and not ledger.state().pending


def test_a_pending_debit_is_not_taken_up_for_another_question(
    domain: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same key on other true answers would reveal their difference."""
    rows = [("GA", "Cobb", f"h{i // 2}", f"j{i // 3}") for i in range(12)]
    people = tmp_path / "two_units.csv"
    people.write_text("state,county,home,job\n" + "".join(",".join(row) + "\n" for row in rows))
    ledger = _ledger(people)

    def stop(*_: object, **__: object) -> None:
        raise _Stop

    with monkeypatch.context() as patched:
        patched.setattr(Ledger, "seal", stop)
        with pytest.raises(_Stop):
            groups(people, **_options(domain), out=tmp_path / "a")
    groups(people, **_options(domain, unit="job"), out=tmp_path / "b")
    assert ledger.state().spent == 2 and len(ledger.state().pending) == 1


def test_a_split_unit_is_never_one_unit_to_the_ledger(people: Path, domain: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="--across split and --neighbours add-remove-unit"):
        groups(
            people, **_options(domain, across="split", neighbours="add-remove-unit", total="noisy", seed=1)
        )
    path = tmp_path / "unit.ledger"
    Ledger.create(path, Measure.EPSILON, Relation.ADD_REMOVE_UNIT, Fraction(100))
    with pytest.raises(BudgetError):
        groups(people, **_options(domain, across="split", total="noisy"), out=tmp_path / "r", ledger=path)
    assert Ledger(path).state().spent == 0


def test_a_public_total_is_not_converted_to_a_ledger_of_units(
    people: Path, domain: Path, tmp_path: Path
) -> None:
    """Steps from one list of units to another would leave the tables that share the total."""
    path = tmp_path / "unit.ledger"
    Ledger.create(path, Measure.EPSILON, Relation.ADD_REMOVE_UNIT, Fraction(100))
    with pytest.raises(BudgetError):
        groups(people, **_options(domain), out=tmp_path / "r", ledger=path)
    assert Ledger(path).state().spent == 0 and not (tmp_path / "r").exists()


def test_regions_from_the_data_are_declared_everywhere(people: Path, domain: Path, tmp_path: Path) -> None:
    ledger = _ledger(people)
    given = {**_options(domain), "domain": None, "domain_from_data": True}
    groups(people, **given, out=tmp_path / "release")
    assert any(what.startswith("the list of regions that occur by") for what in ledger.state().disclosures)
    manifest = read_manifest(tmp_path / "release")
    assert "the list of regions that occur" in manifest.privacy["invariants"]
    assert manifest.seconds is None


def test_verify_refuses_seeded_noise(people: Path, domain: Path, tmp_path: Path) -> None:
    groups(people, **_options(domain, seed=5), out=tmp_path / "release")
    assert not verify(tmp_path / "release").passed


@pytest.mark.parametrize("name", ["data/groups.parquet", "measurements/groups.parquet", "manifest.json"])
def test_a_release_changed_before_its_seal_is_noticed(
    people: Path, domain: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """Stopped between the move and the seal; moving the changed files away lets the same noise be written anew."""
    ledger, out = _ledger(people), tmp_path / "release"

    def stop(*_: object, **__: object) -> None:
        raise _Stop

    with monkeypatch.context() as patched:
        patched.setattr(Ledger, "seal", stop)
        with pytest.raises(_Stop):
            groups(people, **_options(domain), out=out)
    written = _measured(out)
    changed = out / name
    changed.write_bytes(changed.read_bytes().replace(b'"groups"', b'"Groups"') + b" ")
    with pytest.raises(InputError, match="changed before its debit was sealed") as caught:
        groups(people, **_options(domain), out=out)
    assert caught.value.option == "--out" and len(ledger.state().pending) == 1
    out.rename(tmp_path / "changed")
    groups(people, **_options(domain), out=out)
    assert np.array_equal(_measured(out), written)
    assert ledger.state().spent == 1 and not ledger.state().pending and verify(out).passed


@pytest.mark.parametrize("mechanism", ["M_H", "M_c", "M_dp^OP"])
def test_a_table_too_large_for_a_solver_costs_nothing(
    people: Path, domain: Path, tmp_path: Path, mechanism: str
) -> None:
    ledger = _ledger(people)
    with pytest.raises(InputError, match="too large for a general solver") as caught:
        groups(people, **_options(domain, mechanism=mechanism, max_size=4000), out=tmp_path / "release")
    assert caught.value.option == "--mechanism"
    assert ledger.state().spent == 0 and not ledger.state().pending


def test_the_data_are_no_domain(people: Path, tmp_path: Path) -> None:
    """Neither by name nor through a link; a ledger is not even looked for."""
    link = tmp_path / "linked.csv"
    link.symlink_to(people)
    for domain in (people, link):
        with pytest.raises(InputError, match="--domain is the data file itself") as caught:
            groups(people, **_options(domain), out=tmp_path / "release")
        assert caught.value.option == "--domain"


def test_noise_that_is_not_private_is_never_paid_for(
    people: Path, domain: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Options forbid it already; the last line of defence is tried by going round them."""
    ledger = _ledger(people)
    monkeypatch.setattr(GroupsOptions, "check", lambda self: None)
    with pytest.raises(AssertionError):
        groups(people, **_options(domain, mechanism="M_c^ch", as_published=True), out=tmp_path / "release")
    assert ledger.state().spent == 0


def test_noise_by_opendp(people: Path, domain: Path, tmp_path: Path) -> None:
    """It pays at least what OpenDP's privacy map says, and is a release like any other."""
    ledger = _ledger(people, "3/2")
    released = groups(people, **_options(domain, noise="opendp"), out=tmp_path / "release")
    assert released.is_private and verify(tmp_path / "release").passed
    source = OpenDPNoise()
    asked = sum(
        source.price(level.distribution, Fraction(level.sensitivity)) for level in released.plan.levels
    )
    assert ledger.state().spent == released.plan.loss.amount >= max(asked, Fraction(1))
    assert ledger.state().spent <= Fraction(1) + Fraction(1, 10**9)
    assert read_manifest(tmp_path / "release").parameters["noise"] == "opendp"
    ledger.path.unlink()  # a second ledger beside the first would be refused
    rho = tmp_path / "rho.ledger"
    Ledger.create(rho, Measure.RHO, Relation.ADD_REMOVE_RECORD, Fraction(1))
    given = {**_options(domain, rho="1/2", noise="opendp"), "epsilon": None}
    groups(people, **given, out=tmp_path / "gaussian", ledger=rho)
    assert Fraction(1, 2) <= Ledger(rho).state().spent <= Fraction(1, 2) + Fraction(1, 10**9)
    with pytest.raises(InputError, match="OpenDP takes no seed") as caught:
        groups(people, **_options(domain, noise="opendp", seed=1))
    assert caught.value.option == "--noise"


@pytest.mark.parametrize("where", ["estimate", "seal"])
def test_a_stopped_run_with_noise_by_opendp(
    people: Path, domain: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    """Lost before its files are in place, carried on from them afterwards; never drawn twice for one debit."""
    ledger, out = _ledger(people), tmp_path / "release"

    def stop(*_: object, **__: object) -> None:
        raise _Stop

    with monkeypatch.context() as patched:
        target = {
            "estimate": "louver.groups.solve.estimate_from",
            "seal": "louver.privacy.ledger.Ledger.seal",
        }[where]
        patched.setattr(target, stop)
        with pytest.raises(_Stop):
            groups(people, **_options(domain, noise="opendp"), out=out)
    if where == "seal":
        before = _measured(out)
        groups(people, **_options(domain, noise="opendp"), out=out)
        assert np.array_equal(_measured(out), before) and verify(out).passed
        assert not ledger.state().pending
        return
    (entry,) = ledger.state().pending
    with pytest.raises(BudgetError, match=f"abandon --entry {entry}"):
        groups(people, **_options(domain, noise="opendp"), out=out)
    assert not out.exists()
    ledger.abandon(entry)
    groups(people, **_options(domain, noise="opendp"), out=out)
    assert ledger.state().spent >= 2 * Fraction(9, 10) and verify(out).passed


def test_the_list_of_regions_may_be_a_dataframe() -> None:
    people = pa.table({"home": [1, 1, 2], "place": ["A", "A", "B"]})
    given = {"unit": "home", "regions": ["place"], "max_size": 3, "epsilon": 1, "seed": 1}
    places = pa.table({"place": ["A", "B", "C"]})
    assert lv.groups(people, **given, domain=places).to_frame()["place"].to_pylist()[-1] == "C"
    with pytest.raises(InputError, match="is the data file itself"):
        lv.groups(people, **given, domain=people)
    with pytest.raises(InputError, match="--domain must be a file or a dataframe"):
        lv.groups(people, **given, domain=5)
