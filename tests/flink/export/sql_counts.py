"""State of `SELECT s, l, ts, COUNT(*), SUM(v) FROM t GROUP BY s, l, ts` in Flink SQL, and how it goes on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from spark_ckpt.flink.export.model import FlinkOperator, FlinkState, StateKind
from spark_ckpt.flink.export.writer import write_savepoint
from spark_ckpt.flink.streams.types.logical_types import LogicalType
from spark_ckpt.flink.streams.types.row_data import RowDataSerializer
from spark_ckpt.flink.types.lookup import arrow_type
from spark_ckpt.storage import LocalStorage
from tests.flink.streams.types.flink_serializers import BIGINT, VARCHAR, timestamp
from tests.support.flink_restore import Answer

QUERY = "SELECT s, l, ts, COUNT(*), SUM(v) FROM t GROUP BY s, l, ts"
UID = "sql_group-aggregate"
KEY = RowDataSerializer((VARCHAR, BIGINT, timestamp(6)))
ACCUMULATORS = RowDataSerializer((LogicalType("BIGINT"), LogicalType("BIGINT")))

SECOND = 1_000_000
KEYS: dict[str, tuple[str | None, int | None, int | None]] = {
    "short": ("a", 1, SECOND + 123),
    "long": ("a text of more than seven bytes", 2, -2 * SECOND - 1),
    "null": (None, 3, None),
    "all null": (None, None, None),
}
"""Keys, with microseconds since 1970."""
STATE = {"short": (10, 100), "long": (20, 200), "null": (30, 300), "all null": (40, None)}
"""Count and sum of each key."""
TIMES = {
    SECOND + 123: "1970-01-01T00:00:01.000123",
    -2 * SECOND - 1: "1969-12-31T23:59:57.999999",
    3 * SECOND: "1970-01-01T00:00:03",
}
NEW = ("new", 9, 3 * SECOND)


def write_sql(directory: Path, *, codegen: bool = True) -> None:
    """Write the state of the aggregate."""
    keys = [{"kind": 0, "f0": s, "f1": number, "f2": time} for s, number, time in KEYS.values()]
    _write(directory, KEY, keys, [STATE[name] for name in KEYS], codegen=codegen)


def write_global(directory: Path, count: int, total: int) -> None:
    """Write the state of the same aggregate without a `GROUP BY`: its only key is a row without fields.

    Flink SQL gives the operator the max parallelism 1, whatever that of the job, and restores no other.
    """
    _write(directory, RowDataSerializer(()), [{"kind": 0}], [(count, total)], codegen=True, max_parallelism=1)


def _write(
    directory: Path,
    key: RowDataSerializer,
    keys: Sequence[dict[str, Any]],
    state: Sequence[tuple[int, int | None]],
    *,
    codegen: bool,
    max_parallelism: int = 128,
) -> None:
    states = [FlinkState("accState", StateKind.VALUE, ACCUMULATORS)]
    operator = FlinkOperator.of_uid(UID, key, states, max_parallelism, codegen=codegen)
    values = [{"kind": 0, "f0": count, "f1": total} for count, total in state]
    batch = pa.RecordBatch.from_pydict(
        {"key": pa.array(keys, arrow_type(key).type), "value": pa.array(values, arrow_type(ACCUMULATORS).type)}
    )
    write_savepoint(
        LocalStorage(directory), [(operator, {"accState": iter([batch])})], parallelism=min(2, max_parallelism)
    )


def sql_request(directory: Path, backend: str, *, parallelism: int, query: str = QUERY) -> dict[str, Any]:
    """Request for the query over one row more of each key, and of a new one."""
    rows = [(s, number, None if time is None else TIMES[time], 5) for s, number, time in (*KEYS.values(), NEW)]
    return {
        "do": "sql",
        "savepoint": str(directory),
        "backend": backend,
        "parallelism": parallelism,
        "maxParallelism": 128,
        "query": query,
        "input": rows,
    }


def expected_changes() -> Counter[str]:
    """Changes of the query: each key goes on, and the new one begins."""
    found = Counter([_change("+I", NEW, 1, 5)])
    for name, key in KEYS.items():
        count, total = STATE[name]
        found[_change("-U", key, count, total)] += 1
        found[_change("+U", key, count + 1, (total or 0) + 5)] += 1
    return found


def _change(kind: str, key: tuple[str | None, int | None, int | None], count: int, total: int | None) -> str:
    s, number, time = key
    fields = [s, number, None if time is None else TIMES[time], count, total]
    return f"{kind}[{', '.join('null' if each is None else str(each) for each in fields)}]"


def assert_counted(answer: Answer) -> None:
    """Assert that the query goes on."""
    assert answer.rows is not None, answer.exception
    assert Counter(answer.rows) == expected_changes()
