"""Driver's end of the bridge with a side process and a real HDFS, without Spark."""

from __future__ import annotations

import json
import os
import signal
import sys
import textwrap
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError

from spark_ckpt.completed.records import ClaimRecord, decode_record
from spark_ckpt.messages import Decline, EndOffsets
from tests.bridge import wire
from tests.bridge.remote_driver import RemoteDriver
from tests.support.hdfs import Hdfs, from_jvm
from tests.support.invariants import assert_invariants, completed_versions
from tests.support.processes import command_line, kill
from tests.support.waiting import PATIENCE


class JvmBridge:
    """`PythonBridge` in the JVM of the cluster."""

    def __init__(self, hdfs: Hdfs, python: str | Path = sys.executable, silence: float = PATIENCE) -> None:
        self._hdfs = hdfs
        limit = hdfs.jvm.scala.concurrent.duration.Duration.apply(int(silence), "s")
        # A Scala map with a default accepts every argument as a function: it ignores notifications.
        forget = hdfs.jvm.scala.Predef.Map().empty().withDefaultValue(hdfs.jvm.scala.runtime.BoxedUnit.UNIT)
        bridge = hdfs.jvm.org.apache.spark.sql.ckpt.bridge.PythonBridge
        self._bridge = bridge(str(python), "4.2.0", hdfs.hadoop_files(), limit, forget)
        self._patience = hdfs.jvm.scala.concurrent.duration.Duration.apply(int(PATIENCE), "s")

    def send(self, request: wire.Request) -> Any:
        """Sends a request; returns the future for `receive`."""
        return self._bridge.send(self._hdfs.to_jvm(wire.message_of(request)))

    def receive(self, future: Any) -> Mapping[str, Any]:
        """Header of the reply, which must not be an error."""
        reply = from_jvm(0, self._hdfs.jvm.scala.concurrent.Await.result(future, self._patience))
        assert reply.kind == "ok", reply.header
        header: Mapping[str, Any] = json.loads(reply.header)
        return header

    def failure(self, future: Any) -> str:
        """Message of the exception of a failed request."""
        with pytest.raises(Py4JJavaError) as caught:
            self._hdfs.jvm.scala.concurrent.Await.result(future, self._patience)
        return str(caught.value.java_exception.getMessage())

    def run_batch(self, driver: RemoteDriver, version: int) -> Mapping[str, Any]:
        """Runs a batch from its trigger to its last ack; returns the reply to that ack."""
        self.receive(self.send(wire.trigger(driver.make_trigger(version))))
        acks = driver.acks(version)
        last = [self.receive(future) for future in [self.send(wire.ack(ack)) for ack in acks]][-1]
        for ack in acks:
            driver.take_over(ack)
        return last

    def run_real_time_batch(self, driver: RemoteDriver, version: int, deaths: int) -> Mapping[str, Any]:
        """Runs a batch in real-time mode; the side process dies between the last ack and the end offsets."""
        self.receive(self.send(wire.trigger(driver.make_trigger(version))))
        acks = driver.acks(version)
        for ack in acks:
            assert self.receive(self.send(wire.ack(ack)))["completed"] is None
            driver.take_over(ack)
        for _ in range(deaths):
            self.kill()
        entry = f'v1\n{{}}\n{{"topic":{{"0":{version}}}}}'
        return self.receive(self.send(wire.end_offsets(EndOffsets(version - 1, version, entry, job=driver.run_id))))

    @property
    def pid(self) -> int:
        """Process id of the side process."""
        return int(self._bridge.pid().get())

    @property
    def hung(self) -> int:
        """Number of side processes that were killed because they were silent."""
        return int(self._bridge.hung())

    def kill(self) -> None:
        """Sends SIGKILL to the side process."""
        kill(self.pid)

    def close(self) -> None:
        """Closes the bridge, as the driver does at its end."""
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
    # The job's end is requested and the driver closes at once: the job still ends properly, which needs files.
    bridge.send(("close", {"job": driver.run_id, "status": "finished"}, b"", b""))
    bridge.close()
    storage = hdfs.storage(location)
    assert_invariants(storage, orphans=True)  # deletions of the killed process wait for the next claim
    assert completed_versions(storage) == [4, 5]


