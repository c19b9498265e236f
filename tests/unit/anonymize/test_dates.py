"""Dates are generalised along the calendar, whatever form they have, and codes keep their zeros."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pyreadstat
import pytest

import louver as lv
from louver.errors import InputError

DAYS = [datetime.date(1950 + i % 37, 1 + i % 12, 1 + (7 * i) % 28) for i in range(60)]
ASKED: dict[str, Any] = {"quasi": ["born"], "k": 5, "method": "sorted", "keep_order": True}
FORMS = {
    "iso": "%Y-%m-%d",
    "timestamp": "%Y-%m-%d 08:30:00",
    "slashes, year first": "%Y/%m/%d",
    "points": "%d.%m.%Y",
    "english": "%d/%m/%Y",
    "american": "%m/%d/%Y",
    "digits": "%Y%m%d",
    "named": "%d%b%Y",
}


def is_above(label: str, day: datetime.date) -> bool:
    """Whether a published label covers a day, read as people read it."""
    if label == "*" or label == day.isoformat():
        return True
    if "Q" in label:
        year, quarter = label.split("-Q")
        return int(year) == day.year and int(quarter) == 1 + (day.month - 1) // 3
    parts = [int(part) for part in label.split("-")]
    if len(parts) == 2 and parts[1] > 12:
        return parts[0] <= day.year <= parts[1]
    return parts == [day.year, day.month][: len(parts)]


def written(release: Any, out: Path) -> Path:
    release.write(out)
    return out


@pytest.mark.parametrize("form", FORMS)
def test_every_form_is_generalised_along_the_calendar(form: str, tmp_path: Path) -> None:
    path = tmp_path / "people.csv"
    path.write_text("born\n" + "\n".join(day.strftime(FORMS[form]) for day in DAYS) + "\n")
    release = lv.anonymize(path, **ASKED)
    labels = release.table["born"].to_pylist()
    assert all(map(is_above, labels, DAYS))
    assert not any("|" in label or "[" in label for label in labels)
    assert release.dictionary.to_pylist()[0]["kind"] == "date"
    assert lv.verify(written(release, tmp_path / "release")).passed


def test_typed_and_foreign_dates_are_dates_too(tmp_path: Path) -> None:
    frame = pd.DataFrame({"born": DAYS})
    frame.to_excel(tmp_path / "p.xlsx", index=False)
    pyreadstat.write_dta(frame, tmp_path / "p.dta")
    pyreadstat.write_sav(frame, tmp_path / "p.sav")
    pq.write_table(pa.table({"born": pa.array(DAYS, pa.date32())}), tmp_path / "p.parquet")
    found = [
        lv.anonymize(tmp_path / f"p.{end}", **ASKED).table["born"].to_pylist()
        for end in ("xlsx", "dta", "sav", "parquet")
    ]
    assert all(is_above(label, day) for labels in found for label, day in zip(labels, DAYS, strict=True))
    assert found[0] == found[1] == found[2] == found[3]


def test_the_mapping_lists_the_calendar_and_not_the_birthdays(tmp_path: Path) -> None:
    release = lv.anonymize(pa.table({"born": [day.isoformat() for day in DAYS]}), **ASKED)
    for line in release.mapping.to_pylist():
        first, last = (datetime.date.fromisoformat(line["members"][place]) for place in (0, -1))
        assert len(line["members"]) == (last - first).days + 1
        assert is_above(line["published"], first) and is_above(line["published"], last)


def test_missing_dates_intervals_populations_and_parts(tmp_path: Path) -> None:
    days = [day.isoformat() for day in DAYS]
    holes = pa.table({"born": [*days, *[None] * 5]})
    release = lv.anonymize(holes, **ASKED)
    assert set(release.table["born"].to_pylist()[-5:]) <= {"(missing)", "*"}
    ordered = lv.anonymize(pa.table({"born": days}), ordered=["born"], **ASKED)
    assert ordered.table["born"][0].as_py().startswith("[19")
    everybody = pa.table({"born": [*days, "1871-02-03"]})
    k_map = lv.anonymize(pa.table({"born": days}), population=everybody, k_map=True, **ASKED)
    assert all(map(is_above, k_map.table["born"].to_pylist(), DAYS))
    path = tmp_path / "people.csv"
    path.write_text("born\n" + "\n".join(days) + "\n")
    lv.anonymize(path, **ASKED, parts=2, out=tmp_path / "out")
    assert lv.verify(tmp_path / "out").passed


def test_dates_are_read_by_a_spec_and_counted_by_year(tmp_path: Path) -> None:
    table = pa.table({"born": [day.strftime("%d.%m.%Y") for day in DAYS], "sex": ["f", "m"] * 30})
    spec = {"attributes": {"born": {"kind": "date", "level": 4}}}
    found = lv.bounds(table, spec=spec, rows=["sex"], cols=["born"])
    assert [
        label for label in ("1950-1959", "1960-1969", "1970-1979", "1980-1989") if label in found.to_json()
    ]


BAD: dict[str, tuple[list[str], dict[str, Any], str]] = {
    "two readings": (
        ["03/04/1990", "05/06/1991"],
        {},
        "day and month cannot be distinguished.*--date-order",
    ),
    "short years": (["03.04.90", "05.06.91"], {}, "two-digit years"),
    "no day": (["1990-02-28", "1990-02-31"], {}, "value on row 2 that is not a date"),
    "far away": (["1990-02-28", "9999-12-31"], {}, "300 years apart or more; declare.*--missing-code"),
}


@pytest.mark.parametrize("case", BAD)
def test_what_is_no_date_is_refused(case: str) -> None:
    values, more, says = BAD[case]
    with pytest.raises(InputError, match=says) as caught:
        lv.anonymize(pa.table({"born": values * 10}), **ASKED, **more)
    assert caught.value.column == "born" and values[1] not in str(caught.value)


def test_somebody_says_the_order_or_what_is_missing() -> None:
    values = ["03/04/1990", "05/06/1991"] * 5
    table = pa.table({"born": values})
    assert lv.anonymize(table, **ASKED, date_order="dmy").table["born"].to_pylist()[0] == "1990-04-03"
    assert lv.anonymize(table, **ASKED, date_order="mdy").table["born"].to_pylist()[0] == "1990-03-04"
    coded = pa.table({"born": ["1990-02-28", "9999-12-31"] * 5})
    release = lv.anonymize(coded, **ASKED, missing_code={"born": ["9999-12-31"]})
    assert set(release.table["born"].to_pylist()) == {"1990-02-28", "(missing)"}


def test_words_and_mixed_columns_are_no_dates() -> None:
    table = pa.table({"born": ["1990-02-28", "spring", "1.2.1990"] * 10})
    assert "spring" in lv.anonymize(table, **ASKED).table["born"].to_pylist()


def test_codes_keep_their_zeros(tmp_path: Path) -> None:
    path = tmp_path / "people.csv"
    path.write_text("zip\n" + "\n".join(["01206", "01207", "01206", "01209", "11210"] * 4) + "\n")
    release = lv.anonymize(path, quasi=["zip"], k=6, method="sorted")
    labels = {part for label in release.table["zip"].to_pylist() for part in label.split(" | ")}
    assert labels <= {"01206", "01207", "01209", "11210"}
    assert release.dictionary.to_pylist()[0]["kind"] == "category"
    assert lv.verify(written(release, tmp_path / "release")).passed
