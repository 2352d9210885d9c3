"""Synthetic checkpoint locations that resemble the one of the demo's totals per aircraft, which the pages show."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from spark_ckpt.checkpoint.batch import Source
from spark_ckpt.checkpoint.layout import in_location
from spark_ckpt.checkpoint.load import read_checkpoint
from spark_ckpt.completed import RecordFiles
from spark_ckpt.format.segments import Section
from spark_ckpt.location.listing import list_completed
from spark_ckpt.spark_files.entries import CommitEntry, OffsetEntry
from spark_ckpt.spark_files.logs import QUERY, SparkLog
from spark_ckpt.spark_files.operator_metadata import OperatorMetadata
from spark_ckpt.storage import LocalStorage
from tests.support.state_location import Schema, StateLocation, row, schema

KEYS = 12
COMMITS = 23
"""Number of checkpoints: ids 2 to 24, like the ids of a demo run."""

PARTITIONS = 2
_BASE_AT = COMMITS - 1
_OFFSETS = OffsetEntry(
    1,
    {"batchWatermarkMs": 0, "batchTimestampMs": 7, "conf": {"spark.sql.shuffle.partitions": str(PARTITIONS)}},
    {},
)


def _value() -> Schema:
    value = schema(count="long", flown="long", sum="long", minutes="long", max="long", seen="timestamp")
    for field, name in zip(value["fields"], ("count", "count", "sum", "sum", "max", "max"), strict=True):
        field["name"] = name  # Spark's names for the buffers of an aggregate
    return value


VALUE = _value()


def make_totals(directory: Path, key_name: str) -> None:
    """Builds the location of a stopped query. Each checkpoint changes all keys; some add two more."""
    key = schema(**{key_name: "string"})
    location = StateLocation(directory, {"default": (key, VALUE)}, offsets=_OFFSETS.encode())
    location.storage.write_atomic(QUERY, b'{"id":"query"}')
    log = SparkLog(location.storage)
    store = {"storeName": "default", "numColsPrefixKey": 0, "numPartitions": PARTITIONS}
    operator = {"operatorInfo": {"operatorId": 0, "operatorName": location.name}, "stateStoreInfo": [store]}
    location.storage.write_atomic("state/0/_metadata/metadata", OperatorMetadata(1, operator).encode())
    entries: tuple[tuple[bytes, bytes], ...] = ()
    for commit in range(1, COMMITS + 1):
        before, entries = entries, _totals(key, commit)
        base = (Section(before),) if commit == _BASE_AT else ()
        offset = f'{{"logOffset":{commit - 1}}}'
        offsets = replace(_OFFSETS, offsets={"0": offset})
        location.sources, location.offsets = (Source("0", offset),), offsets.encode()
        location.storage.write_atomic(f"sources/0/{commit - 1}", b"v1\n")
        location.commit(Section(entries), base=base, rows=len(entries) // PARTITIONS, inline=False)
        log.add_offsets(commit - 1, offsets)
        log.add_commit(commit - 1, CommitEntry(1, {"nextBatchWatermarkMs": 0}))


def drop_older(directory: Path, retained: int) -> None:
    """Deletes the records of all but the newest `retained` checkpoints, as retention does."""
    records = RecordFiles(LocalStorage(directory))
    for checkpoint_id in range(2, COMMITS + 2 - retained):
        (directory / records.name(checkpoint_id)).unlink()


def damage_newest(directory: Path) -> None:
    """Changes a byte of the last delta, which only the newest checkpoint refers to."""
    storage = LocalStorage(directory)
    (chains,) = read_checkpoint(storage, list_completed(storage).records[-1]).table.values()
    path = chains[-1].entries[-1].path
    assert path is not None
    delta = directory / in_location(path)
    data = bytearray(delta.read_bytes())
    data[-1] ^= 1
    delta.write_bytes(data)


def _totals(key: Schema, commit: int) -> tuple[tuple[bytes, bytes], ...]:
    known = min(KEYS, 2 * (commit // 2 + 1))
    return tuple(
        (row(key, f"N{100 + 41 * number}"), row(VALUE, 400 + commit, 300 + commit, 9 * commit, 7 * commit, 30, 10**15))
        for number in range(known)
    )
