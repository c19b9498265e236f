"""Terminal interaction: output lines, progress bars, Ctrl-C."""

from __future__ import annotations

import codecs
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Any

from louver.errors import printable
from louver.optim.notice import listeners
from louver.run import Run

if TYPE_CHECKING:
    import socket

__all__ = [
    "compile_notices",
    "console_run",
    "say",
    "say_json",
    "say_release",
    "stopping_signal",
    "tolerant_output",
]

SIGNALS = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))
GRACE_SECONDS = 0.4
"""Seconds after which work that has not reacted to a request to stop is interrupted."""
CLEARING_SECONDS = 3.0
"""Seconds for work that has reacted, or can no longer stop, to finish, so that nothing half-finished is left behind."""
BAR_AFTER_SECONDS, REDRAW_SECONDS = 1.0, 0.25
AGAIN, AGAIN_SECONDS = b"\0", 0.01
"""Requests another interrupt once execution has left the code that suppressed the last one."""
NOTICE = "compiling, once per installation: about {} s"
_caught: list[int] = []
_bars: list[Any] = []
PLAIN = {"→": "->", "…": "...", "×": "x", "≤": "<=", "≥": ">=", "–": "-", "±": "+-"}


def say(text: str) -> None:
    """Print lines of a result on stdout; all control characters except line breaks are replaced."""
    _write("".join(letter if letter.isprintable() or letter == "\n" else "?" for letter in text))


def say_json(text: str) -> None:
    """Print JSON on stdout, escaping what its encoding lacks or a terminal would interpret, so that no label changes."""
    import json
    import re

    escaped = r"[\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069]"
    try:
        text.encode(sys.stdout.encoding or "utf-8")
    except UnicodeEncodeError:
        escaped = r"[^\x00-\x7e]"
    _write(re.sub(escaped, lambda found: json.dumps(found[0])[1:-1], text))


def say_release(release: Any, out: object, *, as_json: bool) -> None:
    """Report what was released and, if it was written, where it is."""
    content = repr(release) if out is None else f"{release!r}\nRelease: {printable(out)}"
    say_json(release.to_json()) if as_json else say(content)


def _write(text: str) -> None:
    _wipe_bar()
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def tolerant_output() -> None:
    """Let characters that the terminal's encoding lacks be replaced by others."""
    codecs.register_error("louver", _in_other_letters)
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="louver")


