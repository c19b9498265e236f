"""Start the explorer: one server on 127.0.0.1, guarded, with a private folder that is removed when it ends."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import tempfile
import webbrowser
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from louver.app.guard import Guard, Keys
from louver.app.options import ExploreOptions
from louver.app.session import RELEASES, Setup
from louver.errors import InputError
from louver.schema.request import Request

if TYPE_CHECKING:
    from fastapi import FastAPI

__all__ = ["explore"]

RECONNECT_SECONDS = 30.0
"""Seconds for which a session waits for a sleeping browser."""


def explore(request: Request[ExploreOptions], say: Callable[[str], object]) -> None:
    """Serve until interrupted; `say` receives the address."""
    options = request.options
    _check_installed()
    with _listening(options.port) as listener, _private_folder() as folder:
        keys = Keys(listener.getsockname()[1])
        setup = Setup(
            file=_checked_file(request.data),
            source=request.source,
            ledger=_there(options.ledger, "--ledger", "make one with `louver ledger init`"),
            releases=_made(options.releases) or Path(RELEASES).absolute(),
            register=None if options.registry is None else Path(options.registry).absolute(),
            topdown=_there(options.topdown, "--topdown", "check the path"),
            folder=folder,
        )
        os.environ["NICEGUI_STORAGE_PATH"] = str(folder)
        os.environ.pop("NICEGUI_REDIS_URL", None)
        say(f"louver is at {keys.address}\nIt is for this machine alone; Ctrl-C ends it.")
        if not options.no_browser:
            _open_browser(keys, folder)
        _serve(Guard(_application(setup), keys), listener)


def _check_installed() -> None:
    try:
        import nicegui  # noqa: F401
    except ImportError:
        raise InputError(
            "the explorer is not installed; run pip install 'louver[app]'.", option="explore"
        ) from None


def _checked_file(data: object) -> str | None:
    """The data as an absolute path, which pages never show."""
    if data is None:
        return None
    file = str(data)
    if "://" in file:
        return file
    if not Path(file).exists():
        raise InputError(f"{Path(file).name} does not exist; check the path.", file=Path(file).name)
    return str(Path(file).absolute())


def _there(file: str | None, option: str, instead: str) -> Path | None:
    """A file that pages need; it must exist before they are shown."""
    if file is None:
        return None
    if not Path(file).is_file():
        raise InputError(f"option {option}: {Path(file).name} does not exist; {instead}.", option=option)
    return Path(file)


def _made(folder: str | None) -> Path | None:
    """The folder of releases, created if there is none."""
    if folder is None:
        return None
    with suppress(OSError):
        Path(folder).mkdir(exist_ok=True)
    if not Path(folder).is_dir():
        raise InputError(
            f"option --releases: {Path(folder).name} is not a folder and cannot be created; name another.",
            option="--releases",
        )
    return Path(folder)


@contextmanager
def _listening(port: int) -> Iterator[socket.socket]:
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind(("127.0.0.1", port))
            listener.listen()
        except OSError:
            raise InputError(
                f"option --port: {port} is in use or not allowed; choose another, or leave it out.",
                option="--port",
            ) from None
        yield listener


@contextmanager
def _private_folder() -> Iterator[Path]:
    """A folder that only its owner can access (0700)."""
    folder = Path(tempfile.mkdtemp(prefix="louver-"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _open_browser(keys: Keys, folder: Path) -> None:
    """Open the browser through a private file, because other users of the machine can see the arguments of programs, and the address
    contains the token."""
    page = folder / "open.html"
    page.touch(mode=0o600)
    page.write_text(
        f'<!doctype html><title>louver</title><meta http-equiv="refresh" content="0;url={keys.address}">'
    )
    with suppress(webbrowser.Error):
        webbrowser.open(page.as_uri())


def _application(setup: Setup) -> FastAPI:
    from fastapi import FastAPI
    from nicegui import ui

    from louver.app.shell import install

    parent = FastAPI(docs_url=None, redoc_url=None, openapi_url=None)
    install(setup)
    ui.run_with(
        parent,
        title="louver",
        favicon=Path(__file__).with_name("assets") / "louver.svg",
        language="en-US",
        reconnect_timeout=RECONNECT_SECONDS,
        binding_refresh_interval=None,
        gzip_middleware_factory=None,
        tailwind=False,
        show_welcome_message=False,
    )
    return parent


def _serve(app: Guard, listener: socket.socket) -> None:
    import logging

    import uvicorn

    if not os.environ.get("LOUVER_DEBUG"):
        logging.disable(logging.CRITICAL)  # a trace may hold labels
    config = uvicorn.Config(
        app,
        log_level="critical",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=1,
    )
    for name in ("SIGTERM", "SIGHUP"):  # as for Ctrl-C: private files are removed
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), signal.default_int_handler)
    with suppress(KeyboardInterrupt):
        uvicorn.Server(config).run(sockets=[listener])
