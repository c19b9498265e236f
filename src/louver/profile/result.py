"""The result of a profile, with the distribution of each column. It is internal: nothing in it is meant for release."""

from __future__ import annotations

import json
import re
from dataclasses import asdict, dataclass, field, replace
from html import escape
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from louver._arrays import Floats
from louver._html import html_table
from louver._verdict import Level, Verdict
from louver._words import listed
from louver.data.coded import CodedColumn
from louver.data.dependencies import Dependency
from louver.data.kinds import ColumnKind
from louver.errors import printable
from louver.profile.roles import Role
from louver.profile.sample_risk import ScenarioRisk
from louver.profile.singling import SinglingSet

if TYPE_CHECKING:
    import pyarrow
    from matplotlib.figure import Figure

__all__ = ["ColumnProfile", "DistributionOfValues", "Profile", "dependency_lines", "percent", "spread"]

MAX_SHOWN = 12
GENERALISE = (
    "Before you publish records, generalise the columns marked quasi, and decide about every other column."
)
INSIDE = "For the data steward only; do not release any of this."


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnProfile:
    """The profile of one column.

    Attributes
    ----------
    name : str
    kind : ColumnKind
        Guessed from the values.
    kind_reason : str
    distinct : int
        Distinct values, not counting missing.
    missing : int
        Records without a value.
    alone : int
        Records whose value occurs in no other record.
    share_alone : float
        The same as a share of all records.
    role : Role
        Suggested.
    reason : str
    distribution : DistributionOfValues or None
        How the values are spread; None for ids, free text and empty columns.
    """

    name: str
    kind: ColumnKind
    kind_reason: str
    distinct: int
    missing: int
    alone: int
    share_alone: float
    role: Role
    reason: str
    distribution: DistributionOfValues | None


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Profile:
    """A table, column by column, and what its columns reveal together. Confidential.

    Attributes
    ----------
    source : str
        Name of the file or table.
    n_rows : int
    columns : tuple of ColumnProfile
    sets : tuple of SinglingSet
        The smallest sets of columns that single people out, at most thirty of each size.
    n_sets : int
        Number of all these sets.
    share : float
        Share of unique records from which a set counts as one.
    largest : int
        Maximum number of columns in a set examined.
    is_complete : bool
        Whether every set that could have reached the share was tried.
    dependencies : tuple of Dependency
        The columns that determine others.
    unit : str or None
        The column that numbers households: the records of a household count as one, and are unique if no other household has their values.
    scenarios : tuple of ScenarioRisk
        The risk that records are linked to people, for each set of columns that an attacker may know.
    seconds : float
    """

    source: str
    n_rows: int
    columns: tuple[ColumnProfile, ...]
    sets: tuple[SinglingSet, ...]
    n_sets: int
    share: float
    largest: int
    is_complete: bool
    dependencies: tuple[Dependency, ...]
    unit: str | None = None
    scenarios: tuple[ScenarioRisk, ...] = ()
    seconds: float = field(default=0.0, compare=False)

    def column(self, name: str) -> ColumnProfile:
        """The column of that name."""
        return next(column for column in self.columns if column.name == name)

    def to_dict(self) -> dict[str, Any]:
        """Everything, in the types of JSON."""
        plain: dict[str, Any] = json.loads(self.to_json())
        return plain

    def to_json(self) -> str:
        """The result as JSON."""
        plain = asdict(replace(self, scenarios=()))
        plain["scenarios"] = [scenario.to_dict() for scenario in self.scenarios]
        return json.dumps(plain | {"verdict": self.verdict.to_dict()}, ensure_ascii=False)

    @property
    def verdict(self) -> Verdict:
        """What must be done before records are published."""
        identifying = [column.name for column in self.columns if column.role is Role.IDENTIFYING]
        reasons = (
            [f"Do not publish these columns as they are: {', '.join(identifying)}."] if identifying else []
        )
        if self.sets:
            first = next((one for one in self.sets if len(one.columns) > 1), self.sets[0])
            alone = [column.name for column in self.columns if column.share_alone >= self.share]
            reasons += [f"Many values of {listed(alone)} occur only once."] if alone else []
            reasons.append(
                f"Anyone who knows {listed(first.columns)} can single out {percent(first.share)} of the records."
            )
        reasons += [scenario.sentence for scenario in self.scenarios if scenario.expected_matches >= 1]
        level = Level.STOP if reasons else Level.CARE
        return Verdict(level, GENERALISE, tuple(reasons))

    def to_frame(self) -> pyarrow.Table:
        """One line per column."""
        import pyarrow

        lines = [asdict(column) for column in self.columns]
        for line in lines:
            del line["distribution"]
        return pyarrow.Table.from_pylist(lines)

    def plot(self) -> Figure:
        """How identifying each column is by itself."""
        from louver.profile.plot import plot_profile

        return plot_profile(self)

    def __repr__(self) -> str:
        width = min(max(len(column.name) for column in self.columns), 28)
        head = (
            f"{'column':<{width}}  {'kind':<12} {'distinct':>9} {'missing':>9} {'alone':>7}  suggested role"
        )
        lines = [
            f"{_short(column.name, width):<{width}}  {column.kind:<12} {column.distinct:>9,} {column.missing:>9,} "
            f"{percent(column.share_alone):>7}  {column.role} ({column.reason})"
            for column in self.columns
        ]
        lines = [
            f"{self.source}: {self.n_rows:,} records, {len(self.columns)} columns. {INSIDE}",
            head,
            *lines,
        ]
        return "\n".join(
            map(
                printable,
                [
                    *lines,
                    *self._set_lines(),
                    *self._dependency_lines(),
                    *(line for scenario in self.scenarios for line in scenario.lines()),
                    str(self.verdict),
                ],
            )
        )

    def _set_lines(self) -> list[str]:
        what = f"{percent(self.share)} of the records or more"
        if not self.sets:
            return [f"No set of up to {self.largest} columns singles out {what}."]
        some = "" if self.is_complete else " (only the most promising sets were tried)"
        by = "" if self.unit is None else f', counting the records of a household ("{self.unit}") as one'
        lines = [f"Smallest sets of columns that single out {what}{some}{by}:"]
        lines += [f"  {percent(one.share):>7}  {', '.join(one.columns)}" for one in self.sets[:MAX_SHOWN]]
        return lines + _more(self.n_sets)

    def _dependency_lines(self) -> list[str]:
        if not self.dependencies:
            return ["No column determines another."]
        lines = dependency_lines(self.dependencies)
        return [
            "Columns that determine others:",
            *(f"  {line}" for line in lines[:MAX_SHOWN]),
            *_more(len(lines)),
        ]

    def _repr_html_(self) -> str:
        header = ("column", "kind", "distinct", "missing", "alone", "suggested role", "reason")
        lines = [
            (c.name, c.kind, c.distinct, c.missing, percent(c.share_alone), c.role, c.reason)
            for c in self.columns
        ]
        scenarios = (line for scenario in self.scenarios for line in scenario.lines())
        rest = "<br>".join(
            escape(line) for line in (*self._set_lines(), *self._dependency_lines(), *scenarios)
        )
        title = escape(f"{self.source}: {self.n_rows:,} records. {INSIDE}")
        return f"<p>{title}</p>{html_table(header, lines)}<p>{rest}</p>"


