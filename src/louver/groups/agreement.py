"""The constraints on the sizes of a release: the people of a TopDown release, leaf by leaf, and bounds on numbers of groups.

All of this is public. Whether groups of the requested sizes can contain the people of a leaf is decided here, exactly, before the records
are opened: P people make groups of 1 to S members if and only if there are at least P / S groups and at most P.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from louver._arrays import Bools, Ints
from louver._words import counted
from louver.data.read import open_source
from louver.data.regions import SEPARATOR, RegionTree
from louver.data.tabulate import read_text
from louver.data.units import UnitCells
from louver.errors import InputError, printable
from louver.groups.options import GroupsOptions
from louver.optim.agreement import HousedPeople
from louver.privacy.ledger import Ledger
from louver.release.first import (
    FIRST_MANIFEST,
    FIRST_MICRODATA,
    MEASUREMENTS_FILE,
    MICRODATA_FILE,
    has_paid,
    read_first_manifest,
    topdown_promise,
)
from louver.release.manifest import MANIFEST, Manifest, is_plain, read_content
from louver.release.write import ReleaseWriter
from louver.run import Run

__all__ = ["BOUNDS_FILE", "Agreement", "by_code", "read_agreement"]

BOUNDS_FILE = "data/bounds.parquet"
LEAST, MOST = "least_groups", "most_groups"

UNBOUNDED = 1 << 40
"""A number of groups larger than any region can have."""

WHOLE = "^0*[0-9]{1,12}$"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class GroupBounds:
    """Minimum and maximum number of groups of every leaf, as stated in the domain."""

    least: Ints
    most: Ints


@dataclass(frozen=True, kw_only=True, eq=False)
class Agreement:
    """The relevant parts of the release with which sizes agree.

    Attributes
    ----------
    path : Path
    manifest : Manifest
    digest : str
        The manifest's own hash, which covers all its files.
    regions : RegionTree
    prefixes : tuple of int or None
        Number of characters of a leaf's code that identify its region on each level, if regions are prefixes.
    members, heads : mapping of str to labels
    people : ndarray of int64, shape (leaves,)
        People of each leaf who are in groups.
    bounds : GroupBounds or None
    least, most : ndarray of int64, shape (leaves,)
        Bounds on the groups of each leaf that its people allow.
    moved : int
        Number of leaves for which the failsafe moved a bound.
    max_size : int
    """

    path: Path
    manifest: Manifest
    digest: str
    regions: RegionTree
    prefixes: tuple[int, ...] | None
    members: Mapping[str, Sequence[str]]
    heads: Mapping[str, Sequence[str]]
    people: Ints
    bounds: GroupBounds | None
    least: Ints
    most: Ints
    moved: int
    max_size: int

    @cached_property
    def known(self) -> HousedPeople:
        """People and bounds of all regions."""
        return HousedPeople.of_leaves(self.regions.tree, self.people, self.least, self.most, self.max_size)

    def placed(self, counted: UnitCells) -> UnitCells:
        """Units counted by leaf code, assigned to the regions that prefixes of the codes identify."""
        return counted if self.prefixes is None else by_code(counted, self.prefixes)

    def check_payer(self, ledger: Ledger) -> None:
        """Refuse a ledger that did not pay for the release: their joint loss would be recorded nowhere."""
        if not has_paid(ledger, self.manifest):
            raise InputError(
                f"this ledger did not pay for {self.path.name}; name the one that did with --ledger.",
                option="--ledger",
            )

    def promise(self, file: str) -> dict[str, Any]:
        """What `verify` recomputes from the published files."""
        about = topdown_promise(self.manifest)
        assert about is not None
        return {
            "promise": "agreement",
            "file": file,
            "first": FIRST_MICRODATA,
            "first_manifest": FIRST_MANIFEST,
            "first_digest": self.digest,
            "regions": list(about["regions"]),
            "attributes": list(about["attributes"]),
            "prefixes": None if self.prefixes is None else list(self.prefixes),
            "members": {name: list(labels) for name, labels in self.members.items()},
            "heads": {name: list(labels) for name, labels in self.heads.items()},
            "bounds": None if self.bounds is None else BOUNDS_FILE,
            "largest": self.max_size,
            "moved": self.moved,
        }

    def write(self, writer: ReleaseWriter) -> None:
        """Copy the first release's people and manifest, and write the bounds."""
        (writer.path(FIRST_MANIFEST)).write_bytes((self.path / MANIFEST).read_bytes())
        shutil.copyfile(self.path / MICRODATA_FILE, writer.path(FIRST_MICRODATA))
        if self.bounds is not None:
            names = self.regions.names[1:]
            labels = self.regions.leaf_labels
            columns = {name: pa.array([one[k] for one in labels]) for k, name in enumerate(names)}
            columns |= {LEAST: pa.array(self.bounds.least), MOST: pa.array(self.bounds.most)}
            pq.write_table(pa.table(columns), writer.path(BOUNDS_FILE), compression="zstd")


