"""Tables of the records that `--where` lets through, as tables of all records: what a register remembers is about all of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from louver.audit.options import AuditOptions
from louver.errors import InputError
from louver.schema.attribute import Attribute
from louver.schema.recode import parse_recodes

__all__ = ["restrict"]

Labels = Mapping[str, tuple[str, ...]]


def restrict(options: AuditOptions, labels: Labels, attributes: Sequence[Attribute]) -> AuditOptions:
    """The same tables, statements and targets, each among the records with these labels."""
    if not labels:
        return options
    by_name = {attribute.name: attribute for attribute in attributes}

    def among(entry: Any, place: str) -> Any:
        where = dict(entry.where)
        recodes = {recode.attribute: recode for recode in parse_recodes(entry.recode, place)}
        for name, chosen in labels.items():
            allowed = list(chosen)
            if name in recodes:
                coarse, codes = by_name[name].recoded(recodes[name])
                inside = {int(codes[by_name[name].code_of(label)]) for label in chosen}
                outside = {
                    int(codes[code]) for code, label in enumerate(by_name[name].labels) if label not in chosen
                }
                if inside & outside:
                    raise InputError(
                        f'{place} merges labels of "{name}" of which --where lets only some through; keep them apart.',
                        option="--where",
                        column=name,
                    )
                allowed = [label for code, label in enumerate(coarse.labels) if code in inside]
            where[name] = tuple(label for label in where.get(name, allowed) if label in allowed)
            if not where[name]:
                raise InputError(
                    f'{place} has a where on "{name}" that shares no label with --where; change one of them.',
                    option="--where",
                    column=name,
                )
        return entry.model_copy(update={"where": where})

    return options.model_copy(
        update={
            "tables": tuple(among(table, f'table "{table.name}"') for table in options.tables),
            "known": tuple(among(entry, f"known {number}") for number, entry in enumerate(options.known, 1)),
            "targets": tuple(
                among(entry, f"target {number}") for number, entry in enumerate(options.targets, 1)
            ),
        }
    )
