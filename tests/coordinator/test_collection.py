"""Collecting orphans of locations that the coordinator has written, while it goes on or after it crashed."""

from __future__ import annotations

import os
import random
import time
from pathlib import Path
from typing import Any

import pytest

from spark_ckpt.coordinator.collection import Collection, collect_garbage
from spark_ckpt.errors import CollectionRefusedError, CorruptRecordError, StorageError
from spark_ckpt.storage import LocalStorage
from tests.coordinator.driving import Driver, check_rows, faulty_environment, located
from tests.storage.faulty import FaultyStorage
from tests.support.invariants import assert_invariants, completed_versions

STORES = ("filesystem", "standalone")


@pytest.fixture
def storage(tmp_path: Path) -> FaultyStorage:
    return FaultyStorage(LocalStorage(tmp_path))


def start(storage: FaultyStorage, store: str = "filesystem", **options: Any) -> Driver:
    settings = {"inlineThreshold": "0", "store": store}
    return Driver(storage.location, environment=faulty_environment(storage), settings=settings, **options)


def run(storage: FaultyStorage, versions: int, store: str = "filesystem") -> Driver:
    driver = start(storage, store)
    for version in range(1, versions + 1):
        driver.batch(version)
    return driver


def let_age(storage: FaultyStorage, hours: float) -> None:
    """Everything was written so long ago."""
    then = time.time() - hours * 3600
    for path in Path(storage.location, "ckpt").rglob("*"):
        os.utime(path, (then, then))


def found(collection: Collection) -> set[str]:
    return {orphan.path for orphan in collection.orphans}


ORPHANS = {"shared/delta-lost", "shared/.delta-lost.crc", "shared/.bases-x.tmp", "chk-1/_metadata"}


def litter(storage: FaultyStorage) -> None:
    """What crashes leave."""
    for path in ORPHANS:
        storage.write_atomic(f"ckpt/{path}", b"x")
    Path(storage.location, "ckpt", "chk-2-2").mkdir()


@pytest.mark.parametrize("store", STORES)
def test_deletes_orphans_that_are_old_enough_and_nothing_else(storage: FaultyStorage, store: str) -> None:
    driver = run(storage, 5, store)
    if store == "filesystem":
        litter(storage)
    else:  # there every `_metadata` that is whole is a checkpoint
        for path in ORPHANS - {"chk-1/_metadata"}:
            storage.write_atomic(f"ckpt/{path}", b"x")
        Path(storage.location, "ckpt", "chk-2-2").mkdir()
    expected = (ORPHANS if store == "filesystem" else ORPHANS - {"chk-1/_metadata"}) | {"chk-2-2"}
    let_age(storage, 23)
    assert found(collect_garbage(storage)) == set()
    let_age(storage, 25)
    storage.write_atomic("ckpt/shared/of-the-pending-checkpoint", b"x")
    seen: list[tuple[int, int]] = []
    dry = collect_garbage(storage, dry_run=True)
    assert found(dry) == expected
    assert all(Path(storage.location, "ckpt", path).exists() for path in expected)
    done = collect_garbage(storage, progress=lambda number, of: seen.append((number, of)))
    assert found(done) == expected
    assert done.failed == ()
    assert done.size == len(expected) - 1
    assert seen == [(i + 1, len(expected)) for i in range(len(expected))]
    assert not any(Path(storage.location, "ckpt", path).exists() for path in [*expected, "chk-1"])
    assert storage.exists("ckpt/shared/of-the-pending-checkpoint")
    check_rows(driver, storage, 5)
    driver.batch(6)
    check_rows(driver, storage, 6)


@pytest.mark.parametrize("damaged", ["_metadata", "state"])
@pytest.mark.parametrize("store", STORES)
def test_refuses_while_a_checkpoint_cannot_be_read(storage: FaultyStorage, store: str, damaged: str) -> None:
    driver = run(storage, 3, store)
    newest = max(path.parent.name for path in Path(storage.location).glob("ckpt/chk-*/_metadata"))
    if damaged == "_metadata":
        name = f"ckpt/{newest}/_metadata"
        storage.write_atomic(name, storage.read(name)[:-1])
    else:
        storage.delete(f"ckpt/{located(driver, 3, driver.subtasks()[0]).segments[-1].path}")
    files = sorted(Path(storage.location).rglob("*"))
    with pytest.raises(CollectionRefusedError, match=f"checkpoint {newest[4:]} cannot be read") as caught:
        collect_garbage(storage, grace_seconds=0)
    assert caught.value.checkpoint_id == int(newest[4:])
    assert sorted(Path(storage.location).rglob("*")) == files


