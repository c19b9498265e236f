"""Populations, sampling weights, weights and one-hot columns."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import louver as lv
from louver.errors import InputError
from louver.report.anonymize import anonymize_report
from releases import doubt
from small_people import AGES, TOWN, people, written


def population(folder: Path, text: str) -> Path:
    (folder / "population.csv").write_text(text)
    return folder / "population.csv"


def test_journalist_risk_from_a_population(tmp_path: Path) -> None:
    """Classes 31-34 and 52-60: six people and two people of the population fit them."""
    file = population(tmp_path, "age,n\n30,9\n31,1\n33,5\n60,2\n61,50\n")
    release = lv.anonymize(
        people(), quasi=["age"], k=3, method="exact", population=file, population_count="n"
    )
    assert release.risk.journalist_highest == pytest.approx(1 / 2)
    assert release.risk.journalist_average == pytest.approx((3 / 6 + 4 / 2) / 7)
    assert release.guarantee == "k-anonymity" and release.smallest_class == 3
    assert "journalist risk" in anonymize_report(release)


def test_journalist_risk_from_sampling_weights() -> None:
    release = lv.anonymize(people(), quasi=["age"], k=3, method="exact", sampling_weight="stands_for")
    assert release.risk.journalist_highest == pytest.approx(1 / 5.5)


def test_k_map_counts_people(tmp_path: Path) -> None:
    """Alone each age matches two people or more, so with k-map nothing need be generalised."""
    lines = "".join(f"{age},{town}\n" * 2 for age, town in zip(AGES, TOWN, strict=True))
    file = population(tmp_path, f"age,town\n{lines}99,Elgin\n")
    plain = lv.anonymize(people(), quasi=["age", "town"], k=2, method="exact", population=file)
    mapped = lv.anonymize(people(), quasi=["age", "town"], k=2, method="exact", population=file, k_map=True)
    assert mapped.utility.information_loss == 0 < plain.utility.information_loss
    out = written(mapped, tmp_path / "release")
    assert lv.verify(out).passed
    assert pq.read_table(out / "data/classes.parquet")["people"].to_pylist() == [2] * 7
    assert doubt(out, "k-map").passed and not doubt(out, "k-map", k=3).passed


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("age,n\n31,-1\n", "row 1"),
        ("age,n\n31,1\n33,1.5\n", "row 2"),
        ("age,n\nold,1\n", 'column "age"'),
        ("years,n\n31,1\n", 'no column "age"'),
    ],
)
def test_bad_populations(text: str, says: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=says):
        lv.anonymize(
            people(), quasi=["age"], k=3, population=population(tmp_path, text), population_count="n"
        )


def test_sampling_weights_below_one_are_refused() -> None:
    table = people().set_column(3, "stands_for", pa.array([1.0, 2, 0.5, 1, 1, 1, 1]))
    with pytest.raises(InputError, match="row 3"):
        lv.anonymize(table, quasi=["age"], k=3, sampling_weight="stands_for")


def test_one_hot_counts_every_category() -> None:
    """One class of three towns: Definition 8 loses 2/3 of the column, section 2.5 all of it (K5)."""
    table = pa.table({"town": ["a", "b", "c"]})
    plain = lv.anonymize(table, quasi=["town"], k=3, method="sorted")
    hot = lv.anonymize(table, quasi=["town"], k=3, method="sorted", one_hot=["town"])
    assert plain.utility.gcp == pytest.approx(2 / 3) and hot.utility.gcp == pytest.approx(1)


def test_one_hot_is_for_categories_without_order(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="holds numbers"):
        lv.anonymize(people(), quasi=["age"], k=3, one_hot=["age"])
    schema = tmp_path / "spec.toml"
    schema.write_text('[attributes.town]\nkind = "ordered"\nlabels = ["Ayr", "Bute", "Cairn", "Doon"]\n')
    from louver.schema.spec import read_spec

    with pytest.raises(InputError, match="order or a hierarchy"):
        lv.anonymize(
            people(), quasi=["town"], keep=["age"], k=3, one_hot=["town"], schema=read_spec(schema).schema
        )


def test_normalised_weights_add_up_to_one() -> None:
    given = {"age": 3.0, "town": 1.0}
    plain = lv.anonymize(people(), quasi=["age", "town"], k=3, method="exact", weights=given)
    scaled = lv.anonymize(people(), quasi=["age", "town"], k=3, method="exact", weights=given, normalise=True)
    assert scaled.utility.information_loss == pytest.approx(plain.utility.information_loss / 4)
    assert scaled.utility.gcp == pytest.approx(plain.utility.gcp)


def test_a_label_that_looks_like_a_set_is_refused() -> None:
    with pytest.raises(InputError, match="separates the labels") as caught:
        lv.anonymize(pa.table({"t": ["a", "b", "a | b"]}), quasi=["t"], k=2)
    assert caught.value.column == "t"


@pytest.mark.parametrize(
    "lines",
    [
        "Ayr,Bute,*;Bute,Ayr,*;Cairn,Ayr,*;Doon,Ayr,*",
        "*,West,*;Ayr,West,*;Bute,West,*;Cairn,East,*;Doon,East,*",
    ],
)
def test_a_label_for_different_leaves_at_two_levels_is_refused(lines: str, tmp_path: Path) -> None:
    tree = tmp_path / "town.csv"
    tree.write_text(lines.replace(";", "\n"))
    with pytest.raises(
        InputError, match=r"town\.csv\) has a label that stands for different leaves at levels"
    ) as caught:
        lv.anonymize(people(), quasi=["town"], keep=["age"], hierarchy={"town": tree}, k=3)
    assert (caught.value.option, caught.value.column) == ("--hierarchy", "town")


def test_a_label_for_the_same_leaves_at_two_levels_is_fine(tmp_path: Path) -> None:
    tree = tmp_path / "town.csv"
    tree.write_text("Ayr,Ayr,*\nBute,Bute,*\nCairn,East,*\nDoon,East,*\n")
    assert (
        lv.anonymize(people(), quasi=["town"], keep=["age"], hierarchy={"town": tree}, k=3, steps=1).n_classes
        >= 1
    )
