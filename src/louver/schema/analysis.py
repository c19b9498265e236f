"""Analyses planned for a file: means, shares and regressions, from a TOML file or a table in the spec."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field

from louver._words import listed
from louver.errors import InputError
from louver.schema.options import Names
from louver.schema.validate import Options, file_or, read_toml, validated

__all__ = ["Analysis", "AnalysisTable", "analyses_of"]

AnalysisTable = Annotated[
    str | dict[str, Any], file_or(lambda value: isinstance(value, dict), "a table with analyses")
]
"""An option that names a file of analyses, or contains them."""


class Analysis(Options):
    """One analysis: `mean` of a number, `share` of a label, by groups; or a regression of `of` on other columns.

    Attributes
    ----------
    kind : {"mean", "share", "linear", "logistic"}
    of : str
        The column that is analysed.
    label : str, optional
        The label whose share is estimated, or that a logistic regression predicts.
    by : tuple of str
        Columns that define the groups of a mean or share; without any, it is computed over all records.
    on : tuple of str
        Predictors of a regression: numbers unchanged, other columns as indicators of all labels except the most common.
    """

    kind: Literal["mean", "share", "linear", "logistic"]
    of: str
    label: str | None = None
    by: Names = ()
    on: Names = ()

    @property
    def name(self) -> str:
        """Name of the analysis on pages."""
        label = f" = {self.label}" if self.label is not None else ""
        if self.kind in ("mean", "share"):
            return f"{self.kind} of {self.of}{label}" + (f" by {listed(self.by)}" if self.by else "")
        return f"{self.kind} regression of {self.of}{label} on {listed(self.on)}"


class _Analyses(Options):
    analyses: Annotated[list[Analysis], Field(min_length=1)]


def analyses_of(given: str | Mapping[str, Any] | None) -> tuple[Analysis, ...]:
    """The analyses of an option: a file, or a table in the spec.

    Raises
    ------
    InputError
        If an analysis lacks what its kind needs.
    """
    if given is None:
        return ()
    where = given if isinstance(given, str) else "analysis"
    found = tuple(validated(_Analyses, read_toml(given) if isinstance(given, str) else given, where).analyses)
    for number, one in enumerate(found, 1):
        needs_label, is_regression = one.kind in ("share", "logistic"), one.kind in ("linear", "logistic")
        problem = (
            f'kind = "{one.kind}" needs a label'
            if needs_label and one.label is None
            else f'kind = "{one.kind}" takes no label'
            if not needs_label and one.label is not None
            else f'kind = "{one.kind}" needs the predictors in "on", and no "by"'
            if is_regression and (not one.on or one.by)
            else f'kind = "{one.kind}" takes groups in "by", and no "on"'
            if not is_regression and one.on
            else 'column "of" must not be among the others'
            if one.of in (*one.on, *one.by)
            else None
        )
        if problem is not None:
            raise InputError(f"{where}: analysis {number}: {problem}.", file=where, option="--analysis")
    return found
