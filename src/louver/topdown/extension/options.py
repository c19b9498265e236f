"""The spec of an extension: that of TopDown, with the release it extends, the attributes that refine others, and edit rules.

[topdown]
extends = "first"                        # release directory, relative to the spec
digest = "9f3c..."                       # optional: the digest in its manifest; any other release is refused
epsilon = 1

[topdown.refines.voting_age]             # an attribute of the first release that a finer one stands for
attribute = "age"
merge = { under = ["0", "1"], over = ["18", "19"] }

[[topdown.rules]]                        # in every leaf: spouses are at most 1 x householders
name = "spouses"
cells = { relationship = ["spouse", "partner"] }
at_most = 1
of = { relationship = ["householder"] }

[[topdown.rules]]                        # nobody in a nursing home is a child, as far as the first release allows
name = "nursing homes"
cells = { relationship = ["301"], age = ["0", "1"] }
at_most = 0

[topdown.household]                      # a leaf with one head and nobody but members is one household
head = { relationship = ["householder"] }
members = { relationship = ["householder", "spouse", "child", "parent"] }
years = "age"

[[topdown.household.gaps]]               # there: a child is at least 15 years younger than the head
name = "children"
cells = { relationship = ["child"] }
younger = 15
"""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

from pydantic import Field, field_validator, model_validator
from pydantic_core import PydanticCustomError

from louver.schema.validate import OWN, Options
from louver.topdown.options import Labels, SharesOptions, TopDownOptions

__all__ = ["ExtendOptions", "GapOptions", "HouseholdOptions", "HouseholdRuleOptions", "RefineOptions"]


class RefineOptions(Options):
    """One of `[topdown.refines]`: which labels of a finer attribute each label of the first release stands for."""

    attribute: str
    merge: Annotated[Labels, Field(min_length=1)]


class HouseholdRuleOptions(Options):
    """One of `[[topdown.rules]]`: in every leaf the people in `cells` are at most `at_most` times those in `of`; 0 times for nobody."""

    name: Annotated[str, Field(min_length=1)]
    cells: Annotated[Labels, Field(min_length=1)]
    at_most: Annotated[int, Field(ge=0)]
    of: Annotated[Labels, Field(min_length=1)] | None = None

    @model_validator(mode="after")
    def _of_somebody(self) -> HouseholdRuleOptions:
        if (self.at_most == 0) != (self.of is None):
            raise PydanticCustomError(
                OWN, 'needs "of", unless "at_most" is 0 and these cells are to be empty'
            )
        return self


class GapOptions(Options):
    """One of `[[topdown.household.gaps]]`: the people in `cells` are at least this many years younger or older than the head."""

    name: Annotated[str, Field(min_length=1)]
    cells: Annotated[Labels, Field(min_length=1)]
    younger: Annotated[int, Field(ge=1)] | None = None
    older: Annotated[int, Field(ge=1)] | None = None

    @model_validator(mode="after")
    def _one_way(self) -> GapOptions:
        if (self.younger is None) == (self.older is None):
            raise PydanticCustomError(OWN, 'needs either "younger" or "older"')
        return self


class HouseholdOptions(Options):
    """`[topdown.household]`: how to recognise a leaf that is one household, and the age gaps between its people."""

    head: Annotated[Labels, Field(min_length=1)]
    members: Annotated[Labels, Field(min_length=1)]
    years: str
    gaps: list[GapOptions] = Field(default_factory=list)


class ExtendOptions(TopDownOptions):
    """`[topdown]` of an extension."""

    most_cells: ClassVar[int] = 1 << 23
    needs_detailed: ClassVar[bool] = False

    shares: SharesOptions  # not optional: an extension leaves out cells that follow from the first release
    extends: Annotated[str, Field(min_length=1)]
    digest: str | None = None
    refines: dict[str, RefineOptions] = Field(default_factory=dict)
    rules: list[HouseholdRuleOptions] = Field(default_factory=list)
    household: HouseholdOptions | None = None

    @field_validator(
        "invariants",
        "covariates",
        "estimator",
        "shrink",
        "extended_by",
        mode="before",
    )
    @classmethod
    def _refuse(cls, value: Any) -> Any:
        raise PydanticCustomError(
            OWN,
            "does not apply to an extension, which publishes nothing exactly and has only one estimator; remove it",
        )