def test_real_time_batches_with_a_side_process_that_dies(hdfs: Hdfs, bridge: JvmBridge) -> None:
    """Its successor learns of the acks again, and of the end offsets. After the batch it learns of neither."""
    location = hdfs.new_location()
    driver = RemoteDriver(location, run_id="run-1", real_time_ms=5000)
    for version, deaths in enumerate((0, 1, 0, 1), start=1):
        assert bridge.run_real_time_batch(driver, version, deaths)["completed_version"] == version
    bridge.kill()
    assert bridge.run_real_time_batch(driver, 5, 0)["completed_version"] == 5
    storage = hdfs.storage(location)
    assert_invariants(storage, orphans=True)
    assert completed_versions(storage) == [4, 5]


SILENCE = 3.0
"""Short silence that ends a side process, in seconds."""


def newest_claim(location: Path) -> ClaimRecord:
    """The last claim in the log of a location."""
    files = sorted((location / "ckpt" / "completed").glob("*.json"))
    records = [decode_record(file.read_bytes(), str(file)) for file in files]
    return [record for record in records if isinstance(record, ClaimRecord)][-1]


def test_a_side_process_that_hangs_is_replaced_and_its_messages_replayed(hdfs: Hdfs, tmp_path: Path) -> None:
    """Twice: in the middle of a checkpoint, and with nothing to do. Nothing fails."""
    bridge = JvmBridge(hdfs, silence=SILENCE)
    driver = RemoteDriver(tmp_path / "q", run_id="run-1")
    assert bridge.run_batch(driver, 1)["completed_version"] == 1
    for version in (2, 3):
        hanging = bridge.pid
        if version == 2:
            bridge.receive(bridge.send(wire.trigger(driver.make_trigger(version))))
        os.kill(hanging, signal.SIGSTOP)
        assert bridge.run_batch(driver, version)["completed_version"] == version
        assert not command_line(hanging)
        assert bridge.hung == version - 1
        assert newest_claim(tmp_path / "q").hung == version - 1
    bridge.close()
    assert_invariants(tmp_path / "q", orphans=True)
    assert completed_versions(tmp_path / "q") == [2, 3]


SLOW = textwrap.dedent(
    """
    import sys
    import time
    from pathlib import Path
    from spark_ckpt.bridge import __main__ as main
    from spark_ckpt.coordinator.job import Job

    def waits(handle):
        def wait_and_handle(self, message, *others):
            while not Path(sys.argv[1]).exists():
                time.sleep(0.1)
            return handle(self, message, *others)
        return wait_and_handle

    Job.trigger = waits(Job.trigger)
    sys.exit(main.main())
    """
)


def test_a_side_process_that_waits_for_a_storage_is_not_silent(hdfs: Hdfs, tmp_path: Path) -> None:
    program, python, end = tmp_path / "slow.py", tmp_path / "python", tmp_path / "end"
    program.write_text(SLOW)
    python.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{program}" "{end}"\n')
    python.chmod(0o755)
    bridge = JvmBridge(hdfs, python, silence=SILENCE)
    driver = RemoteDriver(tmp_path / "q", run_id="run-1")
    asked = bridge.send(wire.trigger(driver.make_trigger(1)))
    time.sleep(3 * SILENCE)
    end.touch()
    bridge.receive(asked)
    assert bridge.hung == 0
    bridge.close()


MAX_CRASHES = 5
"""`PythonBridge.MaxCrashes`."""

DIES = textwrap.dedent(
    """
    import os, sys
    from pathlib import Path
    from spark_ckpt.bridge import __main__ as main
    from spark_ckpt.coordinator.job import Job

    with Path(__file__).with_name("lives").open("a") as lives:
        lives.write(f"{os.getpid()}\\n")

    def dies(handle):
        def handle_or_die(self, message, *others):
            if message.job == "poison":
                print("a library has aborted", file=sys.stderr, flush=True)
                os._exit(9)
            return handle(self, message, *others)
        return handle_or_die

    setattr(Job, sys.argv[1], dies(getattr(Job, sys.argv[1])))
    sys.exit(main.main())
    """
)