def test_refuses_a_damaged_record(storage: FaultyStorage) -> None:
    run(storage, 3)
    storage.write_atomic(f"ckpt/completed/{4:020d}.json", b"{}")
    with pytest.raises(CorruptRecordError):
        collect_garbage(storage, grace_seconds=0)


def test_metadata_above_the_log_may_be_complete_where_the_log_is_elsewhere(storage: FaultyStorage) -> None:
    """The store `zookeeper`: the files of the log lag behind."""
    driver = run(storage, 3)
    storage.delete(f"ckpt/completed/{4:020d}.json")
    assert found(collect_garbage(storage, grace_seconds=0, dry_run=True)) == set()
    check_rows(driver, storage, 3)
    storage.write_atomic("ckpt/chk-5/_metadata", b"damaged")
    with pytest.raises(CollectionRefusedError, match="checkpoint 5"):
        collect_garbage(storage, grace_seconds=0)


def test_a_checkpoint_that_completes_meanwhile_keeps_its_files(storage: FaultyStorage, tmp_path: Path) -> None:
    driver = run(storage, 3)
    job = driver.trigger(4)
    acks = [driver.make_ack(key, 4) for key in driver.subtasks()]
    for ack in acks[:-1]:
        job.acknowledge(ack)
    reader = FaultyStorage(LocalStorage(tmp_path))
    done = False

    def before(operation: str, name: str) -> None:
        nonlocal done
        if operation == "read" and name.endswith("_metadata") and not done:
            done = True
            job.acknowledge(acks[-1])
            job.housekeeping()  # drops a checkpoint whose files were there a moment ago

    reader.before = before
    assert found(collect_garbage(reader, grace_seconds=0)) <= {"chk-3/_metadata"}
    assert done
    for ack in acks:
        driver.take_over(ack)
    check_rows(driver, storage, 4)
    assert_invariants(storage)


def test_a_location_that_never_stands_still_is_a_typed_error(storage: FaultyStorage, tmp_path: Path) -> None:
    driver = run(storage, 2)
    reader = FaultyStorage(LocalStorage(tmp_path))
    versions = iter(range(3, 1000))

    def before(operation: str, name: str) -> None:
        if operation == "read" and name.endswith("_metadata"):
            driver.batch(next(versions))

    reader.before = before
    with pytest.raises(StorageError, match="changed during each"):
        collect_garbage(reader, grace_seconds=0)


def test_what_cannot_be_deleted_is_reported(storage: FaultyStorage) -> None:
    run(storage, 3)
    litter(storage)
    storage.fail("delete", "delta-lost$")
    collection = collect_garbage(storage, grace_seconds=0)
    assert [path for path, _ in collection.failed] == ["shared/delta-lost"]
    assert "injected" in collection.failed[0][1]
    assert found(collect_garbage(storage, grace_seconds=0)) == {"shared/delta-lost"}
    assert_invariants(storage)


def test_a_new_run_sweeps_the_same_and_empty_directories(storage: FaultyStorage) -> None:
    run(storage, 3)
    litter(storage)
    start(storage).trigger(4)
    assert found(collect_garbage(storage, grace_seconds=0, dry_run=True)) == set()
    assert not Path(storage.location, "ckpt", "chk-2-2").exists()


def test_nothing_is_lost_whenever_it_runs(storage: FaultyStorage, tmp_path: Path, rng: random.Random) -> None:
    """At random moments between the storage operations of a query, with crashes and restarts."""
    driver = start(storage)
    reader = LocalStorage(tmp_path)
    running = False

    def before(operation: str, name: str) -> None:
        nonlocal running
        if not running and rng.random() < 0.02:
            running = True
            collect_garbage(reader, grace_seconds=3600)
            running = False

    storage.before = before
    for version in range(1, 40):
        if rng.random() < 0.2:
            rows, ids = driver.rows, driver.ids
            driver = start(storage)
            driver.rows, driver.ids = rows, ids
            let_age(storage, 2)
        driver.batch(version, [key for key in driver.subtasks() if rng.random() < 0.3 and version > 1])
        check_rows(driver, storage, version)
    assert completed_versions(storage.location) == [38, 39]