def by_code(counted: UnitCells, prefixes: Sequence[int]) -> UnitCells:
    """Units by code as units by the regions that prefixes of the codes identify."""
    return UnitCells(cells={(_path(leaf[0], prefixes), size): n for (leaf, size), n in counted.cells.items()})


def read_agreement(options: GroupsOptions, *, run: Run) -> Agreement:
    """Verify the release, read the list of regions and its bounds, count people, and decide whether groups can contain them.

    Raises
    ------
    InputError
        One sentence that names the option.
    """
    assert options.agrees_with is not None and options.max_size is not None
    path = Path(options.agrees_with)
    if not is_plain(path / MANIFEST):
        raise InputError("option --agrees-with names no release directory.", option="--agrees-with")
    manifest = read_first_manifest(
        path, "agreed with", "--agrees-with", seeded=options.seed is not None, run=run
    )
    about = topdown_promise(manifest)
    if about is None:
        raise InputError(f"{path.name} is not a TopDown release; name one.", option="--agrees-with")
    if any(one.get("promise") == "extension" for one in manifest.promises):
        message = f"{path.name} is an extension; agree with the release that it extends."
        raise InputError(message, option="--agrees-with")
    if about.get("spine") is not None:
        message = (
            f"{path.name} measured regions arranged for areas; agree with a release of the geographic ones."
        )
        raise InputError(message, option="--agrees-with")
    if not about["regions"]:
        raise InputError(
            f"{path.name} has no regions; agree with a release that does.", option="--agrees-with"
        )
    _check_neighbours(options, manifest, path.name)
    for flag, cells in (("--members", options.members), ("--heads", options.heads)):
        _check_cells(cells, about["attributes"], flag, path.name)
    prefixes = _prefixes(options, about, path.name)
    regions, bounds = _read_domain(options, prefixes, run)
    _check_leaves(regions, prefixes, about, path)
    people, n_heads = _count(options, regions, prefixes, about, path)
    heads = n_heads if options.heads else None
    least, most, moved = _possible(options, regions, people, heads, bounds, path.name)
    return Agreement(
        path=path,
        manifest=manifest,
        digest=str(read_content(path)["digest"]),
        regions=regions,
        prefixes=prefixes,
        members=options.members,
        heads=options.heads,
        people=people,
        bounds=bounds,
        least=least,
        most=most,
        moved=moved,
        max_size=options.max_size,
    )


def _check_neighbours(options: GroupsOptions, manifest: Manifest, name: str) -> None:
    """Require that both releases protect the same neighbours, and that the invariants of the first leave any neighbours."""
    relation = manifest.privacy.get("neighbours")
    if relation != options.neighbours:
        message = f"{name} protects neighbours {relation}; give --neighbours {relation}, so that both releases protect the same."
        raise InputError(message, option="--neighbours")
    if relation == "add-remove-record" and manifest.privacy.get("invariants"):
        message = (
            f"{name} publishes counts exactly, so no person can be added or removed and nothing would be protected; agree with a "
            "release for change-record."
        )
        raise InputError(message, option="--agrees-with")


def _check_cells(
    cells: Mapping[str, Sequence[str]], attributes: Mapping[str, Sequence[str]], flag: str, name: str
) -> None:
    for attribute, labels in cells.items():
        if attribute not in attributes:
            raise InputError(
                f"option {flag} names an attribute that {name} does not have.", column=attribute, option=flag
            )
        for position, label in enumerate(labels, start=1):
            if label not in attributes[attribute]:
                message = f'option {flag}: {name} does not have label {position} for "{attribute}".'
                raise InputError(message, column=attribute, option=flag)


