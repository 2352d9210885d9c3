"""Server loop of the side process, run in this process to inspect its memory."""

from __future__ import annotations

import gc
import io
import logging
import threading
import tracemalloc
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import spark_ckpt
from spark_ckpt.bridge.protocol import SCHEMA, Message, from_batch, to_batch
from spark_ckpt.bridge.server import Server, _Writer
from spark_ckpt.coordinator.job import Job
from tests.bridge import wire
from tests.bridge.remote_driver import RemoteDriver
from tests.support.waiting import PATIENCE, eventually

RUNS = 40
MAX_BYTES_PER_RUN = 50
MAX_ROUNDS = 20


class Sink(io.BytesIO):
    """Output that discards the replies."""

    def write(self, data: object, /) -> int:
        return len(memoryview(data))  # type: ignore[arg-type]


class Runs:
    """Server with successive runs of queries."""

    def __init__(self) -> None:
        self.server = Server(io.BufferedReader(io.BytesIO()), Sink())
        self.count = 0
        self._dispatch(wire.START)

    def _dispatch(self, request: wire.Request) -> None:
        self.server._dispatch(wire.message_of(request, self.count))

    def run(self, location: Path | str, batches: int, **settings: str) -> None:
        """Runs a query until the server has processed its end."""
        self.count += 1
        driver = RemoteDriver(location, run_id=f"00000000-0000-0000-0000-{self.count:012d}", settings=settings)
        requests = []
        for version in range(1, batches + 1):
            acks = driver.acks(version)
            requests += [wire.trigger(driver.make_trigger(version)), *map(wire.ack, acks)]
            for ack in acks:
                driver.take_over(ack)
        requests.append(("close", {"job": driver.run_id, "status": "finished"}, b"", b""))
        for request in requests:
            self._dispatch(request)
        for worker in self.server._ending:
            worker.join(PATIENCE)

    def settle(self) -> None:
        """Waits until no reply waits for the writer's thread: the number that it takes at a time varies."""
        replies = self.server._writer._waiting
        for _ in range(2):
            eventually(lambda: not replies, what="the replies are written")
            self._dispatch(("decline", {"job": "of no run"}, b"", b""))
        eventually(lambda: not replies, what="the replies are written")


def alive(kind: type) -> list[object]:
    """Live objects of a type, including those left by other tests in this process."""
    gc.collect()
    return [found for found in gc.get_objects() if isinstance(found, kind)]


def has_settled(sizes: Sequence[int]) -> bool:
    """True if the last of the sizes, one per round, is hardly above the one before."""
    return len(sizes) > 1 and sizes[-1] - sizes[-2] < RUNS * MAX_BYTES_PER_RUN


@pytest.fixture
def runs() -> Iterator[Runs]:
    runs = Runs()
    yield runs
    runs.server._stop()


def test_a_run_that_has_ended_leaves_nothing_behind(runs: Runs) -> None:
    """Ended runs leak no memory; refused settings make the shortest possible run."""

    def run(times: int) -> int:
        for _ in range(times):
            runs.run("/nowhere/x", 1, store="no such store")
        runs.settle()
        gc.collect()
        # Threads of other tests, such as clients looking for their server, allocate memory, too.
        ours = tracemalloc.Filter(True, f"{Path(spark_ckpt.__file__).parent}/*", all_frames=True)
        return sum(trace.size for trace in tracemalloc.take_snapshot().filter_traces([ours]).traces)

    tracemalloc.start(10)
    try:
        sizes = [run(RUNS)]
        assert sizes[0] > 0
        # A leak grows in each round. Caches fill up: NumPy keeps small freed blocks of each size, and the sizes depend
        # on how many replies the writer thread finds waiting.
        while len(sizes) < MAX_ROUNDS and not has_settled(sizes):
            sizes.append(run(RUNS))
    finally:
        tracemalloc.stop()
    assert not runs.server._workers
    assert len(runs.server._ending) <= 1
    assert has_settled(sizes), f"bytes after each {RUNS} runs: {sizes}"


