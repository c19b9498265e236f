"""Extending a release: the same people row by row, one ledger, bounds and rules kept, and nothing that was tampered with."""

from __future__ import annotations

import json
import pickle
import re
import shutil
from collections import Counter
from dataclasses import asdict, replace
from fractions import Fraction

import numpy as np
import pyarrow.parquet as pq
import pytest

from louver.errors import BudgetError, Cancelled, InfeasibleError, InputError
from louver.optim.entropy import GroupSums, NoisySums
from louver.privacy.budget import Measure
from louver.privacy.distributions import DiscreteLaplace
from louver.privacy.ledger import Ledger
from louver.privacy.neighbours import Relation
from louver.release.manifest import file_entry
from louver.release.verify import verify
from louver.report.topdown import topdown_report
from louver.run import Run
from louver.topdown import estimate, extend, measure, topdown
from louver.topdown.extension import estimation, problem, repair
from louver.topdown.extension import result as solve
from louver.topdown.extension.constraints import Constraints
from louver.topdown.extension.root import posterior_of_answers
from louver.topdown.measuring import sealing
from releases import doubt, edit
from topdown_larger import CONVENTS, LARGER, write_larger


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A first release, seeded, and its extension."""
    folder = tmp_path_factory.mktemp("town")
    first, larger = write_larger(folder)
    topdown(first, out=folder / "first", seed=3)
    release = extend(larger, out=folder / "larger", seed=4, report=topdown_report, csv=True)
    return folder, release


def columns(folder, *names):
    table = pq.read_table(folder / "data/microdata.parquet", columns=list(names))
    return list(zip(*(table[name].to_pylist() for name in names), strict=True))


def test_the_same_people_row_by_row(made):
    folder, release = made
    failed = [check.name for check in verify(folder / "larger").checks if not check.passed]
    assert failed == ["private noise"]
    old = columns(folder / "first", "block", "race", "age", "quarters")
    age = {"18-39": "adult", "40+": "adult", "0-9": "child", "10-17": "child"}
    quarters = {"hall": "dorm", "convent": "dorm", "cell": "jail"}
    new = [
        (block, race, age[years], quarters.get(place, "home"))
        for block, race, years, place in columns(folder / "larger", "block", "race", "years", "place")
    ]
    assert new == old
    assert "extends first, row by row" in repr(release) and release.n_people == len(old)
    assert "TopDown release" in (folder / "larger/report.html").read_text()


def test_zeros_bounds_and_rules_hold_in_every_block(made):
    folder, release = made
    rows = columns(folder / "larger", "block", "sex", "years", "place")
    by_block = {block: Counter() for block, *_ in rows}
    for block, sex, years, place in rows:
        by_block[block][place] += 1
        assert place != "convent" or (sex == "f" and block in CONVENTS)
        assert place in ("other", "hall", "convent") or years in ("18-39", "40+")
    for block, least in CONVENTS.items():
        assert by_block[block]["convent"] >= least
    for counts in by_block.values():
        assert counts["spouse"] <= counts["holder"] and counts["parent"] <= 2 * counts["holder"]
    assert not any(release.edits.broken_after.values())
    assert set(release.edits.broken_before) == {"convents", "spouses", "parents"}


def test_the_same_bytes_on_two_cores_and_from_a_mapping(made):
    folder, release = made
    again = extend(folder / "larger.toml", seed=4, engine="local:2")
    assert again.to_frame() == release.to_frame()
    assert again.to_dict()["edits"] == release.to_dict()["edits"]


def test_what_workers_get_tells_nothing_of_where_the_records_are(made):
    folder, _ = made
    packed = pickle.dumps(problem.read_extension(folder / "larger.toml", seeded=True).without_source())
    assert not any(word in packed for word in (b"people.csv", str(folder).encode()))


def test_the_root_stays_with_its_answers_where_even_counts_are_far_off():
    """Half of the cells are empty and were answered with zero; evenly divided, each would have 100 people."""
    cells, everyone = np.arange(50), np.zeros(50, np.int64)
    mean, variance = posterior_of_answers(np.where(cells < 25, 0, 200), DiscreteLaplace(Fraction(5)))
    answers = NoisySums(cells, mean, variance / estimation.ROOT_TRUST)
    sums = [GroupSums(everyone, np.array([5000]))]
    counts = estimation.fit_root(np.full(50, 100.0), sums, [answers], [], Run())
    assert counts[:25].max() < 0.25 * 50**0.5  # a quarter of the noise's standard deviation


def test_evaluation_tells_errors_and_leaves_out_what_is_too_large(made, monkeypatch):
    folder, _ = made
    told = extend(folder / "larger.toml", seed=4, evaluate=True).to_dict()["levels"][-1][
        "mean_absolute_error"
    ]
    assert set(told) == {"place", "sex_years", "detailed"}
    monkeypatch.setattr("louver.topdown.solve.MOST_COMPARED", 9 * 8)
    told = extend(folder / "larger.toml", seed=4, evaluate=True).to_dict()["levels"][-1][
        "mean_absolute_error"
    ]
    assert set(told) == {"place", "sex_years"}


def test_both_debits_stand_in_one_ledger(tmp_path):
    first, larger = write_larger(tmp_path)
    ledger = Ledger.create(
        tmp_path / "people.csv.ledger", Measure.EPSILON, Relation.CHANGE_RECORD, Fraction(3)
    )
    topdown(first, out=tmp_path / "first")
    with pytest.raises(InputError, match="did not pay for first"):
        other = Ledger.create(tmp_path / "other", Measure.EPSILON, Relation.CHANGE_RECORD, Fraction(3))
        extend(larger, out=tmp_path / "out", ledger=other.path)
    shutil.copytree(tmp_path / "first", tmp_path / "kept")
    pq.write_table(
        pq.read_table(tmp_path / "first/invariants.parquet"), tmp_path / "first/invariants.parquet"
    )
    changed = asdict(file_entry(tmp_path / "first/invariants.parquet"))
    edit(tmp_path / "first", lambda content: content["files"].update({"invariants.parquet": changed}))
    assert verify(tmp_path / "first").passed
    with pytest.raises(InputError, match="did not pay for first"):
        extend(larger, out=tmp_path / "out")
    shutil.rmtree(tmp_path / "first")
    (tmp_path / "kept").rename(tmp_path / "first")
    made = extend(larger, out=tmp_path / "out")
    assert "not protected: which ward" in repr(made)
    assert verify(tmp_path / "out").passed and ledger.state().spent == 3
    manifest = json.loads((tmp_path / "out/manifest.json").read_text())
    assert manifest["privacy"]["first_release"]["amount"] == "2" and manifest["privacy"]["amount"] == "1"
    assert manifest["privacy"]["not_protected"] == ['which ward a person lives in (invariant "ward total")']
    with pytest.raises(BudgetError):
        extend(larger, out=tmp_path / "more")
    assert not (tmp_path / "more").exists()
    with pytest.raises(InputError, match="is an extension itself"):
        larger.write_text(LARGER.replace('extends = "first"', 'extends = "out"'))
        extend(larger, out=tmp_path / "third")


def test_a_stopped_extension_is_carried_on_and_paid_for_once(tmp_path, monkeypatch):
    first, larger = write_larger(tmp_path)
    ledger = Ledger.create(
        tmp_path / "people.csv.ledger", Measure.EPSILON, Relation.CHANGE_RECORD, Fraction(3)
    )
    topdown(first, out=tmp_path / "first")

    def stop(*_, **__):
        raise Cancelled

    with monkeypatch.context() as patch:
        patch.setattr(solve, "repair", stop)
        with pytest.raises(Cancelled):
            extend(larger, out=tmp_path / "out")
    with pytest.raises(InputError, match="add --resume"):
        extend(larger, out=tmp_path / "out")
    monkeypatch.setattr(sealing, "true_levels", stop)  # nothing looks at the records any more
    extend(larger, out=tmp_path / "out", resume=True)
    assert verify(tmp_path / "out").passed and ledger.state().spent == 3


def test_the_two_halves_of_an_extension(tmp_path):
    """Measured once, then estimated without the records and as often as one likes."""
    first, larger = write_larger(tmp_path)
    ledger = Ledger.create(
        tmp_path / "people.csv.ledger", Measure.EPSILON, Relation.CHANGE_RECORD, Fraction(5)
    )
    topdown(first, out=tmp_path / "first")
    topdown(first, out=tmp_path / "other")
    measured = measure(larger, out=tmp_path / "measured")
    assert measure(larger, out=tmp_path / "measured", resume=True).head == measured.head
    (tmp_path / "people.csv").unlink()
    once = estimate(larger, measurements=tmp_path / "measured", out=tmp_path / "out")
    again = estimate(larger, measurements=tmp_path / "out")
    assert verify(tmp_path / "out").passed and ledger.state().spent == 5 and not ledger.state().pending
    assert again.to_frame() == once.to_frame() and again.edits == once.edits
    with pytest.raises(InputError, match="option --shrink does not apply to an extension"):
        estimate(larger, measurements=tmp_path / "measured", shrink=1.0)
    shutil.rmtree(tmp_path / "first")
    (tmp_path / "other").rename(tmp_path / "first")  # paid for by the same ledger, but another one
    with pytest.raises(InputError, match="was not measured by this spec"):
        estimate(larger, measurements=tmp_path / "measured")


def test_a_seeded_first_release_is_not_extended_for_release(made, tmp_path):
    folder, _ = made
    with pytest.raises(InputError, match=r"does not pass `louver verify` \(private noise\)"):
        extend(folder / "larger.toml", out=tmp_path / "out")


def test_a_tampered_first_release_is_refused(made, tmp_path):
    folder, _ = made
    there = shutil.copytree(folder, tmp_path / "town", ignore=shutil.ignore_patterns("larger"))
    people = pq.read_table(there / "first/data/microdata.parquet")
    pq.write_table(people.slice(1), there / "first/data/microdata.parquet")
    with pytest.raises(InputError, match="does not pass `louver verify`"):
        extend(there / "larger.toml", seed=4)
    shutil.rmtree(there / "first")
    shutil.copytree(folder / "first", there / "first")
    edit(there / "first", lambda content: content.update(created="2000-01-01"), with_digest=False)
    with pytest.raises(InputError, match=r"\(manifest unedited\)"):
        extend(there / "larger.toml", seed=4)


def test_verify_finds_an_extension_that_does_not_extend(made, tmp_path):
    folder, _ = made
    views = {
        "race": {"attribute": "race", "labels": {"a": "b", "b": "a", "c": "c"}},
    }
    manifest = json.loads((folder / "larger/manifest.json").read_text())
    own = next(one for one in manifest["promises"] if one["promise"] == "extension")["attributes"]
    assert (
        "are not those of the first release"
        in doubt(folder / "larger", "extension", attributes={**own, **views}).found
    )
    assert (
        "not every attribute" in doubt(folder / "larger", "extension", attributes={"race": own["race"]}).found
    )
    assert "is a different one" in doubt(folder / "larger", "extension", first_digest="0" * 64).found
    bad = {**own, "race": {"attribute": "race", "labels": {"a": "z", "b": "b", "c": "c"}}}
    assert "corresponds to no label" in doubt(folder / "larger", "extension", attributes=bad).found
    assert (
        "not a TopDown release of these regions"
        in doubt(folder / "larger", "extension", regions=["race"]).found
    )
    rules = next(one for one in manifest["promises"] if one["promise"] == "edit-rules")["rules"]
    rules["spouses"]["broken"] = 1
    assert "a different number of leaves" in doubt(folder / "larger", "edit-rules", rules=rules).found


@pytest.mark.parametrize(
    ("change", "found"),
    [
        (lambda m: m.update(promises=m["promises"][:1]), '"extension" must be promised exactly once'),
        (lambda m: m["results"].update(extends="0" * 64), "is about a different release"),
        (
            lambda m: m["parameters"]["refines"]["age"].update(attribute="sex"),
            "does not refine what was requested",
        ),
        (lambda m: m["parameters"]["rules"].pop(), '"edit-rules" are not the requested'),
    ],
)
def test_verify_finds_weak_promises(made, tmp_path, change, found):
    there = shutil.copytree(made[0] / "larger", tmp_path / "larger")
    edit(there, change)
    assert any(found in check.found for check in verify(there).checks if not check.passed)


def test_verify_finds_people_that_were_exchanged(made, tmp_path):
    there = shutil.copytree(made[0] / "larger", tmp_path / "larger")
    path = there / "data/microdata.parquet"
    people = pq.read_table(path)
    for kept, found in ((people.slice(1), "are not those"), (people.slice(0, 10), "has more people")):
        pq.write_table(kept, path)
        assert found in doubt(there, "extension").found
    shutil.copyfile(made[0] / "larger/data/microdata.parquet", path)
    pq.write_table(
        pq.read_table(there / "first/microdata.parquet").slice(1), there / "first/microdata.parquet"
    )
    assert "do not match its manifest" in doubt(there, "extension").found
    content = json.loads((there / "first/manifest.json").read_text())
    (there / "first/manifest.json").write_text(json.dumps({**content, "created": "2000-01-01"}))
    assert "was edited" in doubt(there, "extension").found


def test_bounds_that_the_first_release_cannot_keep_are_refused_before_anything_is_spent(made, tmp_path):
    folder, _ = made
    there = shutil.copytree(folder, tmp_path / "town", ignore=shutil.ignore_patterns("larger"))
    text = (there / "convents.csv").read_text()
    (there / "convents.csv").write_text(text.replace("1A1,0", "1A1,500"))
    with pytest.raises(InfeasibleError, match='has in block "1A1" cannot satisfy the bounds'):
        extend(there / "larger.toml", seed=4)


@pytest.mark.parametrize("what", ["leaves", "levels"])
def test_other_regions_are_refused(made, tmp_path, what):
    folder, _ = made
    there = shutil.copytree(folder, tmp_path / "town", ignore=shutil.ignore_patterns("larger"))
    text = LARGER[: LARGER.index("[[topdown.bounds]]")]
    (there / "larger.toml").write_text(text if what == "leaves" else text.replace("area", "district"))
    if what == "leaves":
        (there / "leaves.csv").write_text((there / "leaves.csv").read_text() + "2B3\n")
    with pytest.raises(InputError, match="the geography is not that of first"):
        extend(there / "larger.toml", seed=4)


def test_rules_that_cannot_hold_are_counted(made, tmp_path):
    folder, _ = made
    there = shutil.copytree(folder, tmp_path / "town", ignore=shutil.ignore_patterns("larger"))
    impossible = '[[topdown.rules]]\nname = "cells"\ncells = { place = ["cell"] }\nat_most = 1\nof = { place = ["hall"] }\n'
    (there / "larger.toml").write_text(LARGER + impossible)
    release = extend(there / "larger.toml", seed=4, out=tmp_path / "out")
    assert release.edits.broken_after["cells"] == 1 and release.edits.broken_after["spouses"] == 0
    assert [check.name for check in verify(tmp_path / "out").checks if not check.passed] == ["private noise"]


NOBODY = '[[topdown.rules]]\nname = "{}"\ncells = {{ place = ["{}"], years = ["{}"] }}\nat_most = 0\n'


def test_nobody_is_where_a_rule_wants_nobody_unless_the_first_release_leaves_no_choice(made, tmp_path):
    """No older children in halls; and no child at home, of neither age, which cannot be."""
    folder, before = made
    there = shutil.copytree(folder, tmp_path / "town", ignore=shutil.ignore_patterns("larger"))
    rules = [("ages", "hall", "10-17"), ("small", "other", "0-9"), ("large", "other", "10-17")]
    (there / "larger.toml").write_text(LARGER + "".join(NOBODY.format(*rule) for rule in rules))
    release = extend(there / "larger.toml", seed=4, out=tmp_path / "out")
    assert [check.name for check in verify(tmp_path / "out").checks if not check.passed] == ["private noise"]
    held = Counter(columns(tmp_path / "out", "place", "years"))
    was = Counter(columns(folder / "larger", "place", "years"))
    assert was["hall", "10-17"] > 0 == held["hall", "10-17"]
    assert release.edits.broken_after["ages"] == release.edits.broken_before["ages"] == 0
    children = Counter(columns(folder / "first", "quarters", "age"))["home", "child"]
    assert held["other", "0-9"] + held["other", "10-17"] == children > 0
    assert release.edits.broken_after["small"] + release.edits.broken_after["large"] > 0
    assert before.n_people == release.n_people


def test_a_rule_needs_somebody_to_compare_with_or_wants_nobody(made, tmp_path):
    folder, _ = made
    there = shutil.copytree(folder, tmp_path / "town", ignore=shutil.ignore_patterns("larger"))
    for wrong in ("at_most = 1\n", 'at_most = 0\nof = { place = ["holder"] }\n'):
        rule = NOBODY.format("ages", "hall", "18-39").replace("at_most = 0\n", wrong)
        (there / "larger.toml").write_text(LARGER + rule)
        with pytest.raises(InputError, match='needs "of", unless "at_most" is 0 and'):
            extend(there / "larger.toml", seed=4)


AGES = {"0-9": "5", "10-17": "14", "18-39": "30", "40+": "50"}
HOUSEHOLD = """
[[topdown.bounds]]
name = "homes"
file = "convents.csv"
cells = { place = ["holder"] }
upper = "homes"

