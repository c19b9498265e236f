"""Sizes that agree with the people of a TopDown release: end to end, doubted by verify, paid from one ledger; bad input."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import louver as lv
from louver.errors import InputError
from louver.groups import agreement, estimate, groups, measure
from louver.privacy.budget import Measure
from louver.privacy.ledger import Ledger
from louver.privacy.neighbours import Relation
from louver.release.manifest import digest, file_entry, read_manifest
from louver.release.verify import verify
from louver.report.groups import groups_report
from oracles.agreement import has_rows
from releases import doubt, edit

SECRET = "Xyzzy"
CODES = [f"{county}{site}" for county in "12" for site in "abc"]

SPEC: Mapping[str, Any] = {
    "attributes": {"lives": {"labels": ["home", "ward"]}, "role": {"labels": ["head", "other"]}},
    "topdown": {
        "epsilon": 20,
        "neighbours": "change-record",
        "geography": {
            "levels": ["all", "county", "site"],
            "leaves": "leaves.csv",
            "column": "code",
            "prefixes": [0, 1, 2],
        },
    },
}


def _people(folder: Path) -> Path:
    """Homes of 1 to 4 in five sites, one of 7; six people of a ward, who have no home; site 2c is empty."""
    rng = np.random.default_rng(4)
    lines = ["code,county,site,lives,role,home"]
    for home in range(60):
        code = CODES[home % 5]
        for n in range(7 if home == 0 else int(rng.integers(1, 5))):
            lines.append(f"{code},{code[0]},{code},home,{'head' if n == 0 else 'other'},{SECRET}{home}")
    lines += ["1b,1,1b,ward,other,"] * 6
    path = folder / "people.csv"
    path.write_text("\n".join(lines) + "\n")
    (folder / "leaves.csv").write_text(
        "code,county,site,units,few,odd\n"
        + "".join(f"{code},{code[0]},{code},{0 if code == '2c' else 40},2,{code}\n" for code in CODES)
    )
    return path


def _spec(**more: Any) -> dict[str, Any]:
    return {**SPEC, "topdown": {**SPEC["topdown"], **more}}


def _columns() -> dict[str, Any]:
    geography = {"levels": ["county", "site"], "leaves": "leaves.csv", "columns": ["county", "site"]}
    return geography


@pytest.fixture(scope="module")
def town(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """People, and TopDown releases of them: paid for, seeded, by columns, and for people who come and go."""
    folder = tmp_path_factory.mktemp("town")
    people = _people(folder)
    ledger = Ledger.create(folder / "people.ledger", Measure.EPSILON, Relation.CHANGE_RECORD)
    ledger.grant(Fraction(1000), Measure.EPSILON)
    with pytest.MonkeyPatch.context() as patched:
        patched.chdir(folder)
        lv.topdown(_spec(), data=people, out=folder / "first", ledger=folder / "people.ledger")
        lv.topdown(_spec(), data=people, out=folder / "seeded", seed=1)
        total = [{"name": "all", "level": "all", "cells": {}}]
        lv.topdown(_spec(invariants=total), data=people, out=folder / "exact", seed=1)
        other = {"neighbours": "add-remove-record"}
        lv.topdown(_spec(**other), data=people, out=folder / "coming", seed=1)
    return folder


def _options(town: Path, **more: Any) -> dict[str, Any]:
    given = {
        "unit": "home",
        "regions": ["county", "site"],
        "code": "code",
        "domain": str(town / "leaves.csv"),
        "max_size": 7,
        "epsilon": 4,
        "neighbours": "change-record",
        "agrees_with": str(town / "seeded"),
        "members": {"lives": ["home"]},
        "most_groups": "units",
    }
    return {name: value for name, value in {**given, **more}.items() if value is not None}


def _home_people(release: Path) -> dict[str, int]:
    """People in homes by site, counted in the microdata."""
    table = pq.read_table(release / "data" / "microdata.parquet")
    codes = table.filter(pc.equal(table["lives"].cast("string"), "home"))["code"].to_pylist()
    return {code: codes.count(code) for code in CODES}


def test_sizes_times_groups_are_the_people_of_every_leaf(town: Path) -> None:
    release = groups(town / "people.csv", **_options(town, seed=3))
    leaves = release.counts[-6:]
    assert (leaves @ np.arange(1, 8)).tolist() == list(_home_people(town / "seeded").values())
    assert (leaves.sum(axis=1) <= [40] * 5 + [0]).all() and (leaves >= 0).all()
    assert release.counts[0].tolist() == leaves.sum(axis=0).tolist()
    assert release.plan.regions.names == ("total", "county", "site")
    assert not release.is_private and "agrees with seeded" in repr(release)


def test_almost_no_noise_gives_the_true_sizes(town: Path, tmp_path: Path) -> None:
    with pytest.MonkeyPatch.context() as patched:
        patched.chdir(town)
        lv.topdown(_spec(epsilon=1_000), data=town / "people.csv", out=tmp_path / "true", seed=2)
    asked = _options(town, agrees_with=str(tmp_path / "true"), epsilon=1_000, seed=1, evaluate=True)
    release = groups(town / "people.csv", **asked)
    assert release.evaluation is not None and all(level.l1 == 0 for level in release.evaluation)
    # The six people of the ward have no home and are in no group.
    assert release.persons[0] == sum(_home_people(tmp_path / "true").values())


def test_heads_are_the_number_of_groups(town: Path) -> None:
    asked = _options(
        town, most_groups=None, heads={"role": ["head"], "lives": ["home"]}, failsafe=True, seed=5
    )
    release = groups(town / "people.csv", **asked)
    table = pq.read_table(town / "seeded" / "data" / "microdata.parquet").to_pylist()
    members = _home_people(town / "seeded")
    for row, code in zip(release.counts[-6:], CODES, strict=True):
        heads = sum(one["code"] == code and (one["role"], one["lives"]) == ("head", "home") for one in table)
        fewest = -(-members[code] // 7)
        assert row.sum() == max(fewest, min(heads, members[code]))


def test_regions_may_be_columns(town: Path, tmp_path: Path) -> None:
    with pytest.MonkeyPatch.context() as patched:
        patched.chdir(town)
        spec = _spec(geography=_columns() | {"levels": ["all", "site"], "columns": ["state", "site"]})
        lines = (town / "people.csv").read_text().splitlines()
        people = tmp_path / "people.csv"
        people.write_text("\n".join([f"{lines[0]},state", *(f"{line},S" for line in lines[1:])]))
        leaves = (town / "leaves.csv").read_text().splitlines()
        domain = tmp_path / "leaves.csv"
        domain.write_text("\n".join([f"{leaves[0]},state", *(f"{line},S" for line in leaves[1:])]))
        spec["topdown"]["geography"]["leaves"] = str(domain)
        lv.topdown(spec, data=people, out=tmp_path / "first", seed=1)
    asked = _options(town, agrees_with=str(tmp_path / "first"), domain=str(domain), code=None, seed=1)
    for regions in (["state", "site"], ["site"]):
        out = tmp_path / "-".join(regions)
        release = groups(people, **{**asked, "regions": regions}, out=out, report=groups_report)
        assert release.persons[0] == sum(_count(tmp_path / "first").values())
        assert [check.name for check in verify(out).checks if not check.passed] == ["private noise"]
    with pytest.raises(InputError, match="are columns, not prefixes"):
        groups(people, **{**asked, "regions": ["state", "site"], "code": "code"})
    with pytest.raises(InputError, match="must name the regions of first: state,site"):
        groups(people, **{**asked, "regions": ["state"]})


def _count(release: Path) -> dict[str, int]:
    table = pq.read_table(release / "data" / "microdata.parquet")
    sites = table.filter(pc.equal(table["lives"].cast("string"), "home"))["site"].to_pylist()
    return {site: sites.count(site) for site in CODES}


@pytest.fixture(scope="module")
def paid(town: Path) -> Path:
    asked = _options(town, agrees_with=str(town / "first"))
    groups(
        town / "people.csv", **asked, ledger=town / "people.ledger", out=town / "sizes", report=groups_report
    )
    return town / "sizes"


def test_a_paid_release_passes_and_says_what_both_lose(paid: Path) -> None:
    found = verify(paid)
    assert found.passed, [check for check in found.checks if not check.passed]
    manifest = read_manifest(paid)
    assert manifest.privacy["first_release"] == {
        "measure": "epsilon",
        "amount": "20",
        "neighbours": "change-record",
    }
    assert SECRET not in (paid / "manifest.json").read_text()
    assert "in addition to epsilon = 20" in (paid / "report.html").read_text()
    assert "Agreement with people" in (paid / "report.html").read_text()


@pytest.fixture
def forged(paid: Path, tmp_path: Path) -> Path:
    out = tmp_path / "forged"
    shutil.copytree(paid, out)
    return out


def _move_a_group(out: Path, leaf: str, sizes: tuple[int, int]) -> None:
    """One group of a leaf, and of all regions above, gets another size."""
    path = out / "data" / "groups.parquet"
    table = pq.read_table(path)
    lines = table.to_pylist()
    for line in lines:
        if line["site"] in (None, leaf) and line["county"] in (None, leaf[0]) and line["size"] in sizes:
            line["groups"] += 1 if line["size"] == sizes[1] else -1
    pq.write_table(type(table).from_pylist(lines, table.schema), path)


def test_a_group_of_another_size_is_noticed(forged: Path) -> None:
    assert doubt(forged, "agreement").passed
    table = pq.read_table(forged / "data" / "groups.parquet").to_pylist()
    size = next(line["size"] for line in table if line["site"] == "1a" and line["groups"])
    _move_a_group(forged, "1a", (size, size + 1))
    check = doubt(forged, "agreement")
    assert not check.passed and "in 1 leaf region sizes times groups" in check.found


def test_two_groups_that_keep_the_people_pass_but_not_a_bound(forged: Path) -> None:
    """A pair of groups may be any pair with as many members; more groups than housing units may not."""
    bounds = forged / "data" / "bounds.parquet"
    table = pq.read_table(bounds)
    lines = [{**line, "most_groups": min(line["most_groups"], 1)} for line in table.to_pylist()]
    pq.write_table(type(table).from_pylist(lines, table.schema), bounds)
    check = doubt(forged, "agreement")
    assert not check.passed and "fewer or more groups" in check.found
    pq.write_table(table.slice(1), bounds)
    assert "one for each leaf" in doubt(forged, "agreement").found or not doubt(forged, "agreement").passed


FORGERIES: Mapping[str, Callable[[dict[str, Any]], Any]] = {
    "other members": lambda one: one.update(members={}),
    "other heads": lambda one: one.update(heads={"role": ["head"]}),
    "a label that nobody has": lambda one: one.update(members={"lives": ["ship"]}),
    "no bounds": lambda one: one.update(bounds=None),
    "bounds moved": lambda one: one.update(moved=2),
    "another largest size": lambda one: one.update(largest=6),
    "another release": lambda one: one.update(first_digest="0" * 64),
    "other prefixes": lambda one: one.update(prefixes=[1, 3]),
    "other regions": lambda one: one.update(regions=["place"]),
    "other attributes": lambda one: one.update(attributes=["lives"]),
}


@pytest.mark.parametrize("name", FORGERIES)
def test_a_forged_promise_is_noticed(forged: Path, name: str) -> None:
    def change(content: dict[str, Any]) -> None:
        FORGERIES[name](next(one for one in content["promises"] if one["promise"] == "agreement"))

    edit(forged, change)
    assert not verify(forged).passed


def test_a_size_that_was_not_counted_is_noticed(forged: Path) -> None:
    def change(content: dict[str, Any]) -> None:
        content["parameters"]["max_size"] = 70
        next(one for one in content["promises"] if one["promise"] == "agreement")["largest"] = 70

    edit(forged, change)
    assert "agreement" in [check.name for check in verify(forged).checks if not check.passed]


def _forge_first(out: Path, change: Callable[[dict[str, Any]], Any]) -> None:
    """Another manifest of the first release, with a digest that fits, named wherever it is named."""
    path = out / "first" / "manifest.json"
    first = json.loads(path.read_text())
    change(first)
    first["digest"] = digest(first)
    path.write_text(json.dumps(first))

    def rename(content: dict[str, Any]) -> None:
        next(one for one in content["promises"] if one["promise"] == "agreement")["first_digest"] = first[
            "digest"
        ]
        content["parameters"]["agrees_with"] = first["digest"]
        content["privacy"]["not_protected"] = first["privacy"]["not_protected"]
        content["files"]["first/manifest.json"] = asdict(file_entry(path))

    edit(out, rename)


def test_a_first_release_that_is_an_extension_is_noticed(forged: Path) -> None:
    _forge_first(forged, lambda first: None)
    assert doubt(forged, "agreement").passed
    _forge_first(forged, lambda first: first["promises"].append({"promise": "extension"}))
    assert "is an extension" in doubt(forged, "agreement").found


def test_what_the_first_release_does_not_protect_follows_from_its_invariants(
    town: Path, tmp_path: Path
) -> None:
    out = tmp_path / "sizes"
    groups(town / "people.csv", **_options(town, agrees_with=str(town / "exact"), seed=1), out=out)
    _forge_first(out, lambda first: first["privacy"].update(not_protected=[]))
    failed = {check.name: check.found for check in verify(out).checks if not check.passed}
    assert "the first release calls not protected" in failed["privacy"]


def test_a_record_whose_code_begins_with_a_leaf_is_in_no_leaf(town: Path, tmp_path: Path) -> None:
    people = tmp_path / "people.csv"
    lines = (town / "people.csv").read_text()
    people.write_text(f"{lines}1aX,1,1a,home,head,{SECRET}0x\n")
    with pytest.raises(InputError, match="a region that the domain does not list"):
        groups(people, **_options(town, seed=1))


def test_a_dropped_promise_is_noticed(forged: Path) -> None:
    edit(forged, lambda content: content["promises"].pop())
    failed = [check.name for check in verify(forged).checks if not check.passed]
    assert {"promises", "contents"} <= set(failed)


def test_other_people_than_the_first_releases_are_noticed(forged: Path) -> None:
    people = forged / "first" / "microdata.parquet"
    pq.write_table(pq.read_table(people).slice(1), people)
    assert "do not match its manifest" in doubt(forged, "agreement").found
    edit_first = json.loads((forged / "first" / "manifest.json").read_text())
    edit_first["seconds"] = 1.0
    (forged / "first" / "manifest.json").write_text(json.dumps(edit_first))
    assert "was edited" in doubt(forged, "agreement").found


@pytest.mark.parametrize(
    "change",
    [
        lambda privacy: privacy.pop("first_release"),
        lambda privacy: privacy["first_release"].update(amount="1"),
        lambda privacy: privacy.update(invariants=["nothing"]),
        lambda privacy: privacy.update(not_protected=["nothing"]),
    ],
)
def test_a_loss_left_out_is_noticed(forged: Path, change: Callable[[dict[str, Any]], Any]) -> None:
    edit(forged, lambda content: change(content["privacy"]))
    failed = [check.name for check in verify(forged).checks if not check.passed]
    assert "privacy" in failed


def test_measuring_and_estimating_apart_gives_the_same(town: Path, tmp_path: Path) -> None:
    asked = _options(town, agrees_with=str(town / "first"))
    measured = measure(town / "people.csv", **asked, ledger=town / "people.ledger", out=tmp_path / "measured")
    whole = estimate(measurements=measured.folder, **asked, out=tmp_path / "sizes", report=groups_report)
    again = estimate(measurements=measured.folder, **asked)
    assert (whole.counts == again.counts).all() and verify(tmp_path / "sizes").passed
    with pytest.raises(InputError):  # the measurements were paid for with another release
        estimate(measurements=measured.folder, **_options(town, agrees_with=str(tmp_path / "sizes")))


def test_a_run_that_stops_before_sealing_is_carried_on(
    town: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = _options(town, agrees_with=str(town / "first"), epsilon=3)
    given = {"ledger": town / "people.ledger", "out": tmp_path / "sizes", "report": groups_report}

    def stop(*given: Any, **more: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(Ledger, "seal", stop)
        groups(town / "people.csv", **asked, **given)
    spent = Ledger(town / "people.ledger").state().remaining
    published = pq.read_table(tmp_path / "sizes" / "data" / "groups.parquet")
    release = groups(town / "people.csv", **asked, **given)
    assert release.to_frame().equals(published.cast(release.to_frame().schema))
    assert verify(tmp_path / "sizes").passed
    assert Ledger(town / "people.ledger").state().remaining == spent


def test_the_failsafe_moves_bounds_as_far_as_needed(town: Path, tmp_path: Path) -> None:
    asked = _options(town, most_groups="few", seed=1)
    with pytest.raises(InputError, match=r"5 leaf regions of seeded .* first 1a; give --max-size"):
        groups(town / "people.csv", **asked)
    out = tmp_path / "moved"
    release = groups(town / "people.csv", **asked, failsafe=True, out=out, report=groups_report)
    members = _home_people(town / "seeded")
    for row, code in zip(release.counts[-6:], CODES, strict=True):
        assert row.sum() <= max(2, -(-members[code] // 7))
    assert [check.name for check in verify(out).checks if not check.passed] == ["private noise"]
    assert (
        read_manifest(out).warnings[-1].startswith("The failsafe moved bounds on the number of groups in 5")
    )


@pytest.mark.parametrize(("people", "most"), [(0, 0), (1, 0), (5, 1), (5, 2), (9, 3), (4, 7)])
def test_feasibility_is_that_of_trying_everything(people: int, most: int) -> None:
    assert has_rows(people, 3, 0, most) == (-(-people // 3) <= min(most, people))


BAD: Mapping[str, tuple[dict[str, Any], str]] = {
    "no release": ({"agrees_with": "nowhere"}, "--agrees-with names no release"),
    "one that fails": ({"agrees_with": "broken"}, "does not pass `louver verify`"),
    "sizes": ({"agrees_with": "sizes"}, "sizes is not a TopDown release"),
    "other neighbours": ({"neighbours": "add-remove-record"}, "give --neighbours change-record"),
    "a unit": ({"neighbours": "add-remove-unit"}, "--neighbours cannot be used with"),
    "no attribute": ({"members": {"age": ["old"]}}, "attribute that seeded does not have"),
    "no label": ({"members": {"lives": ["home", "ship"]}}, 'label 2 for "lives"'),
    "attribute alone": ({"members": ["lives"]}, "need labels"),
    "heads outside": (
        {"heads": {"role": ["head", "other"]}, "most_groups": None},
        "whom --members leaves out",
    ),
    "heads and bounds": ({"heads": {"role": ["head"]}}, "leave out --most-groups"),
    "no code": ({"code": None}, "name their column with --code code"),
    "a level that is none": ({"regions": ["tract", "site"]}, "must name levels of seeded"),
    "not to the leaves": ({"regions": ["county"]}, "must name levels of seeded"),
    "upside down": ({"regions": ["site", "county"]}, "must name levels of seeded"),
    "no such column": ({"most_groups": "rooms"}, "rooms"),
    "no number": ({"most_groups": "odd"}, 'column "odd" in leaves.csv is not a whole number'),
    "least above most": ({"least_groups": "units", "most_groups": "few"}, "above the maximum on row 1"),
    "too many groups": ({"least_groups": "units", "most_groups": None}, "fewer people than groups"),
    "too few groups": ({"most_groups": "few", "max_size": 3}, "--most-groups: "),
    "public total": ({"total": "public"}, "--total cannot be used with"),
    "a mechanism": ({"mechanism": "M_H^dp"}, "--mechanism cannot be used with"),
    "a counted table": ({"unit": None, "size": "a", "groups": "b"}, "--unit cannot be used with"),
    "regions of the data": ({"domain": None, "domain_from_data": True}, "--domain-from-data cannot be used"),
    "members alone": ({"agrees_with": None}, "--members needs --agrees-with"),
    "a quantity": ({"quantity": "role"}, "--quantity cannot be used with"),
    "quantities": ({"quantity": "code", "max_quantity": 3}, "--max-quantity cannot be used with"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_one_sentence(town: Path, paid: Path, name: str) -> None:
    changed, message = BAD[name]
    if not (town / "broken").exists():
        shutil.copytree(town / "seeded", town / "broken")
        (town / "broken" / "data" / "microdata.parquet").unlink()
    asked = _options(town, seed=1)
    for key, value in changed.items():
        if key == "agrees_with" and value is not None:
            value = str(town / value)
        if value is None:
            asked.pop(key, None)
        else:
            asked[key] = value
    with pytest.raises(InputError) as error:
        groups(town / "people.csv", **asked)
    assert message in str(error.value) and SECRET not in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("promises", "message"),
    [
        ([{"promise": "topdown", "regions": ["code"]}, {"promise": "extension"}], "seeded is an extension"),
        ([{"promise": "topdown", "regions": ["code"], "spine": {}}], "regions arranged for areas"),
        ([{"promise": "topdown", "regions": []}], "seeded has no regions"),
    ],
)
def test_releases_that_cannot_be_agreed_with_are_refused(
    town: Path, monkeypatch: pytest.MonkeyPatch, promises: list[dict[str, Any]], message: str
) -> None:
    manifest = replace(read_manifest(town / "seeded"), promises=promises)
    monkeypatch.setattr(agreement, "read_first_manifest", lambda *given, **more: manifest)
    with pytest.raises(InputError, match=message):
        groups(town / "people.csv", **_options(town, seed=1))


def test_another_list_of_leaves_is_refused(town: Path, tmp_path: Path) -> None:
    lines = (town / "leaves.csv").read_text().splitlines()
    (tmp_path / "leaves.csv").write_text("\n".join(lines[:-1]) + "\n")
    with pytest.raises(InputError, match="other leaf regions than seeded"):
        groups(town / "people.csv", **_options(town, domain=str(tmp_path / "leaves.csv"), seed=1))
    (tmp_path / "leaves.csv").write_text("\n".join([*lines[:-1], "2c,2,2c,,2,x"]) + "\n")
    with pytest.raises(InputError, match='column "units" in leaves.csv has no value on row 6'):
        groups(town / "people.csv", **_options(town, domain=str(tmp_path / "leaves.csv"), seed=1))


def test_nobody_is_protected_where_people_cannot_come_or_go(town: Path, tmp_path: Path) -> None:
    asked = _options(town, agrees_with=str(town / "coming"), neighbours="add-remove-record", seed=1)
    assert groups(town / "people.csv", **asked).total_groups > 0
    ward = [{"name": "wards", "level": "county", "cells": {"lives": ["ward"]}}]
    with pytest.MonkeyPatch.context() as patched:
        patched.chdir(town)
        spec = _spec(neighbours="add-remove-record", invariants=ward)
        lv.topdown(spec, data=town / "people.csv", out=tmp_path / "exact", seed=1)
    with pytest.raises(InputError, match="no person can be added or removed"):
        groups(town / "people.csv", **{**asked, "agrees_with": str(tmp_path / "exact")})


def test_invariants_of_the_first_release_are_repeated(town: Path, tmp_path: Path) -> None:
    out = tmp_path / "sizes"
    groups(town / "people.csv", **_options(town, agrees_with=str(town / "exact"), seed=1), out=out)
    privacy, first = read_manifest(out).privacy, read_manifest(town / "exact").privacy
    assert privacy["invariants"] == first["invariants"] and privacy["invariants"]
    assert privacy["not_protected"] == first["not_protected"] and privacy["not_protected"]
    assert [check.name for check in verify(out).checks if not check.passed] == ["private noise"]


def test_another_ledger_and_a_seeded_release_are_refused(town: Path, tmp_path: Path) -> None:
    ledger = Ledger.create(town / "other.ledger", Measure.EPSILON, Relation.CHANGE_RECORD)
    ledger.grant(Fraction(100), Measure.EPSILON)
    asked = _options(town, agrees_with=str(town / "first"))
    with pytest.raises(InputError, match="did not pay for first"):
        groups(town / "people.csv", **asked, ledger=town / "other.ledger", out=tmp_path / "sizes")
    with pytest.raises(InputError, match="does not pass"):
        groups(town / "people.csv", **_options(town), ledger=town / "people.ledger", out=tmp_path / "sizes")
    assert not (tmp_path / "sizes").exists()


def test_a_refusal_before_spending_leaves_the_ledger_as_it_is(town: Path, tmp_path: Path) -> None:
    before = Ledger(town / "people.ledger").state().remaining
    asked = _options(town, agrees_with=str(town / "first"), most_groups="few")
    with pytest.raises(InputError, match="--failsafe"):
        groups(town / "people.csv", **asked, ledger=town / "people.ledger", out=tmp_path / "sizes")
    assert Ledger(town / "people.ledger").state().remaining == before


def test_records_without_a_unit_are_an_error_by_themselves(town: Path) -> None:
    alone = {"agrees_with": None, "members": None, "most_groups": None, "code": None, "seed": 1}
    with pytest.raises(InputError, match='column "home" in people.csv has no value'):
        groups(town / "people.csv", **_options(town, **alone))
