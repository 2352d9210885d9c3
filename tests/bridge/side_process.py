"""Real side process over real pipes, as used by the JVM."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

import pyarrow as pa

from spark_ckpt.bridge.codec import REPORT
from spark_ckpt.bridge.protocol import FILE, SCHEMA, UNASKED, Message, from_batch, to_batch
from spark_ckpt.storage.hadoop import KINDS
from tests.bridge import wire
from tests.support.hadoop import MemoryHadoop
from tests.support.waiting import PATIENCE

ROOT = Path(__file__).resolve().parents[2]

MODULE = ("-m", "spark_ckpt.bridge")

PATIENT = f"""
import sys
from spark_ckpt.bridge import __main__ as main, server
from spark_ckpt.coordinator import job, subsumption

server._SHUTDOWN_SECONDS = job._CLOSE_SECONDS = subsumption._CLOSE_SECONDS = {PATIENCE}
sys.exit(main.main())
"""
"""Program of a side process that waits for its jobs to finish, however long the machine stalls."""


class SideProcess:
    """Side process and the driver's end of its pipes.

    Args:
        program: arguments for Python.
        hadoop: file system that answers file requests; without it they stay unanswered.
    """

    def __init__(self, program: Sequence[str] = ("-c", PATIENT), hadoop: MemoryHadoop | None = None) -> None:
        self._hadoop = hadoop
        self._file_requests: list[Message] = []
        self._process = subprocess.Popen(
            [sys.executable, *program],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=ROOT,
        )
        assert self._process.stdin is not None
        assert self._process.stderr is not None
        self._writer = pa.ipc.new_stream(self._process.stdin, SCHEMA)
        self._replies: list[Message] = []
        self.notified: list[dict[str, Any]] = []
        self.reported: list[dict[str, Any]] = []
        self._reader: pa.RecordBatchStreamReader | None = None
        self._next = 0
        self._log: list[str] = []
        self._log_reader = threading.Thread(target=self._read_log, daemon=True)
        self._log_reader.start()

    def _read_log(self) -> None:
        assert self._process.stderr is not None
        for line in self._process.stderr:
            self._log.append(line.decode().rstrip("\n"))

    def send(self, *requests: tuple[str, Mapping[str, Any], bytes, bytes]) -> list[int]:
        """Sends requests in one record batch; returns their ids."""
        messages = []
        for kind, header, index, payload in requests:
            messages.append(wire.message_of((kind, dict(header), index, payload), self._next))
            self._next += 1
        self._write(messages)
        return [message.id for message in messages]

    def _write(self, messages: Sequence[Message]) -> None:
        self._writer.write_batch(to_batch(messages))
        assert self._process.stdin is not None
        self._process.stdin.flush()

    def receive(self) -> Message:
        """Waits for the next reply."""
        while not self._replies:
            self._read()
        return self._replies.pop(0)

    def receive_notification(self) -> None:
        """Waits until `notified` has another notification."""
        count = len(self.notified)
        while len(self.notified) == count:
            self._read()

    def receive_report(self, status: str) -> dict[str, Any]:
        """Waits until `reported` has a report with this status; returns the first one."""
        while not (found := [report for report in self.reported if report["status"] == status]):
            self._read()
        return found[0]

    def _read(self) -> None:
        if self._reader is None:
            self._reader = pa.ipc.open_stream(self._process.stdout)
        for message in from_batch(self._reader.read_next_batch()):
            if message.kind == "notify":
                assert message.id == UNASKED
                self.notified.append({"job": message.job, **json.loads(message.header)})
            elif message.kind == REPORT:
                assert message.id == UNASKED
                self.reported.append(json.loads(message.header))
            elif message.kind == FILE:
                self._file_requests.append(message)
            else:
                self._replies.append(message)
        while self._hadoop is not None and self._file_requests:
            self._answer(self._hadoop, self._file_requests.pop(0))

    def _answer(self, hadoop: MemoryHadoop, request: Message) -> None:
        try:
            header, payload = hadoop.ask(payload=request.payload, **json.loads(request.header))
            reply = Message(request.id, "ok", "", json.dumps(header).encode(), b"", payload)
        except OSError as e:
            kind = next((kind for kind, error in KINDS.items() if isinstance(e, error)), "other")
            fields = {"error": type(e).__name__, "message": str(e), "kind": kind}
            reply = Message(request.id, "error", "", json.dumps(fields).encode())
        self._write([reply])

    def receive_file_request(self) -> None:
        """Waits for a file request, and leaves it unanswered."""
        while not self._file_requests:
            self._read()

    def ask(
        self, kind: str, header: Mapping[str, Any], index: bytes = b"", payload: bytes = b""
    ) -> tuple[dict[str, Any], Message]:
        (number,) = self.send((kind, header, index, payload))
        reply = self.receive()
        assert reply.id == number
        return json.loads(reply.header), reply

    @property
    def pid(self) -> int:
        return self._process.pid

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()

    def end_input(self, timeout: float = PATIENCE) -> int:
        assert self._process.stdin is not None
        self._writer.close()
        self._process.stdin.close()
        code = self._process.wait(timeout)
        self._log_reader.join(timeout)
        return code

    def complete_log(self) -> list[str]:
        """All log lines. Ends the process first, because a reply may overtake an earlier log line."""
        if self._process.poll() is None:
            assert self.end_input() == 0
        self._log_reader.join(PATIENCE)
        assert not self._log_reader.is_alive()
        return self._log

    def __enter__(self) -> SideProcess:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()
        self._log_reader.join(PATIENCE)
