"""Trees of codes from files of others and of our own."""

from __future__ import annotations

from pathlib import Path

import pytest

from louver.errors import InputError
from louver.protect.hierarchy import Tree, read_tree

LEVELS = "A10,A21,A88\nAZ,A,01\nAZ,A,02\nAZ,X,X\nBE,B,06\n"


def test_the_layouts_say_the_same(tmp_path: Path) -> None:
    (tmp_path / "t.hrc").write_text("AZ\n@A\n@@01\n@@02\n@X\nBE\n@B\n@@06\n\n")
    (tmp_path / "levels.csv").write_text(LEVELS)
    (tmp_path / "parents.csv").write_text("code,parent\nAZ,\nA,AZ\n01,A\n02,A\nX,AZ\nBE,\nB,BE\n06,B\n")
    marks, levels, parents = (read_tree(tmp_path / f, "all") for f in ("t.hrc", "levels.csv", "parents.csv"))
    assert marks == levels == parents
    assert marks.parts["AZ"] == ("A", "X") and marks.total == "all"
    assert marks.depth["06"] == 3 and marks.leaves["AZ"] == {"01", "02", "X"}


@pytest.mark.parametrize(
    ("file", "text", "says"),
    [
        ("t.hrc", "\n\n", "t.hrc has no codes"),
        ("t.hrc", "A\n@@01\n", "line 2 has at least two more marks"),
        ("t.hrc", "@A\n", "line 1 has at least two more marks"),
        ("t.hrc", "A\n@\n", "line 2 has no code after its marks"),
        ("t.hrc", "A\n@01\nB\n@01\n", "line 4 repeats a code"),
        ("t.hrc", "A\n@Total\n", "line 2 has the code of the total"),
        ("t.csv", "", "t.csv has no codes"),
        ("t.csv", 'a,b\n"x,y\n', "cannot be read as separated text"),
        ("t.csv", "a,b\nx\n", "line 2 has a different number of fields"),
        ("t.csv", "a,b\nx,\n", "line 2 leaves a level empty"),
        ("t.csv", "a,b\nx,1\ny,1\n", "line 3 puts a code under a second parent"),
        ("t.csv", "code,parent\n,A\n", "line 2 has no code"),
        ("t.csv", "code,parent\nA,B\n", "line 2 names a parent that is not a code"),
        ("t.csv", "code,parent\nA,B\nB,A\n", "line 2 makes a code its own ancestor"),
    ],
)
def test_what_is_no_tree_is_refused_with_its_line(tmp_path: Path, file: str, text: str, says: str) -> None:
    (tmp_path / file).write_text(text)
    with pytest.raises(InputError, match=says) as error:
        read_tree(tmp_path / file, "Total")
    assert error.value.file == file


def test_a_code_stands_once_in_a_tree() -> None:
    with pytest.raises(InputError, match="lists a code twice"):
        Tree("Total", {"Total": ("A", "B"), "A": ("x",), "B": ("x",)})
