"""Small files of a schema."""

from __future__ import annotations

from pathlib import Path

import pytest

from louver.errors import InputError
from louver.schema.validate import read_bytes, read_toml


def test_a_byte_order_mark_is_no_fault(tmp_path):
    path = tmp_path / "a.toml"
    path.write_bytes("\ufeffx = 1\r\n".encode())
    assert read_toml(path) == {"x": 1}


def test_a_file_without_permission(monkeypatch):
    def refuse(self):
        raise PermissionError

    monkeypatch.setattr(Path, "read_bytes", refuse)
    with pytest.raises(InputError, match="^a.toml cannot be opened; check its permissions.$"):
        read_bytes("folder/a.toml")


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("a = " + "[" * 5000 + "]" * 5000, "nested too deeply"),
        ("a = " + "9" * 5000, "too many digits"),
        ("[a]\nb = 1\nb = 2", "not valid TOML at"),
    ],
)
def test_toml_that_no_parser_takes(tmp_path, content, says):
    path = tmp_path / "spec.toml"
    path.write_text(content)
    with pytest.raises(InputError, match=says):
        read_toml(path)


@pytest.mark.parametrize("name", ["x" * 5000, "a\0b"])
def test_names_that_no_file_can_have(name):
    with pytest.raises(InputError, match="cannot be opened; check its name"):
        read_bytes(name)
