"""Garbage collection of a coordinator's location, during its operation or after a crash."""

from __future__ import annotations

import os
import random
import time
import uuid
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from spark_ckpt.clock import SystemClock
from spark_ckpt.completed.errors import DamagedRecordError
from spark_ckpt.errors import StorageError
from spark_ckpt.operations import gc
from spark_ckpt.operations.errors import CollectionRefusedError
from spark_ckpt.operations.gc import Collection, collect_garbage
from spark_ckpt.storage import LocalStorage
from tests.storage.faulty import FaultyStorage
from tests.support.driver import Driver, check_rows, faulty_environment, located
from tests.support.invariants import assert_invariants, completed_versions
from tests.support.segments import placed

STORES = ("filesystem", "standalone")


@pytest.fixture
def storage(tmp_path: Path) -> FaultyStorage:
    return FaultyStorage(LocalStorage(tmp_path))


def start(storage: FaultyStorage, store: str = "filesystem", **options: Any) -> Driver:
    settings = {"inlineThreshold": "0", "store": store}
    # Files have real modification times, so records need the real time, too.
    environment = replace(faulty_environment(storage), clock=SystemClock())
    return Driver(storage.location, environment=environment, settings=settings, **options)


def run(storage: FaultyStorage, versions: int, store: str = "filesystem") -> Driver:
    driver = start(storage, store)
    for version in range(1, versions + 1):
        driver.batch(version)
    return driver


def let_age(storage: FaultyStorage, hours: float) -> None:
    """Sets the modification time of all files to `hours` ago."""
    then = time.time() - hours * 3600
    for path in Path(storage.location, "ckpt").rglob("*"):
        os.utime(path, (then, then))


def found(collection: Collection) -> set[str]:
    return {orphan.path for orphan in collection.orphans}


LOST = "shared/delta-10571057105710571057105710571057"
ORPHANS = {LOST, f"shared/.{LOST[7:]}.crc", "shared/.base-10571057105710571057105710571057.tmp", "chk-1/_metadata"}


def litter(storage: FaultyStorage) -> None:
    """Writes the leftovers of crashes."""
    for path in ORPHANS:
        storage.write_atomic(f"ckpt/{path}", b"x")
    Path(storage.location, "ckpt", "chk-2-2").mkdir()


@pytest.mark.parametrize("store", STORES)
def test_deletes_orphans_that_are_old_enough_and_nothing_else(storage: FaultyStorage, store: str) -> None:
    driver = run(storage, 5, store)
    if store == "filesystem":
        litter(storage)
    else:  # there, every intact `_metadata` is a checkpoint
        for path in ORPHANS - {"chk-1/_metadata"}:
            storage.write_atomic(f"ckpt/{path}", b"x")
        Path(storage.location, "ckpt", "chk-2-2").mkdir()
    expected = (ORPHANS if store == "filesystem" else ORPHANS - {"chk-1/_metadata"}) | {"chk-2-2"}
    let_age(storage, 23)
    assert found(collect_garbage(storage)) == set()
    let_age(storage, 25)
    # The modification time of `_metadata` is the completion time of its checkpoint.
    os.utime(max(Path(storage.location).glob("ckpt/chk-*/_metadata"), key=lambda path: int(path.parent.name[4:])))
    storage.write_atomic("ckpt/shared/delta-a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1", b"x")
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
    assert storage.exists("ckpt/shared/delta-a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1")
    check_rows(driver, storage, 5)
    driver.batch(6)
    check_rows(driver, storage, 6)


class Later(SystemClock):
    """Clock two days ahead."""

    def now_ms(self) -> int:
        return super().now_ms() + 48 * 3600 * 1000


def test_a_base_that_waits_while_the_query_is_idle_stays(storage: FaultyStorage) -> None:
    driver = run(storage, 5)
    key = driver.subtasks()[0]
    snapshot = driver.base_of(key, 5)
    path = "shared/base-" + uuid.uuid4().hex
    storage.write_atomic(f"ckpt/{path}", bytes(snapshot.segment.data))
    base = replace(snapshot, segment=placed(snapshot.segment, path))
    storage.write_atomic(f"ckpt/{LOST}", b"x")
    long_ago = time.time() - 25 * 3600
    os.utime(Path(storage.location, f"ckpt/{LOST}"), (long_ago, long_ago))
    assert found(collect_garbage(storage, clock=Later())) == {LOST}
    job = driver.trigger(6)
    for subtask in driver.subtasks():
        ack = driver.make_ack(subtask, 6, base=base if subtask == key else None)
        job.acknowledge(ack)
        driver.take_over(ack)
    assert located(driver, 6, key).segments[0].path == path
    check_rows(driver, storage, 6)


