"""Spending: what a request names, what is refused before the data are touched, and what a stopped run left."""

from __future__ import annotations

import shutil
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import louver.data.people
from louver.data.people import fingerprint
from louver.errors import BudgetError, InputError, LouverError
from louver.groups import groups
from louver.groups.load import NOT_IN_REQUEST, GroupsCall
from louver.groups.options import GroupsOptions
from louver.groups.result import MEASUREMENTS_FILE
from louver.privacy.budget import Measure
from louver.privacy.ledger import Ledger, People
from louver.privacy.ledger_finding import bind_apart, find_ledger, ledger_of
from louver.privacy.measurements import Measurements
from louver.privacy.neighbours import Relation
from louver.schema.request import ask
from louver.schema.spec import SourceOptions
from louver.topdown import measure, topdown
from louver.topdown.measuring.noise_plan import NOT_IN_REQUEST as NOT_IN_TOPDOWN
from louver.topdown.options import TopDownOptions
from topdown_town import SPEC, write_town

"""Files that louver wrote before requests named every option."""

OTHERWISE: dict[str, Any] = {
    "unit": "car",
    "size": "size",
    "groups": "n",
    "regions": ("county",),
    "domain_from_data": True,
    "max_size": 5,
    "min_size": 1,
    "delta": 1e-6,
    "mechanism": "M_H^dp",
    "noise": "opendp",
    "quantity": "q",
    "max_quantity": 2,
    "across": "split",
    "total": "public",
    "neighbours": "change-record",
}
"""For every option of `groups` that decides the true answers or their noise, another value."""


@pytest.fixture
def people(tmp_path: Path) -> Path:
    path = tmp_path / "people.csv"
    rows = [f"h{home},{'GA' if home % 2 else 'NY'}" for home in range(20) for _ in range(1 + home % 3)]
    path.write_text("home,state\n" + "\n".join(rows) + "\n")
    (tmp_path / "regions.csv").write_text("state\nGA\nNY\n")
    return path


def _ledger(people: Path, epsilon: str = "2") -> Ledger:
    path = people.with_name(people.name + ".ledger")
    return Ledger.create(path, Measure.EPSILON, Relation.ADD_REMOVE_RECORD, Fraction(epsilon))


def _options(people: Path, **more: Any) -> dict[str, Any]:
    given = {"unit": "home", "regions": ["state"], "max_size": 4, "epsilon": 1}
    return {**given, "domain": str(people.with_name("regions.csv")), **more}


READ_OTHERWISE: dict[str, Any] = {
    "table": "t",
    "query": "q",
    "decimal_mark": ",",
    "encoding": "cp1252",
    "delimiter": ";",
    "keep_codes": True,
    "where": "state = 'GA'",
    "header_row": 1,
    "missing_code": {"state": ["N"]},
    "date_order": "dmy",
}


def test_every_option_is_in_the_request_or_left_out_for_a_reason() -> None:
    named = {f"groups.{name}" for name in OTHERWISE} | {f"source.{name}" for name in READ_OTHERWISE}
    unused = {
        "source.weight",
        "source.wide",
        "source.weight_is_count",
    }  # groups has no such source; they are in the request all the same
    fields = {f"groups.{name}" for name in GroupsOptions.model_fields}
    fields |= {f"source.{name}" for name in SourceOptions.model_fields}
    assert named | unused | set(NOT_IN_REQUEST) == fields
    assert not (named | unused) & set(NOT_IN_REQUEST) and all(NOT_IN_REQUEST.values())
    asked = {"geography", "shares", "queries", "invariants", "epsilon", "rho", "delta", "neighbours"}
    fields = {f"topdown.{name}" for name in TopDownOptions.model_fields}
    fields |= {f"source.{name}" for name in SourceOptions.model_fields}
    read = {f"source.{name}" for name in (*READ_OTHERWISE, "weight", "wide", "weight_is_count")}
    assert {f"topdown.{name}" for name in asked} | read | set(NOT_IN_TOPDOWN) == fields


def _request(people: Path, reading: dict[str, Any] | None = None, **more: Any) -> str:
    asked = GroupsCall.check(ask(GroupsOptions, people, None, _options(people) | (reading or {})))
    plan = asked.plan(asked.regions)  # type: ignore[arg-type]
    changed = asked.options.model_copy(update=more)
    return GroupsCall(
        data=people, source=asked.source, options=changed, noise=None, regions=asked.regions
    ).payment(plan).request  # fmt: skip


@pytest.mark.parametrize("option", OTHERWISE)
def test_another_option_is_another_request(people: Path, option: str) -> None:
    assert _request(people) == _request(people)
    assert _request(people, **{option: OTHERWISE[option]}) != _request(people)


def test_another_source_or_budget_is_another_request(people: Path) -> None:
    requests = [_request(people)]
    requests += [_request(people, {option: value}) for option, value in READ_OTHERWISE.items()]
    requests.append(_request(people, {"where": "state = 'NY'"}))
    for more in ({"epsilon": 2}, {"shares": ["1/3", "2/3"]}):
        asked = GroupsCall.check(ask(GroupsOptions, people, None, _options(people, **more)))
        requests.append(asked.payment(asked.plan(asked.regions)).request)  # type: ignore[arg-type]
    assert len(set(requests)) == len(READ_OTHERWISE) + 4


