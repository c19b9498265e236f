"""Verification of a release: every promise is recomputed from the published files; nothing is taken on trust.

A release may come from a third party. Only plain files that the manifest lists are opened. Promises must have the form and the strength
that their verb requires, and any problem with them is a failed check, not an error.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pydantic import ValidationError

from louver._html import JsonText, html_table
from louver._verdict import Level, Verdict
from louver._version import __version__
from louver._words import counted, listed
from louver.errors import InputError, printable
from louver.release.folder import Folder, Malformed, are_hollow, plain_files
from louver.release.manifest import (
    MANIFEST,
    Manifest,
    digest,
    file_entry,
    is_plain,
    parse,
    read_content,
    read_manifest,
)
from louver.release.pages import page_of
from louver.release.pages.published import in_folder
from louver.release.promises import PROMISES, Context, Outcome
from louver.release.promises.contents import check_contents
from louver.release.promises.layout import check_layout
from louver.release.promises.measurements import MEASUREMENTS, check_measurements, publisher_of
from louver.release.promises.privacy import check_privacy
from louver.release.promises.requested import weaknesses
from louver.release.promises.stated import MAKERS_WORD, check_stated
from louver.release.strict_json import MOST_BYTES, NOT_AS_WRITTEN, is_as_written, read_bytes

if TYPE_CHECKING:
    from louver.release.open import Release

__all__ = [
    "TOGETHER",
    "Check",
    "Verification",
    "check_promise",
    "check_promises",
    "is_unchanged",
    "judge_all",
    "verify",
]

REPORT = "report.html"
SAME_PAGE = "the page that follows from the manifest and the published files, byte for byte"
OTHER_PAGE = "not the page that this version of louver makes from the release: it was edited, or made by another version"
OTHER_VERSION = (
    "its page was made by louver {version}, and this is louver {own}, which writes different pages; verify it with version {version}, or "
    "read the page yourself and skip it (--skip-report)"
)
UNREAD_PAGE = f"not checked, as requested: {MAKERS_WORD}"
TOGETHER = (
    "What the releases disclose together was not checked: tables are audited together when they are published, and privacy losses add up "
    "in the ledger."
)
LONGEST_VERSION = 40
BAD_FORM = "the files or the promise are not of the promised form"


@dataclass(frozen=True, slots=True)
class Check:
    """One check, and its finding."""

    name: str
    passed: bool
    found: str


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Verification(JsonText):
    """The outcome of `verify`: every check, in order."""

    release: str
    checks: tuple[Check, ...]

    @property
    def passed(self) -> bool:
        return all(check.passed for check in self.checks)

    @property
    def verdict(self) -> Verdict:
        """Whether the release keeps its promises."""
        failed = sum(not check.passed for check in self.checks)
        if failed:
            return Verdict(Level.STOP, f"{failed} of {len(self.checks)} checks FAILED.")
        unread = tuple(
            f"{check.name}: {check.found}." for check in self.checks if check.found.endswith(MAKERS_WORD)
        )
        return Verdict(Level.CARE if unread else Level.OK, "Every promise holds.", unread)

    def to_dict(self) -> dict[str, Any]:
        return {
            "release": self.release,
            "passed": self.passed,
            "verdict": self.verdict.to_dict(),
            "checks": [asdict(check) for check in self.checks],
        }

    def __repr__(self) -> str:
        failed = [check for check in self.checks if not check.passed]
        return "\n".join([self._sentence(), *(_line(check) for check in failed[:8])])

    def __str__(self) -> str:
        """Every check with its outcome."""
        return "\n".join([*(_line(check) for check in self.checks), self._sentence()])

    def _sentence(self) -> str:
        sentence = self.verdict.sentence
        return f"Verification of {printable(self.release)}: {sentence[0].lower()}{sentence[1:-1]}"

    def _repr_html_(self) -> str:
        lines = [("passed" if check.passed else "FAILED", check.name, check.found) for check in self.checks]
        return f"<p>{escape(self._sentence())}</p>" + html_table(("", "check", "found"), lines)


def judge_all(passed: Mapping[str, bool | None]) -> Verdict | None:
    """The verdict on several releases of the same people.

    Parameters
    ----------
    passed : mapping of str to bool or None
        Name of each release -> whether every check passed, None if it was not checked. A release that cannot be read has not passed.

    Returns
    -------
    Verdict or None
        None if no check failed and some releases were not checked.
    """
    broken = [name for name, one in passed.items() if one is False]
    left = sum(one is None for one in passed.values())
    unchecked = (f"{counted(left, 'release')} not checked yet.",) if left else ()
    together = (TOGETHER,) if len(passed) > 1 else ()
    if broken:
        verb = "does" if len(broken) == 1 else "do"
        sentence = f"{counted(len(broken), 'release')} {verb} not keep what was promised."
        return Verdict(Level.STOP, sentence, (f"{listed(broken)}.", *unchecked, *together))
    if left:
        return None
    return Verdict(Level.CARE if together else Level.OK, "Every promise was recomputed and holds.", together)


def _line(check: Check) -> str:
    return f"  {'passed' if check.passed else 'FAILED'} {printable(check.name)}: {printable(check.found)}"


def verify(
    release: str | Path | Release, *, skip_report: bool = False, accept_strings: int | None = 0
) -> Verification:
    """Recompute every promise of a release directory.

    Parameters
    ----------
    release : path or Release
        A release directory, or one that was opened.
    skip_report : bool
        Leave report.html unchecked. Pages of earlier versions, which were worded differently, cannot be regenerated; their content then
        relies on their maker's word.
    accept_strings : int, optional
        Number of strings of the manifest that are in no published file, such as labels merged by a recode, and that are accepted because a
        person has read them. A few are accepted by default. None accepts any number.

    Raises
    ------
    InputError
        If there is no release directory; a release that fails its checks is not an error.
    """
    folder = (Path(release) if isinstance(release, str | Path) else release.path).absolute()
    if not folder.is_dir():
        raise InputError(f"{folder.name} is not a release directory.", file=folder.name)
    if not is_plain(folder / MANIFEST):
        raise InputError(f"{folder.name} is not a release directory; it has no {MANIFEST}.", file=folder.name)
    try:
        content = read_content(folder)
        manifest = parse(content, folder.name)
    except InputError as error:
        return Verification(release=folder.name, checks=(Check("manifest", False, str(error)),))
    checks = [_check_digest(folder, content), *_check_status(manifest)]
    found, files = _check_files(folder, manifest)
    checks += files
    if all(check.passed for check in checks if check.name not in STATUS):
        # Checked only here, not at sealing, because the writer knows how it wrote its own files.
        outcome = _doubted(lambda: check_layout(Context(Folder(folder, found), manifest)))
        checks.append(Check("layout", outcome.passed, outcome.found))
        checks += check_promises(
            Folder(folder, found), manifest, skip_report=skip_report, accept_strings=accept_strings
        )
    return Verification(release=folder.name, checks=tuple(checks))


def is_unchanged(release: Path) -> bool:
    """Whether the files of a release directory, its manifest included, are unchanged."""
    content = read_content(release)
    _, files = _check_files(release, read_manifest(release))
    return _check_digest(release, content).passed and all(check.passed for check in files)


STATUS = ("private noise", "for release")
"""Names of the checks that concern the intended use of a release, not its promises."""


def _check_digest(folder: Path, content: dict[str, Any]) -> Check:
    if content.get("digest") != digest(content):
        return Check("manifest unedited", False, "digest differs")
    if not is_as_written(read_bytes(folder / MANIFEST, MOST_BYTES)):
        return Check("manifest unedited", False, f"it {NOT_AS_WRITTEN}")
    return Check("manifest unedited", True, "digest agrees")


def _check_status(manifest: Manifest) -> Iterator[Check]:
    """Check whether a release may be published; only releases with measurements have noise."""
    if manifest.verb in MEASUREMENTS or manifest.not_private:
        is_private = not manifest.not_private
        by = publisher_of(manifest)
        found = (
            "yes" if by is None else f"drawn and published by {printable(by)}; louver accounts for none of it"
        )
        if not is_private:
            found = "made with a seed that anyone can repeat"
        yield Check("private noise", is_private, found)
    for_release = not manifest.not_for_release
    yield Check("for release", for_release, "yes" if for_release else "made for evaluation, not for release")


def _check_files(folder: Path, manifest: Manifest) -> tuple[set[str], list[Check]]:
    """Check that every listed file exists, plain and unchanged, and that nothing else does; also return the files that may be opened."""
    try:
        present, n_odd = plain_files(folder)
    except Malformed as error:
        return set(), [Check("no other files", False, str(error))]
    present -= {MANIFEST}
    if are_hollow(folder / name for name in present & set(manifest.files)):
        return set(), [Check("files", False, "sparse, or larger than any release; not read")]
    checks = []
    for name, entry in manifest.files.items():
        if name not in present:
            checks.append(Check(f"file {name}", False, "missing, or not a plain file"))
            continue
        is_same = (folder / name).stat().st_size == entry.bytes and file_entry(folder / name) == entry
        found = "unchanged" if is_same else "its bytes differ from the manifest"
        checks.append(Check(f"file {name}", is_same, found))
    n_extra = len(present - set(manifest.files)) + n_odd
    checks.append(Check("no other files", not n_extra, f"{n_extra or 'none'} not in the manifest"))
    return present & set(manifest.files), checks


def check_promises(
    folder: Folder, manifest: Manifest, *, skip_report: bool = False, accept_strings: int | None = 0
) -> Iterator[Check]:
    """Check that the promises are those the verb must make, check each one, and check that the folder holds nothing else."""
    context = Context(folder, manifest)
    problem = _doubted(lambda: Outcome(False, next(weaknesses(manifest), "")))
    found = problem.found or f"{len(manifest.promises)}, as required of {manifest.verb}"
    yield Check("promises", not problem.found, found)
    outcome = _doubted(lambda: check_contents(context))
    yield Check("contents", outcome.passed, outcome.found)
    outcome = _doubted(lambda: check_stated(context, accept_strings))
    yield Check("manifest contents", outcome.passed, outcome.found)
    if REPORT in manifest.files:
        outcome = (
            Outcome(True, UNREAD_PAGE)
            if skip_report
            else _doubted(lambda: _check_report(context), _other_page(manifest))
        )
        yield Check("report", outcome.passed, outcome.found)
    if manifest.verb in MEASUREMENTS:
        outcome = _doubted(lambda: check_measurements(context))
        yield Check("measurements", outcome.passed, outcome.found)
        outcome = _doubted(lambda: check_privacy(context))
        yield Check("privacy", outcome.passed, outcome.found)
    for entry in manifest.promises:
        yield check_promise(context, entry)


def _other_page(manifest: Manifest) -> str:
    """Why a page differs from the page that this version makes, as far as the manifest shows."""
    if manifest.version == __version__:
        return OTHER_PAGE
    return OTHER_VERSION.format(version=printable(manifest.version[:LONGEST_VERSION]), own=__version__)


def _check_report(context: Context) -> Outcome:
    """Regenerate the page from the manifest and the published files, and compare."""
    other = _other_page(context.manifest)
    try:
        made = page_of(context.manifest, in_folder(context.folder))
    except Malformed:
        return Outcome(False, other)
    found = read_bytes(context.folder.file(REPORT), len(made.encode()))
    return Outcome(True, SAME_PAGE) if found == made.encode() else Outcome(False, other)


def check_promise(context: Context, entry: Mapping[str, Any]) -> Check:
    """Check that a promise has the right form and that the files keep it."""
    name = str(entry.get("promise"))
    if name not in PROMISES:
        return Check(name, False, "not a promise known to this version")
    registered = PROMISES[name]

    def check() -> Outcome:
        return registered.check(context, registered.model.model_validate_json(json.dumps(entry)))

    outcome = _doubted(check)
    return Check(name, outcome.passed, outcome.found)


def _doubted(check: Callable[[], Outcome], bad_form: str = BAD_FORM) -> Outcome:
    """The outcome of a check; an error caused by a malformed file or promise counts as a failed check."""
    try:
        return check()
    except ValidationError as error:
        fields = {".".join(map(str, line["loc"][:1])) for line in error.errors(include_input=False)}
        return Outcome(
            False, f"its {', '.join(sorted(fields))} is missing, unknown, of the wrong type or out of range"
        )
    except Malformed as error:
        return Outcome(False, str(error))
    except (ValueError, TypeError, LookupError, AttributeError, ArithmeticError, StopIteration):
        return Outcome(False, bad_form)
    except (OSError, RecursionError, MemoryError, NotImplementedError, pa.ArrowException):
        return Outcome(False, bad_form)
