"""State of the Tables page: the current arrangement, those tried, and the undo history."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from louver.audit.options import AuditOptions
from louver.bounds.options import BoundsOptions
from louver.errors import InputError
from louver.schema.validate import validated

__all__ = ["SHELVES", "Tables", "Try", "Waiting", "natural_name"]

SHELVES = {
    "rows": ("Rows", "Drag here the attributes that outsiders know, or press R"),
    "cols": ("Columns", "Drag here the attributes to publish, or press C"),
    "out": ("Left out", "Drag here the attributes to sum over, or press O"),
}
MOST_CELLS = 300_000
MOST_LEVELS = 20
LONG = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class Try:
    """One arrangement that was audited."""

    number: int
    words: str
    options: BoundsOptions
    small: int
    certain: int
    kept: float | None
    """Share kept of the base's information about its columns; None if the columns differ."""
    level: str = "ok"
    sentence: str = ""
    """Level and sentence of the verb's verdict."""

    @property
    def is_safe(self) -> bool:
        """Whether the verdict allows it to be published."""
        return self.level != "stop"

    @property
    def kept_text(self) -> str:
        """The share in the form in which it is listed."""
        return "–" if self.kept is None else f"{100 * self.kept:.1f}"

    def is_same(self, options: BoundsOptions) -> bool:
        """Whether these options make the same table, regardless of the order of its attributes."""
        return _unordered(self.options) == _unordered(options)

    @property
    def label(self) -> str:
        return f"{self.number}: {self.words}; {self.small} small counts, {self.certain} rows reveal a status, {self.kept_text} % kept"


@dataclass(frozen=True, slots=True)
class Waiting:
    """An arrangement from a project that has not been audited again yet."""

    words: str
    options: BoundsOptions


ORDERS: dict[str, Callable[[Try], Any]] = {
    "risk": lambda one: (one.small, one.certain, -(one.kept or 0)),
    "number": lambda one: one.number,
    "small": lambda one: (one.small, -(one.kept or 0)),
    "certain": lambda one: (one.certain, -(one.kept or 0)),
    "kept": lambda one: -(one.kept or 0),
}
"""How the arrangements tried are sorted."""


