"""An option is written once: the keywords of every verb in Python are those of its model, documented."""

from __future__ import annotations

import inspect
import pydoc
import re
from collections.abc import Callable
from typing import Any

import pytest

import louver as lv
from louver import topdown
from louver.anonymize import AnonymizeOptions, anonymize
from louver.audit import AuditOptions, audit
from louver.bounds import BoundsOptions, bounds, compare, publish, suggest
from louver.bounds.options import CompareOptions, OneTableOptions, PublishOptions, SuggestOptions
from louver.bounds.result import BoundsAudit, Comparison
from louver.groups import GroupsOptions, estimate, groups, measure, preview
from louver.profile import ProfileOptions, profile
from louver.protect import ProtectOptions, protect
from louver.schema.options import VerbOptions, described
from louver.schema.request import SOURCE
from louver.schema.source import SourceOptions
from louver.topdown.options import CheckOptions, PlanOptions, RunOptions

RUN = set(RunOptions.model_fields)
OWN = {"data", "spec", "schema", "run"}

NO_DATA = {"data", "schema", *SOURCE, "domain_from_data", "seed", "evaluate", "as_published"}

# Verb, options of the model that its door does not take, and keywords of its own.
DOORS: list[tuple[Callable[..., Any], type[VerbOptions], set[str], set[str]]] = [
    (bounds, OneTableOptions, set(), set()),
    (compare, CompareOptions, set(), set()),
    (suggest, SuggestOptions, set(), set()),
    (publish, PublishOptions, set(), set()),
    (audit, AuditOptions, set(), {"report"}),
    (protect, ProtectOptions, set(), {"out"}),
    (profile, ProfileOptions, set(), set()),
    (anonymize, AnonymizeOptions, set(), {"out", "ledger", "report"}),
    (groups, GroupsOptions, {"schema"}, {"out", "ledger", "report"}),
    (
        measure,
        GroupsOptions,
        {"schema", "domain_from_data", "seed", "evaluate", "as_published"},
        {"out", "ledger", "resume"},
    ),
    (estimate, GroupsOptions, NO_DATA, {"measurements", "out", "report"}),
    (
        preview,
        GroupsOptions,
        NO_DATA,
        {"expect"},
    ),
]


def name_of(value: object) -> str:
    return getattr(value, "__name__", "")


@pytest.mark.parametrize(("door", "model", "left_out", "own"), DOORS, ids=name_of)
def test_keywords_are_those_of_the_model(
    door: Callable[..., Any], model: type[VerbOptions], left_out: set[str], own: set[str]
) -> None:
    parameters = inspect.signature(door).parameters
    source = set(SOURCE) - set(model.no_source)
    assert set(parameters) == ((OWN | source | set(model.model_fields)) - left_out) | own
    for name, parameter in parameters.items():
        is_first = name == "data"
        assert parameter.kind is (parameter.POSITIONAL_OR_KEYWORD if is_first else parameter.KEYWORD_ONLY)
        if name in model.model_fields:
            default = model.model_fields[name].get_default(call_default_factory=True)
            assert parameter.default == (default if default != {} else None), name
        elif name not in own:
            assert parameter.default is None, name


@pytest.mark.parametrize(
    "door",
    [
        *(door for door, *_ in DOORS),
        topdown.topdown,
        topdown.measure,
        topdown.estimate,
        topdown.extend,
        topdown.plan,
    ],
    ids=name_of,
)
def test_every_keyword_is_documented(door: Callable[..., Any]) -> None:
    assert documented_names(door) == set(inspect.signature(door).parameters)


def test_python_can_do_what_the_command_line_can() -> None:
    """`bounds` is four functions in Python; what is left chooses among them or sets the exit code."""
    functions = (OneTableOptions, CompareOptions, SuggestOptions, PublishOptions)
    left = set(BoundsOptions.model_fields) - {name for one in functions for name in one.model_fields}
    assert left == {"suggest", "fail_on"}
    assert callable(BoundsAudit.discloses) and callable(Comparison.discloses)


def test_what_a_door_tells_itself_stays_and_flags_become_keywords() -> None:
    page = inspect.getdoc(bounds)
    assert page is not None
    assert "recode, given, cells : path or inline value, optional\n    Recodes, a-priori" in page
    assert "\nrounding : str\n    Rounding of ties, with `decimals` (default half-up).\n" in page
    assert page.index("\nReturns\n") > page.index("\nrun : Run | None\n")


@pytest.mark.parametrize(
    ("door", "left_out", "own"),
    [
        (topdown.topdown, {"measurements"}, {"spec", "data", "out", "ledger", "report", "run"}),
        (
            topdown.extend,
            {"measurements", "estimator", "shrink"},
            {"spec", "data", "out", "ledger", "report", "run"},
        ),
        (topdown.measure, RUN - {"resume"}, {"spec", "data", "out", "ledger", "run"}),
        (
            topdown.estimate,
            RUN - {"engine", "estimator", "shrink", "intervals", "csv", "measurements"},
            {"spec", "out", "report", "run"},
        ),
    ],
    ids=name_of,
)
def test_topdown_is_told_in_its_spec(door: Callable[..., Any], left_out: set[str], own: set[str]) -> None:
    """Beside the spec there are only the options of the run."""
    parameters = inspect.signature(door).parameters
    assert set(parameters) == (RUN - left_out) | own
    for name in RUN - left_out - {"measurements"}:
        assert parameters[name].default == RunOptions.model_fields[name].default, name


def test_a_plan_takes_what_its_model_has() -> None:
    parameters = inspect.signature(topdown.plan).parameters
    assert set(parameters) == set(PlanOptions.model_fields) | {"spec", "run"}
    for name, field in PlanOptions.model_fields.items():
        default = field.get_default(call_default_factory=True)
        assert parameters[name].default == (default if default != {} else None), name


def documented_names(door: Callable[..., Any]) -> set[str]:
    """Names in the headings of the docstring's Parameters section."""
    section = inspect.getdoc(door).partition("Parameters\n----------\n")[2]  # type: ignore[union-attr]
    section = re.split(r"\n\n\w+\n-+\n", section)[0]
    headings = re.findall(r"^(\w+(?:, \w+)*)(?: :|$)", section, re.MULTILINE)
    return {name for heading in headings for name in heading.split(", ")}


@pytest.mark.parametrize(
    "model",
    [
        AnonymizeOptions,
        BoundsOptions,
        GroupsOptions,
        ProtectOptions,
        SourceOptions,
        RunOptions,
        CheckOptions,
        PlanOptions,
    ],
    ids=name_of,
)
def test_every_option_is_told(model: type[VerbOptions]) -> None:
    """Help, group and, unless it is a flag, what stands for the value."""
    for one in described(model):
        assert one.help.endswith((".", "?")) and one.group, one.name
        assert (one.metavar is None) == (one.form == "flag"), one.name
    missing = set(model.model_fields) - {one.name for one in described(model)}
    assert missing <= {"file", "uri", "wide", "tables", "known", "targets", "codes", "rules", "status"}


@pytest.mark.parametrize("verb", ["anonymize", "audit", "bounds", "groups", "protect", "topdown"])
def test_help_is_the_verbs_own_page(verb: str) -> None:
    package = getattr(lv, verb)
    assert inspect.signature(package) == inspect.signature(getattr(package, verb))
    page = pydoc.plain(pydoc.render_doc(package))
    first = inspect.getdoc(getattr(package, verb)).partition("\n")[0]  # type: ignore[union-attr]
    assert first in page.partition("DESCRIPTION")[0]
    assert "Parameters\n    ----------" in page