def dependency_lines(dependencies: tuple[Dependency, ...]) -> list[str]:
    """One line for each column that determines others: exactly, and then nearly."""
    lines = []
    for name in dict.fromkeys(d.determinant for d in dependencies):
        own = [d for d in dependencies if d.determinant == name]
        exact = [d.dependent for d in own if d.is_exact]
        near = [f"{d.dependent} ({percent(d.accuracy)})" for d in own if not d.is_exact]
        parts = ([", ".join(exact)] if exact else []) + ([f"nearly {', '.join(near)}"] if near else [])
        lines.append(f"{name} determines {'; '.join(parts)}")
    return lines


def percent(share: float) -> str:
    """A share, never rounded to 0 or 1."""
    if 0 < share < 0.001:
        return "<0.1 %"
    if 0.999 < share < 1:
        return ">99.9 %"
    return f"{100 * share:.1f} %"


def _short(name: str, width: int) -> str:
    return name if len(name) <= width else name[: width - 1] + "…"


def _more(number: int) -> list[str]:
    return [f"  and {number - MAX_SHOWN:,} more"] if number > MAX_SHOWN else []


MAX_BARS = 12
YEAR = r"(?P<year>[0-9]{4})"
NUMBER = re.compile(r"-?[0-9]+(\.[0-9]+)?")


