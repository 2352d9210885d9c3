"""Requests that run beside their caller."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from spark_ckpt.errors import StateFileNotFoundError
from spark_ckpt.storage import LocalStorage, Request


def test_request_runs_once_when_its_answer_is_needed() -> None:
    calls: list[int] = []
    request = Request(lambda: calls.append(1))
    assert not calls
    request.result()
    request.result()
    assert calls == [1]


def test_started_requests_run_side_by_side() -> None:
    both = threading.Barrier(2, timeout=10)
    first, second = (Request(both.wait) for _ in range(2))
    first.start()
    second.start()
    assert {first.result(), second.result()} == {0, 1}


def test_error_waits_for_the_answer(tmp_path: Path) -> None:
    storage = LocalStorage(tmp_path, durable=False)
    request = Request(lambda: storage.read("missing"))
    request.start()
    for _ in range(2):
        with pytest.raises(StateFileNotFoundError):
            request.result()


def test_local_storage_begins_nothing_before_the_answer_is_needed(tmp_path: Path) -> None:
    storage = LocalStorage(tmp_path, durable=False)
    request = storage.begin(lambda: storage.read("file"))
    storage.write_atomic("file", b"later")
    assert request.result() == b"later"
