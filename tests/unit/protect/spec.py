"""Small specs of protected tables, written to a folder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import louver as lv
from louver.protect import ProtectedTables

HEAD = "trade,size,n,turnover,first,second,status,cost\n"
LINES = [
    "food,small,1,50,50,,,1",
    "food,large,9,400,90,60,,1",
    "food,Total,10,450,90,60,,1",
    "wood,small,7,130,30,20,,1",
    "wood,large,4,500,200,150,,1",
    "wood,Total,11,630,200,150,,1",
    "iron,small,5,120,40,30,,1",
    "iron,large,6,600,250,150,,1",
    "iron,Total,11,720,250,150,,1",
    "Total,small,13,300,50,40,,1",
    "Total,large,19,1500,250,200,,1",
    "Total,Total,32,1800,250,200,,1",
]
TABLE: dict[str, Any] = {
    "name": "firms",
    "by": ["trade", "size"],
    "file": "firms.csv",
    "value": "turnover",
    "frequency": "n",
    "largest": ["first", "second"],
}
FEW = {"rule": "frequency", "minimum": 3}


def write(folder: Path, lines: list[str] = LINES, name: str = "firms.csv", head: str = HEAD) -> Path:
    (folder / name).write_text(head + "\n".join(lines) + "\n")
    return folder / name


def protect(folder: Path, *, table: dict[str, Any] | None = None, **more: Any) -> ProtectedTables:
    """Protect the table of a folder."""
    asked = {
        "tables": [{**TABLE, "file": str(folder / "firms.csv"), **(table or {})}],
        "rules": [FEW],
        **more,
    }
    return lv.protect(**asked)
