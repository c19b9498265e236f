"""From a spec and what a release is for to plans side by side: nothing is spent, and the records are not opened."""

from __future__ import annotations

import json
import os
import re
import tomllib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from louver._arrays import Floats, Ints
from louver.data.read import open_source
from louver.data.write import replacing
from louver.engine.engines import Engine
from louver.errors import InputError
from louver.run import Run
from louver.schema.attribute import Attribute
from louver.topdown.design import Design
from louver.topdown.knowledge.check import read_counts
from louver.topdown.measuring.noise_plan import make_plan, measurable
from louver.topdown.options import PlanOptions, SharesOptions
from louver.topdown.planning.departures import stand_in_departures
from louver.topdown.planning.forecast import MEAN_ABSOLUTE, PlanForecast, forecast
from louver.topdown.planning.shares import (
    DEFAULT_PEOPLE,
    Aim,
    choose_shares,
    equal_shares,
    has_bayes_errors,
    wanted_queries,
    with_shares,
)
from louver.topdown.planning.stand_in import draw_stand_in, read_stand_in, refuse_records
from louver.topdown.problem import SparseLevel, add_levels

__all__ = ["plan_for"]

SPEC, DEFAULT, CHOSEN, EQUAL = "spec", "default", "chosen", "equal"


def plan_for(design: Design, options: PlanOptions, engine: Engine, run: Run | None = None) -> PlanForecast:
    """Forecast the spec's plan, the one chosen for the workload, and that of equal shares."""
    attend = (run or Run()).attend
    target = None if options.write is None else _new_file(design, Path(options.write))
    leaves, told = _stand_in(design, options, run)
    is_measured, aim = measurable(design), _aim(design, options, leaves)
    seen: dict[str, Any] = {"people": float(leaves.count.sum())}
    if options.stand_in is not None or not has_bayes_errors(design):
        seen = {"live": _live(design, leaves), "departures": stand_in_departures(design, leaves)}
    shares = {DEFAULT if design.has_chosen_shares else SPEC: design.options.shares}
    is_open = all(query.axes is not None for query in design.queries)
    if is_open or options.weight or options.target or target is not None:
        shares[CHOSEN] = attend(choose_shares, design, is_measured, aim, **seen).shares
    shares[EQUAL] = equal_shares(design, is_measured)
    plans = {
        name: attend(make_plan, with_shares(design, own)) for name, own in shares.items() if own is not None
    }
    found = forecast(plans, leaves, told, simulations=options.simulations, engine=engine, run=run)
    if options.target:
        alone = replace(aim, weights=aim.weights * 1e-3)
        least = attend(choose_shares, design, is_measured, alone, **seen)
        found = replace(found, notes=_verdicts(found, design, options.target, least.budget_factor))
    if target is not None:
        _write_spec(design, plans[CHOSEN].design.options.shares, target)
        notes = (*found.notes, f'The shares called "{CHOSEN}" are in {target.name}.')
        found = replace(found, headline=CHOSEN, notes=notes)
    return found


def _stand_in(design: Design, options: PlanOptions, run: Run | None) -> tuple[SparseLevel, str]:
    """Leaves to simulate on, and what they are in words."""
    composition = None
    if options.composition is not None:
        if options.stand_in is None:
            message = "option --composition bends a stand-in; give --stand-in too."
            raise InputError(message, option="--composition")
        composition = _composition(design, Path(options.composition), run)
    if options.stand_in is not None:
        leaves = read_stand_in(
            design, options.stand_in, people=options.people, composition=composition, run=run
        )
        if not leaves.count.any():
            raise InputError("the stand-in has nobody in it; name another.", option="--stand-in")
        return leaves, "the stand-in"
    leaves = draw_stand_in(design, options.people or DEFAULT_PEOPLE * design.spine.sizes[-1])
    return leaves, f"a made-up population of {int(leaves.count.sum()):,}"


def _composition(design: Design, path: Path, run: Run | None = None) -> Ints:
    """Counts (regions, cells) of the level that the file has a column for; of the whole where it has none."""
    refuse_records(design, path, "--composition", run)
    with open_source(path) as source:
        there = set(source.columns) - {attribute.name for attribute in design.attributes}
    level = max((i for i, name in enumerate(design.spine.names) if name in there), default=None)
    if level is None:
        counts = read_counts(design, path)[None]
    else:
        by = Attribute(name=design.spine.names[level], labels=design.spine.codes[level])
        counts = read_counts(design, path, by).reshape(by.size, -1)
    if not counts.any():
        message = f"{path.name} counts nobody; give the counts of an area."
        raise InputError(message, file=path.name, option="--composition")
    return counts


def _live(design: Design, leaves: SparseLevel) -> Floats:
    """Share of the rows of every query that are not empty, at every level (levels, queries)."""
    live = []
    for level in add_levels(design.spine, leaves, design.n_cells):
        some = level.part(0, min(level.n_regions, 2000))
        live.append([(query.answer(some) > 0).mean() for query in design.queries])
    return np.clip(np.array(live), 0.02, 1.0)


