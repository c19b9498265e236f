"""Write `cli.md` and `json.md`: the reference of the command line and of the keys in its JSON.

`make docs` runs this; a test fails where the files say something else than the program does.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
from typer.main import get_command

from louver.anonymize import anonymize
from louver.bounds import bounds, compare, suggest
from louver.cli import app
from louver.groups import groups

FOLDER = Path(__file__).parent
NOTE = "<!-- Written by docs/generate.py (`make docs`); edit the program, not this file. -->\n"

MEANINGS = {
    "summary": "what the whole table gives away",
    "rows": "rows of the published table, rows without anybody included",
    "cols": "columns of the published table",
    "n": "sample size",
    "reduced_total": "R, the sum of all reduced counts; null where conditionals are rounded",
    "zero_rows": "rows without anybody",
    "unit_rows": "rows with reduced sum 1; null where conditionals are rounded",
    "disclosed_rows": "rows with people all of whose counts are determined",
    "disclosed_zero_cells": "zero cells that everybody can see, those of rows without anybody included",
    "disclosed_small_cells": "cells with 0 < count < `--small` that are determined",
    "cells": "all cells in row order, or those of `--cells`",
    "cells[].row": "label of each row attribute",
    "cells[].col": "label of each column attribute",
    "lower": "least feasible count",
    "upper": "greatest feasible count",
    "values": (
        "all feasible counts as runs [start, stop, step]: stop inclusive, ascending, disjoint, as few runs as "
        "possible; a zero cell is [[0, 0, 1]]"
    ),
    "arrangements": "one entry per arrangement, least disclosive first",
    "name": "its name, or its attributes with a star on recoded ones",
    "arrangements[].rows": "attributes in the rows",
    "arrangements[].cols": "attributes in the columns",
    "arrangements[].summary": "as above",
    "suggestions": "redesigns without a disclosed small cell, most information first",
    "suggestions[].rows": "attributes in the rows",
    "suggestions[].cols": "attributes in the columns",
    "suggestions[].summary": "as above",
    "recodes": "attribute -> new label -> merged labels",
    "bits": "information of the table as first arranged",
    "suggestions[].bits": "information kept",
    "share": "information kept, as a share of that of the table as first arranged",
    "proved": "whether nothing keeps more",
    "examined": "arrangements whose bounds were computed",
    "utility": "what information means, in words",
}

ANONYMIZE_MEANINGS = {
    "method": "the method that found the classes",
    "k": "least number of records in a class",
    "records": "records published",
    "classes": "classes of equal quasi-identifiers",
    "smallest_class": "records in the smallest class",
    "suppressed": "records left out",
    "information_loss": "sum over records and quasi-identifiers of weight x range / attribute range",
    "gcp": "mean share of detail lost, weights aside",
    "lower_bound": "loss that every partition has at least, or null",
    "optimal": "whether no partition loses less",
    "seconds": "wall-clock time",
    "risk": "re-identification risk that is left",
    "risk.prosecutor_highest": "1 / smallest class",
    "risk.prosecutor_average": "classes / records",
    "risk.marketer": "expected share of records re-identified",
    "risk.journalist_highest": "1 / smallest matching class of the population, or null",
    "risk.uniques_before": "records alone with their quasi-identifiers before",
    "risk.uniques_after": "and after",
    "risk.class_sizes": "pairs of class size and number of classes",
    "utility": "what was lost",
    "utility.information_loss": "as above",
    "utility.gcp": "as above",
    "utility.discernibility": "sum of squared class sizes, and all records for each suppressed one",
    "utility.average_class_size": "records per class, over k",
    "utility.by_column": "pairs of quasi-identifier and mean share lost",
}

GROUPS_MEANINGS = {
    "mechanism": "its name, as `--mechanism` takes it",
    "epsilon": "the whole loss in pure epsilon, or null",
    "rho": "the whole loss in rho, or null; one of the two is given",
    "neighbours": "the neighbour relation that the loss is for",
    "levels": "one entry per level, `total` first",
    "levels[].name": "its name",
    "levels[].regions": "its number of regions",
    "levels[].share": "its share of the budget",
    "levels[].measured_l1": "forecast L1 error of the measurements as they are drawn",
    "levels[].forecast_l1": "forecast L1 error after post-processing: groups counted under a wrong size",
    "levels[].forecast_emd": "forecast earth mover's distance: the same for groups of at most each size",
    "levels[].l1_error": "with `--evaluate`: the true L1 error",
    "levels[].emd": "with `--evaluate`: the true earth mover's distance",
    "levels[].suffix_emd": "with `--evaluate`: the same for groups of at least each size",
    "total_groups": "released number of groups",
    "seconds": "wall-clock time",
}

KINDS = {
    bool: "true or false",
    int: "whole number",
    float: "number",
    str: "text",
    list: "list",
    tuple: "list",
    type(None): "number or null",
    dict: "object",
}


def cli_reference() -> str:
    """Every command with its arguments and options."""
    group = get_command(app)
    context = group.make_context("louver", [], resilient_parsing=True)
    parts = [NOTE, "# Command line\n", f"{group.help}\n", _options(group, context)]
    return "\n".join([*parts, *_commands(group, context)])


def _commands(group: Any, context: Any) -> Iterator[str]:
    """The commands of a group, and those below them."""
    for name, command in group.commands.items():
        below = command.make_context(name, [], parent=context, resilient_parsing=True)
        yield f"## `{below.command_path}`\n"
        yield f"{command.help}\n"
        if hasattr(command, "commands"):
            yield from _commands(command, below)
            continue
        usage = " ".join(below.get_usage().split()).removeprefix("Usage: ")
        yield f"```\n{usage}\n```\n"
        yield _options(command, below)
        if command.epilog:
            yield f"{command.epilog}\n"


def json_reference() -> str:
    """Every key of the JSON results, found by walking results of a small table."""
    ill = ["no", "mild", "severe"]
    people = pa.table({"site": list("AAABBB"), "ill": ill * 2, "count": [40, 20, 3, 30, 30, 2]})
    table = {"data": people, "weight": "count"}
    arranged = {"rows": ["site"], "cols": ["ill"]}
    sections = [
        ("`louver bounds`", bounds(**table, **arranged)),
        ("`louver bounds --arrangements`", compare(**table, arrangements=[arranged])),
        (
            "`louver bounds --suggest`: these keys beside those of `louver bounds`",
            suggest(**table, **arranged),
        ),
    ]
    sections.append(("`louver anonymize`", anonymize(people, quasi=["count"], k=3, method="sorted")))
    counted = {
        "size": "count",
        "groups": "count",
        "regions": ["site"],
        "max_size": 3,
        "domain_from_data": True,
    }
    sections.append(("`louver groups`", groups(people, **counted, epsilon=1, seed=1, evaluate=True)))
    parts = [
        NOTE,
        "# JSON\n",
        "`--json` prints one object. These keys are stable: other programs may rely on them.\n",
    ]
    for title, result in sections:
        own = {"`louver anonymize`": ANONYMIZE_MEANINGS, "`louver groups`": GROUPS_MEANINGS}.get(title)
        meaning = _meaning if own is None else own.__getitem__
        lines = [f"| `{path}` | {kind} | {meaning(path)} |" for path, kind in _walk(result.to_dict(), "")]
        parts.append(f"## {title}\n\n| key | value | meaning |\n|---|---|---|\n" + "\n".join(lines) + "\n")
    return "\n".join(parts)


def _options(command: Any, context: Any) -> str:
    lines = []
    for parameter in command.get_params(context):
        name, told = parameter.get_help_record(context)
        name = parameter.metavar if parameter.param_type_name == "argument" else name.replace("|", "\\|")
        lines.append(f"| `{name}` | {' '.join(told.split())} |\n")
    return "| option | meaning |\n|---|---|\n" + "".join(lines)


def _walk(value: dict[str, Any], path: str) -> Iterator[tuple[str, str]]:
    """Dotted path and kind of every key; keys that are labels of the data are left out."""
    for key, below in value.items():
        here = f"{path}.{key}".removeprefix(".")
        yield here, KINDS[type(below)]
        if here.endswith(("].row", "].col", ".recodes", ".summary")) and path:
            continue
        if isinstance(below, dict):
            yield from _walk(below, here)
        elif isinstance(below, list) and below and isinstance(below[0], dict):
            yield from _walk(below[0], f"{here}[]")


def _meaning(path: str) -> str:
    return MEANINGS[path] if path in MEANINGS else MEANINGS[path.rpartition(".")[2]]


def main() -> None:
    (FOLDER / "cli.md").write_text(cli_reference(), encoding="utf-8")
    (FOLDER / "json.md").write_text(json_reference(), encoding="utf-8")


if __name__ == "__main__":
    main()
