"""What the page TopDown asks for: a forecast from public knowledge, and the release that a ledger pays for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from louver.report.topdown import topdown_report
from louver.run import Run
from louver.schema.spec import Spec, read_spec
from louver.topdown import check, topdown
from louver.topdown.forecast import forecast, total_query
from louver.topdown.load import read_design
from louver.topdown.plan import make_plan, measurable
from louver.topdown.problem import SparseLevel
from louver.topdown.result import TopDownRelease
from louver.topdown.shares import equal_shares, with_shares
from louver.topdown.stand_in import draw_stand_in

__all__ = ["Asked", "described", "planned", "released"]

MOST_REGIONS = 1_000
"""Rows of regions that cross to the page."""
PEOPLE_OF_A_LEAF = 50

Asked = Mapping[str, Any]
"""Keys of the section that were moved: epsilon or rho, and shares."""


def described(path: str, run: Run) -> dict[str, Any]:
    """What a spec asks for, and whether its public knowledge can be true; the records are not opened."""
    design = read_design(path, run=run)
    plan = make_plan(design)
    found = check(path, run=run)
    options = design.options
    return {
        "levels": [
            {"name": name, "regions": size, "share": float(share)}
            for name, size, share in zip(
                design.spine.names, design.spine.sizes, design.level_shares, strict=True
            )
        ],
        "queries": [query.name for query in design.queries],
        "query_shares": {name: float(share) for name, share in design.query_shares[-1].items()},
        "measure": "epsilon" if options.epsilon is not None else "rho",
        "amount": str(options.epsilon if options.epsilon is not None else options.rho),
        "has_delta": options.delta is not None,
        "neighbours": options.neighbours,
        "cells": design.n_cells,
        "exact": [statement.name for statement in plan.invariants],
        "is_consistent": found.is_consistent,
        "loss": str(plan.loss.amount),
    }


def planned(path: str, asked: Asked, simulations: int, run: Run) -> dict[str, Any]:
    """Errors of every level's totals with the shares asked for and with equal ones; nothing is spent."""
    design = read_design(_moved(path, asked), run=run)
    leaves = _stand_in(path)
    equal = with_shares(design, equal_shares(design, measurable(design)))
    plans = {"asked": make_plan(design), "equal": make_plan(equal)}
    found = forecast(plans, leaves, "a made-up population", simulations=simulations, run=run)
    total = total_query(design).name
    return {
        "lines": [asdict(line) for line in found.lines if line.query == total],
        "loss": str(plans["asked"].loss.amount),
        "simulations": simulations,
    }


def released(path: str, asked: Asked, ledger: str, out: str, run: Run) -> dict[str, Any]:
    """Measure, pay, estimate and publish; the records are those that the spec names."""
    made = topdown(_moved(path, asked), ledger=ledger, out=out, report=topdown_report, run=run)
    return {"name": Path(out).name, "people": made.to_dict()["people"], "table": _regions(made)}


def _moved(path: str, asked: Asked) -> Spec:
    """The spec with what was moved on the page."""
    spec = read_spec(path)
    section = {**spec.verbs["topdown"], **asked}
    return replace(spec, verbs={**spec.verbs, "topdown": section})


@lru_cache(maxsize=2)
def _stand_in(path: str) -> SparseLevel:
    design = read_design(path)
    return draw_stand_in(design, PEOPLE_OF_A_LEAF * design.spine.sizes[-1])


def _regions(made: TopDownRelease) -> list[dict[str, Any]]:
    """People of every region with its interval, each below its own: published numbers alone."""
    spine = made.plan.design.spine
    total = total_query(made.plan.design)
    rows: dict[tuple[int, int], dict[str, Any]] = {}
    for level, histogram in enumerate(list(made.levels())[::-1]):
        people = total.answer(histogram)[:, 0]
        known = made.known_error
        for region, code in enumerate(spine.codes[level]):
            rows[level, region] = {
                "level": level,
                "name": code or spine.names[level],
                "persons": int(people[region]),
                "lower": int(people[region]),
                "upper": int(people[region]),
            }
        if known is not None:
            region_numbers = np.arange(len(people))
            found = known.intervals(level, total, region_numbers, np.zeros_like(region_numbers), people)
            for region, (lower, upper) in enumerate(zip(found.lower, found.upper, strict=True)):
                rows[level, region] |= {"lower": int(lower), "upper": int(upper)}
    return _in_order(rows, spine.sizes, [list(map(int, one)) for one in spine.starts])


def _in_order(
    rows: Mapping[tuple[int, int], dict[str, Any]], sizes: Sequence[int], starts: Sequence[Sequence[int]]
) -> list[dict[str, Any]]:
    """Regions as a tree is read: each one, then those inside it."""
    listed: list[dict[str, Any]] = []
    waiting = [(0, region) for region in reversed(range(sizes[0]))]
    while waiting and len(listed) < MOST_REGIONS:
        level, region = waiting.pop()
        listed.append(rows[level, region])
        if level + 1 < len(sizes):
            inside = range(starts[level][region], starts[level][region + 1])
            waiting += [(level + 1, child) for child in reversed(inside)]
    return listed
