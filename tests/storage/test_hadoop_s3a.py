"""Storage through the driver on S3A, whose renames are not exclusive, and whose conditional create is."""

from __future__ import annotations

import threading
import uuid
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from benchmarks.object_store import s3a_jars
from spark_ckpt.bridge.driver_files import DriverFiles
from spark_ckpt.bridge.protocol import Message
from spark_ckpt.jars import jar_path
from spark_ckpt.storage import CreateOutcome, HadoopStorage
from spark_ckpt.storage.errors import ExclusiveCreateUnsupportedError
from tests.support.gateway import GatewayJvm
from tests.support.hdfs import from_jvm
from tests.support.s3 import S3
from tests.support.session import use_this_python

CONTENDERS, ROUNDS = 8, 3


@pytest.fixture(scope="module")
def gateway(s3a: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    use_this_python()
    folder = tmp_path_factory.mktemp("s3a")
    jvm = GatewayJvm([s3a_jars() / "*", Path(jar_path())], folder, folder / "jvm.log")
    yield jvm.classes
    jvm.close()


def storage_of(gateway: Any, s3: S3, settings: Mapping[str, str]) -> HadoopStorage:
    """A storage with a file system of its own, below the scheme `store`, which S3A serves."""
    conf = gateway.org.apache.hadoop.conf.Configuration()
    for key, value in {
        "fs.store.impl": "org.apache.hadoop.fs.s3a.S3AFileSystem",
        "fs.AbstractFileSystem.store.impl": "org.apache.hadoop.fs.s3a.S3A",
        "fs.store.impl.disable.cache": "true",
        "fs.s3a.endpoint": s3.endpoint,
        "fs.s3a.endpoint.region": "us-east-1",
        "fs.s3a.path.style.access": "true",
        "fs.s3a.access.key": "test",
        "fs.s3a.secret.key": "test",
        **settings,
    }.items():
        conf.set(key, value)
    shim = gateway.org.apache.spark.sql.ckpt
    hadoop_files = shim.bridge.HadoopFiles(gateway.com.google.common.base.Functions.constant(conf))

    def handle(request: Message) -> None:
        fields = (request.kind, request.job, request.header.decode(), request.index, bytes(request.payload))
        files.answered(from_jvm(request.id, hadoop_files.handle(shim.protocol.Message(*fields))))

    files = DriverFiles(handle)
    return HadoopStorage(files, f"store://{s3.bucket}/{uuid.uuid4().hex}")


def test_its_conditional_create_is_exclusive(gateway: Any, s3: S3) -> None:
    storage = storage_of(gateway, s3, {})
    storage.probe("ckpt/completed")
    assert list(storage.list("ckpt/completed")) == []
    outcomes: list[CreateOutcome] = []
    barrier = threading.Barrier(CONTENDERS)

    def race(contender: int) -> None:
        for round_ in range(ROUNDS):
            barrier.wait()
            outcomes.append(storage.create_exclusive(f"race/{round_}", b"%d" % contender * 500).outcome)

    threads = [threading.Thread(target=race, args=(contender,)) for contender in range(CONTENDERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert Counter(outcomes) == {CreateOutcome.WON: ROUNDS, CreateOutcome.LOST: ROUNDS * (CONTENDERS - 1)}
    assert sorted((file.name, file.size) for file in storage.list("race")) == [(f"{n}", 500) for n in range(ROUNDS)]


def test_without_it_nothing_fences(gateway: Any, s3: S3) -> None:
    storage = storage_of(gateway, s3, {"fs.s3a.create.conditional.enabled": "false"})
    with pytest.raises(ExclusiveCreateUnsupportedError, match=r"s3a\.S3AFileSystem.*'zookeeper'"):
        storage.probe("ckpt/completed")
    storage.write_atomic("a", b"1")
    assert storage.create_exclusive("a", b"2").outcome is CreateOutcome.LOST
    assert storage.read("a") == b"1"
