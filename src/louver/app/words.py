"""Numbers and dates as a reader has them."""

from __future__ import annotations

import re
from fractions import Fraction

__all__ = ["RELATIONS", "amount_text", "date_text", "share_text", "without_flags"]

ASIDE = re.compile(r" \(--[a-z][^()]*\)")
"""What only says which option of the command line it is."""
FLAG = re.compile(r"(?<![\w-])--([a-z][a-z0-9-]*)")

RELATIONS = {
    "add-remove-record": "one person more or less",
    "change-record": "one person's answers changed",
    "add-remove-unit": "one whole unit more or less",
}
"""Neighbours, in words."""
MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


def amount_text(amount: object) -> str:
    """An exact amount as a decimal number, with "about" where it is none.

    Examples
    --------
    >>> amount_text("21/40"), amount_text("1/3")
    ('0.525', 'about 0.3333')
    """
    exact = Fraction(str(amount))
    short = f"{float(exact):.6g}"
    return short if Fraction(short) == exact else f"about {float(exact):.4g}"


def date_text(stamp: str) -> str:
    """A day, from the time that a manifest or a ledger keeps.

    Examples
    --------
    >>> date_text("2026-11-14T16:02:11+00:00")
    '14 Nov 2026'
    """
    year, month, day = stamp[:10].split("-")
    return f"{int(day)} {MONTHS[int(month) - 1]} {year}"


def share_text(share: float) -> str:
    """A share as a percentage with three digits.

    Examples
    --------
    >>> share_text(0.00216), share_text(1.0)
    ('0.216 %', '100 %')
    """
    return f"{100 * share:.3g} %"


def without_flags(text: str) -> str:
    """A sentence of a verb for somebody who looks at a page: options are called what they are about.

    Examples
    --------
    >>> without_flags("Not compared with other releases (--against): ask for --max-size 5.")
    'Not compared with other releases: ask for max size 5.'
    """
    return FLAG.sub(lambda found: found[1].replace("-", " "), ASIDE.sub("", text))
