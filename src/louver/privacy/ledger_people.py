"""The people for whose data a ledger pays, who are recognised whatever the form of their records.

For each source a ledger keeps a sketch of the people in it, as a register does (`data.people`): keyed hashes that recognise the same
people in other columns, another order or another format, and show the share of people that two files have in common.

Notes
-----
**Privacy**: the key is derived from the ledger's secret and is in the ledger; the sketches are in the folder `ledger-people` next to it,
and the ledger holds only a digest of each whole sketch. The ledger file alone does not allow anyone to test a guess about a person, since
the digest covers the records of all others. The folder alone does not allow hashing a guess, but shows how often equal values occur. With
both, guesses can be tested; so the folder is kept as confidential as the records (mode 0700).
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from louver.data.people import Census, Common, Sketch, in_percent
from louver.data.read import ArrowStream, name_of, open_source
from louver.data.write import replacing
from louver.errors import Cancelled, InputError, LouverError
from louver.run import Run

__all__ = ["FOLDER", "Met", "People", "copy_sketches", "in_words", "keep_sketch", "nearest", "read_sketch"]

FOLDER = "ledger-people"
"""Folder next to ledgers with the sketches of the people for whom they pay."""

UNKNOWN = Common(is_same=False, of_earlier=None, of_these=None)


class People:
    """The people of a source, hashed under the key of a ledger on request; the source is read only then.

    Parameters
    ----------
    data : path, uri or dataframe
    weight : str, optional
        Column of counts.
    run : Run, optional
    **reading
        Options of `open_source`. A filter or missing-value codes do not change who the people are.
    """

    def __init__(
        self,
        data: str | os.PathLike[str] | ArrowStream,
        *,
        weight: str | None = None,
        run: Run | None = None,
        **reading: Any,
    ) -> None:
        self._data = data
        self._weight = weight
        self._run = run
        self._reading = {k: v for k, v in reading.items() if k not in ("where", "missing_code")}
        self._reading["decimal_mark"] = reading.get("decimal_mark") or "."
        self._sketches: dict[bytes, Sketch | None] = {}
        self._commons: dict[tuple[bytes, tuple[str, ...]], list[Common]] = {}
        self.name = name_of(data, reading.get("table"))

    @property
    def folder(self) -> Path | None:
        """Where the data are stored, if they are a file."""
        is_file = isinstance(self._data, str | os.PathLike) and Path(self._data).is_file()
        return Path(os.fspath(self._data)).parent if is_file else None  # type: ignore[arg-type]

    def sketch(self, key: bytes) -> Sketch | None:
        """A sketch of the people in the data; None if they cannot be read as a table."""
        if key not in self._sketches:
            self._sketches[key] = self._counted(key)
        return self._sketches[key]

    def _counted(self, key: bytes) -> Sketch | None:
        try:
            with open_source(self._data, **self._reading, run=self._run) as source:
                return Census(source, key, weight=self._weight).sketch()
        except Cancelled:
            raise
        except LouverError:
            return None

    def compare(self, key: bytes, earlier: Sequence[Sketch]) -> list[Common]:
        """The overlap of these people with those of each sketch under the same key."""
        own = self.sketch(key)
        if own is None or not earlier:
            return [UNKNOWN] * len(earlier)
        pair = key, tuple(one.digest for one in earlier)
        if pair not in self._commons:
            is_equal = [digest == own.digest for digest in pair[1]]
            others = [one for one, is_own in zip(earlier, is_equal, strict=True) if not is_own]
            found: Iterator[Common] = iter(())
            if others:
                with open_source(self._data, **self._reading, run=self._run) as source:
                    found = iter(Census(source, key, weight=self._weight).compare(own, others))
            same = Common(is_same=True, of_earlier=1.0, of_these=1.0)
            self._commons[pair] = [same if is_own else next(found) for is_own in is_equal]
        return self._commons[pair]


@dataclass(frozen=True, slots=True, kw_only=True)
class Met:
    """The entry of a ledger for data that are new to it.

    Attributes
    ----------
    sketch : str
        Digest of the sketch of their people.
    what : str
        Their overlap with the people already recorded, in words.
    apart : tuple of str
        Other ledgers whose people the steward has declared to be different.
    """

    sketch: str
    what: str
    apart: tuple[str, ...] = ()


def nearest(found: Iterable[Common]) -> Common | None:
    """The largest overlap with any of several; None if there are none. An unknown overlap outranks an empty one."""
    return max(found, key=_closeness, default=None)


def _closeness(common: Common) -> tuple[bool, float, bool]:
    return common.is_same, common.share or 0.0, common.share is None


def in_words(common: Common, name: str, others: str) -> str:
    """How the people of `name` relate to `others`, "those that ..."; as a clause that does not begin with a file name."""
    if common.is_same:
        return f"the people of {name} are {others}"
    if common.share is None:
        return f"it is not known whether people of {name} are among {others}"
    if not common.share:
        return f"nobody in {name} was found among {others} by the values of shared columns, which may have changed"
    return (
        f"people of {name} are among {others} ({in_percent(common.of_these)} of its people, and {in_percent(common.of_earlier)} "
        "of those)"
    )


def keep_sketch(ledger: Path, sketch: Sketch) -> str:
    """Write a sketch to the folder next to a ledger, whole or not at all, and return its digest."""
    folder, digest = ledger.parent / FOLDER, sketch.digest
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
    except OSError:
        raise InputError(
            f"the folder {FOLDER} next to {ledger.name} cannot be created; check permissions and disk space.",
            file=FOLDER,
        ) from None
    with replacing(folder / f"{digest}.json", 0o600) as sink:
        sink.write(sketch.to_json().encode("utf-8"))
    return digest


def read_sketch(ledger: Path, digest: str) -> Sketch | None:
    """Read a sketch back; None if it is missing or was changed."""
    try:
        text = (ledger.parent / FOLDER / f"{digest}.json").read_text(encoding="utf-8")
        is_good = hashlib.sha256(text.encode("utf-8")).hexdigest() == digest
        return Sketch.from_json(text) if is_good else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def copy_sketches(old: Path, new: Path, digests: Iterable[str]) -> None:
    """Copy the sketches next to another ledger."""
    if old.parent.resolve() != new.parent.resolve():
        for digest in digests:
            sketch = read_sketch(old, digest)
            if sketch is not None:
                keep_sketch(new, sketch)
