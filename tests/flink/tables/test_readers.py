"""Random savepoints, read column by column and row by row: both readers agree, and with what was written."""

from __future__ import annotations

import os
import random
import shutil
from pathlib import Path
from unittest.mock import patch

import pyarrow as pa
import pytest

from spark_ckpt.flink.export.model import StateKind
from spark_ckpt.flink.tables.find import find_flink_state
from spark_ckpt.flink.tables.read import FlinkScan
from spark_ckpt.flink.tables.vectors import VectorReader
from spark_ckpt.spark_files.types import map_leaf_types
from tests.flink.tables.random_savepoints import RandomSavepoint, SavepointMaker, exact

NUMBER_VARIABLE = "SPARK_CKPT_TEST_SAVEPOINTS"
"""Number of savepoints of the long test."""


def table(path: Path) -> pa.Table:
    catalog = find_flink_state(str(path))
    assert catalog is not None
    scan = FlinkScan(catalog, catalog.choose(None, "s"))
    return pa.Table.from_batches(list(scan.all_batches()), scan.schema)


def rows(found: pa.Table) -> list[object]:
    """Rows in an order of their own, times as integers: Python cannot represent all of them."""

    def plain(kind: pa.DataType) -> pa.DataType:
        if pa.types.is_timestamp(kind):
            return pa.int64()
        return pa.int32() if pa.types.is_date(kind) or pa.types.is_time32(kind) else kind

    columns = [column.cast(map_leaf_types(column.type, plain)).to_pylist() for column in found.columns]
    return sorted((exact(row) for row in zip(*columns, strict=True)), key=repr)


def check(savepoint: RandomSavepoint) -> None:
    by_columns = table(savepoint.path)
    with patch.object(VectorReader, "of", classmethod(lambda *_: None)):
        by_rows = table(savepoint.path)
    assert by_columns.schema == by_rows.schema, savepoint.description
    found = rows(by_rows)
    assert rows(by_columns) == found, savepoint.description
    if savepoint.kind is StateKind.VALUE:
        written = pa.Table.from_batches([savepoint.written])
        assert rows(by_rows.select(["key", "value"])) == rows(written), savepoint.description


def check_some(rng: random.Random, number: int, path: Path) -> None:
    maker = SavepointMaker(rng)
    read_by_columns = 0
    readers = VectorReader.of

    def counted(*arguments: object) -> VectorReader | None:
        nonlocal read_by_columns
        reader = readers(*arguments)  # type: ignore[arg-type]
        read_by_columns += reader is not None
        return reader

    for _ in range(number):
        savepoint = maker.write(path / "savepoint")
        with patch.object(VectorReader, "of", staticmethod(counted)):
            table(savepoint.path)
        check(savepoint)
        shutil.rmtree(savepoint.path)
    assert read_by_columns > number // 4, "most savepoints have no reader by columns: the test compares nothing"


def test_random_savepoints(rng: random.Random, tmp_path: Path) -> None:
    check_some(rng, 80, tmp_path)


@pytest.mark.long
def test_many_random_savepoints(rng: random.Random, tmp_path: Path) -> None:
    check_some(rng, int(os.environ.get(NUMBER_VARIABLE, "2000")), tmp_path)