[topdown.household]
head = { place = ["holder"] }
members = { place = ["holder", "spouse", "parent", "other"] }
years = "years"

[[topdown.household.gaps]]
name = "parents of the holder"
cells = { place = ["parent"] }
older = 15

[[topdown.household.gaps]]
name = "others"
cells = { place = ["other"] }
younger = 15
"""


def write_households(folder, household=HOUSEHOLD):
    """The town with years of age, and one home in every block."""
    larger = LARGER.replace("[[topdown.rules]]", household + "\n[[topdown.rules]]", 1)
    for old, new in AGES.items():
        larger = larger.replace(f'"{old}"', f'"{new}"')
        (folder / "people.csv").write_text(
            (folder / "people.csv").read_text().replace(f",{old},", f",{new},")
        )
    (folder / "larger.toml").write_text(larger)
    lines = (folder / "convents.csv").read_text().split()
    (folder / "convents.csv").write_text(
        "\n".join([f"{lines[0]},homes", *(f"{line},1" for line in lines[1:])])
    )


@pytest.fixture(scope="module")
def households(made, tmp_path_factory):
    there = tmp_path_factory.mktemp("homes") / "town"
    shutil.copytree(made[0], there, ignore=shutil.ignore_patterns("larger"))
    write_households(there)
    return there, extend(there / "larger.toml", seed=4, out=there / "larger")


def test_ages_fit_in_every_block_of_one_household(households):
    there, release = households
    names = ("parents of the holder", "others")
    assert sum(release.edits.broken_before[name] for name in names) > 0
    by_block = {}
    for block, years, place in columns(there / "larger", "block", "years", "place"):
        by_block.setdefault(block, []).append((place, int(years)))
    broken = Counter()
    for people in by_block.values():
        heads = [years for place, years in people if place == "holder"]
        if len(heads) == 1 and not {"hall", "convent", "cell"} & {place for place, _ in people}:
            broken[names[0]] += any(years < heads[0] + 15 for place, years in people if place == "parent")
            broken[names[1]] += any(years > heads[0] - 15 for place, years in people if place == "other")
    assert broken == {name: release.edits.broken_after[name] for name in names}
    assert not any(release.edits.broken_after.values())
    assert [check.name for check in verify(there / "larger").checks if not check.passed] == ["private noise"]


def test_edits_that_go_one_way_are_answered_elsewhere(households, monkeypatch):
    """Half of the town has one home in a block, and holders lost there are found in the other half."""
    there, _ = households
    table = (there / "convents.csv").read_text()
    found = []

    def town(extension, leaves):
        at_root = leaves.to_dense(extension.design.n_cells).sum(axis=0).reshape(extension.design.shape)
        return at_root.sum(axis=(0, 1, 2))

    def compared(extension, leaves, run):
        extension = replace(extension, household=None)
        for answered in (repair.balance, lambda *_: {}):
            with monkeypatch.context() as patch:
                patch.setattr(repair, "balance", answered)
                edited, _ = repair.repair(extension, leaves)
            found.append(int(abs(town(extension, edited) - town(extension, leaves)).sum()))
            assert (edited.people == leaves.people).all()
            assert not Constraints.of(extension).broken(edited).any()
        raise Cancelled

    monkeypatch.setattr(solve, "repair", compared)
    monkeypatch.setattr(
        estimation, "ROOT_TRUST", 0.1
    )  # some people in every cell, to be changed the other way
    try:
        (there / "convents.csv").write_text(re.sub(r"^(2.*),1$", r"\1,99", table, flags=re.MULTILINE))
        with pytest.raises(Cancelled):
            extend(there / "larger.toml", seed=4)
    finally:
        (there / "convents.csv").write_text(table)
    assert found[0] < found[1], found


def test_verify_finds_weak_promises_about_households(households, tmp_path):
    there, _ = households
    manifest = json.loads((there / "larger/manifest.json").read_text())
    promise = next(one for one in manifest["promises"] if one["promise"] == "households")
    gaps = json.loads(json.dumps(promise["gaps"]))
    gaps["others"]["broken"] += 1
    assert "a different number of leaves" in doubt(there / "larger", "households", gaps=gaps).found
    assert "whole numbers" in doubt(there / "larger", "households", years="place").found
    gaps["others"] |= {"older": 3}
    assert not doubt(there / "larger", "households", gaps=gaps).passed
    copy = shutil.copytree(there / "larger", tmp_path / "larger")
    edit(copy, lambda m: m["parameters"]["household"]["gaps"].pop())
    assert any('"households" are not the requested' in check.found for check in verify(copy).checks)


def test_without_bounds_and_rules_nothing_is_edited(made, tmp_path):
    folder, _ = made
    there = shutil.copytree(folder, tmp_path / "town", ignore=shutil.ignore_patterns("larger"))
    (there / "larger.toml").write_text(LARGER[: LARGER.index("[[topdown.bounds]]")])
    release = extend(there / "larger.toml", seed=4, out=tmp_path / "out")
    assert release.edits == repair.Edits(broken_before={}, broken_after={}, leaves=0, people=0)
    assert [check.name for check in verify(tmp_path / "out").checks if not check.passed] == ["private noise"]


def test_too_many_bounds(made, monkeypatch):
    monkeypatch.setattr(problem, "MAX_BOUNDS", 0)
    with pytest.raises(InputError, match="there are more than 0 bounds"):
        extend(made[0] / "larger.toml", seed=4)
