"""Batches on a Dask cluster of three worker processes: the same bytes, whoever is lost, and every refusal in one sentence."""

from __future__ import annotations

import importlib.util
import json
import pickle
import shutil
import socket
import stat
import subprocess
import sys
import threading
from concurrent.futures import CancelledError
from fractions import Fraction
from functools import partial
from pathlib import Path

import distributed
import numpy as np
import pyarrow as pa
import pytest

import dask_cluster
from dask_cluster import Cluster, add, cluster_of, stop_for_good, until
from louver.anonymize import anonymize
from louver.data import scratch
from louver.engine import dask, shared
from louver.engine.dask import DaskEngine
from louver.engine.engines import open_engine
from louver.errors import Cancelled, InputError
from louver.privacy.budget import Measure
from louver.privacy.ledger import Ledger
from louver.privacy.neighbours import Relation
from louver.run import Run
from louver.topdown import estimate, extend, plan, topdown
from louver.topdown.errors.simulate import AssumedTruth
from louver.topdown.load import read_design
from louver.topdown.measuring.noise_plan import make_plan
from louver.topdown.measuring.true_counts import true_leaves
from topdown_larger import write_larger
from topdown_town import write_town

N_WORKERS = 3

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def started(tmp_path_factory):
    with cluster_of(tmp_path_factory.mktemp("cluster"), N_WORKERS) as cluster:
        yield cluster


@pytest.fixture
def cluster(started: Cluster):
    """Three good workers, also after a test that lost some."""
    started.workers = [worker for worker in started.workers if worker.poll() is None]
    started.add_workers(N_WORKERS - len(started.workers))
    return started


@pytest.fixture
def town(tmp_path, monkeypatch):
    """A town of several batches to a level, with a prior at the last."""
    monkeypatch.setattr("louver.topdown.problem.BATCH_VALUES", 60)
    monkeypatch.setattr("louver.topdown.estimation.estimators.FEWEST", 4)
    return write_town(tmp_path / "town")


def bytes_of(out: Path) -> dict[str, bytes]:
    """What "the same bytes" means: all of data/, and the manifest without created and seconds."""
    manifest = json.loads((out / "manifest.json").read_text())
    told = {key: value for key, value in manifest.items() if key not in ("created", "seconds", "digest")}
    told["files"] = {name: entry for name, entry in manifest["files"].items() if name.startswith("data/")}
    files = {str(path.relative_to(out)): path.read_bytes() for path in sorted((out / "data").rglob("*.*"))}
    return {**files, "manifest": json.dumps(told, sort_keys=True).encode()}


def test_results_come_in_order_and_what_is_shared_goes_away(cluster, tmp_path):
    with open_engine(cluster.address, tmp_path) as engine:
        number = engine.share(100)
        assert number.value == 100
        assert list(engine.map(partial(add, number), iter(range(40)), None)) == list(range(100, 140))
        of_the_engine = {"lock", "probe"}  # what all workers were asked about
        assert len({path.name for path in engine.folder.iterdir()} - of_the_engine) == 1, "the number"
        del number
        assert {path.name for path in engine.folder.iterdir()} == of_the_engine
    assert not list(tmp_path.iterdir())


def test_what_a_killed_client_left_is_swept_by_the_next_on_its_machine(tmp_path, monkeypatch):
    """Not what another holds, what another machine made, or what nobody could lock."""
    code = "import os, pathlib, sys; from louver.engine.dask import _made; kept = _made(pathlib.Path(sys.argv[1])); os._exit(9)"
    assert subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=False).returncode == 9
    (left,) = tmp_path.iterdir()
    elsewhere = tmp_path / ".louver-engine-000000000000-x"
    shutil.copytree(left, elsewhere)
    with dask._made(tmp_path) as first:
        assert not left.exists()
        scratch._sweep_once.cache_clear()
        with dask._made(tmp_path) as second, monkeypatch.context() as without:
            assert first.path.exists() and second.path != first.path
            without.setattr(scratch, "try_lock", lambda descriptor: False)
            with dask._made(tmp_path) as unlocked:
                assert unlocked.path.name.startswith(".louver-new-")
    assert list(tmp_path.iterdir()) == [elsewhere]


