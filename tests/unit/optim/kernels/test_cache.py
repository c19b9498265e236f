"""Cached machine code is thrown away when any kernel changes, not only the one that was cached."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import louver

PROGRAM = """
import numpy as np
from louver.optim.kernels.semigroups.reduced_rows import reduced_rows
print(reduced_rows(np.array([[2, 4]]))[0].tolist(), sum(reduced_rows.entry.stats.cache_hits.values()))
"""


def run(site):
    environment = {**os.environ, "PYTHONPATH": str(site), "NUMBA_CACHE_DIR": str(site / "cache")}
    command = [sys.executable, "-c", PROGRAM]
    return subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout.strip()


@pytest.mark.long
def test_a_change_in_a_helper_of_a_family_is_noticed(tmp_path):
    shutil.copytree(
        Path(louver.__file__).parent / "optim",
        tmp_path / "louver" / "optim",
        ignore=shutil.ignore_patterns("__pycache__"),
    )
    (tmp_path / "louver" / "__init__.py").touch()
    assert run(tmp_path) == "[[1, 2]] 0"
    assert run(tmp_path) == "[[1, 2]] 1"
    (before,) = (tmp_path / "cache").iterdir()
    helper = tmp_path / "louver" / "optim" / "kernels" / "semigroups" / "progressions.py"
    text = helper.read_text(encoding="utf-8")
    assert text.count("    return a\n") == 1
    helper.write_text(text.replace("    return a\n", "    return a // a\n"), encoding="utf-8")
    assert run(tmp_path) == "[[2, 4]] 0"
    (after,) = (tmp_path / "cache").iterdir()
    assert after.name != before.name
