"""An explorer under test, and a browser to look at it with."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import urllib.error
import urllib.request
import zipfile
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from threading import Event, Thread, get_native_id
from typing import Any

import psutil
import pytest

from cli.command import child_environment

__all__ = ["Explorer", "chromium", "enter", "running", "serious_faults", "tab"]

QUIET = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-dev-shm-usage"]
PATIENCE = 300_000  # ms: a limit that no machine reaches; nothing is measured here
IDLE_SECONDS, LOOKS = 30, 60
MOSTLY_IDLE = 0.1
"""A wait fails earlier where nothing can come any more: threads want a processor in less than this share of the looks at them."""

RULES = "async () => (await axe.run(document, {resultTypes: ['violations']})).violations.map(v => [v.impact, v.id, v.nodes.slice(0, 3).map(n => n.html.slice(0, 160))])"


@dataclass
class Explorer:
    """A running server."""

    address: str
    process: subprocess.Popen

    @cached_property
    def key(self) -> str:
        """What the token of the address is exchanged for, the first time that it is asked for."""
        return enter(self, "X-Louver-Token", self.address.partition("#token=")[2])["key"]

    @property
    def port(self) -> int:
        return int(re.search(r":(\d+)/", self.address)[1])

    @property
    def origin(self) -> str:
        return f"http://127.0.0.1:{self.port}"


@contextmanager
def running(*arguments: str, end: int = signal.SIGINT, **environment: str) -> Iterator[Explorer]:
    """`louver explore` with these arguments, until the block ends; a signal ends it as it should."""
    command = [sys.executable, "-m", "louver", "explore", "--no-browser", *arguments]
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=child_environment(**environment),
    ) as process:
        try:
            said = process.stdout.readline()
            found = re.search(r"http://\S+", said)
            assert found is not None, said + process.stderr.read()
            yield Explorer(found[0], process)
        finally:
            process.send_signal(end)
            _, told = process.communicate(timeout=600)
    assert process.returncode == 0, told
    assert told == ""


@contextmanager
def chromium() -> Iterator[Any]:
    """A headless browser."""
    names = ("chromium", "chromium-browser", "google-chrome")
    program = next(filter(None, map(shutil.which, names)), None)
    if program is None:
        pytest.skip("Chromium is not installed")
    sync_api = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")
    with sync_api.sync_playwright() as player:
        browser = player.chromium.launch(executable_path=program, args=QUIET)
        try:
            yield browser
        finally:
            browser.close()


def enter(explorer: Explorer, name: str, secret: str) -> Any:
    """What the server gives for a token or a key; None where it refuses."""
    headers = {name: secret, "Origin": explorer.origin}
    request = urllib.request.Request(f"{explorer.origin}/enter", method="POST", headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=600) as answer:
            return json.load(answer)
    except urllib.error.HTTPError:
        return None


def take_release(page: Any, folder: Path) -> Path:
    """The release that the page Microdata makes, downloaded and unpacked below a folder."""
    page.click("button:has-text('Publish…')")
    page.click(".drawer .btn.pri:has-text('Publish')")
    page.wait_for_selector(".drawer .verdict:has-text('Published: ')")
    with page.expect_download() as coming:
        page.click(".drawer button:has-text('Download')")
    coming.value.save_as(folder / "release.zip")
    zipfile.ZipFile(folder / "release.zip").extractall(folder / "release")
    return folder / "release"


@contextmanager
def tab(browser: Any, explorer: Explorer, page: str = "", **options: Any) -> Iterator[Any]:
    """A tab of its own with the explorer in it; whatever it asked for elsewhere or complained of fails the test."""
    context = browser.new_context(viewport={"width": 1280, "height": 800}, **options)
    context.set_default_timeout(PATIENCE)
    opened = context.new_page()
    complaints: list[str] = []
    opened.on("request", lambda r: complaints.append(r.url) if not _is_ours(r.url, explorer) else None)
    opened.on("pageerror", lambda e: complaints.append(str(e)))
    opened.on("console", lambda m: complaints.append(m.text) if m.type == "error" else None)
    opened.on("dialog", lambda d: complaints.append("a dialog"))
    opened.on("crash", lambda _: complaints.append("the renderer ended"))
    try:
        with _watching(lambda: "the renderer ended" in complaints):
            context.add_init_script(
                f"if (location.origin === '{explorer.origin}') localStorage.setItem('louver-key', '{explorer.key}')"
            )
            opened.goto(f"{explorer.origin}/#{page}")
            opened.wait_for_selector(".rail a")
            yield opened
            assert opened.title() == "louver"
            assert opened.url.partition("#")[0] == f"{explorer.origin}/", "no secret stays in the address"
            assert not complaints
    finally:
        context.close()


@contextmanager
def _watching(has_crashed: Callable[[], bool]) -> Iterator[None]:
    """End renderers, so that whoever waits for a page fails at once, when this process and all its children have gone to sleep.

    A slow machine is not asleep: there, threads wait for a processor, or for the disk. Playwright calls every ended renderer a
    crash; the failure says whether it was ended here, and how much memory there was.
    """
    is_over, is_asleep = Event(), Event()
    most = free = 0

    def watch() -> None:
        nonlocal most, free
        looks: deque[bool] = deque(maxlen=LOOKS)
        while not is_over.wait(IDLE_SECONDS / LOOKS):
            family = psutil.Process().children(recursive=True)
            renderers = [child for child in family if _is_renderer(child)]
            most = max([most, *map(_resident, renderers)])
            free = psutil.virtual_memory().available
            looks.append(_is_wanting([os.getpid(), *(child.pid for child in family)]))
            if len(looks) == LOOKS and sum(looks) < MOSTLY_IDLE * LOOKS:
                is_asleep.set()
                for child in renderers:
                    with suppress(psutil.Error):
                        child.kill()
                return

    watcher = Thread(target=watch, daemon=True)
    if sys.platform == "linux":  # elsewhere threads do not show what they wait for
        watcher.start()
    try:
        yield
    except Exception as error:
        if is_asleep.is_set():
            raise AssertionError(
                f"what the test waits for cannot come: for {IDLE_SECONDS} seconds no process of the test, the explorer or the "
                "browser had anything to do; was a click lost, or an answer?"
            ) from error
        if has_crashed():
            raise AssertionError(
                f"Chromium's renderer ended by itself; it had used up to {most >> 20} MiB, and {free >> 20} MiB were free"
            ) from error
        raise
    finally:
        is_over.set()
        if watcher.is_alive():
            watcher.join()


def _is_renderer(process: psutil.Process) -> bool:
    with suppress(psutil.Error):
        return "--type=renderer" in process.cmdline()
    return False


def _resident(process: psutil.Process) -> int:
    """Bytes of memory."""
    with suppress(psutil.Error):
        return int(process.memory_info().rss)
    return 0


def _is_wanting(pids: list[int]) -> bool:
    """Whether a thread of one of these processes computes or waits for a processor or the disk; other than the one that asks."""
    own = get_native_id()
    for pid in pids:
        for task in Path(f"/proc/{pid}/task").glob("*/stat"):
            with suppress(OSError):
                state = task.read_text().rpartition(") ")[2][:1]
                if state in "RD" and int(task.parent.name) != own:
                    return True
    return False


def serious_faults(page: Any) -> list[Any]:
    """What keeps people out of a page in which axe-core was evaluated."""
    return [fault for fault in page.evaluate(RULES) if fault[0] in ("serious", "critical")]


def _is_ours(url: str, explorer: Explorer) -> bool:
    return url.startswith(
        (explorer.origin, f"ws://127.0.0.1:{explorer.port}", "data:", "blob:" + explorer.origin)
    )
