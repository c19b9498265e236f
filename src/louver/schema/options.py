"""The options of a verb: written once, in a frozen model, with everything that interfaces need to know about them.

The command line, the verb's section of a spec, the reference pages and forms are derived from the model; the keywords of
the verb in Python are kept in line with it by a test.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import UnionType
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self, Union, get_args, get_origin

from pydantic import BeforeValidator, Field, PlainSerializer
from pydantic.fields import FieldInfo
from pydantic_core import PydanticCustomError

from louver.schema.validate import OWN, Options

if TYPE_CHECKING:
    from louver.schema.source import SourceOptions

__all__ = ["Described", "Form", "Names", "Orders", "Table", "VerbOptions", "described", "option"]

Names = Annotated[
    tuple[str, ...], BeforeValidator(lambda value: tuple(value) if isinstance(value, list) else value)
]
"""Names of columns: a list in a spec, separated by commas on the command line."""


def _file_or_frame(value: Any) -> Any:
    if isinstance(value, str) or hasattr(value, "__arrow_c_stream__"):
        return value
    raise PydanticCustomError(OWN, "must be a file or a dataframe")


Table = Annotated[
    Any, BeforeValidator(_file_or_frame), PlainSerializer(lambda v: v if isinstance(v, str) else "dataframe")
]
"""A public table: a file, or, in Python, a dataframe."""


def _orders(value: Any) -> Any:
    """Read a list of names as names without values; values are text, like labels."""
    if isinstance(value, list | tuple):
        return dict.fromkeys(value, ())
    if isinstance(value, dict):
        return {
            name: tuple(map(_label, values)) if isinstance(values, list | tuple) else values
            for name, values in value.items()
        }
    return value


def _label(value: Any) -> Any:
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


Orders = Annotated[dict[str, tuple[str, ...]], BeforeValidator(_orders)]
"""Values of columns: a table of lists in a spec, `A=1,2` on the command line, repeated for each column; or just names of columns."""

Form = Literal["flag", "int", "float", "text", "names", "numbers", "pairs", "weights", "orders"]
"""The form of a value on the command line."""


def option(
    default: Any,
    help: str,
    *,
    metavar: str | None = None,
    group: str = "",
    flag: str | None = None,
    file: Literal["one", "each"] | None = None,
    repeated: bool = False,
    **limits: Any,
) -> Any:
    """A field of an options model.

    Parameters
    ----------
    default : object
        Value if the option is not given.
    help : str
        Meaning of the option, in one sentence; the default is added if the sentence does not mention it.
    metavar, group : str
        Placeholder of the value in help texts; the heading under which the option is listed.
    flag : str, optional
        Its name on the command line, if it differs from the field's name with hyphens.
    file : {"one", "each"}, optional
        The value, or each of its values, names a file; in a spec it is relative to the spec.
    repeated : bool
        On the command line the option is given once for each value.
    **limits
        Passed on to `pydantic.Field`.
    """
    details: Any = {"metavar": metavar, "group": group, "flag": flag, "file": file, "repeated": repeated}
    if isinstance(default, dict):
        return Field(default_factory=dict, description=help, json_schema_extra=details, **limits)
    return Field(default=default, description=help, json_schema_extra=details, **limits)


class VerbOptions(Options):
    """Base of the options of a verb.

    Attributes
    ----------
    verb : str
        Name of the verb and of its section in a spec.
    no_source : tuple of str
        Options of sources that do not apply to this verb.
    needs_data : bool
        Whether the verb cannot work without records.
    """

    verb: ClassVar[str]
    no_source: ClassVar[tuple[str, ...]] = ()
    needs_data: ClassVar[bool] = True

    def check(self) -> None:
        """Refuse combinations that contradict one another."""

    def check_source(self, source: SourceOptions) -> None:
        """Refuse a source that does not agree with the options."""

    def with_unit(self, column: str) -> Self:
        """Use the column of units that the spec names (`unit` under [anonymize]), if the verb counts by units."""
        return self


@dataclass(frozen=True, slots=True, kw_only=True)
class Described:
    """One option, in the form that help texts, forms and parsers need."""

    name: str
    flag: str
    help: str
    metavar: str | None
    group: str
    default: Any
    form: Form
    choices: tuple[str, ...]
    file: Literal["one", "each"] | None
    repeated: bool


def described(model: type[Options]) -> tuple[Described, ...]:
    """All options of a model that were written with `option`, in their order.

    Examples
    --------
    >>> class Audit(Options):
    ...     small: int = option(5, "Counts below this are small.", metavar="N")
    >>> [details] = described(Audit)
    >>> details.flag, details.form, details.help
    ('--small', 'int', 'Counts below this are small (default 5).')
    """
    return tuple(
        _describe(name, field)
        for name, field in model.model_fields.items()
        if isinstance(field.json_schema_extra, dict) and "metavar" in field.json_schema_extra
    )


def _describe(name: str, field: FieldInfo) -> Described:
    details: Any = field.json_schema_extra
    default = field.get_default(call_default_factory=True)
    return Described(
        name=name,
        flag=details["flag"] or f"--{name.replace('_', '-')}",
        help=_with_default(field.description or "", default),
        metavar=details["metavar"],
        group=details["group"],
        default=default,
        form=_form(field.annotation),
        choices=_choices(field.annotation),
        file=details["file"],
        repeated=details["repeated"],
    )


def _with_default(help: str, default: Any) -> str:
    is_stated = default is None or default is False or default in ((), {}) or "default" in help
    if is_stated:
        return help
    shown = f"{default:g}" if isinstance(default, float) else default
    return f"{help.removesuffix('.')} (default {shown})."


def _parts(annotation: Any) -> tuple[Any, ...]:
    """The types that a value may have, without None and without annotations."""
    if get_origin(annotation) is Annotated:
        return _parts(get_args(annotation)[0])
    if get_origin(annotation) in (Union, UnionType):
        return tuple(part for arm in get_args(annotation) for part in _parts(arm) if part is not type(None))
    return (annotation,)


def _choices(annotation: Any) -> tuple[str, ...]:
    return tuple(
        choice for part in _parts(annotation) if get_origin(part) is Literal for choice in get_args(part)
    )


def _form(annotation: Any) -> Form:
    parts = _parts(annotation)
    kinds = {bool: "flag", int: "int", float: "float"}
    if len(parts) == 1 and parts[0] in kinds:
        return kinds[parts[0]]  # type: ignore[return-value]
    for part in parts:
        arms = [_parts(arm)[0] for arm in get_args(part) if arm is not Ellipsis]
        if get_origin(part) is tuple:
            return "numbers" if arms[0] is int else "names"
        if get_origin(part) is dict and len(parts) == 1:
            if get_origin(arms[1]) is tuple:
                return "orders"
            return "weights" if arms[1] is float else "pairs"
    return "text"
