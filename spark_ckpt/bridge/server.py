"""Main loop of the side process: reads messages, passes each to its job's thread, and writes the replies."""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import replace
from io import BufferedReader
from typing import Any, BinaryIO

import pyarrow as pa

from spark_ckpt import __version__
from spark_ckpt.bridge import codec, protocol
from spark_ckpt.bridge.codec import Reply, StartReply
from spark_ckpt.bridge.driver_files import DriverFiles
from spark_ckpt.bridge.errors import JobNotOpenError
from spark_ckpt.bridge.log import LogContext, enter, wants_debug
from spark_ckpt.bridge.protocol import Message
from spark_ckpt.bridge.settings_check import check_settings
from spark_ckpt.bridge.tracing import OTEL, Spans, exported_spans, flush
from spark_ckpt.completed import JobStatus
from spark_ckpt.config import CheckpointConfig
from spark_ckpt.coordinator.job import Job
from spark_ckpt.coordinator.open_job import Environment
from spark_ckpt.coordinator.reports import Report
from spark_ckpt.errors import ProtocolError, SparkCkptError
from spark_ckpt.messages import (
    Ack,
    Close,
    Decline,
    EndOffsets,
    Locate,
    Notification,
    Request,
    Rescale,
    TaskFailed,
    Trigger,
    TriggerReply,
    Unreadable,
)
from spark_ckpt.recovery.errors import RolledBackError
from spark_ckpt.storage import Storage, resolve

_log = logging.getLogger(__name__)

_MAX_BYTES_IN_A_BATCH = 32 << 20
_SHUTDOWN_SECONDS = 4.0
_MAX_WAIT_SECONDS = 3600.0

_NOT_STARTED = (
    "this side process has accepted no 'start' message, so it serves no other: the jar and the Python package "
    f"{__version__} do not match; install both from the same release"
)


class Server:
    """Server of one driver JVM, until its input ends.

    Each job has its own thread, so a query with slow storage does not delay another; messages of one job are handled in
    order. Until a `start` message is
    accepted, the server rejects every other request and touches nothing. A job still open at the end of the input is
    suspended. The driver's answers to the file requests of a job arrive among the messages, so the reader thread never
    waits for a job. It answers a `ping` itself, so only a process that hangs as a whole gives no sign of life.

    Args:
        source: input with the messages, one Arrow IPC stream.
        sink: output for the replies.
        environment: environment shared by the jobs; by default locations may be on any file system of the driver.
    """

    def __init__(self, source: BufferedReader, sink: BinaryIO, environment: Environment | None = None) -> None:
        self._source = source
        self._writer = _Writer(sink)
        self._files = DriverFiles(self._writer.write)
        self._environment = environment or Environment(open_storage=self._open_storage)
        self._workers: dict[str, _JobWorker] = {}
        self._ending: list[_JobWorker] = []
        self._refusal: str | None = _NOT_STARTED

    def run(self) -> None:
        """Serves until the input ends, then lets the jobs finish their queued messages.

        Raises:
            ProtocolError: the input is not a stream of messages.
        """
        if not self._source.peek(1):
            return  # the input ended before the first message
        try:
            reader = pa.ipc.open_stream(self._source)
        except pa.ArrowInvalid as e:
            raise ProtocolError(f"standard input is not an Arrow stream: {e}") from e
        protocol.check_schema(reader.schema)
        try:
            for batch in reader:
                for message in protocol.from_batch(batch):
                    self._dispatch(message)
        except (pa.ArrowInvalid, OSError) as e:
            _log.warning("standard input ended in the middle of a message: %s", e)
        finally:
            self._stop()

    def _open_storage(self, trigger: Trigger) -> Storage:
        return resolve(trigger.location, trigger.hadoop, self._files)

    def _dispatch(self, message: Message) -> None:
        reply = _guarded(message, lambda: self._route(message))
        if reply is not None:
            self._writer.put(reply)

    def _route(self, message: Message) -> Message | None:
        """Passes a message to its job's thread, or answers it at once."""
        if message.kind in ("ok", "error"):
            self._files.answered(message)
            return None
        if message.kind == "ping":
            return codec.ok(message.id)
        if message.kind == "start":
            return self._start(message)
        if self._refusal is not None:
            raise ProtocolError(self._refusal)
        if message.kind == "check":
            check_settings(codec.decode(message).settings)
            return codec.ok(message.id)
        if not (job := message.job):
            raise ProtocolError(f"a '{message.kind}' message is about no job")
        worker = self._workers.get(job)
        if message.kind == "trigger" and worker is None:
            worker = self._workers[job] = _JobWorker(job, self._environment, self._writer)
        if worker is None:
            if message.kind in ("decline", "task_failed", "close"):
                return codec.ok(message.id)
            raise JobNotOpenError(job)
        worker.put(message)
        if message.kind == "close":
            self._ending = [other for other in self._ending if other.is_alive]
            self._ending.append(self._workers.pop(job))
        return None

    def _start(self, message: Message) -> Message:
        start = codec.decode(message)
        if start.protocol != protocol.PROTOCOL_VERSION:
            self._refusal = (
                f"the jar speaks version {start.protocol} of the protocol, the Python package {__version__} "
                f"version {protocol.PROTOCOL_VERSION}: install both from the same release"
            )
            raise ProtocolError(self._refusal)
        self._refusal = None
        self._environment = self._environment.of_driver(start.pid, start.hung)
        return codec.ok(message.id, StartReply(__version__))

    def _stop(self) -> None:
        self._files.close()
        for worker in self._workers.values():
            worker.stop()
        for worker in (*self._ending, *self._workers.values()):
            worker.join(_SHUTDOWN_SECONDS)
        flush()
        self._writer.close(_SHUTDOWN_SECONDS)