def _in_other_letters(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    letters = error.object[error.start : error.end]
    return "".join(PLAIN.get(letter, "?") for letter in letters), error.end


@contextmanager
def console_run() -> Iterator[Run]:
    """The `Run` of a command: Ctrl-C, SIGTERM and SIGHUP cancel it; a second one ends the process at once."""
    is_watched = sys.stderr.isatty()
    with _bar() as (show, stand), compile_notices(_say_aside) if is_watched else nullcontext():
        run = Run(show, _say_aside, stand)
        with _signals(run):
            yield run


def _say_aside(sentence: str) -> None:
    """Print a sentence that is not part of the result on stderr."""
    _wipe_bar()
    sys.stderr.write(f"louver: {printable(sentence)}.\n")
    sys.stderr.flush()


@contextmanager
def compile_notices(write: Callable[[str], None]) -> Iterator[None]:
    """Announce that kernels are being compiled, to explain the wait; one notice per wait, even if commands nest."""
    outer, listeners[:] = listeners[:], [lambda seconds: write(NOTICE.format(seconds))]
    try:
        yield
    finally:
        listeners[:] = outer


def stopping_signal() -> int:
    """The signal that stopped the command; that of Ctrl-C if it came before there was a `Run`."""
    return _caught[0] if _caught else signal.SIGINT


@contextmanager
def _signals(run: Run) -> Iterator[None]:
    """Watch for signals in a separate thread.

    The interpreter runs handlers in the main thread between two Python instructions, and therefore not while a kernel computes there. The
    system's own handler writes to the wake-up socket whatever the main thread does; a thread reads it and sets the flag that kernels
    poll.
    """
    import socket

    _caught.clear()
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    ours, theirs = socket.socketpair()
    theirs.setblocking(False)
    is_late = threading.Event()

    def interrupt(number: int, frame: object) -> None:
        if is_late.is_set():
            raise KeyboardInterrupt

    def unraisable(lost: sys.UnraisableHookArgs) -> None:
        """An interrupt that arrives while a finalizer runs is lost there: print nothing, and request another interrupt."""
        if _caught and lost.exc_type is KeyboardInterrupt:
            theirs.send(AGAIN)
        else:
            hook(lost)

    hook, sys.unraisablehook = sys.unraisablehook, unraisable
    before = {number: signal.signal(number, interrupt) for number in SIGNALS}
    wakeup = signal.set_wakeup_fd(theirs.fileno(), warn_on_full_buffer=False)
    watcher = threading.Thread(target=_watch, args=(ours, run, is_late), daemon=True)
    watcher.start()
    try:
        yield
    except Exception:
        run.check()  # a library's own clean-up may fail and hide the interrupt
        raise
    finally:
        sys.unraisablehook = hook
        signal.set_wakeup_fd(wakeup)
        for number, handler in before.items():
            signal.signal(number, handler)
        theirs.close()
        watcher.join(1)
        ours.close()


def _watch(ours: socket.socket, run: Run, is_late: threading.Event) -> None:
    """Cancel on the first signal, interrupt the main thread if that takes too long, and exit on the second signal."""
    while True:
        try:
            received = ours.recv(1)
        except TimeoutError:
            if run.is_ending and ours.gettimeout() == GRACE_SECONDS:
                ours.settimeout(CLEARING_SECONDS)
                continue
            ours.settimeout(None)
            is_late.set()
            _interrupt_main_thread(_caught[0])
            ours.recv(1)  # our own
            continue
        if not received:
            return
        if received == AGAIN:
            ours.settimeout(AGAIN_SECONDS)
        if received[0] not in SIGNALS:
            continue
        if _caught:
            os.write(2, b"louver: stopped.\n")
            os._exit(128 + received[0])
        _caught.append(received[0])
        run.cancel()
        ours.settimeout(GRACE_SECONDS)


def _interrupt_main_thread(number: int) -> None:
    if hasattr(signal, "pthread_kill"):
        signal.pthread_kill(threading.main_thread().ident or 0, number)
    else:
        signal.raise_signal(number)


@contextmanager
def _bar() -> Iterator[
    tuple[Callable[[str, float, float], None] | None, Callable[[float, float | None], None] | None]
]:
    """A progress bar on stderr after the first second, if stderr is a terminal, and a callback that shows the search status."""
    if not sys.stderr.isatty():
        yield None, None
        return
    started = drawn = time.perf_counter()
    standing = ""

    def stand(lost: float, least: float | None) -> None:
        nonlocal standing
        standing = f", {lost:.2%} lost" + ("" if least is None else f", at least {least:.2%}")

    def show(stage: str, done: float, total: float) -> None:
        nonlocal drawn
        now = time.perf_counter()
        if now - started < BAR_AFTER_SECONDS or now - drawn < REDRAW_SECONDS:
            return
        drawn = now
        if not _bars:
            _bars.append(_new_bar())
        bar = _bars[0]
        bar.update(bar.task_ids[0], description=stage + standing, completed=done, total=total, refresh=True)

    try:
        yield show, stand
    finally:
        _wipe_bar()


def _wipe_bar() -> None:
    """Remove the bar from the terminal before anything else is printed there."""
    if _bars:
        _bars.pop().stop()


def _new_bar() -> Any:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

    content = TextColumn("{task.description}", markup=False)
    columns = (content, BarColumn(), TaskProgressColumn(), TimeElapsedColumn())
    bar = Progress(
        *columns,
        console=Console(stderr=True),
        transient=True,
        auto_refresh=False,
        redirect_stdout=False,
        redirect_stderr=False,
    )
    bar.add_task("", total=1.0)
    bar.start()
    return bar
