"""Cell keys: noise as the table says, the same for the same cell, and what averaging finds out."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import combinations, product
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

import louver as lv
from louver.errors import InputError
from louver.protect.cellkey import KeyedTable, average
from louver.protect.cells import ColumnCodes, axis_of
from louver.protect.hierarchy import Tree
from louver.protect.keybounds import bounds_of
from louver.protect.noise_table import KEY_VALUES, NoiseTable, build_noise_table, check_safe, read_noise_table
from louver.protect.options import TableOptions
from louver.release.register import Register
from louver.report.protect import protect_report

FEW = [{"rule": "frequency", "minimum": 3}]
BELOW_2 = [{"rule": "frequency", "minimum": 2}]


def people(n: int = 300, seed: int = 1) -> pa.Table:
    """People whose columns are hashes of their numbers: made without a generator."""
    rows = np.arange(n, dtype=np.uint64) * np.uint64(2654435761 + seed) % np.uint64(1 << 32)
    return pa.table(
        {
            "id": [f"p{k}" for k in range(n)],
            "town": [("north", "south", "west")[k] for k in (rows >> 5) % 3],
            "job": [("farm", "shop", "mine", "bank")[k] for k in (rows >> 9) % 4],
            "ill": [("no", "no", "no", "yes")[k] for k in (rows >> 13) % 4],
        }
    )


def protect(folder: Path, out: str | None = None, **more: Any) -> Any:
    given: dict[str, Any] = {
        "tables": [{"name": "t", "by": ["town", "job"]}, {"name": "u", "by": ["job", "ill"]}],
        "rules": FEW,
        "method": "cellkey",
        "registry": folder / "register",
        "person": "id",
    }
    data = more.pop("data", people())
    return lv.protect(data, **{**given, **more}, out=None if out is None else folder / out)


def shown(release: Path, file: str = "01-t") -> dict[tuple[str, ...], int]:
    rows = pq.read_table(release / f"data/{file}.parquet").to_pylist()
    return {tuple(list(row.values())[:-1]): row["count"] for row in rows}


# The perturbation table ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("variance", "most"), [(2.0, 5), (0.3, 2), (6.5, 9)])
def test_a_built_table_has_the_distribution_it_says(variance: float, most: int) -> None:
    """Every value of the key, enumerated: mean exactly 0, variance and bound as asked, counts never below 0, largest entropy."""
    table = build_noise_table(variance, most)
    every = np.arange(KEY_VALUES, dtype=np.int64)
    for count in (1, most, most + 7):
        noise = table.noise(np.full(KEY_VALUES, count), every)
        values, sizes = np.unique(noise, return_counts=True)
        assert dict(zip(values.tolist(), sizes.tolist(), strict=True)) == dict(
            sorted(table.row_of(count).items())
        )
        assert int(noise.sum()) == 0 and int(noise.min()) >= -min(count, most) and int(noise.max()) <= most
        assert float((noise**2).mean()) == pytest.approx(variance, abs=1e-4)
    for row in table.rows:
        # Of largest entropy: the logarithm is a quadratic function of the noise.
        weights = np.log([row[d] for d in sorted(row) if row[d] > 1_000])
        assert np.abs(np.diff(weights, 3)).max(initial=0) < 0.01


@pytest.mark.parametrize(("variance", "most"), [(5.0, 5), (1.0, 1)])
def test_a_variance_that_no_noise_has_is_refused(variance: float, most: int) -> None:
    with pytest.raises(InputError, match=f"at most {most} has a variance below {most}") as error:
        build_noise_table(variance, most)
    assert error.value.option == "--variance"


def test_a_table_that_leaves_small_counts_certain_is_refused() -> None:
    whole = {0: KEY_VALUES}
    third = {-1: KEY_VALUES // 4, 0: KEY_VALUES // 2, 1: KEY_VALUES // 4}
    check_safe(NoiseTable((third,)), 1, "--max-noise")
    with pytest.raises(InputError, match="a count of 1 would be published unchanged"):
        check_safe(NoiseTable((whole, third)), 2, "--max-noise")
    with pytest.raises(
        InputError,
        match="a published 0 would reveal that the true count is below 4; choose noise of at least 4",
    ):
        check_safe(NoiseTable((third,)), 4, "--max-noise")
    for small in (2, 5):
        check_safe(build_noise_table(2.0, 5), small, "--max-noise")
    with pytest.raises(InputError, match="a published 0 would reveal that the true count is below 6"):
        check_safe(build_noise_table(2.0, 5), 6, "--max-noise")


FILE = "i;j;p;v\n0;0;1;0\n1;0;0,25;1\n1;1;0,5;1\n1;2;0,25;1\n2;0;0.125;1\n2;2;0.75;1\n2;4;0.125;1\n"


def test_a_table_is_read_from_a_file(tmp_path: Path) -> None:
    (tmp_path / "noise.csv").write_text(FILE)
    table = read_noise_table(tmp_path / "noise.csv")
    assert [dict(row) for row in table.rows] == [
        {d: int(p * KEY_VALUES) for d, p in row.items()}
        for row in ({-1: 0.25, 0: 0.5, 1: 0.25}, {-2: 0.125, 0: 0.75, 2: 0.125})
    ]
    assert table.most == 2 and table.digest != build_noise_table(0.5, 2).digest
    found = protect(tmp_path, noise_table=tmp_path / "noise.csv", rules=BELOW_2)
    assert found.cell_keys.maximum == 2 and found.cell_keys.variance == 1


BAD_FILES = {
    "columns": ("i,j\n1,1\n", "needs the columns i, j and p"),
    "text": ("i,j,p\n1,x,1\n", "line 2 needs counts of 0 or more"),
    "short": ("i,j,p\n1,1\n", "line 2 needs counts of 0 or more"),
    "negative": ("i,j,p\n1,-1,1\n", "line 2 needs counts of 0 or more"),
    "probability": ("i,j,p\n1,1,2\n", "line 2 needs counts of 0 or more"),
    "far": ("i,j,p\n1,5000,1\n", "line 2 needs counts of 0 or more"),
    "twice": ("i,j,p\n1,1,0.5\n1,1,0.5\n", "line 3 repeats a probability"),
    "zero": ("i,j,p\n0,1,1\n1,1,1\n", "a count of 0 must stay 0"),
    "gap": ("i,j,p\n1,1,1\n3,3,1\n", "without gaps"),
    "nothing": ("i,j,p\n", "without gaps"),
    "sum": ("i,j,p\n1,1,0.5\n", "must add up to 1"),
    "mean": ("i,j,p\n1,1,0.5\n1,2,0.5\n", "mean of 0"),
    "digits": (
        "i,j,p\n1,0,0.3333333\n1,1,0.3333334\n1,2,0.3333333\n2,0,0.3333333\n2,3,0.6666667\n",
        "mean of 0",
    ),
    "certain": ("i,j,p\n1,1,1\n", "option --noise-table: a count of 1 would be published unchanged"),
}


@pytest.mark.parametrize("case", BAD_FILES)
def test_a_bad_table_is_refused(tmp_path: Path, case: str) -> None:
    text, says = BAD_FILES[case]
    (tmp_path / "noise.csv").write_text(text)
    with pytest.raises(InputError) as error:
        protect(tmp_path, noise_table=tmp_path / "noise.csv")
    assert says in str(error.value)


def test_weights_that_cannot_be_made_whole_are_refused(tmp_path: Path) -> None:
    third = 1 / 3
    (tmp_path / "noise.csv").write_text(f"i,j,p\n1,0,{2 * third}\n1,3,{third}\n")
    with pytest.raises(InputError, match="cannot be rounded to multiples of 2"):
        read_noise_table(tmp_path / "noise.csv")


# The same cell, the same noise -----------------------------------------------------------------------------------


def test_the_same_records_have_the_same_noise_wherever_they_are_counted(tmp_path: Path) -> None:
    """In other tables, orders, formats and runs, and in a sub-population that happens to be the same set."""
    assert protect(tmp_path, "first").published
    first, other = shown(tmp_path / "first"), shown(tmp_path / "first", "02-u")
    shared = {job: number for (town, job), number in first.items() if town == "Total"}
    assert shared == {job: number for (job, ill), number in other.items() if ill == "Total"}
    data = people()
    shuffled = data.take(np.argsort(np.arange(300) * 7919 % 300)).select(["ill", "town", "id", "job"])
    pyarrow.csv.write_csv(shuffled, tmp_path / "people.csv")
    again = protect(
        tmp_path, "again", data=str(tmp_path / "people.csv"), tables=[{"name": "t", "by": ["job", "town"]}]
    )
    assert again.question.earlier == 1
    assert shown(tmp_path / "again") == {(job, town): number for (town, job), number in first.items()}
    part = data.append_column(
        "east", pa.array(["yes" if t == "west" else "no" for t in data["town"].to_pylist()])
    )
    assert protect(tmp_path, "part", data=part, tables=[{"name": "t", "by": ["east", "job"]}]).published
    west = {job: number for (town, job), number in first.items() if town == "west"}
    assert west == {job: number for (east, job), number in shown(tmp_path / "part").items() if east == "yes"}
    for name in ("first", "again", "part"):
        assert lv.verify(tmp_path / name).passed, str(lv.verify(tmp_path / name))
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    assert protect(elsewhere, "first").published and shown(elsewhere / "first") != first


def test_totals_of_hierarchies_count_their_leaves(tmp_path: Path) -> None:
    (tmp_path / "job.hrc").write_text("field\n@farm\n@mine\ntown\n@shop\n@bank\nsea\n@boat\n")
    codes = {"job": {"hierarchy": str(tmp_path / "job.hrc")}}
    assert protect(tmp_path, "out", codes=codes).published
    found, jobs = shown(tmp_path / "out"), people()["job"].to_pylist()
    for code, members in (
        ("field", ("farm", "mine")),
        ("town", ("shop", "bank")),
        ("Total", ("farm", "mine", "shop", "bank")),
    ):
        assert abs(found["Total", code] - sum(job in members for job in jobs)) <= 5
    assert ("Total", "sea") not in found and ("Total", "boat") not in found


def test_noise_is_as_the_table_says_over_many_secrets() -> None:
    """The key of a cell is spread evenly: shares of 4,000 cells within five standard errors of the exact ones."""
    from louver.protect.cellkey import _key_values
    from louver.run import Run

    table = build_noise_table(2.0, 5)
    keys = _key_values(np.arange(4_000, dtype=np.uint64), b"a secret", Run())
    noise = table.noise(np.full(4_000, 9), keys)
    for value, weight in table.row_of(9).items():
        exact = weight / KEY_VALUES
        assert abs(float((noise == value).mean()) - exact) < 5 * (exact / 4_000) ** 0.5


# Averaging -------------------------------------------------------------------------------------------------------


def keyed(counts: np.ndarray, noisy: np.ndarray, keys: np.ndarray, by: tuple[str, ...]) -> KeyedTable:
    axes = []
    for name, size in zip(by, counts.shape, strict=True):
        codes = [f"{name}{n}" for n in range(size - 1)]
        leaves = {code: frozenset((code,)) for code in codes}
        attribute = ColumnCodes(
            name=name, total="Total", trees=(Tree.flat("Total", codes),), of=name, stands_for=leaves
        )
        axes.append(axis_of(attribute, None))
    return KeyedTable(
        options=TableOptions(name="t", by=by), axes=tuple(axes), counts=counts, noisy=noisy, keys=keys
    )


def with_totals(inside: np.ndarray) -> np.ndarray:
    for axis in range(inside.ndim):
        inside = np.concatenate([inside.sum(axis=axis, keepdims=True, dtype=inside.dtype), inside], axis=axis)
    return inside


def test_the_average_is_that_of_all_estimates_by_hand() -> None:
    inside = np.array([[4, 1, 0], [2, 3, 6], [7, 2, 1]])
    secret = np.array([[11, 3**40, 0], [77, 7**22, 5], [13**15, 101, 3**39]], dtype=np.uint64)
    counts, keys = with_totals(inside), with_totals(secret)
    noise = np.arange(counts.size).reshape(counts.shape) % 3 - 1
    noisy = counts + np.where(counts > 0, noise, 0)
    found = average([keyed(counts, noisy, keys, ("a", "b"))], build_noise_table(2.0, 5))
    at = {int(key): place for place, key in enumerate(found.keys)}
    for a, b in product(range(4), repeat=2):
        if not counts[a, b]:
            continue
        estimates: list[tuple[Fraction, int]] = [(Fraction(int(noisy[a, b])), 1)]
        for line, number, own in ((noisy[:, b], counts[:, b], a), (noisy[a, :], counts[a, :], b)):
            parts = [place for place in range(1, len(line)) if number[place]]
            if own == 0 and len(parts) > 1:
                estimates.append((Fraction(int(line[1:].sum())), len(parts)))
            if own > 0 and len(parts) > 1:
                estimates.append((Fraction(int(line[0] - line[1:].sum() + line[own])), len(parts)))
        if a == b == 0:
            estimates.append((Fraction(int(noisy[1:, 1:].sum())), int((inside > 0).sum())))
        precision = sum(Fraction(1, n) for _, n in estimates)
        mean = sum(value / n for value, n in estimates) / precision
        place = at[int(keys[a, b])]
        assert found.precision[place] == pytest.approx(float(precision)), (a, b)
        assert found.estimate[place] == pytest.approx(float(mean)), (a, b)
        assert found.counts[place] == counts[a, b] and found.noisy[place] == noisy[a, b]


def test_the_same_estimate_in_two_tables_counts_once() -> None:
    inside, secret = np.array([[4, 1], [2, 3]]), np.array([[9, 5**27], [3, 11**17]], dtype=np.uint64)
    counts, keys = with_totals(inside), with_totals(secret)
    table = keyed(counts, counts + 1, keys, ("a", "b"))
    noise = build_noise_table(2.0, 5)
    one, two = average([table], noise), average([table, table], noise)
    assert (one.precision == two.precision).all() and (one.estimate == two.estimate).all()


@pytest.mark.long
def test_averaging_does_what_is_forecast(tmp_path: Path) -> None:
    """Tables by many columns that say nothing new: every count is shown by hundreds of sums, and is not published."""
    names = [f"x{n}" for n in range(7)]
    more = people(60)
    for place, name in enumerate(names):
        more = more.append_column(
            name, pa.array([str((n * 2654435761 >> (place + 3)) & 1) for n in range(60)])
        )
    tables = [{"name": f"{one}{other}", "by": ["town", one, other]} for one, other in combinations(names, 2)]
    few = protect(tmp_path, data=more, tables=tables[:1], variance=0.5)
    many = protect(tmp_path, "many", data=more, tables=tables, variance=0.5)
    assert few.cell_keys.estimates < many.cell_keys.estimates
    assert few.verdict.sentence.startswith("Nothing found: by forecast, averaging is less than 95 % certain")
    assert "not solved exactly over all tables at once" in str(few.verdict)
    assert few.verdict.level == "care" and "not differential privacy" in str(few.verdict)
    hit = [many.cell_keys.measured]
    for number in range(7):  # other secrets
        (tmp_path / str(number)).mkdir()
        hit.append(protect(tmp_path / str(number), data=more, tables=tables, variance=0.5).cell_keys.measured)
    assert abs(many.cell_keys.forecast - sum(hit) / len(hit)) < 0.2


def test_the_forecast_of_one_number_is_exact_and_takes_the_least_variance() -> None:
    """A count of 1 is hit by whatever is below 1.5, for the cell has records; the last row of the table is not taken for all."""
    quiet = {-1: KEY_VALUES // 64, 0: KEY_VALUES - KEY_VALUES // 32, 1: KEY_VALUES // 64}
    loud = {-4: KEY_VALUES // 4, 0: KEY_VALUES // 2, 4: KEY_VALUES // 4}
    noise = NoiseTable((quiet, quiet, quiet, loud))
    counts, keys = np.array([1, 2, 9]), np.array([3**40, 5**27, 7**22], dtype=np.uint64)
    single = keyed(counts, counts, keys, ("a",))
    single = KeyedTable(options=single.options, axes=(), counts=counts, noisy=counts, keys=keys)
    found = average([single], noise)
    sure = dict(zip(found.counts.tolist(), found.sureness.tolist(), strict=True))
    assert sure == {1: 1 - 1 / 64, 2: 1 - 1 / 32, 9: 0.5}
    inside, secret = np.array([1, 2]), np.array([9, 5**27], dtype=np.uint64)
    found = average([keyed(with_totals(inside), with_totals(inside), with_totals(secret), ("a",))], noise)
    for count, precision, sureness in zip(found.counts, found.precision, found.sureness, strict=True):
        within = math.erf(0.5 * math.sqrt(precision / (2 * (1 / 32))))
        assert sureness == pytest.approx((1 + within) / 2 if count == 1 else within)


def test_tables_that_were_published_before_are_averaged_too(tmp_path: Path) -> None:
    """In two steps readers have as many estimates as at once, and the second release knows it."""
    tables = [{"name": "t", "by": ["town", "job"]}, {"name": "u", "by": ["town", "ill"]}]
    data = people(40)
    assert protect(tmp_path, "first", data=data, tables=tables[:1]).published
    later = protect(tmp_path, data=data, tables=tables[1:])
    at_once = protect(tmp_path, data=data, tables=tables)
    assert later.cell_keys == at_once.cell_keys
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    alone = protect(elsewhere, data=data, tables=tables[1:])
    assert alone.cell_keys.cells < later.cell_keys.cells
    (tmp_path / "town.hrc").write_text("land\n@north\n@south\n")
    with pytest.raises(InputError, match="is a total of its hierarchy or outside it"):
        protect(tmp_path, data=data, tables=tables, codes={"town": {"hierarchy": str(tmp_path / "town.hrc")}})


def test_counts_that_averaging_tells_are_not_published(tmp_path: Path) -> None:
    wide = [{"name": "t", "by": ["town", "job", "ill"]}]
    found = protect(tmp_path, "out", tables=wide, variance=0.15, max_noise=2, rules=BELOW_2, data=people(24))
    assert found.cell_keys.small and found.cell_keys.certain == found.summary.unprotected > 0
    assert found.verdict.level == "stop" and not (tmp_path / "out").exists()
    assert {cell.is_protected for cell in found.cells} == {False}
    assert any("of all its estimates" in reason for cell in found.cells for reason in cell.reasons)
    assert "cell_keys" in found.to_json()
    assert "averaging recovers" in repr(found)


# What follows from bounds and sums --------------------------------------------------------------------------------


def lines(inside: list[list[int]], noisy: list[list[int]]) -> KeyedTable:
    """A table whose numbers are given, the total of each line first; its last line is the total of all."""
    counts = np.array([[sum(line), *line] for line in inside])
    keys = np.array(
        [
            [
                sum(3 ** (20 + 7 * r + p) for p in range(len(line)) if line[p]),
                *(3 ** (20 + 7 * r + p) if n else 0 for p, n in enumerate(line)),
            ]
            for r, line in enumerate(inside)
        ],
        dtype=object,
    )
    modulo = np.array([[int(key) % (1 << 64) for key in line] for line in keys], dtype=np.uint64)
    codes = [f"b{n}" for n in range(len(inside[0]))]
    attribute = ColumnCodes(
        name="b",
        total="Total",
        trees=(Tree.flat("Total", codes),),
        of="b",
        stands_for={code: frozenset((code,)) for code in codes},
    )
    rows = [f"a{n}" for n in range(len(inside))]
    other = ColumnCodes(
        name="a",
        total="a0",
        trees=(Tree.flat("a0", rows[1:]),),
        of="a",
        stands_for={r: frozenset((r,)) for r in rows},
    )
    first = axis_of(other, None)
    first = type(first)(
        attribute=other, codes=first.codes, meanings=first.meanings, parts=()
    )  # lines are by themselves
    return KeyedTable(
        options=TableOptions(name="t", by=("a", "b")),
        axes=(first, axis_of(attribute, None)),
        counts=counts,
        noisy=np.array(noisy),
        keys=modulo,
    )


def test_small_counts_that_follow_from_bounds_and_sums() -> None:
    """Two listed parts hold one each, and an unlisted total two at most; a total unlike its only listed part proves a hidden 1."""
    two = build_noise_table(1.9, 2)
    found = bounds_of([lines([[1, 1], [1, 1], [6, 1]], [[0, 1, 1], [2, 1, 1], [6, 7, 0]])], two)
    # In the second line the total may be 4, and in the third nothing is known but that the hidden part is 1 or 2.
    assert sorted(found.counts[np.isin(found.keys, found.determined(3))].tolist()) == [1, 1, 2]
    one = build_noise_table(0.5, 1)
    found = bounds_of([lines([[6, 0], [6, 1]], [[6, 6, 0], [7, 6, 0]])], one)
    assert found.counts[np.isin(found.keys, found.determined(2))].tolist() == [1]
    same = bounds_of([lines([[6, 0], [6, 1]], [[6, 6, 0], [6, 6, 0]])], one)
    assert not len(same.determined(2))


@pytest.mark.parametrize("seed", range(30))
def test_bounds_hold_and_are_no_closer_than_what_is_possible(seed: int) -> None:
    """All true counts of a table of two by two, enumerated: propagation never says more than is certain, and never what is false."""
    draw = np.random.default_rng(seed)
    noise = build_noise_table(1.5, 2)
    inside = draw.integers(0, 4, (2, 2))
    secret = np.where(inside > 0, draw.integers(1, 1 << 62, (2, 2)), 0).astype(np.uint64)
    counts, keys = with_totals(inside), with_totals(secret)
    drawn: dict[int, int] = {}
    for key, count in zip(keys.ravel().tolist(), counts.ravel().tolist(), strict=True):
        row = noise.row_of(count) if count else {0: 1}
        at = draw.choice(list(row), p=np.array(list(row.values())) / sum(row.values()))
        drawn.setdefault(key, int(at))
    noisy = counts + np.array([drawn[key] for key in keys.ravel().tolist()]).reshape(3, 3)
    found = bounds_of([keyed(counts, noisy, keys, ("a", "b"))], noise)
    assert (found.lower <= found.counts).all() and (found.counts <= found.upper).all()
    possible = []
    for cells in product(range(6), repeat=4):
        whole = with_totals(np.array(cells).reshape(2, 2))
        if not all(
            p == n if n == 0 else noise.row_of(n).get(p - n, 0) > 0
            for n, p in zip(whole.ravel().tolist(), noisy.ravel().tolist(), strict=True)
        ):
            continue
        # The same records are the same cell, and a total that is shown as another number than a part has other records.
        alike = [whole[keys == key] for key in found.keys]
        pairs = zip((*whole, *whole.T), (*noisy, *noisy.T), strict=True)
        if all((same == same[0]).all() for same in alike) and all(
            own[0] != own[part] or line[0] == line[part] for own, line in pairs for part in (1, 2)
        ):
            possible.append(whole)
    assert possible
    for key, low, high in zip(found.keys, found.lower, found.upper, strict=True):
        values = [int(whole[keys == key][0]) for whole in possible]
        assert low <= min(values) and high >= max(values)


def test_counts_that_follow_from_bounds_are_not_published(tmp_path: Path) -> None:
    """Areas with three groups of one person each: where all three are listed and their total of 3 is not, all are certain."""
    n = 2_000
    data = pa.table(
        {
            "id": [f"p{k}" for k in range(3 * n)],
            "area": [f"a{k // 3}" for k in range(3 * n)],
            "group": ["xyz"[k % 3] for k in range(3 * n)],
        }
    )
    for number in range(8):  # the secret is drawn anew
        folder = tmp_path / str(number)
        folder.mkdir()
        more = {
            "data": data,
            "variance": 2.9,
            "max_noise": 3,
            "tables": [{"name": "t", "by": ["area", "group"]}],
        }
        found = protect(folder, **more)
        if found.cell_keys.told:
            break
    assert found.cell_keys.told and found.cell_keys.certain >= found.cell_keys.told
    assert found.verdict.level == "stop" and "follow from bounds and sums" in str(found.verdict)
    assert any("it follows from bounds and sums" in cell.reasons for cell in found.cells)
    assert "it follows from bounds and sums" in protect_report(found, "data")
    assert not protect(folder, "out", **more).published or not (folder / "out").exists()


# What goes with it, and what does not ----------------------------------------------------------------------------


def test_a_later_audit_knows_how_far_numbers_can_be(tmp_path: Path) -> None:
    assert protect(tmp_path, "out").published
    margins = Register(tmp_path / "register").entries[0].content["tables"][0]["margins"]
    numbers = shown(tmp_path / "out")
    by_town = next(margin for margin in margins if margin["by"] == ["town"])
    for label, lower, upper in zip(by_town["labels"][0], by_town["lower"], by_town["upper"], strict=True):
        assert (lower, upper) == (max(1, numbers[label, "Total"] - 5), numbers[label, "Total"] + 5)
    audited = lv.audit(
        people(), tables=[{"name": "x", "by": ["town"]}], registry=tmp_path / "register", small=3
    )
    assert audited.earlier == 2


def test_other_noise_for_the_same_counts_is_refused(tmp_path: Path) -> None:
    assert protect(tmp_path, "out").published
    with pytest.raises(InputError, match="publication 1 has the same counts, protected by method"):
        protect(tmp_path, variance=1.0)
    with pytest.raises(InputError, match="publication 1 has the same counts"):
        protect(tmp_path, variance=1.0, tables=[{"name": "t", "by": ["town"], "variable": "persons"}])
    with pytest.raises(InputError, match='protected by method "cellkey"'):
        protect(tmp_path, method="hide", person=None)


def numbered(kind: pa.DataType) -> pa.Table:
    return people().set_column(0, "id", pa.array(range(1000, 1300)).cast(kind))


def renamed(ids: list[str], name: str = "id") -> pa.Table:
    return people().set_column(0, name, pa.array(ids))


OTHER_KEYS: dict[str, tuple[pa.Table, pa.Table, str]] = {
    "other column": (
        people().append_column("ssn", pa.array([f"s{k}" for k in range(300)])),
        people().append_column("ssn", pa.array([f"s{k}" for k in range(300)])),
        "ssn",
    ),
    "renamed": (people(), renamed([f"q{k}" for k in range(300)]), "id"),
    "trailing blank": (people(), renamed([f"p{k} " for k in range(300)]), "id"),
    "upper case": (people(), renamed([f"P{k}" for k in range(300)]), "id"),
    "decimals": (numbered(pa.int64()), numbered(pa.decimal128(21, 1)), "id"),
}


@pytest.mark.parametrize("case", OTHER_KEYS)
def test_other_keys_of_the_same_records_are_refused(tmp_path: Path, case: str) -> None:
    """Fresh noise for the same counts would average out."""
    first, again, person = OTHER_KEYS[case]
    assert protect(tmp_path, "out", data=first).published
    with pytest.raises(InputError) as error:
        protect(tmp_path, "again", data=again, person=person)
    # Names that nobody had before may be those of other people.
    assert error.value.option == ("--register" if case == "renamed" else "--person")
    assert case == "renamed" or 'use the column "id" of that publication' in str(error.value)
    assert not (tmp_path / "again").exists()


def test_the_same_whole_numbers_as_floats_have_the_same_noise(tmp_path: Path) -> None:
    assert protect(tmp_path, "out", data=numbered(pa.int64())).published
    assert protect(tmp_path, "again", data=numbered(pa.float64())).published
    assert shown(tmp_path / "again") == shown(tmp_path / "out")


def test_another_column_of_persons_is_refused_with_one_sentence(tmp_path: Path) -> None:
    first, again, person = OTHER_KEYS["other column"]
    assert protect(tmp_path, "out", data=first).published
    with pytest.raises(InputError, match="publication 1 gave these records different keys") as error:
        protect(tmp_path, data=again, person=person)
    assert error.value.option == "--person"
    # The same texts under another name are the same keys.
    same = renamed(first["id"].to_pylist(), "number").append_column("ssn", first["ssn"])
    assert protect(tmp_path, "same", data=same, person="number").published
    assert shown(tmp_path / "same") == shown(tmp_path / "out")


def test_an_entry_that_does_not_say_its_keys_is_refused(tmp_path: Path) -> None:
    from types import SimpleNamespace

    from louver.protect.together import check_same_keys

    content = {"protected": [{"method": "cellkey", "value": None}]}
    memory: Any = SimpleNamespace(entries=[SimpleNamespace(number=4, content=content)])
    with pytest.raises(InputError, match="publication 4 gave these records different keys"):
        check_same_keys(memory, "a mark")


TABLE = {"name": "t", "by": ["town"]}
BAD: dict[str, tuple[dict[str, Any], str]] = {
    "sums": ({"tables": [{**TABLE, "value": "id"}]}, 'adds up "id", but --method cellkey counts records'),
    "file": (
        {"tables": [{**TABLE, "file": "x.csv", "frequency": "n"}]},
        "has a file, but --method cellkey counts",
    ),
    "no person": ({"person": None}, "needs --register, which keeps the secret of the keys, and --person"),
    "no register": ({"registry": None, "person": None}, "needs --register"),
    "holding": ({"holding": "job"}, "option --holding cannot be combined with --method cellkey"),
    "weights": ({"sampling_weight": "job"}, "option --sampling-weight cannot be combined with"),
    "known": ({"known_percent": 10}, "option --known-percent cannot be combined with"),
    "seconds": ({"seconds": 1}, "option --seconds cannot be combined with"),
    "status": (
        {"status": [{"table": "t", "cell": {}, "set": "hide", "reason": "r"}]},
        "option status cannot be combined with",
    ),
    "publish": (
        {"status": [{"table": "t", "cell": {}, "set": "publish", "reason": "r"}]},
        'can be set to "publish"',
    ),
    "rule": ({"rules": [{"rule": "dominance", "n": 1, "k": 80}]}, "leave out rules other than frequency"),
    "base": ({"base": 5}, "option --base needs --method round"),
    "two noises": ({"noise_table": "x.csv", "variance": 1.0}, "leave out --variance and --max-noise"),
    "other method": ({"method": "hide", "variance": 1.0}, "option --variance needs --method cellkey"),
    "small noise": ({"max_noise": 1, "variance": 0.5}, "would reveal that the true count is below 3"),
    "large variance": ({"variance": 7.0}, "has a variance below 5"),
    "twice": ({"person": "town"}, 'column "town" in the dataframe repeats the value of row 1'),
    "no value": (
        {"data": people(3).set_column(1, "town", pa.array(["a", None, "b"]))},
        'column "town" in the dataframe has no value on row 2',
    ),
    "no column": ({"tables": [{"name": "t", "by": ["city"]}]}, '"city"'),
}


@pytest.mark.parametrize("case", BAD)
def test_what_does_not_go_with_cell_keys_is_refused(tmp_path: Path, case: str) -> None:
    more, says = BAD[case]
    with pytest.raises(InputError) as error:
        protect(tmp_path, **more)
    assert says in str(error.value)


def test_codes_of_a_higher_level_are_refused(tmp_path: Path) -> None:
    (tmp_path / "town.hrc").write_text("all\n@north\n@south\nwest\n@far\n")
    with pytest.raises(InputError, match="is a total of its hierarchy or outside it") as error:
        protect(tmp_path, codes={"town": {"hierarchy": str(tmp_path / "town.hrc")}})
    assert error.value.row and error.value.column == "town"