def age(storage: FaultyStorage, path: str, hours: float) -> None:
    """Sets the modification time of a file to `hours` ago."""
    then = time.time() - hours * 3600
    os.utime(Path(storage.location, "ckpt", path), (then, then))


def test_a_location_without_a_checkpoint_is_judged_by_its_newest_file(storage: FaultyStorage) -> None:
    """The newest file determines the age, because a first batch may be in progress."""
    storage.write_atomic(f"ckpt/{LOST}", b"x")
    age(storage, LOST, 25)
    assert found(collect_garbage(storage, clock=Later())) == set()
    start(storage).trigger(1)
    storage.write_atomic(f"ckpt/{LOST}", b"x")
    assert found(collect_garbage(storage, clock=Later())) == set()
    age(storage, LOST, 25)
    assert found(collect_garbage(storage)) == {LOST}


@pytest.mark.parametrize("ahead_hours", [-10_000, 48, 10_000])
def test_no_age_is_told_by_the_clock_of_a_driver(storage: FaultyStorage, ahead_hours: float) -> None:
    class Wrong(SystemClock):
        def now_ms(self) -> int:
            return super().now_ms() + int(ahead_hours * 3600 * 1000)

    driver = Driver(
        storage.location,
        environment=replace(faulty_environment(storage), clock=Wrong()),
        settings={"inlineThreshold": "0"},
    )
    for version in (1, 2):
        driver.batch(version)
    in_flight, orphan = "shared/delta-" + "a1" * 16, "shared/delta-" + "b2" * 16
    for path, hours in ((in_flight, 1), (orphan, 25)):
        storage.write_atomic(f"ckpt/{path}", b"x")
        age(storage, path, hours)
    assert found(collect_garbage(storage, clock=Later())) == {orphan}


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
    with pytest.raises(DamagedRecordError):
        collect_garbage(storage, grace_seconds=0)


def test_metadata_above_the_log_may_be_complete_where_the_log_is_elsewhere(storage: FaultyStorage) -> None:
    """With the store `zookeeper`, the mirrored log files may lag behind."""
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
            job.housekeeping()  # drops a checkpoint whose files have just been listed

    reader.before = before
    assert found(collect_garbage(reader, grace_seconds=0)) <= {"chk-3/_metadata"}
    assert done
    for ack in acks:
        driver.take_over(ack)
    check_rows(driver, storage, 4)
    assert_invariants(storage)


def test_the_record_of_a_first_checkpoint_does_not_make_its_files_old(
    storage: FaultyStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A first batch of many hours completes after the log is read, but before the age of its files is checked."""
    driver = start(storage)
    job = driver.trigger(1)
    first, *others = driver.subtasks()
    ack = driver.make_ack(first, 1)
    path = f"shared/delta-{uuid.uuid4().hex}"
    storage.write_atomic(f"ckpt/{path}", bytes(ack.delta.data))
    job.acknowledge(replace(ack, delta=placed(ack.delta, path)))
    let_age(storage, 25)
    references = gc.references

    def then_completes(*arguments: Any) -> set[str]:
        used = references(*arguments)
        for other in others:
            job.acknowledge(driver.make_ack(other, 1))
        return used

    monkeypatch.setattr(gc, "references", then_completes)
    assert found(collect_garbage(storage)) == set()
    assert completed_versions(driver.location) == [1]
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
    storage.fail("delete", "delta-10571057105710571057105710571057$")
    collection = collect_garbage(storage, grace_seconds=0)
    assert [path for path, _ in collection.failed] == [LOST]
    assert "injected" in collection.failed[0][1]
    assert found(collect_garbage(storage, grace_seconds=0)) == {LOST}
    assert_invariants(storage)


def test_a_new_run_sweeps_the_same_and_empty_directories(storage: FaultyStorage) -> None:
    run(storage, 3)
    litter(storage)
    start(storage).trigger(4)
    assert found(collect_garbage(storage, grace_seconds=0, dry_run=True)) == set()
    assert not Path(storage.location, "ckpt", "chk-2-2").exists()


def test_nothing_is_lost_whenever_it_runs(storage: FaultyStorage, tmp_path: Path, rng: random.Random) -> None:
    """Collections run at random moments between a query's storage operations, with crashes and restarts."""
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