@dataclass(frozen=True, slots=True, kw_only=True)
class DistributionOfValues:
    """Records by value, by class of numbers or by year. Confidential.

    Attributes
    ----------
    labels : tuple of str
    counts : tuple of int
    """

    labels: tuple[str, ...]
    counts: tuple[int, ...]


def spread(column: CodedColumn, kind: ColumnKind) -> DistributionOfValues | None:
    """At most twelve bars; None for ids, free text and empty columns, whose values identify people."""
    if kind in (ColumnKind.ID, ColumnKind.TEXT, ColumnKind.EMPTY):
        return None
    if kind in (ColumnKind.INTEGER, ColumnKind.NUMBER):
        return _classes(column)
    if kind is ColumnKind.DATE:
        return _years(column)
    return _commonest(
        column.values.to_pylist(), column.counts.tolist(), is_ordered=kind is ColumnKind.ORDERED_CODE
    )


def _commonest(labels: list[str], counts: list[int], *, is_ordered: bool) -> DistributionOfValues:
    pairs = sorted(zip(labels, counts, strict=True), key=lambda pair: (-pair[1], pair[0]))
    shown, rest = pairs[: MAX_BARS - 1], pairs[MAX_BARS - 1 :]
    if len(rest) == 1:
        shown, rest = pairs, []
    if is_ordered:
        shown.sort(key=lambda pair: (_leading(pair[0]), pair[0]))
    if rest:
        shown.append((f"{len(rest):,} others", sum(count for _, count in rest)))
    return DistributionOfValues(labels=tuple(label for label, _ in shown), counts=tuple(n for _, n in shown))


def _leading(label: str) -> float:
    """The number that a code starts with."""
    found = NUMBER.search(label)
    return float(found[0]) if found else 0.0


def _classes(column: CodedColumn) -> DistributionOfValues:
    """Equal steps of a round width; a number on an edge is counted above it, except the largest, which is counted below it."""
    numbers: Floats = np.asarray(np.from_dlpack(pc.cast(column.values, pa.float64())))
    edges = _edges(float(numbers.min(initial=np.inf)), float(numbers.max(initial=-np.inf)))
    counts, _ = np.histogram(numbers, bins=edges, weights=column.counts)
    labels = tuple(f"{_short_number(low)} to {_short_number(high)}" for low, high in pairwise(edges.tolist()))
    return DistributionOfValues(labels=labels, counts=tuple(int(count) for count in counts))


def _edges(least: float, most: float) -> Floats:
    """Multiples of 1, 2 or 5 times a power of ten around the numbers, for at most twelve classes."""
    if not np.isfinite([least, most]).all() or least == most:
        return np.array([0.0, 1.0]) if least > most else np.array([least, np.nextafter(most, np.inf)])
    power = 10.0 ** np.floor(np.log10((most - least) / MAX_BARS))
    for width in (factor * power for factor in (1, 2, 5, 10, 20)):
        first, last = np.floor(least / width), np.ceil(most / width)
        if last - first <= MAX_BARS:
            break
    edges: Floats = np.arange(first, last + 1) * width
    return edges


def _short_number(number: float) -> str:
    return f"{number:,.0f}" if abs(number) >= 1000 else f"{number:.6g}"


def _years(column: CodedColumn) -> DistributionOfValues:
    """Equal runs of years; dates whose year has two digits come last."""
    found = pc.struct_field(pc.extract_regex(column.values, YEAR), "year").to_pylist()
    by_year: dict[int, int] = {}
    for year, count in zip(found, column.counts.tolist(), strict=True):
        by_year[int(year or 0)] = by_year.get(int(year or 0), 0) + count
    other = by_year.pop(0, 0)
    labels, counts = [], []
    first, last = min(by_year, default=0), max(by_year, default=-1)
    step = -(-(last - first + 1) // MAX_BARS)
    for start in range(first, last + 1, max(step, 1)):
        end = min(start + step - 1, last)
        labels.append(str(start) if start == end else f"{start} to {end}")
        counts.append(sum(n for year, n in by_year.items() if start <= year <= end))
    if other:
        labels, counts = [*labels, "other dates"], [*counts, other]
    return DistributionOfValues(labels=tuple(labels), counts=tuple(counts))
