"""Commands on remote file systems: in memory, and S3."""

from __future__ import annotations

import importlib
import json
import socket
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path

import fsspec
import pytest
from fsspec.implementations.memory import MemoryFileSystem

from spark_ckpt import metadata as m
from spark_ckpt.cli.results.rewrite import Target
from spark_ckpt.location import file_system
from spark_ckpt.storage import remote
from spark_ckpt.storage.remote import READERS
from spark_ckpt.storage.s3_config import S3_CLIENT
from tests.metadata.corpus import VECTORS
from tests.support.cli import run
from tests.support.faulty_s3 import FaultyS3, S3Fault
from tests.support.hdfs import Hdfs
from tests.support.locations import make_location
from tests.support.s3 import HOST, S3
from tests.support.uploads import copy
from tests.support.waiting import eventually

INCREMENTAL = VECTORS / "flink" / "f120-rocksdb-incr-p2-second"
ABSOLUTE = "oracle://ckpt"


@pytest.fixture(params=["memory", "s3"])
def root(request: pytest.FixtureRequest) -> Iterator[str]:
    """URL of an empty directory, with patterns and escapes that are part of its name."""
    if request.param == "memory":
        yield f"memory://{uuid.uuid4().hex}/odd [1] {{a,b}}%20"
        MemoryFileSystem.store.clear()
    else:
        bucket: S3 = request.getfixturevalue("s3")
        yield f"{bucket.url}/deep/odd [1] {{a,b}}%20"


def test_a_location_of_ours(root: str, tmp_path: Path) -> None:
    local = make_location(tmp_path)
    copy(local, root)
    assert run("list", root).stdout == run("list", local).stdout
    assert run("list", f"{root}/", "--json").json["location"] == f"{root}/"
    shown, expected = run("inspect", root, "--json").json, run("inspect", local, "--json").json
    assert shown.pop("path") == f"{root}/ckpt/chk-3/_metadata"
    assert expected.pop("path") == f"{local}/ckpt/chk-3/_metadata"
    assert shown == expected
    assert run("inspect", root, "--id", 2, "--json").json["checkpoint_id"] == 2
    assert run("inspect", root, "--id", 9, "--json").error["available"] == [2, 3]


def test_checkpoints_of_flink(root: str) -> None:
    for number in (1, 2):
        copy(INCREMENTAL, f"{root}/chk-{number}", "_metadata")
    for place in (root, f"{root}/chk-2", f"{root}/chk-2/", f"{root}/chk-2/_metadata"):
        assert run("inspect", place, "--json").json["path"] == f"{root}/chk-2/_metadata"
    listed = run("list", root, "--json")
    assert (listed.status, listed.error["error"]) == (1, "ForeignLocationError")


def test_convert(root: str) -> None:
    copy(INCREMENTAL, f"{root}/chk-2", "_metadata")
    done = run("convert", root, f"{root}/new", "--to-version", 3, "--json").json
    assert (done["source"], done["target"]) == (f"{root}/chk-2/_metadata", f"{root}/new/_metadata")
    assert m.load(f"{root}/new") == m.convert(m.load(INCREMENTAL), 3)
    beside = run("convert", f"{root}/chk-2", f"{root}/chk-2/_metadata.v3", "--to-version", 3, "--json").json
    assert (len(done["warnings"]), beside["warnings"]) == (1, [])
    assert m.load(f"{root}/chk-2/_metadata.v3").version == 3


def test_relocate(root: str) -> None:
    done = run("relocate", ABSOLUTE, f"{root}/moved", INCREMENTAL, f"{root}/moved", "--json").json
    assert done["rewritten"]["count"] == 23
    assert m.load(f"{root}/moved") == m.relocate(m.load(INCREMENTAL), ABSOLUTE, f"{root}/moved").metadata


