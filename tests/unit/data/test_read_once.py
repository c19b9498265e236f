"""A text file is parsed once: what is looked up before takes a sample, and later queries take what is held."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from louver.data import read, separated
from louver.data.coded import read_coded
from louver.data.read import Source, open_source
from louver.data.tabulate import read_codes, tabulate
from louver.data.units import count_units, find_unit_column
from louver.run import Run

IO = Path("/proc/self/io")
ROWS = 60_000
COLUMNS = ("household", "town", "sex", "number")


def n_read() -> int:
    """Bytes that this process has read."""
    return int(IO.read_text().split("rchar:")[1].split()[0])


@pytest.fixture(scope="module")
def people(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("once") / "people.csv"
    lines = (
        f"h{row // 2:08},a town of number {row % 7},{'fm'[row % 2]},{row % 997}\n" for row in range(ROWS)
    )
    path.write_text(",".join(COLUMNS) + "\n" + "".join(lines))
    return path


def read_twice(source: Source) -> None:
    source.read_all()
    read_codes(source, COLUMNS)


def search_units(source: Source) -> None:
    source.hold(COLUMNS)
    assert find_unit_column(source, [], Run()) is not None
    tabulate(source, ["town", "sex"])


@pytest.mark.skipif(not IO.exists(), reason="the system does not count bytes")
@pytest.mark.parametrize(
    "use",
    [
        lambda source: tabulate(source, ["town", "sex"], weight="number"),
        lambda source: read_coded(source, COLUMNS, Run()),
        lambda source: count_units(source, "household", ["town"], 9, is_split=True),
        search_units,
        read_twice,
    ],
    ids=["tabulate", "read_coded", "count_units", "search_units", "read_twice"],
)
def test_a_text_file_is_parsed_once(
    use: Callable[[Source], object], people: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(read, "SAMPLE_ROWS", 1000)
    monkeypatch.setattr(read, "SAMPLE_BUFFER", 1 << 16)
    monkeypatch.setattr(separated, "HEADER_CHARACTERS", 1 << 16)
    with open_source(people) as source:
        use(source)  # imports what it needs
    before = n_read()
    with open_source(people) as source:
        use(source)
    assert n_read() - before < 1.4 * people.stat().st_size


def test_the_number_of_rows_of_a_text_file_is_estimated(
    people: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_source(people) as source:
        assert source.estimate_rows() == ROWS  # all of them are in the sample
    monkeypatch.setattr(read, "SAMPLE_ROWS", 1000)
    with open_source(people) as source:
        assert 0.8 * ROWS < source.estimate_rows() < 1.2 * ROWS
        source.hold()
        assert source.estimate_rows() == ROWS