def _aim(design: Design, options: PlanOptions, leaves: SparseLevel) -> Aim:
    """What is asked of the release, in numbers."""
    wanted, aim = wanted_queries(design), Aim.named(options.workload, design)
    if options.weight:
        weights = np.zeros_like(aim.weights)
        for key, weight in options.weight.items():
            level, queries = _place(design, key, "--weight")
            if not 0.0 <= weight < 1e9:
                raise InputError("option --weight needs weights of 0 or more.", option="--weight")
            weights[level, queries] = weight
        if not weights.any():
            raise InputError(
                "option --weight leaves nothing that counts; weight something.", option="--weight"
            )
        aim = Aim(weights=weights)
    targets = {}
    for key, percent in options.target.items():
        level, queries = _place(design, key, "--target")
        if not 0.0 < percent < 1e6:
            raise InputError("option --target needs per cent above 0.", option="--target")
        for query in queries:
            people = float(leaves.count.sum()) / design.spine.sizes[level] / wanted[query].n_rows
            targets[level, query] = percent / 100.0 * people / MEAN_ABSOLUTE
    return replace(aim, targets=targets)


def _place(design: Design, key: str, option: str) -> tuple[int, list[int]]:
    """Level and queries that LEVEL/QUERY, or LEVEL alone, names."""
    names = [query.name for query in wanted_queries(design)]
    level, slash, query = key.rpartition("/") if "/" in key else (key, "", "")
    if level not in design.spine.names or (slash and query not in names):
        message = f"option {option} names a level or query that the spec does not have; write LEVEL/QUERY, as in tract/total."
        raise InputError(message, option=option)
    return design.spine.names.index(level), [names.index(query)] if slash else list(range(len(names)))


def _verdicts(
    found: PlanForecast, design: Design, targets: Mapping[str, float], factor: float
) -> tuple[str, ...]:
    """Whether each target is reached, and what budget it takes at least."""
    told, is_reached = [], True
    for key, percent in targets.items():
        level, queries = _place(design, key, "--target")
        for query in queries:
            line = found.line(CHOSEN, design.spine.names[level], wanted_queries(design)[query].name)
            error = 100.0 * (line.relative or 0.0)
            is_reached = is_reached and error <= percent
            how = "is reached" if error <= percent else "cannot be reached within the budget"
            told.append(
                f"{line.level}/{line.query} within {percent:g} % {how}: the forecast is {error:.2g} %."
            )
    missed = max(
        (found.line(CHOSEN, *place).relative or 0.0) * 100.0 / percent
        for place, percent in _each(design, targets)
    )
    power = 2.0 if design.budget.measure == "rho" else 1.0
    amount = float(design.budget.amount) * (factor if is_reached else missed**power)
    return (
        *told,
        f"It takes about {design.budget.measure} {amount:.2g} at least; the spec has {float(design.budget.amount):.3g}.",
    )


def _each(design: Design, targets: Mapping[str, float]) -> list[tuple[tuple[str, str], float]]:
    places = [(_place(design, key, "--target"), percent) for key, percent in targets.items()]
    return [
        ((design.spine.names[level], wanted_queries(design)[query].name), percent)
        for (level, queries), percent in places
        for query in queries
    ]


def _new_file(design: Design, path: Path) -> Path:
    """Where a spec can be written; refused where something is there, or where its file names would mean others."""
    spec = design.spec.path
    if not spec.is_file():
        raise InputError("option --write needs a spec that is a file.", option="--write")
    if os.path.lexists(path):
        raise InputError(f"option --write: {path.name} exists already; name a new file.", option="--write")
    if path.absolute().parent != spec.absolute().parent:
        message = (
            f"option --write must name a file beside {spec.name}, for its file names are relative to it."
        )
        raise InputError(message, option="--write")
    return path


def _write_spec(design: Design, shares: SharesOptions | None, path: Path) -> None:
    """The spec's own text with other shares."""
    assert shares is not None
    text = design.spec.path.read_text(encoding="utf-8")
    kept = re.sub(r"(?ms)^\[topdown\.shares(\.[^\]]*)?\].*?(?=^\[|\Z)", "", text)
    written = f"{kept.rstrip()}\n\n{_section(shares)}"
    wanted = tomllib.loads(text)
    wanted["topdown"]["shares"] = shares.model_dump(exclude_defaults=True)
    if _parsed(written) != wanted:
        message = f"{design.spec.path.name} has shares that are not in a section [topdown.shares] of their own; write them so."
        raise InputError(message, file=design.spec.path.name, option="--write")
    with replacing(path) as sink:
        sink.write(written.encode())


def _parsed(text: str) -> dict[str, Any] | None:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return None


def _section(shares: SharesOptions) -> str:
    lines = ["[topdown.shares]                       # chosen by `louver topdown plan`"]
    lines += [f"levels = {_table(shares.levels)}", f"queries = {_table(shares.queries)}"]
    if shares.at:
        at = ", ".join(f"{json.dumps(name)} = {_table(own)}" for name, own in shares.at.items())
        lines.append(f"at = {{ {at} }}")
    return "\n".join(lines) + "\n"


def _table(shares: Mapping[str, Any]) -> str:
    return "{ " + ", ".join(f'{json.dumps(name)} = "{share}"' for name, share in shares.items()) + " }"
