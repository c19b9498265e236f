"""Outlines of regions from a public GeoJSON file, as paths to be drawn: numbers alone, no map from elsewhere."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from louver._arrays import Floats
from louver.app.regions import WORDS, Regions
from louver.errors import InputError
from louver.run import Run
from louver.schema.validate import decode_text, read_bytes

__all__ = ["MAX_OUTLINES", "Match", "Outlines", "coloured", "matched", "read_outlines"]

MAX_OUTLINES = 30_000_000
"""Bytes of a GeoJSON file."""
MOST_POINTS, MOST_SHAPES, MOST_PROPERTIES, MOST_LETTERS = 2_000_000, 20_000, 40, 200
WIDE, HIGH = 600.0, 560.0
"""The drawing is this large at most."""
APART = 0.4
"""Points closer than this are one: no screen shows them apart."""
CLASSES = 5
Ring = Floats


@dataclass(frozen=True, slots=True)
class Outlines:
    """Shapes that can be drawn.

    Attributes
    ----------
    width, height : float
        Of the drawing.
    paths : list of str
        What SVG draws; numbers and the letters M, L and Z.
    centres : list of (float, float)
    properties : mapping of str to list of str
        What the file says of each shape, by the name of the property; an empty text where it says nothing.
    """

    width: float
    height: float
    paths: list[str]
    centres: list[tuple[float, float]]
    properties: Mapping[str, list[str]]


@dataclass(frozen=True, slots=True)
class Match:
    """Which shapes are which regions: shape -> region, all of one level."""

    level: int
    regions: Mapping[int, int]


def read_outlines(path: str, run: Run | None = None) -> Outlines:
    """Read a GeoJSON file of polygons.

    Raises
    ------
    InputError
        One sentence on why it cannot be drawn.
    """
    features = _features(path)
    shapes = [list(_rings(feature, number)) for number, feature in enumerate(features, start=1)]
    if run is not None:
        run.check()
    if sum(len(ring) for shape in shapes for ring in shape) > MOST_POINTS:
        raise InputError(f"the outlines have more than {MOST_POINTS:,} points; simplify them.")
    width, height, drawn = _projected(shapes)
    paths = ["".join(map(_path, shape)) for shape in drawn]
    centres = [_centre(shape) for shape in drawn]
    return Outlines(width, height, paths, centres, _properties(features))


def _features(path: str) -> list[Mapping[str, Any]]:
    try:
        content = json.loads(decode_text(read_bytes(path), "the file"))
    except (ValueError, RecursionError):  # the parser's own message may quote the file
        content = None
    found = content.get("features") if isinstance(content, dict) else None
    if not isinstance(found, list) or not found or not all(isinstance(one, dict) for one in found):
        raise InputError(
            "this is no GeoJSON file; choose a FeatureCollection with an outline for each region."
        )
    if len(found) > MOST_SHAPES:
        raise InputError(f"there are more than {MOST_SHAPES:,} outlines; choose those of a higher level.")
    return found


def _rings(feature: Mapping[str, Any], number: int) -> Iterator[Ring]:
    """The closed lines of one shape."""
    geometry = feature.get("geometry")
    kind = geometry.get("type") if isinstance(geometry, dict) else None
    if kind not in ("Polygon", "MultiPolygon"):
        raise InputError(
            f"outline {number} is neither a Polygon nor a MultiPolygon; only these are drawn, so leave others out."
        )
    assert isinstance(geometry, dict)
    given: Any = geometry.get("coordinates")
    try:
        for polygon in [given] if kind == "Polygon" else list(given):
            for ring in polygon:
                points = np.array([point[:2] for point in ring], np.float64)
                if points.ndim != 2 or points.shape[1] != 2 or len(points) < 3:
                    raise ValueError
                if not np.isfinite(points).all() or np.abs(points).max() > 1e9:
                    raise ValueError
                yield points
    except (ValueError, TypeError, IndexError, OverflowError, KeyError):
        raise InputError(
            f"outline {number} has coordinates that are no closed line of numbers; correct it, or leave it out."
        ) from None


def _projected(shapes: Sequence[Sequence[Ring]]) -> tuple[float, float, list[list[Ring]]]:
    """Shapes on the drawing: degrees are narrowed by their latitude, north is up."""
    points = [ring for shape in shapes for ring in shape]
    if not points:
        raise InputError("the outlines have no points; choose another file.")
    every = np.concatenate(points)
    is_degrees = np.abs(every[:, 0]).max() <= 360 and np.abs(every[:, 1]).max() <= 90
    squeeze = math.cos(math.radians(float(every[:, 1].mean()))) if is_degrees else 1.0
    squeeze = max(squeeze, 0.05)
    turn = is_degrees and float(np.ptp(every[:, 0])) > 180  # both sides of the date line
    if turn:
        shapes = [[np.column_stack([ring[:, 0] % 360, ring[:, 1]]) for ring in shape] for shape in shapes]
        every = np.concatenate([ring for shape in shapes for ring in shape])
    low, high = every.min(axis=0), every.max(axis=0)
    span = np.maximum((high - low) * (squeeze, 1.0), 1e-9)
    scale = min(WIDE / span[0], HIGH / span[1])
    drawn = [
        [
            np.column_stack([(ring[:, 0] - low[0]) * squeeze * scale, (high[1] - ring[:, 1]) * scale])
            for ring in shape
        ]
        for shape in shapes
    ]
    return float(span[0] * scale), float(span[1] * scale), drawn


def _path(ring: Ring) -> str:
    kept = [ring[0]]
    for point in ring[1:]:
        if abs(point[0] - kept[-1][0]) + abs(point[1] - kept[-1][1]) >= APART:
            kept.append(point)
    return "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in kept) + "Z"


def _centre(shape: Sequence[Ring]) -> tuple[float, float]:
    """The middle of the largest line of a shape."""
    if not shape:
        return 0.0, 0.0
    largest = max(shape, key=lambda ring: float(np.prod(np.ptp(ring, axis=0))))
    low, high = largest.min(axis=0), largest.max(axis=0)
    return float((low[0] + high[0]) / 2), float((low[1] + high[1]) / 2)


def _properties(features: Sequence[Mapping[str, Any]]) -> dict[str, list[str]]:
    """Texts and whole numbers that may name regions, by property."""
    found: dict[str, list[str]] = {}
    for number, feature in enumerate(features):
        told = feature.get("properties")
        told = dict(told) if isinstance(told, dict) else {}
        for name, value in {"id": feature.get("id"), **told}.items():
            is_name = isinstance(value, str | int) and not isinstance(value, bool)
            if not is_name or (name not in found and len(found) >= MOST_PROPERTIES):
                continue
            texts = found.setdefault(str(name)[:MOST_LETTERS], [""] * len(features))
            texts[number] = str(value).strip()[:MOST_LETTERS]
    return found


def matched(outlines: Outlines, regions: Regions, name: str) -> Match:
    """Shapes and regions that have one name: by code, or by a name that is the only one of its level."""
    texts = outlines.properties.get(name, [])
    best = Match(len(regions.levels) - 1, {})
    for level in range(len(regions.levels)):
        places: dict[str, int | None] = {}
        for i, one in enumerate(regions.regions):
            if one.level == level:
                for text in {one.name, one.code, one.code.replace("/", "")}:
                    places[text] = i if text not in places else None
        found = {
            shape: region
            for shape, text in enumerate(texts)
            if text and (region := places.get(text)) is not None
        }
        if len(set(found.values())) > len(set(best.regions.values())):
            best = Match(level, found)
    return best


def coloured(regions: Regions, chosen: Sequence[int], by: str) -> tuple[dict[int, int], list[str]]:
    """The class of each region on the map, lightest first, and what the classes are; "value" or "error"."""
    if by == "error":
        edges = [most for most, _, _ in WORDS]
        told = [f"to ± {100 * most:g} %: {word}" for most, word, _ in WORDS] + ["more: too noisy alone"]
        values = regions.relative[list(chosen)]
        known = {r: v for r, v in zip(chosen, values.tolist(), strict=True) if not math.isnan(v)}
        return {r: int(np.searchsorted(edges, v)) for r, v in known.items()}, told
    counts = {r: regions.regions[r].count for r in chosen}
    least, most = min(counts.values(), default=0), max(counts.values(), default=0)
    cuts = np.quantile(list(counts.values()) or [0], np.arange(1, CLASSES) / CLASSES)
    edges = sorted({int(cut) for cut in cuts if least <= int(cut) < most})
    starts, ends = [least, *(edge + 1 for edge in edges)], [*edges, most]
    told = [f"{a:,} to {b:,}" if a < b else f"{b:,}" for a, b in zip(starts, ends, strict=True)]
    return {r: int(np.searchsorted(edges, v)) for r, v in counts.items()}, told
