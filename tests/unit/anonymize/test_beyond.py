"""What surrounds the classes: mapping, population, freeform, before and after, several releases together."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import louver as lv
from louver.anonymize.result import AnonymizedRelease
from louver.errors import InputError
from louver.release.manifest import read_manifest
from louver.report.anonymize import anonymize_report, inside_report
from releases import doubt

AGES = [31, 33, 34, 52, 55, 58, 60]
ILL = ["flu", "flu", "cold", "cold", "flu", "ulcer", "cold"]
TOWN = ["Ayr", "Ayr", "Bute", "Cairn", "Cairn", "Doon", "Doon"]


def people() -> pa.Table:
    return pa.table(
        {"age": AGES, "town": TOWN, "ill": ILL, "stands_for": [2.0, 3.0, 4.0, 1.0, 1.0, 1.0, 2.5]}
    )


def written(release: AnonymizedRelease, out: Path) -> Path:
    release.write(out, anonymize_report(release))
    return out


def test_the_mapping_says_what_published_values_stand_for(tmp_path: Path) -> None:
    tree = tmp_path / "town.csv"
    tree.write_text("Ayr;West;*\nBute;West;*\nCairn;East;*\nDoon;East;*\n")
    release = lv.anonymize(
        people(), quasi=["age", "town", "ill"], hierarchy={"town": tree}, k=3, method="exact"
    )
    lines = release.mapping.to_pylist()
    ages = [line for line in lines if line["attribute"] == "age"]
    assert [(a["published"], a["lower"], a["upper"], a["records"]) for a in ages] == [
        ("31-34", 31, 34, 3),
        ("52-60", 52, 60, 4),
    ]
    towns = {line["published"]: line for line in lines if line["attribute"] == "town"}
    assert towns["West"]["members"] == ["Ayr", "Bute"] and towns["West"]["sort"] == "node"
    ills = {line["published"]: line["members"] for line in lines if line["attribute"] == "ill"}
    assert ills == {"cold | flu": ["cold", "flu"], "cold | flu | ulcer": ["cold", "flu", "ulcer"]}


@pytest.mark.parametrize("format", ["labels", "bounds"])
def test_verify_checks_the_mapping(format: str, tmp_path: Path) -> None:
    table = pa.table({"age": pa.array([1, 2, 3, None, None, 5], pa.int64()), "size": list("aabbcc")})
    release = lv.anonymize(table, quasi=["age", "size"], ordered=["size"], k=2, method="exact", format=format)
    assert lv.verify(written(release, tmp_path / "release")).passed
    wrong = release.mapping.set_column(6, "records", pa.array([9] * release.mapping.num_rows))
    pq.write_table(wrong, tmp_path / "release/data/mapping.parquet")
    assert not doubt(tmp_path / "release", "mapping").passed


@pytest.mark.parametrize("method", ["freeform-greedy", "freeform-sort-greedy", "freeform-hungarian"])
def test_freeform_is_labelled_as_weaker_everywhere(method: str, tmp_path: Path) -> None:
    release = lv.anonymize(people(), quasi=["age", "town"], k=3, method=method, keep_order=True)
    assert "weaker than k-anonymity" in repr(release)
    assert release.guarantee == "freeform" and release.to_dict()["guarantee"] == "freeform"
    for page in (anonymize_report(release), inside_report(release)):
        assert "weaker than k-anonymity" in page
    out = written(release, tmp_path / "release")
    manifest = read_manifest(out)
    assert "weaker" in manifest.warnings[0]
    assert [p["promise"] for p in manifest.promises] == ["records", "mapping", "losses", "freeform"]
    assert lv.verify(out).passed
    # Every original fits k published records, counted from the printed intervals and sets.
    for age, town in zip(AGES, TOWN, strict=True):
        fits = 0
        for line in release.table.to_pylist():
            low, _, high = line["age"].partition("-")
            fits += int(low) <= age <= int(high or low) and town in line["town"].split(" | ")
        assert fits >= 3


def test_verify_refuses_freeform_records_that_meet_too_few(tmp_path: Path) -> None:
    release = lv.anonymize(people(), quasi=["age"], k=3, method="freeform-hungarian")
    out = written(release, tmp_path / "release")
    assert doubt(out, "freeform", k=3).passed
    assert not doubt(out, "freeform", k=7).passed


def test_freeform_takes_nothing_beside_k() -> None:
    with pytest.raises(InputError, match="freeform method takes no"):
        lv.anonymize(people(), quasi=["age"], k=3, method="freeform-greedy", sampling_weight="stands_for")
    with pytest.raises(InputError, match="freeform method takes no"):
        lv.anonymize(people(), quasi=["age"], k=3, method="freeform-greedy", sensitive=["ill"], l=2)


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
        lv.anonymize(people(), quasi=["town"], k=3, one_hot=["town"], schema=read_spec(schema).schema)


def test_normalised_weights_add_up_to_one() -> None:
    given = {"age": 3.0, "town": 1.0}
    plain = lv.anonymize(people(), quasi=["age", "town"], k=3, method="exact", weights=given)
    scaled = lv.anonymize(people(), quasi=["age", "town"], k=3, method="exact", weights=given, normalise=True)
    assert scaled.utility.information_loss == pytest.approx(plain.utility.information_loss / 4)
    assert scaled.utility.gcp == pytest.approx(plain.utility.gcp)


@pytest.mark.parametrize(
    "more", [{"carry": "subset", "boundary": 2}, {"carry": "bubble", "size": 6, "accepted": 1}, {"sets": 2}]
)
def test_split_and_carry_reports_its_subproblems(more: dict[str, object], tmp_path: Path) -> None:
    release = lv.anonymize(people(), quasi=["age"], k=2, method="split-carry", subproblem_seconds=5, **more)
    found = release.to_dict()["subproblems"]
    assert found["number"] == len(release.subproblem_sizes) >= 1 and found["largest"] <= 7
    assert lv.verify(written(release, tmp_path / "release")).passed


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"sets": 3}, "--sets needs --method split-carry"),
        ({"size": 6, "method": "split-carry"}, "--size needs --carry bubble"),
        ({"k_map": True}, "--k-map needs --population"),
        ({"population_count": "n"}, "--population-count needs --population"),
        ({"population": "a.csv", "sampling_weight": "stands_for"}, "both describe the population"),
        ({"sampling_weight": "age"}, "in --quasi; choose one"),
        ({"one_hot": ["town"]}, "not in --quasi"),
        ({"one_hot": ["age"], "ordered": ["age"]}, "choose one"),
    ],
)
def test_options_that_do_not_go_together(options: dict[str, object], says: str) -> None:
    with pytest.raises(InputError, match=says):
        lv.anonymize(people(), quasi=["age"], k=3, **options)


def test_before_and_after() -> None:
    """Ages 1 and 2 become 1-2: half of each. Town stays, so only the association is blurred."""
    table = pa.table({"age": [1, 1, 2, 2], "town": ["a", "a", "b", "b"]})
    release = lv.anonymize(table, quasi=["age", "town"], k=4, method="sorted")
    age, town = release.comparison.distributions
    assert age.bins == ("1", "2") and age.before == age.after == (0.5, 0.5) and age.distance == 0
    assert town.after == (0.5, 0.5)
    (line,) = release.comparison.associations
    assert (line.before, line.after) == (pytest.approx(1), pytest.approx(0))
    untouched = lv.anonymize(table, quasi=["age", "town"], k=2, method="exact").comparison
    assert untouched.associations[0].after == pytest.approx(1)


def test_distribution_of_missing_and_fractional_values() -> None:
    table = pa.table({"x": pa.array([0.5, 0.5, None, 2.5], pa.float64())})
    release = lv.anonymize(table, quasi=["x"], k=2, method="sorted")
    (line,) = release.comparison.distributions
    assert line.bins[-1] == "(missing)" and line.before[-1] == 0.25
    assert sum(line.after) == pytest.approx(1)
    assert line.after[0] == pytest.approx(0.5 + 0.5 / len(line.bins))


def test_a_distribution_that_moves() -> None:
    table = pa.table({"town": ["a"] * 3 + ["b"]})
    (line,) = lv.anonymize(table, quasi=["town"], k=4, method="sorted").comparison.distributions
    assert line.after == (0.5, 0.5) and line.distance == pytest.approx(0.25)


def test_the_curve_stays_inside(tmp_path: Path) -> None:
    release = lv.anonymize(people(), quasi=["age"], k=3, curve=[2, 3, 50], seconds=600)
    assert {(point.method, point.k) for point in release.curve} >= {("auto", 2), ("greedy", 3)}
    assert all(point.k != 50 for point in release.curve)
    by_method = [point.gcp for point in release.curve if point.method == "auto"]
    assert by_method == sorted(by_method)
    assert "Risk and utility" in inside_report(release)
    out = written(release, tmp_path / "release")
    published = (out / "manifest.json").read_text() + (out / "report.html").read_text()
    for inside in ("associations", "distributions", "curve", '"against"'):
        assert inside not in published
    assert json.loads(release.to_json())["curve"]


def candidates(records: pa.Table, tables: list[pa.Table]) -> list[int]:
    """For every record how many rows can be its own in all releases, from the printed values."""
    found = []
    for record in records.to_pylist():
        fitting = []
        for table in tables:
            rows: Counter[str] = Counter()
            for row in table.to_pylist():
                low, _, high = row["age"].partition("-")
                if int(low) <= record["age"] <= int(high or low) and record["town"] in row["town"].split(
                    " | "
                ):
                    rows[row["ill"]] += 1
            fitting.append(rows)
        found.append(sum(min(rows[ill] for rows in fitting) for ill in fitting[0]))
    return found


@settings(max_examples=25)
@given(
    lines=st.lists(
        st.tuples(st.integers(0, 9), st.sampled_from("abc"), st.sampled_from(["flu", "cold"])),
        min_size=4,
        max_size=10,
    ),
    weight=st.floats(0.01, 100),
)
def test_several_releases_together(
    lines: list[tuple[int, str, str]], weight: float, tmp_path_factory: pytest.TempPathFactory
) -> None:
    age, town, ill = zip(*lines, strict=True)
    table = pa.table({"age": age, "town": town, "ill": ill})
    out = tmp_path_factory.mktemp("releases") / "first"
    common = {"quasi": ["age", "town"], "sensitive": ["ill"], "k": 2, "method": "greedy"}
    first = lv.anonymize(table, **common)
    written(first, out)
    second = lv.anonymize(table, **common, weights={"age": weight}, against=[out])
    expected = np.array(candidates(table, [second.table, first.table]))
    together = second.intersection
    assert together is not None and together.releases == ("first",)
    assert together.fewest == expected.min() and together.records == len(lines) and together.absent == 0
    assert together.below_k == (expected < 2).sum() and together.single == (expected == 1).sum()


def test_what_becomes_certain(tmp_path: Path) -> None:
    """Two ways to pair four people by age: who is in the middle of both pairs is known."""
    table = pa.table({"age": [1, 2, 3, 4], "town": ["a", "b", "a", "b"], "ill": ["w", "x", "y", "z"]})
    first = lv.anonymize(table, quasi=["age"], identifying=["town"], k=2, method="exact")
    out = written(first, tmp_path / "by-age")
    second = lv.anonymize(
        table, quasi=["town"], identifying=["age"], sensitive=["ill"], k=2, method="exact", against=out
    )
    together = second.intersection
    assert together is not None
    assert (together.fewest, together.below_k, together.learnt) == (1, 4, (("ill", 4),))
    assert "becomes certain for 4" in repr(second) and "becomes certain" in inside_report(second)


def test_releases_with_bounds_and_missing_values_can_be_compared(tmp_path: Path) -> None:
    table = pa.table({"x": pa.array([1, 2, None, None, 7, 8], pa.int64()), "s": list("aabbcc")})
    common = {"quasi": ["x", "s"], "ordered": ["s"], "k": 2}
    first = lv.anonymize(table, **common, method="sorted", format="bounds", missing="match")
    out = written(first, tmp_path / "first")
    second = lv.anonymize(table, **common, method="exact", against=[out])
    assert second.intersection is not None and second.intersection.records == 6


def test_what_against_refuses(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no release directory"):
        lv.anonymize(people(), quasi=["age"], k=3, against=[tmp_path / "nowhere"])
    other = lv.anonymize(pa.table({"height": [1, 2, 3]}), quasi=["height"], k=3)
    out = written(other, tmp_path / "other")
    with pytest.raises(InputError, match='column "height", which the data do not have'):
        lv.anonymize(people(), quasi=["age"], k=3, against=[out])
    (out / "data/mapping.parquet").write_text("torn")
    with pytest.raises(InputError, match="not as it was released"):
        lv.anonymize(people(), quasi=["age"], k=3, against=[out])
    text = (out / "manifest.json").read_text().replace('"verb": "anonymize"', '"verb": "groups"')
    (out / "manifest.json").write_text(text)
    with pytest.raises(InputError, match="no release of louver anonymize"):
        lv.anonymize(people(), quasi=["age"], k=3, against=[out])


def published_bytes(out: Path) -> str:
    """Everything in a release that is text, without what names the moment."""
    manifest = json.loads((out / "manifest.json").read_text())
    for told in ("created", "seconds", "files", "digest"):
        manifest.pop(told)
    tables = [
        pq.read_table(out / "data" / name).to_pylist() for name in ("anonymized.parquet", "mapping.parquet")
    ]
    return json.dumps([manifest, tables], default=str) + (out / "report.html").read_text()


def test_a_release_says_nothing_of_the_values_of_records_left_out(tmp_path: Path) -> None:
    """Two sources that differ in the suppressed record alone give the same release."""
    told = []
    for number, outlier in enumerate([(104, "b", "rare"), (5_000, "zz", "secret")]):
        age, grade, ill = zip(*[(20 + i, "ac"[i % 2], "fc"[i % 2]) for i in range(5)], outlier, strict=True)
        table = pa.table({"age": age, "grade": grade, "ill": ill, "kind": pa.array(ill).dictionary_encode()})
        release = lv.anonymize(
            table, quasi=["age", "grade"], ordered=["grade"], sensitive=["ill"], l=1, k=5, suppress=0.2,
            method="exact", keep_order=True,
        )  # fmt: skip
        assert release.n_suppressed == 1
        out = written(release, tmp_path / str(number))
        assert lv.verify(out).passed
        told.append(published_bytes(out))
        assert outlier[2].encode() not in (out / "data/anonymized.parquet").read_bytes()
    assert told[0] == told[1]


def test_closeness_in_order_is_measured_on_published_values(tmp_path: Path) -> None:
    """The value that only the suppressed record has would count as a step of the order; so nothing is left out."""
    ill = ["1", "2", "4"] * 6 + ["3"]
    table = pa.table({"age": [30] * 18 + [99], "ill": ill})
    release = lv.anonymize(
        table, quasi=["age"], sensitive=["ill"], t=0.5, distance="ordered", k=3, suppress=0.1, method="greedy"
    )
    assert release.n_suppressed == 0
    assert lv.verify(written(release, tmp_path / "release")).passed


def test_losses_in_the_manifest_are_recomputed(tmp_path: Path) -> None:
    release = lv.anonymize(people(), quasi=["age", "town"], k=3, method="exact")
    out = written(release, tmp_path / "release")
    promise = next(p for p in read_manifest(out).promises if p["promise"] == "losses")
    assert doubt(out, "losses").passed
    assert dict(promise["by_column"])["age"] == pytest.approx((3 * 3 + 4 * 8) / 29 / 7)
    assert not doubt(out, "losses", by_column=[["age", 0.5], ["town", 0.5]]).passed


def test_class_numbers_do_not_follow_the_order_of_values() -> None:
    table = pa.table({"x": list(range(60))})
    seen = {
        tuple(
            lv.anonymize(table, quasi=["x"], k=3, method="sorted", class_id=True, keep_order=True)
            .table["class_id"]
            .to_pylist()
        )
        for _ in range(3)
    }
    assert len(seen) > 1 and all(sorted(set(ids)) == list(range(20)) for ids in seen)
    with pytest.raises(InputError, match="--class-id"):
        lv.anonymize(table, quasi=["x"], k=3, method="freeform-greedy", class_id=True)


def test_freeform_with_missing_values_that_match_anything_verifies(tmp_path: Path) -> None:
    table = pa.table({"x": pa.array([1, None, 9, 5, None, 2], pa.int64()), "y": [1, 2, 3, 4, 5, 6]})
    for number, method in enumerate(["freeform-greedy", "freeform-hungarian"]):
        release = lv.anonymize(table, quasi=["x", "y"], k=2, missing="match", method=method)
        assert lv.verify(written(release, tmp_path / str(number))).passed


def test_a_label_that_looks_like_a_set_is_refused() -> None:
    with pytest.raises(InputError, match="separates the labels") as caught:
        lv.anonymize(pa.table({"t": ["a", "b", "a | b"]}), quasi=["t"], k=2)
    assert caught.value.column == "t"


def together(
    tmp_path: Path, table: pa.Table, first: dict[str, object], second: dict[str, object], *more: Path
):
    out = tmp_path / f"first{len(list(tmp_path.iterdir()))}"
    written(lv.anonymize(table, **first), out)
    release = lv.anonymize(table, **second, against=[out, *more])
    assert release.intersection is not None
    return release.intersection, out


def test_a_column_that_one_release_generalises_and_another_publishes(tmp_path: Path) -> None:
    table = pa.table({"age": list(range(40)), "zip": [i % 4 for i in range(40)]})
    found, _ = together(
        tmp_path, table, {"quasi": ["zip"], "k": 5}, {"quasi": ["age"], "k": 5, "identifying": ["zip"]}
    )
    assert (found.fewest, found.single) == (1, 40)


def test_rows_in_the_same_order_are_linked(tmp_path: Path) -> None:
    table = pa.table({"a": [i // 5 for i in range(20)], "b": [i % 4 for i in range(20)]})
    common = {"k": 5, "keep_order": True, "method": "sorted"}
    found, _ = together(
        tmp_path,
        table,
        {"quasi": ["a"], "identifying": ["b"], **common},
        {"quasi": ["b"], "identifying": ["a"], **common},
    )
    assert found.below_k == 20


def test_one_release_more_never_raises_the_candidates(tmp_path: Path) -> None:
    table = pa.table(
        {"age": list(range(24)), "zip": [i * 7 % 24 for i in range(24)], "ill": [i % 6 for i in range(24)]}
    )
    by_age = {"quasi": ["age"], "identifying": ["zip"], "k": 4}
    by_zip = {"quasi": ["zip"], "identifying": ["age"], "k": 4}
    two, _ = together(tmp_path, table, by_age, by_zip)
    third = written(lv.anonymize(table, quasi=["age"], identifying=["zip", "ill"], k=4), tmp_path / "third")
    three, _ = together(tmp_path, table, by_age, by_zip, third)
    assert two.below_k == three.below_k > 0


def test_who_is_left_out_of_one_release_stands_out(tmp_path: Path) -> None:
    table = pa.table({"x": [1] * 6 + [9999]})
    found, _ = together(tmp_path, table, {"quasi": ["x"], "k": 3, "suppress": 0.2}, {"quasi": ["x"], "k": 3})
    assert found.absent == 1 and found.is_risky and "stand out" in str(found)


def test_padded_text_dates_and_missing_values_of_an_earlier_release_fit(tmp_path: Path) -> None:
    born = pa.array([0, 1, 2, 3, None, None], pa.timestamp("s"))
    table = pa.table({"born": born, "town": [" a", " a", "b ", "b ", None, None], "x": [1, 2, 3, 4, 5, 6]})
    first = {"quasi": ["born", "town"], "k": 2, "identifying": ["x"]}
    found, _ = together(tmp_path, table, first, {"quasi": ["x"], "k": 2, "identifying": ["born", "town"]})
    assert (found.records, found.absent) == (6, 0)
