"""What somebody careless or hostile may hand in: texts, numbers, bytes, tables and trees, drawn from a seed."""

from __future__ import annotations

import gzip
import io
import json
import random
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

__all__ = [
    "MARKER",
    "NO_PLACE",
    "damaged",
    "odd_csv",
    "odd_json",
    "odd_parquet",
    "odd_text",
    "odd_toml",
    "parquet_bytes",
]

MARKER = "Zyx77Confidential"
"""Stands in the records and nowhere else; no message may repeat it."""

NO_PLACE = "/dev/null/x"
"""The only absolute path: not the device itself, which a verb that replaces it would break."""

TEXTS = (
    "",
    " ",
    "0",
    "-1",
    "1",
    "1e400",
    "-0.0",
    "1e99999999",
    "9" * 30,
    "9" * 5000,
    "1/0",
    "1/3",
    "0.5",
    "nan",
    "inf",
    "NaN",
    "True",
    "None",
    "null",
    "\x1b[31mred\x1b[0m",
    "\x1b]0;title\x07",
    "a\nlouver: done.",
    "a\r\nb",
    "\u202eright to left",
    "\u2028line",
    "tab\there",
    "a\0b",
    "quote\"'`",
    "'; DROP TABLE records; --",
    "$\\frac{1$",
    "$x$",
    "{row}",
    "%s%n",
    "<script>alert(1)</script>",
    "=1+1",
    "../../etc/passwd",
    NO_PLACE,
    "*",
    "?",
    "[a]",
    ".",
    "..",
    "~",
    "-k",
    "--json",
    "@file",
    "é",
    "ﬁ",
    "日本",
    "e\u0301",
    "\ud800",
    "x" * 300,
    "x" * 5000,
    "A,B",
    "A=B",
    "=",
    ",",
    ",,",
    ";",
    "site",
    "SITE",
    "count",
    "level",
    "size",
    "groups",
    "row",
    "records",
)


def odd_text(draw: random.Random) -> str:
    """A text of the kind that breaks programs."""
    if draw.random() < 0.15:
        return "".join(
            chr(draw.choice((draw.randrange(1, 256), draw.randrange(1, 0xD7FF))))
            for _ in range(draw.randrange(12))
        )
    return draw.choice(TEXTS)


def safe_text(draw: random.Random) -> str:
    """The same without what no UTF-8 file holds."""
    return odd_text(draw).encode("utf-8", "replace").decode()


