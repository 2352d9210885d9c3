"""Export to a Delta table without Spark. In tests/spark/test_read_state.py, Spark reads such a table."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from spark_ckpt.errors import StorageError
from spark_ckpt.location.errors import TargetExistsError
from spark_ckpt.state.export import write_delta, write_parquet

ROWS = pa.table(
    {
        "n": [1, 2],
        "pause": pa.array([5, None], pa.duration("us")),
        "clock": pa.array([7, None], pa.time64("ns")),
        "nothing": pa.nulls(2),
        "empty": pa.array([{}, {}], pa.struct([])),
        "price": pa.array([Decimal("1.5"), None], pa.decimal128(9, 2)),
        "at": pa.array([0, 1], pa.timestamp("us", "UTC")),
        "parts": [[1, None], None],
        "table": pa.array([[("a", 1)], None], pa.map_(pa.string(), pa.duration("us"))),
        "inner": [{"a": "x", "b": [b"y"]}, None],
    }
)


def log(directory: Path) -> dict[str, Any]:
    (commit,) = (directory / "_delta_log").iterdir()
    assert commit.name == f"{0:020d}.json"
    actions = [json.loads(line) for line in commit.read_text().splitlines()]
    return {name: action for each in actions for name, action in each.items()}


def test_a_delta_table(tmp_path: Path) -> None:
    assert write_delta(ROWS.schema, ROWS.to_batches(max_chunksize=1), str(tmp_path / "table")) == 2
    actions = log(tmp_path / "table")
    assert actions["protocol"] == {"minReaderVersion": 1, "minWriterVersion": 2}
    fields = {field["name"]: field["type"] for field in json.loads(actions["metaData"]["schemaString"])["fields"]}
    assert (fields["n"], fields["pause"], fields["clock"], fields["nothing"]) == ("long", "long", "long", "string")
    assert (fields["empty"], fields["price"], fields["at"]) == ("string", "decimal(9,2)", "timestamp")
    assert fields["parts"] == {"type": "array", "elementType": "long", "containsNull": True}
    assert (fields["table"]["keyType"], fields["table"]["valueType"]) == ("string", "long")
    assert [field["type"] for field in fields["inner"]["fields"]][:1] == ["string"]
    part = tmp_path / "table" / actions["add"]["path"]
    assert part.stat().st_size == actions["add"]["size"]
    first, second = pq.read_table(part).to_pylist()
    assert (first["n"], first["pause"], first["clock"], first["price"]) == (1, 5, 7, Decimal("1.50"))
    assert (first["parts"], first["table"], first["inner"]) == ([1, None], [("a", 1)], {"a": "x", "b": [b"y"]})
    assert second == dict.fromkeys(ROWS.schema.names) | {"n": 2, "at": second["at"]}


def test_times_without_a_zone_need_a_feature(tmp_path: Path) -> None:
    rows = pa.table({"inner": pa.array([[{"at": 1}]], pa.list_(pa.struct([("at", pa.timestamp("us"))])))})
    write_delta(rows.schema, rows.to_batches(), str(tmp_path))
    protocol = log(tmp_path)["protocol"]
    assert (protocol["minReaderVersion"], protocol["minWriterVersion"]) == (3, 7)
    assert protocol["readerFeatures"] == ["timestampNtz"]


def test_a_table_is_never_overwritten(tmp_path: Path) -> None:
    write_delta(ROWS.schema, ROWS.to_batches(), str(tmp_path))
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(TargetExistsError):
        write_delta(ROWS.schema, ROWS.to_batches(), str(tmp_path))
    assert sorted(tmp_path.rglob("*")) == before


def test_what_parquet_cannot_hold(tmp_path: Path) -> None:
    rows = pa.table({"inner": pa.array([{"a": {}}], pa.struct([("a", pa.struct([]))]))})
    with pytest.raises(StorageError, match="cannot write"):
        write_parquet(rows.schema, rows.to_batches(), str(tmp_path / "file"))
    assert not (tmp_path / "file").exists()
