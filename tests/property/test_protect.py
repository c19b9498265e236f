"""Protected tables against brute force: every pattern, every reader, every possible table; and an attack that shares no code."""

from __future__ import annotations

import hashlib
import os
import random
import subprocess
import sys
from itertools import combinations, product
from pathlib import Path
from unittest.mock import patch

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import louver as lv
from few_or_many import few_or_many
from louver.tables.hiding import hide
from oracles.protect import Judge, World, cells_of
from oracles.table_attack import Attack

ROWS = {"Total": {0, 1, 2, 3}, "0": {0, 1}, "1": {2, 3}}
COLUMNS = {"Total": {0, 1, 2, 3}, "0": {0, 2}, "1": {1, 3}}
CODES = {"Total": {0, 1, 2, 3}, "A": {0, 1}, "B": {2, 3}, "a": {0}, "b": {1}, "c": {2}, "d": {3}}

SHAPES = {
    "cross": [("row", "column")],
    "margins": [("row",), ("column",)],
    "tree": [("code",)],
}
AXES = {"row": ROWS, "column": COLUMNS, "code": CODES}


@pytest.fixture(scope="module")
def hierarchy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("codes") / "code.hrc"
    path.write_text("A\n@a\n@b\nB\n@c\n@d\n")
    return path


def meaning(labels: dict[str, str]) -> frozenset[int]:
    return frozenset.intersection(*(frozenset(AXES[name][label]) for name, label in labels.items()))


