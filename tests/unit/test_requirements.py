"""What is installed is pinned, in the file where it belongs: what louver runs on apart from what only tests and tools need."""

from __future__ import annotations

import re
import tomllib
from importlib.metadata import distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
RUNTIME_EXTRAS = ("app", "formats")
BUILD = ("hatchling", "editables")  # the second is what hatchling needs for `pip install -e`
PIN = re.compile(r'([A-Za-z0-9._-]+)==[0-9][0-9.]*(; sys_platform != "win32")?')

if not (ROOT / "requirements.txt").is_file():
    pytest.skip("the requirements are not part of this copy", allow_module_level=True)


def pins(name: str) -> list[str]:
    lines = (ROOT / name).read_text(encoding="utf-8").splitlines()
    found = [line for line in lines if not line.startswith(("#", "-r requirements.txt"))]
    assert [line for line in found if not PIN.fullmatch(line)] == [], "every line is a pinned version"
    return [canonicalize_name(line.partition("==")[0]) for line in found]


def needed(wanted: list[Requirement]) -> set[str]:
    """These requirements, with all that they need."""
    found: set[tuple[str, str]] = set()
    waiting = [(requirement, "") for requirement in wanted]
    while waiting:
        requirement, extra = waiting.pop()
        if requirement.marker is not None and not requirement.marker.evaluate({"extra": extra}):
            continue
        name = canonicalize_name(requirement.name)
        new = {(name, more) for more in ("", *requirement.extras)} - found
        found |= new
        waiting += [
            (Requirement(line), more) for _, more in new for line in distribution(name).requires or ()
        ]
    return {name for name, _ in found}


def test_each_package_is_pinned_where_it_belongs() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    runtime = [*project["dependencies"], *(line for name in RUNTIME_EXTRAS for line in extras[name]), *BUILD]
    development = [line for name in extras for line in extras[name]]
    for_running = needed([Requirement(line) for line in runtime])
    for_all = for_running | needed([Requirement(line) for line in development])
    assert set(pins("requirements.txt")) == for_running
    assert set(pins("requirements-dev.txt")) == for_all - for_running


def test_no_package_is_pinned_twice() -> None:
    names = [*pins("requirements.txt"), *pins("requirements-dev.txt")]
    assert len(names) == len(set(names))