def test_two_filters_spend_from_one_budget(people: Path) -> None:
    """The ledger is bound to the whole source, whatever part of it is read."""
    ledger = _ledger(people)
    for number, where in enumerate(["state = 'GA'", "state = 'NY'"]):
        groups(people, **_options(people, where=where), out=people.with_name(f"out{number}"))
    assert ledger.state().spent == 2
    with pytest.raises(BudgetError):
        groups(people, **_options(people, where="state in ('GA')"), out=people.with_name("out2"))


def test_a_filter_needs_neighbours_that_may_come_and_go(people: Path) -> None:
    with pytest.raises(InputError, match="--where cannot be used with neighbours change-record"):
        ask(GroupsOptions, people, None, _options(people, where="state = 'GA'", neighbours="change-record"))


class _Stop(Exception):
    pass


def _stopped(monkeypatch: pytest.MonkeyPatch, target: str, call: Any) -> None:
    def stop(*_: object, **__: object) -> None:
        raise _Stop

    with monkeypatch.context() as patched, pytest.raises(_Stop):
        patched.setattr(target, stop)
        call()


def test_one_noise_never_meets_public_and_noisy_totals(
    people: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A ledger copied while a debit was pending, restored later: the same noise would give the empty units away."""
    counted = tmp_path / "counted.csv"
    counted.write_text("state,size,n\nGA,0,7\nGA,2,3\nNY,1,4\n")
    ledger, copy = _ledger(counted), tmp_path / "copy"
    given = {"size": "size", "groups": "n", "regions": ["state"], "domain": str(tmp_path / "regions.csv")}
    given |= {"max_size": 4, "epsilon": 1, "mechanism": "M_H^dp", "min_size": 1}
    first = {**given, "total": "public", "out": tmp_path / "public"}
    _stopped(monkeypatch, "louver.groups.solve.estimate_from", lambda: groups(counted, **first))
    shutil.copy2(ledger.path, copy)
    groups(counted, **first)
    shutil.copy2(copy, ledger.path)
    groups(counted, **given, total="noisy", out=tmp_path / "noisy")
    difference = _drawn(tmp_path / "public") - _drawn(tmp_path / "noisy")
    assert difference.tolist() != [[7, 0, 0, 0], [7, 0, 0, 0], [0, 0, 0, 0]]
    assert len(ledger.state().pending) == 1 and ledger.state().spent == 2


def _drawn(release: Path) -> np.ndarray:
    return np.concatenate([x.noisy_counts for x in Measurements(release / MEASUREMENTS_FILE).batches()])


def test_noise_by_opendp_is_logged_as_lost_when_stopped(
    people: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("opendp", reason="needs the extra opendp")
    ledger = _ledger(people)
    given = _options(people, noise="opendp")
    _stopped(
        monkeypatch,
        "louver.groups.solve.estimate_from",
        lambda: groups(people, **given, out=tmp_path / "out"),
    )
    (body,) = ledger.state().pending.values()
    assert body["replayable"] is False
    _stopped(
        monkeypatch,
        "louver.groups.solve.estimate_from",
        lambda: groups(people, **_options(people), out=tmp_path / "o"),
    )
    assert [body["replayable"] for body in ledger.state().pending.values()] == [False, True]


def _counted(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Every opening, hashing and parsing of a file."""
    seen: list[str] = []
    from louver.data import parsing_once, read

    opened, hashed, parsed = read.open_source, louver.data.people._file_hashes, parsing_once._parse

    def opening(data: Any, **more: Any) -> Any:
        seen.append(f"open {read.name_of(data, None)}")
        return opened(data, **more)

    def hashing(path: Path, *more: Any) -> dict[bytes, bytes]:
        seen.append(f"hash {path.name}")
        return hashed(path, *more)

    def parsing(place: str, *more: Any) -> parsing_once._Parsed:
        seen.append("parse what is hashed" if "/dev/fd" in place else "parse")
        return parsed(place, *more)

    for module in ("louver.groups.load", "louver.topdown.measuring.true_counts", "louver.topdown.load"):
        monkeypatch.setattr(f"{module}.open_source", opening)
    monkeypatch.setattr("louver.data.people._file_hashes", hashing)
    monkeypatch.setattr("louver.data.parsing_once._parse", parsing)
    return seen


def test_the_data_are_hashed_once_before_and_once_after_and_parsed_once(
    people: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _ledger(people)
    town = write_town(tmp_path / "town")
    Ledger.create(town.with_name("people.csv.ledger"), Measure.EPSILON, Relation.CHANGE_RECORD, Fraction(2))
    seen = _counted(monkeypatch)
    groups(people, **_options(people), out=tmp_path / "out")
    topdown(town, out=tmp_path / "topdown")
    of_people = [event for event in seen if event.endswith("people.csv") or event.startswith("parse")]
    assert of_people == ["hash people.csv", "parse what is hashed", "open people.csv", "hash people.csv"] * 2


def test_further_ledgers_in_the_folder_take_no_further_pass(
    people: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("earlier", "other"):
        held = tmp_path / f"{name}.csv"
        held.write_text(f"{name},price\napple,3\npear,4\n")
        ledger = Ledger.create(
            tmp_path / f"{name}.ledger", Measure.EPSILON, Relation.ADD_REMOVE_RECORD, Fraction(1)
        )
        ledger.admit(fingerprint(held), name=held.name, people=People(held), is_new_population=True)
    own, seen = _ledger(people), _counted(monkeypatch)
    bind_apart(own)
    assert seen == ["hash people.csv", "parse what is hashed"]
    seen.clear()
    groups(people, **_options(people), out=tmp_path / "out")
    assert [event for event in seen if event.startswith("hash")] == ["hash people.csv"] * 2
    seen.clear()
    own.path.rename(tmp_path / "people.ledger")
    assert ledger_of(people) == tmp_path / "people.ledger"
    assert seen == ["hash people.csv"]


def test_what_cannot_be_paid_for_does_not_touch_the_data(
    people: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise contradictory bounds recover an exact count from a few refused calls."""
    ledger = _ledger(people, "1/2")
    town = write_town(tmp_path / "town", SPEC.replace('facilities = "dorm"', "lower = 900"))
    small = Ledger.create(
        town.with_name("people.csv.ledger"), Measure.EPSILON, Relation.CHANGE_RECORD, Fraction(1)
    )
    seen = _counted(monkeypatch)
    for call in (
        lambda: groups(people, **_options(people), out=tmp_path / "out"),
        lambda: groups(people, **_options(people, domain=None, domain_from_data=True), out=tmp_path / "out"),
        lambda: topdown(town, out=tmp_path / "out"),
        lambda: measure(town, out=tmp_path / "out"),
    ):
        with pytest.raises(BudgetError, match="left"):
            call()
    assert not [event for event in seen if event.endswith("people.csv")]
    assert ledger.state().head.entry == small.state().head.entry == 1
    assert not (tmp_path / "out").exists()


def test_refusals_that_depend_on_the_data_are_logged(people: Path, tmp_path: Path) -> None:
    ledger = _ledger(people)
    (tmp_path / "regions.csv").write_text("state\nGA\n")
    with pytest.raises(InputError, match="the domain does not list"):
        groups(people, **_options(people), out=tmp_path / "out")
    (logged,) = ledger.state().refusals
    assert "group sizes: refused" in logged and ledger.state().spent == 0
    town = write_town(tmp_path / "town", SPEC.replace('facilities = "dorm"', "lower = 900"))
    second = Ledger.create(
        town.with_name("people.csv.ledger"), Measure.EPSILON, Relation.CHANGE_RECORD, Fraction(2)
    )
    with pytest.raises(LouverError):
        topdown(town, out=tmp_path / "out")
    assert len(second.state().refusals) == 1 and second.state().spent == 0


def test_a_ledger_elsewhere_is_no_second_budget(people: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    path = tmp_path / "elsewhere" / "people.ledger"
    second = Ledger.create(path, Measure.EPSILON, Relation.ADD_REMOVE_RECORD, Fraction(1))
    _ledger(people)
    groups(people, **_options(people), out=tmp_path / "first")
    with pytest.raises(BudgetError, match=r"people.csv.ledger next to people.csv pays for these data"):
        groups(people, **_options(people), ledger=second.path, out=tmp_path / "second")
    assert second.state().spent == 0


def test_a_ledger_is_found_beside_the_data(people: Path) -> None:
    assert find_ledger(people) is None
    ledger = _ledger(people)
    for found in (find_ledger(people), find_ledger(str(people)), find_ledger(None, ledger.path)):
        assert found == ledger.path
    assert find_ledger("postgresql://host/base") is None
    with pytest.raises(InputError, match="no ledger"):
        find_ledger(people, people.with_name("none.ledger"))


def test_noise_of_the_same_request_is_drawn_once(
    people: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = _ledger(people)
    given = _options(people)
    seal = "louver.privacy.ledger.Ledger.seal"
    _stopped(monkeypatch, seal, lambda: groups(people, **given, out=tmp_path / "a"))
    groups(people, **given, out=tmp_path / "b")
    assert np.array_equal(_drawn(tmp_path / "a"), _drawn(tmp_path / "b")) and ledger.state().spent == 1


def test_measurements_of_other_data_do_not_answer_for_these(tmp_path: Path) -> None:
    town = write_town(tmp_path / "town")
    data = town.with_name("people.csv")
    Ledger.create(town.with_name("people.csv.ledger"), Measure.EPSILON, Relation.CHANGE_RECORD, Fraction(2))
    measure(town, out=tmp_path / "out")
    before = data.read_bytes()
    data.write_bytes(before + before.splitlines(keepends=True)[-1])
    with pytest.raises(
        LouverError, match="holds the measurements of other data, or these data changed since"
    ):
        measure(town, out=tmp_path / "out", ledger=town.with_name("people.csv.ledger"), resume=True)
    data.write_bytes(before)
    measure(town, out=tmp_path / "out", resume=True)
