"""Rounding of three- and four-way hierarchical counts: seconds of the processor, gap, how far numbers went, memory.

    python benchmarks/protect_rounding.py                     about 10^3 and 10^4 cells
    python benchmarks/protect_rounding.py --base 3 --seed 9   another base, other people

The people are made up here from a seed, places and trades with unequal sizes as they are in registers, and nothing of the search was
tuned on them. Sums and multiples are checked here from the published file alone.
"""

from __future__ import annotations

import argparse
import random
import resource
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Mapping
from itertools import product
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

import louver as lv

Levels = Mapping[str, tuple[int, ...]]
CASES: dict[str, tuple[Levels, int]] = {
    "three ways, 10^3": ({"place": (3, 4), "trade": (3, 3), "age": (6,)}, 5_000),
    "three ways, 10^4": ({"place": (5, 6), "trade": (4, 5), "age": (12,)}, 60_000),
    "four ways, 10^4": ({"place": (3, 5), "trade": (4, 4), "age": (5,), "sex": (3,)}, 40_000),
}


def tree(name: str, levels: tuple[int, ...]) -> dict[str, list[str]]:
    """Code -> its parts, from Total down."""
    found: dict[str, list[str]] = {"Total": [f"{name}{n}" for n in range(levels[0])]}
    for number in range(1, len(levels)):
        ends = [code for parts in list(found.values()) for code in parts if code not in found]
        found |= {code: [f"{code}.{n}" for n in range(levels[number])] for code in ends}
    return found


def leaves(parts: Mapping[str, list[str]], code: str = "Total") -> list[str]:
    return [leaf for part in parts[code] for leaf in leaves(parts, part)] if code in parts else [code]


def broken_sums(path: Path, by: list[str], trees: Mapping[str, Mapping[str, list[str]]], base: int) -> int:
    """Sums of a published table that do not hold, and numbers that are no multiple."""
    read = pq.read_table(path).to_pylist()
    shown: dict[tuple[str, ...], int] = defaultdict(int)
    for line in read:
        shown[tuple(line[name] for name in by)] = list(line.values())[-1]
    broken = sum(number % base != 0 for number in shown.values())
    codes = [["Total", *(part for parts in trees[name].values() for part in parts)] for name in by]
    for key in product(*codes):
        for axis, name in enumerate(by):
            if key[axis] in trees[name]:
                below = sum(
                    shown.get((*key[:axis], part, *key[axis + 1 :]), 0) for part in trees[name][key[axis]]
                )
                broken += shown.get(key, 0) != below
    return broken


def run(name: str, base: int, seed: int, folder: Path) -> bool:
    levels, n_people = CASES[name]
    draw = random.Random(seed)
    trees = {column: tree(column, own) for column, own in levels.items()}
    columns = {}
    for column, parts in trees.items():
        ends = leaves(parts)
        weights = [draw.lognormvariate(0, 1.2) for _ in ends]
        columns[column] = draw.choices(ends, weights, k=n_people)
        lines = [f"{part},{'' if code == 'Total' else code}" for code, own in parts.items() for part in own]
        (folder / f"{column}.csv").write_text("code,parent\n" + "\n".join(lines) + "\n")
    out = folder / "out"
    start, wall = time.process_time(), time.perf_counter()
    found = lv.protect(
        pa.table(columns),
        tables=[{"name": "t", "by": list(levels)}],
        codes={c: {"hierarchy": str(folder / f"{c}.csv")} for c, own in levels.items() if len(own) > 1},
        method="round",
        base=base,
        out=out,
    )
    spent, wall = time.process_time() - start, time.perf_counter() - wall
    broken = broken_sums(out / "data/01-t.parquet", list(levels), trees, base)
    s, own = found.summary, found.rounding
    assert own is not None
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(
        f"{name:18} base {base}  {s.cells:6,} cells  {spent:6.1f} s cpu {wall:6.1f} s wall  gap {s.gap:6.1%}  "
        f"{own.far} not next multiples, up to {own.beyond} further  {broken} broken  peak {memory:,.0f} MB",
        flush=True,
    )
    return broken == 0


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*")
    parser.add_argument("--base", type=int, default=5)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    is_right = True
    for name in CASES:
        if not asked.names or any(one in name for one in asked.names):
            with tempfile.TemporaryDirectory() as folder:
                is_right &= run(name, asked.base, asked.seed, Path(folder))
    return int(not is_right)


if __name__ == "__main__":
    sys.exit(main())
