"""A manifest and a page hold nothing but what a release says: records in their free places are found."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import louver as lv
from louver._verdict import Level
from louver.errors import InputError, PromiseError
from louver.privacy.budget import Measure
from louver.privacy.ledger import Ledger
from louver.privacy.neighbours import Relation
from louver.release.folder import Folder, plain_files
from louver.release.manifest import Manifest, file_entry, read_manifest
from louver.release.pages import page_of
from louver.release.pages.published import in_folder
from louver.release.promises import shapes
from louver.release.promises.shapes import check_parameters
from louver.release.verify import Check, verify
from louver.release.write import ReleaseWriter
from louver.report.anonymize import anonymize_report
from louver.report.groups import groups_report
from louver.report.topdown import topdown_report
from louver.topdown import extend, topdown
from releases import edit
from topdown_larger import write_larger

RECORDS = [f"Ada {i},34,flu" for i in range(300)]
NUMBERS = [[20 + i % 70, i % 2, i * 7] for i in range(300)]
Content = dict[str, Any]


QUESTION = "Which home do you\u00a0live in? " + "x" * 300
"""A column as surveys name them."""
ODD_GROUPS: dict[str, dict[str, Any]] = {
    "epsilon without a zero": {"epsilon": ".5", "shares": [".25", "0.25", "5e-1"]},
    "rho with a sign": {"rho": " +1_0 "},
    "delta without a zero": {"epsilon": "1.", "delta": ".001"},
    "another mechanism as published": {
        "epsilon": 1,
        "mechanism": "M_H^dp",
        "evaluate": True,
        "as_published": True,
    },
}
"""Spellings that the options read, and combinations that they take."""


@pytest.fixture(scope="module")
def honest(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One release of every verb, each with its page."""
    folder = tmp_path_factory.mktemp("honest")
    people = pa.table(
        {
            "name": [f"n{i}" for i in range(80)],
            "age": list(range(20, 60)) * 2,
            "sex": ["f", "m"] * 40,
            "job": ["a", "b", "c", "d"] * 20,
            "pay": list(range(1000, 1080)),
            "ill": ["x", "y", "z", "x", "y"] * 16,
        }
    )
    release = lv.anonymize(
        people,
        quasi=["age", "sex"],
        sensitive=["ill"],
        identifying=["name"],
        keep=["pay", "job"],
        k=4,
        l=2,
        method="greedy",
        round_to={"pay": 50},
        top_code={"pay": 1060},
    )
    release.write(folder / "anonymize", anonymize_report(release))
    free = lv.anonymize(
        people, quasi=["age", "sex"], keep=["ill", "pay", "job"], identifying=["name"], k=3, method="freeform-greedy",
        keep_order=True,
    )  # fmt: skip
    free.write(folder / "freeform", anonymize_report(free))
    lv.audit(
        people,
        tables=[
            {"name": "all", "by": ["sex", "ill"]},
            {"name": "some", "by": ["ill"], "where": {"sex": ["f"]}},
        ],
        registry=folder / "register",
        publish=folder / "audit",
        report=page_of,
    )
    homes = "\n".join(f"{i // 3},{'ab'[i % 6 // 3]},{'ab'[i % 6 // 3]}{i // 6 % 2}" for i in range(60))
    (folder / "homes.csv").write_text(f"home,county,town\n{homes}\n")
    (folder / "towns.csv").write_text("county,town\na,a0\na,a1\nb,b0\nb,b1\n")
    Ledger.create(folder / "homes.csv.ledger", Measure.EPSILON, Relation.ADD_REMOVE_RECORD, 10)
    lv.groups(
        folder / "homes.csv",
        unit="home",
        regions=["county", "town"],
        max_size=4,
        epsilon=1,
        domain=str(folder / "towns.csv"),
        out=folder / "groups",
        report=groups_report,
    )
    odd = people.rename_columns([QUESTION, ".age", "s\nex", "job", "pay", "ill"])
    asked = lv.anonymize(
        odd, quasi=[".age", "s\nex"], identifying=[QUESTION], keep=["job", "pay", "ill"], k=4, method="greedy",
        recode={"s\nex": {"a\u00a0b": ["f", "m"]}}, missing_code={"job": ["d\t"]},
    )  # fmt: skip
    asked.write(folder / "odd names", anonymize_report(asked))
    homes_table = pa.table(
        {QUESTION: [i // 3 for i in range(36)], ".c": ["a", "b"] * 18, "c_sum": ["a", "b"] * 18}
    )
    for name, options in ODD_GROUPS.items():
        lv.groups(
            homes_table, unit=QUESTION, regions=[".c", "c_sum"], domain_from_data=True, max_size=40, seed=1, across="split",
            out=folder / name, report=groups_report, **options,
        )  # fmt: skip
    first, larger = write_larger(folder)
    topdown(first, out=folder / "first", seed=3, report=topdown_report)
    extend(larger, out=folder / "extension", seed=4, report=topdown_report)
    return folder


VERBS = ("anonymize", "freeform", "audit", "groups", "first", "extension")


def copied(honest: Path, name: str, tmp_path: Path) -> Path:
    return shutil.copytree(honest / name, tmp_path / name)


def listed(out: Path, name: str) -> None:
    """List a file with its present bytes, as a forger would."""
    found = file_entry(out / name)
    edit(out, lambda m: m["files"].update({name: {"bytes": found.bytes, "sha256": found.sha256}}))


def failed(out: Path) -> set[str]:
    return {check.name for check in verify(out).checks if not check.passed} - {"private noise"}


@pytest.mark.parametrize("name", [*VERBS, "odd names", *ODD_GROUPS])
def test_honest_releases_pass(honest: Path, name: str) -> None:
    assert not failed(honest / name) - {"for release"}


@pytest.mark.parametrize(
    ("parameters", "key"), [({"epsilon": "much"}, "epsilon"), ({"unit": "x" * 2001}, "unit")]
)
def test_parameters_that_no_manifest_could_state_cost_nothing(parameters: Content, key: str) -> None:
    """What would be refused when it is sealed is refused before its debit."""
    asked = {"regions": ["any"], "max_size": 3, "total": "noisy", "neighbours": "change-record"}
    check_parameters("groups", asked)
    with pytest.raises(PromiseError, match=rf"\({key}\).*nothing was spent"):
        check_parameters("groups", asked | parameters)


def test_a_refusal_before_the_debit_leaves_the_ledger_alone(
    honest: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("homes.csv", "towns.csv"):
        shutil.copy(honest / name, tmp_path)
    ledger = Ledger.create(tmp_path / "homes.csv.ledger", Measure.EPSILON, Relation.ADD_REMOVE_RECORD, 1)
    asked: dict[str, Any] = {
        "unit": "home", "regions": ["county", "town"], "max_size": 4, "epsilon": 1, "domain": str(tmp_path / "towns.csv"),
    }  # fmt: skip
    with monkeypatch.context() as m:
        m.setitem(shapes.SHAPES, "groups", (shapes.Nothing, shapes.GroupsResults))
        with pytest.raises(PromiseError, match="nothing was spent"):
            lv.groups(tmp_path / "homes.csv", out=tmp_path / "out", **asked)
    assert ledger.state().spent == 0
    with monkeypatch.context() as m:
        m.setitem(shapes.SHAPES, "groups", (shapes.GroupsParameters, shapes.Nothing))
        with pytest.raises(
            PromiseError, match="stays pending, and a version with the bug fixed can finish it"
        ):
            lv.groups(tmp_path / "homes.csv", out=tmp_path / "out", **asked)
    assert not (tmp_path / "out").exists() and len(ledger.state().pending) == 1
    lv.groups(tmp_path / "homes.csv", out=tmp_path / "out", **asked)
    assert ledger.state().spent == 1 and not ledger.state().pending and verify(tmp_path / "out").passed


BLOCKS: dict[str, Callable[[Content], object]] = {
    "records as a parameter": lambda m: m["parameters"].update(records=RECORDS),
    "records as a result": lambda m: m["results"].update(records_seen=RECORDS),
    "numbers as a result": lambda m: m["results"].update(found=NUMBERS),
    "records as warnings": lambda m: m.update(warnings=[*m["warnings"], *RECORDS]),
    "a warning twice": lambda m: m.update(
        warnings=[*m["warnings"], "The noise is not private: do not publish."] * 2
    ),
    "records as disclosures": lambda m: m.update(disclosures=[*m["disclosures"], *RECORDS]),
    "records as the method": lambda m: m.update(method=" ".join(RECORDS)),
    "records as the version": lambda m: m.update(version=" ".join(RECORDS)),
    "records as the date": lambda m: m.update(created=" ".join(RECORDS)),
    "records as a hash": lambda m: m.update(spec_sha256=" ".join(RECORDS)),
    "records in the privacy block": lambda m: m["privacy"].update(note=RECORDS),
}


@pytest.mark.parametrize("name", VERBS)
@pytest.mark.parametrize("attack", BLOCKS.values(), ids=BLOCKS.keys())
def test_records_in_the_blocks_of_a_manifest(
    honest: Path, tmp_path: Path, name: str, attack: Callable[[Content], object]
) -> None:
    out = copied(honest, name, tmp_path)
    edit(out, attack)
    assert failed(out) & {"manifest contents", "privacy"}


KEYS: dict[str, tuple[str, Callable[[Content], object]]] = {
    "class sizes": ("anonymize", lambda m: m["results"]["risk"].update(class_sizes=[pair[:2] for pair in NUMBERS])),
    "losses": ("anonymize", lambda m: m["results"].update(by_column=NUMBERS)),
    "unchanged columns": ("anonymize", lambda m: m["results"].update(unchanged=RECORDS)),
    "weights": ("anonymize", lambda m: m["parameters"].update(weights=dict.fromkeys(RECORDS, 1))),
    "a long code": ("anonymize", lambda m: m["parameters"].update(missing_code={"ill": [" ".join(RECORDS)]})),
    "many codes": (
        "anonymize",
        lambda m: m["parameters"].update(missing_code={"ill": [f"{i} {r}" * 20 for i in range(20) for r in RECORDS]}),
    ),
    "other counts": ("anonymize", lambda m: m["results"].update(records=81)),
    "levels twice": ("groups", lambda m: m["results"]["levels"].extend(m["results"]["levels"])),
    "levels of records": ("groups", lambda m: m["results"]["levels"][0].update(name=RECORDS[0])),
    "sizes": ("groups", lambda m: m["results"].update(sizes=list(range(300)))),
    "failsafe regions": ("first", lambda m: m["results"].update(failsafe_regions=RECORDS)),
    "regions twice": ("first", lambda m: m["results"].update(suboptimal_regions=["1"] * 300)),
    "sizes of regions": ("first", lambda m: m["results"]["levels"][-1].update(sizes=[row[0] for row in NUMBERS])),
    "a bias": ("first", lambda m: m["results"].update(errors={"typical": [], "bias": NUMBERS})),
    "names of tables": ("audit", lambda m: m["parameters"]["tables"][0].update(name=" ".join(RECORDS))),
    "labels of a filter": ("audit", lambda m: m["parameters"]["tables"][0].update(where={"sex": RECORDS[:40]})),
    "an extension's edits": ("extension", lambda m: m["results"]["edits"].update(broken_before=dict.fromkeys(RECORDS, 0))),
}  # fmt: skip


@pytest.mark.parametrize(("name", "attack"), KEYS.values(), ids=KEYS.keys())
def test_records_under_known_keys(
    honest: Path, tmp_path: Path, name: str, attack: Callable[[Content], object]
) -> None:
    out = copied(honest, name, tmp_path)
    edit(out, attack)
    assert "manifest contents" in failed(out)


LABELS = ["20", "f", "x", "21", "m", "y"] * 50
PLENTY = int.from_bytes(" ".join(RECORDS[:9]).encode())
SPELT: dict[str, tuple[str, Callable[[Content], object]]] = {
    "labels in an order": ("anonymize", lambda m: m["parameters"].update(ordered={"age": LABELS})),
    "labels of a recode": (
        "anonymize",
        lambda m: m["parameters"].update(recode={"age": {f"r{i}": ["20", "f", "x"] for i in range(300)}}),
    ),
    "edges of a recode": ("anonymize", lambda m: m["parameters"].update(recode={"age": {"bins": [34, 0, 7] * 300}})),
    "names over and over": ("anonymize", lambda m: m["parameters"].update(one_hot=["age", "sex"] * 300)),
    "a long number": ("anonymize", lambda m: m["parameters"].update(seconds=PLENTY)),
    "labels of a filter": ("audit", lambda m: m["parameters"]["tables"][1].update(where={"sex": LABELS})),
    "shares": ("groups", lambda m: m["parameters"].update(shares=[34, 0, 7] * 300)),
    "places of a code": ("first", lambda m: m["parameters"]["geography"].update(prefixes=list(range(300)))),
    "attributes of a query": ("first", lambda m: m["parameters"]["queries"]["quarters"].update(attributes=["age", "race"] * 300)),
    "a lower risk": ("anonymize", lambda m: m["results"]["risk"].update(prosecutor_highest=0.001)),
    "a lower loss": ("anonymize", lambda m: m["results"].update(gcp=0.001)),
    "larger classes": ("anonymize", lambda m: m["results"].update(smallest_class=99)),
    "a risk of nobody's": ("anonymize", lambda m: m["results"]["risk"].update(journalist_highest=0.001)),
    "more diversity": ("anonymize", lambda m: m["results"]["reached"][0].update(l=9.0)),
    "different roles": ("anonymize", lambda m: m["parameters"].update(keep=["pay", "job", "ill"])),
    "more groups": ("groups", lambda m: m["results"].update(total_groups=m["results"]["total_groups"] + 1)),
    "more regions": ("groups", lambda m: m["results"]["levels"][-1].update(regions=99)),
    "smaller groups": ("groups", lambda m: m["parameters"].update(max_size=2)),
    "more people": ("first", lambda m: m["results"].update(people=m["results"]["people"] + 1)),
    "more blocks": ("extension", lambda m: m["results"]["levels"][-1].update(regions=99)),
    "less asked for": ("first", lambda m: m["parameters"].update(epsilon="1/9")),
    "a filter of nothing": ("audit", lambda m: m["parameters"]["tables"][1].update(where={"sex": []})),
    "other decimals": ("audit", lambda m: m["parameters"]["tables"][0].update(n_rows_by=1)),
    "nothing disclosed": ("audit", lambda m: m.update(disclosures=[])),
    "closeness not promised": ("anonymize", lambda m: m["results"]["reached"][0].update(t=0.01)),
}  # fmt: skip


@pytest.mark.parametrize(("name", "attack"), SPELT.values(), ids=SPELT.keys())
def test_records_spelt_with_published_labels_and_forged_figures(
    honest: Path, tmp_path: Path, name: str, attack: Callable[[Content], object]
) -> None:
    """The page is made again as a forger would, so that nothing but the manifest can tell."""
    out = copied(honest, name, tmp_path)
    edit(out, attack)
    page = page_of(read_manifest(out), in_folder(Folder(out, plain_files(out)[0])))
    (out / "report.html").write_text(page)
    listed(out, "report.html")
    assert failed(out) == {"manifest contents"}


def test_options_may_name_something_twice(tmp_path: Path) -> None:
    people = pa.table({"age": [*range(20)] * 2, "ill": ["x", "y"] * 20})
    release = lv.anonymize(
        people, quasi=["age"], sensitive=["ill"], k=2, missing_code={"ill": ["-", "-"]}, method="greedy"
    )
    release.write(tmp_path / "out")
    assert verify(tmp_path / "out").passed


def test_room_between_the_parts_of_a_manifest(honest: Path, tmp_path: Path) -> None:
    out = copied(honest, "extension", tmp_path)
    for path, check in ((out / "manifest.json", "manifest unedited"), (out / "first/manifest.json", "manifest contents")):  # fmt: skip
        text = path.read_text()
        for old, new in (("{", "{ \t "), ("0.25", "0.2500"), ("town", "\\u0074own")):
            path.write_text(text.replace(old, new, 1))
            if path.parent != out:
                listed(out, "first/manifest.json")
            assert check in failed(out), (path, new)
        path.write_text(text)
        listed(out, "first/manifest.json")


def test_strings_that_no_file_has_are_limited(honest: Path, tmp_path: Path) -> None:
    """Codes that stand for missing are in no published file: a few pass, many only where somebody has read and accepts them."""
    out = copied(honest, "anonymize", tmp_path)

    def found(n: int, accept: int | None = 0) -> Check:
        edit(out, lambda m: m["parameters"].update(missing_code={"ill": RECORDS[:n]}))
        checks = verify(out, skip_report=True, accept_strings=accept).checks
        return next(check for check in checks if check.name == "manifest contents")

    few = found(20)
    assert few.passed and few.found.endswith("21 of them are in no other file")
    for many, text in ((40, "40 labels with 510 characters"), (30, "30 labels with 380 characters")):
        refused = found(many)
        assert not refused.passed and text in refused.found and "under missing_code" in refused.found
        assert f"accept {many + 1} strings" in refused.found
        assert not found(many, many).passed
        assert found(many, many + 1).passed and found(many, None).passed
    accepted = lv.open(out).verify(skip_report=True, accept_strings=31)
    assert accepted.passed and accepted.verdict.level is Level.CARE
    assert any("accepted as requested" in reason for reason in accepted.verdict.reasons)


def test_columns_that_the_dictionary_does_not_list_are_refused(honest: Path, tmp_path: Path) -> None:
    out = copied(honest, "anonymize", tmp_path)
    edit(out, lambda m: m["parameters"].update(identifying=["name", "Ada Lovelace 34 flu " * 40]))
    found = {check.name: check.found for check in verify(out, skip_report=True).checks if not check.passed}
    assert "different roles from the dictionary" in found["manifest contents"]


def test_a_page_of_another_version_is_named(honest: Path, tmp_path: Path) -> None:
    out = copied(honest, "groups", tmp_path)
    edit(out, lambda m: m.update(version="0.0.9"))
    (out / "report.html").write_text("<p>other words</p>")
    listed(out, "report.html")
    found = {check.name: check.found for check in verify(out).checks if not check.passed}
    assert found.keys() == {"report"}
    assert f"made by louver 0.0.9, and this is louver {lv.__version__}" in found["report"]
    assert "--skip-report" in found["report"]


@pytest.mark.parametrize(
    ("verb", "noise", "sentence"),
    [
        ("audit", {}, "nothing was published"),
        ("groups", {"noise": "opendp"}, "OpenDP cannot draw the same noise again"),
        ("topdown", {}, "a version with the bug fixed can finish it"),
    ],
)
def test_a_refusal_says_what_becomes_of_the_debit(
    tmp_path: Path, verb: str, noise: dict[str, str], sentence: str
) -> None:
    manifest = Manifest(verb=verb, method="none", parameters=noise, promises=[])
    with ReleaseWriter(tmp_path / "out") as writer, pytest.raises(PromiseError, match=sentence):
        writer.seal(manifest)
    assert not (tmp_path / "out").exists()


def test_records_in_the_dictionary(honest: Path, tmp_path: Path) -> None:
    out = copied(honest, "anonymize", tmp_path)
    path = out / "data/columns.parquet"
    table = pq.read_table(path)
    done = [RECORDS[0] if role == "identifying" else old for role, old in zip(table["role"].to_pylist(), table["done"].to_pylist(), strict=True)]  # fmt: skip
    pq.write_table(table.set_column(3, "done", pa.array(done)), path)
    listed(out, "data/columns.parquet")
    assert "manifest contents" in failed(out)


def test_records_in_what_measurements_say_of_themselves(honest: Path, tmp_path: Path) -> None:
    out, name = copied(honest, "first", tmp_path), "measurements/topdown.parquet"
    table = pq.read_table(out / name)
    told = json.loads(table.schema.metadata[b"louver"])
    for key in ("design", "loss", "entry_hash"):
        text = json.dumps({**told, key: RECORDS[0]})
        pq.write_table(table.replace_schema_metadata({"louver": text}), out / name)
        listed(out, name)
        assert "measurements" in failed(out), key


def test_records_in_the_first_manifest_of_an_extension(honest: Path, tmp_path: Path) -> None:
    out = copied(honest, "extension", tmp_path)
    edit(out / "first", lambda m: m["parameters"].update(records=RECORDS))
    listed(out, "first/manifest.json")
    assert "manifest contents" in failed(out)


PAGES: dict[str, Callable[[str], str]] = {
    "sentences": lambda page: page.replace("</main>", "".join(f"<p>{r}.</p>" for r in RECORDS) + "</main>"),
    "one word": lambda page: page.replace("louver verify", "louver doubt", 1),
    "one number": lambda page: page.replace("<b>", "<b>1", 1),
    "a table": lambda page: page.replace(
        "</main>",
        "<table><thead><tr><th>size</th></tr></thead><tbody>"
        + "".join(f"<tr><td>{r}</td></tr>" for r in RECORDS)
        + "</tbody></table></main>",
    ),
    "a comment": lambda page: f"{page}<!-- {RECORDS} -->",
    "a script": lambda page: page.replace("</main>", "<script>1</script></main>"),
    "a drawing": lambda page: page.replace("</main>", f"<svg><text>{RECORDS}</text></svg></main>"),
    "a longer page": lambda page: page + " ",
    "an empty page": lambda page: "",
    "no page": lambda page: "\udcff".encode("utf-8", "surrogateescape").decode("latin-1"),
}


@pytest.mark.parametrize("name", VERBS)
def test_a_page_that_was_edited(honest: Path, tmp_path: Path, name: str) -> None:
    out = copied(honest, name, tmp_path)
    page = (out / "report.html").read_text()
    for attack, change in PAGES.items():
        changed = change(page)
        if changed == page:
            assert attack in ("one word", "one number") and name == "audit", attack
            continue
        (out / "report.html").write_text(changed)
        listed(out, "report.html")
        assert failed(out) == {"report"}, attack


def test_a_page_that_is_not_asked_about(honest: Path, tmp_path: Path) -> None:
    out = copied(honest, "groups", tmp_path)
    (out / "report.html").write_text("<p>other words</p>")
    listed(out, "report.html")
    assert verify(out, skip_report=True).passed and lv.open(out).verify(skip_report=True).passed


@pytest.mark.parametrize(
    "name", ["level", "size", "groups", "persons", "standard_error", "lower_90", "upper_90"]
)
def test_regions_called_like_a_published_column(name: str) -> None:
    """Two columns of one name would be refused when the release is sealed, after its debit."""
    with pytest.raises(InputError, match=f'names column "{name}".* rename it'):
        lv.groups(pa.table({"u": [1], name: ["a"]}), unit="u", regions=[name], domain_from_data=True, max_size=2, epsilon=1, seed=1)  # fmt: skip


@pytest.mark.parametrize(
    ("table", "problem"),
    [
        ({"by": ["count", "sex"]}, 'attribute "count".* rename it'),
        ({"rows": ["share"], "cols": ["sex"]}, 'attribute "share".* rename it'),
        (
            {"by": ["sex", "share"], "totals": True, "total": "all"},
            'which is also a label of attribute "share"',
        ),
    ],
)
def test_tables_whose_names_meet_those_of_the_release(
    tmp_path: Path, table: dict[str, Any], problem: str
) -> None:
    people = pa.table({"count": ["x", "y"] * 20, "share": ["x", "all"] * 20, "sex": ["f"] * 20 + ["m"] * 20})
    with pytest.raises(InputError, match=problem):
        lv.audit(people, tables=[{"name": "t", **table}], registry=tmp_path / "register", publish=tmp_path / "out")  # fmt: skip
    assert not (tmp_path / "out").exists()
