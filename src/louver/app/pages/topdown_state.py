"""What a tab chose on the page TopDown, and how that is written down: as a section of a spec, as a command and in Python."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

from louver.app.copying import DRAWN_ANEW, Repeatable, Texts, WithFiles
from louver.app.jobs.topdown import CHOICES
from louver.app.shares import shares_of
from louver.app.spec_files import SpecFiles, moved, written
from louver.errors import LouverError
from louver.privacy.budget import Loss
from louver.schema.validate import read_toml

__all__ = ["Asked", "extends_of", "repeated", "spec_text"]

SAMPLE = "louver-sample"
"""Where a copied command writes the files of the sample."""
DELTA = "1e-10"
Told = Mapping[str, Any]


class Asked:
    """What a tab chose.

    Attributes
    ----------
    spec : Path or None
        The spec that is read.
    extending : str
        Name of the release that shall be extended, where somebody chose one before the spec of the extension.
    first : Path or None
        The release that is extended; None where the spec itself says which.
    ready : str
        Name of the ready schema that the spec was made from.
    before : Path or None
        The spec of the first release, where that was open before a ready schema.
    """

    def __init__(self) -> None:
        self.spec: Path | None = None
        self.extending = ""
        self.first: Path | None = None
        self.ready = ""
        self.before: Path | None = None
        self.files: SpecFiles | None = None
        self.is_sample = False
        self.about: Told | None = None
        self.budget = "epsilon"
        self.amount = Fraction(1)
        self.delta = DELTA
        self.choices: dict[str, Any] = {}
        self.levels: dict[str, Fraction] = {}
        self.queries: dict[str, Fraction] = {}
        self.is_moved = False
        self.query = ""
        self.loss: Loss | None = None
        self.name = ""
        self.result: Told | None = None

    @property
    def measure(self) -> str:
        """What the slider moves."""
        return "rho" if self.budget == "rho" else "epsilon"

    def open(self, spec: Path | None, *, is_sample: bool = False) -> None:
        """Begin anew with another spec."""
        self.spec, self.is_sample = spec, is_sample
        self.about = self.loss = self.result = self.first = None
        self.before = None
        self.ready = self.name = ""
        if is_sample or spec is None:
            self.files = None

    def open_ready(self, spec: Path, schema: str) -> None:
        """Go on with the spec that a ready schema and the open spec make."""
        before = self.spec
        self.open(spec)
        self.before, self.ready = before, schema

    def change_first(self, release: Path | None) -> None:
        """Extend another release."""
        self.first, self.name = release, ""
        self.about = self.loss = self.result = None

    def reset(self, about: Told) -> None:
        """Choose what the spec has."""
        self.about = about
        self.amount, self.delta = Fraction(about["amount"]), about["delta"] or DELTA
        self.budget = (
            "rho" if about["measure"] == "rho" else "both" if about["delta"] is not None else "epsilon"
        )
        self.choices = {name: about[name] for name in CHOICES}
        self.levels = {level["name"]: 100 * Fraction(level["share"]) for level in about["levels"]}
        self.queries = {name: 100 * Fraction(share) for name, share in about["query_shares"].items()}
        self.is_moved = False

    def section(self) -> dict[str, Any]:
        """What differs from the spec, for its section; None takes a key away."""
        about = self.about
        assert about is not None
        told: dict[str, Any] = {
            name: self.choices[name] for name in CHOICES if self.choices[name] != about[name]
        }
        delta = None if self.budget == "epsilon" else self.delta
        if (self.measure, self.amount, delta) != (
            about["measure"],
            Fraction(about["amount"]),
            about["delta"],
        ):
            told |= {"epsilon": None, "rho": None, "delta": delta, self.measure: str(self.amount)}
        if self.first is not None:
            told["extends"] = str(self.first)
        if self.is_moved:
            told["shares"] = {"levels": shares_of(self.levels), "queries": shares_of(self.queries)}
        return told


def extends_of(spec: Path) -> str | None:
    """The release that a spec extends, as the spec names it; None where it is not the spec of an extension."""
    try:
        section = read_toml(spec).get("topdown")
    except LouverError:  # whoever reads the spec says what is wrong
        return None
    named = section.get("extends") if isinstance(section, dict) else None
    return named if isinstance(named, str) else None


def repeated(asked: Asked, ledger: Path | None) -> Repeatable | None:
    """What was chosen, as words that do it again; an upload is named as it was, the sample is written first."""
    if asked.spec is None or asked.about is None:
        return None
    spec, first, python = str(asked.spec), "", ""
    section = asked.section()
    if asked.is_sample:
        spec = f"{SAMPLE}/data/{asked.spec.name}"
        first = f"louver demo --files --out={SAMPLE}"
        python = f"from pathlib import Path\nfrom louver.data.samples import write_samples\nwrite_samples(Path('{SAMPLE}/data'))"
    files = {}
    if section or asked.files is not None:
        folder = Path() if asked.files is not None else Path(spec).parent
        spec = str(folder / "louver-explore.toml")
        files = {spec: spec_text(asked.spec, section)}
    out = asked.name or "release"
    is_extension = extends_of(asked.spec) is not None
    words = ["louver", "topdown", "extend" if is_extension else "run", spec, f"--out={out}"]
    words += [] if ledger is None else [f"--ledger={ledger}"]
    paid = "" if ledger is None else f", ledger={str(ledger)!r}"
    verb = "lv.topdown.extend" if is_extension else "lv.topdown"
    call = Texts(tuple(words), f"print({verb}({spec!r}, out={out!r}{paid}))", DRAWN_ANEW)
    return WithFiles(call, files, first, python)


def spec_text(path: Path, section: Mapping[str, Any]) -> str:
    """A spec with what was moved on the page, to be written beside it: the files it names are found from there."""
    return written(moved(read_toml(path), section))
