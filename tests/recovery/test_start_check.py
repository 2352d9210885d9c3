"""What a start reads of Spark's own files, on made-up locations.

Real starts are in `tests/spark/test_damaged_starts.py`.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from spark_ckpt.checkpoint.batch import SparkBatch
from spark_ckpt.checkpoint.meaning import QueryMeaning, SourceMeaning
from spark_ckpt.recovery.start_check import Start, check_start
from spark_ckpt.storage import LocalStorage
from tests.support.locations import LocationBuilder, make_batch

FILE, KAFKA, RATE = '{"logOffset":%d}', '{"topic":{"0":%d}}', "%d"


@pytest.fixture
def storage(tmp_path: Path) -> LocalStorage:
    return LocalStorage(tmp_path)


def offsets(*sources: str, batch: int) -> bytes:
    texts = [source % batch if "%" in source else source for source in sources]
    return "\n".join(["v1", json.dumps({"batchWatermarkMs": 0, "conf": {}}), *texts]).encode()


def entry(number: int) -> bytes:
    return f'v1\n{{"path":"file:/in/{number}","timestamp":1,"batchId":{number}}}'.encode()


def location(storage: LocalStorage, *sources: str, logs: int = 1) -> None:
    """Three committed batches, each with an entry in the log of each file source."""
    for batch in range(3):
        storage.write_atomic(f"offsets/{batch}", offsets(*sources, batch=batch))
        storage.write_atomic(f"commits/{batch}", b'v1\n{"nextBatchWatermarkMs":0}')
        for source in range(logs):
            storage.write_atomic(f"sources/{source}/{batch}", entry(batch))


def found(storage: LocalStorage, start: Start | None = None, batch: SparkBatch | None = None) -> list[str]:
    damages = check_start(storage, Start.after(2) if start is None else start, batch)
    return [str(damage).removeprefix(storage.describe("")).lstrip("/") for damage in damages]


def only(storage: LocalStorage, start: Start | None = None) -> str:
    (damage,) = found(storage, start)
    return damage


@pytest.mark.parametrize("sources", [(FILE,), (KAFKA,), (RATE,), (FILE, KAFKA), ("-", FILE), ("text of another",)])
def test_a_whole_location(storage: LocalStorage, sources: tuple[str, ...]) -> None:
    location(storage, *sources, logs=sources.index(FILE) + 1 if FILE in sources else 0)
    assert found(storage) == []


def test_older_entries_are_not_read(storage: LocalStorage) -> None:
    location(storage, FILE)
    for name in ("offsets/0", "commits/0", "commits/1"):
        storage.write_atomic(name, b"")
    assert found(storage) == []


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "its first line is '' instead of a version"),
        (b"v1\n{", "malformed JSON"),
        (offsets(batch=1), "it has offsets of 0 sources, but offsets/2 of 1"),
        (offsets('{"logOffset":', batch=1), "is of another kind than that beside it"),
        (offsets('{"logOffset":3}', batch=1), "entry 3 of source sources/0 follows entry 2"),
    ],
)
def test_the_entry_before_the_last(storage: LocalStorage, content: bytes, reason: str) -> None:
    location(storage, FILE)
    storage.write_atomic("offsets/1", content)
    assert only(storage).startswith("offsets/1: ")
    assert reason in only(storage)


def test_spark_reads_no_start_of_a_committed_batch_from_kafka(storage: LocalStorage) -> None:
    location(storage, KAFKA, logs=0)
    storage.write_atomic("offsets/1", offsets('{"topic":', batch=1))
    assert found(storage) == []


@pytest.mark.parametrize("batch", [1, 2])
def test_both_ends_of_a_batch_that_a_start_repeats(storage: LocalStorage, batch: int) -> None:
    location(storage, KAFKA, logs=0)
    storage.write_atomic(f"offsets/{batch}", offsets('{"topic":', batch=1))
    assert only(storage, Start(2, 1)).startswith(
        f"offsets/{batch}: the offset of source 0, '{{\"topic\":', is of another"
    )
    storage.write_atomic(f"offsets/{batch}", offsets("{}", batch=1))  # no topic yet, or none any more
    assert found(storage, Start(2, 1)) == []


def test_the_first_batch_has_none_before_it(storage: LocalStorage) -> None:
    location(storage, FILE)
    for batch in (1, 2):
        storage.delete(f"offsets/{batch}")
    assert found(storage, Start(0, 0)) == []


def test_the_commit_of_the_batch_before(storage: LocalStorage) -> None:
    location(storage, FILE)
    storage.write_atomic("commits/1", b"v1\n{")
    assert only(storage, Start(2, 1)).startswith("commits/1: malformed JSON")
    assert found(storage, Start(2, -1)) == []


def test_a_stream_that_is_used_twice_has_one_log(storage: LocalStorage) -> None:
    """Both of its lines in the offset log are those of one source."""
    location(storage, FILE, FILE)
    twice = SparkBatch(2, 3, "q", "r", "4.2.0", 1, 1, (1,), sources=("FileStreamSource[file:/in]",) * 2)
    assert found(storage, batch=twice) == []
    two = replace(twice, sources=("FileStreamSource[file:/a]", "FileStreamSource[file:/b]"))
    assert "entry 2 of the source is missing" in found(storage, batch=two)[0]
    source = SourceMeaning("FileStreamSource[file:/in]", directory=0)
    numbered = replace(twice, sources=("0", "1"), meaning=QueryMeaning((source, source), ()).encode())
    assert found(storage, batch=numbered) == []


@pytest.mark.parametrize(("content", "is_read"), [(b"v1\n1700000000000", True), (b"", False), (b"v1\n17x", False)])
def test_the_first_start_of_a_rate_source(storage: LocalStorage, content: bytes, is_read: bool) -> None:
    location(storage, RATE, logs=0)
    storage.write_atomic("sources/0/0", content)
    assert (found(storage) == []) == is_read


def test_entries_of_the_last_batch_that_were_compacted(storage: LocalStorage) -> None:
    """A source reads an entry that is gone from the newest compacted one, which lists it."""
    location(storage, FILE)
    storage.write_atomic("sources/0/5.compact", b"\n".join([b"v1", *(entry(n).partition(b"\n")[2] for n in range(6))]))
    storage.delete("sources/0/2")
    assert found(storage) == []
    storage.write_atomic("sources/0/5.compact", entry(5))
    assert only(storage) == "sources/0/2: the entry of the source is missing; offsets/2 needs it"


def test_a_location_without_its_directory_of_state(storage: LocalStorage) -> None:
    location(storage, FILE)
    batch = make_batch(2)
    assert batch.stores
    (damage,) = found(storage, batch=batch)
    assert damage.startswith("state: ")


@pytest.mark.parametrize(("files", "damages"), [([], 0), (["file:/query/state/0/_stateSchema/default/0_a"], 1)])
def test_schemas_that_the_metadata_of_an_operator_with_variables_names(
    storage: LocalStorage, files: list[str], damages: int
) -> None:
    """A start compares with those that are named, and needs no others."""
    location(storage, FILE)
    (store, *_), name = make_batch(2).stores, "transformWithStateInPandasExec"
    infos = [{"storeName": "default", "numColsPrefixKey": 0, "numPartitions": 2, "stateSchemaFilePaths": files}]
    fields = {
        "operatorInfo": {"operatorId": store.operator_id, "operatorName": name},
        "stateStoreInfo": infos,
        "operatorPropertiesJson": json.dumps({"timeMode": "NoTime", "outputMode": "Update", "stateVariables": []}),
    }
    LocationBuilder(storage).operator_metadata(store.operator_id, fields, 2)
    missing = found(storage, batch=replace(make_batch(2), stores=(replace(store, name=name),)))
    assert len(missing) == damages
    assert all("the state schema is missing" in damage for damage in missing)
