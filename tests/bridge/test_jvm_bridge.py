"""The driver's end of the bridge, its side process and a real HDFS, without Spark."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from spark_ckpt.bridge.protocol import Message
from tests.bridge import wire
from tests.bridge.test_side_process import RemoteDriver
from tests.support.hdfs import Hdfs, from_jvm
from tests.support.invariants import assert_invariants, completed_versions
from tests.support.processes import kill

PATIENCE_SECONDS = 120


class JvmBridge:
    """`PythonBridge` in the JVM of the cluster."""

    def __init__(self, hdfs: Hdfs) -> None:
        self._hdfs = hdfs
        # A map with a default is a function of everything: notifications are taken and forgotten.
        forget = hdfs.jvm.scala.Predef.Map().empty().withDefaultValue(hdfs.jvm.scala.runtime.BoxedUnit.UNIT)
        bridge = hdfs.jvm.org.apache.spark.sql.ckpt.bridge.PythonBridge
        self._bridge = bridge(sys.executable, "4.2.0", hdfs.hadoop_files(), forget)
        self._patience = hdfs.jvm.scala.concurrent.duration.Duration.apply(PATIENCE_SECONDS, "s")

    def send(self, request: wire.Request) -> Any:
        """Sends a request; returns what `receive` takes."""
        kind, header, index, payload = request
        return self._bridge.send(self._hdfs.to_jvm(Message(0, kind, json.dumps(header), index, payload)))

    def receive(self, future: Any) -> Mapping[str, Any]:
        """The header of a reply that must be no error."""
        reply = from_jvm(0, self._hdfs.jvm.scala.concurrent.Await.result(future, self._patience))
        assert reply.kind == "ok", reply.header
        header: Mapping[str, Any] = json.loads(reply.header)
        return header

    def run_batch(self, driver: RemoteDriver, version: int) -> Mapping[str, Any]:
        """A batch from its trigger to its last ack, whose reply is returned."""
        self.receive(self.send(wire.trigger(driver.make_trigger(version))))
        acks = driver.acks(version)
        last = [self.receive(future) for future in [self.send(wire.ack(ack)) for ack in acks]][-1]
        for ack in acks:
            driver.take_over(ack)
        return last

    def kill(self) -> None:
        """SIGKILL to the side process."""
        kill(int(self._bridge.pid().get()))

    def close(self) -> None:
        """The driver ends."""
        self._bridge.close()


@pytest.fixture
def bridge(hdfs: Hdfs) -> Iterator[JvmBridge]:
    bridge = JvmBridge(hdfs)
    yield bridge
    bridge.close()


def test_checkpoints_on_hdfs_with_a_side_process_that_dies(hdfs: Hdfs, bridge: JvmBridge) -> None:
    location = hdfs.new_location()
    driver = RemoteDriver(location, run_id="run-1")
    for version in range(1, 4):
        assert bridge.run_batch(driver, version)["completed_version"] == version
    bridge.kill()
    for version in range(4, 6):
        assert bridge.run_batch(driver, version)["completed_version"] == version
    # Its end is asked for, and the driver closes at once: it is done all the same, which needs files.
    bridge.send(("close", {"job": driver.run_id, "status": "finished"}, b"", b""))
    bridge.close()
    storage = hdfs.storage(location)
    assert_invariants(storage, orphans=True)  # what the process that died was to delete stays until another run claims
    assert completed_versions(storage) == [4, 5]
