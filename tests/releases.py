"""Small releases made by hand, changed by hand, and doubted promise by promise."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from louver.release.folder import Folder, plain_files
from louver.release.manifest import Manifest, digest, read_manifest
from louver.release.promises import Context
from louver.release.promises.mapping import SCHEMA
from louver.release.promises.recoding import mean_loss
from louver.release.verify import Check, check_promise
from louver.release.write import ReleaseWriter


def doubt(out: Path, name: str, **changes: Any) -> Check:
    """The check of the first promise of a name, some of its values exchanged."""
    manifest = read_manifest(out)
    entry = next(entry for entry in manifest.promises if entry["promise"] == name)
    return check_promise(Context(Folder(out, plain_files(out)[0]), manifest), {**entry, **changes})


def edit(out: Path, change: Callable[[dict[str, Any]], object], *, with_digest: bool = True) -> None:
    """Change what a manifest says, and its digest with it, as somebody with bad intentions would."""
    path = out / "manifest.json"
    content = json.loads(path.read_text())
    change(content)
    if with_digest:
        content["digest"] = digest(content)
    path.write_text(json.dumps(content))


def table_of(ages: list[str | None], ill: list[Any]) -> pa.Table:
    """Records with one quasi-identifier and one sensitive column."""
    return pa.table({"age": pa.array(ages, pa.string()), "ill": ill})


def mapping_of(table: pa.Table) -> pa.Table:
    """The mapping of ages such as "20-29"; a missing one stands for itself."""
    lines = []
    for value, n in Counter(table["age"].to_pylist()).items():
        ends = [None, None] if value is None else [float(end) for end in value.split("-")]
        lines.append(
            {
                "attribute": "age",
                "published": value,
                "sort": "missing" if value is None else "interval",
                "lower": ends[0],
                "upper": ends[-1],
                "members": None,
                "records": n,
            }
        )
    return pa.Table.from_pylist(lines, pa.schema(list(SCHEMA.items())))


def promises_of(table: pa.Table, k: int) -> list[dict[str, Any]]:
    """What a release of such records promises."""
    file, about = "data/anonymized.parquet", {"quasi": ["age"], "file": "data/anonymized.parquet"}
    values = [
        [None if value is None else str(value)] for value in sorted(set(table["ill"].to_pylist()), key=str)
    ]
    mapping = mapping_of(table)
    sensitive = {**about, "sensitive": "ill", "values": values or [["flu"]]}
    return [
        {"promise": "records", "file": file, "records": table.num_rows},
        {"promise": "mapping", "file": file, "mapping": "data/mapping.parquet"},
        {
            "promise": "losses",
            "mapping": "data/mapping.parquet",
            "by_column": [["age", mean_loss(mapping)]] if table.num_rows else [],
        },
        {"promise": "k-anonymity", **about, "k": k},
        {"promise": "l-diversity", **sensitive, "kind": "distinct", "l": 2},
        {"promise": "t-closeness", **sensitive, "distance": "equal", "t": 0.2},
    ]


def results_of(table: pa.Table, k: int) -> dict[str, Any]:
    """What such a release says of itself."""
    sizes = sorted(Counter(Counter(table["age"].to_pylist()).values()).items())
    losses = promises_of(table, k)[2]["by_column"]
    n_classes = sum(n for _, n in sizes)
    average = n_classes / max(1, table.num_rows)
    return {
        "method": "exact",
        "guarantee": "k-anonymity",
        "k": k,
        "records": table.num_rows,
        "classes": n_classes,
        "smallest_class": sizes[0][0] if sizes else 0,
        "suppressed": 0,
        "unchanged": ["ill"],
        "gcp": losses[0][1] if losses else 0.0,
        "by_column": losses,
        "risk": {
            "prosecutor_highest": 1 / sizes[0][0] if sizes else 0.0,
            "prosecutor_average": average,
            "marketer": average,
            "journalist_highest": None,
            "journalist_average": None,
            "uniques_after": dict(sizes).get(1, 0),
            "class_sizes": [list(pair) for pair in sizes],
            "counted": "records",
        },
        "utility": {
            "discernibility": sum(n * size**2 for size, n in sizes),
            "average_class_size": table.num_rows / max(1, n_classes) / k,
        },
    }


ASKED = {
    "method": "exact",
    "quasi": ["age"],
    "sensitive": ["ill"],
    "l": 2,
    "l_kind": "distinct",
    "t": 0.2,
    "distance": "equal",
}


def made(
    out: Path,
    *,
    k: int = 3,
    table: pa.Table | None = None,
    log: Callable[[], str] | None = None,
    **changes: Any,
) -> Path:
    """A small release of `anonymize`, without running it."""
    table = table_of(["20-29"] * 3 + ["30-39"] * 3, ILL) if table is None else table
    manifest = Manifest(
        verb="anonymize",
        method="exact",
        **{
            "parameters": {"k": k, **ASKED},
            "promises": promises_of(table, k),
            "results": results_of(table, k),
            "disclosures": ['column "ill", record by record'],
            **changes,
        },
    )
    with ReleaseWriter(out) as writer:
        pq.write_table(table, writer.path("data/anonymized.parquet"))
        pq.write_table(mapping_of(table), writer.path("data/mapping.parquet"))
        writer.seal(manifest, log)
    return out


ILL = ["flu", "cold", "flu", "cold", "flu", "ulcer"]
