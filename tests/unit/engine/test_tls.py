"""A cluster that encrypts and asks for certificates: the same bytes, and nobody without one is let in."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import dask
import pytest

from dask_cluster import Cluster, cluster_of
from louver.engine.engines import open_engine
from louver.errors import InputError
from louver.topdown import topdown
from topdown_town import write_town
from unit.engine.test_dask import bytes_of

pytestmark = pytest.mark.long

OPENSSL = "req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=louver -addext subjectAltName=IP:127.0.0.1"


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A certificate that signs itself, and its key."""
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("openssl is not installed")
    folder = tmp_path_factory.mktemp("certificate")
    made = folder / "cert.pem", folder / "key.pem"
    given = [*OPENSSL.split(), "-out", str(made[0]), "-keyout", str(made[1])]
    subprocess.run([openssl, *given], check=True, capture_output=True)
    return made


@pytest.fixture(scope="module")
def cluster(certificate: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with cluster_of(tmp_path_factory.mktemp("cluster"), 1, certificate) as started:
        yield started


def test_topdown_gives_the_same_bytes_over_tls(
    cluster: Cluster, certificate: tuple[Path, Path], tmp_path: Path
) -> None:
    """As the guide says: certificates are given to Dask, the address to louver."""
    assert cluster.address.startswith("tls://")
    town = write_town(tmp_path / "town")
    cert, key = map(str, certificate)
    tls = {"ca-file": cert, "client.cert": cert, "client.key": key}
    with dask.config.set({f"distributed.comm.tls.{name}": file for name, file in tls.items()}):
        topdown(town, out=tmp_path / "tls", seed=3, engine=cluster.address)
    topdown(town, out=tmp_path / "here", seed=3)
    assert bytes_of(tmp_path / "tls") == bytes_of(tmp_path / "here")


@pytest.mark.parametrize("scheme", ["tls", "dask"])
def test_nobody_without_a_certificate_is_let_in(cluster: Cluster, tmp_path: Path, scheme: str) -> None:
    address = cluster.address.replace("tls", scheme)
    with (
        pytest.raises(
            InputError, match="does not answer like a Dask scheduler .* write tls:// and give Dask the cert"
        ),
        open_engine(address, tmp_path),
    ):
        pass
