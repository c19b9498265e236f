"""The options of the verb, checked once for the library, the command line and the spec file."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar, Literal, TypedDict

from louver.errors import InputError
from louver.privacy.budget import Loss, Measure, fraction_of
from louver.privacy.composition import check_promise, enough_rho
from louver.privacy.neighbours import Relation, check_filter
from louver.schema.options import Names, Orders, Table, VerbOptions, option
from louver.schema.source import SourceKeywords, SourceOptions

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from louver.data.read import ArrowStream

__all__ = ["DataKeywords", "GroupsKeywords", "GroupsOptions", "WholeKeywords"]

MOST_LEVELS = 64
"""Maximum number of levels of regions, including the whole, because `verify` examines every pair of them."""

PUBLISHED = ("level", "size", "groups", "persons", "standard_error", "lower_90", "upper_90")
"""Columns of the published tables in addition to the regions."""

Amount = int | float | str
LARGEST_SIZE = 1_000_000


class GroupsOptions(VerbOptions):
    """All options of `louver groups` except the source, the ledger and the folder of the release."""

    verb: ClassVar[str] = "groups"
    no_source: ClassVar[tuple[str, ...]] = ("weight", "wide", "weight_is_count")

    unit: str | None = option(
        None, "Column that identifies the unit of a record.", metavar="COLUMN", group="columns"
    )
    size: str | None = option(
        None, "For a table of counts: column of the size.", metavar="COLUMN", group="columns"
    )
    groups: str | None = option(
        None, "For a table of counts: column of the number of groups.", metavar="COLUMN", group="columns"
    )
    regions: Names = option(
        (), "Columns of the region levels, coarsest first.", metavar="R1,R2", group="regions"
    )
    domain: Table | None = option(
        None,
        "Public list of the leaf regions, with these columns.",
        metavar="FILE",
        group="regions",
        file="one",
    )
    domain_from_data: bool = option(False, "Take the regions from the data; discloses them.", group="regions")
    max_size: int | None = option(
        None,
        "Largest size counted separately; larger groups are counted at this size.",
        metavar="N",
        group="sizes",
        ge=1,
        le=LARGEST_SIZE,
    )
    min_size: int = option(
        0,
        "Smallest size counted separately; 1 if no group can be empty: a group without members is then counted at size 1.",
        metavar="0|1",
        group="sizes",
        ge=0,
        le=1,
    )
    epsilon: Amount | None = option(
        None, "Amount in pure epsilon, such as 0.5 or 1/2.", metavar="E", group="budget"
    )
    rho: Amount | None = option(
        None, "Amount in rho (zero-concentrated), such as 0.1.", metavar="R", group="budget"
    )
    delta: Amount | None = option(
        None,
        "With --epsilon: Gaussian noise, composed so that the release is (epsilon, delta)-private; a ledger in rho pays.",
        metavar="D",
        group="budget",
    )
    shares: Literal["chosen", "equal"] | Names = option(
        "chosen",
        "chosen (default), equal, or a share for total and every level.",
        metavar="S,S,..",
        group="budget",
    )
    mechanism: str | None = option(
        None,
        "louver, or one from the paper: M_H^dp, M_c^dp, ... (default: by --neighbours).",
        metavar="M",
        group="noise",
    )
    agrees_with: str | None = option(
        None,
        "TopDown release of the same people, paid by the same ledger: in every leaf region sizes times groups are its people in groups.",
        metavar="RELEASE",
        group="agreement",
        file="one",
    )
    members: Orders = option(
        {},
        "People of that release who are in groups, by their labels (default: everybody).",
        metavar="A=LABEL,..",
        group="agreement",
    )
    heads: Orders = option(
        {},
        "People of that release of whom every group has exactly one, such as householders.",
        metavar="A=LABEL,..",
        group="agreement",
    )
    code: str | None = option(
        None,
        "Column with the leaf codes whose prefixes are the regions, if that release has prefixes; --regions then names its levels.",
        metavar="COLUMN",
        group="agreement",
    )
    most_groups: str | None = option(
        None,
        "Column of the domain with the most groups that a leaf region can have, such as housing units.",
        metavar="COLUMN",
        group="agreement",
    )
    least_groups: str | None = option(
        None,
        "Column of the domain with the fewest groups that a leaf region can have.",
        metavar="COLUMN",
        group="agreement",
    )
    failsafe: bool = option(
        False,
        "Where people do not fit into the groups that a leaf region can have, move the bound as far as needed, and count these regions.",
        group="agreement",
    )
    noise: Literal["louver", "opendp"] = option(
        "louver",
        "louver (default), or opendp, which cannot be replayed: a run interrupted before its release is written loses its debit.",
        metavar="SOURCE",
        group="noise",
    )
    quantity: str | None = option(
        None,
        "Column with the number that a record adds to its unit's size (default 1).",
        metavar="COLUMN",
        group="columns",
    )
    max_quantity: int = option(1, "Maximum that a record may add.", metavar="Z", group="columns", ge=1)
    across: Literal["error", "split"] = option(
        "error", "Units in several regions (default: an error).", metavar="error|split", group="regions"
    )
    total: Literal["public", "noisy"] = option(
        "noisy",
        "noisy (default), or public: the number of groups is published exactly, which does not protect units of one person.",
        metavar="public|noisy",
        group="noise",
    )
    neighbours: Literal["add-remove-record", "change-record", "add-remove-unit"] = option(
        "add-remove-record",
        "add-remove-record (default), change-record, add-remove-unit.",
        metavar="RELATION",
        group="noise",
    )
    seed: int | None = option(
        None,
        "For tests and demos: repeatable, NOT private, no ledger.",
        metavar="S",
        group="evaluation",
        ge=0,
    )
    evaluate: bool = option(
        False, "Compare with the truth; needs --seed, never for release.", group="evaluation"
    )
    as_published: bool = option(
        False, "M_c^ch with the paper's noise, which is NOT private.", group="evaluation"
    )

    def check(self) -> None:
        """Refuse missing options, and combinations that contradict one another."""
        if (self.unit is None) == (self.size is None):
            raise InputError(
                "give either --unit for records, or --size and --groups for a counted table.",
                option="--unit",
            )
        wanted = [
            (self.size is not None and self.groups is None, "--groups", "the column that counts groups"),
            (self.unit is not None and self.groups is not None, "--size", "which --groups requires"),
            (not self.regions, "--regions", "the columns of the region levels, coarsest first"),
            (
                self.max_size is None,
                "--max-size",
                "the largest size counted separately, which must not depend on the data",
            ),
            (
                self.domain is None and not self.domain_from_data,
                "--domain",
                "the file that lists the regions",
            ),
            (self.evaluate and self.seed is None, "--seed", "which --evaluate needs"),
            (self.max_quantity > 1 and self.quantity is None, "--quantity", "which --max-quantity requires"),
        ]
        for is_missing, flag, what in wanted:
            if is_missing:
                raise InputError(f"option {flag} is missing: {what}.", option=flag)
        if len(set(self.regions)) < len(self.regions):
            raise InputError("option --regions names a column twice.", option="--regions")
        for name in self.regions:
            if name in PUBLISHED:
                raise InputError(
                    f'option --regions names column "{name}", which is also a column of the published tables; rename it.',
                    option="--regions",
                    column=name,
                )
        if len(self.regions) >= MOST_LEVELS:
            raise InputError(
                f"option --regions names {len(self.regions)} columns; name fewer than {MOST_LEVELS}.",
                option="--regions",
            )
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
        self._check_agreement()

    def _check_agreement(self) -> None:
        """Refuse options that exclude agreement with a release of people."""
        given = {
            "--members": self.members,
            "--heads": self.heads,
            "--code": self.code,
            "--most-groups": self.most_groups,
            "--least-groups": self.least_groups,
            "--failsafe": self.failsafe,
        }
        if self.agrees_with is None:
            for flag, value in given.items():
                if value:
                    raise InputError(f"option {flag} needs --agrees-with; add it.", option=flag)
            return
        refused = [
            (self.unit is None, "--unit", "name the column of the unit: people are counted one by one"),
            (self.domain_from_data, "--domain-from-data", "give the public list with --domain"),
            (self.total == "public", "--total", "the number of groups is noisy"),
            (self.max_quantity > 1, "--max-quantity", "every record is one person"),
            (self.quantity is not None, "--quantity", "every record is one person"),
            (self.mechanism not in (None, "louver"), "--mechanism", "there is one way to agree"),
            (
                self.neighbours == "add-remove-unit",
                "--neighbours",
                "neighbours are those of that release, which differ in a person",
            ),
        ]
        for is_refused, flag, why in refused:
            if is_refused:
                raise InputError(f"option {flag} cannot be used with --agrees-with: {why}.", option=flag)
        if self.heads and (self.most_groups or self.least_groups):
            raise InputError(
                "option --heads says how many groups there are; leave out --most-groups and --least-groups.",
                option="--heads",
            )
        if any(not labels for one in (self.members, self.heads) for labels in one.values()):
            raise InputError(
                "options --members and --heads need labels: attribute=label.", option="--members"
            )

    def check_source(self, source: SourceOptions) -> None:
        """Refuse a source of counts: counted tables have their own options."""
        if source.weight is not None or source.wide:
            raise InputError(
                "the source of groups has no weight and no wide columns; use --groups.", option="--spec"
            )
        check_filter(source.where, Relation(self.neighbours))

    def budget(self) -> Loss:
        """The loss to be spent, under the chosen neighbour relation; with a delta, the minimum that is spent."""
        if (self.epsilon is None) == (self.rho is None):
            raise InputError("give the budget either as --epsilon or as --rho.", option="--epsilon")
        relation, promise = Relation(self.neighbours), self.promise()
        if promise is not None:
            return Loss(enough_rho(*promise), Measure.RHO, relation)
        if self.epsilon is not None:
            return Loss(fraction_of(self.epsilon, "--epsilon"), Measure.EPSILON, relation)
        return Loss(fraction_of(self.rho, "--rho"), Measure.RHO, relation)

    def promise(self) -> tuple[Fraction, Fraction] | None:
        """Epsilon and delta of this release alone, if the noise is chosen by composition; its cost follows from the plan."""
        if self.delta is None:
            return None
        if self.epsilon is None:
            raise InputError("option --delta needs --epsilon; give both, or --rho alone.", option="--delta")
        if self.as_published or self.noise == "opendp":
            other = "--as-published" if self.as_published else "--noise opendp"
            raise InputError(f"options --delta and {other} cannot be used together.", option="--delta")
        promise = fraction_of(self.epsilon, "--epsilon"), fraction_of(self.delta, "--delta")
        check_promise(*promise)
        return promise

    def given_shares(self) -> tuple[Fraction, ...]:
        """The shares given by the user, as exact fractions."""
        return tuple(fraction_of(share, "--shares") for share in self.shares)


class GroupsKeywords(TypedDict, total=False):
    """The options that determine what is measured, as accepted by `measure`, `estimate` and `preview`."""

    unit: str | None
    size: str | None
    groups: str | None
    regions: str | Sequence[str]
    domain: str | Path | ArrowStream | None
    max_size: int | None
    min_size: int
    epsilon: Amount | None
    rho: Amount | None
    delta: Amount | None
    shares: str | Sequence[str]
    mechanism: str | None
    noise: str
    quantity: str | None
    max_quantity: int
    across: str
    total: str
    neighbours: str
    agrees_with: str | Path | None
    members: Mapping[str, Sequence[str]]
    heads: Mapping[str, Sequence[str]]
    code: str | None
    most_groups: str | None
    least_groups: str | None
    failsafe: bool


class DataKeywords(SourceKeywords, GroupsKeywords, total=False):
    """The same, plus the options of the source."""


class WholeKeywords(DataKeywords, total=False):
    """Keywords of `groups`: what is measured, the data, and the options of a complete release."""

    domain_from_data: bool
    seed: int | None
    evaluate: bool
    as_published: bool
