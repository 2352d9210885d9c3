"""Rows in files and in JSON text."""

from __future__ import annotations

from datetime import datetime, timezone
from pathlib import Path

import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

from spark_ckpt.edit import EditRowError
from spark_ckpt.edit.row_input import read_rows, table_of
from spark_ckpt.errors import StorageError

SCHEMA = pa.schema(
    [
        ("key", pa.struct([("user", pa.string()), ("day", pa.int32())])),
        ("value", pa.struct([("n", pa.int64()), ("at", pa.timestamp("us"))])),
        ("partition_id", pa.int32()),
    ]
)
ROW = '{"key": {"user": "a", "day": 3}, "value": {"n": 9007199254740993, "at": null}}'


@pytest.mark.parametrize(
    "text",
    [ROW, f"[{ROW}]", f"{ROW}\n\n{ROW}\n", f'{{"format": 1, "rows": [{ROW}]}}'],
    ids=["object", "list", "lines", "output of read"],
)
def test_json(text: str) -> None:
    rows = read_rows(text, SCHEMA)
    assert rows.to_pylist()[0] == {"key": {"user": "a", "day": 3}, "value": {"n": 9007199254740993, "at": None}}
    assert rows.schema.field("key").type == SCHEMA.field("key").type


def test_times_are_text() -> None:
    text = ROW.replace('"at": null', '"at": "2026-01-31 12:00:00"')
    (row,) = read_rows(text, SCHEMA).to_pylist()
    assert row["value"]["at"].replace(tzinfo=timezone.utc) == datetime(2026, 1, 31, 12, tzinfo=timezone.utc)


def test_files(tmp_path: Path) -> None:
    rows = read_rows(ROW, SCHEMA)
    pq.write_table(rows, tmp_path / "rows.parquet")
    pyarrow.feather.write_feather(rows, str(tmp_path / "rows.arrow"), compression="uncompressed")
    (tmp_path / "rows.jsonl").write_text(f"{ROW}\n")
    for name in ("rows.parquet", "rows.arrow", "rows.jsonl"):
        assert read_rows(str(tmp_path / name), SCHEMA).to_pylist() == rows.to_pylist()
    assert table_of(rows, SCHEMA) is rows
    assert table_of(lambda schema: read_rows(ROW, schema), SCHEMA).equals(rows)


@pytest.mark.parametrize(
    ("text", "column", "reason"),
    [
        ("{", "rows", "no JSON"),
        ("[" * 100_000, "rows", "no JSON"),
        ("[1]", "rows", "expected an object, found int"),
        (ROW.replace('"day"', '"dy"'), "key.dy", "no such column; known are user, day"),
        (ROW.replace(', "day": 3', ""), "key.day", "is missing; write null"),
        (ROW.replace('"value"', '"values"'), "values", "no such column"),
        (ROW.replace('"user": "a"', '"user": 5'), "rows", "does not have the type of the state"),
        (ROW.replace('"day": 3', '"day": 3.5'), "rows", "does not have the type of the state"),
        (ROW.replace('"day": 3', '"day": 3000000000'), "rows", "does not have the type of the state"),
    ],
)
def test_json_that_does_not_fit(text: str, column: str, reason: str) -> None:
    with pytest.raises(EditRowError, match=reason) as refused:
        read_rows(text, SCHEMA)
    assert refused.value.column == column


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="cannot read"):
        read_rows(str(tmp_path / "missing.parquet"), SCHEMA)
    for name in ("rows.parquet", "rows.arrow", "rows.json"):
        (tmp_path / name).write_bytes(b"\xff\xfe\x00")
        with pytest.raises(EditRowError, match=r"cannot be read|no text"):
            read_rows(str(tmp_path / name), SCHEMA)
