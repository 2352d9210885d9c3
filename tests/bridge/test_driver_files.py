"""File access through the driver: requests in the opposite direction, nested within the driver's own requests."""

from __future__ import annotations

import json
import queue
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest

from spark_ckpt.bridge.driver_files import DriverFiles
from spark_ckpt.bridge.protocol import FILE, Message
from spark_ckpt.storage import HadoopStorage
from spark_ckpt.storage.errors import DriverGoneError, HadoopError
from tests.bridge import wire
from tests.bridge.remote_driver import RemoteDriver, run_batch
from tests.bridge.side_process import SideProcess
from tests.support.hadoop import MemoryHadoop
from tests.support.invariants import assert_invariants, completed_versions
from tests.support.waiting import PATIENCE

LOCATION = "hdfs://namenode/q"


@pytest.fixture
def hadoop() -> MemoryHadoop:
    return MemoryHadoop()


@pytest.fixture
def process(hadoop: MemoryHadoop) -> Iterator[SideProcess]:
    with SideProcess(hadoop=hadoop) as process:
        process.ask(*wire.START)
        yield process


@pytest.fixture
def driver() -> RemoteDriver:
    return RemoteDriver(LOCATION, run_id="run-1")


def test_a_job_keeps_its_files_where_only_the_driver_reaches(
    process: SideProcess, driver: RemoteDriver, hadoop: MemoryHadoop
) -> None:
    for version in range(1, 5):
        assert run_batch(process, driver, version)["completed_version"] == version
    assert process.ask("close", {"job": driver.run_id, "status": "finished"})[0] == {}
    assert process.end_input() == 0
    storage = HadoopStorage(hadoop, LOCATION)
    assert_invariants(storage)
    assert completed_versions(storage) == [3, 4]


def test_two_jobs_ask_at_once(process: SideProcess, hadoop: MemoryHadoop) -> None:
    drivers = [RemoteDriver(f"{LOCATION}{number}", run_id=f"run-{number}") for number in range(2)]
    for version in range(1, 4):
        process.send(*(wire.trigger(driver.make_trigger(version)) for driver in drivers))
        assert {process.receive().kind for _ in drivers} == {"ok"}
        acks = [ack for pair in zip(*(driver.acks(version) for driver in drivers), strict=True) for ack in pair]
        process.send(*map(wire.ack, acks))
        assert {process.receive().kind for _ in acks} == {"ok"}
        for driver in drivers:
            for ack in acks:
                if ack.job == driver.run_id:
                    driver.take_over(ack)
    assert process.end_input() == 0
    for driver in drivers:
        assert_invariants(HadoopStorage(hadoop, str(driver.location)), orphans=True)


def test_a_driver_that_ends_is_waited_for_by_nobody(driver: RemoteDriver) -> None:
    """If its input ends while a job waits for a file, the job gets an error and the process exits by itself."""
    with SideProcess() as process:
        process.ask(*wire.START)
        process.send(wire.trigger(driver.make_trigger(1)))
        process.receive_file_request()
        assert process.end_input() == 0
        assert any("the Spark driver has ended" in line for line in process.complete_log())


def test_an_error_of_the_file_system_is_a_typed_reply(driver: RemoteDriver) -> None:
    class Broken(MemoryHadoop):
        def ask(self, *args: Any, **fields: Any) -> Any:
            raise PermissionError("user=nobody")

    with SideProcess(hadoop=Broken()) as process:
        process.ask(*wire.START)
        header, reply = process.ask(*wire.trigger(driver.make_trigger(1)))
        assert (reply.kind, header["error"]) == ("error", "StorageError")
        assert "user=nobody" in header["message"]
        assert LOCATION in header["message"]


# ---- file requests without a process ---------------------------------------------------------------------------------


class Requests:
    """`DriverFiles` with answers from the test."""

    def __init__(self) -> None:
        self.sent: queue.SimpleQueue[Message] = queue.SimpleQueue()
        self.files = DriverFiles(self.sent.put)

    def ask(self, operation: str, **fields: object) -> Callable[[], Any]:
        """Sends a request from a thread; the returned function waits for the result or the exception."""
        results: queue.SimpleQueue[Any] = queue.SimpleQueue()

        def run() -> None:
            try:
                results.put(self.files.ask(operation, "hdfs:/a", b"content", **fields))
            except Exception as e:
                results.put(e)

        threading.Thread(target=run, daemon=True).start()
        return lambda: results.get(timeout=PATIENCE)

    def answer(self, request: Message, header: Mapping[str, object], reply: str = "ok", payload: bytes = b"") -> None:
        self.files.answered(Message(request.id, reply, "", json.dumps(header).encode(), b"", payload))


def test_answers_find_their_requests_in_any_order() -> None:
    requests = Requests()
    results, sent = [], []
    for offset in range(3):
        results.append(requests.ask("read", offset=offset))
        sent.append(requests.sent.get(timeout=PATIENCE))
    assert [request.kind for request in sent] == [FILE] * 3
    assert json.loads(sent[1].header) == {"operation": "read", "path": "hdfs:/a", "offset": 1}
    assert bytes(sent[1].payload) == b"content"
    for number in (2, 0, 1):
        requests.answer(sent[number], {"size": number}, payload=b"%d" % number)
    assert [result() for result in results] == [({"size": number}, b"%d" % number) for number in range(3)]


@pytest.mark.parametrize(
    ("kind", "error"),
    [
        ("missing", FileNotFoundError),
        ("exists", FileExistsError),
        ("denied", PermissionError),
        ("other", HadoopError),
        ("of a later release", HadoopError),
    ],
)
def test_errors_are_those_of_python_with_the_words_of_java(kind: str, error: type[Exception]) -> None:
    requests = Requests()
    result = requests.ask("read")
    fields = {"error": "a.BException", "message": "no /a", "kind": kind}
    requests.answer(requests.sent.get(timeout=PATIENCE), fields, "error")
    raised = result()
    assert type(raised) is error
    assert str(raised) == "a.BException: no /a"


def test_who_asks_after_the_end_is_told_so_at_once() -> None:
    requests = Requests()
    waiting = requests.ask("read")
    requests.sent.get(timeout=PATIENCE)
    requests.files.close()
    assert isinstance(waiting(), DriverGoneError)
    with pytest.raises(DriverGoneError, match="hdfs:/b"):
        requests.files.ask("read", "hdfs:/b")
    assert requests.sent.empty()


def test_an_answer_that_nobody_waits_for_is_left_aside(caplog: pytest.LogCaptureFixture) -> None:
    """The answer is only logged: the driver would take an error for the reply to its own request with that id."""
    requests = Requests()
    requests.files.answered(Message(7, "ok", "", b"{}"))
    assert "file request 7" in caplog.text
    assert requests.sent.empty()
