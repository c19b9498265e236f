"""The options of `louver explore`."""

from __future__ import annotations

from typing import ClassVar

from louver.schema.options import VerbOptions, option

__all__ = ["ExploreOptions"]


class ExploreOptions(VerbOptions):
    """All options of `louver explore`, except the location of the data."""

    verb: ClassVar[str] = "explore"
    no_source: ClassVar[tuple[str, ...]] = ("wide",)
    needs_data: ClassVar[bool] = False

    ledger: str | None = option(
        None,
        "Ledger that pays for noise; without it nothing can be spent.",
        metavar="FILE",
        group="explorer",
        file="one",
    )
    releases: str | None = option(
        None,
        "Folder of releases to show and add to (default: louver-releases, created with the first release).",
        metavar="DIR",
        group="explorer",
        file="one",
    )
    registry: str | None = option(
        None,
        "Folder of the register of earlier publications; later tables are audited together with them (default: "
        "register, in the folder of releases).",
        metavar="DIR",
        flag="--register",
        group="explorer",
    )
    topdown: str | None = option(
        None,
        "Spec for the page TopDown; its records are read only for measurement.",
        metavar="SPEC.toml",
        group="explorer",
        file="one",
    )
    port: int = option(
        0, "Port on 127.0.0.1 (default: any free port).", metavar="P", group="explorer", ge=0, le=65535
    )
    no_browser: bool = option(False, "Print the address without opening a browser.", group="explorer")
