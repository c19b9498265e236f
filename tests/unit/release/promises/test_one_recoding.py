"""One recoding for the whole file: kept by what the verb makes, and a forged mapping is found."""

from __future__ import annotations

import shutil

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import louver as lv
from louver.release.manifest import Manifest, read_manifest
from louver.release.promises.requested import weaknesses
from releases import doubt

PEOPLE = pa.table(
    {
        "age": [20, 21, 25, 29, 30, 38, 40, None, None, 41],
        "sex": list("MFMFMFMFMF"),
        "ill": list("abcdeabcde"),
    }
)


@pytest.fixture(scope="module")
def out(tmp_path_factory):
    folder = tmp_path_factory.mktemp("recoding") / "release"
    lv.anonymize(PEOPLE, quasi=["age", "sex"], k=2, steps=1, recoding="global", keep=["ill"], out=folder)
    return folder


def test_the_release_keeps_it(out):
    assert lv.verify(out).passed
    assert doubt(out, "one-recoding").passed
    assert not doubt(out, "one-recoding", columns=["age"]).passed


FORGED = {
    "intervals that overlap": [("20-30", 20.0, 30.0, None), ("25-41", 25.0, 41.0, None)],
    "intervals that touch": [("20-30", 20.0, 30.0, None), ("30-41", 30.0, 41.0, None)],
    "an interval that ends before it starts": [("30-20", 30.0, 20.0, None)],
    "a label in two sets": [("a", None, None, ["a"]), ("a | b", None, None, ["a", "b"])],
    "anything beside others": [("*", None, None, "anything"), ("20", 20.0, 20.0, None)],
}


@pytest.mark.parametrize("lines", FORGED.values(), ids=FORGED)
def test_two_published_values_for_one_value_are_found(lines, out, tmp_path):
    folder = tmp_path / "forged"
    folder.mkdir()
    for path in out.rglob("*"):
        target = folder / path.relative_to(out)
        target.mkdir() if path.is_dir() else target.write_bytes(path.read_bytes())
    schema = pq.read_schema(folder / "data/mapping.parquet")
    forged = [
        {
            "attribute": "age",
            "published": label,
            "sort": "anything" if members == "anything" else "interval" if members is None else "set",
            "lower": lower,
            "upper": upper,
            "members": None if members == "anything" else members,
            "records": 2,
        }
        for label, lower, upper, members in lines
    ]
    pq.write_table(pa.Table.from_pylist(forged, schema), folder / "data/mapping.parquet")
    check = doubt(folder, "one-recoding", columns=["age"])
    assert not check.passed and '"age"' in check.found


@pytest.mark.parametrize(
    ("recoding", "promised"), [("global", None), ("global", ["sex"]), ("local", ["age"])]
)
def test_it_is_promised_where_it_is_asked_for(recoding, promised):
    entry = {"promise": "one-recoding", "mapping": "data/mapping.parquet", "columns": promised}
    manifest = Manifest(
        verb="anonymize",
        method="global",
        parameters={"quasi": ["age"], "k": 2, "recoding": recoding},
        promises=[] if promised is None else [entry],
    )
    assert '"one-recoding" is not promised as requested' in list(weaknesses(manifest))


def people(n=300):
    random = np.random.default_rng(1)
    return pa.table(
        {
            "age": np.floor(random.gamma(4.0, 9.0, n)),
            "job": random.choice(["smith", "baker", "cook", "clerk"], n, p=[0.5, 0.3, 0.17, 0.03]),
            "town": random.choice(["a1", "a2", "b1", "b2"], n),
            "ill": random.choice(["flu", "cold"], n),
        }
    )


@pytest.fixture(scope="module", params=["labels", "bounds"])
def excepted(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("exceptions")
    (folder / "town.csv").write_text("a1;a;*\na2;a;*\nb1;b;*\nb2;b;*\n")
    options = {"quasi": ["age", "job", "town"], "k": 4, "keep": ["ill"], "recoding": "global", "steps": 2}
    options |= {"hierarchy": {"town": folder / "town.csv"}, "format": request.param}
    plain = lv.anonymize(people(), **options)
    release = lv.anonymize(people(), **options, exceptions=0.1, out=folder / "release")
    assert 0 < release.n_exceptions <= 30 and release.utility.gcp < plain.utility.gcp
    assert "records are exceptions to the recoding" in repr(release)
    return folder / "release"


def test_a_release_with_exceptions_keeps_what_it_promises(excepted):
    assert lv.verify(excepted).passed, str(lv.verify(excepted))
    check = doubt(excepted, "one-recoding")
    assert check.passed and "others than those of the recoding" in check.found
    n = int(check.found.split(", ")[-1].split()[0])
    assert not doubt(excepted, "one-recoding", exceptions=n - 1).passed
    assert not doubt(excepted, "one-recoding", exceptions=None).passed


def test_values_of_exceptions_called_common_are_found(excepted, tmp_path):
    folder = tmp_path / "forged"
    shutil.copytree(excepted, folder)
    mapping = pq.read_table(folder / "data/mapping.parquet")
    every = pa.array([True] * mapping.num_rows)
    place = mapping.column_names.index("common")
    pq.write_table(mapping.set_column(place, "common", every), folder / "data/mapping.parquet")
    assert not doubt(folder, "one-recoding").passed
    pq.write_table(mapping.drop_columns("common"), folder / "data/mapping.parquet")
    assert not doubt(folder, "one-recoding").passed


def test_more_exceptions_than_requested_are_a_weakness(excepted):
    manifest = read_manifest(excepted)
    assert not list(weaknesses(manifest))
    manifest.parameters["exceptions"] = 0.001
    assert '"one-recoding" has more exceptions than requested' in list(weaknesses(manifest))
