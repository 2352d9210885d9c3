"""Object stores that real programs serve on free ports of this machine: fake-gcs-server and Azurite.

`python -m tests.support.object_stores` installs them into `.venv/object-stores`, with Go and npm if they are there.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import urllib.error
import urllib.request
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.ports import free_port
from tests.support.waiting import eventually

ROOT = Path(__file__).resolve().parents[2] / ".venv" / "object-stores"
FAKE_GCS = ROOT / "bin" / "fake-gcs-server"
AZURITE = ROOT / "azurite" / "node_modules" / ".bin" / "azurite-blob"
GO_PACKAGE = "github.com/fsouza/fake-gcs-server@v1.56.1"
NPM_PACKAGE = "azurite@3.37.0"
ACCOUNT = "devstoreaccount1"
ACCOUNT_KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
"""Key of the emulator, the same everywhere."""

_START_SECONDS = 120


@dataclass(frozen=True)
class ObjectStore:
    """A bucket or container of a server, empty.

    Args:
        address: host and port of the server.
        url: URL of the bucket or container, as Hadoop writes it.
        settings: Hadoop settings for it.
    """

    address: str
    url: str
    settings: Mapping[str, str]


def install() -> None:
    """Installs the servers for which there is a tool."""
    ROOT.mkdir(parents=True, exist_ok=True)
    go_install(FAKE_GCS, GO_PACKAGE)
    shutil.rmtree(ROOT / "go", ignore_errors=True)
    if not AZURITE.exists() and (npm := shutil.which("npm")):
        subprocess.run([npm, "install", "--silent", "--prefix", str(ROOT / "azurite"), NPM_PACKAGE], check=True)


def go_install(program: Path, package: str) -> None:
    """Builds a program of Go, unless it is there already or Go is not."""
    if not program.exists() and (go := shutil.which("go")):
        subprocess.run([go, "install", package], env=go_environment(), check=True)


def go_environment() -> Mapping[str, str]:
    """Environment of Go that keeps all it makes below `ROOT`."""
    folders = {"GOPATH": str(ROOT / "go"), "GOBIN": str(ROOT / "bin")}
    return {**os.environ, **folders, "GOFLAGS": "-mod=mod -buildvcs=false -modcacherw"}


@pytest.fixture(scope="session")
def gcs_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Address of a fake-gcs-server, which keeps objects in memory."""
    if not FAKE_GCS.exists():
        pytest.skip(f"no fake-gcs-server: go install {GO_PACKAGE} (python -m tests.support.object_stores)")
    address = f"127.0.0.1:{free_port()}"
    host, _, port = address.partition(":")
    options = ["-scheme", "http", "-host", host, "-port", port, "-backend", "memory", "-log-level", "error"]
    names = ["-public-host", address, "-external-url", f"http://{address}"]
    with served([str(FAKE_GCS), *options, *names], f"http://{address}/storage/v1/b", tmp_path_factory.mktemp("gcs")):
        yield address


@pytest.fixture
def gcs(gcs_server: str) -> ObjectStore:
    """A new bucket of fake-gcs-server."""
    bucket = f"bucket-{uuid.uuid4().hex}"
    request = urllib.request.Request(
        f"http://{gcs_server}/storage/v1/b?project=test",
        data=f'{{"name":"{bucket}"}}'.encode(),
        headers={"Content-Type": "application/json"},
    )
    urllib.request.urlopen(request).close()
    settings = {"fs.gs.auth.type": "UNAUTHENTICATED", "fs.gs.storage.root.url": f"http://{gcs_server}"}
    return ObjectStore(gcs_server, f"gs://{bucket}", settings)


@pytest.fixture(scope="session")
def azure_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Address of an Azurite."""
    if not AZURITE.exists():
        pytest.skip(f"no Azurite: npm install {NPM_PACKAGE} (python -m tests.support.object_stores)")
    address = f"127.0.0.1:{free_port()}"
    host, _, port = address.partition(":")
    folder = tmp_path_factory.mktemp("azurite")
    options = ["--blobHost", host, "--blobPort", port, "--location", str(folder), "--silent", "--skipApiVersionCheck"]
    with served([str(AZURITE), *options], f"http://{address}/{ACCOUNT}", folder):
        yield address


@pytest.fixture
def azure(azure_server: str) -> ObjectStore:
    """A new container of Azurite."""
    from azure.storage.blob import BlobServiceClient

    container = f"container-{uuid.uuid4().hex}"
    endpoint = f"http://{azure_server}/{ACCOUNT}"
    text = f"AccountName={ACCOUNT};AccountKey={ACCOUNT_KEY};BlobEndpoint={endpoint}"
    with BlobServiceClient.from_connection_string(text) as client:
        client.create_container(container)
    host = f"{ACCOUNT}.dfs.core.windows.net"
    settings = {
        f"fs.azure.account.key.{host}": ACCOUNT_KEY,
        "fs.azure.abfs.endpoint": azure_server,
        "fs.azure.always.use.https": "false",
        "fs.azure.account.hns.enabled": "false",
        "fs.azure.networking.library": "JDK_HTTP_URL_CONNECTION",  # the other one needs https
    }
    return ObjectStore(azure_server, f"abfs://{container}@{host}", settings)


@contextmanager
def served(
    command: Sequence[str], url: str, folder: Path, environment: Mapping[str, str] | None = None
) -> Iterator[None]:
    """Runs a server until the end of the block; it has an answer for the URL from the beginning of the block on."""
    with (folder / "server.log").open("wb") as log:
        variables = {**os.environ, **(environment or {})}
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=variables)
    try:
        eventually(lambda: process.poll() is not None or _answers(url), _START_SECONDS)
        assert process.poll() is None, (folder / "server.log").read_text(errors="replace")
        yield
    finally:
        process.kill()  # Azurite would wait for all connections to end
        process.wait()


def _answers(url: str) -> bool:
    try:
        urllib.request.urlopen(url, timeout=5).close()
    except urllib.error.HTTPError:
        return True
    except OSError:
        return False
    return True


if __name__ == "__main__":
    try:
        install()
    except (OSError, subprocess.SubprocessError) as e:
        sys.exit(f"an object store was not installed, so its tests will skip: {e}")
