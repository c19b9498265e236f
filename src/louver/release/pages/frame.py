"""The frame every page shares: one HTML file with its styles and figures embedded."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from html import escape

from louver._html import html_table, number
from louver._verdict import Level

__all__ = ["answers", "facts", "figure", "page", "sentence", "table", "tiles", "verdict_line"]

LONG, PART, NARROW = 40, 20, 44
"""Tables with more lines than the first number, each of at most as many characters as the last, are split into parts of PART lines."""

OPTION = re.compile(r"(?<![\w-])(--[a-z][a-z-]*)")

STYLE = """
:root { --ink: #22313f; --muted: #5d6b78; --line: #dde3e9; --safe: #2a6f97; --risk: #c1442d; --paper: #fff; }
* { box-sizing: border-box; }
body { margin: 0; background: #f4f6f8; color: var(--ink); font: 15px/1.55 system-ui, -apple-system, "Segoe UI",
       Roboto, "Helvetica Neue", Arial, sans-serif; }
main { max-width: 1060px; margin: 0 auto; overflow-wrap: anywhere; padding: 32px 28px 56px; background: var(--paper); min-height: 100vh; }
h1 { font-size: 26px; margin: 0 0 4px; } h2 { font-size: 19px; margin: 36px 0 8px; }
p { max-width: 78ch; } .sub { color: var(--muted); margin: 0 0 20px; }
.verdict { border-left: 5px solid var(--safe); background: #eef5f9; padding: 12px 16px; margin: 18px 0; font-size: 17px; }
.verdict.care { border-color: #b07d1a; background: #fbf1dc; }
.verdict.risk { border-color: var(--risk); background: #fbeeeb; }
.answers { display: grid; grid-template-columns: repeat(auto-fit, minmax(380px, 1fr)); gap: 10px 32px; margin: 16px 0; }
.answers dt { color: var(--muted); font-weight: 600; font-size: 13.5px; } .answers dd { margin: 0; }
.tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(150px, 1fr)); gap: 12px; margin: 18px 0; }
.tile { border: 1px solid var(--line); border-radius: 6px; padding: 10px 14px; }
.tile b { display: block; font-size: 24px; font-variant-numeric: tabular-nums; }
.tile span { color: var(--muted); font-size: 13px; line-height: 1.3; display: block; }
.tile.risk b { color: var(--risk); }
.scroll { overflow-x: auto; } .many { columns: 3 300px; } .many table { break-inside: avoid; margin: 0 0 14px; }
table { border-collapse: collapse; font-size: 13.5px; margin: 8px 0 4px; }
.scroll table { width: max-content; max-width: 100%; }
.scroll td, .scroll th { max-width: 36ch; overflow-wrap: break-word; }
th, td { text-align: left; padding: 5px 12px 5px 0; border-bottom: 1px solid var(--line); vertical-align: top; }
th { color: var(--muted); font-weight: 600; }
.facts td:first-child { color: var(--muted); white-space: nowrap; }
td.number, th.number { text-align: right; font-variant-numeric: tabular-nums; }
figure { margin: 14px 0; } figure svg { display: block; width: 100%; min-width: 700px; height: auto; }
figcaption { color: var(--muted); font-size: 13.5px; margin-top: 4px; }
footer { margin-top: 40px; color: var(--muted); font-size: 13px; border-top: 1px solid var(--line); padding-top: 12px; }
@media (max-width: 600px) { .answers { grid-template-columns: 1fr; } main { padding: 20px 16px 40px; } h1 { font-size: 22px; } .verdict {
font-size: 15px; } } code { font-size: 0.93em; white-space: nowrap; }
@page { size: A4; margin: 14mm 13mm; }
@media print {
  body { background: #fff; font-size: 11.5px; } main { max-width: none; min-height: 0; padding: 0; }
  h1 { font-size: 20px; } h2 { font-size: 15px; margin: 22px 0 6px; } .verdict { font-size: 13px; } p { max-width: none; }
  .answers { grid-template-columns: 1fr 1fr; gap: 6px 22px; } .answers dt { font-size: 10px; }
  .tiles { grid-template-columns: repeat(auto-fit, minmax(105px, 1fr)); gap: 8px; }
  .tile { padding: 7px 9px; } .tile b { font-size: 17px; } .tile span { font-size: 10px; }
  .many { columns: 3 200px; } .scroll { overflow: visible; } .scroll table { width: auto; } figure svg { min-width: 0; }
  table { font-size: 10px; } th, td { padding: 2.5px 10px 2.5px 0; overflow-wrap: break-word; }
  figcaption, footer { font-size: 10px; } footer { margin-top: 16px; padding-top: 6px; break-before: avoid; }
  h2, h2 + p, .tiles, thead { break-after: avoid; } figure, tr, .verdict, .tile { break-inside: avoid; }
  .tile, .verdict { print-color-adjust: exact; -webkit-print-color-adjust: exact; }
}
"""


def page(title: str, subtitle: str, sections: Iterable[str], footer: str) -> str:
    """A whole HTML document; `title`, `subtitle` and `footer` are plain text, `sections` are HTML."""
    body = "\n".join(sections)
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<main>\n"
        f'<h1>{escape(title)}</h1>\n<p class="sub">{escape(subtitle)}</p>\n{body}\n'
        f"<footer>{escape(footer)}</footer>\n</main>\n</body>\n</html>\n"
    )


def sentence(text: str) -> str:
    """Plain text as HTML; options are set as code, so that no line break falls inside one."""
    return OPTION.sub(r"<code>\1</code>", escape(text))


def verdict_line(level: Level, html: str) -> str:
    """A conclusion, coloured by its level."""
    kind = {Level.OK: "verdict", Level.CARE: "verdict care", Level.STOP: "verdict risk"}[level]
    return f'<p class="{kind}">{html}</p>'


def answers(*, released: str, promised: str, accuracy: str, check: str) -> str:
    """Answers to a reader's first questions, in plain words."""
    questions = {
        "What was released": released,
        "What is promised": promised,
        "What it costs in accuracy": accuracy,
        "What to check": check,
    }
    entries = "".join(
        f"<div><dt>{name}</dt><dd>{sentence(text)}</dd></div>" for name, text in questions.items()
    )
    return f'<dl class="answers">{entries}</dl>'


def tiles(entries: Sequence[tuple[int | str | None, str, bool]]) -> str:
    """Big numbers with a caption; True marks a risk. A number that is None is not shown."""
    cells = [
        f'<div class="tile{" risk" if is_risk else ""}"><b>{escape(number(value))}</b><span>{escape(text)}</span></div>'
        for value, text, is_risk in entries
        if value is not None
    ]
    return f'<div class="tiles">{"".join(cells)}</div>'


def table(header: Sequence[str], lines: Iterable[Sequence[object]]) -> str:
    """A table with numbers flush right. A long, narrow table is split into parts that stand side by side."""
    rows = [list(line) for line in lines]
    if len(rows) > LONG and _width([header, *rows]) <= NARROW:
        parts = [html_table(header, rows[i : i + PART]) for i in range(0, len(rows), PART)]
        return f'<div class="many">{"".join(parts)}</div>'
    return f'<div class="scroll">{html_table(header, rows)}</div>'


def _width(rows: Sequence[Sequence[object]]) -> int:
    """Width of a line of the table in characters."""
    return sum(max(len(number(value)) for value in column) + 2 for column in zip(*rows, strict=True))


def facts(entries: Sequence[tuple[str, str]]) -> str:
    """A list of what was assumed or used."""
    lines = "".join(f"<tr><td>{escape(name)}</td><td>{escape(text)}</td></tr>\n" for name, text in entries)
    return f'<table class="facts"><tbody>\n{lines}</tbody></table>'


def figure(drawing: str, caption: str) -> str:
    """A drawing as SVG with its caption below."""
    drawn = drawing.replace("<svg ", f'<svg role="img" aria-label="{escape(caption)}" ', 1)
    return f'<figure><div class="scroll">{drawn}</div><figcaption>{escape(caption)}</figcaption></figure>'
