"""Examinations of made-up locations."""

from __future__ import annotations

import os
import socket
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from spark_ckpt.checkpoint.chains import Chain
from spark_ckpt.completed import Owner
from spark_ckpt.operations.doctor import Finding, Report, examine
from spark_ckpt.storage import CreateResult, LocalStorage, Storage
from spark_ckpt.storage.errors import ExclusiveCreateUnsupportedError
from tests.support.locations import FIRST_COMPLETED_MS, KEY, LocationBuilder, make_batch, store_state
from tests.support.queries import ENDED as ENDED_PROCESS
from tests.support.segments import segment_ref

ALIVE = Owner(socket.gethostname(), os.getpid(), "token", "query-1", "run-1")
ENDED = Owner(socket.gethostname(), ENDED_PROCESS, "token", "query-1", "run-1")
LAST_MS = FIRST_COMPLETED_MS + 3 * 60_000
"""Time of the newest checkpoint of `location`, in milliseconds since 1970 UTC."""

LOST = "ckpt/shared/delta-10571057105710571057105710571057"
"""A state file of no checkpoint."""


@dataclass
class At:
    """Clock that stands still.

    Args:
        ms: milliseconds since 1970 UTC.
    """

    ms: int

    def now_ms(self) -> int:
        return self.ms

    def monotonic(self) -> float:
        return self.ms / 1000

    def sleep(self, seconds: float) -> None:
        raise AssertionError("no check waits")


def examined(storage: Storage, now_ms: int = FIRST_COMPLETED_MS, **options: Any) -> Report:
    """Examination at a given time."""
    return examine(storage, clock=At(now_ms), **options)


def only(report: Report, name: str) -> Finding:
    """The only finding of a check."""
    (finding,) = [finding for finding in report.findings if finding.name == name]
    return finding


def long_chain(version: int, deltas: int) -> Chain:
    """Chain of a base and of so many deltas."""
    groups = np.array([0], np.uint32)
    entry = segment_ref(0, version - deltas, groups, np.array([0]), 1000, data=b"b" * 1000)
    later = [
        segment_ref(at, at, groups, np.array([0]), 40, data=b"d" * 40)
        for at in range(version - deltas + 1, version + 1)
    ]
    return Chain("00000000-0000-0000-0000-000000000001", 1, (entry, *later))


def location(directory: Path, owner: Owner, deltas: int = 1) -> LocalStorage:
    """Location with four checkpoints, a minute apart."""
    storage = LocalStorage(directory)
    builder = LocationBuilder(storage, owner)
    for number in range(4):
        batch = make_batch(number + 100)
        chains = [long_chain(batch.version, deltas), Chain("00000000-0000-0000-0000-000000000002", 0)]
        batch = replace(batch, stores=(store_state(KEY, "stateStoreSave", chains, 2),))
        builder.complete(batch, {KEY: chains}, timestamp_ms=FIRST_COMPLETED_MS + 60_000 * number, statistics=True)
    return storage


def refusing(storage: LocalStorage, name: str, data: bytes) -> CreateResult:
    """`create_exclusive` of a storage that has none."""
    raise ExclusiveCreateUnsupportedError(storage.location, "no hard links")