def test_nothing_is_overwritten(root: str) -> None:
    copy(INCREMENTAL, f"{root}/chk-2", "_metadata")
    before = fsspec.open(f"{root}/chk-2/_metadata").open().read()
    for target in (f"{root}/chk-2", f"{root}/chk-2/", f"{root}/chk-2/_metadata"):
        for options in ((), ("--dry-run",)):
            refused = run("convert", root, target, "--to-version", 3, "--json", *options)
            assert (refused.status, refused.error["error"]) == (1, "TargetExistsError")
    assert fsspec.open(f"{root}/chk-2/_metadata").open().read() == before


def test_a_target_that_appears_in_between(root: str, monkeypatch: pytest.MonkeyPatch) -> None:
    target = Target(f"{root}/new")
    Target(f"{root}/new").write(b"other")
    monkeypatch.setattr(target, "check_absent", lambda: None)
    with pytest.raises(FileExistsError):
        target.write(b"ours")
    assert fsspec.open(f"{root}/new/_metadata").open().read() == b"other"
    target.write(b"other")  # as with a repeated request


def test_a_dry_run_writes_nothing(root: str) -> None:
    would = run("relocate", ABSOLUTE, "/new", INCREMENTAL, f"{root}/new", "--json", "--dry-run").json
    assert not would["written"]
    assert run("inspect", f"{root}/new").status == 1


def test_missing_places(root: str) -> None:
    copy(INCREMENTAL, f"{root}/chk-2", "_metadata")
    for command in ("list", "inspect"):
        missing = run(command, f"{root}/absent", "--json")
        assert (missing.status, missing.error["error"]) == (1, "LocationNotFoundError")
        assert missing.error["location"] == f"{root}/absent"


def test_s3a_is_s3(s3: S3, tmp_path: Path) -> None:
    s3a = s3.url.replace("s3:", "s3a:")
    copy(make_location(tmp_path), s3.url)
    assert run("list", s3a).stdout == run("list", s3.url).stdout
    assert run("convert", s3.url, f"{s3a}/new", "--to-version", 2).status == 0
    assert run("inspect", f"{s3.url}/new", "--json").json["version"] == 2
    refused = run("convert", s3.url, f"{s3a}/ckpt/chk-3", "--to-version", 2, "--json")
    assert refused.error["error"] == "TargetExistsError"


# ---- failures on S3 --------------------------------------------------------------------------------------------------

COMMANDS = [
    ("list", "{}"),
    ("inspect", "{}"),
    ("convert", "{}", "/absent/target", "--to-version", "3"),
    ("relocate", "/a", "/b", "{}", "/absent/target"),
]
WRITING = ("relocate", ABSOLUTE, "/b", INCREMENTAL, "{}")

# A client that finds no server or no credentials tries again for seconds.
SLOW_COMMANDS = [
    COMMANDS[0],
    WRITING,
    *(pytest.param(command, marks=pytest.mark.long) for command in COMMANDS[1:]),
]


def fill(command: tuple[object, ...], place: str) -> list[str]:
    return [place if part == "{}" else str(part) for part in command]


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command[0])
@pytest.mark.parametrize("key", ["", "/", "/a/key"])
def test_a_missing_bucket(s3: S3, command: tuple[str, ...], key: str) -> None:
    failed = run(*fill(command, f"s3://no-such-bucket{key}"), "--json")
    assert (failed.status, failed.error["error"]) == (1, "LocationNotFoundError")
    assert "s3://no-such-bucket" in failed.error["location"]


def test_a_target_in_a_missing_bucket(s3: S3) -> None:
    failed = run(*fill(WRITING, "s3://no-such-bucket/x"), "--json")
    assert (failed.status, failed.error["error"]) == (1, "StorageError")
    assert (
        "cannot create s3://no-such-bucket/x/_metadata: The specified bucket does not exist" in failed.error["message"]
    )