def test_a_folder_that_cannot_be_written_to(tmp_path):
    with pytest.raises(InputError, match="cannot be written to"):
        dask._made(tmp_path / "gone")


def test_topdown_gives_the_same_bytes_also_when_a_worker_dies(cluster, town, tmp_path):
    topdown(town, out=tmp_path / "local", seed=3, engine="local:2")
    topdown(town, out=tmp_path / "dask", seed=3, engine=cluster.address)
    assert bytes_of(tmp_path / "dask") == bytes_of(tmp_path / "local")
    mortal = next(iter(cluster.client.nthreads()))
    cluster.client.run(dask_cluster.die_at, "block", workers=[mortal])
    topdown(town, out=tmp_path / "killed", seed=3, engine=cluster.address)
    cluster.wait_for(N_WORKERS - 1)
    assert bytes_of(tmp_path / "killed") == bytes_of(tmp_path / "local")
    assert not list(tmp_path.glob(".louver*"))


def test_simulating_gives_the_same(cluster, town, tmp_path):
    plan = make_plan(read_design(town))
    truth = AssumedTruth.of(plan, true_leaves(plan.design))
    here = truth.simulate(1)
    with open_engine(cluster.address, tmp_path) as engine:
        there = truth.simulate(1, engine=engine)
    for a, b in zip(here.levels, there.levels, strict=True):
        assert np.array_equal(a.count, b.count) and np.array_equal(a.cell, b.cell)


def test_extending_gives_the_same_bytes(cluster, tmp_path, monkeypatch):
    monkeypatch.setattr("louver.topdown.problem.BATCH_VALUES", 60)
    first, larger = write_larger(tmp_path / "town")
    topdown(first, out=first.parent / "first", seed=3)
    for name, engine in (("local", "local:1"), ("dask", cluster.address)):
        extend(larger, out=tmp_path / name, seed=4, engine=engine)
    assert bytes_of(tmp_path / "dask") == bytes_of(tmp_path / "local")


def test_the_benchmark_in_small(cluster, tmp_path, monkeypatch, capsys):
    path = Path(__file__).parents[3] / "benchmarks" / "topdown_cluster.py"
    if not path.is_file():
        pytest.skip("the benchmarks are not part of this copy")
    monkeypatch.setattr(sys, "path", list(sys.path))
    spec = importlib.util.spec_from_file_location("topdown_cluster_benchmark", path)
    benchmark = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(benchmark)
    benchmark.compare(tmp_path, cluster.address, 60, "plain")
    told = capsys.readouterr().out
    assert "bytes the same" in told and "bytes of results" in told


def test_workers_get_neither_records_nor_ledger(cluster, town, tmp_path, monkeypatch):
    """Nothing that is sent names them, and no worker opens any file but the measurements and what was shared."""
    Ledger.create(tmp_path / "purse.ledger", Measure.EPSILON, Relation.CHANGE_RECORD, Fraction(2))
    sent = []
    submit, write = DaskEngine._submit, shared._write

    def submitted(self, packed, piece):
        sent.append(packed + pickle.dumps(piece))
        return submit(self, packed, piece)

    def written(value, path):
        digest = write(value, path)
        sent.append(path.read_bytes())
        return digest

    monkeypatch.setattr(DaskEngine, "_submit", submitted)
    monkeypatch.setattr(shared, "_write", written)
    cluster.client.run(dask_cluster.watch, str(tmp_path))
    topdown(town, out=tmp_path / "out", ledger=tmp_path / "purse.ledger", engine=cluster.address)
    assert len(sent) > 10
    for confidential in (b"people.csv", b"purse.ledger", b"sqlite"):
        assert not any(confidential in part for part in sent)
    opened = {path for paths in cluster.client.run(dask_cluster.opened).values() for path in paths}
    inside = {Path(path).relative_to(tmp_path).parts for path in opened}
    assert inside
    for folder, *rest in inside:
        assert folder.startswith(".louver-engine-") or [folder, *rest] == [
            ".out.topdown",
            "measurements",
            "topdown.parquet",
        ]


