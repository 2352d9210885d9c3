"""Real Flink 1.20 and 2.1 restore our savepoints, with all types of keys, backends and numbers of key groups."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray

from spark_ckpt.flink.export import entries, runs
from spark_ckpt.flink.export.model import FlinkOperator, FlinkOperatorState, FlinkState, StateKind
from spark_ckpt.flink.export.operator_id import operator_id_of
from spark_ckpt.flink.export.writer import write_savepoint
from spark_ckpt.flink.streams.types.primitives import LONG
from spark_ckpt.flink.streams.types.text import STRING
from spark_ckpt.flink.types.hashes import key_groups_of
from spark_ckpt.metadata.handles import DistributionMode
from spark_ckpt.storage import LocalStorage
from tests.flink.export.counts import ALL, assert_equal, read_request, restore_request, write
from tests.flink.export.sql_counts import assert_counted, expected_changes, sql_request, write_global, write_sql
from tests.support.flink_restore import NEWEST, OLDEST, ask

pytestmark = pytest.mark.flink

LINES = [OLDEST, NEWEST]
BACKENDS = ["hashmap", "rocksdb"]
KEY_GROUPS = [128, 1024]


@pytest.mark.parametrize("line", LINES)
@pytest.mark.parametrize("max_parallelism", KEY_GROUPS)
def test_the_state_processor_api_reads_every_row(tmp_path: Path, line: str, max_parallelism: int) -> None:
    write(tmp_path, list(ALL), max_parallelism=max_parallelism)
    for answer in ask([read_request(tmp_path, kind, backend) for kind in ALL for backend in BACKENDS], line):
        # RocksDB sorts rows by unsigned bytes, and this line merges the keys of several states by signed ones
        # (`RocksMultiStateKeysIterator`): a key of a row with bytes above 127 may come once for each state.
        assert_equal(answer, repeats=line == NEWEST and answer.request["backend"] == "rocksdb")


@pytest.mark.parametrize("line", LINES)
@pytest.mark.parametrize("max_parallelism", KEY_GROUPS)
def test_jobs_count_on(tmp_path: Path, line: str, max_parallelism: int) -> None:
    write(tmp_path, list(ALL), max_parallelism=max_parallelism)
    requests = [
        restore_request(tmp_path, kind, backend, max_parallelism=max_parallelism, parallelism=parallelism)
        for kind in ALL
        for backend, parallelism in zip(BACKENDS, (2, 4), strict=True)
    ]
    for answer in ask(requests, line):
        assert_equal(answer)


@pytest.mark.parametrize("line", LINES)
def test_runs_from_the_temporary_file_are_read(tmp_path: Path, line: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Key groups of many sorted runs, most of which exceeded memory."""
    monkeypatch.setattr(runs, "RUN_BYTES", 1 << 18)
    monkeypatch.setattr(runs, "MAX_IN_MEMORY", 1 << 20)
    keys, numbers = [f"key-{number}" for number in range(100_000)], np.arange(100_000)

    def batches() -> Iterator[pa.RecordBatch]:
        for at in range(0, len(keys), 5_000):
            yield pa.RecordBatch.from_pydict({"key": keys[at : at + 5_000], "value": numbers[at : at + 5_000]})

    operator = FlinkOperator.of_uid(ALL["string"].uid, STRING, [FlinkState("sum", StateKind.VALUE, LONG)], 1024)
    write_savepoint(LocalStorage(tmp_path), [(operator, {"sum": batches()})], parallelism=3)
    (answer,) = ask([read_request(tmp_path, "string", "hashmap")], line)
    found = answer.parsed
    assert sorted(found, key=lambda row: row[1]) == [[key, number, [], {}, [], []] for number, key in enumerate(keys)]


@pytest.mark.parametrize("line", LINES)
def test_queries_of_sql_count_on(tmp_path: Path, line: str) -> None:
    write_sql(tmp_path)
    for answer in ask([sql_request(tmp_path, backend, parallelism=2) for backend in BACKENDS], line):
        assert_counted(answer)


@pytest.mark.parametrize("line", LINES)
def test_an_aggregate_without_keys_counts_on(tmp_path: Path, line: str) -> None:
    write_global(tmp_path, 7, 70)
    (answer,) = ask([sql_request(tmp_path, "rocksdb", parallelism=1, query="SELECT COUNT(*), SUM(v) FROM t")], line)
    assert answer.rows is not None, answer.exception
    expected = []
    for number in range(5):
        count, total = 7 + number, 70 + 5 * number
        expected += [f"-U[{count}, {total}]", f"+U[{count + 1}, {total + 5}]"]
    assert answer.rows == expected


def test_without_the_place_of_a_null_a_key_of_sql_begins_anew(tmp_path: Path) -> None:
    """The judge notices the other layout of null keys, which restores without an error."""
    write_sql(tmp_path, codegen=False)
    (answer,) = ask([sql_request(tmp_path, "hashmap", parallelism=2)])
    assert answer.rows is not None
    assert "+I[null, 3, null, 1, 5]" in answer.rows
    assert set(answer.rows) != set(expected_changes())


def test_a_wrong_hash_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The judge notices keys in wrong key groups, which Flink itself may restore without an error."""

    def shifted(hashes: NDArray[np.uint32], max_parallelism: int) -> NDArray[np.int32]:
        return key_groups_of(hashes + np.uint32(1), max_parallelism)

    monkeypatch.setattr(entries, "key_groups_of", shifted)
    write(tmp_path, ["long"])
    (answer,) = ask([restore_request(tmp_path, "long", "hashmap")])
    if answer.rows is None:
        # Timers are looked up by the range of key groups.
        assert answer.exception is not None
        assert "KeyGroupRange" in answer.exception
    else:
        with pytest.raises(AssertionError):
            assert_equal(answer)


def elements(count: int) -> Iterator[FlinkOperatorState]:
    yield FlinkOperatorState("split", STRING, [f"ä{number}" for number in range(count)])
    yield FlinkOperatorState("union", LONG, [-number for number in range(count)], DistributionMode.UNION)


@pytest.mark.parametrize("line", LINES)
def test_operator_state_is_spread_over_other_subtasks(tmp_path: Path, line: str) -> None:
    operator = FlinkOperator("elements", operator_id_of("elements"), None, operator_states=list(elements(10)))
    write_savepoint(LocalStorage(tmp_path), [(operator, {})], parallelism=3)
    request: dict[str, Any] = {"do": "source", "savepoint": str(tmp_path), "uid": "elements", "backend": "hashmap"}
    same, other = ask([{**request, "parallelism": parallelism, "maxParallelism": 128} for parallelism in (3, 2)], line)
    for answer, parallelism in ((same, 3), (other, 2)):
        found = answer.parsed
        assert len(found) == parallelism
        assert sorted(each for split, _ in found for each in split) == sorted(f"ä{number}" for number in range(10))
        assert all(sorted(union) == list(range(-9, 1)) for _, union in found)
