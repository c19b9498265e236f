"""Files of tau-ARGUS: a batch file (`.arb`) with its metadata (`.rda`), records (`.asc`) or a ready table (`.tab`), hierarchies,
and a priori files.

Features on which the tau-ARGUS manual and public programs that write these files agree are supported; anything else, and anything that
louver does differently, is refused with file and line. Commands that only control how tau-ARGUS displays or stores its results are ignored.

| file | what is read |
|---|---|
| `.rda` | separator, columns (with start and width where the records have none), `TOTCODE`, hierarchies, `DECIMALS`, roles of columns |
| `.arb` | data, metadata, one table for each `SPECIFYTABLE` with its `SAFETYRULE`, `APRIORI`, `SUPPRESS` by `MOD`, `OPT`, `GH`, `NET`, `RND` |
| `.hst` | `u` (hide), `p` (publish), `s` (neither) and `c` (cost) |
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from louver.errors import InputError
from louver.schema.validate import decode_text, read_bytes

__all__ = ["read_argus"]

PASSED_OVER = frozenset(
    {
        "READMICRODATA",
        "READTABLE",
        "WRITETABLE",
        "GOINTERACTIVE",
        "LOGBOOK",
        "VERSIONINFO",
        "SOLVER",
        "SILENT",
        "CLEAR",
    }
)
ROLES = frozenset(
    {
        "RECODEABLE",
        "RECODABLE",
        "NUMERIC",
        "WEIGHT",
        "HOLDING",
        "FREQUENCY",
        "MAXSCORE",
        "STATUS",
        "COST",
        "SHADOW",
    }
)
IGNORED = frozenset({"CODELIST", "HIERARCHICAL", "TRUNCABLE", "PEEPER"})
"""Commands without an effect: labels of codes, and settings implied by another line."""

HIDING = ("MOD", "OPT", "GH", "GHMITER", "NET", "NETWORK")


@dataclass(slots=True)
class _Column:
    """A column of the metadata; `start` and `width` are None in a file with a separator."""

    name: str
    start: int | None = None
    width: int | None = None
    role: str = ""
    values: dict[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class _Meta:
    file: str
    folder: Path
    columns: list[_Column]
    separator: str | None
    codes: dict[str, str]

    def find_column(self, name: str, line: _Line) -> _Column:
        found = next((one for one in self.columns if one.name.lower() == name.lower()), None)
        if found is None:
            raise line.error(f'names the column "{name}", which {self.file} does not describe')
        return found

    def with_role(self, role: str) -> list[str]:
        return [one.name for one in self.columns if one.role == role]


@dataclass(frozen=True, slots=True)
class _Line:
    """A line of a file: its number, the command, and the rest."""

    file: str
    number: int
    command: str
    rest: str

    def error(self, problem: str) -> InputError:
        return InputError(f"{self.file}: line {self.number} {problem}.", file=self.file, row=self.number)


def read_argus(path: Path) -> tuple[dict[str, Any], pa.Table | None]:
    """The options of `louver protect` into which a batch file is translated, and its records, if it has any.

    Raises
    ------
    InputError
        On a command that is not understood, or that requests something that louver does not do.
    """
    lines = list(_lines(path))
    by_command = {
        command: [line for line in lines if line.command == command]
        for command in {line.command for line in lines}
    }
    for command in ("OPENMICRODATA", "OPENTABLEDATA", "OPENMETADATA"):
        if len(by_command.get(command, ())) > 1:
            raise by_command[command][1].error(
                f"repeats {command}; louver reads one of each from a batch file"
            )
    micro, table, meta_line = (
        next(iter(by_command.get(command, ())), None)
        for command in ("OPENMICRODATA", "OPENTABLEDATA", "OPENMETADATA")
    )
    source = micro or table
    if source is None or (micro is not None and table is not None):
        raise InputError(f"{path.name} needs either OPENMICRODATA or OPENTABLEDATA.", file=path.name)
    file = path.parent / _file(source)
    meta = _meta(path.parent / _file(meta_line) if meta_line is not None else file.with_suffix(".rda"))
    reader = _Batch(meta=meta, file=file, is_micro=micro is not None)
    for line in lines:
        reader.take(line)
    return reader.options(path.name), _records(file, meta) if micro is not None else None


def _lines(path: Path) -> Iterator[_Line]:
    """Commands of a batch file; a comment begins with //."""
    for number, raw in enumerate(decode_text(read_bytes(path), path.name).splitlines(), start=1):
        text = raw.split("//", 1)[0].strip() if raw.lstrip().startswith("//") else raw.strip()
        if not text:
            continue
        found = re.fullmatch(r"<\s*([A-Za-z]+)\s*>\s*(.*)", text)
        if found is None:
            raise InputError(
                f"{path.name}: line {number} does not start with a command in <...>.",
                file=path.name,
                row=number,
            )
        yield _Line(path.name, number, found[1].upper(), found[2].strip())


