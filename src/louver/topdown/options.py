"""What a call of TopDown is told beside its spec."""

from __future__ import annotations

from louver.errors import InputError
from louver.schema.options import option
from louver.schema.validate import Options

__all__ = ["CheckOptions", "RunOptions"]


class RunOptions(Options):
    """How a release is computed; none of it decides what is measured."""

    measurements: str | None = option(
        None, "Folder that measure left, or a release directory.", metavar="DIR", group="run"
    )
    engine: str = option(
        "local:1", "Cores to work on; results do not depend on it.", metavar="local:N", group="run"
    )
    resume: bool = option(
        False,
        "Carry on a run that was interrupted, from its last finished level; its noise was paid for and costs nothing more.",
        group="run",
    )
    seed: int | None = option(
        None, "For tests and demos: repeatable, NOT private, no ledger.", metavar="S", group="evaluation"
    )
    evaluate: bool = option(
        False, "Compare with the truth; needs --seed, never for release.", group="evaluation"
    )
    csv: bool = option(False, "Write the microdata as CSV too.", group="run")


class CheckOptions(Options):
    """What is known already and shall be checked with the spec."""

    invariants: str | None = option(
        None,
        "Values known already: columns invariant, level, region, value.",
        metavar="FILE",
        group="knowledge",
    )
    table: str | None = option(
        None, "Counts of one region; can they be divided among its leaves?", metavar="FILE", group="knowledge"
    )
    level: str | None = option(None, "Level of the region of --table.", metavar="LEVEL", group="knowledge")
    region: str | None = option(None, "The region of --table.", metavar="CODE", group="knowledge")

    def placed(self) -> tuple[str, str, str] | None:
        """Level, region and file of the table, as `check` takes them."""
        if [self.table, self.level, self.region].count(None) in (1, 2):
            raise InputError(
                "options --table, --level and --region belong together; give all three.", option="--table"
            )
        return None if self.table is None else (self.level or "", self.region or "", self.table)
