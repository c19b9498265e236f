"""Statements of pages about the noise of a release, for every verb."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

from louver._verdict import Level, Verdict
from louver.release.manifest import Manifest
from louver.release.sentences import public_numbers

__all__ = ["NOT_AUDITED", "given_known", "groups_verdict", "loss_of", "status_of", "topdown_verdict"]


def loss_of(privacy: Mapping[str, Any]) -> str:
    """The privacy loss that a manifest states.

    Examples
    --------
    >>> loss_of({"measure": "epsilon", "amount": "1/2", "neighbours": "change-record"})
    'epsilon = 1/2 (change-record)'
    """
    return f"{privacy['measure']} = {privacy['amount']} ({privacy['neighbours']})"


def groups_verdict(privacy: Mapping[str, Any], *, is_private: bool, is_for_release: bool) -> Verdict:
    """The verdict on a release of group sizes, from what its manifest says about its noise."""
    first = privacy.get("first_release")
    also = (
        ""
        if first is None
        else f" in addition to {loss_of(first)} for the release of people that it agrees with"
    )
    return _verdict(privacy, also, given_known(privacy), is_private, is_for_release)


def given_known(privacy: Mapping[str, Any]) -> str:
    """What is protected, and what the guarantee assumes to be known."""
    return str(privacy["meaning"]) + "".join(f", given {known}" for known in privacy["invariants"])


UNSEEN_NOISE = "The answers do not show whether they have that noise, or whether it was drawn only once."


NOT_AUDITED = (
    "What these exact numbers reveal together with tables that hide small counts of the same people was not checked; list them as tables "
    "of louver audit with the register of those tables."
)


def topdown_verdict(
    privacy: Mapping[str, Any], covariates: Sequence[str], *, is_private: bool, is_for_release: bool
) -> Verdict:
    """The verdict on a TopDown release, from what its manifest says about its noise and the public columns that it used."""
    found = _topdown_verdict(privacy, is_private, is_for_release)
    return replace(found, reasons=(*found.reasons, public_numbers(covariates))) if covariates else found


def _topdown_verdict(privacy: Mapping[str, Any], is_private: bool, is_for_release: bool) -> Verdict:
    by = privacy.get("stated_by")
    if by is not None and is_for_release:
        sentence = (
            f"The noise was drawn and published by {by}; louver claims no privacy loss of its own. "
            f"The variances stated amount to {privacy['measure']} = {float(Fraction(privacy['amount'])):.4g} ({privacy['neighbours']})."
        )
        exact = (f"Exact in these files: {what}." for what in privacy["invariants"])
        return Verdict(Level.CARE, sentence, (UNSEEN_NOISE, *exact))
    first = privacy.get("first_release")
    also = "" if first is None else f" in addition to {loss_of(first)} for the release it extends"
    given = ", given the exact counts listed below" if privacy["not_protected"] else ""
    return _verdict(privacy, also, f"{privacy['meaning']}{given}", is_private, is_for_release)


def _verdict(
    privacy: Mapping[str, Any], also: str, meaning: str, is_private: bool, is_for_release: bool
) -> Verdict:
    exact: Sequence[str] = privacy["not_protected"]
    reasons = tuple(f"Not protected: {what}." for what in exact)
    if warning := _not_private(is_private=is_private, is_for_release=is_for_release):
        return Verdict(Level.STOP, warning, reasons)
    sentence = f"Promised: {loss_of(privacy)}{also}. That bounds what these files can reveal about whether {meaning}."
    if exact:
        return Verdict(Level.CARE, sentence, (*reasons, NOT_AUDITED))
    return Verdict(Level.OK, sentence, reasons)


def status_of(manifest: Manifest) -> dict[str, bool]:
    """The intended use that a manifest states, in the form used by verdicts."""
    return {"is_private": not manifest.not_private, "is_for_release": not manifest.not_for_release}


def _not_private(*, is_private: bool, is_for_release: bool) -> str:
    if not is_for_release:
        return "NOT PRIVATE and not for release: made to compare with the truth."
    if not is_private:
        return "NOT PRIVATE: the noise comes from a seed that anyone can repeat."
    return ""
