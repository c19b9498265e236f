"""Tables and figures of Wright & Smucker, "Rapid Calculation of Exact Cell Bounds for Contingency Tables from
Conditional Frequencies" (2014).

Errata: B4 (the age and education classes behind Table 13; the embedded sample has them), B5 (the text of section
4.3 says 4 disclosed rows for the last line of Table 13, the table says 1 and is right).

Found while transcribing, and corrected below:
- Table 4, line r = 9, leaves out 17 = 8 + 9 and 18 = 9 + 9; neither is 19 less a multiple of 5.
- Table 9, last line, leaves out 27 = 21 + 6; row 5 has an even reduced sum.
- Section 4.3 names two disclosed cells with the sexes the wrong way round: the single young man is a woman, and the
  woman in the row of 2261 people a man. Counts, row total and all other labels agree.
- Section 4.2 says that tables B to J have no zero cell. G has one with the items of the 16-way table in the
  order of Erosheva et al. (2007); the sizes of J and O fix only item 14, so the paper may number the others differently.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
import pyarrow as pa
import pytest

import louver as lv
from louver.bounds.check import DisclosureRules, audit_table
from louver.bounds.check import compare as compare_arrangements
from louver.bounds.problem import Arrangement, arrange
from louver.optim.kernels.semigroups.apery import UNREACHABLE, add_unbounded_inplace
from louver.optim.kernels.semigroups.bitset import add_multiples_inplace, is_set
from louver.run import Run
from louver.schema.recode import Recode
from oracles.knapsack import (
    Viability,
    algorithm_3_1,
    algorithm_3_4,
    feasible_values_3_1,
    highs,
    viability_tables,
)
from wright_smucker import TABLE_10, histogram

# Table 1: two tables of sample size 48 with the same row conditionals; (c) = Table 2.
TABLE_1A = [[3, 4], [5, 3], [6, 9], [10, 8]]
TABLE_1B = [[9, 12], [5, 3], [4, 6], [5, 4]]
TABLE_2 = [["3/7", "4/7"], ["5/8", "3/8"], ["2/5", "3/5"], ["5/9", "4/9"]]
TABLE_2_SUMS = [7, 8, 5, 9]

# Tables 3 and 4: remainders accommodated by the row sums so far, target N - R = 19; 17 and 18 added (see above).
TABLE_3 = [
    (7, [0, 7, 14]),
    (8, [0, 7, 8, 14, 15, 16]),
    (5, [0, 5, 7, 8, 10, 12, 13, 14, 15, 16, 17, 18, 19]),
    (9, [0, 5, 7, 8, 9, 10, 12, 13, 14, 15, 16, 17, 18, 19]),
]
TABLE_4 = [(7, [0, 7, 14]), (8, [0, 7, 8, 14, 15, 16]), (9, [0, 7, 8, 9, 14, 15, 16, 17, 18])]

# Table 6: cell bounds for Table 2.
TABLE_6 = [[(3, 9), (4, 12)], [(5, 5), (3, 3)], [(4, 6), (6, 9)], [(5, 10), (4, 8)]]

# Table 8: observed counts (Poor, Modest, Excellent) by center, status, treatment; N = 193, N - R = 34.
TABLE_8 = [
    [3, 20, 5],
    [11, 14, 8],
    [3, 14, 12],
    [6, 13, 5],
    [12, 12, 0],
    [11, 10, 0],
    [3, 9, 4],
    [6, 9, 3],
]
TABLE_8_SUMS = [28, 33, 29, 24, 2, 21, 16, 6]

# Table 9: remainders for Table 8 without row 5; 27 added to the last line (see above).
TABLE_9 = [
    (28, [0, 28]),
    (33, [0, 28, 33]),
    (29, [0, 28, 29, 33]),
    (24, [0, 24, 28, 29, 33]),
    (21, [0, 21, 24, 28, 29, 33]),
    (16, [0, 16, 21, 24, 28, 29, 32, 33]),
    (6, [0, 6, 12, 16, 18, 21, 22, 24, 27, 28, 29, 30, 32, 33, 34]),
]
ROW_5_MULTIPLES = [0, 1, 2, 3, 5, 6, 8, 9, 11, 14, 17]
ROW_5_COUNTS = [1, 2, 3, 4, 6, 7, 9, 10, 12, 15, 18]

X3A = Recode("X3", merge={"no degree": ("<HS", "HS", "College"), "degree": ("Bachelor", "Bachelor+")})
X3B = Recode("X3", merge={"No college": ("<HS", "HS"), "college": ("College", "Bachelor", "Bachelor+")})
X1C = Recode("X1", merge={"up to 55": ("<25", "25-54"), "over 55": ("55+",)})
X7D = Recode("X7", merge={"40 or more": ("40", ">40")})


compare = partial(compare_arrangements, run=Run())


@dataclass(frozen=True, slots=True)
class Line13:
    """One line of Table 13: I x J, zero rows, rows with r_i = 1, disclosed nonzero rows, cells 0 and 0 < n < 5."""

    rows: str
    cols: str
    recodes: tuple[Recode, ...]
    numbers: tuple[int, int, int, int, int, int, int]

    @property
    def arrangement(self) -> Arrangement:
        return Arrangement(
            rows=tuple(f"X{i}" for i in self.rows),
            cols=tuple(f"X{i}" for i in self.cols),
            recodes=self.recodes,
        )


TABLE_13 = (
    Line13("1234567", "8", (), (1440, 2, 302, 581, 0, 1185, 0)),
    Line13("123456", "78", (), (480, 6, 52, 36, 30, 1185, 17)),
    Line13("23456", "78", (), (160, 6, 1, 1, 13, 149, 3)),
    Line13("13456", "78", (), (120, 6, 1, 3, 4, 133, 1)),
    Line13("12456", "78", (), (96, 6, 2, 1, 20, 112, 8)),
    Line13("12356", "78", (), (240, 6, 11, 7, 38, 413, 22)),
    Line13("12346", "78", (), (240, 6, 11, 8, 17, 382, 12)),
    Line13("12345", "78", (), (240, 6, 14, 12, 18, 432, 10)),
    Line13("123456", "78", (X3A,), (192, 6, 11, 6, 89, 327, 79)),
    Line13("123456", "78", (X3B,), (192, 6, 7, 7, 5, 324, 1)),
    Line13("123456", "78", (X1C, X3A), (128, 6, 2, 3, 92, 126, 100)),
    Line13("123456", "78", (X1C, X3B), (128, 6, 1, 3, 44, 133, 25)),
    Line13("123456", "78", (X7D,), (480, 4, 52, 39, 1, 695, 0)),
)


def records(counts, value_name="count"):
    """A long table with one line per cell of a two-way table; columns row and col."""
    cells = [(f"{i:02}", f"{j:02}", value) for i, row in enumerate(counts) for j, value in enumerate(row)]
    rows, cols, values = zip(*cells, strict=True)
    return pa.table({"row": rows, "col": cols, value_name: values})


def grid(audit, n_cols):
    """(lower, upper) of all cells, row by row."""
    ends = [(cell.lower, cell.upper) for cell in audit.cells()]
    return [ends[i : i + n_cols] for i in range(0, len(ends), n_cols)]


def expanded(runs):
    return [x for start, stop, step in runs for x in range(start, stop + 1, step)]


def remainders_by_apery(sums, target):
    apery = np.full(sums[0], UNREACHABLE, dtype=np.int64)
    apery[0] = 0
    for value in sums[1:]:
        add_unbounded_inplace(apery, value)
    return [c for c in range(target + 1) if c >= apery[c % sums[0]]]


def remainders_by_bits(sums, target):
    words = np.zeros(target // 64 + 1, dtype=np.uint64)
    words[0] = 1
    for value in sums:
        add_multiples_inplace(words, value, target // value)
    return [c for c in range(target + 1) if is_set(words, c)]


def remainders_by_algorithm_3_1(sums, target):
    """The viability table before a further row, which is then the one to be optimised."""
    ((_, viability),) = viability_tables([*sums, 1], target, None, np.arange(len(sums) + 1) == len(sums))
    assert isinstance(viability, Viability)
    return viability.remainders()


@pytest.mark.parametrize("remainders", [remainders_by_apery, remainders_by_bits, remainders_by_algorithm_3_1])
@pytest.mark.parametrize(("lines", "target"), [(TABLE_3, 19), (TABLE_4, 19), (TABLE_9, 34)])
def test_remainders_of_tables_3_4_and_9(lines, target, remainders):
    sums = [value for value, _ in lines]
    for n_rows, (_, expected) in enumerate(lines, start=1):
        assert remainders(sums[:n_rows], target) == expected


@pytest.mark.parametrize(
    ("n_rows", "order"), [(4, [4, 3, 2, 1]), (8, [8, 7, 6, 5, 4, 3, 2, 1])], ids=["Table 5", "Table 7"]
)
def test_rows_are_optimised_in_the_order_of_tables_5_and_7(n_rows, order):
    visited = viability_tables(range(1, n_rows + 1), 50, None, np.ones(n_rows, dtype=bool))
    assert [row + 1 for row, _ in visited] == order


@pytest.mark.parametrize("counts", [TABLE_1A, TABLE_1B], ids=["1a", "1b"])
def test_both_tables_1_give_the_bounds_of_table_6(counts):
    audit = lv.bounds(records(counts), rows=["row"], cols=["col"], weight="count")
    assert (audit.summary.n, audit.summary.reduced_total) == (48, 29)
    assert grid(audit, 2) == TABLE_6


def test_table_2_as_fractions_gives_the_bounds_of_table_6():
    audit = lv.bounds(records(TABLE_2, "p"), rows=["row"], cols=["col"], weight="p", conditionals=True, n=48)
    assert audit.table.reduced().sum(axis=1).tolist() == TABLE_2_SUMS
    assert grid(audit, 2) == TABLE_6
    assert audit.summary.disclosed_rows == 1


def test_tables_1_are_the_only_two_tables_behind_table_2():
    audit = lv.bounds(records(TABLE_1A), rows=["row"], cols=["col"], weight="count")
    values = [expanded(cell.values) for cell in audit.cells()]
    pairs = zip(np.ravel(TABLE_1A).tolist(), np.ravel(TABLE_1B).tolist(), strict=True)
    assert values == [sorted({a, b}) for a, b in pairs]


@pytest.mark.parametrize("peer", [algorithm_3_4, highs])
def test_peers_agree_on_table_2(peer):
    expected = [(0, 2), (0, 0), (1, 2), (0, 1)]
    assert [peer(TABLE_2_SUMS, 19, row) for row in range(4)] == expected
    least, greatest = algorithm_3_1(TABLE_2_SUMS, 19)
    assert list(zip(least, greatest, strict=True)) == expected
    assert feasible_values_3_1(TABLE_2_SUMS, 19) == [[0, 2], [0], [1, 2], [0, 1]]


def test_gaps_of_row_5_of_table_8():
    audit = lv.bounds(records(TABLE_8), rows=["row"], cols=["col"], weight="count")
    assert (audit.summary.n, audit.summary.n - audit.summary.reduced_total) == (193, 34)
    assert audit.table.reduced().sum(axis=1).tolist() == TABLE_8_SUMS
    poor, modest, excellent = list(audit.cells())[12:15]
    for cell in (poor, modest):
        assert (cell.lower, cell.upper) == (1, 18)
        assert expanded(cell.values) == ROW_5_COUNTS
    assert (excellent.lower, excellent.upper, excellent.values) == (0, 0, [(0, 0, 1)])
    assert feasible_values_3_1(TABLE_8_SUMS, 34)[4] == ROW_5_MULTIPLES


@pytest.mark.parametrize("line", TABLE_10, ids=lambda line: line.name)
def test_sizes_of_table_11(line):
    table = line.table()
    assert (table.n_rows, len(table.counts), table.n_cols, table.n) == line.sizes


@pytest.mark.parametrize("line", TABLE_10, ids=lambda line: line.name)
def test_zero_cells_of_table_10(line):
    table = line.table()
    if line.name in "LMNO":
        assert (table.counts == 0).any()
        assert (table.reduced().sum(axis=1) == 1).any()
    else:
        assert (table.counts == 0).sum() == (line.name == "G")


@pytest.mark.parametrize("line", TABLE_10, ids=lambda line: line.name)
def test_algorithm_3_1_agrees_on_the_tables_of_table_10(line):
    table = line.table()
    audit = audit_table(table, line.arrangement, DisclosureRules())
    reduced = table.reduced()
    sums = reduced.sum(axis=1)
    least, greatest = algorithm_3_1(sums, table.n - int(sums.sum()))
    assert np.array_equal(audit.solution.lower, reduced * (least[:, None] + 1))
    assert np.array_equal(audit.solution.upper, reduced * (greatest[:, None] + 1))


@pytest.mark.parametrize("line", TABLE_13, ids=lambda line: line.arrangement.label)
def test_lines_of_table_13(line):
    table = arrange(histogram("8-way"), line.arrangement)
    s = audit_table(table, line.arrangement, DisclosureRules(small=5)).summary
    assert s.n == 48842
    assert line.numbers == (
        s.rows,
        s.cols,
        s.zero_rows,
        s.unit_rows,
        s.disclosed_rows,
        s.disclosed_zero_cells,
        s.disclosed_small_cells,
    )


def test_table_13_in_one_run_sorted_by_risk():
    comparison = compare(histogram("8-way"), [line.arrangement for line in TABLE_13], DisclosureRules())
    small_cells = [summary.disclosed_small_cells for _, summary in comparison.lines]
    assert small_cells == sorted(line.numbers[-1] for line in TABLE_13)
    # Two lines disclose no small cell. The first line of the table discloses no row either, but more of its rows reveal a status.
    assert [a.label for a, _ in comparison.lines[:2]] == [
        TABLE_13[12].arrangement.label,
        TABLE_13[0].arrangement.label,
    ]
    assert [s.unit_rows for _, s in comparison.lines] == [s.certain_rows for _, s in comparison.lines]


def disclosed(line):
    table = arrange(histogram("8-way"), line.arrangement)
    return table, audit_table(table, line.arrangement, DisclosureRules())


def test_second_line_discloses_eleven_single_people():
    table, audit = disclosed(TABLE_13[1])
    cells = list(audit.disclosed_cells())
    assert sum(cell.lower == 1 for cell in cells) == 11
    young_woman = {
        "X1": "<25",
        "X2": "Private",
        "X3": "College",
        "X4": "Unmarried",
        "X5": "White",
        "X6": "Female",
    }
    found = [cell for cell in cells if cell.row == young_woman and cell.col == {"X7": "<40", "X8": "50+"}]
    assert [cell.lower for cell in found] == [1]
    determined = (audit.solution.lower == audit.solution.upper).all(axis=1)
    assert int((table.counts[determined] > 0).sum()) == 167


def test_tenth_line_discloses_one_person_in_a_row_of_2261():
    table, audit = disclosed(TABLE_13[9])
    (cell,) = audit.disclosed_cells()
    assert cell.lower == 1
    assert cell.row == {
        "X1": "25-54",
        "X2": "Private",
        "X3": "No college",
        "X4": "Unmarried",
        "X5": "White",
        "X6": "Male",
    }
    assert cell.col == {"X7": "<40", "X8": "50+"}
    position = next(i for i, index in enumerate(table.row_index) if table.row_labels(int(index)) == cell.row)
    assert int(table.counts[position].sum()) == 2261


def test_last_line_discloses_one_row_with_four_nonzero_cells():
    table, audit = disclosed(TABLE_13[12])
    determined = (audit.solution.lower == audit.solution.upper).all(axis=1)
    assert (int(determined.sum()), int((table.counts[determined] > 0).sum())) == (1, 4)
