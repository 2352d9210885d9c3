"""Costs of a rescale grow with the number of partitions, not with its square."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from pathlib import Path

import pytest

from spark_ckpt.completed import JobStatus
from spark_ckpt.messages import Operator
from spark_ckpt.operations.rescale import rescale
from spark_ckpt.spark_files.entries import CommitEntry
from spark_ckpt.spark_files.logs import SparkLog
from spark_ckpt.storage import LocalStorage
from tests.storage.faulty import FaultyStorage
from tests.support.driver import Driver, faulty_environment
from tests.support.growth import FEW, MANY, Steps, assert_linear
from tests.support.stopped_query import OFFSETS


class Measured:
    """Rescales of a query that has ended, and what they cost.

    Attributes:
        steps: steps by kind of rescale.
        requests: requests to the storage by kind, besides those for the folders of partitions.
    """

    def __init__(self, location: Path, partitions: int) -> None:
        self.steps: dict[str, Steps] = defaultdict(Steps)
        self.requests: dict[str, Counter[str]] = {}
        self._storage = FaultyStorage(LocalStorage(location))
        self._run(location, partitions)
        self._rescale("twice as many", 2 * partitions)
        self._rescale("a third as many", partitions // 3)

    def _run(self, location: Path, partitions: int) -> None:
        operators = (Operator(0, "stateStoreSave", ("default",), partitions, 2),)
        settings = {"inlineThreshold": "0", "maxParallelism": str(8 * partitions)}
        environment = faulty_environment(self._storage)
        driver = Driver(location, operators=operators, settings=settings, environment=environment)
        log = SparkLog(self._storage)
        self._storage.write_atomic("metadata", json.dumps({"id": driver.query_id}).encode())
        for version in range(1, 3):
            log.add_offsets(version - 1, OFFSETS.with_shuffle_partitions(partitions))
            driver.batch(version)
            log.add_commit(version - 1, CommitEntry(1, {"nextBatchWatermarkMs": 9}))
        assert driver.job is not None
        driver.job.close(JobStatus.FINISHED)

    def _rescale(self, kind: str, partitions: int) -> None:
        self._storage.log.clear()
        with self.steps[kind].counted():
            rescale(self._storage, partitions, force=True)
        operations = (operation for operation, name in self._storage.log if not name.startswith("state/"))
        self.requests[kind] = Counter(operations)


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> list[Measured]:
    return [Measured(tmp_path_factory.mktemp("q"), partitions) for partitions in (FEW, MANY)]


def test_steps_grow_with_the_partitions(measured: list[Measured]) -> None:
    few, many = measured
    assert_linear(few.steps, many.steps)


def test_requests_do_not_grow(measured: list[Measured]) -> None:
    few, many = measured
    assert few.requests == many.requests