class _JobWorker:
    """Thread of one job."""

    def __init__(self, name: str, environment: Environment, writer: _Writer) -> None:
        self._environment = environment
        self._writer = writer
        self._job: Job | None = None
        self._context: LogContext | None = None
        self._spans: Spans | None = None
        self._rolled_back: RolledBackError | None = None
        self._name = name
        self._queue: queue.SimpleQueue[tuple[Message, float] | None] = queue.SimpleQueue()
        self._arrived = 0.0  # when the message in hand arrived
        self._thread = threading.Thread(target=self._run, name=f"spark-ckpt-job-{name}", daemon=True)
        self._thread.start()

    def put(self, message: Message) -> None:
        self._queue.put((message, time.perf_counter()))

    @property
    def is_alive(self) -> bool:
        return self._thread.is_alive()

    def stop(self) -> None:
        self._queue.put(None)

    def join(self, seconds: float) -> None:
        self._thread.join(seconds)

    def _run(self) -> None:
        while (item := self._next()) is not None:
            message, self._arrived = item
            began = time.perf_counter()
            reply = _guarded(message, lambda m=message: self._handle(m))  # type: ignore[misc]
            assert reply is not None
            if wants_debug():
                _log.debug("%s in %.1f ms", message.kind, (time.perf_counter() - began) * 1000)
            # While messages wait, their replies are better sent together.
            send = self._writer.write if self._queue.empty() else self._writer.put
            send(reply)
            if message.kind in _MAY_COMPLETE:
                self._run_unsolicited(self._answered)
            if message.kind == "close":
                return
        self._run_unsolicited(lambda job: job.close(JobStatus.SUSPENDED))

    def _next(self) -> tuple[Message, float] | None:
        """Next message, or None at the end. While it waits, the pending checkpoint may expire, and acks be reported."""
        if not self._queue.empty():  # the usual case while acks arrive
            return self._queue.get_nowait()
        while True:
            seconds = self._job.seconds_to_timer if self._job is not None else None
            try:
                return self._queue.get(timeout=None if seconds is None else min(seconds, _MAX_WAIT_SECONDS))
            except queue.Empty:
                self._run_unsolicited(Job.run_timers)

    def _run_unsolicited(self, do: Callable[[Job], None]) -> None:
        """Runs an action without a requesting message. Logs its errors."""
        if self._job is not None:
            try:
                do(self._job)
            except Exception:
                _log.exception("unexpected error in job %s", self._name)

    def _handle(self, message: Message) -> Message:
        request = codec.decode(message)
        if self._rolled_back is not None and message.kind in _OF_A_BATCH:
            raise self._rolled_back  # other tasks may still send requests for the rolled-back batch
        try:
            return codec.ok(message.id, self._reply_to(request))
        except RolledBackError as e:
            self._rolled_back = e
            raise

    def _reply_to(self, request: Request) -> Reply | None:
        match request:
            case Trigger():
                return self._trigger(request)
            case Locate():
                return self._opened().locate(request)
            case Ack():
                return self._opened().acknowledge(request, time.perf_counter() - self._arrived)
            case EndOffsets():
                return self._opened().end_offsets(request)
            case Rescale():
                return self._opened().rescale(request)
            case Unreadable():
                self._opened().unreadable(request)
            case Decline() if self._job is not None:
                self._job.decline(request)
            case TaskFailed() if self._job is not None:
                self._job.task_failed(request)
            case Close():
                self._close(request)
        return None

    def _trigger(self, trigger: Trigger) -> TriggerReply:
        if self._context is None:
            config = CheckpointConfig.parse(trigger.settings)
            self._context = LogContext.of(trigger, config)
            self._spans = exported_spans() if config.tracing == OTEL else None
        enter(replace(self._context, batch=trigger.batch_id))
        if self._job is None:
            detailed = trigger.report_details or self._spans is not None
            first = replace(trigger, report_details=detailed)
            self._job = Job(first, self._environment, self._notify, self._report)
        return self._job.trigger(trigger)

    def _answered(self, job: Job) -> None:
        job.answered(time.perf_counter() - self._arrived)
        job.housekeeping()

    def _close(self, request: Close) -> None:
        job, self._job = self._job, None
        if job is not None:
            job.close(request.status)

    def _notify(self, notification: Notification) -> None:
        self._writer.put(codec.notification(notification))

    def _report(self, report: Report) -> None:
        self._writer.put(codec.report(report))
        if self._spans is not None:
            self._spans.add(report)

    def _opened(self) -> Job:
        if self._job is None:
            raise JobNotOpenError(self._name)
        return self._job


