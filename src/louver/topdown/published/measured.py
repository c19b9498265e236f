"""From published noisy measurement files to a folder that `estimate` works from, and back to the noise of every region.

The folder holds a spec, the list of leaves with public knowledge about them, the exact values, and one file of measurements. Nothing is
drawn and no ledger is involved: the noise is the publisher's, and louver claims no privacy loss for it.
"""

from __future__ import annotations

import shutil
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from louver._arrays import Floats, Ints
from louver._html import JsonText
from louver._words import counted
from louver.data.scratch import Scratch
from louver.errors import InputError, printable
from louver.privacy.measurements import PublishedBatch, write_published_batches
from louver.release.write import check_out
from louver.run import Run
from louver.topdown.load import read_design
from louver.topdown.measuring.noise_plan import QueryPlan, make_plan
from louver.topdown.measuring.sealing import measurements_path
from louver.topdown.measuring.true_counts import batches_of, write_invariants
from louver.topdown.problem import Design, RegionNoise
from louver.topdown.published.public import NATION, SPEC_FILE, FilesLayout, groups_of, write_public
from louver.topdown.published.read import PublishedLevel, places_of, read_answers, read_published
from louver.topdown.result import INVARIANTS_FILE, MEASUREMENTS_FILE

__all__ = ["ImportedMeasurements", "import_published", "with_published_noise"]

BUREAU = "U.S. Census Bureau"


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedMeasurements(JsonText):
    """The result of an import.

    Parameters
    ----------
    folder : Path
    by : str
        Publisher of the measurements.
    files, answers : int
        Files read, and noisy answers in them.
    regions : mapping of str to int
        Regions of every level.
    left_out : tuple of str
        Content that was not used, in words.
    """

    folder: Path
    by: str
    files: int
    answers: int
    regions: Mapping[str, int]
    left_out: tuple[str, ...] = ()

    @property
    def spec(self) -> Path:
        """The spec that describes them."""
        return self.folder / SPEC_FILE

    def to_dict(self) -> dict[str, Any]:
        """The content of the JSON result; its keys are stable."""
        return {
            "measurements": str(self.folder),
            "spec": str(self.spec),
            "published_by": self.by,
            "files": self.files,
            "answers": self.answers,
            "regions": dict(self.regions),
            "left_out": list(self.left_out),
        }

    def __repr__(self) -> str:
        regions = ", ".join(f"{n:,} {level}" for level, n in self.regions.items())
        lines = [
            f"Imported into {self.folder.name}: {self.answers:,} noisy answers from {counted(self.files, 'file')}, published by {self.by}",
            f"  regions: {regions}",
            "  louver drew none of this noise and claims no privacy loss for it",
            *(f"  left out: {what}" for what in self.left_out),
            f"  next: louver topdown estimate {self.folder.name}/{SPEC_FILE} --measurements {self.folder.name} --out RELEASE",
        ]
        return "\n".join(map(printable, lines))


def import_published(
    root: Path,
    out: Path,
    *,
    by: str = BUREAU,
    states: Sequence[str] = (),
    totals: Path | None = None,
    run: Run | None = None,
) -> ImportedMeasurements:
    """Read a folder in the layout of noisy measurement files, check it, and write what `estimate` works from.

    Parameters
    ----------
    root : Path
        Folder of one product, with a folder for each level.
    out : Path
        Folder to make; it appears whole or not at all.
    by : str
        Publisher of the measurements.
    states : sequence of str
        FIPS codes of the states to read; all by default.
    totals : Path, optional
        Public file with the exact number of people of every state: columns `geocode` and `value`.

    Notes
    -----
    **Privacy**: nothing is measured. **Cost**: the answers of one level and state on disk, a batch in memory, the codes of all regions.
    """
    run = run or Run()
    check_out(out)
    survey = read_published(root, run, states=states, keeps_values=False)
    layout = FilesLayout.of(survey)
    made = Path(tempfile.mkdtemp(dir=out.absolute().parent, prefix=f".{out.name}."))
    try:
        exact = write_public(made, layout, by, totals, run)
        plan = make_plan(read_design(made / SPEC_FILE, run=run))
        run.attend(plan.problem, exact)  # contradictions are refused here
        write_invariants(made / INVARIANTS_FILE, plan, exact)
        with Scratch() as scratch:
            write_published_batches(
                measurements_path(made),
                _batches(root, layout, plan, states, scratch.path, run),
                published_by=by,
                design=plan.design.measured_fingerprint(),
            )
        made.chmod(0o755)
        made.rename(out)
    except BaseException:
        shutil.rmtree(made, ignore_errors=True)
        raise
    return ImportedMeasurements(
        folder=out,
        by=by,
        files=len(survey.files),
        answers=sum(len(rows.region) for level in layout.levels for rows in level.answers),
        regions=dict(zip(plan.design.spine.names, plan.design.spine.sizes, strict=True)),
        left_out=layout.left_out,
    )


# The answers


def _batches(
    root: Path, layout: FilesLayout, plan: QueryPlan, states: Sequence[str], folder: Path, run: Run
) -> Iterator[PublishedBatch]:
    """All answers in the order of the plan: level by level, batch by batch."""
    spine = plan.design.spine
    published = {layout.names[level.name]: level for level in layout.levels}
    for level, batches in enumerate(batches_of(plan)):
        name = spine.names[level]
        if name not in published or not plan.measured[level]:
            continue
        held: list[_Stretch] = []
        stretches = _stretches(root, layout, published[name], plan, level, states, folder, run)
        for start, stop in batches:
            while not held or held[-1].stop < stop:
                held.append(next(stretches))
            held = [one for one in held if one.stop > start]
            for place, measured in enumerate(plan.measured[level]):
                parts = [one.part(place, start, stop) for one in held if one.start < stop]
                yield PublishedBatch(
                    level=name,
                    query=measured.query.name,
                    nodes=spine.codes[level][start:stop],
                    noisy_counts=np.concatenate([values for values, _ in parts]),
                    variances=np.concatenate([variances for _, variances in parts]),
                )


