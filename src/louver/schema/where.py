"""The filter language of `--where`: comparisons of columns with and, or, not and parentheses.

    age >= 18 and (state in ('GA', 'NY') or not income is missing)

Columns are bare words or in double quotes, text is in single quotes, numbers are unquoted. The text is parsed here
into a tree; only the tree is ever turned into a query.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, NoReturn

from louver.errors import InputError

__all__ = ["All", "Among", "Column", "Compare", "Condition", "Missing", "Not", "Some", "Value", "parse_where"]

MAX_CHARACTERS = 10_000
MAX_DEPTH = 50

Operator = Literal["=", "!=", "<", "<=", ">", ">="]
Value = str | float
WORDS = ("and", "or", "not", "in", "is", "missing")
SYNONYMS = {"==": "=", "<>": "!="}
TOKEN = re.compile(
    r"""\s*(?:
      (?P<number>[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?(?![\w.]))
    | (?P<text>'(?:[^']|'')*')
    | (?P<quoted>"(?:[^"]|"")+")
    | (?P<word>[^\W\d]\w*)
    | (?P<sign><=|>=|==|!=|<>|[=<>(),])
    )""",
    re.VERBOSE,
)


@dataclass(frozen=True, slots=True)
class Column:
    """A column of the data."""

    name: str


@dataclass(frozen=True, slots=True)
class Compare:
    """A column compared with a number, a text or another column; false where a value is missing."""

    column: Column
    operator: Operator
    other: Column | Value


@dataclass(frozen=True, slots=True)
class Among:
    """Whether a column has one of some values, all numbers or all texts; false where it is missing."""

    column: Column
    values: tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class Missing:
    """Whether a column has no value."""

    column: Column


@dataclass(frozen=True, slots=True)
class Not:
    """True if the inner condition is false."""

    inner: Condition


@dataclass(frozen=True, slots=True)
class All:
    """True if every part is true."""

    parts: tuple[Condition, ...]


@dataclass(frozen=True, slots=True)
class Some:
    """True if at least one part is true."""

    parts: tuple[Condition, ...]


Condition = Compare | Among | Missing | Not | All | Some


def parse_where(text: str) -> Condition:
    """Parse a filter.

    Raises
    ------
    InputError
        With the position of the error, but not the text there.

    Examples
    --------
    >>> parse_where("age >= 18 and not sex = 'f'")
    All(parts=(Compare(column=Column(name='age'), operator='>=', other=18.0), \
Not(inner=Compare(column=Column(name='sex'), operator='=', other='f'))))
    """
    if len(text) > MAX_CHARACTERS:
        raise InputError(f"is longer than {MAX_CHARACTERS:,} characters; shorten it")
    parser = _Parser(list(_tokens(text)))
    found = parser.either()
    if parser.kind != "end":
        parser.refuse("and, or, or the end")
    return found


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str  # number, text, column, end, or the word or sign itself
    text: str
    place: int


def _tokens(text: str) -> Iterator[_Token]:
    end = len(text.rstrip())
    place = 0
    while place < end:
        found = TOKEN.match(text, place)
        if found is None:
            start = place + len(text[place:]) - len(text[place:].lstrip())
            _refuse(start, "a column, a number, a text in single quotes or a sign")
        assert found.lastgroup is not None
        yield _token(found.lastgroup, found[found.lastgroup], found.start(found.lastgroup))
        place = found.end()
    yield _Token("end", "", end)


def _token(kind: str, text: str, place: int) -> _Token:
    if kind == "text":
        return _Token("text", text[1:-1].replace("''", "'"), place)
    if kind == "quoted":
        return _Token("column", text[1:-1].replace('""', '"'), place)
    if kind == "word":
        lower = text.lower()
        return _Token(lower, text, place) if lower in WORDS else _Token("column", text, place)
    if kind == "sign":
        return _Token(SYNONYMS.get(text, text), text, place)
    return _Token(kind, text, place)


class _Parser:
    """Recursive descent: either -> both -> negated -> comparison."""

    def __init__(self, tokens: list[_Token]) -> None:
        self._tokens = tokens
        self._next = 0
        self._depth = 0

    @property
    def kind(self) -> str:
        return self._tokens[self._next].kind

    def refuse(self, expected: str) -> NoReturn:
        _refuse(self._tokens[self._next].place, expected)

    def either(self) -> Condition:
        parts = [self._both()]
        while self.kind == "or":
            self._take("or")
            parts.append(self._both())
        return parts[0] if len(parts) == 1 else Some(tuple(parts))

    def _both(self) -> Condition:
        parts = [self._negated()]
        while self.kind == "and":
            self._take("and")
            parts.append(self._negated())
        return parts[0] if len(parts) == 1 else All(tuple(parts))

    def _negated(self) -> Condition:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise InputError(f"is nested more than {MAX_DEPTH} levels deep; flatten it")
        found: Condition
        if self.kind == "not":
            self._take("not")
            found = Not(self._negated())
        elif self.kind == "(":
            self._take("(")
            found = self.either()
            self._take(")")
        else:
            found = self._comparison()
        self._depth -= 1
        return found

    def _comparison(self) -> Condition:
        column = Column(self._take("column", "a column"))
        if self.kind == "is":
            self._take("is")
            return self._negatable(self._skip_not(), self._missing(column))
        if self.kind in ("in", "not"):
            is_negated = self._skip_not()
            self._take("in")
            return self._negatable(is_negated, Among(column, self._values()))
        if self.kind not in ("=", "!=", "<", "<=", ">", ">="):
            self.refuse("a comparison (=, <, in, is missing)")
        operator: Operator = self.kind  # type: ignore[assignment]
        self._next += 1
        if self.kind == "column":
            return Compare(column, operator, Column(self._take("column")))
        return Compare(column, operator, self._value())

    def _missing(self, column: Column) -> Condition:
        self._take("missing")
        return Missing(column)

    def _skip_not(self) -> bool:
        if self.kind == "not":
            self._take("not")
            return True
        return False

    def _negatable(self, is_negated: bool, found: Condition) -> Condition:
        return Not(found) if is_negated else found

    def _values(self) -> tuple[Value, ...]:
        self._take("(")
        values = [self._value()]
        while self.kind == ",":
            self._take(",")
            if isinstance(self._peek_value(), str) != isinstance(values[0], str):
                self.refuse("values of one type, all numbers or all texts")
            values.append(self._value())
        self._take(")")
        return tuple(values)

    def _peek_value(self) -> Value:
        return "" if self.kind == "text" else 0.0

    def _value(self) -> Value:
        if self.kind == "text":
            return self._take("text")
        value = float(self._tokens[self._next].text) if self.kind == "number" else math.nan
        if not math.isfinite(value):
            self.refuse("a number, or a text in single quotes")
        self._next += 1
        return value

    def _take(self, kind: str, expected: str | None = None) -> str:
        if self.kind != kind:
            self.refuse(expected or f'"{kind}"')
        self._next += 1
        return self._tokens[self._next - 1].text


def _refuse(place: int, expected: str) -> NoReturn:
    raise InputError(f"cannot be understood at character {place + 1}, where {expected} should be")
