"""What louver itself has made and somebody has spoilt: releases, ledgers, measured folders, TopDown specs."""

from __future__ import annotations

import hashlib
import json
import os
import random
import shutil
import sqlite3
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from fuzz.drafts import AMOUNTS, Draft, anonymize, groups, typed, write
from fuzz.hostile import MARKER, damaged, odd_json, odd_json_text, odd_parquet, odd_text
from fuzz.judge import run_command, without_pages
from fuzz.options import Option, n_arguments, pool_of, subcommands
from topdown_town import write_town

__all__ = ["against", "estimate", "ledger", "open_release", "spending", "topdown", "verify"]


@cache
def made() -> Path:
    """One good artifact of each kind, made once."""
    root = Path(tempfile.mkdtemp(prefix="louver-fuzz-"))
    here = os.getcwd()
    os.chdir(root)
    try:
        with without_pages():
            _make(root)
    finally:
        os.chdir(here)
    return root


def _make(root: Path) -> None:
    draw = random.Random(0)
    draft = anonymize(draw)
    draft.argument = "data.csv"
    draft.options = {
        "quasi": "site,age",
        "k": "3",
        "identifying": "name",
        "keep": "home,count",
        "sensitive": "ill",
        "l": "2",
        "method": "sorted",
        "out": "anonymized",
    }
    _must(*write(draft, root))
    plain = {**draft.options, "method": "freeform-greedy", "out": "freeform"}
    _must("anonymize", "data.csv", *_flags({k: v for k, v in plain.items() if k not in ("l", "sensitive")}))
    sizes = groups(draw)
    sizes.argument = "data.csv"
    sizes.options = {
        "unit": "home",
        "across": "split",
        "regions": "site,ill",
        "domain": "domain.csv",
        "max-size": "5",
        "epsilon": "1",
        "total": "noisy",
        "out": "groups",
    }
    arguments = write(sizes, root)
    _must("ledger", "init", "data.csv.ledger", "--epsilon=3")
    _must(*arguments)
    write_town(root / "town")
    _must("ledger", "init", "town/people.csv.ledger", "--epsilon=4", "--neighbours=change-record")
    _must("topdown", "run", "town/town.toml", "--out=topdown", "--csv")
    _must("topdown", "measure", "town/town.toml", "--out=measured")


def _flags(options: Mapping[str, Option]) -> list[str]:
    return [f"-{n}{v}" if n == "k" else f"--{n}" if v is None else f"--{n}={v}" for n, v in options.items()]


def _must(*arguments: str) -> None:
    code, _, err = run_command(arguments)
    assert code == 0, (arguments, err)


RELEASES = ("anonymized", "freeform", "groups", "topdown")


def hostile_release(
    draw: random.Random, folder: Path, told: list[str], only: Sequence[str] = RELEASES
) -> Path:
    """A release, spoilt in a few places and hashed anew so that the damage is not seen by its hash alone."""
    kind = draw.choice(list(only))
    release = folder / "release"
    shutil.copytree(made() / kind, release)
    told.append(kind)
    for _ in range(draw.choice((0, 1, 1, 1, 2))):
        spoil = draw.choice(
            (_odd_manifest, _odd_manifest, _odd_manifest, _odd_table, _odd_table, _odd_bytes, _odd_place)
        )
        with suppress(OSError):  # what an earlier change took away
            spoil(draw, release, told)
    return release


def _is_plain(path: Path) -> bool:
    """Whether there is a file that can be read without waiting for anybody."""
    return path.is_file() and not path.is_symlink()


def _odd_manifest(draw: random.Random, release: Path, told: list[str]) -> None:
    path = release / "manifest.json"
    if not _is_plain(path):
        return
    try:
        content = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return
    if not isinstance(content, dict):
        return
    for _ in range(draw.choice((1, 1, 2))):
        part = draw.choice(
            ("promises", "promises", "promises", None, "privacy", "files", "results", "parameters")
        )
        if part is not None and part in content:
            content = {**content, part: odd_json(draw, content[part])}
        else:
            content = odd_json(draw, content)
        told.append(f"manifest: {part}")
        if not isinstance(content, dict):
            break
    _store(draw, path, content)


