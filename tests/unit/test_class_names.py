"""A class name means one thing in the whole tree."""

from __future__ import annotations

import ast
from collections import Counter
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "src"


def test_no_class_name_is_used_twice() -> None:
    nodes = (node for path in SOURCE.rglob("*.py") for node in ast.walk(ast.parse(path.read_text())))
    names = Counter(node.name for node in nodes if isinstance(node, ast.ClassDef))
    assert [name for name, times in names.items() if times > 1] == []