def _file(line: _Line) -> str:
    found = re.fullmatch(r'"([^"]+)"|(\S+)', line.rest)
    if found is None:
        raise line.error("needs the name of a file")
    return (found[1] or found[2]).replace("\\", "/")


# Metadata -------------------------------------------------------------------------------------------------------------


def _meta(path: Path) -> _Meta:
    """Columns of the data, in their order."""
    columns: list[_Column] = []
    separator: str | None = None
    codes = {"SAFE": "s", "UNSAFE": "u", "PROTECT": "z"}
    for number, raw in enumerate(decode_text(read_bytes(path), path.name).splitlines(), start=1):
        text = raw.strip()
        if not text or text.startswith("//"):
            continue
        found = re.fullmatch(r"<\s*([A-Za-z]+)\s*>\s*(.*)", text)
        line = _Line(
            path.name, number, found[1].upper() if found else "", (found[2] if found else text).strip()
        )
        if found is None:
            columns.append(_column(line, separator))
        elif line.command == "SEPARATOR":
            separator = _plain(line)
            if len(separator) != 1:
                raise line.error("needs a separator of one character")
        elif line.command in codes and not columns:
            codes[line.command] = _plain(line)
        elif not columns:
            raise line.error(f"has {line.command} before any column")
        elif line.command in ROLES:
            columns[-1].role = line.command.replace("RECODABLE", "RECODEABLE")
        elif line.command in ("TOTCODE", "HIERCODELIST", "HIERLEADSTRING", "HIERLEVELS", "DECIMALS"):
            columns[-1].values[line.command] = _plain(line)
        elif line.command not in IGNORED:
            raise line.error(f"has {line.command}, which louver does not read")
    if not columns:
        raise InputError(f"{path.name} describes no columns.", file=path.name)
    return _Meta(file=path.name, folder=path.parent, columns=columns, separator=separator, codes=codes)


def _plain(line: _Line) -> str:
    """A value without its quotes, if it has any."""
    found = re.fullmatch(r'"([^"]*)"|([^"]+)', line.rest)
    if found is None:
        raise line.error(f"needs a value of {line.command}")
    return found[1] if found[1] is not None else found[2].strip()


def _column(line: _Line, separator: str | None) -> _Column:
    """Name, plus start and width if there is no separator; codes of missing values follow and are treated like any other code."""
    name, *rest = re.findall(r'"[^"]*"|\S+', line.rest)
    if separator is not None:
        return _Column(name.strip('"'))
    numbers = rest[:2]
    if len(numbers) < 2 or not all(text.isdecimal() and text.isascii() and int(text) > 0 for text in numbers):
        raise line.error("needs the first position and the width of a column, because there is no separator")
    return _Column(name.strip('"'), int(numbers[0]), int(numbers[1]))


def _records(path: Path, meta: _Meta) -> pa.Table:
    """Records with fixed positions or separators; there is no header line."""
    rows = _rows(path, meta.separator, meta.columns)
    columns = list(zip(*rows, strict=True)) if rows else [() for _ in meta.columns]
    return pa.table(
        {one.name: pa.array(own, pa.string()) for one, own in zip(meta.columns, columns, strict=True)}
    )


def _rows(path: Path, separator: str | None, columns: Sequence[_Column]) -> list[list[str | None]]:
    found = []
    for number, raw in enumerate(decode_text(read_bytes(path), path.name).splitlines(), start=1):
        if not raw.strip():
            continue
        if separator is not None:
            parts = [text.strip().strip('"').strip() for text in raw.split(separator)]
        else:
            ends = [((one.start or 1) - 1, (one.start or 1) - 1 + (one.width or 0)) for one in columns]
            parts = [raw[first:last].strip() for first, last in ends]
        if len(parts) != len(columns):
            raise InputError(
                f"{path.name}: row {number} has {len(parts)} fields, but the metadata describe {len(columns)}.",
                file=path.name,
                row=number,
            )
        found.append([text or None for text in parts])
    return found