def test_cancelling_reaches_the_workers(cluster, tmp_path):
    run = Run()

    def cancel():
        until((tmp_path / "begun").is_file)
        run.cancel()

    thread = threading.Thread(target=cancel)
    thread.start()
    with pytest.raises(Cancelled), open_engine(cluster.address, tmp_path, run) as engine:
        list(engine.map(partial(stop_for_good, tmp_path), [1], run))
    thread.join()
    until((tmp_path / "ended").is_file)
    assert not list(tmp_path.glob(".louver*"))


@pytest.mark.parametrize("rest", ["", "//", "//host", "//host:0", "//host:65536", "//host:x", "//:8786", "host:8786",
                                  "//host:1/path", "//host:1?nthreads=2", "//me@host:1", "//a:1,b:2", "//a b:1", "//[::1:2"])  # fmt: skip
@pytest.mark.parametrize("scheme", ["dask", "tls"])
def test_addresses_that_are_none(scheme, rest, tmp_path):
    with (
        pytest.raises(InputError, match=r"address must be dask://HOST:PORT") as error,
        open_engine(f"{scheme}:{rest}", tmp_path),
    ):
        pass
    assert error.value.option == "--engine"


def refused(address, folder, match):
    with pytest.raises(InputError, match=match) as error, open_engine(address, folder):
        pass
    assert str(error.value).startswith("option --engine: ") and error.value.option == "--engine"
    assert not list(folder.glob(".louver*"))