def test_a_run_with_checkpoints_leaves_no_thread_and_no_job(runs: Runs, tmp_path: Path) -> None:
    threads, jobs = set(threading.enumerate()), alive(Job)
    for i in range(10):
        runs.run(tmp_path / str(i), 3)
    assert {checkpoint.name for checkpoint in (tmp_path / "9" / "ckpt").glob("chk-*")}
    assert not runs.server._workers
    new = [thread for thread in threading.enumerate() if thread not in threads and thread.name.startswith("spark-ckpt")]
    for thread in new:
        thread.join(PATIENCE)
    assert not [thread for thread in new if thread.is_alive()]
    assert not [job for job in alive(Job) if not any(job is other for other in jobs)]


def replies(requests: Sequence[wire.Request]) -> list[Message]:
    """Replies of a server to requests, which all arrive at once."""
    source, sink = io.BytesIO(), io.BytesIO()
    with pa.ipc.new_stream(source, SCHEMA) as stream:
        messages = [wire.message_of(request, number) for number, request in enumerate(requests)]
        stream.write_batch(to_batch(messages))
    Server(io.BufferedReader(io.BytesIO(source.getvalue())), sink).run()
    return [reply for batch in pa.ipc.open_stream(sink.getvalue()) for reply in from_batch(batch)]


def test_a_ping_is_answered_before_the_start_too() -> None:
    ping: wire.Request = ("ping", {}, b"", b"")
    assert [(reply.id, reply.kind, reply.header) for reply in replies([ping, wire.START, ping]) if reply.id != 1] == [
        (0, "ok", b"{}"),
        (2, "ok", b"{}"),
    ]


# ---- the writer ------------------------------------------------------------------------------------------------------


def messages_in(sink: io.BytesIO) -> list[Message]:
    reader = pa.ipc.open_stream(sink.getvalue())
    return [message for batch in reader for message in from_batch(batch)]


def test_messages_of_many_threads_arrive_once_and_in_their_order() -> None:
    sink, count = io.BytesIO(), 400
    writer = _Writer(sink)

    def send(number: int) -> None:
        for n in range(count):
            message = Message(number * count + n, "ok", "", b"{}")
            (writer.write if n % 3 else writer.put)(message)

    threads = [threading.Thread(target=send, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    writer.close(PATIENCE)
    ids = [message.id for message in messages_in(sink)]
    assert sorted(ids) == list(range(4 * count))
    for number in range(4):
        ours = [one for one in ids if one // count == number]
        assert ours == sorted(ours)


class Gate(io.BytesIO):
    """Sink that holds the first writer of a message, once it is closed."""

    def __init__(self) -> None:
        super().__init__()
        self.open, self.reached = threading.Event(), threading.Event()
        self.open.set()

    def write(self, data: Any, /) -> int:
        if not self.open.is_set():
            self.reached.set()
            self.open.wait(PATIENCE)
        return super().write(data)


def test_a_message_that_comes_while_another_is_sent_follows_it_and_blocks_no_other_thread() -> None:
    sink = Gate()
    writer = _Writer(sink)
    writer.write(Message(0, "ok", "", b"{}"))
    sink.open.clear()
    slow = threading.Thread(target=writer.write, args=(Message(1, "ok", "", b"{}"),))
    slow.start()
    assert sink.reached.wait(PATIENCE)
    writer.write(Message(2, "ok", "", b"{}"))  # returns, although the pipe is full
    sink.open.set()
    slow.join()
    writer.close(PATIENCE)
    assert [message.id for message in messages_in(sink)] == [0, 1, 2]


class Broken(io.BytesIO):
    """Sink whose reader has gone."""

    def write(self, data: Any, /) -> int:
        raise BrokenPipeError("gone")


def test_replies_to_a_driver_that_has_gone_are_dropped(caplog: pytest.LogCaptureFixture) -> None:
    writer = _Writer(Broken())
    with caplog.at_level(logging.WARNING):
        for number in range(3):
            writer.write(Message(number, "ok", "", b"{}"))
        writer.close(PATIENCE)
    assert [record.getMessage() for record in caplog.records] == ["the driver no longer reads replies: gone"]
    assert not writer._waiting
