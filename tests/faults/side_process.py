"""The coordinator's process in the fault tests: the real server, with faults in its storage and its messages."""

from __future__ import annotations

import functools
import logging
import os
import sys
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO

import pyarrow as pa

from spark_ckpt.bridge.log import RecordFormatter
from spark_ckpt.bridge.protocol import SCHEMA, Message, from_batch, to_batch
from spark_ckpt.bridge.server import Server
from spark_ckpt.coordinator.open_job import Environment
from spark_ckpt.messages import Trigger
from spark_ckpt.storage import resolve
from tests.faults.injection import Injector, StruckStorage
from tests.faults.relay import Passed, Relay


@functools.cache
def injector_of(location: str) -> Injector:
    """The fault at a checkpoint location."""
    return Injector(Path(resolve(location).location).parent)


@functools.cache
def storage_of(location: str) -> StruckStorage:
    """Storage of a location, shared by all runs of the query: a late change from one can arrive in another."""
    return StruckStorage(resolve(location), injector_of(location))


def open_storage(trigger: Trigger) -> StruckStorage:
    """The storage of a job."""
    return storage_of(trigger.location)


class _Outlet:
    """An Arrow stream with two writing threads."""

    def __init__(self, sink: BinaryIO) -> None:
        self._sink = sink
        self._stream = pa.ipc.new_stream(sink, SCHEMA)
        self._lock = threading.Lock()

    def put(self, messages: list[Message]) -> None:
        if messages:
            with self._lock:
                self._stream.write_batch(to_batch(messages))
                self._sink.flush()

    def close(self) -> None:
        with self._lock:
            self._stream.close()
            self._sink.close()


def _pump(source: BinaryIO, decide: Callable[[Message], Passed], coordinator: _Outlet, driver: _Outlet) -> None:
    for batch in pa.ipc.open_stream(source):
        for message in from_batch(batch):
            passed = decide(replace(message, payload=bytes(message.payload)))
            coordinator.put(passed.to_coordinator)
            driver.put(passed.to_driver)


def main() -> None:
    """Serves the driver until the end of standard input."""
    from_driver, to_driver = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(RecordFormatter())
    logging.basicConfig(level=logging.INFO, handlers=[handler])
    requests_end, requests_start = os.pipe()
    replies_end, replies_start = os.pipe()
    relay = Relay(injector_of)
    coordinator, driver = _Outlet(os.fdopen(requests_start, "wb")), _Outlet(to_driver)

    def requests() -> None:
        try:
            _pump(from_driver, relay.request, coordinator, driver)
        finally:
            coordinator.close()

    def replies() -> None:
        _pump(os.fdopen(replies_end, "rb"), relay.reply, coordinator, driver)
        driver.close()

    threading.Thread(target=requests, daemon=True).start()
    answering = threading.Thread(target=replies, daemon=True)
    answering.start()
    sink = os.fdopen(replies_start, "wb")
    Server(os.fdopen(requests_end, "rb"), sink, Environment(open_storage=open_storage)).run()
    sink.close()
    answering.join()


if __name__ == "__main__":
    main()
