from __future__ import annotations

import os
from pathlib import Path

import pytest

from spark_ckpt.errors import SettingError
from spark_ckpt.storage import FsspecStorage, LocalStorage, resolve, s3_options
from spark_ckpt.storage.errors import UnsupportedSchemeError


@pytest.mark.parametrize(
    ("location", "path"),
    [
        ("/tmp/q", "/tmp/q"),
        ("file:/tmp/q", "/tmp/q"),
        ("file:///tmp/q", "/tmp/q"),
        ("file://localhost/tmp/q", "/tmp/q"),
        ("FILE:/tmp/q", "/tmp/q"),
        ("/tmp/with space and ü%20", "/tmp/with space and ü%20"),
        ("/tmp/a:b", "/tmp/a:b"),
    ],
)
def test_forms_of_a_local_location(location: str, path: str) -> None:
    storage = resolve(location)
    assert isinstance(storage, LocalStorage)
    assert storage.location == path


def test_a_relative_path_counts_from_the_working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert resolve("query").location == os.path.join(tmp_path, "query")


def test_a_plain_path_is_on_the_default_file_system() -> None:
    storage = resolve("/q/ckpt", {"spark.hadoop.fs.defaultFS": "memory://somewhere"})
    assert isinstance(storage, FsspecStorage)
    storage.write_atomic("x", b"1")
    assert resolve("memory://somewhere/q/ckpt").read("x") == b"1"
    storage.delete("x")


@pytest.mark.parametrize("location", ["hdfs://host:8020/q", "viewfs:/q", "wasb://x", "dbfs:/q"])
def test_an_unknown_scheme_is_refused_with_those_that_are_known(location: str) -> None:
    with pytest.raises(UnsupportedSchemeError, match="file, s3a, s3") as caught:
        resolve(location)
    assert caught.value.scheme == location.partition(":")[0]


def test_a_plain_path_on_an_unknown_default_file_system_is_refused() -> None:
    with pytest.raises(UnsupportedSchemeError, match="hdfs"):
        resolve("/q", {"fs.defaultFS": "hdfs://host"})


def test_a_file_url_with_a_host_is_refused() -> None:
    with pytest.raises(UnsupportedSchemeError):
        resolve("file://host/q")


@pytest.mark.parametrize("scheme", ["s3a", "s3", "s3n"])
def test_s3_locations(scheme: str) -> None:
    storage = resolve(f"{scheme}://bucket/a/b", {"fs.s3a.access.key": "k", "fs.s3a.secret.key": "hidden"})
    assert isinstance(storage, FsspecStorage)
    assert storage._root == "bucket/a/b"
    assert storage.describe("x") == f"{scheme}://bucket/a/b/x"
    assert "hidden" not in repr(storage)


def test_s3_without_a_bucket_is_refused() -> None:
    with pytest.raises(UnsupportedSchemeError, match="bucket"):
        resolve("s3a:///")


def test_s3a_settings_become_arguments_of_s3fs() -> None:
    settings = {
        "fs.s3a.endpoint": "store:9000",
        "fs.s3a.connection.ssl.enabled": "false",
        "fs.s3a.path.style.access": "true",
        "fs.s3a.access.key": "general",
        "fs.s3a.bucket.special.access.key": "its own",
        "fs.s3a.secret.key": "secret",
        "fs.s3a.session.token": "token",
        "fs.s3a.endpoint.region": "eu-west-1",
    }
    assert s3_options("special", settings) == {
        "key": "its own",
        "secret": "secret",
        "token": "token",
        "endpoint_url": "http://store:9000",
        "client_kwargs": {"region_name": "eu-west-1"},
        "config_kwargs": {"s3": {"addressing_style": "path"}},
    }
    assert s3_options("other", settings)["key"] == "general"


def test_without_settings_s3_uses_the_usual_chain() -> None:
    assert s3_options("bucket", {}) == {}


def test_a_flag_that_is_neither_true_nor_false_is_refused() -> None:
    with pytest.raises(SettingError, match=r"path\.style\.access: 'yes'"):
        s3_options("bucket", {"fs.s3a.path.style.access": "yes"})
