"""Writing a release directory: whole or not at all, and only if it keeps its promises."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType

from louver._files import FolderLock, has_locks, lock_folder, sync, try_lock
from louver.errors import InputError, PromiseError
from louver.release.folder import Folder
from louver.release.manifest import MANIFEST, Manifest, file_entry, parse
from louver.release.strict_json import parse_json
from louver.run import Run

__all__ = ["ReleaseWriter", "check_out"]


def check_out(out: Path, option: str = "--out") -> None:
    """Refuse a directory that exists or cannot be made, before any work is done."""
    if os.path.lexists(out):
        name = out.name or out.absolute().name or str(out)  # "." and "/" have no name
        raise InputError(f"option {option}: {name} already exists; name a new folder.", option=option)
    if not out.parent.is_dir():
        raise InputError(f"option {option}: the parent folder of {out.name} does not exist.", option=option)


class ReleaseWriter:
    """Builds a release in a hidden sibling folder and moves it into place once it is sealed.

    Leaving the `with` block without `seal` removes everything that was written. A run can be cancelled until the release is logged; after
    that, the release is moved into place in any case. Files that a killed run left behind are removed when the next run for the same folder
    begins; the folder of an active run is locked.

    Examples
    --------
    >>> import tempfile
    >>> out = Path(tempfile.mkdtemp()) / "release"
    >>> with ReleaseWriter(out) as writer:
    ...     _ = writer.path("data/a.txt").write_text("a")
    >>> out.exists()
    False
    """

    def __init__(self, out: str | Path, run: Run | None = None) -> None:
        self.out, self._run = Path(out), run or Run()
        check_out(self.out)
        self._folder: Path | None = None
        self._lock: FolderLock | None = None

    def __enter__(self) -> ReleaseWriter:
        prefix = f".{self.out.name}.partial-"
        _sweep(self.out.parent, prefix)
        try:
            while self._lock is None:
                self._folder = Path(tempfile.mkdtemp(prefix=prefix, dir=self.out.parent))
                self._lock = lock_folder(self._folder)
        except OSError:
            problem = f"option --out: the parent folder of {self.out.name} is not writable."
        else:
            return self
        raise InputError(problem, option="--out")

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._folder is not None and self._folder.exists():
            shutil.rmtree(self._folder, ignore_errors=True)
        if self._lock is not None:
            self._lock.close()
        if isinstance(error, OSError):
            message = f"option --out: {self.out.name} cannot be written; check permissions and disk space."
            raise InputError(message, option="--out") from None

    def path(self, name: str) -> Path:
        """The path at which to write the file `name` (with `/`); its folder is made."""
        assert self._folder is not None, "use ReleaseWriter in a with block"
        self.check()
        path = self._folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        return path

    def check(self) -> None:
        """Stop if the run was cancelled; called between the parts of a long file."""
        self._run.check()

    def seal(self, manifest: Manifest, log: Callable[[], str] | None = None) -> Manifest:
        """Check every promise, hash all files, write the manifest, flush to disk, move into place.

        Parameters
        ----------
        log : callable, optional
            Logs the release in a ledger once it has been verified, and returns the ledger's head for the manifest.

        Raises
        ------
        PromiseError
            If the files do not keep a promise; nothing is moved into place.
        """
        assert self._folder is not None, "use ReleaseWriter in a with block"
        folder = self._folder
        names = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())
        created = manifest.created or datetime.now(UTC).isoformat(timespec="seconds")
        files = {name: self._run.attend(file_entry, folder / name) for name in names}
        sealed = replace(manifest, created=created, files=files)
        self._run.attend(_check_kept, Folder(folder, names), sealed)
        check_out(self.out)
        self._run.finish()
        if log is not None:
            sealed = replace(sealed, ledger_head=log())
        (folder / MANIFEST).write_text(sealed.to_json(), encoding="utf-8")
        for path in [*folder.rglob("*"), folder]:
            sync(path)
        folder.chmod(_usual_mode(folder))
        # A folder that appeared in the meantime is never replaced, not even an empty one.
        check_out(self.out)
        folder.rename(self.out)
        sync(self.out.parent)
        return sealed


def _check_kept(folder: Folder, manifest: Manifest) -> None:
    """Refuse to publish files that do not keep their promises, which would be a bug in louver."""
    from louver.release.verify import (
        check_promises,
    )  # imported here: it takes a quarter of a second, and a release is sealed once

    as_read = parse(parse_json(manifest.to_json().encode()), folder.path.name)
    # The steward chose the labels that a recode merges, but those who verify must accept them.
    for check in check_promises(folder, as_read, accept_strings=None):
        if not check.passed:
            raise PromiseError(
                f'the release would not keep its promise "{check.name}" and was not written, which is a bug in louver (please report it); '
                f"{_pending(manifest)}.",
                promise=check.name,
            )


def _pending(manifest: Manifest) -> str:
    """What happens to the debit of a refused release."""
    from louver.release.promises.measurements import MEASUREMENTS

    if manifest.verb not in MEASUREMENTS:
        return "nothing was published"
    if manifest.parameters.get("noise") == "opendp":
        return "its debit stays pending, and since OpenDP cannot draw the same noise again, `louver ledger abandon` closes it"
    return "its debit stays pending, and a version with the bug fixed can finish it"


def _usual_mode(folder: Path) -> int:
    """Permissions that a new folder has under the current umask."""
    probe = folder / ".mode"
    probe.mkdir()
    try:
        return probe.stat().st_mode & 0o777
    finally:
        probe.rmdir()


def _sweep(parent: Path, prefix: str) -> None:
    """Remove folders that earlier runs for the same folder left behind and that no process has locked."""
    with suppress(OSError):
        for entry in list(os.scandir(parent)):
            is_ours = entry.name.startswith(prefix) and entry.is_dir(follow_symlinks=False)
            if has_locks() and is_ours and entry.stat(follow_symlinks=False).st_uid == os.getuid():
                _remove_stale(Path(entry.path))


def _remove_stale(folder: Path) -> None:
    """Remove a folder unless a process has locked it."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        if try_lock(handle):
            shutil.rmtree(folder, ignore_errors=True)
    finally:
        os.close(handle)
