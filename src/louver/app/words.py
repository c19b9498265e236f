"""Numbers and dates as shown to readers, and numbers that readers type."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from louver.errors import InputError

__all__ = [
    "ACCEPT_STATUS",
    "COUNT_PEOPLE",
    "NEW_POPULATION",
    "RELATIONS",
    "amount_text",
    "as_number",
    "capital",
    "date_text",
    "natural_order",
    "next_name",
    "share_text",
    "without_flags",
]

NAMED_FILE = re.compile(r"[^:]*\.\w+( \[[^:]*\])?:")
ACCEPT_STATUS = "Publish although rows reveal a person's status"
NEW_POPULATION = "These are different people from those in the register"
COUNT_PEOPLE = "Count people, not households, although records have a household number"
"""Page labels of the choices that a verb's message may request."""

PHRASES = (
    (
        r"let that ledger pay \(`louver ledger[^`]*`\), or say with --new-population that they are other people \(.*?\)",
        "on the page Ledger, choose that ledger and admit the open data, or state that this ledger's people are different",
    ),
    (r" \(--[a-z][^()]*\)", ""),
    (r"\b[Oo]ption --[a-z-]+: ", ""),
    (r" --accept-unchecked publishes it anyway\.", ""),
    (r"--accept publishes it anyway", f'Tick "{ACCEPT_STATUS}" to publish it anyway'),
    (
        r"confirm with --new-population that these are other people, or that you have checked",
        f'tick "{NEW_POPULATION}" if they are, or if you have checked',
    ),
    (r"confirm with --new-population that these are other people", f'tick "{NEW_POPULATION}" if they are'),
    (r"with --new-population they count as other people", "as you say, they count as other people"),
    (r"by an earlier --new-population they", "as you said of an earlier publication, they"),
    (r"audit them again with --register", "audit them again on the page Audit"),
    (r"name it in --unit\b", 'give it the role "Household or unit" on the page Data'),
    (r"name the one that did with --ledger", "choose the one that did on the page Ledger"),
    (r"--([klt]) ([0-9])", "\\1\u00a0=\u00a0\\2"),
    (r"\b([Tt])he register register\b", r"\1he register"),
)
"""Phrases of verb messages that name options, and their wording on a page; plain option names come first."""
PLACES = {
    "against": "the earlier releases",
    "earlier": "the earlier records",
    "identifying": "the identifying columns",
    "keep": "the columns kept as they are",
    "ledger": "the ledger",
    "link": "the person key",
    "person": "the person key",
    "quasi": "the quasi-identifiers",
    "register": "the register",
    "sensitive": "the sensitive columns",
    "unit": "the role Household or unit",
    "weight": "the column of counts",
    "where": "the condition on rows",
}
"""Option -> its name within a sentence; other options keep their names."""
STEP = re.compile(r"^([<>]=?)?\s*(-?[0-9]+(?:\.[0-9]+)?)")
"""The number at the start of a label."""
FLAG = re.compile(r"(?<![\w-])--([a-z][a-z0-9-]*)")

RELATIONS = {
    "add-remove-record": "one person more or less",
    "change-record": "one person's answers changed",
    "add-remove-unit": "one whole unit more or less",
}
"""Neighbours, in words."""
MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


def amount_text(amount: object) -> str:
    """An exact amount as a decimal number, preceded by "about" where it is not exact.

    Examples
    --------
    >>> amount_text("21/40"), amount_text("1/3")
    ('0.525', 'about 0.3333')
    """
    exact = Fraction(str(amount))
    short = f"{float(exact):.6g}"
    return short if Fraction(short) == exact else f"about {float(exact):.4g}"


def date_text(stamp: str) -> str:
    """A day, from the time recorded in a manifest or a ledger.

    Examples
    --------
    >>> date_text("2026-11-14T16:02:11+00:00")
    '14 Nov 2026'
    """
    year, month, day = stamp[:10].split("-")
    return f"{int(day)} {MONTHS[int(month) - 1]} {year}"


def natural_order(labels: Sequence[str]) -> list[int]:
    """Positions of labels in their natural order: those that begin with a number in the order of the number, then all others unchanged.

    Examples
    --------
    >>> labels = ["10", "2", ">40", "40", "<25", "25-39", "none"]
    >>> [labels[place] for place in natural_order(labels)]
    ['2', '10', '<25', '25-39', '40', '>40', 'none']
    """
    found = [STEP.match(label) for label in labels]
    keys = [
        (1, 0.0, 0) if m is None else (0, float(m[2]), {"<": -1, ">": 1}.get((m[1] or "=")[0], 0))
        for m in found
    ]
    return sorted(range(len(labels)), key=lambda place: keys[place])


def share_text(share: float) -> str:
    """A share as a percentage with three digits.

    Examples
    --------
    >>> share_text(0.00216), share_text(1.0)
    ('0.216 %', '100 %')
    """
    return f"{100 * share:.3g} %"


def without_flags(text: str) -> str:
    """A message of a verb as a page shows it: the names of options are replaced by those of the controls.

    Examples
    --------
    >>> without_flags("Not compared with other releases (--against): ask for --max-size 5.")
    'Not compared with other releases: ask for max size 5.'
    >>> without_flags("pays; let that ledger pay (`louver ledger admit a b`), or say with --new-population that they are other people (`c`).")
    "pays; on the page Ledger, choose that ledger and admit the open data, or state that this ledger's people are different."
    """
    for pattern, content in PHRASES:
        text = re.sub(pattern, content, text)
    return FLAG.sub(lambda found: PLACES.get(found[1], found[1].replace("-", " ")), text)


def capital(sentence: str) -> str:
    """Capitalise a sentence, unless it begins with a file name, which is left as it is.

    Examples
    --------
    >>> capital("row 3 looks like names."), capital("staff.xlsx: row 3 looks like names.")
    ('Row 3 looks like names.', 'staff.xlsx: row 3 looks like names.')
    >>> capital("mine.toml [topdown]: the key shares is required.")
    'mine.toml [topdown]: the key shares is required.'
    """
    if NAMED_FILE.match(sentence):
        return sentence
    return sentence[:1].upper() + sentence[1:]


def as_number(text: str, what: str, kind: type[int] | type[float] = float) -> int | float:
    """A number that was typed.

    Raises
    ------
    InputError
        If the text is not a number.
    """
    try:
        return kind(text)
    except ValueError:
        pass
    raise InputError(f"{what} must be a number.")


def next_name(tables: Sequence[Mapping[str, Any]]) -> str:
    """A name that no table in a list has."""
    taken, number = {one["name"] for one in tables}, len(tables) + 1
    while f"table {number}" in taken:
        number += 1
    return f"table {number}"
