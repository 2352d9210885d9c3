"""Spark's logs in a checkpoint location: listed as Spark lists them, each entry added once and never changed."""

from __future__ import annotations

from pathlib import Path

import pytest

from spark_ckpt.errors import StateFileNotFoundError, StorageError
from spark_ckpt.spark_files.entries import CommitEntry, OffsetEntry
from spark_ckpt.spark_files.errors import SparkLogEntryExistsError
from spark_ckpt.spark_files.logs import BatchLog, SparkLog, checksum_name
from spark_ckpt.spark_files.operator_metadata import OperatorMetadata
from spark_ckpt.storage import LocalStorage, Storage
from tests.storage.faulty import Fault, FaultyStorage

ENTRY = OffsetEntry(1, {"conf": {}}, {"0": "{}"})
OTHER = OffsetEntry(1, {"conf": {}}, {"0": '{"at":1}'})


@pytest.fixture
def storage(tmp_path: Path) -> Storage:
    return LocalStorage(tmp_path)


def operator(number: int, version: int, partitions: int) -> OperatorMetadata:
    store = {"storeName": "default", "numColsPrefixKey": 0, "numPartitions": partitions}
    info = {"operatorId": number, "operatorName": "dedupe"}
    return OperatorMetadata(version, {"operatorInfo": info, "stateStoreInfo": [store]})


def test_batches_by_number(storage: Storage) -> None:
    for name in ("2", "10", "9", ".10.crc", "11.tmp", "note"):
        storage.write_atomic(f"offsets/{name}", b"")
    storage.write_atomic("offsets/12/file", b"")
    assert SparkLog(storage).batches(BatchLog.OFFSETS) == [2, 9, 10]
    assert SparkLog(storage).batches(BatchLog.COMMITS) == []


def test_what_is_added_is_read(storage: Storage) -> None:
    log = SparkLog(storage)
    log.add_offsets(4, ENTRY)
    log.add_commit(4, CommitEntry(1, {"nextBatchWatermarkMs": 3}))
    assert log.offsets(4) == ENTRY
    assert log.commit(4).metadata == {"nextBatchWatermarkMs": 3}
    with pytest.raises(StateFileNotFoundError):
        log.offsets(5)


def test_an_entry_is_never_changed(storage: Storage) -> None:
    log = SparkLog(storage)
    log.add_offsets(4, ENTRY)
    log.add_offsets(4, ENTRY)
    with pytest.raises(SparkLogEntryExistsError, match="offsets/4") as caught:
        log.add_offsets(4, OTHER)
    assert caught.value.path == storage.describe("offsets/4")
    assert log.offsets(4) == ENTRY


@pytest.mark.parametrize("fault", [Fault.LOST_ANSWER, Fault.EXISTS_AFTER_DONE])
def test_an_answer_that_got_lost_is_found_out(storage: Storage, fault: Fault) -> None:
    faulty = FaultyStorage(storage)
    faulty.fail("create", "offsets/4", fault)
    SparkLog(faulty).add_offsets(4, ENTRY)
    assert SparkLog(storage).offsets(4) == ENTRY


def test_a_request_that_got_lost_is_told(storage: Storage) -> None:
    faulty = FaultyStorage(storage)
    faulty.fail("create", "offsets/4", Fault.LOST_REQUEST)
    with pytest.raises(StorageError, match="offsets/4"):
        SparkLog(faulty).add_offsets(4, ENTRY)


def test_checksums_of_an_entry_that_is_gone_do_not_stay(storage: Storage) -> None:
    stale = checksum_name("offsets/4")
    storage.write_atomic(stale, b"crc")
    SparkLog(storage).add_offsets(4, ENTRY)
    assert stale == "offsets/.4.crc"
    assert not storage.exists(stale)


def test_operators_and_partitions(storage: Storage) -> None:
    for name in ("0/0/x", "0/10/x", "0/2/x", "0/_metadata/metadata", "12/0/x", "2/0/x", "3"):
        storage.write_atomic(f"state/{name}", b"")
    log = SparkLog(storage)
    assert log.operators() == [0, 2, 12]
    assert log.partitions(0) == [0, 2, 10]


def test_metadata_of_an_operator_as_of_a_batch(storage: Storage) -> None:
    log = SparkLog(storage)
    for batch_id, partitions in ((0, 3), (9, 4), (10, 5)):
        log.add_operator_metadata(batch_id, operator(0, 2, partitions))
    for batch_id, expected in ((8, 3), (9, 4), (10, 5), (11, 5)):
        found = log.operator_metadata(0, batch_id)
        assert found is not None
        assert found.partitions == {"default": expected}


def test_metadata_of_an_operator_in_one_file(storage: Storage) -> None:
    storage.write_atomic("state/1/_metadata/metadata", operator(1, 1, 6).encode())
    log = SparkLog(storage)
    assert log.operator_metadata(1, 5) == operator(1, 1, 6)
    assert log.operator_metadata(2, 5) is None


def test_query_id(storage: Storage) -> None:
    storage.write_atomic("metadata", b'{"id":"q"}')
    assert SparkLog(storage).query_id() == "q"
