"""Rows between Flink's files and the base snapshots."""

from __future__ import annotations

import tempfile
from contextlib import suppress
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from spark_ckpt.errors import StorageError
from spark_ckpt.format.key_groups import factors, key_group_of
from spark_ckpt.spark_files.schemas import FamilySchema
from spark_ckpt.spark_files.types import struct_of
from spark_ckpt.state.unsafe_row_encoder import encode_rows
from spark_ckpt.state_writing.family_rows import FamilyRows
from spark_ckpt.state_writing.spill import RowSpill
from tests.support.state_location import schema

KIND = struct_of(schema(n="long"))
FAMILY = FamilySchema("sum", KIND, KIND)
PARTITIONS, FACTORS = 3, factors(3, 12)


def family_rows(numbers: range) -> FamilyRows:
    encoded = encode_rows(KIND, pa.array([{"n": number} for number in numbers], KIND.arrow))
    return FamilyRows(FAMILY, encoded, encoded, np.array([number * 7 - 50 for number in numbers], np.int32))


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The directory of temporary files."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


@pytest.mark.parametrize("buffer_bytes", [1, 500, 1 << 20])
def test_rows_come_by_partition_and_key_group(buffer_bytes: int, temporary: Path) -> None:
    with RowSpill(PARTITIONS, FACTORS, ["sum"], buffer_bytes) as spill:
        for start in range(0, 100, 10):
            spill.add(family_rows(range(start, start + 10)))
        tables = list(spill.partitions())
    assert not list(temporary.iterdir())
    assert len(tables) == PARTITIONS
    for partition, table in enumerate(tables):
        numbers = [int.from_bytes(key[8:], "little") for key in table.column("key").to_pylist()]
        assert sorted(numbers) == [number for number in range(100) if (number * 7 - 50) % PARTITIONS == partition]
        groups = table.column("key_group").to_pylist()
        assert groups == sorted(groups) == [key_group_of(number * 7 - 50, FACTORS) for number in numbers]
        # Rows of a key group keep their order, as those of a list must.
        assert numbers == sorted(numbers, key=lambda number: (key_group_of(number * 7 - 50, FACTORS), number))


def test_partitions_without_rows(temporary: Path) -> None:
    with RowSpill(PARTITIONS, FACTORS, ["sum"]) as spill:
        assert [len(table) for table in spill.partitions()] == [0, 0, 0]


def test_the_file_goes_after_an_error(temporary: Path) -> None:
    with suppress(KeyboardInterrupt), RowSpill(PARTITIONS, FACTORS, ["sum"], 1) as spill:
        spill.add(family_rows(range(10)))
        assert list(temporary.iterdir())
        raise KeyboardInterrupt
    assert not list(temporary.iterdir())


def test_a_full_disk_is_named(temporary: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Full:
        def write_table(self, *_: object, **__: object) -> None:
            raise OSError(28, "No space left on device")

        def close(self) -> None:
            return

    with RowSpill(PARTITIONS, FACTORS, ["sum"], 1) as spill:
        monkeypatch.setattr(spill, "_writer", Full())
        with pytest.raises(StorageError, match=r"No space left on device.*TMPDIR"):
            spill.add(family_rows(range(10)))
