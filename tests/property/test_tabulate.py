"""Tabulating awkward text against a plain count of the rows that were written."""

from __future__ import annotations

import csv
import gzip
import io

from hypothesis import given
from hypothesis import strategies as st

from few_or_many import few_or_many
from louver.data.read import open_source
from louver.data.tabulate import read_codes, tabulate
from oracles import tables

values = st.text(
    st.characters(codec="utf-8", exclude_categories=["Cs", "Cc"]) | st.sampled_from(";,\n\"' \t"),
    min_size=1,
    max_size=6,
)
rows = st.lists(st.tuples(values | st.sampled_from(["01", "1", "é"]), values), min_size=1, max_size=20)


def written(listed, separator):
    text = io.StringIO()
    csv.writer(text, delimiter=separator, lineterminator="\n").writerows([("a", "b"), *listed])
    return text.getvalue().encode()


@few_or_many(8, 40, given(rows, st.sampled_from(",;\t")))
def test_any_text_is_counted_as_it_stands(tmp_path_factory, listed, separator):
    path = tmp_path_factory.mktemp("records") / "records.csv.gz"
    path.write_bytes(gzip.compress(written(listed, separator)))
    with open_source(path) as source:
        histogram = tabulate(source, ["b", "a"])
        records = read_codes(source, ["a", "b"])
    assert tables.table_of(histogram) == tables.count([((b, a), 1) for a, b in listed])
    read = [
        tuple(attribute.labels[code] for attribute, code in zip(records.attributes, row, strict=True))
        for row in records.codes
    ]
    assert read == listed
