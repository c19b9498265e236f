"""Checkpoints: finished parts of a long computation on disk, each written completely or not at all."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from louver.data.write import replacing
from louver.errors import InputError

__all__ = ["Checkpoints"]


class Checkpoints:
    """Sets of arrays with metadata, stored by name in one folder.

    Parameters
    ----------
    folder : Path
        Made if it does not exist.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    def save(self, name: str, arrays: Mapping[str, NDArray[Any]], facts: Mapping[str, Any]) -> None:
        """Write a part; on return it is on disk."""
        text = np.frombuffer(json.dumps(facts).encode(), dtype=np.uint8)
        with replacing(self._path(name)) as file:
            np.savez(file, allow_pickle=False, facts=text, **arrays)

    def load(self, name: str) -> tuple[dict[str, NDArray[Any]], dict[str, Any]] | None:
        """Read a part back; None if it was never finished."""
        path = self._path(name)
        if not path.exists():
            return None
        try:
            with np.load(path, allow_pickle=False) as file:
                arrays = {key: file[key] for key in file.files}
            return arrays, json.loads(arrays.pop("facts").tobytes())
        except (OSError, ValueError, KeyError, BadZipFile):
            message = f"the checkpoint {path.name} cannot be read; delete it to compute that part again."
            raise InputError(message, file=path.name) from None

    def _path(self, name: str) -> Path:
        return self.folder / f"{name}.npz"
