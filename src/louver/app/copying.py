"""The user's choices as a command and as a Python call: one function for every page, based on the verb's own options model.

What the command line cannot express in an option (merged categories, names with commas) goes to a spec that the command writes first.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from pprint import pformat
from typing import Any, Protocol

from louver.schema.options import Described, VerbOptions, described
from louver.schema.source import SourceOptions
from louver.schema.validate import toml_text

__all__ = [
    "BY_TIME",
    "DRAWN_ANEW",
    "SAME",
    "Call",
    "Repeatable",
    "Texts",
    "WithFiles",
    "show_ledger",
    "toml",
    "verify_release",
]

SPEC = "louver-explore.toml"
BY_TIME = "A search with a time limit finds a different answer each time; choose rounds under Time to repeat a search exactly."
END = "END-OF-SPEC"
SAME = "Running it gives the same result."
DRAWN_ANEW = "Running it makes the same request: new noise is drawn, under a new name, and paid for again."


class Repeatable(Protocol):
    """An action as code that repeats it."""

    @property
    def note(self) -> str:
        """The effect of running it."""

    def texts(self) -> dict[str, str]:
        """The code for each tab, by tab name."""


@dataclass(frozen=True, slots=True)
class Texts:
    """A command without an options model, and its Python equivalent."""

    command: tuple[str, ...]
    python: str
    note: str = SAME

    def texts(self) -> dict[str, str]:
        """Command and Python, by the name of their tab."""
        return {"Command": shlex.join(self.command), "Python": f"import louver as lv\n\n{self.python}"}


def verify_release(path: str, *, skip_report: bool = False, accept_strings: int = 0) -> Texts:
    """Verification of a release."""
    command = ["louver", "verify", _not_an_option(path)]
    given = [repr(path)]
    if skip_report:
        command.append("--skip-report")
        given.append("skip_report=True")
    if accept_strings:
        command += ["--accept-strings", str(accept_strings)]
        given.append(f"{accept_strings=}")
    return Texts(tuple(command), f"print(lv.verify({', '.join(given)}))")


def show_ledger(path: str) -> Texts:
    """The state of a ledger."""
    python = f"from pathlib import Path\nfrom louver.privacy.ledger import Ledger\nprint(Ledger(Path({path!r})).state())"
    return Texts(("louver", "ledger", "show", _not_an_option(path)), python)


@dataclass(frozen=True, slots=True)
class WithFiles:
    """The same, after writing the files that it needs, such as a spec: name -> text, which ends with its last line.

    `first` is a shell command and `python` are Python lines that precede everything else.
    """

    call: Repeatable
    files: Mapping[str, str]
    first: str = ""
    python: str = ""

    @property
    def note(self) -> str:
        return self.call.note

    def texts(self) -> dict[str, str]:
        """Command and Python, by the name of their tab."""
        content = self.call.texts()
        written = "".join(f"{_here_document(name, text)}\n" for name, text in self.files.items())
        lines = "".join(
            f"Path({name!r}).write_text({text!r}, encoding='utf-8')\n" for name, text in self.files.items()
        )
        python = f"from pathlib import Path\n\n{lines}\n" if lines else ""
        before = f"{self.first}\n" if self.first else "", f"{self.python}\n\n" if self.python else ""
        return {
            "Command": before[0] + written + content["Command"],
            "Python": before[1] + python + content["Python"],
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One call of a verb.

    Attributes
    ----------
    options : VerbOptions
    data : str or None
        The data, as the code refers to them.
    source : SourceOptions
    command : str
        The verb on the command line.
    function : str
        The same in Python, below `louver`.
    more : mapping
        Options of the command that are not in the model, such as `--out`: flag -> value.
    hidden : tuple of str
        Options of the model that are not passed to the function because the choice of function implies them.
    files : mapping
        Small files that the options refer to and that the code writes first: name -> text.
    note : str
        The effect of running it.
    """

    options: VerbOptions
    data: str | None
    source: SourceOptions
    command: str
    function: str
    more: Mapping[str, str] | None = None
    hidden: tuple[str, ...] = ()
    files: Mapping[str, str] | None = None
    note: str = SAME

    def texts(self) -> dict[str, str]:
        """Command and Python, by the name of their tab."""
        return {"Command": self.shell(), "Python": self.python()}

    def shell(self) -> str:
        """The command, quoted for a POSIX shell; any spec that it needs is written first."""
        flags, spec = [], []
        for content, value in self._given():
            if _fits(content, value):
                flags += list(_flags(content, value))
            else:
                spec.append(f"{content.name} = {toml(value)}")
        words = ["louver", *self.command.split()]
        words += [] if self.data is None else [_not_an_option(self.data)]
        words += [*flags, *([f"--spec={SPEC}"] if spec else [])]
        words += [f"{flag}={value}" for flag, value in (self.more or {}).items()]
        files = dict(self.files or {})
        if spec:
            files[SPEC] = "\n".join([f"[{self.options.verb}]", *spec, ""])
        written = [_here_document(name, text) for name, text in files.items()]
        return "\n".join([*written, shlex.join(words)])

    def python(self) -> str:
        """The call; values are written as Python literals."""
        given = {content.name: value for content, value in self._given() if content.name not in self.hidden}
        given |= {
            flag.removeprefix("--").replace("-", "_"): value for flag, value in (self.more or {}).items()
        }
        lines = [] if self.data is None else [f"    {self.data!r},"]
        for name, value in given.items():
            shown = pformat(_listed(value), width=96, sort_dicts=False).replace(
                "\n", "\n    " + " " * (len(name) + 1)
            )
            lines.append(f"    {name}={shown},")
        inside = "\n".join(lines)
        written = [
            f"Path({name!r}).write_text({text!r}, encoding='utf-8')\n"
            for name, text in (self.files or {}).items()
        ]
        head = (
            ["from pathlib import Path\n", "import louver as lv\n", *written]
            if written
            else ["import louver as lv\n"]
        )
        return "\n".join([*head, f"result = lv.{self.function}(\n{inside}\n)\nprint(result)"])

    def _given(self) -> Iterator[tuple[Described, Any]]:
        """Options that differ from their defaults, and how the source is read."""
        for model, values in ((type(self.options), self.options), (SourceOptions, self.source)):
            for content in described(model):
                value = getattr(values, content.name)
                if value != content.default and (content.name not in getattr(self.options, "no_source", ())):
                    yield content, value


