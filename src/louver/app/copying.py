"""What was chosen, as a command and as a call in Python: one function for every page, from the verb's own options model.

What the command line cannot say in an option (merged categories, names with commas) goes to a spec that the command writes first.
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
BY_TIME = "A search that ends by time finds another answer each time; choose rounds under Time for one that is repeated exactly."
END = "END-OF-SPEC"
SAME = "Running it gives the same result."
DRAWN_ANEW = "Running it asks for the same: noise is drawn anew, under a name of its own, and paid for again."


class Repeatable(Protocol):
    """What was done, in words that do it again."""

    @property
    def note(self) -> str:
        """What comes of running it."""

    def texts(self) -> dict[str, str]:
        """The words by the name of their tab."""


@dataclass(frozen=True, slots=True)
class Texts:
    """A command that has no options model, and the same in Python."""

    command: tuple[str, ...]
    python: str
    note: str = SAME

    def texts(self) -> dict[str, str]:
        """Command and Python, by the name of their tab."""
        return {"Command": shlex.join(self.command), "Python": f"import louver as lv\n\n{self.python}"}


def verify_release(path: str) -> Texts:
    """The checks of a release."""
    return Texts(("louver", "verify", _not_an_option(path)), f"print(lv.verify({path!r}))")


def show_ledger(path: str) -> Texts:
    """What a ledger says."""
    python = f"from pathlib import Path\nfrom louver.privacy.ledger import Ledger\nprint(Ledger(Path({path!r})).state())"
    return Texts(("louver", "ledger", "show", _not_an_option(path)), python)


@dataclass(frozen=True, slots=True)
class WithFiles:
    """The same with files that it needs, such as a spec, written first: name -> text, which ends with its last line.

    `first` is a command, and `python` lines, that go before all.
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
        told = self.call.texts()
        written = "".join(f"{_here_document(name, text)}\n" for name, text in self.files.items())
        lines = "".join(
            f"Path({name!r}).write_text({text!r}, encoding='utf-8')\n" for name, text in self.files.items()
        )
        python = f"from pathlib import Path\n\n{lines}\n" if lines else ""
        before = f"{self.first}\n" if self.first else "", f"{self.python}\n\n" if self.python else ""
        return {
            "Command": before[0] + written + told["Command"],
            "Python": before[1] + python + told["Python"],
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One call of a verb.

    Attributes
    ----------
    options : VerbOptions
    data : str or None
        How the data are named.
    source : SourceOptions
    command : str
        The verb on the command line.
    function : str
        The same in Python, below `louver`.
    more : mapping
        What the command takes beside the model, such as `--out`: flag -> value.
    hidden : tuple of str
        Options of the model that the function is not told, for it is what they ask for.
    files : mapping
        Small files that the options name and the call writes first: name -> text.
    note : str
        What comes of running it.
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
        """The command, quoted for a POSIX shell; a spec it needs is written first."""
        flags, spec = [], []
        for told, value in self._given():
            if _fits(told, value):
                flags += list(_flags(told, value))
            else:
                spec.append(f"{told.name} = {toml(value)}")
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
        """The call; values are written as Python has them."""
        given = {told.name: value for told, value in self._given() if told.name not in self.hidden}
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
        """Options that differ from their default, and how the source is read."""
        for model, values in ((type(self.options), self.options), (SourceOptions, self.source)):
            for told in described(model):
                value = getattr(values, told.name)
                if value != told.default and (told.name not in getattr(self.options, "no_source", ())):
                    yield told, value


def _here_document(name: str, text: str) -> str:
    """Shell lines that write a file; the mark of its end is one that no line of it is."""
    end = END
    while end in text.splitlines():
        end += "-"
    return f"cat > {shlex.quote(name)} <<'{end}'\n{text}{end}"


def _fits(told: Described, value: Any) -> bool:
    """Whether the command line can say it."""
    if told.form in ("flag", "int", "float", "numbers", "weights"):
        return True
    if told.form == "names":
        return all(_is_plain(name) for name in value)
    if told.form == "pairs":
        return all(
            _is_plain(name) and "=" not in name and isinstance(one, str) and one
            for name, one in value.items()
        )
    if told.form == "orders":
        return all(
            _is_plain(name) and "=" not in name and all(map(_is_plain, one)) for name, one in value.items()
        )
    return isinstance(value, str) and "\n" not in value


def _is_plain(name: str) -> bool:
    return bool(name) and name == name.strip() and "," not in name and name.isprintable()


def _flags(told: Described, value: Any) -> Iterator[str]:
    if told.form == "flag":
        yield told.flag
    elif told.form in ("names", "numbers"):
        separate = told.repeated
        for text in map(str, value) if separate else [",".join(map(str, value))]:
            yield f"{told.flag}={text}"
    elif told.form == "weights":
        listed = [f"{name}={number!r}" for name, number in value.items()]
        for text in listed if told.repeated else [",".join(listed)]:
            yield f"{told.flag}={text}"
    elif told.form == "pairs":
        yield from (f"{told.flag}={name}={one}" for name, one in value.items())
    elif told.form == "orders":
        yield from (
            f"{told.flag}={name}={','.join(one)}" if one else f"{told.flag}={name}"
            for name, one in value.items()
        )
    else:
        yield f"{told.flag}={value}" if told.flag.startswith("--") else f"{told.flag}{value}"


def _not_an_option(data: str) -> str:
    return f"./{data}" if data.startswith("-") else data


def _listed(value: Any) -> Any:
    """Tuples as lists, all the way down: what people write."""
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
