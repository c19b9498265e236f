"""An uploaded spec: no path in it is opened; files are found by their names among the uploads, or a sentence says which is missing."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, get_args

import pytest
from pydantic import BaseModel

from louver.app.jobs.topdown import described
from louver.app.spec_files import SpecFiles, moved, written
from louver.errors import InputError
from louver.run import Run
from louver.schema.spec import SpecOptions, read_spec
from louver.schema.validate import read_toml
from louver.topdown.extension.options import ExtendOptions
from louver.topdown.options import TopDownOptions
from topdown_town import SPEC, write_town


@pytest.fixture
def town(tmp_path: Path) -> Path:
    return write_town(tmp_path / "elsewhere").parent


@pytest.fixture
def files(tmp_path: Path) -> SpecFiles:
    return SpecFiles(tmp_path / "session")


def take(files: SpecFiles, path: Path, name: str = "") -> None:
    arrived = path.parent / "arrived"
    arrived.write_bytes(path.read_bytes())
    files.take(arrived, name or path.name)


def test_files_are_found_by_their_names(town: Path, files: SpecFiles) -> None:
    spec = town / "town.toml"
    spec.write_text(
        SPEC.replace('"leaves.csv"', '"../../elsewhere/leaves.csv"').replace(
            '"people.csv"', r"'C:\x\people.csv'"
        )
    )
    take(files, spec)
    assert [(one.name, one.role) for one in files.files_named()] == [
        ("people.csv", "records"),
        ("leaves.csv", "list of regions"),
        ("facilities.csv", "public table"),
    ]
    with pytest.raises(InputError, match="the spec names leaves.csv; choose that file too"):
        files.ready()
    take(files, town / "leaves.csv")
    take(files, town / "facilities.csv")
    about = described(str(files.ready()), Run())
    assert [level["regions"] for level in about["levels"]] == [1, 2, 4, 9]
    assert files.missing_records() == "people.csv"
    take(files, town / "people.csv")
    assert files.missing_records() == ""
    assert read_spec(files.ready()).data == str(files.folder / "people.csv")


def test_the_records_may_be_the_file_that_was_started_with(town: Path, files: SpecFiles) -> None:
    files.records = str(town / "people.csv")
    for name in ("town.toml", "leaves.csv", "facilities.csv"):
        take(files, town / name)
    assert read_spec(files.ready()).data == str(town / "people.csv")


def test_no_path_of_the_spec_is_opened(town: Path, files: SpecFiles) -> None:
    """Everything that is opened lies among the uploads, whatever the spec names."""
    secret = town / "secret.csv"
    secret.write_text("block\n1A1\n")
    spec = SPEC.replace('"leaves.csv"', f'"{secret}"').replace('"facilities.csv"', '"/etc/passwd"')
    spec = spec.replace("[attributes.race]", f'[attributes.race]\nhierarchy = {{ file = "{secret}" }}')
    (town / "town.toml").write_text(spec)
    take(files, town / "town.toml")
    take(files, town / "people.csv")
    opened: list[str] = []
    is_on = [True]

    def watch(event: str, args: tuple[Any, ...]) -> None:
        if is_on[0] and event == "open" and isinstance(args[0], str):
            opened.append(args[0])

    sys.addaudithook(watch)
    with pytest.raises(InputError, match="secret.csv; choose that file too"):
        files.ready()
    take(files, town / "leaves.csv", "secret.csv")
    take(files, town / "facilities.csv", "passwd")
    opened.clear()
    spec_path = files.ready()
    with pytest.raises(InputError, match="secret.csv"):  # leaves are no hierarchy of race
        described(str(spec_path), Run())
    is_on[0] = False
    ours = [path for path in opened if path.endswith((".csv", ".toml", "passwd"))]
    assert ours and all(path.startswith(str(files.folder)) for path in ours)


def paths_of(model: type[BaseModel], prefix: str = "") -> set[str]:
    """Keys of a model whose names say that they hold a path."""
    found = set()
    for name, field in model.model_fields.items():
        if name in ("file", "uri", "leaves", "extended_by", "extends", "hierarchy"):
            found.add(prefix + name)
        for inner in _models(field.annotation):
            found |= paths_of(inner, f"{prefix}{name}.")
    return found


def _models(annotation: Any) -> set[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return {annotation}
    return set().union(*(_models(one) for one in get_args(annotation))) if get_args(annotation) else set()


def test_all_places_that_hold_a_path_are_known() -> None:
    """A new one must be matched in `spec_files` too."""
    assert paths_of(SpecOptions) == {
        "source.file",
        "source.uri",
        "attributes.hierarchy",
        "attributes.hierarchy.file",
    }
    assert paths_of(TopDownOptions) == {"geography.leaves", "bounds.file", "covariates.file", "extended_by"}
    assert paths_of(ExtendOptions) == paths_of(TopDownOptions) | {"extends"}


@pytest.mark.parametrize("path", ["/etc/first", "../../first/", r"C:\releases\first", "first"])
def test_the_release_of_an_extension_is_named_without_its_path(
    files: SpecFiles, tmp_path: Path, path: str
) -> None:
    (tmp_path / "x.toml").write_text(f"[topdown]\nextends = '{path}'\nepsilon = 1")
    take(files, tmp_path / "x.toml")
    assert read_toml(files.ready())["topdown"]["extends"] == "first"


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ('[source]\nuri = "postgresql://h/d"\n[topdown]\nepsilon = 1', "names a database"),
        ("[bounds]\nsmall = 5", r"no section \[topdown\]"),
        ('[topdown]\nextended_by = "/etc/passwd"', "names that of an extension"),
        ("[topdown", "not valid TOML"),
    ],
)
def test_what_only_the_command_line_opens_is_refused(
    files: SpecFiles, tmp_path: Path, line: str, sentence: str
) -> None:
    (tmp_path / "x.toml").write_text(line)
    take(files, tmp_path / "x.toml")
    with pytest.raises(InputError, match=sentence):
        files.ready()


@pytest.mark.parametrize(
    "name", ["", "..", "a/b.csv", "a\\b.csv", ".hidden", "-x.csv", "x" * 200, "a\nb.csv", "C:x"]
)
def test_names_that_cannot_be_kept(files: SpecFiles, tmp_path: Path, name: str) -> None:
    (tmp_path / "some.csv").write_text("a\n")
    with pytest.raises(InputError, match="unusable name"):
        files.take(tmp_path / "some.csv", name)


def test_sizes_are_limited(files: SpecFiles, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("louver.app.spec_files.MAX_SPEC", 10)
    monkeypatch.setattr("louver.app.spec_files.MOST_FILES", 1)
    (tmp_path / "x.toml").write_text("# " + "x" * 100)
    with pytest.raises(InputError, match="the spec is larger"):
        take(files, tmp_path / "x.toml")
    take(files, tmp_path / "x.toml", "a.csv")
    with pytest.raises(InputError, match="more than 1 files"):
        take(files, tmp_path / "x.toml", "b.csv")


def test_hostile_texts_survive_the_writing(files: SpecFiles, tmp_path: Path) -> None:
    hostile = '"; rm -rf / # <script>\n\t\\ = [x]'
    content = {"attributes": {hostile: {"labels": [hostile]}}, "topdown": {"epsilon": 1, "rho": "x"}}
    path = tmp_path / "x.toml"
    path.write_text(written(moved(content, {"epsilon": 2, "rho": None})))
    assert read_toml(path) == {"attributes": content["attributes"], "topdown": {"epsilon": 2}}
