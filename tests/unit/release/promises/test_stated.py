"""A manifest and a page hold nothing but what a release says: records in their free places are found."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import louver as lv
from louver.privacy.budget import Measure
from louver.privacy.ledger import Ledger
from louver.privacy.neighbours import Relation
from louver.release.manifest import file_entry
from louver.release.pages import page_of
from louver.release.verify import verify
from louver.report.anonymize import anonymize_report
from louver.report.groups import groups_report
from louver.report.topdown import topdown_report
from louver.topdown import extend, topdown
from releases import edit
from topdown_larger import write_larger

RECORDS = [f"Ada {i},34,flu" for i in range(300)]
NUMBERS = [[20 + i % 70, i % 2, i * 7] for i in range(300)]
Manifest = dict[str, Any]


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


@pytest.mark.parametrize("name", VERBS)
def test_honest_releases_pass(honest: Path, name: str) -> None:
    assert not failed(honest / name)


BLOCKS: dict[str, Callable[[Manifest], object]] = {
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
    honest: Path, tmp_path: Path, name: str, attack: Callable[[Manifest], object]
) -> None:
    out = copied(honest, name, tmp_path)
    edit(out, attack)
    assert failed(out) & {"manifest contents", "privacy"}


KEYS: dict[str, tuple[str, Callable[[Manifest], object]]] = {
    "class sizes": ("anonymize", lambda m: m["results"]["risk"].update(class_sizes=[pair[:2] for pair in NUMBERS])),
    "losses": ("anonymize", lambda m: m["results"].update(by_column=NUMBERS)),
    "unchanged columns": ("anonymize", lambda m: m["results"].update(unchanged=RECORDS)),
    "weights": ("anonymize", lambda m: m["parameters"].update(weights=dict.fromkeys(RECORDS, 1))),
    "a long code": ("anonymize", lambda m: m["parameters"].update(missing_code={"ill": [" ".join(RECORDS)]})),
    "many codes": (
        "anonymize",
        lambda m: m["parameters"].update(missing_code={"ill": [f"{i} {r}" for i in range(20) for r in RECORDS]}),
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
    honest: Path, tmp_path: Path, name: str, attack: Callable[[Manifest], object]
) -> None:
    out = copied(honest, name, tmp_path)
    edit(out, attack)
    assert "manifest contents" in failed(out)


def test_strings_that_no_file_has_are_counted(honest: Path, tmp_path: Path) -> None:
    """Codes that stand for missing are in no published file; `verify` says how many such strings there are."""
    out = copied(honest, "anonymize", tmp_path)
    edit(out, lambda m: m["parameters"].update(missing_code={"ill": RECORDS[:40]}))
    found = {check.name: check.found for check in verify(out, skip_report=True).checks}
    assert "41 of them are in no other file" in found["manifest contents"]


def test_records_in_the_dictionary(honest: Path, tmp_path: Path) -> None:
    out = copied(honest, "anonymize", tmp_path)
    path = out / "data/columns.parquet"
    table = pq.read_table(path)
    done = [RECORDS[0] if role == "identifying" else old for role, old in zip(table["role"].to_pylist(), table["done"].to_pylist(), strict=True)]  # fmt: skip
    pq.write_table(table.set_column(3, "done", pa.array(done)), path)
    listed(out, "data/columns.parquet")
    assert "manifest contents" in failed(out)


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
