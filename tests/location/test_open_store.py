"""Coordinator with its store in ZooKeeper, on a real server."""

from __future__ import annotations

import copy
import shutil
import threading
import uuid
from pathlib import Path

import pytest

from spark_ckpt.checkpoint.errors import VersionNotFoundError
from spark_ckpt.clock import SystemClock
from spark_ckpt.completed import JobStatus, Owner
from spark_ckpt.completed.errors import FencedError, LocationMovedError
from spark_ckpt.completed.zookeeper import ZooKeeperCompletedCheckpointStore
from spark_ckpt.config import CheckpointConfig
from spark_ckpt.location.open_store import make_store
from spark_ckpt.storage import LocalStorage
from tests.support.driver import Driver, check_rows, faulty_environment
from tests.support.invariants import assert_invariants, completed_versions
from tests.support.waiting import PATIENCE
from tests.support.zookeeper import ZooKeeperServer, await_gone


@pytest.fixture
def storage(tmp_path: Path) -> LocalStorage:
    return LocalStorage(tmp_path)


@pytest.fixture
def settings(zookeeper: ZooKeeperServer) -> dict[str, str]:
    return {
        "store": "zookeeper",
        "zookeeper.quorum": zookeeper.quorum,
        "zookeeper.path": f"/test-{uuid.uuid4().hex}",
        "zookeeper.sessionTimeout": "240s",  # survives stalls of the machine
        "inlineThreshold": "0",
    }


def start(storage: LocalStorage, settings: dict[str, str], before: Driver | None = None) -> Driver:
    driver = Driver(storage.location, environment=faulty_environment(storage), settings=settings)
    if before is not None:
        driver.rows, driver.ids = copy.deepcopy(before.rows), dict(before.ids)
    return driver


def close(driver: Driver) -> None:
    assert driver.job is not None
    driver.job.close(JobStatus.FINISHED)


def test_a_new_run_continues_and_fences_the_old_one(storage: LocalStorage, settings: dict[str, str]) -> None:
    first = start(storage, settings)
    for version in range(1, 6):
        first.batch(version)
    second = start(storage, settings, first)
    second.batch(6)
    check_rows(second, storage, 6)
    assert completed_versions(storage.location) == [5, 6]
    job = first.trigger(6)
    *others, last = first.subtasks()
    for key in others:
        job.acknowledge(first.make_ack(key, 6))
    with pytest.raises(FencedError, match=second.run_id):
        job.acknowledge(first.make_ack(last, 6))
    second.batch(7)
    check_rows(second, storage, 7)
    assert_invariants(storage, orphans=True)  # the first driver may delete nothing any more
    close(first)
    close(second)


def test_a_job_has_a_node_and_a_session_of_its_own(
    storage: LocalStorage, settings: dict[str, str], zookeeper: ZooKeeperServer
) -> None:
    driver = start(storage, settings)
    driver.batch(1)
    with zookeeper.client() as client:
        node = f"{settings['zookeeper.path']}/{driver.query_id}"
        assert sorted(client.get_children(node)) == ["counter", "owner-1", "records"]
        close(driver)
        await_gone(client, f"{node}/owner-1")


def test_a_job_that_cannot_open_leaves_no_session(storage: LocalStorage, settings: dict[str, str]) -> None:
    driver = start(storage, settings)
    driver.batch(1)
    close(driver)
    threads = set(threading.enumerate())
    for _ in range(3):
        with pytest.raises(VersionNotFoundError):
            start(storage, settings).trigger(9)
    left = [thread for thread in threading.enumerate() if thread not in threads]
    for thread in left:
        thread.join(PATIENCE)
    assert not any(thread.is_alive() for thread in left)


def test_a_location_that_was_moved_takes_its_records_along(
    storage: LocalStorage, settings: dict[str, str], zookeeper: ZooKeeperServer, tmp_path: Path
) -> None:
    first = start(storage, settings)
    first.batch(1)
    first.batch(2)
    close(first)
    moved = LocalStorage(shutil.copytree(tmp_path, tmp_path.with_name("moved")))
    with pytest.raises(LocationMovedError) as caught:
        start(moved, settings).trigger(3)
    assert (caught.value.recorded, caught.value.location) == (storage.location, moved.location)
    with zookeeper.client() as client:
        client.delete(f"{settings['zookeeper.path']}/{first.query_id}", recursive=True)
    second = start(moved, settings, first)
    second.batch(3)
    check_rows(second, moved, 3)
    assert completed_versions(moved.location) == [2, 3]
    close(second)


def test_stores_without_a_query_have_a_node_each(storage: LocalStorage, settings: dict[str, str]) -> None:
    names = set()
    for run_id in ("standalone:/a", "standalone:/b", "run-1", "run-2"):
        config = CheckpointConfig(store="zookeeper", zookeeper_quorum=settings["zookeeper.quorum"])
        store = make_store(config, storage, Owner("host", 1, "", "query-1", run_id), SystemClock())
        assert isinstance(store, ZooKeeperCompletedCheckpointStore)
        names.add(store.path)
    assert len(names) == 3
    assert "/spark-ckpt/query-1" in names
    assert all(len(name.split("/")) == 3 for name in names)
