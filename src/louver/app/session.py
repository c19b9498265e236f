"""The state of one tab: the data it opened, the choices on each page, its uploads and its processes.

A session is made when a page is loaded and closed when its browser has gone; sessions share nothing. Only three things are ever
opened: the file that the server was started with, the samples, and what was uploaded here.
"""

from __future__ import annotations

import shutil
import tempfile
from asyncio import Future
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

from louver.app.work import Progress, Standing, Worker
from louver.data.formats import UPLOADS, names_of
from louver.data.samples import sample_path
from louver.errors import Cancelled, InputError, LouverError, printable
from louver.schema.source import SourceOptions
from louver.schema.validate import validated

__all__ = [
    "MAX_UPLOAD",
    "MAX_UPLOADS",
    "RELEASES",
    "SAMPLES",
    "UPLOADED",
    "JobAnswer",
    "Opened",
    "Receiver",
    "Room",
    "Session",
    "Setup",
]

MAX_UPLOAD = 500_000_000
MAX_UPLOADS = 2_000_000_000
"""Maximum size in bytes of one upload, and of all uploads of all tabs together."""
RELEASES, REGISTER = "louver-releases", "register"
"""Default folder for releases, and the register of publications within it."""
SAMPLES = {
    "survey": ("Survey", "48,842 people counted by eight attributes", "count"),
    "cps8": ("cps8", "the same people, with the attribute names of the bounds paper", "count"),
    "people": ("People", "6,000 people of a survey, one row each", None),
    "ges2013": ("Crashes", "86,519 people in road crashes, with regions", None),
}
"""Name -> title, description, column of counts."""
*_OTHERS, _LAST = names_of(lambda one: one.is_uploaded)
UPLOADED = f"{', '.join(_OTHERS)} or {_LAST}"
"""The formats that may be uploaded as data, in words."""
LASTING = ("measure", "release")
"""Lanes of work that continues when other data are opened, because it was confirmed and may have been paid for."""

JobAnswer = Mapping[str, Any]
"""The answer of a job to a page."""
SENTENCES = ("verdict", "remark", "refused")
"""The parts of an answer in which a verb may name the file."""

S = TypeVar("S")


class Room:
    """The storage that all tabs share for uploads; a tab returns its part when it closes."""

    def __init__(self, most: int = MAX_UPLOADS) -> None:
        self._most = self._left = most

    def take(self, size: int) -> None:
        """Reserve this many bytes.

        Raises
        ------
        InputError
            If fewer bytes are left.
        """
        if size > self._left:
            raise InputError(
                f"all uploads together may have {self._most // 1_000_000:,} MB; close other tabs or reload this page, "
                "or start louver explore with the path of the data."
            )
        self._left -= size

    def give_back(self, size: int) -> None:
        """Return this many bytes."""
        self._left += size


@dataclass(slots=True, kw_only=True)
class Setup:
    """The options of the server, and the ledger that was made or chosen since.

    Attributes
    ----------
    file : str or None
        The data to open first.
    source : SourceOptions
        How the data are read.
    ledger : Path or None
        The ledger that is charged.
    releases : Path
        Folder of releases, which is made when the first one is published.
    register : Path or None
        Folder of the register; if None, it is in the folder of releases.
    topdown : Path or None
        The spec of the page TopDown.
    folder : Path
        Private to this user; uploads are kept below it.
    room : Room
        Space that all uploads share.
    """

    file: str | None = None
    source: SourceOptions = field(default_factory=SourceOptions)
    ledger: Path | None = None
    releases: Path = Path(RELEASES)
    register: Path | None = None
    topdown: Path | None = None
    folder: Path
    room: Room = field(default_factory=Room)

    @property
    def registry(self) -> Path:
        """The register of everything published here."""
        return self.register or self.releases / REGISTER


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    """Data that a session may read.

    Attributes
    ----------
    path : str
        Of the file, or an address.
    name : str
        Its name on the screen; never in a title, an address or a log.
    copied : str
        Its name in a copied command.
    source : SourceOptions
        How it is read, and the column that counts people.
    is_sample : bool
        Whether it comes with louver; no real budget is spent on it.
    """

    path: str
    name: str
    copied: str
    source: SourceOptions
    is_sample: bool = False


@dataclass(frozen=True, slots=True)
class Receiver:
    """Receiver of an upload for a special purpose.

    Attributes
    ----------
    take : callable
        Called with the path of the stored file and its name.
    endings : tuple of str
        File name endings that are accepted.
    most : int
        Maximum size in bytes.
    kinds : str
        Name of the accepted kinds, for the message that rejects another.
    """

    take: Callable[[str, str], Awaitable[None]]
    endings: tuple[str, ...] = UPLOADS
    most: int = MAX_UPLOAD
    kinds: str = UPLOADED


