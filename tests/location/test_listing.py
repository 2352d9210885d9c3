"""Locations without a log: the store `standalone`, and the checkpoints found by a scan."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from spark_ckpt.checkpoint.errors import VersionNotFoundError
from spark_ckpt.completed import CheckpointRecord
from spark_ckpt.completed.errors import StoreMismatchError
from spark_ckpt.completed.standalone import StandaloneCompletedCheckpointStore
from spark_ckpt.errors import LogMissingError
from spark_ckpt.location.listing import list_completed, scan
from spark_ckpt.operations.verify import Verification, verify
from spark_ckpt.storage import LocalStorage
from tests.storage.faulty import FaultyStorage
from tests.support.driver import Driver, check_rows, faulty_environment, located


@pytest.fixture
def storage(tmp_path: Path) -> FaultyStorage:
    return FaultyStorage(LocalStorage(tmp_path))


def start(storage: FaultyStorage, **options: Any) -> Driver:
    settings = {"store": "standalone", "inlineThreshold": "0"}
    return Driver(storage.location, environment=faulty_environment(storage), settings=settings, **options)


def run(storage: FaultyStorage, versions: int) -> Driver:
    driver = start(storage)
    for version in range(1, versions + 1):
        driver.batch(version)
    return driver


def next_run(storage: FaultyStorage, before: Driver, **options: Any) -> Driver:
    driver = start(storage, **options)
    driver.rows, driver.ids = before.rows, before.ids
    return driver


def found(storage: FaultyStorage) -> dict[int, int]:
    """Versions by checkpoint id."""
    return {record.id: record.version for record in scan(storage).records}


def test_a_new_run_continues_from_the_last_checkpoint(storage: FaultyStorage) -> None:
    driver = run(storage, 12)
    assert found(storage) == {12: 11, 13: 12}  # by number: 13 comes after 9
    second = next_run(storage, driver)
    second.batch(13)
    second.batch(14)
    check_rows(second, storage, 14)
    assert found(storage) == {15: 13, 16: 14}
    assert not storage.exists("ckpt/completed")
    assert storage.list("ckpt/completed") == []


def test_a_record_is_made_from_metadata_alone(storage: FaultyStorage, monkeypatch: pytest.MonkeyPatch) -> None:
    records: list[CheckpointRecord] = []
    add = StandaloneCompletedCheckpointStore.add

    def added(store: StandaloneCompletedCheckpointStore, make: Callable[[int, str], CheckpointRecord]) -> Any:
        records.append(add(store, make))
        return records[-1]

    monkeypatch.setattr(StandaloneCompletedCheckpointStore, "add", added)
    run(storage, 3)
    made, written = scan(storage).records[-1], records[-1]

    def kept(record: CheckpointRecord) -> tuple[object, ...]:
        return (
            record.id,
            record.batch_id,
            record.version,
            record.state_bytes,
            record.rows,
            record.operators,
            record.metadata,
            record.owner.run_id,
        )

    assert kept(made) == kept(written)
    assert made.timestamp_ms > 1_600_000_000_000


DAMAGES: dict[str, tuple[Callable[[LocalStorage, str], object], str]] = {
    "missing": (lambda storage, name: storage.delete(name), "the file is missing"),
    "cut off": (lambda storage, name: storage.write_atomic(name, storage.read(name)[:-5]), "input_channel_state"),
    "of another": (
        lambda storage, name: storage.write_atomic(name, storage.read(name.replace("chk-4", "chk-3"))),
        "metadata of checkpoint 3",
    ),
    "not ours": (lambda storage, name: storage.write_atomic(name, b"\x00" * 40), "magic"),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_what_is_not_whole_is_left_aside(storage: FaultyStorage, tmp_path: Path, damage: str) -> None:
    driver = run(storage, 3)
    name = "ckpt/chk-4/_metadata"
    (tmp_path / "ckpt" / "chk-4" / "keep").touch()
    do, reason = DAMAGES[damage]
    do(LocalStorage(tmp_path), name)
    result = scan(storage)
    assert {record.id: record.version for record in result.records} == {3: 2}
    (damaged,) = result.damaged
    assert damaged.path == storage.describe(name)
    assert reason in str(damaged)
    assert result.next_id == 5
    with pytest.raises(VersionNotFoundError, match=r"the retained checkpoints are 3 .version 2."):
        start(storage).trigger(4)
    second = start(storage)
    second.trigger(3)
    second.ids = {key: str(located(second, 2, key).state_id) for key in driver.subtasks()}
    second.batch(3)
    assert found(storage) == {3: 2, 6: 3}
    assert (tmp_path / "ckpt" / "chk-4").exists(), "what was left aside is gone"


def test_a_state_file_that_is_missing_makes_a_checkpoint_damaged(storage: FaultyStorage) -> None:
    driver = run(storage, 3)
    path = located(driver, 3, driver.subtasks()[0]).segments[-1].path
    storage.delete(f"ckpt/{path}")
    result = scan(storage)
    assert [record.id for record in result.records] == [3]
    assert path is not None and path in result.damaged[0].path


def test_the_scan_is_repeated_until_two_listings_agree(storage: FaultyStorage, tmp_path: Path) -> None:
    driver = run(storage, 3)
    writer = next_run(FaultyStorage(LocalStorage(tmp_path)), driver)
    began = False

    def before(operation: str, name: str) -> None:
        nonlocal began
        if operation == "read" and not began:
            began = True
            for version in (4, 5):
                writer.batch(version)

    storage.before = before
    assert [record.version for record in scan(storage).records] == [4, 5]
    assert scan(storage).damaged == ()


def test_a_driver_that_may_not_be_the_only_one_deletes_no_orphans(storage: FaultyStorage) -> None:
    driver = run(storage, 2)
    storage.write_atomic("ckpt/shared/of-another-driver", b"x")
    next_run(storage, driver).batch(3)
    assert storage.exists("ckpt/shared/of-another-driver")


def test_the_other_store_names_the_one_to_go_on_with(storage: FaultyStorage, tmp_path: Path) -> None:
    driver = run(storage, 2)
    other = Driver(storage.location, environment=faulty_environment(storage))
    with pytest.raises(VersionNotFoundError, match=r"used another store: set spark\.sql.*\.ckpt\.store"):
        other.trigger(3)
    assert storage.list("ckpt/completed") == []
    next_run(storage, driver).batch(3)


def test_a_location_with_a_log_is_refused(storage: FaultyStorage, tmp_path: Path) -> None:
    logged = Driver(storage.location, environment=faulty_environment(storage), settings={"inlineThreshold": "0"})
    logged.batch(1)
    with pytest.raises(StoreMismatchError):
        start(storage).trigger(2)
    shutil.move(tmp_path / "ckpt" / "completed", tmp_path / "aside")
    next_run(storage, logged).batch(2)
    assert list(found(storage).values()) == [1, 2]


def _with_log(verification: Verification) -> Sequence[object]:
    assert "the log of completed checkpoints" not in str(verification.damages)
    return verification.checkpoints


@pytest.mark.parametrize(
    "read",
    [lambda storage: list_completed(storage).records, lambda storage: _with_log(verify(storage))],
    ids=["list_completed", "verify"],
)
def test_a_query_that_begins_meanwhile_has_not_lost_its_log(
    storage: FaultyStorage, tmp_path: Path, read: Callable[[FaultyStorage], Sequence[object]]
) -> None:
    """The reader lists the log before the query claims, and the checkpoint directories after the first completion."""
    query = Driver(tmp_path, environment=faulty_environment(FaultyStorage(LocalStorage(tmp_path))))

    has_read_log = False

    def before(operation: str, name: str) -> None:
        nonlocal has_read_log
        if (operation, name) == ("list", "ckpt") and has_read_log and query.job is None:
            query.batch(1)
        has_read_log |= (operation, name) == ("list", "ckpt/completed")

    storage.before = before
    assert len(read(storage)) == 1
    shutil.rmtree(tmp_path / "ckpt" / "completed")
    with pytest.raises(LogMissingError, match="were deleted"):
        list_completed(storage)
    assert "the log of completed checkpoints is missing" in str(verify(storage).damages)
