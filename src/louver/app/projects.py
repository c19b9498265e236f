"""A project: the choices made for a file, which can be saved and reopened. It never contains records, counts or results.

A project names its data but does not open them. The file with which the explorer was started and the samples are opened by name; any other
file must be chosen by hand.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from louver.anonymize.methods import CHOICES
from louver.app.columns import KINDS, ROLES, ColumnChoices, MergeTree
from louver.app.jobs.data import labelled
from louver.app.pages.audit import SECONDS as AUDIT_SECONDS
from louver.app.pages.audit import Audits
from louver.app.pages.microdata import LEFT_OUT, RECODINGS, ROUNDS, TIMES, MicrodataChoices
from louver.app.pages.microdata_panels import CODES, DISTANCES, L_KINDS
from louver.app.pages.protect import ATTACKERS, FEW, METHODS
from louver.app.pages.protect_state import TIMES as PROTECT_TIMES
from louver.app.pages.protect_state import Protects
from louver.app.pages.tables_state import Tables, Waiting
from louver.app.session import SAMPLES, Session
from louver.audit.options import AuditTableOptions
from louver.bounds.options import BoundsOptions
from louver.data.samples import sample_path
from louver.errors import InputError, LouverError
from louver.protect.options import RuleOptions, StatusOptions
from louver.schema.source import SourceOptions
from louver.schema.validate import Options, validated

__all__ = ["MAX_PROJECT", "Project", "go_on", "open_data_of", "read_project", "saved"]

MAX_PROJECT = 5_000_000
WHERE = "the project"
MOST_TABLES = 200


class DataOptions(Options):
    """The data that a project refers to."""

    name: Annotated[str, Field(min_length=1)]
    sample: str | None = None


class TableOfProject(Options):
    """An arrangement that was tried; its result is computed again."""

    words: str
    options: dict[str, Any]


class AuditOfProject(Options):
    """The settings of the Audit page."""

    pieces: Annotated[list[dict[str, Any]], Field(max_length=MOST_TABLES)] = Field(default_factory=list)
    small: str = "5"
    within: str = ""
    hide: bool = False
    with_register: bool = True
    new_population: bool = False
    count_people: bool = False
    seconds: Literal[tuple(AUDIT_SECONDS)] = "60"  # type: ignore[valid-type]


class TableToProtect(Options):
    """A table of the Protect page, which names no file."""

    name: Annotated[str, Field(min_length=1)]
    by: list[str]
    value: Annotated[str, Field(min_length=1)] | None = None


class ProtectOfProject(Options):
    """The settings of the Protect page."""

    tables: Annotated[list[dict[str, Any]], Field(max_length=MOST_TABLES)] = Field(default_factory=list)
    rules: Annotated[list[dict[str, Any]], Field(max_length=MOST_TABLES)] = Field(default_factory=list)
    pins: list[dict[str, Any]] = Field(default_factory=list)
    method: Literal[tuple(METHODS)] = "hide"  # type: ignore[valid-type]
    base: str = "5"
    minimise: Literal[tuple(FEW)] = "number"  # type: ignore[valid-type]
    attackers: Literal[tuple(ATTACKERS)] = "contributors"  # type: ignore[valid-type]
    known_percent: str = ""
    holding: str = ""
    sampling_weight: str = ""
    time: Literal[tuple(PROTECT_TIMES)] = "rounds"  # type: ignore[valid-type]
    with_register: bool = True
    new_population: bool = False


class MoreOfProject(Options):
    """Further requirements on microdata, without the population and the earlier records, which are separate files."""

    l_kind: Literal[tuple(L_KINDS)] = "distinct"  # type: ignore[valid-type]
    c: str = ""
    t: str = ""
    distance: Literal[tuple(DISTANCES)] = ""  # type: ignore[valid-type]
    count_missing: bool = False
    codes: dict[Literal[tuple(CODES)], dict[str, str]] = Field(default_factory=dict)  # type: ignore[valid-type]
    against: list[str] = Field(default_factory=list)
    link: str = ""
    accept: bool = False


class MicrodataOfProject(Options):
    """The choices made on the Microdata page."""

    k: Annotated[int, Field(ge=2)] = 5
    l: int | None = None  # noqa: E741 - the field's own name
    weights: dict[str, Annotated[float, Field(ge=0, le=4)]] = Field(default_factory=dict)
    recoding: Literal[tuple(RECODINGS)] = "local"  # type: ignore[valid-type]
    method: Literal[CHOICES] = "auto"  # type: ignore[valid-type]
    seconds: Literal[tuple(TIMES | ROUNDS)] = "10"  # type: ignore[valid-type]
    suppress: Literal[tuple(LEFT_OUT)] = "0"  # type: ignore[valid-type]
    exceptions: Literal[tuple(LEFT_OUT)] = "0"  # type: ignore[valid-type]
    more: MoreOfProject = MoreOfProject()


class Project(Options):
    """The content of a project file."""

    louver: Literal["project"] = "project"
    version: Literal[1] = 1
    data: DataOptions
    source: dict[str, Any] = Field(default_factory=dict)
    roles: dict[str, Literal[tuple(ROLES)]] = Field(default_factory=dict)  # type: ignore[valid-type]
    kinds: dict[str, Literal[tuple(KINDS)]] = Field(default_factory=dict)  # type: ignore[valid-type]
    orders: dict[str, list[str]] = Field(default_factory=dict)
    person: str = ""
    hierarchies: dict[str, list[dict[str, list[str]]]] = Field(default_factory=dict)
    tables: Annotated[list[TableOfProject], Field(max_length=MOST_TABLES)] = Field(default_factory=list)
    audit: AuditOfProject = AuditOfProject()
    protect: ProtectOfProject = ProtectOfProject()
    microdata: MicrodataOfProject = MicrodataOfProject()


def saved(session: Session) -> str:
    """The choices for the open data, as the text of a project file."""
    assert session.opened is not None
    opened = session.opened
    columns, tables = session.state(ColumnChoices), session.state(Tables)
    audits, microdata = session.state(Audits), session.state(MicrodataChoices)
    sample = next((name for name in SAMPLES if str(sample_path(name)) == opened.path), None)
    content = {
        "louver": "project",
        "version": 1,
        "data": {"name": opened.name} | ({} if sample is None else {"sample": sample}),
        "source": opened.source.model_dump(
            mode="json", exclude={"file", "uri", "query"}, exclude_defaults=True
        ),
        "roles": {name: role for name, role in columns.roles.items() if role},
        "kinds": columns.kinds,
        "orders": columns.orders,
        "person": columns.person,
        "hierarchies": {name: tree.steps for name, tree in columns.trees.items() if tree.steps},
        "tables": [
            {"words": one.words, "options": one.options.model_dump(mode="json", exclude_defaults=True)}
            for one in tables.in_order()
        ],
        "audit": _taken(audits, AuditOfProject),
        "protect": _taken(session.state(Protects), ProtectOfProject),
        "microdata": _taken(microdata, MicrodataOfProject) | {"more": _taken(microdata.more, MoreOfProject)},
    }
    return json.dumps(content, ensure_ascii=False, indent=1)


def _taken(state: object, model: type[Options]) -> dict[str, Any]:
    """The part of a project that a page keeps."""
    return {name: getattr(state, name) for name in model.model_fields if name != "more"}


def read_project(path: Path) -> Project:
    """Read a project file; its content is checked by the models of the verbs.

    Raises
    ------
    InputError
        If it is not a project, or the verbs do not accept its contents.
    """
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError):
        content = None
    if not isinstance(content, dict) or content.get("louver") != "project":
        raise InputError("this is not a project; choose a file that was saved on the page Start.")
    project = validated(Project, content, WHERE)
    validated(SourceOptions, project.source, WHERE)
    for one in project.tables:
        validated(BoundsOptions, one.options, WHERE)
    for piece in project.audit.pieces:
        if validated(AuditTableOptions, piece, WHERE).file is not None:
            raise InputError(
                "this project names a file, which saved projects never do; choose one that was saved on the page Start."
            )
    protect = project.protect
    for model, given in (
        (TableToProtect, protect.tables),
        (RuleOptions, protect.rules),
        (StatusOptions, protect.pins),
    ):
        for entry in given:
            validated(model, entry, WHERE)
    return project


def open_data_of(session: Session, project: Project) -> bool:
    """Open the data of a project, if it may be opened by its name; False if the user must choose the file."""
    name, sample = project.data.name, project.data.sample
    file = session.setup.file
    if sample in SAMPLES:
        session.open_sample(str(sample))
    elif file is not None and "://" not in file and Path(file).name == name:
        session.open_start()
    elif session.opened is None or session.opened.name != name:
        return False
    return True


async def go_on(session: Session) -> None:
    """Apply the choices of the project that is waiting for the open data, if any."""
    project, opened = session.project, session.opened
    if project is None or opened is None or project.data.name != opened.name:
        return
    session.project = None
    session.read_as(**project.source)
    await _restore(session, project)


async def _restore(session: Session, project: Project) -> None:
    assert session.opened is not None
    opened, columns = session.opened, session.state(ColumnChoices)
    columns.roles, columns.kinds = dict(project.roles), dict(project.kinds)
    columns.orders = {name: list(order) for name, order in project.orders.items()}
    columns.person, columns.is_edited = project.person, True
    for name, steps in project.hierarchies.items():
        try:
            labels = await session.ask(labelled, opened.path, opened.source, name, key=f"labels {name}")
        except LouverError:  # the column no longer exists; the Data page lists those that do
            continue
        columns.trees[name] = MergeTree(labels, [dict(step) for step in steps])
    tables = session.state(Tables)
    tables.waiting = [
        Waiting(one.words, validated(BoundsOptions, one.options, WHERE)) for one in project.tables
    ]
    microdata = session.state(MicrodataChoices)
    _give(session.state(Audits), project.audit)
    _give(session.state(Protects), project.protect)
    _give(microdata, project.microdata)
    _give(microdata.more, project.microdata.more)


def _give(state: object, given: Options) -> None:
    """Restore a page's state from a project."""
    for name, value in given.model_dump(exclude={"more"}).items():
        setattr(state, name, value)