class Session:
    """One tab."""

    def __init__(self, setup: Setup) -> None:
        self.setup = setup
        self.opened: Opened | None = None
        self.shape = ""
        self.show: Callable[[str], object] = lambda page: None
        """Navigates to a page; set by the shell."""
        self.refresh_top: Callable[[], object] = lambda: None
        """Redraws the top bar; set by the shell."""
        self.refresh_ledger: Callable[[], Awaitable[None]] | None = None
        """Updates the remaining balance of the ledger; set by the shell."""
        self.balance: dict[str, str] | None = None
        self.practice: dict[Path, dict[str, str]] = {}
        """Balance of this tab's own ledgers, which pay for samples."""
        self.is_spending = False
        """Whether a measurement is under way on any page."""
        self.tell: Callable[[str], object] = lambda sentence: None
        """Shows an error on the current page; set by the shell."""
        self.say: Callable[[str], object] = lambda text: None
        """Announces a message to screen readers; set by the shell."""
        self.mark_work: Callable[[], object] = lambda: None
        """Informs the browser whether leaving the page would lose something; set by the shell."""
        self.project: Any = None
        """A project waiting for its data to be opened."""
        self.receivers: dict[str, Receiver] = {}
        """Receiver of an upload for a special purpose."""
        self._states: dict[type[Any], Any] = {}
        self._workers: dict[str, Worker] = {}
        self._folder: Path | None = None
        self._kept = 0
        self._is_closed = False

    @property
    def folder(self) -> Path:
        """A private directory of this session, removed with it.

        Raises
        ------
        Cancelled
            If the tab has gone, as for `ask`: an upload or a handler may outlive it.
        """
        self._check()
        if self._folder is None:
            self._folder = Path(tempfile.mkdtemp(dir=self.setup.folder))
        return self._folder

    def state(self, kind: type[S]) -> S:
        """The state of a page between visits: one object of the page's own class, dropped when other data are opened."""
        found: S = self._states.setdefault(kind, kind())
        return found

    @property
    def has_work(self) -> bool:
        """Whether there are decisions or results that would be lost with the tab."""
        return any(getattr(state, "has_work", False) for state in self._states.values())

    async def ask(
        self,
        job: Callable[..., Any],
        *args: Any,
        key: str,
        lane: str = "quick",
        progress: Progress | None = None,
        standing: Standing | None = None,
    ) -> Any:
        """Run a job from `louver.app.jobs` in this session's process; see `Worker.do`. Long jobs have a lane of their own."""
        self._check()
        worker = self._workers.setdefault(lane, Worker())
        found = await worker.do(job, *args, key=key, progress=progress, standing=standing)
        if not isinstance(found, Mapping):
            return found
        return {**found, **{name: self._in_own_names(found[name]) for name in SENTENCES if name in found}}

    def _in_own_names(self, said: Any) -> Any:
        """Sentences of a verb, with the upload under its original name."""
        if isinstance(said, Mapping):
            return {name: self._in_own_names(part) for name, part in said.items()}
        if isinstance(said, Sequence) and not isinstance(said, str):
            return [self._in_own_names(part) for part in said]
        if self.opened is None or not isinstance(said, str):
            return said
        return said.replace(Path(self.opened.path).name, self.opened.name)

    def follow(
        self, lane: str, key: str, progress: Progress | None, standing: Standing | None
    ) -> Future[Any] | None:
        """The result of a job whose page has since been left; see `Worker.follow`."""
        worker = self._workers.get(lane)
        return None if worker is None else worker.follow(key, progress, standing)

    def message_of(self, error: LouverError) -> str:
        """The error in words; an upload has its original name there, not the name of the stored file."""
        message: str = self._in_own_names(str(error))
        return message

    def hurry(self, lane: str) -> None:
        """Ask the search in a lane for the best result it has so far."""
        if lane in self._workers:
            self._workers[lane].hurry()

    def cancel(self, lane: str, key: str = "") -> None:
        """Cancel what is running in a lane."""
        if lane in self._workers:
            self._workers[lane].cancel(key)

    def warm(self) -> None:
        """Start the quick process before it is needed."""
        self._workers.setdefault("quick", Worker()).start()

    def open_start(self) -> bool:
        """Open the file that the server was started with, if any."""
        file = self.setup.file
        if file is None:
            return False
        is_address = "://" in file  # an address may contain a password
        name, copied = ("database", "ADDRESS") if is_address else (Path(file).name, file)
        self._take(Opened(path=file, name=printable(name), copied=copied, source=self.setup.source))
        return True

    def open_sample(self, name: str) -> None:
        """Open a sample by its name."""
        path = str(sample_path(name))
        self._take(
            Opened(
                path=path,
                name=Path(path).name,
                copied=path,
                source=SourceOptions(weight=SAMPLES[name][2]),
                is_sample=True,
            )
        )

    async def upload(self, name: str, chunks: AsyncIterator[bytes]) -> None:
        """Store an upload and open it; see `keep`."""
        self.open(await self.keep(name, chunks))

    async def keep(self, name: str, chunks: AsyncIterator[bytes]) -> Opened:
        """Store an upload so that it can be opened.

        Raises
        ------
        InputError
            If no reader knows its file type, or it is too large.
        """
        path = await self._keep(name, "upload", chunks, Receiver(_nobody, most=MAX_UPLOAD))
        shown = printable(name)
        return Opened(path=str(path), name=shown, copied=shown, source=SourceOptions())

    def open(self, opened: Opened) -> None:
        """Open a stored upload in place of the data now open."""
        self._take(opened)

    async def receive(self, purpose: str, name: str, chunks: AsyncIterator[bytes]) -> None:
        """Keep a public file, such as a list of regions, for the page that asked for it.

        Raises
        ------
        InputError
            As `upload`, or if no page asked for the file.
        """
        receiver = self.receivers.get(purpose)
        if receiver is None:
            raise InputError("no page asked for this file; open it on the page Data.")
        path = await self._keep(name, f"public-{purpose}", chunks, receiver)
        receiver = self.receivers.get(purpose, receiver)  # the page may have been drawn again in the meantime
        await receiver.take(str(path), printable(name))

    async def _keep(self, name: str, stem: str, chunks: AsyncIterator[bytes], receiver: Receiver) -> Path:
        endings = sorted(receiver.endings, key=len, reverse=True)
        ending = next((end for end in endings if name.lower().endswith(end)), None)
        if ending is None:
            raise InputError(f"this kind of file is not read; choose {receiver.kinds}.")
        place, kept = tempfile.mkstemp(ending, f"{stem}-", self.folder)  # several may arrive at once
        taken = 0

        def take(size: int) -> None:
            nonlocal taken
            self._check()
            self.setup.room.take(size)
            taken += size
            self._kept += size

        try:
            with open(place, "wb") as stream:
                await _write(stream, chunks, receiver, take)
        except BaseException:
            Path(kept).unlink(missing_ok=True)
            self._give_back(taken)
            raise
        return Path(kept)

    def _give_back(self, size: int) -> None:
        """Return the space of an upload; space already freed with the tab is not returned twice."""
        given = min(size, self._kept)
        self._kept -= given
        self.setup.room.give_back(given)

    def count_by(self, weight: str | None) -> None:
        """Read the same data with another column of counts, or with none."""
        assert self.opened is not None
        self._take(replace(self.opened, source=self.opened.source.model_copy(update={"weight": weight})))

    def read_as(self, **given: Any) -> None:
        """Read the same data in another way: decimals, separators, rows.

        Raises
        ------
        InputError
            If the options are not valid.
        """
        assert self.opened is not None
        kept = self.opened.source.model_dump(exclude={"query"} if given.get("table") else set())
        self._take(replace(self.opened, source=validated(SourceOptions, {**kept, **given})))

    def only_known(self, names: Sequence[str]) -> None:
        """Read only rows that have a value in these columns; decisions about columns are kept."""
        assert self.opened is not None
        before = self.opened.source.where
        quoted = ('"{}"'.format(name.replace('"', '""')) for name in names)
        known = " and ".join(f"{name} is not missing" for name in quoted)
        self.reread(where=known if before is None else f"({before}) and {known}")

    def reread(self, **given: Any) -> None:
        """Read the same data in another way; decisions about columns are kept.

        Raises
        ------
        InputError
            If the options are not valid.
        """
        kept = {kind: state for kind, state in self._states.items() if hasattr(state, "reread")}
        self.read_as(**given)
        self._states.update(kept)
        for state in kept.values():
            state.reread()

    def close(self) -> None:
        """End its processes and remove its uploads."""
        self._is_closed = True
        for worker in self._workers.values():
            worker.close()
        self._workers.clear()
        self._states.clear()
        if self._folder is not None:
            with suppress(OSError):
                shutil.rmtree(self._folder)
            self._folder = None
        self._give_back(self._kept)

    def _take(self, opened: Opened) -> None:
        self.opened = opened
        self.shape = ""
        self._states.clear()
        for worker in self._workers.values():
            worker.cancel(but=LASTING)

    def _check(self) -> None:
        if self._is_closed:
            raise Cancelled


async def _nobody(path: str, name: str) -> None:
    """Placeholder: the data themselves have no receiver but are opened."""


async def _write(
    stream: BinaryIO, chunks: AsyncIterator[bytes], receiver: Receiver, take: Callable[[int], None]
) -> None:
    size = 0
    async for chunk in chunks:
        size += len(chunk)
        if size > receiver.most:
            is_data = receiver.endings == UPLOADS
            instead = "start louver explore with its path instead" if is_data else "choose a smaller one"
            raise InputError(f"the file is larger than {receiver.most // 1_000_000} MB; {instead}.")
        take(len(chunk))
        stream.write(chunk)
