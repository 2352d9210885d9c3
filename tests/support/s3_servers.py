"""S3 servers of others, on free ports of this machine: versitygw, MinIO, S3Proxy and SeaweedFS.

`python -m tests.support.s3_servers` installs them into `.venv/object-stores`: three with Go, which takes half an hour,
one with Maven.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.support.maven import build
from tests.support.object_stores import ROOT, ObjectStore, go_environment, go_install, served
from tests.support.ports import free_port
from tests.support.provider import REPOSITORY

HOST = "127.0.0.1"
KEY, SECRET = "test", "testtest"
_S3PROXY = REPOSITORY / "jvm-shim" / "s3proxy-jars"
_SEAWEED = "v0.0.0-20261109003541-7506e5f91cd6"


@dataclass(frozen=True)
class S3Server:
    """A server.

    Args:
        name: its name.
        version: the version that is installed.
        install: installs it, or does nothing if a tool is missing.
        installed: whether it can be started.
        command: program and arguments, for a folder of its own and a port.
        environment: environment variables for it.
        clients: clients of a race that it answers within the timeout of a request.
        rounds: rounds of that race.
    """

    name: str
    version: str
    install: Callable[[], None]
    installed: Callable[[], bool]
    command: Callable[[Path, int], Sequence[str]]
    environment: Mapping[str, str] = field(default_factory=dict)
    clients: int = 16
    rounds: int = 100

    @contextmanager
    def running(self, folder: Path) -> Iterator[str]:
        """Starts it on an empty folder; yields its address. Skips the test if it is not installed."""
        if not self.installed():
            pytest.skip(f"no {self.name}: python -m tests.support.s3_servers {self.name}")
        port = free_port()
        address = f"{HOST}:{port}"
        command = self.command(folder, port)
        with served(command, f"http://{address}/", folder, self.environment):
            yield address

    def bucket(self, address: str) -> ObjectStore:
        """A new bucket on a running server."""
        import botocore.session

        client = botocore.session.get_session().create_client(
            "s3",
            region_name="us-east-1",
            endpoint_url=f"http://{address}",
            aws_access_key_id=KEY,
            aws_secret_access_key=SECRET,
        )
        bucket = f"bucket-{uuid.uuid4().hex}"
        client.create_bucket(Bucket=bucket)
        client.close()
        settings = {
            "fs.s3a.endpoint": f"http://{address}",
            "fs.s3a.endpoint.region": "us-east-1",
            "fs.s3a.path.style.access": "true",
            "fs.s3a.access.key": KEY,
            "fs.s3a.secret.key": SECRET,
        }
        return ObjectStore(address, f"s3a://{bucket}", settings)


def _program(name: str) -> Path:
    return ROOT / "bin" / name


def _of_go(name: str, package: str) -> tuple[Callable[[], None], Callable[[], bool]]:
    return lambda: go_install(_program(name), package), _program(name).exists


def _versitygw(folder: Path, port: int) -> Sequence[str]:
    (folder / "data").mkdir()
    at = ["--port", f"{HOST}:{port}", "--region", "us-east-1", "--quiet"]
    return [str(_program("versitygw")), *at, "posix", str(folder / "data")]


def _minio(folder: Path, port: int) -> Sequence[str]:
    return [str(_program("minio")), "server", "--address", f"{HOST}:{port}", str(folder / "data")]


def _install_s3proxy() -> None:
    if shutil.which("mvn"):
        build(_S3PROXY, "jars")


def _s3proxy(folder: Path, port: int) -> Sequence[str]:
    (folder / "data").mkdir()
    settings = {
        "s3proxy.endpoint": f"http://{HOST}:{port}",
        "s3proxy.authorization": "aws-v2-or-v4",
        "s3proxy.identity": KEY,
        "s3proxy.credential": SECRET,
        "jclouds.provider": "filesystem-nio2",
        "jclouds.filesystem.basedir": str(folder / "data"),
    }
    config = folder / "s3proxy.conf"
    config.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
    classes = f"{_S3PROXY / 'target' / 'jars'}/*"
    return ["java", "-Xmx512m", "-cp", classes, "org.gaul.s3proxy.Main", "--properties", str(config)]


def _install_seaweedfs() -> None:
    """Builds it as the main module: its `replace` directive forbids `go install`."""
    if _program("weed").exists() or not shutil.which("go"):
        return
    folder = ROOT / "weed"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "go.mod").write_text(
        f"module weedbuild\ngo 1.26\nrequire github.com/seaweedfs/seaweedfs {_SEAWEED}\n"
        "replace github.com/tyler-smith/go-bip39 => github.com/cosmos/go-bip39 v1.0.0\n"
    )
    command = ["go", "build", "-o", str(_program("weed")), "github.com/seaweedfs/seaweedfs/weed"]
    subprocess.run(command, cwd=folder, env=go_environment(), check=True)


def _seaweedfs(folder: Path, port: int) -> Sequence[str]:
    (folder / "data").mkdir()
    identity = {
        "name": "test",
        "credentials": [{"accessKey": KEY, "secretKey": SECRET}],
        "actions": ["Admin", "Read", "Write", "List", "Tagging"],
    }
    config = folder / "s3.json"
    config.write_text(json.dumps({"identities": [identity]}))
    ports = [f"-{name}.port={free_port()}" for name in ("master", "volume", "filer")]
    ports += [f"-{name}.port.grpc={free_port()}" for name in ("master", "volume", "filer", "s3")]
    store = [f"-dir={folder / 'data'}", "-master.volumeSizeLimitMB=64", "-volume.max=30"]
    s3 = ["-filer", "-s3", f"-s3.port={port}", f"-s3.config={config}"]
    return [str(_program("weed")), "server", f"-ip={HOST}", f"-ip.bind={HOST}", *store, *ports, *s3]


_VERSITYGW = "github.com/versity/versitygw/cmd/versitygw@v1.8.0"
_MINIO = "github.com/minio/minio@v0.0.0-20260212201848-7aac2a2c5b7c"

SERVERS: Mapping[str, S3Server] = {
    server.name: server
    for server in (
        S3Server(
            *("versitygw", "1.8.0", *_of_go("versitygw", _VERSITYGW), _versitygw),
            environment={"ROOT_ACCESS_KEY": KEY, "ROOT_SECRET_KEY": SECRET},
        ),
        S3Server(
            *("minio", "2026-02-12", *_of_go("minio", _MINIO), _minio),
            environment={"MINIO_ROOT_USER": KEY, "MINIO_ROOT_PASSWORD": SECRET, "MINIO_BROWSER": "off"},
        ),
        S3Server("s3proxy", "4.1.0", _install_s3proxy, (_S3PROXY / "target" / "jars").exists, _s3proxy),
        S3Server(
            *("seaweedfs", "4.53", _install_seaweedfs, _program("weed").exists, _seaweedfs),
            clients=4,  # it answers more of them too late
            rounds=10,
        ),
    )
}
"""Servers by name."""


@pytest.fixture(scope="session")
def s3_addresses(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], str]]:
    """Address of the server with a name, which is started at the first call."""
    with ExitStack() as stack:
        addresses: dict[str, str] = {}

        def address_of(name: str) -> str:
            if name not in addresses:
                addresses[name] = stack.enter_context(SERVERS[name].running(tmp_path_factory.mktemp(name)))
            return addresses[name]

        yield address_of


@pytest.fixture(params=[*SERVERS, "gcs", "azure"])
def store(request: pytest.FixtureRequest) -> ObjectStore:
    """An empty bucket or container of each server."""
    name: str = request.param
    if name not in SERVERS:
        found: ObjectStore = request.getfixturevalue(name)
        return found
    return SERVERS[name].bucket(request.getfixturevalue("s3_addresses")(name))


def main(names: Sequence[str]) -> int:
    """Installs the servers with these names, or all; returns the number of those that failed."""
    failed = sum(not _is_installed(name) for name in names or SERVERS)
    shutil.rmtree(ROOT / "go", ignore_errors=True)
    return failed


def _is_installed(name: str) -> bool:
    try:
        SERVERS[name].install()
    except (OSError, subprocess.SubprocessError, AssertionError) as e:
        print(f"{name} was not installed, so its tests will skip: {e}", file=sys.stderr)
        return False
    return True


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
