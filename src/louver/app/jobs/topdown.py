"""Jobs of the page TopDown: forecasts from public knowledge, and releases and extensions that a ledger pays for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from louver.app.jobs.ledgers import loss_for_page
from louver.app.jobs.releases import listed, release_folder
from louver.app.spec_files import moved, written
from louver.data.write import replacing
from louver.errors import LouverError
from louver.privacy.ledger import Ledger
from louver.privacy.spend import Account
from louver.release.open import open_release
from louver.report.topdown import topdown_report
from louver.run import Run
from louver.schema.spec import READY, Spec, read_spec, with_ready
from louver.schema.validate import read_toml
from louver.topdown import check, extend, topdown
from louver.topdown.extension.first import refinement_of
from louver.topdown.extension.options import ExtendOptions
from louver.topdown.extension.problem import Extension, read_extension
from louver.topdown.extension.repair import check_extendable
from louver.topdown.extension.result import check_payer
from louver.topdown.load import read_design, read_first_design
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
    "Changes",
    "budget_of",
    "described",
    "extendable",
    "extended",
    "extension_described",
    "extension_loss",
    "fitting_schemas",
    "is_extension_paid",
    "is_paid",
    "is_sealed_in",
    "moved_spec",
    "paid_release",
    "planned",
    "ready_spec",
    "released",
]

PEOPLE_OF_A_LEAF = 50

Changes = Mapping[str, Any]
"""Keys of the section that were changed; None removes one."""
CHOICES = ("neighbours", "estimator", "shrink", "intervals")
"""Keys of the section that the page offers in addition to the budget."""


def described(path: str, run: Run) -> dict[str, Any]:
    """The request in a spec, and whether its public knowledge is consistent; the records are not opened."""
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


def planned(path: str, changes: Changes, simulations: int, run: Run) -> dict[str, Any]:
    """Errors of every level and query with the chosen shares and with equal ones; nothing is spent."""
    design = read_first_design(moved_spec(path, changes), run=run)
    leaves = _stand_in(path)
    equal = with_shares(design, equal_shares(design, measurable(design)))
    plans = {"asked": make_plan(design), "equal": make_plan(equal)}
    found = forecast(plans, leaves, "a made-up population", simulations=simulations, run=run)
    return {
        "lines": [asdict(line) for line in found.lines],
        "total": total_query(design).name,
        "loss": loss_for_page(plans["asked"].loss),
        "simulations": simulations,
    }


def is_paid(path: str, changes: Changes, ledger: str, out: str, run: Run) -> bool:
    """Whether an interrupted run of exactly this request on these data has been paid for, even if no noise has been drawn yet; the records
    are hashed, not read.
    """
    book, design = Ledger(Path(ledger)), read_first_design(moved_spec(path, changes), run=run)
    return is_sealed_in(Path(out), book, design, run) or book.is_pending(make_plan(design).request())


def is_sealed_in(out: Path, book: Ledger, design: Design, run: Run) -> bool:
    """Whether a ledger has paid for the measurements of an interrupted release of these data."""
    files = [work_of(out) / name for name in (MEASUREMENTS_FILE, INVARIANTS_FILE)]
    return Account(book, source_hash(design, run)).has_sealed(files)


def released(path: str, changes: Changes, ledger: str, out: str, run: Run) -> dict[str, Any]:
    """Measure, pay, estimate and publish; the records are those that the spec names."""
    return paid_release(topdown, path, changes, ledger, out, run)


def paid_release(
    verb: Callable[..., TopDownRelease], path: str, changes: Changes, ledger: str, out: str, run: Run
) -> dict[str, Any]:
    """Run a verb that pays; if it was cancelled after payment, it continues with the same noise."""
    made = verb(
        moved_spec(path, changes),
        ledger=ledger,
        out=out,
        resume=work_of(Path(out)).exists(),
        report=topdown_report,
        run=run,
    )
    return {"people": made.n_people, "verdict": made.verdict.to_dict()}


def moved_spec(path: str, changes: Changes) -> Spec:
    """The spec with the changes made on the page."""
    spec = read_spec(path)
    verbs = moved({"topdown": spec.verbs["topdown"]}, changes)
    return replace(spec, verbs={**spec.verbs, **verbs})


@lru_cache(maxsize=2)
def _stand_in(path: str) -> SparseLevel:
    design = read_first_design(path)
    return draw_stand_in(design, PEOPLE_OF_A_LEAF * design.spine.sizes[-1])


BUDGET = ("epsilon", "rho", "delta", "neighbours")
"""Keys of the first spec from which an extension by a ready-made schema starts."""


def extendable(releases: str, run: Run) -> list[str]:
    """Releases that can be extended: private ones by TopDown that are not extensions themselves; the newest first."""
    return [
        one["folder"]
        for one in listed(releases, run)
        if one["kind"] == "topdown" and one["is_private"] and "extension" not in one["promises"]
    ]


def fitting_schemas(path: str, releases: str, name: str, run: Run) -> list[str]:
    """Ready schemas that refine the attributes of a release, over the regions of a spec."""
    release = release_folder(releases, name)
    attributes = open_release(release).promises[0]["attributes"]
    found = []
    for schema in READY:
        run.check()
        try:
            design = read_design(_ready(Path(path), schema, release), None, ExtendOptions, run)
            refinement_of(design, attributes, schema)
        except LouverError:  # the schema does not fit
            continue
        found.append(schema)
    return found


def ready_spec(path: str, releases: str, name: str, schema: str, folder: str, run: Run) -> str:
    """Write a spec that extends a release by a predefined schema, with the source, regions and budget of the first spec."""
    content = _ready(Path(path), schema, release_folder(releases, name), Path(folder))
    made = Path(folder) / f"louver-{schema}.toml"
    with replacing(made) as stream:
        stream.write(written(content).encode())
    return str(made)


def _ready(path: Path, schema: str, release: Path, folder: Path | None = None) -> dict[str, Any]:
    """A spec based on a ready-made schema, to be read from a folder: files next to the first spec keep their names there, and all other
    paths are absolute.
    """

    def placed(name: str) -> str:
        return name if folder == path.parent else str((path.parent / name).resolve())

    content = read_toml(path)
    own, names = content["topdown"], read_design(path).spine.names
    regions = own.get("geography")
    source = {key: placed(value) if key == "file" else value for key, value in content["source"].items()}
    queries = with_ready({"schema": schema}, schema).get("topdown", {}).get("queries", {})
    return {
        "schema": schema,
        "source": source,
        "topdown": {
            **{key: own[key] for key in BUDGET if key in own},
            "extends": str(release.resolve()),
            **({"geography": {**regions, "leaves": placed(regions["leaves"])}} if regions else {}),
            "shares": {"levels": _equal(names), "queries": _equal(tuple(queries))},
        },
    }


def _equal(names: tuple[str, ...]) -> dict[str, str]:
    return {name: f"1/{len(names)}" for name in names}


def extension_described(path: str, changes: Changes, ledger: str | None, run: Run) -> dict[str, Any]:
    """What an extension adds to a release, which is verified first; the records are not opened."""
    extension = read_extension(moved_spec(path, changes), run=run)
    check_extendable(extension, run)
    design, first = extension.design, extension.first
    return {
        **budget_of(design),
        "first": first.path.name,
        "first_loss": {key: str(first.manifest.privacy[key]) for key in ("measure", "amount", "neighbours")},
        "people": int(first.leaves.count.sum()),
        "attributes": _attributes(extension),
        "cells": [first.n_cells, design.n_cells],
        "bounds": [statement.name for statement in design.statements],
        "rules": [rule.name for rule in extension.rules],
        "has_households": extension.household is not None,
        "refused": None if ledger is None else _refused(extension, Path(ledger)),
    }


def _attributes(extension: Extension) -> list[dict[str, Any]]:
    """Every attribute: its number of labels, and its counterpart in the first release, if any."""
    refinement, first = extension.refinement, extension.first
    before = {new: old for old, new in refinement.source.items()}
    return [
        {
            "name": one.name,
            "labels": len(one.labels),
            "before": before.get(one.name),
            "labels_before": len(first.attributes[before[one.name]]) if one.name in before else 0,
        }
        for one in extension.design.attributes
    ]


def _refused(extension: Extension, ledger: Path) -> str | None:
    """Why a ledger cannot pay for the extension, if it cannot."""
    try:
        check_payer(extension, Ledger(ledger))
    except LouverError as error:
        return str(error)
    return None


def extension_loss(path: str, changes: Changes, run: Run) -> dict[str, str]:
    """The privacy loss of an extension; the release that it extends is not opened."""
    return loss_for_page(
        make_plan(_without_bounds(read_design(moved_spec(path, changes), None, ExtendOptions, run))).loss
    )


def _without_bounds(design: Design) -> Design:
    """The plan of `read_extension`: bounds are enforced afterwards and cost nothing."""
    return replace(design, statements=())


def is_extension_paid(path: str, changes: Changes, ledger: str, out: str, run: Run) -> bool:
    """Whether an interrupted run of exactly this extension on these data has been paid for; the records are hashed, not read."""
    book, extension = Ledger(Path(ledger)), read_extension(moved_spec(path, changes), run=run)
    if is_sealed_in(Path(out), book, extension.design, run):
        return True
    return book.is_pending(extension.plan.request())


def extended(path: str, changes: Changes, ledger: str, out: str, run: Run) -> dict[str, Any]:
    """Measure, pay, estimate and publish the extension; the records are those that the spec names."""
    return paid_release(extend, path, changes, ledger, out, run)