_OF_A_BATCH = ("trigger", "locate", "ack", "end_offsets", "unreadable")
"""Kinds of messages that belong to a batch."""

_MAY_COMPLETE = ("ack", "end_offsets")
"""Kinds of messages that may complete a checkpoint."""


class _Writer:
    """Writer of replies, notifications and requests to the driver, in order.

    A thread that has nothing else to do writes its message itself: waking another thread takes longer than the rest of
    a reply. Other messages are left to a thread of the writer, which sends all of them as one record batch.
    """

    def __init__(self, sink: BinaryIO) -> None:
        self._sink = sink
        self._stream: Any = None  # pyarrow has no types
        self._is_broken = False
        self._waiting: deque[Message] = deque()
        self._signals: queue.SimpleQueue[bool] = queue.SimpleQueue()  # False at the end
        self._sends = threading.Lock()
        self._thread = threading.Thread(target=self._run, name="spark-ckpt-replies", daemon=True)
        self._thread.start()

    def put(self, message: Message) -> None:
        """Leave a message to the writer's thread."""
        self._waiting.append(message)
        self._signals.put(True)

    def write(self, message: Message) -> None:
        """Send a message and those that wait. If another thread sends at the moment, this one is left to it."""
        self._waiting.append(message)
        if self._sends.acquire(blocking=False):
            try:
                self._send_waiting()
            finally:
                self._sends.release()
        if self._waiting:  # the other thread may have seen the end of the queue before this message
            self._signals.put(True)

    def close(self, seconds: float) -> None:
        """Send the waiting messages, and end the stream."""
        self._signals.put(False)
        self._thread.join(seconds)

    def _run(self) -> None:
        is_open = True
        with self._sends:
            self._send_waiting()  # the driver waits for the beginning of the stream
        while is_open:
            is_open = self._signals.get()
            with self._sends:
                self._send_waiting()
                if not is_open:
                    self._unless_broken(self._end)

    def _send_waiting(self) -> None:
        """Send the queued messages, up to a size limit at once. Never raises."""
        self._unless_broken(self._send)

    def _send(self) -> None:
        if self._stream is None:
            self._stream = pa.ipc.new_stream(self._sink, protocol.SCHEMA)
            self._sink.flush()
        while self._waiting:
            messages = [self._waiting.popleft()]
            size = messages[0].size
            while self._waiting and size <= _MAX_BYTES_IN_A_BATCH:
                messages.append(self._waiting.popleft())
                size += messages[-1].size
            self._stream.write_batch(protocol.to_batch(messages))
            self._sink.flush()

    def _end(self) -> None:
        self._stream.close()
        self._sink.flush()

    def _unless_broken(self, do: Callable[[], None]) -> None:
        if self._is_broken:
            self._waiting.clear()
            return
        try:
            do()
        except OSError as e:
            self._is_broken = True
            _log.warning("the driver no longer reads replies: %s", e)
        except Exception:
            self._is_broken = True
            _log.exception("cannot write replies to the driver")


def _guarded(message: Message, handle: Callable[[], Message | None]) -> Message | None:
    """Result of `handle`, or an `error` reply for the exception it raises."""
    try:
        return handle()
    except SparkCkptError as e:
        _log.info("reply to %s: %s: %s", message.kind, type(e).__name__, e)
        return codec.error(message.id, type(e).__name__, str(e), bool(getattr(e, "fatal", False)))
    except Exception as e:
        _log.exception("unexpected error while handling a %s message", message.kind)
        text = f"unexpected error in the checkpoint coordinator ({e!r}); see the driver's log"
        return codec.error(message.id, "UnexpectedError", text, False)