def test_nobody_listens(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    refused(f"dask://127.0.0.1:{port}", tmp_path, "nothing is listening at 127.0.0.1:")


@pytest.mark.parametrize("answer", [b"", b"HTTP/1.1 400 Bad Request\r\n\r\n" + b"x" * 64])
def test_something_else_listens(tmp_path, monkeypatch, answer):
    monkeypatch.setattr(dask, "CONNECT_SECONDS", 0.3)
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve():
            held = []
            while True:
                try:
                    held.append(server.accept()[0])
                    held[-1].sendall(answer)
                except OSError:
                    return

        threading.Thread(target=serve, daemon=True).start()
        refused(
            f"dask://127.0.0.1:{server.getsockname()[1]}", tmp_path, "does not answer like a Dask scheduler"
        )
        server.shutdown(socket.SHUT_RDWR)


def test_a_worker_is_no_scheduler(cluster, tmp_path):
    worker = next(iter(cluster.client.nthreads())).replace("tcp", "dask")
    refused(worker, tmp_path, "does not answer like a Dask scheduler")


def test_dask_is_not_installed(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    refused(
        "dask://127.0.0.1:8786",
        tmp_path,
        r'Dask is not installed; install it with pip install "louver\[cluster\]"',
    )


def test_what_is_done_stays_done_when_it_is_stopped_late(cluster, tmp_path):
    run = Run()
    with open_engine(cluster.address, tmp_path, run) as engine:
        found = list(engine.map(partial(add, engine.share(1)), [1], run))
        run.cancel()
    assert found == [2] and not list(tmp_path.iterdir())


def test_a_command_that_works_here_alone(town):
    with pytest.raises(InputError, match="runs on this machine only; give local:N"):
        plan(town, engine="dask://127.0.0.1:8786")


def test_a_folder_that_is_not_there(cluster, town, tmp_path):
    with pytest.raises(InputError, match="does not exist"):
        topdown(town, out=tmp_path / "nowhere" / "out", seed=1, engine=cluster.address)


def test_a_worker_that_came_later_is_asked_too(monkeypatch):
    with pytest.raises(InputError, match="another version of louver"):
        dask._work(b"", b"", {**dask.software(), "louver": "0.0.1"})


def test_a_worker_reads_only_what_was_written_for_it(tmp_path):
    path = tmp_path / "shared" / "file"
    path.parent.mkdir()
    published = shared.SharedObject([1, 2], path.parent)
    fetched = pickle.loads(pickle.dumps(published))
    Path(fetched.path).write_bytes(pickle.dumps("something else"))
    for digest in (fetched.digest, "0"):
        with pytest.raises(InputError, match="a worker cannot find"):
            _ = shared.Fetched(fetched.path, digest).value


@pytest.mark.parametrize(
    ("error", "match"),
    [
        (distributed.KilledWorker("batch", None, 3), "give them more memory"),
        (distributed.CancelledError(), "scheduler has gone"),
        (CancelledError(), "scheduler has gone"),
    ],
)
def test_a_batch_that_never_comes_back(cluster, tmp_path, monkeypatch, error, match):
    async def lost(*given, **options):
        raise error

    with open_engine(cluster.address, tmp_path) as engine:
        monkeypatch.setattr(engine._client, "gather", lost)
        with pytest.raises(InputError, match=match):
            list(engine.map(partial(add, engine.share(1)), [1], None))


def test_parts_of_a_file_are_anonymised_by_workers(cluster, tmp_path, monkeypatch):
    """Same bytes; what workers read of the records lies beside the release in a private folder, and goes with the run."""
    write, modes = shared._write, []

    def written(value, path):
        inside = [folder for folder in path.parents if folder.is_relative_to(tmp_path) and folder != tmp_path]
        modes.append(stat.S_IMODE(inside[-1].stat().st_mode))
        return write(value, path)

    monkeypatch.setattr(shared, "_write", written)
    random = np.random.default_rng(5)
    people = pa.table({"age": random.integers(0, 60, 200), "town": random.choice(list("abcd"), 200)})
    given = {"quasi": ["age", "town"], "k": 3, "method": "sorted", "keep_order": True, "parts": 4}
    for name, engine in (("here", "local:1"), ("there", cluster.address)):
        anonymize(people, **given, engine=engine, out=tmp_path / name)
    assert bytes_of(tmp_path / "here") == bytes_of(tmp_path / "there")
    assert {path.name for path in tmp_path.iterdir()} == {"here", "there"}
    assert modes and set(modes) == {0o700}


def test_parts_of_a_worker_that_dies_are_formed_by_another(cluster, tmp_path):
    """Same bytes as here, and nothing is left of the dead worker's part."""
    random = np.random.default_rng(6)
    people = pa.table({"age": random.integers(0, 60, 300), "town": random.choice(list("abcd"), 300)})
    given = {"quasi": ["age", "town"], "k": 3, "method": "greedy", "keep_order": True, "parts": 6}
    anonymize(people, **given, engine="local:1", out=tmp_path / "here")
    mortal = next(iter(cluster.client.nthreads()))
    cluster.client.run(dask_cluster.die_forming_classes, workers=[mortal])
    anonymize(people, **given, engine=cluster.address, out=tmp_path / "there")
    cluster.wait_for(N_WORKERS - 1)
    assert bytes_of(tmp_path / "here") == bytes_of(tmp_path / "there")
    assert {path.name for path in tmp_path.iterdir()} == {"here", "there"}


def test_a_run_whose_workers_are_all_gone_is_carried_on(cluster, town, tmp_path, monkeypatch):
    Ledger.create(town.parent / "people.csv.ledger", Measure.EPSILON, Relation.CHANGE_RECORD, Fraction(2))
    monkeypatch.setattr(dask, "LOST_SECONDS", 0.0)

    def show(stage, done, total):
        if stage == "estimating area" and cluster.workers:
            cluster.end_workers()

    with pytest.raises(
        InputError, match=r"all workers have gone; start workers, and resume the run .*--resume"
    ):
        topdown(town, out=tmp_path / "out", engine=cluster.address, run=Run(show))
    assert not (tmp_path / "out").exists()
    cluster.add_workers(1)
    topdown(town, out=tmp_path / "out", engine=cluster.address, resume=True)
    estimate(town, measurements=tmp_path / "out", out=tmp_path / "again")
    assert bytes_of(tmp_path / "again") == bytes_of(tmp_path / "out")


SPOILT = {
    "has no workers": None,
    r"has another version of louver \(0.0.1, here ": "import louver._version as v; v.__version__ = '0.0.1'",
    r"has another version of numpy \(1.0, here ": (
        "import importlib.metadata as m; old = m.version; m.version = lambda name: '1.0' if name == 'numpy' else old(name)"
    ),
    "cannot load louver": "import sys; sys.modules['louver'] = None",
    "does not see .* where this run keeps its files": (
        "import pathlib\ndef blind(path): raise FileNotFoundError\npathlib.Path.read_bytes = blind"
    ),
}


def test_workers_that_would_not_do_the_same(cluster, tmp_path):
    cluster.end_workers()
    for match, before in SPOILT.items():
        if before is not None:
            cluster.add_workers(1, before)
        refused(cluster.address, tmp_path, match)
        cluster.end_workers()