@pytest.mark.parametrize("command", SLOW_COMMANDS, ids=lambda command: command[0])
def test_no_credentials(s3: S3, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...]) -> None:
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    failed = run(*fill(command, f"{s3.url}/x"), "--json")
    assert (failed.status, failed.error["error"], failed.stdout) == (1, "StorageError", "")
    assert "Unable to locate credentials" in failed.error["message"]
    assert failed.error["path"].startswith(f"{s3.url}/x")


@pytest.mark.parametrize("command", SLOW_COMMANDS, ids=lambda command: command[0])
def test_nobody_listens_at_the_endpoint(s3: S3, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...]) -> None:
    with socket.socket() as free:
        free.bind((HOST, 0))
        endpoint = f"http://{HOST}:{free.getsockname()[1]}"
        monkeypatch.setenv("AWS_ENDPOINT_URL", endpoint)
        failed = run(*fill(command, f"{s3.url}/x"), "--json")
    assert (failed.status, failed.error["error"], failed.stdout) == (1, "StorageError", "")
    assert f'Could not connect to the endpoint URL: "{endpoint}' in failed.error["message"]


def test_an_endpoint_that_never_answers(s3: S3, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(S3_CLIENT, "read_timeout", 0.1)
    with socket.create_server((HOST, 0)) as mute:
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://{HOST}:{mute.getsockname()[1]}")
        failed = run("inspect", f"{s3.url}/x", "--json")
    assert (failed.status, failed.error["error"]) == (1, "StorageError")
    assert "Read timeout" in failed.error["message"]


@pytest.mark.parametrize(("command", "tries"), [(COMMANDS[1], 6), (WRITING, 6)], ids=["a look", "a storage"])
def test_only_one_layer_asks_again(
    s3: S3, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...], tries: int
) -> None:
    """Retries in several layers would multiply the waiting time: a try on a silent endpoint takes 10 s."""
    monkeypatch.setitem(S3_CLIENT, "read_timeout", 0.2)
    monkeypatch.setattr(remote, "_FIRST_PAUSE_SECONDS", 0.0)
    with FaultyS3() as server:
        monkeypatch.setenv("AWS_ENDPOINT_URL", server.endpoint)
        for method in ("GET", "HEAD", "PUT"):
            server.fail(method, "", S3Fault.HELD, 1_000)
        failed = run(*fill(command, f"{s3.url}/x"), "--json")
        # The client may time out before the server records the last request.
        eventually(lambda: len(server.requests) >= tries, what=lambda: f"{tries} requests, not {server.requests}")
        requests = list(server.requests)
    assert (failed.status, failed.error["error"]) == (1, "StorageError")
    assert len(requests) == tries, requests


def test_waiting_for_s3_has_an_end(s3: S3) -> None:
    on_s3, _ = file_system.file_system_of(f"{s3.url}/x")
    assert on_s3.s3._client_config.connect_timeout == S3_CLIENT["connect_timeout"]
    assert on_s3.s3._client_config.read_timeout == S3_CLIENT["read_timeout"]
    assert on_s3.s3._client_config.retries["total_max_attempts"] == 1
    assert on_s3.s3._client_config.max_pool_connections == READERS