@dataclass
class Tables:
    """State of the page between visits."""

    attributes: list[dict[str, Any]] = field(default_factory=list)
    unusable: dict[str, str] = field(default_factory=dict)
    missing: list[str] = field(default_factory=list)
    n: int = 0
    rows: list[str] = field(default_factory=list)
    cols: list[str] = field(default_factory=list)
    out: list[str] = field(default_factory=list)
    merged: dict[str, dict[str, list[str]]] = field(default_factory=dict)
    decimals: int | None = None
    given: list[dict[str, Any]] = field(default_factory=list)
    base: BoundsOptions | None = None
    tries: list[Try] = field(default_factory=list)
    path: list[int] = field(default_factory=list)
    sort_by: str = "risk"
    is_reversed: bool = False
    proof: str = ""
    proof_of: BoundsOptions | None = None
    name: str = ""
    accept: bool = False
    new_population: bool = False
    count_people: bool = False
    small: int = 5
    certain: float = 100.0
    within: float = 0.0
    waiting: list[Waiting] = field(default_factory=list)
    """Arrangements of a project; the one shown most recently comes last."""

    @property
    def has_work(self) -> bool:
        """Whether anything was tried besides the initial arrangement."""
        return len(self.tries) > 1

    @property
    def current(self) -> int:
        return self.path[-1] if self.path else 0

    def open(self, found: dict[str, Any]) -> None:
        """Take a counted file: the last attributes with few categories become the columns, and as many others as fit become the rows."""
        self.attributes, self.unusable, self.n = found["attributes"], found["left"], found["n"]
        self.missing = found["missing"]
        few = [a for a in self.attributes if 1 < len(a["labels"]) <= MOST_LEVELS]
        cols = few[-2:] if len(few) > 2 else few[-1:]
        cells, rows = 1, []
        for one in cols:
            cells *= len(one["labels"])
        for one in few[: len(few) - len(cols)]:
            if cells * len(one["labels"]) <= MOST_CELLS:
                cells *= len(one["labels"])
                rows.append(one["name"])
        self.rows, self.cols = rows, [one["name"] for one in cols]
        self.out = [a["name"] for a in self.attributes if a["name"] not in (*self.rows, *self.cols)]
        self.base = None

    def base_of(self, options: BoundsOptions) -> BoundsOptions:
        """The table that this one is compared with; this one itself if its attributes differ or that table has none of its columns."""
        base = self.base
        if base is None or not set(options.cols) & set(base.cols):
            return options
        is_part = {*options.rows, *options.cols} <= {*base.rows, *base.cols}
        return base if is_part else options

    def rebase(self, base: BoundsOptions, kept: Sequence[float | None]) -> None:
        """Compare with another table; `kept` is the share of it that each arrangement keeps."""
        self.base = base
        self.tries = [replace(one, kept=share) for one, share in zip(self.tries, kept, strict=True)]

    def names(self) -> list[str]:
        """All columns that were read, those of tables first."""
        return [*(attribute["name"] for attribute in self.attributes), *self.unusable]

    def unusable_text(self) -> str:
        """Columns that cannot be used in a table, with the reasons."""
        listed = "; ".join(f"{name} ({why})" for name, why in self.unusable.items())
        return f"Not offered: {listed}." if listed else ""

    def shelves(self) -> list[dict[str, Any]]:
        """The shelves as they are drawn."""
        return [
            {
                "key": key,
                "title": title,
                "empty": text,
                "chips": [self._chip(name) for name in getattr(self, key)],
            }
            for key, (title, text) in SHELVES.items()
        ]

    def _chip(self, name: str) -> dict[str, Any]:
        return {"name": name, "size": len(self.groups(name)), "is_merged": bool(self.merged.get(name))}

    def groups(self, name: str) -> dict[str, tuple[str, ...]]:
        """Current categories, in the order of their first label, each with its labels."""
        labels = next(a["labels"] for a in self.attributes if a["name"] == name)
        new_of = {old: new for new, olds in self.merged.get(name, {}).items() for old in olds}
        found: dict[str, list[str]] = {}
        for label in labels:
            found.setdefault(new_of.get(label, label), []).append(label)
        return {new: tuple(old) for new, old in found.items()}

    def move(self, name: str, to: str, index: int) -> str:
        """Put an attribute on a shelf; returns the change in words."""
        if to not in SHELVES or name not in (*self.rows, *self.cols, *self.out):
            return ""
        before = next(key for key in SHELVES if name in getattr(self, key))
        getattr(self, before).remove(name)
        getattr(self, to).insert(index, name)
        if before == to:
            return f"Reorder {name}"
        return f"Leave out {name}" if to == "out" else f"Move {name} to {SHELVES[to][0].lower()}"

    def merge(self, name: str, labels: Sequence[str], new: str) -> str:
        """Make one category of several labels."""
        kept = {key: [x for x in old if x not in labels] for key, old in self.merged.get(name, {}).items()}
        kept = {key: old for key, old in kept.items() if old}
        others = {x for a in self.attributes if a["name"] == name for x in a["labels"]} - set(labels)
        while new in others or new in kept:
            new += " (merged)"
        self.merged[name] = {**kept, new: list(labels)}
        return f"Merge {name}: {new}"

    def regroup(self, name: str, new_of: Mapping[str, str], level: int) -> str:
        """Take the categories of a level of a hierarchy."""
        groups: dict[str, list[str]] = {}
        for label in next(a["labels"] for a in self.attributes if a["name"] == name):
            groups.setdefault(new_of.get(label, label), []).append(label)
        self.merged[name] = {new: old for new, old in groups.items() if old != [new]}
        return f"Level {level} of {name}"

    def split(self, name: str, labels: Sequence[str]) -> str:
        """Split merged categories; all of them if none is named."""
        self.merged[name] = {
            key: old for key, old in self.merged.get(name, {}).items() if labels and key not in labels
        }
        return f"Split {name}"

    def options(self) -> BoundsOptions:
        """The current arrangement, as options of the verb."""
        shown = (*self.rows, *self.cols)
        recode = {name: merged for name, merged in self.merged.items() if merged and name in shown}
        request: dict[str, Any] = {"rows": list(self.rows), "cols": list(self.cols)}
        request |= {"recode": recode} if recode else {}
        request |= {"given": self.given} if self.given else {}
        request |= {} if self.decimals is None else {"decimals": self.decimals}
        request |= {"small": self.small, "certain": self.certain}
        return validated(BoundsOptions, request)

    def in_order(self) -> list[Waiting]:
        """The arrangements tried, for a project; the one shown most recently comes last."""
        tried = sorted(self.tries, key=lambda one: one.number == self.current)
        return [*self.waiting, *(Waiting(one.words, one.options) for one in tried)]

    def arrange(self, options: BoundsOptions) -> bool:
        """Arrange a table; False if one of its attributes is missing."""
        names = {attribute["name"] for attribute in self.attributes}
        if not {*options.rows, *options.cols} <= names:
            return False
        self.rows, self.cols = list(options.rows), list(options.cols)
        self.out = [a["name"] for a in self.attributes if a["name"] not in (*self.rows, *self.cols)]
        recode = options.recode if isinstance(options.recode, dict) else {}
        self.merged = {
            name: {new: list(old) for new, old in groups.items()} for name, groups in recode.items()
        }
        self.decimals = options.decimals
        self.given = list(options.given) if isinstance(options.given, list) else []
        self.small, self.certain = options.small, options.certain
        return True

    def set_limits(self, typed: Mapping[str, str]) -> None:
        """Take limits as they were typed.

        Raises
        ------
        InputError
            If one is not a number, or not one that the verbs accept.
        """
        try:
            given: dict[str, Any] = {"small": int(typed["small"]), "certain": float(typed["certain"])}
            within = float(typed["within"] or 0)
        except ValueError:
            given = {}
        if not given:
            raise InputError("limits must be numbers: a count, and percentages.")
        validated(BoundsOptions, given)
        validated(AuditOptions, {"within": within})
        self.small, self.certain, self.within = given["small"], given["certain"], within

    def remember(self, words: str, options: BoundsOptions, found: dict[str, Any]) -> None:
        """Record an audited arrangement; the same arrangement keeps its number."""
        known = next((one for one in self.tries if one.is_same(options)), None)
        if known is None:
            summary = found["summary"]
            known = Try(
                number=len(self.tries) + 1,
                words=words if self.tries else "As opened",
                options=options,
                small=summary["disclosed_small_cells"],
                certain=summary["certain_rows"],
                kept=found["kept"],
                level=found["verdict"]["level"],
                sentence=found["verdict"]["sentence"],
            )
            self.tries.append(known)
        if known.number != self.current:
            self.path.append(known.number)

    def take_suggestions(self, found: dict[str, Any]) -> None:
        """Add redesigns to the choices."""
        for line in found["lines"]:
            options = validated(BoundsOptions, _suggested(line, found["asked"]))
            if any(one.is_same(options) for one in self.tries):
                continue
            summary = line["summary"]
            self.tries.append(
                Try(
                    number=len(self.tries) + 1,
                    words=f"Suggested: {line['words'] or 'other rows and columns'}",
                    options=options,
                    small=summary["disclosed_small_cells"],
                    certain=summary["certain_rows"],
                    kept=line["kept"],
                    level=line["verdict"]["level"],
                    sentence=line["verdict"]["sentence"],
                )
            )
        self.proof_of = found["asked"]
        if not found["lines"]:
            self.proof = (
                f"No safe table was found among {found['examined']:,}; leave something out, or search again."
            )
        else:
            self.proof = (
                "No safe table keeps more (proved)."
                if found["is_proved"]
                else "Not all others were searched."
            )

    def restore(self, number: int) -> None:
        """Restore the arrangement."""
        self.arrange(next(one.options for one in self.tries if one.number == number))

    def before(self) -> int | None:
        """Return to the previous arrangement, which undoes a step."""
        if len(self.path) < 2:
            return None
        self.path.pop()
        return self.path[-1]

    def now(self) -> Try | None:
        return next((one for one in self.tries if one.number == self.current), None)

    def words_now(self) -> str:
        now = self.now()
        return "" if now is None else now.words

    def sort(self, by: str) -> None:
        """Sort by a column, or reverse the order if already sorted by it."""
        self.is_reversed = by == self.sort_by and not self.is_reversed
        self.sort_by = by

    def sorted(self) -> list[Try]:
        """Least risky first, then most informative first, or by the chosen column."""
        return sorted(self.tries, key=ORDERS[self.sort_by], reverse=self.is_reversed)

    def best(self) -> str:
        """The table that keeps most among those whose verdict allows publication, and that verdict."""
        proof = self.proof if self.proof_of is not None and self._is_compared(self.proof_of) else ""
        safe = [one for one in self.tries if one.is_safe and one.kept is not None]
        if safe:
            best = max(safe, key=lambda one: one.kept or 0)
            return f"{best.number} is best so far. {best.sentence} {proof}"
        if not self.tries:
            return ""
        return (
            proof
            or "Nothing safe has been tried yet. Merge categories, leave something out, or press Suggest."
        )

    def _is_compared(self, options: BoundsOptions) -> bool:
        """Whether a search from these options applies to the current comparison: the same question, published in the same form."""
        now = self.now()
        return self.base == options and now is not None and now.options.decimals == options.decimals

    def given_text(self, one: dict[str, Any]) -> str:
        """A fact in words."""
        bound = next(key for key in ("exactly", "at_least", "at_most") if key in one)
        where = ", ".join([*one["row"].values(), *one.get("col", {}).values()])
        return f"{where}: {bound.replace('_', ' ')} {one[bound]:,} people"


def _unordered(options: BoundsOptions) -> dict[str, Any]:
    return options.model_dump() | {"rows": sorted(options.rows), "cols": sorted(options.cols)}


def _suggested(line: dict[str, Any], request: BoundsOptions) -> dict[str, Any]:
    """A redesign as the verb takes it: in the published form and with the thresholds for which it was found."""
    found: dict[str, Any] = {"rows": line["rows"], "cols": line["cols"]}
    found |= {"recode": line["recodes"]} if line["recodes"] else {}
    kept = {name: getattr(request, name) for name in ("decimals", "small", "certain")}
    return found | {name: value for name, value in kept.items() if value is not None}


def natural_name(labels: Sequence[str]) -> str:
    """The display name of merged categories.

    Examples
    --------
    >>> natural_name(["25-54", "55+"])
    '25-54 or 55+'
    """
    joined = " or ".join(labels)
    return joined if len(joined) <= LONG else f"{labels[0]} or {len(labels) - 1} others"