def damaged(draw: random.Random, content: bytes) -> bytes:
    """A file that a disk, a transfer or a person has spoilt."""
    if not content:
        return bytes(draw.randrange(256) for _ in range(draw.randrange(20)))
    at = draw.randrange(len(content))
    ways: list[Callable[[], bytes]] = [
        lambda: b"",
        lambda: content[:at],
        lambda: content[at:],
        lambda: content + content,
        lambda: content[:at] + bytes([draw.randrange(256)]) + content[at + 1 :],
        lambda: content[:at] + bytes(draw.randrange(256) for _ in range(8)) + content[at:],
        lambda: content[:at] + content[draw.randrange(len(content)) :],
        lambda: b"\xff\xfe" + content.decode("latin-1").encode("utf-16-le"),
        lambda: b"\xef\xbb\xbf" + content,
        lambda: content.replace(b"\n", b"\r\n"),
        lambda: content.replace(b"\n", b"\r"),
        lambda: content.replace(b",", b";"),
        lambda: content.replace(b'"', b""),
        lambda: gzip.compress(content),
        lambda: gzip.compress(content)[: max(1, at // 2)],
        lambda: content.replace(content[at : at + 1], b"\0"),
        lambda: bytes(draw.randrange(256) for _ in range(64)),
        lambda: content[:at] + odd_text(draw).encode("utf-8", "surrogatepass") + content[at:],
    ]
    return draw.choice(ways)()


def odd_csv(draw: random.Random, header: list[str], rows: list[list[str]]) -> bytes:
    """A table as CSV, with one thing odd about its names, its values or its shape."""
    header, rows = list(header), [list(row) for row in rows]
    if rows:
        row, place = draw.choice(rows), draw.randrange(len(header))
        ways: list[Callable[[], object]] = [
            lambda: row.__setitem__(slice(place, place + 1), [safe_text(draw)]),
            lambda: row.__setitem__(slice(place, place + 1), [""]),
            lambda: row.clear(),
            lambda: row.append(safe_text(draw)),
            lambda: header.__setitem__(place, safe_text(draw)),
            lambda: header.__setitem__(place, header[0].upper()),
            lambda: header.append("extra"),
            lambda: rows.clear(),
            lambda: rows.__setitem__(slice(None), rows[:1]),
            lambda: rows.__setitem__(slice(None), rows * 40),
            lambda: [other.__setitem__(slice(place, place + 1), [safe_text(draw)]) for other in rows],
            lambda: [other.__setitem__(slice(place, place + 1), [MARKER]) for other in rows],
        ]
        draw.choice(ways)()
    return csv_bytes(header, rows, draw.choice((",", ",", ",", ";", "\t")))


def csv_bytes(header: list[str], rows: list[list[str]], separator: str = ",") -> bytes:
    """Separated text with quotes where they are needed."""

    def field(text: str) -> str:
        return '"' + text.replace('"', '""') + '"' if any(c in text for c in '",;\t\r\n') else text

    return "".join(separator.join(map(field, line)) + "\n" for line in [header, *rows]).encode(
        "utf-8", "replace"
    )


TYPES: tuple[Callable[[int], pa.Array], ...] = (
    lambda n: pa.array([1] * n, pa.int8()),
    lambda n: pa.array([2**63 - 1] * n, pa.int64()),
    lambda n: pa.array([2**64 - 1] * n, pa.uint64()),
    lambda n: pa.array([-1] * n, pa.int64()),
    lambda n: pa.array([0.5, float("nan"), float("inf"), -0.0][:n] + [1.0] * max(0, n - 4), pa.float64()),
    lambda n: pa.array([True] * n),
    lambda n: pa.nulls(n),
    lambda n: pa.nulls(n, pa.string()),
    lambda n: pa.nulls(n, pa.int64()),
    lambda n: pa.array([[1]] * n),
    lambda n: pa.array([[]] * n, pa.list_(pa.int64())),
    lambda n: pa.array([{"a": 1}] * n),
    lambda n: pa.array([b"\xff\xfe"] * n, pa.binary()),
    lambda n: pa.array(["x" * 10] * n, pa.large_string()),
    lambda n: pa.array([0] * n, pa.date32()),
    lambda n: pa.array([0] * n, pa.timestamp("us", "UTC")),
    lambda n: pa.array([0] * n, pa.duration("s")),
    lambda n: pa.array(["a"] * n).dictionary_encode(),
    lambda n: pa.array([""] * n),
    lambda n: pa.array(["\x1b[31m"] * n),
)


def odd_parquet(draw: random.Random, table: pa.Table) -> bytes:
    """A table as Parquet, with one column or its rows not as they should be."""
    names = table.column_names
    place = draw.randrange(len(names))
    ways: list[Callable[[], pa.Table]] = [
        lambda: table.set_column(place, names[place], draw.choice(TYPES)(len(table))),
        lambda: table.set_column(place, names[place], draw.choice(TYPES)(len(table))),
        lambda: table.set_column(place, names[place], draw.choice(TYPES)(len(table))),
        lambda: table.drop_columns([names[place]]),
        lambda: table.rename_columns([*names[:place], safe_text(draw), *names[place + 1 :]]),
        lambda: table.append_column("extra", draw.choice(TYPES)(len(table))),
        lambda: table.append_column(names[place], table.column(place)),
        lambda: table.slice(0, 0),
        lambda: table.slice(0, 1),
        lambda: table.slice(1),
        lambda: pa.concat_tables([table, table]),
        lambda: table.take(pa.array(draw.sample(range(len(table)), len(table)), pa.int64())),
        lambda: table.select(names[::-1]),
        lambda: table.replace_schema_metadata({"louver": odd_json_text(draw)}),
        lambda: table.select([]),
    ]
    return parquet_bytes(draw.choice(ways)())


def parquet_bytes(table: pa.Table) -> bytes:
    sink = io.BytesIO()
    pq.write_table(table, sink)
    return sink.getvalue()


def odd_json(draw: random.Random, tree: Any) -> Any:
    """A tree of JSON, one place of it changed."""
    if isinstance(tree, dict) and tree and draw.random() < 0.9:
        key = draw.choice(list(tree))
        way = draw.random()
        changed = dict(tree)
        if way < 0.7:
            changed[key] = odd_json(draw, tree[key])
        elif way < 0.8:
            del changed[key]
        elif way < 0.9:
            changed[odd_text(draw)] = changed.pop(key)
        else:
            changed[odd_text(draw)] = odd_value(draw)
        return changed
    if isinstance(tree, list) and tree and draw.random() < 0.9:
        at = draw.randrange(len(tree))
        way = draw.random()
        if way < 0.7:
            return [*tree[:at], odd_json(draw, tree[at]), *tree[at + 1 :]]
        return [*tree[:at], *tree[at + 1 :]] if way < 0.85 else [*tree, draw.choice(tree)]
    return odd_value(draw)


def odd_value(draw: random.Random) -> Any:
    """A value of a type or size that nobody expects."""
    return draw.choice(
        (
            None,
            True,
            False,
            0,
            -5,
            1,
            10**30,
            0.5,
            -1e308,
            float("inf"),
            float("nan"),
            [],
            {},
            [[]],
            [1, "a", None],
            {"a": {"b": []}},
            odd_text(draw),
            odd_text(draw),
            nested(draw.choice((50, 3000))),
        )
    )


def nested(depth: int) -> Any:
    tree: Any = 1
    for _ in range(depth):
        tree = [tree]
    return tree


def odd_json_text(draw: random.Random) -> str:
    return draw.choice(
        ("", "{", "[]", "1", '{"a":', "[" * 100_000, '{"format": 1}', "\\ud800", "NaN", '{"a":1,"a":2}')
    )


def odd_toml(draw: random.Random, text: str) -> bytes:
    """A TOML file with a line left out, doubled or spoilt, a value replaced, or something no parser takes."""
    lines = text.splitlines()
    at = draw.randrange(len(lines)) if lines else 0
    ways: list[Callable[[], object]] = [
        lambda: lines.pop(at),
        lambda: lines.insert(at, lines[at]),
        lambda: lines.insert(at, f"{json.dumps(safe_text(draw))} = {toml_value(draw)}"),
        lambda: lines.__setitem__(at, _with_value(draw, lines[at])),
        lambda: lines.__setitem__(at, _with_value(draw, lines[at])),
        lambda: lines.__setitem__(at, _with_value(draw, lines[at])),
        lambda: lines.__setitem__(at, _with_value(draw, lines[at])),
        lambda: lines.insert(at, safe_text(draw)),
        lambda: lines.insert(
            at, f"[{draw.choice(('a', 'source', 'bounds', 'attributes.age', '[known]', 'topdown'))}]"
        ),
    ]
    if lines:
        draw.choice(ways)()
    content = "\n".join(lines).encode("utf-8", "replace") + b"\n"
    return damaged(draw, content) if draw.random() < 0.15 else content


def _with_value(draw: random.Random, line: str) -> str:
    key, equals, _ = line.partition(" = ")
    return f"{key} = {toml_value(draw)}" if equals else line + draw.choice(("]", "#", " = 1", "\0"))


def toml_value(draw: random.Random) -> str:
    """A value as TOML writes it."""
    return draw.choice(
        (
            "0",
            "-1",
            "1",
            "2.5",
            "inf",
            "nan",
            "true",
            '""',
            '"a"',
            "[]",
            "{}",
            "[1, 2]",
            '["a", "b"]',
            '["a", 1]',
            '{ a = "b" }',
            "1979-05-27",
            "07:32:00",
            "99999999999999999999",
            "9" * 5000,
            "1e99999999",
            "[" * 2000 + "]" * 2000,
            json.dumps(safe_text(draw)),
            json.dumps(safe_text(draw)),
            json.dumps([safe_text(draw), safe_text(draw)]),
        )
    )
