"""The loss that a release claims follows from its noise: everything that could be said of it falsely is found."""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import louver as lv
from louver.privacy.budget import Measure
from louver.privacy.ledger import Ledger
from louver.privacy.neighbours import Relation
from louver.release.manifest import digest, file_entry
from louver.release.promises.noise import Changed, log_delta
from louver.release.promises.privacy import gaussian_variance, laplace_variance
from louver.release.verify import verify
from louver.topdown import extend, topdown
from releases import edit
from topdown_larger import write_larger
from topdown_town import SPEC, write_town

Change = Callable[[dict[str, Any]], object]


@pytest.fixture(scope="module")
def groups(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Group sizes with every sort of noise: `epsilon`, `public`, `rho`, `composed`."""
    folder = tmp_path_factory.mktemp("groups")
    rows = [f"{i // 3},{'ab'[i % 6 // 3]},{'ab'[i % 6 // 3]}{i // 6 % 2}" for i in range(60)]
    (folder / "people.csv").write_text("\n".join(["home,county,town", *rows]))
    (folder / "towns.csv").write_text("county,town\na,a0\na,a1\nb,b0\nb,b1\n")
    Ledger.create(folder / "people.csv.ledger", Measure.RHO, Relation.CHANGE_RECORD, 100)
    asked: dict[str, dict[str, Any]] = {
        "epsilon": {"epsilon": 1},
        "public": {"epsilon": 1, "total": "public"},
        "rho": {"rho": 0.1, "neighbours": "change-record"},
        "composed": {
            "epsilon": 1,
            "delta": 1e-6,
            "mechanism": "M_H^dp",
            "neighbours": "change-record",
        },
    }
    for name, options in asked.items():
        lv.groups(
            folder / "people.csv",
            unit="home",
            regions=["county", "town"],
            max_size=4,
            domain=str(folder / "towns.csv"),
            out=folder / name,
            **options,
        )
    return folder


@pytest.fixture(scope="module")
def town(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A TopDown release and its extension, both seeded: their loss is claimed all the same."""
    folder = tmp_path_factory.mktemp("town")
    first, larger = write_larger(folder)
    topdown(first, out=folder / "first", seed=3)
    extend(larger, out=folder / "larger", seed=4)
    gaussian = SPEC.replace("epsilon = 2", 'rho = "1/2"\ndelta = 1e-6')
    topdown(write_town(folder / "rho", gaussian), seed=1, out=folder / "gaussian")
    return folder


def failed(out: Path) -> set[str]:
    return {check.name for check in verify(out).checks if not check.passed} - {"private noise"}


def scaled(factor: Fraction) -> Change:
    """Every loss of a manifest, wherever it is stated, times a factor."""

    def change(m: dict[str, Any]) -> None:
        privacy, results = m["privacy"], m["results"]
        for one in (privacy, *privacy.get("levels", ()), *privacy.get("queries", ())):
            for key in {"amount", "budget", "loss"} & set(one):
                one[key] = str(Fraction(one[key]) * factor)
        for level in results["levels"]:
            for query in level.get("queries", ()):
                query["loss"] = str(Fraction(query["loss"]) * factor)
        measure = privacy["measure"]
        results[measure] = float(Fraction(privacy["amount"]))

    return change


def renamed(relation: str, meaning: str) -> Change:
    def change(m: dict[str, Any]) -> None:
        m["privacy"].update(neighbours=relation, meaning=meaning)
        m["results"]["neighbours"] = m["parameters"]["neighbours"] = relation

    return change


def privacy(**changes: Any) -> Change:
    return lambda m: m["privacy"].update(changes)


def quantity(largest: float, sensitivity: int) -> Change:
    """Another largest quantity of a record, and the sensitivities that follow from it."""

    def change(m: dict[str, Any]) -> None:
        m["parameters"]["max_quantity"] = largest
        for level in m["privacy"]["levels"]:
            level.update(sensitivity=sensitivity, squared_sensitivity=sensitivity)

    return change


def only_total(m: dict[str, Any]) -> None:
    """Claim the loss of one level alone."""
    m["privacy"]["amount"] = m["privacy"]["levels"][0]["loss"]
    m["results"]["epsilon"] = float(Fraction(m["privacy"]["amount"]))


def denied(m: dict[str, Any]) -> None:
    m["privacy"].update(invariants=[], not_protected=[])
    m["disclosures"] = []
    m["parameters"]["total"] = "noisy"


ADDED = ("add-remove-record", "one record is added or removed")
REPLACED = ("change-record", "one record is replaced by another, in the same unit or not")
UNIT = ("add-remove-unit", "one unit is added or removed with all its records")

GROUPS: dict[str, tuple[str, Change]] = {
    "a thousandth of epsilon": ("epsilon", scaled(Fraction(1, 1000))),
    "a thousandth of rho": ("rho", scaled(Fraction(1, 1000))),
    "twice the loss": ("epsilon", scaled(Fraction(2))),
    "records added renamed replaced": ("epsilon", renamed(*REPLACED)),
    "records replaced renamed added": ("rho", renamed(*ADDED)),
    "units instead of records": ("epsilon", renamed(*UNIT)),
    "another meaning": ("epsilon", privacy(meaning=REPLACED[1])),
    "neighbours in one place": ("epsilon", privacy(neighbours=REPLACED[0], meaning=REPLACED[1])),
    "the loss of one level": ("epsilon", only_total),
    "another epsilon in the results": ("epsilon", lambda m: m["results"].update(epsilon=0.001)),
    "a sensitivity of nothing": ("epsilon", lambda m: m["privacy"]["levels"][0].update(sensitivity=0)),
    "a level left out": ("epsilon", lambda m: m["privacy"]["levels"].pop()),
    "invariants denied": ("public", denied),
    "invariants not named": ("public", privacy(invariants=[])),
    "disclosures not named": ("public", lambda m: m.update(disclosures=[])),
    "nothing unprotected": ("public", privacy(not_protected=[])),
    "another total": ("public", lambda m: m["promises"][0].update(total=None)),
    "regions from the data": ("epsilon", lambda m: m["parameters"].update(domain_from_data=True)),
    "an epsilon that composing does not give": (
        "composed",
        lambda m: (m["privacy"].update(composed=["1/2", "1/1000000"]), m["results"].update(epsilon=0.5)),
    ),
    "a delta that composing does not give": (
        "composed",
        lambda m: (m["privacy"].update(composed=["1", "1/1000000000"]), m["results"].update(delta=1e-9)),
    ),
    "a delta for pure noise": (
        "epsilon",
        lambda m: (m["privacy"].update(composed=["1", "1/1000"]), m["results"].update(rho=1.0, delta=1e-3)),
    ),
    "a quantity below one": ("rho", lambda m: (scaled(Fraction(1, 1000))(m), quantity(0.5, 0)(m))),
    "a negative quantity": ("rho", lambda m: (scaled(Fraction(1, 1000))(m), quantity(-1, -2)(m))),
    "an amount of a million digits": ("epsilon", privacy(amount="1e-999999999")),
}


@pytest.mark.parametrize("name", ["epsilon", "public", "rho", "composed"])
def test_honest_group_sizes(groups: Path, name: str) -> None:
    assert verify(groups / name).passed


@pytest.mark.parametrize(("release", "change"), GROUPS.values(), ids=GROUPS.keys())
def test_a_forged_loss_of_group_sizes(groups: Path, tmp_path: Path, release: str, change: Change) -> None:
    out = shutil.copytree(groups / release, tmp_path / "out")
    edit(out, change)
    assert "privacy" in failed(out)


def measured_again(out: Path, file: str, change: Callable[[pa.Table], pa.Table]) -> None:
    """Change the measurements, batch by batch, and list them with their new hash."""
    path = out / file
    source = pq.ParquetFile(path)
    groups = [source.read_row_group(place) for place in range(source.num_row_groups)]
    with pq.ParquetWriter(path, groups[0].schema) as writer:
        for group in groups:
            writer.write_table(change(group))
    found = file_entry(path)
    edit(out, lambda m: m["files"].update({file: {"bytes": found.bytes, "sha256": found.sha256}}))


def with_more_noise(rows: pa.Table) -> pa.Table:
    place = rows.column_names.index("variance")
    return rows.set_column(place, "variance", pa.array([1e6] * rows.num_rows))


NOISE: dict[str, Callable[[pa.Table], pa.Table]] = {
    "more noise than was paid for": with_more_noise,
    "everything measured twice": lambda rows: pa.concat_tables([rows, rows]),
    "a variance that is none": lambda rows: rows.set_column(
        rows.column_names.index("variance"), "variance", pa.array([float("nan")] * rows.num_rows)
    ),
    "no noise": lambda rows: rows.set_column(
        rows.column_names.index("variance"), "variance", pa.array([0.0] * rows.num_rows)
    ),
    "a region left out": lambda rows: rows.slice(1) if rows.num_rows > 1 else rows,
    "numbers twice": lambda rows: rows.set_column(
        rows.column_names.index("values"), "values", pa.array([v * 2 for v in rows["values"].to_pylist()])
    ),
}


@pytest.mark.parametrize("change", NOISE.values(), ids=NOISE.keys())
def test_measurements_that_are_not_as_claimed(
    town: Path, tmp_path: Path, change: Callable[[pa.Table], pa.Table]
) -> None:
    out = shutil.copytree(town / "first", tmp_path / "out")
    measured_again(out, "measurements/topdown.parquet", change)
    assert {"privacy", "topdown"} & failed(out)


def test_a_variance_without_end(groups: Path, tmp_path: Path) -> None:
    out = shutil.copytree(groups / "rho", tmp_path / "out")
    measured_again(
        out,
        "measurements/groups.parquet",
        lambda rows: rows.set_column(
            rows.column_names.index("variance"), "variance", pa.array([math.inf] * rows.num_rows)
        ),
    )

    def tiny(m: dict[str, Any]) -> None:
        for level in m["privacy"]["levels"]:
            level["loss"] = str(Fraction(1, 10**320))
        m["privacy"]["amount"] = str(Fraction(len(m["privacy"]["levels"]), 10**320))
        m["results"]["rho"] = float(Fraction(m["privacy"]["amount"]))

    edit(out, tiny)
    assert "privacy" in failed(out)


def forget_first(m: dict[str, Any]) -> None:
    """Drop the promise about the first release, and what is said of it, while its files stay."""
    m["promises"] = [entry for entry in m["promises"] if entry["promise"] != "extension"]
    m["parameters"].pop("extends")
    m["privacy"].pop("first_release")


TOPDOWN: dict[str, tuple[str, Change]] = {
    "a thousandth of epsilon": ("first", scaled(Fraction(1, 1000))),
    "a thousandth of rho": ("gaussian", scaled(Fraction(1, 1000))),
    "records replaced renamed added": ("first", renamed(*ADDED)),
    "units": ("first", renamed(*UNIT)),
    "half the loss for records added, of whom invariants count everybody": (
        "first",
        lambda m: (scaled(Fraction(1, 2))(m), renamed(*ADDED)(m)),
    ),
    "invariants denied": ("first", privacy(invariants=[], not_protected=[])),
    "disclosures denied": ("first", lambda m: m.update(disclosures=[])),
    "nothing unprotected": ("first", privacy(not_protected=['nothing (invariant "ward total")'])),
    "no condition": ("first", privacy(conditional_on="")),
    "a query left out": ("first", lambda m: m["privacy"]["queries"].pop()),
    "a smaller budget": ("first", privacy(budget="1")),
    "an epsilon that rho does not give": ("gaussian", privacy(epsilon_at_delta=["1/2", "1/1000000"])),
    "a loss of a million digits in the results": (
        "first",
        lambda m: m["results"]["levels"][0]["queries"][0].update(loss="1e99999999"),
    ),
    "a first release that is not there": (
        "first",
        privacy(first_release={"measure": "epsilon", "amount": "1", "neighbours": "change-record"}),
    ),
    "a first release forgotten": ("larger", lambda m: m["privacy"].pop("first_release")),
    "a first release made cheaper": (
        "larger",
        lambda m: m["privacy"]["first_release"].update(amount="1/1000"),
    ),
    "a first release without its promise": ("larger", forget_first),
    "invariants of the first release denied": ("larger", privacy(invariants=[], not_protected=[])),
}


@pytest.mark.parametrize("name", ["first", "larger", "gaussian"])
def test_an_honest_town(town: Path, name: str) -> None:
    assert not failed(town / name)


@pytest.mark.parametrize(("release", "change"), TOPDOWN.values(), ids=TOPDOWN.keys())
def test_a_forged_loss_of_topdown(town: Path, tmp_path: Path, release: str, change: Change) -> None:
    out = shutil.copytree(town / release, tmp_path / "out")
    edit(out, change)
    assert "privacy" in failed(out)


def test_a_first_release_whose_own_loss_is_forged(town: Path, tmp_path: Path) -> None:
    """Its manifest is in the folder with everything bound to it again: the loss still does not follow from its noise."""
    out = shutil.copytree(town / "larger", tmp_path / "out")
    path = out / "first/manifest.json"
    first = json.loads(path.read_text())
    scaled(Fraction(1, 1000))(first)
    first["digest"] = digest(first)
    path.write_text(json.dumps(first))
    found = file_entry(path)

    def change(m: dict[str, Any]) -> None:
        m["files"]["first/manifest.json"] = {"bytes": found.bytes, "sha256": found.sha256}
        m["results"]["extends"] = first["digest"]
        m["privacy"]["first_release"]["amount"] = first["privacy"]["amount"]
        next(e for e in m["promises"] if e["promise"] == "extension")["first_digest"] = first["digest"]

    edit(out, change)
    assert failed(out) == {"privacy"}


def test_variances_are_those_of_the_distributions() -> None:
    """Sums over the masses themselves."""
    assert laplace_variance(1e-3) == 0.0  # too small for a float
    for scale in (0.05, 0.7, 10.0):
        mass = [math.exp(-abs(x) / scale) for x in range(-600, 601)]
        mean = sum(m * x * x for m, x in zip(mass, range(-600, 601), strict=True)) / sum(mass)
        assert laplace_variance(scale) == pytest.approx(mean)
    for sigma_squared in (0.1, 3.0, 70.0):
        mass = [math.exp(-x * x / (2 * sigma_squared)) for x in range(-200, 201)]
        mean = sum(m * x * x for m, x in zip(mass, range(-200, 201), strict=True)) / sum(mass)
        assert gaussian_variance(sigma_squared) == pytest.approx(mean)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
def test_delta_by_enumeration(epsilon: float) -> None:
    """Two counts of different noise that change by 1 and by 2: every outcome looked at."""
    noises, delta = [(0.8, 1), (5.0, 2)], 0.0
    laws = []
    for sigma_squared, shift in noises:
        mass = {x: math.exp(-x * x / (2 * sigma_squared)) for x in range(-60, 61)}
        total = sum(mass.values())
        laws.append(
            [(m / total, (shift * shift + 2 * shift * x) / (2 * sigma_squared)) for x, m in mass.items()]
        )
    for p, first in laws[0]:
        for q, second in laws[1]:
            delta += p * q * max(0.0, 1 - math.exp(epsilon - first - second))
    found = log_delta(epsilon, [Changed(sigma_squared, shift, 1) for sigma_squared, shift in noises])
    assert math.exp(found) == pytest.approx(delta, rel=1e-3)


def test_a_tiny_delta_is_computed() -> None:
    """Far below what a sum of probabilities in floats can hold: the logarithm of a Gaussian tail."""
    rho, epsilon = 0.01, 5.0
    found = log_delta(epsilon, [Changed(1 / (2 * rho), 1, 1)])
    deviation = math.sqrt(2 * rho)
    z = (epsilon - rho) / deviation
    assert found == pytest.approx(-z * z / 2, rel=0.05)


def test_more_levels_than_any_tree_of_regions_has(
    groups: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The check of a delta looks at every pair of levels."""
    monkeypatch.setattr("louver.release.promises.privacy.MOST_LEVELS", 1)
    found = {check.name: check.found for check in verify(groups / "rho").checks if not check.passed}
    assert found == {"privacy": "there are more than 1 levels of regions"}