def _prefixes(options: GroupsOptions, about: Mapping[str, Any], name: str) -> tuple[int, ...] | None:
    """The prefix lengths of the requested regions; None if regions are columns."""
    if about["prefixes"] is None:
        if options.code is not None:
            raise InputError(
                f"option --code: the regions of {name} are columns, not prefixes; leave it out.",
                option="--code",
            )
        if list(options.regions) not in (list(about["regions"]), list(about["regions"][1:])):
            listed = ",".join(about["regions"])
            message = (
                f"option --regions must name the regions of {name}: {listed}, or the same without the first."
            )
            raise InputError(message, option="--regions")
        return None
    if options.code is None:
        column = about["regions"][0]
        message = f"the regions of {name} are prefixes of codes; name their column with --code {column}, and levels with --regions."
        raise InputError(message, option="--code")
    length = dict(zip(about["levels"], about["prefixes"], strict=True))
    known = [level for level in about["levels"] if length[level] > 0]
    requested = list(options.regions)
    if [level for level in known if level in requested] != requested or requested[-1] != known[-1]:
        message = f"option --regions must name levels of {name}, coarsest first and with the last: some of {', '.join(known)}."
        raise InputError(message, option="--regions")
    return tuple(length[level] for level in requested)


def _read_domain(
    options: GroupsOptions, prefixes: tuple[int, ...] | None, run: Run
) -> tuple[RegionTree, GroupBounds | None]:
    """The public list of regions, and the bounds in it."""
    assert options.domain is not None
    columns = list(options.regions) if prefixes is None else [str(options.code)]
    given = ((LEAST, options.least_groups), (MOST, options.most_groups))
    bounded = {key: column for key, column in given if column is not None}
    wanted = [*columns, *bounded.values()]
    with open_source(options.domain, run=run) as source:
        rows, name = read_text(source, wanted), source.name
    for number, row in enumerate(rows, 1):
        if None in row:
            column = wanted[row.index(None)]
            message = f'column "{column}" in {name} has no value on row {number}; give every row one.'
            raise InputError(message, file=name, column=column, row=number)
    listed = [tuple(map(str, row[: len(columns)])) for row in rows]
    leaves = listed if prefixes is None else [_path(code, prefixes) for (code,) in listed]
    regions = RegionTree.from_leaves(options.regions, leaves)
    if wanted == columns:
        return regions, None
    place = {leaf: at for at, leaf in enumerate(leaves)}
    order = np.array([place[leaf] for leaf in regions.leaf_labels])
    found = {LEAST: np.zeros(len(rows), np.int64), MOST: np.full(len(rows), UNBOUNDED)}
    for at, (key, column) in enumerate(bounded.items(), start=len(columns)):
        found[key] = _whole_numbers([str(row[at]) for row in rows], column, name)
    odd = np.flatnonzero(found[LEAST] > found[MOST])
    if len(odd):
        number = int(odd[0]) + 1
        message = f"{name} has a minimum number of groups above the maximum on row {number}; correct it."
        raise InputError(message, file=name, row=number)
    return regions, GroupBounds(least=found[LEAST][order], most=found[MOST][order])


def _whole_numbers(texts: Sequence[str], column: str, name: str) -> Ints:
    is_whole = pc.match_substring_regex(pa.array(texts), WHOLE)
    if not pc.all(is_whole).as_py():
        row = pc.index(is_whole, False).as_py() + 1
        message = (
            f'column "{column}" in {name} is not a whole number of zero or more on row {row}; correct it.'
        )
        raise InputError(message, file=name, column=column, row=row)
    return np.array([min(int(text), UNBOUNDED) for text in texts], dtype=np.int64)


def _path(code: str, prefixes: Sequence[int]) -> tuple[str, ...]:
    """The regions of a code. The last is the code itself, so that a longer code is a region that is in no list of leaves."""
    return (*(code[:length] for length in prefixes[:-1]), code)


def _check_leaves(
    regions: RegionTree, prefixes: tuple[int, ...] | None, about: Mapping[str, Any], path: Path
) -> None:
    """Refuse a list of leaves other than the one in the release's measurements."""
    nodes = pq.read_table(path / MEASUREMENTS_FILE, columns=["level", "node"])
    codes = pc.unique(nodes.filter(pc.equal(nodes["level"], about["levels"][-1]))["node"]).to_pylist()
    if prefixes is not None:
        own = {leaf[-1] for leaf in regions.leaf_labels}
        theirs = set(codes)
    else:
        skipped = len(about["regions"]) - (regions.n_levels - 1)
        own = {SEPARATOR.join(leaf) for leaf in regions.leaf_labels}
        theirs = {code.split(SEPARATOR, skipped)[-1] for code in codes}
    if own != theirs or len(theirs) != len(codes):
        message = f"option --domain lists other leaf regions than {path.name} has; give the list with which it was made."
        raise InputError(message, option="--domain")


