"""Trees of codes: which codes each total is the sum of.

Two layouts are read. An `.hrc` file, as tau-ARGUS and rtauargus write it, has one code per line, preceded by an `@` for every level
below the first; the total is not listed. A CSV file has the columns `code` and `parent`, or a column for each level from the most general
to the most specific and a line for each code of the last level.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

from louver.errors import InputError
from louver.schema.validate import decode_text, read_bytes

__all__ = ["Tree", "read_tree", "tree_of_digits"]

MARK = "@"


@dataclass(frozen=True, slots=True)
class Tree:
    """Codes below a total.

    Attributes
    ----------
    total : str
        The code of the grand total.
    parts : mapping of str to tuple of str
        Code -> the codes of which it is the sum; codes without parts are leaves.
    source : str
        Name of the hierarchy in messages.

    Examples
    --------
    >>> tree = Tree("Total", {"Total": ("A", "B"), "A": ("01", "02")})
    >>> tree.codes
    ('Total', 'A', '01', '02', 'B')
    >>> sorted(tree.leaves["A"]), tree.depth["02"]
    (['01', '02'], 2)
    """

    total: str
    parts: Mapping[str, tuple[str, ...]]
    source: str = field(default="the hierarchy", compare=False)
    codes: tuple[str, ...] = field(init=False, repr=False, compare=False)
    depth: Mapping[str, int] = field(init=False, repr=False, compare=False)
    leaves: Mapping[str, frozenset[str]] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        depth: dict[str, int] = {}
        waiting = [(self.total, 0)]
        while waiting:
            code, level = waiting.pop()
            if code in depth:
                raise InputError(
                    f"{self.source} lists a code twice; a code has one parent.", file=self.source
                )
            depth[code] = level
            waiting += [(part, level + 1) for part in reversed(self.parts.get(code, ()))]
        leaves: dict[str, frozenset[str]] = {}
        for code in reversed(depth):
            below = [leaves[part] for part in self.parts.get(code, ())]
            leaves[code] = frozenset().union(*below) if below else frozenset((code,))
        object.__setattr__(self, "codes", tuple(depth))
        object.__setattr__(self, "depth", depth)
        object.__setattr__(self, "leaves", leaves)

    @classmethod
    def flat(cls, total: str, codes: Sequence[str]) -> Tree:
        """A total and its parts."""
        return cls(total, {total: tuple(codes)})


def tree_of_digits(total: str, codes: Sequence[str], levels: Sequence[int]) -> Tree:
    """A tree of codes that begin with the code above: `levels` gives the number of characters that each level adds.

    Examples
    --------
    >>> tree_of_digits("Total", ["111", "112", "120"], (1, 1, 1)).parts
    {'Total': ('1',), '1': ('11', '12'), '11': ('111', '112'), '12': ('120',)}
    """
    ends = [sum(levels[: place + 1]) for place in range(len(levels))]
    parts: dict[str, dict[str, None]] = {}
    for code in codes:
        chain = [total, *(code[:end] for end in ends if end < len(code)), code]
        for above, below in pairwise(chain):
            parts.setdefault(above, {})[below] = None
    return Tree(total, {code: tuple(below) for code, below in parts.items()}, "the hierarchy by digits")


def read_tree(path: Path, total: str, mark: str = MARK) -> Tree:
    """Read an `.hrc` or a CSV file."""
    name = path.name
    text = decode_text(read_bytes(path), name)
    pairs = list(
        _from_marks(text, total, name, mark)
        if name.lower().endswith(".hrc")
        else _from_csv(text, total, name)
    )
    if not pairs:
        raise InputError(f"{name} has no codes; it needs at least one.", file=name)
    above: dict[str, str] = {}
    parts: dict[str, list[str]] = {total: []}
    for line, code, parent in pairs:
        if code == total:
            raise InputError(
                f"{name}: line {line} has the code of the total; remove it.", file=name, row=line
            )
        if above.setdefault(code, parent) != parent:
            raise InputError(
                f"{name}: line {line} puts a code under a second parent; a code has one parent.",
                file=name,
                row=line,
            )
        listed = parts.setdefault(parent, [])
        if code not in listed:
            listed.append(code)
    for line, code, parent in pairs:
        if parent != total and parent not in above:
            raise InputError(
                f"{name}: line {line} names a parent that is not a code of the file; add it, or leave the parent empty.",
                file=name,
                row=line,
            )
        seen = {code}
        while parent != total:
            if parent in seen:
                raise InputError(
                    f"{name}: line {line} makes a code its own ancestor; check its parents.",
                    file=name,
                    row=line,
                )
            seen.add(parent)
            parent = above[parent]
    return Tree(total, {code: tuple(listed) for code, listed in parts.items() if listed}, name)


def _from_marks(text: str, total: str, name: str, mark: str) -> Iterator[tuple[int, str, str]]:
    """Line, code and parent of every line of an `.hrc` file."""
    above = [total]
    seen: set[str] = set()
    for line, raw in enumerate(text.splitlines(), start=1):
        entry = raw.strip()
        if not entry:
            continue
        code = entry.lstrip(mark).strip()
        level = len(entry) - len(entry.lstrip(mark))
        if not code:
            raise InputError(f"{name}: line {line} has no code after its marks; add it.", file=name, row=line)
        if level >= len(above):
            raise InputError(
                f"{name}: line {line} has at least two more marks than the line above; give every level its own line.",
                file=name,
                row=line,
            )
        if code in seen:
            raise InputError(
                f"{name}: line {line} repeats a code; list every code once.", file=name, row=line
            )
        seen.add(code)
        yield line, code, above[level]
        above[level + 1 :] = [code]


def _from_csv(text: str, total: str, name: str) -> Iterator[tuple[int, str, str]]:
    """Line, code and parent of every line of a CSV file."""
    try:
        rows = [row for row in csv.reader(io.StringIO(text, newline=""), strict=True) if row]
    except csv.Error:
        rows = None
    if rows is None:
        raise InputError(f"{name} cannot be read as separated text; check its quotes.", file=name)
    if not rows:
        return
    header, lines = [label.strip() for label in rows[0]], rows[1:]
    for line, row in enumerate(lines, start=2):
        if len(row) != len(header):
            raise InputError(
                f"{name}: line {line} has a different number of fields from the header.", file=name, row=line
            )
        labels = [label.strip() for label in row]
        if set(header) == {"code", "parent"}:
            code, parent = labels[header.index("code")], labels[header.index("parent")]
            if not code:
                raise InputError(f"{name}: line {line} has no code; add it.", file=name, row=line)
            yield line, code, parent or total
            continue
        if "" in labels:
            raise InputError(f"{name}: line {line} leaves a level empty; complete it.", file=name, row=line)
        chain = [total, *labels]
        for parent, code in pairwise(chain):
            if code != parent:
                yield line, code, parent
