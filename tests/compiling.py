"""Machine code is made once: test workers wait for each other's, and an installed copy takes that of the source tree.

`python tests/compiling.py SOURCE SITE` copies the caches of louver in SOURCE for the same louver in SITE.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["compile_once", "share"]

held: set[str] = set()  # a kernel that calls itself is compiled while it is being compiled


def compile_once() -> None:
    """Let every compilation of this process wait for that of the same kernel in another one, then look in the cache."""
    from numba.core.compiler_lock import global_compiler_lock
    from numba.core.dispatcher import Dispatcher

    plain = Dispatcher.compile

    def compile(dispatcher: Dispatcher, signature: object) -> object:
        # The process's own lock first: whoever waits for a file must not hold what another of its threads waits for.
        with (
            global_compiler_lock,
            alone(f"{dispatcher.py_func.__module__}.{dispatcher.py_func.__qualname__}"),
        ):
            return plain(dispatcher, signature)

    Dispatcher.compile = compile


@contextmanager
def alone(name: str) -> Iterator[None]:
    """Hold the lock of a name. Kernels call downwards only, so that nobody waits in a circle."""
    if name in held:
        yield
        return
    checkout = hashlib.sha1(str(Path(__file__).parent).encode()).hexdigest()[
        :8
    ]  # others have machine code of their own
    folder = Path(tempfile.gettempdir()) / f"louver-compiling-{os.getuid()}-{checkout}"
    folder.mkdir(exist_ok=True)
    with open(folder / name, "wb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        held.add(name)
        try:
            yield
        finally:
            held.remove(name)


def share(source: Path, site: Path) -> None:
    """Numba names a folder after the path of the source; louver names the one above after its content, so this is safe."""
    for made in source.glob("louver/optim/kernels/*/__pycache__/louver-*/*"):
        family, cache = made.parents[2], made.parent.name
        copy = site / family.relative_to(source)
        place = copy / "__pycache__" / cache
        place.mkdir(parents=True, exist_ok=True)
        # Not a link to the folder: what looks for kept machine code does not follow one.
        shutil.copytree(
            made, place / f"{copy.name}_{hashlib.sha1(str(copy).encode()).hexdigest()}", dirs_exist_ok=True
        )


if __name__ == "__main__":
    share(*(Path(place).absolute() for place in sys.argv[1:3]))