def _here_document(name: str, text: str) -> str:
    """Shell lines that write a file; the end marker differs from every line of the file."""
    end = END
    while end in text.splitlines():
        end += "-"
    return f"cat > {shlex.quote(name)} <<'{end}'\n{text}{end}"


def _fits(content: Described, value: Any) -> bool:
    """Whether the command line can express it."""
    if content.form in ("flag", "int", "float", "numbers", "weights"):
        return True
    if content.form == "names":
        return all(_is_plain(name) for name in value)
    if content.form == "pairs":
        return all(
            _is_plain(name) and "=" not in name and isinstance(one, str) and one
            for name, one in value.items()
        )
    if content.form == "orders":
        return all(
            _is_plain(name) and "=" not in name and all(map(_is_plain, one)) for name, one in value.items()
        )
    return isinstance(value, str) and "\n" not in value


def _is_plain(name: str) -> bool:
    return bool(name) and name == name.strip() and "," not in name and name.isprintable()


def _flags(content: Described, value: Any) -> Iterator[str]:
    if content.form == "flag":
        yield content.flag
    elif content.form in ("names", "numbers"):
        separate = content.repeated
        for text in map(str, value) if separate else [",".join(map(str, value))]:
            yield f"{content.flag}={text}"
    elif content.form == "weights":
        listed = [f"{name}={number!r}" for name, number in value.items()]
        for text in listed if content.repeated else [",".join(listed)]:
            yield f"{content.flag}={text}"
    elif content.form == "pairs":
        yield from (f"{content.flag}={name}={one}" for name, one in value.items())
    elif content.form == "orders":
        yield from (
            f"{content.flag}={name}={','.join(one)}" if one else f"{content.flag}={name}"
            for name, one in value.items()
        )
    else:
        yield f"{content.flag}={value}" if content.flag.startswith("--") else f"{content.flag}{value}"


def _not_an_option(data: str) -> str:
    return f"./{data}" if data.startswith("-") else data


def _listed(value: Any) -> Any:
    """Tuples converted to lists at every depth, as users write them."""
    if isinstance(value, Mapping):
        return {key: _listed(below) for key, below in value.items()}
    if isinstance(value, list | tuple):
        return [_listed(below) for below in value]
    return str(value) if isinstance(value, Path) else value


def toml(value: Any) -> str:
    """A value in TOML.

    Examples
    --------
    >>> toml({"no degree": ["<HS", "HS"], "n": 3})
    '{ "no degree" = ["<HS", "HS"], "n" = 3 }'
    """
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Mapping):
        inside = ", ".join(f"{toml_text(str(key))} = {toml(below)}" for key, below in value.items())
        return "{ " + inside + " }"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(toml, value))}]"
    return toml_text(value) if isinstance(value, str) else repr(value)
