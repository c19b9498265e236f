"""Ready schemas by name: `schema = "pl94"` in a spec stands for the fragment of that name here.

A spec's own attributes, queries and refinements go before the fragment's of the same name; its structural zeros and rules are added.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from louver.errors import InputError

__all__ = ["READY", "with_ready"]

READY = ("pl94", "dhc-persons")
"""Schemas that a spec can name."""

READY_FOLDER = Path(__file__).with_name("ready")


def with_ready(mapping: Mapping[str, Any], where: str) -> Mapping[str, Any]:
    """A spec with the schema that it names, if any, written out; `where` is what messages call the spec.

    Raises
    ------
    InputError
        If there is no schema of that name.
    """
    if "schema" not in mapping:
        return mapping
    name = mapping["schema"]
    if name not in READY:
        known = " or ".join(f'"{one}"' for one in READY)
        raise InputError(f'{where}: key "schema" must be {known}.', file=where, option="schema")
    ready = tomllib.loads((READY_FOLDER / f"{name}.toml").read_text(encoding="utf-8"))
    return _joined(ready, {key: value for key, value in mapping.items() if key != "schema"}, "")


def _joined(ready: Mapping[str, Any], own: Mapping[str, Any], place: str) -> dict[str, Any]:
    """Two tables as one: below `[attributes]` and `[topdown]` by key, lists of tables one after another."""
    joined = dict(ready)
    for key, value in own.items():
        before = ready.get(key)
        if isinstance(before, list) and isinstance(value, list) and key in ("structural_zeros", "rules"):
            joined[key] = [*before, *value]
        elif isinstance(before, Mapping) and isinstance(value, Mapping) and place in ("", "topdown"):
            joined[key] = _joined(before, value, key)
        else:
            joined[key] = value
    return joined