def _count(
    options: GroupsOptions,
    regions: RegionTree,
    prefixes: tuple[int, ...] | None,
    about: Mapping[str, Any],
    path: Path,
) -> tuple[Ints, Ints]:
    """People of every leaf who are in groups, and those who are heads."""
    columns = list(about["regions"]) if prefixes is not None else list(options.regions)
    codes = [leaf[-1:] if prefixes is not None else leaf for leaf in regions.leaf_labels]
    places = pa.array([SEPARATOR.join(code) for code in codes], pa.string())
    used = sorted({*options.members, *options.heads})
    found = np.zeros((2, len(codes)), dtype=np.int64)
    with pq.ParquetFile(path / MICRODATA_FILE) as file:
        for batch in file.iter_batches(columns=[*columns, *used]):
            parts = [batch[name].cast(pa.string()) for name in columns]
            code = parts[0] if len(parts) == 1 else pc.binary_join_element_wise(*parts, SEPARATOR)
            leaf = pc.index_in(code, value_set=places).to_numpy(zero_copy_only=False).astype(np.int64)
            is_member = _inside(batch, options.members)
            found[0] += np.bincount(leaf[is_member], minlength=len(codes))
            if options.heads:
                is_head = _inside(batch, options.heads)
                if (is_head & ~is_member).any():
                    raise InputError(
                        "option --heads counts people whom --members leaves out; add their labels to --members.",
                        option="--heads",
                    )
                found[1] += np.bincount(leaf[is_head], minlength=len(codes))
    return found[0], found[1]


def _inside(batch: pa.RecordBatch, cells: Mapping[str, Sequence[str]]) -> Bools:
    inside = np.ones(batch.num_rows, dtype=np.bool_)
    for name, labels in cells.items():
        is_one = pc.is_in(batch[name].cast(pa.string()), value_set=pa.array(labels, pa.string()))
        inside &= is_one.to_numpy(zero_copy_only=False)
    return inside


def _possible(
    options: GroupsOptions,
    regions: RegionTree,
    people: Ints,
    heads: Ints | None,
    bounds: GroupBounds | None,
    name: str,
) -> tuple[Ints, Ints, int]:
    """Bounds on the groups of every leaf given its people, and the number of leaves for which the failsafe moved them.

    Raises
    ------
    InputError
        If some leaf allows no number of groups and there is no failsafe.
    """
    size = options.max_size
    assert size is not None
    fewest = -(-people // size)
    if heads is not None:
        least, most = heads, heads
    elif bounds is not None:
        least, most = bounds.least, bounds.most
    else:
        return fewest, people, 0
    is_crowded, is_sparse = most < fewest, least > people
    if not options.failsafe:
        what = "heads" if heads is not None else "most groups"
        flag = "--heads" if heads is not None else "--most-groups"
        if is_crowded.any():
            needed = _needed(people[is_crowded], most[is_crowded])
            advice = "" if needed is None else f"--max-size {needed} or "
            message = (
                f"option {flag}: {counted(int(is_crowded.sum()), 'leaf region')} of {name} with more people than the {what} can hold at "
                f"{size} each, first {_first(regions, is_crowded)}; give {advice}--failsafe."
            )
            raise InputError(message, option=flag)
        if is_sparse.any():
            message = (
                f"option --least-groups: {counted(int(is_sparse.sum()), 'leaf region')} of {name} with fewer people than groups, first "
                f"{_first(regions, is_sparse)}; give --failsafe or other bounds."
            )
            raise InputError(message, option="--least-groups")
    moved = int((is_crowded | is_sparse).sum())
    return np.maximum(np.minimum(least, people), fewest), np.minimum(np.maximum(most, fewest), people), moved


def _needed(people: Ints, most: Ints) -> int | None:
    """The smallest maximum size with which groups can contain the people; None if there may be no group at all."""
    return int((-(-people // np.maximum(most, 1))).max()) if (most > 0).all() else None


def _first(regions: RegionTree, where: Bools) -> str:
    leaf = regions.leaf_labels[int(np.flatnonzero(where)[0])]
    return printable(leaf[-1])
