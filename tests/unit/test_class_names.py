"""A class name means one thing in the whole tree."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "src"


def test_no_class_name_is_used_twice() -> None:
    texts = (path.read_text(encoding="utf-8") for path in SOURCE.rglob("*.py"))
    names = Counter(name for text in texts for name in re.findall(r"^ *class (\w+)[(:]", text, re.MULTILINE))
    assert names["AuditOptions"] == 1
    assert [name for name, times in names.items() if times > 1] == []
