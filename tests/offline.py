"""The wheel in an environment of its own, without a network: `python tests/offline.py WHEEL FOLDER` (`make wheel-test`).

The environment gets what `pip install "louver[app]"` asks for and nothing else, linked from the one that runs this, then the wheel.
In a network namespace of its own, or where that is not allowed behind a guard on sockets, the demo runs, its releases are verified,
and the explorer serves its page with all that this loads.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import venv
import zipfile
from importlib.metadata import Distribution, PathDistribution, distribution
from pathlib import Path

EXTRA = "app"
SOURCE = Path(__file__).parents[1] / "src"
GUARD = """
import socket

def connect(self, address, plain=socket.socket.connect):
    if self.family != socket.AF_UNIX and address[0] not in ("127.0.0.1", "::1", "localhost"):
        raise OSError("no network here")
    return plain(self, address)

socket.socket.connect = connect
"""


def main(wheel: Path, folder: Path) -> None:
    venv.create(folder, with_pip=False, symlinks=True)
    [site] = folder.glob("lib/python*/site-packages")
    for needed in closure(wheel):
        link(needed, site)
    python = folder / "bin" / "python"
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", str(python)]
    subprocess.run([*pip, "install", "--quiet", "--no-index", f"{wheel}[{EXTRA}]"], check=True)
    share(SOURCE, site)
    apart = ["unshare", "--map-root-user", "--net"]
    if subprocess.run([*apart, "true"], capture_output=True).returncode:
        apart = []
        (site / "sitecustomize.py").write_text(GUARD)
    sys.stdout.write(
        f"without a network {'in a namespace of its own' if apart else 'behind a guard on sockets'}: "
    )
    sys.stdout.flush()
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
    subprocess.run([*apart, python, __file__, "inside", folder], env=kept, check=True)


def closure(wheel: Path) -> list[Distribution]:
    """Distributions that the wheel needs, with those that they need."""
    from packaging.requirements import Requirement

    [info] = (path for path in zipfile.Path(wheel).iterdir() if path.name.endswith(".dist-info"))
    found: dict[str, Distribution] = {}
    asked: set[tuple[str, str]] = set()
    todo: list[tuple[Distribution, str]] = [(PathDistribution(info), ""), (PathDistribution(info), EXTRA)]
    while todo:
        wanting, extra = todo.pop()
        for requirement in map(Requirement, wanting.requires or ()):
            if requirement.marker and not requirement.marker.evaluate({"extra": extra}):
                continue
            name = requirement.name.lower().replace("_", "-")
            found.setdefault(name, distribution(name))
            new = {(name, more) for more in ("", *requirement.extras)} - asked
            todo += [(found[name], more) for _, more in new]
            asked |= new
    return list(found.values())


def link(needed: Distribution, site: Path) -> None:
    for top in {file.parts[0] for file in needed.files or ()} - {"..", "__pycache__"}:
        if not (site / top).exists():
            (site / top).symlink_to(Path(str(needed.locate_file(top))))


def share(source: Path, site: Path) -> None:
    from compiling import share as share_kernels

    share_kernels(source, site.absolute())


def inside(folder: Path) -> None:
    """What somebody without a network does first."""
    raise_loopback()
    assert not is_reachable("192.0.2.1"), "there is a network"
    louver, out = folder / "bin" / "louver", folder / "demo"
    run = [str(louver), "demo", "--seconds", "1", "--out", str(out)]
    assert "Everything is in" in subprocess.run(run, check=True, capture_output=True, text=True).stdout
    for release in ("anonymous", "crashes", "county"):
        subprocess.run([louver, "verify", out / release], check=True, stdout=subprocess.DEVNULL)
    n_loaded = explore(louver, out / "data" / "people.csv")
    sys.stdout.write(
        f"the demo ran, its releases verify, the explorer served its page and {n_loaded} files\n"
    )


def raise_loopback() -> None:
    """A new namespace has its loopback down."""
    import fcntl
    import socket
    import struct
    from contextlib import suppress

    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as some, suppress(OSError):
        fcntl.ioctl(some, 0x8914, struct.pack("16sh", b"lo", 1))  # SIOCSIFFLAGS, IFF_UP


def is_reachable(host: str) -> bool:
    import socket

    try:
        socket.create_connection((host, 80), timeout=2).close()
    except OSError:
        return False
    return True


def explore(louver: Path, file: Path) -> int:
    """How many files the page loads; each is there."""
    import json
    import signal
    from urllib.parse import urljoin
    from urllib.request import ProxyHandler, Request, build_opener

    browser = build_opener(ProxyHandler({}))

    def enter(origin: str, name: str, secret: str) -> dict[str, str]:
        headers = {name: secret, "Origin": origin}
        with browser.open(Request(f"{origin}/enter", method="POST", headers=headers)) as answer:
            return json.load(answer)

    command = [str(louver), "explore", str(file), "--no-browser"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            origin, token = re.search(r"(http://[^/]+)/#token=(\S+)", server.stdout.readline()).groups()
            key = enter(origin, "X-Louver-Token", token)["key"]
            prefix = enter(origin, "X-Louver-Key", key)["prefix"]
            with browser.open(f"{origin}{prefix}/") as answer:
                page = answer.read().decode()
            loaded = set(re.findall(r"""["'](/[^"'\s]+\.(?:js|css|svg|woff2))["']""", page))
            assert "louver" in page and loaded
            for path in loaded:
                with browser.open(urljoin(origin, path)) as answer:
                    assert answer.status == 200 and answer.read(), path
        finally:
            server.send_signal(signal.SIGINT)
    assert server.returncode == 0
    return len(loaded)


if __name__ == "__main__":
    if sys.argv[1] == "inside":
        inside(Path(sys.argv[2]))
    else:
        main(*(Path(place).absolute() for place in sys.argv[1:3]))
