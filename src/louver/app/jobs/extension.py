"""What the page TopDown asks for to extend a release: which releases and schemas fit, what is added, and the release itself."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from louver.app.jobs.books import listed, loss_told, release_folder
from louver.app.jobs.topdown import Asked, budget_of, is_sealed_in, moved_spec, paid_release
from louver.app.spec_files import written
from louver.data.write import replacing
from louver.errors import LouverError
from louver.privacy.ledger import Ledger
from louver.release.open import open_release
from louver.run import Run
from louver.schema.spec import READY, with_ready
from louver.schema.validate import read_toml
from louver.topdown import extend
from louver.topdown.extension.first import refinement_of
from louver.topdown.extension.options import ExtendOptions
from louver.topdown.extension.problem import Extension, read_extension
from louver.topdown.extension.repair import check_extendable
from louver.topdown.extension.result import check_payer
from louver.topdown.load import read_design
from louver.topdown.measuring.noise_plan import make_plan
from louver.topdown.problem import Design

__all__ = [
    "extendable",
    "extended",
    "extension_described",
    "extension_loss",
    "fitting_schemas",
    "is_extension_paid",
    "ready_spec",
]

BUDGET = ("epsilon", "rho", "delta", "neighbours")
"""Keys of the first spec that an extension by a ready schema begins with."""


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
        except LouverError:  # it does not fit
            continue
        found.append(schema)
    return found


def ready_spec(path: str, releases: str, name: str, schema: str, folder: str, run: Run) -> str:
    """Write the spec that extends a release by a ready schema, with source, regions and budget of the first spec."""
    content = _ready(Path(path), schema, release_folder(releases, name), Path(folder))
    made = Path(folder) / f"louver-{schema}.toml"
    with replacing(made) as stream:
        stream.write(written(content).encode())
    return str(made)


def _ready(path: Path, schema: str, release: Path, folder: Path | None = None) -> dict[str, Any]:
    """A spec by a ready schema, to be read from a folder: the files beside the first spec keep their names there, elsewhere paths are whole."""

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


def extension_described(path: str, asked: Asked, ledger: str | None, run: Run) -> dict[str, Any]:
    """What an extension adds to a release, which is verified first; the records are not opened."""
    extension = read_extension(moved_spec(path, asked), run=run)
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
    """Every attribute: how many labels it has, and what it was in the first release, if anything."""
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


def extension_loss(path: str, asked: Asked, run: Run) -> dict[str, str]:
    """The privacy loss of an extension; the release that it extends is not opened."""
    return loss_told(
        make_plan(_without_bounds(read_design(moved_spec(path, asked), None, ExtendOptions, run))).loss
    )


def _without_bounds(design: Design) -> Design:
    """As `read_extension` plans it: bounds are kept afterwards and cost nothing."""
    return replace(design, statements=())


def is_extension_paid(path: str, asked: Asked, ledger: str, out: str, run: Run) -> bool:
    """Whether an interrupted run of just this extension on these data has been paid for; the records are hashed, not read."""
    book, extension = Ledger(Path(ledger)), read_extension(moved_spec(path, asked), run=run)
    if is_sealed_in(Path(out), book, extension.design, run):
        return True
    return book.is_pending(extension.plan.request())


def extended(path: str, asked: Asked, ledger: str, out: str, run: Run) -> dict[str, Any]:
    """Measure, pay, estimate and publish the extension; the records are those that the spec names."""
    return paid_release(extend, path, asked, ledger, out, run)
