"""Rhode Island in the layout of the published noisy measurement files, with the production shares and noise of 2020.

Blocks, people, voting age and the eight groups of race and Hispanic origin are those of the 2010 Census; how these divide into 63 races,
group quarters and housing units is drawn from a fixed seed, so that the state is SEMI-SYNTHETIC. Some block groups lie in a made-up tribal
area: they form the second branch. The truth is kept apart from the files.
"""

from __future__ import annotations

import csv
import gzip
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from louver.privacy.distributions import DiscreteGaussian
from louver.privacy.noise import KeyedNoise, Nonce, perturb

SHAPE = (8, 2, 2, 63)
AXES = ("hhgq", "votingage", "hispanic", "cenrace")
LEVELS = ("State", "County", "Tract", "Block_Group", "Block")
WIDTHS = (3, 9, 13, 15, 31)
SCALE = (339 / 542) ** 2
SHARES = {"State": 1440, "County": 447, "Tract": 687, "Block_Group": 1256, "Block": 165}
ONE = ("hhgq",)
QUERIES = {
    "total": (),
    "cenrace": ("cenrace",),
    "hispanic": ("hispanic",),
    "votingage": ("votingage",),
    "hhinstlevels": ("hhinstlevels",),
    "hhgq": ("hhgq",),
    "hispanic * cenrace": ("hispanic", "cenrace"),
    "votingage * cenrace": ("votingage", "cenrace"),
    "votingage * hispanic": ("votingage", "hispanic"),
    "votingage * hispanic * cenrace": ("votingage", "hispanic", "cenrace"),
    "detailed": AXES,
}
SPLIT = {  # numerators in the order of QUERIES
    "State": (4097, (3773, 6, 6, 6, 6, 6, 12, 12, 6, 34, 230)),
    "County": (4097, (3126, 10, 10, 10, 10, 10, 28, 28, 10, 101, 754)),
    "Tract": (4102, (1567, 8, 5, 5, 5, 5, 1933, 20, 5, 67, 482)),
    "Block_Group": (4099, (1705, 3, 3, 3, 3, 3, 1055, 9, 3, 24, 1288)),
    "Block": (4097, (5, 9, 5, 5, 5, 5, 21, 21, 5, 71, 3945)),
}
GROUPS = ("hisp", "white", "black", "aian", "asian", "nhpi", "other", "two")
RACES = [c for k in range(1, 7) for c in combinations(range(6), k)]
CHANCE = (0.002, 0.001, 0.008, 0.001, 0.006, 0.001, 0.014)


def usual_variance(level: str, query: str) -> float:
    """The production variance of a query at a level."""
    whole, parts = SPLIT[level]
    share = parts[list(QUERIES).index(query)] / whole * SHARES[level] / 4099
    return SCALE / share


@dataclass(frozen=True)
class PublishedState:
    """Codes of the blocks in order, all counts (blocks, cells), housing units and facilities."""

    codes: list[str]
    counts: np.ndarray
    units: np.ndarray
    facilities: np.ndarray


def rhode_island(data: Path, *, blocks: int | None = None, every: int = 1, seed: int = 1) -> PublishedState:
    """The blocks that have people or a housing unit; of one tract in `every`, and the first so many, where these are given."""
    random = np.random.default_rng(seed)
    with gzip.open(data / "ri_2010_blocks.csv.gz", "rt", newline="") as file:
        rows = list(csv.DictReader(file))
    if every > 1:
        tracts = sorted({(row["county"], row["tract"]) for row in rows})
        kept = set(tracts[::every])
        rows = [row for row in rows if (row["county"], row["tract"]) in kept]
    rows = [row for row in rows if int(row["pop"]) > 0 or random.random() < 0.1][:blocks]
    counts = np.zeros((len(rows), *SHAPE), np.int32)
    for i, row in enumerate(rows):
        for g, name in enumerate(GROUPS):
            adults = int(row[f"vap_{name}"])
            for age, n in ((1, adults), (0, int(row[f"pop_{name}"]) - adults)):
                if n:
                    counts[i, 0, age] += _people(random, g, n)
    facilities = _move_into_quarters(random, counts)
    held = counts[:, 0].sum(axis=(1, 2, 3))
    units = np.where(held > 0, np.maximum(1, random.binomial(held, 0.42)), 0) + random.poisson(
        0.08 * (1 + held / 4)
    )
    order, codes = _codes(rows, facilities, random)
    return PublishedState(codes, counts.reshape(len(rows), -1)[order], units[order], facilities[order])