def _store(draw: random.Random, path: Path, content: Any) -> None:
    """Write a manifest with the digest that belongs to it."""
    if isinstance(content, dict):
        content = {key: value for key, value in content.items() if key != "digest"}
        try:
            text = json.dumps(content, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
            content["digest"] = hashlib.sha256(text.encode()).hexdigest()
        except (ValueError, TypeError, RecursionError):
            content["digest"] = "none"
    try:
        text = json.dumps(content, indent=1, ensure_ascii=draw.random() < 0.5)
    except RecursionError:
        text = odd_json_text(draw)
    if draw.random() < 0.05:
        text = odd_json_text(draw)
    if draw.random() < 0.05:
        text = text.replace("{", '{"verb": "bounds", ', 1)
    path.write_bytes(text.encode("utf-8", "surrogatepass"))


def _rehash(draw: random.Random, release: Path, file: Path) -> None:
    """Enter a changed file in the manifest, as a forger would."""
    path = release / "manifest.json"
    if not _is_plain(path):
        return
    try:
        content = json.loads(path.read_bytes())
        entry = content["files"][file.relative_to(release).as_posix()]
        entry.update(bytes=file.stat().st_size, sha256=hashlib.sha256(file.read_bytes()).hexdigest())
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return
    _store(draw, path, content)


def _odd_table(draw: random.Random, release: Path, told: list[str]) -> None:
    tables = sorted(path for path in release.rglob("*.parquet") if _is_plain(path))
    if not tables:
        return
    path = draw.choice(tables)
    try:
        table = pq.read_table(path)
        path.write_bytes(odd_parquet(draw, table))
    except (pa.ArrowException, ValueError, KeyError, OSError, IndexError):
        return
    told.append(f"{path.name} is odd")
    _rehash(draw, release, path)


def _odd_bytes(draw: random.Random, release: Path, told: list[str]) -> None:
    files = sorted(path for path in release.rglob("*") if _is_plain(path))
    if not files:
        return
    path = draw.choice(files)
    path.write_bytes(damaged(draw, path.read_bytes()))
    told.append(f"{path.name} is damaged")
    if path.name != "manifest.json":
        _rehash(draw, release, path)


def _odd_place(draw: random.Random, release: Path, told: list[str]) -> None:
    """Files that are no plain files, are missing, or were never listed."""
    paths = sorted(path for path in release.rglob("*") if not path.is_symlink())
    if not paths:
        return
    path = draw.choice(paths)
    way = draw.choice(
        ("missing", "link", "fifo", "folder", "extra", "extra link", "loop", "odd name", "mode")
    )
    told.append(f"{path.name}: {way}")
    if way == "extra":
        (release / draw.choice(("extra.txt", "data/extra.parquet", ".hidden"))).write_bytes(b"extra")
        return
    if way == "extra link":
        (release / "link").symlink_to(draw.choice(("/etc", "/dev/zero", "manifest.json", "nowhere")))
        return
    if way == "loop":
        (release / "loop").symlink_to(release)
        return
    if way == "odd name":
        name = typed(odd_text(draw)).replace("/", "_")[:200]
        (release / f"x{name}").write_bytes(b"extra")
        return
    if way == "mode":
        if path.is_file():
            path.chmod(0o000)
        return
    outside = release.parent / f"moved-{path.name}"
    if outside.exists():
        return
    path.rename(outside)
    if way == "link":
        path.symlink_to(outside)
    elif way == "fifo":
        os.mkfifo(path)
    elif way == "folder":
        path.mkdir()


Made = tuple[tuple[str, ...], Callable[[], object] | None]
Maker = Callable[[random.Random, Path, list[str]], Made]


def verify(draw: random.Random, folder: Path, told: list[str]) -> Made:
    release = hostile_release(draw, folder, told)
    target = release.name if draw.random() < 0.95 else typed(odd_text(draw)) or "release"
    return ("verify", *(["--json"] if draw.random() < 0.3 else []), "--", target), None


def open_release(draw: random.Random, folder: Path, told: list[str]) -> Made:
    """`lv.open`, and everything that a release object offers."""
    import louver as lv

    release = hostile_release(draw, folder, told)
    opener = getattr(lv, "open", None)

    def call() -> None:
        if opener is None:
            lv.verify(release)
            return
        opened = opener(release)
        repr(opened)
        for name in ("tables", "manifest", "privacy", "promises", "kind", "report"):
            getattr(opened, name, None)
        opened.verify()

    return (), call


def against(draw: random.Random, folder: Path, told: list[str]) -> Made:
    hostile_release(draw, folder, told, ("anonymized", "anonymized", "freeform", "groups"))
    shutil.copy(made() / "data.csv", folder / "data.csv")
    method = draw.choice(("sorted", "mondrian"))
    options = {
        "quasi": "site,sex",
        "k": "3",
        "identifying": "name",
        "keep": "home,count,age",
        "method": method,
        "against": "release",
        "out": "out",
    }
    return ("anonymize", "data.csv", *_flags(options)), None


def ledger(draw: random.Random, folder: Path, told: list[str]) -> Made:
    _hostile_ledger(draw, folder / "data.csv.ledger", told)
    name = draw.choice(subcommands("ledger"))
    entries = ("1", "2", "3", "0", "-1", "99999999999999999999", "x")
    chosen: dict[str, Sequence[Option]] = {
        "epsilon": AMOUNTS,
        "rho": AMOUNTS,
        "entry": entries,
        "releases": ("releases",),
    }
    pool = pool_of(["ledger", name], (), chosen)
    given = [option for option in pool if draw.random() < 0.6]
    if "releases" in given:
        (folder / "releases").mkdir()
        hostile_release(draw, folder / "releases", told, ("groups", "topdown", "anonymized"))
    shutil.copy(made() / "data.csv", folder / "data.csv")
    targets = ["data.csv.ledger", draw.choice(("new.ledger", "data.csv", "data.csv.ledger"))]
    if draw.random() < 0.1:
        targets[draw.randrange(2)] = typed(odd_text(draw)) or "x"
    flags = _flags({option: draw.choice(pool[option]) for option in given})
    return ("ledger", name, *flags, "--", *targets[: n_arguments(["ledger", name])]), None


def _hostile_ledger(draw: random.Random, path: Path, told: list[str]) -> None:
    way = draw.choice(("good", "bytes", "bytes", "rows", "rows", "rows", "schema", "other", "none", "folder"))
    told.append(f"ledger: {way}")
    if way == "none":
        return
    if way == "folder":
        path.mkdir()
        return
    if way == "other":
        path.write_bytes(draw.choice((b"", b"text", b"SQLite format 3\0", os.urandom(0), MARKER.encode())))
        return
    shutil.copy(made() / "data.csv.ledger", path)
    if way == "bytes":
        path.write_bytes(damaged(draw, path.read_bytes()))
    elif way != "good":
        _edit_ledger(draw, path, way)


def _edit_ledger(draw: random.Random, path: Path, way: str) -> None:
    """Change the past by SQL, as anybody with the file may."""
    db = sqlite3.connect(path)
    try:
        tables = [row[0] for row in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        table = draw.choice(tables)
        columns = [row[1] for row in db.execute(f'PRAGMA table_info("{table}")')]
        column = draw.choice(columns)
        if way == "schema":
            action = draw.choice(
                (
                    f'DROP TABLE "{table}"',
                    f'ALTER TABLE "{table}" RENAME TO other',
                    f'DELETE FROM "{table}"',
                    "PRAGMA user_version = 99",
                    "PRAGMA application_id = 7",
                )
            )
            db.execute(action)
        else:
            (n,) = db.execute(f'SELECT count(*) FROM "{table}"').fetchone()
            (old,) = db.execute(
                f'SELECT "{column}" FROM "{table}" LIMIT 1 OFFSET {draw.randrange(max(1, n))}'
            ).fetchone() or (None,)
            value = _odd_cell(draw, old)
            db.execute(
                f'UPDATE "{table}" SET "{column}" = ? WHERE rowid IN (SELECT rowid FROM "{table}" LIMIT 1 OFFSET {draw.randrange(max(1, n))})',
                (value,),
            )
        db.commit()
    except (sqlite3.Error, OverflowError, UnicodeEncodeError):
        pass
    finally:
        db.close()


def _odd_cell(draw: random.Random, old: object) -> object:
    if isinstance(old, str) and old.startswith("{") and draw.random() < 0.8:
        try:
            return json.dumps(odd_json(draw, json.loads(old)))
        except (ValueError, RecursionError):
            return odd_json_text(draw)
    return draw.choice(
        (None, 0, -1, 2**63 - 1, 0.5, "", b"\xff", odd_text(draw), odd_json_text(draw), float("nan"))
    )


def spending(draw: random.Random, folder: Path, told: list[str]) -> Made:
    """A verb that must be paid for, from a ledger that may be spoilt."""
    draft = groups(draw)
    draft.argument = "data.csv"
    draft.options = {
        "unit": "home",
        "across": "split",
        "regions": "site,ill",
        "domain": "domain.csv",
        "max-size": "4",
        "epsilon": draw.choice(("1", "2", "1/2", "9")),
        "total": "noisy",
        "out": "out",
    }
    arguments = write(draft, folder)
    _hostile_ledger(draw, folder / "data.csv.ledger", told)
    return arguments, None


def estimate(draw: random.Random, folder: Path, told: list[str]) -> Made:
    """Estimating from measurements that may be spoilt, or carrying on in a folder that may be."""
    write_town(folder / "town")
    place = folder / draw.choice(("measured", "measured", ".out.topdown"))
    shutil.copytree(made() / "measured", place)
    for _ in range(draw.choice((0, 1, 1, 2))):
        with suppress(OSError):
            draw.choice((_odd_table, _odd_table, _odd_bytes, _odd_place))(draw, place, told)
    if place.name == "measured":
        return ("topdown", "estimate", "town/town.toml", "--measurements=measured", "--out=out"), None
    _copy_ledger(draw, folder, told)
    return (
        "topdown",
        draw.choice(("run", "run", "measure")),
        "town/town.toml",
        "--out=out",
        "--resume",
    ), None


def _copy_ledger(draw: random.Random, folder: Path, told: list[str]) -> None:
    path = folder / "town" / "people.csv.ledger"
    shutil.copy(made() / "town" / "people.csv.ledger", path)
    if draw.random() < 0.3:
        _edit_ledger(draw, path, "rows")
        told.append("ledger: rows")


INVARIANT_TABLE = b"invariant,level,region,value\nward total,ward,1,60\nward total,ward,2,50\n"
COUNTS_TABLE = b"quarters,age,race,count\nhome,adult,a,10\ndorm,child,b,4\n"


def topdown(draw: random.Random) -> Draft:
    """The town of the other tests, with its spec and public files."""
    with tempfile.TemporaryDirectory() as name:
        spec = write_town(Path(name))
        files = {path.name: path.read_bytes() for path in sorted(spec.parent.iterdir())}
    lines = files["people.csv"].decode().splitlines()
    files["people.csv"] = "\n".join(
        [lines[0] + ",name", *(f"{line},{MARKER}" for line in lines[1:])]
    ).encode()
    files |= {"invariants.csv": INVARIANT_TABLE, "counts.csv": COUNTS_TABLE}
    seeded: dict[str, Option] = {"seed": "1", "out": "out"}
    command, options = draw.choice(
        (
            ("check", {"json": None}),
            ("check", {"invariants": "invariants.csv"}),
            (
                "check",
                {"invariants": "invariants.csv", "table": "counts.csv", "level": "ward", "region": "1"},
            ),
            ("run", seeded),
            ("measure", {"out": "out"}),
        )
    )
    chosen: dict[str, Sequence[Option]] = {
        "engine": ("local:1", "local:0", "local:x", "dask://nowhere:1"),
        "seed": ("1", "-1", "99999999999999999999"),
        "level": ("ward", "town", "street"),
        "region": ("1", "9"),
        "invariants": ("invariants.csv", "people.csv"),
        "table": ("counts.csv", "leaves.csv"),
        "spec": ("town.toml",),
    }
    pool = pool_of(["topdown", command], files, chosen)
    return Draft(("topdown", command), "town.toml", files, dict(options), pool)
