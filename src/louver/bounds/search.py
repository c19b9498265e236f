"""Redesign search: arrangements without a disclosed small cell that keep the most information.

Wright & Smucker (2014), section 4.3, explore such redesigns by hand. Here a redesign (`redesigns.py`) gives each attribute a
role and a partition of its labels (`merging.py`). By default, none of its rows may reveal a person's status either.

Utility. The attributes first put in the columns are the responses Y, those in the rows the predictors X. A
redesign with predictors X' (in rows or columns), responses Y' in the columns and Z' moved to the rows
keeps I(X'; Y' | Z') bits of the I(X; Y) bits of the first arrangement. Merging labels of X' or Y', summing over
attributes and moving responses to the rows never raise it, so a best-first search can prove its answer.
"""

from __future__ import annotations

import heapq
import os
import shlex
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from louver._html import JsonText, Shown
from louver._verdict import Verdict
from louver._words import counted
from louver.bounds.check import DisclosureRules, summary_of
from louver.bounds.disclosure import BoundsSummary
from louver.bounds.problem import Arrangement
from louver.bounds.redesigns import MergedCategories, Redesigns, State, Wishes
from louver.bounds.result import judge
from louver.data.histogram import Histogram
from louver.data.write import replacing
from louver.errors import InputError, printable
from louver.release.write import check_out
from louver.run import Run
from louver.schema.validate import toml_text

if TYPE_CHECKING:
    import pyarrow
    from matplotlib.figure import Figure

__all__ = [
    "UTILITY",
    "Avoid",
    "Suggestion",
    "Suggestions",
    "recode_text",
    "search_redesigns",
    "write_recodes",
]

MAX_NAME, MAX_GROUPS = 40, 6  # of merged categories that are listed in words


@dataclass(frozen=True, slots=True, kw_only=True)
class Suggestion:
    """A safe arrangement and the share of the information about the responses that it keeps.

    Attributes
    ----------
    merged : tuple of MergedCategories
        Categories of the table as first arranged that were merged.
    is_far : bool
        Whether categories were merged that are far apart in their order or hierarchy, or missing values with others.
    """

    arrangement: Arrangement
    summary: BoundsSummary
    verdict: Verdict
    bits: float
    share: float
    merged: tuple[MergedCategories, ...] = ()
    is_far: bool = False

    @property
    def n_merged(self) -> int:
        """Number of categories removed by merging."""
        return sum(len(group.labels) - 1 for group in self.merged)

    @property
    def words(self) -> str:
        """The merged categories, in words; empty if there are none."""
        names: dict[str, list[str]] = {}
        for group in self.merged:
            names.setdefault(group.attribute, []).append(group.name)
        content = "; ".join(f"{attribute}: {_listed(some)}" for attribute, some in names.items())
        return content + (" (far apart)" if self.is_far else "")

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
            "verdict": self.verdict.to_dict(),
        }


def _listed(names: Sequence[str]) -> str:
    """Names of groups; long names are cut, and if there are many the middle ones are left out."""
    shown = [name if len(name) <= MAX_NAME else f"{name[:MAX_NAME]}…" for name in names]
    return ", ".join(shown if len(shown) <= MAX_GROUPS else [*shown[: MAX_GROUPS - 2], "...", shown[-1]])


