"""The options of the verb, checked once for the library, the command line and the spec file."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, FiniteFloat

from louver.errors import InputError
from louver.schema.validate import Options

__all__ = ["METHODS", "SPLIT_CARRY", "AnonymizeOptions", "Method"]

Method = Literal[
    "auto",
    "exact",
    "split-carry",
    "greedy",
    "sorted",
    "mondrian",
    "mondrian-relaxed",
    "k-member",
    "freeform-greedy",
    "freeform-sort-greedy",
    "freeform-hungarian",
]
METHODS: tuple[str, ...] = Method.__args__  # type: ignore[attr-defined]

Names = Annotated[
    tuple[str, ...], BeforeValidator(lambda value: tuple(value) if isinstance(value, list) else value)
]


SPLIT_CARRY = ("sets", "boundary", "carry", "size", "accepted", "subproblem_seconds")
"""Options of Split & Carry alone."""


class AnonymizeOptions(Options):
    """Everything `louver anonymize` can be told, but for where the data are and where the release goes."""

    quasi: Names = ()
    k: Annotated[int, Field(ge=1)] = 5
    identifying: Names = ()
    sensitive: Names = ()
    ordered: Names = ()
    hierarchy: dict[str, str] = Field(default_factory=dict)
    weights: dict[str, Annotated[FiniteFloat, Field(ge=0)]] = Field(default_factory=dict)
    normalise: bool = False
    one_hot: Names = ()
    method: Method = "auto"
    seconds: Annotated[FiniteFloat, Field(gt=0)] = 10.0
    sets: Annotated[int, Field(ge=2)] | None = None
    boundary: Annotated[int, Field(ge=1)] | None = None
    carry: Literal["classes", "subset", "bubble"] | None = None
    size: Annotated[int, Field(ge=2)] | None = None
    accepted: Annotated[int, Field(ge=1)] | None = None
    subproblem_seconds: Annotated[FiniteFloat, Field(gt=0)] | None = None
    steps: Annotated[int, Field(ge=0)] | None = None
    l: Annotated[FiniteFloat, Field(ge=1)] | None = None  # noqa: E741 - the field's own name
    l_kind: Literal["distinct", "entropy"] = "distinct"
    t: Annotated[FiniteFloat, Field(ge=0, le=1)] | None = None
    distance: Literal["equal", "ordered", "hierarchical"] = "equal"
    suppress: Annotated[FiniteFloat, Field(ge=0, le=1)] = 0.0
    population: str | None = None
    population_count: str | None = None
    k_map: bool = False
    sampling_weight: str | None = None
    against: Names = ()
    curve: Annotated[
        tuple[Annotated[int, Field(ge=1)], ...],
        BeforeValidator(lambda value: tuple(value) if isinstance(value, list) else value),
    ] = ()
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
            ("--one-hot", self.one_hot),
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
        for name in self.one_hot:
            if name in self.ordered or name in self.hierarchy:
                raise InputError(
                    f'column "{name}" is named in --one-hot and in --ordered or --hierarchy; choose one.',
                    option="--one-hot",
                    column=name,
                )
        self._check_needs()

    def _check_needs(self) -> None:
        """Refuse options that need another one."""
        if self.steps is not None and "seconds" in self.model_fields_set:
            raise InputError(
                "option --steps replaces the time limit of --seconds; give one of them.", option="--steps"
            )
        for option, value in (("--l", self.l), ("--t", self.t)):
            if value is not None and not self.sensitive:
                raise InputError(f"option {option} needs --sensitive.", option=option)
        for option, is_given in (
            ("--k-map", self.k_map),
            ("--population-count", self.population_count is not None),
        ):
            if is_given and self.population is None:
                raise InputError(f"option {option} needs --population.", option=option)
        if self.population is not None and self.sampling_weight is not None:
            raise InputError(
                "options --population and --sampling-weight both describe the population; give one.",
                option="--sampling-weight",
            )
        if self.sampling_weight is not None and self.sampling_weight in self.quasi:
            raise InputError(
                f'column "{self.sampling_weight}" is named in --sampling-weight and in --quasi; choose one.',
                option="--sampling-weight",
                column=self.sampling_weight,
            )
        if self.method.startswith("freeform-") and (self.population or self.sampling_weight or self.class_id):
            raise InputError(
                "a freeform method takes no --population, --sampling-weight or --class-id; choose another --method.",
                option="--method",
            )
        for name in SPLIT_CARRY:
            if getattr(self, name) is not None and self.method != "split-carry":
                option = f"--{name.replace('_', '-')}"
                raise InputError(f"option {option} needs --method split-carry.", option=option)
        for name in ("size", "accepted"):
            if getattr(self, name) is not None and self.carry != "bubble":
                raise InputError(f"option --{name} needs --carry bubble.", option=f"--{name}")
