"""The options of the verb, checked once for the library, the command line and the spec file."""

from __future__ import annotations

from fractions import Fraction
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from louver.errors import InputError
from louver.privacy.budget import Loss, Measure, fraction_of
from louver.privacy.neighbours import Relation
from louver.schema.validate import Options

__all__ = ["GroupsOptions"]

Names = Annotated[
    tuple[str, ...], BeforeValidator(lambda value: tuple(value) if isinstance(value, list) else value)
]
Amount = int | float | str
LARGEST_SIZE = 1_000_000


class GroupsOptions(Options):
    """Everything `louver groups` can be told, but for where the data are, who pays and where the release goes."""

    unit: str | None = None
    size: str | None = None
    groups: str | None = None
    regions: Names = ()
    domain: str | None = None
    domain_from_data: bool = False
    max_size: Annotated[int, Field(ge=1, le=LARGEST_SIZE)] | None = None
    min_size: Annotated[int, Field(ge=0, le=1)] = 0
    epsilon: Amount | None = None
    rho: Amount | None = None
    shares: Literal["chosen", "equal"] | Names = "chosen"
    mechanism: str | None = None
    noise: Literal["louver", "opendp"] = "louver"
    quantity: str | None = None
    max_quantity: Annotated[int, Field(ge=1)] = 1
    across: Literal["error", "split"] = "error"
    total: Literal["public", "noisy"] = "noisy"
    neighbours: Literal["add-remove-record", "change-record", "add-remove-unit"] = "add-remove-record"
    seed: Annotated[int, Field(ge=0)] | None = None
    evaluate: bool = False
    as_published: bool = False

    def check(self) -> None:
        """Refuse what is missing, and combinations that contradict one another."""
        if (self.unit is None) == (self.size is None):
            raise InputError(
                "give --unit for records, or --size and --groups for a counted table, one of them.",
                option="--unit",
            )
        wanted = [
            (self.size is not None and self.groups is None, "--groups", "the column that counts groups"),
            (self.unit is not None and self.groups is not None, "--size", "which goes with --groups"),
            (not self.regions, "--regions", "the columns of the region levels, coarsest first"),
            (
                self.max_size is None,
                "--max-size",
                "the largest size told apart, which must not depend on the data",
            ),
            (
                self.domain is None and not self.domain_from_data,
                "--domain",
                "the file that lists the regions",
            ),
            (self.evaluate and self.seed is None, "--seed", "which --evaluate needs"),
            (self.max_quantity > 1 and self.quantity is None, "--quantity", "which goes with --max-quantity"),
        ]
        for is_missing, option, what in wanted:
            if is_missing:
                raise InputError(f"option {option} is missing: {what}.", option=option)
        if len(set(self.regions)) < len(self.regions):
            raise InputError("option --regions names a column twice.", option="--regions")
        if self.domain is not None and self.domain_from_data:
            raise InputError(
                "options --domain and --domain-from-data cannot be used together.", option="--domain"
            )
        if self.across == "split" and self.neighbours == "add-remove-unit":
            raise InputError(
                "options --across split and --neighbours add-remove-unit cannot be used together: a unit would count in "
                "many regions.",
                option="--across",
            )
        if self.noise == "opendp" and self.seed is not None:
            raise InputError(
                "options --noise opendp and --seed cannot be used together: OpenDP takes no seed.",
                option="--noise",
            )
        if self.as_published and not self.evaluate:
            raise InputError(
                "option --as-published is not private and needs --evaluate and --seed.",
                option="--as-published",
            )

    def budget(self) -> Loss:
        """The loss to be spent, for the neighbours asked for."""
        if (self.epsilon is None) == (self.rho is None):
            raise InputError("give the budget as --epsilon or as --rho, one of them.", option="--epsilon")
        relation = Relation(self.neighbours)
        if self.epsilon is not None:
            return Loss(fraction_of(self.epsilon, "--epsilon"), Measure.EPSILON, relation)
        return Loss(fraction_of(self.rho, "--rho"), Measure.RHO, relation)

    def given_shares(self) -> tuple[Fraction, ...]:
        """The shares the user wrote, as exact fractions."""
        return tuple(fraction_of(share, "--shares") for share in self.shares)