UTILITY = (
    "conditional mutual information, in bits, between the kept predictors and the responses still in the columns, "
    "given the responses moved to the rows; share = bits / those of the table as first arranged"
)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Suggestions(JsonText, Shown):
    """Redesigns that disclose nothing and are not dominated by another one; safe moves without merging are always included.

    Attributes
    ----------
    lines : tuple of Suggestion
        Ordered by information, most first; those that merge distant categories come last.
    avoid : {"attribute", "small"}
        Whether rows that reveal a status were also avoided, or only disclosed small cells.
    is_proved : bool
        Whether the whole space of redesigns was covered, so that no other keeps more.
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
        """What the redesigns avoid."""
        also = " or a row that reveals a status" if self.avoid == "attribute" else ""
        return f"without a disclosed small cell{also}"

    @property
    def nothing(self) -> str:
        """The text if no redesign was found."""
        found = "No redesign is" if self.is_proved else "Within the time limit no redesign was found"
        more = "" if self.is_proved else " Give more --seconds."
        other = " --avoid small allows rows that reveal a status." if self.avoid == "attribute" else ""
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
        content = f"{counted(len(self.lines), 'redesign')} {self.goal}"
        more = (
            [f"  ... and {left:,} more: --html and --json list them all"]
            if (left := len(self.lines) - 8) > 0
            else []
        )
        return "\n".join([f"{content} ({how}; {self.examined:,} examined)", *map(printable, shown), *more])


def write_recodes(suggestions: Suggestions, folder: Path, data: Sequence[str] = ("FILE",)) -> list[Path]:
    """Write one file for each redesign, readable only by its owner, because labels may be confidential.

    Parameters
    ----------
    data : sequence of str
        Arguments of `louver bounds` that name the data, for the call in each file.
    """
    check_out(folder, "--write-recodes")
    try:
        folder.mkdir(mode=0o700)
    except OSError:
        raise InputError(
            f"option --write-recodes: {folder.name} cannot be created; check permissions and disk space.",
            option="--write-recodes",
        ) from None
    paths = [folder / f"redesign-{number:02d}.toml" for number in range(1, len(suggestions.lines) + 1)]
    for path, suggestion in zip(paths, suggestions.lines, strict=True):
        with replacing(path, mode=0o600) as stream:
            stream.write(recode_text(suggestion, data, os.fspath(path)).encode("utf-8"))
    return paths


def recode_text(suggestion: Suggestion, data: Sequence[str], path: str) -> str:
    """The recodes of one redesign in TOML; comments state what it keeps and how to run it."""
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


Avoid = Literal["small", "attribute"]

TOLERANCE_BITS = 1e-9
"""Differences in information below this are rounding errors."""


def search_redesigns(
    histogram: Histogram,
    arrangement: Arrangement,
    options: DisclosureRules,
    *,
    avoid: Avoid = "attribute",
    wishes: Wishes | None = None,
    seconds: float = 30.0,
    run: Run,
) -> Suggestions:
    """Search for safe redesigns of an arrangement, for at most `seconds`.

    Parameters
    ----------
    histogram : Histogram
        The table before the recodes of the arrangement; redesigns are at least as coarse as these recodes, and their own recodes apply to
        the labels of this table.
    avoid : {"attribute", "small"}
        Whether a redesign may have rows that reveal a status.
    wishes : Wishes, optional
        What redesigns must leave unchanged.
    run : Run
        Receives the share of time used and the number of arrangements examined; results found so far are kept if the run is asked to finish
        early.

    Returns
    -------
    Suggestions
        `is_proved` when nothing left unexamined could keep more information than the first line.

    Notes
    -----
    Two queues over the same states take turns. One pops the state whose redesigns could keep the most information, which yields the
    proof. The other follows the fewest disclosed small cells, skips states that cannot beat the best safe arrangement so far, and finds
    good ones early. Moves without merging are examined first, and a safe one is listed even if a merge keeps more or discloses less.
    """
    started = time.perf_counter()
    search = _RedesignSearch(
        Redesigns(histogram, arrangement, wishes), options, run, started + seconds, avoid
    )
    while search.by_bits:
        search.prove()
        search.dive()
        share = min(1.0, (time.perf_counter() - started) / seconds)
        lost, least = search.standing
        run.report(f"searching redesigns, {search.examined} arrangements examined", share, 1.0, lost, least)
        if search.is_over:
            break
    return search.suggestions(time.perf_counter() - started)


class _RedesignSearch:
    """The states examined so far, and the safe arrangements among them that no other dominates."""

    def __init__(
        self,
        space: Redesigns,
        options: DisclosureRules,
        run: Run,
        deadline: float,
        avoid: Avoid = "attribute",
    ) -> None:
        self.space, self.options, self.run, self.deadline = space, options, run, deadline
        self.avoid = avoid
        self.by_bits: list[tuple[float, int, State]] = []
        self.by_risk: list[tuple[int, float, int, State]] = []
        self.bound: dict[State, float] = {}
        self.summaries: dict[State, BoundsSummary] = {}
        self.best: list[Suggestion] = []
        self.plain: list[Suggestion] = []
        self.total_bits = space.bits(space.start())
        self._meet(space.start())
        self._follow(space.start())
        for state in space.moves():
            if run.is_hurried:
                return
            self._meet(state)
            self._examine(state)

    @property
    def is_over(self) -> bool:
        return time.perf_counter() >= self.deadline or self.run.is_hurried

    @property
    def examined(self) -> int:
        return len(self.summaries)

    @property
    def best_bits(self) -> float:
        return max((line.bits for line in self.best), default=-1.0)

    @property
    def standing(self) -> tuple[float | None, float | None]:
        """Share of the information that the best safe arrangement so far loses, and a lower bound for every safe one."""
        most_left = max(-self.by_bits[0][0] if self.by_bits else 0.0, self.best_bits)
        if not self.best:
            return None, None
        return 1 - _share(self.best_bits, self.total_bits), max(0.0, 1 - _share(most_left, self.total_bits))

    def prove(self) -> None:
        """Examine the state that could lead to the most information."""
        _, _, state = heapq.heappop(self.by_bits)
        self._examine(state)
        for child in self.space.children(state):
            self._meet(child)

    def dive(self) -> None:
        """Examine all redesigns of the least disclosive state that could still lead to a better one."""
        while self.by_risk:
            _, _, _, state = heapq.heappop(self.by_risk)
            if self.bound[state] > self.best_bits + TOLERANCE_BITS:
                for child in self.space.children(state):
                    if self.is_over:
                        return
                    if child not in self.summaries:
                        self._meet(child)
                        self._follow(child)
                return

    def _meet(self, state: State) -> None:
        if state not in self.bound:
            self.bound[state] = self.space.bits_bound(state)
            heapq.heappush(self.by_bits, (-self.bound[state], len(self.bound), state))

    def _follow(self, state: State) -> None:
        if self.bound[state] > self.best_bits + TOLERANCE_BITS:
            n_bad = self._n_bad(self._examine(state))
            heapq.heappush(self.by_risk, (n_bad, -self.bound[state], self.examined, state))

    def _n_bad(self, summary: BoundsSummary) -> int:
        """Disclosed small cells, and rows that reveal a status if they are to be avoided."""
        return summary.disclosed_small_cells + (summary.certain_rows if self.avoid == "attribute" else 0)

    def _examine(self, state: State) -> BoundsSummary:
        self.run.check()
        if state not in self.summaries:
            redesign = self.space.arrangement(state)
            summary = summary_of(self.space.original, redesign, self.options)
            self.summaries[state] = summary
            if self._n_bad(summary) == 0:
                bits = self.space.bits(state)
                found = Suggestion(
                    arrangement=redesign,
                    summary=summary,
                    verdict=judge(
                        summary,
                        small=self.options.small,
                        certain=self.options.certain,
                        is_counted=True,
                        survey_weight=self.options.survey_weight,
                    ),
                    bits=bits,
                    share=_share(bits, self.total_bits),
                    merged=self.space.merged(state),
                    is_far=self.space.is_far(state),
                )
                self.best = _kept(self.best, found)
                if self.space.is_plain(state):
                    self.plain = _kept(self.plain, found)
        return self.summaries[state]

    def suggestions(self, seconds: float) -> Suggestions:
        plain = [line for line in self.plain if line not in self.best]
        order = sorted(
            self.best + plain, key=lambda line: (line.is_far, -round(line.bits, 9), line.summary.risk)
        )
        most_left = -self.by_bits[0][0] if self.by_bits else -1.0
        return Suggestions(
            lines=tuple(order),
            avoid=self.avoid,
            is_proved=most_left <= self.best_bits + TOLERANCE_BITS,
            examined=self.examined,
            bits=self.total_bits,
            seconds=seconds,
        )


def _kept(best: list[Suggestion], new: Suggestion) -> list[Suggestion]:
    """The best suggestions with `new` and without those it dominates, unless one of them dominates it."""
    if any(_beats(old, new) for old in best):
        return best
    return [old for old in best if not _beats(new, old)] + [new]


def _beats(a: Suggestion, b: Suggestion) -> bool:
    """Whether `a` is as good in every respect; of two equal redesigns, the one that merges no more dominates the other."""
    return _is_as_good(a, b) and (not _is_as_good(b, a) or a.n_merged <= b.n_merged)


def _is_as_good(a: Suggestion, b: Suggestion) -> bool:
    return (
        a.bits >= b.bits - TOLERANCE_BITS
        and a.is_far <= b.is_far
        and a.summary.certain_rows <= b.summary.certain_rows
        and a.summary.disclosed_rows <= b.summary.disclosed_rows
        and a.summary.disclosed_zero_cells <= b.summary.disclosed_zero_cells
    )


def _share(bits: float, total: float) -> float:
    return bits / total if total > TOLERANCE_BITS else 1.0
