"""Draw the pictures of the guides that show results on the sample data: `python docs/pictures.py [NAME...]` writes docs/images."""

from __future__ import annotations

import io
import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
from matplotlib.figure import Figure
from PIL import Image

import louver as lv
from louver.data.samples import write_samples

IMAGES = Path(__file__).absolute().parent / "images"
WARDS, AGES = ["North", "East", "South", "West"], ["<25", "25-44", "45-64", "65+"]
COUNTS = [[20, 50, 10, 3], [8, 19, 22, 15], [17, 32, 12, 11], [2, 24, 9, 18]]
HIDDEN, SECOND, SHOWN = "#c1442d", "#e9a03b", "#eef1f4"
BRANCHES, AREAS = ["Food", "Textiles", "Metal", "Machines", "Transport"], ["North", "East", "South", "West"]
FIRMS = [[9, 4, 7, 5], [3, 6, 2, 8], [5, 7, 1, 6], [4, 5, 9, 3], [8, 2, 6, 4]]


def profile() -> Figure:
    """The columns of the sample of people."""
    return lv.profile("people.csv").plot()


def bounds() -> Figure:
    """What a table of the survey discloses."""
    return lv.bounds(
        "survey.csv", weight="count", rows=["age", "education", "sex"], cols=["hours", "salary"]
    ).plot()


def differencing() -> Figure:
    """The two tables of the samples, put together."""
    return lv.audit(spec="tables.toml").plot()


def anonymize() -> Figure:
    """The people at k = 5."""
    drop = ["weight", "hours", "employment", "occupation"]
    quasi = ["age", "education", "marital", "race", "sex"]
    return lv.anonymize(
        "people.csv", quasi=quasi, sensitive=["income"], identifying=drop, k=5, seconds=2
    ).plot()


def groups() -> Figure:
    """Crashes by number of people; the seed makes the picture repeatable."""
    regions = {"unit": "CASENUM", "regions": ["REGION", "PSU"], "domain": "regions.csv"}
    return lv.groups("crashes.csv", **regions, max_size=20, epsilon=1, seed=1).plot()


def topdown() -> Figure:
    """The county, with a seed for the same reason."""
    return lv.topdown("county.toml", seed=1).plot()


def hiding() -> Figure:
    """A table with totals: small counts, and the further cells to hide."""
    cells = [(w, a, COUNTS[i][j]) for i, w in enumerate(WARDS) for j, a in enumerate(AGES)]
    ward, age, count = zip(*cells, strict=True)
    people = pa.table({"ward": ward, "age": age, "count": count})
    table = {"name": "wards", "by": ["ward", "age"], "totals": True, "below": 5}
    spec = {"attributes": {"ward": {"labels": WARDS}, "age": {"labels": AGES}}}
    [plan] = lv.audit(people, weight="count", spec=spec, tables=[table], hide=True).hide
    colours: dict[tuple[int, int], str] = {}
    texts: dict[tuple[int, int], str] = {}
    for i, row in enumerate([*WARDS, "Total"]):
        for j, col in enumerate([*AGES, "Total"]):
            some = [n for w, a, n in cells if row in (w, "Total") and col in (a, "Total")]
            named = {"ward": row, "age": col}
            is_second = {key: label for key, label in named.items() if label != "Total"} in plan.cells
            colours[i, j] = HIDDEN if 0 < sum(some) < 5 else SECOND if is_second else SHOWN
            texts[i, j] = str(sum(some)) if colours[i, j] == SHOWN else f"({sum(some)})"
    return _grid([*WARDS, "Total"], [*AGES, "Total"], colours, texts)


def protecting() -> Figure:
    """Turnover of made-up firms: primary cells by rules, and the secondary cells that protect them."""
    firms = [
        {"branch": branch, "area": area, "turnover": 10 + (7 * i + 5 * j + 11 * n * n) % 90}
        for i, branch in enumerate(BRANCHES)
        for j, area in enumerate(AREAS)
        for n in range(FIRMS[i][j])
    ]
    table = {"name": "turnover", "by": ["branch", "area"], "value": "turnover"}
    rules = [{"rule": "frequency", "minimum": 3}, {"rule": "dominance", "n": 1, "k": 70}]
    [grid] = lv.protect(pa.Table.from_pylist(firms), tables=[table], rules=rules).grids
    rows, columns = [*BRANCHES, "Total"], [*AREAS, "Total"]
    states = {"primary": HIDDEN, "secondary": SECOND}
    places = {(rows.index(cell.labels[0]), columns.index(cell.labels[1])): cell for cell in grid.cells}
    return _grid(
        rows,
        columns,
        {place: states.get(cell.state, SHOWN) for place, cell in places.items()},
        {place: f"({cell.value})" if cell.state in states else cell.value for place, cell in places.items()},
    )


def _grid(
    rows: list[str],
    columns: list[str],
    colours: dict[tuple[int, int], str],
    texts: dict[tuple[int, int], str],
) -> Figure:
    """A table with coloured cells."""
    figure = Figure(figsize=(6.2, 0.52 * len(rows)), layout="constrained")
    axes = figure.subplots()
    for (i, j), colour in colours.items():
        axes.add_patch(_square(j, i, colour))
        ink = "white" if colour == HIDDEN else "#22313f"
        axes.text(j, i, texts[i, j], ha="center", va="center", color=ink)
    axes.set_xticks(range(len(columns)), columns)
    axes.set_yticks(range(len(rows)), rows)
    axes.xaxis.tick_top()
    axes.set_xlim(-0.55, len(columns) - 0.45)
    axes.set_ylim(len(rows) - 0.45, -0.55)
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    return figure


def _square(x: int, y: int, color: str):
    from matplotlib.patches import Rectangle

    return Rectangle((x - 0.46, y - 0.46), 0.92, 0.92, color=color)


PICTURES: dict[str, Callable[[], Figure]] = {
    "profile": profile,
    "bounds": bounds,
    "audit-tables": differencing,
    "audit-hide": hiding,
    "protect": protecting,
    "anonymize": anonymize,
    "groups": groups,
    "topdown": topdown,
}


def save(figure: Figure, path: Path) -> None:
    """Few colours are enough, and make a small file."""
    drawn = io.BytesIO()
    figure.savefig(drawn, dpi=80, format="png")
    Image.open(drawn).convert("RGB").quantize(64, dither=Image.Dither.NONE).save(path, optimize=True)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        write_samples(Path(folder))
        os.chdir(folder)
        for name in sys.argv[1:] or PICTURES:
            save(PICTURES[name](), IMAGES / f"{name}.png")
