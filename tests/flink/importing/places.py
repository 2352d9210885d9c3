"""Locations of queries that have committed one batch without input, built without Spark."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from spark_ckpt.checkpoint.batch import Source
from spark_ckpt.format.segments import Section
from spark_ckpt.spark_files.entries import CommitEntry, OffsetEntry
from spark_ckpt.spark_files.logs import QUERY, SparkLog
from tests.support.state_location import Schema, StateLocation, schema

OFFSETS = OffsetEntry(
    1,
    {"batchWatermarkMs": 0, "batchTimestampMs": 7, "conf": {"spark.sql.shuffle.partitions": "2"}},
    {"0": '{"orders":{"0":100,"1":100}}'},
)
COMMIT = CommitEntry(1, {"nextBatchWatermarkMs": 0})
TWS = "transformWithStateInPySparkExec"
_DUMMY = schema(__dummy__="void")


def timers(name: str, key: Schema) -> dict[str, tuple[Schema, Schema]]:
    """Column families of timers (`TimerKeyEncoder`)."""
    time = "expiryTimestampMs"
    return {
        f"{name}_keyToTimestamp": (schema(**{"key": key, time: "long"}), _DUMMY),
        f"{name}_timestampToKey": (schema(**{time: "long", "key": key}), _DUMMY),
    }


def variables_of_the_vectors(key_type: str) -> tuple[dict[str, tuple[Schema, Schema]], dict[str, str]]:
    """Column families and kinds of variables with the names and types of the states in the vectors' jobs."""
    key = schema(key=key_type)
    families = {
        "sum": (key, schema(value="long")),
        "list": (key, schema(value="string")),
        "$rowCounter_list": (key, schema(count="long")),
        "map": (schema(key=key, userKey=schema(name="string")), schema(n="long")),
        **timers("$eventTimers", key),
        **timers("$procTimers", key),
    }
    kinds = {"sum": "ValueState", "list": "ListState", "map": "MapState"}
    return families, kinds | {f"${name}Timers_keyToTimestamp": "TimerState" for name in ("event", "proc")}


def target(
    directory: Path,
    families: Mapping[str, tuple[Schema, Schema]],
    variables: Mapping[str, str] | None = None,
    *,
    rows: Section | None = None,
    conf: Mapping[str, str] | None = None,
) -> StateLocation:
    """A location of a `transformWithState`, or of an aggregation without `variables`, after one batch.

    Args:
        directory: the location.
        families: column families.
        variables: kinds of the state variables.
        rows: rows of the batch.
        conf: settings of the query in its offset log.
    """
    name = "stateStoreSave" if variables is None else TWS
    offsets = OFFSETS.with_conf(conf or {})
    location = StateLocation(directory, families, name=name, variables=variables, offsets=offsets.encode())
    location.sources = tuple(Source(name, offset) for name, offset in OFFSETS.offsets.items())
    location.storage.write_atomic(QUERY, b'{"id":"query"}')
    if rows is None:
        location.commit()
    else:
        location.commit(rows, rows=len(rows.entries))
    log = SparkLog(location.storage)
    log.add_offsets(0, offsets)
    log.add_commit(0, COMMIT)
    return location


def files_of(directory: Path) -> dict[str, bytes]:
    """Files below a directory by relative path, without the records of claims."""
    return {
        str(path.relative_to(directory)): path.read_bytes()
        for path in sorted(directory.rglob("*"))
        if path.is_file() and "completed" not in path.parts
    }
