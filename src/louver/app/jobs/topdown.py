"""What the page TopDown asks for: a forecast from public knowledge, and the release that a ledger pays for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from louver.app.jobs.books import loss_told
from louver.app.spec_files import moved
from louver.privacy.ledger import Ledger
from louver.privacy.spend import Account
from louver.report.topdown import topdown_report
from louver.run import Run
from louver.schema.spec import Spec, read_spec
from louver.topdown import check, topdown
from louver.topdown.load import read_first_design
from louver.topdown.measuring.noise_plan import make_plan, measurable
from louver.topdown.measuring.true_counts import source_hash
from louver.topdown.planning.forecast import forecast, total_query
from louver.topdown.planning.shares import equal_shares, with_shares
from louver.topdown.planning.stand_in import draw_stand_in
from louver.topdown.problem import Design, SparseLevel
from louver.topdown.result import INVARIANTS_FILE, MEASUREMENTS_FILE, TopDownRelease
from louver.topdown.solve import work_of

__all__ = [
    "CHOICES",
    "Asked",
    "budget_of",
    "described",
    "is_paid",
    "is_sealed_in",
    "moved_spec",
    "paid_release",
    "planned",
    "released",
]

PEOPLE_OF_A_LEAF = 50

Asked = Mapping[str, Any]
"""Keys of the section that were moved; None takes one away."""
CHOICES = ("neighbours", "estimator", "shrink", "intervals")
"""Keys of the section that the page asks for beside the budget."""


def described(path: str, run: Run) -> dict[str, Any]:
    """What a spec asks for, and whether its public knowledge can be true; the records are not opened."""
    design = read_first_design(path, run=run)
    plan = make_plan(design)
    found = check(path, run=run)
    return {
        **budget_of(design),
        "cells": design.n_cells,
        "exact": [statement.name for statement in plan.invariants],
        "is_consistent": found.is_consistent,
    }


def budget_of(design: Design) -> dict[str, Any]:
    """Levels, queries, budget and choices of a spec."""
    options = design.options
    return {
        "levels": [
            {"name": name, "regions": size, "share": str(share)}
            for name, size, share in zip(
                design.spine.names, design.spine.sizes, design.level_shares, strict=True
            )
        ],
        "queries": [query.name for query in design.queries],
        "query_shares": {name: str(share) for name, share in design.query_shares[-1].items()},
        "measure": "epsilon" if options.epsilon is not None else "rho",
        "amount": str(options.epsilon if options.epsilon is not None else options.rho),
        "delta": None if options.delta is None else str(options.delta),
        **{name: getattr(options, name) for name in CHOICES},
    }


def planned(path: str, asked: Asked, simulations: int, run: Run) -> dict[str, Any]:
    """Errors of every level and query with the shares asked for and with equal ones; nothing is spent."""
    design = read_first_design(moved_spec(path, asked), run=run)
    leaves = _stand_in(path)
    equal = with_shares(design, equal_shares(design, measurable(design)))
    plans = {"asked": make_plan(design), "equal": make_plan(equal)}
    found = forecast(plans, leaves, "a made-up population", simulations=simulations, run=run)
    return {
        "lines": [asdict(line) for line in found.lines],
        "total": total_query(design).name,
        "loss": loss_told(plans["asked"].loss),
        "simulations": simulations,
    }


def is_paid(path: str, asked: Asked, ledger: str, out: str, run: Run) -> bool:
    """Whether an interrupted run of just this on these data has been paid for, drawn or not; the records are hashed, not read."""
    book, design = Ledger(Path(ledger)), read_first_design(moved_spec(path, asked), run=run)
    return is_sealed_in(Path(out), book, design, run) or book.is_pending(make_plan(design).request())


def is_sealed_in(out: Path, book: Ledger, design: Design, run: Run) -> bool:
    """Whether a ledger has paid for the measurements of an interrupted release of these data."""
    files = [work_of(out) / name for name in (MEASUREMENTS_FILE, INVARIANTS_FILE)]
    return Account(book, source_hash(design, run)).has_sealed(files)


def released(path: str, asked: Asked, ledger: str, out: str, run: Run) -> dict[str, Any]:
    """Measure, pay, estimate and publish; the records are those that the spec names."""
    return paid_release(topdown, path, asked, ledger, out, run)


def paid_release(
    verb: Callable[..., TopDownRelease], path: str, asked: Asked, ledger: str, out: str, run: Run
) -> dict[str, Any]:
    """What a verb that pays releases; where it was cancelled after it was paid for, the same noise goes on."""
    made = verb(
        moved_spec(path, asked),
        ledger=ledger,
        out=out,
        resume=work_of(Path(out)).exists(),
        report=topdown_report,
        run=run,
    )
    return {"people": made.n_people, "verdict": made.verdict.to_dict()}


def moved_spec(path: str, asked: Asked) -> Spec:
    """The spec with what was moved on the page."""
    spec = read_spec(path)
    verbs = moved({"topdown": spec.verbs["topdown"]}, asked)
    return replace(spec, verbs={**spec.verbs, **verbs})


@lru_cache(maxsize=2)
def _stand_in(path: str) -> SparseLevel:
    design = read_first_design(path)
    return draw_stand_in(design, PEOPLE_OF_A_LEAF * design.spine.sizes[-1])
