"""Small files of a schema."""

from __future__ import annotations

from pathlib import Path

import pytest

from louver.errors import InputError
from louver.schema.files import read_bytes, read_toml


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
