"""Redesigns that disclose nothing: what they keep, what they merge, and the recode files that reproduce them."""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from louver._html import Shown
from louver._words import counted
from louver.bounds.problem import Arrangement
from louver.bounds.summary import Summary
from louver.data.write import replacing
from louver.errors import InputError, printable
from louver.release.write import check_out
from louver.schema.validate import toml_text

if TYPE_CHECKING:
    import pyarrow
    from matplotlib.figure import Figure

__all__ = ["UTILITY", "Merged", "Suggestion", "Suggestions", "recode_text", "write_recodes"]

MAX_NAME, MAX_GROUPS = 40, 6  # of merged categories that are listed in words


@dataclass(frozen=True, slots=True)
class Merged:
    """Categories of one attribute that were merged, and what they are called together."""

    attribute: str
    name: str
    labels: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Suggestion:
    """A safe arrangement and the share of the information about the responses that it keeps.

    Attributes
    ----------
    merged : tuple of Merged
        Categories of the table as first arranged that were merged.
    is_far : bool
        Whether categories were merged that are far apart in their order or hierarchy, or missing values with others.
    """

    arrangement: Arrangement
    summary: Summary
    bits: float
    share: float
    merged: tuple[Merged, ...] = ()
    is_far: bool = False

    @property
    def n_merged(self) -> int:
        """Categories that merging has taken away."""
        return sum(len(group.labels) - 1 for group in self.merged)

    @property
    def words(self) -> str:
        """What was merged, in words; empty where nothing was."""
        names: dict[str, list[str]] = {}
        for group in self.merged:
            names.setdefault(group.attribute, []).append(group.name)
        told = "; ".join(f"{attribute}: {_listed(some)}" for attribute, some in names.items())
        return told + (" (far apart)" if self.is_far else "")

    def to_dict(self) -> dict[str, Any]:
        a = self.arrangement
        return {
            "name": a.label,
            "rows": list(a.rows),
            "cols": list(a.cols),
            "recodes": {
                r.attribute: {new: list(old) for new, old in (r.merge or {}).items()} for r in a.recodes
            },
            "bits": self.bits,
            "share": self.share,
            "merged": [{**asdict(group), "labels": list(group.labels)} for group in self.merged],
            "far": self.is_far,
            "summary": asdict(self.summary),
        }


def _listed(names: Sequence[str]) -> str:
    """Names of groups, cut where they are long, the middle left out where they are many."""
    shown = [name if len(name) <= MAX_NAME else f"{name[:MAX_NAME]}…" for name in names]
    return ", ".join(shown if len(shown) <= MAX_GROUPS else [*shown[: MAX_GROUPS - 2], "...", shown[-1]])


UTILITY = (
    "conditional mutual information, in bits, between the kept predictors and the responses still in the columns, "
    "given the responses moved to the rows; share = bits / those of the table as first arranged"
)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Suggestions(Shown):
    """Redesigns that give nothing away, none of which another beats on every count; plain moves are always among them.

    Attributes
    ----------
    lines : tuple of Suggestion
        Most information first; those that merge what is far apart last.
    avoid : {"attribute", "small"}
        Whether rows that tell a status were avoided, or disclosed small cells alone.
    is_proved : bool
        Whether the whole space of redesigns was covered, so that nothing keeps more.
    examined : int
        Arrangements whose bounds were computed.
    bits : float
        Information of the table as first arranged.
    """

    lines: tuple[Suggestion, ...]
    is_proved: bool
    examined: int
    bits: float
    avoid: str = "small"
    seconds: float = field(default=0.0, compare=False)

    @property
    def goal(self) -> str:
        """What the redesigns do not have."""
        also = " or a row that tells a status" if self.avoid == "attribute" else ""
        return f"without a disclosed small cell{also}"

    @property
    def nothing(self) -> str:
        """What is told where no redesign was found."""
        found = "No redesign is" if self.is_proved else "In the time given no redesign was found"
        more = "" if self.is_proved else " Give more --seconds."
        other = " --avoid small allows rows that tell a status." if self.avoid == "attribute" else ""
        return f"{found} {self.goal} ({self.examined:,} examined).{more}{other}"

    def write_recodes(self, folder: str | Path, data: Sequence[str] = ("FILE",)) -> list[Path]:
        """Write every redesign as a recode file to a new folder; `data` names the data in the calls inside."""
        return write_recodes(self, Path(folder), data)

    def to_dict(self) -> dict[str, Any]:
        return {
            "suggestions": [line.to_dict() for line in self.lines],
            "proved": self.is_proved,
            "examined": self.examined,
            "bits": self.bits,
            "utility": UTILITY,
        }

    def to_json(self) -> str:
        return json.dumps(self.to_dict(), ensure_ascii=False)

    def to_frame(self) -> pyarrow.Table:
        import pyarrow

        return pyarrow.Table.from_pylist(
            [
                {
                    "arrangement": line.arrangement.label,
                    "bits": line.bits,
                    "share": line.share,
                    **asdict(line.summary),
                }
                for line in self.lines
            ]
        )

    def plot(self) -> Figure:
        from louver.bounds.plot import plot_suggestions

        return plot_suggestions(self)

    def __repr__(self) -> str:
        if not self.lines:
            return self.nothing
        how = "nothing keeps more" if self.is_proved else "the best found so far"
        shown = [
            f"  {line.share:6.1%} kept, {line.summary.disclosed_rows:>3} rows determined: {line.arrangement.label}"
            + (f" ({line.words})" if line.merged else "")
            for line in self.lines[:8]
        ]
        told = f"{counted(len(self.lines), 'redesign')} {self.goal}"
        more = (
            [f"  ... and {left:,} more: --html and --json list them all"]
            if (left := len(self.lines) - 8) > 0
            else []
        )
        return "\n".join([f"{told} ({how}; {self.examined:,} examined)", *map(printable, shown), *more])


def write_recodes(suggestions: Suggestions, folder: Path, data: Sequence[str] = ("FILE",)) -> list[Path]:
    """Write one file for each redesign, for its owner's eyes only: labels may be confidential.

    Parameters
    ----------
    data : sequence of str
        What stands after `louver bounds` to name the data, for the call in each file.
    """
    check_out(folder, "--write-recodes")
    try:
        folder.mkdir(mode=0o700)
    except OSError:
        raise InputError(
            f"option --write-recodes: {folder.name} cannot be made; check permissions and disk space.",
            option="--write-recodes",
        ) from None
    paths = [folder / f"redesign-{number:02d}.toml" for number in range(1, len(suggestions.lines) + 1)]
    for path, suggestion in zip(paths, suggestions.lines, strict=True):
        with replacing(path, mode=0o600) as stream:
            stream.write(recode_text(suggestion, data, os.fspath(path)).encode("utf-8"))
    return paths


def recode_text(suggestion: Suggestion, data: Sequence[str], path: str) -> str:
    """The recodes of one redesign in TOML; comments say what it keeps and how to run it."""
    a = suggestion.arrangement
    call = [
        "louver",
        "bounds",
        *data,
        "--rows",
        ",".join(a.rows),
        "--cols",
        ",".join(a.cols),
        "--recode",
        path,
    ]
    lines = [f"# keeps {suggestion.share:.1%} of the information", f"# {printable(shlex.join(call))}"]
    for recode in a.recodes:
        lines += ["", f"[{toml_text(recode.attribute)}]"]
        for new, old in (recode.merge or {}).items():
            lines.append(f"{toml_text(new)} = [{', '.join(map(toml_text, old))}]")
    return "\n".join(lines) + "\n"