# Commands -------------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Batch:
    """The commands read so far."""

    meta: _Meta
    file: Path
    is_micro: bool
    tables: list[dict[str, Any]] = field(default_factory=list)
    rules: list[dict[str, Any]] = field(default_factory=list)
    status: list[dict[str, Any]] = field(default_factory=list)
    methods: set[tuple[str, int | None]] = field(default_factory=set)
    costs: set[str] = field(default_factory=set)
    is_weighted: bool = False
    manual: float | None = None

    def take(self, line: _Line) -> None:
        if line.command in PASSED_OVER or line.command.startswith("OPEN"):
            return
        doing = {
            "SPECIFYTABLE": self._table,
            "SAFETYRULE": self._rules_of,
            "SUPPRESS": self._suppress,
            "APRIORI": self._apriori,
        }.get(line.command)
        if doing is None:
            raise line.error(f"has {line.command}, which louver does not read")
        doing(line)

    def options(self, name: str) -> dict[str, Any]:
        if not self.tables:
            raise InputError(f"{name} specifies no table.", file=name)
        if len(self.methods) > 1:
            raise InputError(
                f"{name} protects its tables in different ways; write a batch file for each.", file=name
            )
        if len(self.costs) > 1:
            raise InputError(
                f"{name} has tables with different costs; write a batch file for each.", file=name
            )
        for one in self.status:
            if one["set"] == "hide" and self.manual:
                one["range"] = self.manual
        found: dict[str, Any] = {
            "tables": self.tables,
            "codes": self._codes(),
            "rules": self.rules,
            "status": self.status,
        }
        method, base = next(iter(self.methods), ("hide", None))
        found["method"] = method
        if base is not None:
            found["base"] = base
        if method == "hide":
            found["minimise"] = next(iter(self.costs))
        if self.is_micro:
            for role, option in (("HOLDING", "holding"), ("WEIGHT", "sampling_weight")):
                names = self.meta.with_role(role)
                if names and (role != "WEIGHT" or self.is_weighted):
                    found[option] = names[0]
        return found

    def _codes(self) -> dict[str, dict[str, Any]]:
        found = {}
        used = dict.fromkeys(name for table in self.tables for name in table["by"])
        for column in self.meta.columns:
            if column.name not in used:
                continue
            values = column.values
            own: dict[str, Any] = {"total": values.get("TOTCODE", "Total")}
            if "HIERCODELIST" in values:
                own["hierarchy"] = str(self.meta.folder / values["HIERCODELIST"].replace("\\", "/"))
                own["mark"] = values.get("HIERLEADSTRING", "@")
            elif "HIERLEVELS" in values:
                own["levels"] = [
                    int(text) for text in values["HIERLEVELS"].split() if text.isdecimal() and int(text)
                ]
            found[column.name] = own
        return found

    def _table(self, line: _Line) -> None:
        """Attributes | response variable | shadow variable | cost variable."""
        parts = [part.strip() for part in line.rest.split("|")]
        names = re.findall(r'"([^"]+)"', parts[0])
        response = re.sub(r'["\s]', "", parts[1]) if len(parts) > 1 else ""
        if not names or not response or len(parts) > 4:
            raise line.error('needs attributes and a response variable, as in "A""B"|"value"||')
        shadow, cost = ((re.sub(r'["\s]', "", part).split(",")[0]) for part in (*parts[2:], "", "")[:2])
        columns = [self.meta.find_column(name, line) for name in names]
        is_count = response.lower() == "<freq>"
        table: dict[str, Any] = {"name": f"table {len(self.tables) + 1}", "by": [one.name for one in columns]}
        if not is_count:
            value = self.meta.find_column(response, line)
            table["value"] = value.name
            if "DECIMALS" in value.values:
                table["decimals"] = _number(line, value.values["DECIMALS"], whole=True)
        if shadow and shadow.lower() != response.lower():
            raise line.error("has a shadow variable; louver applies its rules to the response variable")
        if not self.is_micro:
            self._of_file(table, is_count)
        self.costs.add(self._cost(line, cost, response, table))
        self.tables.append(table)

    def _of_file(self, table: dict[str, Any], is_count: bool) -> None:
        """Columns of the numbers in a ready table."""
        table["file"] = str(self.file)
        table["columns"] = [one.name for one in self.meta.columns]
        table["separator"] = self.meta.separator
        if frequency := self.meta.with_role("FREQUENCY"):
            table["frequency"] = frequency[0]
        if status := self.meta.with_role("STATUS"):
            table["status"] = status[0]
            table["status_codes"] = {
                self.meta.codes["UNSAFE"]: "hide",
                self.meta.codes["PROTECT"]: "publish",
                self.meta.codes["SAFE"]: "",
            }
        if not is_count:
            table["largest"] = self.meta.with_role("MAXSCORE")

    def _cost(self, line: _Line, cost: str, response: str, table: dict[str, Any]) -> str:
        """The cost to minimise: the value unless a cost variable is given, -1 for the number of cells."""
        if cost == "-1":
            return "number"
        if not cost or cost.lower() == response.lower():
            return "value"
        if cost.startswith("-") or self.is_micro:
            raise line.error("has an unknown cost; leave it out, or give -1 for the number of cells")
        table["cost"] = self.meta.find_column(cost, line).name
        return "cost"

    def _rules_of(self, line: _Line) -> None:
        """Rules of the preceding table; the third and later rules of a kind concern holdings."""
        if not self.tables:
            raise line.error("comes before any table")
        seen: dict[str, int] = {}
        for text in filter(None, (part.strip() for part in line.rest.split("|"))):
            found = re.fullmatch(r"([A-Za-z]+)\s*\(([^()]*)\)", text)
            if found is None:
                raise line.error("has a rule that is not of the form NAME(numbers)")
            name = found[1].upper()
            numbers = [_number(line, part) for part in found[2].split(",") if part.strip()]
            seen[name] = seen.get(name, 0) + 1
            rule = self._rule(line, name, numbers)
            if rule is not None and seen[name] > 2:
                raise line.error(
                    f"has a third {name}, a rule about holdings; louver applies its rules to holdings if there is a column of them"
                )
            if rule is not None:
                self.rules.append({**rule, "tables": [self.tables[-1]["name"]]})

    def _rule(self, line: _Line, name: str, numbers: list[float]) -> dict[str, Any] | None:
        if name == "ZERO" and len(numbers) == 1:
            return {"rule": "zero", "up": numbers[0]} if numbers[0] else None
        if name in ("WGT", "MIS", "MAN") and len(numbers) == 1:
            if name == "WGT":
                self.is_weighted = bool(numbers[0])
            elif name == "MAN":
                self.manual = numbers[0]
            elif numbers[0]:
                raise line.error(f"has {name}, which louver does not read unless it is 0")
            return None
        if name == "NK" and len(numbers) == 2:
            return {"rule": "dominance", "n": int(numbers[0]), "k": numbers[1]} if numbers[0] else None
        if name in ("P", "PQ") and len(numbers) in ((1, 2) if name == "P" else (2, 3)):
            if len(numbers) == (2 if name == "P" else 3) and numbers[-1] > 1:
                raise line.error(
                    f"has {name} against several contributors who share their numbers; louver considers only one"
                )
            if name == "P":
                return {"rule": "p-percent", "p": numbers[0]} if numbers[0] else None
            return {"rule": "p-q", "p": numbers[0], "q": numbers[1]}
        if name == "FREQ" and len(numbers) in (1, 2):
            reach = {"range": numbers[1]} if len(numbers) == 2 and numbers[1] else {}
            return {"rule": "frequency", "minimum": int(numbers[0]), **reach} if numbers[0] else None
        raise line.error(f"has the rule {name} in a form that louver does not read")

    def _suppress(self, line: _Line) -> None:
        found = re.fullmatch(r"([A-Za-z]+)\s*\(([^()]*)\)", line.rest)
        name = found[1].upper() if found else ""
        if found is not None and name in HIDING:
            self.methods.add(("hide", None))
            return
        if found is not None and name == "RND":
            numbers = [part.strip() for part in found[2].split(",")]
            if len(numbers) > 1:
                self.methods.add(("round", int(_number(line, numbers[1], whole=True))))
                return
        raise line.error("has a method that louver does not have; it reads MOD, OPT, GH, NET and RND")

    def _apriori(self, line: _Line) -> None:
        """Decisions about cells of a table: codes, then the decision."""
        found = re.match(r'"([^"]+)"\s*,\s*(\d+)\s*(?:,\s*"(.)")?', line.rest)
        if found is None or not 1 <= int(found[2]) <= len(self.tables):
            raise line.error('needs a file and the number of a table above it, as in "cells.hst", 1, ";"')
        path, separator = self.file.parent / found[1].replace("\\", "/"), found[3] or ","
        table = self.tables[int(found[2]) - 1]
        for number, raw in enumerate(decode_text(read_bytes(path), path.name).splitlines(), start=1):
            if not raw.strip():
                continue
            at = _Line(path.name, number, "", raw)
            *codes, word = (text.strip().strip('"') for text in raw.split(separator)[: len(table["by"]) + 1])
            rest = [text.strip() for text in raw.split(separator)[len(table["by"]) + 1 :]]
            if len(codes) != len(table["by"]):
                raise at.error("needs a code of every attribute and a status")
            cell = dict(zip(table["by"], codes, strict=True))
            own: dict[str, Any] = {
                "table": table["name"],
                "cell": cell,
                "reason": f"line {number} of {path.name}",
            }
            if word.lower() == "c" and len(rest) == 1:
                self.status.append({**own, "set": "cost", "cost": _number(at, rest[0])})
            elif word.lower() in ("u", "p") and not rest:
                self.status.append({**own, "set": "hide" if word.lower() == "u" else "publish"})
            elif word.lower() != "s" or rest:
                raise at.error("has a status that louver does not read; it knows u, p, s and c with a cost")


def _number(line: _Line, text: str, whole: bool = False) -> float:
    try:
        found = int(text) if whole else float(text)
    except ValueError:
        found = -1
    if found < 0:
        raise line.error(f"needs a {'whole ' if whole else ''}number of 0 or more")
    return found