class DyingPython:
    """Python whose side process dies on every message of a given kind from a job named `poison`."""

    def __init__(self, directory: Path, method: str) -> None:
        program = directory / "dies.py"
        program.write_text(DIES)
        self.path = directory / "python"
        self.path.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{program}" {method}\n')
        self.path.chmod(0o755)
        self._lives = directory / "lives"

    @property
    def lives(self) -> int:
        """Number of side processes started so far."""
        return len(self._lives.read_text().splitlines())


@pytest.mark.parametrize("method", ["trigger", "acknowledge", "decline"])
def test_a_request_that_ends_every_side_process_fails_and_others_go_on(hdfs: Hdfs, tmp_path: Path, method: str) -> None:
    python = DyingPython(tmp_path, method)
    bridge = JvmBridge(hdfs, python.path)
    poison, other = RemoteDriver(tmp_path / "poison", run_id="poison"), RemoteDriver(tmp_path / "other", run_id="other")
    bridge.run_batch(other, 1)
    asked = [bridge.send(wire.trigger(poison.make_trigger(1)))]
    if method != "trigger":
        bridge.receive(asked.pop())
        ack = poison.acks(1)[0]
        declined = Decline(ack.subtask, 0, 1, ack.task, "no space left", job="poison")
        asked.append(bridge.send(wire.ack(ack) if method == "acknowledge" else wire.decline(declined)))
    # Replies to other queries must not reset the count.
    for version in range(2, 12):
        bridge.run_batch(other, version)
    for message in (bridge.failure(asked[0]), bridge.failure(bridge.send(wire.trigger(poison.make_trigger(2))))):
        assert "'trigger'" in message if method == "trigger" else "of the run poison, batch 0, version 1" in message
        assert f"ended {MAX_CRASHES + 1} times over one request" in message
        assert "exit code 9" in message
        assert "a library has aborted" in message
    bridge.run_batch(other, 12)  # by now, the last process has recorded its life
    assert MAX_CRASHES + 1 < python.lives <= MAX_CRASHES + 4  # two may have had several requests in flight
    lives = python.lives
    bridge.run_batch(other, 13)
    # The end of the run resets its count.
    bridge.receive(bridge.send(("close", {"job": "poison", "status": "failed"}, b"", b"")))
    bridge.send(("close", {"job": "other", "status": "finished"}, b"", b""))
    bridge.close()
    assert python.lives == lives
    assert_invariants(tmp_path / "other", orphans=True)
    assert completed_versions(tmp_path / "other") == [12, 13]


def test_a_side_process_that_does_not_start_fails_what_waits(hdfs: Hdfs, tmp_path: Path) -> None:
    python = tmp_path / "python"
    python.write_text("#!/bin/sh\necho no memory >&2\nexit 3\n")
    python.chmod(0o755)
    bridge = JvmBridge(hdfs, python)
    driver = RemoteDriver(tmp_path / "q", run_id="run-1")
    message = bridge.failure(bridge.send(wire.trigger(driver.make_trigger(1))))
    assert f"ended {MAX_CRASHES + 1} times in a row before it had started, last with exit code 3" in message
    assert "no memory" in message
    # A later start may succeed.
    python.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    assert bridge.run_batch(driver, 1)["completed_version"] == 1
    bridge.close()


def test_modules_of_the_working_directory_are_not_imported(hdfs: Hdfs, bridge: JvmBridge, tmp_path: Path) -> None:
    """The driver's working directory may be writable for other users."""
    marks = [tmp_path / name for name in ("msgspec", "runpy", "spark_ckpt")]
    planted = [hdfs.working_directory / f"{mark.name}.py" for mark in marks]
    for module, mark in zip(planted, marks, strict=True):
        module.write_text(f"open({str(mark)!r}, 'w').close()\n")
    try:
        assert bridge.run_batch(RemoteDriver(tmp_path / "q", run_id="run-1"), 1)["completed_version"] == 1
    finally:
        for module in planted:
            module.unlink()
    assert not any(mark.exists() for mark in marks)