def _people(random: np.random.Generator, group: int, n: int) -> np.ndarray:
    """Hispanic origin by race (2, 63) of n people of a group."""
    found = np.zeros((2, 63), np.int32)
    if group == 0:
        chance = np.zeros(63)
        chance[[0, 1, 2, 5]] = 0.45, 0.08, 0.02, 0.35
        chance[6:21] = 0.1 / 15
        found[1] = random.multinomial(n, chance)
    elif group == 7:
        chance = np.zeros(63)
        chance[6:21] = np.array([30, 15, 18, 3, 20, 6, 4, 2, 12, 2, 1, 2, 3, 4, 1], float)
        chance[21:41] = 0.6
        found[0] = random.multinomial(n, chance / chance.sum())
    else:
        found[0, group - 1] = n
    return found


def _move_into_quarters(random: np.random.Generator, counts: np.ndarray) -> np.ndarray:
    """Facilities (blocks, 7) of group quarters; people of their blocks live in them."""
    facilities = (random.random((len(counts), 7)) < CHANCE).astype(np.int64)
    for block, kind in zip(*np.nonzero(facilities), strict=True):
        home = counts[block, 0].reshape(-1)
        allowed = home.copy()
        if kind + 1 == 3:
            allowed[:126] = 0  # nobody under 18 in nursing homes
        n = min(int(random.gamma(0.7, 45)) + 1, int(allowed.sum()) - 1)
        if n < 1:
            facilities[block, kind] = 0
            continue
        taken = random.multivariate_hypergeometric(allowed, n)
        home -= taken.astype(np.int32)
        counts[block, kind + 1] += taken.reshape(counts.shape[2:]).astype(np.int32)
    return facilities


def _codes(
    rows: list[dict[str, str]], facilities: np.ndarray, random: np.random.Generator
) -> tuple[np.ndarray, list[str]]:
    """Spine codes of 2020: block groups are cut by quarters, two tracts lie partly in a tribal area."""
    tracts: dict[tuple[str, str, str], str] = {}
    groups: dict[tuple[str, str, bool], str] = {}
    counts: dict[str, int] = {}
    codes = []
    tribal = {
        row["county"] + row["tract"] + row["blkgrp"]
        for row in rows
        if row["county"] == "009" and row["tract"].startswith("0512")
    }
    for row, held in zip(rows, facilities, strict=True):
        is_tribal = row["county"] + row["tract"] + row["blkgrp"] in tribal
        county = f"{int(is_tribal)}{row['state']}10{row['county']}1"
        key = (county, row["tract"], "")
        if key not in tracts:
            counts[county] = counts.get(county, 0) + 1
            tracts[key] = f"{county}{counts[county]:04d}"
        tract = tracts[key]
        group = (tract, row["blkgrp"], bool(held.any()))
        if group not in groups:
            counts[tract] = counts.get(tract, 0) + 1
            groups[group] = f"{tract}{counts[tract]:02d}"
        codes.append(
            groups[group] + row["state"] + row["county"] + row["tract"] + row["block"][0] + row["block"]
        )
    order = np.array(sorted(range(len(codes)), key=codes.__getitem__))
    return order, [codes[i] for i in order]


def publish(state: PublishedState, root: Path, *, seed: int, row_group: int = 1000) -> None:
    """Write the files: noise of a public seed, only children without noisy answers, constraints everywhere."""
    parents = [sorted({code[:width] for code in state.codes}) for width in WIDTHS]
    place = [{code: i for i, code in enumerate(own)} for own in parents]
    n_children = [np.zeros(len(own), int) for own in parents]
    for level in range(1, len(LEVELS)):
        for code in parents[level]:
            n_children[level - 1][place[level - 1][code[: WIDTHS[level - 1]]]] += 1
    for level, name in enumerate(LEVELS):
        of_block = np.array([place[level][code[: WIDTHS[level]]] for code in state.codes])
        starts = np.searchsorted(of_block, np.arange(len(parents[level])))
        units, facilities = (np.add.reduceat(x, starts) for x in (state.units, state.facilities))
        precision = np.array([_precision(code, level, place, n_children) for code in parents[level]])
        for branch in sorted({code[:3] for code in parents[level]}):
            own = np.array([i for i, code in enumerate(parents[level]) if code[:3] == branch])
            folder = root / f"{name}.parquet"
            _write_constraints(
                folder / "Constraint" / f"State={branch}",
                [parents[level][i] for i in own],
                units[own],
                facilities[own],
            )
            there = own[precision[own] > 0]
            if len(there):
                _write_answers(
                    folder / "DPQuery" / f"State={branch}",
                    name,
                    there,
                    parents[level],
                    starts,
                    state,
                    precision,
                    seed,
                    level,
                    row_group,
                )


