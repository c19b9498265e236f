"""The options of the verb, checked once for the library, the command line and the spec file."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, FiniteFloat

from louver.errors import InputError
from louver.schema.validate import Options

__all__ = ["METHODS", "AnonymizeOptions", "Method"]

Method = Literal[
    "auto", "exact", "split-carry", "greedy", "sorted", "mondrian", "mondrian-relaxed", "k-member"
]
METHODS: tuple[str, ...] = Method.__args__  # type: ignore[attr-defined]

Names = Annotated[
    tuple[str, ...], BeforeValidator(lambda value: tuple(value) if isinstance(value, list) else value)
]


class AnonymizeOptions(Options):
    """Everything `louver anonymize` can be told, but for where the data are and where the release goes."""

    quasi: Names = ()
    k: Annotated[int, Field(ge=1)] = 5
    identifying: Names = ()
    sensitive: Names = ()
    ordered: Names = ()
    hierarchy: dict[str, str] = Field(default_factory=dict)
    weights: dict[str, Annotated[FiniteFloat, Field(ge=0)]] = Field(default_factory=dict)
    method: Method = "auto"
    seconds: Annotated[FiniteFloat, Field(gt=0)] = 10.0
    steps: Annotated[int, Field(ge=0)] | None = None
    l: Annotated[FiniteFloat, Field(ge=1)] | None = None  # noqa: E741 - the field's own name
    l_kind: Literal["distinct", "entropy"] = "distinct"
    t: Annotated[FiniteFloat, Field(ge=0, le=1)] | None = None
    distance: Literal["equal", "ordered", "hierarchical"] = "equal"
    suppress: Annotated[FiniteFloat, Field(ge=0, le=1)] = 0.0
    missing: Literal["category", "match", "error"] = "category"
    format: Literal["labels", "bounds"] = "labels"
    keep_order: bool = False
    class_id: bool = False

    def check(self) -> None:
        """Refuse roles that contradict one another, and options that speak of nothing."""
        if not self.quasi:
            raise InputError("option --quasi is empty; name at least one column.", option="--quasi")
        roles = (
            ("--quasi", self.quasi),
            ("--identifying", self.identifying),
            ("--sensitive", self.sensitive),
        )
        role_of: dict[str, str] = {}
        for option, names in roles:
            for name in names:
                if name in role_of:
                    raise InputError(
                        f'column "{name}" is named in {role_of[name]} and in {option}; a column has one role.',
                        option=option,
                        column=name,
                    )
                role_of[name] = option
        described = (
            ("--ordered", self.ordered),
            ("--hierarchy", tuple(self.hierarchy)),
            ("--weights", tuple(self.weights)),
        )
        for option, names in described:
            for name in names:
                if name not in self.quasi and not (option == "--hierarchy" and name in self.sensitive):
                    raise InputError(
                        f'option {option} names column "{name}", which is not in --quasi.',
                        option=option,
                        column=name,
                    )
        for name in self.ordered:
            if name in self.hierarchy:
                raise InputError(
                    f'column "{name}" is named in --ordered and in --hierarchy; choose one.',
                    option="--ordered",
                    column=name,
                )
        if self.steps is not None and "seconds" in self.model_fields_set:
            raise InputError(
                "option --steps replaces the time limit of --seconds; give one of them.", option="--steps"
            )
        for option, value in (("--l", self.l), ("--t", self.t)):
            if value is not None and not self.sensitive:
                raise InputError(f"option {option} needs --sensitive.", option=option)