def test_the_configuration_of_fsspec_is_kept(s3: S3, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ENDPOINT_URL", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    client = {"read_timeout": 7, "s3": {"addressing_style": "path"}}
    options = {"endpoint_url": s3.endpoint, "key": "test", "secret": "test", "config_kwargs": client}
    monkeypatch.setitem(fsspec.config.conf, "s3", options)
    assert run("convert", INCREMENTAL, f"{s3.url}/x", "--to-version", 3).status == 0
    assert json.loads(run("inspect", f"{s3.url}/x", "--json").stdout)["version"] == 3
    on_s3, _ = file_system.file_system_of(s3.url)
    assert on_s3.s3._client_config.read_timeout == 7
    assert on_s3.s3._client_config.connect_timeout == S3_CLIENT["connect_timeout"]
    assert on_s3.s3._client_config.s3 == {"addressing_style": "path"}


def test_s3_without_s3fs(monkeypatch: pytest.MonkeyPatch) -> None:
    # fsspec caches imports in `fsspec.registry`, a module hidden by a mapping with the same name.
    monkeypatch.delitem(importlib.import_module("fsspec.registry")._registry, "s3", raising=False)
    monkeypatch.delitem(sys.modules, "spark_ckpt.storage.s3_client", raising=False)
    monkeypatch.setitem(sys.modules, "s3fs", None)
    for command in (*COMMANDS, WRITING):
        failed = run(*fill(command, "s3://bucket/x"), "--json")
        assert (failed.status, failed.error["error"]) == (1, "S3fsNotFoundError")
        assert f"{sys.executable} -m pip install" in failed.error["message"]


@pytest.mark.parametrize(
    ("place", "package"),
    [("az://c/q", "adlfs"), ("gcs://b/q", "gcsfs")],
)
def test_a_scheme_whose_package_is_not_installed(place: str, package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    for command in COMMANDS:
        failed = run(*fill(command, place), "--json")
        assert (failed.status, failed.error["error"]) == (1, "FileSystemPackageError")
        assert failed.error["package"] == package
        assert f"{sys.executable} -m pip install {package}" in failed.error["message"]


@pytest.mark.parametrize(
    ("place", "package", "error", "extra"),
    [
        ("abfss://c@account.dfs.core.windows.net/q", "adlfs", "AdlfsNotFoundError", "azure"),
        ("gs://b/q", "gcsfs", "GcsfsNotFoundError", "gcs"),
    ],
)
def test_an_object_store_without_its_client(
    place: str, package: str, error: str, extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    for scheme, client in (("gs", "gcs_client"), ("abfss", "azure_client")):
        monkeypatch.delitem(importlib.import_module("fsspec.registry")._registry, scheme, raising=False)
        monkeypatch.delitem(sys.modules, f"spark_ckpt.storage.{client}", raising=False)
    for command in COMMANDS:
        failed = run(*fill(command, place), "--json")
        assert (failed.status, failed.error["error"]) == (1, error)
        assert f"{sys.executable} -m pip install 'spark-ckpt[{extra}]'" in failed.error["message"]


# ---- HDFS ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scheme", ["hdfs", "viewfs"])
def test_hdfs_without_a_client(scheme: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HADOOP_HOME", str(tmp_path))  # a Hadoop without libhdfs
    monkeypatch.delenv("ARROW_LIBHDFS_DIR", raising=False)
    for command in (*COMMANDS, WRITING):
        failed = run(*fill(command, f"{scheme}://namenode/x"), "--json")
        assert (failed.status, failed.error["error"], failed.stdout) == (1, "HadoopNotFoundError", "")
        assert failed.error["location"].startswith(f"{scheme}://namenode/x")
        for way_out in ("webhdfs://", "HADOOP_HOME", "hdfs dfs -get"):
            assert way_out in failed.error["message"]
        assert "\n" not in failed.error["message"]


def test_hdfs_by_its_web_address(hdfs: Hdfs, tmp_path: Path) -> None:
    local, name = Path(make_location(tmp_path)), uuid.uuid4().hex
    storage = hdfs.storage(f"{hdfs.url}/{name}")
    for path in local.glob("**/*"):
        if path.is_file():
            storage.write_atomic(str(path.relative_to(local)), path.read_bytes())
    place = f"{hdfs.web_url}/{name}"
    assert run("list", place).stdout == run("list", local).stdout
    assert run("inspect", place, "--json").json["path"] == f"{place}/ckpt/chk-3/_metadata"
    assert run("list", f"{place}-absent", "--json").error["error"] == "LocationNotFoundError"
    web = file_system.storage_at(place)
    times = {file.name: file.modified_ms for file in web.list("ckpt/completed")}
    assert times == {file.name: file.modified_ms for file in storage.list("ckpt/completed")}
    assert None not in times.values()
