"""The manual builds without a network and without a warning, and no page asks another host for anything."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LOADED = re.compile(r'<(?:script|link|img|iframe)[^>]*(?:src|href)="(https?:)?//')


@pytest.fixture(scope="module")
def manual(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("manual")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(out)]
    done = subprocess.run(
        command, cwd=ROOT, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"}, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert "WARNING" not in done.stderr
    return out


def test_every_page_of_the_navigation_is_there(manual: Path) -> None:
    listed = re.findall(r"([\w/-]+)\.md", (ROOT / "mkdocs.yml").read_text())
    assert listed and all((manual / f"{name}.html").is_file() for name in listed)


def test_every_guide_is_in_the_navigation() -> None:
    listed = (ROOT / "mkdocs.yml").read_text()
    pages = [page for part in ("", "explain/", "howto/") for page in (ROOT / "docs").glob(f"{part}*.md")]
    assert [page.name for page in pages if page.name not in listed] == []


def test_links_of_the_readme_lead_somewhere() -> None:
    links = re.findall(r"\]\(([^)#]+)\)", (ROOT / "README.md").read_text())
    assert links and [link for link in links if not (ROOT / link).exists()] == []


def test_pictures_are_there_small_and_shown() -> None:
    shown = {
        name
        for page in (ROOT / "README.md", *(ROOT / "docs").rglob("*.md"))
        for name in re.findall(r"images/([\w-]+\.png)", page.read_text())
    }
    kept = {path.name: path.stat().st_size for path in (ROOT / "docs" / "images").iterdir()}
    assert shown == set(kept)
    assert max(kept.values()) < 100_000


def test_no_page_loads_anything_from_elsewhere(manual: Path) -> None:
    found = [page.name for page in manual.rglob("*.html") if LOADED.search(page.read_text())]
    assert found == []
