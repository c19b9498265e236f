"""What the page Audit asks for: several tables of the same people, alone and together with what was published before."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from typing import Any

from louver.audit import JointAudit, audit
from louver.release.pages import page_of
from louver.run import Run
from louver.schema.source import SourceOptions

__all__ = ["audited_together", "published_together"]

MOST_LISTED = 40


def audited_together(
    path: str, source: SourceOptions, options: Mapping[str, Any], run: Run
) -> dict[str, Any]:
    """What the tables give away together, and what to change."""
    return _told(_audit(path, source, options, run))


def published_together(
    path: str, source: SourceOptions, options: Mapping[str, Any], out: str, run: Run
) -> dict[str, Any]:
    """Publish the tables, where nothing speaks against it."""
    found = _audit(path, source, {**options, "publish": out}, run)
    return {"refused": None if found.published else found.refusal, "remark": found.remark}


def _audit(path: str, source: SourceOptions, options: Mapping[str, Any], run: Run) -> JointAudit:
    given = source.model_dump(exclude={"file", "uri"}, exclude_defaults=True)
    return audit(path, **given, **options, report=page_of, run=run)


def _told(found: JointAudit) -> dict[str, Any]:
    """The result as the page needs it: the verdict, and the first groups that are given away, each once."""
    told = found.to_dict()
    lines = {(cell.named, cell.range): cell.words or "" for cell in found.disclosed()}
    cells = [
        {"named": named, "range": known, "why": why}
        for (named, known), why in islice(lines.items(), MOST_LISTED)
    ]
    keys = ("verdict", "summary", "hide", "earlier", "remark")
    advice = found.advice
    advised = {
        "advised": "" if advice is None else advice.words,
        "n_out": 0 if advice is None else len(advice.leave_out),
    }
    return {key: told[key] for key in keys} | advised | {"cells": cells, "n_cells": len(lines)}