@dataclass(frozen=True, slots=True, eq=False)
class _Stretch:
    """The answers of consecutive regions, in a scratch file."""

    start: int
    stop: int
    values: Ints
    spans: tuple[tuple[int, int], ...]
    variances: Floats

    def part(self, query: int, start: int, stop: int) -> tuple[Ints, Floats]:
        """Answers of a query, with their variances, for those of the regions start to stop that are present."""
        own = slice(max(start, self.start) - self.start, min(stop, self.stop) - self.start)
        return np.array(self.values[own, slice(*self.spans[query])]), self.variances[own, query]


def _stretches(
    root: Path,
    layout: FilesLayout,
    published: PublishedLevel,
    plan: QueryPlan,
    level: int,
    states: Sequence[str],
    folder: Path,
    run: Run,
) -> Iterator[_Stretch]:
    """The answers of a level, state by state if the files are divided that way."""
    spine = plan.design.spine
    codes = pa.array(spine.codes[level], pa.string())
    queries = [measured.query for measured in plan.measured[level]]
    ends = np.cumsum([0, *(query.n_rows for query in queries)])
    spans = tuple(pairwise(ends.tolist()))
    arranged = {
        name: (place, _order(layout, name, plan.design)) for name, place in _places(layout, queries).items()
    }
    for start, stop, own in _parts_of_states(layout, spine.codes[level], spine.names[level], states):
        run.check()
        values = np.memmap(folder / f"answers-{level}", np.int64, "w+", shape=(stop - start, int(ends[-1])))
        variances = np.full((stop - start, len(queries)), np.nan)
        for part in read_answers(root, published.name, run, states=own):
            place, order = arranged[part.name]
            region = places_of(layout.codes(part.codes), codes) - start
            values[region, slice(*spans[place])] = part.values[:, order]
            variances[region, place] = part.variances
        yield _Stretch(start, stop, values, spans, variances)
        del values
        (folder / f"answers-{level}").unlink()


def _parts_of_states(
    layout: FilesLayout, codes: Sequence[str], level: str, states: Sequence[str]
) -> Iterator[tuple[int, int, Sequence[str]]]:
    """Regions of a level that are read together, and the states whose files have them."""
    if not layout.has_branches or level == NATION:
        yield 0, len(codes), states
        return
    firsts = [i for i, code in enumerate(codes) if i == 0 or code[:2] != codes[i - 1][:2]]
    for start, stop in pairwise([*firsts, len(codes)]):
        yield start, stop, [codes[start][:2]]


def _places(layout: FilesLayout, queries: Sequence[Any]) -> dict[str, int]:
    """Position of the files' queries among those of a level."""
    names = [query.name for query in queries]
    return {name: names.index(own) for name, own in layout.queries.items() if own in names}


def _order(layout: FilesLayout, name: str, design: Design) -> Ints:
    """For each row of our query, the position of its value in the files."""
    query = next(query for query in design.queries if query.name == layout.queries[name])
    groups = groups_of(layout.rows[name], layout.axes)
    codes = np.indices([len(axis.labels) for axis in layout.axes]).reshape(len(layout.axes), -1)
    place = np.zeros(codes.shape[1], dtype=np.int64)
    for own, code in zip(groups, codes, strict=True):
        group_of = np.zeros(int(code.max()) + 1, dtype=np.int64)
        for i, labels in enumerate(own):
            group_of[list(labels)] = i
        place = place * len(own) + group_of[code]
    order = np.zeros(query.n_rows, dtype=np.int64)
    order[query.row_of] = place
    return order


def with_published_noise(plan: QueryPlan, folder: Path) -> QueryPlan:
    """The plan with the noise of every region, if a third party published the measurements; otherwise the plan itself."""
    if plan.design.options.published is None:
        return plan
    path = folder / MEASUREMENTS_FILE
    spine = plan.design.spine
    relative = [np.zeros((n, max(1, len(own)))) for n, own in zip(spine.sizes, plan.measured, strict=True)]
    published = plan.design.options.published
    levels = {name: level for level, name in enumerate(spine.names)}
    at: Counter[tuple[int, int]] = Counter()
    try:
        with pq.ParquetFile(path) as file:
            for group in range(file.num_row_groups):
                table = file.read_row_group(group, columns=["level", "query", "variance"])
                table.validate(full=True)
                level = levels[table["level"][0].as_py()]
                names = [measured.query.name for measured in plan.measured[level]]
                place = names.index(table["query"][0].as_py())
                variances = table["variance"].to_numpy()
                first = at[level, place]
                expected = published.variance(spine.names[level], names[place])
                factor = np.where(variances == expected, 1.0, expected / variances)
                relative[level][first : first + len(variances), place] = np.nan_to_num(factor, nan=0.0)
                at[level, place] += len(variances)
    except (OSError, pa.ArrowException, ValueError, KeyError, IndexError):
        message = f"{path.name} was not imported with this spec; give the measurements that belong to it."
        raise InputError(message, file=path.name) from None
    found = []
    for own in relative:
        kinds, kind_of = np.unique(own, axis=0, return_inverse=True)
        found.append(RegionNoise(kinds=kinds, kind_of=kind_of.ravel().astype(np.int32)))
    return replace(plan, by_region=tuple(found))
