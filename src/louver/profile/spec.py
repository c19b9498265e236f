"""A starter spec: roles and kinds of the columns, and nothing else from the data.

It contains no label, count or domain: verbs that spend budget need public domains, so the spec has placeholders that they reject. Only the
owner can read the file.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from louver.data.kinds import ColumnKind
from louver.errors import InputError
from louver.profile.result import ColumnProfile, Profile
from louver.profile.roles import Role
from louver.schema.options import described
from louver.schema.source import SourceOptions
from louver.schema.spec import PLACEHOLDER
from louver.schema.validate import toml_text

__all__ = ["spec_text", "write_spec"]

KINDS = {ColumnKind.INTEGER: "integer", ColumnKind.NUMBER: "number", ColumnKind.DATE: "date"}

HEAD = """\
# A spec for louver, written by `louver profile`: names of columns, with guesses at their kinds and roles.
# It holds no label, count or domain from the data. Check every line, and fill in what is marked
# "{placeholder}" from public knowledge: verbs that spend privacy budget refuse the spec until then.
"""


def write_spec(profile: Profile, data: object, source: SourceOptions, path: Path) -> None:
    """Write the spec to a new file that only its owner can read.

    Raises
    ------
    InputError
        If the file already exists, or its folder does not.
    """
    text = spec_text(profile, data, source, path.parent)
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        message = f"option --write-spec would replace {path.name}; name a file that does not exist."
        raise InputError(message, file=path.name, option="--write-spec") from None
    with open(descriptor, "w", encoding="utf-8") as file:
        file.write(text)


def spec_text(profile: Profile, data: object, source: SourceOptions, folder: Path) -> str:
    """The spec as TOML, whose file names are relative to `folder`."""
    by_role = {role: [c.name for c in profile.columns if c.role is role] for role in Role}
    parts = [
        HEAD.format(placeholder=PLACEHOLDER),
        _source_section(data, source, folder),
        *(_attribute_section(column) for column in profile.columns if column.role is not Role.IDENTIFYING),
        _anonymize_section(by_role, profile.unit),
        _bounds_section(),
        _groups_section(by_role),
        _topdown_section(),
    ]
    return "\n".join(parts)


def _source_section(data: object, source: SourceOptions, folder: Path) -> str:
    lines = ["[source]"]
    if isinstance(data, str | os.PathLike) and "://" not in str(data):
        lines.append(f"file = {toml_text(os.path.relpath(data, folder))}")
    elif isinstance(data, str):
        lines.append(f"uri = {toml_text(PLACEHOLDER)}  # the address, without a password where possible")
    else:
        lines.append("# the data were a dataframe: give them in the call, or name a file here")
    for one in described(SourceOptions):
        value = getattr(source, one.name)
        if value != one.default:
            lines.append(f"{one.name} = {_value(value)}")
    return "\n".join(lines) + "\n"


def _attribute_section(column: ColumnProfile) -> str:
    """Kind and role; an ordering needs labels, which only a person can list."""
    lines = [f"[attributes.{toml_text(column.name)}]  # role: {column.role}"]
    lines.append(f"kind = {toml_text(KINDS.get(column.kind, 'category'))}  # guessed: {column.kind}")
    if column.kind is ColumnKind.ORDERED_CODE:
        lines.append('# if their order matters: kind = "ordered", and labels = ["lowest", ..., "highest"]')
    return "\n".join(lines) + "\n"


def _anonymize_section(by_role: dict[Role, list[str]], unit: str | None) -> str:
    lines = ["[anonymize]", f"quasi = {_list(by_role[Role.QUASI])}"]
    others = [name for name in by_role[Role.UNIT] if name != unit]
    dropped = [*by_role[Role.IDENTIFYING], *others, *by_role[Role.WEIGHT]]
    lines.append(f"identifying = {_list(dropped)}  # dropped: ids and weights too")
    lines.append(f"sensitive = {_list(by_role[Role.SENSITIVE])}")
    if unit is not None:
        lines.append(f"unit = {toml_text(unit)}  # k counts different units; the column is dropped")
    lines.append("k = 5")
    return "\n".join(lines) + "\n"


def _bounds_section() -> str:
    lines = [
        "[bounds]",
        "# rows = []  # columns that make the rows",
        "# cols = []  # columns that make the columns",
    ]
    return "\n".join([*lines, "small = 5"]) + "\n"


def _groups_section(by_role: dict[Role, list[str]]) -> str:
    units = by_role[Role.UNIT]
    lines = ["[groups]", f"unit = {toml_text(units[0] if units else PLACEHOLDER)}"]
    lines.append(f"regions = [{toml_text(PLACEHOLDER)}]  # columns of the region levels, coarsest first")
    lines.append(
        f"domain = {toml_text(PLACEHOLDER)}  # public list of the leaf regions, never taken from the data"
    )
    lines.append(f"epsilon = {toml_text(PLACEHOLDER)}")
    lines.append(
        "# max_size = ...  # largest size reported separately; a policy, not the largest that occurs"
    )
    return "\n".join(lines) + "\n"


def _topdown_section() -> str:
    lines = ["[topdown]", f"epsilon = {toml_text(PLACEHOLDER)}"]
    lines.append("# every attribute that is measured needs its public labels above")
    lines += [
        "[topdown.geography]",
        f"columns = [{toml_text(PLACEHOLDER)}]",
        f"levels = [{toml_text(PLACEHOLDER)}]",
    ]
    lines.append(f"leaves = {toml_text(PLACEHOLDER)}  # public list of the leaf regions")
    lines += ["[topdown.shares]", f"levels = {toml_text(PLACEHOLDER)}", f"queries = {toml_text(PLACEHOLDER)}"]
    return "\n".join(lines) + "\n"


def _value(value: object) -> str:
    """A value of the source's options in TOML."""
    if isinstance(value, dict):
        pairs = (f"{toml_text(column)} = {_list(codes)}" for column, codes in value.items())
        return "{ " + ", ".join(pairs) + " }"
    return toml_text(value) if isinstance(value, str) else str(value).lower()


def _list(names: Iterable[str]) -> str:
    return "[" + ", ".join(map(toml_text, names)) + "]"
