"""Costs of the coordinator grow with the number of partitions, not with its square; requests do not grow at all."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from unittest.mock import patch

import pytest

from spark_ckpt.checkpoint.load import CheckpointState
from spark_ckpt.completed import JobStatus
from spark_ckpt.messages import Operator, TaskFailed
from spark_ckpt.storage import LocalStorage
from tests.storage.faulty import FaultyStorage
from tests.support.driver import Changes, Driver, faulty_environment, located
from tests.support.growth import FEW, MANY, Steps, assert_linear


class Measured:
    """A query with two stores, restarted, and what the phases of its life cost.

    Attributes:
        steps: steps by phase.
        requests: requests to the storage by phase.
    """

    def __init__(self, location: Path, partitions: int) -> None:
        self.steps: dict[str, Steps] = defaultdict(Steps)
        self.requests: dict[str, int] = defaultdict(int)
        self._location, self._partitions = location, partitions
        self._storage = FaultyStorage(LocalStorage(location))
        driver = self._driver()
        self._batch("first batch", driver, 1)
        self._batch("batch", driver, 2)
        self._batch("batch without data", driver, 3, {})
        self._lose_executors(driver)
        self._close(driver)
        driver = self._driver()
        self._start(driver, 4)
        self._batch("batch without data", driver, 4, {})
        self._close(driver)

    def _driver(self) -> Driver:
        operators = (Operator(0, "symmetricHashJoin", ("left", "right"), self._partitions, 2),)
        environment = faulty_environment(self._storage)
        settings = {"inlineThreshold": "0"}  # with a state file for any number of partitions
        return Driver(
            self._location, operators=operators, settings=settings, environment=environment, report_details=True
        )

    def _phase(self, name: str) -> Steps:
        self._storage.log.clear()
        return self.steps[name]

    def _done(self, name: str) -> None:
        self.requests[name] += len(self._storage.log)

    def _start(self, driver: Driver, version: int) -> None:
        """The job opens after a batch without data, and all stores load."""
        with self._phase("open").counted():
            driver.trigger(version)
        self._done("open")
        with self._phase("locate").counted():
            for key in driver.subtasks():
                driver.ids[key] = str(located(driver, version - 1, key).state_id)
        self._done("locate")

    def _batch(self, name: str, driver: Driver, version: int, changes: Changes | None = None) -> None:
        steps = self._phase(name)
        with steps.counted():
            job = driver.trigger(version)
        for key in driver.subtasks():
            ack = driver.make_ack(key, version, changes=changes)
            with steps.counted():
                job.acknowledge(ack)
                job.answered(0.0)
            driver.take_over(ack, changes)
        with steps.counted():
            job.housekeeping()
        self._done(name)

    def _lose_executors(self, driver: Driver) -> None:
        """All tasks of the last batch are reported again, as their output is lost."""
        assert driver.job is not None
        with self._phase("lost executors").counted():
            for partition in range(self._partitions):
                driver.job.task_failed(TaskFailed(driver.stage, 0, partition, 0, "Resubmitted", job=driver.run_id))
        self._done("lost executors")

    def _close(self, driver: Driver) -> None:
        assert driver.job is not None
        with self._phase("close").counted():
            driver.job.close(JobStatus.FINISHED)
        self._done("close")


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> list[Measured]:
    return [Measured(tmp_path_factory.mktemp("q"), partitions) for partitions in (FEW, MANY)]


def test_steps_grow_with_the_partitions(measured: list[Measured]) -> None:
    few, many = measured
    assert_linear(few.steps, many.steps)


def test_requests_do_not_grow(measured: list[Measured]) -> None:
    few, many = measured
    assert few.requests == many.requests


def test_a_visit_of_all_partitions_for_each_of_them_is_noticed(tmp_path: Path) -> None:
    visited = property(vars(CheckpointState)["has_changes"].func)
    with patch.object(CheckpointState, "has_changes", visited):
        few, many = (Measured(tmp_path / str(partitions), partitions) for partitions in (FEW, MANY))
    with pytest.raises(AssertionError, match="locate"):
        assert_linear({"locate": few.steps["locate"]}, {"locate": many.steps["locate"]})