def is_diagonal(places: set[int]) -> bool:
    return len({place // 2 for place in places}) == len({place % 2 for place in places}) == len(places)


@few_or_many(
    10,
    60,
    given(
        firms=st.lists(st.tuples(st.integers(0, 3), st.integers(0, 4)), min_size=1, max_size=6),
        shape=st.sampled_from(["cross", "margins", "tree"]),
        minimum=st.sampled_from([2, 3]),
        attackers=st.sampled_from(["outsider", "contributors"]),
        is_counts=st.booleans(),
        zero=st.sampled_from([None, 3]),
        large=st.sampled_from([hide.LARGE, 0]),
    ),
)
def test_patterns_protect_and_are_the_best(
    hierarchy, firms, shape, minimum, attackers, is_counts, zero, large
) -> None:
    zero = None if is_counts else zero
    firms = [(place, 1) for place, _ in firms] if is_counts else firms
    tables = [
        {"name": str(n), "by": list(by), **({} if is_counts else {"value": "turnover"})}
        for n, by in enumerate(SHAPES[shape])
    ]
    records = pa.table(
        {
            "row": [str(place // 2) for place, _ in firms],
            "column": [str(place % 2) for place, _ in firms],
            "code": ["abcd"[place] for place, _ in firms],
            "turnover": [turnover for _, turnover in firms],
        }
    )
    with patch.object(hide, "LARGE", large):  # 0: as large tables are protected
        found = lv.protect(
            records,
            tables=tables,
            codes={"code": {"hierarchy": str(hierarchy)}} if shape == "tree" else None,
            rules=[
                {"rule": "frequency", "minimum": minimum, **({} if is_counts else {"range": 30})},
                *([] if zero is None else [{"rule": "zero", "up": zero}]),
            ],
            attackers=attackers,
            steps=10_000,
        )
    # Labels that no firm has are none of the tables; a hierarchy lists all of its codes.
    places = {place for place, _ in firms}
    used = {name: {label for label in axis if axis[label] & places} for name, axis in AXES.items()} | {
        "code": set(CODES)
    }
    by_labels = [p for p in range(4) if str(p // 2) in used["row"] and str(p % 2) in used["column"]]
    # Where each row lies in one column and each column in one row, and that is seen more than once, readers know it.
    is_linked = shape == "margins" and len(firms) > len(places) > 1 and is_diagonal(places)
    if is_linked:
        by_labels = sorted(places)
    assert bool(found.question.linked) == is_linked
    number_of = {place: n for n, place in enumerate(range(4) if shape == "tree" else by_labels)}

    def meant(labels: dict[str, str]) -> frozenset[int]:
        return frozenset(number_of[place] for place in meaning(labels) if place in number_of)

    sets = [
        meant(dict(zip(by, labels, strict=True)))
        for by in SHAPES[shape]
        for labels in product(*(sorted(used[name]) for name in by))
    ]
    known = tuple((number_of[place], turnover) for place, turnover in firms)
    asks_contributors = attackers == "contributors" and not is_counts
    world = World(known, cells_of(sets), len(number_of), minimum, 30, asks_contributors, is_counts, zero)
    judge = Judge(world)
    number = {cell: n for n, cell in enumerate(world.cells)}
    hidden = {number[meant(cell.cell)] for cell in found.cells}
    assert {number[meant(c.cell)] for c in found.cells if c.kind == "primary"} == set(world.primary())
    fewest = judge.fewest()
    assert found.is_protected == (fewest is not None)
    if fewest is not None:
        assert judge.protects(hidden)
        assert found.summary.bound <= fewest <= len(hidden - set(world.primary()))
        if found.summary.optimal:
            assert len(hidden) - len(world.primary()) == fewest


def fewest_together(judges: list[Judge], tied: set[int]) -> int | None:
    """The fewest further cells of two variables whose patterns agree on the tied cells and leave none of these derivable."""
    own = [set(judge.world.primary()) for judge in judges]
    free = [set(judge.world.free()) for judge in judges]
    loose = [sorted(cells - tied) for cells in free]
    best = None
    for n in range(len(tied) + 1):
        for some in combinations(sorted(tied), n):
            chosen = set(some)
            if not chosen >= (own[0] | own[1]) & tied:
                continue
            found = 0
            for judge, primary, rest in zip(judges, own, loose, strict=True):
                sizes = (
                    len((chosen | primary | set(more)) - primary)
                    for k in range(len(rest) + 1)
                    for more in combinations(rest, k)
                    if judge.protects(pattern := chosen | primary | set(more))
                    and all(judge.is_open(cell, pattern) for cell in chosen)
                )
                found += next(sizes, 99)
            best = found if best is None else min(best, found)
    return None if best is None or best >= 99 else best


@few_or_many(
    5,
    30,
    given(
        firms=st.lists(
            st.tuples(st.integers(0, 3), st.integers(1, 4), st.integers(0, 2)), min_size=2, max_size=6
        ),
        dominance=st.sampled_from([2, 3]),
        attackers=st.sampled_from(["outsider", "contributors"]),
        large=st.sampled_from([hide.LARGE, 0]),
    ),
)
def test_tables_hidden_together_have_one_pattern(firms, dominance, attackers, large) -> None:
    """Turnover and workers by two attributes; the rule for workers is another one."""
    rows, columns = [str(place // 2) for place, *_ in firms], [str(place % 2) for place, *_ in firms]
    records = pa.table(
        {
            "row": rows,
            "column": columns,
            "turnover": [one for _, one, _ in firms],
            "workers": [one for *_, one in firms],
        }
    )
    with patch.object(hide, "LARGE", large):
        found = lv.protect(
            records,
            tables=[
                {"name": "workers", "by": ["row", "column"], "value": "workers", "hide_with": "turnover"},
                {"name": "turnover", "by": ["row", "column"], "value": "turnover"},
            ],
            rules=[
                {"rule": "frequency", "minimum": dominance, "range": 30, "tables": ["turnover"]},
                {"rule": "frequency", "minimum": 2, "range": 30, "tables": ["workers"]},
            ],
            attackers=attackers,
            steps=10_000,
        )
    used = {"row": {"Total", *rows}, "column": {"Total", *columns}}
    by_labels = [p for p in range(4) if str(p // 2) in used["row"] and str(p % 2) in used["column"]]

    def meant(labels: dict[str, str]) -> frozenset[int]:
        return frozenset(by_labels.index(place) for place in meaning(labels) if place in by_labels)

    labels = [
        dict(zip(("row", "column"), one, strict=True))
        for one in product(sorted(used["row"]), sorted(used["column"]))
    ]
    sets = cells_of([meant(one) for one in labels])
    judges = [
        Judge(
            World(
                tuple((by_labels.index(place), own) for place, own in known),
                sets,
                len(by_labels),
                least,
                30,
                attackers == "contributors",
            )
        )
        for known, least in (
            ([(place, one) for place, one, _ in firms], dominance),
            ([(place, one) for place, _, one in firms], 2),
        )
    ]
    number = {cell: n for n, cell in enumerate(sets)}
    hidden = [
        {number[meant(cell.cell)] for cell in found.cells if cell.table == name}
        for name in ("turnover", "workers")
    ]
    able = [{*judge.world.primary(), *judge.world.free()} for judge in judges]
    tied = able[0] & able[1]
    assert hidden[0] & tied == hidden[1] & tied
    fewest = fewest_together(judges, tied)
    if found.is_protected:
        assert all(judge.protects(own) for judge, own in zip(judges, hidden, strict=True))
        assert all(
            judge.is_open(cell, own) for judge, own in zip(judges, hidden, strict=True) for cell in own & tied
        )
    assert found.is_protected == (fewest is not None)
    if fewest is not None:
        n_further = sum(
            len(own - set(judge.world.primary())) for judge, own in zip(judges, hidden, strict=True)
        )
        assert found.summary.bound <= fewest <= n_further
        if found.summary.optimal:
            assert n_further == fewest


@few_or_many(
    10,
    60,
    given(
        firms=st.lists(st.tuples(st.integers(0, 3), st.integers(1, 4)), min_size=2, max_size=6),
        shown=st.sets(st.integers(0, 8)),
        attackers=st.sampled_from(["outsider", "contributors"]),
        large=st.sampled_from([hide.LARGE, 0]),
    ),
)
def test_a_given_pattern_is_judged_as_brute_force_does(firms, shown, attackers, large) -> None:
    """Of all cells that are not empty some are shown; the rest is hidden, primary or not."""
    rows, columns = [str(place // 2) for place, _ in firms], [str(place % 2) for place, _ in firms]
    records = pa.table({"row": rows, "column": columns, "turnover": [turnover for _, turnover in firms]})
    cells = list(
        product(*(["Total", *sorted(set(own))] if len(set(own)) > 1 else [own[0]] for own in (rows, columns)))
    )
    places = [p for p in range(4) if str(p // 2) in rows and str(p % 2) in columns]
    of_cell = {
        cell: frozenset(
            places.index(place)
            for place in meaning(dict(zip(("row", "column"), cell, strict=True))) & {*places}
        )
        for cell in cells
    }
    known = tuple((places.index(place), turnover) for place, turnover in firms)
    world = World(known, cells_of(list(of_cell.values())), len(places), 3, 30, attackers == "contributors")
    hidden = {cell for number, cell in enumerate(cells) if number not in shown and world.value(of_cell[cell])}
    names = [{"row": row, "column": column} for row, column in sorted(hidden)]
    if not names:
        return
    with patch.object(hide, "LARGE", large):
        found = lv.protect(
            records,
            tables=[{"name": "t", "by": ["row", "column"], "value": "turnover"}],
            rules=[{"rule": "frequency", "minimum": 3, "range": 30}],
            status=[{"table": "t", "cell": cell, "set": "secondary", "reason": "given"} for cell in names],
            given_pattern=True,
            attackers=attackers,
        )
    number = {cell: n for n, cell in enumerate(world.cells)}
    assert found.is_protected == Judge(world).protects({number[of_cell[cell]] for cell in hidden})
    assert not found.summary.optimal


TRADES = {"Total": ["A", "B"], "A": ["a1", "a2", "a3"], "B": ["b1", "b2"]}
REGIONS = {"Total": ["n", "s"], "n": ["n1", "n2"], "s": ["s1", "s2"]}
SIZES = {"Total": ["big", "small"]}
TREES = {"trade": TRADES, "region": REGIONS, "size": SIZES}
LINKED = [["trade", "size"], ["trade", "region"]]


def written(folder: Path) -> dict[str, dict[str, str]]:
    (folder / "trade.hrc").write_text("A\n@a1\n@a2\n@a3\nB\n@b1\n@b2\n")
    (folder / "region.hrc").write_text("n\n@n1\n@n2\ns\n@s1\n@s2\n")
    return {name: {"hierarchy": str(folder / f"{name}.hrc")} for name in ("trade", "region")}


def some_firms(seed: int) -> list[dict[str, str | int]]:
    draw = random.Random(seed)
    return [
        {
            "trade": draw.choice(["a1", "a1", "a2", "a3", "b1", "b2"]),
            "region": draw.choice(["n1", "n1", "n2", "s1", "s2"]),
            "size": draw.choice(["big", "small", "small"]),
            "turnover": draw.choice([1, 2, 5, 20, 90]),
        }
        for _ in range(draw.randint(8, 24))
    ]


def inside(firm: dict[str, str | int], cell: dict[str, str]) -> bool:
    def leaves(name: str, code: str) -> set[str]:
        parts = TREES[name].get(code)
        return {code} if not parts else set().union(*(leaves(name, part) for part in parts))

    return all(firm[name] in leaves(name, code) for name, code in cell.items())


def linked(seed: int, folder: Path) -> tuple[Path, bool]:
    """The release of two linked tables of some firms, every second one made as large tables are, and whether they count firms."""
    is_counts = seed % 3 == 2
    out = folder / "out"
    with patch.object(hide, "LARGE", 0 if seed % 2 else hide.LARGE):
        found = lv.protect(
            pa.Table.from_pylist(some_firms(seed)),
            tables=[
                {"name": "-".join(by), "by": by, **({} if is_counts else {"value": "turnover"})}
                for by in LINKED
            ],
            codes=written(folder),
            rules=[{"rule": "frequency", "minimum": 3, **({} if is_counts else {"range": 20})}],
            steps=3,
            out=out,
        )
    assert found.is_protected, found
    return out, is_counts


def digest(release: Path) -> str:
    """Of the tables of a release."""
    found = hashlib.sha256()
    for path in sorted((release / "data").iterdir()):
        found.update(path.name.encode() + path.read_bytes())
    return found.hexdigest()


FEW = (1, 2, 4, 5)
"""Sums and counts, as small tables and as large ones are protected."""
MANY = [pytest.param(seed, marks=pytest.mark.long) for seed in range(106) if seed not in FEW]


@pytest.mark.parametrize("seed", [*FEW, *MANY])
def test_an_attack_on_linked_tables_finds_nothing(tmp_path: Path, seed: int) -> None:
    """All that is published, and each firm's own knowledge, in a program over the crossed table."""
    firms = some_firms(seed)
    out, is_counts = linked(seed, tmp_path)
    tables = []
    for number, by in enumerate(LINKED, start=1):
        lines = (
            pq.read_table(out / f"data/{number:02d}-{'-'.join(by)}.parquet")
            .drop_columns(["obs_status", "conf_status"])
            .to_pylist()
        )
        tables.append((by, [tuple(line.values()) for line in lines]))
    attack = Attack(TREES, tables, counts=is_counts)
    n_asked = 0
    for by, lines in tables:
        for *codes, shown in lines:
            cell = dict(zip(by, codes, strict=True))
            members = [firm for firm in firms if inside(firm, cell)]
            if len(members) >= 3:
                continue
            assert shown is None
            value = len(members) if is_counts else sum(int(firm["turnover"]) for firm in members)
            up = 3 - value if is_counts else -(-value // 5)
            down = 0 if is_counts else -(-value // 5)
            readers = [None] if is_counts else [None, *firms]
            for reader in readers:
                if members == [reader]:
                    continue
                knows, least, own = [], [], 0
                if reader is not None:
                    cells = [dict(zip(b, c, strict=True)) for b, ls in tables for *c, _ in ls]
                    cells = [one for one in cells if inside(reader, one)]
                    alone = [one for one in cells if sum(inside(firm, one) for firm in firms) == 1]
                    if not any(sum(inside(firm, one) for firm in firms) <= 2 for one in cells):
                        continue
                    knows = [(one, int(reader["turnover"])) for one in alone]
                    least = [(one, int(reader["turnover"])) for one in cells]
                    own = int(reader["turnover"]) * (reader in members)
                low, high = attack.bounds(cell, knows, least)
                assert high >= value + up - 1e-6 and low <= value - min(down, value - own) + 1e-6
                n_asked += 1
    assert n_asked
    assert lv.verify(out).passed


@pytest.mark.long
@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="cores cannot be chosen here")
def test_the_same_bytes_on_one_core_and_on_all(tmp_path: Path) -> None:
    every = sorted(os.sched_getaffinity(0))
    answers = set()
    for run, cores in enumerate([every[:1], every, every]):
        code = (
            "import os, sys; from pathlib import Path; os.sched_setaffinity(0, eval(sys.argv[1]))\n"
            "sys.path[:0] = eval(sys.argv[2]); from property.test_protect import digest, linked\n"
            "for seed in range(6, 16):\n"
            "    folder = Path(sys.argv[3]) / str(seed); folder.mkdir(parents=True)\n"
            "    print(digest(linked(seed, folder)[0]))"
        )
        arguments = [repr(cores), repr(sys.path), str(tmp_path / str(run))]
        made = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True)
        assert made.returncode == 0, made.stderr
        answers.add(made.stdout)
    assert len(answers) == 1