def _precision(code: str, level: int, place: list[dict[str, int]], n_children: list[np.ndarray]) -> float:
    """Precision relative to the usual one: none for an only child, the shares of its chain for the topmost."""
    if level and n_children[level - 1][place[level - 1][code[: WIDTHS[level - 1]]]] == 1:
        return 0.0
    total, here = SHARES[LEVELS[level]], level
    current = code
    while here + 1 < len(LEVELS) and n_children[here][place[here][current]] == 1:
        current = next(c for c in place[here + 1] if c.startswith(current))
        here += 1
        total += SHARES[LEVELS[here]]
    return total / SHARES[LEVELS[level]]


def _row(name: str, axes: tuple[str, ...]) -> tuple[dict[str, str], list[int], tuple[int, ...]]:
    """Axis columns and shape of a query."""
    columns, shape, summed = {}, [], []
    for i, axis in enumerate(AXES):
        merged = axis == "hhgq" and "hhinstlevels" in axes
        inside = axis in axes or merged
        columns[axis] = (
            ("detailed" if name == "detailed" else "hhinstlevels" if merged else axis) if inside else "*"
        )
        shape.append(3 if merged else SHAPE[i] if inside else 1)
        summed += [] if inside else [i + 1]
    return columns, shape, tuple(summed)


def _write_answers(folder, level, own, codes, starts, state, precision, seed, number, row_group) -> None:
    folder.mkdir(parents=True)
    ends = np.append(starts[1:], len(state.codes))
    fields = [("geocode", pa.string()), ("query_name", pa.string()), *((a, pa.string()) for a in AXES)]
    fields += [
        ("query_shape", pa.list_(pa.int32())),
        ("value", pa.list_(pa.int32())),
        ("variance", pa.float32()),
    ]
    schema = pa.schema(fields)
    with pq.ParquetWriter(folder / "part-00000.parquet", schema) as writer:
        for first in range(0, len(own), row_group):
            here = own[first : first + row_group]
            if level == "Block":
                tables = state.counts[here]
            else:
                tables = np.stack([state.counts[starts[i] : ends[i]].sum(axis=0) for i in here])
            tables = tables.reshape(-1, *SHAPE).astype(np.int64)
            for q, (name, axes) in enumerate(QUERIES.items()):
                columns, shape, summed = _row(name, axes)
                values = tables.sum(axis=summed).reshape(len(here), -1)
                if name == "hhinstlevels":
                    values = np.stack(
                        [values[:, a:b].sum(axis=1) for a, b in ((0, 1), (1, 5), (5, 8))], axis=1
                    )
                usual, noisy = usual_variance(level, name), np.zeros_like(values)
                for factor in np.unique(precision[here]):
                    law = DiscreteGaussian(Fraction(usual / factor).limit_denominator(10**9))
                    chosen = precision[here] == factor
                    noise = KeyedNoise.from_seed(seed * 1000 + int(folder.name[-3:]))
                    noisy[chosen] = perturb(values, law, noise, Nonce(number, q, first))[chosen]
                table = {
                    "geocode": [codes[i] for i in here],
                    "query_name": [f"{name}_dpq"] * len(here),
                    **{axis: [entry] * len(here) for axis, entry in columns.items()},
                    "query_shape": [shape] * len(here),
                    "value": pa.ListArray.from_arrays(
                        pa.array(np.arange(len(here) + 1, dtype=np.int32) * noisy.shape[1]),
                        pa.array(noisy.ravel().astype(np.int32)),
                    ),
                    "variance": (usual / precision[here]).astype(np.float32),
                }
                arrays = [
                    x if isinstance(x := table[f.name], pa.Array) else pa.array(x, f.type) for f in schema
                ]
                writer.write_table(pa.table(arrays, schema=schema))


def _write_constraints(folder, codes, units, facilities) -> None:
    folder.mkdir(parents=True)
    star = dict.fromkeys(AXES, "*")
    rows = []
    for code, n, held in zip(codes, units.tolist(), facilities.tolist(), strict=True):
        bounds = {**star, "hhgq": "hhgq", "geocode": code, "query_shape": [8, 1, 1, 1], "variance": 0.0}
        rows += [
            {**bounds, "query_name": "hhgq_total_lb_con", "sign": ">=", "value": [0, *held]},
            {**bounds, "query_name": "hhgq_total_ub_con", "sign": "<=", "value": [99999 * n, *(99999 * x for x in held)]},
            {
                **star, "hhgq": "gqNursingTotal", "votingage": "nonvoting", "geocode": code, "query_shape": [1, 1, 1, 1],
                "variance": 0.0, "query_name": "nurse_nva_0_con", "sign": "=", "value": [0],
            },
        ]  # fmt: skip
    pq.write_table(pa.Table.from_pylist(rows), folder / "part-00000.parquet")
